//! The data door.

use commit_log::CommitLog;
use futures_util::future::join_all;
use futures_util::stream;
use model::codec::encode_message;
use model::{Action, Change, Commit, Fence, Genesis, NodeId};
use reqwest::{Method, StatusCode};
use serde_json::json;
use server::Admin;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{Device, TestServer, noise, pack_id, pack_path, read_json};

async fn server_with_workspace() -> (TestServer, Device, Genesis) {
    let server = TestServer::start().await;
    let device = server.device("ada").await;
    let genesis = device.create_workspace("home").await;
    (server, device, genesis)
}

async fn get_range(device: &Device, path: &str, range: &str) -> (StatusCode, String, Vec<u8>) {
    let request = device.request(Method::GET, path).header("range", range);
    let response = request.send().await.unwrap();
    let content_range = response.headers().get("content-range");
    let content_range = content_range.map_or("", |value| value.to_str().unwrap()).to_owned();
    (response.status(), content_range, response.bytes().await.unwrap().to_vec())
}

#[tokio::test]
async fn pack_returns_whole_and_in_parts() {
    let (_server, device, genesis) = server_with_workspace().await;
    let pack = noise(5 << 20);
    let path = pack_path(&genesis, &pack);
    assert_eq!(device.put_pack(&genesis, &pack).await, StatusCode::CREATED);
    assert_eq!(device.put_pack(&genesis, &pack).await, StatusCode::OK);
    let head = device.request(Method::HEAD, &path).send().await.unwrap();
    assert_eq!(head.headers()["content-length"], pack.len().to_string());
    let whole = device.request(Method::GET, &path).send().await.unwrap();
    assert!(whole.bytes().await.unwrap() == pack);

    let length = pack.len();
    for (range, start, end) in [
        ("bytes=0-0", 0, 1),
        ("bytes=1000-1999", 1000, 2000),
        ("bytes=-100", length - 100, length),
        ("bytes=5000000-99999999", 5_000_000, length),
    ] {
        let (status, content_range, bytes) = get_range(&device, &path, range).await;
        assert_eq!(status, StatusCode::PARTIAL_CONTENT);
        assert_eq!(content_range, format!("bytes {start}-{}/{length}", end - 1));
        assert!(bytes == pack[start..end], "{range}");
    }
    let (status, content_range, _) = get_range(&device, &path, "bytes=99999999-").await;
    assert_eq!(status, StatusCode::RANGE_NOT_SATISFIABLE);
    assert_eq!(content_range, format!("bytes */{length}"));
}

#[tokio::test]
async fn bytes_under_a_false_name_are_refused_and_not_visible() {
    let (_server, device, genesis) = server_with_workspace().await;
    let path = pack_path(&genesis, b"what the name says");
    let request = device.request(Method::PUT, &path).body("something else");
    let (status, problem) = read_json(request.send().await.unwrap()).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(problem["code"], "wrong_content");
    assert_eq!(device.status(Method::GET, &path, vec![]).await, StatusCode::NOT_FOUND);
    let list = format!("/workspaces/{}/objects", genesis.workspace());
    assert_eq!(device.get(&list).await.1, json!([]));
}

/// Sends `text` as it is and returns the first line of the answer, or nothing where there is none.
async fn send_raw(server: &TestServer, text: &str, body: &[u8], then_close: bool) -> String {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    stream.write_all(body).await.unwrap();
    if then_close {
        stream.shutdown().await.unwrap();
    }
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).lines().next().unwrap_or_default().to_owned()
}

fn head(device: &Device, method: &str, path: &str, length: usize) -> String {
    let token = &device.token;
    format!(
        "{method} /api/v1{path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\
         connection: close\r\ncontent-length: {length}\r\n\r\n"
    )
}

#[tokio::test]
async fn upload_that_breaks_off_is_never_visible() {
    let (server, device, genesis) = server_with_workspace().await;
    let pack = noise(100_000);
    let path = pack_path(&genesis, &pack);
    let head = head(&device, "PUT", &path, pack.len());
    send_raw(&server, &head, &pack[..50_000], true).await;
    assert_eq!(device.status(Method::GET, &path, vec![]).await, StatusCode::NOT_FOUND);
    assert_eq!(device.put_pack(&genesis, &pack).await, StatusCode::CREATED);
}

