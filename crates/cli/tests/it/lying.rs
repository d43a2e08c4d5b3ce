//! Stores that lie to a new device about which stores the workspace has.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use content::DeviceKeys;
use model::codec::{decode_message, encode_message};
use model::{PoolConfig, PoolHint, StoreId, StoreRecord, StoreState};

use crate::support::{Device, Run};

const PASSPHRASE: &str = "correct horse";

/// A code as `syncline pair` shows them.
const CODE: &str = "0W3G-E1R7-0W3G-E1R7-0W3G-E1R7-0W0R";

/// Three stores and a device that has synced into them; what lies are made of is in another room.
struct Stage {
    room: tempfile::TempDir,
    one: Device,
    is_sealed: bool,
}

impl Stage {
    fn new(is_sealed: bool) -> Self {
        Self::over(3, is_sealed)
    }

    fn over(count: usize, is_sealed: bool) -> Self {
        Self::made(count, is_sealed, &[])
    }

    fn made(count: usize, is_sealed: bool, more: &[&str]) -> Self {
        let room = tempfile::tempdir().unwrap();
        let one = Device::new(room.path(), "one");
        one.write("letter", "dear\n");
        let this = Self { room, one, is_sealed };
        let backends: Vec<String> = (0..count).map(|number| this.backend(number)).collect();
        let mut words = vec!["init", "--workspace", "Notes"];
        words.extend(backends.iter().flat_map(|backend| ["--backend", backend]));
        words.extend((!is_sealed).then_some("--plain"));
        words.extend(more);
        this.one.run_with_passphrase(PASSPHRASE, &words).ok();
        this.one.sync().ok();
        this
    }

    fn store(&self, number: usize) -> PathBuf {
        self.room.path().join(format!("store{number}"))
    }

    fn backend(&self, number: usize) -> String {
        format!("s{number}=file:{}", self.store(number).display())
    }

    fn device(&self, name: &str) -> Device {
        Device::new(self.room.path(), name)
    }

    /// Clones by these stores.
    fn clone(&self, device: &Device, stores: &[usize]) -> Run {
        let backends: Vec<String> = stores.iter().map(|number| self.backend(*number)).collect();
        let mut words = vec!["clone", "Notes", device.folder.to_str().unwrap(), "--json"];
        words.extend(backends.iter().flat_map(|backend| ["--backend", backend]));
        device.run_with_passphrase(PASSPHRASE, &words)
    }

    /// What a store says at a version; one that is not there yet can be written.
    fn hint(&self, number: usize, version: u64) -> PathBuf {
        inside(&self.store(number)).join(format!("pool/{version:020}"))
    }

    /// Puts a whole copy of the stores elsewhere, and returns a hint that leads there, as a store would make it that can read
    /// everything: addresses are exchanged, and nothing is signed anew.
    fn trap(&self) -> (PathBuf, Vec<u8>) {
        let trap = self.room.path().join("trap");
        for number in 0..3 {
            copy(&self.store(number), &trap.join(format!("{number}")));
        }
        let mut bytes = fs::read(self.hint(0, 0)).unwrap();
        for number in 0..3 {
            let (from, to) = (self.store(number), trap.join(format!("{number}")));
            let (from, to) = (from.to_str().unwrap(), to.to_str().unwrap());
            assert_eq!(from.len(), to.len(), "the lengths stay as they are");
            let at = bytes.windows(from.len()).position(|part| part == from.as_bytes()).unwrap();
            bytes[at..at + from.len()].copy_from_slice(to.as_bytes());
        }
        (trap, bytes)
    }

    /// Writes in a new device, and looks whether the first one gets it: it would not from a trap.
    fn assert_together(&self, other: &Device) {
        other.write("answer", "yours\n");
        other.sync().ok();
        self.one.sync().ok();
        assert_eq!(self.one.read("answer"), b"yours\n");
        assert_eq!(self.one.tree(), other.tree());
    }
}

