//! From a folder to a running engine: file system, log, store, clock, randomness, threads.

use std::sync::Arc;
use std::time::Duration;

use commit_log::served::websocket::{WebSocketConnection, WebSocketError, WebSocketOptions};
use commit_log::serverless::membership::SettingsMembership;
use commit_log::serverless::slot_log::Means;
use commit_log::{CommitLog, ServedCommitLog, SlotCommitLog};
use content::{DeviceKeys, Transform, WorkspaceKeys};
use model::pool::FaultModel;
use model::{Clock, DeviceId, NodeId, Random, StoreRecord, TreeStore};
use storage::pool::{Pool, PoolOptions};
use storage::{ContentStore, ObjectStore};
use sync::engine::Observer;
use sync::file_system::native::NativeFileSystem;
use sync::workers::Workers;
use sync::{Engine, EngineOptions, Environment, SyncError};
use tokio::runtime::{Handle, Runtime};

use crate::attendance::{Attendance, Way};
use crate::claim::{FolderClaim, HomeClaim};
use crate::context::Context;
use crate::error::{
    Code, CommandError, Result, is_damaged_database, needs_newer_keys, not_signed_in,
};
use crate::folder::{Folder, Place, StoredPlace};
use crate::handover;
use crate::home::{Account, Home};
use crate::interrupt::{Interrupts, stopped};
use crate::membership::WorkspaceStores;
use crate::sealed;
use crate::server_client::ServerClient;
use crate::store_memory;
use crate::stores;
use crate::text::counted;

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

    /// Does something that starts nothing, where connections can be made.
    pub(crate) fn within<T>(&self, work: impl FnOnce() -> T) -> T {
        let _guard = self.runtime.enter();
        work()
    }

    /// Returns by what other threads wait for connections.
    pub(crate) fn handle(&self) -> Handle {
        self.runtime.handle().clone()
    }

    /// Returns what came of signals.
    pub(crate) fn interrupts(&self) -> &Interrupts {
        &self.interrupts
    }
}

/// An engine on a folder, with the right to use it.
/// How long stores that are slow to hear of the newest changes are waited for.
const SETTLING_MAX: Duration = Duration::from_secs(2);

/// What goes on at slow stores after everybody else is content.
struct Settling {
    slots: Option<Arc<SlotCommitLog>>,
    membership: Option<Arc<SettingsMembership>>,
    pool: Option<Pool>,
    attendance: Attendance,
}

struct Session {
    engine: Engine,
    settling: Settling,
    _claim: Option<(FolderClaim, Option<HomeClaim>)>,
}

/// How a session is opened.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SessionOptions {
    /// What for.
    pub(crate) access: Access,
    /// Whether a mass deletion was confirmed.
    pub(crate) allow_mass_delete: bool,
    /// Whether what a change of the stores has left to be done is done in the end, by whoever hears of it.
    pub(crate) hands_over: bool,
}

impl SessionOptions {
    const fn of(access: Access) -> Self {
        Self { access, allow_mass_delete: false, hands_over: true }
    }

    /// To look.
    pub(crate) const LOOK: Self = Self::of(Access::Look);
    /// To change.
    pub(crate) const CHANGE: Self = Self::of(Access::Change);
    /// To keep in sync.
    pub(crate) const WATCH: Self = Self::of(Access::Watch);
    /// To change something beside a running watch.
    pub(crate) const CHANGE_BESIDE_WATCH: Self = Self::of(Access::ChangeBesideWatch);
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

/// How often a session goes on with other stores before it gives up: each time somebody has changed them meanwhile.
const STORES_CHANGED_MAX: u32 = 10;

/// Runs `work`, which minds signals itself. A damaged database is moved aside and made anew, once: it is a cache. Where the
/// workspace has other stores now, `work` begins again with them.
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
    let mut folder = folder.clone();
    let mut may_rebuild = options.access != Access::Look;
    let mut may_unlock = may_rebuild;
    let mut may_follow = STORES_CHANGED_MAX;
    loop {
        match attempt(context, driver, &mut folder, options, observer.clone(), &mut work) {
            Ok(value) => {
                hand_over(context, driver, &folder, options);
                return Ok(value);
            }
            Err(Failure::Sync(error)) if may_rebuild && is_damaged_database(&error) => {
                may_rebuild = false;
                let aside = folder.set_database_aside()?;
                context.ui.note(format!(
                    "the local database was damaged ({error}); it is made anew, the old one is {}",
                    aside.display()
                ));
            }
            // Another device has changed the keys: whoever knows the passphrase may have the new ones.
            Err(Failure::Sync(error)) if may_unlock && needs_newer_keys(&error) => {
                may_unlock = false;
                sealed::unlock_again(context, driver, &folder)?;
            }
            Err(Failure::Sync(error)) if may_follow > 0 && error.wants_other_stores() => {
                may_follow -= 1;
            }
            Err(Failure::Sync(error)) if may_follow > 0 && is_out_of_reach(&error) => {
                may_follow -= 1;
                match handover::newer_place(context, driver, &folder) {
                    Some(place) => remember(&mut folder, place, options)?,
                    None => return Err(error.into()),
                }
            }
            Err(Failure::Sync(error)) => return Err(error.into()),
            Err(Failure::Command(error)) => return Err(error),
        }
    }
}

