//! The merge base: what this device and the log had in common, and what the file system said of each file then.

use model::codec::{DecodeError, Decoder, Encoder, decode_message, encode_message};
use model::{Name, NodeId, NodeKind, NodeRecord, OpId, Timestamp};
use rusqlite::{Row, params};

use super::{State, id_column};
use crate::error::Result;
use crate::file_system::{FileKind, Stat};

/// A row of the merge base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyncedNode {
    /// The node.
    pub node: NodeId,
    /// The version that was merged; 0 for a node that the log does not know yet.
    pub version: u64,
    /// What it was.
    pub record: NodeRecord,
    /// What the file system said then; nothing where the file must be read again before it counts as unchanged.
    pub stat: Option<Stat>,
    /// The commit that proposes this row, until the log answers.
    pub pending: Option<OpId>,
}

/// What a scan needs of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScanRow {
    /// Its name.
    pub name: Name,
    /// The node.
    pub node: NodeId,
    /// Its kind.
    pub kind: FileKind,
    /// What the file system said.
    pub stat: Option<Stat>,
}

const COLUMNS: &str = "node, version, stat, pending, body";

impl State {
    /// Returns the row of a node.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`], [`crate::SyncError::Decode`].
    pub fn synced(&self, node: &NodeId) -> Result<Option<SyncedNode>> {
        let sql = format!("SELECT {COLUMNS} FROM synced WHERE node = ?");
        self.row(&sql, [node.as_bytes()], raw_row)?.map(decode_row).transpose()
    }

    /// Returns the rows of a name in a directory. While names are exchanged there may be several: the merge base of
    /// one node is older than that of another, and at most one of them is in the folder under this name.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`], [`crate::SyncError::Decode`].
    pub fn synced_at(&self, parent: &NodeId, name: &Name) -> Result<Vec<SyncedNode>> {
        let sql = format!("SELECT {COLUMNS} FROM synced WHERE parent = ? AND name = ?");
        let parameters = params![parent.as_bytes(), name.as_bytes()];
        self.rows(&sql, parameters, raw_row)?.into_iter().map(decode_row).collect()
    }

    /// Returns the rows of a directory in the order of their names.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`], [`crate::SyncError::Decode`].
    pub fn synced_children(&self, parent: &NodeId) -> Result<Vec<SyncedNode>> {
        let sql = format!("SELECT {COLUMNS} FROM synced WHERE parent = ? ORDER BY name");
        self.rows(&sql, [parent.as_bytes()], raw_row)?.into_iter().map(decode_row).collect()
    }

    /// Returns what a scan of a directory needs, in the order of the names.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`], [`crate::SyncError::Decode`].
    pub fn scan_rows(&self, parent: &NodeId) -> Result<Vec<ScanRow>> {
        let sql = "SELECT name, node, kind, stat FROM synced WHERE parent = ? ORDER BY name";
        let mut statement = self.database(self.connection.prepare_cached(sql))?;
        let mut rows = self.database(statement.query([parent.as_bytes()]))?;
        let mut found = Vec::new();
        while let Some(row) = self.database(rows.next())? {
            let name = self.database(row.get_ref(0))?.as_blob().unwrap_or_default();
            let node = NodeId::from_bytes(self.database(id_column(row, 1))?);
            let kind: i64 = self.database(row.get(2))?;
            let stat = self.database(row.get_ref(3))?.as_blob_or_null().unwrap_or_default();
            found.push(ScanRow {
                name: Name::new(name)?,
                node,
                kind: kind_of_number(kind),
                stat: stat.map(decode_stat).transpose()?,
            });
        }
        Ok(found)
    }

    /// Gives every row to `visit`.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`], [`crate::SyncError::Decode`].
    pub fn each_synced(&self, mut visit: impl FnMut(SyncedNode)) -> Result<()> {
        let sql = format!("SELECT {COLUMNS} FROM synced");
        let mut statement = self.database(self.connection.prepare_cached(&sql))?;
        let mut rows = self.database(statement.query([]))?;
        while let Some(row) = self.database(rows.next())? {
            visit(decode_row(self.database(raw_row(row))?)?);
        }
        Ok(())
    }

    /// Returns the number of rows.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`].
    pub fn synced_count(&self) -> Result<u64> {
        let row = self.row("SELECT count(*) FROM synced", [], |row| row.get::<_, i64>(0))?;
        Ok(row.unwrap_or(0) as u64)
    }

