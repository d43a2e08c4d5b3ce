//! From notes to figures: percentiles, rates, and the verdict over the history.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use hdrhistogram::Histogram;
use model::WorkspaceId;
use model::wire::{Reply, Request};

use crate::cluster::{DOORS, WORKERS};
use crate::device::op_id;
use crate::history::{Judge, Known, Offered, Verdict};
use crate::line::Line;
use crate::mix::Mix;
use crate::notes::Noted;
use crate::population::{Enrolled, Workspace};
use crate::run::{Outcome, Seat};

/// The longest delay that a histogram tells from longer ones, in microseconds.
const DELAY_MAX: u64 = 600_000_000;

/// How many bytes of the log are read at once.
const ENTRIES_LENGTH_MAX: u64 = 3 * 1024 * 1024;

/// Delays, counted in microseconds with three digits.
#[derive(Debug, Clone)]
pub struct Delays(Histogram<u64>);

impl Default for Delays {
    fn default() -> Self {
        let histogram = Histogram::new_with_bounds(1, DELAY_MAX, 3);
        Self(histogram.expect("the bounds are in order"))
    }
}

impl Delays {
    /// Counts a delay.
    pub fn add(&mut self, delay: Duration) {
        let microseconds = u64::try_from(delay.as_micros()).unwrap_or(u64::MAX);
        self.0.saturating_record(microseconds.max(1));
    }

    /// Returns how many were counted.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// Returns the delay that so many of a hundred do not exceed, in milliseconds; nothing where there is none.
    pub fn percentile(&self, percent: f64) -> Option<f64> {
        let value = self.0.value_at_quantile(percent / 100.0);
        (!self.0.is_empty()).then_some(value as f64 / 1000.0)
    }

    /// Returns the longest, in milliseconds.
    pub fn longest(&self) -> Option<f64> {
        (!self.0.is_empty()).then(|| self.0.max() as f64 / 1000.0)
    }

    /// Returns every step of the histogram: a delay in microseconds, and how many had it.
    pub fn steps(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let recorded = self.0.iter_recorded();
        recorded.map(|step| (step.value_iterated_to(), step.count_at_value()))
    }
}

impl FromIterator<Duration> for Delays {
    fn from_iter<I: IntoIterator<Item = Duration>>(delays: I) -> Self {
        let mut counted = Self::default();
        delays.into_iter().for_each(|delay| counted.add(delay));
        counted
    }
}

