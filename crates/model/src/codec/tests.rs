use proptest::prelude::{any, prop_assert_eq, proptest};

use super::*;
use crate::checkpoint::Checkpoint;
use crate::commit::{Action, Change, Commit, CommitSeal, Head, PackRef};
use crate::entry::{Entry, Genesis, Mode, SealedGenesis};
use crate::node::{NodeKind, NodeRecord, Timestamp};
use crate::testing::{commit, node, put};
use crate::wire::{Reply, Request, RequestFrame, ServerFrame};

fn genesis() -> Genesis {
    Genesis {
        name: "Notes".to_owned(),
        mode: Mode::Plain,
        created: Timestamp { seconds: -1, nanoseconds: 999_999_999 },
        content_key: [7; 32],
    }
}

fn entry() -> Entry {
    let delete = Change { node: node(2), base: u64::MAX, action: Action::Delete };
    let packs = vec![PackRef { id: PackId::from_bytes([3; 32]), length: 1 << 40 }];
    let inline_packs = vec![vec![1, 2, 3], vec![]];
    let commit = Commit { packs, inline_packs, ..commit(1, vec![put(1, 0, "a"), delete]) };
    Entry { seq: 1, previous: genesis().hash(), commit }
}

#[test]
fn messages_return_from_their_encoding() {
    assert_eq!(decode_message(&encode_message(&entry())), Ok(entry()));
    assert_eq!(decode_message(&encode_message(&genesis())), Ok(genesis()));
}

#[test]
fn encoding_of_an_entry_never_changes() {
    // Golden: other devices, old logs and hashes rely on these bytes.
    assert_eq!(entry().hash().short(), GOLDEN_ENTRY);
    assert_eq!(genesis().workspace().short(), GOLDEN_GENESIS);
}

const GOLDEN_ENTRY: &str = "19cc8f8d";
const GOLDEN_GENESIS: &str = "64b25c12";

#[test]
fn newer_version_is_refused_by_name() {
    let mut bytes = encode_message(&entry());
    bytes[1] = NEWEST_VERSION + 1;
    let refused = DecodeError::NewerVersion { kind: "log entry", version: NEWEST_VERSION + 1 };
    assert_eq!(decode_message::<Entry>(&bytes), Err(refused));
}

/// The same, of a commit that names packs with delta records.
fn with_deltas(mut entry: Entry) -> Entry {
    entry.commit.has_deltas = true;
    entry
}

#[test]
fn programs_that_know_no_delta_records_refuse_commits_that_name_such_packs() {
    const NEWEST_BEFORE: u8 = 8;
    for (entry, version) in [(with_deltas(entry()), 9), (with_deltas(sealed_entry()), 10)] {
        let bytes = encode_message(&entry);
        assert_eq!(bytes[1], version);
        assert!(version > NEWEST_BEFORE, "they refuse it by name");
        assert_eq!(decode_message(&bytes), Ok(entry.clone()));
        for other in (0..=NEWEST_VERSION).filter(|other| *other != version) {
            let mut bytes = bytes.clone();
            bytes[1] = other;
            assert!(decode_message::<Entry>(&bytes).is_err(), "as version {other}");
        }
        // The version is a part of what is hashed and signed: nobody can take it away.
        let mut without = entry.clone();
        without.commit.has_deltas = false;
        assert_ne!(entry.hash(), without.hash());
    }
    assert_eq!(NEWEST_VERSION, 16);
}

#[test]
fn version_and_commit_say_the_same_of_delta_records() {
    let says_too_much = |mut bytes: Vec<u8>| {
        bytes[1] += DELTAS_STEP;
        decode_message::<Entry>(&bytes)
    };
    // The version says that there are some, and the commit nothing; or that there are none.
    assert!(says_too_much(encode_message(&entry())).is_err());
    let mut none = encode_message(&entry());
    none.push(0);
    assert!(matches!(says_too_much(none), Err(DecodeError::InvalidValue { what: "version", .. })));
    // The commit says so, and the version does not; or it says what is neither yes nor no.
    let mut bytes = encode_message(&with_deltas(entry()));
    bytes[1] -= DELTAS_STEP;
    assert_eq!(decode_message::<Entry>(&bytes), Err(DecodeError::TrailingBytes { count: 1 }));
    let mut two = encode_message(&with_deltas(entry()));
    *two.last_mut().expect("a byte") = 2;
    assert!(decode_message::<Entry>(&two).is_err());
}

