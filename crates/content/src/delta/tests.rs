//! Stories of versions that travel as deltas.

mod blocks;
mod chunks;
mod hostile;

use model::{Genesis, Mode, SealedGenesis, Timestamp};

use super::*;
use crate::error::ContentError;
use crate::samples::random_bytes;

/// As large as any file in these stories may become.
const SIZE_MAX: u64 = 1 << 40;

fn genesis(mode: Mode) -> Genesis {
    let (name, created) = ("files".to_owned(), Timestamp::default());
    Genesis { name, mode, created, content_key: [7; 32] }
}

fn plain() -> Plain {
    Plain::of(&genesis(Mode::Plain)).unwrap()
}

fn session(number: u8) -> SessionId {
    SessionId::from_bytes([number; 16])
}

/// The old version with bytes put in, taken out, or replaced.
fn spliced(old: &[u8], at: usize, removed: usize, inserted: &[u8]) -> Vec<u8> {
    [&old[..at], inserted, &old[at + removed..]].concat()
}

/// A file and what people do to it.
fn edits() -> Vec<(&'static str, Vec<u8>, Vec<u8>)> {
    let old = random_bytes(1, 300_000);
    let new = random_bytes(2, 5000);
    vec![
        ("nothing", old.clone(), old.clone()),
        ("one byte in the middle", old.clone(), spliced(&old, 150_000, 1, &[old[150_000] ^ 1])),
        ("a byte in front", old.clone(), spliced(&old, 0, 0, &[1])),
        ("a byte behind", old.clone(), spliced(&old, 300_000, 0, &[1])),
        ("an insertion", old.clone(), spliced(&old, 100_000, 0, &new)),
        ("a cut", old.clone(), spliced(&old, 100_000, 50_000, &[])),
        ("shortened", old.clone(), old[..100_001].to_vec()),
        ("emptied", old.clone(), Vec::new()),
        ("filled", Vec::new(), old.clone()),
        ("nothing to nothing", Vec::new(), Vec::new()),
        ("smaller than a block", new[..100].to_vec(), spliced(&new[..100], 50, 0, b"x")),
        ("two halves exchanged", old.clone(), [&old[150_000..], &old[..150_000]].concat()),
        ("said twice", old.clone(), [&old[..], &old[..]].concat()),
        ("zeros", vec![0; 200_000], spliced(&vec![0; 250_000], 100_000, 3, b"abc")),
        ("another file", old, random_bytes(3, 200_000)),
    ]
}

#[test]
fn only_a_plain_workspace_gives_a_witness() {
    assert_eq!(plain().workspace(), genesis(Mode::Plain).workspace());
    let sealed = SealedGenesis { account: [1; 32], salt: [2; 32], header: vec![3; 64] };
    let refused = Plain::of(&genesis(Mode::Sealed(sealed)));
    assert!(matches!(refused, Err(ContentError::IsSealed { .. })));
}
