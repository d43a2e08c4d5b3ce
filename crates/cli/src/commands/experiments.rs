//! `syncline lab`: measures the papers' tables and figures again.

mod lent;
mod relay;
mod source_tree;

use std::path::Path;
use std::sync::Arc;

use lab::LabError;
use lab::experiment::{EXPERIMENTS, Experiment, Setting};
use lab::inventory::{self, Entry, How};
use lab::output::Output;
use lab::report::Report;
use serde_json::json;

use crate::arguments::{LabCommand, LabReportArguments, LabRunArguments};
use crate::context::Context;
use crate::error::{Code, CommandError, Result};
use crate::home::file_error;
use crate::ui::{Paint, Symbol};
use lent::Lent;
use source_tree::SourceTree;

/// Runs the command.
pub(crate) fn run(context: &Context<'_>, command: &LabCommand) -> Result<u8> {
    match command {
        LabCommand::List => list(context),
        LabCommand::Run(arguments) => measure(context, arguments),
        LabCommand::Report(arguments) => report(context, arguments),
    }
}

fn list(context: &Context<'_>) -> Result<u8> {
    let mut told = "";
    for Entry { name, paper, shows, how } in inventory::all() {
        let (kind, command) = match how {
            How::Here => ("here", format!("syncline lab run {name}")),
            How::SourceTree(command) => ("source-tree", command.to_owned()),
        };
        context.ui.json(&json!({
            "schema": "syncline.lab/1", "type": "experiment", "name": name, "paper": paper, "shows": shows,
            "measured": kind, "command": command,
        }));
        if paper != told {
            let gap = if told.is_empty() { "" } else { "\n" };
            context.ui.answer(format!("{gap}{}", context.ui.paint(Paint::Word, paper)));
            told = paper;
        }
        let by = match how {
            How::Here => String::new(),
            How::SourceTree(command) => format!("\n{:24}in the source tree: {command}", ""),
        };
        context.ui.answer(format!("  {name:22}{shows}{by}"));
    }
    Ok(0)
}

fn measure(context: &Context<'_>, arguments: &LabRunArguments) -> Result<u8> {
    let (experiments, elsewhere) = chosen(arguments)?;
    // Before hours are spent on the others.
    let first = elsewhere.first();
    let tree = first.map(|(name, command)| SourceTree::demand(name, command)).transpose()?;
    let targets = Arc::new(Lent::start(context)?);
    for experiment in experiments {
        let folder = arguments.out.join(experiment.name);
        let output = Output::new(folder.clone(), folder.clone()).map_err(refusal)?;
        let setting = Setting {
            datasets: arguments.datasets.clone(),
            only: arguments.only.clone(),
            with_faithful: arguments.faithful,
            seed: arguments.seed,
            work: folder.join("data"),
            is_full: arguments.full,
            targets: targets.clone(),
        };
        let said = |line: &str| {
            context.ui.json(&json!({
                "schema": "syncline.lab/1", "type": "progress", "experiment": experiment.name, "line": line,
            }));
            context.ui.say(Symbol::Done, line);
        };
        experiment.run(&setting, &output, &mut { said }).map_err(refusal)?;
        summary(context, &folder, experiment.name);
    }
    if let Some(tree) = tree {
        let mut commands: Vec<&str> = elsewhere.into_iter().map(|(_, command)| command).collect();
        commands.sort_unstable();
        commands.dedup();
        for command in commands {
            in_source_tree(context, &tree, &arguments.out, command)?;
        }
    }
    Ok(0)
}

/// Says where the page of an experiment is.
fn summary(context: &Context<'_>, folder: &Path, name: &str) {
    let page = folder.join(format!("{name}.html"));
    context.ui.json(&json!({
        "schema": "syncline.lab/1", "type": "summary", "experiment": name, "page": page.display().to_string(),
    }));
    context.ui.answer(format!("{name}: {}", page.display()));
}

/// An experiment that is measured in the source tree, and the command.
type Elsewhere = (&'static str, &'static str);

/// Returns what is to be measured by the program, and in its source tree.
fn chosen(arguments: &LabRunArguments) -> Result<(Vec<Experiment>, Vec<Elsewhere>)> {
    if arguments.all {
        return Ok((EXPERIMENTS.to_vec(), Vec::new()));
    }
    let (mut here, mut elsewhere) = (Vec::new(), Vec::new());
    for name in &arguments.names {
        let entry = inventory::named(name).map_err(refusal)?;
        match entry.how {
            How::Here => here.extend(Experiment::named(name)),
            How::SourceTree(command) => elsewhere.push((entry.name, command)),
        }
    }
    let LabRunArguments { datasets, full, only, faithful, .. } = arguments;
    let has_options = *full || *faithful || only.is_some() || !datasets.is_empty();
    match elsewhere.first() {
        Some((name, command)) if has_options => {
            let text = format!("{name} is measured in the source tree, and has options of its own");
            Err(CommandError::usage(text).help(*command, "takes them"))
        }
        _ => Ok((here, elsewhere)),
    }
}

