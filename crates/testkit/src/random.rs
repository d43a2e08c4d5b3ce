//! Randomness that is a function of a seed: xoshiro256**, seeded by splitmix64.

use model::Random;
use parking_lot::Mutex;

/// A generator of numbers; the same seed gives the same numbers.
#[derive(Debug, Clone)]
pub struct Dice {
    state: [u64; 4],
}

/// Returns the next number of splitmix64.
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

impl Dice {
    /// Makes the generator of a seed.
    pub fn new(seed: u64) -> Self {
        let mut state = seed;
        Self { state: [(); 4].map(|()| split_mix(&mut state)) }
    }

    /// Splits off a generator that is independent of this one.
    pub fn fork(&mut self) -> Self {
        Self::new(self.number())
    }

    /// Returns the next number.
    pub fn number(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let result = b.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let mut state = [a, b, c ^ a, d ^ b];
        state[1] ^= state[2];
        state[0] ^= state[3];
        state[2] ^= b << 17;
        state[3] = state[3].rotate_left(45);
        self.state = state;
        result
    }

    /// Returns a number below `bound`, which is above 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.number() % bound
    }

    /// Returns an index of a list of this length, which is not empty.
    pub fn index(&mut self, length: usize) -> usize {
        self.below(length as u64) as usize
    }

    /// Tells whether something happens whose chance is `permille` in a thousand.
    pub fn chance(&mut self, permille: u32) -> bool {
        self.below(1000) < u64::from(permille)
    }

    /// Picks an element of a list that is not empty.
    pub fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.index(list.len())]
    }

    /// Fills bytes.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for piece in bytes.chunks_mut(8) {
            piece.copy_from_slice(&self.number().to_le_bytes()[..piece.len()]);
        }
    }
}

/// A source of random bytes for the engine.
#[derive(Debug)]
pub struct SeededRandom(Mutex<Dice>);

impl SeededRandom {
    /// Takes over a generator.
    pub fn new(dice: Dice) -> Self {
        Self(Mutex::new(dice))
    }
}

impl Random for SeededRandom {
    fn fill(&self, bytes: &mut [u8]) {
        self.0.lock().fill(bytes);
    }
}
