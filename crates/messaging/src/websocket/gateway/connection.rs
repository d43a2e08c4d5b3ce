//! One connection of a device.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{Message, WebSocket};
use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore, mpsc};

use super::{Core, Guard, Session};
use crate::envelope::Envelope;
use crate::error::MessagingError;
use crate::names::{Name, ReplyAddress};
use crate::transport::{Parcel, Route};
use crate::websocket::frames::{
    Down, Outcome, Position, SessionKey, Up, VERSION, Way, decode, encode,
};
use crate::websocket::ring::{Following, Ring, Waking};

/// How long a device may take for its first message.
const HELLO_TIMEOUT: Duration = Duration::from_secs(10);

/// After what silence a connection is given up; devices say something three times in this time.
const SILENCE_MAX: Duration = Duration::from_secs(150);

/// How long the transport may take for a message of a device.
const SEND_TIMEOUT: Duration = Duration::from_secs(5);

/// How many messages of one device are on their way at once; until one is through, nothing more is read.
const SENDING_MAX: usize = 32;

/// How many topics one device listens to at most.
const LISTENERS_MAX: usize = 1024;

/// A connection as long as it lasts.
struct Connection {
    core: Arc<Core>,
    session: Arc<Session>,
    guard: Arc<dyn Guard>,
    outbox: mpsc::Sender<Bytes>,
    listeners: Mutex<BTreeMap<u32, Listener>>,
    /// Wakes the writer when there are events.
    has_events: Arc<Notify>,
    room: Arc<Semaphore>,
}

/// A topic that the device listens to, and how far it was told.
struct Listener {
    ring: Arc<Ring>,
    told: Position,
    /// Dropped with this, and then the ring wakes nobody for it.
    _waking: Arc<Waking>,
}

/// Speaks with a device until it leaves, is silent, or breaks the rules.
pub(super) async fn serve(core: &Arc<Core>, socket: WebSocket, guard: Arc<dyn Guard>) {
    let (mut sink, mut stream) = socket.split();
    let hello = tokio::select! {
        hello = stream.next() => hello,
        () = core.clock.sleep(HELLO_TIMEOUT) => None,
    };
    let Some(Ok(Message::Binary(hello))) = hello else { return };
    let Ok((Up::Hello { version: VERSION, session }, _)) = decode(&hello) else { return };
    let session = core.session(session);
    // The connection before this one ends now.
    session.turn.send_modify(|turn| *turn += 1);
    let mut turn = session.turn.subscribe();
    *session.left_at.lock() = None;
    let key = SessionKey { channel: session.channel, secret: session.secret };
    let welcome = encode(&Down::Welcome { version: VERSION, session: key }, &[]);
    if sink.send(Message::Binary(welcome)).await.is_ok() {
        let (outbox, frames) = mpsc::channel(SENDING_MAX);
        let connection = Connection {
            core: Arc::clone(core),
            session: Arc::clone(&session),
            guard,
            outbox,
            listeners: Mutex::default(),
            has_events: Arc::new(Notify::new()),
            room: Arc::new(Semaphore::new(SENDING_MAX)),
        };
        tokio::select! {
            () = connection.read(stream) => {}
            () = connection.write(sink, frames) => {}
            _ = turn.changed() => return,
        }
    }
    if !turn.has_changed().unwrap_or(true) {
        *session.left_at.lock() = Some(core.clock.elapsed());
    }
}

impl Connection {
    async fn read(&self, mut stream: SplitStream<WebSocket>) {
        loop {
            let message = tokio::select! {
                message = stream.next() => message,
                () = self.core.clock.sleep(SILENCE_MAX) => return,
            };
            match message {
                Some(Ok(Message::Binary(bytes))) => {
                    if let Err(error) = self.hear(&bytes).await {
                        tracing::debug!(%error, "a device does not speak as it should");
                        return;
                    }
                }
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                _ => return,
            }
        }
    }

    async fn hear(&self, bytes: &Bytes) -> Result<(), MessagingError> {
        let (head, envelope) = decode(bytes)?;
        match head {
            Up::Hello { .. } => {
                return Err(MessagingError::undecodable("a message on a socket", "a second hello"));
            }
            Up::Send { number, way, expires_ms } => {
                let room = Arc::clone(&self.room).acquire_owned().await.expect("it stays open");
                let checked = self.check(way, expires_ms, &envelope).await;
                let (core, outbox) = (Arc::clone(&self.core), self.outbox.clone());
                tokio::spawn(async move {
                    let outcome = match checked {
                        Ok((route, parcel)) => send(&core, &route, parcel).await,
                        Err(error) => Outcome::Refused(error.to_string()),
                    };
                    // The device may have left.
                    let _ = outbox.send(encode(&Down::Sent { number, outcome }, &[])).await;
                    drop(room);
                });
            }
            Up::Listen { listener, topic, from } => self.listen(listener, &topic, from).await,
            Up::Unlisten { listener } => drop(self.listeners.lock().remove(&listener)),
        }
        Ok(())
    }

