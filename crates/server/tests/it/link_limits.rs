//! What links want and what ends them: passwords, numbers of downloads, days, and who takes one back.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::join_all;
use model::{Clock, Timestamp};
use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};

use crate::links::Place;
use crate::support::{SystemClock, TestServer, http, http_from, noise, read_json};

#[tokio::test]
async fn a_password_is_wanted_before_anything_is_told() {
    let place = Place::new(TestServer::start().await).await;
    let request = json!({ "path": "Attic/Photos", "password": "sesamé" });
    let (_, secret) = place.link(request.clone()).await;
    let (_, other) = place.link(request).await;
    let (_, open) = place.link(json!({ "path": "Attic/Photos" })).await;
    let locked = json!({
        "needs_password": true, "is_limited": false, "expires": null, "kind": null, "name": null,
        "size": null, "modified": null,
    });
    assert_eq!(place.json(&secret).await, (StatusCode::OK, locked.clone()));
    for rest in ["content", "content/one.jpg", "content/nothing", "folders", "folders/trip"] {
        let (status, problem) = place.json(&format!("{secret}/{rest}")).await;
        assert_eq!((status, &problem["code"]), (StatusCode::UNAUTHORIZED, &json!("link_locked")));
    }
    let (status, problem) = place.unlock(&secret, "sesame").await;
    assert_eq!((status, &problem["code"]), (StatusCode::UNAUTHORIZED, &json!("wrong_password")));
    assert_eq!(place.unlock(&open, "sesamé").await.0, StatusCode::BAD_REQUEST);
    let (status, unlocked) = place.unlock(&secret, "sesamé").await;
    assert_eq!((status, &unlocked["expires_in"]), (StatusCode::OK, &json!(3600)));
    let pass = unlocked["pass"].as_str().unwrap();
    let cookie = format!("other=1; pass={pass}");
    for header in [("syncline-link-pass", pass), ("cookie", cookie.as_str())] {
        let file = place.ask(&format!("{secret}/content/one.jpg"), &[header]).await;
        assert_eq!(file.bytes().await.unwrap(), "the first picture");
        let (_, seen) = read_json(place.ask(&secret, &[header]).await).await;
        assert_eq!(seen["name"], "Photos");
        // It opens no other link, not even one with the same password.
        let (_, seen) = read_json(place.ask(&other, &[header]).await).await;
        assert_eq!(seen, locked);
    }
}

#[tokio::test]
async fn passwords_are_tried_only_so_often_and_right_ones_cost_nothing() {
    let place = Place::new(TestServer::start().await).await;
    let request = json!({ "path": "Attic/Photos", "password": "sesame" });
    let (_, secret) = place.link(request.clone()).await;
    let (_, other) = place.link(request).await;
    for _ in 0..12 {
        assert_eq!(place.unlock(&secret, "sesame").await.0, StatusCode::OK);
    }
    for _ in 0..10 {
        assert_eq!(place.unlock(&secret, "wrong").await.0, StatusCode::UNAUTHORIZED);
    }
    for password in ["wrong", "sesame"] {
        let (status, problem) = place.unlock(&secret, password).await;
        assert_eq!(
            (status, &problem["code"]),
            (StatusCode::TOO_MANY_REQUESTS, &json!("rate_limited"))
        );
    }
    assert_eq!(place.unlock(&other, "sesame").await.0, StatusCode::OK);
}

/// Tries a password as somebody at another address of this machine.
async fn unlock_from(place: &Place, host: u8, secret: &str, password: &str) -> StatusCode {
    let http = http_from([127, 0, 0, host].into());
    let url = place.server.url(&format!("/api/v1/public/{secret}/unlock"));
    let request = http.post(url).json(&json!({ "password": password }));
    request.send().await.unwrap().status()
}

#[tokio::test]
async fn who_does_not_know_the_password_locks_a_link_for_nobody_at_another_address() {
    let place = Place::new(TestServer::start_while_time_stands().await).await;
    let request = json!({ "path": "Attic/Photos", "password": "sesame" });
    let (_, secret) = place.link(request.clone()).await;
    let (_, other) = place.link(request).await;
    for _ in 0..10 {
        let status = unlock_from(&place, 2, &secret, "wrong").await;
        assert_eq!(status, StatusCode::UNAUTHORIZED);
    }
    // What the link refuses takes nothing from what the address has for everything else.
    for _ in 0..60 {
        let status = unlock_from(&place, 2, &secret, "sesame").await;
        assert_eq!(status, StatusCode::TOO_MANY_REQUESTS);
    }
    assert_eq!(unlock_from(&place, 2, &other, "sesame").await, StatusCode::OK);
    assert_eq!(unlock_from(&place, 3, &secret, "sesame").await, StatusCode::OK);
}

