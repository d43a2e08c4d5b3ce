//! The wrapping of messages at rest and on the wire: a tag, and the message, compressed where that pays.
//!
//! Messages hold names, ids and lists, which compress well; ids alone do not.

use std::cell::RefCell;
use std::io;

use model::codec::{DecodeError, Message, decode_message, encode_message};
use zstd::bulk::{Compressor, Decompressor};

/// How many bytes the checksum of a message at rest has.
const CHECKSUM_LENGTH: usize = 32;

/// The message follows as it is.
const TAG_RAW: u8 = 0;

/// A zstd frame follows.
const TAG_ZSTD: u8 = 1;

/// Below this length in bytes compression gains nothing worth its time.
const COMPRESS_FROM: usize = 512;

/// Up to this length in bytes it is guessed whether compression pays: a commit of one file is mostly ids, and to find out by trying that they
/// do not compress takes longer than everything else that is done with it.
const GUESS_UP_TO: usize = 4 * 1024;

/// Fast, and near the best level for small records.
const ZSTD_LEVEL: i32 = 1;

/// Up to this length in bytes, messages share the contexts of their thread: making one takes longer than compressing some hundred bytes. Longer
/// messages are rare, and would leave a context of their size with every thread that ever had one.
const SHARED_LENGTH_MAX: usize = 64 * 1024;

