//! The exchange in its steps, as MetaSync names them, and in Syncany's two halves.

use model::Clock;
use sync::Engine;
use sync::engine::SyncReport;

use crate::arguments::{CheckinArguments, FolderArgument};
use crate::commands::sync::{change_options, printer};
use crate::connect::{SessionOptions, with_engine};
use crate::context::Context;
use crate::error::Result;
use crate::folder::Folder;
use crate::progress::Progress;
use crate::report;

/// A step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Checkin,
    Fetch,
    Merge,
    Push,
}

/// `syncline checkin`.
pub(crate) fn checkin(context: &Context<'_>, arguments: &CheckinArguments) -> Result<u8> {
    with_brake(context, "checkin", arguments, &[Step::Checkin])
}

/// `syncline fetch`.
pub(crate) fn fetch(context: &Context<'_>, arguments: &FolderArgument) -> Result<u8> {
    run(context, "fetch", arguments, SessionOptions::CHANGE, &[Step::Fetch])
}

/// `syncline merge`.
pub(crate) fn merge(context: &Context<'_>, arguments: &CheckinArguments) -> Result<u8> {
    with_brake(context, "merge", arguments, &[Step::Merge])
}

/// `syncline push`.
pub(crate) fn push(context: &Context<'_>, arguments: &FolderArgument) -> Result<u8> {
    run(context, "push", arguments, SessionOptions::CHANGE, &[Step::Push])
}

/// `syncline up`.
pub(crate) fn up(context: &Context<'_>, arguments: &CheckinArguments) -> Result<u8> {
    with_brake(context, "up", arguments, &[Step::Checkin, Step::Push])
}

/// `syncline down`.
pub(crate) fn down(context: &Context<'_>, arguments: &CheckinArguments) -> Result<u8> {
    with_brake(context, "down", arguments, &[Step::Fetch, Step::Merge])
}

fn with_brake(
    context: &Context<'_>,
    name: &str,
    arguments: &CheckinArguments,
    steps: &[Step],
) -> Result<u8> {
    let options = change_options(context, arguments.allow_mass_delete)?;
    run(context, name, &arguments.folder, options, steps)
}

fn run(
    context: &Context<'_>,
    name: &str,
    arguments: &FolderArgument,
    options: SessionOptions,
    steps: &[Step],
) -> Result<u8> {
    context.no_dry_run(name)?;
    let folder = Folder::locate(&context.home, &arguments.folder)?;
    let start = context.clock.elapsed();
    let progress = Progress::new(context.ui);
    let observer = progress.observer(printer(context));
    let done = with_engine(context, &folder, options, Some(observer), async |engine| {
        let mut total = SyncReport::default();
        for step in steps {
            add(&mut total, take(engine, *step).await?);
        }
        Ok((total, engine.conflicts()?))
    });
    drop(progress);
    let (report, conflicts) = done?;
    let time = context.clock.elapsed().saturating_sub(start);
    Ok(report::tell(context, name, &folder, (&report, &conflicts), time))
}

async fn take(engine: &mut Engine, step: Step) -> sync::error::Result<SyncReport> {
    let of_head = |engine: &Engine| -> sync::error::Result<SyncReport> {
        let seq = engine.state().head()?.map_or(0, |head| head.seq);
        Ok(SyncReport { seq, ..SyncReport::default() })
    };
    match step {
        Step::Checkin => engine.checkin().await,
        Step::Merge => engine.merge().await,
        Step::Fetch => {
            let received = engine.fetch().await?;
            Ok(SyncReport { received, ..of_head(engine)? })
        }
        Step::Push => {
            let sent = engine.push().await?;
            Ok(SyncReport { sent, ..of_head(engine)? })
        }
    }
}

fn add(total: &mut SyncReport, step: SyncReport) {
    total.seq = step.seq;
    total.sent += step.sent;
    total.received += step.received;
    total.sent_bytes += step.sent_bytes;
    total.received_bytes += step.received_bytes;
    total.scanned += step.scanned;
    total.read_bytes += step.read_bytes;
    total.kept_copies.extend(step.kept_copies);
    total.problems.extend(step.problems);
}
