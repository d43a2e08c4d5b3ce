//! Larger trees, perturbed twice from a common base.

use std::collections::{BTreeMap, BTreeSet};

use model::{NodeId, NodeKind};
use proptest::prelude::*;

use super::case::{Case, Nodes};
use super::world::{Dice, content_of, directory, file, id, matter, place};
use crate::plan::{Matter, is_parked};

/// Something a user does. Its numbers choose among what there is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Edit {
    pub(super) verb: u8,
    pub(super) node: u8,
    pub(super) target: u8,
    pub(super) name: u8,
    pub(super) content: u8,
}

pub(super) const VERBS: u8 = 16;

impl Edit {
    pub(super) fn random(dice: &mut Dice) -> Self {
        let [node, target, name, content] = [0; 4].map(|_: u8| dice.below(256) as u8);
        Self { verb: dice.below(usize::from(VERBS)) as u8, node, target, name, content }
    }
}

/// Somebody who edits a tree. Ids and fresh contents are never used twice.
#[derive(Debug, Clone)]
pub(super) struct User {
    side: u8,
    made: u32,
    /// Contents that this user has replaced or deleted.
    pub(super) superseded: BTreeSet<u32>,
}

const NAMES: [&str; 4] = ["a", "b", "c.txt", "d"];

/// Contents below this are common, so that several files have the same.
pub(super) const COMMON_MAX: u32 = 6;

/// How many nodes a tree has at most, so that trees stay small.
const NODES_MAX: usize = 18;

impl User {
    pub(super) fn new(side: u8) -> Self {
        Self { side, made: 0, superseded: BTreeSet::new() }
    }

    fn make_id(&mut self) -> NodeId {
        self.made += 1;
        id(self.side, self.made)
    }

    fn content(&mut self, edit: Edit) -> u32 {
        self.made += 1;
        match u32::from(edit.content) % 8 {
            common @ 1..COMMON_MAX if edit.content > 100 => common,
            _ => 1000 * u32::from(self.side + 1) + self.made,
        }
    }

    /// Does one thing; nothing where it is impossible.
    pub(super) fn edit(&mut self, tree: &mut Nodes, edit: Edit) {
        // Users leave alone what is parked.
        let is_seen = |node: &NodeId| !is_parked(&tree[node].0);
        let nodes: Vec<_> = tree.keys().copied().filter(is_seen).collect();
        let is_directory = |node: &&NodeId| tree[*node].1.kind.is_directory();
        let mut directories = vec![NodeId::ROOT];
        directories.extend(nodes.iter().filter(is_directory));
        let parent = directories[usize::from(edit.target) % directories.len()];
        let wanted = place(parent, NAMES[usize::from(edit.name) % NAMES.len()]);
        let is_free = tree.values().all(|(place, _)| *place != wanted);
        let node = (!nodes.is_empty()).then(|| nodes[usize::from(edit.node) % nodes.len()]);
        match (edit.verb, node) {
            (0..=3, _) | (_, None) if is_free && tree.len() < NODES_MAX => {
                let matter = match edit.verb {
                    0 => directory(),
                    1 if edit.content < 20 => matter(NodeKind::Symlink(vec![edit.content + 1])),
                    _ => file(self.content(edit)),
                };
                tree.insert(self.make_id(), (wanted, matter));
            }
            (4..=6, Some(node)) if content_of(&tree[&node].1).is_some() => {
                let written = file(self.content(edit));
                let mode = tree[&node].1.mode;
                self.supersede(&tree[&node].1.clone());
                tree.insert(node, (tree[&node].0.clone(), Matter { mode, ..written }));
            }
            (7..=10, Some(node)) if is_free && !is_within(tree, parent, node) => {
                tree.insert(node, (wanted, tree[&node].1.clone()));
            }
            (11, Some(node)) => self.delete(tree, node),
            (12, Some(node)) => {
                // Another kind under the same name.
                let (place, old) = tree[&node].clone();
                self.delete(tree, node);
                let is_file = old.kind.is_directory();
                let matter = if is_file { file(self.content(edit)) } else { directory() };
                tree.insert(self.make_id(), (place, matter));
            }
            (13 | 14, Some(node)) => {
                let other = nodes[usize::from(edit.target) % nodes.len()];
                if !is_within(tree, node, other) && !is_within(tree, other, node) {
                    let places = (tree[&node].0.clone(), tree[&other].0.clone());
                    tree.get_mut(&node).unwrap().0 = places.1;
                    tree.get_mut(&other).unwrap().0 = places.0;
                }
            }
            (15, Some(node)) if !matches!(tree[&node].1.kind, NodeKind::Symlink(_)) => {
                tree.get_mut(&node).unwrap().1.mode = 0o600 + u32::from(edit.content % 3);
            }
            _ => {}
        }
    }

