//! Users who change the folder while it is changed.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::{ALL, Abilities, FileError, FileSystem, NativeFileSystem, at, folder, opened, stage};

/// How often a directory and a link to the outside change places.
const SWAPS: u32 = 20_000;

/// The names and contents of everything in a directory.
fn contents(directory: &Path) -> BTreeSet<(std::ffi::OsString, Vec<u8>, u32)> {
    use std::os::unix::fs::PermissionsExt;
    let entries = std::fs::read_dir(directory).unwrap().map(Result::unwrap);
    let entries = entries.map(|entry| {
        let mode = entry.metadata().unwrap().permissions().mode();
        (entry.file_name(), std::fs::read(entry.path()).unwrap(), mode)
    });
    entries.collect()
}

/// Does everything that changes something below `swapped`, and does not mind any failure.
fn change_everything(files: &NativeFileSystem, round: u64) -> u32 {
    let (canary, fresh) = (at("swapped/canary"), at("swapped/fresh"));
    let mut done = 0;
    let mut note = |is_ok: bool| done += u32::from(is_ok);
    stage(files, round, b"ours");
    note(files.install(round, &fresh, None).is_ok());
    if let Ok(Some(stat)) = files.stat(&canary) {
        stage(files, round + 1, b"ours");
        note(files.install(round + 1, &canary, Some(&stat)).is_ok());
        note(files.set_attributes(&canary, &stat, 0o600, Some(Default::default())).is_ok());
    }
    note(files.make_directory(&at("swapped/directory"), 0o755).is_ok());
    note(files.rename(&fresh, &at("swapped/moved")).is_ok());
    for path in [&canary, &fresh, &at("swapped/moved"), &at("swapped/directory")] {
        if let Ok(Some(stat)) = files.stat(path) {
            note(files.trash(path, &stat, "label").is_ok());
        }
        if let Ok(mut file) = files.open(path) {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).unwrap();
            assert_ne!(bytes, b"outside", "a file outside was read");
        }
    }
    for entry in files.list(&at("swapped")).unwrap_or_default() {
        assert_ne!(entry.name, b"outside", "a directory outside was listed");
    }
    let _ = (files.discard(round), files.discard(round + 1));
    done
}

fn swap_directory_for_link(abilities: Abilities) {
    let outer = tempfile::tempdir().unwrap();
    let (root, outside) = (outer.path().join("root"), outer.path().join("outside"));
    std::fs::create_dir(&root).unwrap();
    std::fs::create_dir(&outside).unwrap();
    for name in ["canary", "fresh", "moved", "outside"] {
        std::fs::write(outside.join(name), "outside").unwrap();
    }
    let before = contents(&outside);
    let files = opened(&root, abilities);
    let (swapped, link) = (root.join("swapped"), root.join("link"));
    std::fs::create_dir(&swapped).unwrap();
    std::os::unix::fs::symlink("../outside", &link).unwrap();
    let (swaps, is_over) = (AtomicU32::new(0), AtomicBool::new(false));
    let mut done = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while swaps.fetch_add(1, Ordering::Relaxed) < SWAPS {
                renameat_with(CWD, &swapped, CWD, &link, RenameFlags::EXCHANGE).unwrap();
            }
            is_over.store(true, Ordering::Relaxed);
        });
        let mut round = 0;
        while !is_over.load(Ordering::Relaxed) {
            done += change_everything(&files, round);
            round += 2;
        }
    });
    assert_eq!(contents(&outside), before);
    println!("{done} changes were made between {SWAPS} swaps");
}

#[test]
fn directory_swapped_for_a_link_leads_nothing_outside() {
    swap_directory_for_link(ALL);
}

#[test]
fn directory_swapped_for_a_link_leads_nothing_outside_without_openat2() {
    swap_directory_for_link(Abilities { resolves_below: false, ..ALL });
}

#[test]
fn reader_never_sees_a_torn_file() {
    let (folder, files) = folder();
    let path = folder.path().join("file");
    let content = |version: u64| {
        let length = 1 + (version as usize * 7919) % 70_000;
        vec![version as u8; length]
    };
    stage(&files, 0, &content(0));
    let mut stat = files.install(0, &at("file"), None).unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let (mut reads, mut versions) = (0_u32, BTreeSet::new());
            while !is_over.load(Ordering::Relaxed) || reads == 0 {
                let bytes = std::fs::read(&path).expect("there is always a file");
                let version = bytes[0];
                assert!(bytes.iter().all(|&byte| byte == version), "a mix was read");
                let is_whole =
                    (0..=1000).any(|round| content_length(round, version) == bytes.len());
                assert!(is_whole, "{} bytes of {version} were read", bytes.len());
                versions.insert(bytes.len());
                reads += 1;
            }
            (reads, versions.len())
        });
        for version in 1..=1000 {
            stage(&files, version, &content(version));
            stat = files.install(version, &at("file"), Some(&stat)).unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
        println!("{:?} reads and versions", reader.join().unwrap());
    });
}

/// The length of a version if its bytes are `byte`.
fn content_length(version: u64, byte: u8) -> usize {
    if version as u8 == byte { 1 + (version as usize * 7919) % 70_000 } else { 0 }
}

/// A user saves again and again, each time after the last version was replaced: a version may only be replaced after
/// it was read. Losing one would show as a wait without end, so the rounds are counted.
///
/// The user waits for the call to return. Whoever looks in the middle of an exchange that is undone may see what is
/// about to be taken away again, and by saving over it replace the own version before.
#[test]
fn no_save_by_rename_is_lost_among_replacements() {
    let (folder, files) = folder();
    let (path, new) = (folder.path().join("file"), folder.path().join("new"));
    std::fs::write(&path, "0").unwrap();
    let (is_over, replaced) = (AtomicBool::new(false), AtomicU32::new(u32::MAX));
    std::thread::scope(|scope| {
        let user = scope.spawn(|| {
            let mut version = 0_u32;
            while !is_over.load(Ordering::Acquire) {
                if replaced.load(Ordering::Acquire) == version {
                    version += 1;
                    std::fs::write(&new, version.to_string()).unwrap();
                    std::fs::rename(&new, &path).unwrap();
                }
            }
            version
        });
        let (mut last, mut refusals) = (u32::MAX, 0);
        for token in 0..10_000 {
            let Some(stat) = files.stat(&at("file")).unwrap() else { continue };
            let Ok(mut open) = files.open(&at("file")) else { continue };
            let mut text = String::new();
            open.read_to_string(&mut text).unwrap();
            if open.stat().unwrap() != stat {
                continue;
            }
            stage(&files, token, b"ours");
            match files.install(token, &at("file"), Some(&stat)) {
                Ok(_) if text == "ours" => {}
                Ok(_) => {
                    last = text.parse().unwrap();
                    replaced.store(last, Ordering::Release);
                }
                Err(FileError::Changed(_)) => refusals += 1,
                Err(error) => panic!("{error}"),
            }
            files.discard(token).unwrap();
        }
        is_over.store(true, Ordering::Release);
        let version = user.join().unwrap();
        println!("{version} saves, {refusals} refusals");
        let rest = std::fs::read_to_string(&path).unwrap();
        assert!(last == version || rest == version.to_string(), "save {version} was lost");
        assert!(!folder.path().join(".syncline/trash/displaced").exists());
    });
}
