//! Workspaces in several stores, of which some may be gone.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

use crate::support::{Device, Run, fill, noise, tree};

/// Some folders as stores, and two devices.
pub(crate) struct Several {
    pub(crate) room: tempfile::TempDir,
    pub(crate) one: Device,
    pub(crate) other: Device,
}

impl Several {
    /// Two devices of one workspace in `count` stores; the first has synced what `fill` made.
    pub(crate) fn synced(count: usize, words: &[&str]) -> Self {
        let room = tempfile::tempdir().unwrap();
        let (one, other) = (Device::new(room.path(), "one"), Device::new(room.path(), "other"));
        let this = Self { room, one, other };
        fill(&this.one);
        let backends: Vec<String> = (0..count).map(|number| this.backend(number)).collect();
        let mut all = vec!["init", "--workspace", "Notes", "--plain"];
        all.extend(backends.iter().flat_map(|backend| ["--backend", backend]));
        all.extend(words);
        this.one.run(&all).ok();
        this.one.sync().ok();
        // One store leads to the others.
        this.clone_into(&this.other, count - 1);
        this
    }

    pub(crate) fn store(&self, number: usize) -> PathBuf {
        self.room.path().join(format!("store{number}"))
    }

    fn backend(&self, number: usize) -> String {
        format!("s{number}=file:{}", self.store(number).display())
    }

    pub(crate) fn clone_into(&self, device: &Device, from: usize) {
        let folder = device.folder.to_str().unwrap();
        device.run(&["clone", "Notes", folder, "--backend", &self.backend(from)]).ok();
    }

    pub(crate) fn lose(&self, number: usize) {
        fs::rename(self.store(number), self.room.path().join(format!("gone{number}"))).unwrap();
    }

    fn bring_back(&self, number: usize) {
        fs::rename(self.room.path().join(format!("gone{number}")), self.store(number)).unwrap();
    }

    pub(crate) fn settle(&self) {
        for device in [&self.one, &self.other, &self.one] {
            device.sync().ok();
        }
        assert_eq!(tree(&self.one.folder), tree(&self.other.folder));
    }
}

const KINDS: [&[&str]; 2] = [&["--replicas", "2"], &["--erasure", "3/5"]];

#[test]
fn two_of_five_stores_are_gone_and_both_devices_go_on() {
    for (kind, gone) in [(KINDS[0], &[1][..]), (KINDS[1], &[1, 3])] {
        let several = Several::synced(5, kind);
        assert_eq!(tree(&several.one.folder), tree(&several.other.folder));
        for &number in gone {
            several.lose(number);
        }
        several.one.write("made by one", noise(300_000));
        several.other.write("made by the other", noise(5 << 20));
        several.settle();
        // A new device needs only what is left.
        let third = Device::new(several.room.path(), "third");
        several.clone_into(&third, 0);
        assert_eq!(third.tree(), several.one.tree());
        // Everything is back, and lacks what was written meanwhile, until somebody repairs it.
        for &number in gone {
            several.bring_back(number);
        }
        several.settle();
        several.other.run(&["check", "--repair"]).ok();
        let found = several.one.run(&["check", "--read-data", "--json"]).ok().json();
        assert_eq!((&found["missing"], &found["damaged"]), (&0.into(), &0.into()), "{found}");
    }
}

#[test]
fn store_that_was_emptied_gets_everything_back() {
    for kind in KINDS {
        let several = Several::synced(5, kind);
        let inside = |number| {
            let mut entries = fs::read_dir(several.store(number).join("workspaces")).unwrap();
            entries.next().unwrap().unwrap().path()
        };
        let has_data = |number: &usize| {
            ["packs", "blocks"].iter().any(|kind| inside(*number).join(kind).exists())
        };
        let emptied = (0..5).find(has_data).unwrap();
        for kind in ["packs", "pages", "blocks"] {
            let _ = fs::remove_dir_all(inside(emptied).join(kind));
        }
        let found = several.one.run(&["check", "--json"]).ends_with(3).json();
        assert!(found["missing"].as_u64() > Some(0) && found["lost"] == 0, "{found}");
        let found = several.one.run(&["check", "--repair", "--json"]).ok().json();
        assert!(found["repaired"].as_u64() > Some(0), "{found}");
        several.other.run(&["check", "--read-data"]).ok();
    }
}