#[tokio::test]
async fn path_like_and_foreign_keys_lead_nowhere() {
    let (server, device, genesis) = server_with_workspace().await;
    let hex = "ab".repeat(32);
    let workspace = format!("/workspaces/{}", genesis.workspace());
    for key in [
        "objects/../../../../etc/passwd".to_owned(),
        "objects/..%2f..%2fmetadata.sqlite".to_owned(),
        "objects/%2e%2e/metadata.sqlite".to_owned(),
        "objects//etc/passwd".to_owned(),
        "objects/log/00000000000000000001/r0".to_owned(),
        "objects/genesis".to_owned(),
        "objects/.format".to_owned(),
        "objects/packs/zz/x".to_owned(),
        format!("objects/packs/cd/{hex}"),
        format!("objects/packs/ab/{hex}%00"),
        format!("packs/{}", hex.to_uppercase()),
        "packs/..".to_owned(),
        "packs/%ff%fe".to_owned(),
    ] {
        for method in ["GET", "HEAD", "PUT", "DELETE"] {
            let head = head(&device, method, &format!("{workspace}/{key}"), 1);
            let answer = send_raw(&server, &head, b"x", false).await;
            let status = answer.split(' ').nth(1).unwrap_or_default();
            assert!(status.starts_with('4'), "{method} {key}: {answer}");
        }
    }
    assert_eq!(device.get(&format!("{workspace}/objects")).await.1, json!([]));
}

#[tokio::test]
async fn endless_and_overlong_bodies_are_cut_off() {
    let (server, device, genesis) = server_with_workspace().await;
    let path = pack_path(&genesis, b"endless");
    let chunk = bytes::Bytes::from(vec![7; 1 << 20]);
    let endless = stream::iter((0..1000).map(move |_| Ok::<_, std::io::Error>(chunk.clone())));
    let request = device.request(Method::PUT, &path).body(reqwest::Body::wrap_stream(endless));
    // Who still sends when the server has heard enough may see the answer or the closed connection.
    if let Ok(response) = request.send().await {
        assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);
    }
    let announced = head(&device, "PUT", &path, 65 << 20);
    let answer = send_raw(&server, &announced, &[], true).await;
    assert!(answer.contains(" 413 "), "{answer}");
    assert_eq!(device.get("/whoami").await.1["used_bytes"], 0);
}

#[tokio::test]
async fn quota_holds_however_many_upload_at_once() {
    let (server, device, genesis) = server_with_workspace().await;
    Admin::open(server.data()).unwrap().set_quota("ada", Some(55_000)).unwrap();
    let packs: Vec<_> = (0..20).map(|_| noise(10_000)).collect();
    let statuses = join_all(packs.iter().map(|pack| device.put_pack(&genesis, pack))).await;
    let count = |wanted| statuses.iter().filter(|status| **status == wanted).count();
    assert_eq!(count(StatusCode::CREATED), 5, "{statuses:?}");
    assert_eq!(count(StatusCode::INSUFFICIENT_STORAGE), 15, "{statuses:?}");
    assert_eq!(device.get("/whoami").await.1["used_bytes"], 50_000);
    for (pack, status) in packs.iter().zip(&statuses) {
        let found = device.status(Method::GET, &pack_path(&genesis, pack), vec![]).await;
        assert_eq!(found == StatusCode::OK, *status == StatusCode::CREATED);
        let file = stored_file(&server, &genesis, pack);
        assert_eq!(file.exists(), *status == StatusCode::CREATED, "no refused bytes stay behind");
    }
}

fn stored_file(server: &TestServer, genesis: &Genesis, pack: &[u8]) -> std::path::PathBuf {
    let (workspace, hex) = (genesis.workspace(), pack_id(pack).to_string());
    let key = format!("store/workspaces/{workspace}/packs/{}/{hex}", &hex[..2]);
    server.data().join(key)
}

