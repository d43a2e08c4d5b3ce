//! Plays the tables of `docs/design/authorisation.md` at the doors of a real server: every call as everybody.

use std::collections::BTreeSet;
use std::path::Path;

use commit_log::CommitLogError;
use commit_log::served::Connection;
use model::PageId;
use model::checkpoint::Checkpoint;
use model::wire::{RefusalKind, Reply, Request};
use reqwest::{Method, StatusCode};
use serde_json::Value;
use server::oidc::Newcomers;

use crate::exchange;
use crate::join;
use crate::provider::{Provider, grant};
use crate::scene::{Scene, Who, prepare};
use crate::support::{Device, PASSWORD, TestServer, genesis, http, read_json};

#[path = "authorisation/made.rs"]
mod made;

use made::{Made, fence};

const DOCUMENT: &str = include_str!("../../../../docs/design/authorisation.md");

/// What a caller hears, in the words of the document.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Heard {
    Yes,
    Nothing,
    No,
    Hidden,
    SignIn,
    Other(String),
}

impl Heard {
    fn of_word(word: &str) -> Self {
        match word {
            "yes" => Self::Yes,
            "nothing" => Self::Nothing,
            "no" => Self::No,
            "hidden" => Self::Hidden,
            "sign in" => Self::SignIn,
            other => panic!("'{other}' stands in no cell"),
        }
    }
}

/// A row of the table: a call, what is special about it, and what everybody hears.
struct Row {
    call: &'static str,
    what: &'static str,
    cells: Vec<(Who, Heard)>,
}

fn cells_of(line: &'static str) -> Vec<&'static str> {
    line.trim_matches('|').split('|').map(str::trim).collect()
}

fn table() -> Vec<Row> {
    let mut lines = DOCUMENT.lines().skip_while(|line| !line.starts_with("| call |"));
    let names = cells_of(lines.next().expect("there is a table of calls"));
    let columns: Vec<Who> = names[1..].iter().map(|name| Who::of_name(name)).collect();
    let rows = lines.skip(1).take_while(|line| line.starts_with('|'));
    rows.map(|line| {
        let words = cells_of(line);
        let (_, call) = words[0].split_once('`').expect("a call stands in backticks");
        let (call, what) = call.split_once('`').expect("they are closed");
        let heard = words[1..].iter().map(|word| Heard::of_word(word));
        assert_eq!(words.len(), names.len(), "{line}");
        Row { call, what: what.trim(), cells: columns.iter().copied().zip(heard).collect() }
    })
    .collect()
}

/// The calls that the document lets everybody make.
fn open_calls() -> Vec<&'static str> {
    let lines = DOCUMENT.lines().filter_map(|line| line.strip_prefix("- `"));
    lines.map(|line| line.split_once('`').expect("it is closed").0).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_call_answers_everybody_as_the_table_says() {
    let provider = Provider::start().await;
    let server = provider.server(Newcomers::Refused).await;
    let (mut cells, mut wrong) = (0, Vec::new());
    for row in table() {
        let who = row.cells.iter().map(|cell| cell.0).collect();
        for (scene, (who, expected)) in prepare(&server, who).into_iter().zip(&row.cells) {
            let heard = play(&server, &scene, row.call, row.what).await;
            if heard != *expected {
                let Row { call, what, .. } = row;
                wrong.push(format!("{call} {what} by {who:?}: {heard:?}, not {expected:?}"));
            }
            cells += 1;
        }
    }
    assert!(wrong.is_empty(), "{} of {cells} are wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(cells >= 400, "{cells}");
}

#[tokio::test]
async fn every_call_has_a_row_and_every_row_a_call() {
    let server = TestServer::start().await;
    let mut calls = BTreeSet::new();
    for path in paths_in_sources() {
        let address = match path.as_str() {
            // At an address of its own.
            "/metrics" => {
                calls.insert(format!("GET {path}"));
                continue;
            }
            path if path.starts_with("/s/") => {
                server.url(&path.replace("{secret}", "secret").replace("{*path}", "path"))
            }
            "/dav/{*rest}" | "/healthz" | "/livez" | "/readyz" | "/" | "/icon.svg"
            | "/files.txt" | "/assets/{*path}" => server.url(&path.replace("{*path}", "path")),
            path => server.url(&format!("/api/v1{}", path.replace(['{', '}', '*'], ""))),
        };
        // WebDAV has one address for all methods, and says itself which they are.
        let (method, status) = match path.starts_with("/dav") {
            true => (Method::OPTIONS, StatusCode::OK),
            false => (Method::from_bytes(b"PROBE").unwrap(), StatusCode::METHOD_NOT_ALLOWED),
        };
        let answer = http().request(method, address).send().await.unwrap();
        assert_eq!(answer.status(), status, "{path}");
        let allowed = answer.headers()["allow"].to_str().unwrap().to_owned();
        // What answers GET answers HEAD by itself.
        let methods = allowed.split(',').map(str::trim).filter(|method| *method != "HEAD");
        calls.extend(methods.map(|method| format!("{method} {path}")));
    }
    calls.extend(["commit", "head", "entries", "subscribe"].map(str::to_owned));
    calls.extend(["checkpoint", "publish checkpoint", "genesis", "in sync"].map(str::to_owned));
    let rows = table().into_iter().map(|row| row.call).chain(open_calls());
    let rows = rows.filter(|call| !call.starts_with("HEAD ")).map(str::to_owned);
    assert_eq!(rows.collect::<BTreeSet<_>>(), calls);
}

/// Returns the addresses that the doors have in their sources.
fn paths_in_sources() -> BTreeSet<String> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut paths, mut waiting) = (BTreeSet::new(), vec![sources]);
    while let Some(folder) = waiting.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                waiting.push(path);
                continue;
            }
            let text = std::fs::read_to_string(path).unwrap();
            for rest in text.split(".route(").skip(1) {
                let (_, rest) = rest.split_once('"').expect("an address is a literal");
                paths.insert(rest.split_once('"').expect("it is closed").0.to_owned());
            }
        }
    }
    paths
}

