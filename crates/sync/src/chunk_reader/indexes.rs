//! Learns which chunks packs hold: by the indexes at their ends, or from packs that come whole anyway.

use std::sync::Arc;

use bytes::Bytes;
use content::pack::{TAIL_LENGTH_GUESS, tail_length_guess};
use content::{PackIndex, TailOutcome, verify_whole};
use futures_util::future::join_all;
use model::{ChunkRef, PackRef};

use super::ahead::Ahead;
use super::{ChunkFetcher, add_chunks, whole_index};
use crate::error::{Result, SyncError};
use crate::state::State;
use crate::state::packs::{ChunkPlace, KnownPack};

/// A pack of at most this many bytes is fetched whole when its index is wanted: what is wanted next is mostly its chunks.
const SMALL_PACK_LENGTH_MAX: u64 = 2 * TAIL_LENGTH_GUESS;

/// Packs of so many bytes together are all here at once, in whatever order they are asked for.
const WITHOUT_ORDER_LENGTH_MAX: u64 = 16 * 1024 * 1024;

/// How many indexes are read at the same time: they are small, and far away it is the waiting that counts.
const INDEXES_AT_ONCE: usize = 16;

/// The index of a pack, and what was fetched to learn it.
pub(super) struct ReadIndex {
    pub(super) index: Arc<PackIndex>,
    /// The whole pack, where it was fetched whole.
    whole: Option<Bytes>,
    /// How many bytes came from the store.
    length: u64,
}

impl ChunkFetcher {
    /// Hears that packs were learned of in the order of their ids, which says nothing about which is needed first.
    pub fn note_unordered_packs(&mut self) {
        self.is_order_unknown = true;
    }

    /// Reads the indexes of all packs that the log names and that were not looked at yet. One that is damaged or gone is
    /// looked at again the next time; until then its chunks are in no pack.
    ///
    /// # Errors
    /// [`SyncError`].
    pub async fn index_packs(&mut self, state: &mut State) -> Result<()> {
        let unindexed = state.unindexed_packs()?;
        self.index_by_tails(state, &unindexed).await
    }

    /// Does the same for files of `wanted` bytes that are going to be fetched. Where that is most of what the packs hold, they are
    /// asked for whole, in the order in which they were written, and [`Self::place`] looks into them as they come.
    ///
    /// # Errors
    /// [`SyncError`].
    pub async fn index_wanted_packs(&mut self, state: &mut State, wanted: u64) -> Result<()> {
        let unindexed = state.unindexed_packs()?;
        let is_large = |pack: &KnownPack| {
            pack.place.inline_seq.is_none() && pack.place.length > SMALL_PACK_LENGTH_MAX
        };
        let (large, small): (Vec<_>, Vec<_>) = unindexed.into_iter().partition(is_large);
        // What nothing shortens is a little longer in packs.
        let length = large.iter().map(|pack| pack.place.length).sum::<u64>();
        let is_most = length <= wanted / 16 * 17;
        let is_order_unknown = std::mem::take(&mut self.is_order_unknown);
        if is_most && (!is_order_unknown || length <= WITHOUT_ORDER_LENGTH_MAX) {
            self.ahead.want_later(large.iter().map(KnownPack::reference));
            self.expected = large;
        } else {
            self.index_by_tails(state, &large).await?;
        }
        self.index_by_tails(state, &small).await
    }

    async fn index_by_tails(&mut self, state: &mut State, packs: &[KnownPack]) -> Result<()> {
        for packs in packs.chunks(INDEXES_AT_ONCE) {
            let mut indexed = Vec::with_capacity(packs.len());
            for (pack, read) in packs.iter().zip(self.read_indexes(state, packs).await) {
                match read {
                    Ok(index) => indexed.push((pack, index)),
                    Err(error) if error.is_of_stored_data() => {}
                    Err(error) => return Err(error),
                }
            }
            state.transaction(|state| {
                indexed.iter().try_for_each(|(pack, index)| add_chunks(state, &pack.id, index))
            })?;
        }
        Ok(())
    }

