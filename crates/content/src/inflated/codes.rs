//! The codes of a block: how many bits each symbol takes, and which (RFC 1951, section 3.2).

use std::sync::LazyLock;

use super::bits::{BitReader, BitWriter, NoStream};

/// The longest code in bits.
const LENGTH_MAX: usize = 15;

/// How many bits are looked up at once.
const ROOT_BITS: u32 = 9;

/// The symbol that ends a block.
pub(super) const END: usize = 256;

/// How many symbols there are for literals and lengths, and for distances.
const LITERALS: usize = 288;
const DISTANCES: usize = 32;

/// In which order the lengths of the codes of code lengths stand.
const ORDER: [usize; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

/// From which length on each of the symbols from 257 counts, and how many bits follow it.
const LENGTHS: [(u16, u32); 29] = [
    (3, 0),
    (4, 0),
    (5, 0),
    (6, 0),
    (7, 0),
    (8, 0),
    (9, 0),
    (10, 0),
    (11, 1),
    (13, 1),
    (15, 1),
    (17, 1),
    (19, 2),
    (23, 2),
    (27, 2),
    (31, 2),
    (35, 3),
    (43, 3),
    (51, 3),
    (59, 3),
    (67, 4),
    (83, 4),
    (99, 4),
    (115, 4),
    (131, 5),
    (163, 5),
    (195, 5),
    (227, 5),
    (258, 0),
];

/// The same for distances.
const DISTANCE: [(u16, u32); 30] = [
    (1, 0),
    (2, 0),
    (3, 0),
    (4, 0),
    (5, 1),
    (7, 1),
    (9, 2),
    (13, 2),
    (17, 3),
    (25, 3),
    (33, 4),
    (49, 4),
    (65, 5),
    (97, 5),
    (129, 6),
    (193, 6),
    (257, 7),
    (385, 7),
    (513, 8),
    (769, 8),
    (1025, 9),
    (1537, 9),
    (2049, 10),
    (3073, 10),
    (4097, 11),
    (6145, 11),
    (8193, 12),
    (12289, 12),
    (16385, 13),
    (24577, 13),
];

/// What stands in a stream: one byte, or so many bytes from so far back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token {
    Literal,
    Match { length: u16, distance: u16 },
}

impl Token {
    /// Returns how many bytes it makes.
    pub(super) fn len(self) -> usize {
        match self {
            Self::Literal => 1,
            Self::Match { length, .. } => usize::from(length),
        }
    }
}

/// A prefix code.
struct Code {
    /// Of each symbol, how many bits it takes, 0 for none, and which, in the order in which they are written.
    words: Vec<(u8, u16)>,
    /// By the next bits: a symbol and its length, which is 0 where it is longer.
    root: Vec<(u16, u8)>,
    /// By length: how many codes there are, for what the root does not have.
    counts: [u16; LENGTH_MAX + 1],
    /// The symbols by their codes.
    sorted: Vec<u16>,
}

impl Code {
    /// Makes the code in which symbols have these lengths. One that leaves room is no code, but for that of a single symbol or none.
    fn new(lengths: &[u8]) -> Result<Self, NoStream> {
        let mut counts = [0_u16; LENGTH_MAX + 1];
        for length in lengths {
            counts[usize::from(*length)] += 1;
        }
        let used = lengths.len() - usize::from(counts[0]);
        counts[0] = 0;
        let (mut next, mut code, mut left) = ([0_u16; LENGTH_MAX + 2], 0_u32, 1_i32);
        for length in 1..=LENGTH_MAX {
            left = (left << 1) - i32::from(counts[length]);
            if left < 0 {
                return Err(NoStream);
            }
            next[length] = code as u16;
            code = (code + u32::from(counts[length])) << 1;
        }
        if left > 0 && used > 1 {
            return Err(NoStream);
        }
        let mut starts = [0_usize; LENGTH_MAX + 2];
        for length in 1..=LENGTH_MAX {
            starts[length + 1] = starts[length] + usize::from(counts[length]);
        }
        let (mut words, mut sorted) = (vec![(0, 0); lengths.len()], vec![0; used]);
        let mut root = vec![(0, 0); 1 << ROOT_BITS];
        for (symbol, length) in lengths.iter().enumerate().filter(|(_, length)| **length > 0) {
            let bits = usize::from(*length);
            sorted[starts[bits]] = symbol as u16;
            starts[bits] += 1;
            let reversed = next[bits].reverse_bits() >> (16 - bits);
            next[bits] += 1;
            words[symbol] = (*length, reversed);
            if u32::from(*length) <= ROOT_BITS {
                for place in (usize::from(reversed)..1 << ROOT_BITS).step_by(1 << bits) {
                    root[place] = (symbol as u16, *length);
                }
            }
        }
        Ok(Self { words, root, counts, sorted })
    }

