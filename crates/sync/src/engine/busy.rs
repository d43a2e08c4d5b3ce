//! Lets files wait that change again and again, since each version costs what is said about it, however little is new in it.
//!
//! *Goals*: a file that is saved now and then goes at once; one that changes every second goes every few seconds, with what is new since (the
//! adaptive sync defer of Li et al., "Towards network-level efficiency for cloud storage services", IMC 2014, section 6). *Non-goals*:
//! waiting until a file has come to rest: one that never does is sent all the same. *Invariants*: nobody waits longer than [`LONGEST`]; what
//! waits is only the content of a file that is where it was, and only in a watch: whoever asks for a sync gets all of it.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use model::{NodeId, RelativePath};

use super::Engine;
use crate::error::Result;
use crate::file_system::FileKind;
use crate::plan::{LocalMatter, split};
use crate::scan::Scope;

/// How long a file waits that has changed twice in a row; twice as long each time after.
const FIRST: Duration = Duration::from_secs(1);

/// The longest wait.
pub(super) const LONGEST: Duration = Duration::from_secs(10);

/// For how long after a file has gone, or might have, its next change is one in a row.
const IN_A_ROW: Duration = Duration::from_secs(3);

/// Of how many files it is known when they have gone: those that go with many others are not edited again and again.
const FILES_MAX: usize = 1024;

/// When files went that may change again soon, and which of them wait.
#[derive(Debug, Default)]
pub(super) struct BusyFiles {
    went: HashMap<NodeId, Went>,
    /// In which directories, and until when on the clock.
    waiting: BTreeMap<NodeId, (RelativePath, Duration)>,
}

/// That a file has gone to the log.
#[derive(Debug, Clone, Copy)]
struct Went {
    /// When, on the clock.
    at: Duration,
    /// How long its next version waits.
    wait: Duration,
}

impl Went {
    fn due(self) -> Duration {
        self.at + self.wait
    }
}

impl BusyFiles {
    /// Notes that files have gone to the log.
    pub(super) fn note(&mut self, nodes: impl IntoIterator<Item = NodeId>, now: Duration) {
        self.went.retain(|_, went| now <= went.due() + IN_A_ROW);
        for node in nodes {
            let wait = match self.went.get(&node) {
                Some(went) if went.wait.is_zero() => FIRST,
                Some(went) => (went.wait * 2).min(LONGEST),
                None if self.went.len() >= FILES_MAX => continue,
                None => Duration::ZERO,
            };
            self.went.insert(node, Went { at: now, wait });
        }
    }

    /// Returns the files that are not due, each with when it is.
    fn not_due(&self, now: Duration) -> Vec<(NodeId, Duration)> {
        let all = self.went.iter().map(|(node, went)| (*node, went.due()));
        all.filter(|(_, due)| *due > now).collect()
    }
}

impl Engine {
    /// Leaves the files out of this run that have changed again and must wait.
    pub(super) fn let_busy_wait(&mut self) -> Result<()> {
        let Some(busy) = &mut self.busy else { return Ok(()) };
        // A run may look twice.
        for node in std::mem::take(&mut busy.waiting).into_keys() {
            self.skipped.remove(&node);
        }
        for (node, due) in busy.not_due(self.environment.clock.elapsed()) {
            let Some(directory) = self.edited_in(&node)? else { continue };
            self.skipped.insert(node);
            if let Some(busy) = &mut self.busy {
                busy.waiting.insert(node, (directory, due));
            }
        }
        Ok(())
    }

    /// Returns the directory of a file of which nothing but the content has changed, as far as anybody has looked.
    fn edited_in(&self, node: &NodeId) -> Result<Option<RelativePath>> {
        let Some(found) = self.overlay.get(node) else { return Ok(None) };
        if found.stat.kind != FileKind::File || found.local.matter != LocalMatter::Touched {
            return Ok(None);
        }
        let row = self.state.synced(node)?;
        if row.is_none_or(|row| split(&row.record).0 != found.local.place) {
            return Ok(None);
        }
        let path = self.trees().local_path(node)?;
        Ok(path.and_then(|path| path.split_last()).map(|(directory, _)| directory))
    }

    /// Tells whether any file waits.
    pub(super) fn lets_wait(&self) -> bool {
        self.busy.as_ref().is_some_and(|busy| !busy.waiting.is_empty())
    }

    /// Tells whether a run has nothing to do but to let files wait: then the log is not asked either, which tells by itself what is new.
    pub(super) fn only_waits(&self, scope: &Scope) -> Result<bool> {
        let is_part = matches!(scope, Scope::Directories(_));
        Ok(is_part
            && self.lets_wait()
            && self.differing()?.is_empty()
            && self.state.outbox()?.is_empty())
    }

    /// Returns how long it is until the first file that waits is due, where any does.
    pub(super) fn until_due(&self) -> Option<Duration> {
        let due = self.busy.as_ref()?.waiting.values().map(|(_, due)| *due).min()?;
        Some(due.saturating_sub(self.environment.clock.elapsed()))
    }

    /// Has a scan look for those that are due, too: they may look otherwise by now.
    pub(super) fn with_due(&self, scope: Scope) -> Scope {
        let now = self.environment.clock.elapsed();
        let waiting = self.busy.iter().flat_map(|busy| busy.waiting.values());
        let due = waiting.filter(|(_, due)| *due <= now).map(|(directory, _)| directory.clone());
        match scope {
            Scope::Everything => Scope::Everything,
            Scope::Directories(directories) => {
                Scope::Directories(directories.into_iter().chain(due).collect())
            }
        }
    }
}

#[cfg(test)]
mod tests;
