use content::{NewWorkspace, PackWriter, Passphrase};
use model::codec::encode_message;
use model::testing::{commit, put_record};
use model::{ChunkRef, Commit, Content, Name, NodeRecord, Timestamp};

use super::*;

const SEED: [u8; 32] = [3; 32];
const BYTES: &[u8] = b"Dear Bob, nobody else reads this.";
const DEVICE: &str = "0000000000000000000000000000000a";
const ROOT: &str = "00000000000000000000000000000000";

/// A workspace with one file in its log, as a device has made it: id, genesis, locked keys, and a frame with its entry.
pub(crate) fn made(passphrase: &str) -> (String, Vec<u8>, Vec<u8>, Vec<u8>) {
    let random: Arc<dyn Random> = Arc::new(Seeded::new("a device", &[4; 32]).unwrap());
    let passphrase = Passphrase::new(Zeroizing::new(passphrase.to_owned()));
    let created = Timestamp::default();
    let NewWorkspace { genesis, keys, unlocked } =
        NewWorkspace::create("Diary", created, &passphrase, &*random).unwrap();
    let device = DeviceId::from_bytes([1; 16]);
    let signing = content::keyring::SecretKey::random(&*random);
    let device = DeviceKeys::enroll(&genesis, &unlocked, device, signing).unwrap();
    let opened = WorkspaceKeys::open(&genesis, Some(device), random).unwrap();
    let chunk = ChunkRef { id: opened.content().namer().name(BYTES), length: BYTES.len() as u32 };
    let mut writer = PackWriter::new(content::Transform::default(), &opened.packs()).unwrap();
    writer.push(chunk, BYTES).unwrap();
    let size = BYTES.len() as u64;
    let content = Content { size, chunk_size: 4096, depth: 0, chunks: vec![chunk] };
    let record = NodeRecord {
        parent: NodeId::ROOT,
        name: Name::new("letter.txt").unwrap(),
        mode: 0o644,
        modified: Timestamp { seconds: 12, nanoseconds: 345_000_000 },
        kind: NodeKind::File(content),
        conflict: None,
    };
    let inline_packs = vec![writer.finish().unwrap().bytes];
    let commit = Commit { inline_packs, ..commit(1, vec![put_record(1, 0, &record)]) };
    let commit = opened.seal_commit(Commit { seen: genesis.head(), ..commit }).unwrap();
    let entry = Entry { seq: 1, previous: genesis.head().hash, commit };
    let frame = ServerFrame::Reply { number: 0, reply: Reply::Entries(vec![entry]) };
    let id = genesis.workspace().to_string();
    (id, encode_message(&genesis), keys.to_bytes(), encode_message(&frame))
}

#[test]
fn workspace_is_unlocked_listed_and_read_and_whatever_does_not_fit_has_its_code() {
    let (id, genesis, keys, frame) = made("correct horse");
    let open = |id: &str, generation: f64, secret: &str, seed: &[u8]| {
        SealedWorkspace::new(
            id,
            &genesis,
            generation,
            &keys,
            secret.to_owned(),
            DEVICE,
            "page",
            seed,
        )
    };
    let code = |opened: Result<SealedWorkspace, Failure>| opened.err().unwrap().code;
    assert_eq!(code(open(&"0".repeat(32), 1.0, "correct horse", &SEED)), "wrong_workspace");
    assert_eq!(code(open(&id, 2.0, "correct horse", &SEED)), "tampered");
    assert_eq!(code(open(&id, 1.0, "wrong horse", &SEED)), "wrong_key");
    assert_eq!(code(open(&id, 1.0, "correct horse", &SEED[1..])), "length");

    let mut workspace = open(&id, 1.0, "correct horse", &SEED).unwrap();
    assert_eq!(workspace.name(), "Diary");
    let mut forged = frame.clone();
    forged[10] ^= 1;
    assert_eq!(workspace.fold(&forged).err().unwrap().code, "not_next");
    assert_eq!(workspace.fold(&frame[1..]).err().unwrap().code, "message");
    assert_eq!((workspace.fold(&frame).unwrap(), workspace.head()), (1, 1.0));
    assert_eq!(workspace.hash_of(1.0).unwrap().len(), 64);
    assert_eq!((workspace.hash_of(2.0), workspace.hash_of(1e18)), (None, None));
    let [node] = &workspace.list(ROOT).unwrap()[..] else { panic!("one file is in it") };
    assert_eq!((node.name.as_str(), node.size), ("letter.txt", Some(BYTES.len() as f64)));
    assert_eq!((node.kind.as_str(), node.modified_ms), ("file", 12_345.0));
    assert_eq!(workspace.list(&node.id).err().unwrap().code, "no_such");
    let reading = workspace.begin(&node.id).unwrap();
    assert_eq!(workspace.read(reading).unwrap(), BYTES);
    assert!(workspace.is_over(reading).unwrap());
    workspace.end(reading);
    assert_eq!(workspace.read(reading).err().unwrap().code, "no_such");
    let shown = workspace.shown();
    assert_eq!((shown.commits, shown.nodes, shown.void_entries), (1.0, 1.0, 0.0));
}
