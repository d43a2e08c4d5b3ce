//! The server put together: which doors there are, and what they share.
//!
//! Read this first. A request comes in through a door ([`crate::doors`]), which asks a service
//! ([`crate::services`]), which reads or writes metadata ([`crate::metadata`]). Reads go to a pool of connections,
//! writes through the one writer; packs go straight to the store.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use model::{Clock, DeviceId, Random, WorkspaceId};
use storage::layers::Scoped;
use storage::{ObjectKey, ObjectStore};
use tokio::sync::{Mutex, OnceCell, OwnedMutexGuard, Semaphore, mpsc};

use crate::audit::Audit;
use crate::auth::Caller;
use crate::auth::passwords::{Exchanges, Passwords};
use crate::cluster::{Commits, Role, Standing};
use crate::doors::dav::basic::KnownPasswords;
use crate::doors::{
    dav, files as files_door, health, live, packs, page, problem, public, rest, watch, web,
};
use crate::error::ServerError;
use crate::files::Files;
use crate::limits::{
    BODIES_LENGTH_MAX, BODIES_OF_STRANGERS_LENGTH_MAX, Buckets, CODES_PER_ACCOUNT,
    COUNTS_PER_ACCOUNT, DEAD_LINKS_PER_ADDRESS, HEADERS_LENGTH_MAX, LOGINS_AT_ONCE_MAX,
    LOGINS_PER_ACCOUNT, LOGINS_PER_ADDRESS, PASSWORDS_PER_LINK, PASSWORDS_PER_LINK_AND_ADDRESS,
    PROOFS_PER_DEVICE, PROVIDER_LOGINS_PER_ADDRESS, REQUESTS_LENGTH_MAX, SHARES_PER_ACCOUNT,
    URI_LENGTH_MAX,
};
use crate::metadata::{AccountId, Metadata};
use crate::metrics::{Door, Fault, Metrics};
use crate::oidc::Provider;
use crate::services::commits::Committer;
use crate::services::condemned::CondemnedCache;
use crate::services::events::Hub;
use crate::services::news::{News, Told};
use crate::services::presence::{Closing, Presence};
use crate::services::readers::Readers;
use crate::services::writer::Writer;

mod keeping;
mod passwords;
mod share;

pub use share::Share;

/// How many objects are stored at once at most, but for chance; two of one name never are.
const OBJECT_LOCKS: usize = 64;

/// What all doors share.
#[derive(Debug)]
pub struct App {
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Randomness, for ids and tokens.
    pub random: Arc<dyn Random>,
    /// Connections that read metadata.
    pub readers: Readers,
    /// The thread that writes metadata.
    pub writer: Writer,
    /// Where packs and pages rest, of all workspaces.
    pub store: Arc<dyn ObjectStore>,
    /// The way of devices' commits into the log.
    pub commits: Commits,
    /// The way that this server's own commits take.
    pub committer: Committer,
    /// Who is told of new entries.
    pub hub: Hub,
    /// What other servers on the database are told.
    pub news: News,
    /// How this server stands with the broker where it meets them, if there is one.
    pub standing: Option<Arc<Standing>>,
    /// Which devices are connected.
    pub presence: Arc<Presence>,
    /// Attempts to sign in, per account name.
    pub logins_per_account: Buckets<String>,
    /// Attempts to sign in, per address.
    pub logins_per_address: Buckets<IpAddr>,
    /// Sign-ins by a provider, per address that tries.
    pub provider_logins_per_address: Buckets<IpAddr>,
    /// Codes of a second factor that come with the right password, per account.
    pub codes_per_account: Buckets<AccountId>,
    /// Passwords and codes of its own account that are tried, per device that is signed in.
    pub proofs_per_device: Buckets<DeviceId>,
    /// Members that are added or changed, per account that does it.
    pub shares_per_account: Buckets<AccountId>,
    /// Counts of what a workspace holds, per account that asks.
    pub counts_per_account: Buckets<AccountId>,
    /// Passwords that are tried, per link and address.
    pub passwords_per_link_and_address: Buckets<(DeviceId, IpAddr)>,
    /// Passwords that are tried, per link.
    pub passwords_per_link: Buckets<DeviceId>,
    /// Links that lead nowhere, per address that asks.
    pub dead_links_per_address: Buckets<IpAddr>,
    /// The secret behind the passwords of accounts; known once somebody has asked.
    pub(crate) passwords: OnceCell<Arc<Passwords>>,
    /// Exchanges about passwords that have taken an attempt each, which whoever proves the password gets back once.
    pub(crate) exchanges: Exchanges,
    /// A permit per password that is being checked.
    pub logins: Arc<Semaphore>,
    /// Which packs may be deleted.
    pub condemned: CondemnedCache,
    /// What people with accounts, their devices and programs take at once.
    pub accounts: Share,
    /// What strangers behind links take at once.
    pub strangers: Share,
    /// Memory for requests of live connections.
    pub requests: Arc<Semaphore>,
    /// The files of plain workspaces.
    pub files: Files,
    /// Passwords of WebDAV that were right lately.
    pub known_passwords: KnownPasswords,
    /// Dropped with the last user of all this, so that a stop can wait for them.
    pub in_use: mpsc::Sender<()>,
    /// The last answer about the server's health.
    pub health: health::Health,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// Where it is written down who was let in.
    pub audit: Audit,
    /// The provider of OpenID Connect by which people may sign in, where the operator has named one.
    pub oidc: Option<Provider>,
    /// When it began, by [`Clock::elapsed`].
    pub started: Duration,
    /// Whether the store replaces nothing by what is to create; known once somebody has asked.
    pub(crate) keeps_what_is_there: OnceCell<bool>,
    object_locks: Vec<Arc<Mutex<()>>>,
}

