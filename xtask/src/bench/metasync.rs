//! `bench metasync`: the figures of MetaSync 2015 over emulated services, in virtual time.

use std::path::PathBuf;

use super::environment;
use crate::arguments::Arguments;
use crate::failure::Result;
use crate::{process, repository_root, test_run};

pub(super) fn run(what: String, mut arguments: Arguments) -> Result<()> {
    let part = arguments.value("--only")?.unwrap_or_else(|| "all".to_owned());
    let seeds = arguments.value("--seeds")?;
    let folder = |named: Option<String>, usual: PathBuf| named.map_or(usual, PathBuf::from);
    let results = repository_root().join("bench-results").join(what);
    let out = folder(arguments.value("--out")?, results);
    let drawings = folder(arguments.value("--svg")?, out.clone());
    arguments.finish()?;
    environment::write(&out, &[], &[format!("part: {part}")])?;
    let mut command = test_run::cargo();
    command.args(["run", "--release", "--package", "testkit", "--example", "metasync", "--"]);
    command.arg(part).arg("--csv").arg(&out).arg("--svg").arg(drawings);
    if let Some(seeds) = seeds {
        command.args(["--seeds", &seeds]);
    }
    process::run(&mut command)
}
