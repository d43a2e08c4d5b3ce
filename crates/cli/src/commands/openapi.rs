//! `syncline admin export-openapi`: the description of the server's REST door.

use server::doors::openapi;

use crate::context::Context;

/// Runs the command.
pub(crate) fn run(context: &Context<'_>) -> u8 {
    context.ui.json(&openapi::document());
    context.ui.answer(openapi::text().trim_end());
    0
}
