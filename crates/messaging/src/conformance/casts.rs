//! One asks, one does it, nobody waits.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;

use super::world::{Deed, DiesAfterRecording, Service, asking, assert_each_once, diligent, within};
use super::{Fixture, WAITING_MAX};
use crate::envelope::Envelope;
use crate::error::{Fault, MessagingError};
use crate::messenger::ServeOptions;
use crate::names::OperationId;
use crate::transport::{Notice, Parcel, Route, Source, Verdict};

/// Returns the next dead letter of a service.
async fn dead_letter(service: &Service, fixture: &dyn Fixture) -> Bytes {
    within(40, "a dead letter", async {
        let transport = fixture.server().await;
        let source = Source::DeadLetters(service.name.clone());
        let mut letters = transport.receive(&source, 1).await.unwrap();
        loop {
            if let Some(Notice::Delivery(letter)) = letters.next().await {
                let bytes = letter.bytes.clone();
                letter.settle(Verdict::Done).await.unwrap();
                return bytes;
            }
        }
    })
    .await
}

pub(super) async fn each_cast_is_done_by_one_of_the_group(fixture: &dyn Fixture) {
    let service = Service::new("share");
    let mut instances = Vec::new();
    for number in 0..3 {
        instances.push(service.numbered(fixture, number, diligent, service.options()).await);
    }
    let client = asking(fixture).await;
    let casts = (0..400).map(|number| {
        let proxy = service.proxy(&client);
        tokio::spawn(async move { proxy.later(number).await })
    });
    for cast in casts.collect::<Vec<_>>() {
        cast.await.unwrap().unwrap();
    }
    let done = service.tally.until("all casts are done", |done| done.order.len() >= 400).await;
    assert_each_once(&done, 0..400);
}

pub(super) async fn a_cast_waits_for_an_instance_that_comes_later(fixture: &dyn Fixture) {
    let service = Service::new("later");
    let first = service.instance(fixture, diligent).await;
    let client = asking(fixture).await;
    let proxy = service.proxy(&client);
    proxy.later(0).await.unwrap();
    service.tally.until("the first", |done| done.order.len() == 1).await;
    first.serving.stop().await;
    drop(first.messenger);
    for number in 1..50 {
        proxy.later(number).await.unwrap();
    }
    assert_each_once(&service.tally.done(), 0..1);
    let _second = service.instance(fixture, diligent).await;
    let done = service.tally.until("all casts are done", |done| done.order.len() >= 50).await;
    assert_each_once(&done, 0..50);
}

pub(super) async fn an_instance_that_dies_before_it_acknowledges_leaves_one_effect(
    fixture: &dyn Fixture,
) {
    let service = Service::new("death");
    let options = |deaths: u64| {
        let results = DiesAfterRecording {
            results: Arc::clone(&service.results),
            tally: Arc::clone(&service.tally),
            deaths: deaths.into(),
        };
        ServeOptions { results: Arc::new(results), ..service.options() }
    };
    // The effect and its record are there; the acknowledgement never comes, for this instance dies.
    let dying = service.numbered(fixture, 0, diligent, options(1_000)).await;
    let client = asking(fixture).await;
    for number in 0..4 {
        service.proxy(&client).later(number).await.unwrap();
    }
    service.tally.until("it is about to die", |done| done.missed == 4).await;
    drop(dying);
    let _heir = service.numbered(fixture, 1, diligent, options(0)).await;
    for number in 4..20 {
        service.proxy(&client).later(number).await.unwrap();
    }
    // Four were asked for when the first died, and again by its heir, which answers them from the record.
    service.tally.until("what was not acknowledged comes again", |done| done.asked >= 24).await;
    assert_each_once(&service.tally.done(), 0..20);
}

fn poisonous(number: u64) -> Deed {
    match number {
        5 => Deed::Panic,
        6 => Deed::Fail(Fault::unavailable("not today")),
        7 => Deed::Fail(Fault::service("never", "not like this")),
        _ => Deed::Do,
    }
}

pub(super) async fn a_poisonous_message_goes_to_the_dead_letters_and_blocks_nobody(
    fixture: &dyn Fixture,
) {
    for poison in [5, 6, 7] {
        let service = Service::new("poison");
        // Only one at a time, so that it would be in everybody's way.
        let options = ServeOptions { concurrency: 1, ..service.options() };
        let _instance = service.numbered(fixture, 0, poisonous, options).await;
        let client = asking(fixture).await;
        for number in (poison..50).filter(|number| *number == poison || *number > 7) {
            service.proxy(&client).later(number).await.unwrap();
        }
        let done = service.tally.until("the others", |done| done.order.len() == 42).await;
        assert_each_once(&done, 8..50);
        let envelope = Envelope::decode(&dead_letter(&service, fixture).await).unwrap();
        let (number,): (u64,) =
            envelope.encoding.decode("it", &envelope.body.open().unwrap()).unwrap();
        assert_eq!((envelope.method.as_str(), number), ("later", poison));
        let tries = if poison == 7 { 1 } else { 3 };
        assert_eq!(service.tally.done().begun[&poison], tries);
    }
}