#[test]
fn entries_that_travel_together_keep_their_versions_and_hashes() {
    let entries =
        vec![entry(), with_deltas(entry()), with_deltas(sealed_entry()), sealed_entry(), entry()];
    let hashes = |entries: &[Entry]| entries.iter().map(Entry::hash).collect::<Vec<_>>();
    let frame = ServerFrame::Reply { number: 1, reply: Reply::Entries(entries.clone()) };
    let bytes = encode_message(&frame);
    assert_eq!(bytes[1], SEALED_VERSION + DELTAS_STEP);
    let Ok(ServerFrame::Reply { reply: Reply::Entries(received), .. }) = decode_message(&bytes)
    else {
        panic!("it is a reply");
    };
    assert_eq!(hashes(&received), hashes(&entries));
    let workspace = WorkspaceId::from_bytes([9; 16]);
    let commit = with_deltas(entry()).commit;
    let asked = RequestFrame { number: 1, workspace, request: Request::Commit(commit) };
    let told = ServerFrame::Event { workspace, entry: with_deltas(entry()) };
    let (asked_bytes, told_bytes) = (encode_message(&asked), encode_message(&told));
    assert_eq!((asked_bytes[1], told_bytes[1]), (9, 9));
    assert_eq!(decode_message(&asked_bytes), Ok(asked));
    assert_eq!(decode_message(&told_bytes), Ok(told));
}

#[test]
fn checkpoints_of_a_log_with_delta_records_have_a_version_of_their_own() {
    let page = PageId::from_bytes([1; 32]);
    let head = Head { seq: 3, hash: EntryHash::NONE };
    let (nodes, packs, node_count, has_deltas, seal) = (page, page, 1, true, None);
    for (fence, has_mounts, version) in
        [(0, false, 9), (2, false, 11), (0, true, 13), (2, true, 15)]
    {
        let checkpoint =
            Checkpoint { head, nodes, node_count, packs, fence, has_mounts, has_deltas, seal };
        let bytes = encode_message(&checkpoint);
        assert_eq!(bytes[1], version);
        assert_eq!(decode_message(&bytes), Ok(checkpoint.clone()));
        let frame = ServerFrame::Reply { number: 1, reply: Reply::Checkpoint(Some(checkpoint)) };
        assert_eq!(encode_message(&frame)[1], version);
        assert_eq!(decode_message(&encode_message(&frame)), Ok(frame));
    }
}

fn sealed_genesis() -> Genesis {
    Genesis {
        name: String::new(),
        mode: Mode::Sealed(SealedGenesis { account: [1; 32], salt: [2; 32], header: vec![3; 40] }),
        created: Timestamp::default(),
        content_key: [0; 32],
    }
}

fn sealed_entry() -> Entry {
    let seal = CommitSeal {
        epoch: 1,
        salt: [4; 32],
        device_key: [5; 32],
        certificate: [6; 64],
        header: vec![7; 144],
        signature: [8; 64],
    };
    let mut entry = entry();
    entry.commit.device_name.clear();
    entry.commit.seal = Some(Box::new(seal));
    entry
}

#[test]
fn sealed_messages_have_a_version_of_their_own_and_return() {
    let bytes = encode_message(&sealed_entry());
    assert_eq!(bytes[1], SEALED_VERSION);
    assert_eq!(decode_message(&bytes), Ok(sealed_entry()));
    let bytes = encode_message(&sealed_genesis());
    assert_eq!(bytes[1], SEALED_VERSION);
    assert_eq!(decode_message(&bytes), Ok(sealed_genesis()));
}

#[test]
fn name_of_a_sealed_workspace_is_not_in_its_genesis() {
    let named = Genesis { name: "Letters".to_owned(), ..sealed_genesis() };
    assert_eq!(encode_message(&named), encode_message(&sealed_genesis()));
    assert_eq!(named.hash(), sealed_genesis().hash());
}

