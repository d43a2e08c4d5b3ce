//! Rows of links: what is behind one, and how many downloads it has let in.
//!
//! A link is a device of its maker's account with limits, so that whatever ends a device, a membership or an account ends it, too. Its
//! secret stands where the token of a device does, under a hash of its own kind, so that it is never taken for one.

use model::{DeviceId, NodeId};

use super::{DeviceRecord, Result, WorkspaceNumber};

/// A way for people without an account to one node and what is below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkRecord {
    /// Its id, its maker, whether it was taken back; in its limits the workspace and the end.
    pub device: DeviceRecord,
    /// To where it leads.
    pub node: NodeId,
    /// Argon2id in PHC form, where it wants a password.
    pub password_hash: Option<String>,
    /// How many downloads it lets in; nothing for any number.
    pub downloads_max: Option<u64>,
    /// How many it has let in.
    pub downloads: u64,
}

/// Links, each a device with limits and more.
pub trait LinkTables {
    /// Returns the link with that secret, also one that was taken back.
    fn link_by_secret(&self, secret_hash: &[u8; 32]) -> Result<Option<LinkRecord>>;
    /// Returns a link, also one that was taken back.
    fn link(&self, id: DeviceId) -> Result<Option<LinkRecord>>;
    /// Returns the links of a workspace that were not taken back, in the order in which they were made.
    fn links(&self, workspace: WorkspaceNumber) -> Result<Vec<LinkRecord>>;
    /// Adds a link into the workspace that its limits name, and its device.
    fn insert_link(
        &mut self,
        link: &LinkRecord,
        workspace: WorkspaceNumber,
        secret_hash: &[u8; 32],
    ) -> Result<()>;
    /// Counts one more download.
    fn count_download(&mut self, id: DeviceId) -> Result<()>;
}
