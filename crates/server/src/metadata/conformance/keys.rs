//! What the devices of encrypted workspaces keep for each other.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use model::{Action, Change, Commit, Genesis, Mode, NodeId, PackId, PackRef, SealedGenesis};
use storage::ObjectKey;

use super::{Database, Numbers, Story, World, genesis, write};
use crate::auth::Caller;
use crate::error::{Result, ServerError};
use crate::limits::PAIRING_BOXES_MAX;
use crate::metadata::{IdentityRecord, KeyTables, LockedKeys, LogTables, MemberRole, Scope};
use crate::services::authorisation::Right;
use crate::services::condemned::CondemnedPacks;
use crate::services::sync_service::CommitRequest;
use crate::services::tokens::{self, NewToken};
use crate::services::{identities, keys, members, workspaces};

pub(super) const STORIES: &[Story] = &[
    Story { name: "of_two_who_change_locked_keys_one_succeeds", tell: compare_and_set },
    Story { name: "locked_keys_that_are_overtaken_never_come_back", tell: overtaken },
    Story { name: "boxes_of_pairings_are_few_and_short_lived", tell: boxes },
    Story { name: "keys_are_for_devices_of_the_owner", tell: strangers },
    Story { name: "an_identity_is_made_once_and_replaced_by_who_knows_it", tell: identity },
    Story { name: "an_envelope_is_for_one_member_and_gone_with_the_membership", tell: envelope },
    Story { name: "an_envelope_is_as_long_as_the_keys_of_its_workspace", tell: long_envelope },
    Story { name: "a_sealed_workspace_has_no_name_here", tell: nameless },
    Story { name: "what_a_sealed_log_names_behind_a_fence_stays", tell: condemned },
];

type Put<'a> = (&'a ObjectKey, &'a [u8]);

fn put(world: &mut World, caller: &Caller, (key, bytes): Put<'_>, now: i64) -> Result<bool> {
    let home = world.home.workspace();
    write(&mut *world.metadata, |metadata| keys::put(metadata, caller, home, (key, bytes), now))
}

fn get(world: &World, key: &ObjectKey) -> Option<Vec<u8>> {
    match keys::get(&*world.metadata, &world.ada[0], world.home.workspace(), key) {
        Ok(bytes) => Some(bytes),
        Err(ServerError::NotFound { .. }) => None,
        Err(error) => panic!("{error}"),
    }
}

fn compare_and_set(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    let [one, other] = world.ada;
    let key = ObjectKey::keys;
    let skipped = put(&mut world, &one, (&key(2), b"two"), 0);
    assert!(matches!(skipped, Err(ServerError::Conflict { .. })), "{skipped:?}");
    assert!(put(&mut world, &one, (&key(1), b"one"), 0).unwrap());
    assert!(!put(&mut world, &other, (&key(1), b"another one"), 0).unwrap());
    assert_eq!(get(&world, &key(1)).as_deref(), Some(&b"one"[..]));
    assert!(put(&mut world, &other, (&key(2), b"two"), 0).unwrap());
    assert!(!put(&mut world, &one, (&key(2), b"another two"), 0).unwrap());
    assert_eq!((get(&world, &key(1)), get(&world, &key(2))), (None, Some(b"two".to_vec())));
    let listed = keys::list(&*world.metadata, &one, world.home.workspace(), "keys/", "", 9);
    assert_eq!(listed.unwrap(), [(key(2).to_string(), 3)]);
    let home = world.home.workspace();
    let refused =
        write(&mut *world.metadata, |metadata| keys::delete(metadata, &one, home, &key(2)));
    assert!(matches!(refused, Err(ServerError::Forbidden { .. })), "{refused:?}");
}

