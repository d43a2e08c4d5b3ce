//! What a scan makes of moved directories, some of them moved while it looks.

#![expect(clippy::disallowed_methods, reason = "the tests play the user")]

use std::fmt;
use std::path::PathBuf;

use model::testing::node;
use model::{EntryHash, Head, NodeKind, NodeRecord, Timestamp};
use parking_lot::Mutex;

use super::*;
use crate::file_system::native::NativeFileSystem;
use crate::file_system::{OpenFile, StageToken, StagedFile};
use crate::plan::parked_place;

/// Old and new names.
type Renames = &'static [(&'static str, &'static str)];

type Answer<T> = std::result::Result<T, FileError>;

/// A folder whose user acts right after a directory was listed.
struct Folder {
    directory: tempfile::TempDir,
    files: NativeFileSystem,
    /// The directory that is waited for, and what is renamed then.
    renames: Mutex<Option<(RelativePath, Renames)>>,
}

impl fmt::Debug for Folder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a folder")
    }
}

impl Folder {
    fn new(names: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("a folder");
        let files = NativeFileSystem::open(directory.path()).expect("opens");
        let folder = Self { directory, files, renames: Mutex::new(None) };
        for name in names {
            match name.strip_suffix('/') {
                Some(name) => std::fs::create_dir(folder.at(name)).expect("made"),
                None => std::fs::write(folder.at(name), name).expect("written"),
            }
        }
        folder
    }

    fn at(&self, path: &str) -> PathBuf {
        self.directory.path().join(path)
    }

    fn rename_after_list(&self, listed: RelativePath, renames: Renames) {
        *self.renames.lock() = Some((listed, renames));
    }

    fn row(&self, number: u8, parent: NodeId, at: &str) -> SyncedNode {
        let stat = self.files.stat(&path(at)).expect("looked at").expect("is there");
        let kind = match stat.kind {
            FileKind::Directory => NodeKind::Directory,
            _ => NodeKind::Symlink(b"stands for a file".to_vec()),
        };
        let name = path(at).split_last().expect("has a name").1;
        let modified = Timestamp::default();
        let record = NodeRecord { parent, name, mode: 0o755, modified, kind, conflict: None };
        SyncedNode { node: node(number), version: 1, record, stat: Some(stat), pending: None }
    }

    fn scan(&self, rows: &[SyncedNode], scope: &Scope) -> LocalChanges {
        self.scan_again(rows, scope, &Overlay::default())
    }

    fn scan_again(&self, rows: &[SyncedNode], scope: &Scope, known: &Overlay) -> LocalChanges {
        let mut state = State::in_memory();
        state.set_head(&Head { seq: 1, hash: EntryHash::NONE }).expect("set");
        for row in rows {
            state.set_synced(row).expect("set");
        }
        scan(self, &state, &mut IgnoreRules::default(), &Fixed, scope, known).expect("scans")
    }
}

#[derive(Debug)]
struct Fixed;

impl Random for Fixed {
    fn fill(&self, bytes: &mut [u8]) {
        bytes.fill(7);
    }
}

impl FileSystem for Folder {
    fn list(&self, directory: &RelativePath) -> Answer<Vec<DirectoryEntry>> {
        let entries = self.files.list(directory)?;
        let renames = self.renames.lock().take_if(|(listed, _)| listed == directory);
        for (from, to) in renames.map_or(&[][..], |(_, renames)| renames) {
            std::fs::rename(self.at(from), self.at(to)).expect("renamed");
        }
        Ok(entries)
    }

    fn stat(&self, path: &RelativePath) -> Answer<Option<Stat>> {
        self.files.stat(path)
    }

    fn open(&self, _: &RelativePath) -> Answer<Box<dyn OpenFile>> {
        unreachable!("a scan only looks")
    }

    fn read_link(&self, _: &RelativePath) -> Answer<Vec<u8>> {
        unreachable!("a scan only looks")
    }

    fn stage(&self, _: StageToken) -> Answer<Box<dyn StagedFile>> {
        unreachable!("a scan only looks")
    }

    fn stage_link(&self, _: StageToken, _: &[u8], _: Timestamp) -> Answer<()> {
        unreachable!("a scan only looks")
    }

    fn discard(&self, _: StageToken) -> Answer<()> {
        unreachable!("a scan only looks")
    }

    fn install(&self, _: StageToken, _: &RelativePath, _: Option<&Stat>) -> Answer<Stat> {
        unreachable!("a scan only looks")
    }

