//! Which devices are connected, in which incarnation.
//!
//! *Participants*: live connections, which register themselves; whoever revokes a device, ends a membership or stops the server, which
//! closes them. *Invariant*: all connections of one device have one incarnation.
//!
//! An incarnation is a random number that a running installation makes at its start. Two incarnations of one device
//! at the same time mean that its folder was copied to a second computer: the later one is refused, and its user
//! signs in again. A computer that lost its network and comes back looks the same, but its older connection is dead:
//! so the server asks the older one for a sign of life first, and lets the later one in when there is none.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use model::{DeviceId, WorkspaceId};
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::auth::Caller;
use crate::error::{Result, ServerError};
use crate::limits::LIVE_CONNECTIONS_MAX;
use crate::metadata::AccountId;
use crate::services::events::{Hub, Outbox};

/// How many contested incarnations are remembered at most; one that is forgotten is only contested again.
const CONTESTED_MAX: usize = 10_000;

/// Why a live connection is to be closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closing {
    /// The server stops; come back later.
    GoingAway,
    /// The device was revoked.
    Revoked,
    /// Its account may not do any more what it did before.
    LessAccess,
    /// Another incarnation took its place, and this one gave no sign of life.
    Replaced,
    /// Another incarnation was connected to another server before, and lives.
    Cloned,
}

/// The registered end of a live connection.
#[derive(Debug, Clone)]
pub struct Connection {
    /// Number of the connection, unique in this process.
    pub number: u64,
    caller: Caller,
    incarnation: u64,
    outbox: Outbox,
    closing: Arc<watch::Sender<Option<Closing>>>,
    /// Counts the frames that came in, pongs included.
    signs_of_life: Arc<AtomicU64>,
}

/// All live connections of this server.
#[derive(Debug, Default)]
pub struct Presence {
    connections: Mutex<HashMap<u64, Connection>>,
    next_number: AtomicU64,
    /// Incarnations of which another server has said that an older one lives, until they come back and are told.
    contested: Mutex<HashMap<DeviceId, u64>>,
}

impl Presence {
    /// Registers a connection; returns it, and where it learns that it must close.
    ///
    /// # Errors
    /// [`ServerError::DeviceCloned`] where another incarnation of the device is connected;
    /// [`ServerError::Unavailable`] where the account has too many connections.
    pub fn arrive(
        &self,
        caller: Caller,
        incarnation: u64,
        outbox: Outbox,
    ) -> Result<(Connection, watch::Receiver<Option<Closing>>)> {
        let mut connections = self.connections.lock();
        let of_device = |c: &&Connection| c.caller.device == caller.device;
        if connections.values().filter(of_device).any(|c| c.incarnation != incarnation) {
            return Err(ServerError::DeviceCloned);
        }
        let of_account = connections.values().filter(|c| c.caller.account == caller.account);
        if of_account.count() >= LIVE_CONNECTIONS_MAX {
            return Err(ServerError::Unavailable {
                reason: "has too many connections of this account",
            });
        }
        let (closing, closed) = watch::channel(None);
        let connection = Connection {
            number: self.next_number.fetch_add(1, Ordering::Relaxed),
            caller,
            incarnation,
            outbox,
            closing: Arc::new(closing),
            signs_of_life: Arc::default(),
        };
        connections.insert(connection.number, connection.clone());
        Ok((connection, closed))
    }

    /// Removes a connection.
    pub fn leave(&self, number: u64) {
        self.connections.lock().remove(&number);
    }

    /// Returns the connections of another incarnation of the device, after asking them for a sign of life.
    pub fn challenge(&self, device: DeviceId, incarnation: u64) -> Vec<Challenged> {
        let connections = self.connections.lock();
        let others = connections
            .values()
            .filter(|c| c.caller.device == device && c.incarnation != incarnation);
        others
            .map(|connection| {
                let before = connection.signs_of_life.load(Ordering::Acquire);
                connection.outbox.ping();
                Challenged { connection: connection.clone(), before }
            })
            .collect()
    }

    /// Closes the connections of an incarnation that another server knows an older one of, and remembers it until it
    /// comes back.
    pub fn contest(&self, device: DeviceId, incarnation: u64) {
        let connections = self.connections.lock();
        let contested = connections
            .values()
            .filter(|c| c.caller.device == device && c.incarnation == incarnation);
        let mut is_here = false;
        for connection in contested {
            connection.close(Closing::Cloned);
            is_here = true;
        }
        if is_here {
            let mut contested = self.contested.lock();
            if contested.len() >= CONTESTED_MAX {
                contested.clear();
            }
            contested.insert(device, incarnation);
        }
    }

    /// Says, once, whether another server has said that an older incarnation lives.
    pub fn take_contested(&self, device: DeviceId, incarnation: u64) -> bool {
        let mut contested = self.contested.lock();
        let is_contested = contested.get(&device) == Some(&incarnation);
        if is_contested {
            contested.remove(&device);
        }
        is_contested
    }

    /// Returns how many connections there are.
    pub fn connections(&self) -> usize {
        self.connections.lock().len()
    }

