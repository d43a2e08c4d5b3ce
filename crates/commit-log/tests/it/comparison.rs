//! What one agreement costs, by each protocol, over the same stores.

use std::sync::Arc;
use std::time::Duration;

use commit_log::serverless::candidate::{Candidate, Context};
use commit_log::serverless::disk_paxos::DiskPaxos;
use commit_log::serverless::older::{
    AppendList, NumberedLists, agree_by_disk_paxos, agree_by_ppaxos,
};
use commit_log::serverless::ppaxos::PassivePaxos;
use commit_log::serverless::rounds::{FaultModel, ProposerId, Quorums};
use commit_log::serverless::slot_log::Means;
use futures_util::future::join_all;
use model::testing::{commit, put};
use model::{Entry, EntryHash, WorkspaceId};
use storage::ObjectStore;

use super::stores::{TestRandom, TokioClock, Trouble, Troubled};

const TRIP: Duration = Duration::from_millis(100);

fn stores(name: &str) -> Vec<Arc<dyn ObjectStore>> {
    let open = |number| -> Arc<dyn ObjectStore> {
        let store = storage::open(&format!("memory:{name} {number}")).expect("opens");
        Arc::new(Troubled::new(store, Trouble::Slow(TRIP)))
    };
    (0..3).map(open).collect()
}

fn means() -> Means {
    Means { clock: Arc::new(TokioClock::default()), random: Arc::new(TestRandom::new(5)) }
}

fn candidate(number: u8) -> Candidate {
    let commit = commit(number, vec![put(1, 0, "name")]);
    let entry = Entry { seq: 1, previous: EntryHash::NONE, commit };
    Candidate::new(entry, ProposerId(number.into()), false)
}

fn context() -> Context<'static> {
    let workspace = WorkspaceId::from_bytes([1; 16]);
    Context { workspace, slot: 1, certifier: None, is_single: false }
}

async fn by_ppaxos(stores: &[Arc<dyn ObjectStore>], number: u8, is_leader: bool) -> Candidate {
    let lists: Vec<Arc<dyn AppendList>> = stores
        .iter()
        .map(|store| Arc::new(NumberedLists::new(store.clone())) as Arc<dyn AppendList>)
        .collect();
    let quorums = Quorums::new(3, FaultModel::Crash);
    let id = ProposerId(number.into());
    let machine = PassivePaxos::propose(quorums, id, candidate(number), is_leader);
    agree_by_ppaxos(&lists, context(), machine, &means()).await.expect("agrees")
}

async fn by_disk_paxos(stores: &[Arc<dyn ObjectStore>], number: u8, clients: usize) -> Candidate {
    let quorums = Quorums::new(3, FaultModel::Crash);
    let machine = DiskPaxos::propose(quorums, number.into(), clients, candidate(number));
    let agreed = agree_by_disk_paxos(stores, 1, number.into(), machine, &means()).await;
    agreed.expect("agrees")
}

#[tokio::test(start_paused = true)]
async fn older_protocols_take_more_time_than_the_slot_rounds_and_disk_paxos_more_with_each_client()
{
    let mut times = Vec::new();
    for is_leader in [false, true] {
        let start = tokio::time::Instant::now();
        by_ppaxos(&stores(&format!("ppaxos {is_leader}")), 0, is_leader).await;
        times.push(start.elapsed().as_millis());
    }
    for clients in [1, 2, 5] {
        let start = tokio::time::Instant::now();
        by_disk_paxos(&stores(&format!("disk {clients}")), 0, clients).await;
        times.push(start.elapsed().as_millis());
    }
    // A fetch over numbered objects is a list and the reads. Where the slot rounds take 100 ms for the owner:
    assert_eq!(times, [600, 300, 200, 400, 1000]);
}

#[tokio::test(start_paused = true)]
async fn five_proposers_agree_by_the_older_protocols() {
    let all = stores("five ppaxos");
    let agreed = join_all((0..5).map(|number| by_ppaxos(&all, number, false))).await;
    assert!(agreed.iter().all(|value| *value == agreed[0]), "pPaxos");
    let all = stores("five disk");
    let agreed = join_all((0..5).map(|number| by_disk_paxos(&all, number, 5))).await;
    assert!(agreed.iter().all(|value| *value == agreed[0]), "Disk Paxos");
}
