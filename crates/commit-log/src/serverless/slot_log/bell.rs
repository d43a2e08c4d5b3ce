//! Wakes those who wait for news when this device hears of some by itself.

use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

/// Rings for everybody who waits.
#[derive(Debug, Default)]
pub(super) struct Bell(Mutex<Vec<Waker>>);

impl Bell {
    /// Wakes all who wait.
    pub(super) fn ring(&self) {
        let wakers = std::mem::take(&mut *self.0.lock());
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Is ready when `is_it` holds; looked at anew whenever the bell rings.
    pub(super) fn poll(&self, context: &mut Context<'_>, is_it: impl Fn() -> bool) -> Poll<()> {
        {
            let mut wakers = self.0.lock();
            if !wakers.iter().any(|waker| waker.will_wake(context.waker())) {
                wakers.push(context.waker().clone());
            }
        }
        // After that, so that what happens in between is not missed.
        if is_it() { Poll::Ready(()) } else { Poll::Pending }
    }
}
