//! A run: devices that connect, work by a plan, and are asked afterwards what they saw.
//!
//! *Goals*: requests leave at their times whatever the answers; thousands of devices in one process; nothing that happened is
//! forgotten. *Invariants*: no device sends before all are connected; a run ends when every commit is answered and everything that was
//! committed was heard by everybody, or when its patience ends, and what is missing then is told.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use parking_lot::Mutex;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, sleep_until};

use crate::device;
use crate::machine::{Part, Usage, stolen_seconds};
use crate::notes::Noted;
use crate::population::{Enrolled, Workspace};
use crate::traffic::Traffic;

/// How many devices connect at once.
const CONNECTING_AT_ONCE: usize = 64;

/// How often the generator looks whether all is done.
const LOOK_INTERVAL: Duration = Duration::from_millis(5);

/// How long the last events may take after the last answer; a device would ask for them after some seconds.
const EVENTS_PATIENCE: Duration = Duration::from_secs(2);

/// How often the metronome ticks.
const METRONOME_INTERVAL: Duration = Duration::from_millis(5);

/// When devices send.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// At moments that do not depend on answers: so many commits a second, of all devices together.
    Open {
        /// Commits a second.
        rate: f64,
    },
    /// One commit per writing device, after that time.
    Once {
        /// After which time.
        after: Duration,
    },
    /// So many commits of each device, one after the other; each is repeated until it is answered, as the program does. The run ends
    /// when all are, at the latest after its length.
    Counted {
        /// How many of each.
        each: u64,
    },
    /// As fast as answers come, so many commits of each device under way. It finds how much a server can do, and says nothing of delays.
    Closed {
        /// How many are under way.
        in_flight: usize,
    },
}

/// What a run does.
#[derive(Debug, Clone)]
pub struct Load {
    /// Whence all chance comes.
    pub seed: u64,
    /// When devices send.
    pub pace: Pace,
    /// For how long.
    pub length: Duration,
    /// How long to wait for what was not answered at the end.
    pub patience: Duration,
}

/// A device in a workspace.
#[derive(Debug, Clone)]
pub struct Seat {
    /// The device.
    pub device: Arc<Enrolled>,
    /// Where it works.
    pub workspace: Workspace,
    /// Whether it commits; else it listens.
    pub writes: bool,
}

/// Where a run stands.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Phase {
    Connect,
    Go(Instant),
    Stop,
}

/// What the devices of a run share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) load: Load,
    /// Where devices connect, each always to the same one.
    pub(crate) doors: Vec<(String, SocketAddr)>,
    pub(crate) writers: usize,
    pub(crate) traffic: Arc<Traffic>,
    pub(crate) connecting: Semaphore,
    pub(crate) sent: AtomicU64,
    pub(crate) answered: AtomicU64,
    pub(crate) refused: AtomicU64,
    /// How many times a commit was sent again because nobody could answer it just then.
    pub(crate) repeated: AtomicU64,
    /// How many times commits that were answered are to be heard of.
    pub(crate) to_be_heard: AtomicU64,
    pub(crate) heard: AtomicU64,
    /// How many devices have sent everything.
    pub(crate) finished: AtomicUsize,
    arrivals: AtomicUsize,
    failure: Mutex<Option<String>>,
    start: OnceLock<Instant>,
}

impl Shared {
    pub(crate) fn since_start(&self) -> Duration {
        self.start.get().map_or(Duration::ZERO, Instant::elapsed)
    }

    /// Returns how many events of answered commits nobody has heard yet.
    fn unheard(&self) -> u64 {
        let to_be_heard = self.to_be_heard.load(Ordering::Relaxed);
        to_be_heard.saturating_sub(self.heard.load(Ordering::Relaxed))
    }

    /// Notes that a device is ready, or why it never will be.
    pub(crate) fn arrived(&self, failure: Option<String>) {
        if let Some(failure) = failure {
            self.failure.lock().get_or_insert(failure);
        }
        self.arrivals.fetch_add(1, Ordering::Release);
    }
}

