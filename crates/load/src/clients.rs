//! How many clients in browsers one core of a server bears: Figures 21 and 22 of the WebR2sync+ paper (FAST 2018).
//!
//! A server process has one core for itself, and one process that plays all clients has another. There are more and more clients, until the core is
//! full. *Regular*: each edits its file of about 1 MB every 10 s. *Intensive*: each sends the changed files of one release of a source tree after the
//! other, without a pause.
//!
//! Read in this order: [`files`] (what is edited), [`exchange`] (what is sent of it), [`place`] (clients that are ready), [`connection`], [`run`],
//! [`report`].

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::time::Instant;

use crate::machine::{self, Usage};
use crate::population::{Population, account_names};
use crate::server_process::{ALONE, ServerProcess, Setting};
use exchange::Method;
use files::{Content, Edited, Releases};
use lab::output::{Output, say};
use place::{CLIENTS_OF_ACCOUNT, Client, Preparation};
use report::{About, Row, Workload};
use run::Pace;

pub mod connection;
pub mod exchange;
pub mod files;
pub mod place;
pub mod report;
pub mod run;

/// How often a client of the regular workload edits.
const PERIOD: Duration = Duration::from_secs(10);

/// A core that is so busy is full.
const FULL: f64 = 0.95;

/// How many runs look for the number of clients of one method.
const ROUNDS_MAX: usize = 9;

/// A server that uses less of its core is at rest. It is looked at for so long, and so often at most: five minutes.
const SETTLED: f64 = 0.05;
const SETTLING_LOOK: Duration = Duration::from_millis(500);
const SETTLING_LOOKS_MAX: u32 = 600;

/// For how long a server keeps what it has begun with a client that went away between two requests: its `DELTA_SESSION_LIFE`. So many of them keep
/// others out.
const SESSION_LIFE: Duration = Duration::from_secs(60);

/// How many bytes of requests lie ready at most.
const READY_MAX: usize = 6 << 30;

/// What is to be measured, and with what.
#[derive(Debug, Clone)]
pub struct Options {
    /// The program.
    pub binary: PathBuf,
    /// Where data lie meanwhile.
    pub work: PathBuf,
    /// One small run of each, which says nothing about a core.
    pub quick: bool,
    /// Whence all chance comes.
    pub seed: u64,
    /// For how long clients of the regular workload send.
    pub length: Duration,
    /// The same for the intensive one.
    pub intensive_length: Duration,
    /// Which workloads.
    pub workloads: Vec<Workload>,
    /// Which methods.
    pub methods: Vec<Method>,
    /// What the edited files are like.
    pub contents: Vec<Content>,
    /// How many bytes an edit is about.
    pub sizes: Vec<usize>,
    /// Bytes of an edited file.
    pub file_length: usize,
    /// How many clients there are at most.
    pub clients_max: usize,
    /// How long a round trip of an intensive client takes.
    pub line: Duration,
    /// An archive of releases, where there is one.
    pub releases: Option<PathBuf>,
}

/// How many files a process has open beside its connections, with room for more.
const FILES_BESIDE: u64 = 200;

/// Runs everything.
///
/// # Errors
/// Where the server cannot be run, or has not what it was sent.
pub fn run(options: &Options, output: &Output) -> Result<()> {
    let cores = machine::cores();
    if cores < 2 && !options.quick {
        bail!("the server wants a core for itself, and there is only {cores}");
    }
    let setting = Setting::new(&options.binary, &options.work)?;
    let releases = match &options.releases {
        Some(archive) => Releases::of_archive(archive, &setting.folder().join("releases"))?,
        None => Releases::stand_in(options.seed)?,
    };
    let files = machine::raise_open_files();
    say(&format!("{}; {files} files may be open", releases.about));
    // A connection is an open file of the server, and one of this process.
    let room = usize::try_from(files.saturating_sub(FILES_BESIDE)).unwrap_or(usize::MAX);
    let clients_max = options.clients_max.min(room).max(1);
    let accounts = account_names(clients_max, CLIENTS_OF_ACCOUNT);
    say(&format!("making {} accounts", accounts.len()));
    setting.add_accounts(&accounts)?;
    let place = (cores > 1).then_some(0);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let server = ServerProcess::start(&setting.clone().on_core(place), ALONE, &[])?;
    let url = server.url();
    let enrolling = Population::enrol(&url, &accounts, accounts.len(), 1);
    let population = runtime.block_on(enrolling)?;
    let address: SocketAddr = url.trim_start_matches("http://").parse()?;
    drop(runtime);
    let mut bench = Bench {
        options,
        clients_max,
        server,
        address,
        cores,
        population,
        sessions_end: Instant::now(),
        rounds: 0,
        rows: Vec::new(),
    };
    bench.all(&releases)?;
    let about = About {
        seed: options.seed,
        releases: releases.about,
        file_length: options.file_length,
        line: options.line,
        cores,
        clients_max,
        load: std::fs::read_to_string("/proc/loadavg").unwrap_or_default().trim().to_owned(),
    };
    report::write(&about, &bench.rows, output)?;
    match bench.rows.iter().find_map(|row| row.failure.as_ref()) {
        Some(failure) => bail!("a client failed: {failure}"),
        None => Ok(()),
    }
}

