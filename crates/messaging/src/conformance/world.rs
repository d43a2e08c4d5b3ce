//! Clock, dice, a service that notes what it does, and the messengers of a case.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use model::environment::Random;
use model::{Clock, Timestamp};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::Fixture;
use crate::error::Fault;
use crate::interface::Context;
use crate::messenger::{Messenger, MessengerOptions, ServeOptions, Serving};
use crate::names::{InstanceId, Name, OperationId};
use crate::results::{Operation, RememberedResults, ResultStore, Work};
use crate::transport::Transport;

/// How long a test waits for what must happen.
const PATIENCE: Duration = Duration::from_secs(120);

/// Waits for work, and fails with its name when it takes too many seconds.
pub async fn within<T>(seconds: u64, what: &str, work: impl Future<Output = T>) -> T {
    match tokio::time::timeout(Duration::from_secs(seconds), work).await {
        Ok(done) => done,
        Err(_) => panic!("'{what}' is not over after {seconds} s"),
    }
}

/// The time of the machine and of its runtime.
#[derive(Debug)]
pub struct RealClock(tokio::time::Instant);

impl Default for RealClock {
    fn default() -> Self {
        Self(tokio::time::Instant::now())
    }
}

impl Clock for RealClock {
    #[expect(clippy::disallowed_methods, reason = "these tests run in real time")]
    fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let since = since.unwrap_or_default();
        let seconds = i64::try_from(since.as_secs()).unwrap();
        Timestamp { seconds, nanoseconds: since.subsec_nanos() }
    }

    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(tokio::time::sleep(duration))
    }
}

/// Numbers that no two runs share.
#[derive(Debug)]
pub struct Dice(AtomicU64);

impl Default for Dice {
    fn default() -> Self {
        let seed = std::collections::hash_map::RandomState::new();
        Self(AtomicU64::new(std::hash::BuildHasher::hash_one(&seed, 0)))
    }
}

impl Random for Dice {
    fn fill(&self, bytes: &mut [u8]) {
        for part in bytes.chunks_mut(8) {
            // SplitMix64.
            let mut state = self.0.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
            state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            let number = (state ^ (state >> 31)).to_le_bytes();
            part.copy_from_slice(&number[..part.len()]);
        }
    }
}

/// Makes a name that no other case has.
pub fn fresh_name(start: &str) -> Name {
    let id = InstanceId::random(&Dice::default());
    Name::new(&format!("{start}.{}", &id.to_string()[..16])).unwrap()
}

/// Starts a messenger.
pub async fn messenger(transport: Arc<dyn Transport>, options: MessengerOptions) -> Messenger {
    let clock = Arc::new(RealClock::default());
    within(120, "starting a messenger", async {
        loop {
            let (transport, clock) = (Arc::clone(&transport), Arc::clone(&clock));
            let dice = Arc::new(Dice::default());
            match Messenger::start(transport, Arc::clone(&clock) as _, dice, options.clone()).await
            {
                Ok(messenger) => return messenger,
                Err(error) if error.is_retryable() => clock.sleep(Duration::from_millis(50)).await,
                Err(error) => panic!("a messenger does not start: {error}"),
            }
        }
    })
    .await
}

/// Starts a messenger that asks.
pub async fn asking(fixture: &dyn Fixture) -> Messenger {
    messenger(fixture.client().await, MessengerOptions::default()).await
}

crate::interface! {
    /// What the cases ask for.
    #[interface(name = "labour", version = 3, proxy = LabourProxy, dispatcher = LabourDispatcher)]
    pub trait Labour {
        /// Returns the text, in capitals.
        #[call(timeout_ms = 10_000, retries = 1)]
        async fn shout(&self, text: String) -> String;
        /// Does something that is to be done once, and returns how often anything was done before.
        #[call(timeout_ms = 2_000, retries = 9)]
        async fn work(&self, number: u64) -> u64;
        /// Asks for what is never answered.
        #[call(timeout_ms = 300, retries = 2)]
        async fn hopeless(&self, number: u64) -> u64;
        /// Does something later.
        #[cast(timeout_ms = 30_000)]
        async fn later(&self, number: u64);
        /// Does something soon or never.
        #[cast(expires_ms = 150)]
        async fn soon(&self, number: u64);
        /// Tries to leave something for later, for a short time.
        #[cast(timeout_ms = 250)]
        async fn hurried(&self, number: u64);
        /// Asks everybody.
        #[multi(timeout_ms = 1_500)]
        async fn who(&self) -> u64;
        /// Asks everybody, and two answers are enough.
        #[multi(timeout_ms = 50_000, answers_max = 2)]
        async fn any_two(&self) -> u64;
        /// Asks everybody, and eight answers are enough.
        #[multi(timeout_ms = 10_000, answers_max = 8)]
        async fn all_eight(&self, number: u64) -> u64;
        /// Tells everybody.
        #[event]
        async fn happened(&self, number: u64);
    }
}

