//! Stores that answer one call at a time, as those behind one connection do, shared by the log and by somebody else.

use std::sync::Arc;
use std::time::Duration;

use commit_log::serverless::group::{ConstantMembership, Group};
use commit_log::serverless::slot_log::Means;
use commit_log::{CommitLog, SlotCommitLog};
use storage::layers::{Answer, Gate, Operation};
use storage::{ObjectKey, ObjectStore, Result};
use tokio::sync::Semaphore;

use super::slot_log::genesis;
use super::stores::{TestRandom, TokioClock, numbered};

/// A store with one connection, over which each call takes a while.
#[derive(Debug)]
struct OneConnection {
    store: Arc<dyn ObjectStore>,
    connection: Semaphore,
    takes: Duration,
}

impl Gate for OneConnection {
    fn store(&self) -> &dyn ObjectStore {
        &*self.store
    }

    async fn pass<A: Send>(&self, _: Operation, _: usize, answer: impl Answer<A>) -> Result<A> {
        let _connection = self.connection.acquire().await.expect("it is never closed");
        tokio::time::sleep(self.takes).await;
        answer.await
    }
}

/// The log asks all three stores for its head and is content with two answers; the call to the third has the connection by
/// then. Who wants something else of that store gets it, because the call goes on beside.
#[tokio::test(start_paused = true)]
async fn call_that_the_log_no_longer_waits_for_gives_its_connection_back() {
    let stores: Vec<Arc<OneConnection>> = [1, 1, 1000]
        .into_iter()
        .enumerate()
        .map(|(number, milliseconds)| {
            let store = storage::open(&format!("memory:one connection {number}")).expect("opens");
            let takes = Duration::from_millis(milliseconds);
            Arc::new(OneConnection { store, connection: Semaphore::new(1), takes })
        })
        .collect();
    let ways = stores.iter().map(|store| store.clone() as Arc<dyn ObjectStore>);
    let group = Group::new(numbered(ways));
    let means =
        Means { clock: Arc::new(TokioClock::default()), random: Arc::new(TestRandom::new(1)) };
    let membership = Arc::new(ConstantMembership::new(group));
    let log = SlotCommitLog::create_over(membership, means, genesis()).await.expect("opens");
    log.settle().await;
    log.head().await.expect("two stores answer");
    let key = ObjectKey::new("elsewhere").expect("a key");
    let wanted = tokio::time::timeout(Duration::from_secs(20), stores[2].get(&key));
    assert!(wanted.await.is_err(), "the call still has the connection, and nobody drives it");
    let wanted = tokio::time::timeout(Duration::from_secs(20), stores[2].get(&key));
    assert_eq!(log.beside(wanted).await.expect("it answers").expect("it is there"), None);
}
