//! What devices see while a server is paused, or is killed and comes back, and while something else is done to those who serve them.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::time::sleep;

use super::{Bench, groups_of};
use crate::cluster::Cluster;
use crate::figures::Figures;
use crate::population::Enrolled;
use crate::report::{Moment, Run};
use crate::run::{Connected, Load, Outcome, Pace, Seat};
use lab::output::say;

/// How many commits a second there are meanwhile.
const RATE: f64 = 500.0;

/// How many devices commit.
pub(super) const DEVICES: usize = 100;
const DEVICES_QUICK: usize = 10;

/// For how long the server has no processor.
const PAUSE: Duration = Duration::from_secs(1);

/// The time is cut into windows of this length.
const WINDOW: Duration = Duration::from_millis(100);

/// A thing that is done while devices work, and how long nothing else is done after it.
pub(super) type Step<'a> = (Box<dyn FnMut(&mut Cluster) -> Result<()> + 'a>, Duration);

/// Takes the processor away from the server for a second.
pub(super) async fn run_pause(bench: &mut Bench<'_>) -> Result<()> {
    let steps: Vec<Step<'_>> = vec![
        (Box::new(|cluster| cluster.doors[0].pause(true)), PAUSE),
        (Box::new(|cluster| cluster.doors[0].pause(false)), Duration::ZERO),
    ];
    let seats = prepare(bench, "pause").await?;
    disturb(bench, "pause", &seats, bench.options.length, steps).await.map(drop)
}

/// Kills the server and starts it again at once.
pub(super) async fn run_kill(bench: &mut Bench<'_>) -> Result<()> {
    let steps: Vec<Step<'_>> =
        vec![(Box::new(|cluster| cluster.doors[0].kill_and_restart()), Duration::ZERO)];
    let seats = prepare(bench, "kill").await?;
    disturb(bench, "kill", &seats, bench.options.length, steps).await.map(drop)
}

async fn prepare(bench: &mut Bench<'_>, name: &str) -> Result<Vec<Seat>> {
    let groups = groups(bench)?;
    bench.prepare(name, groups).await
}

/// Returns the devices that work meanwhile.
pub(super) fn groups(bench: &Bench<'_>) -> Result<Vec<Vec<Arc<Enrolled>>>> {
    let devices = if bench.options.quick { DEVICES_QUICK } else { DEVICES };
    groups_of(&bench.population, 1, devices)
}

/// Runs devices, and after a third of the time does each thing, with a pause after it. Returns the figures, and for how many seconds
/// answers were disturbed.
pub(super) async fn disturb(
    bench: &mut Bench<'_>,
    name: &str,
    seats: &[Seat],
    length: Duration,
    steps: Vec<Step<'_>>,
) -> Result<(Figures, f64)> {
    let load = Load {
        seed: bench.options.seed,
        pace: Pace::Open { rate: RATE },
        length,
        patience: Duration::from_secs(60),
    };
    let connected = Connected::connect(&bench.cluster.urls(), load, seats.to_vec()).await?;
    let progress = connected.progress();
    // Processes come and go, so their cost cannot be told by numbers.
    let running = tokio::spawn(connected.go(Vec::new()));
    sleep(length / 3).await;
    let begun = progress.since_start();
    for (mut step, after) in steps {
        step(&mut bench.cluster)?;
        sleep(after).await;
    }
    let ended = progress.since_start();
    let outcome = running.await.context("the run failed")??;
    bench.judge(seats, &outcome).await?;
    let figures = Figures::of(&outcome);
    let moments = moments(&outcome);
    let disturbed = moments.iter().filter(|moment| moment.delay_p99 > 10.0 * median_p99(&moments));
    let disturbed = disturbed.count() as f64 * WINDOW.as_secs_f64();
    let run = Run::new(name.to_owned(), Some(RATE), seats.len(), length, figures.clone());
    say(&run.describe());
    say(&format!(
        "  disturbed from {:.2} s to {:.2} s; p99 of a tenth of a second above ten times the usual in {disturbed:.1} s of it all",
        begun.as_secs_f64(),
        ended.as_secs_f64(),
    ));
    bench.report.series.push((name.to_owned(), moments));
    bench.report.runs.push(run);
    Ok((figures, disturbed))
}

fn median_p99(moments: &[Moment]) -> f64 {
    let mut delays: Vec<f64> = moments.iter().map(|moment| moment.delay_p99).collect();
    delays.sort_by(f64::total_cmp);
    delays.get(delays.len() / 2).copied().unwrap_or(0.0)
}

/// Cuts a run into windows by the moment at which commits were to be sent.
fn moments(outcome: &Outcome) -> Vec<Moment> {
    let windows = (outcome.load.length.as_secs_f64() / WINDOW.as_secs_f64()).ceil() as usize;
    let mut delays = vec![Vec::new(); windows];
    for commit in outcome.noted.iter().flat_map(|noted| &noted.commits) {
        let window = (commit.intended.as_secs_f64() / WINDOW.as_secs_f64()) as usize;
        if let (Some(delays), Some(answered)) = (delays.get_mut(window), commit.answered) {
            delays.push(answered.saturating_sub(commit.intended).as_secs_f64() * 1000.0);
        }
    }
    let moment = |(number, mut delays): (usize, Vec<f64>)| {
        delays.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let place = (share * (delays.len().max(1) - 1) as f64).round() as usize;
            delays.get(place).copied().unwrap_or(0.0)
        };
        Moment {
            seconds: number as f64 * WINDOW.as_secs_f64(),
            answered: delays.len() as u64,
            delay_p50: at(0.5),
            delay_p99: at(0.99),
            delay_max: at(1.0),
        }
    };
    delays.into_iter().enumerate().map(moment).collect()
}
