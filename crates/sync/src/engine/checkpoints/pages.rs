//! Which pages a checkpoint has.

use std::collections::BTreeSet;

use futures_util::stream::{StreamExt, iter};
use model::PageId;
use model::checkpoint::{Checkpoint, Page};
use model::codec::decode_message;

use super::PAGES_AT_ONCE;
use crate::engine::Engine;
use crate::error::Result;

/// The pages of a checkpoint, as far as that can be told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::engine) struct PagesOf {
    /// All that are known, those of the next field among them.
    pub ids: BTreeSet<PageId>,
    /// Those that should list others and cannot be read: what is below them is not known.
    pub unread: BTreeSet<PageId>,
}

impl Engine {
    /// Finds out which pages a checkpoint has. Only those are read that list others; nothing is said about the rest but
    /// their names.
    pub(in crate::engine) async fn pages_of(&self, checkpoint: &Checkpoint) -> Result<PagesOf> {
        let mut found = PagesOf::default();
        let mut wanted = vec![(checkpoint.nodes, None), (checkpoint.packs, None)];
        while !wanted.is_empty() {
            found.ids.extend(wanted.iter().map(|(id, _)| *id));
            // Behind the lowest level there is nothing to find.
            wanted.retain(|(_, level)| *level != Some(0));
            let read = async |(id, level): (PageId, Option<u8>)| (id, level, self.page(id).await);
            let mut reads = iter(std::mem::take(&mut wanted)).map(read).buffered(PAGES_AT_ONCE);
            while let Some((id, level, page)) = reads.next().await {
                match page? {
                    Some(page) if level.is_none_or(|level| level == page.level()) => {
                        let below = page.level().checked_sub(1);
                        wanted.extend(page.children().map(|child| (child, below)));
                    }
                    _ => {
                        found.unread.insert(id);
                    }
                }
            }
        }
        Ok(found)
    }

    /// Reads a page; nothing where it is lost, or is not what it should be.
    async fn page(&self, id: PageId) -> Result<Option<Page>> {
        let read = match self.environment.store.read_page(id).await {
            Err(error) if error.is_damage() => return Ok(None),
            read => read?,
        };
        let Ok(plain) = self.keys.open_page(&read) else { return Ok(None) };
        Ok(decode_message(&plain).ok())
    }
}
