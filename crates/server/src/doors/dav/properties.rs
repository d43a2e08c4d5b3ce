//! Properties of files and folders as WebDAV shows them: `PROPFIND`, `PROPPATCH`, and the list of answers.

use axum::body::{Body, Bytes};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use futures_util::stream::try_unfold;
use model::{Name, NodeKind, RelativePath, Timestamp};

use super::locking::describe_locks;
use super::xml::{DAV, Element, ElementName, escape, write};
use super::{Dav, address};
use crate::doors::files::conditions::parse_time;
use crate::doors::files::{Target, date};
use crate::error::{Result, ServerError};
use crate::files::Algorithm;
use crate::limits::LIST_MAX;
use crate::metadata::Metadata;
use crate::services::authorisation::Right;
use crate::services::files::changes;
use crate::services::files::{FileNode, View};
use crate::services::workspaces;

/// The namespace of ownCloud, whose checksums rclone asks for.
const OWNCLOUD: &str = "http://owncloud.org/ns";

/// The namespace in which Windows sets times.
const WINDOWS: &str = "urn:schemas-microsoft-com:";

/// What is told without being asked for by name.
const ALL: [&str; 8] = [
    "resourcetype",
    "displayname",
    "getcontentlength",
    "getcontenttype",
    "getetag",
    "getlastmodified",
    "supportedlock",
    "lockdiscovery",
];

/// What a client wants to know.
#[derive(Debug, Clone)]
enum Wanted {
    Names,
    These(Vec<ElementName>),
}

/// What an account may hold and does.
#[derive(Debug, Clone, Copy)]
struct Quota {
    left: Option<u64>,
    used: u64,
}

fn wanted_of(body: Option<&Element>) -> Result<Wanted> {
    let all = || ALL.map(|name| (DAV.to_owned(), name.to_owned())).to_vec();
    let Some(body) = body else { return Ok(Wanted::These(all())) };
    let invalid = || ServerError::Invalid {
        what: "XML body",
        reason: "a 'propfind' with 'prop', 'allprop' or 'propname' is expected".to_owned(),
    };
    if !body.is("propfind") {
        return Err(invalid());
    }
    if let Some(prop) = body.child("prop") {
        return Ok(Wanted::These(prop.children.iter().map(|one| one.name.clone()).collect()));
    }
    if body.child("propname").is_some() {
        return Ok(Wanted::Names);
    }
    body.child("allprop").map(|_| Wanted::These(all())).ok_or_else(invalid)
}

/// How deep a request reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    Zero,
    One,
    Infinity,
}

impl Depth {
    pub(super) fn of(headers: &HeaderMap) -> Result<Self> {
        match headers.get("depth").map(|value| value.as_bytes().to_ascii_lowercase()).as_deref() {
            None | Some(b"infinity") => Ok(Self::Infinity),
            Some(b"0") => Ok(Self::Zero),
            Some(b"1") => Ok(Self::One),
            Some(_) => Err(ServerError::Invalid {
                what: "Depth",
                reason: "0, 1 or infinity is expected".to_owned(),
            }),
        }
    }
}

/// Answers PROPFIND. A folder is sent in pages, so that it takes little memory however many files it has.
pub(super) async fn find(dav: Dav, headers: &HeaderMap, body: Option<Element>) -> Result<Response> {
    let depth = Depth::of(headers)?;
    let wanted = wanted_of(body.as_ref())?;
    let Target { app, caller, workspace, path } = &dav.target;
    let view = app.view(*caller, *workspace).await?;
    let node = view.get(path)?;
    drop(view);
    if depth == Depth::Infinity && node.is_directory() {
        return Ok(infinite());
    }
    let quota = quota_of(&dav).await?;
    let mut first = String::from(HEAD);
    let is_list = depth == Depth::One && node.is_directory();
    let folder = node.id;
    Answers { dav: &dav, wanted: &wanted, quota }.push(&mut first, &node, path);
    let state = Some((dav, wanted, None::<Name>));
    let pages = try_unfold((Some(first), state), move |(first, state)| async move {
        if let Some(first) = first {
            return Ok(Some((Bytes::from(first), (None, state.filter(|_| is_list)))));
        }
        let Some((dav, wanted, after)) = state else { return Ok(None) };
        let Target { app, caller, workspace, path } = &dav.target;
        let view = app.view(*caller, *workspace).await?;
        let nodes = view.list(folder, after.as_ref(), LIST_MAX);
        drop(view);
        let answers = Answers { dav: &dav, wanted: &wanted, quota };
        let (mut text, mut last) = (String::new(), None);
        for node in &nodes {
            let Some(record) = &node.record else { continue };
            last = Some(record.name.clone());
            // WebDAV knows no links, and programs would try to read them.
            if matches!(record.kind, NodeKind::Symlink(_)) {
                continue;
            }
            if let Ok(path) = path.join(&record.name) {
                answers.push(&mut text, node, &path);
            }
        }
        match nodes.len() == LIST_MAX {
            true => Ok(Some((Bytes::from(text), (None, Some((dav, wanted, last)))))),
            false => Ok(Some((Bytes::from(text), (None, None)))),
        }
    });
    let end = futures_util::stream::once(async { Ok::<_, ServerError>(Bytes::from(TAIL)) });
    let body = Body::from_stream(futures_util::StreamExt::chain(pages, end));
    Ok((StatusCode::MULTI_STATUS, [(CONTENT_TYPE, XML)], body).into_response())
}

