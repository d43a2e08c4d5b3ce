//! Accounts with as many devices as there may be: who signs in, and who makes room.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use model::DeviceId;

use super::several::at_once;
use super::{Database, Numbers, Story, World, write};
use crate::auth::Caller;
use crate::error::{Result, ServerError};
use crate::limits::DEVICES_MAX;
use crate::metadata::{AccountRecord, DeviceRecord, Metadata, Scope};
use crate::services::tokens::{self, NewToken};
use crate::services::{passwords, sync_service};

pub(super) const STORIES: &[Story] = &[
    Story { name: "who_was_seen_longest_ago_makes_room_in_a_full_account", tell: makes_room },
    Story { name: "devices_that_hold_folders_in_sync_make_no_room", tell: in_sync },
    Story { name: "several_sign_in_to_a_full_account_at_once", tell: several },
];

const DAY: i64 = 24 * 60 * 60;

/// When somebody signs in.
const NOW: i64 = 100 * DAY;

/// Fills the account of `ada`, whose first two devices were seen first, by devices that were seen one second after the other.
fn fill(world: &mut World) -> (AccountRecord, Vec<DeviceId>) {
    let account = world.ada[0].account;
    let tab = |seen: i64| {
        let mut bytes = [7; DeviceId::LENGTH];
        bytes[..8].copy_from_slice(&seen.to_be_bytes());
        let (id, name) = (DeviceId::from_bytes(bytes), "tab".to_owned());
        let (created, last_seen) = (seen, seen);
        DeviceRecord { id, account, name, created, last_seen, is_revoked: false, limits: None }
    };
    let tabs: Vec<_> = (2..DEVICES_MAX as i64).map(tab).collect();
    let insert = |metadata: &mut dyn Metadata| {
        let hash_of = |tab: &DeviceRecord| *blake3::hash(tab.id.as_bytes()).as_bytes();
        tabs.iter().try_for_each(|tab| Ok(metadata.insert_device(tab, &hash_of(tab))?))
    };
    write(&mut *world.metadata, insert).unwrap();
    let devices = tabs.iter().map(|tab| tab.id).collect();
    (world.metadata.account(account).unwrap().unwrap(), devices)
}

/// Signs in, and returns the new device and those that made room.
fn sign_in(
    metadata: &mut dyn Metadata,
    account: &AccountRecord,
    salt: u64,
) -> Result<(Caller, Vec<DeviceId>)> {
    let random = Numbers(AtomicU64::new((2 << 40) + (salt << 20)));
    let signed_in = write(metadata, |metadata| {
        passwords::sign_in(metadata, &random, account, None, ("new", NOW))
    })?;
    Ok((signed_in.caller, signed_in.made_room))
}

fn signed_in(metadata: &dyn Metadata, account: &AccountRecord) -> BTreeSet<DeviceId> {
    let devices = metadata.devices(account.id).unwrap().into_iter();
    let counts = devices.filter(|one| !one.is_revoked && one.limits.is_none());
    counts.map(|one| one.id).collect()
}

fn makes_room(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    let [one, two] = world.ada;
    let (account, tabs) = fill(&mut world);
    let metadata = &mut *world.metadata;
    // The token of an application takes no place of a device, and makes none free.
    let new = NewToken { name: "p".to_owned(), scope: Scope::Read, workspace: None, expires: None };
    let numbers = Numbers(AtomicU64::new(1 << 50));
    let added = write(metadata, |metadata| tokens::add(metadata, &numbers, &one, &new, 0));
    let token = added.unwrap().0.id;
    metadata.touch_device(one.device, NOW).unwrap();
    let (first, made_room) = sign_in(metadata, &account, 1).unwrap();
    assert_eq!(made_room, [two.device]);
    assert!(metadata.device(two.device).unwrap().unwrap().is_revoked);
    assert_eq!(sign_in(metadata, &account, 2).unwrap().1, [tabs[0]]);
    let left = signed_in(metadata, &account);
    assert_eq!(left.len(), DEVICES_MAX);
    assert!(left.contains(&one.device) && left.contains(&first.device));
    assert!(!metadata.device(token).unwrap().unwrap().is_revoked);
    // Programs with the password take one place, and keep it.
    let random = Numbers(AtomicU64::new(1 << 51));
    let shared = |metadata: &mut dyn Metadata, now| {
        write(metadata, |metadata| {
            passwords::shared_device(metadata, &random, &account, ("WebDAV", now))
        })
    };
    let (program, made_room) = shared(metadata, NOW).unwrap();
    assert_eq!(made_room, [tabs[1]]);
    assert_eq!(shared(metadata, NOW + 9).unwrap(), (program, Vec::new()));
    assert_eq!(metadata.device(program.device).unwrap().unwrap().last_seen, NOW + 9);
    // Where there is room, nobody goes.
    metadata.revoke_device(tabs[9]).unwrap();
    assert_eq!(sign_in(metadata, &account, 3).unwrap().1, []);
}

fn in_sync(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    let [one, two] = world.ada;
    let home = world.home.workspace();
    let (account, tabs) = fill(&mut world);
    let metadata = &mut *world.metadata;
    let note = |metadata: &mut dyn Metadata, device| {
        let caller = Caller { account: account.id, device };
        sync_service::note_in_sync(metadata, &caller, home, 1)
    };
    write(metadata, |metadata| {
        note(metadata, one.device)?;
        note(metadata, two.device)?;
        metadata.touch_device(one.device, NOW - 6 * DAY)?;
        for tab in &tabs {
            metadata.touch_device(*tab, NOW - 1)?;
        }
        Ok(())
    })
    .unwrap();
    // One that was in sync and then not seen for a week is one like others.
    assert_eq!(sign_in(metadata, &account, 1).unwrap().1, [two.device]);
    let (_, made_room) = sign_in(metadata, &account, 2).unwrap();
    assert!(matches!(made_room[..], [gone] if tabs.contains(&gone)), "{made_room:?}");
    let left = signed_in(metadata, &account);
    assert!(left.contains(&one.device));
    // Where all hold a folder in sync, one of them says who is to go.
    write(metadata, |metadata| left.iter().try_for_each(|device| note(metadata, *device))).unwrap();
    let refused = sign_in(metadata, &account, 3);
    assert!(matches!(refused, Err(ServerError::Forbidden { .. })), "{refused:?}");
    assert_eq!(signed_in(metadata, &account), left);
}

fn several(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    let (account, _) = fill(&mut world);
    let came = at_once(database, 4, |server, metadata| {
        sign_in(metadata, &account, u64::from(server)).unwrap().0.device
    });
    let left = signed_in(&*world.metadata, &account);
    assert!(came.iter().all(|device| left.contains(device)), "nobody who came went");
    assert!(left.len() < DEVICES_MAX + 4, "{}", left.len());
    sign_in(&mut *world.metadata, &account, 9).unwrap();
    assert_eq!(signed_in(&*world.metadata, &account).len(), DEVICES_MAX);
}
