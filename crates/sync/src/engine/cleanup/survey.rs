//! Finds out what is needed and what is not.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use content::ContentError;
use model::checkpoint::PackPlace;
use model::fence::{DroppedVersions, FENCE_PACKS_MAX, FENCE_VERSIONS_MAX};
use model::fold::fold;
use model::version_policy::{
    KeptVersion, NodeHistory, SteadyTime, VersionPolicy, versions_to_drop,
};
use model::{
    ChunkId, ChunkRef, Content, Head, NodeId, NodeKind, NodeState, PackId, Tree, TreeNode,
};

use super::anew::{Anew, Makings};
use super::repack::Verified;
use super::{CleanupOptions, Dropped, DroppedBy};
use crate::engine::{Engine, Event};
use crate::error::{Result, SyncError};
use crate::state::packs::KnownPack;

/// How far the clock may be ahead of everything that was ever written.
const CLOCK_LEAD_MAX_S: i64 = 366 * 86_400;

/// How many rows are read at once.
const ROWS: usize = 2048;

/// What is needed and what is not, after one entry of the log.
pub(super) struct Survey {
    /// The entry.
    pub head: Head,
    /// The rule by which versions are kept.
    pub policy: VersionPolicy,
    /// Versions whose contents are kept.
    pub kept_versions: u64,
    /// Versions whose contents are not needed any more.
    pub dropped: Vec<DroppedVersions>,
    /// Packs that are not needed any more, each with its place. What travelled in the log stays there, and nobody looks for it any more.
    pub condemned: BTreeMap<PackId, PackPlace>,
    /// How many of them were written anew.
    pub repacked: u64,
    /// Whether not everything that is needless found room in one fence.
    pub has_more: bool,
    /// Packs that an earlier fence has condemned, and that are stored all the same.
    pub leftovers: Vec<PackId>,
    /// What is worth to be written anew; nothing where that was done.
    pub anew: Anew,
}

/// A chunk that is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Needed {
    /// The chunk.
    pub chunk: ChunkRef,
    /// Whether it is a list of chunks.
    pub is_list: bool,
}

/// The chunks that are needed.
pub(super) type NeededChunks = HashMap<ChunkId, Needed>;

/// What a log says of the versions of its files.
struct Replay {
    tree: Tree,
    /// The versions whose contents are still kept.
    histories: BTreeMap<NodeId, NodeHistory>,
    dropped: Dropped,
    now_s: i64,
}

/// How much of a pack is needed.
#[derive(Debug, Clone, Copy, Default)]
struct Use {
    chunks: u64,
    needed: u64,
    /// How many chunks files have themselves.
    of_files: u64,
    /// Whether what it has of every needed chunk was read back from another pack.
    is_elsewhere: bool,
}

impl Engine {
    /// Looks through the whole log and all packs. Nothing is changed.
    pub(super) async fn survey(
        &mut self,
        options: &CleanupOptions,
        verified: &Verified,
    ) -> Result<Survey> {
        (self.observer)(Event::Step("survey"));
        self.learn_whole_log().await?;
        self.fetcher.index_packs(&mut self.state).await?;
        self.refuse_newer_packs().await?;
        let head = self.head()?;
        let policy = match &options.policy {
            Some(policy) => policy.clone(),
            None => self.version_policy()?.1,
        };
        let replay = self.replay(options)?;
        let (dropped, contents, kept_versions, mut has_more) = choose(&replay, &policy);
        let files = self.needed_chunks(&contents).await?;
        let mut survey = Survey {
            head,
            policy,
            kept_versions,
            dropped,
            condemned: BTreeMap::new(),
            repacked: 0,
            has_more: false,
            leftovers: Vec::new(),
            anew: Anew::default(),
        };
        let is_whole = self.judge_packs(&files, verified, options, &mut survey).await?;
        self.judge_strangers(&replay.dropped, is_whole, &mut survey).await?;
        while survey.condemned.len() > FENCE_PACKS_MAX {
            has_more = true;
            survey.condemned.pop_last();
        }
        survey.has_more = has_more;
        Ok(survey)
    }

