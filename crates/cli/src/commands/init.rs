//! `syncline init`: makes a folder the first one of a new workspace.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use content::keyring::SecretKey;
use content::{DeviceKeys, KeyObject, NewWorkspace};
use futures_util::future::try_join_all;
use model::entry::check_workspace_name;
use model::environment::random_bytes;
use model::pool::FaultModel;
use model::{Clock, Genesis, Mode, Redundancy};
use serde_json::json;
use sync::file_system::FileSystem;
use sync::file_system::native::NativeFileSystem;

use crate::arguments::InitArguments;
use crate::claim::HomeClaim;
use crate::connect;
use crate::context::Context;
use crate::error::{Code, CommandError, Result, not_signed_in};
use crate::folder::{Folder, Place, StoredPlace, path_text, read_identity};
use crate::home::{Account, file_error};
use crate::sealed;
use crate::server_client::ServerClient;
use crate::stores::{self, Backend, Secrets};
use crate::text::quoted;
use crate::ui::Symbol;
use crate::workspaces::{self, NewStore};

/// Runs the command.
pub(crate) fn run(context: &Context<'_>, arguments: &InitArguments) -> Result<u8> {
    refuse_copies_without_stores(arguments)?;
    let secrets = Secrets::of_flags(&arguments.credentials)?;
    let backends = Backend::of_flags(&arguments.backends, &secrets, &context.home)?;
    let (erasure, count) = (arguments.erasure.as_deref(), backends.len());
    let redundancy = stores::redundancy_of(arguments.replicas, erasure, count)?;
    let kept = (redundancy, faults_of(arguments));
    let account = context.home.account()?;
    if backends.is_empty() && account.is_none() {
        return Err(not_signed_in());
    }
    // Whether the pool can be is known before anything is touched.
    let records: Vec<_> =
        backends.iter().map(|backend| backend.record(stores::CAPACITY_DEFAULT)).collect();
    if !backends.is_empty() {
        stores::new_pool(records.clone(), kept)?;
    }
    let root = prepare_root(context, &arguments.folder)?;
    let name = match &arguments.workspace {
        Some(name) => name.clone(),
        None => folder_name(&root)?,
    };
    check_name(&name)?;
    // In a store everything is sealed unless somebody wants it readable. A server of one's own can do more with what it reads.
    let is_sealed = arguments.sealed || (!backends.is_empty() && !arguments.plain);
    if context.flags.dry_run {
        context.ui.answer(format!("would make {} the workspace '{}'", root.display(), name));
        return Ok(0);
    }
    let made = if is_sealed { Some(new_sealed(context, &name)?) } else { None };
    let genesis = match &made {
        Some(made) => made.genesis.clone(),
        None => Genesis {
            name,
            mode: Mode::Plain,
            created: context.clock.now(),
            content_key: random_bytes(&*context.random),
        },
    };
    let _claim = HomeClaim::alone(&context.home)?;
    let runtime = context.runtime()?;
    let on_server = account.filter(|_| backends.is_empty());
    let mut enrolled = None;
    if let Some(made) = &made {
        let device = connect::device_of(&context.home, on_server.as_ref())?.0;
        let seed = SecretKey::random(&*context.random);
        enrolled = Some(DeviceKeys::enroll(&genesis, &made.unlocked, device, seed)?);
    }
    let place = match on_server {
        Some(account) => {
            let keys = made.as_ref().map(|made| &made.keys);
            runtime.block_on(found_on_server(&account, &genesis, keys))?;
            Place::Served { server: account.server }
        }
        None => {
            let opened = backends.iter().map(Backend::create).collect::<Result<Vec<_>>>()?;
            let keys = made.as_ref().map(|made| &made.keys).zip(enrolled.as_ref());
            let named = records.into_iter().zip(opened);
            let found = found_pool(context, named, kept, (&genesis, keys));
            let stored = runtime.block_on(found)?;
            secrets.keep(&context.home, &stored.pool, &BTreeMap::new())?;
            Place::Stored(stored)
        }
    };
    let folder = bind(context, &root, genesis, place)?;
    if let Some(keys) = &enrolled {
        sealed::keep(&folder, keys)?;
    }
    tell(context, arguments, &folder, made.as_ref());
    Ok(0)
}

fn faults_of(arguments: &InitArguments) -> FaultModel {
    if arguments.stores_may_lie { FaultModel::Byzantine } else { FaultModel::Crash }
}

/// Asks for the passphrase of a new workspace, and makes its keys.
fn new_sealed(context: &Context<'_>, name: &str) -> Result<NewWorkspace> {
    let passphrase = sealed::new_passphrase(context, None)?;
    Ok(NewWorkspace::create(name, context.clock.now(), &passphrase, &*context.random)?)
}

/// Makes the workspace on a server, and its locked keys, without which nobody else could open it.
async fn found_on_server(
    account: &Account,
    genesis: &Genesis,
    keys: Option<&KeyObject>,
) -> Result<()> {
    let client = ServerClient::of_account(account)?;
    client.create_workspace(genesis).await?;
    let Some(keys) = keys else { return Ok(()) };
    let stores = vec![client.store(genesis.workspace())?];
    sealed::put_keys(&stores, keys).await.map(drop)
}

