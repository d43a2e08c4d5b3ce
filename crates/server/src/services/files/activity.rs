//! What happened in a workspace, read from a stretch of its log. Pure.
//!
//! *Non-goals*: knowing a node from before the stretch. What a change was is seen by what the node was before it, so a reader begins
//! some entries earlier than it tells of; where a node was changed last before that, a new name of it counts as a change like any other.

use std::collections::HashMap;
use std::convert::Infallible;

use model::codec::decode_message;
use model::decide::decide;
use model::{
    Action, Change, DeviceId, Entry, Head, Name, NodeId, NodeRecord, Outcome, Timestamp, Versions,
};

/// How many changes of one entry are told one by one; of the others only the number.
pub const CHANGES_SHOWN_MAX: usize = 20;

/// What became of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Happened {
    /// It is new.
    Made,
    /// It has another content, mode or time.
    Changed,
    /// It has another name; this was the old one.
    Renamed(Name),
    /// It is in another folder.
    Moved,
    /// It is gone.
    Deleted,
    /// It was gone, and is back.
    Restored,
    /// It is one side of a conflict from now on.
    KeptBeside,
    /// It is one side of a conflict no more.
    Decided,
}

/// A change that counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeSeen {
    /// The node.
    pub node: NodeId,
    /// The version that the change made.
    pub version: u64,
    /// What became of it.
    pub happened: Happened,
    /// What it is; of what was deleted, what it was, where that is known.
    pub record: Option<NodeRecord>,
}

/// What one entry did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Activity {
    /// The entry.
    pub seq: u64,
    /// When that was, by the clock of whoever did it.
    pub time: Timestamp,
    /// Who did it.
    pub device: DeviceId,
    /// What that device calls itself.
    pub device_name: String,
    /// How many changes of files, folders and links counted.
    pub count: usize,
    /// The first of them.
    pub changes: Vec<ChangeSeen>,
}

/// A node as the stretch has shown it so far.
#[derive(Debug, Clone)]
struct Known {
    version: u64,
    /// Nothing where it was not seen.
    record: Option<NodeRecord>,
    is_deleted: bool,
}

/// Finds what happened in entries, in order.
#[derive(Debug, Default)]
pub struct ActivityScan {
    known: HashMap<NodeId, Known>,
}

impl Versions for ActivityScan {
    type Error = Infallible;

    fn version(&self, node: &NodeId) -> Result<u64, Infallible> {
        Ok(self.known.get(node).map_or(0, |known| known.version))
    }
}

impl ActivityScan {
    /// Looks at the next entry; nothing where it changed no file, folder or link.
    pub fn note(&mut self, entry: &Entry) -> Option<Activity> {
        let commit = &entry.commit;
        // Whoever changes a node first in the stretch is taken at their word about its version.
        for Change { node, base, .. } in commit.changes.iter().filter(|it| !is_fence(it)) {
            let unseen = || Known { version: *base, record: None, is_deleted: false };
            self.known.entry(*node).or_insert_with(unseen);
        }
        let previous = Head { seq: entry.seq - 1, hash: entry.previous };
        let Ok(outcomes) = decide(self, &previous, commit);
        let (mut count, mut changes) = (0, Vec::new());
        for (change, outcome) in commit.changes.iter().zip(outcomes) {
            let Outcome::Accepted { version } = outcome else { continue };
            let Some(seen) = self.take(change, version) else { continue };
            count += 1;
            if changes.len() < CHANGES_SHOWN_MAX {
                changes.push(seen);
            }
        }
        (count > 0).then(|| Activity {
            seq: entry.seq,
            time: commit.time,
            device: commit.device,
            device_name: commit.device_name.clone(),
            count,
            changes,
        })
    }

    /// Takes over a change that counts; nothing where it is one of settings, or cannot be read.
    fn take(&mut self, change: &Change, version: u64) -> Option<ChangeSeen> {
        let node = change.node;
        let before = self.known.remove(&node);
        let record = match &change.action {
            Action::Put(payload) if !node.is_settings() => decode_message(payload).ok(),
            _ => None,
        };
        let is_deleted = change.action == Action::Delete;
        let old = before.as_ref().and_then(|before| before.record.clone());
        let kept = record.clone().or_else(|| old.clone());
        self.known.insert(node, Known { version, record: kept.clone(), is_deleted });
        if node.is_settings() || (record.is_none() && !is_deleted) {
            return None;
        }
        let was_deleted = before.is_some_and(|before| before.is_deleted);
        let happened = match &record {
            None => Happened::Deleted,
            Some(_) if was_deleted => Happened::Restored,
            Some(record) if version == 1 => first_of(record),
            Some(record) => old.map_or(Happened::Changed, |old| between(&old, record)),
        };
        Some(ChangeSeen { node, version, happened, record: kept })
    }
}

