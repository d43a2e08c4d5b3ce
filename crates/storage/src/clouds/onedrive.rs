//! The driver `onedrive:`: a folder among those that OneDrive keeps for programs (`Apps/...`), by Microsoft Graph.
//!
//! A file is created only where none is by `conflictBehavior=fail`; Graph answers 409 `nameAlreadyExists` to all but one. What
//! is longer than [`WHOLE_MAX`] goes up in parts, in an upload session; a part that breaks off is gone on with where the
//! service says. The address of a session is its secret: requests to it carry no token.

use std::ops::Range;

use async_trait::async_trait;
use bytes::Bytes;
use reqwest::header::{CONTENT_RANGE, CONTENT_TYPE};
use reqwest::{Method, Response, StatusCode, Url};
use serde::Deserialize;
use serde_json::json;

use super::{CloudClient, Drive, DriveFile, Drivers, Place, ShelfStore};
use crate::credentials::Credentials;
use crate::error::{Result, StorageError};
use crate::http_answer::range_header;
use crate::object_store::{PutMode, PutOutcome};
use crate::open::address::Address;

/// The longest file that goes up in one request: a pack does.
const WHOLE_MAX: usize = 6 << 20;
/// The length of a part; Graph wants multiples of 320 KiB, and recommends 5 to 10 MiB.
const PART: usize = 16 * (320 << 10);
/// How often a part is tried to go on with.
const BREAKS_MAX: usize = 8;

/// A folder of a OneDrive.
#[derive(Debug)]
pub(crate) struct OneDrive {
    client: CloudClient,
    /// The folder of the program.
    base: Url,
    /// The folder of the store below it.
    root: String,
}

#[derive(Deserialize)]
struct Page {
    value: Vec<Item>,
    #[serde(rename = "@odata.nextLink")]
    next: Option<String>,
}

#[derive(Deserialize)]
struct Item {
    #[serde(default)]
    name: String,
    size: Option<u64>,
    file: Option<serde_json::Value>,
    folder: Option<serde_json::Value>,
}

#[derive(Deserialize)]
struct Session {
    #[serde(rename = "uploadUrl")]
    url: String,
}

#[derive(Deserialize)]
struct Progress {
    #[serde(rename = "nextExpectedRanges", default)]
    next: Vec<String>,
}

/// What a service says to a part.
enum Went {
    On(usize),
    Done(PutOutcome),
}

/// Opens a folder.
pub(crate) fn open(address: &Address, credentials: &Credentials) -> Result<ShelfStore<OneDrive>> {
    let given = Drivers::new("onedrive", address, credentials)?;
    let base = given.at("https://graph.microsoft.com/v1.0/me/drive/special/approot");
    let root = given.folders.join("/");
    Ok(ShelfStore::new(OneDrive { client: given.client, base, root }))
}

impl OneDrive {
    /// Returns the address of what is at `path` in the store: itself, or one of its sides (`/children`, `/content`).
    fn url(&self, path: &str, side: &str) -> Url {
        let mut url = self.base.clone();
        let colon = if side.is_empty() { "" } else { ":" };
        url.set_path(&format!("{}:/{}{path}{colon}{side}", self.base.path(), self.root));
        url
    }

    fn file(&self, place: &Place, side: &str) -> Url {
        self.url(&format!("/{}/{}", place.shelf, place.name), side)
    }

    async fn ask(&self, method: Method, url: &Url) -> Result<Response> {
        self.client
            .send(|http, token| http.request(method.clone(), url.clone()).bearer_auth(token))
            .await
    }

    /// Says what a refusal means.
    async fn refused(&self, response: Response) -> StorageError {
        let status = response.status();
        let answer = match self.client.refusal(response).await {
            Ok(answer) => answer,
            Err(error) => return error,
        };
        match answer["error"]["code"].as_str() {
            Some("quotaLimitReached") => self.client.no_space(),
            Some("activityLimitReached") => self.client.busy("activityLimitReached"),
            Some(code) => self.client.refused_with(status, code),
            None => self.client.refused_with(status, ""),
        }
    }

