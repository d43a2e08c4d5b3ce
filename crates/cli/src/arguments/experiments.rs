//! Words for measuring: the papers' tables and figures, and traces.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use lab::dataset::made;

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
    /// Measure with a folder that has a folder for each version, or with A, B, C or D, which are made; several times for several. Without it all four are made.
    #[arg(long = "dataset", value_name = "NAME[=DIR]", value_parser = dataset)]
    pub(crate) datasets: Vec<(String, Option<PathBuf>)>,
    /// In the sizes and times of the papers, where less is measured otherwise.
    #[arg(long)]
    pub(crate) full: bool,
    /// Only configurations, or tables and figures, that have this in their names.
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
    /// Find out by experiment what a program does that keeps a folder in sync (encryption, chunking, delta, deduplication and more), or what a
    /// store does (times, calls at once, how soon others see a change, lists, losses).
    Probe(BenchProbeArguments),
    /// Put what several probes have found side by side.
    Tables(BenchTablesArguments),
    /// List the results there are.
    Ls(BenchLsArguments),
    /// Draw a result again from its operations.
    Plot(BenchPlotArguments),
    /// Put two results side by side, with how many times the second is the first.
    Compare(BenchCompareArguments),
}

/// Arguments of `bench ls`.
#[derive(Debug, Args)]
pub(crate) struct BenchLsArguments {
    /// Where results are.
    #[arg(long, value_name = "DIR", default_value = "bench-results")]
    pub(crate) out: PathBuf,
}

