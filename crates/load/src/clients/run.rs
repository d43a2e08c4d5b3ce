//! A run: clients that are ready send what they have, and note how long it took.
//!
//! *Goals*: a client of the regular workload sends at its times whatever the answers; one of the intensive workload sends the next file as soon
//! as the one before is there. *Invariants*: a delay counts from the moment at which an edit was to be sent; whatever the server was told to have is read
//! back afterwards from some of the clients.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use super::connection::{Answer, Connection};
use super::exchange::{Door, Expected, Request};
use super::place::Client;
use crate::figures::Delays;
use crate::machine::{Usage, stolen_seconds};
use crate::traffic::Traffic;

/// How many clients connect at once.
const CONNECTING_AT_ONCE: usize = 64;

/// How long a client waits that was told that the server has no room just now.
const BUSY_PAUSE: Duration = Duration::from_millis(100);

/// How long a run waits for what was not answered in the end.
const PATIENCE: Duration = Duration::from_secs(15);

/// How many clients are asked afterwards whether the server has what they sent.
const READ_BACK: usize = 24;

/// When clients send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// Each once in this time, all of them evenly spread over it.
    Every(Duration),
    /// Each as soon as the one before is there; an answer takes so long until it is there.
    NoPause {
        /// A round trip of the line, which a client waits for and a server does not.
        line: Duration,
    },
}

/// What a run was.
#[derive(Debug, Default)]
pub struct Outcome {
    /// How many edits were to be sent while it was measured.
    pub offered: u64,
    /// How many of them were there in the end.
    pub stored: u64,
    /// How many were there while it was measured.
    pub stored_in_time: u64,
    /// How many requests the server had no room for, so that they were made again.
    pub repeated: u64,
    /// From the moment at which an edit was to be sent until it was there.
    pub delays: Delays,
    /// Why clients gave up.
    pub failures: Vec<String>,
    /// Files that were read back, and were as they should be.
    pub verified: usize,
    /// Seconds on the clock.
    pub wall_seconds: f64,
    /// Processor seconds of the server.
    pub server_seconds: f64,
    /// Processor seconds of the generator.
    pub generator_seconds: f64,
    /// Processor seconds that others on the host had.
    pub stolen_seconds: f64,
    /// Bytes to the server and back while it was measured, with the headers of HTTP.
    pub bytes: (u64, u64),
}

/// What one client noted.
#[derive(Debug, Default)]
struct Noted {
    offered: u64,
    /// When each edit was to be sent, and when it was there.
    stored: Vec<(Duration, Duration)>,
    repeated: u64,
    failure: Option<String>,
}

/// What the clients of a run share.
#[derive(Debug)]
struct Shared {
    server: SocketAddr,
    pace: Pace,
    length: Duration,
    traffic: Arc<Traffic>,
    connecting: Semaphore,
    /// How many are connected, or never will be.
    ready: AtomicUsize,
}

