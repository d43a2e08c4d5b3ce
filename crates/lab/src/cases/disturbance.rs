//! What devices see while a server is paused, or is killed and comes back.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use parking_lot::Mutex;
use tokio::time::sleep;

use super::{Bench, groups_of};
use crate::figures::Figures;
use crate::load::{Connected, Load, Outcome, Pace};
use crate::output::say;
use crate::report::{Moment, Run};
use crate::server_process::ServerProcess;

/// How many commits a second there are meanwhile.
const RATE: f64 = 500.0;

/// How many devices commit.
const DEVICES: usize = 100;
const DEVICES_QUICK: usize = 10;

/// For how long the server has no processor.
const PAUSE: Duration = Duration::from_secs(1);

/// The time is cut into windows of this length.
const WINDOW: Duration = Duration::from_millis(100);

/// A thing that is done to a server while devices work.
type Disturb = fn(&mut ServerProcess) -> Result<()>;

/// Takes the processor away from the server for a second.
pub(super) async fn run_pause(bench: &mut Bench<'_>) -> Result<()> {
    let begin: Disturb = |server| server.pause(true);
    let end: Disturb = |server| server.pause(false);
    disturb(bench, "pause", &[(begin, PAUSE), (end, Duration::ZERO)]).await
}

/// Kills the server and starts it again at once.
pub(super) async fn run_kill(bench: &mut Bench<'_>) -> Result<()> {
    disturb(bench, "kill", &[(ServerProcess::kill_and_restart, Duration::ZERO)]).await
}

/// Runs devices, and after a third of the time does each thing, with a pause after it.
async fn disturb(bench: &mut Bench<'_>, name: &str, steps: &[(Disturb, Duration)]) -> Result<()> {
    let devices = if bench.options.quick { DEVICES_QUICK } else { DEVICES };
    let groups = groups_of(&bench.population, 1, devices)?;
    let seats = bench.prepare(name, groups).await?;
    let length = bench.options.length;
    let load = Load {
        seed: bench.options.seed,
        pace: Pace::Open { rate: RATE },
        length,
        patience: Duration::from_secs(60),
    };
    let server = bench.server.url();
    let connected = Connected::connect(&server, load, seats.clone()).await?;
    let (process, begun) = (bench.server.id(), Arc::new(Mutex::new(None)));
    let progress = connected.progress();
    // The server may be another process afterwards, so its cost cannot be told by a number.
    let process = (name != "kill").then_some(process);
    let running = tokio::spawn(connected.go(process));
    sleep(length / 3).await;
    *begun.lock() = Some(progress.since_start());
    for (step, after) in steps {
        step(&mut bench.server)?;
        sleep(*after).await;
    }
    let ended = progress.since_start();
    let outcome = running.await.context("the run failed")??;
    bench.judge(&seats, &outcome).await?;
    let begun = begun.lock().unwrap_or_default();
    let figures = Figures::of(&outcome);
    let moments = moments(&outcome);
    let disturbed = moments.iter().filter(|moment| moment.delay_p99 > 10.0 * median_p99(&moments));
    let run = Run::new(name.to_owned(), Some(RATE), seats.len(), length, figures);
    say(&run.describe());
    say(&format!(
        "  disturbed from {:.2} s to {:.2} s; p99 of a tenth of a second above ten times the usual in {:.1} s of it all",
        begun.as_secs_f64(),
        ended.as_secs_f64(),
        disturbed.count() as f64 * WINDOW.as_secs_f64()
    ));
    bench.report.series.push((name.to_owned(), moments));
    bench.report.runs.push(run);
    Ok(())
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
