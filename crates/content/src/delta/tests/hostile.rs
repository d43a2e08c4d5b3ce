//! The other side sends what it likes.

use proptest::prelude::*;

use super::*;
use crate::delta::message::{
    DeltaMessage, Literals, MESSAGE_LENGTH_MAX, MatchRun, Recipe, RecipeStep, SessionSums,
    WholeFile,
};
use crate::delta::sums::{BlockSums, Fingerprinter, Strength};

/// Answers of the server to a client's first messages, to be damaged.
fn messages() -> Vec<Vec<u8>> {
    let (old, new) = (random_bytes(1, 30_000), random_bytes(2, 9000));
    let new = spliced(&old, 10_000, 4000, &new);
    let (_, open) = RsyncClient::begin(plain(), session(1), Tuning::Plus);
    let (_, sums) = RsyncServer::begin(plain(), &open, &mut &old[..], SIZE_MAX).unwrap();
    let (mut client, new_sums) =
        ReverseClient::begin(plain(), session(1), Tuning::Plus, &mut &new[..]).unwrap();
    let (_, matches) = ReverseServer::begin(plain(), &new_sums, &mut &old[..], SIZE_MAX).unwrap();
    let mut messages = vec![open, sums.clone(), new_sums, matches.clone()];
    let mut keep = |message| {
        messages.push(message);
        Ok::<_, DeltaError>(())
    };
    client.take_matches(&matches, &mut &new[..], &mut keep).unwrap();
    let (mut client, _) = RsyncClient::begin(plain(), session(1), Tuning::Plus);
    client.take_sums(&sums, &mut &new[..], &mut keep).unwrap();
    messages
}