/// Probes the stores and makes the workspace in them.
async fn found_pool(
    context: &Context<'_>,
    named: impl Iterator<Item = NewStore>,
    kept: (Redundancy, FaultModel),
    (genesis, keys): (&Genesis, Option<(&KeyObject, &DeviceKeys)>),
) -> Result<StoredPlace> {
    let mut named: Vec<NewStore> = named.collect();
    let reports = try_join_all(named.iter().map(|(_, store)| stores::abilities(store))).await?;
    for ((record, store), report) in named.iter_mut().zip(reports) {
        record.agrees = report.may_take_part_in_agreement();
        if !report.may_hold_data() {
            return Err(stores::unfit(store, &report));
        }
        if !record.agrees {
            context.ui.note(format!(
                "'{}' holds data only: it cannot create an object only where there is none",
                record.name
            ));
        }
    }
    let agreeing = named.iter().filter(|(record, _)| record.agrees).count();
    if agreeing == 0 {
        let headline = "none of these stores can keep the order of changes";
        return Err(CommandError::new(Code::StoreUnfit, headline)
            .cause("that takes a store which creates an object only where there is none")
            .state("nothing was left in the stores"));
    }
    let records = named.iter().map(|(record, _)| record.clone()).collect();
    let pool = stores::new_pool(records, kept)?;
    workspaces::create_workspace(&named, &pool, genesis, keys).await?;
    Ok(StoredPlace::first(pool))
}

fn tell(
    context: &Context<'_>,
    arguments: &InitArguments,
    folder: &Folder,
    made: Option<&NewWorkspace>,
) {
    let recovery_key = made.map(|made| made.unlocked.keyring.recovery.to_text());
    context.ui.json(&json!({
        "schema": "syncline.init/1",
        "type": "summary",
        "workspace": folder.genesis.name,
        "workspace_id": folder.genesis.workspace().to_string(),
        "folder": folder.root.to_string_lossy(),
        "place": folder.place.to_string(),
        "is_sealed": made.is_some(),
        "recovery_key": recovery_key.as_ref(),
    }));
    context.ui.say(
        Symbol::Done,
        format!(
            "Workspace '{}' made, {}. Its data goes to {}",
            folder.genesis.name,
            if made.is_some() { "end-to-end encrypted" } else { "not encrypted" },
            folder.place
        ),
    );
    if let Some(key) = &recovery_key {
        context.ui.answer(format!("  Recovery key: {key}"));
        context.ui.say(
            Symbol::Attention,
            "Write it down and keep it away from this computer: it opens the workspace when the \
             passphrase is forgotten, and nobody can make another one.",
        );
    }
    let next = quoted(&arguments.folder.to_string_lossy());
    let next = if next == "." { String::new() } else { format!(" {next}") };
    if !context.flags.quiet {
        context.ui.answer(format!("  Next: syncline sync{next}"));
    }
}

fn refuse_copies_without_stores(arguments: &InitArguments) -> Result<()> {
    if arguments.backends.is_empty()
        && (arguments.replicas.is_some() || arguments.erasure.is_some() || arguments.stores_may_lie)
    {
        return Err(CommandError::usage(
            "copies, blocks and stores that may lie are for workspaces in stores",
        )
        .help("--backend NAME=URL", "names a store; several times, several stores"));
    }
    Ok(())
}

/// Makes the folder where it is missing, and makes sure that it is not synced yet.
pub(crate) fn prepare_root(context: &Context<'_>, folder: &Path) -> Result<PathBuf> {
    if !context.flags.dry_run {
        std::fs::create_dir_all(folder).map_err(|error| file_error(folder, &error))?;
    }
    let root = match folder.canonicalize() {
        Ok(root) => root,
        Err(_) if context.flags.dry_run => crate::folder::absolute(folder)?,
        Err(error) => return Err(file_error(folder, &error)),
    };
    path_text(&root)?;
    for outer in root.ancestors() {
        if read_identity(outer)?.is_none() {
            continue;
        }
        // The identity may be left over from another home, which is no reason to refuse a new binding.
        match Folder::locate(&context.home, outer) {
            Ok(known) => {
                let headline = format!("{} is in a synced folder already", root.display());
                return Err(CommandError::new(Code::AlreadySynced, headline)
                    .cause(format!(
                        "{} belongs to the workspace '{}'",
                        known.root.display(),
                        known.genesis.name
                    ))
                    .state("nothing was changed")
                    .help(
                        format!("syncline sync {}", quoted(&path_text(&known.root)?)),
                        "exchanges its changes",
                    ));
            }
            Err(error) if error.code == Code::NotSynced && outer == root => {}
            Err(error) => return Err(error),
        }
    }
    Ok(root)
}

fn folder_name(root: &Path) -> Result<String> {
    let name = root.file_name().and_then(|name| name.to_str());
    name.map(ToOwned::to_owned).ok_or_else(|| {
        CommandError::usage("the folder has no name that a workspace could have")
            .help("--workspace NAME", "names it")
    })
}

pub(crate) fn check_name(name: &str) -> Result<()> {
    check_workspace_name(name).map_err(|reason| {
        CommandError::usage(format!("'{name}' cannot be the name of a workspace: {reason}"))
            .help("--workspace NAME", "gives another one")
    })
}

/// Gives the folder an identity, unless it has one, and remembers where it belongs.
pub(crate) fn bind(
    context: &Context<'_>,
    root: &Path,
    genesis: Genesis,
    place: Place,
) -> Result<Folder> {
    let identity = match read_identity(root)? {
        Some(identity) => identity,
        None => {
            let identity = random_bytes(&*context.random);
            NativeFileSystem::open(root)?.set_root_identity(identity)?;
            identity
        }
    };
    Folder::remember(&context.home, identity, root, genesis, place)
}
