//! Backups of a running server, servers from backups, and finding out what is wrong with either.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use commit_log::CommitLog;
use model::commit::PackRef;
use model::{Clock, Commit, Genesis, Head};
use reqwest::{Method, StatusCode};
use server::admin::{self, Copied, Report, Scratch, Shelf};
use server::data_folder::DataFolder;
use server::metadata::MetadataError;
use server::{Database, ServerError, Sqlite};
use storage::faulty::{Call, Fault, Faulty};
use storage::{Credentials, Opening};

use crate::support::{Device, SystemClock, TestServer, noise, pack_id, pack_path};

/// Does what blocks where it may.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.unwrap()
}

fn shelf(folder: &Path) -> Shelf {
    let url = format!("file:{}", folder.display());
    Shelf::open(&url, &Credentials::none(), Opening::CreateIfMissing).unwrap()
}

fn backup_to(data: &Path, target: &Shelf) -> Result<Copied, ServerError> {
    let folder = DataFolder::open_existing(data).unwrap();
    let source = shelf(&data.join("store"));
    let (mut live, scratch) = (folder.open_database().unwrap(), Scratch::take(&folder).unwrap());
    admin::backup(&mut live, (&source, target), &scratch, &*SystemClock::start() as &dyn Clock)
}

fn restore_to(source: &Path, data: &Path) -> Result<Copied, ServerError> {
    let folder = DataFolder::open(data).unwrap();
    let scratch = Scratch::take(&folder).unwrap();
    let place = (&folder, &Database::Embedded);
    admin::restore((&shelf(source), None), place, &shelf(&data.join("store")), &scratch)
}

fn verify(data: &Path, read_data: bool) -> Report {
    let folder = DataFolder::open_existing(data).unwrap();
    let scratch = Scratch::take(&folder).unwrap();
    let store = shelf(&data.join("store"));
    admin::verify_live(&mut folder.open_database().unwrap(), &store, &scratch, read_data).unwrap()
}

/// A commit that names packs, which are stored before.
async fn commit_packs(device: &Device, genesis: &Genesis, seen: Head, packs: &[Vec<u8>]) -> Head {
    let mut named = Vec::new();
    for pack in packs {
        assert_eq!(device.put_pack(genesis, pack).await, StatusCode::CREATED);
        named.push(PackRef { id: pack_id(pack), length: pack.len() as u64 });
    }
    let commit = Commit { packs: named, ..device.commit(seen.seq as u8 + 1, seen) };
    device.log(genesis).await.commit(&commit).await.unwrap()
}

struct Scene {
    server: TestServer,
    device: Device,
    genesis: Genesis,
    head: Head,
    packs: Vec<Vec<u8>>,
    room: tempfile::TempDir,
}

