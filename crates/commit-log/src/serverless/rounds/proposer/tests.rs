use std::collections::BTreeMap;

use super::super::FaultModel;
use super::*;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct Word(&'static str, bool);

impl Value for Word {
    fn is_owners(&self) -> bool {
        self.1
    }
}

pub(in super::super) const MINE: Word = Word("mine", true);
pub(in super::super) const YOURS: Word = Word("yours", false);

/// Stores in memory; those in `down` never answer.
#[derive(Debug, Default)]
pub(in super::super) struct Stores {
    pub(in super::super) places: BTreeMap<(usize, usize), Message<Word>>,
    pub(in super::super) down: Vec<usize>,
    requests: usize,
}

impl Stores {
    pub(in super::super) fn ask(&mut self, request: &Request<Word>) -> Answer<Word> {
        self.requests += 1;
        let place = (request.store, request.place);
        if self.down.contains(&request.store) {
            return Answer::Failed;
        }
        match (&request.put, self.places.get(&place)) {
            (Some(_), Some(_)) => Answer::Exists,
            (Some(message), None) => {
                self.places.insert(place, message.clone());
                Answer::Written
            }
            (None, Some(message)) => Answer::Found(message.clone()),
            (None, None) => Answer::Absent,
        }
    }

    /// Answers everything; returns how many round trips it took.
    fn run(&mut self, proposer: &mut Proposer<Word>) -> usize {
        for trips in 0.. {
            let requests = proposer.requests();
            if requests.is_empty() {
                return trips;
            }
            for request in requests {
                let answer = self.ask(&request);
                proposer.answer(&request, answer);
            }
        }
        0
    }
}

fn crash(stores: usize) -> Quorums {
    Quorums::new(stores, FaultModel::Crash)
}

fn propose(stores: usize, id: u128, own: Word) -> Proposer<Word> {
    Proposer::propose(crash(stores), ProposerId(id), own, true)
}

#[test]
fn owner_needs_one_round_trip_and_nothing_but_puts() {
    for count in 1..6 {
        let mut stores = Stores::default();
        let mut proposer = propose(count, 1, MINE);
        assert_eq!(stores.run(&mut proposer), 1);
        assert_eq!(proposer.status(), Status::Decided(MINE));
        assert!(stores.requests <= count, "{} requests of {count} stores", stores.requests);
    }
}

#[test]
fn owner_wins_beside_failed_stores_and_another_falls_back_to_a_classic_round() {
    for (own, trips) in [(MINE, 1), (YOURS, 3)] {
        let mut stores = Stores { down: vec![2], ..Stores::default() };
        let mut proposer = propose(3, 1, own);
        assert_eq!(stores.run(&mut proposer), trips);
        assert_eq!(proposer.status(), Status::Decided(own));
    }
}

#[test]
fn too_few_stores_are_named_and_can_be_asked_again() {
    let mut stores = Stores { down: vec![0, 2], ..Stores::default() };
    let mut proposer = propose(3, 1, MINE);
    stores.run(&mut proposer);
    assert_eq!(proposer.status(), Status::TooFew);
    assert_eq!(proposer.failed_stores().collect::<Vec<_>>(), [0, 2]);
    stores.down.clear();
    proposer.retry();
    stores.run(&mut proposer);
    assert_eq!(proposer.status(), Status::Decided(MINE));
}

#[test]
fn loser_learns_the_winner_without_disturbing_it() {
    let mut stores = Stores::default();
    stores.run(&mut propose(3, 1, MINE));
    let mut loser = propose(3, 2, YOURS);
    assert_eq!(stores.run(&mut loser), 2);
    assert_eq!(loser.status(), Status::Decided(MINE));
    assert!(!stores.places.values().any(|message| matches!(message, Message::Prepare(_))));
}

#[test]
fn split_vote_is_settled_by_a_classic_round() {
    let mut stores = Stores::default();
    stores.places.insert((0, 0), Message::Vote(Word("third", false)));
    let mut proposer = propose(3, 1, YOURS);
    assert_eq!(stores.run(&mut proposer), 4, "vote, read, prepare, accept");
    assert_eq!(proposer.status(), Status::Decided(YOURS));
    let mut reader = Proposer::read(crash(3), ProposerId(2));
    stores.run(&mut reader);
    assert_eq!(reader.status(), Status::Decided(YOURS));
}

#[test]
fn reader_tells_nothing_from_perhaps_and_finishes_what_may_be_decided() {
    let mut stores = Stores { down: vec![1], ..Stores::default() };
    let mut reader = Proposer::read(crash(3), ProposerId(2));
    stores.run(&mut reader);
    assert_eq!(reader.status(), Status::Undecided);
    // The owner's vote at one store: the silent one may have it, too.
    stores.places.insert((0, 0), Message::Vote(MINE));
    let mut reader = Proposer::read(crash(3), ProposerId(3));
    stores.run(&mut reader);
    assert_eq!(reader.status(), Status::Open);
    reader.begin_round();
    stores.run(&mut reader);
    assert_eq!(reader.status(), Status::Decided(MINE));
    // Another's needs all three, and one is empty.
    let mut stores = Stores::default();
    stores.places.insert((0, 0), Message::Vote(YOURS));
    let mut reader = Proposer::read(crash(3), ProposerId(4));
    stores.run(&mut reader);
    assert_eq!(reader.status(), Status::Undecided);
}

#[test]
fn own_message_whose_answer_was_lost_is_recognised() {
    let mut stores = Stores::default();
    let mut proposer = propose(1, 1, MINE);
    let request = proposer.requests().remove(0);
    stores.ask(&request);
    proposer.answer(&request, Answer::Failed);
    assert_eq!(proposer.status(), Status::TooFew);
    proposer.retry();
    stores.run(&mut proposer);
    assert_eq!(proposer.status(), Status::Decided(MINE));
}

#[test]
fn newer_round_is_heeded() {
    let mut stores = Stores::default();
    let newer = Round { counter: 7, proposer: ProposerId(9) };
    for store in 0..3 {
        stores.places.insert((store, 0), Message::Prepare(newer));
    }
    let mut proposer = Proposer::propose(crash(3), ProposerId(1), YOURS, false);
    stores.run(&mut proposer);
    assert_eq!(proposer.status(), Status::Outbid);
    proposer.begin_round();
    stores.run(&mut proposer);
    assert_eq!(proposer.status(), Status::Decided(YOURS));
    assert!(stores.places.values().any(|m| matches!(m, Message::Prepare(r) if r.counter == 8)));
}

#[test]
fn decided_value_is_completed_where_it_is_missing() {
    let mut stores = Stores { down: vec![2], ..Stores::default() };
    let mut proposer = propose(3, 1, YOURS);
    stores.run(&mut proposer);
    stores.down.clear();
    proposer.retry();
    let completions = proposer.completions(&YOURS);
    assert_eq!(completions.len(), 3);
    for request in completions {
        assert_eq!(stores.ask(&request), Answer::Written);
    }
    stores.down = vec![0, 1];
    let mut reader = Proposer::read(crash(3), ProposerId(2));
    stores.run(&mut reader);
    assert_eq!(reader.status(), Status::Decided(YOURS), "one store tells");
}

#[test]
fn settled_slot_is_filled_with_what_was_left_and_never_with_what_was_voted() {
    let mut stores = Stores::default();
    for store in 0..3 {
        stores.places.insert((store, 0), Message::Vote(YOURS));
    }
    let read = |stores: &mut Stores| {
        let mut reader = Proposer::read_settled(crash(3), ProposerId(1));
        stores.run(&mut reader);
        reader.status()
    };
    assert_eq!(read(&mut stores), Status::Undecided, "a majority has no decision");
    stores.down = vec![0, 1];
    assert_eq!(read(&mut stores), Status::TooFew);
    stores.places.insert((2, 1), Message::Decided(MINE));
    assert_eq!(read(&mut stores), Status::Decided(MINE), "one store that was told is enough");
}
