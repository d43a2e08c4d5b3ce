//! Judges the history of a run: what the server said, against what stands in the log.
//!
//! *Participants*: the devices, which noted when they sent each commit and when they first knew that it stood; the log, read again
//! after the run. *Goals*: a commit that was answered stands in the log exactly once, where the answer said, as it was sent;
//! nothing stands there that nobody sent; the log of every workspace is linearizable: a commit that was known before another was sent
//! stands before it. *Non-goals*: finding out why. *Invariant*: a commit without an answer may stand in the log or not, but never twice.
//!
//! Appending to a log is a total order, so looking at every workspace alone and comparing each commit with the latest sending before it
//! in the log is a complete check: no search is needed.

use std::collections::HashMap;
use std::time::Duration;

use model::{Change, Commit, Entry, Head, NodeId, OpId, Outcome, Versions};

/// A commit as its device knows it.
#[derive(Debug, Clone)]
pub struct Offered {
    /// Its operation.
    pub op_id: OpId,
    /// The one thing that it changes.
    pub change: Change,
    /// When it was first handed to the network.
    pub sent: Duration,
    /// When the device first knew that it stands in the log, and where.
    pub known: Option<Known>,
}

/// What a device was told about its commit.
#[derive(Debug, Clone, Copy)]
pub struct Known {
    /// When.
    pub at: Duration,
    /// Where it stands; no hash where only an event told it.
    pub seq: u64,
    /// What the answer said.
    pub answer: Option<Head>,
}

/// What is wrong with a history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Violation {
    /// An answered commit is not in the log.
    Lost(OpId),
    /// A commit stands in the log again.
    Doubled(OpId, u64),
    /// A commit stands elsewhere than was said.
    Moved(OpId, u64),
    /// A commit is not what was sent.
    Changed(OpId, u64),
    /// Nobody sent this.
    Invented(u64),
    /// The entry does not follow the one before.
    Broken(u64),
    /// The change was not accepted, although nobody else changes its node.
    Rejected(OpId, u64),
    /// The entry stands behind one that was sent only after this one was known.
    OutOfTime(u64),
}

/// What was found.
#[derive(Debug, Clone, Default)]
pub struct Verdict {
    /// How many workspaces were judged.
    pub workspaces: u64,
    /// How many commits were sent.
    pub sent: u64,
    /// How many were answered, or seen as events.
    pub known: u64,
    /// How many nobody heard of again, although they stand in the log.
    pub silent: u64,
    /// How many nobody heard of again, and that do not stand in the log.
    pub gone: u64,
    /// Everything that is wrong.
    pub violations: Vec<Violation>,
}

impl Verdict {
    /// Adds what was found in other workspaces.
    pub fn add(&mut self, other: Self) {
        self.workspaces += other.workspaces;
        self.sent += other.sent;
        self.known += other.known;
        self.silent += other.silent;
        self.gone += other.gone;
        self.violations.extend(other.violations);
    }

    /// Tells in one line what was found.
    pub fn describe(&self) -> String {
        format!(
            "{} commits sent to {} workspaces, {} known, {} in the log without an answer, {} neither; {} violations",
            self.sent,
            self.workspaces,
            self.known,
            self.silent,
            self.gone,
            self.violations.len()
        )
    }
}

/// Goes through the log of one workspace.
#[derive(Debug)]
pub struct Judge {
    head: Head,
    offered: HashMap<OpId, (Offered, Option<u64>)>,
    versions: Kept,
    /// The latest sending of all entries so far.
    latest_sent: Duration,
    violations: Vec<Violation>,
}

#[derive(Debug, Default)]
struct Kept(HashMap<NodeId, u64>);

impl Versions for Kept {
    type Error = std::convert::Infallible;

    fn version(&self, node: &NodeId) -> Result<u64, Self::Error> {
        Ok(self.0.get(node).copied().unwrap_or(0))
    }
}

impl Judge {
    /// Begins before the first entry of a log.
    pub fn new(genesis: Head, offered: impl IntoIterator<Item = Offered>) -> Self {
        let offered = offered.into_iter().map(|offered| (offered.op_id, (offered, None)));
        Self {
            head: genesis,
            offered: offered.collect(),
            versions: Kept::default(),
            latest_sent: Duration::ZERO,
            violations: Vec::new(),
        }
    }

    /// Looks at the next entry.
    pub fn entry(&mut self, entry: &Entry) {
        let seq = entry.seq;
        if !entry.follows(&self.head) {
            self.violations.push(Violation::Broken(seq));
        }
        let previous = std::mem::replace(&mut self.head, entry.head());
        let Ok(outcomes) = model::decide::decide(&self.versions, &previous, &entry.commit);
        let op_id = entry.commit.op_id;
        for (change, outcome) in entry.commit.changes.iter().zip(outcomes) {
            match outcome {
                Outcome::Accepted { version } => {
                    self.versions.0.insert(change.node, version);
                }
                Outcome::Rejected { .. } | Outcome::Fenced { .. } => {
                    self.violations.push(Violation::Rejected(op_id, seq));
                }
            }
        }
        let Some((offered, stands)) = self.offered.get_mut(&op_id) else {
            self.violations.push(Violation::Invented(seq));
            return;
        };
        if stands.replace(seq).is_some() {
            self.violations.push(Violation::Doubled(op_id, seq));
            return;
        }
        if !is_what_was_sent(&entry.commit, &offered.change) {
            self.violations.push(Violation::Changed(op_id, seq));
        }
        if let Some(known) = offered.known {
            if known.seq != seq || known.answer.is_some_and(|head| head != self.head) {
                self.violations.push(Violation::Moved(op_id, seq));
            }
            if known.at < self.latest_sent {
                self.violations.push(Violation::OutOfTime(seq));
            }
        }
        self.latest_sent = self.latest_sent.max(offered.sent);
    }

    /// Ends behind the last entry.
    pub fn finish(mut self) -> Verdict {
        let mut verdict = Verdict { workspaces: 1, ..Verdict::default() };
        for (op_id, (offered, stands)) in &self.offered {
            verdict.sent += 1;
            match (offered.known, stands) {
                (Some(_), Some(_)) => verdict.known += 1,
                (Some(_), None) => {
                    verdict.known += 1;
                    self.violations.push(Violation::Lost(*op_id));
                }
                (None, Some(_)) => verdict.silent += 1,
                (None, None) => verdict.gone += 1,
            }
        }
        verdict.violations = self.violations;
        verdict
    }
}

fn is_what_was_sent(commit: &Commit, change: &Change) -> bool {
    commit.changes.len() == 1 && commit.changes[0] == *change
}

#[cfg(test)]
mod tests;