/// Another server changes the keys twice between the look and the change of this one.
fn overtaken(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    let number = world.metadata.workspace(world.home.workspace()).unwrap().unwrap().number;
    let keys = |generation, text: &str| LockedKeys { generation, bytes: text.into() };
    let mut other = database.open();
    for (generation, is_put) in [(1, true), (2, true), (3, true), (2, false), (3, false)] {
        let put = other.replace_locked_keys(number, &keys(generation, "of the other"));
        assert_eq!(put, Ok(is_put), "{generation}");
    }
    assert_eq!(world.metadata.replace_locked_keys(number, &keys(1, "late")), Ok(false));
    assert_eq!(world.metadata.locked_keys(number), Ok(Some(keys(3, "of the other"))));
}

fn boxes(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    let (ada, home) = (world.ada[0], world.home.workspace());
    let key = |number: usize| ObjectKey::pairing(&format!("{number:032x}"), "offer").unwrap();
    assert!(put(&mut world, &ada, (&key(0), b"offer"), 10).unwrap());
    assert!(!put(&mut world, &ada, (&key(0), b"another"), 10).unwrap());
    assert_eq!(get(&world, &key(0)).as_deref(), Some(&b"offer"[..]));
    for number in 1..PAIRING_BOXES_MAX {
        assert!(put(&mut world, &ada, (&key(number), b"offer"), 11).unwrap());
    }
    let more = key(PAIRING_BOXES_MAX);
    let refused = put(&mut world, &ada, (&more, b"offer"), 3610);
    assert!(matches!(refused, Err(ServerError::Forbidden { .. })), "{refused:?}");
    // What is older than an hour makes room.
    assert!(put(&mut world, &ada, (&more, b"offer"), 3611).unwrap());
    assert_eq!(get(&world, &key(0)), None);
    let list = |start_after: &str, limit| {
        keys::list(&*world.metadata, &ada, home, "pairing/", start_after, limit).unwrap()
    };
    assert_eq!(list("", 99).len(), PAIRING_BOXES_MAX);
    assert_eq!(list(key(2).as_str(), 1), [(key(3).to_string(), 5)]);
    write(&mut *world.metadata, |metadata| keys::delete(metadata, &ada, home, &key(1))).unwrap();
    assert_eq!(get(&world, &key(1)), None);
}

fn strangers(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    let (ada, bob, home) = (world.ada[0], world.bob, world.home.workspace());
    let key = ObjectKey::keys(1);
    put(&mut world, &ada, (&key, b"one"), 0).unwrap();
    let look = |world: &World| keys::get(&*world.metadata, &bob, home, &key);
    assert!(matches!(look(&world), Err(ServerError::NotFound { .. })), "{:?}", look(&world));
    write(&mut *world.metadata, |metadata| {
        members::set(metadata, &ada, home, "bob", MemberRole::Edit, 0)
    })
    .unwrap();
    assert!(matches!(look(&world), Err(ServerError::Forbidden { .. })), "{:?}", look(&world));
    let refused = put(&mut world, &bob, (&ObjectKey::keys(2), b"two"), 0);
    assert!(matches!(refused, Err(ServerError::Forbidden { .. })), "{refused:?}");
}

fn identity(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    let ([one, other], bob) = (world.ada, world.bob);
    let none = identities::own(&*world.metadata, &one);
    assert!(matches!(none, Err(ServerError::NotFound { .. })), "{none:?}");
    let record = |n: u8| IdentityRecord { public: vec![n; 64], locked: vec![n, n] };
    let mut set = |caller: &Caller, identity: &IdentityRecord, replaced: Option<&[u8]>| {
        write(&mut *world.metadata, |metadata| {
            identities::set(metadata, caller, identity, replaced)
        })
    };
    let is_taken = |done| matches!(done, Err(ServerError::Taken { .. }));
    assert!(is_taken(set(&one, &record(1), Some(&[1; 64]))), "there is none to replace");
    set(&one, &record(1), None).unwrap();
    assert!(is_taken(set(&other, &record(2), None)));
    assert!(is_taken(set(&other, &record(2), Some(&[3; 64]))));
    set(&other, &record(2), Some(&[1; 64])).unwrap();
    set(&bob, &record(9), None).unwrap();
    for (public, locked) in [(0, 1), (63, 1), (65, 1), (64, 0), (64, 5000)] {
        let wrong = IdentityRecord { public: vec![1; public], locked: vec![1; locked] };
        let refused = set(&bob, &wrong, Some(&[9; 64]));
        assert!(matches!(refused, Err(ServerError::Invalid { .. })), "{refused:?}");
    }
    assert_eq!(identities::own(&*world.metadata, &one).unwrap(), record(2));
    let seen = |caller, name| identities::public_of(&*world.metadata, caller, name);
    assert_eq!(seen(&bob, "ada").unwrap(), [2; 64]);
    assert_eq!(seen(&one, "bob").unwrap(), [9; 64]);
    assert!(matches!(seen(&bob, "nobody"), Err(ServerError::NotFound { .. })));
    // A copy has them, too.
    let copied = crate::Sqlite::from_snapshot(&world.metadata.snapshot().unwrap()).unwrap();
    assert_eq!(copied.identity(one.account).unwrap(), Some(record(2)));
}

