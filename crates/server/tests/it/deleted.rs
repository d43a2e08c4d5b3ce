//! What was deleted, and how it comes back.

use model::Genesis;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{Device, TestServer, read_json};

fn at(genesis: &Genesis, rest: &str) -> String {
    format!("/workspaces/{}/{rest}", genesis.workspace())
}

async fn make(device: &Device, genesis: &Genesis, rest: &str, body: &[u8]) {
    let made = device.status(Method::PUT, &at(genesis, rest), body.to_vec()).await;
    assert!(made.is_success(), "{rest}: {made}");
}

async fn delete(device: &Device, genesis: &Genesis, path: &str) {
    let path = at(genesis, &format!("files/{path}"));
    assert_eq!(device.status(Method::DELETE, &path, vec![]).await, StatusCode::NO_CONTENT);
}

async fn read(device: &Device, genesis: &Genesis, path: &str) -> Vec<u8> {
    let path = at(genesis, &format!("files/{path}"));
    let answer = device.request(Method::GET, &path).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK, "{path}");
    answer.bytes().await.unwrap().to_vec()
}

/// Returns all that was deleted, asked for one by one.
async fn deleted(device: &Device, genesis: &Genesis) -> Vec<Value> {
    let (mut nodes, mut cursor) = (Vec::new(), String::new());
    loop {
        let path = at(genesis, &format!("deleted?limit=1{cursor}"));
        let (status, page) = device.get(&path).await;
        assert_eq!(status, StatusCode::OK, "{page}");
        nodes.extend(page["nodes"].as_array().unwrap().iter().cloned());
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return nodes,
        }
    }
}

async fn restore(device: &Device, genesis: &Genesis, body: Value) -> (StatusCode, Value) {
    let request = device.request(Method::POST, &at(genesis, "restore")).json(&body);
    read_json(request.send().await.unwrap()).await
}

fn paths(nodes: &[Value]) -> Vec<&str> {
    nodes.iter().map(|node| node["path"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn what_was_deleted_is_listed_and_comes_back() {
    let server = TestServer::start().await;
    let device = server.device("ada").await;
    let genesis = device.create_workspace("home").await;
    make(&device, &genesis, "folders/f", b"").await;
    make(&device, &genesis, "folders/f/g", b"").await;
    make(&device, &genesis, "files/f/g/deep", b"deep").await;
    make(&device, &genesis, "files/f/%ff", b"raw name").await;
    make(&device, &genesis, "files/a", b"one").await;
    make(&device, &genesis, "files/a", b"two").await;
    assert!(deleted(&device, &genesis).await.is_empty());
    delete(&device, &genesis, "a").await;
    delete(&device, &genesis, "f").await;

    let nodes = deleted(&device, &genesis).await;
    let mut sorted = paths(&nodes);
    assert_eq!(sorted[4], "a");
    sorted.sort_unstable();
    assert_eq!(sorted, ["a", "f", "f/%FF", "f/g", "f/g/deep"]);
    let a = &nodes[4];
    assert_eq!((&a["kind"], &a["size"], &a["name"]), (&json!("file"), &json!(3), &json!("a")));
    assert_eq!((&a["version"], &a["last_version"]), (&json!(3), &json!(2)));
    assert_eq!((&a["time"], &a["device_name"]), (&json!(1_700_000_000), &json!("laptop")));
    assert_eq!(
        (&a["device_id"], &a["is_in_deleted"]),
        (&json!(device.id.to_string()), &json!(false))
    );
    let deep = nodes.iter().find(|node| node["path"] == "f/g/deep").unwrap();
    assert_eq!(deep["is_in_deleted"], json!(true));

    // By its version, and without; a folder comes back with what was deleted with it.
    let (status, node) =
        restore(&device, &genesis, json!({ "node": a["id"], "version": a["last_version"] })).await;
    assert_eq!((status, &node["id"]), (StatusCode::CREATED, &a["id"]));
    assert_eq!(read(&device, &genesis, "a").await, b"two");
    let f = nodes.iter().find(|node| node["path"] == "f").unwrap();
    let (status, node) = restore(&device, &genesis, json!({ "node": f["id"] })).await;
    assert_eq!((status, &node["path"]), (StatusCode::CREATED, &json!("f")), "{node}");
    assert_eq!(read(&device, &genesis, "f/g/deep").await, b"deep");
    assert_eq!(read(&device, &genesis, "f/%ff").await, b"raw name");
    assert!(deleted(&device, &genesis).await.is_empty());
    let again = restore(&device, &genesis, json!({ "node": f["id"] })).await;
    assert_eq!((again.0, &again.1["code"]), (StatusCode::CONFLICT, &json!("taken")));
    let none = restore(&device, &genesis, json!({ "node": "ab".repeat(16) })).await;
    assert_eq!(none.0, StatusCode::NOT_FOUND);

    // Out of a folder that is gone: the folder comes back with it, and what else was in it stays deleted.
    delete(&device, &genesis, "f").await;
    let (status, node) = restore(&device, &genesis, json!({ "node": deep["id"] })).await;
    assert_eq!((status, &node["path"]), (StatusCode::CREATED, &json!("f/g/deep")), "{node}");
    assert_eq!(paths(&deleted(&device, &genesis).await), ["f/%FF"]);

    let server = server.stop().await.start().await;
    assert_eq!(paths(&deleted(&device, &genesis).await), ["f/%FF"]);
    for cursor in ["x", "1", "1-x", "-1-00000000000000000000000000000000"] {
        let (status, _) = device.get(&at(&genesis, &format!("deleted?cursor={cursor}"))).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{cursor}");
    }
    let bob = server.device("bob").await;
    assert_eq!(bob.get(&at(&genesis, "deleted")).await.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn what_a_cleanup_has_removed_stays_deleted() {
    let server = TestServer::start().await;
    let device = server.device("ada").await;
    let genesis = device.create_workspace("home").await;
    make(&device, &genesis, "files/a", b"one").await;
    make(&device, &genesis, "folders/f", b"").await;
    make(&device, &genesis, "files/f/gone", b"gone").await;
    make(&device, &genesis, "files/f/kept", b"kept").await;
    delete(&device, &genesis, "a").await;
    delete(&device, &genesis, "f").await;
    device.clean_up(&genesis, &[1, 3]).await;

    let before = deleted(&device, &genesis).await;
    let id = |path: &str| {
        let found = before.iter().find(|node| node["path"] == path);
        json!({ "node": found.unwrap()["id"] })
    };
    for path in ["a", "f/gone"] {
        let (status, problem) = restore(&device, &genesis, id(path)).await;
        let wanted = (StatusCode::CONFLICT, &json!("version_dropped"));
        assert_eq!((status, &problem["code"]), wanted, "{path}: {problem}");
    }
    assert_eq!(deleted(&device, &genesis).await, before);
    // A folder comes back with what is left of it.
    assert_eq!(restore(&device, &genesis, id("f")).await.0, StatusCode::CREATED);
    assert_eq!(read(&device, &genesis, "f/kept").await, b"kept");
    assert_eq!(restore(&device, &genesis, id("f/gone")).await.0, StatusCode::CONFLICT);
    assert_eq!(paths(&deleted(&device, &genesis).await), ["f/gone", "a"]);
}
