//! When requests are sent: moments that are known before the first answer.
//!
//! Devices do not wait for each other, so together they make a Poisson process. A generator that waited for answers before it sent the
//! next request would send less just when the server is slow, and would not see how slow it was (coordinated omission).

use std::time::Duration;

/// The moments at which one device sends, from the start of a run to its end.
#[derive(Debug, Clone)]
pub struct Schedule {
    random: fastrand::Rng,
    mean_seconds: f64,
    next_seconds: f64,
    end_seconds: f64,
}

impl Schedule {
    /// Prepares for `rate` requests a second on average.
    pub fn poisson(seed: u64, device: u32, rate: f64, length: Duration) -> Self {
        let mixed = seed.wrapping_add(u64::from(device).wrapping_mul(0xd1b5_4a32_d192_ed03));
        let mut schedule = Self {
            random: fastrand::Rng::with_seed(mixed),
            mean_seconds: 1.0 / rate,
            next_seconds: 0.0,
            end_seconds: length.as_secs_f64(),
        };
        schedule.advance();
        schedule
    }

    fn advance(&mut self) {
        // 1 - x is never zero, so the logarithm is finite.
        self.next_seconds -= (1.0 - self.random.f64()).ln() * self.mean_seconds;
    }
}

impl Iterator for Schedule {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let moment = self.next_seconds;
        if moment >= self.end_seconds {
            return None;
        }
        self.advance();
        Some(Duration::from_secs_f64(moment))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_come_in_order_at_the_rate_that_was_asked_for() {
        let moments: Vec<_> = Schedule::poisson(1, 1, 100.0, Duration::from_secs(1000)).collect();
        assert!((98_000..102_000).contains(&moments.len()), "{}", moments.len());
        assert!(moments.is_sorted());
        assert!(moments.iter().all(|moment| moment.as_secs() < 1000));
    }

    #[test]
    fn distances_vary_as_those_of_independent_people() {
        let moments: Vec<_> = Schedule::poisson(2, 5, 10.0, Duration::from_secs(1000)).collect();
        let distances = moments.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64());
        let distances: Vec<f64> = distances.collect();
        let mean = distances.iter().sum::<f64>() / distances.len() as f64;
        let squares = distances.iter().map(|distance| (distance - mean).powi(2));
        let deviation = (squares.sum::<f64>() / distances.len() as f64).sqrt();
        assert!((0.9..1.1).contains(&(deviation / mean)), "{}", deviation / mean);
    }
}
