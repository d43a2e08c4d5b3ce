//! Passwords at the server: proved without being sent (OPAQUE), or sent where somebody says so.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use passwords::{Login, PasswordError, Registration};
use reqwest::Method;
use serde::Deserialize;
use serde_json::json;

use super::account::PasswordChanged;
use super::{ServerClient, SignedIn};
use crate::error::{Code, CommandError, Result};
use crate::system::SystemRandom;

/// How an exchange has begun.
#[derive(Debug, Deserialize)]
struct Begun {
    message: String,
    session: String,
}

/// How a change of a password has begun.
#[derive(Debug, Deserialize)]
struct BegunChange {
    #[serde(flatten)]
    begun: Begun,
    new_message: String,
}

/// Returns what is said of a name or a password that is wrong.
pub(super) fn wrong() -> CommandError {
    CommandError::new(Code::WrongPassword, "the name or the password is wrong")
}

impl ServerClient {
    /// Signs a new device in without sending the password; with a code, where the account has a second factor.
    ///
    /// # Errors
    /// [`Code::WrongPassword`], [`Code::SecondFactorNeeded`] where the password is right and a code is wanted, and others.
    pub(crate) async fn login(
        &self,
        user: &str,
        password: &str,
        code: Option<&str>,
        device_name: &str,
    ) -> Result<SignedIn> {
        let (client, message) = Login::start(password, &SystemRandom).map_err(failed)?;
        let body = json!({ "user": user, "message": STANDARD.encode(message) });
        let begin = self.request(Method::POST, &["login", "begin"]).json(&body);
        let begun: Begun = self.ask(begin).await.map_err(|error| match error.code {
            Code::Invalid => error.help("--send-password", "sends it this once"),
            _ => error,
        })?;
        let answer = self.decode(&begun.message)?;
        let (proof, _) = client.finish(&answer, &SystemRandom).map_err(failed)?;
        let body = json!({
            "session": begun.session, "message": STANDARD.encode(proof), "code": code,
            "device_name": device_name,
        });
        self.ask(self.request(Method::POST, &["login", "finish"]).json(&body)).await
    }

    /// Signs a new device in by the password itself, which the server hears.
    ///
    /// # Errors
    /// As [`Self::login`].
    pub(crate) async fn login_by_sending(
        &self,
        user: &str,
        password: &str,
        code: Option<&str>,
        device_name: &str,
    ) -> Result<SignedIn> {
        let body = json!({
            "user": user, "password": password, "code": code, "device_name": device_name,
        });
        self.ask(self.request(Method::POST, &["login"]).json(&body)).await
    }

    /// Changes the password without sending it or the new one, and returns what ended by that.
    ///
    /// # Errors
    /// [`Code::WrongPassword`] and others.
    pub(crate) async fn change_password(
        &self,
        password: &str,
        new_password: &str,
        sign_out_others: bool,
    ) -> Result<PasswordChanged> {
        let (old, message) = Login::start(password, &SystemRandom).map_err(failed)?;
        let (new, new_message) =
            Registration::start(new_password, &SystemRandom).map_err(failed)?;
        let (message, new_message) = (STANDARD.encode(message), STANDARD.encode(new_message));
        let body = json!({ "message": message, "new_message": new_message });
        let begin = self.request(Method::POST, &["account", "password", "begin"]).json(&body);
        let begun: BegunChange = self.ask(begin).await?;
        let answer = self.decode(&begun.begun.message)?;
        let (proof, _) = old.finish(&answer, &SystemRandom).map_err(failed)?;
        let answer = self.decode(&begun.new_message)?;
        let (new, _) = new.finish(&answer, &SystemRandom).map_err(failed)?;
        let body = json!({
            "session": begun.begun.session, "message": STANDARD.encode(proof),
            "new_message": STANDARD.encode(new), "sign_out_others": sign_out_others,
        });
        self.ask(self.request(Method::POST, &["account", "password", "finish"]).json(&body)).await
    }

    fn decode(&self, text: &str) -> Result<Vec<u8>> {
        let decoded = STANDARD.decode(text);
        decoded.map_err(|_| self.nonsense("its message about the password is no base64".to_owned()))
    }
}

fn failed(error: PasswordError) -> CommandError {
    match error {
        PasswordError::Wrong => wrong(),
        error => CommandError::new(Code::Invalid, "the password could not be proved")
            .cause(error.to_string())
            .state("nothing was changed"),
    }
}
