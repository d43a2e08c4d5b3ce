//! When devices were last fully in sync.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::{Database, Numbers, Story, World, write};
use crate::auth::Caller;
use crate::error::ServerError;
use crate::metadata::{MemberRole, Metadata, Scope};
use crate::services::tokens::{self, NewToken};
use crate::services::{members, sync_service};

pub(super) const STORIES: &[Story] =
    &[Story { name: "devices_are_listed_by_how_long_they_were_not_in_sync", tell: told }];

fn told(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    let [one, two] = world.ada;
    let (ada, bob) = (one.account, world.bob);
    let (home, work) = (world.home.workspace(), world.work.workspace());
    let note = |metadata: &mut dyn Metadata, caller, workspace, now| {
        write(metadata, |metadata| sync_service::note_in_sync(metadata, &caller, workspace, now))
    };
    let worst = |metadata: &dyn Metadata, limit| {
        let found = metadata.longest_unsynced(limit).unwrap().into_iter();
        found.map(|device| (device.account, device.id, device.since)).collect::<Vec<_>>()
    };
    let of = |name: &str, caller: Caller, since| (name.to_owned(), caller.device, since);
    let metadata = &mut *world.metadata;
    let synced = |metadata: &dyn Metadata, account| {
        metadata.device_syncs(account).unwrap().into_iter().collect::<BTreeMap<_, _>>()
    };
    assert!(synced(metadata, ada).is_empty());
    let signed_in = metadata.devices(ada).unwrap()[0].created;
    assert_eq!(worst(metadata, 9).len(), 3);
    assert!(worst(metadata, 9).iter().all(|device| device.2 == signed_in), "they never were");

    note(metadata, two, home, 50).unwrap();
    note(metadata, one, home, 60).unwrap();
    note(metadata, one, work, 90).unwrap();
    assert_eq!(synced(metadata, ada), BTreeMap::from([(one.device, 60), (two.device, 50)]));
    note(metadata, one, home, 80).unwrap();
    assert_eq!(synced(metadata, ada), BTreeMap::from([(one.device, 80), (two.device, 50)]));
    let all = [of("bob", bob, signed_in), of("ada", two, 50), of("ada", one, 80)];
    assert_eq!(worst(metadata, 9), all);
    assert_eq!(worst(metadata, 2), all[..2]);
    assert!(matches!(note(metadata, bob, home, 70), Err(ServerError::NotFound { .. })));

    // What somebody was shut out of holds nobody up.
    write(metadata, |metadata| members::set(metadata, &one, home, "bob", MemberRole::View, 7))
        .unwrap();
    note(metadata, bob, home, 70).unwrap();
    assert_eq!(metadata.device_syncs(bob.account).unwrap(), [(bob.device, 70)]);
    assert_eq!(worst(metadata, 9)[1], of("bob", bob, 70));
    write(metadata, |metadata| members::remove(metadata, &one, home, "bob")).unwrap();
    assert_eq!(metadata.device_syncs(bob.account).unwrap(), []);
    assert_eq!(worst(metadata, 1), [of("bob", bob, signed_in)]);

    let new = NewToken { name: "p".to_owned(), scope: Scope::Read, workspace: None, expires: None };
    let numbers = Numbers(AtomicU64::new(1 << 40));
    write(metadata, |metadata| tokens::add(metadata, &numbers, &one, &new, 0)).unwrap();
    assert_eq!(worst(metadata, 9).len(), 3, "programs sync nothing");
    metadata.revoke_device(two.device).unwrap();
    assert_eq!(worst(metadata, 9), [of("bob", bob, signed_in), of("ada", one, 80)]);
    metadata.update_account(bob.account, "!", true).unwrap();
    assert_eq!(worst(metadata, 9), [of("ada", one, 80)]);
}
