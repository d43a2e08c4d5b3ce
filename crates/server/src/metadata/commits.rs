//! What a group of commits asks of the metadata and leaves there, all of it at once.
//!
//! *Goals*: a group costs a number of statements that does not grow with the commits, workspaces and changes in it.
//! *Invariants*: what was read of a workspace inside a transaction stays true until the transaction ends, also where
//! other servers write to the same database.

use std::collections::HashMap;

use model::{DeviceId, EntryHash, Head, NodeId, OpId, WorkspaceId};

use super::{AccountId, Result, TokenLimits, WorkspaceNumber, WorkspaceRecord};

/// How many bytes an account may hold, and does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Its quota.
    pub quota_bytes: u64,
    /// What its workspaces hold.
    pub used_bytes: u64,
}

/// A device that may speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Welcome {
    /// Whose it is.
    pub account: AccountId,
    /// What it is limited to, where it is the token of an application.
    pub limits: Option<TokenLimits>,
}

/// An operation of a device, and how long an entry with it may be to be worth reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    /// In which workspace.
    pub workspace: WorkspaceNumber,
    /// Whose.
    pub device: DeviceId,
    /// Which.
    pub op_id: OpId,
    /// A longer entry is not the same operation; its bytes are left where they are.
    pub length_max: u64,
}

/// What a group of commits wants to know.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// Operations that may stand in the log.
    pub operations: Vec<Operation>,
    /// Entries whose hash is asked.
    pub hashes: Vec<(WorkspaceNumber, u64)>,
    /// Workspaces whose genesis is asked.
    pub geneses: Vec<WorkspaceNumber>,
    /// Objects that must be stored.
    pub objects: Vec<(WorkspaceNumber, String)>,
    /// Nodes whose version decides.
    pub versions: Vec<(WorkspaceNumber, NodeId)>,
}

/// An operation that stands in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Done {
    /// Where.
    pub head: Head,
    /// The wrapped entry, unless it is longer than was asked for.
    pub bytes: Option<Vec<u8>>,
}

/// What there is of what was wanted.
#[derive(Debug, Clone, Default)]
pub struct Found {
    /// Operations that stand in the log.
    pub operations: HashMap<(WorkspaceNumber, DeviceId, OpId), Done>,
    /// Hashes of entries.
    pub hashes: HashMap<(WorkspaceNumber, u64), EntryHash>,
    /// Encoded geneses.
    pub geneses: HashMap<WorkspaceNumber, Vec<u8>>,
    /// Lengths of objects.
    pub objects: HashMap<(WorkspaceNumber, String), u64>,
    /// Versions of nodes.
    pub versions: HashMap<(WorkspaceNumber, NodeId), u64>,
}

/// An entry as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryRow {
    /// In whose log.
    pub workspace: WorkspaceNumber,
    /// Where it stands.
    pub head: Head,
    /// Who proposed it.
    pub device: DeviceId,
    /// Under which operation id.
    pub op_id: OpId,
    /// The wrapped entry.
    pub bytes: Vec<u8>,
}

/// Where a log ends after a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeadRow {
    /// Whose log.
    pub workspace: WorkspaceNumber,
    /// Its newest entry.
    pub head: Head,
    /// How many bytes the workspace holds more.
    pub added_bytes: u64,
}

/// What a group of commits leaves.
#[derive(Debug, Clone, Default)]
pub struct Appended {
    /// New entries, those of one workspace in their order.
    pub entries: Vec<EntryRow>,
    /// New ends of logs, each workspace once.
    pub heads: Vec<HeadRow>,
    /// New versions, each node once.
    pub versions: Vec<(WorkspaceNumber, NodeId, u64)>,
}

/// Tables as a group of commits uses them.
pub trait CommitTables {
    /// Returns those of the devices that may speak: not revoked, and of an account that is not disabled.
    fn welcome_devices(&self, devices: &[DeviceId]) -> Result<HashMap<DeviceId, Welcome>>;
    /// Returns those of the workspaces that there are. Inside a transaction nobody else changes them until it ends.
    fn open_workspaces(
        &self,
        workspaces: &[WorkspaceId],
    ) -> Result<HashMap<WorkspaceId, WorkspaceRecord>>;
    /// Returns the rooms of those accounts that have a quota. Inside a transaction nobody else takes of them until it
    /// ends. Ask after opening workspaces, so that all wait for each other in the same order.
    fn rooms(&self, accounts: &[AccountId]) -> Result<HashMap<AccountId, Room>>;
    /// Returns what there is of what is wanted.
    fn find(&self, wanted: &Wanted) -> Result<Found>;
    /// Writes what a group has led to.
    fn append(&mut self, appended: &Appended) -> Result<()>;
}