    fn supersede(&mut self, matter: &Matter) {
        self.superseded.extend(content_of(matter));
    }

    fn delete(&mut self, tree: &mut Nodes, node: NodeId) {
        let below: Vec<_> =
            tree.keys().filter(|below| is_within(tree, **below, node)).copied().collect();
        for node in below {
            if let Some((_, matter)) = tree.remove(&node) {
                self.supersede(&matter);
            }
        }
    }
}

/// Tells whether a node is a directory or lies in it.
fn is_within(tree: &Nodes, node: NodeId, directory: NodeId) -> bool {
    let mut above = node;
    while above != NodeId::ROOT {
        if above == directory {
            return true;
        }
        above = tree[&above].0.parent;
    }
    false
}

/// Makes a case of what was done before the last agreement, and since then here and there.
pub(super) fn case(before: &[Edit], here: &[Edit], there: &[Edit], marks: u64) -> Case {
    let perform = |tree: &Nodes, side, edits: &[Edit]| {
        let (mut tree, mut user) = (tree.clone(), User::new(side));
        for edit in edits {
            user.edit(&mut tree, *edit);
        }
        tree
    };
    let synced = perform(&BTreeMap::new(), 0, before);
    let (local, remote) = (perform(&synced, 1, here), perform(&synced, 2, there));
    let mut case = Case::new(local, synced, remote);
    let mut dice = Dice(marks);
    case.touched = case.synced.keys().filter(|_| dice.hits(20)).copied().collect();
    let goes_bad = dice.hits(25);
    for (node, (_, matter)) in &mut case.local {
        let is_as_before = case.synced.get(node).is_some_and(|base| base.1 == *matter);
        if goes_bad && dice.hits(20) && is_as_before && content_of(matter).is_some() {
            matter.kind = file(99).kind;
            case.suspect.insert(*node);
        }
    }
    case
}

/// Makes a random case.
pub(super) fn random_case(seed: u64) -> Case {
    let dice = &mut Dice(seed);
    let mut edits = |count_max: usize| {
        let count = dice.below(count_max + 1);
        (0..count).map(|_| Edit::random(dice)).collect::<Vec<_>>()
    };
    let (before, here, there) = (edits(40), edits(14), edits(14));
    case(&before, &here, &there, seed)
}

/// Checks random cases; returns the most rounds that one took.
pub(super) fn check_seeds(seeds: impl Iterator<Item = u64>) -> u32 {
    let check = |seed| match random_case(seed).check(seed, None) {
        Ok(rounds) => rounds,
        Err(error) => panic!("seed {seed}: {error}\n{}", random_case(seed).explain(seed)),
    };
    seeds.map(check).max().unwrap_or(0)
}

#[test]
fn perturbed_trees_settle() {
    println!("at most {} rounds", check_seeds((0..SEEDS).chain(FAILED_ONCE)));
}

/// Seeds that found a defect of the planner.
const FAILED_ONCE: [u64; 2] = [9396, 208_953];

/// How many random cases are checked.
const SEEDS: u64 = 2000;

fn edits(count_max: usize) -> impl Strategy<Value = Vec<Edit>> {
    let edit = (0..VERBS, any::<u8>(), any::<u8>(), 0..4_u8, any::<u8>());
    let edit = edit.prop_map(|(verb, node, target, name, content)| Edit {
        verb,
        node,
        target,
        name,
        content,
    });
    prop::collection::vec(edit, 0..count_max)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn perturbed_trees_settle_or_shrink(
        before in edits(25), here in edits(10), there in edits(10), marks in any::<u64>(),
    ) {
        let case = case(&before, &here, &there, marks);
        let end = case.check(marks, None);
        prop_assert!(end.is_ok(), "{}\n{}", end.unwrap_err(), case.explain(marks));
    }
}
