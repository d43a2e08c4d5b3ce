//! The real folder: conformance in four guises, and what only a real one can be tried with.

#![expect(clippy::disallowed_methods, reason = "the tests play the user")]

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::RelativePath;

use super::NativeFileSystem;
use super::root::{Abilities, Root, is_service_name};
use crate::file_system::conformance::{self, Fixture};
use crate::file_system::{FileError, FileKind, FileSystem, Timestamp};

mod moving;
mod namespace;
mod races;

const ALL: Abilities = Abilities { resolves_below: true, renames_with_flags: true, links: true };

fn at(path: &str) -> RelativePath {
    RelativePath::new(path.as_bytes()).unwrap()
}

fn opened(root: &Path, abilities: Abilities) -> NativeFileSystem {
    let files = NativeFileSystem::from_root(Root::open_with(root, abilities).unwrap());
    files.set_root_identity([7; 16]).unwrap();
    files
}

fn folder() -> (tempfile::TempDir, NativeFileSystem) {
    let folder = tempfile::tempdir().unwrap();
    let files = opened(folder.path(), ALL);
    (folder, files)
}

fn stage(files: &dyn FileSystem, token: u64, bytes: &[u8]) {
    let mut staged = files.stage(token).unwrap();
    staged.write_all(bytes).unwrap();
    staged.finish(0o644, Timestamp::default()).unwrap();
}

struct NativeFixture {
    folder: tempfile::TempDir,
    files: Arc<NativeFileSystem>,
}

impl NativeFixture {
    fn new(abilities: Abilities) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let files = Arc::new(opened(folder.path(), abilities));
        Self { folder, files }
    }

    fn path(&self, path: &RelativePath) -> PathBuf {
        self.folder.path().join(path.to_os_path())
    }
}

impl Fixture for NativeFixture {
    fn file_system(&self) -> Arc<dyn FileSystem> {
        Arc::clone(&self.files) as Arc<dyn FileSystem>
    }

    fn write_as_user(&self, path: &RelativePath, bytes: &[u8]) {
        std::fs::write(self.path(path), bytes).unwrap();
    }

    fn read_as_user(&self, path: &RelativePath) -> Option<Vec<u8>> {
        std::fs::read(self.path(path)).ok()
    }

    fn make_directory_as_user(&self, path: &RelativePath) {
        std::fs::create_dir(self.path(path)).unwrap();
    }

    fn link_as_user(&self, path: &RelativePath, target: &[u8]) {
        let target = std::ffi::OsStr::from_bytes(target);
        std::os::unix::fs::symlink(target, self.path(path)).unwrap();
    }

    fn rename_as_user(&self, from: &RelativePath, to: &RelativePath) {
        std::fs::rename(self.path(from), self.path(to)).unwrap();
    }

    fn remove_as_user(&self, path: &RelativePath) {
        std::fs::remove_file(self.path(path)).unwrap();
    }

    fn set_mode_as_user(&self, path: &RelativePath, mode: u32) {
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(self.path(path), permissions).unwrap();
    }

    fn trash_as_user(&self, label: &str) -> BTreeMap<RelativePath, Vec<u8>> {
        let top = self.folder.path().join(".syncline/trash").join(label);
        let mut found = BTreeMap::new();
        let mut pending = vec![top.clone()];
        while let Some(directory) = pending.pop() {
            for entry in std::fs::read_dir(directory).into_iter().flatten() {
                let path = entry.unwrap().path();
                let stat = std::fs::symlink_metadata(&path).unwrap();
                if stat.is_dir() {
                    pending.push(path);
                    continue;
                }
                let content = if stat.is_symlink() {
                    std::fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec()
                } else {
                    std::fs::read(&path).unwrap()
                };
                let path = RelativePath::from_os_path(path.strip_prefix(&top).unwrap()).unwrap();
                found.insert(path, content);
            }
        }
        found
    }
}

fn run_conformance(abilities: Abilities) {
    for (name, case) in conformance::cases() {
        println!("{name}");
        case(&NativeFixture::new(abilities));
    }
}

#[test]
fn conformance_holds() {
    run_conformance(ALL);
}

#[test]
fn conformance_holds_without_openat2() {
    run_conformance(Abilities { resolves_below: false, ..ALL });
}

#[test]
fn conformance_holds_where_the_file_system_cannot_exchange() {
    run_conformance(Abilities { renames_with_flags: false, ..ALL });
}

#[test]
fn conformance_holds_where_the_file_system_has_neither_exchange_nor_links() {
    run_conformance(Abilities { renames_with_flags: false, links: false, ..ALL });
}

#[test]
fn service_directory_is_for_its_owner_only() {
    let (folder, _files) = folder();
    for name in [".syncline", ".syncline/tmp", ".syncline/trash"] {
        let mode = std::fs::metadata(folder.path().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o700, "{name}");
    }
}

#[test]
fn folder_without_an_identity_has_none_and_takes_no_files() {
    let folder = tempfile::tempdir().unwrap();
    let files = NativeFileSystem::open(folder.path()).unwrap();
    assert_eq!(files.root_identity().unwrap(), None);
    assert!(matches!(files.stage(1), Err(FileError::NotFound(_))));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing was made");
}

