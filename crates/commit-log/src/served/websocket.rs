//! The live connection to a server: one WebSocket, many requests under way, events in between.
//!
//! *Participants*: any number of callers, who ask and wait; one task, which owns the socket. *Goals*: a request costs
//! one round trip and no connection of its own; nothing is sent before somebody asks; a lost connection comes back by
//! itself while somebody listens for events. *Invariants*: every call ends, with an answer or an error, within the
//! timeout of requests; what waits is bounded, and events that nobody fetches push out the oldest; after a reconnect
//! the workspaces that are listened to are subscribed again, and what was missed meanwhile is fetched.
//!
//! Tokio is known in this module only. Behind `https:` is whom the system trusts.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::{BoxStream, StreamExt, unfold};
use model::environment::random_bytes;
use model::wire::{Refusal, RefusalKind, Reply, Request, RequestFrame};
use model::{Clock, Commit, Entry, Head, Random, WorkspaceId};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{broadcast, mpsc, oneshot};
use tokio_tungstenite::tungstenite::http::HeaderValue;
use url::Url;

use super::Connection;
use crate::commit_log::CommitLogError;

pub mod frames;
mod socket;
mod wire;

pub use socket::PING_AFTER;

/// How long a request may take unless the options say otherwise.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// How many requests wait for the socket at most; more make their callers wait.
const REQUESTS_WAITING_MAX: usize = 64;

/// How many events wait for a slow listener at most.
const EVENTS_WAITING_MAX: usize = 128;

/// No two attempts to connect follow each other faster than this.
const PAUSE_MIN: Duration = Duration::from_millis(100);

/// The longest pause between attempts while nobody asks for anything.
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// Why a server cannot be connected to at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WebSocketError {
    /// The text is not the address of a server.
    #[error("'{url}' is not the address of a server: {reason}")]
    InvalidUrl {
        /// The text.
        url: String,
        /// Why.
        reason: String,
    },
    /// The token cannot be sent.
    #[error("the device token has characters that cannot be sent")]
    InvalidToken,
}

/// What a connection needs to know.
#[derive(Clone)]
pub struct WebSocketOptions {
    /// The address of the server, for example `http://127.0.0.1:8470`.
    pub server: String,
    /// The token of this device.
    pub token: String,
    /// A random number that this running installation made at its start; two of them at once show that the folder of a
    /// device was copied.
    pub incarnation: u64,
    /// How long a request may take.
    pub request_timeout: Duration,
}

impl WebSocketOptions {
    /// Returns options with the usual timeout.
    pub fn new(server: impl Into<String>, token: impl Into<String>, incarnation: u64) -> Self {
        let (server, token) = (server.into(), token.into());
        Self { server, token, incarnation, request_timeout: REQUEST_TIMEOUT }
    }
}

impl std::fmt::Debug for WebSocketOptions {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("WebSocketOptions")
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

/// A connection to a server over WebSocket.
#[derive(Debug)]
pub struct WebSocketConnection {
    core: Arc<Core>,
    /// Leads to the task that owns the socket, once there is one. Dropping it ends the task.
    requests: Mutex<Option<mpsc::Sender<Asked>>>,
    runtime: Option<Handle>,
}

/// What the callers and the task share.
struct Core {
    place: String,
    address: Address,
    request_timeout: Duration,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    next_number: AtomicU64,
    topics: Mutex<HashMap<WorkspaceId, Topic>>,
}

/// Where the live door is, and what to show there.
struct Address {
    url: Url,
    authorization: HeaderValue,
    incarnation: HeaderValue,
}

/// The listeners of a workspace.
struct Topic {
    events: broadcast::Sender<Arc<Entry>>,
    /// The newest entry that is known to have come here; nothing before the workspace was subscribed to.
    last: Option<u64>,
    /// Where the log stood behind the newest one that was published.
    newest: Option<Head>,
}

/// A request on its way to the socket.
struct Asked {
    number: u64,
    frame: Bytes,
    answer: oneshot::Sender<Result<Reply, Lost>>,
    /// The commit that it proposes, if it does and somebody listens to its workspace.
    proposed: Option<Proposed>,
}

/// A commit on its way.
struct Proposed {
    workspace: WorkspaceId,
    commit: Commit,
}

/// Why there is no answer.
#[derive(Debug, Clone)]
enum Lost {
    Unreachable(String),
    Refused(Refusal),
}

impl std::fmt::Debug for Core {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("Core").field(&self.place).finish()
    }
}

impl WebSocketConnection {
    /// Makes a connection; it is opened by the first request. Where this is called inside of a Tokio runtime, that
    /// one serves the connection; else the one in which the first request is made.
    ///
    /// # Errors
    /// [`WebSocketError`]; nothing is sent yet.
    pub fn new(
        options: WebSocketOptions,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
    ) -> Result<Self, WebSocketError> {
        let address = Address::new(&options)?;
        let core = Core {
            place: address.describe(),
            address,
            request_timeout: options.request_timeout,
            clock,
            random,
            next_number: AtomicU64::new(1),
            topics: Mutex::default(),
        };
        let runtime = Handle::try_current().ok();
        Ok(Self { core: Arc::new(core), requests: Mutex::default(), runtime })
    }