#[tokio::test]
async fn passwords_from_many_addresses_are_tried_only_so_often_at_one_link() {
    let place = Place::new(TestServer::start_while_time_stands().await).await;
    let request = json!({ "path": "Attic/Photos", "password": "sesame" });
    let (_, secret) = place.link(request.clone()).await;
    let (_, other) = place.link(request).await;
    for attempt in 0..100 {
        let status = unlock_from(&place, 2 + attempt / 10, &secret, "wrong").await;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "{attempt}");
    }
    for _ in 0..60 {
        let status = unlock_from(&place, 100, &secret, "sesame").await;
        assert_eq!(status, StatusCode::TOO_MANY_REQUESTS);
    }
    assert_eq!(unlock_from(&place, 100, &other, "sesame").await, StatusCode::OK);
}

#[tokio::test]
async fn links_that_lead_nowhere_are_answered_only_so_often_and_others_always() {
    let place = Place::new(TestServer::start_while_time_stands().await).await;
    let (_, secret) = place.link(json!({ "path": "Attic/Photos" })).await;
    for n in 0..50 {
        assert_eq!(place.json(&format!("{n:A>43}")).await.0, StatusCode::NOT_FOUND);
    }
    for nowhere in ["A".repeat(43), "no-secret".to_owned()] {
        let (status, problem) = place.json(&nowhere).await;
        let limited = (StatusCode::TOO_MANY_REQUESTS, &json!("rate_limited"));
        assert_eq!((status, &problem["code"]), limited, "{nowhere}");
    }
    // Everybody behind a proxy has one address.
    for _ in 0..60 {
        assert_eq!(place.json(&secret).await.0, StatusCode::OK);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn as_many_downloads_are_let_in_as_were_allowed_and_no_parts() {
    let place = Place::new(TestServer::start().await).await;
    let request = json!({ "path": "Attic/Photos/one.jpg", "downloads_max": 5 });
    let (_, secret) = place.link(request).await;
    let content = format!("{secret}/content");
    let url = place.server.url(&format!("/api/v1/public/{content}"));
    // To look is no download.
    let head = http().head(&url).send().await.unwrap();
    assert_eq!(
        (head.status(), &head.headers()["content-length"]),
        (StatusCode::OK, &"17".parse().unwrap())
    );
    let etag = head.headers()["etag"].to_str().unwrap().to_owned();
    let known = place.ask(&content, &[("if-none-match", &etag)]).await;
    assert_eq!(known.status(), StatusCode::NOT_MODIFIED);
    let asked: Vec<_> = (0..20)
        .map(|n| {
            // Who leaves out the first byte gets it nevertheless.
            let headers: &[_] = if n % 2 == 0 { &[] } else { &[("range", "bytes=1-")] };
            place.ask(&content, headers)
        })
        .collect();
    let mut let_in = 0;
    for answer in join_all(asked).await {
        if answer.status() == StatusCode::OK {
            assert_eq!(answer.headers()["accept-ranges"], "none");
            assert_eq!(answer.bytes().await.unwrap(), "the first picture");
            let_in += 1;
        } else {
            assert_eq!(answer.status(), StatusCode::NOT_FOUND);
        }
    }
    assert_eq!(let_in, 5);
    place.assert_gone(&secret).await;
    let listed = place.links().await;
    assert_eq!((&listed[0]["downloads"], &listed[0]["state"]), (&json!(5), &json!("used_up")));
}

/// A clock that is set by hand.
#[derive(Debug)]
pub(crate) struct SetClock(AtomicI64, Arc<dyn Clock>);

impl SetClock {
    /// Makes one that says when the tests are, and sleeps as others do.
    pub(crate) fn start() -> Arc<Self> {
        Arc::new(Self(AtomicI64::new(1_700_000_000), SystemClock::start()))
    }

    pub(crate) fn set(&self, seconds: i64) {
        self.0.store(seconds, Ordering::Relaxed);
    }
}

impl Clock for SetClock {
    fn now(&self) -> Timestamp {
        Timestamp { seconds: self.0.load(Ordering::Relaxed), nanoseconds: 0 }
    }

    fn elapsed(&self) -> Duration {
        self.1.elapsed()
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        self.1.sleep(duration)
    }
}

#[tokio::test]
async fn a_link_ends_on_its_day_and_a_pass_after_its_hour_and_the_audit_log_knows() {
    let stopped = TestServer::start().await.stop().await;
    let clock = SetClock::start();
    let audit = stopped.database().with_file_name("audit.log");
    let server = TestServer::start_again(&stopped, |options| {
        options.clock = clock.clone();
        options.audit_log = Some(audit.clone());
    });
    let place = Place::new(server.await.unwrap()).await;
    let request = json!({
        "path": "Attic/Photos/one.jpg", "expires_in_seconds": 7200, "password": "sesame",
    });
    let (id, secret) = place.link(request).await;
    let (other, _) = place.link(json!({ "path": "Attic/Photos" })).await;
    assert_eq!(place.unlock(&secret, "sesame!").await.0, StatusCode::UNAUTHORIZED);
    let (_, unlocked) = place.unlock(&secret, "sesame").await;
    let pass = [("syncline-link-pass", unlocked["pass"].as_str().unwrap())];
    let content = format!("{secret}/content");
    let status = async || place.ask(&content, &pass).await.status();
    assert_eq!(status().await, StatusCode::OK);
    clock.set(1_700_003_599);
    assert_eq!(status().await, StatusCode::OK);
    clock.set(1_700_003_600);
    assert_eq!(status().await, StatusCode::UNAUTHORIZED);
    clock.set(1_700_007_199);
    assert_eq!(place.json(&secret).await.0, StatusCode::OK);
    clock.set(1_700_007_200);
    place.assert_gone(&secret).await;
    let links = place.links().await;
    let expired = links.iter().find(|link| link["id"] == id).unwrap();
    assert_eq!(expired["state"], "expired");
    assert_eq!(place.take_back(&other).await, StatusCode::NO_CONTENT);

    let text = std::fs::read_to_string(&audit).unwrap();
    assert!(!text.contains(&secret) && !text.contains("sesame"), "{text}");
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let of_links = lines.filter(|line| line["event"].as_str().unwrap().starts_with("link_"));
    let said: Vec<_> = of_links
        .map(|line| {
            let is_outside = line["event"] == "link_download" || line["address"] == "127.0.0.1";
            assert_eq!(line["device"].is_null(), is_outside, "{line}");
            let text = |field: &str| line[field].as_str().unwrap().to_owned();
            (text("event"), text("subject"))
        })
        .collect();
    let line = |event: &str, id: &String| (event.to_owned(), id.clone());
    let wanted = [
        line("link_made", &id),
        line("link_made", &other),
        line("link_password_refused", &id),
        line("link_download", &id),
        line("link_download", &id),
        line("link_revoked", &other),
    ];
    assert_eq!(said, wanted);
}

#[tokio::test]
async fn passwords_that_are_not_listened_to_are_not_noted() {
    let (server, audit) = TestServer::start_auditing_while_time_stands().await;
    let place = Place::new(server).await;
    let (_, secret) = place.link(json!({ "path": "Attic/Photos", "password": "sesame" })).await;
    let mut refused = 0;
    while place.unlock(&secret, "wrong").await.0 == StatusCode::UNAUTHORIZED {
        refused += 1;
    }
    for _ in 0..20 {
        assert_eq!(place.unlock(&secret, "wrong").await.0, StatusCode::TOO_MANY_REQUESTS);
    }
    let text = std::fs::read_to_string(&audit).unwrap();
    assert_eq!(text.matches("link_password_refused").count(), refused, "{text}");
}

#[tokio::test]
async fn what_is_read_behind_a_link_that_is_taken_back_is_cut_off() {
    let place = Place::new(TestServer::start().await).await;
    let long = noise(40 << 20);
    place.make(Method::PUT, "files/long", &long).await;
    let (id, secret) = place.link(json!({ "path": "long" })).await;
    let answer = place.ask(&format!("{secret}/content"), &[]).await;
    let taken_back = async || assert_eq!(place.take_back(&id).await, StatusCode::NO_CONTENT);
    assert_cut_off(answer, long.len(), taken_back).await;
    place.assert_gone(&secret).await;
    assert_eq!(place.take_back(&id).await, StatusCode::NOT_FOUND);
    assert_eq!(place.links().await, [] as [Value; 0]);
}

#[tokio::test]
async fn what_is_read_behind_a_link_whose_day_comes_is_cut_off() {
    let stopped = TestServer::start().await.stop().await;
    let clock = SetClock::start();
    let server = TestServer::start_again(&stopped, |options| options.clock = clock.clone());
    let place = Place::new(server.await.unwrap()).await;
    let long = noise(40 << 20);
    place.make(Method::PUT, "files/long", &long).await;
    for rest in ["content/long", "archive"] {
        let now = clock.now().seconds;
        let (_, secret) = place.link(json!({ "expires_in_seconds": 60 })).await;
        let answer = place.ask(&format!("{secret}/{rest}"), &[]).await;
        assert_cut_off(answer, long.len(), async || clock.set(now + 60)).await;
        place.assert_gone(&secret).await;
    }
}

/// Reads an answer that must break off where `end` is done after its first bytes.
pub(crate) async fn assert_cut_off(answer: Response, whole: usize, end: impl AsyncFnOnce()) {
    assert_eq!(answer.status(), StatusCode::OK);
    let mut bytes = answer.bytes_stream();
    let mut length = bytes.next().await.unwrap().unwrap().len();
    end().await;
    let end = loop {
        match bytes.next().await {
            Some(Ok(piece)) => length += piece.len(),
            end => break end,
        }
    };
    assert!(end.is_some_and(|end| end.is_err()) && length < whole, "{length}");
}
