//! Brings new packs to the store: how many are on their way at once, and which of them travel inside a commit.

use std::collections::HashSet;
use std::time::Duration;

use bytes::Bytes;
use content::pack::PACK_STORED_TARGET;
use content::{FinishedPack, PackIndex};
use futures_util::future::{BoxFuture, Either, FutureExt, pending, select};
use futures_util::stream::{FuturesUnordered, StreamExt};
use model::commit::INLINE_PACKS_LENGTH_MAX;
use model::{ChunkId, Commit, NodeId, PackId, PackRef};

use super::early::Ahead;
use super::reading::Packs;
use super::{Engine, Environment};
use crate::chunk_reader::add_chunks;
use crate::error::{Result, SyncError};
use crate::pace::Pace;
use crate::prepare::Claims;

/// How many chunks of earlier commits of a run are remembered as being in a pack; the database knows them all.
const CLAIMS_MAX: usize = 1 << 20;

/// How many packs of usual length are on their way to the store at the same time, at first and at most, and how many more after a quick
/// one: far away it is the waiting that counts.
const SENDING_FIRST: usize = 2;
const SENDING_STEP: usize = 2;
const SENDING_MAX: usize = 8;

/// What is on its way to the store and not yet announced by a commit.
#[derive(Default)]
pub(super) struct Upload {
    /// Packs that no commit names yet.
    packs: Vec<NewPack>,
    /// Packs that a commit on its way names.
    proposed: Vec<NewPack>,
    pub(super) sending: Sending,
    claims: Claims,
    /// What was begun before its turn.
    pub(super) ahead: Option<Ahead>,
    /// Directories that were made in this round, whose rows are still to be written.
    pub(super) new_directories: Vec<NodeId>,
    /// Those of them whose mode is still to be set, since nothing could be put into them with it.
    pub(super) closed_directories: Vec<NodeId>,
    /// Whether packs are kept on this device until a push.
    is_offline: bool,
    /// How often everything was forgotten because the log was another one.
    generation: u64,
}

impl Upload {
    /// Returns how often everything was forgotten.
    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    /// Forgets what is on its way: the log was not the one that it was for.
    pub(super) fn start_anew(&mut self) {
        let (is_offline, generation) = (self.is_offline, self.generation + 1);
        *self = Self { is_offline, generation, ..Self::default() };
    }

    /// Drops the requests under way: after an error they are of no use, and one that nobody looks after would keep its connection
    /// from the others.
    pub(super) fn stop(&mut self) {
        self.ahead = None;
        self.sending.stop();
    }

    /// Takes a chunk for a pack that is being made. Returns whether nobody else has.
    pub(super) fn claim(&self, chunk: ChunkId) -> bool {
        self.claims.lock().insert(chunk)
    }

    /// Returns the chunks that are taken, for readers on other threads.
    pub(super) fn claims(&self) -> Claims {
        self.claims.clone()
    }

    /// Returns the packs that no commit names yet, each with the number of its chunks.
    pub(super) fn new_packs(&self) -> impl Iterator<Item = (PackRef, u64)> + '_ {
        self.packs.iter().map(|new| (new.pack, new.index.chunks().len() as u64))
    }

    /// Forgets the packs of the commit that was proposed.
    pub(super) fn forget_proposed(&mut self) {
        self.proposed.clear();
    }

    /// Ends what was begun ahead, and returns it: it is its turn.
    pub(super) fn end_ahead(&mut self) -> Option<Ahead> {
        let mut ahead = self.ahead.take()?;
        self.packs.append(&mut ahead.packs);
        Some(ahead)
    }

    /// Goes on with what was begun ahead, until a pack of it is to be sent. May be dropped at any time, and asked again.
    pub(super) async fn next_ahead(&mut self) -> Result<FinishedPack> {
        let Self { ahead: Some(ahead), sending, .. } = self else { return pending().await };
        if let Some(pack) = sending.next_pack(&mut ahead.reading.packs).await? {
            return Ok(pack);
        }
        sending.end().await?;
        pending().await
    }

    /// Waits until one more pack has been stored, or one that was read ahead is to be sent.
    async fn one_step(&mut self) -> Result<Option<FinishedPack>> {
        if let Some(ahead) = &mut self.ahead
            && self.sending.has_room()
        {
            match self.sending.step(&mut ahead.reading.packs).await? {
                Step::Stored => return Ok(None),
                Step::Read(pack) => return Ok(Some(*pack)),
                Step::AllRead => {}
            }
        }
        self.sending.one().await.map(|()| None)
    }

    /// Tells whether packs are kept on this device until a push.
    pub(super) fn is_offline(&self) -> bool {
        self.is_offline
    }

    /// Remembers that this run has put a pack into the store.
    pub(super) fn note_stored(&mut self, pack: PackId) {
        self.sending.stored.insert(pack);
    }

    /// Tells whether this run has put a pack into the store.
    pub(super) fn has_stored(&self, pack: &PackId) -> bool {
        self.sending.stored.contains(pack)
    }
}

