//! Locks: the account key, closed with something that a person has.

use argon2::{Algorithm, Argon2, Params, Version};
use model::WorkspaceId;
use model::codec::{Decode, DecodeError, Decoder, Encode, Encoder};
use model::environment::{Random, random_bytes};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use super::{AccountKey, RecoveryKey, SecretKey};
use crate::cipher::{SMALL_NONCE_LENGTH, TAG_LENGTH, open_small, seal_small};
use crate::error::ContentError;

/// How a lock's key closes it.
const SEALING: &str = "syncline sealed v1: lock sealing";

/// How a lock's key commits to it, so that no lock opens with two keys.
const COMMITMENT: &str = "syncline sealed v1: lock commitment";

/// What is said with every lock, before what is particular to it.
const ASSOCIATED: &[u8] = b"syncline sealed v1: lock\0";

const SALT_LENGTH: usize = 16;

/// What it costs to try a passphrase: the parameters of Argon2id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyCost {
    /// Memory in KiB.
    pub memory: u32,
    /// Passes over it.
    pub passes: u32,
    /// Lanes.
    pub lanes: u32,
}

impl KeyCost {
    /// The least that is written and read. It stands here and nowhere else, so that no store can lower it.
    pub const LEAST: Self = Self { memory: 64 * 1024, passes: 3, lanes: 1 };

    /// The most that is read, so that no store can make a device work for hours.
    pub const MOST: Self = Self { memory: 1024 * 1024, passes: 64, lanes: 16 };

    fn check(self) -> Result<(), ContentError> {
        let (least, most) = (Self::LEAST, Self::MOST);
        let fits = (least.memory..=most.memory).contains(&self.memory)
            && (least.passes..=most.passes).contains(&self.passes)
            && (least.lanes..=most.lanes).contains(&self.lanes);
        if fits { Ok(()) } else { Err(ContentError::KeyCost { cost: self }) }
    }
}

/// What a person remembers.
#[derive(Clone, PartialEq, Eq)]
pub struct Passphrase(Zeroizing<String>);

impl Passphrase {
    /// The shortest one that a workspace is made with, in characters: whoever gets hold of a store can try passphrases as long as they like.
    pub const LENGTH_MIN: usize = 8;

    /// Takes what was typed, as it is.
    pub fn new(text: Zeroizing<String>) -> Self {
        Self(text)
    }

    /// Returns how many characters it has.
    pub fn length(&self) -> usize {
        self.0.chars().count()
    }

    fn stretch(&self, salt: &[u8; SALT_LENGTH], cost: KeyCost) -> Result<SecretKey, ContentError> {
        let params = Params::new(cost.memory, cost.passes, cost.lanes, Some(32));
        let params = params.map_err(|_| ContentError::KeyCost { cost })?;
        let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        let mut key = Zeroizing::new([0; 32]);
        argon2
            .hash_password_into(self.0.as_bytes(), salt, &mut *key)
            .map_err(|_| ContentError::KeyCost { cost })?;
        Ok(SecretKey::from_bytes(*key))
    }
}

impl std::fmt::Debug for Passphrase {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Passphrase(secret)")
    }
}

/// How a lock is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Method {
    /// With a passphrase.
    Passphrase { salt: [u8; SALT_LENGTH], cost: KeyCost },
    /// With the recovery key.
    Recovery,
}

/// The account key behind a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lock {
    pub(super) method: Method,
    nonce: [u8; SMALL_NONCE_LENGTH],
    commitment: [u8; 32],
    sealed: [u8; 32 + TAG_LENGTH],
}

/// The workspace that a lock belongs to: of another one it opens nothing.
#[derive(Debug, Clone, Copy)]
pub(super) struct Owner<'a> {
    pub(super) workspace: WorkspaceId,
    pub(super) account: &'a [u8; 32],
}

impl Lock {
    /// Closes the account key with a passphrase.
    pub(super) fn with_passphrase(
        account: &AccountKey,
        owner: Owner<'_>,
        passphrase: &Passphrase,
        random: &dyn Random,
    ) -> Result<Self, ContentError> {
        let method = Method::Passphrase { salt: random_bytes(random), cost: KeyCost::LEAST };
        let key = method.passphrase_key(passphrase)?;
        Ok(Self::close(account, owner, method, &key, random))
    }

