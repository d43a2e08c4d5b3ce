//! One file over another one.

use super::{ALL, Abilities, at, opened};
use crate::file_system::{FileError, FileSystem};

#[test]
fn file_moves_over_another_which_goes_to_the_trash() {
    for renames_with_flags in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let files = opened(folder.path(), Abilities { renames_with_flags, ..ALL });
        let path = |name: &str| folder.path().join(name);
        std::fs::create_dir(path("d")).unwrap();
        std::fs::write(path("new"), "new").unwrap();
        std::fs::write(path("d/old"), "old").unwrap();
        let expected = files.stat(&at("d/old")).unwrap().unwrap();
        files.move_over(&at("new"), &at("d/old"), &expected, "label").unwrap();
        assert_eq!(std::fs::read(path("d/old")).unwrap(), b"new");
        assert!(!path("new").exists());
        assert_eq!(std::fs::read(path(".syncline/trash/label/d/old")).unwrap(), b"old");
    }
}

#[test]
fn file_that_is_not_as_expected_stays_and_so_does_the_other() {
    let folder = tempfile::tempdir().unwrap();
    let files = opened(folder.path(), ALL);
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("new"), "new").unwrap();
    std::fs::write(path("old"), "old").unwrap();
    std::fs::create_dir(path("d")).unwrap();
    let directory = files.stat(&at("d")).unwrap().unwrap();
    let expected = files.stat(&at("old")).unwrap().unwrap();
    std::fs::write(path("old"), "edited").unwrap();
    for (to, expected) in [("old", expected), ("d", directory)] {
        let moved = files.move_over(&at("new"), &at(to), &expected, "label");
        assert!(matches!(moved, Err(FileError::Changed(_))), "{to}: {moved:?}");
    }
    let gone = files.move_over(&at("none"), &at("old"), &expected, "label");
    assert!(matches!(gone, Err(FileError::NotFound(_))), "{gone:?}");
    assert_eq!(std::fs::read(path("new")).unwrap(), b"new");
    assert_eq!(std::fs::read(path("old")).unwrap(), b"edited");
    assert!(path("d").is_dir() && !path(".syncline/trash/label").exists());
}
