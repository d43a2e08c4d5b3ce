//! What one device keeps of the keys of a workspace: enough to read and write it, and not the account key.

use model::codec::{
    Decode, DecodeError, Decoder, Encode, Encoder, Message, decode_message, encode_message,
};
use model::entry::WORKSPACE_NAME_LENGTH_MAX;
use model::{DeviceId, Genesis, Timestamp, WorkspaceId};
use zeroize::Zeroizing;

use crate::error::ContentError;
use crate::keyring::{DeviceIdentity, SecretKey, Unlocked, decode_data_keys, encode_data_keys};
use crate::signing::SigningKey;

/// The keys that a device keeps.
#[derive(Debug, Clone)]
pub struct DeviceKeys {
    /// The workspace that they open.
    pub workspace: WorkspaceId,
    /// How it is called.
    pub name: String,
    /// When it was made.
    pub created: Timestamp,
    /// Which generation of the key object they are from.
    pub generation: u64,
    /// The public key of the account.
    pub account: [u8; 32],
    pub(crate) content: SecretKey,
    pub(crate) epochs: Vec<SecretKey>,
    /// Who this device is.
    pub identity: DeviceIdentity,
}

impl DeviceKeys {
    /// Makes a device one of the workspace's, with a signing key of its own.
    ///
    /// # Errors
    /// [`ContentError::WrongKey`] where the keys are not those of this workspace; [`ContentError::UnsupportedSeal`].
    pub fn enroll(
        genesis: &Genesis,
        unlocked: &Unlocked,
        device: DeviceId,
        seed: SecretKey,
    ) -> Result<Self, ContentError> {
        let (name, created) = super::genesis::open_header(genesis, &unlocked.account)?;
        let workspace = genesis.workspace();
        Ok(Self {
            workspace,
            name,
            created,
            generation: unlocked.generation,
            account: *unlocked.account.signing()?.public(),
            content: unlocked.keyring.content.clone(),
            epochs: unlocked.keyring.epochs.clone(),
            identity: unlocked.account.certify(workspace, device, seed)?,
        })
    }

    /// Returns the name of a workspace, which its genesis does not tell.
    ///
    /// # Errors
    /// [`ContentError::WrongKey`] where the keys are not those of this workspace.
    pub fn name_of(genesis: &Genesis, unlocked: &Unlocked) -> Result<String, ContentError> {
        super::genesis::open_header(genesis, &unlocked.account).map(|(name, _)| name)
    }

    /// Returns how many keys have sealed what is in the workspace.
    pub fn epoch_count(&self) -> usize {
        self.epochs.len()
    }

    /// Returns the bytes to keep where nobody else reads them.
    pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        Zeroizing::new(encode_message(self))
    }

    /// Reads what was kept.
    ///
    /// # Errors
    /// [`ContentError::KeyObject`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ContentError> {
        decode_message(bytes).map_err(|source| ContentError::KeyObject { source })
    }
}

impl Encode for DeviceKeys {
    fn encode(&self, encoder: &mut Encoder) {
        self.workspace.encode(encoder);
        encoder.byte_string(self.name.as_bytes());
        self.created.encode(encoder);
        encoder.unsigned(self.generation);
        encoder.raw(&self.account);
        encode_data_keys(encoder, &self.content, &self.epochs);
        self.identity.device.encode(encoder);
        encoder.raw(self.identity.signing.seed().as_bytes());
        encoder.raw(&self.identity.certificate);
    }
}

impl Decode for DeviceKeys {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let workspace = WorkspaceId::decode(decoder)?;
        let name = decoder.byte_string(WORKSPACE_NAME_LENGTH_MAX)?.to_vec();
        let name = String::from_utf8(name).map_err(|error| decoder.invalid("name", error))?;
        let created = Timestamp::decode(decoder)?;
        let generation = decoder.unsigned()?;
        let account = decoder.array()?;
        let (content, epochs) = decode_data_keys(decoder)?;
        let device = DeviceId::decode(decoder)?;
        let signing = SigningKey::from_seed(SecretKey::from_bytes(decoder.array()?));
        let signing = signing.map_err(|error| decoder.invalid("signing key", error))?;
        let identity = DeviceIdentity { device, signing, certificate: decoder.array()? };
        Ok(Self { workspace, name, created, generation, account, content, epochs, identity })
    }
}

impl Message for DeviceKeys {
    const MAGIC: u8 = b'U';
    const KIND: &'static str = "set of unlocked keys";
}
