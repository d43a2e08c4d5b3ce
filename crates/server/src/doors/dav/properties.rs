//! Properties of files and folders as WebDAV shows them: `PROPFIND`, `PROPPATCH`, and the list of answers.

use std::collections::HashSet;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt, TryStreamExt, stream};
use model::{RelativePath, Timestamp};

use super::locking::describe_locks;
use super::xml::{DAV, Element, ElementName, escape, write};
use super::{Dav, address};
use crate::doors::files::conditions::parse_time;
use crate::doors::files::date;
use crate::doors::tree::{FileTree, Item, ItemKind, Promises, Room};
use crate::error::{Result, ServerError};
use crate::files::Algorithm;

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

/// After how many bytes of answers they are sent.
const PIECE_LENGTH: usize = 64 * 1024;

/// What a client wants to know, each once.
#[derive(Debug, Clone)]
enum Wanted {
    Names,
    These(Vec<ElementName>),
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
        let mut known = HashSet::new();
        let names = prop.children.iter().map(|one| &one.name);
        return Ok(Wanted::These(names.filter(|name| known.insert(*name)).cloned().collect()));
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

/// Answers PROPFIND. A folder is sent in pieces, so that it takes little memory however many files it has.
pub(super) async fn find<T: FileTree>(
    dav: Dav<T>,
    headers: &HeaderMap,
    body: Option<Element>,
) -> Result<Response> {
    let depth = Depth::of(headers)?;
    let wanted = wanted_of(body.as_ref())?;
    let item = super::item_of(&dav).await?;
    if depth == Depth::Infinity && item.is_folder() {
        return Ok(infinite());
    }
    let room = dav.tree.room().await?;
    let pages = match depth == Depth::One && item.is_folder() {
        true => dav.tree.list(&dav.path, &item),
        false => stream::empty().boxed(),
    };
    let mut first = String::from(HEAD);
    let answers = Arc::new(Answers { dav, wanted, room });
    answers.push(&mut first, &item, &answers.dav.path);
    let lists = pages.map_ok(move |items| {
        let answers = Arc::clone(&answers);
        stream::iter(pieces(items, move |text, item| answers.push_child(text, &item)).map(Ok))
    });
    let first = stream::once(async { Ok(Bytes::from(first)) });
    let end = stream::once(async { Ok::<_, ServerError>(Bytes::from(TAIL)) });
    let body = Body::from_stream(first.chain(lists.try_flatten()).chain(end));
    Ok((StatusCode::MULTI_STATUS, [(CONTENT_TYPE, XML)], body).into_response())
}

/// Writes items, each piece only when it is asked for. None is much longer than [`PIECE_LENGTH`], however long a page of items is.
fn pieces<I>(items: Vec<I>, write: impl Fn(&mut String, I)) -> impl Iterator<Item = Bytes> {
    let mut items = items.into_iter();
    std::iter::from_fn(move || {
        let mut text = String::new();
        while text.len() < PIECE_LENGTH
            && let Some(item) = items.next()
        {
            write(&mut text, item);
        }
        (!text.is_empty()).then(|| Bytes::from(text))
    })
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

/// Writes what is known of files and folders.
struct Answers<T> {
    dav: Dav<T>,
    wanted: Wanted,
    room: Room,
}

impl<T: FileTree> Answers<T> {
    /// Writes what is known of something in the folder. WebDAV knows no links, and programs would try to read them.
    fn push_child(&self, text: &mut String, item: &Item<T::Handle>) {
        let name = item.name.as_ref().filter(|_| item.kind != ItemKind::Link);
        if let Some(path) = name.and_then(|name| self.dav.path.join(name).ok()) {
            self.push(text, item, &path);
        }
    }

    fn push(&self, text: &mut String, item: &Item<T::Handle>, path: &RelativePath) {
        let href = escape(&address(&self.dav.root, path, item.is_folder()));
        let (mut found, mut missing) = (String::new(), String::new());
        match &self.wanted {
            Wanted::Names => {
                let names = ALL.iter().filter(|name| self.value(DAV, name, item, path).is_some());
                found.extend(names.map(|name| format!("<D:{name}/>")));
            }
            Wanted::These(names) => {
                for (namespace, local) in names {
                    match self.value(namespace, local, item, path) {
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

    /// Returns the content of a property as XML; nothing where there is none.
    fn value(
        &self,
        namespace: &str,
        local: &str,
        item: &Item<T::Handle>,
        path: &RelativePath,
    ) -> Option<String> {
        let is_folder = item.is_folder();
        let modified = (!is_folder).then_some(item.modified.seconds);
        Some(match (namespace, local) {
            (DAV, "resourcetype") if is_folder => "<D:collection/>".to_owned(),
            (DAV, "resourcetype") => String::new(),
            (DAV, "displayname") => match path.split_last() {
                Some((_, name)) => escape(&String::from_utf8_lossy(name.as_bytes())),
                None => escape(&self.dav.title),
            },
            (DAV, "getcontentlength") => match item.kind {
                ItemKind::File(length) => length.to_string(),
                ItemKind::Folder | ItemKind::Link => return None,
            },
            (DAV, "getcontenttype") if !is_folder => "application/octet-stream".to_owned(),
            (DAV, "getetag") => escape(&item.etag),
            (DAV, "getlastmodified") => date::http_date(modified?),
            (DAV, "creationdate") => date::internet_date(modified?),
            (DAV, "supportedlock") => SUPPORTED_LOCKS.to_owned(),
            (DAV, "lockdiscovery") => {
                let Promises { locks, workspace, .. } = self.dav.tree.promises();
                let locks = locks.of(workspace, self.dav.tree.clock().elapsed(), path);
                describe_locks(&self.dav.root, &locks)
            }
            (DAV, "quota-used-bytes") if is_folder => self.room.used.to_string(),
            (DAV, "quota-available-bytes") if is_folder => self.room.left?.to_string(),
            (OWNCLOUD, "checksums") => {
                let sums = self.dav.tree.checksums(item)?;
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
pub(super) async fn patch<T: FileTree>(dav: &Dav<T>, body: Option<Element>) -> Result<Response> {
    let body = body.filter(|body| body.is("propertyupdate"));
    let body = body.ok_or_else(|| ServerError::Invalid {
        what: "XML body",
        reason: "a 'propertyupdate' is expected".to_owned(),
    })?;
    let item = super::item_of(dav).await?;
    let steps = body.children.iter().flat_map(|step| {
        let is_set = step.is("set");
        let properties = step.child("prop").into_iter().flat_map(|prop| &prop.children);
        properties.map(move |property| (is_set, property))
    });
    let steps: Vec<(bool, &Element)> = steps.collect();
    let time = |(is_set, property): &(bool, &Element)| {
        time_of(property).filter(|_| *is_set && !item.is_folder())
    };
    let is_allowed = steps.iter().all(|step| time(step).is_some());
    if let Some(modified) = steps.iter().rev().find_map(time).filter(|_| is_allowed) {
        dav.tree.set_modified(&dav.path, modified).await?;
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
    let href = escape(&address(&dav.root, &dav.path, item.is_folder()));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doors::dav::xml;

    #[test]
    fn property_that_is_asked_for_again_is_answered_once() {
        let body = "<propfind xmlns=\"DAV:\"><prop><getetag/><x xmlns=\"urn:x\"/><getetag/>\
            <x xmlns=\"urn:x\"/><getetag xmlns=\"urn:x\"/></prop></propfind>";
        let body = xml::parse(body.as_bytes()).unwrap();
        let Ok(Wanted::These(names)) = wanted_of(body.as_ref()) else { panic!("they are named") };
        let names: Vec<_> = names.iter().map(|(space, name)| (&**space, &**name)).collect();
        assert_eq!(names, [(DAV, "getetag"), ("urn:x", "x"), ("urn:x", "getetag")]);
    }

    #[test]
    fn long_page_is_written_in_pieces_of_which_none_is_long() {
        let long = 10 * 1024;
        let write = |text: &mut String, item: usize| text.push_str(&"x".repeat(item));
        let items = [vec![0; 5], vec![long; 1000]].concat();
        let lengths: Vec<usize> = pieces(items, write).map(|piece| piece.len()).collect();
        assert_eq!(lengths.iter().sum::<usize>(), 1000 * long);
        assert!(lengths.iter().all(|&length| length < PIECE_LENGTH + long), "{lengths:?}");
        assert_eq!(pieces(vec![0; 5], write).count(), 0, "nothing is to be sent");
    }
}
