//! What whoever keeps a copy of a folder asks a sealed workspace for: all that is in it, whether a file is a version of it, and changes of
//! what was seen there and of nothing else.

use content::changing;
use content::comparing::FileComparison;
use content::listing::{Placed, list_all};
use model::{ConflictOrigin, NodeId, NodeKind};
use wasm_bindgen::prelude::wasm_bindgen;

use crate::failure::Failure;
use crate::sealed_workspace::{SealedNode, SealedWorkspace};
use crate::sealed_writing::node_of;

/// A file, folder or link, and where it is.
#[wasm_bindgen(getter_with_clone)]
#[derive(Debug, Clone)]
pub struct SealedPlaced {
    /// What it is.
    pub node: SealedNode,
    /// The folder that it is in.
    pub folder: String,
    /// Whether its name is a text, as names of files here are.
    #[wasm_bindgen(js_name = "isText")]
    pub is_text: bool,
    /// Whether it is a workspace of its own: what lies in it is not told.
    #[wasm_bindgen(js_name = "isMounted")]
    pub is_mounted: bool,
}

impl SealedPlaced {
    fn new(Placed { id, node, is_mounted }: &Placed<'_>) -> Self {
        let (node, is_mounted) = (*node, *is_mounted);
        let is_text = std::str::from_utf8(node.record.name.as_bytes()).is_ok();
        let folder = node.record.parent.to_string();
        Self { node: SealedNode::new(id, node), folder, is_text, is_mounted }
    }
}

/// A file that is compared with a version.
#[wasm_bindgen]
pub struct SealedComparison(FileComparison);

#[wasm_bindgen]
impl SealedComparison {
    /// Takes the next piece of the file.
    ///
    /// # Errors
    /// `too_many_chunks`.
    pub fn push(&mut self, piece: &[u8]) -> Result<(), Failure> {
        Ok(self.0.push(piece)?)
    }

    /// Tells whether the file is that version, once all pieces have come.
    ///
    /// # Errors
    /// `too_many_chunks`.
    pub fn finish(self) -> Result<bool, Failure> {
        Ok(self.0.finish()?)
    }
}

#[wasm_bindgen]
impl SealedWorkspace {
    /// Returns all that is in a folder and in those below it, each after its folder.
    ///
    /// # Errors
    /// `no_such` where no such folder is there, or it is a workspace of its own or lies in one.
    #[wasm_bindgen(js_name = "listAll")]
    pub fn list_all(&self, folder: &str) -> Result<Vec<SealedPlaced>, Failure> {
        let found = list_all(self.replay.tree(), self.folder(folder)?);
        let found = found.ok_or_else(|| Failure::of("no_such", "there is no such folder"))?;
        Ok(found.iter().map(SealedPlaced::new).collect())
    }

    /// Begins to compare a file with a version of one that is there: by how it is cut and named, and nothing is fetched.
    ///
    /// # Errors
    /// `no_such`; `changed` where it has another version.
    pub fn compare(&self, file: &str, version: f64) -> Result<SealedComparison, Failure> {
        let node = self.replay.tree().get(&node_of(file)?).filter(|node| node.is_alive());
        let node = node.ok_or_else(|| Failure::of("no_such", "there is no such file"))?;
        match &node.record.kind {
            NodeKind::File(content) if node.version == version as u64 => {
                Ok(SealedComparison(FileComparison::new(&self.replay, content)?))
            }
            _ => Err(Failure::of("changed", "the file is not as somebody has seen it")),
        }
    }

    /// Begins to delete what somebody has seen in this version, if nothing is in it.
    ///
    /// # Errors
    /// `no_such`, `changed`, `mounted`.
    #[wasm_bindgen(js_name = "removeOne")]
    pub fn remove_one(&mut self, node: &str, version: f64) -> Result<u32, Failure> {
        let tree = self.replay.tree();
        let changes = changing::delete_one(tree, node_of(node)?, version as u64)?;
        self.begin_changes(changes, None)
    }

    /// Begins to mark what somebody has seen in this version as a copy that was kept beside another file, made from version `base` of that.
    ///
    /// # Errors
    /// `no_such`, `changed`, `mounted`.
    pub fn mark(
        &mut self,
        copy: &str,
        version: f64,
        original: &str,
        base: f64,
    ) -> Result<u32, Failure> {
        let (copy, original): (NodeId, NodeId) = (node_of(copy)?, node_of(original)?);
        let origin = ConflictOrigin { node: original, base: base as u64 };
        let changes = changing::mark(self.replay.tree(), copy, version as u64, origin)?;
        self.begin_changes(changes, None)
    }
}

#[cfg(test)]
mod tests;
