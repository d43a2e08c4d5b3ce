//! A start for one device, and what must be true at the end whatever happened before.

use std::collections::{BTreeMap, BTreeSet};

use model::{NodeId, NodeKind, NodeState, Tree, TreeStore};

use super::world::{
    Base, Device, Dice, File, Flag, Log, Mutant, content_of, ensure, living, tree_node,
};
use crate::plan::{Matter, Place, is_parked};

/// A tree: where every node is and what it is.
pub(super) type Nodes = BTreeMap<NodeId, (Place, Matter)>;

/// A folder, a merge base and a log that have drifted apart.
#[derive(Debug, Clone)]
pub(super) struct Case {
    pub(super) local: Nodes,
    pub(super) synced: Nodes,
    pub(super) remote: Nodes,
    /// Nodes that the planner is told to have been touched, though they are as before.
    pub(super) touched: BTreeSet<NodeId>,
    /// Nodes whose bytes went bad, so that nobody wants them.
    pub(super) suspect: BTreeSet<NodeId>,
}

impl Case {
    pub(super) fn new(local: Nodes, synced: Nodes, remote: Nodes) -> Self {
        let [touched, suspect] = [const { BTreeSet::new() }; 2];
        Self { local, synced, remote, touched, suspect }
    }

    /// Builds the device and the log.
    fn start(&self) -> (Device, Log) {
        let mut tree = Tree::default();
        for (node, (place, matter)) in &self.synced {
            if !self.remote.contains_key(node) {
                let Ok(()) = tree.set(*node, tree_node(place, matter, 2, NodeState::Deleted));
            }
        }
        for (node, record) in &self.remote {
            let version = match self.synced.get(node) {
                Some(base) if base != record => 2,
                _ => 1,
            };
            let Ok(()) =
                tree.set(*node, tree_node(&record.0, &record.1, version, NodeState::Alive));
        }
        let file = |(node, (place, matter)): (&NodeId, &(Place, Matter))| {
            let base = self.synced.get(node);
            let flag = match base {
                _ if self.suspect.contains(node) => Flag::Suspect,
                Some((_, base)) if base == matter && !self.touched.contains(node) => Flag::Same,
                _ => Flag::Touched,
            };
            (*node, File { place: place.clone(), matter: matter.clone(), flag })
        };
        let base = |(node, (place, matter)): (&NodeId, &(Place, Matter))| {
            (*node, Base { place: place.clone(), matter: matter.clone(), version: 1 })
        };
        let device = Device {
            local: self.local.iter().map(file).collect(),
            synced: self.synced.iter().map(base).collect(),
            remote: tree.clone(),
            ..Device::default()
        };
        (device, Log { tree, entries: Vec::new() })
    }

    /// Carries plans out until nothing is left, twice with operations in another order, and checks the end. Returns the
    /// number of rounds.
    pub(super) fn check(&self, seed: u64, mutant: Option<Mutant>) -> Result<u32, String> {
        self.run(seed, mutant, false)
    }

    /// Tells how a case went, for people.
    pub(super) fn explain(&self, seed: u64) -> String {
        let end = self.run(seed, None, true);
        let [synced, local, remote] = [&self.synced, &self.local, &self.remote].map(list);
        let marks = format!("touched {:?} suspect {:?}", self.touched, self.suspect);
        format!("synced\n{synced}local\n{local}remote\n{remote}{marks}\n{}", end.is_ok())
    }

    /// Returns where a case ends, by paths.
    pub(super) fn end(&self, seed: u64) -> Result<BTreeMap<String, Matter>, String> {
        let (mut device, mut log) = self.start();
        device.settle(&mut log, &mut Dice(seed))?;
        Ok(paths(&living(&log.tree)))
    }

    fn run(&self, seed: u64, mutant: Option<Mutant>, is_traced: bool) -> Result<u32, String> {
        let (mut device, mut log) = self.start();
        device.mutant = mutant;
        device.is_traced = is_traced;
        let (mut other, mut other_log) = (device.clone(), log.clone());
        let rounds = device.settle(&mut log, &mut Dice(seed))?;
        self.check_end(&device, &log)?;
        other.settle(&mut other_log, &mut Dice(!seed))?;
        let is_equal = device.local == other.local && log.tree == other_log.tree;
        ensure(is_equal, || format!("the order matters: {:?} {:?}", device.local, other.local))?;
        Ok(rounds)
    }

    fn check_end(&self, device: &Device, log: &Log) -> Result<(), String> {
        check_agreement(device, log)?;
        self.check_contents(device)?;
        self.check_deletions(log)?;
        self.check_one_sided(device, log)
    }

    fn is_changed_here(&self, node: &NodeId) -> bool {
        self.local.get(node) != self.synced.get(node) && !self.suspect.contains(node)
    }

    fn is_changed_there(&self, node: &NodeId) -> bool {
        self.remote.get(node) != self.synced.get(node)
    }

