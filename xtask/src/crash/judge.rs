//! Lets both devices sync until nothing moves and checks every promise.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::CrashReport;
use super::history::History;
use super::user::own_area;
use crate::failure::{Context, Result};
use crate::syncline::{Device, conflict_base, is_own_entry};

/// More rounds than any honest exchange of two devices needs.
const ROUNDS_MAX: u32 = 20;

/// One entry of a folder, with all that must be equal on both devices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    kind: &'static str,
    mode: u32,
    /// Nanoseconds; folders have none, their times follow their entries.
    modified: Option<i128>,
    content: Vec<u8>,
}

/// A folder as paths and entries.
pub(super) type Tree = BTreeMap<String, Entry>;

pub(super) fn judge(devices: &[Device], history: &History, report: &mut CrashReport) -> Result<()> {
    let trees = until_quiet(devices, report)?;
    let [first, second] = &trees[..] else { return Ok(()) };
    report.files = first.values().filter(|entry| entry.kind == "file").count();
    report.conflict_copies = first.keys().filter(|path| conflict_base(path).is_some()).count();
    report.violations.extend(differences(first, second));
    report.violations.extend(own_areas_are_exact(first, history));
    report.violations.extend(bogus_conflicts(first, history));
    nothing_is_lost(devices, first, history, report)
}

/// Syncs both until two rounds in a row leave both trees equal and as they were.
fn until_quiet(devices: &[Device], report: &mut CrashReport) -> Result<Vec<Tree>> {
    let mut before: Vec<Tree> = Vec::new();
    for round in 1..=ROUNDS_MAX {
        report.rounds_to_quiet = round;
        for device in devices {
            device.sync().context("a sync after the last kill")?;
        }
        let now: Vec<Tree> =
            devices.iter().map(|device| read_tree(&device.folder)).collect::<Result<_>>()?;
        if now == before && now.windows(2).all(|pair| pair[0] == pair[1]) {
            return Ok(now);
        }
        before = now;
    }
    let message = format!("the devices are not equal and quiet after {ROUNDS_MAX} rounds");
    report.violations.push(message);
    Ok(before)
}

/// Reads a folder, without the program's own entries.
pub(super) fn read_tree(folder: &Path) -> Result<Tree> {
    let mut tree = Tree::new();
    read_folder(folder, "", &mut tree)?;
    Ok(tree)
}

fn read_folder(folder: &Path, prefix: &str, tree: &mut Tree) -> Result<()> {
    for entry in fs::read_dir(folder).context(folder.display())? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if is_own_entry(&name) {
            continue;
        }
        let path = format!("{prefix}{name}");
        let metadata = fs::symlink_metadata(entry.path())?;
        let (kind, content) = if metadata.is_dir() {
            read_folder(&entry.path(), &format!("{path}/"), tree)?;
            ("folder", Vec::new())
        } else if metadata.is_symlink() {
            ("link", fs::read_link(entry.path())?.into_os_string().into_encoded_bytes())
        } else {
            ("file", fs::read(entry.path()).context(&path)?)
        };
        let nanoseconds =
            i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec());
        let modified = (kind == "file").then_some(nanoseconds);
        tree.insert(path, Entry { kind, mode: metadata.mode() & 0o7777, modified, content });
    }
    Ok(())
}

/// Promise 1: both folders are equal.
fn differences(first: &Tree, second: &Tree) -> Vec<String> {
    let mut found = Vec::new();
    for (path, entry) in first {
        match second.get(path) {
            None => found.push(format!("'{path}' is only on the first device")),
            Some(other) if other.content != entry.content => {
                found.push(format!("'{path}' has other bytes on the second device"));
            }
            Some(other) if other != entry => found.push(format!(
                "'{path}' has kind, mode and time {:?} on the first and {:?} on the second device",
                (entry.kind, entry.mode, entry.modified),
                (other.kind, other.mode, other.modified)
            )),
            Some(_) => {}
        }
    }
    let only_second = second.keys().filter(|path| !first.contains_key(*path));
    found.extend(only_second.map(|path| format!("'{path}' is only on the second device")));
    found
}

/// Promise 2: an area that one user alone touches is exactly what that user left.
fn own_areas_are_exact(tree: &Tree, history: &History) -> Vec<String> {
    let mut found = Vec::new();
    for (path, content) in &history.own_files {
        match tree.get(path) {
            None => found.push(format!("'{path}' is lost, only one user ever touched it")),
            Some(entry) if entry.content != *content => {
                found.push(format!("'{path}' is not what its only user wrote last"));
            }
            Some(_) => {}
        }
    }
    let areas = [own_area(0), own_area(1)];
    let extra = tree.iter().filter(|(path, entry)| {
        entry.kind == "file"
            && areas.iter().any(|area| path.starts_with(area))
            && !history.own_files.contains_key(*path)
    });
    found.extend(extra.map(|(path, _)| format!("'{path}' came back or was invented")));
    found
}

