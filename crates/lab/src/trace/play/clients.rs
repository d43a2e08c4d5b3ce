//! Plays each client by a thread of its own, so that what one of them does holds up no other one.
//!
//! *Participants*: the thread that reads the trace and hands out its steps, and one thread for each client. *Goals*: steps of two clients overlap where
//! they are due at the same time; memory does not grow with the trace. *Invariants*: each client does its steps in the order of the trace; a step begins
//! when all earlier ones are done that it rests on, so that it finds what it would find if all were done one after the other; of all steps that fail the
//! earliest is named, all before it are done, and none behind it begins that has not.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use super::{NO_PANIC, Player, SAY_EVERY};
use crate::error::LabError;
use crate::stopwatch::Stopwatch;
use crate::trace::{Action, Reader, Step};

/// So many steps are handed out that are not done yet. A client that is further behind holds up the others.
const AHEAD_MAX: usize = 256;

/// The line of a step, when it is due, and what it is.
type Handed = (u64, Duration, Arc<Step>);

struct Clients<'a> {
    player: &'a Player<'a>,
    watch: &'a Stopwatch,
    row: Mutex<Row>,
    /// A step is done, or one has failed.
    done: Condvar,
    /// One has failed.
    failed: Condvar,
}

#[derive(Default)]
struct Row {
    /// What was handed out and is not done, by its line.
    under_way: BTreeMap<u64, Arc<Step>>,
    /// The earliest line that failed, and how.
    failure: Option<(u64, LabError)>,
}

impl Row {
    fn is_over(&self, line: u64) -> bool {
        self.failure.as_ref().is_some_and(|(failed, _)| *failed < line)
    }

    fn must_wait(&self, line: u64, step: &Step) -> bool {
        self.under_way.range(..line).any(|(_, earlier)| rests_on(&step.action, &earlier.action))
    }
}

/// Plays all steps with a time.
///
/// # Errors
/// That of the earliest step that fails; [`LabError::Threads`].
pub(super) fn play<R: BufRead>(
    player: &Player<'_>,
    first: Step,
    trace: &mut Reader<R>,
    watch: &Stopwatch,
    say: &mut dyn FnMut(&str),
) -> Result<(), LabError> {
    let (row, done, failed) = (Mutex::default(), Condvar::new(), Condvar::new());
    let clients = &Clients { player, watch, row, done, failed };
    thread::scope(|scope| {
        let mut queues = Vec::new();
        for started in 0..player.plan.folders.len() {
            let (queue, steps) = mpsc::channel();
            thread::Builder::new()
                .spawn_scoped(scope, move || clients.play(&steps))
                .map_err(|source| LabError::Threads { started, source })?;
            queues.push(queue);
        }
        clients.hand_out(first, trace, &queues, say);
        Ok::<(), LabError>(())
    })?;
    let failure = clients.row().failure.take();
    failure.map_or(Ok(()), |(_, error)| Err(error))
}

impl Clients<'_> {
    fn row(&self) -> MutexGuard<'_, Row> {
        self.row.lock().expect(NO_PANIC)
    }

    /// Reads the trace to its end, or until a step fails.
    fn hand_out<R: BufRead>(
        &self,
        first: Step,
        trace: &mut Reader<R>,
        queues: &[Sender<Handed>],
        say: &mut dyn FnMut(&str),
    ) {
        let (mut next, mut said) = (Some(Ok(first)), 0);
        while let Some(step) = next.take().or_else(|| trace.next()) {
            let line = trace.line();
            let step = step.and_then(|step| Ok((self.player.due(line, &step)?, step)));
            let (due, step) = match step {
                // Here time is kept.
                Ok((due, step)) => (due.unwrap_or_default(), Arc::new(step)),
                Err(error) => return self.fail(line, error),
            };
            let is_full = |row: &mut Row| row.under_way.len() >= AHEAD_MAX && !row.is_over(line);
            let mut row = self.done.wait_while(self.row(), is_full).expect(NO_PANIC);
            if row.is_over(line) {
                return;
            }
            row.under_way.insert(line, Arc::clone(&step));
            let queue = &queues[step.client];
            // Nobody stops taking steps but because one has failed, which is seen under the same lock.
            queue.send((line, due, step)).expect("a client takes steps until one has failed");
            drop(row);
            let steps = self.player.state().played.steps;
            if steps / SAY_EVERY > said {
                said = steps / SAY_EVERY;
                say(&format!("{steps} steps after {:.1} s", self.watch.wall().as_secs_f64()));
            }
        }
    }

    /// Does the steps of a client.
    fn play(&self, steps: &Receiver<Handed>) {
        for (line, due, step) in steps {
            if !self.wait_until(due, line) || !self.wait_for_others(line, &step) {
                return;
            }
            self.player.begin_late_by(self.watch.wall().saturating_sub(due));
            match self.player.step(line, &step, &|| self.row().is_over(line)) {
                Ok(()) => drop(self.player.end_step()),
                Err(error) => self.fail(line, error),
            }
            self.row().under_way.remove(&line);
            self.done.notify_all();
        }
    }

    /// Tells whether it is to be done.
    fn wait_until(&self, due: Duration, line: u64) -> bool {
        let mut row = self.row();
        while !row.is_over(line) {
            let now = self.watch.wall();
            if now >= due {
                return true;
            }
            row = self.failed.wait_timeout(row, due.saturating_sub(now)).expect(NO_PANIC).0;
        }
        false
    }

    /// Tells whether it is to be done.
    fn wait_for_others(&self, line: u64, step: &Step) -> bool {
        let watch = Stopwatch::start();
        let must_wait = |row: &mut Row| row.must_wait(line, step) && !row.is_over(line);
        let row = self.done.wait_while(self.row(), must_wait).expect(NO_PANIC);
        self.player.state().played.waited += watch.wall();
        !row.is_over(line)
    }

    fn fail(&self, line: u64, error: LabError) {
        let mut row = self.row();
        if row.failure.as_ref().is_none_or(|(failed, _)| line < *failed) {
            row.failure = Some((line, error));
        }
        drop(row);
        self.done.notify_all();
        self.failed.notify_all();
    }
}

/// Whether a step may find something else when an earlier one is not done.
fn rests_on(later: &Action, earlier: &Action) -> bool {
    let is_in = |path: &str, folder: &str| {
        path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let mut pairs = later.paths().into_iter().flatten().flat_map(|one| {
        let others = earlier.paths().into_iter().flatten();
        others.map(move |other| (one, other))
    });
    let versions = later.version().zip(earlier.version());
    // The versions of a dataset are made one after the other.
    versions.is_some_and(|(one, other)| one != other)
        || pairs.any(|(one, other)| is_in(one, other) || is_in(other, one))
}

#[cfg(test)]
mod tests;
