//! `bench web`: the figures of the browser, in a real Chromium against a release program with the app in it, with native rsync beside it in
//! the same run; measured and drawn by the lab.

use std::process::Command;

use super::place::WorkFolder;
use super::{Options, environment};
use crate::arguments::Arguments;
use crate::failure::Result;
use crate::{demo, install, process, web};

/// What is handed on to the lab as it is.
const VALUES: [&str; 2] = ["--seed", "--length"];

/// The other program.
const RSYNC: &str = "rsync";

pub(super) fn run(what: String, mut arguments: Arguments) -> Result<()> {
    let mut words = Vec::new();
    for name in VALUES {
        if let Some(value) = arguments.value(name)? {
            words.extend([name.to_owned(), value]);
        }
    }
    // A server that promises durability keeps its data on a disk, unless somebody asks what the disk costs.
    let file_system = arguments.value("--fs")?.unwrap_or_else(|| "disk".to_owned());
    let build = || {
        // The program has in it what is built before it.
        web::build()?;
        Ok(demo::build("release", &["cli", "lab"])?.join("syncline"))
    };
    let options = Options::take_with(&what, &mut arguments, build)?;
    arguments.finish()?;
    let chromium = web::chromium()?;
    if !process::is_installed(RSYNC) {
        install::packages(&[RSYNC])?;
    }
    let lab = demo::build("release", &["cli", "lab"])?.join("lab");
    let work = WorkFolder::new(&file_system, &options.work)?;
    let said = |program: &str| process::output(Command::new(program).arg("--version"));
    let version = |program: &str| {
        let said = said(program).unwrap_or_default();
        (program.to_owned(), said.lines().next().unwrap_or_default().trim().to_owned())
    };
    let versions = [version(&chromium), version(RSYNC), version("node")];
    let notes = [format!("data on {file_system}"), format!("options: {}", words.join(" "))];
    environment::write(&options.out, &versions, &notes)?;
    let mut command = Command::new(lab);
    command.args(["web", "--binary"]).arg(options.our_binary()?).arg("--out").arg(&options.out);
    command.arg("--web").arg(web::folder()).arg("--work").arg(work.path()).args(words);
    command.arg("--runs").arg(options.runs.to_string()).env("CHROMIUM", chromium);
    if options.quick {
        command.arg("--quick");
    }
    process::run(&mut command)
}
