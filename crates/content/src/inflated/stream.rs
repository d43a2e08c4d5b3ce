//! One deflate stream: what it holds, and what else it takes to make the same stream of that again.
//!
//! *Participants*: writers, who have a stream that another program has made; readers, who have what somebody says of one. *Goals*: what it
//! takes beside what the stream holds is little. *Invariants*: a writer has made the stream again before it relies on that; a reader makes
//! no more bytes than the codes of what there is allow, and searches no more than [`SEARCH_MAX`].

use model::codec::{DecodeError, Decoder, Encoder};

use super::bits::{BitReader, BitWriter, NoStream};
use super::codes::{Codes, Symbol, Token};
use super::predict::{BEGIN_COST, LEVELS, Predictor};

/// How many places are looked at for the streams of a file at most.
pub(super) const SEARCH_MAX: u64 = 1 << 28;

/// How many tokens are foretold to choose a level.
const TRIED: usize = 8192;

/// As how many bytes it counts to have tried to read a stream.
const ATTEMPT: usize = 64;

/// How blocks are said, by a number in two bits.
const STORED: u32 = 0;
const FIXED: u32 = 1;
const OWN: u32 = 2;

/// How many blocks a stream has at most that holds so many bytes.
fn blocks_max(plain_length: usize) -> usize {
    64 + plain_length / 64
}

/// A block of a stream.
#[derive(Debug)]
enum Block {
    /// So many bytes as they are.
    Stored(usize),
    /// So many tokens in the codes that need not be said.
    Fixed(usize),
    /// So many tokens in codes that stand in so many bits.
    Own(usize, Bits),
}

#[derive(Debug)]
struct Bits {
    bytes: Vec<u8>,
    count: usize,
}

/// A stream that was read.
#[derive(Debug)]
pub(super) struct Stream {
    /// What it holds.
    pub(super) plain: Vec<u8>,
    /// How many bytes it takes.
    pub(super) length: usize,
    tokens: Vec<Token>,
    blocks: Vec<Block>,
}

