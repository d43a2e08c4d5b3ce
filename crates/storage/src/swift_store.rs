//! The driver `swift:`: a container of OpenStack Swift.
//!
//! *Participants*: this store, Swift's proxy and whoever gives its tokens, other devices. *Goals*: the promises of
//! [`crate::object_store`] but one. *Non-goals*: creating an object only where none is. Swift answers 412 to
//! `If-None-Match: *` when it has the object, but looks before it reads the body: two puts that overlap are both told
//! that they wrote. So this store holds data and takes no part in agreement.
//! *Invariants*: a token that has expired is renewed once for each call, and the password goes to nobody but `auth`. No
//! redirect is followed. What a list names that is no key is not ours and is passed over.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use reqwest::header::{CONTENT_LENGTH, HeaderValue, RANGE};
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode, Url};
use tokio::sync::{Mutex, OnceCell};

use crate::credentials::{CERTIFICATE_FILE, Credentials, PASSWORD, TOKEN, USER};
use crate::error::{Result, StorageError};
use crate::file_store::Opening;
use crate::http_answer::{self, Names, header_length, read_body, read_part, read_whole};
use crate::key::{ObjectKey, check_prefix};
use crate::object_store::{
    OBJECT_SIZE_MAX, ObjectEntry, ObjectStore, PutMode, PutOutcome, askable, check_size,
};
use crate::open::address::{self, Address};
use crate::open::http;

/// Longest list that one request asks for; Swift gives at most 10,000.
const LIST_LIMIT_MAX: usize = 1000;
/// Most bytes that one entry of a list takes as JSON: the longest name, escaped, and what stands beside it.
const LIST_ENTRY_SIZE_MAX: u64 = 8 << 10;

/// A container of Swift.
pub(crate) struct SwiftStore {
    client: Client,
    access: Access,
    container: String,
    /// What all names begin with: empty, or with a slash at its end.
    prefix: String,
    opening: Opening,
    session: Mutex<Option<Arc<Session>>>,
    is_ready: OnceCell<()>,
}

/// Where tokens come from.
enum Access {
    /// TempAuth, or what answers like it.
    Password { auth: Url, user: HeaderValue, password: HeaderValue },
    /// Somebody else gets them.
    Given(Arc<Session>),
}

/// What a token opens.
struct Session {
    storage: Url,
    token: HeaderValue,
}

#[derive(serde::Deserialize)]
struct ListLine {
    name: String,
    bytes: u64,
}

impl SwiftStore {
    /// Takes address and credentials apart; the server is reached at the first call.
    pub(crate) fn new(
        address: &Address,
        credentials: &Credentials,
        opening: Opening,
    ) -> Result<Self> {
        credentials.allow_only("swift", &[USER, PASSWORD, TOKEN, CERTIFICATE_FILE])?;
        address.allow_only(&["auth", "storage"])?;
        let access = match (address.server("auth")?, address.server("storage")?) {
            (Some(auth), None) => Access::Password {
                auth,
                user: header(credentials.required(USER, "swift")?)?,
                password: header(credentials.required(PASSWORD, "swift")?)?,
            },
            (None, Some(storage)) => {
                let token = header(credentials.required(TOKEN, "swift")?)?;
                Access::Given(Arc::new(Session { storage, token }))
            }
            _ => return Err(address.refused("it wants either ?auth=URL or ?storage=URL")),
        };
        let prefix = address.prefix();
        let client = http::client(credentials.get(CERTIFICATE_FILE))?;
        let (session, is_ready) = (Mutex::new(None), OnceCell::new());
        let container = address.host.clone();
        Ok(Self { client, access, container, prefix, opening, session, is_ready })
    }

    fn invalid(&self, detail: impl Into<String>) -> StorageError {
        StorageError::InvalidAnswer { store: self.describe(), detail: detail.into() }
    }

    fn refused(&self, key: Option<&ObjectKey>, response: &Response) -> StorageError {
        http_answer::refusal(self.describe(), key, response)
    }

