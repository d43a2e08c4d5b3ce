//! Threads that may block: where requests ask the database, read packs, hash and compress.
//!
//! A runtime's own threads must not wait, so each such piece of work goes to another thread and comes back, which takes longer than
//! most of the pieces. A request of many pieces therefore goes there as a whole ([`Threads::whole`]), and its pieces stay where it is. While it
//! waits for somebody it has no thread, and the next one when it goes on; the answer of the writer, on which little follows, is taken in the runtime.
//! *Invariants*: what blocks never does so on a thread of the runtime; whole requests never take all threads, because pieces that
//! must run beside them need some.

use std::sync::Arc;

use storage::blocking::{MayBlock, may_block};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use crate::error::{Result, ServerError};
use crate::limits::BODY_WAIT_TIMEOUT;

mod errand;

pub(crate) use errand::only_little_follows;

/// How many requests are worked at as a whole at once; each has at most one of the 512 threads that the runtime has for all that blocks.
const WHOLE_MAX: usize = 64;

/// Does a piece of work that may block, or waits for futures ([`wait`], and what drives a database elsewhere): here where this thread may, else
/// on one that may.
///
/// # Errors
/// [`ServerError::Unavailable`] where the server stops, or the work panicked on the other thread.
pub(crate) async fn piece<T: Send + 'static>(
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
    done.map_err(|_| ServerError::STOPPING)
}

/// Waits for a future on a thread that may block, so that its pieces stay on it. Not to be called from inside of a future.
pub(crate) fn wait<F: Future>(runtime: &Handle, future: F) -> F::Output {
    let _mark = MayBlock::here();
    runtime.block_on(future)
}

/// Does what must not end half-way where whoever asked closes the connection meanwhile: a change, what others are told of it, and its line
/// of the audit log.
///
/// # Errors
/// Those of `work`; [`ServerError::Unavailable`] where the server stops.
pub(crate) async fn to_the_end<T: Send + 'static>(
    work: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    tokio::spawn(work).await.unwrap_or(Err(ServerError::STOPPING))
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
    /// Runs a request on threads that may block. It runs to its end, also where nobody waits for it any more; what waits for the other
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
        to_the_end(async move {
            let _held = permit;
            errand::run(request).await
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
    async fn pieces_of_a_whole_request_stay_where_it_is_and_may_wait_for_futures_in_each_other() {
        let nested = async {
            let runtime = Handle::current();
            let around = current().id();
            // What reads a database elsewhere drives a runtime of its own.
            let own = || tokio::runtime::Builder::new_current_thread().build().unwrap();
            let innermost = piece(move || own().block_on(async { current().id() }));
            let inside = move || (current().id(), wait(&runtime, innermost));
            (around, piece(inside).await.unwrap(), of_piece().await)
        };
        let (around, (inside, innermost), behind) = Threads::default().whole(nested).await.unwrap();
        assert_eq!([inside, innermost.unwrap(), behind], [around; 3]);
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
    async fn a_request_that_waits_goes_on_where_it_may_block_but_where_only_little_follows() {
        let threads = Threads::default();
        let here = current().id();
        for little_follows in [false, true] {
            let (answer, answered) = tokio::sync::oneshot::channel();
            let (polled, was_polled) = std::sync::mpsc::channel();
            let waiting = threads.whole(async move {
                let before = (current().id(), may_block());
                if little_follows {
                    only_little_follows();
                }
                let mut answered = std::pin::pin!(answered);
                let answer = std::future::poll_fn(|context| {
                    let answer = answered.as_mut().poll(context);
                    // From here on it is to be woken up.
                    let _ = polled.send(());
                    answer
                });
                answer.await.unwrap();
                let behind = (current().id(), may_block());
                // Whatever it does then, it may block from there on.
                tokio::task::yield_now().await;
                (before, behind, may_block(), of_piece().await)
            });
            let answering = threads.whole(async move {
                was_polled.recv().unwrap();
                answer.send(()).unwrap();
            });
            let (waited, answered) = tokio::join!(waiting, answering);
            let (before, behind, may_block, piece) = waited.unwrap();
            assert!(before.0 != here && before.1);
            assert_eq!((behind.0 == here, behind.1), (little_follows, !little_follows));
            assert!(may_block && piece != here);
            answered.unwrap();
        }
    }

    #[tokio::test]
    async fn a_request_that_is_woken_up_before_it_is_back_goes_on() {
        let threads = Threads::default();
        for round in 0..200 {
            let (answer, answered) = tokio::sync::oneshot::channel();
            let request = async move {
                let mut answer = Some(answer);
                let mut answered = std::pin::pin!(answered);
                std::future::poll_fn(|context| {
                    let polled = answered.as_mut().poll(context);
                    // From here on it is to be woken up, and it is still on this thread.
                    if let Some(answer) = answer.take() {
                        answer.send(round).unwrap();
                        std::thread::sleep(std::time::Duration::from_micros(round % 7 * 50));
                    }
                    polled
                })
                .await
            };
            let long = std::time::Duration::from_secs(30);
            let answer = tokio::time::timeout(long, threads.whole(request)).await;
            assert_eq!(answer.expect("it goes on").unwrap().unwrap(), round);
        }
    }

    #[tokio::test]
    async fn a_request_goes_on_to_its_end_where_nobody_waits_for_it() {
        let (begin, begun) = tokio::sync::oneshot::channel();
        let (end, ended) = tokio::sync::oneshot::channel();
        let threads = Threads::default();
        let request = threads.whole(async move {
            let going_on = begun.await;
            end.send(going_on.is_ok()).unwrap();
        });
        let given_up = std::time::Duration::from_millis(20);
        assert!(tokio::time::timeout(given_up, request).await.is_err());
        begin.send(()).unwrap();
        assert!(ended.await.unwrap());
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
