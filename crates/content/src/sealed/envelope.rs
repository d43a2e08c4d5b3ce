//! Envelopes: the keys of a workspace, sealed to one member.
//!
//! *Participants*: the owner, who has just typed the passphrase; a member, whose identity opens the envelope; a server, which keeps
//! it. *Goals*: nobody else opens it; what is in it was put there by the account whose public key stands in the genesis, so a
//! server can seal nothing of its own to a member in the name of the owner. *Non-goals*: to say whose account that is: the id of
//! the workspace, which covers its public key, is what two people compare. A later envelope takes the place of an earlier one, and
//! a device refuses one of an older generation.
//!
//! The format in words, with vectors: `docs/design/keys.md`, "Members".

use model::codec::{
    Decode, DecodeError, Decoder, Encode, Encoder, Message, decode_message, encode_message,
};
use model::entry::WORKSPACE_NAME_LENGTH_MAX;
use model::environment::Random;
use model::{DeviceId, Genesis, SealedGenesis, Timestamp, WorkspaceId};
use zeroize::Zeroizing;

use super::DeviceKeys;
use crate::error::ContentError;
use crate::hpke::{self, ENCAPSULATED_LENGTH};
use crate::keyring::{
    Identity, PublicIdentity, SecretKey, Unlocked, decode_data_keys, encode_data_keys,
};
use crate::padding::{pad, unpad};
use crate::signing::{SIGNATURE_LENGTH, verify};

/// What the envelope is for, and what the account signs of it.
const ENVELOPE_PURPOSE: &str = "syncline sealed v1: envelope";

/// What is said with an envelope, before what is particular to it.
const ASSOCIATED: &[u8] = b"syncline sealed v1: envelope\0";

/// Envelopes are at least so long inside, so that their lengths tell no names, and hardly how often keys were rotated.
const PADDED_LENGTH_MIN: usize = 1024;

/// The longest envelope, in bytes.
pub const ENVELOPE_LENGTH_MAX: usize = 256 * 1024 + 128;

/// The keys of a workspace for one member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope {
    encapsulated: [u8; ENCAPSULATED_LENGTH],
    sealed: Vec<u8>,
}

/// What is in it.
struct Inside {
    name: String,
    created: Timestamp,
    generation: u64,
    content: SecretKey,
    epochs: Vec<SecretKey>,
}

impl Envelope {
    /// Seals the keys of a workspace to a member.
    ///
    /// # Errors
    /// [`ContentError::InvalidIdentity`]; [`ContentError::WrongKey`] where the keys are not those of this workspace;
    /// [`ContentError::NotSealed`]; [`ContentError::UnsupportedSeal`].
    pub fn seal(
        genesis: &Genesis,
        unlocked: &Unlocked,
        member: &PublicIdentity,
        random: &dyn Random,
    ) -> Result<Self, ContentError> {
        let (name, created) = super::open_header(genesis, &unlocked.account)?;
        let (workspace, sealed) = sealed_genesis(genesis)?;
        let mut inside = Encoder::default();
        inside.byte_string(name.as_bytes());
        created.encode(&mut inside);
        inside.unsigned(unlocked.generation);
        encode_data_keys(&mut inside, &unlocked.keyring.content, &unlocked.keyring.epochs);
        let mut inside = Zeroizing::new(inside.into_bytes());
        let message = signed_bytes(workspace, member, &inside);
        let signature = unlocked.account.signing()?.sign(ENVELOPE_PURPOSE, &message)?;
        inside.extend_from_slice(&signature);
        let padded = Zeroizing::new(pad(&inside, padded_length));
        let associated = associated(workspace, &sealed.account, member);
        let said = (ENVELOPE_PURPOSE.as_bytes(), &associated[..]);
        let (encapsulated, sealed) =
            hpke::seal(&member.opening, said, &padded, &SecretKey::random(random))?;
        Ok(Self { encapsulated, sealed })
    }

