//! The sending half of a live connection.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::ws::{CloseFrame, Message, WebSocket};
use futures_util::stream::SplitSink;
use futures_util::{Sink, SinkExt};
use model::WorkspaceId;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, timeout};

use super::Session;
use crate::app::App;
use crate::error::ServerError;
use crate::limits::{PING_INTERVAL, SEND_TIMEOUT};
use crate::metadata::Metadata;
use crate::services::authorisation::Right;
use crate::services::events::Outgoing;
use crate::services::presence::Closing;
use crate::services::{accounts, workspaces};

/// Sends what comes into the outbox, and pings, until told to finish or until the other side takes too long.
pub(super) async fn run(
    session: Arc<Session>,
    mut sink: SplitSink<WebSocket, Message>,
    mut frames: mpsc::Receiver<Outgoing>,
    mut finish: oneshot::Receiver<Option<CloseFrame>>,
) {
    let mut ping = tokio::time::interval(PING_INTERVAL);
    ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ping.reset();
    let mut signs = session.connection.signs_of_life();
    // Beside the sending: answers must not wait for a database that stands still.
    let mut checking = JoinSet::new();
    let close = loop {
        let sent = tokio::select! {
            biased;
            close = &mut finish => break close.ok().flatten(),
            Some(outgoing) = frames.recv() => {
                timeout(SEND_TIMEOUT, send_all(&session, &mut sink, outgoing, &mut frames)).await
            }
            _ = ping.tick() => {
                while checking.try_join_next().is_some() {}
                if checking.is_empty() {
                    checking.spawn(check_device(Arc::clone(&session)));
                }
                let before = std::mem::replace(&mut signs, session.connection.signs_of_life());
                if before != signs {
                    // Who has said something needs no question.
                    continue;
                }
                timeout(SEND_TIMEOUT, sink.send(Message::Ping(Bytes::new()))).await
            }
        };
        if !matches!(sent, Ok(Ok(()))) {
            tracing::debug!(device = %session.caller.device, "a live connection does not take what is sent");
            return;
        }
    };
    while let Ok(outgoing) = frames.try_recv() {
        if !matches!(
            timeout(SEND_TIMEOUT, sink.feed(message(&session, outgoing))).await,
            Ok(Ok(()))
        ) {
            return;
        }
    }
    let _ = timeout(SEND_TIMEOUT, sink.send(Message::Close(close))).await;
}

/// Sends one frame and whatever else waits already, with one flush.
async fn send_all<S: Sink<Message> + Unpin>(
    session: &Session,
    sink: &mut S,
    first: Outgoing,
    frames: &mut mpsc::Receiver<Outgoing>,
) -> Result<(), S::Error> {
    sink.feed(message(session, first)).await?;
    while let Ok(outgoing) = frames.try_recv() {
        sink.feed(message(session, outgoing)).await?;
    }
    sink.flush().await
}

fn message(session: &Session, outgoing: Outgoing) -> Message {
    match outgoing {
        Outgoing::Ping => Message::Ping(Bytes::new()),
        Outgoing::Frame(bytes) => {
            session.outbox.sent(bytes.len());
            Message::Binary(bytes)
        }
    }
}

/// Closes the connection of a device that may less than before: another process, for example an administrator's command or
/// another server, has revoked it or ended a membership. Of one that is connected for long it is noted that it was seen.
async fn check_device(session: Arc<Session>) {
    let caller = session.caller;
    let subscriptions: Vec<_> = session.subscriptions.lock().iter().copied().collect();
    let now = session.app.now();
    let check = move |metadata: &dyn Metadata| {
        let device = accounts::check_caller(metadata, &caller)?;
        accounts::check_not_expired(&device, now)?;
        let lost = |&workspace: &WorkspaceId| {
            let opened = workspaces::open(metadata, &caller, workspace, Right::Read);
            matches!(opened, Err(ServerError::NotFound { .. }))
        };
        let lost = subscriptions.into_iter().filter(lost).collect::<Vec<_>>();
        Ok((lost, accounts::is_due_while_connected(&device, now)))
    };
    let App { readers, presence, hub, .. } = &*session.app;
    let checked = readers.read(check).await;
    if let Ok((_, true)) = &checked {
        // Where that cannot be written now it is due again soon.
        let _ = session.app.note_seen(caller, now).await;
    }
    match checked {
        Ok((lost, _)) if lost.is_empty() => {}
        Ok((lost, _)) => {
            let number = session.connection.number;
            hub.unsubscribe(lost, number);
            presence.close_subscribers(caller.account, |one| one == number);
        }
        Err(ServerError::NotSignedIn) => presence.close_device(caller.device, Closing::Revoked),
        // What cannot be found out now is asked again soon.
        Err(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use parking_lot::Mutex;
    use tokio::sync::Semaphore;

    use super::*;
    use crate::services::events::Outbox;
    use crate::testing::TestApp;

    #[tokio::test(start_paused = true)]
    async fn a_device_that_is_connected_for_long_is_seen_once_an_hour() {
        let test = TestApp::start();
        let (app, caller) = (Arc::clone(&test.app), test.devices[0]);
        let (outbox, _frames) = Outbox::new();
        let (connection, _closing) = app.presence.arrive(caller, 1, outbox.clone()).unwrap();
        let (requests, subscriptions) = (Arc::new(Semaphore::new(1)), Mutex::default());
        let session = Session { app, caller, connection, outbox, requests, subscriptions };
        let session = Arc::new(session);
        let minutes = |count: u64| Duration::from_secs(60 * count);
        let mut seen = Vec::new();
        for _ in 0..3 {
            tokio::time::advance(minutes(40)).await;
            check_device(Arc::clone(&session)).await;
            let look = move |metadata: &mut dyn Metadata| Ok(metadata.device(caller.device)?);
            let device = test.app.writer.write(look).await.unwrap().unwrap();
            seen.push(device.last_seen / 60);
        }
        assert_eq!(seen, [0, 80, 80]);
    }
}