/// Between how many clients the most lie whose edits are there in time.
struct Bounds {
    /// How many there may be.
    max: usize,
    /// So many were served.
    low: usize,
    /// So many were not, or may not be.
    high: usize,
}

impl Bounds {
    /// Notes whether the server followed, and how much of its core it used; returns how many to try next, if more can be learned.
    fn next(&mut self, count: usize, follows: bool, busy: f64) -> Option<usize> {
        (self.low, self.high) = if follows { (count, self.high) } else { (self.low, count) };
        let Self { max, low, high } = *self;
        let wanted = match follows {
            // What an edit costs becomes less where more of them share a transaction.
            true => ((count as f64 * (FULL + 0.03) / busy.max(0.1)) as usize).min(count * 4),
            false => (low + high) / 2,
        };
        let (least, most) = (low + low / 20 + 1, high - 1);
        let is_near = high <= max && high - low <= low / 12;
        (least <= most && !is_near).then(|| wanted.clamp(least, most))
    }
}

/// What stays the same for all runs.
struct Bench<'lab> {
    options: &'lab Options,
    /// How many clients there are at most, as far as the system lets them be connected.
    clients_max: usize,
    server: ServerProcess,
    address: SocketAddr,
    /// Of the machine; where this process is pinned it would count fewer.
    cores: usize,
    population: Population,
    /// When nothing is left of what clients had begun and gave up.
    sessions_end: Instant,
    rounds: usize,
    rows: Vec<Row>,
}

/// What one search is about.
#[derive(Debug, Clone, Copy)]
struct Case<'lab> {
    method: Method,
    /// What is edited, and by how much; nothing for releases.
    edited: Option<(&'lab Edited, Content, usize)>,
    releases: &'lab Releases,
}

