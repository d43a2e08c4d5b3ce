//! Signing in by a provider of OpenID Connect: who is let in, who is not, and what is asked of the provider.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use server::auth::subject::Subject;
use server::auth::totp::{TotpSecret, step_at};
use server::limits::PROVIDER_PAUSE;
use server::oidc::{Newcomers, OidcOptions};
use server::{Admin, ServerError};

use crate::provider::{ADDRESS, CLIENT, Provider, grant, grant_of};
use crate::support::{
    Device, PASSWORD, PushedClock, SystemClock, SystemRandom, TestServer, http, read_json,
};

type Answer = (StatusCode, Value);

/// Everybody gets an account, as large as they like.
const ANY: Newcomers = Newcomers::GetAccounts { quota_bytes: None };

fn options_for(
    issuer: &str,
    client: &str,
    secret: Option<&str>,
) -> Result<OidcOptions, ServerError> {
    OidcOptions::new(issuer, client, secret, &[ADDRESS.to_owned()], ANY)
}

/// A provider that knows `ada` as `1`, and a server with an audit log whose clock stands, so that no attempt is forgotten.
async fn ada_is_bound_while_time_stands() -> (Provider, TestServer) {
    let provider = Provider::start().await;
    let stopped = TestServer::start().await.stop().await;
    let options = provider.options(Newcomers::Refused);
    let audit = stopped.database().with_file_name("audit.log");
    let server = TestServer::start_again_while_time_stands(&stopped, |server| {
        (server.oidc, server.audit_log) = (Some(options), Some(audit));
    });
    let server = server.await;
    operator_binds(&server, &provider, "ada", "1");
    (provider, server)
}

async fn ask(server: &TestServer) -> Answer {
    read_json(http().get(server.url("/api/v1/sign-in/oidc")).send().await.unwrap()).await
}

async fn sign_in(server: &TestServer, grant: Value) -> Answer {
    sign_in_with(server, grant, None).await
}

async fn sign_in_with(server: &TestServer, mut grant: Value, code: Option<&str>) -> Answer {
    grant["device_name"] = json!("new");
    grant["code"] = json!(code);
    let request = http().post(server.url("/api/v1/sign-in/oidc")).json(&grant);
    read_json(request.send().await.unwrap()).await
}

async fn bind(device: &Device, password: &str, mut grant: Value) -> Answer {
    grant["password"] = json!(password);
    let request = device.request(Method::POST, "/account/oidc").json(&grant);
    read_json(request.send().await.unwrap()).await
}

async fn unbind(device: &Device, subject: &str) -> StatusCode {
    device.status(Method::DELETE, &format!("/account/oidc/{subject}"), Vec::new()).await
}

#[track_caller]
fn assert_problem(answer: &Answer, status: StatusCode, code: &str) {
    assert_eq!((answer.0, &answer.1["code"]), (status, &json!(code)), "{}", answer.1);
}

/// Binds a person at the provider to an account, as the operator does.
fn operator_binds(server: &TestServer, provider: &Provider, name: &str, id: &str) {
    let subject = Subject::new(&provider.issuer, id).unwrap();
    let mut admin = Admin::open(server.data()).unwrap();
    admin.bind_subject(name, &subject, &*SystemClock::start()).unwrap();
}

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn a_server_without_a_provider_says_so() {
    let server = TestServer::start().await;
    assert_problem(&ask(&server).await, StatusCode::NOT_FOUND, "not_found");
    assert_problem(&sign_in(&server, grant_of("1")).await, StatusCode::NOT_FOUND, "not_found");
    let device = server.device("ada").await;
    let bound = bind(&device, PASSWORD, grant_of("1")).await;
    assert_problem(&bound, StatusCode::NOT_FOUND, "not_found");
    assert_eq!(device.get("/account/oidc").await, (StatusCode::OK, json!([])));
}

