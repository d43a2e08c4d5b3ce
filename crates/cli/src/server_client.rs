//! The control door of a server, from a device: signing in, devices, workspaces.

use std::sync::Arc;
use std::time::Duration;

use model::codec::encode_message;
use model::{Genesis, WorkspaceId};
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use storage::ObjectStore;
use storage::server_door::ServerDoor;
use url::Url;

use crate::error::{self, Code, CommandError, Result};
use crate::home::Account;
use crate::provider::{Grant, Offer};
use crate::stores;

pub(crate) mod account;
mod identities;
pub(crate) mod links;
mod passwords;

/// The longest answer that is read, in bytes.
const ANSWER_LENGTH_MAX: usize = 16 << 20;

const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// A server.
#[derive(Debug, Clone)]
pub(crate) struct ServerClient {
    client: Client,
    base: Url,
    token: Option<String>,
}

/// What signing in gives.
#[derive(Debug, Deserialize)]
pub(crate) struct SignedIn {
    /// What proves the device from now on.
    pub(crate) token: String,
    /// Its id.
    pub(crate) device_id: String,
    /// The account.
    pub(crate) account: String,
}

/// Who is signed in.
#[derive(Debug, Deserialize)]
pub(crate) struct WhoAmI {
    /// The account.
    pub(crate) account: String,
    /// The device.
    pub(crate) device_id: String,
    /// Its name.
    pub(crate) device_name: String,
    /// What the account may store.
    pub(crate) quota_bytes: Option<u64>,
    /// What it stores.
    pub(crate) used_bytes: u64,
}

/// A device of the account.
#[derive(Debug, Deserialize)]
pub(crate) struct DeviceLine {
    /// Its id.
    pub(crate) id: String,
    /// Its name.
    pub(crate) name: String,
    /// When it signed in.
    pub(crate) created: i64,
    /// When it was here last.
    pub(crate) last_seen: i64,
    /// When it was last fully in sync, in seconds since 1970, if ever; a server of the days before does not say.
    #[serde(default)]
    pub(crate) last_in_sync: Option<i64>,
    /// Whether it is the one that asks.
    pub(crate) is_this: bool,
}

/// A workspace of the account.
#[derive(Debug, Deserialize)]
pub(crate) struct WorkspaceLine {
    /// Its id.
    pub(crate) id: String,
    /// Its name, as this account finds it.
    pub(crate) name: String,
    /// The name of its owner.
    pub(crate) owner: String,
    /// What this account is in it.
    pub(crate) role: String,
}

impl WorkspaceLine {
    /// Tells whether it is encrypted: then the server calls it by its id, of somebody else's behind the name of the owner.
    pub(crate) fn is_sealed(&self) -> bool {
        self.name.rsplit('/').next() == Some(&self.id)
    }

    /// Tells whether this account has made it.
    pub(crate) fn is_own(&self) -> bool {
        self.role == "owner"
    }
}

/// Somebody who may open a workspace.
#[derive(Debug, Deserialize)]
pub(crate) struct MemberLine {
    /// The name of the account.
    pub(crate) user: String,
    /// What it is in the workspace.
    pub(crate) role: String,
}

/// What a new token for another program is to be.
#[derive(Debug, Serialize)]
pub(crate) struct NewToken<'a> {
    /// What it is called.
    pub(crate) name: &'a str,
    /// What it may do: read or write.
    pub(crate) scope: &'a str,
    /// The only workspace that it knows, by name or id.
    pub(crate) workspace: Option<&'a str>,
    /// After how long it ends.
    pub(crate) expires_in_seconds: Option<i64>,
}

