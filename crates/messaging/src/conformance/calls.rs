//! One asks, one answers.

use std::sync::Arc;
use std::time::Duration;

use super::Fixture;
use super::world::{
    Deed, Done, LabourProxy, Service, asking, assert_each_once, diligent, messenger, within,
};
use crate::body::Encoding;
use crate::calls::{CallOptions, Calls, Request};
use crate::error::{FaultKind, MessagingError};
use crate::messenger::MessengerOptions;

pub(super) async fn a_call_is_answered_in_both_encodings_small_and_large(fixture: &dyn Fixture) {
    let service = Service::new("call");
    let _instance = service.instance(fixture, diligent).await;
    for encoding in [Encoding::MessagePack, Encoding::Json] {
        for compress_above in [0, 1024, usize::MAX] {
            let options =
                MessengerOptions { encoding, compress_above, ..MessengerOptions::default() };
            let client = messenger(fixture.client().await, options).await;
            for length in [1, 1000, 300_000] {
                let answer = service.proxy(&client).shout("a".repeat(length)).await.unwrap();
                assert!(answer == "A".repeat(length), "{encoding:?} {compress_above} {length}");
            }
        }
    }
}

pub(super) async fn faults_travel_with_their_kind_and_code(fixture: &dyn Fixture) {
    let service = Service::new("fault");
    let _instance = service.instance(fixture, diligent).await;
    let client = asking(fixture).await;
    let proxy = service.proxy(&client);
    let fault_of = |error: MessagingError| match error {
        MessagingError::Fault(fault) => fault,
        other => panic!("this is no fault: {other}"),
    };
    let refused = fault_of(proxy.shout("refuse".to_owned()).await.unwrap_err());
    assert_eq!((refused.kind, refused.code.as_str()), (FaultKind::Service, "no_shouting"));
    assert_eq!(refused.message, "be quiet");
    assert_eq!(
        fault_of(proxy.shout("panic".to_owned()).await.unwrap_err()).kind,
        FaultKind::Panicked
    );
    let hoarse = fault_of(proxy.shout(String::new()).await.unwrap_err());
    assert_eq!(hoarse.kind, FaultKind::Unavailable);
    let odd = [
        (
            "shout",
            4,
            client.encoding().encode("it", &("a",)).unwrap(),
            FaultKind::UnsupportedVersion,
        ),
        ("whisper", 3, client.encoding().encode("it", &("a",)).unwrap(), FaultKind::UnknownMethod),
        ("shout", 3, client.encoding().encode("it", &(7,)).unwrap(), FaultKind::InvalidRequest),
        ("shout", 3, client.encoding().encode("it", &("a", 1)).unwrap(), FaultKind::InvalidRequest),
        ("shout", 3, bytes::Bytes::from_static(b"\xc1"), FaultKind::InvalidRequest),
    ];
    for (method, interface_version, arguments, kind) in odd {
        let target = service.name.clone();
        let request = Request { target, method, interface_version, operation: None, arguments };
        let error = client.call(request, &CallOptions::DEFAULT).await.unwrap_err();
        assert_eq!(fault_of(error).kind, kind);
    }
    assert_eq!(proxy.shout("still here".to_owned()).await.unwrap(), "STILL HERE");
}

pub(super) async fn a_service_that_nobody_serves_is_an_error_and_not_a_silence(
    fixture: &dyn Fixture,
) {
    let service = Service::new("nobody");
    let client = asking(fixture).await;
    let proxy = service.proxy(&client);
    // A patient call: on a busy machine, an impatient one ends before anybody can say it.
    let error = proxy.shout("anybody?".to_owned()).await.unwrap_err();
    assert!(matches!(error, MessagingError::NoReceiver { .. }), "{error}");
    let error = proxy.hurried(1).await.unwrap_err();
    // A busy broker may need longer to say so than this call is patient.
    let is_known =
        matches!(error, MessagingError::NoReceiver { .. } | MessagingError::Unreachable { .. });
    assert!(is_known, "{error}");
}

pub(super) async fn a_call_without_an_answer_ends_in_time_and_all_attempts_are_one_operation(
    fixture: &dyn Fixture,
) {
    let service = Service::new("silence");
    let _instance = service.instance(fixture, |_| Deed::Hang).await;
    let client = asking(fixture).await;
    let proxy = service.proxy(&client);
    let start = tokio::time::Instant::now();
    let error = within(10, "a hopeless call", proxy.hopeless(1)).await.unwrap_err();
    // A busy broker may need longer to take the last attempt than that is patient.
    let is_known = matches!(
        error,
        MessagingError::TimedOut { attempts: 3, .. } | MessagingError::Unreachable { .. }
    );
    assert!(is_known, "{error}");
    assert!(start.elapsed() >= Duration::from_millis(900));
    let begun = |done: &Done| done.operations.clone();
    let operations =
        begun(&service.tally.until("it began", |done| !done.operations.is_empty()).await);
    assert!(operations.iter().all(|operation| *operation == operations[0]));
    // Nobody is remembered as waiting.
    assert!(proxy.hopeless(2).await.is_err());
}

pub(super) async fn a_lost_answer_is_asked_for_again_and_the_effect_is_one(fixture: &dyn Fixture) {
    let service = Service::new("lost");
    // It does the work, records the result, and never answers the first three times.
    let results = super::world::DiesAfterRecording {
        results: Arc::clone(&service.results),
        tally: Arc::clone(&service.tally),
        deaths: 3.into(),
    };
    let options = crate::ServeOptions { results: Arc::new(results), ..service.options() };
    let _instance = service.numbered(fixture, 0, diligent, options).await;
    let client = asking(fixture).await;
    let operation = client.new_operation();
    let proxy = service.proxy(&client).doing(operation);
    assert_eq!(proxy.work(7).await.unwrap(), 0);
    // Another program of the same caller asks for the same operation.
    let restarted = asking(fixture).await;
    assert_eq!(service.proxy(&restarted).doing(operation).work(7).await.unwrap(), 0);
    let done = service.tally.done();
    assert_eq!(done.missed, 3);
    assert_each_once(&done, [7]);
    assert_eq!(service.proxy(&client).work(8).await.unwrap(), 1);
}

pub(super) async fn no_more_is_under_way_than_was_allowed(fixture: &dyn Fixture) {
    let service = Service::new("bounded");
    let _instance = service.instance(fixture, diligent).await;
    let client = asking(fixture).await;
    let calls = (0..300).map(|number| {
        let proxy: LabourProxy = service.proxy(&client);
        tokio::spawn(async move { proxy.work(number).await })
    });
    for call in calls.collect::<Vec<_>>() {
        call.await.unwrap().unwrap();
    }
    let done = service.tally.done();
    assert_each_once(&done, 0..300);
    assert!(done.under_way_max <= 4, "{} were under way", done.under_way_max);
}
