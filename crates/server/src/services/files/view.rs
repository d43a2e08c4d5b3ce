//! The folded tree of a plain workspace, and where its chunks rest.

use std::collections::{HashSet, VecDeque};
use std::iter::zip;
use std::sync::Arc;

use content::changing;
use content::conflicts::{Conflict, Conflicts};
use content::delta::Plain;
use content::noted::{Deed, NoteCursor, NotedNodes};
use content::searching::Search;
use content::{ChunkPlaces, PackGuard, WorkspaceContentKeys, WorkspaceKeys, verify_whole};
use model::checkpoint::decode_pack_entry;
use model::codec::DecodeError;
use model::fold::{Folded, fold};
use model::path::PATH_DEPTH_MAX;
use model::tree::path_of;
use model::{
    Commit, Content, Entry, Genesis, Head, Mount, Mounts, Name, NodeId, NodeKind, NodeRecord,
    NodeState, PackId, PackRef, PlainOpener, Random, RelativePath, Tree, TreeNode, TreeStore,
    Versions, WorkspaceId,
};

use super::conflicts::ConflictNode;
use super::deleted::DeletedNode;
use super::inline_packs::InlinePacks;
use crate::error::{Result, ServerError};
use crate::metadata::MetadataError;

/// About how many bytes of memory a node takes: 534 were measured with names of 22 bytes and three chunks each.
const NODE_WEIGHT: usize = 600;

/// How many entries a view remembers having been at: those that come while a request is at work.
const HEADS_MAX: usize = 64;

/// What is known of a plain workspace up to one entry of its log.
#[derive(Debug)]
pub struct View {
    keys: WorkspaceKeys,
    plain: Plain,
    /// The entries that were folded last, up to the one up to which it is folded.
    heads: VecDeque<Head>,
    /// How many were folded.
    folds: u64,
    tree: Tree,
    /// Folders that are workspaces of their own: what this one has of them is what they were, and is not shown.
    mounts: Mounts,
    places: ChunkPlaces,
    inline_packs: InlinePacks,
    deletions: NotedNodes,
    conflicts: Conflicts,
}

/// A living node of the tree, or the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileNode {
    /// Its id.
    pub id: NodeId,
    /// Its version; 0 for the root, which has none.
    pub version: u64,
    /// What it is; nothing for the root.
    pub record: Option<NodeRecord>,
    /// The workspace that a folder is, where it is one of its own: what is in it is there.
    pub mounted: Option<WorkspaceId>,
}

/// A path that leads into a folder that is a workspace of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WayOut {
    /// The path of the folder.
    pub folder: RelativePath,
    /// The workspace that it is.
    pub workspace: WorkspaceId,
    /// The rest of the path, in that workspace.
    pub rest: RelativePath,
}

impl FileNode {
    /// The root directory.
    pub const ROOT: Self = Self { id: NodeId::ROOT, version: 0, record: None, mounted: None };

    /// Tells whether it is a directory.
    pub fn is_directory(&self) -> bool {
        self.record.as_ref().is_none_or(|record| record.kind.is_directory())
    }

    /// Returns the content of a file.
    pub fn content(&self) -> Option<&Content> {
        match &self.record.as_ref()?.kind {
            NodeKind::File(content) => Some(content),
            _ => None,
        }
    }

    /// Refuses to show what is in it where nothing is, or another workspace has it. An empty list would say that it was deleted.
    ///
    /// # Errors
    /// [`ServerError::Conflict`].
    pub fn check_is_shown(&self, path: &RelativePath) -> Result<()> {
        let reason = match (self.is_directory(), self.mounted) {
            (true, None) => return Ok(()),
            (true, Some(_)) => "is shared as a workspace of its own, and is shown there",
            (false, _) => "is not a folder",
        };
        Err(ServerError::Conflict { what: format!("'{path}'"), reason })
    }