    /// Replaces the row of a node.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`].
    pub fn set_synced(&mut self, synced: &SyncedNode) -> Result<()> {
        self.write_synced(synced, None)
    }

    /// Replaces the row of a node by what a commit proposes, and keeps the row before for the case that the commit is
    /// rejected.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`].
    pub fn propose_synced(&mut self, synced: &SyncedNode) -> Result<()> {
        let before = match self.synced(&synced.node)? {
            // A second proposal before the answer to the first: what was before the first counts.
            Some(before) if before.pending.is_some() => self.before(&synced.node)?,
            Some(before) => Some(before),
            None => None,
        };
        self.write_synced(synced, before.as_ref())
    }

    fn write_synced(&mut self, synced: &SyncedNode, before: Option<&SyncedNode>) -> Result<()> {
        let record = &synced.record;
        // Replaces the row of the node under its old name, too, by the index of the nodes.
        self.run(
            "INSERT OR REPLACE INTO synced (parent, name, node, version, kind, stat, pending, body, before)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            params![
                record.parent.as_bytes(),
                record.name.as_bytes(),
                synced.node.as_bytes(),
                synced.version as i64,
                number_of_kind(kind_of(&record.kind)),
                synced.stat.as_ref().map(encode_stat),
                synced.pending.as_ref().map(OpId::as_bytes),
                encode_message(record),
                before.map(encode_before),
            ],
        )
    }

    /// Forgets the row of a node.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`].
    pub fn remove_synced(&mut self, node: &NodeId) -> Result<()> {
        self.run("DELETE FROM synced WHERE node = ?", [node.as_bytes()])
    }

    /// Gives the rows of one directory to another that it turned out to be.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`].
    pub fn reparent_synced(&mut self, from: &NodeId, to: &NodeId) -> Result<()> {
        for mut row in self.synced_children(from)? {
            row.record.parent = *to;
            self.set_synced(&row)?;
        }
        Ok(())
    }

    /// Forgets rows that lie in no directory of the merge base, as a run leaves them that was cut off: nobody can say
    /// whether they are in the folder. They are to be merged anew.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`].
    pub fn forget_orphans(&mut self) -> Result<()> {
        let sql = "SELECT node FROM synced AS child WHERE parent != ? AND NOT EXISTS
                   (SELECT 1 FROM synced AS above WHERE above.node = child.parent)";
        loop {
            let orphans = self.rows(sql, [NodeId::ROOT.as_bytes()], |row| {
                Ok(NodeId::from_bytes(id_column(row, 0)?))
            })?;
            if orphans.is_empty() {
                return Ok(());
            }
            for orphan in orphans {
                self.remove_synced(&orphan)?;
                self.add_unsynced(&orphan)?;
            }
        }
    }

    /// Forgets every row: there is no merge base any more.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`].
    pub fn clear_synced(&mut self) -> Result<()> {
        self.run("DELETE FROM synced", [])
    }

    /// Marks the row of a node as accepted by the log. Returns whether the row was still that of the commit.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`].
    pub fn accept_pending(&mut self, node: &NodeId, op_id: &OpId, version: u64) -> Result<bool> {
        let sql = "UPDATE synced SET version = ?, pending = NULL, before = NULL WHERE node = ? AND pending = ?";
        let mut statement = self.database(self.connection.prepare_cached(sql))?;
        let parameters = params![version as i64, node.as_bytes(), op_id.as_bytes()];
        Ok(self.database(statement.execute(parameters))? > 0)
    }

    /// Forgets the row of a node whose deletion was accepted by the log.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`].
    pub fn remove_pending(&mut self, node: &NodeId, op_id: &OpId) -> Result<()> {
        let parameters = params![node.as_bytes(), op_id.as_bytes()];
        self.run("DELETE FROM synced WHERE node = ? AND pending = ?", parameters)
    }

    /// Takes a rejected proposal back: the row before it returns, or the node is unknown again. Returns the row of the
    /// proposal, which says what is in the folder, if it was still that of the commit.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`], [`crate::SyncError::Decode`].
    pub fn reject_pending(&mut self, node: &NodeId, op_id: &OpId) -> Result<Option<SyncedNode>> {
        let Some(proposed) = self.synced(node)?.filter(|row| row.pending.as_ref() == Some(op_id))
        else {
            return Ok(None);
        };
        let before = self.before(node)?;
        self.remove_synced(node)?;
        match before {
            Some(before) => self.set_synced(&before)?,
            // The node keeps its id, so that proposing it again is no second node.
            None => {
                let unknown = proposed.clone();
                self.set_synced(&SyncedNode { version: 0, stat: None, pending: None, ..unknown })?;
            }
        }
        Ok(Some(proposed))
    }

    fn before(&self, node: &NodeId) -> Result<Option<SyncedNode>> {
        let before =
            self.row("SELECT before FROM synced WHERE node = ?", [node.as_bytes()], |row| {
                row.get::<_, Option<Vec<u8>>>(0)
            })?;
        before.flatten().map(|bytes| decode_before(node, &bytes)).transpose()
    }
}

