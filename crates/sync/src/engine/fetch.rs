//! Learns what the log says, and settles what this device has proposed.

use std::collections::{HashMap, HashSet};

use content::WorkspaceKeys;
use futures_util::future::join;
use model::codec::{Message, decode_message, encode_message};
use model::commit::PackRef;
use model::fold::{FoldNote, Folded, fold};
use model::wire::RefusalKind;
use model::{
    Action, Commit, Entry, Head, NodeId, NodeRecord, Opener, Outcome, TreeNode, TreeStore,
};

use super::{Engine, Environment, Event, VoidEntry};
use crate::chunk_reader::pack_id;
use crate::error::{Result, SyncError};
use crate::overlay::OverlayNode;
use crate::plan::{Local, LocalMatter, split};
use crate::state::{State, SyncedNode};

/// How many bytes of entries are asked for at once.
const ENTRIES_LENGTH_MAX: u64 = 8 * 1024 * 1024;

/// What was found at the end of the log is new enough for so many times as long as it took to look.
const LOOK_HOLDS: u32 = 2;

impl Engine {
    /// Folds all entries that are new. The folder is not changed.
    ///
    /// # Errors
    /// [`SyncError`]; what was folded stays folded.
    pub async fn fetch(&mut self) -> Result<u64> {
        let before = self.head()?;
        let newest = self.look_at_log(before.seq == 0, false).await?;
        self.learn_up_to(before, newest).await
    }

    /// Does the same for who is going to fetch the files, too: packs of which any store says that the log names them are asked for
    /// at once, and what is to be sent sets out (`Upload::ahead`, if the log has nothing new). Where the newest head became known in
    /// this run after what it has fetched, the log is not asked for it again.
    pub(super) async fn fetch_unless_known(&mut self) -> Result<()> {
        let before = self.head()?;
        let newest = match self.looked.take().filter(|_| before.seq > 0) {
            Some(newest) => newest,
            None if self.has_fetched && self.environment.clock.elapsed() < self.known_until => {
                return Ok(());
            }
            None => {
                self.send_ahead()?;
                self.look_at_log(before.seq == 0, true).await?
            }
        };
        self.learn_up_to(before, newest).await?;
        self.fetcher.judge_rumours(&self.state)
    }

    async fn learn_up_to(&mut self, before: Head, newest: Head) -> Result<u64> {
        self.looked = None;
        self.has_fetched = true;
        self.is_before_mounts = false;
        if newest.seq < before.seq || (newest.seq == before.seq && newest.hash != before.hash) {
            self.heal_history().await?;
        }
        loop {
            let head = self.head()?;
            if head.seq >= newest.seq {
                break;
            }
            let entries = self.environment.log.entries(head.seq, ENTRIES_LENGTH_MAX).await?;
            if entries.is_empty() {
                break;
            }
            (self.observer)(Event::Step("fetch"));
            if !entries[0].follows(&head) {
                self.heal_history().await?;
                continue;
            }
            for entry in &entries {
                if entry.is_of_mounts() && self.stops_before_mounts()? {
                    return Ok(entry.seq - 1 - before.seq.min(entry.seq - 1));
                }
                self.report.received_bytes += encode_message(entry).len() as u64;
                self.fold_entry(entry)?;
            }
        }
        Ok(self.head()?.seq - before.seq.min(self.head()?.seq))
    }

    /// Returns the newest head. A new device looks for a checkpoint at the same time, and begins there.
    async fn look_at_log(&mut self, is_new: bool, fetches_rumoured: bool) -> Result<Head> {
        let Environment { log, clock, .. } = self.environment.clone();
        let began = clock.elapsed();
        let look = async {
            match is_new {
                true => join(log.checkpoint(), log.head()).await,
                false => (Ok(None), log.head().await),
            }
        };
        let (checkpoint, head) = match fetches_rumoured {
            true => self.beside_rumours(is_new, look).await?,
            false => look.await,
        };
        let (checkpoint, head) = (checkpoint?, head?);
        if checkpoint.is_some() || head != self.head()? {
            self.settle_ahead(is_new).await?;
        }
        let ended = clock.elapsed();
        self.known_until = ended + ended.saturating_sub(began) * LOOK_HOLDS;
        if let Some(checkpoint) = checkpoint {
            self.start_from_checkpoint(&checkpoint).await?;
        }
        Ok(head)
    }

