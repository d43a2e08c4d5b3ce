//! The way past a server's door: packs straight between this device and the store of the server.
//!
//! *Participants*: the server, which signs requests to its store and looks at what was brought; the store, which knows nobody but who
//! shows such a request. *Goals*: bytes take the short way; a network in which the store is not reached costs one attempt in ten minutes.
//! *Invariants*: nothing fails here: whatever is not well goes by the door, which says what is wrong. The store never sees the token of this
//! device. A server can choose where packs are sent, but not what else is: method and headers are ours but for a few, and who was reached by
//! TLS does not lead to where there is none.

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue, RANGE};
use reqwest::{Method, RequestBuilder, Response, StatusCode, Url};
use serde::Deserialize;
use tokio::time::Instant;

use super::ServerDoor;
use crate::http_answer::{Answer, read_body, read_part};
use crate::key::ObjectKey;
use crate::object_store::{OBJECT_SIZE_MAX, PutOutcome};

/// How long the door is taken after the way has failed.
const CLOSED_FOR: Duration = Duration::from_secs(600);

/// How many signed requests are remembered, because a pack is often read in several parts.
const KNOWN_MAX: usize = 1024;

/// The longest answer of the server that is read, in bytes.
const ANSWER_LENGTH_MAX: u64 = 64 * 1024;

/// Headers that may be set beside those of the store's own kind.
const HEADERS: [&str; 2] = ["if-none-match", "content-type"];
const OWN_KIND: &str = "x-amz-";

/// What is known of the way past a server.
#[derive(Debug, Default)]
pub(super) struct Bypass {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    closed: Closed,
    known: HashMap<ObjectKey, (Shown, Instant)>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq)]
enum Closed {
    #[default]
    No,
    Until(Instant),
    /// The server knows no way.
    ForGood,
}

impl Bypass {
    fn is_open(&self) -> bool {
        match self.state.lock().closed {
            Closed::No => true,
            Closed::Until(time) => Instant::now() >= time,
            Closed::ForGood => false,
        }
    }

    fn close(&self, closed: Closed) {
        let mut state = self.state.lock();
        state.closed = closed;
        state.known.clear();
    }

    fn close_for_a_while(&self) {
        self.close(Closed::Until(Instant::now() + CLOSED_FOR));
    }

    fn known(&self, key: &ObjectKey) -> Option<Shown> {
        let state = self.state.lock();
        let (shown, end) = state.known.get(key)?;
        (Instant::now() < *end).then(|| shown.clone())
    }

    fn remember(&self, key: &ObjectKey, shown: &Shown, lifetime: Duration) {
        let mut state = self.state.lock();
        if state.known.len() >= KNOWN_MAX {
            state.known.clear();
        }
        // What is sent at its very end may come too late.
        state.known.insert(key.clone(), (shown.clone(), Instant::now() + lifetime / 2));
    }
}

/// What the server says.
#[derive(Deserialize)]
struct Way {
    is_stored: bool,
    request: Option<Signed>,
}

#[derive(Deserialize)]
struct Signed {
    url: String,
    headers: Vec<Header>,
    expires_in_seconds: u32,
}

#[derive(Deserialize)]
struct Header {
    name: String,
    value: String,
}

/// A signed request as it is shown to the store.
#[derive(Debug, Clone)]
struct Shown {
    url: Url,
    headers: HeaderMap,
}

impl Signed {
    /// Checks what the server wants this device to send.
    fn check(&self, door: &Url) -> Option<Shown> {
        let url = Url::parse(&self.url).ok()?;
        let is_as_safe =
            url.scheme() == "https" || (url.scheme() == "http" && door.scheme() == "http");
        let mut headers = HeaderMap::new();
        for Header { name, value } in &self.headers {
            let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
            if !HEADERS.contains(&name.as_str()) && !name.as_str().starts_with(OWN_KIND) {
                return None;
            }
            headers.insert(name, HeaderValue::from_str(value).ok()?);
        }
        (is_as_safe && url.has_host()).then_some(Shown { url, headers })
    }
}

impl ServerDoor {
    /// Brings a pack straight to the store; nothing where it must go by the door.
    pub(super) async fn put_past(&self, key: &ObjectKey, bytes: &Bytes) -> Option<PutOutcome> {
        key.as_pack().filter(|_| self.bypass.is_open())?;
        let announced = serde_json::json!({ "length": bytes.len() });
        let ask = self.direct_request(Method::POST, key).json(&announced);
        let way = self.way(ask).await?;
        if way.is_stored {
            return Some(PutOutcome::Exists);
        }
        let Shown { url, headers } = self.shown(way.request)?;
        let put = self.client.put(url).headers(headers).body(bytes.clone());
        let put = self.send_past(put).await?;
        // Who was there first may have brought the same.
        let is_there = put.status().is_success()
            || matches!(put.status(), StatusCode::PRECONDITION_FAILED | StatusCode::CONFLICT);
        if !is_there {
            self.gave_up(&format!("it answers {}", put.status()));
            return None;
        }
        let told = self.direct_request(Method::PUT, key).json(&announced).send().await.ok()?;
        match told.status() {
            StatusCode::CREATED => Some(PutOutcome::Written),
            StatusCode::OK => Some(PutOutcome::Exists),
            _ => None,
        }
    }

