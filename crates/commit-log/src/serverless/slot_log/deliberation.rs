//! Lets a [`Proposer`] talk with the stores of its group: its requests out, their answers in, and the time between.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{BoxFuture, Either, FutureExt, select};
use futures_util::stream::{FuturesUnordered, StreamExt};
use model::WorkspaceId;
use model::codec::DecodeError;
use storage::{ObjectKey, ObjectStore, PutMode, PutOutcome, StorageError};

use super::Means;
use super::background::{Background, Call};
use super::silence::Silence;
use crate::serverless::candidate::{Candidate, Context};
use crate::serverless::group::Group;
use crate::serverless::rounds::{Answer, Carrier, Proposer, Request, Status};

/// How long a store of several may take for one answer.
pub(super) const CALL_PATIENCE: Duration = Duration::from_secs(30);

/// How long the slower stores are waited for at least, after enough have answered, and how long at most.
const SLOWER_PATIENCE_MIN: Duration = Duration::from_millis(50);
const SLOWER_PATIENCE_MAX: Duration = Duration::from_secs(5);

/// Why a store did not answer.
#[derive(Debug)]
pub(super) enum Failure {
    /// The store says so.
    Storage(StorageError),
    /// It holds what cannot be read.
    Message(DecodeError),
    /// It takes too long.
    Slow,
}

/// One slot, and those who agree on it.
#[derive(Debug)]
pub(super) struct Deliberation<'a> {
    pub(super) means: &'a Means,
    pub(super) background: &'a Background,
    pub(super) silence: &'a Silence,
    /// Is set to the store that answers first.
    pub(super) quickest: &'a AtomicUsize,
    pub(super) workspace: WorkspaceId,
    pub(super) group: &'a Group,
    pub(super) slot: u64,
}

/// Requests under way; each ends with its answer.
type Calls = FuturesUnordered<Call<(Request<Candidate>, Result<Reply, Failure>)>>;

enum Reply {
    Put(PutOutcome),
    Got(Option<Bytes>),
}

