//! A store that says when it has had enough, in time that passes when everybody waits.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::{join, join_all};
use model::Timestamp;
use model::environment::Clock;
use parking_lot::Mutex;
use storage::conformance;
use storage::layers::{Answer, Gate, Operation, Paced, Paces, Retrying, Waiting};
use storage::{ObjectKey, ObjectStore, PutMode, PutOutcome, Result, StorageError};
use tokio::time::Instant;

use crate::support::{key, memory};

/// The time of the runtime, which may be paused.
#[derive(Debug)]
pub(crate) struct Paused(pub(crate) Instant);

impl Clock for Paused {
    fn now(&self) -> Timestamp {
        let seconds = i64::try_from(self.elapsed().as_secs()).unwrap();
        Timestamp { seconds, nanoseconds: self.elapsed().subsec_nanos() }
    }

    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(tokio::time::sleep(duration))
    }
}

#[async_trait]
impl Waiting for Paused {
    async fn wait(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }

    fn random(&self) -> u64 {
        11
    }
}

/// A service that answers in 100 ms, bears so many calls at once, and is angry for a while when there are more; a call
/// that comes while it is angry makes it say so.
#[derive(Debug)]
struct Service {
    below: Arc<dyn ObjectStore>,
    clock: Arc<Paused>,
    bears: u32,
    anger: Duration,
    state: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    inside: u32,
    calls: u32,
    refusals: u32,
    /// Calls that came although the service had asked to be left alone.
    intrusions: u32,
    angry_until: Duration,
}

impl Service {
    fn new(clock: &Arc<Paused>, bears: u32, anger: Duration) -> Arc<Self> {
        let state = Mutex::default();
        Arc::new(Self { below: memory(), clock: Arc::clone(clock), bears, anger, state })
    }
}

impl Gate for Service {
    fn store(&self) -> &dyn ObjectStore {
        &*self.below
    }

    async fn pass<A: Send>(&self, _: Operation, _: usize, answer: impl Answer<A>) -> Result<A> {
        let is_too_much = {
            let mut state = self.state.lock();
            state.calls += 1;
            state.inside += 1;
            let now = self.clock.elapsed();
            let is_intrusion = now < state.angry_until;
            state.intrusions += u32::from(is_intrusion);
            is_intrusion || state.inside > self.bears
        };
        tokio::time::sleep(Duration::from_millis(if is_too_much { 1 } else { 100 })).await;
        let result = answer.await;
        let mut state = self.state.lock();
        state.inside -= 1;
        if is_too_much {
            state.refusals += 1;
            state.angry_until = self.clock.elapsed() + self.anger;
            let (store, detail) = ("service".to_owned(), "too many".to_owned());
            return Err(StorageError::Throttled { store, detail, retry_after: self.anger });
        }
        result
    }
}

fn clock() -> Arc<Paused> {
    Arc::new(Paused(Instant::now()))
}

#[tokio::test]
async fn paces_over_memory_conform() {
    let paces = Paces { calls_first: 2, calls_max: 2, ..Paces::default() };
    conformance::run(|| Arc::new(Paced::with_paces(memory(), clock(), paces))).await;
}

#[tokio::test(start_paused = true)]
async fn never_more_calls_than_allowed_are_inside_and_never_fewer_than_can_be() {
    let clock = clock();
    let service = Service::new(&clock, 3, Duration::from_secs(30));
    let paces = Paces { calls_first: 3, calls_max: 3, ..Paces::default() };
    let paced = Paced::with_paces(service.clone(), clock.clone(), paces);
    let wanted = key("a");
    for found in join_all((0..20).map(|_| paced.get(&wanted))).await {
        assert_eq!(found.unwrap(), None, "four at once are refused");
    }
    assert_eq!(clock.elapsed(), Duration::from_millis(700), "twenty calls, three at once");
}

