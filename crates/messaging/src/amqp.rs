//! The transport over RabbitMQ, or another broker that speaks AMQP 0-9-1 and has quorum queues.
//!
//! *Participants*: one connection with channels to publish on, and one channel for each source; a task that
//! connects again. *Goals*: a cast is confirmed only when the broker's disk has it; a lost connection costs nothing but time.
//! *Invariants*: what was delivered is acknowledged after its work or comes
//! again; nothing is received without a bound on what is unacknowledged, answers excepted, which are handed out at once.
//!
//! What is declared at the broker is written down in `docs/design/messaging.md`.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use lapin::options::BasicPublishOptions;
use lapin::uri::{AMQPUri, AMQPUserInfo};
use lapin::{BasicProperties, Confirmation};
use model::Random;

use crate::error::MessagingError;
use crate::names::Name;
use crate::transport::{Abilities, Incoming, Parcel, Route, Source, Transport, WAITING_MAX};
use confirming::Message;
use link::Link;

mod confirming;
mod link;
mod receiving;

/// Exchange of casts; the routing key is the service.
const CASTS: &str = "syncline.casts";

/// Exchange of events; the routing key is the topic.
const EVENTS: &str = "syncline.events";

/// Exchange of questions to all; the routing key is the service.
const MULTI: &str = "syncline.multi";

/// Kept on the disk of the broker.
const PERSISTENT: u8 = 2;

/// After what time without a sign of life a connection is given up, in seconds.
const HEARTBEAT: u16 = 10;

/// How to reach a broker.
#[derive(Clone)]
pub struct AmqpOptions {
    /// Its address without secrets, such as `amqp://127.0.0.1:5672/%2f`, or `amqps:` where the broker shows a certificate that the
    /// system trusts.
    pub url: String,
    /// Who we are there.
    pub user: String,
    /// How we show it.
    pub password: String,
    /// How many messages wait in each queue at most. All programs at one broker must say the same.
    pub waiting_max: usize,
}

impl AmqpOptions {
    /// Returns options with the usual bounds.
    pub fn new(
        url: impl Into<String>,
        user: impl Into<String>,
        password: impl Into<String>,
    ) -> Self {
        let (url, user, password) = (url.into(), user.into(), password.into());
        Self { url, user, password, waiting_max: WAITING_MAX }
    }

    fn address(&self) -> Result<AMQPUri, MessagingError> {
        let refused = |reason: String| MessagingError::Refused { place: self.url.clone(), reason };
        let mut address: AMQPUri = self.url.parse().map_err(refused)?;
        if self.url.contains('@') {
            return Err(refused("a password does not belong into an address".to_owned()));
        }
        let (username, password) = (self.user.clone(), self.password.clone());
        address.authority.userinfo = AMQPUserInfo { username, password };
        address.query.heartbeat.get_or_insert(HEARTBEAT);
        Ok(address)
    }
}

impl fmt::Debug for AmqpOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("AmqpOptions").field("url", &self.url).finish_non_exhaustive()
    }
}

/// A connection to a broker that speaks AMQP.
#[derive(Debug)]
pub struct AmqpTransport {
    link: Arc<Link>,
}

impl AmqpTransport {
    /// Begins to connect, and goes on until it is dropped. To be called inside of a Tokio runtime.
    ///
    /// # Errors
    /// [`MessagingError::Refused`], if the address is none.
    pub fn new(options: AmqpOptions, random: Arc<dyn Random>) -> Result<Self, MessagingError> {
        let address = options.address()?;
        Ok(Self { link: Link::start(address, options.waiting_max, random) })
    }
}

/// The queue of a service's calls.
fn calls_queue(service: &Name) -> String {
    format!("syncline.{service}.calls")
}

/// The queue of a service's casts.
fn casts_queue(service: &Name) -> String {
    format!("syncline.{service}.casts")
}

/// The queue of a service's dead letters.
fn dead_queue(service: &Name) -> String {
    format!("syncline.{service}.dead")
}

#[async_trait]
impl Transport for AmqpTransport {
    fn describe(&self) -> String {
        self.link.place().to_owned()
    }

    fn abilities(&self) -> Abilities {
        Abilities { keeps_casts: true, serves: true }
    }

    async fn send(&self, route: &Route, parcel: Parcel) -> Result<(), MessagingError> {
        let session = self.link.session().await?;
        let (exchange, key, is_certain) = match route {
            Route::Call(service) => ("", calls_queue(service), true),
            Route::Cast(service) => (CASTS, service.to_string(), true),
            Route::Multi(service) => (MULTI, service.to_string(), true),
            Route::Event(topic) => (EVENTS, topic.to_string(), false),
            Route::Reply(address) => ("", receiving::reply_queue(address.instance), false),
        };
        let mut properties =
            BasicProperties::default().with_message_id(parcel.operation.to_string().into());
        if matches!(route, Route::Cast(_)) {
            properties = properties.with_delivery_mode(PERSISTENT);
        }
        if let Some(useful) = parcel.expires_in {
            properties = properties.with_expiration(useful.as_millis().max(1).to_string().into());
        }
        // Who is certain hears of every message; events and answers do not hold anybody up.
        if !is_certain {
            let options = BasicPublishOptions::default();
            let published = session
                .quick
                .basic_publish(exchange.into(), key.into(), options, &parcel.bytes, properties)
                .await;
            return published.map(drop).map_err(|error| self.link.lost(&session, &error));
        }
        let message = Message { exchange, key, bytes: &parcel.bytes, properties };
        let confirmation = tokio::select! {
            biased;
            confirmation = session.publish(message) => {
                confirmation.map_err(|error| self.link.lost(&session, &error))?
            }
            // Nobody confirms any more.
            () = session.given_up() => {
                return Err(self.link.unreachable("the connection was lost"));
            }
        };
        match confirmation {
            Confirmation::Ack(None) => Ok(()),
            Confirmation::Ack(Some(_)) | Confirmation::Nack(Some(_)) => {
                Err(MessagingError::NoReceiver { target: route.target() })
            }
            Confirmation::Nack(None) => Err(MessagingError::Full { target: route.target() }),
            Confirmation::NotRequested => Err(MessagingError::Unreachable {
                place: self.describe(),
                reason: "it does not confirm what it gets".to_owned(),
            }),
        }
    }

    async fn receive(
        &self,
        source: &Source,
        unsettled_max: usize,
    ) -> Result<Incoming, MessagingError> {
        receiving::receive(&self.link, source, unsettled_max.max(1)).await
    }

    async fn waiting(&self, service: &Name) -> Result<u64, MessagingError> {
        receiving::waiting(&self.link, service).await
    }
}
