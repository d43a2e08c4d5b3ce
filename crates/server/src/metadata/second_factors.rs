//! Rows of second factors and of recovery codes.
//!
//! What must happen once is decided by the row itself: each method that takes something says whether it was there to be taken, so that of
//! two servers with one code only one hears yes.

use super::{AccountId, Result};
use crate::auth::totp::TotpSecret;

/// The second factor of an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecondFactorRecord {
    /// What codes are computed from.
    pub secret: TotpSecret,
    /// Tells whether it is wanted at a sign-in; before that, it waits for its first code.
    pub is_on: bool,
    /// The newest step whose code was used; 0 before the first.
    pub used_step: i64,
    /// Since when it is on, or waits, in seconds since 1970.
    pub since: i64,
}

/// Second factors, at most one of each account, and recovery codes.
pub trait SecondFactorTables {
    /// Returns the second factor of an account, also one that waits for its first code.
    fn second_factor(&self, account: AccountId) -> Result<Option<SecondFactorRecord>>;
    /// Lets a secret wait for its first code, in the place of another that does. Returns false, and changes nothing, where one is on.
    fn offer_second_factor(
        &mut self,
        account: AccountId,
        secret: &TotpSecret,
        now: i64,
    ) -> Result<bool>;
    /// Turns on the secret that waits, with the step of its first code. Returns false, and changes nothing, where it does not wait any more.
    fn turn_on_second_factor(
        &mut self,
        account: AccountId,
        secret: &TotpSecret,
        step: i64,
        now: i64,
    ) -> Result<bool>;
    /// Notes that the code of a step was used. Returns false, and changes nothing, where this step or a later one was, or nothing is on.
    fn use_step(&mut self, account: AccountId, step: i64) -> Result<bool>;
    /// Removes the second factor of an account and its recovery codes. Returns whether there was one, on or waiting.
    fn delete_second_factor(&mut self, account: AccountId) -> Result<bool>;

    /// Adds recovery codes by their hashes.
    fn insert_recovery_codes(&mut self, account: AccountId, hashes: &[[u8; 32]]) -> Result<()>;
    /// Returns how many are left.
    fn recovery_code_count(&self, account: AccountId) -> Result<u64>;
    /// Removes a recovery code. Returns whether it was there.
    fn delete_recovery_code(&mut self, account: AccountId, hash: &[u8; 32]) -> Result<bool>;
}
