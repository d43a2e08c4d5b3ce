//! What a store would have promised and accepted, had it run the algorithm: a function of its list.

use super::{Message, Round, Rules};

/// The state of a store, computed from its list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acceptor<V> {
    /// The newest round that was announced.
    pub promise: Option<Round>,
    /// Its vote in the fast round.
    pub vote: Option<V>,
    /// Every round in which it accepted a value, in the order of the list.
    pub accepted: Vec<(Round, V)>,
    /// What somebody who knew has left here.
    pub decided: Option<V>,
}

impl<V> Default for Acceptor<V> {
    fn default() -> Self {
        Self { promise: None, vote: None, accepted: Vec::new(), decided: None }
    }
}

impl<V: Clone + PartialEq> Acceptor<V> {
    /// Takes note of the message at `place`.
    pub(super) fn take(&mut self, place: usize, message: &Message<V>, rules: Rules) {
        match message {
            Message::Vote(value) => {
                if place == 0 {
                    self.vote = Some(value.clone());
                }
            }
            Message::Prepare(round) => self.promise = self.promise.max(Some(*round)),
            Message::Accept(round, value) => {
                let is_kept = match rules.accepts_own_promise {
                    true => Some(*round) >= self.promise,
                    false => Some(*round) > self.promise,
                };
                if is_kept {
                    self.promise = Some(*round);
                    self.accepted.push((*round, value.clone()));
                }
            }
            Message::Decided(value) => self.decided = Some(value.clone()),
            Message::Noise => {}
        }
    }

    /// Tells whether it accepted a value in this round.
    pub fn has_accepted(&self, round: Round) -> bool {
        self.accepted.iter().any(|(accepted, _)| *accepted == round)
    }
}

/// Replays a list from its beginning.
pub fn replay<'a, V: Clone + PartialEq + 'a>(
    list: impl IntoIterator<Item = &'a Message<V>>,
    rules: Rules,
) -> Acceptor<V> {
    let mut acceptor = Acceptor::default();
    for (place, message) in list.into_iter().enumerate() {
        acceptor.take(place, message, rules);
    }
    acceptor
}
