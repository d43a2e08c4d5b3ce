//! Doing what others ask: the work of one instance of a service.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{FutureExt, StreamExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::{JoinHandle, JoinSet};

use super::{Core, Messenger};
use crate::body::{Encoding, PackedBody};
use crate::envelope::{Envelope, Kind};
use crate::error::{Fault, FaultKind, MessagingError};
use crate::interface::{Arguments, Context, Handler};
use crate::names::Name;
use crate::results::{NothingRemembered, Operation, RememberedResults, ResultStore};
use crate::transport::{Delivery, Incoming, Notice, PROGRESS_EVERY, Route, Source, Verdict};

/// How long an answer is tried to be sent; after that its caller asks again.
const ANSWER_PATIENCE: Duration = Duration::from_secs(5);

/// How a service is served by this instance.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// How many calls, how many casts and how many multis are under way at once at most. Others wait with the transport.
    pub concurrency: usize,
    /// How often a message is delivered before it goes to the dead letters.
    pub attempts_max: u32,
    /// Remembers what was done.
    pub results: Arc<dyn ResultStore>,
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self { concurrency: 16, attempts_max: 5, results: Arc::new(NothingRemembered) }
    }
}

/// A service served, or a topic listened to, until this is dropped: then what is under way is broken off and others get it.
#[derive(Debug)]
pub struct Serving {
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
}

impl Serving {
    pub(super) fn new(stop: watch::Sender<bool>, tasks: Vec<JoinHandle<()>>) -> Self {
        Self { stop, tasks }
    }

