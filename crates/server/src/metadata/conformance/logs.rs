//! Commits and logs.

use std::sync::Arc;

use model::testing::put;
use model::{Commit, Head, PackId, PackRef, Random, WorkspaceId};
use storage::ObjectKey;

use super::{Damage, Database, Numbers, Story, World, write};
use crate::error::ServerError;
use crate::metadata::MetadataError;
use crate::services::sync_service::{self, CommitRequest, Committed, commit_all};
use crate::services::{accounts, objects};

pub(super) const STORIES: &[Story] = &[
    Story { name: "commits_form_a_chain_that_is_read_in_pages", tell: chain },
    Story { name: "two_devices_race_for_one_file_and_one_wins", tell: race },
    Story { name: "an_operation_that_is_repeated_stands_once", tell: replay },
    Story { name: "one_bad_commit_of_a_group_harms_no_other", tell: bad_commit },
    Story { name: "commits_wait_for_their_packs", tell: packs },
    Story { name: "a_log_that_lacks_what_was_seen_is_not_continued", tell: seen },
    Story { name: "a_damaged_entry_is_damage_and_nothing_else", tell: damaged_entry },
    Story { name: "a_damaged_workspace_harms_its_own_commits_only", tell: damaged_head },
    Story { name: "a_newer_checkpoint_replaces_an_older_one", tell: checkpoint },
    Story { name: "large_entries_are_kept_whole", tell: large },
];

fn chain(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    let mut head = world.home.head();
    for group in 0..6_u8 {
        // Of one group each, into both workspaces.
        let requests = (0..10).map(|n| {
            let op = group * 10 + n + 1;
            let genesis = if op % 5 == 0 { &world.work } else { &world.home };
            world.request(usize::from(op % 2), genesis, op, vec![put(op, 0, "a file")])
        });
        let requests: Vec<_> = requests.collect();
        for (request, outcome) in
            requests.clone().into_iter().zip(commit_all(&mut *world.metadata, requests))
        {
            let committed = outcome.unwrap();
            let entry = committed.appended.unwrap();
            assert_eq!(entry.commit, request.commit);
            if request.workspace == world.home.workspace() {
                assert!(entry.follows(&head));
                head = committed.head;
            }
        }
    }
    assert_eq!(world.head(&world.home), head);
    let (home, work) = (world.entries(&world.home), world.entries(&world.work));
    assert_eq!((home.len(), work.len()), (48, 12));
    assert_eq!(home.last().unwrap().head(), head);
    let ops: Vec<u8> = work.iter().map(|entry| entry.commit.op_id.as_bytes()[0]).collect();
    assert!(ops.is_sorted(), "{ops:?}");
    let number = world.metadata.workspace(world.home.workspace()).unwrap().unwrap().number;
    let page = world.metadata.entries(number, 10, 1).unwrap();
    assert_eq!(page.len(), 1, "at least one, however small the page");
    let stored = world.metadata.entries(number, 0, u64::MAX).unwrap();
    let length: usize = stored.iter().map(Vec::len).sum();
    let record = world.metadata.workspace(world.home.workspace()).unwrap().unwrap();
    assert_eq!(record.used_bytes, length as u64);
}

fn race(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    let group: Vec<_> = (1..=20)
        .map(|op| world.request(usize::from(op % 2), &world.home, op, vec![put(1, 0, "mine")]))
        .collect();
    assert!(commit_all(&mut *world.metadata, group).iter().all(Result::is_ok));
    assert_eq!(world.version(&world.home, 1), 1);
    // The loser knows better now, in another group and in the same one.
    let group = vec![
        world.request(0, &world.home, 21, vec![put(1, 1, "second")]),
        world.request(1, &world.home, 22, vec![put(1, 2, "third"), put(1, 3, "fourth")]),
        world.request(1, &world.home, 23, vec![put(1, 2, "too late")]),
    ];
    assert!(commit_all(&mut *world.metadata, group).iter().all(Result::is_ok));
    assert_eq!(world.version(&world.home, 1), 4);
    assert_eq!(world.entries(&world.home).len(), 23, "what lost stands in the log, too");
    assert_eq!(world.version(&world.work, 1), 0, "versions are those of one workspace");
}

