//! Files that hold deflate streams, with what these hold in their place: office files, PDF, PNG, archives.
//!
//! *Participants*: who packs a file, and who puts it together again; both are told by `crate::pack` what belongs together. *Goals*: a word
//! that is changed in a document changes a few bytes here, where it changes everything behind it in the compressed stream; what is
//! stored is compressed better and once. *Non-goals*: knowing formats: in a file that may hold some, streams are found by how they begin. *Invariants*: a
//! stream is taken out only after it was made again of what is kept, bit by bit the same; making it again needs nothing but what this room
//! says for ever (`predict`), and is bounded in bytes and in time, whatever somebody says of it.
//!
//! The format in words: `docs/design/pack-format.md`, "Deflate records".

mod bits;
mod codes;
mod predict;
mod stream;

use model::codec::{DecodeError, Decoder, Encoder};

use stream::{SEARCH_MAX, Stream};

/// How many bytes the inflated form of a file has at most.
pub const INFLATED_LENGTH_MAX: usize = 6 * 1024 * 1024;

/// How files begin in which streams are looked for: archives and office files, PDF, PNG, and what gzip has compressed.
const CONTAINERS: [&[u8]; 4] = [b"PK\x03\x04", b"%PDF-", b"\x89PNG", b"\x1f\x8b\x08"];

/// A shorter stream stays as it is.
const STREAM_MIN: usize = 64;

/// Streams that have fewer bytes together leave the file as it is.
const STREAMS_MIN: usize = 1024;

/// What it takes to make a stream again has at most one in so many of its bytes.
const RECIPE_PART: usize = 4;

/// How many times as many places as a reader a writer looks at, who tries out how a stream was made.
const SEARCHES: u64 = 8;

/// How long a name or a comment is in a header of gzip.
const GZIP_TEXT_MAX: usize = 1024;

/// How many bytes are inflated to find streams, in how many times what may come of it.
const WORK_FACTOR: usize = 4;

/// Bytes as they are, and then a stream: what it holds, and its recipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Part {
    raw: usize,
    plain: usize,
    recipe: usize,
}

/// The inflated form of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inflated {
    bytes: Vec<u8>,
    parts: Vec<Part>,
}

impl Inflated {
    /// Inflates the streams of a file; nothing where it holds too little in streams, or too much.
    pub fn of(file: &[u8]) -> Option<Self> {
        if !Self::may_be_of(file) {
            return None;
        }
        let (mut bytes, mut parts) = (Vec::new(), Vec::new());
        let (mut place, mut done, mut streams, mut work) = (0, 0, 0, 0);
        let mut budget = Budget { of_reader: SEARCH_MAX, of_writer: SEARCHES * SEARCH_MAX };
        while place < file.len() {
            let Some(start) = stream_at(file, place) else {
                place += 1;
                continue;
            };
            place += 1;
            let room = INFLATED_LENGTH_MAX.checked_sub(bytes.len() + file.len() - done)?;
            if work > WORK_FACTOR * INFLATED_LENGTH_MAX || budget.of_writer == 0 {
                break;
            }
            let Some((stream, recipe)) = take_stream(&file[start..], room, &mut work, &mut budget)
            else {
                continue;
            };
            let raw = start - done;
            bytes.extend_from_slice(&file[done..start]);
            bytes.extend_from_slice(&stream.plain);
            bytes.extend_from_slice(&recipe);
            parts.push(Part { raw, plain: stream.plain.len(), recipe: recipe.len() });
            streams += stream.length;
            done = start + stream.length;
            place = done;
        }
        if done < file.len() {
            bytes.extend_from_slice(&file[done..]);
            parts.push(Part { raw: file.len() - done, plain: 0, recipe: 0 });
        }
        (streams >= STREAMS_MIN && bytes.len() <= INFLATED_LENGTH_MAX)
            .then_some(Self { bytes, parts })
    }

    /// Tells by its first bytes whether a file may hold streams.
    pub fn may_be_of(start: &[u8]) -> bool {
        CONTAINERS.iter().any(|container| start.starts_with(container))
    }

    /// Returns what is to be stored in place of the file.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns how the file comes out of that from this byte of it on.
    pub fn plan(&self, skip: u64) -> Vec<u8> {
        let mut encoder = Encoder::default();
        encoder.unsigned(skip);
        for part in &self.parts {
            for length in [part.raw, part.plain, part.recipe] {
                encoder.unsigned(length as u64);
            }
        }
        encoder.into_bytes()
    }
}

/// How many places may still be looked at for the streams of a file.
struct Budget {
    /// By whoever makes those again that were taken.
    of_reader: u64,
    /// By who takes them, or does not in the end.
    of_writer: u64,
}