#[test]
fn what_no_store_has_any_more_is_named_file_by_file_and_put_back_by_who_has_it() {
    for kind in KINDS {
        let several = Several::synced(5, kind);
        several.one.write("lost.bin", noise(400_000));
        several.one.sync().ok();
        let mut removed = 0;
        for number in 0..5 {
            let mut waiting = vec![several.store(number)];
            while let Some(path) = waiting.pop() {
                let text = path.to_string_lossy().into_owned();
                if path.is_dir() {
                    waiting.extend(fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
                } else if (text.contains("/packs/") || text.contains("/blocks/"))
                    && (100_000..500_000).contains(&path.metadata().unwrap().len())
                {
                    fs::remove_file(path).unwrap();
                    removed += 1;
                }
            }
        }
        assert!(removed > 1);
        let found = several.other.run(&["check", "--repair", "--json"]).ends_with(8).json();
        let lost = found["lost_versions"].as_array().unwrap();
        assert_eq!(lost.len(), 1, "{found}");
        assert_eq!((&lost[0]["path"], &lost[0]["is_current"]), (&"lost.bin".into(), &true.into()));
        let found = several.one.run(&["check", "--repair", "--json"]).ok().json();
        assert!(found["put_back_packs"].as_u64() > Some(0), "{found}");
        several.settle();
        let found = several.other.run(&["check", "--read-data", "--json"]).ok().json();
        assert_eq!((&found["missing"], &found["lost"]), (&0.into(), &0.into()), "{found}");
    }
}

#[test]
fn store_that_is_added_takes_its_share_and_gives_it_back_when_it_is_drained() {
    let several = Several::synced(3, KINDS[0]);
    let url = format!("file:{}", several.store(7).display());
    several.one.run(&["backend", "add", "new", &url, "--capacity", "1000"]).ok();
    several.other.write("after the change", noise(2 << 20));
    several.settle();
    let listed = several.other.run(&["backend", "ls", "--json"]).ok().json();
    assert_eq!(listed["stores"].as_array().unwrap().len(), 4, "{listed}");
    // What the other wrote before it heard of the change lies where the older pool wanted it.
    several.other.run(&["check", "--repair"]).ok();
    several.one.run(&["backend", "add", "new", &url]).ends_with(1);
    several.one.run(&["backend", "rm", "nobody"]).ends_with(2);
    several.one.run(&["backend", "rm", "new"]).ok();
    several.lose(7);
    several.settle();
    several.other.run(&["check", "--read-data"]).ok();
    let third = Device::new(several.room.path(), "third");
    several.clone_into(&third, 1);
    assert_eq!(third.tree(), several.one.tree());
}

#[test]
fn what_is_stored_twice_after_a_change_is_removed_by_either_device_and_nothing_else_is() {
    for (kind, width) in [(&["--replicas", "1"][..], 1), (KINDS[0], 2), (KINDS[1], 5)] {
        let several = Several::synced(5, kind);
        for number in 0..8 {
            // Nothing like each other: each is a pack of its own, and some of them move.
            several.one.write(&format!("file{number}"), noise_like(number, 300_000));
            several.one.sync().ok();
        }
        let before = several.one.run(&["check", "--json"]).ok().json();
        assert!(before["objects"].as_u64() >= Some(8), "{before}");
        assert_eq!(before["pieces"], before["objects"].as_u64().unwrap() * width, "{before}");
        let url = format!("file:{}", several.store(7).display());
        let added =
            several.one.run(&["backend", "add", "new", &url, "--capacity", "1000", "--json"]);
        assert!(added.ok().json()["removed"].as_u64() > Some(0));
        let after = several.other.run(&["check", "--read-data", "--json"]).ok().json();
        assert_eq!(after["pieces"], after["objects"].as_u64().unwrap() * width, "{after}");
        assert_eq!((&after["surplus"], &after["missing"]), (&0.into(), &0.into()), "{after}");
        // The other way round, with a store away for the removal.
        several.lose(1);
        several.other.run(&["backend", "set", "new", "--capacity", "1"]).ok();
        several.other.run(&["backend", "rebalance"]).ends_with(3);
        several.bring_back(1);
        several.one.sync().ok();
        several.one.run(&["check", "--repair"]).ok();
        let done = several.other.run(&["backend", "rebalance", "--json"]).ok().json();
        assert_eq!(done["failed"], 0, "{done}");
        let after = several.one.run(&["check", "--read-data", "--json"]).ok().json();
        assert_eq!(after["pieces"], after["objects"].as_u64().unwrap() * width, "{after}");
        assert_eq!((&after["surplus"], &after["lost"]), (&0.into(), &0.into()), "{after}");
        let third = Device::new(several.room.path(), "third");
        several.clone_into(&third, 0);
        assert_eq!(third.tree(), several.one.tree());
    }
}

#[test]
fn with_too_many_stores_gone_nothing_is_lost_and_the_error_names_them() {
    let several = Several::synced(3, KINDS[0]);
    several.lose(0);
    several.lose(1);
    several.one.write("waits", "for the stores\n");
    let run = several.one.sync().ends_with(6);
    assert!(run.stdout.contains("s0") && run.stdout.contains("s1"), "{}", run.stdout);
    several.bring_back(0);
    several.bring_back(1);
    several.settle();
    assert_eq!(several.other.read("waits"), b"for the stores\n");
}

#[test]
fn what_a_dead_device_left_half_written_is_not_called_lost() {
    let several = Several::synced(5, KINDS[1]);
    let blocks = |number| {
        let mut workspaces = fs::read_dir(several.store(number).join("workspaces")).unwrap();
        workspaces.next().unwrap().unwrap().path().join("blocks")
    };
    // One block of a pack that the log does not name: too few to give it back.
    let folder = blocks(0).join("ab");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(format!("{}.p3-5-0", "ab".repeat(32))), noise(1000)).unwrap();
    for words in [&["check", "--json"][..], &["check", "--read-data", "--repair", "--json"]] {
        let found = several.one.run(words).ok().json();
        assert_eq!((&found["lost"], &found["missing"]), (&0.into(), &0.into()), "{found}");
    }
}

