//! Running a server: from a data folder to an address, and back to a closed database.

use std::future::Future;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use model::{Clock, Random};
use storage::{Credentials, ObjectStore, Opening};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};

use crate::app::{App, router, watch_router};
use crate::audit::Audit;
use crate::broker::Broker;
use crate::cluster::{Cluster, Role};
use crate::data_folder::DataFolder;
use crate::database::Database;
use crate::error::{Result, ServerError};
use crate::files::Files;
use crate::limits::{RENEWAL_INTERVAL, STOP_TIMEOUT, WATCHERS_MAX};
use crate::listener::{GuardedListener, Identity, TlsFiles, service};
use crate::metadata::Metadata;
use crate::oidc::{OidcOptions, Provider};
use crate::services::events::Hub;
use crate::services::news::News;
use crate::services::presence::Closing;
use crate::services::readers::Readers;
use crate::services::writer::Writer;

/// What a server needs to know.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// Where to listen; port 0 picks one.
    pub listen: SocketAddr,
    /// The folder that holds the database and the store where no others are named.
    pub data: PathBuf,
    /// Where the metadata rest.
    pub database: Database,
    /// The URL of the store for packs; nothing for a folder beside the database.
    pub store: Option<String>,
    /// What opens that store.
    pub store_credentials: Credentials,
    /// Where it meets other servers on the database; nothing where there are none.
    pub broker: Option<Broker>,
    /// What it does of the work; a part of it wants a broker, and a database that others share.
    pub role: Role,
    /// How many connections there are at most.
    pub connections_max: usize,
    /// How many connections of one address there are at most.
    pub connections_per_address_max: usize,
    /// What to prove with who the server is; without it, it speaks no TLS.
    pub tls: Option<TlsFiles>,
    /// Where those may ask who watch the server; nowhere by default.
    pub metrics_listen: Option<SocketAddr>,
    /// The file of the audit log; none by default.
    pub audit_log: Option<PathBuf>,
    /// The provider of OpenID Connect by which people may sign in, too; none by default.
    pub oidc: Option<OidcOptions>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub random: Arc<dyn Random>,
}

impl ServeOptions {
    /// Returns the options of a server on `data` that listens on the loopback address.
    pub fn new(data: PathBuf, clock: Arc<dyn Clock>, random: Arc<dyn Random>) -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8470)),
            data,
            database: Database::Embedded,
            store: None,
            store_credentials: Credentials::none(),
            broker: None,
            role: Role::All,
            connections_max: 700,
            connections_per_address_max: 500,
            tls: None,
            metrics_listen: None,
            audit_log: None,
            oidc: None,
            clock,
            random,
        }
    }
}

