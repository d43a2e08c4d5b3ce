//! Tells whoever keeps the log when this device is fully in sync, so that those who run a server see which devices are not.

use std::time::Duration;

use super::{Engine, SyncReport};
use crate::scan::ProblemKind;

/// How long the log is not told again by runs that follow each other.
pub(super) const TELL_AFTER: Duration = Duration::from_secs(60);

/// After how long a watch that has nothing to do tells it again.
pub(super) const TELL_AGAIN_AFTER: Duration = Duration::from_secs(300);

/// Tells whether folder and log are equal after this run. A pipe or a socket has nothing in it that could be synced.
pub(super) fn leaves_nothing(report: &SyncReport) -> bool {
    report.kept_back.is_empty()
        && report.problems.iter().all(|problem| problem.kind == ProblemKind::NotAFile)
}

impl Engine {
    /// Tells the log that folder and log are equal, if they are and it was not told within `pause`. Nobody's file depends on it, so
    /// nothing fails where it cannot be told.
    pub(super) async fn tell_in_sync(&mut self, pause: Duration) {
        if self.until_telling(pause) != Some(Duration::ZERO) {
            return;
        }
        self.told_in_sync_at = Some(self.environment.clock.elapsed());
        let _ = self.environment.log.tell_in_sync().await;
    }

    /// Returns how long it is until the log is to be told again, if there is anything to tell.
    pub(super) fn until_telling(&self, pause: Duration) -> Option<Duration> {
        let since = |told: Duration| self.environment.clock.elapsed().saturating_sub(told);
        let rest = |told| pause.saturating_sub(since(told));
        (self.is_in_sync && !self.lets_wait())
            .then(|| self.told_in_sync_at.map_or(Duration::ZERO, rest))
    }
}
