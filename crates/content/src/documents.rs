//! Documents for tests: files that hold deflate streams, as office files and PDF do; and a photograph.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;

/// A photograph of the lab, which has what photographs have, with the codes that the standard gives as an example.
pub const PHOTOGRAPH: &[u8] = include_bytes!("jpeg/samples/photo.jpg");

/// Returns that photograph with a title of at most 65,533 bytes, which stands in a comment.
pub fn photograph(title: &[u8]) -> Vec<u8> {
    let (start, rest) = PHOTOGRAPH.split_at(2);
    let length = (title.len() as u16 + 2).to_be_bytes();
    [start, &[0xff, 0xfe], &length, title, rest].concat()
}

/// How a document begins.
const START: &[u8] = b"%PDF-1.7\n";

/// Returns a document with this text, which stands in it compressed.
pub fn document(text: &[u8]) -> Vec<u8> {
    let mut file = START.to_vec();
    let mut encoder = ZlibEncoder::new(&mut file, Compression::default());
    encoder.write_all(text).and_then(|()| encoder.finish().map(drop)).expect("it goes to memory");
    file
}

/// Returns the text of a document, if it is one.
pub fn text_of(file: &[u8]) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    ZlibDecoder::new(file.strip_prefix(START)?).read_to_end(&mut text).ok()?;
    Some(text)
}
