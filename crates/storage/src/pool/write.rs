//! Writing: to all homes at once, to the next store where a home fails, answered when enough is durable.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::{BoxFuture, Either, select};
use futures_util::stream::FuturesUnordered;
use tokio::sync::oneshot;

use crate::blocking::off_runtime;
use crate::error::{Result, StorageError};
use crate::key::ObjectKey;
use crate::object_store::{ObjectStore, PutMode, PutOutcome};

use super::Shared;
use super::block::encode;
use super::deferred::DeferredObject;
use super::member::Direction;
use super::piece::Piece;

/// A home is awaited at least so long before a substitute is given its piece.
const PATIENCE_MIN: Duration = Duration::from_secs(2);

/// A home may take so many times as long as expected before that.
const PATIENCE_FACTOR: u32 = 4;

/// How a piece is handed to its store.
#[derive(Debug, Clone)]
pub(crate) enum Way {
    /// Durable on return.
    Put(PutMode),
    /// Durable after the next sync.
    Defer(Arc<DeferredObject>),
}

/// A piece and its bytes.
#[derive(Debug, Clone)]
pub(crate) struct Cut {
    pub(crate) piece: Piece,
    pub(crate) key: ObjectKey,
    pub(crate) bytes: Bytes,
}

impl Shared {
    pub(crate) async fn put(
        self: &Arc<Self>,
        key: &ObjectKey,
        bytes: Bytes,
        mode: PutMode,
    ) -> Result<PutOutcome> {
        self.write(key, bytes, Way::Put(mode)).await
    }

    /// Writes an object; what is still under way when enough is durable goes on in the background.
    pub(crate) async fn write(
        self: &Arc<Self>,
        key: &ObjectKey,
        bytes: Bytes,
        way: Way,
    ) -> Result<PutOutcome> {
        let hash = self.object(key)?;
        let order = self.order(&hash);
        let cuts = self.cut(key, hash, bytes).await?;
        let homes: Vec<usize> = order.homes().to_vec();
        // The cuts in the order of the homes.
        let cuts = homes.iter().map(|&home| match order.index_of(home) {
            None => cuts[0].clone(),
            Some(index) => cuts[usize::from(index)].clone(),
        });
        let (signal, answer) = oneshot::channel();
        let write = Write {
            key: key.clone(),
            cuts: cuts.collect(),
            way,
            substitutes: order.substitutes().iter().copied().collect(),
            signal: Some(signal),
            stored: BTreeSet::new(),
            is_written: false,
            failed: Vec::new(),
            is_owed: false,
            running: FuturesUnordered::new(),
            shared: Arc::clone(self),
        };
        let work: BoxFuture<'static, ()> = Box::pin(write.run(homes));
        match select(answer, work).await {
            Either::Left((result, work)) => {
                self.backlog.keep(Some(key.clone()), work);
                result
            }
            Either::Right(((), answer)) => answer.await,
        }
        .expect("a write answers before it ends")
    }

    /// Returns the pieces of an object: one copy, or all blocks.
    pub(crate) async fn cut(
        &self,
        key: &ObjectKey,
        hash: [u8; 32],
        bytes: Bytes,
    ) -> Result<Vec<Cut>> {
        let Some(code) = self.code() else {
            return Ok(vec![Cut { piece: Piece::Copy, key: key.clone(), bytes }]);
        };
        let blocks = off_runtime(move || Ok(encode(code, hash, &bytes))).await?;
        let cut = |(name, bytes)| {
            let piece = Piece::Block(name);
            Cut { piece, key: piece.key(key), bytes }
        };
        Ok(code.names().zip(blocks).map(cut).collect())
    }

    /// Gives a store a piece.
    pub(crate) async fn put_piece(&self, member: usize, cut: &Cut, way: Way) -> Result<PutOutcome> {
        let store = &self.members[member].store;
        let length = cut.bytes.len() as u64;
        let put = async {
            let turn = self.members[member].writes.acquire().await;
            let _turn = turn.expect("it is never closed");
            match &way {
                Way::Put(mode) => put_whole(store.as_ref(), cut, *mode).await,
                Way::Defer(object) => {
                    store.put_deferred(&cut.key, cut.bytes.clone()).await?;
                    self.note_deferred(object, member, cut.piece);
                    Ok(PutOutcome::Written)
                }
            }
        };
        self.call(member, Direction::Write, length, put, |_| length).await
    }
}

