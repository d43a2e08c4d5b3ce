//! What every [`CommitLog`] must do, whoever keeps it. A test gives a [`Fixture`] and runs [`cases`].

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::future::{BoxFuture, join_all};
use model::checkpoint::Checkpoint;
use model::testing::put;
use model::{Change, Commit, DeviceId, Entry, Head, OpId, PageId, Timestamp};

use crate::commit_log::CommitLog;

/// A fresh workspace with an empty log, and the means to open it again.
#[async_trait]
pub trait Fixture: Send + Sync + Debug {
    /// Opens the log for device `number`, 0 to 7: handles of one number share a device id, as after a restart.
    async fn open(&self, number: u8) -> Arc<dyn CommitLog>;

    /// Returns the id of device `number`.
    fn device(&self, number: u8) -> DeviceId;
}

/// A named case.
pub type Case = (&'static str, for<'a> fn(&'a dyn Fixture) -> BoxFuture<'a, ()>);

/// Returns every case; each wants a fixture of its own.
pub fn cases() -> Vec<Case> {
    vec![
        ("empty_log_has_the_head_of_its_genesis", |fixture| Box::pin(empty(fixture))),
        ("entries_form_a_chain_without_gaps", |fixture| Box::pin(chain(fixture))),
        ("repeated_commit_has_no_further_effect", |fixture| Box::pin(repeated(fixture))),
        ("concurrent_commits_all_get_a_place", |fixture| Box::pin(concurrent(fixture))),
        ("one_commit_proposed_by_many_at_once_stands_once", |fixture| {
            Box::pin(same_at_once(fixture))
        }),
        ("head_is_never_older_than_an_answered_commit", |fixture| Box::pin(head_is_fresh(fixture))),
        ("entries_are_paged_by_length", |fixture| Box::pin(paged(fixture))),
        ("subscription_has_old_and_new_entries_in_order", |fixture| {
            Box::pin(subscription(fixture))
        }),
        ("checkpoint_is_the_newest_published", |fixture| Box::pin(checkpoint(fixture))),
        ("commit_returns_with_every_field", |fixture| Box::pin(fields(fixture))),
    ]
}

/// How many bytes of entries a case asks for where it wants all.
const ALL: u64 = 1 << 20;

fn commit(fixture: &dyn Fixture, number: u8, op: u8, seen: Head) -> Commit {
    commit_of(fixture, number, op, seen, vec![put(op + 1, 0, &format!("name {op}"))])
}

fn commit_of(
    fixture: &dyn Fixture,
    number: u8,
    op: u8,
    seen: Head,
    changes: Vec<Change>,
) -> Commit {
    Commit {
        op_id: OpId::from_bytes([op; 16]),
        device: fixture.device(number),
        device_name: format!("device {number}"),
        time: Timestamp { seconds: -5, nanoseconds: 7 },
        seen,
        changes,
        packs: Vec::new(),
        inline_packs: Vec::new(),
        has_deltas: false,
        seal: None,
    }
}

fn check_chain(log: &dyn CommitLog, entries: &[Entry]) -> Head {
    entries.iter().fold(log.genesis().head(), |head, entry| {
        assert!(entry.follows(&head), "entry {} follows", entry.seq);
        entry.head()
    })
}

async fn empty(fixture: &dyn Fixture) {
    let log = fixture.open(0).await;
    assert_eq!(log.head().await.expect("head"), log.genesis().head());
    assert!(log.entries(0, ALL).await.expect("entries").is_empty());
    assert!(log.checkpoint().await.expect("checkpoint").is_none());
}

async fn chain(fixture: &dyn Fixture) {
    let log = fixture.open(0).await;
    let mut head = log.genesis().head();
    for op in 0..20 {
        head = log.commit(&commit(fixture, 0, op, head)).await.expect("commit");
        assert_eq!(head.seq, u64::from(op) + 1);
    }
    let entries = fixture.open(1).await.entries(0, ALL).await.expect("entries");
    assert_eq!(entries.len(), 20);
    assert_eq!(check_chain(&*log, &entries), head);
    assert_eq!(log.entries(15, ALL).await.expect("entries"), entries[15..]);
}

async fn repeated(fixture: &dyn Fixture) {
    let log = fixture.open(0).await;
    let proposed = commit(fixture, 0, 1, log.genesis().head());
    let first = log.commit(&proposed).await.expect("commit");
    fixture.open(1).await.commit(&commit(fixture, 1, 2, first)).await.expect("another");
    assert_eq!(log.commit(&proposed).await.expect("again"), first);
    assert_eq!(fixture.open(0).await.commit(&proposed).await.expect("after a restart"), first);
    assert_eq!(log.head().await.expect("head").seq, 2);
}

async fn concurrent(fixture: &dyn Fixture) {
    let mut logs = Vec::new();
    for number in 0..4 {
        logs.push((number, fixture.open(number).await));
    }
    let genesis = logs[0].1.genesis().head();
    let proposals = logs.iter().flat_map(|(number, log)| {
        (0..8).map(move |n| async move {
            log.commit(&commit(fixture, *number, number * 8 + n, genesis)).await.expect("commit")
        })
    });
    let mut seqs: Vec<u64> = join_all(proposals).await.into_iter().map(|head| head.seq).collect();
    seqs.sort_unstable();
    assert_eq!(seqs, (1..=32).collect::<Vec<_>>());
    check_chain(&*logs[0].1, &logs[0].1.entries(0, ALL).await.expect("entries"));
}

async fn same_at_once(fixture: &dyn Fixture) {
    let logs = join_all((0..4).map(|_| fixture.open(0))).await;
    let proposed = commit(fixture, 0, 1, logs[0].genesis().head());
    let heads = join_all(logs.iter().map(|log| log.commit(&proposed))).await;
    for head in heads {
        assert_eq!(head.expect("commit").seq, 1);
    }
    assert_eq!(logs[0].head().await.expect("head").seq, 1);
}

async fn head_is_fresh(fixture: &dyn Fixture) {
    let (one, other) = (fixture.open(0).await, fixture.open(1).await);
    let mut head = one.genesis().head();
    for op in 0..10 {
        head = one.commit(&commit(fixture, 0, op, head)).await.expect("commit");
        assert_eq!(other.head().await.expect("head"), head);
    }
}

async fn paged(fixture: &dyn Fixture) {
    let log = fixture.open(0).await;
    let mut head = log.genesis().head();
    for op in 0..30 {
        head = log.commit(&commit(fixture, 0, op, head)).await.expect("commit");
    }
    assert_eq!(log.entries(0, 1).await.expect("at least one").len(), 1);
    let mut entries: Vec<Entry> = Vec::new();
    loop {
        let page = log.entries(entries.len() as u64, 600).await.expect("page");
        if page.is_empty() {
            break;
        }
        assert!(page.len() < 30, "a page is smaller than the log");
        entries.extend(page);
    }
    assert_eq!(check_chain(&*log, &entries), head);
}

async fn subscription(fixture: &dyn Fixture) {
    let (writer, reader) = (fixture.open(0).await, fixture.open(1).await);
    let mut head = writer.genesis().head();
    for op in 0..3 {
        head = writer.commit(&commit(fixture, 0, op, head)).await.expect("commit");
    }
    let mut stream = reader.subscribe(1).await.expect("subscribe");
    for seq in 2..=10 {
        if seq > 3 {
            head = writer.commit(&commit(fixture, 0, seq, head)).await.expect("commit");
        }
        let entry = stream.next().await.expect("a stream without end").expect("entry");
        assert_eq!(entry.seq, u64::from(seq));
    }
}

async fn checkpoint(fixture: &dyn Fixture) {
    let log = fixture.open(0).await;
    let mut head = log.genesis().head();
    let mut published = Vec::new();
    for op in 0..3 {
        head = log.commit(&commit(fixture, 0, op, head)).await.expect("commit");
        let page = PageId::from_bytes([op; 32]);
        published.push(Checkpoint {
            head,
            nodes: page,
            node_count: 1,
            packs: page,
            fence: 0,
            has_mounts: false,
            has_deltas: false,
            seal: None,
        });
    }
    for (publish, newest) in [(1, 1), (2, 2), (0, 2), (2, 2)] {
        log.publish_checkpoint(&published[publish]).await.expect("publish");
        let found = fixture.open(1).await.checkpoint().await.expect("checkpoint");
        assert_eq!(found.as_ref(), Some(&published[newest]));
    }
}

async fn fields(fixture: &dyn Fixture) {
    let log = fixture.open(0).await;
    let mut proposed = commit(fixture, 0, 1, log.genesis().head());
    proposed.changes = (1..200).map(|n| put(n, 0, &format!("file {n}"))).collect();
    proposed.inline_packs = vec![vec![1; 1000], vec![0, 255]];
    log.commit(&proposed).await.expect("commit");
    let entries = fixture.open(1).await.entries(0, ALL).await.expect("entries");
    assert_eq!(entries[0].commit, proposed);
}
