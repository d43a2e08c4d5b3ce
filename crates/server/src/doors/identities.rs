//! The control door over HTTP: who accounts are to each other in encrypted workspaces.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use model::hex;
use serde::{Deserialize, Serialize};

use super::members::take_share_attempt;
use super::to_the_end;
use crate::app::App;
use crate::audit::{Happened, Line};
use crate::auth::Caller;
use crate::error::{Result, ServerError};
use crate::metadata::{IdentityRecord, Metadata};
use crate::services::identities;

/// Returns the routes of this door.
pub fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/identity", get(own_identity).put(set_identity))
        .route("/users/{user}/identity", get(identity_of))
}

/// Bytes stand here in hexadecimal digits.
#[derive(Serialize)]
struct IdentityLine {
    public: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    locked: Option<String>,
}

#[derive(Deserialize)]
struct NewIdentity {
    public: String,
    locked: String,
    /// The public part of the one in whose place it is put.
    replaces: Option<String>,
}

fn unhex(text: &str) -> Result<Vec<u8>> {
    let reason = || "hexadecimal digits are expected".to_owned();
    hex::decode(text).ok_or_else(|| ServerError::Invalid { what: "identity", reason: reason() })
}

async fn own_identity(State(app): State<Arc<App>>, caller: Caller) -> Result<Json<IdentityLine>> {
    let found = app.readers.read(move |metadata| identities::own(metadata, &caller)).await?;
    Ok(Json(IdentityLine {
        public: hex::encode(&found.public),
        locked: Some(hex::encode(&found.locked)),
    }))
}

async fn set_identity(
    State(app): State<Arc<App>>,
    caller: Caller,
    Json(request): Json<NewIdentity>,
) -> Result<StatusCode> {
    let identity =
        IdentityRecord { public: unhex(&request.public)?, locked: unhex(&request.locked)? };
    let replaced = request.replaces.as_deref().map(unhex).transpose()?;
    let set = move |metadata: &mut dyn Metadata| {
        identities::set(metadata, &caller, &identity, replaced.as_deref())
    };
    let set = async move {
        app.writer.write(set).await?;
        tracing::info!(device = %caller.device, "an identity was put");
        let line = Line::new(app.clock.now(), Happened::IdentitySet).by(caller.device);
        app.audit.note(line).await;
        Ok(StatusCode::NO_CONTENT)
    };
    to_the_end(set).await
}

/// Who could ask without end could find out which accounts there are.
async fn identity_of(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(user): Path<String>,
) -> Result<Json<IdentityLine>> {
    take_share_attempt(&app, caller.account)?;
    let find = move |metadata: &dyn Metadata| identities::public_of(metadata, &caller, &user);
    let public = app.readers.read(find).await?;
    Ok(Json(IdentityLine { public: hex::encode(&public), locked: None }))
}
