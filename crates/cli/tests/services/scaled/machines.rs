//! A database, a broker, and server processes of every role, which are killed, stopped and started again.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{MutexGuard, PoisonError};

use rustix::process::{Pid, Signal};
use tempfile::TempDir;
use xtask::services::{Services, VARIABLE};

use crate::stage::ALONE;

pub(crate) const PASSWORD: &str = "correct horse battery staple";

/// What the servers of a cluster share.
pub(crate) struct Machines {
    pub(crate) running: Services,
    pub(crate) broker: &'static str,
    room: TempDir,
    database: String,
    /// Whom the servers trust, where the broker is reached over TLS.
    trusted: Option<String>,
    _alone: MutexGuard<'static, ()>,
}

impl Drop for Machines {
    fn drop(&mut self) {
        let _ = self.running.revive(self.broker);
        if std::thread::panicking() {
            self.show_logs();
        }
    }
}

impl Machines {
    /// Makes an empty database with an account.
    pub(crate) fn set(broker: &'static str) -> Self {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let path = std::env::var(VARIABLE)
            .expect("SYNCLINE_SERVICES is not set: `cargo xtask services test` sets it");
        let running = Services::read(Path::new(&path)).unwrap();
        let room = tempfile::tempdir().unwrap();
        let postgresql = running.service("postgresql").unwrap();
        let (_, password) =
            postgresql.credentials.iter().find(|(name, _)| name == "password").unwrap();
        std::fs::write(room.path().join("password"), password).unwrap();
        let name = format!("scaled_{}_{broker}", std::process::id());
        let (server, _) = postgresql.url.rsplit_once('/').unwrap();
        let made = Command::new("createdb")
            .args(["--maintenance-db", &postgresql.url, &name])
            .env("PGPASSWORD", password)
            .status()
            .expect("createdb comes with the PostgreSQL of the tests");
        assert!(made.success());
        let database = format!("{server}/{name}");
        let machines = Self { running, broker, room, database, trusted: None, _alone: alone };
        let mut adding =
            machines.command(&["user", "add", "ada", "--password-stdin", "--no-input"]);
        let mut adding = adding.stdin(Stdio::piped()).spawn().unwrap();
        adding.stdin.take().unwrap().write_all(PASSWORD.as_bytes()).unwrap();
        assert!(adding.wait().unwrap().success());
        machines
    }

    /// Lets the servers that start from now on reach the broker over TLS, and trust this certificate; its own, if it is none.
    pub(crate) fn trust(&mut self, certificate: Option<&str>) {
        let own = || self.of_broker("certificate_file").to_owned();
        self.trusted = Some(certificate.map_or_else(own, str::to_owned));
    }

    fn of_broker(&self, wanted: &str) -> &str {
        let service = self.running.service(self.broker).unwrap();
        let mut credentials = service.credentials.iter();
        &credentials.find(|(name, _)| name == wanted).unwrap().1
    }

    /// Shows the end of what each server has said.
    #[expect(clippy::print_stdout, reason = "it belongs to the failure of a test")]
    fn show_logs(&self) {
        for entry in std::fs::read_dir(self.room.path()).unwrap().flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|ending| ending == "log") {
                let text = std::fs::read_to_string(&path).unwrap_or_default();
                let lines: Vec<_> = text.lines().collect();
                let end = &lines[lines.len().saturating_sub(30)..];
                println!("--- {}\n{}", path.display(), end.join("\n"));
            }
        }
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_syncline"));
        command.args(words).args(["--database", &self.database]);
        command.env("SYNCLINE_HOME", self.room.path().join("home"));
        command.env("SYNCLINE_DATABASE_PASSWORD_FILE", self.room.path().join("password"));
        command
    }

    /// Starts a server of a role; `name` is that of its data folder.
    pub(crate) fn start(&self, role: &str, name: &str) -> Machine {
        let mut machine = Machine {
            role: role.to_owned(),
            data: self.room.path().join(name),
            address: "127.0.0.1:0".to_owned(),
            child: None,
        };
        machine.run(self);
        machine
    }

    /// Kills the broker.
    pub(crate) fn kill_broker(&self) {
        self.running.kill(self.broker).unwrap();
    }

    /// Removes all that the broker has remembered; it is dead.
    pub(crate) fn wipe_broker(&self) {
        std::fs::remove_dir_all(self.running.folder().join(self.broker).join("data")).unwrap();
    }

    /// Starts the broker again.
    pub(crate) fn revive_broker(&mut self) {
        self.running.revive(self.broker).unwrap();
    }
}

/// One server process.
pub(crate) struct Machine {
    role: String,
    data: PathBuf,
    address: String,
    child: Option<Child>,
}

impl Machine {
    /// Starts it, again at its address.
    pub(crate) fn run(&mut self, machines: &Machines) {
        let broker = match &machines.trusted {
            Some(_) => machines.of_broker("tls_url"),
            None => &machines.running.service(machines.broker).unwrap().url,
        };
        let store = format!("file:{}", machines.room.path().join("store").display());
        let mut command = machines.command(&["serve", "--no-input", "--role", &self.role]);
        command.args(["--broker", broker, "--store", &store, "--listen", &self.address, "--data"]);
        command.arg(&self.data);
        command.envs(machines.trusted.iter().map(|file| ("SSL_CERT_FILE", file)));
        let log = self.data.with_extension("log");
        let log = std::fs::File::options().create(true).append(true).open(log).unwrap();
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on http://");
        let said = || std::fs::read_to_string(self.data.with_extension("log"));
        self.address = address.unwrap_or_else(|| panic!("{line:?} {:?}", said())).to_owned();
        self.child = Some(child);
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Ends it without a word.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Asks it to end, and waits until it has.
    pub(crate) fn stop(&mut self) {
        self.signal(Signal::TERM);
        assert!(self.child.take().unwrap().wait().unwrap().success());
    }

    pub(crate) fn signal(&self, signal: Signal) {
        rustix::process::kill_process(Pid::from_child(self.child.as_ref().unwrap()), signal)
            .unwrap();
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.kill();
    }
}
