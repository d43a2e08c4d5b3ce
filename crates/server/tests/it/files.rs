//! The door of files.

use std::convert::Infallible;

use commit_log::CommitLog;
use futures_util::future::join_all;
use model::checkpoint::{Checkpoint, build_pages, node_entry};
use model::{Genesis, Name, NodeId, NodeKind, NodeRecord, NodeState, Timestamp, TreeNode};
use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};
use server::Admin;
use storage::ObjectKey;

use crate::support::{Device, TestServer, noise, read_json};

async fn place() -> (TestServer, Device, Genesis) {
    let server = TestServer::start().await;
    let device = server.device("ada").await;
    let genesis = device.create_workspace("home").await;
    (server, device, genesis)
}

fn at(genesis: &Genesis, rest: &str) -> String {
    format!("/workspaces/{}/{rest}", genesis.workspace())
}

async fn put(
    device: &Device,
    genesis: &Genesis,
    path: &str,
    body: &[u8],
    headers: &[(&str, &str)],
) -> (StatusCode, Value) {
    let request = device.request(Method::PUT, &at(genesis, &format!("files/{path}")));
    let request =
        headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    read_json(request.body(body.to_vec()).send().await.unwrap()).await
}

async fn get(device: &Device, genesis: &Genesis, path: &str, headers: &[(&str, &str)]) -> Response {
    let request = device.request(Method::GET, &at(genesis, &format!("files/{path}")));
    let request =
        headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    request.send().await.unwrap()
}

async fn post(device: &Device, genesis: &Genesis, verb: &str, body: Value) -> (StatusCode, Value) {
    let request = device.request(Method::POST, &at(genesis, verb)).json(&body);
    read_json(request.send().await.unwrap()).await
}

async fn make_folder(device: &Device, genesis: &Genesis, path: &str) -> StatusCode {
    device.status(Method::PUT, &at(genesis, &format!("folders/{path}")), vec![]).await
}

async fn bytes_of(device: &Device, genesis: &Genesis, path: &str) -> Vec<u8> {
    let response = get(device, genesis, path, &[]).await;
    assert_eq!(response.status(), StatusCode::OK, "{path}");
    response.bytes().await.unwrap().to_vec()
}

#[tokio::test]
async fn file_returns_whole_in_parts_and_after_a_restart() {
    let (server, device, genesis) = place().await;
    let long = noise(9 << 20);
    let (status, node) = put(&device, &genesis, "long.bin", &long, &[]).await;
    assert_eq!(status, StatusCode::CREATED, "{node}");
    assert_eq!((&node["size"], &node["version"]), (&json!(9 << 20), &json!(1)));
    put(&device, &genesis, "short.txt", b"a few bytes", &[("x-oc-mtime", "1600000000.25")]).await;
    put(&device, &genesis, "empty", b"", &[]).await;
    for (range, part) in [
        ("bytes=0-9", 0..10),
        ("bytes=5000000-5100000", 5_000_000..5_100_001),
        ("bytes=-3", (9 << 20) - 3..9 << 20),
    ] {
        let response = get(&device, &genesis, "long.bin", &[("range", range)]).await;
        assert_eq!(response.status(), StatusCode::PARTIAL_CONTENT);
        assert!(response.bytes().await.unwrap() == long[part], "{range}");
    }
    let outside = get(&device, &genesis, "long.bin", &[("range", "bytes=99999999-")]).await;
    assert_eq!(outside.status(), StatusCode::RANGE_NOT_SATISFIABLE);
    let (_, stat) = device.get(&at(&genesis, "nodes/short.txt")).await;
    assert_eq!(
        (&stat["modified"], &stat["modified_ns"]),
        (&json!(1_600_000_000), &json!(250_000_000))
    );

    let _server = server.stop().await.start().await;
    assert!(bytes_of(&device, &genesis, "long.bin").await == long);
    assert_eq!(bytes_of(&device, &genesis, "short.txt").await, b"a few bytes");
    assert_eq!(bytes_of(&device, &genesis, "empty").await, b"");
}

