//! Adds stores and removes them, those that keep the order of changes, too.
//!
//! *Invariants*: before a change is proposed, stores that join belong to the workspace and have what was decided so far; a
//! store leaves the pool only after everything that it holds is elsewhere, unless it is dead. Between any two steps the
//! command may be cut off: the log says how far it got, and to run it again goes on.

use std::path::Path;
use std::sync::Arc;

use commit_log::serverless::membership::{StoreOpener, are_one_group};
use content::WorkspaceKeys;
use model::{PoolConfig, Random, StoreId, StoreRecord, StoreState};
use storage::{Credentials, ObjectStore};

use super::{find, rebalance, stored_place};
use crate::arguments::BackendAddArguments;
use crate::connect::{Driver, SessionOptions, coordinator, with_engine};
use crate::context::Context;
use crate::error::{Code, CommandError, Result};
use crate::folder::{Folder, Place, StoredPlace};
use crate::handover;
use crate::hints::{self, Said};
use crate::interrupt::stopped;
use crate::membership::WorkspaceStores;
use crate::sealed;
use crate::stores::{self, Backend};
use crate::ui::Symbol;
use crate::workspaces;

/// How often a change is computed anew because another device was faster.
const CHANGES_MAX: u32 = 5;

/// Adds a store.
pub(super) fn add(
    context: &Context<'_>,
    folder: &Folder,
    arguments: &BackendAddArguments,
) -> Result<u8> {
    context.no_dry_run("backend add")?;
    let known = stored_place(folder)?;
    if known.pool.store_named(&arguments.name).is_some() {
        return add_again(context, folder, known, &arguments.name);
    }
    let credentials = match &arguments.credentials {
        Some(file) => Credentials::read_file(file)?,
        None => Credentials::none(),
    };
    let backend = Backend {
        credentials: context.home.signed_in(&arguments.url, credentials.clone()),
        ..Backend::new(&arguments.name, &arguments.url)?
    };
    let runtime = context.runtime()?;
    let store = backend.create()?;
    let report = runtime.block_on(stores::abilities(&store))?;
    if !report.may_hold_data() {
        return Err(stores::unfit(&*store, &report));
    }
    let agrees = report.may_take_part_in_agreement() && !arguments.data_only;
    if !agrees && !arguments.data_only {
        context.ui.note(format!(
            "'{}' holds data only: it cannot create an object only where there is none",
            arguments.name
        ));
    }
    let capacity = arguments.capacity.unwrap_or(stores::CAPACITY_DEFAULT);
    let mut record = StoreRecord { agrees, ..backend.record(capacity) };
    record.id = runtime.block_on(join(context, folder, known, &store, record.id))?;
    drop(runtime);
    context.home.set_credentials(record.id, &credentials)?;
    change_pool(context, folder, &[], |pool| {
        if pool.store(record.id).is_none() {
            pool.stores.push(record.clone());
            pool.stores.sort_by_key(|store| store.id);
        }
        Ok(())
    })?;
    let what = if agrees { "data, and part in the order of changes," } else { "data" };
    context.ui.say(Symbol::Done, format!("'{}' takes {what} from now on", arguments.name));
    rebalance(context, &Folder::locate(&context.home, &folder.root)?)
}

/// Goes on where adding a store was cut off; otherwise the name is taken.
fn add_again(
    context: &Context<'_>,
    folder: &Folder,
    known: &StoredPlace,
    name: &str,
) -> Result<u8> {
    if known.earlier.is_none() {
        let headline = format!("a store is called '{name}' already");
        return Err(CommandError::new(Code::Taken, headline)
            .state("nothing was changed")
            .help("syncline backend rebalance", "goes on where adding it was cut off"));
    }
    let driver = Driver::start(context)?;
    handover::complete(context, &driver, folder, 0)?;
    drop(driver);
    context.ui.say(Symbol::Done, format!("'{name}' is in use from now on"));
    rebalance(context, &Folder::locate(&context.home, &folder.root)?)
}

