//! Plain workspaces of a server, each under `/dav/WORKSPACE/`.

use std::sync::Arc;

use axum::Router;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderMap, Method};
use axum::response::Response;
use axum::routing::any;

use super::{Dav, basic, options, respond};
use crate::app::App;
use crate::doors::files::path;
use crate::doors::tree::workspace::WorkspaceTree;
use crate::error::Result;
use crate::listener::PeerAddress;

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
    let dav = open(&app, &parts.headers, peer, parts.uri.path()).await;
    respond(dav, &parts, body).await
}

/// Finds out who asks for what.
async fn open(
    app: &Arc<App>,
    headers: &HeaderMap,
    peer: PeerAddress,
    address: &str,
) -> Result<Dav<WorkspaceTree>> {
    let caller = basic::caller_of(app, headers, peer).await?;
    let rest = address.strip_prefix(ROOT).unwrap_or_default();
    let (name, rest) = rest.split_once('/').unwrap_or((rest, ""));
    let text = path::decode(name)?;
    let title = String::from_utf8_lossy(&text).into_owned();
    let workspace = path::workspace_of(app, caller, &title).await?;
    let tree = WorkspaceTree { app: Arc::clone(app), caller, workspace };
    Ok(Dav { tree, path: path::parse(rest)?, root: format!("{ROOT}{name}"), title })
}
