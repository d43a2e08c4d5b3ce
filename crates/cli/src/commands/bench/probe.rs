//! `syncline bench probe`: what a program does, found out by experiment.

use std::time::Duration;

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
    let folders = [Some(&arguments.folder), arguments.seen_in.as_ref(), arguments.stored.as_ref()];
    if let Some(folder) = folders.into_iter().flatten().find(|folder| !folder.is_dir()) {
        return Err(CommandError::usage(format!("there is no folder {}", folder.display())));
    }
    demand_two(arguments)?;
    let mut sizes = if arguments.quick { Sizes::QUICK } else { Sizes::FULL };
    sizes.appends = arguments.appends.unwrap_or(sizes.appends);
    let subject = Subject {
        name: arguments.name.clone(),
        folder: arguments.folder.clone(),
        seen_in: arguments.seen_in.clone(),
        command: arguments.command.clone(),
        ports: arguments.ports.clone(),
        stored: arguments.stored.clone(),
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
    let Probed { name, answers, warnings } =
        report::write(&subject, &findings, version, &output).map_err(refusal)?;
    for warning in &warnings {
        context.ui.answer(warning);
    }
    for answer in &answers {
        context.ui.answer(format!("{}: {}\n  {}", answer.feature, answer.answer, answer.evidence));
    }
    let page = out.join("probe.html").display().to_string();
    context.ui.answer(format!("page: {page}"));
    context.ui.json(&json!({
        "schema": "syncline.bench/1", "type": "probe", "name": name, "answers": answers, "page": page,
        "warnings": warnings,
    }));
    Ok(0)
}

/// Makes sure that nothing that is written here is synced, and that two folders are two.
fn demand_two(arguments: &BenchProbeArguments) -> Result<()> {
    let others = [arguments.seen_in.as_deref(), arguments.stored.as_deref()];
    let folders = std::iter::once(arguments.folder.as_path()).chain(others.into_iter().flatten());
    let folders = demand_apart(&arguments.out, &folders.collect::<Vec<_>>())?;
    if arguments.seen_in.is_some() && folders[0] == folders[1] {
        return Err(CommandError::usage("--seen-in is the folder in which files are changed"));
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
