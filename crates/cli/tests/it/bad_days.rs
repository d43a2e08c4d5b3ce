//! Disks that are not mounted, folders that were emptied, databases that are gone, two processes at once.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::support::{BOTH, Device, Pair, fill, terminate, tree};

#[test]
fn an_emptied_folder_deletes_nothing_elsewhere() {
    for is_served in BOTH {
        let pair = Pair::synced(is_served, fill);
        let before = pair.other.tree();
        // As if the disk below were not mounted: nothing is left, not even the identity.
        let away = pair.room.path().join("away");
        fs::rename(&pair.one.folder, &away).unwrap();
        fs::create_dir(&pair.one.folder).unwrap();
        let refused = pair.one.sync().ends_with(1).json();
        assert_eq!(refused["code"], "E0203");
        assert_eq!(fs::read_dir(&pair.one.folder).unwrap().count(), 0, "nothing was written there");
        pair.other.sync().ok();
        assert_eq!(pair.other.tree(), before);
        fs::remove_dir(&pair.one.folder).unwrap();
        fs::rename(&away, &pair.one.folder).unwrap();
        pair.settle();
        pair.assert_equal();
        assert_eq!(pair.other.tree(), before);
    }
}

#[test]
fn a_mass_deletion_waits_for_a_word() {
    let pair = Pair::synced(false, |device| {
        for number in 0..120 {
            device.write(&format!("files/{number}"), number.to_string());
        }
    });
    let before = pair.other.tree();
    fs::remove_dir_all(pair.one.folder.join("files")).unwrap();
    let refused = pair.one.run(&["sync"]).ends_with(1);
    assert!(
        refused.stderr.contains("E0204") && refused.stderr.contains("--allow-mass-delete --yes"),
        "{}",
        refused.stderr
    );
    pair.other.sync().ok();
    assert_eq!(pair.other.tree(), before);
    let unconfirmed = pair.one.run(&["sync", "--allow-mass-delete"]).ends_with(2);
    assert!(unconfirmed.stderr.contains("--yes"));
    pair.one.run(&["sync", "--allow-mass-delete", "--yes"]).ok();
    pair.other.sync().ok();
    assert!(!pair.other.has("files"));
}

#[test]
fn a_lost_database_is_made_anew_and_nothing_is_deleted() {
    for is_served in BOTH {
        let pair = Pair::synced(is_served, fill);
        for name in ["state.sqlite", "state.sqlite-wal", "state.sqlite-shm"] {
            let _ = fs::remove_file(pair.one.memory().join(name));
        }
        pair.one.write("a.txt", "edited before anybody noticed\n");
        pair.other.write("b", "new on the other\n");
        pair.other.sync().ok();
        let before = pair.other.tree();
        pair.settle();
        pair.assert_equal();
        let after = pair.other.tree();
        assert!(before.keys().all(|path| after.contains_key(path)));
        let kept = after.keys().filter(|path| path.to_string_lossy().contains("conflict")).count();
        assert!(kept <= 1, "without a base only the edited file can be in doubt: {after:?}");
        let texts: Vec<_> = after
            .keys()
            .map(|path| fs::read(pair.one.folder.join(path)).unwrap_or_default())
            .collect();
        for text in ["edited before anybody noticed\n", "new on the other\n"] {
            assert!(texts.iter().any(|found| found == text.as_bytes()), "{text}");
        }
    }
}

#[test]
fn a_damaged_database_is_moved_aside_and_made_anew() {
    let pair = Pair::synced(false, fill);
    let database = pair.one.memory().join("state.sqlite");
    for name in ["state.sqlite-wal", "state.sqlite-shm"] {
        let _ = fs::remove_file(pair.one.memory().join(name));
    }
    fs::write(&database, b"this is no database, but it has been one before; now it is some text")
        .unwrap();
    pair.one.write("a.txt", "goes on\n");
    let run = pair.one.sync();
    assert!([0, 5].contains(&run.code), "{run:?}");
    assert!(run.stderr.contains("damaged"), "{}", run.stderr);
    assert!(pair.one.memory().join("state.sqlite.damaged-1").exists());
    pair.settle();
    pair.assert_equal();
}

#[test]
fn yesterdays_database_loses_nothing() {
    for is_served in BOTH {
        let pair = Pair::synced(is_served, fill);
        let (memory, aside) = (pair.one.memory(), pair.room.path().join("yesterday"));
        fs::create_dir(&aside).unwrap();
        let copy = |from: &std::path::Path, to: &std::path::Path| {
            for name in ["state.sqlite", "state.sqlite-wal"] {
                let _ = fs::remove_file(to.join(name));
                let _ = fs::copy(from.join(name), to.join(name));
            }
            let _ = fs::remove_file(to.join("state.sqlite-shm"));
        };
        copy(&memory, &aside);
        pair.one.write("a.txt", "today\n");
        pair.one.write("today", "new\n");
        pair.settle();
        let before = pair.other.tree();
        copy(&aside, &memory);
        pair.settle();
        pair.assert_equal();
        let after = pair.other.tree();
        for (path, text) in &before {
            assert_eq!(after.get(path), Some(text), "{}", path.display());
        }
        assert_eq!(after.len(), before.len(), "there is no bogus conflict: {after:?}");
    }
}

