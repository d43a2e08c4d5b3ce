//! Pairing: what one side gives and the other takes, and what everybody else cannot do.

use model::Genesis;
use zeroize::Zeroizing;

use super::*;
use crate::keyring::Passphrase;
use crate::samples::FixedRandom;
use crate::sealed::{NewWorkspace, WorkspaceKeys};

const RANDOM: FixedRandom = FixedRandom(7);

fn workspace(name: &str) -> NewWorkspace {
    let created = Timestamp { seconds: 1_700_000_000, nanoseconds: 0 };
    let passphrase = Passphrase::new(Zeroizing::new("correct horse".to_owned()));
    NewWorkspace::create(name, created, &passphrase, &RANDOM).expect("this build can seal")
}

/// All that goes over the stores in one pairing.
struct Talk {
    made: NewWorkspace,
    pairing: Pairing,
    offer: Vec<u8>,
    request: Vec<u8>,
    grant: Vec<u8>,
}

const GUEST: DeviceId = DeviceId::from_bytes([9; 16]);

fn seed() -> SecretKey {
    SecretKey::from_bytes([5; 32])
}

fn talk() -> Talk {
    let made = workspace("Letters");
    let code = PairingCode::random(&RANDOM);
    let pairing = Pairing::new(&code, made.genesis.workspace());
    let offer = pairing.seal_offer(&Offer { device_name: "laptop".to_owned() }, &RANDOM);
    let asked = PairingRequest {
        device: GUEST,
        public: *SigningKey::from_seed(seed()).expect("a key").public(),
        device_name: "tablet".to_owned(),
    };
    let request = pairing.seal_request(&offer, &asked, &RANDOM);
    let opened = pairing.open_request(&offer, &request).expect("opens");
    assert_eq!(opened, asked);
    let answered = (&opened, &request[..]);
    let grant = pairing.grant(&made.genesis, &made.unlocked, answered, &RANDOM).expect("granted");
    Talk { made, pairing, offer, request, grant }
}

fn accept(talk: &Talk, genesis: &Genesis, grant: &[u8]) -> Result<DeviceKeys, ContentError> {
    talk.pairing.accept(genesis, (GUEST, seed()), &talk.request, grant)
}

#[test]
fn code_is_read_as_it_was_written_and_slips_are_noticed() {
    let code = PairingCode::random(&FixedRandom(0xd3));
    let text = code.to_text();
    assert_eq!(text.len(), 34);
    assert_eq!(PairingCode::from_text(&text.to_lowercase().replace('-', " ")), Ok(code));
    let mut noticed = 0;
    for at in (0..text.len()).filter(|at| text.as_bytes()[*at] != b'-') {
        let mut slip = text.to_string().into_bytes();
        slip[at] = if slip[at] == b'7' { b'8' } else { b'7' };
        let slip = String::from_utf8(slip).expect("text");
        noticed += usize::from(PairingCode::from_text(&slip) == Err(InvalidPairingCode));
    }
    assert!(noticed >= 27, "12 bits of checksum miss one in 4096");
    for text in ["", "7", "correct horse"] {
        assert_eq!(PairingCode::from_text(text), Err(InvalidPairingCode));
    }
}

#[test]
fn guest_becomes_a_device_of_the_workspace() {
    let talk = talk();
    let genesis = &talk.made.genesis;
    let keys = accept(&talk, genesis, &talk.grant).expect("accepted");
    assert_eq!((keys.name.as_str(), keys.generation, keys.identity.device), ("Letters", 1, GUEST));
    // As if it had known the passphrase.
    let with_passphrase =
        DeviceKeys::enroll(genesis, &talk.made.unlocked, GUEST, seed()).expect("enrolled");
    assert_eq!(keys.to_bytes(), with_passphrase.to_bytes());
    WorkspaceKeys::open(genesis, Some(keys), std::sync::Arc::new(RANDOM)).expect("opens");
}

#[test]
fn nobody_without_the_code_opens_or_makes_a_box() {
    let talk = talk();
    let workspace = talk.made.genesis.workspace();
    let stranger = Pairing::new(&PairingCode::random(&FixedRandom(8)), workspace);
    assert!(stranger.open_offer(&talk.offer).is_err());
    assert!(stranger.open_request(&talk.offer, &talk.request).is_err());
    let elsewhere = self::workspace("Other");
    let code = PairingCode::random(&RANDOM);
    let other = Pairing::new(&code, WorkspaceId::from_bytes([1; 16]));
    assert!(other.open_offer(&talk.offer).is_err(), "a code is of one workspace");
    assert!(
        accept(&talk, &elsewhere.genesis, &talk.grant).is_ok()
            == (elsewhere.genesis == talk.made.genesis)
    );
    for length in [0, 23, 24, talk.grant.len() - 1] {
        assert!(accept(&talk, &talk.made.genesis, &talk.grant[..length]).is_err());
    }
    for at in (0..talk.grant.len()).step_by(7) {
        let mut changed = talk.grant.clone();
        changed[at] ^= 1;
        assert!(accept(&talk, &talk.made.genesis, &changed).is_err(), "byte {at}");
    }
}

#[test]
fn boxes_cannot_be_exchanged_for_each_other() {
    let talk = talk();
    assert!(talk.pairing.open_offer(&talk.request).is_err());
    assert!(talk.pairing.open_request(&talk.offer, &talk.offer).is_err());
    assert!(accept(&talk, &talk.made.genesis, &talk.request).is_err());
    // A request that answers another offer, and a grant that answers another request.
    assert!(talk.pairing.open_request(b"another", &talk.request).is_err());
    let me = (GUEST, seed());
    assert!(talk.pairing.accept(&talk.made.genesis, me, b"another", &talk.grant).is_err());
    // What is granted to one device is of no use to another.
    let other = (GUEST, SecretKey::from_bytes([6; 32]));
    let taken = talk.pairing.accept(&talk.made.genesis, other, &talk.request, &talk.grant);
    assert!(matches!(taken, Err(ContentError::WrongKey)));
}

#[test]
fn pairing_has_the_documented_vectors() {
    let talk = talk();
    let code = PairingCode::random(&RANDOM);
    let hash = |bytes: &[u8]| blake3::hash(bytes).to_hex().to_string();
    let lines = [
        ("code", code.to_text().to_string()),
        ("name of the pairing", code.name()),
        ("length of the offer", talk.offer.len().to_string()),
        ("hash of the offer", hash(&talk.offer)),
        ("hash of the request", hash(&talk.request)),
        ("digits", talk.pairing.digits(&talk.offer, &talk.request)),
        ("hash of the grant", hash(&talk.grant)),
    ];
    let document = include_str!("../../../../docs/design/keys.md");
    let mut missing = String::new();
    for (what, value) in lines {
        let line = format!("{what:<24} {value}\n");
        if !document.contains(&line) {
            missing.push_str(&line);
        }
    }
    assert!(missing.is_empty(), "docs/design/keys.md lacks:\n{missing}");
}
