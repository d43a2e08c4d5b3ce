//! Two sync services that get every group of commits several times, in any order, for one workspace and at the same moment.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use commit_log::envelope;
use futures_util::future::join_all;
use messaging::{Calls, Context, Fault, Messenger, MessengerOptions, Name};
use model::wire::{Reply, ServerFrame};
use model::{Genesis, Head};
use parking_lot::Mutex;
use server::cluster::interface::Blob;
use server::cluster::work::{
    Asker, CommitGroup, GatewayAnswers, GatewayDispatcher, GroupAnswer, ProposedCommit,
    SyncServiceProxy,
};
use server::metadata::conformance::Database;
use server::metadata::postgres::testing::ThrowAway;
use server::{Broker, Caller, Role};
use tokio::time::timeout;

use crate::bad_days::{assert_complete, furnish, request};
use crate::cluster::{Shared, run, until_health};
use crate::place::{PATIENCE, Place};
use crate::support::{SystemClock, SystemRandom, random};

/// How many groups there are, of how many commits each, and how often each is sent.
const GROUPS: u32 = 60;
const GROUP: u32 = 5;
const COPIES: usize = 3;

/// What was answered to each group, each time.
type Answers = Arc<Mutex<BTreeMap<u64, Vec<Vec<Head>>>>>;

/// A gateway that notes what it hears.
struct Notes(Answers);

impl GatewayAnswers for Notes {
    async fn answered(&self, _context: &Context, answer: GroupAnswer) -> Result<(), Fault> {
        let head = |reply: Blob| match envelope::unwrap(&reply.0, 4096).unwrap() {
            ServerFrame::Reply { reply: Reply::Committed(head), .. } => head,
            other => panic!("{other:?}"),
        };
        let heads = answer.replies.into_iter().map(head).collect();
        self.0.lock().entry(answer.number).or_default().push(heads);
        Ok(())
    }
}

fn group(caller: Caller, genesis: &Genesis, number: u32, gateway: &Name) -> CommitGroup {
    let commits = (number * GROUP..(number + 1) * GROUP).map(|n| ProposedCommit {
        asker: Asker::from(&caller),
        workspace: genesis.workspace().to_string(),
        commit: Blob(envelope::wrap(&request(caller, genesis, n).commit)),
    });
    let commits = commits.collect();
    CommitGroup { number: u64::from(number), gateway: gateway.to_string(), commits }
}

/// Sends all groups so many times, shuffled, and waits until each was answered at least twice.
async fn send_in_disorder(broker: &Broker, caller: Caller, genesis: &Genesis) -> Answers {
    let transport = broker.connect(Arc::new(SystemRandom)).await.unwrap();
    let (clock, options) = (SystemClock::start(), MessengerOptions::default());
    let messenger = Messenger::start(transport, clock, Arc::new(SystemRandom), options);
    let messenger = messenger.await.unwrap();
    let answers = Answers::default();
    let topic = Name::new(&format!("gateway.{}", messenger.instance())).unwrap();
    let handler = Arc::new(GatewayDispatcher(Notes(Arc::clone(&answers))));
    let _listening = messenger.listen(&topic, handler, 1024).await.unwrap();
    let calls: Arc<dyn Calls> = Arc::new(messenger);
    let copies = (0..GROUPS).flat_map(|number| [number; COPIES]);
    let mut order: Vec<(u64, u32)> =
        copies.map(|number| (u64::from_le_bytes(random()), number)).collect();
    order.sort_unstable();
    let sent = order.into_iter().map(|(_, number)| {
        let (calls, group) = (Arc::clone(&calls), group(caller, genesis, number, &topic));
        async move { SyncServiceProxy::new(calls).commit(group).await.unwrap() }
    });
    join_all(sent).await;
    let all_answered = async {
        let is_answered = |heard: &Vec<Vec<Head>>| heard.len() >= 2;
        while answers.lock().values().filter(|heard| is_answered(heard)).count() < GROUPS as usize {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, all_answered).await.expect("every group is answered more than once");
    answers
}

#[test]
fn groups_that_come_again_and_in_any_order_to_two_sync_services_are_done_once() {
    let place = Place::take();
    for (name, broker) in place.brokers() {
        let database = ThrowAway::create(&place.config()).unwrap();
        let mut metadata = database.open();
        let (caller, genesis) = furnish(&mut *metadata);
        let shared = Shared::around(Arc::clone(&database));
        run(async {
            let serve = |options: &mut server::ServeOptions| {
                options.broker = Some(broker.clone());
                options.role = Role::SyncService;
            };
            let services = [shared.server(serve).await, shared.server(serve).await];
            for service in &services {
                until_health(service, "ok").await;
            }
            let answers = send_in_disorder(&broker, caller, &genesis).await;
            let answers = std::mem::take(&mut *answers.lock());
            let mut places = BTreeSet::new();
            for (number, heard) in &answers {
                assert!(heard.iter().all(|heads| heads == &heard[0]), "{name}: group {number}");
                places.extend(heard[0].iter().map(|head| head.seq));
            }
            let all: BTreeSet<u64> = (1..=u64::from(GROUPS * GROUP)).collect();
            assert_eq!(places, all, "{name}: each commit has a place of its own");
        });
        assert_complete(&*metadata, caller, &genesis, GROUPS * GROUP);
    }
}