#[tokio::test]
async fn a_person_binds_the_own_account_signs_in_by_it_and_ends_that() {
    let provider = Provider::start().await;
    let server = provider.server(Newcomers::Refused).await;
    let (status, offer) = ask(&server).await;
    assert_eq!(
        (status, offer),
        (
            StatusCode::OK,
            json!({
                "issuer": provider.issuer, "client_id": CLIENT, "scope": "openid",
                "authorization_endpoint": format!("{}/authorize", provider.issuer),
            })
        )
    );
    // Nobody is led to an account by a name or an address of mail.
    let claims = json!({ "sub": "a/1", "preferred_username": "ada", "email": "ada@example.org" });
    let unknown = sign_in(&server, grant(claims.clone())).await;
    assert_problem(&unknown, StatusCode::FORBIDDEN, "oidc_unbound");
    assert!(unknown.1["detail"].as_str().unwrap().contains("'a/1'"), "{}", unknown.1);

    let (ada, bob) = (server.device("ada").await, server.device("bob").await);
    let wrong = bind(&ada, "wrong", grant_of("a/1")).await;
    assert_problem(&wrong, StatusCode::UNAUTHORIZED, "wrong_password");
    let (status, bound) = bind(&ada, PASSWORD, grant_of("a/1")).await;
    assert_eq!((status, &bound["subject"]), (StatusCode::CREATED, &json!("a/1")), "{bound}");
    assert_eq!(ada.get("/account/oidc").await, (StatusCode::OK, json!([bound])));
    assert_problem(&bind(&bob, PASSWORD, grant_of("a/1")).await, StatusCode::CONFLICT, "taken");

    let (status, session) = sign_in(&server, grant(claims)).await;
    assert_eq!((status, &session["account"]), (StatusCode::OK, &json!("ada")), "{session}");
    let token = session["token"].as_str().unwrap().to_owned();
    let device = Device { token, ..ada.clone() };
    let (_, who) = device.get("/whoami").await;
    assert_eq!((&who["account"], &who["device_name"]), (&json!("ada"), &json!("new")));

    assert_eq!(unbind(&bob, "a%2F1").await, StatusCode::NOT_FOUND);
    assert_eq!(unbind(&ada, "a%2F1").await, StatusCode::NO_CONTENT);
    let ended = sign_in(&server, grant_of("a/1")).await;
    assert_problem(&ended, StatusCode::FORBIDDEN, "oidc_unbound");
    assert_eq!(device.get("/whoami").await.0, StatusCode::OK);
}

#[tokio::test]
async fn newcomers_get_accounts_where_that_is_wanted_and_never_one_that_is_there() {
    let provider = Provider::start().await;
    let server = provider.server(ANY).await;
    assert_eq!(ask(&server).await.1["scope"], "openid profile");
    let named = |sub: &str, name: &str| grant(json!({ "sub": sub, "preferred_username": name }));
    assert_problem(&sign_in(&server, named("1", "ada")).await, StatusCode::CONFLICT, "taken");
    for name in ["", "a b", "-x"] {
        let refused = sign_in(&server, named("1", name)).await;
        assert_problem(&refused, StatusCode::BAD_REQUEST, "invalid");
    }
    // Whose name is told elsewhere is asked there, and whoever is told of there is the one who came.
    assert_problem(
        &sign_in(&server, grant_of("2")).await,
        StatusCode::UNAUTHORIZED,
        "oidc_refused",
    );
    *provider.desk.user_info.lock() = json!({ "sub": "3", "preferred_username": "dora" });
    assert_problem(
        &sign_in(&server, grant_of("2")).await,
        StatusCode::UNAUTHORIZED,
        "oidc_refused",
    );
    *provider.desk.user_info.lock() = json!({ "sub": "2", "preferred_username": "dora" });
    let (status, dora) = sign_in(&server, grant_of("2")).await;
    assert_eq!((status, &dora["account"]), (StatusCode::OK, &json!("dora")), "{dora}");

    let (status, eve) = sign_in(&server, named("1", "eve")).await;
    assert_eq!((status, &eve["account"]), (StatusCode::OK, &json!("eve")), "{eve}");
    assert_eq!(sign_in(&server, named("1", "renamed")).await.1["account"], "eve");
    for password in ["!", "eve", PASSWORD] {
        assert_eq!(server.login("eve", password).await.0, StatusCode::UNAUTHORIZED);
    }
    // She has no password to show, and keeps her only way in.
    let token = eve["token"].as_str().unwrap().to_owned();
    let eve = Device { token, ..server.device("ada").await };
    let bound = bind(&eve, "!", named("9", "eve")).await;
    assert_problem(&bound, StatusCode::CONFLICT, "conflict");
    assert!(bound.1["detail"].as_str().unwrap().contains("has no password"), "{}", bound.1);
    assert_eq!(unbind(&eve, "1").await, StatusCode::CONFLICT);
    // Who is shut out stays so.
    Admin::open(server.data()).unwrap().set_disabled("eve", true).unwrap();
    assert_problem(&sign_in(&server, named("1", "eve")).await, StatusCode::FORBIDDEN, "forbidden");
}