    /// Returns what names this version to HTTP clients: node and version.
    pub fn etag(&self) -> String {
        format!("\"{}.{}\"", self.id, self.version)
    }
}

fn forged(what: &str) -> ServerError {
    let text = format!("a checkpoint has {what}");
    ServerError::Storage { text, is_full: false, is_damage: true }
}

impl View {
    /// Begins before the first entry.
    ///
    /// # Errors
    /// [`ServerError::Sealed`] for a workspace that the server cannot read.
    pub fn new(genesis: &Genesis, random: Arc<dyn Random>) -> Result<Self> {
        let sealed = || ServerError::Sealed { workspace: genesis.workspace() };
        let plain = Plain::of(genesis).map_err(|_| sealed())?;
        let keys = WorkspaceKeys::open(genesis, None, random).map_err(|_| sealed())?;
        let (tree, places) = (Tree::default(), ChunkPlaces::default());
        let (mounts, heads) = (Mounts::default(), VecDeque::from([genesis.head()]));
        let (deletions, conflicts) = (NotedNodes::default(), Conflicts::default());
        let inline_packs = InlinePacks::default();
        Ok(Self {
            keys,
            plain,
            heads,
            folds: 0,
            tree,
            mounts,
            places,
            inline_packs,
            deletions,
            conflicts,
        })
    }

    /// Returns the entry up to which it is folded.
    pub fn head(&self) -> Head {
        *self.heads.back().expect("there is one at least")
    }

    /// Returns how many entries it has folded.
    pub fn folds(&self) -> u64 {
        self.folds
    }

    /// Tells whether it is folded up to an entry, or was at some time since it had folded so many. That is good for who has asked the log for
    /// its newest entry in between: a log that had gone back to an older state before that is noticed, since the view was beyond that one.
    pub fn was_at(&self, head: Head, since: u64) -> bool {
        let later = self.folds.saturating_sub(since);
        let count = usize::try_from(later).unwrap_or(usize::MAX).saturating_add(1);
        self.heads.iter().rev().take(count).any(|one| *one == head)
    }

    /// Returns the witness that the workspace is plain.
    pub fn plain(&self) -> Plain {
        self.plain
    }

    /// Returns the keys that name and cut chunks.
    pub fn content_keys(&self) -> &WorkspaceContentKeys {
        self.keys.content()
    }

    /// Returns the guard of packs that are written now.
    pub fn pack_guard(&self) -> PackGuard {
        self.keys.packs().behind(self.fence())
    }

    /// Returns the number of the last fence, behind which packs are gone; 0 where there is none.
    pub fn fence(&self) -> u64 {
        let Ok(fence) = self.tree.version(&NodeId::FENCE);
        fence
    }

    /// Returns where chunks rest.
    pub fn places(&self) -> &ChunkPlaces {
        &self.places
    }

    /// Returns the same to be added to.
    pub fn places_mut(&mut self) -> &mut ChunkPlaces {
        &mut self.places
    }

    /// Returns the packs that travelled in the log last.
    pub fn inline_packs(&self) -> &InlinePacks {
        &self.inline_packs
    }

    /// Returns the tree.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Returns about how many bytes of memory this takes.
    pub fn weight(&self) -> usize {
        let notes = self.deletions.weight() + self.conflicts.weight();
        let packs = self.places.weight() + self.inline_packs.weight();
        self.tree.node_count() * NODE_WEIGHT + packs + notes
    }

    /// Takes over a node of a checkpoint, which somebody may have forged.
    ///
    /// # Errors
    /// [`ServerError::Storage`] for a name that another node has.
    pub fn take_node(&mut self, id: NodeId, node: TreeNode) -> Result<()> {
        let Ok(holder) = self.tree.child(&node.record.parent, &node.record.name);
        if node.is_alive() && holder.is_some_and(|holder| holder != id) {
            return Err(forged("two nodes of one name"));
        }
        if node.state == NodeState::Deleted {
            self.deletions.note(id, None);
        }
        self.conflicts.take(id, &node);
        let Ok(()) = self.tree.set(id, node);
        Ok(())
    }

