//! The driver `dropbox:`: a folder of a Dropbox, by its HTTP interface of version 2.
//!
//! A file is created only where none is by an upload of mode `add` with `strict_conflict`, which Dropbox decides under the
//! lock of the account's namespace; it answers 409 `path/conflict` to all but one. Largest upload in one request: 150 MiB, so
//! that no object needs an upload session. Who waits for a file asks for a cursor of the folder, looks for the file, and then lets
//! `list_folder/longpoll` answer when something in the folder is not as it was at the cursor.

use std::ops::{Range, RangeInclusive};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use reqwest::header::{CONTENT_TYPE, RANGE};
use reqwest::{Client, Response, StatusCode, Url};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{CloudClient, Drive, DriveFile, Drivers, Place, ShelfStore};
use crate::credentials::Credentials;
use crate::error::Result;
use crate::http_answer::range_header;
use crate::object_store::{PutMode, PutOutcome, Waited};
use crate::open::address::Address;

/// Longest page of a list; Dropbox gives at most 2000.
const PAGE: u32 = 2000;

/// How long Dropbox can be waited at, as it wants it, and how much later its answer may come.
const WAIT_SECONDS: RangeInclusive<u64> = 30..=480;
const JITTER: Duration = Duration::from_secs(90);

/// A folder of a Dropbox.
#[derive(Debug)]
pub(crate) struct Dropbox {
    client: CloudClient,
    /// Where questions and orders go.
    rpc: Url,
    /// Where bytes go.
    content: Url,
    /// Where one waits, without a token.
    notify: Url,
    patient: Client,
    waiting: Mutex<Waiting>,
    /// The folder, with a slash before each name.
    root: String,
}

/// What is known from the last wait.
#[derive(Debug, Default)]
struct Waiting {
    /// Where nothing had changed since.
    cursor: Option<String>,
    /// Before this time the service does not want to be asked again, on the clock.
    not_before: Duration,
}

#[derive(Deserialize)]
struct Cursor {
    cursor: String,
}

#[derive(Deserialize)]
struct Change {
    changes: bool,
    backoff: Option<u64>,
}

#[derive(Deserialize)]
struct Page {
    entries: Vec<Entry>,
    cursor: String,
    has_more: bool,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(rename = ".tag")]
    tag: String,
    #[serde(default)]
    name: String,
    size: Option<u64>,
}

/// Opens a folder.
pub(crate) fn open(address: &Address, credentials: &Credentials) -> Result<ShelfStore<Dropbox>> {
    let given = Drivers::new("dropbox", address, credentials)?;
    let (rpc, content) = (
        given.at("https://api.dropboxapi.com/2/files"),
        given.at("https://content.dropboxapi.com/2/files"),
    );
    let notify = given.at("https://notify.dropboxapi.com/2/files");
    let silence = Duration::from_secs(*WAIT_SECONDS.end()) + JITTER * 2;
    let patient = given.patient_client(silence)?;
    let root = format!("/{}", given.folders.join("/"));
    let (client, waiting) = (given.client, Mutex::default());
    Ok(ShelfStore::new(Dropbox { client, rpc, content, notify, patient, waiting, root }))
}

impl Dropbox {
    fn path(&self, place: &Place) -> String {
        format!("{}/{}/{}", self.root, place.shelf, place.name)
    }

    async fn rpc(&self, method: &str, argument: &Value) -> Result<Response> {
        let url = below(&self.rpc, method);
        self.client
            .send(|http, token| http.post(url.clone()).bearer_auth(token).json(argument))
            .await
    }

    /// Says what a refusal means; a path that leads nowhere is none.
    async fn refusal(&self, response: Response) -> Result<Refusal> {
        let status = response.status();
        let answer = self.client.refusal(response).await?;
        let summary = answer["error_summary"].as_str().unwrap_or_default();
        if status != StatusCode::CONFLICT {
            return Err(self.client.refused_with(status, summary));
        }
        let has = |word: &str| summary.split('/').any(|part| part == word);
        if has("not_found") {
            Ok(Refusal::Absent)
        } else if has("conflict") {
            Ok(Refusal::Exists)
        } else if has("insufficient_space") {
            Err(self.client.no_space())
        } else if has("too_many_write_operations") {
            Err(self.client.busy("others write to it at this moment"))
        } else if has("no_write_permission") {
            Err(self.client.refused_with(StatusCode::FORBIDDEN, summary))
        } else {
            Err(self.client.refused_with(status, summary))
        }
    }

