//! Draws lines, bars and boxes as SVG.

use std::fmt::Write;

mod boxes;
mod magnitudes;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 210.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = 56.0;

/// A series of more points has small marks.
const MARKED_MAX: usize = 40;

/// Colours that people who see fewer colours can tell apart (Okabe and Ito, and grey).
pub const COLOURS: [&str; 8] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999"];

/// What is drawn for one name of the legend.
pub struct Series {
    /// The name.
    pub name: String,
    /// Values by place; places without a value are left out.
    pub points: Vec<(f64, f64)>,
    /// Whether it is of the paper, and drawn hollow.
    pub is_published: bool,
}

impl Series {
    /// Makes a series of our own.
    pub fn ours(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.into(), points, is_published: false }
    }

    /// Makes a series of the paper.
    pub fn published(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.into(), points, is_published: true }
    }
}

/// A drawing.
pub struct Plot {
    /// What stands above it.
    pub title: String,
    /// What the horizontal axis counts.
    pub across: String,
    /// What the vertical axis counts.
    pub up: String,
    /// What is drawn.
    pub series: Vec<Series>,
}

impl Plot {
    /// Draws each series as a line over numbers.
    pub fn lines(&self) -> String {
        let places = || self.series.iter().flat_map(|series| &series.points).map(|point| point.0);
        let (low, high) = places()
            .fold((f64::MAX, f64::MIN), |(low, high), place| (low.min(place), high.max(place)));
        let width = if high > low { high - low } else { 1.0 };
        let x = |place: f64| LEFT + (place - low) / width * (WIDTH - LEFT - RIGHT - 20.0) + 10.0;
        let mut text = self.frame();
        // Nobody counts in halves of a version.
        let are_whole = places().all(|place| place.fract() == 0.0);
        let step = step(width / 10.0).max(if are_whole { 1.0 } else { 0.0 });
        let decimals = decimals(step);
        let mut place = (low / step).ceil() * step;
        while place <= high {
            let words = format!("{place:.decimals$}");
            label(&mut text, x(place), HEIGHT - BOTTOM + 18.0, "middle", &words);
            place += step;
        }
        for (number, series) in self.series.iter().enumerate() {
            let points: Vec<_> =
                series.points.iter().map(|(place, value)| (x(*place), self.y(*value))).collect();
            text.push_str(&series.line(number, &points));
        }
        text + "</svg>\n"
    }

    /// Draws series side by side over named groups; a point's place is the number of its group.
    pub fn bars(&self, groups: &[String]) -> String {
        let mut text = self.frame();
        let group_width = (WIDTH - LEFT - RIGHT) / groups.len().max(1) as f64;
        let bar_width = group_width * 0.8 / self.series.len().max(1) as f64;
        for (number, group) in groups.iter().enumerate() {
            let middle = LEFT + (number as f64 + 0.5) * group_width;
            label(&mut text, middle, HEIGHT - BOTTOM + 18.0, "middle", group);
        }
        for (number, series) in self.series.iter().enumerate() {
            let colour = COLOURS[number % COLOURS.len()];
            let fill = if series.is_published { "white" } else { colour };
            for (group, value) in &series.points {
                let x = LEFT + (group + 0.1) * group_width + number as f64 * bar_width;
                let (y, base) = (self.y(*value), self.y(0.0));
                let (width, height) = ((bar_width - 2.0).max(1.0), (base - y).max(0.5));
                let _ok = writeln!(
                    text,
                    "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" \
                     fill=\"{fill}\" stroke=\"{colour}\"/>"
                );
            }
        }
        text + "</svg>\n"
    }

    /// Returns the highest value that the axis shows, and the distance of its lines.
    fn scale(&self) -> (f64, f64) {
        let values = self.series.iter().flat_map(|series| &series.points).map(|point| point.1);
        let highest = values.fold(0.0, f64::max).max(1e-9);
        let step = step(highest / 5.0);
        ((highest / step).ceil() * step, step)
    }

    fn y(&self, value: f64) -> f64 {
        let (top, _) = self.scale();
        HEIGHT - BOTTOM - value / top * (HEIGHT - TOP - BOTTOM)
    }

    /// Draws everything but the series.
    fn frame(&self) -> String {
        let mut text = self.head();
        let (top, step) = self.scale();
        for number in 0..=(top / step).round() as u32 {
            let value = f64::from(number) * step;
            let decimals = decimals(step);
            level(&mut text, self.y(value), &format!("{value:.decimals$}"));
        }
        text + &self.legend()
    }

