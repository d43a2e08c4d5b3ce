//! What is left after a stop, a kill, and the restoring of an old copy.

use std::path::Path;
use std::time::Duration;

use commit_log::CommitLog;
use futures_util::StreamExt;
use model::wire::RefusalKind;
use reqwest::{Method, StatusCode};
use server::ServerError;

use crate::support::{TestServer, noise, pack_path};

#[tokio::test]
async fn restart_keeps_accounts_devices_workspaces_packs_and_log() {
    let server = TestServer::start().await;
    let device = server.device("ada").await;
    let genesis = device.create_workspace("home").await;
    let pack = noise(1000);
    device.put_pack(&genesis, &pack).await;
    let log = device.log(&genesis).await;
    let head = log.commit(&device.commit(1, genesis.head())).await.unwrap();
    let entries = log.entries(0, 1 << 20).await.unwrap();
    let server = server.stop().await.start().await;
    let server = server.kill().await.start().await;
    assert_eq!(device.get("/whoami").await.0, StatusCode::OK);
    let found = device.request(Method::GET, &pack_path(&genesis, &pack)).send().await.unwrap();
    assert!(found.bytes().await.unwrap() == pack);
    let log = device.log(&genesis).await;
    assert_eq!(log.head().await.unwrap(), head);
    assert_eq!(log.entries(0, 1 << 20).await.unwrap(), entries);
    drop(server);
}

#[tokio::test]
async fn commit_repeated_after_a_kill_stands_once() {
    let server = TestServer::start().await;
    let device = server.device("ada").await;
    let genesis = device.create_workspace("home").await;
    let log = device.log(&genesis).await;
    let mut head = genesis.head();
    let mut server = Some(server);
    for node in 1..=5 {
        let commit = device.commit(node, head);
        // The kill comes while the commit is under way; nobody knows whether it was written.
        let (first, stopped) = tokio::join!(log.commit(&commit), server.take().unwrap().kill());
        server = Some(stopped.start().await);
        head = loop {
            match log.commit(&commit).await {
                Ok(head) => break head,
                Err(error) => assert!(error.is_retryable(), "{error:?}"),
            }
        };
        assert!(first.is_err() || first.is_ok_and(|first| first == head));
        assert_eq!(head.seq, u64::from(node));
    }
    assert_eq!(log.entries(0, 1 << 20).await.unwrap().len(), 5);
}

#[tokio::test]
async fn subscription_goes_on_after_a_restart() {
    let server = TestServer::start().await;
    let (writer, reader) = (server.device("ada").await, server.device("ada").await);
    let genesis = writer.create_workspace("home").await;
    let log = reader.log(&genesis).await;
    let mut events = log.subscribe(0).await.unwrap();
    let head = writer.log(&genesis).await.commit(&writer.commit(1, genesis.head())).await.unwrap();
    assert_eq!(events.next().await.unwrap().unwrap().head(), head);
    let server = server.stop().await.start().await;
    let head = writer.log(&genesis).await.commit(&writer.commit(2, head)).await.unwrap();
    let next = tokio::time::timeout(Duration::from_secs(30), events.next()).await;
    assert_eq!(next.unwrap().unwrap().unwrap().head(), head);
    drop(server);
}

#[tokio::test]
async fn second_server_on_one_folder_is_refused() {
    let server = TestServer::start().await;
    let refused = server.start_second().await;
    assert!(matches!(refused, Err(ServerError::Locked { .. })));
    let stopped = server.stop().await;
    drop(stopped.start().await);
}

#[tokio::test]
async fn store_that_is_not_mounted_is_not_taken_for_an_empty_one() {
    let server = TestServer::start().await;
    let device = server.device("ada").await;
    let genesis = device.create_workspace("home").await;
    let pack = noise(1000);
    device.put_pack(&genesis, &pack).await;
    let stopped = server.stop().await;
    let elsewhere = stopped.store().with_extension("unmounted");
    rename(&stopped.store(), &elsewhere);
    let refused = stopped.try_start().await;
    assert!(matches!(refused, Err(ServerError::Storage { .. })));
    rename(&elsewhere, &stopped.store());
    let _server = stopped.start().await;
    let path = pack_path(&genesis, &pack);
    assert_eq!(device.status(Method::GET, &path, vec![]).await, StatusCode::OK);
}

#[expect(clippy::disallowed_methods, reason = "the test is who unmounts the disk")]
fn rename(from: &Path, to: &Path) {
    std::fs::rename(from, to).unwrap();
}

#[tokio::test]
async fn older_database_put_in_place_is_found_out_by_who_has_seen_more() {
    let server = TestServer::start().await;
    let device = server.device("ada").await;
    let genesis = device.create_workspace("home").await;
    let log = device.log(&genesis).await;
    let stopped = server.stop().await;
    let copy = stopped.database().with_extension("copy");
    copy_file(&stopped.database(), &copy);
    let server = stopped.start().await;
    let head = retried(&log, &device.commit(1, genesis.head())).await.unwrap();

    let stopped = server.stop().await;
    copy_file(&copy, &stopped.database());
    let server = stopped.start().await;
    let error = retried(&log, &device.commit(2, head)).await.unwrap_err();
    assert!(error.is_refusal(RefusalKind::HistoryLost), "{error:?}");
    drop(server);
}

/// Commits, again while the server is not there.
async fn retried(
    log: &impl CommitLog,
    commit: &model::Commit,
) -> Result<model::Head, commit_log::CommitLogError> {
    loop {
        match log.commit(commit).await {
            Err(error) if error.is_retryable() => {}
            outcome => return outcome,
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the test is the administrator who restores a copy")]
fn copy_file(from: &Path, to: &Path) {
    std::fs::write(to, std::fs::read(from).unwrap()).unwrap();
    // What SQLite kept beside the newer database does not belong to the older one.
    for suffix in ["-wal", "-shm"] {
        let mut name = to.as_os_str().to_owned();
        name.push(suffix);
        let _ = std::fs::remove_file(name);
    }
}
