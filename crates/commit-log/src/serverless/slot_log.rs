//! The slot log: the commit after entry *n* is whatever stands in slot *n* + 1 of a store that creates an object
//! only if it is absent.
//!
//! *Participants*: any number of devices, and one passive store whose probe found create-if-absent and
//! read-after-write. *Goals*: one request per commit where nobody competes; no lock, no lease, no clock.
//! *Non-goals*: surviving the loss of the store (that takes several, with the rounds of `docs/design/commit-log.md`).
//! *Invariants*: a slot is written once and never changes; slot *n* exists only if slot *n* - 1 does; an entry
//! names the hash of the one before. So whoever creates slot *n* + 1 has read slot *n*, and the order is total.
//!
//! A put that timed out may have succeeded: the device that asks again finds its own operation id in the slot.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::{StreamExt, unfold};
use model::checkpoint::Checkpoint;
use model::codec::{decode_message, encode_message};
use model::commit::COMMIT_LENGTH_MAX;
use model::wire::{Refusal, RefusalKind};
use model::{Clock, Commit, Entry, Genesis, Head};
use parking_lot::Mutex;
use storage::{ObjectKey, ObjectStore, PutMode, PutOutcome};

use crate::commit_log::{CommitLog, CommitLogError, EntryStream};
use crate::envelope;

/// How often a subscription looks into the next slot of a passive store, at first and when nothing has happened.
const POLL_FIRST: Duration = Duration::from_millis(50);
const POLL_LAST: Duration = Duration::from_secs(5);

/// The longest checkpoint: a head and two roots.
const CHECKPOINT_LENGTH_MAX: usize = 1024;

/// How many slots are read at once when catching up.
const READ_AHEAD: u64 = 8;

/// A log in the slots of one store.
#[derive(Debug)]
pub struct SlotCommitLog {
    store: Arc<dyn ObjectStore>,
    clock: Arc<dyn Clock>,
    genesis: Genesis,
    /// An entry that is known to be in the log; where looking for the head starts.
    known: Arc<Mutex<Head>>,
}

impl SlotCommitLog {
    /// Makes the log of a new workspace, or opens it where exactly this genesis is there already.
    ///
    /// # Errors
    /// [`CommitLogError`]; another genesis under this scope is [`CommitLogError::Damaged`].
    pub async fn create(
        store: Arc<dyn ObjectStore>,
        clock: Arc<dyn Clock>,
        genesis: Genesis,
    ) -> Result<Self, CommitLogError> {
        let bytes = Bytes::from(encode_message(&genesis));
        store.put(&ObjectKey::genesis(), bytes, PutMode::IfAbsent).await?;
        match Self::open(store, clock).await? {
            Some(log) if log.genesis == genesis => Ok(log),
            _ => Err(damaged(0, "the store holds another workspace")),
        }
    }

    /// Opens the log that a store holds, if it holds one.
    ///
    /// # Errors
    /// [`CommitLogError`].
    pub async fn open(
        store: Arc<dyn ObjectStore>,
        clock: Arc<dyn Clock>,
    ) -> Result<Option<Self>, CommitLogError> {
        let Some(bytes) = store.get(&ObjectKey::genesis()).await? else { return Ok(None) };
        let genesis = decode_message(&bytes);
        let genesis = genesis
            .map_err(|source| CommitLogError::Message { place: store.describe(), source })?;
        Ok(Some(Self::with_genesis(store, clock, genesis)))
    }

    /// Opens the log of a workspace whose genesis the device already has, without asking the store.
    pub fn with_genesis(
        store: Arc<dyn ObjectStore>,
        clock: Arc<dyn Clock>,
        genesis: Genesis,
    ) -> Self {
        let known = Arc::new(Mutex::new(genesis.head()));
        Self { store, clock, genesis, known }
    }

    async fn slot(&self, seq: u64) -> Result<Option<Entry>, CommitLogError> {
        read_slot(&*self.store, seq).await
    }

    /// Makes sure that the log still has the entry that the device has seen: a store that was restored from an
    /// older copy does not, and a slot written behind the gap would be lost to everybody else.
    async fn confirm(&self, seen: Head) -> Result<(), CommitLogError> {
        let lost = || {
            let message =
                format!("the log does not have entry {} that this device has seen", seen.seq);
            CommitLogError::Refused(Refusal::new(RefusalKind::HistoryLost, message))
        };
        let (key, known) = if seen.seq == 0 {
            (ObjectKey::genesis(), seen == self.genesis.head())
        } else {
            (ObjectKey::log_slot(seen.seq, 0), self.known.lock().seq >= seen.seq)
        };
        if !known {
            let entry = self.slot(seen.seq).await?.filter(|entry| entry.head() == seen);
            self.remember(entry.ok_or_else(lost)?.head());
        } else if self.store.size(&key).await?.is_none() {
            return Err(lost());
        }
        Ok(())
    }

    /// Remembers an entry that is in the log.
    fn remember(&self, head: Head) {
        let mut known = self.known.lock();
        if head.seq > known.seq {
            *known = head;
        }
    }

