//! Accounts, devices, workspaces and objects.

use std::sync::Arc;

use model::{DeviceId, Genesis, PackId};
use storage::ObjectKey;

use super::{Database, Story, World, genesis, write};
use crate::error::ServerError;
use crate::metadata::{DeviceRecord, Metadata, MetadataError};
use crate::services::{batch, objects, workspaces};

pub(super) const STORIES: &[Story] = &[
    Story { name: "an_account_is_made_once_and_found_by_its_name", tell: account },
    Story { name: "devices_are_found_by_token_and_go_with_their_account", tell: devices },
    Story { name: "a_name_of_a_workspace_is_taken_once_by_each_account", tell: names },
    Story { name: "text_that_a_database_cannot_hold_finds_nothing", tell: unstorable },
    Story { name: "objects_are_listed_by_prefix_in_the_order_of_keys", tell: listing },
    Story { name: "used_bytes_follow_objects_and_count_none_twice", tell: used },
    Story { name: "a_reached_quota_refuses_packs_and_commits_until_there_is_room", tell: quota },
    Story { name: "room_that_is_reserved_is_nobody_elses", tell: reserved },
    Story { name: "work_that_fails_undoes_itself_and_nothing_else", tell: one_fails },
];

fn account(database: &Arc<dyn Database>) {
    let mut metadata = database.open();
    let id = metadata.insert_account("ada", "hash", 7).unwrap();
    let found = metadata.account_by_name("ada").unwrap().unwrap();
    assert_eq!((found.id, found.created, found.quota_bytes), (id, 7, None));
    let again = metadata.insert_account("ada", "other", 8);
    assert_eq!(again, Err(MetadataError::Taken { what: "an account called 'ada'".to_owned() }));
    metadata.insert_account("Zoe", "hash", 9).unwrap();
    let names = metadata.accounts().unwrap().into_iter().map(|account| account.name);
    // By their bytes, whatever the database speaks.
    assert_eq!(names.collect::<Vec<_>>(), ["Zoe", "ada"]);
    metadata.update_account(id, "new", true).unwrap();
    metadata.update_quota(id, Some(5)).unwrap();
    let found = metadata.account(id).unwrap().unwrap();
    assert_eq!((found.password_hash.as_str(), found.is_disabled), ("new", true));
    assert_eq!(found.quota_bytes, Some(5));
    metadata.update_quota(id, None).unwrap();
    assert_eq!(database.open().account(id).unwrap().unwrap().quota_bytes, None);
}

fn devices(database: &Arc<dyn Database>) {
    let mut metadata = database.open();
    let account = metadata.insert_account("ada", "hash", 0).unwrap();
    let device = DeviceRecord {
        id: DeviceId::from_bytes([1; 16]),
        account,
        name: "laptop".to_owned(),
        created: 1,
        last_seen: 2,
        is_revoked: false,
        limits: None,
    };
    metadata.insert_device(&device, &[7; 32]).unwrap();
    assert_eq!(metadata.device_by_token(&[7; 32]).unwrap().as_ref(), Some(&device));
    assert_eq!(metadata.device_by_token(&[8; 32]).unwrap(), None);
    let twin = DeviceRecord { id: DeviceId::from_bytes([2; 16]), ..device.clone() };
    let same_token = metadata.insert_device(&twin, &[7; 32]);
    assert!(matches!(same_token, Err(MetadataError::Taken { .. })), "{same_token:?}");
    metadata.rename_device(device.id, "desktop").unwrap();
    metadata.touch_device(device.id, 60).unwrap();
    metadata.revoke_device(device.id).unwrap();
    let expected =
        DeviceRecord { name: "desktop".to_owned(), last_seen: 60, is_revoked: true, ..device };
    assert_eq!(metadata.devices(account).unwrap(), std::slice::from_ref(&expected));
    assert_eq!(metadata.device(expected.id).unwrap().as_ref(), Some(&expected));
    assert_eq!(metadata.welcome_devices(&[expected.id, twin.id]).unwrap().len(), 0);
    metadata.delete_account(account).unwrap();
    assert_eq!(metadata.device(expected.id).unwrap(), None);
}

