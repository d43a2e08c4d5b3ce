//! The sync service: the served coordinator's rule (StackSync 2014, section 4.1, Algorithm 1).
//!
//! *Participants*: devices that propose commits and read the log; the metadata, in whose transaction a commit is
//! decided and appended. *Goals*: a commit that was answered stands in the log for ever, exactly once, whatever
//! crashes or repeats. *Non-goals*: understanding changes; the service sees node ids and versions only.
//! *Invariants*: entry n+1 names the hash of entry n; the version of a node is the number of its accepted changes;
//! a pack that a commit names was stored before. Outcomes are not stored: they are a function of the log.
//!
//! Nothing here knows threads, sockets or time. The server runs one writing service on a thread of its own and
//! several reading ones; a simulation runs one and calls [`SyncService::answer`].

use std::sync::Arc;

use commit_log::envelope;
use model::checkpoint::Checkpoint;
use model::codec::{decode_message, encode_message};
use model::commit::{
    COMMIT_CHANGES_MAX, COMMIT_LENGTH_MAX, DEVICE_NAME_LENGTH_MAX, INLINE_PACKS_LENGTH_MAX,
};
use model::wire::{Refusal, Reply, Request, RequestFrame};
use model::{Commit, Entry, EntryHash, Genesis, Head, WorkspaceId};

use crate::auth::Caller;
use crate::error::{Result, ServerError};
use crate::limits::{COMMIT_PACKS_MAX, ENTRIES_LENGTH_MAX};
use crate::metadata::{Metadata, MetadataError, WorkspaceRecord};
use crate::services::authorisation::Right;
use crate::services::{batch, workspaces};

mod group;

pub use group::commit_all;

/// How many bytes beside its commit an entry has at most.
const ENTRY_FRAME_LENGTH: usize = 64;

/// A commit and who proposes it.
#[derive(Debug, Clone)]
pub struct CommitRequest {
    /// The device that asks.
    pub caller: Caller,
    /// The workspace.
    pub workspace: WorkspaceId,
    /// What it proposes.
    pub commit: Commit,
}

/// A commit that stands in the log.
#[derive(Debug, Clone)]
pub struct Committed {
    /// Where it stands.
    pub head: Head,
    /// The new entry, to be pushed; nothing where the commit stood there before.
    pub appended: Option<Arc<Entry>>,
}

/// What to tell the caller, and what to tell everybody.
#[derive(Debug, Clone)]
pub struct Answer {
    /// For the caller.
    pub reply: Reply,
    /// For all who have subscribed to the workspace, the caller included.
    pub event: Option<(WorkspaceId, Arc<Entry>)>,
}

/// The sync service over one database.
#[derive(Debug)]
pub struct SyncService {
    metadata: Box<dyn Metadata>,
}

impl SyncService {
    /// Makes the service.
    pub fn new(metadata: impl Metadata + 'static) -> Self {
        Self { metadata: Box::new(metadata) }
    }

    /// Returns the metadata, for the services beside this one.
    pub fn metadata(&self) -> &dyn Metadata {
        &*self.metadata
    }

    /// Returns the metadata to write to; use [`batch::run`] so that it happens in a transaction.
    pub fn metadata_mut(&mut self) -> &mut dyn Metadata {
        &mut *self.metadata
    }

    /// Answers a request of the live door.
    pub fn answer(&mut self, caller: &Caller, frame: RequestFrame) -> Answer {
        let workspace = frame.workspace;
        match frame.request {
            Request::Commit(commit) => {
                let request = CommitRequest { caller: *caller, workspace, commit };
                let outcome = self.commit_batch(vec![request]).pop();
                answer_to_commit(workspace, outcome.unwrap_or(Err(ServerError::NotSignedIn)))
            }
            Request::PublishCheckpoint(checkpoint) => {
                let published = self.publish_checkpoint(caller, workspace, &checkpoint);
                Answer::reply(published.map(|()| Reply::Published))
            }
            // Whoever has no time keeps none.
            Request::InSync => {
                let work: batch::Work<'_, ()> =
                    Box::new(|metadata| note_in_sync(metadata, caller, workspace, 0));
                let noted = batch::run(&mut *self.metadata, vec![work]).pop().unwrap_or(Ok(()));
                Answer::reply(noted.map(|()| Reply::Noted))
            }
            request => Answer::reply(read(self.metadata(), caller, workspace, &request)),
        }
    }

