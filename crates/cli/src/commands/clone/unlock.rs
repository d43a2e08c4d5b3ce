//! Opens a sealed workspace that was found in stores, in the order in which nothing is believed too early.
//!
//! 1. The stores that the user named have said which stores there are, and a device of the account in the genesis has signed
//!    that. Whose genesis it is, nobody knows yet.
//! 2. The secret opens the locked keys in these stores. If it does not, since they may have missed a change of it, those in
//!    the others are asked for, without any secret or sign-in of this device.
//! 3. What the secret has opened names the account and the workspace, so the genesis is the user's, and so is what was signed
//!    by it. From here on all stores are asked, with the credentials that this device has for them: first whether one knows
//!    newer stores, then for the locked keys that count.

use std::sync::Arc;

use content::{DeviceKeys, Unlocked};
use model::WorkspaceId;
use storage::ObjectStore;

use crate::context::Context;
use crate::error::{Code, CommandError, Result};
use crate::hints;
use crate::sealed::{self, NamedStores, Opened, Trying};
use crate::stores::{self, Backend};
use crate::workspaces::{self, Found};

/// Stores that a user named, open.
pub(super) type OpenedBackends = [(Backend, Arc<dyn ObjectStore>)];

/// Finds a workspace in stores by its name or id, and opens it if it is sealed; its name is known only then.
pub(super) async fn find(
    context: &Context<'_>,
    opened: &OpenedBackends,
    text: &str,
) -> Result<(Found, Option<Opened>)> {
    let question = format!("'{text}'");
    let not_found = match workspaces::find_workspace(opened, text).await {
        Err(error) if error.code == Code::NoSuchWorkspace => error,
        found => {
            let found = found?;
            if found.genesis.mode.sealed().is_none() {
                return Ok((found, None));
            }
            let secret = sealed::secret(context, &question)?;
            let genesis = found.genesis.clone();
            let mut trying = Trying::new(&genesis, &secret);
            recognise(opened, &found, &mut trying).await?;
            return settle(context, opened, found, trying).await;
        }
    };
    let sealed = workspaces::sealed_workspaces(opened).await?;
    let [_, ..] = &sealed[..] else { return Err(not_found) };
    let secret = sealed::secret(context, &question)?;
    let mut search = Search::default();
    for genesis in &sealed {
        let id = genesis.workspace().to_string();
        let mut trying = Trying::new(genesis, &secret);
        let tried = async {
            let found = workspaces::find_workspace(opened, &id).await?;
            let unlocked = recognise(opened, &found, &mut trying).await?;
            Ok((DeviceKeys::name_of(genesis, &unlocked)?, found))
        };
        if let Some(found) = search.note(text, tried.await) {
            return settle(context, opened, found, trying).await;
        }
    }
    Err(search.in_vain(not_found))
}

/// What came of trying a secret on several workspaces, to find the one of a name.
#[derive(Debug, Default)]
pub(super) struct Search {
    names: Vec<String>,
    wrong: Option<CommandError>,
    failure: Option<CommandError>,
}

impl Search {
    /// Takes in what came of one, with its name. Returns it where that is the name that is looked for.
    pub(super) fn note<T>(&mut self, text: &str, tried: Result<(String, T)>) -> Option<T> {
        match tried {
            Ok((name, found)) if name == text => return Some(found),
            Ok((name, _)) => self.names.push(name),
            Err(error) if error.code == Code::WrongKey => self.wrong = Some(error),
            Err(error) => self.failure = Some(error),
        }
        None
    }

    /// Says why it was in vain.
    pub(super) fn in_vain(self, not_found: CommandError) -> CommandError {
        match (self.failure, self.wrong) {
            // Which workspace a store has spoilt cannot be told: it may be the one that is meant.
            (Some(failure), _) => failure,
            (None, Some(wrong)) if self.names.is_empty() => wrong,
            _ => not_found.cause(format!("the passphrase opens: {}", self.names.join(", "))),
        }
    }
}

/// Opens locked keys in the stores that the user named, else in those to which they lead, as a stranger.
async fn recognise(
    opened: &OpenedBackends,
    found: &Found,
    trying: &mut Trying<'_>,
) -> Result<Unlocked> {
    let mut stores = named_stores(opened, found.genesis.workspace());
    let failure = match trying.open(&stores).await {
        Ok(done) => return Ok(done.unlocked),
        Err(error) => error,
    };
    let others = strangers(found);
    if others.is_empty() {
        return Err(failure);
    }
    stores.extend(others);
    Ok(trying.open(&stores).await?.unlocked)
}

/// Asks all stores of a workspace that the secret has opened, now that it is known whose it is.
async fn settle(
    context: &Context<'_>,
    opened: &OpenedBackends,
    mut found: Found,
    mut trying: Trying<'_>,
) -> Result<(Found, Option<Opened>)> {
    hints::follow(context, &mut found).await;
    let workspace = found.genesis.workspace();
    let mut all = named_stores(opened, workspace);
    let others = stores::open_pool(&context.home, &found.place, workspace);
    let others = others.into_iter().filter(|(record, _)| !found.has_named(record.id));
    all.extend(sealed::by_name(others));
    let opened = trying.open(&all).await?;
    opened.tell(context);
    found.genesis.name = DeviceKeys::name_of(&found.genesis, &opened.unlocked)?;
    Ok((found, Some(opened)))
}

/// Returns the parts of the stores that the user named.
pub(super) fn named_stores(opened: &OpenedBackends, workspace: WorkspaceId) -> NamedStores {
    let part = |(backend, store): &(Backend, Arc<dyn ObjectStore>)| {
        (backend.name.clone(), stores::workspace_store(store.clone(), workspace))
    };
    opened.iter().map(part).collect()
}

/// Returns the stores to which the named ones lead, without any secret of this device: nobody knows yet whose they are.
pub(super) fn strangers(found: &Found) -> NamedStores {
    let workspace = found.genesis.workspace();
    sealed::by_name(stores::open_without_secrets(&found.place, &found.named, workspace))
}
