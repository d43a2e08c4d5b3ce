use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use messaging::{Context, Fault, InProcessTransport, ServeOptions};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::crew::Instance;
use super::*;
use crate::cluster::interface::Blob;
use crate::cluster::work::{
    Asker, CommitGroup, SyncServiceCalls, SyncServiceDispatcher, WorkspaceLine,
};
use crate::testing::{Counter, TokioClock};

/// How long a group takes, and how many are in the hands of an instance at once: a hundred a second.
const SERVICE: Duration = Duration::from_millis(80);
const GROUPS_AT_ONCE: u64 = 8;

/// A sync service that takes its time and does nothing else.
#[derive(Default)]
struct Slow {
    groups: AtomicU64,
}

impl SyncServiceCalls for Slow {
    async fn get_workspaces(
        &self,
        _context: &Context,
        _asker: Asker,
    ) -> Result<Vec<WorkspaceLine>, Fault> {
        Ok(Vec::new())
    }

    async fn get_changes(
        &self,
        _context: &Context,
        _asker: Asker,
        _workspace: String,
        _since: u64,
    ) -> Result<Blob, Fault> {
        Err(Fault::unavailable("it has none"))
    }

    async fn commit(&self, _context: &Context, _group: CommitGroup) -> Result<(), Fault> {
        sleep(SERVICE).await;
        self.groups.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    async fn load(&self, _context: &Context) -> Result<InstanceLoad, Fault> {
        let groups = self.groups.load(Ordering::Relaxed);
        let busy_us = groups * SERVICE.as_micros() as u64;
        Ok(InstanceLoad { groups, busy_us, groups_at_once: GROUPS_AT_ONCE })
    }
}

/// Those that run, by number.
type Running = Arc<Mutex<BTreeMap<usize, Arc<Task>>>>;

struct Task {
    ending: Notify,
    has_ended: AtomicBool,
    handle: Mutex<Option<JoinHandle<()>>>,
}

struct Shop {
    transport: InProcessTransport,
    clock: Arc<dyn Clock>,
    random: Arc<Counter>,
    running: Running,
}

impl Workshop for Shop {
    fn start(&mut self, number: usize) -> io::Result<Box<dyn Instance>> {
        let (ending, has_ended) = (Notify::new(), AtomicBool::new(false));
        let task = Arc::new(Task { ending, has_ended, handle: Mutex::default() });
        self.running.lock().insert(number, Arc::clone(&task));
        let (transport, clock) = (Arc::new(self.transport.clone()), Arc::clone(&self.clock));
        let (random, own) = (Arc::clone(&self.random), Arc::clone(&task));
        let work = async move {
            let options = MessengerOptions::default();
            let messenger = Messenger::start(transport, clock, random, options).await.unwrap();
            let name = Name::new(SyncServiceProxy::NAME).unwrap();
            let options = ServeOptions { concurrency: 8, ..ServeOptions::default() };
            let handler = Arc::new(SyncServiceDispatcher(Slow::default()));
            let serving = messenger.serve(&name, handler, options).await.unwrap();
            own.ending.notified().await;
            serving.stop().await;
            own.has_ended.store(true, Ordering::Release);
        };
        *task.handle.lock() = Some(tokio::spawn(work));
        Ok(Box::new(Process(number, task, Arc::clone(&self.running))))
    }
}

struct Process(usize, Arc<Task>, Running);

impl Instance for Process {
    fn ended(&mut self) -> Option<String> {
        let has_ended = self.1.has_ended.load(Ordering::Acquire);
        has_ended.then(|| {
            self.2.lock().remove(&self.0);
            "it has ended".to_owned()
        })
    }

    fn ask_to_end(&mut self) {
        self.1.ending.notify_one();
    }

    fn kill(&mut self) {
        if let Some(handle) = self.1.handle.lock().take() {
            handle.abort();
        }
        self.1.has_ended.store(true, Ordering::Release);
    }
}

/// Sends groups at a rate for some seconds.
async fn send(proxy: &SyncServiceProxy, rate: u64, seconds: u64) {
    for number in 0..rate * seconds {
        let group = CommitGroup { number, gateway: "nobody".to_owned(), commits: Vec::new() };
        proxy.commit(group).await.unwrap();
        sleep(Duration::from_secs(1) / rate as u32).await;
    }
}

#[tokio::test(start_paused = true)]
async fn instances_follow_the_load_are_started_again_and_end_with_the_supervisor() {
    let transport = InProcessTransport::default();
    let clock: Arc<dyn Clock> = Arc::new(TokioClock(Instant::now()));
    let (random, running) = (Arc::<Counter>::default(), Running::default());
    let shop = Shop {
        transport: transport.clone(),
        clock: Arc::clone(&clock),
        random: Arc::clone(&random),
        running: Arc::clone(&running),
    };
    let (response, calm) = (Duration::from_millis(400), Duration::from_secs(20));
    let options = SupervisorOptions {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        metrics_listen: None,
        broker: Broker::Memory(transport.clone()),
        aim: Aim { instances: 1..=4, response, calm },
        workshop: Box::new(shop),
        clock: Arc::clone(&clock),
        random: Arc::clone(&random) as _,
    };
    let (stop, stopped) = oneshot::channel::<()>();
    let (ready, is_ready) = oneshot::channel();
    let shutdown = async move { drop(stopped.await) };
    let supervising = tokio::spawn(supervise(options, |_| ready.send(()).unwrap(), shutdown));
    is_ready.await.unwrap();
    let client = Arc::new(transport);
    let messenger =
        Messenger::start(client, clock, random, MessengerOptions::default()).await.unwrap();
    let proxy = SyncServiceProxy::new(Arc::new(messenger));
    let count = || running.lock().len();
    send(&proxy, 10, 20).await;
    assert_eq!(count(), 1, "one is enough");
    send(&proxy, 250, 30).await;
    assert_eq!(count(), 4, "three would be busy all the time");
    // One dies, and comes back.
    let first = running.lock().values().next().cloned().unwrap();
    first.handle.lock().take().unwrap().abort();
    first.has_ended.store(true, Ordering::Release);
    send(&proxy, 250, 10).await;
    assert_eq!(count(), 4);
    send(&proxy, 10, 120).await;
    assert_eq!(count(), 1, "one is enough again");
    stop.send(()).unwrap();
    supervising.await.unwrap().unwrap();
    assert_eq!(count(), 0, "nobody is left behind");
}
