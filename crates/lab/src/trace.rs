//! Traces: what happens to a folder, or to several that something keeps equal, one step after the other.
//!
//! *Participants*: whoever makes a trace ([`generate`]), who records one ([`record`]), and who plays it ([`play`]) into folders of ours or of another program.
//! *Goals*: equal traces make equal bytes on any machine; a trace is a text that people can read and write; a million steps need no more
//! memory than the files that are there. *Non-goals*: contents: a trace has seeds, not bytes, also of real documents. *Invariants*: a step names only relative paths without
//! `..`; a step that does not fit what was before is refused with its line.
//!
//! The format is specified in `docs/design/trace-format.md`.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::dataset::made;
use crate::error::LabError;
use crate::files;

pub mod data;
pub mod generate;
pub mod play;
pub mod record;

/// The version of the format.
pub const FORMAT: u32 = 1;

/// The largest file that a trace may make, in bytes: a step holds one in memory, and each client does one step at a time.
pub const FILE_SIZE_MAX: u64 = 1 << 30;

/// The first line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    /// [`FORMAT`].
    pub syncline_trace: u32,
    /// What it is called.
    pub name: String,
    /// What it was made with.
    pub about: String,
    /// How many clients take part.
    pub clients: usize,
    /// Of which dataset files are versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dataset: Option<MadeDataset>,
}

/// A dataset of the Syncany thesis that is made from a seed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MadeDataset {
    /// One of [`made::NAMES`].
    pub name: String,
    /// How large it is.
    pub size: made::Size,
    /// Equal seeds make equal bytes.
    pub seed: u64,
}

/// Each further line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Milliseconds after the start; absent in steps that make the initial tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_ms: Option<u64>,
    /// In whose folder, 0 for the first.
    #[serde(default, skip_serializing_if = "is_first")]
    pub client: usize,
    /// What happens.
    #[serde(flatten)]
    pub action: Action,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "this is how serde calls it")]
fn is_first(client: &usize) -> bool {
    *client == 0
}

/// What happens to one path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Action {
    /// A folder is made.
    MakeFolder {
        /// Which one.
        path: String,
    },
    /// A file is made or replaced.
    Write {
        /// Which one.
        path: String,
        /// In bytes.
        size: u64,
        /// What it is like.
        data: data::Kind,
        /// Which of these.
        seed: u64,
    },
    /// A file is made or replaced by what a version of the dataset has at this path.
    WriteVersion {
        /// Which one.
        path: String,
        /// 1 for the first; those of a trace never go back.
        version: usize,
        /// In bytes.
        size: u64,
        /// The SHA-256 of its bytes, in hexadecimal digits: a program that makes others is found out.
        sha256: String,
    },
    /// A file is changed in some places, in this order.
    Edit {
        /// Which one.
        path: String,
        /// Where and how.
        edits: Vec<Edit>,
    },
    /// A file goes, or an empty folder.
    Remove {
        /// Which one.
        path: String,
    },
    /// A file or folder gets another path, which nothing has.
    Rename {
        /// Which one.
        path: String,
        /// As what.
        to: String,
    },
}

impl Action {
    fn paths(&self) -> [Option<&str>; 2] {
        match self {
            Self::MakeFolder { path }
            | Self::Write { path, .. }
            | Self::WriteVersion { path, .. }
            | Self::Edit { path, .. }
            | Self::Remove { path } => [Some(path), None],
            Self::Rename { path, to } => [Some(path), Some(to)],
        }
    }

    /// Of a dataset.
    fn version(&self) -> Option<usize> {
        match self {
            Self::WriteVersion { version, .. } => Some(*version),
            _ => None,
        }
    }
}

/// A change in one place of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    /// Where.
    pub place: Place,
    /// Bytes before it, where the place is an offset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// How.
    pub kind: EditKind,
    /// How many bytes; fewer where the file ends.
    pub size: u64,
    /// Of new bytes, which are random.
    pub seed: u64,
}

/// Where a file is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// Before the first byte.
    Beginning,
    /// At half of its size.
    Middle,
    /// Behind the last byte; what is cut or overwritten ends there.
    End,
    /// Behind so many bytes, or at the end of a shorter file.
    Offset,
}

