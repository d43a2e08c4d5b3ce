//! Contents of files: out with ranges, in with conditions.

use std::sync::Arc;

use axum::Json;
use axum::body::{Body, BodyDataStream};
use axum::extract::Query;
use axum::http::header::{
    ACCEPT_RANGES, CONTENT_LENGTH, CONTENT_TYPE, IF_RANGE, LAST_MODIFIED, RANGE,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use model::{Content, NodeKind, RelativePath, Timestamp, WorkspaceId};
use serde::Deserialize;

use super::conditions::{MTIME_HEADER, checksum_of, condition_of, is_known, modified_of};
use super::json::NodeLine;
use super::{Target, date, etag_of};
use crate::app::App;
use crate::auth::Caller;
use crate::doors::packs::drain;
use crate::doors::packs::range::Part;
use crate::error::{Result, ServerError};
use crate::files::{Applied, FileReader, Put, Spool, Spooled};
use crate::limits::BODY_WAIT_TIMEOUT;
use crate::services::files::FileNode;

#[derive(Deserialize)]
pub(super) struct ContentQuery {
    /// A version of the node that is at the path now; the newest where there is none.
    version: Option<u64>,
}

/// A file as it was asked for.
pub(crate) struct Wanted {
    node: FileNode,
    content: Content,
    modified: Timestamp,
}

async fn find(target: &Target, version: Option<u64>) -> Result<Wanted> {
    let Target { app, caller, workspace, path } = target;
    let mut node = app.view(*caller, *workspace).await?.get(path)?;
    if let Some(version) = version.filter(|version| *version != node.version) {
        node.record = app.version(*caller, *workspace, node.id, version).await?.record;
        node.version = version;
    }
    Wanted::new(node, path)
}

impl Wanted {
    /// Asks for the node at a path, which must be a file.
    pub(crate) fn new(node: FileNode, path: &RelativePath) -> Result<Self> {
        let no_file = || ServerError::Conflict { what: format!("'{path}'"), reason: "is no file" };
        let record = node.record.as_ref().ok_or_else(no_file)?;
        let NodeKind::File(content) = &record.kind else { return Err(no_file()) };
        Ok(Self { content: content.clone(), modified: record.modified, node })
    }

    /// Returns its name, for people.
    pub(crate) fn name(&self) -> String {
        let name = self.node.record.as_ref().map(|record| record.name.as_bytes());
        String::from_utf8_lossy(name.unwrap_or_default()).into_owned()
    }

    /// Returns the answer to who has this version already.
    pub(crate) fn not_modified(&self, headers: &HeaderMap) -> Option<Response> {
        let etag = [etag_of(&self.node)];
        is_known(headers, &self.node).then(|| (StatusCode::NOT_MODIFIED, etag).into_response())
    }

    /// Returns the part that the headers ask for.
    pub(crate) fn part(&self, headers: &HeaderMap) -> Result<Part> {
        let etag = self.node.etag();
        // A part of another version than the client has would not fit to it.
        let is_same = headers.get(IF_RANGE).is_none_or(|value| value.as_bytes() == etag.as_bytes());
        match headers.get(RANGE).filter(|_| is_same) {
            Some(value) => Part::parse(value, self.content.size),
            None => Ok(Part::Whole),
        }
    }

    /// Describes the file without its bytes.
    pub(crate) fn describe(&self) -> Response {
        // The body of an answer to HEAD is empty, but its length is that of the file.
        self.headers(self.content.size).into_response()
    }

    /// Sends a part of the file, to who may read it as `caller`.
    pub(crate) async fn send(
        &self,
        (app, caller, workspace): (Arc<App>, Caller, WorkspaceId),
        part: &Part,
    ) -> Result<Response> {
        let length = self.content.size;
        let bounds = part.bounds(length);
        let headers = self.headers(bounds.end - bounds.start);
        let reader = FileReader::open(app, caller, workspace, &self.content, bounds).await?;
        let mut response = (headers, Body::from_stream(reader.into_stream())).into_response();
        if let Some(content_range) = part.content_range(length) {
            *response.status_mut() = StatusCode::PARTIAL_CONTENT;
            response.headers_mut().insert(content_range.0, content_range.1);
        }
        Ok(response)
    }

    fn headers(&self, length: u64) -> [(HeaderName, HeaderValue); 5] {
        let modified = date::http_date(self.modified.seconds);
        [
            etag_of(&self.node),
            (CONTENT_LENGTH, length.into()),
            (CONTENT_TYPE, HeaderValue::from_static("application/octet-stream")),
            (ACCEPT_RANGES, HeaderValue::from_static("bytes")),
            (LAST_MODIFIED, modified.parse().expect("a date fits into a header")),
        ]
    }
}

/// Answers HEAD.
pub(super) async fn head(
    target: Target,
    Query(query): Query<ContentQuery>,
    headers: HeaderMap,
) -> Result<Response> {
    describe(&target, query.version, &headers).await
}

/// Describes a file without its bytes.
pub(crate) async fn describe(
    target: &Target,
    version: Option<u64>,
    headers: &HeaderMap,
) -> Result<Response> {
    let wanted = find(target, version).await?;
    Ok(wanted.not_modified(headers).unwrap_or_else(|| wanted.describe()))
}

/// Answers GET.
pub(super) async fn get(
    target: Target,
    Query(query): Query<ContentQuery>,
    headers: HeaderMap,
) -> Result<Response> {
    send(target, query.version, &headers).await
}

/// Sends a file or a part of it.
pub(crate) async fn send(
    target: Target,
    version: Option<u64>,
    headers: &HeaderMap,
) -> Result<Response> {
    let wanted = find(&target, version).await?;
    if let Some(known) = wanted.not_modified(headers) {
        return Ok(known);
    }
    let part = wanted.part(headers)?;
    wanted.send((target.app, target.caller, target.workspace), &part).await
}

/// Answers PUT.
pub(super) async fn put(
    target: Result<Target, ServerError>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response> {
    let (path, applied) = receive(target, &headers, body).await?;
    let gone = || ServerError::NotFound { what: format!("'{path}' any more") };
    let node = applied.node.as_ref().ok_or_else(gone)?;
    let status = if applied.is_new { StatusCode::CREATED } else { StatusCode::OK };
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

/// Receives a file and puts it. A sender who is refused is listened to a little longer, because a connection that closes
/// while it sends would not let it read the answer.
pub(crate) async fn receive(
    target: Result<Target, ServerError>,
    headers: &HeaderMap,
    body: Body,
) -> Result<(RelativePath, Applied)> {
    let mut body = body.into_data_stream();
    let received = match target {
        Ok(target) => receive_into(&target, headers, &mut body).await.map(|it| (target.path, it)),
        Err(error) => Err(error),
    };
    if received.is_err() {
        let _ = tokio::time::timeout(BODY_WAIT_TIMEOUT, drain(&mut body)).await;
    }
    received
}

async fn receive_into(
    target: &Target,
    headers: &HeaderMap,
    body: &mut BodyDataStream,
) -> Result<Applied> {
    let Target { app, caller, workspace, path } = target;
    let put = put_of(app, path.clone(), headers)?;
    app.check_put(*caller, *workspace, &put).await?;
    let mut spool = Spool::begin(app).await?;
    spool.take(body).await?;
    let spooled = spool.finish().await?;
    check_sum(headers, &spooled)?;
    app.put_file(*caller, *workspace, &put, &spooled).await
}

/// Returns what the headers say of a file that is to be put.
pub(crate) fn put_of(app: &App, path: RelativePath, headers: &HeaderMap) -> Result<Put> {
    // A part of a file is no file, and whoever does not know that would lose the rest.
    if headers.contains_key(axum::http::header::CONTENT_RANGE) {
        return Err(ServerError::Invalid {
            what: "Content-Range",
            reason: "a file is put as a whole".to_owned(),
        });
    }
    let modified = modified_of(headers)?.unwrap_or_else(|| app.clock.now());
    Ok(Put { path, condition: condition_of(headers)?, modified })
}

/// Compares a body with the checksum that its sender named.
pub(crate) fn check_sum(headers: &HeaderMap, spooled: &Spooled) -> Result<()> {
    match checksum_of(headers)? {
        Some(named) if !spooled.checksums.fits(&named) => Err(ServerError::Invalid {
            what: "OC-Checksum",
            reason: "the body that arrived has another one; send it again".to_owned(),
        }),
        _ => Ok(()),
    }
}
