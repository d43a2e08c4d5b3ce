//! `bench server`: devices by the thousand against `syncline serve`, measured and judged by `load`; alone, or as gateways and sync
//! services over a PostgreSQL and brokers that are started for it, unless they run.

use std::path::Path;
use std::process::Command;

use super::place::WorkFolder;
use super::{Options, environment};
use crate::arguments::Arguments;
use crate::failure::Result;
use crate::services::{self, Services};
use crate::{demo, process};

/// What is handed on to `load` as it is.
const VALUES: [&str; 10] = [
    "--only",
    "--seed",
    "--devices",
    "--seconds",
    "--rates",
    "--idle",
    "--brokers",
    "--sync-services",
    "--gateways",
    "--commits",
];

/// The cases over a database and brokers.
const SCALED: [&str; 4] = ["limit", "scaled", "instances", "million"];

/// What they stand on.
const SERVICES: [&str; 3] = ["postgresql", "rabbitmq", "nats"];

pub(super) fn run(what: String, mut arguments: Arguments) -> Result<()> {
    // Short for the cases that belong together.
    let cases = [("--scaled", "limit,scaled,instances"), ("--million", "million")];
    let named = cases.into_iter().filter(|(flag, _)| arguments.flag(flag)).map(|(_, names)| names);
    let named: Vec<_> = named.collect();
    let mut words = Vec::new();
    if !named.is_empty() {
        words.extend(["--only".to_owned(), named.join(",")]);
    }
    for name in VALUES {
        if let Some(value) = arguments.value(name)? {
            words.extend([name.to_owned(), value]);
        }
    }
    // A server that promises durability keeps its data on a disk, unless somebody asks what the disk costs.
    let file_system = arguments.value("--fs")?.unwrap_or_else(|| "disk".to_owned());
    let programs = demo::build("release", &["cli", "load"])?;
    let options = Options::take_with(&what, &mut arguments, || Ok(programs.join("syncline")))?;
    arguments.finish()?;
    let work = WorkFolder::new(&file_system, &options.work)?;
    let is_scaled = words.iter().flat_map(|word| word.split(',')).any(|one| SCALED.contains(&one));
    let load = programs.join("load");
    let measure = |services: Option<&Path>| {
        measure(&options, (&load, work.path()), (&words, &file_system), services)
    };
    if is_scaled {
        services::during(&SERVICES.map(str::to_owned), |state| measure(Some(state)))
    } else {
        measure(None)
    }
}

fn measure(
    options: &Options,
    (load, work): (&Path, &Path),
    (words, file_system): (&[String], &str),
    services: Option<&Path>,
) -> Result<()> {
    let running = services.map(Services::read).transpose()?;
    let running = running.iter().flat_map(Services::services);
    let versions: Vec<_> =
        running.map(|service| (service.name.clone(), service.version.clone())).collect();
    let notes = [format!("data on {file_system}"), format!("options: {}", words.join(" "))];
    environment::write(&options.out, &versions, &notes)?;
    let mut command = Command::new(load);
    command.args(["server", "--binary"]).arg(options.our_binary()?).arg("--out").arg(&options.out);
    command.arg("--work").arg(work).args(words);
    if let Some(services) = services {
        command.arg("--services").arg(services);
    }
    if options.quick {
        command.arg("--quick");
    }
    process::run(&mut command)
}