impl Scene {
    async fn new() -> Self {
        let server = TestServer::start().await;
        let device = server.device("ada").await;
        let genesis = device.create_workspace("home").await;
        let packs = vec![noise(100_000), noise(10)];
        let head = commit_packs(&device, &genesis, genesis.head(), &packs).await;
        Self { server, device, genesis, head, packs, room: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.room.path().join(name)
    }

    async fn backup(&self) -> Copied {
        let (data, target) = (self.server.data().to_owned(), self.path("backup"));
        blocking(move || backup_to(&data, &shelf(&target))).await.unwrap()
    }
}

#[tokio::test]
async fn a_running_server_is_backed_up_and_restored_whole_and_nothing_is_copied_twice() {
    let mut scene = Scene::new().await;
    let first = scene.backup().await;
    assert!(first.report.is_well(), "{first:?}");
    assert_eq!((first.objects, first.object_bytes), (2, 100_010));
    assert_eq!((first.report.workspaces, first.report.entries), (1, 1));
    let more = [noise(500)];
    let (device, genesis) = (&scene.device, &scene.genesis);
    scene.head = commit_packs(device, genesis, scene.head, &more).await;
    let second = scene.backup().await;
    assert_eq!((second.objects, second.object_bytes, second.report.objects), (1, 500, 3));
    // What comes after it is not in it.
    commit_packs(device, genesis, scene.head, &[noise(7)]).await;

    let (source, data) = (scene.path("backup"), scene.path("restored"));
    let restored = {
        let data = data.clone();
        blocking(move || restore_to(&source, &data)).await.unwrap()
    };
    assert_eq!(restored.backup, second.backup);
    assert!(restored.report.is_well() && restored.objects == 3, "{restored:?}");
    let report = blocking(move || verify(&data, true)).await;
    assert!(report.is_well() && report.read_bytes == 100_510, "{report:?}");
    assert_eq!(report.strangers, 0);

    // The device needs not sign in again.
    let server = TestServer::start_in(scene.path("restored")).await.unwrap();
    let device = Device { server: server.url(""), ..scene.device.clone() };
    assert_eq!(device.log(genesis).await.head().await.unwrap(), scene.head);
    for pack in scene.packs.iter().chain(&more) {
        let found = device.request(Method::GET, &pack_path(genesis, pack)).send().await.unwrap();
        assert!(found.bytes().await.unwrap() == *pack);
    }
}

#[tokio::test]
async fn a_backup_that_is_cut_off_anywhere_is_not_there_and_goes_on() {
    let scene = Scene::new().await;
    let (data, target) = (scene.server.data().to_owned(), scene.path("backup"));
    let calls = blocking(move || {
        let mut cut_at = 0;
        loop {
            let store = storage::open(&format!("file:{}", target.display())).unwrap();
            let plan = move |call: &Call<'_>| match call.number {
                number if number >= cut_at => Fault::ErrorAfter,
                _ => Fault::None,
            };
            let faulty = Shelf::over(Arc::new(Faulty::new(store, plan))).unwrap();
            let made = backup_to(&data, &faulty);
            let whole = admin::backups(&shelf(&target)).unwrap();
            if let Ok(made) = made {
                assert!(made.report.is_well(), "{made:?}");
                return cut_at;
            }
            // Only the last answer can be lost after the list was written.
            if let Some(name) = whole.last() {
                let folder = DataFolder::open(&target.with_extension("look")).unwrap();
                let scratch = Scratch::take(&folder).unwrap();
                let looked = admin::verify_backup(&shelf(&target), Some(name), &scratch, true);
                assert!(looked.unwrap().1.is_well());
            }
            cut_at += 1;
        }
    })
    .await;
    assert!(calls > 5, "it was cut off {calls} times only");
}

#[tokio::test]
async fn places_that_are_not_empty_are_refused_and_left_alone() {
    let scene = Scene::new().await;
    scene.backup().await;
    let (source, data) = (scene.path("backup"), scene.server.data().to_owned());
    let refused = blocking(move || restore_to(&source, &data)).await;
    assert!(matches!(refused, Err(ServerError::Locked { .. })), "{refused:?}");
    let (source, data) = (scene.path("backup"), scene.path("restored"));
    blocking(move || {
        drop(Sqlite::open(&DataFolder::open(&data).unwrap().database_path()).unwrap());
        let refused = restore_to(&source, &data);
        assert!(matches!(refused, Err(ServerError::Taken { .. })), "{refused:?}");
        remove(&data.join("metadata.sqlite"));
        let stranger = data.join("store/workspaces").join("00".repeat(16));
        write(&stranger.join("packs/00").join("00".repeat(32)), b"of another server");
        let refused = restore_to(&source, &data);
        assert!(matches!(refused, Err(ServerError::Taken { .. })), "{refused:?}");
        assert!(!data.join("metadata.sqlite").exists());
        remove(&stranger.join("packs/00").join("00".repeat(32)));
        restore_to(&source, &data).unwrap();
    })
    .await;
    let (empty, data) = (scene.path("nothing"), scene.path("other"));
    let refused = blocking(move || restore_to(&empty, &data)).await;
    assert!(matches!(refused, Err(ServerError::NotFound { .. })), "{refused:?}");
}

#[expect(clippy::disallowed_methods, reason = "the test is the damage")]
fn remove(path: &Path) {
    std::fs::remove_file(path).unwrap();
}

#[expect(clippy::disallowed_methods, reason = "the test is the damage")]
fn write(path: &Path, bytes: &[u8]) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
}

fn change(data: &Path, sql: &str) {
    let database = rusqlite::Connection::open(data.join("metadata.sqlite")).unwrap();
    database.execute_batch(sql).unwrap();
}

fn findings(report: &Report) -> Vec<String> {
    report.damage.iter().map(|one| format!("{}: {}", one.what, one.reason)).collect()
}

