//! Writes photographs as baseline JPEG: brightness in full and colours by half the width and height, cosine transform, quantisation, and
//! the Huffman codes that the standard gives as an example (T.81, annex K), as most cameras use them. One pair of code tables and one table of
//! steps serve brightness and colours alike.

pub(crate) mod photo;

/// What a picture shows at a place: brightness and the two colours, each from -128 to 127.
pub(crate) trait Scene {
    /// Brightness.
    fn light(&mut self, x: u32, y: u32) -> i32;

    /// One of the two colours.
    fn colour(&mut self, which: usize, x: u32, y: u32) -> i32;
}

/// Pixels to a side of what is coded at once: four blocks of brightness, one of each colour.
pub(crate) const UNIT: u32 = 16;

const SIDE: usize = 8;

/// Steps of quantisation for a quality of 50 of 100.
const STEPS: [u8; 64] = [
    16, 11, 10, 16, 24, 40, 51, 61, 12, 12, 14, 19, 26, 58, 60, 55, 14, 13, 16, 24, 40, 57, 69, 56,
    14, 17, 22, 29, 51, 87, 80, 62, 18, 22, 37, 56, 68, 109, 103, 77, 24, 35, 55, 64, 81, 104, 113,
    92, 49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98, 112, 100, 103, 99,
];

/// Steps are so many hundredths of those: a quality of 80.
const STEPS_PERCENT: u32 = 40;

/// In which order the values of a block are coded: where each is in its rows.
const ZIGZAG: [usize; 64] = [
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20,
    13, 6, 7, 14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59,
    52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
];

/// How many codes there are of 1 to 16 bits, and what they stand for: of the first value of a block, and of the others.
const FIRST_COUNTS: [u8; 16] = [0, 1, 5, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0];
const FIRST_VALUES: [u8; 12] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11];
const OTHER_COUNTS: [u8; 16] = [0, 2, 1, 3, 3, 2, 4, 3, 5, 5, 4, 4, 0, 0, 1, 0x7d];
const OTHER_VALUES: [u8; 162] = [
    0x01, 0x02, 0x03, 0x00, 0x04, 0x11, 0x05, 0x12, 0x21, 0x31, 0x41, 0x06, 0x13, 0x51, 0x61, 0x07,
    0x22, 0x71, 0x14, 0x32, 0x81, 0x91, 0xa1, 0x08, 0x23, 0x42, 0xb1, 0xc1, 0x15, 0x52, 0xd1, 0xf0,
    0x24, 0x33, 0x62, 0x72, 0x82, 0x09, 0x0a, 0x16, 0x17, 0x18, 0x19, 0x1a, 0x25, 0x26, 0x27, 0x28,
    0x29, 0x2a, 0x34, 0x35, 0x36, 0x37, 0x38, 0x39, 0x3a, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, 0x49,
    0x4a, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58, 0x59, 0x5a, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0x69,
    0x6a, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78, 0x79, 0x7a, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89,
    0x8a, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99, 0x9a, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7,
    0xa8, 0xa9, 0xaa, 0xb2, 0xb3, 0xb4, 0xb5, 0xb6, 0xb7, 0xb8, 0xb9, 0xba, 0xc2, 0xc3, 0xc4, 0xc5,
    0xc6, 0xc7, 0xc8, 0xc9, 0xca, 0xd2, 0xd3, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8, 0xd9, 0xda, 0xe1, 0xe2,
    0xe3, 0xe4, 0xe5, 0xe6, 0xe7, 0xe8, 0xe9, 0xea, 0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8,
    0xf9, 0xfa,
];

/// Half the cosine of so many sixteenths of half a turn.
const COSINES: [f32; 9] = [
    0.5,
    0.490_392_64,
    0.461_939_77,
    0.415_734_8,
    0.353_553_39,
    0.277_785_12,
    0.191_341_72,
    0.097_545_16,
    0.0,
];

type Block = [f32; 64];

/// Codes a scene; both lengths are multiples of [`UNIT`].
pub(crate) fn encode(scene: &mut impl Scene, width: u32, height: u32) -> Vec<u8> {
    assert!(width.is_multiple_of(UNIT) && height.is_multiple_of(UNIT), "{width} x {height}");
    let steps = STEPS.map(|step| (u32::from(step) * STEPS_PERCENT / 100).max(1) as u8);
    let mut coder = Coder::new(head(width as u16, height as u16, &steps), &steps);
    for top in (0..height).step_by(UNIT as usize) {
        for left in (0..width).step_by(UNIT as usize) {
            for (x, y) in [(0, 0), (8, 0), (0, 8), (8, 8)] {
                let block = block(|column, row| scene.light(left + x + column, top + y + row));
                coder.block(0, block);
            }
            for which in 0..2 {
                let (x, y) = (left / 2, top / 2);
                let block = block(|column, row| scene.colour(which, x + column, y + row));
                coder.block(1 + which, block);
            }
        }
    }
    coder.finish()
}

fn block(mut pixel: impl FnMut(u32, u32) -> i32) -> Block {
    let mut block = [0.0; 64];
    for (place, value) in block.iter_mut().enumerate() {
        *value = pixel((place % SIDE) as u32, (place / SIDE) as u32) as f32;
    }
    block
}