fn names(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    let (ada, bob) = (world.ada[0], world.bob);
    let other = Genesis { content_key: [9; 32], ..genesis("home") };
    let taken = write(&mut *world.metadata, |metadata| workspaces::create(metadata, &ada, &other));
    assert!(matches!(taken, Err(ServerError::Taken { .. })), "{taken:?}");
    let home = world.home.clone();
    let again = write(&mut *world.metadata, |metadata| workspaces::create(metadata, &ada, &home));
    assert!(!again.unwrap().1);
    let stolen = write(&mut *world.metadata, |metadata| workspaces::create(metadata, &bob, &home));
    assert!(matches!(stolen, Err(ServerError::Taken { .. })), "{stolen:?}");
    write(&mut *world.metadata, |metadata| workspaces::create(metadata, &bob, &other)).unwrap();
    let names = world.metadata.workspaces(ada.account).unwrap().into_iter().map(|one| one.name);
    assert_eq!(names.collect::<Vec<_>>(), ["home", "work"]);
    let account = ada.account;
    let refused = world.metadata.delete_account(account);
    assert!(refused.is_err(), "an account that owns something stays");
}

fn unstorable(database: &Arc<dyn Database>) {
    let world = World::new(database);
    assert_eq!(world.metadata.account_by_name("a\0da").unwrap(), None);
    let account = world.ada[0].account;
    assert_eq!(world.metadata.workspace_by_name(account, "ho\0me").unwrap(), None);
    let number = world.metadata.workspace(world.home.workspace()).unwrap().unwrap().number;
    assert_eq!(world.metadata.objects(number, "\0", "", 9).unwrap(), []);
    assert_eq!(world.metadata.entries(number, u64::MAX, u64::MAX).unwrap(), [[0_u8; 0]; 0]);
    assert_eq!(world.metadata.entry_hash(number, u64::MAX).unwrap(), None);
}

fn listing(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    let number = world.metadata.workspace(world.home.workspace()).unwrap().unwrap().number;
    assert!(!world.metadata.has_objects().unwrap());
    for key in ["packs/ab/1", "packs/aa/2", "pages/aa/3", "packs/b"] {
        world.metadata.insert_object(number, key, 5).unwrap();
    }
    let list = |prefix: &str, start_after: &str, limit| {
        let found = world.metadata.objects(number, prefix, start_after, limit).unwrap();
        found.into_iter().map(|(key, _)| key).collect::<Vec<_>>()
    };
    assert_eq!(list("", "", 10), ["packs/aa/2", "packs/ab/1", "packs/b", "pages/aa/3"]);
    assert_eq!(list("packs/a", "", 10), ["packs/aa/2", "packs/ab/1"]);
    assert_eq!(list("packs/", "packs/aa/2", 1), ["packs/ab/1"]);
    assert_eq!(list("pages/", "packs/", 10), ["pages/aa/3"]);
    assert_eq!(list("log/", "", 10), [""; 0]);
    assert!(world.metadata.has_objects().unwrap());
}

fn used(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    let account = world.ada[0].account;
    let number = world.metadata.workspace(world.home.workspace()).unwrap().unwrap().number;
    for _ in 0..2 {
        world.metadata.insert_object(number, "pages/x", 100).unwrap();
    }
    world.metadata.insert_object(number, "packs/y", 10).unwrap();
    assert_eq!(world.metadata.used_bytes(account).unwrap(), 110);
    for _ in 0..2 {
        world.metadata.delete_object(number, "pages/x").unwrap();
    }
    assert_eq!(world.metadata.used_bytes(account).unwrap(), 10);
    assert_eq!(world.metadata.object_length(number, "packs/y").unwrap(), Some(10));
}

fn quota(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    let (caller, workspace) = (world.ada[0], world.home.workspace());
    world.metadata.update_quota(caller.account, Some(1000)).unwrap();
    let record = |world: &mut World, n: u8, length| {
        let key = ObjectKey::pack(PackId::from_bytes([n; 32]));
        write(&mut *world.metadata, |metadata| {
            objects::record(metadata, &caller, workspace, &key, length)
        })
    };
    record(&mut world, 1, 900).unwrap();
    let refused = record(&mut world, 2, 200);
    let is_over = matches!(refused, Err(ServerError::OverQuota { needed: 200, left: 100 }));
    assert!(is_over, "{refused:?}");
    // What an account holds counts over all of its workspaces.
    let mut large = world.request(0, &world.work, 1, vec![]);
    large.commit.inline_packs = vec![(0..=255).collect()];
    let refused = world.commit_one(large.clone());
    assert!(matches!(refused, Err(ServerError::OverQuota { .. })), "{refused:?}");
    record(&mut world, 3, 100).unwrap();
    assert_eq!(world.metadata.used_bytes(caller.account).unwrap(), 1000);
    world.metadata.update_quota(caller.account, Some(2000)).unwrap();
    world.commit_one(large).unwrap();
    let used = world.metadata.used_bytes(caller.account).unwrap();
    assert!(used > 1256, "{used}");
}

