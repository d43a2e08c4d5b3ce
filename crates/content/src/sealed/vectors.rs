//! Test vectors for another implementation: every line that is computed here stands in `docs/design/keys.md`.

use std::sync::Arc;

use model::checkpoint::Checkpoint;
use model::codec::encode_message;
use model::content::ChunkRef;
use model::hex;
use model::testing::{commit, put};
use model::{
    DeviceId, EntryHash, Head, PageId, PoolConfig, PoolHint, Redundancy, StoreId, StoreRecord,
    Timestamp,
};
use zeroize::Zeroizing;

use super::*;
use crate::keyring::{Passphrase, SecretKey};
use crate::pack::PackWriter;
use crate::samples::FixedRandom;
use crate::transform::Transform;

/// All random bytes are 7.
const RANDOM: FixedRandom = FixedRandom(7);

fn hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

fn new_workspace() -> NewWorkspace {
    let created = Timestamp { seconds: 1_700_000_000, nanoseconds: 0 };
    let passphrase = Passphrase::new(Zeroizing::new("correct horse".to_owned()));
    NewWorkspace::create("Letters", created, &passphrase, &RANDOM).expect("this build can seal")
}

fn key_lines(made: &NewWorkspace) -> Vec<(&'static str, String)> {
    let genesis = encode_message(&made.genesis);
    let epoch = Epoch::derive(&made.unlocked.keyring.epochs[0]);
    let account = &made.unlocked.account;
    vec![
        ("recovery key", made.unlocked.keyring.recovery.to_text()),
        ("account public key", hex::encode(account.signing().expect("signs").public())),
        ("hash of the genesis", hash(&genesis)),
        ("length of the genesis", genesis.len().to_string()),
        ("workspace id", made.genesis.workspace().to_string()),
        ("hash of the key object", hash(&made.keys.to_bytes())),
        ("length of the key object", made.keys.to_bytes().len().to_string()),
        ("key for packs", hex::encode(epoch.packs.as_bytes())),
        ("key for commits", hex::encode(epoch.commits.as_bytes())),
        ("key for pages", hex::encode(epoch.pages.as_bytes())),
        ("key for checkpoints", hex::encode(epoch.checkpoints.as_bytes())),
        ("key for salts", hex::encode(epoch.salts.as_bytes())),
    ]
}

/// What the store of the workspace says about itself, as its first device has signed it.
fn hint_lines(device: &DeviceKeys) -> Vec<(&'static str, String)> {
    let store = StoreRecord::new(
        StoreId::from_bytes([4; 16]),
        "disk".to_owned(),
        "file:/mnt/disk".to_owned(),
        100,
    );
    let pool = PoolConfig::new(Redundancy::Replicas(1), vec![store]).expect("a pool");
    let hint = device.sign_hint(3, PoolHint::plain(pool, 5)).expect("signs");
    let signature = hex::encode(&hint.seal.as_ref().expect("sealed").signature);
    let bytes = encode_message(&hint);
    vec![
        ("begin of the hint", hex::encode(&bytes[..45])),
        ("length of the hint", bytes.len().to_string()),
        ("hint, signature, first", signature[..64].to_owned()),
        ("hint, signature, second", signature[64..].to_owned()),
        ("hash of the hint", hash(&bytes)),
    ]
}

fn sealed_lines(made: &NewWorkspace) -> Vec<(&'static str, String)> {
    let (device, seed) = (DeviceId::from_bytes([1; 16]), SecretKey::random(&RANDOM));
    let device = DeviceKeys::enroll(&made.genesis, &made.unlocked, device, seed).expect("enrolls");
    let certificate = hex::encode(&device.identity.certificate);
    let hint_lines = hint_lines(&device);
    let keys = WorkspaceKeys::open(&made.genesis, Some(device), Arc::new(RANDOM)).expect("opens");
    let agreement = keys.agreement_seed().expect("it is sealed");
    let mut writer = PackWriter::new(Transform::None, &keys.packs()).expect("a writer");
    for chunk in [b"alpha".as_slice(), b"beta"] {
        let id = keys.content().namer().name(chunk);
        writer.push(ChunkRef { id, length: chunk.len() as u32 }, chunk).expect("takes it");
    }
    let pack = writer.finish().expect("finishes");
    let record = pack.index.records()[0].stored_range();
    let mut plain = commit(1, vec![put(1, 0, "a")]);
    plain.time = Timestamp { seconds: 77, nanoseconds: 0 };
    let sealed = keys.seal_commit(plain).expect("seals");
    let seal = sealed.seal.as_ref().expect("sealed");
    let page = keys.seal_page(b"page".to_vec()).expect("seals");
    let head = Head { seq: 7, hash: EntryHash::from_bytes([7; 32]) };
    let (nodes, packs) = (PageId::from_bytes([1; 32]), PageId::from_bytes([2; 32]));
    let checkpoint = Checkpoint {
        head,
        nodes,
        node_count: 9,
        packs,
        fence: 0,
        has_mounts: false,
        has_deltas: false,
        seal: None,
    };
    let checkpoint = keys.seal_checkpoint(checkpoint).expect("seals").seal.expect("sealed");
    let lines = vec![
        ("seed for agreement", hex::encode(agreement.as_bytes())),
        ("certificate, first half", certificate[..64].to_owned()),
        ("certificate, second half", certificate[64..].to_owned()),
        ("chunk id of alpha", keys.content().namer().name(b"alpha").to_string()),
        ("record", hex::encode(&pack.bytes[record.start as usize..record.end as usize])),
        ("salt of the pack", hex::encode(&pack.bytes[pack.bytes.len() - 64..][..32])),
        ("rest of the trailer", hex::encode(&pack.bytes[pack.bytes.len() - 32..])),
        ("pack id", pack.id.to_string()),
        ("length of the pack", pack.bytes.len().to_string()),
        ("salt of the commit", hex::encode(&seal.salt)),
        ("hash of the header", hash(&seal.header)),
        ("hash of the signature", hash(&seal.signature)),
        ("hash of the commit", hash(&encode_message(&sealed))),
        ("salt of the page", hex::encode(&page[6..38])),
        ("hash of the page", hash(&page)),
        ("tag of the checkpoint", hex::encode(&checkpoint.tag)),
        ("hash of its signature", hash(&checkpoint.signature)),
    ];
    lines.into_iter().chain(hint_lines).collect()
}

#[test]
fn vectors_of_the_specification_are_what_is_made() {
    let guide = include_str!("../../../../docs/design/keys.md");
    let made = new_workspace();
    let lines: Vec<String> = key_lines(&made)
        .into_iter()
        .chain(sealed_lines(&made))
        .map(|(name, value)| format!("{name:24} {value}"))
        .collect();
    let missing = lines.iter().any(|line| !guide.contains(line.as_str()));
    assert!(!missing, "docs/design/keys.md should have:\n{}", lines.join("\n"));
}
