//! Something to take a photograph of: hills of light and colour of several sizes, and the grain of a sensor.

use super::{Scene, UNIT};
use crate::random::Random;

/// Hills are so wide, in powers of two of pixels, and so high.
const HILLS: [(u32, i32); 4] = [(8, 60), (6, 36), (4, 18), (2, 9)];

/// The hills of colours.
const COLOUR_HILLS: [(u32, i32); 2] = [(7, 40), (4, 8)];

/// How far grain is from what it covers, at most.
const GRAIN: u64 = 5;

/// Photographs of this kind take about so many pixels for a byte.
const PIXELS_PER_BYTE: f64 = 6.6;

struct Landscape {
    seed: u64,
    grain: Random,
}

/// Takes a photograph of about so many bytes.
pub(crate) fn taken(size: u64, random: &mut Random) -> Photo {
    let pixels = size as f64 * PIXELS_PER_BYTE;
    let units = |length: f64| (length / f64::from(UNIT)).round().max(1.0) as u32;
    // Four to three, as most cameras have it.
    let (width, height) = (units((pixels * 4.0 / 3.0).sqrt()), units((pixels * 0.75).sqrt()));
    let (width, height) = (width * UNIT, height * UNIT);
    let mut scene = Landscape { seed: random.next(), grain: Random::new(random.next()) };
    Photo { width, height, bytes: super::encode(&mut scene, width, height) }
}

/// A photograph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Photo {
    /// In pixels.
    pub(crate) width: u32,
    /// In pixels.
    pub(crate) height: u32,
    /// A file.
    pub(crate) bytes: Vec<u8>,
}

impl Landscape {
    fn hills(&self, kind: u64, hills: &[(u32, i32)], x: u32, y: u32) -> i32 {
        hills.iter().map(|(width, height)| self.hill(kind, *width, x, y) * height / 256).sum()
    }

    /// Returns a height from -256 to 255: between the heights of the four corners around a place.
    fn hill(&self, kind: u64, width: u32, x: u32, y: u32) -> i32 {
        let (left, top) = (x >> width, y >> width);
        let (right, down) = ((x & ((1 << width) - 1)) as i32, (y & ((1 << width) - 1)) as i32);
        let corner = |x: u32, y: u32| self.corner(kind, width, x, y);
        let between = |from: i32, to: i32, part: i32| from + (((to - from) * part) >> width);
        let upper = between(corner(left, top), corner(left + 1, top), right);
        let lower = between(corner(left, top + 1), corner(left + 1, top + 1), right);
        between(upper, lower, down)
    }

    fn corner(&self, kind: u64, width: u32, x: u32, y: u32) -> i32 {
        let place = u64::from(x) << 40 | u64::from(y) << 16 | u64::from(width) << 8 | kind;
        let value = Random::new(self.seed ^ place.wrapping_mul(0x9e37_79b9_7f4a_7c15)).next();
        (value & 511) as i32 - 256
    }
}

impl Scene for Landscape {
    fn light(&mut self, x: u32, y: u32) -> i32 {
        let grain = (self.grain.next() >> 32) % (2 * GRAIN + 1);
        (self.hills(0, &HILLS, x, y) + grain as i32 - GRAIN as i32).clamp(-128, 127)
    }

    fn colour(&mut self, which: usize, x: u32, y: u32) -> i32 {
        self.hills(1 + which as u64, &COLOUR_HILLS, x, y).clamp(-128, 127)
    }
}