    /// Looks into packs that have come whole, or waits for one if none has. Where no room is left for more, or one has not
    /// come, the indexes are read as those of other packs are. Returns whether anything was expected.
    ///
    /// # Errors
    /// [`SyncError`].
    pub async fn index_expected(&mut self, state: &mut State) -> Result<bool> {
        if self.expected.is_empty() {
            return Ok(false);
        }
        let has_come = |ahead: &Ahead, pack: &KnownPack| ahead.arrived(pack.id).is_some();
        if !self.expected.iter().any(|pack| has_come(&self.ahead, pack)) {
            self.ahead.wait_for_any().await;
        }
        let expected = std::mem::take(&mut self.expected);
        let (come, rest): (Vec<_>, Vec<_>) =
            expected.into_iter().partition(|pack| has_come(&self.ahead, pack));
        let (waited_for, failed): (Vec<_>, Vec<_>) =
            rest.into_iter().partition(|pack| self.ahead.is_awaited(pack.id));
        self.expected = waited_for;
        let mut indexed = Vec::with_capacity(come.len());
        for pack in &come {
            let bytes = self.ahead.arrived(pack.id).expect("it has come");
            // The store has compared the hash of the pack already.
            let index = whole_index(pack, bytes, &self.guard).map(Arc::new);
            match index {
                Ok(index) => indexed.push((pack, index)),
                Err(error) if error.is_of_stored_data() => {}
                Err(error) => return Err(error),
            }
        }
        state.transaction(|state| {
            indexed.iter().try_for_each(|(pack, index)| add_chunks(state, &pack.id, index))
        })?;
        for (pack, index) in indexed {
            self.keep_index(pack.number, index);
        }
        self.index_by_tails(state, &failed).await?;
        if come.is_empty() && failed.is_empty() && !self.ahead.is_under_way() {
            // All room is taken by packs that are needed later, if at all.
            self.ahead.want_nothing();
            let rest = std::mem::take(&mut self.expected);
            self.index_by_tails(state, &rest).await?;
        }
        Ok(true)
    }

    /// Asks for packs of which it is only said that the log names them, as many as may be fetched ahead.
    pub fn fetch_rumoured(&mut self, packs: impl IntoIterator<Item = PackRef>) {
        self.ahead.want_rumoured(packs);
    }

    /// Keeps what was fetched because of rumours if the log is known to name it, and forgets the rest.
    ///
    /// # Errors
    /// [`SyncError::Database`].
    pub fn judge_rumours(&mut self, state: &State) -> Result<()> {
        self.ahead.judge_rumours(|id| state.knows_pack(id))
    }

    /// Returns whether every pack that is wanted was asked for.
    pub fn has_asked_for_all(&self) -> bool {
        !self.ahead.is_anything_wanted()
    }

    /// Returns whether packs are to come whose indexes are not known.
    pub fn expects_packs(&self) -> bool {
        !self.expected.is_empty()
    }

    /// Does something else, and goes on fetching ahead meanwhile.
    pub async fn beside<T>(&mut self, work: impl Future<Output = T>) -> T {
        self.ahead.beside(work).await
    }

    /// Returns where a chunk rests. It may be in a pack that is expected: then that is waited for if `waits`, or nothing is
    /// returned.
    ///
    /// # Errors
    /// [`SyncError::ChunkMissing`], and what reading the index of a pack may fail with.
    pub async fn place(
        &mut self,
        state: &mut State,
        chunk: &ChunkRef,
        waits: bool,
    ) -> Result<Option<ChunkPlace>> {
        loop {
            if let Some(place) = state.chunk(&chunk.id)? {
                return Ok(Some(place));
            }
            if self.expected.is_empty() {
                return Err(SyncError::ChunkMissing(chunk.id));
            }
            let has_come = |pack: &KnownPack| self.ahead.arrived(pack.id).is_some();
            if !waits && !self.expected.iter().any(has_come) {
                return Ok(None);
            }
            self.index_expected(state).await?;
        }
    }