/// Runs a command of the source tree, and makes pages of all experiments that it measures.
fn in_source_tree(
    context: &Context<'_>,
    tree: &SourceTree,
    out: &Path,
    command: &str,
) -> Result<()> {
    let is_of_it = |entry: &Entry| matches!(entry.how, How::SourceTree(found) if found == command);
    let measured: Vec<Entry> = inventory::all().into_iter().filter(is_of_it).collect();
    let names: Vec<&str> = measured.iter().map(|entry| entry.name).collect();
    context.ui.note(format!("{command} measures {}", names.join(", ")));
    let runs = lab::report::empty_runs(out, names[0]).map_err(refusal)?;
    tree.run(command, &runs)?;
    for entry in &measured {
        let folder = out.join(entry.name);
        let output = Output::new(folder.clone(), folder.clone()).map_err(refusal)?;
        lab::report::gather(entry, &runs, &output).map_err(refusal)?;
        summary(context, &folder, entry.name);
    }
    Ok(())
}

fn report(context: &Context<'_>, arguments: &LabReportArguments) -> Result<u8> {
    let report = lab::report::write(&arguments.out).map_err(refusal)?;
    let Report { page, with, without } = report;
    context.ui.json(&json!({
        "schema": "syncline.lab/1", "type": "report", "page": page.display().to_string(), "with": with, "without": without,
    }));
    let measured =
        if with.is_empty() { "nothing of this computer yet".to_owned() } else { with.join(", ") };
    context.ui.answer(format!("{}: {measured}", page.display()));
    if !without.is_empty() {
        context.ui.answer(format!("not measured yet: {}", without.join(", ")));
    }
    Ok(0)
}

/// Says what went wrong in the lab in the user's words.
pub(crate) fn refusal(error: LabError) -> CommandError {
    match error {
        LabError::Read { path, source } | LabError::Write { path, source } => {
            file_error(&path, &source)
        }
        LabError::NoSuchExperiment { name, nearest } => {
            CommandError::usage(format!("there is no experiment '{name}'"))
                .help(format!("syncline lab run {nearest}"), "is spelled most alike")
                .help("syncline lab list", "lists all of them")
        }
        LabError::NoVersions { .. } => CommandError::usage(error.to_string()).help(
            "syncline lab run NAME --dataset D=DIR",
            "takes a folder such as DIR/1.0, DIR/1.1",
        ),
        LabError::Page { .. } => CommandError::usage(error.to_string())
            .help("syncline lab run", "measures an experiment again")
            .help("syncline bench probe", "probes a program, or a store, again"),
        LabError::NoResult { .. } => CommandError::usage(error.to_string())
            .help("syncline bench ls", "lists the results there are"),
        LabError::NoProbes => CommandError::usage(error.to_string())
            .help(
                "syncline bench probe DIR --name NAME --port PORT",
                "makes answers about a program",
            )
            .help("syncline bench probe URL", "makes answers about a store"),
        LabError::NoSuchConfiguration { .. }
        | LabError::NothingNamed { .. }
        | LabError::NoSuchDataset { .. }
        | LabError::Benchmark { .. }
        | LabError::Trace { .. }
        | LabError::Folders { .. }
        | LabError::NotEmpty { .. }
        | LabError::TooLarge { .. } => CommandError::usage(error.to_string()),
        LabError::Step { client, line, source } => refusal(*source)
            .state(format!("client {client} failed at line {line} of the trace, and all stopped")),
        LabError::NotArrived { .. } => {
            CommandError::new(Code::NotAsTraced, "a change did not come to another client in time")
                .cause(error)
                .help("syncline trace exec … --patience 600", "waits longer")
        }
        LabError::NotListed { .. } => {
            CommandError::new(Code::BenchmarkFailed, "the benchmark cannot begin").cause(error)
        }
        LabError::NoTarget { .. } => {
            CommandError::new(Code::BenchmarkFailed, "the experiment cannot go on").cause(error)
        }
        LabError::Capture { .. } => {
            CommandError::new(Code::NotProbed, "no packets are seen").cause(error).help(
                "sudo apt-get install tcpdump && sudo setcap cap_net_raw+ep $(which tcpdump)",
                "lets every user of this machine capture packets",
            )
        }
        LabError::Store { .. } => {
            CommandError::new(Code::NotProbed, "the store cannot be used").cause(error)
        }
        LabError::Command { .. } => {
            CommandError::new(Code::NotProbed, "the program that is probed has failed").cause(error)
        }
        error => CommandError::new(Code::Defect, "the experiment failed").cause(error),
    }
}
