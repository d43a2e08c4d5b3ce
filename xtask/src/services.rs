//! Real servers on loopback for the tests of stores, message calls and sign-ins: started with throw-away data, found by the tests, removed.
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
mod keeper;
mod lanes;
mod moto;
mod nats;
mod oidc_provider;
mod openssh;
mod place;
mod postgresql;
mod processes;
mod rabbitmq;
mod running;
mod samba;
mod swift;
mod vsftpd;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::arguments::Arguments;
use crate::failure::{Context, Result, fail};
use crate::{install, process, repository_root};
use keeper::Keeper;
use place::Place;

pub use dovecot::SMALL_ACCOUNT;
pub use processes::Process;
pub use running::{Service, Services};

/// The variable that tells the tests where the file with the addresses is.
pub const VARIABLE: &str = "SYNCLINE_SERVICES";

const USAGE: &str = "\
usage: cargo xtask services <start [NAME...] | test | stop | status | env>

  start     installs what is missing (apt, pip, npm, go) and starts all, or those named
  test      starts all, runs the tests that need real servers, and stops them
  stop      ends them and removes their data
  status    says which are running, as JSON
  env       prints the line that makes a shell's tests use them";

/// A server that can be started.
struct Recipe {
    name: &'static str,
    /// Programs that must be there, and the packages of Debian that bring them.
    programs: &'static [&'static str],
    packages: &'static [&'static str],
    start: fn(&Place) -> Result<Service>,
}

const RECIPES: [Recipe; 13] = [
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
        packages: &[install::PYTHON_PACKAGE],
        start: moto::start,
    },
    Recipe {
        name: "azurite",
        programs: &["node", "npm"],
        packages: &["nodejs", "npm"],
        start: azurite::start,
    },
    Recipe {
        name: fake_gcs::NAME,
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
    Recipe {
        name: postgresql::NAME,
        programs: &["setpriv"],
        packages: &["postgresql"],
        start: postgresql::start,
    },
    Recipe {
        name: "rabbitmq",
        programs: &[rabbitmq::PROGRAM, "/usr/bin/epmd"],
        packages: &["rabbitmq-server"],
        start: rabbitmq::start,
    },
    Recipe {
        name: "nats",
        programs: &["nats-server"],
        packages: &["nats-server"],
        start: nats::start,
    },
    Recipe {
        name: oidc_provider::NAME,
        programs: &["node", "npm"],
        packages: &["nodejs", "npm"],
        start: oidc_provider::start,
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
        Some("test") => arguments.finish().and_then(|()| test(Extent::All)),
        Some("stop") => arguments.finish().and_then(|()| stop()),
        Some("status") => arguments.finish().and_then(|()| status()),
        // Started by `test`, to end the services whatever becomes of it.
        Some(keeper::WORD) => arguments.finish().and_then(|()| keeper::keep()),
        Some("env") => {
            arguments.finish()?;
            println!("export {VARIABLE}='{}'", state_path().display());
            Ok(())
        }
        _ => fail(USAGE),
    }
}

/// Installs what is missing of the services of the test run.
pub fn install_for_test_run() -> Result<()> {
    let names = Extent::TestRun.names();
    let is_wanted = |recipe: &&Recipe| names.iter().any(|name| name == recipe.name);
    install_programs(&RECIPES.iter().filter(is_wanted).collect::<Vec<_>>())?;
    install_capture()?;
    moto::install()
}

/// Installs what is no server, but what the tests look at servers with.
fn install_capture() -> Result<()> {
    if process::is_installed(CAPTURE) { Ok(()) } else { install::packages(&[CAPTURE]) }
}

/// What captures packets, and the package of Debian that brings it.
const CAPTURE: &str = "tcpdump";

/// Which services are tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Those that a fresh machine has within a minute or two.
    TestRun,
    /// Every one.
    All,
}

/// Left out of the test run: it takes Go and minutes to build.
const ON_DEMAND: [&str; 1] = [fake_gcs::NAME];

impl Extent {
    fn names(self) -> Vec<String> {
        let names = RECIPES.iter().map(|recipe| recipe.name);
        names
            .filter(|name| self == Self::All || !ON_DEMAND.contains(name))
            .map(str::to_owned)
            .collect()
    }
}

