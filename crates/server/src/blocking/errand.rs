//! A future that is polled on threads that may block, and is with its task in between.
//!
//! Each time that it is woken up it goes to such a thread, but where it has said that only a little follows on what it waits for
//! ([`only_little_follows`]): then it is polled where its task is, and no thread is woken up for that.
//! *Invariants*: one alone polls it at any time; whoever is to wake it meanwhile wakes its task, and so it is polled again once it is back;
//! it comes back quietly where it waits, since what it waits for will wake the task anyway.

use std::cell::Cell;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;
use storage::blocking::MayBlock;

use crate::error::{Result, ServerError};

thread_local! {
    static LITTLE_FOLLOWS: Cell<bool> = const { Cell::new(false) };
}

/// Says, in a future that is on an errand, that a little is to be done when it is woken up next, and nothing that blocks.
pub(crate) fn only_little_follows() {
    LITTLE_FOLLOWS.set(true);
}

/// Runs a future on threads that may block.
///
/// # Errors
/// [`crate::ServerError::Unavailable`] where the server stops, or the future panicked on another thread.
pub(super) async fn run<F>(future: F) -> Result<F::Output>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    let mut future = Box::pin(future);
    loop {
        match send(future).await {
            Back::Done(output) => return Ok(output),
            Back::Lost => return Err(ServerError::STOPPING),
            Back::Waits { future: back, little_follows } => {
                future = back;
                if little_follows && let Some(output) = poll_until_woken(&mut future).await {
                    return Ok(output);
                }
            }
        }
    }
}

/// Sends a future on an errand. It is back when it is done, or when it waits and was woken up.
async fn send<F>(future: Pin<Box<F>>) -> Back<F>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    let mut ready = Some(future);
    let place = Arc::new(Mutex::new(Place::Taken));
    std::future::poll_fn(|context| {
        if let Some(future) = ready.take() {
            let waker = context.waker().clone();
            *place.lock() = Place::Away { waker: waker.clone(), was_asked: false };
            let errand = Errand(Arc::clone(&place));
            tokio::task::spawn_blocking(move || errand.go(future, &waker));
            return Poll::Pending;
        }
        place.lock().ask(context.waker())
    })
    .await
}

/// Polls a future once, here; returns nothing as soon as it is woken up again.
async fn poll_until_woken<F: Future>(future: &mut Pin<Box<F>>) -> Option<F::Output> {
    let mut was_polled = false;
    std::future::poll_fn(|context| match std::mem::replace(&mut was_polled, true) {
        false => future.as_mut().poll(context).map(Some),
        true => Poll::Ready(None),
    })
    .await
}

/// Where a future is.
enum Place<F: Future> {
    Away {
        waker: Waker,
        /// Whether somebody has asked for it meanwhile, and is to be woken.
        was_asked: bool,
    },
    Back(Back<F>),
    Taken,
}

/// How a future came back.
enum Back<F: Future> {
    Done(F::Output),
    Waits { future: Pin<Box<F>>, little_follows: bool },
    Lost,
}

impl<F: Future> Place<F> {
    /// Takes what is back, or is told when it is.
    fn ask(&mut self, by: &Waker) -> Poll<Back<F>> {
        if let Self::Away { waker, was_asked } = self {
            waker.clone_from(by);
            *was_asked = true;
            return Poll::Pending;
        }
        Poll::Ready(match std::mem::replace(self, Self::Taken) {
            Self::Back(back) => back,
            Self::Away { .. } | Self::Taken => Back::Lost,
        })
    }
}

/// A future's way there and back. Where it ends before it is back, the future is lost.
struct Errand<F: Future>(Arc<Mutex<Place<F>>>);

impl<F: Future> Errand<F> {
    fn go(self, mut future: Pin<Box<F>>, waker: &Waker) {
        LITTLE_FOLLOWS.set(false);
        let polled = {
            let _mark = MayBlock::here();
            future.as_mut().poll(&mut Context::from_waker(waker))
        };
        self.bring(match polled {
            Poll::Ready(output) => Back::Done(output),
            Poll::Pending => Back::Waits { future, little_follows: LITTLE_FOLLOWS.get() },
        });
    }

    fn bring(&self, back: Back<F>) {
        let is_awaited = !matches!(back, Back::Waits { .. });
        let before = std::mem::replace(&mut *self.0.lock(), Place::Back(back));
        if let Place::Away { waker, was_asked } = before
            && (is_awaited || was_asked)
        {
            waker.wake();
        }
    }
}

impl<F: Future> Drop for Errand<F> {
    fn drop(&mut self) {
        if matches!(*self.0.lock(), Place::Away { .. }) {
            self.bring(Back::Lost);
        }
    }
}
