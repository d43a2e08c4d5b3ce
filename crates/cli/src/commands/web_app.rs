//! `syncline admin web-app`: which web app this program carries, in one number that people compare.

use model::hex;
use serde_json::json;
use server::ServerError;
use server::doors::web;

use super::admin::DAMAGED;
use crate::context::Context;
use crate::error::Result;
use crate::text::counted;
use crate::ui::Symbol;

/// Runs the command.
pub(crate) fn run(context: &Context<'_>) -> Result<u8> {
    let bundle = web::bundle();
    let what = "a web app in this program, for it was built without one".to_owned();
    let bundle = bundle.ok_or(ServerError::NotFound { what })?;
    let hash = hex::encode(&bundle.hash);
    context.ui.json(&json!({
        "schema": "syncline.web-app/1",
        "hash": hash,
        "files": bundle.files,
        "wrong": bundle.wrong,
    }));
    let groups: Vec<&str> =
        hash.as_bytes().chunks(8).filter_map(|it| str::from_utf8(it).ok()).collect();
    context.ui.answer(groups.join(" "));
    let files = counted(bundle.files as u64, "file", "files");
    if bundle.wrong.is_empty() {
        context.ui.say(Symbol::Done, format!("Fingerprint of the web app, {files}"));
        return Ok(0);
    }
    let wrong = bundle.wrong.join(", ");
    context.ui.say(Symbol::Attention, format!("Of {files} these are others: {wrong}"));
    Ok(DAMAGED)
}
