//! What is kept of the passwords of accounts, and how they are proved: by an exchange that never sends them (OPAQUE, [`passwords`]), or
//! by themselves, for programs that can do nothing else.
//!
//! *Invariants*: every password that is set from now on becomes a record of the exchange; one that was kept before as an Argon2id hash is
//! known by that until it is shown once. An exchange that has begun is with the client, locked, and ends after a minute, so any
//! server on the database may finish it.

use std::collections::HashMap;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use model::environment::random_bytes;
use model::{DeviceId, Random};
use parking_lot::Mutex;
use passwords::{Attempt, PasswordError, Record, Setup};

use super::check_password;
use crate::error::{Result, ServerError};
use crate::metadata::{AccountId, AccountRecord, MetadataError};

/// The name of the secret of [`Passwords`] in the database.
pub const SECRET: &str = "passwords";

/// How a kept record begins; an Argon2id hash begins with its own name.
const RECORD: &str = "$opaque$";

/// How long an exchange may take, in seconds.
const EXCHANGE_SECONDS: i64 = 60;

/// How many exchanges are noted at once.
const EXCHANGES_MAX: usize = 8192;

const NONCE_LENGTH: usize = 24;

/// The secret behind all passwords.
#[derive(Debug)]
pub struct Passwords {
    setup: Setup,
}

/// An exchange that has begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    /// Names it.
    pub id: [u8; 16],
    /// Whose password is proved; nobody's, where there is no such account.
    pub account: Option<AccountId>,
    /// Who changes it; nobody, where somebody signs in.
    pub device: Option<DeviceId>,
}

/// Exchanges that have taken an attempt, at this server.
#[derive(Debug, Default)]
pub struct Exchanges(Mutex<HashMap<[u8; 16], Duration>>);

impl Exchanges {
    /// Notes one that begins. Where too many have begun and were not finished, it is not noted: its attempt is not given back.
    pub fn note(&self, exchange: &Exchange, now: Duration) {
        let mut begun = self.0.lock();
        if begun.len() >= EXCHANGES_MAX {
            begun.retain(|_, since| now < *since + Duration::from_secs(EXCHANGE_SECONDS as u64));
        }
        if begun.len() < EXCHANGES_MAX {
            begun.insert(exchange.id, now);
        }
    }

    /// Tells whether one was noted, and forgets it, so that it is told once.
    pub fn take(&self, exchange: &Exchange) -> bool {
        self.0.lock().remove(&exchange.id).is_some()
    }
}

/// How an exchange has begun, for the client.
#[derive(Debug)]
pub struct Begun {
    /// The server's message.
    pub message: Vec<u8>,
    /// What the client brings back with its proof. It cannot read it.
    pub session: Vec<u8>,
}

impl Passwords {
    /// Makes the bytes of a new secret.
    pub fn generate(random: &dyn Random) -> Vec<u8> {
        Setup::generate(random).to_bytes().to_vec()
    }