    /// Walks from `head` to the end of the log; `visit` may stop the walk by returning false.
    async fn walk(
        &self,
        mut head: Head,
        mut visit: impl FnMut(&Entry) -> bool + Send,
    ) -> Result<Head, CommitLogError> {
        while let Some(entry) = self.slot(head.seq + 1).await? {
            if !entry.follows(&head) {
                return Err(damaged(entry.seq, "it does not follow the entry before"));
            }
            head = entry.head();
            if !visit(&entry) {
                break;
            }
        }
        self.remember(head);
        Ok(head)
    }
}

async fn read_slot(store: &dyn ObjectStore, seq: u64) -> Result<Option<Entry>, CommitLogError> {
    let Some(bytes) = store.get(&ObjectKey::log_slot(seq, 0)).await? else { return Ok(None) };
    // An entry is a commit and a few bytes more.
    let entry: Entry = envelope::unwrap_at_rest(&bytes, COMMIT_LENGTH_MAX + 1024)
        .map_err(|error| damaged(seq, &error.to_string()))?;
    if entry.seq != seq {
        return Err(damaged(seq, "its slot holds another entry"));
    }
    Ok(Some(entry))
}

fn damaged(seq: u64, reason: &str) -> CommitLogError {
    CommitLogError::Damaged { seq, reason: reason.to_owned() }
}

#[async_trait]
impl CommitLog for SlotCommitLog {
    fn genesis(&self) -> &Genesis {
        &self.genesis
    }

    async fn commit(&self, commit: &Commit) -> Result<Head, CommitLogError> {
        self.confirm(commit.seen).await?;
        // Everything after the head that the device had seen is looked at, so that an earlier attempt is found.
        let mut head = commit.seen;
        loop {
            let entry = Entry { seq: head.seq + 1, previous: head.hash, commit: commit.clone() };
            let bytes = Bytes::from(envelope::wrap_at_rest(&entry));
            let key = ObjectKey::log_slot(entry.seq, 0);
            if self.store.put(&key, bytes, PutMode::IfAbsent).await? == PutOutcome::Written {
                self.remember(entry.head());
                return Ok(entry.head());
            }
            let mut own = None;
            head = self
                .walk(head, |entry| {
                    if entry.commit.op_id == commit.op_id {
                        own = Some(entry.head());
                    }
                    own.is_none()
                })
                .await?;
            if let Some(own) = own {
                return Ok(own);
            }
        }
    }

    async fn head(&self) -> Result<Head, CommitLogError> {
        let known = *self.known.lock();
        self.walk(known, |_| true).await
    }

    async fn entries(&self, since: u64, length_max: u64) -> Result<Vec<Entry>, CommitLogError> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut length = 0;
        loop {
            let next = since + entries.len() as u64 + 1;
            // The first read stands alone: mostly there is nothing new, and one request tells.
            let count = if entries.is_empty() { 1 } else { READ_AHEAD };
            let slots = (next..next + count).map(|seq| self.slot(seq));
            for entry in futures_util::future::try_join_all(slots).await? {
                let Some(entry) = entry else { return Ok(entries) };
                length += encode_message(&entry).len() as u64;
                if length > length_max && !entries.is_empty() {
                    return Ok(entries);
                }
                entries.push(entry);
            }
        }
    }

    async fn subscribe(&self, since: u64) -> Result<EntryStream, CommitLogError> {
        let (store, clock) = (self.store.clone(), self.clock.clone());
        let state = Some((store, clock, since));
        Ok(unfold(state, |state| async move {
            let (store, clock, last) = state?;
            let mut pause = POLL_FIRST;
            loop {
                match read_slot(&*store, last + 1).await {
                    Ok(Some(entry)) => return Some((Ok(entry), Some((store, clock, last + 1)))),
                    Err(error) if !error.is_retryable() => return Some((Err(error), None)),
                    Ok(None) | Err(_) => clock.sleep(pause).await,
                }
                pause = (pause * 2).min(POLL_LAST);
            }
        })
        .boxed())
    }

    async fn checkpoint(&self) -> Result<Option<Checkpoint>, CommitLogError> {
        let list = storage::object_store::list_all(&*self.store, ObjectKey::CHECKPOINT).await?;
        let Some(newest) = list.last() else { return Ok(None) };
        let Some(bytes) = self.store.get(&newest.key).await? else { return Ok(None) };
        let decoded = envelope::unwrap_at_rest(&bytes, CHECKPOINT_LENGTH_MAX);
        decoded
            .map(Some)
            .map_err(|source| CommitLogError::Message { place: self.store.describe(), source })
    }

    async fn publish_checkpoint(&self, checkpoint: &Checkpoint) -> Result<(), CommitLogError> {
        let key = ObjectKey::checkpoint(checkpoint.head.seq);
        let bytes = Bytes::from(envelope::wrap_at_rest(checkpoint));
        self.store.put(&key, bytes, PutMode::IfAbsent).await?;
        Ok(())
    }
}
