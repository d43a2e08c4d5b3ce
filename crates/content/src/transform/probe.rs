//! A cheap look that spares media files a compression in vain.

/// How many bytes are looked at.
const SAMPLE_LENGTH: usize = 4096;

/// In pieces of how many bytes, spread evenly, so that a text between two pictures is seen.
const PIECE_LENGTH: usize = 64;

/// Above this Pearson statistic a sample is not taken for random.
///
/// Random bytes have 255 on average with a deviation of 23; the excess divided by `2 * SAMPLE_LENGTH` is about what
/// an entropy coder saves, in nats a byte: the limit stands for 2 %.
const RANDOM_STATISTIC_MAX: u64 = 1150;

/// Tells whether bytes look as if no compressor could shorten them: photos, archives, ciphertext.
///
/// Only the frequencies of a sample of bytes are looked at, so repeats of random bytes are not seen; within one
/// record those are rare, because equal chunks are stored once. Too short an input is never called
/// incompressible.
pub fn looks_incompressible(bytes: &[u8]) -> bool {
    if bytes.len() < SAMPLE_LENGTH {
        return false;
    }
    let mut counts = [0_u64; 256];
    let pieces = SAMPLE_LENGTH / PIECE_LENGTH;
    for piece in 0..pieces {
        let start = (bytes.len() - PIECE_LENGTH) / (pieces - 1) * piece;
        for &byte in &bytes[start..start + PIECE_LENGTH] {
            counts[usize::from(byte)] += 1;
        }
    }
    // The sum over all bytes of (count - mean)^2 / mean, where the counts add up to SAMPLE_LENGTH.
    let mean = SAMPLE_LENGTH as u64 / 256;
    let squares: u64 = counts.iter().map(|count| count * count).sum();
    squares / mean - SAMPLE_LENGTH as u64 <= RANDOM_STATISTIC_MAX
}
