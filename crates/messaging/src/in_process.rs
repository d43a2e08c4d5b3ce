//! The transport inside one program: bounded queues in memory.
//!
//! *Participants*: any number of messengers that share one [`InProcessTransport`]. *Goals*: everything that the transports
//! of brokers do, without a broker: competing receivers, redelivery, dead letters, bounds. *Non-goals*: outliving the
//! program. *Invariants*: a delivery that is dropped unsettled is at the head of its queue again; a slow listener loses
//! its oldest events and is told so; nobody else waits for it.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Weak};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::{StreamExt, unfold};
use parking_lot::Mutex;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use crate::error::MessagingError;
use crate::names::{InstanceId, Name};
use crate::transport::{
    Abilities, DEAD_LETTERS_MAX, Delivery, Incoming, Notice, Parcel, Route, Settlement, Source,
    Transport, Verdict, WAITING_MAX,
};

/// A transport in memory. Clones are the same.
#[derive(Debug, Clone)]
pub struct InProcessTransport {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    waiting_max: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    calls: HashMap<Name, Arc<Mailbox>>,
    casts: HashMap<Name, Arc<Mailbox>>,
    dead: HashMap<Name, Arc<Mailbox>>,
    multi: HashMap<Name, Vec<Weak<Mailbox>>>,
    topics: HashMap<Name, Vec<Weak<Mailbox>>>,
    replies: HashMap<InstanceId, Weak<Mailbox>>,
}

impl Default for InProcessTransport {
    fn default() -> Self {
        Self::with_waiting_max(WAITING_MAX)
    }
}

impl InProcessTransport {
    /// Makes a transport in which at most so many messages wait in each place.
    pub fn with_waiting_max(waiting_max: usize) -> Self {
        let waiting_max = waiting_max.max(1);
        Self { shared: Arc::new(Shared { waiting_max, state: Mutex::default() }) }
    }

    /// Returns the mailboxes that a message goes to, and whether a full one loses its oldest message.
    fn find(&self, route: &Route) -> (Vec<Arc<Mailbox>>, bool) {
        let mut state = self.shared.state.lock();
        let alive = |all: Option<&mut Vec<Weak<Mailbox>>>| {
            let Some(all) = all else { return Vec::new() };
            all.retain(|mailbox| mailbox.strong_count() > 0);
            all.iter().filter_map(Weak::upgrade).collect::<Vec<_>>()
        };
        match route {
            Route::Call(service) => {
                (state.calls.get(service).into_iter().cloned().collect(), false)
            }
            Route::Cast(service) => {
                (state.casts.get(service).into_iter().cloned().collect(), false)
            }
            Route::Multi(service) => (alive(state.multi.get_mut(service)), true),
            Route::Event(topic) => (alive(state.topics.get_mut(topic)), true),
            Route::Reply(address) => {
                let mailbox = state.replies.get(&address.instance).and_then(Weak::upgrade);
                (mailbox.into_iter().collect(), true)
            }
        }
    }

    fn open(&self, source: &Source, unsettled_max: usize) -> Arc<Mailbox> {
        let mut state = self.shared.state.lock();
        let waiting_max = self.shared.waiting_max;
        let new = |limit: usize| Arc::new(Mailbox::new(limit));
        let listen = |all: &mut Vec<Weak<Mailbox>>, limit: usize| {
            let mailbox = new(limit.min(waiting_max));
            all.retain(|mailbox| mailbox.strong_count() > 0);
            all.push(Arc::downgrade(&mailbox));
            mailbox
        };
        match source {
            Source::Calls(service) => {
                Arc::clone(state.calls.entry(service.clone()).or_insert_with(|| new(waiting_max)))
            }
            Source::Casts(service) => {
                Arc::clone(state.casts.entry(service.clone()).or_insert_with(|| new(waiting_max)))
            }
            Source::DeadLetters(service) => state.dead_letters(service),
            Source::Multi(service) => {
                listen(state.multi.entry(service.clone()).or_default(), waiting_max)
            }
            Source::Topic(topic) => {
                listen(state.topics.entry(topic.clone()).or_default(), unsettled_max)
            }
            Source::Replies(instance) => {
                let mailbox = new(waiting_max);
                state.replies.retain(|_, mailbox| mailbox.strong_count() > 0);
                state.replies.insert(*instance, Arc::downgrade(&mailbox));
                mailbox
            }
        }
    }
}

impl State {
    fn dead_letters(&mut self, service: &Name) -> Arc<Mailbox> {
        let dead = self.dead.entry(service.clone());
        Arc::clone(dead.or_insert_with(|| Arc::new(Mailbox::new(DEAD_LETTERS_MAX))))
    }
}

#[async_trait]
impl Transport for InProcessTransport {
    fn describe(&self) -> String {
        "this program".to_owned()
    }

    fn abilities(&self) -> Abilities {
        Abilities { keeps_casts: false, serves: true }
    }

    async fn send(&self, route: &Route, parcel: Parcel) -> Result<(), MessagingError> {
        let (mailboxes, loses_oldest) = self.find(route);
        let target = || route.target();
        if mailboxes.is_empty() {
            return match route {
                Route::Call(_) | Route::Cast(_) | Route::Multi(_) => {
                    Err(MessagingError::NoReceiver { target: target() })
                }
                // Nobody listens, or nobody waits any more.
                Route::Event(_) | Route::Reply(_) => Ok(()),
            };
        }
        for mailbox in mailboxes {
            let letter = Letter { bytes: parcel.bytes.clone(), attempt: 1 };
            if loses_oldest {
                mailbox.push_losing_oldest(letter);
            } else if !mailbox.push(letter) {
                return Err(MessagingError::Full { target: target() });
            }
        }
        Ok(())
    }

