//! Lets a [`Proposer`] talk with the stores of its group: its requests out, their answers in, and the time between.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{BoxFuture, Either, FutureExt, select};
use futures_util::stream::{FuturesUnordered, StreamExt};
use model::WorkspaceId;
use model::codec::DecodeError;
use storage::{ObjectKey, ObjectStore, PutMode, PutOutcome, StorageError};

use super::Means;
use super::background::{Background, Call};
use super::following::{self, Following, WISHES_MAX};
use super::rumours::Rumours;
use super::silence::Silence;
use crate::serverless::candidate::{Candidate, Context};
use crate::serverless::group::{Group, NamedStore};
use crate::serverless::rounds::{Answer, Carrier, Message, Proposer, Request, Status};

/// How long a store of several may take for one answer.
pub(super) const CALL_PATIENCE: Duration = Duration::from_secs(30);

/// How long the slower stores are waited for at least, after enough have answered, and how long at most.
const SLOWER_PATIENCE_MIN: Duration = Duration::from_millis(50);
const SLOWER_PATIENCE_MAX: Duration = Duration::from_secs(5);

/// Why a store did not answer.
#[derive(Debug)]
pub(super) enum Failure {
    /// The store says so.
    Storage(StorageError),
    /// It holds what cannot be read.
    Message(DecodeError),
    /// It takes too long.
    Slow,
}

/// One slot, and those who agree on it.
#[derive(Debug)]
pub(super) struct Deliberation<'a> {
    pub(super) means: &'a Means,
    pub(super) background: &'a Background,
    pub(super) silence: &'a Silence,
    /// Is set to the store that answers first.
    pub(super) quickest: &'a AtomicUsize,
    /// Hear what single stores say.
    pub(super) rumours: &'a Rumours,
    pub(super) workspace: WorkspaceId,
    pub(super) group: &'a Group,
    pub(super) slot: u64,
    /// Whether a proposer that follows does so until it is dropped.
    pub(super) watching: bool,
}

/// Requests under way; each ends with its answer.
type Calls = FuturesUnordered<Call<Answered>>;

type Answered = (Request<Candidate>, Result<Reply, Failure>);

type Patience = Pin<Box<dyn Future<Output = ()> + Send>>;

enum Reply {
    Put(PutOutcome),
    Got(Option<Bytes>),
}

/// What was asked and not answered yet.
struct Talk<'d, 'a> {
    deliberation: &'d Deliberation<'a>,
    failures: &'d mut [Option<Failure>],
    calls: Calls,
    pending: Vec<Request<Candidate>>,
    has_answer: bool,
    has_wished: bool,
    start: Duration,
}

