//! End-to-end encrypted workspaces of two people at a server, and what a server can do that helps one of them against the other.

use std::fs;
use std::path::Path;

use rusqlite::Connection;
use serde_json::json;

use crate::sealed_on_server::{has, stored_by};
use crate::support::{Device, Run, Server, fill, noise};

/// Of the workspace, which `ada` knows.
const PASSPHRASE: &str = "correct horse";

/// Of the identity, which `bob` knows.
const OF_BOB: &str = "battery staple";

const WORKSPACE: &str = "canary-workspace";

/// A server, a device of `ada`, who has an encrypted workspace, and two of `bob`.
struct Room {
    room: tempfile::TempDir,
    server: Server,
    ada: Device,
    bob: Device,
    tablet: Device,
    id: String,
}

impl Room {
    fn new() -> Self {
        let room = tempfile::tempdir().unwrap();
        let server = Server::start(room.path());
        let [ada, bob, tablet] =
            ["ada", "bob", "tablet"].map(|name| Device::new(room.path(), name));
        server.login(&ada, "laptop");
        let id = String::new();
        let mut made = Self { room, server, ada, bob, tablet, id };
        made.add_account("bob", &[&made.bob, &made.tablet]);
        fill(&made.ada);
        let words = ["init", "--sealed", "--workspace", WORKSPACE, "--json"];
        let line = made.run(&made.ada, PASSPHRASE, &words).ok().json();
        made.id = line["workspace_id"].as_str().unwrap().to_owned();
        made.ada.sync().ok();
        made
    }

    fn add_account(&self, name: &str, devices: &[&Device]) {
        let data = self.server.data.to_str().unwrap();
        let add = ["user", "add", name, "--password-stdin", "--data", data];
        devices[0].run_with_input(&add, "a password of somebody").ok();
        for device in devices {
            let login = ["login", &self.server.url, "--user", name, "--password-stdin"];
            let login = [&login[..], &["--device", name]].concat();
            device.run_with_input(&login, "a password of somebody").ok();
        }
    }

    /// Runs a command that may read a passphrase.
    fn run(&self, device: &Device, secret: &str, words: &[&str]) -> Run {
        let path = self.room.path().join(format!("secret-{}", blake3::hash(secret.as_bytes())));
        fs::write(&path, format!("{secret}\n")).unwrap();
        let mut command = device.command(words);
        command.env("SYNCLINE_PASSPHRASE_FILE", path);
        Run::of(command.output().unwrap())
    }

    /// Lets a person make an identity, or look at it. Returns what is read out.
    fn fingerprint(&self, device: &Device, secret: &str) -> String {
        let line = self.run(device, secret, &["key", "fingerprint", "--json"]).ok().json();
        line["fingerprint"].as_str().unwrap().to_owned()
    }

    /// Lets `ada` share with `bob`, who has read out a fingerprint.
    fn share(&self, role: &str, fingerprint: &str) -> Run {
        let with = format!("bob:{role}");
        let words = ["share", "--with", &with, "--fingerprint", fingerprint, "--json"];
        self.run(&self.ada, PASSPHRASE, &words)
    }

    fn clone(&self, device: &Device, secret: &str) -> Run {
        let source = format!("ada/{}", self.id);
        let folder = device.folder.to_str().unwrap();
        self.run(device, secret, &["clone", &source, folder, "--sealed", "--json"])
    }

    /// Shares with `bob`, and gets the workspace on his first device.
    fn shared(role: &str) -> Self {
        let room = Self::new();
        let fingerprint = room.fingerprint(&room.bob, OF_BOB);
        room.share(role, &fingerprint).ok();
        room.clone(&room.bob, "nobody asks for this").ok();
        assert_eq!(room.bob.tree(), room.ada.tree());
        room
    }

    fn shut_out(&self) -> Run {
        self.run(&self.ada, PASSPHRASE, &["share", "rm", "bob", "--yes", "--json"])
    }

