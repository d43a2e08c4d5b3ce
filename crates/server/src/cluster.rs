//! Servers that share a database and meet at a message broker.
//!
//! *Participants*: servers on one PostgreSQL; a broker between them. *Goals*: what was committed or revoked at one server is
//! known at the others at once. *Non-goals*: agreement; the database decides, whoever asks it. *Invariants*: nothing that a
//! device is told rests on the broker: a broker that is away, slow, or has lost its data refuses no commit and delays none;
//! all that waits for it is bounded. Who speaks at the broker is trusted as the database is (`docs/design/cluster.md`).

use std::sync::Arc;
use std::time::Duration;

use messaging::{Messenger, MessengerOptions, Name, Transport};
use model::{Clock, Random};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::app::App;
use crate::services::news::Waiting;
use desk::Desk;
use interface::{ServersDispatcher, ServersProxy};

mod desk;
pub mod interface;
mod telling;

/// How often a server says something at least.
const BEAT: Duration = Duration::from_secs(2);

/// After what silence, its own words included, a server takes the broker for unreachable.
const SILENCE_MAX: Duration = Duration::from_secs(7);

/// The pause between attempts to begin with a broker.
const ATTEMPT_EVERY: Duration = Duration::from_secs(1);

/// How many bulletins wait for this server at most; others are missed, which is noticed.
const BULLETINS_MAX: usize = 256;

/// How a server stands with its broker.
#[derive(Debug)]
pub struct Standing {
    clock: Arc<dyn Clock>,
    heard: Mutex<Option<Duration>>,
}

impl Standing {
    fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, heard: Mutex::default() }
    }

    /// Notes that a bulletin came through.
    fn hear(&self) {
        *self.heard.lock() = Some(self.clock.elapsed());
    }

    /// Says whether the broker has carried anything lately.
    pub fn is_reachable(&self) -> bool {
        self.heard.lock().is_some_and(|heard| self.clock.elapsed() < heard + SILENCE_MAX)
    }
}

/// The messenger of this server, once there is one.
type Link = watch::Receiver<Option<Messenger>>;

/// How far a cluster's end is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Runs,
    Ends,
}

/// This server's end of the cluster.
#[derive(Debug)]
pub(crate) struct Cluster {
    phase: watch::Sender<Phase>,
    running: JoinHandle<()>,
    telling: JoinHandle<()>,
}

impl Cluster {
    /// Joins the cluster, in the background: a broker that is away is waited for there.
    pub(crate) fn join(transport: Arc<dyn Transport>, waiting: Waiting, app: &mut App) -> Self {
        let standing = Arc::new(Standing::new(Arc::clone(&app.clock)));
        app.standing = Some(Arc::clone(&standing));
        let (messengers, link) = watch::channel(None);
        let (phase, phases) = watch::channel(Phase::Runs);
        let member = Member {
            transport,
            clock: Arc::clone(&app.clock),
            random: Arc::clone(&app.random),
            desk: Desk::new(app, Arc::clone(&standing)),
            messengers,
        };
        let telling = telling::run(waiting, link, Arc::clone(&app.clock), standing);
        Self { phase, running: tokio::spawn(member.run(phases)), telling: tokio::spawn(telling) }
    }

    /// Leaves the cluster once all users of news are gone, after what waits was told.
    pub(crate) async fn leave(self) {
        // Tasks that have failed are over, too.
        let _ = self.phase.send(Phase::Ends);
        let _ = self.running.await;
        let _ = self.telling.await;
    }
}

/// What joins.
struct Member {
    transport: Arc<dyn Transport>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    desk: Desk,
    messengers: watch::Sender<Option<Messenger>>,
}

impl Member {
    /// Joins, and stays until the end.
    async fn run(self, mut phases: watch::Receiver<Phase>) {
        let mut ended = phases.clone();
        let end = async move { drop(ended.wait_for(|phase| *phase == Phase::Ends).await) };
        let stay = async {
            let messenger = self
                .insist("the message broker cannot be reached yet", || {
                    let (clock, random) = (Arc::clone(&self.clock), Arc::clone(&self.random));
                    let options = MessengerOptions::default();
                    Messenger::start(Arc::clone(&self.transport), clock, random, options)
                })
                .await;
            let topic = topic();
            let handler = Arc::new(ServersDispatcher(self.desk.at(messenger.instance())));
            let _listening = self
                .insist("news of other servers cannot be heard yet", || {
                    messenger.listen(&topic, Arc::clone(&handler) as _, BULLETINS_MAX)
                })
                .await;
            self.messengers.send_replace(Some(messenger.clone()));
            let _ = phases.wait_for(|phase| *phase == Phase::Ends).await;
        };
        tokio::select! {
            () = stay => {}
            () = end => {}
            () = self.desk.look() => {}
        }
    }

    /// Does something at the broker, again and again until it succeeds.
    async fn insist<T, F>(&self, trouble: &str, mut attempt: impl FnMut() -> F) -> T
    where
        F: Future<Output = Result<T, messaging::MessagingError>>,
    {
        let mut failures = 0_u32;
        loop {
            match attempt().await {
                Ok(done) => return done,
                Err(error) if failures == 0 => tracing::warn!(%error, "{trouble}"),
                Err(error) => tracing::debug!(%error, failures, "{trouble}"),
            }
            failures = failures.saturating_add(1);
            self.clock.sleep(ATTEMPT_EVERY).await;
        }
    }
}

/// The topic of all news.
fn topic() -> Name {
    Name::new(ServersProxy::NAME).expect("interfaces have valid names")
}
