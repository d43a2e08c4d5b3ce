//! Waits for the entries to come: looks at one store after the other, waits where a store can be waited at, and asks a majority
//! once one of them says that something has come.
//!
//! *Invariants*: an entry is given out only after the stores were asked as every reader asks them, so that what single stores say only
//! decides when. Every store is in turn or waited at; a majority is asked now and then whatever they say.
//! The specification is `docs/design/watching.md`.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, Either, FutureExt, select};
use futures_util::stream::{FuturesUnordered, StreamExt};
use model::Entry;
use storage::{ObjectKey, StorageError, Waited};

use super::lookout::Lookout;
use super::slots::{Found, Slots};
use crate::commit_log::CommitLogError;
use crate::serverless::group::Group;

/// How often a slot that may be filled is looked at before it is finished: mostly its proposer does.
const LOOKS_BEFORE_FINISHING: u32 = 6;

/// How long to wait between looks at a slot that may be filled, at first and at most.
const UNDECIDED_FIRST: Duration = Duration::from_millis(50);
const UNDECIDED_LAST: Duration = Duration::from_secs(5);

/// How long one store may take to say whether something has come, before the next is asked.
const GLANCE_MAX: Duration = Duration::from_secs(10);

/// How long a store is waited at in one go, and how much longer it may take to say that nothing came.
const WAIT: Duration = Duration::from_secs(300);
const WAIT_MORE: Duration = Duration::from_secs(30);

/// A wait that ends earlier in vain is no wait: its store is asked in turn.
const WAIT_LEAST: Duration = Duration::from_secs(10);

/// The time of the wall is compared with the time that has passed so often; who has slept sees a difference.
const SLEEP_LOOK: Duration = Duration::from_secs(10);
const SLEEP_LEAST: Duration = Duration::from_secs(10);

/// The entries after one, as they come.
#[derive(Debug)]
pub(super) struct Subscription {
    slots: Arc<Slots>,
    last: u64,
    lookout: Lookout,
    /// The group that was waited at last, and the names of those that can be.
    group: Option<Arc<Group>>,
    waitable: BTreeSet<String>,
}

/// Why a majority is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reason {
    /// A store has said that something came.
    Alarm,
    /// Something has happened here.
    Stirred,
    /// It is time.
    Time,
}

/// What a store has said.
struct Said {
    store: usize,
    /// How long it was waited at; nothing where it was asked in turn.
    wait: Option<Duration>,
    waited: Result<Waited, StorageError>,
}

/// Questions to stores that are under way.
type Questions = FuturesUnordered<BoxFuture<'static, Said>>;

impl Subscription {
    /// Begins behind the entry `since`.
    pub(super) fn new(slots: Arc<Slots>, since: u64) -> Self {
        let lookout = Lookout::new(slots.means.clock.elapsed(), slots.salt());
        Self { slots, last: since, lookout, group: None, waitable: BTreeSet::new() }
    }

    /// Returns the next entry, once it is there.
    pub(super) async fn next(&mut self) -> Result<Entry, CommitLogError> {
        let mut undecided = 0;
        let mut reason = Reason::Time;
        loop {
            let known = self.slots.known().seq;
            let finishes = undecided >= LOOKS_BEFORE_FINISHING;
            let is_sure = match self.slots.read(self.last + 1, finishes).await {
                Ok(Found::Filled(candidate)) => {
                    self.last += 1;
                    self.lookout.take_news(self.now());
                    return Ok(candidate.entry().clone());
                }
                Err(error) if !error.is_retryable() => return Err(error),
                Ok(Found::Perhaps) => {
                    let pause = UNDECIDED_FIRST.saturating_mul(1 << undecided.min(10));
                    undecided += 1;
                    self.beside(self.slots.means.clock.sleep(pause.min(UNDECIDED_LAST))).await;
                    continue;
                }
                Ok(Found::Nothing) => true,
                Err(_) => false,
            };
            undecided = 0;
            self.slots.help().await;
            if is_sure && reason == Reason::Alarm {
                self.lookout.take_false_alarm(self.now());
            }
            reason = match is_sure {
                true => self.until_news(known).await,
                // As long as too few stores answer, only asking them all again says more.
                false => self.until_later().await,
            };
        }
    }

    fn now(&self) -> Duration {
        self.slots.means.clock.elapsed()
    }

    async fn beside<T>(&self, work: impl Future<Output = T>) -> T {
        self.slots.background.beside(work).await
    }

    async fn until_later(&mut self) -> Reason {
        let pause = self.lookout.pause(self.now(), 1);
        self.beside(self.slots.means.clock.sleep(pause)).await;
        Reason::Time
    }

    /// Waits until a majority is to be asked; `known` is the newest entry that was known before it was asked last.
    async fn until_news(&mut self, known: u64) -> Reason {
        let Ok((group, _)) = self.slots.readers_group(self.last + 1) else {
            return self.until_later().await;
        };
        let slots = self.slots.clone();
        let clock = &*slots.means.clock;
        let full_look = clock.sleep(Lookout::until_full_look(self.now(), slots.looked()));
        let here = select(slots.knows_more_than(known).boxed(), slept(clock).boxed());
        let stirred = here.map(|_| Reason::Stirred).boxed();
        let other = select(stirred, full_look.map(|()| Reason::Time).boxed());
        let questions = self.questions(&group).boxed();
        let told = select(questions, other.map(|told| told.factor_first().0).boxed());
        let reason = slots.background.beside(told).await.factor_first().0;
        if reason == Reason::Stirred {
            self.lookout.stir(self.now());
        }
        reason
    }

