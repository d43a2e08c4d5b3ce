//! What servers that share a database tell each other.
//!
//! News are hints, as events are: the log is the truth. So telling never waits; what finds no room is left out, and the others
//! are told that something was.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use model::{DeviceId, WorkspaceId};
use tokio::sync::mpsc;

use crate::metadata::AccountId;

/// How much news waits to be told at most.
const WAITING_MAX: usize = 4096;

/// One piece of news.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// A workspace has a new entry; the frame is what devices are sent of it.
    Entry {
        /// The workspace.
        workspace: WorkspaceId,
        /// The wrapped event.
        frame: Bytes,
    },
    /// A workspace may have entries of which nobody was told.
    Moved(WorkspaceId),
    /// A device was signed out.
    SignedOut(DeviceId),
    /// An account is not a member of a workspace any more.
    Expelled {
        /// Whose devices hear nothing more.
        account: AccountId,
        /// Of what.
        workspace: WorkspaceId,
    },
    /// A device has connected.
    Arrived {
        /// The device.
        device: DeviceId,
        /// Its incarnation.
        incarnation: u64,
    },
    /// A device that has connected is connected elsewhere in another incarnation, which lives.
    Contested {
        /// The device.
        device: DeviceId,
        /// The incarnation that came later.
        incarnation: u64,
    },
}

/// Where news is left to be told; cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct News {
    told: Option<mpsc::Sender<Told>>,
    is_incomplete: Arc<AtomicBool>,
}

/// The other end.
#[derive(Debug)]
pub struct Waiting {
    /// What waits.
    pub told: mpsc::Receiver<Told>,
    is_incomplete: Arc<AtomicBool>,
}

impl News {
    /// Makes both ends. The default is the end of a server that is alone, which tells nobody.
    pub fn new() -> (Self, Waiting) {
        let (sender, told) = mpsc::channel(WAITING_MAX);
        let is_incomplete = Arc::<AtomicBool>::default();
        let waiting = Waiting { told, is_incomplete: Arc::clone(&is_incomplete) };
        (Self { told: Some(sender), is_incomplete }, waiting)
    }

    /// Says whether anybody is told.
    pub fn is_told(&self) -> bool {
        self.told.is_some()
    }

    /// Tells the others, some time soon. Never waits.
    pub fn tell(&self, news: Told) {
        if let Some(told) = &self.told
            && told.try_send(news).is_err()
        {
            self.leave_out();
        }
    }

    /// Notes that something is not told.
    pub fn leave_out(&self) {
        self.is_incomplete.store(true, Ordering::Release);
    }
}

impl Waiting {
    /// Says whether something was left out since this was asked last.
    pub fn was_incomplete(&self) -> bool {
        self.is_incomplete.swap(false, Ordering::AcqRel)
    }

    /// Notes that something was taken and not told.
    pub fn leave_out(&self) {
        self.is_incomplete.store(true, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_finds_no_room_is_left_out_and_said_once() {
        let (news, mut waiting) = News::new();
        let device = DeviceId::from_bytes([1; 16]);
        for _ in 0..WAITING_MAX {
            news.tell(Told::SignedOut(device));
        }
        assert!(!waiting.was_incomplete());
        news.tell(Told::SignedOut(device));
        assert!(waiting.was_incomplete() && !waiting.was_incomplete());
        assert_eq!(waiting.told.try_recv(), Ok(Told::SignedOut(device)));
        // A server that is alone leaves nothing out.
        let alone = News::default();
        alone.tell(Told::SignedOut(device));
        assert!(!alone.is_told() && !alone.is_incomplete.load(Ordering::Acquire));
    }
}
