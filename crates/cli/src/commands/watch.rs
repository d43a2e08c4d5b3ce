//! `syncline watch`: keeps a folder in sync until it is told to stop. `daemon` runs the same in the background.
//!
//! What it did last stands in `watch.json` beside the folder's database, for `daemon status`.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use model::{RelativePath, StoreRecord};
use parking_lot::Mutex;
use sync::engine::{Event, SyncReport, WatchOptions};
use sync::ignore_rules::{IGNORE_FILE, IgnoreRules};
use sync::scan::Scope;
use sync::scrub::{ScrubOptions, Scrubber};
use sync::watch::{FolderWatcher, Hint, WatchFilter};
use sync::{Engine, SyncError};
use tokio::sync::Notify;

use crate::arguments::WatchArguments;
use crate::claim::{HomeClaim, wait_for_turn};
use crate::commands::backend::renew::{Keeper, renew};
use crate::connect::{Driver, SessionOptions, is_out_of_reach, open_data, with_session};
use crate::context::Context;
use crate::error::{Code, CommandError, Result};
use crate::folder::{Folder, Place};
use crate::handover;
use crate::home::Config;
use crate::mounted;
use crate::system;

mod cleaning;
mod inner;
mod teller;

use cleaning::Cleaning;
use inner::InnerWatches;
use teller::Teller;
pub(crate) use teller::WatchState;

/// How long a stop may take to finish what is under way.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// How often in a row stores must not answer before it is looked whether the workspace has others by now.
const FAILURES_BEFORE_LOOKING: u32 = 4;

/// How often in a row a watch that comes back may find its folder taken; each time it has waited until it may be free.
const REFUSALS_MAX: u32 = 100;

/// Runs the command.
pub(crate) fn run(context: &Context<'_>, arguments: &WatchArguments) -> Result<u8> {
    context.no_dry_run("watch")?;
    if arguments.detached {
        // In a session of its own it outlives the terminal; where it has one already, nothing changes.
        let _ = rustix::process::setsid();
    }
    if arguments.end_with_stdin {
        inner::end_with_stdin();
    }
    let folder = Folder::locate(&context.home, &arguments.folder.folder)?;
    let driver = Driver::start(context)?;
    keep(context, &driver, &folder)?;
    Ok(driver.interrupts().received().map_or(0, Code::exit))
}

/// Keeps a folder in sync until a signal comes.
///
/// # Errors
/// [`Code::Locked`] where another process has the home or the folder; whatever keeps an engine from starting.
pub(crate) fn keep(context: &Context<'_>, driver: &Driver, folder: &Folder) -> Result<()> {
    let mut folder = folder.clone();
    let config = context.home.config()?;
    let (scrub, cleaning) = (scrub_options(&config), Cleaning::of(&config));
    let inner = InnerWatches::default();
    let fills_first = Arc::default();
    let mut background = Background { scrub, config: &config, fills_first, cleaning, inner };
    let mut options = WatchOptions::default();
    if let Some(seconds) = config.rescan_after_s {
        options.rescan_after = Duration::from_secs(seconds.max(1));
    }
    // Held while it steps aside, too, so that nobody else takes the home meanwhile.
    let _claim = HomeClaim::beside_watches(&context.home)?;
    let teller = Arc::new(Teller::new(context, &folder));
    // Whoever is refused at first is told so.
    let mut refusals_left = 0;
    loop {
        background.inner.keep_up(context, &folder, &teller);
        let ended = match stretch(context, driver, &folder, (options, &mut background), &teller) {
            // Another command was faster when this one came back; it may have been about to end.
            Err(error) if error.code == Code::Locked && refusals_left > 0 => {
                refusals_left -= 1;
                Ended::SteppedAside
            }
            ended => {
                refusals_left = REFUSALS_MAX;
                ended?
            }
        };
        match ended {
            Ended::Stopped => break,
            Ended::StoreEmptied(record) => {
                match renew(context, &folder, &record) {
                    Ok(()) => {
                        teller.note(&format!("'{}' was emptied, and is filled again", record.name));
                        background.fills_first.store(true, Ordering::Relaxed);
                    }
                    // It is tried again after as long a time.
                    Err(error) => {
                        let cause = error.cause.unwrap_or(error.headline);
                        teller.note(&format!("'{}' was emptied: {cause}", record.name));
                    }
                }
            }
            Ended::SteppedAside => driver.run(async {
                tokio::select! {
                    done = wait_for_turn(&folder) => done,
                    _ = driver.interrupts().wait() => Ok(()),
                }
            })?,
            Ended::OpensAnew | Ended::CleanupDue => {}
            Ended::OutOfReach => {
                if let Some(place) = handover::newer_place(context, driver, &folder) {
                    folder.set_place(Place::Stored(place))?;
                }
            }
        }
        // Another command, or another device, may have changed the stores meanwhile.
        folder = Folder::locate(&context.home, &folder.root)?;
    }
    teller.stopped();
    Ok(())
}

