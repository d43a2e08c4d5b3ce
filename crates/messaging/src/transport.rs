//! What a transport does: it carries bytes along five routes, and says what became of them.
//!
//! *Participants*: the messenger, which makes the four calls out of this; one implementation for each medium. *Goals*: an
//! implementation knows nothing of envelopes, deadlines or results, so that their rules exist once. *Invariants*: a cast
//! whose `send` has returned is not lost while one broker's data lives, where the transport says that it is durable; what
//! was delivered and not settled is delivered again; everything that waits is bounded, and who finds no room is told.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;

use crate::error::MessagingError;
use crate::names::{InstanceId, Name, OperationId, ReplyAddress};

/// How many messages may wait for a service at most.
pub const WAITING_MAX: usize = 10_000;

/// How many dead letters of a service are kept at most; the oldest go first.
pub const DEAD_LETTERS_MAX: usize = 1_000;

/// Where a message goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route {
    /// To one of a service, now: it may be lost, because somebody waits and asks again.
    Call(Name),
    /// To one of a service, some time: it is kept until it is done.
    Cast(Name),
    /// To all of a service that run now.
    Multi(Name),
    /// To all who listen to a topic now.
    Event(Name),
    /// To one who waits for an answer.
    Reply(ReplyAddress),
}

impl Route {
    /// Returns what a person calls the end of the route.
    pub fn target(&self) -> String {
        match self {
            Self::Call(name) | Self::Cast(name) | Self::Multi(name) | Self::Event(name) => {
                name.to_string()
            }
            Self::Reply(address) => format!("instance {}", address.instance),
        }
    }
}

/// Where messages come from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Source {
    /// What is called of a service; shared with the others of the service.
    Calls(Name),
    /// What is cast to a service; shared with the others of the service.
    Casts(Name),
    /// What goes to all of a service.
    Multi(Name),
    /// The events of a topic.
    Topic(Name),
    /// The answers to an instance.
    Replies(InstanceId),
    /// What nobody of a service could do.
    DeadLetters(Name),
}

/// A message on its way.
#[derive(Debug, Clone)]
pub struct Parcel {
    /// The envelope.
    pub bytes: Bytes,
    /// What the message is about. A transport may use it to drop what was sent twice.
    pub operation: OperationId,
    /// How long the message is of use.
    pub expires_in: Option<Duration>,
}

/// What a transport can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Abilities {
    /// A cast survives the restart of everything but the broker's disk.
    pub keeps_casts: bool,
    /// Services can be served from this end.
    pub serves: bool,
}

/// What comes out of a [`Source`].
pub type Incoming = BoxStream<'static, Notice>;

/// Gives out what a task sends that receives; ends with it.
#[cfg(any(feature = "amqp", feature = "nats", feature = "websocket"))]
pub(crate) fn incoming(receiver: tokio::sync::mpsc::Receiver<Notice>) -> Incoming {
    use futures_util::stream::{StreamExt, unfold};
    let stream = unfold(receiver, |mut receiver| async move {
        let notice = receiver.recv().await?;
        Some((notice, receiver))
    });
    stream.boxed()
}

/// One thing that comes.
#[derive(Debug)]
pub enum Notice {
    /// A message.
    Delivery(Delivery),
    /// Messages may have been lost here: there was no connection, or no room.
    Gap,
}

/// A message that has come. Dropping it unsettled gives it back.
pub struct Delivery {
    /// The envelope.
    pub bytes: Bytes,
    /// How often it was delivered before, plus one, as far as the transport knows.
    pub attempt: u32,
    /// Tells the transport what became of it. `None` where the transport does not ask.
    pub settlement: Option<Box<dyn Settlement>>,
}

impl Delivery {
    /// Tells the transport what became of the message.
    ///
    /// # Errors
    /// What the transport says; the message may then be delivered again.
    pub async fn settle(self, verdict: Verdict) -> Result<(), MessagingError> {
        match self.settlement {
            Some(settlement) => settlement.settle(verdict).await,
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Delivery {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Delivery")
            .field("bytes", &self.bytes.len())
            .field("attempt", &self.attempt)
            .finish_non_exhaustive()
    }
}

/// What became of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It is done and over.
    Done,
    /// It is to be delivered again.
    Again,
    /// It will never be done: to the dead letters, with the reason.
    Dead(String),
}

/// The way back for a verdict.
#[async_trait]
pub trait Settlement: Send + Sync {
    /// Tells the transport.
    async fn settle(self: Box<Self>, verdict: Verdict) -> Result<(), MessagingError>;

    /// Tells the transport that the work is still going on; called every [`PROGRESS_EVERY`].
    async fn keep(&self) {}
}

/// How often a transport hears that a long piece of work goes on.
pub const PROGRESS_EVERY: Duration = Duration::from_secs(1);

/// A medium that carries messages.
#[async_trait]
pub trait Transport: fmt::Debug + Send + Sync {
    /// Returns what a person calls it.
    fn describe(&self) -> String;

    /// Returns what it can do.
    fn abilities(&self) -> Abilities;

    /// Sends a message. For a cast it returns once the message is safe; it does not wait for room.
    ///
    /// # Errors
    /// [`MessagingError::NoReceiver`] if the service was never served, [`MessagingError::Full`],
    /// [`MessagingError::Unreachable`]; after the last it is not known whether the message was sent.
    async fn send(&self, route: &Route, parcel: Parcel) -> Result<(), MessagingError>;

    /// Begins to receive; at most `unsettled_max` deliveries are out at once. It goes on over lost connections until the
    /// stream is dropped.
    ///
    /// # Errors
    /// Where the source cannot be received from at all, or not be reached now.
    async fn receive(
        &self,
        source: &Source,
        unsettled_max: usize,
    ) -> Result<Incoming, MessagingError>;

    /// Returns how many casts to a service wait for one of its instances. Those that an instance has in its hands do not count.
    ///
    /// # Errors
    /// [`MessagingError::NoReceiver`] if the service was never served, [`MessagingError::Unreachable`], and
    /// [`MessagingError::Unsupported`] where nobody can tell.
    async fn waiting(&self, service: &Name) -> Result<u64, MessagingError>;
}
