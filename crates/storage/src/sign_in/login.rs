//! Asks a person for a sign-in: by a code that is typed anywhere (RFC 8628), or in a browser of this device that comes back
//! with a code (RFC 6749 with the proof of RFC 7636).

use std::fmt;
use std::path::Path;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use model::environment::{Clock, Random, random_bytes};
use reqwest::{Client, Url};

use super::provider::ProviderWay;
use super::token_file::{Kept, TokenFile};
use super::{Provider, TokenAnswer, no_sense, word};
use crate::credentials::{CERTIFICATE_FILE, CLIENT_ID, CLIENT_SECRET, Credentials, invalid};
use crate::error::{Result, StorageError};
use crate::open::address::Address;
use crate::open::http;

/// The grant of RFC 8628.
const DEVICE_GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";
/// How long to wait between questions where the service does not say.
const INTERVAL_S: u64 = 5;
/// How long a person has where the service does not say.
const VALIDITY_S: u64 = 900;
/// The longest waits that are believed.
const INTERVAL_MAX_S: u64 = 300;
const VALIDITY_MAX_S: u64 = 3600;

/// How a person says yes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// [`Login::ask_for_code`], [`Login::wait_for_person`].
    Device,
    /// [`Login::visit`], [`Login::come_back`].
    Browser,
}

/// A sign-in that is being asked for.
pub struct Login {
    provider: Provider,
    client: Client,
    kept: Kept,
}

/// Where a person types which code.
pub struct DeviceVisit {
    /// The address to open on any device.
    pub address: String,
    /// What to type there.
    pub user_code: String,
    /// How long the code is good for.
    pub validity: Duration,
    device_code: String,
    interval: Duration,
}

/// Where a person says yes in a browser of this device.
pub struct BrowserVisit {
    /// The address to open.
    pub address: String,
    redirect: String,
    state: String,
    verifier: String,
}

#[derive(serde::Deserialize)]
struct DeviceAnswer {
    device_code: String,
    user_code: String,
    verification_uri: Option<String>,
    /// What Google and Baidu call it.
    verification_url: Option<String>,
    expires_in: Option<u64>,
    interval: Option<u64>,
}

impl Login {
    /// Prepares to ask for a sign-in to the store at `url`, in the name of the program that the user registered with the
    /// service (`client_id`, and `client_secret` where there is one).
    ///
    /// # Errors
    /// [`StorageError::InvalidUrl`] when nobody signs in to such a store, [`StorageError::InvalidCredentials`].
    pub fn new(url: &str, credentials: &Credentials) -> Result<Self> {
        let invalid_url = |detail: &str| StorageError::InvalidUrl {
            url: url.split(':').next().unwrap_or_default().to_owned(),
            detail: detail.to_owned(),
        };
        let (scheme, rest) = url.split_once(':').ok_or_else(|| invalid_url("it has no scheme"))?;
        if !super::wants_sign_in(scheme) {
            return Err(invalid_url("nobody signs in to such a store; it has credentials"));
        }
        let endpoint = Address::parse(scheme, rest)?.server("endpoint")?;
        let provider = Provider::required(scheme, endpoint.as_ref())?;
        let client_id = credentials.required(CLIENT_ID, scheme)?;
        let kept = Kept::new(client_id, credentials.get(CLIENT_SECRET))?;
        let client = http::client(credentials.get(CERTIFICATE_FILE))?;
        Ok(Self { provider, client, kept })
    }

