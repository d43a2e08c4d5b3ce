use super::*;
use crate::sealed_workspace::tests::made;

const HOST_SEED: [u8; 32] = [5; 32];
const GUEST_SEED: [u8; 32] = [6; 32];
const GUEST: &str = "0000000000000000000000000000000b";
const ROOT: &str = "00000000000000000000000000000000";

/// What both sides know of a workspace.
struct Served {
    id: String,
    genesis: Vec<u8>,
    keys: Vec<u8>,
    frame: Vec<u8>,
}

fn served() -> Served {
    let (id, genesis, keys, frame) = made("correct horse");
    Served { id, genesis, keys, frame }
}

impl Served {
    fn host(&self, generation: f64, secret: &str) -> Result<PairingHost, Failure> {
        let (id, secret) = (&self.id, secret.to_owned());
        PairingHost::new(id, &self.genesis, generation, &self.keys, secret, "laptop", &HOST_SEED)
    }

    fn guest(&self, code: &str, offer: &[u8], seed: &[u8]) -> Result<PairingGuest, Failure> {
        let (id, code) = (&self.id, code.to_owned());
        PairingGuest::new(id, &self.genesis, code, offer, GUEST, "phone", seed)
    }
}

fn code<T>(result: Result<T, Failure>) -> &'static str {
    result.err().expect("it fails").code
}

#[test]
fn guest_is_let_in_and_reads_what_is_there() {
    let served = served();
    let mut host = served.host(1.0, "correct horse").unwrap();
    assert_eq!(pairing_name(host.code()).unwrap(), host.name());
    let typed = host.code().to_lowercase().replace('-', " ");
    let guest = served.guest(&typed, &host.offer(), &GUEST_SEED).unwrap();
    assert_eq!(guest.host(), "laptop");
    assert_eq!(code(host.grant()), "no_such", "nobody has asked");
    let asked = host.ask(&guest.request()).unwrap();
    assert_eq!((asked.device_name.as_str(), asked.digits), ("phone", guest.digits()));
    let grant = host.grant().unwrap();
    assert_eq!(code(host.grant()), "no_such", "a code lets one device in");
    let mut workspace = guest.accept(&grant).unwrap();
    assert_eq!(workspace.name(), "Diary");
    assert_eq!(workspace.fold(&served.frame).unwrap(), 1);
    assert_eq!(workspace.list(ROOT).unwrap()[0].name, "letter.txt");
    assert!(workspace.may_write());
}

#[test]
fn what_does_not_fit_has_its_code() {
    let served = served();
    assert_eq!(code(served.host(1.0, "wrong horse")), "wrong_key");
    assert_eq!(code(served.host(2.0, "correct horse")), "tampered");
    let mut host = served.host(1.0, "correct horse").unwrap();
    let (offer, text) = (host.offer(), host.code());
    let guest = |code: &str, offer: &[u8], seed: &[u8]| served.guest(code, offer, seed);
    let slip = text.replacen(&text[..1], if text.starts_with('7') { "8" } else { "7" }, 1);
    for wrong in [slip.as_str(), "", "7", "correct horse"] {
        assert_eq!(code(guest(wrong, &offer, &GUEST_SEED)), "pairing_code");
        assert_eq!(code(pairing_name(wrong.to_owned())), "pairing_code");
    }
    let other = PairingHost::new(
        &served.id,
        &served.genesis,
        1.0,
        &served.keys,
        "correct horse".to_owned(),
        "laptop",
        &[7; 32],
    );
    let other = other.unwrap();
    assert_eq!(code(guest(&other.code(), &offer, &GUEST_SEED)), "wrong_key", "another code");
    assert_eq!(code(guest(&text, &offer[1..], &GUEST_SEED)), "wrong_key");
    assert_eq!(code(guest(&text, &offer, &GUEST_SEED[1..])), "length");
    let (first, second) =
        (guest(&text, &offer, &GUEST_SEED).unwrap(), guest(&text, &offer, &[9; 32]).unwrap());
    assert_ne!(first.digits(), second.digits());
    assert_eq!(code(host.ask(&offer)), "wrong_key");
    host.ask(&first.request()).unwrap();
    host.ask(&first.request()).unwrap();
    assert_eq!(code(host.ask(&second.request())), "pairing_used");
    let mut grant = host.grant().unwrap();
    assert_eq!(code(second.accept(&grant)), "wrong_key", "it was given to the first");
    grant[60] ^= 1;
    assert_eq!(code(first.accept(&grant)), "wrong_key");
    grant[60] ^= 1;
    assert_eq!(first.accept(&grant).ok().unwrap().name(), "Diary");
}
