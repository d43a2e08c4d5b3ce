//! A device and a log in memory, which carry out plans as the engine does, and complain where a step is impossible.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

use model::codec::encode_message;
use model::fold::fold;
use model::{
    Action, Change, ChunkId, ChunkRef, Commit, ConflictOrigin, Content, DeviceId, Entry, EntryHash,
    Head, Mounts, Name, NodeId, NodeKind, NodeRecord, NodeState, OpId, Outcome, Timestamp, Tree,
    TreeNode, TreeStore,
};

use super::case::{show, show_file};
use crate::plan::order::order;
use crate::plan::{
    Local, LocalMatter, Matter, Operation, Place, Remote, Synced, Trees, copied_place, file_kind,
    parked_place, plan, split,
};

/// Rounds after which a world has not settled (I-04).
pub(super) const ROUNDS_MAX: u32 = 200;

/// What the planner is told of the matter of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flag {
    Same,
    Touched,
    Known,
    Suspect,
}

/// What is really in the folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct File {
    pub(super) place: Place,
    pub(super) matter: Matter,
    pub(super) flag: Flag,
}

/// A row of the merge base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Base {
    pub(super) place: Place,
    pub(super) matter: Matter,
    pub(super) version: u64,
}

/// Rewrites operations, to see whether a wrong planner is noticed.
pub(super) type Mutant = fn(&Device, &NodeId, Operation) -> Operation;

/// A device with what it knows of the log.
#[derive(Debug, Clone, Default)]
pub(super) struct Device {
    pub(super) local: BTreeMap<NodeId, File>,
    pub(super) synced: BTreeMap<NodeId, Base>,
    pub(super) remote: Tree,
    pub(super) seq: u64,
    pub(super) label: u8,
    pub(super) mutant: Option<Mutant>,
    /// Whether plans and commits are printed.
    pub(super) is_traced: bool,
}

/// The log, with the tree it folds into.
#[derive(Debug, Clone, Default)]
pub(super) struct Log {
    pub(super) tree: Tree,
    pub(super) entries: Vec<Entry>,
}

/// Numbers that look random, always the same for one seed.
#[derive(Debug, Clone)]
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(super) fn below(&mut self, limit: usize) -> usize {
        ((self.number() >> 32) as usize * limit) >> 32
    }

    pub(super) fn hits(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn shuffle<T>(&mut self, values: &mut [T]) {
        for last in (1..values.len()).rev() {
            values.swap(last, self.below(last + 1));
        }
    }
}

/// Returns an id; ids do not rise with their numbers, since the order of ids must not matter.
pub(super) fn id(side: u8, number: u32) -> NodeId {
    let mut bytes = [0; 16];
    bytes[0] = (Dice(u64::from(number) << 8 | u64::from(side)).number() >> 56) as u8 | 1;
    bytes[11] = side;
    bytes[12..].copy_from_slice(&number.to_be_bytes());
    NodeId::from_bytes(bytes)
}

pub(super) fn place(parent: NodeId, name: &str) -> Place {
    Place { parent, name: Name::new(name).unwrap() }
}

/// Returns the matter of a file; every content has a number from 1 on.
pub(super) fn file(content: u32) -> Matter {
    let mut chunk = [0; 32];
    chunk[..4].copy_from_slice(&content.to_be_bytes());
    let chunks = vec![ChunkRef { id: ChunkId::from_bytes(chunk), length: content }];
    let content = Content { size: u64::from(content), chunk_size: 0, depth: 0, chunks };
    matter(NodeKind::File(content))
}

pub(super) fn directory() -> Matter {
    matter(NodeKind::Directory)
}

pub(super) fn matter(kind: NodeKind) -> Matter {
    Matter { kind, mode: 0o600, modified: Timestamp::default() }
}

/// Returns the number of a content.
pub(super) fn content_of(matter: &Matter) -> Option<u32> {
    match &matter.kind {
        NodeKind::File(content) => Some(content.size as u32),
        _ => None,
    }
}

pub(super) fn record(
    place: &Place,
    matter: &Matter,
    conflict: Option<ConflictOrigin>,
) -> NodeRecord {
    NodeRecord {
        parent: place.parent,
        name: place.name.clone(),
        mode: matter.mode,
        modified: matter.modified,
        kind: matter.kind.clone(),
        conflict,
    }
}

