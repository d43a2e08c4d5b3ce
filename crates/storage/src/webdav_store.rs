//! The driver `webdav:`: a folder on a WebDAV server.
//!
//! *Participants*: this tree, the server, other devices. *Goals*: the promises of [`crate::object_store`] on servers
//! whose `If-None-Match: *` looks first and writes later, and whose `MOVE` onto something deletes it first.
//! *Non-goals*: locks, which a crash would leave behind; durability beyond what the server gives.
//! *Invariants*: an object is created by `MOVE` of a folder with `Overwrite: F`, which the file system under the server
//! refuses where a folder stands that holds something, even if the server's own look came too early. An object is
//! replaced by `PUT`, for which servers write aside and rename. A folder is deleted only when it was seen empty, because
//! `DELETE` takes with it what is inside. No redirect is followed, so the password goes to no other host.

mod multistatus;

use std::ops::Range;

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use reqwest::header::{AUTHORIZATION, HeaderValue, RANGE};
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode, Url};

use crate::credentials::{CERTIFICATE_FILE, Credentials, PASSWORD, TOKEN, USER, invalid};
use crate::error::{Result, StorageError};
use crate::http_answer::{self, range_header, read_body, read_range};
use crate::open::{address, http};
use crate::tree_store::{Exclusive, RemoteTree, TreeEntry};

use multistatus::Resource;

/// Longest answer to a question for the contents of a folder.
const LIST_SIZE_MAX: u64 = 64 << 20;

/// What is asked of every resource.
const QUESTION: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?><propfind xmlns=\"DAV:\"><prop>\
                        <resourcetype/><getcontentlength/></prop></propfind>";

/// A folder on a WebDAV server.
pub(crate) struct WebdavTree {
    client: Client,
    base: Url,
    authorization: Option<HeaderValue>,
}

impl WebdavTree {
    /// Takes address and credentials apart; the server is reached at the first call.
    pub(crate) fn new(address: &str, credentials: &Credentials) -> Result<Self> {
        credentials.allow_only("webdav", &[USER, PASSWORD, TOKEN, CERTIFICATE_FILE])?;
        let mut base = address::server(address)?;
        let path = base.path().trim_end_matches('/').to_owned();
        base.set_path(&path);
        let authorization = authorization(credentials, base.username())?;
        let _has_a_host = base.set_username("");
        let client = http::client(credentials.get(CERTIFICATE_FILE))?;
        Ok(Self { client, base, authorization })
    }

    fn url(&self, path: &str) -> Url {
        let mut url = self.base.clone();
        let base = self.base.path().trim_end_matches('/');
        url.set_path(&format!("{base}/{path}"));
        url
    }

    async fn send(&self, request: RequestBuilder) -> Result<Response> {
        let request = match &self.authorization {
            Some(value) => request.header(AUTHORIZATION, value.clone()),
            None => request,
        };
        request.send().await.map_err(|error| http_answer::transport_error(self.describe(), error))
    }

    async fn ask(&self, method: &str, url: Url) -> Result<Response> {
        self.send(self.client.request(named(method), url)).await
    }

    fn refused(&self, response: &Response) -> StorageError {
        http_answer::refusal(self.describe(), None, response)
    }

    /// Tells "done" from "no" from failure.
    fn answered(&self, response: &Response) -> Result<bool> {
        match response.status() {
            StatusCode::OK | StatusCode::CREATED | StatusCode::NO_CONTENT => Ok(true),
            // 403 and 500 are what servers say whose file system refused what they had thought possible.
            StatusCode::FORBIDDEN
            | StatusCode::NOT_FOUND
            | StatusCode::METHOD_NOT_ALLOWED
            | StatusCode::CONFLICT
            | StatusCode::PRECONDITION_FAILED
            | StatusCode::INTERNAL_SERVER_ERROR => Ok(false),
            _ => Err(self.refused(response)),
        }
    }

    /// Says whether a folder landed inside the target instead of taking its name, and takes it away again: so do servers
    /// whose own look came too early and who then move as a shell does.
    async fn is_moved_inside(&self, source: &str, target: &str) -> Result<bool> {
        let name = source.rsplit('/').next().unwrap_or(source);
        let entries = self.entries(target).await?.unwrap_or_default();
        if !entries.iter().any(|entry| entry.name == name) {
            return Ok(false);
        }
        let response = self.ask("DELETE", self.url(&format!("{target}/{name}/"))).await?;
        self.answered(&response)?;
        Ok(true)
    }

    /// Asks what stands at a path, and in it for a depth of 1; nothing when nothing does.
    async fn resources(&self, path: &str, depth: &str) -> Result<Option<Vec<Resource>>> {
        let request = self.client.request(named("PROPFIND"), self.url(path));
        let request = request.header("Depth", depth).header("Content-Type", "application/xml");
        let response = self.send(request.body(QUESTION)).await?;
        match response.status() {
            StatusCode::MULTI_STATUS => {}
            StatusCode::NOT_FOUND => return Ok(None),
            _ => return Err(self.refused(&response)),
        }
        let body = read_body(self.describe(), response, LIST_SIZE_MAX).await?;
        let resources = multistatus::parse(&body)
            .map_err(|detail| StorageError::InvalidAnswer { store: self.describe(), detail })?;
        Ok(Some(resources))
    }
}

