//! The live door: commits up, answers and events down, over one WebSocket per device (`docs/design/commit-log.md`).
//!
//! *Participants*: a device with a token and an incarnation (see [`presence`](crate::services::presence)); the way of commits
//! and the readers, which do the work; the hub, which brings events. *Goals*: many requests under way at once, small
//! delay, bounded memory whatever a device does. *Invariants*: every request that can be read gets one answer; commits
//! of one connection for one workspace reach the log in the order in which they came; an event leaves after its entry is durable; a
//! frame that makes no sense harms nobody but its sender.
//!
//! Binary frames only, each one wrapped message ([`commit_log::envelope`]). The header `syncline-incarnation` carries
//! 16 hexadecimal digits.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::get;
use commit_log::envelope;
use futures_util::StreamExt;
use futures_util::stream::SplitStream;
use model::WorkspaceId;
use model::codec::Decoder;
use model::wire::{FRAME_LENGTH_MAX, Reply, Request as Asked, RequestFrame, ServerFrame};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::app::App;
use crate::auth::Caller;
use crate::error::{Result, ServerError};
use crate::limits::{
    IDLE_TIMEOUT, LIFE_SIGN_TIMEOUT, REQUESTS_AT_ONCE_MAX, REQUESTS_LENGTH_MAX, STOP_TIMEOUT,
    SUBSCRIPTIONS_MAX,
};
use crate::metadata::Metadata;
use crate::services::authorisation::Right;
use crate::services::events::Outbox;
use crate::services::news::Told;
use crate::services::presence::{Challenged, Closing, Connection};
use crate::services::sync_service::{self, Answer, CommitRequest};
use crate::services::workspaces;

mod send;

/// The header that carries the incarnation of a device.
pub const INCARNATION_HEADER: &str = "syncline-incarnation";

/// Memory for requests is counted in pieces of this many bytes.
pub(crate) const REQUEST_UNIT: u64 = 4 * 1024;

/// Frames up to this length in bytes are read where they arrive; longer ones would hold up other connections.
const DECODE_HERE_MAX: usize = 64 * 1024;

/// How many bytes are read at once. The library keeps that much memory for every connection, and clears it before every read.
const READ_BUFFER_SIZE: usize = 4 * 1024;

/// How often a challenged connection is looked at.
const CHALLENGE_INTERVAL: Duration = Duration::from_millis(20);

/// Returns the route of this door.
pub fn routes() -> Router<Arc<App>> {
    Router::new().route("/live", get(open))
}

async fn open(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    upgrade: WebSocketUpgrade,
) -> Result<Response> {
    let incarnation = incarnation_of(&headers)?;
    let (outbox, frames) = Outbox::new();
    let (connection, closing) = arrive(&app, caller, incarnation, &outbox).await?;
    app.news.tell(Told::Arrived { device: caller.device, incarnation });
    let session = Arc::new(Session {
        app,
        caller,
        connection,
        outbox,
        requests: Arc::new(Semaphore::new(REQUESTS_AT_ONCE_MAX)),
        subscriptions: Mutex::default(),
    });
    let upgrade = upgrade
        .max_message_size(FRAME_LENGTH_MAX + 1)
        .max_frame_size(FRAME_LENGTH_MAX + 1)
        .read_buffer_size(READ_BUFFER_SIZE)
        .write_buffer_size(16 * 1024);
    Ok(upgrade.on_upgrade(move |socket| session.run(socket, frames, closing)))
}

fn incarnation_of(headers: &HeaderMap) -> Result<u64> {
    let invalid = || ServerError::Invalid {
        what: INCARNATION_HEADER,
        reason: "16 hexadecimal digits are expected".to_owned(),
    };
    let text = headers.get(INCARNATION_HEADER).and_then(|value| value.to_str().ok());
    let text = text.filter(|text| text.len() == 16).ok_or_else(invalid)?;
    u64::from_str_radix(text, 16).map_err(|_| invalid())
}

