//! The door of files: folders, contents and versions of plain workspaces over HTTP (`docs/guide/api.md`).
//!
//! A path stands in the address as it is, percent-encoded; a slash in it may be encoded or not. In JSON a `path` is written
//! as in an address, because names are any bytes; `name` is for people.

use std::sync::Arc;

use axum::extract::{DefaultBodyLimit, Path, Query, State};
use axum::http::header::{ETAG, LOCATION};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;

use super::archive::{Archive, ArchiveRequest};
use crate::app::App;
use crate::auth::Caller;
use crate::error::{Result, ServerError};
use crate::files::{Applied, Recipient, ViewGuard};
use crate::limits::{LIST_MAX, SMALL_BODY_LENGTH_MAX};
use crate::services::files::changes::{self, Destination};
use crate::services::files::versions::VersionScan;
use crate::services::files::{Condition, FileNode, View};

mod activity;
pub(crate) mod conditions;
mod conflicts;
pub(crate) mod content;
pub(crate) mod date;
mod deleted;
mod delta;
mod events;
mod json;
pub(crate) mod path;
mod search;
mod uploads;
mod usage;

pub(crate) use conditions::condition_of;
use json::{FolderPage, NodeLine, VersionLine, VersionsAnswer};
pub(crate) use path::Target;

/// Returns the routes of this door.
pub fn routes() -> Router<Arc<App>> {
    let file = get(content::get).head(content::head).put(content::put).delete(delete);
    let folder = get(list).put(make_folder);
    Router::new()
        .route("/workspaces/{workspace}/files/{*path}", file)
        .route("/workspaces/{workspace}/nodes", get(stat))
        .route("/workspaces/{workspace}/nodes/{*path}", get(stat))
        .route("/workspaces/{workspace}/folders", get(list))
        .route("/workspaces/{workspace}/folders/{*path}", folder)
        .route("/workspaces/{workspace}/archive", get(archive).head(head_archive))
        .route("/workspaces/{workspace}/archive/{*path}", get(archive).head(head_archive))
        .route("/workspaces/{workspace}/versions/{*path}", get(list_versions))
        .route("/workspaces/{workspace}/deleted", get(deleted::list))
        .route("/workspaces/{workspace}/activity", get(activity::list))
        .route("/workspaces/{workspace}/usage", get(usage::show))
        .route("/workspaces/{workspace}/conflicts", get(conflicts::list).post(conflicts::mark))
        .route("/workspaces/{workspace}/resolve", post(conflicts::resolve))
        .route("/workspaces/{workspace}/search", get(search::find))
        .route("/workspaces/{workspace}/move", post(move_node))
        .route("/workspaces/{workspace}/copy", post(copy_node))
        .route("/workspaces/{workspace}/restore", post(restore))
        .route("/workspaces/{workspace}/events", get(events::listen))
        .merge(delta::routes())
        .merge(uploads::routes())
        .layer(DefaultBodyLimit::max(SMALL_BODY_LENGTH_MAX))
}

/// Returns the header that names a version.
pub(crate) fn etag_of(node: &FileNode) -> (HeaderName, HeaderValue) {
    (ETAG, content::etag_value(&node.etag()))
}

fn describe(status: StatusCode, node: &FileNode, path: &model::RelativePath) -> Response {
    (status, [etag_of(node)], Json(NodeLine::new(node, path))).into_response()
}

async fn stat(target: Target) -> Result<Response> {
    let Target { app, caller, workspace, path } = target;
    let node = app.view(caller, workspace).await?.get(&path)?;
    Ok(describe(StatusCode::OK, &node, &path))
}

#[derive(Deserialize)]
struct ListQuery {
    start_after: Option<String>,
    limit: Option<usize>,
}

async fn list(target: Target, Query(query): Query<ListQuery>) -> Result<Json<FolderPage>> {
    let Target { app, caller, workspace, path } = target;
    let limit = query.limit.unwrap_or(LIST_MAX).clamp(1, LIST_MAX);
    let after = query.start_after.filter(|name| !name.is_empty());
    let after = after.map(|name| path::name_of(&name)).transpose()?;
    let view = app.view(caller, workspace).await?;
    let folder = view.directory(&path)?;
    let nodes = view.list(folder.id, after.as_ref(), limit);
    Ok(Json(FolderPage::new(&path, &nodes, limit)))
}

impl ArchiveRequest for Target {
    fn recipient(&self) -> Recipient {
        Recipient::account(Arc::clone(&self.app), self.caller, self.workspace)
    }

    fn path(&self) -> &model::RelativePath {
        &self.path
    }

    async fn find(&self) -> Result<(ViewGuard, FileNode)> {
        let view = self.app.view(self.caller, self.workspace).await?;
        let node = view.get(&self.path)?;
        Ok((view, node))
    }
}

async fn head_archive(target: Target) -> Result<Response> {
    Ok(Archive::of(&target).await?.describe())
}

