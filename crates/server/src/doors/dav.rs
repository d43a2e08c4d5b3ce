//! The door of WebDAV (RFC 4918, classes 1 and 2): trees of files as folders for programs that know nothing of Syncline.
//!
//! *Participants*: file managers and programs such as rclone, davfs2 and cadaver; a tree of files
//! ([`crate::doors::tree`]): a plain workspace of a server ([`workspaces`]), or a folder of a device ([`alone`]). *Goals*:
//! files of any length and folders of any number, in bounded memory; times and checksums, so that copies are compared
//! without being read. *Non-goals*: properties of others, which nothing here could keep; lists of everything at once.
//! *Invariants*: what is written here goes the way of the door of files ([`crate::doors::files`]), and is refused where that
//! refuses.
//!
//! What works with which program stands in `docs/guide/webdav.md`.

use axum::body::{Body, BodyDataStream};
use axum::http::header::{ALLOW, ETAG, LOCATION, WWW_AUTHENTICATE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use model::RelativePath;

use crate::doors::files::content::{Shown, accept_time, etag_value, hear_out, put_of, spooled};
use crate::doors::files::{condition_of, path};
use crate::doors::tree::{Changed, Destination, FileTree, Item, ItemKind};
use crate::error::{Result, ServerError};
use crate::limits::BODY_WAIT_TIMEOUT;

pub(crate) mod alone;
pub(crate) mod basic;
mod if_header;
mod locking;
mod properties;
pub mod workspaces;
mod xml;

use locking::{check, check_free, if_of};
use properties::Depth;

/// The longest XML body, in bytes.
const XML_LENGTH_MAX: usize = 64 * 1024;

const METHODS: &str =
    "OPTIONS, GET, HEAD, PUT, DELETE, PROPFIND, PROPPATCH, MKCOL, COPY, MOVE, LOCK, UNLOCK";

/// What a request is about.
struct Dav<T> {
    tree: T,
    path: RelativePath,
    /// The address of the tree, without a slash at its end.
    root: String,
    /// What the tree is called, for people.
    title: String,
}

/// Why a request was not carried out.
enum Refused {
    /// Somebody else has locked it.
    Locked,
    Error(ServerError),
}

impl From<ServerError> for Refused {
    fn from(error: ServerError) -> Self {
        Self::Error(error)
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        match self {
            Self::Locked => StatusCode::LOCKED.into_response(),
            Self::Error(error) => {
                let is_unknown = matches!(
                    error,
                    ServerError::NotSignedIn
                        | ServerError::WrongPassword
                        | ServerError::TokenNeeded
                );
                let mut response = error.into_response();
                if is_unknown {
                    let realm =
                        HeaderValue::from_static("Basic realm=\"Syncline\", charset=\"UTF-8\"");
                    response.headers_mut().insert(WWW_AUTHENTICATE, realm);
                }
                response
            }
        }
    }
}

/// Says what there is, which everybody may know.
fn options() -> Response {
    let headers = [("dav", "1, 2"), ("ms-author-via", "DAV"), ("allow", METHODS)];
    (StatusCode::OK, headers).into_response()
}

/// Answers a request about a tree; also one that was refused already, whose sender must be heard first.
async fn respond<T: FileTree>(dav: Result<Dav<T>>, parts: &Parts, body: Body) -> Response {
    if parts.method == Method::PUT {
        return put(dav, &parts.headers, body).await.unwrap_or_else(Refused::into_response);
    }
    let done = match dav {
        Ok(dav) => carry_out(dav, &parts.method, &parts.headers, body).await,
        Err(error) => Err(error.into()),
    };
    done.unwrap_or_else(Refused::into_response)
}

/// Returns the address of something in a tree; that of a folder ends with a slash.
fn address(root: &str, path: &RelativePath, is_directory: bool) -> String {
    let slash = if is_directory && !path.is_root() { "/" } else { "" };
    format!("{root}/{}{slash}", path::encode(path.as_bytes()))
}

/// Returns the path of an address, which may begin with the name of a server.
fn path_in(root: &str, address: &str) -> Result<RelativePath> {
    let elsewhere = || ServerError::Forbidden { what: format!("going to '{address}'") };
    let path = match address.split_once("://") {
        Some((_, after)) => after.find('/').map_or("/", |slash| &after[slash..]),
        None => address,
    };
    let (root, path_bytes) = (path::parse(root)?, path::parse(path)?);
    let rest =
        path_bytes.starts_with(&root).then(|| &path_bytes.as_bytes()[root.as_bytes().len()..]);
    let rest = rest.ok_or_else(elsewhere)?;
    path::parse(&path::encode(rest))
}

async fn carry_out<T: FileTree>(
    dav: Dav<T>,
    method: &Method,
    headers: &HeaderMap,
    body: Body,
) -> Result<Response, Refused> {
    match method.as_str() {
        "GET" => Ok(get(&dav, headers).await?),
        "HEAD" => {
            let shown = file_of(&dav).await?.1;
            Ok(shown.not_modified(headers).unwrap_or_else(|| shown.describe()))
        }
        "DELETE" => delete(&dav, headers).await,
        "MKCOL" => make_folder(&dav, headers, body).await,
        "PROPFIND" => Ok(properties::find(dav, headers, read_xml(body).await?).await?),
        "PROPPATCH" => {
            check(&dav, &if_of(headers)?, &[(&dav.path, false, false)]).await?;
            Ok(properties::patch(&dav, read_xml(body).await?).await?)
        }
        "MOVE" | "COPY" => relocate(&dav, method.as_str() == "MOVE", headers).await,
        "LOCK" => locking::lock(&dav, headers, read_xml(body).await?).await,
        "UNLOCK" => locking::unlock(&dav, headers).await,
        _ => Ok((StatusCode::METHOD_NOT_ALLOWED, [(ALLOW, METHODS)]).into_response()),
    }
}

/// Returns what stands at the path, which must be something.
async fn item_of<T: FileTree>(dav: &Dav<T>) -> Result<Item<T::Handle>> {
    let found = dav.tree.find(&dav.path).await?;
    found.ok_or_else(|| ServerError::NotFound { what: format!("'{}'", dav.path) })
}

/// Returns the file at the path, and refuses to send what is none.
async fn file_of<T: FileTree>(dav: &Dav<T>) -> Result<(Item<T::Handle>, Shown)> {
    let item = item_of(dav).await?;
    let conflict = |reason| ServerError::Conflict { what: format!("'{}'", dav.path), reason };
    match item.kind {
        ItemKind::File(length) => {
            let shown = Shown { etag: item.etag.clone(), length, modified: item.modified };
            Ok((item, shown))
        }
        ItemKind::Folder => Err(conflict("is a folder")),
        ItemKind::Link => Err(conflict("is no file")),
    }
}

async fn get<T: FileTree>(dav: &Dav<T>, headers: &HeaderMap) -> Result<Response> {
    let (item, shown) = file_of(dav).await?;
    if let Some(known) = shown.not_modified(headers) {
        return Ok(known);
    }
    let part = shown.part(headers)?;
    let bytes = dav.tree.read(&dav.path, &item, part.bounds(shown.length)).await?;
    Ok(shown.send(&part, Body::from_stream(bytes)))
}

async fn read_xml(body: Body) -> Result<Option<xml::Element>> {
    let read = axum::body::to_bytes(body, XML_LENGTH_MAX);
    let invalid = |reason: &str| ServerError::Invalid { what: "body", reason: reason.to_owned() };
    match tokio::time::timeout(BODY_WAIT_TIMEOUT, read).await {
        Ok(Ok(bytes)) => xml::parse(&bytes),
        Ok(Err(_)) => Err(invalid("it broke off, or is longer than 64 KiB")),
        Err(_) => Err(invalid("it did not come in time")),
    }
}

async fn put<T: FileTree>(
    dav: Result<Dav<T>>,
    headers: &HeaderMap,
    body: Body,
) -> Result<Response, Refused> {
    let mut body = body.into_data_stream();
    let done = match dav {
        Ok(dav) => receive(&dav, headers, &mut body).await.map(|changed| (dav.path, changed)),
        Err(error) => Err(error.into()),
    };
    if done.is_err() {
        hear_out(&mut body).await;
    }
    let (path, changed) = done?;
    let gone = || ServerError::NotFound { what: format!("'{path}' any more") };
    let item = changed.item.as_ref().ok_or_else(gone)?;
    let status = if changed.is_new { StatusCode::CREATED } else { StatusCode::NO_CONTENT };
    let mut response = (status, [(ETAG, etag_value(&item.etag))]).into_response();
    accept_time(headers, &mut response);
    Ok(response)
}

/// Receives a file and puts it, unless somebody has locked it, or changed what was named, by the time that it is there.
async fn receive<T: FileTree>(
    dav: &Dav<T>,
    headers: &HeaderMap,
    body: &mut BodyDataStream,
) -> Result<Changed<T::Handle>, Refused> {
    let Dav { tree, path, .. } = dav;
    let conditions = if_of(headers)?;
    let is_new = tree.find(path).await?.is_none();
    let changes = [(path, false, is_new)];
    let etag = check(dav, &conditions, &changes).await?;
    let mut put = put_of(tree.clock().now(), path.clone(), headers)?;
    put.condition = conditions.with(put.condition, etag);
    let spooled = spooled(tree, &put, headers, body).await?;
    // A lock of the sender's own may have ended meanwhile: that keeps nobody out.
    check_free(dav, &conditions, &changes)?;
    Ok(tree.put(&put, &spooled).await?)
}

/// Ends the promises of what is gone.
fn forget_locks<T: FileTree>(dav: &Dav<T>, path: &RelativePath) {
    let promises = dav.tree.promises();
    promises.locks.forget(promises.workspace, dav.tree.clock().elapsed(), path);
}

async fn delete<T: FileTree>(dav: &Dav<T>, headers: &HeaderMap) -> Result<Response, Refused> {
    let conditions = if_of(headers)?;
    let etag = check(dav, &conditions, &[(&dav.path, true, true)]).await?;
    let condition = conditions.with(condition_of(headers)?, etag);
    dav.tree.delete(&dav.path, &condition).await?;
    forget_locks(dav, &dav.path);
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn make_folder<T: FileTree>(
    dav: &Dav<T>,
    headers: &HeaderMap,
    body: Body,
) -> Result<Response, Refused> {
    let bytes = axum::body::to_bytes(body, XML_LENGTH_MAX).await;
    if bytes.is_ok_and(|bytes| !bytes.is_empty()) {
        return Ok(StatusCode::UNSUPPORTED_MEDIA_TYPE.into_response());
    }
    check(dav, &if_of(headers)?, &[(&dav.path, false, true)]).await?;
    match dav.tree.make_folder(&dav.path).await {
        Ok(()) => Ok(StatusCode::CREATED.into_response()),
        Err(ServerError::Taken { .. }) => {
            Ok((StatusCode::METHOD_NOT_ALLOWED, [(ALLOW, METHODS)]).into_response())
        }
        Err(error) => Err(error.into()),
    }
}

/// Answers MOVE and COPY.
async fn relocate<T: FileTree>(
    dav: &Dav<T>,
    is_move: bool,
    headers: &HeaderMap,
) -> Result<Response, Refused> {
    let from = &dav.path;
    let destination = headers.get("destination").and_then(|value| value.to_str().ok());
    let destination = destination.ok_or_else(|| ServerError::Invalid {
        what: "Destination",
        reason: "an address is expected".to_owned(),
    })?;
    let overwrite = headers.get("overwrite").is_none_or(|value| value.as_bytes() != b"F");
    let to = Destination { path: path_in(&dav.root, destination)?, overwrite };
    if *from == to.path {
        return Err(ServerError::Forbidden {
            what: "to copy or move something to itself".to_owned(),
        }
        .into());
    }
    let is_deep = Depth::of(headers)? != Depth::Zero;
    let changed = [(&to.path, true, true), (from, true, true)];
    let conditions = if_of(headers)?;
    let etag = check(dav, &conditions, if is_move { &changed } else { &changed[..1] }).await?;
    let is_new = match is_move {
        true => {
            let condition = conditions.with(condition_of(headers)?, etag);
            dav.tree.relocate(from, &to, &condition).await?
        }
        false => dav.tree.copy(from, &to, is_deep).await?,
    };
    if is_move {
        forget_locks(dav, from);
    }
    if !is_new {
        forget_locks(dav, &to.path);
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let mut response = StatusCode::CREATED.into_response();
    if let Ok(location) = address(&dav.root, &to.path, false).parse() {
        response.headers_mut().insert(LOCATION, location);
    }
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destination_is_an_address_or_a_path_in_the_same_workspace() {
        let path = |text: &str| path_in("/dav/my%20home", text).map(|path| path.to_string()).ok();
        assert_eq!(path("http://host:1/dav/my%20home/a/b"), Some("a/b".to_owned()));
        assert_eq!(path("/dav/my%20home/a%20b/"), Some("a b".to_owned()));
        assert_eq!(path("https://host/dav/my%20home"), Some(".".to_owned()));
        for text in
            ["/dav/other/a", "/dav/my%20homes/a", "/a", "http://host", "/dav/my%20home/../x"]
        {
            assert_eq!(path(text), None, "{text}");
        }
    }
}
