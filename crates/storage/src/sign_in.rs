//! Signing in to services that want a person to do it (OAuth 2), and staying signed in.
//!
//! *Participants*: the person and a browser; [`Login`], which asks for a sign-in once; the file of the sign-in, which a
//! [`SignIn`] reads and renews; processes of this device that share the file; the service. *Goals*: a person signs in once; a
//! token that has ended is renewed before it is used, or when the service says so; a service that gives a new refresh
//! token each time and forgets the old one never leaves us with neither. *Non-goals*: an application registered by us: the id
//! is the user's own. *Invariants*:
//!
//! * A renewed sign-in is durable before it is used.
//! * One renewal at a time, also among processes: it is made under a lock beside the file, after another look at it.
//! * A renewal that has begun goes on when its caller is gone.
//! * No token stands in an address, an error, a log or a `Debug` form.

mod login;
mod provider;
mod token_file;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use model::environment::Clock;
use reqwest::{Client, StatusCode, Url};
use tokio::sync::Mutex;

use crate::credentials::{Credentials, TOKEN, TOKEN_FILE, invalid};
use crate::error::{Result, StorageError};
use crate::http_answer::{self, read_body};

pub use login::{BrowserVisit, DeviceVisit, Login, Way};
pub use provider::wants_sign_in;
pub(crate) use provider::{Provider, at_endpoint};
use token_file::{Kept, TokenFile};

/// How long before its end a token counts as ended, in seconds: a request may be on its way for a while.
const MARGIN_S: i64 = 60;

/// Longest answer of a service about a sign-in.
const ANSWER_SIZE_MAX: u64 = 64 << 10;

/// Gives the token for requests to one store.
#[derive(Clone)]
pub(crate) struct SignIn {
    shared: Arc<Shared>,
}

struct Shared {
    provider: Provider,
    client: Client,
    clock: Arc<dyn Clock>,
    store: String,
    source: Source,
    held: Mutex<Option<Held>>,
}

enum Source {
    /// Somebody else takes care of it.
    Given(Arc<str>),
    File(PathBuf),
}

/// A token in memory.
#[derive(Clone)]
struct Held {
    token: Arc<str>,
    /// Its end in seconds of Unix time, where it is known.
    expires: Option<i64>,
}

/// What a service answers that gives tokens.
#[derive(serde::Deserialize)]
struct TokenAnswer {
    access_token: String,
    expires_in: Option<u64>,
    refresh_token: Option<String>,
}

/// What it answers that gives none.
#[derive(serde::Deserialize)]
struct ErrorAnswer {
    error: String,
}

impl SignIn {
    /// Takes what the credentials say; the file is read at the first request.
    pub(crate) fn new(
        provider: Provider,
        credentials: &Credentials,
        client: Client,
        clock: Arc<dyn Clock>,
        store: String,
    ) -> Result<Self> {
        let source = match (credentials.get(TOKEN), credentials.get(TOKEN_FILE)) {
            (Some(token), None) => Source::Given(token.into()),
            (None, Some(file)) => Source::File(file.into()),
            (Some(_), Some(_)) => {
                return Err(invalid("'token' and 'token_file' are both given".to_owned()));
            }
            (None, None) => {
                let name = provider.name;
                let detail = format!("nobody has signed in to {name} (syncline backend login)");
                return Err(invalid(detail));
            }
        };
        let held = Mutex::new(None);
        Ok(Self { shared: Arc::new(Shared { provider, client, clock, store, source, held }) })
    }

    /// Returns a token; another one than `spent`, which the service has refused.
    pub(crate) async fn token(&self, spent: Option<&str>) -> Result<Arc<str>> {
        let shared = &self.shared;
        let path = match &shared.source {
            Source::Given(token) if spent.is_none() => return Ok(token.clone()),
            Source::Given(_) => return Err(shared.refused("the token is not valid any more")),
            Source::File(path) => path.clone(),
        };
        let mut held = shared.held.lock().await;
        if let Some(held) = held.as_ref().filter(|held| shared.is_usable(held, spent)) {
            return Ok(held.token.clone());
        }
        let (renewer, spent) = (Arc::clone(shared), spent.map(str::to_owned));
        // A caller that gives up must not take with it what the service has just given.
        let task = tokio::spawn(async move { renewer.renewed(path, spent.as_deref()).await });
        let fresh = match task.await {
            Ok(fresh) => fresh?,
            Err(failure) if failure.is_panic() => std::panic::resume_unwind(failure.into_panic()),
            Err(_) => return Err(shared.not_reachable("the program ends")),
        };
        *held = Some(fresh.clone());
        Ok(fresh.token)
    }
}

