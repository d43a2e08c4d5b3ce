//! `syncline bench probe URL`: what a store does, found out by experiment.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use lab::bench::driver::{Failure, Listed};
use lab::probe::store::{self, CallError, Sizes, Subject, report};
use model::environment::random_bytes;
use serde_json::json;
use storage::{
    Credentials, ObjectKey, ObjectStore, Opening, PutMode, PutOutcome, StorageError, open_with,
};
use tokio::runtime::Handle;

use super::{finish, new_results, refusal};
use crate::arguments::BenchProbeArguments;
use crate::connect::Driver;
use crate::context::Context;
use crate::error::{CommandError, Result};
use crate::system::SystemRandom;
use crate::ui::Symbol;

pub(super) fn run(context: &Context<'_>, arguments: &BenchProbeArguments, url: &str) -> Result<u8> {
    demand_fitting(arguments)?;
    let credentials = match &arguments.credentials {
        Some(file) => Credentials::read_file(file)?,
        None => Credentials::none(),
    };
    let credentials = context.home.signed_in(url, credentials);
    let io = Driver::start(context)?;
    let open = || -> Result<Opened> {
        let store = io.within(|| open_with(url, &credentials, Opening::CreateIfMissing))?;
        Ok(Opened { store, runtime: io.handle() })
    };
    let (store, witness) = (open()?, open()?);
    let subject = Subject {
        name: arguments.name.clone().unwrap_or_else(|| url.to_owned()),
        store: &store,
        witness: &witness,
        patience: Duration::from_secs(arguments.patience),
        sizes: if arguments.quick { Sizes::QUICK } else { Sizes::FULL },
    };
    let (out, output, name) = new_results(context, &arguments.out)?;
    // A store that keeps equal bytes once has none of these.
    let seed = u64::from_le_bytes(random_bytes(&SystemRandom));
    let mut tell = |line: &str| {
        context.ui.json(&json!({"schema": "syncline.bench/1", "type": "progress", "line": line}));
        context.ui.say(Symbol::Done, line);
    };
    let interrupts = io.interrupts();
    let goes_on = || interrupts.received().is_none();
    // Where the layout of a store has experiments (see `storage::key`).
    let folder = format!("probe/{name}");
    let findings = store::run(&subject, &folder, seed, &mut tell, &goes_on).map_err(refusal)?;
    let version = env!("CARGO_PKG_VERSION");
    let probed = report::write(&subject, &findings, version, &output).map_err(refusal)?;
    finish(context, &probed, &out)
}

/// Refuses what says something about programs only.
fn demand_fitting(arguments: &BenchProbeArguments) -> Result<()> {
    let given = [
        (!arguments.ports.is_empty(), "--port"),
        (arguments.seen_in.is_some(), "--seen-in"),
        (arguments.command.is_some(), "--command"),
        (arguments.stored.is_some(), "--stored"),
        (arguments.elsewhere.is_some(), "--elsewhere"),
        (arguments.appends.is_some(), "--appends"),
    ];
    match given.iter().find(|(is_given, _)| *is_given) {
        Some((_, option)) => Err(CommandError::usage(format!(
            "{option} says something about a program, and {} is a store",
            arguments.target
        ))),
        None => Ok(()),
    }
}

/// A store as the probe asks it.
#[derive(Debug)]
struct Opened {
    store: Arc<dyn ObjectStore>,
    runtime: Handle,
}

impl Opened {
    fn wait<T>(&self, call: impl Future<Output = storage::Result<T>>) -> Result<T, CallError> {
        self.runtime.block_on(call).map_err(call_error)
    }
}

fn call_error(error: StorageError) -> CallError {
    let is_refused = matches!(error, StorageError::Throttled { .. } | StorageError::Busy { .. });
    let is_unsupported = matches!(error, StorageError::Unsupported { .. });
    let Failure(what) = Failure::from(error);
    match (is_refused, is_unsupported) {
        (true, _) => CallError::Refused { what },
        (_, true) => CallError::Unsupported { what },
        _ => CallError::Failed { what },
    }
}

fn key(name: &str) -> Result<ObjectKey, CallError> {
    ObjectKey::new(name).map_err(call_error)
}

impl store::Store for Opened {
    fn describe(&self) -> String {
        self.store.describe()
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), CallError> {
        let (key, bytes) = (key(name)?, Bytes::copy_from_slice(bytes));
        self.wait(self.store.put(&key, bytes, PutMode::Overwrite)).map(drop)
    }

    fn create(&self, name: &str, bytes: &[u8]) -> Result<bool, CallError> {
        let (key, bytes) = (key(name)?, Bytes::copy_from_slice(bytes));
        let outcome = self.wait(self.store.put(&key, bytes, PutMode::IfAbsent))?;
        Ok(outcome == PutOutcome::Written)
    }

    fn get(&self, name: &str) -> Result<Option<Vec<u8>>, CallError> {
        let found = self.wait(self.store.get(&key(name)?))?;
        Ok(found.map(|bytes| bytes.to_vec()))
    }

    fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Listed>, CallError> {
        let listed = self.wait(self.store.list(prefix, after, limit))?;
        let object = |entry: storage::ObjectEntry| Listed {
            path: entry.key.as_str().to_owned(),
            size: entry.size,
        };
        Ok(listed.into_iter().map(object).collect())
    }

    fn delete(&self, name: &str) -> Result<(), CallError> {
        self.wait(self.store.delete(&key(name)?))
    }
}

#[cfg(test)]
mod tests {
    use lab::probe::store::Store;

    use super::*;

    #[test]
    fn a_store_is_asked_as_the_probe_wants_it_and_its_errors_are_told_apart() {
        let runtime = tokio::runtime::Builder::new_multi_thread().build().unwrap();
        let store = storage::open("memory:probe-of-the-command").unwrap();
        let opened = Opened { store, runtime: runtime.handle().clone() };
        opened.put("probe/1/a", b"one").unwrap();
        opened.put("probe/1/a", b"more").unwrap();
        assert_eq!(opened.create("probe/1/a", b"other"), Ok(false));
        assert_eq!(opened.create("probe/1/b", b""), Ok(true));
        assert_eq!(opened.get("probe/1/a").unwrap().as_deref(), Some(&b"more"[..]));
        let listed = opened.list("probe/1/", None, 1).unwrap();
        assert_eq!(listed, [Listed { path: "probe/1/a".into(), size: 4 }]);
        let listed = opened.list("probe/1/", Some("probe/1/a"), 9).unwrap();
        assert_eq!(listed, [Listed { path: "probe/1/b".into(), size: 0 }]);
        opened.delete("probe/1/a").unwrap();
        assert_eq!(opened.get("probe/1/a"), Ok(None));
        assert!(matches!(opened.put("NO", b""), Err(CallError::Failed { .. })));

        let store = || "s".to_owned();
        let busy = StorageError::Busy { store: store(), detail: "later".into() };
        assert_eq!(call_error(busy), CallError::Refused { what: "s is busy: later".into() });
        let unable = StorageError::Unsupported { store: store(), operation: "do it" };
        assert!(matches!(call_error(unable), CallError::Unsupported { .. }));
        let full = StorageError::NoSpace { store: store() };
        assert!(matches!(call_error(full), CallError::Failed { .. }));
    }
}
