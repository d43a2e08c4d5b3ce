//! Two servers that share one PostgreSQL and one store, and devices that sync through either.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::PoisonError;
use std::time::Instant;

use rustix::process::Signal;
use xtask::services::Services;

use crate::stage::{ALONE, PATIENCE, running};
use crate::support::{Device, Run, fill, terminate};

const DATABASE: &str = "postgresql";
const PASSWORD: &str = "correct horse battery staple\n";

/// What every command for the servers says.
struct Operator {
    device: Device,
    room: PathBuf,
    database: String,
}

impl Operator {
    fn new(room: &Path, running: &Services) -> Self {
        let service = running.service(DATABASE).unwrap();
        fs::write(room.join("password"), service.credential("password").unwrap()).unwrap();
        let device = Device::new(room, "operator");
        Self { device, room: room.to_owned(), database: service.url.clone() }
    }

    fn command(&self, words: &[&str], server: &str) -> Command {
        let mut command = self.device.command(words);
        command.arg("--data").arg(self.room.join(server)).args(["--database", &self.database]);
        command.env("SYNCLINE_DATABASE_PASSWORD_FILE", self.room.join("password"));
        command
    }

    fn add(&self, name: &str) {
        let words = ["user", "add", name, "--password-stdin"];
        let mut command = self.command(&words, "server-1");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(PASSWORD.as_bytes()).unwrap();
        Run::of(child.wait_with_output().unwrap()).ok();
    }

    fn serve(&self, server: &str, listen: &str) -> Server {
        let mut command = self.command(&["serve", "--listen", listen], server);
        command.arg("--store").arg(format!("file:{}", self.room.join("store").display()));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().strip_prefix("listening on ");
        Server { url: url.unwrap_or_else(|| panic!("it said: {line}")).to_owned(), child }
    }
}

struct Server {
    url: String,
    child: Child,
}

impl Server {
    fn address(&self) -> String {
        self.url.trim_start_matches("http://").to_owned()
    }

    fn login(&self, device: &Device, user: &str) {
        let words = ["login", &self.url, "--user", user, "--password-stdin"];
        device.run_with_input(&words, PASSWORD).ok();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Syncs until it succeeds, as a user does who is told to try again.
fn sync_at_last(device: &Device) {
    let start = Instant::now();
    loop {
        let run = device.sync();
        if run.code == 0 {
            return;
        }
        assert!(start.elapsed() < PATIENCE, "{run:?}");
    }
}

#[test]
fn devices_sync_through_two_servers_on_one_database_whatever_starts_again() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut running = running();
    let room = tempfile::tempdir().unwrap();
    let operator = Operator::new(room.path(), &running);
    let user = format!("ada{}", std::process::id());
    operator.add(&user);
    let (first, second) =
        (operator.serve("server-1", "127.0.0.1:0"), operator.serve("server-2", "127.0.0.1:0"));
    let (one, other) = (Device::new(room.path(), "one"), Device::new(room.path(), "other"));
    first.login(&one, &user);
    second.login(&other, &user);
    fill(&one);
    one.run(&["init", "--workspace", "Notes", "--plain"]).ok();
    one.sync().ok();
    other.run(&["clone", "Notes", other.folder.to_str().unwrap()]).ok();
    assert_eq!(one.tree(), other.tree());

    // A server is killed and starts again, and another one stops in good order.
    let (addresses, mut first) = ((first.address(), second.address()), first);
    terminate(&mut first.child, Signal::KILL);
    drop(first);
    let _first = operator.serve("server-1", &addresses.0);
    let mut second = second;
    assert_eq!(terminate(&mut second.child, Signal::TERM), Some(0));
    let _second = operator.serve("server-2", &addresses.1);
    other.write("from the other", "side");
    sync_at_last(&other);
    sync_at_last(&one);
    assert_eq!(one.tree(), other.tree());

    // The database dies. Nobody is told that something is kept which is not.
    running.kill(DATABASE).unwrap();
    one.write("in a bad moment", vec![7; 100_000]);
    let run = one.sync();
    assert_ne!(run.code, 0, "{run:?}");
    running.revive(DATABASE).unwrap();
    sync_at_last(&one);
    sync_at_last(&other);
    assert_eq!(one.tree(), other.tree());
    assert!(other.has("in a bad moment"));
}

/// Commands for a server reach its database over TLS where the system trusts it, and nothing is said to it where not.
#[test]
fn a_database_is_reached_over_tls_and_a_stranger_is_not() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let running = running();
    let room = tempfile::tempdir().unwrap();
    let mut operator = Operator::new(room.path(), &running);
    let service = running.service(DATABASE).unwrap();
    let trusted = service.credential("certificate_file").unwrap().to_owned();
    let list = |operator: &Operator, trusted: &str| {
        let mut command = operator.command(&["user", "ls"], "server-1");
        Run::of(command.env("SSL_CERT_FILE", trusted).output().unwrap())
    };
    for mode in ["verify-full", "require"] {
        let url = service.url.replace("127.0.0.1", "localhost");
        operator.database = format!("{url}?sslmode={mode}");
        list(&operator, &trusted).ok();
        let stranger = Path::new(env!("CARGO_MANIFEST_DIR")).join("../server/tests/it/tls/one.pem");
        let refused = list(&operator, stranger.to_str().unwrap()).ends_with(6);
        assert!(refused.stderr.contains("certificate"), "{}", refused.stderr);
    }
    // The certificate is for a name, and this is another one.
    operator.database = format!("{}?sslmode=verify-full", service.url);
    list(&operator, &trusted).ends_with(6);
}
