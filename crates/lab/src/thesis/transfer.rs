//! Experiment 2, and the second part of experiment 3: how long it takes to send what experiment 1 has stored, and to fetch it, by chunks and by
//! multichunks.
//!
//! As in the thesis a few files of the mean sizes are sent and fetched, and the time for a version is calculated from that. Its stores were
//! real ones, which nobody can ask again; here a store is spoken to over a line as thin as the one there ([`line`]), in the same words
//! ([`dialogue`]).

mod dialogue;
mod line;
mod report;

use std::fmt::Write;

use dialogue::{Client, Protocol};
use line::Speed;

use super::configuration::{Chunking, Compression, Configuration, Fingerprint, Variant};
use super::outcome::Row;
use super::{Plan, ours, pass};
use crate::dataset::made::Size;
use crate::error::LabError;
use crate::output::{Output, median};
use crate::random::Random;
use crate::stopwatch::Stopwatch;

/// Sizes in KiB of files that are sent and fetched; what lies between two takes what lies between their times.
const SIZES_KIB: [u64; 8] = [1, 4, 8, 16, 48, 125, 250, 400];

/// How often each is sent and fetched: a few times, or as often as in the thesis.
const TIMES: usize = 3;
const TIMES_FULL: usize = 10;

/// What goes to a store as one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    /// Around so many KiB.
    Chunks(u32),
    /// From so many KiB on.
    Multichunks(usize),
}

impl Unit {
    /// Those of the thesis.
    const ALL: [Self; 5] = [
        Self::Chunks(4),
        Self::Chunks(8),
        Self::Chunks(16),
        Self::Multichunks(125),
        Self::Multichunks(250),
    ];

    fn name(self) -> String {
        match self {
            Self::Chunks(kib) => format!("{kib} KB"),
            Self::Multichunks(kib) => format!("{kib} KB (multi)"),
        }
    }

    /// What was chosen after experiment 1, but for the pause, which costs nothing on a line.
    fn configuration(self) -> Configuration {
        let (average_kib, multichunk_kib) = match self {
            Self::Chunks(kib) => (kib, 250),
            Self::Multichunks(kib) => (4, kib),
        };
        let chunking = Chunking { fingerprint: Some(Fingerprint::Adler32), average_kib };
        Configuration { multichunk_kib, pause_ms: 0, chunking, compression: Compression::Gzip }
    }
}

/// What experiment 1 made of one dataset.
struct Stored {
    dataset: String,
    /// In the order of [`Unit::ALL`].
    units: [Vec<Row>; 5],
    ours: Vec<Row>,
}

impl Stored {
    /// How large one file is, and how many bytes there are to send, for each version.
    fn sent(&self, unit: usize) -> Vec<(f64, f64)> {
        let sent = |row: &Row| {
            let files = match Unit::ALL[unit] {
                Unit::Chunks(_) => row.new_chunks,
                Unit::Multichunks(_) => row.multichunks,
            };
            (files.bytes as f64 / files.count.max(1) as f64, row.multichunks.bytes as f64)
        };
        self.units[unit].iter().map(sent).collect()
    }

    /// The same of what somebody fetches who has no version.
    fn fetched(&self, unit: usize) -> Vec<(f64, f64)> {
        let fetched = |row: &Row| {
            let all = row.reconstructions[0].unwrap_or_default();
            match Unit::ALL[unit] {
                Unit::Chunks(_) => {
                    let mean = row.chunks.bytes as f64 / row.chunks.count.max(1) as f64;
                    (mean, all.chunks as f64)
                }
                Unit::Multichunks(kib) => (kib as f64 * 1024.0, all.containers as f64),
            }
        };
        self.units[unit].iter().map(fetched).collect()
    }
}

/// How long files of [`SIZES_KIB`] take, by each protocol: up, and down.
struct Times {
    seconds: [[[f64; SIZES_KIB.len()]; 2]; Protocol::ALL.len()],
}

/// Which way a file goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Up,
    Down,
}

