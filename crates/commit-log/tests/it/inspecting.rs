//! Objects of the history that are damaged in one store: all are found, what is decided is written anew, and nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use commit_log::conformance::Fixture;
use commit_log::serverless::slot_log::inspecting::{Fate, Finding, Flaw, Inspection, Inspector};
use commit_log::{CommitLog, SlotCommitLog};
use model::checkpoint::Checkpoint;
use model::{Entry, PageId};
use storage::object_store::list_all;
use storage::{ObjectKey, ObjectStore, PutMode};

use super::several_stores::Stores;
use super::slot_log::commit;
use super::stores::Trouble;

/// Every object of a store.
async fn objects(store: &Arc<dyn ObjectStore>) -> BTreeMap<ObjectKey, Bytes> {
    let mut found = BTreeMap::new();
    for entry in list_all(&**store, "").await.expect("a list") {
        let bytes = store.get(&entry.key).await.expect("reads").expect("it is listed");
        found.insert(entry.key, bytes);
    }
    found
}

/// Flips a bit of an object.
async fn flip(store: &Arc<dyn ObjectStore>, key: &ObjectKey, bytes: &Bytes) {
    let mut flipped = bytes.to_vec();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 0x10;
    store.put(key, flipped.into(), PutMode::Overwrite).await.expect("puts");
}

async fn inspect(log: &SlotCommitLog, known: &[Entry], mends: bool) -> Inspection {
    let known_entry = |seq: u64| known.get(usize::try_from(seq).ok()?.checked_sub(1)?).cloned();
    let inspector = Inspector { folded: known.len() as u64, known: &known_entry, mends };
    log.inspect(&inspector).await.expect("the stores are known")
}

fn of_store(inspection: &Inspection, name: &str) -> BTreeSet<(ObjectKey, Flaw)> {
    let found = inspection.findings.iter().filter(|finding| finding.store == name);
    found.map(|Finding { key, flaw, .. }| (key.clone(), *flaw)).collect()
}

/// A history that was agreed on in every way: by an owner, against others, while a store was away; with a checkpoint.
async fn history(stores: &Stores) -> Vec<Entry> {
    stores.open(0).await;
    let log = stores.log();
    let mut head = log.genesis().head();
    for op in 0..6 {
        head = log.commit(&commit(1, op, head)).await.expect("commits");
    }
    log.settle().await;
    let count = stores.all.len();
    if count > 1 {
        // Two want the same slots, and of three or more stores one is away: there are rounds, and wishes.
        let away: &[usize] = if count > 2 { &[count - 1] } else { &[] };
        let some = stores.clone().with_trouble(away, Trouble::Failing);
        let (one, other) = (some.log(), some.log());
        for op in [10, 20] {
            let (mine, yours) = (commit(1, op, head), commit(2, op + 1, head));
            let (mine, yours) = futures_util::join!(one.commit(&mine), other.commit(&yours));
            let (mine, yours) = (mine.expect("commits"), yours.expect("commits"));
            head = if mine.seq > yours.seq { mine } else { yours };
        }
        one.settle().await;
        other.settle().await;
    }
    let page = PageId::from_bytes([4; 32]);
    let checkpoint = Checkpoint {
        head,
        nodes: page,
        node_count: 3,
        packs: page,
        fence: 0,
        has_mounts: false,
        has_deltas: false,
        seal: None,
    };
    log.publish_checkpoint(&checkpoint).await.expect("publishes");
    log.settle().await;
    let entries = stores.log().entries(0, u64::MAX).await.expect("reads");
    assert_eq!(entries.last().map(Entry::head), Some(head));
    entries
}

