//! `syncline token`: tokens for other programs, which may do less than a device.

use model::Timestamp;
use serde_json::json;

use super::by_name::{Named, find};
use crate::arguments::TokenCommand;
use crate::context::Context;
use crate::error::{Result, not_signed_in};
use crate::server_client::{NewToken, ServerClient, TokenLine};
use crate::text::{day_and_time, rfc3339};
use crate::ui::{Paint, Symbol};

/// Runs the command.
pub(crate) fn run(context: &Context<'_>, command: &TokenCommand) -> Result<u8> {
    let account = context.home.account()?.ok_or_else(not_signed_in)?;
    let client = ServerClient::of_account(&account)?;
    let runtime = context.runtime()?;
    match command {
        TokenCommand::Add { name, scope, workspace, expires } => {
            context.no_dry_run("token add")?;
            let new = NewToken {
                name,
                scope: scope.word(),
                workspace: workspace.as_deref(),
                expires_in_seconds: expires.map(|span| span.0),
            };
            let line = runtime.block_on(client.add_token(&new))?;
            show(context, &line);
        }
        TokenCommand::Ls => list(context, &runtime.block_on(client.tokens())?),
        TokenCommand::Rm { token } => {
            let tokens = runtime.block_on(client.tokens())?;
            let found = find(&tokens, token)?;
            if context.flags.dry_run {
                context.ui.answer(format!("would take the token \"{}\" back", found.name));
                return Ok(0);
            }
            context.ui.confirm(&format!("Take the token \"{}\" back?", found.name))?;
            runtime.block_on(client.remove_token(&found.id))?;
            let said = format!("\"{}\" is taken back; who shows it is refused", found.name);
            context.ui.say(Symbol::Done, said);
            context.ui.json(&json!({
                "schema": "syncline.token/1",
                "type": "summary",
                "id": found.id,
                "name": found.name,
                "is_revoked": true,
            }));
        }
    }
    Ok(0)
}

fn at(seconds: i64) -> Timestamp {
    Timestamp { seconds, nanoseconds: 0 }
}

/// Shows a new token, for the only time.
fn show(context: &Context<'_>, line: &TokenLine) {
    let token = line.token.as_deref().unwrap_or_default();
    context.ui.json(&json!({
        "schema": "syncline.token/1",
        "type": "summary",
        "id": line.id,
        "name": line.name,
        "scope": line.scope,
        "workspace": line.workspace,
        "expires": line.expires.map(|seconds| rfc3339(at(seconds))),
        "token": token,
    }));
    context.ui.answer(token);
    let until = match line.expires {
        Some(seconds) => format!("until {}", day_and_time(at(seconds), &context.zone)),
        None => "until it is taken back".to_owned(),
    };
    context
        .ui
        .note(format!("this is the only time that \"{}\" is shown; it counts {until}", line.name));
}

fn list(context: &Context<'_>, tokens: &[TokenLine]) {
    let lines: Vec<_> = tokens
        .iter()
        .map(|token| {
            json!({
                "id": token.id,
                "name": token.name,
                "scope": token.scope,
                "workspace": token.workspace,
                "created": rfc3339(at(token.created)),
                "last_used": rfc3339(at(token.last_used)),
                "expires": token.expires.map(|seconds| rfc3339(at(seconds))),
            })
        })
        .collect();
    context.ui.json(&json!({"schema": "syncline.tokens/1", "tokens": lines}));
    for token in tokens {
        let ends = token.expires.map_or_else(String::new, |seconds| {
            format!(", until {}", day_and_time(at(seconds), &context.zone))
        });
        let only = token.workspace.as_ref().map_or_else(String::new, |id| format!(" in {id}"));
        context.ui.answer(format!(
            "{}  {:20}  {}{only}{ends}",
            context.ui.paint(Paint::Dim, &token.id[..8.min(token.id.len())]),
            token.name,
            token.scope,
        ));
    }
}

impl Named for TokenLine {
    const KINDS: &'static str = "tokens";
    const LIST: &'static str = "syncline token ls";

    fn name_and_id(&self) -> (&str, &str) {
        (&self.name, &self.id)
    }
}
