//! The keys of a sealed workspace: which there are, what follows from what, and how they are kept.
//!
//! *Participants*: the person who knows the passphrase or has the recovery key; their devices; stores that keep the
//! locked keys and may be hostile. *Goals*: a store that has everything cannot read anything, nor put anything in; a
//! passphrase changes without touching data; a device works without asking, and holds no key that outlives the next
//! one. *Non-goals*: several people (they come with members); hiding that there is a workspace.
//! *Invariants*: every key has one purpose, which is named where it is derived; a lock below the least cost is refused
//! before anything is tried with it; whatever is wrong with a secret gives the same error after the same work.
//!
//! The formats in words: `docs/design/keys.md`.

mod identity;
mod lock;
mod object;
pub(crate) mod recovery;
mod secret;

use std::fmt;

use model::environment::{Random, random_bytes};
use model::{DeviceId, WorkspaceId};
use zeroize::Zeroizing;

pub(crate) use identity::MEMBER_DEVICE_PURPOSE;
pub use identity::{Fingerprint, Identity, InvalidFingerprint, LockedIdentity, PublicIdentity};
pub use lock::{KeyCost, Passphrase};
pub use object::{KEY_OBJECT_LENGTH_MAX, KeyObject, Unlocked};
pub(crate) use object::{decode_data_keys, encode_data_keys};
pub use recovery::{InvalidRecoveryKey, RecoveryKey};
pub use secret::Secret;

use crate::error::ContentError;
use crate::signing::{SIGNATURE_LENGTH, SigningKey};

/// How the account signs: the seed of its signing key.
const ACCOUNT_SIGNING: &str = "syncline sealed v1: account signing";

/// How the account keeps the keyring.
const ACCOUNT_KEYRING: &str = "syncline sealed v1: account keyring";

/// How the account keeps the header of the genesis.
const ACCOUNT_GENESIS: &str = "syncline sealed v1: account genesis";

/// What the account signs of a device.
pub(crate) const DEVICE_PURPOSE: &str = "syncline sealed v1: device";

/// How many keys a workspace had at most.
pub const EPOCHS_MAX: usize = 4096;

/// A key of 32 bytes that never shows itself in a log, and is overwritten when it is dropped.
#[derive(Clone)]
pub struct SecretKey(Zeroizing<[u8; 32]>);

impl SecretKey {
    /// Wraps the bytes of a key.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// Makes a new key.
    pub fn random(random: &dyn Random) -> Self {
        Self::from_bytes(random_bytes(random))
    }

    /// Returns the bytes of the key.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Derives the key of a purpose.
    pub fn derive(&self, purpose: &str) -> Self {
        Self::from_bytes(blake3::derive_key(purpose, self.as_bytes()))
    }

    /// Derives the key of one thing among those of a purpose.
    pub fn derive_for(&self, parts: &[&[u8]]) -> Self {
        Self::from_bytes(self.hash(parts))
    }

    /// Returns the keyed hash of some parts, whose lengths are fixed by their purpose.
    pub fn hash(&self, parts: &[&[u8]]) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_keyed(self.as_bytes());
        for part in parts {
            hasher.update(part);
        }
        *hasher.finalize().as_bytes()
    }
}

impl PartialEq for SecretKey {
    fn eq(&self, other: &Self) -> bool {
        use subtle::ConstantTimeEq;
        self.as_bytes().ct_eq(other.as_bytes()).into()
    }
}

impl Eq for SecretKey {}

impl fmt::Debug for SecretKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SecretKey(secret)")
    }
}

/// The key of the account that owns a workspace. It opens the keyring and vouches for devices and members; no device keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountKey(SecretKey);

impl AccountKey {
    /// Wraps the bytes of a key.
    pub fn new(key: SecretKey) -> Self {
        Self(key)
    }

    /// Returns the key with which the account signs.
    ///
    /// # Errors
    /// [`ContentError::UnsupportedSeal`].
    pub fn signing(&self) -> Result<SigningKey, ContentError> {
        SigningKey::from_seed(self.0.derive(ACCOUNT_SIGNING))
    }

    pub(crate) fn keyring_key(&self) -> SecretKey {
        self.0.derive(ACCOUNT_KEYRING)
    }

    pub(crate) fn genesis_key(&self) -> SecretKey {
        self.0.derive(ACCOUNT_GENESIS)
    }

    fn secret(&self) -> &SecretKey {
        &self.0
    }

    /// Makes a device one of the account's.
    ///
    /// # Errors
    /// [`ContentError::UnsupportedSeal`].
    pub fn certify(
        &self,
        workspace: WorkspaceId,
        device: DeviceId,
        seed: SecretKey,
    ) -> Result<DeviceIdentity, ContentError> {
        let signing = SigningKey::from_seed(seed)?;
        let certificate = self.certify_key(workspace, device, signing.public())?;
        Ok(DeviceIdentity { device, signing, certificate })
    }

    /// Vouches for a device whose signing key is elsewhere.
    ///
    /// # Errors
    /// [`ContentError::UnsupportedSeal`].
    pub fn certify_key(
        &self,
        workspace: WorkspaceId,
        device: DeviceId,
        public: &[u8; 32],
    ) -> Result<[u8; SIGNATURE_LENGTH], ContentError> {
        let message = certified_bytes(workspace, device, public);
        self.signing()?.sign(DEVICE_PURPOSE, &message)
    }
}

pub(crate) fn certified_bytes(
    workspace: WorkspaceId,
    device: DeviceId,
    public: &[u8; 32],
) -> Vec<u8> {
    [&workspace.as_bytes()[..], device.as_bytes(), public].concat()
}

/// What makes a device one of the account's.
#[derive(Debug, Clone)]
pub struct DeviceIdentity {
    /// The device.
    pub device: DeviceId,
    /// The key with which it signs; it never leaves the device.
    pub signing: SigningKey,
    /// The account's signature of device and key.
    pub certificate: [u8; SIGNATURE_LENGTH],
}

/// What the account key opens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keyring {
    /// The way back in when the passphrase is forgotten.
    pub recovery: RecoveryKey,
    /// What chunks are named and cut by; it stays the same, so that what is stored stays known.
    pub content: SecretKey,
    /// The keys that have sealed, the first one first; the last one seals.
    pub epochs: Vec<SecretKey>,
}

impl Keyring {
    /// Makes the keys of a new workspace.
    pub fn new(random: &dyn Random) -> Self {
        Self {
            recovery: RecoveryKey::new(SecretKey::random(random)),
            content: SecretKey::random(random),
            epochs: vec![SecretKey::random(random)],
        }
    }

    /// Adds a key that seals from now on.
    ///
    /// # Errors
    /// [`ContentError::TooManyEpochs`].
    pub fn rotate(&mut self, random: &dyn Random) -> Result<(), ContentError> {
        if self.epochs.len() >= EPOCHS_MAX {
            return Err(ContentError::TooManyEpochs { max: EPOCHS_MAX });
        }
        self.epochs.push(SecretKey::random(random));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
