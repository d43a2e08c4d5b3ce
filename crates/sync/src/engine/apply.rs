//! Carries out one plan after the other: state only, then moves, then contents, then removals.

use std::collections::{BTreeMap, BTreeSet};

use model::environment::random_bytes;
use model::{ConflictOrigin, Name, NodeId, NodeState, RelativePath, TreeStore};

use super::{Engine, Event};
use crate::error::{Result, SyncError};
use crate::file_system::{FileError, FileKind, Stat};
use crate::overlay::OverlayNode;
use crate::plan::{
    Local, LocalMatter, Operation, Place, Trees, copied_place, parked_place, plan, split,
};
use crate::scan::{Problem, ProblemKind};
use crate::state::SyncedNode;

/// What became of carrying out plans.
pub(super) struct Merged {
    /// Whether anything was done.
    pub(super) any: bool,
    /// The last plan, where it has none but proposals; nothing has changed since.
    pub(super) proposals: Option<BTreeMap<NodeId, Operation>>,
}

impl Engine {
    /// Plans and carries out everything but proposals, until a plan has none but proposals.
    pub(super) async fn merge_round(&mut self) -> Result<Merged> {
        let mut any = false;
        for _ in 0..super::ROUNDS_MAX {
            let mut operations = self.plan()?;
            if operations.values().all(Operation::is_proposal) {
                self.forget_moving()?;
                return Ok(Merged { any, proposals: Some(operations) });
            }
            operations.retain(|_, operation| !operation.is_proposal());
            let mut classes: BTreeMap<u8, Vec<(NodeId, Operation)>> = BTreeMap::new();
            for (node, operation) in operations {
                classes.entry(operation.class()).or_default().push((node, operation));
            }
            let mut progress = false;
            for (class, operations) in classes {
                progress |= match class {
                    0 => self.apply_to_state(operations).await?,
                    1 | 2 => self.apply_moves(operations)?,
                    3 => self.apply_contents(operations).await?,
                    _ => self.apply_removals(operations)?,
                };
            }
            any |= progress;
            if !progress {
                return Ok(Merged { any, proposals: None });
            }
        }
        Err(SyncError::NotSettling(super::ROUNDS_MAX))
    }

    /// Writes into the merge base the directories that are here as the log has them, and have no row.
    pub(super) async fn agree_on_directories(&mut self) -> Result<()> {
        let is_directory = |node: &NodeId| {
            self.overlay.get(node).is_some_and(|found| found.stat.kind == FileKind::Directory)
        };
        let directories: BTreeSet<_> = self.overlay.nodes().copied().filter(is_directory).collect();
        if directories.is_empty() {
            return Ok(());
        }
        let mut operations = self.plan_of(&directories)?;
        operations.retain(|_, operation| *operation == Operation::Accept);
        self.apply_to_state(operations.into_iter().collect()).await.map(drop)
    }

    /// Plans the next operations.
    pub(super) fn plan(&self) -> Result<BTreeMap<NodeId, Operation>> {
        self.plan_of(&self.differing()?)
    }

    fn plan_of(&self, nodes: &BTreeSet<NodeId>) -> Result<BTreeMap<NodeId, Operation>> {
        let operations = self.state.reading(|| plan(&self.trees(), nodes))?;
        #[cfg(feature = "testing")]
        if let Some(sabotage) = self.sabotage {
            return Ok(operations.into_iter().map(|(node, one)| (node, sabotage(one))).collect());
        }
        Ok(operations)
    }

    /// Reads what must be read before it can be planned further, without changing folder or merge base.
    pub(super) async fn read_round(&mut self) -> Result<bool> {
        let mut operations = self.plan()?;
        operations.retain(|_, operation| *operation == Operation::Read);
        self.read_nodes(operations.into_keys().collect()).await
    }

