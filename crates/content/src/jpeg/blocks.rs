//! What a block of a picture has, foretold by the blocks beside it.
//!
//! A block is 64 values by frequency: the first one is its mean, the *edges* are the others of its first column and its first row, and the
//! *inner* ones are the rest. The sizes of inner values are like those in the same place of the blocks beside; edges and the first value are
//! what lets the picture go on from the block beside without a step. Everything is in integers, and is the same for who writes and who
//! reads ([`Coder`]). All of it is part of the format.

use super::NoPicture;
use super::odds::{Coder, Odds};

/// The values of a block, row by row.
pub(super) type Block = [i16; 64];

const SIDE: usize = 8;

/// In which order the values of a block are coded in a JPEG: where each is in its rows.
pub(super) const ZIGZAG: [u8; 64] = [
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20,
    13, 6, 7, 14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59,
    52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
];

/// How many values are inner ones.
const INNER: usize = 49;

/// Where these are in their rows, in the order of their codes.
const INNER_PLACES: [u8; INNER] = {
    let (mut places, mut number, mut found) = ([0; INNER], 0, 0);
    while number < 64 {
        let place = ZIGZAG[number];
        if place as usize >= SIDE && !(place as usize).is_multiple_of(SIDE) {
            places[found] = place;
            found += 1;
        }
        number += 1;
    }
    places
};

/// By the place of a value in its rows, the bit of its number in the order of codes.
const MASKS: [u64; 64] = {
    let (mut masks, mut number) = ([0; 64], 0);
    while number < 64 {
        masks[ZIGZAG[number] as usize] = 1 << number;
        number += 1;
    }
    masks
};

/// The bits of the first column, and of the first row, without the first value.
const EDGE_MASKS: [u64; 2] = {
    let (mut masks, mut number) = ([0; 2], 1);
    while number < SIDE {
        masks[0] |= MASKS[number * SIDE];
        masks[1] |= MASKS[number];
        number += 1;
    }
    masks
};

/// How many bits a value has behind the first.
pub(super) const VALUE_BITS: usize = 10;

/// The largest first value, and the smallest is as much below zero.
pub(super) const FIRST_MAX: i32 = 2047;

/// How many bits it has by which a first value differs from what was foretold.
const FIRST_BITS: usize = 13;

/// Sizes up to this have odds of their own for all that is known.
const FEW: usize = 4;

/// The square root of 2, in parts of 2^[`FINE`].
const ROOT: i32 = 181;

const FINE: u32 = 7;

/// How many kinds of places there are, by the sizes of values around.
const AROUND: usize = 12;

/// By how many values that are not zero are still to come.
const MISSING: usize = 9;

/// Which kind of place that is.
const MISSING_KINDS: [u8; INNER + 1] = {
    let (mut kinds, mut missing) = ([8; INNER + 1], 0);
    while missing <= 16 {
        kinds[missing] = match missing {
            0..=4 => missing as u8,
            5..=6 => 5,
            7..=9 => 6,
            _ => 7,
        };
        missing += 1;
    }
    kinds
};

/// By how many inner values the blocks beside have that are not zero.
const COUNTS: usize = 26;

/// By the size of what is foretold of an edge.
const FORETOLD: usize = 10;

/// By how far the two blocks beside foretell different first values, and whether there are two, one or none.
const APART: usize = 14;

/// The steps of quantisation, row by row, and what it takes to divide by them.
#[derive(Debug, Clone)]
pub(super) struct Steps {
    of: [i16; 64],
    /// 2^32 by each, in parts of 2^[`FINE`].
    inverse: [i64; 64],
}

impl Steps {
    /// Takes steps of 1 to 255.
    pub(super) fn new(of: [i16; 64]) -> Self {
        Self { of, inverse: of.map(|step| (1 << 32) / (i64::from(step) << FINE)) }
    }

    #[inline(always)]
    fn times(&self, values: &Block, place: usize) -> i32 {
        i32::from(values[place]) * i32::from(self.of[place])
    }

    #[inline(always)]
    fn divide(&self, value: i32, place: usize) -> i32 {
        ((i64::from(value) * self.inverse[place] + (1 << 31)) >> 32) as i32
    }
}

