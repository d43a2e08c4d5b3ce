//! OneDrive by Microsoft Graph, as its documents have it.

use bytes::{Bytes, BytesMut};
use serde_json::{Value, json};

use crate::disk::{Disk, Node, ROOT};
use crate::server::{Account, Asked, Reply, Service, Violation};

const BASE: &str = "/v1.0/me/drive/special/approot";

/// The service.
#[derive(Debug, Default)]
pub(crate) struct OneDrive {
    sessions: Vec<Session>,
    parts: u32,
    lists: Vec<Vec<Value>>,
}

#[derive(Debug)]
struct Session {
    path: String,
    fails: bool,
    bytes: BytesMut,
    is_done: bool,
}

fn item(node: &Node) -> Value {
    match &node.content {
        Some(content) => {
            json!({"id": node.id.to_string(), "name": node.name, "size": content.len(), "file": {}})
        }
        None => {
            json!({"id": node.id.to_string(), "name": node.name, "size": 7, "folder": {"childCount": 1}})
        }
    }
}

fn error(status: u16, code: &str) -> Reply {
    Reply::json(status, &json!({"error": {"code": code, "message": "in words"}}))
}

/// Puts a file where the service may.
fn put(disk: &mut Disk, path: &str, fails: bool, bytes: Bytes) -> Reply {
    if let Some(there) = disk.at(path).cloned() {
        if fails || there.content.is_none() {
            return error(409, "nameAlreadyExists");
        }
        disk.replace(there.id, bytes);
        return Reply::json(200, &item(disk.node(there.id).unwrap()));
    }
    let (folder, name) = path.rsplit_once('/').unwrap();
    let Ok(folder) = disk.make_folders(folder) else { return error(409, "nameAlreadyExists") };
    let id = disk.make(folder, name, Some(bytes));
    Reply::json(201, &item(disk.node(id).unwrap()))
}

/// Reads what to do with a name that is taken.
fn fails(behaviour: Option<&str>) -> Result<bool, Violation> {
    match behaviour {
        Some("fail") => Ok(true),
        Some("replace") => Ok(false),
        other => Err(format!("an unknown behaviour {other:?}")),
    }
}

impl OneDrive {
    fn item(&mut self, account: &mut Account, asked: &Asked) -> Result<Reply, Violation> {
        let rest = asked.path.strip_prefix(BASE).ok_or("no such place")?;
        let rest = rest.strip_prefix(":/").ok_or("a path begins with :/")?;
        let (path, side) = rest.split_once(":/").unwrap_or((rest, ""));
        let path = format!("/{path}");
        if path
            .split('/')
            .skip(1)
            .any(|name| name.is_empty() || name.contains([':', '*', '?', '|']))
        {
            return Err(format!("no path: {path}"));
        }
        let disk = &mut account.disk;
        let found = disk.at(&path).cloned();
        let not_found = || error(404, "itemNotFound");
        match (asked.method.as_str(), side, found) {
            ("GET", "children", Some(folder)) => {
                let top: usize = asked.query("$top")?.parse().map_err(|_| "no number")?;
                if !(1..=1000).contains(&top) {
                    return Err("a page has 1 to 1000 items".to_owned());
                }
                let items = disk.list(folder.id).iter().map(item).collect();
                self.lists.push(items);
                Ok(self.page(account.page, asked, self.lists.len() - 1, 0))
            }
            ("GET", "", Some(node)) => Ok(Reply::json(200, &item(&node))),
            ("DELETE", "", Some(node)) => {
                disk.remove(node.id);
                Ok(Reply::empty(204))
            }
            ("GET", "content", Some(node)) if node.content.is_some() => {
                let host = asked.header("host").ok_or("no host")?;
                Ok(Reply::to(format!("http://{host}/download/{}", node.id)))
            }
            ("GET" | "DELETE", "" | "children" | "content", None) => Ok(not_found()),
            ("PUT", "content", _) => {
                if asked.body.len() > 250_000_000 {
                    return Err("an upload is at most 250 MB long".to_owned());
                }
                let fails = fails(Some(asked.query("@microsoft.graph.conflictBehavior")?))?;
                Ok(put(disk, &path, fails, asked.body.clone()))
            }
            ("POST", "createUploadSession", found) => {
                let order = asked.json()?;
                let fails = fails(order["item"]["@microsoft.graph.conflictBehavior"].as_str())?;
                if fails && found.is_some() {
                    return Ok(error(409, "nameAlreadyExists"));
                }
                self.sessions.push(Session { path, fails, bytes: BytesMut::new(), is_done: false });
                let host = asked.header("host").ok_or("no host")?;
                let url = format!("http://{host}/upload/{}", self.sessions.len() - 1);
                Ok(Reply::json(200, &json!({"uploadUrl": url, "nextExpectedRanges": ["0-"]})))
            }
            _ => Err("no such call".to_owned()),
        }
    }

