use model::codec::{decode_message, encode_message};
use model::testing::{commit, put};
use model::{Action, Change, EntryHash, Redundancy, StoreId};

use super::*;
use crate::serverless::group::NamedStore;

/// Reads settings as they are, and opens stores in memory. Commits of an odd number cannot be read.
#[derive(Debug)]
struct Plain;

impl StoreOpener for Plain {
    fn read(&self, commit: &Commit, number: usize) -> Said {
        match &commit.changes[number].action {
            Action::Put(payload) if payload == b"locked" => Said::Unreadable,
            Action::Put(payload) => decode_message(payload).map_or(Said::Nothing, Said::Pool),
            Action::Delete => Said::Nothing,
        }
    }

    fn open(&self, pool: &PoolConfig) -> Group {
        let open = |record: &StoreRecord| NamedStore {
            name: record.name.clone(),
            store: storage::open(&record.url).expect("opens"),
        };
        Group::new(pool.group().map(open).collect())
    }
}

fn pool(numbers: &[u8], capacity: u32) -> PoolConfig {
    let store = |number: &u8| {
        let (id, name) = (StoreId::from_bytes([*number; 16]), format!("store {number}"));
        StoreRecord::new(id, name, format!("memory:membership {number}"), capacity)
    };
    PoolConfig::new(Redundancy::Replicas(1), numbers.iter().map(store).collect()).expect("a pool")
}

fn names(group: Option<Arc<Group>>) -> Option<String> {
    group.map(|group| group.names().replace("store ", ""))
}

fn entry(seq: u64, changes: Vec<Change>) -> Entry {
    Entry { seq, previous: EntryHash::NONE, commit: commit(1, changes) }
}

fn settings(base: u64, payload: Vec<u8>) -> Change {
    Change { node: NodeId::POOL, base, action: Action::Put(payload) }
}

fn change(seq: u64, base: u64, numbers: &[u8]) -> Entry {
    entry(seq, vec![settings(base, encode_message(&pool(numbers, 1)))])
}

fn open(stand: Stand) -> SettingsMembership {
    SettingsMembership::new(Arc::new(Plain), stand)
}

#[test]
fn group_follows_from_accepted_settings_and_from_nothing_else() {
    let membership = open(Stand::first(pool(&[1, 2, 3], 1)));
    membership.learn(&entry(1, vec![put(1, 0, "a file")]));
    assert_eq!(names(membership.group(2)).as_deref(), Some("1, 2, 3"));
    assert_eq!(names(membership.group(3)), None, "entry 2 is not known");
    membership.learn(&change(2, 0, &[2, 3, 4]));
    // Late: another was faster. Not the next entry: nothing is known of the one between.
    membership.learn(&change(3, 0, &[5]));
    membership.learn(&change(5, 1, &[6]));
    assert_eq!(names(membership.group(4)).as_deref(), Some("2, 3, 4"));
    assert_eq!(names(membership.group(2)).as_deref(), Some("1, 2, 3"), "of that time");
    assert_eq!(names(membership.heir(2)), None);
    assert_eq!((membership.stand().version, membership.stand().since), (1, 2));
    membership.learn(&change(4, 1, &[3, 4, 5]));
    assert_eq!(names(membership.group(5)).as_deref(), Some("3, 4, 5"));
    assert_eq!(names(membership.group(3)).as_deref(), Some("2, 3, 4"));
    assert_eq!(names(membership.group(2)), None, "long ago");
    assert_eq!(names(membership.heir(2)).as_deref(), Some("2, 3, 4"), "which had inherited it");
}

#[test]
fn what_is_remembered_leads_on_and_old_slots_are_read_where_they_were_carried() {
    let stand = Stand { version: 4, pool: pool(&[1, 2], 1), since: 10, earlier: None };
    let membership = open(stand);
    for slot in [1, 10] {
        assert_eq!(names(membership.heir(slot)).as_deref(), Some("1, 2"));
        assert_eq!(names(membership.group(slot)), None);
        assert_eq!(membership.standing(slot), Standing::Filled);
    }
    assert_eq!(names(membership.heir(11)), None);
    assert_eq!(names(membership.group(11)).as_deref(), Some("1, 2"));
    // A walk from the beginning comes by everything again.
    for seq in 1..=10 {
        membership.learn(&change(seq, seq % 4, &[7]));
    }
    membership.learn(&change(11, 3, &[8]));
    assert_eq!(names(membership.group(12)).as_deref(), Some("1, 2"), "a late proposal");
    assert_eq!(membership.standing(12), Standing::Open);
    let folded = membership.with_known(40).with_known(30);
    assert_eq!(names(folded.group(41)).as_deref(), Some("1, 2"));
    assert_eq!((names(folded.group(42)), folded.known()), (None, 40));
}

#[test]
fn nothing_is_proposed_after_any_change_of_the_stores_before_the_log_is_opened_anew() {
    let membership = open(Stand::first(pool(&[1, 2], 1)));
    let other_capacity = entry(1, vec![settings(0, encode_message(&pool(&[1, 2], 9)))]);
    membership.learn(&other_capacity);
    assert_eq!(membership.standing(2), Standing::Changed { seq: 1 });
    assert_eq!(names(membership.group(2)).as_deref(), Some("1, 2"));
    let stand = membership.stand();
    assert_eq!((stand.version, stand.since, stand.earlier.is_some()), (1, 0, false));
    let anew = open(stand);
    anew.learn(&other_capacity);
    assert_eq!(anew.standing(2), Standing::Open);
    // What nobody can read is a version all the same, and changes nothing else.
    anew.learn(&entry(2, vec![settings(1, b"nonsense".to_vec())]));
    assert_eq!(anew.standing(3), Standing::Changed { seq: 2 });
    let stand = anew.stand();
    assert_eq!((stand.version, &stand.pool), (2, &pool(&[1, 2], 9)));
    // What this device cannot read because it lacks the keys may change everything.
    let blind = open(stand.clone());
    blind.learn(&other_capacity);
    blind.learn(&entry(2, vec![settings(1, b"nonsense".to_vec())]));
    blind.learn(&entry(3, vec![settings(2, b"locked".to_vec())]));
    assert_eq!(blind.standing(4), Standing::Changed { seq: 3 });
    assert_eq!(blind.stand(), stand, "so that the next opening looks at it again");
}

#[test]
fn store_that_began_anew_makes_another_group() {
    let before = pool(&[1, 2, 3], 1);
    let mut after = before.clone();
    after.stores[1].url.push_str("?here");
    assert!(are_one_group(&before, &after), "only its address changed");
    after.stores[1].begun_anew = Some(StoreId::from_bytes([9; 16]));
    assert!(!are_one_group(&before, &after));
}