#[test]
fn two_devices_that_rebalance_at_once_lose_nothing() {
    let several = Several::synced(3, KINDS[0]);
    for number in 0..8 {
        several.one.write(&format!("large/{number}"), noise_like(number, 300_000));
    }
    several.settle();
    let url = format!("file:{}", several.store(9).display());
    several.one.run(&["backend", "add", "new", &url, "--capacity", "1"]).ok();
    several.one.run(&["backend", "set", "new", "--capacity", "1000"]).ok();
    several.settle();
    let packs_of_new = || {
        let there = tree(&several.store(9));
        there
            .keys()
            .filter(|path| path.components().any(|part| part.as_os_str() == "packs"))
            .count()
    };
    assert_eq!(packs_of_new(), 0);
    let children = [&several.one, &several.other].map(|device| {
        let mut command = device.command(&["backend", "rebalance", "--json"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    });
    let runs = children.map(|child| Run::of(child.wait_with_output().unwrap()));
    // Done, done in part, or told that it is the turn of the other.
    let is_fine = |run: &Run| match run.code {
        0 | 3 => true,
        _ => ["E0211", "E0212"].iter().any(|code| run.stdout.contains(code)),
    };
    assert!(runs.iter().all(is_fine), "{runs:?}");
    // Where each came into the other's way, what there is to move is moved now.
    let last = several.one.run(&["backend", "rebalance", "--json"]).ok();
    // Counts say less: who is told that it is the turn of the other tells what it has written in words only.
    assert!(packs_of_new() > 0, "{runs:?} {last:?}");
    several.other.run(&["check", "--repair"]).ok();
    let found = several.one.run(&["check", "--read-data", "--json"]).ok().json();
    assert_eq!((&found["missing"], &found["damaged"]), (&0.into(), &0.into()), "{found}");
    let third = Device::new(several.room.path(), "third");
    several.clone_into(&third, 1);
    assert_eq!(third.tree(), several.one.tree());
}

/// Bytes that do not compress, others for each number.
fn noise_like(number: u8, length: usize) -> Vec<u8> {
    noise(length).into_iter().map(|byte| byte ^ (number + 1)).collect()
}

#[test]
fn cleanup_removes_packs_from_all_stores_and_from_one_that_was_away_later() {
    for kind in KINDS {
        let several = Several::synced(5, kind);
        several.one.write("big.bin", noise(100_000));
        several.settle();
        several.lose(1);
        let words = ["cleanup", "--keep", "deleted:0s", "--json"];
        let done = several.one.run(&words);
        assert!([0, 3].contains(&done.code), "{done:?}");
        assert_eq!(done.json()["removed_versions"], 1);
        several.bring_back(1);
        let again = several.other.run(&["cleanup", "--json"]).ok().json();
        assert_eq!(again["left_packs"], 0);
        several.settle();
        several.one.run(&["check", "--repair"]).ok();
        several.one.run(&["check", "--read-data"]).ok();
        let third = Device::new(several.room.path(), "third");
        several.clone_into(&third, 0);
        assert_eq!(third.tree(), several.one.tree());
    }
}

#[test]
fn sync_says_which_store_is_away_and_does_not_go_on_about_it() {
    let several = Several::synced(3, &["--replicas", "2"]);
    let words = "'s1' is away since";
    let whole = several.one.sync().ok();
    assert!(!whole.stderr.contains("is away"), "{whole:?}");
    several.lose(1);
    several.one.write("meanwhile", noise(200_000));
    let told = several.one.sync().ok();
    assert!(told.stderr.contains(words), "{told:?}");
    assert!(told.stderr.contains("2 of 2 copies, and no further store may fail"), "{told:?}");
    assert!(told.stderr.contains("syncline backend check s1"), "{told:?}");
    // It was said; programs are told each time.
    let again = several.one.sync().ok();
    assert!(!again.stderr.contains("is away"), "{again:?}");
    let json = several.one.run(&["sync", "--json"]).ok().json();
    let away = json["stores_away"].as_array().unwrap();
    assert_eq!((away.len(), &away[0]["name"]), (1, &"s1".into()), "{json}");
    several.bring_back(1);
    let json = several.one.run(&["sync", "--json"]).ok().json();
    assert_eq!(json["stores_away"].as_array().map(Vec::len), Some(0), "{json}");
    // Away once more is news.
    several.lose(1);
    let told = several.one.sync().ok();
    assert!(told.stderr.contains(words), "{told:?}");
}