#[test]
fn moved_removed_and_replaced_roots_are_noticed() {
    let outer = tempfile::tempdir().unwrap();
    let root = outer.path().join("root");
    assert!(matches!(NativeFileSystem::open(&root), Err(FileError::NotFound(_))));
    std::fs::create_dir(&root).unwrap();
    let files = opened(&root, ALL);
    assert_eq!(files.root_identity().unwrap(), Some([7; 16]));
    std::fs::rename(&root, outer.path().join("away")).unwrap();
    assert!(matches!(files.root_identity(), Err(FileError::NotFound(_))));
    // As when a disk is not mounted any more and the empty folder below it shows.
    std::fs::create_dir(&root).unwrap();
    assert_eq!(files.root_identity().unwrap(), None);
    std::fs::remove_dir(&root).unwrap();
    std::fs::write(&root, "a file").unwrap();
    assert!(matches!(NativeFileSystem::open(&root), Err(FileError::Other { .. })));
}

#[test]
fn damaged_identity_is_an_error_and_not_a_missing_one() {
    let (folder, files) = folder();
    let identity = folder.path().join(".syncline/root");
    for damaged in ["", "0707", "zz070707070707070707070707070707\n", "\u{0}"] {
        std::fs::write(&identity, damaged).unwrap();
        assert!(matches!(files.root_identity(), Err(FileError::Other { .. })), "{damaged:?}");
    }
}

#[test]
fn service_directory_that_is_a_link_is_not_used() {
    let (folder, files) = folder();
    let outside = tempfile::tempdir().unwrap();
    let service = folder.path().join(".syncline");
    std::fs::rename(&service, outside.path().join("service")).unwrap();
    std::os::unix::fs::symlink(outside.path().join("service"), &service).unwrap();
    assert!(matches!(files.root_identity(), Err(FileError::Escapes(_))));
    assert!(matches!(files.stage(1), Err(FileError::Escapes(_))));
    assert!(matches!(files.set_root_identity([1; 16]), Err(FileError::Escapes(_))));
    assert!(matches!(files.clear_staged(), Err(FileError::Escapes(_))));
    std::fs::write(folder.path().join("file"), "content").unwrap();
    let stat = files.stat(&at("file")).unwrap().unwrap();
    assert!(matches!(files.trash(&at("file"), &stat, "label"), Err(FileError::Escapes(_))));
    assert!(folder.path().join("file").exists());
}

#[test]
fn names_that_fold_into_the_service_directory_are_refused() {
    for name in [".syncline", ".SYNCLINE", ".SyncLine", ".ſyncline", ".sync\u{200d}line"] {
        assert!(is_service_name(name.as_bytes()), "{name}");
    }
    for name in ["syncline", ".syncline2", ".synclineignore", ".sync", ".sýncline"] {
        assert!(!is_service_name(name.as_bytes()), "{name}");
    }
    assert!(!is_service_name(b".syncline\xff"));
}

#[test]
fn label_of_the_trash_cannot_lead_out_of_it() {
    let (folder, files) = folder();
    std::fs::write(folder.path().join("file"), "content").unwrap();
    let stat = files.stat(&at("file")).unwrap().unwrap();
    for label in ["", ".", "..", "../..", "a/b", "\0"] {
        let refused = files.trash(&at("file"), &stat, label);
        assert!(matches!(refused, Err(FileError::NameRefused(_))), "{label:?}");
    }
    assert_eq!(files.stat(&at("file")).unwrap(), Some(stat));
}

#[test]
fn pipes_and_sockets_are_seen_and_never_opened() {
    let (folder, files) = folder();
    let _socket = std::os::unix::net::UnixListener::bind(folder.path().join("socket")).unwrap();
    let made = std::process::Command::new("mkfifo").arg(folder.path().join("pipe")).status();
    let mut names = vec!["socket"];
    match made {
        Ok(status) if status.success() => names.push("pipe"),
        other => println!("no pipe was tried, since mkfifo says {other:?}"),
    }
    for name in names {
        let stat = files.stat(&at(name)).unwrap().unwrap();
        assert_eq!((stat.kind, stat.size), (FileKind::Other, 0));
        assert!(matches!(files.open(&at(name)), Err(FileError::Changed(_))));
        let set = files.set_attributes(&at(name), &stat, 0o600, None);
        assert!(matches!(set, Err(FileError::Changed(_))));
    }
}

#[test]
fn directory_keeps_the_bits_that_concern_this_device_only() {
    let (folder, files) = folder();
    let shared = folder.path().join("shared");
    std::fs::create_dir(&shared).unwrap();
    std::fs::set_permissions(&shared, std::fs::Permissions::from_mode(0o2755)).unwrap();
    let before = files.stat(&at("shared")).unwrap().unwrap();
    assert_eq!(before.mode, 0o755);
    files.set_attributes(&at("shared"), &before, 0o700, None).unwrap();
    let mode = std::fs::metadata(&shared).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o2700);
}

#[test]
fn stage_directory_that_was_cleaned_away_is_made_again() {
    let (folder, files) = folder();
    std::fs::remove_dir(folder.path().join(".syncline/tmp")).unwrap();
    files.clear_staged().unwrap();
    stage(&files, 1, b"content");
    files.install(1, &at("file"), None).unwrap();
    std::fs::remove_dir_all(folder.path().join(".syncline/trash")).unwrap();
    let stat = files.stat(&at("file")).unwrap().unwrap();
    files.trash(&at("file"), &stat, "label").unwrap();
}

#[test]
fn lock_is_held_by_one_and_free_afterwards() {
    let folder = tempfile::tempdir().unwrap();
    let lock = super::FolderLock::acquire(folder.path()).unwrap();
    let refused = super::FolderLock::acquire(folder.path()).unwrap_err();
    assert_eq!(
        refused.to_string(),
        format!("another process (number {}) keeps this folder in sync", std::process::id())
    );
    drop(lock);
    super::FolderLock::acquire(folder.path()).unwrap();
}
