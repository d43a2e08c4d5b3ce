//! Passwords that are proved and never sent.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use passwords::{Login, Registration};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use server::Sqlite;
use server::metadata::AccountTables;

use crate::support::{Device, PASSWORD, SystemRandom, TestServer, http, read_json};

/// A change of a password, at the client.
pub(crate) struct Change {
    old: Login,
    new: Registration,
}

impl Change {
    /// Returns what ends it, after the server's answer.
    pub(crate) fn finish(self, begun: &Value) -> Value {
        let (message, _) = self.old.finish(&bytes(&begun["message"]), &SystemRandom).unwrap();
        let (new, _) = self.new.finish(&bytes(&begun["new_message"]), &SystemRandom).unwrap();
        json!({
            "session": begun["session"], "message": STANDARD.encode(message),
            "new_message": STANDARD.encode(new),
        })
    }
}

fn bytes(text: &Value) -> Vec<u8> {
    STANDARD.decode(text.as_str().unwrap()).unwrap()
}

/// Begins to change a password; returns what to send, too.
pub(crate) fn begin_change(old: &str, new: &str) -> (Value, Change) {
    let (old, message) = Login::start(old, &SystemRandom).unwrap();
    let (new, new_message) = Registration::start(new, &SystemRandom).unwrap();
    let (message, new_message) = (STANDARD.encode(message), STANDARD.encode(new_message));
    (json!({ "message": message, "new_message": new_message }), Change { old, new })
}

pub(crate) async fn post(device: &Device, path: &str, body: &Value) -> (StatusCode, Value) {
    let request = device.request(Method::POST, path).json(body);
    read_json(request.send().await.unwrap()).await
}

async fn ask(server: &TestServer, path: &str, body: &Value) -> (StatusCode, Value) {
    let request = http().post(server.url(&format!("/api/v1{path}"))).json(body);
    read_json(request.send().await.unwrap()).await
}

/// Begins to sign in.
pub(crate) async fn begin(
    server: &TestServer,
    user: &str,
    password: &str,
) -> (StatusCode, Value, Login) {
    let (client, message) = Login::start(password, &SystemRandom).unwrap();
    let body = json!({ "user": user, "message": STANDARD.encode(message) });
    let (status, begun) = ask(server, "/login/begin", &body).await;
    (status, begun, client)
}

/// Signs in; who has guessed wrong sends a proof that is none.
pub(crate) async fn sign_in(
    server: &TestServer,
    user: &str,
    password: &str,
) -> (StatusCode, Value) {
    let (status, begun, client) = begin(server, user, password).await;
    match status.is_success() {
        true => ask(server, "/login/finish", &proof(&begun, client)).await,
        false => (status, begun),
    }
}

fn proof(begun: &Value, client: Login) -> Value {
    let proof = client.finish(&bytes(&begun["message"]), &SystemRandom);
    let proof = proof.map_or(vec![7; 64], |(proof, _)| proof);
    let message = STANDARD.encode(proof);
    json!({ "session": begun["session"], "message": message, "device_name": "laptop" })
}

#[tokio::test]
async fn who_proves_the_password_is_signed_in_and_a_wrong_one_looks_like_no_account() {
    let server = TestServer::start().await;
    let (status, session) = sign_in(&server, "ada", PASSWORD).await;
    assert_eq!(status, StatusCode::OK, "{session}");
    let known = server.device("ada").await;
    let token = session["token"].as_str().unwrap().to_owned();
    let device = Device { token, ..known };
    assert_eq!(device.get("/whoami").await.1["account"], "ada");

    let wrong = sign_in(&server, "ada", "wrong").await;
    assert_eq!((wrong.0, &wrong.1["code"]), (StatusCode::UNAUTHORIZED, &json!("wrong_password")));
    assert_eq!(sign_in(&server, "nobody", PASSWORD).await, wrong);
    let answer = async |user| {
        let (status, begun, _) = begin(&server, user, "wrong").await;
        let lengths = ["message", "session"].map(|name| bytes(&begun[name]).len());
        (status, lengths)
    };
    assert_eq!(answer("nobody").await, answer("ada").await);
}

#[tokio::test]
async fn guesses_cost_attempts_and_proofs_give_theirs_back_once() {
    let server = TestServer::start().await;
    for _ in 0..25 {
        assert_eq!(sign_in(&server, "ada", PASSWORD).await.0, StatusCode::OK);
    }
    // Who has proved it once gains nothing by the same proof.
    let (_, begun, client) = begin(&server, "ada", PASSWORD).await;
    let proof = proof(&begun, client);
    for _ in 0..20 {
        assert_eq!(ask(&server, "/login/finish", &proof).await.0, StatusCode::OK);
    }
    // Whoever begins knows already whether the guess was right.
    let mut begun = 0;
    while begin(&server, "ada", "a guess").await.0 == StatusCode::OK {
        begun += 1;
        assert!(begun <= 12, "ten at once, and one in six seconds");
    }
    assert!(begun >= 10, "{begun}");
    assert_eq!(server.login("ada", PASSWORD).await.0, StatusCode::TOO_MANY_REQUESTS);
}

