use std::sync::LazyLock;

use messaging::{InProcessTransport, MessengerOptions, ServeOptions, Serving};
use model::testing::{commit as commit_with, put};
use model::wire::RefusalKind;
use model::{Genesis, Mode, OpId, Timestamp};
use tokio::sync::watch;
use tokio::time::Instant;

use super::*;
use crate::auth::{Caller, NO_PASSWORD};
use crate::cluster::work::{
    Asker, GatewayDispatcher, InstanceLoad, SyncServiceCalls, SyncServiceDispatcher, WorkspaceLine,
};
use crate::cluster::worker::{Bench, Worker};
use crate::data_folder::DataFolder;
use crate::metadata::sqlite::Sqlite;
use crate::services::events::Hub;
use crate::services::news::News;
use crate::services::readers::Readers;
use crate::services::writer::Writer;
use crate::services::{accounts, workspaces};
use crate::testing::{Counter, TokioClock};

/// A gateway and whatever serves it, over one database.
struct World {
    queue: CommitQueue,
    worker: Worker,
    callers: [Caller; 2],
    genesis: Genesis,
    transport: InProcessTransport,
    clock: Arc<dyn Clock>,
    _links: (watch::Sender<Option<Messenger>>, Serving, tempfile::TempDir),
}

async fn messenger(transport: &InProcessTransport, clock: &Arc<dyn Clock>) -> Messenger {
    // No two messengers are the same instance.
    static RANDOM: LazyLock<Arc<Counter>> = LazyLock::new(Arc::default);
    let (transport, clock) = (Arc::new(transport.clone()), Arc::clone(clock));
    let options = MessengerOptions::default();
    Messenger::start(transport, clock, Arc::clone(&RANDOM) as _, options).await.unwrap()
}

async fn world() -> World {
    let clock: Arc<dyn Clock> = Arc::new(TokioClock(Instant::now()));
    let place = tempfile::tempdir().unwrap();
    let folder = DataFolder::open(place.path()).unwrap();
    let mut database = folder.open_database().unwrap();
    let random = Counter::default();
    let callers = ["ada", "bob"].map(|name| {
        let account = accounts::create_account(&mut database, name, NO_PASSWORD, 0).unwrap();
        accounts::enrol_device(&mut database, &random, account, "d", 0).unwrap().0
    });
    let genesis = Genesis {
        name: "home".to_owned(),
        mode: Mode::Plain,
        created: Timestamp::default(),
        content_key: [7; 32],
    };
    workspaces::create(&mut database, &callers[0], &genesis).unwrap();
    let path = folder.database_path();
    let readers = Readers::open(|| Ok(Box::new(Sqlite::open_reader(&path)?))).unwrap();
    let (writer, _thread) = Writer::start(Box::new(database)).unwrap();
    let (hub, sending) = Hub::new(News::default());
    tokio::spawn(sending);
    let counts = (clock.clone(), Arc::default());
    let committer = Committer::new(writer, hub, News::default(), counts);
    let transport = InProcessTransport::default();
    let gateway = messenger(&transport, &clock).await;
    let asked = Arc::<Asked>::default();
    let answers = Arc::new(GatewayDispatcher(Answers(Arc::clone(&asked))));
    let listening = gateway.listen(&answers_topic(&gateway), answers, 64).await.unwrap();
    let (sender, link) = watch::channel(Some(gateway));
    let queue = CommitQueue::start(&committer, &link, &asked, &clock);
    let worker = Worker::new(committer, readers, Arc::clone(&clock));
    World { queue, worker, callers, genesis, transport, clock, _links: (sender, listening, place) }
}

impl World {
    async fn serve<T: SyncServiceCalls>(&self, work: impl FnOnce(Bench) -> T) -> Serving {
        let messenger = messenger(&self.transport, &self.clock).await;
        let handler = Arc::new(SyncServiceDispatcher(work(self.worker.of(&messenger))));
        let name = Name::new(SyncServiceProxy::NAME).unwrap();
        messenger.serve(&name, handler, ServeOptions::default()).await.unwrap()
    }

    fn request(&self, caller: usize, op: u32, base: u64, payload: &str) -> CommitRequest {
        let caller = self.callers[caller];
        let mut commit = commit_with(1, vec![put(1, base, payload)]);
        let mut op_id = [9; 16];
        op_id[..4].copy_from_slice(&op.to_le_bytes());
        (commit.op_id, commit.device) = (OpId::from_bytes(op_id), caller.device);
        CommitRequest { caller, workspace: self.genesis.workspace(), commit }
    }

    async fn commit(&self, request: CommitRequest) -> oneshot::Receiver<Reply> {
        let (sender, receiver) = oneshot::channel();
        self.queue.submit(request, move |reply| drop(sender.send(reply))).await.unwrap();
        receiver
    }
}

