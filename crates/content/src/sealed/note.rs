//! Notes: what a program keeps beside a sealed workspace where others may look, and only whoever has unlocked the workspace reads. A page keeps
//! so which files were on their way.
//!
//! A note is sealed under one key that stays the same for ever, so a new epoch keeps nobody from reading it. It is for its writer: whoever
//! has the keys of the workspace could write one, too.

use model::environment::random_bytes;
use zeroize::Zeroizing;

use super::{Sealer, WorkspaceKeys};
use crate::cipher::{SMALL_NONCE_LENGTH, open_small, seal_small};
use crate::error::ContentError;
use crate::keyring::SecretKey;
use crate::padding::{pad, payload_length, unpad};

/// How a note begins: what it is, and the version.
const HEADER: [u8; 2] = [b'N', 1];

/// What is said with a note, before the workspace; and what its key is derived for.
const PURPOSE: &str = "syncline sealed v1: notes";

impl WorkspaceKeys {
    /// Seals a note.
    ///
    /// # Errors
    /// [`ContentError::NotSealed`] for a plain workspace.
    pub fn seal_note(&self, note: &[u8]) -> Result<Vec<u8>, ContentError> {
        let sealer = self.note_sealer()?;
        let nonce: [u8; SMALL_NONCE_LENGTH] = random_bytes(&*sealer.random);
        let padded = Zeroizing::new(pad(note, payload_length));
        let sealed = seal_small(&sealer.note_key(), nonce, &sealer.note_associated(), &padded);
        Ok([&HEADER[..], &nonce, &sealed].concat())
    }

    /// Opens a note.
    ///
    /// # Errors
    /// [`ContentError::NotSealed`] for a plain workspace; [`ContentError::Tampered`].
    pub fn open_note(&self, sealed: &[u8]) -> Result<Vec<u8>, ContentError> {
        let sealer = self.note_sealer()?;
        let opened = || {
            let (nonce, sealed) =
                sealed.strip_prefix(&HEADER)?.split_first_chunk::<SMALL_NONCE_LENGTH>()?;
            let padded = open_small(&sealer.note_key(), *nonce, &sealer.note_associated(), sealed)?;
            unpad(&padded, payload_length).map(<[u8]>::to_vec)
        };
        opened().ok_or(ContentError::Tampered { what: "note" })
    }

    fn note_sealer(&self) -> Result<&Sealer, ContentError> {
        self.sealer.as_deref().ok_or(ContentError::NotSealed { what: "workspace" })
    }
}

impl Sealer {
    fn note_key(&self) -> SecretKey {
        self.device.content.derive(PURPOSE)
    }

    fn note_associated(&self) -> Vec<u8> {
        [PURPOSE.as_bytes(), b"\0", self.workspace.as_bytes()].concat()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use model::{DeviceId, Genesis, Mode, Timestamp};

    use super::*;
    use crate::keyring::Unlocked;
    use crate::samples::SeededRandom;
    use crate::sealed::{DeviceKeys, unlocked};

    fn keys(genesis: &Genesis, unlocked: &Unlocked, device: u8) -> WorkspaceKeys {
        let (id, seed) = (DeviceId::from_bytes([device; 16]), SecretKey::from_bytes([device; 32]));
        let device = DeviceKeys::enroll(genesis, unlocked, id, seed).unwrap();
        let random = Arc::new(SeededRandom::new(99));
        WorkspaceKeys::open(genesis, Some(device), random).unwrap()
    }

    #[test]
    fn note_is_read_by_the_next_session_and_after_new_keys_and_says_not_even_how_long_it_is() {
        let (genesis, mut opened) =
            unlocked("Letters", Timestamp::default(), &SeededRandom::new(1)).unwrap();
        let ours = keys(&genesis, &opened, 1);
        let notes = [&b""[..], b"letter.txt", "größe 🌍".as_bytes()];
        let sealed = notes.map(|note| ours.seal_note(note).unwrap());
        opened.keyring.rotate(&SeededRandom::new(2)).unwrap();
        let later = keys(&genesis, &opened, 2);
        for (note, sealed) in notes.iter().zip(&sealed) {
            assert_eq!(later.open_note(sealed).unwrap(), *note);
            assert!(!sealed.windows(6).any(|window| window == b"letter"));
        }
        assert_eq!(sealed[0].len(), sealed[2].len());
        assert_ne!(ours.seal_note(b"x").unwrap(), ours.seal_note(b"x").unwrap());
    }

    #[test]
    fn note_of_another_workspace_or_that_somebody_has_changed_is_refused() {
        let made = |seed| unlocked("Letters", Timestamp::default(), &SeededRandom::new(seed));
        let [(ours, opened), (other, others)] = [1, 2].map(|seed| made(seed).unwrap());
        let (ours, other) = (keys(&ours, &opened, 1), keys(&other, &others, 1));
        let sealed = ours.seal_note(b"letter.txt").unwrap();
        let is_refused = |keys: &WorkspaceKeys, bytes: &[u8]| {
            matches!(keys.open_note(bytes), Err(ContentError::Tampered { what: "note" }))
        };
        assert!(is_refused(&other, &sealed));
        for at in 0..sealed.len() {
            assert!(is_refused(&ours, &sealed[..at]));
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert!(is_refused(&ours, &changed));
        }
    }

    #[test]
    fn plain_workspace_has_no_notes() {
        let genesis = Genesis {
            name: String::new(),
            mode: Mode::Plain,
            created: Timestamp::default(),
            content_key: [1; 32],
        };
        let keys = WorkspaceKeys::open(&genesis, None, Arc::new(SeededRandom::new(1))).unwrap();
        assert!(matches!(keys.seal_note(b"x"), Err(ContentError::NotSealed { .. })));
        assert!(matches!(keys.open_note(b"x"), Err(ContentError::NotSealed { .. })));
    }
}
