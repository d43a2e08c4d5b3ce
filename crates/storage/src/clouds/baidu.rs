//! The driver `baidu:`: a folder among those that Baidu's net disk keeps for programs (`/apps/...`), by its interface
//! `xpan`.
//!
//! Baidu can refuse to overwrite (`rtype=0`), but does not say that this is one step with the writing, so this store holds
//! data and takes no part in agreement. Files go up in parts of 4 MiB, each named by its MD5, and become a file by one last
//! request. A file is read by an address that is asked for under its number; numbers are found by a list of the shelf,
//! because nothing else leads from a path to them. Tokens stand in the address of requests, so no address is ever shown.
//! Errors come with status 200 and a number.

use std::collections::HashMap;
use std::ops::Range;

use async_trait::async_trait;
use bytes::Bytes;
use md_5::{Digest, Md5};
use model::hex;
use parking_lot::Mutex;
use reqwest::header::{CONTENT_TYPE, RANGE, USER_AGENT};
use reqwest::{Client, RequestBuilder, Response, StatusCode, Url};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{CloudClient, Drive, DriveFile, Drivers, Place, ShelfStore};
use crate::credentials::Credentials;
use crate::error::{Result, StorageError};
use crate::http_answer;
use crate::object_store::{PutMode, PutOutcome, clamp};
use crate::open::address::Address;

/// The length of a part; Baidu fixes it.
const PART: usize = 4 << 20;
/// How often a part is sent again.
const REPEATS_MAX: usize = 8;
/// Longest page of a list.
const PAGE: usize = 1000;
/// How many numbers are remembered.
const WRITTEN_MAX: usize = 10_000;
/// What separates a part from what stands around it.
const BOUNDARY: &str = "syncline-2fd8a61c90b7e354";
/// Readers must say that they are a client of the net disk.
const READER: &str = "pan.baidu.com";

/// Numbers of errors, as Baidu's documents have them.
const TOKEN_ENDED: [i64; 3] = [-6, 110, 111];
const NOTHING_THERE: [i64; 2] = [-9, 31066];
const NOT_ALL_DONE: i64 = 12;
const NO_SPACE: i64 = -10;
const TOO_OFTEN: [i64; 2] = [31034, 9013];

/// A folder of a net disk.
#[derive(Debug)]
pub(crate) struct Baidu {
    client: CloudClient,
    files: Url,
    metas: Url,
    parts: Url,
    root: String,
    /// The numbers of files that this handle has written.
    written: Mutex<HashMap<Place, u64>>,
}

#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    list: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    #[serde(default)]
    fs_id: u64,
    #[serde(default)]
    server_filename: String,
    #[serde(default)]
    size: u64,
    isdir: u8,
    dlink: Option<String>,
}

/// Opens a folder.
pub(crate) fn open(address: &Address, credentials: &Credentials) -> Result<ShelfStore<Baidu>> {
    let given = Drivers::new("baidu", address, credentials)?;
    Ok(ShelfStore::new(Baidu {
        files: given.at("https://pan.baidu.com/rest/2.0/xpan/file"),
        metas: given.at("https://pan.baidu.com/rest/2.0/xpan/multimedia"),
        parts: given.at("https://d.pcs.baidu.com/rest/2.0/pcs/superfile2"),
        root: format!("/apps/{}", given.folders.join("/")),
        client: given.client,
        written: Mutex::default(),
    }))
}

/// Returns an address with a query, of which the token is a part.
fn with_query(url: &Url, query: &[(&str, &str)], token: &str) -> Url {
    let mut url = url.clone();
    url.query_pairs_mut().extend_pairs(query).append_pair("access_token", token);
    url
}

fn form(fields: &[(&str, &str)]) -> String {
    url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish()
}

fn is_json(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with("application/json"))
}

fn md5_of(bytes: &[u8]) -> String {
    hex::encode(&Md5::digest(bytes))
}

