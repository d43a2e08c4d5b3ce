use std::path::Path;
use std::sync::Arc;

use model::{DeviceId, Head, WorkspaceId};

use super::*;
use crate::metadata::conformance::{self, Damage, Database};
use crate::metadata::{AccountTables, DeviceRecord, LogTables, ObjectTables};

fn with_workspace() -> (Sqlite, crate::metadata::WorkspaceNumber) {
    let mut database = Sqlite::open_in_memory().unwrap();
    let account = database.insert_account("ada", "!", 0).unwrap();
    let (id, head) = (WorkspaceId::from_bytes([1; 16]), model::testing::commit(1, vec![]).seen);
    database.insert_workspace(id, account, "home", head, b"genesis").unwrap();
    let number = database.workspace(id).unwrap().unwrap().number;
    (database, number)
}

fn set_version(path: &Path, version: i64) {
    let connection = Connection::open(path).unwrap();
    connection.execute_batch(&format!("PRAGMA user_version = {version}")).unwrap();
}

#[test]
fn newer_schema_is_refused_and_nothing_is_changed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("metadata.sqlite");
    drop(Sqlite::open(&path).unwrap());
    set_version(&path, 999);
    let before = read_file(&path);
    let refused = Sqlite::open(&path);
    assert!(matches!(refused, Err(MetadataError::NewerSchema { version: 999 })), "{refused:?}");
    assert!(read_file(&path) == before);
    set_version(&path, 1);
    Sqlite::open(&path).unwrap();
}

#[expect(clippy::disallowed_methods, reason = "the test looks at the file from outside")]
fn read_file(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap()
}

#[test]
fn databases_and_files_of_others_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("other.sqlite");
    Connection::open(&other).unwrap().execute_batch("CREATE TABLE photos (id)").unwrap();
    assert!(matches!(Sqlite::open(&other), Err(MetadataError::NotOurs { .. })));
    let text = folder.path().join("text");
    write_file(&text, &"not a database ".repeat(100));
    let refused = Sqlite::open(&text);
    assert!(matches!(refused, Err(MetadataError::NotOurs { .. })), "{refused:?}");
}

#[expect(clippy::disallowed_methods, reason = "the test makes a file from outside")]
fn write_file(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
}

#[test]
fn objects_are_listed_by_prefix_in_order_of_keys() {
    let (mut database, workspace) = with_workspace();
    for key in ["packs/ab/1", "packs/aa/2", "pages/aa/3", "packs/b"] {
        database.insert_object(workspace, key, 5).unwrap();
    }
    let list = |prefix: &str, start_after: &str, limit| {
        let found = database.objects(workspace, prefix, start_after, limit).unwrap();
        found.into_iter().map(|(key, _)| key).collect::<Vec<_>>()
    };
    assert_eq!(list("", "", 10), ["packs/aa/2", "packs/ab/1", "packs/b", "pages/aa/3"]);
    assert_eq!(list("packs/a", "", 10), ["packs/aa/2", "packs/ab/1"]);
    assert_eq!(list("packs/", "packs/aa/2", 1), ["packs/ab/1"]);
    assert_eq!(list("pages/", "packs/", 10), ["pages/aa/3"]);
    assert_eq!(list("log/", "", 10), [""; 0]);
}

#[test]
fn used_bytes_follow_objects_and_count_none_twice() {
    let (mut database, workspace) = with_workspace();
    let used = |database: &Sqlite| database.used_bytes(crate::metadata::AccountId(1)).unwrap();
    for _ in 0..2 {
        database.insert_object(workspace, "pages/x", 100).unwrap();
    }
    database.insert_object(workspace, "packs/y", 10).unwrap();
    assert_eq!(used(&database), 110);
    for _ in 0..2 {
        database.delete_object(workspace, "pages/x").unwrap();
    }
    assert_eq!(used(&database), 10);
}

#[test]
fn snapshot_has_what_was_committed_only() {
    let (mut database, workspace) = with_workspace();
    database.insert_object(workspace, "packs/kept", 1).unwrap();
    let snapshot = database.snapshot().unwrap();
    database.insert_object(workspace, "packs/later", 1).unwrap();
    let restored = Sqlite::from_snapshot(&snapshot).unwrap();
    assert_eq!(restored.object_length(workspace, "packs/kept").unwrap(), Some(1));
    assert_eq!(restored.object_length(workspace, "packs/later").unwrap(), None);
}