/// Opens a session, works once, and remembers which stores the log has.
fn attempt<T>(
    context: &Context<'_>,
    driver: &Driver,
    folder: &mut Folder,
    options: SessionOptions,
    observer: Option<Observer>,
    work: &mut impl AsyncFnMut(&mut Engine) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let mut session = Session::open(context, driver, folder, options)?;
    if let Some(observer) = observer {
        session.engine.observe(observer);
    }
    let slots = session.settling.slots.as_deref();
    let working = work(&mut session.engine);
    let done = match slots {
        Some(slots) => driver.run(slots.beside(working)),
        None => driver.run(working),
    };
    if options.access != Access::Look {
        session.settle(context, driver, folder)?;
    }
    if let (Some(membership), Place::Stored(stored)) = (&session.settling.membership, &folder.place)
    {
        let stand = membership.stand();
        if stand.version > stored.version {
            let place = stored.after(stand);
            remember(folder, place, options)?;
        }
    }
    done
}

/// Remembers the stores that the workspace has, for the next time that the folder is opened; whoever only looks, for now.
fn remember(folder: &mut Folder, place: StoredPlace, options: SessionOptions) -> Result<()> {
    match options.access {
        Access::Look => {
            folder.place = Place::Stored(place);
            Ok(())
        }
        _ => folder.set_place(Place::Stored(place)),
    }
}

/// Does what the exchange of stores has left to be done, in case that the device which did it cannot.
fn hand_over(context: &Context<'_>, driver: &Driver, folder: &Folder, options: SessionOptions) {
    if options.access == Access::Look || !options.hands_over {
        return;
    }
    if let Err(error) = handover::complete(context, driver, folder, 0) {
        let cause = error.cause.unwrap_or(error.headline);
        context.ui.note(format!("the other stores do not have the whole history yet: {cause}"));
    }
}

/// Tells whether an error says that stores do not answer, or are not what they were: perhaps there are others by now.
pub(crate) fn is_out_of_reach(error: &SyncError) -> bool {
    use commit_log::CommitLogError;
    match error {
        SyncError::Log(error) => matches!(
            error,
            CommitLogError::Unreachable { .. }
                | CommitLogError::NotCarriedOver { .. }
                | CommitLogError::Storage(_)
        ),
        SyncError::Storage(_) => true,
        _ => false,
    }
}

impl Session {
    /// Gives every store what it was too slow for, unless somebody wants the program to end.
    fn settle(&self, context: &Context<'_>, driver: &Driver, folder: &Folder) -> Result<()> {
        let Settling { slots, pool: Some(pool), .. } = &self.settling else { return Ok(()) };
        let settle = async {
            if let Some(slots) = slots {
                // The order of changes is safe already; a store that hangs is not waited for.
                let patience = tokio::time::sleep(SETTLING_MAX);
                tokio::select! {
                    () = slots.settle() => {}
                    () = patience => {}
                }
            }
            pool.settle().await
        };
        let settled = driver.run(async {
            tokio::select! {
                backlog = settle => backlog,
                _ = driver.interrupts.wait() => pool.backlog(),
            }
        });
        let owed = match settled.running {
            0 => settled.owed,
            _ => pool.memory().owed,
        };
        if !owed.is_empty() {
            let objects = counted(owed.len() as u64, "object has", "objects have");
            context.ui.note(format!(
                "{objects} fewer copies than wanted, because a store did not take them; the next sync or \
                 `syncline check --repair` adds them once it does"
            ));
        }
        match slots {
            Some(slots) => {
                let run = (&self.settling.attendance, context.clock.now());
                store_memory::remember(folder, slots, pool, run)
            }
            None => Ok(()),
        }
    }

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
        let (device, device_name) = device(context, &folder.place)?;
        let keys = sealed::keys_of_device(context, driver, folder)?;
        let (environment, settling) =
            driver.within(|| environment(context, folder, keys.as_ref(), threads))?;
        if let Settling { slots: Some(slots), pool: Some(pool), .. } = &settling {
            let is_lasting = options.access != Access::Look;
            driver.within(|| store_memory::recall(folder, slots, pool, is_lasting));
        }
        let engine_options = EngineOptions {
            device,
            device_name,
            allow_mass_delete: options.allow_mass_delete,
            transform: Transform::default(),
            deltas: home.config()?.delta_budget(&folder.genesis.name),
            keys,
        };
        let mut engine = Engine::open(environment, folder.state()?, engine_options)?;
        if let Some(seconds) = home.config()?.send_ahead_s {
            engine.send_ahead_within(Duration::from_secs(seconds));
        }
        if let Place::Stored(stored) = &folder.place {
            engine.set_pool_version(stored.version);
        }
        Ok(Self { engine, settling, _claim: claim })
    }
}