/// Watches, and cleans up where it is time.
fn stretch(
    context: &Context<'_>,
    driver: &Driver,
    folder: &Folder,
    (options, background): (WatchOptions, &mut Background<'_>),
    teller: &Arc<Teller>,
) -> Result<Ended> {
    let ended = watch(context, driver, folder, (options, background), teller)?;
    match (&ended, &mut background.cleaning) {
        (Ended::CleanupDue, Some(cleaning)) => cleaning.run(context, driver, folder, teller),
        _ => Ok(ended),
    }
}

/// Why a watch has ended.
#[derive(Debug, PartialEq)]
enum Ended {
    /// It was told to.
    Stopped,
    /// Another command wants to work on the folder for a moment.
    SteppedAside,
    /// Something is different outside of the folder; it is opened anew.
    OpensAnew,
    /// It is time to clean up.
    CleanupDue,
    /// The stores have not answered several times; perhaps there are others by now.
    OutOfReach,
    /// This store answers and holds nothing any more.
    StoreEmptied(StoreRecord),
}

/// What is done beside the watching.
struct Background<'a> {
    scrub: Option<ScrubOptions>,
    config: &'a Config,
    /// Whether a store lacks everything. It stays so until it was filled once: whatever comes between cuts that off.
    fills_first: Arc<AtomicBool>,
    /// When it cleans up, if it does.
    cleaning: Option<Cleaning>,
    /// The folders that are workspaces of their own, as they are watched.
    inner: InnerWatches,
}

/// Why a stretch of watching is to end.
#[derive(Debug, Default)]
struct Reason {
    newest: Mutex<Option<Ended>>,
    given: Notify,
}

impl Reason {
    /// Gives a reason. One that concerns the stores counts for more than a cleanup.
    fn give(&self, ended: Ended) {
        let mut newest = self.newest.lock();
        if ended != Ended::CleanupDue || newest.is_none() {
            *newest = Some(ended);
        }
        self.given.notify_one();
    }
}

