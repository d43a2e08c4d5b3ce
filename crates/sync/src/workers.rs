//! Threads for work that takes the processor: chunking, compressing, decompressing, writing files.
//!
//! Without threads the work runs where it is asked for, so that the seeded world stays in one order.

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;

type Job = Box<dyn FnOnce() + Send>;

/// A pool of threads, or none.
#[derive(Debug, Clone)]
pub struct Workers {
    jobs: Option<Sender<Job>>,
    count: usize,
}

impl Workers {
    /// Starts `count` threads; they end when the last handle of the pool is dropped.
    pub fn start(count: usize) -> Self {
        let (sender, receiver) = channel::<Job>();
        let receiver = Arc::new(Mutex::new(receiver));
        for _ in 0..count {
            let receiver = receiver.clone();
            std::thread::spawn(move || {
                loop {
                    let job = receiver.lock().recv();
                    match job {
                        Ok(job) => job(),
                        Err(_) => return,
                    }
                }
            });
        }
        Self { jobs: (count > 0).then_some(sender), count: count.max(1) }
    }

    /// Returns a pool that runs everything at once and in place.
    pub fn inline() -> Self {
        Self { jobs: None, count: 1 }
    }

    /// Returns how many jobs run at the same time.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Tells whether jobs run in place.
    pub fn is_inline(&self) -> bool {
        self.jobs.is_none()
    }

    /// Runs a job. It begins now, whether or not the answer is awaited.
    ///
    /// # Panics
    /// Where the job panics.
    pub fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> BoxFuture<'static, T> {
        let Some(jobs) = &self.jobs else {
            return futures_util::future::ready(job()).boxed();
        };
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let sent = jobs.send(Box::new(move || drop(sender.send(job()))));
        assert!(sent.is_ok(), "the threads outlive the pool");
        receiver.map(|answer| answer.expect("a job gives its answer")).boxed()
    }
}
