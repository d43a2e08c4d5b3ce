//! Google Drive of version 3, as its documents have it.

use bytes::{Bytes, BytesMut};
use serde_json::{Value, json};

use crate::disk::{Disk, Node, ROOT};
use crate::server::{Account, Asked, Reply, Service, Violation};

const FILES: &str = "/drive/v3/files";
const UPLOADS: &str = "/upload/drive/v3/files";
const FOLDER: &str = "application/vnd.google-apps.folder";

/// The service.
#[derive(Debug, Default)]
pub(crate) struct GoogleDrive {
    sessions: Vec<Session>,
    parts: u32,
    pages: Vec<Vec<Value>>,
}

#[derive(Debug)]
struct Session {
    target: Target,
    total: usize,
    bytes: BytesMut,
}

/// What an upload is for.
#[derive(Debug, Clone)]
enum Target {
    New { parent: u64, name: String },
    Known(u64),
}

fn error(status: u16, reason: &str) -> Reply {
    let errors = json!([{"domain": "global", "reason": reason}]);
    Reply::json(status, &json!({"error": {"code": status, "errors": errors}}))
}

fn file(disk: &Disk, node: &Node) -> Value {
    let is_in_bin = disk.is_in_bin(node.id);
    let mut file = json!({"id": id_of(node.id), "name": node.name, "trashed": is_in_bin});
    if node.content.is_some() {
        file["size"] = json!(node.size().to_string());
    }
    file
}

fn id_of(id: u64) -> String {
    format!("1x{id}")
}

fn number_of(id: &str) -> Option<u64> {
    if id == "root" { Some(ROOT) } else { id.strip_prefix("1x")?.parse().ok() }
}

/// A search: all of some conditions.
#[derive(Debug, Default)]
struct Search {
    parents: Vec<u64>,
    name: Option<String>,
    is_folder: Option<bool>,
    leaves_out_trash: bool,
}

impl Search {
    /// Reads `('a' in parents or 'b' in parents) and name = 'c' and trashed = false`.
    fn parse(query: &str) -> Result<Self, Violation> {
        let mut search = Self::default();
        let text = |quoted: &str| -> Result<String, Violation> {
            let inner = quoted.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
            inner.map(str::to_owned).ok_or(format!("{quoted} is not in quotes"))
        };
        for condition in query.split(" and ") {
            if let Some(value) = condition.strip_prefix("name = ") {
                search.name = Some(text(value)?);
            } else if let Some(value) = condition.strip_prefix("mimeType = ") {
                search.is_folder = Some(text(value)? == FOLDER);
            } else if let Some(value) = condition.strip_prefix("mimeType != ") {
                search.is_folder = Some(text(value)? != FOLDER);
            } else if condition == "trashed = false" {
                search.leaves_out_trash = true;
            } else {
                let inner = condition.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
                for parent in inner.unwrap_or(condition).split(" or ") {
                    let id =
                        parent.strip_suffix(" in parents").ok_or(format!("what is {parent}"))?;
                    search.parents.push(number_of(&text(id)?).ok_or("an id that was never given")?);
                }
            }
        }
        match search.parents.is_empty() || !search.leaves_out_trash {
            true => Err("a search that finds everything".to_owned()),
            false => Ok(search),
        }
    }

    fn run(&self, disk: &mut Disk) -> Vec<Value> {
        let mut found: Vec<Node> = self.parents.iter().flat_map(|id| disk.list(*id)).collect();
        found.retain(|node| self.name.as_ref().is_none_or(|name| *name == node.name));
        found.retain(|node| self.is_folder.is_none_or(|is| is == node.content.is_none()));
        found.retain(|node| !disk.is_in_bin(node.id));
        // Ids grow with the time of creation.
        found.sort_by_key(|node| node.id);
        found.iter().map(|node| file(disk, node)).collect()
    }
}

