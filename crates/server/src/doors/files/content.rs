//! Contents of files: out with ranges, in with conditions.

use axum::Json;
use axum::body::{Body, BodyDataStream};
use axum::extract::Query;
use axum::http::header::{
    ACCEPT_RANGES, CONTENT_LENGTH, CONTENT_TYPE, ETAG, IF_RANGE, LAST_MODIFIED, RANGE,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use model::{Content, NodeKind, RelativePath, Timestamp};
use serde::Deserialize;

use super::conditions::{MTIME_HEADER, checksum_of, condition_of, is_known, modified_of};
use super::json::NodeLine;
use super::{Target, date, etag_of};
use crate::doors::packs::drain;
use crate::doors::packs::range::Part;
use crate::doors::tree::{Changed, FileTree};
use crate::error::{Result, ServerError};
use crate::files::{FileReader, Put, Recipient, Spool, Spooled};
use crate::limits::BODY_WAIT_TIMEOUT;
use crate::services::files::FileNode;

#[derive(Deserialize)]
pub(super) struct ContentQuery {
    /// A version of the node that is at the path now; the newest where there is none.
    pub(super) version: Option<u64>,
}

/// What headers say of a file.
pub(crate) struct Shown {
    /// What names its version.
    pub(crate) etag: String,
    /// Its length in bytes.
    pub(crate) length: u64,
    /// When it was modified.
    pub(crate) modified: Timestamp,
}

impl Shown {
    /// Returns the answer to who has this version already.
    pub(crate) fn not_modified(&self, headers: &HeaderMap) -> Option<Response> {
        let etag = [(ETAG, etag_value(&self.etag))];
        is_known(headers, &self.etag).then(|| (StatusCode::NOT_MODIFIED, etag).into_response())
    }

    /// Returns the part that the headers ask for.
    pub(crate) fn part(&self, headers: &HeaderMap) -> Result<Part> {
        let etag = self.etag.as_bytes();
        // A part of another version than the client has would not fit to it.
        let is_same = headers.get(IF_RANGE).is_none_or(|value| value.as_bytes() == etag);
        match headers.get(RANGE).filter(|_| is_same) {
            Some(value) => Part::parse(value, self.length),
            None => Ok(Part::Whole),
        }
    }

    /// Describes the file without its bytes.
    pub(crate) fn describe(&self) -> Response {
        // The body of an answer to HEAD is empty, but its length is that of the file.
        self.headers(self.length).into_response()
    }

    /// Sends the bytes of a part.
    pub(crate) fn send(&self, part: &Part, bytes: Body) -> Response {
        let bounds = part.bounds(self.length);
        let mut response = (self.headers(bounds.end - bounds.start), bytes).into_response();
        if let Some(content_range) = part.content_range(self.length) {
            *response.status_mut() = StatusCode::PARTIAL_CONTENT;
            response.headers_mut().insert(content_range.0, content_range.1);
        }
        response
    }

    fn headers(&self, length: u64) -> [(HeaderName, HeaderValue); 5] {
        let modified = date::http_date(self.modified.seconds);
        [
            (ETAG, etag_value(&self.etag)),
            (CONTENT_LENGTH, length.into()),
            (CONTENT_TYPE, HeaderValue::from_static("application/octet-stream")),
            (ACCEPT_RANGES, HeaderValue::from_static("bytes")),
            (LAST_MODIFIED, modified.parse().expect("a date fits into a header")),
        ]
    }
}

/// Writes what names a version as a header has it.
pub(crate) fn etag_value(etag: &str) -> HeaderValue {
    etag.parse().expect("an etag fits into a header")
}

/// A file as it was asked for.
pub(crate) struct Wanted {
    shown: Shown,
    content: Content,
    name: String,
}

pub(super) async fn find(target: &Target, version: Option<u64>) -> Result<Wanted> {
    let Target { app, caller, workspace, path } = target;
    let mut node = app.view(*caller, *workspace).await?.get(path)?;
    if let Some(version) = version.filter(|version| *version != node.version) {
        node.record = app.version(*caller, *workspace, node.id, version).await?.record;
        node.version = version;
    }
    Wanted::new(&node, path)
}

impl Wanted {
    /// Asks for the node at a path, which must be a file.
    pub(crate) fn new(node: &FileNode, path: &RelativePath) -> Result<Self> {
        let no_file = || ServerError::Conflict { what: format!("'{path}'"), reason: "is no file" };
        let record = node.record.as_ref().ok_or_else(no_file)?;
        let NodeKind::File(content) = &record.kind else { return Err(no_file()) };
        let (length, modified) = (content.size, record.modified);
        Ok(Self {
            shown: Shown { etag: node.etag(), length, modified },
            content: content.clone(),
            name: String::from_utf8_lossy(record.name.as_bytes()).into_owned(),
        })
    }

    /// Returns what headers say of it.
    pub(crate) fn shown(&self) -> &Shown {
        &self.shown
    }

    /// Returns what it is made of.
    pub(super) fn content(&self) -> &Content {
        &self.content
    }

    /// Returns its name, for people.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Sends a part of the file.
    pub(crate) async fn send(&self, recipient: Recipient, part: &Part) -> Result<Response> {
        let bounds = part.bounds(self.shown.length);
        let reader = FileReader::open(recipient, &self.content, bounds).await?;
        Ok(self.shown.send(part, Body::from_stream(reader.into_stream())))
    }
}

/// Answers HEAD.
pub(super) async fn head(
    target: Target,
    Query(query): Query<ContentQuery>,
    headers: HeaderMap,
) -> Result<Response> {
    let shown = find(&target, query.version).await?.shown;
    Ok(shown.not_modified(&headers).unwrap_or_else(|| shown.describe()))
}

/// Answers GET.
pub(super) async fn get(
    target: Target,
    Query(query): Query<ContentQuery>,
    headers: HeaderMap,
) -> Result<Response> {
    let wanted = find(&target, query.version).await?;
    if let Some(known) = wanted.shown.not_modified(&headers) {
        return Ok(known);
    }
    let part = wanted.shown.part(&headers)?;
    wanted.send(Recipient::account(target.app, target.caller, target.workspace), &part).await
}

/// Answers PUT.
pub(super) async fn put(
    target: Result<Target, ServerError>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response> {
    let (path, changed) = receive(target.map(Target::into_tree), &headers, body).await?;
    let gone = || ServerError::NotFound { what: format!("'{path}' any more") };
    let node = &changed.item.as_ref().ok_or_else(gone)?.handle;
    let status = if changed.is_new { StatusCode::CREATED } else { StatusCode::OK };
    let line = Json(NodeLine::new(node, &path));
    let mut response = (status, [etag_of(node)], line).into_response();
    accept_time(&headers, &mut response);
    Ok(response)
}

/// Says that the time of a client was taken.
pub(crate) fn accept_time(headers: &HeaderMap, response: &mut Response) {
    if headers.contains_key(MTIME_HEADER) {
        response.headers_mut().insert(MTIME_HEADER, HeaderValue::from_static("accepted"));
    }
}

/// Receives a file and puts it.
pub(super) async fn receive<T: FileTree>(
    target: Result<(T, RelativePath), ServerError>,
    headers: &HeaderMap,
    body: Body,
) -> Result<(RelativePath, Changed<T::Handle>)> {
    let mut body = body.into_data_stream();
    let received = match target {
        Ok((tree, path)) => {
            receive_into(&tree, &path, headers, &mut body).await.map(|changed| (path, changed))
        }
        Err(error) => Err(error),
    };
    if received.is_err() {
        hear_out(&mut body).await;
    }
    received
}

/// Listens a little longer to a sender who is refused, because a connection that closes while it sends would not let it read
/// the answer.
pub(crate) async fn hear_out(body: &mut BodyDataStream) {
    let _ = tokio::time::timeout(BODY_WAIT_TIMEOUT, drain(body)).await;
}

async fn receive_into<T: FileTree>(
    tree: &T,
    path: &RelativePath,
    headers: &HeaderMap,
    body: &mut BodyDataStream,
) -> Result<Changed<T::Handle>> {
    let put = put_of(tree.clock().now(), path.clone(), headers)?;
    let spooled = spooled(tree, &put, headers, body).await?;
    tree.put(&put, &spooled).await
}

/// Receives a file that is to be put, and compares it with what its sender says of it. What is to be so is looked at before,
/// and again by whoever puts it: it may take long to come.
pub(crate) async fn spooled<T: FileTree>(
    tree: &T,
    put: &Put,
    headers: &HeaderMap,
    body: &mut BodyDataStream,
) -> Result<Spooled> {
    tree.check_put(put).await?;
    let mut spool = Spool::begin_file(tree.spools()).await?;
    spool.take(body).await?;
    let spooled = spool.finish().await?;
    check_sum(headers, &spooled)?;
    Ok(spooled)
}

/// Returns what the headers say of a file that is to be put now.
pub(crate) fn put_of(now: Timestamp, path: RelativePath, headers: &HeaderMap) -> Result<Put> {
    // A part of a file is no file, and whoever does not know that would lose the rest.
    if headers.contains_key(axum::http::header::CONTENT_RANGE) {
        return Err(ServerError::Invalid {
            what: "Content-Range",
            reason: "a file is put as a whole".to_owned(),
        });
    }
    let modified = modified_of(headers)?.unwrap_or(now);
    Ok(Put { path, condition: condition_of(headers)?, modified, upload: None })
}

/// Compares a body with the checksum that its sender named.
pub(crate) fn check_sum(headers: &HeaderMap, spooled: &Spooled) -> Result<()> {
    match checksum_of(headers)? {
        Some(named) if !spooled.checksums.as_ref().is_some_and(|sums| sums.fits(&named)) => {
            Err(ServerError::Invalid {
                what: "OC-Checksum",
                reason: "the body that arrived has another one; send it again".to_owned(),
            })
        }
        _ => Ok(()),
    }
}