/// Makes a call in a scene, after the caller has lost what it is to lose.
async fn play(server: &TestServer, scene: &Scene, call: &str, what: &str) -> Heard {
    match call.split_once(' ') {
        Some((method, path)) if path.starts_with('/') => {
            let method: Method = method.parse().unwrap();
            at_http(server, scene, &method, path, what).await
        }
        _ => at_live_door(server, scene, call, what).await,
    }
}

async fn at_http(
    server: &TestServer,
    scene: &Scene,
    method: &Method,
    path: &str,
    what: &str,
) -> Heard {
    let made = Made::of(server, scene, method, path, what).await;
    let body = made.body(method, path);
    let path = made.address(scene, method, path, what);
    scene.take_away(server);

    let id = scene.home.workspace().to_string();
    let ask = async |id: &str| {
        let path = path.replace("{workspace}", id);
        let url = match path.starts_with("/dav") {
            true => server.url(&path),
            false => server.url(&format!("/api/v1{path}")),
        };
        let request = scene.caller.http.request(method.clone(), url).body(body.clone());
        let mut request = made.headers(request, &path, id);
        if scene.who != Who::Nobody {
            request = request.bearer_auth(&scene.caller.token);
        }
        let answer = request.send().await.unwrap();
        let status = answer.status();
        // What goes on without end is not read to its end.
        let is_stream = path.ends_with("/events") && status.is_success();
        if is_stream || status == StatusCode::SWITCHING_PROTOCOLS {
            return (StatusCode::OK, String::new());
        }
        (status, answer.text().await.unwrap())
    };
    let (status, text) = ask(&id).await;
    let code = serde_json::from_str(&text).unwrap_or(Value::Null)["code"].clone();
    let has_code = |word: &str| *method == Method::HEAD || code == word;
    match status {
        StatusCode::NOT_FOUND if has_code("not_found") => {
            // A workspace that does not exist is not there in the same words.
            let other = genesis("other").workspace().to_string();
            let of_other = ask(&other).await;
            assert_eq!(of_other, (status, text.replace(&id, &other)), "{method} {path}");
            Heard::Hidden
        }
        StatusCode::FORBIDDEN if has_code("forbidden") => Heard::No,
        StatusCode::UNAUTHORIZED if has_code("not_signed_in") => Heard::SignIn,
        status if status.is_success() && path == "/workspaces" && *method == Method::GET => {
            if text.contains(&id) { Heard::Yes } else { Heard::Nothing }
        }
        status if status.is_success() => Heard::Yes,
        status => Heard::Other(format!("{status}: {text}")),
    }
}