    /// Returns the entries of a folder, page by page to its end.
    async fn entries(&self, folder: &str) -> Result<Vec<Entry>> {
        let argument = json!({"path": folder, "recursive": false, "limit": PAGE});
        let mut response = self.rpc("list_folder", &argument).await?;
        let mut entries = Vec::new();
        loop {
            if response.status() != StatusCode::OK {
                return match self.refusal(response).await? {
                    Refusal::Absent if entries.is_empty() => Ok(entries),
                    _ => Err(self.client.invalid("a list that breaks off")),
                };
            }
            let page: Page = self.client.json(response).await?;
            entries.extend(page.entries);
            if !page.has_more {
                return Ok(entries);
            }
            let argument = json!({"cursor": page.cursor});
            response = self.rpc("list_folder/continue", &argument).await?;
        }
    }
}

/// Waiting for changes; nobody may believe more of it than that it is time to look.
impl Dropbox {
    /// Returns where the folder stands now, or nothing where there is no folder.
    async fn cursor(&self) -> Result<Option<String>> {
        let argument = json!({"path": self.root, "recursive": true});
        let response = self.rpc("list_folder/get_latest_cursor", &argument).await?;
        if response.status() == StatusCode::OK {
            let Cursor { cursor } = self.client.json(response).await?;
            return Ok(Some(cursor));
        }
        match self.refusal(response).await? {
            Refusal::Absent => Ok(None),
            Refusal::Exists => Err(self.client.invalid("a conflict while looking")),
        }
    }

    /// Waits until something in the folder is not as it was at the cursor; a cursor that has become useless says so, too.
    async fn change(&self, cursor: &str, patience: Duration) -> Result<Change> {
        let seconds = patience.saturating_sub(JITTER).as_secs();
        let seconds = seconds.clamp(*WAIT_SECONDS.start(), *WAIT_SECONDS.end());
        let url = below(&self.notify, "list_folder/longpoll");
        let argument = json!({"cursor": cursor, "timeout": seconds});
        let request = self.patient.post(url).json(&argument);
        let response = self.client.send_alone(request).await?;
        match response.status() {
            StatusCode::OK => self.client.json(response).await,
            StatusCode::CONFLICT => Ok(Change { changes: true, backoff: None }),
            _ => Err(self.client.refused(&response)),
        }
    }

    async fn wait_at(&self, place: &Place, patience: Duration) -> Result<Waited> {
        let look = async {
            Ok(if self.size(place).await?.is_some() { Waited::Come } else { Waited::InVain })
        };
        if patience.is_zero() {
            return look.await;
        }
        let (known, not_before) = {
            let waiting = self.waiting.lock();
            (waiting.cursor.clone(), waiting.not_before)
        };
        if self.client.elapsed() < not_before {
            return look.await.map(|waited| match waited {
                Waited::InVain => Waited::Unable,
                waited => waited,
            });
        }
        let cursor = match known {
            Some(cursor) => cursor,
            None => {
                let Some(cursor) = self.cursor().await? else { return look.await };
                // What came before the cursor is no change since.
                if self.size(place).await?.is_some() {
                    return Ok(Waited::Come);
                }
                cursor
            }
        };
        let change = self.change(&cursor, patience).await;
        let pause = change.as_ref().ok().and_then(|change| change.backoff).unwrap_or(0);
        let is_as_it_was = change.as_ref().is_ok_and(|change| !change.changes);
        *self.waiting.lock() = Waiting {
            cursor: is_as_it_was.then_some(cursor),
            not_before: self.client.elapsed().saturating_add(Duration::from_secs(pause)),
        };
        if change?.changes { look.await } else { Ok(Waited::InVain) }
    }
}

