//! PostgreSQL: a cluster of its own with one role, which needs a password, and an empty database for whoever makes others.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use super::Service;
use super::place::{Place, free_port, is_root, version};
use crate::failure::{Context, Result, fail};
use crate::process;

const PASSWORD: &str = "a-password-for-loopback-only";

/// It refuses to run as root.
const USER: &str = "postgres";

/// Where Debian puts the programs of each version.
const VERSIONS: &str = "/usr/lib/postgresql";

pub(super) const NAME: &str = "postgresql";

/// How long it may take to replay what it had not written down.
const PATIENCE: Duration = Duration::from_secs(60);

/// Its programs lie where no path leads.
pub(super) fn is_installed() -> bool {
    programs().is_ok_and(|programs| programs.join("postgres").exists())
}

pub(super) fn start(place: &Place) -> Result<Service> {
    let port = free_port()?;
    let programs = programs()?;
    let data = place.make_folder("data", USER)?;
    let password = place.write("password", PASSWORD)?;
    let mut command = as_user(&programs.join("initdb"));
    command.args(["--pgdata", &data, "--username", "syncline", "--pwfile", &password]);
    command.args(["--auth", "scram-sha-256", "--encoding", "UTF8", "--locale", "C"]);
    process::output(&mut command)?;
    // It reads its key only where nobody else can.
    let (certificate, key) = place.certificate()?;
    if is_root() {
        process::output(Command::new("chown").arg(USER).args([&certificate, &key]))?;
    }
    process::output(Command::new("chmod").arg("600").arg(&key))?;
    let server = programs.join("postgres");
    let mut command = as_user(&server);
    command.args(["-D", &data, "-p", &port.to_string()]);
    command.args(["-c", "ssl=on", "-c", &format!("ssl_cert_file={certificate}")]);
    command.args(["-c", &format!("ssl_key_file={key}")]);
    // The lock beside a socket would outlive a server that is killed.
    command.args(["-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="]);
    // Tests wait for those who wait for each other, and need not do so for a second each time.
    command.args(["-c", "deadlock_timeout=100ms"]);
    let process = place.serve("postgresql", &command, port)?;
    Ok(Service {
        name: NAME.to_owned(),
        version: version(&server.display().to_string(), "--version"),
        url: format!("postgres://syncline@127.0.0.1:{port}/postgres"),
        credentials: vec![
            ("user".to_owned(), "syncline".to_owned()),
            ("password".to_owned(), PASSWORD.to_owned()),
            ("certificate_file".to_owned(), certificate),
        ],
        processes: vec![process],
    })
}

/// Waits until it takes connections: it listens before that, while it replays what it had not written down when it was killed.
pub(super) fn wait_until_ready(service: &Service) -> Result<()> {
    let until = Instant::now() + PATIENCE;
    let mut command = Command::new(programs()?.join("pg_isready"));
    command.args(["--quiet", "--dbname", &service.url]);
    while !command.status().context("pg_isready")?.success() {
        if Instant::now() > until {
            return fail("PostgreSQL listens, and takes no connections");
        }
        thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// The folder of the newest version.
fn programs() -> Result<PathBuf> {
    let versions = std::fs::read_dir(VERSIONS).context(VERSIONS)?.flatten();
    let number = |path: &Path| path.file_name()?.to_str()?.parse::<u32>().ok();
    let newest = versions.map(|entry| entry.path()).max_by_key(|path| number(path));
    match newest {
        Some(newest) => Ok(newest.join("bin")),
        None => fail(format!("no version of PostgreSQL lies in {VERSIONS}")),
    }
}

/// A program that runs as somebody who may run it.
fn as_user(program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid", USER, "--regid", USER, "--clear-groups"]).arg(program);
    command
}