impl App {
    /// Puts the shared parts together.
    pub fn new(
        (clock, random): (Arc<dyn Clock>, Arc<dyn Random>),
        (readers, writer): (Readers, Writer),
        store: Arc<dyn ObjectStore>,
        (hub, news): (Hub, News),
        files: Files,
        in_use: mpsc::Sender<()>,
    ) -> Self {
        let metrics = Arc::<Metrics>::default();
        let counts = (Arc::clone(&clock), Arc::clone(&metrics));
        let requests = (REQUESTS_LENGTH_MAX / live::REQUEST_UNIT) as usize;
        let committer = Committer::new(writer.clone(), hub.clone(), news.clone(), counts);
        Self {
            known_passwords: KnownPasswords::new(&*random),
            started: clock.elapsed(),
            clock,
            random,
            readers,
            commits: Commits::Here(committer.clone()),
            committer,
            metrics,
            writer,
            store,
            hub,
            news,
            standing: None,
            presence: Arc::default(),
            logins_per_account: Buckets::new(LOGINS_PER_ACCOUNT),
            logins_per_address: Buckets::new(LOGINS_PER_ADDRESS),
            provider_logins_per_address: Buckets::new(PROVIDER_LOGINS_PER_ADDRESS),
            codes_per_account: Buckets::new(CODES_PER_ACCOUNT),
            proofs_per_device: Buckets::new(PROOFS_PER_DEVICE),
            shares_per_account: Buckets::new(SHARES_PER_ACCOUNT),
            counts_per_account: Buckets::new(COUNTS_PER_ACCOUNT),
            passwords_per_link_and_address: Buckets::new(PASSWORDS_PER_LINK_AND_ADDRESS),
            passwords_per_link: Buckets::new(PASSWORDS_PER_LINK),
            dead_links_per_address: Buckets::new(DEAD_LINKS_PER_ADDRESS),
            passwords: OnceCell::new(),
            exchanges: Exchanges::default(),
            logins: Arc::new(Semaphore::new(LOGINS_AT_ONCE_MAX)),
            condemned: CondemnedCache::default(),
            accounts: Share::new(BODIES_LENGTH_MAX),
            strangers: Share::new(BODIES_OF_STRANGERS_LENGTH_MAX),
            requests: Arc::new(Semaphore::new(requests)),
            files,
            in_use,
            health: health::Health::default(),
            audit: Audit::default(),
            oidc: None,
            keeps_what_is_there: OnceCell::new(),
            object_locks: (0..OBJECT_LOCKS).map(|_| Arc::default()).collect(),
        }
    }

    /// Returns the wall time in seconds since 1970.
    pub fn now(&self) -> i64 {
        self.clock.now().seconds
    }