/// Writes everything in front of the codes.
fn head(width: u16, height: u16, steps: &[u8; 64]) -> Vec<u8> {
    let mut bytes = vec![0xff, 0xd8];
    let mut segment = |marker: u8, content: &[&[u8]]| {
        let content = content.concat();
        bytes.extend([0xff, marker]);
        bytes.extend((content.len() as u16 + 2).to_be_bytes());
        bytes.extend(content);
    };
    segment(0xe0, &[b"JFIF\0\x01\x01\0\0\x01\0\x01\0\0"]);
    segment(0xdb, &[&[0], &ZIGZAG.map(|place| steps[place])]);
    let size = [height.to_be_bytes(), width.to_be_bytes()].concat();
    segment(0xc0, &[&[8], &size, &[3, 1, 0x22, 0, 2, 0x11, 0, 3, 0x11, 0]]);
    segment(0xc4, &[&[0x00], &FIRST_COUNTS, &FIRST_VALUES]);
    segment(0xc4, &[&[0x10], &OTHER_COUNTS, &OTHER_VALUES]);
    segment(0xda, &[&[3, 1, 0, 2, 0, 3, 0, 0, 63, 0]]);
    bytes
}

/// The bits of each value's code, and how many they are.
fn codes(counts: &[u8; 16], values: &[u8]) -> [(u16, u8); 256] {
    let mut codes = [(0, 0); 256];
    let (mut code, mut values) = (0_u16, values.iter());
    for (length, count) in counts.iter().enumerate() {
        for value in values.by_ref().take(usize::from(*count)) {
            codes[usize::from(*value)] = (code, length as u8 + 1);
            code += 1;
        }
        code <<= 1;
    }
    codes
}

struct Coder {
    bytes: Vec<u8>,
    bits: u64,
    /// How many bits wait.
    waiting: u32,
    first: [(u16, u8); 256],
    other: [(u16, u8); 256],
    cosines: [[f32; SIDE]; SIDE],
    steps: [f32; 64],
    /// The first value of the block before, of each component.
    before: [i32; 3],
}

impl Coder {
    fn new(bytes: Vec<u8>, steps: &[u8; 64]) -> Self {
        let mut cosines = [[0.0; SIDE]; SIDE];
        for (frequency, row) in cosines.iter_mut().enumerate() {
            for (place, value) in row.iter_mut().enumerate() {
                let angle = (2 * place + 1) * frequency % 32;
                let angle = angle.min(32 - angle);
                *value = match frequency {
                    0 => COSINES[4],
                    _ if angle > 8 => -COSINES[16 - angle],
                    _ => COSINES[angle],
                };
            }
        }
        Self {
            bytes,
            bits: 0,
            waiting: 0,
            first: codes(&FIRST_COUNTS, &FIRST_VALUES),
            other: codes(&OTHER_COUNTS, &OTHER_VALUES),
            cosines,
            steps: steps.map(f32::from),
            before: [0; 3],
        }
    }

    fn block(&mut self, component: usize, block: Block) {
        let values = self.quantised(&block);
        let first = values[0] - self.before[component];
        self.before[component] = values[0];
        let size = size_of(first);
        self.put(self.first[size as usize]);
        self.put_value(first, size);
        let mut zeros = 0;
        for value in &values[1..] {
            if *value == 0 {
                zeros += 1;
                continue;
            }
            while zeros >= 16 {
                self.put(self.other[0xf0]);
                zeros -= 16;
            }
            let size = size_of(*value);
            self.put(self.other[zeros << 4 | size as usize]);
            self.put_value(*value, size);
            zeros = 0;
        }
        if zeros > 0 {
            self.put(self.other[0]);
        }
    }

    /// Transforms and rounds a block, in the order in which it is coded.
    fn quantised(&self, block: &Block) -> [i32; 64] {
        let turn = |block: &Block| {
            let mut turned = [0.0; 64];
            for (place, value) in turned.iter_mut().enumerate() {
                let (row, frequency) = (place % SIDE, place / SIDE);
                let pairs = self.cosines[frequency].iter().zip(&block[row * SIDE..]);
                *value = pairs.map(|(cosine, pixel)| cosine * pixel).sum();
            }
            turned
        };
        let values = turn(&turn(block));
        ZIGZAG.map(|place| (values[place] / self.steps[place]).round() as i32)
    }

    fn put(&mut self, (bits, count): (u16, u8)) {
        self.bits = self.bits << count | u64::from(bits);
        self.waiting += u32::from(count);
        while self.waiting >= 8 {
            self.waiting -= 8;
            let byte = (self.bits >> self.waiting) as u8;
            self.bytes.push(byte);
            if byte == 0xff {
                // Else it would be taken for a marker.
                self.bytes.push(0);
            }
        }
        self.bits &= (1 << self.waiting) - 1;
    }

    /// Puts a number of so many bits; negative ones are one less.
    fn put_value(&mut self, value: i32, size: u32) {
        let bits = if value < 0 { value - 1 } else { value };
        self.put((bits as u16 & ((1_u32 << size) - 1) as u16, size as u8));
    }

    fn finish(mut self) -> Vec<u8> {
        // What is left of the last byte is ones.
        self.put((0x7f, 7));
        self.bytes.extend([0xff, 0xd9]);
        self.bytes
    }
}

fn size_of(value: i32) -> u32 {
    i32::BITS - value.abs().leading_zeros()
}

#[cfg(test)]
mod tests;
