//! Links: ways for people without an account to one file or folder of a plain workspace.
//!
//! *Participants*: makers (the owner, and members who may edit), and anybody who has the secret. *Goals*: a link leads to a node,
//! wherever that is moved, and to what is below it; it ends on its day, after its downloads, or when it is taken back. *Invariants*: a link counts
//! only while its maker could make it; a download is counted in the transaction that lets it in; outsiders hear one answer whatever
//! has ended a link. In the database it is a device of its maker with limits, so that whatever ends a device ends it, too.

use model::environment::random_bytes;
use model::{DeviceId, NodeId, Random, RelativePath, WorkspaceId};

use crate::auth::{Caller, LinkSecret};
use crate::error::{Result, ServerError};
use crate::limits::LINKS_MAX;
use crate::metadata::{
    AccountId, DeviceRecord, LinkRecord, Metadata, Scope, TokenLimits, WorkspaceRecord,
};
use crate::services::authorisation::{Right, Role, Standing, Verdict, judge};
use crate::services::files::{FileNode, View};
use crate::services::{accounts, workspaces};

/// What a new link is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewLink {
    /// To where it leads.
    pub node: NodeId,
    /// When it ends, in seconds since 1970; nothing for never.
    pub expires: Option<i64>,
    /// The hash of its password by [`crate::auth::hash_password`], if it wants one.
    pub password_hash: Option<String>,
    /// How many downloads it lets in; nothing for any number.
    pub downloads_max: Option<u64>,
}

/// How it is with a link that was not taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It leads to its node.
    Open,
    /// Its day has come.
    Expired,
    /// It has let in all its downloads.
    UsedUp,
    /// Its maker is disabled, or may not edit the workspace now.
    Suspended,
}

/// A link as those see it who could have made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenLink {
    /// The link.
    pub link: LinkRecord,
    /// The name of its maker.
    pub maker: String,
    /// How it is with it.
    pub state: State,
}

/// A link that leads somewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenLink {
    /// Who reads behind it: the link itself, by the rights of its maker.
    pub caller: Caller,
    /// Where.
    pub workspace: WorkspaceId,
    /// The link.
    pub link: LinkRecord,
}

/// Says how it is with a link, whose maker could make it now or not.
pub fn state_of(link: &LinkRecord, may_publish: bool, now: i64) -> State {
    let expires = link.device.limits.and_then(|limits| limits.expires);
    if expires.is_some_and(|expires| now >= expires) {
        State::Expired
    } else if link.downloads_max.is_some_and(|most| link.downloads >= most) {
        State::UsedUp
    } else if may_publish {
        State::Open
    } else {
        State::Suspended
    }
}

/// Makes a link. Only the hash of its secret is kept, so it is shown once.
///
/// # Errors
/// [`ServerError::SealedNotShared`]; [`ServerError::Invalid`] for an end in the past and for no download at all;
/// [`ServerError::Forbidden`] for too many; as [`workspaces::open`].
pub fn add(
    metadata: &mut dyn Metadata,
    random: &dyn Random,
    (caller, workspace): (&Caller, WorkspaceId),
    new: &NewLink,
    now: i64,
) -> Result<(SeenLink, LinkSecret)> {
    let found = workspaces::open(metadata, caller, workspace, Right::Publish)?;
    if workspaces::genesis(metadata, &found)?.mode.sealed().is_some() {
        return Err(ServerError::SealedNotShared);
    }
    let invalid =
        |what, reason: &str| Err(ServerError::Invalid { what, reason: reason.to_owned() });
    if new.expires.is_some_and(|expires| expires <= now) {
        return invalid("end of the link", "it lies in the past");
    }
    if new.downloads_max == Some(0) {
        return invalid("number of downloads", "a link lets in one at least");
    }
    if metadata.links(found.number)?.len() >= LINKS_MAX {
        return Err(ServerError::Forbidden { what: format!("more than {LINKS_MAX} links") });
    }
    let secret = LinkSecret::generate(random);
    let limits =
        TokenLimits { scope: Scope::Link, workspace: Some(workspace), expires: new.expires };
    let device = DeviceRecord {
        id: DeviceId::from_bytes(random_bytes(random)),
        account: caller.account,
        name: "link".to_owned(),
        created: now,
        last_seen: now,
        is_revoked: false,
        limits: Some(limits),
    };
    let link = LinkRecord {
        device,
        node: new.node,
        password_hash: new.password_hash.clone(),
        downloads_max: new.downloads_max,
        downloads: 0,
    };
    metadata.insert_link(&link, found.number, &secret.hash())?;
    let maker = accounts::own_account(metadata, caller)?.name;
    Ok((SeenLink { link, maker, state: State::Open }, secret))
}

