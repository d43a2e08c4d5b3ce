//! The transport over NATS: calls, multis and events through its core, casts through JetStream.
//!
//! *Participants*: one connection, which the client library makes again by itself; a task for each source. *Goals*: a
//! cast is confirmed when a stream has it; whoever takes a call says so at once, so that its sender knows. *Invariants*: what was delivered of a stream is acknowledged after its work, and the acknowledgement confirmed; what comes
//! through the core is bounded by the receiver, which refuses calls and drops events that it has no room for.
//!
//! What is declared at the server is written down in `docs/design/messaging.md`. Servers from version 2.9 on will do.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_nats::client::RequestErrorKind;
use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::{self, ErrorCode};
use async_nats::{Client, ConnectOptions, Event};
use async_trait::async_trait;
use bytes::Bytes;
use model::Random;
use tokio::sync::watch;

use crate::error::MessagingError;
use crate::names::{InstanceId, Name};
use crate::pauses::Pauses;
use crate::transport::{Abilities, Incoming, Parcel, Route, Source, Transport, WAITING_MAX};

mod core_receiving;
mod stream_receiving;

/// The pauses between attempts to connect and to declare.
const PAUSES: Pauses = Pauses { first: Duration::from_millis(50), longest: Duration::from_secs(3) };

/// How long one request to the server may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(3);

/// What a receiver says when it has taken a message.
const TAKEN: &[u8] = b"+";

/// What a receiver says when it has no room.
const NO_ROOM: &[u8] = b"-";

/// How to reach a server.
#[derive(Clone)]
pub struct NatsOptions {
    /// Its address without secrets, such as `nats://127.0.0.1:4222`, or `tls:` where the server shows a certificate that the
    /// system trusts.
    pub url: String,
    /// Who we are there and how we show it, unless it asks nobody.
    pub credentials: Option<(String, String)>,
    /// How many messages wait in each place at most. All programs at one server must say the same.
    pub waiting_max: usize,
}

impl NatsOptions {
    /// Returns options with the usual bounds and without credentials.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), credentials: None, waiting_max: WAITING_MAX }
    }
}

impl fmt::Debug for NatsOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("NatsOptions").field("url", &self.url).finish_non_exhaustive()
    }
}

/// A connection to a NATS server.
#[derive(Debug)]
pub struct NatsTransport {
    link: Arc<Link>,
}

/// What sending and receiving share.
#[derive(Debug)]
struct Link {
    place: String,
    waiting_max: usize,
    random: Arc<dyn Random>,
    client: Client,
    stream: jetstream::Context,
    /// How often there was a new connection in the place of a lost one.
    connections: watch::Receiver<u64>,
}

impl Link {
    fn unreachable(&self, reason: impl ToString) -> MessagingError {
        MessagingError::Unreachable { place: self.place.clone(), reason: reason.to_string() }
    }
}

impl NatsTransport {
    /// Begins to connect, and goes on until it is dropped. To be called inside of a Tokio runtime.
    ///
    /// # Errors
    /// [`MessagingError::Refused`], if the address is none or has a password in it.
    pub async fn new(
        options: NatsOptions,
        random: Arc<dyn Random>,
    ) -> Result<Self, MessagingError> {
        let place = format!("broker {}", options.url);
        let refused = |reason: String| MessagingError::Refused { place: place.clone(), reason };
        if options.url.contains('@') {
            return Err(refused("a password does not belong into an address".to_owned()));
        }
        if !["nats://", "tls://"].iter().any(|scheme| options.url.starts_with(scheme)) {
            return Err(refused("it begins with neither nats: nor tls:".to_owned()));
        }
        let (counter, connections) = watch::channel(0);
        let was_lost = AtomicBool::new(false);
        let dice = Arc::clone(&random);
        let mut connecting = ConnectOptions::new()
            .name("syncline")
            .retry_on_initial_connect()
            .max_reconnects(None)
            .ping_interval(Duration::from_secs(10))
            .request_timeout(Some(REQUEST_TIMEOUT))
            .reconnect_delay_callback(move |failures| {
                PAUSES.after(u32::try_from(failures).unwrap_or(u32::MAX), &*dice)
            })
            .event_callback(move |event| {
                // The first connection is told late, and nothing was lost before it.
                match event {
                    Event::Disconnected => was_lost.store(true, Ordering::Relaxed),
                    Event::Connected if was_lost.swap(false, Ordering::Relaxed) => {
                        counter.send_modify(|connections| *connections += 1);
                    }
                    _ => {}
                }
                tracing::debug!(%event, "a connection to a broker");
                std::future::ready(())
            });
        if let Some((user, password)) = options.credentials {
            connecting = connecting.user_and_password(user, password);
        }
        let client = connecting.connect(options.url).await;
        let client = client.map_err(|error| refused(error.to_string()))?;
        let stream = jetstream::ContextBuilder::new()
            .timeout(REQUEST_TIMEOUT)
            .ack_timeout(REQUEST_TIMEOUT)
            .backpressure_on_inflight(true)
            .build(client.clone());
        let waiting_max = options.waiting_max;
        let link = Link { place, waiting_max, random, client, stream, connections };
        Ok(Self { link: Arc::new(link) })
    }
}

