//! Records what differs in the folder: reads files, packs new chunks, and puts commits into the outbox.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use content::pack::{PACK_STORED_TARGET, pack_target};
use content::{FinishedPack, PackIndex};
use futures_util::future::{BoxFuture, Either, FutureExt, select};
use futures_util::stream::{FuturesUnordered, StreamExt};
use model::codec::encode_message;
use model::commit::{COMMIT_CHANGES_MAX, INLINE_PACKS_LENGTH_MAX};
use model::environment::random_bytes;
use model::{
    Action, Change, ChunkId, Commit, NodeId, NodeKind, NodeRecord, OpId, PackId, PackRef,
    Timestamp, TreeNode, TreeStore,
};
use parking_lot::Mutex;
use tokio::sync::mpsc::Receiver;

use super::{Engine, Environment, Event};
use crate::error::{Result, SyncError};
use crate::file_system::{FileKind, Stat};
use crate::overlay::{KnownPaths, OverlayNode};
use crate::pace::Pace;
use crate::plan::order::{Step, order};
use crate::plan::{Local, LocalMatter, Operation, Trees, split};
use crate::prepare::{Claims, HasRead, KnownChunks, Preparation, ReadFailure, ToRead};
use crate::scan::{Problem, ProblemKind};
use crate::state::SyncedNode;

/// How many changes go into one commit.
const GROUP_CHANGES: usize = 8192;

/// How many bytes of files are read for one commit.
const GROUP_LENGTH: u64 = 256 * 1024 * 1024;

/// How many bytes of files one thread reads into packs of its own.
const SHARE_LENGTH: u64 = 32 * 1024 * 1024;

/// Below this many bytes one thread reads them all, so that they share a pack.
const SHARE_FROM: u64 = 4 * 1024 * 1024;

/// How many chunks of earlier commits of a run are remembered as being in a pack; the database knows them all.
const CLAIMS_MAX: usize = 1 << 20;

/// How many packs of usual length wait to be stored; readers wait for room.
const PACKS_WAITING: usize = 8;

/// How many packs of usual length are on their way to the store at the same time, at first and at most, and how many more after a quick
/// one: far away it is the waiting that counts.
const SENDING_FIRST: usize = 2;
const SENDING_STEP: usize = 2;
const SENDING_MAX: usize = 8;

/// What is on its way to the store and not yet announced by a commit.
#[derive(Default)]
pub(super) struct Upload {
    packs: Vec<NewPack>,
    /// Packs that the store is taking.
    sending: FuturesUnordered<BoxFuture<'static, Sent>>,
    /// How many packs of usual length these are.
    sending_units: usize,
    pace: Option<Pace>,
    claims: Claims,
    /// Packs that this run has put into the store.
    pub(super) stored: HashSet<PackId>,
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

    /// Takes a chunk for a pack that is being made. Returns whether nobody else has.
    pub(super) fn claim(&self, chunk: ChunkId) -> bool {
        self.claims.lock().insert(chunk)
    }

    /// Returns the packs that no commit names yet, each with the number of its chunks.
    pub(super) fn new_packs(&self) -> impl Iterator<Item = (PackRef, u64)> + '_ {
        self.packs.iter().map(|new| (new.pack, new.index.chunks().len() as u64))
    }
}

/// A pack that the store has taken or refused, and how long that took.
type Sent = (PackRef, storage::Result<()>, Duration);

/// Files that are being read.
#[derive(Default)]
struct Reading {
    count: u64,
    /// When the first one was opened, at the earliest.
    began: Timestamp,
    /// Not begun, where there are no threads.
    waiting: Vec<ToRead>,
    jobs: Vec<BoxFuture<'static, Result<Vec<HasRead>>>>,
    packs: Option<Receiver<FinishedPack>>,
}

/// A pack that no commit names yet.
struct NewPack {
    pack: PackRef,
    index: PackIndex,
    /// Its bytes, while it may still travel inside a commit.
    bytes: Option<Bytes>,
}

/// Chunks that are known because they were loaded.
struct Loaded(HashSet<ChunkId>);

