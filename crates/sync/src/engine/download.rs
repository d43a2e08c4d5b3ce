//! Writes remote files into the folder: fetched in windows of bounded size, opened and written by all threads, made
//! durable in groups.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use content::pack::RecordOpener;
use content::packing::KeptBuilder;
use futures_util::future::{BoxFuture, join_all};
use model::environment::random_bytes;
use model::{ChunkId, Content, NodeId, NodeKind, NodeRecord, RelativePath, TreeStore};

use super::{Engine, Environment, Event};
use crate::chunk_reader::{OpenRecord, OpenRecords, StoredRecord};
use crate::error::{Result, SyncError};
use crate::file_system::{FileError, FileKind, FileSystem, StageToken, Stat};
use crate::overlay::{KnownPaths, OverlayNode};
use crate::plan::{Local, LocalMatter, Operation, split};
use crate::prepare::Deltas;
use crate::state::{ChunkPlace, SyncedNode};

mod at_hand;
mod cutting;
mod look;
mod window;

use cutting::Cutter;
use look::Look;
use window::{OpenTarget, PieceWrite, Progress, Window};

/// How many plain bytes are fetched and written at once.
const WINDOW_LENGTH: u64 = 16 * 1024 * 1024;

/// In how many records its chunks rest at most. All of them are open at once, and those of documents and photographs have up to 8 MiB.
const WINDOW_RECORDS_MAX: usize = 96;

/// How many windows are looked into for packs that can be fetched ahead.
const WINDOWS_AHEAD: usize = 5;

/// How many files are made durable together.
const GROUP_FILES: usize = 4096;

/// How many bytes are made durable together.
const GROUP_LENGTH: u64 = 512 * 1024 * 1024;

/// Fewer files than this are put in place by one thread.
const INSTALL_SHARE_MIN: usize = 64;

/// What became of a piece: the number of its file, its node, and how far the file is.
type Written = (usize, NodeId, Result<Progress>);

/// A file that is to be written.
pub(super) struct Target {
    pub(super) node: NodeId,
    pub(super) record: NodeRecord,
    pub(super) version: u64,
    path: RelativePath,
    /// What is at its place now, to be replaced.
    replaces: Option<Stat>,
    pub(super) is_suspect: bool,
    token: StageToken,
    /// What the folder has of it, from which unchanged chunks are taken.
    base: Option<Content>,
    /// Whether something is kept of it for its next version here.
    keeps_sketch: bool,
    /// Whether that is of what it holds in deflate streams, if it has some.
    inflates: bool,
}

impl Target {
    /// Returns the average chunk size with which it was cut; 0 for what is no file.
    fn chunk_size(&self) -> u32 {
        match &self.record.kind {
            NodeKind::File(content) => content.chunk_size,
            NodeKind::Directory | NodeKind::Symlink(_) => 0,
        }
    }
}

impl Engine {
    /// Makes directories, files and links as they are remotely, and changes those that are there.
    pub(super) async fn apply_contents(
        &mut self,
        operations: Vec<(NodeId, Operation)>,
    ) -> Result<bool> {
        let ordered = self.state.reading(|| self.order_contents(operations))?;
        let wanted = self.wanted_length(&ordered)?;
        self.kept_of_received = Deltas::of(self.options.deltas, wanted);
        self.fetcher.index_wanted_packs(&mut self.state, wanted).await?;
        let applied = self.apply_in_order(ordered).await;
        self.fetcher.forget_ahead();
        applied
    }

    /// Returns how many bytes of files are going to be written.
    fn wanted_length(&self, operations: &[(NodeId, Operation)]) -> Result<u64> {
        let mut length = 0;
        for (node, operation) in operations {
            let remote = self.state.node(node)?.expect("planned from the remote tree");
            if let (NodeKind::File(content), false) =
                (&remote.record.kind, *operation == Operation::SetMatter)
            {
                length += content.size;
            }
        }
        Ok(length)
    }

