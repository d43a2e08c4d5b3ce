//! Lets [`PassivePaxos`] and [`DiskPaxos`] run over object stores, so that they can be compared with the slot rounds.
//!
//! No log is made of them: a slot is agreed on, and that is all.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::future::{BoxFuture, Either, FutureExt, select};
use futures_util::stream::{FuturesUnordered, StreamExt};
use model::codec::DecodeError;
use parking_lot::Mutex;
use storage::object_store::list_all;
use storage::{ObjectKey, ObjectStore, PutMode, PutOutcome, StorageError};

use super::candidate::{Candidate, Context, decode_block, encode_block};
use super::disk_paxos::{Block, BlockAnswer, BlockRequest, DiskPaxos};
use super::ppaxos::{ListAnswer, ListRequest, PassivePaxos};
use super::rounds::{Status, Value};
use super::slot_log::Means;
use crate::commit_log::CommitLogError;

/// How long a store may take.
const CALL_PATIENCE: Duration = Duration::from_secs(30);

/// How often a proposer begins anew.
const ROUNDS_MAX: u32 = 40;

/// A store that appends to lists and hands them out: what pPaxos needs, and no more.
#[async_trait]
pub trait AppendList: Send + Sync + Debug {
    /// Appends a message to the list of a slot. After an error it may have been appended.
    async fn append(&self, slot: u64, message: Bytes) -> Result<(), StorageError>;

    /// Returns the list of a slot from a place on; everything that was appended before the call is in it.
    async fn fetch(&self, slot: u64, from: usize) -> Result<Vec<Bytes>, StorageError>;
}

/// Lists made of numbered objects, in a store that creates an object only if it is absent.
#[derive(Debug)]
pub struct NumberedLists {
    store: Arc<dyn ObjectStore>,
    /// How many messages each list has at least.
    lengths: Mutex<BTreeMap<u64, usize>>,
}

impl NumberedLists {
    /// Keeps lists in a store.
    pub fn new(store: Arc<dyn ObjectStore>) -> Self {
        Self { store, lengths: Mutex::default() }
    }

    fn key(slot: u64, place: usize) -> Result<ObjectKey, StorageError> {
        ObjectKey::new(&format!("{}{place:08}", Self::prefix(slot)))
    }

    fn prefix(slot: u64) -> String {
        format!("ppaxos/{slot:020}/")
    }

    fn note(&self, slot: u64, length: usize) {
        let mut lengths = self.lengths.lock();
        let known = lengths.entry(slot).or_default();
        *known = length.max(*known);
    }
}

#[async_trait]
impl AppendList for NumberedLists {
    async fn append(&self, slot: u64, message: Bytes) -> Result<(), StorageError> {
        loop {
            let place = self.lengths.lock().get(&slot).copied().unwrap_or(0);
            let key = Self::key(slot, place)?;
            let outcome = self.store.put(&key, message.clone(), PutMode::IfAbsent).await?;
            self.note(slot, place + 1);
            if outcome == PutOutcome::Written {
                return Ok(());
            }
        }
    }

    async fn fetch(&self, slot: u64, from: usize) -> Result<Vec<Bytes>, StorageError> {
        let mut messages = Vec::new();
        for entry in list_all(&*self.store, &Self::prefix(slot)).await?.into_iter().skip(from) {
            let missing =
                || StorageError::Missing { key: entry.key.clone(), store: self.store.describe() };
            messages.push(self.store.get(&entry.key).await?.ok_or_else(missing)?);
        }
        self.note(slot, from + messages.len());
        Ok(messages)
    }
}

/// What both machines have in common.
trait Machine {
    type Value: Value;
    type Request;
    type Answer;
    const FAILED: fn() -> Self::Answer;

    fn requests(&mut self) -> Vec<(usize, Self::Request)>;
    fn answer(&mut self, store: usize, answer: Self::Answer);
    fn status(&self) -> Status<Self::Value>;
    fn begin_round(&mut self);
}

impl<V: Value> Machine for PassivePaxos<V> {
    type Value = V;
    type Request = ListRequest<V>;
    type Answer = ListAnswer<V>;
    const FAILED: fn() -> ListAnswer<V> = || ListAnswer::Failed;

    fn requests(&mut self) -> Vec<(usize, ListRequest<V>)> {
        self.requests()
    }

    fn answer(&mut self, store: usize, answer: ListAnswer<V>) {
        self.answer(store, answer);
    }

    fn status(&self) -> Status<V> {
        self.status()
    }

    fn begin_round(&mut self) {
        self.retry();
        self.begin_round();
    }
}

