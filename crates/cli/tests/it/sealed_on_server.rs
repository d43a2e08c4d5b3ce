//! End-to-end encrypted workspaces on a server: two devices of one account, and whoever gets hold of what the server stores.

use std::fs;
use std::path::Path;

use rusqlite::Connection;
use rusqlite::types::ValueRef;

use crate::support::{Device, Run, Server, fill, noise};

const PASSPHRASE: &str = "correct horse";

/// Names and contents that must stand nowhere on a server.
pub(crate) const NAME: &str = "canary-name-of-a-file";
pub(crate) const CONTENT: &str = "canary-content-of-a-file";
const WORKSPACE: &str = "canary-workspace";

/// The size of a file that must not show.
const SIZE: usize = 1_234_567;

/// A server, and devices that are signed in to it as one account.
pub(crate) struct Room {
    room: tempfile::TempDir,
    pub(crate) server: Server,
}

impl Room {
    fn new() -> Self {
        let room = tempfile::tempdir().unwrap();
        let server = Server::start(room.path());
        Self { room, server }
    }

    pub(crate) fn path(&self) -> &Path {
        self.room.path()
    }

    fn device(&self, name: &str) -> Device {
        let device = Device::new(self.path(), name);
        self.server.login(&device, name);
        device
    }

    /// Makes a sealed workspace of a device's folder and syncs it. Returns its recovery key.
    fn init(&self, device: &Device) -> String {
        let words = ["init", "--sealed", "--workspace", WORKSPACE, "--json"];
        let made = device.run_with_passphrase(PASSPHRASE, &words).ok().json();
        assert_eq!(made["is_sealed"], true);
        device.sync().ok();
        made["recovery_key"].as_str().unwrap().to_owned()
    }

    fn clone(&self, device: &Device, secret: &str) -> Run {
        let folder = device.folder.to_str().unwrap();
        device.run_with_passphrase(secret, &["clone", WORKSPACE, folder, "--sealed", "--json"])
    }

    /// Starts the server again at its address, after it was stopped.
    pub(crate) fn restart(&mut self) {
        let listen = self.server.url.strip_prefix("http://").unwrap().to_owned();
        let operator = Device::new(self.path(), "operator");
        self.server = Server::start_at(&operator, self.server.data.clone(), &listen);
    }
}

/// Two devices with one sealed workspace, of which the first has made and filled it.
pub(crate) fn pair(fill: impl FnOnce(&Device)) -> (Room, Device, Device) {
    let room = Room::new();
    let (one, other) = (room.device("one"), room.device("other"));
    fill(&one);
    room.init(&one);
    room.clone(&other, PASSPHRASE).ok();
    assert_eq!(one.tree(), other.tree());
    (room, one, other)
}

#[test]
fn two_devices_share_a_sealed_workspace_on_a_server_and_are_asked_once() {
    let (mut room, one, other) = pair(fill);
    other.write("deep/new.txt", "from the other");
    one.write("a.txt", "edited");
    // Nobody is there to answer, and no file holds the passphrase.
    for device in [&other, &one, &other] {
        device.sync().ok();
    }
    assert_eq!(one.tree(), other.tree());
    assert_eq!(one.read("deep/new.txt"), b"from the other");
    assert_eq!(other.run(&["status", "--json"]).ok().json()["workspace"], WORKSPACE);
    let log = other.run(&["log", "a.txt", "--json"]).ok();
    assert_eq!(log.json()["versions"].as_array().unwrap().len(), 2, "{}", log.stdout);
    assert_eq!(other.run(&["cat", "a.txt", "--at", "v1"]).ok().bytes, b"first\n");
    // Both edit while the server is away.
    room.server.stop();
    one.write("a.txt", "from one");
    other.write("a.txt", "from the other");
    one.write("big.bin", noise(3_000_001));
    one.sync().ends_with(6);
    room.restart();
    one.sync().ok();
    assert_eq!(other.sync().ends_with(5).json()["conflicts"], 1);
    one.sync().ends_with(5);
    assert_eq!(one.tree(), other.tree());
    assert_eq!(one.read("a.txt"), b"from one");
    let listed = one.run(&["conflicts", "--json"]).ends_with(5).json();
    let copy = listed["conflicts"][0]["copy"].as_str().unwrap();
    assert_eq!(one.read(copy), b"from the other");
    one.run(&["resolve", "a.txt", "--keep", "mine"]).ok();
    one.run(&["restore", "a.txt", "--at", "v1", "--overwrite"]).ok();
    for device in [&one, &other] {
        device.sync().ok();
    }
    assert_eq!(other.read("a.txt"), b"first\n");
    assert_eq!(one.tree(), other.tree());
    for device in [&one, &other] {
        device.run(&["check", "--read-data"]).ok();
        device.run(&["doctor"]).ok();
    }
}