/// Devices that are connected and wait.
#[derive(Debug)]
pub struct Connected {
    shared: Arc<Shared>,
    phase: watch::Sender<Phase>,
    devices: JoinSet<Noted>,
}

/// Follows a run from outside.
#[derive(Debug)]
pub struct Progress {
    shared: Arc<Shared>,
}

impl Progress {
    /// Returns how long the devices have been at work.
    pub fn since_start(&self) -> Duration {
        self.shared.since_start()
    }

    /// Returns how many commits are answered.
    pub fn answered_so_far(&self) -> u64 {
        self.shared.answered.load(Ordering::Relaxed)
    }

    /// Waits until so many commits are answered.
    pub async fn answered(&self, count: u64) {
        while self.answered_so_far() < count {
            sleep(LOOK_INTERVAL).await;
        }
    }
}

/// What processes used while devices were sending.
#[derive(Debug, Clone, Default)]
pub struct Cost {
    /// CPU seconds of the programs under test, part by part.
    pub parts: Vec<(&'static str, f64)>,
    /// CPU seconds of the generator.
    pub generator_cpu_seconds: f64,
    /// CPU seconds that others on the host had.
    pub stolen_seconds: f64,
    /// Seconds on the clock.
    pub wall_seconds: f64,
}

/// What a run was.
#[derive(Debug)]
pub struct Outcome {
    /// What it did.
    pub load: Load,
    /// What devices noted.
    pub noted: Vec<Noted>,
    /// What it cost while devices were sending.
    pub cost: Cost,
    /// How late the generator itself woke up, every few milliseconds.
    pub lateness: Vec<Duration>,
    /// How many answers had come when sending ended.
    pub answered_in_time: u64,
    /// When the last answer came.
    pub last_answer: Duration,
    /// Events that nobody heard.
    pub unheard: u64,
    /// How many times a commit was sent again because nobody could answer it just then.
    pub repeated: u64,
}

impl Connected {
    /// Connects all devices of a run.
    ///
    /// # Errors
    /// Where one of them cannot be connected.
    pub async fn connect(servers: &[String], load: Load, seats: Vec<Seat>) -> Result<Self> {
        let doors = servers.iter().map(|server| {
            let address =
                server.strip_prefix("http://").context("a server has no http: address")?;
            let address = address.parse().context("the address of a server has no number")?;
            Ok((server.clone(), address))
        });
        let doors = doors.collect::<Result<Vec<_>>>()?;
        let count = seats.len();
        let writers = seats.iter().filter(|seat| seat.writes).count();
        let mut in_workspace: HashMap<_, u64> = HashMap::new();
        for seat in &seats {
            *in_workspace.entry(seat.workspace.id).or_default() += 1;
        }
        let shared = Arc::new(Shared {
            load,
            doors,
            writers,
            traffic: Arc::default(),
            connecting: Semaphore::new(CONNECTING_AT_ONCE),
            sent: AtomicU64::new(0),
            answered: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            repeated: AtomicU64::new(0),
            to_be_heard: AtomicU64::new(0),
            heard: AtomicU64::new(0),
            finished: AtomicUsize::new(0),
            arrivals: AtomicUsize::new(0),
            failure: Mutex::default(),
            start: OnceLock::new(),
        });
        let (phase, phases) = watch::channel(Phase::Connect);
        let mut devices = JoinSet::new();
        for seat in seats {
            let ears = in_workspace[&seat.workspace.id];
            devices.spawn(device::run(seat, ears, Arc::clone(&shared), phases.clone()));
        }
        while shared.arrivals.load(Ordering::Acquire) < count {
            sleep(LOOK_INTERVAL).await;
        }
        if let Some(failure) = shared.failure.lock().take() {
            bail!("a device could not be connected: {failure}");
        }
        Ok(Self { shared, phase, devices })
    }

    /// Returns how to follow the run from outside.
    pub fn progress(&self) -> Progress {
        Progress { shared: Arc::clone(&self.shared) }
    }