thread_local! {
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// Wraps a message.
pub fn wrap<T: Message>(message: &T) -> Vec<u8> {
    wrap_encoded(&encode_message(message))
}

/// Wraps a message that [`encode_message`] has encoded.
pub fn wrap_encoded(plain: &[u8]) -> Vec<u8> {
    if plain.len() >= COMPRESS_FROM
        && (plain.len() > GUESS_UP_TO || may_compress(plain))
        && let Ok(compressed) = compress(plain)
        && compressed.len() < plain.len()
    {
        return tagged(TAG_ZSTD, &compressed);
    }
    tagged(TAG_RAW, plain)
}

/// Guesses whether a message is made of more than ids: in random bytes, two places have the same byte once in 256 pairs.
fn may_compress(plain: &[u8]) -> bool {
    let mut counts = [0_u32; 256];
    for byte in plain {
        counts[usize::from(*byte)] += 1;
    }
    let pairs = |count: usize| count * count.saturating_sub(1);
    let equal: usize = counts.iter().map(|&count| pairs(count as usize)).sum();
    equal * 256 > 2 * pairs(plain.len())
}

fn compress(plain: &[u8]) -> io::Result<Vec<u8>> {
    if plain.len() > SHARED_LENGTH_MAX {
        return zstd::bulk::compress(plain, ZSTD_LEVEL);
    }
    COMPRESSOR.with_borrow_mut(|shared| match shared {
        Some(compressor) => compressor.compress(plain),
        None => shared.insert(Compressor::new(ZSTD_LEVEL)?).compress(plain),
    })
}

fn decompress(frame: &[u8], length_max: usize) -> io::Result<Vec<u8>> {
    if length_max > SHARED_LENGTH_MAX {
        return zstd::bulk::decompress(frame, length_max);
    }
    DECOMPRESSOR.with_borrow_mut(|shared| match shared {
        Some(decompressor) => decompressor.decompress(frame, length_max),
        None => shared.insert(Decompressor::new()?).decompress(frame, length_max),
    })
}

fn tagged(tag: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(1 + body.len());
    bytes.push(tag);
    bytes.extend_from_slice(body);
    bytes
}

/// Wraps a message that will rest in a passive store, where nobody else notices a flipped bit: the hash chain finds
/// damage only once there is a next entry. The BLAKE3-256 of the envelope follows it.
pub fn wrap_at_rest<T: Message>(message: &T) -> Vec<u8> {
    let mut bytes = wrap(message);
    let checksum = blake3::hash(&bytes);
    bytes.extend_from_slice(checksum.as_bytes());
    bytes
}

/// Tells whether these are the bytes that [`wrap_at_rest`] gave, also where this program cannot read them: a newer one may.
pub fn is_whole_at_rest(bytes: &[u8]) -> bool {
    let split = bytes.len().checked_sub(CHECKSUM_LENGTH).map(|split| bytes.split_at(split));
    split.is_some_and(|(body, checksum)| blake3::hash(body).as_bytes() == checksum)
}

/// Unwraps what [`wrap_at_rest`] wrapped; not a byte is read before the checksum fits.
///
/// # Errors
/// As [`unwrap`], and where the checksum does not fit.
pub fn unwrap_at_rest<T: Message>(bytes: &[u8], length_max: usize) -> Result<T, DecodeError> {
    let split = bytes.len().checked_sub(CHECKSUM_LENGTH);
    let (body, checksum) = bytes.split_at(split.ok_or(DecodeError::Truncated { offset: 0 })?);
    if blake3::hash(body).as_bytes() != checksum {
        let reason = "its bytes are not those that were written".to_owned();
        return Err(DecodeError::InvalidValue { what: "checksum", offset: body.len(), reason });
    }
    unwrap(body, length_max)
}

/// Unwraps a message of at most `length_max` bytes, however well it was compressed.
///
/// # Errors
/// [`DecodeError`], also for a frame that expands beyond the limit.
pub fn unwrap<T: Message>(bytes: &[u8], length_max: usize) -> Result<T, DecodeError> {
    let invalid =
        |reason: String| DecodeError::InvalidValue { what: "envelope", offset: 0, reason };
    match bytes.split_first() {
        Some((&TAG_RAW, plain)) if plain.len() <= length_max => decode_message(plain),
        Some((&TAG_ZSTD, frame)) => {
            // The capacity is taken from the frame where it is honest, so that small messages stay small.
            let declared = Decompressor::upper_bound(frame).unwrap_or(length_max);
            let plain = decompress(frame, declared.min(length_max));
            decode_message(&plain.map_err(|error| invalid(error.to_string()))?)
        }
        Some((&TAG_RAW, _)) => Err(invalid(format!("longer than {length_max} bytes"))),
        Some((&tag, _)) => Err(invalid(format!("unknown tag {tag}"))),
        None => Err(DecodeError::Truncated { offset: 0 }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::testing::{commit, put};
    use model::{Entry, EntryHash};

    fn entry(changes: u8) -> Entry {
        let changes = (1..=changes).map(|n| put(n, 0, "name")).collect();
        Entry { seq: 1, previous: EntryHash::NONE, commit: commit(1, changes) }
    }

    #[test]
    fn message_returns_compressed_or_not() {
        for changes in [1, 200] {
            let wrapped = wrap(&entry(changes));
            assert_eq!(unwrap::<Entry>(&wrapped, 1 << 20), Ok(entry(changes)));
        }
        assert!(wrap(&entry(200)).len() < encode_message(&entry(200)).len() / 2);
    }

    #[test]
    fn ids_are_not_compressed_and_text_is() {
        let random: Vec<u8> =
            (0..20_u32).flat_map(|n| *blake3::hash(&n.to_le_bytes()).as_bytes()).collect();
        assert!(!may_compress(&random));
        // A file of a few chunks: a quarter is names, lengths and numbers.
        let mixed = [&random[..480], b"a file of mine.txt and the name of this device ".as_slice()]
            .concat();
        assert!(!may_compress(&mixed));
        assert!(may_compress("The names of many files stand in it. ".repeat(20).as_bytes()));
        assert!(may_compress(&[0; 600]));
    }

    #[test]
    fn message_is_wrapped_alike_whatever_the_thread_wrapped_before() {
        let fresh = std::thread::spawn(|| wrap(&entry(100))).join().expect("it wraps");
        let compressed = zstd::bulk::compress(&encode_message(&entry(100)), ZSTD_LEVEL);
        assert_eq!(fresh, tagged(TAG_ZSTD, &compressed.expect("compresses")));
        for changes in [200, 100, 1, 255, 100] {
            let wrapped = wrap(&entry(changes));
            assert_eq!(unwrap::<Entry>(&wrapped, 1 << 20), Ok(entry(changes)));
            assert!(changes != 100 || wrapped == fresh);
        }
    }

    #[test]
    fn damaged_frame_does_not_harm_those_after_it() {
        let wrapped = wrap(&entry(200));
        for at in 1..wrapped.len() {
            let mut flipped = wrapped.clone();
            flipped[at] ^= 0x10;
            let _ = unwrap::<Entry>(&flipped, 1 << 20);
            assert_eq!(unwrap::<Entry>(&wrapped, 1 << 20), Ok(entry(200)), "byte {at}");
        }
    }

    #[test]
    fn bomb_is_refused_at_the_limit() {
        let frame = zstd::bulk::compress(&vec![0; 64 << 20], 1).expect("compresses");
        let error = unwrap::<Entry>(&tagged(TAG_ZSTD, &frame), 1 << 20);
        assert!(
            matches!(error, Err(DecodeError::InvalidValue { what: "envelope", .. })),
            "{error:?}"
        );
    }

    #[test]
    fn unknown_tag_and_truncation_are_refused() {
        assert!(unwrap::<Entry>(&[9, 1, 2], 100).is_err());
        let wrapped = wrap(&entry(200));
        for length in 0..wrapped.len() {
            assert!(unwrap::<Entry>(&wrapped[..length], 1 << 20).is_err());
        }
    }

    #[test]
    fn any_flipped_bit_of_a_message_at_rest_is_noticed() {
        for entry in [entry(1), entry(60)] {
            let whole = wrap_at_rest(&entry);
            assert_eq!(unwrap_at_rest::<Entry>(&whole, 1 << 20), Ok(entry));
            assert!(is_whole_at_rest(&whole));
            for at in 0..whole.len() {
                let mut flipped = whole.clone();
                flipped[at] ^= 4;
                assert!(unwrap_at_rest::<Entry>(&flipped, 1 << 20).is_err(), "byte {at}");
                assert!(!is_whole_at_rest(&flipped), "byte {at}");
                assert!(unwrap_at_rest::<Entry>(&whole[..at], 1 << 20).is_err(), "{at} bytes");
            }
        }
    }
}
