//! How a new device joins a sealed workspace without its passphrase: by a code that a person carries from one device to the other.
//!
//! *Participants*: a *host*, where somebody has just opened the account key with the passphrase; a *guest*, which is to become a
//! device of the workspace; a person who reads a code on the host and types it into the guest; stores that carry three boxes
//! between them, and may read, change, exchange, repeat or invent them. *Goals*: nobody without the code learns or changes
//! anything, however long they try: it has 128 bits, so no store can guess it; the guest's signing key never leaves it; one code
//! lets one device in. *Non-goals*: to withstand who has the code; secrecy of the past, should the code become known after all to
//! somebody who has kept the boxes. *Invariants*: every box has a key of its own, and says which workspace and which pairing it
//! is of; the grant is bound to the request that it answers.
//!
//! ```text
//! host  -> offer     the name of the host
//! guest -> request   device id, public key, name of the guest
//!          both show the same six digits, and both are asked
//! host  -> grant     keys and a certificate
//! ```
//!
//! The format in words, with vectors: `docs/design/keys.md`, "Pairing".

use model::codec::{Decode, DecodeError, Decoder, Encode, Encoder};
use model::entry::WORKSPACE_NAME_LENGTH_MAX;
use model::environment::{Random, random_bytes};
use model::hex;
use model::{DeviceId, Genesis, Timestamp, WorkspaceId};
use zeroize::Zeroizing;

use crate::cipher::{SMALL_NONCE_LENGTH, open_small, seal_small};
use crate::error::ContentError;
use crate::keyring::recovery::{digits_of, value_of};
use crate::keyring::{
    DeviceIdentity, SecretKey, Unlocked, certified_bytes, decode_data_keys, encode_data_keys,
};
use crate::padding::{pad, unpad};
use crate::sealed::DeviceKeys;
use crate::signing::{SigningKey, verify};

/// What the key of a pairing is derived with.
const CODE_CONTEXT: &str = "syncline sealed v1: pairing code";

/// What the name of a pairing is derived with.
const NAME_CONTEXT: &str = "syncline sealed v1: pairing name";

/// What the digits that both sides show are derived with.
const DIGITS_CONTEXT: &str = "syncline sealed v1: pairing digits";

/// What the checksum of a code is derived with.
const CHECKSUM_CONTEXT: &str = "syncline sealed v1: pairing checksum";

/// How many letters and digits a code has: 128 bits, and 12 of a checksum.
const CHARACTERS: usize = 28;

const GROUP: usize = 4;

/// The boxes of a pairing are at least so long, so that their lengths tell no names.
const PADDED_LENGTH_MIN: usize = 512;

/// The longest name of a device, in bytes.
const DEVICE_NAME_LENGTH_MAX: usize = model::commit::DEVICE_NAME_LENGTH_MAX;

/// The kinds of boxes of a pairing, in the order in which they are made.
pub const BOXES: [&str; 4] = ["offer", "request", "grant", "done"];

/// The longest box that is looked at, in bytes.
pub const BOX_LENGTH_MAX: u64 = 512 * 1024;

/// How long one side waits for the other, that is for a person, in seconds.
pub const PATIENCE_SECONDS: u64 = 600;

/// Text that is not the code of a pairing, or one with a slip in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this is not a pairing code: {CHARACTERS} letters and digits are expected")]
pub struct InvalidPairingCode;

/// What a person carries from one device to the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PairingCode(SecretKey);

impl PairingCode {
    /// Makes a new one.
    pub fn random(random: &dyn Random) -> Self {
        Self::of(Zeroizing::new(random_bytes::<16>(random)))
    }

    fn of(bits: Zeroizing<[u8; 16]>) -> Self {
        let mut bytes = [0; 32];
        bytes[..16].copy_from_slice(&*bits);
        Self(SecretKey::from_bytes(bytes))
    }

    /// Returns the text to read and type, which is the code.
    pub fn to_text(&self) -> Zeroizing<String> {
        let bytes = [&self.0.as_bytes()[..16], &self.checksum()].concat();
        Zeroizing::new(digits_of(&bytes, CHARACTERS, GROUP))
    }

    /// Reads what was typed, whatever its case and separators.
    ///
    /// # Errors
    /// [`InvalidPairingCode`].
    pub fn from_text(text: &str) -> Result<Self, InvalidPairingCode> {
        let bytes: [u8; 18] = value_of(text, CHARACTERS).ok_or(InvalidPairingCode)?;
        let (bits, sum) = bytes.split_first_chunk::<16>().ok_or(InvalidPairingCode)?;
        let code = Self::of(Zeroizing::new(*bits));
        if code.checksum() == *sum { Ok(code) } else { Err(InvalidPairingCode) }
    }

    /// The first 12 bits of a hash, and four zeros.
    fn checksum(&self) -> [u8; 2] {
        let sum = self.0.derive(CHECKSUM_CONTEXT);
        [sum.as_bytes()[0], sum.as_bytes()[1] & 0xf0]
    }

