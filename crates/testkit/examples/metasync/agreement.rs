//! Agreement over several stores: MetaSync 2015, Figures 8 and 9.

use std::error::Error;
use std::fmt::Write;
use std::time::Duration;

use testkit::clouds::agreement::{Cost, all_at_once, another_device, same_device_again};
use testkit::clouds::older::{by_disk_paxos, by_ppaxos};
use testkit::clouds::services::{Region, Service, table_4};

use lab::output::{Output, median, say, spread};
use lab::plot::{Plot, Series};

/// How many devices compete at most (MetaSync's Figure 8).
const PROPOSERS_MAX: u8 = 5;

/// What the paper's text says of Figure 8, for all five services: one proposer, and five until one of them has won.
const PAPER_ONE: f64 = 3.2;
const PAPER_FIVE: f64 = 7.4;

/// Measures and writes everything about agreement.
pub(crate) fn run(seeds: u64, output: &Output) -> Result<(), Box<dyn Error>> {
    let mut csv =
        "case,stores,devices,seed,rank,seconds,round_trips,requests,attempts\n".to_owned();
    commits(seeds, &mut csv)?;
    competition(seeds, &mut csv, output)?;
    clients(seeds, &mut csv, output)?;
    output.write_csv("agreement", &csv)?;
    Ok(())
}

/// The groups of stores: each service alone, and all together.
fn groups() -> Vec<(String, Vec<Service>)> {
    let services = table_4(Region::UnitedStates);
    let alone = services.iter().map(|service| (service.name.to_owned(), vec![*service]));
    alone.chain([("all".to_owned(), services.clone())]).collect()
}

/// One commit, by the device that committed last and by another one.
fn commits(seeds: u64, csv: &mut String) -> Result<(), Box<dyn Error>> {
    say(
        "| one commit over | by the device that was last: s | round trips | requests | by another one: s | round trips |",
    );
    say("|---|---|---|---|---|---|");
    for (name, services) in groups() {
        let (mut same, mut other) = (Vec::new(), Vec::new());
        for seed in 0..seeds {
            same.push(same_device_again(&services, seed)?);
            other.push(another_device(&services, seed)?);
            note(csv, "same device", &name, (1, seed), &same[same.len() - 1..]);
            note(csv, "another device", &name, (1, seed), &other[other.len() - 1..]);
        }
        say(&format!(
            "| {name} | {} | {} | {} | {} | {} |",
            spread(&times(&same)),
            most(&same, |cost| cost.round_trips),
            most(&same, |cost| cost.requests),
            spread(&times(&other)),
            most(&other, |cost| cost.round_trips),
        ));
    }
    Ok(())
}

/// One to five devices at once.
fn competition(seeds: u64, csv: &mut String, output: &Output) -> Result<(), Box<dyn Error>> {
    say("\n| devices at once, all stores | first: s | last: s |");
    say("|---|---|---|");
    let mut series = Vec::new();
    for (name, services) in groups() {
        let (mut firsts, mut lasts) = (Vec::new(), Vec::new());
        for devices in 1..=PROPOSERS_MAX {
            let (mut first, mut last) = (Vec::new(), Vec::new());
            for seed in 0..seeds {
                let costs = all_at_once(&services, seed, devices)?;
                first.push(costs[0].took);
                last.push(costs[costs.len() - 1].took);
                note(csv, "at once", &name, (devices, seed), &costs);
            }
            if name == "all" {
                say(&format!("| {devices} | {} | {} |", spread(&first), spread(&last)));
            }
            firsts.push((f64::from(devices), median(&first)));
            lasts.push((f64::from(devices), median(&last)));
        }
        series.push(Series::ours(format!("{name}: first commit"), firsts));
        if name == "all" {
            series.push(Series::ours("all: last commit", lasts));
        }
    }
    let paper = vec![(1.0, PAPER_ONE), (f64::from(PROPOSERS_MAX), PAPER_FIVE)];
    series.push(Series::published("MetaSync, all: first", paper));
    let plot = Plot {
        title: "Commits that compete, over emulated services (cf. MetaSync, Figure 8)".to_owned(),
        across: "devices that commit at the same moment".to_owned(),
        up: "seconds, median".to_owned(),
        series,
    };
    output.write_svg("metasync-8", &plot.lines())?;
    Ok(())
}

