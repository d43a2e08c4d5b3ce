//! Servers that share a database and meet at a message broker.
//!
//! *Participants*: servers on one PostgreSQL; a broker between them. *Goals*: what was committed or revoked at one server is
//! known at the others at once; gateways and sync services share the work of one server. *Non-goals*: agreement; the
//! database decides, whoever asks it. *Invariants*: nothing that a device is told rests on the broker: it is told what the
//! database has made durable; where no queue is in use, a broker that is away refuses no commit and delays none;
//! all that waits for it is bounded. Who speaks at the broker is trusted as the database is (`docs/design/cluster.md`).

use std::sync::Arc;
use std::time::Duration;

use messaging::{
    Calls, Context, Fault, Handler, Messenger, MessengerOptions, Name, ServeOptions, Serving,
    Transport,
};
use model::{Clock, Random};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::app::App;
use crate::error::Result;
use crate::metrics::Counter;
use crate::services::commits::Committer;
use crate::services::news::Waiting;
use crate::services::sync_service::CommitRequest;
use desk::Desk;
use interface::{ServersDispatcher, ServersProxy, Signs, SignsDispatcher, SignsProxy};
use queue::{Answers, Asked, CommitQueue, answers_topic};
use work::{GatewayDispatcher, SyncServiceDispatcher};
use worker::Worker;

pub(crate) use work::{InstanceLoad, SyncServiceProxy};

mod desk;
pub mod interface;
pub mod queue;
mod telling;
pub mod work;
mod worker;

/// How often a server says something at least.
const BEAT: Duration = Duration::from_secs(2);

/// After what silence, its own words included, a server takes the broker for unreachable.
const SILENCE_MAX: Duration = Duration::from_secs(7);

/// The pause between attempts to begin with a broker.
const ATTEMPT_EVERY: Duration = Duration::from_secs(1);

/// How many groups of commits a sync service works on at once; others wait with the broker. Enough that the next ones gather while
/// the database writes, and few, because an instance that stands still delays as many.
const GROUPS_AT_ONCE: usize = 8;

/// How many answers to groups wait for a gateway at most; a group whose answer is lost is sent again.
const ANSWERS_MAX: usize = 1024;

/// How many bulletins wait for this server at most; others are missed, which is noticed.
const BULLETINS_MAX: usize = 256;

/// What a server does of the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Role {
    /// Everything; with a broker it also takes commits of gateways from the queue.
    #[default]
    All,
    /// It lets devices in, answers what is read, and leaves commits to sync services.
    Gateway,
    /// It takes commits from the queue, and lets no device in.
    SyncService,
}

/// The way of a commit into the log.
#[derive(Debug)]
pub enum Commits {
    /// By this server's own writer.
    Here(Committer),
    /// By a sync service.
    Queued(CommitQueue),
}

impl Commits {
    /// Sends a commit, and which live connection may have brought it, on its way, in the order in which they come; `finish` hears the
    /// reply, and must be quick. A sync service does not know the connection, which is sent the entry like everybody then.
    ///
    /// # Errors
    /// [`crate::ServerError::Unavailable`] where the server stops.
    pub async fn submit(
        &self,
        (request, from): (CommitRequest, Option<u64>),
        finish: impl FnOnce(model::wire::Reply) + Send + 'static,
    ) -> Result<()> {
        match self {
            Self::Here(committer) => committer.submit((request, from), finish).await,
            Self::Queued(queue) => queue.submit(request, finish).await,
        }
    }
}

/// How a server stands with its broker.
#[derive(Debug)]
pub struct Standing {
    clock: Arc<dyn Clock>,
    heard: Mutex<Option<Duration>>,
    /// Bulletins that came through, its own, too.
    pub bulletins: Counter,
    /// Signs of life of sync services that came through, its own, too.
    pub signs: Counter,
}

impl Standing {
    fn new(clock: Arc<dyn Clock>) -> Self {
        let (bulletins, signs) = (Counter::default(), Counter::default());
        Self { clock, heard: Mutex::default(), bulletins, signs }
    }

    /// Notes that something came through, and counts it.
    fn hear(&self, kind: &Counter) {
        kind.add(1);
        *self.heard.lock() = Some(self.clock.elapsed());
    }

    /// Says whether the broker has carried anything lately.
    pub fn is_reachable(&self) -> bool {
        self.heard.lock().is_some_and(|heard| self.clock.elapsed() < heard + SILENCE_MAX)
    }
}

/// Where a sync service hears signs of life, its own, too.
struct Ear(Arc<Standing>);

impl Signs for Ear {
    async fn alive(&self, _context: &Context) -> Result<(), Fault> {
        self.0.hear(&self.0.signs);
        Ok(())
    }
}

/// The messenger of this server, once there is one.
type Link = watch::Receiver<Option<Messenger>>;

