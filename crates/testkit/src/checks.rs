//! What must be true when everything has come to rest; the numbers are those of `docs/design/sync.md`, "Invariants".

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use content::WorkspaceKeys;
use content::pack::{RecordEntry, verify_whole};
use content::transform::TransformTag;
use model::codec::{Message, decode_message, encode_message};
use model::fold::{FoldNote, Folded, fold};
use model::{
    Entry, NodeId, NodeKind, NodeRecord, Opener, Outcome, PackId, RelativePath, Timestamp, Tree,
};
use storage::{ContentStore, ObjectKey};
use sync::SyncError;
use sync::chunk_reader::{ChunkFetcher, pack_id};
use sync::file_system::FileKind;

use crate::chronicle::ContentHash;
use crate::coverage::Fault;
use crate::device::{Device, Ended};
use crate::file_system::disk::Disk;
use crate::world::World;

mod page;
mod pages;

use page::Page;
pub use pages::check_pages;
pub(crate) use pages::last_pages;

/// How many bytes of entries are read at once: all.
const ALL: u64 = u64::MAX;

/// A shorter name stands by chance in what is sealed.
const SECRET_LENGTH_MIN: usize = 5;

/// What a file is, as everybody must see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    kind: FileKind,
    mode: u32,
    modified: Timestamp,
    content: Option<ContentHash>,
}

/// Returns what is in a folder.
pub fn tree_of(disk: &Disk) -> BTreeMap<RelativePath, Facts> {
    let facts = |key| {
        let file = disk.file(key);
        let kind = file.kind();
        // The times of directories are not kept.
        let modified =
            if kind == FileKind::Directory { Timestamp::default() } else { file.modified };
        Facts { kind, mode: file.mode, modified, content: ContentHash::of(&file.matter) }
    };
    disk.walk().into_iter().map(|(path, key)| (path, facts(key))).collect()
}

/// Checks everything that can be seen after a phase.
pub async fn check(world: Rc<World>) {
    let trees: Vec<_> =
        world.users_devices().iter().map(|device| tree_of(&device.folder.disk())).collect();
    for (number, tree) in trees.iter().enumerate().skip(1) {
        if let Some(difference) = difference(&trees[0], tree) {
            world.violation(format!("I-03: device 0 and device {number} differ: {difference}"));
        }
    }
    check_contents(&world, &trees[0]);
    check_names(&world, &trees[0]);
    let log = world.auditor().log();
    match log.entries(0, ALL).await {
        Ok(entries) => check_log(&world, &entries),
        Err(error) => world.violation(format!("the log cannot be read: {error}")),
    }
    for text in world.common.acknowledged.violations() {
        world.violation(text);
    }
}

/// Says where two trees differ first.
fn difference(
    one: &BTreeMap<RelativePath, Facts>,
    other: &BTreeMap<RelativePath, Facts>,
) -> Option<String> {
    let paths: BTreeSet<_> = one.keys().chain(other.keys()).collect();
    let path = paths.into_iter().find(|path| one.get(path) != other.get(path))?;
    Some(format!("{path}: {:?} and {:?}", one.get(path), other.get(path)))
}

/// I-02, I-07, I-09: what users wrote is there, what they deleted is not, and nothing else ever was.
fn check_contents(world: &World, tree: &BTreeMap<RelativePath, Facts>) {
    let there: BTreeSet<_> = tree.values().filter_map(|facts| facts.content).collect();
    for (content, required) in world.chronicle.required() {
        if !there.contains(&content) {
            let (path, device) = (required.path, required.device);
            world.violation(format!(
                "I-02: what device {device} wrote to {path} is lost ({content:?})"
            ));
        }
    }
    for (device, path) in world.chronicle.strangers() {
        world.violation(format!(
            "I-07: device {device} was shown {path} with bytes that nobody wrote"
        ));
    }
    if world.excuses.memory.get() {
        return;
    }
    for content in world.chronicle.deleted() {
        if there.contains(&content) {
            let paths: Vec<_> =
                tree.iter().filter(|(_, facts)| facts.content == Some(content)).collect();
            let paths: Vec<_> = paths.into_iter().map(|(path, _)| path.to_string()).collect();
            world.violation(format!(
                "I-09: {paths:?} is back although it was deleted ({content:?})"
            ));
        }
    }
}