#[test]
fn without_the_passphrase_nobody_of_the_account_reads_a_sealed_workspace() {
    let room = Room::new();
    let (one, other) = (room.device("one"), room.device("other"));
    one.write("file", "x");
    let recovery = room.init(&one);
    let mut words = Vec::new();
    for secret in ["correct horsf", "x", ""] {
        words.push(room.clone(&other, secret).ends_with(12).json().to_string());
        assert!(!other.has(".syncline"), "nothing was changed");
    }
    assert!(words.windows(2).all(|pair| pair[0] == pair[1]), "{words:#?}");
    // Nobody is there to type it.
    assert_eq!(
        other.run(&["clone", WORKSPACE, "there", "--json"]).ends_with(2).json()["code"],
        "E0102"
    );
    // The right passphrase opens it, and not under another name.
    let named = other.run_with_passphrase(PASSPHRASE, &["clone", "another", "there", "--json"]);
    let named = named.ends_with(10).json();
    assert!(named["cause"].as_str().unwrap().contains(WORKSPACE), "{named}");
    room.clone(&other, &recovery.to_lowercase()).ok();
    assert_eq!(other.read("file"), b"x");
}

#[test]
fn a_server_that_offers_a_plain_workspace_of_the_name_is_refused() {
    let room = Room::new();
    let (one, other) = (room.device("one"), room.device("other"));
    one.write("file", "planted");
    one.run(&["init", "--workspace", WORKSPACE]).ok();
    one.sync().ok();
    assert_eq!(room.clone(&other, PASSPHRASE).ends_with(1).json()["code"], "E0604");
    assert!(!other.has(".syncline") && !other.has("file"));
}

#[test]
fn keys_on_a_server_change_once_for_all_devices() {
    let (room, one, other) = pair(|one| one.write("file", "x"));
    let third = room.device("third");
    let change = |device: &Device, old: &str, new: &str| {
        let file = device.passphrase_file(new);
        device
            .run_with_passphrase(old, &["key", "change-passphrase", "--new-passphrase-file", &file])
    };
    change(&one, "wrong guess", "battery staple").ends_with(12);
    change(&one, PASSPHRASE, "battery staple").ok();
    room.clone(&third, PASSPHRASE).ends_with(12);
    room.clone(&third, "battery staple").ok();
    // Others are not asked.
    other.write("file", "y");
    for device in [&other, &one, &third] {
        device.sync().ok();
    }
    assert_eq!(third.read("file"), b"y");
    // What is sealed with a newer key waits for the passphrase, and nothing is lost meanwhile.
    one.run_with_passphrase("battery staple", &["key", "rotate"]).ok();
    one.write("file", "after the rotation");
    one.sync().ok();
    other.write("mine", "written meanwhile");
    assert_eq!(other.sync().ends_with(2).json()["code"], "E0102");
    assert_eq!(
        (other.read("file"), other.read("mine")),
        (b"y".into(), b"written meanwhile".into())
    );
    other.run_with_passphrase("wrong guess", &["sync", "--json"]).ends_with(12);
    other.run_with_passphrase("battery staple", &["sync", "--json"]).ok();
    one.sync().ok();
    assert_eq!(one.tree(), other.tree());
    let fourth = room.device("fourth");
    room.clone(&fourth, "battery staple").ok();
    assert_eq!(fourth.tree(), one.tree());
    one.run(&["check", "--repair"]).ok();
}

#[test]
fn a_new_device_joins_by_a_code_over_the_server() {
    let room = Room::new();
    let (one, other, third) = (room.device("one"), room.device("other"), room.device("third"));
    fill(&one);
    room.init(&one);
    let (mut refused, code) = one.pair("wrong guess");
    assert_eq!((refused.wait().unwrap().code(), code.as_str()), (Some(12), "E0601"));
    let (mut child, code) = one.pair(PASSPHRASE);
    let join = |device: &Device, code: &str| {
        let folder = device.folder.to_str().unwrap().to_owned();
        device
            .run_with_passphrase(code, &["clone", WORKSPACE, &folder, "--pair", "--yes", "--json"])
    };
    let database = Connection::open(room.server.data.join("metadata.sqlite")).unwrap();
    let boxes = || -> i64 {
        database.query_row("SELECT count(*) FROM pairing_boxes", [], |row| row.get(0)).unwrap()
    };
    assert_eq!(boxes(), 1);
    join(&other, &code).ok();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(boxes(), 0, "no box is left");
    assert_eq!(one.tree(), other.tree());
    // It is a device like all others, and nobody asks it for the passphrase.
    other.write("from the new one", "x");
    other.sync().ok();
    one.sync().ok();
    assert_eq!(one.read("from the new one"), b"x");
    join(&third, &code).ends_with(12);
    assert!(!third.has(".syncline"));
}