#[tokio::test]
async fn object_cut_off_in_the_store_is_never_served_and_heals() {
    let (server, device, genesis) = server_with_workspace().await;
    let pack = noise(10_000);
    let path = pack_path(&genesis, &pack);
    device.put_pack(&genesis, &pack).await;
    cut_off(&stored_file(&server, &genesis, &pack));
    let (status, problem) = device.get(&path).await;
    assert_eq!((status, &problem["code"]), (StatusCode::NOT_FOUND, &json!("object_damaged")));
    assert_eq!(device.status(Method::HEAD, &path, vec![]).await, StatusCode::NOT_FOUND);
    assert_eq!(get_range(&device, &path, "bytes=9000-9999").await.0, StatusCode::NOT_FOUND);
    assert_eq!(device.put_pack(&genesis, &pack).await, StatusCode::OK);
    assert_eq!(device.status(Method::GET, &path, vec![]).await, StatusCode::OK);
}

#[expect(clippy::disallowed_methods, reason = "the test is the failing disk")]
fn cut_off(path: &std::path::Path) {
    std::fs::OpenOptions::new().write(true).open(path).unwrap().set_len(5000).unwrap();
}

#[tokio::test]
async fn lists_are_paged_and_show_only_the_own_workspace() {
    let (_server, device, genesis) = server_with_workspace().await;
    let other = device.create_workspace("other").await;
    device.put_pack(&other, &noise(10)).await;
    let packs: Vec<_> = (0..5).map(|_| noise(100)).collect();
    for pack in &packs {
        device.put_pack(&genesis, pack).await;
    }
    let mut keys: Vec<_> = packs
        .iter()
        .map(|pack| pack_id(pack).to_string())
        .map(|hex| format!("packs/{}/{hex}", &hex[..2]))
        .collect();
    keys.sort();
    let (mut found, mut last) = (Vec::new(), String::new());
    loop {
        let query = format!("prefix=packs/&start_after={last}&limit=2");
        let path = format!("/workspaces/{}/objects?{query}", genesis.workspace());
        let (_, page) = device.get(&path).await;
        let page = page.as_array().unwrap().clone();
        found.extend(page.iter().map(|line| line["key"].as_str().unwrap().to_owned()));
        if page.len() < 2 {
            break;
        }
        last = found.last().unwrap().clone();
    }
    assert_eq!(found, keys);
}

#[tokio::test]
async fn pack_goes_only_where_the_log_condemns_it() {
    let (server, device, genesis) = server_with_workspace().await;
    let (needed, needless) = (noise(1000), noise(1000));
    for pack in [&needed, &needless] {
        assert_eq!(device.put_pack(&genesis, pack).await, StatusCode::CREATED);
    }
    let delete =
        async |pack: &[u8]| device.status(Method::DELETE, &pack_path(&genesis, pack), vec![]).await;
    assert_eq!(delete(&needless).await, StatusCode::FORBIDDEN);
    let log = device.log(&genesis).await;
    let old = log.head().await.unwrap();
    let head = log.commit(&device.commit(1, old)).await.unwrap();
    let fence = |seen| {
        let condemned = vec![pack_id(&needless)];
        let payload = encode_message(&Fence { condemned, dropped: vec![] });
        let change = Change { node: NodeId::FENCE, base: 0, action: Action::Put(payload) };
        Commit { changes: vec![change], ..device.commit(1, seen) }
    };
    // A fence that was overtaken condemns nothing.
    let head = {
        log.commit(&fence(old)).await.unwrap();
        log.head().await.unwrap_or(head)
    };
    assert_eq!(delete(&needless).await, StatusCode::FORBIDDEN);
    log.commit(&fence(head)).await.unwrap();
    assert_eq!(delete(&needless).await, StatusCode::NO_CONTENT);
    assert_eq!(delete(&needless).await, StatusCode::NO_CONTENT, "once more changes nothing");
    assert_eq!(delete(&needed).await, StatusCode::FORBIDDEN);
    let absent = device.status(Method::GET, &pack_path(&genesis, &needless), vec![]).await;
    assert_eq!(absent, StatusCode::NOT_FOUND);
    let found = device.request(Method::GET, &pack_path(&genesis, &needed)).send().await.unwrap();
    assert!(found.bytes().await.unwrap() == needed);
    // It is the log that says so, also for a server that was started anew.
    assert_eq!(device.put_pack(&genesis, &needless).await, StatusCode::CREATED);
    let _server = server.stop().await.start().await;
    assert_eq!(delete(&needless).await, StatusCode::NO_CONTENT);
}
