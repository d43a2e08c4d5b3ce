//! Rows of who accounts are at providers of OpenID Connect.

use super::{AccountId, MetadataError, Result};
use crate::auth::subject::Subject;

/// A subject that is bound to an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubjectRecord {
    /// The person at the provider.
    pub subject: Subject,
    /// Since when, in seconds since 1970.
    pub since: i64,
}

/// Subjects of accounts; each belongs to one account.
pub trait SubjectTables {
    /// Returns the account that a subject is bound to.
    fn account_of_subject(&self, subject: &Subject) -> Result<Option<AccountId>>;
    /// Returns the subjects of an account in the order of issuers and ids.
    fn subjects(&self, account: AccountId) -> Result<Vec<SubjectRecord>>;
    /// Binds a subject to an account. Returns false, and changes nothing, where it is bound already, to whomever.
    fn bind_subject(&mut self, subject: &Subject, account: AccountId, now: i64) -> Result<bool>;
    /// Ends what binds a subject to an account. Returns whether anything did.
    fn unbind_subject(&mut self, subject: &Subject, account: AccountId) -> Result<bool>;
}

impl SubjectRecord {
    /// Puts a record together from what databases keep.
    pub(crate) fn of_columns((issuer, id, since): (String, String, i64)) -> Result<Self> {
        let damaged = |error: crate::error::ServerError| MetadataError::Damaged {
            what: "the subject of an account".to_owned(),
            detail: error.to_string(),
        };
        Ok(Self { subject: Subject::new(&issuer, &id).map_err(damaged)?, since })
    }
}
