//! What every [`FileSystem`] must do, as named cases: the real folder runs them, and so does the simulated one.
//!
//! Each case gets a fresh, empty folder that has an identity already. A [`Fixture`] is the folder together with a
//! user who changes it from outside, as any program may at any moment.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::sync::Arc;

use model::{RelativePath, Timestamp};

use super::{FileError, FileKind, FileSystem, StageToken, Stat};

mod changes;
mod names;
mod places;

/// A folder under test, and the hands of its user. The methods panic where they cannot do what they are told.
pub trait Fixture {
    /// Returns the folder, as the engine sees it.
    fn file_system(&self) -> Arc<dyn FileSystem>;

    /// Writes a file: a new one, or the same one again with other content. Its directory is there.
    fn write_as_user(&self, path: &RelativePath, bytes: &[u8]);

    /// Returns the content of a file, or nothing where there is no file.
    fn read_as_user(&self, path: &RelativePath) -> Option<Vec<u8>>;

    /// Makes a directory.
    fn make_directory_as_user(&self, path: &RelativePath);

    /// Makes a symbolic link.
    fn link_as_user(&self, path: &RelativePath, target: &[u8]);

    /// Renames a file, link or directory; what has the new name is replaced.
    fn rename_as_user(&self, from: &RelativePath, to: &RelativePath);

    /// Removes a file or link.
    fn remove_as_user(&self, path: &RelativePath);

    /// Sets the permission bits of a file or directory.
    fn set_mode_as_user(&self, path: &RelativePath, mode: u32);

    /// Returns what the trash holds below a label: the places, numbered where one held several files, with the
    /// content of files and the text of links.
    fn trash_as_user(&self, label: &str) -> BTreeMap<RelativePath, Vec<u8>>;
}

/// A case: what must hold, and how that is tried.
pub type Case = (&'static str, fn(&dyn Fixture));

/// Returns all cases.
pub fn cases() -> Vec<Case> {
    [changes::CASES, names::CASES, places::CASES].concat()
}

/// A modification time that nobody would come by.
const LONG_AGO: Timestamp = Timestamp { seconds: 1_000_000_000, nanoseconds: 123_456_789 };

fn at(path: impl AsRef<[u8]>) -> RelativePath {
    RelativePath::new(path.as_ref()).expect("the paths of the cases are valid")
}

/// Writes a file aside.
fn stage(files: &dyn FileSystem, token: StageToken, bytes: &[u8], mode: u32, modified: Timestamp) {
    let mut staged = files.stage(token).expect("a file can be started aside");
    staged.write_all(bytes).expect("a file aside can be written");
    staged.finish(mode, modified).expect("a file aside can be finished");
}

/// Writes a file aside and installs it where nothing is.
fn create(files: &dyn FileSystem, path: impl AsRef<[u8]>, bytes: &[u8]) -> Stat {
    stage(files, 1, bytes, 0o644, LONG_AGO);
    files.install(1, &at(path), None).expect("a file can be installed")
}

/// Reads a file as the engine does.
fn read(files: &dyn FileSystem, path: impl AsRef<[u8]>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut file = files.open(&at(path)).expect("the file can be opened");
    file.read_to_end(&mut bytes).expect("the file can be read");
    bytes
}

fn stat(files: &dyn FileSystem, path: impl AsRef<[u8]>) -> Option<Stat> {
    files.stat(&at(path)).expect("the stat can be had")
}

fn stat_there(files: &dyn FileSystem, path: impl AsRef<[u8]>) -> Stat {
    stat(files, path).expect("the file is there")
}

fn names(files: &dyn FileSystem, directory: impl AsRef<[u8]>) -> Vec<Vec<u8>> {
    let entries = files.list(&at(directory)).expect("the directory can be listed");
    let mut names: Vec<_> = entries.into_iter().map(|entry| entry.name).collect();
    names.sort();
    names
}

/// Fails unless `result` is the given error.
macro_rules! assert_refused {
    ($result:expr, $variant:pat) => {
        match $result {
            Err($variant) => {}
            Err(error) => panic!("refused for another reason: {error}"),
            Ok(_) => panic!("not refused"),
        }
    };
}
use assert_refused;