#[test]
fn hostile_numbers_find_nothing() {
    let (database, workspace) = with_workspace();
    assert_eq!(database.entries(workspace, u64::MAX, u64::MAX).unwrap(), [] as [Vec<u8>; 0]);
    assert_eq!(database.entry_hash(workspace, u64::MAX).unwrap(), None);
    let Head { seq, .. } = database.workspaces(crate::metadata::AccountId(1)).unwrap()[0].head;
    assert_eq!(seq, 0);
}

#[test]
fn devices_are_found_by_token_and_go_with_their_account() {
    let mut database = Sqlite::open_in_memory().unwrap();
    let account = database.insert_account("ada", "!", 0).unwrap();
    let device = DeviceRecord {
        id: DeviceId::from_bytes([1; 16]),
        account,
        name: "laptop".to_owned(),
        created: 1,
        last_seen: 2,
        is_revoked: false,
    };
    database.insert_device(&device, &[7; 32]).unwrap();
    assert_eq!(database.device_by_token(&[7; 32]).unwrap().as_ref(), Some(&device));
    assert_eq!(database.device_by_token(&[8; 32]).unwrap(), None);
    database.revoke_device(device.id).unwrap();
    assert!(database.device(device.id).unwrap().unwrap().is_revoked);
    database.delete_account(account).unwrap();
    assert_eq!(database.device(device.id).unwrap(), None);
    assert!(matches!(
        database.insert_account("ada", "!", 0).and_then(|_| database.insert_account("ada", "!", 0)),
        Err(MetadataError::Taken { .. })
    ));
}

#[test]
fn full_disk_answers_everybody_and_leaves_nothing_half_done() {
    use crate::error::ServerError;
    use crate::services::batch::{self, Work};

    let (mut database, workspace) = with_workspace();
    let pages = |database: &Sqlite, pages: u32| {
        database.run(&format!("PRAGMA max_page_count = {pages}")).unwrap();
    };
    pages(&database, 60);
    let insert = |key: &'static str| -> Work<'static, ()> {
        Box::new(move |metadata| Ok(metadata.insert_object(workspace, key, 1)?))
    };
    let fill = || -> Work<'static, ()> {
        Box::new(move |metadata| Ok(metadata.set_checkpoint(workspace, 1, &[7; 1 << 20])?))
    };
    let outcomes = batch::run(&mut database, vec![insert("packs/1"), fill(), insert("packs/2")]);
    assert_eq!(outcomes.len(), 3);
    assert!(matches!(outcomes[1], Err(ServerError::Metadata(MetadataError::NoSpace))));
    for (key, outcome) in [("packs/1", &outcomes[0]), ("packs/2", &outcomes[2])] {
        let is_there = database.object_length(workspace, key).unwrap().is_some();
        assert_eq!(is_there, outcome.is_ok(), "{key}: {outcome:?}");
    }
    assert!(!database.is_in_transaction());
    pages(&database, 100_000);
    let outcomes = batch::run(&mut database, vec![insert("packs/3"), fill()]);
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
}

/// A database in a file of its own.
#[derive(Debug)]
struct InFile(tempfile::TempDir);

impl InFile {
    fn path(&self) -> std::path::PathBuf {
        self.0.path().join("metadata.sqlite")
    }
}

impl Database for InFile {
    fn open(&self) -> Box<dyn Metadata> {
        Box::new(Sqlite::open(&self.path()).unwrap())
    }

    fn damage(&self, damage: Damage) {
        let sql = match damage {
            Damage::Entries { seq } => {
                format!("UPDATE entries SET bytes = x'ff00' WHERE seq = {seq}")
            }
            Damage::Head { workspace } => {
                format!("UPDATE workspaces SET head_hash = x'00' WHERE name = '{workspace}'")
            }
        };
        Connection::open(self.path()).unwrap().execute_batch(&sql).unwrap();
    }

    fn cut_connections(&self) -> bool {
        // There are none: the database is a part of this process.
        false
    }
}

#[test]
fn sqlite_tells_every_story() {
    for story in conformance::stories() {
        println!("{story:?}");
        let database: Arc<dyn Database> = Arc::new(InFile(tempfile::tempdir().unwrap()));
        (story.tell)(&database);
    }
}