#[tokio::test]
async fn what_proves_nothing_lets_nobody_in_and_is_written_down() {
    let provider = Provider::start().await;
    let server = provider.server(ANY).await.stop().await;
    let audit = server.database().with_file_name("audit.log");
    let options = (provider.options(ANY), audit.clone());
    let server = TestServer::start_again(&server, |server| {
        (server.oidc, server.audit_log) = (Some(options.0), Some(options.1));
    });
    let server = server.await.unwrap();
    operator_binds(&server, &provider, "ada", "1");
    let now = SystemClock::start().now().seconds;
    let forged = [
        json!({ "forgery": "none" }),
        json!({ "forgery": "mac" }),
        json!({ "forgery": "foreign" }),
        json!({ "forgery": "unknown key" }),
        json!({ "iss": "https://other.example.org" }),
        json!({ "aud": "other" }),
        json!({ "aud": [CLIENT, "other"] }),
        json!({ "azp": "other" }),
        json!({ "exp": now - 100 }),
        json!({ "iat": now + 100 }),
        json!({ "nonce": "that-of-another-device-0123456789" }),
        json!({ "nonce": null }),
    ];
    for (number, claims) in forged.iter().enumerate() {
        let mut claims = claims.clone();
        claims["sub"] = json!("1");
        claims["preferred_username"] = json!(format!("new{number}"));
        let refused = sign_in(&server, grant(claims.clone())).await;
        assert_eq!(
            (refused.0, &refused.1["code"]),
            (StatusCode::UNAUTHORIZED, &json!("oidc_refused")),
            "{claims}: {}",
            refused.1
        );
    }
    let once = grant_of("1");
    let (status, _) = sign_in(&server, once.clone()).await;
    assert_eq!(status, StatusCode::OK);
    let again = sign_in(&server, once).await;
    assert_problem(&again, StatusCode::UNAUTHORIZED, "oidc_refused");

    let admin = Admin::open(server.data()).unwrap();
    let accounts = admin.list().unwrap();
    let accounts: Vec<_> = accounts.iter().map(|one| (one.name.as_str(), one.devices)).collect();
    assert_eq!(accounts, [("ada", 1), ("bob", 0)]);
    let lines = lines(&audit);
    let refused = lines.iter().filter(|line| line["event"] == "oidc_refused").count();
    assert_eq!((refused, lines.len()), (forged.len() + 1, forged.len() + 2), "{lines:?}");
    let signed_in = lines.iter().find(|line| line["event"] == "oidc_signed_in").unwrap();
    assert_eq!(
        (&signed_in["account"], &signed_in["address"]),
        (&json!("ada"), &json!("127.0.0.1"))
    );
}

