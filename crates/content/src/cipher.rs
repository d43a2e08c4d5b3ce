//! The ciphers of sealed workspaces, and nothing else: what is sealed with them, and under which key, others decide.
//!
//! AES-256-GCM seals what is large or many, under keys that serve for one pack, one commit or one page and count their
//! nonces. XChaCha20-Poly1305 seals what is small and rests under one key for years, with random nonces, and ChaCha20-Poly1305 what
//! is small under a key that serves once. A build for WebAssembly has no AES-256-GCM yet: it needs a second body of [`BoxKey`], and
//! nothing else.

use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{ChaCha20Poly1305, KeyInit, XChaCha20Poly1305};

use crate::error::ContentError;
use crate::keyring::SecretKey;

/// How many bytes a sealed box has more than what is in it.
pub(crate) const TAG_LENGTH: usize = 16;

/// Length in bytes of the random nonces of [`seal_small`], which stand before their boxes.
pub(crate) const SMALL_NONCE_LENGTH: usize = 24;

/// The nonce of a box: what kind of box, and the number of the box among its kind. A key never seals two boxes of one
/// kind and number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BoxNonce {
    pub(crate) kind: u8,
    pub(crate) number: u32,
}

impl BoxNonce {
    #[cfg(not(target_family = "wasm"))]
    fn bytes(self) -> [u8; 12] {
        let mut bytes = [0; 12];
        bytes[0] = self.kind;
        bytes[8..].copy_from_slice(&self.number.to_le_bytes());
        bytes
    }
}

/// An AES-256-GCM key that seals the boxes of one pack, commit or page.
pub(crate) struct BoxKey {
    #[cfg(not(target_family = "wasm"))]
    key: ring::aead::LessSafeKey,
}

#[cfg(not(target_family = "wasm"))]
impl BoxKey {
    /// Prepares a key.
    pub(crate) fn new(key: &SecretKey) -> Result<Self, ContentError> {
        let key = ring::aead::UnboundKey::new(&ring::aead::AES_256_GCM, key.as_bytes());
        let key = key.map_err(|_| ContentError::UnsupportedSeal)?;
        Ok(Self { key: ring::aead::LessSafeKey::new(key) })
    }

    /// Seals bytes in their place and returns the tag that belongs behind them.
    pub(crate) fn seal(
        &self,
        nonce: BoxNonce,
        associated: &[u8],
        bytes: &mut [u8],
    ) -> Result<[u8; TAG_LENGTH], ContentError> {
        let nonce = ring::aead::Nonce::assume_unique_for_key(nonce.bytes());
        let associated = ring::aead::Aad::from(associated);
        let tag = self.key.seal_in_place_separate_tag(nonce, associated, bytes);
        let tag = tag.map_err(|_| ContentError::UnsupportedSeal)?;
        Ok(tag.as_ref().try_into().expect("the tags of AES-256-GCM have 16 bytes"))
    }

    /// Opens bytes with their tag in their place; nothing where they are not what was sealed.
    pub(crate) fn open<'a>(
        &self,
        nonce: BoxNonce,
        associated: &[u8],
        sealed: &'a mut [u8],
    ) -> Option<&'a [u8]> {
        let nonce = ring::aead::Nonce::assume_unique_for_key(nonce.bytes());
        let associated = ring::aead::Aad::from(associated);
        self.key.open_in_place(nonce, associated, sealed).ok().map(|plain| &*plain)
    }
}

#[cfg(target_family = "wasm")]
impl BoxKey {
    pub(crate) fn new(_: &SecretKey) -> Result<Self, ContentError> {
        Err(ContentError::UnsupportedSeal)
    }

    pub(crate) fn seal(
        &self,
        _: BoxNonce,
        _: &[u8],
        _: &mut [u8],
    ) -> Result<[u8; TAG_LENGTH], ContentError> {
        Err(ContentError::UnsupportedSeal)
    }

    pub(crate) fn open<'a>(&self, _: BoxNonce, _: &[u8], _: &'a mut [u8]) -> Option<&'a [u8]> {
        None
    }
}

/// Seals something small with XChaCha20-Poly1305.
pub(crate) fn seal_small(
    key: &SecretKey,
    nonce: [u8; SMALL_NONCE_LENGTH],
    associated: &[u8],
    plain: &[u8],
) -> Vec<u8> {
    let cipher = XChaCha20Poly1305::new(key.as_bytes().into());
    let sealed = cipher.encrypt(&nonce.into(), Payload { msg: plain, aad: associated });
    sealed.expect("what is small is shorter than the cipher's limit")
}

/// Opens what [`seal_small`] has sealed; nothing where it is not that.
pub(crate) fn open_small(
    key: &SecretKey,
    nonce: [u8; SMALL_NONCE_LENGTH],
    associated: &[u8],
    sealed: &[u8],
) -> Option<zeroize::Zeroizing<Vec<u8>>> {
    let cipher = XChaCha20Poly1305::new(key.as_bytes().into());
    let plain = cipher.decrypt(&nonce.into(), Payload { msg: sealed, aad: associated });
    plain.ok().map(zeroize::Zeroizing::new)
}

/// Seals something small with ChaCha20-Poly1305, under a key that never seals anything else.
pub(crate) fn seal_once(
    key: &SecretKey,
    nonce: [u8; 12],
    associated: &[u8],
    plain: &[u8],
) -> Vec<u8> {
    let cipher = ChaCha20Poly1305::new(key.as_bytes().into());
    let sealed = cipher.encrypt(&nonce.into(), Payload { msg: plain, aad: associated });
    sealed.expect("what is small is shorter than the cipher's limit")
}

/// Opens what [`seal_once`] has sealed; nothing where it is not that.
pub(crate) fn open_once(
    key: &SecretKey,
    nonce: [u8; 12],
    associated: &[u8],
    sealed: &[u8],
) -> Option<zeroize::Zeroizing<Vec<u8>>> {
    let cipher = ChaCha20Poly1305::new(key.as_bytes().into());
    let plain = cipher.decrypt(&nonce.into(), Payload { msg: sealed, aad: associated });
    plain.ok().map(zeroize::Zeroizing::new)
}
