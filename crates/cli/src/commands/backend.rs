//! `syncline backend`: the stores of a workspace without a server.

use bytes::Bytes;
use futures_util::future::join_all;
use model::codec::encode_message;
use model::{PoolConfig, StoreRecord, StoreState};
use serde_json::{Value, json};
use storage::pool::repair::CarryOut;
use storage::{Credentials, ObjectKey, PutMode};

use crate::arguments::{BackendAddArguments, BackendCommand, BackendSetArguments};
use crate::connect::{SessionOptions, open_data, with_engine};
use crate::context::Context;
use crate::error::{Code, CommandError, Result};
use crate::folder::{Folder, Place, StoredPlace};
use crate::stores::{self, Backend};
use crate::text::counted;
use crate::ui::{Paint, Symbol};
use crate::workspaces;

/// How many objects that could not be moved are named.
const FAILURES_SHOWN: usize = 10;

/// Runs the command.
pub(crate) fn run(context: &Context<'_>, command: &BackendCommand) -> Result<u8> {
    let here = std::path::Path::new(".");
    let folder = Folder::locate(&context.home, here)?;
    match command {
        BackendCommand::Ls => {
            let stored = stored_place(&folder)?;
            list(context, &folder, stored);
            Ok(0)
        }
        BackendCommand::Check { name } => check(context, &folder, name.as_deref()),
        BackendCommand::Add(arguments) => add(context, &folder, arguments),
        BackendCommand::Rm { name, drain } => remove(context, &folder, name, *drain),
        BackendCommand::Set(arguments) => set(context, folder, arguments),
        BackendCommand::Rebalance => rebalance(context, &folder),
    }
}

/// Returns the stores of a folder's workspace.
fn stored_place(folder: &Folder) -> Result<&StoredPlace> {
    match &folder.place {
        Place::Stored(stored) => Ok(stored),
        Place::Served { server } => Err(CommandError::usage(format!(
            "'{}' lives on {server}, not in stores of its own",
            folder.genesis.name
        ))),
    }
}

fn list(context: &Context<'_>, folder: &Folder, stored: &StoredPlace) {
    let lines: Vec<Value> = stored.pool.stores.iter().map(|store| line_of(stored, store)).collect();
    context.ui.json(&json!({
        "schema": "syncline.backends/1",
        "workspace": folder.genesis.name,
        "redundancy": stored.pool.redundancy.to_string(),
        "settings_version": stored.version,
        "stores": lines,
    }));
    if context.ui.is_json() {
        return;
    }
    let width = stored.pool.stores.iter().map(|store| store.name.len()).max().unwrap_or(0);
    for store in &stored.pool.stores {
        let mut words = vec![format!("capacity {}", store.capacity)];
        words.push(if store.agrees { "data and order" } else { "data only" }.to_owned());
        if store.state == StoreState::Draining {
            words.push("is being emptied".to_owned());
        }
        context.ui.answer(format!(
            "{:width$}  {}  {}",
            store.name,
            stored.url(store),
            context.ui.paint(Paint::Dim, &words.join(", ")),
        ));
    }
    context.ui.answer(format!("keeps {}", kept(&stored.pool)));
}

/// Says what a pool keeps and survives.
fn kept(pool: &PoolConfig) -> String {
    let stores = match pool.redundancy.losses() {
        0 => "the loss of no store".to_owned(),
        1 => "the loss of any one store".to_owned(),
        losses => format!("the loss of any {losses} stores"),
    };
    format!("{} of everything: data survives {stores}", pool.redundancy)
}

fn line_of(stored: &StoredPlace, store: &StoreRecord) -> Value {
    json!({
        "name": store.name,
        "id": store.id.to_string(),
        "url": stored.url(store),
        "capacity": store.capacity,
        "is_draining": store.state == StoreState::Draining,
        "agrees": store.agrees,
    })
}

fn check(context: &Context<'_>, folder: &Folder, name: Option<&str>) -> Result<u8> {
    let stored = stored_place(folder)?;
    let meant: Vec<&StoreRecord> = match name {
        Some(name) => vec![find(&stored.pool, name)?],
        None => stored.pool.stores.iter().collect(),
    };
    let runtime = context.runtime()?;
    let mut lines = Vec::new();
    let mut is_well = true;
    for store in meant {
        let opened = stores::open_store(&context.home, stored, store);
        let probed = runtime.block_on(stores::abilities(&opened));
        let (paint, words) = match probed {
            Ok(report) if report.may_hold_data() => (Paint::Good, report.words()),
            Ok(report) => (Paint::Bad, report.words()),
            Err(error) => (Paint::Bad, vec![error.headline]),
        };
        is_well &= paint == Paint::Good;
        if !context.ui.is_json() {
            context.ui.answer(format!("{}:", context.ui.paint(paint, &store.name)));
            for line in &words {
                context.ui.answer(format!("  {line}"));
            }
        }
        lines.push(json!({"name": store.name, "is_well": paint == Paint::Good, "words": words}));
    }
    context.ui.json(&json!({"schema": "syncline.backend-check/1", "stores": lines}));
    Ok(if is_well { 0 } else { Code::StoreUnfit.exit() })
}