impl KnownChunks for Loaded {
    fn contains(&self, chunk: &ChunkId) -> Result<bool> {
        Ok(self.0.contains(chunk))
    }
}

impl Engine {
    /// Proposes everything that differs here and not in the log, as it was planned, or is planned now. Returns whether
    /// there was anything.
    pub(super) async fn checkin_round(
        &mut self,
        planned: Option<BTreeMap<NodeId, Operation>>,
    ) -> Result<bool> {
        let operations = planned.map_or_else(|| self.plan(), Ok)?;
        self.look_behind_fence(&operations)?;
        let proposals = self.state.reading(|| self.in_order(&operations))?;
        if proposals.is_empty() {
            return Ok(false);
        }
        if !self.upload.is_offline {
            self.fetcher.index_packs(&mut self.state).await?;
        }
        let mut groups = self.state.reading(|| self.groups(proposals))?.into_iter().peekable();
        let mut any = false;
        let mut reading = match groups.peek() {
            Some(group) => self.start_reading(self.touched(group)?)?,
            None => return Ok(false),
        };
        let generation = self.upload.generation;
        while let Some(group) = groups.next() {
            // What was planned and read for another log is planned and read again.
            if self.upload.generation != generation {
                return Ok(true);
            }
            self.finish_reading(reading).await?;
            // While this group is committed, the next one is read.
            reading = match groups.peek() {
                Some(group) => self.start_reading(self.touched(group)?)?,
                None => Reading::default(),
            };
            any |= self.propose(group).await?;
        }
        Ok(any)
    }

    /// Divides proposals into those of one commit each.
    fn groups(&self, proposals: Vec<(Step, Operation)>) -> Result<Vec<Vec<(Step, Operation)>>> {
        let mut groups = vec![Vec::new()];
        let mut length = 0;
        // A node that steps aside comes back in the same commit, or it would be seen there.
        let mut aside = BTreeSet::new();
        for (step, operation) in proposals {
            let count = groups.last().map_or(0, Vec::len);
            let is_full = count >= GROUP_CHANGES || length >= GROUP_LENGTH;
            if is_full && (aside.is_empty() || count >= COMMIT_CHANGES_MAX) {
                groups.push(Vec::new());
                length = 0;
            }
            if step.is_detour {
                aside.insert(step.node);
            } else {
                aside.remove(&step.node);
                length += self.trees().local_stat(&step.node)?.map_or(0, |stat| stat.size);
            }
            groups.last_mut().expect("there is a group").push((step, operation));
        }
        Ok(groups)
    }

    /// Returns the nodes of a group that must be read.
    fn touched(&self, group: &[(Step, Operation)]) -> Result<Vec<NodeId>> {
        let mut touched = Vec::new();
        for (Step { node, is_detour }, operation) in group {
            let is_put = matches!(operation, Operation::Propose { .. });
            if is_put
                && !is_detour
                && self
                    .trees()
                    .local(node)?
                    .is_some_and(|local| local.matter == LocalMatter::Touched)
            {
                touched.push(*node);
            }
        }
        Ok(touched)
    }

    /// Returns the planned proposals in the order in which the fold is to take them.
    fn in_order(&self, operations: &BTreeMap<NodeId, Operation>) -> Result<Vec<(Step, Operation)>> {
        let steps = order(&self.trees(), operations)?;
        Ok(steps.into_iter().map(|step| (step, operations[&step.node].clone())).collect())
    }

