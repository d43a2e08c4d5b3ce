//! Locks of WebDAV (RFC 4918, section 6): promises among its clients that nobody else changes something meanwhile.
//!
//! *Goals*: of two programs that lock what they edit, one waits. *Non-goals*: to stop devices, which know no locks; their
//! changes are versions, and nothing is lost. Locks are kept in memory only and end with the server. *Invariants*: every
//! lock ends by itself; how many there are is bounded.

use std::collections::HashMap;
use std::time::Duration;

use model::{RelativePath, WorkspaceId};
use parking_lot::Mutex;

use crate::metadata::AccountId;

/// How long a lock lasts at most without being renewed, and where the client does not say.
pub const TIMEOUT_MAX: Duration = Duration::from_secs(3600);

/// How many locks a workspace has at most.
const LOCKS_MAX: usize = 1000;

/// How many workspaces have locks at most.
const WORKSPACES_MAX: usize = 10_000;

/// A lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lock {
    /// Its name.
    pub token: String,
    /// What is locked.
    pub path: RelativePath,
    /// Whether everything below is locked, too.
    pub is_deep: bool,
    /// Whether nobody else may have a lock.
    pub is_exclusive: bool,
    /// What the client says of its owner, as XML that was written here.
    pub owner: String,
    /// Who made it.
    pub account: AccountId,
    /// How long it lasts from its last renewal.
    pub timeout: Duration,
    /// When it ends, by the time since some fixed point.
    pub ends: Duration,
}

impl Lock {
    /// Tells whether it locks a path.
    pub fn covers(&self, path: &RelativePath) -> bool {
        self.path == *path || self.is_deep && path.starts_with(&self.path)
    }
}

/// Why there is no lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoLock {
    /// Somebody else has one.
    Locked,
    /// There are too many.
    TooMany,
}

/// The locks of all workspaces.
#[derive(Debug, Default)]
pub struct Locks(Mutex<HashMap<WorkspaceId, Vec<Lock>>>);

impl Locks {
    /// Does something with the locks of a workspace that have not ended.
    fn with<T>(
        &self,
        workspace: WorkspaceId,
        now: Duration,
        work: impl FnOnce(&mut Vec<Lock>) -> T,
    ) -> T {
        let mut all = self.0.lock();
        let mut locks = all.remove(&workspace).unwrap_or_default();
        locks.retain(|lock| lock.ends > now);
        let done = work(&mut locks);
        if !locks.is_empty() {
            if all.len() >= WORKSPACES_MAX {
                all.retain(|_, locks| locks.iter().any(|lock| lock.ends > now));
            }
            if all.len() < WORKSPACES_MAX {
                all.insert(workspace, locks);
            }
        }
        done
    }

    /// Makes a lock.
    ///
    /// # Errors
    /// [`NoLock`].
    pub fn add(&self, workspace: WorkspaceId, now: Duration, lock: Lock) -> Result<(), NoLock> {
        self.with(workspace, now, |locks| {
            let overlaps = |other: &Lock| {
                other.covers(&lock.path) || lock.is_deep && other.path.starts_with(&lock.path)
            };
            let stands_against = |other: &&Lock| other.is_exclusive || lock.is_exclusive;
            if locks.iter().filter(|other| overlaps(other)).any(|other| stands_against(&other)) {
                return Err(NoLock::Locked);
            }
            if locks.len() >= LOCKS_MAX {
                return Err(NoLock::TooMany);
            }
            locks.push(lock);
            Ok(())
        })
    }

    /// Returns the locks of a path.
    pub fn of(&self, workspace: WorkspaceId, now: Duration, path: &RelativePath) -> Vec<Lock> {
        self.with(workspace, now, |locks| {
            locks.iter().filter(|lock| lock.covers(path)).cloned().collect()
        })
    }

    /// Lets a lock of a path last longer.
    pub fn renew(
        &self,
        workspace: WorkspaceId,
        now: Duration,
        (token, path): (&str, &RelativePath),
        (account, timeout): (AccountId, Duration),
    ) -> Option<Lock> {
        self.with(workspace, now, |locks| {
            let is_meant = |lock: &&mut Lock| {
                lock.token == token && lock.account == account && lock.covers(path)
            };
            let lock = locks.iter_mut().find(is_meant)?;
            (lock.timeout, lock.ends) = (timeout, now + timeout);
            Some(lock.clone())
        })
    }

