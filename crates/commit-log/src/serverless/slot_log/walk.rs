//! A way along the log, from an entry that is in it to its end.
//!
//! Far stores make each step a round trip at a majority. So as soon as one store says that a slot is filled, the slot after
//! it is read, too: mostly that is the end of the log. After a few entries in a row many slots are read from one store.
//! *Invariant*: a slot that was read early counts once the entry before it is known, and then as if it had been read after
//! it, if the same stores are responsible: what fills a slot never changes, and what was empty after the walk began was
//! empty after the walk began.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt, MaybeDone, maybe_done, poll_fn};
use model::{Entry, Head};

use super::damaged;
use super::slots::{Found, READ_AHEAD, Slots};
use crate::commit_log::CommitLogError;
use crate::serverless::group::Group;

/// How many slots in a row must have been filled before several are read at once: mostly there is nothing new, or one.
const READ_AHEAD_AFTER: u64 = 2;

/// A slot that is being read.
type Reading = BoxFuture<'static, Result<Found, CommitLogError>>;

/// A way along the log.
#[derive(Debug)]
pub(super) struct Walk {
    slots: Arc<Slots>,
    since: u64,
    head: Option<Head>,
    ahead: VecDeque<Entry>,
    /// Which group it was read from.
    ahead_of: Option<Arc<Group>>,
    /// How many entries were found in a row.
    row: u64,
    early: Option<Early>,
}

/// The reading of a slot that began before it was known what fills the one before.
struct Early {
    slot: u64,
    group: Arc<Group>,
    reading: MaybeDone<Reading>,
}

impl fmt::Debug for Early {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Early").field("slot", &self.slot).finish_non_exhaustive()
    }
}

impl Slots {
    /// Walks along the log from an entry that is in it; from `since` alone where its hash is not known.
    pub(super) fn walk(self: &Arc<Self>, since: u64, head: Option<Head>) -> Walk {
        Walk {
            slots: self.clone(),
            since,
            head,
            ahead: VecDeque::new(),
            ahead_of: None,
            row: 0,
            early: None,
        }
    }
}

impl Walk {
    /// Returns the next entry, or `None` where the log ends.
    pub(super) async fn next(&mut self) -> Result<Option<Entry>, CommitLogError> {
        if self.ahead.is_empty()
            && self.row >= READ_AHEAD_AFTER
            && self.early.is_none()
            && let Some(head) = self.head
        {
            let (group, is_settled) = self.slots.readers_group(self.since + 1)?;
            self.ahead = self.slots.proven(&head, &group, is_settled).await.into();
            // The next few are read one by one: where little is proven, the end is near.
            self.row = if self.ahead.len() as u64 + 1 < READ_AHEAD { 0 } else { self.row };
            self.ahead_of = Some(group);
        }
        let entry = match self.take_ahead() {
            Some(entry) => entry,
            None => match self.read().await? {
                Found::Filled(candidate) => candidate.entry().clone(),
                Found::Nothing | Found::Perhaps => return Ok(None),
            },
        };
        if self.head.is_some_and(|head| !entry.follows(&head)) {
            return Err(damaged(entry.seq, "it does not follow the entry before"));
        }
        self.slots.membership.learn(&entry);
        self.row += 1;
        self.since = entry.seq;
        self.head = Some(entry.head());
        Ok(Some(entry))
    }

    /// Takes an entry that was read ahead, unless the group has changed since: then the rest was read in vain.
    fn take_ahead(&mut self) -> Option<Entry> {
        let group = match self.ahead.is_empty() {
            true => return None,
            false => self.slots.readers_group(self.since + 1).ok()?.0,
        };
        if !self.ahead_of.as_ref().is_some_and(|ahead_of| Arc::ptr_eq(ahead_of, &group)) {
            self.ahead.clear();
        }
        self.ahead.pop_front()
    }

    /// Reads the next slot, or ends its reading where that was begun early.
    async fn read(&mut self) -> Result<Found, CommitLogError> {
        let slot = self.since + 1;
        let (group, is_settled) = self.slots.readers_group(slot)?;
        let is_of_it =
            |early: &Early| early.slot == slot && !is_settled && Arc::ptr_eq(&early.group, &group);
        if let Some(Early { mut reading, .. }) = self.early.take().filter(is_of_it) {
            let early = async move {
                (&mut reading).await;
                Pin::new(&mut reading).take_output().expect("it was waited for")
            };
            // What takes more than reading, or has failed, is tried once more.
            if let Ok(found @ (Found::Filled(_) | Found::Nothing)) =
                self.read_on(early.boxed(), &group, is_settled).await
            {
                self.slots.note(&found);
                return Ok(found);
            }
        }
        self.slots.rumours.forget_from(slot);
        let slots = self.slots.clone();
        let reading = async move { slots.read(slot, true).await };
        self.read_on(reading.boxed(), &group, is_settled).await
    }

    /// Waits until the next slot is read, and begins to read the one after it once a store says that the next is filled.
    async fn read_on(
        &mut self,
        mut reading: Reading,
        group: &Arc<Group>,
        is_settled: bool,
    ) -> Result<Found, CommitLogError> {
        let slot = self.since + 1;
        let may_begin = !is_settled && self.row < READ_AHEAD_AFTER;
        poll_fn(|context| {
            let found = reading.poll_unpin(context);
            if found.is_ready() {
                return found;
            }
            if may_begin && self.early.is_none() && self.slots.rumours.reach(slot) {
                self.early = Some(self.begin_early(slot + 1, group.clone()));
            }
            if let Some(early) = &mut self.early {
                // Whether it is done matters once this slot is read.
                let _is_done = early.reading.poll_unpin(context);
            }
            found
        })
        .await
    }

    fn begin_early(&self, slot: u64, group: Arc<Group>) -> Early {
        let (slots, stores) = (self.slots.clone(), group.clone());
        let reading = async move { slots.read_at(&stores, slot, false).await };
        Early { slot, group, reading: maybe_done(reading.boxed()) }
    }
}
