//! The files of the two workloads: one that is edited every ten seconds, and the source tree of one release after the other.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use lab::dataset::by_version;

use crate::web::cells::{Edit, KINDS};
use crate::web::sample::{bytes_of, edited};

/// What the bytes of the edited file are like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Content {
    /// Letters by chance, which compress to half: the server cuts such files finely, as it does documents.
    Letters,
    /// Bytes by chance, which do not compress: the server cuts them coarsely, as it does photos and films.
    Media,
}

impl Content {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Letters, Self::Media];

    /// The name on the command line and in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Letters => "letters",
            Self::Media => "media",
        }
    }

    /// Returns bytes of this kind that stand for bytes by chance, each for the one at its place.
    fn of(self, raw: &[u8]) -> Vec<u8> {
        const LETTERS: &[u8; 16] = b"etaoin shrdlucm\n";
        match self {
            Self::Letters => raw.iter().map(|byte| LETTERS[usize::from(byte & 15)]).collect(),
            Self::Media => raw.to_vec(),
        }
    }
}

/// A file that is edited again and again.
#[derive(Debug, Clone)]
pub struct Edited {
    content: Content,
    raw: Vec<u8>,
    bytes: Vec<u8>,
}

impl Edited {
    /// Makes the first version.
    pub fn new(content: Content, seed: u64, length: usize) -> Self {
        let raw = bytes_of(seed, length);
        Self { content, bytes: content.of(&raw), raw }
    }

    /// Returns the bytes as they are now.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Edits it in one place: so many bytes are appended, inserted or cut, as the seed says. Returns the version before.
    pub fn edit(&mut self, size: usize, seed: u64) -> Vec<u8> {
        let kind = KINDS[(seed % 3) as usize];
        self.raw = edited(&self.raw, Edit { kind, size, places: 1 }, seed);
        std::mem::replace(&mut self.bytes, self.content.of(&self.raw))
    }
}

/// A file of one release and the same file of the next one, which is another.
#[derive(Debug, Clone)]
pub struct Change {
    /// Which file.
    pub file: usize,
    /// As it was.
    pub old: Arc<[u8]>,
    /// As it is.
    pub new: Arc<[u8]>,
}

/// All changes from release to release, in order.
#[derive(Debug, Clone)]
pub struct Releases {
    /// Where they come from, in words.
    pub about: String,
    /// What has changed. A file's changes follow each other, as long as it is there in every release between.
    pub changes: Vec<Change>,
}

/// The files of a release by their paths.
type Tree = BTreeMap<String, Arc<[u8]>>;

/// How many files and releases are made where there is no archive.
const STAND_IN_FILES: u64 = 600;
const STAND_IN_RELEASES: u64 = 6;

impl Releases {
    /// Unpacks an archive (`.tar.zst`, a folder for each release) below a folder.
    ///
    /// # Errors
    /// Where it cannot be unpacked, or has no two releases.
    pub fn of_archive(archive: &Path, folder: &Path) -> Result<Self> {
        unpack(archive, folder)?;
        let mut names = Vec::new();
        for entry in std::fs::read_dir(folder)? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        names.sort_by(|one, other| by_version(one, other));
        let (Some(first), Some(last)) = (names.first(), names.last()) else {
            bail!("{} has no releases", archive.display());
        };
        let about = format!("{} releases of an archive, {first} to {last}", names.len());
        let trees = names.iter().map(|name| read_tree(&folder.join(name)));
        Self::of(about, trees.collect::<Result<Vec<_>>>()?)
    }

    /// Makes up releases of a tree of letters, where there is no archive.
    ///
    /// # Errors
    /// Never, as long as some of the files are edited.
    pub fn stand_in(seed: u64) -> Result<Self> {
        let mut files: Vec<Edited> = (0..STAND_IN_FILES)
            .map(|file| {
                let seed = seed + 2 * file;
                // Some 23 KB on average, as the files of the paper.
                Edited::new(Content::Letters, seed, 1000 + (seed * 7919 % 44_000) as usize)
            })
            .collect();
        let tree = |files: &[Edited]| -> Tree {
            let named = files.iter().zip(0..);
            named.map(|(file, number)| (format!("{number}"), file.bytes().into())).collect()
        };
        let mut trees = vec![tree(&files)];
        for release in 1..STAND_IN_RELEASES {
            for (file, number) in files.iter_mut().zip(0_u64..) {
                if (number + release) % 3 == 0 {
                    file.edit(20 + (number * 31 % 400) as usize, seed + number * 1000 + release);
                }
            }
            trees.push(tree(&files));
        }
        let about =
            format!("a synthetic tree of {STAND_IN_FILES} files, {STAND_IN_RELEASES} times");
        Self::of(about, trees)
    }

