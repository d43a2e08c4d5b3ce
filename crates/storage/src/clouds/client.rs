//! Requests to a service, signed; and what its refusals mean.

#![cfg_attr(not(feature = "stores"), allow(dead_code, reason = "a driver uses a part of it"))]

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use model::environment::Clock;
use reqwest::header::{LOCATION, RANGE};
use reqwest::{Client, RequestBuilder, Response, StatusCode, Url};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::credentials::{
    CERTIFICATE_FILE, CLIENT_ID, CLIENT_SECRET, Credentials, TOKEN, TOKEN_FILE,
};
use crate::error::{Result, StorageError};
use crate::http_answer::{self, read_body, read_range};
use crate::open::address::Address;
use crate::open::clock::RuntimeClock;
use crate::open::http;
use crate::sign_in::{Provider, SignIn, at_endpoint};

/// Longest answer that is not an object: a page of a list.
const ANSWER_SIZE_MAX: u64 = 16 << 20;
/// How many other places a service may send a reader to, one after the other.
const REDIRECTS_MAX: usize = 4;

/// The longest pause that a request waits for by itself, and how many of them.
const SHORT_PAUSE: Duration = Duration::from_secs(5);
const SHORT_PAUSES_MAX: usize = 4;

/// What an address `SCHEME:FOLDER/FOLDER?endpoint=URL` and its credentials give to a driver.
pub(crate) struct Drivers {
    pub(crate) client: CloudClient,
    pub(crate) endpoint: Option<Url>,
    /// The folders that lead to the store, at least one.
    pub(crate) folders: Vec<String>,
    certificate_file: Option<String>,
}

/// Asks one service in the name of a person who has signed in.
pub(crate) struct CloudClient {
    http: Client,
    sign_in: SignIn,
    clock: Arc<dyn Clock>,
    description: String,
    /// Whether the service was told to be elsewhere; only then may it send readers to an address without TLS.
    is_elsewhere: bool,
}

impl Drivers {
    /// Takes address and credentials apart; the service is reached at the first call.
    pub(crate) fn new(scheme: &str, address: &Address, credentials: &Credentials) -> Result<Self> {
        let used = [TOKEN, TOKEN_FILE, CLIENT_ID, CLIENT_SECRET, CERTIFICATE_FILE];
        credentials.allow_only(scheme, &used)?;
        address.allow_only(&["endpoint"])?;
        let endpoint = address.server("endpoint")?;
        let provider = Provider::required(scheme, endpoint.as_ref())?;
        let mut folders = vec![address.host.clone()];
        folders.extend(address.segments.iter().cloned());
        let is_name = |c: char| c.is_ascii_alphanumeric() || " ._-".contains(c);
        if !folders
            .iter()
            .all(|folder| folder.chars().all(is_name) && !folder.ends_with(['.', ' ']))
        {
            return Err(address.refused("its folders want letters, digits, '.', '_' and '-'"));
        }
        let mut description = format!("{} folder {}", provider.name, folders.join("/"));
        if let Some(endpoint) = &endpoint {
            description = format!("{description} at {}", endpoint.origin().ascii_serialization());
        }
        let http = http::client(credentials.get(CERTIFICATE_FILE))?;
        let clock: Arc<dyn Clock> = Arc::new(RuntimeClock::new());
        let sign_in = SignIn::new(
            provider,
            credentials,
            http.clone(),
            Arc::clone(&clock),
            description.clone(),
        )?;
        let is_elsewhere = endpoint.is_some();
        let client = CloudClient { http, sign_in, clock, description, is_elsewhere };
        let certificate_file = credentials.get(CERTIFICATE_FILE).map(str::to_owned);
        Ok(Self { client, endpoint, folders, certificate_file })
    }

    /// Returns a client for questions that the service answers when it has something to say, at the latest after `silence`.
    pub(crate) fn patient_client(&self, silence: Duration) -> Result<Client> {
        http::client_with_silence(self.certificate_file.as_deref(), silence)
    }

    /// Returns an address of the service.
    pub(crate) fn at(&self, address: &str) -> Url {
        at_endpoint(self.endpoint.as_ref(), address)
    }
}

impl CloudClient {
    pub(crate) fn describe(&self) -> String {
        self.description.clone()
    }

    /// Returns the time since some fixed point.
    pub(crate) fn elapsed(&self) -> Duration {
        self.clock.elapsed()
    }

    /// Returns a token; another one than `spent`.
    pub(crate) async fn token(&self, spent: Option<&str>) -> Result<Arc<str>> {
        self.sign_in.token(spent).await
    }

    /// Sends what `build` makes with a token, once more with another token where the service has had enough of the first.
    /// Any status is an answer, except those that speak of the whole service.
    ///
    /// A refusal for a short time, of which nothing happened, is waited for here: a list of a hundred pages must not begin
    /// anew because of one.
    pub(crate) async fn send(
        &self,
        build: impl Fn(&Client, &str) -> RequestBuilder,
    ) -> Result<Response> {
        self.patiently(|| self.send_once(&build)).await
    }

    async fn patiently<F>(&self, send: impl Fn() -> F) -> Result<Response>
    where
        F: Future<Output = Result<Response>>,
    {
        for _ in 0..SHORT_PAUSES_MAX {
            match send().await {
                Err(StorageError::Throttled { retry_after, .. }) if retry_after <= SHORT_PAUSE => {
                    self.clock.sleep(retry_after).await;
                }
                answer => return answer,
            }
        }
        send().await
    }