    /// Asks stores in turn, and waits at those that can be waited at, until one says that something came.
    async fn questions(&mut self, group: &Arc<Group>) -> Reason {
        let is_known = self.group.as_ref().is_some_and(|known| Arc::ptr_eq(known, group));
        if !is_known {
            self.group = Some(group.clone());
            self.waitable.clear();
        }
        let mut questions = Questions::new();
        let mut waited_at: BTreeSet<usize> = BTreeSet::new();
        for (store, named) in group.stores().iter().enumerate() {
            // Which of them can be waited at shows when it is tried.
            if !is_known || self.waitable.contains(&named.name) {
                waited_at.insert(store);
                questions.push(self.wait(group, store));
            }
        }
        let mut is_asking = false;
        let mut failures = 0;
        loop {
            if !is_asking && waited_at.len() < group.stores().len() {
                is_asking = true;
                questions.push(self.ask_next(group, &waited_at, failures));
            }
            let Some(Said { store, wait, waited }) = questions.next().await else { continue };
            let name = &group.stores()[store].name;
            is_asking &= wait.is_some();
            if wait.is_none() {
                failures = if waited.is_err() { failures + 1 } else { 0 };
            }
            let is_waited_for = match (&waited, wait) {
                (Ok(Waited::InVain), Some(lasted)) => lasted >= WAIT_LEAST,
                (Ok(Waited::InVain), None) => true,
                _ => false,
            };
            match waited {
                Ok(Waited::Come) if self.lookout.heeds(self.now()) => return Reason::Alarm,
                Ok(Waited::Unable) => {
                    self.waitable.remove(name);
                }
                Ok(Waited::Come | Waited::InVain) | Err(_) => {}
            }
            if is_waited_for {
                self.waitable.insert(name.clone());
                waited_at.insert(store);
                questions.push(self.wait(group, store));
            } else {
                waited_at.remove(&store);
            }
        }
    }

    /// Asks the store whose turn it is, after a pause; at once where the one before it has failed.
    fn ask_next(
        &mut self,
        group: &Group,
        waited_at: &BTreeSet<usize>,
        failures: usize,
    ) -> BoxFuture<'static, Said> {
        let count = group.stores().len();
        let in_turn = count - waited_at.len();
        let pause = self.lookout.pause(self.now(), in_turn);
        let pause = if !failures.is_multiple_of(in_turn) { Duration::ZERO } else { pause };
        let store = self.lookout.turn(count, |store| !waited_at.contains(&store));
        let store = store.expect("it was counted that one is not waited at");
        self.question(group, store, pause, None)
    }

    fn wait(&self, group: &Group, store: usize) -> BoxFuture<'static, Said> {
        self.question(group, store, Duration::ZERO, Some(WAIT))
    }

    fn question(
        &self,
        group: &Group,
        store: usize,
        pause: Duration,
        wait: Option<Duration>,
    ) -> BoxFuture<'static, Said> {
        let key = ObjectKey::log_slot(self.last + 1, 0);
        let asked = group.stores()[store].store.clone();
        let clock = self.slots.means.clock.clone();
        let is_tried = self.waitable.contains(&group.stores()[store].name);
        async move {
            clock.sleep(pause).await;
            let began = clock.elapsed();
            let limit = clock.sleep(wait.map_or(GLANCE_MAX, |wait| wait + WAIT_MORE));
            let answer = async {
                match (is_tried, wait) {
                    (true, Some(wait)) => asked.wait_for(&key, wait).await,
                    (false, Some(wait)) => match asked.wait_for(&key, Duration::ZERO).await? {
                        Waited::InVain => asked.wait_for(&key, wait).await,
                        looked => Ok(looked),
                    },
                    (_, None) => asked.wait_for(&key, Duration::ZERO).await,
                }
            }
            .boxed();
            let waited = match select(answer, limit).await {
                Either::Left((waited, _)) => waited,
                Either::Right(_) => Err(StorageError::NotReachable {
                    store: asked.describe(),
                    detail: "it does not say whether something has come".to_owned(),
                }),
            };
            let wait = wait.map(|_| clock.elapsed().saturating_sub(began));
            Said { store, wait, waited }
        }
        .boxed()
    }
}

/// Ends when the computer has slept: then the time of the wall has gone on, and the time since the start has not.
async fn slept(clock: &dyn model::Clock) {
    loop {
        let (elapsed, wall) = (clock.elapsed(), clock.now().seconds);
        clock.sleep(SLEEP_LOOK).await;
        let elapsed = clock.elapsed().saturating_sub(elapsed) + SLEEP_LEAST;
        let wall = u64::try_from(clock.now().seconds.saturating_sub(wall)).unwrap_or(0);
        if Duration::from_secs(wall) > elapsed {
            return;
        }
    }
}
