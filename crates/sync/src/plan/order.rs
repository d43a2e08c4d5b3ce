//! The order of the proposals in a commit: the fold takes them one by one, so whoever has a name must leave it before
//! it is given to another, or a mere swap would look like a conflict.
//!
//! *Invariants*: a directory stands before what lies in it; what leaves a directory stands before the deletion of that
//! directory. *Wishes*: whoever leaves a place stands before whoever takes it. Where the wishes make a circle, a new node
//! steps aside: it is proposed twice, first under a name that nobody wants. (Only what is new: a second change in one
//! commit counts on the first, which may be rejected.) Any other circle is left to the fold, which gives names that are left
//! within a commit.

use std::collections::{BTreeMap, BTreeSet};

use model::{NodeId, NodeState};

use super::{Operation, Place, Trees};

/// A change of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// The node.
    pub node: NodeId,
    /// Whether it is proposed in its directory under a name that nobody wants; then it comes once more, one version
    /// later.
    pub is_detour: bool,
}

/// Orders the proposals of a plan; other operations in it are passed over.
///
/// # Errors
/// Those of the trees.
pub fn order<T: Trees>(
    trees: &T,
    operations: &BTreeMap<NodeId, Operation>,
) -> Result<Vec<Step>, T::Error> {
    let mut sorter = Sorter::new(trees, operations)?;
    let is_deletion = |operation: &Operation| matches!(operation, Operation::ProposeDelete { .. });
    for wants_deletion in [false, true] {
        for (node, operation) in operations {
            if operation.is_proposal() && is_deletion(operation) == wants_deletion {
                sorter.visit(*node)?;
            }
        }
    }
    sorter.finish()?;
    Ok(sorter.steps)
}

/// How far a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// What stands before it is looked at.
    Open,
    /// It has to wait for something open; it is looked at again in its own visit, which has this number or a later one.
    Postponed(usize),
    /// It has its place in the order.
    Done,
}

/// What a visit has still to do.
enum Task {
    /// Look at a node that stands before another one; the flag tells whether as its directory.
    Enter(NodeId, bool),
    /// All that stands before it was looked at.
    Leave(NodeId),
}

struct Sorter<'a, T> {
    trees: &'a T,
    operations: &'a BTreeMap<NodeId, Operation>,
    /// Whoever has a place in the log and leaves it.
    leaving: BTreeMap<Place, NodeId>,
    /// What leaves a directory of the log.
    emptying: BTreeMap<NodeId, Vec<NodeId>>,
    visits: usize,
    progress: BTreeMap<NodeId, Progress>,
    detoured: BTreeSet<NodeId>,
    steps: Vec<Step>,
}

impl<'a, T: Trees> Sorter<'a, T> {
    fn new(trees: &'a T, operations: &'a BTreeMap<NodeId, Operation>) -> Result<Self, T::Error> {
        let (mut leaving, mut emptying) = (BTreeMap::new(), BTreeMap::<_, Vec<_>>::new());
        for (node, operation) in operations {
            let place = match operation {
                Operation::Propose { base: 1.. } => trees.local(node)?.map(|local| local.place),
                Operation::ProposeDelete { .. } => None,
                _ => continue,
            };
            let Some(remote) = trees.remote(node)? else { continue };
            if remote.state == NodeState::Alive && place.as_ref() != Some(&remote.place) {
                emptying.entry(remote.place.parent).or_default().push(*node);
                leaving.insert(remote.place, *node);
            }
        }
        let (progress, detoured, steps) = (BTreeMap::new(), BTreeSet::new(), Vec::new());
        Ok(Self { trees, operations, leaving, emptying, visits: 0, progress, detoured, steps })
    }

