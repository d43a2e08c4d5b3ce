//! Who vouches for a message in a group whose stores may lie.

use std::fmt::Debug;

/// A signature, and the public key that it is to be checked with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Certificate {
    /// Public key of the signer.
    pub signer: [u8; 32],
    /// The signature.
    pub signature: [u8; 64],
}

/// Signs as this device, and knows whose signatures count.
pub trait Certifier: Send + Sync + Debug {
    /// Signs.
    fn sign(&self, text: &[u8]) -> Certificate;

    /// Tells whether the signature fits and its signer may write to the workspace.
    fn verify(&self, text: &[u8], certificate: &Certificate) -> bool;
}

#[cfg(feature = "ed25519")]
pub use ed25519::Ed25519Certifier;

#[cfg(feature = "ed25519")]
mod ed25519 {
    use std::fmt;

    use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};

    use super::{Certificate, Certifier};

    /// Signs with an Ed25519 key, and believes a fixed set of devices.
    pub struct Ed25519Certifier {
        key: Ed25519KeyPair,
        own: [u8; 32],
        others: Vec<[u8; 32]>,
    }

    impl Ed25519Certifier {
        /// Takes the secret seed of this device's key, and the public keys of the other devices.
        pub fn new(seed: &[u8; 32], others: Vec<[u8; 32]>) -> Self {
            let key = Ed25519KeyPair::from_seed_unchecked(seed)
                .expect("every 32 bytes are the seed of a key");
            let own = key.public_key().as_ref().try_into().expect("a public key has 32 bytes");
            Self { key, own, others }
        }

        /// Returns the public key of this device.
        pub fn public_key(&self) -> [u8; 32] {
            self.own
        }
    }

    impl fmt::Debug for Ed25519Certifier {
        fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.debug_struct("Ed25519Certifier").finish_non_exhaustive()
        }
    }

    impl Certifier for Ed25519Certifier {
        fn sign(&self, text: &[u8]) -> Certificate {
            let signature = self.key.sign(text);
            let signature = signature.as_ref().try_into().expect("a signature has 64 bytes");
            Certificate { signer: self.own, signature }
        }

        fn verify(&self, text: &[u8], certificate: &Certificate) -> bool {
            let is_known =
                certificate.signer == self.own || self.others.contains(&certificate.signer);
            let key = UnparsedPublicKey::new(&ED25519, &certificate.signer);
            is_known && key.verify(text, &certificate.signature).is_ok()
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn signatures_of_known_devices_count_and_no_others() {
            let stranger = Ed25519Certifier::new(&[3; 32], Vec::new());
            let other = Ed25519Certifier::new(&[2; 32], Vec::new());
            let own = Ed25519Certifier::new(&[1; 32], vec![other.public_key()]);
            assert!(own.verify(b"text", &own.sign(b"text")));
            assert!(own.verify(b"text", &other.sign(b"text")));
            assert!(!own.verify(b"text", &stranger.sign(b"text")));
            assert!(!own.verify(b"other text", &other.sign(b"text")));
            let mut bent = other.sign(b"text");
            bent.signature[7] ^= 1;
            assert!(!own.verify(b"text", &bent));
            let borrowed = Certificate { signer: own.public_key(), ..stranger.sign(b"text") };
            assert!(!own.verify(b"text", &borrowed));
        }
    }
}
