//! Finds what differs between the folder and the merge base, by looking at names and stats only.
//!
//! *Participants*: the engine; the watcher only says where to look first. *Goals*: memory in proportion to the largest
//! directory and to what has changed; a move is found as a move. *Non-goals*: reading contents.
//! *Invariants*: a node is reported absent only if its directory was listed whole and nothing stands in its place; a
//! directory was listed only if it is still where it was listed; no place holds two nodes. Users rename while this looks.
//!
//! Identity: what stands under the same name and is of the same kind is the same node, unless its inode is that of
//! another node that is not where it was. A file counts as moved only if size and modification time are the old ones,
//! since inodes are reused; but one that a run has parked, and a user has made exchange names with another one, may have
//! changed since.
//!
//! A folder that is a workspace of its own is seen, and what lies in it is not: it belongs to another merge base.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use model::environment::random_bytes;
use model::{InvalidPath, Mounts, Name, NodeId, Random, RelativePath, TreeNode, TreeStore};

use crate::error::Result;
use crate::file_system::{DirectoryEntry, FileError, FileKind, FileSystem, Stat};
use crate::ignore_rules::{IGNORE_FILE, IgnoreRules, RULES_LENGTH_MAX};
use crate::overlay::Overlay;
use crate::plan::{Place, parked_node};
use crate::state::State;
use crate::state::synced::{ScanRow, SyncedNode, kind_of};

/// Something in the folder that differs from the merge base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalNode {
    /// The directory it lies in.
    pub parent: NodeId,
    /// Its name there.
    pub name: Name,
    /// Its path, for reading it.
    pub path: RelativePath,
    /// What the file system says.
    pub stat: Stat,
    /// Whether the matter may differ from the merge base, so that it must be read.
    pub is_touched: bool,
}

/// Why something in the folder is not synced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProblemKind {
    /// The name or path may not be.
    Name(InvalidPath),
    /// A pipe, socket or device.
    NotAFile,
    /// It cannot be read.
    Unreadable(String),
    /// Its bytes changed although nothing has touched it, as after a power cut.
    Suspect,
    /// Its place is taken by something that is not synced.
    Blocked,
    /// It changes while it is read.
    Changing,
}

/// Something in the folder that is not synced now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where; for a name that may not be, the directory.
    pub path: RelativePath,
    /// The name, as the file system has it, where it is no part of the path.
    pub name: Option<Vec<u8>>,
    /// Why.
    pub kind: ProblemKind,
}

/// What a scan found.
#[derive(Debug, Default)]
pub struct LocalChanges {
    /// What is new, moved or touched.
    pub present: BTreeMap<NodeId, LocalNode>,
    /// What is in the merge base and not in the folder.
    pub absent: BTreeSet<NodeId>,
    /// Nodes whose bytes are not to be trusted.
    pub suspects: BTreeMap<NodeId, LocalNode>,
    /// What is not synced.
    pub problems: Vec<Problem>,
    /// How many entries were looked at.
    pub scanned: u64,
    /// The directories that were looked at, if not all were.
    pub directories: BTreeSet<NodeId>,
}

/// Where a scan looks.
#[derive(Debug, Clone)]
pub enum Scope {
    /// Everywhere.
    Everything,
    /// In these directories, and in whatever new ones they contain.
    Directories(BTreeSet<RelativePath>),
}

/// Scans the folder. `rules` are those of the root and those that earlier scans have found in other directories; they are
/// brought up to date wherever the scan comes. `known` is what earlier scans have found that is not in the merge base yet.
///
/// # Errors
/// [`crate::SyncError`]; a directory that cannot be listed is a [`Problem`], and nothing in it is reported absent.
pub fn scan(
    file_system: &dyn FileSystem,
    state: &State,
    rules: &mut IgnoreRules,
    random: &dyn Random,
    scope: &Scope,
    known: &Overlay,
) -> Result<LocalChanges> {
    let mut scanner = Scanner {
        known,
        mounts: state.mounts()?,
        parked: BTreeSet::new(),
        file_system,
        state,
        rules,
        ids: NodeIds::new(random),
        is_deep: matches!(scope, Scope::Everything),
        is_log_unknown: state.head()?.is_none_or(|head| head.seq == 0),
        found: LocalChanges::default(),
        missing: HashMap::new(),
        by_inode: HashMap::new(),
        arrivals: Vec::new(),
        settled: HashMap::new(),
        queue: Vec::new(),
    };
    match scope {
        Scope::Everything => scanner.queue.push((RelativePath::ROOT, NodeId::ROOT, None)),
        Scope::Directories(paths) => scanner.enqueue_known(paths)?,
    }
    scanner.run()?;
    Ok(scanner.found)
}

