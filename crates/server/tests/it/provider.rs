//! A provider of OpenID Connect on loopback that signs whatever a test wants said. What a code stands for stands in the code.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::routing::{get, post};
use axum::{Json, Router};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use parking_lot::Mutex;
use ring::hmac;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::{Value, json};
use server::oidc::{Newcomers, OidcOptions};
use tokio::net::TcpListener;

use crate::support::TestServer;

pub(crate) const CLIENT: &str = "syncline";
pub(crate) const NONCE: &str = "a-nonce-of-a-device-0123456789";
const REDIRECT: &str = "http://127.0.0.1:4711/sign-in/oidc/cloud.example.org";

/// What the servers of these tests are called, whatever is asked for in a request.
pub(crate) const ADDRESS: &str = "https://cloud.example.org";

/// The second in which the clock of these tests stands.
const NOW: i64 = 1_700_000_000;

struct Key {
    id: String,
    pair: EcdsaKeyPair,
}

impl Key {
    fn new(number: usize) -> Self {
        let (algorithm, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
        let bytes = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, bytes.as_ref(), &random).unwrap();
        Self { id: format!("key-{number}"), pair }
    }
}

/// What the provider has, and what it was asked.
pub(crate) struct Desk {
    issuer: String,
    key: Mutex<Key>,
    used: Mutex<HashSet<String>>,
    /// How often keys were asked for, and codes exchanged.
    pub(crate) key_requests: AtomicUsize,
    pub(crate) exchanges: AtomicUsize,
    /// The header and the body of the last exchange.
    pub(crate) last: Mutex<(Option<String>, String)>,
    /// What the description says beside the usual.
    pub(crate) more: Mutex<Value>,
    /// What it tells of whoever shows an access token.
    pub(crate) user_info: Mutex<Value>,
}

/// A provider that runs.
pub(crate) struct Provider {
    pub(crate) issuer: String,
    pub(crate) desk: Arc<Desk>,
}

impl Provider {
    pub(crate) async fn start() -> Self {
        Self::start_at("127.0.0.1:0".parse().unwrap()).await
    }

    pub(crate) async fn start_at(address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let issuer = format!("http://{}", listener.local_addr().unwrap());
        let desk = Arc::new(Desk {
            issuer: issuer.clone(),
            key: Mutex::new(Key::new(0)),
            used: Mutex::default(),
            key_requests: AtomicUsize::new(0),
            exchanges: AtomicUsize::new(0),
            last: Mutex::default(),
            more: Mutex::new(json!({})),
            user_info: Mutex::new(json!({})),
        });
        let router = Router::new()
            .route("/.well-known/openid-configuration", get(describe))
            .route("/keys", get(keys))
            .route("/token", post(token))
            .route("/me", get(user_info))
            .with_state(Arc::clone(&desk));
        tokio::spawn(axum::serve(listener, router).into_future());
        Self { issuer, desk }
    }

    pub(crate) fn options(&self, newcomers: Newcomers) -> OidcOptions {
        OidcOptions::new(&self.issuer, CLIENT, None, &[ADDRESS.to_owned()], newcomers).unwrap()
    }

    /// Starts a server that people sign in to by this provider.
    pub(crate) async fn server(&self, newcomers: Newcomers) -> TestServer {
        let stopped = TestServer::start().await.stop().await;
        let options = self.options(newcomers);
        TestServer::start_again(&stopped, |server| server.oidc = Some(options)).await.unwrap()
    }

    /// Takes another key from now on.
    pub(crate) fn rotate(&self) {
        let mut key = self.desk.key.lock();
        *key = Key::new(self.desk.key_requests.load(Ordering::Relaxed) + 1);
    }

    /// Takes another key of the same name from now on.
    pub(crate) fn rotate_secretly(&self) {
        let mut key = self.desk.key.lock();
        let id = key.id.clone();
        *key = Key { id, ..Key::new(0) };
    }
}

/// A grant whose code makes the provider say these claims beside the usual ones.
pub(crate) fn grant(claims: Value) -> Value {
    let mut said = json!({ "nonce": NONCE, "salt": server::auth::Token::generate(&crate::support::SystemRandom).to_text() });
    for (name, value) in claims.as_object().unwrap() {
        said[name.as_str()] = value.clone();
    }
    json!({
        "authorization_code": URL_SAFE_NO_PAD.encode(said.to_string()), "redirect_uri": REDIRECT,
        "code_verifier": "v".repeat(43), "nonce": NONCE,
    })
}

