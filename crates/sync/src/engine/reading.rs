//! Reads files of the folder, so that their matter is known, while their packs go to the store.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use content::FinishedPack;
use content::delta::{Features, most_like};
use content::pack::{Ancestry, PACK_STORED_TARGET, pack_target};
use content::packing::Kept;
use futures_util::future::{BoxFuture, FutureExt, ready};
use futures_util::stream::{self, BoxStream, SelectAll, StreamExt};
use model::{ChunkId, ChunkRef, NodeId, NodeKind, Timestamp};
use parking_lot::Mutex;

use super::{Engine, Event};
use crate::error::{Result, SyncError};
use crate::file_system::{FileKind, Stat};
use crate::overlay::{KnownPaths, OverlayNode};
use crate::plan::{Local, LocalMatter, Trees};
use crate::prepare::{Deltas, HasRead, KnownChunks, Preparation, ReadFailure, ToRead};
use crate::scan::{Problem, ProblemKind};
use crate::state::sketches;

/// How many bytes of files one thread reads into packs of its own.
const SHARE_LENGTH: u64 = 32 * 1024 * 1024;

/// Below this many bytes one thread reads them all, so that they share a pack.
const SHARE_FROM: u64 = 4 * 1024 * 1024;

/// How many packs of usual length wait to be stored; readers wait for room.
const PACKS_WAITING: usize = 8;

/// Packs as the readers finish them.
pub(super) type Packs = SelectAll<BoxStream<'static, FinishedPack>>;

/// Files that are being read.
#[derive(Default)]
pub(super) struct Reading {
    nodes: HashSet<NodeId>,
    /// When the first one was opened, at the earliest.
    began: Option<Timestamp>,
    jobs: Vec<BoxFuture<'static, Result<Vec<HasRead>>>>,
    pub(super) packs: Packs,
}

impl Reading {
    /// Returns how many nodes are read.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.nodes.len()
    }
}

/// What becomes of packs that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Packing {
    /// They go to the store.
    Send,
    /// They are kept until a commit names them.
    Hold,
}

/// What is known because it was loaded.
#[derive(Default)]
struct Loaded {
    chunks: HashSet<ChunkId>,
    /// What stands behind chunks, among what is kept.
    ancestries: HashMap<ChunkId, Ancestry>,
    sketches: HashMap<NodeId, Vec<u8>>,
    /// The same with their features; those of all files, if one of these has none.
    by_features: Vec<(Features, Vec<u8>)>,
}

impl KnownChunks for Loaded {
    fn contains(&self, chunk: &ChunkId) -> Result<bool> {
        Ok(self.chunks.contains(chunk))
    }

    fn ancestry(&self, chunk: &ChunkRef) -> Result<Option<Ancestry>> {
        Ok(self.ancestries.get(&chunk.id).copied())
    }

    fn sketch(&self, node: &NodeId) -> Result<Option<Vec<u8>>> {
        Ok(self.sketches.get(node).cloned())
    }

    fn similar(&self, features: &Features) -> Result<Option<Vec<u8>>> {
        Ok(most_like(&self.by_features, features).cloned())
    }
}

impl Engine {
    /// Reads nodes of the folder, so that their matter is known. Returns whether any was read.
    pub(super) async fn read_nodes(&mut self, nodes: Vec<NodeId>) -> Result<bool> {
        if nodes.is_empty() {
            return Ok(false);
        }
        if !self.upload.is_offline() {
            self.fetcher.index_packs(&mut self.state).await?;
        }
        let mut reading = Reading::default();
        self.start_reading(&mut reading, nodes)?;
        let any = self.finish_reading(reading, Packing::Send).await?;
        self.upload.sending.end().await?;
        Ok(any)
    }

