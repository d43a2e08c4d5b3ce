//! `syncline account passwd`: another password for the own account.

use std::fmt::Write as _;

use serde_json::json;

use crate::arguments::PasswdArguments;
use crate::context::Context;
use crate::error::{Code, CommandError, Result, not_signed_in};
use crate::sealed::read_secret;
use crate::server_client::ServerClient;
use crate::server_client::account::PasswordChanged;
use crate::text::counted;
use crate::ui::Symbol;

/// Runs the command.
pub(crate) fn run(context: &Context<'_>, arguments: &PasswdArguments) -> Result<u8> {
    context.no_dry_run("account passwd")?;
    let ui = context.ui;
    let account = context.home.account()?.ok_or_else(not_signed_in)?;
    let client = ServerClient::of_account(&account)?;
    let question = format!("Password of {}, as it is now", account.user);
    let password = ui.password(arguments.password_stdin, &question)?;
    let new = match &arguments.new_password_file {
        Some(file) => read_secret(file)?.as_str().to_owned(),
        None => typed_twice(context)?,
    };
    let changed = client.change_password(&password, &new, arguments.sign_out_others);
    let PasswordChanged { signed_out, identities } = context.runtime()?.block_on(changed)?;
    ui.json(&json!({
        "schema": "syncline.account/1",
        "type": "summary",
        "user": account.user,
        "signed_out": signed_out,
        "identities": identities,
    }));
    let mut others = match arguments.sign_out_others {
        true => format!("{} signed out", counted(signed_out, "other is", "others are")),
        false => "who is signed in stays so".to_owned(),
    };
    if identities > 0 {
        let whose = counted(identities, "identity", "identities");
        let _ = write!(others, ", and {whose} at a provider no longer let in (account oidc link)");
    }
    ui.say(Symbol::Done, format!("{} has a new password; {others}", account.user));
    Ok(0)
}

fn typed_twice(context: &Context<'_>) -> Result<String> {
    if !context.ui.may_ask() {
        return Err(CommandError::new(
            Code::WouldAsk,
            "a new password is needed, and nobody is there to type it",
        )
        .state("nothing was changed")
        .help("--new-password-file FILE", "reads it from a file"));
    }
    let new = context.ui.password(false, "New password")?;
    match context.ui.password(false, "The same again")? == new {
        true => Ok(new),
        false => Err(CommandError::usage("the passwords differ").state("nothing was changed")),
    }
}
