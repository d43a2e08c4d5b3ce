//! Puts back what the stores have lost, as far as this device has it: out of the folder, and out of what is left of damaged
//! packs.
//!
//! *Goals*: what any device still has is durable again, wherever the lost pack was made. *Non-goals*: the lost pack itself; new
//! packs take its place, and the log names them like all others. *Invariants*: a chunk goes into a new pack only if its bytes
//! have its name; the log names a pack only when it is durable; nothing in the folder changes.

use std::collections::{BTreeSet, HashSet};

use bytes::Bytes;
use content::pack::RecordOpener;
use content::{FinishedPack, PackIndex, PackWriter};
use model::environment::random_bytes;
use model::{NodeId, NodeKind, OpId, PackId, PackRef, PageId};

use super::{Engine, Event};
use crate::error::{Result, SyncError};
use crate::scan::Scope;
use crate::state::packs::KnownPack;

/// What was put back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PutBack {
    /// How many packs were written.
    pub packs: u64,
    /// How many chunks are in them.
    pub chunks: u64,
    /// How many bytes they have.
    pub bytes: u64,
}

/// How often is looked for what can be made again: deltas in a row are no longer, mostly.
const SALVAGES_MAX: usize = 17;

impl PutBack {
    fn add(&mut self, more: Self) {
        self.packs += more.packs;
        self.chunks += more.chunks;
        self.bytes += more.bytes;
    }
}

impl Engine {
    /// Looks at every pack of the log and returns those that the store lacks or has with another length; with `reads_all`,
    /// also those that have other bytes than they should.
    ///
    /// # Errors
    /// [`SyncError`].
    pub async fn lost_packs(&mut self, reads_all: bool) -> Result<HashSet<PackId>> {
        let mut lost = HashSet::new();
        for pack in self.stored_packs().await? {
            if !self.is_stored(&pack, reads_all).await? {
                lost.insert(pack.id);
            }
        }
        Ok(lost)
    }

