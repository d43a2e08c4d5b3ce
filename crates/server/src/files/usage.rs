//! What a workspace holds and what of it came on which day: counted when somebody asks, kept until the log goes on.
//!
//! *Invariants*: one count at a time on this server, in steps of [`STEP_NODES`] between which others read and write the workspace; of the
//! log the newest entries are looked at ([`DayScan`]), and after that those that are new. A count that took long is told again for
//! [`PAUSE_FACTOR`] times as long, though the workspace has changed, and so it is to who has asked for too many.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use content::places::PackTotals;
use model::{Head, WorkspaceId};
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::views::Reading;
use crate::app::App;
use crate::auth::Caller;
use crate::blocking;
use crate::error::{Result, ServerError};
use crate::limits::{BODY_WAIT_TIMEOUT, ENTRIES_LENGTH_MAX, VIEWS_MAX};
use crate::metadata::{Metadata, WorkspaceRecord};
use crate::services::authorisation::Right;
use crate::services::files::days::{DayScan, Days, SECONDS_OF_DAY};
use crate::services::files::usage::{FileUsage, UsageCount};
use crate::services::{sync_service, workspaces};

/// How many nodes are counted before others have their turn.
const STEP_NODES: usize = 20_000;

/// How many packs that nobody has looked into are looked into for a count; where there are more, it is done without.
const UNINDEXED_MAX: usize = 1_024;

/// How many times as long as it took a count is told again.
const PAUSE_FACTOR: u32 = 10;

/// What a workspace holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Usage {
    /// Up to which entry of the log it was looked at.
    pub head: Head,
    /// Its files; nothing where the server cannot read them.
    pub files: Option<(FileUsage, PackTotals)>,
    /// How much came on which day.
    pub days: Days,
}

/// What was counted last, those that were asked for last at the end.
#[derive(Debug)]
pub(super) struct Usages {
    kept: Mutex<VecDeque<(WorkspaceId, Kept)>>,
    turn: Semaphore,
}

#[derive(Debug, Clone)]
struct Kept {
    usage: Arc<Usage>,
    /// Until when it is told whatever has changed, by [`model::Clock::elapsed`].
    holds_until: Duration,
}

impl Default for Usages {
    fn default() -> Self {
        Self { kept: Mutex::default(), turn: Semaphore::new(1) }
    }
}

impl Usages {
    fn get(&self, workspace: WorkspaceId) -> Option<Kept> {
        let kept = self.kept.lock();
        kept.iter().find(|(other, _)| *other == workspace).map(|(_, kept)| kept.clone())
    }

    fn keep(&self, workspace: WorkspaceId, new: Kept) {
        let mut kept = self.kept.lock();
        kept.retain(|(other, _)| *other != workspace);
        kept.push_back((workspace, new));
        if kept.len() > VIEWS_MAX {
            kept.pop_front();
        }
    }
}

impl App {
    /// Returns what a workspace holds, and how many bytes of it count towards the quota of its owner.
    ///
    /// # Errors
    /// [`ServerError::NotFound`] where the workspace is not the caller's; [`ServerError::RateLimited`] and
    /// [`ServerError::Unavailable`] where too much is to be counted; as [`Self::view`].
    pub async fn usage(
        &self,
        caller: Caller,
        workspace: WorkspaceId,
    ) -> Result<(WorkspaceRecord, Arc<Usage>)> {
        let found = self.opened(caller, workspace).await?;
        if let Some(usage) = self.counted(&found) {
            return Ok((found, usage));
        }
        let taken = self.counts_per_account.take(caller.account, self.clock.elapsed());
        if let Err(wait) = taken {
            let kept = self.files.usages.get(workspace).map(|kept| kept.usage);
            return kept.map(|usage| (found, usage)).ok_or_else(|| ServerError::limited(wait));
        }
        let turn = self.files.usages.turn.acquire();
        let Ok(Ok(_turn)) = tokio::time::timeout(BODY_WAIT_TIMEOUT, turn).await else {
            return Err(ServerError::Unavailable { reason: "counts for too many others" });
        };
        // Who had the turn before may have counted the same.
        let found = self.opened(caller, workspace).await?;
        if let Some(usage) = self.counted(&found) {
            return Ok((found, usage));
        }
        let began = self.clock.elapsed();
        let usage = Arc::new(self.count(caller, &found).await?);
        let ended = self.clock.elapsed();
        let holds_until = ended + ended.saturating_sub(began) * PAUSE_FACTOR;
        self.files.usages.keep(workspace, Kept { usage: Arc::clone(&usage), holds_until });
        Ok((found, usage))
    }

