//! Foretells the tokens of a stream from what it holds: does what the encoder has done, if it was zlib.
//!
//! *Goals*: of the usual encoders most tokens are foretold, and of zlib all. *Invariants*: what is foretold follows from the bytes, the
//! level and the tokens before, on every computer and for ever: it is part of the format.
//!
//! That an encoder can be foretold, and its stream be kept as what was foretold wrongly, is due to Steinke's preflate (2018); what is
//! foretold here is written from the description of zlib's matches, "fast" and "lazy", in RFC 1951, section 4, and zlib's table of levels.

use std::ops::RangeInclusive;

use super::codes::Token;

/// The levels of zlib.
pub(super) const LEVELS: RangeInclusive<u8> = 1..=9;

/// The shortest and the longest match.
const MATCH_MIN: usize = 3;
const MATCH_MAX: usize = 258;

/// How far back matches lie: the window without what is looked ahead.
const WINDOW: usize = 32 * 1024;
const DISTANCE_MAX: usize = WINDOW - (MATCH_MAX + MATCH_MIN + 1);

/// A lazy encoder takes no match of three bytes that lies further back.
const SHORT_DISTANCE_MAX: usize = 4096;

/// How many bits a hash has, and how far it is shifted for a byte.
const HASH_BITS: u32 = 15;
const HASH_SHIFT: u32 = 5;

/// As how many places it counts to begin a stream: all that can be remembered is made anew.
pub(super) const BEGIN_COST: u64 = 4096;

/// As how many places it counts to read the codes of a block.
pub(super) const CODES_COST: u64 = 512;

/// How hard an encoder searches.
#[derive(Debug, Clone, Copy)]
struct Effort {
    /// A quarter of the places is enough once there is a match of this length.
    good: usize,
    /// A match of this length or less is not taken at once, but only if there is no longer one at the next byte; a fast encoder finds
    /// nothing again within one that is longer.
    lazy: usize,
    /// A match of this length is long enough.
    nice: usize,
    /// How many places are looked at.
    places: u32,
    is_fast: bool,
}

const fn effort(good: usize, lazy: usize, nice: usize, places: u32, is_fast: bool) -> Effort {
    Effort { good, lazy, nice, places, is_fast }
}

/// By level, from 1 on.
const EFFORTS: [Effort; 9] = [
    effort(4, 4, 8, 4, true),
    effort(4, 5, 16, 8, true),
    effort(4, 6, 32, 32, true),
    effort(4, 4, 16, 16, false),
    effort(8, 16, 32, 32, false),
    effort(8, 16, 128, 128, false),
    effort(8, 32, 128, 256, false),
    effort(32, 128, 258, 1024, false),
    effort(32, 258, 258, 4096, false),
];

/// A match that was found.
#[derive(Debug, Clone, Copy)]
struct Found {
    length: usize,
    distance: usize,
}

/// Nothing was found.
const NONE: Found = Found { length: MATCH_MIN - 1, distance: 0 };

/// Foretells one token after the other.
pub(super) struct Predictor<'a> {
    plain: &'a [u8],
    effort: Effort,
    /// By hash, the last place that had it; 0 for none, as the first place is never found again.
    heads: Vec<u32>,
    /// By the lowest bits of a place, the one before it that had the same hash.
    before: Vec<u32>,
    /// Up to where places can be found.
    entered: usize,
    /// Where the next token begins.
    place: usize,
    /// What was found there when the token before was foretold.
    ahead: Option<Found>,
    /// How many places were looked at.
    looked: u64,
}

impl<'a> Predictor<'a> {
    /// Begins a stream that holds these bytes; the level is one of [`LEVELS`].
    pub(super) fn new(plain: &'a [u8], level: u8) -> Self {
        Self {
            plain,
            effort: EFFORTS[usize::from(level) - 1],
            heads: vec![0; 1 << HASH_BITS],
            before: vec![0; WINDOW],
            entered: 0,
            place: 0,
            ahead: None,
            looked: BEGIN_COST,
        }
    }

    /// Counts that the codes of a block are read.
    pub(super) fn count_codes(&mut self) {
        self.looked += CODES_COST;
    }