    /// Checks a message of the device, and writes into it what a device must not choose.
    async fn check(
        &self,
        way: Way,
        expires_ms: Option<u64>,
        bytes: &Bytes,
    ) -> Result<(Route, Parcel), MessagingError> {
        let refused = |reason: &str| MessagingError::Refused {
            place: "the gateway".to_owned(),
            reason: reason.to_owned(),
        };
        let mut envelope = Envelope::decode(bytes)?;
        if envelope.kind != way.kind() {
            return Err(refused("the message is of another kind than its way"));
        }
        if !self.guard.may_send(envelope.kind, &envelope.target, &envelope.method).await {
            return Err(refused("this device may not send this"));
        }
        let expires_in = expires_ms.map(Duration::from_millis);
        // By our clock: that of a device may show anything.
        envelope.deadline_ms = expires_ms.map(|ms| self.core.now_ms().saturating_add(ms));
        envelope.reply_to = envelope
            .reply_to
            .map(|_| ReplyAddress { instance: self.core.instance, channel: self.session.channel });
        let target = envelope.target.clone();
        let route = match way {
            Way::Call => Route::Call(target),
            Way::Cast => Route::Cast(target),
            Way::Multi => Route::Multi(target),
            Way::Event => Route::Event(target),
        };
        let (operation, bytes) = (envelope.operation, envelope.encode()?);
        Ok((route, Parcel { bytes, operation, expires_in }))
    }

    async fn listen(&self, number: u32, topic: &str, from: Option<Position>) {
        let may_listen = match Name::new(topic) {
            Ok(topic) if self.listeners.lock().len() < LISTENERS_MAX => {
                self.guard.may_listen(&topic).await.then_some(topic)
            }
            _ => None,
        };
        let waking = Arc::new(Waking(Arc::clone(&self.has_events)));
        let ring = match may_listen {
            Some(topic) => self.core.ring(&topic, &waking).await.ok(),
            None => None,
        };
        let position = ring.as_ref().map(|ring| from.unwrap_or_else(|| ring.newest()));
        let listening = Down::Listening { listener: number, position };
        if self.outbox.send(encode(&listening, &[])).await.is_err() {
            return;
        }
        if let (Some(ring), Some(told)) = (ring, position) {
            self.listeners.lock().insert(number, Listener { ring, told, _waking: waking });
            self.has_events.notify_one();
        }
    }

    async fn write(
        &self,
        mut sink: SplitSink<WebSocket, Message>,
        mut frames: mpsc::Receiver<Bytes>,
    ) {
        loop {
            let next = self.next_answer().or_else(|| self.next_event());
            let frame = match next {
                Some(frame) => {
                    // What the device waits for is not held up by a flood of events.
                    while let Ok(first) = frames.try_recv() {
                        if sink.feed(Message::Binary(first)).await.is_err() {
                            return;
                        }
                    }
                    frame
                }
                None => {
                    if sink.flush().await.is_err() {
                        return;
                    }
                    tokio::select! {
                        frame = frames.recv() => match frame {
                            Some(frame) => frame,
                            None => return,
                        },
                        () = self.session.has_answers.notified() => continue,
                        () = self.has_events.notified() => continue,
                    }
                }
            };
            if sink.feed(Message::Binary(frame)).await.is_err() {
                return;
            }
        }
    }

    fn next_answer(&self) -> Option<Bytes> {
        let answer = self.session.answers.lock().pop_front()?;
        Some(encode(&Down::Answer, &answer))
    }

    /// Returns the next event of a topic, the topics in turn.
    fn next_event(&self) -> Option<Bytes> {
        let mut listeners = self.listeners.lock();
        for (&number, listener) in listeners.iter_mut() {
            match listener.ring.after(listener.told) {
                Following::Nothing => {}
                Following::Event(position, event) => {
                    listener.told = position;
                    return Some(encode(&Down::Event { listener: number, position }, &event));
                }
                Following::Gap(position) => {
                    listener.told = position;
                    return Some(encode(&Down::Gap { listener: number, position }, &[]));
                }
            }
        }
        None
    }
}

impl Core {
    fn now_ms(&self) -> u64 {
        let now = self.clock.now();
        let seconds = u64::try_from(now.seconds).unwrap_or_default();
        seconds.saturating_mul(1000) + u64::from(now.nanoseconds / 1_000_000)
    }
}

async fn send(core: &Core, route: &Route, parcel: Parcel) -> Outcome {
    let sent = tokio::select! {
        sent = core.transport.send(route, parcel) => sent,
        () = core.clock.sleep(SEND_TIMEOUT) => {
            return Outcome::Unreachable("it does not take the message in time".to_owned());
        }
    };
    match sent {
        Ok(()) => Outcome::Done,
        Err(MessagingError::NoReceiver { .. }) => Outcome::NoReceiver,
        Err(MessagingError::Full { .. }) => Outcome::Full,
        Err(error) if error.is_retryable() => Outcome::Unreachable(error.to_string()),
        Err(error) => Outcome::Refused(error.to_string()),
    }
}
