//! A sync service that the network parts from its database, and a broker that stands still, under a crowd.

use std::time::Duration;

use model::wire::RefusalKind;

use super::crowd::Crowd;
use super::machines::{Machine, Machines};
use super::relay::Relay;
use super::{DISTURBANCE_MAX, PROGRESS};

#[test]
fn nothing_is_lost_or_doubled_where_the_network_parts_a_sync_service_from_the_database() {
    let machines = Machines::set("nats");
    let line = Relay::to(machines.database_port());
    let gateways = ["gateway-1", "gateway-2"].map(|name| machines.start("gateway", name));
    let parted = machines.start_through(line.port(), "sync-service", "worker-1");
    let mut other = machines.start("sync-service", "worker-2");
    let [parted_ready, gateway_ready] =
        [&parted, &gateways[0]].map(|machine| format!("{}/readyz", machine.url()));
    let crowd = Crowd::gather(&gateways.each_ref().map(Machine::url), 6);
    crowd.progress(PROGRESS);

    // Cut off, it says so and leaves the queue to the other: nobody is sent away for its sake.
    line.cut();
    let disturbed = crowd.progress(PROGRESS);
    assert!(disturbed < DISTURBANCE_MAX, "{disturbed:?}");
    crowd.await_status(&parted_ready, 503);
    crowd.progress(PROGRESS);
    crowd.take_delays();
    let disturbed = crowd.progress(5 * PROGRESS);
    assert!(disturbed < DISTURBANCE_MAX, "{disturbed:?}");
    let delays = crowd.take_delays();
    assert!(delays.is_empty(), "{delays:?}");
    assert_eq!(crowd.ask(&gateway_ready).status, 200);

    // Back, it takes its part again: alone it does all.
    line.mend();
    crowd.await_status(&parted_ready, 200);
    other.stop();
    let disturbed = crowd.progress(PROGRESS);
    assert!(disturbed < DISTURBANCE_MAX, "{disturbed:?}");
    other.run(&machines);
    crowd.progress(PROGRESS);

    // Nothing comes through, and nobody says why.
    line.stand_still();
    let disturbed = crowd.progress(PROGRESS);
    assert!(disturbed < DISTURBANCE_MAX, "{disturbed:?}");
    crowd.await_status(&parted_ready, 503);
    assert_eq!(crowd.ask(&gateway_ready).status, 200);
    line.mend();
    crowd.await_status(&parted_ready, 200);
    crowd.progress(PROGRESS);
    let count = crowd.judge();
    assert!(count >= 10 * PROGRESS, "{count}");
}

#[test]
fn devices_of_a_gateway_are_answered_while_its_broker_stands_still() {
    for broker in ["rabbitmq", "nats"] {
        let machines = Machines::set(broker);
        let gateway = machines.start("gateway", "gateway-1");
        let _workers = ["worker-1", "worker-2"].map(|name| machines.start("sync-service", name));
        let crowd = Crowd::gather(&[gateway.url()], 3);
        crowd.progress(PROGRESS);
        machines.pause_broker(|| {
            let told = crowd.await_delay(RefusalKind::Unavailable);
            let late = told.iter().find(|delay| delay.after > Duration::from_secs(15));
            assert!(late.is_none(), "{late:?}");
            // What needs no queue goes on; health says what does not.
            let said = crowd.ask(&format!("{}/readyz", gateway.url()));
            assert_eq!((said.status, &*said.word), (200, "degraded"), "{broker}");
            let said = crowd.ask(&format!("{}/api/v1/workspaces", gateway.url()));
            assert_eq!(said.status, 200, "{broker}");
        });
        let disturbed = crowd.progress(PROGRESS);
        assert!(disturbed < DISTURBANCE_MAX, "{broker}: {disturbed:?}");
        crowd.judge();
    }
}
