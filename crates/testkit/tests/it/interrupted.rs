//! A commit and a cleanup over three stores, interrupted after each single request.

use model::pool::Redundancy;
use testkit::interrupted::{Cut, Deed, Ending, Scene, interrupted};
use testkit::store::StoreDefect;

const TWO: Redundancy = Redundancy::Replicas(2);
const THREE: Redundancy = Redundancy::Replicas(3);
const BLOCKS: Redundancy = Redundancy::Erasure { data: 2, total: 3 };

fn well(scene: Scene, cut: Option<Cut>) -> Ending {
    interrupted(scene, cut).unwrap_or_else(|text| panic!("{scene:?}, {cut:?}: {text}"))
}

/// Ends a deed after each of its requests, once with the answer to it and once without. Returns after how many of the
/// deaths a store lacked something that the log needs.
fn interrupt_everywhere(deed: Deed, redundancy: Redundancy, seed: u64) -> usize {
    let scene = Scene { deed, redundancy, seed, defect: None };
    let whole = well(scene, None);
    assert!(!whole.was_cut && whole.requests >= 15, "{whole:?}");
    assert_eq!(whole.lacking, 0, "a process that comes to its end leaves nothing to mend");
    let cuts = (0..whole.requests).flat_map(|after| {
        let unanswered = (after > 0).then_some(Cut { after, is_answered: false });
        unanswered.into_iter().chain([Cut { after, is_answered: true }])
    });
    let mut left = 0;
    for cut in cuts {
        let ending = well(scene, Some(cut));
        assert!(ending.was_cut, "{scene:?}, {cut:?}: it has made fewer requests");
        assert_eq!(ending.history, whole.history, "{scene:?}, {cut:?}");
        left += usize::from(ending.lacking > 0);
    }
    left
}

#[test]
fn commit_may_end_at_any_request() {
    for (seed, redundancy) in [(1, TWO), (2, BLOCKS)] {
        // Whoever commits has waited until all pieces are durable.
        assert_eq!(interrupt_everywhere(Deed::Commit, redundancy, seed), 0);
    }
    // Two of three copies are waited for, so that the third one may be lacking.
    assert!(interrupt_everywhere(Deed::Commit, THREE, 3) > 0);
}

#[test]
fn commit_may_end_at_any_request_and_be_overtaken_by_a_cleanup() {
    for (seed, redundancy) in [(4, TWO), (5, BLOCKS)] {
        interrupt_everywhere(Deed::OvertakenCommit, redundancy, seed);
    }
}

#[test]
fn cleanup_may_end_at_any_request() {
    for (seed, redundancy) in [(6, TWO), (7, BLOCKS)] {
        interrupt_everywhere(Deed::CleanUp, redundancy, seed);
    }
}

#[test]
fn cleanup_of_pages_may_end_at_any_request() {
    for (seed, redundancy) in [(9, TWO), (10, BLOCKS)] {
        interrupt_everywhere(Deed::CleanUpPages, redundancy, seed);
    }
}

#[test]
fn checkpoint_may_end_at_any_request_of_its_publisher_and_be_overtaken_by_a_cleanup() {
    for (seed, redundancy) in [(11, TWO), (12, BLOCKS)] {
        interrupt_everywhere(Deed::Publish, redundancy, seed);
    }
}

#[test]
fn stores_that_are_wrong_are_found_without_any_interruption() {
    for (deed, defect) in
        [(Deed::Commit, StoreDefect::ForgetsPacks), (Deed::CleanUp, StoreDefect::RemovesTwoPacks)]
    {
        let scene = Scene { deed, redundancy: TWO, seed: 8, defect: Some(defect) };
        let found = interrupted(scene, None).expect_err("something is wrong with the stores");
        assert!(found.contains("lost: Finding"), "{found}");
    }
}
