//! `syncline resolve`: decides a conflict, everywhere.
//!
//! The engine knows the file that kept the name and the copy that was kept beside it. A user thinks of the device at hand:
//! mine is what was changed on this device. Where neither was, mine is what kept the name.

use serde_json::json;
use sync::SyncError;
use sync::engine::{Conflict, Keep};
use sync::scan::Scope;

use crate::arguments::{KeepChoice, ResolveArguments};
use crate::connect::{SessionOptions, with_engine};
use crate::context::Context;
use crate::error::Result;
use crate::folder::Folder;
use crate::progress::Progress;
use crate::report::conflict_json;
use crate::text::path_text;
use crate::ui::Symbol;

/// Runs the command.
pub(crate) fn run(context: &Context<'_>, arguments: &ResolveArguments) -> Result<u8> {
    let (folder, path) = Folder::locate_path(&context.home, &arguments.path)?;
    let word = match arguments.keep {
        KeepChoice::Mine => "mine",
        KeepChoice::Theirs => "theirs",
        KeepChoice::Both => "both",
    };
    if context.flags.dry_run {
        context.ui.answer(format!("would keep {word} of {path}"));
        return Ok(0);
    }
    let progress = Progress::new(context.ui);
    let observer = progress.observer(|_| {});
    let decided = with_engine(
        context,
        &folder,
        SessionOptions::CHANGE_BESIDE_WATCH,
        Some(observer),
        async |engine| {
            engine.sync(Scope::Everything).await?;
            let conflicts = engine.conflicts()?;
            let is_meant = |conflict: &&Conflict| {
                conflict.copy == path || conflict.original.as_ref() == Some(&path)
            };
            let mut decided = Vec::new();
            for conflict in conflicts.iter().filter(is_meant) {
                let keep = keep_of(arguments.keep, conflict);
                decided.extend(
                    engine
                        .resolve(&conflict.copy, keep)
                        .await?
                        .into_iter()
                        .map(|conflict| (conflict, keep)),
                );
            }
            if decided.is_empty() { Err(SyncError::NoConflict(path.clone())) } else { Ok(decided) }
        },
    );
    drop(progress);
    let decided = decided?;
    context.ui.json(&json!({
        "schema": "syncline.resolve/1",
        "type": "summary",
        "path": path_text(&path),
        "keep": word,
        "decided": decided.iter().map(|(conflict, _)| conflict_json(conflict)).collect::<Vec<_>>(),
    }));
    for (conflict, keep) in &decided {
        let original = conflict.original.as_ref().unwrap_or(&conflict.copy);
        let line = match keep {
            Keep::Mine => format!(
                "{original} is what {} was; the other version is in the history",
                conflict.copy
            ),
            Keep::Theirs => format!("{original} stays; {} is in the history", conflict.copy),
            Keep::Both => format!("{original} and {} are two files now", conflict.copy),
        };
        context.ui.say(Symbol::Done, line);
    }
    Ok(0)
}

fn keep_of(choice: KeepChoice, conflict: &Conflict) -> Keep {
    match (choice, conflict.is_own_copy) {
        (KeepChoice::Both, _) => Keep::Both,
        (KeepChoice::Mine, true) | (KeepChoice::Theirs, false) => Keep::Mine,
        (KeepChoice::Mine, false) | (KeepChoice::Theirs, true) => Keep::Theirs,
    }
}
