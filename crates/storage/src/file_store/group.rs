//! Objects that wait to become durable together.

use parking_lot::{Mutex, MutexGuard};

use super::writer::Unfinished;
use crate::key::ObjectKey;

/// How many objects may wait; each holds a descriptor, and a process may have 1024 by default.
const WAITING_MAX: usize = 256;

/// The waiting objects of one handle.
#[derive(Debug, Default)]
pub(super) struct Group {
    waiting: Mutex<Vec<(ObjectKey, Unfinished)>>,
    turn: Mutex<()>,
}

impl Group {
    /// Adds an object and returns whether the group is full and must be synced now.
    pub(super) fn add(&self, key: ObjectKey, unfinished: Unfinished) -> bool {
        let mut waiting = self.waiting.lock();
        waiting.push((key, unfinished));
        waiting.len() >= WAITING_MAX
    }

    /// Takes out what waits.
    pub(super) fn take(&self) -> Vec<(ObjectKey, Unfinished)> {
        std::mem::take(&mut *self.waiting.lock())
    }

    /// Waits until no other sync of this handle runs.
    pub(super) fn take_turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock()
    }
}
