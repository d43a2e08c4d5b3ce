//! Names of chunks, and the keys of a workspace that name and cut them.

use std::fmt;

use model::ids::ChunkId;

use crate::chunker::{Chunker, ChunkerKind};
use crate::error::ContentError;

/// Context of the key that names chunks; changing it changes every chunk id.
const CHUNK_ID_CONTEXT: &str = "syncline workspace content v1: chunk ids";

/// Context of the key that places cuts; changing it moves every cut.
const CHUNKER_CONTEXT: &str = "syncline workspace content v1: chunk cuts";

/// A secret of 32 bytes that never shows itself in a log.
#[derive(Clone, PartialEq, Eq)]
pub struct ContentKey([u8; 32]);

impl ContentKey {
    /// Wraps the bytes of a key.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes of the key.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for ContentKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ContentKey(secret)")
    }
}

/// The keys that a workspace's content needs, all derived from one secret.
///
/// Two devices with the same secret cut and name alike, so that they deduplicate; without it nobody can confirm
/// that a workspace holds a known file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceContentKeys {
    chunk_ids: ContentKey,
    chunker: ContentKey,
}

impl WorkspaceContentKeys {
    /// Derives the keys from the workspace's secret.
    pub fn derive(workspace_secret: &[u8; 32]) -> Self {
        let key = |context| ContentKey(blake3::derive_key(context, workspace_secret));
        Self { chunk_ids: key(CHUNK_ID_CONTEXT), chunker: key(CHUNKER_CONTEXT) }
    }

    /// Returns the key that names chunks.
    pub fn chunk_ids(&self) -> &ContentKey {
        &self.chunk_ids
    }

    /// Returns the key that places cuts.
    pub fn chunk_cuts(&self) -> &ContentKey {
        &self.chunker
    }

    /// Returns the namer of the workspace.
    pub fn namer(&self) -> ChunkNamer {
        ChunkNamer::new(self.chunk_ids.as_bytes())
    }

    /// Returns a chunker of the workspace for files of one average chunk size.
    ///
    /// # Errors
    /// [`ContentError::InvalidChunkSize`].
    pub fn chunker(
        &self,
        kind: ChunkerKind,
        average: u32,
    ) -> Result<Box<dyn Chunker>, ContentError> {
        kind.chunker(average, self.chunker.as_bytes())
    }
}

/// Names chunks: an id is the keyed BLAKE3-256 of the plain bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct ChunkNamer {
    key: [u8; 32],
}

impl ChunkNamer {
    /// Makes a namer with a workspace's key.
    pub fn new(key: &[u8; 32]) -> Self {
        Self { key: *key }
    }

    /// Returns the id of a chunk.
    pub fn name(&self, plain: &[u8]) -> ChunkId {
        ChunkId::from_bytes(*blake3::keyed_hash(&self.key, plain).as_bytes())
    }

    /// Checks that bytes are the chunk they are taken for.
    ///
    /// # Errors
    /// [`ContentError::ChunkHash`].
    pub fn verify(&self, id: ChunkId, plain: &[u8]) -> Result<(), ContentError> {
        let actual = self.name(plain);
        if actual == id { Ok(()) } else { Err(ContentError::ChunkHash { id, actual }) }
    }
}

impl fmt::Debug for ChunkNamer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ChunkNamer(secret)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_one_secret_differ_from_each_other_and_from_those_of_another() {
        let one = WorkspaceContentKeys::derive(&[1; 32]);
        let two = WorkspaceContentKeys::derive(&[2; 32]);
        let keys = [one.chunk_ids(), one.chunk_cuts(), two.chunk_ids(), two.chunk_cuts()];
        for (index, key) in keys.iter().enumerate() {
            assert!(keys[..index].iter().all(|other| other != key));
        }
        assert_eq!(one, WorkspaceContentKeys::derive(&[1; 32]));
    }

    #[test]
    fn one_chunk_has_different_ids_in_different_workspaces() {
        let one = WorkspaceContentKeys::derive(&[1; 32]).namer();
        let two = WorkspaceContentKeys::derive(&[2; 32]).namer();
        assert_eq!(one.name(b"text"), one.name(b"text"));
        assert_ne!(one.name(b"text"), two.name(b"text"));
        assert!(one.verify(one.name(b"text"), b"text").is_ok());
        assert!(one.verify(two.name(b"text"), b"text").is_err());
    }

    #[test]
    fn known_chunk_has_its_known_id() {
        let namer = WorkspaceContentKeys::derive(&[7; 32]).namer();
        assert_eq!(
            namer.name(b"syncline").to_string(),
            "ae9fb2ecad10a05b3f0ac35e9fe840d7e49495ef41766d5c1a50b5da2195cefe"
        );
    }

    #[test]
    fn secrets_do_not_show_in_debug_texts() {
        let keys = WorkspaceContentKeys::derive(&[7; 32]);
        assert_eq!(
            format!("{:?}{:?}", keys.chunk_ids(), keys.namer()),
            "ContentKey(secret)ChunkNamer(secret)"
        );
    }
}
