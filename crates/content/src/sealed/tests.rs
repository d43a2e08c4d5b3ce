use model::checkpoint::{Checkpoint, CheckpointSeal};
use model::codec::encode_message;
use model::content::ChunkRef;
use model::testing::{commit, node, put};
use model::{Action, Change, Commit, DeviceId, EntryHash, Head, Opener, PageId, Timestamp};
use proptest::prelude::*;

use super::*;
use crate::keyring::{SecretKey, Unlocked};
use crate::pack::{FinishedPack, PackIndex, PackWriter, TailOutcome, open_record, verify_whole};
use crate::samples::{SeededRandom, random_bytes, text};
use crate::transform::Transform;

/// A sealed workspace whose locks nobody opens, so that no passphrase need be stretched.
fn workspace(seed: u64) -> (Genesis, Unlocked) {
    let random = SeededRandom::new(seed);
    unlocked("Letters", Timestamp::default(), &random).expect("this build can seal")
}

fn device_keys((genesis, unlocked): &(Genesis, Unlocked), device: u8) -> DeviceKeys {
    let seed = SecretKey::from_bytes([device; 32]);
    DeviceKeys::enroll(genesis, unlocked, DeviceId::from_bytes([device; 16]), seed)
        .expect("enrolls")
}

fn keys(workspace: &(Genesis, Unlocked), device: u8, random: u64) -> WorkspaceKeys {
    let random = Arc::new(SeededRandom::new(random));
    WorkspaceKeys::open(&workspace.0, Some(device_keys(workspace, device)), random).expect("opens")
}

/// Keys of a sealed workspace, for tests of what they guard.
pub(crate) fn some_keys() -> WorkspaceKeys {
    keys(&workspace(1), 1, 1)
}

fn plain_keys() -> WorkspaceKeys {
    let genesis = Genesis {
        name: "Notes".to_owned(),
        mode: Mode::Plain,
        created: Timestamp::default(),
        content_key: [1; 32],
    };
    WorkspaceKeys::open(&genesis, None, Arc::new(SeededRandom::new(1))).expect("opens")
}

fn pack(keys: &WorkspaceKeys, chunks: &[Vec<u8>]) -> FinishedPack {
    let mut writer = PackWriter::new(Transform::default(), &keys.packs()).expect("a writer");
    for chunk in chunks {
        let id = keys.content().namer().name(chunk);
        writer.push(ChunkRef { id, length: chunk.len() as u32 }, chunk).expect("takes it");
    }
    let length_max = writer.stored_len_max();
    let pack = writer.finish().expect("finishes");
    assert!(pack.bytes.len() <= length_max, "{} of {length_max}", pack.bytes.len());
    pack
}

/// A large pack with its padding is not longer than a reader takes.
#[test]
fn grown_pack_that_is_sealed_is_within_the_limits() {
    let keys = keys(&workspace(1), 1, 1);
    let writer = PackWriter::new(Transform::None, &keys.packs()).expect("a writer");
    let mut writer = writer.with_target(crate::pack::pack_target(3));
    let mut lengths = Vec::new();
    for number in 0..40_u64 {
        let length = if number % 13 == 12 { 8 << 20 } else { 900_000 };
        let chunk = random_bytes(number, length);
        if !writer.has_room(crate::pack::Addition::chunk(chunk.len())) {
            lengths.push(writer.finish().expect("finishes").bytes.len());
        }
        let id = keys.content().namer().name(&chunk);
        writer.push(ChunkRef { id, length: length as u32 }, &chunk).expect("takes it");
        if writer.is_full() {
            lengths.push(writer.finish().expect("finishes").bytes.len());
        }
    }
    assert!(lengths.len() >= 3);
    assert!(lengths.iter().all(|length| *length as u64 <= crate::pack::PACK_LENGTH_MAX));
}

/// Reads all chunks of a pack as a device does that has its bytes and nothing else.
fn read(keys: &WorkspaceKeys, bytes: &[u8]) -> Result<Vec<Vec<u8>>, ContentError> {
    let TailOutcome::Complete(index) =
        PackIndex::from_tail(bytes, bytes.len() as u64, &keys.packs())?
    else {
        return Err(ContentError::PackTrailer);
    };
    let mut chunks = Vec::new();
    for (number, entry) in index.records().iter().enumerate() {
        let range = entry.stored_range();
        let stored = &bytes[range.start as usize..range.end as usize];
        let record = open_record(&index, number, stored, &keys.content().namer())?;
        for chunk in record.verified_chunks() {
            chunks.push(chunk?.1.to_vec());
        }
    }
    Ok(chunks)
}