/// Returns the living nodes of a tree.
pub(super) fn living(tree: &Tree) -> BTreeMap<NodeId, (Place, Matter)> {
    let alive = tree.nodes().filter(|(_, node)| node.is_alive());
    alive.map(|(id, node)| (*id, split(&node.record))).collect()
}

impl Log {
    /// Appends a commit and tells what became of its changes.
    pub(super) fn append(&mut self, device: u8, changes: Vec<Change>) -> Vec<Outcome> {
        let seq = self.entries.len() as u64 + 1;
        let commit = Commit {
            op_id: OpId::from_bytes([0; 16]),
            device: DeviceId::from_bytes([device; 16]),
            device_name: String::new(),
            time: Timestamp::default(),
            seen: Head { seq: 0, hash: EntryHash::NONE },
            changes,
            packs: Vec::new(),
            inline_packs: Vec::new(),
            has_deltas: false,
            seal: None,
        };
        let entry = Entry { seq, previous: EntryHash::NONE, commit };
        let Ok(folded) = fold(&mut self.tree, &entry, &model::PlainOpener);
        self.entries.push(entry);
        folded.outcomes
    }
}

impl Trees for Device {
    type Error = Infallible;

    fn local(&self, node: &NodeId) -> Result<Option<Local>, Infallible> {
        Ok(self.local.get(node).map(|file| Local {
            place: file.place.clone(),
            kind: file_kind(&file.matter),
            matter: match file.flag {
                Flag::Same => LocalMatter::Same,
                Flag::Touched => LocalMatter::Touched,
                Flag::Known => LocalMatter::Known(file.matter.clone()),
                Flag::Suspect => LocalMatter::Suspect,
            },
        }))
    }

    fn synced(&self, node: &NodeId) -> Result<Option<Synced>, Infallible> {
        Ok(self.synced.get(node).map(|base| Synced {
            place: base.place.clone(),
            matter: base.matter.clone(),
            version: base.version,
            is_pending: false,
        }))
    }

    fn remote(&self, node: &NodeId) -> Result<Option<Remote>, Infallible> {
        Ok(self.remote.get(node).map(|node| {
            let (place, matter) = split(&node.record);
            Remote { place, matter, version: node.version, state: node.state.clone() }
        }))
    }

    fn local_holder(&self, place: &Place) -> Result<Option<NodeId>, Infallible> {
        Ok(self.local.iter().find(|(_, file)| file.place == *place).map(|(node, _)| *node))
    }

    fn remote_holder(&self, place: &Place) -> Result<Option<NodeId>, Infallible> {
        self.remote.child(&place.parent, &place.name)
    }

    fn is_mounted(&self, node: &NodeId) -> Result<bool, Infallible> {
        Mounts::of(&self.remote).map(|mounts| mounts.contains(node))
    }

    fn has_local_children(&self, directory: &NodeId) -> Result<bool, Infallible> {
        Ok(self.local.values().any(|file| file.place.parent == *directory))
    }
}

/// Fails with a text unless something holds.
pub(super) fn ensure(holds: bool, text: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(text()) }
}

impl Device {
    /// Folds what is new in the log.
    pub(super) fn fetch(&mut self, log: &Log) {
        for entry in &log.entries[self.seq as usize..] {
            let Ok(_) = fold(&mut self.remote, entry, &model::PlainOpener);
        }
        self.seq = log.entries.len() as u64;
    }

    /// Plans, and checks that nodes in agreement have no part in it.
    pub(super) fn plan(&self) -> Result<BTreeMap<NodeId, Operation>, String> {
        let known = self.remote.nodes().map(|(node, _)| *node);
        let all: BTreeSet<_> =
            known.chain(self.local.keys().copied()).chain(self.synced.keys().copied()).collect();
        let Ok(operations) = plan(self, &all);
        let differing: BTreeSet<_> =
            all.into_iter().filter(|node| !self.is_in_agreement(node)).collect();
        let Ok(fewer) = plan(self, &differing);
        ensure(operations == fewer, || format!("all: {operations:?}, differing: {fewer:?}"))?;
        let Some(mutant) = self.mutant else { return Ok(operations) };
        let mutate = |(node, operation)| (node, mutant(self, &node, operation));
        Ok(operations.into_iter().map(mutate).collect())
    }