#[tokio::test]
async fn what_a_device_hands_over_in_another_form_is_refused_without_asking_anybody() {
    let provider = Provider::start().await;
    let server = provider.server(Newcomers::Refused).await;
    for (name, value) in [
        ("redirect_uri", json!("https://evil.example.org/sign-in/oidc")),
        ("redirect_uri", json!("http://localhost:1/sign-in/oidc")),
        ("code_verifier", json!("short")),
        ("nonce", json!("short")),
        ("authorization_code", json!("")),
    ] {
        let mut changed = grant_of("1");
        changed[name] = value;
        assert_problem(&sign_in(&server, changed).await, StatusCode::BAD_REQUEST, "invalid");
    }
    let mut grant = grant_of("1");
    grant.as_object_mut().unwrap().remove("nonce");
    assert_eq!(sign_in(&server, grant).await.0, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(provider.desk.exchanges.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_second_factor_is_wanted_here_too() {
    let provider = Provider::start().await;
    let server = provider.server(Newcomers::Refused).await;
    operator_binds(&server, &provider, "ada", "1");
    let device = server.device("ada").await;
    let post = async |path: &str, body: Value| {
        read_json(device.request(Method::POST, path).json(&body).send().await.unwrap()).await.1
    };
    let offer = post("/account/totp", json!({ "password": PASSWORD })).await;
    let secret = TotpSecret::from_text(offer["secret"].as_str().unwrap()).unwrap();
    let step = step_at(SystemClock::start().now().seconds);
    let code = json!({ "code": secret.code(step - 1).to_text() });
    let codes = post("/account/totp/confirm", code).await;
    assert_problem(&sign_in(&server, grant_of("1")).await, StatusCode::UNAUTHORIZED, "code_needed");
    let wrong = sign_in_with(&server, grant_of("1"), Some("AAAA-AAAA-AAAA-AAAA")).await;
    assert_problem(&wrong, StatusCode::UNAUTHORIZED, "wrong_code");
    let code = secret.code(step).to_text();
    assert_eq!(sign_in_with(&server, grant_of("1"), Some(&code)).await.0, StatusCode::OK);
    let again = sign_in_with(&server, grant_of("1"), Some(&code)).await;
    assert_problem(&again, StatusCode::UNAUTHORIZED, "wrong_code");
    let recovery = codes["recovery_codes"][0].as_str();
    assert_eq!(sign_in_with(&server, grant_of("1"), recovery).await.0, StatusCode::OK);
}

#[tokio::test]
async fn a_provider_that_is_away_holds_nothing_else_up() {
    // Nobody is at the port that was free a moment ago.
    let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let issuer = format!("http://{address}");
    let stopped = TestServer::start().await.stop().await;
    let options = options_for(&issuer, CLIENT, None).unwrap();
    let clock = Arc::new(PushedClock::default());
    let pushed = Arc::clone(&clock);
    let server = TestServer::start_again(&stopped, |server| {
        (server.oidc, server.clock) = (Some(options), pushed);
    });
    let server = server.await.unwrap();
    let (unavailable, code) = (StatusCode::SERVICE_UNAVAILABLE, "provider_unavailable");
    assert_problem(&ask(&server).await, unavailable, code);
    assert_problem(&sign_in(&server, grant_of("1")).await, unavailable, code);
    server.device("ada").await;

    // For a moment nobody asks again.
    let provider = Provider::start_at(address).await;
    clock.push(PROVIDER_PAUSE - Duration::from_secs(1));
    assert_problem(&ask(&server).await, unavailable, code);
    clock.push(Duration::from_secs(1));
    assert_eq!(ask(&server).await.0, StatusCode::OK);
    let new = grant(json!({ "sub": "1", "preferred_username": "eve" }));
    assert_eq!(sign_in(&server, new).await.0, StatusCode::OK);
    // What only the operator can put right is not taken for a wrong code.
    for error in ["invalid_client", "unauthorized_client"] {
        let misconfigured = sign_in(&server, grant(json!({ "error": error }))).await;
        assert_problem(&misconfigured, unavailable, code);
        assert!(misconfigured.1["detail"].as_str().unwrap().contains(error));
    }
    for error in ["invalid_grant", "invalid_request"] {
        let refused = sign_in(&server, grant(json!({ "error": error }))).await;
        assert_problem(&refused, StatusCode::UNAUTHORIZED, "oidc_refused");
    }

    for (more, reason) in [
        (json!({ "issuer": "https://other.example.org" }), "calls itself"),
        (json!({ "x": "x".repeat(300_000) }), "too long"),
    ] {
        let other = provider.server(Newcomers::Refused).await;
        *provider.desk.more.lock() = more;
        let refused = ask(&other).await;
        assert_problem(&refused, unavailable, code);
        assert!(refused.1["detail"].as_str().unwrap().contains(reason), "{}", refused.1);
    }
}

#[tokio::test]
async fn keys_are_read_again_where_they_have_changed_and_only_so_often() {
    let (provider, server) = ada_is_bound_while_time_stands().await;
    let asked = || provider.desk.key_requests.load(Ordering::Relaxed);
    for _ in 0..3 {
        assert_eq!(sign_in(&server, grant_of("1")).await.0, StatusCode::OK);
    }
    assert_eq!(asked(), 1);
    provider.rotate();
    assert_eq!(sign_in(&server, grant_of("1")).await.0, StatusCode::OK);
    assert_eq!(asked(), 2);
    for _ in 0..20 {
        let unknown = grant(json!({ "sub": "1", "forgery": "unknown key" }));
        let refused = sign_in(&server, unknown).await;
        assert_problem(&refused, StatusCode::UNAUTHORIZED, "oidc_refused");
    }
    // One of the ten was the description.
    assert_eq!(asked(), 9);
    assert_eq!(sign_in(&server, grant_of("1")).await.0, StatusCode::OK);
}

#[tokio::test]
async fn attempts_are_counted_before_the_provider_is_asked() {
    let (provider, server) = ada_is_bound_while_time_stands().await;
    for _ in 0..50 {
        let wrong = grant(json!({ "sub": "1", "nonce": "another-device-0123456789" }));
        assert_eq!(sign_in(&server, wrong).await.0, StatusCode::UNAUTHORIZED);
    }
    let exchanges = provider.desk.exchanges.load(Ordering::Relaxed);
    let noted = || lines(&server.data().join("audit.log")).len();
    assert_eq!(noted(), 50);
    // What is not listened to fills no disk.
    for _ in 0..6 {
        let limited = sign_in(&server, grant_of("1")).await;
        assert_problem(&limited, StatusCode::TOO_MANY_REQUESTS, "rate_limited");
    }
    assert_eq!(noted(), 50);
    server.device("ada").await;
    assert_eq!((exchanges, provider.desk.exchanges.load(Ordering::Relaxed)), (50, 50));
}

#[tokio::test]
async fn new_keys_without_names_of_their_own_are_found_too() {
    let provider = Provider::start().await;
    let server = provider.server(Newcomers::Refused).await;
    operator_binds(&server, &provider, "ada", "1");
    let asked = || provider.desk.key_requests.load(Ordering::Relaxed);
    let nameless = || grant(json!({ "sub": "1", "forgery": "nameless" }));
    assert_eq!(sign_in(&server, nameless()).await.0, StatusCode::OK);
    provider.rotate();
    assert_eq!(sign_in(&server, nameless()).await.0, StatusCode::OK);
    provider.rotate_secretly();
    assert_eq!(sign_in(&server, grant_of("1")).await.0, StatusCode::OK);
    assert_eq!(asked(), 3);
    let foreign = sign_in(&server, grant(json!({ "sub": "1", "forgery": "foreign" }))).await;
    assert_problem(&foreign, StatusCode::UNAUTHORIZED, "oidc_refused");
    assert_eq!(asked(), 4);
}

#[tokio::test]
async fn a_code_that_was_got_for_another_server_is_worth_nothing() {
    let provider = Provider::start().await;
    let server = provider.server(ANY).await;
    operator_binds(&server, &provider, "ada", "1");
    let ada = server.device("ada").await;
    // Whoever passes a code on writes what the request is for, too.
    let mut foreign = grant_of("1");
    foreign["redirect_uri"] = json!("http://127.0.0.1:4711/sign-in/oidc/evil.example.org");
    foreign["device_name"] = json!("new");
    let request = http().post(server.url("/api/v1/sign-in/oidc"));
    let request = request.header("host", "evil.example.org").json(&foreign);
    let refused = read_json(request.send().await.unwrap()).await;
    assert_problem(&refused, StatusCode::BAD_REQUEST, "invalid");
    let detail = refused.1["detail"].as_str().unwrap();
    assert!(
        detail.contains("redirect_uri") && detail.contains("oidc/cloud.example.org"),
        "{detail}"
    );
    assert!(!detail.contains("evil"), "{detail}");
    assert_problem(&bind(&ada, PASSWORD, foreign).await, StatusCode::BAD_REQUEST, "invalid");
    assert_eq!(provider.desk.exchanges.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn who_gets_another_password_leaves_nobody_bound() {
    let provider = Provider::start().await;
    let server = provider.server(Newcomers::Refused).await;
    let ada = server.device("ada").await;
    let change = async |old: &str, new: &str, signs_out_others: bool| {
        let body =
            json!({ "password": old, "new_password": new, "sign_out_others": signs_out_others });
        let request = ada.request(Method::POST, "/account/password").json(&body);
        read_json(request.send().await.unwrap()).await
    };
    assert_eq!(bind(&ada, PASSWORD, grant_of("intruder")).await.0, StatusCode::CREATED);
    let (_, kept) = change(PASSWORD, "another one", false).await;
    assert_eq!(kept, json!({ "signed_out": 0, "identities": 0 }));
    assert_eq!(sign_in(&server, grant_of("intruder")).await.0, StatusCode::OK);
    let (_, ended) = change("another one", PASSWORD, true).await;
    assert_eq!(ended, json!({ "signed_out": 1, "identities": 1 }));
    let unbound = sign_in(&server, grant_of("intruder")).await;
    assert_problem(&unbound, StatusCode::FORBIDDEN, "oidc_unbound");

    operator_binds(&server, &provider, "ada", "intruder");
    let mut admin = Admin::open(server.data()).unwrap();
    let ended = admin.set_password("ada", "another one", &SystemRandom).unwrap();
    assert_eq!((ended.len(), ended[0].subject.id()), (1, "intruder"));
    let unbound = sign_in(&server, grant_of("intruder")).await;
    assert_problem(&unbound, StatusCode::FORBIDDEN, "oidc_unbound");
}

#[tokio::test]
async fn every_refusal_is_written_down_and_only_that_of_a_person_is_counted() {
    let provider = Provider::start().await;
    let stopped = provider.server(ANY).await.stop().await;
    let audit = stopped.database().with_file_name("audit.log");
    let options = (provider.options(ANY), audit.clone());
    let server = TestServer::start_again_while_time_stands(&stopped, |server| {
        (server.oidc, server.audit_log) = (Some(options.0), Some(options.1));
    });
    let server = server.await;
    let (ada, bob) = (server.device("ada").await, server.device("bob").await);
    operator_binds(&server, &provider, "bob", "of bob");
    // A provider that fails takes nothing from whoever wanted to bind the own account.
    for _ in 0..20 {
        let failed = bind(&ada, PASSWORD, grant(json!({ "error": "server_error" }))).await;
        assert_problem(&failed, StatusCode::SERVICE_UNAVAILABLE, "provider_unavailable");
    }
    let before = lines(&audit).len();
    let named = |sub: &str, name: &str| grant(json!({ "sub": sub, "preferred_username": name }));
    assert_eq!(sign_in(&server, named("1", "ada")).await.0, StatusCode::CONFLICT);
    assert_eq!(sign_in(&server, named("2", "a b")).await.0, StatusCode::BAD_REQUEST);
    let mut foreign = grant_of("3");
    foreign["redirect_uri"] = json!("http://127.0.0.1:1/sign-in/oidc/evil.example.org");
    assert_eq!(sign_in(&server, foreign).await.0, StatusCode::BAD_REQUEST);
    let taken = bind(&ada, PASSWORD, grant_of("of bob")).await;
    assert_problem(&taken, StatusCode::CONFLICT, "taken");
    let wrong = grant(json!({ "sub": "4", "nonce": "another-device-0123456789" }));
    assert_eq!(bind(&ada, PASSWORD, wrong).await.0, StatusCode::UNAUTHORIZED);
    Admin::open(server.data()).unwrap().set_disabled("bob", true).unwrap();
    assert_eq!(sign_in(&server, grant_of("of bob")).await.0, StatusCode::FORBIDDEN);

    let lines = lines(&audit).split_off(before);
    assert!(lines.iter().all(|line| line["event"] == "oidc_refused"), "{lines:?}");
    let told = |name: &str| lines.iter().map(|line| line[name].clone()).collect::<Vec<_>>();
    let (none, of_bob) = (Value::Null, json!("of bob"));
    assert_eq!(
        told("subject"),
        [json!("1"), json!("2"), none.clone(), of_bob.clone(), none.clone(), of_bob]
    );
    let (here, device) = (json!("127.0.0.1"), json!(ada.id.to_string()));
    let here = || here.clone();
    assert_eq!(told("address"), [here(), here(), here(), none.clone(), none.clone(), here()]);
    assert_eq!(told("device")[3..5], [device.clone(), device]);
    assert_eq!(told("account")[5], "bob");
    drop(bob);
}

#[tokio::test]
async fn accounts_of_newcomers_are_as_large_as_the_operator_wants() {
    let provider = Provider::start().await;
    let server = provider.server(Newcomers::GetAccounts { quota_bytes: Some(1 << 20) }).await;
    let eve = grant(json!({ "sub": "1", "preferred_username": "eve" }));
    let (_, session) = sign_in(&server, eve).await;
    let token = session["token"].as_str().unwrap().to_owned();
    let eve = Device { token, ..server.device("ada").await };
    assert_eq!(eve.get("/whoami").await.1["quota_bytes"], 1 << 20);
    // Nobody is asked for a password that there is not.
    for (path, body) in [
        ("/account/totp", json!({ "password": "!" })),
        ("/account/password", json!({ "password": "!", "new_password": "another one" })),
    ] {
        let request = eve.request(Method::POST, path).json(&body);
        let refused = read_json(request.send().await.unwrap()).await;
        assert_problem(&refused, StatusCode::CONFLICT, "conflict");
    }
}

#[tokio::test]
async fn a_server_with_a_secret_says_who_it_is_as_the_provider_wants_it() {
    let provider = Provider::start().await;
    for (methods, header, body) in [
        (json!(null), Some("Basic c3luY2xpbmUlM0EyOmElMkZzZWNyZXQrJTI2"), false),
        (json!(["client_secret_post"]), None, true),
    ] {
        if methods.is_array() {
            *provider.desk.more.lock() =
                json!({ "token_endpoint_auth_methods_supported": methods });
        }
        let stopped = TestServer::start().await.stop().await;
        let secret = Some("a/secret &");
        let options = options_for(&provider.issuer, "syncline:2", secret).unwrap();
        assert!(!format!("{options:?}").contains("secret &"));
        let server = TestServer::start_again(&stopped, |server| server.oidc = Some(options));
        let server = server.await.unwrap();
        operator_binds(&server, &provider, "ada", "1");
        let claims = json!({ "sub": "1", "aud": ["syncline:2"] });
        assert_eq!(sign_in(&server, grant(claims)).await.0, StatusCode::OK);
        let last = provider.desk.last.lock().clone();
        assert_eq!(last.0.as_deref(), header);
        assert_eq!(last.1.contains("&client_id=syncline%3A2&client_secret=a%2Fsecret+%26"), body);
        assert!(last.1.contains("&code_verifier=vvv"), "{}", last.1);
    }
}

#[test]
fn a_provider_is_reached_by_tls_or_is_here() {
    for (issuer, is_right) in [
        ("https://id.example.org/realms/x", true),
        ("http://127.0.0.1:9", true),
        ("http://id.example.org", false),
        ("https://a:b@id.example.org", false),
        ("https://id.example.org/?x", false),
        ("id.example.org", false),
    ] {
        let options = options_for(issuer, CLIENT, None);
        assert_eq!(options.is_ok(), is_right, "{issuer}");
    }
    let issuer = "https://id.example.org";
    assert!(options_for(issuer, "", None).is_err());
    assert!(options_for(issuer, CLIENT, Some("")).is_err());
    assert!(options_for(&format!("{issuer}/{}", "x".repeat(1024)), CLIENT, None).is_err());
    for addresses in [&[][..], &["cloud.example.org".to_owned()]] {
        assert!(OidcOptions::new(issuer, CLIENT, None, addresses, Newcomers::Refused).is_err());
    }
}
