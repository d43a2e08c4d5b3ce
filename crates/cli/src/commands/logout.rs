//! `syncline logout`: this device is no device of the account any more. Files stay where they are.

use serde_json::json;

use crate::claim::HomeClaim;
use crate::context::Context;
use crate::error::{Code, Result, not_signed_in};
use crate::server_client::ServerClient;
use crate::ui::Symbol;

/// Runs the command.
pub(crate) fn run(context: &Context<'_>) -> Result<u8> {
    context.no_dry_run("logout")?;
    let _claim = HomeClaim::alone(&context.home)?;
    let account = context.home.account()?.ok_or_else(not_signed_in)?;
    let told = context.runtime()?.block_on(ServerClient::of_account(&account)?.logout());
    match told {
        // A device that the server does not know any more is signed out.
        Ok(()) => {}
        Err(error) if error.code == Code::NotSignedIn => {}
        Err(error) => {
            return Err(error.help(
                "syncline device revoke NAME",
                "on another device, where this one cannot reach the server",
            ));
        }
    }
    context.home.forget_account()?;
    context.ui.json(&json!({"schema": "syncline.logout/1", "type": "summary", "server": account.server, "user": account.user}));
    context
        .ui
        .say(Symbol::Done, format!("Signed out of {}; files stay where they are", account.server));
    Ok(0)
}