    /// Folds one entry into the remote tree, in one transaction.
    pub(super) fn fold_entry(&mut self, entry: &Entry) -> Result<()> {
        let head = self.head()?;
        if !entry.follows(&head) {
            return Err(SyncError::HistoryDiverged { seq: entry.seq });
        }
        let keys = &self.keys;
        let members = self.members_payload()?;
        keys.check_epoch(&entry.commit, members.as_deref())?;
        self.check_seen(entry, &head, members.as_deref())?;
        let (mut has_settings, mut has_mounts, mut has_fence) = (false, false, false);
        let (settled, void) = self.state.transaction(|state| {
            let folded = fold(state, entry, keys)?;
            has_settings = folded.touched.contains(&NodeId::POOL);
            has_mounts = folded.touched.contains(&NodeId::MOUNTS);
            has_fence = folded.touched.contains(&NodeId::FENCE);
            // What somebody proposed who had not seen the fence may rest in packs that it condemns.
            if !folded.is_fenced {
                note_packs(state, entry)?;
            }
            if let Some(fence) = &folded.fence {
                state.forget_packs(&fence.condemned)?;
            }
            state.add_entry(entry, folded.touched.iter().copied())?;
            let is_own = state.is_in_outbox(&entry.commit.op_id)?;
            let settled =
                if is_own { settle(state, entry, &folded, keys)? } else { Settled::default() };
            let is_settled =
                |node: &NodeId| node.is_settings() || settled.as_proposed.contains(node);
            for node in folded.touched.iter().filter(|node| !is_settled(node)) {
                state.add_unsynced(node)?;
            }
            state.set_head(&entry.head())?;
            Ok((settled, folded.void))
        })?;
        if has_fence {
            self.start_anew_behind_fence()?;
        }
        if has_settings {
            (self.observer)(Event::SettingsChanged);
        }
        if has_mounts {
            (self.observer)(Event::MountsChanged);
        }
        if let Some(reason) = void {
            self.report.void_entries.push(VoidEntry { seq: entry.seq, reason });
        }
        // The merge base is back at what was before; what is in the folder differs from that again.
        for proposed in settled.rejected {
            let matter = LocalMatter::Known(split(&proposed.record).1);
            self.keep_in_view(proposed, matter);
        }
        for proposed in settled.fenced {
            self.read_again(proposed);
        }
        Ok(())
    }

    /// Refuses what a device has signed that had seen another history, where whoever orders the log does not take such a commit: it
    /// was told to that device alone, and versions in it are not those that are meant here.
    fn check_seen(&self, entry: &Entry, head: &Head, members: Option<&[u8]>) -> Result<()> {
        let seen = &entry.commit.seen;
        let is_bound = self.keys.is_sealed() && self.environment.log.binds_what_was_seen();
        if !is_bound || seen.seq == 0 || seen == head {
            return Ok(());
        }
        // Of what lies before the checkpoint where this device has begun it cannot tell.
        let known = self.state.entry(seen.seq + 1)?.map(|next| next.previous);
        match self.keys.is_forked(entry, head, known, members) {
            true => Err(SyncError::HistoryForked { seq: entry.seq }),
            false => Ok(()),
        }
    }

    /// Forgets everything that was read of files and is on its way: it is read again.
    pub(super) fn forget_upload(&mut self) {
        self.upload.start_anew();
        self.overlay.unread();
    }

    /// Does so because a cleanup may remove the packs on which it rests.
    pub(super) fn start_anew_behind_fence(&mut self) -> Result<()> {
        self.fence = self.state.last_fence()?;
        self.forget_upload();
        self.fetcher.forget_packs_behind(self.fence);
        Ok(())
    }

    /// What was proposed in vain is read again, since the packs of its chunks may be gone.
    fn read_again(&mut self, proposed: SyncedNode) {
        let is_directory = proposed.record.kind.is_directory();
        let known = is_directory.then(|| LocalMatter::Known(split(&proposed.record).1));
        self.keep_in_view(proposed, known.unwrap_or(LocalMatter::Touched));
    }

