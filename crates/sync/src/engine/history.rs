//! Looks back: old versions, lists of old trees, and bringing either back.

use std::collections::BTreeSet;
use std::io::Write;

use model::codec::decode_message;
use model::environment::random_bytes;
use model::fold::fold;
use model::{
    DeviceId, Entry, NodeId, NodeKind, NodeRecord, NodeState, Opener, RelativePath, Timestamp,
    Tree, TreeNode, TreeStore,
};

use super::cleanup::Dropped;
use super::{DroppedBy, Engine};
use crate::error::{Result, SyncError};
use crate::file_system::{FileError, FileKind};

/// How many bytes of entries are asked for at once.
const ENTRIES_LENGTH_MAX: u64 = 8 * 1024 * 1024;

/// A point in the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// After this entry of the log.
    Seq(u64),
    /// After the last entry that was proposed at or before this time, by the clocks of the devices.
    Time(Timestamp),
}

/// One version of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionInfo {
    /// The entry that brought it.
    pub seq: u64,
    /// When it was proposed, by the clock of the device.
    pub time: Timestamp,
    /// Who proposed it.
    pub device: DeviceId,
    /// How the device called itself.
    pub device_name: String,
    /// What it was; nothing for a deletion.
    pub record: Option<NodeRecord>,
    /// The node.
    pub node: NodeId,
    /// Which cleanup has removed its content, if one has.
    pub dropped: Option<DroppedBy>,
}

/// A line of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Where it is, or was.
    pub path: RelativePath,
    /// What it is, or was.
    pub record: NodeRecord,
    /// Whether it is deleted.
    pub is_deleted: bool,
    /// The node.
    pub node: NodeId,
    /// The version of it that this is.
    pub version: u64,
}

/// What was brought back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Restored {
    /// What was written.
    pub written: Vec<RelativePath>,
    /// Files that were there, and whose contents of that time a cleanup has removed since.
    pub dropped: Vec<RelativePath>,
}

impl Listed {
    fn new(path: RelativePath, node: NodeId, found: &TreeNode) -> Self {
        let (record, version, is_deleted) =
            (found.record.clone(), found.version, !found.is_alive());
        Self { path, record, is_deleted, node, version }
    }
}

impl Engine {
    /// Returns the tree after a point of the history.
    ///
    /// # Errors
    /// [`SyncError`].
    pub async fn tree_at(&mut self, at: At) -> Result<Tree> {
        self.learn_whole_log().await?;
        let head = self.head()?;
        let mut tree = Tree::default();
        let mut waiting = Vec::new();
        for seq in 1..=head.seq {
            let Some(entry) = self.state.entry(seq)? else { continue };
            let is_over = match at {
                At::Seq(last) => seq > last,
                // Clocks differ: everything up to the last entry of that time belongs to it.
                At::Time(time) => self.header(&entry).1 > time,
            };
            waiting.push(entry);
            if !is_over {
                for entry in waiting.drain(..) {
                    let Ok(_) = fold(&mut tree, &entry, &self.keys);
                }
            } else if matches!(at, At::Seq(_)) {
                break;
            }
        }
        Ok(tree)
    }

    /// Returns how the device of an entry calls itself, and its clock; nothing where nobody can tell.
    fn header(&self, entry: &Entry) -> (String, Timestamp) {
        self.keys.commit_header(&entry.commit).unwrap_or_default()
    }

    /// A device that began at a checkpoint reads what was before it, once somebody asks.
    pub(super) async fn learn_whole_log(&mut self) -> Result<()> {
        let head = self.head()?;
        let end = self.state.oldest_entry()?.unwrap_or(head.seq + 1);
        let mut last = 0;
        while last + 1 < end {
            let entries = self.environment.log.entries(last, ENTRIES_LENGTH_MAX).await?;
            if entries.is_empty() {
                break;
            }
            self.in_transaction(|engine| {
                for entry in entries.iter().filter(|entry| entry.seq < end) {
                    let changed = entry.commit.changes.iter().map(|change| change.node);
                    engine.state.add_entry(entry, changed)?;
                }
                Ok(())
            })?;
            last = entries.last().map_or(last, |entry| entry.seq);
        }
        Ok(())
    }

