//! One socket, from its handshake to its loss.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use model::WorkspaceId;
use model::wire::{Reply, Request, RequestFrame, ServerFrame};
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use super::frames::{self, FrameSink, FrameStream, encode};
use super::wire::{self, Wire};
use super::{Asked, Core, Lost, Proposed};

/// How long a handshake may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How often it is looked whether the server is still there.
const LOOK_INTERVAL: Duration = Duration::from_secs(15);

/// After how long without any sign of life the server is asked for one. Mostly it is not: it pings by itself, and answers who asks for entries after
/// silence. A question costs an idle device 164 bytes with its answer and what TCP adds, in a minute of which it has few.
pub const PING_AFTER: Duration = Duration::from_secs(25);

/// After how long without any sign of life the server is given up.
const SILENCE_MAX: Duration = Duration::from_secs(40);

/// How many bytes of missed entries are fetched after a reconnect; the cursors fetch the rest.
const MISSED_LENGTH_MAX: u64 = 1024 * 1024;

/// How many bytes the socket reads at once.
const READ_BUFFER_SIZE: usize = 64 * 1024;

pub(super) type Socket = WebSocketStream<Wire>;

/// Who waits for the answer to a request.
enum Waiting {
    Caller(oneshot::Sender<Result<Reply, Lost>>, Option<Box<Proposed>>),
    /// The task itself: entries that were missed while there was no connection.
    Missed(WorkspaceId),
    Nobody,
}

/// What the two directions of a socket share.
struct Shared<'a> {
    core: &'a Core,
    waiting: Mutex<HashMap<u64, Waiting>>,
    /// When the server was last heard of, in milliseconds of the clock.
    heard: AtomicU64,
    ping: Notify,
}

/// Opens a socket.
pub(super) async fn connect(core: &Core) -> Result<Socket, Lost> {
    let request = frames::handshake(&core.address)?;
    let config = frames::config(READ_BUFFER_SIZE);
    let connecting = async {
        let wire = wire::connect(&core.address.url).await.map_err(Error::Io)?;
        client_async_with_config(request, wire, Some(config)).await
    };
    tokio::select! {
        connected = connecting => match connected {
            Ok((socket, _)) => Ok(socket),
            Err(error) => Err(frames::lost_in_handshake(error)),
        },
        () = core.clock.sleep(CONNECT_TIMEOUT) => {
            Err(Lost::Unreachable("no connection in time".to_owned()))
        }
    }
}

/// Uses a socket until it is lost, which is `Some`, or until nobody can ask any more.
pub(super) async fn drive(
    core: &Core,
    socket: Socket,
    requests: &mut mpsc::Receiver<Asked>,
    first: Option<Asked>,
) -> Option<()> {
    let (sink, stream) = frames::split(socket);
    let shared = Shared {
        core,
        waiting: Mutex::default(),
        heard: AtomicU64::new(milliseconds(core)),
        ping: Notify::new(),
    };
    let lost = tokio::select! {
        lost = shared.send(sink, requests, first) => lost,
        lost = shared.receive(stream) => Some(lost),
        lost = shared.watch() => Some(lost),
    };
    let reason = lost.unwrap_or_else(|| "the connection was closed".to_owned());
    tracing::debug!(place = %core.place, reason, "a live connection ended");
    for (_, waiting) in shared.waiting.lock().drain() {
        if let Waiting::Caller(answer, _) = waiting {
            // Who has stopped waiting does not mind.
            let _ = answer.send(Err(Lost::Unreachable(reason.clone())));
        }
    }
    (!requests.is_closed()).then_some(())
}