    /// Turns a group of proposals into one commit, stores its packs, and sends it unless this is off line.
    async fn propose(&mut self, group: Vec<(Step, Operation)>) -> Result<bool> {
        let op_id = OpId::from_bytes(random_bytes(&*self.environment.random));
        let (changes, rows) = self.in_transaction(|engine| engine.changes_of(group, op_id))?;
        if changes.is_empty() {
            return Ok(false);
        }
        let (packs, inline_packs) = self.take_packs().await?;
        let commit = self.commit_of(op_id, changes, packs, inline_packs)?;
        // Another process of this device has folded a fence: the commit says that it was seen, and it was not.
        if self.state.last_fence()? != self.fence {
            self.start_anew_behind_fence()?;
            return Ok(true);
        }
        let count = rows.len() as u64;
        self.in_transaction(|engine| {
            engine.state.add_to_outbox(&commit)?;
            rows.iter().try_for_each(|row| engine.state.propose_synced(row))
        })?;
        let mut paths = KnownPaths::default();
        for row in rows {
            if let Some(path) = self.trees().local_path_by(&row.node, &mut paths)? {
                (self.observer)(Event::Sent(path));
            }
            let is_deleted =
                self.overlay.contains(&row.node) && self.overlay.get(&row.node).is_none();
            if !is_deleted {
                self.overlay.forget(&row.node);
            }
        }
        self.report.sent += count;
        if self.upload.is_offline {
            // This commit names them; where their chunks rest is learned from the log.
            self.upload.packs.clear();
        } else {
            self.push().await?;
            self.learn_own_packs()?;
        }
        Ok(true)
    }

    /// Makes the changes of one commit, and the rows that they lead to.
    fn changes_of(
        &mut self,
        group: Vec<(Step, Operation)>,
        op_id: OpId,
    ) -> Result<(Vec<Change>, Vec<SyncedNode>)> {
        let mut changes = Vec::with_capacity(group.len());
        let mut rows = Vec::with_capacity(group.len());
        let detours: BTreeSet<_> =
            group.iter().filter(|(step, _)| step.is_detour).map(|(step, _)| step.node).collect();
        for (step, operation) in group {
            let Some((mut change, mut row)) = self.proposal(step.node, &operation, op_id)? else {
                continue;
            };
            if step.is_detour {
                row.record.name = row.record.name.conflict(&format!("conflict {}", step.node), 0);
                change.action = Action::Put(encode_message(&row.record));
            } else {
                change.base += u64::from(detours.contains(&step.node));
                rows.push(row);
            }
            changes.push(change);
        }
        let waiting = self.hold_back(&rows)?;
        changes.retain(|change: &Change| !waiting.contains(&change.node));
        rows.retain(|row: &SyncedNode| !waiting.contains(&row.node));
        Ok((changes, rows))
    }

    /// Returns the nodes that must wait: whoever takes the name of a node that was moved away here, but could not be read
    /// there, as when it moves on all the time. Proposed without it, the two would be seen as in conflict. What lies in a
    /// new directory waits with it.
    fn hold_back(&mut self, rows: &[SyncedNode]) -> Result<BTreeSet<NodeId>> {
        let mut waiting = BTreeSet::new();
        let mut is_settled = self.skipped.is_empty();
        while !is_settled {
            is_settled = true;
            for row in rows {
                if self.skipped.contains(&row.node) {
                    continue;
                }
                let parent = row.record.parent;
                let holder = self.state.child(&parent, &row.record.name)?;
                let is_taken = match holder.filter(|holder| *holder != row.node) {
                    Some(holder) if self.skipped.contains(&holder) => self.has_moved(&holder)?,
                    _ => false,
                };
                if is_taken || waiting.contains(&parent) {
                    let path = self.trees().local_path(&row.node)?.unwrap_or_default();
                    let kind = ProblemKind::Changing;
                    self.report.problems.push(Problem { path, name: None, kind });
                    self.skipped.insert(row.node);
                    waiting.insert(row.node);
                    is_settled = false;
                }
            }
        }
        Ok(waiting)
    }

    /// Tells whether a node was moved in the folder and no commit says so.
    fn has_moved(&self, node: &NodeId) -> Result<bool> {
        let Some(row) = self.state.synced(node)? else { return Ok(false) };
        let place = split(&row.record).0;
        let local = self.trees().local(node)?;
        Ok(row.pending.is_none() && local.is_some_and(|local| local.place != place))
    }

