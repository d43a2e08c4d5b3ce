//! The control door over HTTP: links for people without an account, as their makers see them. Who follows one comes in by [`super::public`].

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{delete, get};
use axum::{Json, Router};
use model::{DeviceId, NodeKind, WorkspaceId};
use serde::{Deserialize, Serialize};

use super::files::path;
use super::members::take_share_attempt;
use super::to_the_end;
use crate::app::App;
use crate::audit::{Happened, Line};
use crate::auth::Caller;
use crate::error::{Result, ServerError};
use crate::metadata::Metadata;
use crate::services::authorisation::Right;
use crate::services::files::View;
use crate::services::links::{self, NewLink, SeenLink, State as LinkState};
use crate::services::workspaces;

/// Returns the routes of this door.
pub fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/workspaces/{workspace}/links", get(list_links).post(add_link))
        .route("/workspaces/{workspace}/links/{link}", delete(remove_link))
}

#[derive(Serialize)]
struct LinkLine {
    id: String,
    /// To where it leads now, percent-encoded; nothing where that is gone.
    path: Option<String>,
    maker: String,
    created: i64,
    expires: Option<i64>,
    has_password: bool,
    downloads_max: Option<u64>,
    downloads: u64,
    state: &'static str,
    /// What stands in its address, once.
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<String>,
}

impl LinkLine {
    fn new(seen: SeenLink, view: &View) -> Self {
        let SeenLink { link, maker, state } = seen;
        let found = links::node_of(&link, view);
        Self {
            id: link.device.id.to_string(),
            path: found.map(|(_, path)| path::encode(path.as_bytes())),
            maker,
            created: link.device.created,
            expires: link.device.limits.and_then(|limits| limits.expires),
            has_password: link.password_hash.is_some(),
            downloads_max: link.downloads_max,
            downloads: link.downloads,
            state: match state {
                LinkState::Open => "open",
                LinkState::Expired => "expired",
                LinkState::UsedUp => "used_up",
                LinkState::Suspended => "suspended",
            },
            secret: None,
        }
    }
}

async fn list_links(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(workspace): Path<String>,
) -> Result<Json<Vec<LinkLine>>> {
    let workspace = path::workspace_of(&app, caller, &workspace).await?;
    let now = app.now();
    let list = move |metadata: &dyn Metadata| links::list(metadata, &caller, workspace, now);
    let found = app.readers.read(list).await?;
    if found.is_empty() {
        return Ok(Json(Vec::new()));
    }
    let view = app.view(caller, workspace).await?;
    Ok(Json(found.into_iter().map(|seen| LinkLine::new(seen, &view)).collect()))
}

#[derive(Deserialize)]
struct LinkRequest {
    /// To where it is to lead, percent-encoded; nothing for the whole workspace.
    #[serde(default)]
    path: String,
    expires_in_seconds: Option<i64>,
    password: Option<String>,
    downloads_max: Option<u64>,
}

async fn add_link(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(workspace): Path<String>,
    Json(request): Json<LinkRequest>,
) -> Result<(StatusCode, Json<LinkLine>)> {
    let workspace = path::workspace_of(&app, caller, &workspace).await?;
    take_share_attempt(&app, caller.account)?;
    let may = move |metadata: &dyn Metadata| {
        workspaces::open(metadata, &caller, workspace, Right::Publish).map(drop)
    };
    // Who may not is told so before a password is stretched.
    app.readers.read(may).await?;
    let (random, now) = (Arc::clone(&app.random), app.now());
    let new = NewLink {
        node: node_at(&app, caller, workspace, &request.path).await?,
        expires: request.expires_in_seconds.map(|seconds| now.saturating_add(seconds)),
        password_hash: match request.password {
            Some(password) => Some(app.hash_password(password).await?),
            None => None,
        },
        downloads_max: request.downloads_max,
    };
    let add = move |metadata: &mut dyn Metadata| {
        links::add(metadata, &*random, (&caller, workspace), &new, now)
    };
    let add = async move {
        let (seen, secret) = app.writer.write(add).await?;
        let id = seen.link.device.id;
        tracing::info!(link = %id, %workspace, "a link was made");
        let line = Line::new(app.clock.now(), Happened::LinkMade).by(caller.device).to(id);
        app.audit.note(line).await;
        let view = app.view(caller, workspace).await?;
        let line = LinkLine { secret: Some(secret.to_text()), ..LinkLine::new(seen, &view) };
        Ok((StatusCode::CREATED, Json(line)))
    };
    to_the_end(add).await
}

/// Returns the node at a path to which a link may lead.
async fn node_at(
    app: &App,
    caller: Caller,
    workspace: WorkspaceId,
    text: &str,
) -> Result<model::NodeId> {
    let path = path::parse(text)?;
    let node = app.view(caller, workspace).await?.get(&path)?;
    if node.mounted.is_some() {
        return Err(ServerError::Conflict {
            what: format!("'{path}'"),
            reason: "is shared as a workspace of its own; make the link there",
        });
    }
    match node.record.as_ref().map(|record| &record.kind) {
        // Where it leads to is told to nobody outside.
        Some(NodeKind::Symlink(_)) => Err(ServerError::Conflict {
            what: format!("'{path}'"),
            reason: "is a symbolic link; make the link to what it leads to",
        }),
        _ => Ok(node.id),
    }
}

async fn remove_link(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((workspace, link)): Path<(String, String)>,
) -> Result<StatusCode> {
    let workspace = path::workspace_of(&app, caller, &workspace).await?;
    let id: DeviceId =
        link.parse().map_err(|_| ServerError::NotFound { what: format!("link '{link}'") })?;
    let remove = move |metadata: &mut dyn Metadata| links::remove(metadata, &caller, workspace, id);
    let remove = async move {
        app.writer.write(remove).await?;
        tracing::info!(link = %id, %workspace, "a link was taken back");
        let line = Line::new(app.clock.now(), Happened::LinkRevoked).by(caller.device).to(id);
        app.audit.note(line).await;
        Ok(StatusCode::NO_CONTENT)
    };
    to_the_end(remove).await
}
