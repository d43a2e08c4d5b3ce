//! A person changes the own password.

use commit_log::CommitLog;
use futures_util::StreamExt;
use model::wire::RefusalKind;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{Device, PASSWORD, TestServer, read_json};

async fn post(device: &Device, path: &str, body: Value) -> (StatusCode, Value) {
    let request = device.request(Method::POST, path).json(&body);
    read_json(request.send().await.unwrap()).await
}

async fn change(
    device: &Device,
    old: &str,
    new: &str,
    sign_out_others: bool,
) -> (StatusCode, Value) {
    let body = json!({ "password": old, "new_password": new, "sign_out_others": sign_out_others });
    post(device, "/account/password", body).await
}

#[tokio::test]
async fn who_knows_the_password_changes_it_and_nobody_is_signed_out() {
    let server = TestServer::start().await;
    let (device, other) = (server.device("ada").await, server.device("ada").await);
    let (status, problem) = change(&device, "wrong", "new", true).await;
    assert_eq!((status, &problem["code"]), (StatusCode::UNAUTHORIZED, &json!("wrong_password")));
    assert_eq!(change(&device, PASSWORD, "", true).await.0, StatusCode::BAD_REQUEST);
    server.device("ada").await;
    let body = json!({ "password": PASSWORD, "new_password": "a new one" });
    let changed = post(&device, "/account/password", body).await;
    assert_eq!(changed, (StatusCode::OK, json!({ "signed_out": 0, "identities": 0 })));
    assert_eq!(server.login("ada", PASSWORD).await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(server.login("ada", "a new one").await.0, StatusCode::OK);
    assert_eq!(server.login("bob", PASSWORD).await.0, StatusCode::OK);
    for device in [&device, &other] {
        assert_eq!(device.get("/whoami").await.0, StatusCode::OK);
    }
}

#[tokio::test]
async fn the_others_are_signed_out_at_once_where_that_is_wanted() {
    let server = TestServer::start().await;
    let (device, lost) = (server.device("ada").await, server.device("ada").await);
    let bob = server.device("bob").await;
    let genesis = device.create_workspace("home").await;
    let log = lost.log(&genesis).await;
    let mut events = log.subscribe(0).await.unwrap();
    let (_, token) = post(&device, "/tokens", json!({ "name": "p", "scope": "read" })).await;
    let token = token["token"].as_str().unwrap().to_owned();
    let program = Device { token, ..device.clone() };
    assert_eq!(program.get("/whoami").await.0, StatusCode::OK);

    let changed = change(&device, PASSWORD, "new", true).await;
    assert_eq!(changed, (StatusCode::OK, json!({ "signed_out": 2, "identities": 0 })));
    for gone in [&lost, &program] {
        assert_eq!(gone.get("/whoami").await.0, StatusCode::UNAUTHORIZED);
    }
    let error = events.next().await.unwrap().unwrap_err();
    assert!(error.is_refusal(RefusalKind::Forbidden), "{error:?}");
    for here in [&device, &bob] {
        assert_eq!(here.get("/whoami").await.0, StatusCode::OK);
    }
    assert_eq!(device.get("/workspaces/home").await.0, StatusCode::OK);
}

#[tokio::test]
async fn a_device_tries_passwords_only_so_often() {
    let server = TestServer::start_while_time_stands().await;
    let (device, other) = (server.device("ada").await, server.device("ada").await);
    for _ in 0..10 {
        assert_eq!(change(&device, "wrong", "new", false).await.0, StatusCode::UNAUTHORIZED);
    }
    let (status, problem) = change(&device, PASSWORD, "new", false).await;
    assert_eq!((status, &problem["code"]), (StatusCode::TOO_MANY_REQUESTS, &json!("rate_limited")));
    assert_eq!(device.get("/whoami").await.0, StatusCode::OK);
    assert_eq!(change(&other, PASSWORD, "new", false).await.0, StatusCode::OK);
}