impl<V: Value> Machine for DiskPaxos<V> {
    type Value = V;
    type Request = BlockRequest<V>;
    type Answer = BlockAnswer<V>;
    const FAILED: fn() -> BlockAnswer<V> = || BlockAnswer::Failed;

    fn requests(&mut self) -> Vec<(usize, BlockRequest<V>)> {
        self.requests()
    }

    fn answer(&mut self, store: usize, answer: BlockAnswer<V>) {
        self.answer(store, answer);
    }

    fn status(&self) -> Status<V> {
        self.status()
    }

    fn begin_round(&mut self) {
        self.retry();
        self.begin_round();
    }
}

/// Agrees on a slot by pPaxos.
///
/// # Errors
/// [`CommitLogError::Unreachable`] when too few stores answer or too many proposers compete.
pub async fn agree_by_ppaxos(
    lists: &[Arc<dyn AppendList>],
    context: Context<'_>,
    machine: PassivePaxos<Candidate>,
    means: &Means,
) -> Result<Candidate, CommitLogError> {
    let call = |store: usize, request: ListRequest<Candidate>| {
        let list = &lists[store];
        async move {
            match request {
                ListRequest::Append(message) => {
                    list.append(context.slot, context.encode(&message)).await?;
                    Ok(ListAnswer::Appended)
                }
                ListRequest::Fetch(from) => {
                    let messages = list.fetch(context.slot, from).await?;
                    let decoded = messages.iter().map(|bytes| context.decode(bytes));
                    Ok(ListAnswer::Fetched(decoded.collect::<Result<_, _>>()?))
                }
            }
        }
        .boxed()
    };
    drive(machine, call, context.slot, means).await
}

/// Agrees on a slot by Disk Paxos. Only for stores where a write that was given up does not happen later.
///
/// # Errors
/// [`CommitLogError::Unreachable`] when too few stores answer or too many proposers compete.
pub async fn agree_by_disk_paxos(
    stores: &[Arc<dyn ObjectStore>],
    slot: u64,
    client: usize,
    machine: DiskPaxos<Candidate>,
    means: &Means,
) -> Result<Candidate, CommitLogError> {
    let key = move |client| ObjectKey::new(&format!("diskpaxos/{slot:020}/{client:08}"));
    let call = |store: usize, request: BlockRequest<Candidate>| {
        let store = &stores[store];
        async move {
            match request {
                BlockRequest::Write(block) => {
                    let bytes = encode_block(&block);
                    store.put(&key(client)?, bytes, PutMode::Overwrite).await?;
                    Ok(BlockAnswer::Written)
                }
                BlockRequest::Read(other) => {
                    let bytes = store.get(&key(other)?).await?;
                    let block: Option<Block<Candidate>> =
                        bytes.map(|bytes| decode_block(&bytes)).transpose()?;
                    Ok(BlockAnswer::Read(block))
                }
            }
        }
        .boxed()
    };
    drive(machine, call, slot, means).await
}

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
enum CallError {
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error(transparent)]
    Message(#[from] DecodeError),
    #[error("does not answer")]
    Slow,
}

async fn drive<'a, M: Machine>(
    mut machine: M,
    call: impl Fn(usize, M::Request) -> BoxFuture<'a, Result<M::Answer, CallError>>,
    slot: u64,
    means: &Means,
) -> Result<M::Value, CommitLogError> {
    let mut reason = "too many others propose at once".to_owned();
    for round in 0..ROUNDS_MAX {
        let mut calls = FuturesUnordered::new();
        let mut pending: Vec<usize> = Vec::new();
        loop {
            for (store, request) in machine.requests() {
                let limit = means.clock.sleep(CALL_PATIENCE);
                let answer = call(store, request);
                pending.push(store);
                calls.push(async move {
                    match select(answer, limit).await {
                        Either::Left((answer, _)) => (store, answer),
                        Either::Right(_) => (store, Err(CallError::Slow)),
                    }
                });
            }
            if machine.status() != Status::Working {
                break;
            }
            let Some((store, answer)) = calls.next().await else { break };
            pending.retain(|pending| *pending != store);
            machine.answer(
                store,
                answer.unwrap_or_else(|error| {
                    reason = error.to_string();
                    (M::FAILED)()
                }),
            );
        }
        match machine.status() {
            Status::Decided(value) => return Ok(value),
            Status::Outbid => {}
            _ => break,
        }
        for store in pending {
            machine.answer(store, (M::FAILED)());
        }
        means.pause(round).await;
        machine.begin_round();
    }
    Err(CommitLogError::Unreachable { place: format!("slot {slot}"), reason })
}