    async fn apply_to_state(&mut self, operations: Vec<(NodeId, Operation)>) -> Result<bool> {
        let mut to_read = Vec::new();
        let mut rest = Vec::new();
        for (node, operation) in operations {
            match operation {
                Operation::Read => to_read.push(node),
                operation => rest.push((node, operation)),
            }
        }
        let progress = !rest.is_empty();
        self.in_transaction(|engine| {
            for (node, operation) in rest {
                match operation {
                    Operation::Accept => engine.accept(&node)?,
                    Operation::Forget => engine.forget(&node)?,
                    Operation::Refresh => engine.refresh(&node)?,
                    Operation::Adopt(holder) => engine.adopt(&node, holder)?,
                    other => unreachable!("{other:?} is of another class"),
                }
            }
            Ok(())
        })?;
        Ok(self.read_nodes(to_read).await? || progress)
    }

    /// Runs `body` in a transaction of the state.
    pub(super) fn in_transaction<T>(
        &mut self,
        body: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        self.state.begin()?;
        let result = body(self);
        self.state.end(result.is_ok())?;
        result
    }

    fn accept(&mut self, node: &NodeId) -> Result<()> {
        let remote = self.state.node(node)?.expect("planned from the remote tree");
        let synced = self.state.synced(node)?;
        let found = self.overlay.get(node).cloned();
        let (place, matter) = split(&remote.record);
        // What was moved here is the same, with another change time.
        let is_read = |found: &OverlayNode| {
            [LocalMatter::Same, LocalMatter::Known(matter.clone())].contains(&found.local.matter)
        };
        let stat = match &found {
            Some(found) if is_read(found) => Some(self.stat_for_row(node, found.stat)),
            _ => synced.and_then(|synced| synced.stat),
        };
        let row = SyncedNode {
            node: *node,
            version: remote.version,
            record: remote.record,
            stat,
            pending: None,
        };
        self.state.set_synced(&row)?;
        if let Some(mut found) = found
            && is_read(&found)
        {
            if found.local.place == place {
                self.overlay.forget(node);
            } else {
                found.local.matter = LocalMatter::Same;
                self.overlay.set(*node, found);
            }
        }
        self.state.remove_merged(node)
    }

    fn forget(&mut self, node: &NodeId) -> Result<()> {
        self.state.remove_synced(node)?;
        self.overlay.forget(node);
        let remote = self.state.node(node)?;
        // What lay in a directory lies in the one that it became; without a row above it, its own would be worth nothing.
        if let Some(NodeState::MergedInto(holder)) = remote.as_ref().map(|remote| &remote.state) {
            self.state.reparent_synced(node, holder)?;
        }
        let is_alive = remote.is_some_and(|remote| remote.is_alive());
        if is_alive { Ok(()) } else { self.state.remove_unsynced(node) }
    }

    fn refresh(&mut self, node: &NodeId) -> Result<()> {
        let Some(found) = self.overlay.get(node).cloned() else { return Ok(()) };
        let mut row = self.state.synced(node)?.expect("planned from the merge base");
        row.stat = Some(self.stat_for_row(node, found.stat));
        self.state.set_synced(&row)?;
        self.overlay.forget(node);
        Ok(())
    }

    /// What is in the folder under one id is the node of another id.
    fn adopt(&mut self, node: &NodeId, holder: NodeId) -> Result<()> {
        let remote = self.state.node(&holder)?.expect("the fold merges into known nodes");
        let local = self.trees().local(node)?.expect("planned from the folder");
        let stat = self.trees().local_stat(node)?;
        let mut record = remote.record;
        record.parent = local.place.parent;
        record.name = local.place.name.clone();
        self.state.remove_synced(node)?;
        self.overlay.forget(node);
        self.state.reparent_synced(node, &holder)?;
        self.overlay.adopt_children(node, holder);
        // The matter is equal where it counts, or is compared by the next scan.
        let stat = stat.filter(|stat| stat.kind == FileKind::Directory);
        let row = SyncedNode { node: holder, version: 0, record, stat, pending: None };
        self.state.set_synced(&row)?;
        if let (Some(stat), Some(found)) = (stat, Some(local.clone())) {
            self.overlay.set(
                holder,
                OverlayNode { local: Local { matter: LocalMatter::Touched, ..found }, stat },
            );
        } else if let Some(stat) = self.stat_of(&local.place)?
            // What a user has put there since is another node, which the next scan finds.
            && stat.kind == local.kind
        {
            let matter = LocalMatter::Touched;
            self.overlay.set(holder, OverlayNode { local: Local { matter, ..local }, stat });
        }
        self.state.remove_unsynced(node)?;
        self.state.add_unsynced(&holder)
    }

