//! `syncline resolve`: decides a conflict, everywhere.
//!
//! The engine knows the file that kept the name and the copy that was kept beside it. A user thinks of the device at hand:
//! mine is what was changed on this device. Where neither was, mine is what kept the name.

use model::RelativePath;
use serde_json::json;
use sync::engine::{Conflict, Keep};
use sync::scan::Scope;
use sync::{Engine, SyncError};

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
        Some(KeepChoice::Mine) => "mine",
        Some(KeepChoice::Theirs) => "theirs",
        Some(KeepChoice::Both) => "both",
        None => "merged",
    };
    if context.flags.dry_run {
        let what = if arguments.merge { "merge the two sides" } else { &format!("keep {word}") };
        context.ui.answer(format!("would {what} of {path}"));
        return Ok(0);
    }
    let progress = Progress::new(context.ui);
    let observer = progress.observer(|_| {});
    let decided = with_engine(
        context,
        &folder,
        SessionOptions::CHANGE_BESIDE_WATCH,
        Some(observer),
        async |engine| match arguments.keep {
            Some(keep) => decide(engine, &path, keep).await,
            None => {
                let merged = engine.resolve_by_merge(&path).await?;
                Ok(merged.into_iter().map(|conflict| (conflict, None)).collect::<Vec<_>>())
            }
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
        context.ui.say(Symbol::Done, in_words(conflict, *keep));
    }
    Ok(0)
}

/// Decides every conflict of a path for one side, and returns what was kept of each.
async fn decide(
    engine: &mut Engine,
    path: &RelativePath,
    choice: KeepChoice,
) -> sync::error::Result<Vec<(Conflict, Option<Keep>)>> {
    engine.sync(Scope::Everything).await?;
    let is_meant =
        |conflict: &&Conflict| conflict.copy == *path || conflict.original.as_ref() == Some(path);
    let mut decided = Vec::new();
    for conflict in engine.conflicts()?.iter().filter(is_meant) {
        let keep = keep_of(choice, conflict);
        let of_copy = engine.resolve(&conflict.copy, keep).await?;
        decided.extend(of_copy.into_iter().map(|conflict| (conflict, Some(keep))));
    }
    if decided.is_empty() { Err(SyncError::NoConflict(path.clone())) } else { Ok(decided) }
}

fn in_words(conflict: &Conflict, keep: Option<Keep>) -> String {
    let copy = &conflict.copy;
    let original = conflict.original.as_ref().unwrap_or(copy);
    match keep {
        Some(Keep::Mine) => {
            format!("{original} is what {copy} was; the other version is in the history")
        }
        Some(Keep::Theirs) => format!("{original} stays; {copy} is in the history"),
        Some(Keep::Both) => format!("{original} and {copy} are two files now"),
        None => format!("{original} has the changes of both; both versions are in the history"),
    }
}

fn keep_of(choice: KeepChoice, conflict: &Conflict) -> Keep {
    match (choice, conflict.is_own_copy) {
        (KeepChoice::Both, _) => Keep::Both,
        (KeepChoice::Mine, true) | (KeepChoice::Theirs, false) => Keep::Mine,
        (KeepChoice::Mine, false) | (KeepChoice::Theirs, true) => Keep::Theirs,
    }
}