    /// Takes over a pack of a checkpoint.
    ///
    /// # Errors
    /// [`DecodeError`].
    pub fn take_pack(&mut self, key: &[u8], value: &[u8]) -> Result<(), DecodeError> {
        let (id, place) = decode_pack_entry(key, value)?;
        self.places.add_pack(&PackRef { id, length: place.length }, place.inline_seq);
        Ok(())
    }

    /// Ends taking over a checkpoint.
    ///
    /// # Errors
    /// [`ServerError::Storage`] where a node lies in itself: a fold would never find the root.
    pub fn begin_at(&mut self, head: Head) -> Result<()> {
        let mut good = HashSet::from([NodeId::ROOT]);
        for (id, _) in self.tree.nodes() {
            let (mut way, mut current) = (HashSet::new(), *id);
            while !good.contains(&current) {
                if !way.insert(current) {
                    return Err(forged("a node that lies in itself"));
                }
                current = match self.tree.get(&current) {
                    Some(TreeNode { state: NodeState::MergedInto(holder), .. }) => *holder,
                    Some(node) => node.record.parent,
                    None => break,
                };
            }
            good.extend(way);
        }
        self.heads = VecDeque::from([head]);
        let Ok(mounts) = Mounts::of(&self.tree);
        self.mounts = mounts;
        Ok(())
    }

    /// Folds the next entry.
    ///
    /// # Errors
    /// [`MetadataError::Damaged`] where it does not follow.
    pub fn fold(&mut self, entry: &Entry) -> Result<Folded> {
        if !entry.follows(&self.head()) {
            let what = format!("entry {}", entry.seq);
            let detail = format!("it does not follow entry {}", self.head().seq);
            return Err(MetadataError::Damaged { what, detail }.into());
        }
        let Ok(folded) = fold(&mut self.tree, entry, &PlainOpener);
        // What somebody proposed who had not seen the fence may rest in packs that it condemns.
        if !folded.is_fenced {
            self.note_packs(entry);
        }
        self.note_deeds(entry, &folded);
        if let Some(fence) = &folded.fence {
            self.places.forget_packs(&fence.condemned);
        }
        if folded.touched.contains(&NodeId::MOUNTS) {
            let Ok(mounts) = Mounts::of(&self.tree);
            self.mounts = mounts;
        }
        self.heads.push_back(entry.head());
        if self.heads.len() > HEADS_MAX {
            self.heads.pop_front();
        }
        self.folds += 1;
        Ok(folded)
    }

    /// Notes what is deleted and what is in a conflict from this entry on.
    fn note_deeds(&mut self, entry: &Entry, folded: &Folded) {
        let Commit { time, device_name, .. } = &entry.commit;
        let deed = Arc::new(Deed::of(entry, (device_name.clone(), *time)));
        for id in &folded.touched {
            let node = self.tree.get(id);
            let is_deleted = node.is_some_and(|node| node.state == NodeState::Deleted);
            self.deletions.follow(*id, is_deleted, || Arc::clone(&deed));
        }
        self.conflicts.note(&self.tree, folded, || Arc::clone(&deed));
    }

    /// Returns up to `limit` conflicts that nobody has decided, the newest first, behind a place of the list; and whether there are
    /// more. What lies in folders that are workspaces of their own is decided there.
    pub fn conflicts(&self, cursor: Option<NoteCursor>, limit: usize) -> (Vec<ConflictNode>, bool) {
        let is_shown = |id| self.follow(id).is_some();
        let (found, has_more) =
            self.conflicts.list(&self.tree, &self.mounts, cursor, limit, is_shown);
        (found.into_iter().filter_map(|found| self.conflict(found)).collect(), has_more)
    }

    /// Returns how many conflicts nobody has decided.
    pub fn conflict_count(&self) -> usize {
        self.conflicts.count(&self.tree, &self.mounts, |id| self.follow(id).is_some())
    }

