//! What a browser calls of the rooms that run in it: thin bindings, and nothing that is not in those rooms already.
//!
//! It knows [`content`] and how values cross the border to JavaScript. It does not know workers, pages or servers: those are
//! `web/packages/core`, which is the only caller. Bytes of a file come in pieces ([`ChunkStream`]) or are
//! read where they are wanted ([`Source`]), so memory does not grow with a file. Whatever goes wrong comes out as an error with a
//! code ([`failure`]); a panic is thrown with its text, and the caller throws the whole instance away.
//!
//! `cargo xtask web` builds it. Golden vectors in `crates/wasm/golden` hold the program and the browser to the same bytes.

pub mod block_delta;
pub mod chunk_delta;
pub mod chunk_stream;
pub mod failure;
pub mod pairing;
pub mod password;
#[cfg(test)]
mod samples;
pub mod sealed_activity;
pub mod sealed_archive;
pub mod sealed_folder;
pub mod sealed_making;
mod sealed_member;
pub mod sealed_note;
pub mod sealed_search;
pub mod sealed_workspace;
pub mod sealed_writing;
mod seeded;
pub mod source;

// Named only for its feature: it hashes with vectors.
#[cfg(all(target_family = "wasm", target_feature = "simd128"))]
use blake3 as _;
use wasm_bindgen::prelude::wasm_bindgen;

pub use block_delta::BlockDelta;
pub use chunk_delta::ChunkDelta;
pub use chunk_stream::ChunkStream;
pub use pairing::{PairingAsked, PairingGuest, PairingHost};
pub use password::{NewPassword, PasswordProof};
pub use sealed_activity::{SealedActivities, SealedActivity, SealedHappened, SealedPlace};
pub use sealed_folder::{SealedComparison, SealedPlaced};
pub use sealed_making::SealedMaking;
pub use sealed_search::{SealedFound, SealedHit};
pub use sealed_workspace::{SealedNode, SealedPart, SealedShown, SealedWorkspace};
pub use sealed_writing::{
    SealedConflict, SealedConflicts, SealedDeleted, SealedDone, SealedPack, SealedVersion,
};
pub use source::{Sink, Source};

/// Runs when the module is loaded: a panic shall say what happened, not only that something did.
#[wasm_bindgen(start)]
pub fn start() {
    std::panic::set_hook(Box::new(|panic| wasm_bindgen::throw_str(&panic.to_string())));
}
