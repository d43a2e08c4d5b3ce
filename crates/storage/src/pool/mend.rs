//! Giving an object back what stores have lost or damaged of it.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::join_all;
use futures_util::{StreamExt, stream};

use crate::blocking::off_runtime;
use crate::content_store::hash_of;
use crate::error::{Result, StorageError};
use crate::key::ObjectKey;
use crate::object_store::PutMode;

use super::Shared;
use super::ask::Trail;
use super::block::{Block, BlockCode, encode};
use super::known::Known;
use super::piece::{Piece, Placed, arrange};
use super::read::{any_combined, liars};
use super::write::{Cut, Way};

/// How many objects are mended at once.
const MENDS_AT_ONCE: usize = 8;

impl Shared {
    /// Compares all that the stores have of an object with its hash, and rewrites what is wrong or missing.
    pub(crate) async fn mend(self: &Arc<Self>, key: &ObjectKey) -> Result<bool> {
        let hash = self.object(key)?;
        self.known.lock().forget(key);
        let mut trail = Trail::default();
        let located = self.locate(key, &mut trail).await;
        let present: Vec<Placed> = located.into_iter().map(|(placed, _)| placed).collect();
        let found = self.inspect(key, hash, &present).await;
        trail.failed.extend(found.failed);
        let Some(bytes) = found.bytes else {
            trail.wrong.extend(present);
            return self.verdict::<()>(key, trail).map(|_| false);
        };
        self.write_back(key, hash, bytes, &found.good, &found.wrong).await;
        Ok(true)
    }

    /// Reads pieces of an object and compares each with what it should be.
    pub(crate) async fn inspect(
        self: &Arc<Self>,
        key: &ObjectKey,
        hash: [u8; 32],
        present: &[Placed],
    ) -> Inspection {
        let mut found = Inspection::default();
        let mut blocks: BTreeMap<BlockCode, Vec<(Placed, Block)>> = BTreeMap::new();
        let reads = present.iter().map(|&placed| async move {
            (placed, self.fetch(placed, key, self.size_guess()).await)
        });
        for (placed, result) in join_all(reads).await {
            let bytes = match result {
                Ok(Some(bytes)) => bytes,
                Ok(None) => continue,
                Err(error) => {
                    found.failed.push((placed.0, error));
                    continue;
                }
            };
            found.bytes_read += bytes.len() as u64;
            match placed.1 {
                Piece::Copy if hash_of(bytes.clone()).await.is_ok_and(|is| is == hash) => {
                    found.good.push(placed);
                    found.bytes = Some(bytes);
                }
                Piece::Copy => found.wrong.push(placed),
                Piece::Block(name) => match Block::decode(&bytes, &hash, name) {
                    Some(block) => blocks.entry(name.code).or_default().push((placed, block)),
                    None => found.wrong.push(placed),
                },
            }
        }
        for (code, blocks) in blocks {
            found.judge(code, hash, &blocks).await;
        }
        found
    }

    /// Mends behind the reader, who has found that something is wrong.
    pub(crate) fn mend_later(self: &Arc<Self>, key: &ObjectKey, bytes: Bytes, wrong: Vec<Placed>) {
        if self.backlog.running() >= MENDS_AT_ONCE {
            // Nothing is kept in memory for a store that cannot follow the readers.
            self.backlog.owe(key);
            return;
        }
        let (shared, key) = (Arc::clone(self), key.clone());
        let owed = Some(key.clone());
        self.backlog.keep(owed, Box::pin(async move { shared.heal(&key, bytes, &wrong).await }));
    }

    /// Writes what homes lack, and what is known to be wrong, with the verified bytes of an object.
    async fn heal(self: &Arc<Self>, key: &ObjectKey, bytes: Bytes, wrong: &[Placed]) {
        let Some(hash) = key.content_hash() else { return };
        let length = bytes.len();
        let located = self.locate(key, &mut Trail::default()).await;
        let present: Vec<Placed> = located.into_iter().map(|(placed, _)| placed).collect();
        let good: Vec<Placed> =
            present.iter().filter(|placed| !wrong.contains(placed)).copied().collect();
        let wrong: Vec<Placed> =
            wrong.iter().filter(|placed| present.contains(placed)).copied().collect();
        self.write_back(key, hash, bytes, &good, &wrong).await;
        // Blocks may be at home under other numbers than they would get today.
        let kept = arrange(&self.order(&hash), self.code(), &present).kept;
        if self.code().is_some_and(|code| kept.len() == usize::from(code.total)) {
            self.known.lock().insert(key, Known { length, blocks: kept });
        } else {
            self.known.lock().forget(key);
        }
    }

    async fn write_back(
        self: &Arc<Self>,
        key: &ObjectKey,
        hash: [u8; 32],
        bytes: Bytes,
        good: &[Placed],
        wrong: &[Placed],
    ) {
        let present: Vec<Placed> = good.iter().chain(wrong).copied().collect();
        let mut targets = arrange(&self.order(&hash), self.code(), &present).lacking;
        targets.extend_from_slice(wrong);
        if targets.is_empty() {
            self.backlog.pay(key);
            return;
        }
        let failed = self.write_pieces(key, hash, bytes, &targets).await;
        if failed == 0 {
            self.backlog.pay(key);
        } else {
            self.backlog.owe(key);
        }
    }

