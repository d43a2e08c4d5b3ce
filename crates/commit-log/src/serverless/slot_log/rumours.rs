//! What single stores say of entries and checkpoints before enough of them have answered to know.
//!
//! *Goals*: whoever can use it begins at once with what does no harm where it is wrong. *Non-goals*: truth; nothing is
//! decided here. *Invariant*: at most [`WAITING_MAX`] rumours wait, and none where nobody listens.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use futures_util::stream::{StreamExt, poll_fn};
use model::Entry;
use parking_lot::Mutex;

use super::bell::Bell;
use crate::commit_log::{Rumour, RumourStream};

/// How many rumours wait for a listener; later ones are lost.
const WAITING_MAX: usize = 16;

/// How many rumours are remembered, so that what all stores say is told once.
const TOLD_MAX: usize = 16;

/// Passes on what is heard.
#[derive(Debug, Default)]
pub(super) struct Rumours {
    /// The newest slot of which a store has said that it holds something.
    slot: AtomicU64,
    heard: Mutex<Heard>,
    bell: Bell,
}

#[derive(Debug, Default)]
struct Heard {
    listeners: usize,
    waiting: VecDeque<Rumour>,
    told: VecDeque<Rumour>,
}

impl Rumours {
    /// Hears from a store that somebody has proposed an entry.
    pub(super) fn hear_of(&self, entry: Arc<Entry>) {
        self.slot.fetch_max(entry.seq, Ordering::Relaxed);
        self.hear(Rumour::Entry(entry));
    }

    /// Hears anything.
    pub(super) fn hear(&self, rumour: Rumour) {
        {
            let mut heard = self.heard.lock();
            let is_old = heard.told.contains(&rumour);
            if heard.listeners == 0 || is_old || heard.waiting.len() >= WAITING_MAX {
                return;
            }
            heard.told.push_back(rumour.clone());
            if heard.told.len() > TOLD_MAX {
                heard.told.pop_front();
            }
            heard.waiting.push_back(rumour);
        }
        self.bell.ring();
    }

    /// Tells whether a store has said that this slot holds something, or one after it.
    pub(super) fn reach(&self, slot: u64) -> bool {
        self.slot.load(Ordering::Relaxed) >= slot
    }

    /// Forgets what an earlier look has heard of a slot and those after it.
    pub(super) fn forget_from(&self, slot: u64) {
        // Where another look hears of it at the same time, what is lost is a hint.
        self.slot.fetch_min(slot.saturating_sub(1), Ordering::Relaxed);
    }

    /// Listens until the stream is dropped.
    pub(super) fn listen(self: &Arc<Self>) -> RumourStream {
        self.heard.lock().listeners += 1;
        let listener = Listener(self.clone());
        poll_fn(move |context| listener.poll(context)).boxed()
    }
}

struct Listener(Arc<Rumours>);

impl Listener {
    fn poll(&self, context: &mut Context<'_>) -> Poll<Option<Rumour>> {
        let Self(rumours) = self;
        let is_any = || !rumours.heard.lock().waiting.is_empty();
        match rumours.bell.poll(context, is_any) {
            Poll::Ready(()) => match rumours.heard.lock().waiting.pop_front() {
                Some(rumour) => Poll::Ready(Some(rumour)),
                // Another listener was quicker, and its bell will ring again.
                None => Poll::Pending,
            },
            Poll::Pending => Poll::Pending,
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut heard = self.0.heard.lock();
        heard.listeners -= 1;
        if heard.listeners == 0 {
            heard.waiting.clear();
            heard.told.clear();
        }
    }
}
