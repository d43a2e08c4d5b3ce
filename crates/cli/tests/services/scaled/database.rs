//! A database that dies, stands still, starts again or is full, under two gateways, two sync services and a crowd.

use std::time::Duration;

use model::wire::RefusalKind;

use super::crowd::{Crowd, Delay};
use super::machines::{Machine, Machines};
use super::{DISTURBANCE_MAX, PROGRESS};

/// After what time a device hears something at the latest: a gateway waits 10 s for a sync service; for a busy machine half as much again.
const ANSWER_MAX: Duration = Duration::from_secs(15);

/// Every device was answered in time, with an error that says what it is to do.
fn assert_told(delays: &[Delay], kinds: &[RefusalKind]) {
    for delay in delays {
        let is_told = delay.kind.is_some_and(|kind| kinds.contains(&kind));
        assert!(is_told && delay.after < ANSWER_MAX, "{delay:?}");
    }
}

/// Everybody says that they are not well, and lives.
fn assert_not_ready(crowd: &Crowd, machines: &[&Machine]) {
    for url in machines.iter().map(|machine| machine.url()) {
        let said = crowd.ask(&format!("{url}/readyz"));
        assert_eq!((said.status, &*said.word), (503, "unavailable"), "{url}");
        assert!(said.after < ANSWER_MAX, "{said:?}");
        assert_eq!(crowd.ask(&format!("{url}/livez")).status, 200);
    }
}

fn assert_ready_soon(crowd: &Crowd, machines: &[&Machine]) {
    for machine in machines {
        crowd.await_status(&format!("{}/readyz", machine.url()), 200);
    }
}

#[test]
fn nothing_is_lost_or_doubled_on_bad_days_of_the_database() {
    let mut machines = Machines::set_on_a_small_disk("rabbitmq");
    let gateways = ["gateway-1", "gateway-2"].map(|name| machines.start("gateway", name));
    let workers = ["worker-1", "worker-2"].map(|name| machines.start("sync-service", name));
    let all: Vec<_> = gateways.iter().chain(&workers).collect();
    let workspaces = format!("{}/api/v1/workspaces", gateways[0].url());
    let crowd = Crowd::gather(&gateways.each_ref().map(Machine::url), 6);
    crowd.progress(PROGRESS);
    assert!(crowd.take_delays().is_empty(), "nobody is told to come back on a good day");

    // It dies, and is away for a while.
    machines.kill_database();
    assert_not_ready(&crowd, &all);
    let said = crowd.ask(&workspaces);
    assert_eq!((said.status, &*said.word), (503, "unavailable"));
    assert!(said.after < ANSWER_MAX, "{said:?}");
    assert_told(&crowd.await_delay(RefusalKind::Unavailable), &[RefusalKind::Unavailable]);
    machines.revive_database();
    let disturbed = crowd.progress(PROGRESS);
    assert!(disturbed < DISTURBANCE_MAX, "{disturbed:?}");
    assert_ready_soon(&crowd, &all);

    // It is started again, as an operator does.
    machines.restart_database();
    let disturbed = crowd.progress(PROGRESS);
    assert!(disturbed < DISTURBANCE_MAX, "{disturbed:?}");

    // It stands still for as long as it takes to find that out.
    machines.pause_database(|| assert_not_ready(&crowd, &[&gateways[0]]));
    let disturbed = crowd.progress(PROGRESS);
    assert!(disturbed < DISTURBANCE_MAX, "{disturbed:?}");
    assert_ready_soon(&crowd, &all);
    assert_told(&crowd.take_delays(), &[RefusalKind::Unavailable]);

    // Its disk is full. What it has can still be read.
    let disk = machines.disk.as_ref().unwrap();
    disk.fill();
    let told = crowd.await_delay(RefusalKind::NoSpace);
    assert_told(&told, &[RefusalKind::NoSpace]);
    let said = crowd.ask(&workspaces);
    assert_eq!(said.status, 200, "{said:?}");
    disk.free();
    let disturbed = crowd.progress(PROGRESS);
    assert!(disturbed < DISTURBANCE_MAX, "{disturbed:?}");
    let count = crowd.judge();
    assert!(count >= 5 * PROGRESS, "{count}");
}
