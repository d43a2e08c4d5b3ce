use std::collections::HashMap;
use std::sync::Arc;

use content::reading::FileReading;
use content::{DeviceKeys, NewWorkspace, Passphrase, Replay, Unlocked, WorkspaceKeys};
use model::codec::decode_message;
use model::wire::{Reply, ServerFrame};
use model::{
    Action, DeviceId, Entry, Fence, Genesis, Head, Name, NodeKind, NodeRecord, PackId, Random,
};
use zeroize::Zeroizing;

use super::*;
use crate::seeded::Seeded;

pub(crate) const ROOT: &str = "00000000000000000000000000000000";
const PAGE: &str = "0000000000000000000000000000000a";
const NOW: f64 = 1_700_000_000_123.0;

/// A server that orders commits, and a device of the account that reads and writes by the functions of devices.
pub(crate) struct Scene {
    pub(crate) genesis: Genesis,
    pub(crate) unlocked: Unlocked,
    locked: Vec<u8>,
    pub(crate) device: WorkspaceKeys,
    pub(crate) log: Vec<Entry>,
    stored: HashMap<PackId, Vec<u8>>,
    /// What has gone over the wire.
    wire: Vec<u8>,
}

impl Scene {
    pub(crate) fn new() -> Self {
        let random: Arc<dyn Random> = Arc::new(Seeded::new("a device", &[4; 32]).unwrap());
        let passphrase = Passphrase::new(Zeroizing::new("correct horse".to_owned()));
        let NewWorkspace { genesis, keys, unlocked } =
            NewWorkspace::create("Diary", Timestamp::default(), &passphrase, &*random).unwrap();
        let signing = content::keyring::SecretKey::random(&*random);
        let id = DeviceId::from_bytes([1; 16]);
        let device = DeviceKeys::enroll(&genesis, &unlocked, id, signing).unwrap();
        let device = WorkspaceKeys::open(&genesis, Some(device), random).unwrap();
        let (locked, log, stored, wire) = (keys.to_bytes(), Vec::new(), HashMap::new(), Vec::new());
        Self { genesis, unlocked, locked, device, log, stored, wire }
    }

    /// Opens it in another page.
    pub(crate) fn page(&self, seed: u8) -> SealedWorkspace {
        let id = self.genesis.workspace().to_string();
        let (genesis, secret) = (encode_message(&self.genesis), "correct horse".to_owned());
        let seed = [seed; 32];
        let page =
            SealedWorkspace::new(&id, &genesis, 1.0, &self.locked, secret, PAGE, "page", &seed);
        let mut page = page.unwrap();
        self.catch_up(&mut page).unwrap();
        page
    }

    fn head(&self) -> Head {
        self.log.last().map_or(self.genesis.head(), Entry::head)
    }

    pub(crate) fn append(&mut self, commit: Commit) {
        let Head { seq, hash } = self.head();
        self.log.push(Entry { seq: seq + 1, previous: hash, commit });
    }

    fn frame(&self, since: f64) -> Vec<u8> {
        let entries = self.log[since as usize..].to_vec();
        encode_message(&ServerFrame::Reply { number: 0, reply: Reply::Entries(entries) })
    }

    pub(crate) fn catch_up(&self, page: &mut SealedWorkspace) -> Result<u32, Failure> {
        page.fold(&self.frame(page.head()))
    }

    /// Carries a deed out as the page does.
    pub(crate) fn act(
        &mut self,
        page: &mut SealedWorkspace,
        deed: u32,
    ) -> Result<SealedDone, Failure> {
        loop {
            let Some(message) = page.propose(deed, NOW)? else { return page.settle(deed) };
            assert_eq!(page.propose(deed, NOW)?.as_ref(), Some(&message), "it is the same again");
            self.wire.extend_from_slice(&message);
            self.append(decode_message(&message).unwrap());
            self.catch_up(page)?;
            let done = page.settle(deed)?;
            if done.is_over {
                return Ok(done);
            }
        }
    }