fn reserved(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    let caller = world.ada[0];
    world.metadata.update_quota(caller.account, Some(1000)).unwrap();
    let key = |n: u8| ObjectKey::pack(PackId::from_bytes([n; 32]));
    let (home, work) = (world.home.workspace(), world.work.workspace());
    let metadata = &mut *world.metadata;
    let reserve = |metadata: &mut dyn Metadata, workspace, n, length, now| {
        write(metadata, |metadata| {
            objects::reserve(metadata, &caller, workspace, (&key(n), length), now)
        })
    };
    let record = |metadata: &mut dyn Metadata, workspace, n, length| {
        write(metadata, |metadata| objects::record(metadata, &caller, workspace, &key(n), length))
    };
    let used = |metadata: &dyn Metadata| metadata.used_bytes(caller.account).unwrap();
    for _ in 0..2 {
        reserve(metadata, home, 1, 900, 0).unwrap();
    }
    assert_eq!(used(metadata), 900);
    let number = metadata.workspace(home).unwrap().unwrap().number;
    assert_eq!(metadata.reserved_bytes(number).unwrap(), 900);
    let refused = reserve(metadata, work, 2, 200, 60);
    let is_over = matches!(refused, Err(ServerError::OverQuota { needed: 200, left: 100 }));
    assert!(is_over, "{refused:?}");
    assert!(matches!(record(metadata, work, 2, 200), Err(ServerError::OverQuota { .. })));
    // It is not stored before it is noted, and then it is not counted twice; a lower quota takes nothing back.
    assert!(matches!(
        objects::find(metadata, &caller, home, &key(1)),
        Err(ServerError::NotFound { .. })
    ));
    metadata.update_quota(caller.account, Some(500)).unwrap();
    assert!(record(metadata, home, 1, 900).unwrap());
    assert!(!record(metadata, home, 1, 900).unwrap());
    assert_eq!(used(metadata), 900);

    metadata.update_quota(caller.account, Some(1000)).unwrap();
    reserve(metadata, home, 3, 100, 60).unwrap();
    write(metadata, |metadata| objects::release(metadata, home, &key(3))).unwrap();
    assert_eq!(used(metadata), 900);
    // What a server that died has held is given to others after a day.
    reserve(metadata, home, 4, 100, 60).unwrap();
    let day = 24 * 60 * 60;
    assert!(reserve(metadata, work, 5, 100, 60 + day).is_err());
    reserve(metadata, work, 5, 100, 61 + day).unwrap();
    assert_eq!(used(metadata), 1000);
    // Should its bytes come after all, there must be room again.
    assert!(record(metadata, home, 4, 100).is_err());
}

fn one_fails(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    let number = world.metadata.workspace(world.home.workspace()).unwrap().unwrap().number;
    let insert = |key: &'static str, is_refused: bool| -> batch::Work<'static, ()> {
        Box::new(move |metadata| {
            metadata.insert_object(number, key, 1)?;
            match is_refused {
                true => Err(ServerError::NotSignedIn),
                false => Ok(()),
            }
        })
    };
    // The second fails in the database, the third after it has written.
    let taken: batch::Work<'static, ()> =
        Box::new(|metadata| Ok(metadata.insert_account("ada", "hash", 0).map(drop)?));
    let works =
        vec![insert("packs/1", false), taken, insert("packs/2", true), insert("packs/3", false)];
    let outcomes = batch::run(&mut *world.metadata, works);
    let is_well: Vec<bool> = outcomes.iter().map(Result::is_ok).collect();
    assert_eq!(is_well, [true, false, false, true], "{outcomes:?}");
    let keys = database.open().objects(number, "", "", 9).unwrap();
    assert_eq!(keys, [("packs/1".to_owned(), 1), ("packs/3".to_owned(), 1)]);
    assert!(!world.metadata.is_in_transaction());
}
