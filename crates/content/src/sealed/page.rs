//! Pages of checkpoints, and what proves that a device of the owner made a checkpoint.
//!
//! Whoever begins at a checkpoint has the files that it says, and does not read how they came about. So none counts that a member
//! made, who has the keys, too, and may go; members read the log or begin where the owner's devices have been.
//!
//! Equal pages must stay equal, or every checkpoint would be stored whole. So the salt of a page is a keyed hash of it: what
//! shows is that two pages are equal, which their ids show in a plain workspace, too.

use std::borrow::Cow;

use model::checkpoint::{Checkpoint, CheckpointSeal};
use model::codec::{Encode, Encoder};
use subtle::ConstantTimeEq;

use super::{Sealer, WorkspaceKeys};
use crate::cipher::{BoxKey, BoxNonce, TAG_LENGTH};
use crate::error::ContentError;
use crate::keyring::{DEVICE_PURPOSE, certified_bytes};
use crate::padding::{object_length, pad, unpad};
use crate::signing::verify;

/// How a sealed page begins: what it is, and the version.
const HEADER: [u8; 2] = [b'V', 1];

/// What makes the salt of a page.
const SALT_PURPOSE: &[u8] = b"page\0";

/// What is said with a page, before workspace and epoch.
const ASSOCIATED: &[u8] = b"syncline sealed v1: page\0";

/// What a device signs of a checkpoint.
const CHECKPOINT_PURPOSE: &str = "syncline sealed v1: checkpoint";

/// The box that a page is.
const NONCE: BoxNonce = BoxNonce { kind: 0, number: 0 };

/// Length in bytes of what stands before the box: header, epoch, salt.
const PREFIX_LENGTH: usize = 2 + 4 + 32;

impl WorkspaceKeys {
    /// Returns the form in which a page is stored.
    ///
    /// # Errors
    /// [`ContentError::UnsupportedSeal`].
    pub fn seal_page(&self, page: Vec<u8>) -> Result<Vec<u8>, ContentError> {
        let Some(sealer) = &self.sealer else { return Ok(page) };
        let (number, epoch) = sealer.newest();
        let overhead = PREFIX_LENGTH + TAG_LENGTH;
        let mut padded =
            pad(&page, |length| object_length((length + overhead) as u64) as usize - overhead);
        let salt = epoch.salts.hash(&[SALT_PURPOSE, sealer.workspace.as_bytes(), &padded]);
        let key = sealer.page_key(number, &salt)?;
        let tag = key.seal(NONCE, &sealer.page_associated(number), &mut padded)?;
        Ok([&HEADER[..], &number.to_le_bytes(), &salt, &padded, &tag].concat())
    }