    /// What was proposed in vain is still in the folder, where it was, unless a scan has found something else since.
    fn keep_in_view(&mut self, proposed: SyncedNode, matter: LocalMatter) {
        if self.overlay.contains(&proposed.node) {
            return;
        }
        let place = split(&proposed.record).0;
        let Some(stat) = proposed.stat else {
            self.skipped.insert(proposed.node);
            return;
        };
        let local = Local { place, kind: stat.kind, matter };
        self.overlay.set(proposed.node, OverlayNode { local, stat });
    }

    /// Proposes what waits in the outbox, oldest first.
    ///
    /// # Errors
    /// [`SyncError`]; what was not accepted stays in the outbox.
    pub async fn push(&mut self) -> Result<u64> {
        let outbox = self.state.outbox()?;
        let count = outbox.len() as u64;
        if count == 0 {
            return Ok(0);
        }
        (self.observer)(Event::Step("push"));
        if self.has_missed_fence(&outbox)? {
            self.take_outbox_back(true).await?;
            return Ok(count);
        }
        self.send_kept_packs(&outbox).await?;
        if self.are_packs_of_another_pool(&outbox)? {
            self.take_outbox_back(false).await?;
            self.note_pool()?;
            return Ok(count);
        }
        if !self.are_packs_stored(&outbox).await? {
            self.take_outbox_back(false).await?;
            return Ok(count);
        }
        for commit in outbox {
            if self.has_missed_fence(std::slice::from_ref(&commit))? {
                self.take_outbox_back(true).await?;
                return Ok(count);
            }
            let length = self.state.outbox_length(&commit.op_id)?;
            let folded = self.head()?;
            let entry = Entry { seq: folded.seq + 1, previous: folded.hash, commit };
            let log = self.environment.log.clone();
            let committed = self.beside_ahead(log.commit(&entry.commit)).await?;
            // Mostly nobody else was faster, and the entry need not travel back.
            let is_next = committed.as_ref().is_ok_and(|head| *head == entry.head());
            if !is_next {
                self.settle_ahead(false).await?;
            }
            let head = match committed {
                Ok(head) => head,
                Err(error) if error.is_refusal(RefusalKind::PackMissing) => {
                    self.take_outbox_back(false).await?;
                    return Ok(count);
                }
                // Everything that is in the outbox is in the folder, too, and will be proposed anew.
                Err(error) if error.is_refusal(RefusalKind::HistoryLost) => {
                    self.heal_history().await?;
                    return Ok(count);
                }
                Err(error) => return Err(error.into()),
            };
            self.report.sent_bytes += length;
            if is_next {
                self.fold_entry(&entry)?;
                // One that an earlier run has proposed may have stood in the log for long, and others behind it.
                self.looked = self.has_fetched.then_some(head);
            } else {
                self.fetch().await?;
            }
        }
        Ok(count)
    }