/// How far a cluster's end is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Runs,
    /// It takes nothing more from the queue.
    Retires,
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
    pub(crate) fn join(
        transport: Arc<dyn Transport>,
        waiting: Waiting,
        role: Role,
        app: &mut App,
    ) -> Self {
        let standing = Arc::new(Standing::new(Arc::clone(&app.clock)));
        app.standing = Some(Arc::clone(&standing));
        let (messengers, link) = watch::channel(None);
        let (phase, phases) = watch::channel(Phase::Runs);
        let committer = app.committer.clone();
        let (mut asked, mut worker) = (None, None);
        if role == Role::Gateway {
            let asked = asked.insert(Arc::<Asked>::default());
            app.commits = Commits::Queued(CommitQueue::start(&committer, &link, asked, &app.clock));
        } else {
            worker = Some(Worker::new(committer, app.readers.clone(), Arc::clone(&app.clock)));
        }
        let member = Member {
            transport,
            clock: Arc::clone(&app.clock),
            random: Arc::clone(&app.random),
            desk: Desk::new(app, Arc::clone(&standing)),
            has_devices: role != Role::SyncService,
            standing: Arc::clone(&standing),
            asked,
            worker,
            messengers,
        };
        let telling = telling::run(waiting, link, Arc::clone(&app.clock), standing);
        Self { phase, running: tokio::spawn(member.run(phases)), telling: tokio::spawn(telling) }
    }

    /// Takes nothing more from the queue; what is under way goes on.
    pub(crate) fn retire(&self) {
        self.phase.send_replace(Phase::Retires);
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
    /// Whether news of others is of use here.
    has_devices: bool,
    standing: Arc<Standing>,
    /// The groups of a gateway.
    asked: Option<Arc<Asked>>,
    /// The work of a sync service.
    worker: Option<Worker>,
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
            let _listening = match self.has_devices {
                true => self.hear_news(&messenger).await,
                false => self.hear_signs(&messenger).await,
            };
            let _answers = match &self.asked {
                Some(asked) => Some(self.hear_answers(&messenger, asked).await),
                None => None,
            };
            self.messengers.send_replace(Some(messenger.clone()));
            let work = async {
                if let Some(worker) = &self.worker {
                    self.work(&messenger, worker, phases.clone()).await;
                }
                // An error says that the server is gone.
                let _ = phases.wait_for(|phase| *phase == Phase::Ends).await;
            };
            tokio::select! {
                () = work => {}
                () = self.give_signs(&messenger), if !self.has_devices => {}
            }
        };
        tokio::select! {
            () = stay => {}
            () = end => {}
            () = self.desk.look() => {}
        }
    }

    async fn hear_news(&self, messenger: &Messenger) -> Serving {
        let handler = Arc::new(ServersDispatcher(self.desk.at(messenger.instance())));
        let trouble = "news of other servers cannot be heard yet";
        self.listen(messenger, &name_of(ServersProxy::NAME), (handler, BULLETINS_MAX), trouble)
            .await
    }

    async fn hear_signs(&self, messenger: &Messenger) -> Serving {
        let handler = Arc::new(SignsDispatcher(Ear(Arc::clone(&self.standing))));
        let trouble = "other sync services cannot be heard yet";
        self.listen(messenger, &name_of(SignsProxy::NAME), (handler, BULLETINS_MAX), trouble).await
    }

    /// Gives signs of life, for ever.
    async fn give_signs(&self, messenger: &Messenger) {
        let calls: Arc<dyn Calls> = Arc::new(messenger.clone());
        let proxy = SignsProxy::new(calls);
        loop {
            if let Err(error) = proxy.alive().await {
                tracing::debug!(%error, "no sign of life was given");
            }
            self.clock.sleep(BEAT).await;
        }
    }

    async fn hear_answers(&self, messenger: &Messenger, asked: &Arc<Asked>) -> Serving {
        let handler = Arc::new(GatewayDispatcher(Answers(Arc::clone(asked))));
        let trouble = "answers of sync services cannot be heard yet";
        self.listen(messenger, &answers_topic(messenger), (handler, ANSWERS_MAX), trouble).await
    }

    /// Listens to a topic, as soon as the broker lets it; so many words of it may wait.
    async fn listen(
        &self,
        messenger: &Messenger,
        topic: &Name,
        (handler, waiting_max): (Arc<dyn Handler>, usize),
        trouble: &str,
    ) -> Serving {
        self.insist(trouble, || messenger.listen(topic, Arc::clone(&handler), waiting_max)).await
    }

    /// Takes groups from the queue until it retires, and none while the database cannot be reached.
    async fn work(
        &self,
        messenger: &Messenger,
        worker: &Worker,
        mut phases: watch::Receiver<Phase>,
    ) {
        // An error says that the server is gone.
        let retires = async move { drop(phases.wait_for(|phase| *phase >= Phase::Retires).await) };
        tokio::pin!(retires);
        loop {
            let serving = self.serve(messenger, worker).await;
            let is_over = tokio::select! {
                () = &mut retires => true,
                () = worker.database_lost() => false,
            };
            serving.stop().await;
            if is_over {
                return;
            }
            tracing::error!("the database is lost; commits are left to others until it answers");
            tokio::select! {
                () = &mut retires => return,
                () = worker.database_found() => {}
            }
            tracing::info!("the database answers again");
        }
    }

    async fn serve(&self, messenger: &Messenger, worker: &Worker) -> Serving {
        let name = name_of(SyncServiceProxy::NAME);
        let handler = Arc::new(SyncServiceDispatcher(worker.of(messenger)));
        // What is done twice is found by its operation, in the database.
        let options = ServeOptions { concurrency: GROUPS_AT_ONCE, ..ServeOptions::default() };
        let trouble = "the queue of commits cannot be served yet";
        self.insist(trouble, || messenger.serve(&name, Arc::clone(&handler) as _, options.clone()))
            .await
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

/// Returns the topic or queue of an interface.
fn name_of(interface: &str) -> Name {
    Name::new(interface).expect("interfaces have valid names")
}