impl Deliberation<'_> {
    /// Goes on until the proposer can do no more by itself; [`Proposer::retry`] lets it ask again. `failures` has a place for each store.
    pub(super) async fn run(
        &self,
        proposer: &mut Proposer<Candidate>,
        failures: &mut [Option<Failure>],
    ) -> Status<Candidate> {
        let start = self.means.clock.elapsed();
        let mut talk = Talk {
            deliberation: self,
            failures,
            calls: Calls::new(),
            pending: Vec::new(),
            has_answer: false,
            has_wished: false,
            start,
        };
        let mut following = None;
        let mut patience: Option<Patience> = None;
        loop {
            talk.ask(proposer);
            let status = proposer.status();
            if proposer.is_following() && !matches!(status, Status::Decided(_)) {
                let following = following.get_or_insert_with(|| self.begin_following(start));
                if following.is_over(self.means) {
                    talk.end(proposer);
                    return Status::Following;
                }
                talk.wish(proposer);
                talk.follow(proposer, following).await;
                continue;
            }
            if status != Status::Working || talk.calls.is_empty() {
                if matches!(status, Status::Decided(_)) {
                    talk.wish(proposer);
                }
                talk.end(proposer);
                return status;
            }
            if patience.is_none() && !self.group.is_single() && proposer.has_idle_quorum() {
                patience = Some(talk.patience());
            }
            let answered = match &mut patience {
                None => self.background.beside(talk.calls.next()).await,
                Some(patience) => {
                    match self.background.beside(select(talk.calls.next(), patience)).await {
                        Either::Left((answered, _)) => answered,
                        Either::Right(_) => None,
                    }
                }
            };
            // Whoever was waited for may have been asked something else since.
            patience = None;
            match answered {
                Some(answered) => talk.take(proposer, answered),
                None => talk.give_up(proposer),
            }
        }
    }

    fn begin_following(&self, start: Duration) -> Following {
        match self.watching {
            true => Following::watch(),
            false => {
                let taken = self.means.clock.elapsed().saturating_sub(start);
                Following::begin(self.means, taken)
            }
        }
    }

    /// Lets a carrier leave a decision at every store that answers.
    pub(super) async fn carry(
        &self,
        carrier: &mut Carrier<Candidate>,
        failures: &mut [Option<Failure>],
    ) {
        let mut calls = Calls::new();
        loop {
            for request in carrier.requests() {
                calls.push(Call { store: request.store, answer: self.call(request) });
            }
            let Some((request, reply)) = self.background.beside(calls.next()).await else { return };
            let answer = self.understand(reply, &mut failures[request.store]);
            carrier.answer(&request, answer);
        }
    }

    /// Does without waiting what makes the decided value last.
    pub(super) fn complete(&self, proposer: &Proposer<Candidate>, value: &Candidate) {
        for request in proposer.completions(value) {
            let store = self.name(request.store);
            self.background.add(store, self.call(request.clone()).map(drop).boxed());
        }
    }

    /// Writes down, for whoever leads, what a proposer wants that has no vote in this slot. Nobody waits for it, and one that
    /// finds no place is none.
    fn leave_wish(&self, own: &Candidate) {
        let NamedStore { name, store } = &self.group.stores()[self.group.leading_store(self.slot)];
        let bytes = self.context().encode(&Message::Vote(own.clone()));
        let (store, slot) = (store.clone(), self.slot);
        let first = self.means.below(WISHES_MAX);
        let put = async move {
            for number in 0..WISHES_MAX {
                let key = ObjectKey::log_wish(slot, (first + number) % WISHES_MAX);
                match store.put(&key, bytes.clone(), PutMode::IfAbsent).await {
                    Ok(PutOutcome::Exists) => {}
                    Ok(PutOutcome::Written) | Err(_) => return,
                }
            }
        };
        self.background.add(name, put.boxed());
    }

    fn name(&self, store: usize) -> &str {
        &self.group.stores()[store].name
    }

    fn context(&self) -> Context<'_> {
        Context {
            workspace: self.workspace,
            slot: self.slot,
            certifier: self.group.certifier(),
            is_single: self.group.is_single(),
        }
    }

    fn understand(
        &self,
        reply: Result<Reply, Failure>,
        failure: &mut Option<Failure>,
    ) -> Answer<Candidate> {
        let decoded = |bytes: Bytes| self.context().decode(&bytes).map_err(Failure::Message);
        let answer = reply.and_then(|reply| {
            Ok(match reply {
                Reply::Put(PutOutcome::Written) => Answer::Written,
                Reply::Put(PutOutcome::Exists) => Answer::Exists,
                Reply::Got(None) => Answer::Absent,
                Reply::Got(Some(bytes)) => Answer::Found(decoded(bytes)?),
            })
        });
        answer.unwrap_or_else(|error| {
            *failure = Some(error);
            Answer::Failed
        })
    }

    fn call(
        &self,
        request: Request<Candidate>,
    ) -> BoxFuture<'static, (Request<Candidate>, Result<Reply, Failure>)> {
        let store = self.group.stores()[request.store].store.clone();
        let place = u32::try_from(request.place).expect("a list is far shorter");
        let key = ObjectKey::log_slot(self.slot, place);
        let bytes = request.put.as_ref().map(|message| self.context().encode(message));
        let reply = ask(store, key, bytes);
        if self.group.is_single() {
            return reply.map(|reply| (request, reply)).boxed();
        }
        let limit = self.means.clock.sleep(CALL_PATIENCE);
        let (silence, name) = (self.silence.clone(), self.name(request.store).to_owned());
        let limited = async move {
            match select(std::pin::pin!(reply), limit).await {
                Either::Left((reply, _)) => {
                    silence.ends(&name);
                    (request, reply)
                }
                Either::Right(_) => {
                    silence.begins(&name);
                    (request, Err(Failure::Slow))
                }
            }
        };
        limited.boxed()
    }
}

