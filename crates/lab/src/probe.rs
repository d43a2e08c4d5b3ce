//! Finds out by experiment what a program does that keeps folders equal, or copies them: what Tables 2.1 and 2.2 of BenchCloud (Wang 2014)
//! ask of six services, and had to take from their makers' words.
//!
//! A probe changes files as a user does, waits until the change is where it belongs, and counts what went over the wire meanwhile
//! ([`crate::capture`]). Nothing of the program itself is known. Read in this order: this file (what is probed), `steps` (the changes), [`answers`]
//! (what follows from the counts), [`report`]; [`store`] asks a store of objects what can be asked of it.

pub mod answers;
pub mod report;
pub mod store;

mod steps;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::capture::{Capture, Counts, Mark};
use crate::error::LabError;
use crate::files;
use crate::random::Random;

/// What is probed.
#[derive(Debug, Clone)]
pub struct Subject {
    /// As tables name it.
    pub name: String,
    /// The folder in which files are changed.
    pub folder: PathBuf,
    /// Where the program brings what is changed; without it, a change is taken for done when something has gone over the wire and it is silent.
    pub seen_in: Option<PathBuf>,
    /// A command for the shell, of a program that has to be told when something has changed.
    pub command: Option<String>,
    /// Of the servers the program talks to.
    pub ports: Vec<u16>,
    /// Where its server keeps what it gets, to look whether it can be read there.
    pub stored: Option<PathBuf>,
    /// A folder that another account keeps with the same server.
    pub elsewhere: Option<PathBuf>,
    /// How long a change may take, and the command.
    pub patience: Duration,
    /// How long the wire is silent when a change is done with.
    pub silence: Duration,
    /// How large and how many the files are.
    pub sizes: Sizes,
}

/// How much a probe moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Of a large file, in bytes.
    pub large: u64,
    /// How many small files come at once.
    pub bundle: u64,
    /// How many small files come as fast as they can be written.
    pub load: u64,
    /// How often something is put behind a file that grows.
    pub appends: u64,
    /// How long after the time before.
    pub append_every: Duration,
    /// How long nothing is done, to see what a program says by itself.
    pub idle: Duration,
}

impl Sizes {
    /// As large as it takes to tell sizes of parts apart.
    pub const FULL: Self = Self {
        large: 8 << 20,
        bundle: 100,
        load: 1000,
        appends: 60,
        append_every: Duration::from_secs(1),
        idle: Duration::from_secs(10),
    };
    /// For a first look: parts of more than a few hundred KiB are not told from whole files.
    pub const QUICK: Self = Self {
        large: 1 << 20,
        bundle: 30,
        load: 100,
        appends: 5,
        append_every: Duration::from_secs(1),
        idle: Duration::from_secs(5),
    };
}

/// What a step is for; the answers know them by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    /// Nothing happens.
    Idle,
    /// A file of 1 KiB comes.
    Small,
    /// A large file comes that nothing compresses.
    Large,
    /// A large text comes.
    Text,
    /// The large file comes again under another name.
    Copy,
    /// The large file comes again, with one byte more in front.
    Shifted,
    /// Two new large files come that are equal.
    Twins,
    /// A large file gets another name.
    Rename,
    /// One byte of the large file is changed, somewhere.
    OneByte,
    /// 1 KiB is put in front of the large file.
    Insert,
    /// 1 KiB is put behind it.
    Append,
    /// All copies of a large file go.
    Remove,
    /// It comes again.
    Again,
    /// Large files come at once whose first halves are the same.
    Halves,
    /// A file comes that is 1 KiB long, and grows by as much again and again.
    Growing,
    /// Many small files come at once.
    Bundle,
    /// Many more come.
    Load,
    /// The large file comes into the folder of another account.
    Elsewhere,
    /// A file comes by whose content and name it can be found again.
    Secret,
}

impl Step {
    /// As it stands in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Small => "small",
            Self::Large => "large",
            Self::Text => "text",
            Self::Copy => "copy",
            Self::Shifted => "shifted",
            Self::Twins => "twins",
            Self::Rename => "rename",
            Self::OneByte => "one-byte",
            Self::Insert => "insert",
            Self::Append => "append",
            Self::Remove => "remove",
            Self::Again => "again",
            Self::Halves => "halves",
            Self::Growing => "growing",
            Self::Bundle => "bundle",
            Self::Load => "load",
            Self::Elsewhere => "elsewhere",
            Self::Secret => "secret",
        }
    }
}