    /// Reads and packs a file as the page does; returns the deed.
    fn begin_put(&mut self, page: &mut SealedWorkspace, name: &str, bytes: &[u8]) -> u32 {
        let nodes = page.list(ROOT).unwrap();
        let over = nodes.iter().find(|node| node.name == name).map(|node| node.version);
        let deed = page.put(ROOT, name, over, bytes.len() as f64, NOW).unwrap();
        while let Some(place) = page.sample_place(deed).unwrap() {
            let rest = &bytes[place as usize..];
            let length = rest.len().min(SealedWorkspace::sample_length() as usize);
            page.take_sample(deed, &rest[..length]).unwrap();
        }
        loop {
            let wanted = page.wanted_known(deed).unwrap();
            if wanted.is_empty() {
                break;
            }
            for (number, part) in (0..).zip(wanted) {
                let (bytes, is_entry) = match part.inline_seq {
                    Some(seq) => (self.frame(seq - 1.0), true),
                    None => {
                        let stored = &self.stored[&part.pack.parse().unwrap()];
                        (stored[part.start as usize..part.end as usize].to_vec(), false)
                    }
                };
                page.take_known(deed, number, &bytes, is_entry).unwrap();
            }
        }
        for piece in bytes.chunks(1 << 20) {
            page.push(deed, piece).unwrap();
            while let Some(pack) = page.take_pack(deed).unwrap() {
                self.store(pack);
            }
        }
        page.end_put(deed).unwrap().into_iter().for_each(|pack| self.store(pack));
        deed
    }

    fn store(&mut self, pack: SealedPack) {
        self.wire.extend_from_slice(&pack.bytes);
        assert_eq!(blake3::hash(&pack.bytes).to_string(), pack.id);
        self.stored.insert(pack.id.parse().unwrap(), pack.bytes);
    }

    pub(crate) fn put(
        &mut self,
        page: &mut SealedWorkspace,
        name: &str,
        bytes: &[u8],
    ) -> SealedDone {
        let deed = self.begin_put(page, name, bytes);
        let done = self.act(page, deed).unwrap();
        page.forget(deed);
        done
    }

    /// What the device sees: the paths of the root, and the bytes of files.
    pub(crate) fn seen_by_device(&self) -> Vec<(String, Option<Vec<u8>>)> {
        let mut replay = Replay::new(&self.genesis, self.device.clone());
        for entry in &self.log {
            assert_eq!(replay.fold(entry).unwrap().void, None);
        }
        let nodes: Vec<_> = replay.tree().children(&NodeId::ROOT).map(|(_, id)| *id).collect();
        let mut seen = Vec::new();
        for id in nodes {
            let record = replay.tree().get(&id).unwrap().record.clone();
            let bytes = match &record.kind {
                NodeKind::File(content) => Some(self.read(&mut replay, content)),
                _ => None,
            };
            seen.push((record.name.to_string(), bytes));
        }
        seen
    }

    fn read(&self, replay: &mut Replay, content: &model::Content) -> Vec<u8> {
        let (mut reading, mut bytes) = (FileReading::new(content).unwrap(), Vec::new());
        loop {
            bytes.extend(reading.read(replay.packs_mut()).unwrap());
            if reading.is_over(replay.packs_mut()).unwrap() {
                return bytes;
            }
            let wanted = reading.wanted(replay.packs_mut()).unwrap().to_vec();
            for (number, part) in wanted.into_iter().enumerate() {
                let packs = replay.packs_mut();
                match part.pack.place.inline_seq {
                    Some(seq) => reading.take_entry(packs, number, &self.log[seq as usize - 1]),
                    None => {
                        let range = part.range.start as usize..part.range.end as usize;
                        reading.take(packs, number, &self.stored[&part.pack.id][range])
                    }
                }
                .unwrap();
            }
        }
    }

    /// The device changes nodes, as it does: sealed and signed.
    pub(crate) fn device_changes(&mut self, number: u8, changes: Vec<Change>) {
        let commit = Commit {
            seen: self.head(),
            device: DeviceId::from_bytes([1; 16]),
            ..model::testing::commit(number, changes)
        };
        let commit = self.device.seal_commit(commit).unwrap();
        self.append(commit);
    }
}

