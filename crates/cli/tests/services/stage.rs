//! Five stores on real servers of five kinds, and two devices with an encrypted workspace in them.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use xtask::services::{Services, VARIABLE};

use crate::support::{Device, Run, fill, noise, terminate};

const PASSPHRASE: &str = "correct horse";

/// The servers: SFTP, FTP, SMB, IMAP and WebDAV.
pub(crate) const SERVERS: [&str; 5] = ["openssh", "vsftpd", "samba", "dovecot", "apache"];

/// How much may be lost of what is kept so.
pub(crate) struct Kept {
    pub(crate) words: [&'static str; 2],
    pub(crate) stores_lost_max: usize,
}

/// Two copies of everything.
pub(crate) const TWO_COPIES: Kept = Kept { words: ["--replicas", "2"], stores_lost_max: 1 };

/// Five blocks, of which three are enough.
pub(crate) const THREE_OF_FIVE: Kept = Kept { words: ["--erasure", "3/5"], stores_lost_max: 2 };

/// How long anything here may take that does come about.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The tests share the servers and do terrible things to them, so one goes after the other.
pub(crate) static ALONE: Mutex<()> = Mutex::new(());

/// Returns the file that names the servers that run.
pub(crate) fn running_file() -> PathBuf {
    std::env::var_os(VARIABLE)
        .expect("SYNCLINE_SERVICES is not set: `cargo xtask services test` sets it")
        .into()
}

/// Returns the servers that run.
pub(crate) fn running() -> Services {
    Services::read(&running_file()).unwrap()
}

/// Writes the secrets of a store into a file that only its owner reads.
pub(crate) fn write_credentials<'a>(
    path: &Path,
    credentials: impl IntoIterator<Item = (&'a str, &'a str)>,
) {
    let lines = credentials.into_iter().map(|(key, value)| format!("{key} = {value:?}\n"));
    fs::write(path, lines.collect::<String>()).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

/// See the module.
pub(crate) struct Stage {
    pub(crate) running: Services,
    pub(crate) one: Device,
    pub(crate) other: Device,
    /// The folder in each store that this test alone uses.
    name: String,
    room: tempfile::TempDir,
    /// Accounts at servers, where they are not those of the other tests.
    users: BTreeMap<&'static str, &'static str>,
    _alone: MutexGuard<'static, ()>,
}

impl Drop for Stage {
    /// Leaves the servers to the next test as they were, also after a failure.
    fn drop(&mut self) {
        for server in SERVERS {
            let _ = self.running.thaw(server);
            let _ = self.running.revive(server);
        }
    }
}

impl Stage {
    /// Makes the workspace; the first device has synced a few files of every kind, and the other has cloned them.
    pub(crate) fn set(name: &str, kept: &Kept) -> Self {
        Self::set_with(name, kept, BTreeMap::new())
    }

    /// The same, with other accounts at some servers.
    pub(crate) fn set_with(
        name: &str,
        kept: &Kept,
        users: BTreeMap<&'static str, &'static str>,
    ) -> Self {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let running = running();
        let room = tempfile::tempdir().unwrap();
        let (one, other) = (Device::new(room.path(), "one"), Device::new(room.path(), "other"));
        let name = format!("{name}-{}", std::process::id());
        let stage = Self { running, one, other, name, room, users, _alone: alone };
        fill(&stage.one);
        let backends = SERVERS.map(|server| stage.backend(server));
        let mut words = vec!["init", "--workspace", "Notes", "--sealed"];
        words.extend(backends.iter().flat_map(|backend| ["--backend", backend]));
        words.extend(kept.words);
        let credentials = stage.credentials();
        words.extend(credentials.iter().map(String::as_str));
        stage.one.run_with_passphrase(PASSPHRASE, &words).ok();
        stage.one.sync().ok();
        stage.clone_into(&stage.other, SERVERS[3]);
        stage.assert_equal();
        stage
    }

    /// The address of the store at a server.
    fn backend(&self, server: &str) -> String {
        let url = &self.running.service(server).unwrap().url;
        format!("{server}={url}/{}", self.name)
    }

    /// The words that name the files with the secrets of all stores.
    fn credentials(&self) -> Vec<String> {
        let words = SERVERS.map(|server| {
            let path = self.room.path().join(format!("{server}.toml"));
            let kept = &self.running.service(server).unwrap().credentials;
            let credentials = kept.iter().map(|(key, value)| {
                let user = self.users.get(server).filter(|_| key == "user");
                (key.as_str(), user.map_or(value.as_str(), |user| user))
            });
            write_credentials(&path, credentials);
            ["--credentials".to_owned(), format!("{server}={}", path.display())]
        });
        words.into_iter().flatten().collect()
    }

    /// Brings the workspace to one more device, by what one store says.
    pub(crate) fn clone_into(&self, device: &Device, server: &str) {
        let (folder, backend) = (device.folder.to_str().unwrap(), self.backend(server));
        let mut words = vec!["clone", "Notes", folder, "--backend", &backend];
        let credentials = self.credentials();
        words.extend(credentials.iter().map(String::as_str));
        device.run_with_passphrase(PASSPHRASE, &words).ok();
    }

    /// A device more.
    pub(crate) fn device(&self, name: &str) -> Device {
        Device::new(self.room.path(), name)
    }

    /// Where a server keeps what is in the store.
    pub(crate) fn data(&self, server: &str) -> PathBuf {
        let inside = match server {
            "openssh" => "data/store",
            "vsftpd" => "root/data/store",
            "samba" => "share/store",
            "dovecot" => "mail",
            _ => "root/store",
        };
        let folder = self.running.folder().join(server).join(inside);
        match server {
            "dovecot" => folder,
            _ => folder.join(&self.name),
        }
    }

    /// Lets the first device send some files, and strikes the first stores that something arrives at, while it does.
    /// Returns which.
    pub(crate) fn strike_in_mid_sync(
        &self,
        (files, size): (u8, usize),
        count: usize,
        strike: impl Fn(&str),
    ) -> Vec<&'static str> {
        for number in 0..files {
            self.one.write(&format!("large/{number}"), noise_of(number, size));
        }
        let before = SERVERS.map(|server| files_below(&self.data(server)));
        let mut command = self.one.command(&["sync", "--json"]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut sync = Ended(child);
        let mut struck = Vec::new();
        let start = Instant::now();
        while struck.len() < count {
            assert!(start.elapsed() < PATIENCE, "nothing arrives at any store");
            for (server, before) in SERVERS.iter().zip(before) {
                let is_new = !struck.contains(server) && struck.len() < count;
                if is_new && files_below(&self.data(server)) > before {
                    strike(server);
                    struck.push(*server);
                }
            }
            assert!(sync.0.try_wait().unwrap().is_none(), "the sync ended before {struck:?}");
        }
        sync.finish().ok();
        struck
    }

    /// Lets the other device watch, and renew soon what was emptied, until something is so.
    #[track_caller]
    pub(crate) fn watch_until(&self, what: &str, mut is_so: impl FnMut() -> bool) {
        fs::write(self.other.home.join("config.toml"), "renew_after_s = 1\n").unwrap();
        let mut command = self.other.command(&["watch", "--json"]);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let mut watch = Ended(child);
        let start = Instant::now();
        while !is_so() {
            assert!(start.elapsed() < PATIENCE, "{what}: that did not come about");
        }
        terminate(&mut watch.0, Signal::TERM);
    }

    /// Lets both exchange all they have; their folders are equal then.
    #[track_caller]
    pub(crate) fn settle(&self) {
        for device in [&self.one, &self.other, &self.one] {
            device.sync().ok();
        }
        self.assert_equal();
    }

    #[track_caller]
    pub(crate) fn assert_equal(&self) {
        assert_eq!(self.one.tree(), self.other.tree());
    }

    /// Everything is where it should be, or can be brought there, and then is what it should be, to the last byte.
    #[track_caller]
    pub(crate) fn assert_repaired(&self) {
        self.other.run(&["check", "--repair", "--json"]).ok();
        let found = self.one.run(&["check", "--read-data", "--json"]).ok().json();
        let wrong = ["missing", "damaged", "lost", "out_of_reach"].map(|name| found[name].as_u64());
        assert_eq!(wrong, [Some(0); 4], "{found}");
        assert_eq!(found["unseen_stores"].as_array().map(Vec::len), Some(0), "{found}");
    }
}

/// A program that runs; it is killed when the test fails.
struct Ended(Child);

impl Ended {
    fn finish(&mut self) -> Run {
        use std::io::Read;
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        self.0.stdout.take().unwrap().read_to_end(&mut stdout).unwrap();
        self.0.stderr.take().unwrap().read_to_end(&mut stderr).unwrap();
        Run::of(std::process::Output { status: self.0.wait().unwrap(), stdout, stderr })
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Bytes that do not compress and are no others' bytes.
pub(crate) fn noise_of(number: u8, length: usize) -> Vec<u8> {
    let mut bytes = noise(length);
    for byte in &mut bytes {
        *byte ^= number.wrapping_add(1);
    }
    bytes
}

/// How many files there are below a folder.
fn files_below(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| if entry.path().is_dir() { files_below(&entry.path()) } else { 1 }).sum()
}