    /// Stops where a pack is of a format that this program does not know: what it needs of others, nobody can tell here.
    async fn refuse_newer_packs(&mut self) -> Result<()> {
        for pack in self.state.unindexed_packs()? {
            if let Err(SyncError::Content(error @ ContentError::NewerPack { .. })) =
                self.fetcher.index(&self.state, &pack).await
            {
                return Err(SyncError::NotWhole(format!("pack {}: {error}", pack.id)));
            }
        }
        Ok(())
    }

    /// Folds the whole log again, and compares what comes out with what is known here: with half of a log nobody can tell
    /// what is needed.
    fn replay(&self, options: &CleanupOptions) -> Result<Replay> {
        let clock_s = self.environment.clock.now().seconds;
        let now_s = match options.is_by_log_time {
            true => self.log_time_s()?.unwrap_or(clock_s),
            false => clock_s,
        };
        let mut replay = Replay {
            tree: Tree::default(),
            histories: BTreeMap::new(),
            dropped: Dropped::default(),
            now_s,
        };
        let mut steady = SteadyTime::new(now_s);
        for seq in 1..=self.head()?.seq {
            let Some(entry) = self.state.entry(seq)? else {
                return Err(SyncError::NotWhole(format!("entry {seq} of the log is not known")));
            };
            let (_, clock) = self.keys.commit_header(&entry.commit).unwrap_or_default();
            let time_s = steady.next(clock.seconds);
            let Ok(folded) = fold(&mut replay.tree, &entry, &self.keys);
            replay.dropped.note(&folded, DroppedBy { fence: seq, time: clock });
            for node in &folded.touched {
                replay.note(*node, time_s);
            }
        }
        let lead_s = now_s.saturating_sub(steady.latest_s());
        if steady.latest_s() > i64::MIN && lead_s > CLOCK_LEAD_MAX_S && !options.is_clock_trusted {
            return Err(SyncError::ClockAhead { days: lead_s.unsigned_abs() / 86_400 });
        }
        replay.forget_dropped();
        self.compare(&replay.tree)?;
        Ok(replay)
    }

    /// Checks that the replayed tree is the one that the engine works with.
    fn compare(&self, tree: &Tree) -> Result<()> {
        let mut after = None;
        let mut count = 0;
        loop {
            let page = self.state.remote_page(after.as_ref(), ROWS)?;
            let Some((last, _)) = page.last() else { break };
            after = Some(*last);
            for (node, remote) in &page {
                count += 1;
                if tree.get(node) != Some(remote) {
                    let reason = format!("node {node} is not what the log makes of it");
                    return Err(SyncError::NotWhole(reason));
                }
            }
        }
        match count == tree.nodes().count() {
            true => Ok(()),
            false => Err(SyncError::NotWhole("nodes of the log are not known here".to_owned())),
        }
    }

    /// Collects every chunk of these contents.
    async fn needed_chunks(&mut self, contents: &[Content]) -> Result<NeededChunks> {
        let mut needed = NeededChunks::new();
        for content in contents {
            let parts = self.fetcher.parts(&self.state, content).await;
            let (chunks, lists) = match parts {
                Ok(parts) => parts,
                // What the list names cannot be told from what nobody needs.
                Err(error) if error.is_of_stored_data() => {
                    return Err(SyncError::NotWhole(error.to_string()));
                }
                Err(error) => return Err(error),
            };
            needed.extend(
                chunks.into_iter().map(|chunk| (chunk.id, Needed { chunk, is_list: false })),
            );
            needed
                .extend(lists.into_iter().map(|chunk| (chunk.id, Needed { chunk, is_list: true })));
        }
        Ok(needed)
    }

    /// Tells whether some chunk of what is kept cannot be read. What only another pack than the one that has it whole is made from may be
    /// gone: nothing is lost by that.
    fn lacks_any(&self, needed: &NeededChunks) -> Result<bool> {
        let has_bases = self.state.has_bases()?;
        self.state.reading(|| {
            for chunk in needed.keys() {
                let is_there = match has_bases {
                    true => self.state.can_be_made(chunk)?,
                    false => self.state.chunk(chunk)?.is_some(),
                };
                if !is_there {
                    return Ok(true);
                }
            }
            Ok(false)
        })
    }

