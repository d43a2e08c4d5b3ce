//! `syncline share`: lets other accounts of the server into a workspace, and makes links for people without one.

use std::path::Path;

use model::RelativePath;
use serde_json::json;

use crate::arguments::{Grant, ShareArguments, ShareCommand};
use crate::context::Context;
use crate::error::{Code, CommandError, Result, not_signed_in};
use crate::folder::{Folder, Place, read_identity};
use crate::server_client::{MemberLine, ServerClient, WorkspaceLine};
use crate::text::quoted;
use crate::ui::Symbol;

mod folder;
mod link;
mod sealed;

use sealed::Sealed;

/// Runs the command.
pub(crate) fn run(context: &Context<'_>, arguments: &ShareArguments) -> Result<u8> {
    match &arguments.command {
        Some(ShareCommand::Ls { target }) => list(context, target.as_deref()),
        Some(ShareCommand::Rm { user, target }) => remove(context, user, target.as_deref()),
        None if arguments.link.is_wanted => {
            let (target, inside) = find_place(context, arguments.target.as_deref())?;
            link::make(context, &target, &inside, &arguments.link)
        }
        None => grant(context, arguments),
    }
}

/// A workspace that the user means, and the server that has it.
pub(crate) struct Target {
    pub(crate) client: ServerClient,
    user: String,
    pub(crate) workspace: WorkspaceLine,
}

impl Target {
    /// Tells whether this account may make links here, and see some.
    fn may_link(&self) -> bool {
        self.workspace.role != "view"
    }
}

/// Finds the workspace of a synced folder, or of that name on the server.
fn find(context: &Context<'_>, text: Option<&str>) -> Result<Target> {
    let (target, inside) = find_place(context, text)?;
    if inside.is_root() {
        return Ok(target);
    }
    let (name, workspace) = (&target.workspace.name, quoted(&target.workspace.name));
    let path = quoted(text.unwrap_or("."));
    Err(CommandError::usage(format!("'{inside}' is a part of the workspace '{name}'"))
        .cause("it is not shared by itself")
        .state("nothing was changed")
        .help(
            format!("syncline share {path} --with USER:view"),
            "shares it, as a workspace of its own",
        )
        .help(format!("syncline share ls {workspace}"), "says who may open all of the workspace"))
}

/// Finds the workspace, and the place in it that the text names.
pub(crate) fn find_place(
    context: &Context<'_>,
    text: Option<&str>,
) -> Result<(Target, RelativePath)> {
    let account = context.home.account()?.ok_or_else(not_signed_in)?;
    let client = ServerClient::of_account(&account)?;
    let mut place = RelativePath::ROOT;
    let name = match folder_of(context, text.unwrap_or("."))? {
        Some((folder, inside)) => match &folder.place {
            Place::Served { server } if *server == account.server => {
                place = inside;
                folder.genesis.workspace().to_string()
            }
            Place::Served { server } => {
                return Err(not_signed_in().cause(format!("the workspace is on {server}")));
            }
            Place::Stored(_) => return Err(without_server(&folder)),
        },
        None => text.unwrap_or_default().to_owned(),
    };
    let workspace = context.runtime()?.block_on(client.find_workspace(&name))?;
    Ok((Target { client, user: account.user, workspace }, place))
}

/// Returns the synced folder that is meant, and the place in it; nothing where the text is the name of a workspace.
fn folder_of(context: &Context<'_>, text: &str) -> Result<Option<(Folder, RelativePath)>> {
    let path = Path::new(text);
    if !path.exists() {
        return Ok(None);
    }
    match Folder::locate_path(&context.home, path) {
        Ok(found) => Ok(Some(found)),
        // A name may be that of some file or folder by chance, but never of one that is synced.
        Err(_) if !text.starts_with(['.', '/']) && read_identity(path)?.is_none() => Ok(None),
        Err(error) => Err(error),
    }
}

fn without_server(folder: &Folder) -> CommandError {
    let headline = format!("'{}' has no server that could share it", folder.genesis.name);
    CommandError::usage(headline)
        .cause(
            "it lies in stores; who may open it is decided by who reaches them, and has its keys",
        )
        .help("syncline pair", "lets another device in")
}

