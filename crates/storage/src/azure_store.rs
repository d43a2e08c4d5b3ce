//! The driver `azblob:`: a container of Azure Blob Storage.
//!
//! An object is created only where none is by `If-None-Match: *` on the writing of a block blob, which Azure decides with it.
//! Lists are in the order of the names and show what was just written. They cannot begin after a name, only where an earlier
//! page began, so the beginnings of pages are remembered; a list that begins elsewhere reads what comes before, too.

mod listing;
mod pages;
mod signature;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use model::environment::Clock;
use reqwest::header::{
    AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, IF_NONE_MATCH, RANGE,
};
use reqwest::{Client, Method, Request, RequestBuilder, Response, StatusCode, Url};
use tokio::sync::OnceCell;

use crate::credentials::{CERTIFICATE_FILE, Credentials, SECRET_KEY, TOKEN, invalid};
use crate::error::{Result, StorageError};
use crate::file_store::Opening;
use crate::http_answer::{self, Names, header_length, range_header, read_body, read_range};
use crate::key::{ObjectKey, check_prefix};
use crate::object_store::{
    ObjectEntry, ObjectStore, PutMode, PutOutcome, WHOLE, askable, check_size, whole,
};
use crate::open::address::{self, Address};
use crate::open::clock::RuntimeClock;
use crate::open::http;

use pages::Pages;
use signature::AccountKey;

/// The release of the interface that is spoken.
const VERSION: &str = "2021-12-02";
/// Longest page of a list; Azure gives at most 5000.
const PAGE: usize = 1000;
const ANSWER_SIZE_MAX: u64 = 16 << 20;

/// A container.
pub(crate) struct AzureStore {
    client: Client,
    /// The address of the account.
    server: Url,
    account: String,
    container: String,
    /// What all names begin with: empty, or with a slash at its end.
    prefix: String,
    access: Access,
    clock: Arc<dyn Clock>,
    pages: Pages,
    opening: Opening,
    is_ready: OnceCell<()>,
}

/// What proves who asks.
enum Access {
    Key(AccountKey),
    /// A shared access signature: pairs of a query.
    Shared(Vec<(String, String)>),
}

impl AzureStore {
    /// Takes address and credentials apart; the server is reached at the first call.
    pub(crate) fn new(
        address: &Address,
        credentials: &Credentials,
        opening: Opening,
    ) -> Result<Self> {
        credentials.allow_only("azblob", &[SECRET_KEY, TOKEN, CERTIFICATE_FILE])?;
        address.allow_only(&["account", "endpoint"])?;
        let account = address.option("account");
        let account = account.ok_or_else(|| address.refused("it wants ?account=NAME"))?.to_owned();
        if !account.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()) {
            return Err(address.refused("an account has lower-case letters and digits"));
        }
        let server = match address.server("endpoint")? {
            Some(endpoint) => endpoint,
            None => address::server(&format!("https://{account}.blob.core.windows.net/"))?,
        };
        let access = match (credentials.get(SECRET_KEY), credentials.get(TOKEN)) {
            (Some(key), None) => Access::Key(AccountKey::parse(key)?),
            (None, Some(token)) => {
                let pairs = url::form_urlencoded::parse(token.trim_start_matches('?').as_bytes());
                Access::Shared(pairs.into_owned().collect())
            }
            _ => {
                let detail = "azblob: wants either 'secret_key' or 'token'";
                return Err(invalid(detail.to_owned()));
            }
        };
        let prefix = address.prefix();
        let client = http::client(credentials.get(CERTIFICATE_FILE))?;
        let (container, clock) = (address.host.clone(), Arc::new(RuntimeClock::new()));
        let (pages, is_ready) = (Pages::default(), OnceCell::new());
        Ok(Self {
            client,
            server,
            account,
            container,
            prefix,
            access,
            clock,
            pages,
            opening,
            is_ready,
        })
    }

    fn invalid(&self, detail: impl Into<String>) -> StorageError {
        StorageError::InvalidAnswer { store: self.describe(), detail: detail.into() }
    }

    fn refused(&self, key: Option<&ObjectKey>, response: &Response) -> StorageError {
        http_answer::refusal(self.describe(), key, response)
    }

    fn url(&self, key: Option<&ObjectKey>) -> Url {
        let mut url = self.server.clone();
        let base = self.server.path().trim_end_matches('/');
        let object = key.map(|key| format!("/{}{key}", self.prefix)).unwrap_or_default();
        url.set_path(&format!("{base}/{}{object}", self.container));
        url
    }

    /// Makes the container where it may be made, before the first call.
    async fn ready(&self) -> Result<()> {
        if self.opening == Opening::Existing {
            return Ok(());
        }
        self.is_ready.get_or_try_init(|| self.make_container()).await.map(|_| ())
    }

    async fn make_container(&self) -> Result<()> {
        let mut url = self.url(None);
        url.set_query(Some("restype=container"));
        let length = |request: RequestBuilder| request.header(CONTENT_LENGTH, 0);
        let response = self.send(Method::PUT, url, length).await?;
        match response.status() {
            // Who may not make containers may still write into one that is there.
            StatusCode::CREATED | StatusCode::CONFLICT | StatusCode::FORBIDDEN => Ok(()),
            _ => Err(self.refused(None, &response)),
        }
    }

    async fn ask(
        &self,
        method: Method,
        url: Url,
        finish: impl FnOnce(RequestBuilder) -> RequestBuilder,
    ) -> Result<Response> {
        self.ready().await?;
        self.send(method, url, finish).await
    }

    /// Signs a request and sends it.
    async fn send(
        &self,
        method: Method,
        mut url: Url,
        finish: impl FnOnce(RequestBuilder) -> RequestBuilder,
    ) -> Result<Response> {
        if let Access::Shared(pairs) = &self.access {
            url.query_pairs_mut().extend_pairs(pairs);
        }
        let date = signature::http_date(self.clock.now().seconds);
        let request = self.client.request(method, url);
        let request = request.header("x-ms-version", VERSION).header("x-ms-date", date);
        let mut request: Request =
            finish(request).build().map_err(|_| self.invalid("a request that cannot be built"))?;
        if let Access::Key(key) = &self.access {
            let signed =
                format!("SharedKey {}:{}", self.account, key.sign(&self.account, &request));
            let mut value = HeaderValue::from_str(&signed)
                .map_err(|_| invalid("the name of the account cannot be sent".to_owned()))?;
            value.set_sensitive(true);
            request.headers_mut().insert(AUTHORIZATION, value);
        }
        let answered = self.client.execute(request).await;
        answered.map_err(|error| http_answer::transport_error(self.describe(), error))
    }

    async fn read(&self, key: &ObjectKey, range: Range<u64>) -> Result<Option<Bytes>> {
        let response = self
            .ask(Method::GET, self.url(Some(key)), |request| match range_header(&range) {
                None => request,
                Some(header) => request.header(RANGE, header),
            })
            .await?;
        // Azurite answers so where Azure says 416.
        if response.status() == StatusCode::PARTIAL_CONTENT && header_length(&response) == Some(0) {
            return Ok(Some(Bytes::new()));
        }
        let found = read_range(&self.describe(), response, &range).await?;
        found.map_err(|response| self.refused(Some(key), &response))
    }

    async fn page(&self, prefix: &str, marker: &str, limit: usize) -> Result<listing::Page> {
        let mut url = self.url(None);
        let limit = limit.to_string();
        url.query_pairs_mut()
            .append_pair("restype", "container")
            .append_pair("comp", "list")
            .append_pair("prefix", prefix)
            .append_pair("maxresults", &limit);
        if !marker.is_empty() {
            url.query_pairs_mut().append_pair("marker", marker);
        }
        let response = self.ask(Method::GET, url, |request| request).await?;
        if response.status() != StatusCode::OK {
            return Err(self.refused(None, &response));
        }
        let body = read_body(self.describe(), response, ANSWER_SIZE_MAX).await?;
        listing::parse(&body).map_err(|detail| self.invalid(detail))
    }
}