#[tokio::test]
async fn password_is_changed_without_being_sent_and_by_its_own_device_only() {
    let server = TestServer::start().await;
    let (device, other) = (server.device("ada").await, server.device("ada").await);
    let (begin, change) = begin_change(PASSWORD, "a new one");
    let (status, begun) = post(&device, "/account/password/begin", &begin).await;
    assert_eq!(status, StatusCode::OK, "{begun}");
    let mut end = change.finish(&begun);
    let refused = post(&other, "/account/password/finish", &end).await;
    assert_eq!(
        (refused.0, &refused.1["code"]),
        (StatusCode::UNAUTHORIZED, &json!("wrong_password"))
    );
    // It is no sign-in, either.
    let mut sign_in_by_it = end.clone();
    sign_in_by_it["device_name"] = "laptop".into();
    assert_eq!(ask(&server, "/login/finish", &sign_in_by_it).await.0, StatusCode::UNAUTHORIZED);
    end["sign_out_others"] = true.into();
    let changed = post(&device, "/account/password/finish", &end).await;
    assert_eq!(changed, (StatusCode::OK, json!({ "signed_out": 1, "identities": 0 })));
    assert_eq!(other.get("/whoami").await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(sign_in(&server, "ada", PASSWORD).await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(sign_in(&server, "ada", "a new one").await.0, StatusCode::OK);
    // Programs that can do nothing else show it, as before.
    assert_eq!(server.login("ada", "a new one").await.0, StatusCode::OK);
    // What proved the old one proves nothing any more.
    assert_eq!(post(&device, "/account/password/finish", &end).await.0, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_change_that_begins_costs_two_attempts_and_one_that_is_proved_none() {
    let server = TestServer::start_while_time_stands().await;
    let device = server.device("ada").await;
    let try_to_begin = async || {
        // Whoever has found the device tries one password as the old one and another one as the new one.
        let (begin, _) = begin_change("a guess", "another guess");
        post(&device, "/account/password/begin", &begin).await.0
    };
    for (old, new) in [(PASSWORD, "a new one"), ("a new one", PASSWORD)] {
        let (begin, change) = begin_change(old, new);
        let (_, begun) = post(&device, "/account/password/begin", &begin).await;
        let changed = post(&device, "/account/password/finish", &change.finish(&begun)).await;
        assert_eq!(changed.0, StatusCode::OK);
    }
    for _ in 0..4 {
        assert_eq!(try_to_begin().await, StatusCode::OK);
    }
    let wrong = json!({ "password": "wrong" });
    let refused = post(&device, "/account/totp", &wrong).await;
    assert_eq!(refused.0, StatusCode::UNAUTHORIZED);
    // One is left, which is not enough, and is not taken for nothing.
    assert_eq!(try_to_begin().await, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(post(&device, "/account/totp", &wrong).await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(post(&device, "/account/totp", &wrong).await.0, StatusCode::TOO_MANY_REQUESTS);

    let other = server.device("ada").await;
    for expected in [&[StatusCode::OK; 5][..], &[StatusCode::TOO_MANY_REQUESTS]].concat() {
        let (begin, _) = begin_change("a guess", "another guess");
        assert_eq!(post(&other, "/account/password/begin", &begin).await.0, expected);
    }
}

#[tokio::test]
async fn password_that_was_kept_before_is_sent_once_and_never_again() {
    let server = TestServer::start().await;
    let hash = server::auth::hash_password("an old one", &SystemRandom).unwrap();
    let mut metadata = Sqlite::open(&server.data().join("metadata.sqlite")).unwrap();
    let ada = metadata.account_by_name("ada").unwrap().unwrap();
    metadata.update_account(ada.id, &hash, false).unwrap();
    let (status, problem, _) = begin(&server, "ada", "an old one").await;
    assert_eq!((status, &problem["code"]), (StatusCode::CONFLICT, &json!("conflict")));
    assert_eq!(server.login("ada", "another").await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(begin(&server, "ada", "an old one").await.0, StatusCode::CONFLICT);
    assert_eq!(server.login("ada", "an old one").await.0, StatusCode::OK);
    assert_eq!(sign_in(&server, "ada", "an old one").await.0, StatusCode::OK);
    assert_eq!(server.login("ada", "an old one").await.0, StatusCode::OK);
}

#[tokio::test]
async fn forged_messages_and_sessions_are_problems() {
    let server = TestServer::start().await;
    let begin_with = |message: &str| json!({ "user": "ada", "message": message });
    for message in ["", "?", "AAAA", &STANDARD.encode([255; 96])] {
        let (status, problem) = ask(&server, "/login/begin", &begin_with(message)).await;
        assert_eq!((status, &problem["code"]), (StatusCode::BAD_REQUEST, &json!("invalid")));
    }
    let (_, begun, client) = begin(&server, "ada", PASSWORD).await;
    let good = proof(&begun, client);
    let session = bytes(&good["session"]);
    let mut flipped = session.clone();
    flipped[30] ^= 1;
    for session in [&[][..], &[0; 24], &session[..60], &flipped] {
        let mut forged = good.clone();
        forged["session"] = STANDARD.encode(session).into();
        let (status, problem) = ask(&server, "/login/finish", &forged).await;
        assert_eq!(
            (status, &problem["code"]),
            (StatusCode::UNAUTHORIZED, &json!("wrong_password"))
        );
    }
    assert_eq!(ask(&server, "/login/finish", &good).await.0, StatusCode::OK);
}