    fn of(about: String, trees: Vec<Tree>) -> Result<Self> {
        let mut changes = Vec::new();
        let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
        for pair in trees.windows(2) {
            for (path, old) in &pair[0] {
                let Some(new) = pair[1].get(path).filter(|new| *new != old) else { continue };
                // Nothing is to be found in an empty file.
                if old.is_empty() || new.is_empty() {
                    continue;
                }
                let next = numbers.len();
                let file = *numbers.entry(path).or_insert(next);
                changes.push(Change { file, old: old.clone(), new: new.clone() });
            }
        }
        if changes.is_empty() {
            bail!("nothing changes from release to release");
        }
        let bytes: usize = changes.iter().map(|change| change.new.len()).sum();
        let (count, mean) = (changes.len(), bytes / changes.len());
        Ok(Self { about: format!("{about}: {count} pairs, {mean} bytes on average"), changes })
    }
}

fn unpack(archive: &Path, folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    let mut zstd = Command::new("zstd");
    zstd.args(["--decompress", "--long=31", "--stdout", "--quiet"]).arg(archive);
    let mut zstd = zstd.stdout(Stdio::piped()).spawn().context("zstd")?;
    let stream = zstd.stdout.take().context("zstd has no output")?;
    let mut tar = Command::new("tar");
    tar.arg("--extract").arg("--directory").arg(folder).stdin(stream);
    let unpacked = tar.status().context("tar")?.success();
    if !zstd.wait()?.success() || !unpacked {
        bail!("{} cannot be unpacked", archive.display());
    }
    Ok(())
}

fn read_tree(root: &Path) -> Result<Tree> {
    let (mut tree, mut folders) = (Tree::new(), vec![root.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                let path = entry.path();
                let name = path.strip_prefix(root)?.to_string_lossy().into_owned();
                tree.insert(name, read(&path)?.into());
            }
        }
    }
    Ok(tree)
}

#[expect(clippy::disallowed_methods, reason = "files that clients are to send")]
fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edit_changes_letters_into_letters_by_so_many_bytes() {
        let mut file = Edited::new(Content::Letters, 7, 10_000);
        for seed in 0..30 {
            let before = file.edit(100, seed);
            let difference = file.bytes().len().abs_diff(before.len());
            assert_eq!(difference, 100, "{seed}");
            assert!(
                file.bytes().iter().all(|byte| byte.is_ascii_lowercase() || b" \n".contains(byte))
            );
        }
        assert_ne!(Edited::new(Content::Media, 7, 100).bytes(), &file.bytes()[..100]);
    }

    #[test]
    fn each_change_of_a_file_begins_where_the_one_before_ended() {
        let releases = Releases::stand_in(1).unwrap();
        let mut last: BTreeMap<usize, &Arc<[u8]>> = BTreeMap::new();
        for change in &releases.changes {
            assert_ne!(change.old, change.new);
            if let Some(before) = last.insert(change.file, &change.new) {
                assert_eq!(*before, change.old);
            }
        }
        assert!(last.len() > 500 && releases.changes.len() > 900, "{}", releases.about);
        assert!(releases.about.contains("synthetic"));
    }

    #[test]
    fn an_archive_of_releases_is_read_and_what_is_none_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("in");
        for (release, text) in [("1.9", "old"), ("1.10", "new"), ("1.11", "new")] {
            std::fs::create_dir_all(root.join(release).join("src")).unwrap();
            write(&root.join(release).join("src/a.c"), text);
            write(&root.join(release).join("same"), "same");
            write(&root.join(release).join("empty"), if release == "1.9" { "" } else { "x" });
        }
        let archive = folder.path().join("releases.tar.zst");
        let mut tar = Command::new("tar");
        tar.arg("--create").arg("--zstd").arg("--file").arg(&archive).arg("--directory");
        assert!(tar.arg(&root).args(["1.9", "1.10", "1.11"]).status().unwrap().success());
        let releases = Releases::of_archive(&archive, &folder.path().join("out")).unwrap();
        assert!(releases.about.starts_with("3 releases of an archive, 1.9 to 1.11: 1 pairs"));
        assert_eq!(&*releases.changes[0].old, b"old");
        assert_eq!(&*releases.changes[0].new, b"new");
        write(&archive, "no archive");
        assert!(Releases::of_archive(&archive, &folder.path().join("again")).is_err());
    }

    #[expect(clippy::disallowed_methods, reason = "files to read")]
    fn write(path: &Path, text: &str) {
        std::fs::write(path, text).unwrap();
    }
}
