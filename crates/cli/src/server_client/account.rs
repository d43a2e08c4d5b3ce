//! The own account, at the control door of a server.

use reqwest::Method;
use serde::Deserialize;
use serde_json::json;

use super::ServerClient;
use crate::error::{Code, CommandError, Result};
use crate::provider::Grant;

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

/// Who the account is at a provider of OpenID Connect.
#[derive(Debug, Deserialize)]
pub(crate) struct SubjectLine {
    /// The provider, as it calls itself.
    pub(crate) issuer: String,
    /// What it calls the person.
    pub(crate) subject: String,
    /// Since when, in seconds since 1970.
    pub(crate) since: i64,
}

/// What ended with a password.
#[derive(Debug, Deserialize)]
pub(crate) struct PasswordChanged {
    /// How many devices and tokens were signed out.
    pub(crate) signed_out: u64,
    /// How many people at providers sign in no more; a server that knows of none does not say it.
    #[serde(default)]
    pub(crate) identities: u64,
}

#[derive(Debug, Deserialize)]
struct RecoveryCodes {
    recovery_codes: Vec<String>,
}

/// Says what a server says of a sign-in by its provider.
pub(super) fn problem_with_provider(code: &str, detail: String) -> CommandError {
    let error = match code {
        "oidc_refused" => {
            CommandError::new(Code::ProviderRefused, "the sign-in at the provider does not count")
        }
        "oidc_unbound" => CommandError::new(
            Code::NotBound,
            "the provider knows you, and no account of this server is bound to that",
        )
        .help("syncline account oidc link", "binds it, on a device of the account")
        .help("syncline user oidc link NAME SUBJECT --issuer URL", "at the server"),
        _ => CommandError::new(
            Code::ServerUnreachable,
            "the server cannot ask the provider by which people sign in",
        ),
    };
    error.cause(detail).state("nothing was changed")
}

impl ServerClient {
    /// Returns who the account is at providers.
    ///
    /// # Errors
    /// [`crate::error::CommandError`].
    pub(crate) async fn subjects(&self) -> Result<Vec<SubjectLine>> {
        self.ask(self.request(Method::GET, &["account", "oidc"])).await
    }

    /// Lets whom the provider has just named sign in to the account.
    ///
    /// # Errors
    /// [`crate::error::Code::WrongPassword`] and others.
    pub(crate) async fn bind_subject(&self, password: &str, grant: &Grant) -> Result<SubjectLine> {
        let mut body = json!(grant);
        body["password"] = json!(password);
        self.ask(self.request(Method::POST, &["account", "oidc"]).json(&body)).await
    }

    /// Ends that somebody signs in to the account.
    ///
    /// # Errors
    /// [`crate::error::CommandError`].
    pub(crate) async fn unbind_subject(&self, subject: &str) -> Result<()> {
        self.send(self.request(Method::DELETE, &["account", "oidc", subject])).await.map(drop)
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
