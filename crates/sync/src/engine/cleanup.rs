//! Removes what nobody needs any more: old versions by policy, and the packs that only they have needed.
//!
//! *Participants*: the device that cleans up, and all others, which may write, be cut off, or be away for long meanwhile. *Goals*:
//! nobody ever misses a byte of what is there, of a version that is kept, or of what somebody is just proposing. *Non-goals*:
//! removing packs that travel in the log: they are condemned and forgotten like others, and their bytes stay in the entries. *Invariants*: no pack is removed before the fence that
//! condemns it is decided; a fence condemns a pack only if no kept version has a chunk in it, or each of these was read back
//! from another pack, and verified. Pages of old checkpoints need no fence, since the log says all that they say.
//!
//! The rule in words, and why it is safe: `docs/design/cleanup.md`.

use std::collections::BTreeMap;

use content::expand;
use futures_util::stream::{StreamExt, iter};
use model::codec::encode_message;
use model::environment::random_bytes;
use model::{
    Action, Change, Content, Fence, NodeId, NodeKind, OpId, PackId, TreeNode, TreeStore,
    VersionPolicy,
};

use super::upload::CommitPacks;
use super::{Engine, Event};
use crate::error::{Result, SyncError};
use crate::plan::{LocalMatter, Operation, Trees};

mod anew;
mod automatic;
mod dropped;
mod pages;
mod repack;
mod survey;

pub use automatic::AutomaticCleanup;
pub(super) use automatic::CleanupLookout;
pub(super) use dropped::Dropped;
pub use dropped::DroppedBy;
use repack::Verified;
use survey::Survey;

/// How often others may write just before a fence until a cleanup gives up.
const ATTEMPTS_MAX: u32 = 8;

/// From so many bytes of entries on that nobody needs any more new devices are given a checkpoint behind them.
const WORTH_A_CHECKPOINT: u64 = 64 * 1024;

/// The fact that such a checkpoint is still to be published.
const OWED_CHECKPOINT: &str = "owed checkpoint";

/// How often at most something is chosen to be written anew in one cleanup.
const ROUNDS_MAX: u32 = 2;

/// How many packs are removed between two looks at the log.
const REMOVE_GROUP: usize = 512;

/// How many packs are removed at the same time.
const REMOVE_AT_ONCE: usize = 8;

/// How a cleanup works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CleanupOptions {
    /// Only say what would be removed.
    pub dry_run: bool,
    /// What is needless is removed by writing the rest of it anew where that takes less than so many per cent of the bytes that go,
    pub repack_below_percent: u64,
    /// and while more is needless than so many per cent of what is needed.
    pub waste_percent_max: u64,
    /// How many bytes of packs are written anew at most in this run; a later one goes on.
    pub repack_length_max: u64,
    /// Whether somebody has said that the clock of this device is right.
    pub is_clock_trusted: bool,
    /// The rule by which versions are kept, in place of that of the workspace.
    pub policy: Option<VersionPolicy>,
    /// What it must be good for, or it is left alone. What an earlier cleanup has condemned is removed all the same.
    pub worth: Option<Worth>,
    /// Whether versions grow old by what the devices have written into the log, and not by the clock of this one.
    pub is_by_log_time: bool,
}

/// What a cleanup must be good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Worth {
    /// So many bytes are removed at least,
    pub length: u64,
    /// and so many per cent of what is stored.
    pub percent: u64,
}

impl Default for Worth {
    fn default() -> Self {
        Self { length: 1024 * 1024, percent: 5 }
    }
}

impl Default for CleanupOptions {
    fn default() -> Self {
        Self {
            dry_run: false,
            repack_below_percent: 90,
            waste_percent_max: 5,
            repack_length_max: 4 * 1024 * 1024 * 1024,
            is_clock_trusted: false,
            policy: None,
            worth: None,
            is_by_log_time: false,
        }
    }
}

/// What a cleanup has done, or would do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CleanupReport {
    /// The rule by which versions are kept.
    pub policy: VersionPolicy,
    /// Versions whose contents are kept.
    pub kept_versions: u64,
    /// Versions whose contents are not kept any more.
    pub dropped_versions: u64,
    /// Packs that are removed: how many, and their bytes.
    pub packs: u64,
    /// Bytes of the packs that are removed.
    pub length: u64,
    /// Packs that are written anew without what nobody needs: how many of those that are removed.
    pub repacked: u64,
    /// Bytes of the packs that were written for them.
    pub written_length: u64,
    /// Bytes of small packs in entries of the log that nobody looks for any more. They stay there, and a new device begins behind them.
    pub length_in_entries: u64,
    /// Pages of old checkpoints that are removed: how many, and their bytes.
    pub pages: u64,
    /// Bytes of the pages that are removed.
    pub pages_length: u64,
    /// Bytes of the packs that stay which nobody needs, about: too few to be worth writing the rest anew.
    pub needless_length: u64,
    /// Packs that are to be removed, and that some store did not remove; the next cleanup does.
    pub left: u64,
    /// Pages of which the same is true.
    pub left_pages: u64,
    /// The entry that says what is removed; nothing where nothing is.
    pub fence: Option<u64>,
}

