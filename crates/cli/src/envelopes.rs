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
    sign(context, folder, unlocked, |old| {
        let mut members = old.map(|list| list.members().to_vec()).unwrap_or_default();
        change(&mut members);
        Some((members, unlocked.keyring.epochs.len()))
    })
}

/// Writes into the log that there will be one more key, if there are members: from here on what they seal with it counts.
///
/// # Errors
/// Those of the engine.
pub(crate) fn announce_key(
    context: &Context<'_>,
    folder: &Folder,
    unlocked: &Unlocked,
) -> Result<()> {
    if !matches!(folder.place, Place::Served { .. }) {
        return Ok(());
    }
    let next = unlocked.keyring.epochs.len() + 1;
    sign(context, folder, unlocked, |old| {
        // One that was announced, and then not made, need not be announced again.
        let old = old.filter(|list| (list.keys() as usize) < next)?;
        Some((old.members().to_vec(), next))
    })
}

/// Signs the list that follows, of members and number of keys, and writes it into the log, unless there is nothing to change.
fn sign(
    context: &Context<'_>,
    folder: &Folder,
    unlocked: &Unlocked,
    next: impl Fn(Option<&MemberList>) -> Option<(Vec<Member>, usize)>,
) -> Result<()> {
    let workspace = folder.genesis.workspace();
    with_engine(context, folder, SESSION, None, async |engine| {
        engine.settle_proposals().await?;
        let (base, old) = engine.members()?;
        let Some((members, keys)) = next(old.as_ref()) else { return Ok(()) };
        let (account, keys) = (&unlocked.account, keys as u32);
        let list = MemberList::sign(account, workspace, old.as_ref(), members, keys)?;
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
