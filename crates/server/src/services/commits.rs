//! A commit on its way through this server's own writer, and who is told when it stands in the log.

use std::sync::Arc;
use std::time::Duration;

use model::wire::Reply;
use model::{Clock, Head, WorkspaceId};

use crate::error::Result;
use crate::metrics::Metrics;
use crate::services::events::Hub;
use crate::services::news::{News, Told};
use crate::services::sync_service::{Answer, CommitRequest, Committed};
use crate::services::writer::Writer;

/// Commits by this server's own writer; cheap to clone.
#[derive(Debug, Clone)]
pub struct Committer {
    writer: Writer,
    hub: Hub,
    news: News,
    clock: Arc<dyn Clock>,
    metrics: Arc<Metrics>,
}

impl Committer {
    /// Makes a committer.
    pub fn new(
        writer: Writer,
        hub: Hub,
        news: News,
        (clock, metrics): (Arc<dyn Clock>, Arc<Metrics>),
    ) -> Self {
        Self { writer, hub, news, clock, metrics }
    }

    /// Puts a commit that a live connection may have brought into the queue of the writer, waiting only while that is full. `finish` hears
    /// the reply when it is durable, and whoever subscribed was told, but for that connection; it must be quick.
    ///
    /// # Errors
    /// [`crate::ServerError::Unavailable`] where the writer has ended.
    pub async fn submit(
        &self,
        (request, from): (CommitRequest, Option<u64>),
        finish: impl FnOnce(Reply) + Send + 'static,
    ) -> Result<()> {
        let finish =
            move |head: Result<Head>| finish(Answer::reply(head.map(Reply::Committed)).reply);
        self.send((request, from), |committed| committed.head, finish).await
    }

    /// Does the same for what no live connection has brought; `finish` hears where it stands.
    ///
    /// # Errors
    /// As [`Self::submit`].
    pub async fn commit(
        &self,
        request: CommitRequest,
        finish: impl FnOnce(Result<Head>) + Send + 'static,
    ) -> Result<()> {
        self.send((request, None), |committed| committed.head, finish).await
    }

    /// Does the same; `finish` hears of the new entry, too. It is copied for those who are told of it, since somebody keeps it.
    ///
    /// # Errors
    /// As [`Self::submit`].
    pub async fn commit_entry(
        &self,
        request: CommitRequest,
        finish: impl FnOnce(Result<Committed>) + Send + 'static,
    ) -> Result<()> {
        self.send((request, None), Committed::clone, finish).await
    }

    /// Puts a commit into the queue; `finish` hears what is to be kept of it.
    async fn send<T: Send + 'static>(
        &self,
        (request, from): (CommitRequest, Option<u64>),
        keep: fn(&Committed) -> T,
        finish: impl FnOnce(Result<T>) + Send + 'static,
    ) -> Result<()> {
        let (committer, workspace) = (self.clone(), request.workspace);
        let start = self.clock.elapsed();
        let told = move |outcome| committer.tell((workspace, from), outcome, start, (keep, finish));
        self.writer.submit_commit(request, told).await
    }

    /// Looks whether the writer's database answers.
    ///
    /// # Errors
    /// Those of the database; [`crate::ServerError::Unavailable`] where the writer has ended.
    pub(crate) async fn check(&self) -> Result<()> {
        self.writer.write(|metadata| Ok(metadata.check()?)).await
    }

    /// Tells everybody what became of a commit, and counts it.
    fn tell<T: Send + 'static>(
        &self,
        (workspace, from): (WorkspaceId, Option<u64>),
        outcome: Result<Committed>,
        start: Duration,
        (keep, finish): (fn(&Committed) -> T, impl FnOnce(Result<T>) + Send + 'static),
    ) {
        self.metrics.commit(&outcome, self.clock.elapsed().saturating_sub(start));
        match outcome {
            Ok(committed) => {
                let kept = keep(&committed);
                match committed.appended {
                    Some(entry) => {
                        self.hub.publish(workspace, (entry, from), move || finish(Ok(kept)));
                    }
                    None => {
                        // Whoever appended it may have died before anybody was told.
                        self.news.tell(Told::Moved(workspace));
                        finish(Ok(kept));
                    }
                }
            }
            Err(error) => finish(Err(error)),
        }
    }
}
