//! What is decided, by somebody who sees everything: the specification, not the code of the room.

use std::collections::{BTreeMap, BTreeSet};

use commit_log::serverless::rounds::{Message, Quorums, Round, Value};

/// A value of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Proposal {
    /// Which client.
    pub client: u8,
    /// In which of its lives.
    pub life: u8,
    /// Whether it was the owner's.
    pub is_owners: bool,
}

impl Value for Proposal {
    fn is_owners(&self) -> bool {
        self.is_owners
    }
}

/// The list of a store; a hole only where a mutant makes one.
pub(crate) type List = Vec<Option<Message<Proposal>>>;

/// Returns every value that is decided now.
pub(crate) fn decided(quorums: &Quorums, lists: &[List]) -> BTreeSet<Proposal> {
    let mut votes: BTreeMap<Proposal, usize> = BTreeMap::new();
    let mut accepted: BTreeMap<(Round, Proposal), usize> = BTreeMap::new();
    for list in lists {
        if let Some(Some(Message::Vote(value))) = list.first() {
            *votes.entry(*value).or_default() += 1;
        }
        let of_store: BTreeSet<(Round, Proposal)> = acceptances(list).into_iter().collect();
        for acceptance in of_store {
            *accepted.entry(acceptance).or_default() += 1;
        }
    }
    let fast = votes.into_iter().filter(|(value, count)| {
        quorums
            .fast
            .is_some_and(|fast| *count >= if value.is_owners { fast.owner } else { fast.other })
    });
    let classic = accepted.into_iter().filter(|(_, count)| *count >= quorums.classic);
    fast.map(|(value, _)| value).chain(classic.map(|((_, value), _)| value)).collect()
}

fn acceptances(list: &List) -> Vec<(Round, Proposal)> {
    let mut promise = None;
    let mut accepted = Vec::new();
    for message in list.iter().map_while(Option::as_ref) {
        match message {
            Message::Prepare(round) => promise = promise.max(Some(*round)),
            Message::Accept(round, value) if Some(*round) >= promise => {
                promise = Some(*round);
                accepted.push((*round, *value));
            }
            Message::Vote(_) | Message::Accept(..) | Message::Decided(_) | Message::Noise => {}
        }
    }
    accepted
}