fn replay(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    let first = world.request(0, &world.home, 1, vec![put(1, 0, "a")]);
    let head = world.commit_one(first.clone()).unwrap().head;
    let mut reused = first.clone();
    reused.commit.changes = vec![put(2, 0, "b")];
    let mut reused_large = first.clone();
    reused_large.commit.changes = (1..=200).map(|n| put(n, 0, "another name")).collect();
    let twice = world.request(0, &world.home, 2, vec![put(2, 0, "b")]);
    let elsewhere = world.request(1, &world.home, 1, vec![put(3, 0, "c")]);
    let other_workspace = world.request(0, &world.work, 1, vec![put(1, 0, "a")]);
    let group = vec![first, reused, reused_large, twice.clone(), twice, elsewhere, other_workspace];
    let outcomes = commit_all(&mut *world.metadata, group);
    let placed = |n: usize| {
        let committed: &Committed = outcomes[n].as_ref().unwrap();
        (committed.head, committed.appended.is_some())
    };
    assert_eq!(placed(0), (head, false));
    for n in [1, 2] {
        let is_reused = matches!(outcomes[n], Err(ServerError::OperationReused { seq: 1 }));
        assert!(is_reused, "{:?}", outcomes[n]);
    }
    assert!(placed(3).1 && !placed(4).1);
    assert_eq!(placed(3).0, placed(4).0);
    assert_eq!((placed(5).0.seq, placed(6).0.seq), (3, 1));
    assert_eq!(world.entries(&world.home).len(), 3);
}

fn bad_commit(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    let good = world.request(0, &world.home, 1, vec![put(1, 0, "a")]);
    let mut without_pack = world.request(0, &world.home, 2, vec![put(2, 0, "b")]);
    without_pack.commit.packs = vec![PackRef { id: PackId::from_bytes([9; 32]), length: 5 }];
    let false_name = CommitRequest { caller: world.ada[1], ..good.clone() };
    let stranger = CommitRequest {
        caller: world.bob,
        commit: Commit { device: world.bob.device, ..good.commit.clone() },
        ..good
    };
    let mut nowhere = world.request(1, &world.home, 3, vec![]);
    nowhere.workspace = WorkspaceId::from_bytes([5; 16]);
    let also_good = world.request(1, &world.home, 4, vec![put(3, 0, "c")]);
    let group = vec![good, without_pack, false_name, stranger, nowhere, also_good];
    let outcomes = commit_all(&mut *world.metadata, group);
    assert_eq!(outcomes[0].as_ref().unwrap().head.seq, 1);
    assert!(matches!(outcomes[1], Err(ServerError::PackMissing { .. })));
    assert!(matches!(outcomes[2], Err(ServerError::Forbidden { .. })));
    assert!(matches!(outcomes[3], Err(ServerError::NotFound { .. })));
    assert!(matches!(outcomes[4], Err(ServerError::NotFound { .. })));
    assert_eq!(outcomes[5].as_ref().unwrap().head.seq, 2);
    assert_eq!(world.version(&world.home, 2), 0);
    let (owner, revoked) = (world.ada[0], world.ada[1].device);
    write(&mut *world.metadata, |metadata| accounts::revoke_device(metadata, &owner, revoked))
        .unwrap();
    let refused = world.commit_one(world.request(1, &world.home, 5, vec![]));
    assert!(matches!(refused, Err(ServerError::NotSignedIn)), "{refused:?}");
}

fn packs(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    let (caller, workspace) = (world.ada[0], world.home.workspace());
    let pack = PackRef { id: PackId::from_bytes([5; 32]), length: 1000 };
    let mut request = world.request(0, &world.home, 1, vec![put(1, 0, "a")]);
    request.commit.packs = vec![pack];
    let record = |world: &mut World, workspace, length| {
        write(&mut *world.metadata, |metadata| {
            objects::record(metadata, &caller, workspace, &ObjectKey::pack(pack.id), length)
        })
    };
    // In another workspace, and in another length, it is another one.
    let elsewhere = world.work.workspace();
    record(&mut world, elsewhere, 1000).unwrap();
    let refused = world.commit_one(request.clone());
    assert!(matches!(refused, Err(ServerError::PackMissing { .. })), "{refused:?}");
    assert!(record(&mut world, workspace, 1000).unwrap());
    assert!(!record(&mut world, workspace, 1000).unwrap());
    let mut longer = request.clone();
    longer.commit.packs[0].length = 1001;
    let refused = world.commit_one(longer);
    assert!(matches!(refused, Err(ServerError::PackMissing { .. })), "{refused:?}");
    assert_eq!(world.commit_one(request).unwrap().head.seq, 1);
}

