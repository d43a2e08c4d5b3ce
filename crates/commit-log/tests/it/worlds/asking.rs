//! What a store does that is asked for a place of its list, and a client that asks without any other beside it.

use commit_log::serverless::rounds::{Answer, Proposer, Request, Status};

use super::truth::{List, Proposal};

/// How many rounds a client without rivals may need.
const ROUNDS_MAX: usize = 6;

/// Puts a message where nothing is yet, or reads what is there.
pub(crate) fn perform(list: &mut List, request: &Request<Proposal>) -> Answer<Proposal> {
    match (&request.put, list.get(request.place).cloned().flatten()) {
        (Some(_), Some(_)) => Answer::Exists,
        (Some(message), None) => {
            if list.len() <= request.place {
                list.resize(request.place + 1, None);
            }
            list[request.place] = Some(message.clone());
            Answer::Written
        }
        (None, Some(message)) => Answer::Found(message),
        (None, None) => Answer::Absent,
    }
}

/// Lets a client go on by itself, round after round, and returns what it knows in the end.
pub(crate) fn go_on_alone(
    mut machine: Proposer<Proposal>,
    mut ask: impl FnMut(&Request<Proposal>) -> Answer<Proposal>,
) -> Status<Proposal> {
    for _ in 0..ROUNDS_MAX {
        loop {
            let requests = machine.requests();
            if requests.is_empty() {
                break;
            }
            for request in requests {
                let answer = ask(&request);
                machine.answer(&request, answer);
            }
        }
        match machine.status() {
            Status::Open | Status::Following | Status::Outbid => machine.begin_round(),
            status => return status,
        }
    }
    machine.status()
}
