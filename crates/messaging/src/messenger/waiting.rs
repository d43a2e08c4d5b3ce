//! Who waits for which answer.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::StreamExt;
use parking_lot::Mutex;
use tokio::sync::mpsc;

use super::Core;
use crate::calls::Answer;
use crate::envelope::{Envelope, Kind};
use crate::error::{Fault, FaultKind, MessagingError};
use crate::names::{InstanceId, OperationId};
use crate::transport::{Incoming, Notice};

/// One answer and who gave it.
type Answered = (InstanceId, Result<Answer, Fault>);

/// The way to one who waits.
type Numbered = (u64, mpsc::Sender<Answered>);

/// All who wait.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    next: AtomicU64,
    /// Two callers may ask for one operation; both hear.
    callers: Mutex<HashMap<OperationId, Vec<Numbered>>>,
}

/// One who waits, until it is dropped.
pub(super) struct Caller<'waiting> {
    waiting: &'waiting Waiting,
    operation: OperationId,
    number: u64,
    answers: mpsc::Receiver<Answered>,
}

impl Waiting {
    pub(super) fn wait(&self, operation: OperationId, answers_max: usize) -> Caller<'_> {
        let (sender, answers) = mpsc::channel(answers_max);
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.callers.lock().entry(operation).or_default().push((number, sender));
        Caller { waiting: self, operation, number, answers }
    }

    fn hand_out(&self, operation: OperationId, answered: &Answered) {
        for (_, caller) in self.callers.lock().get(&operation).into_iter().flatten() {
            // Who has all the answers that it can take needs no more.
            let _ = caller.try_send(answered.clone());
        }
    }
}

impl Caller<'_> {
    pub(super) async fn next(&mut self) -> Answered {
        match self.answers.recv().await {
            Some(answered) => answered,
            // The sender lives in the table until this is dropped.
            None => std::future::pending().await,
        }
    }
}

impl Drop for Caller<'_> {
    fn drop(&mut self) {
        let mut callers = self.waiting.callers.lock();
        if let Some(all) = callers.get_mut(&self.operation) {
            all.retain(|(number, _)| *number != self.number);
            if all.is_empty() {
                callers.remove(&self.operation);
            }
        }
    }
}

/// Reads answers as long as there are any.
pub(super) async fn read(core: Arc<Core>, mut answers: Incoming) {
    while let Some(notice) = answers.next().await {
        // Answers that were lost are asked for again by who misses them.
        let Notice::Delivery(delivery) = notice else { continue };
        match read_answer(&delivery.bytes) {
            Ok((operation, answered)) => core.waiting.hand_out(operation, &answered),
            Err(error) => tracing::warn!(%error, "an answer cannot be read"),
        }
        if let Err(error) = delivery.settle(crate::transport::Verdict::Done).await {
            tracing::debug!(%error, "an answer was not settled");
        }
    }
}

fn read_answer(bytes: &bytes::Bytes) -> Result<(OperationId, Answered), MessagingError> {
    let envelope = Envelope::decode(bytes)?;
    let body = envelope.body.open()?;
    let answer = match envelope.kind {
        Kind::Answer => Ok(Answer { encoding: envelope.encoding, body }),
        Kind::Fault => Err(envelope.encoding.decode("a fault", &body).unwrap_or_else(|error| {
            Fault::new(FaultKind::InvalidRequest, format!("a fault that cannot be read: {error}"))
        })),
        _ => return Err(MessagingError::undecodable("an answer", "it is a request")),
    };
    Ok((envelope.operation, (envelope.sender, answer)))
}
