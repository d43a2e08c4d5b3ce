//! Sends new files while this device looks at the log: far away the look takes as long as the sending.
//!
//! *Goals*: a change here is in the log one round trip earlier. *Non-goals*: to believe anything before the look has ended: until then
//! nothing is proposed, and folder and merge base stay as they are. *Invariants*: what is read ahead is bounded; what goes wrong is forgotten
//! and done again in its turn, which then says so; where the log has something new, what was read is planned anew, and where it is
//! new as a whole, what was sent is forgotten, since the files may be there already.

use std::pin::pin;
use std::time::Duration;

use content::FinishedPack;
use futures_util::future::{Either, select};

use model::NodeId;

use super::Engine;
use super::checkin::Group;
use super::reading::{Packing, Reading};
use super::upload::NewPack;
use crate::error::Result;
use crate::plan::Operation;

/// How many bytes of files are read before the log has answered.
const AHEAD_LENGTH: u64 = 32 * 1024 * 1024;

/// For how long after a look this is done: the stores may be others by then, and who has removed one does not want new files there.
pub(super) const SEND_AHEAD_WITHIN: Duration = Duration::from_secs(15 * 60);

/// The fact of when a run has last looked at the log, in seconds.
const LOOKED: &str = "fetched at";

/// What is read and sent before its turn.
#[derive(Default)]
pub(super) struct Ahead {
    /// What this device proposes if the log has nothing new, while the log is looked at.
    pub(super) groups: Vec<Group>,
    pub(super) reading: Reading,
    /// Packs of it that no commit names yet.
    pub(super) packs: Vec<NewPack>,
}

impl Engine {
    /// Sets for how long after a look at the log new files are sent before the next one has ended; never, where it is zero.
    pub fn send_ahead_within(&mut self, time: Duration) {
        self.send_ahead_within = time;
    }

    /// Tells whether the log was looked at so lately that what is known of it, and of the stores, is as good as known now. Of a log
    /// that this device has never seen there is nothing to know.
    pub(super) fn has_looked_lately(&self) -> Result<bool> {
        if self.send_ahead_within.is_zero() {
            return Ok(false);
        }
        if self.head()?.seq == 0 {
            return Ok(true);
        }
        let Some(looked) = self.state.fact(LOOKED)? else { return Ok(false) };
        let Ok(looked) = looked.try_into().map(i64::from_le_bytes) else { return Ok(false) };
        let age = self.environment.clock.now().seconds.checked_sub(looked);
        let age = age.and_then(|age| u64::try_from(age).ok());
        Ok(age.is_some_and(|age| age <= self.send_ahead_within.as_secs()))
    }

    /// Remembers that the log was looked at.
    pub(super) fn note_fetched(&mut self) -> Result<()> {
        let now = self.environment.clock.now().seconds;
        self.state.set_fact(LOOKED, &now.to_le_bytes())
    }

    /// Begins to read what is to be sent, where this device has nothing else to do, and its last run has ended well, and lately.
    pub(super) fn send_ahead(&mut self) -> Result<()> {
        // What the log names and was not looked into may have what would be sent.
        if !self.may_send_ahead
            || self.state.has_unsynced()?
            || !self.state.unindexed_packs()?.is_empty()
        {
            return Ok(());
        }
        let operations = self.plan()?;
        if !operations.values().all(Operation::is_proposal) {
            return Ok(());
        }
        let groups = self.proposals(&operations)?;
        let Some(first) = groups.first() else { return Ok(()) };
        let mut length = 0;
        let mut nodes = self.touched(first)?;
        let mut count = 0;
        for node in &nodes {
            length += self.trees().local_stat(node)?.map_or(0, |stat| stat.size);
            if length > AHEAD_LENGTH {
                break;
            }
            count += 1;
        }
        nodes.truncate(count);
        let mut reading = Reading::default();
        self.start_reading(&mut reading, nodes)?;
        self.upload.ahead = Some(Ahead { groups, reading, ..Ahead::default() });
        Ok(())
    }

    /// Begins to read the nodes of the next commit, while one is on its way.
    pub(super) fn read_ahead(&mut self, nodes: Vec<NodeId>) -> Result<()> {
        let mut ahead = Ahead::default();
        self.start_reading(&mut ahead.reading, nodes)?;
        self.upload.ahead = Some(ahead);
        Ok(())
    }

    /// Waits for the log, and goes on meanwhile with what was begun ahead.
    pub(super) async fn beside_ahead<T>(&mut self, work: impl Future<Output = T>) -> Result<T> {
        let mut work = pin!(work);
        loop {
            let pack = {
                let next = pin!(self.upload.next_ahead());
                match select(work.as_mut(), next).await {
                    Either::Left((done, _)) => return Ok(done),
                    Either::Right((pack, _)) => pack,
                }
            };
            self.take_pack_ahead(pack)?;
        }
    }

    /// Sends a pack that was read ahead. Where the store has refused one before it, all of it is left to its turn.
    pub(super) fn take_pack_ahead(&mut self, pack: Result<FinishedPack>) -> Result<()> {
        match pack {
            Ok(pack) => self.send_pack_ahead(pack),
            Err(_) => {
                self.forget_upload();
                Ok(())
            }
        }
    }

    /// The log has something new: what was begun ahead ends before anybody else asks the stores for anything. Where this device has
    /// seen nothing of the log before, what it has may be there, and is forgotten.
    pub(super) async fn settle_ahead(&mut self, is_new: bool) -> Result<()> {
        let Some(ahead) = self.upload.end_ahead() else { return Ok(()) };
        if is_new || self.finish_ahead(ahead.reading).await.is_err() {
            self.forget_upload();
        }
        Ok(())
    }

    async fn finish_ahead(&mut self, reading: Reading) -> Result<()> {
        self.finish_reading(reading, Packing::Hold).await?;
        self.upload.sending.end().await
    }
}

#[cfg(test)]
mod tests;