    fn read(&self, from: &mut BitReader<'_>) -> Result<usize, NoStream> {
        let (symbol, length) = self.root[from.peek(ROOT_BITS) as usize];
        if length > 0 {
            from.take(u32::from(length))?;
            return Ok(usize::from(symbol));
        }
        // Bit by bit, as codes of one length are numbers that follow each other.
        let (mut code, mut first, mut index) = (0_i32, 0_i32, 0_i32);
        for count in &self.counts[1..] {
            code |= from.take(1)? as i32;
            let count = i32::from(*count);
            if code - count < first {
                return Ok(usize::from(self.sorted[(index + code - first) as usize]));
            }
            index += count;
            first = (first + count) << 1;
            code <<= 1;
        }
        Err(NoStream)
    }

    fn write(&self, symbol: usize, to: &mut BitWriter) -> Result<(), NoStream> {
        match self.words.get(symbol) {
            Some((length @ 1.., word)) => {
                to.put(u32::from(*word), u32::from(*length));
                Ok(())
            }
            _ => Err(NoStream),
        }
    }
}

/// The two codes of a block.
pub(super) struct Codes {
    literals: Code,
    distances: Code,
}

/// What was read of a block.
pub(super) enum Symbol {
    Literal(u8),
    End,
    Match { length: u16, distance: u16 },
}

impl Codes {
    /// Those of a block that has none of its own.
    pub(super) fn fixed() -> &'static Self {
        static FIXED: LazyLock<Codes> = LazyLock::new(Codes::make_fixed);
        &FIXED
    }

    fn make_fixed() -> Self {
        let mut lengths = [8_u8; LITERALS];
        lengths[144..256].fill(9);
        lengths[256..280].fill(7);
        let whole = "the fixed codes are whole";
        Self {
            literals: Code::new(&lengths).expect(whole),
            distances: Code::new(&[5; DISTANCES]).expect(whole),
        }
    }

    /// Reads those that stand at the beginning of a block.
    pub(super) fn read(from: &mut BitReader<'_>) -> Result<Self, NoStream> {
        let literals = from.take(5)? as usize + 257;
        let distances = from.take(5)? as usize + 1;
        let own = from.take(4)? as usize + 4;
        if literals > 286 || distances > 30 {
            return Err(NoStream);
        }
        let mut lengths = [0; ORDER.len()];
        for place in &ORDER[..own] {
            lengths[*place] = from.take(3)? as u8;
        }
        let code = Code::new(&lengths)?;
        let mut lengths: Vec<u8> = Vec::with_capacity(literals + distances);
        while lengths.len() < literals + distances {
            let (value, count) = match code.read(from)? {
                16 => (*lengths.last().ok_or(NoStream)?, 3 + from.take(2)? as usize),
                17 => (0, 3 + from.take(3)? as usize),
                18 => (0, 11 + from.take(7)? as usize),
                length => (length as u8, 1),
            };
            if lengths.len() + count > literals + distances {
                return Err(NoStream);
            }
            lengths.resize(lengths.len() + count, value);
        }
        // A block without an end is none.
        if lengths[END] == 0 {
            return Err(NoStream);
        }
        let (literals, distances) = lengths.split_at(literals);
        Ok(Self { literals: Code::new(literals)?, distances: Code::new(distances)? })
    }

    /// Reads what comes next.
    pub(super) fn next(&self, from: &mut BitReader<'_>) -> Result<Symbol, NoStream> {
        let symbol = self.literals.read(from)?;
        if symbol < END {
            return Ok(Symbol::Literal(symbol as u8));
        }
        if symbol == END {
            return Ok(Symbol::End);
        }
        let (length, more) = *LENGTHS.get(symbol - END - 1).ok_or(NoStream)?;
        let length = length + from.take(more)? as u16;
        let (distance, more) = *DISTANCE.get(self.distances.read(from)?).ok_or(NoStream)?;
        let distance = distance + from.take(more)? as u16;
        Ok(Symbol::Match { length, distance })
    }

    /// Writes a token; `byte` is what a literal is.
    pub(super) fn write(&self, token: Token, byte: u8, to: &mut BitWriter) -> Result<(), NoStream> {
        let Token::Match { length, distance } = token else {
            return self.literals.write(usize::from(byte), to);
        };
        let (symbol, more, count) = word(&LENGTHS, length)?;
        self.literals.write(END + 1 + symbol, to)?;
        to.put(more, count);
        let (symbol, more, count) = word(&DISTANCE, distance)?;
        self.distances.write(symbol, to)?;
        to.put(more, count);
        Ok(())
    }

    /// Writes the end of the block.
    pub(super) fn write_end(&self, to: &mut BitWriter) -> Result<(), NoStream> {
        self.literals.write(END, to)
    }
}

