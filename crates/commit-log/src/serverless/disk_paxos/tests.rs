use std::collections::BTreeMap;

use super::super::rounds::FaultModel;
use super::*;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Word(usize);

impl Value for Word {
    fn is_owners(&self) -> bool {
        false
    }
}

type Blocks = BTreeMap<(usize, usize), Block<Word>>;

fn paxos(client: usize, clients: usize) -> DiskPaxos<Word> {
    DiskPaxos::propose(Quorums::new(3, FaultModel::Crash), client, clients, Word(client))
}

/// Answers everything truthfully; returns how many requests it took.
fn run(blocks: &mut Blocks, client: usize, machine: &mut DiskPaxos<Word>) -> usize {
    let mut count = 0;
    loop {
        let requests = machine.requests();
        if requests.is_empty() {
            return count;
        }
        for (store, request) in requests {
            count += 1;
            let answer = match request {
                BlockRequest::Write(block) => {
                    blocks.insert((store, client), block);
                    BlockAnswer::Written
                }
                BlockRequest::Read(other) => {
                    BlockAnswer::Read(blocks.get(&(store, other)).cloned())
                }
            };
            machine.answer(store, answer);
        }
    }
}

#[test]
fn cost_grows_with_the_clients() {
    let mut counts = Vec::new();
    for clients in [1, 2, 5] {
        let mut machine = paxos(0, clients);
        counts.push(run(&mut Blocks::new(), 0, &mut machine));
        assert_eq!(machine.status(), Status::Decided(Word(0)));
    }
    assert!(counts[0] < counts[1] && counts[1] < counts[2], "{counts:?}");
}

#[test]
fn second_client_ends_with_the_first_value() {
    let mut blocks = Blocks::new();
    run(&mut blocks, 0, &mut paxos(0, 2));
    let mut second = paxos(1, 2);
    loop {
        run(&mut blocks, 1, &mut second);
        match second.status() {
            Status::Outbid => second.begin_round(),
            status => break assert_eq!(status, Status::Decided(Word(0))),
        }
    }
}
