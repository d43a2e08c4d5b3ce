//! What files of a trace have in them, made from a seed.

use content::looks_incompressible;
use serde::{Deserialize, Serialize};

use super::{Edit, EditKind, Place};
use crate::random::Random;

/// What a file is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Bytes by chance: nothing compresses them.
    Random,
    /// Words and numbers in lines: they compress as texts do.
    Text,
    /// Bytes of zero.
    Zero,
}

/// How much of a file is looked at to tell what it is like.
const SAMPLE: usize = 64 * 1024;

/// Tells what a real file is like.
pub(super) fn kind_of(bytes: &[u8]) -> Kind {
    if bytes.iter().all(|byte| *byte == 0) {
        Kind::Zero
    } else if looks_incompressible(&bytes[..bytes.len().min(SAMPLE)]) {
        Kind::Random
    } else {
        Kind::Text
    }
}

/// Makes the bytes of a file.
pub fn bytes(kind: Kind, size: u64, seed: u64) -> Vec<u8> {
    const WORDS: [&str; 16] = [
        "the ", "folder ", "of ", "a ", "device ", "is ", "kept ", "equal ", "and ", "nothing ",
        "that ", "was ", "written ", "here ", "goes ", "away. ",
    ];
    let size = size as usize;
    let mut random = Random::new(seed);
    match kind {
        Kind::Zero => vec![0; size],
        Kind::Random => {
            let mut bytes = vec![0; size];
            random.fill(&mut bytes);
            bytes
        }
        Kind::Text => {
            let mut bytes = Vec::with_capacity(size + 24);
            while bytes.len() < size {
                let value = random.next();
                bytes.extend_from_slice(WORDS[(value % 16) as usize].as_bytes());
                if value & 0xf0 == 0 {
                    bytes.extend_from_slice(format!("{:x}\n", value >> 40).as_bytes());
                }
            }
            bytes.truncate(size);
            bytes
        }
    }
}

/// Changes a file in one place.
pub fn edit(file: &mut Vec<u8>, edit: Edit) {
    let (length, size) = (file.len(), edit.size as usize);
    let start = match (edit.place, edit.kind) {
        (Place::Beginning, _) => 0,
        (Place::Middle, _) => length / 2,
        (Place::End, EditKind::Insert) => length,
        (Place::End, _) => length.saturating_sub(size),
        (Place::Offset, _) => edit.offset.map_or(length, |offset| length.min(offset as usize)),
    };
    let end = (start + size).min(length);
    match edit.kind {
        EditKind::Insert => {
            let new = bytes(Kind::Random, edit.size, edit.seed);
            file.splice(start..start, new);
        }
        EditKind::Overwrite => Random::new(edit.seed).fill(&mut file[start..end]),
        EditKind::Cut => drop(file.drain(start..end)),
    }
}
