use model::{DeviceId, Genesis, Timestamp};

use super::*;
use crate::samples::{FixedRandom, SeededRandom};
use crate::sealed::{DeviceKeys, NewWorkspace};

fn passphrase(text: &str) -> Passphrase {
    Passphrase::new(Zeroizing::new(text.to_owned()))
}

fn workspace(random: &dyn Random) -> NewWorkspace {
    let created = Timestamp { seconds: 1_700_000_000, nanoseconds: 0 };
    NewWorkspace::create("Letters", created, &passphrase("correct horse"), random)
        .expect("this build can seal")
}

#[test]
fn passphrase_and_recovery_key_open_the_same_keys() {
    let NewWorkspace { genesis, keys, unlocked } = workspace(&SeededRandom::new(1));
    let by_passphrase = keys.unlock(&genesis, &passphrase("correct horse")).expect("opens");
    let by_recovery = keys.recover(&genesis, &unlocked.keyring.recovery).expect("opens");
    for opened in [by_passphrase, by_recovery] {
        assert_eq!(opened.account, unlocked.account);
        assert_eq!(opened.keyring, unlocked.keyring);
    }
    let stored = KeyObject::from_bytes(&keys.to_bytes()).expect("reads");
    assert_eq!(stored, keys);
}

#[test]
fn whatever_is_wrong_with_a_secret_gives_the_same_words() {
    let NewWorkspace { genesis, keys, .. } = workspace(&SeededRandom::new(2));
    let other = workspace(&SeededRandom::new(3));
    let wrong = [
        keys.unlock(&genesis, &passphrase("correct horsf")),
        keys.unlock(&genesis, &passphrase("")),
        // The right passphrase, and the key object of another workspace.
        other.keys.unlock(&genesis, &passphrase("correct horse")),
        keys.unlock(&other.genesis, &passphrase("correct horse")),
        keys.recover(&genesis, &other.unlocked.keyring.recovery),
    ];
    for result in wrong {
        assert!(matches!(result, Err(ContentError::WrongKey)), "{result:?}");
    }
}

#[test]
fn every_flipped_bit_of_a_key_object_is_refused() {
    let NewWorkspace { genesis, keys, unlocked } = workspace(&SeededRandom::new(4));
    let bytes = keys.to_bytes();
    let recovery = &unlocked.keyring.recovery;
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        // The keyring is bound to the whole object, so the lock that needs no stretching stands for both.
        let opened =
            KeyObject::from_bytes(&flipped).and_then(|keys| keys.recover(&genesis, recovery));
        assert!(opened.is_err(), "bit {bit}");
    }
    for length in 0..bytes.len() {
        assert!(KeyObject::from_bytes(&bytes[..length]).is_err(), "{length} bytes");
    }
}

#[test]
fn every_flipped_bit_of_a_passphrase_lock_is_refused() {
    let random = SeededRandom::new(5);
    let NewWorkspace { genesis, unlocked, .. } = workspace(&random);
    let sealed = genesis.mode.sealed().expect("sealed");
    let owner = lock::Owner { workspace: genesis.workspace(), account: &sealed.account };
    let right = passphrase("correct horse");
    let lock = lock::Lock::with_passphrase(&unlocked.account, owner, &right, &random);
    let lock = lock.expect("locks");
    let key = lock.method.passphrase_key(&right).expect("stretches");
    let bytes = {
        use model::codec::{Encode, Encoder};
        let mut encoder = Encoder::default();
        lock.encode(&mut encoder);
        encoder.into_bytes()
    };
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let mut decoder = model::codec::Decoder::new(&flipped);
        use model::codec::Decode;
        let opened = lock::Lock::decode(&mut decoder).map(|lock| lock.open(owner, &key));
        assert!(!matches!(opened, Ok(Ok(_))), "bit {bit}");
    }
    assert_eq!(lock.open(owner, &key).expect("opens"), unlocked.account);
}

#[test]
fn lock_that_costs_less_than_the_floor_is_refused_before_it_is_tried() {
    let NewWorkspace { genesis, keys, .. } = workspace(&SeededRandom::new(6));
    let bytes = keys.to_bytes();
    let memory = [0x80, 0x80, 0x04];
    let at = bytes.windows(3).position(|window| window == memory).expect("65536 in LEB128");
    for (cheaper, what) in [([0x80, 0x80, 0x01], "memory"), ([0xff, 0xff, 0x7f], "too much")] {
        let mut changed = bytes.clone();
        changed[at..at + 3].copy_from_slice(&cheaper);
        let changed = KeyObject::from_bytes(&changed).expect("reads");
        let refused = changed.unlock(&genesis, &passphrase("correct horse"));
        assert!(matches!(refused, Err(ContentError::KeyCost { .. })), "{what}: {refused:?}");
    }
    let mut changed = bytes;
    changed[at + 3] = 2;
    let refused =
        KeyObject::from_bytes(&changed).expect("reads").unlock(&genesis, &passphrase("any"));
    assert!(matches!(refused, Err(ContentError::KeyCost { cost }) if cost.passes == 2));
}

