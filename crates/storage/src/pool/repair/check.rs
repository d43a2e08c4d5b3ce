//! Is everything where it should be, and what it should be?

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::{self, StreamExt};

use crate::key::ObjectKey;
use crate::pool::Pool;
use crate::pool::mend::Inspection;
use crate::pool::piece::Placed;

use super::carry_out::Pace;
use super::inventory::{Inventory, UnseenStore, are_enough};
use super::{Finding, OnProgress, Problem, Progress};

/// How many objects are read at once.
const OBJECTS_AT_ONCE: usize = 4;

/// How closely is looked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Depth {
    /// The lists are compared with what should be.
    #[default]
    Quick,
    /// All pieces are read and verified.
    Deep,
}

/// How to check.
#[derive(Clone, Copy, Default)]
pub struct CheckOptions<'a> {
    /// How closely.
    pub depth: Depth,
    /// How many bytes a second are read at most.
    pub bytes_per_second: Option<u64>,
    /// Hears of each object.
    pub progress: OnProgress<'a>,
}

impl std::fmt::Debug for CheckOptions<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("CheckOptions").field(&self.depth).finish()
    }
}

/// What a check has found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// How many objects there are or should be.
    pub objects: u64,
    /// How many pieces of them there are.
    pub pieces: u64,
    /// How many bytes were read.
    pub bytes_read: u64,
    /// What is wrong, by object.
    pub findings: Vec<Finding>,
    /// Stores that could not be listed. What they should have is not known to be missing.
    pub unseen: Vec<UnseenStore>,
}

impl CheckReport {
    /// Returns whether every object has all its pieces at home, and nothing else is there.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty() && self.unseen.is_empty()
    }

    /// Returns the objects that cannot be restored.
    pub fn lost(&self) -> impl Iterator<Item = &ObjectKey> {
        let is_lost = |finding: &&Finding| finding.problem == Problem::Lost;
        self.findings.iter().filter(is_lost).map(|finding| &finding.object)
    }
}

impl Pool {
    /// Checks the objects of an inventory and those that are expected whether there is anything of them or not.
    pub async fn check(
        &self,
        inventory: &Inventory,
        expected: &BTreeSet<ObjectKey>,
        options: CheckOptions<'_>,
    ) -> CheckReport {
        let expected = expected.iter().filter(|object| object.names_its_content());
        let objects: BTreeSet<&ObjectKey> = inventory.objects().chain(expected).collect();
        let pace = Pace::new(&self.shared, options.bytes_per_second);
        let mut report = CheckReport {
            objects: objects.len() as u64,
            pieces: inventory.objects.values().map(|pieces| pieces.len() as u64).sum(),
            unseen: inventory.unseen().cloned().collect(),
            ..CheckReport::default()
        };
        let done = AtomicU64::new(0);
        let bytes = AtomicU64::new(0);
        let mut checks: Vec<BoxFuture<'_, Vec<Finding>>> = Vec::with_capacity(objects.len());
        for object in &objects {
            let check = async {
                let (findings, read) =
                    self.check_object(object, inventory, options.depth, &pace).await;
                let progress = Progress {
                    objects_done: done.fetch_add(1, Ordering::Relaxed) + 1,
                    objects: report.objects,
                    bytes: bytes.fetch_add(read, Ordering::Relaxed) + read,
                };
                if let Some(on_progress) = options.progress {
                    on_progress(progress);
                }
                findings
            };
            checks.push(check.boxed());
        }
        let findings: Vec<Vec<Finding>> =
            stream::iter(checks).buffer_unordered(OBJECTS_AT_ONCE).collect().await;
        report.findings = findings.concat();
        report.findings.sort_unstable();
        report.bytes_read = bytes.into_inner();
        report
    }

    async fn check_object(
        &self,
        object: &ObjectKey,
        inventory: &Inventory,
        depth: Depth,
        pace: &Pace<'_>,
    ) -> (Vec<Finding>, u64) {
        let shared = &self.shared;
        let Some(hash) = object.content_hash() else { return (Vec::new(), 0) };
        let mut present = inventory.pieces(object);
        let mut inspection = Inspection::default();
        let is_restorable = match depth {
            Depth::Quick => are_enough(&present),
            Depth::Deep => {
                inspection = shared.inspect(object, hash, &present).await;
                pace.spend(inspection.bytes_read).await;
                // What was listed and is gone since is not there; what cannot be read just now may be.
                present.retain(|placed| {
                    let has_failed =
                        inspection.failed.iter().any(|(member, _)| *member == placed.0);
                    has_failed
                        || inspection.good.contains(placed)
                        || inspection.wrong.contains(placed)
                });
                inspection.bytes.is_some()
            }
        };
        let arrangement = shared.arrange_seen(&hash, inventory, &present);
        let store = |placed: &Placed| (shared.members[placed.0].id, placed.1);
        let mut problems = Vec::new();
        if !is_restorable {
            let is_out_of_reach = !inventory.unseen.is_empty() || !inspection.failed.is_empty();
            problems.push(if is_out_of_reach { Problem::OutOfReach } else { Problem::Lost });
        }
        let is_lacking = !arrangement.lacking.is_empty();
        problems.extend(
            inspection
                .wrong
                .iter()
                .map(store)
                .map(|(store, piece)| Problem::Damaged { store, piece }),
        );
        problems.extend(
            arrangement
                .lacking
                .iter()
                .map(store)
                .map(|(store, piece)| Problem::Missing { store, piece }),
        );
        problems.extend(arrangement.surplus.iter().map(store).map(|(store, piece)| {
            if is_lacking {
                Problem::Misplaced { store, piece }
            } else {
                Problem::Surplus { store, piece }
            }
        }));
        let finding = |problem| Finding { object: object.clone(), problem };
        (problems.into_iter().map(finding).collect(), inspection.bytes_read)
    }
}