/// Makes a store one of the workspace, and returns its identity. A store that was one before stays what it was; it has kept
/// what it said then.
pub(super) async fn join(
    context: &Context<'_>,
    folder: &Folder,
    known: &StoredPlace,
    store: &Arc<dyn ObjectStore>,
    new: StoreId,
) -> Result<StoreId> {
    let inside = stores::workspace_store(store.clone(), folder.genesis.workspace());
    let identity = workspaces::store_identity(&*inside).await?.unwrap_or(new);
    if known.pool.identified(identity).is_some() {
        let headline = format!("the {} is in the pool of this workspace already", store.describe());
        return Err(CommandError::new(Code::Taken, headline).state("nothing was changed"));
    }
    workspaces::found_store(store, identity, &folder.genesis).await?;
    if folder.genesis.mode.sealed().is_some() {
        let keys = sealed::newest_keys(&sealed::stores_of(&context.home, folder)?).await?;
        sealed::put_keys(&vec![inside], &keys).await?;
    }
    if !workspaces::name_store(store, &folder.genesis).await? {
        context.ui.note(format!(
            "the {} has another workspace called '{}'; there this one is found by its id, {}",
            store.describe(),
            folder.genesis.name,
            folder.genesis.workspace()
        ));
    }
    Ok(identity)
}

/// Goes on in the stores to which one of them leads.
pub(super) fn find_stores(
    context: &Context<'_>,
    mut folder: Folder,
    url: &str,
    credentials: Option<&Path>,
) -> Result<u8> {
    context.no_dry_run("backend find")?;
    let stored = stored_place(&folder)?.clone();
    let credentials = match credentials {
        Some(file) => Credentials::read_file(file)?,
        None => Credentials::none(),
    };
    let signed_in = context.home.signed_in(url, credentials.clone());
    let backend = Backend { credentials: signed_in, ..Backend::new("store", url)? };
    let inside = stores::workspace_store(backend.open()?, folder.genesis.workspace());
    let (identity, said) = context.runtime()?.block_on(async {
        let identity = workspaces::store_identity(&*inside).await?;
        Ok::<_, CommandError>((identity, hints::ask(&*inside, &folder.genesis).await?))
    })?;
    if let Said { newest: None, refused: Some(reason) } = &said {
        let doubt = format!("the {} is not believed: {reason}", inside.describe());
        return Err(hints::refused(&[doubt]).state("nothing was changed"));
    }
    let (Some(identity), Some((version, hint))) = (identity, said.newest) else {
        let headline = format!("the {} does not lead to this workspace", inside.describe());
        return Err(CommandError::new(Code::NoSuchWorkspace, headline)
            .state("nothing was changed")
            .help("syncline backend ls", "on a device that goes on, names the stores"));
    };
    if version < stored.version {
        let text = "it tells of older stores than this device knows; these stay";
        context.ui.note(text);
    }
    let signer = hint.seal.as_ref().map(|seal| seal.device);
    let mut place = hints::led_to(&stored, version, hint).unwrap_or(stored);
    let stores: Vec<_> = place.pool.stores.iter().collect();
    context.ui.say(Symbol::Received, hints::led_line(&[url.to_owned()], &stores, signer));
    if let Some(record) = place.pool.identified(identity).cloned() {
        if place.url(&record) != backend.url {
            place.addresses.insert(record.id, backend.url);
        }
        if credentials != Credentials::none() {
            context.home.set_credentials(record.id, &credentials)?;
        }
    }
    folder.set_place(Place::Stored(place))?;
    context.ui.say(Symbol::Done, format!("goes on in {}", folder.place));
    Ok(0)
}

/// Removes a store. One that is `dead` is not read any more; of any other everything is moved first.
pub(super) fn remove(context: &Context<'_>, folder: &Folder, name: &str, dead: bool) -> Result<u8> {
    context.no_dry_run("backend rm")?;
    let known = stored_place(folder)?;
    let record = find(&known.pool, name)?.clone();
    if dead && known.pool.redundancy.losses() == 0 {
        context.ui.confirm(&format!("'{name}' may hold the only copy of something. Go on?"))?;
    }
    if !dead {
        empty_store(context, folder, &record)?;
        let code = rebalance(context, &Folder::locate(&context.home, &folder.root)?)?;
        if code != 0 {
            context.ui.note(format!("'{name}' stays until everything is elsewhere"));
            return Ok(code);
        }
    }
    let folder = Folder::locate(&context.home, &folder.root)?;
    change_pool(context, &folder, std::slice::from_ref(&record), |pool| {
        pool.stores.retain(|store| store.id != record.id);
        Ok(())
    })?;
    context.home.forget_credentials(record.id)?;
    context.home.forget_sign_in(known.url(&record))?;
    context.ui.say(Symbol::Done, format!("'{name}' is not used any more"));
    if !dead {
        context.ui.note(
            "keep what it holds until every device has synced and `syncline check` is content",
        );
    }
    rebalance(context, &Folder::locate(&context.home, &folder.root)?)
}

