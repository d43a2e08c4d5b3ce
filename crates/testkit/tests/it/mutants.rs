//! A rig that finds nothing in a broken program shows nothing about a sound one.

use sync::engine::Sabotage;
use sync::plan::Operation;
use testkit::WorldOptions;
use testkit::batch::run_worlds;
use testkit::coverage::Coverage;
use testkit::options::Coordinator;
use testkit::store::StoreDefect;
use testkit::trace::{Deed, plain_names};

/// In so many worlds a defect must be found.
const SEEDS: u64 = 60;

/// Says which checks find a defect in worlds where nothing else goes wrong; all of these are well without it.
fn found_by(broken: impl Fn(WorldOptions) -> WorldOptions + Sync) -> String {
    let expand = |seed| broken(WorldOptions::calm(seed));
    let bad = run_worlds(0..SEEDS, expand, &Coverage::default(), |_| {});
    bad.into_iter().flat_map(|bad| bad.violations).collect::<Vec<_>>().join("\n")
}

fn found_in_planner(sabotage: Sabotage) -> String {
    found_by(|options| WorldOptions { sabotage: Some(sabotage), ..options })
}

#[test]
fn calm_worlds_are_well() {
    assert_eq!(found_by(|options| options), "");
}

#[test]
fn planner_that_overwrites_edits_is_found() {
    let found = found_in_planner(|operation| match operation {
        Operation::KeepCopy => Operation::SetMatter,
        other => other,
    });
    assert!(found.contains("I-02"), "{found}");
}

#[test]
fn planner_that_ignores_remote_edits_is_found() {
    let found = found_in_planner(|operation| match operation {
        Operation::SetMatter => Operation::Accept,
        other => other,
    });
    assert!(found.contains("I-0"), "{found}");
}

#[test]
fn planner_that_forgets_deletions_is_found() {
    let found = found_in_planner(|operation| match operation {
        Operation::Remove => Operation::Forget,
        other => other,
    });
    assert!(found.contains("I-09"), "{found}");
}

#[test]
fn coordinator_that_accepts_every_change_is_found() {
    // Everybody edits the same few files.
    let found = found_by(|options| WorldOptions {
        accepts_everything: true,
        devices: 4,
        deeds_per_phase: 60,
        deeds: vec![Deed::Create, Deed::Edit, Deed::Edit],
        names: plain_names()[..2].to_vec(),
        ..options
    });
    assert!(found.contains("I-02"), "{found}");
}

#[test]
fn store_that_overwrites_slots_is_found() {
    let found = found_by(|options| WorldOptions {
        coordinator: Coordinator::Slots,
        defect: Some(StoreDefect::Overwrites),
        ..options
    });
    assert!(!found.is_empty());
}

#[test]
fn store_that_forgets_packs_is_found() {
    let found =
        found_by(|options| WorldOptions { defect: Some(StoreDefect::ForgetsPacks), ..options });
    assert!(!found.is_empty());
}

/// Lets devices clean up much of what they make.
pub(crate) fn cleaning(options: WorldOptions) -> WorldOptions {
    let deeds = vec![Deed::CreateLarge, Deed::CreateLarge, Deed::Edit, Deed::Delete];
    let mut options = WorldOptions { deeds_per_phase: 30, deeds, ..options };
    options.accidents.cleanup = 500;
    options
}

#[test]
fn cleanup_that_removes_a_pack_too_many_is_found() {
    let cleaned = |options| cleaning(WorldOptions { coordinator: Coordinator::Slots, ..options });
    assert_eq!(found_by(cleaned), "", "all is well without the defect");
    let found = found_by(|options| WorldOptions {
        defect: Some(StoreDefect::RemovesTwoPacks),
        ..cleaned(options)
    });
    assert!(found.contains("I-01") || found.contains("I-02"), "{found}");
}
