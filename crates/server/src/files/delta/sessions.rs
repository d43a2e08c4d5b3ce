//! Sessions of the rsync family, which has two round trips and so something to remember between them.
//!
//! *Invariants*: a session is found only by who began it, for the path and the version that it began with; there are so many at most, and
//! one that nobody goes on with ends; whoever goes on with one takes it, so that it ends with its last message and with every error.

use std::collections::HashMap;
use std::time::Duration;

use content::delta::{
    DeltaError, Finished, MessageKind, Plain, RangedSource, ReverseServer, RsyncServer, SessionId,
    VersionSink,
};
use model::{Content, DeviceId, RelativePath, WorkspaceId};
use parking_lot::Mutex;

use super::{Failure, Frames, PackedVersion};
use crate::auth::Caller;
use crate::error::{Result, ServerError};
use crate::files::Spooled;
use crate::limits::{DELTA_SESSION_LIFE, DELTA_SESSIONS_MAX, DELTA_SESSIONS_OF_ACCOUNT_MAX};
use crate::metadata::AccountId;

/// Whose session it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    account: AccountId,
    device: DeviceId,
    workspace: WorkspaceId,
    session: [u8; SessionId::LENGTH],
}

impl Key {
    fn new((caller, workspace): (Caller, WorkspaceId), session: SessionId) -> Self {
        let (account, device) = (caller.account, caller.device);
        Self { account, device, workspace, session: *session.as_bytes() }
    }
}

/// All sessions.
#[derive(Default)]
pub(in crate::files) struct Sessions(Mutex<HashMap<Key, Kept>>);

impl std::fmt::Debug for Sessions {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Sessions")
    }
}

struct Kept {
    session: Session,
    ends: Duration,
}

/// What is remembered of an exchange.
pub(super) struct Session {
    path: RelativePath,
    /// The version that was at the path when it began.
    pub(super) content: Content,
    pub(super) side: Side,
}

impl Session {
    pub(super) fn new(path: RelativePath, content: Content, side: Side) -> Self {
        Self { path, content, side }
    }
}

impl Sessions {
    /// Refuses who could not begin a session anyway, before anything is worked on for it; [`Self::begin`] decides.
    pub(super) fn check_room(
        &self,
        whose: (Caller, WorkspaceId),
        id: SessionId,
        now: Duration,
    ) -> Result<()> {
        let (key, kept) = (Key::new(whose, id), self.0.lock());
        let others = || kept.iter().filter(|(other, kept)| kept.ends > now && **other != key);
        let of_account = others().filter(|(other, _)| other.account == key.account).count();
        check_counts(others().count(), of_account)
    }

    /// Remembers a session.
    pub(super) fn begin(
        &self,
        whose: (Caller, WorkspaceId),
        id: SessionId,
        session: Session,
        now: Duration,
    ) -> Result<()> {
        let key = Key::new(whose, id);
        let mut kept = self.0.lock();
        kept.retain(|other, kept| kept.ends > now && *other != key);
        let of_account = kept.keys().filter(|other| other.account == key.account).count();
        check_counts(kept.len(), of_account)?;
        kept.insert(key, Kept { session, ends: now + DELTA_SESSION_LIFE });
        Ok(())
    }

    /// Takes a session, to be gone on with.
    pub(super) fn take(
        &self,
        whose: (Caller, WorkspaceId),
        id: SessionId,
        path: &RelativePath,
        now: Duration,
    ) -> Result<Session> {
        let found = self.0.lock().remove(&Key::new(whose, id));
        let found = found.filter(|kept| kept.ends > now && kept.session.path == *path);
        found.map(|kept| kept.session).ok_or(ServerError::SessionGone)
    }
}

/// Refuses one more than so many sessions.
fn check_counts(all: usize, of_account: usize) -> Result<()> {
    match all < DELTA_SESSIONS_MAX && of_account < DELTA_SESSIONS_OF_ACCOUNT_MAX {
        true => Ok(()),
        false => Err(ServerError::Unavailable { reason: "has too many deltas under way" }),
    }
}

/// The server's side of an exchange.
#[derive(Debug, Clone)]
pub(super) enum Side {
    Rsync(Box<RsyncServer>),
    Reverse(Box<ReverseServer>),
}

impl Side {
    /// Begins with the message of a client; returns the answer, too.
    pub(super) fn begin(
        plain: Plain,
        kind: MessageKind,
        message: &[u8],
        old: &mut PackedVersion,
        size_max: u64,
    ) -> Result<(Self, Vec<u8>), DeltaError> {
        match kind {
            MessageKind::Open => RsyncServer::begin(plain, message, old, size_max)
                .map(|(server, answer)| (Self::Rsync(Box::new(server)), answer)),
            _ => ReverseServer::begin(plain, message, old, size_max)
                .map(|(server, answer)| (Self::Reverse(Box::new(server)), answer)),
        }
    }

    /// Takes the other messages of the client, all of them, and gives out the new version.
    pub(super) fn run(
        mut self,
        body: &Spooled,
        old: &mut PackedVersion,
        new: &mut dyn VersionSink,
    ) -> Result<Finished, Failure> {
        let mut frames = Frames::of(body);
        while let Some(message) = frames.next()? {
            let source: &mut dyn RangedSource = old;
            let taken = match &mut self {
                Self::Rsync(server) => server.take(&message, source, new),
                Self::Reverse(server) => server.take(&message, source, new),
            };
            if let Some(finished) = taken.map_err(|error| old.failure(error))? {
                frames.check_end()?;
                return Ok(finished);
            }
        }
        let reason = "the body ends before the last part".to_owned();
        Err(ServerError::Invalid { what: "delta", reason }.into())
    }
}
