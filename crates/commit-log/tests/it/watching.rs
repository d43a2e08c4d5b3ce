//! A subscription over passive stores in virtual time: how soon it hears, what it asks, and what stores that tell it wrong do to it.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use commit_log::serverless::group::{ConstantMembership, Group};
use commit_log::serverless::slot_log::Means;
use commit_log::{CommitLog, EntryStream, SlotCommitLog};
use futures_util::StreamExt;
use model::Head;
use storage::{ObjectEntry, ObjectKey, ObjectStore, PutMode, PutOutcome, Result, Waited};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use super::slot_log::{commit, genesis};
use super::stores::{TestRandom, TokioClock, numbered};

const HOUR: Duration = Duration::from_secs(3600);

/// How a store takes it when somebody waits for news.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// It says whether the object is there.
    Honest,
    /// It was set back: of the log it shows nothing.
    Backward,
    /// It says all the time that something came.
    Wolf,
    /// It can be waited at.
    Attentive,
    /// It lets others wait and never says anything.
    Deaf,
    /// It never answers such a question.
    Silent,
}

/// A store of which it is counted what it is asked.
#[derive(Debug)]
struct Asked {
    store: Arc<dyn ObjectStore>,
    manner: Manner,
    news: Arc<Notify>,
    asked: AtomicU32,
}

impl Asked {
    fn count(&self) {
        self.asked.fetch_add(1, Ordering::Relaxed);
    }

    async fn is_there(&self, key: &ObjectKey) -> Result<bool> {
        Ok(self.store.size(key).await?.is_some())
    }
}

#[async_trait]
impl ObjectStore for Asked {
    fn describe(&self) -> String {
        self.store.describe()
    }

    async fn put(&self, key: &ObjectKey, bytes: Bytes, mode: PutMode) -> Result<PutOutcome> {
        self.count();
        let outcome = self.store.put(key, bytes, mode).await;
        self.news.notify_waiters();
        outcome
    }

    async fn get(&self, key: &ObjectKey) -> Result<Option<Bytes>> {
        self.count();
        match (self.manner, key.as_log_slot()) {
            (Manner::Backward, Some(_)) => Ok(None),
            _ => self.store.get(key).await,
        }
    }

    async fn get_range(&self, key: &ObjectKey, range: Range<u64>) -> Result<Option<Bytes>> {
        self.count();
        self.store.get_range(key, range).await
    }

    async fn size(&self, key: &ObjectKey) -> Result<Option<u64>> {
        self.count();
        self.store.size(key).await
    }

    async fn list(
        &self,
        prefix: &str,
        start_after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ObjectEntry>> {
        self.count();
        self.store.list(prefix, start_after, limit).await
    }

    async fn delete(&self, key: &ObjectKey) -> Result<()> {
        self.count();
        self.store.delete(key).await
    }

    async fn wait_for(&self, key: &ObjectKey, patience: Duration) -> Result<Waited> {
        self.count();
        match self.manner {
            Manner::Honest if self.is_there(key).await? => Ok(Waited::Come),
            Manner::Honest | Manner::Backward => Ok(Waited::Unable),
            Manner::Wolf => Ok(Waited::Come),
            Manner::Silent => std::future::pending().await,
            Manner::Deaf => {
                tokio::time::sleep(patience).await;
                Ok(Waited::InVain)
            }
            Manner::Attentive => {
                let come = async {
                    loop {
                        let news = self.news.notified();
                        if self.is_there(key).await? {
                            return Ok(Waited::Come);
                        }
                        news.await;
                    }
                };
                timeout(patience, come).await.unwrap_or(Ok(Waited::InVain))
            }
        }
    }
}

/// One device that writes, and one that watches stores of these manners.
struct Room {
    writer: SlotCommitLog,
    watcher: SlotCommitLog,
    watched: Vec<Arc<Asked>>,
    clock: Arc<TokioClock>,
    stream: EntryStream,
    head: Head,
}

impl Room {
    async fn new(manners: &[Manner]) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let clock = Arc::new(TokioClock::default());
        let asked = |store: usize, manner: Manner, news: Arc<Notify>| {
            let store = storage::open(&format!("memory:watching {number} {store}"));
            let store = store.expect("opens");
            Arc::new(Asked { store, manner, news, asked: AtomicU32::new(0) })
        };
        let log = |stores: &[Arc<Asked>], seed| {
            let stores = stores.iter().map(|store| store.clone() as Arc<dyn ObjectStore>);
            let group = Group::new(numbered(stores));
            let random = Arc::new(TestRandom::new(seed));
            let means = Means { clock: clock.clone(), random };
            SlotCommitLog::over(Arc::new(ConstantMembership::new(group)), means, genesis())
        };
        let news: Vec<Arc<Notify>> = manners.iter().map(|_| Arc::default()).collect();
        let written: Vec<Arc<Asked>> = (0..manners.len())
            .map(|store| asked(store, Manner::Honest, news[store].clone()))
            .collect();
        let watched: Vec<Arc<Asked>> = (0..manners.len())
            .map(|store| asked(store, manners[store], news[store].clone()))
            .collect();
        let (writer, watcher) = (log(&written, 1), log(&watched, 2));
        let head = genesis().head();
        let stream = watcher.subscribe(0).await.expect("subscribes");
        let mut room = Self { writer, watcher, watched, clock, stream, head };
        room.commit(1).await;
        room.hear(HOUR).await;
        room
    }

