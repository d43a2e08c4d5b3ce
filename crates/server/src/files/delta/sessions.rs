//! Sessions of the rsync family, which has two round trips and so something to remember between them.
//!
//! *Invariants*: a session is found only by who began it, for the path and the version that it began with; there are so many at most, those
//! that are being begun among them, and one that nobody goes on with ends; whoever goes on with one takes it, so that it ends with its last
//! message and with every error.

use std::collections::HashMap;
use std::sync::Arc;
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
pub(in crate::files) struct Sessions(Arc<Mutex<All>>);

#[derive(Default)]
struct All {
    kept: HashMap<Key, Kept>,
    /// Whose sessions are being begun, which takes as long as reading the old version.
    begun: Vec<AccountId>,
}

impl All {
    /// Refuses one more than so many sessions; one that is begun anew under its name is no other one.
    fn check_room(&mut self, key: &Key, now: Duration) -> Result<()> {
        self.kept.retain(|other, kept| kept.ends > now && other != key);
        let accounts =
            self.kept.keys().map(|other| other.account).chain(self.begun.iter().copied());
        let of_account = accounts.filter(|account| *account == key.account).count();
        let all = self.kept.len() + self.begun.len();
        match all < DELTA_SESSIONS_MAX && of_account < DELTA_SESSIONS_OF_ACCOUNT_MAX {
            true => Ok(()),
            false => Err(ServerError::Unavailable { reason: "has too many deltas under way" }),
        }
    }
}

/// The room of a session that is being begun, also where its client has gone: it is free again when the work has ended.
pub(super) struct Room {
    all: Arc<Mutex<All>>,
    account: AccountId,
}

impl Drop for Room {
    fn drop(&mut self) {
        let mut all = self.all.lock();
        if let Some(place) = all.begun.iter().position(|account| *account == self.account) {
            all.begun.swap_remove(place);
        }
    }
}

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
    /// Takes the room of a session, before anything is worked on for it; the one of that name has ended.
    pub(super) fn take_room(
        &self,
        whose: (Caller, WorkspaceId),
        id: SessionId,
        now: Duration,
    ) -> Result<Room> {
        let key = Key::new(whose, id);
        let mut all = self.0.lock();
        all.check_room(&key, now)?;
        all.begun.push(key.account);
        Ok(Room { all: Arc::clone(&self.0), account: key.account })
    }

    /// Remembers a session in the room that was taken for it, which is given back only then.
    pub(super) fn begin(
        &self,
        _room: Room,
        whose: (Caller, WorkspaceId),
        id: SessionId,
        session: Session,
        now: Duration,
    ) {
        let kept = Kept { session, ends: now + DELTA_SESSION_LIFE };
        self.0.lock().kept.insert(Key::new(whose, id), kept);
    }

    /// Takes a session, to be gone on with.
    pub(super) fn take(
        &self,
        whose: (Caller, WorkspaceId),
        id: SessionId,
        path: &RelativePath,
        now: Duration,
    ) -> Result<Session> {
        let found = self.0.lock().kept.remove(&Key::new(whose, id));
        let found = found.filter(|kept| kept.ends > now && kept.session.path == *path);
        found.map(|kept| kept.session).ok_or(ServerError::SessionGone)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_being_begun_takes_room_until_the_work_has_ended() {
        let (sessions, now) = (Sessions::default(), Duration::ZERO);
        let take = |account, number: u8| {
            let caller =
                Caller { account: AccountId(account), device: DeviceId::from_bytes([1; 16]) };
            let whose = (caller, WorkspaceId::from_bytes([2; 16]));
            sessions.take_room(whose, SessionId::from_bytes([number; 16]), now)
        };
        let mut rooms: Vec<Room> = (0..DELTA_SESSIONS_OF_ACCOUNT_MAX)
            .map(|number| take(1, number as u8).expect("there is room"))
            .collect();
        assert!(matches!(take(1, 100), Err(ServerError::Unavailable { .. })));
        take(2, 100).expect("another account has its own");
        rooms.pop();
        take(1, 100).expect("one has ended");
    }
}
