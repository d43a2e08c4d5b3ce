//! `syncline user invitation`: who may make an account for themselves, in a browser.

use model::{Clock, Timestamp};
use serde_json::{Value, json};
use server::Admin;
use server::metadata::{InvitationId, InvitationRecord, NewInvitation};
use server::services::invitations;

use super::say_done;
use crate::arguments::{DataArgument, InvitationCommand};
use crate::context::Context;
use crate::error::{CommandError, Result};
use crate::server_client::ServerClient;
use crate::text::{day_and_time, parse_size, rfc3339, size};

/// Runs the command.
pub(super) fn run(
    context: &Context<'_>,
    open: impl Fn(&DataArgument) -> Result<Admin>,
    command: &InvitationCommand,
) -> Result<u8> {
    match command {
        InvitationCommand::Add { server, name, quota, expires, data } => {
            context.no_dry_run("user invitation add")?;
            let address = ServerClient::new(server)?.address();
            let quota_bytes = quota.as_deref().map(read_size).transpose()?;
            let made = context.clock.now().seconds;
            let new =
                NewInvitation { name: name.clone(), quota_bytes, made, expires: made + expires.0 };
            let (id, secret) = open(data)?.invite(&new, &*context.random)?;
            let url = format!("{address}/#/join/{}", secret.to_text());
            let record = InvitationRecord { id, invitation: new, ended: None, account: None };
            show_new(context, &record, &url);
        }
        InvitationCommand::Ls { data } => list(context, &open(data)?.invitations()?),
        InvitationCommand::Rm { number, data } => {
            context.no_dry_run("user invitation rm")?;
            let id = InvitationId::from_number(*number);
            let done = match open(data)?.take_back(id, &*context.clock)? {
                true => format!("Invitation {number} is taken back"),
                false => format!("Invitation {number} had ended before"),
            };
            say_done(context, &number.to_string(), &done);
        }
    }
    Ok(0)
}

fn read_size(text: &str) -> Result<u64> {
    parse_size(text)
        .ok_or_else(|| CommandError::usage(format!("'{text}' is no size")).help("50GiB", "is one"))
}

fn at(seconds: i64) -> Timestamp {
    Timestamp { seconds, nanoseconds: 0 }
}

fn show_new(context: &Context<'_>, record: &InvitationRecord, url: &str) {
    let mut summary = describe(context, record);
    summary["schema"] = json!("syncline.invitation/1");
    summary["type"] = json!("summary");
    summary["url"] = json!(url);
    context.ui.json(&summary);
    context.ui.answer(url);
    let until = day_and_time(at(record.invitation.expires), &context.zone);
    context.ui.note(format!(
        "this is the only time that the address is shown; who opens it first can make one account, until {until}"
    ));
}

/// How it is with an invitation.
fn state(context: &Context<'_>, record: &InvitationRecord) -> &'static str {
    let counts = invitations::check(record, context.clock.now().seconds).is_ok();
    match (record.ended, &record.account) {
        (Some(_), Some(_)) => "used",
        (Some(_), None) => "taken_back",
        (None, _) if counts => "open",
        (None, _) => "expired",
    }
}

fn describe(context: &Context<'_>, record: &InvitationRecord) -> Value {
    let InvitationRecord { id, invitation, ended, account } = record;
    json!({
        "number": id.number(),
        "state": state(context, record),
        "name": invitation.name,
        "quota_bytes": invitation.quota_bytes,
        "created": rfc3339(at(invitation.made)),
        "expires": rfc3339(at(invitation.expires)),
        "ended": ended.map(|ended| rfc3339(at(ended))),
        "user": account,
    })
}

fn list(context: &Context<'_>, all: &[InvitationRecord]) {
    let lines: Vec<_> = all.iter().map(|one| describe(context, one)).collect();
    context.ui.json(&json!({"schema": "syncline.invitations/1", "invitations": lines}));
    for record in all {
        let new = &record.invitation;
        let name = new.name.as_deref().map_or_else(String::new, |name| format!(" for {name}"));
        let quota = new.quota_bytes.map_or_else(|| "no quota".to_owned(), size);
        let day = |seconds| day_and_time(at(seconds), &context.zone);
        let became = match (state(context, record), record.ended, &record.account) {
            ("used", Some(ended), Some(account)) => format!("used by {account}, {}", day(ended)),
            ("taken_back", Some(ended), _) => format!("taken back, {}", day(ended)),
            ("expired", ..) => format!("expired, {}", day(new.expires)),
            _ => format!("open until {}", day(new.expires)),
        };
        context.ui.answer(format!("{:<5} {became}{name}, {quota}", record.id.number()));
    }
}
