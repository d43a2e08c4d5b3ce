//! The driver that reaches the pack door of a Syncline server over HTTP.
//!
//! *Participants*: this driver, and the server's door for one workspace at `{base}`. *Goals*: the promises of
//! [`crate::object_store`] as far as the server keeps them; a hostile server can refuse and lie, but not exhaust memory,
//! hang the caller for ever, or learn the token of another server. *Invariants*: no body is read beyond what was asked
//! or announced; no redirect is followed; every key of a list is validated; what an answer says in words is not shown. Where the server
//! knows a way past itself (`direct`), packs take it; whatever goes wrong there, they come by the door.
//!
//! | call | request | answers |
//! |---|---|---|
//! | put a pack | `PUT {base}/packs/{hex}` | 200, 201, 204 written; 412 exists |
//! | put another object | `PUT {base}/objects/{key}` | as above |
//! | if absent | the same with `If-None-Match: *` | as above |
//! | get, size | `GET`, `HEAD` | 200 with `Content-Length`; 404 absent |
//! | range | `GET` with `Range: bytes=3-9`, or `bytes=-64` for a tail | 206 with `Content-Range`, or 200 with all; 416 no such bytes |
//! | list | `GET {base}/objects?prefix=&start_after=&limit=` | 200, `[{"key": "genesis", "size": 7}]` in key order; fewer than `limit` means the end; `limit` is at most 1000 |
//! | delete | `DELETE` | 200, 204, 404 |
//! | a way past the door, to read | `GET {base}/packs/{hex}/direct` | 200, a signed request to a store, or none; 404 absent |
//! | the same, to bring | `POST` there, `{"length": 3}` | 200, a signed request, or none; 507 no space |
//! | it was brought | `PUT` there, `{"length": 3}` | 200, 201 found right; 404, 422 not |
//!
//! Every request carries `Authorization: Bearer`. 401 and 403 are refusals (403 to a put says that only writing is refused), 413 too large, 429 busy, 507 no space,
//! other 5xx not reachable; anything else is an invalid answer.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use reqwest::header::{HeaderValue, IF_NONE_MATCH, RANGE};
use reqwest::{Client, ClientBuilder, Method, RequestBuilder, Response, StatusCode, Url};

use crate::error::{Result, StorageError};
use crate::http_answer::{self as answer, Answer, header_length, read_body, read_part, read_whole};
use crate::key::{ObjectKey, check_prefix};
use crate::object_store::{ObjectEntry, ObjectStore, PutMode, PutOutcome, askable, check_size};

/// Longest list that one request asks for.
pub const LIST_LIMIT_MAX: usize = 1000;
/// Most bytes that one entry of a list takes as JSON, with room for white space.
const LIST_ENTRY_SIZE_MAX: u64 = 1024;

mod direct;

use direct::Bypass;

/// A store behind the pack door of a server.
#[derive(Clone)]
pub struct ServerDoor {
    client: Client,
    base: Url,
    authorization: HeaderValue,
    request_timeout: Duration,
    bypass: Arc<Bypass>,
}

