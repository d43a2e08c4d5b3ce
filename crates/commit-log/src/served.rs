//! The served coordinator, seen from a device: a sync service puts commits in order (StackSync 2014, section 4.1).
//!
//! *Participants*: a device, and a server behind a [`Connection`]. *Goals*: one round trip per commit; every entry
//! reaches the device although pushes may be lost. *Invariants*: the stream of a subscription has no gap and no
//! repetition: an event that does not follow the last entry only hints that there is something to fetch.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::{Either, select};
use futures_util::stream::{BoxStream, StreamExt, unfold};
use model::checkpoint::Checkpoint;
use model::wire::{Reply, Request};
use model::{Clock, Commit, Entry, Genesis, Head, WorkspaceId};

use crate::commit_log::{CommitLog, CommitLogError, EntryStream};

#[cfg(feature = "websocket")]
pub mod websocket;

/// How long a subscription trusts silence before it asks for entries, at first; twice as long each time after.
pub const HEARTBEAT_FIRST: Duration = Duration::from_secs(5);
/// How long it trusts silence where it stays quiet.
pub const HEARTBEAT_LAST: Duration = Duration::from_secs(30);

/// How long to wait before asking again where the server cannot be reached.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// How many bytes of entries are asked for at once.
const ENTRIES_LENGTH_MAX: u64 = 8 * 1024 * 1024;

/// A live connection to a server. It reconnects by itself; calls fail while it cannot.
#[async_trait]
pub trait Connection: Send + Sync + Debug {
    /// Names the server, for error texts.
    fn describe(&self) -> String;

    /// Asks and waits for the answer.
    ///
    /// # Errors
    /// [`CommitLogError::Unreachable`] where no answer came.
    async fn call(&self, workspace: WorkspaceId, request: Request)
    -> Result<Reply, CommitLogError>;

    /// Returns the events of a workspace as they arrive, from the call on and across reconnects. Some may be
    /// lost, some may come twice.
    fn events(&self, workspace: WorkspaceId) -> BoxStream<'static, Entry>;
}

/// A log that a server keeps.
#[derive(Debug, Clone)]
pub struct ServedCommitLog {
    connection: Arc<dyn Connection>,
    clock: Arc<dyn Clock>,
    genesis: Genesis,
}

impl ServedCommitLog {
    /// Opens the log of a workspace.
    ///
    /// # Errors
    /// [`CommitLogError`], also where the server's genesis is not that of the workspace.
    pub async fn open(
        connection: Arc<dyn Connection>,
        clock: Arc<dyn Clock>,
        workspace: WorkspaceId,
    ) -> Result<Self, CommitLogError> {
        match connection.call(workspace, Request::Genesis).await? {
            Reply::Genesis(genesis) if genesis.workspace() == workspace => {
                Ok(Self { connection, clock, genesis })
            }
            Reply::Genesis(_) => {
                let reason = "the genesis belongs to another workspace".to_owned();
                Err(CommitLogError::Damaged { seq: 0, reason })
            }
            other => Err(unexpected(&*connection, other)),
        }
    }

    /// Opens the log of a workspace whose genesis the device already has, without asking the server.
    pub fn with_genesis(
        connection: Arc<dyn Connection>,
        clock: Arc<dyn Clock>,
        genesis: Genesis,
    ) -> Self {
        Self { connection, clock, genesis }
    }

    async fn call(&self, request: Request) -> Result<Reply, CommitLogError> {
        self.connection.call(self.genesis.workspace(), request).await
    }
}

/// Turns an answer that is not the expected one into an error.
fn unexpected(connection: &dyn Connection, reply: Reply) -> CommitLogError {
    match reply {
        Reply::Refused(refusal) => CommitLogError::Refused(refusal),
        _ => CommitLogError::Unreachable {
            place: connection.describe(),
            reason: "it answered another question".to_owned(),
        },
    }
}

#[async_trait]
impl CommitLog for ServedCommitLog {
    fn genesis(&self) -> &Genesis {
        &self.genesis
    }

