//! Plain workspaces of a server, each under `/dav/WORKSPACE/`. A folder that is a workspace of its own is there, too, with what that workspace
//! has: to a program that mirrors the one around it, an empty folder would say that everything in it was deleted.

use std::sync::Arc;

use axum::Router;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::Method;
use axum::http::request::Parts;
use axum::response::Response;
use axum::routing::any;

use super::{Dav, basic, options, respond};
use crate::app::App;
use crate::doors::files::path;
use crate::doors::tree::workspace::WorkspaceTree;
use crate::error::{Result, ServerError};
use crate::listener::PeerAddress;
use crate::services::files::WayOut;

/// Where all of it begins.
const ROOT: &str = "/dav/";

/// Returns the routes of this door.
pub fn routes() -> Router<Arc<App>> {
    Router::new().route("/dav/{*rest}", any(answer))
}

async fn answer(
    State(app): State<Arc<App>>,
    ConnectInfo(peer): ConnectInfo<PeerAddress>,
    request: Request,
) -> Response {
    if *request.method() == Method::OPTIONS {
        return options();
    }
    let (parts, body) = request.into_parts();
    let dav = open(&app, &parts, peer).await;
    respond(dav, &parts, body).await
}

/// Finds out who asks for what.
async fn open(app: &Arc<App>, parts: &Parts, peer: PeerAddress) -> Result<Dav<WorkspaceTree>> {
    let caller = basic::caller_of(app, &parts.headers, peer).await?;
    let rest = parts.uri.path().strip_prefix(ROOT).unwrap_or_default();
    let (name, rest) = rest.split_once('/').unwrap_or((rest, ""));
    let text = path::decode(name)?;
    let title = String::from_utf8_lossy(&text).into_owned();
    let workspace = path::workspace_of(app, caller, &title).await?;
    let tree = WorkspaceTree { app: Arc::clone(app), caller, workspace };
    let dav = Dav { tree, path: path::parse(rest)?, root: format!("{ROOT}{name}"), title };
    match app.view(caller, workspace).await?.way_out(&dav.path) {
        // The folder itself is a node of the workspace around it, which has its name and its place.
        Some(way) if way.rest.is_root() && parts.method.as_str() != "PROPFIND" => Ok(dav),
        Some(way) => go_on(dav, way).await,
        None => Ok(dav),
    }
}

/// Goes on in the workspace into which a path leads.
async fn go_on(dav: Dav<WorkspaceTree>, way: WayOut) -> Result<Dav<WorkspaceTree>> {
    let WayOut { folder, workspace, rest } = way;
    let tree = WorkspaceTree { workspace, ..dav.tree };
    match tree.app.view(tree.caller, workspace).await {
        Ok(_) => {}
        // "Not found" would say that it was deleted.
        Err(ServerError::NotFound { .. }) => {
            let what = format!("opening '{folder}', which is shared as a workspace of its own,");
            return Err(ServerError::Forbidden { what });
        }
        Err(error) => return Err(error),
    }
    let root = format!("{}/{}", dav.root, path::encode(folder.as_bytes()));
    let name = folder.split_last().map(|(_, name)| name.to_string());
    Ok(Dav { tree, path: rest, root, title: name.unwrap_or(dav.title) })
}
