//! Learns what the log says, and settles what this device has proposed.

use model::commit::PackRef;
use model::fold::fold;
use model::{Action, Entry, Outcome, TreeStore};

use super::{Engine, Event};
use crate::chunk_reader::pack_id;
use crate::error::{Result, SyncError};
use crate::state::State;

/// How many bytes of entries are asked for at once.
const ENTRIES_LENGTH_MAX: u64 = 8 * 1024 * 1024;

impl Engine {
    /// Folds all entries that are new. The folder is not changed.
    ///
    /// # Errors
    /// [`SyncError`]; what was folded stays folded.
    pub async fn fetch(&mut self) -> Result<u64> {
        let before = self.head()?;
        if before.seq == 0 {
            self.start_from_checkpoint().await?;
        }
        let newest = self.environment.log.head().await?;
        if newest.seq < before.seq || (newest.seq == before.seq && newest.hash != before.hash) {
            self.heal_history().await?;
        }
        loop {
            let head = self.head()?;
            if head.seq >= newest.seq {
                break;
            }
            let entries = self.environment.log.entries(head.seq, ENTRIES_LENGTH_MAX).await?;
            if entries.is_empty() {
                break;
            }
            (self.observer)(Event::Step("fetch"));
            if !entries[0].follows(&head) {
                self.heal_history().await?;
                continue;
            }
            for entry in &entries {
                self.fold_entry(entry)?;
            }
        }
        Ok(self.head()?.seq - before.seq.min(self.head()?.seq))
    }

    /// Folds one entry into the remote tree, in one transaction.
    pub(super) fn fold_entry(&mut self, entry: &Entry) -> Result<()> {
        let head = self.head()?;
        if !entry.follows(&head) {
            return Err(SyncError::HistoryDiverged { seq: entry.seq });
        }
        self.state.transaction(|state| {
            let folded = fold(state, entry)?;
            note_packs(state, entry)?;
            state.add_entry(entry, folded.touched.iter().copied())?;
            for node in &folded.touched {
                state.add_unsynced(node)?;
            }
            if state.is_in_outbox(&entry.commit.op_id)? {
                settle(state, entry, &folded.outcomes)?;
            }
            state.set_head(&entry.head())
        })
    }

    /// Proposes what waits in the outbox, oldest first.
    ///
    /// # Errors
    /// [`SyncError`]; what was not accepted stays in the outbox.
    pub async fn push(&mut self) -> Result<u64> {
        let outbox = self.state.outbox()?;
        let count = outbox.len() as u64;
        if count == 0 {
            return Ok(0);
        }
        (self.observer)(Event::Step("push"));
        self.send_kept_packs(&outbox).await?;
        for commit in outbox {
            let length = self.state.outbox_length(&commit.op_id)?;
            let head = self.environment.log.commit(&commit).await?;
            self.report.sent_bytes += length;
            let folded = self.head()?;
            let entry = Entry { seq: folded.seq + 1, previous: folded.hash, commit };
            // Mostly nobody else was faster, and the entry need not travel back.
            if entry.head() == head {
                self.fold_entry(&entry)?;
            } else {
                self.fetch().await?;
            }
        }
        Ok(count)
    }
}

/// Remembers where the packs of an entry rest. The chunks of inline packs are learned when they are indexed.
fn note_packs(state: &mut State, entry: &Entry) -> Result<()> {
    for pack in &entry.commit.packs {
        state.add_pack(pack, None)?;
    }
    for bytes in &entry.commit.inline_packs {
        let pack = PackRef { id: pack_id(bytes), length: bytes.len() as u64 };
        state.add_pack(&pack, Some(entry.seq))?;
    }
    Ok(())
}

/// Brings the merge base in line with what became of an own commit.
fn settle(state: &mut State, entry: &Entry, outcomes: &[Outcome]) -> Result<()> {
    for (change, outcome) in entry.commit.changes.iter().zip(outcomes) {
        let is_current = state.synced(&change.node)?.is_some_and(|row| row.pending == Some(entry.commit.op_id));
        if !is_current {
            continue;
        }
        match (outcome, &change.action) {
            (Outcome::Rejected { .. }, _) => state.reject_pending(&change.node)?,
            (Outcome::Accepted { .. }, Action::Delete) => state.remove_synced(&change.node)?,
            (Outcome::Accepted { version }, Action::Put(_)) => state.accept_pending(&change.node, *version)?,
        }
        // What the fold did as proposed needs no merging.
        let remote = state.node(&change.node)?.filter(model::TreeNode::is_alive);
        let synced = state.synced(&change.node)?;
        let is_merged = match (&remote, &synced) {
            (Some(remote), Some(synced)) => {
                remote.version == synced.version && remote.record == synced.record
            }
            (None, None) => true,
            _ => false,
        };
        match (is_merged, synced) {
            (true, _) => state.remove_unsynced(&change.node)?,
            // The fold did something else: the base stays one version behind, so that the planner merges.
            (false, Some(mut synced)) if remote.is_some_and(|remote| remote.version == synced.version) => {
                synced.version -= 1;
                state.set_synced(&synced)?;
            }
            _ => {}
        }
    }
    state.remove_from_outbox(&entry.commit.op_id)
}