/// Lets clients work for a while; `process` is the server.
///
/// # Errors
/// Where not all of them can be connected, or the server is gone.
pub async fn run(
    server: SocketAddr,
    process: u32,
    clients: Vec<Client>,
    pace: Pace,
    length: Duration,
) -> Result<Outcome> {
    let count = clients.len();
    let shared = Arc::new(Shared {
        server,
        pace,
        length,
        traffic: Arc::default(),
        connecting: Semaphore::new(CONNECTING_AT_ONCE),
        ready: AtomicUsize::new(0),
    });
    let (begin, beginning) = watch::channel(None);
    let mut tasks = JoinSet::new();
    for client in clients {
        tasks.spawn(work(Worker::new(client, Arc::clone(&shared)), beginning.clone()));
    }
    while shared.ready.load(Ordering::Acquire) < count {
        sleep(Duration::from_millis(5)).await;
    }
    let usage = || -> Result<(f64, f64, f64)> {
        let (server, own) = (Usage::of(process)?, Usage::own()?);
        Ok((server.cpu_seconds, own.cpu_seconds, stolen_seconds()))
    };
    let (before, bytes_before) = (usage()?, shared.traffic.so_far());
    let start = Instant::now();
    begin.send_replace(Some(start));
    sleep_until(start + length).await;
    let (after, bytes_after) = (usage()?, shared.traffic.so_far());
    let mut outcome = Outcome {
        wall_seconds: start.elapsed().as_secs_f64(),
        server_seconds: after.0 - before.0,
        generator_seconds: after.1 - before.1,
        stolen_seconds: after.2 - before.2,
        bytes: (bytes_after.0 - bytes_before.0, bytes_after.1 - bytes_before.1),
        ..Outcome::default()
    };
    let mut workers = Vec::new();
    while let Some(joined) = tasks.join_next().await {
        let worker = joined.context("a client has failed")?;
        outcome.add(&worker.noted, length);
        workers.push(worker);
    }
    workers.sort_by_key(|worker| worker.client.number);
    outcome.verified = read_back(workers).await?;
    Ok(outcome)
}

impl Outcome {
    fn add(&mut self, noted: &Noted, length: Duration) {
        self.offered += noted.offered;
        self.stored += noted.stored.len() as u64;
        self.repeated += noted.repeated;
        self.failures.extend(noted.failure.clone());
        for (intended, there) in &noted.stored {
            self.delays.add(there.saturating_sub(*intended));
            self.stored_in_time += u64::from(*there <= length);
        }
    }
}

/// A client at work.
struct Worker {
    client: Client,
    connection: Connection,
    /// How many exchanges each of its files has behind it.
    done: Vec<usize>,
    noted: Noted,
    shared: Arc<Shared>,
}

/// Does all that a client has to do, and never more than the run is long.
async fn work(mut worker: Worker, mut begin: watch::Receiver<Option<Instant>>) -> Worker {
    let shared = Arc::clone(&worker.shared);
    let opened = {
        // Nobody closes it.
        let _permit = shared.connecting.acquire().await;
        worker.connection.open().await
    };
    shared.ready.fetch_add(1, Ordering::Release);
    let start = match begin.wait_for(Option::is_some).await {
        Ok(start) => *start,
        Err(_) => None,
    };
    match (opened, start) {
        (Ok(()), Some(start)) => {
            let deadline = start + shared.length + PATIENCE;
            let failed = timeout_at(deadline, worker.all(start)).await;
            // What is not answered by now was offered and is not there.
            worker.noted.failure =
                failed.unwrap_or_else(|_| Ok(())).err().map(|e| format!("{e:#}"));
        }
        (Err(error), _) => worker.noted.failure = Some(format!("no connection: {error}")),
        (Ok(()), None) => {}
    }
    worker
}

impl Worker {
    fn new(client: Client, shared: Arc<Shared>) -> Self {
        let connection = Connection::new(shared.server, client.number, Arc::clone(&shared.traffic));
        let done = vec![0; client.files.len()];
        Self { client, connection, done, noted: Noted::default(), shared }
    }

    async fn all(&mut self, start: Instant) -> Result<()> {
        let Shared { pace, length, .. } = *self.shared;
        for number in 0..self.client.exchanges.len() {
            let intended = match pace {
                Pace::Every(period) => {
                    period.mul_f64(share_of(self.client.number)) + period * number as u32
                }
                Pace::NoPause { .. } => start.elapsed(),
            };
            if intended >= length {
                break;
            }
            sleep_until(start + intended).await;
            self.noted.offered += 1;
            self.exchange(number).await.with_context(|| format!("exchange {number}"))?;
            self.noted.stored.push((intended, start.elapsed()));
        }
        Ok(())
    }

