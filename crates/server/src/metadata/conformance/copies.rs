//! Copies of a whole database.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use model::WorkspaceId;
use model::testing::{node, put};

use super::{Database, Numbers, Story, World, all_entries, write};
use crate::auth::subject::Subject;
use crate::auth::totp::TotpSecret;
use crate::metadata::copy::{copy_all, sums};
use crate::metadata::tables::TABLES;
use crate::metadata::{
    IdentityRecord, LockedKeys, MemberRole, Metadata, MetadataError, NewInvitation, ObjectTables,
    RowTables, Scope,
};
use crate::services::links::{self, NewLink};
use crate::services::members;
use crate::services::tokens::{self, NewToken};

pub(super) const STORIES: &[Story] = &[
    Story { name: "all_tables_and_columns_are_copied", tell: columns },
    Story { name: "a_copy_has_what_was_committed_and_nothing_else", tell: copy },
    Story { name: "a_copy_there_and_back_is_equal_and_goes_on", tell: there_and_back },
    Story { name: "a_copy_goes_into_an_empty_database_only", tell: not_empty },
    Story { name: "who_copies_alone_is_alone", tell: alone },
];

fn columns(database: &Arc<dyn Database>) {
    drop(database.open());
    let known = TABLES.iter().flat_map(|table| {
        table.columns.iter().map(move |(column, _)| format!("{}.{column}", table.name))
    });
    assert_eq!(known.collect::<BTreeSet<String>>(), database.columns());
}

fn copy(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    world.commit_one(world.request(0, &world.home, 1, vec![put(1, 0, "kept")])).unwrap();
    let number = world.metadata.workspace(world.home.workspace()).unwrap().unwrap().number;
    world.metadata.insert_object(number, "packs/kept", 1).unwrap();
    let mut other = database.open();
    other.begin().unwrap();
    other.insert_object(number, "packs/not yet", 1).unwrap();
    let bytes = world.metadata.snapshot().unwrap();
    other.rollback();
    world.commit_one(world.request(0, &world.home, 2, vec![put(2, 0, "later")])).unwrap();
    let restored = crate::Sqlite::from_snapshot(&bytes).unwrap();
    let entries = all_entries(&restored, &world.ada[0], world.home.workspace());
    assert_eq!(entries, world.entries(&world.home)[..1]);
    let objects = restored.objects(number, "", "", 9).unwrap();
    assert_eq!(objects, [("packs/kept".to_owned(), 1)]);
    let accounts = |metadata: &dyn Metadata| metadata.accounts().unwrap();
    assert_eq!(accounts(&restored), accounts(&*world.metadata));
    let devices = |metadata: &dyn Metadata| metadata.devices(world.ada[0].account).unwrap();
    assert_eq!(devices(&restored), devices(&*world.metadata));
}

