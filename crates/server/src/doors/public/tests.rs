use std::net::{Ipv4Addr, SocketAddr};

use axum::body::to_bytes;
use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::{Request, StatusCode};
use model::{NodeId, Timestamp};

use super::*;
use crate::error::ServerError;
use crate::files::{FileReader, Put, READER_MEMORY, Recipient, Spool};
use crate::limits::{ARCHIVES_AT_ONCE_MAX, BODIES_OF_STRANGERS_LENGTH_MAX};
use crate::listener::PeerAddress;
use crate::metadata::Metadata;
use crate::services::files::Condition;
use crate::services::links::{self, NewLink};
use crate::testing::TestApp;

const CONTENT: &str = "content of a file";

/// A workspace with a file in it, and the secret of a link to all of it.
async fn with_link(test: &TestApp) -> String {
    let (app, caller, workspace) = (&test.app, test.devices[0], test.home.workspace());
    let path = RelativePath::new(b"file").unwrap();
    let put = Put { path, condition: Condition::Any, modified: Timestamp::default(), upload: None };
    let mut spool = Spool::begin(&app.files.spools).await.unwrap();
    spool.take(&mut axum::body::Body::from(CONTENT).into_data_stream()).await.unwrap();
    let body = spool.finish().await.unwrap();
    app.put_file(caller, workspace, &put, &body).await.unwrap();
    let new =
        NewLink { node: NodeId::ROOT, expires: None, password_hash: None, downloads_max: None };
    let random = Arc::clone(&app.random);
    let add = move |metadata: &mut dyn Metadata| {
        links::add(metadata, &*random, (&caller, workspace), &new, 0)
    };
    app.writer.write(add).await.unwrap().1.to_text()
}

/// Somebody who follows a link.
async fn visit(test: &TestApp, secret: &str, rest: &str) -> Visit {
    let peer = PeerAddress(SocketAddr::from((Ipv4Addr::LOCALHOST, 1)));
    let request = Request::get(format!("/public/{secret}/{rest}")).extension(ConnectInfo(peer));
    let (mut parts, ()) = request.body(()).unwrap().into_parts();
    Visit::from_request_parts(&mut parts, &test.app).await.unwrap()
}

async fn text_of(response: Response) -> Vec<u8> {
    assert_eq!(response.status(), StatusCode::OK);
    to_bytes(response.into_body(), usize::MAX).await.unwrap().to_vec()
}

/// Tells whether others take too much.
fn is_busy<T>(asked: &Result<T>) -> bool {
    matches!(asked, Err(ServerError::Unavailable { .. }))
}

#[tokio::test(start_paused = true)]
async fn strangers_and_accounts_take_no_memory_from_each_other() {
    let test = TestApp::start();
    let secret = with_link(&test).await;
    let (app, caller, workspace) = (&test.app, test.devices[0], test.home.workspace());
    let file = async || send(visit(&test, &secret, "content/file").await, HeaderMap::new()).await;
    let folder = async || send_archive(visit(&test, &secret, "archive").await).await;

    let of_accounts = app.accounts.memory_for_body(u64::MAX).await.unwrap();
    assert!(is_busy(&app.memory_for_body(1).await));
    assert_eq!(text_of(file().await.unwrap()).await, CONTENT.as_bytes());
    assert!(text_of(folder().await.unwrap()).await.starts_with(b"PK"));
    drop(of_accounts);

    let _of_strangers = app.strangers.memory_for_body(u64::MAX).await.unwrap();
    assert!(is_busy(&file().await) && is_busy(&folder().await));
    let node = app.view(caller, workspace).await.unwrap();
    let node = node.get(&RelativePath::new(b"file").unwrap()).unwrap();
    let recipient = Recipient::account(Arc::clone(app), caller, workspace);
    let content = node.content().unwrap();
    let mut reader = FileReader::open(recipient, content, 0..content.size).await.unwrap();
    assert_eq!(reader.next().await.unwrap().unwrap(), CONTENT);
}

#[tokio::test(start_paused = true)]
async fn an_archive_waits_for_memory_and_its_turn_before_it_is_laid_out_also_where_it_is_described()
{
    let test = TestApp::start();
    let secret = with_link(&test).await;
    let describe = async || head_archive(visit(&test, &secret, "archive").await).await;
    let length = describe().await.unwrap().headers()["content-length"].clone();
    assert_ne!(length, "0");

    let memory = test.app.strangers.memory_for_body(u64::MAX).await.unwrap();
    assert!(is_busy(&describe().await));
    drop(memory);

    let turns = [(); ARCHIVES_AT_ONCE_MAX].map(|()| test.app.strangers.turn_of_archive());
    let turns = futures_util::future::join_all(turns).await;
    assert!(is_busy(&describe().await));
    drop(turns);
    assert_eq!(describe().await.unwrap().headers()["content-length"], length);
}

#[tokio::test(start_paused = true)]
async fn an_archive_that_has_begun_waits_for_no_more_memory() {
    let test = TestApp::start();
    let secret = with_link(&test).await;
    let strangers = &test.app.strangers;
    // There is room for what one takes, and a little more.
    let unit = 64 * 1024;
    let others = BODIES_OF_STRANGERS_LENGTH_MAX - READER_MEMORY - 2 * unit;
    let _others = strangers.memory_for_body(others).await.unwrap();
    let begun = send_archive(visit(&test, &secret, "archive").await).await.unwrap();
    assert!(is_busy(&send_archive(visit(&test, &secret, "archive").await).await));
    let _rest = strangers.memory_for_body(unit).await.unwrap();
    assert!(text_of(begun).await.starts_with(b"PK"));
}
