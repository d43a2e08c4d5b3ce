//! The task that owns the socket of a device, and connects again.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use model::{Clock, Random};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::header::AUTHORIZATION;
use tokio_tungstenite::tungstenite::http::{HeaderValue, Uri};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async_with_config};

use super::{COMMANDS_MAX, Command, Done, PAUSES};
use crate::error::MessagingError;
use crate::names::Name;
use crate::transport::{Delivery, Notice};
use crate::websocket::frames::{
    Down, FRAME_SIZE_MAX, Outcome, Position, SessionKey, Up, VERSION, decode, encode,
};

/// How long an attempt to connect may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// After what silence a device says that it is there. Two messages of a few bytes.
const PING_EVERY: Duration = Duration::from_secs(50);

/// After what time without anything from the gateway the connection is given up.
const SILENCE_MAX: Duration = Duration::from_secs(120);

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// What does not change.
pub(super) struct Core {
    pub(super) place: String,
    pub(super) url: Uri,
    pub(super) authorization: Option<HeaderValue>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) random: Arc<dyn Random>,
}

/// What outlives a connection.
#[derive(Default)]
struct State {
    session: Option<SessionKey>,
    sent: HashMap<u64, (String, Done)>,
    listeners: HashMap<u32, Listener>,
    answers: Vec<mpsc::Sender<Notice>>,
}

/// A topic that is listened to.
struct Listener {
    topic: Name,
    events: mpsc::Sender<Notice>,
    /// Who waits for the first word of the gateway.
    done: Option<Done>,
    /// The last event that came here.
    position: Option<Position>,
    has_lost: bool,
}

/// Connects and speaks until nobody asks any more.
pub(super) async fn run(core: Core, mut commands: mpsc::Receiver<Command>) {
    let (mut state, mut failures) = (State::default(), 0);
    loop {
        let reason = match core.connect(&mut state).await {
            Ok((socket, early)) => {
                failures = 0;
                if state.drive(&core, socket, early, &mut commands).await.is_none() {
                    return;
                }
                "the connection was lost".to_owned()
            }
            Err(reason) => reason,
        };
        tracing::debug!(place = core.place, reason, failures, "connecting to a gateway again");
        let lost = MessagingError::Unreachable { place: core.place.clone(), reason };
        state.fail(&lost);
        failures += 1;
        let pause = core.clock.sleep(PAUSES.after(failures, &*core.random));
        tokio::pin!(pause);
        loop {
            tokio::select! {
                () = &mut pause => break,
                command = commands.recv() => match command {
                    Some(command) => {
                        state.note(command);
                        state.fail(&lost);
                    }
                    None => return,
                },
            }
        }
    }
}

impl Core {
    /// Connects and greets. Returns the socket and its first messages.
    async fn connect(&self, state: &mut State) -> Result<(Socket, SessionKey), String> {
        let connecting = async {
            let mut request = self.url.clone().into_client_request()?;
            if let Some(authorization) = &self.authorization {
                request.headers_mut().insert(AUTHORIZATION, authorization.clone());
            }
            let config = WebSocketConfig::default()
                .max_message_size(Some(FRAME_SIZE_MAX))
                .max_frame_size(Some(FRAME_SIZE_MAX));
            let (mut socket, _) = connect_async_with_config(request, Some(config), true).await?;
            let hello = Up::Hello { version: VERSION, session: state.session };
            socket.send(Message::Binary(encode(&hello, &[]))).await?;
            let first = socket.next().await.ok_or(Error::ConnectionClosed)??;
            Ok((socket, first))
        };
        let connected: Result<(Socket, Message), Error> = tokio::select! {
            connected = connecting => connected,
            () = self.clock.sleep(CONNECT_TIMEOUT) => {
                return Err("it does not answer in time".to_owned());
            }
        };
        let (socket, first) = connected.map_err(|error| error.to_string())?;
        let Message::Binary(first) = first else {
            return Err("it does not greet".to_owned());
        };
        match decode(&first) {
            Ok((Down::Welcome { version: VERSION, session }, _)) => Ok((socket, session)),
            _ => Err("it speaks another version".to_owned()),
        }
    }
}

