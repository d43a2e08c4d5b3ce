//! One bzip2 stream; its decoder's memory is bounded by the format, at about 4 MB.

use std::io::{self, Write};

use bzip2::Compression;
use bzip2::bufread::BzDecoder;
use bzip2::write::BzEncoder;

pub(super) fn encode(plain: &[u8], stored: &mut Vec<u8>) -> io::Result<()> {
    let mut encoder = BzEncoder::new(stored, Compression::best());
    encoder.write_all(plain)?;
    encoder.finish()?;
    Ok(())
}

/// Returns how many stored bytes follow the stream.
pub(super) fn decode(stored: &[u8], plain_length: usize, plain: &mut Vec<u8>) -> io::Result<usize> {
    let mut decoder = BzDecoder::new(stored);
    super::read_bounded(&mut decoder, plain_length, plain)?;
    Ok(decoder.into_inner().len())
}