impl Baidu {
    fn path(&self, place: &Place) -> String {
        format!("{}/{}/{}", self.root, place.shelf, place.name)
    }

    /// Sends a request, once more with another token where the first has ended, and returns the answer or its number.
    async fn call(
        &self,
        build: impl Fn(&Client, &str) -> RequestBuilder,
    ) -> Result<Result<Value, i64>> {
        let mut token = self.client.token(None).await?;
        for is_last in [false, true] {
            let response = self.client.send_unsigned(|http| build(http, &token)).await?;
            let status = response.status();
            let answer = self.client.refusal(response).await?;
            let number = |name: &str| answer[name].as_i64();
            match number("errno").or_else(|| number("error_code")) {
                Some(ended) if TOKEN_ENDED.contains(&ended) && !is_last => {
                    token = self.client.token(Some(&token)).await?;
                }
                Some(0) => return Ok(Ok(answer)),
                Some(NO_SPACE) => return Err(self.client.no_space()),
                Some(number) if TOO_OFTEN.contains(&number) => {
                    return Err(self.client.busy("it was asked too often"));
                }
                Some(number) => return Ok(Err(number)),
                // Only an uploaded part is answered so.
                None if status.is_success() && answer["md5"].is_string() => {
                    return Ok(Ok(answer));
                }
                None => return Err(self.client.refused_with(status, "")),
            }
        }
        Err(StorageError::PermissionDenied {
            store: self.describe(),
            detail: "it refuses a new token".to_owned(),
        })
    }

    async fn get(&self, url: &Url, query: &[(&str, &str)]) -> Result<Result<Value, i64>> {
        self.call(|http, token| http.get(with_query(url, query, token))).await
    }

    async fn post(
        &self,
        query: &[(&str, &str)],
        fields: &[(&str, &str)],
    ) -> Result<Result<Value, i64>> {
        let body = form(fields);
        self.call(|http, token| {
            let request = http.post(with_query(&self.files, query, token));
            request.header(CONTENT_TYPE, "application/x-www-form-urlencoded").body(body.clone())
        })
        .await
    }

    fn refused(&self, number: i64) -> StorageError {
        self.client.invalid(format!("error number {number}"))
    }

    fn read_page(&self, answer: Value) -> Result<Vec<Item>> {
        let page: Result<Page, _> = serde_json::from_value(answer);
        Ok(page.map_err(|_| self.client.invalid("a list that cannot be read"))?.list)
    }

    /// Returns everything in a folder; nothing in it when there is none.
    async fn items(&self, folder: &str) -> Result<Vec<Item>> {
        let mut items = Vec::new();
        loop {
            let (start, limit) = (items.len().to_string(), PAGE.to_string());
            let query = [
                ("method", "list"),
                ("dir", folder),
                ("order", "name"),
                ("start", &start),
                ("limit", &limit),
            ];
            let answer = match self.get(&self.files, &query).await? {
                Ok(answer) => answer,
                Err(number) if NOTHING_THERE.contains(&number) && items.is_empty() => {
                    return Ok(items);
                }
                Err(number) => return Err(self.refused(number)),
            };
            let page = self.read_page(answer)?;
            // A page may be shorter than was asked for; only an empty one is the end.
            if page.is_empty() {
                return Ok(items);
            }
            items.extend(page);
        }
    }

    /// Finds the file as it is now. A list may follow later than changes; what this handle has written last is looked for
    /// under its number, too.
    async fn current(&self, place: &Place) -> Result<Option<Item>> {
        let items = self.items(&format!("{}/{}", self.root, place.shelf)).await?.into_iter();
        let is_it = |item: &Item| item.isdir == 0 && item.server_filename == place.name;
        let mut numbers: Vec<u64> = items.filter(is_it).map(|item| item.fs_id).collect();
        let remembered = self.written.lock().get(place).copied();
        numbers.extend(remembered.filter(|number| !numbers.contains(number)));
        for number in numbers {
            if let Some(item) = self.by_number(number).await? {
                return Ok(Some(item));
            }
        }
        Ok(None)
    }

