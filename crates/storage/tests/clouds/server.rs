//! A server on loopback that answers as a service does, and notes what no document allows.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, Response, StatusCode};
use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};
use storage::credentials::TOKEN_FILE;
use storage::{Credentials, ObjectStore, Opening, open_with};
use tokio::net::TcpListener;
use tokio::sync::Notify;

use crate::disk::Disk;

/// The status of an answer that is not given yet.
const LATER: u16 = 0;

/// What the user registered.
pub(crate) const CLIENT_ID: &str = "our-program";
pub(crate) const CLIENT_SECRET: &str = "0pen-sesame";

/// A request.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: BTreeMap<String, String>,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// An answer.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Bytes,
}

/// Why no answer can be given: a request that the documents of the service do not have.
pub(crate) type Violation = String;

/// What one service does, once the request is signed.
pub(crate) trait Service: Send + Sized + 'static {
    const SCHEME: &'static str;

    /// Whether the request needs no token, because its address is the secret.
    fn is_open(&self, _asked: &Asked) -> bool {
        false
    }

    fn answer(&mut self, account: &mut Account, asked: &Asked) -> Result<Reply, Violation>;

    /// How the service says that a token has ended.
    fn expired(&self) -> Reply {
        Reply::json(401, &json!({"error": "invalid_token"}))
    }

    /// Where the token of a request is.
    fn token(asked: &Asked) -> Option<String> {
        asked.header("authorization")?.strip_prefix("Bearer ").map(str::to_owned)
    }
}

/// What services have in common.
#[derive(Debug, Default)]
pub(crate) struct Account {
    pub(crate) disk: Disk,
    /// Files in one page of a list.
    pub(crate) page: usize,
    /// After how many requests a token ends; never where this is 0.
    pub(crate) token_life: u32,
    /// Every which request is too many; none where this is 0.
    pub(crate) too_many: u32,
    /// Whether who waits for something is told at once that nothing came.
    pub(crate) never_waits: bool,
    /// For how many seconds who has waited is to stay away.
    pub(crate) stay_away_s: Option<u64>,
    /// Every which upload of a part breaks off after half of it.
    pub(crate) broken_part: u32,
    pub(crate) asked: Vec<Asked>,
    pub(crate) violations: Vec<Violation>,
    pub(crate) renewals: u32,
    pub(crate) refusals: u32,
    pub(crate) breaks: u32,
    sessions: Vec<Session>,
    number: u32,
    signed: u32,
    /// What waits for a person: device codes, and whether the person has said yes.
    pub(crate) pending: BTreeMap<String, Person>,
    /// How often a person is asked for in vain, and how long to wait in between.
    pub(crate) person_types: u32,
    pub(crate) interval_s: u32,
    /// What a browser was sent away with: codes, and the proof that must come with them.
    pub(crate) codes: BTreeMap<String, BTreeMap<String, String>>,
}

/// What one device has.
#[derive(Debug, Default)]
struct Session {
    token: Option<String>,
    token_uses: u32,
    refresh_token: String,
}

/// What a person is about to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Person {
    Types(u32),
    SaysNo,
}

/// A server that runs until the test ends.
pub(crate) struct Cloud<S> {
    pub(crate) endpoint: String,
    state: Arc<Mutex<(S, Account)>>,
    pub(crate) folder: tempfile::TempDir,
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Returns a field of the query, which must be there.
    pub(crate) fn query(&self, name: &str) -> Result<&str, Violation> {
        let value = self.query.get(name).map(String::as_str);
        value.ok_or_else(|| format!("no '{name}' in the query of {} {}", self.method, self.path))
    }

    pub(crate) fn json(&self) -> Result<Value, Violation> {
        match self.header("content-type") {
            Some(kind) if kind.starts_with("application/json") => {}
            kind => return Err(format!("{kind:?} is no JSON in {}", self.path)),
        }
        serde_json::from_slice(&self.body).map_err(|error| error.to_string())
    }

    pub(crate) fn form(&self) -> BTreeMap<String, String> {
        url::form_urlencoded::parse(&self.body).into_owned().collect()
    }

    /// Cuts content as the header `Range` asks.
    pub(crate) fn cut(&self, content: &Bytes) -> Reply {
        let Some(range) = self.header("range") else {
            return Reply { status: 200, headers: Vec::new(), body: content.clone() };
        };
        let (start, last) = range.strip_prefix("bytes=").unwrap().split_once('-').unwrap();
        let start: usize = start.parse().unwrap();
        let end = last.parse::<usize>().unwrap_or(usize::MAX).saturating_add(1);
        let end = end.min(content.len());
        if start >= end {
            let header = ("content-range", format!("bytes */{}", content.len()));
            return Reply { status: 416, headers: vec![header], body: Bytes::new() };
        }
        let header = ("content-range", format!("bytes {start}-{}/{}", end - 1, content.len()));
        Reply { status: 206, headers: vec![header], body: content.slice(start..end) }
    }
}

impl Reply {
    pub(crate) fn json(status: u16, value: &Value) -> Self {
        let headers = vec![("content-type", "application/json".to_owned())];
        Self { status, headers, body: value.to_string().into() }
    }