/// Arguments of `bench plot`.
#[derive(Debug, Args)]
pub(crate) struct BenchPlotArguments {
    /// A result.
    #[arg(value_name = "DIR")]
    pub(crate) result: PathBuf,
    /// Where drawings go; without it to the others of the result.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

/// Arguments of `bench compare`.
#[derive(Debug, Args)]
pub(crate) struct BenchCompareArguments {
    /// A result.
    #[arg(value_name = "DIR")]
    pub(crate) one: PathBuf,
    /// Another one.
    #[arg(value_name = "DIR")]
    pub(crate) other: PathBuf,
    /// Where a page with a drawing goes; without it there is none.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

/// Arguments of `bench probe`.
#[derive(Debug, Args)]
pub(crate) struct BenchProbeArguments {
    /// The folder that the program keeps: a folder is made in it, in which files are changed, and stays. Or the URL of a store: what is
    /// written there is removed.
    #[arg(value_name = "DIR|URL")]
    pub(crate) target: String,
    /// What the program is called, or the store; a store is called by its URL where nothing else is said.
    #[arg(long, value_name = "TEXT")]
    pub(crate) name: Option<String>,
    /// A port of a server the program talks to; several times for several. What goes over them is captured by tcpdump.
    #[arg(long = "port", value_name = "PORT")]
    pub(crate) ports: Vec<u16>,
    /// What opens the store, a file that only its owner may read.
    #[arg(long, value_name = "FILE")]
    pub(crate) credentials: Option<PathBuf>,
    /// The folder, of another device or of the server, in which changes are to be seen.
    #[arg(long, value_name = "DIR")]
    pub(crate) seen_in: Option<PathBuf>,
    /// A command for the shell that is run after each change, for a program that does not watch the folder.
    #[arg(long, value_name = "COMMAND")]
    pub(crate) command: Option<String>,
    /// Where the server keeps what it gets, to look whether it can read that.
    #[arg(long, value_name = "DIR")]
    pub(crate) stored: Option<PathBuf>,
    /// A folder that another account keeps with the same server, to look whether what one has is sent again by the other.
    #[arg(long, value_name = "DIR")]
    pub(crate) elsewhere: Option<PathBuf>,
    /// How many seconds a change may take until it is seen.
    #[arg(long, value_name = "N", default_value = "120")]
    pub(crate) patience: u64,
    /// After how many milliseconds without a packet a change is done with.
    #[arg(long, value_name = "N", default_value = "1500")]
    pub(crate) silence_ms: u64,
    /// With small files, or objects, and few of them, for a first look.
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
    /// Capture what goes to and from this port, in place of those that the file names; several times for several. It takes tcpdump.
    #[arg(long = "capture-port", value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) capture_ports: Vec<u16>,
    /// Where results go.
    #[arg(long, value_name = "DIR", default_value = "bench-results")]
    pub(crate) out: PathBuf,
}

/// What to do with traces.
#[derive(Debug, Subcommand)]
pub(crate) enum TraceCommand {
    /// Make a trace: an initial tree, and what happens to it.
    #[command(subcommand, subcommand_value_name = "PRESET", subcommand_help_heading = "Presets")]
    Gen(TracePreset),
    /// Record what happens to a real folder, until Ctrl-C: sizes, times and places, and no contents.
    Record(TraceRecordArguments),
    /// Play a trace into a folder, or into several that some program keeps equal, and look whether all end as it says.
    Exec(TraceExecArguments),
}

/// After what a trace is made.
#[derive(Debug, Subcommand)]
pub(crate) enum TracePreset {
    /// StackSync's synthetic workload (2014, section 5.1): files of some MB in three levels of folders, and small edits.
    Stacksync(TraceStacksyncArguments),
    /// The simple and the regular workload of WebR2sync+ (2018, section 6.2): appended, inserted and cut, 1 B to 100 KB, in files of a MB.
    Webr2sync(TraceWebr2syncArguments),
    /// The folders whose synchronisation MetaSync measures (2015, section 5.3): a source tree, a paper, photos.
    Metasync(TraceMetasyncArguments),
    /// BenchCloud's sensors (2014, tables 4.2 and 4.3): many that send small files at an interval.
    Iot(TraceIotArguments),
    /// Home directories of students, one snapshot in a week, after FSL Homes.
    Homes(TraceHomesArguments),
    /// People with a personal cloud, after the records of UbuntuOne.
    Ubuntuone(TraceUbuntuoneArguments),
    /// Dataset A of the Syncany thesis (2011, section 6.4.1): office documents, of which one is edited at a time. Files are real ones.
    ThesisA(TraceThesisArguments),
    /// Dataset B: photographs, PDF and music, of which hardly one is edited.
    ThesisB(TraceThesisArguments),
    /// Dataset C: ten kinds of files, some of which are added, edited, removed, renamed.
    ThesisC(TraceThesisArguments),
    /// Dataset D: a source tree.
    ThesisD(TraceThesisArguments),
    /// A real folder of versions, such as the datasets of the Syncany thesis, or two releases (the intensive workload of WebR2sync+).
    Versions(TraceVersionsArguments),
}

/// What every trace needs that is drawn.
#[derive(Debug, Args)]
pub(crate) struct TraceGenArguments {
    /// Where it is written.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// How many clients take part.
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) clients: u32,
    /// Equal seeds make equal traces.
    #[arg(long, value_name = "N", default_value = "2014")]
    pub(crate) seed: u64,
}

/// Arguments of `trace gen stacksync`.
#[derive(Debug, Args)]
pub(crate) struct TraceStacksyncArguments {
    #[command(flatten)]
    pub(crate) common: TraceGenArguments,
    /// How large the initial tree is.
    #[arg(long, value_name = "SIZE", default_value = "750MB")]
    pub(crate) tree: String,
    /// How many changes follow.
    #[arg(long, value_name = "N", default_value = "1000")]
    pub(crate) changes: u64,
    /// Milliseconds from one change to the next, on average.
    #[arg(long, value_name = "N", default_value = "1000", value_parser = clap::value_parser!(u64).range(..=86_400_000))]
    pub(crate) interval_ms: u64,
    /// Which shares edits at the end and in the middle have: the paper, and the same authors' BenchBox, have them the other way round.
    #[arg(long, value_name = "SOURCE", default_value = "paper")]
    pub(crate) reading: TraceReading,
}

/// Arguments of `trace gen webr2sync`.
#[derive(Debug, Args)]
pub(crate) struct TraceWebr2syncArguments {
    #[command(flatten)]
    pub(crate) common: TraceGenArguments,
    /// How many files of a MB there are: each has one operation and one size of the eighteen.
    #[arg(long, value_name = "N", default_value = "180", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) files: u32,
    /// How often each file is edited: once in the simple workload, again and again in the regular one.
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) rounds: u64,
    /// Milliseconds from one edit of a file to the next.
    #[arg(long, value_name = "N", default_value = "10000", value_parser = clap::value_parser!(u64).range(..=86_400_000))]
    pub(crate) interval_ms: u64,
}

/// Arguments of `trace gen metasync`.
#[derive(Debug, Args)]
pub(crate) struct TraceMetasyncArguments {
    #[command(flatten)]
    pub(crate) common: TraceGenArguments,
    /// Which one.
    #[arg(long, value_name = "NAME", default_value = "source")]
    pub(crate) folder: TraceFolder,
    /// How large it is, with as many more or fewer files; as in the paper without it: 166MB, 1600KB, 193MB.
    #[arg(long, value_name = "SIZE")]
    pub(crate) tree: Option<String>,
}

