//! End-to-end encrypted workspaces, as people and as thieves of a store meet them.

use std::fs;
use std::path::{Path, PathBuf};

use content::documents::photograph;
use content::pack::SEALED_PICTURE_PACK_VERSION;

use crate::support::{Device, Run, fill, noise};

/// Names and contents that must stand nowhere in a store.
const NAME: &str = "canary-name-of-a-file";
const CONTENT: &str = "canary-content-of-a-file";
const WORKSPACE: &str = "canary-workspace";

/// The size of a file that must not show.
const SIZE: usize = 1_234_567;

/// Devices, a store, and files with passphrases.
struct Room {
    room: tempfile::TempDir,
}

impl Room {
    fn new() -> Self {
        Self { room: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> &Path {
        self.room.path()
    }

    fn device(&self, name: &str) -> Device {
        Device::new(self.path(), name)
    }

    fn store(&self) -> PathBuf {
        self.path().join("store")
    }

    fn backend(&self) -> String {
        format!("disk=file:{}", self.store().display())
    }

    /// Makes a sealed workspace of a device's folder and syncs it. Returns its recovery key.
    fn init(&self, device: &Device, secret: &str) -> String {
        let words = ["init", "--workspace", WORKSPACE, "--backend", &self.backend(), "--json"];
        let made = device.run_with_passphrase(secret, &words).ok().json();
        assert_eq!(made["is_sealed"], true);
        device.sync().ok();
        made["recovery_key"].as_str().unwrap().to_owned()
    }

    fn clone(&self, device: &Device, secret: &str) -> Run {
        let folder = device.folder.to_str().unwrap();
        device.run_with_passphrase(
            secret,
            &["clone", WORKSPACE, folder, "--backend", &self.backend(), "--json"],
        )
    }

    /// Every object in the store, with its path there.
    fn objects(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let (mut found, mut waiting) = (Vec::new(), vec![self.store()]);
        while let Some(directory) = waiting.pop() {
            for entry in fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => waiting.push(path),
                    false => found.push((path.clone(), fs::read(&path).unwrap())),
                }
            }
        }
        found
    }
}

#[test]
fn two_devices_share_a_sealed_workspace_and_are_asked_once() {
    let room = Room::new();
    let (one, other) = (room.device("one"), room.device("other"));
    fill(&one);
    room.init(&one, "correct horse");
    room.clone(&other, "correct horse").ok();
    assert_eq!(one.tree(), other.tree());
    other.write("deep/new.txt", "from the other");
    one.write("a.txt", "edited");
    // Nobody is there to answer, and no file holds the passphrase.
    for device in [&other, &one, &other] {
        device.sync().ok();
    }
    assert_eq!(one.tree(), other.tree());
    assert_eq!(one.read("deep/new.txt"), b"from the other");
    let status = other.run(&["status", "--json"]).ok().json();
    assert_eq!(status["workspace"], WORKSPACE);
    let log = one.run(&["log", "a.txt", "--json"]).ok();
    assert_eq!(log.json()["versions"].as_array().unwrap().len(), 2, "{}", log.stdout);
    assert_eq!(one.run(&["cat", "a.txt", "--at", "v1"]).ok().bytes, b"first\n");
}

#[test]
fn photographs_come_out_of_sealed_packs_as_they_were() {
    let room = Room::new();
    let (one, other) = (room.device("one"), room.device("other"));
    for number in 0..12 {
        let title = format!("walk {number}");
        one.write(&format!("{title}.jpg"), photograph(title.as_bytes()));
    }
    room.init(&one, "correct horse");
    // Of packs in their shorter form the version is seen, and nothing else.
    let version = [&[SEALED_PICTURE_PACK_VERSION][..], b"PACKEND"].concat();
    assert!(room.objects().iter().any(|(_, bytes)| bytes.ends_with(&version)));
    room.clone(&other, "correct horse").ok();
    assert_eq!(one.tree(), other.tree());
    other.write("walk 3.jpg", photograph(b"a walk in the rain"));
    for device in [&other, &one] {
        device.sync().ok();
    }
    assert!(one.read("walk 3.jpg") == photograph(b"a walk in the rain"));
}

