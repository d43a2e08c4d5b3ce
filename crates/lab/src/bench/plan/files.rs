//! What is in the files of a benchmark, as its file says it.

use std::path::PathBuf;

use serde::Deserialize;

use crate::error::LabError;

/// What is in files that are made.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Files {
    /// How their bytes are made.
    pub kind: Kind,
    /// In bytes; of those that are made as programs make them, about so many.
    pub size: u64,
    /// Which part of all files of kind `delta` is the same, 0 to 1.
    pub common: f64,
    /// What files of kind `sparse` repeat.
    pub repeat: String,
    /// How many bytes an edit changes. What is made as programs make it is edited as people do.
    pub edit: u64,
    /// With what names begin.
    pub prefix: String,
    /// With what names end. Where it is empty, those end as their kind does that has an ending.
    pub suffix: String,
    /// From which trace files of kind `trace` are taken.
    pub trace: Option<PathBuf>,
    /// Where files that were made are kept, too.
    pub keep_in: Option<PathBuf>,
}

impl Default for Files {
    fn default() -> Self {
        Self {
            kind: Kind::default(),
            size: 1024,
            common: 0.0,
            repeat: " ".to_owned(),
            edit: 1024,
            prefix: "benchmark-".to_owned(),
            suffix: String::new(),
            trace: None,
            keep_in: None,
        }
    }
}

/// How the bytes of files are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// By chance: nothing compresses them.
    #[default]
    Random,
    /// By chance, and the same in all files.
    Identical,
    /// One text again and again.
    Sparse,
    /// The same beginning by chance in all files, and another end in each.
    Delta,
    /// Words and numbers, as in a text.
    Text,
    /// Photographs.
    Jpeg,
    /// Documents with paragraphs and pictures, as Word keeps them.
    Office,
    /// The text of a program.
    Source,
    /// Those that a trace writes, one after the other.
    Trace,
}

impl Kind {
    /// Whether files are made as the programs make them that people use.
    pub(in crate::bench) fn is_structured(self) -> bool {
        matches!(self, Self::Jpeg | Self::Office | Self::Source)
    }
}

/// Files are made in memory, none larger than that, nor those of all threads together.
const SIZE_MAX: u64 = 1 << 30;
const MEMORY_MAX: u64 = 4 << 30;

/// The same of what takes several times its bytes while it is made.
const STRUCTURED_SIZE_MAX: u64 = 64 << 20;
const STRUCTURED_MEMORY_MAX: u64 = 1 << 30;

impl Files {
    /// Looks whether so many threads can make them.
    pub(super) fn check(&self, threads: usize) -> Result<(), LabError> {
        let refuse = |what: &str| Err(LabError::Benchmark { what: what.to_owned() });
        if !self.fits(self.size, threads) {
            return refuse(if self.kind.is_structured() {
                "files.size of this files.kind ends at 64 MiB, and files of all threads together at 1 GiB"
            } else {
                "files.size ends at 1 GiB, and files of all threads together at 4 GiB"
            });
        }
        if !(0.0..=1.0).contains(&self.common) {
            return refuse("files.common is a part of 1: 0.5 is one half");
        }
        let is_too_long = self.repeat.len() as u64 > self.size;
        if self.kind == Kind::Sparse && (self.repeat.is_empty() || is_too_long) {
            return refuse("files.repeat has a letter at least, and is no longer than files.size");
        }
        if (self.kind == Kind::Trace) != self.trace.is_some() {
            return refuse("files.trace, the file of a trace, belongs to files.kind = \"trace\"");
        }
        Ok(())
    }

    /// Whether as many files of so many bytes as there are threads can be in memory at once.
    pub(in crate::bench) fn fits(&self, size: u64, threads: usize) -> bool {
        let (size_max, memory_max) = match self.kind.is_structured() {
            true => (STRUCTURED_SIZE_MAX, STRUCTURED_MEMORY_MAX),
            false => (SIZE_MAX, MEMORY_MAX),
        };
        size <= size_max && size.saturating_mul(threads as u64) <= memory_max
    }
}
