//! What goes on after the answer: puts to slow stores, and what completes a decided slot.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::{BoxFuture, FutureExt, poll_fn};
use futures_util::stream::{FuturesUnordered, StreamExt};
use parking_lot::Mutex;

/// Work for whose end nobody waits. It goes on whenever something else of the same log waits for a store or a moment; what
/// never goes on is like a request that got lost. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Background(Arc<Mutex<Works>>);

/// A call to a store, which can still be told when nobody waits for its answer any more.
pub(super) struct Call<T> {
    pub(super) store: usize,
    pub(super) answer: BoxFuture<'static, T>,
}

impl<T> Future for Call<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        self.answer.poll_unpin(context)
    }
}

#[derive(Debug, Default)]
struct Works {
    /// Each ends with the name of its store.
    running: FuturesUnordered<BoxFuture<'static, String>>,
    /// How many there are at each store.
    counts: BTreeMap<String, usize>,
}

impl Background {
    /// Takes on work at a store.
    pub(super) fn add(&self, store: &str, work: BoxFuture<'static, ()>) {
        let mut works = self.0.lock();
        *works.counts.entry(store.to_owned()).or_default() += 1;
        let store = store.to_owned();
        works.running.push(work.map(|()| store).boxed());
    }

    /// Lets the work go on as far as it can; ready when what is left is at stores of which nobody expects anything.
    fn poll(&self, context: &mut Context<'_>, is_hopeless: impl Fn(&str) -> bool) -> Poll<()> {
        let mut works = self.0.lock();
        while let Poll::Ready(Some(store)) = works.running.poll_next_unpin(context) {
            if let Some(count) = works.counts.get_mut(&store) {
                *count -= 1;
            }
            works.counts.retain(|_, count| *count > 0);
        }
        match works.counts.keys().all(|store| is_hopeless(store)) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }

    /// Waits for `foreground`, and lets the work go on beside it.
    pub(super) async fn beside<T>(&self, foreground: impl Future<Output = T>) -> T {
        let mut foreground = std::pin::pin!(foreground);
        poll_fn(|context| {
            let result = foreground.as_mut().poll(context);
            if result.is_pending() {
                let _ = self.poll(context, |_| false);
            }
            result
        })
        .await
    }

    /// Waits until all work is done but that at stores of which nobody expects anything.
    pub(super) async fn finish(&self, is_hopeless: impl Fn(&str) -> bool) {
        poll_fn(|context| self.poll(context, &is_hopeless)).await;
    }
}