#[tokio::test(start_paused = true)]
async fn every_flipped_object_of_one_store_is_found_and_healed() {
    for count in [1, 2, 3, 5] {
        let stores = Stores::new(&format!("flipped {count}"), count);
        let entries = history(&stores).await;
        let damaged = &stores.all[0];
        // What a store has missed while it was away is brought to it.
        inspect(&stores.log(), &entries, true).await;
        let clean = inspect(&stores.log(), &entries, false).await;
        assert_eq!(clean.findings, [], "{count} stores");
        let whole = objects(damaged).await;
        assert!(whole.len() > entries.len(), "{count} stores");
        let has_rounds =
            whole.keys().any(|key| key.as_log_slot().is_some_and(|(_, place)| place > 0));
        assert!(has_rounds || count < 3, "some lists have more than a vote");
        for (key, bytes) in &whole {
            flip(damaged, key, bytes).await;
        }
        let found = inspect(&stores.log(), &entries, false).await;
        let flipped = whole.keys().map(|key| (key.clone(), Flaw::Damaged)).collect();
        assert_eq!(of_store(&found, "store 0"), flipped, "{count} stores");
        assert_eq!(found.findings.len(), whole.len(), "nothing is wrong elsewhere");
        assert!(found.findings.iter().all(|finding| finding.fate == Fate::Mendable), "{found:?}");
        let mended = inspect(&stores.log(), &entries, true).await;
        assert_eq!(mended.findings.len(), whole.len());
        assert!(mended.findings.iter().all(|finding| finding.fate == Fate::Mended), "{mended:?}");
        assert_eq!(inspect(&stores.log(), &entries, false).await.findings, [], "{count} stores");
        // A majority with the store that was damaged proves the whole history, and the log goes on there.
        let away: Vec<usize> = (1..count).skip(count / 2).collect();
        let rest = stores.clone().with_trouble(&away, Trouble::Failing).log();
        assert_eq!(rest.entries(0, u64::MAX).await.expect("reads"), entries, "{count} stores");
        let head = rest.head().await.expect("reads");
        let next = rest.commit(&commit(1, 30, head)).await.expect("commits");
        assert_eq!(next.seq, head.seq + 1);
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_store_has_lost_of_the_history_is_brought_back() {
    let stores = Stores::new("lost", 3);
    let entries = history(&stores).await;
    inspect(&stores.log(), &entries, true).await;
    let whole = objects(&stores.all[2]).await;
    for key in whole.keys() {
        stores.all[2].delete(key).await.expect("deletes");
    }
    let found = inspect(&stores.log(), &entries, false).await;
    let missing = of_store(&found, "store 2");
    // The genesis, an object for each slot, and the checkpoint.
    assert_eq!(missing.len(), entries.len() + 2, "{found:?}");
    assert!(missing.iter().all(|(_, flaw)| *flaw == Flaw::Missing));
    inspect(&stores.log(), &entries, true).await;
    assert_eq!(inspect(&stores.log(), &entries, false).await.findings, []);
    let rest = stores.with_trouble(&[0], Trouble::Failing).log();
    assert_eq!(rest.entries(0, u64::MAX).await.expect("reads"), entries);
}

/// A vote for a slot that nothing fills yet says what a store has promised. Whoever wrote another one there could make two
/// devices win.
#[tokio::test(start_paused = true)]
async fn damaged_vote_for_a_slot_that_is_not_decided_is_left() {
    let stores = Stores::new("undecided", 3);
    let entries = history(&stores).await;
    inspect(&stores.log(), &entries, true).await;
    let head = entries.last().expect("some").head();
    // The vote reaches one store, and nobody hears of it.
    let alone = stores.clone().with_trouble(&[1, 2], Trouble::Failing).log();
    alone.commit(&commit(3, 40, head)).await.expect_err("one of three stores");
    let key = ObjectKey::log_slot(head.seq + 1, 0);
    let vote = stores.all[0].get(&key).await.expect("reads").expect("a vote");
    assert_eq!(inspect(&stores.log(), &entries, false).await.findings, []);
    flip(&stores.all[0], &key, &vote).await;
    let flipped = stores.all[0].get(&key).await.expect("reads");
    for mends in [false, true] {
        let found = inspect(&stores.log(), &entries, mends).await;
        let left = Finding {
            store: "store 0".to_owned(),
            key: key.clone(),
            flaw: Flaw::Damaged,
            fate: Fate::Left,
        };
        assert_eq!(found.findings, [left], "{mends}");
        assert_eq!(stores.all[0].get(&key).await.expect("reads"), flipped);
    }
    // The others decide, and then it is known what belongs there.
    let next = stores.log().commit(&commit(1, 41, head)).await.expect("two of three are enough");
    assert_eq!(next.seq, head.seq + 1);
    let mended = inspect(&stores.log(), &entries, true).await;
    assert!(mended.findings.iter().any(|found| found.key == key && found.fate == Fate::Mended));
    assert_eq!(inspect(&stores.log(), &entries, false).await.findings, []);
    assert_eq!(stores.log().head().await.expect("reads"), next);
}

/// A newer program may know what it means.
#[tokio::test(start_paused = true)]
async fn what_is_whole_and_cannot_be_read_is_left() {
    let stores = Stores::new("newer", 3);
    let entries = history(&stores).await;
    inspect(&stores.log(), &entries, true).await;
    let key = ObjectKey::log_slot(2, 0);
    let mut newer = vec![0, b'L', 99, 1, 2, 3];
    newer.extend_from_slice(blake3::hash(&newer).as_bytes());
    let newer = Bytes::from(newer);
    stores.all[1].put(&key, newer.clone(), PutMode::Overwrite).await.expect("puts");
    let found = inspect(&stores.log(), &entries, true).await;
    assert_eq!(of_store(&found, "store 1"), BTreeSet::from([(key.clone(), Flaw::Contradicts)]));
    assert_eq!(found.findings[0].fate, Fate::Left);
    assert_eq!(stores.all[1].get(&key).await.expect("reads"), Some(newer));
}

/// A store that was restored from an older copy lacks the end. With one store the engine begins anew from there.
#[tokio::test(start_paused = true)]
async fn end_that_the_only_store_has_lost_is_not_made_up() {
    let stores = Stores::new("only", 1);
    let entries = history(&stores).await;
    let last = entries.last().expect("some").seq;
    for seq in [2, last] {
        stores.all[0].delete(&ObjectKey::log_slot(seq, 0)).await.expect("deletes");
    }
    let found = inspect(&stores.log(), &entries, true).await;
    let fates: Vec<_> = found.findings.into_iter().map(|one| (one.key, one.fate)).collect();
    let expected =
        [(ObjectKey::log_slot(2, 0), Fate::Mended), (ObjectKey::log_slot(last, 0), Fate::Left)];
    assert_eq!(fates, expected);
}