#[test]
fn new_passphrase_replaces_the_old_and_touches_no_other_key() {
    let random = SeededRandom::new(7);
    let NewWorkspace { genesis, keys, unlocked } = workspace(&random);
    let next = keys.next(&genesis, &unlocked, Some(&passphrase("battery staple")), &random);
    let next = next.expect("locks");
    assert_eq!(next.generation(), 2);
    assert!(next.unlock(&genesis, &passphrase("correct horse")).is_err());
    let opened = next.unlock(&genesis, &passphrase("battery staple")).expect("opens");
    assert_eq!(opened.keyring, unlocked.keyring);
    let recovered = next.recover(&genesis, &unlocked.keyring.recovery).expect("opens");
    assert_eq!(recovered.account, unlocked.account);
}

#[test]
fn rotation_adds_a_key_and_keeps_the_passphrase_and_the_names_of_chunks() {
    let random = SeededRandom::new(8);
    let NewWorkspace { genesis, keys, mut unlocked } = workspace(&random);
    let before = unlocked.keyring.clone();
    unlocked.keyring.rotate(&random).expect("there is room");
    let next = keys.next(&genesis, &unlocked, None, &random).expect("locks");
    let opened = next.unlock(&genesis, &passphrase("correct horse")).expect("opens");
    assert_eq!(opened.keyring.epochs.len(), 2);
    assert_eq!(opened.keyring.epochs[0], before.epochs[0]);
    assert_ne!(opened.keyring.epochs[1], before.epochs[0]);
    assert_eq!(opened.keyring.content, before.content);
}

#[test]
fn recovery_key_is_read_as_people_write_it() {
    let key = RecoveryKey::new(SecretKey::from_bytes(std::array::from_fn(|at| at as u8 * 7)));
    let text = key.to_text();
    assert_eq!((text.len(), text.split('-').count()), (69, 14));
    let sloppy = text.to_lowercase().replace('-', " ").replace('0', "o").replace('1', "l");
    for spelling in [text.clone(), sloppy, text.replace('-', "")] {
        assert_eq!(RecoveryKey::from_text(&spelling), Ok(key.clone()), "{spelling}");
    }
    assert_eq!(text, "003G-W58W-4CN3-2E1Z-8S6N-8PV2-D5R7-EZM5-HJ9S-N8D8-NYVB-VH6B-TBCT-FGEC");
}

#[test]
fn slip_of_the_pen_in_a_recovery_key_is_noticed() {
    let text = RecoveryKey::new(SecretKey::from_bytes([9; 32])).to_text();
    let digits: Vec<char> = text.chars().collect();
    for at in (0..digits.len()).filter(|&at| digits[at] != '-') {
        let mut wrong = digits.clone();
        wrong[at] = if digits[at] == 'Z' { 'Y' } else { 'Z' };
        assert!(RecoveryKey::from_text(&wrong.iter().collect::<String>()).is_err(), "{at}");
    }
    for text in ["", "correct horse", &text[1..], &format!("{text}0"), "ÄÖÜ"] {
        assert_eq!(RecoveryKey::from_text(text), Err(InvalidRecoveryKey), "{text}");
    }
}

#[test]
fn secrets_do_not_show_in_debug_texts() {
    let made = workspace(&FixedRandom(7));
    let device = DeviceKeys::enroll(
        &made.genesis,
        &made.unlocked,
        DeviceId::from_bytes([1; 16]),
        SecretKey::from_bytes([7; 32]),
    );
    let text = format!("{:?} {:?}", made.unlocked, device.expect("enrolls"));
    assert!(!text.contains("7, 7, 7"), "{text}");
    assert!(!format!("{:?}", passphrase("correct horse")).contains("horse"));
}

#[test]
fn genesis_of_a_sealed_workspace_hides_name_and_time() {
    let NewWorkspace { genesis, unlocked, .. } = workspace(&SeededRandom::new(9));
    let bytes = model::codec::encode_message(&genesis);
    assert!(!bytes.windows(7).any(|window| window == b"Letters"));
    let read: Genesis = model::codec::decode_message(&bytes).expect("reads");
    assert_eq!((read.name.as_str(), read.hash()), ("", genesis.hash()));
    let device = DeviceId::from_bytes([1; 16]);
    let keys = DeviceKeys::enroll(&read, &unlocked, device, SecretKey::from_bytes([1; 32]));
    let keys = keys.expect("enrolls");
    assert_eq!((keys.name.as_str(), keys.created), ("Letters", genesis.created));
    let kept = DeviceKeys::from_bytes(&keys.to_bytes()).expect("reads");
    assert_eq!(kept.to_bytes(), keys.to_bytes());
}
