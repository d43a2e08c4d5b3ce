//! The key object: the locked keys of a workspace, as they rest in its stores.

use model::codec::{
    Decode, DecodeError, Decoder, Encode, Encoder, Message, decode_message, encode_message,
};
use model::environment::{Random, random_bytes};
use model::{Genesis, WorkspaceId};
use zeroize::Zeroizing;

use super::lock::{Lock, Method, Owner};
use super::{AccountKey, EPOCHS_MAX, Keyring, Passphrase, RecoveryKey, SecretKey};
use crate::cipher::{SMALL_NONCE_LENGTH, TAG_LENGTH, open_small, seal_small};
use crate::error::ContentError;

/// The longest key object, in bytes.
pub const KEY_OBJECT_LENGTH_MAX: usize = 256 * 1024;

/// How many locks there are at most.
const LOCKS_MAX: usize = 16;

/// What is said with the keyring, before the rest of the object.
const ASSOCIATED: &[u8] = b"syncline sealed v1: keyring\0";

/// The locked keys of a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyObject {
    workspace: WorkspaceId,
    generation: u64,
    locks: Vec<Lock>,
    nonce: [u8; SMALL_NONCE_LENGTH],
    keyring: Vec<u8>,
}

/// The keys of a workspace, unlocked: enough to do anything with it.
#[derive(Debug, Clone)]
pub struct Unlocked {
    /// The account key.
    pub account: AccountKey,
    /// What it opens.
    pub keyring: Keyring,
    /// Which key object this was.
    pub generation: u64,
}

impl KeyObject {
    /// Locks the keys of a new workspace with a passphrase and its recovery key.
    ///
    /// # Errors
    /// [`ContentError::NotSealed`] for a plain workspace; [`ContentError::UnsupportedSeal`].
    pub fn new(
        genesis: &Genesis,
        account: &AccountKey,
        keyring: &Keyring,
        passphrase: &Passphrase,
        random: &dyn Random,
    ) -> Result<Self, ContentError> {
        let owner = owner(genesis)?;
        let locks = vec![
            Lock::with_passphrase(account, owner, passphrase, random)?,
            Lock::with_recovery(account, owner, &keyring.recovery, random),
        ];
        Ok(Self::close(owner.workspace, 1, locks, account, keyring, random))
    }

    /// Locks keys that have changed, or with another passphrase: the next generation of this object. Without a passphrase
    /// the one before stays.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn next(
        &self,
        genesis: &Genesis,
        unlocked: &Unlocked,
        passphrase: Option<&Passphrase>,
        random: &dyn Random,
    ) -> Result<Self, ContentError> {
        let owner = owner(genesis)?;
        let (account, keyring) = (&unlocked.account, &unlocked.keyring);
        let mut locks = match passphrase {
            Some(passphrase) => {
                vec![Lock::with_passphrase(account, owner, passphrase, random)?]
            }
            None => {
                let kept =
                    self.locks.iter().filter(|lock| lock.method != Method::Recovery).cloned();
                kept.collect()
            }
        };
        locks.push(Lock::with_recovery(account, owner, &keyring.recovery, random));
        let generation = self.generation.saturating_add(1);
        Ok(Self::close(owner.workspace, generation, locks, account, keyring, random))
    }

    fn close(
        workspace: WorkspaceId,
        generation: u64,
        locks: Vec<Lock>,
        account: &AccountKey,
        keyring: &Keyring,
        random: &dyn Random,
    ) -> Self {
        let nonce = random_bytes(random);
        let mut object = Self { workspace, generation, locks, nonce, keyring: Vec::new() };
        let plain = encode_keyring(keyring);
        let key = account.keyring_key();
        object.keyring = seal_small(&key, nonce, &object.associated(), &plain);
        object
    }

    /// Returns which generation of the keys this is; a later one replaces it.
    pub fn generation(&self) -> u64 {
        self.generation
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

    /// Unlocks the keys with the passphrase.
    ///
    /// # Errors
    /// [`ContentError::WrongKey`], whatever does not fit; [`ContentError::KeyCost`] where the lock is weaker than it may be.
    pub fn unlock(
        &self,
        genesis: &Genesis,
        passphrase: &Passphrase,
    ) -> Result<Unlocked, ContentError> {
        let lock = self.locks.iter().find(|lock| lock.method != Method::Recovery);
        let lock = lock.ok_or(ContentError::WrongKey)?;
        let key = lock.method.passphrase_key(passphrase)?;
        self.unlock_with(genesis, lock, &key)
    }

    /// Unlocks the keys with the recovery key.
    ///
    /// # Errors
    /// [`ContentError::WrongKey`], whatever does not fit.
    pub fn recover(
        &self,
        genesis: &Genesis,
        recovery: &RecoveryKey,
    ) -> Result<Unlocked, ContentError> {
        let lock = self.locks.iter().find(|lock| lock.method == Method::Recovery);
        self.unlock_with(genesis, lock.ok_or(ContentError::WrongKey)?, &recovery.lock_key())
    }

    fn unlock_with(
        &self,
        genesis: &Genesis,
        lock: &Lock,
        key: &SecretKey,
    ) -> Result<Unlocked, ContentError> {
        let owner = owner(genesis)?;
        let account = lock.open(owner, key)?;
        let is_ours =
            self.workspace == owner.workspace && account.signing()?.public() == owner.account;
        let keyring =
            open_small(&account.keyring_key(), self.nonce, &self.associated(), &self.keyring);
        let keyring = keyring.filter(|_| is_ours).ok_or(ContentError::WrongKey)?;
        let keyring =
            decode_keyring(&keyring).map_err(|source| ContentError::KeyObject { source })?;
        Ok(Unlocked { account, keyring, generation: self.generation })
    }

    /// Everything in the object but the keyring itself, so that nothing in it can be changed or exchanged.
    fn associated(&self) -> Vec<u8> {
        let mut encoder = Encoder::default();
        encoder.raw(ASSOCIATED);
        self.encode_locks(&mut encoder);
        encoder.into_bytes()
    }

    fn encode_locks(&self, encoder: &mut Encoder) {
        self.workspace.encode(encoder);
        encoder.unsigned(self.generation);
        encoder.list(&self.locks);
        encoder.raw(&self.nonce);
    }
}