#[test]
fn plain_and_sealed_messages_are_never_taken_for_each_other() {
    for (plain, sealed) in [
        (encode_message(&entry()), encode_message(&sealed_entry())),
        (encode_message(&genesis()), encode_message(&sealed_genesis())),
    ] {
        for (mut bytes, version) in [(plain, SEALED_VERSION), (sealed, FORMAT_VERSION)] {
            bytes[1] = version;
            assert!(decode_message::<Entry>(&bytes).is_err());
            assert!(decode_message::<Genesis>(&bytes).is_err());
        }
    }
    // A sealed commit without its seal is a plain one that says it is sealed.
    let mut bytes = encode_message(&entry());
    bytes[1] = SEALED_VERSION;
    bytes.push(0);
    assert!(matches!(
        decode_message::<Entry>(&bytes),
        Err(DecodeError::InvalidValue { what: "version", .. })
    ));
}

#[test]
fn another_kind_and_trailing_bytes_are_refused() {
    let mut bytes = encode_message(&entry());
    assert!(matches!(decode_message::<Commit>(&bytes), Err(DecodeError::WrongKind { .. })));
    bytes.push(0);
    assert_eq!(decode_message::<Entry>(&bytes), Err(DecodeError::TrailingBytes { count: 1 }));
}

#[test]
fn every_truncation_is_refused() {
    let bytes = encode_message(&entry());
    for length in 0..bytes.len() {
        assert!(decode_message::<Entry>(&bytes[..length]).is_err(), "{length}");
    }
}

#[test]
fn integers_have_one_spelling() {
    for bytes in [
        &[0x80, 0x00][..],
        &[0xff, 0x80, 0x00],
        &[0xff; 11],
        &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02],
    ] {
        assert!(
            matches!(Decoder::new(bytes).unsigned(), Err(DecodeError::NotCanonical { .. })),
            "{bytes:?}"
        );
    }
}

#[test]
fn hostile_lengths_allocate_nothing() {
    let mut encoder = Encoder::default();
    encoder.unsigned(u64::MAX);
    let bytes = encoder.into_bytes();
    assert!(Decoder::new(&bytes).list::<NodeId>().is_err());
    assert!(Decoder::new(&bytes).byte_string(usize::MAX).is_err());
}

proptest! {
    #[test]
    fn integers_return(unsigned in any::<u64>(), signed in any::<i64>()) {
        let mut encoder = Encoder::default();
        encoder.unsigned(unsigned);
        encoder.signed(signed);
        let bytes = encoder.into_bytes();
        let mut decoder = Decoder::new(&bytes);
        prop_assert_eq!(decoder.unsigned(), Ok(unsigned));
        prop_assert_eq!(decoder.signed(), Ok(signed));
        prop_assert_eq!(decoder.finish(), Ok(()));
    }

    #[test]
    fn decoded_bytes_encode_to_themselves(mut bytes in any::<Vec<u8>>(), flip in any::<(usize, u8)>()) {
        // Random bytes rarely decode; a changed byte of a real message often does.
        if bytes.len() % 2 == 0 {
            bytes = encode_message(&entry());
            let position = flip.0 % bytes.len();
            bytes[position] ^= flip.1;
        }
        if let Ok(entry) = decode_message::<Entry>(&bytes) {
            prop_assert_eq!(encode_message(&entry), bytes.clone());
        }
        if let Ok(record) = decode_message::<NodeRecord>(&bytes) {
            prop_assert_eq!(encode_message(&record), bytes);
        }
    }
}

#[test]
fn record_with_a_hostile_name_is_refused() {
    let record = NodeRecord {
        parent: NodeId::ROOT,
        name: crate::path::Name::new("ab").expect("valid"),
        mode: 0o644,
        modified: Timestamp::default(),
        kind: NodeKind::Directory,
        conflict: None,
    };
    let mut bytes = encode_message(&record);
    let place = bytes.windows(2).position(|window| window == b"ab").expect("the name is there");
    bytes[place..place + 2].copy_from_slice(b"..");
    assert!(matches!(
        decode_message::<NodeRecord>(&bytes),
        Err(DecodeError::InvalidValue { what: "name", .. })
    ));
}