/// Registers a connection. Where another incarnation of the device is registered, that one has a moment to show that
/// it lives; else it is replaced.
async fn arrive(
    app: &App,
    caller: Caller,
    incarnation: u64,
    outbox: &Outbox,
) -> Result<(Connection, watch::Receiver<Option<Closing>>)> {
    if app.presence.take_contested(caller.device, incarnation) {
        return Err(ServerError::DeviceCloned);
    }
    match app.presence.arrive(caller, incarnation, outbox.clone()) {
        Err(ServerError::DeviceCloned) => {}
        arrived => return arrived,
    }
    let challenged = app.presence.challenge(caller.device, incarnation);
    if any_lives(&challenged).await {
        tracing::warn!(device = %caller.device, "two installations use one device; the later one is refused");
        return Err(ServerError::DeviceCloned);
    }
    for other in challenged {
        other.replace(&app.presence);
    }
    app.presence.arrive(caller, incarnation, outbox.clone())
}

/// Waits a moment for a sign of life of any connection that was asked for one.
pub(crate) async fn any_lives(challenged: &[Challenged]) -> bool {
    let shown = async {
        while !challenged.iter().any(Challenged::lives) {
            tokio::time::sleep(CHALLENGE_INTERVAL).await;
        }
    };
    tokio::time::timeout(LIFE_SIGN_TIMEOUT, shown).await.is_ok()
}

/// One live connection.
struct Session {
    app: Arc<App>,
    caller: Caller,
    connection: Connection,
    outbox: Outbox,
    /// A permit per request under way; while none is left, nothing more is read.
    requests: Arc<Semaphore>,
    subscriptions: Mutex<HashSet<WorkspaceId>>,
}

impl Drop for Session {
    fn drop(&mut self) {
        self.app.presence.leave(self.connection.number);
        let subscriptions = std::mem::take(&mut *self.subscriptions.lock());
        self.app.hub.unsubscribe(subscriptions, self.connection.number);
    }
}

impl Session {
    async fn run(
        self: Arc<Self>,
        socket: WebSocket,
        frames: tokio::sync::mpsc::Receiver<crate::services::events::Outgoing>,
        mut closing: watch::Receiver<Option<Closing>>,
    ) {
        let (sink, mut stream) = socket.split();
        let (finish, finished) = tokio::sync::oneshot::channel();
        let sender = send::run(Arc::clone(&self), sink, frames, finished);
        let mut sender = tokio::spawn(sender);
        let close = tokio::select! {
            close = self.receive(&mut stream) => close,
            reason = closing.wait_for(Option::is_some) => close_frame(reason.ok().and_then(|r| *r)),
            _ = &mut sender => return,
        };
        // What is under way is finished and answered, but not for ever.
        let all = u32::try_from(REQUESTS_AT_ONCE_MAX).unwrap_or(u32::MAX);
        let idle = self.requests.acquire_many(all);
        let _ = tokio::time::timeout(STOP_TIMEOUT / 2, idle).await;
        let _ = finish.send(close);
        if tokio::time::timeout(STOP_TIMEOUT / 4, &mut sender).await.is_err() {
            sender.abort();
        }
    }

    /// Reads requests until the connection ends; returns what to say at its end.
    async fn receive(self: &Arc<Self>, stream: &mut SplitStream<WebSocket>) -> Option<CloseFrame> {
        loop {
            let message = match tokio::time::timeout(IDLE_TIMEOUT, stream.next()).await {
                Err(_) => return Some(frame(close_code::POLICY, "no sign of life")),
                Ok(None) => return None,
                Ok(Some(Err(error))) => return close_after(&error),
                Ok(Some(Ok(message))) => message,
            };
            self.connection.gave_sign_of_life();
            match message {
                Message::Binary(bytes) => self.handle(bytes).await,
                Message::Text(_) => {
                    return Some(frame(close_code::UNSUPPORTED, "binary frames only"));
                }
                Message::Close(_) => return None,
                Message::Ping(_) | Message::Pong(_) => {}
            }
        }
    }