/// What a worker does with a number.
#[derive(Debug, Clone)]
pub enum Deed {
    /// What it should.
    Do,
    /// It says no.
    Fail(Fault),
    /// It panics.
    Panic,
    /// It never ends.
    Hang,
    /// It waits until [`Done::is_released`], and then does what it should.
    Wait,
}

/// What was done, by whoever of a case.
#[derive(Debug, Default)]
pub struct Tally {
    done: Mutex<Done>,
    changed: Notify,
}

/// See [`Tally`].
#[derive(Debug, Default, Clone)]
pub struct Done {
    /// How often each number had its effect.
    pub effects: BTreeMap<u64, u32>,
    /// The numbers in the order of their effects.
    pub order: Vec<u64>,
    /// How often each was begun.
    pub begun: BTreeMap<u64, u32>,
    /// The operation of each beginning.
    pub operations: Vec<OperationId>,
    /// How many are under way.
    pub under_way: usize,
    /// How many were under way at most.
    pub under_way_max: usize,
    /// Whether those who wait may go on.
    pub is_released: bool,
    /// How often the record of an operation was asked for.
    pub asked: u32,
    /// How often somebody heard of missed events, or died.
    pub missed: u32,
}

impl Tally {
    /// Changes what was done.
    pub fn note(&self, change: impl FnOnce(&mut Done)) {
        change(&mut self.done.lock());
        self.changed.notify_waiters();
    }

    /// Returns what was done.
    pub fn done(&self) -> Done {
        self.done.lock().clone()
    }

    /// Waits until what was done is enough.
    pub async fn until(&self, what: &str, is_enough: impl Fn(&Done) -> bool) -> Done {
        let waiting = async {
            loop {
                let changed = self.changed.notified();
                tokio::pin!(changed);
                changed.as_mut().enable();
                let done = self.done();
                if is_enough(&done) {
                    return done;
                }
                changed.await;
            }
        };
        match tokio::time::timeout(PATIENCE, waiting).await {
            Ok(done) => done,
            Err(_) => {
                let done = self.done();
                let effects = done.effects.len();
                panic!("'{what}' never happens; {effects} effects, {} missed", done.missed)
            }
        }
    }
}

/// An instance of the service of a case.
pub struct Worker {
    /// Its number among the instances.
    pub number: u64,
    /// Where it notes what it does.
    pub tally: Arc<Tally>,
    /// What it does.
    pub deed: fn(u64) -> Deed,
}

/// Counts what is under way.
struct UnderWay(Arc<Tally>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.note(|done| done.under_way -= 1);
    }
}

impl Worker {
    async fn effect(&self, context: &Context, number: u64) -> Result<u64, Fault> {
        self.tally.note(|done| {
            *done.begun.entry(number).or_default() += 1;
            done.operations.push(context.operation);
            done.under_way += 1;
            done.under_way_max = done.under_way_max.max(done.under_way);
        });
        let _under_way = UnderWay(Arc::clone(&self.tally));
        // Others get a chance to run meanwhile.
        tokio::task::yield_now().await;
        match (self.deed)(number) {
            Deed::Do => {}
            Deed::Fail(fault) => return Err(fault),
            Deed::Panic => panic!("as was asked for"),
            Deed::Hang => std::future::pending().await,
            Deed::Wait => drop(self.tally.until("the release", |done| done.is_released).await),
        }
        let mut before = 0;
        self.tally.note(|done| {
            before = u64::try_from(done.order.len()).unwrap();
            *done.effects.entry(number).or_default() += 1;
            done.order.push(number);
        });
        Ok(before)
    }
}

impl Labour for Worker {
    async fn shout(&self, _context: &Context, text: String) -> Result<String, Fault> {
        match text.as_str() {
            "panic" => panic!("as was asked for"),
            "refuse" => Err(Fault::service("no_shouting", "be quiet")),
            "" => Err(Fault::unavailable("hoarse")),
            text => Ok(text.to_uppercase()),
        }
    }

    async fn work(&self, context: &Context, number: u64) -> Result<u64, Fault> {
        self.effect(context, number).await
    }

    async fn hopeless(&self, context: &Context, number: u64) -> Result<u64, Fault> {
        self.effect(context, number).await?;
        std::future::pending().await
    }

    async fn later(&self, context: &Context, number: u64) -> Result<(), Fault> {
        self.effect(context, number).await.map(drop)
    }

    async fn soon(&self, context: &Context, number: u64) -> Result<(), Fault> {
        self.effect(context, number).await.map(drop)
    }

    async fn hurried(&self, context: &Context, number: u64) -> Result<(), Fault> {
        self.effect(context, number).await.map(drop)
    }

