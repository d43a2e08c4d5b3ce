mod cleanups;
mod sketches;

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

use self::sketches::seen_of;
use super::*;
use crate::seeded::Seeded;

pub(crate) const ROOT: &str = "00000000000000000000000000000000";
const PAGE: &str = "0000000000000000000000000000000a";
pub(crate) const NOW: f64 = 1_700_000_000_123.0;

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

    pub(crate) fn frame(&self, since: f64) -> Vec<u8> {
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

    /// Proposes what becomes an entry of the log that the page has not read yet.
    pub(crate) fn send(&mut self, page: &mut SealedWorkspace, deed: u32) {
        let message = page.propose(deed, NOW).unwrap().unwrap();
        self.append(decode_message(&message).unwrap());
    }

    /// Reads and packs a file as the page does; returns the deed.
    pub(crate) fn begin_put(
        &mut self,
        page: &mut SealedWorkspace,
        name: &str,
        bytes: &[u8],
    ) -> u32 {
        self.resume_put(page, name, bytes, None)
    }

    /// The same, with what was stored of it before: a mark, packs, and their lengths.
    fn resume_put(
        &mut self,
        page: &mut SealedWorkspace,
        name: &str,
        bytes: &[u8],
        stored: Option<(&str, Vec<String>, &[f64])>,
    ) -> u32 {
        let nodes = page.list(ROOT).unwrap();
        let over = nodes.iter().find(|node| node.name == name).map(seen_of);
        let deed = page.put(ROOT, name, over, true, bytes.len() as f64, NOW).unwrap();
        self.pack(page, deed, bytes, stored);
        deed
    }

    /// Gives a file to a put that has begun.
    pub(crate) fn pack(
        &mut self,
        page: &mut SealedWorkspace,
        deed: u32,
        bytes: &[u8],
        stored: Option<(&str, Vec<String>, &[f64])>,
    ) {
        if let Some((mark, packs, lengths)) = stored {
            page.resume(deed, mark, packs, lengths).unwrap();
        }
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

    fn read(&self, replay: &mut Replay, content: &Content) -> Vec<u8> {
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

/// The packs that the commit of a put names.
fn named_packs(page: &SealedWorkspace, deed: u32) -> Vec<String> {
    let What::Put { file, .. } = &page.deed(deed).unwrap().what else { panic!("it is a put") };
    let File::Written { written, .. } = &**file else { panic!("it is all in packs") };
    written.packs.iter().map(|pack| pack.id.to_string()).collect()
}

fn noise(length: usize) -> Vec<u8> {
    noise_of(9, length)
}

fn noise_of(seed: u8, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    Seeded::new("noise", &[seed; 32]).unwrap().fill(&mut bytes);
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
        kind: NodeKind::File(Content::default()),
        conflict: None,
    };
    let theirs = Change {
        node: node.parse().unwrap(),
        base: 1,
        action: Action::Put(encode_message(&record)),
    };
    scene.device_changes(70, vec![theirs]);
    scene.append(decode_message(&message).unwrap());
    let named = scene.head();
    scene.device_changes(71, Vec::new());
    scene.catch_up(&mut page).unwrap();
    assert!(!page.settle(deed).unwrap().is_over);
    let done = scene.act(&mut page, deed).unwrap();
    let commit = &scene.log.last().unwrap().commit;
    assert!(commit.packs.is_empty() && commit.inline_packs.is_empty(), "they are named already");
    assert_eq!(commit.seen, named, "without that entry it would rest on nothing");
    assert!(done.is_beside && done.is_over);
    let expected = [
        ("plan (conflict page).txt".to_owned(), Some(b"of the page".to_vec())),
        ("plan.txt".to_owned(), Some(Vec::new())),
    ];
    assert_eq!(scene.seen_by_device(), expected);
    assert!(page.list(ROOT).unwrap()[0].is_conflict);
}

#[test]
fn names_places_and_versions_are_changed_and_a_deletion_is_taken_back() {
    let mut scene = Scene::new();
    let mut page = scene.page(1);
    let folder = page.make_folder(ROOT, "old").unwrap();
    let folder = scene.act(&mut page, folder).unwrap().node.unwrap();
    scene.put(&mut page, "file", b"content");
    let file = page.list(ROOT).unwrap()[0].id.clone();
    let moved = page.move_all(vec![file.clone()], &[1.0], vec!["moved".into()], &folder).unwrap();
    scene.act(&mut page, moved).unwrap();
    let renamed = page.move_all(vec![folder.clone()], &[1.0], vec!["new".into()], ROOT).unwrap();
    scene.act(&mut page, renamed).unwrap();
    let code = |deed: Result<u32, Failure>| deed.err().unwrap().code;
    assert_eq!(code(page.make_folder(ROOT, "new")), "taken");
    assert_eq!(code(page.make_folder(ROOT, ".syncline")), "name");
    assert_eq!(code(page.make_folder(&file, "x")), "no_such");
    let mut put =
        |name: &str, over: Option<String>| code(page.put(&folder, name, over, true, 1.0, NOW));
    assert_eq!(put("moved", None), "taken");
    assert_eq!(put("moved", Some(format!("{file}.1"))), "changed");
    assert_eq!(put("moved", Some(format!("{folder}.2"))), "changed");
    assert_eq!(put("other", Some(format!("{file}.2"))), "changed");
    for wrong in ["", "2", "x.2", &format!("{file}."), &format!("{file}.-2")] {
        assert_eq!(put("moved", Some(wrong.to_owned())), "no_such", "{wrong}");
    }
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
fn nodes_are_moved_together_as_they_were_seen_and_moved_back() {
    let mut scene = Scene::new();
    let mut page = scene.page(1);
    let made = page.make_folder(ROOT, "folder").unwrap();
    let folder = scene.act(&mut page, made).unwrap().node.unwrap();
    scene.put(&mut page, "a", b"one");
    scene.put(&mut page, "b", b"two");
    let ids = |page: &SealedWorkspace, within: &str| {
        let nodes = page.list(within).unwrap().into_iter();
        nodes.filter(|node| node.kind == "file").map(|node| node.id).collect::<Vec<_>>()
    };
    let files = ids(&page, ROOT);
    let names = |names: [&str; 2]| names.map(str::to_owned).to_vec();
    let code = |deed: Result<u32, Failure>| deed.err().unwrap().code;
    let twice = page.move_all(files.clone(), &[1.0, 1.0], names(["x", "x"]), &folder);
    assert_eq!(code(twice), "taken");
    let older = page.move_all(files.clone(), &[1.0, 2.0], names(["a", "b"]), &folder);
    assert_eq!(code(older), "changed");
    let short = page.move_all(files.clone(), &[1.0], names(["a", "b"]), &folder);
    assert_eq!(code(short), "no_such", "none of them is left out silently");
    let itself = page.move_all(vec![folder.clone()], &[1.0], vec!["x".to_owned()], &folder);
    assert_eq!(code(itself), "into_itself");
    let before = scene.log.len();
    let moved = page.move_all(files.clone(), &[1.0, 1.0], names(["a", "b"]), &folder).unwrap();
    let done = scene.act(&mut page, moved).unwrap();
    assert!(done.is_over && !done.is_partial);
    assert_eq!(scene.log.len(), before + 1, "it is one commit");
    assert_eq!(scene.seen_by_device(), [("folder".to_owned(), None)]);
    assert_eq!(ids(&page, &folder), files);
    let back = page.restore(moved).unwrap();
    scene.act(&mut page, back).unwrap();
    let expected = [
        ("a".to_owned(), Some(b"one".to_vec())),
        ("b".to_owned(), Some(b"two".to_vec())),
        ("folder".to_owned(), None),
    ];
    assert_eq!(scene.seen_by_device(), expected);
    assert_eq!(code(page.restore(moved)), "changed", "it is taken back once");
}

#[test]
fn nodes_are_copied_in_one_commit_without_their_content_and_taken_back_but_not_behind_a_cleanup() {
    let mut scene = Scene::new();
    let mut page = scene.page(1);
    let made = page.make_folder(ROOT, "folder").unwrap();
    let folder = scene.act(&mut page, made).unwrap().node.unwrap();
    scene.put(&mut page, "a", b"one");
    let file = page.list(ROOT).unwrap().into_iter().find(|node| node.kind == "file").unwrap().id;
    let code = |deed: Result<u32, Failure>| deed.err().unwrap().code;
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    assert_eq!(code(page.copy_all(vec![file.clone()], names(&["a"]), ROOT)), "taken");
    assert_eq!(code(page.copy_all(vec![folder.clone()], names(&["x"]), &folder)), "into_itself");
    assert_eq!(code(page.copy_all(vec![file.clone()], Vec::new(), &folder)), "no_such");
    let (before, stored) = (scene.log.len(), scene.stored.len());
    let both = vec![file.clone(), folder.clone()];
    let copied = page.copy_all(both, names(&["b", "other"]), ROOT).unwrap();
    let done = scene.act(&mut page, copied).unwrap();
    assert!(done.is_over && !done.is_partial);
    assert_eq!((scene.log.len(), scene.stored.len()), (before + 1, stored));
    let of = |name: &str, bytes: Option<&[u8]>| (name.to_owned(), bytes.map(<[u8]>::to_vec));
    let (a, b) = (of("a", Some(b"one")), of("b", Some(b"one")));
    let all = [a.clone(), b, of("folder", None), of("other", None)];
    assert_eq!(scene.seen_by_device(), all);
    let back = page.restore(copied).unwrap();
    scene.act(&mut page, back).unwrap();
    assert_eq!(scene.seen_by_device(), [a, of("folder", None)]);
    assert_eq!(code(page.restore(copied)), "changed", "it is taken back once");

    let late = page.copy_all(vec![file], names(&["c"]), &folder).unwrap();
    let fence = encode_message(&Fence { condemned: Vec::new(), dropped: Vec::new() });
    let change = Change { node: NodeId::FENCE, base: 0, action: Action::Put(fence) };
    scene.device_changes(80, vec![change]);
    scene.catch_up(&mut page).unwrap();
    assert_eq!(scene.act(&mut page, late).err().unwrap().code, "fenced");
}

#[test]
fn of_a_move_what_others_change_at_the_same_moment_is_let_be_and_told() {
    let mut scene = Scene::new();
    let mut page = scene.page(1);
    let made = page.make_folder(ROOT, "folder").unwrap();
    let folder = scene.act(&mut page, made).unwrap().node.unwrap();
    scene.put(&mut page, "a", b"one");
    scene.put(&mut page, "b", b"two");
    let nodes = page.list(ROOT).unwrap();
    let files: Vec<_> = nodes.iter().filter(|node| node.kind == "file").collect();
    let ids = files.iter().map(|node| node.id.clone()).collect();
    let names = files.iter().map(|node| node.name.clone()).collect();
    let moved = page.move_all(ids, &[1.0, 1.0], names, &folder).unwrap();
    let message = page.propose(moved, NOW).unwrap().unwrap();
    // The device was faster.
    let deletion = Change { node: node_of(&files[0].id).unwrap(), base: 1, action: Action::Delete };
    scene.device_changes(70, vec![deletion]);
    scene.append(decode_message(&message).unwrap());
    scene.catch_up(&mut page).unwrap();
    let done = page.settle(moved).unwrap();
    assert!(done.is_over && done.is_partial);
    assert_eq!(page.list(&folder).unwrap().len(), 1);
    let back = page.restore(moved).unwrap();
    scene.act(&mut page, back).unwrap();
    let expected = [("b".to_owned(), Some(b"two".to_vec())), ("folder".to_owned(), None)];
    assert_eq!(scene.seen_by_device(), expected, "what was deleted stays so");
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
    // The log goes on in a way that cannot be: nothing is written behind it, however the page asks.
    let deed = page.make_folder(ROOT, "folder").unwrap();
    let honest = scene.log.clone();
    scene.device_changes(81, Vec::new());
    scene.log.last_mut().unwrap().previous = scene.genesis.head().hash;
    assert_eq!(scene.catch_up(&mut page).err().unwrap().code, "not_next");
    assert_eq!(page.propose(deed, NOW).err().unwrap().code, "not_next");
    assert_eq!(page.make_folder(ROOT, "other").err().unwrap().code, "not_next");
    assert_eq!(page.put(ROOT, "other", None, true, 1.0, NOW).err().unwrap().code, "not_next");
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

#[test]
fn what_a_device_has_deleted_is_listed_with_who_and_when_and_comes_back_byte_for_byte() {
    let mut scene = Scene::new();
    let mut page = scene.page(1);
    scene.put(&mut page, "file", b"content");
    let file = page.list(ROOT).unwrap()[0].id.clone();
    let deletion = Change { node: node_of(&file).unwrap(), base: 1, action: Action::Delete };
    scene.device_changes(70, vec![deletion]);
    scene.catch_up(&mut page).unwrap();
    assert_eq!(scene.seen_by_device(), []);
    // Another page, which has only read the log, sees the same.
    let mut other = scene.page(2);
    let told = model::testing::commit(70, Vec::new());
    for page in [&page, &other] {
        let deleted = page.deleted();
        assert_eq!(deleted.len(), 1);
        let [found] = &deleted[..] else { unreachable!("it is one") };
        assert_eq!((found.node.id.as_str(), found.node.name.as_str()), (file.as_str(), "file"));
        assert_eq!((found.node.size, found.node.version, found.seq), (Some(7.0), 2.0, 2.0));
        assert_eq!(found.device, DeviceId::from_bytes([1; 16]).to_string());
        assert_eq!(
            (&found.device_name, found.time_ms),
            (&told.device_name, told.time.seconds as f64 * 1e3)
        );
        assert!(found.folders.is_empty() && !found.is_in_deleted && !found.is_dropped);
    }
    let back = other.bring_back(vec![file.clone()]).unwrap();
    let done = scene.act(&mut other, back).unwrap();
    assert!(done.is_over && !done.is_partial);
    assert_eq!(scene.seen_by_device(), [("file".to_owned(), Some(b"content".to_vec()))]);
    assert!(other.deleted().is_empty());
    let code = |deed: Result<u32, Failure>| deed.err().unwrap().code;
    assert_eq!(code(other.bring_back(vec![file.clone()])), "no_such");
    assert_eq!(code(other.bring_back(vec!["x".to_owned()])), "no_such");
    // A cleanup removes the content of what is deleted again.
    let removed = other.remove(vec![file.clone()], &[3.0]).unwrap();
    scene.act(&mut other, removed).unwrap();
    let dropped =
        model::fence::DroppedVersions { node: node_of(&file).unwrap(), versions: vec![1, 3] };
    let fence = encode_message(&Fence { condemned: Vec::new(), dropped: vec![dropped] });
    let change = Change { node: NodeId::FENCE, base: 0, action: Action::Put(fence) };
    scene.device_changes(80, vec![change]);
    scene.catch_up(&mut other).unwrap();
    assert!(other.deleted()[0].is_dropped);
    assert_eq!(code(other.bring_back(vec![file])), "dropped");
}

#[test]
fn versions_are_told_read_and_made_the_newest_from_entries_that_are_fetched_again() {
    let mut scene = Scene::new();
    let mut page = scene.page(1);
    for bytes in [&b"first"[..], b"second", b"the third"] {
        scene.put(&mut page, "file", bytes);
    }
    let file = page.list(ROOT).unwrap()[0].id.clone();
    let mut other = scene.page(2);
    assert_eq!(other.version_entries(&file, None, 2).unwrap(), [3.0, 2.0]);
    assert_eq!(other.version_entries(&file, Some(2.0), 2).unwrap(), [1.0]);
    assert_eq!(other.version_entries(PAGE, None, 2).err().unwrap().code, "no_such");
    let frame = |seq: f64| scene.frame(seq - 1.0);
    let first = other.version(&file, 1.0, &frame(1.0)).unwrap();
    assert_eq!((first.version, first.seq, first.size), (1.0, 1.0, Some(5.0)));
    assert_eq!((first.device.as_str(), first.device_name.as_str()), (PAGE, "page"));
    assert_eq!((first.time_ms, first.is_deleted, first.is_dropped), (NOW, false, false));
    let reading = other.begin_version(&file, 2.0, &frame(2.0)).unwrap();
    assert_eq!(other.wanted(reading).unwrap().len(), 0, "small packs are here from the log");
    assert_eq!(other.read(reading).unwrap(), b"second");
    // A server that gives another entry, or one of another file, is found out.
    let mut forged = scene.log[0].clone();
    forged.commit.op_id = OpId::from_bytes([9; 16]);
    let forged = ServerFrame::Reply { number: 0, reply: Reply::Entries(vec![forged]) };
    let code = |deed: Result<u32, Failure>| deed.err().unwrap().code;
    assert_eq!(code(other.revert(&file, 1.0, &encode_message(&forged))), "tampered");
    assert_eq!(code(other.begin_version(&file, 2.0, &frame(1.0))), "tampered", "it is older");
    assert_eq!(code(other.begin_version(PAGE, 1.0, &frame(1.0))), "no_such");
    let none = ServerFrame::Reply { number: 0, reply: Reply::Entries(Vec::new()) };
    assert_eq!(code(other.begin_version(&file, 1.0, &encode_message(&none))), "missing");
    let back = other.revert(&file, 1.0, &frame(1.0)).unwrap();
    let done = scene.act(&mut other, back).unwrap();
    assert_eq!((done.is_over, done.node.as_ref()), (true, Some(&file)));
    assert_eq!(scene.seen_by_device(), [("file".to_owned(), Some(b"first".to_vec()))]);
    assert_eq!(other.version_entries(&file, None, 9).unwrap(), [4.0, 3.0, 2.0, 1.0]);
}

#[test]
fn a_version_comes_back_over_what_others_have_changed_meanwhile_and_not_behind_a_cleanup() {
    let mut scene = Scene::new();
    let mut page = scene.page(1);
    scene.put(&mut page, "file", b"first");
    scene.put(&mut page, "file", b"second");
    let file = page.list(ROOT).unwrap()[0].id.clone();
    let back = page.revert(&file, 1.0, &scene.frame(0.0)).unwrap();
    let message = page.propose(back, NOW).unwrap().unwrap();
    // Another page was faster, and its version stays one of the versions.
    let mut other = scene.page(2);
    scene.put(&mut other, "file", b"third");
    scene.append(decode_message(&message).unwrap());
    scene.catch_up(&mut page).unwrap();
    assert!(!page.settle(back).unwrap().is_over);
    assert!(scene.act(&mut page, back).unwrap().is_over);
    assert_eq!(scene.seen_by_device(), [("file".to_owned(), Some(b"first".to_vec()))]);
    let entries = page.version_entries(&file, None, 9).unwrap();
    assert_eq!(entries, [5.0, 3.0, 2.0, 1.0], "the entry that lost has brought nothing");
    // A cleanup comes in between, and removes another version.
    let back = page.revert(&file, 3.0, &scene.frame(2.0)).unwrap();
    let node = node_of(&file).unwrap();
    let dropped = model::fence::DroppedVersions { node, versions: vec![2] };
    let fence = encode_message(&Fence { condemned: Vec::new(), dropped: vec![dropped] });
    let change = Change { node: NodeId::FENCE, base: 0, action: Action::Put(fence) };
    scene.device_changes(80, vec![change]);
    assert_eq!(scene.act(&mut page, back).err().unwrap().code, "fenced");
    let code = |deed: Result<u32, Failure>| deed.err().unwrap().code;
    assert!(page.version(&file, 2.0, &scene.frame(1.0)).unwrap().is_dropped);
    assert_eq!(code(page.revert(&file, 2.0, &scene.frame(1.0))), "dropped");
    assert_eq!(code(page.begin_version(&file, 2.0, &scene.frame(1.0))), "dropped");
    let back = page.revert(&file, 3.0, &scene.frame(2.0)).unwrap();
    assert!(scene.act(&mut page, back).unwrap().is_over);
    assert_eq!(scene.seen_by_device(), [("file".to_owned(), Some(b"third".to_vec()))]);
}

#[test]
fn packs_of_a_page_that_went_away_are_named_by_the_next_one_until_a_cleanup_comes() {
    let mut scene = Scene::new();
    let mut page = scene.page(1);
    let large = noise(6 << 20);
    let mark = page.packs_mark();
    let deed = scene.begin_put(&mut page, "large.bin", &large);
    let stored = named_packs(&page, deed);
    assert!(stored.len() > 1);
    drop(page);
    let sent = scene.wire.len();
    let lengths: Vec<_> =
        stored.iter().map(|id| scene.stored[&id.parse().unwrap()].len() as f64).collect();
    let mut next = scene.page(2);
    let resume = (mark.as_str(), stored.clone(), lengths.as_slice());
    let deed = scene.resume_put(&mut next, "large.bin", &large, Some(resume));
    assert_eq!(scene.wire.len(), sent, "nothing is sent again");
    let mut named = named_packs(&next, deed);
    named.sort_unstable();
    let mut expected = stored.clone();
    expected.sort_unstable();
    assert_eq!(named, expected);
    assert!(scene.act(&mut next, deed).unwrap().is_over);
    assert!(scene.seen_by_device() == [("large.bin".to_owned(), Some(large.clone()))]);
    // What was stored before a cleanup may be gone.
    let deed = scene.begin_put(&mut next, "other.bin", &noise_of(10, 6 << 20));
    let stored = named_packs(&next, deed);
    let fence = encode_message(&Fence { condemned: Vec::new(), dropped: Vec::new() });
    let change = Change { node: NodeId::FENCE, base: 0, action: Action::Put(fence) };
    scene.device_changes(80, vec![change]);
    scene.catch_up(&mut next).unwrap();
    let lengths = vec![1.0; stored.len()];
    let resume = (mark.as_str(), stored.clone(), lengths.as_slice());
    let deed = scene.resume_put(&mut next, "other.bin", &noise_of(10, 6 << 20), Some(resume));
    let named = named_packs(&next, deed);
    assert!(named.iter().all(|id| !stored.contains(id)));
}

/// Two pages have put a file at once: one of them lies beside the other.
fn scene_of_conflict() -> (Scene, SealedWorkspace) {
    let mut scene = Scene::new();
    let mut page = scene.page(1);
    scene.put(&mut page, "file", b"first");
    let mut other = scene.page(2);
    let deed = scene.begin_put(&mut other, "file", b"of the other");
    scene.put(&mut page, "file", b"second");
    scene.catch_up(&mut other).unwrap();
    assert!(scene.act(&mut other, deed).unwrap().is_beside);
    scene.catch_up(&mut page).unwrap();
    (scene, page)
}

fn only_conflict(page: &SealedWorkspace) -> SealedConflict {
    let mut found = page.conflicts(None, 9);
    assert_eq!((found.count(), found.next()), (1.0, None));
    found.list().remove(0)
}

#[test]
fn a_conflict_is_told_with_both_sides_and_its_decision_is_taken_back() {
    // A copy goes once what it has stands elsewhere.
    for (keep, commits, left) in [
        ("original", 1, vec![("file", "second")]),
        ("copy", 2, vec![("file", "of the other")]),
        ("both", 1, vec![("file", "second"), ("named", "of the other")]),
    ] {
        let (mut scene, mut page) = scene_of_conflict();
        let before = scene.seen_by_device();
        let found = only_conflict(&page);
        let original = found.original.clone().unwrap();
        assert_eq!((original.name.as_str(), original.version, found.base), ("file", 2.0, 1.0));
        assert_eq!((found.copy.size, found.seq, &*found.device_name), (Some(12.0), 3.0, "page"));
        let (copy, entries) = (&found.copy, scene.log.len());
        let name = (keep == "both").then(|| "named".to_owned());
        let seen = Some(original.version);
        let deed = page.decide(&copy.id, copy.version, seen, keep, name).unwrap();
        let mut done = scene.act(&mut page, deed).unwrap();
        while !done.is_over {
            done = scene.act(&mut page, deed).unwrap();
        }
        assert!(!done.is_partial);
        assert_eq!(scene.log.len(), entries + commits);
        let left: Vec<_> = left
            .into_iter()
            .map(|(name, text)| (name.to_owned(), Some(text.as_bytes().to_vec())))
            .collect();
        assert_eq!(scene.seen_by_device(), left);
        assert_eq!(page.conflicts(None, 9).count(), 0.0);
        let back = page.restore(deed).unwrap();
        while !scene.act(&mut page, back).unwrap().is_over {}
        assert_eq!(scene.seen_by_device(), before);
        assert_eq!(only_conflict(&page).original.unwrap().id, original.id);
        assert_eq!(page.restore(deed).err().unwrap().code, "changed");
    }
}

#[test]
fn a_decision_of_which_somebody_was_faster_with_a_side_is_lost_and_both_are_there() {
    let (mut scene, mut page) = scene_of_conflict();
    let found = only_conflict(&page);
    let original = found.original.unwrap();
    let deed = page.decide(&found.copy.id, 1.0, Some(2.0), "copy", None).unwrap();
    let id = node_of(&original.id).unwrap();
    let record = page.replay.tree().get(&id).unwrap().record.clone();
    let newer = NodeRecord { mode: 0o600, ..record };
    let change = Change { node: id, base: 2, action: Action::Put(encode_message(&newer)) };
    scene.device_changes(70, vec![change]);
    // The page has not heard of it when it proposes.
    assert_eq!(scene.act(&mut page, deed).err().unwrap().code, "changed");
    let names: Vec<_> = scene.seen_by_device().into_iter().map(|(_, bytes)| bytes).collect();
    let texts = [Some(b"second".to_vec()), Some(b"of the other".to_vec())];
    assert_eq!(names, texts);
    let found = only_conflict(&page);
    assert_eq!((found.copy.version, found.original.unwrap().version), (1.0, 3.0), "not touched");
    let code = page.decide(&found.copy.id, 1.0, Some(2.0), "copy", None).err().unwrap().code;
    assert_eq!(code, "changed");
}

#[test]
fn the_copy_stays_where_the_original_that_was_to_be_kept_is_gone_by_then() {
    let (mut scene, mut page) = scene_of_conflict();
    let found = only_conflict(&page);
    let id = node_of(&found.original.unwrap().id).unwrap();
    let deed = page.decide(&found.copy.id, 1.0, Some(2.0), "original", None).unwrap();
    scene.device_changes(70, vec![Change { node: id, base: 2, action: Action::Delete }]);
    let code = loop {
        match scene.act(&mut page, deed) {
            Ok(done) => assert!(!done.is_over),
            Err(error) => break error.code,
        }
    };
    assert_eq!(code, "changed");
    let left: Vec<_> = scene.seen_by_device().into_iter().map(|(_, bytes)| bytes).collect();
    assert_eq!(left, [Some(b"of the other".to_vec())]);
    assert!(only_conflict(&page).original.is_none());
}

#[test]
fn what_happened_is_told_from_entries_that_are_fetched_again_and_from_no_others() {
    let (mut scene, mut page) = scene_of_conflict();
    let file = page.list(ROOT).unwrap().into_iter().find(|node| node.name == "file").unwrap();
    let renamed =
        page.move_all(vec![file.id.clone()], &[2.0], vec!["renamed".into()], ROOT).unwrap();
    scene.act(&mut page, renamed).unwrap();
    let removed = page.remove(vec![file.id.clone()], &[3.0]).unwrap();
    scene.act(&mut page, removed).unwrap();
    let mut told = page.activity(&scene.frame(0.0), 0.0, 6.0).unwrap();
    assert_eq!(told.last(), Some(5.0));
    let told = told.list();
    let words: Vec<_> = told.iter().map(|one| one.changes[0].happened.as_str()).collect();
    assert_eq!(words, ["made", "changed", "kept_beside", "renamed", "deleted"]);
    let renaming = &told[3].changes[0];
    assert_eq!((renaming.node.name.as_str(), renaming.old_seq), ("renamed", Some(2.0)));
    assert_eq!(renaming.name_now, None, "it is gone");
    assert_eq!(told[2].changes[0].name_now.as_deref(), Some("file (conflict page)"));
    assert_eq!(page.version(&file.id, 2.0, &scene.frame(1.0)).unwrap().name.unwrap(), "file");
    let mut older = page.activity(&scene.frame(1.0), 1.0, 4.0).unwrap();
    assert_eq!((older.list().len(), older.last()), (2, Some(3.0)));
    assert_eq!(page.activity(&scene.frame(5.0), 5.0, 6.0).unwrap().last(), None);
    let place = page.find(&told[2].changes[0].node.id).unwrap();
    assert_eq!((place.node.name.as_str(), place.folders.len()), ("file (conflict page)", 0));
    assert_eq!(page.find(&file.id).err().unwrap().code, "no_such");
    let forged = Entry { seq: 2, ..scene.log[2].clone() };
    let reply = Reply::Entries(vec![forged]);
    let frame = encode_message(&ServerFrame::Reply { number: 0, reply });
    assert_eq!(page.activity(&frame, 1.0, 6.0).err().unwrap().code, "tampered");
    // An entry that is left out is missed.
    assert_eq!(page.activity(&scene.frame(2.0), 1.0, 6.0).err().unwrap().code, "tampered");
}
