//! Draws lines and bars as SVG.

use std::fmt::Write;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 210.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = 56.0;

/// Colours that people who see fewer colours can tell apart (Okabe and Ito).
pub(crate) const COLOURS: [&str; 7] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"];

/// What is drawn for one name of the legend.
pub(crate) struct Series {
    /// The name.
    pub(crate) name: String,
    /// Values by place; places without a value are left out.
    pub(crate) points: Vec<(f64, f64)>,
    /// Whether it is of the paper, and drawn hollow.
    pub(crate) is_published: bool,
}

impl Series {
    /// Makes a series of our own.
    pub(crate) fn ours(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.into(), points, is_published: false }
    }

    /// Makes a series of the paper.
    pub(crate) fn published(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.into(), points, is_published: true }
    }
}

/// A drawing.
pub(crate) struct Plot {
    /// What stands above it.
    pub(crate) title: String,
    /// What the horizontal axis counts.
    pub(crate) across: String,
    /// What the vertical axis counts.
    pub(crate) up: String,
    /// What is drawn.
    pub(crate) series: Vec<Series>,
}

impl Plot {
    /// Draws each series as a line over numbers.
    pub(crate) fn lines(&self) -> String {
        let places = self.series.iter().flat_map(|series| &series.points).map(|point| point.0);
        let (low, high) = places
            .fold((f64::MAX, f64::MIN), |(low, high), place| (low.min(place), high.max(place)));
        let width = (high - low).max(1.0);
        let x = |place: f64| LEFT + (place - low) / width * (WIDTH - LEFT - RIGHT - 20.0) + 10.0;
        let mut text = self.frame();
        let mut place = low;
        while place <= high {
            label(&mut text, x(place), HEIGHT - BOTTOM + 18.0, "middle", &format!("{place}"));
            place += (width / 10.0).ceil();
        }
        for (number, series) in self.series.iter().enumerate() {
            let colour = COLOURS[number % COLOURS.len()];
            let points: Vec<_> =
                series.points.iter().map(|(place, value)| (x(*place), self.y(*value))).collect();
            let path: Vec<_> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
            let dashes = if series.is_published { " stroke-dasharray=\"5 4\"" } else { "" };
            // Writing to a String cannot fail.
            let _ok = writeln!(
                text,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"{dashes}/>",
                path.join(" ")
            );
            let fill = if series.is_published { "white" } else { colour };
            for (x, y) in points {
                let _ok = writeln!(
                    text,
                    "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"{fill}\" stroke=\"{colour}\" \
                     stroke-width=\"2\"/>"
                );
            }
        }
        text + "</svg>\n"
    }

    /// Draws series side by side over named groups; a point's place is the number of its group.
    pub(crate) fn bars(&self, groups: &[String]) -> String {
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
        let rough = highest / 5.0;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|digit| digit * power);
        let step = step.into_iter().find(|step| *step >= rough).unwrap_or(10.0 * power);
        ((highest / step).ceil() * step, step)
    }

    fn y(&self, value: f64) -> f64 {
        let (top, _) = self.scale();
        HEIGHT - BOTTOM - value / top * (HEIGHT - TOP - BOTTOM)
    }

    /// Draws everything but the series.
    fn frame(&self) -> String {
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
        let (top, step) = self.scale();
        let right = WIDTH - RIGHT;
        for number in 0..=(top / step).round() as u32 {
            let value = f64::from(number) * step;
            let y = self.y(value);
            let _ok = writeln!(
                text,
                "<line x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\" stroke=\"#cccccc\"/>"
            );
            let decimals = if step < 1.0 { (-step.log10()).ceil() as usize } else { 0 };
            label(&mut text, LEFT - 6.0, y + 4.0, "end", &format!("{value:.decimals$}"));
        }
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

/// Writes words at a place.
pub(crate) fn label(text: &mut String, x: f64, y: f64, anchor: &str, words: &str) {
    let words = escape(words);
    let _ok =
        writeln!(text, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{words}</text>");
}

/// Makes words safe inside SVG.
pub(crate) fn escape(words: &str) -> String {
    words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
