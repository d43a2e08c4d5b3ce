//! `syncline bench`: benchmarks of anything that keeps files, and probes of what programs do.

mod probe;
mod results;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use lab::bench::driver::{self as target, Failure, Folder, Listed};
use lab::bench::plan::Plan;
use lab::bench::work::Progress;
use lab::bench::{report, work};
use lab::output::Output;
use model::environment::random_bytes;
use model::{Clock, hex};
use serde_json::{Value, json};
use storage::object_store::list_all;
use storage::{Credentials, ObjectKey, ObjectStore, Opening, PutMode, PutOutcome, StorageError};
use tokio::runtime::Handle;

use crate::arguments::{BenchCommand, BenchRunArguments};
use crate::commands::experiments::refusal;
use crate::connect::Driver;
use crate::context::Context;
use crate::error::{Code, CommandError, Result};
use crate::system::SystemRandom;
use crate::text::{counted, rfc3339, size};
use crate::ui::Symbol;

/// How often somebody who looks on is told how far it is.
const TELL_EVERY: Duration = Duration::from_secs(2);

/// Runs the command.
pub(crate) fn run(context: &Context<'_>, command: &BenchCommand) -> Result<u8> {
    match command {
        BenchCommand::Run(arguments) => measure(context, arguments),
        BenchCommand::Probe(arguments) => probe::run(context, arguments),
        BenchCommand::Tables(arguments) => probe::tables(context, arguments),
        BenchCommand::Ls(arguments) => results::list(context, arguments),
        BenchCommand::Plot(arguments) => results::plot(context, arguments),
        BenchCommand::Compare(arguments) => results::compare(context, arguments),
    }
}

/// Makes a folder for the results of a run, and a name by which nothing else is called.
fn new_results(context: &Context<'_>, out: &Path) -> Result<(PathBuf, Output, String)> {
    let name = hex::encode(&random_bytes::<4>(&SystemRandom));
    let time = rfc3339(context.clock.now()).replace(':', "-");
    let folder = out.join(format!("{time}-{name}"));
    let output = Output::of_run(&folder).map_err(refusal)?;
    Ok((folder, output, name))
}

