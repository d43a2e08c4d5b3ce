//! Accounts that people make for themselves, because they were invited.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use passwords::Registration;
use reqwest::StatusCode;
use serde_json::{Value, json};
use server::Admin;
use server::metadata::{InvitationId, NewInvitation};

use crate::exchange;
use crate::support::{Device, PASSWORD, SystemClock, SystemRandom, TestServer, http, read_json};

/// The clock of the tests stands there.
const NOW: i64 = 1_700_000_000;

type Answer = (StatusCode, Value);

async fn ask(server: &TestServer, path: &str, body: &Value) -> Answer {
    let request = http().post(server.url(&format!("/api/v1{path}"))).json(body);
    read_json(request.send().await.unwrap()).await
}

fn invite(server: &TestServer, made: i64) -> (InvitationId, String) {
    let mut admin = Admin::open(server.data()).unwrap();
    let (name, quota_bytes) = (Some("eve".to_owned()), Some(1 << 20));
    let new = NewInvitation { name, quota_bytes, made, expires: made + 60 };
    let (id, secret) = admin.invite(&new, &SystemRandom).unwrap();
    (id, secret.to_text())
}

async fn begin(
    server: &TestServer,
    secret: &str,
    user: &str,
    password: &str,
) -> (Answer, Registration) {
    let (new, message) = Registration::start(password, &SystemRandom).unwrap();
    let body = json!({ "secret": secret, "user": user, "message": STANDARD.encode(message) });
    (ask(server, "/join/begin", &body).await, new)
}

/// Makes an account by an invitation, as a browser does.
async fn join(server: &TestServer, secret: &str, user: &str, password: &str) -> Answer {
    let (begun, new) = begin(server, secret, user, password).await;
    if !begun.0.is_success() {
        return begun;
    }
    let answer = STANDARD.decode(begun.1["message"].as_str().unwrap()).unwrap();
    let (message, _) = new.finish(&answer, &SystemRandom).unwrap();
    let message = STANDARD.encode(message);
    let body = json!({
        "secret": secret, "user": user, "message": message, "device_name": "browser",
    });
    ask(server, "/join/finish", &body).await
}

/// A last message as a browser sends it.
pub(crate) fn record() -> String {
    let (new, message) = Registration::start(PASSWORD, &SystemRandom).unwrap();
    let setup = passwords::Setup::generate(&SystemRandom);
    let answer = setup.begin_registration("eve", &message).unwrap();
    STANDARD.encode(new.finish(&answer, &SystemRandom).unwrap().0)
}

fn code(answer: &Answer) -> (u16, &str) {
    (answer.0.as_u16(), answer.1["code"].as_str().unwrap_or_default())
}

#[tokio::test]
async fn who_is_invited_makes_an_account_is_signed_in_and_comes_back_by_the_password() {
    let server = TestServer::start().await;
    let (_, secret) = invite(&server, NOW);
    let (status, invitation) = ask(&server, "/join", &json!({ "secret": secret })).await;
    assert_eq!(status, StatusCode::OK);
    let expected = json!({ "name": "eve", "quota_bytes": 1 << 20, "expires": NOW + 60 });
    assert_eq!(invitation, expected);
    let (status, session) = join(&server, &secret, "eva", "a password of eva's").await;
    assert_eq!((status, &session["account"]), (StatusCode::CREATED, &json!("eva")), "{session}");
    let token = session["token"].as_str().unwrap().to_owned();
    let device = Device { token, ..server.device("ada").await };
    let (_, me) = device.get("/whoami").await;
    assert_eq!((&me["account"], &me["device_name"]), (&json!("eva"), &json!("browser")));
    assert_eq!(me["quota_bytes"], 1 << 20);
    // Whether the password is proved or sent.
    let proved = exchange::sign_in(&server, "eva", "a password of eva's").await;
    assert_eq!(proved.0, StatusCode::OK);
    assert_eq!(server.login("eva", "a password of eva's").await.0, StatusCode::OK);
    assert_eq!(server.login("eva", PASSWORD).await.0, StatusCode::UNAUTHORIZED);

    for again in [
        ask(&server, "/join", &json!({ "secret": secret })).await,
        join(&server, &secret, "eve", PASSWORD).await,
    ] {
        assert_eq!(code(&again), (410, "invitation_used"));
    }
}

#[tokio::test]
async fn what_does_not_count_says_why_and_makes_nothing() {
    let server = TestServer::start().await;
    let unknown = "A".repeat(43);
    for secret in [unknown.as_str(), "", "no secret"] {
        assert_eq!(
            code(&join(&server, secret, "eve", PASSWORD).await),
            (404, "invitation_unknown")
        );
    }
    let (_, old) = invite(&server, NOW - 60);
    assert_eq!(code(&join(&server, &old, "eve", PASSWORD).await), (410, "invitation_expired"));
    let (id, back) = invite(&server, NOW);
    let clock = SystemClock::start();
    assert!(Admin::open(server.data()).unwrap().take_back(id, &*clock).unwrap());
    assert_eq!(code(&join(&server, &back, "eve", PASSWORD).await), (410, "invitation_taken_back"));

    let (_, secret) = invite(&server, NOW);
    assert_eq!(code(&join(&server, &secret, "ada", PASSWORD).await), (409, "taken"));
    for name in ["", "a b", "-x", &"x".repeat(65)] {
        assert_eq!(code(&join(&server, &secret, name, PASSWORD).await), (400, "invalid"), "{name}");
    }
    let nonsense = json!({
        "secret": secret, "user": "eve", "message": "AAAA", "device_name": "browser",
    });
    for path in ["/join/begin", "/join/finish"] {
        assert_eq!(code(&ask(&server, path, &nonsense).await), (400, "invalid"), "{path}");
    }
    // Who holds a good one only is told which names there are.
    assert_eq!(code(&join(&server, &unknown, "ada", PASSWORD).await), (404, "invitation_unknown"));
    assert_eq!(join(&server, &secret, "eve", PASSWORD).await.0, StatusCode::CREATED);
}

