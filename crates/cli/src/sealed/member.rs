//! The keys of an encrypted workspace of somebody else: they come in an envelope, which the identity of this account opens. Nobody
//! is asked for the passphrase of the owner, and nobody has it.

use content::keyring::SecretKey;
use content::sealed::ENVELOPE_LENGTH_MAX;
use content::{ContentError, DeviceKeys, Envelope, Identity};
use model::{DeviceId, Genesis, WorkspaceId};
use storage::ObjectKey;

use super::{check_generation, keep, kept_keys};
use crate::connect::{self, Driver};
use crate::context::Context;
use crate::error::{Code, CommandError, Result};
use crate::folder::{Folder, Place};
use crate::home::Account;
use crate::identity;
use crate::server_client::ServerClient;

/// What lets this account into a workspace.
#[derive(Debug)]
pub(crate) struct MemberKeys {
    identity: Identity,
    envelope: Envelope,
}

impl MemberKeys {
    /// Gets the envelope for this account, and the identity that opens it.
    ///
    /// # Errors
    /// [`Code::KeysMissing`] where there is none; as [`identity::own`].
    pub(crate) async fn get(
        context: &Context<'_>,
        client: &ServerClient,
        account: &Account,
        workspace: WorkspaceId,
    ) -> Result<Self> {
        let key = ObjectKey::envelope(&account.user)?;
        let bytes = client.store(workspace)?.get(&key).await?;
        let bytes = bytes.filter(|bytes| bytes.len() <= ENVELOPE_LENGTH_MAX);
        let Some(bytes) = bytes else { return Err(none_yet(account, workspace)) };
        let envelope = Envelope::from_bytes(&bytes)?;
        let (identity, _) = identity::own(context, client, account).await?;
        Ok(Self { identity, envelope })
    }

    /// Returns the name of the workspace, which the owner has given it.
    ///
    /// # Errors
    /// As [`Self::enroll`].
    pub(crate) fn name(&self, genesis: &Genesis) -> Result<String> {
        self.envelope.name(genesis, &self.identity).map_err(explained)
    }

    /// Makes a device one of this account's in the workspace.
    ///
    /// # Errors
    /// [`Code::WrongKey`] where the owner has not sealed the envelope to this account.
    pub(crate) fn enroll(
        &self,
        context: &Context<'_>,
        genesis: &Genesis,
        device: DeviceId,
    ) -> Result<DeviceKeys> {
        let own = (device, SecretKey::random(&*context.random));
        let keys = DeviceKeys::enroll_member(genesis, &self.identity, &self.envelope, own);
        keys.map_err(explained)
    }
}

fn explained(error: ContentError) -> CommandError {
    match error {
        ContentError::WrongKey => not_ours(),
        error => error.into(),
    }
}

/// Gets the newest keys of a folder's workspace where that belongs to somebody else; nothing where it does not.
///
/// # Errors
/// As [`MemberKeys::get`] and [`MemberKeys::enroll`]; [`Code::HistoryDiverged`] where they are older than those that are here.
pub(crate) fn renew(
    context: &Context<'_>,
    driver: &Driver,
    folder: &Folder,
) -> Result<Option<DeviceKeys>> {
    let Place::Served { server } = &folder.place else { return Ok(None) };
    let account = connect::account_of(&context.home, server)?;
    let client = ServerClient::of_account(&account)?;
    let workspace = folder.genesis.workspace();
    let found = driver.run(async {
        let line = client.find_workspace(&workspace.to_string()).await?;
        match line.is_own() {
            true => Ok(None),
            false => MemberKeys::get(context, &client, &account, workspace).await.map(Some),
        }
    });
    let Some(found) = found? else { return Ok(None) };
    let (device, _) = connect::device(context, &folder.place)?;
    let keys = found.enroll(context, &folder.genesis, device)?;
    check_generation(folder, keys.generation)?;
    let known = kept_keys(folder)?.filter(|known| known.identity.device == device);
    if let Some(known) = known.filter(|known| known.generation == keys.generation) {
        context.ui.note("the owner has not given newer keys to this account yet");
        return Ok(Some(known));
    }
    keep(folder, &keys)?;
    Ok(Some(keys))
}

fn none_yet(account: &Account, workspace: WorkspaceId) -> CommandError {
    let headline = format!("there are no keys of the workspace for {}", account.user);
    CommandError::new(Code::KeysMissing, headline)
        .cause(
            "the owner gives them after letting somebody in; that was not finished, or is undone",
        )
        .state("nothing was changed")
        .help(
            format!("syncline share {workspace} --with {}:view", account.user),
            "run by the owner, gives them anew",
        )
}

fn not_ours() -> CommandError {
    CommandError::new(Code::WrongKey, "the keys at the server are not for this account")
        .cause(
            "they were sealed to another identity, or somebody else than the owner has made them",
        )
        .state("nothing was changed")
        .help("syncline key fingerprint", "shows who this account is; let the owner compare")
}
