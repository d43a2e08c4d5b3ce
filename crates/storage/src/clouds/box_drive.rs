//! The driver `box:`: a folder at Box, by its interface of version 2.0.
//!
//! Box has ids and no paths. A name in a folder is found by the question whether it could be uploaded (the *preflight* check):
//! where it could not, the answer has the id of what is there. A file is created only where none is because names are unique
//! in a folder: Box answers 409 `item_name_in_use` to all uploads but one. What is longer than [`WHOLE_MAX`] goes up in
//! parts, each with its SHA-1, as Box asks above 20 MB.

use std::collections::HashMap;
use std::ops::Range;

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use parking_lot::Mutex;
use reqwest::header::{CONTENT_RANGE, CONTENT_TYPE};
use reqwest::{Method, Response, StatusCode, Url};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{CloudClient, Drive, DriveFile, Drivers, Place, ShelfStore};
use crate::credentials::Credentials;
use crate::error::{Result, StorageError};
use crate::http_answer::range_header;
use crate::object_store::{PutMode, PutOutcome};
use crate::open::address::Address;

/// The folder of everything.
const ROOT: &str = "0";
/// The longest file that goes up in one request. Box takes parts of what has at least 20,000,000 bytes.
const WHOLE_MAX: usize = 20_000_000;
/// What separates the two halves of an upload.
const BOUNDARY: &str = "syncline-91c7d2e4b6a05f38";
/// How often a part is sent again, and an upload asked for that is not ready.
const REPEATS_MAX: usize = 8;
/// How often a put looks again at what stood in its way.
const ATTEMPTS_MAX: usize = 5;
/// How many ids are remembered.
const IDS_MAX: usize = 10_000;

/// A folder at Box.
#[derive(Debug)]
pub(crate) struct BoxDrive {
    client: CloudClient,
    api: Url,
    uploads: Url,
    folders: Vec<String>,
    root: tokio::sync::Mutex<Option<String>>,
    /// The ids of shelves; names are unique, so each has one.
    shelves: Mutex<HashMap<String, String>>,
}

#[derive(Deserialize)]
struct Page {
    entries: Vec<Item>,
    next_marker: Option<String>,
}

#[derive(Deserialize)]
struct Item {
    id: String,
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    name: String,
    size: Option<u64>,
}

#[derive(Deserialize)]
struct Session {
    part_size: usize,
    session_endpoints: Endpoints,
}

#[derive(Deserialize)]
struct Endpoints {
    upload_part: String,
    commit: String,
}

/// Opens a folder.
pub(crate) fn open(address: &Address, credentials: &Credentials) -> Result<ShelfStore<BoxDrive>> {
    let given = Drivers::new("box", address, credentials)?;
    Ok(ShelfStore::new(BoxDrive {
        api: given.at("https://api.box.com/2.0"),
        uploads: given.at("https://upload.box.com/api/2.0"),
        client: given.client,
        folders: given.folders,
        root: tokio::sync::Mutex::new(None),
        shelves: Mutex::default(),
    }))
}

fn below(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    url.set_path(&format!("{}/{path}", base.path()));
    url
}

/// Returns the id of what has the name already.
fn id_in_the_way(answer: &Value) -> Option<String> {
    let conflicts = &answer["context_info"]["conflicts"];
    // One object for files, a list for folders.
    let item = if conflicts.is_array() { &conflicts[0] } else { conflicts };
    item["id"].as_str().map(str::to_owned)
}

fn sha1(bytes: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY, bytes);
    format!("sha={}", STANDARD.encode(digest))
}

impl BoxDrive {
    async fn ask(&self, method: Method, url: &Url, order: Option<&Value>) -> Result<Response> {
        self.client
            .send(|http, token| {
                let request = http.request(method.clone(), url.clone()).bearer_auth(token);
                match order {
                    Some(order) => request.json(order),
                    None => request,
                }
            })
            .await
    }

    fn refused(&self, status: StatusCode, answer: &Value) -> StorageError {
        match answer["code"].as_str() {
            Some("storage_limit_exceeded") => self.client.no_space(),
            // Somebody else writes to it at this moment.
            Some("operation_blocked_temporary" | "name_temporarily_reserved") => {
                self.client.busy("it is being changed by somebody else")
            }
            code => self.client.refused_with(status, code.unwrap_or_default()),
        }
    }

    async fn refusal(&self, response: Response) -> StorageError {
        let status = response.status();
        match self.client.refusal(response).await {
            Ok(answer) => self.refused(status, &answer),
            Err(error) => error,
        }
    }

