//! Words for measuring: the papers' tables and figures, and traces.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// What to do in the lab.
#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// List the experiments, and which tables and figures each one measures.
    List,
    /// Run experiments, and write tables, raw figures and drawings.
    Run(LabRunArguments),
    /// Put everything that was measured on one page.
    Report(LabReportArguments),
}

/// Arguments of `lab report`.
#[derive(Debug, Args)]
pub(crate) struct LabReportArguments {
    /// Where results are, and where the page goes.
    #[arg(long, value_name = "DIR", default_value = "lab-results")]
    pub(crate) out: PathBuf,
}

/// Arguments of `lab run`.
#[derive(Debug, Args)]
pub(crate) struct LabRunArguments {
    /// Which experiments.
    #[arg(value_name = "NAME", required_unless_present = "all")]
    pub(crate) names: Vec<String>,
    /// All of them.
    #[arg(long, conflicts_with = "names")]
    pub(crate) all: bool,
    /// Where results go, and data that is made for them.
    #[arg(long, value_name = "DIR", default_value = "lab-results")]
    pub(crate) out: PathBuf,
    /// Measure with a folder that has a folder for each version; several times for several. Without it a small source tree is made.
    #[arg(long = "dataset", value_name = "NAME=DIR", value_parser = dataset)]
    pub(crate) datasets: Vec<(String, PathBuf)>,
    /// Only configurations that have this in their names.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) only: Option<String>,
    /// Measure what a paper's own program did beside what the paper describes.
    #[arg(long)]
    pub(crate) faithful: bool,
    /// Equal seeds make equal data.
    #[arg(long, value_name = "N", default_value = "2011")]
    pub(crate) seed: u64,
}

/// What to do with benchmarks.
#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// Do what a file says, again and again, and measure it: TOML, or a configuration file of BenchCloud.
    Run(BenchRunArguments),
    /// Find out by experiment what a program does that keeps a folder in sync: encryption, chunking, delta, deduplication and more.
    Probe(BenchProbeArguments),
    /// Put what several probes have found side by side.
    Tables(BenchTablesArguments),
}

/// Arguments of `bench probe`.
#[derive(Debug, Args)]
pub(crate) struct BenchProbeArguments {
    /// The folder that the program keeps; a folder is made in it, in which files are changed, and stays.
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    /// What the program is called.
    #[arg(long, value_name = "TEXT")]
    pub(crate) name: String,
    /// A port of a server the program talks to; several times for several. What goes over them is captured by tcpdump.
    #[arg(long = "port", value_name = "PORT", required = true)]
    pub(crate) ports: Vec<u16>,
    /// The folder, of another device or of the server, in which changes are to be seen.
    #[arg(long, value_name = "DIR")]
    pub(crate) seen_in: Option<PathBuf>,
    /// A command for the shell that is run after each change, for a program that does not watch the folder.
    #[arg(long, value_name = "COMMAND")]
    pub(crate) command: Option<String>,
    /// Where the server keeps what it gets, to look whether it can read that.
    #[arg(long, value_name = "DIR")]
    pub(crate) stored: Option<PathBuf>,
    /// How many seconds a change may take.
    #[arg(long, value_name = "N", default_value = "120")]
    pub(crate) patience: u64,
    /// After how many milliseconds without a packet a change is done with.
    #[arg(long, value_name = "N", default_value = "1500")]
    pub(crate) silence_ms: u64,
    /// With small files and few of them, for a first look.
    #[arg(long)]
    pub(crate) quick: bool,
    /// How often, each second, 1 KiB is put behind a file that grows: 60 times, or 5 with --quick.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) appends: Option<u64>,
    /// Where results go.
    #[arg(long, value_name = "DIR", default_value = "bench-results")]
    pub(crate) out: PathBuf,
}

/// Arguments of `bench tables`.
#[derive(Debug, Args)]
pub(crate) struct BenchTablesArguments {
    /// Results of probes.
    #[arg(value_name = "DIR", required = true)]
    pub(crate) results: Vec<PathBuf>,
    /// Where the page goes.
    #[arg(long, value_name = "DIR", default_value = "bench-results/tables")]
    pub(crate) out: PathBuf,
}

