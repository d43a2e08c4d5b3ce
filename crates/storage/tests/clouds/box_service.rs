//! Box of version 2.0, as its documents have it.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::{Value, json};

use crate::disk::{Disk, Node, ROOT};
use crate::server::{Account, Asked, Reply, Service, Violation};

/// The length of a part of a long upload.
const PART: usize = 8 << 20;

/// The service.
#[derive(Debug, Default)]
pub(crate) struct BoxService {
    sessions: Vec<Session>,
    parts: u32,
    pages: Vec<Vec<Value>>,
}

#[derive(Debug)]
struct Session {
    target: Target,
    size: usize,
    parts: BTreeMap<usize, Bytes>,
    /// How often it says that it is not ready to join the parts.
    delays: u32,
}

/// What an upload is for.
#[derive(Debug, Clone)]
enum Target {
    New { parent: u64, name: String },
    Known(u64),
}

fn item(node: &Node) -> Value {
    let id = node.id.to_string();
    match &node.content {
        None => json!({"type": "folder", "id": id, "name": node.name}),
        Some(content) => {
            json!({"type": "file", "id": id, "name": node.name, "size": content.len()})
        }
    }
}

fn error(status: u16, code: &str) -> Reply {
    Reply::json(status, &json!({"type": "error", "status": status, "code": code}))
}

/// Says that a name is taken: for a file by one object, for a folder by a list.
fn taken(node: &Node, is_listed: bool) -> Reply {
    let conflicts = if is_listed { json!([item(node)]) } else { item(node) };
    let info = json!({"conflicts": conflicts});
    let answer =
        json!({"type": "error", "status": 409, "code": "item_name_in_use", "context_info": info});
    Reply::json(409, &answer)
}

/// Reads an id, which is a number as text.
fn id(value: &Value) -> Result<u64, Violation> {
    value.as_str().and_then(|text| text.parse().ok()).ok_or(format!("{value} is no id"))
}

fn is_folder(disk: &Disk, id: u64) -> bool {
    id == ROOT || disk.node(id).is_some_and(|node| node.content.is_none())
}

fn sha1(bytes: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY, bytes);
    STANDARD.encode(digest)
}

fn check_sum(asked: &Asked, bytes: &[u8]) -> Result<(), Violation> {
    match asked.header("digest") == Some(&*format!("sha={}", sha1(bytes))) {
        true => Ok(()),
        false => Err("a wrong sum of the bytes".to_owned()),
    }
}

/// Reads the two halves of an upload, of which the attributes must come first.
fn halves(asked: &Asked) -> Result<(Value, Bytes), Violation> {
    let kind = asked.header("content-type").unwrap_or_default();
    let boundary = kind.strip_prefix("multipart/form-data; boundary=").ok_or("no boundary")?;
    let body = &asked.body;
    let find = |start: usize, what: &str| {
        let found = body[start..].windows(what.len()).position(|window| window == what.as_bytes());
        found.map(|at| start + at).ok_or(format!("no {what:?} in the body"))
    };
    let begin = format!("--{boundary}\r\nContent-Disposition: form-data; name=\"attributes\"\r\n");
    if !body.starts_with(begin.as_bytes()) {
        return Err("the attributes come first".to_owned());
    }
    let attributes = find(0, "\r\n\r\n")? + 4;
    let middle = find(attributes, &format!("\r\n--{boundary}\r\n"))?;
    find(middle, "name=\"file\"; filename=\"")?;
    let content = find(middle + 2, "\r\n\r\n")? + 4;
    let end = format!("\r\n--{boundary}--\r\n");
    if !body.ends_with(end.as_bytes()) {
        return Err("a body without an end".to_owned());
    }
    let attributes = serde_json::from_slice(&body[attributes..middle]);
    let attributes = attributes.map_err(|error| error.to_string())?;
    Ok((attributes, body.slice(content..body.len() - end.len())))
}

fn store(disk: &mut Disk, target: Target, bytes: Bytes) -> Reply {
    let id = match target {
        Target::New { parent, .. } if !is_folder(disk, parent) => return error(404, "not_found"),
        Target::New { parent, name } => {
            if let Some(there) = disk.child(parent, &name) {
                return taken(there, false);
            }
            disk.make(parent, &name, Some(bytes))
        }
        Target::Known(id) if disk.node(id).is_none() => return error(404, "not_found"),
        Target::Known(id) => {
            disk.replace(id, bytes);
            id
        }
    };
    Reply::json(201, &json!({"total_count": 1, "entries": [item(disk.node(id).unwrap())]}))
}