/// I-15, and no conflict without two who worked at the same time.
fn check_names(world: &World, tree: &BTreeMap<RelativePath, Facts>) {
    const WORD: &[u8] = b" (conflict ";
    for path in tree.keys() {
        let Some((_, name)) = path.split_last() else { continue };
        let copied = find(name.as_bytes(), WORD);
        let wanted = &name.as_bytes()[..copied.unwrap_or(name.as_bytes().len())];
        // A user may have made a file of that name, out of one that was parked for a moment.
        if wanted.starts_with(b".syncline-parked")
            && !world.chronicle.was_touched(wanted)
            && !world.excuses.memory.get()
        {
            world.violation(format!("{path} was parked and left"));
        }
        let Some(start) = copied else { continue };
        if find(&name.as_bytes()[start + 1..], WORD).is_some() {
            world.violation(format!("I-15: {path} has a nested conflict name"));
        }
        // Where two directories became one, what lies in them may clash, too.
        let is_contended = |name: &model::Name| {
            let stem = name.as_bytes();
            world.chronicle.is_contended(&stem[..find(stem, WORD).unwrap_or(stem.len())])
        };
        if !world.excuses.memory.get() && !path.names().any(|name| is_contended(&name)) {
            world.violation(format!("{path} is a conflict although nobody else touched it"));
        }
    }
}

/// Returns where a word begins first.
fn find(bytes: &[u8], word: &[u8]) -> Option<usize> {
    bytes.windows(word.len()).position(|window| window == word)
}

/// Tells whether a pack has records that went through this.
fn has(transform: TransformTag, pack: &[u8], keys: &WorkspaceKeys) -> bool {
    let index = verify_whole(pack_id(pack), pack, &keys.packs());
    let is_it = |record: &RecordEntry| record.transform() == transform;
    index.is_ok_and(|index| index.records().iter().any(is_it))
}

/// I-21, I-22, I-14: the log is a chain, has what was acknowledged, once, and folds into a tree.
fn check_log(world: &World, entries: &[Entry]) {
    let mut head = world.common.genesis.head();
    let mut operations = BTreeSet::new();
    let mut tree = Tree::default();
    let mut removed = Removed::default();
    let keys = world.common.keys();
    for entry in entries {
        if !entry.follows(&head) {
            world.violation(format!("I-22: entry {} does not follow the one before", entry.seq));
            return;
        }
        head = entry.head();
        if !operations.insert((entry.commit.device, entry.commit.op_id)) {
            world.violation(format!("I-21: the commit of entry {} is there twice", entry.seq));
        }
        let before = if entry.is_of_cleanup() { tree.clone() } else { Tree::default() };
        let Ok(folded) = fold(&mut tree, entry, &keys);
        if let Some(reason) = &folded.void {
            world.violation(format!("I-52: entry {} counts for nothing: {reason}", entry.seq));
        }
        cover(world, &folded.notes, &folded.outcomes);
        check_fence(world, entry, (&before, &tree), &folded, &mut removed);
        if !entry.commit.packs.is_empty() {
            world.common.coverage.hit(Fault::PackStored);
        }
        if entry.commit.has_deltas {
            world.common.coverage.hit(Fault::DeltaStored);
            // A cleanup has copied their records; only repairs change nothing, too.
            if entry.commit.changes.is_empty() {
                world.common.coverage.hit(Fault::DeltaCopied);
            }
        }
        let stored = [
            (TransformTag::Deflate, Fault::DocumentStored),
            (TransformTag::Jpeg, Fault::PictureStored),
        ];
        for (transform, fault) in stored {
            if entry.commit.inline_packs.iter().any(|pack| has(transform, pack, &keys)) {
                world.common.coverage.hit(fault);
            }
        }
    }
    for (operation, head) in world.common.acknowledged.commits() {
        let found = head.seq.checked_sub(1).and_then(|index| entries.get(index as usize));
        if !found.is_some_and(|entry| entry.commit.op_id == operation && entry.head() == head) {
            world.violation(format!(
                "I-01: entry {} was acknowledged and is not in the log",
                head.seq
            ));
        }
    }
    for (id, node) in tree.nodes().filter(|(_, node)| node.is_alive()) {
        let mut above = node.record.parent;
        let mut steps = 0;
        while above != NodeId::ROOT && steps < 1000 {
            match tree.get(&above).filter(|parent| parent.is_alive() && parent.is_directory()) {
                Some(parent) => above = parent.record.parent,
                None => steps = 1000,
            }
            steps += 1;
        }
        if above != NodeId::ROOT {
            world.violation(format!("I-14: node {id} cannot be reached from the root"));
        }
    }
}