#[tokio::test]
async fn equal_content_is_stored_once_and_an_edit_stores_little() {
    let (_server, device, genesis) = place().await;
    let mut long = noise(6 << 20);
    put(&device, &genesis, "one", &long, &[]).await;
    let used = async || device.get("/whoami").await.1["used_bytes"].as_u64().unwrap();
    let first = used().await;
    put(&device, &genesis, "two", &long, &[]).await;
    assert!(used().await - first < 10_000, "{} {first}", used().await);
    long[3_000_000] ^= 1;
    put(&device, &genesis, "one", &long, &[]).await;
    assert!(used().await - first < 600_000, "{} {first}", used().await);
    assert!(bytes_of(&device, &genesis, "one").await == long);
}

#[tokio::test]
async fn conditions_hold_and_tell_what_is_there() {
    let (_server, device, genesis) = place().await;
    let (_, node) = put(&device, &genesis, "a", b"one", &[("if-none-match", "*")]).await;
    let first = node["etag"].as_str().unwrap().to_owned();
    let (status, problem) = put(&device, &genesis, "a", b"two", &[("if-none-match", "*")]).await;
    assert_eq!(
        (status, &problem["code"]),
        (StatusCode::PRECONDITION_FAILED, &json!("precondition_failed"))
    );
    let (status, node) = put(&device, &genesis, "a", b"two", &[("if-match", &first)]).await;
    assert_eq!((status, &node["version"]), (StatusCode::OK, &json!(2)));
    let stale = device.request(Method::PUT, &at(&genesis, "files/a")).header("if-match", &first);
    let stale = stale.body("three").send().await.unwrap();
    assert_eq!(stale.status(), StatusCode::PRECONDITION_FAILED);
    assert_eq!(stale.headers()["etag"], node["etag"].as_str().unwrap());
    let (status, _) = put(&device, &genesis, "b", b"x", &[("if-match", "*")]).await;
    assert_eq!(status, StatusCode::PRECONDITION_FAILED);

    let current = node["etag"].as_str().unwrap();
    let same = get(&device, &genesis, "a", &[("if-none-match", current)]).await;
    assert_eq!(same.status(), StatusCode::NOT_MODIFIED);
    let other = get(&device, &genesis, "a", &[("range", "bytes=0-0"), ("if-range", &first)]).await;
    assert_eq!((other.status(), other.bytes().await.unwrap().len()), (StatusCode::OK, 3));
    let delete =
        device.request(Method::DELETE, &at(&genesis, "files/a")).header("if-match", &first);
    assert_eq!(delete.send().await.unwrap().status(), StatusCode::PRECONDITION_FAILED);
    assert_eq!(bytes_of(&device, &genesis, "a").await, b"two");
}

#[tokio::test]
async fn of_many_who_change_one_version_at_once_one_wins() {
    let (_server, device, genesis) = place().await;
    let (_, node) = put(&device, &genesis, "a", b"start", &[]).await;
    let etag = node["etag"].as_str().unwrap();
    let bodies: Vec<_> = (0..16).map(|number| format!("body {number}")).collect();
    let puts = bodies.iter().map(|body| async {
        put(&device, &genesis, "a", body.as_bytes(), &[("if-match", etag)]).await.0
    });
    let statuses = join_all(puts).await;
    let count = |wanted| statuses.iter().filter(|status| **status == wanted).count();
    assert_eq!(count(StatusCode::OK), 1, "{statuses:?}");
    assert_eq!(count(StatusCode::PRECONDITION_FAILED), 15, "{statuses:?}");
    let creations = (0..16).map(|_| async {
        put(&device, &genesis, "new", &noise(8), &[("if-none-match", "*")]).await.0
    });
    let statuses = join_all(creations).await;
    let created = statuses.iter().filter(|status| **status == StatusCode::CREATED).count();
    assert_eq!(created, 1, "{statuses:?}");
    let (_, listed) = device.get(&at(&genesis, "folders")).await;
    assert_eq!(listed["nodes"].as_array().unwrap().len(), 2, "{listed}");
}

