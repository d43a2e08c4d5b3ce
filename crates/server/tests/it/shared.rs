//! Two servers on one SQLite file: no program starts them so, but what they do to each other is the same as over PostgreSQL.

use server::Sqlite;

use crate::two_servers;

#[test]
fn pack_that_one_server_refuses_stays_where_another_has_taken_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("metadata.sqlite");
    two_servers::pack_that_one_server_refuses_stays_where_another_has_taken_it(move || {
        Box::new(Sqlite::open(&path).unwrap())
    });
}
