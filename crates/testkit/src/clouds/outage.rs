//! What it costs that services stop answering while a device syncs, and what the next command pays for it.

use std::sync::Arc;
use std::time::Duration;

use commit_log::{CommitLog, SlotCommitLog};
use model::Clock;
use model::pool::Redundancy;
use storage::ObjectStore;
use storage::pool::{Pool, PoolMemory};
use sync::SyncError;

use super::agreement::{Group, Party};
use super::folders::{FolderDevice, pool};
use super::hanging::Switch;
use super::services::Service;
use super::time::in_virtual_time;
use super::workloads::Workload;

/// How long a program that ends lets the log's slower stores hear of the newest changes, as `syncline` does.
const LOG_SETTLING_MAX: Duration = Duration::from_secs(2);

/// What the runs of a program took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outage {
    /// A sync of a folder.
    pub sync: Duration,
    /// The next run, which syncs a small change.
    pub next: Duration,
    /// How many objects were left with fewer pieces than wanted after the first run, as the program knew.
    pub owed: usize,
    /// How many after the stores were back and the program had run once more.
    pub owed_at_last: usize,
}

/// What a program leaves behind for its next run.
type Memory = (Vec<String>, PoolMemory);

/// Opens the log and the pool of a device anew, as a program does that starts.
async fn open(
    party: &Party,
    redundancy: Redundancy,
    clock: &Arc<dyn Clock>,
    memory: &Memory,
) -> Result<(Arc<SlotCommitLog>, Pool), SyncError> {
    let log = Arc::new(party.log().await?);
    let pool = pool(party, redundancy, clock.clone());
    log.recall_silent_stores(memory.0.iter().map(String::as_str));
    pool.recall(&memory.1);
    Ok((log, pool))
}

fn memory((log, pool): &(Arc<SlotCommitLog>, Pool)) -> Memory {
    (log.silent_stores(), pool.memory())
}

/// Syncs and settles, and says what both took.
async fn run(
    device: &mut FolderDevice,
    (log, pool): &(Arc<SlotCommitLog>, Pool),
    clock: &dyn Clock,
) -> Result<Duration, SyncError> {
    let began = clock.elapsed();
    device.sync(clock).await?;
    tokio::select! {
        () = log.settle() => {}
        () = clock.sleep(LOG_SETTLING_MAX) => {}
    }
    pool.settle().await;
    Ok(clock.elapsed() - began)
}

/// Syncs a folder over services of which those in `hanging` stop answering after `after`, if ever; then a small change by a
/// program that was started anew; then lets them answer again.
///
/// # Errors
/// [`SyncError`].
pub fn outage(
    services: &[Service],
    redundancy: Redundancy,
    (hanging, after): (&[&str], Option<Duration>),
    [workload, change]: [&Workload; 2],
    seed: u64,
) -> Result<Outage, SyncError> {
    in_virtual_time(async |clock| {
        let mut group = Group::new(clock.clone(), services, seed);
        let mut party = group.party(1);
        let switch = Switch::default();
        for (name, store) in &mut party.stores {
            if hanging.contains(&name.as_str()) {
                *store = switch.control(store.clone());
            }
        }
        let stores = open(&party, redundancy, &clock, &Memory::default()).await?;
        let shared = |(log, pool): &(Arc<SlotCommitLog>, Pool)| {
            (log.clone() as Arc<dyn CommitLog>, Arc::new(pool.clone()) as Arc<dyn ObjectStore>)
        };
        let mut device = FolderDevice::new(party, shared(&stores), clock.clone(), seed)?;
        device.fill(workload);
        if let Some(after) = after {
            let (later, switch) = (clock.sleep(after), switch.clone());
            tokio::spawn(async move {
                later.await;
                switch.set(true);
            });
        }
        let sync = run(&mut device, &stores, &*clock).await?;
        let owed = stores.1.memory().owed.len();
        device.fill(change);
        let stores = open(&device.party, redundancy, &clock, &memory(&stores)).await?;
        let mut device = device.restart(shared(&stores), clock.clone(), seed ^ 1)?;
        let next = run(&mut device, &stores, &*clock).await?;
        switch.set(false);
        let stores = open(&device.party, redundancy, &clock, &memory(&stores)).await?;
        let mut device = device.restart(shared(&stores), clock.clone(), seed ^ 2)?;
        run(&mut device, &stores, &*clock).await?;
        let owed_at_last = stores.1.memory().owed.len();
        Ok(Outage { sync, next, owed, owed_at_last })
    })
}
