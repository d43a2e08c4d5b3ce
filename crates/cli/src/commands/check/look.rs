//! Looking at what is stored, in the stores of a workspace or on its server.

use std::collections::{BTreeSet, HashSet};

use model::{PackId, PageId};
use storage::ObjectKey;
use storage::pool::Pool;
use storage::pool::repair::{CarryOut, CheckOptions, CheckReport, Depth, Problem};

/// How often a repair is followed by another look, because stores change while it works.
const LOOKS_MAX: usize = 3;

/// Pieces that are not as they should be.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Lacking {
    /// How many are not there.
    pub(super) missing: u64,
    /// How many have other bytes than they should have.
    pub(super) damaged: u64,
}

impl Lacking {
    fn note(&mut self, problem: &Problem) {
        match problem {
            Problem::Missing { .. } => self.missing += 1,
            Problem::Damaged { .. } => self.damaged += 1,
            _ => {}
        }
    }

    /// Returns how many there are.
    pub(super) fn count(self) -> u64 {
        self.missing + self.damaged
    }

    /// Returns these and others.
    pub(super) fn and(self, other: Self) -> Self {
        Self { missing: self.missing + other.missing, damaged: self.damaged + other.damaged }
    }
}

/// What a look has found.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// How many objects there are or should be.
    pub(super) objects: u64,
    /// How many pieces of them there are.
    pub(super) pieces: u64,
    /// How many bytes were read.
    pub(super) read_bytes: u64,
    /// How many pieces are missing of what can be restored, and how many have other bytes than they should have.
    pub(super) lacking: Lacking,
    /// The same of what is lost.
    pub(super) lacking_of_lost: Lacking,
    /// How many pieces are stored twice, or where nobody looks for them.
    pub(super) surplus: u64,
    /// How many pieces were written.
    pub(super) written: u64,
    /// Packs that cannot be restored.
    pub(super) lost: HashSet<PackId>,
    /// Pages of checkpoints that cannot be restored.
    pub(super) lost_pages: BTreeSet<PageId>,
    /// Objects that cannot be restored while stores are away.
    pub(super) out_of_reach: HashSet<ObjectKey>,
    /// Stores that do not answer: their names, and why.
    pub(super) unseen: Vec<(String, String)>,
}

impl Found {
    /// What a look at a server has found.
    pub(super) fn on_server(expected: u64, lost: HashSet<PackId>) -> Self {
        let pieces = expected - lost.len() as u64;
        Self { objects: expected, pieces, lost, ..Self::default() }
    }

    fn of_pool(report: &CheckReport, written: u64) -> Self {
        let lost: HashSet<&ObjectKey> = report.lost().collect();
        let mut lacking = [Lacking::default(); 2];
        for finding in &report.findings {
            lacking[usize::from(lost.contains(&finding.object))].note(&finding.problem);
        }
        let is_surplus = |problem: &Problem| matches!(problem, Problem::Surplus { .. });
        let surplus = report.findings.iter().filter(|finding| is_surplus(&finding.problem));
        let is_away = |problem: &Problem| *problem == Problem::OutOfReach;
        let away = report.findings.iter().filter(|finding| is_away(&finding.problem));
        Self {
            objects: report.objects,
            pieces: report.pieces,
            read_bytes: report.bytes_read,
            lacking: lacking[0],
            lacking_of_lost: lacking[1],
            surplus: surplus.count() as u64,
            written,
            lost: lost.iter().filter_map(|key| key.as_pack()).collect(),
            lost_pages: lost.iter().filter_map(|key| key.as_page()).collect(),
            out_of_reach: away.map(|finding| finding.object.clone()).collect(),
            unseen: report
                .unseen
                .iter()
                .map(|unseen| (unseen.name.clone(), unseen.reason.clone()))
                .collect(),
        }
    }

    /// Takes note of stores that have not answered to others.
    pub(super) fn note_unseen(&mut self, unseen: &[(String, String)]) {
        for (name, reason) in unseen {
            if !self.unseen.iter().any(|(known, _)| known == name) {
                self.unseen.push((name.clone(), reason.clone()));
            }
        }
    }

    /// Returns the packs of which nobody can say that they are whole.
    pub(super) fn doubtful(&self) -> HashSet<PackId> {
        let away = self.out_of_reach.iter().filter_map(ObjectKey::as_pack);
        self.lost.iter().copied().chain(away).collect()
    }
}

/// Looks at a pool, and repairs what can be repaired until a look finds nothing more to do.
pub(super) async fn look(
    pool: &Pool,
    expected: &BTreeSet<ObjectKey>,
    depth: Depth,
    repairs: bool,
) -> Found {
    let options = CheckOptions { depth, ..CheckOptions::default() };
    let mut written = 0;
    let mut looks = 0;
    loop {
        let inventory = pool.inventory().await;
        let mut report = pool.check(&inventory, expected, options).await;
        forget_unfinished(&mut report, expected);
        looks += 1;
        let plan = pool.plan_repair(&report);
        if !repairs || plan.is_empty() || looks == LOOKS_MAX {
            return Found::of_pool(&report, written);
        }
        written += pool.carry_out(&plan, CarryOut::default()).await.written;
    }
}

/// Leaves aside packs that cannot be restored and that the log does not name: a device died or lost its way while it wrote
/// them, and nobody was ever told that they are there.
fn forget_unfinished(report: &mut CheckReport, expected: &BTreeSet<ObjectKey>) {
    let is_unfinished = |key: &&ObjectKey| key.as_pack().is_some() && !expected.contains(key);
    let unfinished: BTreeSet<ObjectKey> = report.lost().filter(is_unfinished).cloned().collect();
    report.findings.retain(|finding| !unfinished.contains(&finding.object));
}
