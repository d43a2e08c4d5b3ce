//! HPKE (RFC 9180) in its base mode, for one message to one receiver: DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, ChaCha20-Poly1305.
//!
//! Who seals cannot be known from the box; whoever needs that puts a signature into it. The names are those of the RFC, and its
//! own vector is among the tests. It builds for WebAssembly.

use curve25519_dalek::MontgomeryPoint;
use hkdf::Hkdf;
use sha2::Sha256;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use crate::cipher::{open_once, seal_once};
use crate::error::ContentError;
use crate::keyring::SecretKey;

/// DHKEM(X25519, HKDF-SHA256).
const KEM_SUITE: &[u8] = b"KEM\x00\x20";

/// The same with HKDF-SHA256 and ChaCha20-Poly1305.
const SUITE: &[u8] = b"HPKE\x00\x20\x00\x01\x00\x03";

const VERSION: &[u8] = b"HPKE-v1";

/// The base mode: no key that both sides had before, and no sender that is known.
const MODE_BASE: u8 = 0;

const NONCE_LENGTH: usize = 12;

/// Length in bytes of what the receiver needs beside the box.
pub(crate) const ENCAPSULATED_LENGTH: usize = 32;

/// Returns the public key of a receiver.
pub(crate) fn public_key(secret: &SecretKey) -> [u8; 32] {
    MontgomeryPoint::mul_base_clamped(*secret.as_bytes()).to_bytes()
}

/// Seals a message to a receiver, with an ephemeral key that serves for it alone. Returns the encapsulated key and the box.
///
/// # Errors
/// [`ContentError::InvalidIdentity`] where the key of the receiver is none.
pub(crate) fn seal(
    receiver: &[u8; 32],
    (info, associated): (&[u8], &[u8]),
    plain: &[u8],
    ephemeral: &SecretKey,
) -> Result<([u8; ENCAPSULATED_LENGTH], Vec<u8>), ContentError> {
    let encapsulated = public_key(ephemeral);
    let shared = agree(ephemeral, receiver).ok_or(ContentError::InvalidIdentity)?;
    let (key, nonce) = schedule(&shared_secret(&shared, &encapsulated, receiver), info);
    Ok((encapsulated, seal_once(&key, nonce, associated, plain)))
}

/// Opens what [`seal`] has sealed to the holder of a secret key; nothing where it is not that.
pub(crate) fn open(
    secret: &SecretKey,
    encapsulated: &[u8; ENCAPSULATED_LENGTH],
    (info, associated): (&[u8], &[u8]),
    sealed: &[u8],
) -> Option<Zeroizing<Vec<u8>>> {
    let shared = agree(secret, encapsulated)?;
    let (key, nonce) = schedule(&shared_secret(&shared, encapsulated, &public_key(secret)), info);
    open_once(&key, nonce, associated, sealed)
}

/// X25519; nothing for a point of small order, with which everybody would agree on the same.
fn agree(secret: &SecretKey, public: &[u8; 32]) -> Option<SecretKey> {
    let shared = MontgomeryPoint(*public).mul_clamped(*secret.as_bytes());
    let is_nothing: bool = shared.as_bytes().ct_eq(&[0; 32]).into();
    (!is_nothing).then(|| SecretKey::from_bytes(shared.to_bytes()))
}

fn shared_secret(agreed: &SecretKey, encapsulated: &[u8; 32], receiver: &[u8; 32]) -> SecretKey {
    let prk = extract(KEM_SUITE, &[], b"eae_prk", agreed.as_bytes());
    let mut secret = Zeroizing::new([0; 32]);
    let context = [&encapsulated[..], receiver].concat();
    expand(KEM_SUITE, &prk, b"shared_secret", &context, &mut *secret);
    SecretKey::from_bytes(*secret)
}

fn schedule(shared: &SecretKey, info: &[u8]) -> (SecretKey, [u8; NONCE_LENGTH]) {
    let mut context = vec![MODE_BASE];
    context.extend_from_slice(extract(SUITE, &[], b"psk_id_hash", b"").as_bytes());
    context.extend_from_slice(extract(SUITE, &[], b"info_hash", info).as_bytes());
    let secret = extract(SUITE, shared.as_bytes(), b"secret", b"");
    let (mut key, mut nonce) = (Zeroizing::new([0; 32]), [0; NONCE_LENGTH]);
    expand(SUITE, &secret, b"key", &context, &mut *key);
    expand(SUITE, &secret, b"base_nonce", &context, &mut nonce);
    (SecretKey::from_bytes(*key), nonce)
}

