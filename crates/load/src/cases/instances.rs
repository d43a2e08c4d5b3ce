//! What devices see while a sync service is added, is taken away, and dies.

use std::time::Duration;

use anyhow::{Result, ensure};

use super::Bench;
use super::disturbance::{self, Step};
use super::scaled::renew;
use crate::cluster::{Ground, Shape};
use lab::output::say;

/// How many there are before.
const SYNC_SERVICES: usize = 2;

/// For how long delays may be higher than usual afterwards, in seconds.
const DISTURBED_MAX: f64 = 2.0;

/// For how long devices send at most.
const LENGTH_MAX: Duration = Duration::from_secs(12);

/// Runs the case with every broker.
///
/// # Errors
/// Where a commit fails: that is what this case is about.
pub(super) async fn run(bench: &mut Bench<'_>, ground: &Ground) -> Result<()> {
    let length = bench.options.length.min(LENGTH_MAX);
    for broker in bench.options.scaled.brokers.clone() {
        let gateways = bench.options.scaled.gateways;
        let shape = Shape { broker, gateways, sync_services: SYNC_SERVICES };
        for accident in ["added", "removed", "killed"] {
            renew(bench, ground, shape).await?;
            let step: Step<'_> = match accident {
                "added" => (Box::new(|cluster| cluster.add_worker(ground, shape)), Duration::ZERO),
                "removed" => (Box::new(|cluster| cluster.workers[0].stop()), Duration::ZERO),
                _ => (Box::new(|cluster| cluster.workers[0].kill()), Duration::ZERO),
            };
            let name = format!("{broker}-{accident}");
            say(&format!("  {name}"));
            let seats = bench.seat(&name, disturbance::groups(bench)?).await?;
            let (figures, disturbed) =
                disturbance::disturb(bench, &name, &seats, length, vec![step]).await?;
            ensure!(
                figures.answered == figures.sent && figures.refused == 0,
                "{name}: {} of {} commits were answered, {} refused",
                figures.answered,
                figures.sent,
                figures.refused
            );
            if disturbed > DISTURBED_MAX {
                say(&format!("  {name}: longer than {DISTURBED_MAX} s"));
            }
        }
    }
    Ok(())
}
