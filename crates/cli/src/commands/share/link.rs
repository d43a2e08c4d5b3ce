//! `syncline share --link`: an address that lets people without an account look at a file or folder.

use model::{RelativePath, Timestamp};
use serde_json::{Value, json};

use super::Target;
use crate::arguments::LinkArguments;
use crate::context::Context;
use crate::error::{Code, CommandError, Result};
use crate::server_client::links::{LinkLine, NewLink};
use crate::text::{day_and_time, decode_address, encode_address, rfc3339};
use crate::ui::{Paint, Symbol};

/// Makes a link and shows its address, for the only time.
pub(super) fn make(
    context: &Context<'_>,
    target: &Target,
    inside: &RelativePath,
    arguments: &LinkArguments,
) -> Result<u8> {
    let name = &target.workspace.name;
    let what = match inside.is_root() {
        true => format!("'{name}'"),
        false => format!("'{inside}' in '{name}'"),
    };
    if context.flags.dry_run {
        context.ui.answer(format!("would make a link to {what}"));
        return Ok(0);
    }
    let password = match arguments.password_stdin {
        true => Some(context.ui.password(true, "Password of the link")?),
        false => None,
    };
    let path = encode_address(inside.as_bytes());
    let new = NewLink {
        path: &path,
        expires_in_seconds: arguments.expires.map(|span| span.0),
        password: password.as_deref(),
        downloads_max: arguments.max_downloads,
    };
    let made = context.runtime()?.block_on(target.client.add_link(&target.workspace.id, &new));
    let link = made.map_err(|error| match error.code {
        Code::NoSuchThing => error.help("syncline sync", "sends what the server does not have yet"),
        _ => error,
    })?;
    let url =
        format!("{}/s/{}", target.client.address(), link.secret.as_deref().unwrap_or_default());
    let mut summary = describe(&link);
    summary["schema"] = json!("syncline.link/1");
    summary["type"] = json!("summary");
    summary["workspace"] = json!(name);
    summary["workspace_id"] = json!(target.workspace.id);
    summary["url"] = json!(url);
    context.ui.json(&summary);
    context.ui.answer(&url);
    let with = if link.has_password { " and the password" } else { "" };
    context.ui.note(format!(
        "this is the only time that the address is shown; who has it{with} can see {what}{}",
        until(context, &link)
    ));
    Ok(0)
}

/// Shows links below the members.
pub(super) fn show(context: &Context<'_>, links: &[LinkLine]) {
    for link in links {
        let path = link.path.as_deref().map(decode_address);
        let path = match path.as_deref() {
            Some("") => "all of it",
            Some(path) => path,
            None => "what was deleted",
        };
        let downloads = match link.downloads_max {
            Some(most) => format!(", {} of {most} downloads", link.downloads),
            None => format!(", {} downloads", link.downloads),
        };
        let password = if link.has_password { ", password" } else { "" };
        let state = match link.state.as_str() {
            "open" => String::new(),
            other => format!(", {}", other.replace('_', " ")),
        };
        context.ui.answer(format!(
            "{}  link to {path} by {}{}{downloads}{password}{state}",
            context.ui.paint(Paint::Dim, &link.id[..8.min(link.id.len())]),
            link.maker,
            until(context, link),
        ));
    }
}

/// Describes a link for programs, without what is secret about it.
pub(super) fn describe(link: &LinkLine) -> Value {
    json!({
        "id": link.id,
        "path": link.path.as_deref().map(decode_address),
        "user": link.maker,
        "created": rfc3339(at(link.created)),
        "expires": link.expires.map(|seconds| rfc3339(at(seconds))),
        "has_password": link.has_password,
        "max_downloads": link.downloads_max,
        "downloads": link.downloads,
        "state": link.state,
    })
}

/// Returns the link that the beginning of an id names; nothing for what may be the name of an account.
pub(super) fn find(context: &Context<'_>, target: &Target, text: &str) -> Result<Option<LinkLine>> {
    let is_id = text.len() >= 8 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_id || !target.may_link() {
        return Ok(None);
    }
    let (runtime, workspace) = (context.runtime()?, &target.workspace.id);
    let members = runtime.block_on(target.client.members(workspace))?;
    if members.iter().any(|member| member.user == text) {
        return Ok(None);
    }
    let links = runtime.block_on(target.client.links(workspace))?;
    let mut found = links.into_iter().filter(|link| link.id.starts_with(text));
    match (found.next(), found.next()) {
        (Some(_), Some(_)) => {
            Err(CommandError::usage(format!("several links begin with '{text}'"))
                .help("syncline share ls --json", "shows their whole ids"))
        }
        (found, _) => Ok(found),
    }
}

/// Takes a link back.
pub(super) fn remove(context: &Context<'_>, target: &Target, link: &LinkLine) -> Result<u8> {
    let path = link.path.as_deref().map(decode_address).unwrap_or_default();
    let (workspace, name) = (&target.workspace.id, &target.workspace.name);
    if context.flags.dry_run {
        context.ui.answer(format!("would take back the link to '{path}' in '{name}'"));
        return Ok(0);
    }
    context.ui.confirm(&format!("Take back the link to '{path}' in '{name}'?"))?;
    context.runtime()?.block_on(target.client.remove_link(workspace, &link.id))?;
    context.ui.json(&json!({
        "schema": "syncline.link/1",
        "type": "summary",
        "workspace": name,
        "workspace_id": workspace,
        "id": link.id,
        "is_revoked": true,
    }));
    context.ui.say(Symbol::Done, format!("The link to '{path}' leads nowhere from now on"));
    Ok(0)
}

fn at(seconds: i64) -> Timestamp {
    Timestamp { seconds, nanoseconds: 0 }
}

fn until(context: &Context<'_>, link: &LinkLine) -> String {
    link.expires.map_or_else(String::new, |seconds| {
        format!(", until {}", day_and_time(at(seconds), &context.zone))
    })
}
