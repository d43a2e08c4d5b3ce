//! Finds a workspace on the server that is signed in to, and opens it if it is encrypted.
//!
//! The server knows no name of an encrypted one, only its id. So the secret, or the code of a pairing, is tried on each that the
//! account owns; what it opens was made by whoever has it, whatever the server says.

use std::sync::Arc;

use commit_log::served::websocket::WebSocketConnection;
use commit_log::{CommitLog, ServedCommitLog};
use content::DeviceKeys;
use model::{Clock, Genesis, WorkspaceId};

use super::unlock::Search;
use crate::connect::{account_of_home, live_connection};
use crate::context::Context;
use crate::error::{Code, CommandError, Result};
use crate::home::Account;
use crate::sealed::{self, NamedStores, Opened, Secret, Trying};
use crate::server_client::{ServerClient, WorkspaceLine};

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
    pub(super) async fn find(&self, text: &str) -> Result<(Genesis, Option<Opened>)> {
        let not_found = match self.client.find_workspace(text).await {
            Err(error) if error.code == Code::NoSuchWorkspace => error,
            found => {
                let genesis = self.genesis(&found?).await?;
                return match genesis.mode.sealed() {
                    None => Ok((genesis, None)),
                    Some(_) => self.open(genesis, &self.ask(text)?).await,
                };
            }
        };
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

    fn ask(&self, text: &str) -> Result<Secret> {
        Secret::get(self.context, &format!("'{text}'"))
    }

    async fn open(
        &self,
        mut genesis: Genesis,
        secret: &Secret,
    ) -> Result<(Genesis, Option<Opened>)> {
        let stores = self.stores(genesis.workspace())?;
        let opened = Trying::new(&genesis, secret).open(&stores).await?;
        genesis.name = DeviceKeys::name_of(&genesis, &opened.unlocked)?;
        Ok((genesis, Some(opened)))
    }

    /// Returns the sealed workspaces of the account: nobody can tell which is which without opening them.
    pub(super) async fn sealed(&self) -> Result<Vec<Genesis>> {
        let mut found = Vec::new();
        for line in self.client.workspaces().await?.iter().filter(|line| line.is_sealed()) {
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
