//! `syncline login`: makes this device a device of an account.

use serde_json::json;

use crate::arguments::LoginArguments;
use crate::claim::HomeClaim;
use crate::context::Context;
use crate::error::{Code, Result};
use crate::home::Account;
use crate::server_client::ServerClient;
use crate::ui::{ANY_CODE, Symbol};

/// Runs the command.
pub(crate) fn run(context: &Context<'_>, arguments: &LoginArguments) -> Result<u8> {
    context.no_dry_run("login")?;
    let _claim = HomeClaim::alone(&context.home)?;
    let client = ServerClient::new(&arguments.server)?;
    let password = context
        .ui
        .password(arguments.password_stdin, &format!("Password of {}", arguments.user))?;
    let device_name = match &arguments.device {
        Some(name) => name.clone(),
        None => context.home.device_name()?,
    };
    let before = context.home.account()?.filter(|before| before.server == client.address());
    let runtime = context.runtime()?;
    let login = |code: Option<&str>| {
        runtime.block_on(client.login(&arguments.user, &password, code, &device_name))
    };
    let file = arguments.code.code_file.as_deref();
    let given = file.map(|file| context.ui.code(Some(file), ANY_CODE)).transpose()?;
    let signed_in = match login(given.as_deref()) {
        // Who is there is asked when the server wants one, and not before.
        Err(error) if error.code == Code::SecondFactorNeeded && context.ui.may_ask() => {
            login(Some(&context.ui.code(None, ANY_CODE)?))?
        }
        signed_in => signed_in?,
    };
    let account = Account {
        server: client.address(),
        user: signed_in.account,
        device_id: signed_in.device_id,
        device_name,
        token: signed_in.token,
    };
    context.home.set_account(&account)?;
    // The device that this one was before is not needed any more; that it stays in the list does no harm.
    if let Some(before) = before
        && let Ok(client) = ServerClient::of_account(&before)
    {
        let _ = runtime.block_on(client.logout());
    }
    context.ui.json(&json!({
        "schema": "syncline.login/1",
        "type": "summary",
        "server": account.server,
        "user": account.user,
        "device": account.device_name,
        "device_id": account.device_id,
    }));
    context.ui.say(
        Symbol::Done,
        format!("Signed in as {} on device \"{}\"", account.user, account.device_name),
    );
    Ok(0)
}