    /// Lets the threads begin to read nodes, if they are not being read already.
    pub(super) fn start_reading(
        &mut self,
        reading: &mut Reading,
        mut nodes: Vec<NodeId>,
    ) -> Result<()> {
        nodes.retain(|node| reading.nodes.insert(*node));
        let mut files = Vec::with_capacity(nodes.len());
        let mut paths = KnownPaths::default();
        for node in nodes {
            let trees = self.trees();
            let (path, stat) = (trees.local_path_by(&node, &mut paths)?, trees.local_stat(&node)?);
            let (Some(path), Some(stat)) = (path, stat) else {
                self.find_again(&node)?;
                continue;
            };
            let chunk_size = match self.state.synced(&node)?.map(|synced| synced.record.kind) {
                Some(NodeKind::File(content)) if content.chunk_size > 0 => Some(content.chunk_size),
                _ => None,
            };
            files.push(ToRead { node, path, stat, chunk_size });
        }
        if files.is_empty() {
            return Ok(());
        }
        self.report.read_bytes += files.iter().map(|file| file.stat.size).sum::<u64>();
        reading.began.get_or_insert(self.environment.clock.now());
        let preparation = self.preparation(&files)?;
        if self.environment.workers.is_inline() {
            let mut packs = Vec::new();
            let mut emit = |pack| {
                packs.push(pack);
                Ok(())
            };
            let has_read = preparation.read_files(files, &mut emit);
            reading.jobs.push(ready(has_read).boxed());
            reading.packs.push(stream::iter(packs).boxed());
            return Ok(());
        }
        let waiting = PACKS_WAITING * PACK_STORED_TARGET / self.pack_target();
        let (sender, mut receiver) = tokio::sync::mpsc::channel(waiting);
        for share in shares(files) {
            let (preparation, sender) = (preparation.clone(), sender.clone());
            reading.jobs.push(self.environment.workers.run(move || {
                preparation.read_files(share, &mut |pack| {
                    // The receiver is gone only where the upload has failed already.
                    sender.blocking_send(pack).map_err(|_| SyncError::NotSettling(0))
                })
            }));
        }
        reading.packs.push(stream::poll_fn(move |context| receiver.poll_recv(context)).boxed());
        Ok(())
    }

    /// Waits until everything is read and packed, and takes in what was read. Returns whether anything was. Packs may still be on their
    /// way to the store.
    pub(super) async fn finish_reading(
        &mut self,
        reading: Reading,
        packing: Packing,
    ) -> Result<bool> {
        let finished = self.take_reading(reading, packing).await;
        if finished.is_err() {
            self.upload.stop();
        }
        finished
    }

    async fn take_reading(&mut self, mut reading: Reading, packing: Packing) -> Result<bool> {
        let Some(began) = reading.began else { return Ok(false) };
        let total = reading.nodes.len() as u64;
        (self.observer)(Event::Read { files: 0, total });
        while let Some(pack) = self.upload.sending.next_pack(&mut reading.packs).await? {
            match packing {
                Packing::Send => self.send_pack(pack)?,
                Packing::Hold => self.hold_pack(pack)?,
            }
        }
        let mut results = Vec::new();
        for job in reading.jobs {
            results.extend(job.await?);
        }
        (self.observer)(Event::Read { files: total, total });
        self.in_transaction(|engine| {
            let mut any = false;
            let mut sketches = Vec::new();
            for HasRead { node, result, lists, sketch } in results {
                for (id, bytes) in lists {
                    engine.state.keep_list(&id, &bytes)?;
                }
                sketches.extend(sketch.map(|bytes| (node, bytes)));
                any |= engine.take_read(node, result, began)?;
            }
            engine.state.keep_sketches(&sketches)?;
            Ok(any)
        })
    }

    /// A row says that a node is in the folder, and nothing says how it looks: it is looked up.
    pub(super) fn find_again(&mut self, node: &NodeId) -> Result<()> {
        let Some(local) = self.trees().local(node)? else { return Ok(()) };
        let Some(path) = self.trees().local_path(node)? else { return Ok(()) };
        match self.environment.file_system.stat(&path)? {
            Some(stat) if stat.kind == local.kind => {
                let local = Local { matter: LocalMatter::Touched, ..local };
                self.overlay.set(*node, OverlayNode { local, stat });
            }
            _ => self.overlay.set_absent(*node),
        }
        Ok(())
    }

    fn take_read(
        &mut self,
        node: NodeId,
        result: Result<(crate::plan::Matter, Stat), ReadFailure>,
        began: Timestamp,
    ) -> Result<bool> {
        let kind = match result {
            Ok((matter, stat)) => {
                if stat.kind != FileKind::Directory && is_racy(&stat, began) {
                    self.racy.insert(node);
                } else {
                    self.racy.remove(&node);
                }
                let local = self.trees().local(&node)?.expect("it was read");
                let local = Local { matter: LocalMatter::Known(matter), ..local };
                self.overlay.set(node, OverlayNode { local, stat });
                return Ok(true);
            }
            Err(ReadFailure::Changing) => ProblemKind::Changing,
            Err(ReadFailure::Unreadable(reason)) => ProblemKind::Unreadable(reason),
        };
        let path = self.trees().local_path(&node)?.unwrap_or_default();
        self.report.problems.push(Problem { path, name: None, kind });
        self.skipped.insert(node);
        Ok(false)
    }