    fn stat_of(&self, place: &Place) -> Result<Option<Stat>> {
        match self.trees().path_of_place(place)? {
            Some(path) => Ok(self.environment.file_system.stat(&path)?),
            None => Ok(None),
        }
    }

    fn apply_moves(&mut self, operations: Vec<(NodeId, Operation)>) -> Result<bool> {
        let mut progress = false;
        let is_home =
            |operation: &Operation| !matches!(operation, Operation::KeepCopy | Operation::Park);
        let homeward = operations.iter().filter(|(_, operation)| is_home(operation));
        let homeward: Vec<_> = homeward.map(|(node, _)| *node).collect();
        self.note_moving(&homeward)?;
        for (node, operation) in operations {
            let done = match operation {
                Operation::KeepCopy => self.keep_copy(&node),
                Operation::Park => self.park(&node),
                _ => {
                    let remote = self.state.node(&node)?.expect("planned from the remote tree");
                    self.move_local(&node, split(&remote.record).0)
                }
            };
            progress |= self.or_problem(&node, done)?;
        }
        self.environment.file_system.make_durable()?;
        Ok(progress)
    }

    fn park(&mut self, node: &NodeId) -> Result<()> {
        let mut place = parked_place(node);
        let name = place.name.clone();
        // A user may have taken even this name, for example by writing to what was parked.
        for attempt in 2.. {
            match self.environment.file_system.stat(&RelativePath::ROOT.join(&place.name)?)? {
                None => break,
                Some(_) => {
                    place.name =
                        Name::new([name.as_bytes(), format!("-{attempt}").as_bytes()].concat())?;
                }
            }
        }
        self.move_local(node, place)
    }

    /// Moves a node in the folder. Its row stays until the move is durable and planned over again: cut off in between,
    /// the node is found at its new place, which is the remote one, or at its old place, and is moved again.
    fn move_local(&mut self, node: &NodeId, target: Place) -> Result<()> {
        let trees = self.trees();
        let Some(local) = trees.local(node)? else { return Ok(()) };
        let known = trees.local_stat(node)?;
        if known.is_none() {
            // Nobody has looked at it yet: something else may be under its name.
            return self.find_again(node);
        }
        let (Some(from), Some(to)) = (trees.local_path(node)?, trees.path_of_place(&target)?)
        else {
            return Ok(());
        };
        let (after, is_as_known) = self.rename(&from, &to, known)?;
        let matter = if is_as_known { local.matter } else { LocalMatter::Touched };
        let local = Local { place: target, kind: local.kind, matter };
        self.overlay.set(*node, OverlayNode { local, stat: after });
        self.report.received += 1;
        Ok(())
    }

    /// Renames, and tells whether what was renamed is what is known of it. It is looked at before: renaming sets the
    /// change time, which may be all that tells of an edit.
    fn rename(
        &self,
        from: &RelativePath,
        to: &RelativePath,
        known: Option<Stat>,
    ) -> Result<(Stat, bool)> {
        let before = self.environment.file_system.stat(from)?;
        let after = self.environment.file_system.rename(from, to)?;
        if !known.is_none_or(|known| known.is_same_file(&after)) {
            // Something else has taken the name meanwhile.
            self.undo_move(to, from);
            return Err(FileError::Changed(from.clone()).into());
        }
        let is_as_known = known.zip(before).is_some_and(|(known, before)| match after.kind {
            FileKind::Directory => (known.inode, known.mode) == (after.inode, after.mode),
            _ => known == before && known.is_same_but_renamed(&after),
        });
        Ok((after, is_as_known))
    }