/// Reads the rules that stand in a directory; nothing where there is no file with any.
///
/// # Errors
/// [`FileError`], where there is one that cannot be read.
pub fn read_rules(
    file_system: &dyn FileSystem,
    directory: &RelativePath,
) -> Result<Option<Vec<u8>>, FileError> {
    use std::io::Read;
    let name = Name::new(IGNORE_FILE.as_bytes()).expect("the name of the rules is one");
    let Ok(path) = directory.join(&name) else { return Ok(None) };
    let file = match file_system.open(&path) {
        Ok(file) => file,
        Err(FileError::NotFound(_) | FileError::Changed(_)) => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut text = Vec::new();
    // One byte more tells that it is too long.
    let read = file.take(RULES_LENGTH_MAX as u64 + 1).read_to_end(&mut text);
    read.map_err(|error| FileError::Other { path, reason: error.to_string() })?;
    Ok(Some(text))
}

/// Makes ids of new nodes: random together, and rising, so that a database takes many of them quickly.
struct NodeIds {
    prefix: [u8; 8],
    count: u64,
}

impl NodeIds {
    fn new(random: &dyn Random) -> Self {
        Self { prefix: random_bytes(random), count: 0 }
    }

    fn next(&mut self) -> NodeId {
        self.count += 1;
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.prefix);
        bytes[8..].copy_from_slice(&self.count.to_be_bytes());
        NodeId::from_bytes(bytes)
    }
}

/// A row whose node is not, or perhaps not, where it was.
struct Missing {
    kind: FileKind,
    stat: Option<Stat>,
}

/// Something that stands where nothing, or another node, stood.
struct Arrival {
    parent: NodeId,
    name: Name,
    path: RelativePath,
    stat: Stat,
    /// The node of the same kind that had the name, which it is unless it turns out to be another.
    namesake: Option<NodeId>,
}

struct Scanner<'a> {
    file_system: &'a dyn FileSystem,
    state: &'a State,
    rules: &'a mut IgnoreRules,
    ids: NodeIds,
    is_deep: bool,
    is_log_unknown: bool,
    known: &'a Overlay,
    /// Folders that are workspaces of their own.
    mounts: Mounts,
    /// Nodes that a run has parked in the root, by the names of the files there.
    parked: BTreeSet<NodeId>,
    found: LocalChanges,
    missing: HashMap<NodeId, Missing>,
    by_inode: HashMap<(u64, FileKind), NodeId>,
    arrivals: Vec<Arrival>,
    /// What arrivals turned out to be, by their places: a directory that was moved meanwhile is listed twice.
    settled: HashMap<Place, NodeId>,
    /// Directories to be listed, with their inodes.
    queue: Vec<(RelativePath, NodeId, Option<u64>)>,
}