    /// Makes a folder, or finds the one that has the name.
    async fn make_folder(&self, parent: &str, name: &str) -> Result<String> {
        let order = json!({"name": name, "parent": {"id": parent}});
        let url = below(&self.api, "folders");
        let response = self.ask(Method::POST, &url, Some(&order)).await?;
        let status = response.status();
        if status == StatusCode::CREATED {
            return Ok(self.client.json::<Item>(response).await?.id);
        }
        let answer = self.client.refusal(response).await?;
        match (status, answer["code"].as_str(), id_in_the_way(&answer)) {
            (StatusCode::CONFLICT, Some("item_name_in_use"), Some(id)) => Ok(id),
            _ => Err(self.refused(status, &answer)),
        }
    }

    /// Returns everything in a folder; nothing when there is no such folder.
    async fn items(&self, folder: &str) -> Result<Option<Vec<Item>>> {
        let mut items = Vec::new();
        let mut marker: Option<String> = None;
        loop {
            let mut url = below(&self.api, &format!("folders/{folder}/items"));
            url.set_query(Some("fields=id,type,name,size&limit=1000&usemarker=true"));
            if let Some(marker) = &marker {
                url.query_pairs_mut().append_pair("marker", marker);
            }
            let response = self.ask(Method::GET, &url, None).await?;
            match response.status() {
                StatusCode::OK => {}
                StatusCode::NOT_FOUND if items.is_empty() => return Ok(None),
                _ => return Err(self.refusal(response).await),
            }
            let page: Page = self.client.json(response).await?;
            items.extend(page.entries);
            marker = page.next_marker.filter(|marker| !marker.is_empty());
            if marker.is_none() {
                return Ok(Some(items));
            }
        }
    }

    /// Returns the folder of the store; nothing where it is not there and not to be made.
    async fn root(&self, makes: bool) -> Result<Option<String>> {
        let mut root = self.root.lock().await;
        if root.is_some() {
            return Ok(root.clone());
        }
        let mut parent = ROOT.to_owned();
        for name in &self.folders {
            parent = if makes {
                self.make_folder(&parent, name).await?
            } else {
                let items = self.items(&parent).await?.unwrap_or_default();
                let is_it = |item: &Item| item.kind == "folder" && item.name == *name;
                match items.into_iter().find(is_it) {
                    Some(folder) => folder.id,
                    None => return Ok(None),
                }
            };
        }
        *root = Some(parent.clone());
        Ok(Some(parent))
    }

    /// Looks which shelves there are.
    async fn look(&self) -> Result<HashMap<String, String>> {
        let Some(root) = self.root(false).await? else { return Ok(HashMap::new()) };
        let items = self.items(&root).await?.unwrap_or_default().into_iter();
        let found: HashMap<String, String> =
            items.filter(|item| item.kind == "folder").map(|item| (item.name, item.id)).collect();
        let mut shelves = self.shelves.lock();
        if shelves.len() >= IDS_MAX {
            shelves.clear();
        }
        shelves.extend(found.clone());
        Ok(found)
    }

    /// Returns the id of a shelf; nothing where it is not there and not to be made.
    async fn shelf(&self, shelf: &str, makes: bool) -> Result<Option<String>> {
        let known = self.shelves.lock().get(shelf).cloned();
        if known.is_some() {
            return Ok(known);
        }
        if !makes {
            return Ok(self.look().await?.remove(shelf));
        }
        let Some(root) = self.root(true).await? else { return Ok(None) };
        let id = self.make_folder(&root, shelf).await?;
        self.shelves.lock().insert(shelf.to_owned(), id.clone());
        Ok(Some(id))
    }

    /// Finds the id of a file by asking whether it could be uploaded.
    async fn find(&self, place: &Place) -> Result<Option<String>> {
        let Some(shelf) = self.shelf(&place.shelf, false).await? else { return Ok(None) };
        let order = json!({"name": place.name, "parent": {"id": shelf}, "size": 0});
        let url = below(&self.api, "files/content");
        let response = self.ask(Method::OPTIONS, &url, Some(&order)).await?;
        let status = response.status();
        if status == StatusCode::OK {
            return Ok(None);
        }
        let answer = self.client.refusal(response).await?;
        match (status, answer["code"].as_str(), id_in_the_way(&answer)) {
            (StatusCode::CONFLICT, Some("item_name_in_use"), Some(id)) => Ok(Some(id)),
            // The shelf was removed.
            (StatusCode::NOT_FOUND, ..) => {
                self.shelves.lock().remove(&place.shelf);
                Ok(None)
            }
            _ => Err(self.refused(status, &answer)),
        }
    }