    /// Lists a directory, or the one node that a path leads to.
    ///
    /// # Errors
    /// [`SyncError::NoSuchPath`]; as [`Self::tree_at`].
    pub async fn list(
        &mut self,
        path: &RelativePath,
        at: Option<At>,
        with_deleted: bool,
        recursive: bool,
    ) -> Result<Vec<Listed>> {
        let tree = match at {
            Some(at) => self.tree_at(at).await?,
            None => self.tree_at(At::Seq(u64::MAX)).await?,
        };
        let start =
            find(&tree, path, with_deleted).ok_or_else(|| SyncError::NoSuchPath(path.clone()))?;
        let mut listed = Vec::new();
        if let Some(node) = tree.get(&start).filter(|node| !node.record.kind.is_directory()) {
            listed.push(Listed::new(path.clone(), start, node));
        } else {
            list_into(&tree, &start, path, with_deleted, recursive, &mut listed)?;
        }
        listed.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(listed)
    }

    /// Returns the versions of whatever has or had a path, or wanted it when it was taken, newest first; of everything for
    /// the root.
    ///
    /// # Errors
    /// [`SyncError::NoSuchPath`]; as [`Self::tree_at`].
    pub async fn log(&mut self, path: &RelativePath) -> Result<Vec<VersionInfo>> {
        self.learn_whole_log().await?;
        let head = self.head()?;
        let dropped = self.dropped()?;
        let mut tree = Tree::default();
        let mut versions = Vec::new();
        let mut holders = BTreeSet::new();
        for seq in 1..=head.seq {
            let Some(entry) = self.state.entry(seq)? else { continue };
            let Ok(folded) = fold(&mut tree, &entry, &self.keys);
            if folded.void.is_some() {
                continue;
            }
            let (device_name, time) = self.header(&entry);
            holders.extend(find(&tree, path, false));
            let parent = path
                .split_last()
                .and_then(|(parent, name)| Some((find(&tree, &parent, false)?, name)));
            let changes = entry.commit.changes.iter().zip(&folded.outcomes);
            for (number, (change, outcome)) in changes.enumerate() {
                let model::Outcome::Accepted { version } = outcome else { continue };
                let payload = self.keys.open(&entry.commit, number).ok().flatten();
                let record = payload.and_then(|payload| decode_message(&payload).ok());
                // One that came later to a taken name had the path where it was made.
                let place =
                    record.as_ref().map(|record: &NodeRecord| (record.parent, &record.name));
                if place.is_some() && place == parent.as_ref().map(|(parent, name)| (*parent, name))
                {
                    holders.insert(change.node);
                }
                versions.push(VersionInfo {
                    seq,
                    time,
                    device: entry.commit.device,
                    device_name: device_name.clone(),
                    record,
                    node: change.node,
                    dropped: dropped.versions.get(&(change.node, *version)).copied(),
                });
            }
        }
        if !path.is_root() {
            versions.retain(|version| holders.contains(&version.node));
            if versions.is_empty() {
                return Err(SyncError::NoSuchPath(path.clone()));
            }
        }
        versions.reverse();
        Ok(versions)
    }

    /// Finds what a path meant at a point in the history: what [`Self::log`] lists as its version of that number, else what
    /// had the path then, else what had it last and was somewhere else then.
    async fn meant(
        &mut self,
        tree: &Tree,
        path: &RelativePath,
        at: Option<At>,
    ) -> Result<Option<NodeId>> {
        let holder = find(tree, path, false);
        let seq = match (at, &holder) {
            _ if path.is_root() => return Ok(holder),
            (Some(At::Seq(seq)), Some(node)) if self.state.history(node)?.contains(&seq) => {
                return Ok(holder);
            }
            (Some(At::Seq(seq)), _) => Some(seq),
            (Some(At::Time(_)), None) => None,
            _ => return Ok(holder),
        };
        let listed = match self.log(path).await {
            Ok(listed) => listed,
            Err(SyncError::NoSuchPath(_)) => return Ok(holder),
            Err(error) => return Err(error),
        };
        let is_alive =
            |version: &&VersionInfo| tree.get(&version.node).is_some_and(TreeNode::is_alive);
        let mut exact = listed.iter().filter(|version| Some(version.seq) == seq).peekable();
        if exact.peek().is_some() {
            return Ok(exact.find(is_alive).map(|version| version.node).or(holder));
        }
        Ok(holder.or_else(|| listed.first().filter(is_alive).map(|version| version.node)))
    }