/// What a step has shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Which one.
    pub step: Step,
    /// How many files it changed.
    pub files: u64,
    /// What a program sends that knows nothing better than whole files, in bytes.
    pub bytes: u64,
    /// How long until everything was where it belongs; nothing where it never was, or nobody can see it. Of [`Step::Idle`] how long that was.
    pub took: Option<Duration>,
    /// How many changes never were where they belong; where nobody can see that, all of them if nothing went over the wire.
    pub missing: u64,
    /// What went over the wire.
    pub counts: Counts,
    /// Whether the wire was silent in the end: else what follows is counted with something of this one.
    pub is_silent: bool,
}

/// What was found where a server keeps things.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stored {
    /// The content of a file, as it is.
    pub content: bool,
    /// Its name, in a file or as the name of one.
    pub name: bool,
    /// In how many files was looked.
    pub files: u64,
    /// How many files and folders could not be read.
    pub unread: u64,
}

/// All that a probe has found.
#[derive(Debug, Clone)]
pub struct Findings {
    /// In the order in which they were done.
    pub rows: Vec<Row>,
    /// If somebody has said where to look.
    pub stored: Option<Stored>,
    /// Packets that were not counted: figures are too small then.
    pub missed: u64,
    /// Whether somebody wanted it to end before all steps were done.
    pub ended_early: bool,
}

/// Bytes by which a file is found again that has them in it.
const MARK: usize = 32;

/// Probes a program, below a folder `name` of the subject's that is not there before; it stays, so that nothing is removed that is
/// somebody's. Packets go into `pcap`. Equal seeds make equal files, and a server that has seen them may know them again.
///
/// # Errors
/// [`LabError`]; a program that does not do what it should is no error but a finding.
pub fn run(
    subject: &Subject,
    name: &str,
    seed: u64,
    pcap: &Path,
    tell: &mut dyn FnMut(&Row) -> bool,
) -> Result<Findings, LabError> {
    let mut random = Random::new(seed);
    let mut content = vec![0; MARK];
    random.fill(&mut content);
    let secret = format!("secret-{:016x}", random.next());
    let marks = [Mark(content.clone()), Mark(secret.clone().into_bytes())];
    let capture = Capture::start(&subject.ports, &marks, pcap)?;
    let mut steps = steps::Steps::new(subject, name, &capture, random)?;
    let is_whole = steps.all(&content, &secret, tell)?;
    let rows = steps.into_rows();
    let missed = capture.stop()?;
    demand_traffic(subject, &rows)?;
    let stored = subject.stored.as_deref().map(|folder| look_for(folder, &marks));
    Ok(Findings { rows, stored, missed, ended_early: !is_whole })
}

/// Makes sure that what was captured is what the program says: of a wire that nothing goes over, everything could be believed.
fn demand_traffic(subject: &Subject, rows: &[Row]) -> Result<(), LabError> {
    let has_moved = |row: &Row| row.files > 0 && row.missing == 0;
    let is_seen = |row: &Row| row.counts.most() > 0;
    if rows.iter().any(is_seen) || !rows.iter().any(has_moved) {
        return Ok(());
    }
    let ports: Vec<String> = subject.ports.iter().map(u16::to_string).collect();
    let what = format!("files came, and nothing went over port {}", ports.join(", "));
    Err(LabError::Capture { what })
}

/// Looks for the marks of content and name below a folder. Servers tidy up while somebody looks, and keep some things to themselves.
fn look_for(folder: &Path, [content, name]: &[Mark; 2]) -> Stored {
    let [content, name] = [content, name].map(|mark| memchr::memmem::Finder::new(&mark.0));
    let mut stored = Stored { content: false, name: false, files: 0, unread: 0 };
    let mut waiting = vec![folder.to_owned()];
    while let Some(folder) = waiting.pop() {
        let Ok(listed) = files::list(&folder) else {
            stored.unread += 1;
            continue;
        };
        for (entry, kind) in listed {
            let path = folder.join(&entry);
            stored.name |= name.find(entry.as_bytes()).is_some();
            if kind.is_dir() {
                waiting.push(path);
            } else if kind.is_file() {
                match (files::contains(&path, &content), files::contains(&path, &name)) {
                    (Ok(has_content), Ok(has_name)) => {
                        stored.files += 1;
                        stored.content |= has_content;
                        stored.name |= has_name;
                    }
                    _ => stored.unread += 1,
                }
            }
        }
    }
    stored
}