    async fn children(&self, path: &str) -> Result<Vec<Item>> {
        let mut url = self.url(path, "/children");
        url.set_query(Some("$select=name,size,file,folder&$top=1000"));
        let mut items = Vec::new();
        loop {
            let response = self.ask(Method::GET, &url).await?;
            match response.status() {
                StatusCode::OK => {}
                StatusCode::NOT_FOUND if items.is_empty() => return Ok(items),
                _ => return Err(self.refused(response).await),
            }
            let page: Page = self.client.json(response).await?;
            items.extend(page.value);
            let Some(next) = page.next else { return Ok(items) };
            // The token goes to the next address as well, so it must be of the same service.
            let next = Url::parse(&next).ok().filter(|next| next.origin() == self.base.origin());
            url = next.ok_or_else(|| self.client.invalid("a list that goes on elsewhere"))?;
        }
    }

    async fn put_whole(&self, place: &Place, bytes: Bytes, mode: PutMode) -> Result<PutOutcome> {
        let mut url = self.file(place, "/content");
        url.query_pairs_mut().append_pair("@microsoft.graph.conflictBehavior", behaviour(mode));
        let response = self
            .client
            .send(|http, token| {
                let request = http.put(url.clone()).bearer_auth(token);
                request.header(CONTENT_TYPE, "application/octet-stream").body(bytes.clone())
            })
            .await?;
        match response.status() {
            StatusCode::OK | StatusCode::CREATED => Ok(PutOutcome::Written),
            StatusCode::CONFLICT if mode == PutMode::IfAbsent => self.exists(response).await,
            _ => Err(self.refused(response).await),
        }
    }

    /// Makes sure that a conflict is that of names.
    async fn exists(&self, response: Response) -> Result<PutOutcome> {
        let status = response.status();
        match self.client.refusal(response).await?["error"]["code"].as_str() {
            Some("nameAlreadyExists") => Ok(PutOutcome::Exists),
            code => Err(self.client.refused_with(status, code.unwrap_or_default())),
        }
    }

    async fn put_in_parts(&self, place: &Place, bytes: Bytes, mode: PutMode) -> Result<PutOutcome> {
        let url = self.file(place, "/createUploadSession");
        let order = json!({"item": {"@microsoft.graph.conflictBehavior": behaviour(mode)}});
        let response = self
            .client
            .send(|http, token| http.post(url.clone()).bearer_auth(token).json(&order))
            .await?;
        match response.status() {
            StatusCode::OK => {}
            StatusCode::CONFLICT if mode == PutMode::IfAbsent => {
                return self.exists(response).await;
            }
            _ => return Err(self.refused(response).await),
        }
        let session: Session = self.client.json(response).await?;
        let session = Url::parse(&session.url).map_err(|_| self.client.invalid("no session"))?;
        let mut start = 0;
        let mut breaks = 0;
        while start < bytes.len() {
            let end = bytes.len().min(start + PART);
            match self.put_part(&session, &bytes, start..end, mode).await {
                Ok(Went::Done(outcome)) => return Ok(outcome),
                Ok(Went::On(next)) if next > start => start = next,
                Ok(Went::On(_)) => breaks += 1,
                Err(StorageError::NotReachable { .. }) if breaks < BREAKS_MAX => {
                    breaks += 1;
                    start = self.progress(&session).await?;
                }
                Err(error) => return Err(error),
            }
            if breaks > BREAKS_MAX {
                break;
            }
        }
        Err(self.client.invalid("an upload that does not end"))
    }