    /// Reads an object, or a part of at most so many bytes, straight from the store; nothing where it must be read by the door.
    pub(super) async fn read_past(
        &self,
        key: &ObjectKey,
        part: Option<(&str, u64)>,
    ) -> Option<Answer> {
        key.as_pack().filter(|_| self.bypass.is_open())?;
        let shown = match self.bypass.known(key) {
            Some(shown) => shown,
            None => {
                let way = self.way(self.direct_request(Method::GET, key)).await?;
                let lifetime = way.request.as_ref().map_or(0, |signed| signed.expires_in_seconds);
                let shown = self.shown(way.request)?;
                self.bypass.remember(key, &shown, Duration::from_secs(lifetime.into()));
                shown
            }
        };
        let mut get = self.client.get(shown.url).headers(shown.headers);
        if let Some((range, _)) = part {
            get = get.header(RANGE, range);
        }
        let response = self.send_past(get).await?;
        let status = response.status();
        let length_max = part.map_or(OBJECT_SIZE_MAX, |(_, length_max)| length_max);
        match read_part("the store of the server", response, length_max).await {
            Ok(Ok(Answer::Absent)) => None,
            Ok(Ok(answer)) => Some(answer),
            Ok(Err(_)) => {
                self.gave_up(&format!("it answers {status}"));
                None
            }
            Err(error) => {
                self.gave_up(&error.to_string());
                None
            }
        }
    }

    fn direct_request(&self, method: Method, key: &ObjectKey) -> RequestBuilder {
        let mut url = self.object_url(key);
        let path = format!("{}/direct", url.path());
        url.set_path(&path);
        self.request(method, url)
    }

    /// Asks the server for a way. One that does not know the question knows no way, and cannot be told from one that has no such pack.
    async fn way(&self, ask: RequestBuilder) -> Option<Way> {
        let response = ask.send().await.ok()?;
        match response.status() {
            StatusCode::OK => {
                let body = read_body(String::new(), response, ANSWER_LENGTH_MAX).await.ok()?;
                serde_json::from_slice(&body).ok()
            }
            StatusCode::NOT_FOUND => {
                self.bypass.close_for_a_while();
                None
            }
            _ => None,
        }
    }

    /// Takes what the server has signed; without that it has no way.
    fn shown(&self, signed: Option<Signed>) -> Option<Shown> {
        let shown = signed.as_ref().and_then(|signed| signed.check(&self.base));
        if shown.is_none() {
            if signed.is_some() {
                tracing::warn!("the server leads to where nothing is sent; packs go through it");
            }
            self.bypass.close(Closed::ForGood);
        }
        shown
    }

    async fn send_past(&self, request: RequestBuilder) -> Option<Response> {
        match request.timeout(self.request_timeout).send().await {
            Ok(response) => Some(response),
            Err(error) => {
                // The address holds the signature.
                self.gave_up(&error.without_url().to_string());
                None
            }
        }
    }

    fn gave_up(&self, reason: &str) {
        tracing::info!(
            reason,
            "the store of the server is not reached; packs go through the server"
        );
        self.bypass.close_for_a_while();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(door: &str, url: &str, header: &str) -> bool {
        let header = Header { name: header.to_owned(), value: "*".to_owned() };
        let signed = Signed { url: url.to_owned(), headers: vec![header], expires_in_seconds: 1 };
        signed.check(&Url::parse(door).unwrap()).is_some()
    }

    #[test]
    fn a_server_cannot_lead_out_of_tls_and_cannot_set_any_header() {
        let (open, safe) = ("http://cloud", "https://cloud");
        assert!(check(open, "http://store/packs/1", "if-none-match"));
        assert!(check(safe, "https://store/packs/1", "x-amz-acl"));
        assert!(!check(safe, "http://store/packs/1", "if-none-match"));
        assert!(!check(open, "file:///etc/passwd", "if-none-match"));
        assert!(!check(open, "packs/1", "if-none-match"));
        for header in ["authorization", "cookie", "host", "content-length", "a b", ""] {
            assert!(!check(open, "http://store/packs/1", header), "{header}");
        }
    }
}
