//! Emulated clouds in virtual time, where a figure is the same in every run.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{join_all, select};
use storage::{ObjectKey, ObjectStore, PutMode, PutOutcome};
use testkit::clock::{DeviceClock, VirtualTime};
use testkit::clouds::requests::{Request, Requests, round_trips};
use testkit::clouds::services::{Direction, Region, Service, figure_10, loopback, table_4};
use testkit::clouds::{Cloud, CloudStore, Jitter};
use testkit::executor::Executor;
use testkit::random::Dice;
use testkit::record::Record;

/// Runs `work` over one service and returns what it took, and what was asked.
fn over<F: Future<Output = ()> + 'static>(
    service: Service,
    jitter: Jitter,
    work: impl FnOnce(Arc<CloudStore>) -> F,
) -> (Duration, Vec<Request>) {
    let time = VirtualTime::default();
    let clock = Arc::new(DeviceClock::new(time.clone(), 0));
    let requests = Requests::default();
    let store = Arc::new(Cloud::new(service).connect(clock, requests.clone(), jitter));
    let mut executor = Executor::new(time.clone(), Dice::new(1), Record::new(false));
    executor.block_on(work(store)).expect("it comes to an end");
    (time.now(), requests.take())
}

fn service(name: &str) -> Service {
    let services = table_4(Region::UnitedStates);
    services.into_iter().find(|service| service.name == name).expect("it stands in the table")
}

fn key(number: u64) -> ObjectKey {
    ObjectKey::log_slot(number, 0)
}

fn bytes(length: usize) -> Bytes {
    vec![7; length].into()
}

async fn put(store: &CloudStore, number: u64, length: usize) -> PutOutcome {
    store.put(&key(number), bytes(length), PutMode::IfAbsent).await.expect("it is stored")
}

fn assert_close(found: Duration, seconds: f64) {
    assert!((found.as_secs_f64() - seconds).abs() < 0.005, "{found:?} is not {seconds} s");
}

#[test]
fn requests_take_the_times_of_table_4() {
    let (took, asked) = over(service("Dropbox"), Jitter::none(), async |store| {
        put(&store, 1, 1_000).await;
    });
    assert_close(took, 1.0 / 1.2);
    assert_eq!((asked.len(), asked[0].sent, asked[0].answered), (1, 1_000, Some(took)));
    let (took, asked) = over(service("Google"), Jitter::none(), async |store| {
        put(&store, 1, 10_000_000).await;
        let found = store.get(&key(1)).await.expect("it answers").expect("it is there");
        assert_eq!(found.len(), 10_000_000);
    });
    // Up with 5.80 MB/s, down with 5.50 MB/s.
    assert_close(took, 10.0 / 5.8 + 10.0 / 5.5);
    assert_eq!(round_trips(&asked, took), 2);
}

#[test]
fn requests_side_by_side_share_the_rate_and_the_latency_once() {
    let rate = 4_000_000.0;
    let direction = Direction::steady(Duration::from_secs(1), rate);
    let service = Service { name: "even", up: direction, down: direction, connections: 8 };
    let (took, asked) = over(service, Jitter::none(), async move |store| {
        join_all((1..=8).map(|number| put(&store, number, 1_000_000))).await;
    });
    assert_close(took, 1.0 + 8_000_000.0 / rate);
    assert_eq!(round_trips(&asked, took), 1);
}

#[test]
fn more_requests_than_connections_wait_for_their_turn() {
    let direction = Direction::steady(Duration::from_secs(1), 1e9);
    let service = Service { name: "even", up: direction, down: direction, connections: 2 };
    let (took, _) = over(service, Jitter::none(), async |store| {
        join_all((1..=6).map(|number| put(&store, number, 10))).await;
    });
    assert_close(took, 3.0);
}

#[test]
fn body_that_is_given_up_leaves_the_line_to_others() {
    let line = Direction::steady(Duration::from_millis(1), 1e6);
    let service = Service { name: "line", up: line, down: line, connections: 8 };
    let (took, _) = over(service, Jitter::none(), async |store| {
        {
            // Half of it has gone when the other one is done.
            let given_up = Box::pin(put(&store, 1, 2_000_000));
            select(given_up, Box::pin(put(&store, 2, 500_000))).await;
        }
        put(&store, 3, 1_000_000).await;
        assert_eq!(store.get(&key(1)).await.expect("it answers"), None);
    });
    assert_close(took, 0.5 + 0.5 + 1.0 + 0.003);
}

#[test]
fn of_two_devices_that_create_one_object_the_faster_one_wins() {
    let time = VirtualTime::default();
    let clock = Arc::new(DeviceClock::new(time.clone(), 0));
    let cloud = Cloud::new(service("Box"));
    let connect = |jitter| cloud.connect(clock.clone(), Requests::default(), jitter);
    let (one, other) = (connect(Jitter::none()), connect(Jitter::none()));
    let later = time.clone();
    let mut executor = Executor::new(time, Dice::new(1), Record::new(false));
    let outcomes = executor.block_on(async move {
        let late = async {
            later.sleep(Duration::from_millis(10)).await;
            put(&other, 1, 20).await
        };
        tokio::join!(put(&one, 1, 10), late)
    });
    assert_eq!(outcomes, Ok((PutOutcome::Written, PutOutcome::Exists)));
}

#[test]
fn jitter_is_a_function_of_the_seed_and_keeps_the_mean() {
    let hundred = |seed| {
        let jitter = Jitter::new(Dice::new(seed), 0.15);
        over(service("Dropbox"), jitter, async |store| {
            for number in 1..=100 {
                put(&store, number, 100).await;
            }
        })
    };
    assert_eq!(hundred(1), hundred(1));
    assert_ne!(hundred(1).0, hundred(2).0);
    let mean = hundred(3).0.as_secs_f64() / 100.0;
    assert!((mean * 1.2 - 1.0).abs() < 0.05, "{mean}");
}

#[test]
fn services_of_other_figures_are_as_fast_as_they_say() {
    let (took, _) = over(loopback("here"), Jitter::none(), async |store| {
        put(&store, 1, 10).await;
    });
    assert!(took < Duration::from_millis(1));
    let dropbox = figure_10()[0];
    let (took, _) = over(dropbox, Jitter::none(), async |store| {
        put(&store, 1, 50_000_000).await;
        store.get(&key(1)).await.expect("it answers");
    });
    let up = table_4(Region::UnitedStates)[2].up;
    let up = (up.latency() + up.alone(50_000_000)).as_secs_f64();
    assert_close(took, up + 1.0 / 1.3 + 50.0 / 5.1);
}