/// Reads a stream, if it is worth inflating and comes out again.
fn take_stream(
    bytes: &[u8],
    room: usize,
    work: &mut usize,
    budget: &mut Budget,
) -> Option<(Stream, Vec<u8>)> {
    let stream = Stream::read(bytes, room.min(INFLATED_LENGTH_MAX), work).ok()?;
    if stream.length < STREAM_MIN || stream.plain.len() <= stream.length {
        return None;
    }
    let recipe = stream.recipe(stream.length / RECIPE_PART, &mut budget.of_writer)?;
    if stream.plain.len() + recipe.len() > room + stream.length {
        return None;
    }
    let mut left = budget.of_reader;
    let made = stream::make(&stream.plain, &recipe, &mut left);
    budget.of_writer = budget.of_writer.saturating_sub(budget.of_reader - left);
    if made.ok()? != bytes[..stream.length] {
        return None;
    }
    budget.of_reader = left;
    Some((stream, recipe))
}

/// Returns where the stream begins whose header stands at a place of a file, if there is one.
fn stream_at(file: &[u8], place: usize) -> Option<usize> {
    const ZIP_HEADER: usize = 30;
    let rest = &file[place..];
    match rest {
        [b'P', b'K', 3, 4, ..] => {
            let header = rest.first_chunk::<ZIP_HEADER>()?;
            let two = |at: usize| usize::from(u16::from_le_bytes([header[at], header[at + 1]]));
            let start = place + ZIP_HEADER + two(26) + two(28);
            // Method 8 is deflate.
            (two(8) == 8 && start < file.len()).then_some(start)
        }
        // Zlib, with the largest window, as everybody writes it, and without a dictionary.
        [0x78, flags, _, ..] => {
            let is_header = (0x7800 | u16::from(*flags)) % 31 == 0 && flags & 0x20 == 0;
            is_header.then_some(place + 2)
        }
        [0x1f, 0x8b, 8, flags, _, _, _, _, _, _, fields @ ..] => {
            gzip_stream(*flags, fields).map(|start| place + 10 + start)
        }
        _ => None,
    }
}

/// Returns how long the fields behind the fixed part of a header of gzip are (RFC 1952, section 2.3).
fn gzip_stream(flags: u8, fields: &[u8]) -> Option<usize> {
    let mut start = 0;
    if flags & 4 != 0 {
        let length = fields.first_chunk::<2>()?;
        start += 2 + usize::from(u16::from_le_bytes(*length));
    }
    // A name and a comment, each up to a zero.
    for flag in [8, 16] {
        if flags & flag != 0 {
            let text = fields.get(start..)?.iter().take(GZIP_TEXT_MAX);
            start += text.clone().position(|byte| *byte == 0)? + 1;
        }
    }
    if flags & 2 != 0 {
        start += 2;
    }
    (start < fields.len()).then_some(start)
}

/// Makes so many bytes of a file again of its inflated form, as a plan says. Adds to `work` what it took, also in vain: the places that were
/// looked at, and the bytes that were made.
///
/// # Errors
/// Where the plan does not fit the form, or makes fewer bytes.
pub(crate) fn deflate(
    plan: &[u8],
    inflated: &[u8],
    length: usize,
    work: &mut u64,
) -> Result<Vec<u8>, DecodeError> {
    let (mut file, mut search) = (Vec::new(), SEARCH_MAX);
    let done = make(plan, inflated, length, (&mut file, &mut search));
    *work += SEARCH_MAX - search + file.len() as u64;
    let skipped = done?;
    // What is skipped is not held by whoever keeps the rest.
    Ok(file[skipped..skipped + length].to_vec())
}

/// Makes a file up to so many bytes behind those that the plan skips; returns how many these are.
fn make(
    plan: &[u8],
    inflated: &[u8],
    length: usize,
    (file, search): (&mut Vec<u8>, &mut u64),
) -> Result<usize, DecodeError> {
    let mut plan = Decoder::new(plan);
    if inflated.len() > INFLATED_LENGTH_MAX {
        return Err(plan.invalid("form", "it is longer than any"));
    }
    let skip = plan.unsigned_max(INFLATED_LENGTH_MAX as u64)? as usize;
    let mut rest = inflated;
    while plan.remaining() > 0 {
        let mut take = |length: u64| {
            let taken =
                usize::try_from(length).ok().and_then(|length| rest.split_at_checked(length));
            taken.map(|(taken, behind)| {
                rest = behind;
                taken
            })
        };
        let [raw, plain, recipe] =
            [plan.unsigned()?, plan.unsigned()?, plan.unsigned()?].map(&mut take);
        let (Some(raw), Some(plain), Some(recipe)) = (raw, plain, recipe) else {
            return Err(plan.invalid("part", "it reaches beyond what there is"));
        };
        if file.len() >= skip + length {
            // What lies behind is for others.
            continue;
        }
        file.extend_from_slice(raw);
        if !plain.is_empty() {
            file.extend_from_slice(&stream::make(plain, recipe, search)?);
        } else if raw.is_empty() || !recipe.is_empty() {
            return Err(plan.invalid("part", "it is empty"));
        }
    }
    if !rest.is_empty() || file.len() < skip + length {
        return Err(plan.invalid("plan", "it makes something else"));
    }
    Ok(skip)
}

#[cfg(test)]
mod tests;
