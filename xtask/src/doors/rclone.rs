//! rclone over WebDAV, with the settings of the guide (vendor `owncloud`): trees up and down, and what changes in between.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::finding::{Finding, Steps};
use super::stage::{Door, Stage};
use super::tree::{self, Tree};
use super::{bounded, said_by};
use crate::failure::{Result, fail};
use crate::process;
use crate::random::Random;

/// The tool.
pub(super) const NAME: &str = "rclone";

/// How long one step may take, in seconds.
const SECONDS_MAX: u32 = 120;

/// Where the files lie at the door.
const FOLDER: &str = "rclone";

/// Fixes the bytes of the files.
const SEED: u64 = 1;

/// The length of the longest file, in bytes.
const LONGEST: usize = 30_000_000;

/// When the first of the files was modified, in seconds since 1970; each later one an hour after.
const FIRST_TIME: u64 = 1_500_000_000;

/// Runs all steps at each door of WebDAV.
pub(super) fn run(stage: &Stage) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for door in &stage.doors {
        let room = stage.room(NAME, door.name)?;
        let remote = Remote::of(door, &room)?;
        let mut steps = Steps::new(NAME, door.name, "files");
        let here = room.join("here");
        whole_trees(&mut steps, &remote, &here)?;
        changes(&mut steps, &remote, &here)?;
        steps.step("a device of the workspace has the same, byte by byte", || {
            door.wait_for_device(FOLDER, &Tree::read(&here)?)
        });
        steps.step("purge", || remote.run(&["purge", &remote.path("")]).map(drop));
        steps.step("a device has nothing left of it", || {
            door.wait_for_device(FOLDER, &Tree::default())
        });
        findings.extend(steps.into_findings());
    }
    Ok(findings)
}

/// A tree that is sent, compared, sent again and brought back.
fn whole_trees(steps: &mut Steps, remote: &Remote, here: &Path) -> Result<()> {
    let count = make_files(here)?;
    let (here_text, there) = (here.display().to_string(), remote.path(""));
    steps.step("sync up of 43 files: spaces, umlauts, none and 30 MB", || {
        remote.run(&["sync", &here_text, &there]).map(drop)
    });
    steps.step("check compares all files by checksums", || {
        let said = remote.run(&["check", &here_text, &there])?;
        is_said(&said, "0 differences found")?;
        is_said(&said, &format!("{count} matching files"))?;
        match said.contains("could not be checked") {
            true => fail(format!("some have no checksum: {said}")),
            false => Ok(()),
        }
    });
    steps.step("sync up again sends nothing", || {
        is_said(&remote.run(&["sync", &here_text, &there])?, "There was nothing to transfer")
    });
    steps.step("sync down: equal bytes and times", || remote.brings_back(here, "first"));
    Ok(())
}

/// What is edited, deleted, moved and given another time here and there.
fn changes(steps: &mut Steps, remote: &Remote, here: &Path) -> Result<()> {
    let (here_text, there) = (here.display().to_string(), remote.path(""));
    tree::write(here, "folder 0/file 1.bin", b"edited", FIRST_TIME + 1)?;
    fs::remove_file(here.join("folder 1/file 3.bin"))?;
    tree::set_time(&here.join("folder 2/file 5.bin"), FIRST_TIME + 2)?;
    fs::rename(here.join("folder 3/file 7.bin"), here.join("folder 3/renamed.bin"))?;
    steps.step("sync up after an edit, a deletion, a new time and a rename", || {
        remote.run(&["sync", &here_text, &there])?;
        remote.brings_back(here, "second")
    });
    steps.step("moveto renames there, and keeps the time", || {
        remote.run(&["moveto", &remote.path("ümläut.txt"), &remote.path("moved away.txt")])?;
        fs::rename(here.join("ümläut.txt"), here.join("moved away.txt"))?;
        remote.brings_back(here, "third")
    });
    steps.step("copyto copies there, and keeps the time", || {
        let (from, to) = ("folder 0/file 0.bin", "folder 1/copied.bin");
        remote.run(&["copyto", &remote.path(from), &remote.path(to)])?;
        tree::write(here, to, &fs::read(here.join(from))?, FIRST_TIME)?;
        remote.brings_back(here, "fourth")
    });
    steps.step("deletefile deletes one, and nothing else", || {
        remote.run(&["deletefile", &remote.path("empty")])?;
        fs::remove_file(here.join("empty"))?;
        remote.brings_back(here, "fifth")
    });
    steps.step("mkdir and rmdir of an empty folder", || {
        remote.run(&["mkdir", &remote.path("new folder")])?;
        is_said(&remote.run(&["lsf", "--dirs-only", &there])?, "new folder/")?;
        remote.run(&["rmdir", &remote.path("new folder")]).map(drop)
    });
    steps.step("about says how much room there is", || {
        is_said(&remote.run(&["about", &remote.path("")])?, "Used:")
    });
    Ok(())
}