impl State {
    /// Notes what is asked, and returns what the gateway has to hear about it.
    fn note(&mut self, command: Command) -> Option<Bytes> {
        match command {
            Command::Send { number, target, frame, done } => {
                self.sent.retain(|_, (_, done)| !done.is_closed());
                self.sent.insert(number, (target, done));
                Some(frame)
            }
            Command::Listen { listener, topic, events, done } => {
                let frame = listen(listener, &topic, None);
                let (done, position) = (Some(done), None);
                let has_lost = false;
                let listening = Listener { topic, events, done, position, has_lost };
                self.listeners.insert(listener, listening);
                Some(frame)
            }
            Command::Answers { answers } => {
                self.answers.retain(|answers| !answers.is_closed());
                self.answers.push(answers);
                None
            }
        }
    }

    /// Tells all who wait for the gateway that it is gone.
    fn fail(&mut self, lost: &MessagingError) {
        for (_, (_, done)) in self.sent.drain() {
            // Who has stopped waiting does not mind.
            let _ = done.send(Err(lost.clone()));
        }
        // Who was not told that the events come has no use for them later.
        self.listeners.retain(|_, listener| match listener.done.take() {
            Some(done) => {
                let _ = done.send(Err(lost.clone()));
                false
            }
            None => !listener.events.is_closed(),
        });
    }

    /// Speaks until the connection breaks. `None` when nobody asks any more.
    async fn drive(
        &mut self,
        core: &Core,
        socket: Socket,
        session: SessionKey,
        commands: &mut mpsc::Receiver<Command>,
    ) -> Option<()> {
        self.session = Some(session);
        let (sink, mut stream) = socket.split();
        // Reading never waits for writing: else both ends could wait for each other.
        let (out, frames) = mpsc::channel(COMMANDS_MAX);
        let writing = tokio::spawn(write(sink, frames, Arc::clone(&core.clock)));
        let _writing = AbortOnDrop(writing);
        let again: Vec<Bytes> = self
            .listeners
            .iter()
            .map(|(&number, listener)| listen(number, &listener.topic, listener.position))
            .collect();
        for frame in again {
            // More than there is room for waits; a gateway that reads nothing is left below.
            tokio::select! {
                sent = out.send(frame) => sent.ok()?,
                () = core.clock.sleep(CONNECT_TIMEOUT) => return Some(()),
            }
        }
        loop {
            let asked = async {
                let room = out.reserve().await.ok()?;
                Some((room, commands.recv().await))
            };
            tokio::select! {
                biased;
                incoming = next(&mut stream, core) => {
                    let Some(bytes) = incoming else { return Some(()) };
                    match self.hear(&bytes) {
                        Ok(None) => {}
                        // Where there is no room for it, the next event brings it up again.
                        Ok(Some((listener, frame))) => if out.try_send(frame).is_ok() {
                            self.listeners.remove(&listener);
                        },
                        Err(error) => {
                            tracing::debug!(%error, "a gateway does not speak as it should");
                            return Some(());
                        }
                    }
                }
                asked = asked => match asked {
                    Some((room, Some(command))) => {
                        if let Some(frame) = self.note(command) {
                            room.send(frame);
                        }
                    }
                    Some((_, None)) => return None,
                    None => return Some(()),
                },
            }
        }
    }