impl Scanner<'_> {
    /// Queues the directories that the merge base knows, and for the others their nearest known ancestor.
    fn enqueue_known(&mut self, paths: &BTreeSet<RelativePath>) -> Result<()> {
        let mut known = BTreeMap::new();
        for path in paths {
            let (mut at, mut node, mut inode) = (RelativePath::ROOT, NodeId::ROOT, None);
            for name in path.names() {
                // Where several nodes claim the name, the scan of the directory above tells which one has it.
                let rows = self.state.synced_at(&node, &name)?;
                let below = at.join(&name)?;
                match rows.as_slice() {
                    [child] if self.is_directory_of(child, &below)? => {
                        node = child.node;
                        inode = child.stat.map(|stat| stat.inode);
                    }
                    _ => break,
                }
                at = below;
            }
            known.insert(at, (node, inode));
        }
        self.queue.extend(known.into_iter().map(|(path, (node, inode))| (path, node, inode)));
        Ok(())
    }

    /// Tells whether a directory stands where its row says, and not another one that has got its name.
    fn is_directory_of(&self, row: &SyncedNode, path: &RelativePath) -> Result<bool> {
        if !row.record.kind.is_directory() {
            return Ok(false);
        }
        let found = self.file_system.stat(path)?;
        Ok(found.zip(row.stat).is_some_and(|(found, old)| found.is_same_file(&old)))
    }

    fn run(&mut self) -> Result<()> {
        loop {
            while let Some((path, node, inode)) = self.queue.pop() {
                self.directory(&path, node, inode)?;
            }
            if self.match_directories()? {
                continue;
            }
            if self.expand_missing_directories()? {
                continue;
            }
            if !self.admit_directories()? {
                break;
            }
        }
        self.match_files()?;
        for node in self.missing.keys() {
            if !self.is_elsewhere(node)? {
                self.found.absent.insert(*node);
            }
        }
        Ok(())
    }

    /// Tells whether a missing node, or a directory around it, was found by an earlier scan where this one did not look:
    /// then it has moved there and is not absent.
    fn is_elsewhere(&self, node: &NodeId) -> Result<bool> {
        if self.is_deep {
            return Ok(false);
        }
        let mut at = *node;
        // Directories that earlier scans found in each other at different times may seem to form a circle.
        for _ in 0..self.missing.len() {
            if !self.missing.contains_key(&at) {
                break;
            }
            if let Some(known) = self.known.get(&at) {
                at = known.local.place.parent;
                // Found in a directory that is missing itself, it is where that one is.
                if !self.missing.contains_key(&at) {
                    return Ok(!self.found.directories.contains(&at));
                }
            } else if let Some(row) = self.state.synced(&at)? {
                at = row.record.parent;
            } else {
                break;
            }
        }
        Ok(false)
    }

    /// Compares one directory with its rows.
    fn directory(&mut self, path: &RelativePath, node: NodeId, inode: Option<u64>) -> Result<()> {
        if self.mounts.contains(&node) {
            return Ok(());
        }
        let entries = match self.file_system.list(path) {
            Ok(entries) => entries,
            // It went away meanwhile; the next scan of its parent says how.
            Err(FileError::NotFound(_)) if !path.is_root() => {
                self.gone(path);
                return Ok(());
            }
            Err(error) if path.is_root() => return Err(error.into()),
            Err(error) => {
                self.problem(path, None, ProblemKind::Unreadable(error.to_string()));
                return Ok(());
            }
        };
        // Another one may have got its name, and nothing in that one is its own.
        if !self.is_still_there(path, inode)? {
            self.gone(path);
            return Ok(());
        }
        if let Err(error) = self.learn_rules(path, &entries) {
            // Without its rules nobody knows what of it is to be synced.
            self.problem(path, None, ProblemKind::Unreadable(error.to_string()));
            return Ok(());
        }
        if !self.is_deep && !self.found.directories.insert(node) {
            // It was moved since it was listed, and what was new in it is found again.
            self.arrivals.retain(|arrival| arrival.parent != node);
        }
        let mut entries = self.syncable(path, entries);
        let parked = entries
            .iter()
            .filter_map(|(name, ..)| parked_node(&Place { parent: node, name: name.clone() }));
        self.parked.extend(parked);
        entries.sort_unstable_by(|(one, ..), (other, ..)| one.cmp(other));
        let mut rows = self.state.scan_rows(&node)?.into_iter().peekable();
        for (name, at, stat) in entries {
            while let Some(row) = rows.next_if(|row| row.name < name) {
                self.miss_in(path, row)?;
            }
            let mut row = rows.next_if(|row| row.name == name);
            while let Some(other) = rows.next_if(|row| row.name == name) {
                // Several nodes claim the name: it belongs to the one whose file it is, as far as rows tell.
                let claim = |row: &ScanRow| self.claim(row, &stat);
                let is_others = row.as_ref().is_none_or(|row| claim(row) < claim(&other));
                let loser = if is_others { row.replace(other) } else { Some(other) };
                loser.map_or(Ok(()), |loser| self.miss_in(path, loser))?;
            }
            self.entry(node, name, at, stat, row);
        }
        rows.try_for_each(|row| self.miss_in(path, row))
    }

    /// Notes that a directory was moved or removed meanwhile: what is in it is still to be looked at.
    fn gone(&mut self, path: &RelativePath) {
        self.problem(path, None, ProblemKind::Changing);
    }

    /// Tells whether a path leads to the directory with this inode.
    fn is_still_there(&self, path: &RelativePath, inode: Option<u64>) -> Result<bool> {
        let Some(inode) = inode else { return Ok(true) };
        let found = self.file_system.stat(path)?;
        Ok(found.is_some_and(|found| (found.kind, found.inode) == (FileKind::Directory, inode)))
    }

    /// Notes that a row has no entry in its directory, unless the entry is ignored now: that is no deletion.
    fn miss_in(&mut self, directory: &RelativePath, row: ScanRow) -> Result<()> {
        let path = directory.join(&row.name)?;
        if !self.rules.is_entry_ignored(&path, row.kind == FileKind::Directory) {
            self.miss(row);
        }
        Ok(())
    }

    /// Reads the rules that stand in a directory; those of the root are known.
    fn learn_rules(
        &mut self,
        path: &RelativePath,
        entries: &[DirectoryEntry],
    ) -> Result<(), FileError> {
        if path.is_root() {
            return Ok(());
        }
        let is_rules = |entry: &DirectoryEntry| {
            entry.name == IGNORE_FILE.as_bytes() && entry.stat.kind == FileKind::File
        };
        let text =
            if entries.iter().any(is_rules) { read_rules(self.file_system, path)? } else { None };
        match text {
            Some(text) => drop(self.rules.add(path, &text)),
            None => self.rules.remove(path),
        }
        Ok(())
    }

    /// Leaves out what is ignored and what cannot be synced.
    fn syncable(
        &mut self,
        directory: &RelativePath,
        entries: Vec<DirectoryEntry>,
    ) -> Vec<(Name, RelativePath, Stat)> {
        let mut kept = Vec::with_capacity(entries.len());
        for entry in entries {
            self.found.scanned += 1;
            let named = Name::new(entry.name.as_slice());
            let placed = named.and_then(|name| directory.join(&name).map(|path| (name, path)));
            let (name, path) = match placed {
                Ok(placed) => placed,
                Err(error) => {
                    self.problem(directory, Some(entry.name), ProblemKind::Name(error));
                    continue;
                }
            };
            if self.rules.is_entry_ignored(&path, entry.stat.kind == FileKind::Directory) {
                continue;
            }
            if entry.stat.kind == FileKind::Other {
                self.problem(&path, None, ProblemKind::NotAFile);
                continue;
            }
            kept.push((name, path, entry.stat));
        }
        kept
    }

    fn entry(
        &mut self,
        parent: NodeId,
        name: Name,
        path: RelativePath,
        stat: Stat,
        row: Option<ScanRow>,
    ) {
        let Some(row) = row else {
            // What was parked is what it was, even if a program has saved it anew there.
            let place = Place { parent, name: name.clone() };
            let namesake = parked_node(&place);
            if namesake.is_some() && self.is_log_unknown {
                // Whose it is the log will tell.
                self.problem(&path, None, ProblemKind::Changing);
                return;
            }
            self.arrive(Arrival { parent, name, path, stat, namesake });
            return;
        };
        if row.kind != stat.kind {
            self.miss(row);
            self.arrive(Arrival { parent, name, path, stat, namesake: None });
            return;
        }
        if !self.is_its(&row, &stat) {
            let namesake = Some(row.node).filter(|node| !self.parked.contains(node));
            self.miss(row);
            self.arrive(Arrival { parent, name, path, stat, namesake });
            return;
        }
        self.missing.remove(&row.node);
        if stat.kind == FileKind::Directory && self.is_deep {
            self.queue.push((path.clone(), row.node, Some(stat.inode)));
        }
        let local = LocalNode { parent, name, path, stat, is_touched: true };
        match row.stat {
            Some(old) if is_untouched(&old, &stat) => {}
            Some(old) if is_suspect(&old, &stat) => {
                self.found.suspects.insert(row.node, local);
            }
            _ => {
                self.found.present.insert(row.node, local);
            }
        }
    }

    /// Tells whether a file or directory is that of a row, as far as the row says which it is. What is parked is not here,
    /// too: its inode was given to another file when a program saved it anew.
    fn is_its(&self, row: &ScanRow, stat: &Stat) -> bool {
        let is_parked = self.parked.contains(&row.node);
        match row.stat {
            Some(old) => old.inode == stat.inode && (!is_parked || is_untouched(&old, stat)),
            None => !is_parked,
        }
    }

    /// Returns how well a row fits what stands at its name.
    fn claim(&self, row: &ScanRow, stat: &Stat) -> u8 {
        let is_here = row.kind == stat.kind && !self.parked.contains(&row.node);
        match row.stat {
            Some(_) if row.kind == stat.kind && self.is_its(row, stat) => 3,
            None if is_here => 2,
            Some(_) if is_here => 1,
            _ => 0,
        }
    }

    /// Notes what stands where nothing, or another node, stood, unless it was settled when its directory was listed before.
    fn arrive(&mut self, arrival: Arrival) {
        let place = Place { parent: arrival.parent, name: arrival.name.clone() };
        let settled = self.settled.get(&place).and_then(|node| {
            let found = self.found.present.get(node)?;
            let is_it = (found.stat.kind, found.stat.inode, &found.parent, &found.name)
                == (arrival.stat.kind, arrival.stat.inode, &place.parent, &place.name);
            is_it.then_some(*node)
        });
        match settled {
            Some(node) => self.settle(node, arrival, true),
            None => self.arrivals.push(arrival),
        }
    }

    fn miss(&mut self, row: ScanRow) {
        // It was moved out of a directory that was moved itself, and was found first.
        if self.found.present.contains_key(&row.node) {
            return;
        }
        if let Some(stat) = row.stat {
            self.by_inode.insert((stat.inode, row.kind), row.node);
        }
        self.missing.insert(row.node, Missing { kind: row.kind, stat: row.stat });
    }

    fn problem(&mut self, path: &RelativePath, name: Option<Vec<u8>>, kind: ProblemKind) {
        self.found.problems.push(Problem { path: path.clone(), name, kind });
    }

    /// Takes the directories out of what has arrived.
    fn take_arrived_directories(&mut self) -> Vec<Arrival> {
        let is_directory = |arrival: &Arrival| arrival.stat.kind == FileKind::Directory;
        let arrivals = std::mem::take(&mut self.arrivals).into_iter();
        let (directories, others) = arrivals.partition(is_directory);
        self.arrivals = others;
        directories
    }

    /// Gives arrived directories the identity of missing ones with their inode, and walks them.
    fn match_directories(&mut self) -> Result<bool> {
        let mut progress = false;
        for arrival in self.take_arrived_directories() {
            let matched = self.by_inode.get(&(arrival.stat.inode, FileKind::Directory)).copied();
            match matched.filter(|node| self.missing.contains_key(node)) {
                // A run that was cut off may have made it, of an inode that a user had just set free.
                Some(node) if self.remote_directory_at(&arrival)?.is_none() => {
                    self.settle(node, arrival, false);
                    progress = true;
                }
                _ => self.arrivals.push(arrival),
            }
        }
        Ok(progress)
    }

    /// Adds what lay in missing directories to what is missing, since it may have been moved out.
    fn expand_missing_directories(&mut self) -> Result<bool> {
        let mut pending: Vec<NodeId> = self.missing_directories();
        let before = self.missing.len();
        while let Some(directory) = pending.pop() {
            if self.mounts.contains(&directory) {
                continue;
            }
            for row in self.state.scan_rows(&directory)? {
                let is_settled = self.found.present.contains_key(&row.node);
                if is_settled || self.missing.contains_key(&row.node) {
                    continue;
                }
                if row.kind == FileKind::Directory {
                    pending.push(row.node);
                }
                self.miss(row);
            }
        }
        Ok(self.missing.len() > before)
    }

    fn missing_directories(&self) -> Vec<NodeId> {
        let directories = self.missing.iter().filter(|(_, row)| row.kind == FileKind::Directory);
        let mut directories: Vec<_> = directories.map(|(node, _)| *node).collect();
        directories.sort_unstable();
        directories
    }

    fn missing_namesake(&self, arrival: &Arrival) -> Result<Option<NodeId>> {
        let Some(node) = arrival.namesake else { return Ok(None) };
        if let Some(missing) = self.missing.get(&node) {
            return Ok(Some(node).filter(|_| missing.kind == arrival.stat.kind));
        }
        // What was parked by a run that nobody remembers has its id in its name, and no other base.
        let place = Place { parent: arrival.parent, name: arrival.name.clone() };
        if parked_node(&place).is_none() || self.found.present.contains_key(&node) {
            return Ok(None);
        }
        let is_it = |remote: TreeNode| kind_of(&remote.record.kind) == arrival.stat.kind;
        let is_forgotten =
            self.state.synced(&node)?.is_none() && self.state.node(&node)?.is_some_and(is_it);
        Ok(Some(node).filter(|_| is_forgotten))
    }

    /// Returns which node had been parked, where this has its inode, and the name under which it was parked now leads to what had the name
    /// of this: a user has exchanged the two, and changed this since.
    fn exchanged_with_parked(&self, arrival: &Arrival) -> Option<NodeId> {
        let other = self.found.present.get(&arrival.namesake?)?;
        let node = parked_node(&Place { parent: other.parent, name: other.name.clone() })?;
        let old = self.missing.get(&node)?.stat?;
        old.is_same_file(&arrival.stat).then_some(node)
    }

    /// Returns which node this was to an earlier scan, so that one file does not become two nodes.
    fn known_at(&self, arrival: &Arrival) -> Option<NodeId> {
        let place = Place { parent: arrival.parent, name: arrival.name.clone() };
        let (node, stat) = self.known.at(&place)?;
        (stat.is_same_file(&arrival.stat) && !self.found.present.contains_key(&node))
            .then_some(node)
    }

    /// Returns the directory that the log has at this place and this device never had: a run that was cut off has made
    /// it, or the user has, and in the log the two would become one anyway.
    fn remote_directory_at(&self, arrival: &Arrival) -> Result<Option<NodeId>> {
        let Some(node) = self.state.child(&arrival.parent, &arrival.name)? else { return Ok(None) };
        let is_directory = self.state.node(&node)?.is_some_and(|node| node.is_directory());
        let is_new_here = !self.found.present.contains_key(&node)
            && !self.missing.contains_key(&node)
            && self.state.synced(&node)?.is_none();
        Ok((is_directory && is_new_here).then_some(node))
    }

    /// Takes arrived directories that are nobody's as their namesakes or as new, and walks them.
    fn admit_directories(&mut self) -> Result<bool> {
        let directories = self.take_arrived_directories();
        let progress = !directories.is_empty();
        for arrival in directories {
            let namesake = self.missing_namesake(&arrival)?;
            let mut known = namesake.or_else(|| self.known_at(&arrival));
            if known.is_none() {
                known = self.remote_directory_at(&arrival)?;
            }
            let node = known.unwrap_or_else(|| self.ids.next());
            self.settle(node, arrival, false);
        }
        Ok(progress)
    }

    fn match_files(&mut self) -> Result<()> {
        let mut strangers = Vec::new();
        for arrival in std::mem::take(&mut self.arrivals) {
            let matched = self.by_inode.get(&(arrival.stat.inode, arrival.stat.kind)).copied();
            let matched = matched.filter(|node| {
                let old = self.missing.get(node).and_then(|missing| missing.stat);
                old.is_some_and(|old| {
                    old.size == arrival.stat.size && old.modified == arrival.stat.modified
                })
            });
            match matched {
                Some(node) => self.settle(node, arrival, true),
                None => strangers.push(arrival),
            }
        }
        for arrival in strangers {
            let namesake = self.missing_namesake(&arrival)?;
            let known = namesake
                .or_else(|| self.exchanged_with_parked(&arrival))
                .or_else(|| self.known_at(&arrival));
            let node = known.unwrap_or_else(|| self.ids.next());
            self.settle(node, arrival, true);
        }
        Ok(())
    }

    fn settle(&mut self, node: NodeId, arrival: Arrival, is_touched: bool) {
        self.missing.remove(&node);
        let Arrival { parent, name, path, stat, .. } = arrival;
        if stat.kind == FileKind::Directory {
            self.queue.push((path.clone(), node, Some(stat.inode)));
        }
        if !self.is_deep {
            self.settled.insert(Place { parent, name: name.clone() }, node);
        }
        self.found.present.insert(node, LocalNode { parent, name, path, stat, is_touched });
    }
}

/// Tells whether a file of the same inode is as it was. A directory's times and size say nothing.
fn is_untouched(old: &Stat, new: &Stat) -> bool {
    if new.kind == FileKind::Directory { old.mode == new.mode } else { old == new }
}

/// Tells whether a file has another size although nothing has touched it: so files look after a power cut that kept
/// the names and times and lost the data.
fn is_suspect(old: &Stat, new: &Stat) -> bool {
    old.modified == new.modified && old.changed == new.changed && old.size != new.size
}

#[cfg(test)]
mod tests;
