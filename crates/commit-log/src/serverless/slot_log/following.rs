//! How long and how often whoever has lost a slot looks whether another has filled it, or the next ones.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, Either, FutureExt, select};
use futures_util::stream::{FuturesOrdered, StreamExt};
use model::{Head, OpId};

use super::Means;
use super::deliberation::Failure;
use super::slots::Slots;
use crate::commit_log::CommitLogError;
use crate::serverless::candidate::Candidate;
use crate::serverless::group::Group;
use crate::serverless::rounds::{Proposer, Status, Value};

/// How many may leave a wish for one slot.
pub(super) const WISHES_MAX: u32 = 8;

/// The pause between two looks, and how long somebody is followed who does not fill the slot; by how long it took to lose it.
const TICK_MIN: Duration = Duration::from_millis(5);
const TICK_MAX: Duration = Duration::from_millis(100);
const PATIENCE_MIN: Duration = Duration::from_millis(100);
const PATIENCE_MAX: Duration = Duration::from_secs(10);

/// How many slots are looked at at once behind one that was lost, and how many the others may fill before one proposes
/// again by oneself.
const SLOTS_AT_ONCE: u64 = 4;
const SLOTS_MAX: u64 = 12;

/// A proposer that follows.
#[derive(Debug)]
pub(super) struct Following {
    pub(super) tick: Duration,
    until: Duration,
}

impl Following {
    /// Plans for a round that was lost after `taken`: the led one takes two or three times as long, and those who wait in vain
    /// go on at different times.
    pub(super) fn begin(means: &Means, taken: Duration) -> Self {
        let tick = (taken / 8).clamp(TICK_MIN, TICK_MAX);
        let patience = (taken * 4).clamp(PATIENCE_MIN, PATIENCE_MAX);
        let until = means.clock.elapsed() + patience + patience.mul_f64(means.share());
        Self { tick, until }
    }

    /// Follows until nobody wants to know any more.
    pub(super) fn watch() -> Self {
        Self { tick: TICK_MAX, until: Duration::MAX }
    }

    pub(super) fn is_over(&self, means: &Means) -> bool {
        means.clock.elapsed() >= self.until
    }
}

/// Returns what is to be wished by a proposer that has no vote: not where it looks as if the slot was the owner's, or was
/// filled long ago by one who had no rivals.
pub(super) fn wish(proposer: &Proposer<Candidate>) -> Option<&Candidate> {
    let own = proposer.own().filter(|_| !proposer.has_vote())?;
    match proposer.status() {
        Status::Decided(value) => {
            let is_own = value.entry().commit.op_id == own.entry().commit.op_id;
            let is_contested = !value.is_owners() && proposer.has_seen_contest();
            Some(own).filter(|_| is_contested && !is_own)
        }
        _ => {
            let has_votes = proposer.votes().next().is_some();
            Some(own).filter(|_| has_votes && !proposer.votes().any(Value::is_owners))
        }
    }
}

impl Slots {
    /// Looks for a while whether whoever has filled the slot of `head` fills the next ones for others. Returns the last entry
    /// that is in the log, and whether it is of this operation.
    pub(super) async fn follow_owner(
        &self,
        winner: &Candidate,
        taken: Duration,
        op_id: &OpId,
    ) -> Result<(Head, bool), CommitLogError> {
        let mut head = winner.entry().head();
        let patience = taken.clamp(PATIENCE_MIN, PATIENCE_MAX);
        let patience = patience + patience.mul_f64(self.means.share());
        let group = self.group(head.seq + 1)?;
        let last = head.seq + SLOTS_MAX;
        let mut ahead: FuturesOrdered<BoxFuture<'_, Option<Candidate>>> = FuturesOrdered::new();
        let mut next = head.seq + 1;
        loop {
            while next <= last.min(head.seq + SLOTS_AT_ONCE) {
                ahead.push_back(self.watch_slot(group.clone(), next).boxed());
                next += 1;
            }
            let limit = self.means.clock.sleep(patience);
            let candidate = match self.background.beside(select(ahead.next(), limit)).await {
                Either::Left((Some(Some(candidate)), _)) => candidate,
                Either::Left(_) | Either::Right(_) => return Ok((head, false)),
            };
            if !candidate.entry().follows(&head) {
                return Ok((head, false));
            }
            head = candidate.entry().head();
            self.remember(head);
            self.membership.learn(candidate.entry());
            if candidate.entry().commit.op_id == *op_id {
                return Ok((head, true));
            }
            if candidate.session() != winner.session() {
                return Ok((head, false));
            }
            let is_same = |later: Arc<Group>| Arc::ptr_eq(&later, &group);
            if !self.group(head.seq + 1).is_ok_and(is_same) {
                return Ok((head, false));
            }
        }
    }

    /// Looks at a slot until it is filled.
    async fn watch_slot(&self, group: Arc<Group>, slot: u64) -> Option<Candidate> {
        let mut proposer = Proposer::follow(*group.quorums(), self.means.new_id());
        let mut failures: Vec<Option<Failure>> = group.stores().iter().map(|_| None).collect();
        let mut deliberation = self.deliberation(&group, slot);
        deliberation.watching = true;
        match deliberation.run(&mut proposer, &mut failures).await {
            Status::Decided(candidate) => Some(candidate),
            _ => None,
        }
    }
}
