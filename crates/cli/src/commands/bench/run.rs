//! `syncline bench run`: what a file says, done and measured.

use std::path::Path;
use std::time::Duration;

use lab::bench::driver::{Driver as Target, Folder};
use lab::bench::live::{Letters, Live};
use lab::bench::outcome::{Outcome, SPREAD};
use lab::bench::plan::Plan;
use lab::bench::wire::{PACKETS, Wanted};
use lab::bench::work::Progress;
use lab::bench::{report, work};
use serde_json::{Value, json};
use storage::{Credentials, Opening};

use super::links::Links;
use super::{Store, demand_apart, new_results, refusal};
use crate::arguments::BenchRunArguments;
use crate::connect::Driver;
use crate::context::Context;
use crate::error::{Code, CommandError, Result};
use crate::progress::Panel;
use crate::text::{counted, size};
use crate::ui::Symbol;

/// How often somebody who looks on is told how far it is.
const TELL_EVERY: Duration = Duration::from_secs(2);

pub(super) fn run(context: &Context<'_>, arguments: &BenchRunArguments) -> Result<u8> {
    let plan = read(arguments)?;
    let io = Driver::start(context)?;
    let driver = open(context, &plan, arguments, &io)?;
    let target = driver.describe();
    // Each run has its own folder and its own names of files: nothing of another one is written over.
    let (out, output, name) = new_results(context, &arguments.out)?;
    context.ui.say(Symbol::Done, format!("{}: {target}", plan.operation.name()));
    let pcap = out.join(PACKETS);
    let tap = plan.capture.as_ref().map(|wanted| wanted.start(&pcap)).transpose();
    let tap = tap.map_err(refusal)?;
    let mut onlooker = Onlooker::new(context);
    let mut goes_on = |progress: Progress<'_>| {
        onlooker.tell(&progress);
        io.interrupts().received().is_none()
    };
    let outcome = work::run(&plan, driver.as_ref(), &name, tap, &mut goes_on);
    drop(onlooker);
    let outcome = outcome.map_err(refusal)?;
    let version = env!("CARGO_PKG_VERSION");
    let numbers = report::write(&plan, &target, version, &outcome, &output).map_err(refusal)?;
    let page = out.join("benchmark.html");
    summarise(context, numbers, &page);
    judge(&outcome, &page).map(|()| 0)
}

/// Reads what is to be done, with what was said instead on the command line.
fn read(arguments: &BenchRunArguments) -> Result<Plan> {
    let mut plan = Plan::read(&arguments.file).map_err(refusal)?;
    if let Some(target) = &arguments.target {
        plan.take_target(target);
    }
    if !arguments.capture_ports.is_empty() {
        plan.capture = Some(Wanted::of_ports(&arguments.capture_ports));
    }
    plan.checked().map_err(refusal)
}

/// Says whether everything was done, is there, and was seen.
fn judge(outcome: &Outcome, page: &Path) -> Result<()> {
    if outcome.is_good() {
        return match outcome.wire.as_ref().and_then(|wire| wire.fault.as_ref()) {
            Some(fault) => Err(CommandError::new(Code::NotProbed, "not all packets are seen")
                .cause(fault)
                .state(format!("the times of operations are in {}", page.display()))
                .help("--capture-port PORT", "captures what goes over another port")),
            None => Ok(()),
        };
    }
    let failed = counted(outcome.failed(), "operation failed", "operations failed");
    let (done, lost) = (outcome.counted().count(), outcome.lost.len());
    let first = outcome.counted().find_map(|record| record.failure.clone());
    let broken = outcome.broken.clone();
    let cause = broken.or(first).or_else(|| outcome.lost.first().cloned());
    let error =
        CommandError::new(Code::BenchmarkFailed, "not everything that was to be done was done")
            .state(format!(
                "{failed}, {done} of {} were tried; of {} files {lost} are lost and {} were not read again; all is in {}",
                outcome.asked,
                outcome.acknowledged,
                outcome.unread,
                page.display()
            ));
    Err(match cause {
        Some(cause) => error.cause(cause),
        None => error,
    })
}

/// Who is told how far it is: somebody at a terminal by some lines that are drawn anew, everybody else by a line now and then.
struct Onlooker<'a> {
    context: &'a Context<'a>,
    seen: Option<(Panel, Live)>,
    told: Duration,
}

impl<'a> Onlooker<'a> {
    fn new(context: &'a Context<'a>) -> Self {
        let letters = if context.ui.is_unicode() { Letters::Unicode } else { Letters::Ascii };
        let seen = Panel::new(context.ui).map(|panel| (panel, Live::new(letters)));
        Self { context, seen, told: Duration::ZERO }
    }

    fn tell(&mut self, progress: &Progress<'_>) {
        if let Some((panel, live)) = &mut self.seen {
            live.add(progress);
            panel.show(&live.lines());
            return;
        }
        let Progress { done, failed, all, elapsed, .. } = *progress;
        if elapsed < self.told + TELL_EVERY {
            return;
        }
        self.told = elapsed;
        let ui = self.context.ui;
        let line = format!("{done} of {all} done, {failed} failed, {} s", elapsed.as_secs());
        ui.json(&json!({"schema": "syncline.bench/1", "type": "progress", "line": line}));
        ui.say(Symbol::Done, line);
    }
}

