//! What one step of one program cost, and the table rows made of it.

use crate::process::Usage;
use crate::syncline::Transferred;

/// What one step cost.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sample {
    /// Seconds from start to end.
    pub wall_seconds: f64,
    /// User and system seconds of the program and its children, a server's included.
    pub cpu_seconds: f64,
    /// Peak memory of the largest process, in MiB.
    pub rss_mib: f64,
    /// Bytes that this step added to the store.
    pub stored_bytes: Option<u64>,
    /// Bytes that the program says it sent.
    pub sent_bytes: Option<u64>,
    /// Bytes that the program says it received.
    pub received_bytes: Option<u64>,
}

impl Sample {
    /// Makes a sample of a measured command.
    pub fn of(usage: &Usage) -> Self {
        Self {
            wall_seconds: usage.wall_seconds,
            cpu_seconds: usage.cpu_seconds,
            rss_mib: usage.rss_mib,
            ..Self::default()
        }
    }

    /// Adds what a server spent meanwhile.
    pub fn with_server(mut self, cpu_seconds: f64, peak_mib: f64) -> Self {
        self.cpu_seconds += cpu_seconds;
        self.rss_mib = self.rss_mib.max(peak_mib);
        self
    }

    /// Adds the bytes that were moved.
    pub fn with_transferred(mut self, moved: Transferred) -> Self {
        self.sent_bytes = moved.sent_bytes;
        self.received_bytes = moved.received_bytes;
        self
    }

    /// All bytes on the line, if the program says so.
    pub fn moved_bytes(&self) -> Option<u64> {
        self.sent_bytes.map(|sent| sent + self.received_bytes.unwrap_or(0))
    }
}

/// One step of one program in one round.
#[derive(Debug, Clone)]
pub struct Row {
    /// The input.
    pub workload: String,
    /// `tmpfs` or `disk`.
    pub file_system: String,
    /// The program.
    pub peer: String,
    /// The step.
    pub step: String,
    /// The round, from 1.
    pub round: u32,
    /// What it cost.
    pub sample: Sample,
    /// Whether the result was compared byte by byte with the source, and equal.
    pub verified: bool,
}

/// The middle of some numbers; `None` for none.
pub fn median(numbers: &[f64]) -> Option<f64> {
    percentile(numbers, 50.0)
}

/// The number below which `percent` of the numbers lie (nearest rank; the mean of two at 50).
pub fn percentile(numbers: &[f64], percent: f64) -> Option<f64> {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len();
    if count == 0 {
        return None;
    }
    #[expect(clippy::float_cmp, reason = "50 is written, not computed")]
    if percent == 50.0 && count.is_multiple_of(2) {
        return Some(f64::midpoint(sorted[count / 2 - 1], sorted[count / 2]));
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small rank")]
    let rank = (percent / 100.0 * count as f64).ceil() as usize;
    Some(sorted[rank.clamp(1, count) - 1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_percentiles_are_ranks() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        let hundred: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!(percentile(&hundred, 99.0), Some(99.0));
        assert_eq!(percentile(&hundred, 100.0), Some(100.0));
    }

    #[test]
    fn a_sample_counts_both_directions_and_the_server() {
        let moved = Transferred { sent_bytes: Some(3), received_bytes: Some(4) };
        let sample = Sample { cpu_seconds: 1.0, rss_mib: 5.0, ..Sample::default() };
        let sample = sample.with_transferred(moved).with_server(0.5, 9.0);
        assert_eq!(sample.moved_bytes(), Some(7));
        assert_eq!((sample.cpu_seconds, sample.rss_mib), (1.5, 9.0));
    }
}