    /// Puts commits into their logs, in one transaction. What was answered with success is durable.
    pub fn commit_batch(&mut self, requests: Vec<CommitRequest>) -> Vec<Result<Committed>> {
        commit_all(&mut *self.metadata, requests)
    }

    /// Keeps a checkpoint, if it is newer than the one there.
    ///
    /// # Errors
    /// [`ServerError::HistoryLost`] for one of entries that this log does not have.
    pub fn publish_checkpoint(
        &mut self,
        caller: &Caller,
        workspace: WorkspaceId,
        checkpoint: &Checkpoint,
    ) -> Result<()> {
        let work: batch::Work<'_, ()> =
            Box::new(|metadata| publish_checkpoint(metadata, caller, workspace, checkpoint));
        batch::run(&mut *self.metadata, vec![work]).pop().unwrap_or(Ok(()))
    }

    /// Returns the newest entry's place.
    ///
    /// # Errors
    /// [`ServerError::NotFound`] where the workspace is not the caller's.
    pub fn head(&self, caller: &Caller, workspace: WorkspaceId) -> Result<Head> {
        head(self.metadata(), caller, workspace)
    }

    /// Returns entries after `since`.
    ///
    /// # Errors
    /// As [`Self::head`].
    pub fn entries(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        since: u64,
        length_max: u64,
    ) -> Result<Vec<Entry>> {
        entries(self.metadata(), caller, workspace, since, length_max)
    }

    /// Returns the genesis.
    ///
    /// # Errors
    /// As [`Self::head`].
    pub fn genesis(&self, caller: &Caller, workspace: WorkspaceId) -> Result<Genesis> {
        let found = workspaces::open(self.metadata(), caller, workspace, Right::Read)?;
        workspaces::genesis(self.metadata(), &found)
    }

    /// Returns the newest checkpoint.
    ///
    /// # Errors
    /// As [`Self::head`].
    pub fn checkpoint(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
    ) -> Result<Option<Checkpoint>> {
        checkpoint(self.metadata(), caller, workspace)
    }
}

impl Answer {
    /// Makes an answer that concerns nobody but the caller.
    pub fn reply(reply: Result<Reply>) -> Self {
        Self { reply: reply.unwrap_or_else(|error| Reply::Refused(refusal(&error))), event: None }
    }
}

/// Returns the refusal of an error, after those who run the server were told.
fn refusal(error: &ServerError) -> Refusal {
    if error.is_internal() {
        tracing::error!(%error, "a request failed");
    }
    error.refusal()
}

/// Returns the answer to a commit.
pub fn answer_to_commit(workspace: WorkspaceId, outcome: Result<Committed>) -> Answer {
    match outcome {
        Ok(Committed { head, appended }) => Answer {
            reply: Reply::Committed(head),
            event: appended.map(|entry| (workspace, entry)),
        },
        Err(error) => Answer { reply: Reply::Refused(refusal(&error)), event: None },
    }
}

/// Answers a request that writes nothing.
///
/// # Errors
/// [`ServerError`]; [`ServerError::Invalid`] for a request that writes.
pub fn read(
    metadata: &dyn Metadata,
    caller: &Caller,
    workspace: WorkspaceId,
    request: &Request,
) -> Result<Reply> {
    Ok(match request {
        Request::Head => Reply::Head(head(metadata, caller, workspace)?),
        Request::Entries { since, length_max } => {
            Reply::Entries(entries(metadata, caller, workspace, *since, *length_max)?)
        }
        Request::Subscribe { .. } => {
            workspaces::open(metadata, caller, workspace, Right::Read)?;
            Reply::Subscribed
        }
        Request::Checkpoint => Reply::Checkpoint(checkpoint(metadata, caller, workspace)?),
        Request::Genesis => {
            let found = workspaces::open(metadata, caller, workspace, Right::Read)?;
            Reply::Genesis(workspaces::genesis(metadata, &found)?)
        }
        Request::Commit(_) | Request::PublishCheckpoint(_) | Request::InSync => {
            return Err(ServerError::Invalid { what: "request", reason: "it writes".to_owned() });
        }
    })
}