fn inside(store: &Path) -> PathBuf {
    fs::read_dir(store.join("workspaces")).unwrap().next().unwrap().unwrap().path()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

/// Everything below a folder, to see that nothing was touched.
fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let (mut found, mut waiting) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => waiting.push(path),
                false => found.push((path.clone(), fs::read(&path).unwrap())),
            }
        }
    }
    found.sort();
    found
}

/// The line that says who led where.
fn led(run: &Run) -> serde_json::Value {
    let line = run.stdout.lines().next().unwrap_or_default();
    let line: serde_json::Value = serde_json::from_str(line).unwrap();
    assert_eq!(line["type"], "led", "{line}");
    line
}

#[test]
fn of_three_stores_of_a_sealed_workspace_one_lies_and_is_named() {
    let stage = Stage::new(true);
    let (trap, lie) = stage.trap();
    let before = contents(&trap);
    // It says it for the version that there is, and for a later one, beside which the good one stays.
    for (number, version) in [0, 9].into_iter().enumerate() {
        fs::write(stage.hint(1, version), &lie).unwrap();
        let other = stage.device(&format!("other{number}"));
        let run = stage.clone(&other, &[1, 0, 2]).ok();
        assert!(run.stderr.contains("'s1' is not believed"), "{run:?}");
        assert_eq!(run.json()["notes"].as_array().unwrap().len(), 1, "{run:?}");
        let led = led(&run);
        assert_eq!(led["by"].as_array().unwrap().len(), if version == 0 { 2 } else { 3 });
        assert!(led["signed_by"].is_string(), "{led}");
        stage.assert_together(&other);
        // The others tell it again.
        let check = stage.one.run(&["check", "--json"]).ends_with(3).json();
        assert_eq!(check["misleading_stores"][0], "s1", "{check}");
        stage.one.run(&["check", "--repair"]).ok();
        if version == 0 {
            stage.one.run(&["check"]).ok();
        }
    }
    assert_eq!(contents(&trap), before, "nobody was there");
}

#[test]
fn a_lone_store_of_a_sealed_workspace_that_lies_is_refused_before_anything_is_touched() {
    let stage = Stage::new(true);
    let (trap, lie) = stage.trap();
    let good = fs::read(stage.hint(1, 0)).unwrap();
    let elsewhere = Stage::new(true);
    let other_workspace = fs::read(elsewhere.hint(1, 0)).unwrap();
    let mut flipped = good.clone();
    flipped[30] ^= 4;
    let mut unsigned = good[..good.len() - 176].to_vec();
    unsigned[1] = 1;
    let other = stage.device("other");
    let before = contents(&trap);
    for (what, bytes) in [
        ("another address", &lie[..]),
        ("another workspace", &other_workspace),
        ("a flipped bit", &flipped),
        ("cut short", &good[..good.len() - 1]),
        ("nothing", &[]),
        ("without signature", &unsigned),
    ] {
        fs::write(stage.hint(1, 0), bytes).unwrap();
        let refused = stage.clone(&other, &[1]).ends_with(8).json();
        assert_eq!(refused["code"], "E0605", "{what}: {refused}");
        assert!(refused["cause"].as_str().unwrap().contains("'s1'"), "{what}: {refused}");
        assert!(!other.has(".syncline") && !other.home.join("folders").exists(), "{what}");
        // By a code, of which no store can know anything, it is the same.
        let (folder, backend) = (other.folder.to_str().unwrap(), stage.backend(1));
        let pair = ["clone", "Notes", folder, "--backend", &backend, "--pair", "--yes", "--json"];
        let refused = other.run_with_passphrase(CODE, &pair).ends_with(8).json();
        assert_eq!(refused["code"], "E0605", "{what}, by a code: {refused}");
    }
    // The good one as a later version of itself.
    fs::rename(stage.hint(2, 0), stage.hint(2, 5)).unwrap();
    assert_eq!(stage.clone(&other, &[2]).ends_with(8).json()["code"], "E0605");
    assert_eq!(contents(&trap), before, "nobody was there");
    // Nothing but the hints was wrong.
    stage.one.run(&["check", "--repair"]).ok();
    stage.clone(&other, &[1]).ok();
    stage.assert_together(&other);
}

