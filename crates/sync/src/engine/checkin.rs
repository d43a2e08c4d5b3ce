//! Records what differs in the folder: reads files, packs new chunks, and puts commits into the outbox.

use std::collections::{BTreeMap, BTreeSet};

use model::codec::encode_message;
use model::commit::COMMIT_CHANGES_MAX;
use model::environment::random_bytes;
use model::{Action, Change, Commit, NodeId, NodeKind, NodeRecord, OpId, TreeNode, TreeStore};

use super::early::Ahead;
use super::reading::Packing;
use super::upload::CommitPacks;
use super::{Engine, Event};
use crate::error::Result;
use crate::overlay::KnownPaths;
use crate::plan::order::{Step, order};
use crate::plan::{LocalMatter, Operation, Trees, split};
use crate::scan::{Problem, ProblemKind};
use crate::state::SyncedNode;

/// How many changes go into one commit.
const GROUP_CHANGES: usize = 8192;

/// How many bytes of files are read for one commit.
const GROUP_LENGTH: u64 = 256 * 1024 * 1024;

/// Proposals that become one commit, in the order in which the fold is to take them.
pub(super) type Group = Vec<(Step, Operation)>;

impl Engine {
    /// Proposes everything that differs here and not in the log, as it was planned, or is planned now. Returns whether
    /// there was anything.
    pub(super) async fn checkin_round(
        &mut self,
        planned: Option<BTreeMap<NodeId, Operation>>,
    ) -> Result<bool> {
        let operations = planned.map_or_else(|| self.plan(), Ok)?;
        let groups = self.proposals(&operations)?;
        if !groups.is_empty() && !self.upload.is_offline() {
            self.fetcher.index_packs(&mut self.state).await?;
        }
        self.propose_groups(Ahead { groups, ..Ahead::default() }).await
    }

    /// Returns what a plan proposes, commit by commit.
    pub(super) fn proposals(
        &mut self,
        operations: &BTreeMap<NodeId, Operation>,
    ) -> Result<Vec<Group>> {
        self.look_behind_fence(operations)?;
        self.state.reading(|| self.groups(self.in_order(operations)?))
    }

    /// Proposes one group after the other, of which the first may be being read already. Returns whether there was anything to propose.
    pub(super) async fn propose_groups(&mut self, ahead: Ahead) -> Result<bool> {
        let generation = self.upload.generation();
        let mut reading = ahead.reading;
        let mut groups = ahead.groups.into_iter().peekable();
        if let Some(group) = groups.peek() {
            let touched = self.touched(group)?;
            self.start_reading(&mut reading, touched)?;
        }
        let mut any = false;
        while let Some(group) = groups.next() {
            // What was planned and read for another log is planned and read again.
            if self.upload.generation() != generation {
                return Ok(true);
            }
            self.finish_reading(reading, Packing::Send).await?;
            // While the packs of this group arrive, and it is committed, the next one is read and sent. Not before: its packs must have
            // nothing that this group needs.
            if let Some(group) = groups.peek() {
                let touched = self.touched(group)?;
                self.read_ahead(touched)?;
            }
            any |= self.propose(group).await?;
            reading = self.upload.end_ahead().map(|ahead| ahead.reading).unwrap_or_default();
        }
        // What a file has left behind that could not be read to its end.
        self.upload.sending.end().await?;
        Ok(any)
    }

    /// Divides proposals into those of one commit each.
    fn groups(&self, proposals: Group) -> Result<Vec<Group>> {
        let mut groups: Vec<Group> = Vec::new();
        let mut length = 0;
        // A node that steps aside comes back in the same commit, or it would be seen there.
        let mut aside = BTreeSet::new();
        for (step, operation) in proposals {
            let count = groups.last().map_or(0, Vec::len);
            let is_full = count >= GROUP_CHANGES || length >= GROUP_LENGTH;
            if groups.is_empty() || is_full && (aside.is_empty() || count >= COMMIT_CHANGES_MAX) {
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
    pub(super) fn touched(&self, group: &[(Step, Operation)]) -> Result<Vec<NodeId>> {
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
    fn in_order(&self, operations: &BTreeMap<NodeId, Operation>) -> Result<Group> {
        let steps = order(&self.trees(), operations)?;
        Ok(steps.into_iter().map(|step| (step, operations[&step.node].clone())).collect())
    }

    /// Turns a group of proposals into one commit, stores its packs, and sends it unless this is off line.
    async fn propose(&mut self, group: Group) -> Result<bool> {
        let op_id = OpId::from_bytes(random_bytes(&*self.environment.random));
        let (changes, rows) = self.in_transaction(|engine| engine.changes_of(group, op_id))?;
        if changes.is_empty() {
            return Ok(false);
        }
        let packs = self.take_packs().await?;
        let commit = self.commit_of(op_id, changes, packs)?;
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
        if let Some(busy) = &mut self.busy {
            let files = rows.iter().filter(|row| matches!(row.record.kind, NodeKind::File(_)));
            busy.note(files.map(|row| row.node), self.environment.clock.elapsed());
        }
        let (mut paths, mut sent) = (KnownPaths::default(), Vec::new());
        for row in rows {
            sent.extend(self.trees().local_path_by(&row.node, &mut paths)?);
            let is_deleted =
                self.overlay.contains(&row.node) && self.overlay.get(&row.node).is_none();
            if !is_deleted {
                self.overlay.forget(&row.node);
            }
        }
        self.report.sent += count;
        if self.upload.is_offline() {
            // This commit names them; where their chunks rest is learned from the log.
            self.upload.forget_proposed();
        } else {
            self.push().await?;
            self.learn_own_packs()?;
        }
        for path in sent {
            (self.observer)(Event::Sent(path));
        }
        Ok(true)
    }

    /// Makes the changes of one commit, and the rows that they lead to.
    fn changes_of(&mut self, group: Group, op_id: OpId) -> Result<(Vec<Change>, Vec<SyncedNode>)> {
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
        let commit = self.commit_of(op_id, vec![change], CommitPacks::default())?;
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
        packs: CommitPacks,
    ) -> Result<Commit> {
        let commit = Commit {
            op_id,
            device: self.options.device,
            device_name: self.options.device_name.clone(),
            time: self.environment.clock.now(),
            seen: self.head()?,
            changes,
            packs: packs.named,
            inline_packs: packs.inline,
            has_deltas: packs.has_deltas,
            seal: None,
        };
        Ok(self.keys.seal_commit(commit)?)
    }
}

#[cfg(test)]
mod tests;