#[test]
fn a_newer_database_is_refused_and_left_alone() {
    let pair = Pair::synced(false, fill);
    let database = pair.one.memory().join("state.sqlite");
    // SQLite keeps the version of the schema in these four bytes of the header.
    let mut bytes = fs::read(&database).unwrap();
    bytes[60..64].copy_from_slice(&999_u32.to_be_bytes());
    fs::write(&database, bytes).unwrap();
    let refused = pair.one.sync().ends_with(1).json();
    assert_eq!(refused["code"], "E0304");
    assert!(!pair.one.memory().join("state.sqlite.damaged-1").exists());
}

#[test]
fn a_second_process_is_told_that_the_folder_is_taken() {
    let pair = Pair::synced(true, fill);
    let mut watch = crate::background::start_watch(&pair.one);
    pair.one.sync().ends_with(11);
    // Another home on the same folder is no way around it.
    let thief = Device { home: pair.room.path().join("thief"), folder: pair.one.folder.clone() };
    pair.server.as_ref().unwrap().login(&thief, "thief");
    thief.run(&["clone", "Notes", thief.folder.to_str().unwrap()]).ends_with(11);
    // Looking is always possible.
    pair.one.run(&["status"]).ok();
    pair.one.run(&["log", "a.txt"]).ok();
    assert_eq!(terminate(&mut watch, rustix::process::Signal::INT), Some(130));
    pair.one.sync().ok();
}

/// A second folder in the home of a device, with a workspace of its own in a store.
fn second_folder(pair: &Pair) -> Device {
    let folder = pair.room.path().join("second");
    fs::create_dir(&folder).unwrap();
    let second = Device { home: pair.one.home.clone(), folder: folder.canonicalize().unwrap() };
    second.write("second.txt", "in the second folder\n");
    let store = format!("other=file:{}", pair.room.path().join("other-store").display());
    second.run(&["init", "--workspace", "Second", "--plain", "--backend", &store]).ok();
    second
}

#[test]
fn two_processes_never_change_one_home_at_once() {
    let pair = Pair::synced(true, fill);
    let second = second_folder(&pair);
    let mut watch = crate::background::start_watch(&pair.one);
    let refused = second.run(&["sync", "--json"]).ends_with(11).json();
    assert_eq!(refused["code"], "E0205");
    assert!(refused["cause"].as_str().unwrap().contains(pair.one.folder.to_str().unwrap()));
    let stop = refused["help"][0].as_str().unwrap();
    assert_eq!(stop, format!("syncline daemon stop {}", pair.one.folder.display()));
    for words in [
        &["checkin"][..],
        &["fetch"],
        &["merge"],
        &["push"],
        &["up"],
        &["down"],
        &["init", "../third", "--plain", "--backend", "x=memory:"],
        &["clone", "Notes", "../third"],
        &["logout"],
        &["device", "rename", "laptop", "notebook"],
    ] {
        second.run(words).ends_with(11);
    }
    let words = ["login", &pair.server.as_ref().unwrap().url, "--user", "ada", "--password-stdin"];
    second.run_with_input(&words, "correct horse").ends_with(11);
    // Looking is always possible, and a home may serve while it syncs.
    for words in [&["status"][..], &["ls"], &["conflicts"], &["whoami"], &["device", "ls"]] {
        second.run(words).ok();
    }
    second.run_with_input(&["user", "add", "eve", "--password-stdin"], "another one").ok();
    assert_eq!(terminate(&mut watch, rustix::process::Signal::INT), Some(130));
    second.sync().ok();
}

#[test]
fn watches_of_several_folders_share_a_home_and_nobody_comes_between() {
    let pair = Pair::synced(false, fill);
    let second = second_folder(&pair);
    second.sync().ok();
    let mut watches =
        [crate::background::start_watch(&pair.one), crate::background::start_watch(&second)];
    // What steps in for a moment works beside both.
    pair.one.run(&["restore", "a.txt", "--at", "v1", "--to", "again.txt"]).ok();
    crate::background::wait_until("the watch sends what was restored", || {
        pair.other.sync().ok();
        pair.other.has("again.txt")
    });
    for watch in &mut watches {
        second.run(&["sync"]).ends_with(11);
        assert_eq!(terminate(watch, rustix::process::Signal::INT), Some(130));
    }
    second.sync().ok();
}

#[test]
fn a_copied_folder_is_recognised() {
    let pair = Pair::synced(false, fill);
    let copy = pair.room.path().join("copy");
    let copied = std::process::Command::new("cp")
        .arg("-a")
        .arg(&pair.one.folder)
        .arg(&copy)
        .status()
        .unwrap();
    assert!(copied.success());
    let refused = pair.one.run(&["sync", copy.to_str().unwrap(), "--json"]).ends_with(1).json();
    assert_eq!(refused["code"], "E0203");
    pair.one.sync().ok();
}

