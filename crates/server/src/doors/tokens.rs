//! The control door over HTTP: tokens for applications.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{delete, get};
use axum::{Json, Router};
use model::DeviceId;
use serde::{Deserialize, Serialize};

use super::rest::signed_out;
use super::to_the_end;
use crate::app::App;
use crate::audit::{Happened, Line};
use crate::auth::Caller;
use crate::error::{Result, ServerError};
use crate::metadata::{DeviceRecord, Metadata, Scope};
use crate::services::tokens::{self, NewToken};

/// Returns the routes of this door.
pub fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/tokens", get(list_tokens).post(add_token))
        .route("/tokens/{token}", delete(remove_token))
}

#[derive(Serialize)]
struct TokenLine {
    id: String,
    name: String,
    scope: &'static str,
    workspace: Option<String>,
    created: i64,
    last_used: i64,
    expires: Option<i64>,
    /// The token itself, once.
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
}

impl From<DeviceRecord> for TokenLine {
    fn from(record: DeviceRecord) -> Self {
        let limits = record.limits;
        let is_write = limits.is_some_and(|limits| limits.scope == Scope::Write);
        Self {
            id: record.id.to_string(),
            name: record.name,
            scope: if is_write { "write" } else { "read" },
            workspace: limits.and_then(|limits| limits.workspace).map(|id| id.to_string()),
            created: record.created,
            last_used: record.last_seen,
            expires: limits.and_then(|limits| limits.expires),
            token: None,
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum ScopeWord {
    Read,
    Write,
}

#[derive(Deserialize)]
struct TokenRequest {
    name: String,
    scope: ScopeWord,
    workspace: Option<String>,
    expires_in_seconds: Option<i64>,
}

async fn list_tokens(State(app): State<Arc<App>>, caller: Caller) -> Result<Json<Vec<TokenLine>>> {
    let tokens = app.readers.read(move |metadata| tokens::list(metadata, &caller)).await?;
    Ok(Json(tokens.into_iter().map(TokenLine::from).collect()))
}

async fn add_token(
    State(app): State<Arc<App>>,
    caller: Caller,
    Json(request): Json<TokenRequest>,
) -> Result<(StatusCode, Json<TokenLine>)> {
    let (random, now) = (Arc::clone(&app.random), app.now());
    let new = NewToken {
        name: request.name,
        scope: match request.scope {
            ScopeWord::Read => Scope::Read,
            ScopeWord::Write => Scope::Write,
        },
        workspace: request.workspace,
        expires: request.expires_in_seconds.map(|seconds| now.saturating_add(seconds)),
    };
    let add =
        move |metadata: &mut dyn Metadata| tokens::add(metadata, &*random, &caller, &new, now);
    let add = async move {
        let (record, token) = app.writer.write(add).await?;
        tracing::info!(device = %record.id, "a token for an application was made");
        let line = Line::new(app.clock.now(), Happened::TokenMade).by(caller.device).to(record.id);
        app.audit.note(line).await;
        let line = TokenLine { token: Some(token.to_text()), ..record.into() };
        Ok((StatusCode::CREATED, Json(line)))
    };
    to_the_end(add).await
}

async fn remove_token(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(token): Path<String>,
) -> Result<StatusCode> {
    let unknown = || ServerError::NotFound { what: format!("token '{token}'") };
    let id: DeviceId = token.parse().map_err(|_| unknown())?;
    let remove = async move {
        app.writer.write(move |metadata| tokens::remove(metadata, &caller, id)).await?;
        signed_out(&app, (caller, id), Happened::TokenRevoked).await;
        Ok(StatusCode::NO_CONTENT)
    };
    to_the_end(remove).await
}