impl Times {
    /// Sends and fetches.
    fn measure(speed: Speed, times: usize, say: &mut dyn FnMut(&str)) -> Result<Self, LabError> {
        let mut seconds = [[[0.0; SIZES_KIB.len()]; 2]; Protocol::ALL.len()];
        for (protocol, of_protocol) in Protocol::ALL.into_iter().zip(&mut seconds) {
            let failed = |source| LabError::Dialogue { protocol: protocol.name(), source };
            let mut client = Client::connect(protocol, speed);
            for (size, kib) in SIZES_KIB.into_iter().enumerate() {
                let mut bytes = vec![0; kib as usize * 1024];
                Random::new(kib).fill(&mut bytes);
                let [mut up, mut down] = [Vec::new(), Vec::new()];
                for number in 0..times {
                    let name = format!("chunk-{kib}-{number}");
                    let watch = Stopwatch::start();
                    client.upload(&name, &bytes).map_err(failed)?;
                    up.push(watch.wall());
                    let watch = Stopwatch::start();
                    let back = client.download(&name).map_err(failed)?;
                    down.push(watch.wall());
                    assert!(back == bytes, "a store of ours gives back what it got");
                }
                of_protocol[0][size] = median(&up);
                of_protocol[1][size] = median(&down);
            }
            let [up, down] = *of_protocol;
            let kib = SIZES_KIB[6];
            say(&format!(
                "{}: {kib} KiB in {:.2} s up and {:.2} s down",
                protocol.name(),
                up[6],
                down[6]
            ));
        }
        Ok(Self { seconds })
    }

    /// Returns how long a file of some bytes takes: on the straight line between the two sizes around it.
    fn of(&self, protocol: usize, way: Way, bytes: f64) -> f64 {
        let seconds = &self.seconds[protocol][usize::from(way == Way::Down)];
        let kib = bytes / 1024.0;
        let upper = SIZES_KIB.iter().position(|size| *size as f64 >= kib);
        let upper = upper.unwrap_or(SIZES_KIB.len() - 1).max(1);
        let [from, to] = [upper - 1, upper].map(|index| SIZES_KIB[index] as f64);
        let slope = (seconds[upper] - seconds[upper - 1]) / (to - from);
        (seconds[upper - 1] + (kib - from) * slope).max(0.0)
    }

    /// Returns how long all files of a version take, one after the other, and in bytes a second.
    fn of_version(&self, protocol: usize, way: Way, (file, bytes): (f64, f64)) -> f64 {
        if bytes > 0.0 { self.of(protocol, way, file) * bytes / file } else { 0.0 }
    }
}

/// Experiment 2: figures 6.16 to 6.19.
///
/// # Errors
/// [`LabError`].
pub fn upload(plan: &Plan, output: &Output, say: &mut dyn FnMut(&str)) -> Result<(), LabError> {
    let (stored, times) = prepare(plan, say)?;
    output.write_csv("syncany-upload", &csv(&stored, &times, Way::Up))?;
    output.write_page("syncany-upload", &report::upload(&stored, &times))
}

/// The second part of experiment 3: table 6.9, figures 6.24 and 6.25.
///
/// # Errors
/// [`LabError`].
pub fn download(plan: &Plan, output: &Output, say: &mut dyn FnMut(&str)) -> Result<(), LabError> {
    let (stored, times) = prepare(plan, say)?;
    output.write_csv("syncany-download", &csv(&stored, &times, Way::Down))?;
    output.write_page("syncany-download", &report::download(&stored, &times))
}

fn prepare(plan: &Plan, say: &mut dyn FnMut(&str)) -> Result<(Vec<Stored>, Times), LabError> {
    let mut all = Vec::new();
    for dataset in &plan.open_datasets()? {
        let mut units: [Vec<Row>; 5] = Default::default();
        for (unit, rows) in Unit::ALL.into_iter().zip(&mut units) {
            *rows = pass::measure(unit.configuration(), Variant::Correct, dataset)?;
        }
        say(&format!("dataset {}: {} versions were cut", dataset.name, dataset.versions.len()));
        let ours = ours::measure(dataset)?;
        all.push(Stored { dataset: dataset.name.clone(), units, ours });
    }
    let times = if plan.size == Size::Full { TIMES_FULL } else { TIMES };
    Ok((all, Times::measure(Speed::THESIS, times, say)?))
}

/// Every version, by every unit and protocol.
fn csv(all: &[Stored], times: &Times, way: Way) -> String {
    let mut text = String::from("dataset,version,unit,storage,file_bytes,bytes,seconds\n");
    for stored in all {
        for (index, unit) in Unit::ALL.into_iter().enumerate() {
            let versions = if way == Way::Up { stored.sent(index) } else { stored.fetched(index) };
            for (version, of_version) in versions.into_iter().enumerate() {
                for (protocol, name) in Protocol::ALL.map(Protocol::name).into_iter().enumerate() {
                    // Writing to a String cannot fail.
                    let _ok = writeln!(
                        text,
                        "{},{},{},{name},{:.0},{:.0},{:.3}",
                        stored.dataset,
                        version + 1,
                        unit.name(),
                        of_version.0,
                        of_version.1,
                        times.of_version(protocol, way, of_version)
                    );
                }
            }
        }
    }
    text
}

#[cfg(test)]
mod tests;
