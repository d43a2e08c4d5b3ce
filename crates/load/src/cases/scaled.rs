//! Gateways and sync services over PostgreSQL and a broker: commits at given rates, and as many as they can do.

use std::time::Duration;

use anyhow::{Context, Result};

use super::{Bench, Options, SCALED_NAMES, disturbance, instances, limit, million, rates};
use crate::cluster::{Cluster, DATABASE, Ground, Shape};
use crate::figures::Figures;
use crate::history::Verdict;
use crate::population::account_names;
use crate::report::scaled::ScaledRun;
use crate::report::{Report, Run};
use crate::run::{Connected, Load, Pace};
use lab::output::{Output, say};

/// How many devices an account has: ten that write, of whom each takes a new workspace for each of some fifty runs, and one that listens.
const DEVICES_EACH: usize = 11;

/// How long a cluster may take until it answers a first commit.
const WARMING_MAX: Duration = Duration::from_secs(60);

/// For how long devices send at most: there are many runs.
const LENGTH_MAX: Duration = Duration::from_secs(8);

/// What is offered above this is for one server with its own database.
const RATE_MAX: f64 = 10_000.0;

/// Runs the cases that were asked for, over services that run already.
///
/// # Errors
/// Where something cannot be started.
pub(super) async fn run(
    options: &Options,
    (report, verdict): (Report, Verdict),
    output: &Output,
) -> Result<(Report, Verdict)> {
    let file = options.scaled.services.as_deref().context(
        "no services are named: `cargo xtask services start postgresql rabbitmq nats` starts them, and --services FILE \
         names what it wrote",
    )?;
    let mut ground = Ground::prepare(&options.binary, &options.work, file)?;
    let devices = rates::devices_of(options.writers, DEVICES_EACH).max(disturbance::DEVICES);
    let accounts = account_names(devices, DEVICES_EACH);
    ground.setting.add_accounts(&accounts)?;
    let broker = *options.scaled.brokers.first().context("no broker is named")?;
    let shape = Shape { broker, gateways: options.scaled.gateways, sync_services: 1 };
    let cluster = Cluster::scaled(&ground, shape)?;
    let population = super::enrol(&cluster, &accounts, devices, DEVICES_EACH).await?;
    let mut bench = Bench { options, cluster, population, report, verdict };
    for service in [DATABASE].iter().chain(&options.scaled.brokers) {
        let version = ground.services.service(service)?.version.clone();
        bench.report.versions.push(((*service).to_owned(), version));
    }
    for name in SCALED_NAMES.into_iter().filter(|name| options.has(name)) {
        say(&format!("\n{name}"));
        match name {
            "limit" => limit::run(&mut bench, file),
            "instances" => instances::run(&mut bench, &ground).await,
            "million" => million::run(&mut bench, &mut ground).await,
            _ => run_rates(&mut bench, &ground).await,
        }
        .context(format!("case '{name}'"))?;
        // What is known so far is kept, whatever comes next.
        bench.report.write(output)?;
    }
    bench.cluster.stop()?;
    Ok((bench.report, bench.verdict))
}

/// Runs the offered rates and saturation with every broker and number of sync services.
async fn run_rates(bench: &mut Bench<'_>, ground: &Ground) -> Result<()> {
    let Options { rates, scaled, length, .. } = bench.options.clone();
    let length = length.min(LENGTH_MAX);
    for broker in scaled.brokers {
        for sync_services in scaled.sync_services.clone() {
            let shape = Shape { broker, gateways: scaled.gateways, sync_services };
            renew(bench, ground, shape).await?;
            let offered = rates.iter().filter(|rate| **rate <= RATE_MAX);
            let open = offered.map(|rate| (format!("rate-{rate}"), Pace::Open { rate: *rate }));
            let closed = Pace::Closed { in_flight: rates::IN_FLIGHT };
            for (name, pace) in open.chain([("saturation".to_owned(), closed)]) {
                let name = format!("{broker}-{sync_services}-{name}");
                run_one(bench, shape, name, pace, length).await?;
            }
        }
    }
    Ok(())
}

async fn run_one(
    bench: &mut Bench<'_>,
    shape: Shape,
    name: String,
    pace: Pace,
    length: Duration,
) -> Result<()> {
    let groups = rates::groups(&bench.population, bench.options.writers);
    let seats = bench.seat(&name, groups).await?;
    let before = groups_of(bench).await?;
    let (_, figures) = bench.measure(pace, length, &seats).await?;
    let after = groups_of(bench).await?;
    let offered = match pace {
        Pace::Open { rate } => Some(rate),
        _ => None,
    };
    let run = Run::new(name, offered, seats.len(), length, figures);
    let group_size = (after.1 - before.1) / (after.0 - before.0).max(1.0);
    say(&format!("  {}", run.name));
    say(&run.describe());
    let parts = run.figures.parts.iter().map(|(name, cores)| format!("{name} {cores:.2}"));
    let parts: Vec<_> = parts.collect();
    say(&format!("  cores: {}; {group_size:.1} commits in a transaction", parts.join(", ")));
    bench.report.scaled.push(ScaledRun { shape, group_size, run: run.clone() });
    bench.report.runs.push(run);
    Ok(())
}

/// Puts another cluster into the place of the one before, and waits until it answers.
pub(super) async fn renew(bench: &mut Bench<'_>, ground: &Ground, shape: Shape) -> Result<()> {
    // The next ones use the same folders.
    bench.cluster.stop()?;
    bench.cluster = Cluster::scaled(ground, shape)?;
    bench.population.server = bench.cluster.url();
    // As many as there are doors, so that each is known to answer.
    let doors = bench.cluster.doors.len();
    let devices = bench.population.devices.iter().take(doors).cloned();
    let label = format!("warm-{}", bench.cluster.doors[0].id());
    let seats = bench.seat(&label, devices.map(|device| vec![device]).collect()).await?;
    let (seed, pace) = (bench.options.seed, Pace::Counted { each: 1 });
    let load = Load { seed, pace, length: WARMING_MAX, patience: WARMING_MAX };
    let connected = Connected::connect(&bench.cluster.urls(), load, seats).await?;
    let outcome = connected.go(Vec::new()).await?;
    let figures = Figures::of(&outcome);
    anyhow::ensure!(figures.answered == doors as u64, "the cluster answers nobody");
    Ok(())
}

/// Asks the sync services how many transactions they have made so far, and of how many requests.
async fn groups_of(bench: &Bench<'_>) -> Result<(f64, f64)> {
    let (mut transactions, mut requests) = (0.0, 0.0);
    for address in &bench.cluster.watched {
        let page = bench.population.page(&format!("http://{address}/metrics")).await?;
        let value = |name: &str| {
            let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line.and_then(|value| value.parse::<f64>().ok()).context("a metric is missing")
        };
        transactions += value("syncline_group_size_count")?;
        requests += value("syncline_group_size_sum")?;
    }
    Ok((transactions, requests))
}