/// Starts services, runs the tests that need them, and stops them, whatever the tests said, and even if somebody ends
/// this program meanwhile.
pub fn test(extent: Extent) -> Result<()> {
    refuse_a_second_start()?;
    install_capture()?;
    let keeper = Keeper::start()?;
    let states = state_paths();
    let mut shares = states.iter().zip(lanes::shares(&extent.names()));
    let started = shares.try_for_each(|(state, names)| start_at(state, &names));
    let tested = started.and_then(|()| lanes::run(&states));
    let stopped = stop();
    keeper.dismiss()?;
    tested.and(stopped)
}

/// Does something while the services of these names run, told where their addresses stand. They are started and stopped, even if somebody
/// ends this program meanwhile; those that run already are left running.
pub fn during(names: &[String], work: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let state = state_path();
    if state.exists() {
        return work(&state);
    }
    let keeper = Keeper::start()?;
    let done = start(names).and_then(|state| work(&state));
    let stopped = stop();
    keeper.dismiss()?;
    done.and(stopped)
}

/// Where the addresses stand while the services run.
pub fn state_path() -> PathBuf {
    let [state, _] = state_paths();
    state
}

/// Where they stand while the tests run: those of each lane.
fn state_paths() -> [PathBuf; 2] {
    let target = repository_root().join("target");
    ["services.json", "services-beside.json"].map(|name| target.join(name))
}

/// Starts the services of these names, or all, and returns the file with their addresses.
pub fn start(names: &[String]) -> Result<PathBuf> {
    refuse_a_second_start()?;
    let state = state_path();
    start_at(&state, names)?;
    Ok(state)
}

/// Starts services, which will stand in this file.
fn start_at(state: &Path, names: &[String]) -> Result<()> {
    if let Some(name) = names.iter().find(|name| RECIPES.iter().all(|one| one.name != *name)) {
        return fail(format!("no service is called '{name}'"));
    }
    let wanted = RECIPES
        .iter()
        .filter(|recipe| names.is_empty() || names.iter().any(|name| name == recipe.name));
    let wanted: Vec<&Recipe> = wanted.collect();
    install_programs(&wanted)?;
    let mut running = Services::new(state.to_owned(), new_folder()?);
    let result = wanted.iter().try_for_each(|recipe| {
        let place = Place::new(running.folder(), recipe.name)?;
        let service = (recipe.start)(&place).context(recipe.name)?;
        // Written down after each, so that `stop` ends also what a failure left.
        running.add(service)
    });
    if let Err(failure) = result {
        let logs = tails_of_logs(running.folder());
        running.stop()?;
        return fail(format!("{failure}\n{logs}"));
    }
    Ok(())
}

fn refuse_a_second_start() -> Result<()> {
    if is_any_started() {
        return fail("services are running already; `cargo xtask services stop` ends them");
    }
    Ok(())
}

fn is_any_started() -> bool {
    state_paths().iter().any(|state| state.exists())
}

/// Ends the services and removes their data.
pub fn stop() -> Result<()> {
    if !is_any_started() {
        println!("no services are running");
    }
    // The second ones are stopped, too, where the first cannot be.
    let stopped = state_paths().map(|state| match state.exists() {
        true => Services::read(&state)?.stop(),
        false => Ok(()),
    });
    stopped.into_iter().collect()
}

fn status() -> Result<()> {
    let mut lines = Vec::new();
    for state in state_paths().iter().filter(|state| state.exists()) {
        let running = Services::read(state)?;
        lines.extend(running.services().iter().map(|service| {
            let is_running = running.is_running(service);
            json!({ "name": service.name, "version": service.version, "running": is_running })
        }));
    }
    println!("{}", serde_json::to_string_pretty(&lines)?);
    Ok(())
}

/// Makes the folder of all data. It lies where every user may go, because some servers give up their rights. Its name is not the beginning of
/// that of the folder beside it: a process is known by the folder in its command line.
fn new_folder() -> Result<PathBuf> {
    let beside = state_paths().iter().filter(|state| state.exists()).count();
    let name = format!("{}{beside}-{}", place::FOLDER_PREFIX, std::process::id());
    let folder = std::env::temp_dir().join(name);
    fs::create_dir(&folder).context(folder.display())?;
    Ok(folder)
}

fn install_programs(recipes: &[&Recipe]) -> Result<()> {
    let is_missing = |recipe: &&&Recipe| {
        recipe.programs.iter().any(|program| !process::is_installed(program))
            || (recipe.name == moto::NAME && !install::python_makes_environments())
            || (recipe.name == postgresql::NAME && !postgresql::is_installed())
    };
    let packages: Vec<&str> = recipes
        .iter()
        .filter(is_missing)
        .flat_map(|recipe| recipe.packages.iter().copied())
        .collect();
    install::packages(&packages)
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
