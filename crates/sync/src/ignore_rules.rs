//! Which names are not synced: the user's rules, in the syntax of gitignore, and a few of our own below them.
//!
//! The rules stand in `.synclineignore` in the root, which is itself synced, and in files of that name in other
//! directories, whose rules hold there and below and win over those from above. Rules are text here: nothing reads the
//! disk. As with git, nothing below an ignored directory can be taken in again, and the last matching rule of a file
//! decides. Unlike git's, the built-in rules for temporary files leave directories alone: one called `4913` is a
//! person's own.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use model::RelativePath;

use crate::file_system::SERVICE_DIRECTORY;

/// The name of the files that hold rules.
pub const IGNORE_FILE: &str = ".synclineignore";

/// The longest text of rules that is read, in bytes.
pub const RULES_LENGTH_MAX: usize = 1 << 20;

/// The most rules that one file may hold.
pub const RULES_MAX: usize = 10_000;

/// Names that are ignored unless a user's rule takes them in again, as `!*.part` would; at most one `*` in each.
/// They are names of files and links; with a `/` at the end, of directories.
pub const BUILT_IN_RULES: &[&str] = &[
    // Editors: swap and lock files, and what they write first to see whether they can.
    "*.swp",
    "*.swo",
    "*.swx",
    "*.kate-swp",
    ".#*",
    "4913",
    ".goutputstream-*",
    // Office programs: who has a document open.
    "~$*",
    ".~lock.*#",
    // Downloads that are not complete.
    "*.part",
    "*.crdownload",
    // File managers.
    ".DS_Store",
    "Thumbs.db",
    "desktop.ini",
    // File systems: removed files that are still open, and finds of the repair program.
    ".nfs*",
    ".fuse_hidden*",
    "lost+found/",
    // What other sync tools keep for themselves.
    ".stfolder/",
    ".stfolder",
    ".sync/",
    ".dropbox.cache/",
];

/// A rule that does not count, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the ignore rules does not count: {reason}")]
pub struct Warning {
    /// The line, counted from 1.
    pub line: usize,
    /// Why.
    pub reason: String,
}

/// Tells which paths are not synced.
#[derive(Debug, Clone)]
pub struct IgnoreRules {
    /// The rules of the root.
    of_root: Gitignore,
    /// The rules of each other directory that has some, by its path.
    of_directories: HashMap<Box<[u8]>, Gitignore>,
    built_in: BuiltIn,
}

impl Default for IgnoreRules {
    fn default() -> Self {
        Self {
            of_root: Gitignore::empty(),
            of_directories: HashMap::new(),
            built_in: BuiltIn::new(),
        }
    }
}

impl IgnoreRules {
    /// Reads the rules of the root. A rule that makes no sense is left out with a warning, and the others count.
    pub fn parse(text: &[u8]) -> (Self, Vec<Warning>) {
        let mut rules = Self::default();
        let warnings = rules.add(&RelativePath::ROOT, text);
        (rules, warnings)
    }

    /// Reads the rules of a directory, in place of those it had.
    pub fn add(&mut self, directory: &RelativePath, text: &[u8]) -> Vec<Warning> {
        let (matcher, warnings) = read_rules(text);
        if directory.is_root() {
            self.of_root = matcher;
        } else if matcher.is_empty() {
            self.remove(directory);
        } else {
            self.of_directories.insert(directory.as_bytes().into(), matcher);
        }
        warnings
    }

    /// Forgets the rules of a directory.
    pub fn remove(&mut self, directory: &RelativePath) {
        if directory.is_root() {
            self.of_root = Gitignore::empty();
        } else if !self.of_directories.is_empty() {
            self.of_directories.remove(directory.as_bytes());
        }
    }

    /// Tells whether a path is not synced, by itself or because it lies in a directory that is not.
    pub fn is_ignored(&self, path: &RelativePath, is_directory: bool) -> bool {
        let bytes = path.as_bytes();
        let slashes = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        let mut parents = slashes.map(|(end, _)| &bytes[..end]);
        parents.any(|parent| self.matches(parent, true)) || self.matches(bytes, is_directory)
    }

    /// Tells the same of a path whose directory is known to be synced, as when a tree is walked from its top.
    pub fn is_entry_ignored(&self, path: &RelativePath, is_directory: bool) -> bool {
        self.matches(path.as_bytes(), is_directory)
    }

    /// Looks at a path alone.
    fn matches(&self, path: &[u8], is_directory: bool) -> bool {
        let name = match path.iter().rposition(|&byte| byte == b'/') {
            Some(slash) => &path[slash + 1..],
            None => path,
        };
        if name.is_empty() || name == IGNORE_FILE.as_bytes() {
            return false;
        }
        // At any depth: the folder of another workspace may lie in this one.
        if name == SERVICE_DIRECTORY.as_bytes() {
            return true;
        }
        match self.decision(path, is_directory) {
            Match::None => self.built_in.matches(name, is_directory),
            Match::Ignore(()) => true,
            Match::Whitelist(()) => false,
        }
    }