/// Takes a store out of the agreement, and lets nothing new come into it.
fn empty_store(context: &Context<'_>, folder: &Folder, record: &StoreRecord) -> Result<()> {
    change_pool(context, folder, &[], |pool| {
        for store in pool.stores.iter_mut().filter(|store| store.id == record.id) {
            store.state = StoreState::Draining;
            store.agrees = false;
        }
        Ok(())
    })
    .map(drop)
}

/// Changes the pool for all devices, and returns the one that is in force then. What the change of the stores that agree
/// leaves to be done is done. Stores in `gone` are told, too.
pub(super) fn change_pool(
    context: &Context<'_>,
    folder: &Folder,
    gone: &[StoreRecord],
    change: impl Fn(&mut PoolConfig) -> Result<()>,
) -> Result<PoolConfig> {
    let driver = Driver::start(context)?;
    for _ in 0..CHANGES_MAX {
        let folder = Folder::locate(&context.home, &folder.root)?;
        // One change after the other: what was decided before the last one must lie where the next one begins.
        handover::complete(context, &driver, &folder, 0)?;
        let folder = Folder::locate(&context.home, &folder.root)?;
        let known = stored_place(&folder)?;
        let pool = changed(&known.pool, &change)?;
        let carried = carry_ahead(context, &driver, &folder, &pool)?;
        if !propose(context, &folder, known.version, &change)? {
            continue;
        }
        let folder = Folder::locate(&context.home, &folder.root)?;
        // What was carried ahead lies with the stores of this change, and of no other that came upon it.
        let is_own = stored_place(&folder)?.pool == pool;
        handover::complete(context, &driver, &folder, if is_own { carried } else { 0 })?;
        let folder = Folder::locate(&context.home, &folder.root)?;
        let place = stored_place(&folder)?;
        handover::tell_stores(context, &driver, &folder, place, gone)?;
        return Ok(place.pool.clone());
    }
    let headline = "other devices change the settings of the workspace again and again";
    Err(CommandError::new(Code::SettingsChanged, headline)
        .state("what they have decided is in force; nothing else was changed")
        .help("syncline backend ls", "shows what is in force now"))
}

fn changed(
    current: &PoolConfig,
    change: &impl Fn(&mut PoolConfig) -> Result<()>,
) -> Result<PoolConfig> {
    let mut pool = current.clone();
    change(&mut pool)?;
    pool.check().map_err(|error| {
        CommandError::usage(format!("that makes no pool: {error}"))
            .state("nothing was changed")
            .help("syncline backend add NAME URL", "adds a store first")
    })?;
    Ok(pool)
}

/// Gives the stores that will agree what was decided so far, so that little is left to be done after the change. Returns up to
/// which entry.
fn carry_ahead(
    context: &Context<'_>,
    driver: &Driver,
    folder: &Folder,
    pool: &PoolConfig,
) -> Result<u64> {
    let known = stored_place(folder)?;
    if are_one_group(&known.pool, pool) {
        return Ok(0);
    }
    let keys = sealed::keys_of_device(context, driver, folder)?;
    let reached = driver.within(|| coordinator(context, folder, keys.as_ref()))?;
    let Some(log) = reached.slots else { return Ok(0) };
    let (clock, workspace) = (context.clock.clone(), folder.genesis.workspace());
    let random: Arc<dyn Random> = context.random.clone();
    let keys = WorkspaceKeys::open(&folder.genesis, keys, random)?;
    let opener = WorkspaceStores::new(&context.home, workspace, known, clock, Some(keys), &[]);
    let heirs = driver.within(|| opener.open(pool));
    driver.run(async {
        tokio::select! {
            carried = log.carry_over(&heirs, 0, u64::MAX) => Ok(carried?),
            code = driver.interrupts().wait() => Err(stopped(code, "the same command")),
        }
    })
}

/// Proposes the change on the ground of a version of the pool; false where another one is in force by now.
fn propose(
    context: &Context<'_>,
    folder: &Folder,
    base: u64,
    change: &impl Fn(&mut PoolConfig) -> Result<()>,
) -> Result<bool> {
    let known = stored_place(folder)?.pool.clone();
    let mut refused = None;
    let options = SessionOptions { hands_over: false, ..SessionOptions::CHANGE_BESIDE_WATCH };
    let proposed = with_engine(context, folder, options, None, async |engine| {
        engine.settle_proposals().await?;
        let (version, current) = engine.pool()?.unwrap_or((0, known.clone()));
        if version != base {
            return Ok(false);
        }
        match changed(&current, change) {
            Err(error) => refused = Some(error),
            Ok(pool) if pool == current => {}
            Ok(pool) => {
                engine.propose_pool(version, &pool).await?;
            }
        }
        Ok(true)
    })?;
    refused.map_or(Ok(proposed), Err)
}