#[test]
fn wrong_passphrase_ends_with_12_and_the_same_words_whatever_is_wrong() {
    let room = Room::new();
    let (one, elsewhere) = (room.device("one"), Room::new());
    one.write("file", "x");
    room.init(&one, "correct horse");
    let stranger = elsewhere.device("stranger");
    let recovery_of_another = elsewhere.init(&stranger, "correct horse");
    let other = room.device("other");
    let mut words = Vec::new();
    for secret in ["correct horsf", "x", "", &recovery_of_another] {
        let refused = room.clone(&other, secret).ends_with(12);
        words.push(refused.json().to_string());
        assert!(!other.has(".syncline"), "nothing was changed");
    }
    let by_id = fs::read_dir(room.store().join("workspaces")).unwrap().next().unwrap().unwrap();
    let id = by_id.file_name().into_string().unwrap();
    let clone = ["clone", &id, "there", "--backend", &room.backend(), "--json"];
    words.push(other.run_with_passphrase("wrong again", &clone).ends_with(12).json().to_string());
    // The right passphrase, and locked keys of which a bit is flipped.
    let keys =
        room.objects().into_iter().find(|(path, _)| path.to_string_lossy().contains("/keys/"));
    let (path, mut bytes) = keys.unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(path, bytes).unwrap();
    words.push(room.clone(&other, "correct horse").ends_with(12).json().to_string());
    assert!(words.windows(2).all(|pair| pair[0] == pair[1]), "{words:#?}");
}

#[test]
fn passphrase_changes_without_asking_other_devices() {
    let room = Room::new();
    let (one, other, third) = (room.device("one"), room.device("other"), room.device("third"));
    one.write("file", "x");
    let recovery = room.init(&one, "correct horse");
    room.clone(&other, "correct horse").ok();
    let before = room.objects().len();
    let next = one.passphrase_file("battery staple");
    let change = ["key", "change-passphrase", "--new-passphrase-file", &next];
    one.run_with_passphrase("wrong guess", &change).ends_with(12);
    one.run_with_passphrase("correct horse", &change).ok();
    assert_eq!(room.objects().len(), before, "the old keys are gone, and no data is new");
    room.clone(&third, "correct horse").ends_with(12);
    room.clone(&third, "battery staple").ok();
    other.write("file", "y");
    for device in [&other, &one, &third] {
        device.sync().ok();
    }
    assert_eq!(third.read("file"), b"y");
    let shown =
        third.run_with_passphrase("battery staple", &["key", "show-recovery", "--json"]).ok();
    assert_eq!(shown.json()["recovery_key"], recovery.as_str());
}

#[test]
fn recovery_key_opens_the_workspace_and_sets_a_new_passphrase() {
    let room = Room::new();
    let (one, other, third) = (room.device("one"), room.device("other"), room.device("third"));
    one.write("file", "x");
    let recovery = room.init(&one, "soon forgotten");
    room.clone(&other, &recovery.to_lowercase()).ok();
    assert_eq!(other.read("file"), b"x");
    let next = one.passphrase_file("battery staple");
    other
        .run_with_passphrase(
            &recovery,
            &["key", "change-passphrase", "--new-passphrase-file", &next],
        )
        .ok();
    room.clone(&third, "battery staple").ok();
    assert_eq!(third.read("file"), b"x");
}

#[test]
fn device_without_the_newest_key_waits_for_the_passphrase_and_loses_nothing() {
    let room = Room::new();
    let (one, other) = (room.device("one"), room.device("other"));
    one.write("file", "x");
    room.init(&one, "correct horse");
    room.clone(&other, "correct horse").ok();
    one.run_with_passphrase("correct horse", &["key", "rotate"]).ok();
    one.write("file", "after the rotation");
    one.sync().ok();
    other.write("mine", "written meanwhile");
    let waits = other.sync().ends_with(2).json();
    assert_eq!(waits["code"], "E0102");
    assert_eq!(
        (other.read("file"), other.read("mine")),
        (b"x".into(), b"written meanwhile".into())
    );
    other.run_with_passphrase("wrong guess", &["sync", "--json"]).ends_with(12);
    other.run_with_passphrase("correct horse", &["sync", "--json"]).ok();
    one.sync().ok();
    assert_eq!(one.tree(), other.tree());
    assert_eq!(other.read("file"), b"after the rotation");
    let third = room.device("third");
    room.clone(&third, "correct horse").ok();
    assert_eq!(third.tree(), one.tree());
}