    async fn by_number(&self, number: u64) -> Result<Option<Item>> {
        let numbers = json!([number]).to_string();
        let query = [("method", "filemetas"), ("fsids", &numbers), ("dlink", "1")];
        match self.get(&self.metas, &query).await? {
            Ok(answer) => Ok(self.read_page(answer)?.into_iter().next()),
            Err(number) if NOTHING_THERE.contains(&number) || number == NOT_ALL_DONE => Ok(None),
            Err(number) => Err(self.refused(number)),
        }
    }

    fn remember(&self, place: &Place, made: &Value) {
        let mut written = self.written.lock();
        if written.len() >= WRITTEN_MAX {
            written.clear();
        }
        if let Some(number) = made["fs_id"].as_u64() {
            written.insert(place.clone(), number);
        }
    }

    /// Sends a part until it has arrived whole.
    async fn put_part(
        &self,
        path: &str,
        upload: &str,
        number: usize,
        part: &[u8],
        md5: &str,
    ) -> Result<()> {
        let number = number.to_string();
        let query = [
            ("method", "upload"),
            ("type", "tmpfile"),
            ("path", path),
            ("uploadid", upload),
            ("partseq", &number),
        ];
        let mut body = format!(
            "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"part\"\r\n\
             Content-Type: application/octet-stream\r\n\r\n"
        )
        .into_bytes();
        body.extend_from_slice(part);
        body.extend_from_slice(format!("\r\n--{BOUNDARY}--\r\n").as_bytes());
        let body = Bytes::from(body);
        let kind = format!("multipart/form-data; boundary={BOUNDARY}");
        for _ in 0..REPEATS_MAX {
            let sent = self
                .call(|http, token| {
                    let request = http.post(with_query(&self.parts, &query, token));
                    request.header(CONTENT_TYPE, &kind).body(body.clone())
                })
                .await;
            match sent {
                Ok(Ok(answer)) if answer["md5"] == md5 => return Ok(()),
                // Other bytes have arrived.
                Ok(Ok(_)) | Err(StorageError::NotReachable { .. }) => {}
                Ok(Err(number)) => return Err(self.refused(number)),
                Err(error) => return Err(error),
            }
        }
        Err(self.client.busy("a part of an upload that does not arrive"))
    }
}

#[async_trait]
impl Drive for Baidu {
    fn describe(&self) -> String {
        self.client.describe()
    }

    async fn shelves(&self) -> Result<Vec<String>> {
        let items = self.items(&self.root).await?.into_iter();
        Ok(items.filter(|item| item.isdir == 1).map(|item| item.server_filename).collect())
    }

    async fn files(&self, shelf: &str) -> Result<Vec<DriveFile>> {
        let items = self.items(&format!("{}/{shelf}", self.root)).await?.into_iter();
        let file = |item: Item| DriveFile { name: item.server_filename, size: item.size };
        Ok(items.filter(|item| item.isdir == 0).map(file).collect())
    }