/// Arguments of `trace gen iot`.
#[derive(Debug, Args)]
pub(crate) struct TraceIotArguments {
    #[command(flatten)]
    pub(crate) common: TraceGenArguments,
    /// How many sensors send files of 5 KB.
    #[arg(long, value_name = "N", default_value = "100")]
    pub(crate) sensors: u32,
    /// How many files each one sends.
    #[arg(long, value_name = "N", default_value = "10")]
    pub(crate) files: u64,
    /// Milliseconds from one file of a sensor to the next.
    #[arg(long, value_name = "N", default_value = "1000", value_parser = clap::value_parser!(u64).range(..=86_400_000))]
    pub(crate) interval_ms: u64,
    /// When they begin.
    #[arg(long, value_name = "HOW", default_value = "together")]
    pub(crate) start: TraceStart,
}

/// Arguments of `trace gen homes`.
#[derive(Debug, Args)]
pub(crate) struct TraceHomesArguments {
    #[command(flatten)]
    pub(crate) common: TraceGenArguments,
    /// How many users, each with a folder.
    #[arg(long, value_name = "N", default_value = "33", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) users: u32,
    /// How large the initial tree is.
    #[arg(long, value_name = "SIZE", default_value = "750MB")]
    pub(crate) tree: String,
    /// How many snapshots follow.
    #[arg(long, value_name = "N", default_value = "91", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) weeks: u64,
    /// How many changes they show together.
    #[arg(long, value_name = "N", default_value = "10000")]
    pub(crate) changes: u64,
    /// Which shares edits at the end and in the middle have.
    #[arg(long, value_name = "SOURCE", default_value = "paper")]
    pub(crate) reading: TraceReading,
}

/// Arguments of `trace gen ubuntuone`.
#[derive(Debug, Args)]
pub(crate) struct TraceUbuntuoneArguments {
    #[command(flatten)]
    pub(crate) common: TraceGenArguments,
    /// How many users, each with a folder; the n-th is n times less active than the first.
    #[arg(long, value_name = "N", default_value = "20", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) users: u32,
    /// How large the initial tree is.
    #[arg(long, value_name = "SIZE", default_value = "750MB")]
    pub(crate) tree: String,
    /// How many changes follow.
    #[arg(long, value_name = "N", default_value = "10000")]
    pub(crate) changes: u64,
}

/// Arguments of `trace gen thesis-a` and its brothers.
#[derive(Debug, Args)]
pub(crate) struct TraceThesisArguments {
    /// Where it is written.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// How many clients make the changes, one version each in turn.
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) clients: u32,
    /// Equal seeds make equal files; this one makes those of `lab run`.
    #[arg(long, value_name = "N", default_value = "2011")]
    pub(crate) seed: u64,
    /// As many and as large files as in the thesis.
    #[arg(long)]
    pub(crate) full: bool,
    /// Ends after so many versions.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) versions: Option<u32>,
    /// Milliseconds from one version to the next.
    #[arg(long, value_name = "N", default_value = "1000", value_parser = clap::value_parser!(u64).range(..=86_400_000))]
    pub(crate) interval_ms: u64,
}

/// Arguments of `trace gen versions`.
#[derive(Debug, Args)]
pub(crate) struct TraceVersionsArguments {
    /// A folder that has a folder for each version.
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    /// Where the trace is written.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// How many clients make the changes, one version each in turn.
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) clients: u32,
    /// Milliseconds from one version to the next.
    #[arg(long, value_name = "N", default_value = "1000", value_parser = clap::value_parser!(u64).range(..=86_400_000))]
    pub(crate) interval_ms: u64,
}

/// Where the shares of edits come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TraceReading {
    /// As printed: end 8 %, middle 3 %.
    Paper,
    /// End 3 %, middle 8 %.
    Benchbox,
}

/// A folder of MetaSync's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TraceFolder {
    /// Linux 2.6.1: 15,000 files, 166 MB.
    Source,
    /// The paper itself: 70 files, 1.6 MB.
    Paper,
    /// Photos: 50 files, 193 MB.
    Photos,
}

/// When sensors begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TraceStart {
    /// All at the same moment (table 4.2).
    Together,
    /// Each one at its own (table 4.3).
    Spread,
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

fn dataset(text: &str) -> Result<(String, Option<PathBuf>), String> {
    match text.split_once('=') {
        None if made::NAMES.contains(&text) => Ok((text.to_owned(), None)),
        Some((name, folder)) if !name.is_empty() && !folder.is_empty() => {
            Ok((name.to_owned(), Some(folder.into())))
        }
        _ => Err(
            "a name and a folder are needed, such as D=releases; A, B, C and D can also be made"
                .to_owned(),
        ),
    }
}