    async fn put_part(
        &self,
        session: &Url,
        bytes: &Bytes,
        part: Range<usize>,
        mode: PutMode,
    ) -> Result<Went> {
        let header = format!("bytes {}-{}/{}", part.start, part.end - 1, bytes.len());
        let body = bytes.slice(part);
        let response = self
            .client
            .send_unsigned(|http| {
                http.put(session.clone()).header(CONTENT_RANGE, &header).body(body.clone())
            })
            .await?;
        match response.status() {
            StatusCode::OK | StatusCode::CREATED => Ok(Went::Done(PutOutcome::Written)),
            StatusCode::ACCEPTED => Ok(Went::On(self.next_of(response).await?)),
            StatusCode::CONFLICT if mode == PutMode::IfAbsent => {
                self.exists(response).await.map(Went::Done)
            }
            // It has this part already.
            StatusCode::RANGE_NOT_SATISFIABLE => Ok(Went::On(self.progress(session).await?)),
            _ => Err(self.refused(response).await),
        }
    }

    /// Asks where an upload goes on.
    async fn progress(&self, session: &Url) -> Result<usize> {
        let response = self.client.send_unsigned(|http| http.get(session.clone())).await?;
        match response.status() {
            StatusCode::OK => self.next_of(response).await,
            _ => Err(self.refused(response).await),
        }
    }

    async fn next_of(&self, response: Response) -> Result<usize> {
        let progress: Progress = self.client.json(response).await?;
        let first = progress.next.first().and_then(|range| range.split('-').next());
        first
            .and_then(|start| start.parse().ok())
            .ok_or_else(|| self.client.invalid("an upload that wants nothing more and is no file"))
    }
}

fn behaviour(mode: PutMode) -> &'static str {
    match mode {
        PutMode::IfAbsent => "fail",
        PutMode::Overwrite => "replace",
    }
}

#[async_trait]
impl Drive for OneDrive {
    fn describe(&self) -> String {
        self.client.describe()
    }

    async fn shelves(&self) -> Result<Vec<String>> {
        let items = self.children("").await?.into_iter();
        Ok(items.filter(|item| item.folder.is_some()).map(|item| item.name).collect())
    }

    async fn files(&self, shelf: &str) -> Result<Vec<DriveFile>> {
        let items = self.children(&format!("/{shelf}")).await?.into_iter();
        let file = |item: Item| Some(DriveFile { size: item.size?, name: item.name });
        Ok(items.filter(|item| item.file.is_some()).filter_map(file).collect())
    }

    async fn put(&self, place: &Place, bytes: Bytes, mode: PutMode) -> Result<PutOutcome> {
        if bytes.len() > WHOLE_MAX {
            self.put_in_parts(place, bytes, mode).await
        } else {
            self.put_whole(place, bytes, mode).await
        }
    }

    async fn read(&self, place: &Place, range: Range<u64>) -> Result<Option<Bytes>> {
        let (url, header) = (self.file(place, "/content"), range_header(&range));
        let response = self.client.fetch(&url, header.as_deref()).await?;
        let response = self.client.follow(response, header.as_deref()).await?;
        match self.client.read(response, &range).await? {
            Ok(found) => Ok(found),
            Err(refused) => Err(self.refused(refused).await),
        }
    }

    async fn size(&self, place: &Place) -> Result<Option<u64>> {
        let mut url = self.file(place, "");
        url.set_query(Some("$select=name,size,file"));
        let response = self.ask(Method::GET, &url).await?;
        match response.status() {
            StatusCode::OK => {
                let item: Item = self.client.json(response).await?;
                Ok(item.size.filter(|_| item.file.is_some()))
            }
            StatusCode::NOT_FOUND => Ok(None),
            _ => Err(self.refused(response).await),
        }
    }

    async fn remove(&self, place: &Place) -> Result<()> {
        let response = self.ask(Method::DELETE, &self.file(place, "")).await?;
        match response.status() {
            StatusCode::NO_CONTENT | StatusCode::NOT_FOUND => Ok(()),
            _ => Err(self.refused(response).await),
        }
    }
}
