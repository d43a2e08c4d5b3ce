//! What came of it: a row for each run, the most clients of each method, Figures 21 and 22 with the paper's points.

use std::fmt::Write;
use std::time::Duration;

use anyhow::Result;

use super::exchange::Method;
use super::files::Content;
use super::run::Outcome;
use lab::output::{Output, say};
use lab::plot::{Plot, Series};

/// Edits that are there later than this, one of a hundred, are there too late, in milliseconds.
const LATE: f64 = 1000.0;

/// How many cores the server of the paper had (section 6.1).
const CORES_OF_PAPER: f64 = 4.0;

/// What the paper says of Figure 21 in words, on its four cores: so many clients of WebR2sync+, 3 to 4 times as many as of WebR2sync, 15 times as many as
/// with whole files. The least, and the most.
const FIGURE_21: [(Method, f64, f64); 3] = [
    (Method::WebR2syncPlus, 6800.0, 8500.0),
    (Method::WebR2sync, 6800.0 / 4.0, 8500.0 / 3.0),
    (Method::Whole, 6800.0 / 15.0, 8500.0 / 15.0),
];

/// The same of Figure 22.
const FIGURE_22: [(Method, f64, f64); 1] = [(Method::WebR2syncPlus, 740.0, 740.0)];

/// What clients do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Workload {
    /// An edit every ten seconds.
    Regular,
    /// The files of one release after the other.
    Intensive,
}

impl Workload {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Regular, Self::Intensive];

    /// The name on the command line and in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Regular => "regular",
            Self::Intensive => "intensive",
        }
    }
}

/// What has to be known to read the figures.
#[derive(Debug, Clone)]
pub struct About {
    /// Whence all chance came.
    pub seed: u64,
    /// Which releases.
    pub releases: String,
    /// Bytes of an edited file.
    pub file_length: usize,
    /// A round trip of an intensive client.
    pub line: Duration,
    /// Cores of the machine.
    pub cores: usize,
    /// How many clients the system let be connected at once, or were asked for.
    pub clients_max: usize,
    /// How busy the machine was at the end, as the kernel says it.
    pub load: String,
}

/// One run.
#[derive(Debug, Clone)]
pub struct Row {
    /// What clients did.
    pub workload: Workload,
    /// How they sent it.
    pub method: Method,
    /// What the edited file was like, and by how many bytes it was edited; nothing of releases.
    pub edited: Option<(Content, usize)>,
    /// How many clients there were.
    pub clients: usize,
    /// Edits a second that were to be sent.
    pub offered_per_second: f64,
    /// Edits a second that were there.
    pub stored_per_second: f64,
    /// Whether all of them were there in the end.
    pub is_complete: bool,
    /// The part of its core that the server used.
    pub server_cores: f64,
    /// The same of the generator.
    pub generator_cores: f64,
    /// Cores that others on the host had.
    pub stolen_cores: f64,
    /// Processor time of the server for an edit, in milliseconds.
    pub server_ms: f64,
    /// Delays of edits, in milliseconds: the middle one, 99 of a hundred, the longest.
    pub delays_ms: [f64; 3],
    /// Bytes of an edit to the server and back, with the headers of HTTP.
    pub bytes: [f64; 2],
    /// Requests that were made again, for the server had no room.
    pub repeated: u64,
    /// Files that were read back and were right.
    pub verified: usize,
    /// Why a client gave up.
    pub failure: Option<String>,
}

impl Row {
    /// Computes the figures of a run.
    pub fn new(
        workload: Workload,
        method: Method,
        edited: Option<(Content, usize)>,
        clients: usize,
        outcome: Outcome,
    ) -> Self {
        let wall = outcome.wall_seconds.max(1e-9);
        let edits = outcome.stored_in_time.max(1) as f64;
        let delay = |percent| outcome.delays.percentile(percent).unwrap_or(f64::NAN);
        Self {
            workload,
            method,
            edited,
            clients,
            offered_per_second: outcome.offered as f64 / wall,
            stored_per_second: outcome.stored_in_time as f64 / wall,
            is_complete: outcome.stored == outcome.offered && outcome.offered > 0,
            server_cores: outcome.server_seconds / wall,
            generator_cores: outcome.generator_seconds / wall,
            stolen_cores: outcome.stolen_seconds / wall,
            server_ms: outcome.server_seconds * 1000.0 / edits,
            delays_ms: [delay(50.0), delay(99.0), outcome.delays.longest().unwrap_or(f64::NAN)],
            bytes: [outcome.bytes.0 as f64 / edits, outcome.bytes.1 as f64 / edits],
            repeated: outcome.repeated,
            verified: outcome.verified,
            failure: outcome.failures.into_iter().next(),
        }
    }

    /// Tells whether all edits were there, and in time.
    pub fn follows(&self) -> bool {
        self.is_complete && self.failure.is_none() && self.delays_ms[1] <= LATE
    }

    /// Returns which part of its core the server used.
    pub fn busy(&self) -> f64 {
        self.server_cores
    }

