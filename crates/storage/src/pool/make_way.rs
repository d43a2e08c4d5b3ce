//! How what nobody waits for makes way for the commit.
//!
//! When a sync has ended, the log is written next, and all who sync wait for that. An entry shares the line evenly with the pieces
//! that are on it: on a thin one it waits for them far longer than it takes. So these leave the line for a moment, and begin
//! anew. That sends a part of them twice, so each does it once at most, and only where it matters.

use std::time::Duration;

use futures_util::future::{join_all, select};

use super::Shared;

/// A line is free enough if a little goes through in this time beside what is on it.
const WAY_IS_FREE: Duration = Duration::from_secs(2);

/// Pieces of no more bytes stay: they are through soon.
const STAYING_MAX: u64 = 1 << 20;

/// How long pieces that stepped back wait, unless something is written before: about as long as a commit takes.
const HOLD: Duration = Duration::from_secs(5);

/// How long it is waited for them to step back.
const STEP_MAX: Duration = Duration::from_millis(50);

impl Shared {
    /// Lets pieces that nobody waits for step back from lines that are thin, or of which nothing is known. Without a runtime
    /// nobody would let them go on.
    pub(crate) async fn make_way(&self) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let is_thin = |beside: usize, time: Option<Duration>| {
            beside > 0 && time.is_none_or(|time| time > WAY_IS_FREE)
        };
        let mut left = Vec::new();
        for member in &self.members {
            let beside = member.turns.on_line();
            if is_thin(beside, member.takes_for_little(beside)) {
                left.extend(member.turns.step_back(STAYING_MAX));
            }
        }
        if left.is_empty() {
            return;
        }
        self.traffic.hold_until(self.clock.elapsed() + HOLD);
        select(join_all(left), self.clock.sleep(STEP_MAX)).await;
        if let Some(shared) = self.this.upgrade() {
            runtime.spawn(async move {
                shared.clock.sleep(HOLD).await;
                shared.members.iter().for_each(|member| member.turns.give_turns());
            });
        }
    }

    /// Lets pieces that stepped back go on.
    pub(crate) fn end_hold(&self) {
        self.traffic.hold_until(Duration::ZERO);
        self.members.iter().for_each(|member| member.turns.give_turns());
    }
}
