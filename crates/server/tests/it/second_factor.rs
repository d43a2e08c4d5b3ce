//! Second factors over the doors: turning one on and off, signing in with it, and what stays as it was.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use model::{Clock, Timestamp};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use server::Admin;
use server::auth::totp::{STEP_SECONDS, TotpSecret, step_at};

use crate::support::{Device, PASSWORD, Stopped, SystemRandom, TestServer, http, read_json};

const NOW: i64 = 1_700_000_000;

/// A clock that is set by hand; it stands for limits, too.
#[derive(Debug, Default)]
struct SetClock(AtomicI64);

impl SetClock {
    /// Goes so many seconds on.
    fn go_on(&self, seconds: i64) {
        self.0.fetch_add(seconds, Ordering::Relaxed);
    }

    fn seconds(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Clock for SetClock {
    fn now(&self) -> Timestamp {
        Timestamp { seconds: NOW + self.seconds(), nanoseconds: 0 }
    }

    fn elapsed(&self) -> Duration {
        Duration::from_secs(self.seconds().unsigned_abs())
    }

    fn sleep(&self, duration: Duration) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(tokio::time::sleep(duration))
    }
}

/// A server whose clock is set by hand, and `ada` with a second factor.
struct Place {
    server: TestServer,
    clock: Arc<SetClock>,
    device: Device,
    secret: TotpSecret,
    recovery_codes: Vec<String>,
}

async fn post(device: &Device, path: &str, body: Value) -> (StatusCode, Value) {
    let request = device.request(Method::POST, path).json(&body);
    read_json(request.send().await.unwrap()).await
}

async fn begin(device: &Device) -> TotpSecret {
    let (status, offer) = post(device, "/account/totp", json!({ "password": PASSWORD })).await;
    assert_eq!(status, StatusCode::CREATED, "{offer}");
    let secret = offer["secret"].as_str().unwrap();
    let uri = offer["uri"].as_str().unwrap();
    assert!(uri.starts_with("otpauth://totp/Syncline%20127.0.0.1:ada?"), "{uri}");
    assert!(uri.contains(&format!("secret={secret}&")), "{uri}");
    TotpSecret::from_text(secret).unwrap()
}

async fn sign_in(
    server: &TestServer,
    user: &str,
    password: &str,
    code: Option<&str>,
) -> (StatusCode, Value) {
    let body = json!({ "user": user, "password": password, "device_name": "new", "code": code });
    let request = http().post(server.url("/api/v1/login")).json(&body);
    read_json(request.send().await.unwrap()).await
}

#[track_caller]
fn assert_problem(answer: (StatusCode, Value), status: StatusCode, code: &str) {
    assert_eq!((answer.0, &answer.1["code"]), (status, &json!(code)), "{}", answer.1);
}

impl Place {
    async fn new() -> Self {
        Self::with_audit(|_| None).await
    }

    async fn with_audit(audit: impl FnOnce(&Stopped) -> Option<std::path::PathBuf>) -> Self {
        let stopped = TestServer::start().await.stop().await;
        let (clock, audit_log) = (Arc::new(SetClock::default()), audit(&stopped));
        let server = TestServer::start_again(&stopped, |options| {
            options.clock = clock.clone();
            options.audit_log = audit_log;
        });
        let server = server.await.unwrap();
        let device = server.device("ada").await;
        let secret = begin(&device).await;
        let code = secret.code(step_at(NOW)).to_text();
        let (status, answer) =
            post(&device, "/account/totp/confirm", json!({ "code": code })).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
        let recovery_codes = serde_json::from_value(answer["recovery_codes"].clone()).unwrap();
        // The code of that step is used up.
        clock.go_on(STEP_SECONDS);
        Self { server, clock, device, secret, recovery_codes }
    }

    /// The code of the moment.
    fn code(&self) -> String {
        self.secret.code(step_at(self.clock.now().seconds)).to_text()
    }

    /// A code that is not the one of the moment, nor that of a neighbour.
    fn wrong_code(&self) -> String {
        let step = step_at(self.clock.now().seconds);
        let near = (step - 1..=step + 1).map(|step| self.secret.code(step).to_text());
        let near: Vec<String> = near.collect();
        let mut far = (step + 2..).map(|step| self.secret.code(step).to_text());
        far.find(|code| !near.contains(code)).unwrap()
    }

    async fn sign_in(&self, code: Option<&str>) -> (StatusCode, Value) {
        sign_in(&self.server, "ada", PASSWORD, code).await
    }

    async fn disable(&self, code: &str) -> (StatusCode, Value) {
        post(&self.device, "/account/totp/disable", json!({ "code": code })).await
    }