#[tokio::test]
async fn folders_are_listed_in_pages_with_names_of_any_bytes() {
    let (_server, device, genesis) = place().await;
    assert_eq!(make_folder(&device, &genesis, "d").await, StatusCode::CREATED);
    assert_eq!(make_folder(&device, &genesis, "d").await, StatusCode::CONFLICT);
    assert_eq!(make_folder(&device, &genesis, "missing/d").await, StatusCode::CONFLICT);
    for name in ["a%20b", "%ff%fe", "%C3%A4", "%25", "z"] {
        let (status, _) = put(&device, &genesis, &format!("d/{name}"), b"x", &[]).await;
        assert_eq!(status, StatusCode::CREATED, "{name}");
    }
    let (mut found, mut next) = (Vec::new(), String::new());
    loop {
        let query = next.replace('%', "%25");
        let path = at(&genesis, &format!("folders/d?limit=2&start_after={query}"));
        let (status, page) = device.get(&path).await;
        assert_eq!(status, StatusCode::OK, "{page}");
        let nodes = page["nodes"].as_array().unwrap();
        found.extend(nodes.iter().map(|node| node["path"].as_str().unwrap().to_owned()));
        match page["next"].as_str() {
            Some(name) => name.clone_into(&mut next),
            None => break,
        }
    }
    assert_eq!(found, ["d/%25", "d/a%20b", "d/z", "d/%C3%A4", "d/%FF%FE"]);
    assert_eq!(bytes_of(&device, &genesis, "d%2F%FF%FE").await, b"x");
}

#[tokio::test]
async fn node_keeps_its_id_when_it_moves_and_a_copy_has_its_own() {
    let (_server, device, genesis) = place().await;
    make_folder(&device, &genesis, "d").await;
    make_folder(&device, &genesis, "d/e").await;
    let (_, file) = put(&device, &genesis, "d/e/f", b"matter", &[]).await;
    put(&device, &genesis, "other", b"other", &[]).await;
    let (status, moved) =
        post(&device, &genesis, "move", json!({ "from": "d/e/f", "to": "g" })).await;
    assert_eq!((status, &moved["id"]), (StatusCode::CREATED, &file["id"]));
    let (status, copy) =
        post(&device, &genesis, "copy", json!({ "from": "g", "to": "d/e/h" })).await;
    assert_eq!(status, StatusCode::CREATED);
    assert_ne!(copy["id"], file["id"]);
    let (status, _) = post(&device, &genesis, "move", json!({ "from": "g", "to": "other" })).await;
    assert_eq!(status, StatusCode::PRECONDITION_FAILED);
    let over = json!({ "from": "g", "to": "other", "overwrite": true });
    assert_eq!(post(&device, &genesis, "move", over).await.0, StatusCode::OK);
    assert_eq!(bytes_of(&device, &genesis, "other").await, b"matter");
    let (status, _) = post(&device, &genesis, "move", json!({ "from": "d", "to": "d/e/x" })).await;
    assert_eq!(status, StatusCode::CONFLICT);
    let (status, _) = post(&device, &genesis, "copy", json!({ "from": "d", "to": "k" })).await;
    assert_eq!(status, StatusCode::CREATED);
    assert_eq!(bytes_of(&device, &genesis, "k/e/h").await, b"matter");
    assert_eq!(
        device.status(Method::DELETE, &at(&genesis, "files/d"), vec![]).await,
        StatusCode::NO_CONTENT
    );
    assert_eq!(get(&device, &genesis, "d/e/h", &[]).await.status(), StatusCode::NOT_FOUND);
    assert_eq!(bytes_of(&device, &genesis, "k/e/h").await, b"matter");
}

