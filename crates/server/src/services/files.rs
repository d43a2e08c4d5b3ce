//! The files of a plain workspace, as the log says they are, and the changes that people ask for.
//!
//! Pure: a [`View`] is folded from entries by whoever has them, and plans are values. What reads the log, the store and the
//! network is [`crate::files`].

pub mod changes;
pub mod conflicts;
pub mod days;
pub mod deleted;
pub mod inline_packs;
pub mod usage;
pub mod versions;
pub mod view;

pub use changes::{Condition, Plan};
pub use content::noted::NoteCursor;
pub use deleted::DeletedNode;
pub use versions::Version;
pub use view::{FileNode, View, WayOut};
