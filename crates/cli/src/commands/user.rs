//! `syncline user`: the accounts of a server, on its data folder, whether it runs or not.

use std::path::{Path, PathBuf};

use model::{Clock, Timestamp};
use serde_json::json;
use server::Admin;
use server::admin::Removal;
use server::audit::{Audit, Happened, Line};
use server::auth::subject::Subject;
use server::metadata::SubjectRecord;

use super::account::oidc::list as list_subjects;
use crate::arguments::{DataArgument, SubjectArguments, UserCommand, UserOidcCommand};
use crate::context::Context;
use crate::error::{CommandError, Result};
use crate::home::file_error;
use crate::server_client::account::SubjectLine;
use crate::text::{counted, parse_size, rfc3339, size};
use crate::ui::Symbol;

mod invitation;

/// Runs the command.
pub(crate) fn run(context: &Context<'_>, command: &UserCommand) -> Result<u8> {
    let ui = context.ui;
    let open = |argument: &DataArgument| {
        let data: PathBuf = argument.data.clone().unwrap_or_else(|| context.home.server_data());
        let database = super::serve::database(context, argument)?;
        Ok::<_, CommandError>(Admin::open_in(&data, &database)?)
    };
    let (name, done) = match command {
        UserCommand::Ls { data } => return list(context, &open(data)?),
        UserCommand::Add { name, password_stdin, data } => {
            context.no_dry_run("user add")?;
            let password = ui.password(*password_stdin, &format!("Password for {name}"))?;
            open(data)?.add(name, &password, &*context.clock, &*context.random)?;
            (name, format!("Account {name} added"))
        }
        UserCommand::Rm { name, data } => {
            if context.flags.dry_run {
                ui.answer(format!(
                    "would remove the account {name}, or disable it where it owns workspaces"
                ));
                return Ok(0);
            }
            ui.confirm(&format!("Remove the account {name} and sign all its devices out?"))?;
            match open(data)?.remove(name)? {
                Removal::Deleted => (name, format!("Account {name} removed")),
                Removal::Disabled => (
                    name,
                    format!(
                        "Account {name} disabled; its workspaces stay, and a new password brings it back"
                    ),
                ),
            }
        }
        UserCommand::Disable { name, data } => {
            context.no_dry_run("user disable")?;
            open(data)?.set_disabled(name, true)?;
            (name, format!("{name} is shut out; data and devices stay as they are"))
        }
        UserCommand::Enable { name, data } => {
            context.no_dry_run("user enable")?;
            open(data)?.set_disabled(name, false)?;
            (name, format!("{name} may sign in again, with the password from before"))
        }
        UserCommand::Passwd { name, password_stdin, data } => {
            context.no_dry_run("user passwd")?;
            let password = ui.password(*password_stdin, &format!("New password for {name}"))?;
            let unbound = open(data)?.set_password(name, &password, &*context.random)?;
            (name, new_password(name, &unbound))
        }
        UserCommand::TotpOff { name, audit_log, data } => {
            return totp_off(context, || open(data), name, audit_log.as_deref());
        }
        UserCommand::Oidc(command) => return oidc(context, open, command),
        UserCommand::Invitation(command) => return invitation::run(context, open, command),
        UserCommand::Quota { name, quota, data } => {
            context.no_dry_run("user quota")?;
            let bytes = match quota.as_str() {
                "none" => None,
                text => Some(parse_size(text).ok_or_else(|| {
                    CommandError::usage(format!("'{text}' is no size"))
                        .help("50GiB", "is one; or none")
                })?),
            };
            open(data)?.set_quota(name, bytes)?;
            let words = bytes.map_or_else(|| "any amount".to_owned(), size);
            (name, format!("{name} may store {words}"))
        }
    };
    say_done(context, name, &done);
    Ok(0)
}

/// Says what ends with a password, and what does not.
fn new_password(name: &str, unbound: &[SubjectRecord]) -> String {
    let mut done = format!("{name} has a new password; devices that are signed in stay so");
    for SubjectRecord { subject, .. } in unbound {
        done += &format!("; {} at {} signs in no more", subject.id(), subject.issuer());
    }
    done
}