/// The figures of one run.
#[derive(Debug, Clone, Default)]
pub struct Figures {
    /// How many commits were sent.
    pub sent: u64,
    /// How many more were to be sent, and were not, because the server did not read.
    pub unsent: u64,
    /// How many were answered.
    pub answered: u64,
    /// How many were answered while devices were sending, per second.
    pub answered_per_second: f64,
    /// From the intended moment of sending to the answer.
    pub answers: Delays,
    /// From the intended moment of sending to the event at the sender.
    pub own_events: Delays,
    /// From the intended moment of sending to the event at another device.
    pub other_events: Delays,
    /// From the intended moment of sending until the last of the other devices has the event.
    pub last_events: Delays,
    /// From the intended moment to the handing over to the network: what the generator adds itself, and a server that does not read.
    pub lags: Delays,
    /// How late the generator's own timer woke up.
    pub lateness: Delays,
    /// Events that were not pushed.
    pub unheard: u64,
    /// How often a device had to ask because an event was missing.
    pub gaps: u64,
    /// Commits that were refused.
    pub refused: u64,
    /// How many times one was sent again because nobody could answer it just then.
    pub repeated: u64,
    /// Connections that were lost.
    pub losses: u64,
    /// Answers that name another place than the event of the same commit.
    pub contradictions: u64,
    /// Cores that the programs under test used on average, without database and broker.
    pub server_cores: f64,
    /// The same, part by part, with database and broker.
    pub parts: Vec<(&'static str, f64)>,
    /// Cores that the generator used, on average.
    pub generator_cores: f64,
    /// Cores that others on the host of this machine had instead of it, on average.
    pub stolen_cores: f64,
    /// CPU time of the server for each commit that it answered meanwhile, in microseconds: it says the same on a machine that others use.
    pub server_cpu_each: f64,
    /// CPU time of the generator for each.
    pub generator_cpu_each: f64,
}

impl Figures {
    /// Computes the figures of a run.
    pub fn of(outcome: &Outcome) -> Self {
        let commits = || outcome.noted.iter().flat_map(|noted| &noted.commits);
        let since_intended = |moment: fn(&crate::notes::NotedCommit) -> Option<Duration>| {
            let late = commits().filter_map(|c| Some(moment(c)?.saturating_sub(c.intended)));
            late.collect::<Delays>()
        };
        let mut last: HashMap<(u32, u32), Duration> = HashMap::new();
        for heard in outcome.noted.iter().flat_map(|noted| &noted.heard) {
            let latest = last.entry((heard.device, heard.number)).or_default();
            *latest = heard.late.max(*latest);
        }
        let wall = outcome.cost.wall_seconds.max(1e-9);
        let each = |seconds: f64| seconds * 1e6 / outcome.answered_in_time.max(1) as f64;
        let parts = &outcome.cost.parts;
        let own = parts.iter().filter(|(name, _)| [DOORS, WORKERS].contains(name));
        let own_seconds = own.fold(0.0, |sum, (_, seconds)| sum + seconds);
        let sum = |count: fn(&Noted) -> u64| outcome.noted.iter().map(count).sum::<u64>();
        let heard = outcome.noted.iter().flat_map(|noted| &noted.heard);
        Self {
            sent: commits().count() as u64,
            unsent: sum(|noted| noted.unsent),
            answered: commits().filter(|commit| commit.answered.is_some()).count() as u64,
            answered_per_second: outcome.answered_in_time as f64 / wall,
            answers: since_intended(|commit| commit.answered),
            own_events: since_intended(|commit| commit.heard),
            other_events: heard.map(|heard| heard.late).collect(),
            last_events: last.into_values().collect(),
            lags: since_intended(|commit| Some(commit.sent)),
            lateness: outcome.lateness.iter().copied().collect(),
            unheard: outcome.unheard,
            gaps: sum(|noted| noted.gaps),
            refused: sum(|noted| noted.refused.len() as u64),
            repeated: outcome.repeated,
            losses: sum(|noted| noted.losses.len() as u64),
            contradictions: commits().filter(|commit| commit.is_contradicted()).count() as u64,
            server_cores: own_seconds / wall,
            parts: parts.iter().map(|(name, seconds)| (*name, seconds / wall)).collect(),
            generator_cores: outcome.cost.generator_cpu_seconds / wall,
            stolen_cores: outcome.cost.stolen_seconds / wall,
            server_cpu_each: each(own_seconds),
            generator_cpu_each: each(outcome.cost.generator_cpu_seconds),
        }
    }
}

/// Reads the logs of a run again, from the server, and judges what it had said.
///
/// # Errors
/// Where a log cannot be read.
pub async fn judge(server: &str, seats: &[Seat], outcome: &Outcome) -> Result<Verdict> {
    let mut noted: BTreeMap<WorkspaceId, Vec<&Noted>> = BTreeMap::new();
    for one in &outcome.noted {
        noted.entry(one.workspace).or_default().push(one);
    }
    let mut verdict = Verdict::default();
    let mut seen = std::collections::HashSet::new();
    for seat in seats {
        if !seen.insert(seat.workspace.id) {
            continue;
        }
        let noted = noted.get(&seat.workspace.id).map(Vec::as_slice).unwrap_or_default();
        verdict.add(judge_workspace(server, seat, noted, outcome.load.seed).await?);
    }
    Ok(verdict)
}

async fn judge_workspace(
    server: &str,
    seat: &Seat,
    noted: &[&Noted],
    seed: u64,
) -> Result<Verdict> {
    let offered = noted.iter().flat_map(|noted| offered(noted, seed));
    let mut judge = Judge::new(seat.workspace.genesis, offered);
    let mut line = Line::open(server, &seat.device, seed).await?;
    let (workspace, mut since) = (seat.workspace.id, 0);
    loop {
        let request = Request::Entries { since, length_max: ENTRIES_LENGTH_MAX };
        let reply = line.ask(workspace, request).await.context("the log was not read")?;
        let Reply::Entries(entries) = reply else { bail!("the log was not read: {reply:?}") };
        let Some(last) = entries.last() else { break };
        since = last.seq;
        for entry in &entries {
            judge.entry(entry);
        }
    }
    line.close().await;
    Ok(judge.finish())
}

/// Returns what a device has sent, made again from the seed, with what it knows of it.
fn offered(noted: &Noted, seed: u64) -> impl Iterator<Item = Offered> + '_ {
    let mut mix = Mix::new(seed, noted.device);
    noted.commits.iter().zip(0..).map(move |(commit, number)| {
        let known = commit.known().map(|(at, seq)| Known { at, seq, answer: commit.head });
        Offered {
            op_id: op_id(commit.intended, noted.device, number),
            change: mix.next_change().1,
            sent: commit.sent,
            known,
        }
    })
}

/// Returns the seats of a run in which every workspace has one device that writes and some that listen.
pub fn seats(groups: impl IntoIterator<Item = (Workspace, Vec<Arc<Enrolled>>)>) -> Vec<Seat> {
    let mut seats = Vec::new();
    for (workspace, devices) in groups {
        for (place, device) in devices.into_iter().enumerate() {
            seats.push(Seat { device, workspace, writes: place == 0 });
        }
    }
    seats
}
