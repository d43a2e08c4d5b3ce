//! `syncline bench probe`: what a program does, or a store, found out by experiment.

mod store;

use std::path::Path;
use std::time::Duration;

use lab::bench::plan::is_url;
use lab::output::Output;
use lab::probe::report::{self, Probed};
use lab::probe::{self, Row, Sizes, Subject};
use model::environment::random_bytes;
use serde_json::json;

use super::{demand_apart, new_results, refusal};
use crate::arguments::{BenchProbeArguments, BenchTablesArguments};
use crate::connect::Driver;
use crate::context::Context;
use crate::error::{CommandError, Result};
use crate::system::SystemRandom;
use crate::text::size;
use crate::ui::Symbol;

pub(super) fn run(context: &Context<'_>, arguments: &BenchProbeArguments) -> Result<u8> {
    let target = &arguments.target;
    match is_url(target) {
        true => store::run(context, arguments, target),
        false => program(context, arguments, Path::new(target)),
    }
}

fn program(context: &Context<'_>, arguments: &BenchProbeArguments, folder: &Path) -> Result<u8> {
    let name = demand_named(arguments)?;
    if let Some(folder) = folders(arguments, folder).find(|folder| !folder.is_dir()) {
        let text = format!("there is no folder {}", folder.display());
        return Err(CommandError::usage(text)
            .help("syncline bench probe DIR|URL", "takes another folder, or the URL of a store"));
    }
    demand_two(arguments, folder)?;
    let mut sizes = if arguments.quick { Sizes::QUICK } else { Sizes::FULL };
    sizes.appends = arguments.appends.unwrap_or(sizes.appends);
    let subject = Subject {
        name,
        folder: folder.to_owned(),
        seen_in: arguments.seen_in.clone(),
        command: arguments.command.clone(),
        ports: arguments.ports.clone(),
        stored: arguments.stored.clone(),
        elsewhere: arguments.elsewhere.clone(),
        patience: Duration::from_secs(arguments.patience),
        silence: Duration::from_millis(arguments.silence_ms),
        sizes,
    };
    let (out, output, name) = new_results(context, &arguments.out)?;
    // For Ctrl-C.
    let io = Driver::start(context)?;
    // A server that has seen the files of another probe would know them again.
    let seed = u64::from_le_bytes(random_bytes(&SystemRandom));
    let mut tell = |row: &Row| {
        let line = format!(
            "{}: {} over the wire for {}",
            row.step.name(),
            size(row.counts.most()),
            size(row.bytes)
        );
        context.ui.json(&json!({"schema": "syncline.bench/1", "type": "progress", "line": line}));
        context.ui.say(Symbol::Done, line);
        io.interrupts().received().is_none()
    };
    let folder = format!("probe-{name}");
    let findings = probe::run(&subject, &folder, seed, &out.join("probe.pcap"), &mut tell);
    let findings = findings.map_err(refusal)?;
    let version = env!("CARGO_PKG_VERSION");
    let probed = report::write(&subject, &findings, version, &output).map_err(refusal)?;
    finish(context, &probed, &out)
}

/// Says what was found out.
fn finish(context: &Context<'_>, probed: &Probed, out: &Path) -> Result<u8> {
    let Probed { name, kind, answers, warnings } = probed;
    for warning in warnings {
        context.ui.answer(warning);
    }
    for answer in answers {
        context.ui.answer(format!("{}: {}\n  {}", answer.feature, answer.answer, answer.evidence));
    }
    let page = out.join("probe.html").display().to_string();
    context.ui.answer(format!("page: {page}"));
    context.ui.json(&json!({
        "schema": "syncline.bench/1", "type": "probe", "name": name, "kind": kind, "answers": answers, "page": page,
        "warnings": warnings,
    }));
    Ok(0)
}

/// Returns what a program is called; what else has to be said of one is said, too.
fn demand_named(arguments: &BenchProbeArguments) -> Result<String> {
    let missing = |option: &str, what: &str| {
        let text = format!("{} is a folder, and nothing says {what}", arguments.target);
        Err(CommandError::usage(text)
            .help(format!("syncline bench probe {} {option} …", arguments.target), "says it"))
    };
    if arguments.credentials.is_some() {
        let text = format!("--credentials opens a store, and {} is a folder", arguments.target);
        return Err(CommandError::usage(text));
    }
    match &arguments.name {
        None => missing("--name", "what the program is called that keeps it"),
        Some(_) if arguments.ports.is_empty() => {
            missing("--port", "to which ports of a server the program talks")
        }
        Some(name) => Ok(name.clone()),
    }
}

/// Returns the folder that is probed, and behind it all others that somebody has named.
fn folders<'a>(
    arguments: &'a BenchProbeArguments,
    folder: &'a Path,
) -> impl Iterator<Item = &'a Path> {
    let BenchProbeArguments { seen_in, stored, elsewhere, .. } = arguments;
    let others = [seen_in, stored, elsewhere].into_iter().filter_map(Option::as_deref);
    std::iter::once(folder).chain(others)
}

/// Makes sure that nothing that is written here is synced, and that two folders are two.
fn demand_two(arguments: &BenchProbeArguments, folder: &Path) -> Result<()> {
    let folders = demand_apart(&arguments.out, &folders(arguments, folder).collect::<Vec<_>>())?;
    if arguments.seen_in.is_some() && folders[0] == folders[1] {
        return Err(CommandError::usage("--seen-in is the folder in which files are changed"));
    }
    if arguments.elsewhere.is_some()
        && let Some((elsewhere, rest)) = folders.split_last()
        && rest.contains(elsewhere)
    {
        return Err(CommandError::usage("--elsewhere is a folder of the account that is probed"));
    }
    Ok(())
}

pub(super) fn tables(context: &Context<'_>, arguments: &BenchTablesArguments) -> Result<u8> {
    let output = Output::new(arguments.out.clone(), arguments.out.clone()).map_err(refusal)?;
    let others = report::tables(&arguments.results, &output).map_err(refusal)?;
    for other in &others {
        context.ui.say(Symbol::Done, format!("{} has no answers of a probe", other.display()));
    }
    let page = arguments.out.join("probes.html").display().to_string();
    context.ui.json(&json!({"schema": "syncline.bench/1", "type": "tables", "page": page}));
    context.ui.answer(page);
    Ok(0)
}
