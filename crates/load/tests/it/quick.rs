//! Short runs in which nothing may be lost, doubled, or left without an answer.

use std::time::Duration;

use load::figures::{Figures, judge, seats};
use load::population::Population;
use load::run::{Connected, Load, Outcome, Pace, Seat};

use crate::support::TestServer;

const SEED: u64 = 20_140_714;

fn load(pace: Pace, length: Duration) -> Load {
    Load { seed: SEED, pace, length, patience: Duration::from_secs(60) }
}

/// Gives every `devices_each` devices a workspace, in which the first one writes.
async fn groups(population: &Population, label: &str, devices_each: usize) -> Vec<Seat> {
    let groups: Vec<_> = population.devices.chunks(devices_each).map(<[_]>::to_vec).collect();
    let owners: Vec<_> = groups.iter().map(|group| group[0].clone()).collect();
    let workspaces = population.workspaces(label, &owners).await.expect("workspaces");
    seats(workspaces.into_iter().zip(groups))
}

async fn run(server: &TestServer, load: Load, seats: Vec<Seat>) -> Outcome {
    let connected = Connected::connect(&[server.url()], load, seats).await.expect("all connect");
    connected.go(Vec::new()).await.expect("it runs")
}

/// Demands that everything was answered and heard, and that the log says the same.
async fn demand_perfection(server: &TestServer, seats: &[Seat], outcome: &Outcome) -> Figures {
    let figures = Figures::of(outcome);
    assert!(figures.sent > 0);
    assert_eq!(figures.answered, figures.sent, "all are answered");
    assert_eq!((figures.refused, figures.contradictions), (0, 0));
    let verdict = judge(&server.url(), seats, outcome).await.expect("the logs are read");
    assert_eq!(verdict.violations, [], "{}", verdict.describe());
    assert_eq!(verdict.known, figures.sent);
    figures
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn open_loop_is_answered_heard_and_in_the_log_once() {
    let server = TestServer::start(24).await;
    let population = server.population(24).await;
    let seats = groups(&population, "open", 3).await;
    let pace = Pace::Open { rate: 300.0 };
    let outcome = run(&server, load(pace, Duration::from_secs(2)), seats.clone()).await;
    let figures = demand_perfection(&server, &seats, &outcome).await;
    assert!((400..800).contains(&figures.sent), "{} were sent", figures.sent);
    assert_eq!(figures.own_events.count(), figures.sent, "every sender hears its own");
    assert_eq!(figures.other_events.count(), 2 * figures.sent, "both others hear it");
    assert_eq!((figures.unheard, figures.losses), (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closed_loop_at_full_speed_loses_nothing() {
    let server = TestServer::start(8).await;
    let population = server.population(8).await;
    let seats = groups(&population, "closed", 1).await;
    let pace = Pace::Closed { in_flight: 16 };
    let outcome = run(&server, load(pace, Duration::from_secs(1)), seats.clone()).await;
    demand_perfection(&server, &seats, &outcome).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commits_under_way_while_the_server_is_killed_stand_once() {
    let mut server = TestServer::start(8).await;
    let population = server.population(8).await;
    let seats = groups(&population, "killed", 2).await;
    let pace = Pace::Open { rate: 400.0 };
    let load = load(pace, Duration::from_secs(3));
    let connected =
        Connected::connect(&[server.url()], load, seats.clone()).await.expect("all connect");
    let progress = connected.progress();
    let running = tokio::spawn(connected.go(Vec::new()));
    progress.answered(200).await;
    server.kill_and_restart().await;
    let outcome = running.await.expect("no panic").expect("it runs");
    let figures = demand_perfection(&server, &seats, &outcome).await;
    assert!(figures.losses >= 8, "every device lost its connection: {}", figures.losses);
}
