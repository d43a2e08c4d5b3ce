//! The server's end: a door for devices onto a transport.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use axum::extract::ws::{WebSocket, WebSocketUpgrade};
use axum::response::Response;
use bytes::Bytes;
use futures_util::StreamExt;
use model::environment::random_bytes;
use model::{Clock, Random};
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

use super::frames::{FRAME_SIZE_MAX, SessionKey};
use super::ring::{Ring, Waking};
use crate::envelope::{Envelope, Kind};
use crate::error::MessagingError;
use crate::names::{InstanceId, Name};
use crate::transport::{Notice, Source, Transport, Verdict};

mod connection;

/// How long a device may be away before its session is forgotten.
const SESSION_KEPT: Duration = Duration::from_secs(60);

/// How often what nobody needs is looked for.
const CLEANING_EVERY: Duration = Duration::from_secs(30);

/// How many answers wait for one device at most.
const ANSWERS_WAITING_MAX: usize = 256;

/// How many answers may come to a gateway before it has handed them out.
const ANSWERS_COMING_MAX: usize = 4096;

/// How many events of a topic may come before they are in their ring.
const EVENTS_COMING_MAX: usize = 1024;

/// Says what the device at the other end of a connection may do.
#[async_trait]
pub trait Guard: Send + Sync {
    /// Says whether it may send a message of this kind and method to a service or topic.
    async fn may_send(&self, kind: Kind, target: &Name, method: &str) -> bool;

    /// Says whether it may listen to a topic.
    async fn may_listen(&self, topic: &Name) -> bool;
}

/// A door onto a transport. Clones are the same.
#[derive(Debug, Clone)]
pub struct Gateway {
    core: Arc<Core>,
    _tasks: Arc<Tasks>,
}

#[derive(Debug)]
struct Tasks(Vec<JoinHandle<()>>);

impl Drop for Tasks {
    fn drop(&mut self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}

#[derive(Debug)]
struct Core {
    transport: Arc<dyn Transport>,
    instance: InstanceId,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    next_channel: AtomicU64,
    sessions: Mutex<HashMap<u64, Arc<Session>>>,
    topics: tokio::sync::Mutex<HashMap<Name, Topic>>,
}

/// A device that is or was connected a short while ago.
#[derive(Debug)]
struct Session {
    channel: u64,
    /// What the device shows to go on with it.
    secret: [u8; 16],
    answers: Mutex<VecDeque<Bytes>>,
    has_answers: Notify,
    /// Whose turn it is: a device that connects again ends its connection before.
    turn: watch::Sender<u64>,
    left_at: Mutex<Option<Duration>>,
}

/// A topic that devices listen to, fed by one task.
#[derive(Debug)]
struct Topic {
    ring: Arc<Ring>,
    feeding: JoinHandle<()>,
}

impl Drop for Topic {
    fn drop(&mut self) {
        self.feeding.abort();
    }
}

impl Gateway {
    /// Opens a door onto a transport, inside of a Tokio runtime.
    ///
    /// # Errors
    /// [`MessagingError`], if the transport cannot be received from.
    pub async fn start(
        transport: Arc<dyn Transport>,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
    ) -> Result<Self, MessagingError> {
        let instance = InstanceId::random(&*random);
        let answers = transport.receive(&Source::Replies(instance), ANSWERS_COMING_MAX).await?;
        let core = Arc::new(Core {
            transport,
            instance,
            clock,
            random,
            next_channel: AtomicU64::new(1),
            sessions: Mutex::default(),
            topics: tokio::sync::Mutex::default(),
        });
        let handing_out = {
            let core = Arc::clone(&core);
            tokio::spawn(async move {
                let mut answers = answers;
                while let Some(notice) = answers.next().await {
                    core.hand_out(notice).await;
                }
            })
        };
        let cleaning = {
            let core = Arc::clone(&core);
            tokio::spawn(async move {
                loop {
                    core.clock.sleep(CLEANING_EVERY).await;
                    core.clean().await;
                }
            })
        };
        Ok(Self { core, _tasks: Arc::new(Tasks(vec![handing_out, cleaning])) })
    }