    /// Closes all connections of a device.
    pub fn close_device(&self, device: DeviceId, reason: Closing) {
        let connections = self.connections.lock();
        connections.values().filter(|c| c.caller.device == device).for_each(|c| c.close(reason));
    }

    /// Closes those connections of an account of which `was_subscribed` says so, so that they come back and are told.
    pub fn close_subscribers(&self, account: AccountId, was_subscribed: impl Fn(u64) -> bool) {
        let connections = self.connections.lock();
        let of_account = connections.values().filter(|c| c.caller.account == account);
        let closed = of_account.filter(|c| was_subscribed(c.number));
        closed.for_each(|connection| connection.close(Closing::LessAccess));
    }

    /// Ends what the connections of an account hear of a workspace. They close, and who comes back is told why.
    pub fn expel(&self, hub: &Hub, account: AccountId, workspace: WorkspaceId) {
        self.close_subscribers(account, |number| hub.expel(workspace, number));
    }

    /// Closes all connections.
    pub fn close_all(&self, reason: Closing) {
        self.connections.lock().values().for_each(|connection| connection.close(reason));
    }
}

/// A connection that was asked for a sign of life.
#[derive(Debug)]
pub struct Challenged {
    connection: Connection,
    before: u64,
}

impl Challenged {
    /// Tells whether the connection has answered.
    pub fn lives(&self) -> bool {
        self.connection.signs_of_life.load(Ordering::Acquire) != self.before
    }

    /// Closes the connection and forgets it.
    pub fn replace(self, presence: &Presence) {
        self.connection.close(Closing::Replaced);
        presence.leave(self.connection.number);
    }
}

impl Connection {
    /// Notes that the device has sent something.
    pub fn gave_sign_of_life(&self) {
        self.signs_of_life.fetch_add(1, Ordering::Release);
    }

    /// Returns how many frames have come in so far.
    pub fn signs_of_life(&self) -> u64 {
        self.signs_of_life.load(Ordering::Acquire)
    }

    fn close(&self, reason: Closing) {
        self.closing.send_if_modified(|closing| {
            let is_new = closing.is_none();
            closing.get_or_insert(reason);
            is_new
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(device: u8) -> Caller {
        Caller { account: AccountId(1), device: DeviceId::from_bytes([device; 16]) }
    }

    #[test]
    fn second_incarnation_of_a_connected_device_is_refused_until_the_first_has_gone() {
        let presence = Presence::default();
        let (first, _) = presence.arrive(caller(1), 7, Outbox::new().0).unwrap();
        presence.arrive(caller(1), 7, Outbox::new().0).expect("the same incarnation again");
        presence.arrive(caller(2), 8, Outbox::new().0).expect("another device");
        let refused = presence.arrive(caller(1), 8, Outbox::new().0);
        assert!(matches!(refused, Err(ServerError::DeviceCloned)));

        for challenged in presence.challenge(first.caller.device, 8) {
            assert!(!challenged.lives());
            challenged.replace(&presence);
        }
        presence.arrive(caller(1), 8, Outbox::new().0).expect("the first gave no sign of life");
    }

    #[test]
    fn frame_after_the_challenge_is_a_sign_of_life() {
        let presence = Presence::default();
        let (first, _) = presence.arrive(caller(1), 7, Outbox::new().0).unwrap();
        first.gave_sign_of_life();
        let challenged = presence.challenge(first.caller.device, 8);
        assert!(!challenged[0].lives());
        first.gave_sign_of_life();
        assert!(challenged[0].lives());
    }

    #[test]
    fn incarnation_that_is_contested_elsewhere_is_closed_and_remembered_once() {
        let presence = Presence::default();
        let (later, closed) = presence.arrive(caller(1), 7, Outbox::new().0).unwrap();
        presence.contest(caller(1).device, 8);
        assert_eq!(*closed.borrow(), None, "another incarnation");
        presence.contest(caller(1).device, 7);
        assert_eq!(*closed.borrow(), Some(Closing::Cloned));
        presence.leave(later.number);
        assert!(!presence.take_contested(caller(1).device, 8));
        assert!(presence.take_contested(caller(1).device, 7));
        assert!(!presence.take_contested(caller(1).device, 7), "it is tried anew");
    }

    #[test]
    fn closing_reaches_the_connections_of_the_device_only() {
        let presence = Presence::default();
        let (_, first) = presence.arrive(caller(1), 7, Outbox::new().0).unwrap();
        let (_, second) = presence.arrive(caller(2), 7, Outbox::new().0).unwrap();
        presence.close_device(caller(1).device, Closing::Revoked);
        assert_eq!(*first.borrow(), Some(Closing::Revoked));
        assert_eq!(*second.borrow(), None);
        presence.close_subscribers(AccountId(2), |_| true);
        presence.close_subscribers(AccountId(1), |_| false);
        assert_eq!(*second.borrow(), None);
        presence.close_all(Closing::GoingAway);
        assert_eq!(*first.borrow(), Some(Closing::Revoked));
        assert_eq!(*second.borrow(), Some(Closing::GoingAway));
    }
}
