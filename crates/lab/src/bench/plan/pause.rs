//! How long the threads of a benchmark wait, as its file says it.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::error::LabError;
use crate::files;
use crate::random::Random;

/// How long a thread waits between two operations, in seconds.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pause {
    /// Not at all.
    #[default]
    None,
    /// Always as long.
    Fixed(f64),
    /// All times between two are equally likely.
    Uniform(f64, f64),
    /// As between events that do not know of each other; the mean.
    Exponential(f64),
    /// Mostly short, now and then very long (Pareto): the shape, and the least time.
    Pareto(f64, f64),
    /// One of these, each equally likely: what somebody has recorded.
    Recorded(Recording),
    /// These in their order, again from the first after the last.
    Replayed(Recording),
}

/// Pauses that somebody has recorded, in seconds.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(from = "Written")]
pub struct Recording {
    times: Vec<f64>,
    /// Where they stand, one in a line, until they are read.
    file: Option<PathBuf>,
}

/// A recording as a plan has it.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "recorded and replayed pauses are a list of seconds, or the name of a file that has them line by line"
)]
enum Written {
    Times(Vec<f64>),
    File(PathBuf),
}

impl From<Written> for Recording {
    fn from(written: Written) -> Self {
        match written {
            Written::Times(times) => Self { times, file: None },
            Written::File(file) => Self { times: Vec::new(), file: Some(file) },
        }
    }
}

impl Pause {
    /// Nobody means to wait longer than a day.
    const SECONDS_MAX: f64 = 86_400.0;

    /// Reads those that are in a file; its path begins at a folder.
    ///
    /// # Errors
    /// [`LabError::Read`]; [`LabError::Benchmark`] names the file and the line.
    pub(super) fn load(&mut self, folder: &Path) -> Result<(), LabError> {
        let (Self::Recorded(recording) | Self::Replayed(recording)) = self else { return Ok(()) };
        if let Some(file) = recording.file.take() {
            recording.times = read(&folder.join(file))?;
        }
        Ok(())
    }

    pub(super) fn is_sound(&self) -> bool {
        match self {
            Self::None => true,
            Self::Fixed(time) | Self::Exponential(time) => is_time(*time),
            Self::Uniform(from, to) => is_time(*from) && is_time(*to) && from <= to,
            Self::Pareto(shape, least) => shape.is_finite() && *shape > 0.0 && is_time(*least),
            Self::Recorded(Recording { times, .. }) | Self::Replayed(Recording { times, .. }) => {
                !times.is_empty() && times.iter().all(|time| is_time(*time))
            }
        }
    }

    /// Returns the one that a thread makes after so many others, in seconds.
    pub(in crate::bench) fn draw(&self, before: u64, random: &mut Random) -> f64 {
        let seconds = match self {
            Self::None => 0.0,
            Self::Fixed(time) => *time,
            Self::Uniform(from, to) => from + random.unit() * (to - from),
            Self::Exponential(mean) => -mean * (1.0 - random.unit()).ln(),
            Self::Pareto(shape, least) => least / (1.0 - random.unit()).powf(1.0 / shape),
            Self::Recorded(Recording { times, .. }) => {
                times[random.below(times.len() as u64) as usize]
            }
            Self::Replayed(Recording { times, .. }) => {
                times[(before % times.len() as u64) as usize]
            }
        };
        seconds.min(Self::SECONDS_MAX)
    }
}

fn is_time(seconds: f64) -> bool {
    (0.0..=Pause::SECONDS_MAX).contains(&seconds)
}

/// Reads a file with a time in each line, but for those that are empty or a comment.
fn read(path: &Path) -> Result<Vec<f64>, LabError> {
    let refuse =
        |what: String| LabError::Benchmark { what: format!("pause: {}{what}", path.display()) };
    let text = String::from_utf8(files::read(path)?)
        .map_err(|_| refuse(" is no text in UTF-8".to_owned()))?;
    let mut times = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split_once('#').map_or(line, |(before, _)| before).trim();
        if line.is_empty() {
            continue;
        }
        let time = line.parse().ok().filter(|time| is_time(*time));
        times.push(time.ok_or_else(|| {
            refuse(format!(", line {}: '{line}' is no time in seconds from 0 to a day", number + 1))
        })?);
    }
    if times.is_empty() { Err(refuse(" has no time in it".to_owned())) } else { Ok(times) }
}
