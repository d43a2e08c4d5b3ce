//! `syncline share`: lets other accounts of the server into a workspace.

use std::path::Path;

use serde_json::json;

use crate::arguments::{Grant, ShareArguments, ShareCommand};
use crate::context::Context;
use crate::error::{CommandError, Result, not_signed_in};
use crate::folder::{Folder, Place};
use crate::server_client::{MemberLine, ServerClient, WorkspaceLine};
use crate::text::quoted;
use crate::ui::Symbol;

/// Runs the command.
pub(crate) fn run(context: &Context<'_>, arguments: &ShareArguments) -> Result<u8> {
    match &arguments.command {
        Some(ShareCommand::Ls { target }) => list(context, target.as_deref()),
        Some(ShareCommand::Rm { user, target }) => remove(context, user, target.as_deref()),
        None => grant(context, &arguments.with, arguments.target.as_deref()),
    }
}

/// A workspace that the user means, and the server that has it.
struct Target {
    client: ServerClient,
    user: String,
    workspace: WorkspaceLine,
}

/// Finds the workspace of a synced folder, or of that name on the server.
fn find(context: &Context<'_>, text: Option<&str>) -> Result<Target> {
    let account = context.home.account()?.ok_or_else(not_signed_in)?;
    let client = ServerClient::of_account(&account)?;
    let name = match folder_of(context, text.unwrap_or("."))? {
        Some(folder) => match &folder.place {
            Place::Served { server } if *server == account.server => {
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
    Ok(Target { client, user: account.user, workspace })
}

/// Returns the synced folder that is meant; nothing where the text is the name of a workspace.
fn folder_of(context: &Context<'_>, text: &str) -> Result<Option<Folder>> {
    let path = Path::new(text);
    if !path.exists() {
        return Ok(None);
    }
    let (folder, inside) = match Folder::locate_path(&context.home, path) {
        Ok(found) => found,
        // A name may be that of some file or folder by chance.
        Err(_) if text != "." && !text.starts_with(['.', '/']) => return Ok(None),
        Err(error) => return Err(error),
    };
    if inside.is_root() {
        return Ok(Some(folder));
    }
    let workspace = quoted(&folder.genesis.name);
    let headline = format!("'{inside}' is a part of the workspace '{}'", folder.genesis.name);
    Err(CommandError::usage(headline)
        .cause("a workspace is shared as a whole; what is to be shared alone is a workspace of its own")
        .state("nothing was changed")
        .help("syncline init DIR --workspace NAME", "makes another folder a workspace")
        .help(format!("syncline share {workspace} --with USER:view"), "shares all of it"))
}

fn without_server(folder: &Folder) -> CommandError {
    let headline = format!("'{}' has no server that could share it", folder.genesis.name);
    CommandError::usage(headline)
        .cause(
            "it lies in stores; who may open it is decided by who reaches them, and has its keys",
        )
        .help("syncline pair", "lets another device in")
}

fn grant(context: &Context<'_>, grants: &[Grant], target: Option<&str>) -> Result<u8> {
    if grants.is_empty() {
        return Err(CommandError::usage("nobody is named to share with")
            .help("syncline share --with USER:view", "lets USER read the workspace of this folder")
            .help("syncline share ls", "says who may open it"));
    }
    let Target { client, workspace, .. } = find(context, target)?;
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

fn list(context: &Context<'_>, target: Option<&str>) -> Result<u8> {
    let Target { client, workspace, .. } = find(context, target)?;
    let members = context.runtime()?.block_on(client.members(&workspace.id))?;
    let line = |member: &MemberLine| json!({"user": member.user, "role": member.role});
    context.ui.json(&json!({
        "schema": "syncline.shares/1",
        "workspace": workspace.name,
        "workspace_id": workspace.id,
        "members": members.iter().map(line).collect::<Vec<_>>(),
    }));
    for member in &members {
        context.ui.answer(format!("{:20}  {}", member.user, member.role));
    }
    Ok(0)
}

fn remove(context: &Context<'_>, user: &str, target: Option<&str>) -> Result<u8> {
    let found = find(context, target)?;
    let name = &found.workspace.name;
    let is_self = found.user == user;
    if context.flags.dry_run {
        context.ui.answer(format!("would end what {user} may do in '{name}'"));
        return Ok(0);
    }
    let question = match is_self {
        true => format!("Leave the workspace '{name}'? Only its owner can let you in again."),
        false => format!("Shut {user} out of '{name}'?"),
    };
    context.ui.confirm(&question)?;
    context.runtime()?.block_on(found.client.remove_member(&found.workspace.id, user))?;
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