pub(super) const XML: &str = "application/xml; charset=utf-8";
const HEAD: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n\
    <D:multistatus xmlns:D=\"DAV:\" xmlns:oc=\"http://owncloud.org/ns\">\n";
const TAIL: &str = "</D:multistatus>\n";

/// Refuses to list everything at once.
fn infinite() -> Response {
    let body = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n\
        <D:error xmlns:D=\"DAV:\"><D:propfind-finite-depth/></D:error>\n";
    (StatusCode::FORBIDDEN, [(CONTENT_TYPE, XML)], body).into_response()
}

async fn quota_of(dav: &Dav) -> Result<Quota> {
    let (caller, workspace) = (dav.target.caller, dav.target.workspace);
    let read = move |metadata: &dyn Metadata| {
        let owner = workspaces::open(metadata, &caller, workspace, Right::Read)?.owner;
        let account = metadata.account(owner)?.ok_or(ServerError::NotSignedIn)?;
        let used = metadata.used_bytes(owner)?;
        Ok(Quota { left: account.quota_bytes.map(|quota| quota.saturating_sub(used)), used })
    };
    dav.target.app.readers.read(read).await
}

/// Writes what is known of nodes.
struct Answers<'a> {
    dav: &'a Dav,
    wanted: &'a Wanted,
    quota: Quota,
}

impl Answers<'_> {
    fn push(&self, text: &mut String, node: &FileNode, path: &RelativePath) {
        let href = escape(&address(&self.dav.root, path, node.is_directory()));
        let (mut found, mut missing) = (String::new(), String::new());
        match self.wanted {
            Wanted::Names => {
                let names = ALL.iter().filter(|name| self.value(DAV, name, node, path).is_some());
                found.extend(names.map(|name| format!("<D:{name}/>")));
            }
            Wanted::These(names) => {
                for (namespace, local) in names {
                    match self.value(namespace, local, node, path) {
                        Some(value) => {
                            let prefix = if namespace == OWNCLOUD { "oc" } else { "D" };
                            found
                                .push_str(&format!("<{prefix}:{local}>{value}</{prefix}:{local}>"));
                        }
                        None => missing.push_str(&empty(namespace, local)),
                    }
                }
            }
        }
        text.push_str(&format!("<D:response><D:href>{href}</D:href>"));
        if !found.is_empty() || missing.is_empty() {
            text.push_str(&propstat(&found, "200 OK"));
        }
        if !missing.is_empty() {
            text.push_str(&propstat(&missing, "404 Not Found"));
        }
        text.push_str("</D:response>\n");
    }

    /// Returns the content of a property as XML; nothing where the node has none.
    fn value(
        &self,
        namespace: &str,
        local: &str,
        node: &FileNode,
        path: &RelativePath,
    ) -> Option<String> {
        let record = node.record.as_ref();
        let file = record.filter(|record| !record.kind.is_directory());
        let content = node.content();
        Some(match (namespace, local) {
            (DAV, "resourcetype") => match file {
                Some(_) => String::new(),
                None => "<D:collection/>".to_owned(),
            },
            (DAV, "displayname") => match path.split_last() {
                Some((_, name)) => escape(&String::from_utf8_lossy(name.as_bytes())),
                None => escape(self.dav.root.trim_start_matches("/dav/")),
            },
            (DAV, "getcontentlength") => content?.size.to_string(),
            (DAV, "getcontenttype") => {
                file?;
                "application/octet-stream".to_owned()
            }
            (DAV, "getetag") => escape(&node.etag()),
            (DAV, "getlastmodified") => date::http_date(file?.modified.seconds),
            (DAV, "creationdate") => date::internet_date(file?.modified.seconds),
            (DAV, "supportedlock") => SUPPORTED_LOCKS.to_owned(),
            (DAV, "lockdiscovery") => {
                let Target { app, workspace, .. } = &self.dav.target;
                let locks = app.files.locks.of(*workspace, app.clock.elapsed(), path);
                describe_locks(&self.dav.root, &locks)
            }
            (DAV, "quota-used-bytes") if file.is_none() => self.quota.used.to_string(),
            (DAV, "quota-available-bytes") if file.is_none() => self.quota.left?.to_string(),
            (OWNCLOUD, "checksums") => {
                let sums = self.dav.target.app.files.checksums(content?)?;
                let one =
                    |algorithm: Algorithm| format!("{}:{}", algorithm.name(), sums.get(algorithm));
                let all = [Algorithm::Sha1, Algorithm::Md5].map(one).join(" ");
                format!("<oc:checksum>{all}</oc:checksum>")
            }
            _ => return None,
        })
    }
}