/// Returns by which symbol of a table a number is said, and with which bits behind it.
fn word(table: &[(u16, u32)], number: u16) -> Result<(usize, u32, u32), NoStream> {
    let symbol = table.partition_point(|(from, _)| *from <= number).checked_sub(1);
    let symbol = symbol.ok_or(NoStream)?;
    let (from, count) = table[symbol];
    let more = u32::from(number - from);
    if more >> count > 0 { Err(NoStream) } else { Ok((symbol, more, count)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_and_distance_comes_back() {
        let codes = Codes::fixed();
        let mut writer = BitWriter::default();
        let all: Vec<(u16, u16)> = (3..=258)
            .map(|length| (length, length * 100))
            .chain((1..=32768).step_by(37).map(|distance| (3, distance as u16)))
            .collect();
        for (length, distance) in &all {
            let token = Token::Match { length: *length, distance: *distance };
            codes.write(token, 0, &mut writer).expect("there is a code");
        }
        codes.write(Token::Literal, 255, &mut writer).expect("there is a code");
        codes.write_end(&mut writer).expect("there is a code");
        let bytes = writer.into_bytes();
        let mut reader = BitReader::new(&bytes);
        for (length, distance) in &all {
            let symbol = codes.next(&mut reader).expect("there");
            assert!(
                matches!(symbol, Symbol::Match { length: l, distance: d } if (l, d) == (*length, *distance))
            );
        }
        assert!(matches!(codes.next(&mut reader), Ok(Symbol::Literal(255))));
        assert!(matches!(codes.next(&mut reader), Ok(Symbol::End)));
        for (length, distance) in [(0, 1), (2, 1), (259, 1), (3, 0), (3, 32769)] {
            let token = Token::Match { length, distance };
            assert!(codes.write(token, 0, &mut BitWriter::default()).is_err());
        }
    }

    #[test]
    fn lengths_that_make_no_code_are_refused() {
        assert!(Code::new(&[1, 1, 1]).is_err(), "too many");
        assert!(Code::new(&[2, 2, 2]).is_err(), "too few");
        assert!(Code::new(&[0, 1]).is_ok() && Code::new(&[0, 0]).is_ok());
        let code = Code::new(&[0, 1]).expect("one symbol");
        assert!(code.write(0, &mut BitWriter::default()).is_err());
        assert!(code.read(&mut BitReader::new(&[0xff, 0xff])).is_err());
    }
}