    /// Returns the name under which the boxes lie: 32 digits that tell nothing.
    pub fn name(&self) -> String {
        let name = self.0.derive(NAME_CONTEXT);
        hex::encode(&name.as_bytes()[..16])
    }
}

/// Who offers to let a device in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// How the host calls itself.
    pub device_name: String,
}

/// Who asks to be let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PairingRequest {
    /// The guest.
    pub device: DeviceId,
    /// The key with which it is going to sign.
    pub public: [u8; 32],
    /// How it calls itself.
    pub device_name: String,
}

/// What the host gives.
struct Grant {
    name: String,
    created: Timestamp,
    generation: u64,
    content: SecretKey,
    epochs: Vec<SecretKey>,
    certificate: [u8; 64],
}

/// A pairing, as either side sees it.
#[derive(Debug)]
pub struct Pairing {
    key: SecretKey,
    name: String,
    workspace: WorkspaceId,
}

impl Pairing {
    /// Begins or joins a pairing of a workspace.
    pub fn new(code: &PairingCode, workspace: WorkspaceId) -> Self {
        Self { key: code.0.derive(CODE_CONTEXT), name: code.name(), workspace }
    }

    /// Seals an offer.
    pub fn seal_offer(&self, offer: &Offer, random: &dyn Random) -> Vec<u8> {
        let mut encoder = Encoder::default();
        encoder.byte_string(offer.device_name.as_bytes());
        self.seal(b"offer", &[], encoder, random)
    }

    /// Opens an offer.
    ///
    /// # Errors
    /// [`ContentError::WrongKey`].
    pub fn open_offer(&self, bytes: &[u8]) -> Result<Offer, ContentError> {
        self.open(b"offer", &[], bytes, |decoder| {
            Ok(Offer { device_name: text(decoder, DEVICE_NAME_LENGTH_MAX)? })
        })
    }

    /// Seals a request that answers an offer.
    pub fn seal_request(
        &self,
        offer: &[u8],
        request: &PairingRequest,
        random: &dyn Random,
    ) -> Vec<u8> {
        let mut encoder = Encoder::default();
        request.device.encode(&mut encoder);
        encoder.raw(&request.public);
        encoder.byte_string(request.device_name.as_bytes());
        self.seal(b"request", offer, encoder, random)
    }

    /// Opens a request.
    ///
    /// # Errors
    /// [`ContentError::WrongKey`].
    pub fn open_request(&self, offer: &[u8], bytes: &[u8]) -> Result<PairingRequest, ContentError> {
        self.open(b"request", offer, bytes, |decoder| {
            Ok(PairingRequest {
                device: DeviceId::decode(decoder)?,
                public: decoder.array()?,
                device_name: text(decoder, DEVICE_NAME_LENGTH_MAX)?,
            })
        })
    }

    /// Returns six digits that both sides show once there is a request.
    pub fn digits(&self, offer: &[u8], request: &[u8]) -> String {
        let (offer, request) = (blake3::hash(offer), blake3::hash(request));
        let hash = self.key.derive(DIGITS_CONTEXT).hash(&[offer.as_bytes(), request.as_bytes()]);
        let [a, b, c, d, ..] = hash;
        let number = u32::from_le_bytes([a, b, c, d]) % 1_000_000;
        format!("{:03} {:03}", number / 1000, number % 1000)
    }

    /// Makes the guest one of the workspace's devices, and seals what it needs.
    ///
    /// # Errors
    /// [`ContentError::WrongKey`]; [`ContentError::UnsupportedSeal`].
    pub fn grant(
        &self,
        genesis: &Genesis,
        unlocked: &Unlocked,
        (request, request_box): (&PairingRequest, &[u8]),
        random: &dyn Random,
    ) -> Result<Vec<u8>, ContentError> {
        let (name, created) = crate::sealed::open_header(genesis, &unlocked.account)?;
        let certificate =
            unlocked.account.certify_key(self.workspace, request.device, &request.public)?;
        let mut encoder = Encoder::default();
        encoder.byte_string(name.as_bytes());
        created.encode(&mut encoder);
        encoder.unsigned(unlocked.generation);
        let keyring = &unlocked.keyring;
        encode_data_keys(&mut encoder, &keyring.content, &keyring.epochs);
        encoder.raw(&certificate);
        Ok(self.seal(b"grant", request_box, encoder, random))
    }

    /// Takes what was granted. The account is that of the genesis, whatever the grant says.
    ///
    /// # Errors
    /// [`ContentError::WrongKey`] where it is not what the account has given to this device.
    pub fn accept(
        &self,
        genesis: &Genesis,
        (device, seed): (DeviceId, SecretKey),
        request_box: &[u8],
        grant: &[u8],
    ) -> Result<DeviceKeys, ContentError> {
        let grant = self.open(b"grant", request_box, grant, Grant::decode)?;
        let sealed = genesis.mode.sealed().ok_or(ContentError::NotSealed { what: "workspace" })?;
        let signing = SigningKey::from_seed(seed)?;
        let certified = certified_bytes(self.workspace, device, signing.public());
        let is_certified =
            verify(&sealed.account, crate::keyring::DEVICE_PURPOSE, &certified, &grant.certificate);
        if genesis.workspace() != self.workspace || !is_certified {
            return Err(ContentError::WrongKey);
        }
        Ok(DeviceKeys {
            workspace: self.workspace,
            name: grant.name,
            created: grant.created,
            generation: grant.generation,
            account: sealed.account,
            content: grant.content,
            epochs: grant.epochs,
            identity: DeviceIdentity { device, signing, certificate: grant.certificate },
        })
    }

