//! Finds a workspace on the server that is signed in to, and opens it if it is encrypted.
//!
//! The server knows no name of an encrypted one, only its id. So the secret, or the code of a pairing, is tried on each that the
//! account owns; what it opens was made by whoever has it, whatever the server says. Those of other people are opened by the
//! envelopes for this account. Such a one may be the server's own, under a name that somebody has used: its id tells it apart,
//! which covers the key of whoever has made it, so that is what two people compare.

use std::sync::Arc;

use commit_log::served::websocket::WebSocketConnection;
use commit_log::{CommitLog, ServedCommitLog};
use content::{DeviceKeys, Secret};
use model::{Clock, Genesis, WorkspaceId};

use super::unlock::Search;
use crate::connect::{account_of_home, live_connection};
use crate::context::Context;
use crate::error::{Code, CommandError, Result};
use crate::home::Account;
use crate::sealed::member::MemberKeys;
use crate::sealed::{self, NamedStores, Opened, Trying};
use crate::server_client::{ServerClient, WorkspaceLine};
use crate::text::quoted;

/// What opens a workspace that was found.
pub(super) enum Keys {
    /// Nobody needs any.
    Plain,
    /// What a person knows.
    Owner(Box<Opened>),
    /// What the owner has given to this account.
    Member(Box<MemberKeys>),
}

/// The workspaces of the account that this device is signed in to.
pub(super) struct OnServer<'a> {
    context: &'a Context<'a>,
    pub(super) account: Account,
    client: ServerClient,
    connection: Arc<WebSocketConnection>,
}

impl<'a> OnServer<'a> {
    /// Reaches for them, within a runtime; nothing is sent yet.
    pub(super) fn new(context: &'a Context<'a>) -> Result<Self> {
        let account = account_of_home(&context.home)?;
        let client = ServerClient::of_account(&account)?;
        let connection = live_connection(context, account.clone())?;
        Ok(Self { context, account, client, connection })
    }

    /// Finds a workspace by its name or id, and opens it if it is sealed.
    pub(super) async fn find(&self, text: &str) -> Result<(Genesis, Keys)> {
        let not_found = match self.client.find_workspace(text).await {
            Err(error) if error.code == Code::NoSuchWorkspace => error,
            found => {
                let line = found?;
                let genesis = self.genesis(&line).await?;
                check_id(text, &genesis)?;
                return match genesis.mode.sealed() {
                    None => Ok((genesis, Keys::Plain)),
                    Some(_) if !line.is_own() => self.open_of_other(text, &line, genesis).await,
                    Some(_) => self.open(genesis, &self.ask(text)?).await,
                };
            }
        };
        if let Some((owner, name)) = text.split_once('/') {
            return self.find_of(owner, name, not_found).await;
        }
        let sealed = self.sealed().await?;
        let [_, ..] = &sealed[..] else { return Err(not_found) };
        let secret = self.ask(text)?;
        let mut search = Search::default();
        for genesis in sealed {
            let opened = self.open(genesis, &secret).await;
            let named = opened.map(|(genesis, opened)| (genesis.name.clone(), (genesis, opened)));
            if let Some(found) = search.note(text, named) {
                return Ok(found);
            }
        }
        Err(search.in_vain(not_found))
    }

    /// Finds the sealed workspace of somebody else by the name that the owner has given it.
    async fn find_of(
        &self,
        owner: &str,
        name: &str,
        not_found: CommandError,
    ) -> Result<(Genesis, Keys)> {
        let lines = self.client.workspaces().await?;
        let is_meant =
            |line: &&WorkspaceLine| line.is_sealed() && !line.is_own() && line.owner == owner;
        let mut failure = None;
        for line in lines.iter().filter(is_meant) {
            match self.open_as_member(self.genesis(line).await?).await {
                Ok(found) if found.0.name == name => {
                    self.compare_id(owner, &found.0)?;
                    return Ok(found);
                }
                Ok(_) => {}
                Err(error) => failure = Some(error),
            }
        }
        Err(failure.unwrap_or(not_found))
    }

    /// Opens the sealed workspace of somebody else that the server has found. An honest one finds it by its id only, because it knows no
    /// names; what another one has found by a name is compared as if it had found nothing.
    async fn open_of_other(
        &self,
        text: &str,
        line: &WorkspaceLine,
        genesis: Genesis,
    ) -> Result<(Genesis, Keys)> {
        let found = self.open_as_member(genesis).await?;
        if typed_id(text).is_some() {
            return Ok(found);
        }
        let (owner, name) = text.split_once('/').unwrap_or((&line.owner, text));
        if found.0.name != name {
            return Err(another_workspace(&found.0));
        }
        self.compare_id(owner, &found.0)?;
        Ok(found)
    }