fn few_chunks() -> Vec<Vec<u8>> {
    vec![text(1, 3000), random_bytes(2, 500), text(3, 70)]
}

#[test]
fn sealed_pack_returns_its_chunks_and_says_only_about_how_long_it_is() {
    let workspace = workspace(1);
    let keys = keys(&workspace, 1, 1);
    let chunks = vec![random_bytes(1, 200_000), text(2, 3_000_000), random_bytes(3, 900_000)];
    let pack = pack(&keys, &chunks);
    assert_eq!(read(&keys, &pack.bytes).expect("opens"), chunks);
    assert_eq!(verify_whole(pack.id, &pack.bytes, &keys.packs()).expect("whole"), pack.index);
    assert!(pack.bytes.len().is_multiple_of(4096));
    let few = self::pack(&keys, &[text(7, 10)]);
    assert_eq!(few.bytes.len(), self::pack(&keys, &[text(7, 1500)]).bytes.len());
}

#[test]
fn equal_packs_are_sealed_unequally() {
    let workspace = workspace(2);
    let keys = keys(&workspace, 1, 1);
    let (one, two) = (pack(&keys, &few_chunks()), pack(&keys, &few_chunks()));
    assert_ne!(one.id, two.id);
    let same = one.bytes.iter().zip(&two.bytes).filter(|(one, two)| one == two).count();
    assert!(same < one.bytes.len() / 64, "{same} of {} bytes are equal", one.bytes.len());
}

#[test]
fn randomness_that_repeats_itself_gives_no_key_twice() {
    let workspace = workspace(3);
    let (one, two) = (keys(&workspace, 1, 5), keys(&workspace, 1, 5));
    let (one, two) = (pack(&one, &[text(1, 900)]), pack(&two, &[text(2, 900)]));
    let salt = |pack: &FinishedPack| pack.bytes[pack.bytes.len() - 64..][..32].to_vec();
    assert_ne!(salt(&one), salt(&two));
}

#[test]
fn every_flipped_bit_of_a_sealed_pack_is_refused() {
    let workspace = workspace(4);
    let keys = keys(&workspace, 1, 1);
    let pack = pack(&keys, &few_chunks());
    let padding = pack.index.records().last().expect("a record").stored_range().end;
    let mut in_padding = 0;
    for bit in 0..pack.bytes.len() * 8 {
        let mut flipped = pack.bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert!(verify_whole(pack.id, &flipped, &keys.packs()).is_err(), "bit {bit}");
        if bit % 61 > 0 {
            continue;
        }
        // By ranges nobody looks at the header or the padding, whose bytes are nobody's.
        match read(&keys, &flipped) {
            Err(_) => {}
            Ok(chunks) => {
                assert!(bit / 8 < 8 || bit / 8 >= padding as usize, "bit {bit}");
                assert_eq!(chunks, few_chunks());
                in_padding += 1;
            }
        }
    }
    assert!(in_padding > 0, "the padding was tried, too");
}

#[test]
fn boxes_open_only_in_their_place_and_pack() {
    let workspace = workspace(5);
    let keys = keys(&workspace, 1, 1);
    let chunks: Vec<_> = (0..3).map(|seed| random_bytes(seed, 1 << 20)).collect();
    let (one, two) = (pack(&keys, &chunks), pack(&keys, &chunks));
    let namer = keys.content().namer();
    let range = |pack: &FinishedPack, record: usize| {
        let range = pack.index.records()[record].stored_range();
        pack.bytes[range.start as usize..range.end as usize].to_vec()
    };
    assert!(open_record(&one.index, 0, &range(&one, 0), &namer).is_ok());
    for (record, stored) in [(0, range(&one, 1)), (1, range(&one, 0)), (0, range(&two, 0))] {
        let refused = open_record(&one.index, record, &stored, &namer);
        assert!(matches!(refused, Err(ContentError::Record { .. })), "{record}");
    }
}

#[test]
fn packs_of_another_workspace_or_mode_are_refused_by_type() {
    let (ours, theirs) = (workspace(6), workspace(7));
    let (ours, theirs) = (keys(&ours, 1, 1), keys(&theirs, 1, 1));
    let plain = plain_keys();
    let (sealed_pack, foreign) = (pack(&ours, &few_chunks()), pack(&theirs, &few_chunks()));
    let plain_pack = pack(&plain, &few_chunks());
    assert!(matches!(read(&ours, &foreign.bytes), Err(ContentError::Tampered { .. })));
    assert!(matches!(read(&ours, &plain_pack.bytes), Err(ContentError::NotSealed { .. })));
    assert!(matches!(read(&plain, &sealed_pack.bytes), Err(ContentError::IsSealed { .. })));
    let whole = verify_whole(plain_pack.id, &plain_pack.bytes, &ours.packs());
    assert!(matches!(whole, Err(ContentError::NotSealed { .. })));
    let whole = verify_whole(sealed_pack.id, &sealed_pack.bytes, &plain.packs());
    assert!(matches!(whole, Err(ContentError::IsSealed { .. })));
}