fn threads(context: &Context<'_>) -> Result<usize> {
    let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    Ok(context.home.config()?.threads.unwrap_or(cores).clamp(1, 64).max(2))
}

/// Returns which device proposes commits at a place, and its name.
pub(crate) fn device(context: &Context<'_>, place: &Place) -> Result<(DeviceId, String)> {
    let home = &context.home;
    match place {
        Place::Served { server } => device_of(home, Some(&account_of(home, server)?)),
        Place::Stored(_) => device_of(home, None),
    }
}

/// Returns the same at the server of an account, or without a server.
///
/// # Errors
/// [`Code::File`].
pub(crate) fn device_of(home: &Home, account: Option<&Account>) -> Result<(DeviceId, String)> {
    let mut device = match account {
        Some(account) => {
            let id = account.device_id.parse();
            let id = id.map_err(|_| {
                CommandError::new(Code::File, "the account file holds no device id")
            })?;
            (id, account.device_name.clone())
        }
        None => (home.device_id()?, home.device_name()?),
    };
    let length_max = model::commit::DEVICE_NAME_LENGTH_MAX;
    while device.1.len() > length_max {
        device.1.pop();
    }
    Ok(device)
}

/// Returns the account that this device is signed in to.
///
/// # Errors
/// [`Code::NotSignedIn`].
pub(crate) fn account_of_home(home: &Home) -> Result<Account> {
    home.account()?.ok_or_else(not_signed_in)
}

/// Returns the account at a server.
///
/// # Errors
/// [`Code::NotSignedIn`].
pub(crate) fn account_of(home: &Home, server: &str) -> Result<Account> {
    match home.account()? {
        Some(account) if account.server == server => Ok(account),
        Some(account) => Err(not_signed_in().cause(format!(
            "the folder belongs to {server}, and this device is signed in to {}",
            account.server
        ))),
        None => Err(not_signed_in().cause(format!("the folder belongs to {server}"))),
    }
}

/// What a workspace consists of outside of this device.
pub(crate) struct Reached {
    /// Who orders.
    pub(crate) log: Arc<dyn CommitLog>,
    /// The same, where the devices do that over stores.
    pub(crate) slots: Option<Arc<SlotCommitLog>>,
    /// Over which stores.
    pub(crate) membership: Option<Arc<SettingsMembership>>,
    /// Where packs rest.
    pub(crate) store: Arc<dyn ObjectStore>,
    /// The same, where it is several stores.
    pub(crate) pool: Option<Pool>,
    /// Which of them answer.
    pub(crate) attendance: Attendance,
}

/// Joins the stores of a workspace, each opened when it is first used.
pub(crate) fn open_data(context: &Context<'_>, folder: &Folder, stored: &StoredPlace) -> Pool {
    join(context, stored, &stores::open_pool(&context.home, stored, folder.genesis.workspace()))
}

fn join(
    context: &Context<'_>,
    stored: &StoredPlace,
    stores: &[(StoreRecord, Arc<dyn ObjectStore>)],
) -> Pool {
    let stores = stores.iter().map(|(record, store)| (record.id, store.clone())).collect();
    Pool::new(&stored.pool, stores, context.clock.clone(), PoolOptions::default())
}

/// Returns the newest entry that was folded while the settings of the stores had this version.
fn folded(folder: &Folder, version: u64) -> u64 {
    // Where the database cannot be read the log is.
    let Ok(state) = folder.state() else { return 0 };
    let known = match state.node(&NodeId::POOL) {
        Ok(node) => node.map_or(0, |node| node.version),
        Err(_) => return 0,
    };
    let head = state.head().ok().flatten().filter(|_| known == version);
    head.map_or(0, |head| head.seq)
}