    /// Does what the gateway says. Returns a listener that is no more, and what the gateway has to hear about it.
    fn hear(&mut self, bytes: &Bytes) -> Result<Option<(u32, Bytes)>, MessagingError> {
        let (head, envelope) = decode(bytes)?;
        match head {
            Down::Welcome { .. } => {
                return Err(MessagingError::undecodable(
                    "a message on a socket",
                    "a second welcome",
                ));
            }
            Down::Sent { number, outcome } => {
                if let Some((target, done)) = self.sent.remove(&number) {
                    // Who has stopped waiting does not mind.
                    let _ = done.send(result_of(outcome, target));
                }
            }
            Down::Listening { listener, position } => self.begun(listener, position),
            Down::Event { listener, position } => {
                let notice = Notice::Delivery(delivery(envelope));
                return Ok(self.tell(listener, position, notice));
            }
            Down::Gap { listener, position } => {
                return Ok(self.tell(listener, position, Notice::Gap));
            }
            Down::Answer => {
                for answers in &self.answers {
                    // Who has no room asks again.
                    let _ = answers.try_send(Notice::Delivery(delivery(envelope.clone())));
                }
            }
        }
        Ok(None)
    }

    fn begun(&mut self, number: u32, position: Option<Position>) {
        let Some(listener) = self.listeners.get_mut(&number) else { return };
        let Some(position) = position else {
            if let Some(listener) = self.listeners.remove(&number)
                && let Some(done) = listener.done
            {
                let place = "the gateway".to_owned();
                let reason = format!("this device may not listen to '{}'", listener.topic);
                // Who has stopped waiting does not mind.
                let _ = done.send(Err(MessagingError::Refused { place, reason }));
            }
            return;
        };
        listener.position = Some(position);
        if let Some(done) = listener.done.take() {
            let _ = done.send(Ok(()));
        }
    }

    /// Hands on an event; a listener that has no room for it hears of a gap as soon as it has.
    fn tell(&mut self, number: u32, position: Position, notice: Notice) -> Option<(u32, Bytes)> {
        let listener = self.listeners.get_mut(&number)?;
        if listener.events.is_closed() {
            return Some((number, encode(&Up::Unlisten { listener: number }, &[])));
        }
        listener.position = Some(position);
        if listener.has_lost && listener.events.try_send(Notice::Gap).is_ok() {
            listener.has_lost = false;
        }
        if listener.has_lost || listener.events.try_send(notice).is_err() {
            listener.has_lost = true;
        }
        None
    }
}

/// A task that ends with its owner.
struct AbortOnDrop(tokio::task::JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Returns the next message of the gateway; none when the connection is over.
async fn next(stream: &mut SplitStream<Socket>, core: &Core) -> Option<Bytes> {
    loop {
        let message = tokio::select! {
            message = stream.next() => message?.ok()?,
            () = core.clock.sleep(SILENCE_MAX) => return None,
        };
        match message {
            Message::Binary(bytes) => return Some(bytes),
            Message::Ping(_) | Message::Pong(_) => {}
            _ => return None,
        }
    }
}

async fn write(
    mut sink: SplitSink<Socket, Message>,
    mut frames: mpsc::Receiver<Bytes>,
    clock: Arc<dyn Clock>,
) {
    loop {
        let message = tokio::select! {
            frame = frames.recv() => match frame {
                Some(frame) => Message::Binary(frame),
                None => return,
            },
            () = clock.sleep(PING_EVERY) => Message::Ping(Bytes::new()),
        };
        if sink.feed(message).await.is_err() {
            return;
        }
        // What waits already goes along in one write.
        if frames.is_empty() && sink.flush().await.is_err() {
            return;
        }
    }
}

fn listen(listener: u32, topic: &Name, from: Option<Position>) -> Bytes {
    encode(&Up::Listen { listener, topic: topic.to_string(), from }, &[])
}

fn delivery(bytes: Bytes) -> Delivery {
    Delivery { bytes, attempt: 1, settlement: None }
}

fn result_of(outcome: Outcome, target: String) -> Result<(), MessagingError> {
    let place = "the gateway".to_owned();
    match outcome {
        Outcome::Done => Ok(()),
        Outcome::NoReceiver => Err(MessagingError::NoReceiver { target }),
        Outcome::Full => Err(MessagingError::Full { target }),
        Outcome::Unreachable(reason) => Err(MessagingError::Unreachable { place, reason }),
        Outcome::Refused(reason) => Err(MessagingError::Refused { place, reason }),
    }
}
