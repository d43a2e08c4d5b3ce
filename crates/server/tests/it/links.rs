//! Links for people without an account, over the doors.

use commit_log::CommitLog;
use model::{Genesis, Timestamp};
use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};

use crate::support::{Device, TestServer, http, read_json};

/// A workspace with a folder that is shown and others that are not, and who has it.
pub(crate) struct Place {
    pub(crate) server: TestServer,
    pub(crate) ada: Device,
    pub(crate) home: Genesis,
}

/// Names that nobody outside may hear.
const SECRETS: [&str; 5] = ["Attic", "Tax", "sibling", "salary", "Diary"];

impl Place {
    pub(crate) async fn new(server: TestServer) -> Self {
        let ada = server.device("ada").await;
        let home = ada.create_workspace("Diary").await;
        let place = Self { server, ada, home };
        for folder in ["Attic", "Attic/Photos", "Attic/Photos/trip", "Attic/Tax"] {
            place.make(Method::PUT, &format!("folders/{folder}"), b"").await;
        }
        for (path, content) in [
            ("Attic/Photos/one.jpg", &b"the first picture"[..]),
            ("Attic/Photos/trip/two.jpg", b"the second"),
            ("Attic/Tax/salary.txt", b"much"),
            ("Attic/sibling.txt", b"private"),
        ] {
            place.make(Method::PUT, &format!("files/{path}"), content).await;
        }
        place
    }

    pub(crate) fn at(&self, rest: &str) -> String {
        format!("/workspaces/{}/{rest}", self.home.workspace())
    }

    pub(crate) async fn make(&self, method: Method, rest: &str, body: &[u8]) {
        let status = self.ada.status(method, &self.at(rest), body.to_vec()).await;
        assert!(status.is_success(), "{rest}: {status}");
    }

    pub(crate) async fn relocate(&self, from: &str, to: &str) {
        let request = self.ada.request(Method::POST, &self.at("move"));
        let request = request.json(&json!({ "from": from, "to": to }));
        assert!(request.send().await.unwrap().status().is_success());
    }

    pub(crate) async fn try_link(&self, body: &Value) -> (StatusCode, Value) {
        let request = self.ada.request(Method::POST, &self.at("links")).json(body);
        read_json(request.send().await.unwrap()).await
    }

    /// Makes a link, and returns its id and its secret.
    pub(crate) async fn link(&self, body: Value) -> (String, String) {
        let (status, link) = self.try_link(&body).await;
        assert_eq!(status, StatusCode::CREATED, "{link}");
        let text = |field: &str| link[field].as_str().unwrap().to_owned();
        (text("id"), text("secret"))
    }

    pub(crate) async fn links(&self) -> Vec<Value> {
        let (status, listed) = self.ada.get(&self.at("links")).await;
        assert_eq!(status, StatusCode::OK, "{listed}");
        listed.as_array().unwrap().clone()
    }

    pub(crate) async fn take_back(&self, id: &str) -> StatusCode {
        self.ada.status(Method::DELETE, &self.at(&format!("links/{id}")), vec![]).await
    }

    /// Asks as somebody without an account.
    pub(crate) async fn ask(&self, rest: &str, headers: &[(&str, &str)]) -> Response {
        let request = http().get(self.server.url(&format!("/api/v1/public/{rest}")));
        let add =
            |request: reqwest::RequestBuilder, one: &(&str, &str)| request.header(one.0, one.1);
        headers.iter().fold(request, add).send().await.unwrap()
    }

    pub(crate) async fn json(&self, rest: &str) -> (StatusCode, Value) {
        read_json(self.ask(rest, &[]).await).await
    }

