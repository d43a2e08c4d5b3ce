//! Content: the bytes of files to packs and back.
//!
//! It knows how bytes are cut into chunks, how chunks are named, how records of chunks are compressed, how packs
//! are laid out, and how a file's chunk list becomes a [`model::Content`]. It does not know files, paths, stores,
//! networks or clocks: bytes come in as slices or as a [`std::io::Read`], and go out as values. Everything that
//! it decodes is taken for hostile. It builds for WebAssembly.
//!
//! In reading order:
//! - [`chunker`] cuts bytes at content-defined places;
//! - [`naming`] gives a chunk its id, and derives a workspace's content keys;
//! - [`transform`] compresses a record, and gives it back within bounds;
//! - [`pack`] writes and reads packs, the unit of storage and transfer;
//! - [`manifest`] builds and expands the chunk list of a file version;
//! - [`packing`] cuts files and packs what is new of them, as every writer does;
//! - [`places`] knows in which packs chunks rest;
//! - [`delta`] sends a new version of a file as what has changed in it;
//! - [`keyring`] has the keys of sealed workspaces, and [`sealed`] what is done with them;
//! - [`replay`] folds the log of a workspace for whoever keeps nothing, [`reading`] puts its files together, [`writing`] packs new ones,
//!   [`changing`] says what is to change, [`versions`] what there was, [`activity`] what happened, [`trash`] what was deleted and how it
//!   comes back, and [`conflicts`] what two sides have changed at once and what becomes of it, noted in [`noted`];
//! - [`listing`] tells what is in a folder, and [`comparing`] whether a file is one of its versions, for whoever keeps a copy of the folder;
//! - [`archive`] is a folder as one ZIP file, while it is read;
//! - [`searching`] finds files and folders by their names;
//! - [`error`] names everything that can go wrong.
//!
//! The formats in words: `docs/design/pack-format.md`, `docs/design/delta.md` and `docs/design/keys.md`.

pub mod activity;
pub mod archive;
pub mod changing;
pub mod chunker;
mod cipher;
pub mod comparing;
pub mod conflicts;
pub mod delta;
#[cfg(any(test, feature = "testing"))]
pub mod documents;
pub mod error;
mod hpke;
pub mod inflated;
pub mod jpeg;
pub mod keyring;
pub mod listing;
pub mod manifest;
pub mod naming;
pub mod noted;
pub mod pack;
pub mod packing;
mod padding;
pub mod pairing;
pub mod places;
pub mod reading;
pub mod replay;
pub mod sealed;
pub mod searching;
pub mod signing;
pub mod transform;
pub mod trash;
pub mod versions;
pub mod writing;

#[cfg(test)]
mod samples;

pub use chunker::{
    ChunkBuffer, ChunkSizes, Chunker, ChunkerKind, Chunks, MinimumChunker, average_for,
    chunk_reader,
};
pub use error::ContentError;
pub use keyring::{
    Identity, KeyObject, LockedIdentity, Passphrase, PublicIdentity, RecoveryKey, Secret, Unlocked,
};
pub use manifest::{ContentStep, ContentWalk, ManifestBuilder, expand, expand_each};
pub use naming::{ChunkNamer, ContentKey, WorkspaceContentKeys};
pub use pack::{
    FinishedPack, PackIndex, PackWriter, Record, TailOutcome, open_record, verify_whole,
};
pub use packing::{FilePacker, PackSettings, PackSink};
pub use places::ChunkPlaces;
pub use replay::Replay;
pub use sealed::{
    DeviceKeys, Envelope, Member, MemberList, MemberRole, NewWorkspace, PackGuard, WorkspaceKeys,
    check_hint,
};
pub use transform::{Transform, TransformDecoder, TransformEncoder, looks_incompressible};
