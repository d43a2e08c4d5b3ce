//! What the devices of an encrypted workspace keep at the server for each other: its locked keys, the boxes of pairings, the
//! identities of people and the envelopes for members. All are bytes that mean nothing here.

use super::{AccountId, Result, WorkspaceNumber};

/// The locked keys of a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockedKeys {
    /// How often they were changed, from 1.
    pub generation: u64,
    /// What only devices can read.
    pub bytes: Vec<u8>,
}

/// Who an account is to others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdentityRecord {
    /// What others may know.
    pub public: Vec<u8>,
    /// What only devices of the account can open.
    pub locked: Vec<u8>,
}

/// Locked keys, boxes of pairings, identities and envelopes.
pub trait KeyTables {
    /// Returns the locked keys of a workspace, if it has some.
    fn locked_keys(&self, workspace: WorkspaceNumber) -> Result<Option<LockedKeys>>;
    /// Puts locked keys in the place of those of the generation before, or of none where they are the first. Returns false, and
    /// changes nothing, where others are there.
    fn replace_locked_keys(
        &mut self,
        workspace: WorkspaceNumber,
        keys: &LockedKeys,
    ) -> Result<bool>;

    /// Returns a box.
    fn pairing_box(&self, workspace: WorkspaceNumber, key: &str) -> Result<Option<Vec<u8>>>;
    /// Returns keys and lengths of all boxes of a workspace, in the order of keys.
    fn pairing_boxes(&self, workspace: WorkspaceNumber) -> Result<Vec<(String, u64)>>;
    /// Adds a box. Returns false, and changes nothing, where one of this key is there.
    fn insert_pairing_box(
        &mut self,
        workspace: WorkspaceNumber,
        key: &str,
        bytes: &[u8],
        now: i64,
    ) -> Result<bool>;
    /// Removes a box, if it is there.
    fn delete_pairing_box(&mut self, workspace: WorkspaceNumber, key: &str) -> Result<()>;
    /// Removes the boxes of a workspace that were made before that time.
    fn delete_old_pairing_boxes(&mut self, workspace: WorkspaceNumber, before: i64) -> Result<()>;

    /// Returns who an account is to others, if it has said so.
    fn identity(&self, account: AccountId) -> Result<Option<IdentityRecord>>;
    /// Puts an identity in the place of the one with that public part, or where there is none. Returns false, and changes nothing,
    /// where another one is there.
    fn replace_identity(
        &mut self,
        account: AccountId,
        identity: &IdentityRecord,
        replaced: Option<&[u8]>,
    ) -> Result<bool>;

    /// Returns the keys of a workspace as they are sealed to a member, if they are.
    fn envelope(&self, workspace: WorkspaceNumber, account: AccountId) -> Result<Option<Vec<u8>>>;
    /// Puts an envelope for a member in the place of the one before. It goes with the membership.
    fn set_envelope(
        &mut self,
        workspace: WorkspaceNumber,
        account: AccountId,
        bytes: &[u8],
    ) -> Result<()>;
}