#[test]
fn passphrase_changes_while_a_store_is_away_and_that_one_is_told_later() {
    let room = Room::new();
    let (one, other) = (room.device("one"), room.device("other"));
    one.write("file", "x");
    let backend = |number: u8| format!("s{number}=file:{}/s{number}", room.path().display());
    let mut words = vec!["init".to_owned(), "--workspace".to_owned(), WORKSPACE.to_owned()];
    words.extend((0..3).flat_map(|number| ["--backend".to_owned(), backend(number)]));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    one.run_with_passphrase("correct horse", &words).ok();
    one.sync().ok();
    let place = |number: u8| room.path().join(format!("s{number}"));
    let away = |number: u8| fs::rename(place(number), room.path().join("away")).unwrap();
    let back = |number: u8| fs::rename(room.path().join("away"), place(number)).unwrap();
    let clone = |secret: &str, device: &Device, number: u8| {
        let (folder, backend) = (device.folder.to_str().unwrap(), backend(number));
        device.run_with_passphrase(
            secret,
            &["clone", WORKSPACE, folder, "--backend", &backend, "--sealed"],
        )
    };
    let generations = |number: u8| {
        let workspaces = place(number).join("workspaces");
        let inside = fs::read_dir(workspaces).unwrap().next().unwrap().unwrap().path();
        let keys = fs::read_dir(inside.join("keys")).unwrap();
        let mut names: Vec<_> = keys.map(|key| key.unwrap().file_name()).collect();
        names.sort();
        names.iter().map(|name| name.to_str().unwrap().parse::<u64>().unwrap()).collect::<Vec<_>>()
    };
    away(1);
    let next = one.passphrase_file("battery staple");
    let change = ["key", "change-passphrase", "--new-passphrase-file", &next];
    one.run_with_passphrase("correct horse", &change).ok();
    back(1);
    assert_eq!([0, 1, 2].map(generations), [vec![2], vec![1], vec![2]]);
    // Whoever is led by the store that has missed it needs the new passphrase, too.
    clone("correct horse", &other, 1).ends_with(12);
    clone("battery staple", &other, 1).ok();
    one.sync().ok();
    assert_eq!([0, 1, 2].map(generations), [vec![2], vec![2], vec![2]]);
    // With most of them away nothing changes.
    away(1);
    fs::rename(place(2), room.path().join("away too")).unwrap();
    let next = one.passphrase_file("third time");
    let change = ["key", "change-passphrase", "--new-passphrase-file", &next];
    one.run_with_passphrase("battery staple", &change).ends_with(6);
    back(1);
    fs::rename(room.path().join("away too"), place(2)).unwrap();
    assert_eq!([0, 1, 2].map(generations), [vec![2], vec![2], vec![2]]);
    // Any device repairs what was missed.
    away(0);
    one.run_with_passphrase("battery staple", &change).ok();
    back(0);
    other.run(&["check", "--repair"]).ok();
    assert_eq!([0, 1, 2].map(generations), [vec![3], vec![3], vec![3]]);
}

#[test]
fn new_device_joins_by_a_code_that_serves_once() {
    let room = Room::new();
    let (one, other, third) = (room.device("one"), room.device("other"), room.device("third"));
    fill(&one);
    room.init(&one, "correct horse");
    // Who does not know the passphrase lets nobody in.
    let (mut refused, code) = one.pair("wrong guess");
    assert_eq!((refused.wait().unwrap().code(), code.as_str()), (Some(12), "E0601"));
    let before = room.objects().len();
    let (mut child, code) = one.pair("correct horse");
    let backend = room.backend();
    let join = |device: &Device, code: &str| {
        let folder = device.folder.to_str().unwrap().to_owned();
        let words =
            ["clone", WORKSPACE, &folder, "--backend", &backend, "--pair", "--yes", "--json"];
        device.run_with_passphrase(code, &words)
    };
    let mut slip = code.clone().into_bytes();
    slip[0] = if slip[0] == b'0' { b'1' } else { b'0' };
    join(&other, std::str::from_utf8(&slip).unwrap()).ends_with(2);
    join(&other, "0000-0000-0000-0000-0000-0000-0000").ends_with(2);
    assert!(!other.has(".syncline"));
    // Nobody without the code finds anything of it in the store.
    let shown =
        room.objects().into_iter().filter(|(path, _)| path.to_string_lossy().contains("/pairing/"));
    for (path, bytes) in shown {
        let text = String::from_utf8_lossy(&bytes).into_owned() + &path.to_string_lossy();
        assert!(!text.contains(&code) && !text.contains("canary"), "{}", path.display());
    }
    join(&other, &code).ok();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(one.tree(), other.tree());
    assert_eq!(room.objects().len(), before, "no box is left");
    // It is a device like all others, and nobody asks it for the passphrase.
    other.write("from the new one", "x");
    other.sync().ok();
    one.sync().ok();
    assert_eq!(one.read("from the new one"), b"x");
    join(&third, &code).ends_with(12);
    assert!(!third.has(".syncline"));
    // Whoever stops showing the code makes it void.
    let (mut child, code) = one.pair("correct horse");
    crate::support::terminate(&mut child, rustix::process::Signal::INT);
    join(&third, &code).ends_with(12);
    assert_eq!(
        room.objects()
            .iter()
            .filter(|(path, _)| path.to_string_lossy().contains("/pairing/"))
            .count(),
        0
    );
}