#[test]
fn keys_and_mode_of_a_workspace_belong_together() {
    let (one, two) = (workspace(8), workspace(9));
    let random = || Arc::new(SeededRandom::new(1));
    let refused = WorkspaceKeys::open(&one.0, None, random());
    assert!(matches!(refused, Err(ContentError::NoKeys)));
    let refused = WorkspaceKeys::open(&one.0, Some(device_keys(&two, 1)), random());
    assert!(matches!(refused, Err(ContentError::NoKeys)));
    let plain = Genesis { mode: Mode::Plain, ..one.0.clone() };
    let refused = WorkspaceKeys::open(&plain, Some(device_keys(&one, 1)), random());
    assert!(matches!(refused, Err(ContentError::NotSealed { .. })));
}

fn plain_commit(device: u8) -> Commit {
    let delete = Change { node: node(3), base: 4, action: Action::Delete };
    let changes = vec![put(1, 0, "secret-name"), delete, put(2, 7, "other-name")];
    let mut commit = commit(1, changes);
    commit.device = DeviceId::from_bytes([device; 16]);
    commit.inline_packs = vec![vec![1, 2, 3]];
    commit.time = Timestamp { seconds: 77, nanoseconds: 1 };
    commit
}

#[test]
fn sealed_commit_opens_for_members_and_tells_nobody_else_names() {
    let workspace = workspace(10);
    let (writer, reader) = (keys(&workspace, 1, 1), keys(&workspace, 2, 2));
    let plain = plain_commit(1);
    let sealed = writer.seal_commit(plain.clone()).expect("seals");
    assert_eq!(reader.check(&sealed, None), Ok(()));
    for (number, change) in plain.changes.iter().enumerate() {
        let opened = reader.open(&sealed, number).expect("opens");
        let expected = match &change.action {
            Action::Put(payload) => Some(payload.as_slice()),
            Action::Delete => None,
        };
        assert_eq!(opened.as_deref(), expected);
    }
    let header = reader.commit_header(&sealed).expect("opens");
    assert_eq!(header, (plain.device_name.clone(), plain.time));
    let bytes = encode_message(&sealed);
    for canary in ["secret-name", "other-name", "laptop"] {
        assert!(!bytes.windows(canary.len()).any(|window| window == canary.as_bytes()));
    }
    assert_eq!((sealed.device_name.as_str(), sealed.time), ("", Timestamp::default()));
    assert!(matches!(&sealed.changes[0].action, Action::Put(payload) if payload.len() == 128));
}

#[test]
fn nobody_takes_from_a_sealed_commit_that_its_packs_have_delta_records() {
    let workspace = workspace(10);
    let keys = keys(&workspace, 1, 1);
    let with_deltas = |has_deltas| Commit { has_deltas, ..plain_commit(1) };
    for has_deltas in [false, true] {
        let sealed = keys.seal_commit(with_deltas(has_deltas)).expect("seals");
        let bytes = encode_message(&sealed);
        assert_eq!(bytes[1] > 8, has_deltas, "those before refuse it by name");
        assert_eq!(model::codec::decode_message(&bytes), Ok(sealed.clone()));
        assert_eq!(keys.check(&sealed, None), Ok(()));
        assert!(keys.commit_header(&sealed).is_ok() && keys.open(&sealed, 0).is_ok());
        let forged = Commit { has_deltas: !has_deltas, ..sealed };
        assert!(keys.check(&forged, None).is_err());
    }
}

#[test]
fn every_flipped_bit_of_a_sealed_commit_is_refused() {
    let workspace = workspace(11);
    let keys = keys(&workspace, 1, 1);
    let sealed = keys.seal_commit(plain_commit(1)).expect("seals");
    let bytes = encode_message(&sealed);
    let mut decoded = 0;
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        if let Ok(commit) = model::codec::decode_message::<Commit>(&flipped) {
            assert!(keys.check(&commit, None).is_err(), "bit {bit}");
            decoded += 1;
        }
    }
    assert!(decoded > bytes.len() * 6, "most flips are found by the signature");
}