    /// Starts to work on a request. Returns when the next one may be read.
    async fn handle(self: &Arc<Self>, bytes: Bytes) {
        let Ok(permit) = Arc::clone(&self.requests).acquire_owned().await else { return };
        let number = number_of(&bytes);
        let frame = match decode(bytes).await {
            Ok(frame) => frame,
            Err(error) => {
                self.reply(number, Answer::reply(Err(error)).reply).await;
                return;
            }
        };
        let memory = self.memory_for_request(&frame).await;
        let under_way = UnderWay { _permit: permit, _memory: memory };
        let RequestFrame { number, workspace, request } = frame;
        match request {
            Asked::Commit(commit) => {
                let request = CommitRequest { caller: self.caller, workspace, commit };
                self.commit(number, request, under_way).await;
            }
            Asked::PublishCheckpoint(checkpoint) => {
                let caller = self.caller;
                let publish = move |metadata: &mut dyn Metadata| {
                    sync_service::publish_checkpoint(metadata, &caller, workspace, &checkpoint)
                };
                self.write((number, Reply::Published), publish, under_way);
            }
            Asked::InSync => {
                let (caller, now) = (self.caller, self.app.now());
                let note = move |metadata: &mut dyn Metadata| {
                    sync_service::note_in_sync(metadata, &caller, workspace, now)
                };
                self.write((number, Reply::Noted), note, under_way);
            }
            Asked::Subscribe { .. } => {
                if let Err(error) = self.subscribe(workspace).await {
                    self.reply(number, Answer::reply(Err(error)).reply).await;
                    return;
                }
                self.reply(number, Reply::Subscribed).await;
            }
            request => self.read(number, workspace, request, under_way),
        }
    }

    /// Queues a commit at once, so that commits keep their order, and answers when it is durable.
    async fn commit(self: &Arc<Self>, number: u64, request: CommitRequest, under_way: UnderWay) {
        let (session, runtime) = (Arc::clone(self), tokio::runtime::Handle::current());
        let finish = move |reply| {
            // Mostly there is room; a task for each answer would take longer than the answer.
            let Err(frame) = session.outbox.give(encode(number, reply)) else { return };
            runtime.spawn(async move {
                session.outbox.send(frame).await;
                drop(under_way);
            });
        };
        let from = Some(self.connection.number);
        if let Err(error) = self.app.commits.submit((request, from), finish).await {
            self.reply(number, Answer::reply(Err(error)).reply).await;
        }
    }

    async fn subscribe(&self, workspace: WorkspaceId) -> Result<()> {
        let caller = self.caller;
        let check = move |metadata: &dyn Metadata| {
            workspaces::open(metadata, &caller, workspace, Right::Read).map(drop)
        };
        self.app.readers.read(check).await?;
        {
            let mut subscriptions = self.subscriptions.lock();
            if subscriptions.len() >= SUBSCRIPTIONS_MAX && !subscriptions.contains(&workspace) {
                let what = format!("more than {SUBSCRIPTIONS_MAX} subscriptions");
                return Err(ServerError::Forbidden { what });
            }
            subscriptions.insert(workspace);
            self.app.hub.subscribe(workspace, self.connection.number, self.outbox.clone());
        }
        // Whoever ended the membership in between has not found this subscription.
        let checked = self.app.readers.read(check).await;
        if checked.is_err() {
            self.app.hub.expel(workspace, self.connection.number);
        }
        checked
    }

    /// Writes what is no commit, and answers when it is durable.
    fn write(
        self: &Arc<Self>,
        (number, done): (u64, Reply),
        work: impl FnMut(&mut dyn Metadata) -> Result<()> + Send + 'static,
        under_way: UnderWay,
    ) {
        let session = Arc::clone(self);
        tokio::spawn(async move {
            let written = session.app.writer.write(work).await;
            let answer = Answer::reply(written.map(|()| done));
            session.reply(number, answer.reply).await;
            drop(under_way);
        });
    }

