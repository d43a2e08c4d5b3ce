//! `syncline restore`: brings an old or deleted file, link or folder back into the folder.
//!
//! It works beside a running watch: what it puts there is a change like any other, which the next sync sends.

use serde_json::json;
use sync::engine::Restored;

use crate::arguments::RestoreArguments;
use crate::claim::{FolderClaim, HomeClaim};
use crate::connect::{SessionOptions, with_engine};
use crate::context::Context;
use crate::error::{Code, CommandError, Result};
use crate::folder::Folder;
use crate::text::{counted, parse_at, path_text};
use crate::ui::Symbol;

/// The exit code of something that is partly so.
const PARTLY: u8 = 3;

/// Runs the command.
pub(crate) fn run(context: &Context<'_>, arguments: &RestoreArguments) -> Result<u8> {
    let (folder, path) = Folder::locate_path(&context.home, &arguments.path)?;
    let at = parse_at(&arguments.at, &context.zone)?;
    let to = match &arguments.to {
        None => None,
        Some(to) => {
            let (target, to) = Folder::locate_path(&context.home, to)?;
            if target.root != folder.root {
                return Err(CommandError::usage("DEST is in another synced folder"));
            }
            Some(to)
        }
    };
    if to.as_ref().unwrap_or(&path).is_root() && !path.is_root() {
        return Err(CommandError::usage("DEST is the synced folder itself")
            .help("--to DIR/NAME", "names the new file"));
    }
    let restored = if context.flags.dry_run {
        let listed = with_engine(context, &folder, SessionOptions::LOOK, None, async |engine| {
            engine.list(&path, Some(at), false, true).await
        })?;
        let written = listed.into_iter().map(|entry| entry.path).collect();
        Restored { written, dropped: Vec::new() }
    } else {
        let _of_home = HomeClaim::beside_watches(&context.home)?;
        // Whoever holds the claim sees the restored file as a change; without a claim nobody else can come in.
        let _claim = match FolderClaim::acquire(&folder) {
            Ok(claim) => Some(claim),
            Err(error) if error.code == Code::Locked => None,
            Err(error) => return Err(error),
        };
        with_engine(context, &folder, SessionOptions::LOOK, None, async |engine| {
            engine.restore(&path, at, to.as_ref(), arguments.overwrite).await
        })?
    };
    context.ui.json(&json!({
        "schema": "syncline.restore/1",
        "type": "summary",
        "path": path_text(&path),
        "at": arguments.at,
        "dry_run": context.flags.dry_run,
        "written": restored.written.iter().map(path_text).collect::<Vec<_>>(),
        "removed_by_cleanup": restored.dropped.iter().map(path_text).collect::<Vec<_>>(),
    }));
    let target = to.as_ref().unwrap_or(&path);
    if context.flags.dry_run {
        for path in &restored.written {
            context.ui.answer(format!("would restore {path}"));
        }
        return Ok(0);
    }
    for path in &restored.dropped {
        let line = format!("{path} is left out: a cleanup has removed its content of that time");
        context.ui.say(Symbol::Attention, line);
    }
    let count = counted(restored.written.len() as u64, "entry", "entries");
    context.ui.say(
        Symbol::Done,
        format!("{target} is {path} as of {} ({count}); the next sync sends it", arguments.at),
    );
    Ok(if restored.dropped.is_empty() { 0 } else { PARTLY })
}