#[tokio::test]
async fn versions_are_listed_read_and_brought_back() {
    let (_server, device, genesis) = place().await;
    for body in ["one", "two", "three"] {
        put(&device, &genesis, "a", body.as_bytes(), &[]).await;
        put(&device, &genesis, "b", body.as_bytes(), &[]).await;
    }
    let (mut versions, mut cursor) = (Vec::new(), String::new());
    loop {
        let query = if cursor.is_empty() { String::new() } else { format!("&cursor={cursor}") };
        let (_, page) = device.get(&at(&genesis, &format!("versions/a?limit=1{query}"))).await;
        versions.extend(
            page["versions"].as_array().unwrap().iter().map(|line| line["version"].clone()),
        );
        match page["next"].as_str() {
            Some(next) => next.clone_into(&mut cursor),
            None => break,
        }
    }
    assert_eq!(versions, [json!(1), json!(2), json!(3)]);
    let old = device.request(Method::GET, &at(&genesis, "files/a?version=1")).send().await.unwrap();
    assert_eq!(old.bytes().await.unwrap(), "one");
    let (_, node) = device.get(&at(&genesis, "nodes/a")).await;
    let restore = |version: u64| json!({ "node": node["id"], "version": version });
    assert_eq!(post(&device, &genesis, "restore", restore(2)).await.0, StatusCode::OK);
    assert_eq!(bytes_of(&device, &genesis, "a").await, b"two");
    device.status(Method::DELETE, &at(&genesis, "files/a"), vec![]).await;
    assert_eq!(post(&device, &genesis, "restore", restore(1)).await.0, StatusCode::CREATED);
    assert_eq!(bytes_of(&device, &genesis, "a").await, b"one");
    assert_eq!(post(&device, &genesis, "restore", restore(5)).await.0, StatusCode::CONFLICT);
    assert_eq!(post(&device, &genesis, "restore", restore(99)).await.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn version_that_a_cleanup_has_removed_takes_the_place_of_nothing() {
    let (server, device, genesis) = place().await;
    // A file of many chunks has lists of them.
    let long = noise(24 << 20);
    for (path, body) in [("a", &b"one"[..]), ("a", b"two"), ("long", &long), ("long", b"short")] {
        let (status, problem) = put(&device, &genesis, path, body, &[]).await;
        assert!(status.is_success(), "{problem}");
    }
    let id = async |path: &str| device.get(&at(&genesis, &format!("nodes/{path}"))).await.1;
    let restore = async |path: &str, version: u64| {
        let node = id(path).await;
        let wanted = json!({ "node": node["id"], "version": version });
        post(&device, &genesis, "restore", wanted).await
    };
    device.clean_up(&genesis, &[1, 3]).await;
    for path in ["a", "long"] {
        let before = id(path).await;
        let (status, problem) = restore(path, 1).await;
        assert_eq!(
            (status, &problem["code"]),
            (StatusCode::CONFLICT, &json!("version_dropped")),
            "{path}: {problem}"
        );
        assert_eq!(id(path).await, before, "{path}");
    }
    assert_eq!(bytes_of(&device, &genesis, "a").await, b"two");
    assert_eq!(bytes_of(&device, &genesis, "long").await, b"short");
    // What is still there comes back, also by a server that knows nothing yet of what is in packs.
    put(&device, &genesis, "a", b"three", &[]).await;
    put(&device, &genesis, "long", &long, &[]).await;
    put(&device, &genesis, "long", b"shorter", &[]).await;
    let _server = server.stop().await.start().await;
    assert_eq!(restore("a", 2).await.0, StatusCode::OK);
    assert_eq!(bytes_of(&device, &genesis, "a").await, b"two");
    assert_eq!(restore("long", 3).await.0, StatusCode::OK);
    assert!(bytes_of(&device, &genesis, "long").await == long);
    assert_eq!(restore("a", 1).await.0, StatusCode::CONFLICT);
}

#[tokio::test]
async fn foreign_workspaces_tell_nothing() {
    let (server, device, genesis) = place().await;
    put(&device, &genesis, "a", b"secret", &[]).await;
    let bob = server.device("bob").await;
    for (method, rest) in [
        (Method::GET, "files/a"),
        (Method::HEAD, "files/a"),
        (Method::PUT, "files/b"),
        (Method::DELETE, "files/a"),
        (Method::GET, "nodes/a"),
        (Method::GET, "nodes"),
        (Method::GET, "folders"),
        (Method::PUT, "folders/b"),
        (Method::GET, "versions/a"),
    ] {
        let status = bob.status(method.clone(), &at(&genesis, rest), vec![]).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{method} {rest}");
    }
    for verb in ["move", "copy"] {
        let (status, _) = post(&bob, &genesis, verb, json!({ "from": "a", "to": "b" })).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{verb}");
    }
    let restore = json!({ "node": "00".repeat(16), "version": 1 });
    assert_eq!(post(&bob, &genesis, "restore", restore).await.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn bad_paths_bodies_and_times_are_refused_and_change_nothing() {
    let (server, device, genesis) = place().await;
    make_folder(&device, &genesis, "d").await;
    for path in ["..%2Fx", "a%00b", "%zz", ".syncline/x", "d/.syncline"] {
        let (status, problem) = put(&device, &genesis, path, b"x", &[]).await;
        assert_eq!(
            (status, &problem["code"]),
            (StatusCode::BAD_REQUEST, &json!("invalid")),
            "{path}"
        );
    }
    for (path, headers, wanted) in [
        ("d", ("x-oc-mtime", "1"), StatusCode::CONFLICT),
        ("x/y", ("x-oc-mtime", "1"), StatusCode::CONFLICT),
        ("a", ("x-oc-mtime", "tomorrow"), StatusCode::BAD_REQUEST),
        ("a", ("content-range", "bytes 0-0/3"), StatusCode::BAD_REQUEST),
        ("a", ("oc-checksum", "SHA1:0000"), StatusCode::BAD_REQUEST),
        ("a", ("if-none-match", "\"x\""), StatusCode::BAD_REQUEST),
    ] {
        assert_eq!(put(&device, &genesis, path, b"x", &[headers]).await.0, wanted, "{headers:?}");
    }
    let right = ("oc-checksum", "SHA1:11f6ad8ec52a2984abaafd7c3b516503785c2072");
    assert_eq!(put(&device, &genesis, "a", b"x", &[right]).await.0, StatusCode::CREATED);
    Admin::open(server.data()).unwrap().set_quota("ada", Some(200_000)).unwrap();
    let (status, problem) = put(&device, &genesis, "b", &noise(1_000_000), &[]).await;
    assert_eq!(
        (status, &problem["code"]),
        (StatusCode::INSUFFICIENT_STORAGE, &json!("over_quota"))
    );
    let (_, listed) = device.get(&at(&genesis, "folders")).await;
    assert_eq!(listed["nodes"].as_array().unwrap().len(), 2, "{listed}");
    assert_eq!(
        device.status(Method::DELETE, &at(&genesis, "files/"), vec![]).await,
        StatusCode::NOT_FOUND
    );
}

/// Publishes a checkpoint that says that there is a folder, and nothing else.
async fn publish(device: &Device, genesis: &Genesis, name: &str) -> Vec<String> {
    let log = device.log(genesis).await;
    let record = NodeRecord {
        parent: NodeId::ROOT,
        name: Name::new(name).unwrap(),
        mode: 0o755,
        modified: Timestamp::default(),
        kind: NodeKind::Directory,
        conflict: None,
    };
    let (id, state) = (NodeId::from_bytes([9; 16]), NodeState::Alive);
    let nodes = vec![node_entry(&id, &TreeNode { version: 1, state, record })];
    let mut pages = Vec::new();
    let mut build = |entries| {
        build_pages(entries, Ok::<_, Infallible>, |id, bytes| {
            pages.push((ObjectKey::page(id).to_string(), bytes));
            Ok(())
        })
    };
    let (Ok(nodes), Ok(packs)) = (build(nodes), build(Vec::new()));
    let mut keys = Vec::new();
    for (key, bytes) in pages {
        let path = at(genesis, &format!("objects/{key}"));
        assert!(device.status(Method::PUT, &path, bytes).await.is_success());
        keys.push(key);
    }
    let head = log.head().await.unwrap();
    let checkpoint = Checkpoint {
        head,
        nodes,
        node_count: 1,
        packs,
        fence: 0,
        has_mounts: false,
        has_deltas: false,
        seal: None,
    };
    log.publish_checkpoint(&checkpoint).await.unwrap();
    keys
}

#[tokio::test]
async fn view_begins_at_the_checkpoint_or_at_the_log_where_that_cannot_be_read() {
    let (server, device, genesis) = place().await;
    put(&device, &genesis, "a", b"x", &[]).await;
    // What it says is not what the log says, so that it can be told which of both was read.
    let pages = publish(&device, &genesis, "from the checkpoint").await;
    let names = async |device: &Device| {
        let (_, page) = device.get(&at(&genesis, "folders")).await;
        let nodes = page["nodes"].as_array().unwrap().clone();
        nodes.iter().map(|node| node["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let server = server.stop().await.start().await;
    assert_eq!(names(&device).await, ["from the checkpoint"]);
    put(&device, &genesis, "b", b"x", &[]).await;
    assert_eq!(names(&device).await, ["b", "from the checkpoint"]);
    for page in pages {
        let path = at(&genesis, &format!("objects/{page}"));
        assert_eq!(device.status(Method::DELETE, &path, vec![]).await, StatusCode::NO_CONTENT);
    }
    let _server = server.stop().await.start().await;
    assert_eq!(names(&device).await, ["a", "b"]);
}
