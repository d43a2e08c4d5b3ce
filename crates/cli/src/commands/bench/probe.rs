//! `syncline bench probe`: what a program does, found out by experiment.

use std::cell::Cell;
use std::time::Duration;

use lab::output::Output;
use lab::probe::report::{self, Probed};
use lab::probe::{self, Row, Sizes, Subject};
use model::environment::random_bytes;
use serde_json::json;

use super::{refusal, results};
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
    let subject = Subject {
        name: arguments.name.clone(),
        folder: arguments.folder.clone(),
        seen_in: arguments.seen_in.clone(),
        command: arguments.command.clone(),
        ports: arguments.ports.clone(),
        stored: arguments.stored.clone(),
        patience: Duration::from_secs(arguments.patience),
        silence: Duration::from_millis(arguments.silence_ms),
        sizes: if arguments.quick { Sizes::QUICK } else { Sizes::FULL },
    };
    let (out, output, name) = results(context, &arguments.out)?;
    // For Ctrl-C.
    let io = Driver::start(context)?;
    // A server that has seen the files of another probe would know them again.
    let seed = u64::from_le_bytes(random_bytes(&SystemRandom));
    let was_ended = Cell::new(false);
    let mut tell = |row: &Row| {
        let line = format!(
            "{}: {} over the wire for {}",
            row.step.name(),
            size(row.counts.most()),
            size(row.bytes)
        );
        context.ui.json(&json!({"schema": "syncline.bench/1", "type": "progress", "line": line}));
        context.ui.say(Symbol::Done, line);
        was_ended.set(io.interrupts().received().is_some());
        !was_ended.get()
    };
    let folder = format!("probe-{name}");
    let findings = probe::run(&subject, &folder, seed, &out.join("probe.pcap"), &mut tell);
    let findings = findings.map_err(refusal)?;
    let version = env!("CARGO_PKG_VERSION");
    let Probed { name, answers } =
        report::write(&subject, &findings, version, &output).map_err(refusal)?;
    for answer in &answers {
        context.ui.answer(format!("{}: {}\n  {}", answer.feature, answer.answer, answer.evidence));
    }
    let page = out.join("probe.html").display().to_string();
    context.ui.answer(format!("page: {page}"));
    context.ui.json(&json!({
        "schema": "syncline.bench/1", "type": "probe", "name": name, "answers": answers, "page": page,
        "missed_packets": findings.missed, "ended_early": was_ended.get(),
    }));
    Ok(0)
}

pub(super) fn tables(context: &Context<'_>, arguments: &BenchTablesArguments) -> Result<u8> {
    let output = Output::new(arguments.out.clone(), arguments.out.clone()).map_err(refusal)?;
    report::tables(&arguments.results, &output).map_err(refusal)?;
    let page = arguments.out.join("probes.html").display().to_string();
    context.ui.json(&json!({"schema": "syncline.bench/1", "type": "tables", "page": page}));
    context.ui.answer(page);
    Ok(0)
}
