//! Carries the slots of a log over to the stores that will be responsible, so that whoever knows only them can read it all.
//!
//! *Invariant*: a slot counts as carried over once a majority of these stores holds a decided message for it. To begin
//! anew, or to do it on two devices at once, does no harm.

use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::stream::{FuturesUnordered, StreamExt};
use model::Entry;

use super::SlotCommitLog;
use super::checkpoints;
use super::deliberation::Failure;
use super::slots::Slots;
use crate::commit_log::CommitLogError;
use crate::serverless::candidate::Candidate;
use crate::serverless::group::Group;
use crate::serverless::rounds::{Carrier, ProposerId};

/// How many slots are carried at once.
const SLOTS_AT_ONCE: usize = 16;

impl SlotCommitLog {
    /// Carries all slots behind `after` up to `until`, or to the end of the log, over to a majority of the stores of a group at
    /// least, and the newest checkpoint. Returns the last slot that was carried.
    ///
    /// # Errors
    /// [`CommitLogError`]; those of too few stores name them. To do it again goes on.
    pub async fn carry_over(
        &self,
        heirs: &Group,
        after: u64,
        until: u64,
    ) -> Result<u64, CommitLogError> {
        let slots = &self.slots;
        slots.catch_up(after).await?;
        // A store that does not answer is not waited for again and again.
        let given_up: Vec<AtomicBool> = heirs.stores().iter().map(|_| false.into()).collect();
        let mut walk = slots.walk(after, None);
        let mut under_way = FuturesUnordered::new();
        let mut last = after;
        let mut is_at_end = false;
        loop {
            while !is_at_end && last < until && under_way.len() < SLOTS_AT_ONCE {
                match walk.next().await? {
                    Some(entry) => {
                        last = entry.seq;
                        under_way.push(carry(slots, heirs, &given_up, entry));
                    }
                    None => is_at_end = true,
                }
            }
            match under_way.next().await {
                Some(carried) => carried?,
                None => break,
            }
        }
        if let Some(checkpoint) = checkpoints::newest(slots, &*slots.newest_group()?).await? {
            checkpoints::publish(slots, heirs, &checkpoint).await?;
        }
        Ok(last)
    }
}

async fn carry(
    slots: &Slots,
    heirs: &Group,
    given_up: &[AtomicBool],
    entry: Entry,
) -> Result<(), CommitLogError> {
    let slot = entry.seq;
    let deciders = slots.readers_group(slot)?.0;
    let is_decider = |name: &str| deciders.stores().iter().any(|store| store.name == name);
    let has_lists: Vec<bool> = heirs.stores().iter().map(|store| is_decider(&store.name)).collect();
    // Who has proposed it matters only to those who still agree on it, and it is decided.
    let mut carrier = Carrier::new(Candidate::new(entry, ProposerId(0), false), &has_lists);
    let mut failures: Vec<Option<Failure>> = heirs.stores().iter().map(|_| None).collect();
    for (store, is_given_up) in given_up.iter().enumerate() {
        if is_given_up.load(Ordering::Relaxed) {
            failures[store] = Some(Failure::Slow);
            carrier.leave_out(store);
        }
    }
    slots.deliberation(heirs, slot).carry(&mut carrier, &mut failures).await;
    for (failure, given_up) in failures.iter().zip(given_up) {
        given_up.fetch_or(failure.is_some(), Ordering::Relaxed);
    }
    match carrier.done() >= heirs.quorums().classic {
        true => Ok(()),
        false => Err(Slots::too_few(heirs, slot, failures)),
    }
}
