//! Everything that can go wrong in an experiment.

use std::io;
use std::path::PathBuf;

use content::ContentError;

/// Why an experiment did not come to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// Nothing has this name.
    #[error("there is no experiment '{name}'")]
    NoSuchExperiment {
        /// What was asked for.
        name: String,
        /// What is spelled most alike.
        nearest: &'static str,
    },
    /// A pattern that no configuration has in its name.
    #[error(
        "no configuration has '{pattern}' in its name, as in Custom-250-30/TTTD-4-Adler32/Gzip-Cipher"
    )]
    NoSuchConfiguration {
        /// What was asked for.
        pattern: String,
    },
    /// A pattern that no part of an experiment has in its name.
    #[error("nothing has '{pattern}' in its name, as in '{example}'")]
    NothingNamed {
        /// What was asked for.
        pattern: String,
        /// One of the names.
        example: String,
    },
    /// A dataset that cannot be made, and has no folder.
    #[error(
        "no dataset '{name}' can be made: A, B, C and D can, others need a folder, as in {name}=DIR"
    )]
    NoSuchDataset {
        /// What was asked for.
        name: String,
    },
    /// A store that the lab speaks to has not answered as it should.
    #[error("a file did not get through by {protocol}")]
    Dialogue {
        /// Which words were spoken.
        protocol: &'static str,
        /// Why.
        source: io::Error,
    },
    /// A folder that has no folder for each version.
    #[error("{} has no folder for each of at least two versions", folder.display())]
    NoVersions {
        /// The folder.
        folder: PathBuf,
    },
    /// A file or folder of a dataset that cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// No folder has the answers of a probe.
    #[error("no probe has left its answers in any of these folders")]
    NoProbes,
    /// A page of results that another version has written, or nobody.
    #[error("{} is no page of results", path.display())]
    Page {
        /// Where it is.
        path: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
    /// A folder or file that is not what a benchmark has left.
    #[error("{} is no result of a benchmark: {what}", path.display())]
    NoResult {
        /// Which one.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// A result that cannot be written.
    #[error("cannot write {}", path.display())]
    Write {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A benchmark that cannot be done as its file says it.
    #[error("this is no benchmark: {what}")]
    Benchmark {
        /// What is wrong with it, and where.
        what: String,
    },
    /// A target that does not say what it has.
    #[error("{target} cannot be listed: {what}")]
    NotListed {
        /// Which one.
        target: String,
        /// Why.
        what: String,
    },
    /// Something that files were to go to cannot be had, or does not do what it is for.
    #[error("the {target} cannot be measured: {what}")]
    NoTarget {
        /// Which one.
        target: &'static str,
        /// Why.
        what: String,
    },
    /// A store that takes nothing, or gives nothing back.
    #[error("{store} cannot be probed: {what}")]
    Store {
        /// Which one.
        store: String,
        /// Why.
        what: String,
    },
    /// Nothing can be seen of what goes over the wire.
    #[error("packets cannot be captured: {what}")]
    Capture {
        /// Why.
        what: String,
    },
    /// A command that somebody wants run after each change does not do it.
    #[error("'{command}' failed: {what}")]
    Command {
        /// As it was given.
        command: String,
        /// How it ended, and what it said.
        what: String,
    },
    /// This computer starts no more threads.
    #[error("only {started} threads can be started here")]
    Threads {
        /// So many were.
        started: usize,
        /// Why.
        source: io::Error,
    },
    /// A line of a trace that makes no sense there.
    #[error("line {line} of the trace: {what}")]
    Trace {
        /// 1 for the first.
        line: u64,
        /// What is wrong with it.
        what: String,
    },
    /// A step of a trace that could not be done in the folder of its client.
    #[error("client {client} failed at line {line} of the trace")]
    Step {
        /// 0 for the first.
        client: usize,
        /// 1 for the first.
        line: u64,
        /// Why.
        source: Box<LabError>,
    },
    /// A file that no trace can have.
    #[error("{} has {size} bytes, more than a trace can have in a file", path.display())]
    TooLarge {
        /// Which one.
        path: PathBuf,
        /// In bytes.
        size: u64,
    },
    /// As many folders are needed as a trace has clients.
    #[error("the trace has {clients} clients, and there are {folders} folders")]
    Folders {
        /// Of the trace.
        clients: usize,
        /// That were named.
        folders: usize,
    },
    /// A folder that is to be filled has something in it: nothing of it may be written over.
    #[error("in {}: '{path}' should not be there, an empty folder is needed", folder.display())]
    NotEmpty {
        /// The folder.
        folder: PathBuf,
        /// What it has in it.
        path: String,
    },
    /// What one client changed did not come to another in time.
    #[error("at line {line} of the trace, in {}: {what}", folder.display())]
    NotArrived {
        /// 1 for the first.
        line: u64,
        /// Of the client.
        folder: PathBuf,
        /// What is not there.
        what: String,
    },
    /// Cutting, compressing or packing failed.
    #[error(transparent)]
    Content(#[from] ContentError),
}
