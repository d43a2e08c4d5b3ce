//! What a benchmark does, as its file says it.

use std::path::{Path, PathBuf};

use serde::Deserialize;

mod files;
mod pause;

use super::ini;
use super::wire::Wanted;
use crate::error::LabError;
use crate::random::Random;

pub use files::{Files, Kind};
pub use pause::{Pause, Recording};

/// A benchmark. Its fields are the keys of the file ([`docs/guide/bench.md`](../../../../docs/guide/bench.md)).
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// What it is for, in the words of whoever wrote it.
    #[serde(default)]
    pub description: String,
    /// What is done, again and again.
    pub operation: Operation,
    /// How often in all, by all threads together. A download and a share of a folder have as many operations as that has files.
    #[serde(default = "one")]
    pub times: u64,
    /// How many operations go on at once.
    #[serde(default = "one_thread")]
    pub threads: usize,
    /// Operations before the first that counts, not among `times`.
    #[serde(default)]
    pub warm_up: u64,
    /// How often all of it is done, each time anew: with another seed, and files of its own.
    #[serde(default = "one")]
    pub repetitions: u64,
    /// Equal seeds make equal files and pauses.
    #[serde(default = "seed")]
    pub seed: u64,
    /// Between two operations of a thread.
    #[serde(default)]
    pub pause: Pause,
    /// Each thread begins at a time between these, in seconds, all equally likely.
    #[serde(default)]
    pub start_within: Option<(f64, f64)>,
    /// Where files go, or come from.
    #[serde(default)]
    pub target: Target,
    /// What is in the files that are made.
    #[serde(default)]
    pub files: Files,
    /// How often each operation of a mix is drawn.
    #[serde(default)]
    pub mix: Option<Mix>,
    /// What of the wire is captured.
    #[serde(default)]
    pub capture: Option<Wanted>,
    /// Other programs whose cost is counted.
    #[serde(default)]
    pub processes: Vec<String>,
    /// A text that grows by a line for each operation.
    #[serde(default)]
    pub log: Option<PathBuf>,
}

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// Files are made and written.
    Upload,
    /// All files of a folder are read, as often as `times` says.
    Download,
    /// Each thread has a file of its own, of which some bytes change each time.
    Edit,
    /// A public link is made to each file of a folder, as often as `times` says, and taken back.
    Share,
    /// One of the others each time, as drawn. What is shared is what was there before.
    Mixed,
}

impl Operation {
    /// All that is done; a mix is one of them each time.
    pub(super) const DONE: [Self; 4] = [Self::Upload, Self::Download, Self::Edit, Self::Share];

    /// Whether it is about files that are there.
    pub(super) fn is_of_a_folder(self) -> bool {
        matches!(self, Self::Download | Self::Share)
    }

    /// As in files and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Upload => "upload",
            Self::Download => "download",
            Self::Edit => "edit",
            Self::Share => "share",
            Self::Mixed => "mixed",
        }
    }
}

/// Of operations in a mix: parts of their sum.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mix {
    #[serde(default)]
    upload: f64,
    #[serde(default)]
    download: f64,
    #[serde(default)]
    edit: f64,
    #[serde(default)]
    share: f64,
}

impl Mix {
    fn parts(self) -> [(Operation, f64); 4] {
        [
            (Operation::Upload, self.upload),
            (Operation::Download, self.download),
            (Operation::Edit, self.edit),
            (Operation::Share, self.share),
        ]
    }

    fn is_sound(self) -> bool {
        let parts = self.parts().map(|(_, part)| part);
        parts.iter().all(|part| part.is_finite() && *part >= 0.0) && parts.iter().sum::<f64>() > 0.0
    }

    /// Draws one.
    pub(super) fn draw(self, random: &mut Random) -> Operation {
        let parts = self.parts().into_iter().filter(|(_, part)| *part > 0.0);
        let drawn = random.unit() * parts.clone().map(|(_, part)| part).sum::<f64>();
        let mut end = 0.0;
        let mut last = Operation::Upload;
        for (operation, part) in parts {
            end += part;
            last = operation;
            if drawn < end {
                break;
            }
        }
        // Where rounding has drawn the very end, it is that of the last one.
        last
    }
}