    /// Asks the user's rules, the nearest first.
    fn decision(&self, path: &[u8], is_directory: bool) -> Match<()> {
        let ask = |rules: &Gitignore, below: &[u8]| {
            rules.matched(Path::new(OsStr::from_bytes(below)), is_directory).map(|_| ())
        };
        if !self.of_directories.is_empty() {
            let slashes = path.iter().enumerate().rev().filter(|(_, byte)| **byte == b'/');
            for (end, _) in slashes {
                let Some(rules) = self.of_directories.get(&path[..end]) else { continue };
                match ask(rules, &path[end + 1..]) {
                    Match::None => {}
                    decided => return decided,
                }
            }
        }
        ask(&self.of_root, path)
    }
}

/// Reads rules, one in each line.
fn read_rules(text: &[u8]) -> (Gitignore, Vec<Warning>) {
    let mut warnings = Vec::new();
    let mut warn = |line: usize, reason: String| warnings.push(Warning { line: line + 1, reason });
    // The matcher takes a root of "." to mean that paths are relative to it already.
    let mut builder = GitignoreBuilder::new(".");
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let read = &text[..text.len().min(RULES_LENGTH_MAX)];
    let mut last = 0;
    for (number, line) in read.split(|&byte| byte == b'\n').enumerate() {
        last = number;
        if number >= RULES_MAX {
            warn(number, format!("there are more than {RULES_MAX} lines; the rest does not count"));
            break;
        }
        match std::str::from_utf8(line) {
            Ok(line) => {
                if let Err(error) = builder.add_line(None, line) {
                    warn(number, error.to_string());
                }
            }
            Err(_) => warn(number, "it is not UTF-8".to_owned()),
        }
    }
    if read.len() < text.len() {
        warn(
            last,
            format!("the file is longer than {RULES_LENGTH_MAX} bytes; the rest does not count"),
        );
    }
    match builder.build() {
        Ok(matcher) => (matcher, warnings),
        Err(error) => {
            warn(last, format!("together with the lines before it is too much: {error}"));
            (Gitignore::empty(), warnings)
        }
    }
}

/// The built-in rules, made for being asked of each of a million names.
#[derive(Debug, Clone)]
struct BuiltIn {
    patterns: Vec<NamePattern>,
    /// The bytes with which a name that matches begins, and those with which one ends.
    first: Box<[bool; 256]>,
    last: Box<[bool; 256]>,
}

#[derive(Debug, Clone)]
struct NamePattern {
    prefix: &'static [u8],
    /// Absent where the prefix is the whole name.
    suffix: Option<&'static [u8]>,
    is_for_directories: bool,
}

impl BuiltIn {
    fn new() -> Self {
        let patterns: Vec<_> = BUILT_IN_RULES.iter().map(|rule| NamePattern::new(rule)).collect();
        let (mut first, mut last) = (Box::new([false; 256]), Box::new([false; 256]));
        for pattern in &patterns {
            match (pattern.prefix.first(), pattern.suffix.and_then(<[u8]>::last)) {
                (Some(&byte), _) => first[usize::from(byte)] = true,
                (None, Some(&byte)) => last[usize::from(byte)] = true,
                (None, None) => {}
            }
        }
        Self { patterns, first, last }
    }

    fn matches(&self, name: &[u8], is_directory: bool) -> bool {
        let (Some(&first), Some(&last)) = (name.first(), name.last()) else { return false };
        (self.first[usize::from(first)] || self.last[usize::from(last)])
            && self.patterns.iter().any(|pattern| pattern.matches(name, is_directory))
    }
}

impl NamePattern {
    fn new(rule: &'static str) -> Self {
        let (rule, is_for_directories) = match rule.strip_suffix('/') {
            Some(rule) => (rule, true),
            None => (rule, false),
        };
        match rule.split_once('*') {
            Some((prefix, suffix)) => Self {
                prefix: prefix.as_bytes(),
                suffix: Some(suffix.as_bytes()),
                is_for_directories,
            },
            None => Self { prefix: rule.as_bytes(), suffix: None, is_for_directories },
        }
    }

    fn matches(&self, name: &[u8], is_directory: bool) -> bool {
        if self.is_for_directories != is_directory {
            return false;
        }
        match (name.strip_prefix(self.prefix), self.suffix) {
            (Some(rest), Some(suffix)) => rest.ends_with(suffix),
            (Some(rest), None) => rest.is_empty(),
            (None, _) => false,
        }
    }
}

#[cfg(test)]
mod tests;
