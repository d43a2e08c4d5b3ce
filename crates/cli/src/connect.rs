//! From a folder to a running engine: file system, log, store, clock, randomness, threads.

use std::sync::Arc;

use commit_log::served::websocket::{WebSocketConnection, WebSocketError, WebSocketOptions};
use commit_log::{CommitLog, ServedCommitLog, SlotCommitLog};
use content::Transform;
use model::{Clock, DeviceId};
use storage::server_door::ServerDoor;
use storage::{ContentStore, ObjectStore};
use sync::engine::Observer;
use sync::file_system::native::NativeFileSystem;
use sync::workers::Workers;
use sync::{Engine, EngineOptions, Environment, SyncError};
use tokio::runtime::Runtime;

use crate::claim::{FolderClaim, HomeClaim};
use crate::context::Context;
use crate::error::{Code, CommandError, Result, is_damaged_database, not_signed_in};
use crate::folder::{Folder, Place, StoredPlace};
use crate::home::Account;
use crate::interrupt::{Interrupts, stopped};
use crate::server_client::ServerClient;
use crate::stores;

/// What a command wants to do with a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Look, beside whoever else works on it.
    Look,
    /// Change it, alone in the home.
    Change,
    /// Keep it in sync, beside the watches of other folders; the watch itself has claimed the home.
    Watch,
    /// Change it, and ask a watch that has it to step aside meanwhile.
    ChangeBesideWatch,
}

/// What drives connections and listens to signals while a command works.
#[derive(Debug)]
pub(crate) struct Driver {
    runtime: Runtime,
    interrupts: Interrupts,
}

impl Driver {
    /// Starts it.
    ///
    /// # Errors
    /// [`Code::Defect`].
    pub(crate) fn start(context: &Context<'_>) -> Result<Self> {
        let runtime = context.runtime()?;
        let interrupts = Interrupts::listen(&runtime);
        Ok(Self { runtime, interrupts })
    }

    /// Runs something on this thread, while the threads of the runtime drive its connections.
    pub(crate) fn run<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    /// Returns what came of signals.
    pub(crate) fn interrupts(&self) -> &Interrupts {
        &self.interrupts
    }
}

/// An engine on a folder, with the right to use it.
struct Session {
    engine: Engine,
    _claim: Option<(FolderClaim, Option<HomeClaim>)>,
}

/// How a session is opened.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SessionOptions {
    /// What for.
    pub(crate) access: Access,
    /// Whether a mass deletion was confirmed.
    pub(crate) allow_mass_delete: bool,
}

impl SessionOptions {
    /// To look.
    pub(crate) const LOOK: Self = Self { access: Access::Look, allow_mass_delete: false };
    /// To change.
    pub(crate) const CHANGE: Self = Self { access: Access::Change, allow_mass_delete: false };
    /// To keep in sync.
    pub(crate) const WATCH: Self = Self { access: Access::Watch, allow_mass_delete: false };
    /// To change something beside a running watch.
    pub(crate) const CHANGE_BESIDE_WATCH: Self =
        Self { access: Access::ChangeBesideWatch, allow_mass_delete: false };
}

/// Why a session did not do its work.
pub(crate) enum Failure {
    /// The surroundings of the engine failed.
    Command(CommandError),
    /// The engine failed.
    Sync(SyncError),
}

impl From<CommandError> for Failure {
    fn from(error: CommandError) -> Self {
        Self::Command(error)
    }
}

impl From<SyncError> for Failure {
    fn from(error: SyncError) -> Self {
        Self::Sync(error)
    }
}

/// Runs `work` with an engine on the folder, until it is done or a signal comes.
///
/// # Errors
/// [`CommandError`]; that of a signal where one came.
pub(crate) fn with_engine<T>(
    context: &Context<'_>,
    folder: &Folder,
    options: SessionOptions,
    observer: Option<Observer>,
    mut work: impl AsyncFnMut(&mut Engine) -> sync::error::Result<T>,
) -> Result<T> {
    let driver = Driver::start(context)?;
    with_session(context, &driver, folder, options, observer, async |engine| {
        tokio::select! {
            done = work(engine) => Ok(done?),
            code = driver.interrupts.wait() => Err(stopped(code, "syncline sync").into()),
        }
    })
}

/// Runs `work`, which minds signals itself. A damaged database is moved aside and made anew, once: it is a cache.
///
/// # Errors
/// [`CommandError`].
pub(crate) fn with_session<T>(
    context: &Context<'_>,
    driver: &Driver,
    folder: &Folder,
    options: SessionOptions,
    observer: Option<Observer>,
    mut work: impl AsyncFnMut(&mut Engine) -> Result<T, Failure>,
) -> Result<T> {
    let mut may_rebuild = options.access != Access::Look;
    loop {
        let mut attempt = || {
            let mut session = Session::open(context, driver, folder, options)?;
            if let Some(observer) = &observer {
                session.engine.observe(observer.clone());
            }
            let done = driver.run(work(&mut session.engine));
            if options.access != Access::Look {
                learn_pool(folder, &session.engine)?;
            }
            done
        };
        match attempt() {
            Ok(value) => return Ok(value),
            Err(Failure::Sync(error)) if may_rebuild && is_damaged_database(&error) => {
                may_rebuild = false;
                let aside = folder.set_database_aside()?;
                context.ui.note(format!(
                    "the local database was damaged ({error}); it is made anew, the old one is {}",
                    aside.display()
                ));
            }
            Err(Failure::Sync(error)) => return Err(error.into()),
            Err(Failure::Command(error)) => return Err(error),
        }
    }
}

