//! Several servers on one database, and databases that go away.

use std::sync::Arc;

use model::testing::put;
use model::{Genesis, Head, OpId, PackId};
use storage::ObjectKey;

use super::{Database, Story, World, genesis, write};
use crate::error::ServerError;
use crate::metadata::{Metadata, MetadataError};
use crate::services::sync_service::commit_all;
use crate::services::{batch, objects, workspaces};

pub(super) const STORIES: &[Story] = &[
    Story { name: "two_servers_commit_to_one_workspace_and_double_nothing", tell: two_servers },
    Story {
        name: "two_servers_repeat_the_same_operations_and_each_stands_once",
        tell: same_operations,
    },
    Story { name: "two_servers_do_not_exceed_a_quota_together", tell: quota_of_two },
    Story { name: "groups_that_name_workspaces_in_any_order_all_end", tell: any_order },
    Story {
        name: "a_lost_connection_leaves_nothing_half_done_and_comes_back",
        tell: lost_connection,
    },
];

/// How many commits each of several servers makes.
const COMMITS: u8 = 60;

/// How often they meet in the wrong order; a database takes a second to see that.
const ROUNDS: u8 = 8;

/// Runs `work` for several servers at once, each with a connection of its own.
pub(super) fn at_once<T: Send>(
    database: &Arc<dyn Database>,
    servers: u8,
    work: impl Fn(u8, &mut dyn Metadata) -> T + Sync,
) -> Vec<T> {
    std::thread::scope(|scope| {
        let work = &work;
        let run = |server| {
            let database = Arc::clone(database);
            scope.spawn(move || work(server, &mut *database.open()))
        };
        let threads: Vec<_> = (0..servers).map(run).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn op_id(server: u8, n: u8) -> OpId {
    let mut bytes = [0; 16];
    bytes[..2].copy_from_slice(&[server + 1, n + 1]);
    OpId::from_bytes(bytes)
}

fn two_servers(database: &Arc<dyn Database>) {
    let world = World::new(database);
    let people = world.people.clone();
    let told = at_once(database, 3, |server, metadata| {
        let mut heads = Vec::new();
        for first in (0..COMMITS).step_by(4) {
            let group = (first..first + 4).map(|n| {
                let mut request = people.request(0, &people.home, 1, vec![put(n + 1, 0, "x")]);
                request.commit.op_id = op_id(server, n);
                request
            });
            let outcomes = commit_all(metadata, group.collect());
            heads.extend(outcomes.into_iter().map(|outcome| outcome.unwrap().head));
        }
        heads
    });
    let entries = world.entries(&world.home);
    assert_eq!(entries.len(), 3 * usize::from(COMMITS));
    assert!(entries[0].follows(&world.home.head()));
    let mut heads: Vec<Head> = told.into_iter().flatten().collect();
    heads.sort_by_key(|head| head.seq);
    assert_eq!(heads, entries.iter().map(model::Entry::head).collect::<Vec<_>>());
    for n in 0..COMMITS {
        let version = world.version(&world.home, n + 1);
        assert_eq!(version, 1, "exactly one of three commits on one base is accepted");
    }
}

fn same_operations(database: &Arc<dyn Database>) {
    let world = World::new(database);
    let people = world.people.clone();
    let told = at_once(database, 3, |server, metadata| {
        let mut heads = Vec::new();
        for first in (0..COMMITS).step_by(5) {
            // Everybody sends the same, two of them in another order.
            let mut group: Vec<_> = (first..first + 5)
                .map(|n| {
                    let mut request = people.request(0, &people.home, 1, vec![put(n + 1, 0, "x")]);
                    request.commit.op_id = op_id(0, n);
                    request
                })
                .collect();
            group.rotate_left(usize::from(server));
            let mut outcomes = commit_all(metadata, group);
            outcomes.rotate_right(usize::from(server));
            heads.extend(outcomes.into_iter().map(|outcome| outcome.unwrap().head));
        }
        heads
    });
    assert_eq!(world.entries(&world.home).len(), usize::from(COMMITS));
    assert!(told.iter().all(|heads| *heads == told[0]), "everybody hears the same places");
}

fn quota_of_two(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    let people = world.people.clone();
    let account = people.ada[0].account;
    world.metadata.update_quota(account, Some(10_000)).unwrap();
    let accepted = at_once(database, 2, |server, metadata| {
        // Each has a workspace of its own, so nothing but the quota is between them.
        let genesis = [&people.home, &people.work][usize::from(server)];
        let (caller, workspace) = (people.ada[0], genesis.workspace());
        let mut accepted = 0;
        for n in 0..COMMITS {
            let key = ObjectKey::pack(PackId::from_bytes([n; 32]));
            let noted = write(metadata, |metadata| {
                objects::record(metadata, &caller, workspace, &key, 200)
            });
            accepted += u64::from(noted.is_ok());
            let mut request = people.request(0, genesis, 1, vec![put(n + 1, 0, "x")]);
            request.commit.op_id = op_id(server, n);
            let outcome = commit_all(metadata, vec![request]).pop().unwrap();
            let is_over = matches!(outcome, Err(ServerError::OverQuota { .. }));
            assert!(outcome.is_ok() || is_over, "{outcome:?}");
        }
        accepted
    });
    let used = world.metadata.used_bytes(account).unwrap();
    assert!(used <= 10_000 && used > 9_000, "{used}");
    assert!(accepted.iter().sum::<u64>() * 200 < used);
}

fn any_order(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    let people = world.people.clone();
    let caller = people.ada[0];
    let many: Vec<Genesis> = (0..8).map(|n| genesis(&format!("workspace {n}"))).collect();
    for genesis in &many {
        write(&mut *world.metadata, |metadata| workspaces::create(metadata, &caller, genesis))
            .unwrap();
    }
    at_once(database, 3, |server, metadata| {
        for n in 0..ROUNDS {
            let mut places: Vec<usize> = (0..many.len()).collect();
            places.rotate_left(usize::from(n) % many.len());
            if server % 2 == 0 {
                places.reverse();
            }
            let key = ObjectKey::pack(PackId::from_bytes([n; 32]));
            // Work that takes its rows one by one, in an order that may be the wrong one.
            let works = places.iter().take(2).map(|&place| {
                let workspace = many[place].workspace();
                let key = &key;
                let work: batch::Work<'_, bool> = Box::new(move |metadata| {
                    objects::record(metadata, &caller, workspace, key, 10)
                });
                work
            });
            let outcomes = batch::run(metadata, works.collect());
            assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
            let group = places.iter().map(|&place| {
                let mut request = people.request(0, &many[place], 1, vec![put(n + 1, 0, "x")]);
                request.commit.op_id = op_id(server, n);
                request
            });
            let outcomes = commit_all(metadata, group.collect());
            assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
        }
    });
    for genesis in &many {
        assert_eq!(world.entries(genesis).len(), 3 * usize::from(ROUNDS));
    }
}

fn lost_connection(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    let number = world.metadata.workspace(world.home.workspace()).unwrap().unwrap().number;
    world.commit_one(world.request(0, &world.home, 1, vec![put(1, 0, "a")])).unwrap();
    if !database.cut_connections() {
        return;
    }
    // Nobody was in a transaction: nobody notices.
    assert_eq!(world.entries(&world.home).len(), 1);
    database.cut_connections();
    world.commit_one(world.request(0, &world.home, 2, vec![put(2, 0, "b")])).unwrap();

    let works: Vec<batch::Work<'_, ()>> = vec![
        Box::new(|metadata| Ok(metadata.insert_object(number, "packs/1", 1)?)),
        Box::new(|metadata| {
            metadata.insert_object(number, "packs/2", 1)?;
            database.cut_connections();
            Ok(metadata.insert_object(number, "packs/3", 1)?)
        }),
        Box::new(|metadata| Ok(metadata.insert_object(number, "packs/4", 1)?)),
    ];
    let outcomes = batch::run(&mut *world.metadata, works);
    for outcome in &outcomes {
        let error = outcome.as_ref().unwrap_err();
        let is_named = matches!(error, ServerError::Metadata(MetadataError::Unreachable { .. }));
        assert!(is_named && error.is_retryable(), "{error:?}");
    }
    assert!(!world.metadata.is_in_transaction());
    assert_eq!(world.metadata.objects(number, "", "", 9).unwrap(), []);
    write(&mut *world.metadata, |metadata| Ok(metadata.insert_object(number, "packs/1", 1)?))
        .unwrap();
    world.commit_one(world.request(0, &world.home, 3, vec![put(3, 0, "c")])).unwrap();
    assert_eq!(world.entries(&world.home).len(), 3);
}