    /// Returns how many places were looked at until now, and as how many it counts what else was done.
    pub(super) fn looked(&self) -> u64 {
        self.looked
    }

    /// Returns where the next token begins.
    pub(super) fn place(&self) -> usize {
        self.place
    }

    /// Foretells the next token; there is a byte at least.
    pub(super) fn predict(&mut self) -> Token {
        let here = match self.ahead.take() {
            Some(found) => found,
            None => self.search(self.place, NONE.length),
        };
        if here.length < MATCH_MIN {
            return Token::Literal;
        }
        if !self.effort.is_fast && here.length < self.effort.lazy {
            let next = self.search(self.place + 1, here.length);
            if next.length > here.length {
                self.ahead = Some(next);
                return Token::Literal;
            }
        }
        Token::Match { length: here.length as u16, distance: here.distance as u16 }
    }

    /// Goes on behind the token that there is.
    pub(super) fn go_on(&mut self, token: Token) {
        if token != Token::Literal {
            self.ahead = None;
        }
        let (start, end) = (self.place, self.place + token.len());
        self.enter(start + 1);
        if self.effort.is_fast && token.len() > self.effort.lazy {
            self.entered = self.entered.max(end);
        } else {
            self.enter(end);
        }
        self.place = end;
    }

    /// Lets places up to this one be found.
    fn enter(&mut self, end: usize) {
        while self.entered < end {
            let place = self.entered;
            self.entered += 1;
            let Some([a, b, c]) = self.plain.get(place..).and_then(<[u8]>::first_chunk) else {
                continue;
            };
            let [a, b, c] = [*a, *b, *c].map(u32::from);
            let hash = a << (2 * HASH_SHIFT) ^ b << HASH_SHIFT ^ c;
            let head = &mut self.heads[hash as usize & ((1 << HASH_BITS) - 1)];
            self.before[place % WINDOW] = *head;
            *head = place as u32;
        }
    }

    /// Looks for a match that is longer than what there is already.
    fn search(&mut self, place: usize, known: usize) -> Found {
        self.enter(place + 1);
        let rest = self.plain.get(place..).unwrap_or_default();
        if rest.len() < MATCH_MIN {
            return NONE;
        }
        let rest = &rest[..rest.len().min(MATCH_MAX)];
        let Effort { good, nice, places, .. } = self.effort;
        let nice = nice.min(rest.len());
        let mut left = if known >= good { places / 4 } else { places };
        let (mut best, mut length) = (NONE, known);
        let mut other = self.before[place % WINDOW] as usize;
        // The first one may be one byte further back than the others.
        let (mut nearest, limit) =
            (place.saturating_sub(DISTANCE_MAX).max(1), place.saturating_sub(DISTANCE_MAX) + 1);
        while other >= nearest && other < place && left > 0 {
            nearest = limit;
            left -= 1;
            self.looked += 1;
            let candidate = &self.plain[other..other + rest.len()];
            // Only what is longer counts, and it has these bytes.
            if length >= rest.len() {
                break;
            }
            if candidate[length] == rest[length] && candidate[length - 1] == rest[length - 1] {
                let same = common(candidate, rest);
                if same > length {
                    length = same;
                    best = Found { length, distance: place - other };
                    if same >= nice {
                        break;
                    }
                }
            }
            other = self.before[other % WINDOW] as usize;
        }
        let is_far = best.length == MATCH_MIN && best.distance > SHORT_DISTANCE_MAX;
        if is_far && !self.effort.is_fast { NONE } else { best }
    }
}

/// Returns how many bytes two slices of one length have in common at their beginning.
fn common(one: &[u8], other: &[u8]) -> usize {
    let (ones, others) = (one.as_chunks::<8>().0, other.as_chunks::<8>().0);
    let mut place = 0;
    for (a, b) in ones.iter().zip(others) {
        let differs = u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b);
        if differs != 0 {
            return place + differs.trailing_zeros() as usize / 8;
        }
        place += 8;
    }
    place + one[place..].iter().zip(&other[place..]).take_while(|(a, b)| a == b).count()
}
