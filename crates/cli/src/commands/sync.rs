//! `syncline sync`: one full exchange in both directions.

use ::sync::engine::Event;
use ::sync::scan::Scope;
use model::Clock;
use serde_json::json;

use crate::arguments::SyncArguments;
use crate::commands::status;
use crate::connect::{SessionOptions, with_engine};
use crate::context::Context;
use crate::error::Result;
use crate::folder::Folder;
use crate::mounted;
use crate::progress::Progress;
use crate::report;
use crate::sealed;
use crate::text::path_text;

/// Runs the command.
pub(crate) fn run(context: &Context<'_>, arguments: &SyncArguments) -> Result<u8> {
    let checkin = &arguments.checkin;
    if context.flags.dry_run {
        return status::run(context, &checkin.folder);
    }
    let folder = Folder::locate(&context.home, &checkin.folder.folder)?;
    let options = change_options(context, checkin.allow_mass_delete)?;
    exchange(context, "sync", &folder, options)
}

/// Asks for what a mass deletion wants.
pub(crate) fn change_options(
    context: &Context<'_>,
    allow_mass_delete: bool,
) -> Result<SessionOptions> {
    if allow_mass_delete {
        context.ui.confirm("Delete everywhere what vanished from this folder?")?;
    }
    Ok(SessionOptions { allow_mass_delete, ..SessionOptions::CHANGE })
}

/// Exchanges everything in a folder and in those in it that are workspaces of their own, and tells about it.
pub(crate) fn exchange(
    context: &Context<'_>,
    command: &str,
    folder: &Folder,
    options: SessionOptions,
) -> Result<u8> {
    let code = exchange_one(context, command, folder, options)?;
    let of_inner = mounted::exchange_all(context, command, folder)?;
    Ok(if code == 0 { of_inner } else { code })
}

/// Exchanges everything in one folder and tells about it.
pub(crate) fn exchange_one(
    context: &Context<'_>,
    command: &str,
    folder: &Folder,
    options: SessionOptions,
) -> Result<u8> {
    let start = context.clock.elapsed();
    let progress = Progress::new(context.ui);
    let observer = progress.observer(printer(context));
    let done = with_engine(context, folder, options, Some(observer), async |engine| {
        let report = engine.sync(Scope::Everything).await?;
        Ok((report, engine.conflicts()?))
    });
    drop(progress);
    let (report, conflicts) = done?;
    sealed::catch_up_if_due(context, folder)?;
    let time = context.clock.elapsed().saturating_sub(start);
    let code = report::tell(context, command, folder, (&report, &conflicts), time);
    report::refuse_kept_back(&report)?;
    Ok(code)
}

/// Returns what prints every file, where somebody wants to see that.
pub(crate) fn printer(context: &Context<'_>) -> impl Fn(&Event) + Send + Sync + 'static {
    let is_json = context.ui.is_json();
    let is_wanted = context.ui.verbosity() > 0;
    move |event| {
        let (kind, path) = match event {
            Event::Sent(path) => ("sent", path),
            Event::Received(path) => ("received", path),
            Event::Removed(path) => ("removed", path),
            Event::KeptCopy(path) => ("kept_copy", path),
            Event::Step(_)
            | Event::Read { .. }
            | Event::Written { .. }
            | Event::Scrubbed { .. }
            | Event::Cleaned { .. }
            | Event::Filled
            | Event::CleanupDue
            | Event::SettingsChanged
            | Event::MountsChanged => return,
        };
        if !is_wanted {
            return;
        }
        if is_json {
            let line =
                json!({"schema": "syncline.change/1", "type": kind, "path": path_text(path)});
            crate::ui::print(&line.to_string());
        } else {
            crate::ui::print(&format!("{kind:9} {path}"));
        }
    }
}