impl BoxService {
    fn folder(
        &mut self,
        account: &mut Account,
        asked: &Asked,
        rest: &str,
    ) -> Result<Reply, Violation> {
        let disk = &mut account.disk;
        if asked.method == "POST" && rest.is_empty() {
            let order = asked.json()?;
            let parent = id(&order["parent"]["id"])?;
            let name = order["name"].as_str().ok_or("no name")?;
            if !is_folder(disk, parent) {
                return Ok(error(404, "not_found"));
            }
            if let Some(there) = disk.child(parent, name) {
                return Ok(taken(there, true));
            }
            let id = disk.make(parent, name, None);
            return Ok(Reply::json(201, &item(disk.node(id).unwrap())));
        }
        let folder = rest.strip_suffix("/items").filter(|_| asked.method == "GET");
        let folder = folder.and_then(|text| text.parse().ok()).ok_or("no such call")?;
        if asked.query("usemarker")? != "true" || asked.query("limit")? != "1000" {
            return Err("a list goes on by markers, and has at most 1000 items".to_owned());
        }
        let mut items: Vec<Value> = match asked.query.get("marker") {
            None if !is_folder(disk, folder) => return Ok(error(404, "not_found")),
            None => disk.list(folder).iter().map(item).collect(),
            Some(marker) => {
                let number = marker.strip_prefix("marker-").and_then(|text| text.parse().ok());
                self.pages
                    .get::<usize>(number.ok_or("no marker")?)
                    .cloned()
                    .ok_or("an old marker")?
            }
        };
        let rest = items.split_off(account.page.min(items.len()));
        let mut next = String::new();
        if !rest.is_empty() {
            self.pages.push(rest);
            next = format!("marker-{}", self.pages.len() - 1);
        }
        Ok(Reply::json(200, &json!({"entries": items, "limit": 1000, "next_marker": next})))
    }

    fn file(
        &mut self,
        account: &mut Account,
        asked: &Asked,
        rest: &str,
    ) -> Result<Reply, Violation> {
        let disk = &mut account.disk;
        if (asked.method.as_str(), rest) == ("OPTIONS", "content") {
            let order = asked.json()?;
            let parent = id(&order["parent"]["id"])?;
            let name = order["name"].as_str().ok_or("no name")?;
            if !is_folder(disk, parent) {
                return Ok(error(404, "not_found"));
            }
            return Ok(match disk.child(parent, name) {
                Some(there) => taken(there, false),
                None => Reply::json(200, &json!({"upload_url": "https://upload.box.com/x"})),
            });
        }
        let (number, side) = rest.split_once('/').unwrap_or((rest, ""));
        let number: u64 = number.parse().map_err(|_| "no such call".to_owned())?;
        let Some(node) = disk.node(number).filter(|node| node.content.is_some()).cloned() else {
            return Ok(error(404, "not_found"));
        };
        match (asked.method.as_str(), side) {
            ("GET", "") => Ok(Reply::json(200, &item(&node))),
            ("GET", "content") => {
                let host = asked.header("host").ok_or("no host")?;
                Ok(Reply::to(format!("http://{host}/dl/{number}")))
            }
            ("DELETE", "") => {
                disk.remove(number);
                Ok(Reply::empty(204))
            }
            _ => Err("no such call".to_owned()),
        }
    }

    fn upload(
        &mut self,
        account: &mut Account,
        asked: &Asked,
        rest: &str,
    ) -> Result<Reply, Violation> {
        let known = |text: &str| text.parse().map(Target::Known).map_err(|_| "no id".to_owned());
        match (asked.method.as_str(), rest.split('/').collect::<Vec<_>>().as_slice()) {
            ("POST", ["content"]) => {
                let (attributes, bytes) = halves(asked)?;
                let name = attributes["name"].as_str().ok_or("no name")?.to_owned();
                let target = Target::New { parent: id(&attributes["parent"]["id"])?, name };
                Ok(store(&mut account.disk, target, short(bytes)?))
            }
            ("POST", [number, "content"]) => {
                let (_, bytes) = halves(asked)?;
                Ok(store(&mut account.disk, known(number)?, short(bytes)?))
            }
            ("POST", ["upload_sessions"]) => {
                let order = asked.json()?;
                let name = order["file_name"].as_str().ok_or("no name")?.to_owned();
                let parent = id(&order["folder_id"])?;
                match account.disk.child(parent, &name) {
                    Some(there) => Ok(taken(there, false)),
                    None => self.session(asked, Target::New { parent, name }, &order),
                }
            }
            ("POST", [number, "upload_sessions"]) => {
                let order = asked.json()?;
                self.session(asked, known(number)?, &order)
            }
            ("PUT", ["upload_sessions", number]) => self.part(account, asked, number),
            ("POST", ["upload_sessions", number, "commit"]) => self.commit(account, asked, number),
            _ => Err("no such call".to_owned()),
        }
    }

