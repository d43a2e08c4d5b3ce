//! Two gateways and two sync services on a real PostgreSQL and a real broker, on bad days: here those of the servers and the broker.

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crowd::{Crowd, PATIENCE};
use machines::{Machine, Machines};

#[path = "scaled/crowd.rs"]
mod crowd;
#[path = "scaled/database.rs"]
mod database;
#[path = "scaled/machines.rs"]
mod machines;
#[path = "scaled/network.rs"]
mod network;
#[path = "scaled/relay.rs"]
mod relay;
#[path = "scaled/small_disk.rs"]
mod small_disk;

/// How many commits must be answered after each accident.
const PROGRESS: usize = 100;

/// A sync service has at most eight groups in its hands, and a gateway asks another after a second; for a busy machine as much again.
const DISTURBANCE_MAX: Duration = Duration::from_secs(20);

fn nothing_is_lost_or_doubled_on_bad_days(broker: &'static str) {
    let mut machines = Machines::set(broker);
    let mut gateways = ["gateway-1", "gateway-2"].map(|name| machines.start("gateway", name));
    let mut workers = ["worker-1", "worker-2"].map(|name| machines.start("sync-service", name));
    let crowd = Crowd::gather(&gateways.each_ref().map(Machine::url), 6);
    crowd.progress(PROGRESS);
    // Who has devices hears of every commit, who has none of no commit.
    let heard = |machine: &Machine, kind: &str| {
        machine.metric(&format!("syncline_broker_messages_total{{kind=\"{kind}\"}}"))
    };
    for (gateway, worker) in gateways.iter().zip(&workers) {
        assert!(heard(gateway, "bulletin") > 0);
        assert_eq!((heard(gateway, "sign"), heard(worker, "bulletin")), (0, 0));
        assert!(heard(worker, "sign") > 0);
    }

    // A sync service dies; the other takes what it had.
    workers[0].kill();
    let disturbed = crowd.progress(PROGRESS);
    assert!(disturbed < DISTURBANCE_MAX, "{disturbed:?}");
    workers[0].run(&machines);
    crowd.progress(PROGRESS);

    // One stands still with commits in its hands, and goes on when others have done them.
    workers[1].signal(Signal::STOP);
    let disturbed = crowd.progress(PROGRESS);
    assert!(disturbed < DISTURBANCE_MAX, "{disturbed:?}");
    workers[1].signal(Signal::CONT);
    crowd.progress(PROGRESS);

    // One is taken away and another is added, as an operator does.
    workers[0].stop();
    let disturbed = crowd.progress(PROGRESS);
    assert!(disturbed < DISTURBANCE_MAX, "{disturbed:?}");
    workers[0].run(&machines);

    // The broker dies and comes back, with its data and without them.
    for is_wiped in [false, true] {
        machines.kill_broker();
        let before = crowd.count();
        std::thread::sleep(Duration::from_secs(1));
        // At most what was under way.
        assert!(crowd.count() <= before + 12, "somebody commits without a queue");
        if is_wiped {
            machines.wipe_broker();
        }
        machines.revive_broker();
        crowd.progress(PROGRESS);
    }

    // A gateway dies, and its devices come back.
    gateways[0].kill();
    crowd.progress(PROGRESS);
    gateways[0].run(&machines);
    crowd.progress(PROGRESS);
    let count = crowd.judge();
    assert!(count >= 10 * PROGRESS, "{count}");
}

#[test]
fn nothing_is_lost_or_doubled_on_bad_days_of_rabbitmq() {
    nothing_is_lost_or_doubled_on_bad_days("rabbitmq");
}

#[test]
fn nothing_is_lost_or_doubled_on_bad_days_of_nats() {
    nothing_is_lost_or_doubled_on_bad_days("nats");
}

fn a_broker_is_reached_over_tls_and_a_stranger_is_not(broker: &'static str) {
    let mut machines = Machines::set(broker);
    machines.trust(None);
    let gateway = machines.start("gateway", "gateway-1");
    let _worker = machines.start("sync-service", "worker-1");
    let crowd = Crowd::gather(&[gateway.url()], 2);
    crowd.progress(PROGRESS);
    let stranger = Path::new(env!("CARGO_MANIFEST_DIR")).join("../server/tests/it/tls/one.pem");
    machines.trust(Some(stranger.to_str().unwrap()));
    // It starts, as with every broker that is away, and says that it hears nothing.
    let cut_off = machines.start("gateway", "gateway-2");
    let health = format!("{}/healthz", cut_off.url());
    let start = Instant::now();
    while crowd.ask(&health).word != "degraded" {
        assert!(start.elapsed() < PATIENCE, "it hears from a broker that it does not trust");
        std::thread::sleep(Duration::from_millis(100));
    }
    crowd.judge();
}

#[test]
fn rabbitmq_is_reached_over_tls_and_a_stranger_is_not() {
    a_broker_is_reached_over_tls_and_a_stranger_is_not("rabbitmq");
}

#[test]
fn nats_is_reached_over_tls_and_a_stranger_is_not() {
    a_broker_is_reached_over_tls_and_a_stranger_is_not("nats");
}
