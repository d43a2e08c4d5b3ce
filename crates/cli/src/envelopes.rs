//! Who else has the keys of an encrypted workspace: the list of members in its log, and an envelope for each at the server.

use bytes::Bytes;
use content::{Envelope, Member, MemberList, Unlocked};
use storage::{ObjectKey, PutMode};

use crate::connect::{SessionOptions, with_engine};
use crate::context::Context;
use crate::error::Result;
use crate::folder::{Folder, Place};
use crate::home::Account;
use crate::server_client::ServerClient;

/// A watch steps aside and goes on afterwards: nothing of the folder changes.
const SESSION: SessionOptions = SessionOptions::CHANGE_BESIDE_WATCH;

/// Returns the members as the log has them.
///
/// # Errors
/// Those of the engine.
pub(crate) fn members(context: &Context<'_>, folder: &Folder) -> Result<Vec<Member>> {
    let list = with_engine(context, folder, SESSION, None, async |engine| {
        engine.fetch().await?;
        Ok(engine.members()?.1)
    })?;
    Ok(list.map(|list| list.members().to_vec()).unwrap_or_default())
}

/// Writes into the log who is a member from here on.
///
/// # Errors
/// Those of the engine.
pub(crate) fn change(
    context: &Context<'_>,
    folder: &Folder,
    unlocked: &Unlocked,
    change: impl Fn(&mut Vec<Member>),
) -> Result<()> {
    let workspace = folder.genesis.workspace();
    with_engine(context, folder, SESSION, None, async |engine| {
        engine.settle_proposals().await?;
        let (base, old) = engine.members()?;
        let mut members = old.as_ref().map(|list| list.members().to_vec()).unwrap_or_default();
        change(&mut members);
        let list = MemberList::sign(&unlocked.account, workspace, old.as_ref(), members)?;
        engine.propose_members(base, &list).await.map(drop)
    })
}

/// Seals the keys to those of the members that the server lets in, in place of what was sealed to them before; returns how many that are. Who
/// has left has no place for an envelope there.
///
/// # Errors
/// Those of the server.
pub(crate) fn seal(
    context: &Context<'_>,
    client: &ServerClient,
    folder: &Folder,
    unlocked: &Unlocked,
    members: &[Member],
) -> Result<usize> {
    let id = folder.genesis.workspace();
    let store = client.store(id)?;
    let runtime = context.runtime()?;
    let let_in = runtime.block_on(client.members(&id.to_string()))?;
    let is_let_in = |member: &&Member| let_in.iter().any(|line| line.user == member.name);
    let mut count = 0;
    for Member { name, identity, .. } in members.iter().filter(is_let_in) {
        let key = ObjectKey::envelope(name)?;
        let envelope = Envelope::seal(&folder.genesis, unlocked, identity, &*context.random)?;
        let bytes = Bytes::from(envelope.to_bytes());
        runtime.block_on(store.put(&key, bytes, PutMode::Overwrite))?;
        count += 1;
    }
    Ok(count)
}

/// Seals keys that have changed to all members that the server lets in; returns how many that are.
///
/// # Errors
/// As [`members`] and [`seal`].
pub(crate) fn renew(context: &Context<'_>, folder: &Folder, unlocked: &Unlocked) -> Result<usize> {
    let Place::Served { server } = &folder.place else { return Ok(0) };
    let account: Account = crate::connect::account_of(&context.home, server)?;
    let client = ServerClient::of_account(&account)?;
    let id = folder.genesis.workspace().to_string();
    match context.runtime()?.block_on(client.members(&id))?.len() {
        0 | 1 => Ok(0),
        _ => seal(context, &client, folder, unlocked, &members(context, folder)?),
    }
}
