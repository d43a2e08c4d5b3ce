//! Queues declared and consumed, again after every lost connection.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt;
use lapin::options::{
    BasicAckOptions, BasicConsumeOptions, BasicNackOptions, BasicQosOptions, BasicRejectOptions,
    ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions,
};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{Acker, Channel, Consumer, ExchangeKind};
use tokio::sync::{mpsc, oneshot};

use super::link::{Link, PAUSES, Session};
use super::{CASTS, EVENTS, MULTI, calls_queue, casts_queue, dead_queue};
use crate::error::MessagingError;
use crate::names::{InstanceId, Name};
use crate::transport::{
    DEAD_LETTERS_MAX, Delivery, Incoming, Notice, Settlement, Source, Verdict, incoming,
};

/// How often the broker itself delivers a cast at most; services allow less.
const DELIVERIES_MAX: i32 = 50;

/// After what time without anybody a queue of calls is removed, in milliseconds.
const CALLS_UNUSED_MS: i32 = 24 * 3600 * 1000;

/// How long the declaration of a queue may take: after a crash a broker needs a while.
const BEGIN_TIMEOUT: Duration = Duration::from_secs(10);

/// How old a new queue is before it takes casts.
const SETTLING: Duration = Duration::from_secs(1);

/// The queue of answers to an instance.
pub(super) fn reply_queue(instance: InstanceId) -> String {
    format!("syncline.reply.{instance}")
}

pub(super) async fn receive(
    link: &Arc<Link>,
    source: &Source,
    unsettled_max: usize,
) -> Result<Incoming, MessagingError> {
    // No more than one waits between the broker's bound and the receiver.
    let (sender, receiver) = mpsc::channel(1);
    let (ready, is_ready) = oneshot::channel();
    let pump = Pump {
        link: Arc::downgrade(link),
        source: source.clone(),
        unsettled_max: u16::try_from(unsettled_max).unwrap_or(u16::MAX),
        sender,
    };
    tokio::spawn(pump.run(ready));
    let ended = || link.unreachable("the runtime ends");
    is_ready.await.map_err(|_| ended())??;
    Ok(incoming(receiver))
}

/// Asks the broker how many casts to a service wait.
pub(super) async fn waiting(link: &Link, service: &Name) -> Result<u64, MessagingError> {
    let session = link.session().await?;
    let asking = async {
        // A question whose answer is no costs the channel.
        let channel = session.channel().await?;
        let options = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
        let queue = casts_queue(service);
        channel.queue_declare(queue.into(), options, FieldTable::default()).await
    };
    let asked = tokio::select! {
        asked = asking => asked,
        () = session.given_up() => return Err(link.unreachable("the connection was lost")),
        () = tokio::time::sleep(BEGIN_TIMEOUT) => {
            return Err(link.unreachable("it does not answer in time"));
        }
    };
    match asked {
        Ok(queue) => Ok(u64::from(queue.message_count())),
        Err(error) if error.is_amqp_soft_error() => {
            Err(MessagingError::NoReceiver { target: service.to_string() })
        }
        Err(error) => {
            session.give_up_if_lost();
            Err(link.unreachable(error))
        }
    }
}

struct Pump {
    link: std::sync::Weak<Link>,
    source: Source,
    unsettled_max: u16,
    sender: mpsc::Sender<Notice>,
}

impl Pump {
    /// Receives until nobody wants it any more. Says once whether it has begun.
    async fn run(self, ready: oneshot::Sender<Result<(), MessagingError>>) {
        let (mut ready, mut failures) = (Some(ready), 0);
        loop {
            let Some(link) = self.link.upgrade() else { return };
            let begun = self.begin(&link).await;
            let random = |failures| PAUSES.after(failures, link.random());
            match begun {
                Ok((channel, consumer)) => {
                    failures = 0;
                    drop(link);
                    let is_wanted = match ready.take() {
                        Some(ready) => ready.send(Ok(())).is_ok(),
                        None => self.sender.send(Notice::Gap).await.is_ok(),
                    };
                    if !is_wanted {
                        return;
                    }
                    if self.hand_on(channel, consumer).await.is_none() {
                        return;
                    }
                }
                Err(error) => {
                    failures += 1;
                    let pause = random(failures);
                    drop(link);
                    if let Some(ready) = ready.take() {
                        // Who asked may have gone away, and that is the end too.
                        let _ = ready.send(Err(error));
                        return;
                    }
                    tracing::debug!(source = ?self.source, %error, "receiving again");
                    tokio::select! {
                        () = self.sender.closed() => return,
                        () = tokio::time::sleep(pause) => {}
                    }
                }
            }
        }
    }

