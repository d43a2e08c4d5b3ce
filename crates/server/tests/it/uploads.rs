//! Files in pieces, and events as a stream.

use std::time::Duration;

use futures_util::StreamExt;
use model::Genesis;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use server::Admin;

use crate::support::{Device, TestServer, noise, read_json};

async fn place() -> (TestServer, Device, Genesis) {
    let server = TestServer::start().await;
    let device = server.device("ada").await;
    let genesis = device.create_workspace("home").await;
    (server, device, genesis)
}

async fn ask(
    device: &Device,
    genesis: &Genesis,
    (method, rest): (Method, &str),
    headers: &[(&str, &str)],
    body: Vec<u8>,
) -> (StatusCode, Value) {
    let request = device.request(method, &format!("/workspaces/{}/{rest}", genesis.workspace()));
    let request =
        headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    read_json(request.body(body).send().await.unwrap()).await
}

async fn begin(device: &Device, genesis: &Genesis, path: &str) -> String {
    let body = json!({ "path": path }).to_string().into_bytes();
    let headers = [("content-type", "application/json")];
    let (status, upload) = ask(device, genesis, (Method::POST, "uploads"), &headers, body).await;
    assert_eq!(status, StatusCode::CREATED, "{upload}");
    format!("uploads/{}", upload["id"].as_str().unwrap())
}