    /// Makes a change and the row of the merge base that it leads to; nothing where there is nothing to change.
    fn proposal(
        &mut self,
        node: NodeId,
        operation: &Operation,
        op_id: OpId,
    ) -> Result<Option<(Change, SyncedNode)>> {
        let synced = self.state.synced(&node)?;
        let base = match operation {
            Operation::ProposeDelete { base } => {
                let Some(row) = synced else { return Ok(None) };
                let row = SyncedNode { pending: Some(op_id), ..row };
                return Ok(Some((Change { node, base: *base, action: Action::Delete }, row)));
            }
            Operation::Propose { base } => *base,
            _ => return Ok(None),
        };
        let Some(local) = self.trees().local(&node)? else { return Ok(None) };
        let stat = self.trees().local_stat(&node)?.map(|stat| self.stat_for_row(&node, stat));
        let matter = match (local.matter, &synced) {
            (LocalMatter::Known(matter), _) => matter,
            (LocalMatter::Same, Some(synced)) => split(&synced.record).1,
            // It could not be read; a later run will.
            _ => return Ok(None),
        };
        let conflict = synced.as_ref().and_then(|synced| synced.record.conflict);
        let record = NodeRecord {
            parent: local.place.parent,
            name: local.place.name,
            mode: matter.mode,
            modified: matter.modified,
            kind: matter.kind,
            conflict,
        };
        // The remote record counts, not that of the merge base, which says what was proposed: the fold may have given
        // the node another name, and the wanted one is asked for again.
        let remote = self.state.node(&node)?;
        let is_known = |remote: &TreeNode| {
            remote.is_alive() && remote.version == base && remote.record == record
        };
        if remote.is_some_and(|remote| is_known(&remote)) {
            self.state.set_synced(&SyncedNode {
                node,
                version: base,
                record,
                stat,
                pending: None,
            })?;
            self.overlay.forget(&node);
            return Ok(None);
        }
        let change = Change { node, base, action: Action::Put(encode_message(&record)) };
        Ok(Some((change, SyncedNode { node, version: base, record, stat, pending: Some(op_id) })))
    }

    /// Proposes a record as it is, without looking at the folder.
    pub(super) async fn propose_record(
        &mut self,
        node: NodeId,
        base: u64,
        record: NodeRecord,
    ) -> Result<()> {
        let Some(row) = self.state.synced(&node)? else { return Ok(()) };
        let op_id = OpId::from_bytes(random_bytes(&*self.environment.random));
        let change = Change { node, base, action: Action::Put(encode_message(&record)) };
        let row = SyncedNode { version: base, record, pending: Some(op_id), ..row };
        let commit = self.commit_of(op_id, vec![change], Vec::new(), Vec::new())?;
        self.in_transaction(|engine| {
            engine.state.add_to_outbox(&commit)?;
            engine.state.propose_synced(&row)
        })?;
        self.push().await.map(drop)
    }

    /// Makes the commit that goes into the outbox and into the log: from here on nobody but members reads its payloads,
    /// where the workspace is sealed.
    pub(super) fn commit_of(
        &self,
        op_id: OpId,
        changes: Vec<Change>,
        packs: Vec<PackRef>,
        inline_packs: Vec<Vec<u8>>,
    ) -> Result<Commit> {
        let commit = Commit {
            op_id,
            device: self.options.device,
            device_name: self.options.device_name.clone(),
            time: self.environment.clock.now(),
            seen: self.head()?,
            changes,
            packs,
            inline_packs,
            seal: None,
        };
        Ok(self.keys.seal_commit(commit)?)
    }

    /// Reads nodes of the folder, so that their matter is known. Returns whether any was read.
    pub(super) async fn read_nodes(&mut self, nodes: Vec<NodeId>) -> Result<bool> {
        if nodes.is_empty() {
            return Ok(false);
        }
        if !self.upload.is_offline {
            self.fetcher.index_packs(&mut self.state).await?;
        }
        let reading = self.start_reading(nodes)?;
        self.finish_reading(reading).await
    }