fn find<'a>(pool: &'a PoolConfig, name: &str) -> Result<&'a StoreRecord> {
    pool.store_named(name).ok_or_else(|| {
        CommandError::usage(format!("no store of this workspace is called '{name}'"))
            .help("syncline backend ls", "lists them")
    })
}

fn set(context: &Context<'_>, mut folder: Folder, arguments: &BackendSetArguments) -> Result<u8> {
    context.no_dry_run("backend set")?;
    if let (true, Some(name), Some(url)) = (arguments.here, &arguments.name, &arguments.url) {
        let mut stored = stored_place(&folder)?.clone();
        let store = find(&stored.pool, name)?;
        let credentials = context.home.credentials(store.id)?;
        let backend = Backend { credentials, ..Backend::new(name, url)? };
        // A wrong address would not be seen before something is missing.
        backend.open()?;
        stored.addresses.insert(store.id, backend.url);
        folder.set_place(Place::Stored(stored))?;
        context.ui.say(Symbol::Done, format!("this device reaches '{name}' at {url}"));
        return Ok(0);
    }
    let changed = change_pool(context, &folder, |pool| {
        if let Some(name) = &arguments.name {
            find(pool, name)?;
            let store = pool.stores.iter_mut().find(|store| store.name == *name);
            let store = store.expect("it was just found");
            if let Some(url) = &arguments.url {
                store.url = Backend::new(name, url)?.url;
            }
            store.capacity = arguments.capacity.unwrap_or(store.capacity);
        }
        if arguments.replicas.is_some() || arguments.erasure.is_some() {
            let (erasure, count) = (arguments.erasure.as_deref(), pool.stores.len());
            pool.redundancy = stores::redundancy_of(arguments.replicas, erasure, count)?;
        }
        Ok(())
    })?;
    context.ui.say(Symbol::Done, format!("keeps {}", kept(&changed)));
    Ok(0)
}

/// Adds a store for data. The stores that keep the order of changes stay those with which the workspace began: to change
/// them takes more than a commit (`docs/known-defects.md`).
fn add(context: &Context<'_>, folder: &Folder, arguments: &BackendAddArguments) -> Result<u8> {
    context.no_dry_run("backend add")?;
    let known = stored_place(folder)?;
    if known.pool.store_named(&arguments.name).is_some() {
        let headline = format!("a store is called '{}' already", arguments.name);
        return Err(CommandError::new(Code::Taken, headline).state("nothing was changed"));
    }
    let credentials = match &arguments.credentials {
        Some(file) => Credentials::read_file(file)?,
        None => Credentials::none(),
    };
    let backend = Backend {
        credentials: credentials.clone(),
        ..Backend::new(&arguments.name, &arguments.url)?
    };
    let capacity = arguments.capacity.unwrap_or(stores::CAPACITY_DEFAULT);
    let record = StoreRecord { agrees: false, ..backend.record(capacity) };
    let runtime = context.runtime()?;
    let store = backend.create()?;
    let report = runtime.block_on(stores::abilities(&store))?;
    if !report.may_hold_data() {
        return Err(stores::unfit(&*store, &report));
    }
    let founded =
        workspaces::found_store(&store, record.id, &known.pool, known.version, &folder.genesis);
    runtime.block_on(founded)?;
    context.home.set_credentials(record.id, &credentials)?;
    change_pool(context, folder, |pool| {
        pool.stores.push(record.clone());
        pool.stores.sort_by_key(|store| store.id);
        Ok(())
    })?;
    context.ui.say(Symbol::Done, format!("'{}' takes data from now on", arguments.name));
    rebalance(context, &Folder::locate(&context.home, &folder.root)?)
}

