//! Boxes: how values are spread, as Tukey draws it.

use std::fmt::Write;

use super::{COLOURS, HEIGHT, LEFT, Plot, RIGHT, WIDTH, label};

/// How far whiskers reach beyond the box, in heights of the box.
const WHISKERS: f64 = 1.5;

/// What of some values is drawn.
#[derive(Debug, PartialEq)]
struct Spread {
    /// The lowest and the highest value that whiskers reach to.
    whiskers: [f64; 2],
    /// A quarter of the values lies below the first, and above the last; half of them below the middle.
    quarters: [f64; 3],
    /// What lies beyond the whiskers.
    outside: Vec<f64>,
}

impl Spread {
    /// Nothing where there is no value.
    fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let last = values.len().checked_sub(1)?;
        let at = |share: f64| {
            let place = share * last as f64;
            let (low, part) = (place.floor() as usize, place.fract());
            values[low] + part * (values[(low + 1).min(last)] - values[low])
        };
        let quarters = [at(0.25), at(0.5), at(0.75)];
        let reach = WHISKERS * (quarters[2] - quarters[0]);
        let (low, high) = (quarters[0] - reach, quarters[2] + reach);
        let (inside, outside): (Vec<f64>, Vec<f64>) =
            values.iter().partition(|value| (low..=high).contains(*value));
        // The quarters themselves lie between values, at worst.
        let whiskers = [
            inside.first().copied().unwrap_or(quarters[0]),
            inside.last().copied().unwrap_or(quarters[2]),
        ];
        Some(Self { whiskers, quarters, outside })
    }
}

impl Plot {
    /// Draws a box for each series in each named group; a point's place is the number of its group, and a group has a point for each value.
    pub fn boxes(&self, groups: &[String]) -> String {
        let mut text = self.frame();
        let group_width = (WIDTH - LEFT - RIGHT) / groups.len().max(1) as f64;
        let width = group_width * 0.6 / self.series.len().max(1) as f64;
        for (number, group) in groups.iter().enumerate() {
            let middle = LEFT + (number as f64 + 0.5) * group_width;
            label(&mut text, middle, HEIGHT - super::BOTTOM + 18.0, "middle", group);
            for (place, series) in self.series.iter().enumerate() {
                let of_it = series.points.iter().filter(|point| point.0 == number as f64);
                if let Some(spread) = Spread::of(of_it.map(|point| point.1).collect()) {
                    let x = LEFT + (number as f64 + 0.2) * group_width + place as f64 * width;
                    self.spread(&mut text, &spread, (x, width * 0.8), place);
                }
            }
        }
        text + "</svg>\n"
    }

    fn spread(&self, text: &mut String, spread: &Spread, (x, width): (f64, f64), place: usize) {
        let colour = COLOURS[place % COLOURS.len()];
        let [low, middle, high] = spread.quarters.map(|value| self.y(value));
        let [bottom, top] = spread.whiskers.map(|value| self.y(value));
        let (centre, right) = (x + width / 2.0, x + width);
        let mut line = |x1: f64, y1: f64, x2: f64, y2: f64| {
            // Writing to a String cannot fail, here as below.
            let _ok = writeln!(
                text,
                "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"{colour}\" stroke-width=\"2\"/>"
            );
        };
        line(centre, bottom, centre, low);
        line(centre, high, centre, top);
        for y in [bottom, top] {
            line(centre - width / 4.0, y, centre + width / 4.0, y);
        }
        line(x, middle, right, middle);
        let height = (low - high).max(0.5);
        let _ok = writeln!(
            text,
            "<rect x=\"{x:.1}\" y=\"{high:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{colour}\" \
             fill-opacity=\"0.2\" stroke=\"{colour}\" stroke-width=\"2\"/>"
        );
        for value in &spread.outside {
            let y = self.y(*value);
            let _ok = writeln!(
                text,
                "<circle cx=\"{centre:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"none\" stroke=\"{colour}\"/>"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::Series;

    #[test]
    fn whiskers_end_at_values_and_what_is_beyond_stands_alone() {
        let values = vec![100.0, 1.0, 2.0, 3.0, 4.0];
        let spread = Spread::of(values).unwrap();
        assert_eq!(spread.quarters, [2.0, 3.0, 4.0]);
        assert_eq!((spread.whiskers, spread.outside), ([1.0, 4.0], vec![100.0]));
        let one = Spread::of(vec![7.0]).unwrap();
        assert_eq!((one.whiskers, one.quarters), ([7.0; 2], [7.0; 3]));
        assert_eq!(Spread::of(Vec::new()), None);
    }

    #[test]
    fn each_group_has_a_box_and_an_empty_one_none() {
        let points = vec![(0.0, 1.0), (0.0, 2.0), (0.0, 3.0), (2.0, 5.0)];
        let plot = Plot {
            title: String::new(),
            across: String::new(),
            up: String::new(),
            series: vec![Series::ours("s", points)],
        };
        let svg = plot.boxes(&["a", "b", "c"].map(String::from));
        assert_eq!(svg.matches("fill-opacity").count(), 2);
        assert!(svg.contains(">b</text>"));
    }
}
