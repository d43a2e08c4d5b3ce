//! Who somebody is to others: the keys of a person at a server, by which they are let into workspaces of others.
//!
//! *Participants*: a person, whose devices have the identity; the owner of a workspace, who seals its keys to it; a server, which
//! hands out the public part, and may hand out another one. *Goals*: two people who compare 24 letters know that no server stands
//! between them; a device of the person needs nobody to become one that writes in a workspace. *Non-goals*: that nobody learns who
//! shares with whom; taking an identity back. *Invariants*: both public keys follow from one seed, and the fingerprint covers both.
//!
//! The formats in words, with vectors: `docs/design/keys.md`, "Members".

use std::fmt;

use model::codec::{
    Decode, DecodeError, Decoder, Encode, Encoder, Message, decode_message, encode_message,
};
use model::environment::Random;
use model::{DeviceId, WorkspaceId};

use super::lock::{Lock, Owner};
use super::recovery::{digits_of, value_of};
use super::{AccountKey, DeviceIdentity, Passphrase, SecretKey, certified_bytes};
use crate::error::ContentError;
use crate::hpke;
use crate::signing::SigningKey;

/// How an identity signs.
const SIGNING: &str = "syncline sealed v1: identity signing";

/// How an identity opens envelopes.
const OPENING: &str = "syncline sealed v1: identity opening";

/// What people compare.
const FINGERPRINT: &str = "syncline sealed v1: identity fingerprint";

/// What a lock of an identity names in place of a workspace.
const NAME: &str = "syncline sealed v1: identity name";

/// What an identity signs of a device.
pub(crate) const MEMBER_DEVICE_PURPOSE: &str = "syncline sealed v1: member device";

const FINGERPRINT_LENGTH: usize = 15;

/// How many letters and digits a fingerprint has: 120 bits.
const CHARACTERS: usize = FINGERPRINT_LENGTH * 8 / 5;

const GROUP: usize = 4;

/// What everybody may know of an identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicIdentity {
    /// Verifies what it signs.
    pub signing: [u8; 32],
    /// Seals envelopes to it.
    pub opening: [u8; 32],
}

impl PublicIdentity {
    /// Length in bytes.
    pub const LENGTH: usize = 64;

    /// Returns both keys in a row.
    pub fn to_bytes(&self) -> [u8; Self::LENGTH] {
        let mut bytes = [0; Self::LENGTH];
        bytes[..32].copy_from_slice(&self.signing);
        bytes[32..].copy_from_slice(&self.opening);
        bytes
    }

    /// Reads what [`Self::to_bytes`] has written; nothing where the length is another.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (signing, opening) = bytes.split_first_chunk()?;
        Some(Self { signing: *signing, opening: opening.try_into().ok()? })
    }

    /// Returns what people compare.
    pub fn fingerprint(&self) -> Fingerprint {
        let hash = blake3::derive_key(FINGERPRINT, &self.to_bytes());
        let (first, _) = hash.split_first_chunk().expect("a hash is longer");
        Fingerprint(*first)
    }

    fn name(&self) -> WorkspaceId {
        let hash = blake3::derive_key(NAME, &self.to_bytes());
        let (first, _) = hash.split_first_chunk().expect("a hash is longer");
        WorkspaceId::from_bytes(*first)
    }
}

impl Encode for PublicIdentity {
    fn encode(&self, encoder: &mut Encoder) {
        encoder.raw(&self.to_bytes());
    }
}

impl Decode for PublicIdentity {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(Self { signing: decoder.array()?, opening: decoder.array()? })
    }
}

/// Text that is not a fingerprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this is not a fingerprint: {CHARACTERS} letters and digits are expected")]
pub struct InvalidFingerprint;

/// What people compare of an identity: nobody finds another one with the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint([u8; FINGERPRINT_LENGTH]);

impl Fingerprint {
    /// Reads what was typed, whatever its case and separators.
    ///
    /// # Errors
    /// [`InvalidFingerprint`].
    pub fn from_text(text: &str) -> Result<Self, InvalidFingerprint> {
        value_of(text, CHARACTERS).map(Self).ok_or(InvalidFingerprint)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&digits_of(&self.0, CHARACTERS, GROUP))
    }
}