    /// Puts a file of a user that was moved by mistake where it was, or beside it where that name is taken again. If nothing
    /// of this can be done, the next scan finds it where it is.
    fn undo_move(&self, moved: &RelativePath, home: &RelativePath) {
        let Some((directory, name)) = home.split_last() else { return };
        let mut place = home.clone();
        for attempt in 0.. {
            match self.environment.file_system.rename(moved, &place) {
                Err(FileError::AlreadyExists(_)) => {}
                Ok(_) | Err(_) => return,
            }
            let beside = directory.join(&name.conflict(&self.conflict_label(), attempt));
            let Ok(beside) = beside else { return };
            place = beside;
        }
    }

    fn conflict_label(&self) -> String {
        format!("conflict {}", self.options.device_name)
    }

    /// Both sides have changed a file: what is in the folder becomes another node, and the way is free.
    fn keep_copy(&mut self, node: &NodeId) -> Result<()> {
        let found = self.overlay.get(node).cloned().expect("a conflict was read");
        let Some(from) = self.trees().local_path(node)? else { return Ok(()) };
        let remote = self.state.node(node)?.expect("planned from the remote tree");
        let home = split(&remote.record).0;
        let is_home_here = matches!(self.trees().path_of_place(&home), Ok(Some(_)));
        let mut place = copied_place(&found.local.place, &home, is_home_here);
        let label = self.conflict_label();
        let wanted = place.name.clone();
        let mut attempt = 0;
        let to = loop {
            place.name = wanted.conflict(&label, attempt);
            attempt += 1;
            let path = self.trees().path_of_place(&place)?.expect("its directory is in the folder");
            if self.trees().local_holder(&place)?.is_none()
                && self.trees().remote_holder(&place)?.is_none()
                && self.environment.file_system.stat(&path)?.is_none()
            {
                break path;
            }
        };
        let (after, is_as_known) = self.rename(&from, &to, Some(found.stat))?;
        let copy = NodeId::from_bytes(random_bytes(&*self.environment.random));
        let base = self.state.synced(node)?.map_or(0, |synced| synced.version);
        let LocalMatter::Known(matter) = &found.local.matter else {
            unreachable!("a conflict was read")
        };
        let record = model::NodeRecord {
            parent: place.parent,
            name: place.name.clone(),
            mode: matter.mode,
            modified: matter.modified,
            kind: matter.kind.clone(),
            conflict: Some(ConflictOrigin { node: *node, base }),
        };
        let row = SyncedNode { node: copy, version: 0, record, stat: None, pending: None };
        self.in_transaction(|engine| {
            engine.state.remove_synced(node)?;
            engine.state.set_synced(&row)
        })?;
        self.overlay.forget(node);
        let matter = if is_as_known { found.local.matter } else { LocalMatter::Touched };
        let local = Local { place, kind: found.local.kind, matter };
        self.overlay.set(copy, OverlayNode { local, stat: after });
        self.report.kept_copies.push(to.clone());
        (self.observer)(Event::KeptCopy(to));
        Ok(())
    }

