//! The threads that do the operations of a benchmark.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

mod turn;

use self::turn::Turn;
use super::driver::{Driver, Failure, Listed, join};
use super::generator::Made;
use super::judge::{Write, has_digest, is_acknowledged, judge};
use super::outcome::{Outcome, Record};
use super::plan::{Operation, Plan};
use super::processes::Processes;
use super::wire::Tap;
use crate::digest::sha256;
use crate::error::LabError;
use crate::files;
use crate::memory;
use crate::random::Random;
use crate::stopwatch::{Stopwatch, process_time};

/// How often somebody is told how far it is, and asked whether it is to go on.
const TELL_EVERY: Duration = Duration::from_millis(200);

/// How often a thread that waits looks whether it is to go on: seldom, because there may be thousands.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A thread only waits and calls the driver.
const STACK_BYTES: usize = 1 << 20;

/// How far a benchmark is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress<'a> {
    /// Operations that have ended.
    pub done: u64,
    /// Of them, those that failed.
    pub failed: u64,
    /// Operations in all.
    pub all: u64,
    /// Since the first began.
    pub elapsed: Duration,
    /// Those that count and came to a good end since this was told last.
    pub ended: &'a [Ended],
}

/// An operation that came to a good end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// When, since the first began.
    pub at: Duration,
    /// How long it took.
    pub took: Duration,
}

/// Does everything that a plan says, as often as it says. `goes_on` is told how far it is, five times a second; when it says no, operations that
/// have begun end.
///
/// `name` is of this run alone, and in the names of its files; `tap` counts what goes over the wire from the first operation to the end of the last.
///
/// # Errors
/// [`LabError`] where nothing could begin, or a file that is to be kept here could not be written in the first repetition; where it could not in a
/// later one, the outcome says so. An operation that fails is counted.
pub fn run(
    plan: &Plan,
    driver: &dyn Driver,
    name: &str,
    tap: Option<Tap>,
    goes_on: &mut dyn FnMut(Progress<'_>) -> bool,
) -> Result<Outcome, LabError> {
    let listed = listed(plan, driver)?;
    let of_each = if plan.operation.is_of_a_folder() { listed.len() } else { 1 };
    let Some((counted, each, all)) = count(plan, of_each) else {
        return Err(LabError::Benchmark {
            what: "these are more operations than a number can count".to_owned(),
        });
    };
    if let Some(folder) = &plan.target.local_directory {
        files::demand_empty(folder)?;
    }
    let mut processes = Processes::find(&plan.processes)?;
    if let Some(tap) = &tap {
        tap.begin()?;
    }
    let processor = process_time();
    processes.begin();
    let mut work = Work {
        plan,
        driver,
        turn: Turn::new(plan, name, 1)?,
        watch: Stopwatch::start(),
        listed,
        each,
        all,
        is_over: AtomicBool::new(false),
        done: Mutex::default(),
        written: Mutex::default(),
    };
    let mut looks_on = |progress: Progress<'_>| {
        processes.sample();
        goes_on(progress)
    };
    let broken = work.repeat(name, &mut looks_on);
    // What keeps this computer from going on keeps nobody from reading again what was done.
    let is_over = broken.is_none() && work.is_over.load(Ordering::Relaxed);
    let mut records = work.done.into_inner().unwrap_or_else(PoisonError::into_inner);
    records.sort_by_key(|record| (record.repetition, record.number));
    let written = work.written.into_inner().unwrap_or_else(PoisonError::into_inner);
    // Reading everything again is no part of it, here as on the wire.
    let processor = process_time().saturating_sub(processor);
    let memory_peak = memory::peak();
    let processes = processes.end();
    let broken = match broken {
        Some((1, error)) => return Err(error),
        // The repetitions before are not to be hidden.
        broken => broken.map(|(repetition, error)| {
            let Failure(why) = error.into();
            format!("repetition {repetition}: {why}")
        }),
    };
    let has_moved = records.iter().any(|record| record.failure.is_none());
    let wire = tap.map(|tap| tap.end(has_moved));
    let mut outcome = Outcome {
        records,
        repetitions: plan.repetitions,
        asked: counted * plan.repetitions,
        broken,
        processor,
        memory_peak,
        processes,
        wire,
        ..Outcome::default()
    };
    // Whoever wanted it to end does not wait for all files again.
    if is_over {
        outcome.unread = written.values().filter(|writes| is_acknowledged(writes)).count() as u64;
    } else {
        judge(driver, &written, plan.threads, &mut outcome);
    }
    outcome.acknowledged += outcome.unread;
    Ok(outcome)
}

