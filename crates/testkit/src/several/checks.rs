//! What must be true of several stores when all are back: nothing lost, and after a repair nothing missing.

use std::collections::BTreeSet;
use std::rc::Rc;

use model::fold::fold;
use model::{Entry, Opener, Tree};
use storage::ObjectKey;
use storage::pool::Pool;
use storage::pool::repair::{CarryOut, CheckOptions, Depth, Finding, Problem};

use super::{Several, SeveralDefect, Trouble};
use crate::world::World;

/// How often a repair looks again.
const LOOKS_MAX: usize = 3;

/// Checks and repairs the stores, as `check --repair` does, and then demands that everything is in all its homes.
pub async fn check_stores(world: Rc<World>) {
    let Some(several) = world.common.several.clone() else { return };
    let opened = world.auditor().open_several();
    let Some(opened) = opened else { return };
    let entries = match commit_log::CommitLog::entries(&*opened.log, 0, u64::MAX).await {
        Ok(entries) => entries,
        Err(error) => return world.violation(format!("the log cannot be read: {error}")),
    };
    let expected = needed_packs(&entries, &world.common.keys());
    for key in &expected {
        if !several.can_restore(key) {
            world.violation(format!("I-61: {key} cannot be had from all stores together"));
        }
    }
    repair(&world, &several, &opened.pool, &expected).await;
    if several.options.defect == Some(SeveralDefect::RepairDeletes) {
        delete_pieces(&several);
    }
    let inventory = opened.pool.inventory().await;
    let options = CheckOptions { depth: Depth::Deep, ..CheckOptions::default() };
    let report = opened.pool.check(&inventory, &expected, options).await;
    for unseen in &report.unseen {
        world.violation(format!("I-62: {} was not seen although all is well", unseen.name));
    }
    let orphans: BTreeSet<_> = report.lost().filter(|key| !expected.contains(key)).collect();
    let is_wrong =
        |finding: &&Finding| finding.problem.is_risk() && !orphans.contains(&finding.object);
    for finding in report.findings.iter().filter(is_wrong) {
        world.violation(format!("I-62: after the repair: {finding:?}"));
    }
}

/// Returns the packs that the log names and that no cleanup has condemned.
pub(crate) fn needed_packs(entries: &[Entry], opener: &dyn Opener) -> BTreeSet<ObjectKey> {
    let (mut tree, mut needed) = (Tree::default(), BTreeSet::new());
    for entry in entries {
        let Ok(folded) = fold(&mut tree, entry, opener);
        if !folded.is_fenced {
            needed.extend(entry.commit.packs.iter().map(|pack| ObjectKey::pack(pack.id)));
        }
        for pack in folded.fence.iter().flat_map(|fence| &fence.condemned) {
            needed.remove(&ObjectKey::pack(*pack));
        }
    }
    needed
}

/// Tells whether something is lost that the log names. What a device was writing when it died may be there in part, and nobody
/// needs it.
fn is_lost(finding: &Finding, expected: &BTreeSet<ObjectKey>) -> bool {
    expected.contains(&finding.object)
        && matches!(finding.problem, Problem::Lost | Problem::OutOfReach)
}

async fn repair(world: &World, several: &Several, pool: &Pool, expected: &BTreeSet<ObjectKey>) {
    if several.options.defect == Some(SeveralDefect::NeverRepairs) {
        return;
    }
    let options = CheckOptions { depth: Depth::Deep, ..CheckOptions::default() };
    for _ in 0..LOOKS_MAX {
        let inventory = pool.inventory().await;
        let report = pool.check(&inventory, expected, options).await;
        if let Some(lost) = report.findings.iter().find(|finding| is_lost(finding, expected)) {
            world.violation(format!("I-61: {lost:?}"));
        }
        let plan = pool.plan_repair(&report);
        if plan.is_empty() {
            return;
        }
        let outcome = pool.carry_out(&plan, CarryOut::default()).await;
        world.common.record.note("repaired", format_args!("{outcome:?}"));
    }
}

/// Takes one piece of everything out of the first store that has it.
fn delete_pieces(several: &Several) {
    for store in &several.stores {
        store.set_trouble(Trouble::Wiped);
        store.set_trouble(Trouble::None);
        if !store.memory().snapshot().is_empty() {
            return;
        }
    }
}