fn envelope(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    let (ada, bob, home) = (world.ada[0], world.bob, world.home.workspace());
    let key = ObjectKey::envelope("bob").unwrap();
    let none = put(&mut world, &ada, (&key, b"early"), 0);
    assert!(matches!(none, Err(ServerError::NotFound { .. })), "{none:?}");
    let member = |world: &mut World, role| {
        write(&mut *world.metadata, |metadata| members::set(metadata, &ada, home, "bob", role, 0))
            .unwrap();
    };
    let look = |world: &World, caller: &Caller, key: &ObjectKey| {
        keys::get(&*world.metadata, caller, home, key).ok()
    };
    member(&mut world, MemberRole::Edit);
    assert_eq!(look(&world, &bob, &key), None);
    for bytes in [b"one", b"two"] {
        assert!(put(&mut world, &ada, (&key, bytes), 0).unwrap());
        assert_eq!(look(&world, &bob, &key).as_deref(), Some(&bytes[..]));
    }
    let refused = put(&mut world, &bob, (&key, b"of bob"), 0);
    assert!(matches!(refused, Err(ServerError::Forbidden { .. })), "{refused:?}");
    // Another role changes nothing about it; another member has another one.
    member(&mut world, MemberRole::View);
    assert_eq!(look(&world, &bob, &key).as_deref(), Some(&b"two"[..]));
    assert_eq!(look(&world, &ada, &key).as_deref(), Some(&b"two"[..]));
    let of_ada = ObjectKey::envelope("ada").unwrap();
    assert_eq!(look(&world, &bob, &of_ada), None);
    // A token that reads everything a member reads gets no keys.
    let new = NewToken { name: "p".to_owned(), scope: Scope::Read, workspace: None, expires: None };
    let random = Numbers(AtomicU64::new(1 << 40));
    let added = write(&mut *world.metadata, |metadata| {
        let (token, _) = tokens::add(metadata, &random, &bob, &new, 0)?;
        let program = Caller { device: token.id, ..bob };
        workspaces::open(metadata, &program, home, Right::Read).map(|_| program)
    });
    let refused = keys::get(&*world.metadata, &added.unwrap(), home, &key);
    assert!(matches!(refused, Err(ServerError::Forbidden { .. })), "{refused:?}");
    let copied = crate::Sqlite::from_snapshot(&world.metadata.snapshot().unwrap()).unwrap();
    let number = copied.workspace(home).unwrap().unwrap().number;
    assert_eq!(copied.envelope(number, bob.account).unwrap().as_deref(), Some(&b"two"[..]));
    for again in [false, true] {
        write(&mut *world.metadata, |metadata| members::remove(metadata, &ada, home, "bob"))
            .unwrap();
        assert_eq!(look(&world, &ada, &key), None);
        if !again {
            // Who comes back finds no envelope of before.
            member(&mut world, MemberRole::Edit);
            assert_eq!(look(&world, &bob, &key), None);
        }
    }
}

