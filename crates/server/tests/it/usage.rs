//! What a workspace holds, as people are told: every figure against what was put.

use commit_log::CommitLog;
use model::{Commit, Genesis, PackRef, Timestamp};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{Device, TestServer, noise, pack_id};

/// When the day of the clock of these tests began.
const TODAY: i64 = 1_700_000_000 / 86_400 * 86_400;

fn at(genesis: &Genesis, rest: &str) -> String {
    format!("/workspaces/{}/{rest}", genesis.workspace())
}

async fn put(device: &Device, genesis: &Genesis, path: &str, body: Vec<u8>) {
    let status = device.status(Method::PUT, &at(genesis, &format!("files/{path}")), body).await;
    assert!(status.is_success(), "{path}: {status}");
}

async fn usage(device: &Device, genesis: &Genesis) -> Value {
    let (status, usage) = device.get(&at(genesis, "usage")).await;
    assert_eq!(status, StatusCode::OK, "{usage}");
    usage
}

fn kind(usage: &Value, kind: &str) -> (u64, u64) {
    let kinds = usage["content"]["kinds"].as_array().unwrap();
    let found = kinds.iter().find(|line| line["kind"] == kind).unwrap();
    (found["files"].as_u64().unwrap(), found["bytes"].as_u64().unwrap())
}

#[tokio::test]
async fn every_byte_is_counted_once_by_its_kind_and_as_it_is_kept() {
    let server = TestServer::start_while_time_stands().await;
    let device = server.device("ada").await;
    let genesis = device.create_workspace("home").await;
    let empty = usage(&device, &genesis).await;
    assert_eq!(
        empty["content"]["packs"],
        json!({ "count": 0, "stored_bytes": 0, "content_bytes": 0 })
    );
    assert_eq!(
        (&empty["seq"], &empty["days"], &empty["days_since"]),
        (&json!(0), &json!([]), &Value::Null)
    );
    assert_eq!(empty["content"]["kinds"].as_array().unwrap().len(), 7);

    // No two lines are alike: where a workspace cuts is its secret, and two chunks of one text
    // that are the same would be kept once.
    let text: Vec<u8> =
        (0..2_000).flat_map(|line| format!("This is the line {line:>14}\n").into_bytes()).collect();
    put(&device, &genesis, "plan.txt", text.clone()).await;
    let first = usage(&device, &genesis).await;
    assert_eq!(kind(&first, "text"), (1, 64_000));
    let packs = &first["content"]["packs"];
    // It is kept compressed.
    assert_eq!((&packs["count"], &packs["content_bytes"]), (&json!(1), &json!(64_000)));
    let stored = packs["stored_bytes"].as_u64().unwrap();
    assert!(stored < 6_400, "{stored}");
    assert_eq!(first["days"], json!([{ "day": TODAY, "stored_bytes": stored }]));

    // The same bytes under another name and of another kind are there already.
    put(&device, &genesis, "copy.jpg", text).await;
    let second = usage(&device, &genesis).await;
    assert_eq!((kind(&second, "text"), kind(&second, "image")), ((1, 64_000), (1, 64_000)));
    assert_eq!((&second["content"]["packs"], &second["days"]), (packs, &first["days"]));

    // Old versions and what is deleted stay in the packs, and are no files.
    put(&device, &genesis, "plan.txt", b"short".to_vec()).await;
    let deleted = device.status(Method::DELETE, &at(&genesis, "files/copy.jpg"), Vec::new()).await;
    assert_eq!(deleted, StatusCode::NO_CONTENT);
    let third = usage(&device, &genesis).await;
    assert_eq!((kind(&third, "text"), kind(&third, "image")), ((1, 5), (0, 0)));
    assert_eq!(third["content"]["deleted"], json!({ "files": 1, "bytes": 64_000 }));
    let packs = third["content"]["packs"].clone();
    assert_eq!((&packs["count"], &packs["content_bytes"]), (&json!(2), &json!(64_005)));
    assert_eq!(third["days"], json!([{ "day": TODAY, "stored_bytes": packs["stored_bytes"] }]));
    assert_eq!(third["seq"], json!(4));
    let (_, workspaces) = device.get("/workspaces").await;
    assert_eq!(third["used_bytes"], workspaces[0]["used_bytes"]);
    // What is old and what is deleted count on.
    assert!(third["used_bytes"].as_u64() > second["used_bytes"].as_u64());

    // It is the same when it is all read anew.
    let server = server.stop().await.start().await;
    assert_eq!(usage(&device, &genesis).await, third);
    drop(server);
}