#[test]
fn what_a_cleanup_condemns_goes_from_a_server_that_cannot_read_it() {
    let (room, one, other) = pair(|one| one.write("file", noise(2_000_000)));
    let packs = || -> i64 {
        let database = Connection::open(room.server.data.join("metadata.sqlite")).unwrap();
        let sql = "SELECT coalesce(sum(length), 0) FROM objects WHERE key LIKE 'packs/%'";
        database.query_row(sql, [], |row| row.get(0)).unwrap()
    };
    let before = packs();
    one.write("file", &noise(4_000_000)[2_000_000..]);
    one.sync().ok();
    other.sync().ok();
    let both = packs();
    assert!(both > before + 1_900_000, "{before} and {both}");
    let done = one.run(&["cleanup", "--keep", "deleted:0s", "--json"]).ok().json();
    assert_eq!((&done["removed_versions"], &done["left_packs"]), (&1.into(), &0.into()), "{done}");
    assert!(packs() < both - 1_900_000);
    let third = room.device("third");
    room.clone(&third, PASSPHRASE).ok();
    other.write("later", "x");
    for device in [&other, &one, &third] {
        device.sync().ok();
    }
    assert_eq!(third.tree(), one.tree());
    one.run(&["check", "--read-data"]).ok();
}

#[test]
fn a_stolen_server_tells_no_name_content_or_size() {
    let mut room = Room::new();
    let one = room.device("one");
    one.write(&format!("{NAME}.txt"), CONTENT.repeat(40));
    one.write(&format!("folder-{NAME}/inside"), noise(SIZE));
    std::os::unix::fs::symlink(format!("target-{NAME}"), one.folder.join("link")).unwrap();
    room.init(&one);
    one.write(&format!("{NAME}.txt"), format!("{CONTENT} is short now"));
    one.sync().ok();
    // Enough entries for a checkpoint, which holds all names.
    for number in 0..300 {
        one.write("counter", format!("{CONTENT} {number}"));
        one.sync().ok();
    }
    room.server.stop();
    let stored = stored_by(&room.server.data);
    for kind in ["packs/", "pages/", "entries", "checkpoints", "locked_keys", "workspaces"] {
        assert!(stored.iter().any(|(place, _)| place.contains(kind)), "{kind} was searched");
    }
    let mut canaries: Vec<Vec<u8>> = [NAME, CONTENT, WORKSPACE, PASSPHRASE, "counter", "inside"]
        .iter()
        .map(|text| text.as_bytes().to_vec())
        .collect();
    canaries.push(noise(64));
    canaries.push(SIZE.to_string().into_bytes());
    canaries.push((SIZE as u64).to_le_bytes().to_vec());
    canaries.push((SIZE as u64).to_be_bytes().to_vec());
    for (place, bytes) in &stored {
        assert_ne!(bytes.len(), SIZE, "{place}");
        for canary in &canaries {
            let text = String::from_utf8_lossy(canary);
            assert!(
                !has(bytes, canary) && !has(place.as_bytes(), canary),
                "'{text}' is in {place}"
            );
        }
    }
    // The same search finds them all on a server that may read them.
    let mut plain = Room::new();
    let other = plain.device("other");
    other.write(&format!("{NAME}.txt"), CONTENT);
    other.run(&["init", "--workspace", WORKSPACE]).ok();
    other.sync().ok();
    plain.server.stop();
    let all: Vec<u8> =
        stored_by(&plain.server.data).into_iter().flat_map(|(_, bytes)| bytes).collect();
    for canary in [NAME, CONTENT, WORKSPACE] {
        assert!(has(&all, canary.as_bytes()), "{canary}");
    }
}

pub(crate) fn has(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// Everything that a stopped server has stored, with its place: files as they are, and every value of its database, unpacked.
pub(crate) fn stored_by(data: &Path) -> Vec<(String, Vec<u8>)> {
    let (mut found, mut waiting) = (Vec::new(), vec![data.to_owned()]);
    while let Some(path) = waiting.pop() {
        match path.is_dir() {
            true => waiting.extend(fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path())),
            false => found.push((path.to_string_lossy().into_owned(), fs::read(&path).unwrap())),
        }
    }
    let database = Connection::open(data.join("metadata.sqlite")).unwrap();
    let sql = "SELECT name FROM sqlite_schema WHERE type = 'table'";
    let mut statement = database.prepare(sql).unwrap();
    let names: Vec<String> =
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    for table in names {
        let mut statement = database.prepare(&format!("SELECT * FROM {table}")).unwrap();
        let columns = statement.column_count();
        let mut rows = statement.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            for column in 0..columns {
                let bytes = match row.get_ref(column).unwrap() {
                    ValueRef::Blob(bytes) | ValueRef::Text(bytes) => bytes.to_vec(),
                    _ => continue,
                };
                // A compressed envelope hides what is in it from a search, and from nobody else.
                let plain = bytes.strip_prefix(&[1]);
                let plain = plain.and_then(|frame| zstd::bulk::decompress(frame, 1 << 24).ok());
                found.push((table.clone(), plain.unwrap_or(bytes)));
            }
        }
    }
    found
}
