//! What a supervisor says of itself: its health at one address, and its numbers at another.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::watch;

use super::policy::Estimate;
use crate::error::Result;
use crate::limits::WATCHERS_MAX;
use crate::listener::GuardedListener;
use crate::metrics::text;
use crate::serve::{bind, stopping_signal};

/// How it stands.
#[derive(Debug, Default)]
pub(super) struct Board {
    pub(super) running: usize,
    pub(super) leaving: usize,
    pub(super) wanted: usize,
    pub(super) waiting: u64,
    pub(super) estimate: Estimate,
    pub(super) starts: u64,
    pub(super) deaths: u64,
    pub(super) is_blind: bool,
}

/// Answers at both addresses until it stops; returns the first one.
pub(super) async fn serve(
    board: &Arc<Mutex<Board>>,
    listen: SocketAddr,
    metrics_listen: Option<SocketAddr>,
    stopped: watch::Receiver<bool>,
) -> Result<SocketAddr> {
    let health = Router::new()
        .route("/livez", get(|| async { Json(json!({ "status": "ok" })) }))
        .route("/readyz", get(readyz))
        .route("/healthz", get(readyz));
    let address = answer(health, board, listen, stopped.clone()).await?;
    if let Some(listen) = metrics_listen {
        let watched = Router::new().route("/metrics", get(metrics));
        answer(watched, board, listen, stopped).await?;
    }
    Ok(address)
}

async fn answer(
    router: Router<Arc<Mutex<Board>>>,
    board: &Arc<Mutex<Board>>,
    listen: SocketAddr,
    stopped: watch::Receiver<bool>,
) -> Result<SocketAddr> {
    let (listener, address) = bind(listen).await?;
    let listener = GuardedListener::new(listener, WATCHERS_MAX, WATCHERS_MAX);
    let service = router.with_state(Arc::clone(board)).into_make_service();
    let serving = axum::serve(listener, service).with_graceful_shutdown(stopping_signal(stopped));
    tokio::spawn(serving.into_future());
    Ok(address)
}

/// A supervisor that does not see the queue, or has not as many as it wants, is degraded: it goes on, and those who work do, too.
async fn readyz(State(board): State<Arc<Mutex<Board>>>) -> Response {
    let board = board.lock();
    let is_well = !board.is_blind && board.running >= board.wanted;
    let status = if is_well { "ok" } else { "degraded" };
    Json(json!({ "status": status, "sync_services": board.running })).into_response()
}

async fn metrics(State(board): State<Arc<Mutex<Board>>>) -> Response {
    let page = write(&board.lock());
    ([(CONTENT_TYPE, text::CONTENT_TYPE)], page).into_response()
}

fn write(board: &Board) -> String {
    let Board { running, leaving, wanted, waiting, estimate, starts, deaths, .. } = board;
    let mut page = text::Page::default();
    let name = "syncline_supervisor_instances";
    page.head(name, "gauge", "Sync services by what they do.");
    for (state, count) in [("running", running), ("leaving", leaving), ("wanted", wanted)] {
        page.line(name, &format!("state=\"{state}\""), *count as u64);
    }
    let gauges = [
        ("queue", "Groups of commits that wait for a sync service.", *waiting as f64),
        ("groups_per_second", "Groups of commits that come.", estimate.rate),
        ("group_seconds", "How long a group is in a sync service's hands.", estimate.service),
        (
            "response_seconds",
            "How long a group that comes takes until its answer.",
            estimate.response,
        ),
    ];
    for (name, help, value) in gauges {
        page.value(&format!("syncline_supervisor_{name}"), help, value);
    }
    for (name, help, count) in [
        ("starts", "Sync services that were started.", starts),
        ("deaths", "Sync services that ended unasked.", deaths),
    ] {
        let name = format!("syncline_supervisor_{name}_total");
        page.head(&name, "counter", help);
        page.line(&name, "", *count);
    }
    page.into_text()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_written_with_its_kind() {
        let estimate = Estimate { rate: 12.5, trend: 0.0, service: 0.025, response: f64::INFINITY };
        let board =
            Board { running: 2, wanted: 3, waiting: 7, starts: 4, estimate, ..Board::default() };
        let text = write(&board);
        for line in [
            "# TYPE syncline_supervisor_instances gauge",
            "syncline_supervisor_instances{state=\"running\"} 2",
            "syncline_supervisor_instances{state=\"wanted\"} 3",
            "syncline_supervisor_queue 7",
            "syncline_supervisor_groups_per_second 12.5",
            "syncline_supervisor_group_seconds 0.025",
            "syncline_supervisor_response_seconds +Inf",
            "# TYPE syncline_supervisor_starts_total counter",
            "syncline_supervisor_starts_total 4",
            "syncline_supervisor_deaths_total 0",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}: {text}");
        }
    }
}