impl Stream {
    /// Reads the stream that begins with these bytes; one that holds more bytes than `plain_max` is none. Adds to `work` how many were made.
    pub(super) fn read(bytes: &[u8], plain_max: usize, work: &mut usize) -> Result<Self, NoStream> {
        let (plain, tokens, blocks) = (Vec::new(), Vec::new(), Vec::new());
        let mut stream = Self { plain, length: 0, tokens, blocks };
        let mut from = BitReader::new(bytes);
        let read = loop {
            match stream.read_block(&mut from, bytes, plain_max) {
                Ok(false) => {}
                Ok(true) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        *work += ATTEMPT + stream.plain.len();
        read?;
        stream.length = from.place().div_ceil(8);
        Ok(stream)
    }

    /// Reads a block, and tells whether it is the last.
    fn read_block(
        &mut self,
        from: &mut BitReader<'_>,
        bytes: &[u8],
        plain_max: usize,
    ) -> Result<bool, NoStream> {
        if self.blocks.len() >= blocks_max(self.plain.len()) {
            return Err(NoStream);
        }
        let is_last = from.take(1)? == 1;
        let tokens = self.tokens.len();
        match from.take(2)? {
            STORED => {
                from.take((8 - from.place() as u32 % 8) % 8)?;
                let (length, check) = (from.take(16)?, from.take(16)?);
                if length ^ check != 0xffff || self.plain.len() + length as usize > plain_max {
                    return Err(NoStream);
                }
                for _ in 0..length {
                    self.plain.push(from.take(8)? as u8);
                }
                self.blocks.push(Block::Stored(length as usize));
            }
            FIXED => {
                self.read_tokens(from, Codes::fixed(), plain_max)?;
                self.blocks.push(Block::Fixed(self.tokens.len() - tokens));
            }
            OWN => {
                let mut start = from.clone();
                let codes = Codes::read(from)?;
                let count = from.place() - start.place();
                let mut bits = BitWriter::default();
                bits.copy(&mut start, count)?;
                self.read_tokens(from, &codes, plain_max)?;
                let bits = Bits { bytes: bits.into_bytes(), count };
                self.blocks.push(Block::Own(self.tokens.len() - tokens, bits));
            }
            _ => return Err(NoStream),
        }
        debug_assert!(from.place() <= bytes.len() * 8, "no more bits are taken than there are");
        Ok(is_last)
    }

    fn read_tokens(
        &mut self,
        from: &mut BitReader<'_>,
        codes: &Codes,
        plain_max: usize,
    ) -> Result<(), NoStream> {
        loop {
            let token = match codes.next(from)? {
                Symbol::End => return Ok(()),
                Symbol::Literal(byte) => {
                    self.plain.push(byte);
                    Token::Literal
                }
                Symbol::Match { length, distance } => {
                    let start =
                        self.plain.len().checked_sub(usize::from(distance)).ok_or(NoStream)?;
                    for place in start..start + usize::from(length) {
                        self.plain.push(self.plain[place]);
                    }
                    Token::Match { length, distance }
                }
            };
            if self.plain.len() > plain_max {
                return Err(NoStream);
            }
            self.tokens.push(token);
        }
    }

    /// Returns what it takes to make the stream again of what it holds; nothing where that has more bytes than `length_max`, or is not found out
    /// before `search` is used up.
    pub(super) fn recipe(&self, length_max: usize, search: &mut u64) -> Option<Vec<u8>> {
        let mut encoder = Encoder::default();
        let level = self.level(search)?;
        encoder.raw(&[level]);
        encoder.unsigned(self.blocks.len() as u64);
        for block in &self.blocks {
            match block {
                Block::Stored(length) => {
                    encoder.unsigned((*length as u64) << 2 | u64::from(STORED));
                }
                Block::Fixed(tokens) => encoder.unsigned((*tokens as u64) << 2 | u64::from(FIXED)),
                Block::Own(tokens, bits) => {
                    encoder.unsigned((*tokens as u64) << 2 | u64::from(OWN));
                    encoder.unsigned(bits.count as u64);
                    encoder.raw(&bits.bytes);
                }
            }
        }
        let (mut right, mut wrong) = (0, 0);
        self.foretell(level, self.tokens.len(), search, &mut |token, foretold| {
            if token == foretold {
                right += 1;
                return true;
            }
            encoder.unsigned(right);
            (right, wrong) = (0, wrong + 1);
            match token {
                Token::Literal => encoder.unsigned(0),
                Token::Match { length, distance } => {
                    encoder.unsigned(u64::from(length));
                    encoder.unsigned(u64::from(distance));
                }
            }
            // Each takes two bytes at least.
            wrong <= length_max / 2
        })?;
        Some(encoder.into_bytes()).filter(|recipe| recipe.len() <= length_max)
    }

    /// Returns the level at which most of the first tokens are foretold.
    fn level(&self, search: &mut u64) -> Option<u8> {
        let (mut best, mut fewest) = (*LEVELS.start(), usize::MAX);
        // Most programs say nothing, which is 6, or want the smallest.
        for level in [6, 9, 8, 5, 7, 4, 3, 2, 1] {
            let mut wrong = 0;
            self.foretell(level, TRIED, search, &mut |token, foretold| {
                wrong += usize::from(token != foretold);
                wrong < fewest
            })?;
            if wrong < fewest {
                (best, fewest) = (level, wrong);
            }
            if wrong == 0 {
                break;
            }
        }
        Some(best)
    }

    /// Tells of each token what it is and what was foretold, as long as that is wanted. Returns nothing where that uses up `search`, from which it
    /// takes how many places were looked at.
    fn foretell(
        &self,
        level: u8,
        count: usize,
        search: &mut u64,
        hear: &mut dyn FnMut(Token, Token) -> bool,
    ) -> Option<()> {
        let mut predictor = Predictor::new(&self.plain, level);
        let mut tokens = self.tokens.iter().take(count);
        'stream: for block in &self.blocks {
            if let Block::Own(..) = block {
                predictor.count_codes();
            }
            match block {
                Block::Stored(length) => (0..*length).for_each(|_| predictor.go_on(Token::Literal)),
                Block::Fixed(count) | Block::Own(count, _) => {
                    for token in tokens.by_ref().take(*count) {
                        let foretold = predictor.predict();
                        if !hear(*token, foretold) || predictor.looked() > *search {
                            break 'stream;
                        }
                        predictor.go_on(*token);
                    }
                }
            }
            if tokens.len() == 0 {
                break;
            }
        }
        let left = search.checked_sub(predictor.looked());
        *search = left.unwrap_or_default();
        left.map(drop)
    }
}

/// Makes a stream again of what it holds and of its recipe. Takes from `search` how many places may be looked at.
pub(super) fn make(plain: &[u8], recipe: &[u8], search: &mut u64) -> Result<Vec<u8>, DecodeError> {
    let mut recipe = Decoder::new(recipe);
    let level = recipe.array::<1>()?[0];
    if !LEVELS.contains(&level) {
        return Err(recipe.invalid("level", level));
    }
    if *search < BEGIN_COST {
        // Before anything is allocated for it.
        return Err(too_long(&recipe));
    }
    let count = recipe.unsigned_max(blocks_max(plain.len()) as u64)?;
    let mut blocks = Vec::new();
    for _ in 0..count {
        let word = recipe.unsigned()?;
        // Each token makes a byte at least.
        let length = usize::try_from(word >> 2).ok().filter(|length| *length <= plain.len());
        let length = length.ok_or_else(|| recipe.invalid("block", "longer than the stream"))?;
        blocks.push(match (word & 3) as u32 {
            STORED if length <= 0xffff => Block::Stored(length),
            FIXED => Block::Fixed(length),
            OWN => {
                let count = recipe.unsigned_max(8 * recipe.remaining() as u64)? as usize;
                let bytes = recipe.raw(count.div_ceil(8))?.to_vec();
                Block::Own(length, Bits { bytes, count })
            }
            _ => return Err(recipe.invalid("block", "of no kind")),
        });
    }
    let mut maker = Maker {
        plain,
        predictor: Predictor::new(plain, level),
        right: None,
        search_max: *search,
        recipe,
        out: BitWriter::default(),
    };
    let mut numbered = blocks.iter().zip(1..);
    let done = numbered.try_for_each(|(block, number)| maker.block(block, number == blocks.len()));
    let Maker { predictor, recipe, out, .. } = maker;
    *search = search.saturating_sub(predictor.looked());
    done?;
    if predictor.place() != plain.len() {
        return Err(recipe.invalid("blocks", "they hold fewer bytes than the stream"));
    }
    recipe.finish()?;
    Ok(out.into_bytes())
}

fn too_long(recipe: &Decoder<'_>) -> DecodeError {
    recipe.invalid("stream", "it takes too long to make")
}

/// Makes a stream block by block.
struct Maker<'a> {
    plain: &'a [u8],
    predictor: Predictor<'a>,
    /// How many tokens are still foretold rightly, once that was read.
    right: Option<u64>,
    /// How many places may be looked at.
    search_max: u64,
    recipe: Decoder<'a>,
    out: BitWriter,
}

