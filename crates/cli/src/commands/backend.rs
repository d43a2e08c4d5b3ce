//! `syncline backend`: the stores of a workspace without a server.

mod exchange;
mod login;
pub(crate) mod renew;

use commit_log::serverless::rounds::Quorums;
use model::pool::FaultModel;
use model::{PoolConfig, StoreRecord, StoreState};
use serde_json::{Value, json};

use crate::arguments::{BackendCommand, BackendSetArguments};
use crate::context::Context;
use crate::error::{Code, CommandError, Result};
use crate::folder::{Folder, Place, StoredPlace};
use crate::stores::{self, Backend};
use crate::ui::{Paint, Symbol};

pub(crate) mod rebalance;

/// Runs the command.
pub(crate) fn run(context: &Context<'_>, command: &BackendCommand) -> Result<u8> {
    if let BackendCommand::Login(arguments) = command {
        return login::run(context, arguments);
    }
    let here = std::path::Path::new(".");
    let folder = Folder::locate(&context.home, here)?;
    match command {
        BackendCommand::Ls => {
            let stored = stored_place(&folder)?;
            list(context, &folder, stored);
            Ok(0)
        }
        BackendCommand::Check { name } => check(context, &folder, name.as_deref()),
        BackendCommand::Add(arguments) => exchange::add(context, &folder, arguments),
        BackendCommand::Rm { name, dead, .. } => exchange::remove(context, &folder, name, *dead),
        BackendCommand::Renew { name } => renew::run(context, &folder, name),
        BackendCommand::Find { url, credentials } => {
            exchange::find_stores(context, folder, url, credentials.as_deref())
        }
        BackendCommand::Set(arguments) => set(context, folder, arguments),
        BackendCommand::Rebalance(arguments) => {
            context.no_dry_run("backend rebalance")?;
            rebalance::run(context, &folder, stored_place(&folder)?, arguments.take_over)
        }
        BackendCommand::Login(_) => unreachable!("it needs no folder and was taken before"),
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
        "liars": liars(&stored.pool),
        "settings_version": stored.version,
        "agree_since": stored.since,
        "is_exchange_finished": stored.earlier.is_none(),
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
    if stored.pool.faults == FaultModel::Byzantine {
        let (agreeing, liars) = (stored.pool.group().count(), liars(&stored.pool));
        context.ui.answer(format!(
            "of {agreeing} stores that keep the order of changes, {liars} may lie"
        ));
    }
    if stored.earlier.is_some() {
        context.ui.note("the exchange of stores is not finished; the next sync goes on with it");
    }
}

/// Returns how many stores may lie about the order of changes.
fn liars(pool: &PoolConfig) -> usize {
    Quorums::new(pool.group().count(), pool.faults).liars
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
        let was_emptied = runtime.block_on(renew::was_emptied(context, folder, store));
        if was_emptied {
            context.ui.note(format!(
                "'{0}' was emptied or replaced, and counts for nothing; `syncline backend renew {0}` lets it begin anew",
                store.name
            ));
        }
        let paint = if was_emptied { Paint::Bad } else { paint };
        is_well &= paint == Paint::Good;
        if !context.ui.is_json() {
            context.ui.answer(format!("{}:", context.ui.paint(paint, &store.name)));
            for line in &words {
                context.ui.answer(format!("  {line}"));
            }
        }
        lines.push(json!({
            "name": store.name,
            "is_well": paint == Paint::Good,
            "was_emptied": was_emptied,
            "words": words,
        }));
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
        let credentials = context.home.signed_in(url, context.home.credentials(store.id)?);
        let backend = Backend { credentials, ..Backend::new(name, url)? };
        // A wrong address would not be seen before something is missing.
        backend.open()?;
        stored.addresses.insert(store.id, backend.url);
        folder.set_place(Place::Stored(stored))?;
        context.ui.say(Symbol::Done, format!("this device reaches '{name}' at {url}"));
        return Ok(0);
    }
    let changed = exchange::change_pool(context, &folder, &[], |pool| {
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

/// Brings everything home, and removes what is stored twice then.
fn rebalance(context: &Context<'_>, folder: &Folder) -> Result<u8> {
    context.no_dry_run("backend rebalance")?;
    rebalance::run(context, folder, stored_place(folder)?, false)
}