#[tokio::test]
async fn file_comes_in_pieces_and_is_seen_when_it_is_committed() {
    let (server, device, genesis) = place().await;
    let whole = noise(5 << 20);
    let upload = begin(&device, &genesis, "long.bin").await;
    let piece = async |offset: usize, end: usize| {
        let headers = [("upload-offset", offset.to_string())];
        let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        ask(&device, &genesis, (Method::PATCH, &upload), &headers, whole[offset..end].to_vec())
            .await
    };
    assert_eq!(piece(0, 2_000_000).await.1["offset"], 2_000_000);
    assert_eq!(piece(1, 10).await.0, StatusCode::CONFLICT);
    // One that breaks off is kept as far as it came.
    let address = format!("/api/v1/workspaces/{}/{upload}", genesis.workspace());
    let head = format!(
        "PATCH {address} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\nupload-offset: 2000000\r\n\
         content-length: 2000000\r\n\r\n",
        device.token
    );
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(&whole[2_000_000..3_500_000]).await.unwrap();
    stream.shutdown().await.unwrap();
    drop(stream);
    // It may still be on its way when it is asked for.
    let mut reached = 0;
    for _ in 0..1000 {
        let (_, state) = ask(&device, &genesis, (Method::GET, &upload), &[], vec![]).await;
        reached = state["offset"].as_u64().unwrap_or(0) as usize;
        if reached > 2_000_000 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(reached > 2_000_000, "{reached}");
    assert!(reached <= 3_500_000);
    assert_eq!(piece(reached, whole.len()).await.1["offset"], whole.len());
    let absent = ask(&device, &genesis, (Method::GET, "nodes/long.bin"), &[], vec![]).await;
    assert_eq!(absent.0, StatusCode::NOT_FOUND);
    let commit = format!("{upload}/commit");
    let headers = [("if-none-match", "*"), ("x-oc-mtime", "1000")];
    let (status, node) = ask(&device, &genesis, (Method::POST, &commit), &headers, vec![]).await;
    assert_eq!((status, &node["modified"]), (StatusCode::CREATED, &json!(1000)), "{node}");
    let request = format!("/workspaces/{}/files/long.bin", genesis.workspace());
    let got = device.request(Method::GET, &request).send().await.unwrap();
    assert!(got.bytes().await.unwrap() == whole);
    let again = ask(&device, &genesis, (Method::POST, &commit), &[], vec![]).await;
    assert_eq!(again.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn what_finds_no_room_is_committed_later_without_being_sent_again() {
    let (server, device, genesis) = place().await;
    let whole = noise(3 << 20);
    let upload = begin(&device, &genesis, "large.bin").await;
    let from = async |offset: &str, bytes: &[u8]| {
        let headers = [("upload-offset", offset)];
        ask(&device, &genesis, (Method::PATCH, &upload), &headers, bytes.to_vec()).await
    };
    assert_eq!(from("0", &whole).await.1["offset"], whole.len());
    let set_quota = |quota| Admin::open(server.data()).unwrap().set_quota("ada", quota).unwrap();
    let commit = format!("{upload}/commit");
    let try_commit = async || ask(&device, &genesis, (Method::POST, &commit), &[], vec![]).await;
    set_quota(Some(1000));
    for _ in 0..2 {
        let (status, problem) = try_commit().await;
        assert_eq!(
            (status, &problem["code"]),
            (StatusCode::INSUFFICIENT_STORAGE, &json!("over_quota"))
        );
    }
    let (_, state) = ask(&device, &genesis, (Method::GET, &upload), &[], vec![]).await;
    assert_eq!(state["offset"], whole.len());
    // It was summed up, so nothing comes behind it.
    assert_eq!(from(&whole.len().to_string(), b"more").await.0, StatusCode::CONFLICT);
    set_quota(None);
    assert_eq!(try_commit().await.0, StatusCode::CREATED);
    let request = format!("/workspaces/{}/files/large.bin", genesis.workspace());
    let got = device.request(Method::GET, &request).send().await.unwrap();
    assert!(got.bytes().await.unwrap() == whole);
    assert_eq!(try_commit().await.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn uploads_are_of_one_account_end_and_are_bounded() {
    let (server, device, genesis) = place().await;
    let upload = begin(&device, &genesis, "a").await;
    let bob = server.device("bob").await;
    for (method, rest) in
        [(Method::GET, upload.clone()), (Method::POST, format!("{upload}/commit"))]
    {
        let (status, _) = ask(&bob, &genesis, (method, &rest), &[], vec![]).await;
        assert_eq!(status, StatusCode::NOT_FOUND);
    }
    let (status, _) = ask(&device, &genesis, (Method::DELETE, &upload), &[], vec![]).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    let (status, _) = ask(&device, &genesis, (Method::GET, &upload), &[], vec![]).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    for _ in 0..16 {
        begin(&device, &genesis, "a").await;
    }
    let body = json!({ "path": "a" }).to_string().into_bytes();
    let headers = [("content-type", "application/json")];
    let (status, _) = ask(&device, &genesis, (Method::POST, "uploads"), &headers, body).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
}

#[tokio::test]
async fn what_a_device_has_begun_ends_when_it_is_signed_out() {
    let (server, device, genesis) = place().await;
    let other = server.device("ada").await;
    let (of_this, of_other) =
        (begin(&device, &genesis, "a").await, begin(&other, &genesis, "b").await);
    let (status, _) =
        read_json(device.request(Method::POST, "/logout").send().await.unwrap()).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    for (upload, left) in [(of_this, StatusCode::NOT_FOUND), (of_other, StatusCode::OK)] {
        assert_eq!(ask(&other, &genesis, (Method::GET, &upload), &[], vec![]).await.0, left);
    }
}

#[tokio::test]
async fn server_stops_while_an_upload_is_under_way_and_somebody_listens() {
    let (server, device, genesis) = place().await;
    let upload = begin(&device, &genesis, "a").await;
    let headers = [("upload-offset", "0")];
    let piece = ask(&device, &genesis, (Method::PATCH, &upload), &headers, noise(2 << 20)).await;
    assert_eq!(piece.0, StatusCode::OK);
    let path = format!("/workspaces/{}/events", genesis.workspace());
    let stream = device.request(Method::GET, &path).send().await.unwrap();
    let stopped = tokio::time::timeout(Duration::from_secs(8), server.stop()).await;
    assert!(stopped.is_ok(), "what is under way must not keep the server");
    drop(stream);
}

#[tokio::test]
async fn listener_hears_of_every_entry_until_it_is_signed_out() {
    let (server, device, genesis) = place().await;
    let listener = server.device("ada").await;
    let path = format!("/workspaces/{}/events", genesis.workspace());
    let stream = listener.request(Method::GET, &path).send().await.unwrap();
    assert_eq!(stream.headers()["content-type"], "text/event-stream");
    let mut stream = stream.bytes_stream();
    let mut next = async || {
        let bytes = tokio::time::timeout(Duration::from_secs(10), stream.next()).await.unwrap();
        bytes.map(|bytes| String::from_utf8(bytes.unwrap().to_vec()).unwrap())
    };
    assert!(next().await.unwrap().contains("\"seq\":0"));
    for seq in 1..=2 {
        let body = seq.to_string().into_bytes();
        ask(&device, &genesis, (Method::PUT, "files/a"), &[], body).await;
        let event = next().await.unwrap();
        let (seq, id) = (format!("\"seq\":{seq}"), device.id.to_string());
        assert!(event.contains(&seq) && event.contains(&id), "{event}");
    }
    assert_eq!(listener.status(Method::POST, "/logout", vec![]).await, StatusCode::NO_CONTENT);
    ask(&device, &genesis, (Method::PUT, "files/a"), &[], b"3".to_vec()).await;
    assert_eq!(next().await, None);
    let bob = server.device("bob").await;
    assert_eq!(bob.status(Method::GET, &path, vec![]).await, StatusCode::NOT_FOUND);
}
