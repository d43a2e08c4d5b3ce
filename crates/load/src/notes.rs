//! What devices noted during a run.

use std::time::Duration;

use model::wire::Refusal;
use model::{Head, WorkspaceId};

/// Everything that one device noted.
#[derive(Debug)]
pub struct Noted {
    /// The device.
    pub device: u32,
    /// Where it worked.
    pub workspace: WorkspaceId,
    /// Whether it committed, and did not only listen.
    pub writes: bool,
    /// Its commits, in the order in which it made them.
    pub commits: Vec<NotedCommit>,
    /// How many more it was to make, and had no time for.
    pub unsent: u64,
    /// Commits of others that it heard of.
    pub heard: Vec<Heard>,
    /// Commits that were refused.
    pub refused: Vec<(u32, Refusal)>,
    /// How often an event came although one before it had not.
    pub gaps: u64,
    /// Why connections were lost.
    pub losses: Vec<String>,
}

/// A commit of the device. Times count from the start of the run.
#[derive(Debug, Clone, Copy)]
pub struct NotedCommit {
    /// When it was to be sent.
    pub intended: Duration,
    /// When it was handed to the network.
    pub sent: Duration,
    /// When the answer came.
    pub answered: Option<Duration>,
    /// When its event came.
    pub heard: Option<Duration>,
    /// Where it stands, by the answer.
    pub head: Option<Head>,
    /// Where it stands, by the event.
    pub heard_seq: u64,
}

/// A commit of somebody else.
#[derive(Debug, Clone, Copy)]
pub struct Heard {
    /// Whose.
    pub device: u32,
    /// Which one of theirs.
    pub number: u32,
    /// Where it stands.
    pub seq: u64,
    /// How long after the intended moment of sending it came here.
    pub late: Duration,
}

impl Noted {
    pub(crate) fn new(device: u32, workspace: WorkspaceId, writes: bool) -> Self {
        Self {
            device,
            workspace,
            writes,
            commits: Vec::new(),
            unsent: 0,
            heard: Vec::new(),
            refused: Vec::new(),
            gaps: 0,
            losses: Vec::new(),
        }
    }
}

impl NotedCommit {
    pub(crate) fn new(intended: Duration, sent: Duration) -> Self {
        Self { intended, sent, answered: None, heard: None, head: None, heard_seq: 0 }
    }

    pub(crate) fn answer(&mut self, head: Head, now: Duration) {
        (self.answered, self.head) = (Some(now), Some(head));
    }

    pub(crate) fn hear(&mut self, seq: u64, now: Duration) {
        (self.heard, self.heard_seq) = (Some(now), seq);
    }

    /// Returns when the device first knew that the commit stands, and where.
    pub fn known(&self) -> Option<(Duration, u64)> {
        let answered = self.answered.zip(self.head.map(|head| head.seq));
        let heard = self.heard.map(|at| (at, self.heard_seq));
        answered.into_iter().chain(heard).min()
    }

    /// Tells whether answer and event name different places.
    pub fn is_contradicted(&self) -> bool {
        self.heard.is_some() && self.head.is_some_and(|head| head.seq != self.heard_seq)
    }
}