#[test]
fn commits_of_strangers_are_refused() {
    let (ours, theirs) = (workspace(12), workspace(13));
    let (reader, stranger) = (keys(&ours, 1, 1), keys(&theirs, 2, 1));
    let foreign = stranger.seal_commit(plain_commit(2)).expect("seals");
    assert!(reader.check(&foreign, None).is_err(), "of another account");
    assert!(reader.check(&plain_commit(1), None).is_err(), "not sealed");
    let sealed = keys(&ours, 2, 1).seal_commit(plain_commit(2)).expect("seals");
    assert_eq!(reader.check(&sealed, None), Ok(()));
    // Another device's certificate and signature under this device's name, and the other way round.
    let mut renamed = sealed.clone();
    renamed.device = DeviceId::from_bytes([3; 16]);
    assert!(reader.check(&renamed, None).is_err());
    let mut mixed = sealed.clone();
    mixed.seal.as_mut().expect("sealed").certificate = foreign.seal.expect("sealed").certificate;
    assert!(reader.check(&mixed, None).is_err());
    assert!(plain_keys().check(&sealed, None).is_err(), "sealed, in a plain workspace");
    assert!(matches!(reader.seal_commit(plain_commit(2)), Err(ContentError::NoKeys)));
}

#[test]
fn payload_moved_to_another_change_does_not_open() {
    let workspace = workspace(14);
    let keys = keys(&workspace, 1, 1);
    let sealed = keys.seal_commit(plain_commit(1)).expect("seals");
    let mut swapped = sealed.clone();
    let (first, last) = (sealed.changes[0].action.clone(), sealed.changes[2].action.clone());
    (swapped.changes[0].action, swapped.changes[2].action) = (last, first);
    assert!(keys.open(&swapped, 0).is_err() && keys.open(&swapped, 2).is_err());
    for field in 0..4 {
        let mut other = sealed.clone();
        match field {
            0 => other.changes[0].base = 1,
            1 => other.changes[0].node = node(9),
            2 => other.op_id = model::OpId::from_bytes([8; 16]),
            _ => other.device = DeviceId::from_bytes([8; 16]),
        }
        assert!(keys.open(&other, 0).is_err(), "field {field}");
    }
}

#[test]
fn commit_of_a_newer_key_waits_and_does_not_count_for_nothing() {
    let (genesis, mut unlocked) = workspace(15);
    let old = (genesis.clone(), unlocked.clone());
    unlocked.keyring.rotate(&SeededRandom::new(99)).expect("there is room");
    let new = (genesis, unlocked);
    let (behind, ahead) = (keys(&old, 1, 1), keys(&new, 2, 1));
    let newer = ahead.seal_commit(plain_commit(2)).expect("seals");
    assert_eq!(behind.check(&newer, None), Ok(()));
    assert!(matches!(
        behind.check_epoch(&newer, None),
        Err(ContentError::UnknownEpoch { epoch: 2 })
    ));
    let older = behind.seal_commit(plain_commit(1)).expect("seals");
    assert!(ahead.check_epoch(&older, None).is_ok() && ahead.open(&older, 0).is_ok());
    // A forger cannot make anybody wait.
    let mut forged = newer;
    forged.seal.as_mut().expect("sealed").epoch = 3;
    assert!(behind.check_epoch(&forged, None).is_ok() && behind.check(&forged, None).is_err());
    // Nor can who may commit, by a key that nobody can ever have.
    forged.seal.as_mut().expect("sealed").epoch = 0;
    let forged = ahead.sealer.as_ref().expect("sealed").sign(forged).expect("signs");
    assert!(behind.check_epoch(&forged, None).is_ok() && behind.check(&forged, None).is_err());
    let newer = pack(&ahead, &few_chunks());
    assert!(matches!(read(&behind, &newer.bytes), Err(ContentError::UnknownEpoch { epoch: 2 })));
    assert_eq!(read(&ahead, &pack(&behind, &few_chunks()).bytes).expect("opens"), few_chunks());
}

#[test]
fn pages_are_sealed_alike_where_they_are_alike_and_every_flipped_bit_is_refused() {
    let workspace = workspace(16);
    let (one, two) = (keys(&workspace, 1, 1), keys(&workspace, 2, 2));
    let page = text(1, 700);
    let sealed = one.seal_page(page.clone()).expect("seals");
    assert_eq!(two.seal_page(page.clone()).expect("seals"), sealed);
    assert_eq!(two.open_page(&sealed).expect("opens").as_ref(), &page[..]);
    assert_ne!(one.seal_page(text(2, 700)).expect("seals")[6..38], sealed[6..38]);
    assert!(sealed.len().is_multiple_of(4096));
    for bit in 0..sealed.len() * 8 {
        let mut flipped = sealed.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert!(two.open_page(&flipped).is_err(), "bit {bit}");
    }
    assert!(matches!(two.open_page(&page), Err(ContentError::NotSealed { .. })));
    assert!(matches!(plain_keys().open_page(&sealed), Err(ContentError::IsSealed { .. })));
}