    /// Ends a lock; tells whether there was one.
    pub fn remove(
        &self,
        workspace: WorkspaceId,
        now: Duration,
        (token, path): (&str, &RelativePath),
        account: AccountId,
    ) -> bool {
        self.with(workspace, now, |locks| {
            let before = locks.len();
            locks.retain(|lock| {
                !(lock.token == token && lock.account == account && lock.covers(path))
            });
            locks.len() < before
        })
    }

    /// Ends all locks of what is gone.
    pub fn forget(&self, workspace: WorkspaceId, now: Duration, path: &RelativePath) {
        self.with(workspace, now, |locks| locks.retain(|lock| !lock.path.starts_with(path)));
    }

    /// Tells whether somebody may change a path, everything below it included where `is_deep`, who names these locks as their
    /// own.
    pub fn allow(
        &self,
        workspace: WorkspaceId,
        now: Duration,
        (path, is_deep): (&RelativePath, bool),
        (account, tokens): (AccountId, &[String]),
    ) -> bool {
        self.with(workspace, now, |locks| {
            let concerns =
                |lock: &&Lock| lock.covers(path) || is_deep && lock.path.starts_with(path);
            let is_own = |lock: &Lock| lock.account == account && tokens.contains(&lock.token);
            let concerned: Vec<&Lock> = locks.iter().filter(concerns).collect();
            // Of those who share a lock each may change what is locked.
            let is_shared_with = |lock: &Lock| {
                concerned.iter().any(|other| other.covers(&lock.path) && is_own(other))
            };
            concerned.iter().all(|lock| is_own(lock) || !lock.is_exclusive && is_shared_with(lock))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORKSPACE: WorkspaceId = WorkspaceId::from_bytes([1; 16]);
    const ADA: AccountId = AccountId(1);
    const BOB: AccountId = AccountId(2);

    fn path(text: &str) -> RelativePath {
        RelativePath::new(text.as_bytes()).unwrap()
    }

    fn lock(token: &str, at: &str, is_exclusive: bool) -> Lock {
        Lock {
            token: token.to_owned(),
            path: path(at),
            is_deep: true,
            is_exclusive,
            owner: String::new(),
            account: ADA,
            timeout: Duration::from_secs(10),
            ends: Duration::from_secs(10),
        }
    }

    #[test]
    fn exclusive_lock_keeps_others_out_until_it_ends() {
        let (locks, now) = (Locks::default(), Duration::ZERO);
        assert_eq!(locks.add(WORKSPACE, now, lock("a", "d", true)), Ok(()));
        for at in ["d", "d/x", ""] {
            let other = locks.add(WORKSPACE, now, lock("b", at, false));
            assert_eq!(other, Err(NoLock::Locked), "{at}");
        }
        let tokens = ["a".to_owned()];
        let allow = |now, at: &str, is_deep, account, tokens: &[String]| {
            locks.allow(WORKSPACE, now, (&path(at), is_deep), (account, tokens))
        };
        assert!(allow(now, "d/x", false, ADA, &tokens));
        assert!(!allow(now, "d/x", false, ADA, &[]));
        assert!(!allow(now, "d/x", false, BOB, &tokens));
        assert!(allow(now, "", false, BOB, &[]));
        assert!(!allow(now, "", true, BOB, &[]));
        assert!(allow(Duration::from_secs(10), "d/x", false, BOB, &[]));
        assert_eq!(locks.add(WORKSPACE, Duration::from_secs(10), lock("b", "d", true)), Ok(()));
    }

    #[test]
    fn shared_locks_stand_beside_each_other_and_are_renewed_one_by_one() {
        let (locks, now) = (Locks::default(), Duration::ZERO);
        assert_eq!(locks.add(WORKSPACE, now, lock("a", "f", false)), Ok(()));
        assert_eq!(locks.add(WORKSPACE, now, lock("b", "f", false)), Ok(()));
        assert_eq!(locks.add(WORKSPACE, now, lock("c", "f", true)), Err(NoLock::Locked));
        let later = Duration::from_secs(5);
        let renewed = locks.renew(WORKSPACE, later, ("a", &path("f")), (ADA, later));
        assert_eq!(renewed.unwrap().ends, Duration::from_secs(10));
        assert!(locks.renew(WORKSPACE, later, ("a", &path("f")), (BOB, later)).is_none());
        assert!(locks.remove(WORKSPACE, later, ("b", &path("f")), ADA));
        assert!(!locks.remove(WORKSPACE, later, ("b", &path("f")), ADA));
        assert_eq!(locks.of(WORKSPACE, later, &path("f")).len(), 1);
        locks.forget(WORKSPACE, later, &path(""));
        assert!(locks.of(WORKSPACE, later, &path("f")).is_empty());
    }
}