#[test]
fn clone_takes_no_plain_workspace_for_a_sealed_one() {
    let room = Room::new();
    let (one, other) = (room.device("one"), room.device("other"));
    one.write("file", "x");
    let backend = room.backend();
    one.run(&["init", "--workspace", WORKSPACE, "--plain", "--backend", &backend]).ok();
    let folder = other.folder.to_str().unwrap();
    let clone = ["clone", WORKSPACE, folder, "--backend", &backend, "--sealed", "--json"];
    let refused = other.run_with_passphrase("correct horse", &clone).ends_with(1).json();
    assert_eq!(refused["code"], "E0604");
    assert!(!other.has(".syncline") && !other.has("file"));
}

#[test]
fn lost_packs_come_back_sealed() {
    let room = Room::new();
    let (one, other) = (room.device("one"), room.device("other"));
    one.write("file", noise(SIZE));
    room.init(&one, "correct horse");
    one.write("file", &noise(SIZE + 9)[9..]);
    one.sync().ok();
    for (path, _) in room.objects() {
        if path.to_string_lossy().contains("/packs/") {
            fs::remove_file(path).unwrap();
        }
    }
    one.run(&["check"]).ends_with(8);
    let found = one.run(&["check", "--repair", "--json"]).ends_with(8).json();
    let lost = found["lost_versions"].as_array().unwrap();
    assert_eq!((lost.len(), &lost[0]["is_current"]), (1, &false.into()), "{found}");
    room.clone(&other, "correct horse").ok();
    assert_eq!(other.read("file"), &noise(SIZE + 9)[9..]);
}

