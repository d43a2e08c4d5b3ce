//! A provider of OpenID Connect, by which people sign in: what a browser brings back from it is exchanged for an ID token, which says who
//! somebody is there (OpenID Connect Core 1.0, section 3.1: the code flow, with PKCE, RFC 7636).
//!
//! *Participants*: a device, which sends a person's browser to the provider and brings the code that comes back; this server, which
//! alone asks the provider ([`Provider::prove`]); the provider that the operator has named. *Goals*: what is found out is a pair of
//! issuer and subject, and nothing is believed that the provider has not signed for this server and this sign-in (`oidc/grant.rs` says
//! how a code for another server is known). *Non-goals*:
//! staying signed in at the provider, or learning there that somebody has left: a device has a token of its own from then on.
//! *Invariants*: the provider is asked when somebody signs in, never at the start; each answer is bounded in length and time, and
//! so is how often it is asked for its description and its keys; neither the secret of this server nor a code, a verifier or a token
//! stands in an error or a log.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use model::Clock;
use reqwest::{Client, RequestBuilder, StatusCode, Url};
use serde::Deserialize;
use tokio::sync::{Mutex, Semaphore};
use url::form_urlencoded;

use crate::auth::subject::{Subject, check_issuer};
use crate::error::{Result, ServerError};
use crate::limits::{
    Buckets, EXCHANGES_AT_ONCE_MAX, PROVIDER_FETCHES, PROVIDER_PAUSE, PROVIDER_TIMEOUT,
};
use crate::tls::use_ring;

mod answers;
mod endpoints;
mod grant;
mod id_token;
mod keys;

use answers::{read, unusable};
use endpoints::{Authentication, Endpoints};
use grant::Addresses;
use id_token::{Claims, Expected, Fault, SignedToken};
use keys::KeySet;

pub use answers::word;
pub use grant::{Grant, redirect_path};

/// For how long description and keys of the provider are believed without a new look.
const FRESH: Duration = Duration::from_secs(3600);

/// What becomes of people whom the provider knows and nobody has bound to an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Newcomers {
    /// They are refused.
    Refused,
    /// They get an account of their own.
    GetAccounts {
        /// How many bytes its workspaces may hold; nothing for any number.
        quota_bytes: Option<u64>,
    },
}

/// A provider, as the operator names it.
#[derive(Clone)]
pub struct OidcOptions {
    issuer: String,
    client_id: String,
    client_secret: Option<String>,
    addresses: Addresses,
    newcomers: Newcomers,
}

impl fmt::Debug for OidcOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { issuer, client_id, addresses, newcomers, .. } = self;
        let mut shown = formatter.debug_struct("OidcOptions");
        shown.field("issuer", issuer).field("client_id", client_id);
        shown.field("addresses", addresses).field("newcomers", newcomers).finish_non_exhaustive()
    }
}

impl OidcOptions {
    /// Takes the address of a provider, by which id, and perhaps secret, it knows this server, and the addresses of this server that
    /// people sign in to.
    ///
    /// # Errors
    /// [`ServerError::Invalid`] for an address that is none, or over which anybody could answer as the provider.
    pub fn new(
        issuer: &str,
        client_id: &str,
        client_secret: Option<&str>,
        addresses: &[String],
        newcomers: Newcomers,
    ) -> Result<Self> {
        let invalid = |reason: &str| ServerError::Invalid {
            what: "the address of the provider",
            reason: reason.to_owned(),
        };
        check_issuer(issuer)?;
        let url = endpoints::issuer(issuer).map_err(invalid)?;
        if url.query().is_some() || url.fragment().is_some() {
            return Err(invalid("there is a query in it"));
        }
        if client_id.is_empty() || client_secret.is_some_and(str::is_empty) {
            let reason = "it is empty".to_owned();
            return Err(ServerError::Invalid { what: "the client id or its secret", reason });
        }
        Ok(Self {
            issuer: issuer.to_owned(),
            client_id: client_id.to_owned(),
            client_secret: client_secret.map(str::to_owned),
            addresses: Addresses::read(addresses)?,
            newcomers,
        })
    }
}

/// What a device needs to know to send a browser to the provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// The provider, as it calls itself.
    pub issuer: String,
    /// Where the browser goes.
    pub authorization_endpoint: String,
    /// By which id the provider knows this server.
    pub client_id: String,
    /// What the provider is asked for.
    pub scope: &'static str,
}

/// Who somebody is, as the provider has signed it.
pub struct Proven {
    /// The person.
    pub subject: Subject,
    preferred_username: Option<String>,
    access_token: Option<String>,
}