impl Maker<'_> {
    fn block(&mut self, block: &Block, is_last: bool) -> Result<(), DecodeError> {
        self.out.put(u32::from(is_last), 1);
        let no_code =
            |maker: &Self| maker.recipe.invalid("block", "its codes do not say what it holds");
        let own;
        let codes = match block {
            Block::Stored(length) => return self.stored(*length),
            Block::Fixed(_) => {
                self.out.put(FIXED, 2);
                Codes::fixed()
            }
            Block::Own(_, bits) => {
                self.predictor.count_codes();
                self.in_time()?;
                self.out.put(OWN, 2);
                let mut from = BitReader::new(&bits.bytes);
                let copied = self.out.copy(&mut from, bits.count);
                copied.map_err(|NoStream| no_code(self))?;
                let read = Codes::read(&mut BitReader::new(&bits.bytes));
                own = read.map_err(|NoStream| no_code(self))?;
                &own
            }
        };
        let (Block::Stored(count) | Block::Fixed(count) | Block::Own(count, _)) = block;
        for _ in 0..*count {
            let place = self.predictor.place();
            let Some(byte) = self.plain.get(place) else {
                return Err(self.recipe.invalid("block", "it holds more bytes than the stream"));
            };
            let foretold = self.predictor.predict();
            self.in_time()?;
            let token = self.token(foretold)?;
            if place + token.len() > self.plain.len() {
                return Err(self.recipe.invalid("token", "it reaches beyond the stream"));
            }
            codes.write(token, *byte, &mut self.out).map_err(|NoStream| no_code(self))?;
            self.predictor.go_on(token);
        }
        codes.write_end(&mut self.out).map_err(|NoStream| no_code(self))
    }

    fn in_time(&self) -> Result<(), DecodeError> {
        if self.predictor.looked() > self.search_max { Err(too_long(&self.recipe)) } else { Ok(()) }
    }

    fn stored(&mut self, length: usize) -> Result<(), DecodeError> {
        let start = self.predictor.place();
        let Some(bytes) = self.plain.get(start..start + length) else {
            return Err(self.recipe.invalid("block", "it holds more bytes than the stream"));
        };
        self.out.put(STORED, 2);
        self.out.align();
        self.out.put(length as u32, 16);
        self.out.put(length as u32 ^ 0xffff, 16);
        for byte in bytes {
            self.out.put(u32::from(*byte), 8);
            self.predictor.go_on(Token::Literal);
        }
        Ok(())
    }

    /// Returns the token that there is where this one is foretold.
    fn token(&mut self, foretold: Token) -> Result<Token, DecodeError> {
        let right = match self.right {
            Some(right) => right,
            None if self.recipe.remaining() == 0 => u64::MAX,
            None => self.recipe.unsigned()?,
        };
        self.right = right.checked_sub(1);
        if right > 0 {
            return Ok(foretold);
        }
        let length = self.recipe.unsigned_max(258)? as u16;
        if length == 0 {
            return Ok(Token::Literal);
        }
        let distance = self.recipe.unsigned_max(32 * 1024)? as u16;
        Ok(Token::Match { length, distance })
    }
}
