//! Files that are written without a device, and devices that read them, and the other way round.

use std::ops::Range;

use content::WorkspaceContentKeys;
use content::delta::{ChunkClient, DeltaError, DeltaPart, Plain, SessionId, body_of};
use content::documents::photograph;
use model::codec::decode_message;
use model::{Genesis, Mode};
use reqwest::{Client, Method, Response, StatusCode};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::support::{Device, Server, document, words};

const PASSWORD: &str = "correct horse";

/// Somebody who comes over HTTP.
struct Visitor {
    runtime: Runtime,
    client: Client,
    url: String,
    token: String,
}

impl Visitor {
    fn new(server: &Server) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let runtime = Runtime::new().unwrap();
        let client = Client::builder().no_proxy().build().unwrap();
        let body = json!({ "user": "ada", "password": PASSWORD, "device_name": "browser" });
        let login = client.post(format!("{}/api/v1/login", server.url)).json(&body);
        let answer: Value =
            runtime.block_on(async { login.send().await.unwrap().json().await.unwrap() });
        let token = answer["token"].as_str().unwrap().to_owned();
        Self { runtime, client, url: server.url.clone(), token }
    }

    fn ask(&self, method: Method, rest: &str, body: Vec<u8>) -> Response {
        let url = format!("{}/api/v1/workspaces/home/{rest}", self.url);
        let request = self.client.request(method, url).bearer_auth(&self.token);
        let request = request.header("x-oc-mtime", "1500000000.5").body(body);
        self.runtime.block_on(async { request.send().await.unwrap() })
    }

    fn put(&self, path: &str, body: impl Into<Vec<u8>>) -> StatusCode {
        self.ask(Method::PUT, &format!("files/{path}"), body.into()).status()
    }

    fn get(&self, path: &str) -> Vec<u8> {
        let answer = self.ask(Method::GET, &format!("files/{path}"), Vec::new());
        assert_eq!(answer.status(), StatusCode::OK, "{path}");
        self.runtime.block_on(async { answer.bytes().await.unwrap().to_vec() })
    }

    fn get_by_webdav(&self, path: &str) -> Vec<u8> {
        let request = self.client.get(format!("{}/dav/home/{path}", self.url));
        self.runtime.block_on(async {
            let answer = request.bearer_auth(&self.token).send().await.unwrap();
            assert_eq!(answer.status(), StatusCode::OK, "{path}");
            answer.bytes().await.unwrap().to_vec()
        })
    }

    fn get_range(&self, path: &str, range: Range<usize>) -> Vec<u8> {
        let url = format!("{}/api/v1/workspaces/home/files/{path}", self.url);
        let range = format!("bytes={}-{}", range.start, range.end - 1);
        let request = self.client.get(url).bearer_auth(&self.token).header("range", range);
        self.runtime.block_on(async {
            let answer = request.send().await.unwrap();
            assert_eq!(answer.status(), StatusCode::PARTIAL_CONTENT, "{path}");
            answer.bytes().await.unwrap().to_vec()
        })
    }
}

impl Visitor {
    /// Puts a version of a file as what has changed in it since another one, as the web app does.
    fn put_delta(&self, path: &str, (old, new): (&[u8], &[u8])) -> StatusCode {
        let answer = self.ask(Method::GET, "genesis", Vec::new());
        let genesis = self.runtime.block_on(async { answer.bytes().await.unwrap() });
        let genesis: Genesis = decode_message(&genesis).unwrap();
        let plain = Plain::of(&genesis).unwrap();
        assert_eq!(genesis.mode, Mode::Plain);
        let keys = WorkspaceContentKeys::derive(&genesis.content_key);
        let base = ChunkClient::survey(&keys, 256 << 10, &mut &*old).unwrap();
        let session = SessionId::from_bytes(*noise(16).first_chunk().unwrap());
        let mut client = ChunkClient::new(&keys, plain.workspace(), session);
        let mut parts = Vec::new();
        let deliver = |part: DeltaPart| {
            parts.push(part.into_message(plain)?);
            Ok::<_, DeltaError>(())
        };
        client.send_delta(&base, None, &mut &*new, deliver).unwrap();
        self.ask(Method::POST, &format!("delta/{path}"), body_of(&parts)).status()
    }
}

fn noise(length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    blake3::Hasher::new().update(b"noise").finalize_xof().fill(&mut bytes);
    bytes
}