fn oidc(
    context: &Context<'_>,
    open: impl Fn(&DataArgument) -> Result<Admin>,
    command: &UserOidcCommand,
) -> Result<u8> {
    match command {
        UserOidcCommand::Link(SubjectArguments { name, subject, issuer, data }) => {
            context.no_dry_run("user oidc link")?;
            let subject = Subject::new(issuer, subject)?;
            open(data)?.bind_subject(name, &subject, &*context.clock)?;
            let done = format!("{} at {issuer} signs in to {name} from now on", subject.id());
            say_done(context, name, &done);
        }
        UserOidcCommand::Unlink(SubjectArguments { name, subject, issuer, data }) => {
            context.no_dry_run("user oidc unlink")?;
            let subject = Subject::new(issuer, subject)?;
            let words = match open(data)?.unbind_subject(name, &subject)? {
                true => "signs in no more; devices that are signed in stay so",
                false => "was not bound to this account",
            };
            say_done(context, name, &format!("{} at {issuer} {words}", subject.id()));
        }
        UserOidcCommand::Ls { name, data } => {
            let found = open(data)?.subjects(name)?;
            list_subjects(context, &found.into_iter().map(line_of).collect::<Vec<_>>());
        }
    }
    Ok(0)
}

fn line_of(SubjectRecord { subject, since }: SubjectRecord) -> SubjectLine {
    let (issuer, subject) = (subject.issuer().to_owned(), subject.id().to_owned());
    SubjectLine { issuer, subject, since }
}

fn say_done(context: &Context<'_>, name: &str, done: &str) {
    context
        .ui
        .json(&json!({"schema": "syncline.user/1", "type": "summary", "user": name, "done": done}));
    context.ui.say(Symbol::Done, done);
}

fn totp_off(
    context: &Context<'_>,
    open: impl FnOnce() -> Result<Admin>,
    name: &str,
    audit_log: Option<&Path>,
) -> Result<u8> {
    if context.flags.dry_run {
        context.ui.answer(format!("would let {name} sign in with the password alone"));
        return Ok(0);
    }
    context.ui.confirm(&format!("Let {name} sign in with the password alone?"))?;
    // Before anything is changed, so that nothing is that cannot be written down.
    let audit = match audit_log {
        Some(file) => Audit::to(file.to_owned()).map_err(|error| file_error(file, &error))?,
        None => Audit::default(),
    };
    if !open()?.remove_second_factor(name)? {
        say_done(context, name, &format!("{name} has no second factor"));
        return Ok(0);
    }
    let line = Line::new(context.clock.now(), Happened::SecondFactorRemoved);
    context.runtime()?.block_on(audit.note(line.of_account(Some(name.to_owned()))));
    say_done(context, name, &format!("{name} signs in with the password alone from now on"));
    Ok(0)
}

fn list(context: &Context<'_>, admin: &Admin) -> Result<u8> {
    let accounts = admin.list()?;
    let lines: Vec<_> = accounts
        .iter()
        .map(|account| {
            json!({
                "user": account.name,
                "is_disabled": account.is_disabled,
                "devices": account.devices,
                "workspaces": account.workspaces,
                "used_bytes": account.used_bytes,
                "quota_bytes": account.quota_bytes,
                "has_second_factor": account.has_second_factor,
                "created": rfc3339(Timestamp { seconds: account.created, nanoseconds: 0 }),
            })
        })
        .collect();
    context.ui.json(&json!({"schema": "syncline.users/1", "users": lines}));
    for account in &accounts {
        let quota = account
            .quota_bytes
            .map_or_else(|| "no quota".to_owned(), |quota| format!("of {}", size(quota)));
        let disabled = if account.is_disabled { "  (disabled)" } else { "" };
        let second = if account.has_second_factor { ", second factor" } else { "" };
        context.ui.answer(format!(
            "{:20}  {}, {}, {} {quota}{second}{disabled}",
            account.name,
            counted(account.devices as u64, "device", "devices"),
            counted(account.workspaces as u64, "workspace", "workspaces"),
            size(account.used_bytes),
        ));
    }
    Ok(0)
}
