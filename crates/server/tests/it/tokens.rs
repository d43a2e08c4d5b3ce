//! Tokens of applications over the doors.

use commit_log::CommitLog;
use futures_util::StreamExt;
use model::wire::RefusalKind;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::link_limits::{SetClock, assert_cut_off};
use crate::support::{Device, TestServer, noise, read_json};

async fn add(device: &Device, body: Value) -> (StatusCode, Value) {
    let request = device.request(Method::POST, "/tokens").json(&body);
    read_json(request.send().await.unwrap()).await
}

/// What an application sees that shows a token.
fn application(device: &Device, token: &Value) -> Device {
    let text = |field: &str| token[field].as_str().unwrap().to_owned();
    let incarnation = device.incarnation + 1;
    Device { token: text("token"), id: text("id").parse().unwrap(), incarnation, ..device.clone() }
}

#[tokio::test]
async fn tokens_are_shown_once_listed_and_taken_back_with_their_connections() {
    let server = TestServer::start().await;
    let ada = server.device("ada").await;
    let home = ada.create_workspace("home").await;
    let body =
        json!({"name": "rclone", "scope": "write", "workspace": "home", "expires_in_seconds": 60});
    let (status, token) = add(&ada, body).await;
    assert_eq!(status, StatusCode::CREATED, "{token}");
    let (_, listed) = ada.get("/tokens").await;
    assert_eq!(listed.as_array().unwrap().len(), 1);
    assert_eq!((&listed[0]["name"], &listed[0]["scope"]), (&json!("rclone"), &json!("write")));
    assert_eq!(listed[0]["workspace"], home.workspace().to_string());
    assert_eq!(listed[0]["expires"], 1_700_000_060);
    assert_eq!(listed[0]["token"], Value::Null);
    assert_eq!(ada.get("/devices").await.1.as_array().unwrap().len(), 1, "it is no device");

    let program = application(&ada, &token);
    let log = program.log(&home).await;
    let mut events = log.subscribe(0).await.unwrap();
    let head = log.commit(&program.commit(1, home.head())).await.unwrap();
    assert_eq!(events.next().await.unwrap().unwrap().head(), head);

    let path = format!("/tokens/{}", token["id"].as_str().unwrap());
    assert_eq!(ada.status(Method::DELETE, &path, vec![]).await, StatusCode::NO_CONTENT);
    ada.log(&home).await.commit(&ada.commit(2, head)).await.unwrap();
    let error = events.next().await.unwrap().unwrap_err();
    assert!(error.is_refusal(RefusalKind::Forbidden), "{error:?}");
    assert_eq!(program.get("/whoami").await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(ada.get("/tokens").await.1, json!([]));
    assert_eq!(ada.status(Method::DELETE, &path, vec![]).await, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn what_is_read_by_a_token_whose_day_comes_is_cut_off() {
    let stopped = TestServer::start().await.stop().await;
    let clock = SetClock::start();
    let server = TestServer::start_again(&stopped, |options| options.clock = clock.clone());
    let server = server.await.unwrap();
    let ada = server.device("ada").await;
    let home = ada.create_workspace("home").await;
    let (path, long) = (format!("/workspaces/{}/files/long", home.workspace()), noise(40 << 20));
    assert_eq!(ada.status(Method::PUT, &path, long.clone()).await, StatusCode::CREATED);
    let body = json!({ "name": "rclone", "scope": "read", "expires_in_seconds": 60 });
    let program = application(&ada, &add(&ada, body).await.1);
    let answer = program.request(Method::GET, &path).send().await.unwrap();
    let events = format!("/workspaces/{}/events", home.workspace());
    let mut events = program.request(Method::GET, &events).send().await.unwrap().bytes_stream();
    assert!(events.next().await.is_some());
    assert_cut_off(answer, long.len(), async || clock.set(1_700_000_060)).await;
    // Who listens hears nothing more.
    assert_eq!(ada.status(Method::PUT, &path, vec![]).await, StatusCode::OK);
    assert!(events.next().await.is_none());
}

#[tokio::test]
async fn tokens_that_cannot_be_are_refused() {
    let server = TestServer::start().await;
    let (ada, bob) = (server.device("ada").await, server.device("bob").await);
    bob.create_workspace("diary").await;
    for (body, expected) in [
        (json!({"name": "", "scope": "read"}), StatusCode::BAD_REQUEST),
        (json!({"name": "x", "scope": "read", "expires_in_seconds": 0}), StatusCode::BAD_REQUEST),
        (json!({"name": "x", "scope": "admin"}), StatusCode::UNPROCESSABLE_ENTITY),
        (json!({"name": "x", "scope": "read", "workspace": "diary"}), StatusCode::NOT_FOUND),
        (json!({"name": "x", "scope": "read", "workspace": "bob/diary"}), StatusCode::NOT_FOUND),
    ] {
        let (status, problem) = add(&ada, body.clone()).await;
        assert_eq!(status, expected, "{body}: {problem}");
    }
    assert_eq!(ada.get("/tokens").await.1, json!([]));
}