    /// Returns the way to the task that owns the socket, and starts it where there is none.
    fn requests(&self) -> Result<mpsc::Sender<Asked>, CommitLogError> {
        let mut requests = self.requests.lock();
        if let Some(sender) = requests.as_ref().filter(|sender| !sender.is_closed()) {
            return Ok(sender.clone());
        }
        let runtime = self.runtime.clone().or_else(|| Handle::try_current().ok());
        let runtime = runtime.ok_or_else(|| {
            self.core.error(Lost::Unreachable("this thread has no Tokio runtime".to_owned()))
        })?;
        let (sender, receiver) = mpsc::channel(REQUESTS_WAITING_MAX);
        runtime.spawn(run(Arc::clone(&self.core), receiver));
        *requests = Some(sender.clone());
        Ok(sender)
    }
}

#[async_trait]
impl Connection for WebSocketConnection {
    fn describe(&self) -> String {
        self.core.place.clone()
    }

    async fn call(
        &self,
        workspace: WorkspaceId,
        request: Request,
    ) -> Result<Reply, CommitLogError> {
        let since = match request {
            Request::Subscribe { since } => Some(since),
            _ => None,
        };
        let number = self.core.next_number();
        let request = RequestFrame { number, workspace, request };
        let frame = frames::encode(&request);
        let proposed = match request.request {
            Request::Commit(commit) if self.core.is_heard(workspace) => {
                Some(Proposed { workspace, commit })
            }
            _ => None,
        };
        let (answer, answered) = oneshot::channel();
        let requests = self.requests()?;
        let ask = async {
            let ended = || Lost::Unreachable("the connection was closed".to_owned());
            requests.send(Asked { number, frame, answer, proposed }).await.map_err(|_| ended())?;
            answered.await.map_err(|_| ended())?
        };
        let reply = tokio::select! {
            reply = ask => reply,
            () = self.core.clock.sleep(self.core.request_timeout) => {
                Err(Lost::Unreachable("no answer in time".to_owned()))
            }
        };
        let reply = reply.map_err(|lost| self.core.error(lost))?;
        if let (Some(since), Reply::Subscribed) = (since, &reply) {
            self.core.with_topic(workspace, |topic| topic.advance(since));
        }
        Ok(reply)
    }

    fn events(&self, workspace: WorkspaceId) -> BoxStream<'static, Entry> {
        let receiver = self.core.with_topic(workspace, |topic| topic.events.subscribe());
        unfold(receiver, |mut receiver| async move {
            loop {
                match receiver.recv().await {
                    Ok(entry) => return Some((Arc::unwrap_or_clone(entry), receiver)),
                    // The cursor above finds the gap.
                    Err(broadcast::error::RecvError::Lagged(_)) => {}
                    Err(broadcast::error::RecvError::Closed) => return None,
                }
            }
        })
        .boxed()
    }
}

impl Address {
    fn new(options: &WebSocketOptions) -> Result<Self, WebSocketError> {
        let url = live_url(&options.server)?;
        let mut authorization = HeaderValue::from_str(&format!("Bearer {}", options.token))
            .map_err(|_| WebSocketError::InvalidToken)?;
        authorization.set_sensitive(true);
        let incarnation = HeaderValue::from_str(&format!("{:016x}", options.incarnation))
            .expect("digits fit into a header");
        Ok(Self { url, authorization, incarnation })
    }

    /// Names the server, for error texts.
    fn describe(&self) -> String {
        format!("server {}", authority(&self.url))
    }
}

impl Lost {
    fn into_error(self, place: &str) -> CommitLogError {
        match self {
            Self::Unreachable(reason) => {
                CommitLogError::Unreachable { place: place.to_owned(), reason }
            }
            Self::Refused(refusal) => CommitLogError::Refused(refusal),
        }
    }
}

impl Core {
    fn next_number(&self) -> u64 {
        self.next_number.fetch_add(1, Ordering::Relaxed)
    }

    fn error(&self, lost: Lost) -> CommitLogError {
        lost.into_error(&self.place)
    }

    fn with_topic<T>(&self, workspace: WorkspaceId, work: impl FnOnce(&mut Topic) -> T) -> T {
        let mut topics = self.topics.lock();
        let topic = topics.entry(workspace).or_insert_with(|| Topic {
            events: broadcast::channel(EVENTS_WAITING_MAX).0,
            last: None,
            newest: None,
        });
        work(topic)
    }

    /// Hands an entry to those who listen.
    fn publish(&self, workspace: WorkspaceId, entry: Entry) {
        if let Some(topic) = self.topics.lock().get_mut(&workspace) {
            topic.advance(entry.seq);
            if topic.newest.is_none_or(|newest| newest.seq < entry.seq) {
                topic.newest = Some(entry.head());
            }
            // Nobody may be listening any more.
            let _ = topic.events.send(Arc::new(entry));
        }
    }