    async fn who(&self, _context: &Context) -> Result<u64, Fault> {
        match (self.deed)(self.number) {
            Deed::Do | Deed::Wait => Ok(self.number),
            Deed::Fail(fault) => Err(fault),
            Deed::Panic => panic!("as was asked for"),
            Deed::Hang => std::future::pending().await,
        }
    }

    async fn any_two(&self, context: &Context) -> Result<u64, Fault> {
        self.who(context).await
    }

    async fn all_eight(&self, _context: &Context, number: u64) -> Result<u64, Fault> {
        Ok(number * 100 + self.number)
    }

    async fn happened(&self, context: &Context, number: u64) -> Result<(), Fault> {
        self.effect(context, number).await.map(drop)
    }

    async fn missed(&self, _topic: &Name) {
        self.tally.note(|done| done.missed += 1);
    }
}

/// Several instances of one service, and what they do.
pub struct Service {
    /// Its name.
    pub name: Name,
    /// What it did.
    pub tally: Arc<Tally>,
    /// What its instances remember together, as a database would.
    pub results: Arc<RememberedResults>,
}

impl Service {
    /// Makes a service without instances.
    pub fn new(start: &str) -> Self {
        Self {
            name: fresh_name(start),
            tally: Arc::default(),
            results: Arc::new(RememberedResults::new(100_000, 64 << 20)),
        }
    }

    /// Returns what its instances are started with.
    pub fn options(&self) -> ServeOptions {
        let results = Arc::clone(&self.results) as Arc<dyn ResultStore>;
        ServeOptions { concurrency: 4, attempts_max: 3, results }
    }

    /// Starts an instance on a connection of its own.
    pub async fn instance(&self, fixture: &dyn Fixture, deed: fn(u64) -> Deed) -> Instance {
        self.numbered(fixture, 0, deed, self.options()).await
    }

    /// Starts an instance with a number and options.
    pub async fn numbered(
        &self,
        fixture: &dyn Fixture,
        number: u64,
        deed: fn(u64) -> Deed,
        options: ServeOptions,
    ) -> Instance {
        let messenger = messenger(fixture.server().await, MessengerOptions::default()).await;
        let worker = Worker { number, tally: Arc::clone(&self.tally), deed };
        let worker = Arc::new(LabourDispatcher(worker));
        let start = tokio::time::Instant::now();
        let serving = loop {
            match messenger.serve(&self.name, worker.clone(), options.clone()).await {
                Ok(serving) => break serving,
                Err(error) if error.is_retryable() && start.elapsed() < PATIENCE => {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                Err(error) => panic!("a service is not served: {error}"),
            }
        };
        Instance { serving, messenger }
    }

    /// Makes a proxy for it.
    pub fn proxy(&self, messenger: &Messenger) -> LabourProxy {
        LabourProxy::at(Arc::new(messenger.clone()), self.name.clone())
    }
}

/// One instance of a service. Dropping it is its sudden death.
pub struct Instance {
    /// Its work.
    pub serving: Serving,
    /// Its end of the transport.
    pub messenger: Messenger,
}

/// Records results as it should, and then dies before anybody hears of it, so many times.
#[derive(Debug)]
pub struct DiesAfterRecording {
    /// What is asked first.
    pub results: Arc<RememberedResults>,
    /// Hears when it happens.
    pub tally: Arc<Tally>,
    /// How often it still happens.
    pub deaths: AtomicU64,
}

#[async_trait]
impl ResultStore for DiesAfterRecording {
    async fn once(&self, operation: &Operation, work: Work<'_>) -> Result<Bytes, Fault> {
        let result = self.results.once(operation, work).await;
        self.tally.note(|done| done.asked += 1);
        let dies = self
            .deaths
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |deaths| deaths.checked_sub(1));
        if dies.is_ok() {
            self.tally.note(|done| done.missed += 1);
            std::future::pending::<()>().await;
        }
        result
    }
}

/// Does everything as it should.
pub fn diligent(_number: u64) -> Deed {
    Deed::Do
}

/// Asserts that each of these numbers had its effect once, and no other had one.
pub fn assert_each_once(done: &Done, numbers: impl IntoIterator<Item = u64>) {
    let expected: BTreeMap<u64, u32> = numbers.into_iter().map(|number| (number, 1)).collect();
    assert!(
        done.effects == expected,
        "effects differ: {:?}",
        differences(&done.effects, &expected)
    );
}

fn differences<T: Debug + PartialEq>(
    found: &BTreeMap<u64, T>,
    expected: &BTreeMap<u64, T>,
) -> Vec<String> {
    let keys: std::collections::BTreeSet<_> = found.keys().chain(expected.keys()).collect();
    let differing = keys.into_iter().filter(|key| found.get(key) != expected.get(key));
    let say = |key: &u64| format!("{key}: {:?} not {:?}", found.get(key), expected.get(key));
    differing.take(10).map(say).collect()
}
