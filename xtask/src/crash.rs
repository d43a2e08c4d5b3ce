//! The kill -9 rig: two devices (and a server) under SIGKILL while files change, then every promise
//! is checked.
//!
//! # Participants
//!
//! Two *users*, each changing one device's folder from a seeded list of choices; two *client loops*,
//! each running `syncline sync`, or now and then `syncline watch`, again and again on one folder; a
//! *killer* that sends SIGKILL to a client or to the server at random milliseconds, until as many
//! clients as were asked for are killed, and as many servers. Afterwards the *judge* lets both sync
//! until nothing moves and looks.
//!
//! # Goals
//!
//! 1. Both folders are equal: names, kinds, modes, times and bytes.
//! 2. The area of one user, which the other never touches, is exactly what that user left there.
//! 3. What a user wrote last into any file is in a tree, in a kept copy of a conflict, or in the
//!    history.
//! 4. A kept copy exists only for a file that both users changed without seeing each other's change.
//! 5. No client panics or reports damage, and none takes away what its user is working with.
//!
//! # Non-goals
//!
//! Power cuts and lying disks: the simulated world of `testkit` has those. The seed fixes the
//! choices, not the moments, so a run cannot be repeated exactly; `--keep` keeps its folders.

mod client_loop;
mod history;
mod judge;
mod user;

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::arguments::Arguments;
use crate::demo;
use crate::failure::{Context, Result, fail};
use crate::random::Random;
use crate::syncline::{self, Device, Place, Server};
use client_loop::{Client, ClientLoop};
use history::History;
use user::User;

/// What a run is to do.
#[derive(Debug, Clone)]
pub struct CrashOptions {
    /// The program `syncline`.
    pub binary: PathBuf,
    /// Where the run has its folders; it must not exist and is removed after a good run.
    pub room: PathBuf,
    /// Fixes the choices of users and killer.
    pub seed: u64,
    /// How many clients are killed, and just as many times the server, if there is one.
    pub kills: u32,
    /// With a server, or over a plain store.
    pub served: bool,
    /// Keep the folders even after a good run.
    pub keep: bool,
}

/// What a run did and found.
#[derive(Debug, Clone, Default)]
pub struct CrashReport {
    /// Runs of `syncline sync` that were killed.
    pub killed_syncs: u32,
    /// Runs of `syncline watch` that were killed.
    pub killed_watches: u32,
    /// Times the server was killed.
    pub killed_servers: u32,
    /// Syncs that ended by themselves while the users worked.
    pub finished_syncs: u32,
    /// Operations of both users.
    pub operations: u32,
    /// Rounds of both devices until nothing moved.
    pub rounds_to_quiet: u32,
    /// Files in the final tree.
    pub files: usize,
    /// Kept copies of conflicts in the final tree.
    pub conflict_copies: usize,
    /// Last contents of users that were found in a tree or kept copy, and in the history.
    pub contents_in_trees: usize,
    /// See [`CrashReport::contents_in_trees`].
    pub contents_in_history: usize,
    /// Exit codes of syncs other than done, conflicts and unreachable: worth a look.
    pub surprises: Vec<String>,
    /// Broken promises. Empty is the only good answer.
    pub violations: Vec<String>,
}

impl CrashReport {
    /// Clients that were killed, whatever they were doing.
    pub fn killed_clients(&self) -> u32 {
        self.killed_syncs + self.killed_watches
    }
}

impl std::fmt::Display for CrashReport {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(
            formatter,
            "killed: {} clients ({} syncs, {} watches), {} servers; {} syncs ended by themselves; {} \
             operations of two users",
            self.killed_clients(),
            self.killed_syncs,
            self.killed_watches,
            self.killed_servers,
            self.finished_syncs,
            self.operations
        )?;
        writeln!(
            formatter,
            "quiet after {} rounds: {} files, {} kept copies; last contents: {} in trees, {} in \
             history",
            self.rounds_to_quiet,
            self.files,
            self.conflict_copies,
            self.contents_in_trees,
            self.contents_in_history
        )?;
        for surprise in &self.surprises {
            writeln!(formatter, "surprise: {surprise}")?;
        }
        for violation in &self.violations {
            writeln!(formatter, "VIOLATION: {violation}")?;
        }
        write!(formatter, "{} violations", self.violations.len())
    }
}

