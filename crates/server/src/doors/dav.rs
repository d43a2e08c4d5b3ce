//! The door of WebDAV (RFC 4918, classes 1 and 2): plain workspaces as folders for programs that know nothing of Syncline.
//!
//! *Participants*: file managers and programs such as rclone, davfs2 and cadaver, under `/dav/WORKSPACE/`. *Goals*: files of any
//! length and folders of any number, in bounded memory; times and checksums, so that copies are compared without being read.
//! *Non-goals*: properties of others, which nothing here could keep; lists of everything at once. *Invariants*: what
//! is written here goes the way of the door of files ([`crate::doors::files`]), and is refused where that refuses.
//!
//! What works with which program stands in `docs/guide/webdav.md`.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::header::{ALLOW, LOCATION, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use model::RelativePath;

use crate::app::App;
use crate::doors::files::content::{accept_time, describe, receive, send};
use crate::doors::files::{Target, condition_of, etag_of, path};
use crate::error::{Result, ServerError};
use crate::limits::BODY_WAIT_TIMEOUT;
use crate::listener::PeerAddress;
use crate::services::files::View;
use crate::services::files::changes::{self, Destination};

pub(crate) mod basic;
mod if_header;
mod locking;
mod properties;
mod xml;

use locking::{check, if_of};
use properties::Depth;

/// Where all of it begins.
const ROOT: &str = "/dav/";

/// The longest XML body, in bytes.
const XML_LENGTH_MAX: usize = 64 * 1024;

const METHODS: &str =
    "OPTIONS, GET, HEAD, PUT, DELETE, PROPFIND, PROPPATCH, MKCOL, COPY, MOVE, LOCK, UNLOCK";

/// Returns the routes of this door.
pub fn routes() -> Router<Arc<App>> {
    Router::new().route("/dav/{*rest}", any(answer))
}

