//! `syncline clone`: gets a workspace into a folder. What is in the folder already is merged, never removed.

use std::collections::BTreeMap;
use std::path::PathBuf;

use model::{Genesis, StoreId, WorkspaceId};
use std::sync::Arc;
use storage::ObjectStore;

use crate::arguments::CloneArguments;
use crate::claim::HomeClaim;
use crate::commands::init::{bind, prepare_root};
use crate::commands::sync;
use crate::connect::{self, SessionOptions};
use crate::context::Context;
use crate::error::{Code, CommandError, Result};
use crate::folder::Place;
use crate::hints;
use crate::sealed;
use crate::stores::{Backend, Secrets};
use crate::workspaces::Found;

mod on_server;
mod pair;
mod unlock;

use on_server::{Keys, OnServer};

/// Runs the command.
pub(crate) fn run(context: &Context<'_>, arguments: &CloneArguments) -> Result<u8> {
    if arguments.pair {
        return pair::run(context, arguments);
    }
    let secrets = Secrets::of_flags(&arguments.credentials)?;
    let backends = Backend::of_flags(&arguments.backends, &secrets, &context.home)?;
    let Source { genesis, place, named, keys } = match &backends[..] {
        [] => on_server(context, arguments)?,
        [_, ..] => in_stores(context, arguments, &opened(&backends)?, &secrets)?,
    };
    let folder = match &arguments.folder {
        Some(folder) => folder.clone(),
        None => PathBuf::from(safe_folder_name(&genesis.name)?),
    };
    if context.flags.dry_run {
        context.ui.answer(format!("would get '{}' into {}", genesis.name, folder.display()));
        return Ok(0);
    }
    let root = prepare_root(context, &folder)?;
    let folder = {
        let _claim = HomeClaim::alone(&context.home)?;
        if let Place::Stored(stored) = &place {
            secrets.keep(&context.home, &stored.pool, &named)?;
        }
        let folder = bind(context, &root, genesis, place)?;
        let device = || connect::device(context, &folder.place).map(|(device, _)| device);
        match &keys {
            Keys::Plain => {}
            Keys::Owner(opened) => {
                sealed::enroll(context, &folder, &opened.unlocked, device()?)?;
            }
            Keys::Member(found) => {
                let keys = found.enroll(context, &folder.genesis, device()?)?;
                sealed::check_generation(&folder, keys.generation)?;
                sealed::keep(&folder, &keys)?;
            }
        }
        folder
    };
    sync::exchange(context, "clone", &folder, SessionOptions::CHANGE)
}

/// A workspace that is about to come into a folder.
struct Source {
    genesis: Genesis,
    place: Place,
    /// The stores that the user named, under which names.
    named: BTreeMap<String, StoreId>,
    /// Its keys, where it is sealed. Whether they open it is known before anything is touched.
    keys: Keys,
}

fn in_stores(
    context: &Context<'_>,
    arguments: &CloneArguments,
    opened: &unlock::OpenedBackends,
    secrets: &Secrets,
) -> Result<Source> {
    let found = context.runtime()?.block_on(unlock::find(context, opened, &arguments.workspace));
    let (mut found, unlocked) = found?;
    refuse_plain(arguments, &found.genesis)?;
    if unlocked.is_none() {
        secrets.refuse_unnamed(&found.named)?;
    }
    hints::prefer_known(context, &mut found)?;
    hints::tell(context, &found);
    let Found { genesis, place, named, .. } = found;
    let keys = unlocked.map_or(Keys::Plain, |opened| Keys::Owner(Box::new(opened)));
    Ok(Source { genesis, place: Place::Stored(place), named, keys })
}

fn on_server(context: &Context<'_>, arguments: &CloneArguments) -> Result<Source> {
    let found = context.runtime()?.block_on(async {
        let server = OnServer::new(context)?;
        let found = server.find(&arguments.workspace).await?;
        Ok::<_, CommandError>((server.account.server, found))
    });
    let (server, (genesis, keys)) = found?;
    refuse_plain(arguments, &genesis)?;
    let place = Place::Served { server };
    Ok(Source { genesis, place, named: BTreeMap::new(), keys })
}

/// Returns what a workspace began with that a folder of the workspace `outer` is, on the server that is signed in to; never that of an encrypted
/// one, for which somebody would have to be asked.
///
/// # Errors
/// [`Code::NoSuchWorkspace`], also where this account may not open it; [`Code::NotShareable`] where they belong to different people; those of
/// the server.
pub(crate) fn genesis_in_another(
    context: &Context<'_>,
    workspace: WorkspaceId,
    outer: WorkspaceId,
) -> Result<Genesis> {
    let found = context
        .runtime()?
        .block_on(async { OnServer::new(context)?.genesis_within(workspace, outer).await })?;
    match found.workspace() == workspace && found.mode.sealed().is_none() {
        true => Ok(found),
        false => Err(CommandError::new(Code::NoSuchWorkspace, "the server gave another workspace")
            .cause(format!("{workspace} was asked for"))
            .state("nothing was changed")),
    }
}

/// Refuses a workspace that is not encrypted where only one that is was wanted.
fn refuse_plain(arguments: &CloneArguments, genesis: &Genesis) -> Result<()> {
    if !arguments.sealed || genesis.mode.sealed().is_some() {
        return Ok(());
    }
    let headline = format!("'{}' is not end-to-end encrypted", genesis.name);
    Err(CommandError::new(Code::NotEncrypted, headline)
        .cause("whoever keeps the store or the server may have put it there in place of yours")
        .state("nothing was changed"))
}

/// Opens the stores that are there; one is enough to find the others.
fn opened(backends: &[Backend]) -> Result<Vec<(Backend, Arc<dyn ObjectStore>)>> {
    let mut failure = None;
    let mut opened = Vec::new();
    for backend in backends {
        match backend.open() {
            Ok(store) => opened.push((backend.clone(), store)),
            Err(error) => failure = Some(error),
        }
    }
    match failure {
        Some(failure) if opened.is_empty() => Err(failure),
        _ => Ok(opened),
    }
}

/// A name comes from a server or store, so it is a folder's name only if it leads nowhere else.
fn safe_folder_name(name: &str) -> Result<&str> {
    match model::Name::new(name.as_bytes()) {
        Ok(_) if !name.starts_with(['.', '-']) => Ok(name),
        _ => Err(CommandError::usage(format!("'{name}' cannot be the name of a folder"))
            .help("syncline clone WORKSPACE DIR", "says where it goes")),
    }
}
