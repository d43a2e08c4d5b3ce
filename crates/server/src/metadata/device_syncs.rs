//! Rows of when devices were last fully in sync.

use model::DeviceId;

use super::{AccountId, Result, WorkspaceNumber};

/// Whether the account of a device still has the workspace; what it had before does not count.
pub(crate) const IS_OPEN: &str = "EXISTS (
    SELECT 1 FROM workspaces
    WHERE number = device_syncs.workspace AND (owner = devices.account OR EXISTS (
        SELECT 1 FROM members WHERE workspace = number AND members.account = devices.account)))";

/// A device, and since when it is not known to be in sync.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsyncedDevice {
    /// The name of its account.
    pub account: String,
    /// Its id.
    pub id: DeviceId,
    /// Its name.
    pub name: String,
    /// When it was last in sync with that of its workspaces of which this is longest ago, in seconds since 1970; when it signed in, where
    /// it never was.
    pub since: i64,
}

/// When devices were last in sync with which workspaces. It has a table of its own, so that a device has one row for each workspace.
pub trait DeviceSyncTables {
    /// Returns those devices of an account that ever were in sync, each with when it last was with that of its workspaces of which this
    /// is longest ago, in seconds since 1970; in the order of ids.
    fn device_syncs(&self, account: AccountId) -> Result<Vec<(DeviceId, i64)>>;
    /// Returns the devices that were in sync the longest time ago, the longest first: none that is revoked, of a disabled account, or
    /// the token of an application.
    fn longest_unsynced(&self, limit: usize) -> Result<Vec<UnsyncedDevice>>;
    /// Notes that a device is in sync with a workspace now.
    fn note_sync(&mut self, device: DeviceId, workspace: WorkspaceNumber, now: i64) -> Result<()>;
}