    /// Answers a request that only reads.
    fn read(
        self: &Arc<Self>,
        number: u64,
        workspace: WorkspaceId,
        request: Asked,
        under_way: UnderWay,
    ) {
        let session = Arc::clone(self);
        tokio::spawn(async move {
            let caller = session.caller;
            // Encoding many entries takes time, so it happens on the same thread as reading them.
            let read = move |metadata: &dyn Metadata| {
                let reply = sync_service::read(metadata, &caller, workspace, &request);
                match reply {
                    // Whoever counts must see it.
                    Err(error) if error.is_internal() => Err(error),
                    reply => Ok(encode(number, Answer::reply(reply).reply)),
                }
            };
            match session.app.readers.read(read).await {
                Ok(frame) => drop(session.outbox.send(frame).await),
                Err(error) => {
                    session.app.metrics.error(&error);
                    session.reply(number, Answer::reply(Err(error)).reply).await;
                }
            }
            drop(under_way);
        });
    }

    async fn reply(&self, number: u64, reply: Reply) {
        self.outbox.send(encode(number, reply)).await;
    }

    async fn memory_for_request(&self, frame: &RequestFrame) -> Option<OwnedSemaphorePermit> {
        let Asked::Commit(commit) = &frame.request else { return None };
        let length = sync_service::length_bound(commit) as u64;
        let units = length.min(REQUESTS_LENGTH_MAX).div_ceil(REQUEST_UNIT) as u32;
        Arc::clone(&self.app.requests).acquire_many_owned(units).await.ok()
    }
}

/// Held while a request is worked on.
struct UnderWay {
    _permit: OwnedSemaphorePermit,
    _memory: Option<OwnedSemaphorePermit>,
}

async fn decode(bytes: Bytes) -> Result<RequestFrame> {
    let is_short = bytes.len() <= DECODE_HERE_MAX;
    let decode = move || envelope::unwrap::<RequestFrame>(&bytes, FRAME_LENGTH_MAX);
    let decoded = match is_short {
        true => decode(),
        false => tokio::task::spawn_blocking(decode).await.map_err(|_| ServerError::STOPPING)?,
    };
    decoded.map_err(|error| ServerError::Invalid { what: "frame", reason: error.to_string() })
}

fn encode(number: u64, reply: Reply) -> Bytes {
    envelope::wrap(&ServerFrame::Reply { number, reply }).into()
}

/// Returns the number of a request that cannot be read otherwise, where it can be seen, so that its sender knows
/// which one was refused; else 0.
fn number_of(bytes: &[u8]) -> u64 {
    // A tag, a magic byte and a version stand before the number.
    let number = bytes.get(3..).map(|rest| Decoder::new(rest).unsigned());
    number.and_then(Result::ok).filter(|_| bytes[0] == 0).unwrap_or(0)
}

fn frame(code: u16, reason: &'static str) -> CloseFrame {
    CloseFrame { code, reason: reason.into() }
}

fn close_frame(closing: Option<Closing>) -> Option<CloseFrame> {
    Some(match closing? {
        Closing::GoingAway => frame(close_code::AWAY, "the server stops"),
        Closing::LessAccess => frame(close_code::AGAIN, "a workspace is not shared any more"),
        Closing::Revoked => frame(close_code::POLICY, "the device was signed out"),
        Closing::Cloned => frame(close_code::POLICY, "another installation uses this device"),
        Closing::Replaced => {
            frame(close_code::POLICY, "another connection took the place of this one")
        }
    })
}

fn close_after(error: &axum::Error) -> Option<CloseFrame> {
    tracing::debug!(%error, "a live connection ended");
    Some(frame(close_code::PROTOCOL, "the frame breaks a limit or a rule"))
}