    async fn begin(&self, link: &Link) -> Result<(Channel, Consumer), MessagingError> {
        let session = link.session().await?;
        let begin = async {
            let channel = session.channel().await?;
            let queue = self.declare(&session, &channel, link.waiting_max()).await?;
            channel.basic_qos(self.unsettled_max, BasicQosOptions::default()).await?;
            // Answers are handed out at once, and whoever misses one asks again.
            let no_ack = matches!(self.source, Source::Replies(_));
            let options = BasicConsumeOptions { no_ack, ..BasicConsumeOptions::default() };
            let consumer =
                channel.basic_consume(queue.into(), "".into(), options, FieldTable::default());
            Ok((channel.clone(), consumer.await?))
        };
        tokio::select! {
            // A channel that failed is closed; the connection may be well.
            begun = begin => begun.map_err(|error: lapin::Error| {
                session.give_up_if_lost();
                link.unreachable(error)
            }),
            () = session.given_up() => Err(link.unreachable("the connection was lost")),
            () = tokio::time::sleep(BEGIN_TIMEOUT) => {
                Err(link.unreachable("its queues are not there in time"))
            }
        }
    }

    async fn declare(
        &self,
        session: &Session,
        channel: &Channel,
        waiting_max: usize,
    ) -> Result<String, lapin::Error> {
        let bound = i32::try_from(waiting_max).unwrap_or(i32::MAX);
        match &self.source {
            Source::Calls(service) => {
                let mut arguments = limits(bound, "reject-publish");
                arguments.insert("x-expires".into(), AMQPValue::LongInt(CALLS_UNUSED_MS));
                keep(channel, calls_queue(service), arguments).await
            }
            Source::Casts(service) => declare_casts(session, channel, service, bound).await,
            Source::DeadLetters(service) => keep_dead_letters(channel, service).await,
            Source::Multi(service) => {
                let queue = own(channel, "", limits(bound, "drop-head")).await?;
                bind(channel, queue, MULTI, service).await
            }
            Source::Topic(topic) => {
                let bound = i32::from(self.unsettled_max).min(bound);
                let queue = own(channel, "", limits(bound, "drop-head")).await?;
                bind(channel, queue, EVENTS, topic).await
            }
            Source::Replies(instance) => {
                own(channel, &reply_queue(*instance), limits(bound, "drop-head")).await
            }
        }
    }

    /// Hands deliveries on until the channel breaks. `None` when nobody wants them any more.
    async fn hand_on(&self, channel: Channel, mut consumer: Consumer) -> Option<()> {
        let is_settled = !matches!(self.source, Source::Replies(_));
        loop {
            let delivery = tokio::select! {
                biased;
                () = self.sender.closed() => return None,
                delivery = consumer.next() => delivery,
            };
            let Some(Ok(delivery)) = delivery else { return Some(()) };
            let attempt = attempt_of(&delivery);
            let settlement = is_settled.then(|| -> Box<dyn Settlement> {
                let acker = Some(delivery.acker);
                Box::new(Unsettled { acker, channel: channel.clone() })
            });
            let bytes = delivery.data.into();
            let notice = Notice::Delivery(Delivery { bytes, attempt, settlement });
            self.sender.send(notice).await.ok()?;
        }
    }
}

/// Declares the queue of casts, and lets casts into it once the broker would know it again after a crash.
///
/// RabbitMQ writes down half a second after it made a quorum queue where its data is; killed before, it starts with an
/// empty one. So a new queue takes nothing until it is old enough, and an exchange that nothing is sent to says that it is.
async fn declare_casts(
    session: &Session,
    channel: &Channel,
    service: &Name,
    bound: i32,
) -> Result<String, lapin::Error> {
    let dead = keep_dead_letters(channel, service).await?;
    let mut arguments = limits(bound, "reject-publish");
    for (name, value) in [
        ("x-queue-type", "quorum"),
        ("x-dead-letter-exchange", ""),
        ("x-dead-letter-routing-key", dead.as_str()),
        ("x-dead-letter-strategy", "at-least-once"),
    ] {
        arguments.insert(name.into(), AMQPValue::LongString(value.into()));
    }
    arguments.insert("x-delivery-limit".into(), AMQPValue::LongInt(DELIVERIES_MAX));
    let queue = keep(channel, casts_queue(service), arguments).await?;
    let sign = format!("syncline.{service}.settled");
    let declare_sign = async |channel: &Channel, passive: bool| {
        let options =
            ExchangeDeclareOptions { passive, durable: true, ..ExchangeDeclareOptions::default() };
        let arguments = FieldTable::default();
        channel
            .exchange_declare(sign.as_str().into(), ExchangeKind::Fanout, options, arguments)
            .await
    };
    // A question whose answer is no costs the channel.
    let asking = session.channel().await?;
    if declare_sign(&asking, true).await.is_err() {
        tokio::time::sleep(SETTLING).await;
    }
    bind(channel, queue.clone(), CASTS, service).await?;
    declare_sign(channel, false).await?;
    Ok(queue)
}

