//! The folded tree in the database.

use model::codec::{Decode, Decoder, Encode, Encoder};
use model::{Mounts, Name, NodeId, NodeState, TreeNode, TreeStore, Versions};
use rusqlite::params;

use super::{State, id_column};
use crate::error::{Result, SyncError};

impl Versions for State {
    type Error = SyncError;

    fn version(&self, node: &NodeId) -> Result<u64> {
        let row =
            self.row("SELECT version FROM remote WHERE node = ?", [node.as_bytes()], |row| {
                row.get::<_, i64>(0)
            })?;
        Ok(row.unwrap_or(0) as u64)
    }
}

impl TreeStore for State {
    fn node(&self, id: &NodeId) -> Result<Option<TreeNode>> {
        let body = self.row("SELECT body FROM remote WHERE node = ?", [id.as_bytes()], |row| {
            row.get::<_, Vec<u8>>(0)
        })?;
        body.map(|body| decode_body(&body)).transpose()
    }

    fn child(&self, parent: &NodeId, name: &Name) -> Result<Option<NodeId>> {
        let sql = "SELECT node FROM remote WHERE parent = ? AND name = ? AND alive = 1";
        let parameters = params![parent.as_bytes(), name.as_bytes()];
        Ok(self.row(sql, parameters, |row| id_column(row, 0))?.map(NodeId::from_bytes))
    }

    fn has_children(&self, parent: &NodeId) -> Result<bool> {
        let sql = "SELECT 1 FROM remote WHERE parent = ? AND alive = 1 LIMIT 1";
        Ok(self.row(sql, [parent.as_bytes()], |_| Ok(()))?.is_some())
    }

    fn set(&mut self, id: NodeId, node: TreeNode) -> Result<()> {
        self.set_remote(&id, &node)
    }
}

fn decode_body(body: &[u8]) -> Result<TreeNode> {
    let mut decoder = Decoder::new(body);
    let node = TreeNode::decode(&mut decoder)?;
    decoder.finish()?;
    Ok(node)
}

impl State {
    /// Returns the sequence number of the last fence, 0 before the first.
    ///
    /// # Errors
    /// [`SyncError::Database`].
    pub fn last_fence(&self) -> Result<u64> {
        self.version(&NodeId::FENCE)
    }

    /// Returns which folders are workspaces of their own.
    ///
    /// # Errors
    /// [`SyncError::Database`], [`SyncError::Decode`].
    pub fn mounts(&self) -> Result<Mounts> {
        Mounts::of(self)
    }

    fn set_remote(&mut self, id: &NodeId, node: &TreeNode) -> Result<()> {
        let mut encoder = Encoder::default();
        node.encode(&mut encoder);
        let body = encoder.into_bytes();
        let record = &node.record;
        self.run(
            "INSERT INTO remote (node, version, alive, parent, name, body, conflict) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
             ON CONFLICT (node) DO UPDATE
             SET version = ?2, alive = ?3, parent = ?4, name = ?5, body = ?6, conflict = ?7",
            params![
                id.as_bytes(),
                node.version as i64,
                i64::from(node.state == NodeState::Alive),
                record.parent.as_bytes(),
                record.name.as_bytes(),
                body,
                i64::from(node.is_alive() && record.conflict.is_some()),
            ],
        )
    }

    /// Returns the living nodes that are marked as one side of a conflict. In a folder that is a workspace of its own nobody decides
    /// any.
    ///
    /// # Errors
    /// [`SyncError::Database`], [`SyncError::Decode`].
    pub fn remote_conflicts(&self) -> Result<Vec<(NodeId, TreeNode)>> {
        let found = self.remote_rows("SELECT node, body FROM remote WHERE conflict = 1", [])?;
        let mounts = self.mounts()?;
        let mut open = Vec::with_capacity(found.len());
        for (id, node) in found {
            if !mounts.freeze(self, &id)? {
                open.push((id, node));
            }
        }
        Ok(open)
    }

