//! Devices, servers and trees for the tests.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime};

use serde_json::Value;

/// The program.
pub(crate) const SYNCLINE: &str = env!("CARGO_BIN_EXE_syncline");

pub(crate) const PASSWORD: &str = "correct horse";

/// What a run printed and how it ended.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) bytes: Vec<u8>,
}

impl Run {
    /// What a program gave that has ended.
    pub(crate) fn of(output: std::process::Output) -> Self {
        use std::os::unix::process::ExitStatusExt;
        let code = output.status.code().unwrap_or_else(|| -output.status.signal().unwrap_or(0));
        Self {
            code,
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            bytes: output.stdout,
        }
    }

    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        self.ends_with(0)
    }

    #[track_caller]
    pub(crate) fn ends_with(self, code: i32) -> Self {
        assert_eq!(self.code, code, "\nstdout: {}\nstderr: {}", self.stdout, self.stderr);
        self
    }

    /// The last line of stdout as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        let last = self.stdout.lines().last().unwrap_or_default();
        serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {}", self.stdout))
    }
}

/// One device: a home and a folder.
#[derive(Debug, Clone)]
pub(crate) struct Device {
    pub(crate) home: PathBuf,
    pub(crate) folder: PathBuf,
}

impl Device {
    pub(crate) fn new(room: &Path, name: &str) -> Self {
        let folder = room.join(name);
        fs::create_dir_all(&folder).unwrap();
        Self { home: room.join(format!("home-{name}")), folder: folder.canonicalize().unwrap() }
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(SYNCLINE);
        command.args(words).env_clear().env("SYNCLINE_HOME", &self.home).env("HOME", &self.home);
        command.env("LC_ALL", "C.UTF-8").current_dir(&self.folder).stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, words: &[&str]) -> Run {
        finish(self.command(words))
    }

