//! The own account, at the control door of a server.

use reqwest::Method;
use serde::Deserialize;
use serde_json::json;

use super::ServerClient;
use crate::error::Result;

/// How it is with the second factor of the account.
#[derive(Debug, Deserialize)]
pub(crate) struct TotpStatus {
    /// Off, waiting for its first code, or on.
    pub(crate) state: String,
    /// Since when, in seconds since 1970.
    pub(crate) since: Option<i64>,
    /// How many recovery codes were not used yet.
    pub(crate) recovery_codes_left: u64,
}

/// What an app is to know.
#[derive(Debug, Deserialize)]
pub(crate) struct TotpOffer {
    /// What codes are computed from, to be typed.
    pub(crate) secret: String,
    /// The same, to be drawn.
    pub(crate) uri: String,
}

#[derive(Debug, Deserialize)]
struct PasswordChanged {
    signed_out: u64,
}

#[derive(Debug, Deserialize)]
struct RecoveryCodes {
    recovery_codes: Vec<String>,
}

impl ServerClient {
    /// Changes the password, and returns how many devices and tokens were signed out by it.
    ///
    /// # Errors
    /// [`crate::error::Code::WrongPassword`] and others.
    pub(crate) async fn change_password(
        &self,
        password: &str,
        new_password: &str,
        sign_out_others: bool,
    ) -> Result<u64> {
        let body = json!({
            "password": password, "new_password": new_password, "sign_out_others": sign_out_others,
        });
        let request = self.request(Method::POST, &["account", "password"]).json(&body);
        Ok(self.ask::<PasswordChanged>(request).await?.signed_out)
    }

    /// Says how it is with the second factor.
    ///
    /// # Errors
    /// [`crate::error::CommandError`].
    pub(crate) async fn totp(&self) -> Result<TotpStatus> {
        self.ask(self.request(Method::GET, &["account", "totp"])).await
    }

    /// Begins a second factor, which waits for its first code.
    ///
    /// # Errors
    /// [`crate::error::Code::WrongPassword`] and others.
    pub(crate) async fn begin_totp(&self, password: &str) -> Result<TotpOffer> {
        let body = json!({ "password": password });
        self.ask(self.request(Method::POST, &["account", "totp"]).json(&body)).await
    }

    /// Turns it on by its first code, and returns the recovery codes.
    ///
    /// # Errors
    /// [`crate::error::Code::WrongSecondFactor`] and others.
    pub(crate) async fn confirm_totp(&self, code: &str) -> Result<Vec<String>> {
        let request = self.request(Method::POST, &["account", "totp", "confirm"]);
        let answer: RecoveryCodes = self.ask(request.json(&json!({ "code": code }))).await?;
        Ok(answer.recovery_codes)
    }

    /// Turns it off by a code or a recovery code.
    ///
    /// # Errors
    /// [`crate::error::Code::WrongSecondFactor`] and others.
    pub(crate) async fn disable_totp(&self, code: &str) -> Result<()> {
        let request = self.request(Method::POST, &["account", "totp", "disable"]);
        self.send(request.json(&json!({ "code": code }))).await.map(drop)
    }
}