fn calls_subject(service: &Name) -> String {
    format!("syncline.call.{service}")
}

fn casts_subject(service: &Name) -> String {
    format!("syncline.cast.{service}")
}

fn dead_subject(service: &Name) -> String {
    format!("syncline.dead.{service}")
}

fn multi_subject(service: &Name) -> String {
    format!("syncline.multi.{service}")
}

fn topic_subject(topic: &Name) -> String {
    format!("syncline.event.{topic}")
}

fn reply_subject(instance: InstanceId) -> String {
    format!("syncline.reply.{instance}")
}

#[async_trait]
impl Transport for NatsTransport {
    fn describe(&self) -> String {
        self.link.place.clone()
    }

    fn abilities(&self) -> Abilities {
        Abilities { keeps_casts: true, serves: true }
    }

    async fn send(&self, route: &Route, parcel: Parcel) -> Result<(), MessagingError> {
        match route {
            Route::Call(service) => self.ask(route, calls_subject(service), parcel.bytes).await,
            Route::Multi(service) => self.ask(route, multi_subject(service), parcel.bytes).await,
            Route::Cast(service) => self.keep(route, casts_subject(service), parcel).await,
            Route::Event(topic) => self.tell(topic_subject(topic), parcel.bytes).await,
            Route::Reply(address) => self.tell(reply_subject(address.instance), parcel.bytes).await,
        }
    }

    async fn receive(
        &self,
        source: &Source,
        unsettled_max: usize,
    ) -> Result<Incoming, MessagingError> {
        let unsettled_max = unsettled_max.max(1);
        match source {
            Source::Casts(_) | Source::DeadLetters(_) => {
                stream_receiving::receive(&self.link, source, unsettled_max).await
            }
            _ => core_receiving::receive(&self.link, source, unsettled_max).await,
        }
    }

    async fn waiting(&self, service: &Name) -> Result<u64, MessagingError> {
        stream_receiving::waiting(&self.link, service).await
    }
}

impl NatsTransport {
    /// Sends, and waits until the first receiver says that it has taken the message.
    async fn ask(
        &self,
        route: &Route,
        subject: String,
        bytes: Bytes,
    ) -> Result<(), MessagingError> {
        let target = route.target();
        match self.link.client.request(subject, bytes).await {
            Ok(said) if said.payload == TAKEN => Ok(()),
            Ok(_) => Err(MessagingError::Full { target }),
            Err(error) if error.kind() == RequestErrorKind::NoResponders => {
                Err(MessagingError::NoReceiver { target })
            }
            Err(error) => Err(self.link.unreachable(error)),
        }
    }

    /// Sends, and waits until the stream has the message.
    async fn keep(
        &self,
        route: &Route,
        subject: String,
        parcel: Parcel,
    ) -> Result<(), MessagingError> {
        let message =
            PublishMessage::build().payload(parcel.bytes).message_id(parcel.operation.to_string());
        let failed = |error: PublishError| match error.kind() {
            PublishErrorKind::StreamNotFound => {
                MessagingError::NoReceiver { target: route.target() }
            }
            _ if is_full(&error) => MessagingError::Full { target: route.target() },
            _ => self.link.unreachable(error),
        };
        let kept = self.link.stream.send_publish(subject, message).await.map_err(failed)?;
        kept.await.map(drop).map_err(failed)
    }

    /// Sends, and hears nothing.
    async fn tell(&self, subject: String, bytes: Bytes) -> Result<(), MessagingError> {
        let sent = self.link.client.publish(subject, bytes).await;
        sent.map_err(|error| self.link.unreachable(error))
    }
}

/// Says whether a stream had no room.
fn is_full(error: &PublishError) -> bool {
    let source = std::error::Error::source(error);
    let said = source.and_then(|source| source.downcast_ref::<jetstream::Error>());
    said.is_some_and(|said| said.error_code() == ErrorCode::STREAM_STORE_FAILED)
}
