//! Real servers on loopback for the tests of the stores: started with throw-away data, found by the tests, removed.
//!
//! *Participants*: `cargo xtask services start|test|stop|status|env`, the tests that read the file named by the variable
//! `SYNCLINE_SERVICES`, Debian's packages and PyPI. *Goals*: the programs that people really run, none of them written
//! by us, one command to start and one to remove them all. *Non-goals*: services that other machines can reach, or that
//! outlive a reboot. *Invariants*: every server listens on 127.0.0.1 alone, on a port that was free; all it writes lies
//! in one folder, which `stop` removes; only processes that were started here, and still are the same, are ended.

mod apache;
mod azurite;
mod dovecot;
mod fake_gcs;
mod moto;
mod openssh;
mod place;
mod samba;
mod swift;
mod vsftpd;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::arguments::Arguments;
use crate::failure::{Context, Failure, Result, fail};
use crate::{process, repository_root, test_run};
use place::Place;

/// The variable that tells the tests where the file with the addresses is.
pub const VARIABLE: &str = "SYNCLINE_SERVICES";

const USAGE: &str = "\
usage: cargo xtask services <start [NAME...] | test | stop | status | env>

  start     installs what is missing (apt, pip, npm, go) and starts all, or those named
  test      starts all, runs the tests of the stores against them, and stops them
  stop      ends them and removes their data
  status    says which are running, as JSON
  env       prints the line that makes a shell's tests use them";

/// One server that runs.
#[derive(Debug, Clone)]
pub struct Service {
    /// Its short name.
    pub name: &'static str,
    /// The program and its version, as it says itself.
    pub version: String,
    /// The address of a store on it, as `storage::open_with` takes it.
    pub url: String,
    /// The credentials of that store.
    pub credentials: Vec<(&'static str, String)>,
    /// Its processes, each the leader of a group.
    pub process_ids: Vec<u32>,
}

/// A server that can be started.
struct Recipe {
    name: &'static str,
    /// Programs that must be there, and the packages of Debian that bring them.
    programs: &'static [&'static str],
    packages: &'static [&'static str],
    start: fn(&Place) -> Result<Service>,
}

const RECIPES: [Recipe; 9] = [
    Recipe {
        name: "openssh",
        programs: &["/usr/sbin/sshd", "ssh-keygen"],
        packages: &["openssh-server", "openssh-sftp-server", "openssh-client"],
        start: openssh::start,
    },
    Recipe {
        name: "vsftpd",
        programs: &["/usr/sbin/vsftpd", "openssl"],
        packages: &["vsftpd", "openssl"],
        start: vsftpd::start,
    },
    Recipe {
        name: "samba",
        programs: &["/usr/sbin/smbd", "smbpasswd"],
        packages: &["samba"],
        start: samba::start,
    },
    Recipe {
        name: "dovecot",
        programs: &["/usr/sbin/dovecot", "/usr/lib/dovecot/imap", "openssl"],
        packages: &["dovecot-imapd", "openssl"],
        start: dovecot::start,
    },
    Recipe {
        name: "apache",
        programs: &["/usr/sbin/apache2", "openssl"],
        packages: &["apache2", "openssl"],
        start: apache::start,
    },
    Recipe {
        name: "moto",
        programs: &["python3"],
        packages: &["python3-venv"],
        start: moto::start,
    },
    Recipe {
        name: "azurite",
        programs: &["node", "npm"],
        packages: &["nodejs", "npm"],
        start: azurite::start,
    },
    Recipe {
        name: "fake-gcs",
        programs: &["go"],
        packages: &["golang-go"],
        start: fake_gcs::start,
    },
    Recipe {
        name: "swift",
        programs: &["/usr/bin/swift-proxy-server", "/usr/bin/swift-object-server", "memcached"],
        packages: &["swift-proxy", "swift-account", "swift-container", "swift-object", "memcached"],
        start: swift::start,
    },
];

/// Runs `cargo xtask services`.
pub fn run(mut arguments: Arguments) -> Result<()> {
    match arguments.next_word().as_deref() {
        Some("start") => {
            let path = start(&arguments.rest())?;
            println!("{}", fs::read_to_string(&path)?.trim_end());
            Ok(())
        }
        Some("test") => arguments.finish().and_then(|()| test()),
        Some("stop") => arguments.finish().and_then(|()| stop()),
        Some("status") => arguments.finish().and_then(|()| status()),
        Some("env") => {
            arguments.finish()?;
            println!("export {VARIABLE}='{}'", state_path().display());
            Ok(())
        }
        _ => fail(USAGE),
    }
}

/// Starts all services, runs the tests that need them, and stops them, whatever the tests said.
pub fn test() -> Result<()> {
    let state = start(&[])?;
    let mut command = test_run::cargo();
    // Every package is named, so that features and with them the build are those of the other tests.
    command.args(["test", "--workspace", "--features", "storage/services-tests"]);
    command.args(["--test", "services"]).env(VARIABLE, &state);
    let tested = process::run(&mut command);
    let stopped = stop();
    tested.and(stopped)
}

/// Where the addresses stand while the services run.
pub fn state_path() -> PathBuf {
    repository_root().join("target").join("services.json")
}

