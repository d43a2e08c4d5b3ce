//! The golden vectors: `crates/wasm/golden/chunks.json` says what files from fixed seeds are cut into. A test in a browser
//! holds the module to the same file.

use content::{ChunkBuffer, ContentError, chunk_reader};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::*;
use crate::samples::{bytes_of, hex};

const GOLDEN: &str = include_str!("../../golden/chunks.json");

fn number(case: &Value, name: &str) -> u64 {
    case[name].as_u64().unwrap()
}

/// Returns a case with what its file is cut into by the program's own reader.
fn solved(case: &Value) -> Value {
    let bytes = file_of(case);
    let keys = WorkspaceContentKeys::derive(&[number(case, "secret") as u8; 32]);
    let average = number(case, "average") as u32;
    let chunker = keys.chunker(ChunkerKind::default(), average).unwrap();
    let (mut lengths, mut hash) = (Vec::new(), Sha256::new());
    chunk_reader::<ContentError>(
        &mut &bytes[..],
        &*chunker,
        &mut ChunkBuffer::default(),
        |chunk| {
            lengths.push(chunk.len() as u32);
            hash.update(keys.namer().name(chunk).as_bytes());
            Ok(())
        },
    )
    .unwrap();
    let mut solved = case.clone();
    solved["chunks"] = json!(lengths.len());
    solved["lengths"] = json!(hex(&Sha256::digest(le_bytes(&lengths))));
    solved["ids"] = json!(hex(&hash.finalize()));
    solved
}

fn file_of(case: &Value) -> Vec<u8> {
    bytes_of(number(case, "seed"), number(case, "size") as usize, number(case, "mask") as u8)
}

fn le_bytes(lengths: &[u32]) -> Vec<u8> {
    lengths.iter().flat_map(|length| length.to_le_bytes()).collect()
}

#[test]
fn golden_files_are_cut_and_named_as_they_always_were() {
    let golden: Vec<Value> = serde_json::from_str(GOLDEN).unwrap();
    assert!(golden.len() >= 8);
    let solved: Vec<Value> = golden.iter().map(solved).collect();
    assert!(solved == golden, "now:\n{}", serde_json::to_string_pretty(&solved).unwrap());
}

#[test]
fn stream_finds_the_same_chunks_whatever_pieces_it_is_given() {
    let golden: Vec<Value> = serde_json::from_str(GOLDEN).unwrap();
    for case in golden.iter().filter(|case| number(case, "size") < 2_000_000) {
        let bytes = file_of(case);
        for piece in [7, 1000, 16 * 1024, 300_001, usize::MAX] {
            let secret = [number(case, "secret") as u8; 32];
            let mut stream = ChunkStream::new(&secret, number(case, "average") as u32).unwrap();
            let (mut lengths, mut ids) = (Vec::new(), Vec::new());
            for piece in bytes.chunks(piece) {
                stream.push(piece);
                lengths.extend(stream.take_lengths());
                ids.extend(stream.take_ids());
            }
            stream.finish();
            lengths.extend(stream.take_lengths());
            ids.extend(stream.take_ids());
            assert_eq!(hex(&Sha256::digest(le_bytes(&lengths))), case["lengths"], "{case} {piece}");
            assert_eq!(hex(&Sha256::digest(&ids)), case["ids"], "{case} {piece}");
        }
    }
}

#[test]
fn wrong_sizes_and_secrets_have_codes() {
    let code = |secret: &[u8], average| {
        ChunkStream::new(secret, average).err().map(|failure| failure.code)
    };
    assert_eq!(code(&[7; 32], 1000), Some("invalid_chunk_size"));
    assert_eq!(code(&[7; 31], 16_384), Some("length"));
    assert_eq!(code(&[7; 32], 16_384), None);
}
