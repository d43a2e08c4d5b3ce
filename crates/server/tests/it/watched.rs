//! What those see who watch a server: metrics, readiness, the audit log.

use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use commit_log::CommitLog;
use model::DeviceId;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use server::Sqlite;
use storage::faulty::{Call, Fault, Faulty};

use crate::exchange::begin_change;
use crate::support::{PASSWORD, TestServer, http, noise, pack_path, read_json};
use crate::two_servers;

/// An address that nobody uses at this moment.
fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

async fn get(address: SocketAddr, path: &str) -> (StatusCode, String) {
    let response = http().get(format!("http://{address}{path}")).send().await.unwrap();
    (response.status(), response.text().await.unwrap())
}

/// Returns the value of a line.
fn value(metrics: &str, name: &str) -> Option<u64> {
    let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.and_then(|value| value.parse().ok())
}

#[tokio::test]
async fn metrics_are_told_at_an_address_of_their_own() {
    let watch = free_address();
    let stopped = TestServer::start().await.stop().await;
    let server = TestServer::start_again(&stopped, |options| options.metrics_listen = Some(watch));
    let server = server.await.unwrap();
    let device = server.device("ada").await;
    assert_eq!(server.login("ada", "wrong").await.0, StatusCode::UNAUTHORIZED);
    let genesis = device.create_workspace("home").await;
    let pack = noise(1234);
    assert_eq!(device.put_pack(&genesis, &pack).await, StatusCode::CREATED);
    let found = device.request(Method::GET, &pack_path(&genesis, &pack)).send().await.unwrap();
    assert_eq!(found.bytes().await.unwrap().len(), 1234);
    let log = device.log(&genesis).await;
    let commit = device.commit(1, genesis.head());
    log.commit(&commit).await.unwrap();
    log.commit(&commit).await.unwrap();
    let other = server.device("ada").await;
    log.tell_in_sync().await.unwrap();

    let (status, metrics) = get(watch, "/metrics").await;
    assert_eq!(status, StatusCode::OK);
    for (name, wanted) in [
        ("syncline_commits_total{outcome=\"appended\"}", 1),
        ("syncline_commits_total{outcome=\"repeated\"}", 1),
        ("syncline_commit_seconds_count", 1),
        ("syncline_requests_total{door=\"packs\",status=\"2xx\"}", 2),
        ("syncline_requests_total{door=\"rest\",status=\"4xx\"}", 1),
        ("syncline_requests_total{door=\"live\",status=\"1xx\"}", 1),
        ("syncline_object_bytes_total{direction=\"in\"}", 1234),
        ("syncline_object_bytes_total{direction=\"out\"}", 1234),
        ("syncline_logins_refused_total", 1),
        ("syncline_live_connections", 1),
        ("syncline_accounts", 2),
        ("syncline_faults_total{part=\"store\"}", 0),
        ("syncline_ready", 1),
    ] {
        assert_eq!(value(&metrics, name), Some(wanted), "{name}: {metrics}");
    }
    assert!(!metrics.contains("bob"), "nobody has ever heard of a device of his");
    // Which of them was in sync and which never was is told to its owner.
    for device in [&device, &other] {
        let name =
            format!("syncline_device_sync_age_seconds{{account=\"ada\",device=\"{}\",", device.id);
        let line = metrics.lines().find(|line| line.starts_with(&name));
        assert!(line.is_some(), "{name}: {metrics}");
    }
    let (_, devices) = other.get("/devices").await;
    let devices = devices.as_array().unwrap();
    let of = |id: DeviceId| devices.iter().find(|line| line["id"] == id.to_string()).unwrap();
    assert!(of(device.id)["last_in_sync"].is_i64() && of(other.id)["last_in_sync"].is_null());
    // Strangers do not see them.
    assert_eq!(get(server.address, "/metrics").await.0, StatusCode::NOT_FOUND);
    assert_eq!(get(watch, "/api/v1/whoami").await.0, StatusCode::NOT_FOUND);
    assert_eq!(get(watch, "/livez").await.0, StatusCode::OK);
    // A connection that is kept open does not hold up the end.
    let stopped = tokio::time::timeout(std::time::Duration::from_secs(5), server.stop()).await;
    assert!(stopped.is_ok());
}