    /// Returns what the merge base remembers of a file as it was read. A stat that a later change may share is made to
    /// equal none, so that the next scan has the file read again.
    pub(super) fn stat_for_row(&self, node: &NodeId, stat: Stat) -> Stat {
        match self.racy.contains(node) {
            true => stat.unproven(),
            false => stat,
        }
    }

    /// Returns how many stored bytes a pack should have.
    fn pack_target(&self) -> usize {
        pack_target(self.environment.store.object_store().parts())
    }

    fn preparation(&self, files: &[ToRead]) -> Result<Preparation> {
        let known: Arc<dyn KnownChunks> = if self.state.has_no_chunks()? {
            Arc::new(Loaded::default())
        } else {
            match self.state.chunk_reader()? {
                Some(reader) => Arc::new(Mutex::new(reader)),
                None => Arc::new(self.load(files)?),
            }
        };
        let length: u64 = files.iter().map(|file| file.stat.size).sum();
        let deltas = Deltas::of(self.options.deltas, length);
        Ok(Preparation {
            file_system: self.environment.file_system.clone(),
            keys: self.keys.clone(),
            known,
            claims: self.upload.claims(),
            transform: self.options.transform.for_length(length),
            fence: self.state.last_fence()?,
            pack_target: self.pack_target(),
            deltas,
            sketch_room: Arc::new(AtomicI64::new(sketches::LENGTH_MAX)),
        })
    }

    /// Loads what threads need to know where the database is in memory, and small.
    fn load(&self, files: &[ToRead]) -> Result<Loaded> {
        let mut loaded = Loaded { chunks: self.state.chunk_ids()?, ..Loaded::default() };
        for file in files {
            if let Some(bytes) = self.state.sketch(&file.node)? {
                loaded.sketches.insert(file.node, bytes);
            }
        }
        let all = match loaded.sketches.len() == files.len() {
            true => loaded.sketches.values().cloned().collect(),
            false => self.state.sketches()?,
        };
        for bytes in all {
            let Ok(kept) = Kept::decode(&bytes) else { continue };
            for chunk in kept.chunks() {
                if let Some(ancestry) = self.state.ancestry(chunk)? {
                    loaded.ancestries.insert(chunk.id, ancestry);
                }
            }
            loaded.by_features.push((kept.features(), bytes));
        }
        Ok(loaded)
    }
}

/// How long a file system may give two changes the same time, in nanoseconds. A tick of the kernel has 4 ms, but a busy
/// virtual machine may be late with it.
const TICK: i128 = 200_000_000;

/// The same for a file system that counts in whole seconds.
const COARSE_TICK: i128 = 2_000_000_000;

/// Tells whether a file that was read from `began` on may change once more without getting another time.
fn is_racy(stat: &Stat, began: Timestamp) -> bool {
    let nanoseconds =
        |time: Timestamp| i128::from(time.seconds) * 1_000_000_000 + i128::from(time.nanoseconds);
    let tick = if stat.changed.nanoseconds == 0 { COARSE_TICK } else { TICK };
    nanoseconds(stat.changed) + tick >= nanoseconds(began)
}

/// Cuts a list of files into shares of about equal length, each for one thread.
fn shares(files: Vec<ToRead>) -> Vec<Vec<ToRead>> {
    let total: u64 = files.iter().map(|file| file.stat.size).sum();
    let share = if total < SHARE_FROM { u64::MAX } else { SHARE_LENGTH.min(total / 2 + 1) };
    let mut shares = vec![Vec::new()];
    let mut length = 0;
    for file in files {
        if length >= share {
            shares.push(Vec::new());
            length = 0;
        }
        // A file costs something even if it is empty.
        length += file.stat.size + u64::from(file.stat.kind == FileKind::File) * 4096;
        shares.last_mut().expect("there is a share").push(file);
    }
    shares
}

#[cfg(test)]
mod tests;
