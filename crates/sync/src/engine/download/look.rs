//! A look at the end of the log, beside the end of a download: far away, that is a round trip less.

use std::pin::pin;
use std::sync::Arc;

use commit_log::CommitLog;
use futures_util::future::{BoxFuture, Either, FutureExt, select};
use model::Head;

/// A look that goes on beside something else, if it was begun.
#[derive(Default)]
pub(super) struct Look {
    under_way: Option<BoxFuture<'static, Option<Head>>>,
    found: Option<Head>,
    has_begun: bool,
}

impl Look {
    /// Begins, unless that was done. What fails is not told: whoever needs the head looks again.
    pub(super) fn begin(&mut self, log: Arc<dyn CommitLog>) {
        if !std::mem::replace(&mut self.has_begun, true) {
            self.under_way = Some(async move { log.head().await.ok() }.boxed());
        }
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

    /// Returns the newest head, if it was looked for and found.
    pub(super) async fn end(self) -> Option<Head> {
        match self.under_way {
            Some(look) => look.await,
            None => self.found,
        }
    }
}