fn summarise(context: &Context<'_>, mut numbers: Value, page: &Path) {
    let ui = context.ui;
    let millis = |operation: &Value, name: &str| {
        let seconds = operation["seconds"][name].as_f64();
        seconds.map_or_else(|| "-".to_owned(), |seconds| format!("{:.1} ms", seconds * 1e3))
    };
    for operation in numbers["operations"].as_array().into_iter().flatten() {
        ui.answer(format!(
            "{:<9} {} done, {} failed; median {}, 99 of 100 within {}",
            operation["operation"].as_str().unwrap_or_default(),
            operation["done"],
            operation["failed"],
            millis(operation, "p50"),
            millis(operation, "p99"),
        ));
    }
    let number = |name: &str| numbers[name].as_f64().unwrap_or_default();
    ui.answer(format!(
        "in all    {:.2} s, {}/s",
        number("elapsed_seconds"),
        size(number("bytes_per_second") as u64),
    ));
    for line in agreement(&numbers) {
        ui.answer(line);
    }
    let memory = numbers["memory_peak_bytes"].as_u64();
    let memory =
        memory.map_or_else(String::new, |most| format!(", {} of memory at most", size(most)));
    ui.answer(format!(
        "cost      {:.2} s of a processor{memory} in this program",
        number("processor_seconds")
    ));
    for program in numbers["processes"].as_array().into_iter().flatten() {
        ui.answer(format!(
            "          {:.2} s of a processor, {} of memory at most in {}",
            program["processor_seconds"].as_f64().unwrap_or_default(),
            size(program["memory_peak_bytes"].as_u64().unwrap_or_default()),
            program["name"].as_str().unwrap_or_default(),
        ));
    }
    let wire = &numbers["wire"];
    if wire.is_object() {
        let way = |name: &str| {
            let number = |key: &str| wire[name][key].as_u64().unwrap_or_default();
            let packets = counted(number("packets"), "packet", "packets");
            format!("{} {name} in {packets}", size(number("bytes")))
        };
        ui.answer(format!("wire      {}, {}", way("up"), way("down")));
    }
    ui.answer(format!("page      {}", page.display()));
    numbers["schema"] = json!("syncline.bench/1");
    numbers["type"] = json!("summary");
    numbers["page"] = json!(page.display().to_string());
    ui.json(&numbers);
}

/// Says how far repetitions agree, where there were several.
fn agreement(numbers: &Value) -> Vec<String> {
    let over = &numbers["over_repetitions"];
    if !over.is_object() {
        return Vec::new();
    }
    let spread = |spread: &Value, words: &dyn Fn(f64) -> String| {
        let [median, least, most] =
            SPREAD.map(|name| words(spread[name].as_f64().unwrap_or_default()));
        format!("{median} ({least} to {most})")
    };
    let rate = |rate: f64| format!("{}/s", size(rate as u64));
    let millis = |seconds: f64| format!("{:.1} ms", seconds * 1e3);
    let mut lines = vec![format!(
        "{} of {} repetitions, median (least to largest): {}",
        over["whole"],
        numbers["repetitions"],
        spread(&over["bytes_per_second"], &rate)
    )];
    let kinds = over["operations"].as_array().into_iter().flatten();
    lines.extend(kinds.map(|kind| {
        format!(
            "  {:<9} median {}, 99 of 100 within {}",
            kind["operation"].as_str().unwrap_or_default(),
            spread(&kind["p50"], &millis),
            spread(&kind["p99"], &millis)
        )
    }));
    lines
}

/// Opens what a plan names.
fn open(
    context: &Context<'_>,
    plan: &Plan,
    arguments: &BenchRunArguments,
    io: &Driver,
) -> Result<Box<dyn Target>> {
    if let Some(folder) = plan.target.folder.as_ref().filter(|folder| !folder.is_dir()) {
        let folder = folder.display();
        return Err(CommandError::usage(format!("there is no folder {folder}"))
            .help("--target DIR", "takes another folder, or the URL of a store"));
    }
    if let Some(other) = plan.target.seen_in.as_ref().filter(|other| !other.is_dir()) {
        let other = other.display();
        return Err(CommandError::usage(format!("target.seen_in: there is no folder {other}")));
    }
    if plan.capture.is_some() {
        let target = &plan.target;
        let folders = [&target.folder, &target.workspace, &target.seen_in];
        let folders: Vec<_> = folders.into_iter().filter_map(Option::as_deref).collect();
        demand_apart(&arguments.out, &folders)?;
    }
    if let Some(folder) = &plan.target.folder {
        return Ok(Box::new(Folder::new(folder, &plan.target)));
    }
    if let Some(folder) = &plan.target.workspace {
        return Ok(Box::new(Links::open(context, folder, plan, io.handle())?));
    }
    let Some(url) = &plan.target.store else {
        return Err(CommandError::usage("the file names no target that this program reaches")
            .help("--target DIR", "does it in a folder")
            .help("--target sftp://USER@HOST/PATH", "does it in a store"));
    };
    let credentials = match &arguments.credentials {
        Some(file) => Credentials::read_file(file)?,
        None => Credentials::none(),
    };
    let credentials = context.home.signed_in(url, credentials);
    let store = io.within(|| storage::open_with(url, &credentials, Opening::CreateIfMissing))?;
    Ok(Box::new(Store::new(store, io.handle())))
}