/// Sends a folder with everything in it as a ZIP file.
async fn archive(target: Target) -> Result<Response> {
    Ok(Archive::of(&target).await?.send())
}

/// Answers a request that changed a node.
fn answer(applied: &Applied, path: &model::RelativePath) -> Result<Response> {
    let status = if applied.is_new { StatusCode::CREATED } else { StatusCode::OK };
    let gone = || ServerError::NotFound { what: format!("'{path}' any more") };
    Ok(describe(status, applied.node.as_ref().ok_or_else(gone)?, path))
}

async fn make_folder(target: Target) -> Result<Response> {
    let Target { app, caller, workspace, path } = target;
    let plan = |view: &_| changes::make_folder(view, &path, app.new_node());
    answer(&app.apply(caller, workspace, plan).await?, &path)
}

async fn delete(target: Target, headers: HeaderMap) -> Result<StatusCode> {
    let Target { app, caller, workspace, path } = target;
    let condition = condition_of(&headers)?;
    let plan = |view: &_| changes::delete(view, &path, &condition);
    app.apply(caller, workspace, plan).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Deserialize)]
struct Relocation {
    from: String,
    to: String,
    #[serde(default)]
    overwrite: bool,
}

/// A request that names two paths of a workspace.
struct Route {
    from: model::RelativePath,
    to: Destination,
    condition: Condition,
}

impl Route {
    fn new(request: &Relocation, headers: &HeaderMap) -> Result<Self> {
        let to = Destination { path: path::parse(&request.to)?, overwrite: request.overwrite };
        Ok(Self { from: path::parse(&request.from)?, to, condition: condition_of(headers)? })
    }
}

async fn move_node(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(workspace): Path<String>,
    headers: HeaderMap,
    Json(request): Json<Relocation>,
) -> Result<Response> {
    let route = Route::new(&request, &headers)?;
    let workspace = path::workspace_of(&app, caller, &workspace).await?;
    let plan = |view: &_| changes::move_node(view, &route.from, &route.to, &route.condition);
    answer(&app.apply(caller, workspace, plan).await?, &route.to.path)
}

async fn copy_node(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(workspace): Path<String>,
    headers: HeaderMap,
    Json(request): Json<Relocation>,
) -> Result<Response> {
    let route = Route::new(&request, &headers)?;
    let workspace = path::workspace_of(&app, caller, &workspace).await?;
    let plan = |view: &View| {
        route.condition.check(&route.from, view.find(&route.from).as_ref())?;
        changes::copy_node(view, &route.from, &route.to, true, &mut || app.new_node())
    };
    answer(&app.apply(caller, workspace, plan).await?, &route.to.path)
}

#[derive(Deserialize)]
struct VersionsQuery {
    /// Where a list that was cut off goes on.
    cursor: Option<String>,
    limit: Option<usize>,
}

async fn list_versions(
    target: Target,
    Query(query): Query<VersionsQuery>,
) -> Result<Json<VersionsAnswer>> {
    let Target { app, caller, workspace, path } = target;
    let node = app.view(caller, workspace).await?.get(&path)?;
    let scan = match query.cursor {
        None => VersionScan::new(node.id),
        Some(text) => json::read_cursor(&text, node.id)?,
    };
    let limit = query.limit.unwrap_or(LIST_MAX).clamp(1, LIST_MAX);
    let page = app.versions(caller, workspace, scan, limit).await?;
    Ok(Json(VersionsAnswer {
        node: node.id.to_string(),
        versions: page.versions.iter().map(VersionLine::new).collect(),
        next: page.next.as_ref().map(json::write_cursor),
    }))
}

#[derive(Deserialize)]
struct Restoration {
    node: String,
    /// The last one before it was deleted where there is none.
    version: Option<u64>,
}

/// Brings a version of a node back, also of one that was deleted since.
async fn restore(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(workspace): Path<String>,
    Json(request): Json<Restoration>,
) -> Result<Response> {
    let unknown = || ServerError::NotFound { what: format!("node '{}'", request.node) };
    let node = request.node.parse().map_err(|_| unknown())?;
    let workspace = path::workspace_of(&app, caller, &workspace).await?;
    // Who may not see the workspace hears nothing of its versions.
    drop(app.view(caller, workspace).await?);
    let applied = match request.version {
        None => app.bring_back(caller, workspace, |view| changes::revive(view, node)).await?,
        Some(version) => {
            let old = app.version(caller, workspace, node, version).await?;
            let deleted = "is a deletion; there is nothing to bring back";
            let record = old.record.ok_or_else(|| ServerError::Conflict {
                what: format!("version {version} of node {node}"),
                reason: deleted,
            })?;
            let plan = |view: &View| changes::restore(view, node, &record);
            app.bring_back(caller, workspace, plan).await?
        }
    };
    let path = applied.path.as_ref().ok_or_else(unknown)?;
    let mut response = answer(&applied, path)?;
    if let Ok(location) = path::address(workspace, path).parse() {
        response.headers_mut().insert(LOCATION, location);
    }
    Ok(response)
}
