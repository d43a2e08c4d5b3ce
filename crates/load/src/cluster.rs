//! What is under test: one server that does everything, or gateways and sync services over a database and a broker.
//!
//! Database and broker are real ones, started by `cargo xtask services`; the file that names them is all that is known of them here.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use xtask::services::Services;

use crate::machine::Part;
use crate::server_process::{ALONE, ServerProcess, Setting};

/// The brokers that a cluster may meet at, by the names of their services.
pub const BROKERS: [&str; 2] = ["rabbitmq", "nats"];

/// The service that holds accounts and logs.
pub const DATABASE: &str = "postgresql";

/// A database of its own, and what a program needs to use it.
#[derive(Debug)]
pub struct Ground {
    /// Database and brokers.
    pub services: Services,
    /// What the programs of a cluster have in common.
    pub setting: Setting,
    /// The address of the database, without its password.
    pub database: String,
    /// The database in which others are made.
    maintenance: String,
    password: String,
}

impl Ground {
    /// Makes an empty database at the services that `file` names, and a folder for the rest below `place`.
    ///
    /// # Errors
    /// Where the services do not run, or the database cannot be made.
    pub fn prepare(binary: &Path, place: &Path, file: &Path) -> Result<Self> {
        let services = Services::read(file)?;
        let service = services.service(DATABASE)?;
        let password = service.credential("password")?.to_owned();
        let setting = Setting::new(binary, place)?;
        let maintenance = service.url.clone();
        let (server, _) = maintenance.rsplit_once('/').context("an address names a database")?;
        // Two runs of one process, and those of two processes, do not meet.
        let unique = setting.folder().file_name().context("a folder has a name")?;
        let name = unique.to_string_lossy().to_lowercase().replace(['.', '-'], "_");
        let database = format!("{server}/{name}");
        let file = setting.folder().join("password");
        write_secret(&file, &password)?;
        let setting = setting.with_database(&database, file);
        let ground = Self { services, setting, database, maintenance, password };
        ground.run("createdb", &["--maintenance-db", &ground.maintenance, &name])?;
        Ok(ground)
    }

    /// Runs a program of PostgreSQL, and returns what it says.
    ///
    /// # Errors
    /// Where it fails; with what it said.
    pub fn run(&self, program: &str, words: &[&str]) -> Result<String> {
        let mut command = Command::new(program);
        let output = command.args(words).env("PGPASSWORD", &self.password).output();
        let output = output.with_context(|| format!("{program} comes with PostgreSQL"))?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        if !output.status.success() {
            bail!("{program}: {said}{}", String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(said)
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        let Some((_, name)) = self.database.rsplit_once('/') else { return };
        // The services end with their data at the latest.
        let words = ["--force", "--if-exists", "--maintenance-db", &self.maintenance, name];
        let _ = self.run("dropdb", &words);
    }
}

#[expect(clippy::disallowed_methods, reason = "a program reads its password from a file")]
fn write_secret(path: &Path, secret: &str) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(path, secret)?;
    Ok(std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?)
}

/// How many of each there are, and where they meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// The service that is the broker.
    pub broker: &'static str,
    /// How many let devices in.
    pub gateways: usize,
    /// How many take commits from the queue.
    pub sync_services: usize,
}

/// Programs that serve one set of devices.
#[derive(Debug)]
pub struct Cluster {
    /// Those that devices connect to.
    pub doors: Vec<ServerProcess>,
    /// Those that take commits from the queue, where there is one.
    pub workers: Vec<ServerProcess>,
    /// Where those answer who count.
    pub watched: Vec<SocketAddr>,
    beside: Vec<Part>,
}

impl Cluster {
    /// Makes accounts, and starts one server that does everything.
    ///
    /// # Errors
    /// Where it does not start.
    pub fn alone(binary: &Path, place: &Path, accounts: &[String]) -> Result<Self> {
        let setting = Setting::new(binary, place)?;
        setting.add_accounts(accounts)?;
        let door = ServerProcess::start(&setting, ALONE, &[])?;
        Ok(Self { doors: vec![door], workers: Vec::new(), watched: Vec::new(), beside: Vec::new() })
    }

    /// Starts gateways and sync services.
    ///
    /// # Errors
    /// Where one of them does not start.
    pub fn scaled(ground: &Ground, shape: Shape) -> Result<Self> {
        let part = |name, service| -> Result<Part> {
            let processes = &ground.services.service(service)?.processes;
            Ok(Part { name, processes: processes.iter().map(|process| process.id).collect() })
        };
        let beside = vec![part("database", DATABASE)?, part("broker", shape.broker)?];
        let mut cluster =
            Self { doors: Vec::new(), workers: Vec::new(), watched: Vec::new(), beside };
        for number in 1..=shape.gateways {
            let name = format!("gateway-{number}");
            cluster.doors.push(start(ground, shape, ("gateway", &name), &[])?);
        }
        for _ in 0..shape.sync_services {
            cluster.add_worker(ground, shape)?;
        }
        Ok(cluster)
    }

    /// Starts one more sync service.
    ///
    /// # Errors
    /// Where it does not start.
    pub fn add_worker(&mut self, ground: &Ground, shape: Shape) -> Result<()> {
        let name = format!("sync-service-{}", self.workers.len() + 1);
        let watched = free_address()?;
        let words = ["--metrics-listen".to_owned(), watched.to_string()];
        self.workers.push(start(ground, shape, ("sync-service", &name), &words)?);
        self.watched.push(watched);
        Ok(())
    }

    /// Returns where devices connect.
    pub fn urls(&self) -> Vec<String> {
        self.doors.iter().map(ServerProcess::url).collect()
    }

    /// Returns one address, for all that is not a run.
    pub fn url(&self) -> String {
        self.doors[0].url()
    }

    /// Returns whose processor time counts.
    pub fn parts(&self) -> Vec<Part> {
        let ids = |all: &[ServerProcess]| all.iter().map(ServerProcess::id).collect();
        let mut parts = vec![Part { name: DOORS, processes: ids(&self.doors) }];
        if !self.workers.is_empty() {
            parts.push(Part { name: WORKERS, processes: ids(&self.workers) });
        }
        parts.extend(self.beside.iter().cloned());
        parts
    }

    /// Starts all programs anew, so that every run begins alike.
    ///
    /// # Errors
    /// Where one of them does not start.
    pub fn restart(&mut self) -> Result<()> {
        self.workers.iter_mut().chain(&mut self.doors).try_for_each(ServerProcess::restart)
    }

    /// Ends all programs as a system does.
    ///
    /// # Errors
    /// Where the system refuses.
    pub fn stop(&mut self) -> Result<()> {
        self.doors.iter_mut().chain(&mut self.workers).try_for_each(ServerProcess::stop)
    }
}

/// The part of those that devices connect to.
pub const DOORS: &str = "gateways";

/// The part of those that take commits from the queue.
pub const WORKERS: &str = "sync_services";

/// Returns an address that nobody uses now.
fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?)
}

fn start(
    ground: &Ground,
    shape: Shape,
    (role, name): (&str, &str),
    more: &[String],
) -> Result<ServerProcess> {
    let broker = ground.services.service(shape.broker)?.url.clone();
    let store = ground.setting.folder().join("store");
    let words = ["--role", role, "--broker", &broker, "--store"].map(str::to_owned);
    let store = format!("file:{}", store.display());
    let words: Vec<_> = words.into_iter().chain([store]).chain(more.iter().cloned()).collect();
    ServerProcess::start(&ground.setting, name, &words)
}