    /// Returns what plans to decide one.
    pub fn undecided(&self) -> &Conflicts {
        &self.conflicts
    }

    /// Says where the sides of a conflict are.
    fn conflict(&self, found: Conflict) -> Option<ConflictNode> {
        let Conflict { copy, origin, original, deed } = found;
        let (copy, path) = self.follow(copy)?;
        let original = original.and_then(|original| self.follow(original));
        Some(ConflictNode { copy, path, origin: origin.node, original, base: origin.base, deed })
    }

    /// Returns up to `limit` nodes that are deleted, those that were deleted last first, behind a place of the list; and whether there
    /// are more. What lay in folders that are workspaces of their own by now is left out.
    pub fn deleted(&self, cursor: Option<NoteCursor>, limit: usize) -> (Vec<DeletedNode>, bool) {
        let mut nodes = self.deletions.after(cursor).filter_map(|id| self.deleted_node(id));
        let found: Vec<_> = nodes.by_ref().take(limit).collect();
        (found, nodes.next().is_some())
    }

    /// Returns what one entry has deleted below a path.
    pub fn deleted_by<'a>(
        &'a self,
        deletion: &'a Deed,
        folder: &'a RelativePath,
    ) -> impl Iterator<Item = DeletedNode> + 'a {
        let ids = self.deletions.by(deletion.seq);
        ids.filter_map(|id| self.deleted_node(id)).filter(|node| node.path.starts_with(folder))
    }

    /// Returns a node that is deleted.
    pub fn deleted_node(&self, id: NodeId) -> Option<DeletedNode> {
        let node = self.tree.get(&id).filter(|node| node.state == NodeState::Deleted)?;
        let (path, is_in_deleted) = self.path_before(id).filter(|_| !self.is_frozen(&id))?;
        let (version, record) = (node.version, node.record.clone());
        Some(DeletedNode {
            id,
            version,
            record,
            path,
            is_in_deleted,
            deletion: self.deletions.of(&id),
        })
    }

    /// Returns where a deleted node was, and whether a folder above it is deleted, too.
    fn path_before(&self, id: NodeId) -> Option<(RelativePath, bool)> {
        let (mut names, mut is_in_deleted, mut current) = (Vec::new(), false, id);
        // One that is one with another is passed on to that; a path has so many names at most.
        for _ in 0..2 * PATH_DEPTH_MAX {
            if current == NodeId::ROOT {
                names.reverse();
                return RelativePath::new(&names.join(&b'/'))
                    .ok()
                    .map(|path| (path, is_in_deleted));
            }
            let node = self.tree.get(&current)?;
            if let NodeState::MergedInto(holder) = node.state {
                current = holder;
                continue;
            }
            is_in_deleted |= current != id && !node.is_alive();
            names.push(node.record.name.as_bytes().to_vec());
            current = node.record.parent;
        }
        None
    }

    fn note_packs(&mut self, entry: &Entry) {
        for pack in &entry.commit.packs {
            self.places.add_pack(pack, None);
        }
        for bytes in &entry.commit.inline_packs {
            let id = PackId::from_bytes(*blake3::hash(bytes).as_bytes());
            let length = bytes.len() as u64;
            self.places.add_pack(&PackRef { id, length }, Some(entry.seq));
            if let Ok(index) = verify_whole(id, bytes, &self.keys.packs()) {
                self.places.learn(&id, &index);
                self.inline_packs.keep(id, bytes, index);
            }
        }
    }

    /// Returns a living node.
    pub fn node(&self, id: NodeId) -> Option<FileNode> {
        if id == NodeId::ROOT {
            return Some(FileNode::ROOT);
        }
        let node = self.tree.get(&id).filter(|node| node.is_alive())?;
        Some(FileNode {
            id,
            version: node.version,
            record: Some(node.record.clone()),
            mounted: self.mounts.get(&id).map(|mount| mount.workspace),
        })
    }

    /// Returns the living node at a path.
    pub fn find(&self, path: &RelativePath) -> Option<FileNode> {
        self.find_below(NodeId::ROOT, path)
    }

    /// Returns the living node at a path that begins at a directory.
    pub fn find_below(&self, mut id: NodeId, path: &RelativePath) -> Option<FileNode> {
        for name in path.names() {
            if self.mounts.contains(&id) {
                return None;
            }
            let Ok(child) = self.tree.child(&id, &name);
            id = child?;
        }
        self.node(id)
    }

    /// Returns a node wherever it is by now, or the one that it has become one with, and its path. Nothing where it was deleted,
    /// or something above it was.
    pub fn follow(&self, id: NodeId) -> Option<(FileNode, RelativePath)> {
        let id = changing::follow(&self.tree, &self.mounts, id)?;
        let node = self.node(id)?;
        Some((node, path_of(&self.tree, &id).ok()??))
    }

    /// Returns the living node at a path.
    ///
    /// # Errors
    /// [`ServerError::NotFound`].
    pub fn get(&self, path: &RelativePath) -> Result<FileNode> {
        self.find(path).ok_or_else(|| ServerError::NotFound { what: format!("'{path}'") })
    }

    /// Returns the living directory at a path, whose nodes are shown here.
    ///
    /// # Errors
    /// [`ServerError::NotFound`]; [`ServerError::Conflict`] for what is no directory, or one that is a workspace of its own.
    pub fn directory(&self, path: &RelativePath) -> Result<FileNode> {
        let node = self.get(path)?;
        node.check_is_shown(path)?;
        Ok(node)
    }

    /// Returns where a path leads out of the workspace; nothing where it does not.
    pub fn way_out(&self, path: &RelativePath) -> Option<WayOut> {
        let (mut id, mut folder) = (NodeId::ROOT, RelativePath::ROOT);
        let mut names = path.names();
        while let Some(name) = names.next().filter(|_| !self.mounts.is_empty()) {
            let Ok(child) = self.tree.child(&id, &name);
            (id, folder) = (child?, folder.join(&name).ok()?);
            if let Some(Mount { workspace, .. }) = self.mounts.get(&id) {
                let rest =
                    names.try_fold(RelativePath::ROOT, |rest, name| rest.join(&name).ok())?;
                return Some(WayOut { folder, workspace, rest });
            }
        }
        None
    }

    /// Tells whether a directory is a workspace of its own.
    pub fn is_mounted(&self, directory: &NodeId) -> bool {
        self.mounts.contains(directory)
    }

    /// Tells whether a node lies in a directory that is a workspace of its own.
    pub fn is_frozen(&self, node: &NodeId) -> bool {
        let Ok(is_frozen) = self.mounts.freeze(&self.tree, node);
        is_frozen
    }

    /// Tells whether something that stands of the entry that was folded last lies in a workspace of its own, where it counts for nothing.
    pub fn counts_elsewhere(&self, entry: &Entry, folded: &Folded) -> bool {
        let mut changes = zip(&entry.commit.changes, &folded.outcomes);
        changes.any(|(change, outcome)| outcome.is_accepted() && self.is_frozen(&change.node))
    }

    /// Tells whether what is in a folder belongs to a workspace of its own.
    pub fn lies_elsewhere(&self, folder: &NodeId) -> bool {
        let Ok(is_held) = self.mounts.hold(&self.tree, folder);
        is_held
    }

    /// Looks at up to `count` nodes behind one for what is searched. Returns the last one; nothing where all was seen. What lies in
    /// folders that are workspaces of their own is found there.
    pub fn search(
        &self,
        search: &mut Search,
        after: Option<NodeId>,
        count: usize,
    ) -> Option<NodeId> {
        let is_shown = |id: &NodeId| self.mounts.is_empty() || !self.is_frozen(id);
        search.look(&self.tree, after, count, is_shown)
    }

    /// Returns the first `limit` nodes of a directory after a name, in the order of their names; none of one that is a workspace of
    /// its own.
    pub fn list(&self, directory: NodeId, after: Option<&Name>, limit: usize) -> Vec<FileNode> {
        if self.is_mounted(&directory) {
            return Vec::new();
        }
        let children = self.tree.children_after(&directory, after).take(limit);
        children.filter_map(|(_, id)| self.node(*id)).collect()
    }

    /// Returns what all nodes of a directory are, which are as many as may be; none of one that is a workspace of its own.
    pub fn records_in(&self, directory: NodeId) -> Vec<(NodeId, &NodeRecord)> {
        if self.is_mounted(&directory) {
            return Vec::new();
        }
        let record = |id: &NodeId| Some((*id, &self.tree.get(id)?.record));
        self.tree.children(&directory).filter_map(|(_, id)| record(id)).collect()
    }
}