/// Gives a message to everybody, as if it were theirs; nobody may panic.
fn tell_everybody(message: &[u8]) {
    let (mut old, mut new) = (&random_bytes(1, 30_000)[..], &random_bytes(2, 9000)[..]);
    let _ = RsyncServer::begin(plain(), message, &mut old, SIZE_MAX);
    let _ = ReverseServer::begin(plain(), message, &mut old, SIZE_MAX);
    let (mut client, open) = RsyncClient::begin(plain(), session(1), Tuning::Plus);
    let (mut server, _) = RsyncServer::begin(plain(), &open, &mut old, 1 << 20).unwrap();
    let _ = server.take(message, &mut old, &mut Vec::new());
    let _ = client.take_sums(message, &mut new, |_| Ok::<_, DeltaError>(()));
    let _ = client.take_answer(message);
    let (mut client, sums) =
        ReverseClient::begin(plain(), session(1), Tuning::Plus, &mut new).unwrap();
    let (mut server, _) = ReverseServer::begin(plain(), &sums, &mut old, 1 << 20).unwrap();
    let _ = server.take(message, &mut old, &mut Vec::new());
    let _ = client.take_matches(message, &mut new, |_| Ok::<_, DeltaError>(()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn damaged_messages_give_errors_and_never_panics(
        which in 0_usize..6,
        place in any::<prop::sample::Index>(),
        bytes in prop::collection::vec(any::<u8>(), 0..12),
        removed in 0_usize..12,
    ) {
        let mut message = messages()[which].clone();
        let place = place.index(message.len());
        let removed = removed.min(message.len() - place);
        message.splice(place..place + removed, bytes);
        tell_everybody(&message);
    }

    #[test]
    fn noise_behind_a_header_gives_errors_and_never_panics(
        kind in 0_u8..14,
        bytes in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        tell_everybody(&[&[b'd', 1, kind][..], &bytes].concat());
        tell_everybody(&[&[b'd', 1, kind][..], &[1; 16], &bytes].concat());
    }

    #[test]
    fn message_that_decodes_encodes_to_the_same_bytes(
        kind in 0_u8..12,
        bytes in prop::collection::vec(prop_oneof![0_u8..4, any::<u8>()], 16..200),
    ) {
        let bytes = [&[b'd', 1, kind][..], &bytes].concat();
        if let Ok(message) = DeltaMessage::decode(&bytes) {
            prop_assert_eq!(message.encode(), bytes);
        }
    }
}

#[test]
fn all_messages_of_a_session_decode_to_what_was_encoded() {
    for bytes in messages() {
        assert_eq!(DeltaMessage::decode(&bytes).unwrap().encode(), bytes);
        for length in 0..bytes.len().min(100) {
            assert!(matches!(
                DeltaMessage::decode(&bytes[..length]),
                Err(DeltaError::Message { .. })
            ));
        }
    }
    let long = vec![0; MESSAGE_LENGTH_MAX + 1];
    assert!(matches!(DeltaMessage::decode(&long), Err(DeltaError::MessageLength { .. })));
}

#[test]
fn announced_lengths_are_not_believed() {
    // Sums of a file of 1 TiB, and no sums.
    let mut bytes = vec![b'd', 1, 1];
    bytes.extend([1; 16]);
    bytes.extend([0x80, 0x80, 0x80, 0x80, 0x80, 0x20, 23, 16]);
    let error = DeltaMessage::decode(&bytes).unwrap_err();
    assert!(matches!(error, DeltaError::Message { .. }), "{error}");
    // A literal of 4 GiB.
    let mut bytes = vec![b'd', 1, 2];
    bytes.extend([1; 16]);
    bytes.extend([0, 1, 0xfe, 0xff, 0xff, 0xff, 0x1f]);
    assert!(DeltaMessage::decode(&bytes).is_err());
}

fn recipe_server(size_max: u64) -> (RsyncServer, Vec<u8>) {
    let old = random_bytes(1, 30_000);
    let (_, open) = RsyncClient::begin(plain(), session(1), Tuning::Classic);
    let (server, _) = RsyncServer::begin(plain(), &open, &mut &old[..], size_max).unwrap();
    (server, old)
}

fn recipe(steps: Vec<RecipeStep>) -> Vec<u8> {
    let whole = Some(WholeFile { size: 0, hash: [0; 32] });
    DeltaMessage::Recipe(Recipe { session: session(1), steps, whole }).encode()
}

#[test]
fn blocks_that_the_old_version_does_not_have_are_refused() {
    for (block, count) in [(4, 1), (3, 2), (0, u32::MAX), (u32::MAX, 1)] {
        let (mut server, old) = recipe_server(SIZE_MAX);
        let message = recipe(vec![RecipeStep::Copy { block, count }]);
        let error = server.take(&message, &mut &old[..], &mut Vec::new()).unwrap_err();
        assert!(matches!(error, DeltaError::NoSuch { count: 4, .. }), "{error}");
    }
}

#[test]
fn small_message_cannot_make_a_version_larger_than_allowed() {
    let (mut server, old) = recipe_server(1_000_000);
    let message = recipe(vec![RecipeStep::Copy { block: 0, count: 4 }; 100_000]);
    let mut out = Vec::new();
    let error = server.take(&message, &mut &old[..], &mut out).unwrap_err();
    assert!(matches!(error, DeltaError::TooLarge { max: 1_000_000, .. }), "{error}");
    assert!(out.len() <= 1_000_000);
    let new = random_bytes(1, 2000);
    let (_, sums) = ReverseClient::begin(plain(), session(1), Tuning::Plus, &mut &new[..]).unwrap();
    let refused = ReverseServer::begin(plain(), &sums, &mut &old[..], 1999).err();
    assert!(matches!(refused, Some(DeltaError::TooLarge { size: 2000, max: 1999 })));
}

#[test]
fn old_version_that_is_exchanged_meanwhile_is_noticed() {
    let (mut server, old) = recipe_server(SIZE_MAX);
    let message = recipe(vec![RecipeStep::Copy { block: 0, count: 1 }]);
    let error = server.take(&message, &mut &old[1..], &mut Vec::new()).unwrap_err();
    assert!(matches!(error, DeltaError::WrongBase) && error.is_retryable());
}

#[test]
fn too_few_and_too_many_literals_are_refused() {
    let (mut old, new) = (&random_bytes(1, 30_000)[..], random_bytes(2, 9000));
    for (length, is_last) in [(8999, true), (9001, false)] {
        let (_, sums) =
            ReverseClient::begin(plain(), session(1), Tuning::Plus, &mut &new[..]).unwrap();
        let (mut server, _) = ReverseServer::begin(plain(), &sums, &mut old, SIZE_MAX).unwrap();
        let literals = Literals { session: session(1), is_last, bytes: vec![0; length] };
        let message = DeltaMessage::Literals(literals).encode();
        let error = server.take(&message, &mut old, &mut Vec::new()).unwrap_err();
        let actual = length as u64;
        let is_named =
            matches!(error, DeltaError::Length { expected: 9000, actual: a, .. } if a == actual);
        assert!(is_named, "{error}");
    }
}

#[test]
fn matches_of_other_blocks_are_refused() {
    let new = random_bytes(2, 9000);
    let (mut client, _) =
        ReverseClient::begin(plain(), session(1), Tuning::Plus, &mut &new[..]).unwrap();
    for count in [1, 3, u32::MAX] {
        let runs = vec![MatchRun { count, offset: None }];
        let message = DeltaMessage::Matches(session(1), runs).encode();
        let send = |_| -> Result<(), DeltaError> { panic!("nothing is sent") };
        let error = client.take_matches(&message, &mut &new[..], send).unwrap_err();
        assert!(matches!(error, DeltaError::Length { expected: 2, .. }), "{error}");
    }
}

#[test]
fn fingerprints_of_another_width_are_refused() {
    let old = random_bytes(1, 30_000);
    let (mut client, _) = RsyncClient::begin(plain(), session(1), Tuning::Plus);
    let fingerprinter = Fingerprinter::new(Strength::Strong, [1; 32]);
    let sums = BlockSums::read(&mut &old[..], &fingerprinter, |_| ()).unwrap();
    let message = DeltaMessage::OldSums(session(1), SessionSums { width: 16, sums }).encode();
    let error = client.take_sums(&message, &mut &old[..], |_| Ok::<_, DeltaError>(())).unwrap_err();
    assert!(matches!(error, DeltaError::Length { expected: 8, actual: 16, .. }), "{error}");
}

#[test]
fn session_of_another_workspace_is_refused() {
    let elsewhere = Genesis { content_key: [8; 32], ..genesis(Mode::Plain) };
    let elsewhere = Plain::of(&elsewhere).unwrap();
    let mut old = &b"old"[..];
    let (_, open) = RsyncClient::begin(elsewhere, session(1), Tuning::Plus);
    let (_, sums) =
        ReverseClient::begin(elsewhere, session(1), Tuning::Plus, &mut &b"new"[..]).unwrap();
    let errors = [
        RsyncServer::begin(plain(), &open, &mut old, SIZE_MAX).err(),
        ReverseServer::begin(plain(), &sums, &mut old, SIZE_MAX).err(),
    ];
    for error in errors {
        assert!(matches!(error, Some(DeltaError::WrongWorkspace { .. })));
    }
}