#[test]
fn an_older_hint_is_overtaken_by_any_newer_one_and_by_the_log() {
    let stage = Stage::new(true);
    let old = fs::read(stage.hint(1, 0)).unwrap();
    stage.one.run(&["backend", "set", "s0", "--capacity", "7"]).ok();
    let newer = stage.hint(1, 1);
    assert!(newer.exists());
    let forget = |number: usize| {
        fs::remove_file(stage.hint(number, 1)).unwrap();
        fs::write(stage.hint(number, 0), &old).unwrap();
    };
    let capacity = |device: &Device| {
        let listed = device.run(&["backend", "ls", "--json"]).ok().json();
        let is_s0 = |store: &&serde_json::Value| store["name"] == "s0";
        let stores = listed["stores"].as_array().unwrap().clone();
        stores.iter().find(is_s0).unwrap()["capacity"].clone()
    };
    // Another named store knows better, and so does one to which the named one leads.
    forget(1);
    let second = stage.device("second");
    let run = stage.clone(&second, &[1, 2]).ok();
    assert_eq!(led(&run)["by"][0], "s2");
    assert!(run.stderr.contains("'s1' tells of older stores"), "{}", run.stderr);
    let third = stage.device("third");
    let run = stage.clone(&third, &[1]).ok();
    assert_ne!(led(&run)["by"][0], "s1", "{run:?}");
    // No store says so any more, and the log does.
    forget(0);
    forget(2);
    let fourth = stage.device("fourth");
    let run = stage.clone(&fourth, &[1]).ok();
    assert_eq!(led(&run)["by"][0], "s1", "{run:?}");
    for device in [&second, &third, &fourth] {
        assert_eq!(capacity(device), 7);
    }
    // A device that knows the newer ones, by another folder, is told that the store is behind.
    let again = Device { folder: stage.room.path().join("again"), ..fourth.clone() };
    fs::create_dir_all(&again.folder).unwrap();
    let run = stage.clone(&again, &[1]).ok();
    assert!(run.stderr.contains("older stores than this device knows"), "{}", run.stderr);
    stage.assert_together(&third);
}

#[test]
fn in_a_plain_workspace_most_stores_are_believed_and_the_other_is_named() {
    let stage = Stage::new(false);
    let (trap, lie) = stage.trap();
    let before = contents(&trap);
    fs::write(stage.hint(1, 9), &lie).unwrap();
    let other = stage.device("other");
    let run = stage.clone(&other, &[1, 0, 2]).ok();
    assert!(run.stderr.contains("'s1' says otherwise, and is not followed"), "{}", run.stderr);
    assert!(run.stderr.contains(trap.to_str().unwrap()), "{}", run.stderr);
    stage.assert_together(&other);
    assert_eq!(contents(&trap), before, "nobody was there");
    // By that store alone a device is led astray, and its user reads by whom and where.
    let astray = stage.device("astray");
    let folder = astray.folder.to_str().unwrap();
    let run = astray
        .run_with_passphrase(
            PASSPHRASE,
            &["clone", "Notes", folder, "--backend", &stage.backend(1)],
        )
        .ok();
    assert!(run.stdout.contains("'s1' leads to"), "{}", run.stdout);
    assert!(run.stdout.contains(trap.to_str().unwrap()), "{}", run.stdout);
    assert!(run.stdout.contains("nobody vouches"), "{}", run.stdout);
}