/// One device that proposes, among one to ten that might.
fn clients(seeds: u64, csv: &mut String, output: &Output) -> Result<(), Box<dyn Error>> {
    let services = table_4(Region::UnitedStates);
    say(
        "\n| devices, of which one commits | ours, it was last: s | ours, it was not: s | pPaxos: s | Disk Paxos: s |",
    );
    say("|---|---|---|---|---|");
    let names = ["ours, it was last", "ours, it was not", "pPaxos", "Disk Paxos"];
    let mut lines: [Vec<(f64, f64)>; 4] = Default::default();
    for clients in [1, 2, 4, 6, 8, 10] {
        let mut times: [Vec<Duration>; 4] = Default::default();
        for seed in 0..seeds {
            // Ours and pPaxos do not ask who else there is; what one of them takes is what it takes among many.
            let took = [
                same_device_again(&services, seed)?.took,
                another_device(&services, seed)?.took,
                by_ppaxos(&services, seed, 1)?[1],
                by_disk_paxos(&services, seed, clients)?,
            ];
            for (index, took) in took.into_iter().enumerate() {
                let (name, seconds) = (names[index], took.as_secs_f64());
                let _ok = writeln!(csv, "\"{name}\",all,{clients},{seed},1,{seconds:.3},,,");
                times[index].push(took);
            }
        }
        let spreads: Vec<_> = times.iter().map(|times| spread(times)).collect();
        say(&format!("| {clients} | {} |", spreads.join(" | ")));
        for (line, times) in lines.iter_mut().zip(&times) {
            line.push((clients as f64, median(times)));
        }
    }
    let ours = names.into_iter().zip(lines).map(|(name, points)| Series::ours(name, points));
    let mut series: Vec<_> = ours.collect();
    series.push(Series::published("MetaSync's pPaxos", vec![(1.0, PAPER_ONE), (10.0, PAPER_ONE)]));
    let plot = Plot {
        title: "One commit among many clients, all five services (cf. MetaSync, Figure 9)"
            .to_owned(),
        across: "devices, of which one commits".to_owned(),
        up: "seconds, median".to_owned(),
        series,
    };
    output.write_svg("metasync-9", &plot.lines())?;
    say("\n| pPaxos, devices at once | first: s | last: s |");
    say("|---|---|---|");
    for devices in 1..=PROPOSERS_MAX {
        let runs = (0..seeds).map(|seed| by_ppaxos(&services, seed, devices));
        let runs: Vec<_> = runs.collect::<Result<_, _>>()?;
        for (seed, run) in runs.iter().enumerate() {
            let [first, last] = run.map(|took| took.as_secs_f64());
            let _ok = writeln!(csv, "pPaxos at once: first,all,{devices},{seed},1,{first:.3},,,");
            let _ok = writeln!(csv, "pPaxos at once: last,all,{devices},{seed},1,{last:.3},,,");
        }
        let part = |part: usize| spread(&runs.iter().map(|run| run[part]).collect::<Vec<_>>());
        say(&format!("| {devices} | {} | {} |", part(0), part(1)));
    }
    Ok(())
}

fn note(csv: &mut String, case: &str, stores: &str, (devices, seed): (u8, u64), costs: &[Cost]) {
    for (rank, cost) in costs.iter().enumerate() {
        let Cost { took, round_trips, requests, attempts } = cost;
        // Writing to a String cannot fail.
        let _ok = writeln!(
            csv,
            "{case},{stores},{devices},{seed},{},{:.3},{round_trips},{requests},{attempts}",
            rank + 1,
            took.as_secs_f64()
        );
    }
}

fn times(costs: &[Cost]) -> Vec<Duration> {
    costs.iter().map(|cost| cost.took).collect()
}

fn most(costs: &[Cost], read: fn(&Cost) -> usize) -> usize {
    costs.iter().map(read).max().unwrap_or(0)
}