    fn replace(&self, _: StageToken, _: &RelativePath, _: &Stat, _: &str) -> Answer<Stat> {
        unreachable!("a scan only looks")
    }

    fn make_directory(&self, _: &RelativePath, _: u32) -> Answer<Stat> {
        unreachable!("a scan only looks")
    }

    fn rename(&self, _: &RelativePath, _: &RelativePath) -> Answer<Stat> {
        unreachable!("a scan only looks")
    }

    fn set_attributes(
        &self,
        _: &RelativePath,
        _: &Stat,
        _: u32,
        _: Option<Timestamp>,
    ) -> Answer<Stat> {
        unreachable!("a scan only looks")
    }

    fn trash(&self, _: &RelativePath, _: &Stat, _: &str) -> Answer<()> {
        unreachable!("a scan only looks")
    }

    fn make_durable(&self) -> Answer<()> {
        unreachable!("a scan only looks")
    }

    fn root_identity(&self) -> Answer<Option<[u8; 16]>> {
        unreachable!("a scan only looks")
    }

    fn set_root_identity(&self, _: [u8; 16]) -> Answer<()> {
        unreachable!("a scan only looks")
    }
}

fn path(text: &str) -> RelativePath {
    RelativePath::new(text.as_bytes()).expect("a valid path")
}

fn names_in(changes: &LocalChanges, parent: NodeId) -> Vec<String> {
    let inside = changes.present.values().filter(|found| found.parent == parent);
    let mut names: Vec<_> =
        inside.map(|found| String::from_utf8_lossy(found.name.as_bytes()).into_owned()).collect();
    names.sort_unstable();
    names
}

#[test]
fn what_is_new_in_a_directory_that_moves_after_it_was_listed_is_one_node() {
    let folder = Folder::new(&["old/", "old/file", "old/inner/", "old/inner/deep"]);
    // One directory was moved into the other before.
    let rows = [folder.row(1, NodeId::ROOT, "old"), folder.row(2, NodeId::ROOT, "old/inner")];
    // The deeper one is listed first.
    folder.rename_after_list(path("old"), &[("old", "new")]);
    let hinted = BTreeSet::from([RelativePath::ROOT, path("old")]);
    let changes = folder.scan(&rows, &Scope::Directories(hinted));
    assert_eq!(names_in(&changes, NodeId::ROOT), ["new"]);
    assert_eq!(names_in(&changes, node(1)), ["file", "inner"]);
    assert_eq!(names_in(&changes, node(2)), ["deep"]);
    assert_eq!(changes.present.len(), 4, "{:?}", changes.present);
    assert!(changes.absent.is_empty());
}

#[test]
fn directory_that_moves_before_its_new_ones_are_listed_is_looked_at_again() {
    let folder = Folder::new(&["old/", "old/inner/", "old/inner/deep"]);
    let rows = [folder.row(1, NodeId::ROOT, "old")];
    folder.rename_after_list(path("old/inner"), &[("old", "new")]);
    let hinted = BTreeSet::from([path("old")]);
    let changes = folder.scan(&rows, &Scope::Directories(hinted));
    assert_eq!(names_in(&changes, node(1)), ["inner"]);
    let changed = changes.problems.iter().map(|problem| (&problem.path, &problem.kind));
    assert_eq!(changed.collect::<Vec<_>>(), [(&path("old/inner"), &ProblemKind::Changing)]);
}

#[test]
fn directory_that_takes_the_name_of_another_is_not_taken_for_it() {
    let folder = Folder::new(&["at/", "at/mine", "other/", "other/foreign"]);
    let at = folder.row(1, NodeId::ROOT, "at");
    let rows = [
        folder.row(2, at.node, "at/mine"),
        folder.row(3, NodeId::ROOT, "other"),
        folder.row(4, node(3), "other/foreign"),
        at,
    ];
    folder.rename_after_list(RelativePath::ROOT, &[("at", "aside"), ("other", "at")]);
    let changes = folder.scan(&rows, &Scope::Everything);
    assert!(changes.absent.is_empty(), "{:?}", changes.absent);
    assert!(changes.present.is_empty(), "{:?}", changes.present);
    assert_eq!(changes.problems.len(), 2);
}