impl Deliberation<'_> {
    /// Goes on until the proposer can do no more by itself; [`Proposer::retry`] lets it ask again. `failures` has a place for each store.
    pub(super) async fn run(
        &self,
        proposer: &mut Proposer<Candidate>,
        failures: &mut [Option<Failure>],
    ) -> Status<Candidate> {
        let mut calls = Calls::new();
        let mut has_answer = false;
        let mut pending: Vec<Request<Candidate>> = Vec::new();
        let start = self.means.clock.elapsed();
        let mut patience: Option<Pin<Box<dyn Future<Output = ()> + Send>>> = None;
        loop {
            for request in proposer.requests() {
                let (store, answer) = (request.store, self.call(request.clone()));
                calls.push(Call { store, answer });
                pending.push(request);
            }
            let status = proposer.status();
            if status != Status::Working || calls.is_empty() {
                // What nobody has answered yet goes on by itself, and may be asked again.
                for request in pending {
                    proposer.answer(&request, Answer::Failed);
                }
                self.leave(calls);
                return status;
            }
            if patience.is_none() && !self.group.is_single() && proposer.has_idle_quorum() {
                let taken = self.means.clock.elapsed().saturating_sub(start);
                let is_known = |r: &Request<Candidate>| self.silence.holds(self.name(r.store));
                let span = match pending.iter().all(is_known) {
                    // Those who let everybody wait the last time are not waited for again.
                    true => SLOWER_PATIENCE_MIN,
                    false => (taken * 2).clamp(SLOWER_PATIENCE_MIN, SLOWER_PATIENCE_MAX),
                };
                patience = Some(self.means.clock.sleep(span));
            }
            let answered = match &mut patience {
                None => self.background.beside(calls.next()).await,
                Some(patience) => {
                    match self.background.beside(select(calls.next(), patience)).await {
                        Either::Left((answered, _)) => answered,
                        Either::Right(_) => None,
                    }
                }
            };
            if let Some((request, reply)) = answered {
                // Whoever was waited for may have been asked something else since.
                patience = None;
                pending.retain(|pending| *pending != request);
                if !has_answer && reply.is_ok() {
                    has_answer = true;
                    self.quickest.store(request.store, Ordering::Relaxed);
                }
                let answer = self.understand(reply, &mut failures[request.store]);
                proposer.answer(&request, answer);
                continue;
            }
            patience = None;
            for request in &pending {
                self.silence.begins(self.name(request.store));
            }
            if !proposer.hurry() {
                for request in pending.drain(..) {
                    failures[request.store] = Some(Failure::Slow);
                    proposer.answer(&request, Answer::Failed);
                }
            }
        }
    }

    /// Lets a carrier leave a decision at every store that answers.
    pub(super) async fn carry(
        &self,
        carrier: &mut Carrier<Candidate>,
        failures: &mut [Option<Failure>],
    ) {
        let mut calls = Calls::new();
        loop {
            for request in carrier.requests() {
                calls.push(Call { store: request.store, answer: self.call(request) });
            }
            let Some((request, reply)) = self.background.beside(calls.next()).await else { return };
            let answer = self.understand(reply, &mut failures[request.store]);
            carrier.answer(&request, answer);
        }
    }

    /// Does without waiting what makes the decided value last.
    pub(super) fn complete(&self, proposer: &Proposer<Candidate>, value: &Candidate) {
        for request in proposer.completions(value) {
            let store = self.name(request.store);
            self.background.add(store, self.call(request.clone()).map(drop).boxed());
        }
    }

    fn leave(&self, calls: Calls) {
        for call in calls {
            self.background.add(self.name(call.store), call.map(drop).boxed());
        }
    }

    fn name(&self, store: usize) -> &str {
        &self.group.stores()[store].name
    }

    fn context(&self) -> Context<'_> {
        Context {
            workspace: self.workspace,
            slot: self.slot,
            certifier: self.group.certifier(),
            is_single: self.group.is_single(),
        }
    }

    fn understand(
        &self,
        reply: Result<Reply, Failure>,
        failure: &mut Option<Failure>,
    ) -> Answer<Candidate> {
        let decoded = |bytes: Bytes| self.context().decode(&bytes).map_err(Failure::Message);
        let answer = reply.and_then(|reply| {
            Ok(match reply {
                Reply::Put(PutOutcome::Written) => Answer::Written,
                Reply::Put(PutOutcome::Exists) => Answer::Exists,
                Reply::Got(None) => Answer::Absent,
                Reply::Got(Some(bytes)) => Answer::Found(decoded(bytes)?),
            })
        });
        answer.unwrap_or_else(|error| {
            *failure = Some(error);
            Answer::Failed
        })
    }

    fn call(
        &self,
        request: Request<Candidate>,
    ) -> BoxFuture<'static, (Request<Candidate>, Result<Reply, Failure>)> {
        let store = self.group.stores()[request.store].store.clone();
        let place = u32::try_from(request.place).expect("a list is far shorter");
        let key = ObjectKey::log_slot(self.slot, place);
        let bytes = request.put.as_ref().map(|message| self.context().encode(message));
        let reply = ask(store, key, bytes);
        if self.group.is_single() {
            return reply.map(|reply| (request, reply)).boxed();
        }
        let limit = self.means.clock.sleep(CALL_PATIENCE);
        let (silence, name) = (self.silence.clone(), self.name(request.store).to_owned());
        let limited = async move {
            match select(std::pin::pin!(reply), limit).await {
                Either::Left((reply, _)) => {
                    silence.ends(&name);
                    (request, reply)
                }
                Either::Right(_) => {
                    silence.begins(&name);
                    (request, Err(Failure::Slow))
                }
            }
        };
        limited.boxed()
    }
}

async fn ask(
    store: Arc<dyn ObjectStore>,
    key: ObjectKey,
    bytes: Option<Bytes>,
) -> Result<Reply, Failure> {
    let reply = match bytes {
        Some(bytes) => store.put(&key, bytes, PutMode::IfAbsent).await.map(Reply::Put),
        None => store.get(&key).await.map(Reply::Got),
    };
    reply.map_err(Failure::Storage)
}
