//! A look at the end of the log, beside the end of a download: far away, that is a round trip less.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use commit_log::CommitLog;
use futures_util::future::{BoxFuture, Either, FutureExt, select};
use model::{Clock, Head};

/// A look that goes on beside something else, if it was begun.
#[derive(Default)]
pub(super) struct Look {
    under_way: Option<BoxFuture<'static, Option<Head>>>,
    found: Option<Head>,
    has_begun: bool,
    /// Whether it was too early to look so far.
    is_waiting: Arc<AtomicBool>,
}

impl Look {
    /// Begins once what is known already is too old, unless that was done. What fails is not told: whoever needs the head looks
    /// again.
    pub(super) fn begin(
        &mut self,
        log: Arc<dyn CommitLog>,
        clock: &dyn Clock,
        known_until: Duration,
    ) {
        if std::mem::replace(&mut self.has_begun, true) {
            return;
        }
        let known_for = known_until.saturating_sub(clock.elapsed());
        let wait = (!known_for.is_zero()).then(|| clock.sleep(known_for));
        let is_waiting = Arc::new(AtomicBool::new(wait.is_some()));
        self.is_waiting = is_waiting.clone();
        let look = async move {
            if let Some(wait) = wait {
                wait.await;
            }
            is_waiting.store(false, Ordering::Relaxed);
            log.head().await.ok()
        };
        self.under_way = Some(look.boxed());
    }

    /// Does something else, and goes on looking meanwhile.
    pub(super) async fn beside<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        if let Some(look) = &mut self.under_way {
            match select(work.as_mut(), look).await {
                Either::Left((done, _)) => return done,
                Either::Right((found, _)) => {
                    self.found = found;
                    self.under_way = None;
                }
            }
        }
        work.await
    }

    /// Returns the newest head, if it was looked for and found; nothing where it was too early to look.
    pub(super) async fn end(self) -> Option<Head> {
        match self.under_way {
            Some(_) if self.is_waiting.load(Ordering::Relaxed) => None,
            Some(look) => look.await,
            None => self.found,
        }
    }
}
