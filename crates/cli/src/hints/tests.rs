use bytes::Bytes;
use content::keyring::SecretKey;
use content::{DeviceKeys, NewWorkspace, Passphrase};
use model::codec::encode_message;
use model::{DeviceId, Mode, PoolConfig, Redundancy, StoreId, StoreState, Timestamp};
use storage::PutMode;
use zeroize::Zeroizing;

use super::*;
use crate::system::SystemRandom;

fn plain() -> Genesis {
    Genesis {
        name: "Notes".to_owned(),
        mode: Mode::Plain,
        created: Timestamp::default(),
        content_key: [1; 32],
    }
}

fn hint(url: &str) -> PoolHint {
    let store = StoreRecord::new(StoreId::from_bytes([1; 16]), "s".to_owned(), url.to_owned(), 1);
    PoolHint::plain(PoolConfig::new(Redundancy::Replicas(1), vec![store]).unwrap(), 0)
}

/// What stores called a, b, c … say: nothing, or a version and an address.
fn said(answers: &[Option<(u64, &str)>]) -> Vec<(String, Said)> {
    let name = |number: usize| char::from(b'a' + number as u8).to_string();
    let said = |answer: &Option<(u64, &str)>| {
        let newest = answer.map(|(version, url)| (version, hint(url)));
        Said { newest, refused: None }
    };
    answers.iter().enumerate().map(|(number, answer)| (name(number), said(answer))).collect()
}

fn url(led: &Led) -> &str {
    &led.hint.pool.stores[0].url
}

/// A sealed workspace and a device of it.
fn sealed(name: &str) -> (Genesis, DeviceKeys) {
    let passphrase = Passphrase::new(Zeroizing::new("correct horse".to_owned()));
    let created = Timestamp::default();
    let made = NewWorkspace::create(name, created, &passphrase, &SystemRandom).unwrap();
    let (device, seed) = (DeviceId::from_bytes([1; 16]), SecretKey::random(&SystemRandom));
    let keys = DeviceKeys::enroll(&made.genesis, &made.unlocked, device, seed).unwrap();
    (made.genesis, keys)
}

fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work)
}

#[test]
fn most_stores_of_a_plain_workspace_win_over_a_newer_one_and_the_other_is_named() {
    let said =
        said(&[Some((1, "file:/true")), Some((9, "file:/lie")), Some((1, "file:/true")), None]);
    let led = weigh(&plain(), &said).unwrap();
    assert_eq!((led.version, url(&led)), (1, "file:/true"));
    assert_eq!(led.by, ["a", "c"]);
    assert_eq!(led.doubts, ["'b' says otherwise, and is not followed: 's' (file:/lie)"]);
}

#[test]
fn without_a_majority_the_newest_is_followed_and_the_older_named() {
    let said = said(&[Some((2, "file:/new")), Some((1, "file:/old"))]);
    let led = weigh(&plain(), &said).unwrap();
    assert_eq!((led.version, url(&led), &led.by[..]), (2, "file:/new", &["a".to_owned()][..]));
    assert_eq!(led.doubts, ["'b' tells of older stores than those that are followed"]);
}

#[test]
fn one_signed_newer_hint_wins_over_any_number_of_older_ones() {
    let (genesis, _) = sealed("letters");
    let said = said(&[Some((1, "file:/old")), Some((2, "file:/new")), Some((1, "file:/old"))]);
    let led = weigh(&genesis, &said).unwrap();
    assert_eq!((led.version, url(&led), led.doubts.len()), (2, "file:/new", 2));
}

