//! What JetStream keeps: casts and dead letters.

use std::sync::{Arc, Weak};
use std::time::Duration;

use async_nats::jetstream::AckKind;
use async_nats::jetstream::consumer::{AckPolicy, PullConsumer, pull};
use async_nats::jetstream::context::ConsumerInfoErrorKind;
use async_nats::jetstream::message::Acker;
use async_nats::jetstream::stream::{Config, DiscardPolicy, RetentionPolicy, StorageType};
use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};

use super::{Link, PAUSES, casts_subject, dead_subject};
use crate::error::MessagingError;
use crate::names::Name;
use crate::transport::{
    DEAD_LETTERS_MAX, Delivery, Incoming, Notice, Settlement, Source, Verdict, incoming,
};

/// After what silence of its receiver a message is given to another. Longer than the pause between signs of progress.
const ACKNOWLEDGE_WITHIN: Duration = Duration::from_secs(10);

/// For how long a stream knows a message again that is sent twice.
const DUPLICATES_KNOWN_FOR: Duration = Duration::from_secs(120);

/// How long one request for messages stands.
const PULL_EXPIRES: Duration = Duration::from_secs(20);

/// How many messages of a service may be out at all of its instances together.
const OUT_MAX: i64 = 10_000;

/// What all instances of a service take messages by.
const CONSUMER: &str = "instances";

pub(super) async fn receive(
    link: &Arc<Link>,
    source: &Source,
    unsettled_max: usize,
) -> Result<Incoming, MessagingError> {
    let unsettled_max = unsettled_max.min(Semaphore::MAX_PERMITS);
    let (sender, receiver) = mpsc::channel(unsettled_max);
    let (ready, is_ready) = oneshot::channel();
    let pump = Pump {
        link: Arc::downgrade(link),
        source: source.clone(),
        room: Arc::new(Semaphore::new(unsettled_max)),
        sender,
    };
    tokio::spawn(pump.run(ready));
    is_ready.await.map_err(|_| link.unreachable("the runtime ends"))??;
    Ok(incoming(receiver))
}

/// Asks the server how many casts to a service wait.
pub(super) async fn waiting(link: &Link, service: &Name) -> Result<u64, MessagingError> {
    let name = stream_name("casts", service);
    let stream = link.stream.get_stream_no_info(name).await;
    let stream = stream.map_err(|error| link.unreachable(error))?;
    match stream.consumer_info(CONSUMER).await {
        Ok(info) => Ok(info.num_pending),
        Err(error) => match error.kind() {
            ConsumerInfoErrorKind::NotFound | ConsumerInfoErrorKind::StreamNotFound => {
                Err(MessagingError::NoReceiver { target: service.to_string() })
            }
            _ => Err(link.unreachable(error)),
        },
    }
}

struct Pump {
    link: Weak<Link>,
    source: Source,
    room: Arc<Semaphore>,
    sender: mpsc::Sender<Notice>,
}

impl Pump {
    /// Receives until nobody wants it any more. Says once whether it has begun.
    async fn run(self, ready: oneshot::Sender<Result<(), MessagingError>>) {
        let (mut ready, mut failures) = (Some(ready), 0);
        loop {
            let Some(link) = self.link.upgrade() else { return };
            let mut connections = link.connections.clone();
            connections.mark_unchanged();
            match self.begin(&link).await {
                Ok(consumer) => {
                    failures = 0;
                    if ready.take().is_some_and(|ready| ready.send(Ok(())).is_err()) {
                        return;
                    }
                    drop(link);
                    if self.hand_on(&consumer, &mut connections).await.is_none() {
                        return;
                    }
                }
                Err(error) => {
                    if let Some(ready) = ready.take() {
                        // Who asked may have gone away, and that is the end too.
                        let _ = ready.send(Err(error));
                        return;
                    }
                    tracing::debug!(source = ?self.source, %error, "receiving again");
                    failures += 1;
                    let pause = PAUSES.after(failures, &*link.random);
                    drop(link);
                    tokio::select! {
                        () = self.sender.closed() => return,
                        () = tokio::time::sleep(pause) => {}
                    }
                }
            }
        }
    }

    async fn begin(&self, link: &Link) -> Result<PullConsumer, MessagingError> {
        let failed = |error: async_nats::Error| link.unreachable(error);
        let (service, is_dead) = match &self.source {
            Source::DeadLetters(service) => (service, true),
            Source::Casts(service) => (service, false),
            other => panic!("{other:?} does not come from a stream"),
        };
        // Whatever is received of a service, its dead letters have a place.
        let dead = stream_of_dead_letters(service);
        let mut stream =
            link.stream.get_or_create_stream(dead).await.map_err(|error| failed(error.into()))?;
        if !is_dead {
            let casts = stream_of_casts(service, link.waiting_max);
            let made = link.stream.get_or_create_stream(casts).await;
            stream = made.map_err(|error| failed(error.into()))?;
        }
        let consumer = pull::Config {
            durable_name: Some(CONSUMER.to_owned()),
            ack_policy: AckPolicy::Explicit,
            ack_wait: ACKNOWLEDGE_WITHIN,
            // How often a message comes is counted by the receivers, which put it to the dead letters.
            max_deliver: -1,
            max_ack_pending: OUT_MAX,
            ..pull::Config::default()
        };
        let made = stream.get_or_create_consumer(CONSUMER, consumer).await;
        made.map_err(|error| failed(error.into()))
    }

