//! One tells, many listen.

use std::sync::Arc;
use std::time::Duration;

use super::Fixture;
use super::world::{
    Deed, LabourDispatcher, LabourProxy, Tally, Worker, asking, diligent, fresh_name, messenger,
};
use crate::messenger::{Messenger, MessengerOptions, Serving};
use crate::names::Name;

/// Listens from a connection of its own.
async fn listen(
    fixture: &dyn Fixture,
    topic: &Name,
    waiting_max: usize,
    deed: fn(u64) -> Deed,
) -> (Serving, Messenger, Arc<Tally>) {
    let client = messenger(fixture.client().await, MessengerOptions::default()).await;
    let tally = Arc::new(Tally::default());
    let worker = Worker { number: 0, tally: Arc::clone(&tally), deed };
    let handler = Arc::new(LabourDispatcher(worker));
    let serving = client.listen(topic, handler, waiting_max).await.unwrap();
    (serving, client, tally)
}

pub(super) async fn an_event_reaches_all_who_listen_in_order(fixture: &dyn Fixture) {
    let topic = fresh_name("news");
    let mut listeners = Vec::new();
    for _ in 0..4 {
        listeners.push(listen(fixture, &topic, 200, diligent).await);
    }
    let (_other, _client, other_tally) = listen(fixture, &fresh_name("other"), 200, diligent).await;
    let server = messenger(fixture.server().await, MessengerOptions::default()).await;
    let proxy = LabourProxy::at(Arc::new(server), topic);
    for number in 0..100 {
        proxy.happened(number).await.unwrap();
    }
    for (_, _, tally) in &listeners {
        let done = tally.until("all events", |done| done.order.len() >= 100).await;
        assert_eq!(done.order, (0..100).collect::<Vec<u64>>());
        assert_eq!(done.missed, 0);
    }
    assert!(other_tally.done().order.is_empty());
}

/// As a sync service answers the groups that one transaction has made durable.
pub(super) async fn events_that_one_sender_tells_at_once_are_all_heard(fixture: &dyn Fixture) {
    const AT_ONCE: u64 = 8;
    const ROUNDS: u64 = 100;
    let topic = fresh_name("chorus");
    let (_serving, _client, tally) = listen(fixture, &topic, 200, diligent).await;
    let server = messenger(fixture.server().await, MessengerOptions::default()).await;
    let proxy = Arc::new(LabourProxy::at(Arc::new(server), topic));
    for round in 0..ROUNDS {
        let numbers = round * AT_ONCE..(round + 1) * AT_ONCE;
        let tellers = numbers.map(|number| {
            let proxy = Arc::clone(&proxy);
            tokio::spawn(async move { proxy.happened(number).await })
        });
        for teller in tellers.collect::<Vec<_>>() {
            teller.await.unwrap().unwrap();
        }
        let told = (round + 1) * AT_ONCE;
        tally.until("all events", |done| done.order.len() as u64 >= told).await;
    }
    let mut done = tally.done();
    done.order.sort_unstable();
    assert_eq!((done.order, done.missed), ((0..ROUNDS * AT_ONCE).collect(), 0));
}

pub(super) async fn a_slow_listener_loses_the_oldest_and_hears_of_it(fixture: &dyn Fixture) {
    const EVENTS: u64 = 6_000;
    let topic = fresh_name("flood");
    let (_serving, _client, slow) = listen(fixture, &topic, 8, |number| match number {
        0 => Deed::Wait,
        _ => Deed::Do,
    })
    .await;
    let server = messenger(fixture.server().await, MessengerOptions::default()).await;
    let proxy = LabourProxy::at(Arc::new(server), topic.clone());
    proxy.happened(0).await.unwrap();
    slow.until("it is stuck", |done| done.under_way == 1).await;
    for number in 1..EVENTS {
        proxy.happened(number).await.unwrap();
    }
    slow.note(|done| done.is_released = true);
    // What was lost shows at the latest with the next event.
    let more = async {
        for number in EVENTS.. {
            proxy.happened(number).await.unwrap();
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let hears = slow.until("it hears that it missed something", |done| done.missed > 0);
    let done = tokio::select! {
        done = hears => done,
        () = more => unreachable!("there is always one more"),
    };
    let kept = done.order.len();
    assert!(kept < 3_000, "{kept} of {EVENTS} events were kept for a slow listener");
}

pub(super) async fn an_event_for_nobody_is_no_error(fixture: &dyn Fixture) {
    let server = messenger(fixture.server().await, MessengerOptions::default()).await;
    let proxy = LabourProxy::at(Arc::new(server), fresh_name("silence"));
    proxy.happened(1).await.unwrap();
    let client = asking(fixture).await;
    let proxy = LabourProxy::at(Arc::new(client), fresh_name("silence"));
    proxy.happened(1).await.unwrap();
}
