//! Packs that are asked for as soon as any store has spoken of them: far away, that is a round trip or two less.
//!
//! One store alone may be wrong, out of date, or lie. What it says is never folded: it only names packs, which are named by
//! their content, and which the log will name a moment later or not. *Invariant*: what is fetched in vain is bounded by what
//! may be fetched ahead; in a sealed workspace nobody but a device of it can make another one fetch.

use std::pin::pin;
use std::sync::Arc;

use commit_log::Rumour;
use content::FinishedPack;
use content::pack::PACK_LENGTH_MAX;
use futures_util::future::{Either, select};
use futures_util::stream::{StreamExt, pending};
use model::fold::Opener;
use model::{Entry, Head, PackRef};

use super::Engine;
use crate::error::Result;

/// How many entries wait at most for the news whether there is a checkpoint.
const WAITING_MAX: usize = 8;

/// How many packs of one entry are looked up.
const PACKS_MAX: usize = 64;

/// What rumours are compared with.
struct Hearing {
    head: Head,
    fence: u64,
    /// A new device may begin at a checkpoint, and then does not need what older entries name.
    waits_for_checkpoint: bool,
    waiting: Vec<Arc<Entry>>,
}

/// What happens beside a look.
enum News {
    Heard(Option<Rumour>),
    Read(Result<FinishedPack>),
}

impl Engine {
    /// Looks at the log, fetches meanwhile what single stores speak of, and sends what was begun ahead.
    pub(super) async fn beside_rumours<T>(
        &mut self,
        is_new: bool,
        look: impl Future<Output = T>,
    ) -> Result<T> {
        let mut hearing = Hearing {
            head: self.head()?,
            fence: self.state.last_fence()?,
            waits_for_checkpoint: is_new,
            waiting: Vec::new(),
        };
        let mut rumours = self.environment.log.rumours().chain(pending());
        let mut look = pin!(look);
        loop {
            let news = {
                let heard = pin!(self.fetcher.beside(rumours.next()));
                let read = pin!(self.upload.next_ahead());
                match select(look.as_mut(), select(heard, read)).await {
                    Either::Left((seen, _)) => return Ok(seen),
                    Either::Right((Either::Left((rumour, _)), _)) => News::Heard(rumour),
                    Either::Right((Either::Right((pack, _)), _)) => News::Read(pack),
                }
            };
            let entries = match news {
                News::Heard(rumour) => rumour.map(|rumour| hearing.hear(rumour)),
                News::Read(pack) => {
                    self.take_pack_ahead(pack)?;
                    None
                }
            };
            for entry in entries.unwrap_or_default() {
                // What is here may be there already.
                if is_new {
                    self.settle_ahead(is_new).await?;
                }
                let packs = self.packs_of_rumour(&hearing, &entry)?;
                self.fetcher.fetch_rumoured(packs);
            }
        }
    }

    /// Returns the packs that an entry names and this device does not have, unless it is known already that the entry is none
    /// or counts for nothing.
    fn packs_of_rumour(&self, hearing: &Hearing, entry: &Entry) -> Result<Vec<PackRef>> {
        let Entry { seq, commit, .. } = entry;
        let is_next = *seq == hearing.head.seq + 1;
        let is_none = *seq <= hearing.head.seq || is_next && !entry.follows(&hearing.head);
        if is_none
            || commit.seen.seq < hearing.fence
            || self.keys.check(commit, self.members_payload()?.as_deref()).is_err()
            || self.state.is_in_outbox(&commit.op_id)?
        {
            return Ok(Vec::new());
        }
        let mut packs = Vec::new();
        for pack in commit.packs.iter().take(PACKS_MAX) {
            // A length that no pack has would take all room, or be no number any more.
            if (1..=PACK_LENGTH_MAX).contains(&pack.length) && !self.state.knows_pack(&pack.id)? {
                packs.push(*pack);
            }
        }
        Ok(packs)
    }
}

impl Hearing {
    /// Takes a rumour, and returns the entries of which one may think now.
    fn hear(&mut self, rumour: Rumour) -> Vec<Arc<Entry>> {
        match rumour {
            Rumour::Checkpoint(checkpoint) => {
                self.waits_for_checkpoint = false;
                let head = checkpoint.map(|checkpoint| checkpoint.head);
                if let Some(head) = head.filter(|head| head.seq > self.head.seq) {
                    self.head = head;
                }
                std::mem::take(&mut self.waiting)
            }
            Rumour::Entry(entry) if self.waits_for_checkpoint => {
                if self.waiting.len() < WAITING_MAX {
                    self.waiting.push(entry);
                }
                Vec::new()
            }
            Rumour::Entry(entry) => vec![entry],
        }
    }
}

#[cfg(test)]
mod tests;