/// Reads the two halves of an upload.
fn halves(asked: &Asked) -> Result<(Value, Bytes), Violation> {
    let kind = asked.header("content-type").unwrap_or_default();
    let boundary = kind.strip_prefix("multipart/related; boundary=").ok_or("no boundary")?;
    let body = &asked.body;
    let find = |start: usize, what: &str| {
        let found = body[start..].windows(what.len()).position(|window| window == what.as_bytes());
        found.map(|at| start + at).ok_or(format!("no {what:?} in the body"))
    };
    let metadata = find(0, "\r\n\r\n")? + 4;
    let middle = find(metadata, &format!("\r\n--{boundary}\r\n"))?;
    let content = find(middle + 2, "\r\n\r\n")? + 4;
    let end = format!("\r\n--{boundary}--\r\n");
    if !body.ends_with(end.as_bytes()) {
        return Err("a body without an end".to_owned());
    }
    let metadata = serde_json::from_slice(&body[metadata..middle]);
    let metadata = metadata.map_err(|error| error.to_string())?;
    Ok((metadata, body.slice(content..body.len() - end.len())))
}

/// Reads what an upload is for.
fn target(disk: &Disk, asked: &Asked, metadata: &Value) -> Result<Option<Target>, Violation> {
    let id = asked.path.strip_prefix(UPLOADS).unwrap_or_default().trim_start_matches('/');
    match (asked.method.as_str(), id) {
        ("POST", "") => {
            let name = metadata["name"].as_str().ok_or("a new file without a name")?.to_owned();
            let parent = metadata["parents"][0].as_str().and_then(number_of);
            Ok(Some(Target::New { parent: parent.ok_or("a new file without a folder")?, name }))
        }
        ("PATCH", id) => {
            let known = number_of(id).and_then(|id| disk.node(id));
            Ok(known.map(|node| Target::Known(node.id)))
        }
        _ => Err("no such upload".to_owned()),
    }
}

fn finish(disk: &mut Disk, target: Target, bytes: Bytes) -> Reply {
    let id = match target {
        Target::New { parent, name } => disk.make(parent, &name, Some(bytes)),
        Target::Known(id) if disk.node(id).is_none() => return error(404, "notFound"),
        Target::Known(id) => {
            disk.replace(id, bytes);
            id
        }
    };
    Reply::json(200, &json!({"id": id_of(id), "trashed": disk.is_in_bin(id)}))
}

impl GoogleDrive {
    fn list(&mut self, account: &mut Account, asked: &Asked) -> Result<Reply, Violation> {
        let size: usize = asked.query("pageSize")?.parse().map_err(|_| "no number")?;
        if !(1..=1000).contains(&size) || asked.query("orderBy")? != "createdTime" {
            return Err("a page has 1 to 1000 files".to_owned());
        }
        let mut files = match asked.query.get("pageToken") {
            None => Search::parse(asked.query("q")?)?.run(&mut account.disk),
            Some(token) => {
                let number: usize = token.parse().map_err(|_| "no page token")?;
                self.pages.get(number).cloned().ok_or("an unknown page token")?
            }
        };
        let rest = files.split_off(account.page.min(files.len()));
        let mut answer = json!({"files": files, "incompleteSearch": false});
        if !rest.is_empty() {
            self.pages.push(rest);
            answer["nextPageToken"] = json!((self.pages.len() - 1).to_string());
        }
        Ok(Reply::json(200, &answer))
    }

    fn upload(&mut self, account: &mut Account, asked: &Asked) -> Result<Reply, Violation> {
        if asked.method == "PUT" {
            return self.part(account, asked);
        }
        match asked.query("uploadType")? {
            "multipart" => {
                let (metadata, bytes) = halves(asked)?;
                if bytes.len() > 5_000_000 {
                    return Err("what is longer than 5 MB goes up in parts".to_owned());
                }
                match target(&account.disk, asked, &metadata)? {
                    Some(target) => Ok(finish(&mut account.disk, target, bytes)),
                    None => Ok(error(404, "notFound")),
                }
            }
            "resumable" => {
                let metadata = asked.json()?;
                let length = asked.header("x-upload-content-length").ok_or("no length")?;
                let total = length.parse().map_err(|_| "no number")?;
                let Some(target) = target(&account.disk, asked, &metadata)? else {
                    return Ok(error(404, "notFound"));
                };
                self.sessions.push(Session { target, total, bytes: BytesMut::new() });
                let host = asked.header("host").ok_or("no host")?;
                let number = self.sessions.len() - 1;
                let place =
                    format!("http://{host}{UPLOADS}?uploadType=resumable&upload_id={number}");
                let headers = vec![("location", place)];
                Ok(Reply { status: 200, headers, body: Bytes::new() })
            }
            other => Err(format!("an unknown kind of upload {other}")),
        }
    }

