//! Cuts and names a file that comes in pieces.

use content::delta::DeltaError;
use content::{ChunkNamer, Chunker, ChunkerKind, WorkspaceContentKeys};
use wasm_bindgen::prelude::wasm_bindgen;

use crate::failure::Failure;

/// One file, from its first byte to its last. Its chunks are those that every writer makes of these bytes.
///
/// It holds at most one piece and what is left of the one before, less than one chunk.
#[wasm_bindgen]
pub struct ChunkStream {
    chunker: Box<dyn Chunker>,
    namer: ChunkNamer,
    /// Bytes whose chunk is not complete.
    rest: Vec<u8>,
    lengths: Vec<u32>,
    ids: Vec<u8>,
}

#[wasm_bindgen]
impl ChunkStream {
    /// Begins a file. `secret` are the 32 bytes from which the workspace's keys follow, `average` is the average chunk
    /// size in bytes.
    ///
    /// # Errors
    /// `invalid_chunk_size`; `length` where the secret has another length.
    #[wasm_bindgen(constructor)]
    pub fn new(secret: &[u8], average: u32) -> Result<Self, Failure> {
        let keys = WorkspaceContentKeys::derive(&key_of(secret)?);
        let chunker = keys.chunker(ChunkerKind::default(), average)?;
        let (namer, rest, lengths, ids) = (keys.namer(), Vec::new(), Vec::new(), Vec::new());
        Ok(Self { chunker, namer, rest, lengths, ids })
    }

    /// Takes the next piece, of any length.
    pub fn push(&mut self, piece: &[u8]) {
        self.rest.extend_from_slice(piece);
        self.cut(false);
    }

    /// Says that the last piece has come.
    pub fn finish(&mut self) {
        self.cut(true);
    }

    /// Returns the lengths in bytes of the chunks that were found since the last call, in order.
    #[wasm_bindgen(js_name = "takeLengths")]
    pub fn take_lengths(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.lengths)
    }

    /// Returns the ids of the chunks that were found since the last call, 32 bytes each, in order.
    #[wasm_bindgen(js_name = "takeIds")]
    pub fn take_ids(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.ids)
    }
}

impl ChunkStream {
    fn cut(&mut self, end_of_input: bool) {
        let mut start = 0;
        while let Some(length) = self.chunker.cut(&self.rest[start..], end_of_input) {
            let chunk = &self.rest[start..start + length];
            self.lengths.push(length as u32);
            self.ids.extend_from_slice(self.namer.name(chunk).as_bytes());
            start += length;
        }
        self.rest.drain(..start);
    }
}

/// Reads a secret of 32 bytes.
pub(crate) fn key_of(secret: &[u8]) -> Result<[u8; 32], Failure> {
    secret.try_into().map_err(|_| {
        let (expected, actual) = (32, secret.len() as u64);
        DeltaError::Length { what: "secret", expected, actual }.into()
    })
}

#[cfg(test)]
mod tests;