/// What a request is about.
struct Dav {
    target: Target,
    /// The address of the workspace, without a slash at its end.
    root: String,
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
                let is_unknown =
                    matches!(error, ServerError::NotSignedIn | ServerError::WrongPassword);
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

async fn answer(
    State(app): State<Arc<App>>,
    ConnectInfo(peer): ConnectInfo<PeerAddress>,
    request: Request,
) -> Response {
    if *request.method() == Method::OPTIONS {
        let headers = [("dav", "1, 2"), ("ms-author-via", "DAV"), ("allow", METHODS)];
        return (StatusCode::OK, headers).into_response();
    }
    let (parts, body) = request.into_parts();
    let dav = open(&app, &parts.headers, peer, parts.uri.path()).await;
    if parts.method == Method::PUT {
        return put(dav, &parts.headers, body).await.unwrap_or_else(Refused::into_response);
    }
    let done = match dav {
        Ok(dav) => carry_out(dav, &parts.method, &parts.headers, body).await,
        Err(error) => Err(error.into()),
    };
    done.unwrap_or_else(Refused::into_response)
}

/// Finds out who asks for what.
async fn open(
    app: &Arc<App>,
    headers: &HeaderMap,
    peer: PeerAddress,
    address: &str,
) -> Result<Dav> {
    let caller = basic::caller_of(app, headers, peer).await?;
    let rest = address.strip_prefix(ROOT).unwrap_or_default();
    let (name, rest) = rest.split_once('/').unwrap_or((rest, ""));
    let text = path::decode(name)?;
    let workspace = path::workspace_of(app, caller, &String::from_utf8_lossy(&text)).await?;
    let target = Target { app: Arc::clone(app), caller, workspace, path: path::parse(rest)? };
    Ok(Dav { target, root: format!("{ROOT}{name}") })
}

/// Returns the address of something in a workspace; that of a folder ends with a slash.
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

async fn carry_out(
    dav: Dav,
    method: &Method,
    headers: &HeaderMap,
    body: Body,
) -> Result<Response, Refused> {
    match method.as_str() {
        "GET" => Ok(send(file_of(dav).await?, None, headers).await?),
        "HEAD" => Ok(describe(&file_of(dav).await?, None, headers).await?),
        "DELETE" => delete(&dav, headers).await,
        "MKCOL" => make_folder(&dav, headers, body).await,
        "PROPFIND" => Ok(properties::find(dav, headers, read_xml(body).await?).await?),
        "PROPPATCH" => {
            let path = dav.target.path.clone();
            check(&dav, &if_of(headers)?, &[(&path, false, false)]).await?;
            Ok(properties::patch(&dav, read_xml(body).await?).await?)
        }
        "MOVE" | "COPY" => relocate(&dav, method.as_str() == "MOVE", headers).await,
        "LOCK" => locking::lock(&dav, headers, read_xml(body).await?).await,
        "UNLOCK" => locking::unlock(&dav, headers).await,
        _ => Ok((StatusCode::METHOD_NOT_ALLOWED, [(ALLOW, METHODS)]).into_response()),
    }
}

/// Refuses to send what is no file.
async fn file_of(dav: Dav) -> Result<Target, ServerError> {
    let Target { app, caller, workspace, path } = &dav.target;
    let node = app.view(*caller, *workspace).await?.get(path)?;
    match node.is_directory() {
        true => Err(ServerError::Conflict { what: format!("'{path}'"), reason: "is a folder" }),
        false => Ok(dav.target),
    }
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

async fn put(dav: Result<Dav>, headers: &HeaderMap, body: Body) -> Result<Response, Refused> {
    let target = match dav {
        Ok(dav) => {
            let path = dav.target.path.clone();
            let view = dav.target.app.view(dav.target.caller, dav.target.workspace).await;
            let is_new = view.map(|view| view.find(&path).is_none());
            let checked = match (is_new, if_of(headers)) {
                (Ok(is_new), Ok(conditions)) => {
                    check(&dav, &conditions, &[(&path, false, is_new)]).await
                }
                (Err(error), _) | (_, Err(error)) => Err(error.into()),
            };
            match checked {
                Ok(()) => Ok(dav.target),
                Err(Refused::Error(error)) => Err(error),
                Err(Refused::Locked) => {
                    let mut body = body.into_data_stream();
                    let drained = crate::doors::packs::drain(&mut body);
                    let _ = tokio::time::timeout(BODY_WAIT_TIMEOUT, drained).await;
                    return Err(Refused::Locked);
                }
            }
        }
        Err(error) => Err(error),
    };
    let (path, applied) = receive(target, headers, body).await?;
    let gone = || ServerError::NotFound { what: format!("'{path}' any more") };
    let node = applied.node.as_ref().ok_or_else(gone)?;
    let status = if applied.is_new { StatusCode::CREATED } else { StatusCode::NO_CONTENT };
    let mut response = (status, [etag_of(node)]).into_response();
    accept_time(headers, &mut response);
    Ok(response)
}

async fn delete(dav: &Dav, headers: &HeaderMap) -> Result<Response, Refused> {
    let Target { app, caller, workspace, path } = &dav.target;
    check(dav, &if_of(headers)?, &[(path, true, true)]).await?;
    let condition = condition_of(headers)?;
    app.apply(*caller, *workspace, |view| changes::delete(view, path, &condition)).await?;
    app.files.locks.forget(*workspace, app.clock.elapsed(), path);
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn make_folder(dav: &Dav, headers: &HeaderMap, body: Body) -> Result<Response, Refused> {
    let Target { app, caller, workspace, path } = &dav.target;
    let bytes = axum::body::to_bytes(body, XML_LENGTH_MAX).await;
    if bytes.is_ok_and(|bytes| !bytes.is_empty()) {
        return Ok(StatusCode::UNSUPPORTED_MEDIA_TYPE.into_response());
    }
    check(dav, &if_of(headers)?, &[(path, false, true)]).await?;
    let plan = |view: &View| changes::make_folder(view, path, app.new_node());
    match app.apply(*caller, *workspace, plan).await {
        Ok(_) => Ok(StatusCode::CREATED.into_response()),
        Err(ServerError::Taken { .. }) => {
            Ok((StatusCode::METHOD_NOT_ALLOWED, [(ALLOW, METHODS)]).into_response())
        }
        Err(error) => Err(error.into()),
    }
}

/// Answers MOVE and COPY.
async fn relocate(dav: &Dav, is_move: bool, headers: &HeaderMap) -> Result<Response, Refused> {
    let Target { app, caller, workspace, path: from } = &dav.target;
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
    check(dav, &if_of(headers)?, if is_move { &changed } else { &changed[..1] }).await?;
    let condition = condition_of(headers)?;
    let plan = |view: &View| match is_move {
        true => changes::move_node(view, from, &to, &condition),
        false => changes::copy_node(view, from, &to, is_deep, &mut || app.new_node()),
    };
    let applied = app.apply(*caller, *workspace, plan).await?;
    let now = app.clock.elapsed();
    if is_move {
        app.files.locks.forget(*workspace, now, from);
    }
    if !applied.is_new {
        app.files.locks.forget(*workspace, now, &to.path);
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
