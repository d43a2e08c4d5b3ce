//! One ordered history per workspace: the trait [`CommitLog`] and its two coordinators.
//!
//! It knows how commits get their one order: *served*, by a sync service that is reached over a [`served::Connection`],
//! or *serverless*, by an agreement on numbered slots that one or several passive stores keep. It does not know what a commit does to
//! a tree (that is `model`), nor how chunks are stored (that is `storage`). Nothing above the trait can tell which
//! coordinator it has; [`conformance`] is what both must pass.
//!
//! Reading order: [`commit_log`], [`serverless::rounds`], [`serverless::slot_log`], [`served`], [`envelope`].

pub mod commit_log;
#[cfg(feature = "testing")]
pub mod conformance;
pub mod envelope;
pub mod served;
pub mod serverless;

pub use commit_log::{CommitLog, CommitLogError, EntryStream, Rumour, RumourStream};
pub use served::ServedCommitLog;
pub use serverless::group::{ConstantMembership, Group, Membership, NamedStore};
pub use serverless::slot_log::{Means, SlotCommitLog};
