use super::*;
use crate::random::Random;

/// Reads what was coded again: the first value of each block of brightness, and demands that the codes end where the picture does.
fn read(bytes: &[u8]) -> (u16, u16, Vec<i32>) {
    assert_eq!(bytes[..2], [0xff, 0xd8]);
    let (mut at, mut size) = (2, (0, 0));
    let mut tables: [Vec<(u16, u8, u8)>; 2] = Default::default();
    loop {
        let (marker, length) = (bytes[at + 1], u16::from_be_bytes([bytes[at + 2], bytes[at + 3]]));
        let content = &bytes[at + 4..at + 2 + usize::from(length)];
        at += 2 + usize::from(length);
        match marker {
            0xc0 => {
                let number = |at| u16::from_be_bytes([content[at], content[at + 1]]);
                size = (number(3), number(1));
            }
            0xc4 => {
                let (mut code, mut values) = (0, content[17..].iter());
                for (length, count) in content[1..17].iter().enumerate() {
                    for value in values.by_ref().take(usize::from(*count)) {
                        tables[usize::from(content[0] >> 4)].push((code, length as u8 + 1, *value));
                        code += 1;
                    }
                    code <<= 1;
                }
            }
            0xda => break,
            _ => {}
        }
    }
    let (coded, end) = bytes[at..].split_at(bytes.len() - at - 2);
    assert_eq!(end, [0xff, 0xd9]);
    let mut bits = Bits { bytes: coded.to_vec(), at: 0 };
    let units = u32::from(size.0) * u32::from(size.1) / (UNIT * UNIT);
    let (mut light, mut before) = (Vec::new(), [0; 3]);
    for _ in 0..units {
        for component in [0, 0, 0, 0, 1, 2] {
            let length = bits.code(&tables[0]);
            before[component] += bits.value(length);
            if component == 0 {
                light.push(before[0]);
            }
            let mut place = 1;
            while place < 64 {
                let code = bits.code(&tables[1]);
                match code {
                    0 => break,
                    0xf0 => place += 16,
                    _ => {
                        bits.value(code & 15);
                        place += usize::from(code >> 4) + 1;
                    }
                }
            }
            assert!(place <= 64);
        }
    }
    assert!(bits.bytes.len() * 8 - bits.at < 16, "codes are left");
    (size.0, size.1, light)
}

struct Bits {
    bytes: Vec<u8>,
    at: usize,
}

impl Bits {
    fn bit(&mut self) -> u16 {
        let byte = self.at / 8;
        let bit = u16::from(self.bytes[byte] >> (7 - self.at % 8) & 1);
        self.at += 1;
        if self.at.is_multiple_of(8) && self.bytes[byte] == 0xff {
            assert_eq!(self.bytes[byte + 1], 0);
            self.at += 8;
        }
        bit
    }

    fn code(&mut self, table: &[(u16, u8, u8)]) -> u8 {
        let mut code = 0;
        for length in 1..=16 {
            code = code << 1 | self.bit();
            if let Some(found) = table.iter().find(|known| (known.0, known.1) == (code, length)) {
                return found.2;
            }
        }
        panic!("there is no such code");
    }

    fn value(&mut self, length: u8) -> i32 {
        let value = (0..length).fold(0, |value, _| value << 1 | i32::from(self.bit()));
        if length > 0 && value < 1 << (length - 1) { value + 1 - (1 << length) } else { value }
    }
}

/// From dark to light, from the left to the right.
struct Slope;

impl Scene for Slope {
    fn light(&mut self, x: u32, _y: u32) -> i32 {
        x as i32 * 4 - 128
    }

    fn colour(&mut self, which: usize, _x: u32, _y: u32) -> i32 {
        which as i32 * 50
    }
}

#[test]
fn what_was_coded_is_as_light_as_what_was_seen() {
    let (width, height, light) = read(&encode(&mut Slope, 64, 32));
    assert_eq!((width, height, light.len()), (64, 32, 32));
    // Of two units beside each other, the upper blocks: the mean of a block is an eighth of its first value.
    let upper = [light[0], light[1], light[4], light[5]];
    let means = upper.map(|value| value * 6 / 8);
    for (number, mean) in means.into_iter().enumerate() {
        let seen = number as i32 * 32 + 14 - 128;
        assert!((mean - seen).abs() <= 1, "{means:?}");
    }
}

#[test]
fn a_photograph_has_about_the_size_that_was_asked_for_and_can_be_read_to_its_end() {
    for size in [3000, 40_000] {
        let photo = photo::taken(size, &mut Random::new(size));
        let (width, height, light) = read(&photo.bytes);
        assert_eq!((u32::from(width), u32::from(height)), (photo.width, photo.height));
        let ratio = photo.bytes.len() as f64 / size as f64;
        assert!((0.6..1.5).contains(&ratio), "{ratio} of {size}");
        let (low, high) = (light.iter().min().unwrap(), light.iter().max().unwrap());
        assert!(high - low > 30, "{low} to {high}: nothing is to be seen");
    }
}
