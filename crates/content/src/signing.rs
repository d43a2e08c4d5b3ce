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
fn key_pair(seed: &SecretKey) -> Result<ring::signature::Ed25519KeyPair, ContentError> {
    let pair = ring::signature::Ed25519KeyPair::from_seed_unchecked(seed.as_bytes());
    pair.map_err(|_| ContentError::UnsupportedSeal)
}

#[cfg(not(target_family = "wasm"))]
fn public_key(seed: &SecretKey) -> Result<[u8; 32], ContentError> {
    use ring::signature::KeyPair;
    let public = *key_pair(seed)?.public_key();
    Ok(public.as_ref().try_into().expect("public keys of Ed25519 have 32 bytes"))
}

#[cfg(not(target_family = "wasm"))]
fn sign(seed: &SecretKey, message: &[u8]) -> Result<[u8; SIGNATURE_LENGTH], ContentError> {
    let signature = key_pair(seed)?.sign(message);
    Ok(signature.as_ref().try_into().expect("signatures of Ed25519 have 64 bytes"))
}

#[cfg(not(target_family = "wasm"))]
fn is_signed(public: &[u8; 32], message: &[u8], signature: &[u8; SIGNATURE_LENGTH]) -> bool {
    let key = ring::signature::UnparsedPublicKey::new(&ring::signature::ED25519, public);
    key.verify(message, signature).is_ok()
}

#[cfg(target_family = "wasm")]
fn public_key(_: &SecretKey) -> Result<[u8; 32], ContentError> {
    Err(ContentError::UnsupportedSeal)
}

#[cfg(target_family = "wasm")]
fn sign(_: &SecretKey, _: &[u8]) -> Result<[u8; SIGNATURE_LENGTH], ContentError> {
    Err(ContentError::UnsupportedSeal)
}

#[cfg(target_family = "wasm")]
fn is_signed(_: &[u8; 32], _: &[u8], _: &[u8; SIGNATURE_LENGTH]) -> bool {
    false
}