    /// Tells which packs that the log names are needless, and what is worth to be written anew so that more are. Returns whether everything
    /// that is needed is in a pack whose index could be read.
    async fn judge_packs(
        &mut self,
        files: &NeededChunks,
        verified: &Verified,
        options: &CleanupOptions,
        survey: &mut Survey,
    ) -> Result<bool> {
        let lacks = self.lacks_any(files)?;
        let makings = self.makings()?;
        // What was read back whole is not made from anything.
        let behind =
            makings.behind(files, |chunk, place| !verified.is_whole_beside(chunk, place.pack));
        let uses = self.uses(files, &behind, &makings, verified)?;
        let unread = self.state.unindexed_packs()?;
        let damaged = self.state.distrusted_packs()?;
        if let Some(pack) = unread.iter().chain(&damaged).next()
            && lacks
            && (self.state.has_bases()? || self.state.log_has_deltas()?)
        {
            // What is needed and nowhere may be in it, made from chunks that seem needless.
            let reason =
                format!("pack {} cannot be read, and may need what seems needless", pack.id);
            return Err(SyncError::NotWhole(reason));
        }
        let unindexed: BTreeSet<u64> = unread.into_iter().map(|pack| pack.number).collect();
        let (mut staying, mut going) = (Vec::new(), HashSet::new());
        for pack in self.pack_list()? {
            let Some(used) = uses.get(&pack.number) else { continue };
            if unindexed.contains(&pack.number) || verified.holds(pack.number) {
                continue;
            }
            if used.needed == 0 || used.is_elsewhere {
                survey.condemned.insert(pack.id, pack.place);
                survey.repacked += u64::from(used.needed > 0 && pack.place.inline_seq.is_none());
                going.insert(pack.number);
            } else {
                staying.push((pack, used.of_files == used.chunks));
            }
        }
        if !self.is_made_without(&going, files)? {
            // It follows from what was read back that this cannot be: so something here is not understood, and all packs stay.
            survey.condemned.clear();
            survey.repacked = 0;
        }
        if options.worth.is_some() {
            // Nobody has asked, and it frees nothing in the stores.
            staying.retain(|(pack, _): &(KnownPack, bool)| pack.place.inline_seq.is_none());
        }
        if verified.is_empty() {
            survey.anew = self.choose_anew(files, &makings, staying, options).await?;
        }
        Ok(unindexed.is_empty() && damaged.is_empty() && !lacks)
    }

    /// Tells whether every chunk of files that can be made can be made without some packs, too.
    fn is_made_without(&self, packs: &HashSet<u64>, files: &NeededChunks) -> Result<bool> {
        if packs.is_empty() || !self.state.has_bases()? {
            return Ok(true);
        }
        let mut bad = HashSet::new();
        self.state.each_chunk(|_, place| {
            if packs.contains(&place.pack) {
                bad.insert(place);
            }
        })?;
        self.state.reading(|| {
            for chunk in files.keys() {
                if !self.state.can_be_made_without(chunk, &bad)? && self.state.can_be_made(chunk)? {
                    return Ok(false);
                }
            }
            Ok(true)
        })
    }

    /// Counts how much of each pack is needed: what files have, and what that is made from.
    fn uses(
        &self,
        files: &NeededChunks,
        behind: &HashMap<ChunkId, ChunkRef>,
        makings: &Makings,
        verified: &Verified,
    ) -> Result<BTreeMap<u64, Use>> {
        let mut uses: BTreeMap<u64, Use> = BTreeMap::new();
        self.state.each_chunk(|chunk, place| {
            let pack =
                uses.entry(place.pack).or_insert(Use { is_elsewhere: true, ..Use::default() });
            pack.chunks += 1;
            let is_of_file = files.contains_key(&chunk);
            pack.of_files += u64::from(is_of_file);
            if is_of_file || behind.contains_key(&chunk) {
                pack.needed += 1;
                pack.is_elsewhere &= verified.is_beside(&chunk, place.pack, makings.at(place));
            }
        })?;
        Ok(uses)
    }

    /// Returns every pack that the log names, or has in its entries.
    pub(super) fn pack_list(&self) -> Result<Vec<KnownPack>> {
        let mut packs = Vec::new();
        let mut after = None;
        loop {
            let page = self.state.pack_page(after.as_ref(), ROWS)?;
            let Some(last) = page.last() else { return Ok(packs) };
            after = Some(last.id);
            packs.extend(page);
        }
    }