    /// Tells whether the store still has the packs that earlier runs have put there for these commits: it may have been
    /// restored from an older copy since.
    async fn are_packs_stored(&self, outbox: &[Commit]) -> Result<bool> {
        for pack in outbox.iter().flat_map(|commit| &commit.packs) {
            if !self.upload.has_stored(&pack.id)
                && !self.environment.store.has_pack(pack.id).await?
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Tells whether any of these commits was made before the last fence: it would be rejected whole.
    fn has_missed_fence(&self, outbox: &[Commit]) -> Result<bool> {
        let fence = self.state.last_fence()?;
        Ok(outbox.iter().any(|commit| commit.seen.seq < fence))
    }

    /// Takes back what waits in the outbox and names packs that the store has lost, or only what was made before the last
    /// fence: wherever that turns up later, it counts for nothing. It is all in the folder, too: it is read and proposed
    /// anew.
    pub(super) async fn take_outbox_back(&mut self, only_fenced: bool) -> Result<()> {
        self.settle_ahead(false).await?;
        // What stands in the log already, and only its answer was lost, is settled by that.
        self.fetch().await?;
        let mut outbox = self.state.outbox()?;
        if only_fenced {
            let fence = self.state.last_fence()?;
            outbox.retain(|commit| commit.seen.seq < fence);
        }
        let proposed = self.state.transaction(|state| {
            let mut proposed = Vec::new();
            for commit in &outbox {
                for change in &commit.changes {
                    let row = state.reject_pending(&change.node, &commit.op_id)?;
                    proposed.extend(row.filter(|_| change.action != Action::Delete));
                }
                state.remove_from_outbox(&commit.op_id)?;
                commit.packs.iter().try_for_each(|pack| state.drop_kept_pack(&pack.id))?;
            }
            Ok(proposed)
        })?;
        self.forget_upload();
        for row in proposed {
            self.read_again(row);
        }
        Ok(())
    }
}

/// Remembers where the packs of an entry rest. The chunks of inline packs are learned when they are indexed.
fn note_packs(state: &mut State, entry: &Entry) -> Result<()> {
    for pack in &entry.commit.packs {
        state.add_pack(pack, None)?;
    }
    for bytes in &entry.commit.inline_packs {
        let pack = PackRef { id: pack_id(bytes), length: bytes.len() as u64 };
        state.add_pack(&pack, Some(entry.seq))?;
    }
    Ok(())
}

/// What became of the changes of an own commit.
#[derive(Default)]
struct Settled {
    /// Nodes that need no merging, because the fold did with them what was proposed.
    as_proposed: HashSet<NodeId>,
    /// The rows of changes that were rejected, which say what is in the folder.
    rejected: Vec<SyncedNode>,
    /// The rows of changes that were made before a fence.
    fenced: Vec<SyncedNode>,
}

/// Brings the merge base in line with what became of an own commit.
fn settle(
    state: &mut State,
    entry: &Entry,
    folded: &Folded,
    keys: &WorkspaceKeys,
) -> Result<Settled> {
    let differs: HashSet<NodeId> = folded.notes.iter().map(FoldNote::node).collect();
    let mut settled = Settled::default();
    let mut directories = Directories::default();
    let changes = &entry.commit.changes;
    let last: HashMap<_, _> = changes.iter().map(|change| change.node).zip(0..).collect();
    for (number, (change, outcome)) in changes.iter().zip(&folded.outcomes).enumerate() {
        // Of a node that stepped aside first, only the last change counts.
        if last.get(&change.node) != Some(&number) {
            continue;
        }
        let (node, op_id) = (&change.node, &entry.commit.op_id);
        let is_as_proposed = match (outcome, &change.action) {
            (Outcome::Rejected { .. }, _) => {
                let proposed = state.reject_pending(node, op_id)?;
                // Of a deletion there is nothing in the folder.
                settled.rejected.extend(proposed.filter(|_| change.action != Action::Delete));
                false
            }
            (Outcome::Fenced { .. }, _) => {
                let proposed = state.reject_pending(node, op_id)?;
                settled.fenced.extend(proposed.filter(|_| change.action != Action::Delete));
                false
            }
            (Outcome::Accepted { .. }, Action::Delete) => {
                state.remove_pending(node, op_id)?;
                !differs.contains(node)
            }
            // Where the fold did something else the planner merges: it compares records, not only versions.
            (Outcome::Accepted { version }, Action::Put(_)) => {
                let payload = keys.open(&entry.commit, number).ok().flatten().unwrap_or_default();
                let is_accepted = state.accept_pending(node, op_id, *version)?;
                is_accepted
                    && !differs.contains(node)
                    && directories.are_themselves(state, &payload)?
            }
        };
        if is_as_proposed {
            settled.as_proposed.insert(*node);
            state.remove_unsynced(node)?;
        }
    }
    state.remove_from_outbox(&entry.commit.op_id)?;
    Ok(settled)
}

/// Directories that were looked up. What was proposed into one that is merged into another lies in that other, and the
/// fold makes no note of it.
#[derive(Default)]
struct Directories(HashMap<NodeId, bool>);

impl Directories {
    /// Tells whether the directory of a proposed node is still what it was.
    fn are_themselves(&mut self, state: &State, payload: &[u8]) -> Result<bool> {
        let Ok(NodeRecord { parent, .. }) = decode_message(payload) else { return Ok(false) };
        if parent == NodeId::ROOT {
            return Ok(true);
        }
        if let Some(known) = self.0.get(&parent) {
            return Ok(*known);
        }
        let is_itself = state.node(&parent)?.as_ref().is_some_and(TreeNode::is_alive);
        self.0.insert(parent, is_itself);
        Ok(is_itself)
    }
}
