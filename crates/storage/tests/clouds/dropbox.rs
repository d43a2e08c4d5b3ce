//! Dropbox, as its documents have it.

use serde_json::{Value, json};

use crate::disk::{Disk, Node};
use crate::server::{Account, Asked, Reply, Service, Violation};

/// The service.
#[derive(Debug, Default)]
pub(crate) struct Dropbox {
    cursors: Vec<Vec<Value>>,
    /// Whether cursors from which one may wait are forgotten.
    pub(crate) forgets: bool,
}

/// The metadata of a file or folder.
fn entry(node: &Node) -> Value {
    match &node.content {
        None => json!({".tag": "folder", "name": node.name, "id": format!("id:{}", node.id)}),
        Some(content) => json!({
            ".tag": "file",
            "name": node.name,
            "id": format!("id:{}", node.id),
            "rev": "015f",
            "size": content.len(),
        }),
    }
}

fn refused(summary: &str) -> Reply {
    let tag = summary.split('/').next();
    Reply::json(409, &json!({"error_summary": format!("{summary}/..."), "error": {".tag": tag}}))
}

/// Reads a path, which begins with a slash and ends without one.
fn path(argument: &Value) -> Result<String, Violation> {
    let path = argument["path"].as_str().ok_or("no path")?;
    let is_path = path.starts_with('/') && !path.ends_with('/') && !path.contains("//");
    if is_path { Ok(path.to_owned()) } else { Err(format!("no path: {path}")) }
}

/// Refuses arguments that the documents do not have: Dropbox does the same.
fn only(argument: &Value, names: &[&str]) -> Result<(), Violation> {
    let given = argument.as_object().ok_or("no object")?;
    match given.keys().find(|name| !names.contains(&name.as_str())) {
        Some(name) => Err(format!("an unknown argument {name}")),
        None => Ok(()),
    }
}

/// Reads the argument of a call that carries bytes; it stands in a header and is ASCII.
fn header_argument(asked: &Asked) -> Result<Value, Violation> {
    let text = asked.header("dropbox-api-arg").ok_or("no Dropbox-API-Arg")?;
    serde_json::from_str(text).map_err(|error| error.to_string())
}

impl Dropbox {
    fn page(&mut self, account: &Account, mut entries: Vec<Value>) -> Reply {
        let rest = entries.split_off(account.page.min(entries.len()));
        let has_more = !rest.is_empty();
        self.cursors.push(rest);
        let cursor = format!("cursor-{}", self.cursors.len() - 1);
        Reply::json(200, &json!({"entries": entries, "cursor": cursor, "has_more": has_more}))
    }

    fn upload(&self, disk: &mut Disk, asked: &Asked) -> Result<Reply, Violation> {
        let argument = header_argument(asked)?;
        only(&argument, &["path", "mode", "autorename", "mute", "strict_conflict"])?;
        if asked.header("content-type") != Some("application/octet-stream") {
            return Err("an upload is application/octet-stream".to_owned());
        }
        if asked.body.len() > 150 << 20 {
            return Err("an upload is at most 150 MiB long".to_owned());
        }
        let path = path(&argument)?;
        let is_add = match argument["mode"].as_str() {
            Some("add") => true,
            Some("overwrite") => false,
            other => return Err(format!("an unknown mode {other:?}")),
        };
        if let Some(there) = disk.at(&path).cloned() {
            let is_same = there.content.as_ref() == Some(&asked.body);
            let is_strict = argument["strict_conflict"].as_bool().unwrap_or(false);
            if there.content.is_none() {
                return Ok(refused("path/conflict/folder"));
            }
            if is_add && (is_strict || !is_same) {
                return Ok(refused("path/conflict/file"));
            }
            disk.replace(there.id, asked.body.clone());
            return Ok(Reply::json(200, &entry(disk.node(there.id).unwrap())));
        }
        let (folder, name) = path.rsplit_once('/').ok_or("no folder")?;
        let Ok(folder) = disk.make_folders(folder) else {
            return Ok(refused("path/conflict/file_ancestor"));
        };
        let id = disk.make(folder, name, Some(asked.body.clone()));
        Ok(Reply::json(200, &entry(disk.node(id).unwrap())))
    }
}

/// Returns a cursor from which one may wait.
fn latest_cursor(disk: &Disk, asked: &Asked) -> Result<Reply, Violation> {
    let argument = asked.json()?;
    only(&argument, &["path", "recursive"])?;
    if argument["recursive"] != true {
        return Err("who waits for shelves that are not there yet waits for all".into());
    }
    Ok(match disk.at(&path(&argument)?) {
        Some(node) if node.content.is_none() => {
            let cursor = format!("latest-{}-{}", node.id, disk.changes());
            Reply::json(200, &json!({"cursor": cursor}))
        }
        Some(_) => refused("path/not_folder"),
        None => refused("path/not_found"),
    })
}

