//! The driver `gdrive:`: a folder of a Google Drive, by its interface of version 3.
//!
//! Names are not unique in a Google Drive, so nothing can be created only where none is: this store holds data and takes no
//! part in agreement. Two devices that write one new name at once make two files of it; everybody then takes the older one,
//! and a deletion removes the younger ones first. Searches may follow later than changes; a file is therefore looked for
//! under the id that this handle has seen last, too. What is longer than [`WHOLE_MAX`] goes up in parts.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use reqwest::header::{CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, LOCATION, RANGE};
use reqwest::{Method, Response, StatusCode, Url};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{CloudClient, Drive, DriveFile, Drivers, Place, ShelfStore};
use crate::credentials::Credentials;
use crate::error::{Result, StorageError};
use crate::http_answer::range_header;
use crate::object_store::{PutMode, PutOutcome};
use crate::open::address::Address;

const FOLDER: &str = "application/vnd.google-apps.folder";
const BYTES: &str = "application/octet-stream";
/// What separates the two halves of an upload; the bytes follow it and end where the body ends.
const BOUNDARY: &str = "syncline-5b0e3d1c8f7a4296";
/// The longest file that goes up in one request; Google gives 5 MB.
const WHOLE_MAX: usize = 5_000_000;
/// The length of a part; Google wants multiples of 256 KiB.
const PART: usize = 16 * (256 << 10);
/// How often an upload is tried to go on with.
const BREAKS_MAX: usize = 8;
/// How many ids are remembered.
const IDS_MAX: usize = 10_000;

/// A folder of a Google Drive.
#[derive(Debug)]
pub(crate) struct GoogleDrive {
    client: CloudClient,
    files: Url,
    uploads: Url,
    folders: Vec<String>,
    /// The folder of the store, once it is known.
    root: tokio::sync::Mutex<Option<String>>,
    /// All folders of each shelf's name, the oldest first.
    shelves: Mutex<BTreeMap<String, Vec<String>>>,
    /// Files that this handle has written.
    ids: Mutex<HashMap<Place, String>>,
}

#[derive(Deserialize)]
struct Page {
    files: Vec<Found>,
    #[serde(rename = "nextPageToken")]
    next: Option<String>,
    /// Google may not have looked everywhere, and says so.
    #[serde(rename = "incompleteSearch", default)]
    is_incomplete: bool,
}

#[derive(Deserialize, Clone)]
struct Found {
    id: String,
    #[serde(default)]
    name: String,
    /// A number as text.
    size: Option<String>,
    #[serde(default)]
    trashed: bool,
}

impl Found {
    fn size(&self) -> Option<u64> {
        self.size.as_ref()?.parse().ok()
    }
}

/// Opens a folder.
pub(crate) fn open(
    address: &Address,
    credentials: &Credentials,
) -> Result<ShelfStore<GoogleDrive>> {
    let given = Drivers::new("gdrive", address, credentials)?;
    Ok(ShelfStore::new(GoogleDrive {
        files: given.at("https://www.googleapis.com/drive/v3/files"),
        uploads: given.at("https://www.googleapis.com/upload/drive/v3/files"),
        client: given.client,
        folders: given.folders,
        root: tokio::sync::Mutex::new(None),
        shelves: Mutex::default(),
        ids: Mutex::default(),
    }))
}

/// Writes a name of ours into a search.
fn quoted(name: &str) -> String {
    format!("'{}'", name.replace('\\', "\\\\").replace('\'', "\\'"))
}

impl GoogleDrive {
    fn at(base: &Url, id: &str) -> Url {
        let mut url = base.clone();
        url.set_path(&format!("{}/{id}", base.path()));
        url
    }

    /// Says what a refusal means.
    async fn refused(&self, response: Response) -> StorageError {
        let status = response.status();
        let answer = match self.client.refusal(response).await {
            Ok(answer) => answer,
            Err(error) => return error,
        };
        match answer["error"]["errors"][0]["reason"].as_str() {
            Some(reason @ ("userRateLimitExceeded" | "rateLimitExceeded")) => {
                self.client.busy(reason)
            }
            Some("storageQuotaExceeded") => self.client.no_space(),
            Some(reason) => self.client.refused_with(status, reason),
            None => self.client.refused_with(status, ""),
        }
    }

