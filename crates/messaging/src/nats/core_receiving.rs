//! What comes through the core of NATS: it is there or lost.

use std::sync::Arc;

use async_nats::{Message, Subscriber};
use futures_util::StreamExt;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use super::{Link, NO_ROOM, TAKEN, calls_subject, multi_subject, reply_subject, topic_subject};
use crate::error::MessagingError;
use crate::transport::{Delivery, Incoming, Notice, Source, incoming};

pub(super) async fn receive(
    link: &Arc<Link>,
    source: &Source,
    unsettled_max: usize,
) -> Result<Incoming, MessagingError> {
    let client = &link.client;
    let (subscribed, room) = match source {
        Source::Calls(service) => {
            let subject = calls_subject(service);
            (client.queue_subscribe(subject, "instances".to_owned()).await, unsettled_max)
        }
        Source::Multi(service) => {
            (client.subscribe(multi_subject(service)).await, link.waiting_max)
        }
        Source::Topic(topic) => (client.subscribe(topic_subject(topic)).await, unsettled_max),
        Source::Replies(instance) => {
            (client.subscribe(reply_subject(*instance)).await, link.waiting_max)
        }
        Source::Casts(_) | Source::DeadLetters(_) => {
            return Err(MessagingError::Unsupported {
                transport: link.place.clone(),
                what: "keep messages in its core",
            });
        }
    };
    let subscriber = subscribed.map_err(|error| link.unreachable(error))?;
    // Only when the server has answered after it, the subscription counts.
    let flushed = tokio::time::timeout(super::REQUEST_TIMEOUT, client.flush()).await;
    flushed
        .map_err(|_| link.unreachable("it does not answer"))?
        .map_err(|error| link.unreachable(error))?;
    let (sender, receiver) = mpsc::channel(room);
    let pump = Pump {
        link: Arc::clone(link),
        sender,
        // Only who waits for a message to be taken gets to hear it.
        refuses: matches!(source, Source::Calls(_) | Source::Multi(_)),
        has_lost: false,
    };
    tokio::spawn(pump.run(subscriber));
    Ok(incoming(receiver))
}

struct Pump {
    link: Arc<Link>,
    sender: mpsc::Sender<Notice>,
    refuses: bool,
    has_lost: bool,
}

impl Pump {
    /// Hands on what comes and never waits for the receiver, so that nothing piles up before it.
    async fn run(mut self, mut subscriber: Subscriber) {
        let mut connections = self.link.connections.clone();
        connections.mark_unchanged();
        loop {
            tokio::select! {
                biased;
                () = self.sender.closed() => break,
                changed = connections.changed() => match changed {
                    Ok(()) => self.has_lost = true,
                    Err(_) => break,
                },
                message = subscriber.next() => match message {
                    Some(message) => self.take(message).await,
                    None => break,
                },
            }
            if self.has_lost && !self.refuses && self.sender.try_send(Notice::Gap).is_ok() {
                self.has_lost = false;
            }
        }
        // What is on its way to us goes to another, where there is one.
        if let Err(error) = subscriber.unsubscribe().await {
            tracing::debug!(%error, "a subscription was not ended");
        }
    }

    async fn take(&mut self, message: Message) {
        // In order: who has lost something hears of it before what follows.
        if self.has_lost && !self.refuses {
            match self.sender.try_send(Notice::Gap) {
                Ok(()) => self.has_lost = false,
                Err(_) => return,
            }
        }
        let bytes = message.payload;
        let delivery = Delivery { bytes, attempt: 1, settlement: None };
        let said = match self.sender.try_send(Notice::Delivery(delivery)) {
            Ok(()) => TAKEN,
            Err(TrySendError::Full(_) | TrySendError::Closed(_)) => {
                self.has_lost = true;
                NO_ROOM
            }
        };
        let Some(reply) = message.reply.filter(|_| self.refuses) else { return };
        if let Err(error) = self.link.client.publish(reply, said.into()).await {
            tracing::debug!(%error, "it was not said that a message was taken");
        }
    }
}