/// Runs a server until `shutdown` is done; calls `ready` with the address when requests are answered.
///
/// The stop is graceful and bounded in time: no new connections, answers to what is under way, a farewell to live
/// connections, everything written, the database tidied up.
///
/// # Errors
/// [`ServerError::Locked`] where another server runs on the data folder, and whatever keeps a server from starting.
pub async fn serve(
    options: ServeOptions,
    ready: impl FnOnce(SocketAddr),
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<()> {
    check_role(&options)?;
    let identity = options.tls.map(Identity::read).transpose()?;
    let folder = DataFolder::open(&options.data)?;
    let lock = folder.lock()?;
    let (database, has_objects, readers) = open(folder.clone(), options.database).await?;
    let url = options.store.unwrap_or_else(|| folder.default_store());
    let store = open_store(&url, &options.store_credentials, has_objects)?;
    let meeting = match &options.broker {
        Some(broker) => Some((broker.connect(Arc::clone(&options.random)).await?, News::new())),
        None => None,
    };
    let news = meeting.as_ref().map(|(_, (news, _))| news.clone()).unwrap_or_default();
    let (writer, writing) = Writer::start(database)?;
    let (hub, sending) = Hub::new(news.clone());
    let sending = tokio::spawn(sending);
    let (in_use, mut unused) = mpsc::channel(1);
    let renewing = identity.clone().map(|one| tokio::spawn(renew(one, options.clock.clone())));
    let environment = (options.clock, options.random);
    let files = Files::new(folder.aside()?);
    let mut app = App::new(environment, (readers, writer), store, (hub, news), files, in_use);
    let cluster = meeting
        .map(|(transport, (_, waiting))| Cluster::join(transport, waiting, options.role, &mut app));
    app.audit = options.audit_log.map(open_audit).transpose()?.unwrap_or_default();
    app.oidc = options.oidc.map(|oidc| Provider::new(oidc, app.clock.clone())).transpose()?;
    let app = Arc::new(app);

    let (listener, address) = bind(options.listen).await?;
    let listener = GuardedListener::new(
        listener,
        options.connections_max,
        options.connections_per_address_max,
    )
    .with_identity(identity);
    let (stopping, stopped) = watch::channel(false);
    if let Some(address) = options.metrics_listen {
        serve_watchers(Arc::clone(&app), address, stopped.clone()).await?;
    }
    let service = service(router(Arc::clone(&app), options.role));
    let serving = axum::serve(listener, service).with_graceful_shutdown(stopping_signal(stopped));
    let serving = tokio::spawn(serving.into_future());
    ready(address);
    shutdown.await;

    tracing::info!("the server stops");
    let _ = stopping.send(true);
    if let Some(cluster) = &cluster {
        cluster.retire();
    }
    if let Some(renewing) = renewing {
        renewing.abort();
    }
    app.presence.close_all(Closing::GoingAway);
    app.files.stop();
    drop(app);
    let finished = async {
        let _ = serving.await;
        // Live connections and what they asked for outlast the listener.
        while unused.recv().await.is_some() {}
    };
    in_time(finished, "some connections did not end in time").await;
    if let Some(cluster) = cluster {
        let trouble = "other servers were not told everything; they find out by themselves";
        in_time(cluster.leave(), trouble).await;
    }
    sending.abort();
    // The writer ends when everything that was asked of it is written.
    let joined = tokio::task::spawn_blocking(move || writing.join());
    in_time(joined, "the writer did not end in time; the database is safe nevertheless").await;
    drop(lock);
    Ok(())
}

/// Waits for what ends by itself, but not for ever.
async fn in_time(ending: impl Future, trouble: &str) {
    if tokio::time::timeout(STOP_TIMEOUT, ending).await.is_err() {
        tracing::warn!("{trouble}");
    }
}

/// Opens the store. One that should hold something but is not there is a disk that was not mounted, not an empty store.
fn open_store(
    url: &str,
    credentials: &Credentials,
    has_objects: bool,
) -> Result<Arc<dyn ObjectStore>> {
    let opening = if has_objects { Opening::Existing } else { Opening::CreateIfMissing };
    Ok(storage::open_with(url, credentials, opening)?)
}

fn open_audit(path: PathBuf) -> Result<Audit> {
    Audit::to(path.clone()).map_err(|error| ServerError::DataFolder {
        path,
        reason: format!("the audit log cannot be written: {error}"),
    })
}

/// Listens at an address; port 0 picks one.
pub(crate) async fn bind(address: SocketAddr) -> Result<(TcpListener, SocketAddr)> {
    let listener = listen(address).await?;
    let bound = listener.local_addr();
    let failed = |error: std::io::Error| ServerError::Listen { address, reason: error.to_string() };
    Ok((listener, bound.map_err(failed)?))
}

/// Looks again and again whether certificate and key were renewed, until it is dropped.
pub(crate) async fn renew(identity: Identity, clock: Arc<dyn Clock>) {
    loop {
        clock.sleep(RENEWAL_INTERVAL).await;
        let looking = identity.clone();
        let renewed = tokio::task::spawn_blocking(move || looking.renew()).await;
        match renewed {
            Ok(Ok(true)) => tracing::info!("the certificate was renewed"),
            Ok(Ok(false)) => {}
            Ok(Err(error)) => {
                tracing::error!(%error, "the new certificate cannot be used; the one before stays");
            }
            Err(_) => return,
        }
    }
}

/// Answers those who watch the server, at an address of their own, until it stops.
async fn serve_watchers(
    app: Arc<App>,
    address: SocketAddr,
    stopped: watch::Receiver<bool>,
) -> Result<()> {
    let listener = GuardedListener::new(listen(address).await?, WATCHERS_MAX, WATCHERS_MAX);
    let serving = axum::serve(listener, watch_router(app).into_make_service());
    tokio::spawn(serving.with_graceful_shutdown(stopping_signal(stopped)).into_future());
    Ok(())
}

/// Refuses a part of a server that nobody could meet.
fn check_role(options: &ServeOptions) -> Result<()> {
    let reason = match options.role {
        Role::All => return Ok(()),
        _ if options.broker.is_none() => "it wants a broker, where it meets the others",
        _ if matches!(options.database, Database::Embedded) => {
            "it wants a database that the others share"
        }
        _ => return Ok(()),
    };
    Err(ServerError::Invalid { what: "the role", reason: reason.to_owned() })
}

/// Opens all connections to the database, and looks whether it knows of objects in the store.
async fn open(
    folder: DataFolder,
    database: Database,
) -> Result<(Box<dyn Metadata>, bool, Readers)> {
    // A database may block, and one in a network has to.
    let opened = tokio::task::spawn_blocking(move || {
        let writing = database.open(&folder)?;
        let has_objects = writing.has_objects()?;
        Ok((writing, has_objects, Readers::open(|| database.open_reader(&folder))?))
    });
    opened.await.unwrap_or(Err(ServerError::STOPPING))
}

/// Waits until it is said that the server stops.
pub(crate) async fn stopping_signal(mut stopped: watch::Receiver<bool>) {
    // A closed channel is a stop, too.
    let _ = stopped.wait_for(|is_stopped| *is_stopped).await;
}

async fn listen(address: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(address)
        .await
        .map_err(|error| ServerError::Listen { address, reason: error.to_string() })
}
