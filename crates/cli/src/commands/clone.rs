//! `syncline clone`: gets a workspace into a folder. What is in the folder already is merged, never removed.

use std::collections::BTreeMap;
use std::path::PathBuf;

use commit_log::CommitLog;
use commit_log::ServedCommitLog;
use commit_log::served::websocket::{WebSocketConnection, WebSocketOptions};
use content::DeviceKeys;
use model::{Clock, Genesis, StoreId, WorkspaceId};
use std::sync::Arc;
use storage::ObjectStore;

use crate::arguments::CloneArguments;
use crate::claim::HomeClaim;
use crate::commands::init::{bind, prepare_root};
use crate::commands::sync;
use crate::connect::{self, SessionOptions};
use crate::context::Context;
use crate::error::{Code, CommandError, Result, not_signed_in};
use crate::folder::Place;
use crate::home::Account;
use crate::sealed::{self, Secret};
use crate::server_client::ServerClient;
use crate::stores::{self, Backend, Secrets};
use crate::workspaces::{self, Found};

mod pair;

/// Runs the command.
pub(crate) fn run(context: &Context<'_>, arguments: &CloneArguments) -> Result<u8> {
    if arguments.pair {
        return pair::run(context, arguments);
    }
    let runtime = context.runtime()?;
    let secrets = Secrets::of_flags(&arguments.credentials)?;
    let backends = Backend::of_flags(&arguments.backends, &secrets, &context.home)?;
    let mut named = BTreeMap::new();
    let (mut secret, mut reached) = (None, Vec::new());
    let (mut genesis, place) = match &backends[..] {
        [_, ..] => {
            let opened = opened(&backends)?;
            let found = runtime.block_on(find(context, &opened, &arguments.workspace));
            let (found, asked) = found?;
            secret = asked;
            reached = stores_with_keys(context, &opened, &found);
            named = found.named;
            (found.genesis, Place::Stored(found.place))
        }
        [] => {
            let account = context.home.account()?.ok_or_else(not_signed_in)?;
            let genesis =
                runtime.block_on(find_on_server(context, &account, &arguments.workspace))?;
            (genesis, Place::Served { server: account.server })
        }
    };
    refuse_plain(arguments, &genesis)?;
    // Whether the passphrase is right is known before anything is touched.
    let unlocked = match (&place, genesis.mode.sealed()) {
        (_, None) => None,
        (Place::Served { .. }, Some(_)) => return Err(sealed::sealed_on_a_server()),
        (Place::Stored(_), Some(_)) => {
            let keys = runtime.block_on(sealed::newest_keys(&reached))?;
            let secret = match secret {
                Some(secret) => secret,
                None => Secret::get(context, &format!("'{}'", arguments.workspace))?,
            };
            let unlocked = secret.unlock(&keys, &genesis)?;
            genesis.name = DeviceKeys::name_of(&genesis, &unlocked)?;
            Some(unlocked)
        }
    };
    drop(runtime);
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
        if let Some(unlocked) = &unlocked {
            let (device, _) = connect::device(context, &folder.place)?;
            sealed::enroll(context, &folder, unlocked, device)?;
        }
        folder
    };
    sync::exchange(context, "clone", &folder, SessionOptions::CHANGE)
}

/// Finds a workspace in stores by its name or id. The name of a sealed one is known only once it is opened; what opened it
/// is returned, too.
async fn find(
    context: &Context<'_>,
    opened: &[(Backend, Arc<dyn ObjectStore>)],
    text: &str,
) -> Result<(Found, Option<Secret>)> {
    let not_found = match workspaces::find_workspace(opened, text).await {
        Err(error) if error.code == Code::NoSuchWorkspace => error,
        found => return found.map(|found| (found, None)),
    };
    let sealed = workspaces::sealed_workspaces(opened).await?;
    let [_, ..] = &sealed[..] else { return Err(not_found) };
    let secret = Secret::get(context, &format!("'{text}'"))?;
    let (mut names, mut wrong) = (Vec::new(), None);
    for genesis in &sealed {
        let found = workspaces::find_workspace(opened, &genesis.workspace().to_string()).await?;
        let keys = sealed::newest_keys(&stores_with_keys(context, opened, &found)).await?;
        match secret.unlock(&keys, genesis) {
            Ok(unlocked) => {
                let name = DeviceKeys::name_of(genesis, &unlocked)?;
                if name == text {
                    return Ok((found, Some(secret)));
                }
                names.push(name);
            }
            Err(error) => wrong = Some(error),
        }
    }
    Err(match wrong {
        Some(wrong) if names.is_empty() => wrong,
        _ => not_found.cause(format!("the passphrase opens: {}", names.join(", "))),
    })
}

/// Returns all stores that may have the locked keys of a workspace: one that was named may have missed a change of them, and
/// another one has not.
fn stores_with_keys(
    context: &Context<'_>,
    opened: &[(Backend, Arc<dyn ObjectStore>)],
    found: &Found,
) -> sealed::Stores {
    let workspace = found.genesis.workspace();
    let mut all = sealed::stores_in(opened.iter().map(|(_, store)| store), workspace);
    let is_named = |id: &StoreId| found.named.values().any(|named| named == id);
    let others = stores::open_pool(&context.home, &found.place, workspace);
    let others = others.into_iter().filter(|(record, _)| !is_named(&record.id));
    all.extend(others.map(|(_, store)| store));
    all
}

/// Refuses a workspace that is not encrypted where only one that is was wanted.
fn refuse_plain(arguments: &CloneArguments, genesis: &Genesis) -> Result<()> {
    if !arguments.sealed || genesis.mode.sealed().is_some() {
        return Ok(());
    }
    let headline = format!("'{}' is not end-to-end encrypted", genesis.name);
    Err(CommandError::new(Code::NotEncrypted, headline)
        .cause("whoever keeps the store may have put it there in place of yours")
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

async fn find_on_server(context: &Context<'_>, account: &Account, text: &str) -> Result<Genesis> {
    let client = ServerClient::of_account(account)?;
    let line = client.find_workspace(text).await?;
    let workspace: WorkspaceId = line.id.parse().map_err(|_| {
        CommandError::new(Code::ServerUnreachable, "the server gave an id that is none")
            .cause(&line.id)
    })?;
    let clock: Arc<dyn Clock> = context.clock.clone();
    let options = WebSocketOptions::new(
        account.server.as_str(),
        account.token.as_str(),
        context.home.incarnation(),
    );
    let connection = WebSocketConnection::new(options, clock.clone(), context.random.clone());
    let connection = connection.map_err(|error| CommandError::usage(error.to_string()))?;
    let log = ServedCommitLog::open(Arc::new(connection), clock, workspace).await?;
    Ok(log.genesis().clone())
}