#[test]
fn device_and_server_write_and_read_the_same_files() {
    let room = tempfile::tempdir().unwrap();
    let server = Server::start(room.path());
    let device = Device::new(room.path(), "laptop");
    server.login(&device, "laptop");
    device.write("notes/a.txt", "from the device");
    device.write("long.bin", noise(7 << 20));
    device.run(&["init", ".", "--workspace", "home"]).ok();
    device.sync().ok();

    let visitor = Visitor::new(&server);
    assert_eq!(visitor.get("notes/a.txt"), b"from the device");
    assert!(visitor.get("long.bin") == noise(7 << 20));
    assert_eq!(visitor.put("notes/a.txt", "from the server"), StatusCode::OK);
    assert_eq!(visitor.put("notes/b.txt", "new"), StatusCode::CREATED);
    // What a document holds in compressed streams is stored in their place, and everybody reads the document.
    for text in [words(20_000), format!("edited {}", words(20_000))] {
        device.write("paper.pdf", document(&text));
        device.sync().ok();
        assert!(visitor.get("paper.pdf") == document(&text));
    }
    // And so it is with a photograph, and with a new title of it.
    for title in ["a walk", "a walk in the rain"] {
        let file = photograph(title.as_bytes());
        device.write("walk.jpg", &file);
        device.sync().ok();
        assert!(visitor.get("walk.jpg") == file && visitor.get_by_webdav("walk.jpg") == file);
        assert!(visitor.get_range("walk.jpg", 5000..6000) == file[5000..6000]);
    }
    let mut edited = noise(7 << 20);
    edited[4_000_000] ^= 1;
    assert_eq!(visitor.put("long.bin", edited.clone()), StatusCode::OK);
    device.sync().ok();
    assert_eq!(device.read("notes/a.txt"), b"from the server");
    assert_eq!(device.read("notes/b.txt"), b"new");
    assert!(device.read("long.bin") == edited);
    let time = device.folder.join("notes/b.txt").metadata().unwrap().modified().unwrap();
    let time = time.duration_since(std::time::SystemTime::UNIX_EPOCH).unwrap();
    assert_eq!((time.as_secs(), time.subsec_nanos()), (1_500_000_000, 500_000_000));

    // A move on the server is a rename here, and an edit here meanwhile is kept.
    let body = json!({ "from": "notes", "to": "papers" }).to_string();
    let url = format!("{}/api/v1/workspaces/home/move", server.url);
    let request = visitor.client.post(url).bearer_auth(&visitor.token);
    let request = request.header("content-type", "application/json").body(body);
    let status = visitor.runtime.block_on(async { request.send().await.unwrap().status() });
    assert_eq!(status, StatusCode::CREATED);
    device.write("notes/a.txt", "edited here");
    device.sync().ok();
    assert_eq!(device.read("papers/a.txt"), b"edited here");
    assert_eq!(visitor.get("papers/a.txt"), b"edited here");

    // A device that joins later finds the same, and both keep the same of it.
    let other = Device::new(room.path(), "desk");
    server.login(&other, "desk");
    other.run(&["clone", "home", "."]).ok();
    assert_eq!(device.tree(), other.tree());
}

#[test]
fn edit_that_comes_to_the_server_as_a_delta_is_one_for_devices_too() {
    let room = tempfile::tempdir().unwrap();
    let server = Server::start(room.path());
    let device = Device::new(room.path(), "laptop");
    server.login(&device, "laptop");
    let mut film = noise(3 << 20);
    device.write("film", &film);
    device.run(&["init", ".", "--workspace", "home"]).ok();
    device.sync().ok();
    let visitor = Visitor::new(&server);
    // Device and visitor in turn: each makes its version from that of the other. Five deltas follow each other: a row ends with a whole chunk
    // where a reader would have to go back for more than 4 MiB, and two of these chunks have up to 768 KiB, as the keys are drawn.
    for edit in 0..4 {
        let mut edited = film.clone();
        edited[(1 << 20) + edit] ^= 1;
        edited.splice(2_900_000..2_900_000, *b"more");
        if edit % 2 == 0 {
            assert_eq!(visitor.put_delta("film", (&film, &edited)), StatusCode::OK);
            if edit == 2 {
                // The device was away for two of them: what the second is made from is made from what it has.
                let before = edited.clone();
                edited.extend(b"end");
                assert_eq!(visitor.put_delta("film", (&before, &edited)), StatusCode::OK);
            }
            // What it is made from lies in the folder, and is not fetched.
            let report = device.sync().ok().json();
            let received = report["received_bytes"].as_u64().unwrap_or_else(|| panic!("{report}"));
            assert!(received < 6000, "{report}");
            assert!(device.read("film") == edited);
        } else {
            device.write("film", &edited);
            let report = device.sync().ok().json();
            let sent = report["sent_bytes"].as_u64().unwrap_or_else(|| panic!("{report}"));
            assert!(sent < 5000, "{report}");
            assert!(visitor.get("film") == edited);
        }
        film = edited;
    }
    // What the last version is made from stays when all others go.
    device.run(&["cleanup", "--keep", "deleted:0s"]).ok();
    assert!(visitor.get("film") == film);
    let mut edited = film.clone();
    edited[(1 << 20) + 7] ^= 1;
    assert_eq!(visitor.put_delta("film", (&film, &edited)), StatusCode::OK);
    let other = Device::new(room.path(), "desk");
    server.login(&other, "desk");
    other.run(&["clone", "home", "."]).ok();
    device.sync().ok();
    assert!(other.read("film") == edited && device.read("film") == edited);
    device.run(&["check", "--read-data"]).ok();
}

#[test]
fn equal_files_of_device_and_server_share_their_chunks() {
    let room = tempfile::tempdir().unwrap();
    let server = Server::start(room.path());
    let device = Device::new(room.path(), "laptop");
    server.login(&device, "laptop");
    device.run(&["init", ".", "--workspace", "home"]).ok();
    let visitor = Visitor::new(&server);
    let bytes = noise(3 << 20);
    assert_eq!(visitor.put("one.bin", bytes.clone()), StatusCode::CREATED);
    device.sync().ok();
    device.write("two.bin", &bytes);
    let report = device.sync().ok().json();
    let sent = report["sent_bytes"].as_u64().unwrap_or_else(|| panic!("{report}"));
    assert!(sent < 10_000, "{report}");
    assert!(visitor.get("two.bin") == bytes);
}