#[tokio::test(start_paused = true)]
async fn a_named_pause_holds_for_all_calls_of_the_store() {
    let clock = clock();
    let service = Service::new(&clock, 4, Duration::from_secs(30));
    let paces = Paces { calls_first: 8, ..Paces::default() };
    let paced = Arc::new(Paced::with_paces(service.clone(), clock.clone(), paces));
    let retrying = Retrying::new(paced.clone(), clock.clone()).with_attempts_max(20);
    let names: Vec<ObjectKey> = (0..100).map(|number| key(&format!("k{number}"))).collect();
    let puts = names.iter().map(|name| retrying.put(name, "x".into(), PutMode::IfAbsent));
    for outcome in join_all(puts).await {
        assert_eq!(outcome.unwrap(), PutOutcome::Written);
    }
    let state = service.state.lock();
    assert!(state.refusals > 0, "nothing was tested");
    // Those that were inside when the pause was named could not know of it.
    assert!(state.intrusions <= 4, "{state:?}");
    assert!(clock.elapsed() >= Duration::from_secs(30));
}

#[tokio::test(start_paused = true)]
async fn the_number_of_calls_at_once_finds_what_the_store_bears() {
    let clock = clock();
    let service = Service::new(&clock, 10, Duration::from_millis(500));
    let paced = Arc::new(Paced::new(service.clone(), clock.clone()));
    assert_eq!(paced.calls_now(), 16);
    let retrying = Arc::new(Retrying::new(paced.clone(), clock.clone()).with_attempts_max(100));
    let wanted = key("a");
    service.below.put(&wanted, "x".into(), PutMode::Overwrite).await.unwrap();
    let gets = (0..2000).map(|_| retrying.get(&wanted));
    for found in join_all(gets).await {
        assert_eq!(found.unwrap().as_deref(), Some(&b"x"[..]));
    }
    let state = service.state.lock();
    assert!(state.refusals * 10 < state.calls, "most calls go well: {state:?}");
    assert!((1..=11).contains(&paced.calls_now()), "{}", paced.calls_now());
    // 2000 calls of 100 ms, ten at once, take 20 s at best; the pauses and what is felt for cost as much again.
    assert!(clock.elapsed() < Duration::from_secs(60), "{:?}", clock.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_pause_beyond_patience_fails_at_once_and_says_how_long() {
    let clock = clock();
    let service = Service::new(&clock, 0, Duration::from_secs(3600));
    let paced = Paced::new(service.clone(), clock.clone());
    assert!(paced.get(&key("a")).await.unwrap_err().retry_after().is_some());
    let before = clock.elapsed();
    let error = paced.get(&key("a")).await.unwrap_err();
    assert_eq!(error.retry_after(), Some(Duration::from_secs(3600)));
    assert!(error.is_retryable() && error.to_string().contains("3600 s"), "{error}");
    assert_eq!((clock.elapsed(), service.state.lock().calls), (before, 1));
    let retrying = Retrying::new(Arc::new(paced), clock.clone());
    assert!(retrying.get(&key("a")).await.is_err());
    assert_eq!(clock.elapsed(), before, "nobody waits for an hour");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_given_up_in_a_pause_leaves_its_place_to_others() {
    let clock = clock();
    let service = Service::new(&clock, 0, Duration::from_secs(1));
    let paces = Paces { calls_first: 1, calls_max: 1, ..Paces::default() };
    let paced = Paced::with_paces(service.clone(), clock.clone(), paces);
    let wanted = key("a");
    let (first, mut third) = (paced.get(&wanted), paced.get(&wanted));
    {
        let second = paced.get(&wanted);
        let waiting = tokio::time::timeout(Duration::from_millis(10), join(second, &mut third));
        let (refused, given_up) = join(first, waiting).await;
        assert!(
            refused.is_err() && given_up.is_err(),
            "the second was woken, and waits the pause out"
        );
    }
    let answer = tokio::time::timeout(Duration::from_secs(60), third).await;
    assert!(answer.expect("its turn comes").unwrap_err().retry_after().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_given_up_leaves_its_place_to_others() {
    let clock = clock();
    let service = Service::new(&clock, 100, Duration::ZERO);
    let paces = Paces { calls_first: 1, calls_max: 1, ..Paces::default() };
    let paced = Paced::with_paces(service.clone(), clock.clone(), paces);
    let short = Duration::from_millis(10);
    for _ in 0..5 {
        assert!(tokio::time::timeout(short, paced.get(&key("a"))).await.is_err());
    }
    let (wanted, other) = (key("a"), key("b"));
    let (first, mut second) = (paced.get(&wanted), Box::pin(paced.get(&other)));
    assert!(tokio::time::timeout(short, &mut second).await.is_err());
    assert!(tokio::time::timeout(short, first).await.is_err(), "one at a time");
    assert_eq!(second.await.unwrap(), None);
}