/// What fences have removed so far.
#[derive(Default)]
struct Removed {
    packs: BTreeSet<PackId>,
    versions: BTreeSet<(NodeId, u64)>,
}

/// I-25: a fence drops nothing that is there, or that a conflict stands on, and nothing rests on what it condemns.
fn check_fence(
    world: &World,
    entry: &Entry,
    (before, tree): (&Tree, &Tree),
    folded: &Folded,
    removed: &mut Removed,
) {
    if !folded.is_fenced {
        for pack in entry.commit.packs.iter().filter(|pack| removed.packs.contains(&pack.id)) {
            world.violation(format!("I-25: entry {} names {}, which is gone", entry.seq, pack.id));
        }
    }
    let is_fence = entry.commit.changes.iter().any(|change| change.node == NodeId::FENCE);
    let Some(fence) = &folded.fence else {
        if is_fence {
            world.common.coverage.hit(Fault::FenceOvertaken);
        }
        return;
    };
    removed.packs.extend(&fence.condemned);
    let conflicts: BTreeSet<(NodeId, u64)> = before
        .nodes()
        .filter(|(_, node)| node.is_alive())
        .filter_map(|(_, node)| node.record.conflict.map(|origin| (origin.node, origin.base)))
        .collect();
    for dropped in &fence.dropped {
        world.common.coverage.hit(Fault::VersionDropped);
        for version in &dropped.versions {
            let is_there = tree
                .get(&dropped.node)
                .is_some_and(|node| node.is_alive() && node.version == *version);
            if is_there || conflicts.contains(&(dropped.node, *version)) {
                world.violation(format!(
                    "I-25: entry {} drops version {version} of {}, which is needed",
                    entry.seq, dropped.node
                ));
            }
            removed.versions.insert((dropped.node, *version));
        }
    }
}

/// I-20: who was told that a commit stands had its packs stored. Of one that came behind a fence nothing counts, and its packs
/// may be gone.
pub async fn check_acknowledged_packs(world: Rc<World>) {
    let without = world.common.acknowledged.without_packs();
    if without.is_empty() {
        return;
    }
    let mut tree = Tree::default();
    let keys = world.common.keys();
    let mut fenced = BTreeSet::new();
    for entry in world.auditor().log().entries(0, ALL).await.unwrap_or_default() {
        let Ok(folded) = fold(&mut tree, &entry, &keys);
        if folded.is_fenced {
            fenced.insert(entry.commit.op_id);
        }
    }
    for (operation, seq) in without {
        if !fenced.contains(&operation) {
            world.violation(format!(
                "I-20: entry {seq} was acknowledged before its packs were durable"
            ));
        }
    }
}