    /// Lets the threads begin to read nodes; without threads, only collects them.
    fn start_reading(&mut self, nodes: Vec<NodeId>) -> Result<Reading> {
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
        self.report.read_bytes += files.iter().map(|file| file.stat.size).sum::<u64>();
        let began = self.environment.clock.now();
        let mut reading = Reading { count: files.len() as u64, began, ..Reading::default() };
        if self.environment.workers.is_inline() {
            reading.waiting = files;
            return Ok(reading);
        }
        let preparation = self.preparation()?;
        let waiting = PACKS_WAITING * PACK_STORED_TARGET / self.pack_target();
        let (sender, receiver) = tokio::sync::mpsc::channel(waiting);
        for share in shares(files) {
            let (preparation, sender) = (preparation.clone(), sender.clone());
            reading.jobs.push(self.environment.workers.run(move || {
                preparation.read_files(share, &mut |pack| {
                    // The receiver is gone only where the upload has failed already.
                    sender.blocking_send(pack).map_err(|_| SyncError::NotSettling(0))
                })
            }));
        }
        reading.packs = Some(receiver);
        Ok(reading)
    }

    /// Stores the packs of what is being read, and takes in its results. Returns whether any was read.
    async fn finish_reading(&mut self, reading: Reading) -> Result<bool> {
        let finished = self.take_reading(reading).await;
        // A request that nobody looks after would keep its connection from the others, and what is still under way after
        // an error is of no use.
        self.upload.sending.clear();
        self.upload.sending_units = 0;
        finished
    }