impl fmt::Debug for Proven {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Proven").field("subject", &self.subject).finish_non_exhaustive()
    }
}

/// The provider, and what is known of it.
#[derive(Debug)]
pub struct Provider {
    options: OidcOptions,
    client: Client,
    clock: Arc<dyn Clock>,
    known: Mutex<Known>,
    fetches: Buckets<()>,
    exchanges: Semaphore,
}

#[derive(Debug, Default)]
struct Known {
    endpoints: Option<Found<Endpoints>>,
    keys: Option<Found<KeySet>>,
    failure: Option<Failure>,
}

/// Why the provider could not be read.
#[derive(Debug)]
struct Failure {
    error: ServerError,
    /// By [`Clock::elapsed`].
    at: Duration,
}

#[derive(Debug)]
struct Found<T> {
    value: Arc<T>,
    /// By [`Clock::elapsed`].
    at: Duration,
}

impl<T> Found<T> {
    fn fresh(&self, now: Duration) -> Option<Arc<T>> {
        (now < self.at + FRESH).then(|| Arc::clone(&self.value))
    }
}

#[derive(Deserialize)]
struct TokenAnswer {
    id_token: Option<String>,
    access_token: Option<String>,
}

#[derive(Deserialize)]
struct ErrorAnswer {
    error: String,
}

#[derive(Deserialize)]
struct UserInfo {
    sub: String,
    preferred_username: Option<String>,
}

impl Provider {
    /// Prepares to ask a provider; it is not asked yet.
    ///
    /// # Errors
    /// [`ServerError::Invalid`] where the library for TLS does not start.
    pub fn new(options: OidcOptions, clock: Arc<dyn Clock>) -> Result<Self> {
        use_ring();
        let mut builder = Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .timeout(PROVIDER_TIMEOUT);
        if endpoints::is_here(&options.issuer) {
            builder = builder.no_proxy();
        }
        let client = builder.build().map_err(|error| ServerError::Invalid {
            what: "the set of trusted certificates",
            reason: error.to_string(),
        })?;
        let fetches = Buckets::new(PROVIDER_FETCHES);
        let exchanges = Semaphore::new(EXCHANGES_AT_ONCE_MAX);
        Ok(Self { options, client, clock, known: Mutex::default(), fetches, exchanges })
    }

