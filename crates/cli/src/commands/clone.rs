//! `syncline clone`: gets a workspace into a folder. What is in the folder already is merged, never removed.

use std::collections::BTreeMap;
use std::path::PathBuf;

use commit_log::CommitLog;
use commit_log::ServedCommitLog;
use commit_log::served::websocket::{WebSocketConnection, WebSocketOptions};
use model::{Clock, Genesis, WorkspaceId};
use std::sync::Arc;
use storage::ObjectStore;

use crate::arguments::CloneArguments;
use crate::claim::HomeClaim;
use crate::commands::init::{bind, prepare_root};
use crate::commands::sync;
use crate::connect::SessionOptions;
use crate::context::Context;
use crate::error::{Code, CommandError, Result, not_signed_in};
use crate::folder::Place;
use crate::home::Account;
use crate::server_client::ServerClient;
use crate::stores::{Backend, Secrets};
use crate::workspaces;

/// Runs the command.
pub(crate) fn run(context: &Context<'_>, arguments: &CloneArguments) -> Result<u8> {
    let runtime = context.runtime()?;
    let secrets = Secrets::of_flags(&arguments.credentials)?;
    let backends = Backend::of_flags(&arguments.backends, &secrets)?;
    let mut named = BTreeMap::new();
    let (genesis, place) = match &backends[..] {
        [_, ..] => {
            let opened = opened(&backends)?;
            let found = workspaces::find_workspace(&opened, &arguments.workspace);
            let found = runtime.block_on(found)?;
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
        bind(context, &root, genesis, place)?
    };
    sync::exchange(context, "clone", &folder, SessionOptions::CHANGE)
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
