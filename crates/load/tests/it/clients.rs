//! Clients as browsers, for a second, by every method: all that they send is at the server.

use std::time::Duration;

use load::clients::exchange::Method;
use load::clients::files::{Content, Edited, Releases};
use load::clients::place::{Client, Preparation};
use load::clients::run::{Outcome, Pace, run};
use load::population::Population;

use crate::support::TestServer;

const SEED: u64 = 20_180_212;

fn preparation<'lab>(
    server: &TestServer,
    population: &'lab Population,
    method: Method,
) -> Preparation<'lab> {
    let server = server.url().trim_start_matches("http://").parse().expect("an address");
    let label = method.name();
    Preparation { population, server, label, seed: SEED, method, clients: 5 }
}

async fn go(at: Preparation<'_>, clients: Vec<Client>, pace: Pace, length: Duration) -> Outcome {
    run(at.server, std::process::id(), clients, pace, length).await.expect("it runs")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn edits_at_their_times_are_stored_whatever_sends_them() {
    let server = TestServer::start(1).await;
    let population = server.population(1).await;
    let base = Edited::new(Content::Letters, SEED, 60_000);
    for method in Method::ALL {
        let at = preparation(&server, &population, method);
        let clients = at.regular(&base, 100, 2).await.expect("they are ready");
        let pace = Pace::Every(Duration::from_millis(100));
        let outcome = go(at, clients, pace, Duration::from_millis(200)).await;
        assert_eq!(outcome.failures, Vec::<String>::new(), "{}", method.name());
        assert_eq!((outcome.offered, outcome.stored), (10, 10), "{}", method.name());
        assert_eq!((outcome.delays.count(), outcome.verified), (10, 5), "{}", method.name());
        assert!(outcome.bytes.0 > 1000, "{:?}", outcome.bytes);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn releases_are_sent_without_a_pause_and_a_line_is_waited_for() {
    let server = TestServer::start(5).await;
    let population = server.population(5).await;
    let releases = Releases::stand_in(SEED).expect("files change");
    let line = Duration::from_millis(20);
    for (method, round_trips) in [(Method::Ours, 1), (Method::WebR2syncPlus, 2)] {
        let at = preparation(&server, &population, method);
        let clients = at.intensive(&releases.changes, 6).await.expect("they are ready");
        let pace = Pace::NoPause { line };
        let outcome = go(at, clients, pace, Duration::from_secs(5)).await;
        assert_eq!(outcome.failures, Vec::<String>::new(), "{}", method.name());
        assert_eq!((outcome.offered, outcome.stored, outcome.verified), (30, 30, 5));
        let middle = outcome.delays.percentile(50.0).expect("there are delays");
        assert!(middle >= f64::from(20 * round_trips), "{}: {middle} ms", method.name());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_whose_server_has_something_else_gives_up_and_says_why() {
    let server = TestServer::start(1).await;
    let population = server.population(1).await;
    let base = Edited::new(Content::Letters, SEED, 60_000);
    let at = preparation(&server, &population, Method::Ours);
    let mut clients = at.regular(&base, 100, 2).await.expect("they are ready");
    // Its second edit does not follow the first one.
    clients[3].exchanges.swap(0, 1);
    let pace = Pace::Every(Duration::from_millis(50));
    let outcome = go(at, clients, pace, Duration::from_millis(100)).await;
    assert_eq!(outcome.failures.len(), 1);
    assert!(outcome.failures[0].contains("wrong_base"), "{:?}", outcome.failures);
    assert_eq!((outcome.offered, outcome.stored, outcome.verified), (9, 8, 4));
}
