//! Chunks what a reader gives, in memory that does not grow with it.

use std::io::{ErrorKind, Read};

use super::Chunker;
use crate::error::ContentError;

/// Length in bytes of the buffer for chunks of ordinary size: it stays inside the processor's second cache.
const BUFFER_LENGTH: usize = 1024 * 1024;

/// How many of the largest chunks the buffer holds at least, so that little of it is moved at each refill.
const BUFFER_CHUNKS: usize = 4;

/// The memory of [`chunk_reader`], to be reused from file to file.
///
/// It takes 1 MiB, or four chunks of the largest size where that is more.
#[derive(Debug, Default)]
pub struct ChunkBuffer {
    pub(super) bytes: Vec<u8>,
}

/// Gives the chunks of `reader`, in order, to `sink`, and returns how many bytes there were.
///
/// # Errors
/// [`ContentError::Read`] where the reader fails, and whatever `sink` returns.
pub fn chunk_reader<E: From<ContentError>>(
    reader: &mut impl Read,
    chunker: &dyn Chunker,
    buffer: &mut ChunkBuffer,
    mut sink: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<u64, E> {
    let length = BUFFER_LENGTH.max(BUFFER_CHUNKS * chunker.sizes().max());
    if buffer.bytes.len() < length {
        buffer.bytes.resize(length, 0);
    }
    let bytes = &mut buffer.bytes;
    let (mut filled, mut total) = (0, 0);
    loop {
        let count = read_full(reader, &mut bytes[filled..])?;
        filled += count;
        total += count as u64;
        let end_of_input = filled < bytes.len();
        let mut start = 0;
        while let Some(length) = chunker.cut(&bytes[start..filled], end_of_input) {
            assert!(length > 0, "chunks are never empty");
            sink(&bytes[start..start + length])?;
            start += length;
        }
        if end_of_input {
            return Ok(total);
        }
        bytes.copy_within(start..filled, 0);
        filled -= start;
    }
}

/// Reads until the buffer is full or the input ends; fewer bytes than asked mean the end.
fn read_full(reader: &mut impl Read, mut buffer: &mut [u8]) -> Result<usize, ContentError> {
    let length = buffer.len();
    while !buffer.is_empty() {
        match reader.read(buffer) {
            Ok(0) => break,
            Ok(count) => buffer = &mut buffer[count..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(source) => return Err(ContentError::Read { source }),
        }
    }
    Ok(length - buffer.len())
}