    /// Writes a version of a file to `out`.
    ///
    /// # Errors
    /// [`SyncError::NoSuchPath`] where the path was no file then; [`SyncError::File`] where `out` fails.
    pub async fn read_version(
        &mut self,
        path: &RelativePath,
        at: Option<At>,
        out: &mut (dyn Write + Send),
    ) -> Result<NodeRecord> {
        let tree = self.tree_at(at.unwrap_or(At::Seq(u64::MAX))).await?;
        let node = self.meant(&tree, path, at).await?;
        let node = node.and_then(|id| Some((id, tree.get(&id)?.clone())));
        let (id, node) = node.ok_or_else(|| missing(path, at))?;
        let NodeKind::File(_) = &node.record.kind else {
            return Err(SyncError::NoSuchPath(path.clone()));
        };
        self.write_version(&Listed::new(path.clone(), id, &node), out).await?;
        Ok(node.record)
    }

    /// Writes the content of a version to `out`.
    async fn write_version(&mut self, item: &Listed, out: &mut (dyn Write + Send)) -> Result<()> {
        if let Some(error) = self.dropped_error(&self.dropped()?, item)? {
            return Err(error);
        }
        match self.write_content(&item.record, out).await {
            // It may have gone at this very moment. Whoever only looks does not fold what is new.
            Err(error) if error.is_of_stored_data() => {
                let head = self.head()?.seq;
                let newer = self.environment.log.entries(head, ENTRIES_LENGTH_MAX).await?;
                let dropped = self.dropped_with(&newer)?;
                Err(self.dropped_error(&dropped, item)?.unwrap_or(error))
            }
            written => written,
        }
    }

    /// Returns what to say of a version whose content a cleanup has removed; nothing of others.
    fn dropped_error(&self, dropped: &Dropped, item: &Listed) -> Result<Option<SyncError>> {
        let Some(by) = dropped.versions.get(&(item.node, item.version)).copied() else {
            return Ok(None);
        };
        let seq = self.seq_of(&item.node, item.version)?;
        let (path, DroppedBy { fence, time }) = (item.path.clone(), by);
        Ok(Some(SyncError::VersionDropped { path, seq, fence, time }))
    }

    /// Returns the entry that brought a version, 0 where it is not known here.
    fn seq_of(&self, node: &NodeId, version: u64) -> Result<u64> {
        let mut tree = Tree::default();
        for seq in 1..=self.head()?.seq {
            let Some(entry) = self.state.entry(seq)? else { continue };
            let Ok(_) = fold(&mut tree, &entry, &self.keys);
            if tree.get(node).is_some_and(|found| found.version == version) {
                return Ok(seq);
            }
        }
        Ok(0)
    }

    /// Returns what a node was at one of its versions, if that can be read.
    pub(super) async fn record_of_version(
        &mut self,
        node: &NodeId,
        version: u64,
    ) -> Result<Option<NodeRecord>> {
        self.learn_whole_log().await?;
        let mut tree = Tree::default();
        for seq in 1..=self.head()?.seq {
            let Some(entry) = self.state.entry(seq)? else { continue };
            let Ok(_) = fold(&mut tree, &entry, &self.keys);
            if let Some(found) = tree.get(node).filter(|found| found.version == version) {
                return Ok(found.is_alive().then(|| found.record.clone()));
            }
        }
        Ok(None)
    }

    pub(super) async fn write_content(
        &mut self,
        record: &NodeRecord,
        out: &mut (dyn Write + Send),
    ) -> Result<()> {
        let NodeKind::File(content) = &record.kind else { return Ok(()) };
        self.fetcher.index_packs(&mut self.state).await?;
        for chunk in self.fetcher.expand(&self.state, content).await? {
            let bytes = self.fetcher.chunk(&self.state, &chunk).await?;
            out.write_all(&bytes).map_err(|error| FileError::Other {
                path: RelativePath::ROOT,
                reason: error.to_string(),
            })?;
        }
        Ok(())
    }