    async fn receive(
        &self,
        source: &Source,
        unsettled_max: usize,
    ) -> Result<Incoming, MessagingError> {
        let mailbox = self.open(source, unsettled_max.max(1));
        let service = match source {
            Source::Calls(service) | Source::Casts(service) => Some(service.clone()),
            _ => None,
        };
        let receiver = Receiver {
            mailbox,
            service,
            transport: self.clone(),
            room: Arc::new(Semaphore::new(unsettled_max.max(1))),
        };
        let stream = unfold(receiver, |receiver| async move {
            let notice = receiver.next().await;
            Some((notice, receiver))
        });
        Ok(stream.boxed())
    }

    async fn waiting(&self, service: &Name) -> Result<u64, MessagingError> {
        let mailbox = self.shared.state.lock().casts.get(service).cloned();
        let nobody = || MessagingError::NoReceiver { target: service.to_string() };
        Ok(mailbox.ok_or_else(nobody)?.letters.lock().waiting.len() as u64)
    }
}

/// One stream of deliveries.
struct Receiver {
    mailbox: Arc<Mailbox>,
    /// The service whose messages are settled; nobody settles the others.
    service: Option<Name>,
    transport: InProcessTransport,
    room: Arc<Semaphore>,
}

impl Receiver {
    async fn next(&self) -> Notice {
        let Some(service) = &self.service else {
            return match self.mailbox.pop().await {
                Some(Letter { bytes, attempt }) => {
                    Notice::Delivery(Delivery { bytes, attempt, settlement: None })
                }
                None => Notice::Gap,
            };
        };
        let room = Arc::clone(&self.room).acquire_owned().await.expect("it is never closed");
        loop {
            // The queues of services lose nothing, so that there is no gap in them.
            let Some(letter) = self.mailbox.pop().await else { continue };
            let (bytes, attempt) = (letter.bytes.clone(), letter.attempt);
            let settlement = Unsettled {
                letter: Some(letter),
                service: service.clone(),
                mailbox: Arc::clone(&self.mailbox),
                transport: self.transport.clone(),
                _room: room,
            };
            return Notice::Delivery(Delivery {
                bytes,
                attempt,
                settlement: Some(Box::new(settlement)),
            });
        }
    }
}

/// A delivered letter of which nothing is known yet.
struct Unsettled {
    letter: Option<Letter>,
    service: Name,
    mailbox: Arc<Mailbox>,
    transport: InProcessTransport,
    _room: OwnedSemaphorePermit,
}

#[async_trait]
impl Settlement for Unsettled {
    async fn settle(mut self: Box<Self>, verdict: Verdict) -> Result<(), MessagingError> {
        match verdict {
            Verdict::Done => self.letter = None,
            // Dropping it gives it back.
            Verdict::Again => {}
            Verdict::Dead(reason) => {
                tracing::warn!(service = %self.service, reason, "a message goes to the dead letters");
                if let Some(letter) = self.letter.take() {
                    let dead = self.transport.shared.state.lock().dead_letters(&self.service);
                    dead.push_losing_oldest(letter);
                }
            }
        }
        Ok(())
    }
}

impl Drop for Unsettled {
    fn drop(&mut self) {
        if let Some(letter) = self.letter.take() {
            self.mailbox.put_back(Letter { attempt: letter.attempt + 1, ..letter });
        }
    }
}

#[derive(Debug)]
struct Letter {
    bytes: Bytes,
    attempt: u32,
}

/// A bounded queue with any number of ends.
#[derive(Debug)]
struct Mailbox {
    limit: usize,
    letters: Mutex<Letters>,
    has_letters: Notify,
}

#[derive(Debug, Default)]
struct Letters {
    waiting: VecDeque<Letter>,
    has_lost: bool,
}

impl Mailbox {
    fn new(limit: usize) -> Self {
        Self { limit, letters: Mutex::default(), has_letters: Notify::new() }
    }

    /// Adds a letter, or says that there is no room.
    fn push(&self, letter: Letter) -> bool {
        let mut letters = self.letters.lock();
        if letters.waiting.len() >= self.limit {
            return false;
        }
        letters.waiting.push_back(letter);
        drop(letters);
        self.has_letters.notify_one();
        true
    }

    fn push_losing_oldest(&self, letter: Letter) {
        let mut letters = self.letters.lock();
        while letters.waiting.len() >= self.limit {
            letters.waiting.pop_front();
            letters.has_lost = true;
        }
        letters.waiting.push_back(letter);
        drop(letters);
        self.has_letters.notify_one();
    }

    /// Puts a letter back where it was. It had room before, so that the limit may be passed by what is delivered.
    fn put_back(&self, letter: Letter) {
        self.letters.lock().waiting.push_front(letter);
        self.has_letters.notify_one();
    }

    /// Waits for a letter; none where some were lost before it.
    async fn pop(&self) -> Option<Letter> {
        loop {
            let waiting = self.has_letters.notified();
            {
                let mut letters = self.letters.lock();
                if std::mem::take(&mut letters.has_lost) {
                    // Whoever comes next finds the letters.
                    self.has_letters.notify_one();
                    return None;
                }
                if let Some(letter) = letters.waiting.pop_front() {
                    if !letters.waiting.is_empty() {
                        self.has_letters.notify_one();
                    }
                    return Some(letter);
                }
            }
            waiting.await;
        }
    }
}