#[cfg(test)]
mod tests {
    use model::testing::{commit, put};
    use model::{Mode, SealedGenesis};

    use super::*;
    use crate::testing::Counter;

    fn genesis(mode: Mode) -> Genesis {
        let (created, content_key) = (model::Timestamp::default(), [0; 32]);
        Genesis { name: String::new(), mode, created, content_key }
    }

    #[test]
    fn sealed_workspace_has_no_view() {
        let sealed = SealedGenesis { account: [1; 32], salt: [2; 32], header: vec![3] };
        let view = View::new(&genesis(Mode::Sealed(sealed)), Arc::new(Counter::default()));
        assert!(matches!(view, Err(ServerError::Sealed { .. })));
    }

    #[test]
    fn view_that_went_on_is_good_for_who_asked_the_log_before() {
        let created = genesis(Mode::Plain);
        let mut view = View::new(&created, Arc::new(Counter::default())).unwrap();
        let mut heads = vec![view.head()];
        for n in 1..=3 {
            let (seq, previous) = (u64::from(n), view.head().hash);
            let commit = commit(n, vec![folder(n, 0, 0, &n.to_string())]);
            view.fold(&Entry { seq, previous, commit }).unwrap();
            heads.push(view.head());
        }
        assert!(
            view.was_at(heads[3], 3) && view.was_at(heads[3], 9),
            "also where it was begun anew"
        );
        assert!(view.was_at(heads[1], 1) && view.was_at(heads[2], 0));
        // It was beyond that one already when the log was asked: the log has lost something.
        assert!(
            !view.was_at(heads[1], 2) && !view.was_at(heads[2], 3) && !view.was_at(heads[2], 9)
        );
        assert!(!view.was_at(Head { seq: 2, ..heads[1] }, 0), "another log");
    }

