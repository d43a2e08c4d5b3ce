//! Whom a session helps that has filled a slot which others wanted, too: it fills the next slots with what they wanted, as
//! their owner, in one round trip each, where all of them together would compete once more.
//!
//! *Goals*: nobody need wait for it, and nothing is lost without it. *Non-goals*: reading wishes, filling slots (the driver's,
//! [`super::slot_log`]). *Invariants*: an operation is proposed for a slot only by somebody who knows that no slot before has it.
//! Whoever wished in slot *n* knew all entries before *n*, which its entry proves by the hash of the last of them; the helper
//! knows slot *n* and all behind it, and stops where one holds what it does not expect.

use std::collections::VecDeque;

use model::{Commit, Entry, EntryHash, Head, OpId};

/// The rules that a model checker breaks one by one, to see that it would notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HelpingRules {
    heeds_others: bool,
    heeds_history: bool,
}

impl Default for HelpingRules {
    fn default() -> Self {
        Self { heeds_others: true, heeds_history: true }
    }
}

#[cfg(feature = "testing")]
impl HelpingRules {
    /// A helper goes on where somebody else has filled a slot, and does not look with what.
    #[must_use]
    pub fn without_heeding_others(mut self) -> Self {
        self.heeds_others = false;
        self
    }

    /// A helper takes wishes of whoever knows another history, or an older one.
    #[must_use]
    pub fn without_heeding_history(mut self) -> Self {
        self.heeds_history = false;
        self
    }
}

/// The machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Helper {
    rules: HelpingRules,
    /// The slot that was won, and what its entry follows.
    slot: u64,
    previous: EntryHash,
    /// The last slot that is known to be filled.
    head: Head,
    /// What was wished, and is in no slot up to the head.
    wishes: VecDeque<Commit>,
    /// The operations of the slot that was won and all behind it.
    done: Vec<OpId>,
    is_over: bool,
}

impl Helper {
    /// Begins with the entry that has filled a slot.
    pub fn new(filled: &Entry) -> Self {
        Self {
            rules: HelpingRules::default(),
            slot: filled.seq,
            previous: filled.previous,
            head: filled.head(),
            wishes: VecDeque::new(),
            done: vec![filled.commit.op_id],
            is_over: false,
        }
    }

    /// Replaces the rules, to see that a model checker finds out.
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn with_rules(mut self, rules: HelpingRules) -> Self {
        self.rules = rules;
        self
    }

    /// Returns the slot that was won.
    pub fn slot(&self) -> u64 {
        self.slot
    }

    /// Returns the last entry that is known to be in the log.
    pub fn head(&self) -> Head {
        self.head
    }

    /// Hears what somebody wanted to fill that slot with.
    pub fn hear(&mut self, wish: &Entry) {
        let is_of_slot = (wish.seq, wish.previous) == (self.slot, self.previous);
        let op_id = wish.commit.op_id;
        let is_known =
            self.done.contains(&op_id) || self.wishes.iter().any(|commit| commit.op_id == op_id);
        if (is_of_slot || !self.rules.heeds_history) && !is_known {
            self.wishes.push_back(wish.commit.clone());
        }
    }

    /// Returns what the slot behind the last one is to be filled with.
    pub fn next(&self) -> Option<Entry> {
        let commit = self.wishes.front().filter(|_| !self.is_over)?.clone();
        Some(Entry { seq: self.head.seq + 1, previous: self.head.hash, commit })
    }

    /// Takes note of what that slot was filled with.
    pub fn take(&mut self, filled: &Entry) {
        let op_id = filled.commit.op_id;
        let is_expected = self.wishes.front().is_some_and(|wish| wish.op_id == op_id);
        if !filled.follows(&self.head) || (self.rules.heeds_others && !is_expected) {
            self.is_over = true;
            return;
        }
        self.head = filled.head();
        if is_expected {
            self.wishes.pop_front();
            self.done.push(op_id);
        }
    }

    /// Stops.
    pub fn stop(&mut self) {
        self.is_over = true;
    }
}

#[cfg(test)]
mod tests {
    use model::testing::{commit, put};

    use super::*;

    fn entry(seq: u64, previous: EntryHash, op: u8) -> Entry {
        let op_id = OpId::from_bytes([op; 16]);
        Entry { seq, previous, commit: Commit { op_id, ..commit(op, vec![put(op, 0, "name")]) } }
    }

    fn hash(number: u8) -> EntryHash {
        entry(9, EntryHash::NONE, number).hash()
    }

    #[test]
    fn wishes_of_the_slot_are_filled_in_once_each() {
        let own = entry(7, hash(1), 1);
        let mut helper = Helper::new(&own);
        for op in [2, 1, 3, 2] {
            helper.hear(&entry(7, hash(1), op));
        }
        // Neither an earlier slot nor another history.
        helper.hear(&entry(6, hash(1), 4));
        helper.hear(&entry(7, hash(2), 5));
        let mut head = own.head();
        for op in [2, 3] {
            let next = helper.next().expect("a wish");
            assert!(next.follows(&head) && next.commit.op_id == OpId::from_bytes([op; 16]));
            head = next.head();
            helper.take(&next);
            helper.hear(&entry(7, hash(1), op));
        }
        assert_eq!(helper.next(), None);
    }

    #[test]
    fn helper_ends_where_somebody_else_was_quicker() {
        let own = entry(7, hash(1), 1);
        let mut helper = Helper::new(&own);
        helper.hear(&entry(7, hash(1), 2));
        helper.take(&entry(8, own.hash(), 9));
        assert_eq!(helper.next(), None);
    }
}