    /// Returns the counter of bytes.
    pub fn traffic(&self) -> Arc<Traffic> {
        Arc::clone(&self.shared.traffic)
    }

    /// Lets the devices work, and returns what they saw. `parts` are the programs under test, where they are other processes.
    ///
    /// # Errors
    /// Where a process cannot be observed, or a device failed in a way that nobody thought of.
    pub async fn go(self, parts: Vec<Part>) -> Result<Outcome> {
        let Self { shared, phase, mut devices } = self;
        let usage = || -> Result<(Vec<f64>, f64, f64)> {
            let parts = parts.iter().map(Part::cpu_seconds).collect::<Result<_, _>>()?;
            Ok((parts, Usage::own()?.cpu_seconds, stolen_seconds()))
        };
        let before = usage()?;
        let start = Instant::now();
        let _ = shared.start.set(start);
        phase.send_replace(Phase::Go(start));
        let metronome = tokio::spawn(metronome(start + shared.load.length, phase.subscribe()));
        tokio::select! {
            () = sleep_until(start + shared.load.length) => {}
            () = all_counted(&shared) => {}
        }
        let answered_in_time = shared.answered.load(Ordering::Relaxed);
        let after = usage()?;
        let cost = Cost {
            parts: parts
                .iter()
                .zip(after.0.iter().zip(&before.0))
                .map(|(part, (after, before))| (part.name, after - before))
                .collect(),
            generator_cpu_seconds: after.1 - before.1,
            stolen_seconds: after.2 - before.2,
            wall_seconds: start.elapsed().as_secs_f64(),
        };
        let last_answer = settle(&shared).await;
        phase.send_replace(Phase::Stop);
        let mut noted = Vec::new();
        while let Some(joined) = devices.join_next().await {
            noted.push(joined.context("a device failed")?);
        }
        noted.sort_by_key(|noted| noted.device);
        Ok(Outcome {
            load: shared.load.clone(),
            noted,
            cost,
            lateness: metronome.await.context("the metronome failed")?,
            answered_in_time,
            last_answer,
            unheard: shared.unheard(),
            repeated: shared.repeated.load(Ordering::Relaxed),
        })
    }
}

/// Waits until every device has made as many commits as it was to make; for ever where nobody counts.
async fn all_counted(shared: &Shared) {
    if !matches!(shared.load.pace, Pace::Counted { .. }) {
        std::future::pending::<()>().await;
    }
    while shared.finished.load(Ordering::Acquire) < shared.writers {
        sleep(LOOK_INTERVAL).await;
    }
}

/// Waits until everything is answered and heard, or patience ends; returns when the last answer came.
async fn settle(shared: &Shared) -> Duration {
    let deadline = Instant::now() + shared.load.patience;
    let mut events_deadline = None;
    let mut last_answer = shared.since_start();
    loop {
        let is_all_sent = shared.finished.load(Ordering::Acquire) >= shared.writers;
        let done = shared.answered.load(Ordering::Relaxed) + shared.refused.load(Ordering::Relaxed);
        let is_answered = is_all_sent && done >= shared.sent.load(Ordering::Relaxed);
        if !is_answered {
            last_answer = shared.since_start();
        }
        let is_heard = shared.unheard() == 0;
        let now = Instant::now();
        if is_answered && events_deadline.is_none() {
            events_deadline = Some(now + EVENTS_PATIENCE);
        }
        let is_over = events_deadline.is_some_and(|deadline| now >= deadline);
        if (is_answered && (is_heard || is_over)) || now >= deadline {
            return last_answer;
        }
        sleep(LOOK_INTERVAL).await;
    }
}

/// Notes how late it wakes up: what the generator adds to every delay, because others had the cores or it has too much to do.
async fn metronome(end: Instant, phase: watch::Receiver<Phase>) -> Vec<Duration> {
    let mut ticks = interval(METRONOME_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut lateness = Vec::new();
    loop {
        let intended = ticks.tick().await;
        if intended >= end || matches!(*phase.borrow(), Phase::Stop) {
            return lateness;
        }
        lateness.push(intended.elapsed());
    }
}
