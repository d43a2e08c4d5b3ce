//! Draws from distributions.

use crate::random::Random;

impl Random {
    /// From an exponential distribution: how long it takes until something happens that happens at any time.
    pub(super) fn exponential(&mut self, mean: f64) -> f64 {
        -(1.0 - self.unit()).ln() * mean
    }

    /// From the standard normal distribution (Box and Muller).
    pub(super) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// A whole number from `low` to `high`, both of which may come, whose logarithm is as likely here as there.
    pub(super) fn evenly_by_magnitude(&mut self, low: u64, high: u64) -> u64 {
        let (low_f, high_f) = (low as f64, high as f64);
        let drawn = low_f * (high_f / low_f).powf(self.unit());
        (drawn as u64).clamp(low, high)
    }

    /// One of several, each with its weight; they are not all 0.
    pub(super) fn weighted<T: Copy>(
        &mut self,
        choices: impl Iterator<Item = (T, u64)> + Clone,
    ) -> T {
        let total = choices.clone().map(|(_, weight)| weight).sum();
        let mut left = self.below(total);
        for (choice, weight) in choices {
            if left < weight {
                return choice;
            }
            left -= weight;
        }
        unreachable!("what was drawn is below the sum of all weights")
    }

    /// One of several, each as likely as any.
    pub(super) fn one_of<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.index(choices.len())]
    }

    /// The number of one of so many, which are more than 0.
    pub(super) fn index(&mut self, count: usize) -> usize {
        self.below(count as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_and_spreads_are_those_of_the_distributions() {
        let mut random = Random::new(1);
        let count = 200_000;
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let waits: Vec<f64> = (0..count).map(|_| random.exponential(50.0)).collect();
        assert!((mean(&waits) - 50.0).abs() < 0.5, "{}", mean(&waits));
        let long = waits.iter().filter(|wait| **wait > 50.0).count() as f64 / f64::from(count);
        assert!((long - (-1.0_f64).exp()).abs() < 0.005, "{long}");
        let normal: Vec<f64> = (0..count).map(|_| random.normal()).collect();
        let squares: Vec<f64> = normal.iter().map(|value| value * value).collect();
        assert!(mean(&normal).abs() < 0.01 && (mean(&squares) - 1.0).abs() < 0.02);
        let sizes: Vec<u64> = (0..count).map(|_| random.evenly_by_magnitude(1, 10_000)).collect();
        let small = sizes.iter().filter(|size| **size < 100).count() as f64 / f64::from(count);
        assert!((small - 0.5).abs() < 0.005, "{small}");
        assert!(sizes.iter().all(|size| (1..=10_000).contains(size)));
        let weights = [('a', 1), ('b', 0), ('c', 3)];
        let drawn: Vec<char> = (0..count).map(|_| random.weighted(weights.into_iter())).collect();
        let third = drawn.iter().filter(|choice| **choice == 'c').count() as f64 / f64::from(count);
        assert!((third - 0.75).abs() < 0.005 && !drawn.contains(&'b'), "{third}");
    }
}