    /// Returns the index of a pack whose rest may be damaged.
    ///
    /// # Errors
    /// [`SyncError`].
    pub async fn index_of_damaged(&self, pack: &KnownPack) -> Result<Arc<PackIndex>> {
        Ok(self.read_tail(pack).await?.index)
    }

    /// Reads the indexes of packs, all at the same time.
    pub(super) async fn read_indexes(
        &mut self,
        state: &State,
        packs: &[KnownPack],
    ) -> Vec<Result<Arc<PackIndex>>> {
        let mut ahead = self.ahead.lend();
        let coming: Vec<_> = packs.iter().map(|pack| pack.id).filter(|id| ahead.has(*id)).collect();
        ahead.wait(&coming).await;
        let arrived = packs.iter().map(|pack| ahead.arrived(pack.id).cloned()).collect::<Vec<_>>();
        let reads = packs.iter().zip(arrived).map(|(pack, arrived)| async {
            match arrived {
                // It is counted by whoever takes it.
                Some(bytes) => {
                    let index = Arc::new(whole_index(pack, &bytes, &self.guard)?);
                    Ok(ReadIndex { index, whole: None, length: 0 })
                }
                None => self.read_index(state, pack).await,
            }
        });
        let reads = ahead.beside(join_all(reads)).await;
        self.ahead = ahead;
        let keep = |(pack, read): (&KnownPack, Result<ReadIndex>)| {
            read.map(|read| self.keep_read(pack, read))
        };
        packs.iter().zip(reads).map(keep).collect()
    }

    async fn read_index(&self, state: &State, pack: &KnownPack) -> Result<ReadIndex> {
        if let Some(index) = self.indexes.get(&pack.number) {
            return Ok(ReadIndex { index: index.clone(), whole: None, length: 0 });
        }
        if pack.place.inline_seq.is_some() {
            let (bytes, is_fetched) = self.inline_pack(state, pack).await?;
            let index = Arc::new(verify_whole(pack.id, &bytes, &self.guard)?);
            // What is wanted next is mostly its chunks.
            let length = if is_fetched { bytes.len() as u64 } else { 0 };
            return Ok(ReadIndex { index, whole: is_fetched.then_some(bytes), length });
        }
        if pack.place.length <= SMALL_PACK_LENGTH_MAX {
            return self.read_whole(pack).await;
        }
        match self.read_tail(pack).await {
            Err(error) if error.is_of_stored_data() && self.store.mend_pack(pack.id).await => {
                self.read_whole(pack).await
            }
            result => result,
        }
    }

    /// Reads a pack as a whole.
    pub(super) async fn read_whole(&self, pack: &KnownPack) -> Result<ReadIndex> {
        let bytes = self.store.read_pack(pack.id).await?;
        let index = Arc::new(whole_index(pack, &bytes, &self.guard)?);
        let length = bytes.len() as u64;
        Ok(ReadIndex { index, whole: Some(bytes), length })
    }

    /// Reads the index of a pack from its end.
    async fn read_tail(&self, pack: &KnownPack) -> Result<ReadIndex> {
        let mut read = 0;
        let mut length = tail_length_guess(pack.place.length);
        loop {
            let tail = self.store.read_pack_tail(pack.id, length).await?;
            read += tail.len() as u64;
            match PackIndex::from_tail(&tail, pack.place.length, &self.guard)? {
                TailOutcome::Complete(index) => {
                    return Ok(ReadIndex { index: Arc::new(index), whole: None, length: read });
                }
                // A tail shorter than asked for cannot grow: the pack is not what the log says.
                TailOutcome::NeedMore { bytes } if bytes > length => length = bytes,
                TailOutcome::NeedMore { .. } => return Err(SyncError::PackMissing(pack.id)),
            }
        }
    }

    pub(super) fn keep_read(&mut self, pack: &KnownPack, read: ReadIndex) -> Arc<PackIndex> {
        self.fetched_bytes += read.length;
        if let Some(bytes) = read.whole {
            self.keep_pack(pack.number, bytes);
        }
        self.keep_index(pack.number, read.index.clone());
        read.index
    }
}