#[test]
fn a_copied_home_is_another_device() {
    let pair = Pair::synced(true, fill);
    let mut watch = crate::background::start_watch(&pair.one);
    // A watch says that it watches before the server knows of it.
    pair.one.write("connected", "");
    crate::background::wait_until("the watch is connected", || {
        pair.other.sync().ok();
        pair.other.has("connected")
    });
    let home = pair.room.path().join("copied home");
    assert!(
        std::process::Command::new("cp")
            .arg("-a")
            .arg(&pair.one.home)
            .arg(&home)
            .status()
            .unwrap()
            .success()
    );
    let copy = pair.room.path().join("copied folder");
    fs::rename(&pair.other.folder, &copy).unwrap();
    let copy = Device { home, folder: copy.canonicalize().unwrap() };
    let words = ["clone", "Notes", "fresh", "--json"];
    let refused = copy.run(&words).ends_with(4).json();
    assert_eq!(refused["code"], "E0405");
    terminate(&mut watch, rustix::process::Signal::TERM);
}

#[test]
fn a_server_that_is_away_is_waited_for() {
    let mut pair = Pair::synced(true, fill);
    pair.server.as_mut().unwrap().stop();
    pair.one.write("a.txt", "meanwhile\n");
    let refused = pair.one.sync().ends_with(6).json();
    assert_eq!(refused["code"], "E0412");
    assert_eq!(pair.one.read("a.txt"), b"meanwhile\n");
    pair.one.run(&["doctor"]).ends_with(1);
}

#[test]
fn a_store_that_is_not_mounted_is_not_an_empty_store() {
    let pair = Pair::synced(false, fill);
    let before = pair.one.tree();
    let away = pair.room.path().join("away");
    fs::rename(pair.store(), &away).unwrap();
    for _ in 0..2 {
        let refused = pair.one.sync().ends_with(6).json();
        assert_eq!(refused["code"], "E0413");
    }
    assert!(!pair.store().exists(), "nothing is made in its place");
    assert_eq!(pair.one.tree(), before);
    fs::create_dir(pair.store()).unwrap();
    let empty = pair.one.sync();
    assert_ne!(empty.code, 0, "an empty folder is not the store: {empty:?}");
    assert_eq!(pair.one.tree(), before);
}

#[test]
fn a_file_that_may_not_be_read_is_named_and_the_rest_goes() {
    if rustix::process::geteuid().is_root() {
        // Nothing is unreadable to the superuser; a directory in place of a store is refused below all the same.
        return;
    }
    let pair = Pair::synced(false, fill);
    pair.one.write("secret", "x");
    fs::set_permissions(pair.one.folder.join("secret"), fs::Permissions::from_mode(0o000)).unwrap();
    pair.one.write("plain", "y");
    let summary = pair.one.sync().ends_with(3).json();
    assert_eq!(summary["problems"][0]["path"], "secret");
    pair.other.sync().ok();
    assert!(pair.other.has("plain"));
}

#[test]
fn a_file_replaced_by_a_folder_and_back_arrives() {
    for is_served in BOTH {
        let pair = Pair::synced(is_served, fill);
        fs::remove_file(pair.one.folder.join("a.txt")).unwrap();
        pair.one.write("a.txt/inside", "now a folder\n");
        pair.settle();
        pair.assert_equal();
        fs::remove_dir_all(pair.other.folder.join("a.txt")).unwrap();
        pair.other.write("a.txt", "a file again\n");
        pair.other.sync().ok();
        pair.settle();
        pair.assert_equal();
        assert_eq!(tree(&pair.one.folder).len(), pair.one.tree().len());
    }
}

#[test]
fn swaps_and_chains_of_names_arrive() {
    for is_served in BOTH {
        let pair = Pair::synced(is_served, |device| {
            for name in ["x", "y", "z"] {
                device.write(name, format!("I am {name}\n"));
            }
        });
        let path = |name: &str| pair.one.folder.join(name);
        fs::rename(path("x"), path("t")).unwrap();
        fs::rename(path("y"), path("x")).unwrap();
        fs::rename(path("z"), path("y")).unwrap();
        fs::rename(path("t"), path("z")).unwrap();
        pair.settle();
        pair.assert_equal();
        assert_eq!(pair.other.read("x"), b"I am y\n");
        assert_eq!(pair.other.read("z"), b"I am x\n");
        pair.other.run(&["conflicts"]).ok();
    }
}

#[test]
fn names_of_any_bytes_arrive() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let pair = Pair::synced(false, |device| {
        let long = "n".repeat(255);
        for name in [
            OsStr::from_bytes(b"not \xff utf-8"),
            OsStr::new(&long),
            OsStr::new("CASE"),
            OsStr::new("case"),
            OsStr::new("e\u{301}"),
            OsStr::new("\u{e9}"),
        ] {
            fs::write(device.folder.join(name), name.as_bytes()).unwrap();
        }
    });
    pair.assert_equal();
    assert_eq!(pair.other.tree().len(), 6);
}