/// Promise 4: a kept copy exists only where both users changed a file without seeing each other.
fn bogus_conflicts(tree: &Tree, history: &History) -> Vec<String> {
    let copies = tree.keys().filter_map(|path| Some((path, conflict_base(path)?)));
    copies
        .filter(|(_, base)| !history.may_conflict(&innermost_base(base)))
        .map(|(path, _)| format!("'{path}' is a kept copy, but nobody edited concurrently"))
        .collect()
}

/// A conflict about a kept copy is a conflict about the file it was made from.
fn innermost_base(path: &str) -> String {
    conflict_base(path).map_or_else(|| path.to_owned(), |base| innermost_base(&base))
}

/// Promise 3: what a user wrote last is in a tree or in the history.
fn nothing_is_lost(
    devices: &[Device],
    tree: &Tree,
    history: &History,
    report: &mut CrashReport,
) -> Result<()> {
    let mut in_history: BTreeMap<String, Vec<Vec<u8>>> = BTreeMap::new();
    for ((user, path), content) in &history.last_written {
        if tree.values().any(|entry| entry.content == *content) {
            report.contents_in_trees += 1;
            continue;
        }
        let mut is_found = false;
        for place in history.paths_reached_from(path) {
            if !in_history.contains_key(&place) {
                in_history.insert(place.clone(), devices[0].versions_of(&place)?);
            }
            is_found |= in_history[&place].contains(content);
        }
        if is_found {
            report.contents_in_history += 1;
        } else {
            report.violations.push(format!(
                "what user {user} wrote last at '{path}' ({} bytes) is nowhere",
                content.len()
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::history::{Event, Seen, content_with};
    use super::*;

    fn tree(files: &[(&str, &[u8])]) -> Tree {
        let entry = |content: &[u8]| Entry {
            kind: "file",
            mode: 0o644,
            modified: Some(1),
            content: content.to_vec(),
        };
        files.iter().map(|(path, content)| ((*path).to_owned(), entry(content))).collect()
    }

    #[test]
    fn every_difference_of_two_trees_is_found() {
        let first = tree(&[("a", b"1"), ("b", b"2"), ("c", b"3"), ("d", b"4")]);
        let mut second = tree(&[("a", b"1"), ("b", b"x"), ("c", b"3"), ("e", b"5")]);
        second.get_mut("c").unwrap().mode = 0o755;
        assert_eq!(differences(&first, &first), [] as [&str; 0]);
        assert_eq!(differences(&first, &second).len(), 4);
    }

    #[test]
    fn a_lost_a_stale_and_a_resurrected_own_file_are_found() {
        let mut history = History::default();
        for name in ["own-first/kept", "own-first/lost", "own-second/stale"] {
            history.own_files.insert(name.to_owned(), b"new".to_vec());
        }
        let seen = tree(&[
            ("own-first/kept", b"new"),
            ("own-second/stale", b"old"),
            ("own-second/deleted", b"old"),
            ("shared/other", b"x"),
        ]);
        assert_eq!(own_areas_are_exact(&seen, &history).len(), 3);
    }

    #[test]
    fn a_kept_copy_without_a_concurrent_edit_is_bogus() {
        let mut history = History::default();
        let wrote = |user, token, seen| Event { user, token, seen };
        history.wrote("s/a.txt", wrote(0, 1, Seen::NeverUsed), content_with(1, b""));
        history.wrote("s/a.txt", wrote(1, 2, Seen::Token(1)), content_with(2, b""));
        history.wrote("s/b.txt", wrote(0, 3, Seen::NeverUsed), content_with(3, b""));
        history.wrote("s/b.txt", wrote(1, 4, Seen::NeverUsed), content_with(4, b""));
        let seen = tree(&[
            ("s/a (second, conflict 1).txt", b""),
            ("s/b (second, conflict 1).txt", b""),
            ("own-first/c (first, conflict 1).txt", b""),
        ]);
        let found = bogus_conflicts(&seen, &history);
        assert_eq!(found.len(), 2, "{found:?}");
    }

    #[test]
    fn a_folder_is_read_without_the_programs_own_entries() {
        let room = tempfile::tempdir().unwrap();
        fs::create_dir_all(room.path().join("d/.syncline")).unwrap();
        fs::write(room.path().join("d/file"), "x").unwrap();
        std::os::unix::fs::symlink("file", room.path().join("d/link")).unwrap();
        let paths: Vec<String> = read_tree(room.path()).unwrap().into_keys().collect();
        assert_eq!(paths, ["d", "d/file", "d/link"]);
    }
}