/// Makes the files and says how many there are. `folder N/file M.bin`, M of them from 0 on, have the times of their numbers.
fn make_files(here: &Path) -> Result<usize> {
    let mut random = Random::for_part(SEED, NAME);
    let mut bytes = |length: usize| {
        let mut bytes = Vec::with_capacity(length + 8);
        while bytes.len() < length {
            bytes.extend_from_slice(&random.next_u64().to_le_bytes());
        }
        bytes.truncate(length);
        bytes
    };
    for number in 0..40 {
        let path = format!("folder {}/file {number}.bin", number / 2);
        let time = FIRST_TIME + number as u64 * 3600;
        tree::write(here, &path, &bytes(40_000 + number * 1_000), time)?;
    }
    tree::write(here, "ümläut.txt", b"names are any letters\n", FIRST_TIME + 90)?;
    tree::write(here, "empty", b"", FIRST_TIME + 91)?;
    tree::write(here, "long.bin", &bytes(LONGEST), FIRST_TIME + 92)?;
    Ok(Tree::read(here)?.count())
}

fn is_said(said: &str, wanted: &str) -> Result<()> {
    match said.contains(wanted) {
        true => Ok(()),
        false => fail(format!("it does not say '{wanted}', but: {said}")),
    }
}

/// The folder at a door, as rclone reaches it.
struct Remote {
    room: PathBuf,
    settings: Vec<(&'static str, String)>,
}

impl Remote {
    fn of(door: &Door, room: &Path) -> Result<Self> {
        // Not a secret to rclone, but its own way to write one.
        let hidden = process::output(Command::new(NAME).args(["obscure", &door.password]))?;
        let configuration = room.join("rclone.conf");
        fs::write(&configuration, "")?;
        let settings = vec![
            ("RCLONE_CONFIG", configuration.display().to_string()),
            ("RCLONE_CONFIG_DOOR_TYPE", "webdav".to_owned()),
            ("RCLONE_CONFIG_DOOR_VENDOR", "owncloud".to_owned()),
            ("RCLONE_CONFIG_DOOR_URL", door.url.clone()),
            ("RCLONE_CONFIG_DOOR_USER", door.user.clone()),
            ("RCLONE_CONFIG_DOOR_PASS", hidden.trim().to_owned()),
        ];
        Ok(Self { room: room.to_owned(), settings })
    }

    fn path(&self, path: &str) -> String {
        format!("door:{FOLDER}/{path}")
    }

    /// Runs rclone, and returns what it says on both streams. What fails is not tried again: that would hide it.
    fn run(&self, words: &[&str]) -> Result<String> {
        let mut command = bounded(SECONDS_MAX, NAME);
        command.args(words).args(["--verbose", "--retries", "1", "--low-level-retries", "1"]);
        command.envs(self.settings.iter().map(|(name, value)| (name, value)));
        let (status, said) = said_by(&mut command)?;
        match status.success() {
            true => Ok(said),
            false => fail(format!("{status} of {}: {said}", words.join(" "))),
        }
    }

    /// Brings all into a new folder, which must then be as the one here.
    fn brings_back(&self, here: &Path, name: &str) -> Result<()> {
        let back = self.room.join(name);
        self.run(&["sync", &self.path(""), &back.display().to_string()])?;
        let compared = Tree::read(here)?.compare(&Tree::read(&back)?);
        fs::remove_dir_all(&back)?;
        compared
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_the_same_each_time_they_are_made() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        assert_eq!(make_files(one.path()).unwrap(), 43);
        make_files(other.path()).unwrap();
        let tree = Tree::read(one.path()).unwrap();
        assert_eq!(tree.compare(&Tree::read(other.path()).unwrap()), Ok(()));
        for path in ["folder 0/file 1.bin", "folder 1/file 3.bin", "folder 3/file 7.bin"] {
            assert!(one.path().join(path).exists(), "{path}");
        }
    }
}
