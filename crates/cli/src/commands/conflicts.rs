//! `syncline conflicts`: what waits for a decision.

use serde_json::json;

use crate::arguments::FolderArgument;
use crate::connect::{SessionOptions, with_engine};
use crate::context::Context;
use crate::error::Result;
use crate::folder::Folder;
use crate::report::{EXIT_CONFLICTS, conflict_json, conflict_line};

/// Runs the command.
pub(crate) fn run(context: &Context<'_>, arguments: &FolderArgument) -> Result<u8> {
    let folder = Folder::locate(&context.home, &arguments.folder)?;
    let conflicts = with_engine(context, &folder, SessionOptions::LOOK, None, async |engine| {
        engine.conflicts()
    })?;
    context.ui.json(&json!({
        "schema": "syncline.conflicts/1",
        "conflicts": conflicts.iter().map(conflict_json).collect::<Vec<_>>(),
    }));
    for conflict in &conflicts {
        context.ui.answer(conflict_line(context, conflict));
    }
    if conflicts.is_empty() {
        context.ui.answer("no conflicts");
        return Ok(0);
    }
    context.ui.answer("  Decide: syncline resolve PATH --keep mine|theirs|both");
    Ok(EXIT_CONFLICTS)
}