    /// Lets nobody have a turn with the provider until what this returns is dropped.
    #[cfg(test)]
    pub(crate) fn hold_turns(&self) -> tokio::sync::SemaphorePermit<'_> {
        self.exchanges.try_acquire_many(EXCHANGES_AT_ONCE_MAX as u32).expect("nobody has one")
    }

    /// Returns how the provider calls itself.
    pub fn issuer(&self) -> &str {
        &self.options.issuer
    }

    /// Returns what becomes of people whom nobody has bound to an account.
    pub fn newcomers(&self) -> Newcomers {
        self.options.newcomers
    }

    /// Says where a browser goes.
    ///
    /// # Errors
    /// [`ServerError::ProviderUnusable`].
    pub async fn offer(&self) -> Result<Offer> {
        let endpoints = self.endpoints(&mut *self.known.lock().await).await?;
        Ok(Offer {
            issuer: self.options.issuer.clone(),
            authorization_endpoint: endpoints.authorization.to_string(),
            client_id: self.options.client_id.clone(),
            scope: match self.options.newcomers {
                Newcomers::Refused => "openid",
                Newcomers::GetAccounts { .. } => "openid profile",
            },
        })
    }

    /// Finds out who has come back from the provider. What a browser has brought counts once.
    ///
    /// # Errors
    /// [`ServerError::Invalid`], [`ServerError::OidcRefused`], [`ServerError::ProviderUnusable`].
    pub async fn prove(&self, grant: &Grant) -> Result<Proven> {
        grant.check(&self.options.addresses)?;
        let _turn = self.exchanges.acquire().await.map_err(|_| ServerError::STOPPING)?;
        let endpoints = self.endpoints(&mut *self.known.lock().await).await?;
        let answer = self.exchange(&endpoints, grant).await?;
        let token = answer.id_token.ok_or_else(|| refused(Fault::Shape))?;
        let token = SignedToken::read(&token).map_err(refused)?;
        let claims = self.verify(&token, &grant.nonce).await?;
        Ok(Proven {
            subject: Subject::new(&self.options.issuer, &claims.subject)?,
            preferred_username: claims.preferred_username,
            access_token: answer.access_token,
        })
    }

    /// Returns what somebody is called who is to get an account. Some providers tell that beside the ID token only.
    ///
    /// # Errors
    /// [`ServerError::OidcRefused`] where it is told nowhere; [`ServerError::ProviderUnusable`].
    pub async fn name_of(&self, proven: &Proven) -> Result<String> {
        if let Some(name) = &proven.preferred_username {
            return Ok(name.clone());
        }
        let nameless = || ServerError::OidcRefused {
            reason: "it does not tell by which name a new account goes (preferred_username)"
                .to_owned(),
        };
        let endpoints = self.endpoints(&mut *self.known.lock().await).await?;
        let url = endpoints.user_info.clone().ok_or_else(nameless)?;
        let access_token = proven.access_token.as_ref().ok_or_else(nameless)?;
        let (status, bytes) = read(self.client.get(url).bearer_auth(access_token)).await?;
        let info: Option<UserInfo> = serde_json::from_slice(&bytes).ok();
        let info = info.filter(|info| status == StatusCode::OK && info.sub == proven.subject.id());
        info.and_then(|info| info.preferred_username).ok_or_else(nameless)
    }

    /// Returns what a token says. Keys that are known may have been replaced, and the new ones need not have names of their own, so a signature
    /// that does not fit is looked at by those of now, once.
    async fn verify(&self, token: &SignedToken<'_>, nonce: &str) -> Result<Claims> {
        let expected = Expected {
            issuer: &self.options.issuer,
            client_id: &self.options.client_id,
            nonce,
            now: self.clock.now().seconds,
        };
        let (keys, are_new) = self.keys_for(token, None).await?;
        match token.verify(&keys, &expected) {
            Err(Fault::Signature) if !are_new => {
                let (keys, _) = self.keys_for(token, Some(&keys)).await?;
                token.verify(&keys, &expected).map_err(refused)
            }
            verified => verified.map_err(refused),
        }
    }

    /// Asks for the tokens that a code stands for.
    async fn exchange(&self, endpoints: &Endpoints, grant: &Grant) -> Result<TokenAnswer> {
        let (status, bytes) = read(self.request_for(endpoints, grant)).await?;
        if status.is_success() {
            return serde_json::from_slice(&bytes).map_err(|_| refused(Fault::Shape));
        }
        let said: Option<ErrorAnswer> = serde_json::from_slice(&bytes).ok();
        // Some providers call a code so that they do not know, or a verifier that does not fit.
        let is_of_the_grant =
            |answer: &ErrorAnswer| matches!(&*answer.error, "invalid_grant" | "invalid_request");
        if status.is_client_error() && said.as_ref().is_some_and(is_of_the_grant) {
            let reason = "the code was used before, has ended, or is for somebody else".to_owned();
            return Err(ServerError::OidcRefused { reason });
        }
        // The operator has to do something about it.
        let word = said.map(|answer| word(&answer.error)).unwrap_or_default();
        Err(unusable(format!("it answers with status {status} {word}").trim_end()))
    }

    fn request_for(&self, endpoints: &Endpoints, grant: &Grant) -> RequestBuilder {
        let OidcOptions { client_id, client_secret, .. } = &self.options;
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.append_pair("grant_type", "authorization_code");
        form.append_pair("code", &grant.authorization_code);
        form.append_pair("redirect_uri", &grant.redirect_uri);
        form.append_pair("code_verifier", &grant.code_verifier);
        let mut request = self.client.post(endpoints.token.clone());
        match (client_secret, endpoints.authentication) {
            (None, _) => {
                form.append_pair("client_id", client_id);
            }
            (Some(secret), Authentication::Post) => {
                form.append_pair("client_id", client_id).append_pair("client_secret", secret);
            }
            (Some(secret), Authentication::Basic) => {
                request = with_basic(request, client_id, secret);
            }
        }
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        request.body(form.finish())
    }

    /// Returns the description of the provider, which is read where there is none that is fresh.
    async fn endpoints(&self, known: &mut Known) -> Result<Arc<Endpoints>> {
        let now = self.clock.elapsed();
        if let Some(fresh) = known.endpoints.as_ref().and_then(|found| found.fresh(now)) {
            return Ok(fresh);
        }
        let issuer = &self.options.issuer;
        let read =
            |bytes: &[u8]| Endpoints::read(bytes, issuer).map_err(|reason| unusable(&reason));
        let url = endpoints::description_of(issuer)?;
        let value = Arc::new(self.fetch(&mut known.failure, url, read).await?);
        known.endpoints = Some(Found { value: Arc::clone(&value), at: now });
        Ok(value)
    }

    /// Returns the keys of the provider, and whether they were read just now: where the one that a token names is not among those that are
    /// known, or where these have proved to be the wrong ones.
    async fn keys_for(
        &self,
        token: &SignedToken<'_>,
        wrong: Option<&Arc<KeySet>>,
    ) -> Result<(Arc<KeySet>, bool)> {
        let mut known = self.known.lock().await;
        let now = self.clock.elapsed();
        let fresh = known.keys.as_ref().and_then(|found| found.fresh(now));
        if let Some(keys) = &fresh
            && keys.knows(token.algorithm, token.key_id.as_deref())
            && wrong.is_none_or(|wrong| !Arc::ptr_eq(wrong, keys))
        {
            return Ok((Arc::clone(keys), false));
        }
        let url = self.endpoints(&mut known).await?.keys.clone();
        let read =
            |bytes: &[u8]| KeySet::read(bytes).ok_or_else(|| unusable("it publishes no keys"));
        let value = match (self.fetch(&mut known.failure, url, read).await, fresh) {
            (Ok(value), _) => Arc::new(value),
            // Asked too often: the token is judged by what is known.
            (Err(ServerError::RateLimited { .. }), Some(keys)) => return Ok((keys, false)),
            (Err(error), _) => return Err(error),
        };
        known.keys = Some(Found { value: Arc::clone(&value), at: now });
        Ok((value, true))
    }

    /// Reads a document of the provider. Who waited while that failed does not wait for the same again.
    async fn fetch<T>(
        &self,
        failure: &mut Option<Failure>,
        url: Url,
        parse: impl FnOnce(&[u8]) -> Result<T>,
    ) -> Result<T> {
        let now = self.clock.elapsed();
        if let Some(Failure { error, .. }) =
            failure.as_ref().filter(|failure| now < failure.at + PROVIDER_PAUSE)
        {
            return Err(error.clone());
        }
        self.fetches.take((), now).map_err(ServerError::limited)?;
        let read = async {
            match read(self.client.get(url)).await? {
                (StatusCode::OK, bytes) => parse(&bytes),
                (status, _) => Err(unusable(&format!("its description has status {status}"))),
            }
        };
        let read = read.await;
        let error = read.as_ref().err().cloned();
        *failure = error.map(|error| Failure { error, at: self.clock.elapsed() });
        read
    }
}

