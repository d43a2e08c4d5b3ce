//! Whether a file is a version that the log knows, for whoever has the file and nothing else: no byte of the version is fetched.
//!
//! *Goals*: the file is cut and named as every writer does it, by the same [`FilePacker`]; memory that does not grow with it.
//! *Invariants*: what is said to be equal is so to the byte, since the ids of all chunks are.

use model::{ChunkRef, Content};

use crate::error::ContentError;
use crate::pack::{FinishedPack, PACK_STORED_TARGET};
use crate::packing::{FileCut, FilePacker, PackSettings, PackSink};
use crate::replay::Replay;
use crate::transform::Transform;

/// Keeps nothing.
struct Nowhere;

impl PackSink for Nowhere {
    type Error = ContentError;

    fn claim(&mut self, _chunk: &ChunkRef) -> Result<bool, ContentError> {
        Ok(false)
    }

    fn emit(&mut self, _pack: FinishedPack) -> Result<(), ContentError> {
        Ok(())
    }
}

/// A file that is compared with a version, piece by piece.
pub struct FileComparison {
    content: Content,
    packer: FilePacker<Nowhere>,
    cut: FileCut,
}

impl FileComparison {
    /// Begins to compare a file with a version that has this content.
    ///
    /// # Errors
    /// [`ContentError::UnsupportedTransform`]; [`ContentError::InvalidChunkSize`].
    pub fn new(replay: &Replay, content: &Content) -> Result<Self, ContentError> {
        let settings = PackSettings {
            transform: Transform::default(),
            guard: replay.keys().packs(),
            target: PACK_STORED_TARGET,
        };
        let packer = FilePacker::new(replay.keys().content(), &settings, Nowhere)?;
        let cut = packer.begin(content.chunk_size)?;
        Ok(Self { content: content.clone(), packer, cut })
    }

    /// Takes the next piece of the file.
    ///
    /// # Errors
    /// [`ContentError`].
    pub fn push(&mut self, piece: &[u8]) -> Result<(), ContentError> {
        self.packer.push(&mut self.cut, piece)
    }

    /// Tells whether the file is that version, once all pieces have come.
    ///
    /// # Errors
    /// [`ContentError`].
    pub fn finish(mut self) -> Result<bool, ContentError> {
        Ok(self.packer.end(self.cut)?.0 == self.content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::tests::Scene;
    use crate::samples::random_bytes;

    fn is_equal(replay: &Replay, content: &Content, bytes: &[u8], piece: usize) -> bool {
        let mut comparison = FileComparison::new(replay, content).unwrap();
        for piece in bytes.chunks(piece) {
            comparison.push(piece).unwrap();
        }
        comparison.finish().unwrap()
    }

    #[test]
    fn file_is_a_version_by_its_bytes_alone_however_its_pieces_come_and_nothing_is_fetched() {
        let mut scene = Scene::new();
        // So many chunks that there are lists of lists.
        let bytes = random_bytes(5, 4 << 20);
        let content = scene.put(1, "file", &bytes);
        assert!(content.depth > 0);
        let replay = Replay::new(&scene.genesis, scene.keys.clone());
        assert!(is_equal(&replay, &content, &bytes, 1 << 20));
        assert!(is_equal(&replay, &content, &bytes, 7_777));
        for place in [0, bytes.len() / 2, bytes.len() - 1] {
            let mut other = bytes.clone();
            other[place] ^= 1;
            assert!(!is_equal(&replay, &content, &other, 1 << 20), "byte {place}");
        }
        assert!(!is_equal(&replay, &content, &bytes[1..], 1 << 20));
        assert!(!is_equal(&replay, &content, &[], 1));
    }
}