    /// Writes pieces of an object over what is there. Returns how many stores failed.
    pub(crate) async fn write_pieces(
        self: &Arc<Self>,
        key: &ObjectKey,
        hash: [u8; 32],
        bytes: Bytes,
        targets: &[Placed],
    ) -> usize {
        let Ok(cuts) = cut_all(key, hash, &bytes, targets).await else { return targets.len() };
        let writes = targets.iter().map(|(member, piece)| {
            let cut = cuts.get(piece).expect("every target was cut");
            self.put_piece(*member, cut, Way::Put(PutMode::Overwrite))
        });
        join_all(writes).await.into_iter().filter(Result::is_err).count()
    }

    /// Ends what is under way but at stores that hang, and gives the homes what they were not given.
    pub(crate) async fn settle(self: &Arc<Self>) {
        self.end_hold();
        self.drain_answering().await;
        self.sync_late().await;
        if !self.backlog.owed().is_empty() {
            self.ask_silent().await;
        }
        self.pay_owed().await;
        self.drain_answering().await;
    }

    /// Gives the homes what they were not given, as far as they answer.
    pub(crate) async fn pay_owed(self: &Arc<Self>) {
        let owed = stream::iter(self.backlog.owed());
        owed.for_each_concurrent(MENDS_AT_ONCE, |key| self.give_owed(key)).await;
    }

    async fn give_owed(self: &Arc<Self>, key: ObjectKey) {
        let Some(hash) = key.content_hash() else { return self.backlog.pay(&key) };
        let homes = self.order(&hash).homes().to_vec();
        if homes.iter().any(|home| self.members[*home].with_pulse(|pulse| pulse.is_silent())) {
            return;
        }
        let mut trail = Trail::default();
        let present = self.locate(&key, &mut trail).await;
        if trail.failed.iter().any(|(member, _)| homes.contains(member)) {
            // Nothing is read for a store that is away.
            return;
        }
        let present: Vec<Placed> = present.into_iter().map(|(placed, _)| placed).collect();
        if !present.is_empty()
            && arrange(&self.order(&hash), self.code(), &present).lacking.is_empty()
        {
            return self.backlog.pay(&key);
        }
        let mut trail = Trail::default();
        match self.find(&key, &mut trail).await {
            Ok(Some(bytes)) => self.heal(&key, bytes, &trail.wrong).await,
            // It was deleted since.
            Ok(None) => self.backlog.pay(&key),
            Err(error) => tracing::debug!(%key, %error, "an object stays owed"),
        }
    }
}

/// What pieces of an object turned out to be.
#[derive(Debug, Default)]
pub(crate) struct Inspection {
    pub(crate) good: Vec<Placed>,
    pub(crate) wrong: Vec<Placed>,
    pub(crate) failed: Vec<(usize, StorageError)>,
    /// The object, if the pieces give it back.
    pub(crate) bytes: Option<Bytes>,
    pub(crate) bytes_read: u64,
}

impl Inspection {
    /// Judges blocks that are right by their own account: by the object, when they or copies give it back.
    async fn judge(&mut self, code: BlockCode, hash: [u8; 32], blocks: &[(Placed, Block)]) {
        if self.bytes.is_none() {
            self.bytes = any_combined(code, hash, blocks).await.ok().flatten();
        }
        let wrong = match &self.bytes {
            Some(bytes) => liars(code, hash, bytes, blocks).await.unwrap_or_default(),
            // Too few to say more.
            None => Vec::new(),
        };
        let placed = blocks.iter().map(|(placed, _)| *placed);
        self.good.extend(placed.filter(|placed| !wrong.contains(placed)));
        self.wrong.extend(wrong);
    }
}

/// Cuts an object into the pieces that are to be written.
async fn cut_all(
    key: &ObjectKey,
    hash: [u8; 32],
    bytes: &Bytes,
    targets: &[Placed],
) -> Result<BTreeMap<Piece, Cut>> {
    let mut cuts = BTreeMap::new();
    let mut blocks: BTreeMap<BlockCode, Vec<Bytes>> = BTreeMap::new();
    for (_, piece) in targets {
        let bytes = match piece {
            Piece::Copy => bytes.clone(),
            Piece::Block(name) => {
                let encoded = match blocks.entry(name.code) {
                    Entry::Occupied(encoded) => encoded.into_mut(),
                    Entry::Vacant(entry) => {
                        let (code, bytes) = (name.code, bytes.clone());
                        entry.insert(off_runtime(move || Ok(encode(code, hash, &bytes))).await?)
                    }
                };
                encoded[usize::from(name.index)].clone()
            }
        };
        cuts.insert(*piece, Cut { piece: *piece, key: piece.key(key), bytes });
    }
    Ok(cuts)
}
