//! The connection to the broker, made again whenever it is lost.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use lapin::options::ExchangeDeclareOptions;
use lapin::types::FieldTable;
use lapin::uri::AMQPUri;
use lapin::{Channel, Confirmation, Connection, ConnectionProperties, Event, ExchangeKind};
use model::Random;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::confirming::{Confirming, Message};
use super::{CASTS, EVENTS, MULTI};
use crate::error::MessagingError;
use crate::pauses::Pauses;

/// How long a sender waits for a connection before it is told that there is none.
const SESSION_PATIENCE: Duration = Duration::from_secs(1);

/// How long an attempt to connect may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The pauses between attempts to connect and to declare.
pub(super) const PAUSES: Pauses =
    Pauses { first: Duration::from_millis(50), longest: Duration::from_secs(3) };

/// The way to one broker.
#[derive(Debug)]
pub(super) struct Link {
    place: String,
    waiting_max: usize,
    random: Arc<dyn Random>,
    sessions: watch::Receiver<Option<Arc<Session>>>,
    last_failure: Arc<Mutex<String>>,
    connecting: JoinHandle<()>,
}

/// One connection, as long as it lasts.
#[derive(Debug)]
pub(super) struct Session {
    connection: Connection,
    /// Where every message is confirmed.
    certain: Confirming,
    /// Where none is.
    pub(super) quick: Channel,
    is_lost: watch::Sender<bool>,
}

impl Drop for Link {
    fn drop(&mut self) {
        self.connecting.abort();
    }
}

impl Link {
    pub(super) fn start(
        address: AMQPUri,
        waiting_max: usize,
        random: Arc<dyn Random>,
    ) -> Arc<Self> {
        let place = format!("broker {}:{}", address.authority.host, address.authority.port);
        let last_failure = Arc::new(Mutex::new("it was not connected to yet".to_owned()));
        let (sender, sessions) = watch::channel(None);
        let connecting = tokio::spawn(connect_always(
            address,
            place.clone(),
            Arc::clone(&random),
            Arc::clone(&last_failure),
            sender,
        ));
        Arc::new(Self { place, waiting_max, random, sessions, last_failure, connecting })
    }

    pub(super) fn place(&self) -> &str {
        &self.place
    }

    pub(super) fn waiting_max(&self) -> usize {
        self.waiting_max
    }

    pub(super) fn random(&self) -> &dyn Random {
        &*self.random
    }

    /// Returns the connection, or waits a little for it.
    pub(super) async fn session(&self) -> Result<Arc<Session>, MessagingError> {
        let mut sessions = self.sessions.clone();
        let is_there = |session: &Option<Arc<Session>>| {
            session.as_ref().is_some_and(|session| !*session.is_lost.borrow())
        };
        let waiting = sessions.wait_for(is_there);
        let found = tokio::time::timeout(SESSION_PATIENCE, waiting).await;
        match found {
            Ok(Ok(session)) => Ok(Arc::clone(session.as_ref().expect("it was waited for"))),
            _ => Err(self.unreachable(self.last_failure.lock().clone())),
        }
    }

    pub(super) fn unreachable(&self, reason: impl ToString) -> MessagingError {
        MessagingError::Unreachable { place: self.place.clone(), reason: reason.to_string() }
    }

    /// Gives up a session on which something failed, and returns what to tell about it.
    pub(super) fn lost(&self, session: &Session, error: &lapin::Error) -> MessagingError {
        session.give_up();
        self.unreachable(error)
    }
}

impl Session {
    async fn open(address: AMQPUri) -> Result<Self, lapin::Error> {
        let properties = ConnectionProperties::default().with_connection_name("syncline".into());
        let connection = Connection::connect_uri(address, properties).await?;
        let quick = connection.create_channel().await?;
        let options = ExchangeDeclareOptions { durable: true, ..ExchangeDeclareOptions::default() };
        for name in [CASTS, EVENTS, MULTI] {
            let arguments = FieldTable::default();
            quick.exchange_declare(name.into(), ExchangeKind::Direct, options, arguments).await?;
        }
        let certain = Confirming::default();
        Ok(Self { connection, certain, quick, is_lost: watch::channel(false).0 })
    }

    /// Publishes one message, and waits until the broker says what became of it.
    pub(super) async fn publish(&self, message: Message<'_>) -> Result<Confirmation, lapin::Error> {
        self.certain.publish(&self.connection, message).await
    }

    /// Opens another channel.
    pub(super) async fn channel(&self) -> Result<Channel, lapin::Error> {
        self.connection.create_channel().await
    }

    pub(super) fn give_up(&self) {
        self.is_lost.send_replace(true);
    }

    /// Gives it up unless only a channel of it has failed.
    pub(super) fn give_up_if_lost(&self) {
        if !self.connection.status().connected() {
            self.give_up();
        }
    }

    /// Waits until it is given up.
    pub(super) async fn given_up(&self) {
        // The sender lives as long as this.
        let _ = self.is_lost.subscribe().wait_for(|is_lost| *is_lost).await;
    }

    /// Waits until it is over.
    async fn over(&self) {
        let mut events = std::pin::pin!(self.connection.events_listener());
        loop {
            tokio::select! {
                () = self.given_up() => break,
                event = events.next() => match event {
                    // The end of a channel is told here too.
                    Some(Event::Error(error)) if !self.connection.status().connected() => {
                        tracing::debug!(%error, "a connection to a broker is lost");
                        break;
                    }
                    Some(_) => {}
                    None => break,
                },
            }
        }
        self.give_up();
    }
}

async fn connect_always(
    address: AMQPUri,
    place: String,
    random: Arc<dyn Random>,
    last_failure: Arc<Mutex<String>>,
    sender: watch::Sender<Option<Arc<Session>>>,
) {
    let mut failures = 0;
    loop {
        let opening = Session::open(address.clone());
        let reason = match tokio::time::timeout(CONNECT_TIMEOUT, opening).await {
            Ok(Ok(session)) => {
                failures = 0;
                let session = Arc::new(session);
                sender.send_replace(Some(Arc::clone(&session)));
                session.over().await;
                sender.send_replace(None);
                "the connection was lost".to_owned()
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => "it does not answer in time".to_owned(),
        };
        tracing::debug!(place, reason, failures, "connecting to a broker again");
        *last_failure.lock() = reason;
        failures += 1;
        tokio::time::sleep(PAUSES.after(failures, &*random)).await;
    }
}
