//! The log as this device has read it, and the commits on their way into it.

use commit_log::envelope;
use model::commit::COMMIT_LENGTH_MAX;
use model::{Commit, Entry, NodeId, OpId};
use rusqlite::params;

use super::State;
use crate::error::Result;

/// An entry is a commit and a few bytes more.
const ENTRY_LENGTH_MAX: usize = COMMIT_LENGTH_MAX + 1024;

/// The fact that the log has named packs with delta records, in an entry that is kept here or before.
const DELTAS: &str = "deltas";

impl State {
    /// Keeps an entry, and which nodes it changed.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`].
    pub fn add_entry(
        &mut self,
        entry: &Entry,
        changed: impl IntoIterator<Item = NodeId>,
    ) -> Result<()> {
        let seq = entry.seq as i64;
        if entry.commit.has_deltas {
            self.note_deltas()?;
        }
        self.run(
            "INSERT OR REPLACE INTO entries (seq, bytes) VALUES (?, ?)",
            params![seq, envelope::wrap(entry)],
        )?;
        for node in changed {
            self.run(
                "INSERT OR IGNORE INTO history (node, seq) VALUES (?, ?)",
                params![node.as_bytes(), seq],
            )?;
        }
        Ok(())
    }

    /// Notes that the log has named packs with delta records: checkpoints of it say so, too.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`].
    pub fn note_deltas(&mut self) -> Result<()> {
        self.set_fact(DELTAS, &[])
    }

    /// Tells whether the log has ever named packs with delta records.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`].
    pub fn log_has_deltas(&self) -> Result<bool> {
        Ok(self.fact(DELTAS)?.is_some())
    }

    /// Forgets that it has: it is another log.
    pub(super) fn forget_deltas(&mut self) -> Result<()> {
        self.forget_fact(DELTAS)
    }

    /// Returns a kept entry.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`], [`crate::SyncError::Decode`].
    pub fn entry(&self, seq: u64) -> Result<Option<Entry>> {
        let bytes = self.row("SELECT bytes FROM entries WHERE seq = ?", [seq as i64], |row| {
            row.get::<_, Vec<u8>>(0)
        })?;
        Ok(bytes.map(|bytes| envelope::unwrap(&bytes, ENTRY_LENGTH_MAX)).transpose()?)
    }

    /// Returns the numbers of the entries that changed a node, newest first.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`].
    pub fn history(&self, node: &NodeId) -> Result<Vec<u64>> {
        self.rows(
            "SELECT seq FROM history WHERE node = ? ORDER BY seq DESC",
            [node.as_bytes()],
            |row| Ok(row.get::<_, i64>(0)? as u64),
        )
    }

    /// Returns the number of the oldest kept entry: a device that began at a checkpoint has none before.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`].
    pub fn oldest_entry(&self) -> Result<Option<u64>> {
        let oldest =
            self.row("SELECT min(seq) FROM entries", [], |row| row.get::<_, Option<i64>>(0))?;
        Ok(oldest.flatten().map(|seq| seq as u64))
    }

    /// Puts a commit into the outbox, before anybody is asked to take it.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`].
    pub fn add_to_outbox(&mut self, commit: &Commit) -> Result<()> {
        self.run(
            "INSERT INTO outbox (op_id, bytes) VALUES (?, ?)",
            params![commit.op_id.as_bytes(), envelope::wrap(commit)],
        )
    }

    /// Returns the commits of the outbox, oldest first.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`], [`crate::SyncError::Decode`].
    pub fn outbox(&self) -> Result<Vec<Commit>> {
        let rows = self
            .rows("SELECT bytes FROM outbox ORDER BY number", [], |row| row.get::<_, Vec<u8>>(0))?;
        rows.iter().map(|bytes| Ok(envelope::unwrap(bytes, COMMIT_LENGTH_MAX)?)).collect()
    }

    /// Tells whether a commit is in the outbox.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`].
    pub fn is_in_outbox(&self, op_id: &OpId) -> Result<bool> {
        Ok(self
            .row("SELECT 1 FROM outbox WHERE op_id = ?", [op_id.as_bytes()], |_| Ok(()))?
            .is_some())
    }

    /// Returns how many bytes a commit of the outbox takes; 0 where it is not there.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`].
    pub fn outbox_length(&self, op_id: &OpId) -> Result<u64> {
        let sql = "SELECT length(bytes) FROM outbox WHERE op_id = ?";
        Ok(self.row(sql, [op_id.as_bytes()], |row| row.get::<_, i64>(0))?.unwrap_or(0) as u64)
    }

    /// Removes a commit that stands in the log.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`].
    pub fn remove_from_outbox(&mut self, op_id: &OpId) -> Result<()> {
        self.run("DELETE FROM outbox WHERE op_id = ?", [op_id.as_bytes()])
    }
}
