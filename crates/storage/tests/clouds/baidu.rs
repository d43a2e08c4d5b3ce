//! Baidu's net disk (`xpan`), as its documents have it.

use std::collections::BTreeMap;

use bytes::Bytes;
use md_5::{Digest, Md5};
use serde_json::{Value, json};

use crate::disk::{Node, ROOT};
use crate::server::{Account, Asked, Reply, Service, Violation};

const PART: usize = 4 << 20;

/// The service.
#[derive(Debug, Default)]
pub(crate) struct Baidu {
    uploads: Vec<Upload>,
    parts: u32,
}

#[derive(Debug)]
struct Upload {
    path: String,
    sums: Vec<String>,
    parts: BTreeMap<usize, Bytes>,
}

fn number(errno: i64) -> Reply {
    Reply::json(200, &json!({"errno": errno, "request_id": 7}))
}

fn item(node: &Node, folder: &str) -> Value {
    json!({
        "fs_id": node.id,
        "path": format!("{folder}/{}", node.name),
        "server_filename": node.name,
        "size": node.size(),
        "isdir": u8::from(node.content.is_none()),
    })
}

fn md5_of(bytes: &[u8]) -> String {
    Md5::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads a path, which lies among those of programs.
fn path(fields: &BTreeMap<String, String>, name: &str) -> Result<String, Violation> {
    let path = fields.get(name).ok_or(format!("no '{name}'"))?;
    let is_path = path.starts_with("/apps/") && !path.ends_with('/') && !path.contains("//");
    if is_path { Ok(path.clone()) } else { Err(format!("no path: {path}")) }
}

fn sums(fields: &BTreeMap<String, String>) -> Result<Vec<String>, Violation> {
    let list = fields.get("block_list").ok_or("no block_list")?;
    serde_json::from_str(list).map_err(|error| error.to_string())
}

impl Baidu {
    fn list(&self, account: &mut Account, asked: &Asked) -> Result<Reply, Violation> {
        let folder = path(&asked.query, "dir")?;
        let read =
            |name: &str| asked.query(name)?.parse::<usize>().map_err(|_| "no number".to_owned());
        let (start, limit) = (read("start")?, read("limit")?);
        if limit > 1000 {
            return Err("a page has at most 1000 items".to_owned());
        }
        let Some(id) = account.disk.at(&folder).map(|node| node.id) else { return Ok(number(-9)) };
        let items: Vec<Value> =
            account.disk.list(id).iter().map(|node| item(node, &folder)).collect();
        let items: Vec<&Value> = items.iter().skip(start).take(account.page.min(limit)).collect();
        Ok(Reply::json(200, &json!({"errno": 0, "list": items})))
    }

    /// Begins and ends an upload.
    fn order(
        &mut self,
        account: &mut Account,
        asked: &Asked,
        is_end: bool,
    ) -> Result<Reply, Violation> {
        let fields = asked.form();
        let (path, sums) = (path(&fields, "path")?, sums(&fields)?);
        let size: usize = fields.get("size").and_then(|size| size.parse().ok()).ok_or("no size")?;
        if fields.get("isdir").map(String::as_str) != Some("0")
            || fields.get("rtype").map(String::as_str) != Some("3")
        {
            return Err("a file that replaces".to_owned());
        }
        if !is_end {
            if fields.get("autoinit").map(String::as_str) != Some("1") {
                return Err("precreate wants autoinit=1".to_owned());
            }
            self.uploads.push(Upload { path, sums, parts: BTreeMap::new() });
            let id = format!("N1-{}", self.uploads.len() - 1);
            let answer = json!({"errno": 0, "return_type": 1, "uploadid": id, "block_list": [0]});
            return Ok(Reply::json(200, &answer));
        }
        let upload = self.upload(fields.get("uploadid").map_or("", String::as_str))?;
        if upload.path != path || upload.sums != sums {
            return Err("another file than was begun".to_owned());
        }
        let parts: Vec<String> = upload.parts.values().map(|part| md5_of(part)).collect();
        let bytes: Vec<u8> = upload.parts.values().cloned().collect::<Vec<_>>().concat();
        if parts != sums || bytes.len() != size {
            return Ok(number(31363));
        }
        let (folder, name) = path.rsplit_once('/').ok_or("no folder")?;
        let disk = &mut account.disk;
        let id = match disk.at(&path).map(|node| node.id) {
            Some(id) => {
                disk.replace(id, bytes.into());
                id
            }
            None => {
                let parent = disk.make_folders(folder)?;
                disk.make(parent, name, Some(bytes.into()))
            }
        };
        let mut answer = item(disk.node(id).unwrap(), folder);
        answer["errno"] = json!(0);
        Ok(Reply::json(200, &answer))
    }

    fn upload(&mut self, id: &str) -> Result<&mut Upload, Violation> {
        let number: Option<usize> = id.strip_prefix("N1-").and_then(|text| text.parse().ok());
        number.and_then(|number| self.uploads.get_mut(number)).ok_or("an unknown upload".to_owned())
    }

    fn part(&mut self, account: &mut Account, asked: &Asked) -> Result<Reply, Violation> {
        if asked.query("method")? != "upload" || asked.query("type")? != "tmpfile" {
            return Err("a part is a tmpfile".to_owned());
        }
        let is_broken = account.breaks(&mut self.parts);
        let path = path(&asked.query, "path")?;
        let at: usize = asked.query("partseq")?.parse().map_err(|_| "no number")?;
        let upload = self.upload(asked.query("uploadid")?)?;
        let kind = asked.header("content-type").unwrap_or_default();
        let boundary = kind.strip_prefix("multipart/form-data; boundary=").ok_or("no boundary")?;
        let (body, end) = (&asked.body, format!("\r\n--{boundary}--\r\n"));
        let head = body.windows(4).position(|window| window == b"\r\n\r\n").ok_or("no part")? + 4;
        if !body.starts_with(format!("--{boundary}\r\n").as_bytes())
            || !body.ends_with(end.as_bytes())
        {
            return Err("no form".to_owned());
        }
        let part = body.slice(head..body.len() - end.len());
        if upload.path != path || at >= upload.sums.len() || part.len() > PART {
            return Err("a part of another file".to_owned());
        }
        if is_broken && !part.is_empty() {
            // Half of it arrives.
            return Ok(Reply::json(
                200,
                &json!({"md5": md5_of(&part[..part.len() / 2]), "request_id": 7}),
            ));
        }
        let md5 = md5_of(&part);
        upload.parts.insert(at, part);
        Ok(Reply::json(200, &json!({"md5": md5, "request_id": 7})))
    }

    fn file(&mut self, account: &mut Account, asked: &Asked) -> Result<Reply, Violation> {
        match (asked.method.as_str(), asked.query("method")?) {
            ("GET", "list") => self.list(account, asked),
            ("POST", "precreate") => self.order(account, asked, false),
            ("POST", "create") => self.order(account, asked, true),
            ("POST", "filemanager") if asked.query("opera")? == "delete" => {
                let fields = asked.form();
                let list = fields.get("filelist").ok_or("no filelist")?;
                let list: Vec<String> =
                    serde_json::from_str(list).map_err(|error| error.to_string())?;
                let [path] = &list[..] else { return Err("one file at a time".to_owned()) };
                match account.disk.at(path).map(|node| node.id) {
                    None => Ok(Reply::json(
                        200,
                        &json!({"errno": 12, "info": [{"errno": -9, "path": path}]}),
                    )),
                    Some(id) => {
                        account.disk.remove(id);
                        Ok(number(0))
                    }
                }
            }
            _ => Err("no such call".to_owned()),
        }
    }
}

impl Service for Baidu {
    const SCHEME: &'static str = "baidu";

    fn is_open(&self, asked: &Asked) -> bool {
        asked.path.starts_with("/cdn/")
    }

    fn expired(&self) -> Reply {
        number(-6)
    }

    fn token(asked: &Asked) -> Option<String> {
        asked.query.get("access_token").cloned()
    }

    fn answer(&mut self, account: &mut Account, asked: &Asked) -> Result<Reply, Violation> {
        if asked.header("authorization").is_some() {
            return Err("the token stands in the address".to_owned());
        }
        let host = asked.header("host").ok_or("no host")?.to_owned();
        let file_of = |place: &str| place.parse().ok().filter(|id| *id != ROOT);
        if let Some(id) = asked.path.strip_prefix("/cdn/") {
            if asked.query.contains_key("access_token") {
                return Err("readers come without a token".to_owned());
            }
            let node = file_of(id).and_then(|id| account.disk.node(id));
            let content = node.and_then(|node| node.content.clone());
            return Ok(content.map_or(Reply::empty(404), |content| asked.cut(&content)));
        }
        if let Some(id) = asked.path.strip_prefix("/file/") {
            if asked.header("user-agent") != Some("pan.baidu.com") {
                return Ok(Reply::empty(403));
            }
            return Ok(Reply::to(format!("http://{host}/cdn/{id}")));
        }
        match asked.path.as_str() {
            "/rest/2.0/xpan/file" => self.file(account, asked),
            "/rest/2.0/pcs/superfile2" => self.part(account, asked),
            "/rest/2.0/xpan/multimedia" => {
                if asked.query("method")? != "filemetas" || asked.query("dlink")? != "1" {
                    return Err("no such call".to_owned());
                }
                let ids: Vec<u64> = serde_json::from_str(asked.query("fsids")?)
                    .map_err(|error| error.to_string())?;
                let found = ids.iter().filter_map(|id| account.disk.node(*id));
                let metas: Vec<Value> = found
                    .map(|node| {
                        let mut meta = item(node, "");
                        meta["dlink"] = json!(format!("http://{host}/file/{}", node.id));
                        meta
                    })
                    .collect();
                Ok(if metas.is_empty() {
                    number(12)
                } else {
                    Reply::json(200, &json!({"errno": 0, "list": metas}))
                })
            }
            _ => Err("no such call".to_owned()),
        }
    }
}