/// Waits so long for what the provider is asked for, and for its turn.
///
/// # Errors
/// [`ServerError::ProviderUnusable`] where it takes longer; those of `work`.
pub(crate) async fn in_time<T>(
    limit: Duration,
    work: impl Future<Output = Result<T>>,
) -> Result<T> {
    let done = tokio::time::timeout(limit, work).await;
    done.unwrap_or_else(|_| Err(unusable("it takes too long")))
}

/// Names this server as RFC 6749, section 2.3.1, wants it.
fn with_basic(request: RequestBuilder, id: &str, secret: &str) -> RequestBuilder {
    let encode =
        |text: &str| -> String { form_urlencoded::byte_serialize(text.as_bytes()).collect() };
    let pair = format!("{}:{}", encode(id), encode(secret));
    request.header("authorization", format!("Basic {}", STANDARD.encode(pair)))
}

fn refused(fault: Fault) -> ServerError {
    ServerError::OidcRefused { reason: fault.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TokioClock;
    use tokio::net::TcpListener;
    use tokio::time::Instant;

    #[tokio::test(start_paused = true)]
    async fn who_waited_for_a_provider_that_is_silent_does_not_wait_for_it_again() {
        // Whoever connects is heard, and waits for an answer.
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let issuer = format!("http://{}", listener.local_addr().unwrap());
        let addresses = ["https://cloud.example.org".to_owned()];
        let options = OidcOptions::new(&issuer, "x", None, &addresses, Newcomers::Refused).unwrap();
        let start = Instant::now();
        let provider = Provider::new(options, Arc::new(TokioClock(start))).unwrap();
        let (one, two, three) = tokio::join!(provider.offer(), provider.offer(), provider.offer());
        for offer in [one, two, three] {
            assert!(matches!(offer, Err(ServerError::ProviderUnusable { .. })), "{offer:?}");
        }
        assert!(start.elapsed() < PROVIDER_TIMEOUT * 2, "{:?}", start.elapsed());
        tokio::time::sleep(PROVIDER_PAUSE).await;
        let again = Instant::now();
        assert!(provider.offer().await.is_err());
        assert!(again.elapsed() >= PROVIDER_TIMEOUT, "{:?}", again.elapsed());
    }
}