impl Shared<'_> {
    /// Sends requests; returns why it cannot any more, or nothing when nobody asks any more.
    async fn send(
        &self,
        mut sink: FrameSink<Wire>,
        requests: &mut mpsc::Receiver<Asked>,
        first: Option<Asked>,
    ) -> Option<String> {
        for frame in self.resubscribe() {
            if let Err(error) = sink.feed(frame).await {
                return Some(error.to_string());
            }
        }
        let mut next = first;
        loop {
            // Whatever waits already leaves with one flush.
            while let Some(asked) = next.take().or_else(|| requests.try_recv().ok()) {
                let frame = self.note(asked);
                if let Err(error) = sink.feed(frame).await {
                    return Some(error.to_string());
                }
            }
            if let Err(error) = sink.flush().await {
                return Some(error.to_string());
            }
            tokio::select! {
                asked = requests.recv() => match asked {
                    Some(asked) => next = Some(asked),
                    None => {
                        // A polite end; the server finds out otherwise, too.
                        let _ = sink.close().now_or_never();
                        return None;
                    }
                },
                () = self.ping.notified() => {
                    if let Err(error) = sink.feed_ping().await {
                        return Some(error.to_string());
                    }
                }
            }
        }
    }

    fn note(&self, asked: Asked) -> Bytes {
        let waiting = Waiting::Caller(asked.answer, asked.proposed.map(Box::new));
        self.waiting.lock().insert(asked.number, waiting);
        asked.frame
    }

    /// Returns the frames that bring back what a new socket has lost.
    fn resubscribe(&self) -> Vec<Bytes> {
        let mut frames = Vec::new();
        for (workspace, since) in self.core.subscriptions() {
            let length_max = MISSED_LENGTH_MAX;
            for (request, waiting) in [
                (Request::Subscribe { since }, Waiting::Nobody),
                (Request::Entries { since, length_max }, Waiting::Missed(workspace)),
            ] {
                let number = self.core.next_number();
                self.waiting.lock().insert(number, waiting);
                frames.push(encode(&RequestFrame { number, workspace, request }));
            }
        }
        frames
    }

    /// Receives answers and events; returns why it cannot any more.
    async fn receive(&self, mut stream: FrameStream<Wire>) -> String {
        loop {
            let received = match stream.next().await {
                Ok(received) => received,
                Err(ended) => return ended.to_string(),
            };
            self.heard.store(milliseconds(self.core), Ordering::Relaxed);
            if let Some(frame) = received {
                self.take(frame);
            }
        }
    }

    fn take(&self, frame: ServerFrame) {
        match frame {
            ServerFrame::Event { workspace, entry } => self.core.publish(workspace, entry),
            ServerFrame::Reply { number, reply } => {
                let waiting = self.waiting.lock().remove(&number);
                match (waiting, reply) {
                    (Some(Waiting::Caller(answer, proposed)), reply) => {
                        // In the order of the log, of which the next event may be here already.
                        if let (Some(proposed), &Reply::Committed(head)) = (proposed, &reply) {
                            self.core.publish_own(*proposed, head);
                        }
                        // Who has stopped waiting does not mind.
                        let _ = answer.send(Ok(reply));
                    }
                    (Some(Waiting::Missed(workspace)), Reply::Entries(entries)) => {
                        for entry in entries {
                            self.core.publish(workspace, entry);
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    /// Pings after silence, and returns when the server gives no sign of life.
    async fn watch(&self) -> String {
        loop {
            self.core.clock.sleep(LOOK_INTERVAL).await;
            let silence = milliseconds(self.core) - self.heard.load(Ordering::Relaxed);
            if u128::from(silence) > SILENCE_MAX.as_millis() {
                return "the server gives no sign of life".to_owned();
            }
            if u128::from(silence) > PING_AFTER.as_millis() {
                self.ping.notify_one();
            }
            // Callers that have given up need no place any more.
            self.waiting.lock().retain(|_, waiting| match waiting {
                Waiting::Caller(answer, _) => !answer.is_closed(),
                Waiting::Missed(_) | Waiting::Nobody => true,
            });
        }
    }
}

fn milliseconds(core: &Core) -> u64 {
    u64::try_from(core.clock.elapsed().as_millis()).unwrap_or(u64::MAX)
}
