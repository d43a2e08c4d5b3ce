//! Receives without sending: what a member of a workspace can do who may only read it.
//!
//! *Goals*: what others change arrives all the same; what was changed here stays in the folder and is named. *Invariants*: what
//! waited in the outbox is taken back only after the log was read, so what stands there already counts. *Non-goals*: to
//! remember it. Each run tries to send again, so one that may write from now on does.

use std::collections::BTreeMap;

use model::NodeId;

use super::{Engine, ROUNDS_MAX, SyncReport};
use crate::error::{Result, SyncError};
use crate::overlay::KnownPaths;
use crate::plan::{Operation, split};
use crate::scan::Scope;

impl Engine {
    /// Goes on with a run that was told that it may not write. What it has begun is taken up like that of a run that was cut off.
    pub(super) async fn receive_only(&mut self) -> Result<()> {
        let so_far = std::mem::take(&mut self.report);
        self.begin()?;
        self.may_send_ahead = false;
        self.report = SyncReport { sent: 0, sent_bytes: 0, ..so_far };
        self.look(&Scope::Everything).await?;
        self.agree_on_directories().await?;
        self.take_outbox_back(false).await?;
        for _ in 0..ROUNDS_MAX {
            self.fetch_unless_known().await?;
            self.check_pool()?;
            self.pass_mounts().await?;
            let merged = self.merge_round().await?;
            self.fetcher.forget_ahead();
            if !merged.any && !self.may_find_missed().await? {
                let plan = merged.proposals.map_or_else(|| self.plan(), Ok)?;
                return self.note_kept_back(&plan);
            }
        }
        Err(SyncError::NotSettling(ROUNDS_MAX))
    }

    /// Names what this device would propose. Of a directory that was deleted with all that was in it, only the directory has a path.
    fn note_kept_back(&mut self, plan: &BTreeMap<NodeId, Operation>) -> Result<()> {
        let (trees, mut known) = (self.trees(), KnownPaths::default());
        let mut kept = Vec::new();
        for (node, _) in plan.iter().filter(|(_, operation)| operation.is_proposal()) {
            let path = match trees.local_path_by(node, &mut known)? {
                Some(path) => Some(path),
                None => match self.state.synced(node)? {
                    Some(row) => trees.path_of_place_by(&split(&row.record).0, &mut known)?,
                    None => None,
                },
            };
            kept.extend(path);
        }
        kept.sort();
        self.report.kept_back = kept;
        Ok(())
    }

    /// Leaves the checkpoint that is due to those who may write, until as many entries have come again.
    pub(super) fn leave_checkpoint_to_others(&mut self) -> Result<()> {
        let seq = self.head()?.seq;
        self.state.set_fact("checkpoint", &seq.to_le_bytes())
    }
}

#[cfg(test)]
mod tests;