    /// Returns the name of the workspace, which its genesis does not tell.
    ///
    /// # Errors
    /// [`ContentError::WrongKey`] where the envelope is not one that the account of this workspace has sealed to this member.
    pub fn name(&self, genesis: &Genesis, identity: &Identity) -> Result<String, ContentError> {
        self.open(genesis, identity).map(|inside| inside.name)
    }

    fn open(&self, genesis: &Genesis, identity: &Identity) -> Result<Inside, ContentError> {
        let (workspace, sealed) = sealed_genesis(genesis)?;
        let associated = associated(workspace, &sealed.account, identity.public());
        let said = (ENVELOPE_PURPOSE.as_bytes(), &associated[..]);
        let padded = hpke::open(identity.opening(), &self.encapsulated, said, &self.sealed);
        let padded = padded.ok_or(ContentError::WrongKey)?;
        let inside = unpad(&padded, padded_length).ok_or(ContentError::WrongKey)?;
        let (inside, signature) =
            inside.split_last_chunk::<SIGNATURE_LENGTH>().ok_or(ContentError::WrongKey)?;
        let message = signed_bytes(workspace, identity.public(), inside);
        if !verify(&sealed.account, ENVELOPE_PURPOSE, &message, signature) {
            return Err(ContentError::WrongKey);
        }
        Inside::decode(inside).map_err(|source| ContentError::KeyObject { source })
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

impl DeviceKeys {
    /// Makes a device one of a member's, with a signing key of its own. Nobody is asked: the identity of the member vouches for it.
    ///
    /// # Errors
    /// [`ContentError::WrongKey`] where the envelope is not one that the account of this workspace has sealed to this member.
    pub fn enroll_member(
        genesis: &Genesis,
        identity: &Identity,
        envelope: &Envelope,
        (device, seed): (DeviceId, SecretKey),
    ) -> Result<Self, ContentError> {
        let (workspace, sealed) = sealed_genesis(genesis)?;
        let Inside { name, created, generation, content, epochs } =
            envelope.open(genesis, identity)?;
        let identity = identity.certify(workspace, device, seed)?;
        let account = sealed.account;
        Ok(Self { workspace, name, created, generation, account, content, epochs, identity })
    }
}

fn sealed_genesis(genesis: &Genesis) -> Result<(WorkspaceId, &SealedGenesis), ContentError> {
    let sealed = genesis.mode.sealed().ok_or(ContentError::NotSealed { what: "workspace" })?;
    Ok((genesis.workspace(), sealed))
}

fn associated(workspace: WorkspaceId, account: &[u8; 32], member: &PublicIdentity) -> Vec<u8> {
    [ASSOCIATED, workspace.as_bytes(), account, &member.to_bytes()].concat()
}

fn signed_bytes(workspace: WorkspaceId, member: &PublicIdentity, inside: &[u8]) -> Vec<u8> {
    let hash = blake3::hash(inside);
    [&workspace.as_bytes()[..], &member.to_bytes(), hash.as_bytes()].concat()
}

/// A power of two that has room for what is padded.
fn padded_length(length: usize) -> usize {
    length.next_power_of_two().max(PADDED_LENGTH_MIN)
}

impl Inside {
    fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut decoder = Decoder::new(bytes);
        let name = decoder.byte_string(WORKSPACE_NAME_LENGTH_MAX)?.to_vec();
        let name = String::from_utf8(name).map_err(|error| decoder.invalid("name", error))?;
        let created = Timestamp::decode(&mut decoder)?;
        let generation = decoder.unsigned()?;
        let (content, epochs) = decode_data_keys(&mut decoder)?;
        decoder.finish()?;
        Ok(Self { name, created, generation, content, epochs })
    }
}

impl Encode for Envelope {
    fn encode(&self, encoder: &mut Encoder) {
        encoder.raw(&self.encapsulated);
        encoder.byte_string(&self.sealed);
    }
}

impl Decode for Envelope {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let encapsulated = decoder.array()?;
        Ok(Self { encapsulated, sealed: decoder.byte_string(ENVELOPE_LENGTH_MAX)?.to_vec() })
    }
}

impl Message for Envelope {
    const MAGIC: u8 = b'X';
    const KIND: &'static str = "envelope";
}

#[cfg(test)]
mod tests;
