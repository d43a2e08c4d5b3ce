//! The control door over HTTP: who is a member of a workspace.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, put};
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use super::files::path::workspace_of;
use super::to_the_end;
use crate::app::App;
use crate::audit::{Happened, Line};
use crate::auth::Caller;
use crate::error::{Result, ServerError};
use crate::metadata::{AccountId, MemberRole, Metadata};
use crate::services::authorisation::Role;
use crate::services::members::{self, Participant};

/// Returns the routes of this door.
pub fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/workspaces/{workspace}/members", get(list_members))
        .route("/workspaces/{workspace}/members/{user}", put(set_member).delete(remove_member))
}

/// Returns the word for a role.
pub(super) fn role_name(role: Role) -> &'static str {
    match role {
        Role::Owner => "owner",
        Role::Member(MemberRole::Edit) => "edit",
        Role::Member(MemberRole::View) => "view",
    }
}

#[derive(Serialize)]
struct MemberLine {
    user: String,
    role: &'static str,
    added: Option<i64>,
}

impl From<Participant> for MemberLine {
    fn from(one: Participant) -> Self {
        Self { user: one.name, role: role_name(one.role), added: one.added }
    }
}

async fn list_members(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(workspace): Path<String>,
) -> Result<Json<Vec<MemberLine>>> {
    let workspace = workspace_of(&app, caller, &workspace).await?;
    let list = move |metadata: &dyn Metadata| members::list(metadata, &caller, workspace);
    let found = app.readers.read(list).await?;
    Ok(Json(found.into_iter().map(MemberLine::from).collect()))
}

#[derive(Deserialize)]
struct RoleRequest {
    role: RoleWord,
}

/// The owner is owner by having made the workspace, so that is no role to give.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RoleWord {
    View,
    Edit,
}

async fn set_member(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((workspace, user)): Path<(String, String)>,
    Json(request): Json<RoleRequest>,
) -> Result<(StatusCode, Json<MemberLine>)> {
    let workspace = workspace_of(&app, caller, &workspace).await?;
    take_share_attempt(&app, caller.account)?;
    let role = match request.role {
        RoleWord::View => MemberRole::View,
        RoleWord::Edit => MemberRole::Edit,
    };
    let now = app.now();
    let set = move |metadata: &mut dyn Metadata| {
        members::set(metadata, &caller, workspace, &user, role, now)
    };
    let set = async move {
        let (member, is_new) = app.writer.write(set).await?;
        tracing::info!(%workspace, user = %member.name, role = role_name(member.role), "a workspace was shared");
        let line = Line::new(app.clock.now(), Happened::MemberSet).by(caller.device).to(workspace);
        let line = line.of_account(Some(member.name.clone())).with_role(role_name(member.role));
        app.audit.note(line).await;
        let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
        Ok((status, Json(member.into())))
    };
    to_the_end(set).await
}

/// Who could share without end could find out which accounts there are.
pub(super) fn take_share_attempt(app: &App, account: AccountId) -> Result<()> {
    app.shares_per_account.take(account, app.clock.elapsed()).map_err(ServerError::limited)
}

async fn remove_member(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((workspace, user)): Path<(String, String)>,
) -> Result<StatusCode> {
    let workspace = workspace_of(&app, caller, &workspace).await?;
    let name = user.clone();
    let remove =
        move |metadata: &mut dyn Metadata| members::remove(metadata, &caller, workspace, &user);
    let (answer, answered) = oneshot::channel();
    let expelling = Arc::clone(&app);
    // On the writing thread: of what is committed after this, the member hears nothing.
    let finish = move |outcome: Result<AccountId>| {
        if let Ok(account) = outcome {
            expelling.expel(account, workspace);
        }
        let _ = answer.send(outcome);
    };
    let remove = async move {
        app.writer.submit(remove, finish).await?;
        answered.await.unwrap_or(Err(ServerError::STOPPING))?;
        tracing::info!(%workspace, "a membership ended");
        let line = Line::new(app.clock.now(), Happened::MemberRemoved).by(caller.device);
        // It was a member's, so it is a name.
        app.audit.note(line.to(workspace).of_account(Some(name))).await;
        Ok(StatusCode::NO_CONTENT)
    };
    to_the_end(remove).await
}