    async fn put(&self, place: &Place, bytes: Bytes, mode: PutMode) -> Result<PutOutcome> {
        if mode == PutMode::IfAbsent {
            return Err(StorageError::Unsupported {
                store: self.describe(),
                operation: "create an object only when it is absent",
            });
        }
        let path = self.path(place);
        // An empty file has one part, too.
        let parts: Vec<&[u8]> =
            if bytes.is_empty() { vec![&[]] } else { bytes.chunks(PART).collect() };
        let sums: Vec<String> = parts.iter().map(|part| md5_of(part)).collect();
        let (size, list) = (bytes.len().to_string(), json!(sums).to_string());
        let file = [("path", path.as_str()), ("size", &size), ("isdir", "0"), ("rtype", "3")];
        let begin: Vec<_> =
            file.into_iter().chain([("autoinit", "1"), ("block_list", &list)]).collect();
        let begun = self.post(&[("method", "precreate")], &begin).await?;
        let begun = begun.map_err(|number| self.refused(number))?;
        // It has these bytes already, and has made a file of them.
        if begun["return_type"] == 2 {
            let is_there = Drive::size(self, place).await? == Some(bytes.len() as u64);
            let missing = || self.client.invalid("a file that it says to have, and has not");
            return is_there.then_some(PutOutcome::Written).ok_or_else(missing);
        }
        let upload = begun["uploadid"].as_str();
        let upload = upload.ok_or_else(|| self.client.invalid("no place for an upload"))?;
        for (number, (part, md5)) in parts.iter().zip(&sums).enumerate() {
            self.put_part(&path, upload, number, part, md5).await?;
        }
        let end: Vec<_> =
            file.into_iter().chain([("uploadid", upload), ("block_list", &list)]).collect();
        match self.post(&[("method", "create")], &end).await? {
            Ok(made) if made["size"].as_u64() == Some(bytes.len() as u64) => {
                self.remember(place, &made);
                Ok(PutOutcome::Written)
            }
            Ok(_) => Err(self.client.invalid("a file of another length than was sent")),
            Err(number) => Err(self.refused(number)),
        }
    }

    async fn read(&self, place: &Place, range: Range<u64>) -> Result<Option<Bytes>> {
        let Some(item) = self.current(place).await? else { return Ok(None) };
        let link = item.dlink.ok_or_else(|| self.client.invalid("no address to read from"))?;
        // The token goes along.
        let is_own = |link: &Url| {
            let is_baidu = link.host_str().is_some_and(|host| host.ends_with(".baidu.com"));
            link.origin() == self.parts.origin() || link.scheme() == "https" && is_baidu
        };
        let link = Url::parse(&link).ok().filter(is_own);
        let link = link.ok_or_else(|| self.client.invalid("no address to read from"))?;
        let part = clamp(&range, item.size);
        if part.is_empty() {
            return Ok(Some(Bytes::new()));
        }
        let header = format!("bytes={}-{}", part.start, part.end - 1);
        let mut token = self.client.token(None).await?;
        for _ in 0..2 {
            let response = self
                .client
                .send_unsigned(|http| {
                    let request = http.get(with_query(&link, &[], &token));
                    request.header(USER_AGENT, READER).header(RANGE, &header)
                })
                .await?;
            let response = self.client.follow(response, Some(&header)).await?;
            // An error may come with status 200, and must not be taken for the file.
            let is_whole = response.status() == StatusCode::OK
                && http_answer::header_length(&response) == Some(item.size)
                && !is_json(&response);
            if response.status() == StatusCode::PARTIAL_CONTENT || is_whole {
                return match self.client.read(response, &part).await? {
                    Ok(found) => Ok(found),
                    Err(refused) => Err(self.client.refused(&refused)),
                };
            }
            let status = response.status();
            let answer = self.client.refusal(response).await?;
            match answer["errno"].as_i64().or_else(|| answer["error_code"].as_i64()) {
                Some(ended) if TOKEN_ENDED.contains(&ended) => {
                    token = self.client.token(Some(&token)).await?;
                }
                Some(number) => return Err(self.refused(number)),
                None => return Err(self.client.refused_with(status, "")),
            }
        }
        Err(self.refused(TOKEN_ENDED[0]))
    }

    async fn size(&self, place: &Place) -> Result<Option<u64>> {
        Ok(self.current(place).await?.map(|item| item.size))
    }

    async fn remove(&self, place: &Place) -> Result<()> {
        let list = json!([self.path(place)]).to_string();
        let query = [("method", "filemanager"), ("opera", "delete")];
        match self.post(&query, &[("async", "0"), ("filelist", &list)]).await? {
            Ok(_) => Ok(()),
            Err(number) if NOTHING_THERE.contains(&number) => Ok(()),
            Err(NOT_ALL_DONE) if Drive::size(self, place).await?.is_none() => Ok(()),
            Err(number) => Err(self.refused(number)),
        }
    }
}