/// I-26: when everything has come to rest, a cleanup comes to its end, and nothing is stored that nobody needs.
pub async fn check_cleanup(world: Rc<World>) {
    let cleaner = world.devices[0].clone();
    for _ in 0..2 {
        match cleaner.clean_up(None).await {
            Ended::Done(_) => {}
            Ended::Failed(SyncError::NotWhole(_)) if world.excuses.log.get() => return,
            Ended::Failed(error) => {
                return world
                    .violation(format!("I-26: a cleanup fails although all is well: {error}"));
            }
            Ended::Killed => return world.violation("I-26: a cleanup was killed".to_owned()),
        }
    }
    let stored = match &world.common.several {
        Some(several) => several.packs(),
        None => {
            let keys = world.common.store.snapshot().into_keys();
            keys.filter(|key| key.starts_with(ObjectKey::PACKS)).collect()
        }
    };
    let known = cleaner.with_state(|state| {
        let packs = state.pack_page(None, usize::MAX >> 1).expect("the database can be read");
        packs.into_iter().map(|pack| ObjectKey::pack(pack.id)).collect::<BTreeSet<_>>()
    });
    let known = known.unwrap_or_default();
    for key in stored {
        if !known.iter().any(|pack| pack.as_str() == key) {
            world.violation(format!("I-26: {key} is stored and nobody needs it"));
        }
    }
}

fn cover(world: &World, notes: &[FoldNote], outcomes: &[Outcome]) {
    let coverage = &world.common.coverage;
    for note in notes {
        match note {
            FoldNote::NameTaken { .. } => coverage.hit(Fault::NameTaken),
            FoldNote::Merged { .. } => coverage.hit(Fault::NodesMerged),
            FoldNote::Revived { .. } => coverage.hit(Fault::DirectoryRevived),
            FoldNote::NotEmpty { .. } => coverage.hit(Fault::DeletionVoid),
            FoldNote::MoveVoid { .. } => coverage.hit(Fault::MoveVoid),
            FoldNote::Unreadable { node, reason } => {
                world.violation(format!("a device proposed what cannot be: {node}: {reason}"));
            }
        }
    }
    if outcomes.iter().any(|outcome| matches!(outcome, Outcome::Rejected { .. })) {
        coverage.hit(Fault::Rejected);
    }
    if outcomes.iter().any(|outcome| matches!(outcome, Outcome::Fenced { .. })) {
        coverage.hit(Fault::CommitFenced);
    }
}

/// Lets a new device read everything from log and store: the tree, and every version that was ever acknowledged.
pub async fn audit(world: Rc<World>) {
    let auditor = world.auditor().clone();
    if let Ended::Failed(error) = auditor.run(None).await {
        world.violation(format!("I-01: a new device fails: {error}"));
        return;
    }
    let (theirs, own) = (tree_of(&world.devices[0].folder.disk()), tree_of(&auditor.folder.disk()));
    if let Some(difference) = difference(&theirs, &own) {
        world.violation(format!("I-03: a new device differs: {difference}"));
    }
    let entries = match auditor.log().entries(0, ALL).await {
        Ok(entries) => entries,
        Err(error) => return world.violation(format!("the log cannot be read: {error}")),
    };
    audit_versions(&world, &auditor, &entries).await;
    if world.options.sealed {
        audit_secrets(&world, &entries);
    }
}

/// I-51: whoever reads the log and the store of a sealed workspace finds no name there.
fn audit_secrets(world: &World, entries: &[Entry]) {
    let names = world.options.names.iter().map(Vec::as_slice);
    let secrets: Vec<&[u8]> = names
        .filter(|name| name.len() >= SECRET_LENGTH_MIN)
        .chain([b"device ".as_slice(), world.common.genesis.name.as_bytes()])
        .collect();
    let objects = match &world.common.several {
        Some(several) => several.snapshot(),
        None => world.common.store.snapshot(),
    };
    let entries = entries.iter().map(|entry| (entry.seq.to_string(), encode_message(entry)));
    let stored = objects.into_iter().map(|(key, bytes)| (key, bytes.to_vec())).chain(entries);
    for (place, bytes) in stored {
        for secret in &secrets {
            if bytes.windows(secret.len()).any(|window| window == *secret) {
                let name = String::from_utf8_lossy(secret);
                world.violation(format!("I-51: '{name}' can be read in {place}"));
            }
        }
    }
}