    /// Makes the requests of one edit.
    async fn exchange(&mut self, number: usize) -> Result<()> {
        let exchange = std::mem::take(&mut self.client.exchanges[number]);
        let file = exchange.file;
        // Where the server has forgotten what was said first, or has no room, all of it is said again.
        'again: loop {
            for request in &exchange.requests {
                let answer = self.ask(request, file).await?;
                if answer.status == 503 {
                    self.noted.repeated += 1;
                    sleep(BUSY_PAUSE).await;
                    continue 'again;
                }
                check(request, &answer)?;
                if request.expected == Expected::Stored {
                    self.client.files[file].etag = answer.etag.context("a version has a name")?;
                }
            }
            self.done[file] += 1;
            return Ok(());
        }
    }

    async fn ask(&mut self, request: &Request, file: usize) -> Result<Answer> {
        let (server, length) = (self.shared.server, request.body.len());
        let head = self.client.head(server, request.door, file, length);
        let answer = self.connection.ask(&head, &request.body).await?;
        if let Pace::NoPause { line } = self.shared.pace {
            sleep(line).await;
        }
        Ok(answer)
    }
}

/// Returns after which share of the period a client begins: evenly spread as of people who began at any time, and so that those of one
/// workspace, whose numbers follow each other, do not send one after the other (the golden ratio is the number that multiples keep farthest from).
fn share_of(client: usize) -> f64 {
    const GOLDEN: f64 = 0.618_033_988_749_894_8;
    ((client as f64 + 0.5) * GOLDEN).fract()
}

/// Compares an answer with what is to come.
fn check(request: &Request, answer: &Answer) -> Result<()> {
    let is_as_expected = match request.expected {
        Expected::Something | Expected::Stored => answer.status == 200,
        Expected::Message(hash) => {
            answer.status == 202 && *blake3::hash(&answer.body).as_bytes() == hash
        }
    };
    if !is_as_expected {
        let said: String = String::from_utf8_lossy(&answer.body).chars().take(200).collect();
        bail!("{:?}: {} and not what was to come: {said}", request.door, answer.status);
    }
    Ok(())
}

/// Reads files of some clients back; returns how many there were.
///
/// # Errors
/// Where one is not what its client has sent last.
async fn read_back(workers: Vec<Worker>) -> Result<usize> {
    let step = workers.len().div_ceil(READ_BACK).max(1);
    let mut verified = 0;
    // Whoever gave up does not know what the server has.
    let sure = workers.into_iter().step_by(step).filter(|worker| {
        worker.noted.failure.is_none() && worker.noted.offered == worker.noted.stored.len() as u64
    });
    for mut worker in sure {
        let changed = worker.done.iter().position(|done| *done > 0);
        let Some(file) = changed else { continue };
        let path = worker.client.files[file].path.clone();
        let head = worker.client.head(worker.shared.server, Door::Read, file, 0);
        let answer = worker.connection.ask(&head, &[]).await?;
        let expected = worker.client.files[file].hashes.get(worker.done[file] - 1);
        if answer.status != 200 || Some(blake3::hash(&answer.body).as_bytes()) != expected {
            bail!("{path} of client {} is not what was sent", worker.client.number);
        }
        verified += 1;
    }
    Ok(verified)
}

#[cfg(test)]
mod tests {
    use super::super::place::CLIENTS_OF_ACCOUNT;
    use super::*;

    #[test]
    fn clients_send_evenly_and_those_of_a_workspace_far_from_each_other() {
        for count in [1000_usize, 4700, 20_000] {
            let mut order: Vec<_> = (0..count).collect();
            order.sort_by(|one, other| share_of(*one).total_cmp(&share_of(*other)));
            for pair in order.windows(2) {
                let gap = share_of(pair[1]) - share_of(pair[0]);
                assert!(gap * (count as f64) < 2.7, "{count}: {pair:?}");
                assert!(pair[0].abs_diff(pair[1]) > CLIENTS_OF_ACCOUNT, "{count}: {pair:?}");
            }
        }
    }
}
