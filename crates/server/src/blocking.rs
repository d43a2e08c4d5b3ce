//! Threads that may block: where requests ask the database, read packs, hash and compress.
//!
//! A runtime's own threads must not wait, so each such piece of work goes to another thread and comes back, which takes longer than
//! most of the pieces. A request of many pieces therefore goes there as a whole, once ([`Threads::whole`]), and its pieces stay where it is.
//! *Invariants*: what blocks never does so on a thread of the runtime; whole requests never take all threads, because pieces that
//! must run beside them need some.

use std::sync::Arc;

use storage::blocking::{MayBlock, may_block};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use crate::error::{Result, ServerError};
use crate::limits::BODY_WAIT_TIMEOUT;

/// How many requests have a thread as a whole at once, of the 512 threads that the runtime has for all that blocks.
const WHOLE_MAX: usize = 64;

/// Said to who asks for something that is not begun any more.
pub(crate) const STOPPING: ServerError = ServerError::Unavailable { reason: "is stopping" };

/// Does a piece of work that may block: here where this thread may, else on one that may.
///
/// # Errors
/// [`ServerError::Unavailable`] where the server stops, or the work panicked on the other thread.
pub(crate) async fn piece<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    match may_block() {
        true => Ok(work()),
        false => beside(work).await,
    }
}

/// Does work that waits for futures ([`wait`]): here where this thread may block, else on one that may.
///
/// # Errors
/// As [`piece`].
pub(crate) async fn stretch<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    match may_block() {
        // Until it is done this thread counts as one that is not inside of a future.
        true => Ok(tokio::task::block_in_place(work)),
        false => beside(work).await,
    }
}

/// Does work that may block on another thread, whatever this one may.
///
/// # Errors
/// As [`piece`].
pub(crate) async fn beside<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| STOPPING)
}

/// Waits for a future on a thread that may block, so that its pieces stay on it. Not to be called from inside of a future.
pub(crate) fn wait<F: Future>(runtime: &Handle, future: F) -> F::Output {
    let _mark = MayBlock::here();
    runtime.block_on(future)
}

/// What whole requests share; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Threads(Arc<Semaphore>);

impl Default for Threads {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(WHOLE_MAX)))
    }
}

impl Threads {
    /// Runs a request on one thread that may block. It runs to its end, also where nobody waits for it any more; what waits for the other
    /// side, as for a body, must be done with before.
    ///
    /// # Errors
    /// [`ServerError::Unavailable`] where too many others are at work for too long; as [`piece`].
    pub(crate) async fn whole<F>(&self, request: F) -> Result<F::Output>
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        let permit = Arc::clone(&self.0).acquire_owned();
        let Ok(Ok(permit)) = tokio::time::timeout(BODY_WAIT_TIMEOUT, permit).await else {
            return Err(ServerError::Unavailable { reason: "works for too many others" });
        };
        let runtime = Handle::current();
        beside(move || {
            let _held = permit;
            wait(&runtime, request)
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use std::thread::{ThreadId, current};

    use super::*;

    async fn of_piece() -> ThreadId {
        piece(|| current().id()).await.unwrap()
    }

    #[tokio::test]
    async fn a_piece_leaves_the_thread_of_the_runtime_and_stays_on_one_that_may_block() {
        let here = current().id();
        assert_ne!(of_piece().await, here);
        let (around, inside) =
            Threads::default().whole(async { (current().id(), of_piece().await) }).await.unwrap();
        assert_ne!(around, here);
        assert_eq!(inside, around);
        assert_ne!(of_piece().await, here, "the mark went with the request");
    }

    #[tokio::test]
    async fn what_runs_beside_a_whole_request_may_wait_for_futures() {
        let nested = async {
            let runtime = Handle::current();
            beside(move || wait(&runtime, async { (current().id(), of_piece().await) })).await
        };
        let (around, inside) = Threads::default().whole(nested).await.unwrap().unwrap();
        assert_eq!(inside, around);
    }

    #[tokio::test]
    async fn a_stretch_of_a_whole_request_stays_where_it_is_and_may_wait_for_futures() {
        let nested = async {
            let runtime = Handle::current();
            let around = current().id();
            let inside = move || (current().id(), wait(&runtime, of_piece()));
            (around, stretch(inside).await.unwrap(), of_piece().await)
        };
        let (around, (inside, innermost), behind) = Threads::default().whole(nested).await.unwrap();
        assert_eq!([inside, innermost, behind], [around; 3]);
        assert_ne!(stretch(|| current().id()).await.unwrap(), current().id());
    }

    #[tokio::test]
    async fn a_panic_is_told_and_takes_neither_the_mark_nor_the_permit() {
        let threads = Threads(Arc::new(Semaphore::new(1)));
        let broken = threads.whole(async { panic!("on purpose") }).await;
        assert!(matches!(broken, Err::<(), _>(ServerError::Unavailable { .. })));
        for _ in 0..4 {
            assert_ne!(of_piece().await, current().id());
        }
        assert_eq!(threads.whole(async { 7 }).await.unwrap(), 7);
    }

    #[tokio::test]
    async fn more_requests_than_threads_come_one_after_the_other() {
        let threads = Threads(Arc::new(Semaphore::new(2)));
        let most = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let now = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let requests = (0..20).map(|number| {
            let (threads, most, now) = (threads.clone(), Arc::clone(&most), Arc::clone(&now));
            async move {
                let request = async move {
                    use std::sync::atomic::Ordering::SeqCst;
                    most.fetch_max(now.fetch_add(1, SeqCst) + 1, SeqCst);
                    piece(std::thread::yield_now).await.unwrap();
                    tokio::task::yield_now().await;
                    now.fetch_sub(1, SeqCst);
                    number
                };
                threads.whole(request).await.unwrap()
            }
        });
        let done = futures_util::future::join_all(requests).await;
        assert_eq!(done, (0..20).collect::<Vec<_>>());
        assert!(most.load(std::sync::atomic::Ordering::SeqCst) <= 2);
    }
}