    async fn apply_in_order(&mut self, ordered: Vec<(NodeId, Operation)>) -> Result<bool> {
        let is_setting = |operation: &Operation| *operation == Operation::SetMatter;
        let setting = ordered.iter().filter(|(_, operation)| is_setting(operation));
        let setting: Vec<_> = setting.map(|(node, _)| *node).collect();
        self.note_setting(&setting)?;
        let total = ordered.len() as u64;
        let mut progress = false;
        let mut group = Vec::new();
        let mut length = 0;
        let mut written = 0;
        for (node, operation) in ordered {
            let remote = self.state.node(&node)?.expect("planned from the remote tree");
            if remote.record.kind.is_directory() || operation == Operation::SetMatter {
                let done = self.set_attributes_or_directory(&node, &remote, &operation);
                match done {
                    Ok(true) => {
                        progress = true;
                        continue;
                    }
                    Ok(false) => {}
                    Err(error) => {
                        self.or_problem(&node, Err(error))?;
                        continue;
                    }
                }
            }
            if let NodeKind::File(content) = &remote.record.kind {
                length += content.size;
            }
            group.push((node, operation, remote));
            if group.len() >= GROUP_FILES || length >= GROUP_LENGTH {
                written += group.len() as u64;
                progress |= self.write_group(std::mem::take(&mut group), false).await?;
                length = 0;
                (self.observer)(Event::Written { files: written, total });
            }
        }
        progress |= self.write_group(group, true).await?;
        self.flush_directories()?;
        self.forget_setting()?;
        Ok(progress)
    }

    /// Directories come first, each before what lies in it; then everything else in the order of its ids, which is mostly
    /// the order in which its chunks were packed, so that each pack is needed once.
    fn order_contents(
        &self,
        operations: Vec<(NodeId, Operation)>,
    ) -> Result<Vec<(NodeId, Operation)>> {
        let (mut directories, mut others) = (Vec::new(), Vec::with_capacity(operations.len()));
        for (node, operation) in operations {
            let remote = self.state.node(&node)?.expect("planned from the remote tree");
            if remote.record.kind.is_directory() {
                let path = self.remote_path(&node)?.unwrap_or_default();
                directories.push((path, node, operation));
            } else {
                others.push((node, operation));
            }
        }
        directories.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        let directories = directories.into_iter().map(|(_, node, operation)| (node, operation));
        Ok(directories.chain(others).collect())
    }

    /// Does what needs no content. Returns whether that was all.
    fn set_attributes_or_directory(
        &mut self,
        node: &NodeId,
        remote: &model::TreeNode,
        operation: &Operation,
    ) -> Result<bool> {
        let record = &remote.record;
        let (place, matter) = split(record);
        if *operation == Operation::Materialise {
            let Some(path) = self.trees().path_of_place(&place)? else { return Ok(true) };
            // A directory is made writable, or nothing could be put into it; its mode follows at the end.
            let stat = self.environment.file_system.make_directory(&path, record.mode | 0o700)?;
            let local = Local { place, kind: FileKind::Directory, matter: LocalMatter::Same };
            self.overlay.set(*node, OverlayNode { local, stat });
            self.upload.new_directories.push(*node);
            self.report.received += 1;
            return Ok(true);
        }
        let synced = self.state.synced(node)?;
        let found = self.overlay.get(node).cloned();
        let is_suspect =
            found.as_ref().is_some_and(|found| found.local.matter == LocalMatter::Suspect);
        let known = match found.as_ref().map(|found| &found.local.matter) {
            Some(LocalMatter::Known(matter)) => Some(matter.kind.clone()),
            _ => synced.as_ref().map(|synced| synced.record.kind.clone()),
        };
        if known.as_ref() != Some(&matter.kind)
            || is_suspect
            || matches!(matter.kind, NodeKind::Symlink(_))
        {
            return Ok(false);
        }
        let trees = self.trees();
        let (Some(path), Some(expected)) = (trees.local_path(node)?, trees.local_stat(node)?)
        else {
            return Ok(true);
        };
        let modified = (!matter.kind.is_directory()).then_some(matter.modified);
        let stat =
            self.environment.file_system.set_attributes(&path, &expected, matter.mode, modified)?;
        self.environment.file_system.make_durable()?;
        self.write_row(*node, remote.version, record.clone(), stat)?;
        self.report.received += 1;
        Ok(true)
    }