    /// Puts something into the log, behind the back of the watcher.
    async fn commit(&mut self, op: u8) {
        self.head = self.writer.commit(&commit(1, op, self.head)).await.expect("commits");
        self.writer.settle().await;
    }

    /// Lets the time pass; nothing is heard. Returns how often each store was asked meanwhile.
    async fn be_quiet(&mut self, time: Duration) -> Vec<u32> {
        self.watched.iter().for_each(|store| store.asked.store(0, Ordering::Relaxed));
        timeout(time, self.stream.next()).await.expect_err("nothing was said");
        self.watched.iter().map(|store| store.asked.load(Ordering::Relaxed)).collect()
    }

    /// Returns how long it takes until the newest entry is heard, which takes at most so long.
    async fn hear(&mut self, at_most: Duration) -> Duration {
        let start = Instant::now();
        let heard = timeout(at_most, self.stream.next()).await.expect("not too late");
        assert_eq!(heard.expect("no end").expect("an entry").head(), self.head);
        start.elapsed()
    }
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[tokio::test(start_paused = true)]
async fn quiet_stores_are_hardly_asked_and_news_is_heard_within_half_a_minute() {
    let mut room = Room::new(&[Manner::Honest; 3]).await;
    for op in 2..12 {
        let asked = room.be_quiet(HOUR).await;
        assert!(asked.iter().all(|asked| (40..70).contains(asked)), "{asked:?}");
        room.commit(op).await;
        room.hear(seconds(30)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn news_that_follows_news_is_heard_within_seconds() {
    let mut room = Room::new(&[Manner::Honest; 3]).await;
    for op in 2..40 {
        room.be_quiet(seconds(u64::from(op))).await;
        room.commit(op).await;
        room.hear(seconds(5)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn one_store_that_was_set_back_or_says_nothing_delays_news_by_one_turn() {
    for manner in [Manner::Backward, Manner::Silent, Manner::Deaf] {
        let mut room = Room::new(&[Manner::Honest, manner, Manner::Honest]).await;
        for op in 2..8 {
            room.be_quiet(HOUR / 2).await;
            room.commit(op).await;
            // Two pauses of half a minute; and ten seconds more until nobody waits for an answer any longer.
            room.hear(seconds(70)).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn stores_that_cry_wolf_cost_one_look_at_a_majority_in_a_minute_and_hide_nothing_for_long() {
    for manners in [[Manner::Honest, Manner::Wolf, Manner::Honest], [Manner::Wolf; 3]] {
        let mut room = Room::new(&manners).await;
        let asked = room.be_quiet(HOUR).await;
        assert!(asked.iter().all(|asked| *asked < 250), "{asked:?}");
        room.commit(2).await;
        room.hear(seconds(90)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn store_that_can_be_waited_at_tells_at_once_and_is_hardly_asked() {
    let mut room = Room::new(&[Manner::Attentive; 3]).await;
    let asked = room.be_quiet(HOUR).await;
    assert!(asked.iter().all(|asked| *asked < 30), "{asked:?}");
    room.commit(2).await;
    assert_eq!(room.hear(HOUR).await, Duration::ZERO);
    let mut room = Room::new(&[Manner::Honest, Manner::Honest, Manner::Attentive]).await;
    let asked = room.be_quiet(HOUR).await;
    assert!(asked[0] < 100 && asked[1] < 100 && asked[2] < 30, "{asked:?}");
    room.commit(2).await;
    assert_eq!(room.hear(HOUR).await, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn whatever_all_stores_say_a_majority_is_asked_every_quarter_of_an_hour() {
    let mut room = Room::new(&[Manner::Deaf; 3]).await;
    let asked = room.be_quiet(HOUR).await;
    assert!(asked.iter().all(|asked| *asked < 30), "{asked:?}");
    room.commit(2).await;
    room.hear(HOUR / 4).await;
}

#[tokio::test(start_paused = true)]
async fn what_this_device_commits_is_heard_without_asking_in_turn() {
    let mut room = Room::new(&[Manner::Deaf; 3]).await;
    room.be_quiet(HOUR / 6).await;
    room.head = room.watcher.commit(&commit(2, 2, room.head)).await.expect("commits");
    assert_eq!(room.hear(HOUR).await, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn computer_that_has_slept_looks_within_ten_seconds() {
    let mut room = Room::new(&[Manner::Deaf; 3]).await;
    room.be_quiet(HOUR / 6).await;
    room.commit(2).await;
    room.clock.sleep_as_computer(8 * 3600);
    room.hear(seconds(10)).await;
}