    /// The request is answered when something has changed: then it is looked at again.
    pub(crate) fn later() -> Self {
        Self::empty(LATER)
    }

    pub(crate) fn empty(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Bytes::new() }
    }

    pub(crate) fn to(target: String) -> Self {
        Self { status: 302, headers: vec![("location", target)], body: Bytes::new() }
    }
}

impl Account {
    /// Gives new tokens to a device that is known, whose old ones end, or to a new one.
    fn tokens(&mut self, known: Option<usize>) -> Reply {
        self.number += 1;
        let token = format!("access-{}", self.number);
        let refresh_token = format!("refresh-{}", self.number);
        let answer = json!({
            "access_token": token,
            "refresh_token": refresh_token,
            "expires_in": 3600,
            "token_type": "bearer",
        });
        let session = Session { token: Some(token), token_uses: 0, refresh_token };
        match known {
            Some(known) => self.sessions[known] = session,
            None => self.sessions.push(session),
        }
        Reply::json(200, &answer)
    }

    /// Answers a question for tokens.
    fn give_tokens(&mut self, form: &BTreeMap<String, String>) -> Result<Reply, Violation> {
        let field = |name: &str| form.get(name).cloned().ok_or(format!("no '{name}' for a token"));
        let error = |word: &str| Ok(Reply::json(400, &json!({"error": word})));
        if field("client_id")? != CLIENT_ID {
            return error("invalid_client");
        }
        match field("grant_type")?.as_str() {
            "refresh_token" => {
                let given = field("refresh_token")?;
                let mut sessions = self.sessions.iter();
                let Some(known) = sessions.position(|session| session.refresh_token == given)
                else {
                    return error("invalid_grant");
                };
                self.renewals += 1;
                Ok(self.tokens(Some(known)))
            }
            "urn:ietf:params:oauth:grant-type:device_code" | "device_token" => {
                let code = field("device_code").or_else(|_| field("code"))?;
                match self.pending.get_mut(&code) {
                    None => error("expired_token"),
                    Some(Person::SaysNo) => error("access_denied"),
                    Some(Person::Types(0)) => {
                        self.pending.remove(&code);
                        Ok(self.tokens(None))
                    }
                    Some(Person::Types(left)) => {
                        *left -= 1;
                        error(if *left == 1 { "slow_down" } else { "authorization_pending" })
                    }
                }
            }
            "authorization_code" => {
                let Some(asked) = self.codes.remove(&field("code")?) else {
                    return error("invalid_grant");
                };
                let (verifier, redirect) = (field("code_verifier")?, field("redirect_uri")?);
                if challenge_of(&verifier) != asked["code_challenge"]
                    || redirect != asked["redirect_uri"]
                {
                    return error("invalid_grant");
                }
                Ok(self.tokens(None))
            }
            other => Err(format!("an unknown grant {other}")),
        }
    }

    /// Says whether a token is good, and uses it once.
    fn admits(&mut self, token: Option<&str>) -> bool {
        let life = self.token_life;
        let mut sessions = self.sessions.iter_mut();
        let session = sessions.find(|session| token.is_some() && session.token.as_deref() == token);
        let Some(session) = session else { return false };
        session.token_uses += 1;
        if life > 0 && session.token_uses > life {
            session.token = None;
        }
        session.token.is_some()
    }

    fn is_too_many(&mut self) -> bool {
        self.signed += 1;
        let is_too_many = self.too_many > 0 && self.signed.is_multiple_of(self.too_many);
        self.refusals += u32::from(is_too_many);
        is_too_many
    }

    /// Tells whether the part of an upload that comes now breaks off.
    pub(crate) fn breaks(&mut self, part: &mut u32) -> bool {
        *part += 1;
        let breaks = self.broken_part > 0 && part.is_multiple_of(self.broken_part);
        self.breaks += u32::from(breaks);
        breaks
    }
}

/// The proof of RFC 7636, computed as a service does.
fn challenge_of(verifier: &str) -> String {
    use base64::Engine;
    let digest = ring::digest::digest(&ring::digest::SHA256, verifier.as_bytes());
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(digest)
}

