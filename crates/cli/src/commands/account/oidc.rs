//! `syncline account oidc`: who signs in to the own account by the provider of the server.

use model::Timestamp;
use serde_json::{Value, json};

use crate::arguments::OidcCommand;
use crate::context::Context;
use crate::error::{Result, not_signed_in};
use crate::provider;
use crate::server_client::ServerClient;
use crate::server_client::account::SubjectLine;
use crate::text::rfc3339;
use crate::ui::Symbol;

/// Runs the command.
pub(crate) fn run(context: &Context<'_>, command: &OidcCommand) -> Result<u8> {
    let account = context.home.account()?.ok_or_else(not_signed_in)?;
    let client = ServerClient::of_account(&account)?;
    let runtime = context.runtime()?;
    match command {
        OidcCommand::Link { password_stdin, browser } => {
            context.no_dry_run("account oidc link")?;
            let offer = runtime.block_on(client.provider())?;
            let question = format!("Password of {}", account.user);
            let password = context.ui.password(*password_stdin, &question)?;
            let grant = provider::visit(context, &runtime, client.base(), &offer, browser)?;
            let bound = runtime.block_on(client.bind_subject(&password, &grant))?;
            summary(context, &bound.issuer, &bound.subject);
            let done = format!("{} at {} signs in from now on", bound.subject, bound.issuer);
            context.ui.say(Symbol::Done, done);
        }
        OidcCommand::Unlink { subject } => {
            context.no_dry_run("account oidc unlink")?;
            runtime.block_on(client.unbind_subject(subject))?;
            summary(context, &Value::Null, subject);
            let done = format!("{subject} signs in no more; devices that are signed in stay so");
            context.ui.say(Symbol::Done, done);
        }
        OidcCommand::Ls => list(context, &runtime.block_on(client.subjects())?),
    }
    Ok(0)
}

fn summary(context: &Context<'_>, issuer: impl serde::Serialize, subject: &str) {
    context.ui.json(&json!({
        "schema": "syncline.oidc/1", "type": "summary", "issuer": issuer, "subject": subject,
    }));
}

/// Lists who signs in to an account by providers.
pub(crate) fn list(context: &Context<'_>, subjects: &[SubjectLine]) {
    let lines: Vec<_> = subjects
        .iter()
        .map(|SubjectLine { issuer, subject, since }| {
            let since = rfc3339(Timestamp { seconds: *since, nanoseconds: 0 });
            json!({ "issuer": issuer, "subject": subject, "since": since })
        })
        .collect();
    context.ui.json(&json!({ "schema": "syncline.subjects/1", "subjects": lines }));
    for SubjectLine { issuer, subject, .. } in subjects {
        context.ui.answer(format!("{subject:40}  {issuer}"));
    }
}