#[test]
fn checkpoint_that_no_device_of_the_owner_made_is_refused() {
    let workspace = workspace(17);
    let keys = keys(&workspace, 1, 1);
    let page = |number| PageId::from_bytes([number; 32]);
    let head = Head { seq: 7, hash: EntryHash::from_bytes([7; 32]) };
    let plain = Checkpoint {
        head,
        nodes: page(1),
        node_count: 12_345,
        packs: page(2),
        fence: 0,
        has_mounts: false,
        has_deltas: false,
        seal: None,
    };
    let sealed = keys.seal_checkpoint(plain.clone()).expect("seals");
    assert_eq!(sealed.node_count, 0, "nobody is told how many nodes there are");
    assert!(keys.check_checkpoint(&sealed).is_ok());
    let older = Head { seq: 6, ..head };
    for forged in [
        plain.clone(),
        Checkpoint { head: older, ..sealed.clone() },
        Checkpoint { nodes: page(3), ..sealed.clone() },
        Checkpoint { packs: page(3), ..sealed.clone() },
        Checkpoint { node_count: 1, ..sealed.clone() },
        Checkpoint { fence: 5, ..sealed.clone() },
        Checkpoint { has_mounts: true, ..sealed.clone() },
        Checkpoint { has_deltas: true, ..sealed.clone() },
    ] {
        assert!(keys.check_checkpoint(&forged).is_err(), "{forged:?}");
    }
    let bytes = encode_message(&sealed);
    assert_eq!(model::codec::decode_message(&bytes), Ok(sealed.clone()));
    // Whatever is exchanged in the seal, also by another of the owner's devices, is seen.
    let seal = sealed.seal.expect("sealed");
    let other = self::keys(&workspace, 2, 1).seal_checkpoint(plain).expect("seals");
    assert!(keys.check_checkpoint(&other).is_ok());
    let other = other.seal.expect("sealed");
    for forged in [
        CheckpointSeal { device: other.device, ..seal },
        CheckpointSeal { device_key: other.device_key, ..seal },
        CheckpointSeal { certificate: other.certificate, ..seal },
        CheckpointSeal { signature: other.signature, ..seal },
        CheckpointSeal { tag: [0; 32], ..seal },
    ] {
        let forged = Checkpoint { seal: Some(forged), ..sealed.clone() };
        assert!(keys.check_checkpoint(&forged).is_err(), "{forged:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_is_sealed_opens_to_itself(
        lengths in prop::collection::vec(1_usize..40_000, 1..12),
        page in prop::collection::vec(any::<u8>(), 0..9000),
        seed in any::<u32>(),
    ) {
        let workspace = workspace(u64::from(seed));
        let keys = keys(&workspace, 1, u64::from(seed));
        let chunks: Vec<_> =
            lengths.iter().enumerate().map(|(at, &length)| match at % 2 {
                0 => random_bytes(at as u64, length),
                _ => text(at as u64, length),
            }).collect();
        let pack = pack(&keys, &chunks);
        prop_assert_eq!(read(&keys, &pack.bytes).expect("opens"), chunks);
        let sealed = keys.seal_page(page.clone()).expect("seals");
        prop_assert_eq!(keys.open_page(&sealed).expect("opens").into_owned(), page.clone());
        let change = Change { node: node(1), base: 0, action: Action::Put(page.clone()) };
        let sealed = keys.seal_commit(commit(1, vec![change])).expect("seals");
        prop_assert_eq!(keys.check(&sealed, None), Ok(()));
        let opened = keys.open(&sealed, 0).expect("opens");
        prop_assert_eq!(opened.as_deref(), Some(&page[..]));
    }

    #[test]
    fn bytes_of_anybody_never_panic(bytes in any::<Vec<u8>>(), length in any::<u64>()) {
        let workspace = workspace(1);
        let keys = keys(&workspace, 1, 1);
        prop_assert!(keys.open_page(&bytes).is_err());
        prop_assert!(PackIndex::from_tail(&bytes, bytes.len() as u64, &keys.packs()).is_err());
        let _ = PackIndex::from_tail(&bytes, length, &keys.packs());
        let mut ended = bytes;
        ended.extend_from_slice(b"\x02PACKEND");
        let _ = PackIndex::from_tail(&ended, ended.len() as u64, &keys.packs());
    }
}