    /// Returns the part of the store that belongs to a workspace.
    pub fn store_of(&self, workspace: WorkspaceId) -> Scoped {
        scope_of(&self.store, workspace)
    }

    /// Notes that a device was seen; waits only while the queue of the writer is full.
    ///
    /// # Errors
    /// [`ServerError::Unavailable`] where the server stops.
    pub(crate) async fn note_seen(&self, caller: Caller, now: i64) -> Result<(), ServerError> {
        let touch =
            move |metadata: &mut dyn Metadata| Ok(metadata.touch_device(caller.device, now)?);
        self.writer.submit(touch, drop).await
    }

    /// Closes the live connections of a device that was signed out, here and at all other servers, and ends the uploads that it has begun
    /// here.
    pub fn sign_out(&self, device: DeviceId) {
        self.files.uploads.end_of_device(device);
        self.presence.close_device(device, Closing::Revoked);
        self.news.tell(Told::SignedOut(device));
    }

    /// Ends what an account hears of a workspace, here and at all other servers.
    pub fn expel(&self, account: AccountId, workspace: WorkspaceId) {
        self.presence.expel(&self.hub, account, workspace);
        self.news.tell(Told::Expelled { account, workspace });
    }

    /// Waits until nobody else stores or deletes this object.
    pub async fn lock_object(
        &self,
        workspace: WorkspaceId,
        key: &ObjectKey,
    ) -> OwnedMutexGuard<()> {
        let mut hasher = DefaultHasher::new();
        (workspace, key).hash(&mut hasher);
        let lock = hasher.finish() as usize % OBJECT_LOCKS;
        Arc::clone(&self.object_locks[lock]).lock_owned().await
    }
}

/// Returns the part of a server's store that belongs to a workspace.
pub(crate) fn scope_of(store: &Arc<dyn ObjectStore>, workspace: WorkspaceId) -> Scoped {
    let scope = ObjectKey::new(&format!("workspaces/{workspace}"));
    Scoped::new(Arc::clone(store), scope.expect("an id has letters and digits only"))
}

/// Puts the doors of a role together.
pub fn router(app: Arc<App>, role: Role) -> Router {
    let (doors, folders) = match role {
        Role::All | Role::Gateway => {
            let devices = rest::routes().merge(packs::routes()).merge(live::routes());
            let files = files_door::routes().merge(public::routes());
            let pages = page::routes().merge(web::routes());
            (devices.merge(files), dav::workspaces::routes().merge(pages))
        }
        Role::SyncService => (Router::new(), Router::new()),
    };
    Router::new()
        .route("/livez", get(health::livez))
        .route("/readyz", get(health::readyz))
        .route("/healthz", get(health::readyz))
        .nest("/api/v1", doors)
        .merge(folders)
        .fallback(|| async { StatusCode::NOT_FOUND })
        .layer(middleware::from_fn(limit_head))
        .layer(middleware::from_fn(problem::shape))
        .layer(middleware::from_fn_with_state(Arc::clone(&app), count))
        .with_state(app)
}

/// Puts together what those may ask who watch the server, and nobody else.
pub fn watch_router(app: Arc<App>) -> Router {
    Router::new()
        .route("/metrics", get(watch::metrics))
        .route("/livez", get(health::livez))
        .route("/readyz", get(health::readyz))
        .layer(middleware::from_fn(limit_head))
        .layer(middleware::from_fn(problem::shape))
        .with_state(app)
}

/// Counts what was answered.
async fn count(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let door = Door::of(request.uri().path());
    let response = next.run(request).await;
    app.metrics.request(door, response.status().as_u16());
    if let Some(fault) = response.extensions().get::<Fault>() {
        app.metrics.fault(*fault);
    }
    response
}

/// Refuses requests whose address or headers are too long.
pub(crate) async fn limit_head(request: Request, next: Next) -> Response {
    let path = request.uri().path_and_query().map_or(0, |path| path.as_str().len());
    if path > URI_LENGTH_MAX {
        return StatusCode::URI_TOO_LONG.into_response();
    }
    let headers = request.headers().iter();
    let length: usize = headers.map(|(name, value)| name.as_str().len() + value.len()).sum();
    if length > HEADERS_LENGTH_MAX {
        return StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE.into_response();
    }
    next.run(request).await
}
