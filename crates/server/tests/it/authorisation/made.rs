//! What must be there for a call, and what the call brings along.

use std::sync::Arc;

use content::WorkspaceKeys;
use content::delta::{ChunkClient, DeltaError, DeltaPart, Plain, SessionId, body_of};
use model::codec::encode_message;
use model::{Action, Change, Commit, Fence, Genesis, Head, NodeId};
use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use server::auth::totp::step_at;
use storage::ObjectKey;

use crate::exchange;
use crate::provider::grant;
use crate::scene::{SECRET, Scene, Who};
use crate::support::{
    Device, PASSWORD, SystemClock, SystemRandom, TestServer, genesis, noise, pack_id,
};

/// What addresses of files have in them.
const FILES: [&str; 16] = [
    "/files/",
    "/nodes",
    "/folders",
    "/versions/",
    "/move",
    "/copy",
    "/restore",
    "/links",
    "/chunks/",
    "/delta",
    "/archive",
    "/deleted",
    "/search",
    "/conflicts",
    "/activity",
    "/resolve",
];

const DAV_FILE: &str = "/dav/{workspace}/file";
const DAV_NEW: &str = "/dav/{workspace}/new";

const LOCK: &[u8] = br#"<lockinfo xmlns="DAV:"><lockscope><exclusive/></lockscope>
    <locktype><write/></locktype></lockinfo>"#;

const PROPPATCH: &[u8] = br#"<propertyupdate xmlns="DAV:"><set><prop>
    <getlastmodified>Sat, 21 Nov 2026 12:00:00 GMT</getlastmodified></prop></set></propertyupdate>"#;

/// The key of what devices keep for each other and a row means.
fn kept_key(what: &str) -> Option<&'static str> {
    match what {
        "of locked keys" => Some("keys/00000000000000000001"),
        "of a box of a pairing" => Some("pairing/00112233445566778899aabbccddeeff/offer"),
        _ => None,
    }
}

/// Whose envelope a call means: who has one asks for the own one.
fn envelope_key(scene: &Scene) -> String {
    let name = match scene.who {
        Who::Edit | Who::View | Who::Removed => &scene.caller_name,
        _ => &scene.guest_name,
    };
    ObjectKey::envelope(name).unwrap().to_string()
}

