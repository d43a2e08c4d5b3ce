//! The one thread that writes: it takes everything that waits and does it in one transaction.
//!
//! While the disk flushes one group, the next one gathers, so the busier the server, the larger the groups. Answers
//! and events leave in the order of the log.

use std::sync::Arc;
use std::thread::JoinHandle;

use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};

use crate::error::{Result, ServerError};
use crate::metadata::Metadata;
use crate::services::batch;

/// How many requests wait at most; more make their senders wait.
const QUEUE_MAX: usize = 1024;

/// How many requests share a transaction at most.
const GROUP_MAX: usize = 256;

/// A request in the queue: its work, and what to do with the outcome once it is durable.
struct Job {
    work: batch::Work<'static, ()>,
    finish: Box<dyn FnOnce(Result<()>) + Send>,
}

/// The queue of the writing thread; cheap to clone. The thread ends when the last clone is dropped.
#[derive(Debug, Clone)]
pub struct Writer {
    queue: mpsc::Sender<Job>,
}

impl std::fmt::Debug for Job {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Job")
    }
}

impl Writer {
    /// Starts the thread. Join it after dropping the last clone: then everything is written, and tidied up.
    ///
    /// # Errors
    /// [`ServerError::Unavailable`] where the system gives no thread.
    pub fn start(mut metadata: impl Metadata + 'static) -> Result<(Self, JoinHandle<()>)> {
        let (queue, mut jobs) = mpsc::channel(QUEUE_MAX);
        let run = move || {
            while let Some(first) = jobs.blocking_recv() {
                let mut group = vec![first];
                while group.len() < GROUP_MAX
                    && let Ok(job) = jobs.try_recv()
                {
                    group.push(job);
                }
                write(&mut metadata, group);
            }
            if let Err(error) = metadata.flush() {
                tracing::warn!(%error, "the database could not be tidied up; it is safe nevertheless");
            }
        };
        let thread = std::thread::Builder::new().name("writer".to_owned()).spawn(run);
        let thread = thread
            .map_err(|_| ServerError::Unavailable { reason: "has no thread left to write with" })?;
        Ok((Self { queue }, thread))
    }

    /// Does `work` in the next transaction and returns its outcome when that is durable.
    ///
    /// # Errors
    /// Those of `work`, and of the transaction.
    pub async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut dyn Metadata) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (answer, answered) = oneshot::channel();
        let answer = |outcome| drop(answer.send(outcome));
        self.submit(work, answer).await?;
        answered.await.unwrap_or(Err(ServerError::Unavailable { reason: "is stopping" }))
    }

    /// Puts `work` into the queue, waiting only while that is full; `finish` hears the outcome, on the writing
    /// thread, so it must be quick. Work is done in the order in which it was put in.
    ///
    /// # Errors
    /// [`ServerError::Unavailable`] where the thread has ended.
    pub async fn submit<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut dyn Metadata) -> Result<T> + Send + 'static,
        finish: impl FnOnce(Result<T>) + Send + 'static,
    ) -> Result<()> {
        let slot = Arc::new(Mutex::new(None));
        let filled = Arc::clone(&slot);
        let job = Job {
            work: Box::new(move |metadata| {
                *slot.lock() = Some(work(metadata)?);
                Ok(())
            }),
            finish: Box::new(move |outcome| {
                let value = filled.lock().take();
                let lost = ServerError::Unavailable { reason: "lost an answer" };
                finish(outcome.and_then(|()| value.ok_or(lost)));
            }),
        };
        let stopping = ServerError::Unavailable { reason: "is stopping" };
        self.queue.send(job).await.map_err(|_| stopping)
    }
}

fn write(metadata: &mut dyn Metadata, group: Vec<Job>) {
    let (works, finishes): (Vec<_>, Vec<_>) =
        group.into_iter().map(|job| (job.work, job.finish)).unzip();
    let outcomes = batch::run(metadata, works);
    for (finish, outcome) in finishes.into_iter().zip(outcomes) {
        finish(outcome);
    }
}