/// The keys of a person.
#[derive(Debug, Clone)]
pub struct Identity {
    seed: SecretKey,
    signing: SigningKey,
    opening: SecretKey,
    public: PublicIdentity,
}

impl Identity {
    /// Makes a new one.
    ///
    /// # Errors
    /// [`ContentError::UnsupportedSeal`].
    pub fn random(random: &dyn Random) -> Result<Self, ContentError> {
        Self::from_seed(SecretKey::random(random))
    }

    /// Returns the one of a seed.
    ///
    /// # Errors
    /// [`ContentError::UnsupportedSeal`].
    pub fn from_seed(seed: SecretKey) -> Result<Self, ContentError> {
        let signing = SigningKey::from_seed(seed.derive(SIGNING))?;
        let opening = seed.derive(OPENING);
        let public =
            PublicIdentity { signing: *signing.public(), opening: hpke::public_key(&opening) };
        Ok(Self { seed, signing, opening, public })
    }

    /// Returns the seed, which is the identity.
    pub fn seed(&self) -> &SecretKey {
        &self.seed
    }

    /// Returns what everybody may know.
    pub fn public(&self) -> &PublicIdentity {
        &self.public
    }

    pub(crate) fn opening(&self) -> &SecretKey {
        &self.opening
    }

    /// Makes a device one of this person's in a workspace.
    ///
    /// # Errors
    /// [`ContentError::UnsupportedSeal`].
    pub(crate) fn certify(
        &self,
        workspace: WorkspaceId,
        device: DeviceId,
        seed: SecretKey,
    ) -> Result<DeviceIdentity, ContentError> {
        let signing = SigningKey::from_seed(seed)?;
        let message = certified_bytes(workspace, device, signing.public());
        let certificate = self.signing.sign(MEMBER_DEVICE_PURPOSE, &message)?;
        Ok(DeviceIdentity { device, signing, certificate })
    }

    /// Locks it with a passphrase, for the other devices of the person.
    ///
    /// # Errors
    /// [`ContentError::KeyCost`].
    pub fn lock(
        &self,
        passphrase: &Passphrase,
        random: &dyn Random,
    ) -> Result<LockedIdentity, ContentError> {
        let (name, key) = (self.public.name(), AccountKey::new(self.seed.clone()));
        let owner = Owner { workspace: name, account: &self.public.signing };
        let lock = Lock::with_passphrase(&key, owner, passphrase, random)?;
        Ok(LockedIdentity { public: self.public, lock })
    }
}

/// An identity behind a passphrase, as a server keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockedIdentity {
    public: PublicIdentity,
    lock: Lock,
}

impl LockedIdentity {
    /// Returns what everybody may know of it; what is behind the lock is that, or it does not open.
    pub fn public(&self) -> &PublicIdentity {
        &self.public
    }

    /// Unlocks it.
    ///
    /// # Errors
    /// [`ContentError::WrongKey`], whatever does not fit; [`ContentError::KeyCost`] where the lock is weaker than it may be.
    pub fn unlock(&self, passphrase: &Passphrase) -> Result<Identity, ContentError> {
        let owner = Owner { workspace: self.public.name(), account: &self.public.signing };
        let key = self.lock.method.passphrase_key(passphrase)?;
        let seed = self.lock.open(owner, &key)?.secret().clone();
        let identity = Identity::from_seed(seed)?;
        if identity.public == self.public { Ok(identity) } else { Err(ContentError::WrongKey) }
    }

    /// Returns the bytes to store.
    pub fn to_bytes(&self) -> Vec<u8> {
        encode_message(self)
    }

    /// Reads what was stored.
    ///
    /// # Errors
    /// [`ContentError::KeyObject`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ContentError> {
        decode_message(bytes).map_err(|source| ContentError::KeyObject { source })
    }
}

impl Encode for LockedIdentity {
    fn encode(&self, encoder: &mut Encoder) {
        self.public.encode(encoder);
        self.lock.encode(encoder);
    }
}

impl Decode for LockedIdentity {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(Self { public: PublicIdentity::decode(decoder)?, lock: Lock::decode(decoder)? })
    }
}

impl Message for LockedIdentity {
    const MAGIC: u8 = b'I';
    const KIND: &'static str = "locked identity";
}

#[cfg(test)]
mod tests;
