//! Benchmarks: other programs beside ours on the same inputs, and ours alone where nothing compares.
//!
//! Timings never gate a change; they are printed as tables and kept as CSV with every single run
//! and the environment beside it. What of our command line is relied on stands in
//! [`crate::syncline`].

mod compare;
mod environment;
mod idle;
pub mod inputs;
mod latency;
mod many_small;
mod metasync;
mod peers;
mod place;
mod probe;
mod report;
mod rescan;
pub mod sample;
mod sequence;
mod server;
mod trace;
mod web;

use std::path::PathBuf;

use crate::arguments::Arguments;
use crate::failure::{Result, fail};
use crate::{demo, repository_root};

const USAGE: &str = "\
usage: cargo xtask bench <what> [options]

  peers        --only NAME,...   workloads and programs to take (default: all)
               --releases FILE   the archive of releases
               --without-ours    only the other programs
               --no-install      leave out what is not installed, install nothing
  latency      --samples N (200) --devices N (2 and 6)
  many-small   --files N (100000) --with-syncthing
  rescan       --files N (1000000)
  idle         --seconds N (30)
  trace        --tree SIZE (75MB) --changes N (100) --interval-ms N (1000): one trace through two of our devices, and through two Syncthings
  probe        --only NAME,...   what programs do, by experiment: ours, ours encrypted, Syncthing, rsync, Unison, rclone; needs tcpdump; --appends N (60), 1 KiB each second; no --runs
  metasync     --only agreement|folders --seeds N --svg DIR (virtual time; of the rest only --out)
  server       --only rates,saturation,push,pause,kill,idle  --seed N --seconds N (20)
               --devices N (1000) --rates N,... --idle N,...   --fs disk (usual) or tmpfs; no --runs
               --scaled          over PostgreSQL and brokers: --only limit,scaled,instances
               --million         the same under accidents: --only million  --commits N (1000000)
               --brokers rabbitmq,nats --sync-services N,... (1,2,4) --gateways N (1)
  web          --seed N --length N (1000000)  all methods in a browser, and rsync; --fs disk (usual) or tmpfs
               --draw FILE       draws the runs of such a file anew, into --out
               --only large      whether the page stands still on a file of --large-length N (1 GiB) bytes
               --only clients    how many browsers a core of a server bears: --seconds N (20) --clients N (40000, the most)
               --workloads regular,intensive --methods ours,ours-picked,webr2sync+,webr2sync,whole --contents letters,media
               --sizes N,... (1000) --line-ms N (30) --releases FILE (.tar.zst, a folder for each; else a synthetic tree)

  for all:     --quick                 small inputs, to try the harness
               --fs tmpfs|disk|both    where everything lies
               --runs N                rounds
               --out DIR               for tables and CSV (default: bench-results/<what>)
               --work DIR              for inputs and, with disk, everything else
               --binary FILE           the program (default: a fresh release build)";

/// What all benchmarks understand.
#[derive(Debug, Clone)]
pub struct Options {
    /// Small inputs.
    pub quick: bool,
    /// `tmpfs`, `disk` or both.
    pub file_systems: Vec<&'static str>,
    /// Rounds.
    pub runs: u32,
    /// Where results go.
    pub out: PathBuf,
    /// Where inputs are cached, and the working folder of `disk`.
    pub work: PathBuf,
    /// Our program; `None` means that only others are measured.
    pub binary: Option<PathBuf>,
}

impl Options {
    fn take(what: &str, arguments: &mut Arguments) -> Result<Self> {
        Self::take_with(what, arguments, demo::release_program)
    }

    /// Does the same; `build` makes our program, where none is named.
    fn take_with(
        what: &str,
        arguments: &mut Arguments,
        build: impl FnOnce() -> Result<PathBuf>,
    ) -> Result<Self> {
        let quick = arguments.flag("--quick");
        let file_systems = match arguments.value("--fs")?.as_deref() {
            Some("tmpfs") | None => vec!["tmpfs"],
            Some("disk") => vec!["disk"],
            Some("both") => vec!["tmpfs", "disk"],
            Some(other) => return fail(format!("--fs is tmpfs, disk or both, not '{other}'")),
        };
        let runs = arguments.value_or("--runs", if quick { 1 } else { 3 })?;
        let out = arguments.value("--out")?.map(PathBuf::from);
        let work = arguments.value("--work")?.map(PathBuf::from);
        let without_ours = arguments.flag("--without-ours");
        let named = arguments.value("--binary")?.map(PathBuf::from);
        let binary = match named {
            _ if without_ours => None,
            Some(binary) => Some(binary.canonicalize()?),
            None => Some(build()?),
        };
        Ok(Self {
            quick,
            file_systems,
            runs,
            out: out.unwrap_or_else(|| repository_root().join("bench-results").join(what)),
            work: work.unwrap_or_else(|| std::env::temp_dir().join("syncline-bench")),
            binary,
        })
    }

    fn our_binary(&self) -> Result<&PathBuf> {
        match &self.binary {
            Some(binary) => Ok(binary),
            None => fail("this benchmark measures our program; leave --without-ours out"),
        }
    }
}

/// Runs one benchmark.
pub fn run(mut arguments: Arguments) -> Result<()> {
    let Some(what) = arguments.next_word() else { return fail(USAGE) };
    let task = match what.as_str() {
        "peers" => compare::run,
        "latency" => latency::run,
        "many-small" => many_small::run,
        "rescan" => rescan::run,
        "idle" => idle::run,
        "metasync" => metasync::run,
        "probe" => probe::run,
        "server" => server::run,
        "trace" => trace::run,
        "web" => web::run,
        "help" | "--help" | "-h" => {
            println!("{USAGE}");
            return Ok(());
        }
        other => return fail(format!("no benchmark is called '{other}'\n\n{USAGE}")),
    };
    // The words of one benchmark are taken first, for building the program takes minutes.
    task(what, arguments)
}