/// Runs `cargo xtask crash`.
pub fn run_command(mut arguments: Arguments) -> Result<()> {
    let kills = arguments.value_or("--kills", 200)?;
    let seed = arguments.value_or("--seed", 1)?;
    let served = !arguments.flag("--stored");
    let keep = arguments.flag("--keep");
    let work = arguments.value("--work")?.map_or_else(std::env::temp_dir, PathBuf::from);
    let named = arguments.value("--binary")?;
    arguments.finish()?;
    let binary = match named {
        Some(binary) => PathBuf::from(binary).canonicalize()?,
        None => demo::release_program()?,
    };
    let room = work.join(format!("syncline-crash-{}", std::process::id()));
    let start = Instant::now();
    let options = CrashOptions { binary, room: room.clone(), seed, kills, served, keep };
    let report = run(&options)?;
    println!("{report}, seed {seed}, {:.1} s", start.elapsed().as_secs_f64());
    if report.violations.is_empty() {
        return Ok(());
    }
    fail(format!("promises are broken; the folders are kept in {}", room.display()))
}

/// Runs the rig. A report with violations is not an error of the rig.
pub fn run(options: &CrashOptions) -> Result<CrashReport> {
    fs::create_dir_all(&options.room).context(options.room.display())?;
    let mut stage = Stage::set(options)?;
    let mut report = CrashReport::default();
    let history = Arc::new(Mutex::new(History::default()));
    let users: Vec<User> = stage
        .devices
        .iter()
        .enumerate()
        .map(|(index, device)| {
            User::start(index, &device.folder, &options.room, options.seed, Arc::clone(&history))
        })
        .collect::<Result<_>>()?;
    let loops: Vec<ClientLoop> =
        stage.devices.iter().map(|device| ClientLoop::start(device, options.seed)).collect();
    let outcome = kill(options, &mut stage, &loops, &mut report);
    for (index, user) in users.into_iter().enumerate() {
        let (operations, ended) = user.stop();
        report.operations += operations;
        // Nobody but its user touches an own area: what is missing there was taken away by a sync.
        report
            .violations
            .extend(ended.err().map(|failure| format!("user {index} stopped: {failure}")));
    }
    for client_loop in loops {
        client_loop.stop(&mut report);
    }
    outcome?;
    let history = match history.lock() {
        Ok(history) => history.clone(),
        Err(_) => return fail("a user panicked"),
    };
    judge::judge(&stage.devices, &history, &mut report)?;
    drop(stage);
    if report.violations.is_empty() && !options.keep {
        fs::remove_dir_all(&options.room).context(options.room.display())?;
    }
    Ok(report)
}

/// The server, if there is one, and both devices with the first common state.
struct Stage {
    server: Option<Server>,
    devices: Vec<Device>,
}

impl Stage {
    fn set(options: &CrashOptions) -> Result<Self> {
        let room = &options.room;
        let (server, place) = if options.served {
            let server = Server::start(&options.binary, &room.join("server"))?;
            (Some(server), Place::Served)
        } else {
            fs::create_dir(room.join("store"))?;
            (None, Place::Stored(room.join("store")))
        };
        let devices: Vec<Device> = ["first", "second"]
            .iter()
            .map(|name| syncline::device(&options.binary, room, name, place.clone()))
            .collect();
        if let Some(server) = &server {
            devices[0].login(&server.url(), "first")?;
            devices[1].login(&server.url(), "second")?;
        }
        user::write_first_state(&devices[0].folder)?;
        devices[0].init()?;
        devices[0].sync()?;
        devices[1].clone_workspace()?;
        Ok(Self { server, devices })
    }
}

/// Kills until the numbers are reached. Only a process that was alive counts.
fn kill(
    options: &CrashOptions,
    stage: &mut Stage,
    loops: &[ClientLoop],
    report: &mut CrashReport,
) -> Result<()> {
    let mut random = Random::for_part(options.seed, "killer");
    let start = Instant::now();
    let patience = Duration::from_secs(60) + Duration::from_secs(4) * options.kills;
    loop {
        let clients_left = options.kills.saturating_sub(report.killed_clients());
        let servers_left = match &stage.server {
            Some(_) => options.kills.saturating_sub(report.killed_servers),
            None => 0,
        };
        if clients_left + servers_left == 0 {
            return Ok(());
        }
        if start.elapsed() > patience {
            return fail("too few processes live long enough to be killed");
        }
        sleep(Duration::from_micros(random.between(500, 120_000)));
        let is_server =
            random.below(u64::from(clients_left + servers_left)) >= u64::from(clients_left);
        match &mut stage.server {
            Some(server) if is_server => {
                server.kill();
                report.killed_servers += 1;
                sleep(Duration::from_millis(random.between(0, 60)));
                server.restart().context("the killed server does not come back")?;
            }
            _ => {
                let which = usize::try_from(random.below(loops.len() as u64)).unwrap_or(0);
                match loops[which].kill() {
                    Some(Client::Sync) => report.killed_syncs += 1,
                    Some(Client::Watch) => report.killed_watches += 1,
                    None => {}
                }
            }
        }
    }
}
