//! `GET /readyz`, and `/healthz` by an older name: does everything answer that the server stands on? `GET /livez`: does the server
//! answer at all? Who starts it anew asks the second, for a database that is away does not come back by that.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use parking_lot::Mutex;
use storage::{ObjectKey, ObjectStore};

use crate::app::App;
use crate::error::{Result, ServerError};

/// How long an answer is repeated, so that asking costs nothing.
const VALID: Duration = Duration::from_secs(1);

/// How long database and store may take.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The last answer, and when it was found.
#[derive(Debug, Default)]
pub struct Health {
    last: Mutex<Option<(Duration, bool)>>,
}

/// Answers 200.
pub async fn livez() -> Response {
    Json(serde_json::json!({ "status": "ok" })).into_response()
}

/// Answers 200 when reader, writer and store answer, else 503. A server without its broker does what it did, and says that it is degraded.
pub async fn readyz(State(app): State<Arc<App>>) -> Response {
    let has_broker = app.standing.as_ref().is_none_or(|standing| standing.is_reachable());
    let (status, text) = match (is_ready(&app).await, has_broker) {
        (true, true) => (StatusCode::OK, "ok"),
        (true, false) => (StatusCode::OK, "degraded"),
        (false, _) => (StatusCode::SERVICE_UNAVAILABLE, "unavailable"),
    };
    (status, Json(serde_json::json!({ "status": text }))).into_response()
}

/// Tells whether reader, writer and store answer, or did a moment ago.
pub(crate) async fn is_ready(app: &App) -> bool {
    let now = app.clock.elapsed();
    let last = *app.health.last.lock();
    match last {
        Some((found, is_well)) if now < found + VALID => is_well,
        _ => {
            let checked = tokio::time::timeout(TIMEOUT, check(app)).await;
            let checked = checked
                .unwrap_or(Err(ServerError::Unavailable { reason: "takes too long to answer" }));
            if let Err(error) = &checked {
                tracing::error!(%error, "the server is not well");
            }
            *app.health.last.lock() = Some((now, checked.is_ok()));
            checked.is_ok()
        }
    }
}

async fn check(app: &App) -> Result<()> {
    app.readers.read(|metadata| Ok(metadata.check()?)).await?;
    app.writer.write(|metadata| Ok(metadata.check()?)).await?;
    app.store.size(&ObjectKey::genesis()).await?;
    Ok(())
}
