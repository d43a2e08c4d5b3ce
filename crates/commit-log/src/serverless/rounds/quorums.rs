//! How many stores must agree, for each purpose.

pub use model::pool::FaultModel;

/// How many equal votes decide the fast round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FastQuorums {
    /// For the value of the slot's owner, of which there is one.
    pub owner: usize,
    /// For any other value.
    pub other: usize,
}

/// The sizes of all quorums of a group of stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Quorums {
    /// How many stores the group has.
    pub stores: usize,
    /// How many of them may fail.
    pub faults: usize,
    /// How many must have announced a round before a value is chosen for it, and how many must have accepted the value
    /// before it fills the slot.
    pub classic: usize,
    /// The fast round, where there is one.
    pub fast: Option<FastQuorums>,
    /// How many may lie.
    pub liars: usize,
}

impl Quorums {
    /// Computes the sizes for a group of `stores`, at least one.
    ///
    /// *Crash*: two quorums always meet, so a majority. A classic round reads a majority and must know from it which fast
    /// value may have been decided; so it must meet any two fast quorums of different values at one store:
    /// classic + fast + fast' > 2 x stores. The owner has one value and gets a majority; what is left for the others is in
    /// `other`. *Byzantine*: two quorums must meet in more stores than lie.
    pub fn new(stores: usize, model: FaultModel) -> Self {
        assert!(stores > 0, "a group has at least one store");
        match model {
            FaultModel::Crash => {
                let majority = stores / 2 + 1;
                let beside_owner = (2 * stores + 1).saturating_sub(2 * majority);
                // Two values of which none is the owner's must be told apart, too.
                let beside_another = (2 * stores - majority) / 2 + 1;
                let other = beside_owner.max(beside_another);
                let fast = Some(FastQuorums { owner: majority, other });
                Self { stores, faults: stores - majority, classic: majority, fast, liars: 0 }
            }
            FaultModel::Byzantine => {
                let liars = (stores - 1) / 3;
                let classic = (stores + liars) / 2 + 1;
                Self { stores, faults: liars, classic, fast: None, liars }
            }
        }
    }

    /// How many stores must be found empty before it is sure that nothing fills the slot yet.
    pub fn read(&self) -> usize {
        let smallest = self.fast.map_or(self.classic, |fast| self.classic.min(fast.owner));
        self.stores + 1 + self.liars - smallest
    }

    /// How many votes decide for a value in the fast round.
    pub(super) fn fast_for(&self, is_owners: bool) -> Option<usize> {
        self.fast.map(|fast| if is_owners { fast.owner } else { fast.other })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_the_specification() {
        // stores: faults, classic, owner, other
        let table = [
            (1, 0, 1, 1, 1),
            (2, 0, 2, 2, 2),
            (3, 1, 2, 2, 3),
            (4, 1, 3, 3, 3),
            (5, 2, 3, 3, 5),
            (6, 2, 4, 4, 5),
            (7, 3, 4, 4, 7),
        ];
        for (stores, faults, classic, owner, other) in table {
            let quorums = Quorums::new(stores, FaultModel::Crash);
            assert_eq!((quorums.faults, quorums.classic), (faults, classic), "{stores} stores");
            assert_eq!(quorums.fast, Some(FastQuorums { owner, other }), "{stores} stores");
        }
        for (stores, faults, classic) in [(1, 0, 1), (3, 0, 2), (4, 1, 3), (5, 1, 4), (7, 2, 5)] {
            let quorums = Quorums::new(stores, FaultModel::Byzantine);
            assert_eq!((quorums.faults, quorums.classic), (faults, classic), "{stores} stores");
            assert_eq!(quorums.fast, None);
        }
    }

    #[test]
    fn quorums_meet_where_they_must() {
        for stores in 1..40 {
            let crash = Quorums::new(stores, FaultModel::Crash);
            let fast = crash.fast.expect("crash faults leave a fast round");
            assert!(2 * crash.classic > stores);
            assert!(crash.classic + fast.owner + fast.other > 2 * stores);
            assert!(crash.classic + 2 * fast.other > 2 * stores);
            assert!(fast.owner + fast.other > stores && 2 * fast.other > stores);
            assert!(fast.other <= stores && crash.classic + crash.faults <= stores);
            let lying = Quorums::new(stores, FaultModel::Byzantine);
            assert!(2 * lying.classic > stores + lying.liars);
            assert!(
                lying.classic + lying.faults <= stores,
                "{stores} stores: no quorum without liars"
            );
        }
    }
}