#[tokio::test]
async fn a_server_without_its_store_lives_and_is_not_ready() {
    let server = TestServer::start().await;
    for path in ["/livez", "/readyz", "/healthz"] {
        assert_eq!(get(server.address, path).await.0, StatusCode::OK, "{path}");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("metadata.sqlite");
    let open: two_servers::Open = Arc::new(move || Box::new(Sqlite::open(&path).unwrap()));
    let store = storage::open(&format!("file:{}", folder.path().display())).unwrap();
    let away = Faulty::new(store, |_: &Call<'_>| Fault::ErrorBefore);
    let address = two_servers::start(&open, Arc::new(away)).await;
    for path in ["/readyz", "/healthz"] {
        assert_eq!(get(address, path).await.0, StatusCode::SERVICE_UNAVAILABLE, "{path}");
    }
    assert_eq!(get(address, "/livez").await.0, StatusCode::OK);
}

#[expect(clippy::disallowed_methods, reason = "the test plays the administrator")]
fn rename(from: &Path, to: &Path) {
    std::fs::rename(from, to).unwrap();
}

#[expect(clippy::disallowed_methods, reason = "the test plays the administrator")]
fn lines(path: &Path) -> Vec<Value> {
    let text = String::from_utf8(std::fs::read(path).unwrap()).unwrap();
    assert!(!text.contains(PASSWORD) && !text.contains("hunter2"), "{text}");
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn sign_ins_that_are_not_listened_to_are_not_noted() {
    let (server, path) = TestServer::start_auditing_while_time_stands().await;
    let mut refused = 0;
    while server.login("ada", "wrong").await.0 == StatusCode::UNAUTHORIZED {
        refused += 1;
    }
    for _ in 0..20 {
        assert_eq!(server.login("ada", "wrong").await.0, StatusCode::TOO_MANY_REQUESTS);
    }
    assert_eq!(lines(&path).len(), refused);
}

#[tokio::test]
async fn what_a_device_tries_too_often_is_counted_and_not_noted() {
    let watch = free_address();
    let stopped = TestServer::start().await.stop().await;
    let path = stopped.database().with_file_name("audit.log");
    let server = TestServer::start_again_while_time_stands(&stopped, |options| {
        (options.metrics_listen, options.audit_log) = (Some(watch), Some(path.clone()));
    });
    let server = server.await;
    let device = server.device("ada").await;
    let ask = async |path: &str, body: &Value| {
        device.request(Method::POST, path).json(body).send().await.unwrap().status()
    };
    let password = json!({ "password": "wrong", "new_password": "new" });
    for _ in 0..10 {
        assert_eq!(ask("/account/totp", &password).await, StatusCode::UNAUTHORIZED);
    }
    let before = lines(&path).len();
    let (begin, _) = begin_change("wrong", "new");
    for (path, body) in [
        ("/account/totp", &password),
        ("/account/password", &password),
        ("/account/password/begin", &begin),
        ("/account/totp/confirm", &json!({ "code": "123456" })),
        ("/account/totp/disable", &json!({ "code": "123456" })),
    ] {
        assert_eq!(ask(path, body).await, StatusCode::TOO_MANY_REQUESTS, "{path}");
    }
    assert_eq!((before, lines(&path).len()), (11, 11));
    let (_, metrics) = get(watch, "/metrics").await;
    assert_eq!(value(&metrics, "syncline_logins_refused_total"), Some(5), "{metrics}");
}

#[tokio::test]
async fn the_audit_log_says_who_was_let_in_refused_and_revoked_and_no_secret() {
    let stopped = TestServer::start().await.stop().await;
    let path: PathBuf = stopped.database().with_file_name("audit.log");
    let server =
        TestServer::start_again(&stopped, |options| options.audit_log = Some(path.clone()));
    let server = server.await.unwrap();
    let (one, two) = (server.device("ada").await, server.device("ada").await);
    server.login("ada", "wrong").await;
    // A password in the place of the name.
    server.login("hunter2", PASSWORD).await;
    let genesis = one.create_workspace("home").await;
    let member = format!("/workspaces/{}/members/bob", genesis.workspace());
    for role in ["view", "edit"] {
        let set = one.request(Method::PUT, &member).json(&json!({ "role": role })).send();
        assert!(set.await.unwrap().status().is_success());
    }
    assert_eq!(one.status(Method::DELETE, &member, vec![]).await, StatusCode::NO_CONTENT);
    let wanted = json!({ "name": "program", "scope": "read" });
    let (_, token) =
        read_json(one.request(Method::POST, "/tokens").json(&wanted).send().await.unwrap()).await;
    let token = token["id"].as_str().unwrap().to_owned();
    let remove = format!("/tokens/{token}");
    assert_eq!(one.status(Method::DELETE, &remove, vec![]).await, StatusCode::NO_CONTENT);
    let revoke = format!("/devices/{}", two.id);
    assert_eq!(one.status(Method::DELETE, &revoke, vec![]).await, StatusCode::NO_CONTENT);
    // The file may be moved away at any time.
    rename(&path, &path.with_extension("old"));
    assert_eq!(one.status(Method::POST, "/logout", vec![]).await, StatusCode::NO_CONTENT);

    let said: Vec<(String, Option<String>, Option<String>)> =
        [path.with_extension("old"), path.clone()]
            .iter()
            .flat_map(|path| lines(path))
            .map(|line| {
                let text = |field: &str| line[field].as_str().map(str::to_owned);
                assert!(line["time"].is_i64(), "{line}");
                let event = [text("event"), text("role")].into_iter().flatten().collect::<Vec<_>>();
                (event.join(" "), text("account"), text("subject"))
            })
            .collect();
    let line = |event: &str, account: Option<&str>, subject: Option<String>| {
        (event.to_owned(), account.map(str::to_owned), subject)
    };
    let wanted = [
        line("signed_in", Some("ada"), None),
        line("signed_in", Some("ada"), None),
        line("sign_in_refused", Some("ada"), None),
        line("sign_in_refused", None, None),
        line("workspace_made", None, Some(genesis.workspace().to_string())),
        line("member_set view", Some("bob"), Some(genesis.workspace().to_string())),
        line("member_set edit", Some("bob"), Some(genesis.workspace().to_string())),
        line("member_removed", Some("bob"), Some(genesis.workspace().to_string())),
        line("token_made", None, Some(token.clone())),
        line("token_revoked", None, Some(token)),
        line("device_revoked", None, Some(two.id.to_string())),
        line("signed_out", None, Some(one.id.to_string())),
    ];
    assert_eq!(said, wanted);
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    drop(server);
    let nowhere = stopped.database().join("audit.log");
    let refused = TestServer::start_again(&stopped, |options| options.audit_log = Some(nowhere));
    assert!(refused.await.is_err());
}
