//! The log while the stores that agree on it are exchanged.

use std::collections::BTreeMap;
use std::sync::Arc;

use commit_log::serverless::group::{Group, NamedStore};
use commit_log::serverless::identity::Identified;
use commit_log::serverless::membership::{Said, SettingsMembership, Stand, StoreOpener};
use commit_log::serverless::slot_log::Means;
use commit_log::{CommitLog, CommitLogError, SlotCommitLog};
use model::codec::{decode_message, encode_message};
use model::testing::put;
use model::{
    Action, Change, Commit, DeviceId, Head, NodeId, OpId, PoolConfig, Redundancy, StoreId,
    StoreRecord,
};
use storage::faulty::{Call, Fault, Faulty};
use storage::object_store::list_all;
use storage::{ObjectKey, ObjectStore, PutMode};

use super::slot_log::genesis;
use super::stores::{TestRandom, TokioClock, Trouble, Troubled};

/// All stores that ever took part, by number; some are in trouble.
#[derive(Debug, Clone)]
struct Room {
    stores: BTreeMap<u8, Arc<dyn ObjectStore>>,
    random: Arc<TestRandom>,
}

impl Room {
    async fn new(name: &str) -> Self {
        let mut stores = BTreeMap::new();
        for number in 1..=6 {
            let store = storage::open(&format!("memory:{name} {number}")).expect("opens");
            let id = id(number).to_string().into();
            store.put(&ObjectKey::store_id(), id, PutMode::IfAbsent).await.expect("put");
            let genesis = encode_message(&genesis()).into();
            store.put(&ObjectKey::genesis(), genesis, PutMode::IfAbsent).await.expect("put");
            stores.insert(number, store);
        }
        Self { stores, random: Arc::new(TestRandom::new(5)) }
    }

    fn without(&self, numbers: &[u8]) -> Self {
        let mut room = self.clone();
        for number in numbers {
            let store = room.stores[number].clone();
            room.stores.insert(*number, Arc::new(Troubled::new(store, Trouble::Failing)));
        }
        room
    }

    /// Empties a store, as somebody does who gives it to somebody else.
    async fn wipe(&self, number: u8) {
        let store = &self.stores[&number];
        for entry in list_all(&**store, "").await.expect("a list") {
            store.delete(&entry.key).await.expect("deletes");
        }
    }

    async fn count(&self, number: u8) -> usize {
        list_all(&*self.stores[&number], "").await.expect("a list").len()
    }

    fn open(&self, stand: Stand) -> (SlotCommitLog, Arc<SettingsMembership>) {
        let membership = Arc::new(SettingsMembership::new(Arc::new(self.clone()), stand));
        let means = Means { clock: Arc::new(TokioClock::default()), random: self.random.clone() };
        (SlotCommitLog::over(membership.clone(), means, genesis()), membership)
    }

    fn log(&self, numbers: &[u8]) -> SlotCommitLog {
        self.open(Stand::first(pool(numbers))).0
    }
}

impl StoreOpener for Room {
    fn read(&self, commit: &Commit, number: usize) -> Said {
        match &commit.changes[number].action {
            Action::Put(payload) => decode_message(payload).map_or(Said::Nothing, Said::Pool),
            Action::Delete => Said::Nothing,
        }
    }

    fn open(&self, pool: &PoolConfig) -> Group {
        let open = |record: &StoreRecord| {
            let store = self.stores[&record.id.as_bytes()[0]].clone();
            let clock = Arc::new(TokioClock::default());
            let store = Arc::new(Identified::new(store, record.id, clock));
            NamedStore { name: record.name.clone(), store }
        };
        Group::new(pool.group().map(open).collect())
    }
}

fn id(number: u8) -> StoreId {
    StoreId::from_bytes([number; 16])
}

fn pool(numbers: &[u8]) -> PoolConfig {
    let store = |number: &u8| {
        let name = format!("store {number}");
        StoreRecord::new(id(*number), name, format!("memory:{number}"), 1)
    };
    PoolConfig::new(Redundancy::Replicas(1), numbers.iter().map(store).collect()).expect("a pool")
}

fn commit(op: u8, seen: Head, changes: Vec<Change>) -> Commit {
    Commit {
        op_id: OpId::from_bytes([op; 16]),
        device: DeviceId::from_bytes([op; 16]),
        seen,
        ..model::testing::commit(op, changes)
    }
}

fn file(op: u8, seen: Head) -> Commit {
    commit(op, seen, vec![put(op + 1, 0, &format!("name {op}"))])
}

fn exchange(op: u8, seen: Head, base: u64, numbers: &[u8]) -> Commit {
    let payload = encode_message(&pool(numbers));
    commit(op, seen, vec![Change { node: NodeId::POOL, base, action: Action::Put(payload) }])
}

