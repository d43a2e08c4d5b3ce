//! When a store is given a piece beside the home that is slow with it.
//!
//! A home that is far behind the others would hold up every write, as it is the home of its share of everything. So a substitute
//! takes the piece, too: the write is answered with that, and the home goes on, behind what somebody waits for. That sends the
//! bytes once more, so it is done only for a large gain, and only by what was measured.
//!
//! Stores that are equally quick are sent nothing twice, though by chance one has more to do than another: the line itself must be
//! slower. Nor are those that the device reaches through one line, which gets no wider by that: there a store that has more to do
//! gets more of the line, but a piece of each store takes as long as one of another.

use std::collections::VecDeque;

use super::Shared;
use super::member::{Direction, Outlook};
use super::turns::Standing;

/// A home takes so many times as long for a byte as a substitute does that relieves it.
const SLOWER_MIN: f64 = 1.5;

/// The same, if all stores shared one line: there this is 1 but for chance.
const SLOWER_IF_SHARED_MIN: f64 = 2.0;

/// A home is expected to be done after so many times the time that the substitute takes.
const LATER_FACTOR: f64 = 2.0;

/// It is expected to be done so many seconds later.
const LATER_MIN: f64 = 2.0;

impl Shared {
    /// Returns the place in `substitutes` of the store that takes a piece of `bytes` bytes, too, since `home`, where it stands
    /// so, would take far longer.
    pub(crate) fn relief(
        &self,
        home: usize,
        standing: Standing,
        bytes: u64,
        substitutes: &VecDeque<usize>,
    ) -> Option<usize> {
        let now = self.clock.elapsed();
        let store = &self.members[home];
        let (home, gone) = match standing {
            Standing::Waits(to_go) => (store.outlook(to_go, now)?, 0.0),
            Standing::IsOnLine(passage) => {
                // What takes longer than was measured takes as long again, too.
                let measured = store.outlook(passage.to_go, now);
                let measured = measured.filter(|outlook| outlook.at_least > passage.taken);
                let so_far = || store.outlook_so_far(bytes, passage);
                (measured.unwrap_or_else(so_far), passage.taken)
            }
            Standing::IsGone => return None,
        };
        let outlook = |&member: &usize| {
            let store = &self.members[member];
            let has_room = store.written_under_way() <= self.options.under_way_max;
            let outlook = store.outlook(store.turns.to_go(bytes), now)?;
            (has_room && !store.is_failing(Direction::Write, now)).then_some(outlook)
        };
        let outlooks = substitutes.iter().map(outlook).enumerate();
        let worth = outlooks.filter_map(|(place, outlook)| {
            let outlook = outlook.filter(|outlook| is_worth(&home, gone, outlook))?;
            Some((place, outlook.at_most))
        });
        worth.min_by(|one, other| one.1.total_cmp(&other.1)).map(|(place, _)| place)
    }
}

/// Tells whether a substitute is so much better than a home on whose line the piece has been for `gone` seconds.
fn is_worth(home: &Outlook, gone: f64, substitute: &Outlook) -> bool {
    let left = home.at_least - gone;
    let (of_home, of_substitute) = (home.cost, substitute.cost);
    of_home.byte_at_best >= of_substitute.byte * SLOWER_MIN
        && of_home.byte_if_shared >= of_substitute.byte_if_shared * SLOWER_IF_SHARED_MIN
        && left >= substitute.at_most * LATER_FACTOR
        && left >= substitute.at_most + LATER_MIN
}

#[cfg(test)]
mod tests {
    use super::super::member::Cost;
    use super::*;

    fn outlook(seconds: f64, byte: f64) -> Outlook {
        let cost = Cost { byte, byte_at_best: byte, byte_if_shared: byte };
        Outlook { at_most: seconds, at_least: seconds, cost }
    }

    #[test]
    fn only_a_store_that_is_much_quicker_and_much_earlier_relieves_a_home() {
        let home = outlook(6.0, 3e-7);
        assert!(is_worth(&home, 0.0, &outlook(3.0, 1e-7)));
        assert!(!is_worth(&home, 0.0, &outlook(3.1, 1e-7)), "not twice as early");
        assert!(!is_worth(&home, 0.1, &outlook(3.0, 1e-7)), "nearly done");
        assert!(!is_worth(&home, 0.0, &outlook(1.0, 2.1e-7)), "as quick a line");
        let mut shared = outlook(1.0, 1e-7);
        shared.cost.byte_if_shared = 1.6e-7;
        assert!(!is_worth(&home, 0.0, &shared), "the same line");
        let home = outlook(2.0, 3e-7);
        assert!(!is_worth(&home, 0.0, &outlook(0.1, 1e-8)), "not long enough");
    }

    #[test]
    fn home_is_judged_by_the_least_and_a_substitute_by_the_most() {
        let mut home = outlook(6.0, 3e-7);
        home.at_least = 5.0;
        assert!(!is_worth(&home, 0.0, &outlook(3.0, 1e-7)));
        let mut home = outlook(6.0, 3e-7);
        home.cost.byte_at_best = 1e-7;
        assert!(!is_worth(&home, 0.0, &outlook(3.0, 1e-7)));
    }
}
