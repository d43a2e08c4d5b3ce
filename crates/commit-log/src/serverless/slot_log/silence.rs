//! Which stores have said nothing when they were asked last: nobody waits for them again until they do.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;

/// The names of the stores that are silent; clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct Silence(Arc<Mutex<BTreeSet<String>>>);

impl Silence {
    /// Takes note that a store let others wait in vain.
    pub(super) fn begins(&self, name: &str) {
        self.0.lock().insert(name.to_owned());
    }

    /// Takes note of an answer.
    pub(super) fn ends(&self, name: &str) {
        self.0.lock().remove(name);
    }

    /// Returns whether a store was silent when it was asked last.
    pub(super) fn holds(&self, name: &str) -> bool {
        self.0.lock().contains(name)
    }

    /// Returns the stores that are silent.
    pub(super) fn names(&self) -> Vec<String> {
        self.0.lock().iter().cloned().collect()
    }
}
