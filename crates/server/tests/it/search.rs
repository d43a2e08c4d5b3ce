//! Files and folders found by their names.

use model::Genesis;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{Device, TestServer};

fn at(genesis: &Genesis, rest: &str) -> String {
    format!("/workspaces/{}/{rest}", genesis.workspace())
}

async fn make(device: &Device, genesis: &Genesis, rest: &str) {
    let made = device.status(Method::PUT, &at(genesis, rest), b"text".to_vec()).await;
    assert!(made.is_success(), "{rest}: {made}");
}

async fn page(device: &Device, genesis: &Genesis, query: &[(&str, &str)]) -> (StatusCode, Value) {
    let encoded =
        |text: &str| -> String { text.bytes().map(|byte| format!("%{byte:02X}")).collect() };
    let query: Vec<_> =
        query.iter().map(|(key, text)| format!("{key}={}", encoded(text))).collect();
    device.get(&at(genesis, &format!("search?{}", query.join("&")))).await
}

/// Returns all nodes that are found, asked for so many at once.
async fn found(device: &Device, genesis: &Genesis, query: &str, limit: usize) -> Vec<Value> {
    let (mut nodes, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let limit = limit.to_string();
        let mut asked = vec![("q", query), ("limit", limit.as_str())];
        asked.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
        let (status, page) = page(device, genesis, &asked).await;
        assert_eq!(status, StatusCode::OK, "{page}");
        nodes.extend(page["nodes"].as_array().unwrap().iter().cloned());
        match page["next"].as_str() {
            Some(next) => cursor = Some(next.to_owned()),
            None => return nodes,
        }
    }
}

fn paths(nodes: &[Value]) -> Vec<&str> {
    nodes.iter().map(|node| node["path"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn names_are_found_the_best_first_in_pages_of_any_length() {
    let server = TestServer::start().await;
    let device = server.device("ada").await;
    let genesis = device.create_workspace("home").await;
    for path in [
        "folders/Plans",
        "folders/Plans/2026",
        "files/Plans/2026/PLA%CC%81N%20b.txt",
        "files/my%20plan.odt",
        "files/airplane.jpg",
        "files/%ffplan",
        "files/%3Cimg%20src=x%20onerror=alert(1)%3Eplan",
        "files/other.txt",
        "files/gone%20plan",
    ] {
        make(&device, &genesis, path).await;
    }
    let gone = at(&genesis, "files/gone%20plan");
    assert_eq!(device.status(Method::DELETE, &gone, vec![]).await, StatusCode::NO_CONTENT);
    let all = found(&device, &genesis, "plan", 100).await;
    let expected = [
        "Plans/2026/PLA%CC%81N%20b.txt",
        "Plans",
        "%3Cimg%20src%3Dx%20onerror%3Dalert%281%29%3Eplan",
        "my%20plan.odt",
        "%FFplan",
        "airplane.jpg",
    ];
    assert_eq!(paths(&all), expected);
    for limit in [1, 2, 5, 6] {
        assert_eq!(found(&device, &genesis, "plan", limit).await, all, "{limit}");
    }
    let first = &all[0];
    assert_eq!(first["name"], json!("PLA\u{301}N b.txt"));
    assert_eq!((&first["kind"], &first["size"]), (&json!("file"), &json!(4)));
    assert_eq!(first["marks"], json!([{ "start": 0, "end": 5 }]));
    assert_eq!(all[2]["marks"], json!([{ "start": 28, "end": 32 }]));
    // What the search has said is what the node itself says.
    let (_, node) = device.get(&at(&genesis, "nodes/Plans/2026/PLA%CC%81N%20b.txt")).await;
    assert_eq!((&first["id"], &first["etag"]), (&node["id"], &node["etag"]));
    // All words have to stand in the name; the folders above do not count.
    assert_eq!(paths(&found(&device, &genesis, "B plan", 9).await), [expected[0]]);
    assert!(found(&device, &genesis, "2026 plan", 9).await.is_empty());
    assert_eq!(paths(&found(&device, &genesis, "2026", 9).await), ["Plans/2026"]);
    let server = server.stop().await.start().await;
    assert_eq!(found(&device, &genesis, "plan", 4).await, all);
    drop(server);
}

#[tokio::test]
async fn query_or_cursor_that_is_none_is_refused() {
    let server = TestServer::start().await;
    let (device, bob) = (server.device("ada").await, server.device("bob").await);
    let genesis = device.create_workspace("home").await;
    let long = "ä".repeat(256);
    for query in ["", " ", "\u{200b}", &long] {
        let (status, problem) = page(&device, &genesis, &[("q", query)]).await;
        assert_eq!((status, &problem["code"]), (StatusCode::BAD_REQUEST, &json!("invalid")));
        assert!(problem["detail"].as_str().unwrap().starts_with("q is invalid"), "{problem}");
        // Who may not see the workspace hears no more than that.
        assert_eq!(page(&bob, &genesis, &[("q", query)]).await.0, StatusCode::NOT_FOUND);
    }
    assert_eq!(page(&device, &genesis, &[]).await.0, StatusCode::BAD_REQUEST);
    assert_eq!(page(&device, &genesis, &[("q", &long[2..])]).await.0, StatusCode::OK);
    for cursor in ["", "x", "0-1-61", "9-00000000000000000000000000000001-61"] {
        let (status, _) = page(&device, &genesis, &[("q", "a"), ("cursor", cursor)]).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{cursor}");
    }
}

#[tokio::test]
async fn member_of_a_shared_folder_finds_nothing_beside_it() {
    let server = TestServer::start().await;
    let (ada, bob) = (server.device("ada").await, server.device("bob").await);
    let (outer, inner) = (ada.create_workspace("home").await, ada.create_workspace("in").await);
    for path in ["folders/shared", "files/shared/secret%20before", "files/secret%20sibling"] {
        make(&ada, &outer, path).await;
    }
    make(&ada, &inner, "files/secret%20inside").await;
    let let_in = at(&inner, "members/bob");
    let request = ada.request(Method::PUT, &let_in).json(&json!({ "role": "view" }));
    assert!(request.send().await.unwrap().status().is_success());
    ada.mount(&outer, "shared", &inner).await;

    assert_eq!(paths(&found(&bob, &inner, "secret", 9).await), ["secret%20inside"]);
    let (status, problem) = page(&bob, &outer, &[("q", "secret")]).await;
    assert_eq!((status, &problem["code"]), (StatusCode::NOT_FOUND, &json!("not_found")));
    // What the workspace around it has of the folder is as it was, and is not found there any more; the folder is.
    assert_eq!(paths(&found(&ada, &outer, "secret", 9).await), ["secret%20sibling"]);
    assert_eq!(paths(&found(&ada, &outer, "shared", 9).await), ["shared"]);
}
