//! One program's end of the message calls.
//!
//! *Participants*: callers, who wait; a task that reads answers; workers for the services it serves and the topics it listens to;
//! one [`Transport`]. *Goals*: timeouts, retries, deadlines, gathering and exactly-once effect are here, once for all
//! transports. *Invariants*: every call ends by its deadline; what waits is bounded; work whose deadline has passed is not
//! begun; a delivery is settled only after the work was done and its answer was sent.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use model::{Clock, Random};
use tokio::sync::{Mutex, Semaphore};
use tokio::task::JoinHandle;

use crate::body::{Encoding, PackedBody};
use crate::calls::{Answer, CallOptions, Calls, CastOptions, Gathered, MultiOptions, Request};
use crate::envelope::{Envelope, Kind};
use crate::error::MessagingError;
use crate::names::{InstanceId, Name, OperationId, ReplyAddress};
use crate::pauses::Pauses;
use crate::transport::{Parcel, Route, Source, Transport};
use waiting::Waiting;

mod listening;
mod serving;
mod waiting;

pub use serving::{ServeOptions, Serving};

/// The pauses between attempts to send.
const PAUSES: Pauses = Pauses { first: Duration::from_millis(4), longest: Duration::from_secs(1) };

/// How long a transport may take for a message before it is given the message again.
const SEND_PATIENCE: Duration = Duration::from_secs(5);

/// How long an event is tried to be sent.
const EVENT_PATIENCE: Duration = Duration::from_secs(1);

/// Of how many topics the newest own event is remembered.
const TOPICS_MAX: usize = 65_536;

/// Answers that one multi gathers at most.
const ANSWERS_MAX: usize = 4_096;

/// What a messenger is told at its start.
#[derive(Debug, Clone)]
pub struct MessengerOptions {
    /// How its requests are written.
    pub encoding: Encoding,
    /// Bodies larger than this are compressed; [`usize::MAX`] for never.
    pub compress_above: usize,
    /// How many calls and multis may wait for answers at once; more make their callers wait.
    pub calls_max: usize,
}

impl Default for MessengerOptions {
    fn default() -> Self {
        Self { encoding: Encoding::MessagePack, compress_above: 1024, calls_max: 1024 }
    }
}

/// One program's end. Clones are the same; with the last one its reading ends.
#[derive(Debug, Clone)]
pub struct Messenger {
    core: Arc<Core>,
    _reading: Arc<AbortOnDrop>,
}

#[derive(Debug)]
struct Core {
    transport: Arc<dyn Transport>,
    instance: InstanceId,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    options: MessengerOptions,
    waiting: Waiting,
    calls_room: Semaphore,
    events: Mutex<Sequences>,
}

/// The places of own events.
#[derive(Debug, Default)]
struct Sequences {
    last: u64,
    last_of_topic: HashMap<Name, u64>,
}

impl Sequences {
    /// Returns the place of the next event of a topic, and of the one before it.
    fn next(&mut self, topic: &Name) -> (u64, u64) {
        if self.last_of_topic.len() >= TOPICS_MAX && !self.last_of_topic.contains_key(topic) {
            // Listeners see a gap where there may be none, which is harmless.
            self.last_of_topic.clear();
        }
        self.last += 1;
        let previous = self.last_of_topic.insert(topic.clone(), self.last);
        (self.last, previous.unwrap_or_default())
    }
}

/// A task that ends with its owner.
#[derive(Debug)]
struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Messenger {
    /// Starts a messenger inside of a Tokio runtime.
    ///
    /// # Errors
    /// [`MessagingError`], if answers cannot be received over this transport.
    pub async fn start(
        transport: Arc<dyn Transport>,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
        options: MessengerOptions,
    ) -> Result<Self, MessagingError> {
        let instance = InstanceId::random(&*random);
        let calls_max = options.calls_max.clamp(1, Semaphore::MAX_PERMITS);
        let answers = transport.receive(&Source::Replies(instance), calls_max).await?;
        let core = Core {
            transport,
            instance,
            clock,
            random,
            options,
            waiting: Waiting::default(),
            calls_room: Semaphore::new(calls_max),
            events: Mutex::default(),
        };
        let core = Arc::new(core);
        let reading = tokio::spawn(waiting::read(Arc::clone(&core), answers));
        Ok(Self { core, _reading: Arc::new(AbortOnDrop(reading)) })
    }

    /// Returns who this is among the instances of its services.
    pub fn instance(&self) -> InstanceId {
        self.core.instance
    }

    /// Returns the transport.
    pub fn transport(&self) -> &Arc<dyn Transport> {
        &self.core.transport
    }

    /// Draws the id of a new operation, for a caller that remembers it.
    pub fn new_operation(&self) -> OperationId {
        OperationId::random(&*self.core.random)
    }
}

