//! Files for tests: always the same for the same seed.

use model::{Genesis, Mode, SealedGenesis, Timestamp};
use serde_json::Value;

pub(crate) const SESSION: [u8; 16] = [5; 16];

/// Bytes of SplitMix64, as in `docs/design/pack-format.md`, each ANDed with a mask: fewer values make more repeats.
pub(crate) fn bytes_of(seed: u64, length: usize, mask: u8) -> Vec<u8> {
    let mut state = seed;
    let next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = state;
        value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (value ^ value >> 31).to_le_bytes()
    };
    let mut bytes: Vec<u8> =
        std::iter::repeat_with(next).take(length.div_ceil(8)).flatten().collect();
    bytes.truncate(length);
    for byte in &mut bytes {
        *byte &= mask;
    }
    bytes
}

/// Writes bytes as text.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A plain workspace.
pub(crate) fn genesis() -> Genesis {
    let (name, created) = ("files".to_owned(), Timestamp::default());
    Genesis { name, mode: Mode::Plain, created, content_key: [7; 32] }
}

/// An encrypted workspace, of which no method of these may send anything.
pub(crate) fn sealed_genesis() -> Genesis {
    let sealed = SealedGenesis { account: [1; 32], salt: [2; 32], header: vec![3; 64] };
    Genesis { mode: Mode::Sealed(sealed), ..genesis() }
}

/// Returns the file of a case before and after its edits: where, how many bytes are cut, and seed and length of what is put in.
pub(crate) fn versions(case: &Value) -> (Vec<u8>, Vec<u8>) {
    let number = |value: &Value| value.as_u64().unwrap();
    let old = bytes_of(number(&case["seed"]), number(&case["size"]) as usize, 255);
    let mut new = old.clone();
    for edit in case["edits"].as_array().unwrap() {
        let [at, cut, seed, length] = [0, 1, 2, 3].map(|place| number(&edit[place]));
        let range = at as usize..(at + cut) as usize;
        new.splice(range, bytes_of(seed, length as usize, 255));
    }
    (old, new)
}