    /// Closes the account key with the recovery key.
    pub(super) fn with_recovery(
        account: &AccountKey,
        owner: Owner<'_>,
        recovery: &RecoveryKey,
        random: &dyn Random,
    ) -> Self {
        Self::close(account, owner, Method::Recovery, &recovery.lock_key(), random)
    }

    fn close(
        account: &AccountKey,
        owner: Owner<'_>,
        method: Method,
        key: &SecretKey,
        random: &dyn Random,
    ) -> Self {
        let nonce = random_bytes(random);
        let associated = associated(owner, &method);
        let commitment = commitment(key, &nonce, &associated);
        let sealed =
            seal_small(&key.derive(SEALING), nonce, &associated, account.secret().as_bytes());
        let sealed = sealed.try_into().expect("a sealed key has the length of key and tag");
        Self { method, nonce, commitment, sealed }
    }

    /// Opens the lock with the key that belongs to its method.
    pub(super) fn open(
        &self,
        owner: Owner<'_>,
        key: &SecretKey,
    ) -> Result<AccountKey, ContentError> {
        let associated = associated(owner, &self.method);
        let expected = commitment(key, &self.nonce, &associated);
        let is_committed: bool = expected.ct_eq(&self.commitment).into();
        let opened = open_small(&key.derive(SEALING), self.nonce, &associated, &self.sealed);
        let opened = opened.filter(|_| is_committed).ok_or(ContentError::WrongKey)?;
        let bytes: [u8; 32] = opened.as_slice().try_into().map_err(|_| ContentError::WrongKey)?;
        Ok(AccountKey::new(SecretKey::from_bytes(bytes)))
    }
}

impl Method {
    /// Returns the key that a passphrase makes for this lock.
    pub(super) fn passphrase_key(
        &self,
        passphrase: &Passphrase,
    ) -> Result<SecretKey, ContentError> {
        match self {
            Self::Passphrase { salt, cost } => {
                cost.check()?;
                passphrase.stretch(salt, *cost)
            }
            Self::Recovery => Err(ContentError::WrongKey),
        }
    }
}

fn associated(owner: Owner<'_>, method: &Method) -> Vec<u8> {
    let mut encoder = Encoder::default();
    encoder.raw(ASSOCIATED);
    owner.workspace.encode(&mut encoder);
    encoder.raw(owner.account);
    method.encode(&mut encoder);
    encoder.into_bytes()
}

fn commitment(key: &SecretKey, nonce: &[u8; SMALL_NONCE_LENGTH], associated: &[u8]) -> [u8; 32] {
    key.derive(COMMITMENT).hash(&[nonce, associated])
}

impl Encode for Method {
    fn encode(&self, encoder: &mut Encoder) {
        match self {
            Self::Passphrase { salt, cost } => {
                encoder.unsigned(0);
                encoder.raw(salt);
                for parameter in [cost.memory, cost.passes, cost.lanes] {
                    encoder.unsigned(u64::from(parameter));
                }
            }
            Self::Recovery => encoder.unsigned(1),
        }
    }
}

impl Decode for Method {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(match decoder.unsigned_max(1)? {
            0 => {
                let salt = decoder.array()?;
                let memory = decoder.unsigned32()?;
                let passes = decoder.unsigned32()?;
                let lanes = decoder.unsigned32()?;
                Self::Passphrase { salt, cost: KeyCost { memory, passes, lanes } }
            }
            _ => Self::Recovery,
        })
    }
}

impl Encode for Lock {
    fn encode(&self, encoder: &mut Encoder) {
        self.method.encode(encoder);
        encoder.raw(&self.nonce);
        encoder.raw(&self.commitment);
        encoder.raw(&self.sealed);
    }
}

impl Decode for Lock {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            method: Method::decode(decoder)?,
            nonce: decoder.array()?,
            commitment: decoder.array()?,
            sealed: decoder.array()?,
        })
    }
}