/// Opens the log and the store of a folder's workspace; nothing is sent yet. Without its keys, the log of a sealed workspace is
/// read as far as its stores do not change.
///
/// # Errors
/// [`CommandError`].
pub(crate) fn coordinator(
    context: &Context<'_>,
    folder: &Folder,
    keys: Option<&DeviceKeys>,
) -> Result<Reached> {
    let (genesis, clock) = (folder.genesis.clone(), context.clock.clone());
    let clock: Arc<dyn Clock> = clock;
    match &folder.place {
        Place::Stored(stored) => {
            let workspace = genesis.workspace();
            let attendance = Attendance::default();
            let attended = |(record, store): (StoreRecord, Arc<dyn ObjectStore>)| {
                let store = attendance.attend(&record.name, Way::Data, store);
                (record, store)
            };
            let stores = stores::open_pool(&context.home, stored, workspace);
            let stores: Vec<_> = stores.into_iter().map(attended).collect();
            let random: Arc<dyn Random> = context.random.clone();
            let keys = match (genesis.mode.sealed(), keys) {
                (Some(_), None) => None,
                (_, keys) => Some(WorkspaceKeys::open(&genesis, keys.cloned(), random.clone())?),
            };
            let can_check = keys.as_ref().is_some_and(WorkspaceKeys::is_sealed);
            if stored.pool.faults == FaultModel::Byzantine && !can_check {
                return Err(sealed::nothing_can_be_checked());
            }
            let clock_here = context.clock.clone();
            let opener =
                WorkspaceStores::new(&context.home, workspace, stored, clock_here, keys, &stores)
                    .attended(attendance.clone());
            let membership = SettingsMembership::new(Arc::new(opener), stored.stand());
            let membership = Arc::new(membership.with_known(folded(folder, stored.version)));
            let means = Means { clock, random };
            let log = Arc::new(SlotCommitLog::over(membership.clone(), means, genesis));
            // What was always one store needs nobody to choose among several.
            let (store, pool) = match &stores[..] {
                [(_, store)] if stored.version == 0 => (store.clone(), None),
                _ => {
                    // The same handles as the log's: a store is connected to once.
                    let pool = join(context, stored, &stores);
                    (Arc::new(pool.clone()) as Arc<dyn ObjectStore>, Some(pool))
                }
            };
            Ok(Reached {
                log: log.clone(),
                slots: Some(log),
                membership: Some(membership),
                store,
                pool,
                attendance,
            })
        }
        Place::Served { server } => {
            let account = account_of(&context.home, server)?;
            let store = ServerClient::of_account(&account)?.store(genesis.workspace())?;
            let connection = live_connection(context, account)?;
            let log = ServedCommitLog::with_genesis(connection, clock, genesis);
            Ok(Reached {
                log: Arc::new(log),
                slots: None,
                membership: None,
                store,
                pool: None,
                attendance: Attendance::default(),
            })
        }
    }
}

/// Returns the live connection to the server of an account; nothing is sent yet.
///
/// # Errors
/// [`Code::Usage`] where its address is none.
pub(crate) fn live_connection(
    context: &Context<'_>,
    account: Account,
) -> Result<Arc<WebSocketConnection>> {
    let options = WebSocketOptions::new(account.server, account.token, context.home.incarnation());
    let clock: Arc<dyn Clock> = context.clock.clone();
    let connection = WebSocketConnection::new(options, clock, context.random.clone());
    let invalid = |error: WebSocketError| CommandError::usage(error.to_string());
    connection.map(Arc::new).map_err(invalid)
}

fn environment(
    context: &Context<'_>,
    folder: &Folder,
    keys: Option<&DeviceKeys>,
    threads: Option<usize>,
) -> Result<(Environment, Settling), Failure> {
    let Reached { log, slots, membership, store, pool, attendance } =
        coordinator(context, folder, keys)?;
    let file_system = NativeFileSystem::open(&folder.root).map_err(SyncError::from)?;
    let environment = Environment {
        file_system: Arc::new(file_system),
        log,
        store: Arc::new(ContentStore::new(store)),
        clock: context.clock.clone(),
        random: context.random.clone(),
        workers: threads.map_or_else(Workers::inline, Workers::start),
    };
    Ok((environment, Settling { slots, membership, pool, attendance }))
}