impl Shared {
    fn is_usable(&self, held: &Held, spent: Option<&str>) -> bool {
        let now = self.clock.now().seconds;
        spent != Some(&*held.token) && held.expires.is_none_or(|end| end - MARGIN_S > now)
    }

    /// Returns the token of the file, or a new one that has been written there.
    async fn renewed(&self, path: PathBuf, spent: Option<&str>) -> Result<Held> {
        let file = TokenFile::new(path);
        let usable = |kept: &Kept| kept.held().filter(|held| self.is_usable(held, spent));
        if let Some(held) = usable(&file.read().await?) {
            return Ok(held);
        }
        let lock = file.lock().await?;
        let mut kept = file.read().await?;
        if let Some(held) = usable(&kept) {
            return Ok(held);
        }
        let answer = self.refresh(&kept).await?;
        kept.take(answer, self.clock.now().seconds)?;
        let held = kept.held().ok_or_else(|| self.refused("it gives an empty token"))?;
        file.write(kept).await?;
        drop(lock);
        Ok(held)
    }

    async fn refresh(&self, kept: &Kept) -> Result<TokenAnswer> {
        let refresh_token = kept.required(crate::credentials::REFRESH_TOKEN)?;
        let fields = [("grant_type", "refresh_token"), ("refresh_token", refresh_token)];
        match self.provider.ask_token(&self.client, &self.store, &fields, kept.client()?).await? {
            Ok(answer) => Ok(answer),
            Err(code) => {
                Err(self.refused(&format!("sign in again (syncline backend login): {code}")))
            }
        }
    }

    fn refused(&self, detail: &str) -> StorageError {
        StorageError::PermissionDenied { store: self.store.clone(), detail: detail.to_owned() }
    }

    fn not_reachable(&self, detail: &str) -> StorageError {
        StorageError::NotReachable { store: self.store.clone(), detail: detail.to_owned() }
    }
}

impl Provider {
    /// Asks for tokens. An error that the service names is returned as its word.
    async fn ask_token(
        &self,
        client: &Client,
        store: &str,
        fields: &[(&str, &str)],
        (id, secret): (&str, Option<&str>),
    ) -> Result<Result<TokenAnswer, String>> {
        let identity = [("client_id", Some(id)), ("client_secret", secret)];
        let identity = identity.iter().filter_map(|(name, value)| Some((*name, (*value)?)));
        let fields: Vec<(&str, &str)> = fields.iter().copied().chain(identity).collect();
        let (status, body) = self.ask(client, store, &self.token, &fields).await?;
        if status.is_success() {
            return match serde_json::from_slice(&body) {
                Ok(answer) => Ok(Ok(answer)),
                Err(_) => Err(no_sense(store, status)),
            };
        }
        match word(&body) {
            Some(word) => Ok(Err(word)),
            None => Err(no_sense(store, status)),
        }
    }

    /// Sends a form and returns status and body; a service that is away or busy is an error.
    async fn ask(
        &self,
        client: &Client,
        store: &str,
        url: &Url,
        fields: &[(&str, &str)],
    ) -> Result<(StatusCode, bytes::Bytes)> {
        let form =
            url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        let request = if self.asks_by_get {
            let mut url = url.clone();
            url.set_query(Some(&form));
            client.get(url)
        } else {
            client.post(url.clone()).header("Content-Type", FORM).body(form)
        };
        let response = request.header("Accept", "application/json").send().await;
        let response =
            response.map_err(|error| http_answer::transport_error(store.to_owned(), error))?;
        let status = response.status();
        // Google says by 428 that the person has not answered yet.
        if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
            return Err(http_answer::refusal(store.to_owned(), None, &response));
        }
        Ok((status, read_body(store.to_owned(), response, ANSWER_SIZE_MAX).await?))
    }
}

const FORM: &str = "application/x-www-form-urlencoded";

/// Returns the word by which a service names an error; longer texts are not shown, because nobody knows what they quote.
fn word(body: &[u8]) -> Option<String> {
    let answer: ErrorAnswer = serde_json::from_slice(body).ok()?;
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let fits = (1..=40).contains(&answer.error.len()) && answer.error.chars().all(is_word);
    fits.then_some(answer.error)
}

fn no_sense(store: &str, status: StatusCode) -> StorageError {
    let detail = format!("status {status} without a token and without a reason");
    StorageError::InvalidAnswer { store: store.to_owned(), detail }
}

impl fmt::Debug for SignIn {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("SignIn").field(&self.shared.provider.name).finish()
    }
}