/// Lists the files that operations are about, where they are about those of a folder.
fn listed(plan: &Plan, driver: &dyn Driver) -> Result<Vec<Listed>, LabError> {
    if !plan.operation.is_of_a_folder() && !plan.makes_links() {
        return Ok(Vec::new());
    }
    let refuse = |what| LabError::NotListed { target: driver.describe(), what };
    let directory = &plan.target.directory;
    let listed = driver.list(directory).map_err(|Failure(what)| refuse(what))?;
    if listed.is_empty() {
        return Err(refuse(format!("there is no file in '{directory}'")));
    }
    Ok(listed)
}

/// Counts the operations of a repetition that count, all of it, and those of all repetitions, if a number can.
fn count(plan: &Plan, of_each: usize) -> Option<(u64, u64, u64)> {
    let counted = plan.times.checked_mul(of_each as u64)?;
    let each = counted.checked_add(plan.warm_up)?;
    Some((counted, each, each.checked_mul(plan.repetitions)?))
}

struct Work<'a> {
    plan: &'a Plan,
    driver: &'a dyn Driver,
    turn: Turn,
    watch: Stopwatch,
    listed: Vec<Listed>,
    /// Operations of a repetition.
    each: u64,
    /// Of all repetitions.
    all: u64,
    is_over: AtomicBool,
    done: Mutex<Vec<Record>>,
    written: Mutex<BTreeMap<String, Vec<Write>>>,
}

/// What somebody has been told of.
#[derive(Default)]
struct Told {
    count: usize,
    failed: u64,
}

/// What a thread has for itself.
struct Worker {
    number: usize,
    random: Random,
    /// How often it has paused.
    pauses: u64,
    /// The file that it edits, once it is there.
    own: Option<(String, Made)>,
}

/// What an operation has done, as far as it came.
#[derive(Default)]
struct Done {
    path: String,
    bytes: u64,
    made: Duration,
    took: Duration,
}

