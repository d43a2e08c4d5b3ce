//! Very many commits while everything fails that can: sync services and gateways are killed, stand still and come back, the broker and
//! the database are killed and start again.
//!
//! Devices repeat what nobody could answer, as the program does, so in the end every commit is answered, and the judge wants each of them
//! in the log once.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use tokio::time::sleep;

use super::scaled::renew;
use super::{Bench, rates};
use crate::cluster::{Cluster, DATABASE, Ground, Shape};
use crate::figures::Figures;
use crate::report::scaled::Million;
use crate::run::{Connected, Load, Pace};
use lab::output::say;

/// How many sync services and gateways there are.
const SYNC_SERVICES: usize = 3;
const GATEWAYS: usize = 2;

/// How many accidents there are, evenly over the commits.
const ACCIDENTS_COUNT: u64 = 60;
const ACCIDENTS_COUNT_QUICK: u64 = 6;

/// How long a process stands still.
const STANDSTILL: Duration = Duration::from_secs(2);

/// How long everything may take, until the last answer.
const PATIENCE: Duration = Duration::from_secs(3600);

/// What happens to those who serve.
#[derive(Debug, Clone, Copy)]
enum Accident {
    SyncServiceKilled,
    BrokerKilled,
    SyncServiceStandsStill,
    DatabaseKilled,
    GatewayKilled,
    SyncServiceReplaced,
}

/// One after the other, and then again.
const ACCIDENTS: [Accident; 6] = [
    Accident::SyncServiceKilled,
    Accident::BrokerKilled,
    Accident::SyncServiceStandsStill,
    Accident::DatabaseKilled,
    Accident::GatewayKilled,
    Accident::SyncServiceReplaced,
];

impl Accident {
    fn describe(self) -> &'static str {
        match self {
            Self::SyncServiceKilled => "a sync service is killed",
            Self::BrokerKilled => "the broker is killed",
            Self::SyncServiceStandsStill => "a sync service stands still",
            Self::DatabaseKilled => "the database is killed",
            Self::GatewayKilled => "a gateway is killed",
            Self::SyncServiceReplaced => "a sync service is stopped and started",
        }
    }

    /// Lets it happen to one of them after the other, and mends it again.
    async fn strike(
        self,
        round: usize,
        cluster: &mut Cluster,
        ground: &mut Ground,
        shape: Shape,
    ) -> Result<()> {
        let (worker, door) = (round % cluster.workers.len(), round % cluster.doors.len());
        match self {
            Self::SyncServiceKilled => cluster.workers[worker].kill_and_restart()?,
            Self::SyncServiceReplaced => cluster.workers[worker].restart()?,
            Self::GatewayKilled => cluster.doors[door].kill_and_restart()?,
            Self::SyncServiceStandsStill => {
                cluster.workers[worker].pause(true)?;
                sleep(STANDSTILL).await;
                cluster.workers[worker].pause(false)?;
            }
            Self::BrokerKilled => kill_and_revive(ground, shape.broker)?,
            Self::DatabaseKilled => kill_and_revive(ground, DATABASE)?,
        }
        Ok(())
    }
}

fn kill_and_revive(ground: &mut Ground, service: &str) -> Result<()> {
    ground.services.kill(service)?;
    Ok(ground.services.revive(service)?)
}

/// Runs the case with every broker.
///
/// # Errors
/// Where a commit is never answered, or is not in the log once.
pub(super) async fn run(bench: &mut Bench<'_>, ground: &mut Ground) -> Result<()> {
    for broker in bench.options.scaled.brokers.clone() {
        let shape = Shape { broker, gateways: GATEWAYS, sync_services: SYNC_SERVICES };
        renew(bench, ground, shape).await?;
        run_one(bench, ground, shape).await?;
    }
    Ok(())
}

async fn run_one(bench: &mut Bench<'_>, ground: &mut Ground, shape: Shape) -> Result<()> {
    let groups = rates::groups(&bench.population, bench.options.writers);
    let writers = groups.len() as u64;
    let seats = bench.seat(&format!("million-{}", shape.broker), groups).await?;
    let pace = Pace::Counted { each: bench.options.scaled.commits.div_ceil(writers) };
    let seed = bench.options.seed;
    let load = Load { seed, pace, length: PATIENCE, patience: PATIENCE };
    let connected = Connected::connect(&bench.cluster.urls(), load, seats.clone()).await?;
    let progress = connected.progress();
    let mut running = tokio::spawn(connected.go(Vec::new()));
    let count = if bench.options.quick { ACCIDENTS_COUNT_QUICK } else { ACCIDENTS_COUNT };
    for number in 0..count {
        let so_far = (number + 1) * bench.options.scaled.commits / (count + 1);
        tokio::select! {
            () = progress.answered(so_far) => {}
            ended = &mut running => {
                ended.context("the run failed")??;
                bail!("the run ended after {number} accidents");
            }
        }
        let accidents = number as usize;
        let accident = ACCIDENTS[accidents % ACCIDENTS.len()];
        let what = accident.describe();
        let round = accidents / ACCIDENTS.len();
        accident.strike(round, &mut bench.cluster, ground, shape).await.context(what)?;
        let (at, answered) = (progress.since_start().as_secs(), progress.answered_so_far());
        say(&format!("  {at} s: {what}; {answered} commits answered"));
    }
    let outcome = running.await.context("the run failed")??;
    let before = bench.verdict.clone();
    bench.judge(&seats, &outcome).await?;
    let figures = Figures::of(&outcome);
    let violations = bench.verdict.violations.len() - before.violations.len();
    let million = Million {
        shape,
        sent: figures.sent,
        answered: figures.answered,
        refused: figures.refused,
        repeated: figures.repeated,
        losses: figures.losses,
        accidents: count,
        known: bench.verdict.known - before.known,
        violations,
        seconds: outcome.last_answer.as_secs_f64(),
        longest_ms: figures.answers.longest().unwrap_or(f64::NAN),
    };
    say(&million.describe());
    bench.report.millions.push(million);
    ensure!(
        figures.answered == figures.sent && figures.unsent == 0,
        "{} of {} commits were answered, and {} never sent",
        figures.answered,
        figures.sent,
        figures.unsent
    );
    ensure!(violations == 0, "the history is wrong");
    Ok(())
}
