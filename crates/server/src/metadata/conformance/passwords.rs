//! Passwords: who signs in by one while it is changed, and who goes on afterwards.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::several::at_once;
use super::{Database, Numbers, Story, World, write};
use crate::admin::{Removal, remove_account};
use crate::auth::{Caller, NO_PASSWORD};
use crate::error::{Result, ServerError};
use crate::metadata::{AccountRecord, DeviceRecord, Metadata, Scope};
use crate::services::passwords::{self, Ended, SignedIn};
use crate::services::tokens::{self, NewToken};

pub(super) const STORIES: &[Story] = &[
    Story { name: "a_password_is_replaced_where_it_is_the_one_that_counts", tell: replaced },
    Story { name: "who_changes_the_password_stays_and_may_sign_out_the_others", tell: others },
    Story { name: "nobody_slips_in_by_a_password_that_is_being_changed", tell: nobody_slips_in },
    Story { name: "no_token_slips_in_while_others_are_signed_out", tell: no_token_slips_in },
    Story { name: "no_device_slips_in_while_an_account_goes", tell: none_is_left },
    Story { name: "programs_with_the_password_share_a_device_while_it_counts", tell: shared },
    Story { name: "who_is_shut_out_comes_back_with_the_password_of_then", tell: shut_out },
];

fn sign_in(
    metadata: &mut dyn Metadata,
    random: &Numbers,
    account: &AccountRecord,
) -> Result<SignedIn> {
    write(metadata, |metadata| passwords::sign_in(metadata, random, account, None, ("new", 5)))
}

fn change(
    metadata: &mut dyn Metadata,
    caller: Caller,
    hashes: (&str, &str),
    signs_out_others: bool,
) -> Result<Ended> {
    write(metadata, |metadata| passwords::change(metadata, &caller, hashes, signs_out_others))
}

fn add_token(
    metadata: &mut dyn Metadata,
    random: &Numbers,
    caller: Caller,
    name: &str,
) -> Result<DeviceRecord> {
    let (name, scope) = (name.to_owned(), Scope::Read);
    let new = NewToken { name, scope, workspace: None, expires: None };
    let added = write(metadata, |metadata| tokens::add(metadata, random, &caller, &new, 0));
    added.map(|(token, _)| token)
}

fn is_wrong<T>(outcome: &Result<T>) -> bool {
    matches!(outcome, Err(ServerError::WrongPassword))
}

fn replaced(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    let (caller, account) = (world.ada[0], world.ada[0].account);
    let metadata = &mut *world.metadata;
    let before = metadata.account(account).unwrap().unwrap();
    assert!(is_wrong(&change(metadata, caller, ("other", "new"), true)));
    assert_eq!(metadata.account(account).unwrap().as_ref(), Some(&before));
    let ended = change(metadata, caller, (NO_PASSWORD, "new"), false).unwrap();
    assert!(ended.signed_out.is_empty() && ended.unbound.is_empty(), "{ended:?}");
    let after = metadata.account(account).unwrap().unwrap();
    assert_eq!(after, AccountRecord { password_hash: "new".to_owned(), ..before.clone() });
    let random = Numbers(AtomicU64::new(1 << 40));
    assert!(is_wrong(&sign_in(metadata, &random, &before)), "it was changed since");
    sign_in(metadata, &random, &after).unwrap();
    // Who is shut out by the operator is not let in again by this.
    metadata.update_account(account, "new", true).unwrap();
    assert!(!metadata.replace_password(account, "new", "newer").unwrap());
    assert!(!metadata.hold_password(account, "new").unwrap());
    assert!(is_wrong(&sign_in(metadata, &random, &after)));
    assert!(metadata.account(account).unwrap().unwrap().is_disabled);
}

fn others(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    let ([one, two], bob) = (world.ada, world.bob);
    let metadata = &mut *world.metadata;
    let random = Numbers(AtomicU64::new(1 << 40));
    let token = add_token(metadata, &random, one, "program").unwrap().id;
    let program = Caller { device: token, ..one };
    let refused = change(metadata, program, (NO_PASSWORD, "new"), true);
    assert!(matches!(refused, Err(ServerError::Forbidden { .. })), "{refused:?}");
    metadata.revoke_device(two.device).unwrap();
    let third = {
        let account = metadata.account(one.account).unwrap().unwrap();
        sign_in(metadata, &random, &account).unwrap().caller.device
    };
    let signed_out = change(metadata, one, (NO_PASSWORD, "new"), true).unwrap().signed_out;
    let mut signed_out: Vec<_> = signed_out.into_iter().map(|device| device.id).collect();
    signed_out.sort();
    let mut expected = vec![token, third];
    expected.sort();
    assert_eq!(signed_out, expected);
    let is_revoked = |id| metadata.device(id).unwrap().unwrap().is_revoked;
    assert_eq!([token, third, one.device, bob.device].map(is_revoked), [true, true, false, false]);
}