impl<S: Service> Cloud<S> {
    /// Starts a service with an empty account, to which somebody has signed in.
    pub(crate) async fn start(service: S) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        Self::serve_on(service, listener, endpoint).await
    }

    /// As [`Self::start`], on a listener of whatever kind.
    pub(crate) async fn serve_on<L>(service: S, listener: L, endpoint: String) -> Self
    where
        L: axum::serve::Listener,
        L::Addr: std::fmt::Debug,
    {
        let account = Account { page: 3, person_types: 3, interval_s: 5, ..Account::default() };
        let state = Arc::new(Mutex::new((service, account)));
        let shared = Arc::clone(&state);
        let router = Router::new().fallback(move |request: Request| {
            let shared = Arc::clone(&shared);
            async move { serve(&shared, request).await }
        });
        tokio::spawn(async move { axum::serve(listener, router).await });
        let cloud = Self { endpoint, state, folder: tempfile::tempdir().unwrap() };
        cloud.sign_in();
        cloud
    }

    /// The service, while no request is answered.
    pub(crate) fn service(&self) -> parking_lot::MappedMutexGuard<'_, S> {
        MutexGuard::map(self.state.lock(), |(service, _)| service)
    }

    /// The account, while no request is answered.
    pub(crate) fn account(&self) -> parking_lot::MappedMutexGuard<'_, Account> {
        MutexGuard::map(self.state.lock(), |(_, account)| account)
    }

    pub(crate) fn token_file(&self) -> PathBuf {
        self.folder.path().join("sign-in.toml")
    }

    fn sign_in(&self) {
        let mut account = self.account();
        account.tokens(None);
        let refresh_token = account.sessions[0].refresh_token.clone();
        let kept = Credentials::none()
            .with(storage::credentials::CLIENT_ID, CLIENT_ID)
            .and_then(|kept| kept.with(storage::credentials::CLIENT_SECRET, CLIENT_SECRET))
            .and_then(|kept| kept.with("refresh_token", refresh_token));
        let path = self.token_file();
        std::fs::write(&path, kept.unwrap().to_toml()).unwrap();
        let only_owner = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&path, only_owner).unwrap();
    }

    pub(crate) fn url(&self, folder: &str) -> String {
        format!("{}:{folder}?endpoint={}", S::SCHEME, self.endpoint)
    }

    pub(crate) fn credentials(&self) -> Credentials {
        let file = self.token_file();
        Credentials::none().with(TOKEN_FILE, file.to_str().unwrap()).unwrap()
    }

    pub(crate) fn open(&self, folder: &str, opening: Opening) -> Arc<dyn ObjectStore> {
        open_with(&self.url(folder), &self.credentials(), opening).unwrap()
    }

    /// Fails the test when a request came that no document has.
    pub(crate) fn assert_lawful(&self) {
        let account = self.account();
        assert!(account.violations.is_empty(), "{:#?}", account.violations);
        for asked in &account.asked {
            let shown = format!("{} {:?}", asked.path, asked.query);
            assert!(!shown.contains(CLIENT_SECRET) || S::SCHEME == "baidu", "{shown}");
        }
    }
}

/// Wakes those who wait for something to change.
static ANSWERED: Notify = Notify::const_new();

async fn serve<S: Service>(state: &Mutex<(S, Account)>, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, usize::MAX).await else {
        return Response::builder().status(400).body(Body::empty()).unwrap();
    };
    let query = parts.uri.query().unwrap_or_default();
    let asked = Asked {
        method: parts.method.to_string(),
        path: parts.uri.path().to_owned(),
        query: url::form_urlencoded::parse(query.as_bytes()).into_owned().collect(),
        headers: parts.headers,
        body,
    };
    let reply = loop {
        let answered = ANSWERED.notified();
        let reply = {
            let (service, account) = &mut *state.lock();
            reply(service, account, &asked)
        };
        if reply.status != LATER {
            break reply;
        }
        answered.await;
    };
    ANSWERED.notify_waiters();
    state.lock().1.asked.push(Asked { body: Bytes::new(), ..asked });
    let mut response = Response::builder().status(StatusCode::from_u16(reply.status).unwrap());
    for (name, value) in reply.headers {
        response = response.header(name, value);
    }
    response.body(Body::from(reply.body)).unwrap()
}

fn reply<S: Service>(service: &mut S, account: &mut Account, asked: &Asked) -> Reply {
    let is_token = asked.path.ends_with("/token");
    let is_device = asked.path.ends_with("/devicecode") || asked.path.ends_with("/device/code");
    let answer = if is_token || is_device {
        let form = if asked.method == "GET" { asked.query.clone() } else { asked.form() };
        match is_token {
            true => account.give_tokens(&form),
            false => give_code(account, &form),
        }
    } else if !service.is_open(asked) && !account.admits(S::token(asked).as_deref()) {
        Ok(service.expired())
    } else if account.is_too_many() {
        let headers = vec![("retry-after", "0".to_owned())];
        Ok(Reply { status: 429, headers, body: Bytes::new() })
    } else {
        service.answer(account, asked)
    };
    answer.unwrap_or_else(|violation| {
        account.violations.push(format!("{} {}: {violation}", asked.method, asked.path));
        Reply::json(400, &json!({"error": {"code": "invalidRequest"}}))
    })
}

fn give_code(account: &mut Account, form: &BTreeMap<String, String>) -> Result<Reply, Violation> {
    if form.get("client_id").is_none_or(|id| id != CLIENT_ID) || !form.contains_key("scope") {
        return Err("a device code wants client_id and scope".to_owned());
    }
    let code = format!("device-{}", account.pending.len());
    account.pending.insert(code.clone(), Person::Types(account.person_types));
    Ok(Reply::json(
        200,
        &json!({
            "device_code": code,
            "user_code": "WDJB-MJHT",
            "verification_uri": "https://example.test/device",
            "expires_in": 1800,
            "interval": account.interval_s,
        }),
    ))
}
