//! What follows from the lists as far as they are known.

use super::{Acceptor, Quorums, Round, Rules, Value};

/// What is known of one store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known<V> {
    /// The state that follows from the part of the list that was read.
    pub acceptor: Acceptor<V>,
    /// Whether place 0 was read and holds something: then the vote, or its absence, is final.
    pub is_vote_final: bool,
    /// Whether the list was read to its end, as it was after this proposer began.
    pub is_whole: bool,
}

/// Whether the slot is filled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict<V> {
    /// By this value, for ever.
    Decided(V),
    /// By nothing when the reading began, for sure.
    Undecided,
    /// Perhaps: too little is known.
    Open,
}

/// What a classic round must propose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice<V> {
    /// This value, which may be decided.
    Bound(V),
    /// Anything: nothing older is or can become decided.
    Free,
    /// More stores must be read first: two fast values may be decided.
    Ambiguous,
}

/// Tells whether the slot is filled.
pub fn verdict<V: Value>(quorums: &Quorums, stores: &[Known<V>]) -> Verdict<V> {
    if let Some(value) = decided(quorums, stores) {
        return Verdict::Decided(value);
    }
    let unread = stores.iter().filter(|store| !store.is_whole).count();
    let hidden = unread + quorums.liars;
    let may_be_classic = hidden >= quorums.classic
        || accepted(stores).any(|(round, _)| count(stores, *round) + hidden >= quorums.classic);
    let unvoted = stores.iter().filter(|store| !store.is_vote_final && !store.is_whole).count();
    let any_fast = quorums.fast.is_some_and(|fast| unvoted >= fast.owner.min(fast.other));
    if may_be_classic || any_fast || candidates(quorums, stores, unvoted).next().is_some() {
        return Verdict::Open;
    }
    Verdict::Undecided
}

/// Tells whether a slot that another group has filled shows its value here. Votes and acceptances were counted among other
/// stores: a minority of those may be a majority of these, so here they say nothing.
pub fn settled<V: Value>(quorums: &Quorums, stores: &[Known<V>]) -> Verdict<V> {
    if let Some(value) = stores.iter().find_map(|store| store.acceptor.decided.clone()) {
        return Verdict::Decided(value);
    }
    let read = stores.iter().filter(|store| store.is_whole).count();
    if read >= quorums.classic + quorums.liars { Verdict::Undecided } else { Verdict::Open }
}

/// Returns the value that the stores show to be decided.
fn decided<V: Value>(quorums: &Quorums, stores: &[Known<V>]) -> Option<V> {
    let told = stores.iter().find_map(|store| store.acceptor.decided.clone());
    told.or_else(|| candidates(quorums, stores, 0).next()).or_else(|| {
        let classic = accepted(stores).find(|(round, _)| count(stores, *round) >= quorums.classic);
        classic.map(|(_, value)| value.clone())
    })
}

/// Returns the fast values that so many further votes could decide.
fn candidates<'a, V: Value>(
    quorums: &'a Quorums,
    stores: &'a [Known<V>],
    further: usize,
) -> impl Iterator<Item = V> + 'a {
    let votes = stores.iter().filter_map(|store| store.acceptor.vote.as_ref());
    let first = votes
        .clone()
        .enumerate()
        .filter(move |(index, value)| !votes.clone().take(*index).any(|earlier| earlier == *value));
    first.map(|(_, value)| value.clone()).filter(move |value| {
        let votes = stores.iter().filter(|store| store.acceptor.vote.as_ref() == Some(value));
        let needed = quorums.fast_for(value.is_owners());
        needed.is_some_and(|needed| votes.count() + further >= needed)
    })
}

fn accepted<V>(stores: &[Known<V>]) -> impl Iterator<Item = &(Round, V)> {
    stores.iter().flat_map(|store| &store.acceptor.accepted)
}

fn count<V: Value>(stores: &[Known<V>], round: Round) -> usize {
    stores.iter().filter(|store| store.acceptor.has_accepted(round)).count()
}

/// Chooses for a round, after a quorum has promised it. `promised` tells which stores did, with everything before their
/// promise read.
pub fn choose<V: Value>(
    quorums: &Quorums,
    stores: &[Known<V>],
    promised: &[bool],
    rules: Rules,
) -> Choice<V> {
    let silent = Known { acceptor: Acceptor::default(), is_vote_final: false, is_whole: false };
    // What other stores show is left aside: whoever counts only on the quorum survives a store that forgets.
    let seen: Vec<Known<V>> = stores
        .iter()
        .zip(promised)
        .map(|(store, promised)| if *promised { store.clone() } else { silent.clone() })
        .collect();
    let binding = match rules.takes_newest {
        true => accepted(&seen).max_by_key(|(round, _)| *round),
        false => accepted(&seen).min_by_key(|(round, _)| *round),
    };
    if let Some((_, value)) = binding {
        return Choice::Bound(value.clone());
    }
    if !rules.heeds_fast_votes {
        return Choice::Free;
    }
    let unvoted = promised.iter().filter(|promised| !**promised).count();
    let any_fast = quorums.fast.is_some_and(|fast| unvoted >= fast.owner.min(fast.other));
    let mut candidates = candidates(quorums, &seen, unvoted);
    match (candidates.next(), candidates.next()) {
        (None, _) if !any_fast => Choice::Free,
        (Some(value), None) if !any_fast => Choice::Bound(value),
        _ => Choice::Ambiguous,
    }
}