#[test]
fn a_store_that_says_that_it_is_another_one_does_not_get_its_place() {
    for is_sealed in [true, false] {
        let stage = Stage::new(is_sealed);
        let identity = |number: usize| inside(&stage.store(number)).join("store");
        fs::copy(identity(0), identity(1)).unwrap();
        for (number, named) in [[0, 1], [1, 0]].into_iter().enumerate() {
            let other = stage.device(&format!("other{number}"));
            let run = stage.clone(&other, &named).ok();
            let doubt = "'s1' says that it is the same store as 's0'";
            assert!(run.stderr.contains(doubt), "{}", run.stderr);
            let listed = other.run(&["backend", "ls", "--json"]).ok().json();
            for store in listed["stores"].as_array().unwrap() {
                let (name, url) = (store["name"].as_str().unwrap(), store["url"].as_str().unwrap());
                let number = name[1..].parse().unwrap();
                assert_eq!(url, format!("file:{}", stage.store(number).display()));
            }
            stage.assert_together(&other);
        }
    }
}

#[test]
fn secrets_go_to_no_store_of_a_plain_workspace_that_the_user_has_not_named() {
    let stage = Stage::new(false);
    let secrets = stage.room.path().join("secrets.toml");
    fs::write(&secrets, "password = \"xyzzy\"\n").unwrap();
    fs::set_permissions(&secrets, fs::Permissions::from_mode(0o600)).unwrap();
    let other = stage.device("other");
    let (folder, backend) = (other.folder.to_str().unwrap(), stage.backend(1));
    let given = format!("s2={}", secrets.display());
    let words =
        ["clone", "Notes", folder, "--backend", &backend, "--credentials", &given, "--json"];
    let refused = other.run_with_passphrase(PASSPHRASE, &words).ends_with(2).json();
    assert!(refused["headline"].as_str().unwrap().contains("'s2'"), "{refused}");
    assert!(!other.has(".syncline"));
}

/// A server that refuses everything, and remembers what it was sent.
struct Spy {
    address: SocketAddr,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Spy {
    fn listen() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, heard) = (listener.local_addr().unwrap(), Arc::default());
        let ears: Arc<Mutex<Vec<String>>> = Arc::clone(&heard);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let mut head = Vec::new();
                let mut part = [0; 4096];
                while !head.windows(4).any(|end| end == b"\r\n\r\n") {
                    match stream.read(&mut part) {
                        Ok(length @ 1..) => head.extend_from_slice(&part[..length]),
                        _ => break,
                    }
                }
                ears.lock().unwrap().push(String::from_utf8_lossy(&head).to_lowercase());
                let answer =
                    "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        Self { address, heard }
    }

    /// How many requests came, and how many of them brought a secret.
    fn heard(&self) -> (usize, usize) {
        let heard = self.heard.lock().unwrap();
        (heard.len(), heard.iter().filter(|head| head.contains("authorization:")).count())
    }
}

#[test]
fn a_store_to_which_an_invented_workspace_leads_gets_no_secret_of_the_device() {
    // A stranger's workspace, well signed by the stranger, with a store that has the id of one of the victim's.
    let (stage, spy) = (Stage::over(1, true), Spy::listen());
    let bytes = fs::read_to_string(stage.one.memory().join("keys")).unwrap();
    let digit = |at: usize| u8::from_str_radix(&bytes[at..at + 2], 16).unwrap();
    let bytes: Vec<u8> = (0..bytes.trim().len()).step_by(2).map(digit).collect();
    let stranger = DeviceKeys::from_bytes(&bytes).unwrap();
    let hint: PoolHint = decode_message(&fs::read(stage.hint(0, 0)).unwrap()).unwrap();
    let id = StoreId::from_bytes([9; 16]);
    let mut stores = hint.pool.stores.clone();
    stores.push(StoreRecord {
        id,
        name: "bank".to_owned(),
        url: format!("webdav:http://{}/dav", spy.address),
        capacity: 1,
        state: StoreState::Draining,
        agrees: false,
        begun_anew: None,
    });
    let pool = PoolConfig::new(hint.pool.redundancy, stores).unwrap();
    let hint = stranger.sign_hint(0, PoolHint::plain(pool, 0)).unwrap();
    fs::write(stage.hint(0, 0), encode_message(&hint)).unwrap();
    let victim = stage.device("victim");
    let secrets = victim.home.join("stores");
    fs::create_dir_all(&secrets).unwrap();
    let secret = secrets.join(format!("{id}.toml"));
    fs::write(&secret, "user = \"ada\"\npassword = \"xyzzy\"\n").unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    let (folder, backend) = (victim.folder.to_str().unwrap(), stage.backend(0));
    let clone = ["clone", "Notes", folder, "--backend", &backend, "--json"];
    victim.run_with_passphrase("what the victim knows", &clone).ends_with(12);
    let (asked, told) = spy.heard();
    assert!(asked > 0, "it was asked for keys");
    assert_eq!(told, 0, "without any secret");
    // Whoever has the passphrase of that workspace believes what its devices say.
    victim.run_with_passphrase(PASSPHRASE, &clone);
    assert!(spy.heard().1 > 0);
}

