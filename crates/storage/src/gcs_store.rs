//! The driver `gcs:`: a bucket of Google Cloud Storage, by its JSON interface.
//!
//! An object is created only where none is by `ifGenerationMatch=0`, of which Google says that it is decided with the writing.
//! Lists are in the order of the names, and show what was just written; both is promised. Tokens come from a service account,
//! whose key signs a request for each (RFC 7523), from somebody else, or from nobody where the server asks for none.

use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use bytes::Bytes;
use model::environment::Clock;
use reqwest::header::{CONTENT_LENGTH, CONTENT_TYPE, RANGE};
use reqwest::{Client, RequestBuilder, Response, StatusCode, Url};
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::Mutex;

use crate::credentials::{CERTIFICATE_FILE, Credentials, SERVICE_ACCOUNT_FILE, TOKEN, invalid};
use crate::error::{Result, StorageError};
use crate::http_answer::{self, Names, range_header, read_body, read_range};
use crate::key::{ObjectKey, check_prefix};
use crate::object_store::{
    ObjectEntry, ObjectStore, PutMode, PutOutcome, WHOLE, askable, check_size, whole,
};
use crate::open::address::{self, Address};
use crate::open::clock::RuntimeClock;
use crate::open::http;

const SERVER: &str = "https://storage.googleapis.com";
const SCOPE: &str = "https://www.googleapis.com/auth/devstorage.read_write";
/// How long a token lives, and how long before its end it counts as ended, in seconds.
const TOKEN_LIFE_S: i64 = 3600;
const MARGIN_S: i64 = 60;
/// Longest page of a list.
const PAGE: usize = 1000;
const ANSWER_SIZE_MAX: u64 = 16 << 20;

/// A bucket.
pub(crate) struct GcsStore {
    client: Client,
    server: Url,
    bucket: String,
    /// What all names begin with: empty, or with a slash at its end.
    prefix: String,
    access: Access,
    clock: Arc<dyn Clock>,
}

/// Where tokens come from.
enum Access {
    Nobody,
    Given(String),
    Account(Box<Signer>),
}

/// A service account, and the token that it was given last, with its end.
struct Signer {
    account: Account,
    key: RsaKeyPair,
    held: Mutex<Option<(Arc<str>, i64)>>,
}

/// The file of a service account, as Google gives it.
#[derive(Deserialize)]
struct Account {
    client_email: String,
    private_key: String,
    token_uri: String,
}

#[derive(Deserialize)]
struct TokenAnswer {
    access_token: String,
}

#[derive(Deserialize)]
struct Object {
    name: String,
    /// A number as text.
    size: String,
}

#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    items: Vec<Object>,
    #[serde(rename = "nextPageToken")]
    next: Option<String>,
}

impl GcsStore {
    /// Takes address and credentials apart; the server is reached at the first call.
    pub(crate) fn new(address: &Address, credentials: &Credentials) -> Result<Self> {
        credentials.allow_only("gcs", &[SERVICE_ACCOUNT_FILE, TOKEN, CERTIFICATE_FILE])?;
        address.allow_only(&["endpoint"])?;
        let endpoint = address.server("endpoint")?;
        let is_elsewhere = endpoint.is_some();
        let server = match endpoint {
            Some(endpoint) => endpoint,
            None => address::server(SERVER)?,
        };
        let access = match (credentials.get(SERVICE_ACCOUNT_FILE), credentials.get(TOKEN)) {
            (Some(file), None) => Access::of_account(Path::new(file))?,
            (None, Some(token)) => Access::Given(token.to_owned()),
            (None, None) if is_elsewhere => Access::Nobody,
            _ => {
                let detail = "gcs: wants either 'service_account_file' or 'token'";
                return Err(invalid(detail.to_owned()));
            }
        };
        let prefix = address.prefix();
        let client = http::client(credentials.get(CERTIFICATE_FILE))?;
        let (bucket, clock) = (address.host.clone(), Arc::new(RuntimeClock::new()));
        Ok(Self { client, server, bucket, prefix, access, clock })
    }

    fn invalid(&self, detail: impl Into<String>) -> StorageError {
        StorageError::InvalidAnswer { store: self.describe(), detail: detail.into() }
    }

    fn refused(&self, key: Option<&ObjectKey>, response: &Response) -> StorageError {
        http_answer::refusal(self.describe(), key, response)
    }

