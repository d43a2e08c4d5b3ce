//! What happens when the log is not the one that this device has seen: a server or store that was restored from an older
//! copy, or one that lies.
//!
//! *Goals*: nothing that is in the folder is lost, and nothing that the log has lost is lost: it is proposed again.
//! *Invariants*: what the log and this device both have, up to the point where they part, stays the merge base; whatever
//! lies behind that point here is a local edit of it; whatever lies behind it there is merged without a base.

use std::collections::{BTreeMap, BTreeSet};

use model::{EntryHash, NodeId, TreeStore};

use super::{Engine, Event};
use crate::error::{Result, SyncError};
use crate::file_system::Stat;
use crate::state::SyncedNode;

/// How many bytes of entries are asked for at once.
const ENTRIES_LENGTH_MAX: u64 = 8 * 1024 * 1024;

impl Engine {
    /// Learns the log anew from its beginning, and makes local edits of everything that it has lost.
    pub(super) async fn heal_history(&mut self) -> Result<()> {
        (self.observer)(Event::Step("history lost"));
        self.report.history_lost_at.get_or_insert(self.head()?.seq);
        // All or nothing: with half of the new log and the old merge base nobody could go on.
        self.state.begin()?;
        let learned = self.learn_anew().await;
        self.state.end(learned.is_ok())?;
        learned?;
        // Chunks that went with the lost entries must be packed again, and packs have other numbers now.
        self.upload.start_anew();
        self.fetcher.forget_packs();
        // The folder must be seen with the new base, or what differs now would be missed.
        self.overlay.clear();
        self.look(&crate::scan::Scope::Everything).await
    }

    async fn learn_anew(&mut self) -> Result<()> {
        let known = self.known_hashes()?;
        let mut rows = Vec::new();
        self.state.each_synced(|row| rows.push(row))?;
        let genesis = self.environment.log.genesis().head();
        self.state.transaction(|state| {
            state.clear_remote()?;
            state.set_head(&genesis)
        })?;
        let mut foreign = BTreeSet::new();
        loop {
            let head = self.head()?;
            let entries = self.environment.log.entries(head.seq, ENTRIES_LENGTH_MAX).await?;
            if entries.is_empty() {
                break;
            }
            for entry in &entries {
                if !entry.follows(&self.head()?) {
                    return Err(SyncError::HistoryDiverged { seq: entry.seq });
                }
                if known.get(&entry.seq) != Some(&entry.hash()) {
                    foreign.extend(entry.commit.changes.iter().map(|change| change.node));
                }
                self.fold_entry(entry)?;
            }
        }
        self.state.clear_synced()?;
        rows.into_iter().try_for_each(|row| self.rebase(row, &foreign))
    }

    fn known_hashes(&self) -> Result<BTreeMap<u64, EntryHash>> {
        let mut hashes = BTreeMap::new();
        let last = self.head()?.seq;
        for seq in self.state.oldest_entry()?.unwrap_or(last + 1)..=last {
            if let Some(entry) = self.state.entry(seq)? {
                hashes.insert(seq, entry.hash());
            }
        }
        Ok(hashes)
    }

    /// Puts a row of the old merge base on the ground of the new log.
    fn rebase(&mut self, row: SyncedNode, foreign: &BTreeSet<NodeId>) -> Result<()> {
        // No scan will find it like this; of a directory only the mode is compared.
        let touched = |stat: Stat| Stat { mode: u32::MAX, ..stat.unproven() };
        let stat = row.stat.map(touched);
        let new = match self.state.node(&row.node)? {
            Some(remote)
                if remote.version == row.version
                    && remote.record == row.record
                    && remote.is_alive() =>
            {
                SyncedNode { pending: None, ..row }
            }
            // The log went on without this device: there is no common base.
            Some(_) if foreign.contains(&row.node) => {
                SyncedNode { version: 0, stat: None, pending: None, ..row }
            }
            // This device was behind the log before, and is as much behind it now.
            Some(remote) if row.pending.is_none() && (1..remote.version).contains(&row.version) => {
                row
            }
            // The log is back at an older version: what is here is an edit of that.
            Some(remote) if remote.is_alive() => SyncedNode {
                version: remote.version,
                record: remote.record,
                stat,
                pending: None,
                node: row.node,
            },
            // The log has lost it, and with it perhaps the packs of its chunks: it must be read again.
            _ => SyncedNode { version: 0, stat: None, pending: None, ..row },
        };
        self.state.add_unsynced(&new.node)?;
        self.state.set_synced(&new)
    }
}

#[cfg(test)]
mod tests;
