//! Signing in and out, devices, administration.

use futures_util::StreamExt;
use futures_util::future::join_all;
use model::Genesis;
use model::codec::decode_message;
use model::wire::RefusalKind;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use server::admin::Removal;
use server::auth::{Caller, Token};
use server::limits::DEVICES_MAX;
use server::metadata::{AccountTables, Metadata};
use server::services::accounts::enrol_device;
use server::{Admin, Sqlite};

use commit_log::CommitLog;

use crate::exchange;
use crate::support::{PASSWORD, SystemRandom, TestServer, http, read_json};

#[tokio::test]
async fn device_signs_in_is_known_and_signs_out() {
    let server = TestServer::start().await;
    let device = server.device("ada").await;
    let (status, me) = device.get("/whoami").await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(me["account"], "ada");
    assert_eq!(me["device_id"], device.id.to_string());
    assert_eq!(me["device_name"], "laptop");
    assert_eq!(me["used_bytes"], 0);
    assert_eq!(device.status(Method::POST, "/logout", vec![]).await, StatusCode::NO_CONTENT);
    let (status, problem) = device.get("/whoami").await;
    assert_eq!((status, &problem["code"]), (StatusCode::UNAUTHORIZED, &json!("not_signed_in")));
}

#[tokio::test]
async fn devices_are_listed_renamed_and_revoked() {
    let server = TestServer::start().await;
    let (first, second) = (server.device("ada").await, server.device("ada").await);
    let (_, devices) = first.get("/devices").await;
    assert_eq!(devices.as_array().unwrap().len(), 2);
    let path = format!("/devices/{}", second.id);
    let renamed = first.request(Method::PATCH, &path).json(&json!({ "name": "büro" }));
    let (status, device) = read_json(renamed.send().await.unwrap()).await;
    assert_eq!((status, &device["name"]), (StatusCode::OK, &json!("büro")));
    for name in ["", " ", "a\u{7}b", &"x".repeat(65)] {
        let refused = first.request(Method::PATCH, &path).json(&json!({ "name": name }));
        assert_eq!(refused.send().await.unwrap().status(), StatusCode::BAD_REQUEST);
    }
    assert_eq!(first.status(Method::DELETE, &path, vec![]).await, StatusCode::NO_CONTENT);
    assert_eq!(second.get("/whoami").await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(first.status(Method::DELETE, &path, vec![]).await, StatusCode::NOT_FOUND);
    assert_eq!(first.get("/devices").await.1.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn revoked_device_loses_its_live_connection_at_once() {
    let server = TestServer::start().await;
    let (owner, lost) = (server.device("ada").await, server.device("ada").await);
    let genesis = owner.create_workspace("home").await;
    let log = lost.log(&genesis).await;
    let mut events = log.subscribe(0).await.unwrap();
    let path = format!("/devices/{}", lost.id);
    assert_eq!(owner.status(Method::DELETE, &path, vec![]).await, StatusCode::NO_CONTENT);
    owner.log(&genesis).await.commit(&owner.commit(1, genesis.head())).await.unwrap();
    // The stream ends with the refusal, and the entry has not come.
    let error = events.next().await.unwrap().unwrap_err();
    assert!(error.is_refusal(RefusalKind::Forbidden), "{error:?}");
    let refused = log.commit(&lost.commit(2, genesis.head())).await.unwrap_err();
    assert!(refused.is_refusal(RefusalKind::Forbidden), "{refused:?}");
}

#[tokio::test]
async fn who_signs_in_to_a_full_account_takes_the_place_of_who_was_seen_longest_ago() {
    let (server, audit) = TestServer::start_auditing_while_time_stands().await;
    let (owner, lost) = (server.device("ada").await, server.device("ada").await);
    let genesis = owner.create_workspace("home").await;
    let log = lost.log(&genesis).await;
    let mut events = log.subscribe(0).await.unwrap();
    let mut metadata = Sqlite::open(&server.data().join("metadata.sqlite")).unwrap();
    let ada = metadata.account_by_name("ada").unwrap().unwrap().id;
    metadata.begin().unwrap();
    metadata.touch_device(lost.id, 1_500_000_000).unwrap();
    let mut tabs = Vec::new();
    for seen in 2..DEVICES_MAX as i64 {
        let seen = 1_600_000_000 + seen;
        tabs.push(enrol_device(&mut metadata, &SystemRandom, ada, "tab", seen).unwrap());
    }
    metadata.commit().unwrap();
    let count = async || owner.get("/devices").await.1.as_array().unwrap().len();
    assert_eq!(count().await, DEVICES_MAX);

    let new = server.device("ada").await;
    assert_eq!(lost.get("/whoami").await.0, StatusCode::UNAUTHORIZED);
    let error = events.next().await.unwrap().unwrap_err();
    assert!(error.is_refusal(RefusalKind::Forbidden), "{error:?}");
    for here in [&owner, &new] {
        assert_eq!(here.get("/whoami").await.0, StatusCode::OK);
    }
    let text = std::fs::read_to_string(audit).unwrap();
    let line: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    let told = ["event", "device", "subject"].map(|name| line[name].as_str().unwrap().to_owned());
    assert_eq!(told, ["device_revoked".to_owned(), new.id.to_string(), lost.id.to_string()]);

    // So it is for who proves the password, for programs that show it, and for several at once.
    assert_eq!(exchange::sign_in(&server, "ada", PASSWORD).await.0, StatusCode::OK);
    let method = Method::from_bytes(b"PROPFIND").unwrap();
    let program = http().request(method, server.url("/dav/home/")).header("depth", "0");
    let listed = program.basic_auth("ada", Some(PASSWORD)).send().await.unwrap();
    assert_eq!(listed.status(), StatusCode::MULTI_STATUS);
    join_all((0..4).map(|_| server.device("ada"))).await;
    assert_eq!(count().await, DEVICES_MAX);
    let is_revoked =
        |tab: &(Caller, Token)| metadata.device(tab.0.device).unwrap().unwrap().is_revoked;
    assert_eq!(tabs.iter().position(|tab| !is_revoked(tab)), Some(6));
    assert_eq!(tabs.iter().filter(|tab| is_revoked(tab)).count(), 6);
}

#[tokio::test]
async fn wrong_password_and_unknown_user_get_the_same_answer() {
    let server = TestServer::start().await;
    let wrong = server.login("ada", "wrong").await;
    assert_eq!(wrong.0, StatusCode::UNAUTHORIZED);
    for (user, password) in [("nobody", PASSWORD), ("nobody", ""), (&*"x".repeat(100), "y")] {
        assert_eq!(server.login(user, password).await, wrong);
    }
}

#[tokio::test]
async fn guessing_is_slowed_down_per_account() {
    let server = TestServer::start_while_time_stands().await;
    for _ in 0..10 {
        assert_eq!(server.login("ada", "wrong").await.0, StatusCode::UNAUTHORIZED);
    }
    let body = json!({ "user": "ada", "password": PASSWORD, "device_name": "d" });
    let request = http().post(server.url("/api/v1/login")).json(&body);
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    let wait: u64 = response.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
    server.device("bob").await;
}

#[tokio::test]
async fn malformed_logins_are_problems_that_repeat_nothing() {
    let server = TestServer::start().await;
    let huge = format!("{{\"user\": \"{}\"}}", "x".repeat(20_000));
    for body in ["", "{}", "[1", r#"{"user": 7, "password": "secret7", "device_name": "d"}"#, &huge]
    {
        let request = http().post(server.url("/api/v1/login"));
        let request = request.header("content-type", "application/json").body(body.to_owned());
        let response = request.send().await.unwrap();
        assert!(response.status().is_client_error());
        assert_eq!(response.headers()["content-type"], "application/problem+json");
        let (_, problem) = read_json(response).await;
        assert!(problem["code"].is_string() && problem["type"].is_string(), "{problem}");
        assert!(!problem.to_string().contains("secret7"));
    }
}

#[tokio::test]
async fn administrator_changes_accounts_of_a_running_server() {
    let server = TestServer::start().await;
    let device = server.device("ada").await;
    device.create_workspace("home").await;
    assert!(Admin::open_existing(&server.data().join("nothing")).is_err());
    let mut admin = Admin::open_existing(server.data()).unwrap();
    assert!(admin.add("ada", "x", &*crate::support::SystemClock::start(), &SystemRandom).is_err());
    admin.set_password("bob", "another", &SystemRandom).unwrap();
    assert_eq!(server.login("bob", PASSWORD).await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(server.login("bob", "another").await.0, StatusCode::OK);

    admin.set_quota("ada", Some(1 << 30)).unwrap();
    let lines = admin.list().unwrap();
    assert_eq!((lines[0].name.as_str(), lines[0].workspaces), ("ada", 1));
    assert_eq!((lines[0].devices, lines[0].quota_bytes), (1, Some(1 << 30)));

    assert_eq!(admin.remove("bob").unwrap(), Removal::Deleted);
    assert_eq!(server.login("bob", "another").await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(admin.remove("ada").unwrap(), Removal::Disabled);
    assert_eq!(device.get("/whoami").await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(server.login("ada", PASSWORD).await.0, StatusCode::UNAUTHORIZED);
    admin.set_password("ada", PASSWORD, &SystemRandom).unwrap();
    let back = server.device("ada").await;
    assert_eq!(back.get("/workspaces/home").await.0, StatusCode::OK);
    assert!(admin.remove("nobody").is_err());
}

#[tokio::test]
async fn disabled_account_is_shut_out_and_comes_back_as_it_was() {
    let server = TestServer::start().await;
    let device = server.device("ada").await;
    let genesis = device.create_workspace("home").await;
    let log = device.log(&genesis).await;
    let mut admin = Admin::open_existing(server.data()).unwrap();
    admin.set_disabled("ada", true).unwrap();
    assert_eq!(device.get("/whoami").await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(server.login("ada", PASSWORD).await.0, StatusCode::UNAUTHORIZED);
    let refused = log.commit(&device.commit(1, genesis.head())).await.unwrap_err();
    assert!(refused.is_refusal(RefusalKind::Forbidden), "{refused:?}");
    admin.set_disabled("ada", false).unwrap();
    assert_eq!(device.get("/whoami").await.0, StatusCode::OK);
    assert_eq!(server.login("ada", PASSWORD).await.0, StatusCode::OK);
    assert!(admin.set_disabled("nobody", true).is_err());
}

#[tokio::test]
async fn workspaces_are_made_once_and_found_by_name_and_id() {
    let server = TestServer::start().await;
    let (ada, bob) = (server.device("ada").await, server.device("bob").await);
    let genesis = ada.create_workspace("my häuschen").await;
    let body = model::codec::encode_message(&genesis);
    assert_eq!(ada.status(Method::POST, "/workspaces", body.clone()).await, StatusCode::OK);
    assert_eq!(bob.status(Method::POST, "/workspaces", body).await, StatusCode::CONFLICT);
    let twin = model::codec::encode_message(&crate::support::genesis("my häuschen"));
    assert_eq!(ada.status(Method::POST, "/workspaces", twin.clone()).await, StatusCode::CONFLICT);
    assert_eq!(bob.status(Method::POST, "/workspaces", twin).await, StatusCode::CREATED);
    let id = genesis.workspace().to_string();
    for text in ["my%20h%C3%A4uschen", &id] {
        let (status, found) = ada.get(&format!("/workspaces/{text}")).await;
        assert_eq!((status, &found["id"]), (StatusCode::OK, &json!(id)));
    }
    for name in ["", "a/b", "a\nb", &id] {
        let body = model::codec::encode_message(&crate::support::genesis(name));
        assert_eq!(ada.status(Method::POST, "/workspaces", body).await, StatusCode::BAD_REQUEST);
    }
    let garbage = vec![b'G', 1, 2, 3];
    assert_eq!(ada.status(Method::POST, "/workspaces", garbage).await, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn workspace_that_the_server_can_read_is_made_from_a_name() {
    let server = TestServer::start().await;
    let ada = server.device("ada").await;
    let make = |name: &str| ada.request(Method::POST, "/workspaces").json(&json!({ "name": name }));
    let (status, made) = read_json(make("Photos").send().await.unwrap()).await;
    assert_eq!((status, &made["name"]), (StatusCode::CREATED, &json!("Photos")));
    assert_eq!((&made["mode"], &made["role"]), (&json!("plain"), &json!("owner")));
    let id = made["id"].as_str().unwrap();
    let bytes =
        ada.request(Method::GET, &format!("/workspaces/{id}/genesis")).send().await.unwrap();
    let genesis: Genesis = decode_message(&bytes.bytes().await.unwrap()).unwrap();
    assert_eq!((genesis.workspace().to_string(), &*genesis.name), (id.to_owned(), "Photos"));
    assert_ne!(genesis.content_key, [0; 32]);
    let file = format!("/workspaces/{id}/files/a");
    assert_eq!(ada.status(Method::PUT, &file, b"text".to_vec()).await, StatusCode::CREATED);
    // The name is the account's own, and it is asked for as by a device.
    assert_eq!(make("Photos").send().await.unwrap().status(), StatusCode::CONFLICT);
    for name in ["", "a/b", id, &"x".repeat(129)] {
        assert_eq!(make(name).send().await.unwrap().status(), StatusCode::BAD_REQUEST, "{name}");
    }
    for body in ["{", "{}", r#"{"name": 1}"#] {
        let status = ada.status(Method::POST, "/workspaces", body.into()).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{body}");
    }
    let (_, listed) = ada.get("/workspaces").await;
    assert_eq!(listed.as_array().unwrap().len(), 1);
    assert_eq!(listed[0]["mode"], json!("plain"));
}
