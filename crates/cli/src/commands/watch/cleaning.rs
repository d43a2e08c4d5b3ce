//! Cleanups that a watch starts by itself, between two stretches of watching.
//!
//! *Invariants*: whoever works comes first: a change in the folder, another command or a signal cuts a cleanup off, which is safe
//! anywhere; the engine that it was cut off in is not used again. What was cut off several times is let be until it is done, but
//! for commands and signals; it is bounded.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use model::Clock;
use sync::engine::{AutomaticCleanup, CleanupReport};

use crate::connect::{Driver, SessionOptions, with_session};
use crate::context::Context;
use crate::error::Result;
use crate::folder::Folder;
use crate::home::Config;
use crate::ownership;

use super::{Ended, Teller, start_watcher};

/// How often in a row a cleanup is cut off by changes in the folder.
const CUTS_MAX: u32 = 3;

/// When a watch cleans up, and what came of it so far.
#[derive(Debug)]
pub(super) struct Cleaning {
    options: AutomaticCleanup,
    not_before: Duration,
    cuts: u32,
}

/// What came of a cleanup.
enum Outcome {
    /// It came to its end, whatever that was.
    Ended(Result<CleanupReport, sync::SyncError>),
    /// The folder has changed meanwhile.
    FolderChanged,
    /// Another command wants to work on the folder.
    AskedAside,
    /// The watch is to end.
    Stopped,
}

impl Cleaning {
    /// Returns when a watch cleans up by itself; nothing where it does not.
    pub(super) fn of(config: &Config) -> Option<Self> {
        let mut options = AutomaticCleanup::default();
        match config.cleanup_after_s {
            Some(0) => return None,
            Some(seconds) => options.period = Duration::from_secs(seconds),
            None => {}
        }
        Some(Self { options, not_before: Duration::ZERO, cuts: 0 })
    }

    /// Lets an engine that keeps watch say when it is time.
    pub(super) fn look_out(&self, engine: &mut sync::Engine) {
        engine.look_out_for_cleanups(self.options, self.not_before);
    }

    /// Cleans up, unless somebody wants to work.
    ///
    /// # Errors
    /// [`crate::error::CommandError`], where the folder cannot be opened.
    pub(super) fn run(
        &mut self,
        context: &Context<'_>,
        driver: &Driver,
        folder: &Folder,
        teller: &Arc<Teller>,
    ) -> Result<Ended> {
        let interrupts = driver.interrupts();
        if !matches!(driver.run(ownership::is_own(context, folder)), Ok(true)) {
            self.not_before = context.clock.elapsed() + self.options.look_after();
            return Ok(Ended::OpensAnew);
        }
        let asked_before = interrupts.times_asked_aside();
        let (options, is_patient) = (self.options, self.cuts >= CUTS_MAX);
        let session = SessionOptions::WATCH;
        let outcome = with_session(context, driver, folder, session, None, async |engine| {
            let (watcher, hints) = start_watcher(folder)?;
            let mut hints = hints.fuse();
            let changed = async {
                match is_patient {
                    true => std::future::pending().await,
                    false => drop(hints.next().await),
                }
            };
            let outcome = tokio::select! {
                done = engine.clean_up_by_itself(&options) => Outcome::Ended(done),
                () = changed => Outcome::FolderChanged,
                () = interrupts.wait_for_aside(asked_before) => Outcome::AskedAside,
                _ = interrupts.wait() => Outcome::Stopped,
            };
            drop(watcher);
            Ok(outcome)
        })?;
        let pause = self.options.look_after();
        self.not_before = context.clock.elapsed() + pause;
        match outcome {
            Outcome::Ended(done) => {
                self.cuts = 0;
                teller.cleaned(&done);
                Ok(Ended::OpensAnew)
            }
            Outcome::FolderChanged => {
                self.cuts += 1;
                self.not_before = context.clock.elapsed() + pause / 6;
                Ok(Ended::OpensAnew)
            }
            Outcome::AskedAside => Ok(Ended::SteppedAside),
            Outcome::Stopped => Ok(Ended::Stopped),
        }
    }
}
