//! What single stores say before a majority has answered.

use std::sync::Arc;
use std::time::Duration;

use commit_log::serverless::candidate::{Candidate, Context};
use commit_log::serverless::group::{ConstantMembership, Group, NamedStore};
use commit_log::serverless::rounds::{Message, ProposerId};
use commit_log::serverless::slot_log::Means;
use commit_log::{CommitLog, Rumour, SlotCommitLog};
use futures_util::{FutureExt, StreamExt};
use model::testing::{commit, put};
use model::{Commit, Entry, Head};
use storage::{ObjectKey, ObjectStore, PutMode};

use super::slot_log::genesis;
use super::stores::{TestRandom, TokioClock, Trouble, Troubled};

/// A store answers after 100 ms, the others of three after a second.
const QUICK: Duration = Duration::from_millis(100);
const SLOW: Duration = Duration::from_secs(1);

fn stores(name: &str) -> Vec<Arc<dyn ObjectStore>> {
    let open = |number| storage::open(&format!("memory:rumours {name} {number}")).expect("opens");
    (0..3).map(open).collect()
}

fn log_over(stores: &[Arc<dyn ObjectStore>], seed: u64) -> SlotCommitLog {
    let named = stores.iter().enumerate().map(|(number, store)| NamedStore {
        name: format!("store {number}"),
        store: store.clone(),
    });
    let membership = Arc::new(ConstantMembership::new(Group::new(named.collect())));
    let means =
        Means { clock: Arc::<TokioClock>::default(), random: Arc::new(TestRandom::new(seed)) };
    SlotCommitLog::over(membership, means, genesis())
}

/// Lets the first store be quick and the others slow.
fn uneven(stores: &[Arc<dyn ObjectStore>]) -> Vec<Arc<dyn ObjectStore>> {
    let paced = |(number, store): (usize, &Arc<dyn ObjectStore>)| -> Arc<dyn ObjectStore> {
        let pace = if number == 0 { QUICK } else { SLOW };
        Arc::new(Troubled::new(store.clone(), Trouble::Slow(pace)))
    };
    stores.iter().enumerate().map(paced).collect()
}

fn nth(op: u8, seen: Head) -> Commit {
    Commit { seen, ..commit(op, vec![put(op + 1, 0, &format!("name {op}"))]) }
}

/// Commits so many times, and leaves nothing under way.
async fn commits(stores: &[Arc<dyn ObjectStore>], count: u8) -> Head {
    let log = log_over(stores, 1);
    let mut head = genesis().head();
    for op in 0..count {
        head = log.commit(&nth(op, head)).await.expect("commits");
    }
    log.settle().await;
    head
}

/// Leaves a vote for a first entry at one store, as a proposer does that is gone after its first put.
async fn vote_alone(store: &dyn ObjectStore) -> Entry {
    let head = genesis().head();
    let entry = Entry { seq: 1, previous: head.hash, commit: nth(200, head) };
    let candidate = Candidate::new(entry.clone(), ProposerId(77), false);
    let context =
        Context { workspace: genesis().workspace(), slot: 1, certifier: None, is_single: false };
    let bytes = context.encode(&Message::Vote(candidate));
    store.put(&ObjectKey::log_slot(1, 0), bytes, PutMode::IfAbsent).await.expect("put");
    entry
}

#[tokio::test(start_paused = true)]
async fn entry_is_heard_of_when_the_first_store_has_answered_and_once() {
    let stores = stores("heard");
    commits(&stores, 1).await;
    let log = log_over(&uneven(&stores), 2);
    let began = tokio::time::Instant::now();
    let mut rumours = log.rumours();
    let mut look = log.head();
    let heard = tokio::select! {
        rumour = rumours.next() => rumour.expect("the log goes on to speak"),
        _ = &mut look => panic!("a majority cannot have answered"),
    };
    assert!(matches!(heard, Rumour::Entry(entry) if entry.seq == 1));
    assert_eq!(began.elapsed(), QUICK);
    assert_eq!(look.await.expect("head").seq, 1);
    assert!(rumours.next().now_or_never().is_none(), "three stores say the same");
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_the_whole_of_one_slot_before_the_next_is_asked_for() {
    let stores = stores("early");
    let last = commits(&stores, 1).await;
    let log = log_over(&uneven(&stores), 2);
    let began = tokio::time::Instant::now();
    assert_eq!(log.head().await.expect("head"), last);
    assert_eq!(began.elapsed(), QUICK + SLOW, "not twice the slower of a majority");
}

#[tokio::test(start_paused = true)]
async fn walk_finds_every_entry_however_many_there_are() {
    for count in 0..14 {
        let stores = stores(&format!("count {count}"));
        let last = commits(&stores, count).await;
        let log = log_over(&uneven(&stores), 2);
        assert_eq!(log.head().await.expect("head"), last, "{count}");
        let entries = log.entries(0, u64::MAX).await.expect("entries");
        assert!(!entries.is_empty() || count == 0);
        let mut head = genesis().head();
        for entry in entries {
            assert!(entry.follows(&head), "{count}: {}", entry.seq);
            head = entry.head();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_one_store_says_is_told_and_is_not_in_the_log() {
    let stores = stores("alone");
    let alone = vote_alone(&*stores[0]).await;
    let log = log_over(&uneven(&stores), 2);
    let mut rumours = log.rumours();
    assert_eq!(log.head().await.expect("head"), genesis().head());
    let heard = rumours.next().now_or_never().flatten().expect("it was heard");
    assert_eq!(heard, Rumour::Entry(Arc::new(alone)));
    assert!(log.entries(0, u64::MAX).await.expect("entries").is_empty());
    // Another one gets in, with or without it.
    let winner = log.commit(&nth(1, genesis().head())).await.expect("commits");
    let entries = log_over(&stores, 4).entries(0, u64::MAX).await.expect("entries");
    assert_eq!(entries.last().map(Entry::head), Some(winner));
    assert!(entries.iter().all(|entry| entry.seq <= winner.seq));
}

#[tokio::test(start_paused = true)]
async fn checkpoint_of_the_first_store_is_heard_of_and_so_is_that_it_has_none() {
    let stores = stores("checkpoint");
    let log = log_over(&uneven(&stores), 2);
    let mut rumours = log.rumours();
    assert_eq!(log.checkpoint().await.expect("asked"), None);
    let heard = rumours.next().now_or_never().flatten();
    assert_eq!(heard, Some(Rumour::Checkpoint(None)));
}

#[tokio::test(start_paused = true)]
async fn rumours_do_not_pile_up_where_nobody_takes_them_or_listens() {
    let stores = stores("pile");
    commits(&stores, 40).await;
    let log = log_over(&uneven(&stores), 2);
    let mut rumours = log.rumours();
    for since in 0..40 {
        log.subscribe(since).await.expect("subscribes").next().await.expect("one").expect("entry");
    }
    let mut count = 0;
    while rumours.next().now_or_never().flatten().is_some() {
        count += 1;
    }
    assert!((1..=16).contains(&count), "{count}");
    drop(rumours);
    log.subscribe(0).await.expect("subscribes").next().await.expect("one").expect("entry");
    assert!(log.rumours().next().now_or_never().is_none(), "nobody has listened meanwhile");
}
