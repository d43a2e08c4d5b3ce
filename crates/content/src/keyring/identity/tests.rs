//! Identities: what follows from the seed, what people compare, and what a server that keeps one can do with it.

use model::hex;
use zeroize::Zeroizing;

use super::*;
use crate::samples::{FixedRandom, SeededRandom};
use crate::signing::verify;

fn passphrase(text: &str) -> Passphrase {
    Passphrase::new(Zeroizing::new(text.to_owned()))
}

#[test]
fn passphrase_brings_the_same_identity_back_and_nothing_else_does() {
    let identity = Identity::random(&SeededRandom::new(1)).expect("this build can sign");
    let locked = identity.lock(&passphrase("correct horse"), &SeededRandom::new(2));
    let stored = locked.expect("locks").to_bytes();
    let locked = LockedIdentity::from_bytes(&stored).expect("reads");
    let opened = locked.unlock(&passphrase("correct horse")).expect("opens");
    assert_eq!((opened.seed(), opened.public()), (identity.seed(), identity.public()));
    for wrong in ["correct horsf", ""] {
        let refused = locked.unlock(&passphrase(wrong));
        assert!(matches!(refused, Err(ContentError::WrongKey)), "{refused:?}");
    }
    // The lock of one identity under the public keys of another.
    let other = Identity::random(&SeededRandom::new(3)).expect("this build can sign");
    let mixed = LockedIdentity { public: *other.public(), lock: locked.lock.clone() };
    let refused = mixed.unlock(&passphrase("correct horse"));
    assert!(matches!(refused, Err(ContentError::WrongKey)), "{refused:?}");
}

#[test]
fn changed_bytes_of_a_locked_identity_do_not_open() {
    let identity = Identity::random(&SeededRandom::new(1)).expect("this build can sign");
    let locked = identity.lock(&passphrase("correct horse"), &SeededRandom::new(2));
    let bytes = locked.expect("locks").to_bytes();
    for length in 0..bytes.len() {
        assert!(LockedIdentity::from_bytes(&bytes[..length]).is_err(), "{length} bytes");
    }
    let mut longer = bytes.clone();
    longer.push(0);
    assert!(LockedIdentity::from_bytes(&longer).is_err());
    // To stretch a passphrase takes long, so not every bit.
    for at in (2..bytes.len()).step_by(19) {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        let opened = LockedIdentity::from_bytes(&changed)
            .and_then(|locked| locked.unlock(&passphrase("correct horse")));
        assert!(opened.is_err(), "byte {at}");
    }
}

#[test]
fn a_lock_that_is_too_cheap_is_refused_before_it_is_tried() {
    let identity = Identity::random(&SeededRandom::new(1)).expect("this build can sign");
    let mut locked =
        identity.lock(&passphrase("correct horse"), &SeededRandom::new(2)).expect("locks");
    if let super::super::lock::Method::Passphrase { cost, .. } = &mut locked.lock.method {
        cost.passes = 1;
    }
    let refused = locked.unlock(&passphrase("correct horse"));
    assert!(matches!(refused, Err(ContentError::KeyCost { .. })), "{refused:?}");
}

#[test]
fn fingerprint_covers_both_keys_and_is_read_as_it_is_written() {
    let public = *Identity::random(&SeededRandom::new(1)).expect("this build can sign").public();
    let text = public.fingerprint().to_string();
    assert_eq!(text.len(), 29, "{text}");
    let typed = text.to_lowercase().replace('-', " ");
    assert_eq!(Fingerprint::from_text(&typed), Ok(public.fingerprint()));
    let bytes = public.to_bytes();
    assert_eq!(PublicIdentity::from_bytes(&bytes), Some(public));
    for bit in 0..bytes.len() * 8 {
        let mut other = bytes;
        other[bit / 8] ^= 1 << (bit % 8);
        let other = PublicIdentity::from_bytes(&other).expect("as long");
        assert_ne!(other.fingerprint(), public.fingerprint(), "bit {bit}");
    }
    assert_eq!(PublicIdentity::from_bytes(&bytes[1..]), None);
    for text in ["", "7", &text[1..], &format!("{text}7"), "correct horse"] {
        assert_eq!(Fingerprint::from_text(text), Err(InvalidFingerprint), "{text}");
    }
}

#[test]
fn certificate_is_for_one_device_in_one_workspace() {
    let identity = Identity::random(&SeededRandom::new(1)).expect("this build can sign");
    let (workspace, device) = (WorkspaceId::from_bytes([1; 16]), DeviceId::from_bytes([2; 16]));
    let made = identity.certify(workspace, device, SecretKey::from_bytes([3; 32]));
    let made = made.expect("certifies");
    let holds = |workspace: u8, device: u8, purpose: &str| {
        let (workspace, device) =
            (WorkspaceId::from_bytes([workspace; 16]), DeviceId::from_bytes([device; 16]));
        let message = certified_bytes(workspace, device, made.signing.public());
        verify(&identity.public().signing, purpose, &message, &made.certificate)
    };
    assert!(holds(1, 2, MEMBER_DEVICE_PURPOSE));
    assert!(!holds(2, 2, MEMBER_DEVICE_PURPOSE) && !holds(1, 3, MEMBER_DEVICE_PURPOSE));
    assert!(!holds(1, 2, super::super::DEVICE_PURPOSE), "it is none of the owner's");
}

#[test]
fn identity_has_the_documented_vectors() {
    let random = FixedRandom(7);
    let identity = Identity::random(&random).expect("this build can sign");
    let locked = identity.lock(&passphrase("correct horse"), &random).expect("locks");
    let lines = [
        ("identity, signing", hex::encode(&identity.public().signing)),
        ("identity, opening", hex::encode(&identity.public().opening)),
        ("fingerprint", identity.public().fingerprint().to_string()),
        ("length of the identity", locked.to_bytes().len().to_string()),
        ("hash of the identity", blake3::hash(&locked.to_bytes()).to_hex().to_string()),
    ];
    let document = include_str!("../../../../../docs/design/keys.md");
    let lines: String = lines.map(|(what, value)| format!("{what:<24} {value}\n")).concat();
    assert!(document.contains(&lines), "docs/design/keys.md lacks:\n{lines}");
}