#[test]
fn a_device_that_lost_its_stores_follows_no_store_that_lies() {
    let stage = Stage::new(true);
    let other = stage.device("other");
    stage.clone(&other, &[0]).ok();
    let (trap, lie) = stage.trap();
    fs::write(stage.hint(1, 9), &lie).unwrap();
    for number in [0, 2] {
        fs::rename(stage.store(number), stage.room.path().join(format!("away{number}"))).unwrap();
    }
    let before = contents(&trap);
    other.write("answer", "waits\n");
    let run = other.sync().ends_with(6);
    assert!(run.stderr.contains("'s1' is not believed"), "{run:?}");
    // Nor where its user is told to go there.
    fs::write(inside(&trap.join("1")).join(format!("pool/{:020}", 0)), &lie).unwrap();
    let url = format!("file:{}", trap.join("1").display());
    let before_find = contents(&trap);
    let refused = other.run(&["backend", "find", &url, "--json"]).ends_with(8).json();
    assert_eq!(refused["code"], "E0605");
    assert_eq!((contents(&trap), before.len()), (before_find, before.len()));
    for number in [0, 2] {
        fs::rename(stage.room.path().join(format!("away{number}")), stage.store(number)).unwrap();
    }
    other.sync().ok();
    stage.one.sync().ok();
    assert_eq!(stage.one.read("answer"), b"waits\n");
}

#[test]
fn locked_keys_that_one_of_two_stores_has_damaged_are_named_and_those_of_the_other_opened() {
    for number in [0, 1] {
        let stage = Stage::over(2, true);
        let keys = inside(&stage.store(number)).join(format!("keys/{:020}", 1));
        let mut bytes = fs::read(&keys).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        fs::write(&keys, bytes).unwrap();
        for named in [&[0][..], &[1], &[0, 1], &[1, 0]] {
            let other = stage.device(&format!("other{}{}", named[0], named.len()));
            let run = stage.clone(&other, named).ok();
            let bad = format!("the locked keys in 's{number}' are damaged");
            assert!(run.stderr.contains(&bad), "{named:?}: {}", run.stderr);
            stage.assert_together(&other);
        }
        // The wrong passphrase is still wrong, and a new one mends both.
        let other = stage.device("stranger");
        let backend = stage.backend(number);
        let clone = ["clone", "Notes", other.folder.to_str().unwrap(), "--backend", &backend];
        other.run_with_passphrase("wrong guess", &clone).ends_with(12);
        let next = stage.room.path().join("next");
        fs::write(&next, "battery staple\n").unwrap();
        let change = ["key", "change-passphrase", "--new-passphrase-file", next.to_str().unwrap()];
        stage.one.run_with_passphrase(PASSPHRASE, &change).ok();
        let run = other.run_with_passphrase("battery staple", &clone).ok();
        assert!(!run.stderr.contains("damaged"), "{}", run.stderr);
        assert!(stage.is_sealed);
    }
}

/// What a store says of the history: the objects of the log, by slot and place.
fn log_objects(store: &Path) -> Vec<PathBuf> {
    let found = contents(&inside(store).join("log"));
    found.into_iter().map(|(path, _)| path).collect()
}

/// How a store lies about the history.
type Lie = fn(&Path);