impl Work<'_> {
    /// Does all repetitions, unless it is to end before. Returns what kept this computer from going on, and in which.
    fn repeat(
        &mut self,
        name: &str,
        goes_on: &mut dyn FnMut(Progress<'_>) -> bool,
    ) -> Option<(u64, LabError)> {
        let mut told = Told::default();
        for repetition in 1..=self.plan.repetitions {
            if repetition > 1 {
                match Turn::new(self.plan, name, repetition) {
                    Ok(turn) => self.turn = turn,
                    Err(error) => return Some((repetition, error)),
                }
            }
            let broken = self.play(&mut told, goes_on);
            if let Some(error) = broken {
                return Some((repetition, error));
            }
            if self.is_over.load(Ordering::Relaxed) {
                break;
            }
        }
        None
    }

    /// Starts the threads, and waits for them. Returns what kept a file from being written here.
    fn play(
        &self,
        told: &mut Told,
        goes_on: &mut dyn FnMut(Progress<'_>) -> bool,
    ) -> Option<LabError> {
        thread::scope(|scope| {
            let start = |number| {
                let builder = thread::Builder::new().stack_size(STACK_BYTES);
                builder.spawn_scoped(scope, move || self.work(number))
            };
            let mut broken = None;
            let mut threads = Vec::new();
            for number in 0..self.plan.threads {
                match start(number) {
                    Ok(thread) => threads.push(thread),
                    Err(source) => {
                        self.is_over.store(true, Ordering::Relaxed);
                        broken = Some(LabError::Threads { started: number, source });
                        break;
                    }
                }
            }
            while threads.iter().any(|thread| !thread.is_finished()) {
                thread::park_timeout(TELL_EVERY);
                // Whoever looks on takes no part in this: no thread waits for the lock meanwhile.
                let ended = self.since(told);
                let (done, failed, elapsed) = (told.count as u64, told.failed, self.watch.wall());
                if !goes_on(Progress { done, failed, all: self.all, elapsed, ended: &ended }) {
                    self.is_over.store(true, Ordering::Relaxed);
                }
            }
            for thread in threads {
                match thread.join() {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => broken = broken.or(Some(error)),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            broken
        })
    }

    /// Returns the operations that nobody has been told of, and counts them and those that failed.
    fn since(&self, told: &mut Told) -> Vec<Ended> {
        let done = lock(&self.done);
        let new = &done[told.count..];
        told.count = done.len();
        told.failed += new.iter().filter(|record| record.failure.is_some()).count() as u64;
        let counts = |record: &&Record| record.failure.is_none() && !record.is_warm_up;
        let ended = |record: &Record| Ended {
            at: record.started + record.made + record.took,
            took: record.took,
        };
        new.iter().filter(counts).map(ended).collect()
    }

    fn work(&self, number: usize) -> Result<(), LabError> {
        let random = Random::new(self.turn.seed ^ (number as u64 + 1).wrapping_mul(0x9e37_79b9));
        let mut worker = Worker { number, random, pauses: 0, own: None };
        if self.plan.operation == Operation::Edit {
            // Where it fails now, the first edit tries again, and says why.
            worker.own = self.own_file(&worker).ok();
        }
        if let Some((from, to)) = self.plan.start_within {
            self.wait(from + worker.random.unit() * (to - from));
        }
        while !self.is_over.load(Ordering::Relaxed) {
            let number = self.turn.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.each {
                break;
            }
            let kind = self.kind(&mut worker);
            let started = self.watch.wall();
            let mut done = Done::default();
            let result = match kind {
                Operation::Download => self.download(number, &mut worker, &mut done),
                Operation::Edit => self.edit(&mut worker, &mut done),
                Operation::Share => self.share(number, &mut done),
                Operation::Upload | Operation::Mixed => self.upload(number, &mut done),
            };
            let failure = match result {
                Ok(()) => None,
                Err(Stopped::Failed(Failure(why))) => Some(why),
                Err(Stopped::Broken(error)) => {
                    self.is_over.store(true, Ordering::Relaxed);
                    return Err(error);
                }
            };
            let Done { path, bytes, made, took } = done;
            let (worker_number, is_warm_up) = (worker.number, number < self.plan.warm_up);
            lock(&self.done).push(Record {
                repetition: self.turn.repetition,
                number,
                worker: worker_number,
                kind,
                started,
                made,
                took,
                bytes,
                path,
                failure,
                is_warm_up,
            });
            if self.turn.next.load(Ordering::Relaxed) < self.each {
                self.wait(self.plan.pause.draw(worker.pauses, &mut worker.random));
                worker.pauses += 1;
            }
        }
        Ok(())
    }

    /// Waits, but not for longer than the benchmark goes on.
    fn wait(&self, seconds: f64) {
        let until = self.watch.wall() + Duration::from_secs_f64(seconds);
        while !self.is_over.load(Ordering::Relaxed) {
            let left = until.saturating_sub(self.watch.wall());
            if left.is_zero() {
                return;
            }
            thread::sleep(left.min(LOOK_EVERY));
        }
    }

    fn kind(&self, worker: &mut Worker) -> Operation {
        match (self.plan.operation, self.plan.mix) {
            (Operation::Mixed, Some(mix)) => match mix.draw(&mut worker.random) {
                // As long as there is nothing to read.
                Operation::Download if lock(&self.turn.there).is_empty() => Operation::Upload,
                drawn => drawn,
            },
            (operation, _) => operation,
        }
    }

    fn path(&self, name: &str) -> String {
        join(&self.plan.target.directory, name)
    }

    fn upload(&self, number: u64, done: &mut Done) -> Result<(), Stopped> {
        let watch = Stopwatch::start();
        let Turn { generator, name: run, one_name, .. } = &self.turn;
        let bytes = generator.file(number);
        let name = match one_name {
            Some(name) => name.clone(),
            None => generator.name(run, number),
        };
        if let Some(folder) = &self.plan.files.keep_in {
            let name = generator.name(run, number);
            files::write_new(&folder.join(name), &bytes).map_err(Stopped::Broken)?;
        }
        done.made = watch.wall();
        done.path = self.path(&name);
        self.put(&bytes, done)
    }

    fn edit(&self, worker: &mut Worker, done: &mut Done) -> Result<(), Stopped> {
        let watch = Stopwatch::start();
        let (path, mut file) = match worker.own.take() {
            Some(own) => own,
            None => self.own_file(worker)?,
        };
        self.turn.generator.edit(&mut file, &mut worker.random);
        let bytes = self.turn.generator.bytes(&file);
        done.made = watch.wall();
        done.path.clone_from(&path);
        let result = self.put(&bytes, done);
        worker.own = Some((path, file));
        result
    }

    /// Makes the file that a thread edits.
    fn own_file(&self, worker: &Worker) -> Result<(String, Made), Stopped> {
        let number = worker.number as u64;
        let Turn { generator, name: run, .. } = &self.turn;
        let name = generator.name(&format!("{run}-edited"), number);
        let mut made = Done { path: self.path(&name), ..Done::default() };
        let file = generator.made(number);
        self.put(&generator.bytes(&file), &mut made)?;
        Ok((made.path, file))
    }

    /// Writes a file, and remembers what is to be there in the end.
    fn put(&self, bytes: &[u8], done: &mut Done) -> Result<(), Stopped> {
        let digest = sha256(bytes);
        done.bytes = bytes.len() as u64;
        let earlier = lock(&self.written).get(&done.path).cloned().unwrap_or_default();
        // What stands there and is not of this run is somebody's file. A write that failed may have happened.
        let is_ours = is_acknowledged(&earlier)
            || !earlier.is_empty()
                && self.driver.get(&done.path).is_ok_and(|found| {
                    found.is_some_and(|bytes| has_digest(&earlier, &sha256(&bytes)))
                });
        let is_new = !is_ours;
        let index = {
            let mut written = lock(&self.written);
            let writes = written.entry(done.path.clone()).or_default();
            writes.push(Write { digest, began: self.watch.wall(), ended: None });
            writes.len() - 1
        };
        let watch = Stopwatch::start();
        let result = self.driver.put(&done.path, bytes, is_new);
        done.took = watch.wall();
        if result.is_ok()
            && let Some(writes) = lock(&self.written).get_mut(&done.path)
        {
            writes[index].ended = Some(self.watch.wall());
            if !is_acknowledged(&earlier) {
                lock(&self.turn.there).push(done.path.clone());
            }
        }
        result.map_err(Stopped::Failed)
    }

    fn listed(&self, number: u64) -> &Listed {
        &self.listed[(number % self.listed.len() as u64) as usize]
    }

    fn share(&self, number: u64, done: &mut Done) -> Result<(), Stopped> {
        let listed = self.listed(number);
        done.path.clone_from(&listed.path);
        let watch = Stopwatch::start();
        let shared = self.driver.share(&listed.path);
        done.took = watch.wall();
        // Not at the end of all: no server keeps thousands, and whoever ends this early is to leave none behind.
        self.driver
            .withdraw(&shared.map_err(Stopped::Failed)?, listed.size)
            .map_err(Stopped::Failed)
    }

    fn download(&self, number: u64, worker: &mut Worker, done: &mut Done) -> Result<(), Stopped> {
        // Of a mix, those that are listed are there to be shared.
        let expected = if self.plan.operation == Operation::Mixed {
            let there = lock(&self.turn.there);
            done.path.clone_from(&there[worker.random.below(there.len() as u64) as usize]);
            None
        } else {
            let listed = self.listed(number);
            done.path.clone_from(&listed.path);
            Some(listed.size)
        };
        let watch = Stopwatch::start();
        let read = self.driver.get(&done.path);
        done.took = watch.wall();
        let there = read.map_err(Stopped::Failed)?;
        let bytes = there.ok_or_else(|| Stopped::Failed(Failure("it is not there".to_owned())))?;
        done.bytes = bytes.len() as u64;
        if let Some(size) = expected.filter(|size| *size != done.bytes) {
            let what = format!("{} bytes came of {size} that were listed", done.bytes);
            return Err(Stopped::Failed(Failure(what)));
        }
        if let Some(folder) = &self.turn.local_directory {
            // Whoever reads a folder more than once keeps one copy.
            let name = done.path.rsplit('/').next().unwrap_or_default();
            files::write(&folder.join(name), &bytes).map_err(Stopped::Broken)?;
        }
        Ok(())
    }
}

/// Why an operation did not end well.
enum Stopped {
    /// The target is to blame: it is counted.
    Failed(Failure),
    /// This computer is: nothing more can be measured.
    Broken(LabError),
}

/// A thread that panicked ends the run anyway.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