impl Bench<'_> {
    fn all(&mut self, releases: &Releases) -> Result<()> {
        let options = self.options;
        for &method in &options.methods {
            if options.workloads.contains(&Workload::Regular) {
                for &content in &options.contents {
                    let base = Edited::new(content, options.seed, options.file_length);
                    for &size in &options.sizes {
                        let edited = Some((&base, content, size));
                        self.search(Case { method, edited, releases })?;
                    }
                }
            }
            if options.workloads.contains(&Workload::Intensive) {
                self.search(Case { method, edited: None, releases })?;
            }
        }
        Ok(())
    }

    /// Looks for the most clients whose edits are there in time.
    fn search(&mut self, case: Case<'_>) -> Result<()> {
        let max = self.clients_max(case);
        let mut bounds = Bounds { max, low: 0, high: max + 1 };
        let is_regular = case.edited.is_some();
        let mut count = if is_regular && !self.options.quick { 400 } else { 8 }.min(max);
        let rounds = if self.options.quick { 1 } else { ROUNDS_MAX };
        for _ in 0..rounds {
            let row = self.measure(case, count)?;
            say(&row.describe());
            let (follows, busy) = (row.follows(), row.busy());
            let has_failed = row.failure.is_some();
            self.rows.push(row);
            if has_failed || (follows && busy >= FULL) {
                break;
            }
            let Some(next) = bounds.next(count, follows, busy) else { break };
            count = next;
        }
        Ok(())
    }

    /// Returns how many clients there may be: accounts for them, and memory for what they send.
    fn clients_max(&self, case: Case<'_>) -> usize {
        match (case.edited, case.method) {
            (Some((base, ..)), Method::Whole) => {
                let each = base.bytes().len() * self.edits();
                (READY_MAX / each.max(1)).clamp(1, self.clients_max)
            }
            (Some((.., size)), _) => {
                // A method of the paper sends some more than the edit.
                let each = (size + 20_000) * self.edits();
                (READY_MAX / each).clamp(1, self.clients_max)
            }
            (None, _) => 1000.min(self.clients_max),
        }
    }

    /// How many edits a client makes at most in a run of the regular workload.
    fn edits(&self) -> usize {
        self.options.length.as_secs_f64().div_euclid(PERIOD.as_secs_f64()) as usize + 1
    }

    /// How many files a client sends at most in a run of the intensive one: no exchange is shorter than a round trip.
    fn changes(&self) -> usize {
        let Options { intensive_length, line, .. } = self.options;
        (intensive_length.as_secs_f64() / line.as_secs_f64().max(0.001)).ceil() as usize + 1
    }

    fn measure(&mut self, case: Case<'_>, count: usize) -> Result<Row> {
        self.settle()?;
        self.rounds += 1;
        let label = format!("clients-{}", self.rounds);
        // Chance of one run never returns in another.
        let seed = self.options.seed + self.rounds as u64 * 100_000_007;
        let preparation = Preparation {
            population: &self.population,
            server: self.address,
            label: &label,
            seed,
            method: case.method,
            clients: count,
        };
        let preparing = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let (clients, pace, length) = match case.edited {
            Some((base, _, size)) => {
                let edits = self.edits();
                let clients = preparing.block_on(preparation.regular(base, size, edits))?;
                (clients, Pace::Every(PERIOD), self.options.length)
            }
            None => {
                let (changes, count) = (&case.releases.changes, self.changes());
                let clients = preparing.block_on(preparation.intensive(changes, count))?;
                (clients, Pace::NoPause { line: self.options.line }, self.options.intensive_length)
            }
        };
        drop(preparing);
        let outcome = self.run(clients, pace, length)?;
        if outcome.stored < outcome.offered && case.method.has_session() {
            self.sessions_end = Instant::now() + SESSION_LIFE;
        }
        let workload = if case.edited.is_some() { Workload::Regular } else { Workload::Intensive };
        let edited = case.edited.map(|(_, content, size)| (content, size));
        Ok(Row::new(workload, case.method, edited, count, outcome))
    }

    /// Waits until the server has nothing to do any more: what came too late for one run is still worked at, and would be counted in the next one, and
    /// what its clients have begun would keep out those of the next.
    fn settle(&self) -> Result<()> {
        std::thread::sleep(self.sessions_end.saturating_duration_since(Instant::now()));
        for _ in 0..SETTLING_LOOKS_MAX {
            let before = Usage::of(self.server.id())?.cpu_seconds;
            std::thread::sleep(SETTLING_LOOK);
            let busy = Usage::of(self.server.id())?.cpu_seconds - before;
            if busy < SETTLED * SETTLING_LOOK.as_secs_f64() {
                return Ok(());
            }
        }
        bail!("the server is still at work, long after its clients have gone")
    }

    /// Runs clients on the core that the server has not.
    fn run(&self, clients: Vec<Client>, pace: Pace, length: Duration) -> Result<run::Outcome> {
        let _pinned = Pinned::start(self.cores)?;
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        runtime.block_on(run::run(self.address, self.server.id(), clients, pace, length))
    }
}

/// All threads of this process are where the server is not, until this value goes.
struct Pinned {
    cores: usize,
}

impl Pinned {
    fn start(cores: usize) -> Result<Self> {
        if cores > 1 {
            pin(&format!("1-{}", cores - 1))?;
        }
        Ok(Self { cores })
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if self.cores > 1 {
            // Where it fails, what comes takes longer.
            let _ = pin(&format!("0-{}", self.cores - 1));
        }
    }
}

fn pin(cores: &str) -> Result<()> {
    let process = std::process::id().to_string();
    let mut command = Command::new("taskset");
    let output = command.args(["--all-tasks", "--cpu-list", "--pid", cores, &process]).output();
    let output = output.context("taskset")?;
    if !output.status.success() {
        bail!("taskset: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lab_waits_until_the_server_has_ended_what_was_given_up() {
        assert!(SESSION_LIFE >= server::limits::DELTA_SESSION_LIFE);
    }

    #[test]
    fn search_comes_nearer_and_ends_between_what_followed_and_what_did_not() {
        let mut bounds = Bounds { max: 40_000, low: 0, high: 40_001 };
        assert_eq!(bounds.next(400, true, 0.11), Some(1600), "never more than four times as many");
        assert_eq!(bounds.next(1600, true, 0.43), Some(3646));
        assert_eq!(bounds.next(3646, false, 0.99), Some(2623));
        assert_eq!(bounds.next(2623, true, 0.9), Some(2856));
        assert_eq!(bounds.next(2856, false, 0.99), Some(2755));
        assert_eq!(bounds.next(2755, true, 0.93), None, "the next step would say no more");
    }

    #[test]
    fn search_ends_where_the_next_step_would_be_what_has_failed() {
        let mut bounds = Bounds { max: 40_000, low: 1018, high: 1224 };
        assert_eq!(bounds.next(1223, true, 0.88), None);
        let mut most = Bounds { max: 8, low: 0, high: 9 };
        assert_eq!(most.next(8, true, 0.1), None, "there may not be more");
        let mut none = Bounds { max: 8, low: 0, high: 9 };
        assert_eq!(none.next(1, false, 1.0), None, "not even one was served");
    }
}