    /// Returns the rows of directories that were made, and forgets that they were. They are written before those of
    /// what lies in them: a row is worth nothing without the rows above it.
    fn rows_of_directories(&mut self) -> Result<Vec<(NodeId, u64, NodeRecord, Stat)>> {
        let made = std::mem::take(&mut self.upload.new_directories);
        let mut rows = Vec::with_capacity(made.len());
        for node in made {
            let remote = self.state.node(&node)?.expect("made from the remote tree");
            let Some(path) = self.trees().local_path(&node)? else { continue };
            let mut version = remote.version;
            let Some(made) = self.trees().local_stat(&node)? else { continue };
            let found = self.environment.file_system.stat(&path)?;
            let Some(stat) = found.filter(|found| found.is_same_file(&made)) else {
                // A user has deleted or moved it meanwhile. It was here all the same, and so was what lay in it.
                rows.push((node, version, remote.record, made));
                continue;
            };
            if stat.mode != remote.record.mode {
                // Until the mode is set there is no base: cut off here, the next run would take the mode for an edit.
                version = 0;
                self.upload.closed_directories.push(node);
            }
            rows.push((node, version, remote.record, stat));
        }
        Ok(rows)
    }

    fn write_rows(&mut self, rows: Vec<(NodeId, u64, NodeRecord, Stat)>) -> Result<()> {
        self.in_transaction(|engine| {
            let mut rows = rows.into_iter();
            rows.try_for_each(|(node, version, record, stat)| {
                engine.write_row(node, version, record, stat)
            })
        })
    }

    /// Finishes directories that were made: those that nothing was put into, and the modes of those that had to be open
    /// meanwhile.
    fn flush_directories(&mut self) -> Result<()> {
        if !self.upload.new_directories.is_empty() {
            self.environment.file_system.make_durable()?;
            let rows = self.rows_of_directories()?;
            self.write_rows(rows)?;
        }
        let closed = std::mem::take(&mut self.upload.closed_directories);
        if closed.is_empty() {
            return Ok(());
        }
        let mut rows = Vec::with_capacity(closed.len());
        for node in closed {
            let remote = self.state.node(&node)?.expect("made from the remote tree");
            let (Some(path), Some(stat)) =
                (self.trees().local_path(&node)?, self.trees().local_stat(&node)?)
            else {
                continue;
            };
            let mode = remote.record.mode;
            match self.environment.file_system.set_attributes(&path, &stat, mode, None) {
                Ok(stat) => rows.push((node, remote.version, remote.record, stat)),
                Err(error) => {
                    self.or_problem(&node, Err(error.into()))?;
                }
            }
        }
        self.environment.file_system.make_durable()?;
        self.write_rows(rows)
    }

    /// The folder has the remote version of a node: so does the merge base.
    fn write_row(
        &mut self,
        node: NodeId,
        version: u64,
        record: NodeRecord,
        stat: Stat,
    ) -> Result<()> {
        let local = self.overlay.get(&node).map(|found| found.local.place.clone());
        let (place, _) = split(&record);
        self.state.set_synced(&SyncedNode {
            node,
            version,
            record,
            stat: Some(stat),
            pending: None,
        })?;
        match local {
            // Moved here meanwhile: the place still differs.
            Some(local) if local != place => {
                let local = Local { place: local, kind: stat.kind, matter: LocalMatter::Same };
                self.overlay.set(node, OverlayNode { local, stat });
            }
            _ => self.overlay.forget(&node),
        }
        self.state.remove_merged(&node)
    }