type RawRow = ([u8; 16], i64, Option<Vec<u8>>, Option<[u8; 16]>, Vec<u8>);

fn raw_row(row: &Row<'_>) -> rusqlite::Result<RawRow> {
    Ok((id_column(row, 0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?))
}

fn decode_row((node, version, stat, pending, body): RawRow) -> Result<SyncedNode> {
    Ok(SyncedNode {
        node: NodeId::from_bytes(node),
        version: version as u64,
        record: decode_message(&body)?,
        stat: stat.as_deref().map(decode_stat).transpose()?,
        pending: pending.map(OpId::from_bytes),
    })
}

/// Returns the kind of file that holds a node.
pub fn kind_of(kind: &NodeKind) -> FileKind {
    match kind {
        NodeKind::Directory => FileKind::Directory,
        NodeKind::File(_) => FileKind::File,
        NodeKind::Symlink(_) => FileKind::Symlink,
    }
}

fn number_of_kind(kind: FileKind) -> i64 {
    match kind {
        FileKind::Directory => 0,
        FileKind::File => 1,
        FileKind::Symlink => 2,
        FileKind::Other => 3,
    }
}

fn kind_of_number(number: i64) -> FileKind {
    match number {
        0 => FileKind::Directory,
        1 => FileKind::File,
        2 => FileKind::Symlink,
        _ => FileKind::Other,
    }
}

fn encode_stat(stat: &Stat) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(56);
    bytes.extend_from_slice(&[number_of_kind(stat.kind) as u8]);
    bytes.extend_from_slice(&stat.mode.to_le_bytes());
    bytes.extend_from_slice(&stat.size.to_le_bytes());
    bytes.extend_from_slice(&stat.inode.to_le_bytes());
    for time in [stat.modified, stat.changed] {
        bytes.extend_from_slice(&time.seconds.to_le_bytes());
        bytes.extend_from_slice(&time.nanoseconds.to_le_bytes());
    }
    bytes
}

fn decode_stat(bytes: &[u8]) -> Result<Stat, DecodeError> {
    let mut decoder = Decoder::new(bytes);
    let [kind] = decoder.array()?;
    let mode = u32::from_le_bytes(decoder.array()?);
    let size = u64::from_le_bytes(decoder.array()?);
    let inode = u64::from_le_bytes(decoder.array()?);
    let mut time = || -> Result<Timestamp, DecodeError> {
        let seconds = i64::from_le_bytes(decoder.array()?);
        Ok(Timestamp { seconds, nanoseconds: u32::from_le_bytes(decoder.array()?) })
    };
    let (modified, changed) = (time()?, time()?);
    decoder.finish()?;
    Ok(Stat { kind: kind_of_number(i64::from(kind)), size, mode, modified, changed, inode })
}

fn encode_before(before: &SyncedNode) -> Vec<u8> {
    let mut encoder = Encoder::default();
    encoder.unsigned(before.version);
    encoder.byte_string(&before.stat.as_ref().map(encode_stat).unwrap_or_default());
    encoder.byte_string(&encode_message(&before.record));
    encoder.into_bytes()
}

fn decode_before(node: &NodeId, bytes: &[u8]) -> Result<SyncedNode> {
    let mut decoder = Decoder::new(bytes);
    let version = decoder.unsigned()?;
    let stat = decoder.byte_string(bytes.len())?;
    let stat = if stat.is_empty() { None } else { Some(decode_stat(stat)?) };
    let record = decode_message(decoder.byte_string(bytes.len())?)?;
    decoder.finish()?;
    Ok(SyncedNode { node: *node, version, record, stat, pending: None })
}
