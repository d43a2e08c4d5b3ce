//! Who is asking: passwords, tokens, and the caller that both lead to.
//!
//! *Participants*: the login, which turns a password into a token once, and every other door, which turns a token
//! into a [`Caller`]. *Invariants*: a password is kept as what proves it only ([`passwords`]), a token as a hash only (it has 256 random
//! bits, so a fast hash is enough, and looking the hash up tells nothing about how much of a guess was right);
//! neither has a text form that a log could hold. The secret of a second factor ([`totp`]) is the one thing that is kept as it
//! is: who computes codes needs it.

use std::fmt;

use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use argon2::{Algorithm, Argon2, Params, Version};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use model::environment::random_bytes;
use model::{DeviceId, Random};

use crate::error::{Result, ServerError};
use crate::metadata::AccountId;

mod base32;
pub mod invitation;
pub mod passwords;
pub mod second_factor;
pub mod subject;
pub mod totp;

/// Memory of one password hash, in KiB: the least that OWASP advises.
const MEMORY_KIB: u32 = 19 * 1024;

/// Passes over the memory.
const PASSES: u32 = 2;

/// The longest password, in bytes; a longer one only costs time.
const PASSWORD_LENGTH_MAX: usize = 1024;

/// The hash of an account that has no password, for example in a simulation; no password fits it.
pub const NO_PASSWORD: &str = "!";

/// A device that has proved who it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Caller {
    /// Its account.
    pub account: AccountId,
    /// The device.
    pub device: DeviceId,
}

/// What a device shows with every request.
#[derive(Clone, PartialEq, Eq)]
pub struct Token([u8; 32]);

impl Token {
    /// Makes a new token.
    pub fn generate(random: &dyn Random) -> Self {
        Self(random_bytes(random))
    }

    /// Reads the text form; nothing where it is not one.
    pub fn from_text(text: &str) -> Option<Self> {
        // Ids are read strictly, one spelling each, so borrow their reader.
        text.parse::<model::PackId>().ok().map(|id| Self(*id.as_bytes()))
    }

    /// Returns the text form, for the device alone.
    pub fn to_text(&self) -> String {
        model::PackId::from_bytes(self.0).to_string()
    }

    /// Returns what the server keeps of it.
    pub fn hash(&self) -> [u8; 32] {
        blake3::derive_key("syncline 2026 device token", &self.0)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Token(..)")
    }
}

/// Reads a secret that stands in an address; nothing where it is none. Each has one spelling.
fn secret_of_address(text: &str) -> Option<[u8; 32]> {
    URL_SAFE_NO_PAD.decode(text).ok()?.try_into().ok()
}

/// Returns how a secret stands in an address.
fn secret_to_address(secret: &[u8; 32]) -> String {
    URL_SAFE_NO_PAD.encode(secret)
}

/// What stands in the address of a link.
#[derive(Clone, PartialEq, Eq)]
pub struct LinkSecret([u8; 32]);

impl LinkSecret {
    /// Makes a new secret.
    pub fn generate(random: &dyn Random) -> Self {
        Self(random_bytes(random))
    }

    /// Reads the text form; nothing where it is not one. Each secret has one spelling.
    pub fn from_text(text: &str) -> Option<Self> {
        secret_of_address(text).map(Self)
    }

    /// Returns the text form, for an address.
    pub fn to_text(&self) -> String {
        secret_to_address(&self.0)
    }

    /// Returns what the server keeps of it. No token has such a hash, so no link is taken for one.
    pub fn hash(&self) -> [u8; 32] {
        blake3::derive_key("syncline 2026 link secret", &self.0)
    }

    /// Returns what proves until a moment, in seconds since 1970, that who shows it knew the password of the link. Only who
    /// has the hash of the password can make one, and it ends with that password.
    pub fn pass(&self, password_hash: &str, ends: i64) -> String {
        format!("{ends}.{}", self.proof(password_hash, ends).to_hex())
    }

    /// Tells whether [`Self::pass`] has made this text, and it has not ended.
    pub fn has_pass(&self, text: &str, password_hash: &str, now: i64) -> bool {
        let parts = text.split_once('.').and_then(|(ends, proof)| {
            Some((ends.parse().ok()?, blake3::Hash::from_hex(proof).ok()?))
        });
        // Hashes are compared in the same time, whatever is in them.
        parts.is_some_and(|(ends, proof)| now < ends && self.proof(password_hash, ends) == proof)
    }

    fn proof(&self, password_hash: &str, ends: i64) -> blake3::Hash {
        let key = blake3::derive_key("syncline 2026 link pass", password_hash.as_bytes());
        blake3::Hasher::new_keyed(&key).update(&self.0).update(&ends.to_le_bytes()).finalize()
    }
}

impl fmt::Debug for LinkSecret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("LinkSecret(..)")
    }
}

