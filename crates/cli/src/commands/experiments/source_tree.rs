//! Experiments that need generators of load, browsers and emulated services, which are no part of the program: the source tree in which
//! somebody stands runs them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::{Code, CommandError, Result};
use crate::home::file_error;

/// What such a tree has.
const PARTS: [&str; 3] = ["Cargo.toml", "xtask/Cargo.toml", "experiments"];

/// The source tree of this program.
#[derive(Debug)]
pub(super) struct SourceTree(PathBuf);

impl SourceTree {
    /// Finds the one in which somebody stands who asks for an experiment that is measured by a command of it.
    pub(super) fn demand(name: &str, command: &str) -> Result<Self> {
        let here = std::env::current_dir().map_err(|source| file_error(Path::new("."), &source))?;
        let is_one = |folder: &&Path| PARTS.iter().all(|part| folder.join(part).exists());
        if let Some(root) = here.ancestors().find(is_one) {
            return Ok(Self(root.to_owned()));
        }
        let error = CommandError::usage(format!("{name} needs the source tree of this program"))
            .cause(format!("{} lies in none; there '{command}' measures it", here.display()))
            .state("nothing was measured")
            .help(format!("syncline -C TREE lab run {name}"), "runs it in the source tree TREE")
            .help("syncline lab report", "has what came of it where the program was made");
        Err(error)
    }

    /// Runs a command in it, which writes its results into a folder. What it says is progress, and goes where progress goes.
    pub(super) fn run(&self, command: &str, out: &Path) -> Result<()> {
        let out = std::path::absolute(out).map_err(|source| file_error(out, &source))?;
        let mut words = command.split_whitespace();
        let mut process = Command::new(words.next().unwrap_or_default());
        process.args(words).arg("--out").arg(&out).current_dir(&self.0);
        process.stdin(Stdio::null()).stdout(std::io::stderr());
        let failed = |why: String| {
            CommandError::new(Code::BenchmarkFailed, format!("'{command}' has failed"))
                .cause(why)
                .state(format!("what it had measured is in {}", out.display()))
        };
        match process.status() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(failed(status.to_string())),
            Err(error) => Err(failed(error.to_string())),
        }
    }
}