#[async_trait]
impl Calls for Messenger {
    fn encoding(&self) -> Encoding {
        self.core.options.encoding
    }

    async fn call(
        &self,
        request: Request,
        options: &CallOptions,
    ) -> Result<Answer, MessagingError> {
        let core = &self.core;
        let end = core.clock.elapsed() + options.total();
        let mut envelope = core.envelope(Kind::Call, request, options.total())?;
        envelope.reply_to = Some(core.reply_address());
        let route = Route::Call(envelope.target.clone());
        let Some(_room) = core.within(end, core.calls_room.acquire()).await else {
            return Err(MessagingError::Full { target: route.target() });
        };
        let mut answers = core.waiting.wait(envelope.operation, 4);
        let (mut last, mut was_sent) = (None, false);
        for attempt in 1..=options.retries.saturating_add(1) {
            envelope.attempt = attempt;
            let until = core.clock.elapsed() + Duration::from_millis(options.timeout_ms);
            let asked = async {
                match core.send_until(&route, &envelope, until).await {
                    Ok(()) => was_sent = true,
                    Err(error) if !error.is_retryable() => return Err(error),
                    // Who cannot ask still listens: an earlier attempt may be answered.
                    Err(error) => last = Some(error),
                }
                core.clock.sleep(until.saturating_sub(core.clock.elapsed())).await;
                Ok(())
            };
            tokio::select! {
                biased;
                (_, answer) = answers.next() => match answer {
                    Ok(answer) => return Ok(answer),
                    Err(fault) if fault.kind.is_transient() => {
                        last = Some(MessagingError::Fault(fault));
                        core.pause(attempt).await;
                    }
                    Err(fault) => return Err(MessagingError::Fault(fault)),
                },
                asked = asked => asked?,
            }
        }
        let is_fault = matches!(last, Some(MessagingError::Fault(_)));
        Err(last.filter(|_| is_fault || !was_sent).unwrap_or_else(|| MessagingError::TimedOut {
            operation: envelope.operation,
            target: route.target(),
            attempts: envelope.attempt,
        }))
    }

    async fn cast(&self, request: Request, options: &CastOptions) -> Result<(), MessagingError> {
        let core = &self.core;
        let until = core.clock.elapsed() + Duration::from_millis(options.timeout_ms);
        let expires = Duration::from_millis(options.expires_ms);
        let envelope = core.envelope(Kind::Cast, request, expires)?;
        core.send_until(&Route::Cast(envelope.target.clone()), &envelope, until).await
    }

    async fn event(&self, request: Request) -> Result<(), MessagingError> {
        let core = &self.core;
        let mut envelope = core.envelope(Kind::Event, request, Duration::ZERO)?;
        let route = Route::Event(envelope.target.clone());
        let until = core.clock.elapsed() + EVENT_PATIENCE;
        // Who has a place in the order sends before the next one has: listeners take what comes after a later one for one that they know.
        let Some(mut places) = core.within(until, core.events.lock()).await else {
            let (operation, target) = (envelope.operation, route.target());
            return Err(MessagingError::TimedOut { operation, target, attempts: 0 });
        };
        (envelope.sequence, envelope.previous) = places.next(&envelope.target);
        core.send_until(&route, &envelope, until).await
    }