/// I-01, I-11, I-13: every version can be read, by a page, too, is something that a file once was, and nothing worthless was sent.
async fn audit_versions(world: &World, auditor: &Device, entries: &[Entry]) {
    let keys = world.common.keys();
    let store = Arc::new(ContentStore::new(auditor.store()));
    let mut fetcher = ChunkFetcher::new(store, auditor.log(), &keys, auditor.clock.clone());
    let copy = auditor.snapshot();
    let scratch = scratch_state(&copy);
    let Some(mut state) = scratch else {
        return world.violation("the auditor has no database".to_owned());
    };
    let kept = kept_versions(entries, &keys);
    let store = ContentStore::new(auditor.store());
    let mut page = match Page::open(&world.common.genesis, keys.clone(), entries, store) {
        Ok(page) => page,
        Err(error) => return world.violation(format!("a page cannot fold the log: {error}")),
    };
    for entry in entries {
        for (number, change) in entry.commit.changes.iter().enumerate() {
            if kept.as_ref().is_some_and(|kept| !kept.contains(&(entry.seq, change.node))) {
                continue;
            }
            let Ok(Some(payload)) = keys.open(&entry.commit, number) else { continue };
            let Ok(record) = decode_message::<NodeRecord>(&payload) else { continue };
            let NodeKind::File(content) = &record.kind else { continue };
            let read = async {
                fetcher.index_packs(&mut state).await?;
                let mut bytes = Vec::new();
                for chunk in fetcher.expand(&state, content).await? {
                    bytes.extend(fetcher.chunk(&state, &chunk).await?);
                }
                Ok::<_, SyncError>(bytes)
            };
            let found = match read.await {
                Ok(bytes) => ContentHash::of_file(&bytes),
                Err(error) => {
                    world.violation(format!(
                        "I-01: {} of entry {} cannot be read: {error}",
                        record.name, entry.seq
                    ));
                    continue;
                }
            };
            let read = page.read(content).await.map(|bytes| ContentHash::of_file(&bytes));
            if !matches!(read, Ok(read) if read == found) {
                let (name, seq) = (&record.name, entry.seq);
                world.violation(format!(
                    "I-01: {name} of entry {seq} is no file for a page: {read:?}"
                ));
            }
            if !world.chronicle.is_known(found) {
                world.violation(format!(
                    "I-13: {} of entry {} never was so",
                    record.name, entry.seq
                ));
            }
            for (number, protected) in world.protected.borrow().iter() {
                let is_from_there = entry.commit.device == world.devices[*number].id();
                let is_it = change.node == protected.node && found == protected.worthless;
                let is_sanctioned = world.chronicle.is_sanctioned(*number, found);
                if is_from_there && is_it && !is_sanctioned && entry.seq > protected.since {
                    world.violation(format!(
                        "I-11: entry {} has what a power cut left of {}",
                        entry.seq, record.name
                    ));
                }
            }
        }
    }
}

/// Returns which nodes got which of their kept versions from which entry; nothing where there was no cleanup, so that even what
/// was rejected can be read.
fn kept_versions(entries: &[Entry], opener: &dyn Opener) -> Option<BTreeSet<(u64, NodeId)>> {
    let mut tree = Tree::default();
    let (mut versions, mut dropped, mut has_fence) = (BTreeMap::new(), BTreeSet::new(), false);
    for entry in entries {
        let Ok(folded) = fold(&mut tree, entry, opener);
        for node in &folded.touched {
            if let Some(found) = tree.get(node) {
                versions.entry((*node, found.version)).or_insert(entry.seq);
            }
        }
        has_fence |= folded.fence.is_some();
        for node in folded.fence.iter().flat_map(|fence| &fence.dropped) {
            dropped.extend(node.versions.iter().map(|version| (node.node, *version)));
        }
    }
    has_fence.then(|| {
        let kept = versions.into_iter().filter(|(version, _)| !dropped.contains(version));
        kept.map(|((node, _), seq)| (seq, node)).collect()
    })
}

fn scratch_state(copy: &[u8]) -> Option<sync::state::State> {
    let mut connection = rusqlite::Connection::open_in_memory().ok()?;
    connection.deserialize_read_exact("main", copy, copy.len(), false).ok()?;
    sync::state::State::from_connection(connection).ok()
}