    #[test]
    fn forged_checkpoint_is_not_taken_over() {
        let view = || View::new(&genesis(Mode::Plain), Arc::new(Counter::default())).unwrap();
        let folder = |parent: u8, name: &str| {
            let (name, modified) = (Name::new(name).unwrap(), model::Timestamp::default());
            let (parent, kind) = (model::testing::node(parent), NodeKind::Directory);
            let record = NodeRecord { parent, name, mode: 0o755, modified, kind, conflict: None };
            TreeNode { version: 1, state: NodeState::Alive, record }
        };
        let node = model::testing::node;
        let head = Head { seq: 1, hash: model::EntryHash::NONE };
        let mut twice = view();
        twice.take_node(node(1), folder(0, "a")).unwrap();
        assert!(twice.take_node(node(2), folder(0, "a")).is_err());
        let mut circle = view();
        circle.take_node(node(1), folder(2, "a")).unwrap();
        circle.take_node(node(2), folder(1, "b")).unwrap();
        assert!(circle.begin_at(head).is_err());
        let mut merged = view();
        let state = NodeState::MergedInto(node(3));
        merged.take_node(node(3), TreeNode { state, ..folder(0, "c") }).unwrap();
        assert!(merged.begin_at(head).is_err());
        let mut sound = view();
        sound.take_node(node(1), folder(0, "a")).unwrap();
        sound.take_node(node(2), folder(1, "a")).unwrap();
        assert!(sound.begin_at(head).is_ok());
    }

