//! What every command gets: flags, eyes and ears, home, clock, time zone and randomness.

use std::sync::Arc;

use jiff::tz::TimeZone;
use tokio::runtime::Runtime;

use crate::arguments::GlobalFlags;
use crate::error::{Code, CommandError, Result};
use crate::home::Home;
use crate::system::{SystemClock, SystemRandom, Variables};
use crate::ui::Ui;

/// What every command gets.
#[derive(Debug)]
pub(crate) struct Context<'a> {
    /// The flags of every command.
    pub(crate) flags: GlobalFlags,
    /// Where the user looks.
    pub(crate) ui: &'a Ui,
    /// The state of this device.
    pub(crate) home: Home,
    /// The environment.
    pub(crate) variables: Variables,
    /// The clock.
    pub(crate) clock: Arc<SystemClock>,
    /// The time zone of whoever reads the answers.
    pub(crate) zone: TimeZone,
    /// Randomness.
    pub(crate) random: Arc<SystemRandom>,
}

impl Context<'_> {
    /// Refuses `--dry-run` for a command that has none, so that nothing happens that nobody wanted.
    ///
    /// # Errors
    /// [`Code::Usage`].
    pub(crate) fn no_dry_run(&self, command: &str) -> Result<()> {
        if self.flags.dry_run {
            return Err(CommandError::usage(format!("'{command}' has no --dry-run"))
                .state("nothing was changed"));
        }
        Ok(())
    }

    /// Starts what drives connections while the command works: two threads, which cost nothing while they wait.
    ///
    /// # Errors
    /// [`Code::Defect`].
    pub(crate) fn runtime(&self) -> Result<Runtime> {
        let built =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        built.map_err(|error| {
            CommandError::new(Code::Defect, "no threads can be started").cause(error)
        })
    }
}