    /// Returns an address of the interface; `below` is `/storage/v1` or `/upload/storage/v1`.
    fn url(&self, below: &str, object: Option<&ObjectKey>) -> Url {
        let mut url = self.server.clone();
        let base = self.server.path().trim_end_matches('/');
        url.set_path(&format!("{base}{below}/b/{}/o", self.bucket));
        if let (Some(key), Ok(mut segments)) = (object, url.path_segments_mut()) {
            // The slashes of a name are no slashes of the address.
            segments.push(&format!("{}{key}", self.prefix));
        }
        url
    }

    async fn sent(&self, request: RequestBuilder) -> Result<Response> {
        request.send().await.map_err(|error| http_answer::transport_error(self.describe(), error))
    }

    /// Sends what `build` makes with a token, once more with another one where the first has ended.
    async fn ask(&self, build: impl Fn(&Client) -> RequestBuilder) -> Result<Response> {
        let mut spent: Option<Arc<str>> = None;
        loop {
            let token = self.token(spent.as_deref()).await?;
            let request = match &token {
                Some(token) => build(&self.client).bearer_auth(token),
                None => build(&self.client),
            };
            let response = self.sent(request).await?;
            let may_renew = matches!(self.access, Access::Account(_)) && spent.is_none();
            if response.status() != StatusCode::UNAUTHORIZED || !may_renew {
                return Ok(response);
            }
            spent = token;
        }
    }

    async fn token(&self, spent: Option<&str>) -> Result<Option<Arc<str>>> {
        let (account, key, held) = match &self.access {
            Access::Nobody => return Ok(None),
            Access::Given(token) => return Ok(Some(token.as_str().into())),
            Access::Account(signer) => (&signer.account, &signer.key, &signer.held),
        };
        let now = self.clock.now().seconds;
        let mut held = held.lock().await;
        if let Some((token, end)) = &*held
            && *end - MARGIN_S > now
            && spent != Some(token)
        {
            return Ok(Some(token.clone()));
        }
        let form = account.request(key, now)?;
        let request = self.client.post(&account.token_uri).body(form);
        let request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        let response = self.sent(request).await?;
        if !response.status().is_success() {
            return Err(self.refused(None, &response));
        }
        let body = read_body(self.describe(), response, ANSWER_SIZE_MAX).await?;
        let answer: TokenAnswer =
            serde_json::from_slice(&body).map_err(|_| self.invalid("no token"))?;
        let token: Arc<str> = answer.access_token.into();
        *held = Some((token.clone(), now + TOKEN_LIFE_S));
        Ok(Some(token))
    }

    async fn page(&self, query: &[(&str, &str)], next: Option<&str>) -> Result<Page> {
        let mut url = self.url("/storage/v1", None);
        url.query_pairs_mut().extend_pairs(query);
        if let Some(next) = next {
            url.query_pairs_mut().append_pair("pageToken", next);
        }
        let response = self.ask(|http| http.get(url.clone())).await?;
        if response.status() != StatusCode::OK {
            return Err(self.refused(None, &response));
        }
        let body = read_body(self.describe(), response, ANSWER_SIZE_MAX).await?;
        serde_json::from_slice(&body).map_err(|_| self.invalid("a list that cannot be read"))
    }

    async fn read(&self, key: &ObjectKey, range: Range<u64>) -> Result<Option<Bytes>> {
        let mut url = self.url("/storage/v1", Some(key));
        url.set_query(Some("alt=media"));
        let header = range_header(&range);
        let response = self
            .ask(|http| match &header {
                None => http.get(url.clone()),
                Some(header) => http.get(url.clone()).header(RANGE, header),
            })
            .await?;
        let found = read_range(&self.describe(), response, &range).await?;
        found.map_err(|response| self.refused(Some(key), &response))
    }
}

impl Access {
    fn of_account(path: &Path) -> Result<Self> {
        let shown = path.display();
        let text = std::fs::read_to_string(path)
            .map_err(|error| invalid(format!("the file {shown} cannot be read: {error}")))?;
        let no_key = || invalid(format!("the file {shown} is no key of a service account"));
        let account: Account = serde_json::from_str(&text).map_err(|_| no_key())?;
        address::server(&account.token_uri)?;
        let lines = account.private_key.lines().filter(|line| !line.starts_with("-----"));
        let encoded: String = lines.collect();
        let der = STANDARD.decode(encoded).map_err(|_| no_key())?;
        let key = RsaKeyPair::from_pkcs8(&der).map_err(|_| no_key())?;
        Ok(Self::Account(Box::new(Signer { account, key, held: Mutex::new(None) })))
    }
}

