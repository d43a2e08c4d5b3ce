//! Ed25519 signatures, each for one purpose that is named in what is signed.

use std::fmt;

use crate::error::ContentError;
use crate::keyring::SecretKey;

/// Length in bytes of a signature.
pub const SIGNATURE_LENGTH: usize = 64;

/// A key that signs.
#[derive(Clone)]
pub struct SigningKey {
    seed: SecretKey,
    public: [u8; 32],
}

impl SigningKey {
    /// Makes the key of a seed.
    ///
    /// # Errors
    /// [`ContentError::UnsupportedSeal`].
    pub fn from_seed(seed: SecretKey) -> Result<Self, ContentError> {
        let public = public_key(&seed)?;
        Ok(Self { seed, public })
    }

    /// Returns the public key, which verifies.
    pub fn public(&self) -> &[u8; 32] {
        &self.public
    }

    /// Returns the seed, which is the key.
    pub fn seed(&self) -> &SecretKey {
        &self.seed
    }

    /// Signs a message for a purpose.
    ///
    /// # Errors
    /// [`ContentError::UnsupportedSeal`].
    pub fn sign(
        &self,
        purpose: &str,
        message: &[u8],
    ) -> Result<[u8; SIGNATURE_LENGTH], ContentError> {
        sign(&self.seed, &signed_bytes(purpose, message))
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SigningKey(secret)")
    }
}

/// Tells whether a signature is that of the holder of a public key, for a message and a purpose.
pub fn verify(
    public: &[u8; 32],
    purpose: &str,
    message: &[u8],
    signature: &[u8; SIGNATURE_LENGTH],
) -> bool {
    is_signed(public, &signed_bytes(purpose, message), signature)
}

fn signed_bytes(purpose: &str, message: &[u8]) -> Vec<u8> {
    [purpose.as_bytes(), &[0], message].concat()
}

#[cfg(not(target_family = "wasm"))]
use native::{is_signed, public_key, sign};
#[cfg(target_family = "wasm")]
use portable::{is_signed, public_key, sign};

#[cfg(not(target_family = "wasm"))]
mod native {
    use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};

    use super::SIGNATURE_LENGTH;
    use crate::error::ContentError;
    use crate::keyring::SecretKey;

    fn key_pair(seed: &SecretKey) -> Result<Ed25519KeyPair, ContentError> {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed.as_bytes());
        pair.map_err(|_| ContentError::UnsupportedSeal)
    }

    pub(super) fn public_key(seed: &SecretKey) -> Result<[u8; 32], ContentError> {
        let public = *key_pair(seed)?.public_key();
        Ok(public.as_ref().try_into().expect("public keys of Ed25519 have 32 bytes"))
    }

    pub(super) fn sign(
        seed: &SecretKey,
        message: &[u8],
    ) -> Result<[u8; SIGNATURE_LENGTH], ContentError> {
        let signature = key_pair(seed)?.sign(message);
        Ok(signature.as_ref().try_into().expect("signatures of Ed25519 have 64 bytes"))
    }

    pub(super) fn is_signed(
        public: &[u8; 32],
        message: &[u8],
        signature: &[u8; SIGNATURE_LENGTH],
    ) -> bool {
        UnparsedPublicKey::new(&ED25519, public).verify(message, signature).is_ok()
    }
}

/// The same in Rust alone, for WebAssembly. Both take a signature for right where the equation of RFC 8032 (section 5.1.7) holds without
/// the cofactor: what one device takes for signed, all do.
#[cfg(any(target_family = "wasm", test))]
mod portable {
    use ed25519_dalek::{Signature, Signer, SigningKey, Verifier, VerifyingKey};

    use super::SIGNATURE_LENGTH;
    use crate::error::ContentError;
    use crate::keyring::SecretKey;

    #[cfg_attr(test, expect(clippy::unnecessary_wraps, reason = "as the other one has it"))]
    pub(super) fn public_key(seed: &SecretKey) -> Result<[u8; 32], ContentError> {
        Ok(SigningKey::from_bytes(seed.as_bytes()).verifying_key().to_bytes())
    }

    pub(super) fn sign(
        seed: &SecretKey,
        message: &[u8],
    ) -> Result<[u8; SIGNATURE_LENGTH], ContentError> {
        let signature = SigningKey::from_bytes(seed.as_bytes()).try_sign(message);
        signature.map(|signature| signature.to_bytes()).map_err(|_| ContentError::UnsupportedSeal)
    }

    pub(super) fn is_signed(
        public: &[u8; 32],
        message: &[u8],
        signature: &[u8; SIGNATURE_LENGTH],
    ) -> bool {
        let signature = Signature::from_bytes(signature);
        let key = VerifyingKey::from_bytes(public);
        key.is_ok_and(|key| key.verify(message, &signature).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::random_bytes;

    fn array<const N: usize>(seed: u64) -> [u8; N] {
        random_bytes(seed, N).try_into().expect("it has that many bytes")
    }

    #[test]
    fn browser_and_program_sign_alike() {
        for seed in 0..8 {
            let (secret, message) = (SecretKey::from_bytes(array(seed)), random_bytes(seed, 90));
            let public = public_key(&secret).expect("it has one");
            assert_eq!(portable::public_key(&secret).expect("it has one"), public);
            let signature = sign(&secret, &message).expect("it signs");
            assert_eq!(portable::sign(&secret, &message).expect("it signs"), signature);
            assert!(portable::is_signed(&public, &message, &signature));
            for at in (0..SIGNATURE_LENGTH).step_by(7) {
                let mut flipped = signature;
                flipped[at] ^= 0x20;
                assert!(!portable::is_signed(&public, &message, &flipped), "{at}");
            }
            assert!(!portable::is_signed(&public, b"another message", &signature));
        }
    }

    /// Points of small order, some of them in spellings that are not canonical, and numbers from the order of the group on: where
    /// implementations of Ed25519 differ, devices would.
    #[test]
    fn browser_and_program_agree_on_what_only_a_forger_makes() {
        let mut points = vec![[0; 32], [0xff; 32]];
        for low in [0_u8, 1, 2, 0xec, 0xed, 0xee, 0xef] {
            for (fill, high) in [(0, 0), (0, 0x80), (0xff, 0x7f), (0xff, 0xff)] {
                let mut point = [fill; 32];
                (point[0], point[31]) = (low, high);
                points.push(point);
            }
        }
        let order_8 = "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a";
        let bytes = (0..32).map(|at| u8::from_str_radix(&order_8[2 * at..2 * at + 2], 16).unwrap());
        points.push(bytes.collect::<Vec<_>>().try_into().unwrap());
        // The order of the group, one less, and one more.
        let mut order = [0; 32];
        order[..16].copy_from_slice(&0x14de_f9de_a2f7_9cd6_5812_631a_5cf5_d3ed_u128.to_le_bytes());
        order[31] = 0x10;
        let near = |change: i8| {
            let mut number = order;
            number[0] = number[0].wrapping_add_signed(change);
            number
        };
        let numbers = [[0; 32], near(-1), near(0)];
        let mut signed = 0;
        for public in &points {
            for point in points.iter().step_by(2) {
                for number in &numbers {
                    let signature = [&point[..], number].concat().try_into().unwrap();
                    let ours = is_signed(public, b"one", &signature);
                    let theirs = portable::is_signed(public, b"one", &signature);
                    assert_eq!(ours, theirs, "{public:?} {signature:?}");
                    signed += usize::from(ours);
                }
            }
        }
        assert!(signed > 0, "a key of small order signs anything");
    }
}
