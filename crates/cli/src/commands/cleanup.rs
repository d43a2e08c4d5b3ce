//! `syncline cleanup`: removes old versions by policy, and then what nothing refers to.

use serde_json::json;
use sync::engine::{CleanupOptions, CleanupReport};

use crate::arguments::CleanupArguments;
use crate::connect::{SessionOptions, with_engine};
use crate::context::Context;
use crate::error::Result;
use crate::folder::Folder;
use crate::ownership;
use crate::progress::Progress;
use crate::text::{counted, size};
use crate::ui::Symbol;

/// The exit code of something that is partly so.
const PARTLY: u8 = 3;

/// Runs the command.
pub(crate) fn run(context: &Context<'_>, arguments: &CleanupArguments) -> Result<u8> {
    let folder = Folder::locate(&context.home, &arguments.folder.folder)?;
    ownership::require(context, &folder)?;
    let dry_run = context.flags.dry_run;
    let options = CleanupOptions {
        dry_run,
        is_clock_trusted: arguments.trust_clock,
        policy: arguments.keep.clone().filter(|_| dry_run),
        ..CleanupOptions::default()
    };
    let progress = Progress::new(context.ui);
    let observer = progress.observer(|_| {});
    // Nothing of a folder changes, so a watch steps aside and goes on afterwards, whatever was left unfinished.
    let session = SessionOptions::CHANGE_BESIDE_WATCH;
    let report = with_engine(context, &folder, session, Some(observer), async |engine| {
        if let Some(policy) = arguments.keep.as_ref().filter(|_| !dry_run) {
            engine.settle_proposals().await?;
            let (base, known) = engine.version_policy()?;
            if base == 0 || known != *policy {
                engine.propose_version_policy(base, policy).await?;
            }
        }
        engine.cleanup(&options).await
    })?;
    drop(progress);
    Ok(tell(context, dry_run, &report))
}

/// Says how many pages of old checkpoints are removed, if any.
fn pages_of_old_checkpoints(report: &CleanupReport) -> Option<String> {
    let pages = counted(report.pages, "page", "pages");
    let text = format!("{pages} of old checkpoints ({})", size(report.pages_length));
    (report.pages > 0).then_some(text)
}

/// Says what was done, or would be. Returns the exit code: 3 where some store did not remove everything.
fn tell(context: &Context<'_>, dry_run: bool, report: &CleanupReport) -> u8 {
    context.ui.json(&json!({
        "schema": "syncline.cleanup/1",
        "type": "summary",
        "dry_run": dry_run,
        "keeps": report.policy.to_string(),
        "kept_versions": report.kept_versions,
        "removed_versions": report.dropped_versions,
        "removed_packs": report.packs,
        "removed_bytes": report.length,
        "rewritten_packs": report.repacked,
        "written_bytes": report.written_length,
        "needless_bytes": report.needless_length,
        "left_packs": report.left,
        "removed_pages": report.pages,
        "removed_page_bytes": report.pages_length,
        "left_pages": report.left_pages,
        "version": report.fence,
    }));
    let kept = counted(report.kept_versions, "version", "versions");
    context.ui.note(format!("keeps {}: {kept}", report.policy));
    let versions = counted(report.dropped_versions, "old version", "old versions");
    let packs = counted(report.packs, "pack", "packs");
    let what = format!("{versions} and {packs} ({})", size(report.length));
    let anew = match report.repacked {
        0 => String::new(),
        count => format!(", {count} of them written anew ({})", size(report.written_length)),
    };
    let is_nothing = report.dropped_versions + report.packs == 0;
    let pages = pages_of_old_checkpoints(report);
    let verb = if dry_run { "would remove" } else { "removed" };
    let line = match (is_nothing, pages) {
        (true, None) => "there is nothing to remove".to_owned(),
        (true, Some(pages)) => format!("{verb} {pages}"),
        (false, None) => format!("{verb} {what}{anew}"),
        (false, Some(pages)) => format!("{verb} {what}{anew}, and {pages}"),
    };
    context.ui.say(Symbol::Done, line);
    if report.left + report.left_pages > 0 {
        let objects = counted(report.left + report.left_pages, "object is", "objects are");
        let line = format!("{objects} still in some store; the next cleanup removes them");
        context.ui.say(Symbol::Attention, line);
        return PARTLY;
    }
    0
}
