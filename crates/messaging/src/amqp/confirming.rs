//! Messages of which each hears what became of it, and of no other.

use lapin::options::{BasicPublishOptions, ConfirmSelectOptions};
use lapin::{BasicProperties, Channel, Confirmation, Connection};
use parking_lot::Mutex;
use tokio::sync::Semaphore;

/// How many messages wait for their confirmation at once; others wait for these.
const UNCONFIRMED_MAX: usize = 64;

/// What is published.
pub(super) struct Message<'message> {
    pub(super) exchange: &'message str,
    pub(super) key: String,
    pub(super) bytes: &'message [u8],
    pub(super) properties: BasicProperties,
}

/// Channels that confirm, each with one message under way at most.
///
/// On one channel with many, an answer can be taken for another's: lapin 4.12 counts a message before it is in the queue to
/// the broker, so that two threads may count in one order and send in the other; and it gives a message that came back to
/// whichever confirmation it works on next. Where one of two is refused, its sender would be told that it is kept.
#[derive(Debug)]
pub(super) struct Confirming {
    room: Semaphore,
    idle: Mutex<Vec<Channel>>,
}

impl Default for Confirming {
    fn default() -> Self {
        Self { room: Semaphore::new(UNCONFIRMED_MAX), idle: Mutex::default() }
    }
}

impl Confirming {
    /// Publishes one message, and waits until the broker says what became of it.
    pub(super) async fn publish(
        &self,
        connection: &Connection,
        message: Message<'_>,
    ) -> Result<Confirmation, lapin::Error> {
        let _room = self.room.acquire().await.expect("it is never closed");
        // Who is dropped while it waits takes its channel along: an answer to come belongs to nobody else.
        let idle = self.idle.lock().pop();
        let channel = match idle {
            Some(channel) => channel,
            None => {
                let channel = connection.create_channel().await?;
                channel.confirm_select(ConfirmSelectOptions::default()).await?;
                channel
            }
        };
        let Message { exchange, key, bytes, properties } = message;
        let options = BasicPublishOptions { mandatory: true, immediate: false };
        let published =
            channel.basic_publish(exchange.into(), key.into(), options, bytes, properties).await?;
        let confirmation = published.await?;
        self.idle.lock().push(channel);
        Ok(confirmation)
    }
}