    fn apply_removals(&mut self, operations: Vec<(NodeId, Operation)>) -> Result<bool> {
        let label = format!("v{}", self.head()?.seq);
        let mut progress = false;
        let mut removed = Vec::new();
        for (node, _) in operations {
            let trees = self.trees();
            let (Some(path), Some(stat)) = (trees.local_path(&node)?, trees.local_stat(&node)?)
            else {
                continue;
            };
            match self.other_one(&node, &stat)? {
                OtherOne::There => {}
                OtherOne::Same => {
                    removed.push(node);
                    continue;
                }
                OtherOne::Gone(holder) => {
                    self.find_again(&holder)?;
                    progress = true;
                    continue;
                }
            }
            match self.environment.file_system.trash(&path, &stat, &label) {
                Ok(()) => {
                    (self.observer)(Event::Removed(path));
                    removed.push(node);
                }
                // Something that is not synced lies in it: then the directory stays, for everybody.
                Err(FileError::NotEmpty(_)) => {
                    let remote = self.state.node(&node)?.expect("planned from the remote tree");
                    if let Some(mut row) = self.state.synced(&node)? {
                        row.version = remote.version;
                        self.state.set_synced(&row)?;
                    }
                    progress = true;
                }
                Err(FileError::NotFound(_)) => removed.push(node),
                Err(error) => {
                    self.or_problem(&node, Err(error.into()))?;
                }
            }
        }
        self.environment.file_system.make_durable()?;
        progress |= !removed.is_empty();
        self.report.received += removed.len() as u64;
        self.in_transaction(|engine| removed.iter().try_for_each(|node| engine.forget(node)))?;
        Ok(progress)
    }

    /// What is removed because it is one with another node must not be the last there is of both: a user may have moved the
    /// other one while the folder was scanned.
    fn other_one(&self, node: &NodeId, stat: &Stat) -> Result<OtherOne> {
        let remote = self.state.node(node)?;
        let Some(NodeState::MergedInto(holder)) = remote.map(|remote| remote.state) else {
            return Ok(OtherOne::There);
        };
        let Some(path) = self.trees().local_path(&holder)? else { return Ok(OtherOne::There) };
        let known = self.trees().local_stat(&holder)?;
        Ok(match self.environment.file_system.stat(&path)? {
            Some(found) if found.is_same_file(stat) => OtherOne::Same,
            Some(found) if known.is_none_or(|known| known.inode == found.inode) => OtherOne::There,
            _ => OtherOne::Gone(holder),
        })
    }

    /// Turns an error of one file into a problem of the report; the rest goes on.
    pub(super) fn or_problem(&mut self, node: &NodeId, result: Result<()>) -> Result<bool> {
        let error = match result {
            Ok(()) => return Ok(true),
            Err(SyncError::File(error)) if !is_fatal(&error) => SyncError::File(error),
            Err(error @ SyncError::Path(_)) => error,
            Err(error) if error.is_of_stored_data() => error,
            Err(error) => return Err(error),
        };
        let kind = match &error {
            SyncError::File(FileError::Changed(_) | FileError::NotFound(_)) => {
                ProblemKind::Changing
            }
            SyncError::File(FileError::AlreadyExists(_)) => ProblemKind::Blocked,
            other => ProblemKind::Unreadable(other.to_string()),
        };
        let path = self.shown_path(node)?;
        if error.is_of_stored_data() {
            self.missed.push((*node, path.clone()));
        }
        self.report.problems.push(Problem { path, name: None, kind });
        self.skipped.insert(*node);
        Ok(false)
    }

    /// Returns a path by which people know a node.
    fn shown_path(&self, node: &NodeId) -> Result<RelativePath> {
        let remote = model::tree::path_of(&self.state, node).ok().flatten();
        match remote {
            Some(path) => Ok(path),
            None => Ok(self.trees().local_path(node)?.unwrap_or_default()),
        }
    }
}

/// Where the node is with which another one became one.
enum OtherOne {
    /// Elsewhere, or there is none.
    There,
    /// It is the same file or directory.
    Same,
    /// It is not where it was.
    Gone(NodeId),
}

/// Tells whether an error concerns the whole folder, so that going on is useless.
fn is_fatal(error: &FileError) -> bool {
    matches!(error, FileError::NoSpace(_) | FileError::ReadOnly(_) | FileError::NotDurable(_))
}
