//! Lines over magnitudes: both axes count powers of ten.

use std::fmt::Write;

use super::{BOTTOM, HEIGHT, LEFT, Plot, RIGHT, TOP, WIDTH, label, level};

/// Which powers of ten an axis shows, and what is to be drawn between them.
struct Axis {
    low: i32,
    high: i32,
    from: f64,
    to: f64,
}

impl Axis {
    fn over(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Self {
        let positive = values.filter(|value| *value > 0.0);
        let (low, high) = positive
            .fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)));
        if low > high {
            return Self { low: 0, high: 1, from, to };
        }
        let low = low.log10().floor() as i32;
        Self { low, high: (high.log10().ceil() as i32).max(low + 1), from, to }
    }

    fn at(&self, value: f64) -> f64 {
        let share = (value.log10() - f64::from(self.low)) / f64::from(self.high - self.low);
        self.from + share * (self.to - self.from)
    }

    fn powers(&self) -> impl Iterator<Item = f64> {
        (self.low..=self.high).map(|power| 10f64.powi(power))
    }
}

impl Plot {
    /// Draws each series as a line over positive numbers of any size. Points that are not positive are left out.
    pub fn lines_over_magnitudes(&self) -> String {
        let points = || self.series.iter().flat_map(|series| &series.points);
        let across = Axis::over(points().map(|point| point.0), LEFT, WIDTH - RIGHT);
        let up = Axis::over(points().map(|point| point.1), HEIGHT - BOTTOM, TOP);
        let mut text = self.head();
        for power in up.powers() {
            level(&mut text, up.at(power), &format!("{power}"));
        }
        for power in across.powers() {
            let x = across.at(power);
            // Writing to a String cannot fail.
            let _ok = writeln!(
                text,
                "<line x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{}\" stroke=\"#eeeeee\"/>",
                HEIGHT - BOTTOM
            );
            label(&mut text, x, HEIGHT - BOTTOM + 18.0, "middle", &format!("{power}"));
        }
        text.push_str(&self.legend());
        for (number, series) in self.series.iter().enumerate() {
            let positive =
                series.points.iter().filter(|(place, value)| *place > 0.0 && *value > 0.0);
            let points: Vec<_> =
                positive.map(|(place, value)| (across.at(*place), up.at(*value))).collect();
            text.push_str(&series.line(number, &points));
        }
        text + "</svg>\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::Series;

    #[test]
    fn equal_ratios_have_equal_distances() {
        let axis = Axis::over([100.0, 50_000.0].into_iter(), 0.0, 300.0);
        assert_eq!((axis.low, axis.high), (2, 5));
        assert!((axis.at(1000.0) - 100.0).abs() < 1e-9);
        assert!((axis.at(10_000.0) - 200.0).abs() < 1e-9);
    }

    #[test]
    fn what_has_no_magnitude_is_left_out() {
        let series = vec![Series::ours("delay", vec![(0.0, 1.0), (10.0, 2.0), (100.0, 0.0)])];
        let (title, across, up) = ("t".to_owned(), "a".to_owned(), "u".to_owned());
        let drawn = Plot { title, across, up, series }.lines_over_magnitudes();
        assert_eq!(drawn.matches("<circle").count(), 1);
    }
}