    fn seal(&self, kind: &[u8], answers: &[u8], plain: Encoder, random: &dyn Random) -> Vec<u8> {
        let plain = Zeroizing::new(plain.into_bytes());
        let padded = Zeroizing::new(pad(&plain, padded_length));
        let nonce: [u8; SMALL_NONCE_LENGTH] = random_bytes(random);
        let sealed =
            seal_small(&self.key_of(kind), nonce, &self.associated(kind, answers), &padded);
        [&nonce[..], &sealed].concat()
    }

    fn open<T>(
        &self,
        kind: &[u8],
        answers: &[u8],
        bytes: &[u8],
        read: impl FnOnce(&mut Decoder<'_>) -> Result<T, DecodeError>,
    ) -> Result<T, ContentError> {
        let (nonce, sealed) =
            bytes.split_first_chunk::<SMALL_NONCE_LENGTH>().ok_or(ContentError::WrongKey)?;
        let associated = self.associated(kind, answers);
        let padded = open_small(&self.key_of(kind), *nonce, &associated, sealed);
        let padded = padded.ok_or(ContentError::WrongKey)?;
        let plain = unpad(&padded, padded_length).ok_or(ContentError::WrongKey)?;
        let mut decoder = Decoder::new(plain);
        let value = read(&mut decoder).map_err(|source| ContentError::KeyObject { source })?;
        decoder.finish().map_err(|source| ContentError::KeyObject { source })?;
        Ok(value)
    }

    fn key_of(&self, kind: &[u8]) -> SecretKey {
        self.key.derive_for(&[kind])
    }

    fn associated(&self, kind: &[u8], answers: &[u8]) -> Vec<u8> {
        let answered = blake3::hash(answers);
        let parts: [&[u8]; 6] = [
            b"syncline sealed v1: pairing\0",
            self.workspace.as_bytes(),
            self.name.as_bytes(),
            answered.as_bytes(),
            kind,
            b"\0",
        ];
        parts.concat()
    }
}

/// A device that has found an offer, and asks to be let in.
#[derive(Debug)]
pub struct PairingGuest {
    pairing: Pairing,
    device: DeviceId,
    seed: SecretKey,
    request: Vec<u8>,
    digits: String,
}

impl PairingGuest {
    /// Makes the key with which the device is going to sign, and the request that answers an offer.
    ///
    /// # Errors
    /// [`ContentError::UnsupportedSeal`].
    pub fn new(
        pairing: Pairing,
        offer: &[u8],
        (device, device_name): (DeviceId, String),
        random: &dyn Random,
    ) -> Result<Self, ContentError> {
        let seed = SecretKey::random(random);
        let public = *SigningKey::from_seed(seed.clone())?.public();
        let request = PairingRequest { device, public, device_name };
        let request = pairing.seal_request(offer, &request, random);
        let digits = pairing.digits(offer, &request);
        Ok(Self { pairing, device, seed, request, digits })
    }

    /// Returns the request, sealed.
    pub fn request(&self) -> &[u8] {
        &self.request
    }

    /// Returns the six digits that the host shows, too, if it is this device that it lets in.
    pub fn digits(&self) -> &str {
        &self.digits
    }

    /// Takes what was granted, as [`Pairing::accept`].
    ///
    /// # Errors
    /// Those of [`Pairing::accept`].
    pub fn accept(&self, genesis: &Genesis, grant: &[u8]) -> Result<DeviceKeys, ContentError> {
        self.pairing.accept(genesis, (self.device, self.seed.clone()), &self.request, grant)
    }
}

impl Grant {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let name = text(decoder, WORKSPACE_NAME_LENGTH_MAX)?;
        let created = Timestamp::decode(decoder)?;
        let generation = decoder.unsigned()?;
        let (content, epochs) = decode_data_keys(decoder)?;
        Ok(Self { name, created, generation, content, epochs, certificate: decoder.array()? })
    }
}

fn text(decoder: &mut Decoder<'_>, length_max: usize) -> Result<String, DecodeError> {
    let bytes = decoder.byte_string(length_max)?.to_vec();
    String::from_utf8(bytes).map_err(|error| decoder.invalid("name", error))
}

/// A power of two that has room for what is padded.
fn padded_length(length: usize) -> usize {
    length.next_power_of_two().max(PADDED_LENGTH_MIN)
}

#[cfg(test)]
mod tests;