    /// What it is a run of, without the number of clients.
    fn case(&self) -> String {
        let method = self.method.title();
        match self.edited {
            Some((content, size)) => format!("{method}, {} of {size} B", content.name()),
            None => format!("{method}, releases"),
        }
    }

    /// Tells it in a line.
    pub fn describe(&self) -> String {
        let verdict = match (&self.failure, self.follows()) {
            (Some(failure), _) => format!("FAILED: {failure}"),
            (None, true) => "in time".to_owned(),
            (None, false) => "late".to_owned(),
        };
        let [p50, p99, _] = self.delays_ms;
        format!(
            "{}: {} clients, {:.0}/s of {:.0}/s, server {:.2} cores ({:.2} ms an edit), generator {:.2}, others {:.2}, p50 {p50:.1} ms, p99 {p99:.1} ms, {:.0} B up, {:.0} B \
             down, {} again, {} read back: {verdict}",
            self.case(),
            self.clients,
            self.stored_per_second,
            self.offered_per_second,
            self.server_cores,
            self.server_ms,
            self.generator_cores,
            self.stolen_cores,
            self.bytes[0],
            self.bytes[1],
            self.repeated,
            self.verified
        )
    }
}

/// Returns of each case the run with the most clients whose edits were there in time.
pub fn most(rows: &[Row]) -> Vec<&Row> {
    let mut most: Vec<&Row> = Vec::new();
    for row in rows.iter().filter(|row| row.follows()) {
        let same = |other: &&Row| {
            (other.workload, other.method, other.edited) == (row.workload, row.method, row.edited)
        };
        match most.iter().position(same) {
            Some(place) if most[place].clients < row.clients => most[place] = row,
            Some(_) => {}
            None => most.push(row),
        }
    }
    most
}

/// Writes tables, drawings and the report.
pub(super) fn write(about: &About, rows: &[Row], output: &Output) -> Result<()> {
    output.write_csv("web-clients", &csv_of(rows))?;
    output.write_svg("web-figure-21", &figure(rows, Workload::Regular))?;
    output.write_svg("web-figure-22", &figure(rows, Workload::Intensive))?;
    let text = markdown(about, rows);
    output.write_report("web-clients", &text)?;
    say(&text);
    Ok(())
}

fn csv_of(rows: &[Row]) -> String {
    let mut text = "workload,method,content,edit_bytes,clients,offered_per_second,stored_per_second,in_time,server_cores,generator_cores,stolen_cores,\
                    server_ms_per_edit,p50_ms,p99_ms,longest_ms,up_bytes,down_bytes,repeated,read_back,failure\n"
        .to_owned();
    for row in rows {
        let (content, size) = row.edited.map_or_else(
            || ("releases", String::new()),
            |(content, size)| (content.name(), size.to_string()),
        );
        let [p50, p99, longest] = row.delays_ms;
        // Writing to a String cannot fail.
        let _ok = writeln!(
            text,
            "{},{},{content},{size},{},{:.1},{:.1},{},{:.3},{:.3},{:.3},{:.4},{p50:.2},{p99:.2},{longest:.2},{:.0},{:.0},{},{},\"{}\"",
            row.workload.name(),
            row.method.name(),
            row.clients,
            row.offered_per_second,
            row.stored_per_second,
            row.follows(),
            row.server_cores,
            row.generator_cores,
            row.stolen_cores,
            row.server_ms,
            row.bytes[0],
            row.bytes[1],
            row.repeated,
            row.verified,
            row.failure.as_deref().unwrap_or_default().replace('"', "'").replace('\n', " "),
        );
    }
    text
}

/// Draws the most clients of each method, and a core's share of what the paper says.
fn figure(rows: &[Row], workload: Workload) -> String {
    let most: Vec<&Row> = most(rows).into_iter().filter(|row| row.workload == workload).collect();
    let (number, published): (_, &[(Method, f64, f64)]) = match workload {
        Workload::Regular => (21, &FIGURE_21),
        Workload::Intensive => (22, &FIGURE_22),
    };
    let place = |method: Method| {
        let place = Method::ALL.iter().position(|other| *other == method);
        place.unwrap_or_default() as f64
    };
    let paper = |name: &str, figure: fn(&(Method, f64, f64)) -> f64| {
        let points = published.iter().map(|line| (place(line.0), figure(line) / CORES_OF_PAPER));
        Series::published(name, points.collect())
    };
    let mut series = vec![paper("paper, a quarter of it", |line| line.1)];
    if workload == Workload::Regular {
        series[0].name = "paper, a quarter, least".to_owned();
        series.push(paper("paper, a quarter, most", |line| line.2));
    }
    let mut kinds: Vec<_> = most.iter().map(|row| row.edited).collect();
    kinds.sort();
    kinds.dedup();
    for kind in kinds {
        let points = most.iter().filter(|row| row.edited == kind);
        let name = match kind {
            Some((content, size)) => format!("here, {} of {size} B", content.name()),
            None => "here, 30 ms".to_owned(),
        };
        let points = points.map(|row| (place(row.method), row.clients as f64));
        series.push(Series::ours(name, points.collect()));
    }
    let groups = Method::ALL.map(|method| method.title().to_owned());
    let title = format!("Figure {number}: clients of one core, {}", workload.name());
    let (across, up) = ("method".to_owned(), "clients".to_owned());
    Plot { title, across, up, series }.bars(&groups)
}