    /// Writes files and links aside, makes them durable together, puts them in place, and remembers them. Beside the end of the
    /// last group the log is looked at.
    async fn write_group(
        &mut self,
        group: Vec<(NodeId, Operation, model::TreeNode)>,
        is_last: bool,
    ) -> Result<bool> {
        let targets = self.state.reading(|| {
            let mut paths = KnownPaths::default();
            let target = |(node, operation, remote)| {
                self.target(node, &operation, remote, &mut paths).transpose()
            };
            group.into_iter().filter_map(target).collect::<Result<Vec<_>>>()
        })?;
        if targets.is_empty() {
            return Ok(false);
        }
        let mut failed = self.stage(&targets, |_| true, is_last).await?;
        if !failed.is_empty() && self.turn_to_spares(&targets, &failed).await? {
            let again: BTreeSet<usize> = std::mem::take(&mut failed).into_keys().collect();
            for number in &again {
                self.environment.file_system.discard(targets[*number].token)?;
            }
            failed = self.stage(&targets, |number| again.contains(&number), false).await?;
        }
        self.environment.file_system.make_durable()?;
        self.in_transaction(|engine| {
            engine.note_suspects(&targets)?;
            engine.note_installing(&targets)
        })?;
        let mut staged = Vec::with_capacity(targets.len() - failed.len());
        for (number, target) in targets.into_iter().enumerate() {
            match failed.get(&number) {
                Some(_) => self.environment.file_system.discard(target.token)?,
                None => staged.push(target),
            }
        }
        let mut installed = Vec::with_capacity(staged.len());
        for (target, result) in self.install(staged).await {
            match result {
                Ok(stat) => installed.push((target, stat)),
                Err(error) => {
                    self.environment.file_system.discard(target.token)?;
                    self.or_problem(&target.node, Err(error.into()))?;
                }
            }
        }
        for (node, error) in failed.into_values() {
            self.or_problem(&node, Err(error))?;
        }
        self.environment.file_system.make_durable()?;
        let progress = !installed.is_empty();
        self.report.received += installed.len() as u64;
        for (target, _) in &installed {
            (self.observer)(Event::Received(target.path.clone()));
        }
        let mut rows = self.rows_of_directories()?;
        rows.extend(
            installed
                .into_iter()
                .map(|(target, stat)| (target.node, target.version, target.record, stat)),
        );
        self.in_transaction(|engine| {
            engine.write_rows(rows)?;
            let sketches = std::mem::take(&mut engine.received_sketches);
            engine.state.keep_sketches(&sketches)?;
            engine.forget_trashed_suspects()?;
            engine.forget_installing()
        })?;
        Ok(progress)
    }

    fn target(
        &self,
        node: NodeId,
        operation: &Operation,
        remote: model::TreeNode,
        paths: &mut KnownPaths,
    ) -> Result<Option<Target>> {
        let trees = self.trees();
        let (place, _) = split(&remote.record);
        let found = self.overlay.get(&node);
        let (path, replaces) = if *operation == Operation::Materialise {
            (trees.path_of_place_by(&place, paths)?, None)
        } else {
            (trees.local_path_by(&node, paths)?, trees.local_stat(&node)?)
        };
        let is_suspect = found.is_some_and(|found| found.local.matter == LocalMatter::Suspect);
        let token = u64::from_le_bytes(random_bytes(&*self.environment.random));
        let (version, record) = (remote.version, remote.record);
        let there = match found.map_or(&LocalMatter::Same, |found| &found.local.matter) {
            _ if replaces.is_none() => None,
            LocalMatter::Same => self.state.synced(&node)?.map(|synced| synced.record.kind),
            LocalMatter::Known(matter) => Some(matter.kind.clone()),
            LocalMatter::Touched | LocalMatter::Suspect => None,
        };
        let base = match there {
            Some(NodeKind::File(content)) => Some(content),
            _ => None,
        };
        let keeps_sketch = match &record.kind {
            NodeKind::File(content) => self.kept_of_received.keeps(content.size, base.is_some()),
            NodeKind::Directory | NodeKind::Symlink(_) => false,
        };
        let inflates = self.kept_of_received.inflates(base.is_some());
        Ok(path.map(|path| Target {
            node,
            record,
            version,
            path,
            replaces,
            is_suspect,
            token,
            base,
            keeps_sketch,
            inflates,
        }))
    }

    /// Puts files in their places, many by all threads. Returns what became of each.
    async fn install(&self, targets: Vec<Target>) -> Vec<(Target, Result<Stat, FileError>)> {
        let workers = &self.environment.workers;
        let share = targets.len().div_ceil(workers.count()).max(INSTALL_SHARE_MIN);
        let mut results = Vec::with_capacity(targets.len());
        let mut targets = targets.into_iter();
        let mut jobs = Vec::new();
        while targets.len() > share {
            let share: Vec<_> = targets.by_ref().take(share).collect();
            let file_system = self.environment.file_system.clone();
            jobs.push(workers.run(move || install_share(&*file_system, share)));
        }
        let last = install_share(&*self.environment.file_system, targets.collect());
        for job in jobs {
            results.extend(job.await);
        }
        results.extend(last);
        results
    }