/// A block, and what others are foretold from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Coded {
    pub(super) values: Block,
    /// Which values are not zero but the first, in the order of their codes.
    pub(super) mask: u64,
    /// How many of these are inner ones.
    inner: u8,
    /// How many are of the first column, and of the first row.
    edges: [u8; 2],
    /// What the picture has at the right and at the lower end of the block, by frequency along that end, in parts of 2^[`FINE`].
    ends: [[i32; SIDE]; 2],
}

impl Default for Coded {
    fn default() -> Self {
        Self { values: [0; 64], mask: 0, inner: 0, edges: [0; 2], ends: [[0; SIDE]; 2] }
    }
}

impl Coded {
    /// Takes what was read of a block.
    pub(super) fn of(values: Block, mask: u64) -> Self {
        let edges = EDGE_MASKS.map(|edge| (mask & edge).count_ones() as u8);
        let inner = mask.count_ones() as u8 - edges[0] - edges[1];
        Self { values, mask, inner, edges, ends: [[0; SIDE]; 2] }
    }

    #[inline(always)]
    fn set(&mut self, place: usize, value: i16) {
        self.values[place] = value;
        self.mask |= MASKS[place];
    }

    /// Finds out what the picture has at two ends of the block. A cosine of an odd frequency is the opposite there of what it is at the
    /// beginning; all but that of frequency 0 weigh the root of 2.
    fn look_at_ends(&mut self, steps: &Steps) {
        let first = steps.times(&self.values, 0) << FINE;
        self.ends = [[0; SIDE]; 2];
        (self.ends[0][0], self.ends[1][0]) = (first, first);
        if self.mask == 0 {
            return;
        }
        let mut of = [0; 64];
        for (place, of) in of.iter_mut().enumerate() {
            *of = steps.times(&self.values, place);
        }
        let [right, lower] = &mut self.ends;
        let (mut even, mut odd) = ([0; SIDE], [0; SIDE]);
        for pair in (1..SIDE).step_by(2) {
            for x in 0..SIDE {
                odd[x] += of[pair * SIDE + x];
                even[x] += if pair + 1 < SIDE { of[(pair + 1) * SIDE + x] } else { 0 };
            }
        }
        for x in 0..SIDE {
            lower[x] = (of[x] << FINE) + ROOT * (even[x] - odd[x]);
        }
        for (row, right) in of.chunks_exact(SIDE).zip(right) {
            let (even, odd) = (row[2] + row[4] + row[6], row[1] + row[3] + row[5] + row[7]);
            *right = (row[0] << FINE) + ROOT * (even - odd);
        }
    }

    /// Adds up what the inner values make of the left and of the upper end of the block, by frequency along that end.
    #[inline(always)]
    fn look_inside(&self, steps: &Steps) -> [[i32; SIDE]; 2] {
        let (mut left, mut upper) = ([0; SIDE], [0; SIDE]);
        if self.inner > 0 {
            for (y, left) in (1..).zip(&mut left[1..]) {
                for (x, upper) in (1..).zip(&mut upper[1..]) {
                    let value = steps.times(&self.values, y * SIDE + x);
                    *left += value;
                    *upper += value;
                }
            }
        }
        [left, upper]
    }
}

/// The blocks that were coded before and are beside one: at its left, above it, and at the left above. Where the picture ends there, they
/// are as if they were empty.
#[derive(Debug, Clone, Copy)]
pub(super) struct Beside<'a> {
    pub(super) left: &'a Coded,
    pub(super) above: &'a Coded,
    pub(super) corner: &'a Coded,
    /// Whether there is one at the left, and one above.
    pub(super) is_there: [bool; 2],
}

/// The odds of everything that blocks of one kind have: brightness, or colours.
pub(super) struct Model {
    inner_counts: Vec<[Odds; 64]>,
    inner_sizes: Vec<[Odds; FEW]>,
    inner_large: Vec<[Odds; VALUE_BITS - FEW]>,
    inner_high: Vec<[Odds; VALUE_BITS]>,
    edge_counts: Vec<[Odds; SIDE]>,
    edge_sizes: Vec<[Odds; VALUE_BITS]>,
    edge_signs: Vec<[Odds; 4]>,
    edge_high: Vec<[Odds; VALUE_BITS]>,
    first_sizes: Vec<[Odds; FIRST_BITS]>,
    first_sign: Odds,
    first_high: Vec<[Odds; FIRST_BITS]>,
}