#[tokio::test]
async fn a_look_goes_on_with_what_the_one_before_knew() {
    let server = TestServer::start_while_time_stands().await;
    let device = server.device("ada").await;
    let genesis = device.create_workspace("home").await;
    let mut before = 0;
    for round in 0..3 {
        for number in 0..20 {
            let body = format!("{round} {number}").into_bytes();
            put(&device, &genesis, &format!("f{number}"), body).await;
        }
        let found = usage(&device, &genesis).await;
        let stored = found["days"][0]["stored_bytes"].as_u64().unwrap();
        assert_eq!(found["content"]["packs"]["stored_bytes"], json!(stored));
        assert_eq!((&found["seq"], &found["days_since"]), (&json!(20 * (round + 1)), &Value::Null));
        assert!(stored > before);
        before = stored;
    }
}

#[tokio::test]
async fn who_lets_count_without_end_is_told_what_was_counted_before() {
    let server = TestServer::start_while_time_stands().await;
    let (ada, bob) = (server.device("ada").await, server.device("bob").await);
    let (home, other) = (ada.create_workspace("home").await, ada.create_workspace("other").await);
    let own = bob.create_workspace("own").await;
    for count in 1..=60 {
        put(&ada, &home, "a.txt", vec![b'a'; count]).await;
        let found = usage(&ada, &home).await;
        assert_eq!((kind(&found, "text"), &found["seq"]), ((1, count as u64), &json!(count)));
    }
    // What is up to date costs nothing.
    assert_eq!(usage(&ada, &home).await["seq"], json!(60));
    put(&ada, &home, "a.txt", b"more".to_vec()).await;
    let old = usage(&ada, &home).await;
    assert_eq!((kind(&old, "text"), &old["seq"]), ((1, 60), &json!(60)));
    let (status, problem) = ada.get(&at(&other, "usage")).await;
    assert_eq!((status, &problem["code"]), (StatusCode::TOO_MANY_REQUESTS, &json!("rate_limited")));
    // It is not held up by others.
    assert_eq!(usage(&bob, &own).await["seq"], json!(0));
}

#[tokio::test]
async fn what_came_is_shown_on_the_day_of_its_device() {
    let server = TestServer::start_while_time_stands().await;
    let device = server.device("ada").await;
    let genesis = device.create_workspace("home").await;
    let log = device.log(&genesis).await;
    for (number, days_ago, length) in [(1, 40, 10), (2, 29, 200), (3, 1, 3_000), (4, 1, 40)] {
        let pack = noise(length);
        assert_eq!(device.put_pack(&genesis, &pack).await, StatusCode::CREATED);
        let packs = vec![PackRef { id: pack_id(&pack), length: length as u64 }];
        let time = Timestamp { seconds: TODAY - days_ago * 86_400 + 86_399, nanoseconds: 0 };
        let commit = device.commit(number, log.head().await.unwrap());
        log.commit(&Commit { time, packs, ..commit }).await.unwrap();
    }
    let found = usage(&device, &genesis).await;
    let day = |days_ago: i64, bytes: u64| json!({ "day": TODAY - days_ago * 86_400, "stored_bytes": bytes });
    assert_eq!(
        (&found["days"], &found["days_since"]),
        (&json!([day(29, 200), day(1, 3_040)]), &Value::Null)
    );
    // Nobody knows what is in packs that are none.
    let packs = json!({ "count": 4, "stored_bytes": 3_250, "content_bytes": null });
    assert_eq!(found["content"]["packs"], packs);
}
