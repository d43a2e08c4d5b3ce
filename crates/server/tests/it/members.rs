//! Sharing a workspace over the doors.

use std::time::Duration;

use commit_log::CommitLog;
use futures_util::StreamExt;
use model::wire::RefusalKind;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{Device, TestServer, noise, pack_path, read_json};

async fn share(owner: &Device, workspace: &str, user: &str, role: &str) -> (StatusCode, Value) {
    let path = format!("/workspaces/{workspace}/members/{user}");
    let request = owner.request(Method::PUT, &path).json(&json!({ "role": role }));
    read_json(request.send().await.unwrap()).await
}

#[tokio::test]
async fn members_are_added_changed_listed_and_removed() {
    let server = TestServer::start().await;
    let (ada, bob) = (server.device("ada").await, server.device("bob").await);
    let id = ada.create_workspace("home").await.workspace().to_string();
    let (status, member) = share(&ada, &id, "bob", "view").await;
    assert_eq!((status, &member["role"]), (StatusCode::CREATED, &json!("view")));
    assert_eq!(share(&ada, &id, "bob", "edit").await.0, StatusCode::OK);
    let (_, members) = ada.get(&format!("/workspaces/{id}/members")).await;
    let words = |line: &Value| (line["user"].clone(), line["role"].clone());
    let listed: Vec<_> = members.as_array().unwrap().iter().map(words).collect();
    assert_eq!(listed, [(json!("ada"), json!("owner")), (json!("bob"), json!("edit"))]);

    let (_, seen) = bob.get("/workspaces").await;
    assert_eq!((&seen[0]["name"], &seen[0]["role"]), (&json!("ada/home"), &json!("edit")));
    assert_eq!(seen[0]["owner"], "ada");
    let (status, found) = bob.get("/workspaces/ada%2Fhome").await;
    assert_eq!((status, &found["id"]), (StatusCode::OK, &json!(id)));

    for (user, role, status) in [
        ("nobody", "view", StatusCode::NOT_FOUND),
        ("ada", "view", StatusCode::BAD_REQUEST),
        ("bob", "owner", StatusCode::UNPROCESSABLE_ENTITY),
        ("bob", "", StatusCode::UNPROCESSABLE_ENTITY),
    ] {
        let (found, problem) = share(&ada, &id, user, role).await;
        assert_eq!(found, status, "{problem}");
        assert!(problem["code"].is_string(), "{problem}");
    }
    let path = format!("/workspaces/{id}/members/bob");
    assert_eq!(ada.status(Method::DELETE, &path, vec![]).await, StatusCode::NO_CONTENT);
    assert_eq!(ada.status(Method::DELETE, &path, vec![]).await, StatusCode::NOT_FOUND);
    assert_eq!(bob.get("/workspaces").await.1, json!([]));
}

#[tokio::test]
async fn removed_member_loses_push_and_data_at_once_and_nothing_else() {
    let server = TestServer::start().await;
    let (ada, bob) = (server.device("ada").await, server.device("bob").await);
    let (home, own) = (ada.create_workspace("home").await, bob.create_workspace("own").await);
    let id = home.workspace().to_string();
    share(&ada, &id, "bob", "edit").await;
    let pack = noise(100);
    assert_eq!(bob.put_pack(&home, &pack).await, StatusCode::CREATED);

    // One connection hears of both workspaces.
    let connection = bob.connection();
    let clock = crate::support::SystemClock::start();
    let open = |genesis: &model::Genesis| {
        commit_log::ServedCommitLog::open(connection.clone(), clock.clone(), genesis.workspace())
    };
    let (shared, private) = (open(&home).await.unwrap(), open(&own).await.unwrap());
    let mut events = shared.subscribe(0).await.unwrap();
    let mut own_events = private.subscribe(0).await.unwrap();
    let log = ada.log(&home).await;
    let head = log.commit(&ada.commit(1, home.head())).await.unwrap();
    assert_eq!(events.next().await.unwrap().unwrap().head(), head);

    let path = format!("/workspaces/{id}/members/bob");
    assert_eq!(ada.status(Method::DELETE, &path, vec![]).await, StatusCode::NO_CONTENT);
    log.commit(&ada.commit(2, head)).await.unwrap();
    let error = events.next().await.unwrap().unwrap_err();
    assert!(error.is_refusal(RefusalKind::NotFound), "{error:?}");
    let refused = shared.commit(&bob.commit(3, head)).await.unwrap_err();
    assert!(refused.is_refusal(RefusalKind::NotFound), "{refused:?}");
    let read = bob.status(Method::GET, &pack_path(&home, &pack), vec![]).await;
    assert_eq!(read, StatusCode::NOT_FOUND);

    let head = private.commit(&bob.commit(1, own.head())).await.unwrap();
    let heard = tokio::time::timeout(Duration::from_secs(20), own_events.next()).await.unwrap();
    assert_eq!(heard.unwrap().unwrap().head(), head);
}

#[tokio::test]
async fn sharing_without_end_is_slowed_down() {
    let server = TestServer::start_while_time_stands().await;
    let ada = server.device("ada").await;
    let id = ada.create_workspace("home").await.workspace().to_string();
    let mut heard = Vec::new();
    for number in 0..=100 {
        heard.push(share(&ada, &id, &format!("user{number}"), "view").await.0);
    }
    assert_eq!(heard.pop(), Some(StatusCode::TOO_MANY_REQUESTS));
    assert!(heard.iter().all(|status| *status == StatusCode::NOT_FOUND), "{heard:?}");
}