/// Returns the header that signs a request, or nothing for a server that lets everybody in.
fn authorization(credentials: &Credentials, user_of_address: &str) -> Result<Option<HeaderValue>> {
    let user = match credentials.get(USER) {
        Some(user) => user,
        None => user_of_address,
    };
    let text = match (credentials.get(TOKEN), credentials.get(PASSWORD)) {
        (Some(_), Some(_)) => {
            return Err(invalid("'token' and 'password' are both given".to_owned()));
        }
        (Some(token), None) => format!("Bearer {token}"),
        (None, Some(password)) => {
            format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
        }
        (None, None) => return Ok(None),
    };
    let mut value = HeaderValue::from_str(&text)
        .map_err(|_| invalid("the token has characters that cannot be sent".to_owned()))?;
    value.set_sensitive(true);
    Ok(Some(value))
}

/// The methods of WebDAV are words that HTTP allows.
fn named(method: &str) -> Method {
    Method::from_bytes(method.as_bytes()).expect("the methods are written in this file")
}

impl std::fmt::Debug for WebdavTree {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("WebdavTree").field(&self.describe()).finish()
    }
}

#[async_trait]
impl RemoteTree for WebdavTree {
    fn describe(&self) -> String {
        format!("WebDAV server {}", self.base)
    }

    fn exclusive(&self) -> Exclusive {
        Exclusive::Folder
    }

    fn replaces_in_place(&self) -> bool {
        true
    }

    async fn make_root(&self) -> Result<()> {
        let path = self.base.path().trim_matches('/').to_owned();
        let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
        let mut last = None;
        for end in ends.filter(|end| *end > 0) {
            let mut url = self.base.clone();
            url.set_path(&format!("/{}/", &path[..end]));
            // Those above may be closed to us, or there already; the last one decides.
            last = Some(self.ask("MKCOL", url).await?);
        }
        match last {
            Some(response) => self.answered(&response).map(drop),
            None => Ok(()),
        }
    }

    async fn entries(&self, folder: &str) -> Result<Option<Vec<TreeEntry>>> {
        let path = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let Some(resources) = self.resources(&path, "1").await? else { return Ok(None) };
        let own = multistatus::path_of(self.url(&path).path());
        let mut entries = Vec::with_capacity(resources.len());
        let mut is_folder = false;
        for resource in resources {
            if resource.path == own {
                is_folder = resource.size.is_none();
                continue;
            }
            let below = resource.path.strip_prefix(&own).and_then(|rest| match own.as_str() {
                "" => Some(rest),
                _ => rest.strip_prefix('/'),
            });
            match below {
                Some(name) if !name.contains('/') => {
                    entries.push(TreeEntry { name: name.to_owned(), size: resource.size });
                }
                _ => {
                    let detail = "a list of another folder".to_owned();
                    return Err(StorageError::InvalidAnswer { store: self.describe(), detail });
                }
            }
        }
        Ok(is_folder.then_some(entries))
    }

    async fn size(&self, path: &str) -> Result<Option<u64>> {
        let resources = self.resources(path, "0").await?;
        Ok(resources.and_then(|resources| resources.first().and_then(|resource| resource.size)))
    }

    async fn read(&self, path: &str, range: Range<u64>) -> Result<Option<Bytes>> {
        let mut request = self.client.get(self.url(path));
        if let Some(header) = range_header(&range) {
            request = request.header(RANGE, header);
        }
        let response = self.send(request).await?;
        let found = read_range(&self.describe(), response, &range).await?;
        found.map_err(|response| self.refused(&response))
    }

    async fn write(&self, path: &str, bytes: Bytes) -> Result<()> {
        let response = self.send(self.client.put(self.url(path)).body(bytes)).await?;
        match response.status() {
            StatusCode::OK | StatusCode::CREATED | StatusCode::NO_CONTENT => Ok(()),
            _ => Err(self.refused(&response)),
        }
    }

    async fn move_folder(&self, source: &str, target: &str) -> Result<bool> {
        // Folders are named with their slash, because some servers redirect where it is missing.
        let (from, to) = (self.url(&format!("{source}/")), self.url(&format!("{target}/")));
        let request = self.client.request(named("MOVE"), from);
        let request = request.header("Destination", to.as_str()).header("Overwrite", "F");
        let response = self.send(request).await?;
        Ok(self.answered(&response)? && !self.is_moved_inside(source, target).await?)
    }

    async fn make_folder(&self, path: &str) -> Result<bool> {
        let response = self.ask("MKCOL", self.url(&format!("{path}/"))).await?;
        self.answered(&response)
    }

    async fn remove_file(&self, path: &str) -> Result<bool> {
        let response = self.ask("DELETE", self.url(path)).await?;
        self.answered(&response)
    }

    /// Never does: between the look whether it is empty and the deletion, somebody may put something into it.
    async fn remove_folder(&self, _path: &str) -> Result<bool> {
        Ok(false)
    }

    /// Nothing can come in between, because no folder is moved to where one stands.
    async fn remove_object_folder(&self, path: &str) -> Result<bool> {
        match self.entries(path).await? {
            Some(entries) if entries.is_empty() => {
                let response = self.ask("DELETE", self.url(&format!("{path}/"))).await?;
                self.answered(&response)
            }
            _ => Ok(false),
        }
    }
}