    /// Uploads a new file into a folder, or a new version of a known one. What has the name already is returned.
    async fn upload(
        &self,
        known: Option<&str>,
        shelf: &str,
        name: &str,
        bytes: &Bytes,
    ) -> Result<Result<(), Option<String>>> {
        let response = if bytes.len() >= WHOLE_MAX {
            match self.upload_parts(known, shelf, name, bytes).await? {
                Ok(response) => response,
                Err(taken) => return Ok(Err(taken)),
            }
        } else {
            self.upload_whole(known, shelf, name, bytes).await?
        };
        let status = response.status();
        if matches!(status, StatusCode::CREATED | StatusCode::OK) {
            return Ok(Ok(()));
        }
        self.taken(response).await.map(Err)
    }

    /// Reads from a conflict who has the name.
    async fn taken(&self, response: Response) -> Result<Option<String>> {
        let status = response.status();
        let answer = self.client.refusal(response).await?;
        match (status, answer["code"].as_str()) {
            (StatusCode::CONFLICT, Some("item_name_in_use")) => Ok(id_in_the_way(&answer)),
            _ => Err(self.refused(status, &answer)),
        }
    }

    async fn upload_whole(
        &self,
        known: Option<&str>,
        shelf: &str,
        name: &str,
        bytes: &Bytes,
    ) -> Result<Response> {
        let (url, attributes) = match known {
            Some(id) => (below(&self.uploads, &format!("files/{id}/content")), json!({})),
            None => {
                let attributes = json!({"name": name, "parent": {"id": shelf}});
                (below(&self.uploads, "files/content"), attributes)
            }
        };
        let mut body = format!(
            "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"attributes\"\r\n\r\n\
             {attributes}\r\n--{BOUNDARY}\r\n\
             Content-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\
             Content-Type: application/octet-stream\r\n\r\n"
        )
        .into_bytes();
        body.extend_from_slice(bytes);
        body.extend_from_slice(format!("\r\n--{BOUNDARY}--\r\n").as_bytes());
        let body = Bytes::from(body);
        let kind = format!("multipart/form-data; boundary={BOUNDARY}");
        self.client
            .send(|http, token| {
                let request = http.post(url.clone()).bearer_auth(token);
                request.header(CONTENT_TYPE, &kind).body(body.clone())
            })
            .await
    }

    async fn upload_parts(
        &self,
        known: Option<&str>,
        shelf: &str,
        name: &str,
        bytes: &Bytes,
    ) -> Result<Result<Response, Option<String>>> {
        let size = bytes.len();
        let (url, order) = match known {
            Some(id) => {
                let url = below(&self.uploads, &format!("files/{id}/upload_sessions"));
                (url, json!({"file_size": size}))
            }
            None => {
                let order = json!({"folder_id": shelf, "file_name": name, "file_size": size});
                (below(&self.uploads, "files/upload_sessions"), order)
            }
        };
        let response = self.ask(Method::POST, &url, Some(&order)).await?;
        if response.status() != StatusCode::CREATED {
            return self.taken(response).await.map(Err);
        }
        let session: Session = self.client.json(response).await?;
        let own = |text: &str| {
            // The token goes along, so both must be at the same service.
            let url = Url::parse(text).ok().filter(|url| url.origin() == self.uploads.origin());
            url.ok_or_else(|| self.client.invalid("no place for an upload"))
        };
        let endpoints = &session.session_endpoints;
        let (upload, commit) = (own(&endpoints.upload_part)?, own(&endpoints.commit)?);
        if session.part_size == 0 {
            return Err(self.client.invalid("parts of no length"));
        }
        let mut parts = Vec::new();
        for start in (0..size).step_by(session.part_size) {
            let part = start..size.min(start + session.part_size);
            parts.push(self.put_part(&upload, bytes, part).await?);
        }
        let (order, digest) = (json!({"parts": parts}), sha1(bytes));
        for _ in 0..REPEATS_MAX {
            let response = self
                .client
                .send(|http, token| {
                    let request = http.post(commit.clone()).bearer_auth(token);
                    request.header("Digest", &digest).json(&order)
                })
                .await?;
            // It has all parts, and is not ready to join them.
            if response.status() != StatusCode::ACCEPTED {
                return Ok(Ok(response));
            }
            self.client.pause(&response).await;
        }
        Err(self.client.busy("an upload that does not end"))
    }