/// A pack that the log does not name yet.
pub(super) struct NewPack {
    pack: PackRef,
    index: PackIndex,
    /// Its bytes, while nobody sends them: it may still travel inside a commit.
    bytes: Option<Bytes>,
    /// Whether the log names it already: it was lost, and is made anew.
    is_named: bool,
}

/// Packs that a commit adds to the workspace.
#[derive(Default)]
pub(super) struct CommitPacks {
    /// Those that rest in the store.
    pub(super) named: Vec<PackRef>,
    /// Those that travel in the commit.
    pub(super) inline: Vec<Vec<u8>>,
    /// Whether any of them has delta records.
    pub(super) has_deltas: bool,
}

/// Packs that the store is taking.
#[derive(Default)]
pub(super) struct Sending {
    under_way: FuturesUnordered<BoxFuture<'static, Sent>>,
    /// How many packs of usual length these are.
    units: usize,
    pace: Option<Pace>,
    /// Packs that this run has put into the store.
    stored: HashSet<PackId>,
}

/// What came next while packs are read and sent.
enum Step {
    Stored,
    Read(Box<FinishedPack>),
    AllRead,
}

/// A pack that the store has taken or refused, and how long that took.
type Sent = (PackRef, storage::Result<()>, Duration);

impl Sending {
    fn start(&mut self, length: u64, put: BoxFuture<'static, Sent>) {
        self.under_way.push(put);
        self.units += units(length);
    }

    fn stop(&mut self) {
        self.under_way.clear();
        self.units = 0;
    }

    /// Tells whether one more pack may be sent: if at most so many packs of usual length are on their way, or a single one.
    fn has_room(&mut self) -> bool {
        let first = Pace::new(SENDING_FIRST, SENDING_STEP, SENDING_MAX);
        let allowed = self.pace.get_or_insert(first).allowed();
        self.units <= allowed || self.under_way.len() <= 1
    }

    /// Waits until one more pack may be sent.
    async fn room(&mut self) -> Result<()> {
        while !self.has_room() {
            self.one().await?;
        }
        Ok(())
    }

    /// Waits until the store has taken one more pack, if any is on its way.
    async fn one(&mut self) -> Result<()> {
        self.under_way.next().await.map_or(Ok(()), |sent| self.note(sent))
    }

    /// Waits until the store has taken one more pack or the readers have the next one, whatever comes first.
    async fn step(&mut self, packs: &mut Packs) -> Result<Step> {
        let read = |pack: Option<FinishedPack>| {
            Ok(pack.map_or(Step::AllRead, |pack| Step::Read(Box::new(pack))))
        };
        if self.under_way.is_empty() {
            return read(packs.next().await);
        }
        match select(packs.next(), self.under_way.next()).await {
            Either::Left((pack, _)) => read(pack),
            Either::Right((sent, _)) => {
                sent.map_or(Ok(()), |sent| self.note(sent)).map(|()| Step::Stored)
            }
        }
    }

    /// Waits until the store has all that was sent.
    pub(super) async fn end(&mut self) -> Result<()> {
        while !self.under_way.is_empty() {
            self.one().await?;
        }
        Ok(())
    }

    /// Waits for the next pack of the readers, while others go on to the store; without room they wait. May be dropped
    /// at any time, and asked again.
    pub(super) async fn next_pack(&mut self, packs: &mut Packs) -> Result<Option<FinishedPack>> {
        self.room().await?;
        loop {
            match self.step(packs).await? {
                Step::Stored => {}
                Step::Read(pack) => return Ok(Some(*pack)),
                Step::AllRead => return Ok(None),
            }
        }
    }

    fn note(&mut self, (pack, sent, took): Sent) -> Result<()> {
        let units = units(pack.length);
        self.units = self.units.saturating_sub(units);
        sent?;
        self.stored.insert(pack.id);
        if let Some(pace) = &mut self.pace {
            pace.took_parts(took, units);
        }
        Ok(())
    }
}

impl Engine {
    /// Sends a pack on its way, once there is room. A single small one is held back, since it may travel inside the commit.
    pub(super) async fn take_pack(&mut self, pack: FinishedPack) -> Result<()> {
        self.upload.sending.room().await?;
        self.send_pack(pack)
    }

    /// Does the same at once.
    pub(super) fn send_pack(&mut self, pack: FinishedPack) -> Result<()> {
        let new = self.outgoing(pack)?;
        self.upload.packs.push(new);
        Ok(())
    }

    /// Does so for what was begun ahead.
    pub(super) fn send_pack_ahead(&mut self, pack: FinishedPack) -> Result<()> {
        let new = self.outgoing(pack)?;
        self.upload.ahead.get_or_insert_default().packs.push(new);
        Ok(())
    }

    /// Keeps a pack until a commit names it, which sends it.
    pub(super) fn hold_pack(&mut self, pack: FinishedPack) -> Result<()> {
        let new = self.new_pack(pack)?;
        self.upload.packs.push(new);
        Ok(())
    }