impl Talk<'_, '_> {
    /// Sends what the proposer wants to ask.
    fn ask(&mut self, proposer: &mut Proposer<Candidate>) {
        for request in proposer.requests() {
            let (store, answer) = (request.store, self.deliberation.call(request.clone()));
            self.calls.push(Call { store, answer });
            self.pending.push(request);
        }
    }

    /// Tells the proposer an answer.
    fn take(&mut self, proposer: &mut Proposer<Candidate>, (request, reply): Answered) {
        self.pending.retain(|pending| *pending != request);
        if !self.has_answer && reply.is_ok() {
            self.has_answer = true;
            self.deliberation.quickest.store(request.store, Ordering::Relaxed);
        }
        let answer = self.deliberation.understand(reply, &mut self.failures[request.store]);
        if let Answer::Found(
            Message::Vote(candidate) | Message::Accept(_, candidate) | Message::Decided(candidate),
        ) = &answer
        {
            self.deliberation.rumours.hear_of(candidate.shared_entry());
        }
        proposer.answer(&request, answer);
    }

    /// Lets whoever leads know, once, what a proposer wants that has no vote.
    fn wish(&mut self, proposer: &Proposer<Candidate>) {
        if !self.has_wished
            && let Some(own) = following::wish(proposer)
        {
            self.has_wished = true;
            self.deliberation.leave_wish(own);
        }
    }

    /// Waits for an answer, or until it is time to look again.
    async fn follow(&mut self, proposer: &mut Proposer<Candidate>, following: &Following) {
        let Deliberation { means, background, .. } = self.deliberation;
        let tick = means.clock.sleep(following.tick);
        let calls = &mut self.calls;
        let answered = {
            let next = std::pin::pin!(async move {
                match calls.next().await {
                    Some(answered) => answered,
                    None => std::future::pending().await,
                }
            });
            match background.beside(select(next, tick)).await {
                Either::Left((answered, _)) => Some(answered),
                Either::Right(_) => None,
            }
        };
        match answered {
            Some(answered) => self.take(proposer, answered),
            None => proposer.reread(),
        }
    }

    /// Begins to wait as long as the slower stores are worth it.
    fn patience(&self) -> Patience {
        let Deliberation { means, silence, .. } = self.deliberation;
        let taken = means.clock.elapsed().saturating_sub(self.start);
        let is_known =
            |request: &Request<Candidate>| silence.holds(self.deliberation.name(request.store));
        let span = match self.pending.iter().all(is_known) {
            // Those who let everybody wait the last time are not waited for again.
            true => SLOWER_PATIENCE_MIN,
            false => (taken * 2).clamp(SLOWER_PATIENCE_MIN, SLOWER_PATIENCE_MAX),
        };
        means.clock.sleep(span)
    }

    /// Goes on without the stores that have not answered.
    fn give_up(&mut self, proposer: &mut Proposer<Candidate>) {
        for request in &self.pending {
            self.deliberation.silence.begins(self.deliberation.name(request.store));
        }
        if proposer.hurry() {
            return;
        }
        for request in self.pending.drain(..) {
            self.failures[request.store] = Some(Failure::Slow);
            proposer.answer(&request, Answer::Failed);
        }
    }

    /// Lets go on by itself what nobody has answered yet; it may be asked again.
    fn end(self, proposer: &mut Proposer<Candidate>) {
        for request in self.pending {
            proposer.answer(&request, Answer::Failed);
        }
        for call in self.calls {
            let store = self.deliberation.name(call.store);
            self.deliberation.background.add(store, call.map(drop).boxed());
        }
    }
}

async fn ask(
    store: Arc<dyn ObjectStore>,
    key: ObjectKey,
    bytes: Option<Bytes>,
) -> Result<Reply, Failure> {
    let reply = match bytes {
        Some(bytes) => store.put(&key, bytes, PutMode::IfAbsent).await.map(Reply::Put),
        None => store.get(&key).await.map(Reply::Got),
    };
    reply.map_err(Failure::Storage)
}
