//! The files of the lab page (`web/app/src/lab/sample.ts`), made again for programs outside of the browser: the same seed gives the same
//! bytes, which `web/app/src/lab/sample.golden.json` holds both to.

use super::cells::Edit;

/// Words of 32 bits by chance.
struct Random(u32);

impl Random {
    fn new(seed: u64) -> Self {
        // JavaScript takes the lower half of a whole number, too.
        Self(seed as u32)
    }

    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9);
        let mut word = self.0;
        word = (word ^ (word >> 16)).wrapping_mul(0x21f0_aaad);
        word = (word ^ (word >> 15)).wrapping_mul(0x735a_2d97);
        word ^ (word >> 15)
    }
}

/// Returns bytes by chance.
pub fn bytes_of(seed: u64, length: usize) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut bytes: Vec<u8> =
        (0..length.div_ceil(4)).flat_map(|_| random.next().to_le_bytes()).collect();
    bytes.truncate(length);
    bytes
}

/// Returns the edited file: places are drawn, and get about the same share each. Cuts at most what there is.
pub fn edited(old: &[u8], edit: Edit, seed: u64) -> Vec<u8> {
    let is_cut = edit.kind == "cut";
    let is_append = edit.kind == "append";
    let size = if is_cut { edit.size.min(old.len()) } else { edit.size };
    let places = if is_append { 1 } else { edit.places.min(size).max(1) };
    let kept = if is_cut { old.len() - size } else { old.len() };
    let mut random = Random::new(!seed);
    let mut drawn: Vec<usize> = (0..places)
        .map(|_| match is_append {
            true => kept,
            false => (f64::from(random.next()) / 4_294_967_296.0 * (kept + 1) as f64) as usize,
        })
        .collect();
    drawn.sort_unstable();
    let put = bytes_of(seed + 1, if is_cut { 0 } else { size });
    let mut made = Vec::with_capacity(kept + put.len());
    let (mut from, mut done) = (0, 0);
    for (index, place) in drawn.into_iter().enumerate() {
        let share = size * (index + 1) / places - done;
        let at = place + if is_cut { done } else { 0 };
        made.extend_from_slice(&old[from..at]);
        if !is_cut {
            made.extend_from_slice(&put[done..done + share]);
        }
        from = at + if is_cut { share } else { 0 };
        done += share;
    }
    made.extend_from_slice(&old[from..]);
    made
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::web::cells::KINDS;

    const GOLDEN: &str = include_str!("../../../../web/app/src/lab/sample.golden.json");

    #[test]
    fn a_seed_gives_the_bytes_that_it_gives_in_a_browser() {
        let golden: Value = serde_json::from_str(GOLDEN).expect("it is JSON");
        let golden = golden.as_array().expect("a list");
        assert!(golden.len() >= 9);
        for entry in golden {
            let number = |name: &str| entry[name].as_u64().expect("a number");
            let (seed, length) = (number("seed"), number("length") as usize);
            let kind = KINDS.into_iter().find(|kind| entry["kind"] == *kind).expect("a kind");
            let (size, places) = (number("size") as usize, number("places") as usize);
            let old = bytes_of(seed, length);
            let new = edited(&old, Edit { kind, size, places }, seed);
            let digest = |bytes: &[u8]| blake3::hash(bytes).to_hex().to_string();
            assert_eq!(digest(&old), entry["old"], "{entry}");
            assert_eq!(digest(&new), entry["new"], "{entry}");
        }
    }
}