    async fn opened(&self, caller: Caller, workspace: WorkspaceId) -> Result<WorkspaceRecord> {
        let open = move |metadata: &dyn Metadata| {
            workspaces::open(metadata, &caller, workspace, Right::Read)
        };
        self.readers.read(open).await
    }

    /// Returns what is kept, if it still holds.
    fn counted(&self, found: &WorkspaceRecord) -> Option<Arc<Usage>> {
        let kept = self.files.usages.get(found.id)?;
        let holds = kept.usage.head == found.head || self.clock.elapsed() < kept.holds_until;
        holds.then_some(kept.usage)
    }

    async fn count(&self, caller: Caller, found: &WorkspaceRecord) -> Result<Usage> {
        let reading = self.let_in(caller, found.id, Right::Read).await?;
        let files = match workspaces::is_sealed(found) {
            true => None,
            false => Some(self.count_files(reading).await?),
        };
        let (head, files) = match files {
            Some((head, usage, packs)) => (head, Some((usage, packs))),
            None => (found.head, None),
        };
        let days = self.count_days(reading, head).await?;
        Ok(Usage { head, files, days })
    }

    async fn count_files(&self, reading: Reading) -> Result<(Head, FileUsage, PackTotals)> {
        let Reading { caller, workspace, .. } = reading;
        let view = self.view(caller, workspace).await?;
        let (mut count, unindexed) = (UsageCount::new(&view), view.places().unindexed().len());
        drop(view);
        // Who reads a file first does the same.
        if (1..=UNINDEXED_MAX).contains(&unindexed) {
            self.index_packs(reading).await?;
        }
        loop {
            let view = self.view(caller, workspace).await?;
            let step = move || {
                let is_end = count.step(&view, STEP_NODES);
                (count, is_end.then(|| view.places().totals()))
            };
            let (after, totals) = blocking::piece(step).await?;
            if let Some(totals) = totals {
                let (head, usage) = after.end();
                return Ok((head, usage, totals));
            }
            count = after;
        }
    }

    /// Reads the newest entries of the log, up to `head`; where some were read before, only what came since.
    async fn count_days(&self, reading: Reading, head: Head) -> Result<Days> {
        let Reading { caller, workspace, .. } = reading;
        let today = self.now().div_euclid(SECONDS_OF_DAY);
        let known = self.files.usages.get(workspace).map(|kept| kept.usage);
        let known = move |metadata: &dyn Metadata| {
            let found = workspaces::open(metadata, &caller, workspace, Right::Read)?;
            let Some(known) = known.filter(|known| known.head.seq > 0) else { return Ok(None) };
            let (seq, hash) = (known.head.seq, known.head.hash);
            // A server that was restored from an older copy has another log.
            let is_same = metadata.entry_hash(found.number, seq)? == Some(hash);
            Ok(is_same.then(|| (seq, known.days.clone())))
        };
        let known = self.readers.read(known).await?;
        let mut scan = DayScan::new(head.seq, today, known);
        while let Some(since) = scan.next() {
            let read = move |metadata: &dyn Metadata| {
                let length_max = ENTRIES_LENGTH_MAX;
                let entries =
                    sync_service::entries(metadata, &caller, workspace, since, length_max)?;
                scan.note(&entries);
                Ok(scan)
            };
            scan = self.readers.read(read).await?;
        }
        Ok(scan.end())
    }
}
