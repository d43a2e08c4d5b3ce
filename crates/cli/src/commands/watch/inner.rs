//! The folders of a watched folder that are workspaces of their own: each is watched by a process of its own, which ends with this one.
//!
//! *Invariants*: a process reads its standard input, which nobody writes to and which ends when this process does, however it ends.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, getpid, kill_process};

use crate::commands::daemon::program;
use crate::context::Context;
use crate::error::{Code, CommandError, Result};
use crate::folder::Folder;
use crate::mounted::{self, Mounted, closed_line};

use super::Teller;

/// How long a process may take to end what is under way.
const END_PATIENCE: Duration = Duration::from_secs(8);

/// How often is looked whether it has.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How often is looked whether one has ended that nobody has told to.
const LOOK_FOR_ENDED_EVERY: Duration = Duration::from_secs(2);

/// How long is waited before what did not work is tried again: at first, and at most. Each time in a row it is twice as long.
const RETRY_AFTER: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(600));

/// The processes that watch folders in a folder.
#[derive(Debug)]
pub(super) struct InnerWatches {
    children: Arc<Mutex<BTreeMap<PathBuf, Child>>>,
    /// Which folders there were, when it was looked last.
    pub(super) known: Vec<Mounted>,
    /// Whether something did not work then.
    has_failed: bool,
    retry_after: Duration,
}

impl Default for InnerWatches {
    fn default() -> Self {
        Self {
            children: Arc::default(),
            known: Vec::new(),
            has_failed: false,
            retry_after: RETRY_AFTER.0,
        }
    }
}

impl InnerWatches {
    /// Ends those whose folder is not there any more, and starts those that are missing. What does not work is told, and is tried
    /// again the next time.
    pub(super) fn keep_up(&mut self, context: &Context<'_>, outer: &Folder, teller: &Teller) {
        self.has_failed = false;
        let mut children = self.children.lock();
        let has_ended = has_ended(&mut children);
        let mut tell = |error: CommandError| {
            self.has_failed = true;
            let cause = error.cause.map_or_else(String::new, |cause| format!(": {cause}"));
            teller.note(&format!("{}{cause}", error.headline));
        };
        match mounted::of(outer) {
            Ok(known) => self.known = known,
            Err(error) => tell(error),
        }
        let mut wanted = BTreeSet::new();
        for mounted in &self.known {
            match mounted.connect(context, outer) {
                Ok(folder) => drop(wanted.insert(folder.root)),
                Err(error) if error.code == Code::NoSuchWorkspace => {
                    teller.note(&closed_line(mounted));
                }
                Err(error) => tell(error),
            }
        }
        let is_wanted =
            |root: &PathBuf, child: &mut Child| wanted.contains(root) && is_running(child);
        let leaving = children.extract_if(.., |root, child| !is_wanted(root, child));
        end_all(leaving.map(|(_, child)| child).collect());
        for root in wanted {
            if let Entry::Vacant(place) = children.entry(root) {
                match start(context, place.key()) {
                    Ok(child) => drop(place.insert(child)),
                    Err(error) => tell(error),
                }
            }
        }
        self.retry_after = match has_ended || self.has_failed {
            true => (self.retry_after * 2).min(RETRY_AFTER.1),
            false => RETRY_AFTER.0,
        };
    }

    /// Waits until it is time to keep up again, because one has ended or something did not work.
    pub(super) fn wait_for_retry(&self) -> impl Future<Output = ()> + Send + 'static {
        let (children, has_failed) = (self.children.clone(), self.has_failed);
        let retry_after = self.retry_after;
        async move {
            while !has_failed && !has_ended(&mut children.lock()) {
                tokio::time::sleep(LOOK_FOR_ENDED_EVERY).await;
            }
            tokio::time::sleep(retry_after).await;
        }
    }
}

impl Drop for InnerWatches {
    fn drop(&mut self) {
        end_all(std::mem::take(&mut *self.children.lock()).into_values().collect());
    }
}

fn is_running(child: &mut Child) -> bool {
    matches!(child.try_wait(), Ok(None))
}

fn has_ended(children: &mut BTreeMap<PathBuf, Child>) -> bool {
    children.values_mut().any(|child| !is_running(child))
}

fn start(context: &Context<'_>, root: &PathBuf) -> Result<Child> {
    let mut command = Command::new(program()?);
    command.args(["watch", "--end-with-stdin", "--no-input", "--color", "never"]).arg(root);
    for (flag, is_given) in [("--json", context.ui.is_json()), ("--quiet", context.flags.quiet)] {
        if is_given {
            command.arg(flag);
        }
    }
    if let Some(home) = context.home.as_variable() {
        command.env("SYNCLINE_HOME", home);
    }
    // Its input is held open by this process, and by no other.
    command.stdin(Stdio::piped()).current_dir("/");
    command.spawn().map_err(|error| {
        CommandError::new(Code::Defect, format!("{} cannot be watched", root.display()))
            .cause(error)
    })
}

/// Tells processes to end, and waits for them; those that take too long are cut off, which is safe.
fn end_all(mut children: Vec<Child>) {
    for child in &children {
        // One that has just ended is what was wanted.
        let _ = kill_process(Pid::from_child(child), Signal::TERM);
    }
    let looks = END_PATIENCE.as_millis() / LOOK_EVERY.as_millis();
    for _ in 0..looks {
        children.retain_mut(is_running);
        if children.is_empty() {
            return;
        }
        std::thread::sleep(LOOK_EVERY);
    }
    for child in &mut children {
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// Ends this process as a signal would, once its standard input ends.
pub(super) fn end_with_stdin() {
    std::thread::spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        let _ = kill_process(getpid(), Signal::TERM);
    });
}