impl Default for Model {
    fn default() -> Self {
        fn of<const N: usize>(count: usize) -> Vec<[Odds; N]> {
            vec![[Odds::default(); N]; count]
        }
        let edges = 2 * (SIDE - 1);
        Self {
            inner_counts: of(COUNTS),
            inner_sizes: of(INNER * AROUND * MISSING),
            inner_large: of(INNER),
            inner_high: of(INNER),
            edge_counts: of(2 * SIDE * MISSING),
            edge_sizes: of(edges * FORETOLD * SIDE),
            edge_signs: of(edges * 3),
            edge_high: of(edges),
            first_sizes: of(APART * MISSING),
            first_sign: Odds::default(),
            first_high: of(APART),
        }
    }
}

/// Returns how many bits a number has.
pub(super) fn bits_of(value: u32) -> usize {
    (u32::BITS - value.leading_zeros()) as usize
}

fn absolute(value: i16) -> u32 {
    u32::from(value.unsigned_abs())
}

fn signed(is_negative: bool, value: u32) -> i16 {
    let turned = -i16::from(is_negative);
    (value as i16 ^ turned) - turned
}

/// Codes how many bits a number has: for each whether there are more.
#[inline(always)]
fn code_size<const N: usize>(coder: &mut impl Coder, odds: &mut [Odds; N], size: usize) -> usize {
    let mut coded = 0;
    while coded < N && coder.bit(&mut odds[coded], coded < size) {
        coded += 1;
    }
    coded
}

/// Codes a number that has so many bits: the second by odds, and the others without.
#[inline(always)]
fn code_low<const N: usize>(
    coder: &mut impl Coder,
    odds: &mut [Odds; N],
    size: usize,
    value: u32,
) -> u32 {
    let Some(low) = size.checked_sub(2) else { return size as u32 };
    let high = 2 | u32::from(coder.bit(&mut odds[low], value >> low & 1 == 1));
    match low {
        0 => high,
        _ => high << low | coder.raw(value & ((1 << low) - 1), low as u32),
    }
}

/// Codes a number below `N`, a power of two: whether it is zero, and its bits from the highest on.
#[inline(always)]
fn code_count<const N: usize>(coder: &mut impl Coder, odds: &mut [Odds; N], value: usize) -> usize {
    if !coder.bit(&mut odds[0], value > 0) {
        return 0;
    }
    let mut node = 1;
    for place in (0..N.trailing_zeros()).rev() {
        let bit = coder.bit(&mut odds[node], value >> place & 1 == 1);
        node = node << 1 | usize::from(bit);
    }
    node - N
}

impl Model {
    /// Codes a block.
    ///
    /// # Errors
    /// [`NoPicture`] where what was coded is no block.
    #[inline(always)]
    pub(super) fn code(
        &mut self,
        coder: &mut impl Coder,
        steps: &Steps,
        beside: Beside<'_>,
        block: &mut Coded,
    ) -> Result<(), NoPicture> {
        self.code_inner(coder, beside, block)?;
        self.code_edges(coder, steps, beside, block)?;
        self.code_first(coder, steps, beside, block)?;
        block.look_at_ends(steps);
        Ok(())
    }

    fn code_inner(
        &mut self,
        coder: &mut impl Coder,
        Beside { left, above, corner, .. }: Beside<'_>,
        block: &mut Coded,
    ) -> Result<(), NoPicture> {
        let around = usize::from(left.inner + above.inner).div_ceil(2);
        let around = if around > 12 { 12 + (around - 12) / 3 } else { around };
        let odds = &mut self.inner_counts[around];
        let mut missing = code_count(coder, odds, usize::from(block.inner));
        if missing > INNER {
            return Err(NoPicture);
        }
        block.inner = missing as u8;
        let mut around = [0; 64];
        if missing > 0 {
            for (place, around) in around.iter_mut().enumerate() {
                let of = |block: &Coded| block.values[place].unsigned_abs();
                // At most 13 times 4094 and 6 times 2047.
                *around = (13 * (of(left) + of(above)) + 6 * of(corner)) / 4;
            }
        }
        for (number, place) in INNER_PLACES.into_iter().enumerate() {
            if missing == 0 {
                return Ok(());
            }
            let place = usize::from(place);
            let kind = bits_of(u32::from(around[place])).min(AROUND - 1);
            let kind = (number * AROUND + kind) * MISSING + usize::from(MISSING_KINDS[missing]);
            let value = block.values[place];
            let known = bits_of(absolute(value));
            let mut size = code_size(coder, &mut self.inner_sizes[kind], known);
            if size == FEW {
                let odds = &mut self.inner_large[number];
                size += code_size(coder, odds, known.saturating_sub(FEW));
            }
            if size > 0 {
                let is_negative = coder.raw(u32::from(value < 0), 1) == 1;
                let odds = &mut self.inner_high[number];
                let coded = code_low(coder, odds, size, absolute(value));
                block.set(place, signed(is_negative, coded));
                missing -= 1;
            }
        }
        if missing == 0 { Ok(()) } else { Err(NoPicture) }
    }

