use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use commit_log::conformance::{Fixture, cases};
use commit_log::{CommitLog, SlotCommitLog};
use model::testing::put;
use model::{Clock, Commit, DeviceId, Genesis, Head, Mode, OpId, Timestamp};
use storage::ObjectStore;

/// Sleeping yields and nothing else: the cases wait for others, never for time.
#[derive(Debug)]
struct NoTime;

impl Clock for NoTime {
    fn now(&self) -> Timestamp {
        Timestamp::default()
    }

    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }

    fn sleep(&self, _: Duration) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(tokio::task::yield_now())
    }
}

/// The workspace of all tests here.
pub(crate) fn genesis() -> Genesis {
    Genesis {
        name: "Notes".to_owned(),
        mode: Mode::Plain,
        created: Timestamp::default(),
        content_key: [1; 32],
    }
}

/// The commit `op` of a device, which makes a node of its own.
pub(crate) fn commit(device: u8, op: u8, seen: Head) -> Commit {
    Commit {
        op_id: OpId::from_bytes([op; 16]),
        device: DeviceId::from_bytes([device; 16]),
        seen,
        ..model::testing::commit(op, vec![put(op + 1, 0, &format!("name {op}"))])
    }
}

#[derive(Debug)]
struct OneStore(Arc<dyn ObjectStore>);

#[async_trait]
impl Fixture for OneStore {
    async fn open(&self, _: u8) -> Arc<dyn CommitLog> {
        let log = SlotCommitLog::create(self.0.clone(), Arc::new(NoTime), genesis()).await;
        Arc::new(log.expect("the log opens"))
    }

    fn device(&self, number: u8) -> DeviceId {
        DeviceId::from_bytes([number; 16])
    }
}

#[tokio::test]
async fn slot_log_over_memory_conforms() {
    for (name, case) in cases() {
        println!("slot log over memory: {name}");
        let store = storage::open(&format!("memory:{name}")).expect("opens");
        case(&OneStore(store)).await;
    }
}

#[tokio::test]
async fn slot_log_over_files_conforms() {
    for (name, case) in cases() {
        println!("slot log over files: {name}");
        let folder = tempfile::tempdir().expect("a folder");
        let store = storage::open(&format!("file:{}", folder.path().display())).expect("opens");
        case(&OneStore(store)).await;
    }
}