#[test]
fn stolen_store_tells_no_name_content_size_or_device() {
    let room = Room::new();
    let one = room.device("one");
    fs::create_dir_all(&one.home).unwrap();
    fs::write(one.home.join("config.toml"), "device_name = \"canary-device\"\n").unwrap();
    one.write(&format!("{NAME}.txt"), CONTENT.repeat(40));
    one.write(&format!("folder-{NAME}/inside"), noise(SIZE));
    std::os::unix::fs::symlink(format!("target-{NAME}"), one.folder.join("link")).unwrap();
    room.init(&one, "correct horse");
    one.write(&format!("{NAME}.txt"), format!("{CONTENT} is short now"));
    one.sync().ok();
    // Enough entries for a checkpoint, which holds all names.
    for number in 0..300 {
        one.write("counter", format!("{CONTENT} {number}"));
        one.sync().ok();
    }
    let objects = room.objects();
    let kinds = ["/packs/", "/pages/", "/log/", "/checkpoint/", "/keys/", "genesis"];
    for kind in kinds {
        let is_there = |(path, _): &(PathBuf, Vec<u8>)| path.to_string_lossy().contains(kind);
        assert!(objects.iter().any(is_there), "{kind} was searched");
    }
    let mut canaries: Vec<Vec<u8>> =
        [NAME, CONTENT, WORKSPACE, "canary-device", "counter", "inside"]
            .iter()
            .map(|text| text.as_bytes().to_vec())
            .collect();
    canaries.push(noise(64));
    canaries.push(SIZE.to_string().into_bytes());
    canaries.push((SIZE as u64).to_le_bytes().to_vec());
    canaries.push((SIZE as u64).to_be_bytes().to_vec());
    for (path, bytes) in &objects {
        assert_ne!(bytes.len(), SIZE, "{}", path.display());
        let name = path.strip_prefix(room.store()).unwrap().to_string_lossy().into_owned();
        for canary in &canaries {
            let found = |bytes: &[u8]| bytes.windows(canary.len()).any(|window| window == canary);
            let text = String::from_utf8_lossy(canary);
            assert!(!found(bytes) && !found(name.as_bytes()), "'{text}' is in {name}");
            // A compressed envelope hides what is in it from a search, and from nobody else.
            if let Some(plain) = bytes.strip_prefix(&[1]).and_then(unpacked) {
                assert!(!found(&plain), "'{text}' is in {name}, compressed");
            }
        }
        if name.contains("/packs/") || name.contains("/pages/") {
            assert!(bytes.len().is_multiple_of(4096), "{name} has {} bytes", bytes.len());
        }
    }
    // The same search finds them all in a store that may be read.
    let (plain, other) = (Room::new(), room.device("plain"));
    other.write(&format!("{NAME}.txt"), CONTENT);
    let words = ["init", "--plain", "--workspace", WORKSPACE, "--backend", &plain.backend()];
    other.run(&words).ok();
    other.sync().ok();
    let all: Vec<u8> = plain.objects().into_iter().flat_map(|(_, bytes)| bytes).collect();
    for canary in [NAME, CONTENT, WORKSPACE] {
        assert!(all.windows(canary.len()).any(|window| window == canary.as_bytes()), "{canary}");
    }
}

/// Decompresses the envelope of a message at rest, whose last 32 bytes are a checksum.
fn unpacked(frame: &[u8]) -> Option<Vec<u8>> {
    let length = frame.len().checked_sub(32)?;
    zstd::bulk::decompress(&frame[..length], 1 << 24).ok()
}

#[test]
fn keys_in_the_home_are_for_nobody_else() {
    use std::os::unix::fs::PermissionsExt;
    let room = Room::new();
    let one = room.device("one");
    room.init(&one, "correct horse");
    let keys = one.memory().join("keys");
    assert_eq!(fs::metadata(&keys).unwrap().permissions().mode() & 0o777, 0o600);
    // A home that lost its keys asks once more.
    fs::remove_file(&keys).unwrap();
    one.write("file", "x");
    assert_eq!(one.sync().ends_with(2).json()["code"], "E0102");
    one.run_with_passphrase("correct horse", &["sync"]).ok();
    one.sync().ok();
}

#[test]
fn short_passphrase_and_keys_of_a_plain_workspace_are_refused() {
    let room = Room::new();
    let one = room.device("one");
    let words = ["init", "--backend", &room.backend(), "--json"];
    let refused = one.run_with_passphrase("short", &words).ends_with(2).json();
    assert!(refused["headline"].as_str().unwrap().contains("8 characters"), "{refused}");
    assert!(!room.store().exists());
    one.run(&["init", "--plain", "--backend", &room.backend()]).ok();
    one.run_with_passphrase("correct horse", &["key", "rotate"]).ends_with(2);
}

#[test]
fn sealed_workspace_moves_to_another_store_with_its_keys() {
    let (room, secret) = (Room::new(), "passphrase of one");
    let one = room.device("one");
    fill(&one);
    room.init(&one, secret);
    let elsewhere = format!("file:{}", room.path().join("elsewhere").display());
    one.run(&["backend", "add", "elsewhere", &elsewhere]).ok();
    one.run(&["backend", "rm", "disk"]).ok();
    fs::remove_dir_all(room.store()).unwrap();
    one.write("later", noise(200_000));
    one.sync().ok();
    let other = room.device("other");
    let (folder, backend) = (other.folder.to_str().unwrap(), format!("new={elsewhere}"));
    other.run_with_passphrase(secret, &["clone", WORKSPACE, folder, "--backend", &backend]).ok();
    assert_eq!(other.tree(), one.tree());
    other.write("from the other", "small\n");
    other.sync().ok();
    one.sync().ok();
    assert_eq!(other.tree(), one.tree());
}