/// `LabeledExtract` of the RFC.
fn extract(suite: &[u8], salt: &[u8], label: &[u8], secret: &[u8]) -> SecretKey {
    let labeled = Zeroizing::new([VERSION, suite, label, secret].concat());
    let (key, _) = Hkdf::<Sha256>::extract(Some(salt), &labeled);
    SecretKey::from_bytes(key.into())
}

/// `LabeledExpand` of the RFC; fills `output`.
fn expand(suite: &[u8], key: &SecretKey, label: &[u8], context: &[u8], output: &mut [u8]) {
    let length = u16::try_from(output.len()).expect("keys are short").to_be_bytes();
    let labeled = [&length[..], VERSION, suite, label, context].concat();
    let key = Hkdf::<Sha256>::from_prk(key.as_bytes()).expect("keys are as long as the hash");
    key.expand(&labeled, output).expect("keys are short");
}

#[cfg(test)]
mod tests {
    use model::hex;

    use super::*;

    fn bytes(digits: &str) -> Vec<u8> {
        hex::decode(digits).expect("digits")
    }

    fn key(digits: &str) -> [u8; 32] {
        bytes(digits).try_into().expect("32 bytes")
    }

    const INFO: &str = "4f6465206f6e2061204772656369616e2055726e";
    const EPHEMERAL: &str = "f4ec9b33b792c372c1d2c2063507b684ef925b8c75a42dbcbf57d63ccd381600";
    const RECEIVER: &str = "8057991eef8f1f1af18f4a9491d16a1ce333f695d4db8e38da75975c4478e0fb";

    /// RFC 9180, appendix A.2.1, sequence number 0.
    #[test]
    fn vector_of_the_rfc_is_what_is_made() {
        let (ephemeral, receiver) =
            (SecretKey::from_bytes(key(EPHEMERAL)), SecretKey::from_bytes(key(RECEIVER)));
        let public = public_key(&receiver);
        assert_eq!(public, key("4310ee97d88cc1f088a5576c77ab0cf5c3ac797f3d95139c6c84b5429c59662a"));
        let info = bytes(INFO);
        let said = (&info[..], &b"Count-0"[..]);
        let plain = b"Beauty is truth, truth beauty";
        let (encapsulated, sealed) = seal(&public, said, plain, &ephemeral).expect("seals");
        assert_eq!(
            encapsulated,
            key("1afa08d3dec047a643885163f1180476fa7ddb54c6a8029ea33f95796bf2ac4a")
        );
        assert_eq!(
            sealed,
            bytes(
                "1c5250d8034ec2b784ba2cfd69dbdb8af406cfe3ff938e131f0def8c8b60b4db21993c62ce81883d2dd1b51a28"
            )
        );
        let opened = open(&receiver, &encapsulated, said, &sealed).expect("opens");
        assert_eq!(&opened[..], plain);
    }

    #[test]
    fn nothing_else_opens() {
        let receiver = SecretKey::from_bytes([3; 32]);
        let said = (&b"info"[..], &b"associated"[..]);
        let ephemeral = SecretKey::from_bytes([4; 32]);
        let (encapsulated, sealed) =
            seal(&public_key(&receiver), said, b"plain", &ephemeral).expect("seals");
        assert!(open(&SecretKey::from_bytes([5; 32]), &encapsulated, said, &sealed).is_none());
        assert!(open(&receiver, &encapsulated, (b"inf", said.1), &sealed).is_none());
        assert!(open(&receiver, &encapsulated, (said.0, b"other"), &sealed).is_none());
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert!(open(&receiver, &encapsulated, said, &changed).is_none(), "byte {at}");
        }
        // The highest bit of the point, which X25519 ignores, counts, too.
        for bit in 0..256 {
            let mut changed = encapsulated;
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(open(&receiver, &changed, said, &sealed).is_none(), "bit {bit}");
        }
    }

    #[test]
    fn points_of_small_order_are_no_keys() {
        let mut one = [0; 32];
        one[0] = 1;
        for point in [[0; 32], one] {
            let refused = seal(&point, (b"", b""), b"plain", &SecretKey::from_bytes([4; 32]));
            assert!(matches!(refused, Err(ContentError::InvalidIdentity)), "{refused:?}");
            assert!(open(&SecretKey::from_bytes([3; 32]), &point, (b"", b""), &[0; 21]).is_none());
        }
    }
}