    /// Sends a part until it has arrived whole, and returns what names it.
    async fn put_part(&self, url: &Url, bytes: &Bytes, part: Range<usize>) -> Result<Value> {
        let range = format!("bytes {}-{}/{}", part.start, part.end - 1, bytes.len());
        let body = bytes.slice(part);
        let digest = sha1(&body);
        let mut repeats = 0;
        loop {
            let sent = self
                .client
                .send(|http, token| {
                    let request = http.put(url.clone()).bearer_auth(token);
                    let request = request.header(CONTENT_TYPE, "application/octet-stream");
                    let request = request.header("Digest", &digest);
                    request.header(CONTENT_RANGE, &range).body(body.clone())
                })
                .await;
            repeats += 1;
            match sent {
                Ok(response) if response.status() == StatusCode::OK => {
                    let mut answer: Value = self.client.json(response).await?;
                    return Ok(answer["part"].take());
                }
                Ok(response) => return Err(self.refusal(response).await),
                Err(StorageError::NotReachable { .. }) if repeats < REPEATS_MAX => {}
                Err(error) => return Err(error),
            }
        }
    }
}

#[async_trait]
impl Drive for BoxDrive {
    fn describe(&self) -> String {
        self.client.describe()
    }

    async fn shelves(&self) -> Result<Vec<String>> {
        Ok(self.look().await?.into_keys().collect())
    }

    async fn files(&self, shelf: &str) -> Result<Vec<DriveFile>> {
        let Some(id) = self.shelf(shelf, false).await? else { return Ok(Vec::new()) };
        let items = self.items(&id).await?.unwrap_or_default().into_iter();
        let file = |item: Item| Some(DriveFile { size: item.size?, name: item.name });
        Ok(items.filter(|item| item.kind == "file").filter_map(file).collect())
    }

    async fn put(&self, place: &Place, bytes: Bytes, mode: PutMode) -> Result<PutOutcome> {
        let mut known = match mode {
            PutMode::IfAbsent => None,
            PutMode::Overwrite => self.find(place).await?,
        };
        for _ in 0..ATTEMPTS_MAX {
            let shelf = self.shelf(&place.shelf, true).await?;
            let shelf = shelf.ok_or_else(|| self.client.invalid("no folder for a file"))?;
            let sent = self.upload(known.as_deref(), &shelf, &place.name, &bytes).await;
            match sent {
                Ok(Ok(())) => return Ok(PutOutcome::Written),
                Ok(Err(_)) if mode == PutMode::IfAbsent => return Ok(PutOutcome::Exists),
                Ok(Err(taken)) => known = taken,
                // The file or its shelf was removed meanwhile.
                Err(error) if is_not_found(&error) => {
                    self.shelves.lock().remove(&place.shelf);
                    known = None;
                }
                Err(error) => return Err(error),
            }
        }
        Err(self.client.busy("it is removed and written again all the time"))
    }

    async fn read(&self, place: &Place, range: Range<u64>) -> Result<Option<Bytes>> {
        let Some(id) = self.find(place).await? else { return Ok(None) };
        let url = below(&self.api, &format!("files/{id}/content"));
        let header = range_header(&range);
        for _ in 0..REPEATS_MAX {
            let response = self.client.fetch(&url, header.as_deref()).await?;
            // The file is not ready to be read yet.
            if response.status() == StatusCode::ACCEPTED {
                self.client.pause(&response).await;
                continue;
            }
            let response = self.client.follow(response, header.as_deref()).await?;
            return match self.client.read(response, &range).await? {
                Ok(found) => Ok(found),
                Err(refused) => Err(self.refusal(refused).await),
            };
        }
        Err(self.client.busy("a file that is not ready to be read"))
    }

    async fn size(&self, place: &Place) -> Result<Option<u64>> {
        let Some(id) = self.find(place).await? else { return Ok(None) };
        let mut url = below(&self.api, &format!("files/{id}"));
        url.set_query(Some("fields=id,type,size"));
        let response = self.ask(Method::GET, &url, None).await?;
        match response.status() {
            StatusCode::OK => Ok(self.client.json::<Item>(response).await?.size),
            StatusCode::NOT_FOUND => Ok(None),
            _ => Err(self.refusal(response).await),
        }
    }

    async fn remove(&self, place: &Place) -> Result<()> {
        let Some(id) = self.find(place).await? else { return Ok(()) };
        let url = below(&self.api, &format!("files/{id}"));
        let response = self.ask(Method::DELETE, &url, None).await?;
        match response.status() {
            StatusCode::NO_CONTENT | StatusCode::NOT_FOUND => Ok(()),
            _ => Err(self.refusal(response).await),
        }
    }
}

fn is_not_found(error: &StorageError) -> bool {
    matches!(error, StorageError::InvalidAnswer { detail, .. } if detail.starts_with("status 404"))
}