/// A delivery that the broker waits to hear of. It keeps its channel open.
struct Unsettled {
    acker: Option<Acker>,
    channel: Channel,
}

#[async_trait]
impl Settlement for Unsettled {
    async fn settle(mut self: Box<Self>, verdict: Verdict) -> Result<(), MessagingError> {
        let acker = self.acker.take().expect("it is settled once");
        let settled = match verdict {
            Verdict::Done => acker.ack(BasicAckOptions::default()).await,
            Verdict::Again => {
                acker.nack(BasicNackOptions { requeue: true, ..BasicNackOptions::default() }).await
            }
            Verdict::Dead(reason) => {
                tracing::warn!(reason, "a message goes to the dead letters");
                acker.reject(BasicRejectOptions { requeue: false }).await
            }
        };
        settled.map(drop).map_err(|error| MessagingError::Unreachable {
            place: "the broker".to_owned(),
            reason: error.to_string(),
        })
    }
}

impl Drop for Unsettled {
    fn drop(&mut self) {
        let Some(acker) = self.acker.take() else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let channel = self.channel.clone();
        runtime.spawn(async move {
            // Where it fails the channel is gone, and with it the message is free.
            let _ = acker.nack(BasicNackOptions { requeue: true, ..Default::default() }).await;
            drop(channel);
        });
    }
}

/// Returns how often this came, counting this time.
fn attempt_of(delivery: &lapin::message::Delivery) -> u32 {
    let headers = delivery.properties.headers().as_ref();
    let count = headers.and_then(|headers| headers.inner().get("x-delivery-count"));
    let before = match count {
        Some(AMQPValue::LongLongInt(count)) => u32::try_from(*count).unwrap_or_default(),
        Some(AMQPValue::LongInt(count)) => u32::try_from(*count).unwrap_or_default(),
        _ => u32::from(delivery.redelivered),
    };
    before.saturating_add(1)
}

fn limits(length: i32, overflow: &str) -> FieldTable {
    let mut arguments = FieldTable::default();
    arguments.insert("x-max-length".into(), AMQPValue::LongInt(length));
    arguments.insert("x-overflow".into(), AMQPValue::LongString(overflow.into()));
    arguments
}

/// Declares a queue that outlives us and the broker.
async fn keep(
    channel: &Channel,
    name: String,
    arguments: FieldTable,
) -> Result<String, lapin::Error> {
    let options = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
    channel.queue_declare(name.as_str().into(), options, arguments).await?;
    Ok(name)
}

async fn keep_dead_letters(channel: &Channel, service: &Name) -> Result<String, lapin::Error> {
    let bound = i32::try_from(DEAD_LETTERS_MAX).expect("it is a small number");
    let mut arguments = limits(bound, "drop-head");
    arguments.insert("x-queue-type".into(), AMQPValue::LongString("quorum".into()));
    keep(channel, dead_queue(service), arguments).await
}

/// Declares a queue that ends with our connection; without a name the broker gives it one.
async fn own(channel: &Channel, name: &str, arguments: FieldTable) -> Result<String, lapin::Error> {
    let options = QueueDeclareOptions { exclusive: true, auto_delete: true, ..Default::default() };
    let queue = channel.queue_declare(name.into(), options, arguments).await?;
    Ok(queue.name().to_string())
}

async fn bind(
    channel: &Channel,
    queue: String,
    exchange: &str,
    key: &Name,
) -> Result<String, lapin::Error> {
    let (options, arguments) = (QueueBindOptions::default(), FieldTable::default());
    let bound = channel.queue_bind(
        queue.as_str().into(),
        exchange.into(),
        key.as_str().into(),
        options,
        arguments,
    );
    bound.await?;
    Ok(queue)
}
