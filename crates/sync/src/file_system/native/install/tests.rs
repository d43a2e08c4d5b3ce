//! What happens when a user acts between two steps of an exchange.

#![expect(clippy::disallowed_methods, reason = "the tests play the user")]

use std::path::Path;

use super::{Exchange, FileError, RelativePath, Stat};
use crate::file_system::native::NativeFileSystem;
use crate::file_system::{FileSystem, Timestamp};

const TOKEN: u64 = 5;

struct Scene {
    folder: tempfile::TempDir,
    files: NativeFileSystem,
    path: RelativePath,
}

impl Scene {
    /// A file of the user, and one of ours aside.
    fn new() -> (Self, Stat) {
        let folder = tempfile::tempdir().unwrap();
        let files = NativeFileSystem::open(folder.path()).unwrap();
        files.set_root_identity([1; 16]).unwrap();
        std::fs::write(folder.path().join("file"), "old").unwrap();
        let mut staged = files.stage(TOKEN).unwrap();
        staged.write_all(b"ours").unwrap();
        staged.finish(0o644, Timestamp::default()).unwrap();
        let path = RelativePath::new(b"file").unwrap();
        let expected = files.stat(&path).unwrap().unwrap();
        (Self { folder, files, path }, expected)
    }

    fn exchange(&self) -> Exchange<'_> {
        Exchange::new(&self.files.root, TOKEN, &self.path).unwrap()
    }

    fn file(&self) -> std::path::PathBuf {
        self.folder.path().join("file")
    }

    fn save(&self, content: &str) {
        let new = self.folder.path().join("file.new");
        std::fs::write(&new, content).unwrap();
        std::fs::rename(new, self.file()).unwrap();
    }

    fn read(&self, path: impl AsRef<Path>) -> String {
        std::fs::read_to_string(self.folder.path().join(path)).unwrap()
    }

    fn assert_aside(&self, is_there: bool) {
        let names = std::fs::read_dir(self.folder.path().join(".syncline/tmp")).unwrap();
        let names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
        let expected: &[&str] = if is_there { &["0000000000000005"] } else { &[] };
        assert_eq!(names, expected);
    }
}

#[test]
fn edit_before_the_exchange_is_put_back() {
    for save in [Scene::save, |scene: &Scene, content: &str| {
        std::fs::write(scene.file(), content).unwrap();
    }] {
        let (scene, expected) = Scene::new();
        let exchange = scene.exchange();
        exchange.check(&expected).unwrap();
        save(&scene, "edit");
        exchange.mark().unwrap();
        exchange.swap().unwrap();
        assert_eq!(scene.read("file"), "ours");
        assert!(matches!(exchange.settle(&expected), Err(FileError::Changed(_))));
        assert_eq!(scene.read("file"), "edit");
        scene.assert_aside(true);
        assert_eq!(scene.read(".syncline/tmp/0000000000000005"), "ours");
    }
}

#[test]
fn second_edit_during_the_exchange_stays_and_the_first_goes_to_the_trash() {
    for save in [Scene::save, |scene: &Scene, content: &str| {
        std::fs::write(scene.file(), content).unwrap();
    }] {
        let (scene, expected) = Scene::new();
        let exchange = scene.exchange();
        scene.save("first");
        exchange.mark().unwrap();
        exchange.swap().unwrap();
        save(&scene, "second");
        assert!(matches!(exchange.settle(&expected), Err(FileError::Changed(_))));
        assert_eq!(scene.read("file"), "second");
        assert_eq!(scene.read(".syncline/trash/displaced/file"), "first");
        scene.assert_aside(false);
    }
}

#[test]
fn edit_comes_back_where_the_user_removed_what_was_installed() {
    let (scene, expected) = Scene::new();
    let exchange = scene.exchange();
    scene.save("edit");
    exchange.mark().unwrap();
    exchange.swap().unwrap();
    std::fs::remove_file(scene.file()).unwrap();
    assert!(matches!(exchange.settle(&expected), Err(FileError::Changed(_))));
    assert_eq!(scene.read("file"), "edit");
    scene.assert_aside(false);
}

#[test]
fn file_that_is_gone_before_the_exchange_leaves_ours_aside() {
    let (scene, expected) = Scene::new();
    let exchange = scene.exchange();
    exchange.check(&expected).unwrap();
    std::fs::remove_file(scene.file()).unwrap();
    assert!(matches!(exchange.replace(&expected), Err(FileError::Changed(_))));
    exchange.mark().unwrap();
    assert!(exchange.swap().is_err());
    exchange.unmark().unwrap();
    scene.assert_aside(true);
}

#[test]
fn edit_right_after_the_install_does_not_pass_for_synced() {
    let (scene, expected) = Scene::new();
    let exchange = scene.exchange();
    exchange.replace(&expected).unwrap();
    std::fs::write(scene.file(), "edit").unwrap();
    let believed = exchange.installed();
    assert_eq!(believed.size, 4);
    assert_ne!(Some(believed), scene.files.stat(&scene.path).unwrap());
}

#[test]
fn what_cannot_be_kept_is_put_back() {
    let (scene, expected) = Scene::new();
    scene.files.replace(TOKEN, &scene.path, &expected, "no/label").unwrap_err();
    assert_eq!(scene.read("file"), "old");
    scene.assert_aside(true);
}

#[test]
fn crash_before_what_was_replaced_is_in_the_trash_keeps_both() {
    let (scene, _) = Scene::new();
    let exchange = Exchange { label: Some("label"), ..scene.exchange() };
    exchange.mark().unwrap();
    exchange.swap().unwrap();
    NativeFileSystem::open(scene.folder.path()).unwrap().clear_staged().unwrap();
    assert_eq!(scene.read("file"), "ours");
    assert_eq!(scene.read(".syncline/trash/interrupted/0000000000000005.exchange"), "old");
}

#[test]
fn crash_in_the_middle_of_an_exchange_keeps_the_edit_in_the_trash() {
    let (scene, _) = Scene::new();
    let exchange = scene.exchange();
    scene.save("edit");
    exchange.mark().unwrap();
    exchange.swap().unwrap();
    std::fs::write(scene.folder.path().join(".syncline/tmp/0000000000000009"), "half").unwrap();
    NativeFileSystem::open(scene.folder.path()).unwrap().clear_staged().unwrap();
    assert_eq!(scene.read(".syncline/trash/interrupted/0000000000000005.exchange"), "edit");
    scene.assert_aside(false);
}