/// A token for another program.
#[derive(Debug, Deserialize)]
pub(crate) struct TokenLine {
    /// Its id, which is no secret.
    pub(crate) id: String,
    /// What it is called.
    pub(crate) name: String,
    /// What it may do: read or write.
    pub(crate) scope: String,
    /// The id of the only workspace that it knows.
    pub(crate) workspace: Option<String>,
    /// When it was made, in seconds since 1970.
    pub(crate) created: i64,
    /// When it was last shown, in seconds since 1970.
    pub(crate) last_used: i64,
    /// When it ends, in seconds since 1970.
    pub(crate) expires: Option<i64>,
    /// The token itself, when it is new.
    pub(crate) token: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Problem {
    code: String,
    detail: String,
}

/// Makes a client as all our connections want it.
///
/// # Errors
/// [`Code::Defect`] where the TLS library does not start.
pub(crate) fn http_client() -> Result<Client> {
    // A second call finds the provider there, which is fine.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let built = ServerDoor::client_builder().build();
    built.map_err(|error| {
        CommandError::new(Code::Defect, "the network library does not start").cause(error)
    })
}

impl ServerClient {
    /// Makes a client of the server at an address; nothing is sent yet.
    ///
    /// # Errors
    /// [`Code::Usage`] where the text is no address.
    pub(crate) fn new(server: &str) -> Result<Self> {
        let usage = |reason: &str| {
            CommandError::usage(format!("'{server}' is not the address of a server: {reason}"))
                .help("http://127.0.0.1:8470", "is the form of one")
        };
        let base = Url::parse(server).map_err(|error| usage(&error.to_string()))?;
        match base.scheme() {
            "http" | "https" => {}
            _ => return Err(usage("it begins neither with https: nor with http:")),
        }
        if base.host_str().is_none_or(str::is_empty) {
            return Err(usage("it has no host"));
        }
        if !base.username().is_empty() || base.password().is_some() {
            return Err(usage("a password does not belong into it"));
        }
        Ok(Self { client: http_client()?, base, token: None })
    }

    /// Makes a client of the server that is signed in to.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub(crate) fn of_account(account: &Account) -> Result<Self> {
        Ok(Self { token: Some(account.token.clone()), ..Self::new(&account.server)? })
    }

    /// Returns the address, as it is remembered.
    pub(crate) fn address(&self) -> String {
        self.base.as_str().trim_end_matches('/').to_owned()
    }

    /// Returns the same, to be taken apart.
    pub(crate) fn base(&self) -> &Url {
        &self.base
    }

    /// Returns what the server keeps of a workspace beside its log, as a store.
    ///
    /// # Errors
    /// [`Code::Usage`] where the address or the token make no sense.
    pub(crate) fn store(&self, workspace: WorkspaceId) -> Result<Arc<dyn ObjectStore>> {
        let address = self.url(&["workspaces", &workspace.to_string()]);
        let token = self.token.as_deref().unwrap_or_default();
        let door = ServerDoor::new(self.client.clone(), address.as_str(), token)?;
        Ok(stores::patient(Arc::new(door)))
    }

