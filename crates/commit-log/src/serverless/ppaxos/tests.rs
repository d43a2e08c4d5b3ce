use super::super::rounds::FaultModel;
use super::*;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Word(u8);

impl Value for Word {
    fn is_owners(&self) -> bool {
        false
    }
}

fn paxos(id: u8, skips_prepare: bool) -> PassivePaxos<Word> {
    let quorums = Quorums::new(3, FaultModel::Crash);
    PassivePaxos::propose(quorums, ProposerId(id.into()), Word(id), skips_prepare)
}

/// Answers everything truthfully; returns how many round trips it took.
fn run(lists: &mut [Vec<Message<Word>>; 3], machine: &mut PassivePaxos<Word>) -> usize {
    for trips in 0.. {
        let requests = machine.requests();
        if requests.is_empty() {
            return trips;
        }
        for (store, request) in requests {
            let answer = match request {
                ListRequest::Append(message) => {
                    lists[store].push(message);
                    ListAnswer::Appended
                }
                ListRequest::Fetch(from) => ListAnswer::Fetched(lists[store][from..].to_vec()),
            };
            machine.answer(store, answer);
        }
    }
    0
}

#[test]
fn proposal_takes_four_round_trips_and_two_for_the_leader() {
    for (skips_prepare, trips) in [(false, 4), (true, 2)] {
        let mut machine = paxos(1, skips_prepare);
        assert_eq!(run(&mut Default::default(), &mut machine), trips);
        assert_eq!(machine.status(), Status::Decided(Word(1)));
    }
}

#[test]
fn second_proposer_ends_with_the_first_value() {
    let mut lists = Default::default();
    run(&mut lists, &mut paxos(1, true));
    let mut second = paxos(2, false);
    run(&mut lists, &mut second);
    assert_eq!(second.status(), Status::Decided(Word(1)));
}

#[test]
fn newer_round_ends_an_older_one() {
    let mut lists: [Vec<Message<Word>>; 3] = Default::default();
    let newer = Round { counter: 5, proposer: ProposerId(9) };
    for list in &mut lists {
        list.push(Message::Prepare(newer));
    }
    let mut machine = paxos(1, false);
    run(&mut lists, &mut machine);
    assert_eq!(machine.status(), Status::Outbid);
    machine.begin_round();
    run(&mut lists, &mut machine);
    assert_eq!(machine.status(), Status::Decided(Word(1)));
}
