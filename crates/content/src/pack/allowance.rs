//! How long a reader works to open records.
//!
//! *Goals*: who stores something hostile and has it read keeps nobody busy for long. *Invariants*: no record is begun after more work than
//! [`WORK_FACTOR`] times the bytes that were read, and [`WORK_AT_FIRST`] more; one that was begun is bounded by itself. *Non-goals*: refusing
//! what honest programs write, whatever they write; counting what is only decompressed, which takes a hundredth of this.

use crate::error::ContentError;

/// How much work is done before anything was read: a chunk may be made from 16 others that each rest in a record that takes as much as one may.
const WORK_AT_FIRST: u64 = 1 << 32;

/// How much is done for each byte that was read. Streams of the highest level take up to some 3,500 for each of their bytes, and a file that
/// grew by hundreds of saves rests in as many records, each of which makes it from its beginning.
const WORK_FACTOR: u64 = 16 * 1024;

/// What a reader has done to open records, and for how much. One unit is what it takes to look at one place for a match, 5 to 10 ns.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct WorkAllowance {
    done: u64,
    read: u64,
}

impl WorkAllowance {
    /// Asks whether one more record may be opened.
    ///
    /// # Errors
    /// [`ContentError::TooMuchWork`].
    pub fn ask(&self) -> Result<(), ContentError> {
        let allowed = WORK_AT_FIRST.saturating_add(self.read.saturating_mul(WORK_FACTOR));
        if self.done > allowed { Err(ContentError::TooMuchWork) } else { Ok(()) }
    }

    /// Counts what it took to open a record, also in vain ([`RecordOpener::take_work`](super::RecordOpener::take_work)).
    pub fn count(&mut self, work: u64) {
        self.done = self.done.saturating_add(work);
    }

    /// Returns how much was done.
    pub fn done(&self) -> u64 {
        self.done
    }

    /// Counts bytes that were read.
    pub fn hand_out(&mut self, length: u64) {
        self.read = self.read.saturating_add(length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_reads_may_open_more() {
        let mut allowance = WorkAllowance::default();
        allowance.count(WORK_AT_FIRST);
        assert!(allowance.ask().is_ok());
        allowance.count(WORK_FACTOR);
        assert!(matches!(allowance.ask(), Err(ContentError::TooMuchWork)));
        allowance.hand_out(1);
        assert!(allowance.ask().is_ok());
        allowance.count(u64::MAX);
        allowance.hand_out(u64::MAX);
        assert!(allowance.ask().is_ok());
    }
}