async fn at_live_door(server: &TestServer, scene: &Scene, call: &str, what: &str) -> Heard {
    let Scene { caller, home, .. } = scene;
    let device = match scene.who {
        Who::Nobody => Device { token: "ab".repeat(32), ..caller.clone() },
        _ => caller.clone(),
    };
    let connection = device.connection();
    // The connection is there before anything is taken away.
    let _ = connection.call(home.workspace(), Request::Head).await;
    scene.take_away(server);
    let request = match (call, what) {
        ("commit", "of files") => Request::Commit(caller.commit(1, home.head())),
        ("commit", "of settings") => Request::Commit(fence(caller, home.head(), b"nothing")),
        ("head", _) => Request::Head,
        ("entries", _) => Request::Entries { since: 0, length_max: 1000 },
        ("subscribe", _) => Request::Subscribe { since: 0 },
        ("checkpoint", _) => Request::Checkpoint,
        ("publish checkpoint", _) => Request::PublishCheckpoint(Checkpoint {
            head: home.head(),
            nodes: PageId::from_bytes([1; 32]),
            node_count: 0,
            packs: PageId::from_bytes([2; 32]),
            fence: 0,
            has_mounts: false,
            has_deltas: false,
            seal: None,
        }),
        ("genesis", _) => Request::Genesis,
        ("in sync", _) => Request::InSync,
        other => panic!("there is no call {other:?}"),
    };
    assert_eq!(name_of(&request), call);
    let id = home.workspace();
    match connection.call(id, request.clone()).await {
        Ok(Reply::Refused(refusal)) => match refusal.kind {
            RefusalKind::Forbidden => Heard::SignIn,
            RefusalKind::NotAllowed => Heard::No,
            RefusalKind::NotFound => {
                let other = genesis("other").workspace();
                let of_other = connection.call(other, request).await;
                let Ok(Reply::Refused(of_other)) = of_other else { panic!("{of_other:?}") };
                assert_eq!(
                    of_other.message.replace(&other.to_string(), &id.to_string()),
                    refusal.message
                );
                Heard::Hidden
            }
            kind => Heard::Other(format!("{kind:?}: {}", refusal.message)),
        },
        Ok(_) => Heard::Yes,
        Err(CommitLogError::Refused(refusal)) if refusal.kind == RefusalKind::Forbidden => {
            Heard::SignIn
        }
        Err(error) => Heard::Other(error.to_string()),
    }
}

/// Names a request as the document does. A new one does not compile here until it has a name, and a row.
fn name_of(request: &Request) -> &'static str {
    match request {
        Request::Commit(_) => "commit",
        Request::Head => "head",
        Request::Entries { .. } => "entries",
        Request::Subscribe { .. } => "subscribe",
        Request::Checkpoint => "checkpoint",
        Request::PublishCheckpoint(_) => "publish checkpoint",
        Request::Genesis => "genesis",
        Request::InSync => "in sync",
    }
}

