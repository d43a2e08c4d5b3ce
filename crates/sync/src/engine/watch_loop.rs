//! Keeps syncing: what changes in the folder goes to the log at once, what comes from the log goes into the folder at once.

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use commit_log::{CommitLogError, EntryStream};
use futures_util::StreamExt;
use futures_util::future::{BoxFuture, Either, poll_fn, select};
use futures_util::stream::BoxStream;
use model::Entry;
use model::codec::Message;

use super::busy::BusyFiles;
use super::in_sync::TELL_AGAIN_AFTER;
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

/// Hears what comes from the log.
#[derive(Default)]
struct Ear {
    stream: Option<EntryStream>,
    /// What the stream has said while nobody had time for it.
    heard: Option<Option<std::result::Result<Entry, CommitLogError>>>,
}

impl Ear {
    /// Returns what the stream says next; waits for ever where there is none.
    async fn next(&mut self) -> Option<std::result::Result<Entry, CommitLogError>> {
        match (self.heard.take(), &mut self.stream) {
            (Some(heard), _) => heard,
            (None, Some(stream)) => stream.next().await,
            (None, None) => std::future::pending().await,
        }
    }

    /// Does something else, and lets the stream go on meanwhile until it says something: a call to a store that nobody looks
    /// after keeps its place there, perhaps the only one.
    async fn beside<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        poll_fn(|context| {
            let done = work.as_mut().poll(context);
            if done.is_pending()
                && self.heard.is_none()
                && let Some(stream) = &mut self.stream
                && let Poll::Ready(heard) = stream.poll_next_unpin(context)
            {
                self.heard = Some(heard);
            }
            done
        })
        .await
    }
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
        hints: BoxStream<'static, Scope>,
        report: impl FnMut(Result<SyncReport, &SyncError>) + Send,
    ) -> Result<()> {
        self.busy = Some(BusyFiles::default());
        let ended = self.keep_watch(options, hints, report).await;
        self.busy = None;
        ended
    }

    async fn keep_watch(
        &mut self,
        options: WatchOptions,
        mut hints: BoxStream<'static, Scope>,
        mut report: impl FnMut(Result<SyncReport, &SyncError>) + Send,
    ) -> Result<()> {
        let mut scope = Scope::Everything;
        let mut ear = Ear::default();
        let mut retry_after = options.retry_after;
        let mut scrubber = self.scrubber.take();
        // When everything is looked at, on the clock; that a file is due does not put it off.
        let (mut look_at, mut is_for_due) = (Duration::ZERO, false);
        loop {
            scope = self.with_due(scope);
            let done = ear.beside(self.sync(scope)).await;
            let now = self.environment.clock.elapsed();
            let wait = match done {
                Ok(done) => {
                    let is_quiet = done.sent + done.received == 0
                        && done.problems.is_empty()
                        && done.kept_back.is_empty();
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
                    let pause =
                        if is_changing { options.retry_after } else { options.rescan_after };
                    let before = if is_for_due { look_at } else { Duration::MAX };
                    look_at = before.min(now + pause);
                    let wait = look_at.saturating_sub(now);
                    self.until_due().map_or(wait, |due| due.min(wait))
                }
                Err(error) if error.is_retryable() => {
                    report(Err(&error));
                    scope = Scope::Everything;
                    look_at = now;
                    ear = Ear::default();
                    let wait = retry_after;
                    retry_after = (retry_after * 2).min(RETRY_MAX);
                    wait
                }
                Err(error) => return Err(error),
            };
            if ear.stream.is_none() {
                let head = self.head()?;
                ear.stream = self.environment.log.subscribe(head.seq).await.ok();
            }
            is_for_due = false;
            match self.wake_with_news(&mut hints, &mut ear, wait, &mut scrubber).await? {
                Wake::Folder(found) => scope = found,
                Wake::Log(entry) => self.take_entry(&entry)?,
                Wake::LogEnded(error) => {
                    ear = Ear::default();
                    if let Some(error) = error {
                        report(Err(&error));
                    }
                }
                Wake::Time if self.environment.clock.elapsed() < look_at => is_for_due = true,
                Wake::Time => scope = Scope::Everything,
                Wake::Scrub(wake) => {
                    let taken = ear.beside(self.take_scrub(wake, scrubber.as_mut())).await;
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

    /// Folds an entry that was pushed; one that does not follow, or mounts a folder, is left to the next fetch.
    fn take_entry(&mut self, entry: &Entry) -> Result<()> {
        if entry.follows(&self.head()?) && !entry.is_of_mounts() {
            self.fold_entry(entry)
        } else {
            Ok(())
        }
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
        &mut self,
        hints: &mut BoxStream<'static, Scope>,
        ear: &mut Ear,
        wait: Duration,
        scrubber: &mut Option<Scrubber>,
    ) -> Result<Wake> {
        let clock = Arc::clone(&self.environment.clock);
        let end = clock.elapsed() + wait;
        let head = self.head()?;
        loop {
            let rest = end.saturating_sub(clock.elapsed());
            let until_telling = self.until_telling(TELL_AGAIN_AFTER).unwrap_or(rest);
            match self.wake(hints, ear, rest.min(until_telling), scrubber).await {
                Wake::Log(entry) if entry.seq < head.seq || entry.head() == head => {}
                Wake::Time if clock.elapsed() < end => {
                    ear.beside(self.tell_in_sync(TELL_AGAIN_AFTER)).await;
                }
                wake => return Ok(wake),
            }
        }
    }

    async fn wake(
        &self,
        hints: &mut BoxStream<'static, Scope>,
        ear: &mut Ear,
        wait: Duration,
        scrubber: &mut Option<Scrubber>,
    ) -> Wake {
        let scrub = async {
            match scrubber {
                Some(scrubber) => scrubber.wake(&*self.environment.clock).await,
                None => std::future::pending().await,
            }
        };
        match select(Box::pin(self.wake_of_folder_or_log(hints, ear, wait)), Box::pin(scrub)).await
        {
            Either::Left((wake, _)) => wake,
            Either::Right((wake, _)) => Wake::Scrub(wake),
        }
    }

    async fn wake_of_folder_or_log(
        &self,
        hints: &mut BoxStream<'static, Scope>,
        ear: &mut Ear,
        wait: Duration,
    ) -> Wake {
        let time: BoxFuture<'static, ()> = self.environment.clock.sleep(wait);
        match select(hints.next(), select(Box::pin(ear.next()), time)).await {
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