const SUPPORTED_LOCKS: &str = "<D:lockentry><D:lockscope><D:exclusive/></D:lockscope>\
    <D:locktype><D:write/></D:locktype></D:lockentry>\
    <D:lockentry><D:lockscope><D:shared/></D:lockscope>\
    <D:locktype><D:write/></D:locktype></D:lockentry>";

fn empty(namespace: &str, local: &str) -> String {
    let name = (namespace.to_owned(), local.to_owned());
    write(&Element { name, ..Element::default() })
}

fn propstat(properties: &str, status: &str) -> String {
    format!(
        "<D:propstat><D:prop>{properties}</D:prop><D:status>HTTP/1.1 {status}</D:status></D:propstat>"
    )
}

/// Answers PROPPATCH: times of files may be set, everything else is refused, and of several all or none are set.
pub(super) async fn patch(dav: &Dav, body: Option<Element>) -> Result<Response> {
    let body = body.filter(|body| body.is("propertyupdate"));
    let body = body.ok_or_else(|| ServerError::Invalid {
        what: "XML body",
        reason: "a 'propertyupdate' is expected".to_owned(),
    })?;
    let Target { app, caller, workspace, path } = &dav.target;
    let node = app.view(*caller, *workspace).await?.get(path)?;
    let steps = body.children.iter().flat_map(|step| {
        let is_set = step.is("set");
        let properties = step.child("prop").into_iter().flat_map(|prop| &prop.children);
        properties.map(move |property| (is_set, property))
    });
    let steps: Vec<(bool, &Element)> = steps.collect();
    let time = |(is_set, property): &(bool, &Element)| {
        time_of(property).filter(|_| *is_set && !node.is_directory())
    };
    let is_allowed = steps.iter().all(|step| time(step).is_some());
    if let Some(modified) = steps.iter().rev().find_map(time).filter(|_| is_allowed) {
        let plan = |view: &View| changes::set_modified(view, path, modified);
        app.apply(*caller, *workspace, plan).await?;
    }
    let (mut done, mut refused, mut left) = (String::new(), String::new(), String::new());
    for step in &steps {
        let (namespace, local) = &step.1.name;
        let list = match (is_allowed, time(step)) {
            (true, _) => &mut done,
            (false, None) => &mut refused,
            (false, Some(_)) => &mut left,
        };
        list.push_str(&empty(namespace, local));
    }
    let href = escape(&address(&dav.root, path, node.is_directory()));
    let mut text = format!("{HEAD}<D:response><D:href>{href}</D:href>");
    for (list, status) in
        [(done, "200 OK"), (refused, "403 Forbidden"), (left, "424 Failed Dependency")]
    {
        if !list.is_empty() {
            text.push_str(&propstat(&list, status));
        }
    }
    text.push_str(&format!("</D:response>\n{TAIL}"));
    Ok((StatusCode::MULTI_STATUS, [(CONTENT_TYPE, XML)], text).into_response())
}

/// Returns the time that a property sets.
fn time_of(property: &Element) -> Option<Timestamp> {
    let text = property.text.trim();
    match (property.name.0.as_str(), property.name.1.as_str()) {
        (DAV, "getlastmodified" | "lastmodified") | (WINDOWS, "Win32LastModifiedTime") => {
            let date = date::parse_http_date(text);
            let date = date.map(|seconds| Timestamp { seconds, nanoseconds: 0 });
            date.or_else(|| parse_time(text).ok())
        }
        _ => None,
    }
}