/// Starts the services of these names, or all, and returns the file with their addresses.
pub fn start(names: &[String]) -> Result<PathBuf> {
    let state = state_path();
    if state.exists() {
        return fail("services are running already; `cargo xtask services stop` ends them");
    }
    if let Some(name) = names.iter().find(|name| RECIPES.iter().all(|one| one.name != *name)) {
        return fail(format!("no service is called '{name}'"));
    }
    let wanted = RECIPES
        .iter()
        .filter(|recipe| names.is_empty() || names.iter().any(|name| name == recipe.name));
    let wanted: Vec<&Recipe> = wanted.collect();
    install(&wanted)?;
    let folder = new_folder()?;
    let mut services = Vec::new();
    let result = wanted.iter().try_for_each(|recipe| {
        let place = Place::new(&folder, recipe.name)?;
        services.push((recipe.start)(&place).context(recipe.name)?);
        // Written after each, so that `stop` ends also what a failure left.
        write_state(&state, &folder, &services)
    });
    if let Err(failure) = result {
        let logs = tails_of_logs(&folder);
        stop()?;
        return fail(format!("{failure}\n{logs}"));
    }
    Ok(state)
}

/// Ends the services and removes their data.
pub fn stop() -> Result<()> {
    let state = state_path();
    let Ok(text) = fs::read_to_string(&state) else {
        println!("no services are running");
        return Ok(());
    };
    let value: Value = serde_json::from_str(&text).context(state.display())?;
    let folder = PathBuf::from(value["folder"].as_str().unwrap_or_default());
    let process_ids: Vec<u32> = process_ids(&value).collect();
    for process_id in &process_ids {
        if place::is_ours(*process_id, &folder) {
            place::end_group(*process_id);
        }
    }
    place::wait_for_ends(&process_ids, &folder)?;
    if place::is_service_folder(&folder) {
        fs::remove_dir_all(&folder).context(folder.display())?;
    }
    fs::remove_file(&state).context(state.display())
}

fn status() -> Result<()> {
    let Ok(text) = fs::read_to_string(state_path()) else {
        println!("[]");
        return Ok(());
    };
    let value: Value = serde_json::from_str(&text)?;
    let folder = PathBuf::from(value["folder"].as_str().unwrap_or_default());
    let lines = value["services"].as_array().into_iter().flatten().map(|service| {
        let ids = service["process_ids"].as_array().into_iter().flatten();
        let mut ids = ids.filter_map(|id| u32::try_from(id.as_u64()?).ok());
        let is_running = ids.all(|id| place::is_ours(id, &folder));
        json!({ "name": service["name"], "version": service["version"], "running": is_running })
    });
    println!("{}", serde_json::to_string_pretty(&lines.collect::<Vec<_>>())?);
    Ok(())
}

fn process_ids(state: &Value) -> impl Iterator<Item = u32> {
    let services = state["services"].as_array().into_iter().flatten();
    let ids = services.flat_map(|service| service["process_ids"].as_array().into_iter().flatten());
    ids.filter_map(|id| u32::try_from(id.as_u64()?).ok())
}

fn write_state(path: &Path, folder: &Path, services: &[Service]) -> Result<()> {
    let services: Vec<Value> = services
        .iter()
        .map(|service| {
            let credentials: serde_json::Map<_, _> = service
                .credentials
                .iter()
                .map(|(name, value)| ((*name).to_owned(), json!(value)))
                .collect();
            json!({
                "name": service.name,
                "version": service.version,
                "url": service.url,
                "credentials": credentials,
                "process_ids": service.process_ids,
            })
        })
        .collect();
    let state = json!({ "folder": folder, "services": services });
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::write(path, serde_json::to_string_pretty(&state)?).context(path.display())
}

/// Makes the folder of all data. It lies where every user may go, because some servers give up their rights.
fn new_folder() -> Result<PathBuf> {
    let name = format!("{}{}", place::FOLDER_PREFIX, std::process::id());
    let folder = std::env::temp_dir().join(name);
    fs::create_dir(&folder).context(folder.display())?;
    Ok(folder)
}

fn install(recipes: &[&Recipe]) -> Result<()> {
    let is_missing =
        |recipe: &&&Recipe| recipe.programs.iter().any(|program| !process::is_installed(program));
    let packages: Vec<&str> = recipes
        .iter()
        .filter(is_missing)
        .flat_map(|recipe| recipe.packages.iter().copied())
        .collect();
    if packages.is_empty() {
        return Ok(());
    }
    println!("installing {}", packages.join(" "));
    let apt = |words: &[&str]| {
        let mut command = Command::new("apt-get");
        // Nothing that comes with a package is started by it.
        command.args(words).env("DEBIAN_FRONTEND", "noninteractive").env("RUNLEVEL", "1");
        process::output(&mut command).map(drop)
    };
    apt(&["update"])?;
    let mut words = vec!["install", "--yes", "--no-install-recommends"];
    words.extend(packages);
    apt(&words).map_err(|failure| Failure::new(format!("{failure} (this wants root)")))
}

/// The last lines that the services wrote, for a failure that says little.
fn tails_of_logs(folder: &Path) -> String {
    let mut tails = String::new();
    for service in fs::read_dir(folder).into_iter().flatten().flatten() {
        for file in fs::read_dir(service.path()).into_iter().flatten().flatten() {
            let path = file.path();
            if path.extension().is_some_and(|ending| ending == "log") {
                let text = fs::read(&path).unwrap_or_default();
                let text = String::from_utf8_lossy(&text).into_owned();
                let lines: Vec<&str> = text.lines().rev().take(15).collect();
                tails += &format!("--- {}\n", path.display());
                for line in lines.iter().rev() {
                    tails += &format!("{line}\n");
                }
            }
        }
    }
    tails
}
