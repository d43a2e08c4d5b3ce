//! A sync service: takes commits from the queue, and answers their gateways when they are durable.
//!
//! *Invariants*: a group is settled after its commits are durable and its answer was sent, so one whose worker dies comes
//! to another, which finds what was done by its operations. Who has lost the database gives its groups back, answers nobody, and takes no more
//! until it has found the database again: it would refuse faster than others commit, and so draw the whole queue to itself.

use std::sync::Arc;
use std::time::Duration;

use commit_log::envelope;
use messaging::{Calls, Context, Fault, FaultKind, Messenger, Name};
use model::Clock;
use model::wire::{Reply, ServerFrame};
use tokio::sync::{oneshot, watch};

use super::GROUPS_AT_ONCE;
use super::interface::{Blob, read};
use super::work::{
    Asker, CommitGroup, GatewayProxy, GroupAnswer, InstanceLoad, SyncServiceCalls, WorkspaceLine,
    code,
};
use crate::auth::Caller;
use crate::error::ServerError;
use crate::metadata::MetadataError;
use crate::metrics::Counter;
use crate::services::commits::Committer;
use crate::services::readers::Readers;
use crate::services::sync_service::Answer;
use crate::services::{sync_service, workspaces};

/// How many bytes of entries one answer carries at most; the last entry may go beyond.
const ENTRIES_LENGTH_MAX: u64 = 256 * 1024;

/// How often it is looked whether a lost database answers again.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What does the work.
#[derive(Debug, Clone)]
pub(super) struct Worker {
    committer: Committer,
    readers: Readers,
    clock: Arc<dyn Clock>,
    done: Arc<Done>,
    /// Whether the database was lost.
    is_lost: Arc<watch::Sender<bool>>,
}

/// The groups that an instance has done.
#[derive(Debug, Default)]
struct Done {
    groups: Counter,
    busy_us: Counter,
}

impl Worker {
    pub(super) fn new(committer: Committer, readers: Readers, clock: Arc<dyn Clock>) -> Self {
        let is_lost = Arc::new(watch::Sender::new(false));
        Self { committer, readers, clock, done: Arc::default(), is_lost }
    }

    /// Waits until a group finds that the database is lost.
    pub(super) async fn database_lost(&self) {
        // An error is not possible: the sender is in here.
        let _ = self.is_lost.subscribe().wait_for(|is_lost| *is_lost).await;
    }

    /// Waits until the database answers again. No group may be under way.
    pub(super) async fn database_found(&self) {
        while self.committer.check().await.is_err() {
            self.clock.sleep(LOOK_EVERY).await;
        }
        self.is_lost.send_replace(false);
    }

    /// Returns the worker of an instance.
    pub(super) fn of(&self, messenger: &Messenger) -> Bench {
        Bench { worker: self.clone(), calls: Arc::new(messenger.clone()) }
    }
}

/// The worker of one instance.
pub(super) struct Bench {
    worker: Worker,
    calls: Arc<dyn Calls>,
}

impl SyncServiceCalls for Bench {
    async fn get_workspaces(
        &self,
        _context: &Context,
        asker: Asker,
    ) -> Result<Vec<WorkspaceLine>, Fault> {
        let caller = asker.open()?;
        let read = self.worker.readers.read(move |metadata| workspaces::list(metadata, &caller));
        let found = read.await.map_err(|error| fault(&error))?;
        Ok(found.into_iter().map(WorkspaceLine::from).collect())
    }

    async fn get_changes(
        &self,
        _context: &Context,
        asker: Asker,
        workspace: String,
        since: u64,
    ) -> Result<Blob, Fault> {
        let caller: Caller = asker.open()?;
        let workspace = read(&workspace)?;
        let read = self.worker.readers.read(move |metadata| {
            sync_service::entries(metadata, &caller, workspace, since, ENTRIES_LENGTH_MAX)
        });
        let entries = read.await.map_err(|error| fault(&error))?;
        let frame = ServerFrame::Reply { number: since, reply: Reply::Entries(entries) };
        Ok(Blob(envelope::wrap(&frame)))
    }

    async fn commit(&self, _context: &Context, group: CommitGroup) -> Result<(), Fault> {
        let begun = self.worker.clock.elapsed();
        let done = self.commit_group(group).await;
        let time = self.worker.clock.elapsed().saturating_sub(begun);
        self.worker.done.groups.add(1);
        self.worker.done.busy_us.add(u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
        done
    }

    async fn load(&self, _context: &Context) -> Result<InstanceLoad, Fault> {
        let Done { groups, busy_us } = &*self.worker.done;
        let groups_at_once = GROUPS_AT_ONCE as u64;
        Ok(InstanceLoad { groups: groups.get(), busy_us: busy_us.get(), groups_at_once })
    }
}

impl Bench {
    async fn commit_group(&self, group: CommitGroup) -> Result<(), Fault> {
        let gateway = Name::new(&group.gateway)
            .map_err(|error| Fault::new(FaultKind::InvalidRequest, error.to_string()))?;
        let mut answers = Vec::with_capacity(group.commits.len());
        for proposed in group.commits {
            let (answer, answered) = oneshot::channel();
            let finish = move |outcome| drop(answer.send(outcome));
            match proposed.open() {
                Ok(request) => {
                    let submitted = self.worker.committer.commit(request, finish).await;
                    submitted.map_err(|error| fault(&error))?;
                }
                Err(error) => finish(Err(error)),
            }
            answers.push(answered);
        }
        let mut replies = Vec::with_capacity(answers.len());
        for answered in answers {
            let stopping = |_| Fault::unavailable("the sync service stops");
            let outcome = answered.await.map_err(stopping)?;
            if let Err(error @ ServerError::Metadata(MetadataError::Unreachable { .. })) = &outcome
            {
                self.worker.is_lost.send_replace(true);
                return Err(fault(error));
            }
            let number = replies.len() as u64;
            let Answer { reply, .. } = Answer::reply(outcome.map(Reply::Committed));
            replies.push(Blob(envelope::wrap(&ServerFrame::Reply { number, reply })));
        }
        let answer = GroupAnswer { number: group.number, replies };
        let proxy = GatewayProxy::at(Arc::clone(&self.calls), gateway);
        if let Err(error) = proxy.answered(answer).await {
            // The gateway sends the group again, and then it is found done.
            tracing::debug!(%error, "a gateway was not answered");
        }
        Ok(())
    }
}

/// Returns the fault of an error, its kind being the code.
fn fault(error: &ServerError) -> Fault {
    if error.is_internal() {
        tracing::error!(%error, "a request failed");
    }
    let text = error.public_text();
    match error.is_retryable() {
        true => Fault::unavailable(text),
        false => Fault::service(code(error.kind()), text),
    }
}