fn argon2() -> Argon2<'static> {
    let params = Params::new(MEMORY_KIB, PASSES, 1, None).expect("the constants are in range");
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
}

/// Checks what a new password must be.
///
/// # Errors
/// [`ServerError::Invalid`] for an empty or overlong one.
pub fn check_password(password: &str) -> Result<()> {
    let invalid =
        |reason: &str| ServerError::Invalid { what: "password", reason: reason.to_owned() };
    match password.len() {
        0 => Err(invalid("it is empty")),
        length if length > PASSWORD_LENGTH_MAX => Err(invalid("it is too long")),
        _ => Ok(()),
    }
}

/// Returns the Argon2id hash of a password in PHC form.
///
/// # Errors
/// [`ServerError::Invalid`] for a password that is none.
pub fn hash_password(password: &str, random: &dyn Random) -> Result<String> {
    check_password(password)?;
    let salt: [u8; 16] = random_bytes(random);
    let hash: PasswordHash = argon2()
        .hash_password_with_salt(password.as_bytes(), &salt)
        .map_err(|error| ServerError::Invalid { what: "password", reason: error.to_string() })?;
    Ok(hash.to_string())
}

/// Tells whether the password is the one of the hash, or of no account at all, in about the same time.
pub fn verify_password(password: &str, hash: Option<&str>) -> bool {
    let parsed = hash.and_then(|hash| PasswordHash::new(hash).ok());
    match parsed {
        Some(hash) if password.len() <= PASSWORD_LENGTH_MAX => {
            argon2().verify_password(password.as_bytes(), &hash).is_ok()
        }
        _ => {
            // Nobody learns from the time that there is no such account.
            let password = &password.as_bytes()[..password.len().min(PASSWORD_LENGTH_MAX)];
            let mut output = [0; 32];
            let hashed = argon2().hash_password_into(password, b"no such account", &mut output);
            std::hint::black_box((output, hashed.is_ok()));
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Counter;

    #[test]
    fn password_fits_its_own_hash_only() {
        let random = Counter::default();
        let hash = hash_password("correct horse", &random).unwrap();
        assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hash}");
        assert!(verify_password("correct horse", Some(&hash)));
        assert!(!verify_password("correct horsf", Some(&hash)));
        assert!(!verify_password("correct horse", None));
        assert!(!verify_password("", Some(NO_PASSWORD)));
    }

    #[test]
    fn equal_passwords_have_different_hashes() {
        let random = Counter::default();
        assert_ne!(hash_password("a", &random).unwrap(), hash_password("a", &random).unwrap());
    }

    #[test]
    fn empty_and_overlong_passwords_are_refused() {
        let random = Counter::default();
        assert!(hash_password("", &random).is_err());
        assert!(hash_password(&"x".repeat(PASSWORD_LENGTH_MAX + 1), &random).is_err());
    }

    #[test]
    fn token_returns_from_its_text_and_never_shows_in_debug_output() {
        let token = Token::generate(&Counter::default());
        assert_eq!(Token::from_text(&token.to_text()), Some(token.clone()));
        assert_eq!(format!("{token:?}"), "Token(..)");
        for text in ["", "xyz", &"A".repeat(64), &"a".repeat(65)] {
            assert_eq!(Token::from_text(text), None);
        }
    }

    #[test]
    fn secret_of_a_link_has_one_spelling_and_is_no_token() {
        let secret = LinkSecret::generate(&Counter::default());
        let text = secret.to_text();
        assert_eq!((text.len(), LinkSecret::from_text(&text)), (43, Some(secret.clone())));
        assert_eq!(format!("{secret:?}"), "LinkSecret(..)");
        assert_ne!(secret.hash(), Token(secret.0).hash());
        for text in ["", "abc", &text[1..], &format!("{text}="), &format!("{text}A"), "ä"] {
            assert_eq!(LinkSecret::from_text(text), None, "{text}");
        }
        // The last of 43 letters has two bits too many, which must be zero.
        let other = format!("{}B", &text[..42]);
        assert!(LinkSecret::from_text(&other).is_none_or(|other| other != secret));
    }

    #[test]
    fn pass_is_worth_something_for_its_link_its_password_and_its_time_only() {
        let random = Counter::default();
        let (one, other) = (LinkSecret::generate(&random), LinkSecret::generate(&random));
        let pass = one.pass("hash", 100);
        assert!(one.has_pass(&pass, "hash", 99));
        assert!(!one.has_pass(&pass, "hash", 100));
        assert!(!one.has_pass(&pass, "new hash", 99));
        assert!(!other.has_pass(&pass, "hash", 99));
        let (_, proof) = pass.split_once('.').unwrap();
        let longer = format!("200.{proof}");
        for text in ["", ".", "100", "100.", &format!("{pass}0"), &longer] {
            assert!(!one.has_pass(text, "hash", 99), "{text}");
        }
    }
}