    /// Does to the database what the keeper of a server can do.
    fn meddle<T>(&mut self, meddle: impl FnOnce(&Connection) -> T) -> T {
        self.server.stop();
        let done = meddle(&database(&self.server.data));
        let listen = self.server.url.strip_prefix("http://").unwrap().to_owned();
        let operator = Device::new(self.room.path(), "operator");
        self.server = Server::start_at(&operator, self.server.data.clone(), &listen);
        done
    }
}

fn database(data: &Path) -> Connection {
    Connection::open(data.join("metadata.sqlite")).unwrap()
}

fn code(run: &Run) -> String {
    run.json()["code"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn what_two_people_share_encrypted_goes_both_ways_until_one_is_shut_out() {
    let mut room = Room::shared("edit");
    let Room { ada, bob, tablet, .. } = &room;
    // Another device of bob's: his passphrase opens his identity, and that the envelope.
    room.clone(tablet, "a wrong guess").ends_with(12);
    assert!(!tablet.has(".syncline"));
    room.clone(tablet, OF_BOB).ok();
    assert_eq!(room.fingerprint(tablet, "x"), room.fingerprint(bob, "x"));
    // From here on nobody is asked for anything.
    bob.write("of bob.txt", "small\n");
    tablet.write("of bob", noise(300_000));
    ada.write("a.txt", "of ada\n");
    for device in [bob, tablet, ada, bob, tablet] {
        device.sync().ok();
    }
    assert_eq!((ada.tree(), bob.tree()), (bob.tree(), tablet.tree()));
    assert_eq!(ada.read("of bob"), noise(300_000));
    assert_eq!(
        ada.run(&["log", "of bob.txt", "--json"]).ok().json()["versions"][0]["device"],
        "bob"
    );
    // A new key reaches members without asking, and their other devices, too.
    room.run(ada, PASSPHRASE, &["key", "rotate"]).ok();
    ada.write("a.txt", "sealed with the second key\n");
    for device in [ada, bob, tablet] {
        device.sync().ok();
    }
    assert_eq!(tablet.read("a.txt"), b"sealed with the second key\n");
    for device in [ada, bob] {
        device.run(&["check", "--read-data"]).ok();
        device.run(&["doctor"]).ok();
        device.run(&["status"]).ok();
    }
    let shares = ada.run(&["share", "ls", "--json"]).ok().json();
    let expected = json!([{"user": "ada", "role": "owner"}, {"user": "bob", "role": "edit"}]);
    assert_eq!(shares["members"], expected);
    // What is for the owner.
    for words in [&["key", "rotate"][..], &["key", "show-recovery"], &["cleanup"], &["pair"]] {
        let words: Vec<_> = words.iter().copied().chain(["--json"]).collect();
        room.run(bob, PASSPHRASE, &words).ends_with(4);
    }

    room.run(ada, "a wrong guess", &["share", "rm", "bob", "--yes"]).ends_with(12);
    bob.sync().ok();
    let envelope: Vec<u8> = database(&room.server.data)
        .query_row("SELECT bytes FROM envelopes", [], |row| row.get(0))
        .unwrap();
    room.shut_out().ok();
    room.shut_out().ends_with(1);
    let ada = &room.ada;
    ada.write("secret.txt", "not for bob\n");
    ada.sync().ok();
    room.bob.write("a.txt", "alone\n");
    let before = room.bob.tree();
    assert_eq!(code(&room.bob.sync().ends_with(10)), "E0404");
    // A server that goes on to let him in has nothing that opens what came after.
    room.meddle(|database| {
        assert_eq!(count(database, "envelopes"), 0, "it went with the membership");
        let sql = "INSERT INTO members (workspace, account, role, added)
                   SELECT number, accounts.id, 2, 0 FROM workspaces, accounts WHERE accounts.name = 'bob'";
        database.execute(sql, []).unwrap();
        let sql = "INSERT INTO envelopes (workspace, account, bytes)
                   SELECT workspace, account, ?1 FROM members";
        database.execute(sql, [&envelope]).unwrap();
    });
    let run = room.run(&room.bob, OF_BOB, &["sync", "--json"]).ends_with(12);
    assert_eq!(code(&run), "E0602");
    assert_eq!(room.bob.tree(), before, "nothing of his is lost");
    room.ada.sync().ok();
    assert!(room.ada.has("secret.txt") && room.ada.read("a.txt") != b"alone\n");
    // Let in again, he has everything.
    let fingerprint = room.fingerprint(&room.bob, "x");
    room.share("edit", &fingerprint).ok();
    room.bob.sync();
    assert_eq!(room.bob.read("secret.txt"), b"not for bob\n");
}

fn count(database: &Connection, table: &str) -> i64 {
    database.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
}

#[test]
fn members_leave_checkpoints_to_the_owner_and_begin_at_hers() {
    let mut room = Room::shared("edit");
    // More entries than lie between two checkpoints.
    for number in 0..260 {
        room.bob.write("counter", number.to_string());
        room.bob.sync().ok();
    }
    let made = |database: &Connection| {
        (count(database, "checkpoints"), count(database, "objects WHERE key LIKE 'pages/%'") > 0)
    };
    assert_eq!(room.meddle(|database| made(database)), (0, false));
    room.ada.sync().ok();
    assert_eq!(room.meddle(|database| made(database)), (1, true));
    room.clone(&room.tablet, OF_BOB).ok();
    assert_eq!(room.tablet.tree(), room.bob.tree());
    assert_eq!(room.ada.tree(), room.bob.tree());
}

#[test]
fn nobody_is_let_in_whose_fingerprint_was_not_compared() {
    let room = Room::new();
    let Room { ada, bob, .. } = &room;
    let none = room.run(ada, PASSPHRASE, &["share", "--with", "bob:edit", "--json"]).ends_with(1);
    assert_eq!(code(&none), "E0606");
    let fingerprint = room.fingerprint(bob, OF_BOB);
    assert_eq!(room.fingerprint(bob, "nobody asks for this"), fingerprint);
    let eve = Device::new(room.room.path(), "eve");
    room.add_account("eve", &[&eve]);
    let of_eve = room.fingerprint(&eve, "of eve, a long one");
    assert_ne!(fingerprint, of_eve);
    assert_eq!(code(&room.share("edit", &of_eve).ends_with(12)), "E0607");
    // Nobody is there to compare, and a flag compares nothing.
    for flags in [&["--json"][..], &["--json", "--yes"]] {
        let words = [&["share", "--with", "bob:edit"], flags].concat();
        let asked = room.run(ada, PASSPHRASE, &words).ends_with(2);
        assert!(asked.stdout.contains(&fingerprint), "{}", asked.stdout);
    }
    room.run(ada, PASSPHRASE, &["share", "--with", "bob:edit", "--fingerprint", "x"]).ends_with(2);
    let two = ["share", "--with", "bob:edit", "--with", "eve:edit", "--fingerprint", &of_eve];
    room.run(ada, PASSPHRASE, &two).ends_with(2);
    let inside = ["share", "deep", "--with", "bob:edit"];
    ada.write("deep/file", "x");
    assert_eq!(
        code(&room.run(ada, PASSPHRASE, &[&inside[..], &["--json"]].concat()).ends_with(1)),
        "E0216"
    );
    let by_id = ["share", &room.id, "--with", "bob:edit", "--json"];
    room.run(ada, PASSPHRASE, &by_id).ends_with(2);
    let wrong = ["share", "--with", "bob:view", "--fingerprint", &fingerprint];
    room.run(ada, "a wrong guess", &wrong).ends_with(12);
    assert_eq!(ada.run(&["share", "ls", "--json"]).ok().json()["members"][1], json!(null));

    let shared = room.share("view", &fingerprint.to_lowercase()).ok().json();
    assert_eq!((&shared["role"], &shared["fingerprint"]), (&json!("view"), &json!(fingerprint)));
    // By the name it is to be compared whose workspace it is.
    let folder = bob.folder.to_str().unwrap();
    let source = format!("ada/{WORKSPACE}");
    for flags in [&["--json"][..], &["--json", "--yes"]] {
        let words = [&["clone", &source, folder], flags].concat();
        let asked = room.run(bob, "x", &words).ends_with(2);
        assert!(asked.stdout.contains(&room.id), "{}", asked.stdout);
        assert!(!bob.has(".syncline"));
    }
    room.run(bob, "x", &["clone", "ada/another", folder, "--json"]).ends_with(10);
    let by_id = format!("ada/{}", room.id);
    room.run(bob, "x", &["clone", &by_id, folder]).ok();
    assert_eq!(bob.tree().len(), ada.tree().len() - 1, "all but what was not sent yet");
    // Who may only view keeps what was changed here.
    bob.write("mine.txt", "of bob\n");
    assert_eq!(code(&bob.sync().ends_with(4)), "E0410");
    assert_eq!(bob.read("mine.txt"), b"of bob\n");
}

#[test]
fn a_server_that_puts_another_identity_in_place_of_one_is_found_out() {
    let mut room = Room::shared("view");
    let eve = Device::new(room.room.path(), "eve");
    room.add_account("eve", &[&eve]);
    room.fingerprint(&eve, "of eve, a long one");
    room.meddle(|database| {
        let sql =
            "UPDATE identities SET public_keys = (SELECT public_keys FROM identities, accounts
                       WHERE accounts.id = account AND accounts.name = 'eve')
                   WHERE account = (SELECT id FROM accounts WHERE name = 'bob')";
        assert_eq!(database.execute(sql, []).unwrap(), 1);
    });
    // It was seen before; nobody need compare anything. On a device that has not seen it, the list of members says whose it is.
    let words = ["share", "--with", "bob:edit", "--yes", "--json"];
    for has_seen in [true, false] {
        if !has_seen {
            fs::remove_file(room.ada.home.join("people.toml")).unwrap();
        }
        assert_eq!(code(&room.run(&room.ada, PASSPHRASE, &words).ends_with(12)), "E0607");
    }
    // Whose it is notices, too: on a device that has it, and on one that gets it.
    let seen = room.run(&room.bob, OF_BOB, &["key", "fingerprint", "--json"]).ends_with(12);
    assert_eq!(code(&seen), "E0607");
    assert_eq!(code(&room.clone(&room.tablet, OF_BOB).ends_with(12)), "E0607");
    // What was sealed to bob before goes on to be his.
    room.ada.write("new", "x");
    room.ada.sync().ok();
    room.bob.sync().ok();
    assert_eq!(room.bob.read("new"), b"x");
}

#[test]
fn a_server_that_has_a_workspace_of_its_own_under_the_name_is_found_out() {
    let mut room = Room::new();
    let eve = Device::new(room.room.path(), "eve");
    room.add_account("eve", &[&eve]);
    let words = ["init", "--sealed", "--workspace", WORKSPACE, "--json"];
    let made = room.run(&eve, "of eve, a long one", &words).ok().json();
    let of_eve = made["workspace_id"].as_str().unwrap().to_owned();
    eve.sync().ok();
    let fingerprint = room.fingerprint(&room.bob, OF_BOB);
    let words = ["share", "--with", "bob:edit", "--fingerprint", &fingerprint];
    room.run(&eve, "of eve, a long one", &words).ok();
    // The server says that it is the one of ada's which has this name, as no honest one knows to.
    room.meddle(|database| {
        let of_ada = "(SELECT id FROM accounts WHERE name = 'ada')";
        let of_eve = "(SELECT id FROM accounts WHERE name = 'eve')";
        let sql =
            format!("UPDATE workspaces SET owner = {of_ada}, name = ?1 WHERE owner = {of_eve}");
        assert_eq!(database.execute(&sql, [WORKSPACE]).unwrap(), 1);
    });
    let folder = room.bob.folder.to_str().unwrap();
    let source = format!("ada/{WORKSPACE}");
    let words = ["clone", &source, folder, "--sealed", "--yes", "--json"];
    let asked = room.run(&room.bob, "x", &words).ends_with(2);
    assert!(asked.stdout.contains(&of_eve), "{}", asked.stdout);
    assert!(!room.bob.has(".syncline"));
}

#[test]
fn an_identity_that_is_exchanged_gets_no_later_keys() {
    let mut room = Room::shared("edit");
    // Whoever has bob's devices goes on with them; bob makes another identity, at a server that has forgotten the first.
    room.meddle(|database| {
        database.execute("DELETE FROM identities", []).unwrap();
    });
    fs::remove_dir_all(room.tablet.home.join("identities")).ok();
    let fingerprint = room.fingerprint(&room.tablet, "another one of bob");
    let epochs = |room: &Room| {
        let shown = room.run(&room.ada, PASSPHRASE, &["key", "unlock", "--json"]).ok().json();
        shown["keys"].as_u64().unwrap()
    };
    let before = epochs(&room);
    room.share("edit", &fingerprint).ok();
    assert_eq!(epochs(&room), before + 1);
    room.ada.write("secret.txt", "for the new identity\n");
    room.ada.sync().ok();
    room.clone(&room.tablet, "x").ok();
    assert_eq!(room.tablet.read("secret.txt"), b"for the new identity\n");
}

#[test]
fn what_who_may_only_view_brings_past_the_server_counts_for_nothing() {
    let mut room = Room::shared("view");
    room.meddle(|database| {
        assert_eq!(database.execute("UPDATE members SET role = 2", []).unwrap(), 1);
    });
    let before = room.ada.tree();
    room.bob.write("planted", "by the server and bob\n");
    room.bob.write("a.txt", "by the server and bob\n");
    fs::remove_file(room.bob.folder.join("deep/er/b.txt")).unwrap();
    let entries = || count(&database(&room.server.data), "entries");
    let before_sync = entries();
    room.bob.run(&["sync", "--json"]);
    assert!(entries() > before_sync, "the server has taken it");
    let told = room.ada.sync();
    assert_eq!(room.ada.tree(), before, "{}\n{}", told.stdout, told.stderr);
    assert!(told.stdout.contains("bob may only read"), "{}\n{}", told.stdout, told.stderr);
    room.bob.sync();
    assert_eq!(room.bob.read("planted"), b"by the server and bob\n", "it stays where it is");
    // The owner goes on, and so do others.
    room.ada.write("a.txt", "of ada\n");
    room.ada.sync().ok();
    let other = Device::new(room.room.path(), "desktop");
    room.server.login(&other, "desktop");
    let folder = other.folder.to_str().unwrap();
    room.run(&other, PASSPHRASE, &["clone", WORKSPACE, folder, "--sealed"]).ok();
    assert_eq!(other.tree(), room.ada.tree());
}

#[test]
fn nothing_of_a_shared_workspace_can_be_found_in_what_a_server_has_stored() {
    let mut room = Room::new();
    room.ada.write("canary-name-of-a-file.txt", "canary-content-of-a-file");
    room.ada.sync().ok();
    let fingerprint = room.fingerprint(&room.bob, OF_BOB);
    room.share("edit", &fingerprint).ok();
    room.clone(&room.bob, "x").ok();
    room.bob.write("canary-file-of-bob", noise(300_000));
    room.bob.sync().ok();
    room.ada.sync().ok();
    room.server.stop();
    let seed = fs::read_dir(room.bob.home.join("identities")).unwrap().next().unwrap().unwrap();
    let seed = fs::read_to_string(seed.path()).unwrap();
    let seed =
        seed.lines().find_map(|line| line.strip_prefix("seed = ")).unwrap().trim_matches('"');
    let seed_bytes: Vec<u8> = (0..seed.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&seed[at..at + 2], 16).unwrap())
        .collect();
    assert_eq!(seed_bytes.len(), 32);
    let mut canaries: Vec<Vec<u8>> =
        ["canary-name-of-a-file", "canary-content", "canary-file-of-bob", PASSPHRASE, OF_BOB]
            .iter()
            .chain([&WORKSPACE, &seed])
            .map(|text| text.as_bytes().to_vec())
            .collect();
    canaries.extend([noise(64), seed_bytes]);
    let stored = stored_by(&room.server.data);
    assert!(stored.iter().any(|(place, _)| place == "envelopes"), "there is something to find");
    for (place, bytes) in &stored {
        for canary in &canaries {
            let text = String::from_utf8_lossy(canary);
            assert!(!has(bytes, canary), "'{text}' is in {place}");
        }
    }
}