    fn outgoing(&mut self, pack: FinishedPack) -> Result<NewPack> {
        let mut new = self.new_pack(pack)?;
        if new.is_named || new.pack.length > INLINE_PACKS_LENGTH_MAX as u64 {
            self.store_pack(&mut new)?;
        }
        Ok(new)
    }

    fn new_pack(&self, pack: FinishedPack) -> Result<NewPack> {
        let bytes = Bytes::from(pack.bytes);
        let reference = PackRef { id: pack.id, length: bytes.len() as u64 };
        // A pack that the log names already was lost, and is made anew: readers look for it in the store.
        let is_named = !self.upload.is_offline && self.state.knows_pack(&reference.id)?;
        Ok(NewPack { pack: reference, index: pack.index, bytes: Some(bytes), is_named })
    }

    fn store_pack(&mut self, new: &mut NewPack) -> Result<()> {
        let Some(bytes) = new.bytes.take() else { return Ok(()) };
        if self.upload.is_offline {
            return self.state.keep_pack(&new.pack.id, &bytes);
        }
        self.report.sent_bytes += new.pack.length;
        let Environment { store, clock, .. } = self.environment.clone();
        let (pack, is_named) = (new.pack, new.is_named);
        let put = async move {
            let began = clock.elapsed();
            let sent = match is_named {
                true => store.repair_pack(pack.id, bytes).await,
                false => store.put_pack_deferred(pack.id, bytes).await,
            };
            (pack, sent, clock.elapsed().saturating_sub(began))
        };
        self.upload.sending.start(pack.length, put.boxed());
        Ok(())
    }

    /// Makes all new packs durable and returns those to name and those to take along in a commit.
    pub(super) async fn take_packs(&mut self) -> Result<CommitPacks> {
        let mut packs = std::mem::take(&mut self.upload.packs);
        let length: u64 = packs.iter().map(|pack| pack.pack.length).sum();
        let is_inline = length <= INLINE_PACKS_LENGTH_MAX as u64;
        let has_deltas = packs.iter().any(|pack| pack.index.has_deltas());
        let mut taken = CommitPacks { has_deltas, ..CommitPacks::default() };
        for pack in &mut packs {
            match &pack.bytes {
                Some(bytes) if is_inline && !pack.is_named => {
                    taken.inline.push(bytes.to_vec());
                }
                _ => {
                    self.upload.sending.room().await?;
                    self.store_pack(pack)?;
                    taken.named.push(pack.pack);
                }
            }
        }
        self.upload.proposed.append(&mut packs);
        if !taken.named.is_empty() && !self.upload.is_offline {
            self.wait_until_stored(&taken.named).await?;
            let store = self.environment.store.clone();
            self.beside_ahead(store.sync()).await??;
        }
        Ok(taken)
    }

    /// Waits until the store has these packs, and goes on meanwhile with what was begun ahead.
    async fn wait_until_stored(&mut self, packs: &[PackRef]) -> Result<()> {
        for pack in packs {
            while !self.upload.has_stored(&pack.id) {
                if self.upload.sending.under_way.is_empty() {
                    // Nobody sends it any more: it must not be named.
                    return Err(SyncError::NotSettling(0));
                }
                if let Some(pack) = self.upload.one_step().await? {
                    self.send_pack_ahead(pack)?;
                }
            }
        }
        Ok(())
    }

    /// Remembers where the chunks of own packs rest, without reading the packs again.
    pub(super) fn learn_own_packs(&mut self) -> Result<()> {
        let packs = std::mem::take(&mut self.upload.proposed);
        self.in_transaction(|engine| {
            for new in &packs {
                if engine.state.knows_pack(&new.pack.id)? {
                    add_chunks(&mut engine.state, &new.pack.id, &new.index)?;
                }
            }
            Ok(())
        })?;
        let mut claims = self.upload.claims.lock();
        if claims.len() > CLAIMS_MAX {
            claims.clear();
        }
        Ok(())
    }

    /// Keeps packs on this device from now on, until a push.
    pub(super) fn set_offline(&mut self, is_offline: bool) {
        self.upload.is_offline = is_offline;
    }

    /// Stores the packs that were kept on this device for commits of the outbox.
    pub(super) async fn send_kept_packs(&mut self, outbox: &[Commit]) -> Result<()> {
        let mut sent = Vec::new();
        for pack in outbox.iter().flat_map(|commit| &commit.packs) {
            let Some(bytes) = self.state.kept_pack(&pack.id)? else { continue };
            self.report.sent_bytes += pack.length;
            self.environment.store.put_pack_deferred(pack.id, bytes.into()).await?;
            self.upload.note_stored(pack.id);
            sent.push(pack.id);
        }
        if !sent.is_empty() {
            self.environment.store.sync().await?;
            self.in_transaction(|engine| {
                sent.iter().try_for_each(|id| engine.state.drop_kept_pack(id))
            })?;
        }
        Ok(())
    }
}

/// Returns how many packs of usual length are about as long as one of this length.
fn units(length: u64) -> usize {
    ((length as usize + PACK_STORED_TARGET / 2) / PACK_STORED_TARGET).max(1)
}

#[cfg(test)]
mod tests;