/// How a file is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EditKind {
    /// New bytes come in.
    Insert,
    /// Bytes become others.
    Overwrite,
    /// Bytes go.
    Cut,
}

/// Opens a trace in a file.
///
/// # Errors
/// [`LabError::Read`], [`LabError::Trace`].
pub fn open(path: &Path) -> Result<Reader<BufReader<File>>, LabError> {
    Reader::new(files::open(path)?)
}

/// Reads a trace line by line.
pub struct Reader<R> {
    lines: io::Lines<R>,
    line: u64,
    head: Head,
}

impl<R: BufRead> Reader<R> {
    /// Reads the first line.
    ///
    /// # Errors
    /// [`LabError::Trace`].
    pub fn new(input: R) -> Result<Self, LabError> {
        let mut lines = input.lines();
        let text = lines.next().unwrap_or_else(|| Ok(String::new()));
        let text = text.map_err(|error| damaged(1, &error))?;
        let head: Head = serde_json::from_str(&text)
            .map_err(|error| damaged(1, &format!("it is not the head of a trace: {error}")))?;
        if head.syncline_trace != FORMAT {
            let newer = format!("its format is {}, and {FORMAT} is known", head.syncline_trace);
            return Err(damaged(1, &newer));
        }
        if head.clients == 0 {
            return Err(damaged(1, &"nobody takes part"));
        }
        if let Some(MadeDataset { name, .. }) = &head.dataset
            && !made::NAMES.contains(&name.as_str())
        {
            return Err(damaged(1, &format!("no dataset '{name}' can be made")));
        }
        Ok(Self { lines, line: 1, head })
    }

    /// Returns what the first line says.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// Returns the number of the line that was read last, 1 for the first.
    pub fn line(&self) -> u64 {
        self.line
    }

    fn check(&self, step: Step) -> Result<Step, LabError> {
        if step.client >= self.head.clients {
            let known = self.head.clients;
            return Err(damaged(self.line, &format!("it names client {} of {known}", step.client)));
        }
        for path in step.action.paths().into_iter().flatten() {
            if !is_within(path) {
                return Err(damaged(self.line, &format!("'{path}' is no path within a folder")));
            }
        }
        let size = match &step.action {
            Action::Write { size, .. } | Action::WriteVersion { size, .. } => *size,
            Action::Edit { edits, .. } => edits.iter().map(|edit| edit.size).max().unwrap_or(0),
            _ => 0,
        };
        if size > FILE_SIZE_MAX {
            return Err(damaged(self.line, &format!("{size} bytes are more than {FILE_SIZE_MAX}")));
        }
        if let Action::Edit { edits, .. } = &step.action
            && edits.iter().any(|edit| edit.offset.is_some() != (edit.place == Place::Offset))
        {
            return Err(damaged(self.line, &"an edit at an offset has one, and no other has"));
        }
        if step.action.version().is_some_and(|version| version == 0 || self.head.dataset.is_none())
        {
            return Err(damaged(self.line, &"it is of no version of a dataset"));
        }
        Ok(step)
    }
}

/// Writes a line of a trace.
fn write_line(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    out.write_all(b"\n")
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = Result<Step, LabError>;

    fn next(&mut self) -> Option<Self::Item> {
        let text = self.lines.next()?;
        self.line += 1;
        let line = self.line;
        let parsed = text
            .map_err(|error| damaged(line, &error))
            .and_then(|text| serde_json::from_str(&text).map_err(|error| damaged(line, &error)));
        Some(parsed.and_then(|step| self.check(step)))
    }
}

fn damaged(line: u64, what: &dyn std::fmt::Display) -> LabError {
    LabError::Trace { line, what: what.to_string() }
}

/// Tells whether a path stays in the folder, and is not one that a program which syncs keeps for itself.
fn is_within(path: &str) -> bool {
    path.split('/').all(|part| !part.is_empty() && !part.starts_with('.') && !part.contains('\0'))
}

#[cfg(test)]
mod tests;