fn is_fence(change: &Change) -> bool {
    change.node == NodeId::FENCE
}

fn first_of(record: &NodeRecord) -> Happened {
    match record.conflict {
        Some(_) => Happened::KeptBeside,
        None => Happened::Made,
    }
}

/// Says what makes the difference between two versions.
fn between(old: &NodeRecord, new: &NodeRecord) -> Happened {
    match (old.conflict, new.conflict) {
        (None, Some(_)) => return Happened::KeptBeside,
        (Some(_), None) => return Happened::Decided,
        _ => {}
    }
    if !old.is_same_matter(new) || old.is_same_place(new) {
        return Happened::Changed;
    }
    match old.parent == new.parent {
        true => Happened::Renamed(old.name.clone()),
        false => Happened::Moved,
    }
}

#[cfg(test)]
mod tests {
    use model::testing::{commit, node, put, put_record};
    use model::{Commit, ConflictOrigin, EntryHash, NodeKind};

    use super::*;

    fn record(parent: u8, name: &str, mode: u32) -> NodeRecord {
        let parent = if parent == 0 { NodeId::ROOT } else { node(parent) };
        let (name, modified) = (Name::new(name).unwrap(), Timestamp::default());
        NodeRecord { parent, name, mode, modified, kind: NodeKind::Directory, conflict: None }
    }

    fn delete(n: u8, base: u64) -> Change {
        Change { node: node(n), base, action: Action::Delete }
    }

    /// What each entry is said to have done, the first of them being entry `from`.
    fn told(from: u64, commits: Vec<Commit>) -> Vec<Vec<Happened>> {
        let mut scan = ActivityScan::default();
        let entry = |(seq, commit)| Entry { seq, previous: EntryHash::NONE, commit };
        let entries = (from..).zip(commits).map(entry);
        let told = entries.map(|entry| scan.note(&entry));
        told.map(|found| found.map_or(Vec::new(), |it| it.changes))
            .map(|changes| changes.into_iter().map(|change| change.happened).collect())
            .collect()
    }

    #[test]
    fn each_change_is_told_as_what_it_is() {
        let conflict = Some(ConflictOrigin { node: node(2), base: 1 });
        let marked = NodeRecord { conflict, ..record(0, "b", 0) };
        let old = Name::new("a").unwrap();
        let found = told(
            1,
            vec![
                commit(1, vec![put_record(1, 0, &record(0, "a", 0))]),
                commit(2, vec![put_record(1, 1, &record(0, "b", 0))]),
                commit(3, vec![put_record(1, 2, &record(2, "b", 0))]),
                commit(4, vec![put_record(1, 3, &record(2, "c", 7))]),
                commit(5, vec![delete(1, 4)]),
                commit(6, vec![put_record(1, 5, &record(0, "b", 0))]),
                commit(7, vec![put_record(1, 6, &marked)]),
                commit(8, vec![put_record(1, 7, &record(0, "b", 0))]),
                commit(9, vec![put_record(3, 0, &marked)]),
            ],
        );
        let flat: Vec<_> = found.into_iter().flatten().collect();
        assert_eq!(
            flat,
            [
                Happened::Made,
                Happened::Renamed(old),
                Happened::Moved,
                Happened::Changed,
                Happened::Deleted,
                Happened::Restored,
                Happened::KeptBeside,
                Happened::Decided,
                Happened::KeptBeside,
            ]
        );
    }

    #[test]
    fn what_did_not_count_is_not_told_and_what_is_older_is_a_change() {
        let lost = put(1, 4, "lost");
        let pool = Change { node: NodeId::POOL, base: 0, action: Action::Put(vec![1]) };
        let found = told(
            90,
            vec![
                commit(1, vec![put(1, 4, "x")]),
                commit(2, vec![lost.clone()]),
                commit(3, vec![pool]),
                commit(4, vec![lost, put(1, 5, "y"), delete(7, 2)]),
            ],
        );
        let renamed = Happened::Changed;
        assert_eq!(
            found,
            [vec![Happened::Changed], vec![], vec![], vec![renamed, Happened::Deleted]]
        );
    }

    #[test]
    fn of_an_entry_with_many_changes_the_first_are_told_and_all_are_counted() {
        let changes = (1..=50).map(|n| put(n, 0, &format!("f{n}"))).collect();
        let entry = Entry { seq: 1, previous: EntryHash::NONE, commit: commit(1, changes) };
        let found = ActivityScan::default().note(&entry).unwrap();
        assert_eq!((found.count, found.changes.len()), (50, CHANGES_SHOWN_MAX));
        assert_eq!(found.changes[0].version, 1);
    }
}
