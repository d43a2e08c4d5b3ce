use std::path::Path;
use std::sync::Arc;

use model::WorkspaceId;

use super::*;
use crate::metadata::conformance::{self, Damage, Database};
use crate::metadata::{AccountTables, LogTables, MemberTables, ObjectTables};

fn with_workspace() -> (Sqlite, crate::metadata::WorkspaceNumber) {
    let mut database = Sqlite::open_in_memory().unwrap();
    let account = database.insert_account("ada", "!", 0).unwrap();
    let (id, head) = (WorkspaceId::from_bytes([1; 16]), model::testing::commit(1, vec![]).seen);
    database.insert_workspace(id, account, "home", head, b"genesis").unwrap();
    let number = database.workspace(id).unwrap().unwrap().number;
    (database, number)
}

/// Sets the version of the tables and returns what it was.
fn set_version(path: &Path, version: i64) -> i64 {
    let connection = Connection::open(path).unwrap();
    let before = connection.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
    connection.execute_batch(&format!("PRAGMA user_version = {version}")).unwrap();
    before
}

#[test]
fn newer_schema_is_refused_and_nothing_is_changed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("metadata.sqlite");
    drop(Sqlite::open(&path).unwrap());
    let version = set_version(&path, 999);
    let before = read_file(&path);
    let refused = Sqlite::open(&path);
    assert!(matches!(refused, Err(MetadataError::NewerSchema { version: 999 })), "{refused:?}");
    assert!(read_file(&path) == before);
    set_version(&path, version);
    Sqlite::open(&path).unwrap();
}

#[test]
fn older_schema_is_brought_up_to_date_and_keeps_its_rows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("metadata.sqlite");
    let old = Connection::open(&path).unwrap();
    let rows = "INSERT INTO accounts VALUES (7, 'ada', 'hash', 0, NULL, 1);
                PRAGMA application_id = 1400467043; PRAGMA user_version = 1;";
    old.execute_batch(&format!("{} {rows}", migrations::STEPS[0])).unwrap();
    drop(old);
    let database = Sqlite::open(&path).unwrap();
    let ada = database.account_by_name("ada").unwrap().unwrap();
    assert_eq!(database.memberships(ada.id).unwrap(), []);
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

    fn sibling(&self) -> Arc<dyn Database> {
        Arc::new(Self(tempfile::tempdir().unwrap()))
    }

    fn columns(&self) -> std::collections::BTreeSet<String> {
        let sql = "SELECT t.name || '.' || c.name FROM sqlite_schema t, pragma_table_info(t.name) c
                   WHERE t.type = 'table'";
        let connection = Connection::open(self.path()).unwrap();
        let mut statement = connection.prepare(sql).unwrap();
        let columns = statement.query_map([], |row| row.get(0)).unwrap();
        columns.map(Result::unwrap).collect()
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