    /// Returns the page of a stored form.
    ///
    /// # Errors
    /// [`ContentError::NotSealed`], [`ContentError::IsSealed`], [`ContentError::Tampered`],
    /// [`ContentError::UnknownEpoch`].
    pub fn open_page<'a>(&self, stored: &'a [u8]) -> Result<Cow<'a, [u8]>, ContentError> {
        let sealed = stored.strip_prefix(&HEADER);
        let (sealer, sealed) = match (&self.sealer, sealed) {
            (None, None) => return Ok(Cow::Borrowed(stored)),
            (None, Some(_)) => return Err(ContentError::IsSealed { what: "page" }),
            (Some(_), None) => return Err(ContentError::NotSealed { what: "page" }),
            (Some(sealer), Some(sealed)) => (sealer, sealed),
        };
        let tampered = ContentError::Tampered { what: "page" };
        let Some((epoch, sealed)) = sealed.split_first_chunk::<4>() else { return Err(tampered) };
        let Some((salt, sealed)) = sealed.split_first_chunk::<32>() else { return Err(tampered) };
        let number = u32::from_le_bytes(*epoch);
        let mut sealed = sealed.to_vec();
        let key = sealer.page_key(number, salt)?;
        let Some(padded) = key.open(NONCE, &sealer.page_associated(number), &mut sealed) else {
            return Err(tampered);
        };
        let overhead = PREFIX_LENGTH + TAG_LENGTH;
        let page =
            unpad(padded, |length| object_length((length + overhead) as u64) as usize - overhead);
        page.map(|page| Cow::Owned(page.to_vec())).ok_or(tampered)
    }

    /// Adds to a checkpoint what proves that this device made it, and takes away what nobody else may know. It counts where the device is the
    /// owner's.
    ///
    /// # Errors
    /// [`ContentError::UnsupportedSeal`].
    pub fn seal_checkpoint(&self, mut checkpoint: Checkpoint) -> Result<Checkpoint, ContentError> {
        let Some(sealer) = &self.sealer else { return Ok(checkpoint) };
        let (number, epoch) = sealer.newest();
        let identity = &sealer.device.identity;
        checkpoint.node_count = 0;
        let bytes = sealer.checkpoint_bytes(number, &checkpoint);
        checkpoint.seal = Some(CheckpointSeal {
            epoch: number,
            tag: epoch.checkpoints.hash(&[&bytes]),
            device: identity.device,
            device_key: *identity.signing.public(),
            certificate: identity.certificate,
            signature: identity.signing.sign(CHECKPOINT_PURPOSE, &bytes)?,
        });
        Ok(checkpoint)
    }

    /// Checks that a device of the owner made a checkpoint.
    ///
    /// # Errors
    /// As [`Self::open_page`].
    pub fn check_checkpoint(&self, checkpoint: &Checkpoint) -> Result<(), ContentError> {
        let (sealer, seal) = match (&self.sealer, &checkpoint.seal) {
            (None, None) => return Ok(()),
            (None, Some(_)) => return Err(ContentError::IsSealed { what: "checkpoint" }),
            (Some(_), None) => return Err(ContentError::NotSealed { what: "checkpoint" }),
            (Some(sealer), Some(seal)) => (sealer, seal),
        };
        let epoch = sealer.epoch(seal.epoch)?;
        let bytes = sealer.checkpoint_bytes(seal.epoch, checkpoint);
        let is_tag: bool = epoch.checkpoints.hash(&[&bytes]).ct_eq(&seal.tag).into();
        let certified = certified_bytes(sealer.workspace, seal.device, &seal.device_key);
        let account = &sealer.device.account;
        let is_ours = is_tag
            && sealer.is_signed(account, DEVICE_PURPOSE, &certified, &seal.certificate)
            && verify(&seal.device_key, CHECKPOINT_PURPOSE, &bytes, &seal.signature);
        if is_ours { Ok(()) } else { Err(ContentError::Tampered { what: "checkpoint" }) }
    }
}

impl Sealer {
    fn page_key(&self, epoch: u32, salt: &[u8; 32]) -> Result<BoxKey, ContentError> {
        let key = self.epoch(epoch)?.pages.derive_for(&[self.workspace.as_bytes(), salt]);
        BoxKey::new(&key)
    }

    fn page_associated(&self, epoch: u32) -> Vec<u8> {
        [ASSOCIATED, self.workspace.as_bytes(), &epoch.to_le_bytes()].concat()
    }

    fn checkpoint_bytes(&self, epoch: u32, checkpoint: &Checkpoint) -> Vec<u8> {
        let mut encoder = Encoder::default();
        encoder.raw(self.workspace.as_bytes());
        encoder.raw(&epoch.to_le_bytes());
        let plain = Checkpoint { seal: None, ..checkpoint.clone() };
        plain.encode(&mut encoder);
        // The message says them by its version, which is not among the fields.
        let has_deltas = 2 * u64::from(checkpoint.has_deltas);
        encoder.unsigned(u64::from(checkpoint.has_mounts) + has_deltas);
        encoder.into_bytes()
    }
}
