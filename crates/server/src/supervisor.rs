//! The supervisor: adds and removes sync services by how long commits wait for them.
//!
//! *Participants*: the broker, which knows how many groups wait; the sync services, which say what they have done; a
//! workshop that starts processes. *Goals*: a group is answered within the aimed time at as few instances as that takes; who dies is started
//! again. *Non-goals*: deciding anything about commits; more than one computer. *Invariants*: there are never more or fewer than the limits say,
//! but for those that have just died; without a broker the number stays as it is; at the end all are asked to end and waited for.
//!
//! How many there should be is decided in [`policy`], which is pure; [`crew`] carries it out.

use std::collections::HashMap;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use messaging::{Calls, Gathered, InstanceId, Messenger, MessengerOptions, Name, Transport};
use model::{Clock, Random};
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::broker::Broker;
use crate::cluster::{InstanceLoad, SyncServiceProxy};
use crate::error::Result;
use crew::{Crew, Workshop};
use page::Board;
use policy::{Aim, Policy, Seen};

pub mod crew;
mod page;
pub mod policy;

/// How often it looks.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How often it looks whether those who were asked to end have ended.
const LEAVING_LOOK_EVERY: Duration = Duration::from_millis(50);

/// Of how many instances it is remembered what they had done; beyond, those that do not answer are forgotten.
const KNOWN_MAX: usize = 1000;

/// What a supervisor needs to know.
pub struct SupervisorOptions {
    /// Where to answer about health; port 0 picks one.
    pub listen: SocketAddr,
    /// Where those may ask who watch it; nowhere by default.
    pub metrics_listen: Option<SocketAddr>,
    /// Where the sync services take commits from.
    pub broker: Broker,
    /// What it aims at.
    pub aim: Aim,
    /// What starts processes.
    pub workshop: Box<dyn Workshop>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub random: Arc<dyn Random>,
}

/// Supervises until `shutdown` is done; calls `ready` with the address when it answers.
///
/// # Errors
/// Whatever keeps it from starting.
pub async fn supervise(
    options: SupervisorOptions,
    ready: impl FnOnce(SocketAddr),
    shutdown: impl Future<Output = ()> + Send,
) -> Result<()> {
    let transport = options.broker.connect(Arc::clone(&options.random)).await?;
    let board = Arc::<Mutex<Board>>::default();
    let (stopping, stopped) = watch::channel(false);
    let address = page::serve(&board, options.listen, options.metrics_listen, stopped).await?;
    let gauge = Gauge {
        transport,
        clock: Arc::clone(&options.clock),
        random: options.random,
        service: Name::new(SyncServiceProxy::NAME).expect("interfaces have valid names"),
        messenger: None,
        known: HashMap::new(),
    };
    let crew = Crew::new(options.workshop);
    let clock = options.clock;
    let mut supervisor =
        Supervisor { policy: Policy::new(options.aim), crew, gauge, clock, board, is_blind: false };
    supervisor.tend();
    ready(address);
    tokio::select! {
        () = shutdown => {}
        () = supervisor.run() => {}
    }
    tracing::info!("the supervisor stops");
    supervisor.dismiss().await;
    let _ = stopping.send(true);
    Ok(())
}

struct Supervisor {
    policy: Policy,
    crew: Crew,
    gauge: Gauge,
    clock: Arc<dyn Clock>,
    board: Arc<Mutex<Board>>,
    /// Whether the last look failed.
    is_blind: bool,
}

impl Supervisor {
    /// Looks and acts, for ever.
    async fn run(&mut self) {
        loop {
            self.clock.sleep(LOOK_EVERY).await;
            match self.gauge.look().await {
                Ok(seen) => {
                    self.is_blind = false;
                    self.weigh(seen);
                }
                Err(error) if self.is_blind => tracing::debug!(%error, "the queue is not seen"),
                Err(error) => {
                    self.is_blind = true;
                    tracing::warn!(%error, "the queue is not seen; the number of sync services stays");
                }
            }
            self.tend();
        }
    }

