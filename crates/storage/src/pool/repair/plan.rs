//! Plans: what is to be written and removed where.

use std::collections::BTreeMap;

use crate::key::ObjectKey;
use crate::pool::Pool;
use crate::pool::piece::Placed;

use super::Problem;
use super::check::CheckReport;
use super::inventory::{Inventory, are_enough};

/// What is to be done with one object. Stores are named by their places in the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Which object.
    pub object: ObjectKey,
    /// Pieces to write.
    pub write: Vec<Placed>,
    /// Pieces to remove when the homes are complete.
    pub remove: Vec<Placed>,
}

/// What is to be done with a pool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// By object.
    pub steps: Vec<Step>,
}

impl Plan {
    /// Returns whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Returns how many pieces are to be written and removed.
    pub fn count(&self) -> (u64, u64) {
        let sum = |of: fn(&Step) -> usize| self.steps.iter().map(|step| of(step) as u64).sum();
        (sum(|step| step.write.len()), sum(|step| step.remove.len()))
    }

    /// Returns the plan without its removals.
    #[must_use]
    pub fn without_removals(mut self) -> Self {
        for step in &mut self.steps {
            step.remove.clear();
        }
        self.steps.retain(|step| !step.write.is_empty());
        self
    }
}

impl Pool {
    /// Plans to write what a check has found missing or damaged. Nothing is removed.
    pub fn plan_repair(&self, report: &CheckReport) -> Plan {
        let mut writes: BTreeMap<&ObjectKey, Vec<Placed>> = BTreeMap::new();
        let mut hopeless = Vec::new();
        for finding in &report.findings {
            let (store, piece) = match finding.problem {
                Problem::Damaged { store, piece } | Problem::Missing { store, piece } => {
                    (store, piece)
                }
                Problem::Lost | Problem::OutOfReach => {
                    hopeless.push(&finding.object);
                    continue;
                }
                Problem::Misplaced { .. } | Problem::Surplus { .. } => continue,
            };
            let Some(member) = self.shared.members.iter().position(|m| m.id == store) else {
                continue;
            };
            writes.entry(&finding.object).or_default().push((member, piece));
        }
        writes.retain(|object, _| !hopeless.contains(object));
        let step = |(object, write): (&ObjectKey, Vec<Placed>)| Step {
            object: object.clone(),
            write,
            remove: Vec::new(),
        };
        Plan { steps: writes.into_iter().map(step).collect() }
    }

    /// Plans to bring all objects home, and to remove what is not needed then. What cannot be restored from the stores that
    /// were listed is left alone.
    pub fn plan_rebalance(&self, inventory: &Inventory) -> Plan {
        let mut steps = Vec::new();
        for object in inventory.objects() {
            let Some(hash) = object.content_hash() else { continue };
            let present = inventory.pieces(object);
            if !are_enough(&present) {
                continue;
            }
            let arrangement = self.shared.arrange_seen(&hash, inventory, &present);
            if arrangement.lacking.is_empty() && arrangement.surplus.is_empty() {
                continue;
            }
            steps.push(Step {
                object: object.clone(),
                write: arrangement.lacking,
                remove: arrangement.surplus,
            });
        }
        Plan { steps }
    }
}
