//! `syncline bench`: benchmarks of anything that keeps files, and probes of what programs do.

mod links;
mod probe;
mod results;
mod run;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use lab::bench::driver::{self as target, Failure, Listed};
use lab::output::Output;
use model::environment::random_bytes;
use model::{Clock, hex};
use storage::object_store::list_all;
use storage::{ObjectKey, ObjectStore, PutMode, PutOutcome, StorageError};
use tokio::runtime::Handle;

use crate::arguments::BenchCommand;
use crate::commands::experiments::refusal;
use crate::context::Context;
use crate::error::{CommandError, Result};
use crate::home::file_error;
use crate::system::SystemRandom;
use crate::text::rfc3339;

/// Runs the command.
pub(crate) fn run(context: &Context<'_>, command: &BenchCommand) -> Result<u8> {
    match command {
        BenchCommand::Run(arguments) => run::run(context, arguments),
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

/// Makes sure that no results are written into folders that a program keeps: each packet that is captured would make more packets.
fn demand_apart(out: &Path, folders: &[&Path]) -> Result<Vec<PathBuf>> {
    let whole = |path: &Path| std::path::absolute(path).map_err(|source| file_error(path, &source));
    // The folder for results may not be there yet: what is above it is.
    let mut out = whole(out)?;
    out = out.ancestors().find_map(|above| above.canonicalize().ok()).unwrap_or(out);
    let folders: Vec<PathBuf> = folders
        .iter()
        .map(|folder| folder.canonicalize().map_err(|source| file_error(folder, &source)))
        .collect::<Result<_>>()?;
    if let Some(folder) = folders.iter().find(|folder| out.starts_with(folder)) {
        let text = format!("results would go into {}, which is looked at", folder.display());
        return Err(CommandError::usage(text).help("--out DIR", "writes them to another folder"));
    }
    Ok(folders)
}

/// Says what went wrong as a benchmark counts it.
pub(crate) fn in_words(error: &CommandError) -> Failure {
    let cause = error.cause.as_ref().map_or_else(String::new, |cause| format!(": {cause}"));
    Failure(format!("{}{cause}", error.headline))
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