    /// Answers the request of a device to speak over a WebSocket. The door has set `TCP_NODELAY`: an answer that follows a
    /// receipt would wait 40 ms else.
    pub fn upgrade(&self, upgrade: WebSocketUpgrade, guard: Arc<dyn Guard>) -> Response {
        let gateway = self.clone();
        upgrade.max_message_size(FRAME_SIZE_MAX).max_frame_size(FRAME_SIZE_MAX).on_upgrade(
            async move |socket: WebSocket| {
                connection::serve(&gateway.core, socket, guard).await;
            },
        )
    }

    /// Returns how many devices are connected, or were a short while ago.
    pub fn sessions(&self) -> usize {
        self.core.sessions.lock().len()
    }
}

impl Core {
    async fn hand_out(&self, notice: Notice) {
        // Answers that were lost are asked for again by who misses them.
        let Notice::Delivery(delivery) = notice else { return };
        let channel = Envelope::decode(&delivery.bytes)
            .ok()
            .filter(|envelope| matches!(envelope.kind, Kind::Answer | Kind::Fault))
            .and_then(|envelope| envelope.reply_to)
            .map(|address| address.channel);
        let session = channel.and_then(|channel| self.sessions.lock().get(&channel).cloned());
        if let Some(session) = session {
            let mut answers = session.answers.lock();
            if answers.len() >= ANSWERS_WAITING_MAX {
                answers.pop_front();
            }
            answers.push_back(delivery.bytes.clone());
            drop(answers);
            session.has_answers.notify_one();
        }
        if let Err(error) = delivery.settle(Verdict::Done).await {
            tracing::debug!(%error, "an answer was not settled");
        }
    }

    /// Forgets sessions whose device did not come back, and topics that nobody listens to.
    async fn clean(&self) {
        let now = self.clock.elapsed();
        let is_kept = |session: &Arc<Session>| {
            session.left_at.lock().is_none_or(|left_at| left_at + SESSION_KEPT > now)
        };
        self.sessions.lock().retain(|_, session| is_kept(session));
        self.topics.lock().await.retain(|_, topic| topic.ring.has_listeners());
    }

    /// Returns the session that a key belongs to, or a new one.
    fn session(&self, key: Option<SessionKey>) -> Arc<Session> {
        let mut sessions = self.sessions.lock();
        let known = key.and_then(|key| {
            let session = sessions.get(&key.channel)?;
            // In the same time for every wrong secret.
            let pairs = session.secret.iter().zip(key.secret);
            let difference = pairs.fold(0, |all, (ours, theirs)| all | (ours ^ theirs));
            (difference == 0).then(|| Arc::clone(session))
        });
        known.unwrap_or_else(|| {
            let channel = self.next_channel.fetch_add(1, Ordering::Relaxed);
            let session = Session {
                secret: random_bytes(&*self.random),
                channel,
                answers: Mutex::default(),
                has_answers: Notify::new(),
                turn: watch::channel(0).0,
                left_at: Mutex::default(),
            };
            let session = Arc::new(session);
            sessions.insert(channel, Arc::clone(&session));
            session
        })
    }

    /// Returns the ring of a topic, and begins to feed it where nobody did, in both cases with `listener` to be woken.
    async fn ring(
        &self,
        topic: &Name,
        listener: &Arc<Waking>,
    ) -> Result<Arc<Ring>, MessagingError> {
        let mut topics = self.topics.lock().await;
        if let Some(topic) = topics.get(topic).filter(|topic| !topic.feeding.is_finished()) {
            topic.ring.wake(listener);
            return Ok(Arc::clone(&topic.ring));
        }
        let source = Source::Topic(topic.clone());
        let mut events = self.transport.receive(&source, EVENTS_COMING_MAX).await?;
        let new_epoch = |random: &dyn Random| u64::from_le_bytes(random_bytes(random));
        let ring = Arc::new(Ring::new(new_epoch(&*self.random)));
        ring.wake(listener);
        let (fed, random) = (Arc::clone(&ring), Arc::clone(&self.random));
        let feeding = tokio::spawn(async move {
            while let Some(notice) = events.next().await {
                let Notice::Delivery(delivery) = notice else {
                    fed.begin_again(new_epoch(&*random));
                    continue;
                };
                fed.push(delivery.bytes.clone());
                if let Err(error) = delivery.settle(Verdict::Done).await {
                    tracing::debug!(%error, "an event was not settled");
                }
            }
        });
        topics.insert(topic.clone(), Topic { ring: Arc::clone(&ring), feeding });
        Ok(ring)
    }
}