    /// Tells which stored packs no entry names: those that an earlier fence has condemned, and those of uploads that were cut
    /// off, or are under way and will be read again.
    async fn judge_strangers(
        &mut self,
        dropped: &Dropped,
        is_whole: bool,
        survey: &mut Survey,
    ) -> Result<()> {
        for (pack, length) in self.environment.store.list_packs().await? {
            if let Some(place) = survey.condemned.get_mut(&pack) {
                // One that is in an entry may be an object, too, of somebody who had the same at the same time.
                place.inline_seq = None;
            }
            if self.state.knows_pack(&pack)? {
                continue;
            }
            if dropped.condemned.contains(&pack) {
                survey.leftovers.push(pack);
            } else if is_whole {
                // Where something is missing, it may be in one of these.
                survey.condemned.insert(pack, PackPlace { length, inline_seq: None });
            }
        }
        Ok(())
    }
}

impl Survey {
    /// Returns those needless packs that are objects of the stores, each with its length.
    pub(super) fn condemned_objects(&self) -> impl Iterator<Item = (PackId, u64)> {
        let objects = self.condemned.iter().filter(|(_, place)| place.inline_seq.is_none());
        objects.map(|(pack, place)| (*pack, place.length))
    }

    /// Returns how many bytes of entries nobody needs any more who begins behind them.
    pub(super) fn length_in_entries(&self) -> u64 {
        let inline = self.condemned.values().filter(|place| place.inline_seq.is_some());
        inline.map(|place| place.length).sum()
    }
}

impl Replay {
    /// Takes in what an entry made of a node.
    fn note(&mut self, node: NodeId, time_s: i64) {
        let Some(TreeNode { version, state, record }) = self.tree.get(&node) else { return };
        let NodeKind::File(content) = &record.kind else { return };
        let history = self.histories.entry(node).or_default();
        match state {
            NodeState::Alive | NodeState::MergedInto(_) => {
                history.deleted_s = None;
                history.versions.retain(|known| known.version != *version);
                let content = content.clone();
                history.versions.push(KeptVersion { version: *version, time_s, content });
            }
            NodeState::Deleted => {
                history.deleted_s.get_or_insert(time_s);
            }
            NodeState::Unreadable | NodeState::Settings(_) => {}
        }
    }

    /// Takes away what earlier cleanups have dropped, and marks what conflicts need.
    fn forget_dropped(&mut self) {
        for (node, history) in &mut self.histories {
            let dropped = &self.dropped.versions;
            history.versions.retain(|known| !dropped.contains_key(&(*node, known.version)));
        }
        for (_, node) in self.tree.nodes().filter(|(_, node)| node.is_alive()) {
            let Some(origin) = node.record.conflict else { continue };
            if let Some(history) = self.histories.get_mut(&origin.node) {
                history.pinned.insert(origin.base);
            }
        }
    }
}

/// Returns which versions are dropped, the contents of those that are kept, how many these are, and whether there was no room
/// for some that could be dropped.
fn choose(
    replay: &Replay,
    policy: &VersionPolicy,
) -> (Vec<DroppedVersions>, Vec<Content>, u64, bool) {
    let (mut dropped, mut contents, mut has_more) = (Vec::new(), Vec::new(), false);
    let (mut room, mut kept) = (FENCE_VERSIONS_MAX, 0);
    let mut seen = HashSet::new();
    let mut keep = |content: &Content| {
        if seen.insert(content.clone()) {
            contents.push(content.clone());
        }
    };
    for (node, history) in &replay.histories {
        let mut versions = versions_to_drop(history, policy, replay.now_s);
        has_more |= versions.len() > room;
        versions.truncate(room);
        room -= versions.len();
        let rest = history.versions.iter().filter(|known| !versions.contains(&known.version));
        for known in rest {
            kept += 1;
            keep(&known.content);
        }
        if !versions.is_empty() {
            dropped.push(DroppedVersions { node: *node, versions });
        }
    }
    // Whatever the histories say: what is there is needed.
    for (_, node) in replay.tree.nodes().filter(|(_, node)| node.is_alive()) {
        if let NodeKind::File(content) = &node.record.kind {
            keep(content);
        }
    }
    (dropped, contents, kept, has_more)
}