fn owner(genesis: &Genesis) -> Result<Owner<'_>, ContentError> {
    let sealed = genesis.mode.sealed().ok_or(ContentError::NotSealed { what: "workspace" })?;
    Ok(Owner { workspace: genesis.workspace(), account: &sealed.account })
}

/// Writes what names and seals the data of a workspace.
pub(crate) fn encode_data_keys(encoder: &mut Encoder, content: &SecretKey, epochs: &[SecretKey]) {
    encoder.raw(content.as_bytes());
    encoder.unsigned(epochs.len() as u64);
    for epoch in epochs {
        encoder.raw(epoch.as_bytes());
    }
}

/// Reads what [`encode_data_keys`] wrote; at least one key seals.
pub(crate) fn decode_data_keys(
    decoder: &mut Decoder<'_>,
) -> Result<(SecretKey, Vec<SecretKey>), DecodeError> {
    let content = SecretKey::from_bytes(decoder.array()?);
    let count = decoder.unsigned_max(EPOCHS_MAX as u64)?;
    if count == 0 {
        return Err(decoder.invalid("keys", "there is none"));
    }
    let epochs = (0..count).map(|_| decoder.array().map(SecretKey::from_bytes));
    Ok((content, epochs.collect::<Result<_, _>>()?))
}

fn encode_keyring(keyring: &Keyring) -> Zeroizing<Vec<u8>> {
    let mut encoder = Encoder::default();
    encoder.raw(keyring.recovery.secret().as_bytes());
    encode_data_keys(&mut encoder, &keyring.content, &keyring.epochs);
    Zeroizing::new(encoder.into_bytes())
}

fn decode_keyring(bytes: &[u8]) -> Result<Keyring, DecodeError> {
    let mut decoder = Decoder::new(bytes);
    let recovery = RecoveryKey::new(SecretKey::from_bytes(decoder.array()?));
    let (content, epochs) = decode_data_keys(&mut decoder)?;
    decoder.finish()?;
    Ok(Keyring { recovery, content, epochs })
}

impl Encode for KeyObject {
    fn encode(&self, encoder: &mut Encoder) {
        self.encode_locks(encoder);
        encoder.byte_string(&self.keyring);
    }
}

impl Decode for KeyObject {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let workspace = WorkspaceId::decode(decoder)?;
        let generation = decoder.unsigned()?;
        if generation == 0 {
            return Err(decoder.invalid("generation", "zero"));
        }
        let locks: Vec<Lock> = decoder.list()?;
        if locks.is_empty() || locks.len() > LOCKS_MAX {
            return Err(decoder.invalid("locks", "none, or too many"));
        }
        let nonce = decoder.array()?;
        let keyring = decoder.byte_string(KEY_OBJECT_LENGTH_MAX)?.to_vec();
        if keyring.len() < TAG_LENGTH {
            return Err(decoder.invalid("keyring", "too short to be sealed"));
        }
        Ok(Self { workspace, generation, locks, nonce, keyring })
    }
}

impl Message for KeyObject {
    const MAGIC: u8 = b'Y';
    const KIND: &'static str = "key object";
}