/// Watches until it is told to stop or asked to step aside.
fn watch(
    context: &Context<'_>,
    driver: &Driver,
    folder: &Folder,
    (options, background): (WatchOptions, &Background<'_>),
    teller: &Arc<Teller>,
) -> Result<Ended> {
    let reason = Arc::new(Reason::default());
    let failures = Arc::new(AtomicU32::new(0));
    let observer = {
        let (teller, reason) = (teller.clone(), reason.clone());
        let fills_first = background.fills_first.clone();
        Arc::new(move |event: Event| match event {
            Event::SettingsChanged | Event::MountsChanged => reason.give(Ended::OpensAnew),
            Event::CleanupDue => reason.give(Ended::CleanupDue),
            Event::Filled => fills_first.store(false, Ordering::Relaxed),
            event => teller.change(&event),
        })
    };

    let interrupts = driver.interrupts();
    let asked_before = interrupts.times_asked_aside();
    let session = SessionOptions::WATCH;
    with_session(context, driver, folder, session, Some(observer), async |engine| {
        let (watcher, hints) = start_watcher(folder)?;
        if let Some(warning) = watcher.warning() {
            teller.note(&warning.to_string());
        }
        teller.started(folder);
        let keeper = begin_background(context, folder, engine, background);
        let (until, why) = (interrupts.clone(), reason.clone());
        let retry = background.inner.wait_for_retry();
        let end = async move {
            tokio::select! {
                _ = until.wait() => {}
                () = until.wait_for_aside(asked_before) => {}
                () = why.given.notified() => {}
                () = retry => why.give(Ended::OpensAnew),
                record = wait_of(keeper) => why.give(Ended::StoreEmptied(record)),
            }
        };
        let hints = hints.map(scope_of).take_until(Box::pin(end)).boxed();
        let told = teller.clone();
        let is_stored = matches!(folder.place, Place::Stored(_));
        let (lost, count) = (reason.clone(), failures.clone());
        let (moved, outer, known) =
            (reason.clone(), folder.clone(), background.inner.known.clone());
        let watching = engine.watch(options, hints, move |done| {
            if !known.is_empty() && mounted::of(&outer).is_ok_and(|found| found != known) {
                moved.give(Ended::OpensAnew);
            }
            if is_stored && is_time_to_look(&done, &count) {
                lost.give(Ended::OutOfReach);
            }
            told.report(done);
        });
        let stopping = async {
            interrupts.wait().await;
            tokio::time::sleep(STOP_TIMEOUT).await;
        };
        tokio::select! {
            ended = watching => ended?,
            // What is under way takes too long; it is cut off, which is safe.
            () = stopping => {}
        }
        drop(watcher);
        let is_asked = interrupts.times_asked_aside() > asked_before;
        let newest = reason.newest.lock().take();
        Ok(match interrupts.received() {
            Some(_) => Ended::Stopped,
            None if is_asked => Ended::SteppedAside,
            None => newest.unwrap_or(Ended::Stopped),
        })
    })
}

/// Lets the watch read and fill the stores meanwhile. Returns what finds out which of them were emptied.
fn begin_background(
    context: &Context<'_>,
    folder: &Folder,
    engine: &mut Engine,
    background: &Background<'_>,
) -> Option<Keeper> {
    if let Some(cleaning) = &background.cleaning {
        cleaning.look_out(engine);
    }
    // A server reads its own disks.
    let (Some(scrub), Place::Stored(stored)) = (background.scrub, &folder.place) else {
        return None;
    };
    let scrubber = Scrubber::new(open_data(context, folder, stored), scrub);
    engine.scrub_with(match background.fills_first.load(Ordering::Relaxed) {
        true => scrubber.filling_first(),
        false => scrubber,
    });
    Keeper::new(context, folder, stored, background.config)
}

async fn wait_of(keeper: Option<Keeper>) -> StoreRecord {
    match keeper {
        Some(keeper) => keeper.wait().await,
        None => std::future::pending().await,
    }
}

/// Counts the runs in which the stores did not answer, and tells when it is time to look for others.
fn is_time_to_look(done: &Result<SyncReport, &SyncError>, failures: &AtomicU32) -> bool {
    match done {
        Err(error) if is_out_of_reach(error) => {
            failures.fetch_add(1, Ordering::Relaxed) + 1 == FAILURES_BEFORE_LOOKING
        }
        _ => {
            failures.store(0, Ordering::Relaxed);
            false
        }
    }
}

/// Says how much of what is stored is read in the background.
fn scrub_options(config: &Config) -> Option<ScrubOptions> {
    let mut options = ScrubOptions::default();
    match config.scrub_days {
        Some(0) => return None,
        Some(days) => options.period = Duration::from_secs(days.saturating_mul(24 * 3600)),
        None => {}
    }
    options.bytes_per_second = config.scrub_bytes_per_second.unwrap_or(options.bytes_per_second);
    Some(options)
}

/// Watches the folder, except what its rules leave out.
fn start_watcher(folder: &Folder) -> Result<(FolderWatcher, sync::watch::Hints)> {
    // Where they cannot be told, the watch says too much, which costs needless looks and nothing else.
    let mounted = mounted::of(folder).unwrap_or_default();
    let mounted = mounted.into_iter().map(|mounted| mounted.path).collect();
    let filter =
        RulesOfFolder { root: folder.root.clone(), rules: IgnoreRules::default(), mounted };
    FolderWatcher::start(&folder.root, filter).map_err(|error| {
        CommandError::new(Code::File, "the folder cannot be watched")
            .cause(error)
            .help("syncline doctor", "looks at the limits")
            .help("syncline sync", "works without watching")
    })
}

/// The rules of a folder, read anew whenever the watcher comes by.
struct RulesOfFolder {
    root: PathBuf,
    rules: IgnoreRules,
    /// The folders that are workspaces of their own: what lies in them another process watches.
    mounted: Vec<RelativePath>,
}

impl WatchFilter for RulesOfFolder {
    fn visit(&mut self, directory: &RelativePath, has_rules: bool) {
        let file = self.root.join(directory.to_os_path()).join(IGNORE_FILE);
        // What cannot be read passes over too little, which costs needless hints and nothing else.
        let text = if has_rules { system::read_text(&file).ok().flatten() } else { None };
        match text {
            Some(text) => drop(self.rules.add(directory, text.as_bytes())),
            None => self.rules.remove(directory),
        }
    }

    fn passes_over(&self, path: &RelativePath, is_directory: bool) -> bool {
        let lies_in = |mounted: &RelativePath| path != mounted && path.starts_with(mounted);
        self.mounted.iter().any(lies_in) || self.rules.is_entry_ignored(path, is_directory)
    }
}

fn scope_of(hint: Hint) -> Scope {
    if hint.everything { Scope::Everything } else { Scope::Directories(hint.directories) }
}
