//! Removes the pages of old checkpoints.
//!
//! A checkpoint is a shorter way to what the log says, so no fence is needed: who misses a page takes a newer checkpoint, or
//! replays the log. The newest checkpoint and the one before it stay, for those who are reading them. Whoever publishes one at
//! this moment may need what is removed, and cannot be seen: so the newest one is looked at once more after the removal, and
//! what it lacks is written again (`docs/design/cleanup.md`, "Pages of old checkpoints").

use std::collections::{BTreeMap, BTreeSet};

use futures_util::stream::{StreamExt, iter};
use model::PageId;

use super::{CleanupOptions, CleanupReport, REMOVE_AT_ONCE, REMOVE_GROUP};
use crate::engine::Engine;
use crate::error::Result;

/// What must stay of the checkpoints.
struct Kept {
    /// The pages.
    pages: BTreeSet<PageId>,
    /// Those of the newest.
    newest: BTreeSet<PageId>,
    /// The entry of the older checkpoint, where there are two.
    oldest: Option<u64>,
}

impl Engine {
    /// Removes the pages that neither the newest checkpoint nor the one before it has.
    pub(super) async fn clean_up_pages(
        &mut self,
        options: &CleanupOptions,
        report: &mut CleanupReport,
    ) -> Result<()> {
        let Some(kept) = self.kept_pages(!options.dry_run).await? else { return Ok(()) };
        let stored: BTreeMap<PageId, u64> =
            self.environment.store.list_pages().await?.into_iter().collect();
        let needless: Vec<PageId> =
            stored.keys().filter(|id| !kept.pages.contains(id)).copied().collect();
        if options.dry_run {
            report.pages = needless.len() as u64;
            report.pages_length = needless.iter().map(|id| stored[id]).sum();
            return Ok(());
        }
        let is_missing = |id: &&PageId| !stored.contains_key(id);
        let missing = kept.newest.iter().filter(is_missing).copied().collect();
        self.renew_pages(&missing).await?;
        if let Some(oldest) = kept.oldest {
            // First, so that nobody begins at one whose pages go.
            self.environment.log.forget_checkpoints(oldest).await?;
        }
        let mut removed = BTreeSet::new();
        for group in needless.chunks(REMOVE_GROUP) {
            // Somebody may have published one that has some of them.
            let Some(kept) = self.kept_pages(true).await? else { break };
            let group: Vec<PageId> =
                group.iter().filter(|id| !kept.pages.contains(id)).copied().collect();
            report.pages += group.len() as u64;
            report.pages_length += group.iter().map(|id| stored[id]).sum::<u64>();
            removed.extend(&group);
            let store = &self.environment.store;
            let removals = iter(group).map(|page| store.remove_page(page));
            let results: Vec<_> = removals.buffer_unordered(REMOVE_AT_ONCE).collect().await;
            report.left_pages += results.iter().filter(|result| result.is_err()).count() as u64;
        }
        self.renew_removed(&removed).await
    }

    /// Writes again what was removed and a checkpoint needs that was published meanwhile.
    async fn renew_removed(&mut self, removed: &BTreeSet<PageId>) -> Result<()> {
        if removed.is_empty() {
            return Ok(());
        }
        let Some(newest) = self.environment.log.checkpoint().await? else { return Ok(()) };
        let pages = self.pages_of(&newest).await?;
        let mut lost: BTreeSet<PageId> = pages.ids.intersection(removed).copied().collect();
        lost.extend(pages.unread);
        self.renew_pages(&lost).await.map(drop)
    }

    /// Returns the pages of the newest checkpoint and of the one before it; nothing where that cannot be told, and where it is not
    /// for a device to say which pages nobody needs. A newest one that cannot be read is made anew if `renews`.
    async fn kept_pages(&mut self, renews: bool) -> Result<Option<Kept>> {
        self.fetch().await?;
        let log = self.environment.log.clone();
        let Some(mut last) = log.last_checkpoints().await? else { return Ok(None) };
        let Some(mut newest) = last.first() else { return Ok(None) };
        let mut pages = self.pages_of(newest).await?;
        if !pages.unread.is_empty() && renews {
            self.renew_pages(&pages.unread).await?;
            last = log.last_checkpoints().await?.unwrap_or_default();
            newest = match last.first() {
                Some(newest) => newest,
                None => return Ok(None),
            };
            pages = self.pages_of(newest).await?;
        }
        // One that is not of this log, or that nobody who may has made, says nothing about what is needed.
        let is_of_log = self.state.entry(newest.head.seq)?.map(|it| it.head()) == Some(newest.head);
        if !is_of_log || self.keys.check_checkpoint(newest).is_err() || !pages.unread.is_empty() {
            return Ok(None);
        }
        let mut kept = Kept { newest: pages.ids.clone(), pages: pages.ids, oldest: None };
        if let Some(before) = last.get(1) {
            kept.oldest = Some(before.head.seq);
            kept.pages.extend(self.pages_of(before).await?.ids);
        }
        Ok(Some(kept))
    }
}