/// Removes a store that only holds data.
fn remove(context: &Context<'_>, folder: &Folder, name: &str, drains: bool) -> Result<u8> {
    context.no_dry_run("backend rm")?;
    let known = stored_place(folder)?;
    let id = find(&known.pool, name)?.id;
    if known.pool.store(id).is_some_and(|store| store.agrees) {
        let headline =
            format!("'{name}' keeps the order of changes; removing it is not in this release");
        return Err(CommandError::new(Code::NotInThisRelease, headline)
            .state("nothing was changed")
            .help(
                "syncline check --repair",
                "brings the data of a lost store back, once it is replaced",
            ));
    }
    if !drains && known.pool.redundancy.losses() == 0 {
        return Err(CommandError::usage(format!("'{name}' may hold the only copy of something"))
            .help(format!("syncline backend rm {name} --drain"), "empties it first"));
    }
    if drains {
        change_pool(context, folder, |pool| {
            for store in pool.stores.iter_mut().filter(|store| store.id == id) {
                store.state = StoreState::Draining;
            }
            Ok(())
        })?;
        let code = rebalance(context, &Folder::locate(&context.home, &folder.root)?)?;
        if code != 0 {
            context.ui.note(format!("'{name}' stays until everything is elsewhere"));
            return Ok(code);
        }
    }
    let folder = Folder::locate(&context.home, &folder.root)?;
    change_pool(context, &folder, |pool| {
        pool.stores.retain(|store| store.id != id);
        Ok(())
    })?;
    context.home.forget_credentials(id)?;
    context.ui.say(Symbol::Done, format!("'{name}' is not used any more"));
    context
        .ui
        .note("keep what it holds until every device has synced and `syncline check` is content");
    rebalance(context, &Folder::locate(&context.home, &folder.root)?)
}

/// Writes every piece that a home lacks. Nothing is removed: another device may still follow an older pool.
fn rebalance(context: &Context<'_>, folder: &Folder) -> Result<u8> {
    context.no_dry_run("backend rebalance")?;
    let stored = stored_place(folder)?;
    let runtime = context.runtime()?;
    let pool = {
        let _guard = runtime.enter();
        open_data(context, folder, stored)
    };
    let (outcome, unseen) = runtime.block_on(async {
        let inventory = pool.inventory().await;
        let plan = pool.plan_rebalance(&inventory).without_removals();
        let outcome = pool.carry_out(&plan, CarryOut::default()).await;
        (outcome, inventory.unseen().cloned().collect::<Vec<_>>())
    });
    context.ui.json(&json!({
        "schema": "syncline.rebalance/1",
        "type": "summary",
        "written": outcome.written,
        "bytes": outcome.bytes,
        "failed": outcome.failed.len(),
        "unseen_stores": unseen.iter().map(|unseen| &unseen.name).collect::<Vec<_>>(),
    }));
    for unseen in &unseen {
        context.ui.note(format!("'{}' does not answer: {}", unseen.name, unseen.reason));
    }
    for (object, reason) in outcome.failed.iter().take(FAILURES_SHOWN) {
        context.ui.note(format!("{object}: {reason}"));
    }
    let pieces = counted(outcome.written, "piece", "pieces");
    context.ui.say(Symbol::Done, format!("wrote {pieces} where they belong"));
    Ok(if outcome.failed.is_empty() && unseen.is_empty() { 0 } else { 3 })
}

/// Changes the pool for all devices, and returns the one that is in force then.
fn change_pool(
    context: &Context<'_>,
    folder: &Folder,
    change: impl Fn(&mut PoolConfig) -> Result<()>,
) -> Result<PoolConfig> {
    let known = stored_place(folder)?.clone();
    // What is typed wrong shows before anything is asked.
    change(&mut known.pool.clone())?;
    let mut refused = None;
    let options = SessionOptions::CHANGE_BESIDE_WATCH;
    let (version, pool) = with_engine(context, folder, options, None, async |engine| {
        engine.fetch().await?;
        let (version, current) = engine.pool()?.unwrap_or((0, known.pool.clone()));
        let mut pool = current.clone();
        let checked = change(&mut pool).and_then(|()| {
            pool.check()
                .map_err(|error| CommandError::usage(format!("that makes no pool: {error}")))
        });
        match checked {
            Err(error) => refused = Some(error),
            Ok(()) if pool == current => {}
            Ok(()) => return Ok((engine.propose_pool(version, &pool).await?, pool)),
        }
        Ok((version, pool))
    })?;
    if let Some(error) = refused {
        return Err(error);
    }
    let place = StoredPlace { pool, version, addresses: known.addresses };
    context.runtime()?.block_on(tell_stores(context, folder, &place));
    Ok(place.pool)
}

/// Leaves the pool in its stores, so that a new device finds the newest one; what a store does not hear the log tells.
async fn tell_stores(context: &Context<'_>, folder: &Folder, place: &StoredPlace) {
    let stores = stores::open_pool(&context.home, place, folder.genesis.workspace());
    let key = ObjectKey::pool(place.version);
    let bytes = Bytes::from(encode_message(&place.pool));
    let puts = stores.iter().map(|(_, store)| store.put(&key, bytes.clone(), PutMode::Overwrite));
    for ((record, _), result) in stores.iter().zip(join_all(puts).await) {
        if let Err(error) = result {
            context.ui.note(format!("'{}' was not told: {error}", record.name));
        }
    }
}
