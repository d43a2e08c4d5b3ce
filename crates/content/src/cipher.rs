//! The ciphers of sealed workspaces, and nothing else: what is sealed with them, and under which key, others decide.
//!
//! AES-256-GCM seals what is large or many, under keys that serve for one pack, one commit or one page and count their
//! nonces. XChaCha20-Poly1305 seals what is small and rests under one key for years, with random nonces, and ChaCha20-Poly1305 what
//! is small under a key that serves once. A build for WebAssembly has no AES-256-GCM yet: it needs a second body of [`BoxKey`], and
//! nothing else.

use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{ChaCha20Poly1305, KeyInit, XChaCha20Poly1305};

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
    fn bytes(self) -> [u8; 12] {
        let mut bytes = [0; 12];
        bytes[0] = self.kind;
        bytes[8..].copy_from_slice(&self.number.to_le_bytes());
        bytes
    }
}

/// An AES-256-GCM key that seals the boxes of one pack, commit or page.
#[cfg(not(target_family = "wasm"))]
pub(crate) use native::BoxKey;
#[cfg(target_family = "wasm")]
pub(crate) use portable::BoxKey;

#[cfg(not(target_family = "wasm"))]
mod native {
    use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};

    use super::{BoxNonce, TAG_LENGTH};
    use crate::error::ContentError;
    use crate::keyring::SecretKey;

    pub(crate) struct BoxKey {
        key: LessSafeKey,
    }

    impl BoxKey {
        /// Prepares a key.
        pub(crate) fn new(key: &SecretKey) -> Result<Self, ContentError> {
            let key = UnboundKey::new(&AES_256_GCM, key.as_bytes());
            let key = key.map_err(|_| ContentError::UnsupportedSeal)?;
            Ok(Self { key: LessSafeKey::new(key) })
        }

        /// Seals bytes in their place and returns the tag that belongs behind them.
        pub(crate) fn seal(
            &self,
            nonce: BoxNonce,
            associated: &[u8],
            bytes: &mut [u8],
        ) -> Result<[u8; TAG_LENGTH], ContentError> {
            let nonce = Nonce::assume_unique_for_key(nonce.bytes());
            let tag = self.key.seal_in_place_separate_tag(nonce, Aad::from(associated), bytes);
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
            let nonce = Nonce::assume_unique_for_key(nonce.bytes());
            let opened = self.key.open_in_place(nonce, Aad::from(associated), sealed);
            opened.ok().map(|plain| &*plain)
        }
    }
}

/// The same in Rust alone, for WebAssembly; slower.
#[cfg(any(target_family = "wasm", test))]
mod portable {
    use aes_gcm::aead::AeadInOut;
    use aes_gcm::{Aes256Gcm, KeyInit};

    use super::{BoxNonce, TAG_LENGTH};
    use crate::error::ContentError;
    use crate::keyring::SecretKey;

    pub(crate) struct BoxKey {
        key: Aes256Gcm,
    }

    impl BoxKey {
        /// Prepares a key.
        #[cfg_attr(test, expect(clippy::unnecessary_wraps, reason = "as the other one has it"))]
        pub(crate) fn new(key: &SecretKey) -> Result<Self, ContentError> {
            Ok(Self { key: Aes256Gcm::new(key.as_bytes().into()) })
        }

        /// Seals bytes in their place and returns the tag that belongs behind them.
        pub(crate) fn seal(
            &self,
            nonce: BoxNonce,
            associated: &[u8],
            bytes: &mut [u8],
        ) -> Result<[u8; TAG_LENGTH], ContentError> {
            let nonce = nonce.bytes().into();
            let tag = self.key.encrypt_inout_detached(&nonce, associated, bytes.into());
            tag.map(Into::into).map_err(|_| ContentError::UnsupportedSeal)
        }

        /// Opens bytes with their tag in their place; nothing where they are not what was sealed.
        pub(crate) fn open<'a>(
            &self,
            nonce: BoxNonce,
            associated: &[u8],
            sealed: &'a mut [u8],
        ) -> Option<&'a [u8]> {
            let (bytes, tag) = sealed.split_last_chunk_mut::<TAG_LENGTH>()?;
            let (nonce, tag) = (nonce.bytes().into(), (*tag).into());
            let opened = self.key.decrypt_inout_detached(&nonce, associated, bytes.into(), &tag);
            opened.ok().map(|()| &*bytes)
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::random_bytes;

    fn key(seed: u64) -> SecretKey {
        SecretKey::from_bytes(random_bytes(seed, 32).try_into().expect("it has 32 bytes"))
    }

    #[test]
    fn browser_and_program_seal_and_open_alike() {
        for length in [0, 1, 15, 16, 17, 100, 4096, 70_001] {
            let (plain, key) = (random_bytes(length as u64, length), key(7));
            let ours = BoxKey::new(&key).expect("it prepares");
            let theirs = portable::BoxKey::new(&key).expect("it prepares");
            let nonce = BoxNonce { kind: 3, number: length as u32 };
            let (mut one, mut other) = (plain.clone(), plain.clone());
            let tag = ours.seal(nonce, b"about", &mut one).expect("it seals");
            assert_eq!(theirs.seal(nonce, b"about", &mut other).expect("it seals"), tag);
            assert_eq!(one, other);
            let sealed = [&one[..], &tag].concat();
            assert_eq!(ours.open(nonce, b"about", &mut sealed.clone()), Some(&plain[..]));
            assert_eq!(theirs.open(nonce, b"about", &mut sealed.clone()), Some(&plain[..]));
            let elsewhere = BoxNonce { number: nonce.number + 1, ..nonce };
            assert_eq!(theirs.open(elsewhere, b"about", &mut sealed.clone()), None);
            assert_eq!(theirs.open(nonce, b"another", &mut sealed.clone()), None);
            for at in [0, length / 2, sealed.len() - 1] {
                let mut flipped = sealed.clone();
                flipped[at] ^= 1;
                assert_eq!(theirs.open(nonce, b"about", &mut flipped), None, "{length}, {at}");
            }
            assert_eq!(theirs.open(nonce, b"about", &mut sealed[..15].to_vec()), None);
        }
    }
}
