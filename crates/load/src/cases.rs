//! The cases: which load is put on a server, and which figures come of it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::cluster::Cluster;
use crate::figures::{Figures, judge, seats};
use crate::history::Verdict;
use crate::population::{DEVICES_PER_ACCOUNT, Enrolled, Population, account_names};
use crate::report::Report;
use crate::run::{Connected, Load, Outcome, Pace, Seat};
use lab::output::{Output, say};

mod disturbance;
mod growth;
mod idle;
mod instances;
mod limit;
mod million;
mod push;
mod rates;
mod scaled;

/// The cases of one server that does everything, in the order in which they run.
pub const NAMES: [&str; 6] = ["rates", "saturation", "push", "pause", "kill", "idle"];

/// The cases of gateways and sync services over a database and a broker, in the order in which they run.
pub const SCALED_NAMES: [&str; 4] = ["limit", "scaled", "instances", "million"];

/// The case of one server that holds ever more.
const GROWTH: &str = "growth";

/// Returns the names of all cases.
pub fn names() -> Vec<&'static str> {
    [&NAMES[..], &[GROWTH], &SCALED_NAMES].concat()
}

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
    /// What gateways and sync services stand on.
    pub scaled: Scaled,
}

/// What the cases of gateways and sync services need to know.
#[derive(Debug, Clone)]
pub struct Scaled {
    /// The file that names the database and the brokers that run.
    pub services: Option<PathBuf>,
    /// The brokers, one after the other.
    pub brokers: Vec<&'static str>,
    /// How many sync services there are, one after the other.
    pub sync_services: Vec<usize>,
    /// How many gateways there are.
    pub gateways: usize,
    /// How many commits are made while everything fails that can.
    pub commits: u64,
}

impl Options {
    fn has(&self, name: &str) -> bool {
        self.only.iter().any(|only| only == name)
    }
}

/// Programs under test with their devices, and what was found so far.
pub(crate) struct Bench<'a> {
    pub(crate) options: &'a Options,
    pub(crate) cluster: Cluster,
    pub(crate) population: Population,
    pub(crate) report: Report,
    pub(crate) verdict: Verdict,
}

/// Runs cases and writes what came of them.
///
/// # Errors
/// Where something cannot be started, or a history is wrong.
pub async fn run(options: &Options, output: &Output) -> Result<Report> {
    let (mut report, mut verdict) = (Report::new(options.seed), Verdict::default());
    if NAMES.iter().any(|name| options.has(name)) {
        let devices = devices_needed(options);
        let accounts = account_names(devices, DEVICES_PER_ACCOUNT);
        let cluster = Cluster::alone(&options.binary, &options.work, &accounts)?;
        let population = enrol(&cluster, &accounts, devices, DEVICES_PER_ACCOUNT).await?;
        let mut bench = Bench { options, cluster, population, report, verdict };
        run_alone(&mut bench, output).await?;
        (report, verdict) = (bench.report, bench.verdict);
    }
    if options.has(GROWTH) {
        (report, verdict) = growth::run(options, (report, verdict), output).await?;
    }
    if SCALED_NAMES.iter().any(|name| options.has(name)) {
        (report, verdict) = scaled::run(options, (report, verdict), output).await?;
    }
    say(&format!("\nhistory: {}", verdict.describe()));
    report.verdict = verdict.describe();
    report.write(output)?;
    if !verdict.violations.is_empty() {
        bail!("the history is wrong: {}", verdict.describe());
    }
    Ok(report)
}

async fn run_alone(bench: &mut Bench<'_>, output: &Output) -> Result<()> {
    for name in NAMES.into_iter().filter(|name| bench.options.has(name)) {
        say(&format!("\n{name}"));
        match name {
            "rates" => rates::run(bench).await,
            "saturation" => rates::run_saturation(bench).await,
            "push" => push::run(bench).await,
            "pause" => disturbance::run_pause(bench).await,
            "kill" => disturbance::run_kill(bench).await,
            "idle" => idle::run(bench).await,
            other => bail!("no case is called '{other}'"),
        }
        .context(format!("case '{name}'"))?;
        // What is known so far is kept, whatever comes next.
        bench.report.write(output)?;
    }
    Ok(())
}

/// Signs devices in.
async fn enrol(
    cluster: &Cluster,
    accounts: &[String],
    devices: usize,
    each: usize,
) -> Result<Population> {
    say(&format!("{devices} devices of {} accounts sign in", accounts.len()));
    Population::enrol(&cluster.url(), accounts, devices, each).await
}

/// Returns how many devices the largest case of one server takes.
fn devices_needed(options: &Options) -> usize {
    let working =
        rates::devices_of(options.writers, DEVICES_PER_ACCOUNT).max(push::devices_of(options));
    let idle = options.idle.iter().copied().filter(|_| options.has("idle")).max().unwrap_or(0);
    let works = NAMES.iter().any(|name| *name != "idle" && options.has(name));
    if works { working.max(idle) } else { idle }
}

impl Bench<'_> {
    /// Starts the programs anew, so that every run begins alike, and gives each group of devices a workspace in which the first one writes.
    pub(crate) async fn prepare(
        &mut self,
        label: &str,
        groups: Vec<Vec<Arc<Enrolled>>>,
    ) -> Result<Vec<Seat>> {
        self.cluster.restart()?;
        self.seat(label, groups).await
    }

    /// Gives each group of devices a workspace in which the first one writes.
    pub(crate) async fn seat(
        &self,
        label: &str,
        groups: Vec<Vec<Arc<Enrolled>>>,
    ) -> Result<Vec<Seat>> {
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
        let connected = Connected::connect(&self.cluster.urls(), load, seats.to_vec()).await?;
        let outcome = connected.go(self.cluster.parts()).await?;
        let figures = Figures::of(&outcome);
        self.judge(seats, &outcome).await?;
        Ok((outcome, figures))
    }

    /// Judges the history of a run.
    pub(crate) async fn judge(&mut self, seats: &[Seat], outcome: &Outcome) -> Result<()> {
        let verdict = judge(&self.cluster.url(), seats, outcome).await?;
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
    let groups =
        population.accounts().flat_map(|devices| devices.chunks_exact(size)).map(<[_]>::to_vec);
    let groups: Vec<_> = groups.take(count).collect();
    if groups.len() < count {
        bail!("there are devices for {} groups of {size}, and {count} are needed", groups.len());
    }
    Ok(groups)
}