fn seq(reply: &Reply) -> u64 {
    match reply {
        Reply::Committed(head) => head.seq,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn commits_go_in_groups_in_their_order_and_each_hears_its_own_reply() {
    let world = world().await;
    let _serving = world.serve(|bench| bench).await;
    let mut replies = Vec::new();
    for op in 0..300 {
        // Each rests on the one before, so that another order would show.
        replies.push(world.commit(world.request(0, op, u64::from(op), "text")).await);
    }
    let stranger = world.commit(world.request(1, 300, 0, "text")).await;
    for (place, reply) in (1..).zip(replies) {
        assert_eq!(seq(&reply.await.unwrap()), place);
    }
    let Reply::Refused(refusal) = stranger.await.unwrap() else { panic!("it was let in") };
    assert_eq!(refusal.kind, RefusalKind::NotFound);
    let again = world.commit(world.request(0, 7, 7, "text")).await;
    assert_eq!(seq(&again.await.unwrap()), 8, "what was done is found");
}

#[tokio::test(start_paused = true)]
async fn without_a_sync_service_everybody_hears_so_in_bounded_time() {
    let world = world().await;
    let start = world.clock.elapsed();
    let first = world.commit(world.request(0, 1, 0, "text")).await;
    tokio::task::yield_now().await;
    let second = world.commit(world.request(0, 2, 0, "text")).await;
    for reply in [first, second] {
        let Reply::Refused(refusal) = reply.await.unwrap() else { panic!("who did it?") };
        assert_eq!(refusal.kind, RefusalKind::Unavailable);
    }
    let waited = world.clock.elapsed() - start;
    assert!(waited >= PATIENCE && waited < PATIENCE + RESEND_AFTER, "{waited:?}");
}

/// Does the work, and tells nobody the first time.
struct Forgetful(Bench, AtomicU64);

impl SyncServiceCalls for Forgetful {
    async fn get_workspaces(
        &self,
        context: &Context,
        asker: Asker,
    ) -> Result<Vec<WorkspaceLine>, Fault> {
        self.0.get_workspaces(context, asker).await
    }

    async fn get_changes(
        &self,
        context: &Context,
        asker: Asker,
        workspace: String,
        since: u64,
    ) -> Result<Blob, Fault> {
        self.0.get_changes(context, asker, workspace, since).await
    }

    async fn load(&self, context: &Context) -> Result<InstanceLoad, Fault> {
        self.0.load(context).await
    }

    async fn commit(&self, context: &Context, mut group: CommitGroup) -> Result<(), Fault> {
        if self.1.fetch_add(1, Ordering::Relaxed) == 0 {
            group.gateway = "gateway.nobody".to_owned();
        }
        self.0.commit(context, group).await
    }
}

#[tokio::test]
async fn a_group_whose_answer_is_lost_is_sent_again_and_done_once() {
    let world = world().await;
    let _serving = world.serve(|bench| Forgetful(bench, AtomicU64::new(0))).await;
    let reply = world.commit(world.request(0, 1, 0, "text")).await;
    assert_eq!(seq(&reply.await.unwrap()), 1);
    let next = world.commit(world.request(0, 2, 1, "text")).await;
    assert_eq!(seq(&next.await.unwrap()), 2, "nothing stands twice");
}

#[tokio::test]
async fn a_commit_that_fits_into_no_message_is_decided_by_the_gateway() {
    let world = world().await;
    let mut payload = vec![0; MESSAGE_LENGTH_MAX + 1];
    model::Random::fill(&Counter::default(), &mut payload);
    let mut request = world.request(0, 1, 0, "text");
    request.commit.changes[0].action = model::Action::Put(payload);
    // Nobody serves the queue.
    let reply = world.commit(request).await;
    assert_eq!(seq(&reply.await.unwrap()), 1);
}

#[tokio::test]
async fn workspaces_and_pages_of_changes_are_called_for_and_refusals_have_a_code() {
    let world = world().await;
    let _serving = world.serve(|bench| bench).await;
    for op in 0..3 {
        let reply = world.commit(world.request(0, op, u64::from(op), "text")).await;
        reply.await.unwrap();
    }
    let calls = Arc::new(messenger(&world.transport, &world.clock).await);
    let proxy = SyncServiceProxy::new(calls);
    let [ada, bob] = [0, 1].map(|caller| Asker::from(&world.callers[caller]));
    let found = proxy.get_workspaces(ada.clone()).await.unwrap();
    assert_eq!((&*found[0].name, found[0].head_seq), ("home", 3));
    assert_eq!(proxy.get_workspaces(bob.clone()).await.unwrap(), []);
    let workspace = world.genesis.workspace().to_string();
    let page = proxy.get_changes(ada, workspace.clone(), 1).await.unwrap();
    let frame: ServerFrame = envelope::unwrap(&page.0, 1 << 20).unwrap();
    let ServerFrame::Reply { reply: Reply::Entries(entries), .. } = frame else { panic!() };
    assert_eq!(entries.iter().map(|entry| entry.seq).collect::<Vec<_>>(), [2, 3]);
    let refused = proxy.get_changes(bob, workspace, 0).await.unwrap_err();
    let messaging::MessagingError::Fault(fault) = refused else { panic!("{refused}") };
    assert_eq!(fault.code, "not_found");
}
