//! What goes on after the answer: puts to slow stores, and what completes a decided slot.

use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::{BoxFuture, poll_fn};
use futures_util::stream::{FuturesUnordered, StreamExt};
use parking_lot::Mutex;

/// Work for whose end nobody waits. It goes on whenever something else of the same log waits for a store or a moment; what
/// never goes on is like a request that got lost. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Background(Arc<Mutex<FuturesUnordered<BoxFuture<'static, ()>>>>);

impl Background {
    /// Takes on work.
    pub(super) fn add(&self, work: BoxFuture<'static, ()>) {
        self.0.lock().push(work);
    }

    /// Lets the work go on as far as it can.
    fn poll(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut work = self.0.lock();
        while let Poll::Ready(done) = work.poll_next_unpin(context) {
            if done.is_none() {
                return Poll::Ready(());
            }
        }
        Poll::Pending
    }

    /// Waits for `foreground`, and lets the work go on beside it.
    pub(super) async fn beside<T>(&self, foreground: impl Future<Output = T>) -> T {
        let mut foreground = std::pin::pin!(foreground);
        poll_fn(|context| {
            let result = foreground.as_mut().poll(context);
            if result.is_pending() {
                let _ = self.poll(context);
            }
            result
        })
        .await
    }

    /// Waits until all work is done.
    pub(super) async fn finish(&self) {
        poll_fn(|context| self.poll(context)).await;
    }
}