    fn part(&mut self, account: &mut Account, asked: &Asked) -> Result<Reply, Violation> {
        let number: usize = asked.query("upload_id")?.parse().map_err(|_| "no session")?;
        let is_broken = !asked.body.is_empty() && account.breaks(&mut self.parts);
        let session = self.sessions.get_mut(number).ok_or("an unknown session")?;
        let range = asked.header("content-range").and_then(|range| range.strip_prefix("bytes "));
        let (range, total) = range.and_then(|range| range.split_once('/')).ok_or("no range")?;
        if total != session.total.to_string() {
            return Err("another length than was said".to_owned());
        }
        let progress = |session: &Session| {
            let headers = match session.bytes.len() {
                0 => Vec::new(),
                length => vec![("range", format!("bytes=0-{}", length - 1))],
            };
            Reply { status: 308, headers, body: Bytes::new() }
        };
        if range == "*" {
            return Ok(progress(session));
        }
        let (start, last) = range.split_once('-').ok_or("no range")?;
        let number = |text: &str| text.parse::<usize>().map_err(|error| error.to_string());
        let (start, last) = (number(start)?, number(last)?);
        let is_last = last + 1 == session.total;
        if last + 1 - start != asked.body.len() || start != session.bytes.len() {
            return Err(format!("part {range} does not follow {}", session.bytes.len()));
        }
        if !is_last && !asked.body.len().is_multiple_of(256 << 10) {
            return Err("a part is a multiple of 256 KiB long".to_owned());
        }
        if is_broken {
            let half = asked.body.len() / 2 / (256 << 10) * (256 << 10);
            session.bytes.extend_from_slice(&asked.body[..half]);
            return Ok(error(503, "backendError"));
        }
        session.bytes.extend_from_slice(&asked.body);
        if !is_last {
            return Ok(progress(session));
        }
        let bytes = std::mem::take(&mut session.bytes).freeze();
        Ok(finish(&mut account.disk, session.target.clone(), bytes))
    }
}

impl Service for GoogleDrive {
    const SCHEME: &'static str = "gdrive";

    fn expired(&self) -> Reply {
        error(401, "authError")
    }

    fn answer(&mut self, account: &mut Account, asked: &Asked) -> Result<Reply, Violation> {
        if asked.path.starts_with(UPLOADS) {
            return self.upload(account, asked);
        }
        let id = asked.path.strip_prefix(FILES).ok_or("no such call")?;
        if id.is_empty() {
            return match asked.method.as_str() {
                "GET" => self.list(account, asked),
                "POST" => {
                    let order = asked.json()?;
                    if order["mimeType"] != FOLDER {
                        return Err("only folders are made so".to_owned());
                    }
                    let parent = order["parents"][0].as_str().and_then(number_of);
                    let name = order["name"].as_str().ok_or("no name")?;
                    let id = account.disk.make(parent.ok_or("no parent")?, name, None);
                    let is_in_bin = account.disk.is_in_bin(id);
                    Ok(Reply::json(200, &json!({"id": id_of(id), "trashed": is_in_bin})))
                }
                _ => Err("no such call".to_owned()),
            };
        }
        let id = number_of(id.trim_start_matches('/')).ok_or("an id that was never given")?;
        let Some(node) = account.disk.node(id).cloned() else {
            return Ok(error(404, "notFound"));
        };
        match (asked.method.as_str(), asked.query.get("alt").map(String::as_str), &node.content) {
            ("GET", Some("media"), Some(content)) => Ok(asked.cut(content)),
            ("GET", None, _) => Ok(Reply::json(200, &file(&account.disk, &node))),
            ("DELETE", None, _) => {
                account.disk.remove(id);
                Ok(Reply::empty(204))
            }
            _ => Err("no such call".to_owned()),
        }
    }
}
