//! Keeps syncing: what changes in the folder goes to the log at once, what comes from the log goes into the folder at once.

use std::collections::BTreeSet;
use std::time::Duration;

use commit_log::EntryStream;
use futures_util::StreamExt;
use futures_util::future::{BoxFuture, Either, select};
use futures_util::stream::BoxStream;
use model::Entry;

use super::{Engine, SyncReport};
use crate::error::{Result, SyncError};
use crate::scan::Scope;
use crate::scrub::{ScrubWake, Scrubber};

/// How the engine keeps watch.
#[derive(Debug, Clone, Copy)]
pub struct WatchOptions {
    /// How long to trust the watcher before the whole folder is scanned again.
    pub rescan_after: Duration,
    /// How long to wait before trying again what has failed, at first; it doubles up to a minute.
    pub retry_after: Duration,
}

impl Default for WatchOptions {
    fn default() -> Self {
        Self { rescan_after: Duration::from_secs(600), retry_after: Duration::from_secs(1) }
    }
}

/// The longest wait before trying again what has failed.
const RETRY_MAX: Duration = Duration::from_secs(60);

/// What wakes the engine.
enum Wake {
    /// Something may have changed in the folder.
    Folder(Scope),
    /// The log has a new entry.
    Log(Box<Entry>),
    /// The log's stream has ended.
    LogEnded(Option<SyncError>),
    /// It is time for something.
    Time,
    /// What reads the stores in the background wants something.
    Scrub(ScrubWake),
    /// The watcher or the user has ended it.
    End,
}

impl Engine {
    /// Syncs, and keeps syncing until `hints` ends. `report` gets every run that did something, and every error; an
    /// error that trying again cannot help ends the watch.
    ///
    /// # Errors
    /// [`SyncError`], where trying again is useless.
    pub async fn watch(
        &mut self,
        options: WatchOptions,
        mut hints: BoxStream<'static, Scope>,
        mut report: impl FnMut(Result<SyncReport, &SyncError>) + Send,
    ) -> Result<()> {
        let mut scope = Scope::Everything;
        let mut stream: Option<EntryStream> = None;
        let mut retry_after = options.retry_after;
        let mut scrubber = self.scrubber.take();
        loop {
            let wait = match self.sync(scope.clone()).await {
                Ok(done) => {
                    let is_quiet = done.sent + done.received == 0 && done.problems.is_empty();
                    let is_changing = done
                        .problems
                        .iter()
                        .any(|problem| problem.kind == crate::scan::ProblemKind::Changing);
                    if !is_quiet {
                        report(Ok(done));
                    }
                    retry_after = options.retry_after;
                    scope = Scope::Directories(BTreeSet::new());
                    // A file that changes while it is read is looked for again soon.
                    if is_changing { options.retry_after } else { options.rescan_after }
                }
                Err(error) if error.is_retryable() => {
                    report(Err(&error));
                    scope = Scope::Everything;
                    stream = None;
                    let wait = retry_after;
                    retry_after = (retry_after * 2).min(RETRY_MAX);
                    wait
                }
                Err(error) => return Err(error),
            };
            if stream.is_none() {
                let head = self.head()?;
                stream = self.environment.log.subscribe(head.seq).await.ok();
            }
            match self.wake_with_news(&mut hints, &mut stream, wait, &mut scrubber).await? {
                Wake::Folder(found) => scope = found,
                Wake::Log(entry) => self.take_entry(&entry)?,
                Wake::LogEnded(error) => {
                    stream = None;
                    if let Some(error) = error {
                        report(Err(&error));
                    }
                }
                Wake::Time => scope = Scope::Everything,
                Wake::Scrub(wake) => {
                    let taken = self.take_scrub(wake, scrubber.as_mut()).await;
                    if let Err(error) = &taken {
                        report(Err(error));
                    }
                    taken
                        .or_else(|error| if error.is_retryable() { Ok(()) } else { Err(error) })?;
                }
                Wake::End => return Ok(()),
            }
        }
    }

    /// Folds an entry that was pushed; one that does not follow is left to the next fetch.
    fn take_entry(&mut self, entry: &Entry) -> Result<()> {
        if entry.follows(&self.head()?) { self.fold_entry(entry) } else { Ok(()) }
    }

    /// Begins or ends a step of the scrub.
    async fn take_scrub(&mut self, wake: ScrubWake, scrubber: Option<&mut Scrubber>) -> Result<()> {
        let Some(scrubber) = scrubber else { return Ok(()) };
        match wake {
            ScrubWake::Due if scrubber.begin_fill(&*self.environment.clock) => Ok(()),
            ScrubWake::Due => {
                let objects = self.next_scrub(scrubber.options()).await;
                let clock = &*self.environment.clock;
                // What failed is due again after a while.
                scrubber.begin(objects.as_ref().ok().cloned().unwrap_or_default(), clock);
                objects.map(drop)
            }
            ScrubWake::Done(done) => self.take_scrubbed(&done).await,
            ScrubWake::Filled(written) => self.take_filled(written),
        }
    }

    /// Waits for something that is not known yet: what this device has proposed comes back, and is folded long since.
    async fn wake_with_news(
        &self,
        hints: &mut BoxStream<'static, Scope>,
        stream: &mut Option<EntryStream>,
        wait: Duration,
        scrubber: &mut Option<Scrubber>,
    ) -> Result<Wake> {
        let clock = &*self.environment.clock;
        let end = clock.elapsed() + wait;
        let head = self.head()?;
        loop {
            let rest = end.saturating_sub(clock.elapsed());
            match self.wake(hints, stream, rest, scrubber).await {
                Wake::Log(entry) if entry.seq < head.seq || entry.head() == head => {}
                wake => return Ok(wake),
            }
        }
    }

    async fn wake(
        &self,
        hints: &mut BoxStream<'static, Scope>,
        stream: &mut Option<EntryStream>,
        wait: Duration,
        scrubber: &mut Option<Scrubber>,
    ) -> Wake {
        let scrub = async {
            match scrubber {
                Some(scrubber) => scrubber.wake(&*self.environment.clock).await,
                None => std::future::pending().await,
            }
        };
        match select(Box::pin(self.wake_of_folder_or_log(hints, stream, wait)), Box::pin(scrub))
            .await
        {
            Either::Left((wake, _)) => wake,
            Either::Right((wake, _)) => Wake::Scrub(wake),
        }
    }

    async fn wake_of_folder_or_log(
        &self,
        hints: &mut BoxStream<'static, Scope>,
        stream: &mut Option<EntryStream>,
        wait: Duration,
    ) -> Wake {
        let time: BoxFuture<'static, ()> = self.environment.clock.sleep(wait);
        let entry = async {
            match stream {
                Some(stream) => stream.next().await,
                None => std::future::pending().await,
            }
        };
        match select(hints.next(), select(Box::pin(entry), time)).await {
            Either::Left((Some(scope), _)) => Wake::Folder(scope),
            Either::Left((None, _)) => Wake::End,
            Either::Right((Either::Left((Some(Ok(entry)), _)), _)) => Wake::Log(Box::new(entry)),
            Either::Right((Either::Left((Some(Err(error)), _)), _)) => {
                Wake::LogEnded(Some(error.into()))
            }
            Either::Right((Either::Left((None, _)), _)) => Wake::LogEnded(None),
            Either::Right((Either::Right(((), _)), _)) => Wake::Time,
        }
    }
}

#[cfg(test)]
mod tests;
