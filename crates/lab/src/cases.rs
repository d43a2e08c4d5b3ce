//! The cases: which load is put on a server, and which figures come of it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::figures::{Figures, judge, seats};
use crate::history::Verdict;
use crate::load::{Connected, Load, Outcome, Pace, Seat};
use crate::output::{Output, say};
use crate::population::{DEVICES_PER_ACCOUNT, Enrolled, Population, account_names};
use crate::report::Report;
use crate::server_process::ServerProcess;

mod disturbance;
mod idle;
mod push;
mod rates;

/// The names of all cases, in the order in which they run.
pub const NAMES: [&str; 6] = ["rates", "saturation", "push", "pause", "kill", "idle"];

/// How many violations are told one by one.
const VIOLATIONS_TOLD_MAX: usize = 10;

/// What the cases need to know.
#[derive(Debug, Clone)]
pub struct Options {
    /// The program under test.
    pub binary: PathBuf,
    /// Where the data of the server lies while it runs.
    pub work: PathBuf,
    /// Which cases to run.
    pub only: Vec<String>,
    /// Small and short, to try the lab.
    pub quick: bool,
    /// Whence all chance comes.
    pub seed: u64,
    /// How many devices commit.
    pub writers: usize,
    /// For how long devices send, where nothing else is said.
    pub length: Duration,
    /// The offered rates, in commits a second.
    pub rates: Vec<f64>,
    /// How many devices are connected and idle, one run each.
    pub idle: Vec<usize>,
}

/// A server with its devices, and what was found so far.
pub(crate) struct Bench<'a> {
    pub(crate) options: &'a Options,
    pub(crate) server: ServerProcess,
    pub(crate) population: Population,
    pub(crate) report: Report,
    pub(crate) verdict: Verdict,
}

/// Runs cases and writes what came of them.
///
/// # Errors
/// Where something cannot be started, or a history is wrong.
pub async fn run(options: &Options, output: &Output) -> Result<Report> {
    let devices = devices_needed(options);
    let accounts = account_names(devices);
    say(&format!("{devices} devices of {} accounts sign in", accounts.len()));
    let server = ServerProcess::start(&options.binary, &options.work, &accounts)?;
    let population = Population::enrol(&server.url(), &accounts, devices).await?;
    let (report, verdict) = (Report::default(), Verdict::default());
    let mut bench = Bench { options, server, population, report, verdict };
    for name in NAMES {
        if !options.only.iter().any(|only| only == name) {
            continue;
        }
        say(&format!("\n{name}"));
        match name {
            "rates" => rates::run(&mut bench).await,
            "saturation" => rates::run_saturation(&mut bench).await,
            "push" => push::run(&mut bench).await,
            "pause" => disturbance::run_pause(&mut bench).await,
            "kill" => disturbance::run_kill(&mut bench).await,
            "idle" => idle::run(&mut bench).await,
            other => bail!("no case is called '{other}'"),
        }
        .context(format!("case '{name}'"))?;
        // What is known so far is kept, whatever comes next.
        bench.report.write(output)?;
    }
    say(&format!("\nhistory: {}", bench.verdict.describe()));
    bench.report.verdict = bench.verdict.describe();
    bench.report.write(output)?;
    if !bench.verdict.violations.is_empty() {
        bail!("the history is wrong: {}", bench.verdict.describe());
    }
    Ok(bench.report)
}

/// Returns how many devices the largest case takes.
fn devices_needed(options: &Options) -> usize {
    let has = |name: &str| options.only.iter().any(|only| only == name);
    let working = rates::devices_of(options.writers).max(push::devices_of(options));
    let idle = options.idle.iter().copied().filter(|_| has("idle")).max().unwrap_or(0);
    let works = NAMES.iter().any(|name| *name != "idle" && has(name));
    if works { working.max(idle) } else { idle }
}

impl Bench<'_> {
    /// Starts the server anew, so that every run begins alike, and gives each group of devices a workspace in which the first one writes.
    pub(crate) async fn prepare(
        &mut self,
        label: &str,
        groups: Vec<Vec<Arc<Enrolled>>>,
    ) -> Result<Vec<Seat>> {
        self.server.restart()?;
        let owners: Vec<_> = groups.iter().filter_map(|group| group.first().cloned()).collect();
        let workspaces = self.population.workspaces(label, &owners).await?;
        Ok(seats(workspaces.into_iter().zip(groups)))
    }

    /// Connects devices, lets them work, and judges the history.
    pub(crate) async fn measure(
        &mut self,
        pace: Pace,
        length: Duration,
        seats: &[Seat],
    ) -> Result<(Outcome, Figures)> {
        let patience = Duration::from_secs(60).max(4 * length);
        let load = Load { seed: self.options.seed, pace, length, patience };
        let server = self.server.url();
        let connected = Connected::connect(&server, load, seats.to_vec()).await?;
        let outcome = connected.go(Some(self.server.id())).await?;
        let figures = Figures::of(&outcome);
        self.judge(seats, &outcome).await?;
        Ok((outcome, figures))
    }

    /// Judges the history of a run.
    pub(crate) async fn judge(&mut self, seats: &[Seat], outcome: &Outcome) -> Result<()> {
        let verdict = judge(&self.server.url(), seats, outcome).await?;
        for violation in verdict.violations.iter().take(VIOLATIONS_TOLD_MAX) {
            say(&format!("  wrong: {violation:?}"));
        }
        self.verdict.add(verdict);
        Ok(())
    }
}

/// Cuts the devices of each account into groups of `size`, so that those of a group may share a workspace; returns `count` groups.
pub(crate) fn groups_of(
    population: &Population,
    size: usize,
    count: usize,
) -> Result<Vec<Vec<Arc<Enrolled>>>> {
    let accounts = population.devices.chunks(DEVICES_PER_ACCOUNT);
    let groups = accounts.flat_map(|devices| devices.chunks_exact(size)).map(<[_]>::to_vec);
    let groups: Vec<_> = groups.take(count).collect();
    if groups.len() < count {
        bail!("there are devices for {} groups of {size}, and {count} are needed", groups.len());
    }
    Ok(groups)
}
