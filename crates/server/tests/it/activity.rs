//! What happened in a workspace, as people are told.

use model::Genesis;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{Device, TestServer};

fn at(genesis: &Genesis, rest: &str) -> String {
    format!("/workspaces/{}/{rest}", genesis.workspace())
}

async fn send(device: &Device, method: Method, path: &str, body: Value) {
    let request = device.request(method, path);
    let request = if body.is_null() { request } else { request.json(&body) };
    let answer = request.send().await.unwrap();
    assert!(answer.status().is_success(), "{path}: {}", answer.text().await.unwrap());
}

/// Returns all that happened, so many entries at once.
async fn activity(device: &Device, genesis: &Genesis, limit: usize) -> Vec<Value> {
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let path = at(genesis, &format!("activity?limit={limit}{cursor}"));
        let (status, page) = device.get(&path).await;
        assert_eq!(status, StatusCode::OK, "{page}");
        found.extend(page["activity"].as_array().unwrap().iter().cloned());
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return found,
        }
    }
}

/// What each entry did: with what, to what it was called, and where that is now.
fn told(activity: &[Value]) -> Vec<String> {
    let line = |entry: &Value| {
        let change = &entry["changes"][0];
        let text = |field: &str| change[field].as_str().unwrap_or("-").to_owned();
        format!("{} {} {} {}", text("happened"), text("name"), text("old_name"), text("path"))
    };
    activity.iter().map(line).collect()
}

#[tokio::test]
async fn what_happened_is_told_newest_first_by_whom_and_to_what() {
    let server = TestServer::start().await;
    let device = server.device("ada").await;
    let genesis = device.create_workspace("home").await;
    assert!(activity(&device, &genesis, 10).await.is_empty());
    for (method, path, body) in [
        (Method::PUT, "files/a", json!("one")),
        (Method::PUT, "folders/f", Value::Null),
        (Method::PUT, "files/a", json!("two")),
        (Method::POST, "move", json!({ "from": "a", "to": "b" })),
        (Method::POST, "move", json!({ "from": "b", "to": "f/b" })),
        (Method::PUT, "files/gone", json!("gone")),
        (Method::DELETE, "files/gone", Value::Null),
    ] {
        send(&device, method, &at(&genesis, path), body).await;
    }
    let (_, deleted) = device.get(&at(&genesis, "deleted")).await;
    let restore = json!({ "node": deleted["nodes"][0]["id"] });
    send(&device, Method::POST, &at(&genesis, "restore"), restore).await;
    send(&device, Method::DELETE, &at(&genesis, "files/f"), Value::Null).await;
    let expected = [
        "deleted b - -",
        "restored gone - gone",
        "deleted gone - gone",
        "made gone - gone",
        "moved b - -",
        "renamed b a -",
        "changed a - -",
        "made f - -",
        "made a - -",
    ];
    for limit in [1, 2, 100] {
        assert_eq!(told(&activity(&device, &genesis, limit).await), expected, "{limit}");
    }
    let all = activity(&device, &genesis, 100).await;
    let newest = &all[0];
    assert_eq!((&newest["count"], &newest["device_name"]), (&json!(2), &json!("laptop")));
    assert_eq!(newest["device_id"], json!(device.id.to_string()));
    assert_eq!((&newest["time"], &newest["seq"]), (&json!(1_700_000_000), &json!(9)));
    assert_eq!(all[6]["changes"][0]["size"], json!(5));

    let server = server.stop().await.start().await;
    assert_eq!(told(&activity(&device, &genesis, 100).await), expected);
    for cursor in ["x", "-1", "99999999999999999999"] {
        let (status, _) = device.get(&at(&genesis, &format!("activity?cursor={cursor}"))).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{cursor}");
    }
    let (_, page) = device.get(&at(&genesis, "activity?cursor=0")).await;
    assert_eq!(page, json!({ "activity": [], "next": null }));
    let bob = server.device("bob").await;
    assert_eq!(bob.get(&at(&genesis, "activity")).await.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_long_history_comes_in_stretches_and_nothing_is_left_out() {
    let server = TestServer::start().await;
    let device = server.device("ada").await;
    let genesis = device.create_workspace("home").await;
    for number in 0..600 {
        let path = at(&genesis, &format!("files/f{}", number % 7));
        send(&device, Method::PUT, &path, json!(number)).await;
    }
    let found = activity(&device, &genesis, 100).await;
    let seqs: Vec<_> = found.iter().map(|entry| entry["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, (1..=600).rev().collect::<Vec<_>>());
    let made = found.iter().filter(|entry| entry["changes"][0]["happened"] == "made").count();
    assert_eq!(made, 7);
}