    fn url(&self, segments: &[&str]) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(["api", "v1"]).extend(segments);
        }
        url
    }

    fn request(&self, method: Method, segments: &[&str]) -> RequestBuilder {
        let request = self.anonymous(method, segments);
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    /// Asks as somebody who has no account.
    fn anonymous(&self, method: Method, segments: &[&str]) -> RequestBuilder {
        self.client.request(method, self.url(segments)).timeout(REQUEST_TIMEOUT)
    }

    async fn send(&self, request: RequestBuilder) -> Result<Response> {
        let response = request.send().await.map_err(|error| {
            error::unreachable(&format!("server {}", self.address()), innermost(&error))
        })?;
        if response.status().is_success() {
            Ok(response)
        } else {
            Err(self.problem(response).await)
        }
    }

    async fn ask<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T> {
        let bytes = self.read(self.send(request).await?).await?;
        serde_json::from_slice(&bytes).map_err(|error| self.nonsense(error))
    }

    async fn read(&self, mut response: Response) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        loop {
            match response.chunk().await {
                Ok(Some(chunk)) if bytes.len() + chunk.len() <= ANSWER_LENGTH_MAX => {
                    bytes.extend_from_slice(&chunk);
                }
                Ok(Some(_)) => return Err(self.nonsense("the answer is too long")),
                Ok(None) => return Ok(bytes),
                Err(error) => {
                    return Err(error::unreachable(
                        &format!("server {}", self.address()),
                        innermost(&error),
                    ));
                }
            }
        }
    }

    fn nonsense(&self, cause: impl ToString) -> CommandError {
        CommandError::new(
            Code::ServerUnreachable,
            format!("{} does not answer like a Syncline server", self.address()),
        )
        .cause(cause)
    }

    async fn problem(&self, response: Response) -> CommandError {
        let status = response.status();
        let bytes = self.read(response).await.unwrap_or_default();
        let problem: Problem = serde_json::from_slice(&bytes).unwrap_or_default();
        let detail = problem.detail;
        match problem.code.as_str() {
            "not_signed_in" => error::not_signed_in().cause(detail),
            "wrong_password" => passwords::wrong(),
            "code_needed" => CommandError::new(
                Code::SecondFactorNeeded,
                "the account has a second factor: a code is wanted beside the password",
            )
            .state("nothing was changed")
            .help("--code-file FILE", "reads the code of the app, or a recovery code"),
            "wrong_code" => CommandError::new(
                Code::WrongSecondFactor,
                "the code is wrong, or was used before",
            )
            .cause(
                "each code counts once, for half a minute; app and server must have the same time",
            )
            .state("nothing was changed"),
            "oidc_refused" | "oidc_unbound" | "provider_unavailable" => {
                account::problem_with_provider(&problem.code, detail)
            }
            "rate_limited" | "unavailable" => error::busy(detail),
            "forbidden" => {
                CommandError::new(Code::Refused, "the server does not allow it").cause(detail)
            }
            "not_found" => CommandError::new(Code::NoSuchThing, detail),
            "taken" => CommandError::new(Code::Taken, detail).state("nothing was changed"),
            "over_quota" | "no_space" => {
                CommandError::new(Code::NoSpaceThere, "no space is left in the cloud").cause(detail)
            }
            "" => self.nonsense(format!("it answers with status {status}")),
            _ if status == StatusCode::BAD_REQUEST => {
                CommandError::new(Code::Invalid, "the server does not take the request")
                    .cause(detail)
            }
            code => CommandError::new(Code::Invalid, "the server does not take the request")
                .cause(format!("{code}: {detail}")),
        }
    }

    /// Says where a browser goes to sign in by OpenID Connect.
    ///
    /// # Errors
    /// [`Code::NoSuchThing`] where nobody does, and others.
    pub(crate) async fn provider(&self) -> Result<Offer> {
        self.ask(self.request(Method::GET, &["sign-in", "oidc"])).await
    }

    /// Signs a new device in by what a browser has brought back; with a code, where the account has a second factor.
    ///
    /// # Errors
    /// [`Code::ProviderRefused`], [`Code::NotBound`], [`Code::SecondFactorNeeded`] and others.
    pub(crate) async fn login_by_provider(
        &self,
        grant: &Grant,
        code: Option<&str>,
        device_name: &str,
    ) -> Result<SignedIn> {
        let mut body = json!(grant);
        body["code"] = json!(code);
        body["device_name"] = json!(device_name);
        self.ask(self.request(Method::POST, &["sign-in", "oidc"]).json(&body)).await
    }

    /// Signs this device out.
    ///
    /// # Errors
    /// [`CommandError`].
    pub(crate) async fn logout(&self) -> Result<()> {
        self.send(self.request(Method::POST, &["logout"])).await.map(drop)
    }

    /// Says who is signed in.
    ///
    /// # Errors
    /// [`CommandError`].
    pub(crate) async fn whoami(&self) -> Result<WhoAmI> {
        self.ask(self.request(Method::GET, &["whoami"])).await
    }

    /// Returns the devices of the account.
    ///
    /// # Errors
    /// [`CommandError`].
    pub(crate) async fn devices(&self) -> Result<Vec<DeviceLine>> {
        self.ask(self.request(Method::GET, &["devices"])).await
    }

    /// Renames a device.
    ///
    /// # Errors
    /// [`CommandError`].
    pub(crate) async fn rename_device(&self, id: &str, name: &str) -> Result<()> {
        let request = self.request(Method::PATCH, &["devices", id]).json(&json!({"name": name}));
        self.send(request).await.map(drop)
    }

    /// Signs a device out.
    ///
    /// # Errors
    /// [`CommandError`].
    pub(crate) async fn revoke_device(&self, id: &str) -> Result<()> {
        self.send(self.request(Method::DELETE, &["devices", id])).await.map(drop)
    }

    /// Returns the workspaces of the account.
    ///
    /// # Errors
    /// [`CommandError`].
    pub(crate) async fn workspaces(&self) -> Result<Vec<WorkspaceLine>> {
        self.ask(self.request(Method::GET, &["workspaces"])).await
    }

    /// Finds a workspace by its name or id.
    ///
    /// # Errors
    /// [`Code::NoSuchWorkspace`] and others.
    pub(crate) async fn find_workspace(&self, text: &str) -> Result<WorkspaceLine> {
        match self.ask(self.request(Method::GET, &["workspaces", text])).await {
            Err(error) if error.code == Code::NoSuchThing => {
                let lines = self.workspaces().await?.into_iter();
                let names: Vec<_> =
                    lines.filter(|line| !line.is_sealed()).map(|line| line.name).collect();
                let error = error::no_such_workspace(format!(
                    "the server has no workspace called '{text}'"
                ));
                Err(if names.is_empty() {
                    error.help("syncline init", "makes one")
                } else {
                    error.cause(format!("it has: {}", names.join(", ")))
                })
            }
            other => other,
        }
    }

    /// Makes a workspace.
    ///
    /// # Errors
    /// [`Code::Taken`] and others.
    pub(crate) async fn create_workspace(&self, genesis: &Genesis) -> Result<()> {
        let request = self.request(Method::POST, &["workspaces"]).body(encode_message(genesis));
        let request = request.header(reqwest::header::CONTENT_TYPE, "application/octet-stream");
        self.ask::<Value>(request).await.map(drop)
    }

    /// Returns those who may open a workspace, as far as this account may know them.
    ///
    /// # Errors
    /// [`CommandError`].
    pub(crate) async fn members(&self, workspace: &str) -> Result<Vec<MemberLine>> {
        self.ask(self.request(Method::GET, &["workspaces", workspace, "members"])).await
    }

    /// Lets somebody into a workspace, or gives them another role.
    ///
    /// # Errors
    /// [`CommandError`].
    pub(crate) async fn set_member(&self, workspace: &str, user: &str, role: &str) -> Result<()> {
        let segments = ["workspaces", workspace, "members", user];
        let request = self.request(Method::PUT, &segments).json(&json!({"role": role}));
        self.send(request).await.map(drop)
    }

    /// Shuts somebody out of a workspace.
    ///
    /// # Errors
    /// [`CommandError`].
    pub(crate) async fn remove_member(&self, workspace: &str, user: &str) -> Result<()> {
        let segments = ["workspaces", workspace, "members", user];
        self.send(self.request(Method::DELETE, &segments)).await.map(drop)
    }

    /// Makes a token for another program.
    ///
    /// # Errors
    /// [`CommandError`].
    pub(crate) async fn add_token(&self, new: &NewToken<'_>) -> Result<TokenLine> {
        self.ask(self.request(Method::POST, &["tokens"]).json(new)).await
    }

    /// Returns the tokens of the account, without what is secret about them.
    ///
    /// # Errors
    /// [`CommandError`].
    pub(crate) async fn tokens(&self) -> Result<Vec<TokenLine>> {
        self.ask(self.request(Method::GET, &["tokens"])).await
    }

    /// Takes a token back.
    ///
    /// # Errors
    /// [`CommandError`].
    pub(crate) async fn remove_token(&self, id: &str) -> Result<()> {
        self.send(self.request(Method::DELETE, &["tokens", id])).await.map(drop)
    }

    /// Tells whether the server is well, in its own words.
    ///
    /// # Errors
    /// [`CommandError`].
    pub(crate) async fn health(&self) -> Result<String> {
        let mut url = self.base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().push("healthz");
        }
        let response = self.send(self.client.get(url).timeout(REQUEST_TIMEOUT)).await?;
        let date = response.headers().get(reqwest::header::DATE).cloned();
        Ok(date.and_then(|date| date.to_str().map(ToOwned::to_owned).ok()).unwrap_or_default())
    }
}

/// Returns the text of the deepest source, which says what the system saw.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut deepest = error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    let text = deepest.to_string();
    text.split(" (os error").next().unwrap_or_default().to_lowercase()
}
