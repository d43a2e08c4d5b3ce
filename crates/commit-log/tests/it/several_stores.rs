//! The log over several stores, some of which fail.

use std::sync::Arc;
use std::time::Duration;

use commit_log::conformance::{Fixture, cases};
use commit_log::serverless::candidate::Context;
use commit_log::serverless::certifier::Ed25519Certifier;
use commit_log::serverless::group::{ConstantMembership, Group, Membership};
use commit_log::serverless::rounds::{FaultModel, Message, ProposerId};
use commit_log::serverless::slot_log::Means;
use commit_log::{CommitLog, SlotCommitLog};
use futures_util::StreamExt;
use futures_util::future::join_all;
use model::{DeviceId, Entry};
use parking_lot::Mutex;
use storage::{ObjectKey, ObjectStore, PutMode};

use super::slot_log::{commit, genesis};
use super::stores::{Counting, Liar, TestRandom, TokioClock, Trouble, Troubled, numbered};

/// A group of stores, each perhaps in trouble.
#[derive(Debug, Clone)]
pub(crate) struct Stores {
    pub(crate) all: Vec<Arc<dyn ObjectStore>>,
    random: Arc<TestRandom>,
    model: FaultModel,
}

impl Stores {
    pub(crate) fn new(name: &str, count: usize) -> Self {
        let open = |number| storage::open(&format!("memory:{name} {number}")).expect("opens");
        Self {
            all: (0..count).map(open).collect(),
            random: Arc::new(TestRandom::new(1)),
            model: FaultModel::Crash,
        }
    }

    pub(crate) fn with_trouble(mut self, numbers: &[usize], trouble: Trouble) -> Self {
        for number in numbers {
            self.all[*number] = Arc::new(Troubled::new(self.all[*number].clone(), trouble));
        }
        self
    }

    /// The stores as a device reaches them that answer all of them at another pace: each device is quickest at another store.
    fn slowed_for(&self, device: usize) -> Self {
        let count = self.all.len();
        let pace = |store: usize| 70 + 30 * ((store + device) % count) as u64;
        (0..count).fold(self.clone(), |stores, store| {
            stores.with_trouble(&[store], Trouble::Slow(Duration::from_millis(pace(store))))
        })
    }

    /// Counts from now on what is asked.
    fn counted(mut self) -> (Self, Vec<Arc<Counting>>) {
        let counting: Vec<_> =
            self.all.into_iter().map(|store| Arc::new(Counting::new(store))).collect();
        self.all = counting.iter().map(|store| store.clone() as Arc<dyn ObjectStore>).collect();
        (self, counting)
    }

    fn group(&self) -> Group {
        let named = numbered(self.all.iter().cloned());
        match self.model {
            FaultModel::Crash => Group::new(named),
            FaultModel::Byzantine => {
                let certifier = Ed25519Certifier::new(&[1; 32], Vec::new());
                Group::with_liars(named, Arc::new(certifier))
            }
        }
    }

    fn means(&self) -> Means {
        Means { clock: Arc::new(TokioClock::default()), random: self.random.clone() }
    }

    pub(crate) fn log(&self) -> SlotCommitLog {
        let membership = Arc::new(ConstantMembership::new(self.group()));
        SlotCommitLog::over(membership, self.means(), genesis())
    }
}

#[async_trait::async_trait]
impl Fixture for Stores {
    async fn open(&self, _: u8) -> Arc<dyn CommitLog> {
        let membership = Arc::new(ConstantMembership::new(self.group()));
        let log = SlotCommitLog::create_over(membership, self.means(), genesis()).await;
        Arc::new(log.expect("the log opens"))
    }

    fn device(&self, number: u8) -> DeviceId {
        DeviceId::from_bytes([number; 16])
    }
}

