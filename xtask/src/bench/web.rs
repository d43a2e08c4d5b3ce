//! `bench web`: the figures of the browser, in a real Chromium against a release program with the app in it, with native rsync beside it in
//! the same run; measured and drawn by `load`. `--only clients` asks instead how many browsers one core of a server bears; `--draw FILE`
//! draws the runs of such a file anew.

use std::process::Command;

use super::place::WorkFolder;
use super::{Options, environment};
use crate::arguments::Arguments;
use crate::failure::{Result, fail};
use crate::{demo, install, process, web};

/// What is handed on to `load` as it is.
const VALUES: [&str; 3] = ["--seed", "--length", "--large-length"];

/// The same where clients are counted.
const VALUES_CLIENTS: [&str; 10] = [
    "--seed",
    "--seconds",
    "--length",
    "--workloads",
    "--methods",
    "--contents",
    "--sizes",
    "--clients",
    "--line-ms",
    "--releases",
];

/// The other program.
const RSYNC: &str = "rsync";

pub(super) fn run(what: String, mut arguments: Arguments) -> Result<()> {
    if let Some(csv) = arguments.value("--draw")? {
        return draw(&csv, arguments);
    }
    match arguments.value("--only")?.as_deref() {
        None => in_browser(&what, "grid", arguments),
        Some(part @ ("grid" | "large")) => in_browser(&what, part, arguments),
        Some("clients") => clients(&what, arguments),
        Some(other) => fail(format!("--only is grid, large or clients, not '{other}'")),
    }
}

/// Draws what was measured before.
fn draw(csv: &str, mut arguments: Arguments) -> Result<()> {
    let out = arguments.value("--out")?.unwrap_or_else(|| "bench-results/web".to_owned());
    arguments.finish()?;
    let load = demo::build("release", &["load"])?.join("load");
    process::run(Command::new(load).args(["draw-web", "--csv", csv, "--out", &out]))
}

/// Takes the words that `load` understands.
fn words_for_load(arguments: &mut Arguments, names: &[&str]) -> Result<Vec<String>> {
    let mut words = Vec::new();
    for name in names {
        if let Some(value) = arguments.value(name)? {
            words.extend([(*name).to_owned(), value]);
        }
    }
    Ok(words)
}

/// Counts how many clients in browsers one core of a server bears. No browser takes part: `load` plays them.
fn clients(what: &str, mut arguments: Arguments) -> Result<()> {
    let words = words_for_load(&mut arguments, &VALUES_CLIENTS)?;
    let file_system = arguments.value("--fs")?.unwrap_or_else(|| "disk".to_owned());
    let programs = demo::build("release", &["cli", "load"])?;
    let options = Options::take_with(what, &mut arguments, || Ok(programs.join("syncline")))?;
    arguments.finish()?;
    let work = WorkFolder::new(&file_system, &options.work)?;
    let notes = [format!("data on {file_system}"), format!("options: {}", words.join(" "))];
    environment::write(&options.out, &[], &notes)?;
    let mut command = Command::new(programs.join("load"));
    command.args(["clients", "--binary"]).arg(options.our_binary()?).arg("--out").arg(&options.out);
    command.arg("--work").arg(work.path()).args(words);
    if options.quick {
        command.arg("--quick");
    }
    process::run(&mut command)
}

/// Measures the app in a real browser.
fn in_browser(what: &str, part: &str, mut arguments: Arguments) -> Result<()> {
    let mut words = words_for_load(&mut arguments, &VALUES)?;
    words.extend(["--only".to_owned(), part.to_owned()]);
    // A server that promises durability keeps its data on a disk, unless somebody asks what the disk costs.
    let file_system = arguments.value("--fs")?.unwrap_or_else(|| "disk".to_owned());
    let build = || {
        // The program has in it what is built before it.
        web::build()?;
        Ok(demo::build("release", &["cli", "load"])?.join("syncline"))
    };
    let options = Options::take_with(what, &mut arguments, build)?;
    arguments.finish()?;
    let chromium = web::chromium()?;
    if !process::is_installed(RSYNC) {
        install::packages(&[RSYNC])?;
    }
    let load = demo::build("release", &["cli", "load"])?.join("load");
    let work = WorkFolder::new(&file_system, &options.work)?;
    let said = |program: &str| process::output(Command::new(program).arg("--version"));
    let version = |program: &str| {
        let said = said(program).unwrap_or_default();
        (program.to_owned(), said.lines().next().unwrap_or_default().trim().to_owned())
    };
    let versions = [version(&chromium), version(RSYNC), version("node")];
    let notes = [format!("data on {file_system}"), format!("options: {}", words.join(" "))];
    environment::write(&options.out, &versions, &notes)?;
    let mut command = Command::new(load);
    command.args(["web", "--binary"]).arg(options.our_binary()?).arg("--out").arg(&options.out);
    command.arg("--web").arg(web::folder()).arg("--work").arg(work.path()).args(words);
    command.arg("--runs").arg(options.runs.to_string()).env("CHROMIUM", chromium);
    if options.quick {
        command.arg("--quick");
    }
    process::run(&mut command)
}
