//! A gateway's way for commits: through the queue at the broker, to whichever sync service takes them.
//!
//! *Participants*: the live door, which brings commits; lanes, which bring them in order; the broker's durable queue;
//! any number of sync services. *Goals*: commits that wait travel and are decided together; an instance that dies or
//! stands still delays a commit and loses none. *Invariants*: of the commits for one workspace through this gateway, one
//! group is under way at a time, so their order stays; every commit is answered in bounded time; a group is sent again until it is
//! answered or its time is over, and its commits are done once, by their operations.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use commit_log::envelope;
use messaging::{Calls, Context, Fault, Messenger, Name};
use model::Clock;
use model::wire::{Reply, ServerFrame};
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};

use super::Link;
use super::interface::Blob;
use super::work::{
    CommitGroup, GatewayAnswers, GroupAnswer, ProposedCommit, REPLY_LENGTH_MAX, SyncServiceProxy,
};
use crate::error::{Result, ServerError};
use crate::services::commits::Committer;
use crate::services::sync_service::{self, CommitRequest};

/// How many groups of this gateway are under way at once at most.
const LANES: usize = 32;

/// How many commits wait for each lane at most; more make their connections wait.
const WAITING_MAX: usize = 64;

/// A group that has as many commits takes no more.
const GROUP_MAX: usize = 256;

/// A group takes nothing beyond this length in bytes, one commit excepted.
const GROUP_LENGTH_MAX: usize = 256 * 1024;

/// A commit that is longer, in bytes, fits into no message; this server decides it itself.
const MESSAGE_LENGTH_MAX: usize = 900_000;

/// Commits up to this length in bytes are packed where they arrive; longer ones would hold up other lanes.
const PACK_HERE_MAX: usize = 64 * 1024;

/// After what time without an answer a group is sent again; each time twice as long.
const RESEND_AFTER: Duration = Duration::from_secs(1);

/// After what time the devices hear that nobody answers.
const PATIENCE: Duration = Duration::from_secs(10);

/// What hears the reply to a commit.
type Finish = Box<dyn FnOnce(Reply) + Send>;

/// A commit on its way, and how it travels.
struct Job {
    request: CommitRequest,
    finish: Finish,
}

impl Job {
    fn refuse(self, error: &ServerError) {
        (self.finish)(Reply::Refused(error.refusal()));
    }
}

/// A commit that is ready to travel.
struct Packed {
    job: Job,
    bytes: Vec<u8>,
}

impl Packed {
    async fn new(job: Job) -> Self {
        let commit = &job.request.commit;
        let bytes = if sync_service::length_bound(commit) <= PACK_HERE_MAX {
            envelope::wrap(commit)
        } else {
            let commit = commit.clone();
            let packing = tokio::task::spawn_blocking(move || envelope::wrap(&commit));
            // Where it fails the runtime ends, and nothing is sent any more.
            packing.await.unwrap_or_default()
        };
        Self { bytes, job }
    }
}

/// The lanes to the queue; cheap to clone.
#[derive(Debug, Clone)]
pub struct CommitQueue {
    lanes: Arc<[mpsc::Sender<Job>]>,
}

impl std::fmt::Debug for Job {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Job").field("request", &self.request).finish_non_exhaustive()
    }
}

impl CommitQueue {
    /// Opens the lanes; they end when the last clone is dropped.
    pub(super) fn start(
        committer: &Committer,
        link: &Link,
        asked: &Arc<Asked>,
        clock: &Arc<dyn Clock>,
    ) -> Self {
        let lanes = (0..LANES).map(|_| {
            let (sender, jobs) = mpsc::channel(WAITING_MAX);
            let lane = Lane {
                committer: committer.clone(),
                link: link.clone(),
                asked: Arc::clone(asked),
                clock: Arc::clone(clock),
            };
            tokio::spawn(lane.run(jobs));
            sender
        });
        Self { lanes: lanes.collect() }
    }

    /// Puts a commit into its lane, waiting only while that is full; `finish` hears the reply.
    ///
    /// # Errors
    /// [`ServerError::Unavailable`] where the server stops.
    pub(crate) async fn submit(
        &self,
        request: CommitRequest,
        finish: impl FnOnce(Reply) + Send + 'static,
    ) -> Result<()> {
        let mut hasher = DefaultHasher::new();
        request.workspace.hash(&mut hasher);
        let lane = &self.lanes[hasher.finish() as usize % LANES];
        let job = Job { request, finish: Box::new(finish) };
        lane.send(job).await.map_err(|_| ServerError::STOPPING)
    }
}

/// Groups of a gateway that wait for their answers.
#[derive(Debug, Default)]
pub(super) struct Asked {
    last: AtomicU64,
    waiting: Mutex<HashMap<u64, oneshot::Sender<Vec<Blob>>>>,
}

/// Waits for one answer; forgets it when dropped.
struct Waiting<'a> {
    asked: &'a Asked,
    number: u64,
    answer: oneshot::Receiver<Vec<Blob>>,
}

impl Asked {
    fn wait(&self) -> Waiting<'_> {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let (sender, answer) = oneshot::channel();
        self.waiting.lock().insert(number, sender);
        Waiting { asked: self, number, answer }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.asked.waiting.lock().remove(&self.number);
    }
}

/// Hears the answers of one gateway.
pub(super) struct Answers(pub(super) Arc<Asked>);