#[test]
fn where_nothing_can_be_followed_the_error_tells_damage_from_silence() {
    let refused = Said { newest: None, refused: Some("it is damaged".to_owned()) };
    let said = [("a".to_owned(), refused), ("b".to_owned(), Said::default())];
    let (sealed, _) = sealed("letters");
    let error = weigh(&sealed, &said).unwrap_err();
    assert_eq!(error.code, Code::HintRefused);
    assert_eq!(error.cause.as_deref(), Some("'a' is not believed: it is damaged"));
    assert_eq!(weigh(&plain(), &said).unwrap_err().code, Code::LogDamaged);
    assert_eq!(weigh(&sealed, &said[1..]).unwrap_err().code, Code::LogDamaged);
}

#[test]
fn a_store_is_believed_as_far_as_its_hints_are_signed_for_their_version() {
    let ((genesis, keys), (_, stranger)) = (sealed("letters"), sealed("letters"));
    let store = storage::open("memory:hints/signed").unwrap();
    let put = |version: u64, bytes: Vec<u8>| {
        let key = ObjectKey::pool(version);
        run(store.put(&key, Bytes::from(bytes), PutMode::Overwrite)).unwrap();
        run(ask(&*store, &genesis)).unwrap()
    };
    let signed = |version| encode_message(&keys.sign_hint(version, hint("file:/true")).unwrap());
    let is_at = |said: &Said, version: u64, is_refused: bool| {
        let at = said.newest.as_ref().map(|(version, _)| *version);
        assert_eq!((at, said.refused.is_some()), (Some(version), is_refused), "{said:?}");
    };
    is_at(&put(2, signed(2)), 2, false);
    // Replayed under a newer name, unsigned, of a stranger, cut short, too long: each time the last good one counts.
    is_at(&put(7, signed(2)), 2, true);
    is_at(&put(7, encode_message(&hint("file:/lie"))), 2, true);
    is_at(&put(7, encode_message(&stranger.sign_hint(7, hint("file:/lie")).unwrap())), 2, true);
    is_at(&put(7, signed(7)[..100].to_vec()), 2, true);
    is_at(&put(7, vec![0; HINT_LENGTH_MAX as usize + 1]), 2, true);
    is_at(&put(7, signed(7)), 7, false);
}

#[test]
fn a_hint_of_a_newer_version_is_no_lie() {
    let (genesis, keys) = sealed("letters");
    let store = storage::open("memory:hints/newer").unwrap();
    let mut bytes = encode_message(&keys.sign_hint(2, hint("file:/true")).unwrap());
    bytes[1] = 200;
    run(store.put(&ObjectKey::pool(2), Bytes::from(bytes), PutMode::Overwrite)).unwrap();
    assert_eq!(run(ask(&*store, &genesis)).unwrap_err().code, Code::Newer);
}

#[test]
fn a_longest_hint_fits() {
    let (_, keys) = sealed("letters");
    let longest = |number: usize| StoreRecord {
        id: StoreId::from_bytes([number as u8; 16]),
        name: format!("{number:064}"),
        url: "x".repeat(model::pool::STORE_URL_LENGTH_MAX),
        capacity: u32::MAX,
        state: StoreState::Draining,
        agrees: true,
        begun_anew: Some(StoreId::from_bytes([number as u8 + 100; 16])),
    };
    let mut stores: Vec<_> = (1..=model::pool::STORES_MAX).map(longest).collect();
    stores[0].state = StoreState::Active;
    let pool = PoolConfig::new(Redundancy::Replicas(1), stores).unwrap();
    let hint = keys.sign_hint(u64::MAX, PoolHint::plain(pool, u64::MAX)).unwrap();
    assert!(encode_message(&hint).len() as u64 <= HINT_LENGTH_MAX);
}

#[test]
fn an_older_hint_leads_nowhere() {
    let stored = StoredPlace { version: 3, ..StoredPlace::first(hint("file:/known").pool) };
    for version in 0..=3 {
        assert_eq!(led_to(&stored, version, hint("file:/old")), None);
    }
    let led = led_to(&stored, 4, hint("file:/new")).unwrap();
    assert_eq!((led.version, led.pool.stores[0].url.as_str()), (4, "file:/new"));
}