impl Dropbox {
    /// Waits until something is not as it was at a cursor: the folder, and how many changes there were then.
    fn wait(&self, account: &Account, asked: &Asked) -> Result<Reply, Violation> {
        if asked.header("authorization").is_some() {
            return Err("who waits does not say who it is".to_owned());
        }
        let argument = asked.json()?;
        only(&argument, &["cursor", "timeout"])?;
        if !argument["timeout"].as_u64().is_some_and(|seconds| (30..=480).contains(&seconds)) {
            return Err("one waits for 30 to 480 seconds".to_owned());
        }
        let cursor = argument["cursor"].as_str().and_then(|text| text.strip_prefix("latest-"));
        let (folder, since) = cursor.and_then(|text| text.split_once('-')).ok_or("no cursor")?;
        let folder: u64 = folder.parse().map_err(|_| "no cursor")?;
        let since: usize = since.parse().map_err(|_| "no cursor")?;
        if self.forgets {
            return Ok(refused("reset"));
        }
        let changes = account.disk.has_changed(folder, since);
        if !changes && !account.never_waits {
            return Ok(Reply::later());
        }
        let mut answer = json!({"changes": changes});
        if let Some(seconds) = account.stay_away_s {
            answer["backoff"] = seconds.into();
        }
        Ok(Reply::json(200, &answer))
    }
}

impl Service for Dropbox {
    const SCHEME: &'static str = "dropbox";

    fn is_open(&self, asked: &Asked) -> bool {
        asked.path == "/2/files/list_folder/longpoll"
    }

    fn expired(&self) -> Reply {
        let summary = "expired_access_token/..";
        Reply::json(
            401,
            &json!({"error_summary": summary, "error": {".tag": "expired_access_token"}}),
        )
    }

    fn answer(&mut self, account: &mut Account, asked: &Asked) -> Result<Reply, Violation> {
        if asked.method != "POST" || !asked.query.is_empty() {
            return Err("every call is a POST without a query".to_owned());
        }
        if self.is_open(asked) {
            return self.wait(account, asked);
        }
        let disk = &mut account.disk;
        match asked.path.as_str() {
            "/2/files/upload" => self.upload(disk, asked),
            "/2/files/download" => {
                let argument = header_argument(asked)?;
                only(&argument, &["path"])?;
                match disk.at(&path(&argument)?) {
                    Some(Node { content: Some(content), .. }) => Ok(asked.cut(content)),
                    Some(_) => Ok(refused("path/not_file")),
                    None => Ok(refused("path/not_found")),
                }
            }
            "/2/files/get_metadata" => {
                let argument = asked.json()?;
                only(&argument, &["path"])?;
                let found = disk.at(&path(&argument)?);
                Ok(found.map_or(refused("path/not_found"), |node| Reply::json(200, &entry(node))))
            }
            "/2/files/delete_v2" => {
                let argument = asked.json()?;
                only(&argument, &["path"])?;
                let Some(node) = disk.at(&path(&argument)?).cloned() else {
                    return Ok(refused("path_lookup/not_found"));
                };
                disk.remove(node.id);
                Ok(Reply::json(200, &json!({"metadata": entry(&node)})))
            }
            "/2/files/list_folder" => {
                let argument = asked.json()?;
                only(&argument, &["path", "recursive", "limit"])?;
                if !argument["limit"].as_u64().is_some_and(|limit| (1..=2000).contains(&limit)) {
                    return Err("a page has 1 to 2000 entries".to_owned());
                }
                let folder = match disk.at(&path(&argument)?) {
                    Some(node) if node.content.is_none() => node.id,
                    Some(_) => return Ok(refused("path/not_folder")),
                    None => return Ok(refused("path/not_found")),
                };
                let entries = disk.list(folder).iter().map(entry).collect();
                Ok(self.page(account, entries))
            }
            "/2/files/list_folder/get_latest_cursor" => latest_cursor(disk, asked),
            "/2/files/list_folder/continue" => {
                let argument = asked.json()?;
                only(&argument, &["cursor"])?;
                let number =
                    argument["cursor"].as_str().and_then(|text| text.strip_prefix("cursor-"));
                let number: usize = number.and_then(|text| text.parse().ok()).ok_or("no cursor")?;
                let rest = self.cursors.get(number).cloned().ok_or("an unknown cursor")?;
                Ok(self.page(account, rest))
            }
            _ => Err("no such call".to_owned()),
        }
    }
}