    /// Puts a directory.
    fn folder(n: u8, base: u64, parent: u8, name: &str) -> model::Change {
        let record = NodeRecord {
            parent: model::testing::node(parent),
            name: Name::new(name).unwrap(),
            mode: 0o755,
            modified: model::Timestamp::default(),
            kind: NodeKind::Directory,
            conflict: None,
        };
        model::testing::put_record(n, base, &record)
    }

    #[test]
    fn node_is_followed_to_where_it_is_and_to_what_it_became() {
        let (created, node) = (genesis(Mode::Plain), model::testing::node);
        let mut view = View::new(&created, Arc::new(Counter::default())).unwrap();
        let mut take = |changes| {
            let head = view.head();
            let commit = Commit { seen: head, ..commit(head.seq as u8 + 1, changes) };
            let entry = Entry { seq: head.seq + 1, previous: head.hash, commit };
            view.fold(&entry).unwrap();
            [1, 2].map(|n| view.follow(node(n)).map(|(found, path)| (found.id, path.to_string())))
        };
        let at = |n: u8, path: &str| Some((node(n), path.to_owned()));
        assert_eq!(take(vec![folder(1, 0, 0, "a"), folder(3, 0, 0, "c")]), [at(1, "a"), None]);
        assert_eq!(take(vec![folder(1, 1, 3, "b")]), [at(1, "c/b"), None]);
        // Two folders that are made under one name are one.
        assert_eq!(take(vec![folder(2, 0, 3, "b")]), [at(1, "c/b"), at(1, "c/b")]);
        let delete = |n: u8, base| {
            let (node, action) = (node(n), model::Action::Delete);
            model::Change { node, base, action }
        };
        assert_eq!(take(vec![delete(1, 2)]), [None, None]);
    }

    #[test]
    fn folder_that_is_a_workspace_of_its_own_is_shown_empty() {
        let node = model::testing::node;
        let mut view = View::new(&genesis(Mode::Plain), Arc::new(Counter::default())).unwrap();
        let mut take = |changes| {
            let head = view.head();
            let commit = Commit { seen: head, ..commit(head.seq as u8 + 1, changes) };
            let entry = Entry { seq: head.seq + 1, previous: head.hash, commit };
            view.fold(&entry).unwrap();
            let path = |path: &str| RelativePath::new(path.as_bytes()).unwrap();
            let found = ["a", "a/b", "a/b/c"].map(|at| view.find(&path(at)).is_some());
            (found, view.list(node(1), None, 9).len(), view.follow(node(3)).is_some())
        };
        let files = vec![folder(1, 0, 0, "a"), folder(2, 0, 1, "b"), folder(3, 0, 2, "c")];
        assert_eq!(take(files), ([true; 3], 1, true));
        let mount = Mount { workspace: WorkspaceId::from_bytes([1; 16]), since: 1 };
        let payload = model::codec::encode_message(&Mounts::from_iter([(node(1), mount)]));
        let mount =
            model::Change { node: NodeId::MOUNTS, base: 0, action: model::Action::Put(payload) };
        assert_eq!(take(vec![mount]), ([true, false, false], 0, false));
    }

    #[test]
    fn entry_that_does_not_follow_is_not_folded() {
        let genesis = genesis(Mode::Plain);
        let mut view = View::new(&genesis, Arc::new(Counter::default())).unwrap();
        let commit = commit(1, vec![put(1, 0, "a")]);
        let entry = Entry { seq: 2, previous: genesis.hash(), commit };
        assert!(view.fold(&entry).is_err());
        assert!(view.fold(&Entry { seq: 1, ..entry }).is_ok());
        assert_eq!(view.list(NodeId::ROOT, None, 10).len(), 1);
    }
}