fn long_envelope(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    let (ada, home) = (world.ada[0], world.home.workspace());
    write(&mut *world.metadata, |metadata| {
        members::set(metadata, &ada, home, "bob", MemberRole::View, 0)
    })
    .unwrap();
    let key = ObjectKey::envelope("bob").unwrap();
    for generation in 0..3 {
        if generation > 0 {
            put(&mut world, &ada, (&ObjectKey::keys(generation), b"keys"), 0).unwrap();
        }
        let length = 2048 + 64 * generation as usize;
        assert!(put(&mut world, &ada, (&key, &vec![1; length]), 0).unwrap());
        let refused = put(&mut world, &ada, (&key, &vec![2; length + 1]), 0);
        assert!(matches!(refused, Err(ServerError::TooLarge { .. })), "{refused:?}");
        assert_eq!(get(&world, &key), Some(vec![1; length]));
    }
}

fn sealed_genesis(number: u8) -> Genesis {
    let header = SealedGenesis { account: [1; 32], salt: [number; 32], header: vec![3; 60] };
    Genesis { mode: Mode::Sealed(header), ..genesis("secret name") }
}

fn make(world: &mut World, genesis: &Genesis) {
    let ada = world.ada[0];
    write(&mut *world.metadata, |metadata| workspaces::create(metadata, &ada, genesis)).unwrap();
}

fn nameless(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    let (one, other) = (sealed_genesis(1), sealed_genesis(2));
    make(&mut world, &one);
    make(&mut world, &other);
    let ada = world.ada[0];
    for genesis in [&one, &other] {
        let id = genesis.workspace().to_string();
        let found = workspaces::find(&*world.metadata, &ada, &id).unwrap();
        assert_eq!((found.workspace.id, found.name), (genesis.workspace(), id));
    }
    let named = workspaces::find(&*world.metadata, &ada, "secret name");
    assert!(matches!(named, Err(ServerError::NotFound { .. })), "{named:?}");
    let empty = Genesis { mode: Mode::Plain, ..genesis("") };
    let refused =
        write(&mut *world.metadata, |metadata| workspaces::create(metadata, &ada, &empty));
    assert!(matches!(refused, Err(ServerError::Invalid { .. })), "{refused:?}");
}

fn condemned(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    let secret = sealed_genesis(1);
    make(&mut world, &secret);
    let (ada, id) = (world.ada[0], secret.workspace());
    let number = world.metadata.workspace(id).unwrap().unwrap().number;
    let pack = |n: u8| PackId::from_bytes([n; 32]);
    let mut known = CondemnedPacks::default();
    let mut commit = |world: &mut World, op: u8, node: NodeId| {
        let length = 1;
        let key = ObjectKey::pack(pack(op));
        world.metadata.insert_object(number, key.as_str(), length).unwrap();
        // What the server cannot read is any bytes.
        let change = Change { node, base: 0, action: Action::Put(vec![op; 20]) };
        let packs = match node.is_settings() {
            true => Vec::new(),
            false => vec![PackRef { id: pack(op), length }],
        };
        let commit = Commit {
            device: ada.device,
            seen: world.head(&secret),
            packs,
            ..model::testing::commit(op, vec![change])
        };
        world.commit_one(CommitRequest { caller: ada, workspace: id, commit }).unwrap();
        known.catch_up(&*world.metadata, &ada, id).unwrap();
        [1, 2, 3, 4].map(|n| known.contains(&pack(n)))
    };
    let file = |n| model::testing::node(n);
    assert_eq!(commit(&mut world, 1, file(1)), [false; 4]);
    // Behind a fence nobody knows but the owner which of the packs before it are needed.
    assert_eq!(commit(&mut world, 2, NodeId::FENCE), [true, true, true, true]);
    assert_eq!(commit(&mut world, 3, file(3)), [true, true, false, true]);
    // A cleanup that begins anew has read the same.
    let mut anew = CondemnedPacks::default();
    anew.catch_up(&*world.metadata, &ada, id).unwrap();
    assert_eq!([1, 2, 3, 4].map(|n| anew.contains(&pack(n))), [true, true, false, true]);
}