    /// Returns everything that a search finds, the oldest first.
    async fn search(&self, query: &str) -> Result<Vec<Found>> {
        let mut found = Vec::new();
        let mut next: Option<String> = None;
        loop {
            let mut url = self.files.clone();
            {
                let mut pairs = url.query_pairs_mut();
                pairs
                    .append_pair("q", query)
                    .append_pair("spaces", "drive")
                    .append_pair("orderBy", "createdTime")
                    .append_pair("pageSize", "1000")
                    .append_pair("fields", "nextPageToken,incompleteSearch,files(id,name,size)");
                if let Some(next) = &next {
                    pairs.append_pair("pageToken", next);
                }
            }
            let response =
                self.client.send(|http, token| http.get(url.clone()).bearer_auth(token)).await?;
            if response.status() != StatusCode::OK {
                return Err(self.refused(response).await);
            }
            let page: Page = self.client.json(response).await?;
            if page.is_incomplete {
                return Err(self.client.busy("a search that did not look everywhere"));
            }
            found.extend(page.files);
            next = page.next;
            if next.is_none() {
                return Ok(found);
            }
        }
    }

    async fn make_folder(&self, parent: &str, name: &str) -> Result<String> {
        let order = json!({"name": name, "mimeType": FOLDER, "parents": [parent]});
        let mut url = self.files.clone();
        url.set_query(Some("fields=id,trashed"));
        let response = self
            .client
            .send(|http, token| http.post(url.clone()).bearer_auth(token).json(&order))
            .await?;
        self.made(response).await
    }

    /// Returns the id of what was made or written. In a folder that somebody has put into the bin it is in the bin, too, and
    /// Google removes it after thirty days: it does not count as stored.
    async fn made(&self, response: Response) -> Result<String> {
        if !response.status().is_success() {
            return Err(self.refused(response).await);
        }
        let found: Found = self.client.json(response).await?;
        match found.trashed {
            false => Ok(found.id),
            true => Err(StorageError::NotReachable {
                store: self.client.describe(),
                detail: "a folder of it is in the bin".to_owned(),
            }),
        }
    }

    async fn folders_in(&self, parent: &str, name: Option<&str>) -> Result<Vec<Found>> {
        let name = name.map(|name| format!(" and name = {}", quoted(name))).unwrap_or_default();
        let parent = quoted(parent);
        self.search(&format!(
            "{parent} in parents and mimeType = '{FOLDER}' and trashed = false{name}"
        ))
        .await
    }

    /// Returns the folder of the store; nothing where it is not there and not to be made.
    async fn root(&self, makes: bool) -> Result<Option<String>> {
        let mut root = self.root.lock().await;
        if root.is_some() {
            return Ok(root.clone());
        }
        let mut parent = "root".to_owned();
        for name in &self.folders {
            let found = self.folders_in(&parent, Some(name)).await?;
            parent = match found.into_iter().next() {
                Some(folder) => folder.id,
                None if makes => self.make_folder(&parent, name).await?,
                None => return Ok(None),
            };
        }
        *root = Some(parent.clone());
        Ok(Some(parent))
    }

    /// Looks which shelves there are.
    async fn look(&self) -> Result<()> {
        let Some(root) = self.root(false).await? else { return Ok(()) };
        let found = self.folders_in(&root, None).await?;
        let mut shelves = self.shelves.lock();
        for folder in found {
            let ids = shelves.entry(folder.name).or_default();
            if !ids.contains(&folder.id) {
                ids.push(folder.id);
            }
        }
        Ok(())
    }

    fn known(&self, shelf: &str) -> Vec<String> {
        self.shelves.lock().get(shelf).cloned().unwrap_or_default()
    }

    /// Returns the folders of a shelf; none where there are none and none are to be made.
    async fn shelf(&self, shelf: &str, makes: bool) -> Result<Vec<String>> {
        let known = self.known(shelf);
        if !known.is_empty() {
            return Ok(known);
        }
        self.look().await?;
        let known = self.known(shelf);
        if !known.is_empty() || !makes {
            return Ok(known);
        }
        let Some(root) = self.root(true).await? else { return Ok(known) };
        let id = self.make_folder(&root, shelf).await?;
        self.shelves.lock().entry(shelf.to_owned()).or_default().push(id.clone());
        Ok(vec![id])
    }

    /// Finds the files of a name in the given folders, the oldest first.
    async fn named(&self, folders: &[String], name: &str) -> Result<Vec<Found>> {
        if folders.is_empty() {
            return Ok(Vec::new());
        }
        let parents: Vec<String> =
            folders.iter().map(|id| format!("{} in parents", quoted(id))).collect();
        let (parents, name) = (parents.join(" or "), quoted(name));
        self.search(&format!("({parents}) and name = {name} and trashed = false")).await
    }