/// Refuses what the decoder refuses, too, for callers that never encode.
fn check_limits(commit: &Commit) -> Result<()> {
    let too_large =
        |what, limit: usize| Err(ServerError::TooLarge { what, length_max: limit as u64 });
    let too_many = |what, count: usize| {
        Err(ServerError::Invalid { what, reason: format!("there are more than {count}") })
    };
    if commit.changes.len() > COMMIT_CHANGES_MAX {
        return too_many("changes", COMMIT_CHANGES_MAX);
    }
    if commit.packs.len() > COMMIT_PACKS_MAX {
        return too_many("packs", COMMIT_PACKS_MAX);
    }
    if commit.device_name.len() > DEVICE_NAME_LENGTH_MAX {
        return too_large("device name", DEVICE_NAME_LENGTH_MAX);
    }
    if commit.inline_packs.iter().map(Vec::len).sum::<usize>() > INLINE_PACKS_LENGTH_MAX {
        return too_large("packs inside the commit", INLINE_PACKS_LENGTH_MAX);
    }
    // Encoding costs time, so only what might be too long is encoded to find out.
    if length_bound(commit) > COMMIT_LENGTH_MAX && encode_message(commit).len() > COMMIT_LENGTH_MAX
    {
        return too_large("commit", COMMIT_LENGTH_MAX);
    }
    Ok(())
}

/// Returns a length that the encoding of the commit does not exceed.
pub(crate) fn length_bound(commit: &Commit) -> usize {
    let changes = commit.changes.iter().map(|change| match &change.action {
        model::Action::Put(payload) => 48 + payload.len(),
        model::Action::Delete => 32,
    });
    let inline_packs = commit.inline_packs.iter().map(|pack| 10 + pack.len());
    let seal = commit.seal.as_ref().map_or(0, |seal| 256 + seal.header.len());
    256 + changes.sum::<usize>() + 48 * commit.packs.len() + inline_packs.sum::<usize>() + seal
}

/// Checks that this log has what the device has seen.
fn check_seen(metadata: &dyn Metadata, workspace: &WorkspaceRecord, seen: &Head) -> Result<()> {
    let known = match seen.seq {
        // Before the first entry there is nothing to lose; who has seen nothing at all may say so.
        0 if seen.hash == EntryHash::NONE => return Ok(()),
        0 => Some(workspaces::genesis(metadata, workspace)?.hash()),
        seq if seq == workspace.head.seq => Some(workspace.head.hash),
        seq if seq > workspace.head.seq => None,
        seq => metadata.entry_hash(workspace.number, seq)?,
    };
    match known == Some(seen.hash) {
        true => Ok(()),
        false => Err(ServerError::HistoryLost { seq: seen.seq }),
    }
}

fn head(metadata: &dyn Metadata, caller: &Caller, workspace: WorkspaceId) -> Result<Head> {
    Ok(workspaces::open(metadata, caller, workspace, Right::Read)?.head)
}

/// Returns the hash of an entry.
///
/// # Errors
/// [`ServerError::NotFound`] where the log has none there, or the workspace is not the caller's.
pub(crate) fn hash_of(
    metadata: &dyn Metadata,
    caller: &Caller,
    workspace: WorkspaceId,
    seq: u64,
) -> Result<EntryHash> {
    let found = workspaces::open(metadata, caller, workspace, Right::Read)?;
    let hash = metadata.entry_hash(found.number, seq)?;
    hash.ok_or_else(|| ServerError::NotFound { what: format!("entry {seq} of the log") })
}