impl ServerDoor {
    /// Opens the door at `base`, the URL of one workspace on a server, for instance
    /// `https://host/v1/workspaces/<id>`. `client` should come from [`Self::client_builder`]; `token` is a device token.
    ///
    /// # Errors
    /// [`StorageError::InvalidUrl`] when `base` is not an http URL, or the token cannot stand in a header.
    pub fn new(client: Client, base: &str, token: &str) -> Result<Self> {
        let invalid = |detail: &str| StorageError::InvalidUrl {
            url: base.to_owned(),
            detail: detail.to_owned(),
        };
        let url = Url::parse(base).map_err(|error| invalid(&error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(invalid("a server is reached by http: or https:"));
        }
        let mut authorization = HeaderValue::from_str(&format!("Bearer {token}"))
            .map_err(|_| invalid("the device token has characters that cannot be sent"))?;
        authorization.set_sensitive(true);
        let request_timeout = Duration::from_secs(300);
        Ok(Self { client, base: url, authorization, request_timeout, bypass: Arc::default() })
    }

    /// Returns a builder of clients as this driver wants them: no redirects, and limits for connecting and for silence.
    pub fn client_builder() -> ClientBuilder {
        Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .connect_timeout(Duration::from_secs(10))
            .read_timeout(Duration::from_secs(30))
    }

    /// Sets how long one request may take in all, its bodies included.
    #[must_use]
    pub fn with_request_timeout(mut self, request_timeout: Duration) -> Self {
        self.request_timeout = request_timeout;
        self
    }

    fn url(&self, path: &str) -> Url {
        let mut url = self.base.clone();
        url.set_query(None);
        url.set_path(&format!("{}/{path}", self.base.path().trim_end_matches('/')));
        url
    }

    fn object_url(&self, key: &ObjectKey) -> Url {
        match key.as_pack() {
            Some(id) => self.url(&format!("packs/{id}")),
            None => self.url(&format!("objects/{key}")),
        }
    }

    fn request(&self, method: Method, url: Url) -> RequestBuilder {
        self.client
            .request(method, url)
            .timeout(self.request_timeout)
            .header(reqwest::header::AUTHORIZATION, self.authorization.clone())
    }

    async fn send(&self, request: RequestBuilder) -> Result<Response> {
        request.send().await.map_err(|error| answer::transport_error(self.describe(), error))
    }

    /// Says what a status means that the call itself does not expect.
    fn refused(&self, key: Option<&ObjectKey>, response: &Response) -> StorageError {
        answer::refusal(self.describe(), key, response)
    }

    fn invalid(&self, detail: impl Into<String>) -> StorageError {
        StorageError::InvalidAnswer { store: self.describe(), detail: detail.into() }
    }

    /// Fetches a part of an object; `range` is the value of the header, and asks for at most `length_max` bytes.
    async fn fetch_part(&self, key: &ObjectKey, range: String, length_max: u64) -> Result<Answer> {
        let request = self.request(Method::GET, self.object_url(key)).header(RANGE, range);
        let response = self.send(request).await?;
        check_size(key, header_length(&response).unwrap_or(0))?;
        let answer = read_part(&self.describe(), response, length_max).await?;
        answer.map_err(|response| self.refused(Some(key), &response))
    }

    async fn read_whole(&self, key: &ObjectKey, response: Response) -> Result<Bytes> {
        check_size(key, header_length(&response).unwrap_or(0))?;
        read_whole(&self.describe(), response).await
    }

    async fn list_page(
        &self,
        prefix: &str,
        start_after: &str,
        limit: usize,
    ) -> Result<Vec<ObjectEntry>> {
        let mut url = self.url("objects");
        url.query_pairs_mut()
            .append_pair("prefix", prefix)
            .append_pair("start_after", start_after)
            .append_pair("limit", &limit.to_string());
        let response = self.send(self.request(Method::GET, url)).await?;
        if response.status() != StatusCode::OK {
            return Err(self.refused(None, &response));
        }
        let body_max = (limit as u64 + 1) * LIST_ENTRY_SIZE_MAX;
        let body = read_body(self.describe(), response, body_max).await?;
        let entries = parse_list(&body).map_err(|detail| self.invalid(detail))?;
        let mut last = start_after;
        for entry in &entries {
            if !entry.key.as_str().starts_with(prefix) || entry.key.as_str() <= last {
                return Err(self.invalid("a list with wrong keys or in wrong order"));
            }
            last = entry.key.as_str();
        }
        if entries.len() > limit {
            return Err(self.invalid("a list longer than asked"));
        }
        Ok(entries)
    }
}

impl fmt::Debug for ServerDoor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("ServerDoor").field(&self.describe()).finish()
    }
}

#[derive(serde::Deserialize)]
struct ListLine {
    key: String,
    size: u64,
}

/// Reads a list.
fn parse_list(body: &[u8]) -> Result<Vec<ObjectEntry>, String> {
    let lines: Vec<ListLine> = serde_json::from_slice(body)
        .map_err(|error| format!("a list that cannot be read: {error}"))?;
    lines
        .into_iter()
        .map(|line| match ObjectKey::new(&line.key) {
            Ok(key) => Ok(ObjectEntry { key, size: line.size }),
            Err(_) => Err("a list with an invalid key".to_owned()),
        })
        .collect()
}

#[async_trait]
impl ObjectStore for ServerDoor {
    fn describe(&self) -> String {
        format!("server {}", self.base.origin().ascii_serialization())
    }