/// A grant of a person.
pub(crate) fn grant_of(subject: &str) -> Value {
    grant(json!({ "sub": subject }))
}

async fn describe(State(desk): State<Arc<Desk>>) -> Json<Value> {
    let issuer = &desk.issuer;
    let mut description = json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{issuer}/authorize"),
        "token_endpoint": format!("{issuer}/token"),
        "jwks_uri": format!("{issuer}/keys"),
        "userinfo_endpoint": format!("{issuer}/me"),
    });
    for (name, value) in desk.more.lock().as_object().unwrap() {
        description[name.as_str()] = value.clone();
    }
    Json(description)
}

async fn keys(State(desk): State<Arc<Desk>>) -> Json<Value> {
    desk.key_requests.fetch_add(1, Ordering::Relaxed);
    let key = desk.key.lock();
    let point = key.pair.public_key().as_ref();
    let (x, y) = (URL_SAFE_NO_PAD.encode(&point[1..33]), URL_SAFE_NO_PAD.encode(&point[33..]));
    let jwk = json!({ "kty": "EC", "crv": "P-256", "kid": key.id, "use": "sig", "x": x, "y": y });
    Json(json!({ "keys": [jwk] }))
}

async fn token(
    State(desk): State<Arc<Desk>>,
    headers: HeaderMap,
    body: String,
) -> (StatusCode, Json<Value>) {
    desk.exchanges.fetch_add(1, Ordering::Relaxed);
    let authorization = headers.get("authorization").map(|text| text.to_str().unwrap().to_owned());
    *desk.last.lock() = (authorization, body.clone());
    let uri: Uri = format!("/?{body}").parse().unwrap();
    let form = axum::extract::Query::<Vec<(String, String)>>::try_from_uri(&uri).unwrap().0;
    let code = form.into_iter().find(|(name, _)| name == "code").unwrap().1;
    if !desk.used.lock().insert(code.clone()) {
        return (StatusCode::BAD_REQUEST, Json(json!({ "error": "invalid_grant" })));
    }
    let said: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(code).unwrap()).unwrap();
    if let Some(error) = said["error"].as_str() {
        return (StatusCode::BAD_REQUEST, Json(json!({ "error": error })));
    }
    let mut claims = json!({
        "iss": desk.issuer, "aud": CLIENT, "iat": NOW, "exp": NOW + 300, "sub": "nobody",
    });
    for (name, value) in said.as_object().unwrap() {
        claims[name.as_str()] = value.clone();
    }
    let token = desk.sign(said["forgery"].as_str().unwrap_or_default(), &claims);
    (StatusCode::OK, Json(json!({ "id_token": token, "access_token": "an access token" })))
}

impl Desk {
    /// Signs claims, or does what a forger would.
    fn sign(&self, forgery: &str, claims: &Value) -> String {
        let key = self.key.lock();
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let message = |algorithm: &str| {
            format!("{}.{}", part(&json!({ "alg": algorithm, "kid": key.id })), part(claims))
        };
        let by = |pair: &EcdsaKeyPair, message: &str| {
            pair.sign(&SystemRandom::new(), message.as_bytes()).unwrap().as_ref().to_vec()
        };
        let (message, signature) = match forgery {
            "none" => (message("none"), Vec::new()),
            "mac" => {
                let message = message("HS256");
                let secret = hmac::Key::new(hmac::HMAC_SHA256, key.pair.public_key().as_ref());
                let mac = hmac::sign(&secret, message.as_bytes());
                (message, mac.as_ref().to_vec())
            }
            "foreign" => {
                let message = message("ES256");
                let signature = by(&Key::new(0).pair, &message);
                (message, signature)
            }
            "nameless" => {
                let header = part(&json!({ "alg": "ES256" }));
                let message = format!("{header}.{}", part(claims));
                let signature = by(&key.pair, &message);
                (message, signature)
            }
            "unknown key" => {
                let header = part(&json!({ "alg": "ES256", "kid": "nobody's" }));
                (format!("{header}.{}", part(claims)), vec![0; 64])
            }
            _ => {
                let message = message("ES256");
                let signature = by(&key.pair, &message);
                (message, signature)
            }
        };
        format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

async fn user_info(State(desk): State<Arc<Desk>>, headers: HeaderMap) -> (StatusCode, Json<Value>) {
    let is_known =
        headers.get("authorization").is_some_and(|text| text == "Bearer an access token");
    let status = if is_known { StatusCode::OK } else { StatusCode::UNAUTHORIZED };
    (status, Json(desk.user_info.lock().clone()))
}
