//! What a service keeps: folders and files with ids, and lists that know of changes later.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

/// The id of the folder in which everything is.
pub(crate) const ROOT: u64 = 0;

/// A folder or a file.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) id: u64,
    pub(crate) parent: u64,
    pub(crate) name: String,
    /// Nothing for a folder.
    pub(crate) content: Option<Bytes>,
    /// After how many lists it was made, and removed.
    born: u64,
    died: Option<u64>,
}

impl Node {
    pub(crate) fn size(&self) -> u64 {
        self.content.as_ref().map_or(0, |content| content.len() as u64)
    }
}

/// All nodes of an account.
#[derive(Debug, Default)]
pub(crate) struct Disk {
    nodes: BTreeMap<u64, Node>,
    lists: u64,
    /// What was put into the bin, and all that is in it is there, too.
    pub(crate) bin: BTreeSet<u64>,
    /// How many lists do not know of a change.
    pub(crate) lag: u64,
    /// What was made, replaced and removed so far.
    changed: Vec<u64>,
}

impl Disk {
    pub(crate) fn node(&self, id: u64) -> Option<&Node> {
        self.nodes.get(&id).filter(|node| node.died.is_none())
    }

    pub(crate) fn child(&self, parent: u64, name: &str) -> Option<&Node> {
        let mut alive = self.nodes.values().filter(|node| node.died.is_none());
        alive.find(|node| node.parent == parent && node.name == name)
    }

    /// Finds what is at `/a/b`.
    pub(crate) fn at(&self, path: &str) -> Option<&Node> {
        let mut found = None;
        let mut parent = ROOT;
        for name in path.split('/').filter(|name| !name.is_empty()) {
            found = Some(self.child(parent, name)?);
            parent = found?.id;
        }
        found
    }

    pub(crate) fn make(&mut self, parent: u64, name: &str, content: Option<Bytes>) -> u64 {
        assert!(parent == ROOT || self.nodes[&parent].content.is_none(), "a file in a file");
        let id = self.nodes.keys().last().map_or(1, |last| last + 1);
        let (name, born) = (name.to_owned(), self.lists);
        self.nodes.insert(id, Node { id, parent, name, content, born, died: None });
        self.changed.push(id);
        id
    }

    /// Makes the folders of a path, and returns the id of the last one.
    pub(crate) fn make_folders(&mut self, path: &str) -> Result<u64, &'static str> {
        let mut parent = ROOT;
        for name in path.split('/').filter(|name| !name.is_empty()) {
            parent = match self.child(parent, name) {
                Some(node) if node.content.is_some() => return Err("a file is in the way"),
                Some(node) => node.id,
                None => self.make(parent, name, None),
            };
        }
        Ok(parent)
    }

    pub(crate) fn replace(&mut self, id: u64, content: Bytes) {
        self.nodes.get_mut(&id).unwrap().content = Some(content);
        self.changed.push(id);
    }

    pub(crate) fn remove(&mut self, id: u64) {
        self.nodes.get_mut(&id).unwrap().died = Some(self.lists);
        self.changed.push(id);
    }

    /// Returns how many changes there were so far.
    pub(crate) fn changes(&self) -> usize {
        self.changed.len()
    }

    /// Tells whether something below a folder has changed since there were so many changes.
    pub(crate) fn has_changed(&self, folder: u64, since: usize) -> bool {
        let is_below = |id: u64| {
            let above = |id: &u64| self.nodes.get(id).map(|node| node.parent);
            std::iter::successors(Some(id), above).any(|id| id == folder)
        };
        self.changed[since..].iter().any(|id| is_below(*id))
    }

    /// Tells whether something is in the bin, or in what is there.
    pub(crate) fn is_in_bin(&self, id: u64) -> bool {
        let above = |id: &u64| self.nodes.get(id).map(|node| node.parent);
        std::iter::successors(Some(id), above).any(|id| self.bin.contains(&id))
    }

    /// Lists a folder as it was a while ago.
    pub(crate) fn list(&mut self, parent: u64) -> Vec<Node> {
        self.lists += 1;
        let (lists, lag) = (self.lists, self.lag);
        let is_listed = |node: &&Node| {
            let is_known = lists > node.born + lag;
            let is_gone = node.died.is_some_and(|died| lists > died + lag);
            node.parent == parent && is_known && !is_gone
        };
        self.nodes.values().filter(is_listed).cloned().collect()
    }
}