/// Puts a piece; one that is there with another length was torn, and is replaced.
async fn put_whole(store: &dyn ObjectStore, cut: &Cut, mode: PutMode) -> Result<PutOutcome> {
    if mode == PutMode::IfAbsent {
        match store.put(&cut.key, cut.bytes.clone(), mode).await {
            Ok(PutOutcome::Written) => return Ok(PutOutcome::Written),
            Ok(PutOutcome::Exists) => {
                if store.size(&cut.key).await? == Some(cut.bytes.len() as u64) {
                    return Ok(PutOutcome::Exists);
                }
            }
            Err(StorageError::Unsupported { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    store.put(&cut.key, cut.bytes.clone(), PutMode::Overwrite).await
}

/// A write that is under way.
struct Write {
    shared: Arc<Shared>,
    key: ObjectKey,
    /// One for each home.
    cuts: Vec<Cut>,
    way: Way,
    /// Who takes what a home does not; last those homes that were left out at first.
    substitutes: VecDeque<usize>,
    signal: Option<oneshot::Sender<Result<PutOutcome>>>,
    /// Which of the cuts are durable somewhere.
    stored: BTreeSet<usize>,
    is_written: bool,
    failed: Vec<(usize, StorageError)>,
    /// Whether a home was left without its piece.
    is_owed: bool,
    running: FuturesUnordered<BoxFuture<'static, (usize, usize, Result<PutOutcome>)>>,
}

impl Write {
    async fn run(mut self, homes: Vec<usize>) {
        self.start_all(&homes);
        let mut is_late = self.patience();
        loop {
            match select(self.running.next(), is_late).await {
                Either::Left((None, _)) => break,
                Either::Left((Some((number, member, result)), rest)) => {
                    is_late = rest;
                    self.ended(number, member, result);
                }
                Either::Right(_) => {
                    // Once there is enough, a slow home has all the time it wants.
                    let late = (0..self.cuts.len()).find(|number| !self.stored.contains(number));
                    if let (Some(number), true) = (late, self.signal.is_some())
                        && !self.start_substitute(number)
                        && self.stored.len() >= self.shared.least()
                    {
                        // Nobody else is left to be asked, and who is silent may be so for long.
                        self.is_owed = true;
                        self.answer();
                    }
                    is_late = self.patience();
                }
            }
        }
        // No store is left that has not been asked. What there is must do, if it gives the object back.
        if self.stored.len() >= self.shared.least() {
            self.answer();
        }
        if let Some(signal) = self.signal.take() {
            // The writer may have gone.
            let _ = signal.send(Err(self.shared.combine(std::mem::take(&mut self.failed))));
        }
        if self.is_owed {
            self.shared.backlog.owe(&self.key);
        }
    }

    /// Starts with the homes that can be expected to take it, and with substitutes for those that fail lately.
    fn start_all(&mut self, homes: &[usize]) {
        let (mut spared, mut replaced) = (Vec::new(), Vec::new());
        for (number, &home) in homes.iter().enumerate() {
            let member = &self.shared.members[home];
            let is_failing = self.shared.is_failing(home, Direction::Write);
            if !is_failing && member.written_under_way() <= self.shared.options.under_way_max {
                self.start(number, home);
                continue;
            }
            self.is_owed = true;
            if is_failing && self.start_substitute(number) {
                replaced.push(home);
            } else {
                spared.push((number, home));
            }
        }
        // Of those that hang nobody expects more than what cannot be done without.
        let is_silent =
            |home: usize| self.shared.members[home].with_pulse(|pulse| pulse.is_silent());
        spared.sort_by_key(|(_, home)| !is_silent(*home));
        while let Some(&(number, home)) = spared.last()
            && self.running.len()
                < if is_silent(home) { self.shared.least() } else { self.shared.enough() }
        {
            spared.pop();
            self.start(number, home);
        }
        self.substitutes.extend(replaced);
        self.substitutes.extend(spared.into_iter().map(|(_, home)| home));
    }

    fn start(&self, number: usize, member: usize) {
        let (shared, way) = (Arc::clone(&self.shared), self.way.clone());
        let cut = self.cuts[number].clone();
        self.running.push(Box::pin(async move {
            (number, member, shared.put_piece(member, &cut, way).await)
        }));
    }

    fn start_substitute(&mut self, number: usize) -> bool {
        let Some(member) = self.substitutes.pop_front() else { return false };
        self.start(number, member);
        true
    }

    fn ended(&mut self, number: usize, member: usize, result: Result<PutOutcome>) {
        match result {
            Ok(outcome) => {
                self.stored.insert(number);
                self.is_written |= outcome == PutOutcome::Written;
                if self.stored.len() >= self.shared.enough() {
                    self.answer();
                }
            }
            Err(error) => {
                self.failed.push((member, error));
                self.is_owed = true;
                if !self.stored.contains(&number) {
                    self.start_substitute(number);
                }
            }
        }
    }

    /// Tells the writer that the object is stored, unless that was done.
    fn answer(&mut self) {
        let Some(signal) = self.signal.take() else { return };
        let outcome = if self.is_written { PutOutcome::Written } else { PutOutcome::Exists };
        // The writer may have gone.
        let _ = signal.send(Ok(outcome));
    }

    fn patience(&self) -> BoxFuture<'static, ()> {
        let now = self.shared.clock.elapsed();
        let bytes = self.cuts.iter().map(|cut| cut.bytes.len() as u64).max().unwrap_or_default();
        let members = self.shared.members.iter();
        let expected = members
            .map(|member| member.expected(member.expectation(bytes), now))
            .min()
            .unwrap_or_default();
        self.shared.clock.sleep((expected * PATIENCE_FACTOR).max(PATIENCE_MIN))
    }
}