/// It has forgotten everything.
fn omit(store: &Path) {
    fs::remove_dir_all(inside(store).join("log")).unwrap();
}

/// It has forgotten the newest half.
fn go_back(store: &Path) {
    let all = log_objects(store);
    all[all.len() / 2..].iter().for_each(|path| fs::remove_file(path).unwrap());
}

/// It says of each slot what belongs to another one.
fn reorder(store: &Path) {
    let all = log_objects(store);
    let said: Vec<Vec<u8>> = all.iter().map(|path| fs::read(path).unwrap()).collect();
    for (path, bytes) in all.iter().zip(said.iter().rev()) {
        fs::write(path, bytes).unwrap();
    }
}

/// It changes a bit of everything.
fn invent(store: &Path) {
    for path in log_objects(store) {
        let mut bytes = fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(path, bytes).unwrap();
    }
}

#[test]
fn one_of_four_stores_may_lie_about_the_history() {
    let lies: [Lie; 4] = [omit, go_back, reorder, invent];
    for (number, lie) in lies.into_iter().enumerate() {
        let stage = Stage::made(4, true, &["--replicas", "2", "--stores-may-lie"]);
        let two = stage.device("two");
        stage.clone(&two, &[0, 1, 2, 3]).ok();
        for turn in 0..3 {
            stage.one.write("letter", format!("dear {turn}\n"));
            stage.one.sync().ok();
            two.sync().ok();
        }
        for path in log_objects(&stage.store(number)) {
            assert_eq!(fs::read(&path).unwrap()[1], b'Z', "{} is signed", path.display());
        }
        lie(&stage.store(number));
        stage.assert_together(&two);
        // A new device and one that was away see the same history, and nobody is led astray by what the store says next.
        lie(&stage.store(number));
        let three = stage.device("three");
        stage.clone(&three, &[0, 1, 2, 3]).ok();
        stage.assert_together(&three);
        two.sync().ok();
        assert_eq!(two.tree(), stage.one.tree());
    }
}

#[test]
fn stores_that_may_lie_are_exchanged_like_others() {
    let stage = Stage::made(4, true, &["--replicas", "2", "--stores-may-lie"]);
    let two = stage.device("two");
    stage.clone(&two, &[0, 1, 2, 3]).ok();
    stage
        .one
        .run_with_passphrase(
            PASSPHRASE,
            &["backend", "add", "s4", &stage.backend(4)["s4=".len()..]],
        )
        .ok();
    let stores = stage.one.run_with_passphrase(PASSPHRASE, &["backend", "ls", "--json"]).json();
    assert_eq!(stores["liars"], 1);
    fs::remove_dir_all(stage.store(1)).unwrap();
    stage.one.run_with_passphrase(PASSPHRASE, &["backend", "rm", "s1", "--dead"]).ok();
    omit(&stage.store(4));
    stage.assert_together(&two);
    let three = stage.device("three");
    stage.clone(&three, &[0, 2, 3]).ok();
    stage.assert_together(&three);
    let few = stage.one.run_with_passphrase(PASSPHRASE, &["backend", "rm", "s2"]).ends_with(2);
    assert!(few.stderr.contains("4 or more must agree"), "{}", few.stderr);
}

#[test]
fn lies_take_four_stores_and_keys_to_be_withstood() {
    let room = tempfile::tempdir().unwrap();
    let device = Device::new(room.path(), "one");
    let backends: Vec<String> = (0..3)
        .map(|number| format!("s{number}=file:{}/s{number}", room.path().display()))
        .collect();
    let mut words = vec!["init", "--stores-may-lie"];
    words.extend(backends.iter().flat_map(|backend| ["--backend", backend]));
    let refused = device.run(&words).ends_with(2);
    assert!(refused.stderr.contains("4 or more must agree"), "{}", refused.stderr);
    words.push("--plain");
    device.run(&words).ends_with(2);
    assert!(!room.path().join("s0").exists(), "nothing was touched");
}