    /// Hands messages on, never more at once than there is room for. `None` when nobody wants them any more; otherwise the stream
    /// is to be looked for again: a server forgets requests when it starts again, may have lost the stream, and does not say so.
    async fn hand_on(
        &self,
        consumer: &PullConsumer,
        connections: &mut watch::Receiver<u64>,
    ) -> Option<()> {
        loop {
            let first = tokio::select! {
                biased;
                () = self.sender.closed() => return None,
                permit = Arc::clone(&self.room).acquire_owned() => permit.ok()?,
            };
            let mut permits = vec![first];
            while let Ok(permit) = Arc::clone(&self.room).try_acquire_owned() {
                permits.push(permit);
            }
            let asked = consumer.batch().max_messages(permits.len()).expires(PULL_EXPIRES);
            let Ok(mut batch) = asked.messages().await else { return Some(()) };
            while let Some(permit) = permits.pop() {
                let message = tokio::select! {
                    biased;
                    () = self.sender.closed() => return None,
                    message = batch.next() => message,
                    _ = connections.changed() => return Some(()),
                };
                let message = match message {
                    Some(Ok(message)) => message,
                    Some(Err(error)) => {
                        tracing::debug!(source = ?self.source, %error, "a request for messages failed");
                        return Some(());
                    }
                    // The request is over, and there was less than there is room for.
                    None => return Some(()),
                };
                let delivered = message.info().map_or(1, |info| info.delivered);
                let attempt = u32::try_from(delivered).unwrap_or(u32::MAX);
                let (message, acker) = message.split();
                let bytes = message.payload;
                let settlement = self.settlement(bytes.clone(), acker, permit)?;
                let settlement: Option<Box<dyn Settlement>> = Some(Box::new(settlement));
                let notice = Notice::Delivery(Delivery { bytes, attempt, settlement });
                self.sender.send(notice).await.ok()?;
            }
        }
    }

    fn settlement(
        &self,
        bytes: Bytes,
        acker: Acker,
        room: OwnedSemaphorePermit,
    ) -> Option<Unsettled> {
        let link = self.link.upgrade()?;
        let dead = match &self.source {
            Source::Casts(service) => dead_subject(service),
            _ => String::new(),
        };
        Some(Unsettled { acker: Some(acker), bytes, dead, link, _room: room })
    }
}

/// A delivery that the stream waits to hear of.
struct Unsettled {
    acker: Option<Acker>,
    bytes: Bytes,
    /// Where it goes when it is dead; nowhere for what is dead already.
    dead: String,
    link: Arc<Link>,
    _room: OwnedSemaphorePermit,
}

#[async_trait]
impl Settlement for Unsettled {
    async fn settle(mut self: Box<Self>, verdict: Verdict) -> Result<(), MessagingError> {
        let failed = |error: async_nats::Error| self.link.unreachable(error);
        if let Verdict::Dead(reason) = &verdict
            && !self.dead.is_empty()
        {
            tracing::warn!(reason, "a message goes to the dead letters");
            let (subject, bytes) = (self.dead.clone(), self.bytes.clone());
            let kept = self.link.stream.publish(subject, bytes).await;
            kept.map_err(|error| failed(error.into()))?
                .await
                .map_err(|error| failed(error.into()))?;
        }
        let acker = self.acker.take().expect("it is settled once");
        let settled = match verdict {
            Verdict::Again => acker.ack_with(AckKind::Nak(None)).await,
            Verdict::Done | Verdict::Dead(_) => {
                match tokio::time::timeout(super::REQUEST_TIMEOUT, acker.double_ack()).await {
                    Ok(settled) => settled,
                    Err(_) => return Err(self.link.unreachable("it does not confirm")),
                }
            }
        };
        settled.map_err(failed)
    }

    async fn keep(&self) {
        if let Some(acker) = &self.acker
            && let Err(error) = acker.ack_with(AckKind::Progress).await
        {
            tracing::debug!(%error, "the broker does not hear of progress");
        }
    }
}

impl Drop for Unsettled {
    fn drop(&mut self) {
        let Some(acker) = self.acker.take() else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let link = Arc::clone(&self.link);
        runtime.spawn(async move {
            // Where it fails, the stream gives the message to another after a while.
            let _ = acker.ack_with(AckKind::Nak(None)).await;
            drop(link);
        });
    }
}

/// Names of streams must not have dots in them.
fn stream_name(start: &str, service: &Name) -> String {
    format!("syncline-{start}-{}", service.as_str().replace('.', "="))
}

fn stream_of_casts(service: &Name, waiting_max: usize) -> Config {
    Config {
        max_messages: i64::try_from(waiting_max).unwrap_or(i64::MAX),
        discard: DiscardPolicy::New,
        duplicate_window: DUPLICATES_KNOWN_FOR,
        ..kept(stream_name("casts", service), casts_subject(service))
    }
}

fn stream_of_dead_letters(service: &Name) -> Config {
    Config {
        max_messages: i64::try_from(DEAD_LETTERS_MAX).unwrap_or(i64::MAX),
        discard: DiscardPolicy::Old,
        ..kept(stream_name("dead", service), dead_subject(service))
    }
}

/// A stream on the disk, whose messages go when they are acknowledged.
fn kept(name: String, subject: String) -> Config {
    Config {
        name,
        subjects: vec![subject],
        retention: RetentionPolicy::WorkQueue,
        storage: StorageType::File,
        ..Config::default()
    }
}
