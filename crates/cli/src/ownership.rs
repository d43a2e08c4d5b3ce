//! Whether the account of this device owns a workspace: what removes history is for the owner.

use crate::context::Context;
use crate::error::{Result, may_only_read, not_signed_in};
use crate::folder::{Folder, Place};
use crate::server_client::ServerClient;

/// Tells whether the account owns the workspace of a folder. One without a server has no owner but its devices.
///
/// # Errors
/// [`crate::error::CommandError`] where the server cannot be asked.
pub(crate) async fn is_own(context: &Context<'_>, folder: &Folder) -> Result<bool> {
    let Place::Served { server } = &folder.place else { return Ok(true) };
    let account = context.home.account()?.filter(|account| account.server == *server);
    let client = ServerClient::of_account(&account.ok_or_else(not_signed_in)?)?;
    let id = folder.genesis.workspace().to_string();
    Ok(client.find_workspace(&id).await?.is_own())
}

/// Refuses what is for the owner.
///
/// # Errors
/// [`crate::error::Code::MayOnlyRead`], and as [`is_own`].
pub(crate) fn require(context: &Context<'_>, folder: &Folder) -> Result<()> {
    match context.runtime()?.block_on(is_own(context, folder))? {
        true => Ok(()),
        false => Err(may_only_read().cause("only the owner of a workspace cleans it up")),
    }
}
