//! The stories that every database tells, by PostgreSQL.

use std::ops::Range;
use std::sync::Arc;

use server::admin::{self, Scratch, Shelf};
use server::data_folder::DataFolder;
use server::metadata::conformance::{self, Database};
use server::metadata::postgres::Postgres;
use server::metadata::postgres::testing::ThrowAway;
use server::metadata::{Metadata, MetadataError};
use server::services::sync_service::commit_all;
use server::{Database as ServerDatabase, ServerError};
use storage::{Credentials, Opening};

use crate::bad_days::{assert_complete, furnish, request};
use crate::place::Place;
use crate::two_servers;

#[test]
fn postgresql_tells_every_story() {
    let place = Place::take();
    for story in conformance::stories() {
        println!("{story:?}");
        let database: Arc<dyn Database> = ThrowAway::create(&place.config()).unwrap();
        (story.tell)(&database);
    }
}

#[test]
fn databases_of_others_and_of_newer_versions_are_refused_and_left_as_they_are() {
    let place = Place::take();
    let database = ThrowAway::create(&place.config()).unwrap();
    database.run("CREATE TABLE photos (id INTEGER)").unwrap();
    let refused = Postgres::open(database.config());
    assert!(matches!(refused, Err(MetadataError::NotOurs { .. })), "{refused:?}");
    database.run("DROP TABLE photos").unwrap();
    let mut opened = Postgres::open(database.config()).unwrap();
    opened.check().unwrap();
    database.run("UPDATE syncline_schema SET version = version + 1000").unwrap();
    let refused = Postgres::open(database.config());
    let is_newer = matches!(refused, Err(MetadataError::NewerSchema { version: 1000.. }));
    assert!(is_newer, "{refused:?}");
    database.run("UPDATE syncline_schema SET version = version - 1000").unwrap();
    assert_eq!(
        Postgres::open(database.config()).unwrap().snapshot().unwrap(),
        opened.snapshot().unwrap()
    );
}

/// The time of a group is that of its answers where the database is far away.
#[test]
fn a_group_waits_for_as_many_answers_however_large_it_is() {
    let place = Place::take();
    let database = ThrowAway::create(&place.config()).unwrap();
    let mut metadata = Postgres::open(database.config()).unwrap();
    let (caller, genesis) = furnish(&mut metadata);
    let mut commit = |numbers: Range<u32>| {
        let before = metadata.answers();
        let group = numbers.map(|n| request(caller, &genesis, n)).collect();
        assert!(commit_all(&mut metadata, group).iter().all(Result::is_ok));
        metadata.answers() - before
    };
    // The first one also prepares the statements.
    commit(0..2);
    let (small, large) = (commit(2..4), commit(4..1000));
    assert_eq!(small, large);
    assert!(small <= 8, "{small}");
    assert_complete(&metadata, caller, &genesis, 1000);
}

#[test]
fn pack_that_one_server_refuses_stays_where_another_has_taken_it() {
    let place = Place::take();
    let database = ThrowAway::create(&place.config()).unwrap();
    two_servers::pack_that_one_server_refuses_stays_where_another_has_taken_it(move || {
        Database::open(&*database)
    });
}

/// A server that is connected keeps its database where it is; without one it moves, and is backed up and restored, too.
#[test]
fn accounts_and_logs_move_here_and_back_and_into_a_backup() {
    let place = Place::take();
    let (there, other) = [(); 2].map(|()| ThrowAway::create(&place.config()).unwrap()).into();
    let room = tempfile::tempdir().unwrap();
    let folder = |name: &str| DataFolder::open(&room.path().join(name)).unwrap();
    let in_postgres =
        |database: &ThrowAway| ServerDatabase::Postgres(Box::new(database.config().clone()));
    let embedded = ServerDatabase::Embedded;
    let (home, back) = (folder("home"), folder("back"));
    let mut sqlite = home.open_database().unwrap();
    let (caller, genesis) = furnish(&mut sqlite);
    let group = (0..300).map(|n| request(caller, &genesis, n)).collect();
    assert!(commit_all(&mut sqlite, group).iter().all(Result::is_ok));
    drop(sqlite);

    let moved = admin::migrate((&home, &embedded), (&home, &in_postgres(&there))).unwrap();
    let refused = admin::migrate((&home, &embedded), (&home, &in_postgres(&there)));
    assert!(matches!(refused, Err(ServerError::Taken { .. })), "{refused:?}");
    let mut server = Database::open(&*there);
    assert_complete(&*server, caller, &genesis, 300);
    let refused = admin::migrate((&home, &in_postgres(&there)), (&back, &embedded));
    let is_in_use = matches!(refused, Err(ServerError::Metadata(MetadataError::InUse { .. })));
    assert!(is_in_use && !back.database_path().exists(), "{refused:?}");

    let store = |name: &str| {
        let url = format!("file:{}", room.path().join(name).display());
        Shelf::open(&url, &Credentials::none(), Opening::CreateIfMissing).unwrap()
    };
    let scratch = Scratch::take(&home).unwrap();
    let shelves = (&store("packs"), &store("backup"));
    let made = admin::backup(&mut *server, shelves, &scratch, &two_servers::Still).unwrap();
    assert!(made.report.is_well() && made.report.entries == 300, "{made:?}");
    let to = (&folder("restored"), &in_postgres(&other));
    admin::restore((shelves.1, None), to, &store("new packs"), &scratch).unwrap();
    assert_complete(&*Database::open(&*other), caller, &genesis, 300);

    drop(server);
    // The database hears of the end of a connection a little later.
    let returned = (0..100)
        .find_map(|_| admin::migrate((&home, &in_postgres(&there)), (&back, &embedded)).ok());
    assert_eq!(returned, Some(moved));
    assert_complete(&back.open_database().unwrap(), caller, &genesis, 300);
}

#[test]
fn servers_that_start_at_the_same_moment_make_the_tables_once() {
    let place = Place::take();
    let database = ThrowAway::create(&place.config()).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| Postgres::open(database.config()).unwrap().check().unwrap());
        }
    });
}

#[test]
fn a_wrong_password_and_a_missing_database_are_errors_with_a_reason() {
    let place = Place::take();
    let mut config = place.config();
    config.password("another");
    let refused = Postgres::open(&config).unwrap_err();
    assert!(refused.to_string().contains("password"), "{refused}");
    assert!(!refused.to_string().contains("another"), "{refused}");
    let mut config = place.config();
    config.dbname("nowhere");
    let refused = Postgres::open(&config).unwrap_err();
    assert!(refused.to_string().contains("nowhere"), "{refused}");
}
