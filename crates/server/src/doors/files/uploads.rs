//! Files in pieces, and deltas: begin, send piece by piece, commit.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::header::LOCATION;
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use model::{OpId, WorkspaceId};
use serde::{Deserialize, Serialize};

use super::content::{accept_time, check_sum, put_of};
use super::delta::{delta_answer, put_of_delta};
use super::{answer, path};
use crate::app::App;
use crate::auth::Caller;
use crate::doors::to_the_end;
use crate::error::{Result, ServerError};
use crate::files::{UPLOAD_LIFE, UploadState};

/// Where a piece begins, and where the next one does.
const OFFSET: HeaderName = HeaderName::from_static("upload-offset");

/// Returns the routes of uploads.
pub(super) fn routes() -> Router<Arc<App>> {
    let upload = get(state).patch(take).delete(end);
    Router::new()
        .route("/workspaces/{workspace}/uploads", post(begin))
        .route("/workspaces/{workspace}/uploads/{upload}", upload)
        .route("/workspaces/{workspace}/uploads/{upload}/commit", post(commit))
        .route("/workspaces/{workspace}/uploads/{upload}/delta", post(take_delta))
}

#[derive(Deserialize)]
struct Beginning {
    path: String,
}

#[derive(Serialize)]
struct UploadLine {
    id: String,
    path: String,
    offset: u64,
    /// After how many seconds without a piece it ends.
    expires_in: u64,
}

fn describe(status: StatusCode, state: &UploadState) -> Response {
    let line = UploadLine {
        id: state.id.to_string(),
        path: path::encode(state.path.as_bytes()),
        offset: state.offset,
        expires_in: UPLOAD_LIFE.as_secs(),
    };
    (status, [(OFFSET, state.offset.to_string())], Json(line)).into_response()
}

type Names = Path<(String, String)>;

async fn named(app: &App, caller: Caller, Path(names): Names) -> Result<(WorkspaceId, OpId)> {
    let (workspace, upload) = names;
    let unknown = |_| ServerError::NotFound { what: format!("upload '{upload}'") };
    let id = upload.parse().map_err(unknown)?;
    let workspace = path::workspace_of(app, caller, &workspace).await?;
    app.check_may_write(caller, workspace).await?;
    Ok((workspace, id))
}

async fn begin(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(workspace): Path<String>,
    Json(request): Json<Beginning>,
) -> Result<Response> {
    let file = path::parse(&request.path)?;
    let workspace = path::workspace_of(&app, caller, &workspace).await?;
    let state = app.begin_upload(caller, workspace, file).await?;
    let mut response = describe(StatusCode::CREATED, &state);
    let location = format!("/api/v1/workspaces/{workspace}/uploads/{}", state.id);
    let location = location.parse().expect("ids fit into a header");
    response.headers_mut().insert(LOCATION, location);
    Ok(response)
}

async fn state(State(app): State<Arc<App>>, caller: Caller, names: Names) -> Result<Response> {
    let (workspace, id) = named(&app, caller, names).await?;
    Ok(describe(StatusCode::OK, &app.upload_state(caller, workspace, id)?))
}

async fn take(
    State(app): State<Arc<App>>,
    caller: Caller,
    names: Names,
    headers: HeaderMap,
    body: Body,
) -> Result<Response> {
    let (workspace, id) = named(&app, caller, names).await?;
    let offset = headers.get(OFFSET).and_then(|value| value.to_str().ok()?.parse().ok());
    let offset = offset.ok_or_else(|| ServerError::Invalid {
        what: "Upload-Offset",
        reason: "a number of bytes is expected".to_owned(),
    })?;
    let body = body.into_data_stream();
    Ok(describe(StatusCode::OK, &app.take_piece((caller, workspace), id, offset, body).await?))
}

async fn end(State(app): State<Arc<App>>, caller: Caller, names: Names) -> Result<StatusCode> {
    let (workspace, id) = named(&app, caller, names).await?;
    app.drop_upload(caller, workspace, id);
    Ok(StatusCode::NO_CONTENT)
}

async fn commit(
    State(app): State<Arc<App>>,
    caller: Caller,
    names: Names,
    headers: HeaderMap,
) -> Result<Response> {
    let (workspace, id) = named(&app, caller, names).await?;
    let sent = headers.clone();
    // Who has gone asks again, and is told to wait for this one.
    let put = async move {
        let put_at = |path| put_of(app.clock.now(), path, &sent);
        let check = |spooled: &_| check_sum(&sent, spooled);
        app.commit_upload((caller, workspace), id, put_at, check).await
    };
    let (path, applied) = to_the_end(put).await?;
    let mut response = answer(&applied, &path)?;
    accept_time(&headers, &mut response);
    Ok(response)
}

/// Takes what has come as a delta.
async fn take_delta(
    State(app): State<Arc<App>>,
    caller: Caller,
    names: Names,
    headers: HeaderMap,
) -> Result<Response> {
    let (workspace, id) = named(&app, caller, names).await?;
    let (work, sent) = (Arc::clone(&app), headers.clone());
    let taken = async move {
        let put_at = |path| put_of_delta(&work, path, &sent);
        work.take_uploaded_delta((caller, workspace), id, put_at).await
    };
    let (path, taken) = app.files.threads.whole(taken).await??;
    delta_answer(taken, &path, &headers)
}