    /// Takes nothing more, and waits until what is under way is done.
    pub async fn stop(mut self) {
        // Tasks that have ended already do not hear it.
        let _ = self.stop.send(true);
        for task in &mut self.tasks {
            if let Err(error) = task.await {
                tracing::warn!(%error, "a worker failed");
            }
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl Messenger {
    /// Serves a service beside its other instances.
    ///
    /// # Errors
    /// [`MessagingError`], if the transport cannot serve, or not now.
    pub async fn serve(
        &self,
        service: &Name,
        handler: Arc<dyn Handler>,
        options: ServeOptions,
    ) -> Result<Serving, MessagingError> {
        let concurrency = options.concurrency.clamp(1, Semaphore::MAX_PERMITS);
        let worker = Worker {
            core: Arc::clone(&self.core),
            service: service.clone(),
            handler,
            attempts_max: options.attempts_max.max(1),
            results: options.results,
            own_results: RememberedResults::new(1024, 1 << 20),
        };
        let worker = Arc::new(worker);
        let (stop, stopped) = watch::channel(false);
        let ways = [
            (Kind::Call, Source::Calls(service.clone())),
            (Kind::Cast, Source::Casts(service.clone())),
            (Kind::Multi, Source::Multi(service.clone())),
        ];
        let mut incomings = Vec::new();
        for (kind, source) in ways {
            incomings.push((kind, self.core.transport.receive(&source, concurrency).await?));
        }
        let tasks = incomings.into_iter().map(|(kind, incoming)| {
            let room = Arc::new(Semaphore::new(concurrency));
            tokio::spawn(run(Arc::clone(&worker), kind, incoming, room, stopped.clone()))
        });
        Ok(Serving::new(stop, tasks.collect()))
    }
}

/// Takes messages while there is room to work on them.
async fn run(
    worker: Arc<Worker>,
    kind: Kind,
    mut incoming: Incoming,
    room: Arc<Semaphore>,
    mut stopped: watch::Receiver<bool>,
) {
    let mut under_way = JoinSet::new();
    loop {
        let permit = Arc::clone(&room).acquire_owned().await.expect("it is never closed");
        while under_way.try_join_next().is_some() {}
        let notice = tokio::select! {
            biased;
            // An error says that nobody can stop this any more, and then it is about to be aborted.
            _ = stopped.wait_for(|stop| *stop) => break,
            notice = incoming.next() => notice,
        };
        match notice {
            Some(Notice::Delivery(delivery)) => {
                under_way.spawn(Arc::clone(&worker).work(kind, delivery, permit));
            }
            // Services lose nothing: what was not settled comes again.
            Some(Notice::Gap) => {}
            None => break,
        }
    }
    drop(incoming);
    while under_way.join_next().await.is_some() {}
}

struct Worker {
    core: Arc<Core>,
    service: Name,
    handler: Arc<dyn Handler>,
    attempts_max: u32,
    results: Arc<dyn ResultStore>,
    /// A question to all is answered by each, and therefore remembered by each.
    own_results: RememberedResults,
}

impl Worker {
    async fn work(self: Arc<Self>, kind: Kind, delivery: Delivery, _room: OwnedSemaphorePermit) {
        let settled = match Envelope::decode(&delivery.bytes) {
            Ok(envelope) if envelope.kind == kind => self.work_on(envelope, delivery).await,
            Ok(_) => delivery.settle(Verdict::Dead("it came by a wrong route".to_owned())).await,
            Err(error) => delivery.settle(Verdict::Dead(error.to_string())).await,
        };
        if let Err(error) = settled {
            tracing::debug!(service = %self.service, %error, "a message was not settled and comes again");
        }
    }

    async fn work_on(&self, envelope: Envelope, delivery: Delivery) -> Result<(), MessagingError> {
        let attempt = delivery.attempt;
        if attempt > self.attempts_max {
            let reason = format!("it was delivered {} times", attempt - 1);
            return delivery.settle(Verdict::Dead(reason)).await;
        }
        let result = if envelope.is_expired(self.core.now_ms()) {
            Err(Fault::new(FaultKind::Expired, "it came after its deadline and was not begun"))
        } else {
            self.perform_and_keep(&envelope, &delivery).await
        };
        if envelope.kind == Kind::Cast {
            let verdict = match result {
                Ok(_) => Verdict::Done,
                Err(fault) if fault.kind.is_transient() && attempt < self.attempts_max => {
                    tracing::debug!(service = %self.service, %fault, attempt, "a cast is tried again");
                    self.core.pause(attempt.saturating_add(3)).await;
                    Verdict::Again
                }
                Err(fault) => Verdict::Dead(fault.to_string()),
            };
            return delivery.settle(verdict).await;
        }
        self.answer(&envelope, result).await;
        delivery.settle(Verdict::Done).await
    }

    /// Does the work, and tells the transport now and then that it goes on.
    async fn perform_and_keep(
        &self,
        envelope: &Envelope,
        delivery: &Delivery,
    ) -> Result<(Encoding, Bytes), Fault> {
        let work = self.perform(envelope, delivery.attempt);
        tokio::pin!(work);
        loop {
            tokio::select! {
                biased;
                result = &mut work => return result,
                () = self.core.clock.sleep(PROGRESS_EVERY) => {
                    if let Some(settlement) = &delivery.settlement {
                        settlement.keep().await;
                    }
                }
            }
        }
    }

    async fn perform(
        &self,
        envelope: &Envelope,
        delivered: u32,
    ) -> Result<(Encoding, Bytes), Fault> {
        let handler = &self.handler;
        if envelope.interface_version != handler.version() {
            let (theirs, ours) = (envelope.interface_version, handler.version());
            let message = format!("'{}' has version {ours}, not {theirs}", self.service);
            return Err(Fault::new(FaultKind::UnsupportedVersion, message));
        }
        let (context, arguments) = prepare(envelope, delivered)?;
        let (operation, method) = (envelope.operation, &envelope.method);
        let operation =
            Operation { service: self.service.clone(), method: method.clone(), id: operation };
        let work = async {
            let encoding = arguments.encoding;
            let body = handler.handle(&context, method, arguments).await?;
            // A later attempt may come from a program that writes in another encoding.
            Ok([&[u8::from(encoding == Encoding::Json)], &body[..]].concat().into())
        };
        let once = match envelope.kind {
            Kind::Multi => self.own_results.once(&operation, Box::pin(work)),
            _ => self.results.once(&operation, Box::pin(work)),
        };
        let recorded = match AssertUnwindSafe(once).catch_unwind().await {
            Ok(recorded) => recorded?,
            Err(_) => {
                tracing::error!(service = %self.service, method, "a handler panicked");
                return Err(Fault::new(FaultKind::Panicked, "the receiver's code panicked"));
            }
        };
        let encoding = match recorded.first() {
            Some(0) => Encoding::MessagePack,
            Some(1) => Encoding::Json,
            _ => return Err(Fault::unavailable("the recorded result is damaged")),
        };
        Ok((encoding, recorded.slice(1..)))
    }

    async fn answer(&self, request: &Envelope, result: Result<(Encoding, Bytes), Fault>) {
        let Some(address) = request.reply_to else { return };
        let sent = match self.envelope_of(request, result) {
            Ok(answer) => {
                let until = self.core.clock.elapsed() + ANSWER_PATIENCE;
                self.core.send_until(&Route::Reply(address), &answer, until).await
            }
            Err(error) => Err(error),
        };
        if let Err(error) = sent {
            // The caller asks again, and then the result is remembered.
            tracing::debug!(service = %self.service, %error, "an answer was not sent");
        }
    }

    fn envelope_of(
        &self,
        request: &Envelope,
        result: Result<(Encoding, Bytes), Fault>,
    ) -> Result<Envelope, MessagingError> {
        let compress_above = self.core.options.compress_above;
        let envelope = |kind, encoding, body| Envelope {
            kind,
            encoding,
            sender: self.core.instance,
            body,
            sequence: 0,
            previous: 0,
            method: String::new(),
            ..request.clone()
        };
        let fault = match result {
            Ok((encoding, body)) => match PackedBody::pack(body, compress_above) {
                Ok(body) if body.bytes.len() <= crate::envelope::BODY_ROOM => {
                    return Ok(envelope(Kind::Answer, encoding, body));
                }
                _ => Fault::service("answer_too_large", "the answer is larger than a message"),
            },
            Err(fault) => fault,
        };
        let body = request.encoding.encode("a fault", &fault)?;
        Ok(envelope(Kind::Fault, request.encoding, PackedBody::pack(body, compress_above)?))
    }
}

/// Reads what a handler needs.
pub(super) fn prepare(envelope: &Envelope, delivered: u32) -> Result<(Context, Arguments), Fault> {
    let bytes = envelope.body.open();
    let bytes = bytes.map_err(|error| Fault::new(FaultKind::InvalidRequest, error.to_string()))?;
    let context = Context {
        operation: envelope.operation,
        attempt: envelope.attempt.max(delivered),
        sender: envelope.sender,
        target: envelope.target.clone(),
        deadline_ms: envelope.deadline_ms,
    };
    Ok((context, Arguments { encoding: envelope.encoding, bytes }))
}
