//! All triples of small trees: two names, two contents, every node absent or anywhere.

use model::NodeId;

use super::case::{Case, Nodes, paths};
use super::world::{Dice, directory, file, id, place};

/// The nodes of a scope: `d` is a directory, `f` a file.
pub(super) type Scope = &'static str;

/// A node of a small tree: which directory it is in (0 is the root), its name and its content.
type Slot = Option<(usize, usize, u32)>;

const NAMES: [&str; 2] = ["a", "b"];

/// Returns all valid trees of a scope.
pub(super) fn trees(scope: Scope) -> Vec<Vec<Slot>> {
    let mut trees = vec![Vec::new()];
    for (index, kind) in scope.bytes().enumerate() {
        let mut slots = vec![None];
        let contents = if kind == b'f' { 2 } else { 1 };
        let parents =
            scope.bytes().enumerate().filter(|&(other, kind)| kind == b'd' && other != index);
        for parent in std::iter::once(0).chain(parents.map(|(other, _)| other + 1)) {
            for name in 0..NAMES.len() {
                slots.extend((1..=contents).map(|content| Some((parent, name, content))));
            }
        }
        let extend = |tree: Vec<Slot>| {
            let with = |slot: &Slot| [tree.clone(), vec![*slot]].concat();
            slots.iter().map(with).collect::<Vec<_>>()
        };
        trees = trees.into_iter().flat_map(extend).collect();
    }
    trees.retain(|tree| is_valid(scope, tree));
    trees
}

fn is_valid(scope: Scope, tree: &[Slot]) -> bool {
    let nodes = nodes(scope, tree, &vec![0; tree.len()]);
    let mut places: Vec<_> = nodes.values().map(|(place, _)| place).collect();
    places.sort();
    places.dedup();
    // Whatever lies in an absent directory or in a circle has no path.
    places.len() == nodes.len() && paths(&nodes).len() == nodes.len()
}

/// Gives the nodes of a tree ids of a side.
fn nodes(scope: Scope, tree: &[Slot], sides: &[u8]) -> Nodes {
    let node = |index: usize| match index {
        0 => NodeId::ROOT,
        index => id(sides[index - 1], index as u32),
    };
    let mut nodes = Nodes::new();
    for (index, slot) in tree.iter().enumerate() {
        let Some((parent, name, content)) = *slot else { continue };
        let is_directory = scope.as_bytes()[index] == b'd';
        let matter = if is_directory { directory() } else { file(content) };
        nodes.insert(node(index + 1), (place(node(parent), NAMES[name]), matter));
    }
    nodes
}

/// The trees of a scope, and the triples of them by number.
pub(super) struct Triples {
    scope: Scope,
    trees: Vec<Vec<Slot>>,
}

impl Triples {
    pub(super) fn new(scope: Scope) -> Self {
        Self { scope, trees: trees(scope) }
    }

    pub(super) fn count(&self) -> u64 {
        (self.trees.len() as u64).pow(3)
    }

    /// Returns a triple. Some of its unchanged nodes are touched, the same ones every time.
    pub(super) fn case(&self, number: u64) -> Case {
        let count = self.trees.len() as u64;
        let tree = |number: u64| &self.trees[(number % count) as usize];
        let (synced, local, remote) =
            (tree(number), tree(number / count), tree(number / count / count));
        let sides = |side| {
            synced.iter().map(|slot| if slot.is_some() { 0 } else { side }).collect::<Vec<_>>()
        };
        let all = |tree: &[Slot], side| nodes(self.scope, tree, &sides(side));
        let mut case = Case::new(all(local, 1), all(synced, 0), all(remote, 2));
        let mut dice = Dice(number);
        case.touched = case.synced.keys().filter(|_| dice.hits(30)).copied().collect();
        case
    }

    /// Checks every `stride`-th triple; returns how many, and the most rounds that one took.
    pub(super) fn check(&self, stride: u64) -> (u64, u32) {
        let (mut checked, mut rounds_max, mut failed) = (0, 0, Vec::new());
        let mut number = 0;
        while number < self.count() {
            checked += 1;
            match self.case(number).check(number, None) {
                Ok(rounds) => rounds_max = rounds_max.max(rounds),
                Err(error) => {
                    failed.push((number, error));
                }
            }
            // An irregular step, so that no tree is passed over.
            number += if stride == 1 {
                1
            } else {
                1 + Dice(number).below(2 * stride as usize - 1) as u64
            };
        }
        if let Some((number, error)) = failed.first() {
            let case = self.case(*number).explain(*number);
            panic!("{} of {checked}; {} {number}: {error}\n{case}", failed.len(), self.scope);
        }
        (checked, rounds_max)
    }
}

#[test]
fn every_triple_of_trees_of_two_nodes_settles() {
    for scope in ["ff", "df", "dd"] {
        let triples = Triples::new(scope);
        let (checked, rounds_max) = triples.check(1);
        println!("{scope}: {checked} triples, at most {rounds_max} rounds");
        assert_eq!(checked, triples.count());
    }
}

/// How many triples of larger trees are passed over for one that is checked; 1 checks all, which takes hours.
const STRIDES: [(Scope, u64); 2] = [("dff", 400), ("ddff", 300_000)];

#[test]
fn triples_of_trees_of_four_nodes_settle() {
    for (scope, stride) in STRIDES {
        let triples = Triples::new(scope);
        let (checked, rounds_max) = triples.check(stride);
        println!("{scope}: {checked} of {} triples, at most {rounds_max} rounds", triples.count());
    }
}