    /// Draws the paper and the title.
    fn head(&self) -> String {
        let mut text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
             font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n"
        );
        let _ok = writeln!(
            text,
            "<text x=\"{LEFT}\" y=\"24\" font-size=\"15\">{}</text>",
            escape(&self.title)
        );
        text
    }

    /// Names the axes and the series.
    fn legend(&self) -> String {
        let mut text = String::new();
        let right = WIDTH - RIGHT;
        label(&mut text, (LEFT + right) / 2.0, HEIGHT - 12.0, "middle", &self.across);
        let middle = (TOP + HEIGHT - BOTTOM) / 2.0;
        let _ok = writeln!(
            text,
            "<text x=\"16\" y=\"{middle}\" text-anchor=\"middle\" \
             transform=\"rotate(-90 16 {middle})\">{}</text>",
            escape(&self.up)
        );
        for (number, series) in self.series.iter().enumerate() {
            let colour = COLOURS[number % COLOURS.len()];
            let fill = if series.is_published { "white" } else { colour };
            let y = TOP + 6.0 + number as f64 * 20.0;
            let _ok = writeln!(
                text,
                "<rect x=\"{}\" y=\"{y}\" width=\"12\" height=\"12\" fill=\"{fill}\" \
                 stroke=\"{colour}\" stroke-width=\"2\"/>",
                right + 14.0
            );
            label(&mut text, right + 32.0, y + 10.0, "start", &series.name);
        }
        text
    }
}

impl Series {
    /// Draws a line with a mark at each point.
    fn line(&self, number: usize, points: &[(f64, f64)]) -> String {
        let mut text = String::new();
        let colour = COLOURS[number % COLOURS.len()];
        let path: Vec<_> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let dashes = if self.is_published { " stroke-dasharray=\"5 4\"" } else { "" };
        // Writing to a String cannot fail.
        let _ok = writeln!(
            text,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"{dashes}/>",
            path.join(" ")
        );
        let fill = if self.is_published { "white" } else { colour };
        // Many points make a line by themselves.
        let radius = if points.len() > MARKED_MAX { 1.5 } else { 4.0 };
        for (x, y) in points {
            let _ok = writeln!(
                text,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" fill=\"{fill}\" stroke=\"{colour}\" \
                 stroke-width=\"2\"/>"
            );
        }
        text
    }
}

/// Draws a level of the vertical axis.
fn level(text: &mut String, y: f64, words: &str) {
    let right = WIDTH - RIGHT;
    let _ok = writeln!(
        text,
        "<line x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\" stroke=\"#cccccc\"/>"
    );
    label(text, LEFT - 6.0, y + 4.0, "end", words);
}

/// Writes words at a place.
pub fn label(text: &mut String, x: f64, y: f64, anchor: &str, words: &str) {
    let words = escape(words);
    let _ok =
        writeln!(text, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{words}</text>");
}

/// Returns the next number that people count in: 1, 2 or 5 of a power of ten.
fn step(rough: f64) -> f64 {
    let power = 10f64.powf(rough.log10().floor());
    let steps = [1.0, 2.0, 5.0].map(|digit| digit * power);
    steps.into_iter().find(|step| *step >= rough).unwrap_or(10.0 * power)
}

/// Returns how many digits behind the point tell two steps apart.
fn decimals(step: f64) -> usize {
    if step < 1.0 { (-step.log10()).ceil() as usize } else { 0 }
}

/// Makes words safe inside SVG.
pub fn escape(words: &str) -> String {
    words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words_of(points: &[(f64, f64)]) -> Vec<String> {
        let plot = Plot {
            title: String::new(),
            across: String::new(),
            up: String::new(),
            series: vec![Series::ours("", points.to_vec())],
        };
        let svg = plot.lines();
        // Places stand at the middle of their words, values at the end of them.
        let place = |line: &str| {
            let (_, words) = line.split_once("text-anchor=\"middle\">")?;
            Some(words.strip_suffix("</text>")?.to_owned())
        };
        svg.lines().filter_map(place).filter(|words| !words.is_empty()).collect()
    }

    #[test]
    fn places_are_numbers_that_people_count_in() {
        assert_eq!(words_of(&[(1.0, 1.0), (6.0, 2.0)]), ["1", "2", "3", "4", "5", "6"]);
        assert_eq!(words_of(&[(1.325_005, 1.0), (4396.06, 2.0)])[..2], ["500", "1000"]);
        assert_eq!(words_of(&[(0.000_17, 1.0), (0.031, 2.0)])[..3], ["0.005", "0.010", "0.015"]);
        assert_eq!(words_of(&[(7.0, 1.0)]), ["7"]);
    }
}
