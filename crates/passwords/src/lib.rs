//! Passwords that are proved and never sent: OPAQUE (RFC 9807) over ristretto255 with 3DH, SHA-512 and Argon2id.
//!
//! *Participants*: a client, which knows the password; a server, which keeps a [`Record`] for each account and one [`Setup`] for all.
//! *Goals*: a server, and whoever reads what it is sent, learns nothing by which a guess could be tested without the server's own
//! records; a client learns whether its guess was right only by asking the server once for each guess. *Non-goals*: to keep
//! a weak password from a server that tries its own records, each at the price of an Argon2id. *Invariants*: who is unknown is answered
//! as who is known, and each time alike, so nobody learns which accounts there are.
//!
//! Messages are bytes without a version: both halves come from one crate, and the door that carries them has a version.
#![forbid(unsafe_code)]

use argon2::{Algorithm, Argon2, Params, Version};
use model::Random;
use opaque_ke::errors::InternalError;
use opaque_ke::generic_array::{ArrayLength, GenericArray};
use opaque_ke::key_exchange::tripledh::TripleDh;
use opaque_ke::ksf::Ksf;
use opaque_ke::rand::{self, CryptoRng, RngCore};
use opaque_ke::{CipherSuite, Ristretto255};
use sha2::Sha512;

mod client;
mod server;

pub use client::{ExportKey, Login, Registration};
pub use server::{Attempt, Record, Setup};

/// Memory of one stretching of a password, in KiB: the least that OWASP advises.
const MEMORY_KIB: u32 = 19 * 1024;

/// Passes over the memory.
const PASSES: u32 = 2;

/// The longest password, in bytes; a longer one only costs time.
pub const PASSWORD_LENGTH_MAX: usize = 1024;

/// Why an exchange came to nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PasswordError {
    /// The other side sent what is no message of this step.
    #[error("the message about the password is damaged or out of turn")]
    Message,
    /// The password is not that of the account, or the account is not there; or the server is not the one that knew it.
    #[error("the account or the password is wrong")]
    Wrong,
    /// A kept setup or record is not one.
    #[error("what is kept about passwords is damaged")]
    Kept,
    /// The password is longer than [`PASSWORD_LENGTH_MAX`], or empty.
    #[error("a password has 1 to {PASSWORD_LENGTH_MAX} bytes")]
    Length,
    /// There is not enough memory to stretch it: 19 MiB.
    #[error("there is not enough memory to stretch the password")]
    Memory,
}

/// The parts of OPAQUE that are used here.
#[derive(Debug)]
struct Suite;

impl CipherSuite for Suite {
    type OprfCs = Ristretto255;
    type KeyExchange = TripleDh<Ristretto255, Sha512>;
    type Ksf = Stretch;
}

/// Argon2id. Its salt is empty as RFC 9807 (section 4) has it, since what is stretched is salted by the server's key of the account.
#[derive(Default)]
struct Stretch;

impl Ksf for Stretch {
    fn hash<L: ArrayLength<u8>>(
        &self,
        input: GenericArray<u8, L>,
    ) -> Result<GenericArray<u8, L>, InternalError> {
        let params =
            Params::new(MEMORY_KIB, PASSES, 1, None).map_err(|_| InternalError::KsfError)?;
        let mut output = GenericArray::default();
        Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
            .hash_password_into(&input, &[0; 16], &mut output)
            .map_err(|_| InternalError::KsfError)?;
        Ok(output)
    }
}

/// Our source of random bytes, as the protocol's library wants it.
struct Source<'a>(&'a dyn Random);

impl RngCore for Source<'_> {
    fn next_u32(&mut self) -> u32 {
        u32::from_le_bytes(model::environment::random_bytes(self.0))
    }

    fn next_u64(&mut self) -> u64 {
        u64::from_le_bytes(model::environment::random_bytes(self.0))
    }

    fn fill_bytes(&mut self, bytes: &mut [u8]) {
        self.0.fill(bytes);
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), rand::Error> {
        self.0.fill(bytes);
        Ok(())
    }
}

/// [`Random`] promises bytes that nobody can predict.
impl CryptoRng for Source<'_> {}

/// Checks what a password must be.
///
/// # Errors
/// [`PasswordError::Length`].
pub fn check(password: &str) -> Result<(), PasswordError> {
    match password.len() {
        1..=PASSWORD_LENGTH_MAX => Ok(()),
        _ => Err(PasswordError::Length),
    }
}

#[cfg(test)]
mod tests;