    fn weigh(&mut self, seen: Seen) {
        let before = self.policy.wanted();
        let wanted = self.policy.decide(seen);
        let estimate = self.policy.estimate();
        if wanted != before {
            tracing::info!(
                before,
                wanted,
                waiting = seen.waiting,
                groups_per_second = estimate.rate,
                response_ms = estimate.response * 1000.0,
                "the number of sync services changes"
            );
        }
        let mut board = self.board.lock();
        (board.waiting, board.estimate) = (seen.waiting, estimate);
    }

    /// Carries out what is wanted, and says how it stands.
    fn tend(&mut self) {
        self.crew.tend(self.clock.elapsed(), self.policy.wanted());
        let mut board = self.board.lock();
        (board.running, board.leaving) = self.crew.count();
        board.wanted = self.policy.wanted();
        let events = self.crew.events();
        (board.starts, board.deaths) = (events.starts.get(), events.deaths.get());
        board.is_blind = self.is_blind;
    }

    /// Asks all to end, and waits until they have.
    async fn dismiss(&mut self) {
        self.crew.dismiss(self.clock.elapsed());
        while !self.crew.is_gone(self.clock.elapsed()) {
            self.clock.sleep(LEAVING_LOOK_EVERY).await;
        }
    }
}

/// Sees how much there is to do, and what is done.
struct Gauge {
    transport: Arc<dyn Transport>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    service: Name,
    messenger: Option<Messenger>,
    /// What each instance had done at the last look.
    known: HashMap<InstanceId, InstanceLoad>,
}

impl Gauge {
    async fn look(&mut self) -> Result<Seen, messaging::MessagingError> {
        let calls: Arc<dyn Calls> = Arc::new(self.messenger().await?);
        let loads = match SyncServiceProxy::new(calls).load().await {
            Ok(loads) => loads,
            // None of them runs yet, or any more.
            Err(messaging::MessagingError::NoReceiver { .. }) => Vec::new(),
            Err(error) => return Err(error),
        };
        let waiting = match self.transport.waiting(&self.service).await {
            Ok(waiting) => waiting,
            Err(messaging::MessagingError::NoReceiver { .. }) => 0,
            Err(error) => return Err(error),
        };
        Ok(self.add_up(loads, waiting))
    }

    /// Returns the end of the transport, which is made at the first look at which the broker is there.
    async fn messenger(&mut self) -> Result<Messenger, messaging::MessagingError> {
        if let Some(messenger) = &self.messenger {
            return Ok(messenger.clone());
        }
        let (transport, clock) = (Arc::clone(&self.transport), Arc::clone(&self.clock));
        let (random, options) = (Arc::clone(&self.random), MessengerOptions::default());
        let messenger = Messenger::start(transport, clock, random, options).await?;
        Ok(self.messenger.insert(messenger).clone())
    }

    /// Makes out of what instances have done since their starts what they have done since the last look.
    fn add_up(&mut self, loads: Vec<Gathered<InstanceLoad>>, waiting: u64) -> Seen {
        if self.known.len() > KNOWN_MAX {
            self.known.retain(|instance, _| loads.iter().any(|load| load.instance == *instance));
        }
        let (mut done, mut busy_us, mut groups_at_once) = (0, 0, 0);
        for Gathered { instance, answer } in loads {
            let Ok(load) = answer else { continue };
            let before = self.known.insert(instance, load).unwrap_or_default();
            done += load.groups.saturating_sub(before.groups);
            busy_us += load.busy_us.saturating_sub(before.busy_us);
            groups_at_once = groups_at_once.max(load.groups_at_once);
        }
        let (at, busy) = (self.clock.elapsed(), Duration::from_micros(busy_us));
        Seen { at, waiting, done, busy, groups_at_once }
    }
}

#[cfg(test)]
mod tests;
