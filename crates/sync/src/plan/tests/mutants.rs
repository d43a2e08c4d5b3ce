//! A wrong planner is noticed: each rule that keeps data is broken once.

use model::NodeId;

use super::exhaustive::Triples;
use super::random::random_case;
use super::world::{Device, Mutant};
use crate::plan::{Operation, Trees};

/// An edit is overwritten by the log's.
fn overwrites(_: &Device, _: &NodeId, operation: Operation) -> Operation {
    if operation == Operation::KeepCopy { Operation::SetMatter } else { operation }
}

/// What was deleted here is deleted everywhere, although it was changed there.
fn deletes_unseen(device: &Device, node: &NodeId, operation: Operation) -> Operation {
    match (operation, device.remote.get(node)) {
        (Operation::Forget, Some(remote)) if remote.is_alive() => {
            Operation::ProposeDelete { base: remote.version }
        }
        (operation, _) => operation,
    }
}

/// What was deleted there is removed here, although it was changed here.
fn removes_edits(device: &Device, node: &NodeId, operation: Operation) -> Operation {
    let is_gone = device.remote.get(node).is_some_and(|node| !node.is_alive());
    let Ok(is_full) = device.has_local_children(node);
    match operation {
        Operation::Propose { .. } if is_gone && !is_full => Operation::Remove,
        operation => operation,
    }
}

/// The log's version is taken for seen, although the folder has the old one.
fn accepts_unseen(_: &Device, _: &NodeId, operation: Operation) -> Operation {
    if operation == Operation::SetMatter { Operation::Accept } else { operation }
}

/// What was moved here moves back.
fn forgets_moves(device: &Device, node: &NodeId, operation: Operation) -> Operation {
    let Ok(local) = device.local(node);
    let Ok(synced) = device.synced(node);
    let is_moved = local.zip(synced).is_some_and(|(local, synced)| local.place != synced.place);
    match operation {
        Operation::Propose { base: 1.. } if is_moved => Operation::Move,
        operation => operation,
    }
}

const MUTANTS: [(&str, Mutant); 5] = [
    ("overwrites", overwrites),
    ("deletes unseen", deletes_unseen),
    ("removes edits", removes_edits),
    ("accepts unseen", accepts_unseen),
    ("forgets moves", forgets_moves),
];

#[test]
fn every_mutant_is_caught_by_small_trees() {
    let triples = Triples::new("ff");
    for (name, mutant) in MUTANTS {
        let caught = (0..triples.count())
            .find_map(|number| triples.case(number).check(number, Some(mutant)).err());
        assert!(caught.is_some(), "the mutant that {name} survives");
    }
}

#[test]
fn every_mutant_is_caught_by_random_trees() {
    for (name, mutant) in MUTANTS {
        let caught = (0..500).any(|seed| random_case(seed).check(seed, Some(mutant)).is_err());
        assert!(caught, "the mutant that {name} survives");
    }
}
