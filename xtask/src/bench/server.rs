//! `bench server`: devices by the thousand against `syncline serve`, measured and judged by the lab.

use super::place::WorkFolder;
use super::{Options, environment};
use crate::arguments::Arguments;
use crate::failure::Result;
use crate::{process, test_run};

/// What is handed on to the lab as it is.
const VALUES: [&str; 6] = ["--only", "--seed", "--devices", "--seconds", "--rates", "--idle"];

pub(super) fn run(what: String, mut arguments: Arguments) -> Result<()> {
    let mut words = Vec::new();
    for name in VALUES {
        if let Some(value) = arguments.value(name)? {
            words.extend([name.to_owned(), value]);
        }
    }
    // A server that promises durability keeps its data on a disk, unless somebody asks what the disk costs.
    let file_system = arguments.value("--fs")?.unwrap_or_else(|| "disk".to_owned());
    let options = Options::take(&what, &mut arguments)?;
    arguments.finish()?;
    let work = WorkFolder::new(&file_system, &options.work)?;
    let notes = [format!("data on {file_system}"), format!("options: {}", words.join(" "))];
    environment::write(&options.out, &[], &notes)?;
    let mut command = test_run::cargo();
    command.args(["run", "--release", "--package", "lab", "--", "server", "--binary"]);
    command.arg(options.our_binary()?).arg("--out").arg(&options.out);
    command.arg("--work").arg(work.path()).args(words);
    if options.quick {
        command.arg("--quick");
    }
    process::run(&mut command)
}