#[tokio::test]
async fn only_what_must_be_is_open_to_everybody() {
    let server = TestServer::start().await;
    for call in open_calls() {
        match call {
            "GET /healthz" | "GET /livez" | "GET /readyz" => {
                let health = http().get(server.url(&call[4..])).send().await.unwrap();
                assert_eq!(health.status(), StatusCode::OK);
            }
            "GET /" | "GET /icon.svg" | "GET /files.txt" | "GET /assets/{*path}" => {
                // Whether the app was built or not.
                let asked = http().get(server.url(&call[4..].replace("{*path}", "none.js")));
                let answer = asked.send().await.unwrap();
                let statuses = [StatusCode::OK, StatusCode::NOT_FOUND];
                assert!(statuses.contains(&answer.status()), "{call}: {answer:?}");
                assert!(answer.headers().contains_key("content-security-policy"), "{call}");
            }
            "GET /metrics" => {
                let metrics = http().get(server.url("/metrics")).send().await.unwrap();
                assert_eq!(metrics.status(), StatusCode::NOT_FOUND);
            }
            "OPTIONS /dav/{*rest}" => {
                let asked = http().request(Method::OPTIONS, server.url("/dav/nothing"));
                assert_eq!(asked.send().await.unwrap().status(), StatusCode::OK);
            }
            call if call.contains(" /s/{secret}") => {
                let (method, path) = call.split_once(' ').unwrap();
                let path = path.replace("{secret}", &"A".repeat(43)).replace("{*path}", "file");
                let asked = http().request(method.parse().unwrap(), server.url(&path));
                let kind = ("content-type", "application/x-www-form-urlencoded");
                let asked = asked.header(kind.0, kind.1).body("password=x").send().await.unwrap();
                assert_eq!(asked.status(), StatusCode::NOT_FOUND, "{call}");
                assert!(asked.text().await.unwrap().contains("Nothing is behind"), "{call}");
            }
            call if call.contains(" /public/{secret}") => {
                let (method, path) = call.split_once(' ').unwrap();
                let path = path.replace("{secret}", &"A".repeat(43)).replace("{*path}", "file");
                let url = server.url(&format!("/api/v1{path}"));
                let asked = http().request(method.parse().unwrap(), url);
                let asked = asked.json(&serde_json::json!({ "password": "x" })).send().await;
                let (status, problem) = read_json(asked.unwrap()).await;
                let expected = (StatusCode::NOT_FOUND, &"link_gone".into());
                assert_eq!((status, &problem["code"]), expected);
            }
            "GET /sign-in/oidc" => {
                let asked = http().get(server.url("/api/v1/sign-in/oidc")).send().await;
                let (status, problem) = read_json(asked.unwrap()).await;
                assert_eq!(
                    (status, &problem["code"]),
                    (StatusCode::NOT_FOUND, &"not_found".into())
                );
            }
            "POST /sign-in/oidc" => {
                let mut request = grant(serde_json::json!({ "sub": "1" }));
                request["device_name"] = "laptop".into();
                let asked = http().post(server.url("/api/v1/sign-in/oidc")).json(&request);
                let (status, problem) = read_json(asked.send().await.unwrap()).await;
                assert_eq!(
                    (status, &problem["code"]),
                    (StatusCode::NOT_FOUND, &"not_found".into())
                );
            }
            "POST /login" => {
                let (status, problem) = server.login("ada", "wrong").await;
                assert_eq!(status, StatusCode::UNAUTHORIZED);
                assert_eq!(problem["code"], "wrong_password");
            }
            call if call.starts_with("POST /join") => check_join(&server, call).await,
            "POST /login/begin" | "POST /login/finish" => check_exchange(&server, call).await,
            other => panic!("{other} is open to everybody"),
        }
    }
}

/// Who was not invited makes no account.
async fn check_join(server: &TestServer, call: &str) {
    let url = server.url(&format!("/api/v1{}", &call[5..]));
    let request = serde_json::json!({
        "secret": "A".repeat(43), "user": "eve", "message": join::record(), "device_name": "browser",
    });
    let (status, problem) = read_json(http().post(url).json(&request).send().await.unwrap()).await;
    let expected = (StatusCode::NOT_FOUND, &"invitation_unknown".into());
    assert_eq!((status, &problem["code"]), expected, "{call}");
}

/// Who is unknown begins to sign in like who is known, and never ends it.
async fn check_exchange(server: &TestServer, call: &str) {
    let (status, _, _) = exchange::begin(server, "nobody", PASSWORD).await;
    assert_eq!(status, StatusCode::OK, "{call}");
    let (status, problem) = exchange::sign_in(server, "nobody", PASSWORD).await;
    assert_eq!((status, &problem["code"]), (StatusCode::UNAUTHORIZED, &"wrong_password".into()));
}

#[tokio::test]
async fn unknown_addresses_are_problems() {
    let server = TestServer::start().await;
    for path in ["/nothing", "/api/v1", "/api/v2/whoami", "/api/v1/workspaces/a/b/c"] {
        let response = http().get(server.url(path)).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::NOT_FOUND, "{path}");
        assert_eq!(response.headers()["content-type"], "application/problem+json");
        assert_eq!(response.headers()["x-content-type-options"], "nosniff");
    }
    let long = format!("/api/v1/workspaces/{}", "x".repeat(9000));
    let response = http().get(server.url(&long)).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::URI_TOO_LONG);
    let request = http().get(server.url("/healthz")).header("x-long", "y".repeat(17_000));
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
}
