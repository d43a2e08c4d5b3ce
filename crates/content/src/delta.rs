//! Deltas: sends a new version of a file as what has changed in it.
//!
//! *Participants*: a client that has the new version; whoever has the old one, a server or another device. *Goals*: few
//! bytes, few round trips, bounded memory on both sides whatever the sizes; the same code natively and as WebAssembly.
//! *Non-goals*: carrying messages; knowing names of files; storing. *Invariants*: what an exchange remembers belongs to its
//! [`SessionId`]; nothing that was put together counts before it is verified as a whole; whatever comes from the other side
//! gives an error at worst; sums and bytes of plain files leave only with a [`Plain`] witness.
//!
//! In reading order: [`RangedSource`] (versions are read in ranges), [`RsyncClient`] and [`RsyncServer`] (WebRsync),
//! [`ReverseClient`] and [`ReverseServer`] (WebR2sync), [`ChunkClient`] and [`ChunkAssembler`] (ours, against a [`BaseVersion`]), and
//! [`Reconciler`] for a client that has none.
//!
//! The whole in words: `docs/design/delta.md`.

mod abreast;
mod ask;
mod assemble;
mod assembly;
mod base;
mod chunks;
mod envelope;
mod error;
mod features;
mod message;
mod narrow;
mod plain;
mod reconcile;
mod reverse;
mod rsync;
mod search;
mod sketch;
mod source;
mod sums;
mod tuning;
mod version_sketch;

pub use ask::answer_sums;
pub use assemble::{Assembled, ChunkAssembler, MadeChunk};
pub use assembly::{CopiedPart, Finished, Verified, VersionSink};
pub use base::{BaseVersion, ChunkTable, SKETCHED_SIZE_MAX};
pub use chunks::{ChunkClient, DeltaPart};
pub(crate) use chunks::{Following, follow};
pub use envelope::{Envelope, MessageKind, body_of};
pub use error::DeltaError;
pub(crate) use features::FeatureFinder;
pub use features::{Features, most_alike, most_like};
pub(crate) use message::{ByteStep, ListStep};
pub use message::{MESSAGE_LENGTH_MAX, MESSAGE_STEPS_MAX};
pub use plain::{Plain, SessionId};
pub use reconcile::{Reconciled, Reconciler, answer_symbols};
pub use reverse::{ReverseClient, ReverseServer};
pub use rsync::{RsyncClient, RsyncServer};
pub use source::RangedSource;
pub use sums::{BLOCK_SIZE, BLOCKED_SIZE_MAX};
pub use tuning::{Next, Tuning};
pub(crate) use version_sketch::CheckKey;
pub use version_sketch::{SketchBuilder, VersionSketch};

#[cfg(test)]
mod tests;