/// Fills some slots and exchanges store 3 for store 4; returns the head.
async fn exchanged(room: &Room) -> Head {
    let log = room.log(&[1, 2, 3]);
    let mut head = genesis().head();
    for op in 1..=8 {
        head = log.commit(&file(op, head)).await.expect("commit");
    }
    head = log.commit(&exchange(9, head, 0, &[1, 2, 4])).await.expect("the change");
    log.settle().await;
    head
}

fn heir(room: &Room, numbers: &[u8]) -> Group {
    StoreOpener::open(room, &pool(numbers))
}

fn after(head: Head, numbers: &[u8]) -> Stand {
    Stand { version: 1, pool: pool(numbers), since: head.seq, earlier: None }
}

#[tokio::test(start_paused = true)]
async fn exchanged_store_is_not_needed_any_more_by_whoever_knows_the_new_stores() {
    let room = Room::new("one exchanged").await;
    let head = exchanged(&room).await;
    let log = room.log(&[1, 2, 3]);
    assert_eq!(log.carry_over(&heir(&room, &[1, 2, 4]), 0, head.seq).await.expect("carried"), 9);
    // Of the stores from before only one is left, and of the new ones a majority.
    let left = room.without(&[1, 3]);
    let (log, membership) = left.open(after(head, &[1, 2, 4]));
    assert_eq!(log.head().await.expect("head"), head);
    assert_eq!(log.entries(0, 1 << 20).await.expect("entries").len(), 9);
    let next = log.commit(&file(30, head)).await.expect("goes on");
    assert_eq!((next.seq, membership.stand().since), (10, 9));
    // A proposal that stands in an old slot already is found there, and not made again.
    assert_eq!(log.commit(&file(7, genesis().head())).await.expect("found").seq, 7);
    assert_eq!(room.log(&[1, 2, 3]).head().await.expect("a walk from the beginning"), next);
    let without_new = room.without(&[4]).log(&[1, 2, 3]);
    assert_eq!(without_new.head().await.expect("two of three"), next);
}

#[tokio::test(start_paused = true)]
async fn one_store_becomes_three_and_three_become_another_one() {
    let room = Room::new("one to three to one").await;
    let log = room.log(&[1]);
    let mut head = genesis().head();
    for op in 1..=5 {
        head = log.commit(&file(op, head)).await.expect("commit");
    }
    let grown = log.commit(&exchange(6, head, 0, &[1, 2, 3])).await.expect("the change");
    log.carry_over(&heir(&room, &[1, 2, 3]), 0, u64::MAX).await.expect("carried");
    let (log, _) = room.without(&[1]).open(after(grown, &[1, 2, 3]));
    head = log.commit(&file(7, grown)).await.expect("commit");
    let moved = log.commit(&exchange(8, head, 1, &[5])).await.expect("the change");
    log.carry_over(&heir(&room, &[5]), 0, u64::MAX).await.expect("carried");
    let stand = Stand { version: 2, ..after(moved, &[5]) };
    let (log, _) = room.without(&[1, 2, 3, 4]).open(stand);
    assert_eq!(log.entries(0, 1 << 20).await.expect("entries").len(), 8);
    assert_eq!(log.commit(&file(9, moved)).await.expect("goes on").seq, 9);
}

#[tokio::test(start_paused = true)]
async fn carrying_over_that_was_cut_off_anywhere_is_told_and_taken_up_again() {
    let (mut hidden, mut shown) = (0, 0);
    for budget in 0..27 {
        let room = Room::new(&format!("cut off {budget}")).await;
        let head = exchanged(&room).await;
        let mut cut = room.without(&[1]);
        let fault = move |call: &Call<'_>| match call.number >= budget {
            true => Fault::ErrorBefore,
            false => Fault::None,
        };
        // They are a majority of the new ones as long as both answer.
        for store in [2, 4] {
            let faulty = Faulty::new(cut.stores[&store].clone(), fault);
            cut.stores.insert(store, Arc::new(faulty));
        }
        let log = room.log(&[1, 2, 3]);
        let error = log.carry_over(&heir(&cut, &[1, 2, 4]), 0, head.seq).await.expect_err("cut");
        assert!(error.is_retryable(), "{error}");
        let (reader, _) = room.without(&[1]).open(after(head, &[1, 2, 4]));
        match reader.head().await {
            Err(CommitLogError::NotCarriedOver { .. }) => hidden += 1,
            // One of them has it all already, which is enough to read and not enough for ever.
            Ok(read) => {
                assert_eq!(read, head);
                shown += 1;
            }
            other => panic!("{budget}: {other:?}"),
        }
        room.log(&[1, 2, 3])
            .carry_over(&heir(&room.without(&[1]), &[1, 2, 4]), 0, head.seq)
            .await
            .expect("another device goes on");
        let (reader, _) = room.without(&[1]).open(after(head, &[1, 2, 4]));
        assert_eq!(reader.head().await.expect("all is there"), head);
    }
    assert!(hidden > 9 && shown > 0, "{hidden} {shown}");
}

