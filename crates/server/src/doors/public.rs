//! The public door: what lies behind a link, for anybody who has its secret.
//!
//! *Goals*: a file or folder can be looked at and downloaded by the same way as by who is signed in. *Invariants*: a path is walked from the
//! node of the link down, so nothing beside or above it can be named, nor is its name told; nobody hears more of a link that leads nowhere than
//! that; a link that wants a password tells nothing else before; what is sent is never shown by a browser as a page of this server.
//! *Locks*: a password is tried under the limits of its link and of the address, as at a sign-in, and turned into a pass for an hour.

use std::sync::Arc;

use axum::extract::{DefaultBodyLimit, Query};
use axum::http::header::{ACCEPT_RANGES, CONTENT_DISPOSITION};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Json, Router};
use model::{NodeKind, RelativePath};
use serde::{Deserialize, Serialize};

use super::archive::{Archive, ArchiveRequest};
use super::files::content::Wanted;
use super::files::path;
use super::packs::range::Part;
use crate::app::App;
use crate::error::Result;
use crate::files::{Recipient, ViewGuard};
use crate::limits::{LIST_MAX, SMALL_BODY_LENGTH_MAX};
use crate::services::files::FileNode;

mod visit;

pub(super) use visit::{PASS_COOKIE, PASS_LIFE_SECONDS, Visit};

/// Returns the routes of this door.
pub fn routes() -> Router<Arc<App>> {
    let content = || get(send).head(head);
    let archive = || get(send_archive).head(head_archive);
    Router::new()
        .route("/public/{secret}", get(describe))
        .route("/public/{secret}/unlock", post(unlock))
        .route("/public/{secret}/folders", get(list))
        .route("/public/{secret}/folders/{*path}", get(list))
        .route("/public/{secret}/content", content())
        .route("/public/{secret}/content/{*path}", content())
        .route("/public/{secret}/archive", archive())
        .route("/public/{secret}/archive/{*path}", archive())
        .layer(DefaultBodyLimit::max(SMALL_BODY_LENGTH_MAX))
}

/// A file or folder, as far as strangers are told.
#[derive(Debug, Default, Serialize)]
struct PublicNode {
    kind: Option<&'static str>,
    /// For people; nothing for a whole workspace, whose name is nobody's business.
    name: Option<String>,
    size: Option<u64>,
    /// Seconds since 1970.
    modified: Option<i64>,
}

impl PublicNode {
    fn new(node: &FileNode) -> Self {
        let Some(record) = &node.record else {
            return Self { kind: Some("folder"), ..Self::default() };
        };
        let name = Some(String::from_utf8_lossy(record.name.as_bytes()).into_owned());
        match &record.kind {
            NodeKind::File(content) => Self {
                kind: Some("file"),
                name,
                size: Some(content.size),
                modified: Some(record.modified.seconds),
            },
            _ => Self { kind: Some("folder"), name, ..Self::default() },
        }
    }
}

#[derive(Serialize)]
struct PublicLink {
    /// Whether everything else is told only to who shows a pass.
    needs_password: bool,
    /// Whether it ends after so many downloads, so that each of them counts.
    is_limited: bool,
    /// When it ends, in seconds since 1970.
    expires: Option<i64>,
    #[serde(flatten)]
    node: PublicNode,
}

async fn describe(visit: Visit) -> Result<Json<PublicLink>> {
    if !visit.is_unlocked() {
        let node = PublicNode::default();
        let locked = PublicLink { needs_password: true, is_limited: false, expires: None, node };
        return Ok(Json(locked));
    }
    let node = PublicNode::new(&visit.node().await?.1);
    let expires = visit.link().device.limits.and_then(|limits| limits.expires);
    let is_limited = visit.link().downloads_max.is_some();
    Ok(Json(PublicLink { needs_password: false, is_limited, expires, node }))
}

#[derive(Deserialize)]
struct PasswordRequest {
    password: String,
}

#[derive(Serialize)]
struct PassAnswer {
    pass: String,
    /// For how many seconds it counts.
    expires_in: i64,
}

async fn unlock(visit: Visit, Json(request): Json<PasswordRequest>) -> Result<Json<PassAnswer>> {
    let pass = visit.unlock(request.password).await?;
    Ok(Json(PassAnswer { pass, expires_in: PASS_LIFE_SECONDS }))
}

#[derive(Deserialize)]
pub(super) struct PageQuery {
    start_after: Option<String>,
    limit: Option<usize>,
}

/// Some of what is in a folder.
pub(super) struct Page {
    pub(super) nodes: Vec<FileNode>,
    /// The name after which the next ones come, percent-encoded; nothing at the end.
    pub(super) next: Option<String>,
}