    async fn commit(&self, commit: &Commit) -> Result<Head, CommitLogError> {
        match self.call(Request::Commit(commit.clone())).await? {
            Reply::Committed(head) => Ok(head),
            other => Err(unexpected(&*self.connection, other)),
        }
    }

    fn binds_what_was_seen(&self) -> bool {
        true
    }

    async fn head(&self) -> Result<Head, CommitLogError> {
        match self.call(Request::Head).await? {
            Reply::Head(head) => Ok(head),
            other => Err(unexpected(&*self.connection, other)),
        }
    }

    async fn entries(&self, since: u64, length_max: u64) -> Result<Vec<Entry>, CommitLogError> {
        match self.call(Request::Entries { since, length_max }).await? {
            Reply::Entries(entries) => Ok(entries),
            other => Err(unexpected(&*self.connection, other)),
        }
    }

    async fn subscribe(&self, since: u64) -> Result<EntryStream, CommitLogError> {
        let events = self.connection.events(self.genesis.workspace());
        match self.call(Request::Subscribe { since }).await? {
            Reply::Subscribed => {}
            other => return Err(unexpected(&*self.connection, other)),
        }
        let fetched = self.entries(since, ENTRIES_LENGTH_MAX).await?;
        let ready = fetched.into();
        let heartbeat = HEARTBEAT_FIRST;
        let subscription =
            Subscription { log: self.clone(), events, last: since, ready, heartbeat };
        Ok(unfold(Some(subscription), |subscription| async move {
            let mut subscription = subscription?;
            match subscription.next().await {
                Ok(entry) => Some((Ok(entry), Some(subscription))),
                Err(error) => Some((Err(error), None)),
            }
        })
        .boxed())
    }

    async fn checkpoint(&self) -> Result<Option<Checkpoint>, CommitLogError> {
        match self.call(Request::Checkpoint).await? {
            Reply::Checkpoint(checkpoint) => Ok(checkpoint),
            other => Err(unexpected(&*self.connection, other)),
        }
    }

    async fn publish_checkpoint(&self, checkpoint: &Checkpoint) -> Result<(), CommitLogError> {
        match self.call(Request::PublishCheckpoint(checkpoint.clone())).await? {
            Reply::Published => Ok(()),
            other => Err(unexpected(&*self.connection, other)),
        }
    }

    async fn tell_in_sync(&self) -> Result<(), CommitLogError> {
        match self.call(Request::InSync).await? {
            Reply::Noted => Ok(()),
            other => Err(unexpected(&*self.connection, other)),
        }
    }
}

/// A cursor over the log that events move forward and that heals what they lose.
struct Subscription {
    log: ServedCommitLog,
    events: BoxStream<'static, Entry>,
    last: u64,
    ready: std::collections::VecDeque<Entry>,
    heartbeat: Duration,
}

impl Subscription {
    async fn next(&mut self) -> Result<Entry, CommitLogError> {
        loop {
            if let Some(entry) = self.ready.pop_front() {
                if entry.seq == self.last + 1 {
                    self.last = entry.seq;
                    self.heartbeat = HEARTBEAT_FIRST;
                    return Ok(entry);
                }
                continue;
            }
            match select(self.events.next(), self.log.clock.sleep(self.heartbeat)).await {
                Either::Left((Some(event), _)) if event.seq <= self.last => {}
                Either::Left((Some(event), _)) if event.seq == self.last + 1 => {
                    self.ready.push_back(event);
                }
                // A gap, or a lost connection: ask.
                Either::Left(_) => self.fetch().await?,
                // Silence: ask, too. An answer without news costs a few bytes.
                Either::Right(_) => {
                    self.heartbeat = (self.heartbeat * 2).min(HEARTBEAT_LAST);
                    self.fetch().await?;
                }
            }
        }
    }

    async fn fetch(&mut self) -> Result<(), CommitLogError> {
        match self.log.entries(self.last, ENTRIES_LENGTH_MAX).await {
            Ok(entries) => self.ready.extend(entries),
            Err(error) if error.is_retryable() => self.log.clock.sleep(RETRY_AFTER).await,
            Err(error) => return Err(error),
        }
        Ok(())
    }
}