    async fn multi(
        &self,
        request: Request,
        options: &MultiOptions,
    ) -> Result<Vec<Gathered<Answer>>, MessagingError> {
        let core = &self.core;
        let timeout = Duration::from_millis(options.timeout_ms);
        let until = core.clock.elapsed() + timeout;
        let mut envelope = core.envelope(Kind::Multi, request, timeout)?;
        envelope.reply_to = Some(core.reply_address());
        let route = Route::Multi(envelope.target.clone());
        let Some(_room) = core.within(until, core.calls_room.acquire()).await else {
            return Err(MessagingError::Full { target: route.target() });
        };
        let enough = match options.answers_max {
            0 => ANSWERS_MAX,
            most => most.min(ANSWERS_MAX),
        };
        let mut answers = core.waiting.wait(envelope.operation, ANSWERS_MAX);
        core.send_until(&route, &envelope, until).await?;
        let mut gathered: Vec<Gathered<Answer>> = Vec::new();
        while gathered.len() < enough {
            let Some((instance, answer)) = core.within(until, answers.next()).await else { break };
            if gathered.iter().all(|known| known.instance != instance) {
                gathered.push(Gathered { instance, answer });
            }
        }
        Ok(gathered)
    }
}

impl Core {
    fn reply_address(&self) -> ReplyAddress {
        ReplyAddress { instance: self.instance, channel: 0 }
    }

    /// Returns the wall time in milliseconds since 1970.
    fn now_ms(&self) -> u64 {
        let now = self.clock.now();
        let seconds = u64::try_from(now.seconds).unwrap_or_default();
        seconds.saturating_mul(1000) + u64::from(now.nanoseconds / 1_000_000)
    }

    fn envelope(
        &self,
        kind: Kind,
        request: Request,
        useful_for: Duration,
    ) -> Result<Envelope, MessagingError> {
        let useful_ms = u64::try_from(useful_for.as_millis()).unwrap_or(u64::MAX);
        let deadline_ms = (useful_ms > 0).then(|| self.now_ms().saturating_add(useful_ms));
        let operation = request.operation.unwrap_or_else(|| OperationId::random(&*self.random));
        Ok(Envelope {
            kind,
            encoding: self.options.encoding,
            interface_version: request.interface_version,
            attempt: 1,
            operation,
            sender: self.instance,
            deadline_ms,
            sequence: 0,
            previous: 0,
            reply_to: None,
            target: request.target,
            method: request.method.to_owned(),
            body: PackedBody::pack(request.arguments, self.options.compress_above)?,
        })
    }

    /// Sends until it succeeds, cannot succeed, or the time is over.
    async fn send_until(
        &self,
        route: &Route,
        envelope: &Envelope,
        until: Duration,
    ) -> Result<(), MessagingError> {
        let bytes = envelope.encode()?;
        let mut failures = 0;
        loop {
            let expires_in = envelope.deadline_ms.map(|deadline| {
                Duration::from_millis(deadline.saturating_sub(self.now_ms()).max(1))
            });
            let operation = envelope.operation;
            let parcel = Parcel { bytes: bytes.clone(), operation, expires_in };
            let patience = until.min(self.clock.elapsed() + SEND_PATIENCE);
            let sent = self.within(patience, self.transport.send(route, parcel)).await;
            let error = match sent {
                Some(Ok(())) => return Ok(()),
                Some(Err(error)) if !error.is_retryable() => return Err(error),
                Some(Err(error)) => error,
                None => MessagingError::Unreachable {
                    place: self.transport.describe(),
                    reason: "it does not take the message in time".to_owned(),
                },
            };
            failures += 1;
            let pause = self.pause_after(failures);
            if self.clock.elapsed() + pause >= until {
                return Err(error);
            }
            tracing::debug!(target = %route.target(), %error, failures, "sending again");
            self.clock.sleep(pause).await;
        }
    }

    /// Waits for something, but not past a point in time.
    async fn within<T>(&self, until: Duration, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            done = work => Some(done),
            () = self.clock.sleep(until.saturating_sub(self.clock.elapsed())) => None,
        }
    }

    async fn pause(&self, failures: u32) {
        self.clock.sleep(self.pause_after(failures)).await;
    }

    fn pause_after(&self, failures: u32) -> Duration {
        PAUSES.after(failures, &*self.random)
    }
}