#[tokio::test]
async fn every_damage_is_named_and_nothing_is_changed() {
    let mut scene = Scene::new().await;
    for _ in 0..3 {
        let more = [noise(300)];
        scene.head = commit_packs(&scene.device, &scene.genesis, scene.head, &more).await;
    }
    scene.backup().await;
    let pack = {
        let id = pack_id(&scene.packs[0]).to_string();
        format!("workspaces/{}/packs/{}/{id}", scene.genesis.workspace(), &id[..2])
    };
    for (name, sql, wanted) in [
        ("bytes", "UPDATE entries SET bytes = x'00ff' WHERE seq = 2", "entry 2: "),
        ("gap", "DELETE FROM entries WHERE seq = 2", "entry 2: it does not follow"),
        ("hash", "UPDATE entries SET hash = zeroblob(32) WHERE seq = 2", "entry 2: its row holds"),
        ("short", "DELETE FROM entries WHERE seq = 4", "end of the log: its row says 4"),
        ("version", "UPDATE node_versions SET version = 9", "version of node"),
        ("used", "UPDATE workspaces SET used_bytes = used_bytes + 1", "used bytes: "),
        ("object", "DELETE FROM objects WHERE length = 10", "the database does not know it"),
        ("length", "UPDATE objects SET length = 11 WHERE length = 10", "10 bytes in the store"),
        ("genesis", "UPDATE workspaces SET genesis = x'00'", "genesis: "),
        (
            "checkpoint",
            "INSERT INTO checkpoints SELECT number, 1, x'00' FROM workspaces",
            "checkpoint: ",
        ),
    ] {
        let (source, data) = (scene.path("backup"), scene.path(name));
        let report = blocking(move || {
            restore_to(&source, &data).unwrap();
            change(&data, sql);
            verify(&data, false)
        })
        .await;
        let found = findings(&report);
        assert!(found.iter().any(|line| line.contains(wanted)), "{name}: {found:?}");
    }
    let (source, data) = (scene.path("backup"), scene.path("store of it"));
    blocking(move || {
        restore_to(&source, &data).unwrap();
        let path = data.join("store").join(&pack);
        write(&path, &[0; 100_000]);
        assert!(verify(&data, false).is_well(), "the length is right");
        let found = findings(&verify(&data, true));
        assert!(found.len() == 1 && found[0].contains("other bytes"), "{found:?}");
        remove(&path);
        let found = findings(&verify(&data, false));
        assert!(found.len() == 1 && found[0].contains("not in the store"), "{found:?}");
        // A server that has lost something can be backed up, but for that.
        let target = data.with_extension("backup");
        let made = backup_to(&data, &shelf(&target)).unwrap();
        assert_eq!(findings(&made.report), found);
        assert_eq!(made.objects, 4);
    })
    .await;
}

#[tokio::test]
async fn metadata_move_while_no_server_runs_and_are_equal_then() {
    let scene = Scene::new().await;
    let (from, to) = (scene.server.data().to_owned(), scene.path("moved"));
    let migrate = |from: PathBuf, to: PathBuf| {
        blocking(move || {
            let (from, to) = (DataFolder::open(&from).unwrap(), DataFolder::open(&to).unwrap());
            admin::migrate((&from, &Database::Embedded), (&to, &Database::Embedded))
        })
    };
    let refused = migrate(from.clone(), to.clone()).await;
    assert!(matches!(refused, Err(ServerError::Locked { .. })), "{refused:?}");
    let stopped = scene.server.stop().await;
    let moved = migrate(from.clone(), to.clone()).await.unwrap();
    assert!(moved.iter().any(|table| table.table == "entries" && table.rows == 1), "{moved:?}");
    let refused = migrate(from, to.clone()).await;
    assert!(matches!(refused, Err(ServerError::Taken { .. })), "{refused:?}");
    let (old, new) = (stopped.database(), to.join("metadata.sqlite"));
    blocking(move || {
        let [old, new] = [old, new].map(|path| {
            let mut database = Sqlite::open(&path).unwrap();
            server::metadata::RowTables::begin_reading(&mut database).unwrap();
            server::metadata::copy::sums(&database).unwrap()
        });
        assert_eq!(old, new);
    })
    .await;
}

#[tokio::test]
async fn a_database_that_is_being_written_to_is_not_moved() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    blocking(move || {
        let (from, to) = (DataFolder::open(&from).unwrap(), DataFolder::open(&to).unwrap());
        let mut writing = from.open_database().unwrap();
        server::metadata::Metadata::begin(&mut writing).unwrap();
        let place = (&from, &Database::Embedded);
        let refused = admin::migrate(place, (&to, &Database::Embedded));
        let is_busy = matches!(refused, Err(ServerError::Metadata(MetadataError::Busy)));
        assert!(is_busy, "{refused:?}");
        assert!(!to.database_path().exists());
    })
    .await;
}
