use model::testing::{commit, put};

use super::*;

fn entry(seq: u64) -> Entry {
    Entry { seq, previous: EntryHash::NONE, commit: commit(1, vec![put(1, 0, "name")]) }
}

fn context(is_single: bool) -> Context<'static> {
    Context { workspace: WorkspaceId::from_bytes([5; 16]), slot: 3, certifier: None, is_single }
}

fn messages() -> Vec<Message<Candidate>> {
    let round = Round { counter: 7, proposer: ProposerId(u128::MAX - 1) };
    let candidate = Candidate::new(entry(3), ProposerId(9), true);
    vec![
        Message::Vote(candidate.clone()),
        Message::Prepare(round),
        Message::Accept(round, candidate.clone()),
        Message::Decided(candidate),
    ]
}

#[test]
fn messages_return_as_they_were() {
    for message in messages() {
        let bytes = context(false).encode(&message);
        assert_eq!(context(false).decode(&bytes), Ok(message));
    }
}

#[test]
fn slot_of_one_store_holds_the_entry_itself() {
    let vote = Message::Vote(Candidate::anonymous(entry(3)));
    let bytes = context(true).encode(&vote);
    assert_eq!(bytes, envelope::wrap_at_rest(&entry(3)));
    assert_eq!(context(false).decode(&bytes), Ok(vote), "a larger group reads it, too");
}

#[test]
fn message_of_another_slot_and_damage_are_refused() {
    let elsewhere = Context { slot: 4, ..context(false) };
    for message in messages() {
        let bytes = context(false).encode(&message);
        let is_bound = !matches!(message, Message::Prepare(_));
        assert_eq!(elsewhere.decode(&bytes).is_err(), is_bound);
        for at in 0..bytes.len() {
            let mut bent = bytes.to_vec();
            bent[at] ^= 1;
            assert!(context(false).decode(&bent).is_err(), "byte {at}");
            assert!(context(false).decode(&bytes[..at]).is_err(), "{at} bytes");
        }
    }
}

#[cfg(feature = "ed25519")]
#[test]
fn unsigned_and_foreign_messages_are_noise_among_liars() {
    use crate::serverless::certifier::Ed25519Certifier;
    let stranger = Ed25519Certifier::new(&[2; 32], Vec::new());
    let own = Ed25519Certifier::new(&[1; 32], Vec::new());
    let signed = |certifier| Context { certifier: Some(certifier), ..context(false) };
    for message in messages() {
        let bytes = signed(&own).encode(&message);
        assert_eq!(signed(&own).decode(&bytes), Ok(message.clone()));
        let elsewhere = Context { slot: 4, ..signed(&own) };
        assert_eq!(elsewhere.decode(&bytes), Ok(Message::Noise), "moved to another slot");
        assert_eq!(signed(&stranger).decode(&bytes), Ok(Message::Noise), "not one of the devices");
        let unsigned = context(false).encode(&message);
        assert_eq!(signed(&own).decode(&unsigned), Ok(Message::Noise));
    }
    let entry = envelope::wrap_at_rest(&entry(3));
    assert_eq!(signed(&own).decode(&entry), Ok(Message::Noise));
}