    /// Brings a file, link or whole directory of an old version back into the folder. Of a directory, files whose contents of
    /// that time a cleanup has removed are left out, and named.
    ///
    /// # Errors
    /// [`SyncError::NoSuchVersion`]; [`SyncError::VersionDropped`]; [`SyncError::WouldOverwrite`] where something else is there and `overwrite` was not
    /// asked for; nothing was changed then.
    pub async fn restore(
        &mut self,
        path: &RelativePath,
        at: At,
        to: Option<&RelativePath>,
        overwrite: bool,
    ) -> Result<Restored> {
        let tree = self.tree_at(at).await?;
        let start =
            self.meant(&tree, path, Some(at)).await?.ok_or_else(|| missing(path, Some(at)))?;
        let target = to.unwrap_or(path).clone();
        let mut wanted = Vec::new();
        if let Some(node) = tree.get(&start) {
            wanted.push(Listed { is_deleted: false, ..Listed::new(target.clone(), start, node) });
        }
        list_into(&tree, &start, &target, false, true, &mut wanted)?;
        wanted.sort_by(|one, other| one.path.cmp(&other.path));
        let gone = self.dropped()?;
        let is_gone = |item: &Listed| gone.versions.contains_key(&(item.node, item.version));
        let (dropped, wanted): (Vec<_>, Vec<_>) = wanted.into_iter().partition(is_gone);
        if let Some(item) = dropped.iter().find(|item| item.node == start) {
            return Err(self
                .dropped_error(&gone, item)?
                .unwrap_or_else(|| missing(path, Some(at))));
        }
        if !overwrite {
            for item in wanted.iter().filter(|item| !item.record.kind.is_directory()) {
                if self.environment.file_system.stat(&item.path)?.is_some() {
                    return Err(SyncError::WouldOverwrite(item.path.clone()));
                }
            }
        }
        self.make_parents(&target)?;
        let mut written = Vec::new();
        for item in wanted {
            self.restore_one(&item).await?;
            written.push(item.path);
        }
        self.environment.file_system.make_durable()?;
        Ok(Restored { written, dropped: dropped.into_iter().map(|item| item.path).collect() })
    }

    fn make_parents(&self, path: &RelativePath) -> Result<()> {
        let mut parent = RelativePath::ROOT;
        let count = path.depth().saturating_sub(1);
        for name in path.names().take(count) {
            parent = parent.join(&name)?;
            if self.environment.file_system.stat(&parent)?.is_none() {
                self.environment.file_system.make_directory(&parent, 0o755)?;
            }
        }
        Ok(())
    }

    async fn restore_one(&mut self, item: &Listed) -> Result<()> {
        let file_system = self.environment.file_system.clone();
        let there = file_system.stat(&item.path)?;
        let token = u64::from_le_bytes(random_bytes(&*self.environment.random));
        match &item.record.kind {
            NodeKind::Directory if there.is_some_and(|there| there.kind == FileKind::Directory) => {
                return Ok(());
            }
            NodeKind::Directory => {
                file_system.make_directory(&item.path, item.record.mode)?;
                return Ok(());
            }
            NodeKind::Symlink(target) => {
                file_system.stage_link(token, target, item.record.modified)?;
            }
            NodeKind::File(_) => {
                let mut staged = file_system.stage(token)?;
                self.write_version(item, &mut staged).await?;
                staged.finish(item.record.mode, item.record.modified)?;
            }
        }
        file_system.make_durable()?;
        let installed = match there {
            // What is replaced may not be in the history yet: it goes to the trash.
            Some(there) => file_system.replace(token, &item.path, &there, "restored"),
            None => file_system.install(token, &item.path, None),
        };
        if let Err(error) = installed {
            file_system.discard(token)?;
            return Err(error.into());
        }
        Ok(())
    }
}

fn missing(path: &RelativePath, at: Option<At>) -> SyncError {
    match at {
        Some(At::Seq(seq)) => SyncError::NoSuchVersion { path: path.clone(), seq },
        _ => SyncError::NoSuchPath(path.clone()),
    }
}

/// Finds what a path leads to; with `deleted`, also what it led to before a deletion.
fn find(tree: &Tree, path: &RelativePath, deleted: bool) -> Option<NodeId> {
    path.names().try_fold(NodeId::ROOT, |parent, name| {
        let Ok(living) = tree.child(&parent, &name);
        living.or_else(|| {
            let mut gone = tree.nodes().filter(|(_, node)| {
                node.state == NodeState::Deleted
                    && node.record.parent == parent
                    && node.record.name == name
            });
            gone.next().filter(|_| deleted).map(|(id, _)| *id)
        })
    })
}

fn list_into(
    tree: &Tree,
    directory: &NodeId,
    path: &RelativePath,
    with_deleted: bool,
    recursive: bool,
    listed: &mut Vec<Listed>,
) -> Result<()> {
    let mut children: Vec<NodeId> = tree.children(directory).map(|(_, id)| *id).collect();
    if with_deleted {
        let gone = tree.nodes().filter(|(_, node)| {
            node.state == NodeState::Deleted && node.record.parent == *directory
        });
        children.extend(gone.map(|(id, _)| *id));
    }
    for child in children {
        let Some(node) = tree.get(&child) else { continue };
        let at = path.join(&node.record.name)?;
        listed.push(Listed::new(at.clone(), child, node));
        if recursive && node.record.kind.is_directory() {
            list_into(tree, &child, &at, with_deleted, recursive, listed)?;
        }
    }
    Ok(())
}
