//! Envelopes: what the owner gives and the member takes, and what everybody else cannot do.

use model::hex;

use super::*;
use crate::keyring::Keyring;
use crate::samples::{FixedRandom, SeededRandom};
use crate::sealed::WorkspaceKeys;

const DEVICE: DeviceId = DeviceId::from_bytes([9; 16]);

fn workspace(seed: u64) -> (Genesis, Unlocked) {
    let random = SeededRandom::new(seed);
    super::super::genesis::unlocked("Letters", Timestamp::default(), &random)
        .expect("this build can seal")
}

fn identity(seed: u64) -> Identity {
    Identity::random(&SeededRandom::new(seed)).expect("this build can sign")
}

fn seed() -> SecretKey {
    SecretKey::from_bytes([5; 32])
}

fn take(
    genesis: &Genesis,
    identity: &Identity,
    envelope: &Envelope,
) -> Result<DeviceKeys, ContentError> {
    DeviceKeys::enroll_member(genesis, identity, envelope, (DEVICE, seed()))
}

#[test]
fn member_has_the_keys_of_the_owner_and_a_certificate_of_its_own() {
    let (genesis, mut unlocked) = workspace(1);
    unlocked.keyring.rotate(&SeededRandom::new(7)).expect("there is room");
    unlocked.generation = 2;
    let bob = identity(10);
    let envelope = Envelope::seal(&genesis, &unlocked, bob.public(), &SeededRandom::new(3));
    let bytes = envelope.expect("seals").to_bytes();
    let envelope = Envelope::from_bytes(&bytes).expect("reads");
    let keys = take(&genesis, &bob, &envelope).expect("opens");
    let of_owner = DeviceKeys::enroll(&genesis, &unlocked, DEVICE, seed()).expect("enrolls");
    assert_eq!((keys.name.as_str(), keys.generation), ("Letters", 2));
    assert_eq!((&keys.content, &keys.epochs), (&of_owner.content, &of_owner.epochs));
    assert_eq!((keys.created, keys.account), (of_owner.created, of_owner.account));
    assert_ne!(keys.identity.certificate, of_owner.identity.certificate);
    WorkspaceKeys::open(&genesis, Some(keys), std::sync::Arc::new(SeededRandom::new(4)))
        .expect("opens");
}

#[test]
fn nobody_else_opens_it_and_no_bit_can_be_changed() {
    let (genesis, unlocked) = workspace(1);
    let (bob, eve) = (identity(10), identity(11));
    let envelope = Envelope::seal(&genesis, &unlocked, bob.public(), &SeededRandom::new(3));
    let envelope = envelope.expect("seals");
    let is_wrong = |taken: Result<DeviceKeys, ContentError>| {
        assert!(matches!(taken, Err(ContentError::WrongKey)), "{taken:?}");
    };
    is_wrong(take(&genesis, &eve, &envelope));
    is_wrong(take(&workspace(2).0, &bob, &envelope));
    let bytes = envelope.to_bytes();
    for length in 0..bytes.len() {
        assert!(Envelope::from_bytes(&bytes[..length]).is_err(), "{length} bytes");
    }
    for bit in 0..bytes.len() * 8 {
        let mut changed = bytes.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        let taken =
            Envelope::from_bytes(&changed).and_then(|envelope| take(&genesis, &bob, &envelope));
        assert!(taken.is_err(), "bit {bit}");
    }
}

/// A server has the public keys of everybody, and can seal to them.
#[test]
fn what_the_account_has_not_sealed_is_refused() {
    let (genesis, unlocked) = workspace(1);
    let bob = identity(10);
    let (_, theirs) = workspace(2);
    let mut encoder = Encoder::default();
    encoder.byte_string(b"Letters");
    Timestamp::default().encode(&mut encoder);
    encoder.unsigned(1);
    encode_data_keys(&mut encoder, &theirs.keyring.content, &theirs.keyring.epochs);
    let inside = encoder.into_bytes();
    let (id, sealed) = sealed_genesis(&genesis).expect("it is sealed");
    let seal = |signature: &[u8]| {
        let padded = pad(&[&inside[..], signature].concat(), padded_length);
        let associated = associated(id, &sealed.account, bob.public());
        let said = (ENVELOPE_PURPOSE.as_bytes(), &associated[..]);
        let ephemeral = SecretKey::from_bytes([8; 32]);
        let made = hpke::seal(&bob.public().opening, said, &padded, &ephemeral);
        let (encapsulated, sealed) = made.expect("seals");
        Envelope { encapsulated, sealed }
    };
    let message = signed_bytes(id, bob.public(), &inside);
    let sign = |account: &Unlocked, message: &[u8]| {
        let signing = account.account.signing().expect("signs");
        signing.sign(ENVELOPE_PURPOSE, message).expect("signs")
    };
    let genuine = seal(&sign(&unlocked, &message));
    assert!(take(&genesis, &bob, &genuine).is_ok(), "the forger does all else right");
    // Signed by another account; what the account has signed to another member; not signed at all.
    let to_eve = signed_bytes(id, identity(11).public(), &inside);
    for forged in [seal(&sign(&theirs, &message)), seal(&sign(&unlocked, &to_eve)), seal(&[0; 64])]
    {
        let taken = take(&genesis, &bob, &forged);
        assert!(matches!(taken, Err(ContentError::WrongKey)), "{taken:?}");
    }
    for short in [&[][..], &[0; 63]] {
        assert!(take(&genesis, &bob, &seal(short)).is_err());
    }
}

#[test]
fn most_keys_that_a_workspace_can_have_fit_into_an_envelope() {
    let (genesis, mut unlocked) = workspace(1);
    let random = SeededRandom::new(5);
    while unlocked.keyring.rotate(&random).is_ok() {}
    let Keyring { epochs, .. } = &unlocked.keyring;
    let bob = identity(10);
    let envelope = Envelope::seal(&genesis, &unlocked, bob.public(), &random).expect("seals");
    let bytes = envelope.to_bytes();
    assert!(bytes.len() <= ENVELOPE_LENGTH_MAX, "{}", bytes.len());
    let keys = take(&genesis, &bob, &Envelope::from_bytes(&bytes).expect("reads"));
    assert_eq!(keys.expect("opens").epochs.len(), epochs.len());
}

#[test]
fn envelope_has_the_documented_vectors() {
    let random = FixedRandom(7);
    let created = Timestamp { seconds: 1_700_000_000, nanoseconds: 0 };
    let made = super::super::genesis::unlocked("Letters", created, &random);
    let (genesis, unlocked) = made.expect("this build can seal");
    let member = Identity::random(&random).expect("this build can sign");
    let envelope = Envelope::seal(&genesis, &unlocked, member.public(), &random).expect("seals");
    let keys = take(&genesis, &member, &envelope).expect("opens");
    let certificate = hex::encode(&keys.identity.certificate);
    let lines = [
        ("envelope, encapsulated", hex::encode(&envelope.encapsulated)),
        ("length of the envelope", envelope.to_bytes().len().to_string()),
        ("hash of the envelope", blake3::hash(&envelope.to_bytes()).to_hex().to_string()),
        ("member device, first", certificate[..64].to_owned()),
        ("member device, second", certificate[64..].to_owned()),
    ];
    let document = include_str!("../../../../../docs/design/keys.md");
    let lines: String = lines.map(|(what, value)| format!("{what:<24} {value}\n")).concat();
    assert!(document.contains(&lines), "docs/design/keys.md lacks:\n{lines}");
}