    async fn send_once(
        &self,
        build: &impl Fn(&Client, &str) -> RequestBuilder,
    ) -> Result<Response> {
        let token = self.token(None).await?;
        let response = self.sent(build(&self.http, &token)).await?;
        if response.status() != StatusCode::UNAUTHORIZED {
            return Ok(response);
        }
        let token = self.token(Some(&token)).await?;
        self.sent(build(&self.http, &token)).await
    }

    /// Sends a request that needs no token, because its address is the secret.
    pub(crate) async fn send_unsigned(
        &self,
        build: impl Fn(&Client) -> RequestBuilder,
    ) -> Result<Response> {
        self.patiently(|| self.sent(build(&self.http))).await
    }

    async fn sent(&self, request: RequestBuilder) -> Result<Response> {
        let response = request.send().await;
        let response =
            response.map_err(|error| http_answer::transport_error(self.describe(), error))?;
        match response.status() {
            StatusCode::TOO_MANY_REQUESTS => Err(self.refused(&response)),
            status if status.is_server_error() => Err(self.refused(&response)),
            _ => Ok(response),
        }
    }

    /// Asks for what lies at an address, or for a part of it; `range` is the value of the header.
    pub(crate) async fn fetch(&self, url: &Url, range: Option<&str>) -> Result<Response> {
        self.send(|http, token| ranged(http.get(url.clone()).bearer_auth(token), range)).await
    }

    /// Sends a request of another client that needs no token. Whoever asked decides what to do where it is refused.
    pub(crate) async fn send_alone(&self, request: RequestBuilder) -> Result<Response> {
        self.sent(request).await
    }

    /// Waits as long as an answer says that is not ready, within reason.
    pub(crate) async fn pause(&self, response: &Response) {
        let named = http_answer::parse_retry_after(response.headers());
        self.clock.sleep(named.unwrap_or(Duration::from_secs(1)).min(SHORT_PAUSE)).await;
    }

    /// Follows a reader who is sent elsewhere, without the token: whoever is there is somebody else.
    pub(crate) async fn follow(
        &self,
        mut response: Response,
        range: Option<&str>,
    ) -> Result<Response> {
        for _ in 0..REDIRECTS_MAX {
            if !response.status().is_redirection() {
                return Ok(response);
            }
            let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
            let target = location.and_then(|location| response.url().join(location).ok());
            let is_safe = |target: &Url| {
                target.scheme() == "https" || self.is_elsewhere && target.scheme() == "http"
            };
            let Some(target) = target.filter(is_safe) else {
                return Err(self.invalid("it sends readers nowhere"));
            };
            response = self.send_unsigned(|http| ranged(http.get(target.clone()), range)).await?;
        }
        Err(self.invalid("it sends readers in circles"))
    }

    /// Reads what of an object lies in `range`, which is not empty; `None` when the status is none that a reader expects.
    pub(crate) async fn read(
        &self,
        response: Response,
        range: &Range<u64>,
    ) -> Result<Result<Option<Bytes>, Response>> {
        read_range(&self.description, response, range).await
    }

    /// Reads a JSON answer.
    pub(crate) async fn json<A: DeserializeOwned>(&self, response: Response) -> Result<A> {
        let body = read_body(self.describe(), response, ANSWER_SIZE_MAX).await?;
        // The parser's words may quote the answer, and with it a token.
        serde_json::from_slice(&body).map_err(|error| {
            self.invalid(format!("JSON that cannot be read, at byte {}", error.column()))
        })
    }

    /// Reads the JSON of an answer that refuses; what cannot be read is nothing.
    pub(crate) async fn refusal(&self, response: Response) -> Result<Value> {
        let body = read_body(self.describe(), response, ANSWER_SIZE_MAX).await?;
        Ok(serde_json::from_slice(&body).unwrap_or_default())
    }

    /// Says what a status means that the call does not expect.
    pub(crate) fn refused(&self, response: &Response) -> StorageError {
        http_answer::refusal(self.describe(), None, response)
    }

    /// As [`Self::refused`], with the word of the service, which is a word of its documents and no text of ours.
    pub(crate) fn refused_with(&self, status: StatusCode, word: &str) -> StorageError {
        let is_word = |c: char| c.is_ascii_alphanumeric() || "_/.-".contains(c);
        let word: String = word.chars().filter(|c| is_word(*c)).take(80).collect();
        match http_answer::status_error(self.describe(), None, status) {
            StorageError::InvalidAnswer { store, detail } => {
                StorageError::InvalidAnswer { store, detail: format!("{detail}: {word}") }
            }
            StorageError::PermissionDenied { store, detail } => {
                StorageError::PermissionDenied { store, detail: format!("{detail}: {word}") }
            }
            other => other,
        }
    }

    pub(crate) fn invalid(&self, detail: impl Into<String>) -> StorageError {
        StorageError::InvalidAnswer { store: self.describe(), detail: detail.into() }
    }

    pub(crate) fn busy(&self, detail: &str) -> StorageError {
        StorageError::Busy { store: self.describe(), detail: detail.to_owned() }
    }

    pub(crate) fn no_space(&self) -> StorageError {
        StorageError::NoSpace { store: self.describe() }
    }
}

fn ranged(request: RequestBuilder, range: Option<&str>) -> RequestBuilder {
    match range {
        Some(range) => request.header(RANGE, range),
        None => request,
    }
}

impl fmt::Debug for CloudClient {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("CloudClient").field(&self.description).finish()
    }
}