/// An identity, as far as a server can tell.
pub(crate) fn identity() -> Vec<u8> {
    let public = "ab".repeat(64);
    format!(r#"{{"public": "{public}", "locked": "cd"}}"#).into_bytes()
}

/// What was made for a call.
#[derive(Default)]
pub(super) struct Made {
    pack: Vec<u8>,
    page: Vec<u8>,
    node: String,
    other: String,
    lock: String,
    upload: String,
    link: String,
    exchange: Value,
    delta: Vec<u8>,
    /// A commit of the caller.
    commit: Vec<u8>,
}

impl Made {
    /// What marks the file as one side of a conflict.
    fn conflict(&self) -> Vec<u8> {
        let (node, original) = (&self.node, &self.other);
        json!({ "node": node, "version": 1, "original": original, "base": 0 })
            .to_string()
            .into_bytes()
    }

    /// Makes what a call wants to find.
    pub(super) async fn of(
        server: &TestServer,
        scene: &Scene,
        method: &Method,
        path: &str,
        what: &str,
    ) -> Self {
        let Scene { owner, home, .. } = scene;
        let mut made = Self { pack: noise(100), page: noise(100), ..Self::default() };
        let wants_object = method != Method::PUT || path.ends_with("/direct");
        if wants_object && (path.contains("{pack}") || path.contains("/objects")) {
            assert_eq!(owner.put_pack(home, &made.pack).await, StatusCode::CREATED);
            let (at, body) = (page_path(scene, &made.page), made.page.clone());
            assert_eq!(owner.status(Method::PUT, &at, body).await, StatusCode::CREATED);
        }
        if method != Method::PUT
            && let Some(key) = kept_key(what)
        {
            let at = format!("/workspaces/{}/objects/{key}", home.workspace());
            let request = owner.request(Method::PUT, &at).header("if-none-match", "*");
            let answer = request.body(b"sealed".to_vec()).send().await.unwrap();
            assert_eq!(answer.status(), StatusCode::CREATED);
        }
        if what == "of an envelope" && method != Method::PUT {
            let at = format!("/workspaces/{}/objects/{}", home.workspace(), envelope_key(scene));
            let answer = owner.status(Method::PUT, &at, b"sealed".to_vec()).await;
            assert_eq!(answer, StatusCode::CREATED);
        }
        if path == "/identity" && method == Method::GET {
            let device = if scene.who.is_of_owner() { owner } else { &scene.caller };
            let request = device.request(Method::PUT, "/identity").body(identity());
            let answer = request.header("content-type", "application/json").send().await.unwrap();
            assert_eq!(answer.status(), StatusCode::NO_CONTENT);
        }
        if what == "that the log condemns" {
            let log = owner.log(home).await;
            let fence = fence(owner, home.head(), &made.pack);
            commit_log::CommitLog::commit(&log, &fence).await.unwrap();
        }
        if path.contains("{seq}") {
            let entry = owner.commit(1, home.head());
            commit_log::CommitLog::commit(&owner.log(home).await, &entry).await.unwrap();
        }
        if path.starts_with("/dav") || FILES.iter().any(|part| path.contains(part)) {
            [made.node, made.other] = make_files(scene).await;
        }
        if path.ends_with("/resolve") {
            let at = format!("/workspaces/{}/conflicts", home.workspace());
            let request = owner.request(Method::POST, &at).body(made.conflict());
            let answer = request.header("content-type", "application/json").send().await.unwrap();
            assert_eq!(answer.status(), StatusCode::OK);
        }
        if path.contains("/delta") {
            made.delta = delta_of(home);
        }
        if path.ends_with("/log") {
            made.commit = encode_message(&match what {
                "of settings" => fence(&scene.caller, home.head(), b"nothing"),
                _ => scene.caller.commit(1, home.head()),
            });
        }
        if method.as_str() == "UNLOCK" {
            made.lock = lock_of(server, scene).await;
        }
        made.make_of_account(server, scene, path).await;
        if path.contains("{link}") {
            made.link = link_of(scene).await;
        }
        if path.contains("{upload}") {
            made.upload = upload_of(server, scene, &made.delta).await;
        }
        made
    }

    /// Makes what a call about the caller's account wants to find.
    async fn make_of_account(&mut self, server: &TestServer, scene: &Scene, path: &str) {
        if path == "/account/totp/confirm" || path == "/account/totp/disable" {
            scene.add_second_factor(server, path.ends_with("/disable"));
        }
        if path.starts_with("/account/password/") {
            scene.renew_password(server);
            self.exchange = match path.ends_with("/finish") {
                true => finish_of(&scene.caller).await,
                false => exchange::begin_change(PASSWORD, "new").0,
            };
        }
        if path.contains("{subject}") {
            scene.bind_subject(server, &scene.caller_name);
        }
    }

    /// Returns the address of a call, but for its workspace.
    pub(super) fn address(&self, scene: &Scene, method: &Method, path: &str, what: &str) -> String {
        let user = if what == "of oneself" { &scene.caller_name } else { &scene.guest_name };
        let page_key = page_path(scene, &self.page);
        let (_, page_key) = page_key.split_once("/objects/").unwrap();
        let envelope = envelope_key(scene);
        let key = match what {
            "of an envelope" => &envelope,
            _ => kept_key(what).unwrap_or(page_key),
        };
        let folder = if *method == Method::PUT { "folders/new" } else { "folders/folder" };
        path.replace("{device}", &scene.victim.to_string())
            .replace("{seq}", "1")
            .replace("{token}", &scene.token.to_string())
            .replace("{user}", user)
            .replace("{subject}", &scene.caller_name)
            .replace("{pack}", &pack_id(&self.pack).to_string())
            .replace("{*key}", key)
            .replace("{upload}", &self.upload)
            .replace("{link}", &self.link)
            .replace("/search", "/search?q=file")
            .replace("folders/{*path}", folder)
            .replace("archive/{*path}", "archive/folder")
            .replace("{*path}", "file")
            .replace("/dav/{*rest}", if method.as_str() == "MKCOL" { DAV_NEW } else { DAV_FILE })
    }

    /// Adds the headers that a call wants.
    pub(super) fn headers(&self, request: RequestBuilder, path: &str, id: &str) -> RequestBuilder {
        let request = request.header("content-type", "application/json");
        if path == "/live" {
            return request
                .header("connection", "upgrade")
                .header("upgrade", "websocket")
                .header("sec-websocket-version", "13")
                .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
                .header("syncline-incarnation", "0123456789abcdef");
        }
        if path.starts_with("/dav") {
            return request
                .header("depth", "0")
                .header("lock-token", &self.lock)
                .header("destination", format!("/dav/{id}/elsewhere"));
        }
        if path.contains("/objects/keys/") {
            return request.header("if-none-match", "*");
        }
        match path.contains("/uploads/") {
            true => request.header("upload-offset", "0"),
            false => request,
        }
    }

    /// Returns what a call brings along.
    pub(super) fn body(&self, method: &Method, path: &str) -> Vec<u8> {
        match (method.as_str(), path) {
            ("PATCH", "/devices/{device}") => br#"{"name": "new name"}"#.to_vec(),
            ("POST", "/account/password") => {
                format!(r#"{{"password": "{PASSWORD}", "new_password": "new"}}"#).into_bytes()
            }
            ("POST", "/account/password/begin" | "/account/password/finish") => {
                self.exchange.to_string().into_bytes()
            }
            ("POST", "/account/totp") => format!(r#"{{"password": "{PASSWORD}"}}"#).into_bytes(),
            ("POST", "/account/totp/confirm" | "/account/totp/disable") => {
                let code = SECRET.code(step_at(SystemClock::start().now().seconds)).to_text();
                format!(r#"{{"code": "{code}"}}"#).into_bytes()
            }
            ("POST", "/account/oidc") => {
                let mut grant = grant(json!({ "sub": pack_id(&noise(9)).to_string() }));
                grant["password"] = json!(PASSWORD);
                grant.to_string().into_bytes()
            }
            ("POST", "/tokens") => br#"{"name": "program", "scope": "read"}"#.to_vec(),
            ("PUT", "/identity") => identity(),
            ("POST", "/workspaces") => encode_message(&genesis("new")),
            ("PUT", "/workspaces/{workspace}/members/{user}") => br#"{"role": "view"}"#.to_vec(),
            ("PUT", "/workspaces/{workspace}/packs/{pack}") => self.pack.clone(),
            ("POST" | "PUT", "/workspaces/{workspace}/packs/{pack}/direct") => {
                br#"{"length": 100}"#.to_vec()
            }
            ("PUT", "/workspaces/{workspace}/objects/{*key}") => self.page.clone(),
            ("POST", "/workspaces/{workspace}/move" | "/workspaces/{workspace}/copy") => {
                br#"{"from": "file", "to": "elsewhere"}"#.to_vec()
            }
            ("POST", "/workspaces/{workspace}/links") => br#"{"path": "file"}"#.to_vec(),
            ("POST", "/workspaces/{workspace}/uploads") => br#"{"path": "piecewise"}"#.to_vec(),
            ("POST", "/workspaces/{workspace}/restore") => {
                let node = &self.node;
                format!(r#"{{"node": "{node}", "version": 1}}"#).into_bytes()
            }
            ("POST", "/workspaces/{workspace}/conflicts") => self.conflict(),
            ("POST", "/workspaces/{workspace}/resolve") => {
                let node = &self.node;
                format!(r#"{{"node": "{node}", "version": 2, "keep": "both"}}"#).into_bytes()
            }
            ("POST", "/workspaces/{workspace}/delta/{*path}") => self.delta.clone(),
            ("POST", "/workspaces/{workspace}/log") => self.commit.clone(),
            ("LOCK", "/dav/{*rest}") => LOCK.to_vec(),
            ("PROPPATCH", "/dav/{*rest}") => PROPPATCH.to_vec(),
            _ => Vec::new(),
        }
    }
}

/// Makes a file and a folder, and returns which nodes they are.
async fn make_files(scene: &Scene) -> [String; 2] {
    let Scene { owner, home, .. } = scene;
    let root = format!("/workspaces/{}", home.workspace());
    let (file, folder) = (format!("{root}/files/file"), format!("{root}/folders/folder"));
    let made = owner.status(Method::PUT, &file, b"content".to_vec()).await;
    assert_eq!(made, StatusCode::CREATED);
    assert_eq!(owner.status(Method::PUT, &folder, Vec::new()).await, StatusCode::CREATED);
    let mut nodes = [const { String::new() }; 2];
    for (node, name) in nodes.iter_mut().zip(["file", "folder"]) {
        let (_, found) = owner.get(&format!("{root}/nodes/{name}")).await;
        *node = found["id"].as_str().expect("a node has an id").to_owned();
    }
    nodes
}

/// Makes a delta from the file to another content.
fn delta_of(home: &Genesis) -> Vec<u8> {
    let keys = WorkspaceKeys::open(home, None, Arc::new(SystemRandom)).unwrap();
    let session = SessionId::from_bytes([1; 16]);
    let base = ChunkClient::survey(keys.content(), 16 << 10, &mut &b"content"[..]).unwrap();
    let mut client = ChunkClient::new(keys.content(), home.workspace(), session);
    let mut parts = Vec::new();
    let frame = |part: DeltaPart| {
        parts.push(part.into_message(Plain::of(home).unwrap())?);
        Ok::<_, DeltaError>(())
    };
    client.send_delta(&base, None, &mut &b"another one"[..], frame).unwrap();
    body_of(&parts)
}

/// Lets the caller lock the file, and returns what the lock is called, or something else where it cannot.
async fn lock_of(server: &TestServer, scene: &Scene) -> String {
    let path = DAV_FILE.replace("{workspace}", &scene.home.workspace().to_string());
    let method = Method::from_bytes(b"LOCK").unwrap();
    let request = scene.caller.http.request(method, server.url(&path)).body(LOCK);
    let answer = request.bearer_auth(&scene.caller.token).send().await.unwrap();
    let token = answer.headers().get("lock-token").map(|token| token.to_str().unwrap().to_owned());
    token.unwrap_or_else(|| "<urn:uuid:none>".to_owned())
}

/// Lets the owner make a link to the file, and returns its id.
async fn link_of(scene: &Scene) -> String {
    let path = format!("/workspaces/{}/links", scene.home.workspace());
    let request = scene.owner.request(Method::POST, &path);
    let answer = request.json(&serde_json::json!({ "path": "file" })).send().await.unwrap();
    let made: Value = answer.json().await.unwrap();
    made["id"].as_str().expect("a link has an id").to_owned()
}

/// Lets the caller begin an upload, of a delta where there is one, and returns its id, or another one where it cannot.
async fn upload_of(server: &TestServer, scene: &Scene, delta: &[u8]) -> String {
    let Scene { caller, home, .. } = scene;
    let path = format!("/api/v1/workspaces/{}/uploads", home.workspace());
    let name = if delta.is_empty() { "piecewise" } else { "file" };
    let request = caller.http.post(server.url(&path)).bearer_auth(&caller.token);
    let answer = request.json(&serde_json::json!({ "path": name })).send().await.unwrap();
    let begun: Value = answer.json().await.unwrap();
    let Some(id) = begun["id"].as_str() else { return "ab".repeat(16) };
    if !delta.is_empty() {
        let request = caller.http.patch(server.url(&format!("{path}/{id}")));
        let request = request.bearer_auth(&caller.token).header("upload-offset", "0");
        let taken = request.body(delta.to_vec()).send().await.unwrap();
        assert_eq!(taken.status(), StatusCode::OK);
    }
    id.to_owned()
}

fn page_path(scene: &Scene, page: &[u8]) -> String {
    let hex = pack_id(page).to_string();
    format!("/workspaces/{}/objects/pages/{}/{hex}", scene.home.workspace(), &hex[..2])
}

/// A commit that condemns a pack.
pub(super) fn fence(device: &Device, seen: Head, pack: &[u8]) -> Commit {
    let payload = encode_message(&Fence { condemned: vec![pack_id(pack)], dropped: vec![] });
    let change = Change { node: NodeId::FENCE, base: 0, action: Action::Put(payload) };
    Commit { changes: vec![change], ..device.commit(1, seen) }
}

/// What ends a change of the caller's password; something like it, where the caller may not even begin.
async fn finish_of(caller: &Device) -> Value {
    let (begin, change) = exchange::begin_change(PASSWORD, "new");
    let (status, begun) = exchange::post(caller, "/account/password/begin", &begin).await;
    match status.is_success() {
        true => change.finish(&begun),
        false => json!({ "session": "", "message": "", "new_message": "" }),
    }
}