/// Arguments of `bench run`.
#[derive(Debug, Args)]
pub(crate) struct BenchRunArguments {
    /// The benchmark.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Do it here and not where the file says: a folder, or the URL of a store.
    #[arg(long, value_name = "DIR|URL")]
    pub(crate) target: Option<String>,
    /// What opens the store, a file that only its owner may read.
    #[arg(long, value_name = "FILE")]
    pub(crate) credentials: Option<PathBuf>,
    /// Where results go.
    #[arg(long, value_name = "DIR", default_value = "bench-results")]
    pub(crate) out: PathBuf,
}

/// What to do with traces.
#[derive(Debug, Subcommand)]
pub(crate) enum TraceCommand {
    /// Make a trace: an initial tree, and what happens to it.
    Gen(TraceGenArguments),
    /// Record what happens to a real folder, until Ctrl-C: sizes, times and places, and no contents.
    Record(TraceRecordArguments),
    /// Play a trace into a folder, or into several that some program keeps equal, and look whether all end as it says.
    Exec(TraceExecArguments),
}

/// Arguments of `trace gen`.
#[derive(Debug, Args)]
pub(crate) struct TraceGenArguments {
    /// After which numbers.
    #[arg(value_name = "PRESET")]
    pub(crate) preset: TracePreset,
    /// Where it is written.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// How many clients change files in turn.
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) clients: u32,
    /// How large the initial tree is.
    #[arg(long, value_name = "SIZE", default_value = "750MB")]
    pub(crate) tree: String,
    /// How many changes follow.
    #[arg(long, value_name = "N", default_value = "1000")]
    pub(crate) changes: u64,
    /// Milliseconds from one change to the next, on average.
    #[arg(long, value_name = "N", default_value = "1000")]
    pub(crate) interval_ms: u64,
    /// Which shares edits at the end and in the middle have: the paper, and the same authors' BenchBox, have them the other way round.
    #[arg(long, value_name = "SOURCE", default_value = "paper")]
    pub(crate) reading: TraceReading,
    /// Equal seeds make equal traces.
    #[arg(long, value_name = "N", default_value = "2014")]
    pub(crate) seed: u64,
}

/// The presets there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TracePreset {
    /// StackSync's synthetic workload (2014, section 5.1).
    Stacksync,
}

/// Where the shares of edits come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TraceReading {
    /// As printed: end 8 %, middle 3 %.
    Paper,
    /// End 3 %, middle 8 %.
    Benchbox,
}

/// Arguments of `trace record`.
#[derive(Debug, Args)]
pub(crate) struct TraceRecordArguments {
    /// The folder.
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    /// Where the trace is written.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// For how long; without this, until Ctrl-C.
    #[arg(long, value_name = "N")]
    pub(crate) seconds: Option<u64>,
    /// Milliseconds from one look to the next.
    #[arg(long, value_name = "N", default_value = "500", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) every_ms: u64,
}

/// Arguments of `trace exec`.
#[derive(Debug, Args)]
pub(crate) struct TraceExecArguments {
    /// The trace.
    #[arg(value_name = "FILE")]
    pub(crate) trace: PathBuf,
    /// The folder of each client, in order. They begin empty.
    #[arg(value_name = "DIR", required = true)]
    pub(crate) folders: Vec<PathBuf>,
    /// So many times as fast as the trace says.
    #[arg(long, value_name = "X", default_value = "1", conflicts_with = "unhindered", value_parser = speed)]
    pub(crate) speed: f64,
    /// One step after the other, without waiting for its time.
    #[arg(long)]
    pub(crate) unhindered: bool,
    /// How many seconds to wait for what others are to bring.
    #[arg(long, value_name = "SECONDS", default_value = "120")]
    pub(crate) patience: u64,
}

fn speed(text: &str) -> Result<f64, String> {
    let speed = text.parse().ok().filter(|speed: &f64| speed.is_finite() && *speed > 0.0);
    speed.ok_or_else(|| "a number above 0 is needed, such as 10".to_owned())
}

fn dataset(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, folder)) if !name.is_empty() && !folder.is_empty() => {
            Ok((name.to_owned(), folder.into()))
        }
        _ => Err("a name and a folder are needed, such as D=releases".to_owned()),
    }
}