    fn code_edges(
        &mut self,
        coder: &mut impl Coder,
        steps: &Steps,
        Beside { left, above, .. }: Beside<'_>,
        block: &mut Coded,
    ) -> Result<(), NoPicture> {
        let inside = block.look_inside(steps);
        let inner = usize::from(MISSING_KINDS[usize::from(block.inner)]);
        for (edge, (along, other)) in [(SIDE, left), (1, above)].into_iter().enumerate() {
            let around = usize::from(left.edges[edge] + above.edges[edge]).div_ceil(2);
            let odds = &mut self.edge_counts[(edge * SIDE + around) * MISSING + inner];
            let mut missing = code_count(coder, odds, usize::from(block.edges[edge]));
            block.edges[edge] = missing as u8;
            for (number, inside) in (1..).zip(&inside[edge][1..]) {
                if missing == 0 {
                    break;
                }
                let (place, which) = (number * along, edge * (SIDE - 1) + number - 1);
                let foretold = other.ends[edge][number] - ROOT * inside;
                let foretold = steps.divide(foretold, place);
                let kind = bits_of(foretold.unsigned_abs()).min(FORETOLD - 1);
                let odds = &mut self.edge_sizes[(which * FORETOLD + kind) * SIDE + missing];
                let value = block.values[place];
                let size = code_size(coder, odds, bits_of(absolute(value)));
                if size > 0 {
                    let sign = (which * 3) as i32 + 1 + foretold.signum();
                    let odds = &mut self.edge_signs[sign as usize][kind.min(3)];
                    let is_negative = coder.bit(odds, value < 0);
                    let odds = &mut self.edge_high[which];
                    let coded = code_low(coder, odds, size, absolute(value));
                    block.set(place, signed(is_negative, coded));
                    missing -= 1;
                }
            }
            if missing > 0 {
                return Err(NoPicture);
            }
        }
        Ok(())
    }

    fn code_first(
        &mut self,
        coder: &mut impl Coder,
        steps: &Steps,
        Beside { left, above, is_there, .. }: Beside<'_>,
        block: &mut Coded,
    ) -> Result<(), NoPicture> {
        let by = |end: i32, across: usize| {
            let near: i32 =
                (1..SIDE).map(|number| steps.times(&block.values, number * across)).sum();
            steps.divide(end - ROOT * near, 0)
        };
        let (foretold, apart) = match is_there {
            [true, true] => {
                let (one, other) = (by(left.ends[0][0], 1), by(above.ends[1][0], SIDE));
                ((one + other) >> 1, bits_of((one - other).unsigned_abs()).min(APART - 3))
            }
            [true, false] => (by(left.ends[0][0], 1), APART - 2),
            [false, true] => (by(above.ends[1][0], SIDE), APART - 2),
            [false, false] => (0, APART - 1),
        };
        let foretold = foretold.clamp(-FIRST_MAX, FIRST_MAX);
        let more = i32::from(block.values[0]) - foretold;
        let inner = usize::from(MISSING_KINDS[usize::from(block.inner)]);
        let odds = &mut self.first_sizes[apart * MISSING + inner];
        let size = code_size(coder, odds, bits_of(more.unsigned_abs()));
        let is_negative = size > 0 && coder.bit(&mut self.first_sign, more < 0);
        let coded = code_low(coder, &mut self.first_high[apart], size, more.unsigned_abs());
        let value = foretold + i32::from(signed(is_negative, coded));
        if value.abs() > FIRST_MAX {
            return Err(NoPicture);
        }
        block.values[0] = value as i16;
        Ok(())
    }
}