impl fmt::Debug for AzureStore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("AzureStore").field(&self.describe()).finish()
    }
}

#[async_trait]
impl ObjectStore for AzureStore {
    fn describe(&self) -> String {
        let server = self.server.origin().ascii_serialization();
        format!("Azure container {} at {server}", self.container)
    }

    async fn put(&self, key: &ObjectKey, bytes: Bytes, mode: PutMode) -> Result<PutOutcome> {
        check_size(key, bytes.len() as u64)?;
        let is_new = mode == PutMode::IfAbsent;
        let response = self
            .ask(Method::PUT, self.url(Some(key)), |request| {
                let request = request.header("x-ms-blob-type", "BlockBlob");
                let request = request.header(CONTENT_TYPE, "application/octet-stream");
                let request = request.header(CONTENT_LENGTH, bytes.len());
                let request = if is_new { request.header(IF_NONE_MATCH, "*") } else { request };
                request.body(bytes.clone())
            })
            .await?;
        match response.status() {
            StatusCode::CREATED => Ok(PutOutcome::Written),
            StatusCode::PRECONDITION_FAILED if is_new => Ok(PutOutcome::Exists),
            StatusCode::CONFLICT if is_new && is_word(&response, "BlobAlreadyExists") => {
                Ok(PutOutcome::Exists)
            }
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
        let response = self.ask(Method::HEAD, self.url(Some(key)), |request| request).await?;
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
        let mut names = Names::new(&self.prefix, prefix, start_after, limit);
        let mut marker = self.pages.before(names.prefix(), &names.position());
        while names.wanted() > 0 {
            // What comes before the start is read, too, in pages as long as may be.
            let count = if start_after.is_some() { PAGE } else { names.wanted().min(PAGE) };
            let page = self.page(names.prefix(), &marker, count).await?;
            if let Some(first) = page.blobs.first().filter(|_| !marker.is_empty()) {
                self.pages.remember(names.prefix(), &first.name, &marker);
            }
            for blob in page.blobs {
                names.take(blob.name, blob.size).map_err(|detail| self.invalid(detail))?;
            }
            if page.next.is_empty() {
                break;
            }
            marker = page.next;
        }
        Ok(names.entries())
    }

    async fn delete(&self, key: &ObjectKey) -> Result<()> {
        let response = self.ask(Method::DELETE, self.url(Some(key)), |request| request).await?;
        match response.status() {
            StatusCode::ACCEPTED | StatusCode::NOT_FOUND => Ok(()),
            _ => Err(self.refused(Some(key), &response)),
        }
    }
}

/// Returns whether Azure names an error so.
fn is_word(response: &Response, word: &str) -> bool {
    response.headers().get("x-ms-error-code").is_some_and(|value| value == word)
}