fn markdown(about: &About, rows: &[Row]) -> String {
    let mut text = format!(
        "# Clients in browsers on one core\n\nSeed {}, {} cores, of which the server has one; load of the machine in the end: {}. Regular: each client edits its file of {} \
         bytes once in 10 s. Intensive: {}; without a pause, each round trip {} ms. At most {} clients could be connected.\n",
        about.seed,
        about.cores,
        about.load,
        about.file_length,
        about.releases,
        about.line.as_millis(),
        about.clients_max,
    );
    text.push_str(
        "\n## The most clients whose edits were there in time (p99 at most 1 s)\n\n\
         | workload | method | clients | edits/s | server | server, ms an edit | p50, p99, ms | up, down, B | paper, a quarter of it |\n|---|---|---|---|---|---|---|---|---|\n",
    );
    for row in most(rows) {
        let published = match row.workload {
            Workload::Regular => &FIGURE_21[..],
            Workload::Intensive => &FIGURE_22[..],
        };
        let paper = published.iter().find(|line| line.0 == row.method);
        let paper = paper.map_or_else(String::new, |(_, least, most)| {
            let (least, most) = (least / CORES_OF_PAPER, most / CORES_OF_PAPER);
            if least < most { format!("{least:.0} to {most:.0}") } else { format!("{least:.0}") }
        });
        // Writing to a String cannot fail.
        let _ok = writeln!(
            text,
            "| {} | {} | {} | {:.0} | {:.2} cores | {:.2} | {:.1}, {:.1} | {:.0}, {:.0} | {paper} |",
            row.workload.name(),
            row.case(),
            row.clients,
            row.stored_per_second,
            row.server_cores,
            row.server_ms,
            row.delays_ms[0],
            row.delays_ms[1],
            row.bytes[0],
            row.bytes[1],
        );
    }
    text.push_str("\n## All runs\n\n");
    for row in rows {
        // Writing to a String cannot fail.
        let _ok = writeln!(text, "- {}", row.describe());
    }
    text + NOTES
}

const NOTES: &str = "\n## How to read it\n\n\
    - A client is a connection of its own that makes the requests of the app. What a browser computes was computed before, and each answer was compared with the one that was \
    foreseen; of each run some files were read back.\n\
    - *ours* has kept what it knows of the version before; *a picked file* asks for genesis, chunk list and sums first, as the app does.\n\
    - A server with less than 0.95 of its core in its last run was not full; then the next number of clients was too late, or none was tried.\n\
    - The paper's server had four cores at 2.5 GHz and kept the bytes in an object store; a quarter of its figures stands here beside one core.\n";

#[cfg(test)]
mod tests {
    use super::*;

    fn row(method: Method, clients: usize, p99: f64) -> Row {
        let delays = [Duration::from_secs_f64(p99 / 1000.0)].into_iter().collect();
        let outcome = Outcome {
            offered: 10,
            stored: 10,
            stored_in_time: 10,
            delays,
            wall_seconds: 1.0,
            server_seconds: 0.5,
            ..Outcome::default()
        };
        Row::new(Workload::Regular, method, Some((Content::Letters, 1000)), clients, outcome)
    }

    #[test]
    fn the_most_clients_are_those_whose_edits_are_there_in_time() {
        let late = row(Method::Ours, 400, 1500.0);
        assert!(!late.follows());
        let rows = [
            row(Method::Ours, 100, 5.0),
            row(Method::Ours, 200, 900.0),
            late,
            row(Method::Whole, 10, 5.0),
        ];
        let most = most(&rows);
        let found: Vec<_> = most.iter().map(|row| (row.method, row.clients)).collect();
        assert_eq!(found, [(Method::Ours, 200), (Method::Whole, 10)]);
        assert!((most[0].server_ms - 50.0).abs() < 1e-9);
    }

    #[test]
    fn figures_have_the_points_of_the_paper_beside_ours() {
        let rows = [row(Method::WebR2syncPlus, 2000, 5.0)];
        let drawn = figure(&rows, Workload::Regular);
        assert!(
            drawn.contains("paper, a quarter, most") && drawn.contains("here, letters of 1000 B")
        );
        // Three methods of the paper twice, one here, and a mark in the legend for each of three names and the paper itself.
        assert_eq!(drawn.matches("<rect").count(), 3 * 2 + 1 + 3 + 1);
        assert!(
            csv_of(&rows)
                .lines()
                .nth(1)
                .is_some_and(|line| line.starts_with("regular,webr2sync+,letters,1000,2000,"))
        );
    }
}