impl Page {
    pub(super) async fn of(visit: &Visit, query: &PageQuery) -> Result<Self> {
        let limit = query.limit.unwrap_or(LIST_MAX).clamp(1, LIST_MAX);
        let after = query.start_after.as_deref().filter(|name| !name.is_empty());
        let after = after.map(path::name_of).transpose()?;
        let (view, folder) = visit.node().await?;
        folder.check_is_shown(visit.path())?;
        let mut nodes = view.list(folder.id, after.as_ref(), limit);
        let last = nodes.last().filter(|_| nodes.len() == limit);
        let next = last.and_then(|node| Some(path::encode(node.record.as_ref()?.name.as_bytes())));
        // A symbolic link names what may lie beside or above.
        nodes.retain(|node| node.is_directory() || node.content().is_some());
        Ok(Self { nodes, next })
    }
}

/// A line of a folder.
#[derive(Serialize)]
struct PublicLine {
    /// From the node of the link down, percent-encoded.
    path: String,
    #[serde(flatten)]
    node: PublicNode,
}

#[derive(Serialize)]
struct PublicPage {
    nodes: Vec<PublicLine>,
    /// What to send as `start_after` for the next ones; nothing at the end.
    next: Option<String>,
}

async fn list(visit: Visit, Query(query): Query<PageQuery>) -> Result<Json<PublicPage>> {
    let Page { nodes, next } = Page::of(&visit, &query).await?;
    let line = |node: &FileNode| {
        let path = path_in(visit.path(), node)?;
        Some(PublicLine { path: path::encode(path.as_bytes()), node: PublicNode::new(node) })
    };
    Ok(Json(PublicPage { nodes: nodes.iter().filter_map(line).collect(), next }))
}

/// Returns the path of what lies in a folder; nothing where it is too long to be asked for.
pub(super) fn path_in(folder: &RelativePath, node: &FileNode) -> Option<RelativePath> {
    folder.join(&node.record.as_ref()?.name).ok()
}

async fn wanted(visit: &Visit) -> Result<Wanted> {
    let (_, node) = visit.node().await?;
    Wanted::new(&node, visit.path())
}

/// Answers HEAD, which is no download.
pub(super) async fn head(visit: Visit, headers: HeaderMap) -> Result<Response> {
    let wanted = wanted(&visit).await?;
    let shown = wanted.shown();
    Ok(shown
        .not_modified(&headers)
        .unwrap_or_else(|| dress(&visit, shown.describe(), wanted.name())))
}

/// Sends a file or a part of it. Who gets its first byte has downloaded it; a link with a limit sends no parts, for who left
/// the first byte out would not be counted.
pub(super) async fn send(visit: Visit, headers: HeaderMap) -> Result<Response> {
    let wanted = wanted(&visit).await?;
    if let Some(known) = wanted.shown().not_modified(&headers) {
        return Ok(known);
    }
    let part = match visit.link().downloads_max {
        Some(_) => Part::Whole,
        None => wanted.shown().part(&headers)?,
    };
    let response = wanted.send(visit.recipient(), &part).await.map_err(visit::gone)?;
    if !matches!(&part, Part::Range(range) if range.start > 0) {
        visit.admit().await?;
    }
    Ok(dress(&visit, response, wanted.name()))
}

impl ArchiveRequest for Visit {
    fn recipient(&self) -> Recipient {
        self.recipient()
    }

    fn path(&self) -> &RelativePath {
        self.path()
    }

    async fn find(&self) -> Result<(ViewGuard, FileNode)> {
        self.node().await
    }
}

/// Answers HEAD, which is no download.
pub(super) async fn head_archive(visit: Visit) -> Result<Response> {
    Ok(Archive::of(&visit).await?.describe())
}

/// Sends a folder with everything in it, which is one download.
pub(super) async fn send_archive(visit: Visit) -> Result<Response> {
    let response = Archive::of(&visit).await?.send();
    visit.admit().await?;
    Ok(response)
}

/// Says that a browser is to keep what it gets under a name, and show nothing of it.
fn dress(visit: &Visit, mut response: Response, name: &str) -> Response {
    let headers = response.headers_mut();
    headers.insert(CONTENT_DISPOSITION, attachment(name));
    if visit.link().downloads_max.is_some() {
        headers.insert(ACCEPT_RANGES, HeaderValue::from_static("none"));
    }
    response
}

/// Returns the header that names a file that is to be kept (RFC 6266).
pub(super) fn attachment(name: &str) -> HeaderValue {
    // What is encoded has no byte that a header does not bear.
    let name = path::encode(name.as_bytes()).replace('/', "%2F");
    let text = match name.is_empty() {
        true => "attachment".to_owned(),
        false => format!("attachment; filename*=UTF-8''{name}"),
    };
    text.parse().expect("letters, digits and % fit into a header")
}

#[cfg(test)]
mod tests;
