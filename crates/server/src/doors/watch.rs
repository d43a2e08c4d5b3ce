//! The door for those who watch a server: `GET /metrics`. It has an address of its own, so that strangers do not see it.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};

use crate::app::App;
use crate::doors::health;
use crate::error::Result;
use crate::metadata::Metadata;
use crate::metrics::text::{self, DeviceAge, Now, Parts};

/// How many devices are named at most.
const DEVICES_MAX: usize = 100;

/// Answers with everything that is counted.
pub async fn metrics(State(app): State<Arc<App>>) -> Response {
    let now = now(&app).await;
    let parts = Parts {
        metrics: &app.metrics,
        groups: app.writer.groups(),
        events_sent: &app.hub.counts().sent,
        events_left_out: &app.hub.counts().left_out,
    };
    ([(CONTENT_TYPE, text::CONTENT_TYPE)], text::write(parts, &now)).into_response()
}

/// Asks what is not counted. Where the database does not answer, the rest is said without it.
async fn now(app: &App) -> Now {
    let is_ready = health::is_ready(app).await;
    let (accounts, sync_ages) = match is_ready {
        true => ages(app).await.unwrap_or_default(),
        false => Default::default(),
    };
    Now {
        writer_queue: app.writer.waiting() as u64,
        event_queue: app.hub.waiting() as u64,
        live_connections: app.presence.connections() as u64,
        subscriptions: app.hub.subscriptions() as u64,
        accounts,
        sync_ages,
        broker: app.standing.as_ref().map(|standing| {
            (standing.bulletins.get(), standing.signs.get(), standing.is_reachable())
        }),
        is_ready,
        uptime_seconds: app.clock.elapsed().saturating_sub(app.started).as_secs(),
    }
}

async fn ages(app: &App) -> Result<(u64, Vec<DeviceAge>)> {
    let read = |metadata: &dyn Metadata| {
        Ok((metadata.account_count()?, metadata.longest_unsynced(DEVICES_MAX)?))
    };
    let (count, unsynced) = app.readers.read(read).await?;
    let now = app.now();
    let age = |since: i64| u64::try_from(now.saturating_sub(since)).unwrap_or(0);
    let ages = unsynced.into_iter().map(|device| DeviceAge {
        seconds: age(device.since),
        account: device.account,
        id: device.id.to_string(),
        name: device.name,
    });
    Ok((count, ages.collect()))
}