/// What a 409 says that is not a failure.
enum Refusal {
    Absent,
    Exists,
}

fn below(base: &Url, method: &str) -> Url {
    let mut url = base.clone();
    url.set_path(&format!("{}/{method}", base.path()));
    url
}

#[async_trait]
impl Drive for Dropbox {
    fn describe(&self) -> String {
        self.client.describe()
    }

    async fn shelves(&self) -> Result<Vec<String>> {
        let entries = self.entries(&self.root).await?.into_iter();
        Ok(entries.filter(|entry| entry.tag == "folder").map(|entry| entry.name).collect())
    }

    async fn files(&self, shelf: &str) -> Result<Vec<DriveFile>> {
        let entries = self.entries(&format!("{}/{shelf}", self.root)).await?.into_iter();
        let file = |entry: Entry| Some(DriveFile { size: entry.size?, name: entry.name });
        Ok(entries.filter(|entry| entry.tag == "file").filter_map(file).collect())
    }

    async fn put(&self, place: &Place, bytes: Bytes, mode: PutMode) -> Result<PutOutcome> {
        let is_new = mode == PutMode::IfAbsent;
        let argument = json!({
            "path": self.path(place),
            "mode": if is_new { "add" } else { "overwrite" },
            "autorename": false,
            "mute": true,
            "strict_conflict": is_new,
        })
        .to_string();
        let url = below(&self.content, "upload");
        let build = |http: &Client, token: &str| {
            let request = http.post(url.clone()).bearer_auth(token);
            let request = request.header("Dropbox-API-Arg", &argument);
            request.header(CONTENT_TYPE, "application/octet-stream").body(bytes.clone())
        };
        let response = self.client.send(build).await?;
        if response.status() == StatusCode::OK {
            return Ok(PutOutcome::Written);
        }
        match self.refusal(response).await? {
            Refusal::Exists if is_new => Ok(PutOutcome::Exists),
            Refusal::Exists => Err(self.client.invalid("a folder where a file should be")),
            Refusal::Absent => Err(self.client.invalid("no place for a file")),
        }
    }

    async fn read(&self, place: &Place, range: Range<u64>) -> Result<Option<Bytes>> {
        let argument = json!({"path": self.path(place)}).to_string();
        let (url, header) = (below(&self.content, "download"), range_header(&range));
        let build = |http: &Client, token: &str| {
            let request = http.post(url.clone()).bearer_auth(token);
            let request = request.header("Dropbox-API-Arg", &argument);
            match &header {
                Some(header) => request.header(RANGE, header),
                None => request,
            }
        };
        let response = self.client.send(build).await?;
        match self.client.read(response, &range).await? {
            Ok(found) => Ok(found),
            Err(refused) => match self.refusal(refused).await? {
                Refusal::Absent => Ok(None),
                Refusal::Exists => Err(self.client.invalid("a conflict while reading")),
            },
        }
    }

    async fn size(&self, place: &Place) -> Result<Option<u64>> {
        let argument = json!({"path": self.path(place)});
        let response = self.rpc("get_metadata", &argument).await?;
        if response.status() != StatusCode::OK {
            return match self.refusal(response).await? {
                Refusal::Absent => Ok(None),
                Refusal::Exists => Err(self.client.invalid("a conflict while looking")),
            };
        }
        let entry: Entry = self.client.json(response).await?;
        match (entry.tag.as_str(), entry.size) {
            ("file", Some(size)) => Ok(Some(size)),
            _ => Ok(None),
        }
    }

    async fn wait_for(&self, place: &Place, patience: Duration) -> Result<Waited> {
        self.wait_at(place, patience).await
    }

    async fn remove(&self, place: &Place) -> Result<()> {
        let response = self.rpc("delete_v2", &json!({"path": self.path(place)})).await?;
        if response.status() == StatusCode::OK {
            return Ok(());
        }
        match self.refusal(response).await? {
            Refusal::Absent => Ok(()),
            Refusal::Exists => Err(self.client.busy("what is to be removed is being changed")),
        }
    }
}