    /// Returns the session, or a new one instead of `expired`.
    async fn session(&self, expired: Option<&Arc<Session>>) -> Result<Arc<Session>> {
        let Access::Password { auth, user, password } = &self.access else {
            let Access::Given(session) = &self.access else { unreachable!("there are two") };
            return Ok(Arc::clone(session));
        };
        let mut held = self.session.lock().await;
        let is_expired =
            |session: &&Arc<Session>| expired.is_some_and(|expired| Arc::ptr_eq(expired, session));
        if let Some(session) = held.as_ref().filter(|session| !is_expired(session)) {
            return Ok(Arc::clone(session));
        }
        let request = self.client.get(auth.clone());
        let request = request.header("X-Auth-User", user).header("X-Auth-Key", password);
        let response = self.sent(request).await?;
        if !response.status().is_success() {
            return Err(self.refused(None, &response));
        }
        let header = |name: &str| response.headers().get(name);
        let storage = header("X-Storage-Url").and_then(|value| value.to_str().ok());
        let storage = address::server(storage.unwrap_or_default())
            .map_err(|_| self.invalid("no address of a storage"))?;
        let mut token = header("X-Auth-Token").cloned().ok_or_else(|| self.invalid("no token"))?;
        token.set_sensitive(true);
        let session = Arc::new(Session { storage, token });
        *held = Some(Arc::clone(&session));
        Ok(session)
    }

    async fn sent(&self, request: RequestBuilder) -> Result<Response> {
        request.send().await.map_err(|error| http_answer::transport_error(self.describe(), error))
    }

    /// Sends a request for `path` below the account, with a new token when the old one has expired.
    async fn ask(
        &self,
        method: Method,
        path: &str,
        finish: impl Fn(RequestBuilder) -> RequestBuilder,
    ) -> Result<Response> {
        let mut session = self.session(None).await?;
        for is_last in [false, true] {
            let mut url = session.storage.clone();
            url.set_path(&format!("{}/{path}", session.storage.path().trim_end_matches('/')));
            let request = self.client.request(method.clone(), url);
            let request = finish(request).header("X-Auth-Token", &session.token);
            let response = self.sent(request).await?;
            if is_last || response.status() != StatusCode::UNAUTHORIZED {
                return Ok(response);
            }
            session = self.session(Some(&session)).await?;
        }
        unreachable!("the second answer is taken as it is")
    }

    /// Makes the container where it may be made, before the first call.
    async fn ready(&self) -> Result<()> {
        self.is_ready.get_or_try_init(|| self.prepare()).await.map(|_| ())
    }

    async fn prepare(&self) -> Result<()> {
        let method = match self.opening {
            Opening::CreateIfMissing => Method::PUT,
            Opening::Existing => Method::HEAD,
        };
        let response = self.ask(method, &self.container, |request| request).await?;
        match response.status() {
            status if status.is_success() => Ok(()),
            StatusCode::NOT_FOUND => Err(StorageError::NoStore {
                store: self.describe(),
                detail: "there is no such container".to_owned(),
            }),
            _ => Err(self.refused(None, &response)),
        }
    }

    fn path(&self, key: &ObjectKey) -> String {
        format!("{}/{}{key}", self.container, self.prefix)
    }

    async fn object(
        &self,
        method: Method,
        key: &ObjectKey,
        finish: impl Fn(RequestBuilder) -> RequestBuilder,
    ) -> Result<Response> {
        self.ready().await?;
        self.ask(method, &self.path(key), finish).await
    }

    async fn page(&self, prefix: &str, marker: &str, limit: usize) -> Result<Vec<ListLine>> {
        let limit_text = limit.to_string();
        let query =
            [("format", "json"), ("prefix", prefix), ("marker", marker), ("limit", &limit_text)];
        let response =
            self.ask(Method::GET, &self.container, |request| request.query(&query)).await?;
        if response.status() != StatusCode::OK {
            return Err(self.refused(None, &response));
        }
        let body = read_body(self.describe(), response, limit as u64 * LIST_ENTRY_SIZE_MAX + 1024);
        serde_json::from_slice(&body.await?)
            .map_err(|error| self.invalid(format!("a list that cannot be read: {error}")))
    }

    async fn part(
        &self,
        key: &ObjectKey,
        range: String,
        length_max: u64,
    ) -> Result<http_answer::Answer> {
        let response =
            self.object(Method::GET, key, |request| request.header(RANGE, &range)).await?;
        let answer = read_part(&self.describe(), response, length_max).await?;
        answer.map_err(|response| self.refused(Some(key), &response))
    }
}

