//! A database, a broker, and server processes of every role, which are killed, stopped and started again.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use tempfile::TempDir;
use xtask::services::{Service, Services};

use super::small_disk::SmallDisk;
use crate::stage::{ALONE, PATIENCE, running};

pub(crate) const PASSWORD: &str = "correct horse battery staple";

/// How the service is called that has the database.
const DATABASE: &str = "postgresql";

/// Counts the databases of this process.
static NUMBER: AtomicU32 = AtomicU32::new(0);

/// What the servers of a cluster share.
pub(crate) struct Machines {
    pub(crate) running: Services,
    pub(crate) broker: &'static str,
    /// What the database lies on, if that is a disk of its own.
    pub(crate) disk: Option<SmallDisk>,
    room: TempDir,
    /// The address of the database.
    database: String,
    /// Whom the servers trust, where the broker is reached over TLS.
    trusted: Option<String>,
    _alone: MutexGuard<'static, ()>,
}

impl Drop for Machines {
    fn drop(&mut self) {
        for service in [self.broker, DATABASE] {
            let _ = self.running.thaw(service);
            let _ = self.running.revive(service);
        }
        if std::thread::panicking() {
            self.show_logs();
        }
    }
}

impl Machines {
    /// Makes an empty database with an account.
    pub(crate) fn set(broker: &'static str) -> Self {
        Self::set_on(broker, |_| None)
    }

    /// The same, the database on a disk that a few MB fill.
    pub(crate) fn set_on_a_small_disk(broker: &'static str) -> Self {
        Self::set_on(broker, |running| Some(SmallDisk::mount(running)))
    }

    fn set_on(broker: &'static str, disk: impl FnOnce(&Services) -> Option<SmallDisk>) -> Self {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let running = running();
        let room = tempfile::tempdir().unwrap();
        let postgresql = running.service(DATABASE).unwrap();
        std::fs::write(room.path().join("password"), postgresql.credential("password").unwrap())
            .unwrap();
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("scaled_{}_{number}", std::process::id());
        let disk = disk(&running);
        let mut making = client("createdb", postgresql);
        making.args(disk.as_ref().map(|disk| format!("--tablespace={}", disk.name())));
        assert!(making.arg(&name).status().unwrap().success());
        let (server, _) = postgresql.url.rsplit_once('/').unwrap();
        let database = format!("{server}/{name}");
        let machines = Self { running, broker, disk, room, database, trusted: None, _alone: alone };
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
        self.running.service(self.broker).unwrap().credential(wanted).unwrap()
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
        self.command_at(&self.database, words)
    }

    fn command_at(&self, database: &str, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_syncline"));
        command.args(words).args(["--database", database]);
        command.env("SYNCLINE_HOME", self.room.path().join("home"));
        command.env("SYNCLINE_DATABASE_PASSWORD_FILE", self.room.path().join("password"));
        command
    }

    /// Starts a server of a role; `name` is that of its data folder.
    pub(crate) fn start(&self, role: &str, name: &str) -> Machine {
        self.start_at(&self.database, role, name)
    }

    /// The same, of one that reaches the database by another port.
    pub(crate) fn start_through(&self, port: u16, role: &str, name: &str) -> Machine {
        let direct = format!(":{}/", self.database_port());
        let database = self.database.replace(&direct, &format!(":{port}/"));
        self.start_at(&database, role, name)
    }

    fn start_at(&self, database: &str, role: &str, name: &str) -> Machine {
        let mut machine = Machine {
            role: role.to_owned(),
            database: database.to_owned(),
            data: self.room.path().join(name),
            address: "127.0.0.1:0".to_owned(),
            metrics: format!("127.0.0.1:{}", free_port()),
            child: None,
        };
        machine.run(self);
        machine
    }

    /// The port on which the database listens.
    pub(crate) fn database_port(&self) -> u16 {
        let (_, rest) = self.database.rsplit_once(':').unwrap();
        rest.split('/').next().unwrap().parse().unwrap()
    }

    /// Kills the database.
    pub(crate) fn kill_database(&self) {
        self.running.kill(DATABASE).unwrap();
    }

    /// Starts the database again.
    pub(crate) fn revive_database(&mut self) {
        self.running.revive(DATABASE).unwrap();
    }

    /// Stops the database where it stands, while something is done.
    pub(crate) fn pause_database(&self, work: impl FnOnce()) {
        self.running.freeze(DATABASE).unwrap();
        work();
        self.running.thaw(DATABASE).unwrap();
    }

    /// Stops the broker where it stands, while something is done.
    pub(crate) fn pause_broker(&self, work: impl FnOnce()) {
        self.running.freeze(self.broker).unwrap();
        work();
        self.running.thaw(self.broker).unwrap();
    }

    /// Asks the database to end without waiting for its clients, and starts it again when it has.
    pub(crate) fn restart_database(&mut self) {
        let service = self.running.service(DATABASE).unwrap();
        let id = Pid::from_raw(service.processes[0].id.cast_signed()).unwrap();
        rustix::process::kill_process(id, Signal::INT).unwrap();
        let start = Instant::now();
        while self.running.is_running(self.running.service(DATABASE).unwrap()) {
            assert!(start.elapsed() < PATIENCE, "the database does not end");
            std::thread::sleep(Duration::from_millis(20));
        }
        self.revive_database();
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

/// Returns a port that nobody listened on just now.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// One server process.
pub(crate) struct Machine {
    role: String,
    database: String,
    data: PathBuf,
    address: String,
    /// Where it tells what it counts.
    metrics: String,
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
        let words = ["serve", "--no-input", "--role", &self.role];
        let mut command = machines.command_at(&self.database, &words);
        command.args(["--broker", broker, "--store", &store, "--listen", &self.address, "--data"]);
        command.arg(&self.data).args(["--metrics-listen", &self.metrics]);
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

    /// Returns what it has counted of a metric with its labels.
    pub(crate) fn metric(&self, name: &str) -> u64 {
        let mut stream = TcpStream::connect(&self.metrics).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
        let mut page = String::new();
        stream.read_to_string(&mut page).unwrap();
        let line = page.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().parse().unwrap()
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

/// A program that comes with PostgreSQL, and speaks to the one of the tests.
pub(crate) fn client(program: &str, postgresql: &Service) -> Command {
    let mut command = Command::new(program);
    let option = if program == "psql" { "--dbname" } else { "--maintenance-db" };
    command
        .args([option, &postgresql.url])
        .env("PGPASSWORD", postgresql.credential("password").unwrap());
    command
}