    /// Writes a passphrase into a file beside the home, each into one of its own, and returns its path.
    pub(crate) fn passphrase_file(&self, passphrase: &str) -> String {
        let name = format!("secret-{}", blake3::hash(passphrase.as_bytes()));
        let path = self.home.with_file_name(name);
        fs::write(&path, format!("{passphrase}\n")).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn command_with_passphrase(&self, passphrase: &str, words: &[&str]) -> Command {
        let mut command = self.command(words);
        command.env("SYNCLINE_PASSPHRASE_FILE", self.passphrase_file(passphrase));
        command
    }

    /// Runs a command that may read a passphrase.
    pub(crate) fn run_with_passphrase(&self, passphrase: &str, words: &[&str]) -> Run {
        finish(self.command_with_passphrase(passphrase, words))
    }

    /// Lets this device wait for another one, and returns the code that it shows.
    pub(crate) fn pair(&self, passphrase: &str) -> (Child, String) {
        let mut command = self.command_with_passphrase(passphrase, &["pair", "--yes", "--json"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let line: Value = serde_json::from_str(&line).unwrap_or_default();
        (child, line["code"].as_str().unwrap_or_default().to_owned())
    }

    pub(crate) fn run_with_input(&self, words: &[&str], input: &str) -> Run {
        let mut command = self.command(words);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        Run::of(child.wait_with_output().unwrap())
    }

    pub(crate) fn sync(&self) -> Run {
        self.run(&["sync", "--json"])
    }

    pub(crate) fn write(&self, path: &str, bytes: impl AsRef<[u8]>) {
        let path = self.folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> Vec<u8> {
        fs::read(self.folder.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    pub(crate) fn has(&self, path: &str) -> bool {
        self.folder.join(path).symlink_metadata().is_ok()
    }

    /// The only folder memory in the home.
    pub(crate) fn memory(&self) -> PathBuf {
        let mut found = fs::read_dir(self.home.join("folders")).unwrap();
        found.next().unwrap().unwrap().path()
    }

    pub(crate) fn tree(&self) -> BTreeMap<PathBuf, String> {
        tree(&self.folder)
    }
}

pub(crate) fn finish(mut command: Command) -> Run {
    Run::of(command.output().unwrap())
}

/// Everything that is kept of a tree, as text; nothing of what the program keeps for itself, in it or in a workspace inside.
pub(crate) fn tree(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![PathBuf::new()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(root.join(&directory)).unwrap() {
            let entry = entry.unwrap();
            let path = directory.join(entry.file_name());
            if entry.file_name() == ".syncline" {
                continue;
            }
            let data = entry.path().symlink_metadata().unwrap();
            let (mode, time) =
                (data.permissions().mode() & 0o777, (data.mtime(), data.mtime_nsec()));
            let text = if data.is_dir() {
                waiting.push(path.clone());
                format!("directory {mode:o}")
            } else if data.is_symlink() {
                format!("link {:?} {time:?}", fs::read_link(entry.path()).unwrap())
            } else {
                let hash = blake3::hash(&fs::read(entry.path()).unwrap());
                format!("file {mode:o} {time:?} {} {hash}", data.len())
            };
            found.insert(path, text);
        }
    }
    found
}

/// A running server; it is killed when this value goes.
pub(crate) struct Server {
    pub(crate) url: String,
    pub(crate) data: PathBuf,
    child: Child,
}

impl Server {
    /// Starts a server with the account `ada`.
    pub(crate) fn start(room: &Path) -> Self {
        let data = room.join("server");
        let operator = Device::new(room, "operator");
        let words = ["user", "add", "ada", "--password-stdin", "--data", data.to_str().unwrap()];
        operator.run_with_input(&words, PASSWORD).ok();
        Self::start_at(&operator, data, "127.0.0.1:0")
    }

    /// Starts a server on a data folder.
    pub(crate) fn start_at(operator: &Device, data: PathBuf, listen: &str) -> Self {
        let mut command =
            operator.command(&["serve", "--listen", listen, "--data", data.to_str().unwrap()]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url =
            line.trim().strip_prefix("listening on ").unwrap_or_else(|| panic!("it said: {line}"));
        Self { url: url.to_owned(), data, child }
    }

    /// One that was started in another way.
    pub(crate) fn around(url: String, data: PathBuf, child: Child) -> Self {
        Self { url, data, child }
    }

    pub(crate) fn process(&self) -> &Child {
        &self.child
    }

    pub(crate) fn login(&self, device: &Device, name: &str) {
        let words = ["login", &self.url, "--user", "ada", "--password-stdin", "--device", name];
        device.run_with_input(&words, PASSWORD).ok();
    }

    pub(crate) fn stop(&mut self) {
        terminate(&mut self.child, rustix::process::Signal::TERM);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a signal and waits for the end. Returns the exit code.
pub(crate) fn terminate(child: &mut Child, signal: rustix::process::Signal) -> Option<i32> {
    let pid = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(pid, signal).unwrap();
    child.wait().unwrap().code()
}

/// Two devices and where their workspace lives.
pub(crate) struct Pair {
    pub(crate) room: tempfile::TempDir,
    pub(crate) server: Option<Server>,
    pub(crate) one: Device,
    pub(crate) other: Device,
}

/// The coordinators, for tests that must hold with each.
pub(crate) const BOTH: [bool; 2] = [true, false];

impl Pair {
    /// Two devices that have nothing in common yet.
    pub(crate) fn new(is_served: bool) -> Self {
        let room = tempfile::tempdir().unwrap();
        let (one, other) = (Device::new(room.path(), "one"), Device::new(room.path(), "other"));
        let server = is_served.then(|| Server::start(room.path()));
        if let Some(server) = &server {
            server.login(&one, "laptop");
            server.login(&other, "desktop");
        }
        Self { room, server, one, other }
    }

    /// Two devices with one workspace; the first has synced what `fill` made.
    pub(crate) fn synced(is_served: bool, fill: impl FnOnce(&Device)) -> Self {
        let pair = Self::new(is_served);
        fill(&pair.one);
        pair.init();
        pair.one.sync().ok();
        pair.clone_other().ok();
        pair
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.room.path().join("store")
    }

    fn place(&self) -> Vec<String> {
        if self.server.is_some() {
            return Vec::new();
        }
        vec!["--backend".to_owned(), format!("disk=file:{}", self.store().display())]
    }

    pub(crate) fn init(&self) {
        let place = self.place();
        let mut words = vec!["init", "--workspace", "Notes", "--plain"];
        words.extend(place.iter().map(String::as_str));
        self.one.run(&words).ok();
    }

    pub(crate) fn clone_other(&self) -> Run {
        let place = self.place();
        let mut words = vec!["clone", "Notes", self.other.folder.to_str().unwrap(), "--json"];
        words.extend(place.iter().map(String::as_str));
        self.other.run(&words)
    }

    /// Lets both exchange until nothing is left.
    #[track_caller]
    pub(crate) fn settle(&self) {
        for device in [&self.one, &self.other, &self.one] {
            let run = device.sync();
            assert!([0, 3, 5].contains(&run.code), "{run:?}");
        }
    }

    #[track_caller]
    pub(crate) fn assert_equal(&self) {
        assert_eq!(self.one.tree(), self.other.tree());
    }
}

/// A few files of every kind.
pub(crate) fn fill(device: &Device) {
    device.write("a.txt", "first\n");
    device.write("deep/er/b.txt", "second\n");
    device.write("zero", "");
    device.write("big.bin", noise(3 << 20));
    device.write("private", "mine\n");
    device.write("run.sh", "#!/bin/sh\n");
    device.write("\u{fc}mlaut \u{1f600}\n", "any name\n");
    fs::create_dir_all(device.folder.join("empty/inside")).unwrap();
    let mode = |path: &str, mode| {
        fs::set_permissions(device.folder.join(path), fs::Permissions::from_mode(mode)).unwrap();
    };
    mode("private", 0o600);
    mode("run.sh", 0o755);
    mode("deep", 0o750);
    symlink("deep/er/b.txt", device.folder.join("link")).unwrap();
    symlink("/nowhere/at all", device.folder.join("dangling")).unwrap();
    let old = SystemTime::UNIX_EPOCH - Duration::new(1_000_000, 1);
    fs::File::options()
        .write(true)
        .open(device.folder.join("private"))
        .unwrap()
        .set_modified(old)
        .unwrap();
}

/// A document with a picture in it, and a text that is compressed: an edit of a word changes all of that behind the word.
pub(crate) fn document(text: &str) -> Vec<u8> {
    [content::documents::document(text.as_bytes()), noise(60_000)].concat()
}

/// So many words, few of which are the same beside each other.
pub(crate) fn words(count: u32) -> String {
    let word = |number: u32| format!("word{} ", number.wrapping_mul(number) % 9973);
    (0..count).map(word).collect()
}

/// Bytes that do not compress.
pub(crate) fn noise(length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    blake3::Hasher::new().finalize_xof().fill(&mut bytes);
    bytes
}
