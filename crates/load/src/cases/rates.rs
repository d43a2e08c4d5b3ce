//! Commits at given rates, and as many as the server can do.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;

use super::{Bench, Options};
use crate::population::{Enrolled, Population};
use crate::report::Run;
use crate::run::Pace;
use lab::output::say;

/// Of so many workspaces, one has a second device, which listens.
const WORKSPACES_PER_LISTENER: usize = 10;

/// How many commits of each device are under way at saturation.
pub(super) const IN_FLIGHT: usize = 8;

/// Above this rate a run is short: a server that cannot follow would leave minutes of work behind.
const RATE_OF_SHORT_RUNS: f64 = 20_000.0;

/// How long such a run is.
const SHORT_RUN: Duration = Duration::from_secs(5);

/// Returns how many devices so many writing ones and their listeners are, where an account has `each`.
pub(super) fn devices_of(writers: usize, each: usize) -> usize {
    let groups = writers.div_ceil(WORKSPACES_PER_LISTENER);
    // No group is cut at the border of two accounts.
    let groups_per_account = each / (WORKSPACES_PER_LISTENER + 1);
    let (accounts, rest) = (groups / groups_per_account, groups % groups_per_account);
    accounts * each + rest * (WORKSPACES_PER_LISTENER + 1)
}

/// Gives each writer a workspace, and every tenth workspace a second device.
pub(super) fn groups(population: &Population, writers: usize) -> Vec<Vec<Arc<Enrolled>>> {
    let tens =
        population.accounts().flat_map(|devices| devices.chunks_exact(WORKSPACES_PER_LISTENER + 1));
    let workspaces = tens.flat_map(|devices| {
        let (pair, alone) = devices.split_at(2);
        let alone = alone.iter().map(|device| vec![Arc::clone(device)]);
        std::iter::once(pair.to_vec()).chain(alone)
    });
    workspaces.take(writers).collect()
}

/// Runs the offered rates.
pub(super) async fn run(bench: &mut Bench<'_>) -> Result<()> {
    let Options { rates, writers, length, .. } = bench.options.clone();
    for rate in rates {
        let groups = groups(&bench.population, writers);
        let seats = bench.prepare(&format!("rate-{rate}"), groups).await?;
        let length = if rate > RATE_OF_SHORT_RUNS { length.min(SHORT_RUN) } else { length };
        let (_, figures) = bench.measure(Pace::Open { rate }, length, &seats).await?;
        let run = Run::new(format!("rate-{rate}"), Some(rate), seats.len(), length, figures);
        say(&run.describe());
        bench.report.runs.push(run);
    }
    Ok(())
}

/// Finds how many commits a second the server does when it always has something to do.
pub(super) async fn run_saturation(bench: &mut Bench<'_>) -> Result<()> {
    let groups = groups(&bench.population, bench.options.writers);
    let seats = bench.prepare("saturation", groups).await?;
    let length = bench.options.length.min(2 * SHORT_RUN);
    let pace = Pace::Closed { in_flight: IN_FLIGHT };
    let (_, figures) = bench.measure(pace, length, &seats).await?;
    let run = Run::new("saturation".to_owned(), None, seats.len(), length, figures);
    say(&run.describe());
    bench.report.runs.push(run);
    Ok(())
}