impl Account {
    /// Makes the form that asks for a token: a claim, signed.
    fn request(&self, key: &RsaKeyPair, now: i64) -> Result<String> {
        let head = json!({"alg": "RS256", "typ": "JWT"});
        let claim = json!({
            "iss": self.client_email,
            "scope": SCOPE,
            "aud": self.token_uri,
            "iat": now,
            "exp": now + TOKEN_LIFE_S,
        });
        let encode = |text: String| URL_SAFE_NO_PAD.encode(text);
        let claim = format!("{}.{}", encode(head.to_string()), encode(claim.to_string()));
        let mut signature = vec![0; key.public().modulus_len()];
        key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), claim.as_bytes(), &mut signature)
            .map_err(|_| invalid("the key of the service account signs nothing".to_owned()))?;
        let assertion = format!("{claim}.{}", URL_SAFE_NO_PAD.encode(signature));
        Ok(url::form_urlencoded::Serializer::new(String::new())
            .append_pair("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer")
            .append_pair("assertion", &assertion)
            .finish())
    }
}

impl fmt::Debug for GcsStore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("GcsStore").field(&self.describe()).finish()
    }
}

#[async_trait]
impl ObjectStore for GcsStore {
    fn describe(&self) -> String {
        let server = self.server.origin().ascii_serialization();
        format!("Google Cloud Storage bucket {} at {server}", self.bucket)
    }

    async fn put(&self, key: &ObjectKey, bytes: Bytes, mode: PutMode) -> Result<PutOutcome> {
        check_size(key, bytes.len() as u64)?;
        let mut url = self.url("/upload/storage/v1", None);
        let name = format!("{}{key}", self.prefix);
        url.query_pairs_mut().append_pair("uploadType", "media").append_pair("name", &name);
        if mode == PutMode::IfAbsent {
            url.query_pairs_mut().append_pair("ifGenerationMatch", "0");
        }
        let response = self
            .ask(|http| {
                let request = http.post(url.clone()).header(CONTENT_LENGTH, bytes.len());
                request.header(CONTENT_TYPE, "application/octet-stream").body(bytes.clone())
            })
            .await?;
        match response.status() {
            StatusCode::OK | StatusCode::CREATED => Ok(PutOutcome::Written),
            StatusCode::PRECONDITION_FAILED if mode == PutMode::IfAbsent => Ok(PutOutcome::Exists),
            _ => Err(self.refused(Some(key), &response)),
        }
    }

    async fn get(&self, key: &ObjectKey) -> Result<Option<Bytes>> {
        whole(key, self.read(key, WHOLE).await?)
    }

    async fn get_range(&self, key: &ObjectKey, range: Range<u64>) -> Result<Option<Bytes>> {
        match askable(&range) {
            Some(range) => self.read(key, range).await,
            None => Ok(self.size(key).await?.map(|_| Bytes::new())),
        }
    }

    async fn size(&self, key: &ObjectKey) -> Result<Option<u64>> {
        let mut url = self.url("/storage/v1", Some(key));
        url.set_query(Some("fields=name,size"));
        let response = self.ask(|http| http.get(url.clone())).await?;
        match response.status() {
            StatusCode::OK => {
                let body = read_body(self.describe(), response, ANSWER_SIZE_MAX).await?;
                let object: Option<Object> = serde_json::from_slice(&body).ok();
                let size = object.and_then(|object| object.size.parse().ok());
                size.map(Some).ok_or_else(|| self.invalid("an object without a size"))
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
        let mut names = Names::new(&self.prefix, prefix, start_after, limit);
        // It begins at this name, and not after it.
        let start = names.position();
        let count = limit.saturating_add(1).min(PAGE).to_string();
        let prefix = names.prefix().to_owned();
        let query = [
            ("prefix", prefix.as_str()),
            ("startOffset", &start),
            ("maxResults", &count),
            ("fields", "nextPageToken,items(name,size)"),
        ];
        let mut next = None;
        while names.wanted() > 0 {
            let page = self.page(&query, next.as_deref()).await?;
            for object in page.items {
                let size = object.size.parse().map_err(|_| self.invalid("a size in words"))?;
                names.take(object.name, size).map_err(|detail| self.invalid(detail))?;
            }
            next = page.next;
            if next.is_none() {
                break;
            }
        }
        Ok(names.entries())
    }

    async fn delete(&self, key: &ObjectKey) -> Result<()> {
        let url = self.url("/storage/v1", Some(key));
        let response = self.ask(|http| http.delete(url.clone())).await?;
        match response.status() {
            StatusCode::OK | StatusCode::NO_CONTENT | StatusCode::NOT_FOUND => Ok(()),
            _ => Err(self.refused(Some(key), &response)),
        }
    }
}