    async fn put(&self, key: &ObjectKey, bytes: Bytes, mode: PutMode) -> Result<PutOutcome> {
        check_size(key, bytes.len() as u64)?;
        if mode == PutMode::IfAbsent
            && let Some(outcome) = self.put_past(key, &bytes).await
        {
            return Ok(outcome);
        }
        let mut request = self.request(Method::PUT, self.object_url(key)).body(bytes);
        if mode == PutMode::IfAbsent {
            request = request.header(IF_NONE_MATCH, "*");
        }
        let response = self.send(request).await?;
        match response.status() {
            StatusCode::OK | StatusCode::CREATED | StatusCode::NO_CONTENT => {
                Ok(PutOutcome::Written)
            }
            StatusCode::PRECONDITION_FAILED if mode == PutMode::IfAbsent => Ok(PutOutcome::Exists),
            // Who is not signed in hears 401: this one is, and may only read.
            StatusCode::FORBIDDEN => Err(StorageError::MayOnlyRead { store: self.describe() }),
            _ => Err(self.refused(Some(key), &response)),
        }
    }

    async fn get(&self, key: &ObjectKey) -> Result<Option<Bytes>> {
        if let Some(Answer::Whole(bytes)) = self.read_past(key, None).await {
            return Ok(Some(bytes));
        }
        let response = self.send(self.request(Method::GET, self.object_url(key))).await?;
        match response.status() {
            StatusCode::OK => self.read_whole(key, response).await.map(Some),
            StatusCode::NOT_FOUND => Ok(None),
            _ => Err(self.refused(Some(key), &response)),
        }
    }

    async fn get_range(&self, key: &ObjectKey, range: Range<u64>) -> Result<Option<Bytes>> {
        let Some(range) = askable(&range) else {
            return Ok(self.size(key).await?.map(|_| Bytes::new()));
        };
        let header = format!("bytes={}-{}", range.start, range.end - 1);
        let length = range.end - range.start;
        if let Some(answer) = self.read_past(key, Some((&header, length))).await
            && let Ok(found @ Some(_)) = answer.cut_to(&range)
        {
            return Ok(found);
        }
        let answer = self.fetch_part(key, header, length).await?;
        answer.cut_to(&range).map_err(|detail| self.invalid(detail))
    }

    async fn get_tail(&self, key: &ObjectKey, length: u64) -> Result<Option<Bytes>> {
        if length == 0 {
            return Ok(self.size(key).await?.map(|_| Bytes::new()));
        }
        let header = format!("bytes=-{length}");
        if let Some(answer) = self.read_past(key, Some((&header, length))).await
            && let Ok(found @ Some(_)) = answer.cut_to_tail(length)
        {
            return Ok(found);
        }
        let answer = self.fetch_part(key, header, length).await?;
        answer.cut_to_tail(length).map_err(|detail| self.invalid(detail))
    }

    async fn size(&self, key: &ObjectKey) -> Result<Option<u64>> {
        let response = self.send(self.request(Method::HEAD, self.object_url(key))).await?;
        match response.status() {
            StatusCode::OK => {
                let size = header_length(&response);
                size.map(Some).ok_or_else(|| self.invalid("an object without Content-Length"))
            }
            StatusCode::NOT_FOUND => Ok(None),
            _ => Err(self.refused(Some(key), &response)),
        }
    }

    async fn list(
        &self,
        prefix: &str,
        start_after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ObjectEntry>> {
        check_prefix(prefix)?;
        let mut entries: Vec<ObjectEntry> = Vec::new();
        while entries.len() < limit {
            let wanted = (limit - entries.len()).min(LIST_LIMIT_MAX);
            let last = entries.last().map_or(start_after.unwrap_or(""), |entry| entry.key.as_str());
            let page = self.list_page(prefix, last, wanted).await?;
            let is_last = page.len() < wanted;
            entries.extend(page);
            if is_last {
                break;
            }
        }
        Ok(entries)
    }

    async fn delete(&self, key: &ObjectKey) -> Result<()> {
        let response = self.send(self.request(Method::DELETE, self.object_url(key))).await?;
        match response.status() {
            StatusCode::OK | StatusCode::NO_CONTENT | StatusCode::NOT_FOUND => Ok(()),
            _ => Err(self.refused(Some(key), &response)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_with_hostile_keys_are_refused() {
        assert_eq!(parse_list(br#"[{"key":"packs/a","size":3}]"#).unwrap().len(), 1);
        for body in [r#"[{"key":"../x","size":3}]"#, r#"[{"key":"a"}]"#, "{}", "", "[1"] {
            assert!(parse_list(body.as_bytes()).is_err(), "{body}");
        }
    }
}
