//! Hints, and the mailbox in which they wait: one at most, into which later ones merge.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::Stream;
use futures_util::task::AtomicWaker;
use model::RelativePath;
use parking_lot::Mutex;

use super::WatchWarning;

/// From this many directories on, a hint means everything.
pub(super) const DIRECTORIES_MAX: usize = 65_536;

/// Where something may have changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hint {
    /// Directories whose entries may have changed, each to be listed on its own. New directories are named with every
    /// directory in them; of a directory that was moved only the old and the new parent are sure to be.
    pub directories: BTreeSet<RelativePath>,
    /// Whether anything anywhere may have changed; then no directories are named.
    pub everything: bool,
}

impl Hint {
    /// Says that anything may have changed.
    pub fn everything() -> Self {
        Self { directories: BTreeSet::new(), everything: true }
    }

    /// Tells whether it says nothing.
    pub fn is_empty(&self) -> bool {
        self.directories.is_empty() && !self.everything
    }

    /// Takes in a later hint.
    pub fn merge(&mut self, later: Self) {
        self.directories.extend(later.directories);
        self.everything |= later.everything || self.directories.len() > DIRECTORIES_MAX;
        if self.everything {
            self.directories.clear();
        }
    }
}

/// Hints, for one taker. Between two takings they merge, and a taking that is given up loses nothing. They end when the
/// watcher is dropped.
#[derive(Debug)]
pub struct Hints {
    mailbox: Arc<Mailbox>,
}

impl Hints {
    pub(super) fn new(mailbox: Arc<Mailbox>) -> Self {
        Self { mailbox }
    }

    /// Takes what has been told since the last time, without waiting.
    pub fn take_now(&mut self) -> Option<Hint> {
        let hint = std::mem::take(&mut self.mailbox.state.lock().hint);
        (!hint.is_empty()).then_some(hint)
    }
}

impl Stream for Hints {
    type Item = Hint;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Hint>> {
        // To register first means that no hint between the look and the wait is missed.
        self.mailbox.waker.register(context.waker());
        if let Some(hint) = self.take_now() {
            return Poll::Ready(Some(hint));
        }
        if self.mailbox.state.lock().is_closed { Poll::Ready(None) } else { Poll::Pending }
    }
}

/// Where the watcher leaves its hints.
#[derive(Debug, Default)]
pub(super) struct Mailbox {
    state: Mutex<State>,
    waker: AtomicWaker,
}

#[derive(Debug, Default)]
struct State {
    hint: Hint,
    warning: Option<WatchWarning>,
    is_closed: bool,
}

impl Mailbox {
    pub(super) fn put(&self, hint: Hint) {
        if hint.is_empty() {
            return;
        }
        self.state.lock().hint.merge(hint);
        self.waker.wake();
    }

    pub(super) fn set_warning(&self, warning: Option<WatchWarning>) {
        self.state.lock().warning = warning;
    }

    pub(super) fn warning(&self) -> Option<WatchWarning> {
        self.state.lock().warning.clone()
    }

    pub(super) fn close(&self) {
        self.state.lock().is_closed = true;
        self.waker.wake();
    }
}