    async fn is_stored(&self, pack: &PackRef, reads_all: bool) -> Result<bool> {
        let store = &self.environment.store;
        if store.pack_size(pack.id).await? != Some(pack.length) {
            return Ok(false);
        }
        if !reads_all {
            return Ok(true);
        }
        match store.read_pack(pack.id).await {
            Ok(_) => Ok(true),
            Err(error) if error.is_damage() => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Lets damaged packs count again that were found whole.
    ///
    /// # Errors
    /// [`SyncError::Database`].
    pub fn trust_but(&mut self, lost: &HashSet<PackId>) -> Result<()> {
        for pack in self.state.distrusted_packs()? {
            if !lost.contains(&pack.id) {
                self.state.trust_pack(&pack.id)?;
            }
        }
        Ok(())
    }

    /// Makes durable again what was in lost and damaged packs, in new packs that the log names. What neither the folder nor
    /// the rest of those packs has stays lost.
    ///
    /// # Errors
    /// [`SyncError`]; what was put back until then stays.
    pub async fn put_back(&mut self, lost: &HashSet<PackId>) -> Result<PutBack> {
        self.begin()?;
        self.fetch().await?;
        self.check_pool()?;
        self.fetcher.index_packs(&mut self.state).await?;
        (self.observer)(Event::Step("put back"));
        match self.look(&Scope::Everything).await {
            // Nothing is deleted here: what is in the folder is taken, whatever is not.
            Ok(()) | Err(SyncError::MassDelete { .. }) => {}
            Err(error) => return Err(error),
        }
        let known = self.known_packs(lost)?;
        for pack in &known {
            let is_there = self.environment.store.has_pack(pack.id).await?;
            self.state.distrust_pack(&pack.id, is_there)?;
        }
        self.fetcher.forget_packs();
        let files = self.files_lacking_chunks().await?;
        self.read_nodes(files).await?;
        let mut done = PutBack::default();
        for _ in 0..SALVAGES_MAX {
            let lacks_bases = self.salvage(&known).await?;
            let more = self.announce_packs().await?;
            done.add(more);
            // What was put back just now may be what others are made from.
            if !lacks_bases || more.packs == 0 {
                break;
            }
        }
        self.finish()?;
        Ok(done)
    }

    fn known_packs(&self, ids: &HashSet<PackId>) -> Result<Vec<KnownPack>> {
        let mut known = Vec::new();
        for id in ids {
            known.extend(self.state.pack_by_id(id)?.filter(|pack| pack.place.inline_seq.is_none()));
        }
        known.sort_unstable_by_key(|pack| pack.number);
        Ok(known)
    }

    /// Returns the files of the merge base of which some chunk is nowhere.
    async fn files_lacking_chunks(&mut self) -> Result<Vec<NodeId>> {
        let mut files = Vec::new();
        self.state.each_synced(|row| {
            if let NodeKind::File(content) = row.record.kind {
                files.push((row.node, content));
            }
        })?;
        let mut lacking = Vec::new();
        for (node, content) in files {
            let chunks = match self.fetcher.expand(&self.state, &content).await {
                // Reading the file makes its lists anew.
                Err(error) if error.is_of_stored_data() => {
                    lacking.push(node);
                    continue;
                }
                chunks => chunks?,
            };
            // The lists themselves are chunks, too; that they are kept here does not say that they are stored.
            let lists = content.chunks.iter().filter(|_| content.depth > 0);
            for chunk in lists.chain(&chunks) {
                if !self.state.can_be_made(&chunk.id)? {
                    lacking.push(node);
                    break;
                }
            }
        }
        Ok(lacking)
    }

    /// Packs again what is right in damaged packs and is nowhere else: versions that no folder has any more may need it. Tells whether
    /// something is made from what is nowhere so far.
    async fn salvage(&mut self, damaged: &[KnownPack]) -> Result<bool> {
        let mut lacks_bases = false;
        let guard = self.keys.packs().behind(self.state.last_fence()?);
        let mut writer = PackWriter::new(self.options.transform, &guard)?;
        let mut opener = RecordOpener::default();
        for pack in damaged {
            let index = match self.fetcher.index_of_damaged(pack).await {
                Err(error) if error.is_of_stored_data() => continue,
                index => index?,
            };
            let records: BTreeSet<u32> = index.packed_chunks().map(|chunk| chunk.record).collect();
            for record in records {
                let bases = index.bases(record as usize)?;
                let Some(bases) = self.fetcher.bases_of(&self.state, bases).await? else {
                    lacks_bases = true;
                    continue;
                };
                let record = (&*index, record as usize, &bases[..]);
                for pack in self.salvage_record(pack, record, &mut opener, &mut writer).await? {
                    self.take_pack(pack).await?;
                }
            }
        }
        if !writer.is_empty() {
            let last = writer.finish()?;
            self.take_pack(last).await?;
        }
        Ok(lacks_bases)
    }

    async fn salvage_record(
        &mut self,
        pack: &KnownPack,
        (index, number, bases): (&PackIndex, usize, &[Bytes]),
        opener: &mut RecordOpener,
        writer: &mut PackWriter,
    ) -> Result<Vec<FinishedPack>> {
        let range = index.record(number)?.stored_range();
        let stored = match self.environment.store.read_pack_range(pack.id, range).await {
            Err(error) if error.is_damage() => return Ok(Vec::new()),
            stored => stored?,
        };
        let bases: Vec<&[u8]> = bases.iter().map(|base| &base[..]).collect();
        let namer = self.fetcher.namer();
        let Ok(opened) = opener.open_on(index, number, &stored, &bases, namer) else {
            return Ok(Vec::new());
        };
        let mut full = Vec::new();
        for (chunk, bytes) in opened.verified_chunks().flatten() {
            let is_known = self.state.can_be_made(&chunk.id)?;
            if !is_known && self.upload.claim(chunk.id) {
                writer.push(chunk, bytes)?;
                if writer.is_full() {
                    full.push(writer.finish()?);
                }
            }
        }
        Ok(full)
    }

    /// Returns the pages of the newest checkpoint, as far as they can be told; those that cannot be read are among them.
    ///
    /// # Errors
    /// [`SyncError`].
    pub async fn stored_pages(&mut self) -> Result<BTreeSet<PageId>> {
        match self.environment.log.checkpoint().await? {
            Some(checkpoint) => Ok(self.pages_of(&checkpoint).await?.ids),
            None => Ok(BTreeSet::new()),
        }
    }

    /// Makes the newest checkpoint anew where pages of it are lost, and removes damaged pages that are in it no more. Returns
    /// how many pages are whole again.
    ///
    /// # Errors
    /// [`SyncError`].
    pub async fn renew_pages(&mut self, lost: &BTreeSet<PageId>) -> Result<u64> {
        self.fetch().await?;
        let head = self.head()?;
        if lost.is_empty() || head.seq == 0 {
            return Ok(0);
        }
        let renewed = match self.publish_checkpoint(head, lost).await {
            // Checkpoints are for the owner.
            Err(error) if error.says_read_only() => return Ok(0),
            renewed => renewed?,
        };
        for page in lost.iter().filter(|page| !renewed.contains(page)) {
            self.environment.store.remove_page(*page).await?;
        }
        Ok(lost.len() as u64)
    }

    /// Makes the new packs durable and lets the log name those that it does not name yet.
    async fn announce_packs(&mut self) -> Result<PutBack> {
        let mut done = PutBack::default();
        for (pack, chunks) in self.upload.new_packs() {
            done.packs += 1;
            done.chunks += chunks;
            done.bytes += pack.length;
        }
        let mut packs = self.take_packs().await?;
        let mut unnamed = Vec::with_capacity(packs.named.len());
        for pack in packs.named {
            if !self.state.knows_pack(&pack.id)? {
                unnamed.push(pack);
            }
        }
        packs.named = unnamed;
        if !packs.named.is_empty() || !packs.inline.is_empty() {
            let op_id = OpId::from_bytes(random_bytes(&*self.environment.random));
            let commit = self.commit_of(op_id, Vec::new(), packs)?;
            self.in_transaction(|engine| engine.state.add_to_outbox(&commit))?;
            self.push().await?;
        }
        self.learn_own_packs()?;
        Ok(done)
    }
}

#[cfg(test)]
mod tests;