fn noise(length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    Seeded::new("noise", &[9; 32]).unwrap().fill(&mut bytes);
    bytes
}

#[test]
fn a_device_reads_what_a_page_writes_byte_for_byte_and_nothing_of_it_is_told_in_plain() {
    let mut scene = Scene::new();
    let mut page = scene.page(1);
    let letter = b"Dear Bob, nobody else reads this letter.".repeat(300);
    let mut large = noise(6 << 20);
    for (name, bytes) in [("letter.txt", &letter), ("empty", &Vec::new()), ("large.bin", &large)] {
        assert!(!scene.put(&mut page, name, bytes).is_beside);
    }
    let folder = page.make_folder(ROOT, "Bilder").unwrap();
    assert!(!scene.act(&mut page, folder).unwrap().is_partial);
    let mut expected = vec![
        ("Bilder".to_owned(), None),
        ("empty".to_owned(), Some(Vec::new())),
        ("large.bin".to_owned(), Some(large.clone())),
        ("letter.txt".to_owned(), Some(letter)),
    ];
    assert!(scene.seen_by_device() == expected);
    for plain in ["Dear Bob", "letter.txt", "Bilder", "page", "Diary"] {
        let found = scene.wire.windows(plain.len()).any(|bytes| bytes == plain.as_bytes());
        assert!(!found, "{plain} went over the wire");
    }
    // Another page, which knows nothing yet, changes a few bytes.
    let mut other = scene.page(2);
    large.splice(3_000_000..3_000_001, *b"some other bytes");
    let before = scene.wire.len();
    scene.put(&mut other, "large.bin", &large);
    assert!(scene.wire.len() - before < 700_000, "{}", scene.wire.len() - before);
    expected[2].1 = Some(large);
    assert!(scene.seen_by_device() == expected);
    scene.catch_up(&mut page).unwrap();
    assert_eq!(page.list(ROOT).unwrap().len(), 4);
}

#[test]
fn what_a_device_has_changed_at_the_same_moment_is_kept_and_the_page_writes_beside_it() {
    let mut scene = Scene::new();
    let mut page = scene.page(1);
    scene.put(&mut page, "plan.txt", b"of the beginning");
    let node = page.list(ROOT).unwrap()[0].id.clone();
    let deed = scene.begin_put(&mut page, "plan.txt", b"of the page");
    // The device was faster, and the page has not heard of it: it proposes over the version that it has seen.
    let message = page.propose(deed, NOW).unwrap().unwrap();
    let record = NodeRecord {
        parent: NodeId::ROOT,
        name: Name::new("plan.txt").unwrap(),
        mode: 0o644,
        modified: Timestamp::default(),
        kind: NodeKind::File(model::Content::default()),
        conflict: None,
    };
    let theirs = Change {
        node: node.parse().unwrap(),
        base: 1,
        action: Action::Put(encode_message(&record)),
    };
    scene.device_changes(70, vec![theirs]);
    scene.append(decode_message(&message).unwrap());
    scene.catch_up(&mut page).unwrap();
    assert!(!page.settle(deed).unwrap().is_over);
    let done = scene.act(&mut page, deed).unwrap();
    assert!(done.is_beside && done.is_over);
    let expected = [
        ("plan (conflict page).txt".to_owned(), Some(b"of the page".to_vec())),
        ("plan.txt".to_owned(), Some(Vec::new())),
    ];
    assert_eq!(scene.seen_by_device(), expected);
    let beside = &page.list(ROOT).unwrap()[0];
    assert!(beside.is_conflict);
}

