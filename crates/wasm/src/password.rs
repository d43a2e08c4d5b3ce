//! Proves a password to a server without sending it, and sets another one so.

use passwords::{Login, PasswordError, Registration};
use wasm_bindgen::prelude::wasm_bindgen;

use crate::failure::Failure;
use crate::seeded::Seeded;

/// What the random bytes of a proof are for.
const CONTEXT: &str = "syncline 2026 password proof in a browser";

/// What the random bytes of a new password are for.
const NEW_CONTEXT: &str = "syncline 2026 new password in a browser";

/// One proof of a password, and another one that takes its place, if one is given.
#[wasm_bindgen]
pub struct PasswordProof {
    random: Seeded,
    old: Option<Login>,
    new: Option<Registration>,
    message: Vec<u8>,
    new_message: Option<Vec<u8>>,
}

#[wasm_bindgen]
impl PasswordProof {
    /// Begins. `seed` are 32 random bytes that nobody else knows, for this proof alone.
    ///
    /// # Errors
    /// `password` for one of no or too many bytes; `length` for another length of the seed.
    #[wasm_bindgen(constructor)]
    pub fn new(password: &str, new_password: Option<String>, seed: &[u8]) -> Result<Self, Failure> {
        let random = Seeded::new(CONTEXT, seed)?;
        let (old, message) = Login::start(password, &random)?;
        let (new, new_message) = match new_password {
            Some(new_password) => Some(Registration::start(&new_password, &random)?).unzip(),
            None => (None, None),
        };
        Ok(Self { random, old: Some(old), new, message, new_message })
    }

    /// Returns what to send; after [`Self::finish`] the proof.
    pub fn message(&self) -> Vec<u8> {
        self.message.clone()
    }

    /// Returns what to send about the new password, if there is one.
    #[wasm_bindgen(js_name = "newMessage")]
    pub fn new_message(&self) -> Option<Vec<u8>> {
        self.new_message.clone()
    }

    /// Takes what the server has answered to both. Takes as long as one Argon2id of 19 MiB, or two.
    ///
    /// # Errors
    /// `wrong_password`; `message` for what is no answer, or where this was done already.
    pub fn finish(&mut self, answer: &[u8], new_answer: Option<Vec<u8>>) -> Result<(), Failure> {
        let old = self.old.take().ok_or(PasswordError::Message)?;
        (self.message, _) = old.finish(answer, &self.random)?;
        if let Some(new) = self.new.take() {
            let answer = new_answer.ok_or(PasswordError::Message)?;
            self.new_message = Some(new.finish(&answer, &self.random)?.0);
        }
        Ok(())
    }
}

/// The password of an account that is about to be made.
#[wasm_bindgen]
pub struct NewPassword {
    random: Seeded,
    new: Option<Registration>,
    message: Vec<u8>,
}

#[wasm_bindgen]
impl NewPassword {
    /// Begins. `seed` are 32 random bytes that nobody else knows, for this password alone.
    ///
    /// # Errors
    /// `password` for one of no or too many bytes; `length` for another length of the seed.
    #[wasm_bindgen(constructor)]
    pub fn new(password: &str, seed: &[u8]) -> Result<Self, Failure> {
        let random = Seeded::new(NEW_CONTEXT, seed)?;
        let (new, message) = Registration::start(password, &random)?;
        Ok(Self { random, new: Some(new), message })
    }

    /// Returns what to send; after [`Self::finish`] what the server is to keep.
    pub fn message(&self) -> Vec<u8> {
        self.message.clone()
    }

    /// Takes what the server has answered. Takes as long as one Argon2id of 19 MiB.
    ///
    /// # Errors
    /// `message` for what is no answer, or where this was done already.
    pub fn finish(&mut self, answer: &[u8]) -> Result<(), Failure> {
        let new = self.new.take().ok_or(PasswordError::Message)?;
        (self.message, _) = new.finish(answer, &self.random)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use passwords::{Record, Setup};

    #[test]
    fn password_is_proved_and_changed_as_the_program_does_it() {
        let random = Seeded::new(CONTEXT, &[7; 32]).unwrap();
        let setup = Setup::generate(&random);
        let record = setup.register("ada", "old", &random).unwrap();
        let begin = |record: &Record, message: &[u8]| {
            setup.begin_login(("ada", Some(record)), message, &random).unwrap()
        };
        let mut proof = PasswordProof::new("old", Some("new".to_owned()), &[8; 32]).unwrap();
        let (attempt, answer) = begin(&record, &proof.message());
        let new_answer = setup.begin_registration("ada", &proof.new_message().unwrap()).unwrap();
        proof.finish(&answer, Some(new_answer)).unwrap();
        attempt.finish(&proof.message()).unwrap();
        let record = Record::from_upload(&proof.new_message().unwrap()).unwrap();
        assert_eq!(setup.verify(("ada", Some(&record)), "new", &random), Ok(true));
        assert_eq!(proof.finish(&answer, None).unwrap_err().code, "message");

        let mut wrong = PasswordProof::new("old", None, &[9; 32]).unwrap();
        let (_, answer) = begin(&record, &wrong.message());
        assert_eq!(wrong.finish(&answer, None).unwrap_err().code, "wrong_password");
        let no_seed = PasswordProof::new("old", None, &[9; 31]).err().unwrap();
        assert_eq!(no_seed.code, "length");
        assert_eq!(PasswordProof::new("", None, &[9; 32]).err().unwrap().code, "password");
    }

    #[test]
    fn password_of_a_new_account_is_set_as_the_program_does_it() {
        let random = Seeded::new(CONTEXT, &[7; 32]).unwrap();
        let setup = Setup::generate(&random);
        let mut new = NewPassword::new("a new one", &[8; 32]).unwrap();
        let answer = setup.begin_registration("eve", &new.message()).unwrap();
        new.finish(&answer).unwrap();
        let record = Record::from_upload(&new.message()).unwrap();
        for (password, fits) in [("a new one", true), ("another one", false)] {
            assert_eq!(setup.verify(("eve", Some(&record)), password, &random), Ok(fits));
        }
        assert_eq!(new.finish(&answer).unwrap_err().code, "message");
        let mut lied_to = NewPassword::new("a new one", &[8; 32]).unwrap();
        assert_eq!(lied_to.finish(&answer[1..]).unwrap_err().code, "message");
        assert_eq!(NewPassword::new("a", &[9; 31]).err().unwrap().code, "length");
        assert_eq!(NewPassword::new("", &[9; 32]).err().unwrap().code, "password");
    }
}
