//! `syncline init`: makes a folder the first one of a new workspace.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use futures_util::future::try_join_all;
use model::environment::random_bytes;
use model::{Clock, Genesis, Mode, Redundancy};
use serde_json::json;
use sync::file_system::FileSystem;
use sync::file_system::native::NativeFileSystem;

use crate::arguments::InitArguments;
use crate::claim::HomeClaim;
use crate::context::Context;
use crate::error::{Code, CommandError, Result, not_signed_in};
use crate::folder::{Folder, Place, StoredPlace, path_text, read_identity};
use crate::home::file_error;
use crate::server_client::ServerClient;
use crate::stores::{self, Backend, Secrets};
use crate::text::quoted;
use crate::ui::Symbol;
use crate::workspaces::{self, NewStore};

/// Runs the command.
pub(crate) fn run(context: &Context<'_>, arguments: &InitArguments) -> Result<u8> {
    refuse_later_releases(arguments)?;
    let secrets = Secrets::of_flags(&arguments.credentials)?;
    let backends = Backend::of_flags(&arguments.backends, &secrets)?;
    let (erasure, count) = (arguments.erasure.as_deref(), backends.len());
    let redundancy = stores::redundancy_of(arguments.replicas, erasure, count)?;
    let account = context.home.account()?;
    if backends.is_empty() && account.is_none() {
        return Err(not_signed_in());
    }
    // Whether the pool can be is known before anything is touched.
    let records: Vec<_> =
        backends.iter().map(|backend| backend.record(stores::CAPACITY_DEFAULT)).collect();
    if !backends.is_empty() {
        stores::new_pool(records.clone(), redundancy)?;
    }
    let root = prepare_root(context, &arguments.folder)?;
    let name = match &arguments.workspace {
        Some(name) => name.clone(),
        None => folder_name(&root)?,
    };
    check_name(&name)?;
    let genesis = Genesis {
        name,
        mode: Mode::Plain,
        created: context.clock.now(),
        content_key: random_bytes(&*context.random),
    };
    if context.flags.dry_run {
        context.ui.answer(format!(
            "would make {} the workspace '{}'",
            root.display(),
            genesis.name
        ));
        return Ok(0);
    }
    let _claim = HomeClaim::alone(&context.home)?;
    let runtime = context.runtime()?;
    let place = match &account {
        Some(account) if backends.is_empty() => {
            let client = ServerClient::of_account(account)?;
            runtime.block_on(client.create_workspace(&genesis))?;
            Place::Served { server: account.server.clone() }
        }
        _ => {
            let opened = backends.iter().map(Backend::create).collect::<Result<Vec<_>>>()?;
            let found = found_pool(context, records.into_iter().zip(opened), redundancy, &genesis);
            let stored = runtime.block_on(found)?;
            secrets.keep(&context.home, &stored.pool, &BTreeMap::new())?;
            Place::Stored(stored)
        }
    };
    let folder = bind(context, &root, genesis, place)?;
    tell(context, arguments, &folder)
}

/// Probes the stores and makes the workspace in them.
async fn found_pool(
    context: &Context<'_>,
    named: impl Iterator<Item = NewStore>,
    redundancy: Redundancy,
    genesis: &Genesis,
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
    let pool = stores::new_pool(records, redundancy)?;
    workspaces::create_workspace(&named, &pool, genesis).await?;
    Ok(StoredPlace { pool, version: 0, addresses: BTreeMap::new() })
}

fn tell(context: &Context<'_>, arguments: &InitArguments, folder: &Folder) -> Result<u8> {
    context.ui.json(&json!({
        "schema": "syncline.init/1",
        "type": "summary",
        "workspace": folder.genesis.name,
        "workspace_id": folder.genesis.workspace().to_string(),
        "folder": path_text(&folder.root)?,
        "place": folder.place.to_string(),
    }));
    context.ui.say(
        Symbol::Done,
        format!(
            "Workspace '{}' made, not encrypted. Its data goes to {}",
            folder.genesis.name, folder.place
        ),
    );
    let next = quoted(&path_text(&arguments.folder)?);
    let next = if next == "." { String::new() } else { format!(" {next}") };
    if !context.flags.quiet {
        context.ui.answer(format!("  Next: syncline sync{next}"));
    }
    Ok(0)
}

fn refuse_later_releases(arguments: &InitArguments) -> Result<()> {
    if arguments.sealed {
        return Err(CommandError::new(
            Code::NotInThisRelease,
            "end-to-end encryption (--sealed) is not in this release",
        )
        .state("nothing was changed")
        .help("--plain", "makes a workspace that the server or store can read"));
    }
    if arguments.backends.is_empty()
        && (arguments.replicas.is_some() || arguments.erasure.is_some())
    {
        return Err(CommandError::usage("copies and blocks are for workspaces in stores")
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

fn check_name(name: &str) -> Result<()> {
    let refuse = |reason: &str| {
        Err(CommandError::usage(format!("'{name}' cannot be the name of a workspace: {reason}"))
            .help("--workspace NAME", "gives another one"))
    };
    if name.trim().is_empty() {
        return refuse("it is empty");
    }
    if name.len() > model::entry::WORKSPACE_NAME_LENGTH_MAX {
        return refuse("it is too long");
    }
    if name.chars().any(|c| c.is_control() || c == '/') {
        return refuse("a slash or a control character is in it");
    }
    if name.parse::<model::WorkspaceId>().is_ok() {
        return refuse("it looks like the id of one");
    }
    Ok(())
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