    fn is_in_agreement(&self, node: &NodeId) -> bool {
        let remote = self.remote.get(node).filter(|remote| remote.is_alive());
        match (self.local.get(node), self.synced.get(node), remote) {
            (None, None, None) => true,
            (Some(file), Some(base), Some(remote)) => {
                let record = split(&remote.record);
                file.flag == Flag::Same
                    && file.place == base.place
                    && (&base.place, &base.matter) == (&record.0, &record.1)
                    && base.version == remote.version
            }
            _ => false,
        }
    }

    /// Plans and carries out until nothing is left; returns the number of rounds.
    pub(super) fn settle(&mut self, log: &mut Log, dice: &mut Dice) -> Result<u32, String> {
        for round in 0..ROUNDS_MAX {
            self.fetch(log);
            if !self.round(log, dice, false)? {
                return Ok(round);
            }
        }
        Err(format!("not settled after {ROUNDS_MAX} rounds: {:?}", self.plan()?))
    }

    /// Plans once and carries that out; returns whether there was anything to do.
    pub(super) fn round(
        &mut self,
        log: &mut Log,
        dice: &mut Dice,
        is_answer_lost: bool,
    ) -> Result<bool, String> {
        let operations = self.plan()?;
        for (node, operation) in operations.iter().filter(|_| self.is_traced) {
            println!("{} {operation:?}", show(node));
        }
        let mut classes: BTreeMap<u8, Vec<_>> = BTreeMap::new();
        for (node, operation) in &operations {
            classes.entry(operation.class()).or_default().push((*node, operation.clone()));
        }
        for (_, mut class) in classes {
            dice.shuffle(&mut class);
            class.sort_by_key(|(node, operation)| self.depth_to_make(node, operation));
            for (node, operation) in class.into_iter().filter(|(_, one)| !one.is_proposal()) {
                let context = |error| format!("{operation:?} of {node:?}: {error}");
                self.carry_out(node, &operation).map_err(context)?;
            }
        }
        self.propose(log, &operations, is_answer_lost)?;
        Ok(!operations.is_empty())
    }

    /// Directories are made before what lies in them.
    fn depth_to_make(&self, node: &NodeId, operation: &Operation) -> u32 {
        let (mut depth, mut above) = (0, *node);
        while *operation == Operation::Materialise && above != NodeId::ROOT && depth < 200 {
            depth += 1;
            above = self.remote.get(&above).map_or(NodeId::ROOT, |node| node.record.parent);
        }
        depth
    }

    fn carry_out(&mut self, node: NodeId, operation: &Operation) -> Result<(), String> {
        match operation {
            Operation::Read => {
                let file = self.local.get_mut(&node).ok_or("nothing to read")?;
                ensure(file.flag != Flag::Known, || format!("{file:?} needs no reading"))?;
                file.flag = Flag::Known;
            }
            Operation::Refresh => {
                let file = self.local.get_mut(&node).ok_or("nothing to remember")?;
                ensure(self.synced[&node].matter == file.matter, || format!("{file:?} differs"))?;
                file.flag = Flag::Same;
            }
            Operation::Accept => {
                ensure(self.local.contains_key(&node), || "accepts what is absent".to_owned())?;
                self.synced.insert(node, self.remote_base(&node)?);
            }
            Operation::Forget => {
                ensure(!self.local.contains_key(&node), || "forgets what is there".to_owned())?;
                self.synced.remove(&node).ok_or("nothing to forget")?;
            }
            Operation::Adopt(holder) => self.adopt(node, *holder)?,
            Operation::Park => self.move_to(node, parked_place(&node))?,
            Operation::Move => self.move_to(node, self.remote_base(&node)?.place)?,
            Operation::KeepCopy => self.keep_copy(node)?,
            Operation::Materialise => {
                let base = self.remote_base(&node)?;
                ensure(!self.local.contains_key(&node), || "is there already".to_owned())?;
                let is_directory = base.matter.kind.is_directory();
                let is_new = !self.synced.contains_key(&node);
                ensure(is_new || is_directory, || "was there before".to_owned())?;
                self.check_place(&base.place)?;
                let (place, matter) = (base.place.clone(), base.matter.clone());
                self.local.insert(node, File { place, matter, flag: Flag::Same });
                self.synced.insert(node, base);
            }
            Operation::SetMatter => {
                let base = self.remote_base(&node)?;
                let file = self.local.get_mut(&node).ok_or("nothing to set")?;
                (file.matter, file.flag) = (base.matter.clone(), Flag::Same);
                let place = file.place.clone();
                let before = self.synced.insert(node, base.clone());
                let is_settled = before.is_none_or(|before| before.place == base.place);
                ensure(is_settled || place == base.place, || "the place is open".to_owned())?;
            }
            Operation::Remove => {
                let Ok(is_full) = self.has_local_children(&node);
                ensure(!is_full, || "not empty".to_owned())?;
                self.local.remove(&node).ok_or("nothing to remove")?;
                self.synced.remove(&node);
            }
            Operation::Propose { .. } | Operation::ProposeDelete { .. } => {}
        }
        Ok(())
    }

