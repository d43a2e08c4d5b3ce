//! Fingerprints of the last bytes that follow when one byte comes and one goes: what cuts of the literature hang on.
//!
//! All of them read bytes as numbers from 0 to 255, whatever a language calls a byte.

/// How many bytes a fingerprint covers (LBFS, section 3.1; the thesis takes the same).
pub const WINDOW: usize = 48;

/// A fingerprint of [`WINDOW`] bytes.
pub trait RollingFingerprint: Copy + Send + Sync + 'static {
    /// Returns the fingerprint of a window.
    fn of(window: &[u8; WINDOW]) -> Self;

    /// Moves the window by one byte: `outgoing` was its first, `incoming` becomes its last.
    fn roll(&mut self, outgoing: u8, incoming: u8);

    /// Returns the number that cuts are decided by.
    fn value(self) -> u32;
}

/// The sum and the sum of sums of rsync (Tridgell, section 3.2), which the thesis calls Adler-32: like it, without its prime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Adler32 {
    sum: u32,
    sum_of_sums: u32,
}

impl RollingFingerprint for Adler32 {
    fn of(window: &[u8; WINDOW]) -> Self {
        let mut found = Self { sum: 0, sum_of_sums: 0 };
        for byte in window {
            found.sum += u32::from(*byte);
            found.sum_of_sums += found.sum;
        }
        found
    }

    fn roll(&mut self, outgoing: u8, incoming: u8) {
        let outgoing = u32::from(outgoing);
        self.sum = self.sum - outgoing + u32::from(incoming);
        self.sum_of_sums = self.sum_of_sums - WINDOW as u32 * outgoing + self.sum;
    }

    fn value(self) -> u32 {
        // The upper half keeps 16 of the 19 bits that a window can fill, as in rsync.
        self.sum | self.sum_of_sums << 16
    }
}

/// The sum of the bytes (PLAIN of Spiridonov, Thaker and Patwardhan, as the thesis describes it: additions alone).
///
/// It takes 12,241 values, those in the middle far more often than others: with large divisors hardly any fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plain(u32);

impl RollingFingerprint for Plain {
    fn of(window: &[u8; WINDOW]) -> Self {
        Self(window.iter().map(|byte| u32::from(*byte)).sum())
    }

    fn roll(&mut self, outgoing: u8, incoming: u8) {
        self.0 = self.0 - u32::from(outgoing) + u32::from(incoming);
    }

    fn value(self) -> u32 {
        self.0
    }
}

/// The remainder of the window, read as a polynomial over two elements, by x^32 + x^7 + x^3 + x^2 + 1 (Rabin 1981; the polynomial of the thesis).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rabin(u32);

/// The polynomial without its first term.
const POLYNOMIAL: u32 = 0x8d;

/// What each byte is worth after `shift` more bits came behind its last.
const fn remainders(shift: usize) -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < table.len() {
        let mut remainder = byte as u32;
        let mut bit = 0;
        while bit < shift {
            let carry = remainder >> 31;
            remainder = (remainder << 1) ^ (carry * POLYNOMIAL);
            bit += 1;
        }
        table[byte] = remainder;
        byte += 1;
    }
    table
}

/// Of the byte that a new one pushes out of the upper end of the remainder.
static PUSHED_OUT: [u32; 256] = remainders(32);

/// Of the byte that leaves the window.
static OUTGOING: [u32; 256] = remainders(8 * WINDOW);

impl Rabin {
    fn push(self, incoming: u8) -> Self {
        Self(self.0 << 8 ^ u32::from(incoming) ^ PUSHED_OUT[(self.0 >> 24) as usize])
    }
}

impl RollingFingerprint for Rabin {
    fn of(window: &[u8; WINDOW]) -> Self {
        window.iter().fold(Self(0), |found, byte| found.push(*byte))
    }

    fn roll(&mut self, outgoing: u8, incoming: u8) {
        self.0 = self.push(incoming).0 ^ OUTGOING[usize::from(outgoing)];
    }

    fn value(self) -> u32 {
        self.0
    }
}

#[cfg(test)]
mod tests;