    async fn take_reading(&mut self, mut reading: Reading) -> Result<bool> {
        if reading.count == 0 {
            return Ok(false);
        }
        let total = reading.count;
        (self.observer)(Event::Read { files: 0, total });
        let mut results = Vec::new();
        if !reading.waiting.is_empty() {
            let mut packs = Vec::new();
            results = self.preparation()?.read_files(
                std::mem::take(&mut reading.waiting),
                &mut |pack| {
                    packs.push(pack);
                    Ok(())
                },
            )?;
            for pack in packs {
                self.take_pack(pack).await?;
            }
        }
        if let Some(packs) = &mut reading.packs {
            while let Some(pack) = self.next_pack(packs).await? {
                self.take_pack(pack).await?;
            }
        }
        for job in reading.jobs {
            results.extend(job.await?);
        }
        self.wait_for_sending(0).await?;
        (self.observer)(Event::Read { files: total, total });
        self.in_transaction(|engine| {
            let mut any = false;
            for HasRead { node, result, lists } in results {
                for (id, bytes) in lists {
                    engine.state.keep_list(&id, &bytes)?;
                }
                any |= engine.take_read(node, result, reading.began)?;
            }
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

    fn preparation(&self) -> Result<Preparation> {
        let known: Arc<dyn KnownChunks> = if self.state.has_no_chunks()? {
            Arc::new(Loaded(HashSet::new()))
        } else {
            match self.state.chunk_reader()? {
                Some(reader) => Arc::new(Mutex::new(reader)),
                None => Arc::new(Loaded(self.state.chunk_ids()?)),
            }
        };
        Ok(Preparation {
            file_system: self.environment.file_system.clone(),
            keys: self.keys.clone(),
            known,
            claims: self.upload.claims.clone(),
            transform: self.options.transform,
            fence: self.state.last_fence()?,
            pack_target: self.pack_target(),
        })
    }

    /// Sends a pack on its way. A single small one is held back, since it may travel inside the commit.
    pub(super) async fn take_pack(&mut self, pack: FinishedPack) -> Result<()> {
        let bytes = Bytes::from(pack.bytes);
        let new = PackRef { id: pack.id, length: bytes.len() as u64 };
        let mut new = NewPack { pack: new, index: pack.index, bytes: Some(bytes) };
        // A pack that the log names already was lost, and is made anew: readers look for it in the store.
        let is_named = !self.upload.is_offline && self.state.knows_pack(&new.pack.id)?;
        if new.pack.length > INLINE_PACKS_LENGTH_MAX as u64 || is_named {
            self.store_pack(&mut new, is_named).await?;
        }
        self.upload.packs.push(new);
        Ok(())
    }

    async fn store_pack(&mut self, pack: &mut NewPack, replaces: bool) -> Result<()> {
        let Some(bytes) = pack.bytes.take() else { return Ok(()) };
        if self.upload.is_offline {
            return self.state.keep_pack(&pack.pack.id, &bytes);
        }
        self.report.sent_bytes += pack.pack.length;
        let Environment { store, clock, .. } = self.environment.clone();
        let pack = pack.pack;
        let put = async move {
            let id = pack.id;
            let began = clock.elapsed();
            let sent = match replaces {
                true => store.repair_pack(id, bytes).await,
                false => store.put_pack_deferred(id, bytes).await,
            };
            (pack, sent, clock.elapsed().saturating_sub(began))
        };
        self.upload.sending.push(put.boxed());
        self.upload.sending_units += units(pack.length);
        let pace =
            *self.upload.pace.get_or_insert(Pace::new(SENDING_FIRST, SENDING_STEP, SENDING_MAX));
        self.wait_for_sending(pace.allowed()).await
    }

    /// Waits until at most so many packs of usual length are on their way to the store, or a single one.
    async fn wait_for_sending(&mut self, count: usize) -> Result<()> {
        while self.upload.sending_units > count
            && self.upload.sending.len() > count.min(1)
            && let Some(sent) = self.upload.sending.next().await
        {
            self.note_sent(sent)?;
        }
        Ok(())
    }

    fn note_sent(&mut self, (pack, sent, took): Sent) -> Result<()> {
        let units = units(pack.length);
        self.upload.sending_units = self.upload.sending_units.saturating_sub(units);
        sent?;
        self.upload.stored.insert(pack.id);
        if let Some(pace) = &mut self.upload.pace {
            pace.took_parts(took, units);
        }
        Ok(())
    }

    /// Waits for the next pack of the readers, while others go on to the store.
    async fn next_pack(
        &mut self,
        packs: &mut Receiver<FinishedPack>,
    ) -> Result<Option<FinishedPack>> {
        while !self.upload.sending.is_empty() {
            let sent = match select(pin!(packs.recv()), self.upload.sending.next()).await {
                Either::Left((pack, _)) => return Ok(pack),
                Either::Right((sent, _)) => sent,
            };
            if let Some(sent) = sent {
                self.note_sent(sent)?;
            }
        }
        Ok(packs.recv().await)
    }

    /// Makes all new packs durable and returns those to name and those to take along in a commit.
    pub(super) async fn take_packs(&mut self) -> Result<(Vec<PackRef>, Vec<Vec<u8>>)> {
        let mut packs = std::mem::take(&mut self.upload.packs);
        let length: u64 = packs.iter().map(|pack| pack.pack.length).sum();
        let is_inline = length <= INLINE_PACKS_LENGTH_MAX as u64;
        let (mut named, mut inline) = (Vec::new(), Vec::new());
        for pack in &mut packs {
            match &pack.bytes {
                Some(bytes) if is_inline => inline.push(bytes.to_vec()),
                _ => {
                    self.store_pack(pack, false).await?;
                    named.push(pack.pack);
                }
            }
        }
        self.upload.packs = packs;
        self.wait_for_sending(0).await?;
        if !named.is_empty() && !self.upload.is_offline {
            self.environment.store.sync().await?;
        }
        Ok((named, inline))
    }

    /// Remembers where the chunks of own packs rest, without reading the packs again.
    pub(super) fn learn_own_packs(&mut self) -> Result<()> {
        let packs = std::mem::take(&mut self.upload.packs);
        self.in_transaction(|engine| {
            for new in &packs {
                let chunks =
                    new.index.packed_chunks().map(|packed| (packed.chunk.id, packed.record));
                if engine.state.knows_pack(&new.pack.id)? {
                    engine.state.add_chunks(&new.pack.id, chunks)?;
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
            self.upload.stored.insert(pack.id);
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

/// Returns how many packs of usual length are about as long as one of this length.
fn units(length: u64) -> usize {
    ((length as usize + PACK_STORED_TARGET / 2) / PACK_STORED_TARGET).max(1)
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