    fn remote_base(&self, node: &NodeId) -> Result<Base, String> {
        let remote = self.remote.get(node).ok_or("not in the log")?;
        ensure(remote.state == NodeState::Alive, || format!("{remote:?} is not alive"))?;
        let (place, matter) = split(&remote.record);
        Ok(Base { place, matter, version: remote.version })
    }

    /// Checks that a file can be put into a place.
    fn check_place(&self, place: &Place) -> Result<(), String> {
        let is_directory = |file: &File| file.matter.kind.is_directory();
        let is_there =
            place.parent == NodeId::ROOT || self.local.get(&place.parent).is_some_and(is_directory);
        ensure(is_there, || format!("{place:?} has no directory"))?;
        let Ok(holder) = self.local_holder(place);
        ensure(holder.is_none(), || format!("{place:?} is taken by {holder:?}"))
    }

    fn move_to(&mut self, node: NodeId, target: Place) -> Result<(), String> {
        self.check_place(&target)?;
        let mut above = target.parent;
        while above != NodeId::ROOT {
            ensure(above != node, || "moved into itself".to_owned())?;
            above = self.local[&above].place.parent;
        }
        self.local.get_mut(&node).ok_or("nothing to move")?.place = target.clone();
        self.synced.get_mut(&node).ok_or("only what has a row is moved")?.place = target;
        Ok(())
    }

    fn adopt(&mut self, node: NodeId, holder: NodeId) -> Result<(), String> {
        ensure(!self.local.contains_key(&holder), || "the holder is there".to_owned())?;
        let mut file = self.local.remove(&node).ok_or("nothing to adopt")?;
        let remote = self.remote.get(&holder).ok_or("the holder is unknown")?;
        // Whether it is what the log has is not known before it is read.
        file.flag = Flag::Touched;
        let (place, matter) = (file.place.clone(), split(&remote.record).1);
        self.local.insert(holder, file);
        self.synced.remove(&node);
        self.synced.insert(holder, Base { place, matter, version: 0 });
        for parent in (self.local.values_mut().map(|file| &mut file.place.parent))
            .chain(self.synced.values_mut().map(|base| &mut base.place.parent))
        {
            if *parent == node {
                *parent = holder;
            }
        }
        Ok(())
    }

    fn keep_copy(&mut self, node: NodeId) -> Result<(), String> {
        let mut file = self.local.remove(&node).ok_or("nothing to keep")?;
        ensure(file.flag == Flag::Known, || format!("{file:?} was not read"))?;
        self.synced.remove(&node);
        let remote = &self.remote.get(&node).ok_or("kept beside nothing")?.record;
        let home = split(remote).0;
        let is_home_here = home.parent == NodeId::ROOT || self.local.contains_key(&home.parent);
        file.place = copied_place(&file.place, &home, is_home_here);
        let wanted = file.place.name.clone();
        let label = format!("conflict device {}", self.label);
        let is_taken = |place: &Place| {
            let (Ok(local), Ok(remote)) = (self.local_holder(place), self.remote_holder(place));
            local.is_some() || remote.is_some()
        };
        for attempt in 0.. {
            file.place.name = wanted.conflict(&label, attempt);
            if !is_taken(&file.place) {
                break;
            }
        }
        // Always another id, but the same whatever the order of the operations.
        let mut bytes = *node.as_bytes();
        let before = u64::from_be_bytes(bytes[..8].try_into().unwrap());
        let mixed = Dice(before ^ u64::from(self.label) << 56).number() ^ self.seq;
        bytes[1..8].copy_from_slice(&Dice(mixed).number().to_be_bytes()[1..]);
        let copy = NodeId::from_bytes(bytes);
        let (place, matter) = (file.place.clone(), file.matter.clone());
        file.flag = Flag::Known;
        self.local.insert(copy, file);
        let before = self.synced.insert(copy, Base { place, matter, version: 0 });
        ensure(before.is_none(), || format!("{copy:?} is not new"))
    }