    /// Returns how people call the service.
    pub fn service(&self) -> &'static str {
        self.provider.name
    }

    /// Returns how a person says yes to this service.
    pub fn way(&self) -> Way {
        match self.provider.way {
            ProviderWay::Device { .. } => Way::Device,
            ProviderWay::Browser { .. } => Way::Browser,
        }
    }

    /// Asks for a code that a person types somewhere.
    ///
    /// # Errors
    /// Those of the service; [`StorageError::Unsupported`] where [`Self::way`] is another.
    pub async fn ask_for_code(&self) -> Result<DeviceVisit> {
        let ProviderWay::Device { code } = &self.provider.way else {
            return Err(self.unsupported());
        };
        let (client_id, _) = self.kept.client()?;
        let mut fields = vec![("client_id", client_id), ("scope", self.provider.scope)];
        if self.provider.asks_by_get {
            fields.push(("response_type", "device_code"));
        }
        let name = self.provider.name;
        let (status, body) = self.provider.ask(&self.client, name, code, &fields).await?;
        if !status.is_success() {
            return Err(self.refused(&word(&body).unwrap_or_else(|| status.to_string())));
        }
        let answer: DeviceAnswer =
            serde_json::from_slice(&body).map_err(|_| no_sense(name, status))?;
        let is_shown = |text: &str| text.len() <= 2000 && !text.chars().any(char::is_control);
        let address = answer.verification_uri.or(answer.verification_url);
        let address = address.filter(|address| is_shown(address) && is_shown(&answer.user_code));
        let address = address.ok_or_else(|| no_sense(name, status))?;
        let seconds = |given: Option<u64>, default: u64, most: u64| {
            Duration::from_secs(given.unwrap_or(default).clamp(1, most))
        };
        Ok(DeviceVisit {
            address,
            user_code: answer.user_code,
            validity: seconds(answer.expires_in, VALIDITY_S, VALIDITY_MAX_S),
            device_code: answer.device_code,
            interval: seconds(answer.interval, INTERVAL_S, INTERVAL_MAX_S),
        })
    }

    /// Waits until the person has typed the code and said yes, and keeps the sign-in in `file`.
    ///
    /// # Errors
    /// [`StorageError::PermissionDenied`] when the person says no or lets the code grow old; those of the service.
    pub async fn wait_for_person(
        &self,
        visit: &DeviceVisit,
        clock: &dyn Clock,
        file: &Path,
    ) -> Result<()> {
        let end = clock.elapsed() + visit.validity;
        let mut interval = visit.interval;
        // Baidu has words of its own for the same thing.
        let (grant, code) = match self.provider.asks_by_get {
            true => ("device_token", "code"),
            false => (DEVICE_GRANT, "device_code"),
        };
        let fields = [("grant_type", grant), (code, visit.device_code.as_str())];
        while clock.elapsed() < end {
            clock.sleep(interval).await;
            let asked = self.ask_token(&fields).await;
            let error = match asked {
                Ok(Ok(answer)) => return self.keep(answer, clock, file).await,
                Ok(Err(word)) => word,
                // The person may still be typing when the line is back.
                Err(error) if error.is_retryable() => "slow_down".to_owned(),
                Err(error) => return Err(error),
            };
            match error.as_str() {
                "authorization_pending" => {}
                "slow_down" => interval += Duration::from_secs(5),
                _ => return Err(self.refused(&error)),
            }
        }
        Err(self.refused("nobody typed the code in time"))
    }

    /// Makes the address that a person opens in a browser of this device; the browser comes back to `redirect`.
    ///
    /// # Errors
    /// [`StorageError::Unsupported`] where [`Self::way`] is another.
    pub fn visit(&self, redirect: &str, random: &dyn Random) -> Result<BrowserVisit> {
        let ProviderWay::Browser { authorize, extra } = &self.provider.way else {
            return Err(self.unsupported());
        };
        let text = || URL_SAFE_NO_PAD.encode(random_bytes::<32>(random));
        let (state, verifier) = (text(), text());
        let digest = ring::digest::digest(&ring::digest::SHA256, verifier.as_bytes());
        let mut url: Url = authorize.clone();
        let (client_id, _) = self.kept.client()?;
        {
            let mut query = url.query_pairs_mut();
            query
                .append_pair("response_type", "code")
                .append_pair("client_id", client_id)
                .append_pair("redirect_uri", redirect)
                .append_pair("state", &state)
                .append_pair("code_challenge", &URL_SAFE_NO_PAD.encode(digest))
                .append_pair("code_challenge_method", "S256");
            if !self.provider.scope.is_empty() {
                query.append_pair("scope", self.provider.scope);
            }
            query.extend_pairs(*extra);
        }
        let (address, redirect) = (url.to_string(), redirect.to_owned());
        Ok(BrowserVisit { address, redirect, state, verifier })
    }

    /// Takes the query with which the browser came back, and keeps the sign-in in `file`.
    ///
    /// # Errors
    /// [`StorageError::PermissionDenied`] when the person said no, or when it is the answer to another question; those of
    /// the service.
    pub async fn come_back(
        &self,
        visit: &BrowserVisit,
        query: &str,
        clock: &dyn Clock,
        file: &Path,
    ) -> Result<()> {
        let find = |name: &str| {
            let mut pairs = url::form_urlencoded::parse(query.as_bytes());
            pairs.find(|(found, _)| found == name).map(|(_, value)| value.into_owned())
        };
        let state = find("state").unwrap_or_default();
        // Hashes, because they are compared in the same time wherever they differ.
        if blake3::hash(state.as_bytes()) != blake3::hash(visit.state.as_bytes()) {
            return Err(self.refused("the browser brought the answer to another question"));
        }
        let Some(code) = find("code") else {
            let body = serde_json::json!({"error": find("error").unwrap_or_default()}).to_string();
            let reason = word(body.as_bytes());
            return Err(self.refused(&reason.unwrap_or_else(|| "without a reason".to_owned())));
        };
        let fields = [
            ("grant_type", "authorization_code"),
            ("code", &code),
            ("redirect_uri", &visit.redirect),
            ("code_verifier", &visit.verifier),
        ];
        match self.ask_token(&fields).await? {
            Ok(answer) => self.keep(answer, clock, file).await,
            Err(word) => Err(self.refused(&word)),
        }
    }

    async fn ask_token(&self, fields: &[(&str, &str)]) -> Result<Result<TokenAnswer, String>> {
        let (name, identity) = (self.provider.name, self.kept.client()?);
        self.provider.ask_token(&self.client, name, fields, identity).await
    }

    async fn keep(&self, answer: TokenAnswer, clock: &dyn Clock, file: &Path) -> Result<()> {
        if answer.refresh_token.is_none() {
            return Err(invalid(format!("{} gives no refresh token", self.provider.name)));
        }
        let mut kept = self.kept.clone();
        kept.take(answer, clock.now().seconds)?;
        let file = TokenFile::new(file.to_owned());
        let _lock = file.lock().await?;
        file.write(kept).await
    }

    fn refused(&self, detail: &str) -> StorageError {
        let (store, detail) = (self.provider.name.to_owned(), format!("sign-in: {detail}"));
        StorageError::PermissionDenied { store, detail }
    }

    fn unsupported(&self) -> StorageError {
        let store = self.provider.name.to_owned();
        StorageError::Unsupported { store, operation: "be signed in to in this way" }
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Login").field(&self.provider.name).finish()
    }
}

impl fmt::Debug for DeviceVisit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("DeviceVisit")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for BrowserVisit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("BrowserVisit").finish_non_exhaustive()
    }
}