impl Engine {
    /// Removes what nobody needs any more. May be cut off anywhere; the next cleanup, by whatever device, goes on.
    ///
    /// # Errors
    /// [`SyncError::NotWhole`], [`SyncError::ClockAhead`] and [`SyncError::CleanupOvertaken`], after which everything is as it
    /// was; as [`Self::push`].
    pub async fn cleanup(&mut self, options: &CleanupOptions) -> Result<CleanupReport> {
        let mut report = self.clean_up_packs(options).await?;
        if options.dry_run {
            self.clean_up_pages(options, &mut report).await?;
            return Ok(report);
        }
        let published = self.publish_owed_checkpoint().await;
        // Pages that nobody needs may have the room that a new one lacks.
        self.clean_up_pages(options, &mut report).await?;
        published?;
        Ok(report)
    }

    /// Publishes a checkpoint behind a fence that makes much of the entries before it needless, also one of a cleanup that was cut off: who
    /// begins there does not read what travelled in the log for others.
    async fn publish_owed_checkpoint(&mut self) -> Result<()> {
        if self.state.fact(OWED_CHECKPOINT)?.is_none() {
            return Ok(());
        }
        match self.publish_checkpoint_now().await {
            // A member may remove, and leaves checkpoints to the owner.
            Err(error) if error.says_read_only() => self.leave_checkpoint_to_others()?,
            published => published?,
        }
        self.state.forget_fact(OWED_CHECKPOINT)
    }

    async fn clean_up_packs(&mut self, options: &CleanupOptions) -> Result<CleanupReport> {
        let mut report = CleanupReport::default();
        let mut verified = Verified::default();
        let (mut attempts, mut has_repacked, mut rounds) = (0, false, 1);
        loop {
            match options.dry_run {
                true => drop(self.fetch().await?),
                false => self.send_outbox().await?,
            }
            // Packs have other numbers behind a fence, or in another log.
            verified.keep_in(self.upload.generation());
            let survey = self.survey(options, &verified).await?;
            (report.policy, report.kept_versions) = (survey.policy.clone(), survey.kept_versions);
            if verified.is_empty() {
                report.needless_length = survey.anew.needless;
            }
            if options.dry_run {
                report.add(&survey);
                report.packs += survey.anew.freed_count();
                report.repacked += survey.anew.freed_count();
                report.length += survey.anew.freed_length();
                report.written_length += survey.anew.length;
                return Ok(report);
            }
            if let Some(worth) = options.worth.filter(|_| !has_repacked)
                && !self.is_worth(&worth, &survey)?
            {
                report.left = self.remove(survey.leftovers).await?;
                return Ok(report);
            }
            if !survey.anew.is_empty() && !has_repacked {
                has_repacked = true;
                report.written_length += self.repack(&survey, &mut verified).await?;
                continue;
            }
            report.left = self.remove(survey.leftovers.clone()).await?;
            if survey.condemned.is_empty() && survey.dropped.is_empty() {
                return Ok(report);
            }
            let Some(seq) = self.propose_fence(&survey).await? else {
                attempts += 1;
                if attempts == ATTEMPTS_MAX {
                    return Err(SyncError::CleanupOvertaken(attempts));
                }
                continue;
            };
            report.fence = Some(seq);
            if survey.length_in_entries() >= WORTH_A_CHECKPOINT {
                self.state.set_fact(OWED_CHECKPOINT, &[])?;
            }
            report.add(&survey);
            let objects = survey.condemned_objects().map(|(pack, _)| pack).collect();
            report.left += self.remove(objects).await?;
            if has_repacked && rounds < ROUNDS_MAX && options.worth.is_none() {
                // What was written takes more or less than was guessed.
                rounds += 1;
                (verified, has_repacked) = (Verified::default(), false);
            } else if !survey.has_more {
                return Ok(report);
            }
        }
    }