/// Where files go, or come from.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Target {
    /// A folder of this computer; any program may keep it equal with others.
    pub folder: Option<PathBuf>,
    /// A store by its URL.
    pub store: Option<String>,
    /// A folder that is synced with a workspace on a server.
    pub workspace: Option<PathBuf>,
    /// The folder in it where files are.
    pub directory: String,
    /// All uploads write this one file.
    pub name: Option<String>,
    /// An operation ends when this other folder has the same bytes: what keeps the two equal is measured, and not a copy on one disk.
    pub seen_in: Option<PathBuf>,
    /// For how many seconds something is waited for there.
    pub patience: f64,
    /// Where downloads go, an empty folder. Without it they are read, and not kept.
    pub local_directory: Option<PathBuf>,
}

/// Tells whether somebody who names a target means a store by its URL, and not a folder.
pub fn is_url(target: &str) -> bool {
    // No scheme of a store is a single letter, nor has it a '/'.
    target.split_once(':').is_some_and(|(scheme, _)| {
        scheme.len() > 1 && scheme.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
    })
}

impl Default for Target {
    fn default() -> Self {
        Self {
            folder: None,
            store: None,
            workspace: None,
            directory: String::new(),
            name: None,
            seen_in: None,
            patience: 120.0,
            local_directory: None,
        }
    }
}

fn one() -> u64 {
    1
}

fn one_thread() -> usize {
    1
}

/// The year of BenchCloud.
fn seed() -> u64 {
    2014
}

/// More threads than that are not started.
const THREADS_MAX: usize = 20_000;

/// What is not known after so many repetitions, more of them do not tell: whoever writes more has taken it for `times`.
const REPETITIONS_MAX: u64 = 1000;

impl Plan {
    /// Reads a file: TOML, or the INI of BenchCloud (2014) where its name ends so or it has a section `[test]`.
    ///
    /// # Errors
    /// [`LabError::Read`], also of a file of pauses; [`LabError::Benchmark`] names the key, and one that is spelled alike.
    pub fn read(path: &Path) -> Result<Self, LabError> {
        let bytes = crate::files::read(path)?;
        let text = String::from_utf8(bytes)
            .map_err(|_| LabError::Benchmark { what: "it is no text in UTF-8".to_owned() })?;
        let is_ini = |line: &str| line.trim() == "[test]";
        if path.extension().is_some_and(|end| end == "ini" || end == "conf")
            || text.lines().any(is_ini)
        {
            ini::parse(&text)
        } else {
            Self::of_toml_in(&text, path.parent().unwrap_or(path))
        }
    }

    /// Reads TOML. Files that it names beside itself are in the current folder.
    ///
    /// # Errors
    /// [`LabError::Benchmark`].
    pub fn of_toml(text: &str) -> Result<Self, LabError> {
        Self::of_toml_in(text, Path::new(""))
    }

    fn of_toml_in(text: &str, folder: &Path) -> Result<Self, LabError> {
        let mut plan: Self = toml::from_str(text).map_err(|error| {
            let place = error.span().map(|span| text[..span.start].matches('\n').count() + 1);
            let line = place.map_or_else(String::new, |line| format!("line {line}: "));
            LabError::Benchmark { what: format!("{line}{}", with_suggestion(error.message())) }
        })?;
        plan.pause.load(folder)?;
        plan.checked()
    }

    /// Whether links are made, always or now and then.
    pub(super) fn makes_links(&self) -> bool {
        self.operation == Operation::Share || self.mix.is_some_and(|mix| mix.share > 0.0)
    }

    /// Takes a folder, or the URL of a store, in place of the target.
    pub fn take_target(&mut self, text: &str) {
        let path = || Some(PathBuf::from(text));
        let makes_links = self.makes_links();
        let target = &mut self.target;
        (target.folder, target.store, target.workspace) = match makes_links {
            true => (None, None, path()),
            false if is_url(text) => (None, Some(text.to_owned()), None),
            false => (path(), None, None),
        };
    }