#[test]
fn directory_that_was_moved_out_of_a_directory_that_was_moved_into_it_is_not_absent() {
    let folder = Folder::new(&["outer/", "outer/inner/", "place/"]);
    let rows = [
        folder.row(1, NodeId::ROOT, "outer"),
        folder.row(2, node(1), "outer/inner"),
        folder.row(3, NodeId::ROOT, "place"),
    ];
    std::fs::rename(folder.at("outer/inner"), folder.at("place/inner")).expect("renamed");
    std::fs::rename(folder.at("outer"), folder.at("place/inner/outer")).expect("renamed");
    let changes = folder.scan(&rows, &Scope::Everything);
    assert_eq!(names_in(&changes, node(3)), ["inner"]);
    assert_eq!(names_in(&changes, node(2)), ["outer"]);
    assert!(changes.absent.is_empty(), "{:?}", changes.absent);
}

#[test]
fn what_an_earlier_scan_found_elsewhere_is_not_absent_where_it_was() {
    let folder = Folder::new(&["from/", "from/below/", "from/below/deep", "to/"]);
    let rows = [
        folder.row(1, NodeId::ROOT, "from"),
        folder.row(2, node(1), "from/below"),
        folder.row(3, node(2), "from/below/deep"),
        folder.row(4, NodeId::ROOT, "to"),
    ];
    std::fs::rename(folder.at("from/below"), folder.at("to/below")).expect("renamed");
    let mut known = Overlay::default();
    known.absorb(folder.scan(&rows, &Scope::Everything));
    let hinted = Scope::Directories(BTreeSet::from([path("from")]));
    let changes = folder.scan_again(&rows, &hinted, &known);
    assert!(changes.absent.is_empty(), "{:?}", changes.absent);
}

/// A run that was cut off after it had put a file where a directory was leaves two rows, one of them without a stat.
#[test]
fn name_that_two_rows_claim_belongs_to_the_one_of_its_kind() {
    let folder = Folder::new(&["moved/"]);
    std::os::unix::fs::symlink("target", folder.at("name")).unwrap();
    let mut directory = folder.row(1, NodeId::ROOT, "moved");
    directory.record.name = path("name").split_last().unwrap().1;
    let link = SyncedNode { stat: None, ..folder.row(2, NodeId::ROOT, "name") };
    let changes = folder.scan(&[directory, link], &Scope::Everything);
    assert_eq!(changes.present.keys().copied().collect::<Vec<_>>(), [node(1), node(2)]);
    assert_eq!(changes.present[&node(2)].name.as_bytes(), b"name");
    assert!(changes.absent.is_empty());
}

/// A program that saves anew what is parked sets its inode free, and what is made next may get it.
#[test]
fn file_with_the_inode_that_something_parked_had_is_another() {
    let folder = Folder::new(&[]);
    let parked = parked_place(&node(1)).name;
    std::os::unix::fs::symlink("target", folder.at("name")).unwrap();
    std::os::unix::fs::symlink("saved anew", folder.at(&parked.to_string())).unwrap();
    let row = folder.row(1, NodeId::ROOT, "name");
    let older = |stat| Stat { modified: Timestamp::default(), ..stat };
    let row = SyncedNode { stat: row.stat.map(older), ..row };
    let changes = folder.scan(&[row], &Scope::Everything);
    assert_eq!(changes.present[&node(1)].name, parked);
    assert_eq!(changes.present.len(), 2);
}

/// Taken for new, it would be kept as a conflict with the one that has its name in the log, though nobody else has touched that.
#[test]
fn file_that_was_exchanged_with_a_parked_one_is_known_again_though_it_was_changed() {
    let folder = Folder::new(&[]);
    let parked = parked_place(&node(1)).name;
    for name in ["old", "name"] {
        std::os::unix::fs::symlink("target", folder.at(name)).unwrap();
    }
    let (row, other) = (folder.row(1, NodeId::ROOT, "old"), folder.row(2, NodeId::ROOT, "name"));
    let longer = |stat: Stat| Stat { size: stat.size + 1, ..stat };
    let row = SyncedNode { stat: row.stat.map(longer), ..row };
    for (from, to) in [("name", &*parked.to_string()), ("old", "name")] {
        std::fs::rename(folder.at(from), folder.at(to)).unwrap();
    }
    let changes = folder.scan(&[row, other], &Scope::Everything);
    assert_eq!(changes.present[&node(1)].name, Name::new("name").unwrap());
    assert_eq!(changes.present[&node(2)].name, parked);
    assert_eq!((changes.present.len(), changes.absent.len()), (2, 0));
}