    /// Finds other places for chunks that are not right where they should be. Returns whether all of some file can be read now, so that
    /// it may be tried again: packs may have become known meanwhile, too.
    async fn turn_to_spares(
        &mut self,
        targets: &[Target],
        failed: &BTreeMap<usize, (NodeId, SyncError)>,
    ) -> Result<bool> {
        if !self.state.has_spares()? {
            return Ok(false);
        }
        let mut any = false;
        for (number, (_, error)) in failed {
            let NodeKind::File(content) = &targets[*number].record.kind else { continue };
            if !error.is_of_stored_data() {
                continue;
            }
            let chunks = match self.fetcher.expand(&self.state, content).await {
                Err(error) if error.is_of_stored_data() => continue,
                chunks => chunks?,
            };
            let mut is_whole = true;
            for chunk in chunks {
                match self.fetcher.chunk(&self.state, &chunk).await {
                    Err(error) if error.is_of_stored_data() => is_whole = false,
                    read => drop(read?),
                }
            }
            any |= is_whole;
        }
        Ok(any)
    }

    /// Writes targets aside, window by window. Returns which failed, each with its node.
    async fn stage(
        &mut self,
        targets: &[Target],
        is_meant: impl Fn(usize) -> bool,
        is_last: bool,
    ) -> Result<BTreeMap<usize, (NodeId, SyncError)>> {
        let mut failed = BTreeMap::new();
        let mut cutter = Cutter::new((0..targets.len()).filter(|number| is_meant(*number)));
        let mut windows: VecDeque<Window> = VecDeque::new();
        let mut open: HashMap<usize, OpenTarget> = HashMap::new();
        let mut look = Look::default();
        loop {
            // While this window is fetched and written, the packs of the next ones are on their way.
            while windows.len() <= WINDOWS_AHEAD {
                let cut = self.cut(&mut cutter, targets, &mut failed, windows.is_empty());
                let Some(window) = look.beside(cut).await? else { break };
                windows.push_back(window);
            }
            let Some(window) = windows.pop_front() else { break };
            let ahead = std::iter::once(&window).chain(&windows);
            let places: Vec<ChunkPlace> = ahead.flat_map(Window::places).collect();
            self.fetcher.fetch_ahead(&self.state, places)?;
            let is_all_known = windows.is_empty() && cutter.is_done();
            let is_end =
                (is_all_known || self.fetcher.expects_packs()) && self.fetcher.has_asked_for_all();
            if is_last && is_end && self.has_fetched {
                let Environment { log, clock, .. } = &self.environment;
                look.begin(log.clone(), &**clock, self.known_until);
            }
            look.beside(self.write_window(window, targets, &mut open, &mut failed)).await?;
        }
        self.looked = look.end().await;
        Ok(failed)
    }