fn seen(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    let first = world.request(0, &world.home, 1, vec![put(1, 0, "a")]);
    let head = world.commit_one(first).unwrap().head;
    let mut op = 1;
    let mut with_seen = |seen| {
        op += 1;
        let mut request = world.request(0, &world.home, op, vec![put(op, 0, "b")]);
        request.commit.seen = seen;
        request
    };
    let wrong = model::EntryHash::from_bytes([3; 32]);
    let group = vec![
        with_seen(Head { seq: 2, hash: head.hash }),
        with_seen(Head { seq: 1, hash: wrong }),
        with_seen(Head { seq: 0, hash: wrong }),
        with_seen(Head { seq: u64::MAX, hash: wrong }),
        with_seen(head),
        with_seen(world.home.head()),
        // By now there is a second entry, of this very group.
        with_seen(head),
    ];
    let outcomes = commit_all(&mut *world.metadata, group);
    for outcome in &outcomes[..4] {
        assert!(matches!(outcome, Err(ServerError::HistoryLost { .. })), "{outcome:?}");
    }
    let places = outcomes[4..].iter().map(|outcome| outcome.as_ref().unwrap().head.seq);
    assert_eq!(places.collect::<Vec<_>>(), [2, 3, 4]);
}

fn damaged_entry(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    let first = world.request(0, &world.home, 1, vec![put(1, 0, "a")]);
    world.commit_one(first.clone()).unwrap();
    database.damage(Damage::Entries { seq: 1 });
    let (caller, workspace) = (world.ada[0], world.home.workspace());
    let read = sync_service::entries(&*world.metadata, &caller, workspace, 0, 1 << 20);
    let is_damage = matches!(read, Err(ServerError::Metadata(MetadataError::Damaged { .. })));
    assert!(is_damage, "{read:?}");
    let next = world.request(1, &world.home, 2, vec![put(2, 0, "b")]);
    let outcomes = commit_all(&mut *world.metadata, vec![first, next]);
    let replayed = &outcomes[0];
    let is_damage = matches!(replayed, Err(ServerError::Metadata(MetadataError::Damaged { .. })));
    assert!(is_damage, "{replayed:?}");
    assert_eq!(outcomes[1].as_ref().unwrap().head.seq, 2);
}

fn damaged_head(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    database.damage(Damage::Head { workspace: "work" });
    let group: Vec<_> = (1..=9)
        .map(|op| {
            let genesis = if op == 4 { &world.work } else { &world.home };
            world.request(0, genesis, op, vec![put(op, 0, "a")])
        })
        .collect();
    let outcomes = commit_all(&mut *world.metadata, group);
    let is_well: Vec<bool> = outcomes.iter().map(Result::is_ok).collect();
    let expected: Vec<bool> = (1..=9).map(|op| op != 4).collect();
    assert_eq!(is_well, expected, "{outcomes:?}");
    assert!(outcomes[3].as_ref().is_err_and(ServerError::is_internal));
    assert_eq!(world.entries(&world.home).len(), 8);
}

fn checkpoint(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    let number = world.metadata.workspace(world.home.workspace()).unwrap().unwrap().number;
    assert_eq!(world.metadata.checkpoint(number).unwrap(), None);
    for seq in [3, 7] {
        let bytes = vec![seq; 5000];
        world.metadata.set_checkpoint(number, u64::from(seq), &bytes).unwrap();
        assert_eq!(world.metadata.checkpoint(number).unwrap(), Some((u64::from(seq), bytes)));
    }
    let bytes = world.metadata.genesis(number).unwrap();
    assert_eq!(bytes, model::codec::encode_message(&world.home));
}

fn large(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    let mut noise = vec![0; 60_000];
    Numbers::default().fill(&mut noise);
    for op in 1..=3 {
        let mut request = world.request(0, &world.home, op, vec![put(op, 0, "a")]);
        request.commit.inline_packs = vec![noise.clone()];
        world.commit_one(request).unwrap();
    }
    let number = world.metadata.workspace(world.home.workspace()).unwrap().unwrap().number;
    assert_eq!(world.metadata.entries(number, 0, 130_000).unwrap().len(), 2);
    let entries = world.entries(&world.home);
    assert_eq!(entries.len(), 3);
    assert!(entries.iter().all(|entry| entry.commit.inline_packs == [noise.clone()]));
}