pub(super) async fn what_cannot_be_read_goes_to_the_dead_letters(fixture: &dyn Fixture) {
    let service = Service::new("garbage");
    let _instance = service.instance(fixture, diligent).await;
    let client = asking(fixture).await;
    let garbage = Bytes::from_static(b"SM\x01 this is no envelope");
    let operation = OperationId::from_bytes([9; 16]);
    let parcel = Parcel { bytes: garbage.clone(), operation, expires_in: None };
    // A gateway reads envelopes itself, and refuses what none is; brokers do not.
    let server = fixture.server().await;
    server.send(&Route::Cast(service.name.clone()), parcel).await.unwrap();
    service.proxy(&client).later(1).await.unwrap();
    service.tally.until("the other", |done| done.order.len() == 1).await;
    assert_eq!(dead_letter(&service, fixture).await, garbage);
}

pub(super) async fn a_cast_whose_deadline_has_passed_is_not_begun(fixture: &dyn Fixture) {
    let service = Service::new("deadline");
    let first = service.instance(fixture, diligent).await;
    let client = asking(fixture).await;
    service.proxy(&client).soon(1).await.unwrap();
    service.tally.until("it was in time", |done| done.order.len() == 1).await;
    first.serving.stop().await;
    drop(first.messenger);
    service.proxy(&client).soon(2).await.unwrap();
    // Until its deadline has passed, which nothing but time brings about.
    tokio::time::sleep(Duration::from_millis(200)).await;
    let _second = service.instance(fixture, diligent).await;
    service.proxy(&client).later(3).await.unwrap();
    let done = service.tally.until("the last", |done| done.effects.contains_key(&3)).await;
    assert!(!done.begun.contains_key(&2));
    let letter = Envelope::decode(&dead_letter(&service, fixture).await).unwrap();
    assert_eq!(letter.method, "soon");
    assert!(!service.tally.done().begun.contains_key(&2));
}

pub(super) async fn a_full_queue_is_an_error_and_drains_again(fixture: &dyn Fixture) {
    let service = Service::new("full");
    let stuck = service.instance(fixture, |_| Deed::Hang).await;
    let client = asking(fixture).await;
    let proxy = service.proxy(&client);
    let mut accepted = 0;
    let error = loop {
        match proxy.hurried(accepted).await {
            Ok(()) => accepted += 1,
            Err(error) => break error,
        }
        assert!(accepted < 3 * WAITING_MAX as u64, "the queue has no bound");
    };
    assert!(matches!(error, MessagingError::Full { .. }), "{error}");
    assert!(accepted >= WAITING_MAX as u64);
    drop(stuck);
    let _instance = service.instance(fixture, diligent).await;
    let enough = usize::try_from(accepted).unwrap();
    service.tally.until("what was accepted", |done| done.order.len() >= enough).await;
    // The one that was refused may have been taken in at its last attempt.
    let mut done = service.tally.done();
    done.effects.remove(&accepted);
    assert_each_once(&done, 0..accepted);
    proxy.later(accepted + 1).await.unwrap();
    service.tally.until("it drains", |done| done.effects.contains_key(&(accepted + 1))).await;
}

pub(super) async fn an_instance_that_stops_finishes_what_it_began(fixture: &dyn Fixture) {
    let service = Service::new("stop");
    let first = service.instance(fixture, diligent).await;
    let client = asking(fixture).await;
    let proxy = service.proxy(&client);
    let casting = tokio::spawn(async move {
        for number in 0..100 {
            proxy.later(number).await.unwrap();
        }
    });
    service.tally.until("it is in the middle", |done| done.order.len() >= 10).await;
    first.serving.stop().await;
    let done = service.tally.done();
    assert_eq!(done.under_way, 0);
    assert!(done.begun.keys().eq(done.effects.keys()), "something was broken off");
    drop(first.messenger);
    let _second = service.instance(fixture, diligent).await;
    casting.await.unwrap();
    let done = service.tally.until("all casts are done", |done| done.order.len() >= 100).await;
    assert_each_once(&done, 0..100);
    assert!(done.begun.values().all(|begun| *begun == 1));
}

pub(super) async fn what_waits_for_a_service_is_counted(fixture: &dyn Fixture) {
    let (service, transport) = (Service::new("depth"), fixture.server().await);
    let until = |wanted: u64| {
        let (transport, name) = (Arc::clone(&transport), service.name.clone());
        async move {
            let what = format!("{wanted} casts wait");
            // A broker counts a moment later.
            let counting = async {
                while transport.waiting(&name).await != Ok(wanted) {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            };
            within(60, &what, counting).await;
        }
    };
    let asked = within(60, "an answer", async {
        loop {
            match transport.waiting(&service.name).await {
                // A connection that was just begun.
                Err(MessagingError::Unreachable { .. }) => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                asked => return asked,
            }
        }
    });
    let error = asked.await.unwrap_err();
    assert!(matches!(error, MessagingError::NoReceiver { .. }), "{error}");
    // It has four in its hands, which do not count.
    let stuck = service.instance(fixture, |_| Deed::Wait).await;
    until(0).await;
    let client = asking(fixture).await;
    for number in 0..20 {
        service.proxy(&client).later(number).await.unwrap();
    }
    until(16).await;
    service.tally.note(|done| done.is_released = true);
    service.tally.until("all are done", |done| done.order.len() == 20).await;
    until(0).await;
    drop(stuck);
}