    /// Finds all files of a place, the one that counts first. Some may be gone already.
    async fn find(&self, place: &Place) -> Result<Vec<Found>> {
        let folders = self.shelf(&place.shelf, false).await?;
        let mut found = self.named(&folders, &place.name).await?;
        if found.is_empty() {
            // Another device may have made a second folder of this name meanwhile.
            self.look().await?;
            let again = self.known(&place.shelf);
            if again != folders {
                found = self.named(&again, &place.name).await?;
            }
        }
        let remembered = self.ids.lock().get(place).cloned();
        if let Some(id) = remembered.filter(|id| found.iter().all(|found| found.id != *id)) {
            found.push(Found { id, name: place.name.clone(), size: None, trashed: false });
        }
        Ok(found)
    }

    async fn by_id(&self, id: &str) -> Result<Option<Found>> {
        let mut url = Self::at(&self.files, id);
        url.set_query(Some("fields=id,name,size,trashed"));
        let response =
            self.client.send(|http, token| http.get(url.clone()).bearer_auth(token)).await?;
        match response.status() {
            StatusCode::OK => {
                let found: Found = self.client.json(response).await?;
                Ok(Some(found).filter(|found| !found.trashed))
            }
            StatusCode::NOT_FOUND => Ok(None),
            _ => Err(self.refused(response).await),
        }
    }

