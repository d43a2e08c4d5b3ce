//! One gzip member without name or time, so that equal bytes have one stored form.

use std::io::{self, Write};

use flate2::Compression;
use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;

pub(super) fn encode(plain: &[u8], stored: &mut Vec<u8>) -> io::Result<()> {
    let mut encoder = GzEncoder::new(stored, Compression::default());
    encoder.write_all(plain)?;
    encoder.finish()?;
    Ok(())
}

/// Returns how many stored bytes follow the member.
pub(super) fn decode(stored: &[u8], plain_length: usize, plain: &mut Vec<u8>) -> io::Result<usize> {
    let mut decoder = GzDecoder::new(stored);
    super::read_bounded(&mut decoder, plain_length, plain)?;
    Ok(decoder.into_inner().len())
}