    /// Returns the living nodes in a directory.
    ///
    /// # Errors
    /// [`SyncError::Database`], [`SyncError::Decode`].
    pub fn remote_children(&self, directory: &NodeId) -> Result<Vec<(NodeId, TreeNode)>> {
        let sql = "SELECT node, body FROM remote WHERE parent = ? AND alive = 1";
        self.remote_rows(sql, [directory.as_bytes()])
    }

    /// Returns up to `limit` nodes after `after` in the order of their ids.
    ///
    /// # Errors
    /// [`SyncError::Database`], [`SyncError::Decode`].
    pub fn remote_page(
        &self,
        after: Option<&NodeId>,
        limit: usize,
    ) -> Result<Vec<(NodeId, TreeNode)>> {
        let after = after.map_or(&[][..], |id| id.as_bytes());
        let sql = "SELECT node, body FROM remote WHERE node > ? ORDER BY node LIMIT ?";
        self.remote_rows(sql, params![after, limit as i64])
    }

    /// Returns the number of nodes, living or not.
    ///
    /// # Errors
    /// [`SyncError::Database`].
    pub fn remote_count(&self) -> Result<u64> {
        let row = self.row("SELECT count(*) FROM remote", [], |row| row.get::<_, i64>(0))?;
        Ok(row.unwrap_or(0) as u64)
    }

    fn remote_rows(
        &self,
        sql: &str,
        parameters: impl rusqlite::Params,
    ) -> Result<Vec<(NodeId, TreeNode)>> {
        let rows =
            self.rows(sql, parameters, |row| Ok((id_column(row, 0)?, row.get::<_, Vec<u8>>(1)?)))?;
        rows.into_iter()
            .map(|(id, body)| Ok((NodeId::from_bytes(id), decode_body(&body)?)))
            .collect()
    }

    /// Forgets the folded tree and everything that was learned from the log; what files looked like stays.
    ///
    /// # Errors
    /// [`SyncError::Database`].
    pub fn clear_remote(&mut self) -> Result<()> {
        let of_log = ["remote", "unsynced", "packs", "chunks", "spares", "bases"];
        for table in of_log.into_iter().chain(["entries", "history", "outbox"]) {
            self.run(&format!("DELETE FROM {table}"), [])?;
        }
        self.forget_deltas()
    }

    /// Notes that a node's remote version is to be merged.
    ///
    /// # Errors
    /// [`SyncError::Database`].
    pub fn add_unsynced(&mut self, node: &NodeId) -> Result<()> {
        self.run("INSERT OR IGNORE INTO unsynced (node) VALUES (?)", [node.as_bytes()])
    }

    /// Notes that a node is merged.
    ///
    /// # Errors
    /// [`SyncError::Database`].
    pub fn remove_unsynced(&mut self, node: &NodeId) -> Result<()> {
        self.run("DELETE FROM unsynced WHERE node = ?", [node.as_bytes()])
    }

    /// Notes that a node is merged, if the merge base has its newest remote version.
    ///
    /// # Errors
    /// [`SyncError::Database`].
    pub fn remove_merged(&mut self, node: &NodeId) -> Result<()> {
        self.run(
            "DELETE FROM unsynced WHERE node = ?1 AND
             (SELECT version FROM remote WHERE node = ?1 AND alive = 1) IS
             (SELECT version FROM synced WHERE node = ?1)",
            [node.as_bytes()],
        )
    }

    /// Returns all nodes that are to be merged.
    ///
    /// # Errors
    /// [`SyncError::Database`].
    pub fn unsynced(&self) -> Result<Vec<NodeId>> {
        self.rows("SELECT node FROM unsynced ORDER BY node", [], |row| {
            Ok(NodeId::from_bytes(id_column(row, 0)?))
        })
    }

    /// Tells whether any node is to be merged.
    ///
    /// # Errors
    /// [`SyncError::Database`].
    pub fn has_unsynced(&self) -> Result<bool> {
        Ok(self.row("SELECT 1 FROM unsynced LIMIT 1", [], |_| Ok(()))?.is_some())
    }
}