    /// Finds the file that counts. One that was removed since the search began to follow is not there.
    async fn current(&self, place: &Place) -> Result<Option<Found>> {
        for found in self.find(place).await? {
            if let Some(found) = self.by_id(&found.id).await? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn remember(&self, place: &Place, id: String) {
        let mut ids = self.ids.lock();
        if ids.len() >= IDS_MAX {
            ids.clear();
        }
        ids.insert(place.clone(), id);
    }

    /// Uploads the bytes of a new file, or of a known one.
    async fn upload(&self, place: &Place, known: Option<&Found>, bytes: Bytes) -> Result<String> {
        let metadata = match known {
            Some(_) => json!({}),
            None => {
                let folders = self.shelf(&place.shelf, true).await?;
                json!({"name": place.name, "parents": [folders.first()]})
            }
        };
        let (method, url) = match known {
            Some(found) => (Method::PATCH, Self::at(&self.uploads, &found.id)),
            None => (Method::POST, self.uploads.clone()),
        };
        if bytes.len() > WHOLE_MAX {
            self.upload_parts(method, url, &metadata, bytes).await
        } else {
            self.upload_whole(method, url, &metadata, &bytes).await
        }
    }

    async fn upload_whole(
        &self,
        method: Method,
        mut url: Url,
        metadata: &Value,
        bytes: &Bytes,
    ) -> Result<String> {
        url.set_query(Some("uploadType=multipart&fields=id,trashed"));
        let mut body = format!(
            "--{BOUNDARY}\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n{metadata}\r\n\
             --{BOUNDARY}\r\nContent-Type: {BYTES}\r\n\r\n"
        )
        .into_bytes();
        body.extend_from_slice(bytes);
        body.extend_from_slice(format!("\r\n--{BOUNDARY}--\r\n").as_bytes());
        let body = Bytes::from(body);
        let kind = format!("multipart/related; boundary={BOUNDARY}");
        let response = self
            .client
            .send(|http, token| {
                let request = http.request(method.clone(), url.clone()).bearer_auth(token);
                request.header(CONTENT_TYPE, &kind).body(body.clone())
            })
            .await?;
        self.made(response).await
    }

    async fn upload_parts(
        &self,
        method: Method,
        mut url: Url,
        metadata: &Value,
        bytes: Bytes,
    ) -> Result<String> {
        url.set_query(Some("uploadType=resumable&fields=id,trashed"));
        let response = self
            .client
            .send(|http, token| {
                let request = http.request(method.clone(), url.clone()).bearer_auth(token);
                let request = request.header("X-Upload-Content-Type", BYTES);
                request.header("X-Upload-Content-Length", bytes.len()).json(metadata)
            })
            .await?;
        if response.status() != StatusCode::OK {
            return Err(self.refused(response).await);
        }
        let session = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
        let session = session.and_then(|text| Url::parse(text).ok());
        // The token goes along, so the session must be at the same service.
        let session = session.filter(|session| session.origin() == self.uploads.origin());
        let session = session.ok_or_else(|| self.client.invalid("no place for an upload"))?;
        let (mut start, mut breaks) = (0, 0);
        while breaks <= BREAKS_MAX {
            let end = bytes.len().min(start + PART);
            let range = format!("bytes {start}-{}/{}", end - 1, bytes.len());
            let sent = self.put_part(&session, range, bytes.slice(start..end)).await;
            let response = match sent {
                Ok(response) => response,
                Err(StorageError::NotReachable { .. }) => {
                    let question = format!("bytes */{}", bytes.len());
                    breaks += 1;
                    self.put_part(&session, question, Bytes::new()).await?
                }
                Err(error) => return Err(error),
            };
            if response.status() != StatusCode::PERMANENT_REDIRECT {
                return self.made(response).await;
            }
            let next = next_of(&response);
            breaks += usize::from(next <= start && start > 0);
            start = next.min(bytes.len() - 1);
        }
        Err(self.client.invalid("an upload that does not end"))
    }

    async fn put_part(&self, session: &Url, range: String, body: Bytes) -> Result<Response> {
        self.client
            .send(|http, token| {
                let request = http.put(session.clone()).bearer_auth(token);
                let request = request.header(CONTENT_LENGTH, body.len());
                request.header(CONTENT_RANGE, &range).body(body.clone())
            })
            .await
    }
}

/// Returns where an upload goes on: after what `Range: bytes=0-99` says is there, or at the beginning.
fn next_of(response: &Response) -> usize {
    let range = response.headers().get(RANGE).and_then(|value| value.to_str().ok());
    let last = range.and_then(|range| range.strip_prefix("bytes=0-")?.parse::<usize>().ok());
    last.map_or(0, |last| last + 1)
}

#[async_trait]
impl Drive for GoogleDrive {
    fn describe(&self) -> String {
        self.client.describe()
    }

    async fn shelves(&self) -> Result<Vec<String>> {
        self.look().await?;
        Ok(self.shelves.lock().keys().cloned().collect())
    }

    async fn files(&self, shelf: &str) -> Result<Vec<DriveFile>> {
        let mut oldest: BTreeMap<String, u64> = BTreeMap::new();
        for folder in self.shelf(shelf, false).await? {
            let query = format!(
                "{} in parents and mimeType != '{FOLDER}' and trashed = false",
                quoted(&folder)
            );
            for found in self.search(&query).await? {
                let Some(size) = found.size() else { continue };
                oldest.entry(found.name).or_insert(size);
            }
        }
        Ok(oldest.into_iter().map(|(name, size)| DriveFile { name, size }).collect())
    }

    async fn put(&self, place: &Place, bytes: Bytes, mode: PutMode) -> Result<PutOutcome> {
        if mode == PutMode::IfAbsent {
            return Err(StorageError::Unsupported {
                store: self.describe(),
                operation: "create an object only when it is absent",
            });
        }
        let known = self.current(place).await?;
        let id = self.upload(place, known.as_ref(), bytes).await?;
        self.remember(place, id);
        Ok(PutOutcome::Written)
    }

    async fn read(&self, place: &Place, range: Range<u64>) -> Result<Option<Bytes>> {
        let header = range_header(&range);
        for found in self.find(place).await? {
            let mut url = Self::at(&self.files, &found.id);
            url.set_query(Some("alt=media"));
            let response = self.client.fetch(&url, header.as_deref()).await?;
            match self.client.read(response, &range).await? {
                Ok(Some(bytes)) => return Ok(Some(bytes)),
                // Removed since the search began to follow; another of the name may be there.
                Ok(None) => {}
                Err(refused) => return Err(self.refused(refused).await),
            }
        }
        Ok(None)
    }

    async fn size(&self, place: &Place) -> Result<Option<u64>> {
        Ok(self.current(place).await?.and_then(|found| found.size()))
    }

    async fn remove(&self, place: &Place) -> Result<()> {
        // The one that counts goes last, so that no older one is seen in between.
        for found in self.find(place).await?.into_iter().rev() {
            let url = Self::at(&self.files, &found.id);
            let response =
                self.client.send(|http, token| http.delete(url.clone()).bearer_auth(token)).await?;
            match response.status() {
                StatusCode::NO_CONTENT | StatusCode::OK | StatusCode::NOT_FOUND => {}
                _ => return Err(self.refused(response).await),
            }
        }
        self.ids.lock().remove(place);
        Ok(())
    }
}