    /// Hands what this device has put into the log to those who listen: the server has said where it stands, and does not send it back. It is
    /// made of what was seen of the log last, and left to the cursors where that does not give the same. Where something before it never came,
    /// it shows them the gap, as an event does.
    fn publish_own(&self, Proposed { workspace, commit }: Proposed, head: Head) {
        let newest = self.with_topic(workspace, |topic| topic.newest);
        let mut seen = [newest, Some(commit.seen)].into_iter().flatten();
        let Some(before) = seen.find(|before| before.seq + 1 == head.seq) else { return };
        let entry = Entry { seq: head.seq, previous: before.hash, commit };
        if entry.head() == head {
            self.publish(workspace, entry);
        }
    }

    /// Tells whether anybody listens to a workspace.
    fn is_heard(&self, workspace: WorkspaceId) -> bool {
        let topics = self.topics.lock();
        topics.get(&workspace).is_some_and(|topic| topic.events.receiver_count() > 0)
    }

    /// Returns the workspaces that somebody listens to, with the newest entry that came here, and forgets the others.
    fn subscriptions(&self) -> Vec<(WorkspaceId, u64)> {
        let mut topics = self.topics.lock();
        topics.retain(|_, topic| topic.events.receiver_count() > 0);
        topics.iter().filter_map(|(&id, topic)| Some((id, topic.last?))).collect()
    }

    /// Returns how long to wait before the next attempt: longer after every failure, and never the same for two
    /// devices, so that they do not all come back at once when a server does.
    fn pause_after(&self, failures: u32) -> Duration {
        let longest = PAUSE_MIN.saturating_mul(1 << failures.min(16)).min(PAUSE_MAX);
        let random = u32::from_le_bytes(random_bytes(&*self.random));
        PAUSE_MIN + longest.mul_f64(f64::from(random) / f64::from(u32::MAX))
    }
}

impl Topic {
    fn advance(&mut self, seq: u64) {
        self.last = Some(self.last.map_or(seq, |last| last.max(seq)));
    }
}

/// Owns the socket: connects when somebody asks, or while somebody listens; ends when the connection is dropped.
async fn run(core: Arc<Core>, mut requests: mpsc::Receiver<Asked>) {
    let (mut failures, mut first) = (0, None);
    loop {
        if first.is_none() && core.subscriptions().is_empty() {
            first = requests.recv().await;
            if first.is_none() {
                return;
            }
        }
        match socket::connect(&core).await {
            Ok(socket) => {
                failures = 0;
                if socket::drive(&core, socket, &mut requests, first.take()).await.is_none() {
                    return;
                }
            }
            Err(lost) => {
                failures += 1;
                tracing::debug!(place = %core.place, ?lost, "a server cannot be connected to");
                let mut waiting = first.take().or_else(|| requests.try_recv().ok());
                while let Some(asked) = waiting {
                    // Who has stopped waiting does not mind.
                    let _ = asked.answer.send(Err(lost.clone()));
                    waiting = requests.try_recv().ok();
                }
            }
        }
        let pause = core.pause_after(failures);
        core.clock.sleep(PAUSE_MIN).await;
        tokio::select! {
            () = core.clock.sleep(pause - PAUSE_MIN) => {}
            asked = requests.recv() => match asked {
                // Somebody wants an answer now.
                Some(asked) => first = Some(asked),
                None => return,
            },
        }
    }
}

/// Returns the address of the live door.
fn live_url(server: &str) -> Result<Url, WebSocketError> {
    let invalid = |reason: String| WebSocketError::InvalidUrl { url: server.to_owned(), reason };
    let mut url = Url::parse(server).map_err(|error| invalid(error.to_string()))?;
    match url.scheme() {
        "http" => url.set_scheme("ws").map_err(|()| invalid("it has no host".to_owned()))?,
        "https" => url.set_scheme("wss").map_err(|()| invalid("it has no host".to_owned()))?,
        "ws" | "wss" => {}
        scheme => return Err(invalid(format!("'{scheme}:' is neither http: nor https:"))),
    }
    if url.host_str().is_none_or(str::is_empty) {
        return Err(invalid("it has no host".to_owned()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(invalid("a password does not belong into it".to_owned()));
    }
    let path = format!("{}/api/v1/live", url.path().trim_end_matches('/'));
    url.set_path(&path);
    url.set_query(None);
    url.set_fragment(None);
    Ok(url)
}

/// Returns host and port.
fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// Turns the status of a refused handshake into what the callers hear.
fn refused_handshake(status: u16) -> Lost {
    let refused = |kind, text: &str| Lost::Refused(Refusal::new(kind, text));
    match status {
        401 | 403 => refused(RefusalKind::Forbidden, "this device is not signed in any more"),
        409 => refused(
            RefusalKind::DeviceCloned,
            "another installation is connected as this device; sign in again to become a device of your own",
        ),
        status => Lost::Unreachable(format!("it answers with status {status}")),
    }
}

#[cfg(test)]
mod tests;