/// Returns the links into a workspace, in the order in which they were made: to its owner all, to who may edit their own.
///
/// # Errors
/// As [`workspaces::open`].
pub fn list(
    metadata: &dyn Metadata,
    caller: &Caller,
    workspace: WorkspaceId,
    now: i64,
) -> Result<Vec<SeenLink>> {
    let found = workspaces::open(metadata, caller, workspace, Right::Publish)?;
    let mut links = metadata.links(found.number)?;
    links.retain(|link| is_of(link, caller, &found));
    let see = |link: LinkRecord| {
        let maker = metadata.account(link.device.account)?;
        let may_publish = may_publish(metadata, &found, link.device.account)?;
        let state = state_of(&link, may_publish, now);
        Ok(SeenLink { link, maker: maker.map(|maker| maker.name).unwrap_or_default(), state })
    };
    links.into_iter().map(see).collect()
}

/// Takes a link back; what is being read behind it is cut off.
///
/// # Errors
/// [`ServerError::NotFound`]; [`ServerError::Forbidden`] for the links of others, but to the owner; as [`workspaces::open`].
pub fn remove(
    metadata: &mut dyn Metadata,
    caller: &Caller,
    workspace: WorkspaceId,
    id: DeviceId,
) -> Result<()> {
    let found = workspaces::open(metadata, caller, workspace, Right::Publish)?;
    let links = metadata.links(found.number)?;
    let link = links.iter().find(|link| link.device.id == id);
    let link = link.ok_or_else(|| ServerError::NotFound { what: format!("link {id}") })?;
    match is_of(link, caller, &found) {
        true => Ok(metadata.revoke_device(id)?),
        false => {
            Err(ServerError::Forbidden { what: "taking back a link of somebody else".to_owned() })
        }
    }
}

/// Takes back the links of a member who may make none from now on, so that they do not come back with the right.
///
/// # Errors
/// [`crate::metadata::MetadataError`].
pub(crate) fn end_all_of(
    metadata: &mut dyn Metadata,
    workspace: &WorkspaceRecord,
    account: AccountId,
) -> Result<()> {
    for link in metadata.links(workspace.number)? {
        if link.device.account == account {
            metadata.revoke_device(link.device.id)?;
        }
    }
    Ok(())
}

/// Returns the link of a secret, if it leads somewhere.
///
/// # Errors
/// [`ServerError::LinkGone`], whatever is the reason.
pub fn open(metadata: &dyn Metadata, secret: &LinkSecret, now: i64) -> Result<OpenLink> {
    let link = metadata.link_by_secret(&secret.hash())?.ok_or(ServerError::LinkGone)?;
    let caller = Caller { account: link.device.account, device: link.device.id };
    let workspace = link.device.limits.and_then(|limits| limits.workspace);
    let workspace = workspace.ok_or(ServerError::LinkGone)?;
    let found = workspaces::open(metadata, &caller, workspace, Right::Read).map_err(gone)?;
    // In a transaction the row of the workspace is locked from here on, so what is read now stays true until its end.
    let link = metadata.link(caller.device)?.ok_or(ServerError::LinkGone)?;
    let may_publish = may_publish(metadata, &found, caller.account)?;
    match state_of(&link, may_publish, now) {
        State::Open if !link.device.is_revoked => Ok(OpenLink { caller, workspace, link }),
        _ => Err(ServerError::LinkGone),
    }
}

/// Returns the node to which a link leads and its path, wherever that is by now. Nothing where it was deleted, or is a folder that became a
/// workspace of its own, or is in one.
pub fn node_of(link: &LinkRecord, view: &View) -> Option<(FileNode, RelativePath)> {
    view.follow(link.node).filter(|(node, _)| node.mounted.is_none())
}

/// Lets a download in, and counts it.
///
/// # Errors
/// As [`open`].
pub fn admit(metadata: &mut dyn Metadata, secret: &LinkSecret, now: i64) -> Result<()> {
    let open = open(metadata, secret, now)?;
    Ok(metadata.count_download(open.caller.device)?)
}

/// Tells whether a link is one that the caller sees, who could make some.
fn is_of(link: &LinkRecord, caller: &Caller, workspace: &WorkspaceRecord) -> bool {
    workspace.owner == caller.account || link.device.account == caller.account
}

/// Tells whether an account could make a link now.
fn may_publish(
    metadata: &dyn Metadata,
    workspace: &WorkspaceRecord,
    account: AccountId,
) -> Result<bool> {
    if metadata.account(account)?.is_none_or(|account| account.is_disabled) {
        return Ok(false);
    }
    let role: Option<Role> = workspaces::role_of(metadata, workspace, account)?;
    Ok(judge(Standing { role, scope: None }, Right::Publish) == Verdict::Allowed)
}

/// Who may not read behind a link is told no more than that nothing is there.
fn gone(error: ServerError) -> ServerError {
    match error {
        ServerError::Metadata(_) => error,
        _ => ServerError::LinkGone,
    }
}