    fn session(
        &mut self,
        asked: &Asked,
        target: Target,
        order: &Value,
    ) -> Result<Reply, Violation> {
        let size = order["file_size"].as_u64().and_then(|size| usize::try_from(size).ok());
        let size = size.filter(|size| *size >= 20_000_000).ok_or("parts are for long files")?;
        self.sessions.push(Session { target, size, parts: BTreeMap::new(), delays: 1 });
        let host = asked.header("host").ok_or("no host")?;
        let base =
            format!("http://{host}/api/2.0/files/upload_sessions/{}", self.sessions.len() - 1);
        let endpoints = json!({"upload_part": base, "commit": format!("{base}/commit")});
        let answer = json!({"id": "x", "part_size": PART, "session_endpoints": endpoints});
        Ok(Reply::json(201, &answer))
    }

    fn part(
        &mut self,
        account: &mut Account,
        asked: &Asked,
        number: &str,
    ) -> Result<Reply, Violation> {
        let is_broken = account.breaks(&mut self.parts);
        let number: usize = number.parse().map_err(|_| "no session")?;
        let session = self.sessions.get_mut(number).ok_or("an unknown session")?;
        check_sum(asked, &asked.body)?;
        let range = asked.header("content-range").and_then(|range| range.strip_prefix("bytes "));
        let start = range.and_then(|range| range.split('-').next()?.parse::<usize>().ok());
        let start = start.ok_or("no range")?;
        let end = start + asked.body.len();
        let length = PART.min(session.size - start);
        if !start.is_multiple_of(PART) || asked.body.len() != length {
            return Err("a part of another length".to_owned());
        }
        if range != Some(&*format!("{start}-{}/{}", end - 1, session.size)) {
            return Err("another range than its bytes".to_owned());
        }
        if is_broken {
            return Ok(error(500, "internal_server_error"));
        }
        session.parts.insert(start, asked.body.clone());
        let part = json!({"part_id": format!("{start:08X}"), "offset": start, "size": length, "sha1": "x"});
        Ok(Reply::json(200, &json!({"part": part})))
    }

    fn commit(
        &mut self,
        account: &mut Account,
        asked: &Asked,
        number: &str,
    ) -> Result<Reply, Violation> {
        let number: usize = number.parse().map_err(|_| "no session")?;
        let session = self.sessions.get_mut(number).ok_or("an unknown session")?;
        let order = asked.json()?;
        let named: Vec<&str> = order["parts"]
            .as_array()
            .ok_or("no parts")?
            .iter()
            .filter_map(|part| part["part_id"].as_str())
            .collect();
        let there: Vec<String> = session.parts.keys().map(|start| format!("{start:08X}")).collect();
        if named != there {
            return Err("other parts than were sent".to_owned());
        }
        if session.delays > 0 {
            session.delays -= 1;
            let headers = vec![("retry-after", "0".to_owned())];
            return Ok(Reply { status: 202, headers, body: Bytes::new() });
        }
        let bytes: Vec<u8> = session.parts.values().cloned().collect::<Vec<_>>().concat();
        if bytes.len() != session.size {
            return Err("not all parts".to_owned());
        }
        check_sum(asked, &bytes)?;
        Ok(store(&mut account.disk, session.target.clone(), bytes.into()))
    }
}

/// Refuses what is too long for one request.
fn short(bytes: Bytes) -> Result<Bytes, Violation> {
    if bytes.len() > 50_000_000 { Err("it goes up in parts".to_owned()) } else { Ok(bytes) }
}

impl Service for BoxService {
    const SCHEME: &'static str = "box";

    fn is_open(&self, asked: &Asked) -> bool {
        asked.path.starts_with("/dl/")
    }

    fn answer(&mut self, account: &mut Account, asked: &Asked) -> Result<Reply, Violation> {
        let path = asked.path.clone();
        if let Some(number) = path.strip_prefix("/dl/") {
            if asked.header("authorization").is_some() {
                return Err("readers come without a token".to_owned());
            }
            let node = account.disk.node(number.parse().unwrap_or(ROOT));
            let content = node.and_then(|node| node.content.clone());
            return Ok(content.map_or(error(404, "not_found"), |content| asked.cut(&content)));
        }
        if let Some(rest) = path.strip_prefix("/2.0/folders") {
            return self.folder(account, asked, rest.trim_start_matches('/'));
        }
        if let Some(rest) = path.strip_prefix("/2.0/files/") {
            return self.file(account, asked, rest);
        }
        match path.strip_prefix("/api/2.0/files/") {
            Some(rest) => self.upload(account, asked, rest),
            None => Err("no such call".to_owned()),
        }
    }
}