    /// Reads the secret.
    ///
    /// # Errors
    /// [`MetadataError::Damaged`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let setup = Setup::from_bytes(bytes).map_err(|_| damaged())?;
        Ok(Self { setup })
    }

    /// Returns what to keep of a password that the server was told.
    ///
    /// # Errors
    /// [`ServerError::Invalid`] for a password that is none; [`ServerError::Unavailable`] without memory for it.
    pub fn keep(&self, account: &str, password: &str, random: &dyn Random) -> Result<String> {
        check_password(password)?;
        self.setup.register(account, password, random).map(|record| text(&record)).map_err(failed)
    }

    /// Tells whether a password that the server was told is that of an account, or of no account at all, in about the same time.
    pub fn verify(
        &self,
        account: &str,
        kept: Option<&str>,
        password: &str,
        random: &dyn Random,
    ) -> bool {
        match kept.map(record) {
            // Kept before there was an exchange, or no password at all.
            Some(None) => super::verify_password(password, kept),
            found => {
                let found = found.flatten();
                // Nobody learns from the time that there is no such account.
                self.setup.verify((account, found.as_ref()), password, random) == Ok(true)
            }
        }
    }

    /// Answers the first message of somebody who wants to prove the password of an account. Where there is no such account or it has no
    /// password, the answer looks as if there were one, and no proof fits.
    ///
    /// # Errors
    /// [`ServerError::Invalid`] for what is no message; [`ServerError::Conflict`] for an account whose password [`is_old`].
    pub fn begin(
        &self,
        (name, account): (&str, Option<&AccountRecord>),
        device: Option<DeviceId>,
        message: &[u8],
        (random, now): (&dyn Random, i64),
    ) -> Result<(Exchange, Begun)> {
        let kept = account.map(|account| account.password_hash.as_str());
        if kept.is_some_and(is_old) {
            let reason = "keeps its password in an older form, so it must be sent once";
            return Err(ServerError::Conflict { what: "the account".to_owned(), reason });
        }
        let record = kept.and_then(record);
        let begun = self.setup.begin_login((name, record.as_ref()), message, random);
        let (attempt, message) = begun.map_err(failed)?;
        let account = account.filter(|_| record.is_some()).map(|account| account.id);
        let exchange = Exchange { id: random_bytes(random), account, device };
        let session = self.lock(&exchange, (&attempt, kept.unwrap_or("")), now, random);
        Ok((exchange, Begun { message, session }))
    }

    /// Opens what the client has brought back; the proof is yet to be looked at by [`Opened::finish`].
    ///
    /// # Errors
    /// [`ServerError::WrongPassword`] for what this server has not made, or long ago.
    pub fn open(&self, session: &[u8], now: i64) -> Result<Opened> {
        let open = || {
            let (nonce, sealed) = session.split_first_chunk::<NONCE_LENGTH>()?;
            let plain = self.cipher().decrypt(&XNonce::from(*nonce), sealed).ok()?;
            let (ends, rest) = plain.split_first_chunk::<8>()?;
            let (id, rest) = rest.split_first_chunk::<16>()?;
            let (account, rest) = rest.split_first_chunk::<8>()?;
            let (device, rest) = rest.split_first_chunk::<{ DeviceId::LENGTH }>()?;
            let (kept, attempt) = rest.split_first_chunk::<32>()?;
            let account = i64::from_le_bytes(*account);
            let device = DeviceId::from_bytes(*device);
            let exchange = Exchange {
                id: *id,
                account: (account != NOBODY).then_some(AccountId(account)),
                device: (device != NO_DEVICE).then_some(device),
            };
            let attempt = Attempt::from_bytes(attempt).ok()?;
            let is_over = i64::from_le_bytes(*ends) <= now;
            (!is_over).then_some(Opened { exchange, kept: *kept, attempt })
        };
        open().ok_or(ServerError::WrongPassword)
    }

    /// Answers the first message about a new password of an account.
    ///
    /// # Errors
    /// [`ServerError::Invalid`] for what is no message.
    pub fn begin_new(&self, name: &str, message: &[u8]) -> Result<Vec<u8>> {
        self.setup.begin_registration(name, message).map_err(failed)
    }

    /// Returns what to keep of a new password, by the last message about it.
    ///
    /// # Errors
    /// [`ServerError::Invalid`] for what is no message.
    pub fn finish_new(message: &[u8]) -> Result<String> {
        Record::from_upload(message).map(|record| text(&record)).map_err(failed)
    }

    fn lock(
        &self,
        exchange: &Exchange,
        (attempt, kept): (&Attempt, &str),
        now: i64,
        random: &dyn Random,
    ) -> Vec<u8> {
        let mut plain = Vec::new();
        plain.extend_from_slice(&now.saturating_add(EXCHANGE_SECONDS).to_le_bytes());
        plain.extend_from_slice(&exchange.id);
        let account = exchange.account.map_or(NOBODY, |account| account.0);
        plain.extend_from_slice(&account.to_le_bytes());
        plain.extend_from_slice(exchange.device.unwrap_or(NO_DEVICE).as_bytes());
        plain.extend_from_slice(blake3::hash(kept.as_bytes()).as_bytes());
        plain.extend_from_slice(&attempt.to_bytes());
        let nonce: [u8; NONCE_LENGTH] = random_bytes(random);
        let payload = Payload::from(plain.as_slice());
        let sealed = self.cipher().encrypt(&XNonce::from(nonce), payload);
        [&nonce[..], &sealed.expect("some hundred bytes can be sealed")].concat()
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        let context = "syncline 2026 password exchange";
        let key = blake3::derive_key(context, &self.setup.to_bytes());
        XChaCha20Poly1305::new(&key.into())
    }
}

/// Accounts have numbers above zero.
const NOBODY: i64 = 0;

/// No device has this id: they are drawn at random.
const NO_DEVICE: DeviceId = DeviceId::from_bytes([0; DeviceId::LENGTH]);

/// An exchange that the client has brought back.
#[derive(Debug)]
pub struct Opened {
    /// What it is about.
    pub exchange: Exchange,
    /// The hash of what was kept of the password when it began.
    kept: [u8; 32],
    attempt: Attempt,
}

impl Opened {
    /// Looks at the proof. `kept` is what is kept of the password of the account now.
    ///
    /// # Errors
    /// [`ServerError::WrongPassword`], also where it was changed since; [`ServerError::Invalid`] for what is no message.
    pub fn finish(self, kept: &str, proof: &[u8]) -> Result<()> {
        if blake3::hash(kept.as_bytes()) != self.kept || self.exchange.account.is_none() {
            return Err(ServerError::WrongPassword);
        }
        self.attempt.finish(proof).map_err(failed)
    }
}

/// Tells whether a password is kept as it was before there was an exchange.
pub fn is_old(kept: &str) -> bool {
    kept.starts_with("$argon2id$")
}

fn text(record: &Record) -> String {
    format!("{RECORD}{}", STANDARD_NO_PAD.encode(record.to_bytes()))
}

fn record(kept: &str) -> Option<Record> {
    let bytes = STANDARD_NO_PAD.decode(kept.strip_prefix(RECORD)?).ok()?;
    Record::from_bytes(&bytes).ok()
}

fn damaged() -> ServerError {
    let what = "the secret of the passwords".to_owned();
    MetadataError::Damaged { what, detail: "it cannot be read".to_owned() }.into()
}

fn failed(error: PasswordError) -> ServerError {
    match error {
        PasswordError::Wrong => ServerError::WrongPassword,
        PasswordError::Kept => damaged(),
        PasswordError::Memory => {
            ServerError::Unavailable { reason: "has no memory to stretch a password" }
        }
        PasswordError::Message | PasswordError::Length => {
            ServerError::Invalid { what: "password", reason: error.to_string() }
        }
    }
}
