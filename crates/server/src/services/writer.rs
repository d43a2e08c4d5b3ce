//! The one thread that writes: it takes everything that waits and does it in one transaction.
//!
//! Commits of a group are read, decided and written together ([`sync_service::commit_all`]), after everything else in it:
//! none of it was answered yet, so nobody can tell, and commits stay in the order in which they came.
//!
//! While the disk flushes one group, the next one gathers, so the busier the server, the larger the groups. Answers
//! and events leave in the order of the log.

use std::sync::Arc;
use std::thread::JoinHandle;

use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};

use crate::error::{Result, ServerError};
use crate::metadata::Metadata;
use crate::metrics::Groups;
use crate::services::batch;
use crate::services::sync_service::{self, CommitRequest, Committed};

/// How many requests wait at most; more make their senders wait.
const QUEUE_MAX: usize = 8192;

/// How many requests share a transaction at most. Commits to one workspace change the same pages of the database, so a busy server does four
/// times as many of them in one transaction for twice the work.
const GROUP_MAX: usize = 4096;

/// What to do with an outcome once it is durable.
type Finish<T> = Box<dyn FnOnce(Result<T>) + Send>;

/// A request in the queue.
enum Job {
    Commit(Box<CommitRequest>, Finish<Committed>),
    Other(batch::Work<'static, ()>, Finish<()>),
}

/// The queue of the writing thread; cheap to clone. The thread ends when the last clone is dropped.
#[derive(Debug, Clone)]
pub struct Writer {
    queue: mpsc::Sender<Job>,
    groups: Arc<Groups>,
}

impl std::fmt::Debug for Job {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Commit(..) => "Commit",
            Self::Other(..) => "Other",
        })
    }
}

impl Writer {
    /// Starts the thread. Join it after dropping the last clone: then everything is written, and tidied up.
    ///
    /// # Errors
    /// [`ServerError::Unavailable`] where the system gives no thread.
    pub fn start(mut metadata: Box<dyn Metadata>) -> Result<(Self, JoinHandle<()>)> {
        let (queue, mut jobs) = mpsc::channel(QUEUE_MAX);
        let groups: Arc<Groups> = Arc::default();
        let counting = Arc::clone(&groups);
        let run = move || {
            while let Some(first) = jobs.blocking_recv() {
                let mut group = vec![first];
                while group.len() < GROUP_MAX
                    && let Ok(job) = jobs.try_recv()
                {
                    group.push(job);
                }
                counting.0.note(group.len() as u64);
                write(&mut *metadata, group);
            }
            if let Err(error) = metadata.flush() {
                tracing::warn!(%error, "the database could not be tidied up; it is safe nevertheless");
            }
        };
        let thread = std::thread::Builder::new().name("writer".to_owned()).spawn(run);
        let thread = thread
            .map_err(|_| ServerError::Unavailable { reason: "has no thread left to write with" })?;
        Ok((Self { queue, groups }, thread))
    }

    /// Returns how large the groups were so far.
    pub fn groups(&self) -> &Groups {
        &self.groups
    }

    /// Returns how many requests wait.
    pub fn waiting(&self) -> usize {
        QUEUE_MAX - self.queue.capacity()
    }

    /// Does `work` in the next transaction and returns its outcome when that is durable.
    ///
    /// # Errors
    /// Those of `work`, and of the transaction.
    pub async fn write<T: Send + 'static>(
        &self,
        work: impl FnMut(&mut dyn Metadata) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (answer, answered) = oneshot::channel();
        let answer = |outcome| drop(answer.send(outcome));
        self.submit(work, answer).await?;
        answered.await.unwrap_or(Err(ServerError::STOPPING))
    }

    /// Puts `work` into the queue, waiting only while that is full; `finish` hears the outcome, on the writing
    /// thread, so it must be quick. Work is done in the order in which it was put in.
    ///
    /// # Errors
    /// [`ServerError::Unavailable`] where the thread has ended.
    pub async fn submit<T: Send + 'static>(
        &self,
        mut work: impl FnMut(&mut dyn Metadata) -> Result<T> + Send + 'static,
        finish: impl FnOnce(Result<T>) + Send + 'static,
    ) -> Result<()> {
        let slot = Arc::new(Mutex::new(None));
        let filled = Arc::clone(&slot);
        let work = move |metadata: &mut dyn Metadata| {
            *slot.lock() = Some(work(metadata)?);
            Ok(())
        };
        let finish = move |outcome: Result<()>| {
            let value = filled.lock().take();
            let lost = ServerError::Unavailable { reason: "lost an answer" };
            finish(outcome.and_then(|()| value.ok_or(lost)));
        };
        self.send(Job::Other(Box::new(work), Box::new(finish))).await
    }

    /// Puts a commit into the queue, as [`Self::submit`] does with other work.
    ///
    /// # Errors
    /// [`ServerError::Unavailable`] where the thread has ended.
    pub async fn submit_commit(
        &self,
        request: CommitRequest,
        finish: impl FnOnce(Result<Committed>) + Send + 'static,
    ) -> Result<()> {
        self.send(Job::Commit(Box::new(request), Box::new(finish))).await
    }

    async fn send(&self, job: Job) -> Result<()> {
        self.queue.send(job).await.map_err(|_| ServerError::STOPPING)
    }
}

fn write(metadata: &mut dyn Metadata, group: Vec<Job>) {
    let (mut commits, mut works) = ((Vec::new(), Vec::new()), (Vec::new(), Vec::new()));
    for job in group {
        match job {
            Job::Commit(request, finish) => {
                commits.0.push(*request);
                commits.1.push(finish);
            }
            Job::Other(work, finish) => {
                works.0.push(work);
                works.1.push(finish);
            }
        }
    }
    if !works.0.is_empty() {
        finish_all(works.1, batch::run(metadata, works.0));
    }
    if !commits.0.is_empty() {
        finish_all(commits.1, sync_service::commit_all(metadata, commits.0));
    }
}

fn finish_all<T>(finishes: Vec<Finish<T>>, outcomes: Vec<Result<T>>) {
    for (finish, outcome) in finishes.into_iter().zip(outcomes) {
        finish(outcome);
    }
}