    fn propose(
        &mut self,
        log: &mut Log,
        operations: &BTreeMap<NodeId, Operation>,
        is_answer_lost: bool,
    ) -> Result<(), String> {
        let Ok(steps) = order(self, operations);
        let wanted = operations.iter().filter(|(_, one)| one.is_proposal()).map(|(node, _)| *node);
        let ordered = steps.iter().filter(|step| !step.is_detour).map(|step| step.node);
        let is_complete = wanted.collect::<BTreeSet<_>>() == ordered.collect();
        ensure(is_complete, || format!("{steps:?} of {operations:?}"))?;
        let mut changes = Vec::new();
        let mut proposed = Vec::new();
        let mut detours = BTreeSet::new();
        for step in steps {
            let (base, mut wanted) = match &operations[&step.node] {
                Operation::ProposeDelete { base } => (*base, None),
                Operation::Propose { base } => {
                    (*base, Some(self.local.get(&step.node).ok_or("nothing to propose")?.clone()))
                }
                _ => return Err(format!("{step:?} is no proposal")),
            };
            let is_unchanged = |file: &File| {
                let remote = self.remote.get(&step.node).filter(|remote| remote.is_alive());
                remote.is_some_and(|remote| {
                    let (place, matter) = split(&remote.record);
                    place == file.place && matter == file.matter
                })
            };
            if wanted.as_ref().is_some_and(is_unchanged) {
                // The engine sees that when it reads the file.
                self.local.get_mut(&step.node).unwrap().flag = Flag::Same;
                continue;
            }
            if step.is_detour {
                detours.insert(step.node);
                ensure(base == 0, || "a detour of an old node".to_owned())?;
                let name = &mut wanted.as_mut().unwrap().place.name;
                *name = name.conflict(&format!("conflict {}", step.node), 0);
            }
            let base = base + u64::from(!step.is_detour && detours.contains(&step.node));
            let action = match &wanted {
                None => Action::Delete,
                Some(file) => Action::Put(encode_message(&record(&file.place, &file.matter, None))),
            };
            changes.push(Change { node: step.node, base, action });
            proposed.push((step.node, wanted));
        }
        if changes.is_empty() {
            return Ok(());
        }
        let last: BTreeSet<_> = changes.iter().map(|change| change.node).collect();
        ensure(last.len() + detours.len() == changes.len(), || format!("{changes:?} repeats"))?;
        let outcomes = log.append(self.label, changes);
        if self.is_traced {
            for ((node, wanted), outcome) in proposed.iter().zip(&outcomes) {
                let wanted = wanted.as_ref().map(|file| show_file(&file.place, &file.matter));
                let after = &log.tree.get(node);
                let after = after.map(|after| {
                    let (place, matter) = split(&after.record);
                    (after.state.clone(), show_file(&place, &matter))
                });
                println!("- {} {wanted:?}: {outcome:?}, {after:?}", show(node));
            }
        }
        for ((node, wanted), outcome) in proposed.into_iter().zip(outcomes) {
            let accepted = match outcome {
                Outcome::Accepted { version } if !is_answer_lost => Some(version),
                _ => None,
            };
            self.take_answer(node, wanted, accepted);
        }
        self.fetch(log);
        Ok(())
    }

    /// Takes in whether a proposal was accepted; a rejected one, and one whose answer was lost, is taken back.
    fn take_answer(&mut self, node: NodeId, wanted: Option<File>, accepted: Option<u64>) {
        match (wanted, accepted) {
            (Some(File { place, matter, .. }), Some(version)) => {
                self.synced.insert(node, Base { place, matter, version });
                self.local.get_mut(&node).unwrap().flag = Flag::Same;
            }
            (Some(File { place, matter, .. }), None) => {
                self.synced.entry(node).or_insert(Base { place, matter, version: 0 });
            }
            (None, Some(_)) => {
                self.synced.remove(&node);
            }
            (None, None) => {}
        }
    }
}

/// Returns a node as the log would have it.
pub(super) fn tree_node(
    place: &Place,
    matter: &Matter,
    version: u64,
    state: NodeState,
) -> TreeNode {
    TreeNode { version, state, record: record(place, matter, None) }
}