    /// Fetches what a window needs and writes its pieces, divided among the threads.
    async fn write_window(
        &mut self,
        window: Window,
        targets: &[Target],
        open: &mut HashMap<usize, OpenTarget>,
        failed: &mut BTreeMap<usize, (NodeId, SyncError)>,
    ) -> Result<()> {
        let places: BTreeSet<ChunkPlace> = window.places().collect();
        self.fetcher.place_bases(&mut self.state, &places).await?;
        let at_hand = self.at_hand(&window, targets).await?;
        let opened = match self.opened(&places, at_hand).await {
            Ok(opened) => Arc::new(opened),
            // One pack is damaged or gone: every piece is tried for itself, so that only its files fail.
            Err(error) if error.is_of_stored_data() => {
                if let [(piece, _)] = window.pieces.as_slice() {
                    failed.insert(piece.target, (targets[piece.target].node, error));
                    return Ok(());
                }
                for piece in window.pieces {
                    let alone = Window::of_one(piece);
                    Box::pin(self.write_window(alone, targets, open, failed)).await?;
                }
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let mut jobs = Vec::new();
        let share = window.length / self.environment.workers.count() as u64 + 1;
        let mut batch: Vec<PieceWrite> = Vec::new();
        let mut length = 0;
        for (piece, ends) in window.pieces {
            if failed.contains_key(&piece.target) {
                continue;
            }
            let target = &targets[piece.target];
            let open = open.remove(&piece.target);
            let is_sketched = target.keeps_sketch && open.is_none();
            length += piece.chunks.iter().map(|(chunk, _)| u64::from(chunk.length)).sum::<u64>();
            batch.push(PieceWrite {
                open,
                sketch: is_sketched.then(|| KeptBuilder::new(self.keys.content(), target.inflates)),
                node: target.node,
                token: target.token,
                path: target.path.clone(),
                namer: self.fetcher.namer().clone(),
                finish: ends.then(|| {
                    let NodeRecord { mode, modified, .. } = target.record;
                    (mode, modified, target.chunk_size())
                }),
                piece,
            });
            if length >= share {
                jobs.push(self.write_job(std::mem::take(&mut batch), opened.clone()));
                length = 0;
            }
        }
        jobs.push(self.write_job(batch, opened.clone()));
        for written in self.fetcher.beside(join_all(jobs)).await {
            for written in written {
                self.take_written(written, open, failed)?;
            }
        }
        for (place, record) in &*opened {
            self.fetcher.keep(*place, record.clone());
        }
        Ok(())
    }

    fn take_written(
        &mut self,
        (target, node, result): Written,
        open: &mut HashMap<usize, OpenTarget>,
        failed: &mut BTreeMap<usize, (NodeId, SyncError)>,
    ) -> Result<()> {
        match result {
            Ok(Progress::Open(rest)) => drop(open.insert(target, *rest)),
            Ok(Progress::Ended(sketch)) => {
                self.received_sketches.extend(sketch.map(|bytes| (node, bytes)));
            }
            Err(SyncError::File(error)) => {
                failed.insert(target, (node, fatal_or(error)?));
            }
            Err(error) if error.is_of_stored_data() => {
                failed.insert(target, (node, error));
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Fetches and opens records, some of which are made from what is at hand.
    async fn opened(
        &mut self,
        places: &BTreeSet<ChunkPlace>,
        at_hand: HashMap<ChunkId, Bytes>,
    ) -> Result<OpenRecords> {
        let (mut opened, stored) = self.fetcher.fetch(&self.state, places, at_hand).await?;
        opened.extend(self.open_records(Arc::new(stored)).await?);
        Ok(opened)
    }

    async fn open_records(
        &mut self,
        stored: Arc<BTreeMap<ChunkPlace, StoredRecord>>,
    ) -> Result<Vec<(ChunkPlace, Arc<OpenRecord>)>> {
        let places: Vec<ChunkPlace> = stored.keys().copied().collect();
        let share = places.len().div_ceil(self.environment.workers.count()).max(1);
        let mut jobs = Vec::new();
        for share in places.chunks(share) {
            let (share, stored, namer) =
                (share.to_vec(), stored.clone(), self.fetcher.namer().clone());
            jobs.push(self.environment.workers.run(move || {
                let mut opener = RecordOpener::default();
                let open = |place: ChunkPlace| {
                    let opened = stored[&place].open(&mut opener, &namer);
                    let is_sound = opened.as_ref().is_ok_and(|o| stored[&place].is_sound(o));
                    (place, opened, is_sound, stored[&place].has_bases())
                };
                share.into_iter().map(open).collect::<Vec<_>>()
            }));
        }
        let mut records = Vec::new();
        for opened in self.fetcher.beside(join_all(jobs)).await {
            for (place, opened, is_sound, has_bases) in opened {
                let mended = match is_sound || !has_bases {
                    true => None,
                    false => self.fetcher.open_mended(&self.state, place).await?,
                };
                // What is right in a damaged record serves all the same.
                let record = match mended {
                    Some(record) => record,
                    None => Arc::new(opened?),
                };
                records.push((place, record));
            }
        }
        Ok(records)
    }

    fn write_job(
        &self,
        batch: Vec<PieceWrite>,
        opened: Arc<OpenRecords>,
    ) -> BoxFuture<'static, Vec<Written>> {
        let file_system = self.environment.file_system.clone();
        self.environment.workers.run(move || {
            let write = |write: PieceWrite| {
                let (target, node) = (write.piece.target, write.node);
                (target, node, write.run(&*file_system, &opened))
            };
            batch.into_iter().map(write).collect()
        })
    }
}

fn install_share(
    file_system: &dyn FileSystem,
    targets: Vec<Target>,
) -> Vec<(Target, Result<Stat, FileError>)> {
    let install = |target: Target| {
        let result = match target.replaces {
            // Damaged bytes may still be worth something to their owner.
            Some(stat) if target.is_suspect => {
                file_system.replace(target.token, &target.path, &stat, "suspect")
            }
            expected => file_system.install(target.token, &target.path, expected.as_ref()),
        };
        (target, result)
    };
    targets.into_iter().map(install).collect()
}

/// Errors of the whole folder end the run; those of one file do not.
fn fatal_or(error: FileError) -> Result<SyncError> {
    match error {
        FileError::NoSpace(_) | FileError::ReadOnly(_) | FileError::NotDurable(_) => {
            Err(error.into())
        }
        other => Ok(other.into()),
    }
}