    fn page(&self, page: usize, asked: &Asked, list: usize, start: usize) -> Reply {
        let items = &self.lists[list];
        let end = items.len().min(start + page);
        let mut answer = json!({"value": items[start..end]});
        if end < items.len() {
            let host = asked.header("host").unwrap();
            answer["@odata.nextLink"] =
                json!(format!("http://{host}/v1.0/next?list={list}&start={end}"));
        }
        Reply::json(200, &answer)
    }

    fn upload(&mut self, account: &mut Account, asked: &Asked) -> Result<Reply, Violation> {
        if asked.header("authorization").is_some() {
            return Err("the address of a session goes without a token".to_owned());
        }
        let number: usize = asked.path["/upload/".len()..].parse().map_err(|_| "no session")?;
        let is_broken = asked.method == "PUT" && account.breaks(&mut self.parts);
        let session = self.sessions.get_mut(number).ok_or("no such session")?;
        if session.is_done {
            return Ok(error(404, "itemNotFound"));
        }
        let progress = |status, session: &Session| {
            let next = format!("{}-", session.bytes.len());
            Reply::json(status, &json!({"nextExpectedRanges": [next]}))
        };
        if asked.method == "GET" {
            return Ok(progress(200, session));
        }
        let range = asked.header("content-range").and_then(|range| range.strip_prefix("bytes "));
        let (range, total) = range.and_then(|range| range.split_once('/')).ok_or("no range")?;
        let (start, last) = range.split_once('-').ok_or("no range")?;
        let number = |text: &str| text.parse::<usize>().map_err(|error| error.to_string());
        let (start, last, total) = (number(start)?, number(last)?, number(total)?);
        if last + 1 - start != asked.body.len() || last >= total {
            return Err("a part of another length than it says".to_owned());
        }
        let is_last = last + 1 == total;
        if asked.body.len() > 60 << 20 || !is_last && !asked.body.len().is_multiple_of(320 << 10) {
            return Err("a part is a multiple of 320 KiB, and at most 60 MiB long".to_owned());
        }
        if start != session.bytes.len() {
            return Ok(error(416, "invalidRange"));
        }
        if is_broken {
            let half = asked.body.len() / 2 / (320 << 10) * (320 << 10);
            session.bytes.extend_from_slice(&asked.body[..half]);
            return Ok(error(500, "generalException"));
        }
        session.bytes.extend_from_slice(&asked.body);
        if !is_last {
            return Ok(progress(202, session));
        }
        session.is_done = true;
        let bytes = std::mem::take(&mut session.bytes).freeze();
        Ok(put(&mut account.disk, &session.path.clone(), session.fails, bytes))
    }
}

impl Service for OneDrive {
    const SCHEME: &'static str = "onedrive";

    fn is_open(&self, asked: &Asked) -> bool {
        asked.path.starts_with("/upload/") || asked.path.starts_with("/download/")
    }

    fn expired(&self) -> Reply {
        error(401, "InvalidAuthenticationToken")
    }

    fn answer(&mut self, account: &mut Account, asked: &Asked) -> Result<Reply, Violation> {
        if asked.path.starts_with("/upload/") {
            return self.upload(account, asked);
        }
        if let Some(id) = asked.path.strip_prefix("/download/") {
            if asked.header("authorization").is_some() {
                return Err("readers come without a token".to_owned());
            }
            let node = account.disk.node(id.parse().unwrap_or(ROOT));
            let content = node.and_then(|node| node.content.clone());
            return Ok(content.map_or(error(404, "itemNotFound"), |content| asked.cut(&content)));
        }
        if asked.path == "/v1.0/next" {
            let number = |name: &str| -> Result<usize, Violation> {
                asked.query(name)?.parse().map_err(|_| "no number".to_owned())
            };
            return Ok(self.page(account.page, asked, number("list")?, number("start")?));
        }
        self.item(account, asked)
    }
}
