//! The device's end of the socket.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use model::{Clock, Random};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_tungstenite::tungstenite::http::{HeaderValue, Uri};

use super::frames::{Up, Way, encode};
use crate::error::MessagingError;
use crate::names::Name;
use crate::pauses::Pauses;
use crate::transport::{Abilities, Incoming, Notice, Parcel, Route, Source, Transport, incoming};

mod socket;

/// The pauses between attempts to connect.
const PAUSES: Pauses =
    Pauses { first: Duration::from_millis(100), longest: Duration::from_secs(30) };

/// How many messages wait for the socket at most; more make their senders wait.
const COMMANDS_MAX: usize = 64;

/// How long a topic may take until its events are told.
const LISTEN_TIMEOUT: Duration = Duration::from_secs(10);

/// Where the gateway is.
#[derive(Clone)]
pub struct WebSocketOptions {
    /// The address of its door, such as `ws://127.0.0.1:8470/api/v1/messages`.
    pub url: String,
    /// What is sent as `Authorization`, if anything.
    pub authorization: Option<String>,
}

impl fmt::Debug for WebSocketOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("WebSocketOptions").field("url", &self.url).finish_non_exhaustive()
    }
}

/// A connection of a device to a gateway. It comes back by itself until it is dropped.
#[derive(Debug)]
pub struct WebSocketTransport {
    place: String,
    clock: Arc<dyn Clock>,
    commands: mpsc::Sender<Command>,
    next_number: AtomicU64,
    next_listener: AtomicU32,
    running: JoinHandle<()>,
}

/// What the owner of the socket is asked to do.
enum Command {
    Send { number: u64, target: String, frame: Bytes, done: Done },
    Listen { listener: u32, topic: Name, events: mpsc::Sender<Notice>, done: Done },
    Answers { answers: mpsc::Sender<Notice> },
}

/// Tells who asked how it ended.
type Done = oneshot::Sender<Result<(), MessagingError>>;

impl Drop for WebSocketTransport {
    fn drop(&mut self) {
        self.running.abort();
    }
}

impl WebSocketTransport {
    /// Begins to connect. To be called inside of a Tokio runtime.
    ///
    /// # Errors
    /// [`MessagingError::Refused`], if the address or the authorization cannot be used.
    pub fn new(
        options: WebSocketOptions,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
    ) -> Result<Self, MessagingError> {
        let refused = |reason: &str| MessagingError::Refused {
            place: options.url.clone(),
            reason: reason.to_owned(),
        };
        let url: Uri = options.url.parse().map_err(|_| refused("it is not an address"))?;
        if url.scheme_str() != Some("ws") {
            return Err(refused("it does not begin with ws:, and TLS is not there yet"));
        }
        let authority = url.authority().ok_or_else(|| refused("it has no host"))?;
        if authority.as_str().contains('@') {
            return Err(refused("a password does not belong into an address"));
        }
        let place = format!("server {authority}");
        let authorization = options.authorization.as_deref().map(HeaderValue::from_str);
        let mut authorization = authorization
            .transpose()
            .map_err(|_| refused("the authorization has characters that cannot be sent"))?;
        if let Some(value) = &mut authorization {
            value.set_sensitive(true);
        }
        let (commands, asked) = mpsc::channel(COMMANDS_MAX);
        let core = socket::Core { place: place.clone(), url, authorization, clock, random };
        let clock = Arc::clone(&core.clock);
        let running = tokio::spawn(socket::run(core, asked));
        let (next_number, next_listener) = (AtomicU64::new(1), AtomicU32::new(1));
        Ok(Self { place, clock, commands, next_number, next_listener, running })
    }

    async fn ask(&self, command: Command) -> Result<(), MessagingError> {
        self.commands.send(command).await.map_err(|_| MessagingError::Closed)
    }
}

#[async_trait]
impl Transport for WebSocketTransport {
    fn describe(&self) -> String {
        self.place.clone()
    }

    fn abilities(&self) -> Abilities {
        // What is kept is kept by the transport behind the gateway.
        Abilities { keeps_casts: false, serves: false }
    }

    async fn send(&self, route: &Route, parcel: Parcel) -> Result<(), MessagingError> {
        let way = match route {
            Route::Call(_) => Way::Call,
            Route::Cast(_) => Way::Cast,
            Route::Multi(_) => Way::Multi,
            Route::Event(_) => Way::Event,
            Route::Reply(_) => {
                let transport = self.place.clone();
                return Err(MessagingError::Unsupported {
                    transport,
                    what: "answer from a device",
                });
            }
        };
        let number = self.next_number.fetch_add(1, Ordering::Relaxed);
        let expires_ms =
            parcel.expires_in.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        let frame = encode(&Up::Send { number, way, expires_ms }, &parcel.bytes);
        let (done, is_done) = oneshot::channel();
        self.ask(Command::Send { number, target: route.target(), frame, done }).await?;
        is_done.await.map_err(|_| MessagingError::Closed)?
    }

    async fn receive(
        &self,
        source: &Source,
        unsettled_max: usize,
    ) -> Result<Incoming, MessagingError> {
        let (sender, receiver) = mpsc::channel(unsettled_max.max(1));
        match source {
            Source::Replies(_) => self.ask(Command::Answers { answers: sender }).await?,
            Source::Topic(topic) => {
                let listener = self.next_listener.fetch_add(1, Ordering::Relaxed);
                let (done, is_done) = oneshot::channel();
                let (topic, events) = (topic.clone(), sender);
                self.ask(Command::Listen { listener, topic, events, done }).await?;
                tokio::select! {
                    done = is_done => done.map_err(|_| MessagingError::Closed)??,
                    () = self.clock.sleep(LISTEN_TIMEOUT) => {
                        return Err(MessagingError::Unreachable {
                            place: self.place.clone(),
                            reason: "it does not tell the events of a topic in time".to_owned(),
                        });
                    }
                }
            }
            Source::Calls(_) | Source::Casts(_) | Source::Multi(_) | Source::DeadLetters(_) => {
                let transport = self.place.clone();
                return Err(MessagingError::Unsupported { transport, what: "serve from a device" });
            }
        }
        Ok(incoming(receiver))
    }

    async fn waiting(&self, _service: &Name) -> Result<u64, MessagingError> {
        let transport = self.place.clone();
        Err(MessagingError::Unsupported { transport, what: "say what waits for a service" })
    }
}