/// Remembers the stores that the log has agreed on, for the next time that the folder is opened.
fn learn_pool(folder: &Folder, engine: &Engine) -> Result<(), Failure> {
    let Place::Stored(stored) = &folder.place else { return Ok(()) };
    match engine.pool()? {
        Some((version, pool)) if version > stored.version => {
            let mut addresses = stored.addresses.clone();
            addresses.retain(|id, _| pool.store(*id).is_some());
            let place = Place::Stored(StoredPlace { pool, version, addresses });
            Ok(folder.clone().set_place(place)?)
        }
        _ => Ok(()),
    }
}

impl Session {
    fn open(
        context: &Context<'_>,
        driver: &Driver,
        folder: &Folder,
        options: SessionOptions,
    ) -> Result<Self, Failure> {
        let home = &context.home;
        let claim = match options.access {
            Access::Look => None,
            Access::Change => {
                let of_home = HomeClaim::alone(home)?;
                Some((FolderClaim::acquire(folder)?, Some(of_home)))
            }
            Access::Watch => Some((FolderClaim::acquire(folder)?, None)),
            Access::ChangeBesideWatch => {
                let of_home = HomeClaim::beside_watches(home)?;
                Some((FolderClaim::acquire_from_watch(folder)?, Some(of_home)))
            }
        };
        let threads = match options.access {
            Access::Look => None,
            Access::Change | Access::Watch | Access::ChangeBesideWatch => Some(threads(context)?),
        };
        let environment = {
            let _guard = driver.runtime.enter();
            environment(context, folder, threads)?
        };
        let (device, device_name) = device(context, &folder.place)?;
        let engine_options = EngineOptions {
            device,
            device_name,
            allow_mass_delete: options.allow_mass_delete,
            transform: Transform::default(),
            keys: None,
        };
        let engine = Engine::open(environment, folder.state()?, engine_options)?;
        Ok(Self { engine, _claim: claim })
    }
}

fn threads(context: &Context<'_>) -> Result<usize> {
    let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    Ok(context.home.config()?.threads.unwrap_or(cores).clamp(1, 64).max(2))
}

/// Returns which device proposes commits at a place, and its name.
fn device(context: &Context<'_>, place: &Place) -> Result<(DeviceId, String)> {
    let mut device = match place {
        Place::Served { server } => {
            let account = account_of(context, server)?;
            let id = account.device_id.parse();
            let id = id.map_err(|_| {
                CommandError::new(Code::File, "the account file holds no device id")
            })?;
            (id, account.device_name)
        }
        Place::Stored(_) => (context.home.device_id()?, context.home.device_name()?),
    };
    let length_max = model::commit::DEVICE_NAME_LENGTH_MAX;
    while device.1.len() > length_max {
        device.1.pop();
    }
    Ok(device)
}

/// Returns the account at a server.
///
/// # Errors
/// [`Code::NotSignedIn`].
pub(crate) fn account_of(context: &Context<'_>, server: &str) -> Result<Account> {
    match context.home.account()? {
        Some(account) if account.server == server => Ok(account),
        Some(account) => Err(not_signed_in().cause(format!(
            "the folder belongs to {server}, and this device is signed in to {}",
            account.server
        ))),
        None => Err(not_signed_in().cause(format!("the folder belongs to {server}"))),
    }
}

/// Opens the log and the store of a folder's workspace; nothing is sent yet.
///
/// # Errors
/// [`CommandError`].
pub(crate) fn coordinator(
    context: &Context<'_>,
    folder: &Folder,
) -> Result<(Arc<dyn CommitLog>, Arc<dyn ObjectStore>)> {
    let (genesis, clock) = (folder.genesis.clone(), context.clock.clone());
    let clock: Arc<dyn Clock> = clock;
    match &folder.place {
        Place::Stored(stored) => {
            let mut stores = stores::open_pool(stored, genesis.workspace());
            let (_, store) = stores.pop().expect("a pool has a store");
            Ok((Arc::new(SlotCommitLog::with_genesis(store.clone(), clock, genesis)), store))
        }
        Place::Served { server } => {
            let account = account_of(context, server)?;
            let client = ServerClient::of_account(&account)?;
            let address = client.workspace_address(genesis.workspace());
            let door = ServerDoor::new(client.http().clone(), &address, &account.token)?;
            let incarnation = context.home.incarnation();
            let options = WebSocketOptions::new(server.as_str(), account.token, incarnation);
            let connection =
                WebSocketConnection::new(options, clock.clone(), context.random.clone());
            let connection = connection
                .map_err(|error: WebSocketError| CommandError::usage(error.to_string()))?;
            let log = ServedCommitLog::with_genesis(Arc::new(connection), clock, genesis);
            Ok((Arc::new(log), stores::patient(Arc::new(door))))
        }
    }
}

fn environment(
    context: &Context<'_>,
    folder: &Folder,
    threads: Option<usize>,
) -> Result<Environment, Failure> {
    let (log, store) = coordinator(context, folder)?;
    let file_system = NativeFileSystem::open(&folder.root).map_err(SyncError::from)?;
    Ok(Environment {
        file_system: Arc::new(file_system),
        log,
        store: Arc::new(ContentStore::new(store)),
        clock: context.clock.clone(),
        random: context.random.clone(),
        workers: threads.map_or_else(Workers::inline, Workers::start),
    })
}