/// The length is said even of an empty body, because Swift wants it said.
fn with_body(request: RequestBuilder, bytes: Bytes) -> RequestBuilder {
    request.header(CONTENT_LENGTH, bytes.len()).body(bytes)
}

fn header(text: &str) -> Result<HeaderValue> {
    let mut value = HeaderValue::from_str(text).map_err(|_| {
        crate::credentials::invalid("a value has characters that cannot be sent".to_owned())
    })?;
    value.set_sensitive(true);
    Ok(value)
}

impl fmt::Debug for SwiftStore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("SwiftStore").field(&self.describe()).finish()
    }
}

#[async_trait]
impl ObjectStore for SwiftStore {
    fn describe(&self) -> String {
        let server = match &self.access {
            Access::Password { auth, .. } => auth,
            Access::Given(session) => &session.storage,
        };
        format!("Swift container {} at {}", self.container, server.origin().ascii_serialization())
    }

    async fn put(&self, key: &ObjectKey, bytes: Bytes, mode: PutMode) -> Result<PutOutcome> {
        check_size(key, bytes.len() as u64)?;
        if mode == PutMode::IfAbsent {
            return Err(StorageError::Unsupported {
                store: self.describe(),
                operation: "create an object only when it is absent",
            });
        }
        let response =
            self.object(Method::PUT, key, |request| with_body(request, bytes.clone())).await?;
        match response.status() {
            StatusCode::CREATED => Ok(PutOutcome::Written),
            _ => Err(self.refused(Some(key), &response)),
        }
    }

    async fn get(&self, key: &ObjectKey) -> Result<Option<Bytes>> {
        let response = self.object(Method::GET, key, |request| request).await?;
        match response.status() {
            StatusCode::OK => {
                check_size(key, header_length(&response).unwrap_or(0))?;
                read_whole(&self.describe(), response).await.map(Some)
            }
            StatusCode::NOT_FOUND => Ok(None),
            _ => Err(self.refused(Some(key), &response)),
        }
    }

    async fn get_range(&self, key: &ObjectKey, range: Range<u64>) -> Result<Option<Bytes>> {
        let Some(range) = askable(&range) else {
            return Ok(self.size(key).await?.map(|_| Bytes::new()));
        };
        let header = format!("bytes={}-{}", range.start, range.end - 1);
        let answer = self.part(key, header, range.end - range.start).await?;
        answer.cut_to(&range).map_err(|detail| self.invalid(detail))
    }

    async fn get_tail(&self, key: &ObjectKey, length: u64) -> Result<Option<Bytes>> {
        // Some releases of Swift read numbers of 63 bits.
        let length = length.min(OBJECT_SIZE_MAX);
        if length == 0 {
            return Ok(self.size(key).await?.map(|_| Bytes::new()));
        }
        let answer = self.part(key, format!("bytes=-{length}"), length).await?;
        answer.cut_to_tail(length).map_err(|detail| self.invalid(detail))
    }

    async fn size(&self, key: &ObjectKey) -> Result<Option<u64>> {
        let response = self.object(Method::HEAD, key, |request| request).await?;
        match response.status() {
            StatusCode::OK | StatusCode::NO_CONTENT => {
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
        self.ready().await?;
        let mut names = Names::new(&self.prefix, prefix, start_after, limit);
        while names.wanted() > 0 {
            let wanted = names.wanted().min(LIST_LIMIT_MAX);
            let lines = self.page(names.prefix(), &names.position(), wanted).await?;
            let is_last = lines.len() < wanted;
            for line in lines {
                names.take(line.name, line.bytes).map_err(|detail| self.invalid(detail))?;
            }
            if is_last {
                break;
            }
        }
        Ok(names.entries())
    }

    async fn delete(&self, key: &ObjectKey) -> Result<()> {
        let response = self.object(Method::DELETE, key, |request| request).await?;
        match response.status() {
            StatusCode::OK | StatusCode::NO_CONTENT | StatusCode::NOT_FOUND => Ok(()),
            _ => Err(self.refused(Some(key), &response)),
        }
    }
}
