//! Bytes for tests: always the same for the same seed.

use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;

/// A small generator of random numbers (SplitMix64), also written down in `docs/design/pack-format.md`.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.0;
        value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ value >> 31
    }
}

/// Incompressible bytes.
pub(crate) fn random_bytes(seed: u64, length: usize) -> Vec<u8> {
    let mut random = Random(seed);
    let mut bytes: Vec<u8> =
        (0..length.div_ceil(8)).flat_map(|_| random.next().to_le_bytes()).collect();
    bytes.truncate(length);
    bytes
}

/// Lines of words: compressible, with many repeats.
pub(crate) fn text(seed: u64, length: usize) -> Vec<u8> {
    const WORDS: [&str; 8] =
        ["static ", "struct ", "return ", "\n\t", "int ", "->next;", "if (", "NULL) {\n"];
    let mut random = Random(seed);
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        let value = random.next();
        bytes.extend_from_slice(WORDS[(value % 8) as usize].as_bytes());
        if value.is_multiple_of(5) {
            bytes.extend_from_slice(format!("{:x}", value >> 48).as_bytes());
        }
    }
    bytes.truncate(length);
    bytes
}

/// What begins like a PDF, with streams of text and a picture.
pub(crate) fn document(texts: &[&[u8]]) -> Vec<u8> {
    let mut file = b"%PDF-1.7\n".to_vec();
    for text in texts {
        file.extend(b"1 0 obj << /Filter /FlateDecode >> stream\n");
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::new(6));
        encoder.write_all(text).expect("memory");
        file.extend(encoder.finish().expect("memory"));
        file.extend(b"\nendstream endobj\n");
    }
    file.extend(random_bytes(9, 100_000));
    file
}

/// Random bytes for keys and nonces, all of one value: what is made with them is the same for ever.
#[derive(Debug)]
pub(crate) struct FixedRandom(pub(crate) u8);

impl model::Random for FixedRandom {
    fn fill(&self, bytes: &mut [u8]) {
        bytes.fill(self.0);
    }
}

/// Random bytes for keys and nonces, never the same twice.
#[derive(Debug)]
pub(crate) struct SeededRandom(std::sync::Mutex<u64>);

impl SeededRandom {
    pub(crate) fn new(seed: u64) -> Self {
        Self(std::sync::Mutex::new(seed))
    }
}

impl model::Random for SeededRandom {
    fn fill(&self, bytes: &mut [u8]) {
        let mut seed = self.0.lock().expect("nobody panics here");
        *seed += 1;
        bytes.copy_from_slice(&random_bytes(*seed << 32, bytes.len()));
    }
}