pub(crate) fn entries(
    metadata: &dyn Metadata,
    caller: &Caller,
    workspace: WorkspaceId,
    since: u64,
    length_max: u64,
) -> Result<Vec<Entry>> {
    let found = workspaces::open(metadata, caller, workspace, Right::Read)?;
    entries_of(metadata, &found, since, length_max)
}

/// Does the same for somebody who was let in.
pub(crate) fn entries_of(
    metadata: &dyn Metadata,
    workspace: &WorkspaceRecord,
    since: u64,
    length_max: u64,
) -> Result<Vec<Entry>> {
    let stored = metadata.entries(workspace.number, since, length_max.min(ENTRIES_LENGTH_MAX))?;
    let (mut entries, mut length) = (Vec::with_capacity(stored.len()), 0);
    for bytes in stored {
        let entry = stored_entry(&bytes, workspace)?;
        // Stored entries are compressed; what counts for the frame is their plain length.
        length += length_bound(&entry.commit) + ENTRY_FRAME_LENGTH;
        if length > COMMIT_LENGTH_MAX && !entries.is_empty() {
            break;
        }
        entries.push(entry);
    }
    Ok(entries)
}

/// Returns the newest entry of a workspace, if there is one, for those who may see it already.
pub(crate) fn newest_entry(
    metadata: &dyn Metadata,
    workspace: WorkspaceId,
) -> Result<Option<Entry>> {
    let Some(found) = metadata.workspace(workspace)? else { return Ok(None) };
    let Some(before) = found.head.seq.checked_sub(1) else { return Ok(None) };
    let stored = metadata.entries(found.number, before, 1)?;
    stored.last().map(|bytes| stored_entry(bytes, &found)).transpose()
}

pub(crate) fn stored_entry(bytes: &[u8], workspace: &WorkspaceRecord) -> Result<Entry> {
    envelope::unwrap(bytes, COMMIT_LENGTH_MAX + ENTRY_FRAME_LENGTH).map_err(|error| {
        let what = format!("an entry of workspace {}", workspace.id);
        MetadataError::Damaged { what, detail: error.to_string() }.into()
    })
}

pub(crate) fn checkpoint(
    metadata: &dyn Metadata,
    caller: &Caller,
    workspace: WorkspaceId,
) -> Result<Option<Checkpoint>> {
    let found = workspaces::open(metadata, caller, workspace, Right::Read)?;
    let Some((_, bytes)) = metadata.checkpoint(found.number)? else { return Ok(None) };
    let checkpoint = decode_message(&bytes).map_err(|error| MetadataError::Damaged {
        what: format!("the checkpoint of workspace {workspace}"),
        detail: error.to_string(),
    })?;
    Ok(Some(checkpoint))
}

/// Notes that the caller's device is in sync with a workspace now, in seconds since 1970.
///
/// # Errors
/// [`ServerError::NotFound`] where the workspace is not the caller's.
pub fn note_in_sync(
    metadata: &mut dyn Metadata,
    caller: &Caller,
    workspace: WorkspaceId,
    now: i64,
) -> Result<()> {
    let found = workspaces::open(metadata, caller, workspace, Right::Read)?;
    Ok(metadata.note_sync(caller.device, found.number, now)?)
}

/// Keeps a checkpoint, inside a transaction.
///
/// # Errors
/// As [`SyncService::publish_checkpoint`].
pub fn publish_checkpoint(
    metadata: &mut dyn Metadata,
    caller: &Caller,
    workspace: WorkspaceId,
    checkpoint: &Checkpoint,
) -> Result<()> {
    let found = workspaces::open(metadata, caller, workspace, Right::Manage)?;
    check_seen(metadata, &found, &checkpoint.head)?;
    let newest = metadata.checkpoint(found.number)?.map(|(seq, _)| seq);
    if newest.is_none_or(|newest| checkpoint.head.seq > newest) {
        let bytes = encode_message(checkpoint);
        metadata.set_checkpoint(found.number, checkpoint.head.seq, &bytes)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
