//! A node that was deleted, and what is known of that.

use std::sync::Arc;

use content::noted::Deed;
use model::{NodeId, NodeRecord, RelativePath};

/// A node that was deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeletedNode {
    /// Its id.
    pub id: NodeId,
    /// The version that its deletion is.
    pub version: u64,
    /// What it was.
    pub record: NodeRecord,
    /// Where it was, by the names that the folders above have, or had, last.
    pub path: RelativePath,
    /// Whether a folder above it was deleted, too.
    pub is_in_deleted: bool,
    /// Who deleted it; nothing for what was deleted before the checkpoint with which the view began.
    pub deletion: Option<Arc<Deed>>,
}
