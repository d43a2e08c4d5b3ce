//! Commits of a sealed workspace: payloads that nobody else reads, and a signature that nobody else can make.

use std::borrow::Cow;

use model::codec::{Decode, Decoder, Encode, Encoder, encode_message};
use model::commit::DEVICE_NAME_LENGTH_MAX;
use model::{
    Action, Change, Commit, CommitSeal, Entry, EntryHash, Head, Opener, Payload, PlainOpener,
    Timestamp,
};

use super::{Sealer, WorkspaceKeys};
use crate::cipher::{BoxKey, BoxNonce, TAG_LENGTH};
use crate::error::ContentError;
use crate::keyring::{DEVICE_PURPOSE, certified_bytes};
use crate::padding::{pad, payload_length, unpad};
use crate::signing::{SIGNATURE_LENGTH, verify};

/// What the device signs of a commit.
const COMMIT_PURPOSE: &str = "syncline sealed v1: commit";

/// What makes the salt of a commit.
const SALT_PURPOSE: &[u8] = b"commit\0";

/// What is said with everything sealed in a commit, before what is particular to it.
const ASSOCIATED: &[u8] = b"syncline sealed v1: commit\0";

/// The kinds of boxes in a commit.
const HEADER_KIND: u8 = 0;
const PAYLOAD_KIND: u8 = 1;

/// How many certificates and lists are remembered as verified.
const VERIFIED_MAX: usize = 1024;

/// The length to which something is padded so that its box has the length of a class.
fn boxed_length(length: usize) -> usize {
    payload_length(length + TAG_LENGTH) - TAG_LENGTH
}

impl WorkspaceKeys {
    /// Makes a commit of the workspace from one whose payloads are plain: that itself in a plain workspace, and in a sealed
    /// one a commit that only members can read and only this device can have made.
    ///
    /// # Errors
    /// [`ContentError::NoKeys`] where the commit is another device's; [`ContentError::UnsupportedSeal`].
    pub fn seal_commit(&self, mut commit: Commit) -> Result<Commit, ContentError> {
        let Some(sealer) = &self.sealer else { return Ok(commit) };
        let identity = &sealer.device.identity;
        if commit.device != identity.device {
            return Err(ContentError::NoKeys);
        }
        let mut header = Encoder::default();
        header.byte_string(std::mem::take(&mut commit.device_name).as_bytes());
        std::mem::take(&mut commit.time).encode(&mut header);
        let mut header = pad(&header.into_bytes(), boxed_length);
        let plain = blake3::hash(&encode_message(&commit));
        let salt = sealer.salt(SALT_PURPOSE, &[plain.as_bytes(), &header]);
        let epoch = sealer.newest().0;
        let key = sealer.commit_key(epoch, &salt)?;
        for number in 0..commit.changes.len() {
            let associated = sealer.payload_associated(&commit, &commit.changes[number]);
            let nonce = BoxNonce { kind: PAYLOAD_KIND, number: number as u32 };
            if let Action::Put(payload) = &mut commit.changes[number].action {
                *payload = pad(payload, boxed_length);
                let tag = key.seal(nonce, &associated, payload)?;
                payload.extend_from_slice(&tag);
            }
        }
        let nonce = BoxNonce { kind: HEADER_KIND, number: 0 };
        let tag = key.seal(nonce, &sealer.commit_associated(&commit), &mut header)?;
        header.extend_from_slice(&tag);
        let seal = CommitSeal {
            epoch,
            salt,
            device_key: *identity.signing.public(),
            certificate: identity.certificate,
            header,
            signature: [0; SIGNATURE_LENGTH],
        };
        commit.seal = Some(Box::new(seal));
        sealer.sign(commit)
    }

    /// Returns how the device of a commit calls itself, and its clock.
    ///
    /// # Errors
    /// [`ContentError::Tampered`], [`ContentError::UnknownEpoch`].
    pub fn commit_header(&self, commit: &Commit) -> Result<(String, Timestamp), ContentError> {
        let Some(sealer) = &self.sealer else {
            return Ok((commit.device_name.clone(), commit.time));
        };
        let tampered = ContentError::Tampered { what: "commit" };
        let Some(seal) = &commit.seal else { return Err(tampered) };
        let key = sealer.commit_key(seal.epoch, &seal.salt)?;
        let nonce = BoxNonce { kind: HEADER_KIND, number: 0 };
        let mut header = seal.header.clone();
        let opened = key.open(nonce, &sealer.commit_associated(commit), &mut header);
        let Some(plain) = opened.and_then(|padded| unpad(padded, boxed_length)) else {
            return Err(tampered);
        };
        let mut decoder = Decoder::new(plain);
        let mut read = || {
            let name = decoder.byte_string(DEVICE_NAME_LENGTH_MAX)?.to_vec();
            let name = String::from_utf8(name).map_err(|error| decoder.invalid("name", error))?;
            Ok((name, Timestamp::decode(&mut decoder)?))
        };
        read().map_err(|_: model::codec::DecodeError| tampered)
    }

