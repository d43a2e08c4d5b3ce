//! `syncline account totp`: codes of an app beside the password.

use model::Timestamp;
use serde_json::{Value, json};

use super::picture;
use crate::arguments::TotpCommand;
use crate::context::Context;
use crate::error::{Code, Result, not_signed_in};
use crate::server_client::ServerClient;
use crate::text::{counted, day_and_time, rfc3339};
use crate::ui::{ANY_CODE, Paint, Symbol};

const APP_CODE: &str = "Code that the app shows";

/// Runs the command.
pub(crate) fn run(context: &Context<'_>, command: &TotpCommand) -> Result<u8> {
    let account = context.home.account()?.ok_or_else(not_signed_in)?;
    let client = ServerClient::of_account(&account)?;
    match command {
        TotpCommand::Enable { password_stdin } => {
            context.no_dry_run("account totp enable")?;
            let question = format!("Password of {}", account.user);
            let password = context.ui.password(*password_stdin, &question)?;
            enable(context, &client, &password)
        }
        TotpCommand::Confirm(argument) => {
            context.no_dry_run("account totp confirm")?;
            let code = context.ui.code(argument.code_file.as_deref(), APP_CODE)?;
            confirm(context, &client, &code)
        }
        TotpCommand::Disable(argument) => {
            context.no_dry_run("account totp disable")?;
            let code = context.ui.code(argument.code_file.as_deref(), ANY_CODE)?;
            context.runtime()?.block_on(client.disable_totp(&code))?;
            summary(context, json!({ "state": "off" }));
            context.ui.say(Symbol::Done, "From now on the password is enough to sign in");
            Ok(0)
        }
        TotpCommand::Status => status(context, &client),
    }
}

fn summary(context: &Context<'_>, mut fields: Value) {
    fields["schema"] = json!("syncline.totp/1");
    fields["type"] = json!("summary");
    context.ui.json(&fields);
}

fn enable(context: &Context<'_>, client: &ServerClient, password: &str) -> Result<u8> {
    let ui = context.ui;
    let offer = context.runtime()?.block_on(client.begin_totp(password))?;
    if ui.draws()
        && let Some(lines) = picture::draw(&offer.uri)
    {
        for line in &lines {
            ui.answer(line);
        }
    }
    ui.answer(&offer.uri);
    ui.note(format!(
        "let an app for codes read this, or type {} into it",
        in_groups(&offer.secret)
    ));
    let (secret, uri) = (&offer.secret, &offer.uri);
    if ui.may_ask() {
        ui.json(&json!({
            "schema": "syncline.totp/1", "type": "offer", "secret": secret, "uri": uri,
        }));
        let code = ui.code(None, APP_CODE)?;
        return confirm(context, client, &code);
    }
    summary(context, json!({ "state": "waiting", "secret": secret, "uri": uri }));
    ui.note(
        "nothing has changed yet: it counts from `syncline account totp confirm --code-file FILE` on",
    );
    Ok(0)
}

/// Returns a secret as people type it.
fn in_groups(secret: &str) -> String {
    let letters: Vec<char> = secret.chars().collect();
    letters.chunks(4).map(String::from_iter).collect::<Vec<_>>().join(" ")
}

fn confirm(context: &Context<'_>, client: &ServerClient, code: &str) -> Result<u8> {
    let confirmed = context.runtime()?.block_on(client.confirm_totp(code));
    let codes = confirmed.map_err(|error| match error.code {
        Code::WrongSecondFactor => {
            error.help("syncline account totp confirm", "asks for another one")
        }
        _ => error,
    })?;
    summary(context, json!({ "state": "on", "recovery_codes": codes }));
    for code in &codes {
        context.ui.answer(code);
    }
    context.ui.note(
        "this is the only time that these recovery codes are shown; each lets you in once, without the app: print them, or write them down",
    );
    context.ui.say(Symbol::Done, "From now on a device that signs in is asked for a code, too");
    Ok(0)
}

fn status(context: &Context<'_>, client: &ServerClient) -> Result<u8> {
    let found = context.runtime()?.block_on(client.totp())?;
    let since = found.since.map(|seconds| Timestamp { seconds, nanoseconds: 0 });
    summary(
        context,
        json!({
            "state": found.state,
            "since": since.map(rfc3339),
            "recovery_codes_left": found.recovery_codes_left,
        }),
    );
    let since = since.map(|time| format!(" since {}", day_and_time(time, &context.zone)));
    let since = since.unwrap_or_default();
    let left = counted(found.recovery_codes_left, "recovery code", "recovery codes");
    context.ui.answer(match found.state.as_str() {
        "on" => format!("on{since}, {left} left"),
        "waiting" => format!("waiting for the first code{since}: the password is still enough"),
        _ => "off: the password is enough to sign in".to_owned(),
    });
    if found.state == "on" && found.recovery_codes_left == 0 {
        let again = context.ui.paint(Paint::Word, "syncline account totp disable");
        context.ui.note(format!("for new recovery codes: {again}, and enable it again"));
    }
    Ok(0)
}
