//! The engine's part in scrubbing: it knows what should be stored, and has what no store has any more.

use std::collections::{BTreeSet, HashSet};

use model::codec::{Decode, Decoder, Encode, Encoder};
use model::{PackId, PageId};
use storage::ObjectKey;

use super::{Engine, Event};
use crate::error::Result;
use crate::scrub::{ScrubOptions, ScrubPosition, Scrubbed, Scrubber};

/// The fact that says how far a scrub has come.
const SCRUB: &str = "scrub";

/// How many packs are looked up at once.
const PACKS_PAGE: usize = 1024;

/// How far the scrub of a workspace has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScrubStatus {
    /// Where it is.
    pub position: ScrubPosition,
    /// How many packs there are to read in a round.
    pub packs: u64,
}

impl Engine {
    /// Lets the next watch read what is stored in the background.
    pub fn scrub_with(&mut self, scrubber: Scrubber) {
        self.scrubber = Some(scrubber);
    }

    /// Returns how far a scrub has come; nothing where none has begun.
    ///
    /// # Errors
    /// [`crate::SyncError`].
    pub fn scrub_status(&self) -> Result<Option<ScrubStatus>> {
        scrub_status(&self.state)
    }

    fn set_scrub_position(&mut self, position: &ScrubPosition) -> Result<()> {
        let mut encoder = Encoder::default();
        position.encode(&mut encoder);
        self.state.set_fact(SCRUB, &encoder.into_bytes())
    }

    /// Returns what is to be read in the step that is due now.
    pub(super) async fn next_scrub(
        &mut self,
        options: &ScrubOptions,
    ) -> Result<BTreeSet<ObjectKey>> {
        let mut position = position(&self.state)?.unwrap_or_default();
        let (_, total) = self.state.stored_packs_count()?;
        position.earn(self.environment.clock.now(), total, options);
        let page = self.state.stored_pack_page(position.after.as_ref(), PACKS_PAGE)?;
        let taken = position.spend(page.iter().map(|pack| (pack.id, pack.place.length)));
        let mut objects: BTreeSet<_> = taken.iter().map(|pack| ObjectKey::pack(*pack)).collect();
        // The pages are few: they are read when all packs were.
        if page.len() < PACKS_PAGE && taken.len() == page.len() {
            objects.extend(self.stored_pages().await?.into_iter().map(ObjectKey::page));
        }
        self.set_scrub_position(&position)?;
        Ok(objects)
    }

    /// Counts what stores lacked and have got.
    pub(super) fn take_filled(&mut self, written: u64) -> Result<()> {
        (self.observer)(Event::Filled);
        if written == 0 {
            return Ok(());
        }
        let mut position = position(&self.state)?.unwrap_or_default();
        position.mended += written;
        self.set_scrub_position(&position)?;
        (self.observer)(Event::Scrubbed { mended: written, put_back: 0, lost: 0 });
        Ok(())
    }

    /// Takes in what a step has found, and puts back what no store has any more.
    pub(super) async fn take_scrubbed(&mut self, done: &Scrubbed) -> Result<()> {
        let lost: HashSet<PackId> = done.lost.iter().filter_map(ObjectKey::as_pack).collect();
        let lost_pages: BTreeSet<PageId> =
            done.lost.iter().filter_map(ObjectKey::as_page).collect();
        let put_back = match lost.is_empty() {
            true => 0,
            false => self.put_back(&lost).await?.chunks,
        };
        self.renew_pages(&lost_pages).await?;
        // Of lost packs nothing is believed any more, unless they are back: what is still lost is in no pack.
        let is_left = !lost.is_empty() && !self.versions_made_of(&HashSet::new()).await?.is_empty();
        let still_lost = if is_left { lost.len() as u64 } else { 0 };
        for pack in self.state.distrusted_packs()? {
            let key = ObjectKey::pack(pack.id);
            let is_whole = done.objects.contains(&key)
                && !done.lost.contains(&key)
                && !done.unsettled.contains(&key);
            if is_whole {
                self.state.trust_pack(&pack.id)?;
            }
        }
        let mut position = position(&self.state)?.unwrap_or_default();
        position.objects += done.objects.len() as u64;
        position.mended += done.mended + put_back;
        position.lost += still_lost;
        position.after =
            done.objects.iter().filter_map(ObjectKey::as_pack).max().or(position.after);
        if self.state.stored_pack_page(position.after.as_ref(), 1)?.is_empty() {
            position.ended = Some(self.environment.clock.now());
            (position.after, position.began) = (None, None);
        }
        self.set_scrub_position(&position)?;
        if done.mended + put_back + still_lost > 0 {
            let mended = done.mended;
            (self.observer)(Event::Scrubbed { mended, put_back, lost: still_lost });
        }
        Ok(())
    }
}

/// Returns how far a scrub has come, as far as a state knows; nothing where none has begun.
///
/// # Errors
/// [`crate::SyncError`].
pub fn scrub_status(state: &crate::state::State) -> Result<Option<ScrubStatus>> {
    let Some(position) = position(state)? else { return Ok(None) };
    let (packs, _) = state.stored_packs_count()?;
    Ok(Some(ScrubStatus { position, packs }))
}

fn position(state: &crate::state::State) -> Result<Option<ScrubPosition>> {
    let Some(bytes) = state.fact(SCRUB)? else { return Ok(None) };
    // What an older or newer program has left counts for nothing: a scrub begins anew.
    Ok(ScrubPosition::decode(&mut Decoder::new(&bytes)).ok())
}

#[cfg(test)]
mod tests;
