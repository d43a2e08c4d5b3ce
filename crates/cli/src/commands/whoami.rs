//! `syncline whoami`: who is signed in, as the server sees it.

use serde_json::json;

use crate::context::Context;
use crate::error::{Result, not_signed_in};
use crate::server_client::ServerClient;
use crate::text::size;

/// Runs the command.
pub(crate) fn run(context: &Context<'_>) -> Result<u8> {
    let account = context.home.account()?.ok_or_else(not_signed_in)?;
    let client = ServerClient::of_account(&account)?;
    let who = context.runtime()?.block_on(client.whoami())?;
    context.ui.json(&json!({
        "schema": "syncline.whoami/1",
        "server": account.server,
        "user": who.account,
        "device": who.device_name,
        "device_id": who.device_id,
        "quota_bytes": who.quota_bytes,
        "used_bytes": who.used_bytes,
    }));
    let quota = who
        .quota_bytes
        .map_or_else(|| "no quota".to_owned(), |quota| format!("of {}", size(quota)));
    context
        .ui
        .answer(format!("{} on {} as device \"{}\"", who.account, account.server, who.device_name));
    context.ui.answer(format!("{} stored, {quota}", size(who.used_bytes)));
    Ok(0)
}