impl GatewayAnswers for Answers {
    async fn answered(&self, _context: &Context, answer: GroupAnswer) -> Result<(), Fault> {
        // What was sent again may be answered again.
        if let Some(waiting) = self.0.waiting.lock().remove(&answer.number) {
            let _ = waiting.send(answer.replies);
        }
        Ok(())
    }
}

/// Returns the topic of the answers to a gateway.
pub(super) fn answers_topic(messenger: &Messenger) -> Name {
    Name::new(&format!("gateway.{}", messenger.instance()))
        .expect("an instance is hexadecimal digits")
}

/// Commits of some workspaces in their order.
struct Lane {
    committer: Committer,
    link: Link,
    asked: Arc<Asked>,
    clock: Arc<dyn Clock>,
}

impl Lane {
    async fn run(self, mut jobs: mpsc::Receiver<Job>) {
        let mut held = None;
        loop {
            let first = match held.take() {
                Some(packed) => packed,
                None => match jobs.recv().await {
                    Some(job) => Packed::new(job).await,
                    None => return,
                },
            };
            if first.bytes.len() > MESSAGE_LENGTH_MAX {
                self.commit_here(first.job).await;
                continue;
            }
            let mut group = vec![first];
            held = gather(&mut group, &mut jobs).await;
            if let Err(error) = self.commit_there(group).await {
                // Who has waited as long behind them is told the same.
                while let Some(job) =
                    held.take().map(|held| held.job).or_else(|| jobs.try_recv().ok())
                {
                    job.refuse(&error);
                }
            }
        }
    }

    /// Commits by this server's own writer, which is as good, and the only way for what fits into no message.
    async fn commit_here(&self, job: Job) {
        let (finished, finish) = oneshot::channel();
        let finish_job = move |reply| {
            (job.finish)(reply);
            let _ = finished.send(());
        };
        match self.committer.submit((job.request, None), finish_job).await {
            // An error says that the server stops, and then its connections end, too.
            Ok(()) => drop(finish.await),
            Err(error) => tracing::debug!(%error, "a commit came too late"),
        }
    }

    /// Commits a group by a sync service, and tells each what became of it.
    async fn commit_there(&self, group: Vec<Packed>) -> Result<()> {
        let commits: Vec<_> =
            group.iter().map(|one| ProposedCommit::new(&one.job.request, &one.bytes)).collect();
        let replies = self.ask(commits).await.and_then(|replies| read_all(&replies, group.len()));
        let jobs = group.into_iter().map(|one| one.job);
        match replies {
            Ok(replies) => {
                for (job, reply) in jobs.zip(replies) {
                    (job.finish)(reply);
                }
                Ok(())
            }
            Err(error) => {
                for job in jobs {
                    job.refuse(&error);
                }
                Err(error)
            }
        }
    }

    /// Sends a group, again and again, until it is answered or its time is over.
    async fn ask(&self, commits: Vec<ProposedCommit>) -> Result<Vec<Blob>> {
        let mut waiting = self.asked.wait();
        let end = self.clock.elapsed() + PATIENCE;
        let mut pause = RESEND_AFTER;
        while self.clock.elapsed() < end {
            let until = end.min(self.clock.elapsed() + pause);
            let send = async {
                self.send(waiting.number, &commits).await;
                self.clock.sleep(until.saturating_sub(self.clock.elapsed())).await;
            };
            tokio::select! {
                biased;
                answer = &mut waiting.answer => {
                    return answer.map_err(|_| ServerError::Unavailable { reason: "lost an answer" });
                }
                () = send => {}
                () = self.clock.sleep(end.saturating_sub(self.clock.elapsed())) => {}
            }
            pause *= 2;
        }
        tracing::warn!(commits = commits.len(), "no sync service has answered in time");
        Err(ServerError::Unavailable { reason: "has no sync service that answers" })
    }

    async fn send(&self, number: u64, commits: &[ProposedCommit]) {
        let mut link = self.link.clone();
        // An error says that the server stops.
        let Ok(Some(messenger)) = link.wait_for(Option::is_some).await.map(|found| found.clone())
        else {
            return;
        };
        let gateway = answers_topic(&messenger).to_string();
        let calls: Arc<dyn Calls> = Arc::new(messenger);
        let group = CommitGroup { number, gateway, commits: commits.to_vec() };
        if let Err(error) = SyncServiceProxy::new(calls).commit(group).await {
            tracing::debug!(%error, "commits were not taken by the queue");
        }
    }
}

/// Adds what waits to a group while there is room; returns one that has none.
async fn gather(group: &mut Vec<Packed>, jobs: &mut mpsc::Receiver<Job>) -> Option<Packed> {
    let mut length: usize = group.iter().map(|one| one.bytes.len()).sum();
    while group.len() < GROUP_MAX && length < GROUP_LENGTH_MAX {
        let packed = Packed::new(jobs.try_recv().ok()?).await;
        length += packed.bytes.len();
        if length > GROUP_LENGTH_MAX {
            return Some(packed);
        }
        group.push(packed);
    }
    None
}

fn read_all(replies: &[Blob], count: usize) -> Result<Vec<Reply>> {
    let unreadable = ServerError::Unavailable { reason: "was answered in another language" };
    let read = |reply: &Blob| match envelope::unwrap(&reply.0, REPLY_LENGTH_MAX) {
        Ok(ServerFrame::Reply { reply, .. }) => Ok(reply),
        _ => Err(unreadable.clone()),
    };
    let replies: Result<Vec<_>> = replies.iter().map(read).collect();
    replies.and_then(|replies| if replies.len() == count { Ok(replies) } else { Err(unreadable) })
}

#[cfg(test)]
mod tests;