#[test]
fn names_places_and_versions_are_changed_and_a_deletion_is_taken_back() {
    let mut scene = Scene::new();
    let mut page = scene.page(1);
    let folder = page.make_folder(ROOT, "old").unwrap();
    let folder = scene.act(&mut page, folder).unwrap().node.unwrap();
    scene.put(&mut page, "file", b"content");
    let file = page.list(ROOT).unwrap()[0].id.clone();
    let moved = page.relocate(&file, &folder, "moved").unwrap();
    scene.act(&mut page, moved).unwrap();
    let renamed = page.relocate(&folder, ROOT, "new").unwrap();
    scene.act(&mut page, renamed).unwrap();
    let code = |deed: Result<u32, Failure>| deed.err().unwrap().code;
    assert_eq!(code(page.relocate(&folder, &folder, "x")), "into_itself");
    assert_eq!(code(page.make_folder(ROOT, "new")), "taken");
    assert_eq!(code(page.make_folder(ROOT, ".syncline")), "name");
    assert_eq!(code(page.make_folder(&file, "x")), "no_such");
    assert_eq!(code(page.put(&folder, "moved", None, 1.0, NOW)), "taken");
    assert_eq!(code(page.put(&folder, "moved", Some(1.0), 1.0, NOW)), "changed");
    assert_eq!(code(page.put(&folder, "other", Some(1.0), 1.0, NOW)), "changed");
    assert_eq!(code(page.remove(vec![folder.clone()], &[1.0])), "changed");
    let removed = page.remove(vec![folder.clone()], &[2.0]).unwrap();
    assert!(scene.act(&mut page, removed).unwrap().is_over);
    assert_eq!(scene.seen_by_device(), []);
    let back = page.restore(removed).unwrap();
    scene.act(&mut page, back).unwrap();
    assert_eq!(scene.seen_by_device(), [("new".to_owned(), None)]);
    assert_eq!(page.list(&folder).unwrap()[0].name, "moved");
    assert_eq!(code(page.restore(removed)), "changed");
}

#[test]
fn a_page_writes_nothing_where_it_must_not() {
    let mut scene = Scene::new();
    let mut page = scene.page(1);
    scene.put(&mut page, "file", b"content");
    // The server says that it has taken a commit, and keeps it from everybody.
    let lost = page.make_folder(ROOT, "lost").unwrap();
    page.propose(lost, NOW).unwrap().unwrap();
    assert_eq!(page.settle(lost).err().unwrap().code, "not_kept");
    // A cleanup comes between the look at what is there and the commit.
    let deed = scene.begin_put(&mut page, "copy", b"content");
    let fence = encode_message(&Fence { condemned: Vec::new(), dropped: Vec::new() });
    let change = Change { node: NodeId::FENCE, base: 0, action: Action::Put(fence) };
    scene.device_changes(80, vec![change]);
    scene.catch_up(&mut page).unwrap();
    assert_eq!(scene.act(&mut page, deed).err().unwrap().code, "fenced");
    assert_eq!(page.list(ROOT).unwrap().len(), 1);
    scene.put(&mut page, "copy", b"content");
    // The log goes on in a way that cannot be: nothing is written behind it, however the page asks.
    let deed = page.make_folder(ROOT, "folder").unwrap();
    let honest = scene.log.clone();
    scene.device_changes(81, Vec::new());
    scene.log.last_mut().unwrap().previous = scene.genesis.head().hash;
    assert_eq!(scene.catch_up(&mut page).err().unwrap().code, "not_next");
    assert_eq!(page.propose(deed, NOW).err().unwrap().code, "not_next");
    assert_eq!(page.make_folder(ROOT, "other").err().unwrap().code, "not_next");
    assert_eq!(page.put(ROOT, "other", None, 1.0, NOW).err().unwrap().code, "not_next");
    scene.log = honest;
    assert_eq!(scene.catch_up(&mut page).unwrap(), 0);
    assert_eq!(page.propose(deed, NOW).err().unwrap().code, "not_next", "what was wrong stays so");
}

#[test]
fn commits_of_a_key_that_nobody_vouches_for_are_told_as_such() {
    let mut scene = Scene::new();
    let mut page = scene.page(1);
    let deed = page.make_folder(ROOT, "folder").unwrap();
    let message = page.propose(deed, NOW).unwrap().unwrap();
    let mut commit: Commit = decode_message(&message).unwrap();
    commit.seal.as_mut().unwrap().certificate[0] ^= 1;
    scene.append(commit);
    scene.catch_up(&mut page).unwrap();
    assert_eq!(page.settle(deed).err().unwrap().code, "void");
    assert!(page.list(ROOT).unwrap().is_empty());
}
