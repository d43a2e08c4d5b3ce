//! `syncline version`.

use serde_json::json;

use crate::context::Context;
use crate::error::Result;

/// Runs the command.
pub(crate) fn run(context: &Context<'_>) -> Result<u8> {
    let version = env!("CARGO_PKG_VERSION");
    context.ui.json(&json!({"schema": "syncline.version/1", "version": version}));
    context.ui.answer(format!("syncline {version}"));
    Ok(0)
}