    /// Asks with the address as it is: a client library would tidy it up.
    pub(crate) async fn raw(&self, path: &str) -> String {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let mut stream = tokio::net::TcpStream::connect(self.server.address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    }

    pub(crate) async fn unlock(&self, secret: &str, password: &str) -> (StatusCode, Value) {
        let url = self.server.url(&format!("/api/v1/public/{secret}/unlock"));
        let request = http().post(url).json(&json!({ "password": password }));
        read_json(request.send().await.unwrap()).await
    }

    /// Puts a symbolic link into a folder, as a device does.
    async fn make_symlink(&self, folder: &str, name: &str, target: &str) {
        let log = self.ada.log(&self.home).await;
        let node = self.ada.get(&self.at(&format!("nodes/{folder}"))).await.1;
        let record = model::NodeRecord {
            parent: node["id"].as_str().unwrap().parse().unwrap(),
            name: model::Name::new(name).unwrap(),
            mode: 0,
            modified: Timestamp::default(),
            kind: model::NodeKind::Symlink(target.into()),
            conflict: None,
        };
        let change = model::testing::put_record(200, 0, &record);
        let commit = self.ada.commit(1, log.head().await.unwrap());
        log.commit(&model::Commit { changes: vec![change], ..commit }).await.unwrap();
    }

    /// Tells that nothing is behind a link, in one answer for all.
    pub(crate) async fn assert_gone(&self, secret: &str) {
        let wanted = self.json(&"A".repeat(43)).await;
        assert_eq!((wanted.0, &wanted.1["code"]), (StatusCode::NOT_FOUND, &json!("link_gone")));
        for rest in ["", "/content", "/folders", "/content/one.jpg", "/folders/trip"] {
            assert_eq!(self.json(&format!("{secret}{rest}")).await, wanted, "{rest}");
        }
        assert_eq!(self.unlock(secret, "x").await, wanted);
    }
}

#[tokio::test]
async fn link_to_a_file_is_read_in_parts_follows_it_and_ends_with_it() {
    let place = Place::new(TestServer::start().await).await;
    let (id, secret) = place.link(json!({ "path": "Attic/Photos/one.jpg" })).await;
    let (status, seen) = place.json(&secret).await;
    assert_eq!(status, StatusCode::OK);
    let modified = seen["modified"].clone();
    assert!(modified.is_i64());
    let wanted = json!({
        "needs_password": false, "is_limited": false, "expires": null, "kind": "file",
        "name": "one.jpg", "size": 17, "modified": modified,
    });
    assert_eq!(seen, wanted);

    let content = format!("{secret}/content");
    let whole = place.ask(&content, &[]).await;
    let header = |name: &str| whole.headers()[name].to_str().unwrap().to_owned();
    assert_eq!(header("content-disposition"), "attachment; filename*=UTF-8''one.jpg");
    assert_eq!(header("content-type"), "application/octet-stream");
    assert_eq!(header("x-content-type-options"), "nosniff");
    let etag = header("etag");
    assert_eq!(whole.bytes().await.unwrap(), "the first picture");
    let part = place.ask(&content, &[("range", "bytes=4-8")]).await;
    assert_eq!(part.status(), StatusCode::PARTIAL_CONTENT);
    assert_eq!(part.bytes().await.unwrap(), "first");
    let known = place.ask(&content, &[("if-none-match", &etag)]).await;
    assert_eq!(known.status(), StatusCode::NOT_MODIFIED);
    assert_eq!(place.json(&format!("{content}/one.jpg")).await.0, StatusCode::NOT_FOUND);
    assert_eq!(place.json(&format!("{secret}/folders")).await.0, StatusCode::CONFLICT);

    place.relocate("Attic/Photos/one.jpg", "Attic/Tax/best ü.jpg").await;
    let moved = place.ask(&content, &[]).await;
    let name = moved.headers()["content-disposition"].to_str().unwrap().to_owned();
    assert_eq!(name, "attachment; filename*=UTF-8''best%20%C3%BC.jpg");
    let listed = place.links().await;
    assert_eq!(listed[0]["path"], "Attic/Tax/best%20%C3%BC.jpg");
    // Two answers had the first byte.
    assert_eq!((&listed[0]["id"], &listed[0]["downloads"]), (&json!(id), &json!(2)));
    assert_eq!(listed[0]["secret"], Value::Null);

    place.make(Method::DELETE, "files/Attic/Tax", b"").await;
    place.assert_gone(&secret).await;
    assert_eq!(place.links().await[0]["path"], Value::Null);
}

#[tokio::test]
async fn link_to_a_folder_shows_what_is_below_it_and_nothing_else() {
    let place = Place::new(TestServer::start().await).await;
    place.make_symlink("Attic/Photos", "way out", "../sibling.txt").await;
    let (_, secret) = place.link(json!({ "path": "Attic/Photos" })).await;
    let (_, listed) = place.json(&format!("{secret}/folders?limit=1")).await;
    assert_eq!(listed["nodes"][0]["path"], "one.jpg");
    let next = listed["next"].as_str().unwrap();
    let (_, listed) = place.json(&format!("{secret}/folders?start_after={next}")).await;
    assert_eq!(listed["nodes"].as_array().unwrap().len(), 1, "{listed}");
    let wanted = json!({
        "path": "trip", "kind": "folder", "name": "trip", "size": null, "modified": null,
    });
    assert_eq!(listed["nodes"][0], wanted);
    let (_, listed) = place.json(&format!("{secret}/folders/trip")).await;
    assert_eq!(listed["nodes"][0]["path"], "trip/two.jpg");
    let file = place.ask(&format!("{secret}/content/trip/two.jpg"), &[]).await;
    assert_eq!(file.bytes().await.unwrap(), "the second");

    let tricks = [
        "../sibling.txt",
        "..%2Fsibling.txt",
        "%2e%2e/sibling.txt",
        "%2e%2e%2fTax%2fsalary.txt",
        "trip/../../sibling.txt",
        "trip/%2e%2e/%2e%2e/sibling.txt",
        "./one.jpg",
        "/Attic/sibling.txt",
        "%2FAttic%2Fsibling.txt",
        "//Attic/sibling.txt",
        "..",
        "%2e%2e",
        "../..",
        "..\\sibling.txt",
        "..%5Csibling.txt",
        "%252e%252e/sibling.txt",
        "one.jpg%00/../../sibling.txt",
        "Attic/sibling.txt",
        "sibling.txt",
        "Tax",
        "way%20out",
    ];
    for trick in tricks {
        for collection in ["content", "folders"] {
            let answer = place.raw(&format!("/api/v1/public/{secret}/{collection}/{trick}")).await;
            let (head, body) = answer.split_once("\r\n\r\n").unwrap();
            assert!(head.starts_with("HTTP/1.1 4"), "{trick}: {answer}");
            // What was asked for may be said back.
            let unasked = SECRETS.iter().filter(|name| !trick.contains(*name));
            for name in unasked {
                assert!(!body.contains(name), "{trick}: {body}");
            }
            assert!(!body.contains("private") && !body.contains("much"), "{trick}: {body}");
        }
    }
    for rest in ["", "/folders", "/folders/trip", "/content", "/content/nothing"] {
        let answer = place.raw(&format!("/api/v1/public/{secret}{rest}")).await;
        let id = place.home.workspace().to_string();
        let names = SECRETS.iter().copied().chain(["ada", &id]);
        for name in names {
            assert!(!answer.contains(name), "{rest}: {answer}");
        }
    }
    // What goes out of the folder goes out of the link.
    place.relocate("Attic/Photos/one.jpg", "Attic/one.jpg").await;
    let gone = place.json(&format!("{secret}/content/one.jpg")).await;
    assert_eq!((gone.0, &gone.1["code"]), (StatusCode::NOT_FOUND, &json!("not_found")));
}

#[tokio::test]
async fn link_to_a_folder_that_becomes_a_workspace_of_its_own_ends() {
    let place = Place::new(TestServer::start().await).await;
    let (id, secret) = place.link(json!({ "path": "Attic/Photos" })).await;
    let (_, inner) = place.link(json!({ "path": "Attic/Photos/trip" })).await;
    let (_, locked) = place.link(json!({ "path": "Attic/Photos", "password": "sesame" })).await;
    let (outer, above) = place.link(json!({ "path": "Attic" })).await;
    let photos = place.ada.create_workspace("Photos").await;
    place.ada.mount(&place.home, "Attic/Photos", &photos).await;
    for secret in [secret, inner, locked] {
        place.assert_gone(&secret).await;
        assert_eq!(place.json(&format!("{secret}/archive")).await.0, StatusCode::NOT_FOUND);
    }
    assert_eq!(place.json(&above).await.0, StatusCode::OK);
    let listed = place.links().await;
    let path = |id: &str| &listed.iter().find(|link| link["id"] == id).unwrap()["path"];
    assert_eq!((path(&id), path(&outer)), (&Value::Null, &json!("Attic")));
    // Nor is one made that would lead nowhere.
    let (status, problem) = place.try_link(&json!({ "path": "Attic/Photos" })).await;
    assert_eq!((status, &problem["code"]), (StatusCode::CONFLICT, &json!("conflict")));
}

#[tokio::test]
async fn link_to_a_whole_workspace_does_not_name_it() {
    let place = Place::new(TestServer::start().await).await;
    let (_, secret) = place.link(json!({})).await;
    let (_, seen) = place.json(&secret).await;
    assert_eq!((&seen["kind"], &seen["name"]), (&json!("folder"), &Value::Null));
    let (_, listed) = place.json(&format!("{secret}/folders")).await;
    assert_eq!(listed["nodes"][0]["path"], "Attic");
    assert!(!listed.to_string().contains("Diary"));
}

#[tokio::test]
async fn a_secret_opens_no_other_door_and_links_that_cannot_be_are_refused() {
    let place = Place::new(TestServer::start().await).await;
    let (_, secret) = place.link(json!({ "path": "Attic/Photos" })).await;
    let bytes = base64_bytes(&secret);
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    for token in [secret.clone(), hex] {
        let stranger = Device { token, ..place.ada.clone() };
        for path in ["/whoami", "/workspaces", &place.at("folders")] {
            assert_eq!(stranger.get(path).await.0, StatusCode::UNAUTHORIZED, "{path}");
        }
    }
    assert_eq!(place.ada.get("/tokens").await.1, json!([]));
    assert_eq!(place.ada.get("/devices").await.1.as_array().unwrap().len(), 1);
    for (body, expected) in [
        (json!({ "path": "nothing" }), StatusCode::NOT_FOUND),
        (json!({ "path": "../x" }), StatusCode::BAD_REQUEST),
        (json!({ "path": "Attic", "expires_in_seconds": 0 }), StatusCode::BAD_REQUEST),
        (json!({ "path": "Attic", "expires_in_seconds": -5 }), StatusCode::BAD_REQUEST),
        (json!({ "path": "Attic", "downloads_max": 0 }), StatusCode::BAD_REQUEST),
        (json!({ "path": "Attic", "downloads_max": -1 }), StatusCode::UNPROCESSABLE_ENTITY),
        (json!({ "path": "Attic", "password": "" }), StatusCode::BAD_REQUEST),
    ] {
        let (status, problem) = place.try_link(&body).await;
        assert_eq!(status, expected, "{body}: {problem}");
    }
    assert_eq!(place.links().await.len(), 1);
}

/// Reads the letters of a secret.
fn base64_bytes(text: &str) -> Vec<u8> {
    let letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let bits = text.chars().flat_map(|letter| {
        let value = letters.find(letter).unwrap();
        (0..6).rev().map(move |bit| (value >> bit) & 1 == 1)
    });
    let bits: Vec<bool> = bits.collect();
    let byte = |eight: &[bool]| eight.iter().fold(0, |byte, bit| byte << 1 | u8::from(*bit));
    bits.chunks_exact(8).map(byte).collect()
}