    /// Checks that the keys of this device are new enough for a commit that somebody has made who may: it must wait otherwise,
    /// and not count for nothing. The list of members is that of the log before the commit.
    ///
    /// # Errors
    /// [`ContentError::UnknownEpoch`].
    pub fn check_epoch(&self, commit: &Commit, members: Option<&[u8]>) -> Result<(), ContentError> {
        match (&self.sealer, &commit.seal) {
            (Some(sealer), Some(seal)) => match sealer.epoch(seal.epoch) {
                Err(error) if self.check(commit, members).is_ok() => Err(error),
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// Tells whether a device that may has signed an entry and had seen another history than the one before it, which ends at
    /// `head`: it was told to that device alone, and versions in it are not those that are meant here. `known` is the hash of
    /// the entry that it names as seen, nothing where that lies before what the caller knows. To be asked where whoever orders
    /// the log takes no such commit.
    pub fn is_forked(
        &self,
        entry: &Entry,
        head: &Head,
        known: Option<EntryHash>,
        members: Option<&[u8]>,
    ) -> bool {
        let seen = &entry.commit.seen;
        if !self.is_sealed() || seen.seq == 0 || seen == head {
            return false;
        }
        let is_other = seen.seq >= head.seq || known.is_some_and(|known| known != seen.hash);
        is_other && self.check(&entry.commit, members).is_ok()
    }
}

impl Opener for WorkspaceKeys {
    fn check(&self, commit: &Commit, members: Option<&[u8]>) -> Result<(), String> {
        let Some(sealer) = &self.sealer else { return PlainOpener.check(commit, members) };
        let Some(seal) = &commit.seal else {
            return Err("it is not sealed, and the workspace is".to_owned());
        };
        // They count from 1, so nobody would ever have that key, and devices would wait for it for ever.
        if seal.epoch == 0 {
            return Err("it names a key that there cannot be".to_owned());
        }
        if !sealer.is_certified(commit, seal) {
            sealer.check_member(commit, seal, members)?;
        }
        let message = sealer.signed_bytes(commit);
        if !verify(&seal.device_key, COMMIT_PURPOSE, &message, &seal.signature) {
            return Err("its signature is not that of its device".to_owned());
        }
        Ok(())
    }

    fn open<'a>(&self, commit: &'a Commit, number: usize) -> Result<Payload<'a>, String> {
        let Some(sealer) = &self.sealer else { return PlainOpener.open(commit, number) };
        let change = &commit.changes[number];
        let Action::Put(payload) = &change.action else { return Ok(None) };
        let cannot = || "it cannot be opened".to_owned();
        let seal = commit.seal.as_ref().ok_or_else(cannot)?;
        let key = sealer.commit_key(seal.epoch, &seal.salt).map_err(|error| error.to_string())?;
        let nonce = BoxNonce { kind: PAYLOAD_KIND, number: number as u32 };
        let mut sealed = payload.clone();
        let opened = key.open(nonce, &sealer.payload_associated(commit, change), &mut sealed);
        let plain = opened.and_then(|padded| unpad(padded, boxed_length)).ok_or_else(cannot)?;
        Ok(Some(Cow::Owned(plain.to_vec())))
    }

    fn check_members(&self, old: Option<&[u8]>, new: &[u8]) -> Result<(), String> {
        match &self.sealer {
            Some(sealer) => sealer.check_members(old, new),
            None => PlainOpener.check_members(old, new),
        }
    }
}

impl Sealer {
    /// Puts the signature of this device under a commit, in place of any other.
    pub(super) fn sign(&self, mut commit: Commit) -> Result<Commit, ContentError> {
        let message = self.signed_bytes(&commit);
        let signature = self.device.identity.signing.sign(COMMIT_PURPOSE, &message)?;
        if let Some(seal) = &mut commit.seal {
            seal.signature = signature;
        }
        Ok(commit)
    }

    fn commit_key(&self, epoch: u32, salt: &[u8; 32]) -> Result<BoxKey, ContentError> {
        let key = self.epoch(epoch)?.commits.derive_for(&[self.workspace.as_bytes(), salt]);
        BoxKey::new(&key)
    }

    /// What is said with everything that is sealed in a commit: workspace, operation and device.
    fn commit_associated(&self, commit: &Commit) -> Vec<u8> {
        let (op_id, device) = (commit.op_id.as_bytes(), commit.device.as_bytes());
        [ASSOCIATED, self.workspace.as_bytes(), op_id, device].concat()
    }

    /// The same with a payload: node and base, too.
    fn payload_associated(&self, commit: &Commit, change: &Change) -> Vec<u8> {
        let mut associated = self.commit_associated(commit);
        associated.extend_from_slice(change.node.as_bytes());
        associated.extend_from_slice(&change.base.to_le_bytes());
        associated
    }

    /// What the device signs: the workspace, and the hash of the commit without the signature.
    fn signed_bytes(&self, commit: &Commit) -> Vec<u8> {
        let mut unsigned = commit.clone();
        if let Some(seal) = &mut unsigned.seal {
            seal.signature = [0; SIGNATURE_LENGTH];
        }
        let hash = blake3::hash(&encode_message(&unsigned));
        [&self.workspace.as_bytes()[..], hash.as_bytes()].concat()
    }

    /// Tells whether the account has made the device of a commit one of its own.
    fn is_certified(&self, commit: &Commit, seal: &CommitSeal) -> bool {
        let message = certified_bytes(self.workspace, commit.device, &seal.device_key);
        self.is_signed(&self.device.account, DEVICE_PURPOSE, &message, &seal.certificate)
    }

    /// Verifies what stands in every commit anew, and remembers what was right.
    pub(super) fn is_signed(
        &self,
        public: &[u8; 32],
        purpose: &str,
        message: &[u8],
        signature: &[u8; SIGNATURE_LENGTH],
    ) -> bool {
        let mut hasher = blake3::Hasher::new();
        hasher.update(public).update(signature).update(purpose.as_bytes()).update(&[0]);
        let hash = *hasher.update(message).finalize().as_bytes();
        if self.verified.lock().is_ok_and(|verified| verified.contains(&hash)) {
            return true;
        }
        let is_signed = verify(public, purpose, message, signature);
        if is_signed && let Ok(mut verified) = self.verified.lock() {
            if verified.len() >= VERIFIED_MAX {
                verified.clear();
            }
            verified.insert(hash);
        }
        is_signed
    }
}