    /// Gives a node its place, after whatever stands before it. Nothing that it needs is postponed in its own visit:
    /// directories and deletions make no circle.
    fn visit(&mut self, node: NodeId) -> Result<(), T::Error> {
        self.visits += 1;
        let mut tasks = vec![Task::Enter(node, true)];
        while let Some(task) = tasks.pop() {
            match task {
                Task::Enter(node, is_directory) => match self.progress.get(&node) {
                    Some(Progress::Open) if is_directory => self.step_aside(node)?,
                    Some(Progress::Done | Progress::Open) => {}
                    Some(Progress::Postponed(visit))
                        if *visit == self.visits && !is_directory && !self.is_ready(&node)? => {}
                    _ => {
                        self.progress.insert(node, Progress::Open);
                        tasks.push(Task::Leave(node));
                        tasks.extend(self.before(&node)?.into_iter().rev());
                    }
                },
                Task::Leave(node) => {
                    let progress = self.leave(node)?;
                    self.progress.insert(node, progress);
                }
            }
        }
        Ok(())
    }

    /// Gives the nodes that stepped aside and were not asked for again their places.
    fn finish(&mut self) -> Result<(), T::Error> {
        for (node, operation) in self.operations {
            if operation.is_proposal() && !self.is_done(node) {
                self.visit(*node)?;
            }
            if operation.is_proposal() && !self.is_done(node) {
                self.steps.push(Step { node: *node, is_detour: false });
            }
        }
        Ok(())
    }

    /// Returns what stands before a node.
    fn before(&self, node: &NodeId) -> Result<Vec<Task>, T::Error> {
        if self.is_deletion(node) {
            let leaving = self.emptying.get(node).into_iter().flatten();
            return Ok(leaving.map(|node| Task::Enter(*node, false)).collect());
        }
        let directory = self.directory(node)?.map(|directory| Task::Enter(directory, true));
        let holder = self.holder(node)?.map(|holder| Task::Enter(holder, false));
        Ok(directory.into_iter().chain(holder).collect())
    }

    fn leave(&mut self, node: NodeId) -> Result<Progress, T::Error> {
        if !self.is_ready(&node)? {
            return Ok(Progress::Postponed(self.visits));
        }
        if self.holder(&node)?.is_some_and(|holder| !self.is_done(&holder)) {
            self.step_aside(node)?;
            if self.detoured.contains(&node) {
                return Ok(Progress::Postponed(self.visits));
            }
        }
        self.steps.push(Step { node, is_detour: false });
        Ok(Progress::Done)
    }

    /// Tells whether all that must stand before a node is in the order already.
    fn is_ready(&self, node: &NodeId) -> Result<bool, T::Error> {
        let mut emptying = self.emptying.get(node).into_iter().flatten();
        match self.is_deletion(node) {
            true => Ok(emptying.all(|node| self.is_done(node))),
            false => self.has_directory(node),
        }
    }

    /// Lets a new node be proposed under another name first, so that others can be put into it, or leave its place.
    fn step_aside(&mut self, node: NodeId) -> Result<(), T::Error> {
        let is_new = self.operations.get(&node) == Some(&Operation::Propose { base: 0 });
        if is_new && self.has_directory(&node)? && self.detoured.insert(node) {
            self.steps.push(Step { node, is_detour: true });
        }
        Ok(())
    }

    fn is_deletion(&self, node: &NodeId) -> bool {
        matches!(self.operations.get(node), Some(Operation::ProposeDelete { .. }))
    }

    fn is_done(&self, node: &NodeId) -> bool {
        self.progress.get(node) == Some(&Progress::Done)
    }

    /// Returns the lowest directory above a node that is proposed, too.
    fn directory(&self, node: &NodeId) -> Result<Option<NodeId>, T::Error> {
        let mut above = *node;
        while let Some(local) = self.trees.local(&above)? {
            above = local.place.parent;
            if let Some(Operation::Propose { .. }) = self.operations.get(&above) {
                return Ok(Some(above));
            }
        }
        Ok(None)
    }

    /// Tells whether the directories above a node are in the order already.
    fn has_directory(&self, node: &NodeId) -> Result<bool, T::Error> {
        let is_there = |directory| self.is_done(&directory) || self.detoured.contains(&directory);
        Ok(self.directory(node)?.is_none_or(is_there))
    }

    /// Returns who has the place of a node in the log and leaves it.
    fn holder(&self, node: &NodeId) -> Result<Option<NodeId>, T::Error> {
        let Some(local) = self.trees.local(node)? else { return Ok(None) };
        Ok(self.leaving.get(&local.place).copied().filter(|holder| holder != node))
    }
}
