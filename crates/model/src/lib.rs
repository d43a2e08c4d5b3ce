//! The nouns of Syncline: ids, paths, trees, commits, and the two pure rules `decide` and `fold`.
//!
//! It knows what a workspace consists of, how that is encoded, which changes are accepted and what tree a log
//! folds into. It does not know where anything is stored, how bytes become chunks, who orders commits, or what
//! time it is: there is no I/O, no clock and no randomness here, and it builds for WebAssembly.
//!
//! Reading order: [`commit`] (what a device proposes), [`decide`] (what is accepted), [`fold`] (what tree
//! results), [`entry`] (the log), [`fence`] and [`version_policy`] (what a cleanup removes), [`mounts`] (folders that are workspaces of their own), then [`node`], [`content`], [`path`], [`tree`], [`pool`], [`turn`], [`checkpoint`], [`wire`], [`environment`], [`calendar`], and the
//! groundwork [`codec`] and [`ids`].

pub mod calendar;
pub mod checkpoint;
pub mod codec;
pub mod commit;
pub mod content;
pub mod decide;
pub mod entry;
pub mod environment;
pub mod fence;
pub mod fold;
pub mod hex;
pub mod ids;
pub mod mounts;
pub mod node;
pub mod path;
pub mod pool;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod tree;
pub mod turn;
pub mod version_policy;
pub mod wire;

pub use commit::{Action, Change, Commit, CommitSeal, Head, PackRef};
pub use content::{ChunkRef, Content};
pub use decide::{Outcome, Versions};
pub use entry::{Entry, Genesis, Mode, SealedGenesis};
pub use environment::{Clock, Random};
pub use fence::Fence;
pub use fold::{FoldNote, Folded, Opener, Payload, PlainOpener};
pub use ids::{ChunkId, DeviceId, EntryHash, NodeId, OpId, PackId, PageId, StoreId, WorkspaceId};
pub use mounts::{Mount, Mounts};
pub use node::{ConflictOrigin, NodeKind, NodeRecord, Timestamp};
pub use path::{InvalidPath, Name, RelativePath};
pub use pool::{HintSeal, PoolConfig, PoolHint, Redundancy, StoreRecord, StoreState};
pub use tree::{NodeState, Tree, TreeNode, TreeStore};
pub use turn::Turn;
pub use version_policy::VersionPolicy;