/// Changes the password at one server, which signs all others out, while three servers do something else by a randomness of their own: only the
/// device that has changed it is left.
fn change_beside(
    database: &Arc<dyn Database>,
    world: &World,
    (account, round): (&AccountRecord, u64),
    meanwhile: impl Fn(&mut dyn Metadata, &Numbers) + Sync,
) {
    let caller = world.ada[0];
    let new = format!("password {round}");
    at_once(database, 4, |server, metadata| match server {
        0 => drop(change(metadata, caller, (&account.password_hash, &new), true).unwrap()),
        _ => meanwhile(metadata, &salted(round, server)),
    });
    let devices = world.metadata.devices(caller.account).unwrap();
    let left: Vec<_> = devices.iter().filter(|device| !device.is_revoked).collect();
    assert!(matches!(left[..], [only] if only.id == caller.device), "{round}: {left:?}");
}

fn salted(round: u64, server: u8) -> Numbers {
    Numbers(AtomicU64::new((((round + 1) << 8) | u64::from(server)) << 32))
}

fn nobody_slips_in(database: &Arc<dyn Database>) {
    let world = World::new(database);
    for round in 0..20 {
        let account = world.metadata.account(world.ada[0].account).unwrap().unwrap();
        change_beside(database, &world, (&account, round), |metadata, random| {
            let outcome = sign_in(metadata, random, &account);
            assert!(outcome.is_ok() || is_wrong(&outcome), "{outcome:?}");
        });
    }
}

fn none_is_left(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    for round in 0..20 {
        let account = world.metadata.account(world.ada[0].account).unwrap().unwrap();
        at_once(database, 4, |server, metadata| match server {
            0 => {
                let removed = write(metadata, |metadata| remove_account(metadata, account.id));
                assert_eq!(removed.unwrap(), Removal::Disabled, "it has a workspace");
            }
            _ => {
                let outcome = sign_in(metadata, &salted(round, server), &account);
                assert!(outcome.is_ok() || is_wrong(&outcome), "{outcome:?}");
            }
        });
        let devices = world.metadata.devices(account.id).unwrap();
        assert!(devices.iter().all(|device| device.is_revoked), "{round}: {devices:?}");
        world.metadata.update_account(account.id, "again", false).unwrap();
    }
}

fn no_token_slips_in(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    for round in 0..20 {
        let account = world.metadata.account(world.ada[0].account).unwrap().unwrap();
        let lost = sign_in(&mut *world.metadata, &salted(round, 0), &account).unwrap().caller;
        change_beside(database, &world, (&account, round), |metadata, random| {
            let added = add_token(metadata, random, lost, "program");
            let is_late = matches!(added, Err(ServerError::NotSignedIn));
            assert!(added.is_ok() || is_late, "{added:?}");
        });
    }
}

fn shared(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    let (caller, random) = (world.ada[0], Numbers(AtomicU64::new(1 << 40)));
    let metadata = &mut *world.metadata;
    let account = metadata.account(caller.account).unwrap().unwrap();
    let shared = |metadata: &mut dyn Metadata, account: &AccountRecord| {
        write(metadata, |metadata| {
            passwords::shared_device(metadata, &random, account, ("WebDAV", 5))
        })
        .map(|(device, _)| device)
    };
    // What has less rights and the same name is not taken for it.
    let token = add_token(metadata, &random, caller, "WebDAV").unwrap();
    let device = shared(metadata, &account).unwrap();
    assert_ne!(device.device, token.id);
    assert_eq!(metadata.device(device.device).unwrap().unwrap().limits, None);
    assert_eq!(shared(metadata, &account).unwrap(), device);
    change(metadata, caller, (NO_PASSWORD, "new"), true).unwrap();
    assert!(is_wrong(&shared(metadata, &account)), "it was changed since");
    let account = metadata.account(caller.account).unwrap().unwrap();
    let next = shared(metadata, &account).unwrap();
    assert_ne!(next, device);
    metadata.update_disabled(caller.account, true).unwrap();
    assert!(is_wrong(&shared(metadata, &account)), "the account is disabled");
}

fn shut_out(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    let caller = world.ada[0];
    let account = world.metadata.account(caller.account).unwrap().unwrap();
    // Another server gives it another password after somebody has looked at it who shuts it out.
    change(&mut *database.open(), caller, (&account.password_hash, "new"), false).unwrap();
    for is_disabled in [true, false] {
        world.metadata.update_disabled(caller.account, is_disabled).unwrap();
        let password_hash = "new".to_owned();
        let wanted = AccountRecord { password_hash, is_disabled, ..account.clone() };
        assert_eq!(world.metadata.account(caller.account).unwrap(), Some(wanted));
        assert_eq!(world.metadata.hold_password(caller.account, "new"), Ok(!is_disabled));
    }
}
