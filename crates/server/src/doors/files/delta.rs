//! Deltas: the chunk list of a version out, what has changed in (`docs/design/delta.md`, "Over HTTP").

use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, BodyDataStream};
use axum::extract::Query;
use axum::http::header::{CONTENT_TYPE, ETAG};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures_util::stream;
use model::RelativePath;

use super::conditions::{CHECKSUM_HEADER, is_known};
use super::content::{ContentQuery, accept_time, etag_value, find, put_of};
use super::path::Changing;
use super::{Target, answer};
use crate::app::App;
use crate::doors::announced_length;
use crate::doors::packs::drain;
use crate::error::{Result, ServerError};
use crate::files::{DeltaAnswer, Put, Spool};
use crate::limits::BODY_WAIT_TIMEOUT;

const BYTES: HeaderValue = HeaderValue::from_static("application/octet-stream");

/// How long a body is at most, in bytes, that is received before anybody is asked who sends it: it has mostly come with the head of its
/// request, and then asking and all that follows are one piece of work.
const SHORT_LENGTH_MAX: u64 = 64 * 1024;

/// Returns the routes of deltas.
pub(super) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/workspaces/{workspace}/chunks/{*path}", get(chunks))
        .route("/workspaces/{workspace}/delta/{*path}", post(take))
}

/// Sends the chunk list of a version, in memory that its chunks take, and nothing beside.
async fn chunks(
    target: Target,
    Query(query): Query<ContentQuery>,
    headers: HeaderMap,
) -> Result<Response> {
    let wanted = find(&target, query.version).await?;
    let etag = &wanted.shown().etag;
    let named = [(ETAG, etag_value(etag)), (CONTENT_TYPE, BYTES)];
    if is_known(&headers, etag) {
        return Ok((StatusCode::NOT_MODIFIED, named).into_response());
    }
    let Target { app, caller, workspace, .. } = target;
    let (table, memory) = app.chunk_table(caller, workspace, wanted.content()).await?;
    let pieces = table.into_pieces().map(move |piece| {
        // It is given back with the last piece.
        let _held = &memory;
        Ok::<_, Infallible>(piece)
    });
    Ok((named, Body::from_stream(stream::iter(pieces))).into_response())
}

/// Takes a delta. A sender who is refused is listened to a little longer, because a connection that closes while it sends would not
/// let it read the answer.
async fn take(
    changing: Result<Changing, ServerError>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response> {
    let mut body = body.into_data_stream();
    let taken = match changing {
        Ok(changing) => take_into(changing, &headers, &mut body).await,
        Err(error) => Err(error),
    };
    if taken.is_err() {
        let _ = tokio::time::timeout(BODY_WAIT_TIMEOUT, drain(&mut body)).await;
    }
    taken
}

async fn take_into(
    changing: Changing,
    headers: &HeaderMap,
    body: &mut BodyDataStream,
) -> Result<Response> {
    let (app, path) = (Arc::clone(&changing.app), changing.path.clone());
    let put = put_of_delta(&app, path.clone(), headers);
    let mut spool = match announced_length(headers) {
        Some(length) if length <= SHORT_LENGTH_MAX => {
            Spool::begin_short(&app.files.spools, SHORT_LENGTH_MAX)
        }
        _ => {
            // Nothing long is received from who may not write, nor for what the server cannot read.
            changing.let_in().await?;
            put.as_ref().map_err(Clone::clone)?;
            app.files.uploads.forget_old(app.clock.elapsed());
            Spool::begin(&app.files.spools).await?
        }
    };
    spool.take(body).await?;
    let spooled = spool.finish().await?;
    let threads = app.files.threads.clone();
    let taken = async move {
        // Who sends slowly may be shut out by now.
        let author = changing.let_in().await?;
        app.take_delta(author, &put?, &spooled).await
    };
    delta_answer(threads.whole(taken).await??, &path, headers)
}

/// Reads the headers of a delta.
pub(super) fn put_of_delta(app: &App, path: RelativePath, headers: &HeaderMap) -> Result<Put> {
    if headers.contains_key(CHECKSUM_HEADER) {
        return Err(ServerError::Invalid {
            what: "OC-Checksum",
            reason: "a delta has the digest of what it makes in it".to_owned(),
        });
    }
    put_of(app.clock.now(), path, headers)
}

/// Answers a delta: with the new version, or with a message where there is none yet.
pub(super) fn delta_answer(
    taken: DeltaAnswer,
    path: &RelativePath,
    headers: &HeaderMap,
) -> Result<Response> {
    match taken {
        DeltaAnswer::Message(message) => {
            Ok((StatusCode::ACCEPTED, [(CONTENT_TYPE, BYTES)], message).into_response())
        }
        DeltaAnswer::Put(applied) => {
            let mut response = answer(&applied, path)?;
            accept_time(headers, &mut response);
            Ok(response)
        }
    }
}