#[tokio::test(start_paused = true)]
async fn commit_under_which_the_stores_change_is_not_proposed_and_nothing_is_lost() {
    let room = Room::new("under way").await;
    let (late, membership) = room.open(Stand::first(pool(&[1, 2, 3])));
    let first = late.commit(&file(40, genesis().head())).await.expect("commit");
    let (other, _) = room.open(Stand::first(pool(&[1, 2, 3])));
    other.commit(&exchange(41, first, 0, &[2, 3, 5])).await.expect("the change");
    let error = late.commit(&file(42, first)).await.expect_err("stores were left");
    assert!(matches!(error, CommitLogError::GroupChanged { seq: 2 }), "{error}");
    // What it reads it reads on, and it knows where to go.
    assert_eq!(late.head().await.expect("head").seq, 2);
    let stand = membership.stand();
    assert_eq!((stand.version, stand.since, &stand.pool), (1, 2, &pool(&[2, 3, 5])));
    let (anew, _) = room.open(stand);
    assert_eq!(anew.commit(&file(42, first)).await.expect("goes on").seq, 3);
    let error = late.commit(&file(43, first)).await.expect_err("as before");
    assert!(matches!(error, CommitLogError::GroupChanged { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn stores_that_were_emptied_after_they_left_decide_nothing_for_a_device_that_slept() {
    let room = Room::new("emptied after leaving").await;
    let (sleeper, _) = room.open(Stand::first(pool(&[1, 2, 3])));
    let seen = sleeper.commit(&file(50, genesis().head())).await.expect("commit");
    let log = room.log(&[1, 2, 3]);
    let head = log.commit(&exchange(51, seen, 0, &[4, 5, 6])).await.expect("the change");
    log.settle().await;
    log.carry_over(&heir(&room, &[4, 5, 6]), 0, head.seq).await.expect("carried");
    for number in [1, 2] {
        room.wipe(number).await;
    }
    tokio::time::advance(std::time::Duration::from_secs(3600)).await;
    let away = room.without(&[3]).log(&[1, 2, 3]);
    let error = away.commit(&file(52, seen)).await.expect_err("two of three are gone");
    assert!(matches!(error, CommitLogError::Unreachable { .. }), "{error}");
    assert!(error.to_string().contains("was emptied"), "{error}");
    away.head().await.expect_err("and nobody knows the end");
    // The last store that was left alone knows what was decided, and that is enough to know.
    let error = sleeper.commit(&file(52, seen)).await.expect_err("two of three are gone");
    assert!(matches!(error, CommitLogError::GroupChanged { .. }), "{error}");
    for log in [&sleeper, &away] {
        log.settle().await;
    }
    assert_eq!((room.count(1).await, room.count(2).await), (0, 0), "nothing was written there");
    let (log, _) = room.open(after(head, &[4, 5, 6]));
    assert_eq!(log.commit(&file(52, seen)).await.expect("by the new stores").seq, 3);
}

/// A log that has just read that its stores were left. The third one does not answer, so that only two can tell what was decided.
async fn log_that_knows_of_other_stores(room: &Room) -> SlotCommitLog {
    let (sleeper, _) = room.without(&[3]).open(Stand::first(pool(&[1, 2, 3])));
    let seen = sleeper.commit(&file(60, genesis().head())).await.expect("commit");
    let log = room.log(&[1, 2, 3]);
    log.commit(&exchange(61, seen, 0, &[4, 5, 6])).await.expect("the change");
    log.settle().await;
    assert_eq!(sleeper.head().await.expect("head").seq, 2);
    sleeper.settle().await;
    sleeper
}

#[tokio::test(start_paused = true)]
async fn stores_that_were_emptied_a_moment_ago_are_not_taken_for_a_damaged_history() {
    let room = Room::new("emptied just now").await;
    let sleeper = log_that_knows_of_other_stores(&room).await;
    for number in [1, 2] {
        room.wipe(number).await;
    }
    let error = sleeper.commit(&file(62, genesis().head())).await.expect_err("two are gone");
    assert!(matches!(error, CommitLogError::Unreachable { .. }), "{error}");
    assert!(error.to_string().contains("was emptied"), "{error}");
    sleeper.settle().await;
    assert_eq!((room.count(1).await, room.count(2).await), (0, 0), "nothing was written there");
}

#[tokio::test(start_paused = true)]
async fn a_history_that_is_gone_from_stores_that_are_themselves_is_damaged() {
    let room = Room::new("lost entries").await;
    let sleeper = log_that_knows_of_other_stores(&room).await;
    for number in [1, 2] {
        for entry in list_all(&*room.stores[&number], "log/").await.expect("a list") {
            room.stores[&number].delete(&entry.key).await.expect("deletes");
        }
    }
    let error = sleeper.commit(&file(62, genesis().head())).await.expect_err("it has gone");
    assert!(matches!(error, CommitLogError::Damaged { seq: 1, .. }), "{error}");
}