fn grant(context: &Context<'_>, arguments: &ShareArguments) -> Result<u8> {
    let (grants, text) = (&arguments.with[..], arguments.target.as_deref());
    if grants.is_empty() {
        return Err(CommandError::usage("nobody is named to share with")
            .help("syncline share --with USER:view", "lets USER read the workspace of this folder")
            .help("syncline share FOLDER --with USER:edit", "shares a folder of it by itself")
            .help("syncline share PATH --link", "makes a link for people without an account")
            .help("syncline share ls", "says who may open it"));
    }
    if let Some(wanted) = folder::wanted(context, text)? {
        wanted.make(context, arguments.workspace.as_deref())?;
        if context.flags.dry_run {
            return Ok(0);
        }
    }
    let target = find(context, text)?;
    if target.workspace.is_sealed() {
        let folder = sealed_folder(context, &target, text)?;
        let sealed = Sealed { target: &target, folder: &folder };
        return sealed.grant(context, grants, arguments.fingerprint.as_ref()).map(|()| 0);
    }
    let Target { client, workspace, .. } = target;
    let name = &workspace.name;
    for Grant { user, role } in grants {
        let (word, words) = (role.word(), role.words());
        if context.flags.dry_run {
            context.ui.answer(format!("would let {user} {words} '{name}'"));
            continue;
        }
        context.runtime()?.block_on(client.set_member(&workspace.id, user, word))?;
        context.ui.json(&json!({
            "schema": "syncline.share/1",
            "type": "summary",
            "workspace": name,
            "workspace_id": workspace.id,
            "user": user,
            "role": word,
        }));
        let seen = format!("{}/{}", workspace.owner, name);
        let clone = format!("syncline clone {}", quoted(&seen));
        context.ui.say(Symbol::Done, format!("{user} may {words} '{name}': {clone}"));
    }
    Ok(0)
}

/// Returns the folder of this device that an encrypted workspace of this account is in.
fn sealed_folder(context: &Context<'_>, target: &Target, text: Option<&str>) -> Result<Folder> {
    let workspace = &target.workspace;
    if !workspace.is_own() {
        return Err(CommandError::new(Code::Refused, "only the owner says who may open it")
            .cause(format!("it is a workspace of {}", workspace.owner))
            .state("nothing was changed"));
    }
    let found = folder_of(context, text.unwrap_or("."))?.map(|(folder, _)| folder);
    let found = found.filter(|folder| folder.genesis.workspace().to_string() == workspace.id);
    found.ok_or_else(|| sealed::no_folder(&workspace.name))
}

fn list(context: &Context<'_>, target: Option<&str>) -> Result<u8> {
    let target = find(context, target)?;
    let Target { client, workspace, .. } = &target;
    let runtime = context.runtime()?;
    let members = runtime.block_on(client.members(&workspace.id))?;
    let links = match target.may_link() {
        true => runtime.block_on(client.links(&workspace.id))?,
        false => Vec::new(),
    };
    let line = |member: &MemberLine| json!({"user": member.user, "role": member.role});
    context.ui.json(&json!({
        "schema": "syncline.shares/1",
        "workspace": workspace.name,
        "workspace_id": workspace.id,
        "members": members.iter().map(line).collect::<Vec<_>>(),
        "links": links.iter().map(link::describe).collect::<Vec<_>>(),
    }));
    for member in &members {
        context.ui.answer(format!("{:20}  {}", member.user, member.role));
    }
    link::show(context, &links);
    Ok(0)
}

fn remove(context: &Context<'_>, user: &str, target: Option<&str>) -> Result<u8> {
    let found = find(context, target)?;
    if let Some(link) = link::find(context, &found, user)? {
        return link::remove(context, &found, &link);
    }
    let is_self = found.user == user;
    let folder = match found.workspace.is_sealed() && !is_self {
        true => Some(sealed_folder(context, &found, target)?),
        false => None,
    };
    let name = folder.as_ref().map_or(&found.workspace.name, |folder| &folder.genesis.name);
    if context.flags.dry_run {
        context.ui.answer(format!("would end what {user} may do in '{name}'"));
        return Ok(0);
    }
    let question = match is_self {
        true => format!("Leave the workspace '{name}'? Only its owner can let you in again."),
        false => format!("Shut {user} out of '{name}'?"),
    };
    context.ui.confirm(&question)?;
    match &folder {
        Some(folder) => Sealed { target: &found, folder }.remove(context, user)?,
        None => {
            context.runtime()?.block_on(found.client.remove_member(&found.workspace.id, user))?;
        }
    }
    context.ui.json(&json!({
        "schema": "syncline.share/1",
        "type": "summary",
        "workspace": name,
        "workspace_id": found.workspace.id,
        "user": user,
        "role": null,
    }));
    let said = match is_self {
        true => format!("You have left '{name}'; files that are here stay"),
        false => format!("{user} is shut out of '{name}'; files that {user} has stay there"),
    };
    context.ui.say(Symbol::Done, said);
    Ok(0)
}
