//! Rows of invitations: who has the secret of one may make an account, once.

use super::Result;

/// Number of an invitation in the database, by which who runs the server names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InvitationId(pub(crate) i64);

impl InvitationId {
    /// Takes a number that somebody typed. Whether there is such an invitation, the database knows.
    pub fn from_number(number: u32) -> Self {
        Self(number.into())
    }

    /// Returns the number.
    pub fn number(self) -> i64 {
        self.0
    }
}

/// What a new invitation is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewInvitation {
    /// The name that is proposed to who comes; they may choose another one.
    pub name: Option<String>,
    /// How many bytes the account may store; nothing for any number.
    pub quota_bytes: Option<u64>,
    /// When it was made, in seconds since 1970.
    pub made: i64,
    /// From when on it is worth nothing, in seconds since 1970.
    pub expires: i64,
}

/// An invitation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvitationRecord {
    /// Its number.
    pub id: InvitationId,
    /// What it is.
    pub invitation: NewInvitation,
    /// When it was used or taken back, in seconds since 1970.
    pub ended: Option<i64>,
    /// The name of the account that was made by it.
    pub account: Option<String>,
}

/// Invitations, also those that have ended.
pub trait InvitationTables {
    /// Returns the invitation with that secret.
    fn invitation_by_secret(&self, secret_hash: &[u8; 32]) -> Result<Option<InvitationRecord>>;
    /// Returns all invitations in the order in which they were made.
    fn invitations(&self) -> Result<Vec<InvitationRecord>>;
    /// Adds an invitation.
    fn insert_invitation(
        &mut self,
        invitation: &NewInvitation,
        secret_hash: &[u8; 32],
    ) -> Result<InvitationId>;
    /// Ends an invitation: by the account of that name, which is made by it, or because it is taken back. Returns false, and changes nothing,
    /// where it has ended before or is not there. Of several servers that do so at once one hears yes.
    fn end_invitation(&mut self, id: InvitationId, account: Option<&str>, now: i64)
    -> Result<bool>;
    /// Forgets those that were used, taken back or expired before that time.
    fn delete_old_invitations(&mut self, before: i64) -> Result<()>;
}