#[tokio::test(start_paused = true)]
async fn log_over_any_number_of_stores_conforms() {
    for count in 2..6 {
        for (name, case) in cases() {
            println!("{count} stores: {name}");
            case(&Stores::new(&format!("{count} {name}"), count)).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn log_conforms_while_as_many_stores_fail_as_may() {
    let troubles =
        [Trouble::Failing, Trouble::Silent, Trouble::ReadOnly, Trouble::Full, Trouble::Forgetful];
    for (count, failing) in [(3, vec![0]), (3, vec![2]), (5, vec![1, 4])] {
        for trouble in troubles {
            for (name, case) in cases() {
                println!("{failing:?} of {count} stores {trouble:?}: {name}");
                let name = format!("{count} {failing:?} {trouble:?} {name}");
                case(&Stores::new(&name, count).with_trouble(&failing, trouble)).await;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn too_few_stores_are_a_retryable_error_that_names_them() {
    for trouble in [Trouble::Failing, Trouble::Silent, Trouble::ReadOnly, Trouble::Full] {
        let stores = Stores::new(&format!("few {trouble:?}"), 3).with_trouble(&[0, 1], trouble);
        let log = stores.log();
        let error = log.commit(&commit(1, 1, genesis().head())).await.expect_err("too few");
        assert!(error.is_retryable(), "{error}");
        let text = error.to_string();
        for part in ["2 of 3 stores", "store 0: ", "store 1: "] {
            assert!(text.contains(part), "{text}");
        }
        assert!(!text.contains("store 2"), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn five_proposers_at_once_all_get_in() {
    for count in [3, 4, 5] {
        let stores = Stores::new(&format!("five at {count}"), count);
        let logs: Vec<SlotCommitLog> = (0..5).map(|_| stores.log()).collect();
        let proposals = logs.iter().zip(0_u8..).map(|(log, device)| async move {
            let mut seqs = Vec::new();
            for op in 0..4 {
                let head = log.commit(&commit(device, device * 4 + op, genesis().head())).await;
                seqs.push(head.expect("gets in").seq);
            }
            seqs
        });
        let mut seqs: Vec<u64> = join_all(proposals).await.into_iter().flatten().collect();
        seqs.sort_unstable();
        assert_eq!(seqs, (1..=20).collect::<Vec<_>>(), "{count} stores");
        let entries = stores.log().entries(0, 1 << 20).await.expect("entries");
        let end = entries.iter().fold(genesis().head(), |head, entry| {
            assert!(entry.follows(&head));
            entry.head()
        });
        assert_eq!(end.seq, 20);
    }
}

/// Who has proposed what fills a slot, by the newest that a store says of it.
async fn session(store: &dyn ObjectStore, slot: u64) -> ProposerId {
    let workspace = genesis().workspace();
    let context = Context { workspace, slot, certifier: None, is_single: false };
    let mut last = None;
    for place in 0.. {
        let bytes = store.get(&ObjectKey::log_slot(slot, place)).await.expect("get");
        let Some(bytes) = bytes else { break };
        match context.decode(&bytes).expect("a message") {
            Message::Vote(candidate) if place == 0 => last = Some(candidate.session()),
            Message::Accept(_, candidate) | Message::Decided(candidate) => {
                last = Some(candidate.session());
            }
            _ => {}
        }
    }
    last.expect("a candidate")
}

#[tokio::test(start_paused = true)]
async fn whoever_wins_a_contested_slot_fills_the_next_ones_for_the_others() {
    for count in [3, 5] {
        // The votes split; with three stores two have no vote, and leave a wish.
        let stores = Stores::new(&format!("helped at {count}"), count);
        let logs: Vec<_> = (0..5).map(|device| stores.slowed_for(device).log()).collect();
        let start = tokio::time::Instant::now();
        let proposals = logs.iter().zip(0_u8..).map(|(log, device)| async move {
            let head = log.commit(&commit(device, device, genesis().head())).await.expect("commit");
            let took = start.elapsed();
            log.settle().await;
            (head.seq, took)
        });
        let done = join_all(proposals).await;
        let mut seqs: Vec<u64> = done.iter().map(|(seq, _)| *seq).collect();
        seqs.sort_unstable();
        assert_eq!(seqs, [1, 2, 3, 4, 5], "{count} stores");
        let winner = session(&*stores.all[0], 1).await;
        for slot in 2..=5 {
            assert_eq!(
                session(&*stores.all[0], slot).await,
                winner,
                "slot {slot} of {count} stores"
            );
        }
        let last = done.iter().map(|(_, took)| took.as_millis()).max();
        assert!(last < Some(2_500), "{last:?} ms at {count} stores");
    }
}

#[tokio::test(start_paused = true)]
async fn commits_get_in_though_nobody_helps() {
    // The winner of a contested slot ends with its answer: nobody helps the others.
    let stores = Stores::new("no help", 5);
    let proposals = (0_u8..5).map(|device| {
        let log = stores.slowed_for(device.into()).log();
        async move {
            let head = log.commit(&commit(device, device, genesis().head())).await;
            head.expect("commit").seq
        }
    });
    let mut seqs = join_all(proposals).await;
    seqs.sort_unstable();
    assert_eq!(seqs, [1, 2, 3, 4, 5]);
    assert_eq!(stores.log().head().await.expect("head").seq, 5);
}

#[tokio::test(start_paused = true)]
async fn owner_needs_one_put_for_each_store_and_no_get() {
    for count in [1, 2, 3, 5] {
        let (stores, counting) = Stores::new(&format!("count {count}"), count).counted();
        let log = match count {
            1 => {
                let clock = Arc::new(TokioClock::default());
                let store = stores.all[0].clone();
                SlotCommitLog::create(store, clock, genesis()).await.expect("opens")
            }
            _ => stores.log(),
        };
        let mut head = log.commit(&commit(1, 0, genesis().head())).await.expect("first");
        log.settle().await;
        for op in 1..10 {
            for store in &counting {
                store.reset();
            }
            head = log.commit(&commit(1, op, head)).await.expect("commit");
            log.settle().await;
            for store in &counting {
                assert_eq!((store.puts(), store.gets()), (1, 0), "{count} stores");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn entries_that_were_passed_on_the_way_to_the_head_are_not_read_again() {
    let stores = Stores::new("passed", 3);
    let mut head = genesis().head();
    for op in 0..5 {
        head = stores.log().commit(&commit(1, op, head)).await.expect("commit");
    }
    let (stores, counting) = stores.counted();
    let log = stores.log();
    assert_eq!(log.head().await.expect("head"), head);
    log.settle().await;
    for store in &counting {
        store.reset();
    }
    let entries = log.entries(2, 1 << 20).await.expect("entries");
    assert_eq!(entries.iter().map(|entry| entry.seq).collect::<Vec<_>>(), [3, 4, 5]);
    assert!(counting.iter().all(|store| store.gets() == 0));
    // Only once: whoever asks again wants to know what is new.
    stores_are_asked(&log, &counting, 2).await;
    log.head().await.expect("head");
    stores_are_asked(&log, &counting, 5).await;
}

async fn stores_are_asked(log: &SlotCommitLog, counting: &[Arc<Counting>], since: u64) {
    for store in counting {
        store.reset();
    }
    let entries = log.entries(since, 1 << 20).await.expect("entries");
    assert_eq!(entries.last().map_or(5, |entry| entry.seq), 5);
    assert!(counting.iter().any(|store| store.gets() > 0));
}

#[tokio::test(start_paused = true)]
async fn owner_is_as_fast_as_the_majority_and_another_waits_a_little_for_the_slow() {
    let stores = Stores::new("slow", 3).with_trouble(&[2], Trouble::Slow(Duration::from_secs(9)));
    let fast = Stores {
        all: stores
            .all
            .iter()
            .map(|store| -> Arc<dyn ObjectStore> {
                let pace = Trouble::Slow(Duration::from_millis(100));
                Arc::new(Troubled::new(store.clone(), pace))
            })
            .collect(),
        ..stores
    };
    let log = fast.log();
    let clock = tokio::time::Instant::now;
    let start = clock();
    let first = log.commit(&commit(1, 0, genesis().head())).await.expect("not the owner");
    let another = start.elapsed();
    let start = clock();
    log.commit(&commit(1, 1, first)).await.expect("the owner");
    let owner = start.elapsed();
    assert_eq!(owner.as_millis(), 100, "one round trip");
    assert!(another.as_millis() <= 500, "{another:?}: vote, patience, prepare, accept");
}

#[tokio::test(start_paused = true)]
async fn entry_that_was_answered_is_found_though_one_of_its_stores_is_gone() {
    for gone in 0..3 {
        let stores = Stores::new(&format!("gone {gone}"), 3);
        // The third store sees nothing of the first commits.
        let two = stores.clone().with_trouble(&[2], Trouble::Failing);
        let log = two.log();
        let mut head = genesis().head();
        for op in 0..30 {
            head = log.commit(&commit(1, op, head)).await.expect("commit");
        }
        let later = stores.clone().with_trouble(&[gone], Trouble::Failing).log();
        assert_eq!(later.head().await.expect("head"), head, "without {gone}");
        let subscribed = stores.clone().with_trouble(&[gone], Trouble::Failing).log();
        let mut stream = subscribed.subscribe(29).await.expect("subscribes");
        let entry = stream.next().await.expect("an entry").expect("entry");
        assert_eq!(entry.head(), head);
    }
}

#[tokio::test(start_paused = true)]
async fn one_restored_store_of_three_loses_nothing_and_three_are_noticed() {
    let stores = Stores::new("restored", 3);
    let log = stores.log();
    let mut head = genesis().head();
    for op in 0..5 {
        head = log.commit(&commit(1, op, head)).await.expect("commit");
        log.settle().await;
    }
    let forget = async |number: usize| {
        let list = storage::object_store::list_all(&*stores.all[number], "log/").await;
        for entry in list.expect("a list") {
            stores.all[number].delete(&entry.key).await.expect("deletes");
        }
    };
    forget(0).await;
    let after = stores.log();
    let next = after.commit(&commit(2, 5, head)).await.expect("two stores know");
    assert_eq!(next.seq, 6);
    assert_eq!(stores.log().head().await.expect("head"), next);
    for number in 0..3 {
        forget(number).await;
    }
    let error = stores.log().commit(&commit(2, 6, next)).await.expect_err("all is gone");
    assert!(error.is_refusal(model::wire::RefusalKind::HistoryLost), "{error}");
    let silent = stores.with_trouble(&[1], Trouble::Silent).log();
    let error = silent.commit(&commit(2, 6, next)).await.expect_err("one may still have it");
    assert!(error.is_retryable(), "{error}");
}

#[tokio::test(start_paused = true)]
async fn slots_of_one_store_are_read_by_the_group_it_grows_into() {
    let stores = Stores::new("old format", 1);
    let log = stores.open(0).await;
    let head = log.commit(&commit(1, 0, genesis().head())).await.expect("commit");
    let bytes = stores.all[0].get(&ObjectKey::log_slot(1, 0)).await.expect("get").expect("there");
    let entry: Entry =
        commit_log::envelope::unwrap_at_rest(&bytes, 1 << 20).expect("an entry and nothing else");
    assert_eq!(entry.head(), head);
    let mut three = Stores::new("grown", 3);
    three.all[0] = stores.all[0].clone();
    for store in &three.all[1..] {
        store.put(&ObjectKey::log_slot(1, 0), bytes.clone(), PutMode::IfAbsent).await.expect("put");
    }
    assert_eq!(three.log().head().await.expect("head"), head);
}

#[tokio::test(start_paused = true)]
async fn log_conforms_while_one_store_of_four_lies() {
    for (name, case) in cases() {
        println!("one of four lies: {name}");
        let mut stores = Stores::new(&format!("lying {name}"), 4);
        stores.model = FaultModel::Byzantine;
        stores.all[1] = Arc::new(Liar::new(stores.all[1].clone(), 3));
        case(&stores).await;
    }
}

/// The group grows when an entry of device 9 says so: one store at first, then three.
#[derive(Debug)]
struct Growing {
    first: Arc<Group>,
    later: Arc<Group>,
    grown_after: Mutex<Option<u64>>,
    known: Mutex<u64>,
}

impl Growing {
    fn new(stores: &Stores) -> Self {
        let all = stores.group().stores().to_vec();
        Self {
            first: Arc::new(Group::new(all[..1].to_vec())),
            later: Arc::new(Group::new(all)),
            grown_after: Mutex::default(),
            known: Mutex::default(),
        }
    }
}

impl Membership for Growing {
    fn learn(&self, entry: &Entry) {
        let mut known = self.known.lock();
        *known = entry.seq.max(*known);
        if entry.commit.device == DeviceId::from_bytes([9; 16]) {
            self.grown_after.lock().get_or_insert(entry.seq);
        }
    }

    fn group(&self, slot: u64) -> Option<Arc<Group>> {
        let is_grown = self.grown_after.lock().is_some_and(|seq| slot > seq);
        let group = if is_grown { &self.later } else { &self.first };
        (slot <= *self.known.lock() + 1).then(|| group.clone())
    }
}

#[tokio::test(start_paused = true)]
async fn group_changes_at_the_slot_after_the_entry_that_says_so() {
    let stores = Stores::new("growing", 3);
    let open = |stores: &Stores| {
        SlotCommitLog::over(Arc::new(Growing::new(stores)), stores.means(), genesis())
    };
    let log =
        SlotCommitLog::create_over(Arc::new(Growing::new(&stores)), stores.means(), genesis());
    let log = log.await.expect("opens");
    let mut head = genesis().head();
    for (device, op) in [1, 1, 1, 9, 1, 2, 1].into_iter().zip(0..) {
        head = log.commit(&commit(device, op, head)).await.expect("commit");
        log.settle().await;
    }
    for (seq, holders) in [(4, 1), (5, 3), (7, 3)] {
        let key = ObjectKey::log_slot(seq, 0);
        let held = join_all(stores.all.iter().map(|store| store.size(&key))).await;
        let held = held.into_iter().filter(|size| matches!(size, Ok(Some(_)))).count();
        assert_eq!(held, holders, "slot {seq}");
    }
    assert_eq!(open(&stores).head().await.expect("head"), head);
    let entries = open(&stores).entries(0, 1 << 20).await.expect("entries");
    assert_eq!(entries.len(), 7);
    // Old slots need the old store, new ones only a majority.
    let without_last = stores.clone().with_trouble(&[2], Trouble::Failing);
    let next = open(&without_last).commit(&commit(3, 7, genesis().head())).await;
    assert_eq!(next.expect("two of three").seq, 8);
}