    /// Brings the log up to date here, and what waits here into the log: a fence must be the next entry.
    async fn send_outbox(&mut self) -> Result<()> {
        self.fetch().await?;
        for _ in 0..ATTEMPTS_MAX {
            if self.push().await? == 0 {
                return Ok(());
            }
        }
        Err(SyncError::CleanupOvertaken(ATTEMPTS_MAX))
    }

    /// Proposes to remove what was found to be needless, and returns the entry that says so; nothing where another device was
    /// faster, since it may need some of it.
    async fn propose_fence(&mut self, survey: &Survey) -> Result<Option<u64>> {
        if self.head()? != survey.head {
            return Ok(None);
        }
        let condemned = survey.condemned.keys().copied().collect();
        let payload = encode_message(&Fence { condemned, dropped: survey.dropped.clone() });
        let change = Change { node: NodeId::FENCE, base: 0, action: Action::Put(payload) };
        let op_id = OpId::from_bytes(random_bytes(&*self.environment.random));
        let commit = self.commit_of(op_id, vec![change], CommitPacks::default())?;
        self.in_transaction(|engine| engine.state.add_to_outbox(&commit))?;
        self.push().await?;
        let fence = self.state.last_fence()?;
        let entry = self.state.entry(fence)?;
        Ok(entry.filter(|entry| entry.commit.op_id == op_id).map(|entry| entry.seq))
    }

    /// Removes condemned packs from the store, and returns how many it did not remove.
    async fn remove(&mut self, packs: Vec<PackId>) -> Result<u64> {
        let (mut left, total) = (0, packs.len() as u64);
        for (group, done) in packs.chunks(REMOVE_GROUP).zip((0..).step_by(REMOVE_GROUP)) {
            (self.observer)(Event::Cleaned { packs: done, total });
            // A log that has lost the fence may name them again.
            self.fetch().await?;
            let mut condemned = Vec::with_capacity(group.len());
            for pack in group {
                if !self.state.knows_pack(pack)? {
                    condemned.push(*pack);
                }
            }
            left += (group.len() - condemned.len()) as u64;
            let store = &self.environment.store;
            let removals = iter(condemned).map(|pack| store.remove_pack(pack));
            let results: Vec<_> = removals.buffer_unordered(REMOVE_AT_ONCE).collect().await;
            left += results.iter().filter(|result| result.is_err()).count() as u64;
        }
        (self.observer)(Event::Cleaned { packs: total, total });
        Ok(left)
    }

    /// Has every file read that is to be proposed as it was known, and whose chunks a cleanup has removed because the log
    /// said that nobody needs them: a file that was renamed here, and long deleted elsewhere.
    pub(super) fn look_behind_fence(
        &mut self,
        operations: &BTreeMap<NodeId, Operation>,
    ) -> Result<()> {
        if self.state.last_fence()? == 0 {
            return Ok(());
        }
        for (node, operation) in operations {
            let is_same = matches!(operation, Operation::Propose { .. })
                && self.trees().local(node)?.is_some_and(|it| it.matter == LocalMatter::Same);
            let Some(synced) = self.state.synced(node)?.filter(|_| is_same) else { continue };
            let NodeKind::File(content) = &synced.record.kind else { continue };
            let is_there =
                |remote: &TreeNode| remote.is_alive() && remote.record.kind == synced.record.kind;
            let is_needed = self.state.node(node)?.as_ref().is_some_and(is_there);
            if !is_needed && !self.has_all_chunks(content)? {
                self.find_again(node)?;
            }
        }
        Ok(())
    }

    /// Tells whether every chunk of a content is in a pack, as far as that can be told without asking anybody.
    fn has_all_chunks(&self, content: &Content) -> Result<bool> {
        let mut lists = Vec::new();
        let chunks = expand(content, |list| {
            lists.push(*list);
            self.state.list(&list.id)?.ok_or(SyncError::ChunkMissing(list.id))
        });
        let chunks = match chunks {
            Ok(chunks) => chunks,
            Err(error) if error.is_of_stored_data() => return Ok(false),
            Err(error) => return Err(error),
        };
        for chunk in lists.iter().chain(&chunks) {
            if !self.state.can_be_made(&chunk.id)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl CleanupReport {
    fn add(&mut self, survey: &Survey) {
        let dropped = survey.dropped.iter().map(|node| node.versions.len() as u64);
        self.dropped_versions += dropped.sum::<u64>();
        self.packs += survey.condemned_objects().count() as u64;
        self.length += survey.condemned_objects().map(|(_, length)| length).sum::<u64>();
        self.length_in_entries += survey.length_in_entries();
        self.repacked += survey.repacked;
    }
}

#[cfg(test)]
mod tests;