/// A row of every table, and of every kind of value.
fn furnish(world: &mut World) {
    for n in 1..=250 {
        let change = put(1, u64::from(n) - 1, "a file");
        world.commit_one(world.request(usize::from(n % 2), &world.home, n, vec![change])).unwrap();
    }
    let number = world.metadata.workspace(world.home.workspace()).unwrap().unwrap().number;
    let numbers = Numbers(AtomicU64::new(1 << 40));
    let metadata = &mut *world.metadata;
    metadata.insert_object(number, "packs/kept", 1).unwrap();
    metadata.insert_reservation(number, "packs/coming", 2, 3).unwrap();
    metadata.set_checkpoint(number, 1, &[0, 255, 7]).unwrap();
    let keys = LockedKeys { generation: 1, bytes: vec![0, 255, 8] };
    assert!(metadata.replace_locked_keys(number, &keys).unwrap());
    assert!(metadata.insert_pairing_box(number, "pairing/0a/offer", &[0, 255, 9], 4).unwrap());
    let (ada, home) = (world.people.ada[0], world.people.home.workspace());
    write(metadata, |metadata| members::set(metadata, &ada, home, "bob", MemberRole::Edit, 7))
        .unwrap();
    metadata.note_sync(ada.device, number, 8).unwrap();
    let invitation = NewInvitation {
        name: Some("eve".to_owned()),
        quota_bytes: Some(1 << 50),
        made: 9,
        expires: 10,
    };
    let invited = metadata.insert_invitation(&invitation, &[6; 32]).unwrap();
    assert!(metadata.end_invitation(invited, Some("eva"), 9).unwrap());
    let new = NewToken {
        name: "program".to_owned(),
        scope: Scope::Read,
        workspace: Some(home.to_string()),
        expires: Some(60),
    };
    write(metadata, |metadata| tokens::add(metadata, &numbers, &ada, &new, 0)).unwrap();
    let link = NewLink {
        node: node(1),
        expires: Some(60),
        password_hash: Some("hash".to_owned()),
        downloads_max: Some(3),
    };
    write(metadata, |metadata| links::add(metadata, &numbers, (&ada, home), &link, 0)).unwrap();
    let secret = TotpSecret::from_bytes([7; 20]);
    assert!(metadata.offer_second_factor(ada.account, &secret, 5).unwrap());
    assert!(metadata.turn_on_second_factor(ada.account, &secret, 6, 7).unwrap());
    metadata.insert_recovery_codes(ada.account, &[[1; 32], [2; 32]]).unwrap();
    assert_eq!(metadata.keep_secret("a secret", &[5; 3]).unwrap(), [5; 3]);
    let subject = Subject::new("https://id.example.org", "ada/1").unwrap();
    assert!(metadata.bind_subject(&subject, ada.account, 8).unwrap());
    let identity = IdentityRecord { public: vec![3; 64], locked: vec![4; 9] };
    assert!(metadata.replace_identity(ada.account, &identity, None).unwrap());
    metadata.set_envelope(number, world.people.bob.account, &[5; 9]).unwrap();
    metadata.update_quota(world.people.ada[0].account, Some(1 << 40)).unwrap();
    metadata.update_account(world.people.bob.account, "!", true).unwrap();
    metadata.revoke_device(world.people.ada[1].device).unwrap();
}

fn there_and_back(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    furnish(&mut world);
    let mut there = crate::Sqlite::open_in_memory().unwrap();
    world.metadata.begin_reading().unwrap();
    let copied = copy_all(&*world.metadata, &mut there).unwrap();
    world.metadata.rollback();
    assert!(copied.iter().all(|table| table.rows > 0), "{copied:?}");
    let sibling = database.sibling();
    let mut back = sibling.open();
    there.begin_reading().unwrap();
    copy_all(&there, &mut *back).unwrap();
    there.rollback();
    for metadata in [&mut world.metadata, &mut back] {
        metadata.begin_reading().unwrap();
        assert_eq!(sums(&**metadata).unwrap(), copied);
        metadata.rollback();
    }
    // What comes next gets numbers of its own.
    let account = back.insert_account("eve", "!", 1).unwrap();
    let head = world.head(&world.home);
    back.insert_workspace(WorkspaceId::from_bytes([9; 16]), account, "new", head, b"g").unwrap();
    assert_eq!(back.workspaces(account).unwrap().len(), 1);
}

fn not_empty(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    let sibling = database.sibling();
    let mut target = sibling.open();
    target.insert_account("somebody", "!", 0).unwrap();
    world.metadata.begin_reading().unwrap();
    let refused = copy_all(&*world.metadata, &mut *target);
    assert!(matches!(refused, Err(MetadataError::InUse { .. })), "{refused:?}");
    world.metadata.rollback();
    assert!(!target.is_in_transaction());
    assert_eq!(target.accounts().unwrap().len(), 1);
}

fn alone(database: &Arc<dyn Database>) {
    let mut metadata = database.open();
    let mut other = database.open();
    match metadata.begin_reading_alone() {
        // It is the others that wait, and give up.
        Ok(()) => assert_eq!(other.begin(), Err(MetadataError::Busy)),
        Err(error) => assert!(matches!(error, MetadataError::InUse { .. }), "{error}"),
    }
    metadata.rollback();
    drop(other);
    // A database hears of the end of a connection a little later.
    let is_alone = (0..1000).any(|_| metadata.begin_reading_alone().is_ok());
    assert!(is_alone);
    metadata.rollback();
}
