//! Both halves against each other.

use std::sync::atomic::{AtomicU64, Ordering};

use super::*;

/// Bytes that are the same in every run.
#[derive(Debug, Default)]
struct Numbers(AtomicU64);

impl Random for Numbers {
    fn fill(&self, bytes: &mut [u8]) {
        for piece in bytes.chunks_mut(8) {
            let number = self.0.fetch_add(1, Ordering::Relaxed) + 1;
            let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23);
            piece.copy_from_slice(&mixed.to_le_bytes()[..piece.len()]);
        }
    }
}

const PASSWORD: &str = "correct horse";

/// A sign-in with every message sent; returns what the client holds in the end.
fn sign_in(
    setup: &Setup,
    (account, record): (&str, Option<&Record>),
    password: &str,
    random: &Numbers,
) -> Result<ExportKey, PasswordError> {
    let (client, message) = Login::start(password, random)?;
    let (attempt, answer) = setup.begin_login((account, record), &message, random)?;
    let attempt = Attempt::from_bytes(&attempt.to_bytes())?;
    let (proof, key) = client.finish(&answer, random)?;
    attempt.finish(&proof)?;
    Ok(key)
}

#[test]
fn right_password_signs_in_and_gives_the_key_of_the_registration() {
    let random = Numbers::default();
    let setup = Setup::generate(&random);
    let (client, message) = Registration::start(PASSWORD, &random).unwrap();
    let answer = setup.begin_registration("ada", &message).unwrap();
    let (upload, key) = client.finish(&answer, &random).unwrap();
    let record = Record::from_upload(&upload).unwrap();
    // All of it outlives the program.
    let setup = Setup::from_bytes(&setup.to_bytes()).unwrap();
    let record = Record::from_bytes(&record.to_bytes()).unwrap();
    assert_eq!(sign_in(&setup, ("ada", Some(&record)), PASSWORD, &random), Ok(key.clone()));
    assert_eq!(sign_in(&setup, ("ada", Some(&record)), PASSWORD, &random), Ok(key));
    assert!(setup.verify(("ada", Some(&record)), PASSWORD, &random).unwrap());
}

#[test]
fn wrong_password_account_server_or_none_at_all_looks_alike_to_the_client() {
    let random = Numbers::default();
    let (setup, other) = (Setup::generate(&random), Setup::generate(&random));
    let record = setup.register("ada", PASSWORD, &random).unwrap();
    let wrong = Err(PasswordError::Wrong);
    let known = ("ada", Some(&record));
    assert_eq!(sign_in(&setup, known, "correct horsf", &random), wrong);
    assert_eq!(sign_in(&setup, ("bob", Some(&record)), PASSWORD, &random), wrong);
    assert_eq!(sign_in(&setup, ("ada", None), PASSWORD, &random), wrong);
    assert_eq!(sign_in(&other, known, PASSWORD, &random), wrong);
    assert_eq!(setup.verify(known, "correct horsf", &random), Ok(false));
    assert_eq!(setup.verify(("ada", None), PASSWORD, &random), Ok(false));
}

#[test]
fn who_is_unknown_is_answered_as_long_and_as_stably_as_who_is_known() {
    let random = Numbers::default();
    let setup = Setup::generate(&random);
    let record = setup.register("ada", PASSWORD, &random).unwrap();
    let (_, message) = Login::start(PASSWORD, &random).unwrap();
    let answer = |account| setup.begin_login(account, &message, &random).unwrap().1;
    let (known, unknown) = (answer(("ada", Some(&record))), answer(("nobody", None)));
    assert_eq!(known.len(), unknown.len());
    // The first 32 bytes are the evaluated element: a function of the account and the message alone.
    assert_eq!(known[..32], answer(("ada", Some(&record)))[..32]);
    assert_eq!(unknown[..32], answer(("nobody", None))[..32]);
}

#[test]
fn proof_of_one_attempt_ends_no_other() {
    let random = Numbers::default();
    let setup = Setup::generate(&random);
    let record = setup.register("ada", PASSWORD, &random).unwrap();
    let (client, message) = Login::start(PASSWORD, &random).unwrap();
    let begin = || setup.begin_login(("ada", Some(&record)), &message, &random).unwrap();
    let ((_, answer), (other, _)) = (begin(), begin());
    let (proof, _) = client.finish(&answer, &random).unwrap();
    assert_eq!(other.finish(&proof), Err(PasswordError::Wrong));
}

#[test]
fn password_is_in_no_message_and_in_no_debug_output() {
    let random = Numbers::default();
    let setup = Setup::generate(&random);
    let record = setup.register("ada", PASSWORD, &random).unwrap();
    let (client, first) = Login::start(PASSWORD, &random).unwrap();
    let (attempt, answer) = setup.begin_login(("ada", Some(&record)), &first, &random).unwrap();
    let shown = format!("{client:?} {attempt:?} {record:?} {setup:?}");
    assert!(!shown.contains("horse") && !shown.contains("99, 111, 114"), "{shown}");
    let (proof, _) = client.finish(&answer, &random).unwrap();
    for message in [&first, &answer, &proof, &record.to_bytes()] {
        assert!(!message.windows(5).any(|bytes| bytes == b"horse"));
    }
}

#[test]
fn damaged_messages_and_lengths_are_refused_and_nothing_panics() {
    let random = Numbers::default();
    let setup = Setup::generate(&random);
    let record = setup.register("ada", PASSWORD, &random).unwrap();
    for length in [0, PASSWORD_LENGTH_MAX + 1] {
        assert_eq!(Login::start(&"x".repeat(length), &random).err(), Some(PasswordError::Length));
        let started = Registration::start(&"x".repeat(length), &random);
        assert_eq!(started.err(), Some(PasswordError::Length));
    }
    let (_, message) = Login::start(PASSWORD, &random).unwrap();
    for length in 0..message.len() {
        let begun = setup.begin_login(("ada", Some(&record)), &message[..length], &random);
        assert_eq!(begun.err(), Some(PasswordError::Message));
    }
    let (_, answer) = setup.begin_login(("ada", Some(&record)), &message, &random).unwrap();
    for at in (0..answer.len()).step_by(37) {
        let (client, _) = Login::start(PASSWORD, &random).unwrap();
        let mut flipped = answer.clone();
        flipped[at] ^= 1;
        assert!(client.finish(&flipped, &random).is_err(), "byte {at}");
    }
    for bytes in [&[][..], &[0; 32], &[0xff; 192], &[0; 500]] {
        assert!(Setup::from_bytes(bytes).is_err());
        assert!(Record::from_upload(bytes).is_err());
    }
    assert!(Attempt::from_bytes(&[0; 32]).is_err());
}