    /// Looks whether it can be done.
    ///
    /// # Errors
    /// [`LabError::Benchmark`].
    pub fn checked(self) -> Result<Self, LabError> {
        let refuse = |what: &str| Err(LabError::Benchmark { what: what.to_owned() });
        if self.times == 0 || self.threads == 0 || self.threads > THREADS_MAX {
            return refuse("times and threads begin at 1, and threads end at 20000");
        }
        if !(1..=REPETITIONS_MAX).contains(&self.repetitions) {
            return refuse("repetitions begins at 1, and ends at 1000");
        }
        self.files.check(self.threads)?;
        let edits = self.operation == Operation::Edit || self.mix.is_some_and(|mix| mix.edit > 0.0);
        if self.files.kind == Kind::Jpeg && edits {
            return refuse("files.kind = \"jpeg\" is not for edits: photographs are made once");
        }
        if !self.pause.is_sound() || !(0.0..=86_400.0).contains(&self.target.patience) {
            return refuse("pause and target.patience are seconds from 0 to a day, in order");
        }
        let start = self.start_within.map(|(from, to)| Pause::Uniform(from, to));
        if start.is_some_and(|start| !start.is_sound()) {
            return refuse("start_within is two times in seconds, in order");
        }
        if (self.operation == Operation::Mixed) != self.mix.is_some_and(Mix::is_sound) {
            return refuse(
                "a table [mix] with parts of upload, download, edit and share belongs to operation = \"mixed\"",
            );
        }
        if let Some(capture) = &self.capture {
            capture.check()?;
        }
        let target = &self.target;
        if target.folder.is_some() && target.store.is_some() {
            return refuse("target.folder and target.store are two targets: one is needed");
        }
        let others = target.folder.is_some() || target.store.is_some();
        let makes_links = self.makes_links();
        if makes_links && others || !makes_links && target.workspace.is_some() {
            return refuse(
                "target.workspace, a folder that is synced with a server, belongs to operation = \"share\" and to mix.share, and no other target does",
            );
        }
        let is_written = target.folder.is_some()
            || self.operation == Operation::Mixed && target.workspace.is_some();
        if target.seen_in.is_some() && !is_written {
            return refuse("target.seen_in is for folders that a program keeps equal");
        }
        if target.name.is_some() && self.threads > 1 {
            return refuse(
                "target.name is one file, which one thread writes at a time: threads = 1",
            );
        }
        let names = [target.name.as_deref(), Some(&self.files.prefix), Some(&self.files.suffix)];
        if names.into_iter().flatten().any(|name| name.contains(['/', '\0'])) {
            return refuse("target.name, files.prefix and files.suffix have no '/'");
        }
        let is_outside = |path: &String| !is_below(path);
        if is_outside(&target.directory) || target.name.as_ref().is_some_and(is_outside) {
            return refuse("target.directory and target.name lead below the target, without '..'");
        }
        Ok(self)
    }
}

/// Whether a path leads nowhere but below where it begins.
fn is_below(path: &str) -> bool {
    let is_name = |part: &str| !matches!(part, "" | "." | "..") && !part.contains('\0');
    path.is_empty() || path.split('/').all(is_name)
}

/// Adds which of the expected words is spelled most like the one that nobody knows.
fn with_suggestion(message: &str) -> String {
    let words: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    match words.split_first() {
        Some((unknown, known)) if message.starts_with("unknown") => {
            format!("{message}{}", suggestion(unknown, known))
        }
        _ => message.to_owned(),
    }
}

/// ": did you mean ...?", if a known word is like the unknown one.
pub(super) fn suggestion(unknown: &str, known: &[&str]) -> String {
    let likeness = |word: &str| crate::experiment::likeness(word, unknown);
    let nearest = known.iter().max_by_key(|word| likeness(word));
    let nearest = nearest.filter(|word| likeness(word) > 0);
    nearest.map_or_else(String::new, |word| format!("; did you mean '{word}'?"))
}