    fn compare_id(&self, owner: &str, found: &Genesis) -> Result<()> {
        let (name, id) = (&found.name, found.workspace());
        let question = format!(
            "Ask {owner} for the id of '{name}', by another way than this server. Is it {id}?"
        );
        let typed = format!("syncline clone {}", quoted(&format!("{owner}/ID")));
        self.context.ui.compare(&question, (&typed, "opens the one with the id that was read out"))
    }

    async fn open_as_member(&self, mut genesis: Genesis) -> Result<(Genesis, Keys)> {
        let (client, account) = (&self.client, &self.account);
        let keys = MemberKeys::get(self.context, client, account, genesis.workspace()).await?;
        genesis.name = keys.name(&genesis)?;
        Ok((genesis, Keys::Member(Box::new(keys))))
    }

    /// Returns what a workspace began with that this account may open, and that has the same owner as another one.
    pub(super) async fn genesis_within(
        &self,
        workspace: WorkspaceId,
        outer: WorkspaceId,
    ) -> Result<Genesis> {
        let line = self.client.find_workspace(&workspace.to_string()).await?;
        let around = self.client.find_workspace(&outer.to_string()).await?;
        if line.owner != around.owner {
            let headline = format!("a folder of '{}' is the workspace {workspace}", around.name);
            return Err(CommandError::new(Code::NotShareable, headline)
                .cause(format!(
                    "that one belongs to {}, and this one to {}: what lies in the folder would be given away",
                    line.owner, around.owner
                ))
                .state("the folder stays as it is, and is not synced"));
        }
        self.genesis(&line).await
    }

    fn ask(&self, text: &str) -> Result<Secret> {
        sealed::secret(self.context, &format!("'{text}'"))
    }

    async fn open(&self, mut genesis: Genesis, secret: &Secret) -> Result<(Genesis, Keys)> {
        let stores = self.stores(genesis.workspace())?;
        let opened = Trying::new(&genesis, secret).open(&stores).await?;
        genesis.name = DeviceKeys::name_of(&genesis, &opened.unlocked)?;
        Ok((genesis, Keys::Owner(Box::new(opened))))
    }

    /// Returns the sealed workspaces that the account has made: nobody can tell which is which without opening them.
    pub(super) async fn sealed(&self) -> Result<Vec<Genesis>> {
        let mut found = Vec::new();
        let is_meant = |line: &&WorkspaceLine| line.is_sealed() && line.is_own();
        for line in self.client.workspaces().await?.iter().filter(is_meant) {
            let genesis = self.genesis(line).await?;
            if genesis.mode.sealed().is_some() {
                found.push(genesis);
            }
        }
        Ok(found)
    }

    /// Returns where the locked keys of a workspace and the boxes of its pairings lie.
    pub(super) fn stores(&self, workspace: WorkspaceId) -> Result<NamedStores> {
        sealed::stores_on_server(&self.client, workspace)
    }

    async fn genesis(&self, line: &WorkspaceLine) -> Result<Genesis> {
        let workspace: WorkspaceId = line.id.parse().map_err(|_| {
            CommandError::new(Code::ServerUnreachable, "the server gave an id that is none")
                .cause(&line.id)
        })?;
        let clock: Arc<dyn Clock> = self.context.clock.clone();
        let log = ServedCommitLog::open(self.connection.clone(), clock, workspace).await?;
        Ok(log.genesis().clone())
    }
}

/// Refuses another workspace than the one whose id was typed.
fn check_id(text: &str, genesis: &Genesis) -> Result<()> {
    match typed_id(text).is_none_or(|typed| typed == genesis.workspace()) {
        true => Ok(()),
        false => Err(another_workspace(genesis)),
    }
}

fn typed_id(text: &str) -> Option<WorkspaceId> {
    text.rsplit('/').next().and_then(|id| id.parse().ok())
}

fn another_workspace(found: &Genesis) -> CommandError {
    CommandError::new(Code::NoSuchWorkspace, "the server gave another workspace")
        .cause(format!("its id is {}", found.workspace()))
        .state("nothing was changed")
}