    async fn state(&self) -> Value {
        self.device.get("/account/totp").await.1
    }
}

#[tokio::test]
async fn a_sign_in_wants_the_code_of_the_moment_and_takes_it_once() {
    let place = Place::new().await;
    assert_problem(place.sign_in(None).await, StatusCode::UNAUTHORIZED, "code_needed");
    let code = place.code();
    // Whoever does not know the password learns nothing, not even with the right code.
    let wrong = sign_in(&place.server, "ada", "wrong", Some(&code)).await;
    assert_eq!(wrong, sign_in(&place.server, "nobody", "wrong", None).await);
    assert_problem(wrong, StatusCode::UNAUTHORIZED, "wrong_password");
    let wrong = place.sign_in(Some(&place.wrong_code())).await;
    assert_problem(wrong, StatusCode::UNAUTHORIZED, "wrong_code");
    let (status, session) = place.sign_in(Some(&code)).await;
    assert_eq!((status, &session["account"]), (StatusCode::OK, &json!("ada")));
    assert_problem(place.sign_in(Some(&code)).await, StatusCode::UNAUTHORIZED, "wrong_code");
    place.clock.go_on(STEP_SECONDS);
    assert_eq!(place.sign_in(Some(&place.code())).await.0, StatusCode::OK);
    // Others are asked for nothing, and what they show does no harm.
    for code in [None, Some("123456")] {
        assert_eq!(sign_in(&place.server, "bob", PASSWORD, code).await.0, StatusCode::OK);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_sign_ins_with_one_code_one_gets_in() {
    let place = Place::new().await;
    for shown in [place.code(), place.recovery_codes[0].clone()] {
        let both = (0..4).map(|_| place.sign_in(Some(&shown)));
        let heard: Vec<_> = join_all(both).await.into_iter().map(|answer| answer.0).collect();
        let let_in = heard.iter().filter(|status| **status == StatusCode::OK).count();
        assert_eq!(let_in, 1, "{heard:?}");
    }
}

#[tokio::test]
async fn a_recovery_code_lets_in_once_in_any_spelling() {
    let place = Place::new().await;
    assert_eq!(place.recovery_codes.len(), 10);
    let typed = place.recovery_codes[3].to_lowercase().replace('-', " ");
    assert_eq!(place.sign_in(Some(&typed)).await.0, StatusCode::OK);
    let again = place.sign_in(Some(&place.recovery_codes[3])).await;
    assert_problem(again, StatusCode::UNAUTHORIZED, "wrong_code");
    let state = place.state().await;
    assert_eq!(state, json!({ "state": "on", "since": NOW, "recovery_codes_left": 9 }));
    assert_eq!(place.disable(&place.recovery_codes[4]).await.0, StatusCode::NO_CONTENT);
    let off = json!({ "state": "off", "since": null, "recovery_codes_left": 0 });
    assert_eq!(place.state().await, off);
    assert_eq!(place.sign_in(None).await.0, StatusCode::OK);
}

#[tokio::test]
async fn who_turns_it_on_knows_the_password_and_shows_a_code_first() {
    let server = TestServer::start_while_time_stands().await;
    let (device, other) = (server.device("ada").await, server.device("ada").await);
    let wrong = post(&device, "/account/totp", json!({ "password": "wrong" })).await;
    assert_problem(wrong, StatusCode::UNAUTHORIZED, "wrong_password");
    assert_eq!(device.get("/account/totp").await.1["state"], "off");
    begin(&device).await;
    let secret = begin(&device).await;
    assert_eq!(device.get("/account/totp").await.1["state"], "waiting");
    assert_eq!(sign_in(&server, "ada", PASSWORD, None).await.0, StatusCode::OK);
    // Any device of the account may show the first code.
    let code = secret.code(step_at(NOW)).to_text();
    let old = secret.code(step_at(NOW) - 2).to_text();
    for wrong in [old.as_str(), "", "ABCD-EFGH-IJKL-MNOP"] {
        let refused = post(&other, "/account/totp/confirm", json!({ "code": wrong })).await;
        assert_problem(refused, StatusCode::UNAUTHORIZED, "wrong_code");
    }
    let confirmed = post(&other, "/account/totp/confirm", json!({ "code": code })).await;
    assert_eq!(confirmed.0, StatusCode::OK);
    assert_problem(
        sign_in(&server, "ada", PASSWORD, None).await,
        StatusCode::UNAUTHORIZED,
        "code_needed",
    );
    let again = post(&device, "/account/totp", json!({ "password": PASSWORD })).await;
    assert_problem(again, StatusCode::CONFLICT, "conflict");
    // Devices go on; nobody was signed out.
    for device in [&device, &other] {
        assert_eq!(device.get("/whoami").await.0, StatusCode::OK);
    }
}

#[tokio::test]
async fn codes_are_tried_only_so_often_and_nobody_is_locked_out_by_it() {
    let place = Place::new().await;
    let wrong = place.wrong_code();
    for _ in 0..10 {
        let refused = place.sign_in(Some(&wrong)).await;
        assert_problem(refused, StatusCode::UNAUTHORIZED, "wrong_code");
    }
    let refused = place.sign_in(Some(&place.code())).await;
    assert_problem(refused, StatusCode::TOO_MANY_REQUESTS, "rate_limited");
    // Meanwhile the owner's devices go on, and a recovery code lets a new one in.
    assert_eq!(place.device.get("/whoami").await.0, StatusCode::OK);
    assert_eq!(place.sign_in(Some(&place.recovery_codes[0])).await.0, StatusCode::OK);
    assert_eq!(place.sign_in(None).await.1["code"], "code_needed");
    // Six minutes later one code is listened to, and one only.
    place.clock.go_on(360);
    let wrong = place.wrong_code();
    assert_eq!(place.sign_in(Some(&wrong)).await.1["code"], "wrong_code");
    assert_eq!(place.sign_in(Some(&wrong)).await.1["code"], "rate_limited");
    // What a right code takes is given back.
    place.clock.go_on(360);
    for _ in 0..3 {
        assert_eq!(place.sign_in(Some(&place.code())).await.0, StatusCode::OK);
        place.clock.go_on(STEP_SECONDS);
    }
    // It is turned off from a device whatever others have tried.
    assert_eq!(place.disable(&place.code()).await.0, StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn recovery_codes_are_tried_only_as_often_as_passwords() {
    let place = Place::new().await;
    for _ in 0..10 {
        let refused = place.sign_in(Some("ABCD-EFGH-IJKL-MNOP")).await;
        assert_problem(refused, StatusCode::UNAUTHORIZED, "wrong_code");
    }
    // The password of the next attempt is not even looked at.
    let refused = place.sign_in(Some(&place.recovery_codes[0])).await;
    assert_problem(refused, StatusCode::TOO_MANY_REQUESTS, "rate_limited");
    place.clock.go_on(6);
    assert_eq!(place.sign_in(Some(&place.recovery_codes[0])).await.0, StatusCode::OK);
}

#[tokio::test]
async fn a_device_that_tries_codes_holds_up_no_other_one() {
    let place = Place::new().await;
    let (_, session) = place.sign_in(Some(&place.code())).await;
    let token = session["token"].as_str().unwrap().to_owned();
    let stolen = Device { token, ..place.device.clone() };
    let body = json!({ "code": place.wrong_code() });
    for _ in 0..10 {
        let refused = post(&stolen, "/account/totp/disable", body.clone()).await;
        assert_problem(refused, StatusCode::UNAUTHORIZED, "wrong_code");
    }
    let refused = post(&stolen, "/account/totp/disable", body).await;
    assert_problem(refused, StatusCode::TOO_MANY_REQUESTS, "rate_limited");
    let refused = post(&stolen, "/account/totp", json!({ "password": PASSWORD })).await;
    assert_problem(refused, StatusCode::TOO_MANY_REQUESTS, "rate_limited");
    place.clock.go_on(STEP_SECONDS);
    assert_eq!(place.disable(&place.code()).await.0, StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn programs_with_the_password_alone_are_sent_away_and_tokens_go_on() {
    let server = TestServer::start_while_time_stands().await;
    let device = server.device("ada").await;
    device.create_workspace("home").await;
    let body = json!({ "name": "program", "scope": "read" });
    let (_, made) = post(&device, "/tokens", body).await;
    let token = made["token"].as_str().unwrap().to_owned();
    let ask = async |password: &str| {
        let method = Method::from_bytes(b"PROPFIND").unwrap();
        let request = http().request(method, server.url("/dav/home/")).header("depth", "0");
        request.basic_auth("ada", Some(password)).send().await.unwrap()
    };
    assert_eq!(ask(PASSWORD).await.status(), StatusCode::MULTI_STATUS);
    let secret = begin(&device).await;
    assert_eq!(ask(PASSWORD).await.status(), StatusCode::MULTI_STATUS, "it waits for its code");
    let code = secret.code(step_at(NOW)).to_text();
    let confirmed = post(&device, "/account/totp/confirm", json!({ "code": code })).await;
    assert_eq!(confirmed.0, StatusCode::OK);
    // The password was right a moment ago, and was remembered. Time stands, so a program that asks again and again is not held up either.
    for _ in 0..60 {
        let refused = ask(PASSWORD).await;
        assert!(refused.headers().contains_key("www-authenticate"));
        assert_problem(read_json(refused).await, StatusCode::UNAUTHORIZED, "token_needed");
    }
    let wrong = read_json(ask("wrong").await).await;
    assert_problem(wrong, StatusCode::UNAUTHORIZED, "wrong_password");
    for token in [&token, &device.token] {
        assert_eq!(ask(token).await.status(), StatusCode::MULTI_STATUS);
    }
    let code = secret.code(step_at(NOW) + 1).to_text();
    let (status, _) = post(&device, "/account/totp/disable", json!({ "code": code })).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    assert_eq!(ask(PASSWORD).await.status(), StatusCode::MULTI_STATUS);
}

#[tokio::test]
async fn it_outlives_a_new_password_and_a_new_start_and_the_operator_can_take_it_away() {
    let place = Place::new().await;
    let mut admin = Admin::open_existing(place.server.data()).unwrap();
    let has = |admin: &Admin| -> Vec<bool> {
        admin.list().unwrap().iter().map(|line| line.has_second_factor).collect()
    };
    assert_eq!(has(&admin), [true, false]);
    admin.set_password("ada", "another", &SystemRandom).unwrap();
    admin.set_disabled("ada", true).unwrap();
    admin.set_disabled("ada", false).unwrap();
    drop(admin);
    let stopped = place.server.stop().await;
    let server = stopped.start().await;
    let needed = sign_in(&server, "ada", "another", None).await;
    assert_problem(needed, StatusCode::UNAUTHORIZED, "code_needed");
    let code = place.secret.code(step_at(NOW) + 1).to_text();
    assert_eq!(sign_in(&server, "ada", "another", Some(&code)).await.0, StatusCode::OK);

    let mut admin = Admin::open_existing(server.data()).unwrap();
    assert!(admin.remove_second_factor("nobody").is_err());
    assert!(admin.remove_second_factor("ada").unwrap());
    assert!(!admin.remove_second_factor("ada").unwrap());
    assert_eq!(has(&admin), [false, false]);
    assert_eq!(sign_in(&server, "ada", "another", None).await.0, StatusCode::OK);
}

#[tokio::test]
async fn codes_that_are_not_listened_to_are_not_noted() {
    let mut path = None;
    let place = Place::with_audit(|stopped| {
        path = Some(stopped.database().with_file_name("audit.log"));
        path.clone()
    })
    .await;
    let noted = || std::fs::read_to_string(path.as_ref().unwrap()).unwrap().lines().count();
    let (before, wrong) = (noted(), place.wrong_code());
    for _ in 0..10 {
        assert_eq!(place.sign_in(Some(&wrong)).await.0, StatusCode::UNAUTHORIZED);
    }
    for _ in 0..5 {
        assert_eq!(place.sign_in(Some(&wrong)).await.0, StatusCode::TOO_MANY_REQUESTS);
    }
    assert_eq!(noted(), before + 10);
}

#[tokio::test]
async fn the_audit_log_says_who_knew_the_password_and_not_the_code() {
    let mut path = None;
    let place = Place::with_audit(|stopped| {
        path = Some(stopped.database().with_file_name("audit.log"));
        path.clone()
    })
    .await;
    let wrong = place.wrong_code();
    place.sign_in(None).await;
    place.sign_in(Some(&wrong)).await;
    place.sign_in(Some(&place.recovery_codes[0])).await;
    post(&place.device, "/account/totp", json!({ "password": "wrong" })).await;
    place.disable(&wrong).await;
    place.disable(&place.code()).await;
    let text = std::fs::read_to_string(path.unwrap()).unwrap();
    for secret in [place.recovery_codes[0].as_str(), &place.secret.to_text(), PASSWORD] {
        assert!(!text.contains(secret), "{text}");
    }
    let said: Vec<(String, bool, bool)> = text
        .lines()
        .map(|line| {
            let line: Value = serde_json::from_str(line).unwrap();
            let is_ada = line["account"] == "ada";
            (line["event"].as_str().unwrap().to_owned(), is_ada, line["device"].is_string())
        })
        .collect();
    let wanted = [
        ("signed_in", true, true),
        ("second_factor_on", false, true),
        ("code_wanted", true, false),
        ("code_refused", true, false),
        ("recovery_code_used", true, false),
        ("signed_in", true, true),
        ("password_refused", false, true),
        ("code_refused", false, true),
        ("second_factor_off", false, true),
    ];
    assert_eq!(said, wanted.map(|(event, account, device)| (event.to_owned(), account, device)));
}