fn measure(context: &Context<'_>, arguments: &BenchRunArguments) -> Result<u8> {
    let mut plan = Plan::read(&arguments.file).map_err(refusal)?;
    if let Some(target) = &arguments.target {
        plan.target.take(target);
        plan = plan.checked().map_err(refusal)?;
    }
    let io = Driver::start(context)?;
    let driver = open(context, &plan, arguments, &io)?;
    let target = driver.describe();
    // Each run has its own folder and its own names of files: nothing of another one is written over.
    let (out, output, name) = new_results(context, &arguments.out)?;
    context.ui.say(Symbol::Done, format!("{}: {target}", plan.operation.name()));
    let mut told = Duration::ZERO;
    let mut goes_on = |progress: Progress| {
        if progress.elapsed >= told + TELL_EVERY {
            told = progress.elapsed;
            tell(context, progress);
        }
        io.interrupts().received().is_none()
    };
    let outcome = work::run(&plan, driver.as_ref(), &name, &mut goes_on).map_err(refusal)?;
    let version = env!("CARGO_PKG_VERSION");
    let numbers = report::write(&plan, &target, version, &outcome, &output).map_err(refusal)?;
    let page = out.join("benchmark.html");
    summarise(context, numbers, &page);
    if outcome.is_good() {
        return Ok(0);
    }
    let failed = counted(outcome.failed(), "operation failed", "operations failed");
    let (done, lost) = (outcome.counted().count(), outcome.lost.len());
    let first = outcome.counted().find_map(|record| record.failure.clone());
    let cause = first.or_else(|| outcome.lost.first().cloned());
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

fn tell(context: &Context<'_>, progress: Progress) {
    let Progress { done, failed, all, elapsed } = progress;
    let line = format!("{done} of {all} done, {failed} failed, {} s", elapsed.as_secs());
    context.ui.json(&json!({"schema": "syncline.bench/1", "type": "progress", "line": line}));
    context.ui.say(Symbol::Done, line);
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
    let memory = numbers["memory_peak_bytes"].as_u64();
    let memory =
        memory.map_or_else(String::new, |most| format!(", {} of memory at most", size(most)));
    ui.answer(format!(
        "cost      {:.2} s of a processor{memory} in this program",
        number("processor_seconds")
    ));
    ui.answer(format!("page      {}", page.display()));
    numbers["schema"] = json!("syncline.bench/1");
    numbers["type"] = json!("summary");
    numbers["page"] = json!(page.display().to_string());
    ui.json(&numbers);
}

/// Opens what a plan names.
fn open(
    context: &Context<'_>,
    plan: &Plan,
    arguments: &BenchRunArguments,
    io: &Driver,
) -> Result<Box<dyn target::Driver>> {
    if let Some(folder) = &plan.target.folder {
        if !folder.is_dir() {
            let folder = folder.display();
            return Err(CommandError::usage(format!("there is no folder {folder}"))
                .help("--target DIR", "takes another folder, or the URL of a store"));
        }
        if let Some(other) = plan.target.seen_in.as_ref().filter(|other| !other.is_dir()) {
            let other = other.display();
            return Err(CommandError::usage(format!("target.seen_in: there is no folder {other}")));
        }
        return Ok(Box::new(Folder::new(folder, &plan.target)));
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

/// A store, whose objects are the files.
#[derive(Debug)]
pub(crate) struct Store {
    store: Arc<dyn ObjectStore>,
    runtime: Handle,
}

impl Store {
    /// Makes the driver of a store that is open.
    pub(crate) fn new(store: Arc<dyn ObjectStore>, runtime: Handle) -> Self {
        Self { store, runtime }
    }
}

impl target::Driver for Store {
    fn describe(&self) -> String {
        self.store.describe()
    }

    fn put(&self, path: &str, bytes: &[u8], is_new: bool) -> Result<(), Failure> {
        let key = ObjectKey::new(path)?;
        let bytes = Bytes::copy_from_slice(bytes);
        self.runtime.block_on(async {
            if !is_new {
                return Ok(self.store.put(&key, bytes, PutMode::Overwrite).await.map(drop)?);
            }
            let put = self.store.put(&key, bytes.clone(), PutMode::IfAbsent).await;
            let is_there = || Failure(format!("{key} is there already"));
            match put {
                Ok(PutOutcome::Written) => Ok(()),
                Ok(PutOutcome::Exists) => Err(is_there()),
                // Names have a number by chance in them that no other run has, but for one that a plan names.
                Err(StorageError::Unsupported { .. }) => match self.store.size(&key).await? {
                    Some(_) => Err(is_there()),
                    None => Ok(self.store.put(&key, bytes, PutMode::Overwrite).await.map(drop)?),
                },
                Err(error) => Err(error.into()),
            }
        })
    }

    fn get(&self, path: &str) -> Result<Option<Vec<u8>>, Failure> {
        let key = ObjectKey::new(path)?;
        let bytes = self.runtime.block_on(self.store.get(&key))?;
        Ok(bytes.map(|bytes| bytes.to_vec()))
    }

    fn list(&self, directory: &str) -> Result<Vec<Listed>, Failure> {
        let prefix = if directory.is_empty() { String::new() } else { format!("{directory}/") };
        let entries = self.runtime.block_on(list_all(self.store.as_ref(), &prefix))?;
        let is_in_it = |path: &str| !path[prefix.len()..].contains('/');
        let listed = entries.into_iter().filter(|entry| is_in_it(entry.key.as_str()));
        let file = |entry: storage::ObjectEntry| Listed {
            path: entry.key.as_str().to_owned(),
            size: entry.size,
        };
        Ok(listed.map(file).collect())
    }
}