#[tokio::test]
async fn of_two_people_with_one_invitation_one_wins_and_the_other_is_told() {
    let server = TestServer::start().await;
    for round in 0..5 {
        let (_, secret) = invite(&server, NOW);
        let names = [format!("one{round}"), format!("two{round}")];
        let (one, two) = tokio::join!(
            join(&server, &secret, &names[0], PASSWORD),
            join(&server, &secret, &names[1], PASSWORD)
        );
        let mut codes = [code(&one), code(&two)];
        codes.sort_unstable();
        assert_eq!(codes, [(201, ""), (410, "invitation_used")]);
        let made = Admin::open(server.data()).unwrap().list().unwrap();
        let made = made.iter().filter(|line| names.contains(&line.name)).count();
        assert_eq!(made, 1);
    }
}

#[tokio::test]
async fn an_invitation_helps_nobody_to_guess_at_passwords() {
    let server = TestServer::start_while_time_stands().await;
    let (_, secret) = invite(&server, NOW);
    // For a name that is there the server does not do its half at all.
    let (refused, _) = begin(&server, &secret, "ada", "a guess").await;
    assert_eq!(code(&refused), (409, "taken"));
    for _ in 0..10 {
        assert_eq!(begin(&server, &secret, "eve", "a guess").await.0.0, StatusCode::OK);
    }
    let (limited, _) = begin(&server, &secret, "eve", "a guess").await;
    assert_eq!(code(&limited), (429, "rate_limited"));
    assert_eq!(join(&server, &secret, "eva", PASSWORD).await.0, StatusCode::CREATED);
}

#[tokio::test]
async fn invitations_that_do_not_count_are_answered_only_so_often_and_others_always() {
    let server = TestServer::start_while_time_stands().await;
    let (_, secret) = invite(&server, NOW);
    let body = json!({ "secret": "A".repeat(43) });
    for _ in 0..50 {
        assert_eq!(code(&ask(&server, "/join", &body).await), (404, "invitation_unknown"));
    }
    assert_eq!(code(&ask(&server, "/join", &body).await), (429, "rate_limited"));
    assert_eq!(ask(&server, "/join", &json!({ "secret": secret })).await.0, StatusCode::OK);
    assert_eq!(join(&server, &secret, "eve", PASSWORD).await.0, StatusCode::CREATED);
}

#[tokio::test]
async fn who_is_invited_asks_only_so_often_for_names_that_are_in_use() {
    let server = TestServer::start_while_time_stands().await;
    let (_, secret) = invite(&server, NOW);
    for _ in 0..50 {
        assert_eq!(code(&join(&server, &secret, "ada", PASSWORD).await), (409, "taken"));
    }
    assert_eq!(code(&join(&server, &secret, "ada", PASSWORD).await), (429, "rate_limited"));
}

#[tokio::test]
async fn the_audit_log_has_who_came_and_who_was_refused_and_no_secret() {
    let stopped = TestServer::start().await.stop().await;
    let audit = stopped.database().with_file_name("audit.log");
    let server = TestServer::start_again(&stopped, |options| {
        options.audit_log = Some(audit.clone());
    });
    let server = server.await.unwrap();
    let (id, secret) = invite(&server, NOW);
    assert_eq!(join(&server, &secret, "eve", "sesame, open").await.0, StatusCode::CREATED);
    assert_eq!(code(&join(&server, &secret, "eva", PASSWORD).await), (410, "invitation_used"));
    let text = std::fs::read_to_string(&audit).unwrap();
    assert!(!text.contains(&secret) && !text.contains("sesame"), "{text}");
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let said: Vec<_> = lines
        .map(|line| {
            let text = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
            assert_eq!(line["address"], "127.0.0.1");
            (text("event"), text("account"), text("subject"))
        })
        .collect();
    let line = |event: &str, account: &str, subject: &str| {
        (event.to_owned(), account.to_owned(), subject.to_owned())
    };
    let invitation = format!("invitation {}", id.number());
    let expected = [
        line("account_made", "eve", &invitation),
        line("signed_in", "eve", ""),
        line("invitation_refused", "", ""),
    ];
    assert_eq!(said, expected);
}

#[tokio::test]
async fn what_is_not_listened_to_is_not_noted() {
    let (server, audit) = TestServer::start_auditing_while_time_stands().await;
    let (_, secret) = invite(&server, NOW);
    for attempt in 0..20 {
        let (begun, _) = begin(&server, &secret, "eve", PASSWORD).await;
        assert_eq!(begun.0 == StatusCode::TOO_MANY_REQUESTS, attempt >= 10, "{attempt}");
    }
    let body = json!({ "secret": "A".repeat(43) });
    for attempt in 0..70 {
        let answer = ask(&server, "/join", &body).await;
        assert_eq!(answer.0 == StatusCode::TOO_MANY_REQUESTS, attempt >= 50, "{attempt}");
    }
    let text = std::fs::read_to_string(&audit).unwrap();
    assert_eq!(text.matches("invitation_refused").count(), 50, "{text}");
}