    /// Every content that one side wrote, and the other did not delete or replace knowing it, is there.
    fn check_contents(&self, device: &Device) -> Result<(), String> {
        let there: BTreeSet<_> =
            device.local.values().filter_map(|file| content_of(&file.matter)).collect();
        for (node, (_, matter)) in
            self.local.iter().filter(|(node, _)| !self.suspect.contains(*node))
        {
            let is_new = self.synced.get(node).is_none_or(|base| base.1 != *matter);
            let stays = self.remote.get(node).is_some_and(|remote| remote.1 == *matter);
            let is_wanted =
                is_new || stays || self.is_changed_here(node) && !self.remote.contains_key(node);
            let Some(content) = content_of(matter).filter(|_| is_wanted) else { continue };
            // Only mode or time were changed here, and the content there: the content from there is newer.
            let is_replaced = self.synced.get(node).is_some_and(|base| base.1.kind == matter.kind)
                && self.remote.get(node).is_some_and(|remote| remote.1.kind != matter.kind);
            ensure(is_replaced || there.contains(&content), || {
                format!("content {content} of {node:?} here is lost")
            })?;
        }
        for (node, (_, matter)) in &self.remote {
            let is_new = self.synced.get(node).is_none_or(|base| base.1.kind != matter.kind);
            let is_wanted = is_new || self.is_changed_there(node) && !self.local.contains_key(node);
            let Some(content) = content_of(matter).filter(|_| is_wanted) else { continue };
            ensure(there.contains(&content), || {
                format!("content {content} of {node:?} there is lost")
            })?;
        }
        Ok(())
    }

    /// A node goes only if one side deleted it and the other left it alone.
    fn check_deletions(&self, log: &Log) -> Result<(), String> {
        let state = |node| log.tree.get(node).map(|node| node.state.clone());
        for node in self.local.keys().chain(self.remote.keys()) {
            let by_here = self.synced.contains_key(node)
                && !self.local.contains_key(node)
                && !self.is_changed_there(node);
            let by_there = self.synced.contains_key(node)
                && !self.remote.contains_key(node)
                && !self.is_changed_here(node);
            let is_merged = !self.synced.contains_key(node)
                && matches!(state(node), Some(NodeState::MergedInto(_)));
            let is_kept = state(node) == Some(NodeState::Alive) || is_merged;
            ensure(is_kept || by_here || by_there, || format!("{node:?} is {:?}", state(node)))?;
        }
        Ok(())
    }

    /// What only one side changed ends as that side has it; so does what both changed alike.
    fn check_one_sided(&self, device: &Device, log: &Log) -> Result<(), String> {
        if !self.suspect.is_empty() {
            return Ok(());
        }
        let end = paths(
            &device
                .local
                .iter()
                .map(|(node, file)| (*node, (file.place.clone(), file.matter.clone())))
                .collect(),
        );
        if self.local == self.synced {
            let is_quiet = log.entries.is_empty();
            ensure(is_quiet, || format!("nothing was changed here: {:?}", log.entries))?;
            ensure(end == paths(&self.remote), || format!("changed there, ends as {end:?}"))?;
        }
        if self.remote == self.synced {
            ensure(end == paths(&self.local), || format!("changed here, ends as {end:?}"))?;
        }
        let is_alike = |node| self.local.get(node) == self.remote.get(node);
        if self.synced.keys().all(is_alike) && paths(&self.local) == paths(&self.remote) {
            ensure(end == paths(&self.local), || format!("changed alike, ends as {end:?}"))?;
        }
        Ok(())
    }
}

/// Folder, merge base and log are equal, nothing is left to do, and the tree is a tree.
pub(super) fn check_agreement(device: &Device, log: &Log) -> Result<(), String> {
    let living: Nodes = living(&log.tree);
    let local: Nodes = (device.local.iter())
        .map(|(node, file)| (*node, (file.place.clone(), file.matter.clone())))
        .collect();
    let synced: Nodes = (device.synced.iter())
        .map(|(node, base)| (*node, (base.place.clone(), base.matter.clone())))
        .collect();
    ensure(local == living, || format!("here\n{}in the log\n{}", list(&local), list(&living)))?;
    ensure(synced == living, || format!("base\n{}in the log\n{}", list(&synced), list(&living)))?;
    ensure(device.remote == log.tree, || "the log is folded differently".to_owned())?;
    let left = device.plan()?;
    ensure(left.is_empty(), || format!("left to do: {left:?}"))?;
    ensure(paths(&local).len() == local.len(), || format!("no tree: {local:?}"))?;
    for (place, _) in local.values() {
        let name = place.name.to_string();
        ensure(name.matches("(conflict").count() <= 1, || format!("'{name}' is nested"))?;
        ensure(!is_parked(place), || format!("'{name}' is left"))?;
    }
    Ok(())
}

/// Returns a tree by paths; what lies in a circle has none.
pub(super) fn paths(nodes: &Nodes) -> BTreeMap<String, Matter> {
    let path_of = |node: &NodeId| {
        let (mut path, mut above, mut depth) = (String::new(), *node, 0);
        while above != NodeId::ROOT {
            let (place, _) = nodes.get(&above)?;
            path = format!("/{}{path}", place.name);
            above = place.parent;
            depth += 1;
            if depth > nodes.len() {
                return None;
            }
        }
        Some(path)
    };
    nodes.iter().filter_map(|(node, (_, matter))| Some((path_of(node)?, matter.clone()))).collect()
}

/// Returns the part of an id that tells nodes apart: side and number.
pub(super) fn show(node: &NodeId) -> String {
    node.to_string()[22..].to_owned()
}

/// Returns a file in few words.
pub(super) fn show_file(place: &Place, matter: &Matter) -> String {
    let what = match &matter.kind {
        NodeKind::File(content) => content.size.to_string(),
        kind => format!("{kind:?}"),
    };
    format!("{}/{} = {what} {:o}", show(&place.parent), place.name, matter.mode)
}

/// Returns a tree in a few lines.
fn list(nodes: &Nodes) -> String {
    let line = |(node, (place, matter)): (&NodeId, &(Place, Matter))| {
        format!("  {} {}\n", show(node), show_file(place, matter))
    };
    nodes.iter().map(line).collect()
}
