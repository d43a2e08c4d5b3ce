//! What syncing a folder takes over emulated clouds, with the real engine: one device sends it, another one receives it.
//!
//! Only waiting counts. Virtual time stands still while the engine reads, compresses and writes, which takes it a second
//! or two for the largest folder here.

use std::sync::Arc;
use std::time::Duration;

use commit_log::CommitLog;
use content::Transform;
use model::ids::StoreId;
use model::pool::{PoolConfig, Redundancy, StoreRecord};
use model::{Clock, RelativePath};
use storage::pool::{Pool, PoolOptions};
use storage::{ContentStore, ObjectStore};
use sync::engine::SyncReport;
use sync::scan::Scope;
use sync::state::State;
use sync::workers::Workers;
use sync::{DeltaBudget, Engine, EngineOptions, Environment, SyncError};

use super::agreement::{Group, Party};
use super::requests::Request;
use super::services::Service;
use super::time::in_virtual_time;
use super::workloads::Workload;
use crate::chronicle::Chronicle;
use crate::coverage::Coverage;
use crate::device::open_in_memory;
use crate::file_system::disk::Matter;
use crate::file_system::{SimulatedFileSystem, Surroundings};
use crate::random::{Dice, SeededRandom};
use crate::record::Record;

/// One way of a folder.
#[derive(Debug, Clone)]
pub struct Transfer {
    /// When it began.
    pub began: Duration,
    /// Its time.
    pub took: Duration,
    /// What the engine says of it.
    pub report: SyncReport,
    /// What was asked.
    pub requests: Vec<Request>,
}

/// A device with a folder.
pub struct FolderDevice {
    /// Its ways to the clouds.
    pub party: Party,
    folder: SimulatedFileSystem,
    engine: Engine,
}

impl FolderDevice {
    /// Adds a device with an empty folder, whose packs rest in `store`.
    ///
    /// # Errors
    /// [`SyncError`].
    pub fn new(
        party: Party,
        (log, store): (Arc<dyn CommitLog>, Arc<dyn ObjectStore>),
        clock: Arc<dyn Clock>,
        seed: u64,
    ) -> Result<Self, SyncError> {
        let mut dice = Dice::new(seed);
        let surroundings = Surroundings {
            clock: clock.clone(),
            record: Record::new(false),
            chronicle: Chronicle::default(),
            coverage: Coverage::default(),
        };
        let number = usize::from(party.device.as_bytes()[0]);
        let folder = SimulatedFileSystem::new(number, dice.fork(), surroundings);
        let state = State::from_connection(open_in_memory()?)?;
        let random = SeededRandom::new(dice.fork());
        let engine = open_engine(&party, &folder, (log, store), (clock, random), state)?;
        Ok(Self { party, folder, engine })
    }

    /// Ends the program and starts it again, over another opening of log and store.
    ///
    /// # Errors
    /// [`SyncError`].
    pub fn restart(
        self,
        (log, store): (Arc<dyn CommitLog>, Arc<dyn ObjectStore>),
        clock: Arc<dyn Clock>,
        seed: u64,
    ) -> Result<Self, SyncError> {
        let Self { party, folder, engine } = self;
        let state = engine.into_state();
        let random = SeededRandom::new(Dice::new(seed));
        let engine = open_engine(&party, &folder, (log, store), (clock, random), state)?;
        Ok(Self { party, folder, engine })
    }

    /// Puts files into the folder, as a user does.
    pub fn fill(&self, workload: &Workload) {
        self.folder.with_disk(|disk, now| {
            let directories = workload.directories.iter().map(|path| (path, None));
            let files = workload.files.iter().map(|(path, bytes)| (path, Some(bytes)));
            for (path, bytes) in directories.chain(files) {
                let (directory, name) = disk.place(path).expect("directories come first");
                let (matter, mode) = match bytes {
                    Some(bytes) => (Matter::File(Arc::new(bytes.clone())), 0o644),
                    None => (Matter::Directory(Arc::default()), 0o755),
                };
                let key = disk.add(matter, mode, now, false);
                disk.link(directory, &name, key, now);
            }
        });
    }

    /// Tells whether the folder holds these files and nothing else.
    pub fn holds(&self, workload: &Workload) -> bool {
        let disk = self.folder.disk();
        let is_file = |key| matches!(disk.file(key).matter, Matter::File(_));
        let files = disk.walk().into_iter().filter(|(_, key)| is_file(*key)).count();
        let holds = |(path, bytes): &(RelativePath, Vec<u8>)| {
            let found = disk.resolve(path).ok().flatten();
            found.is_some_and(|key| match &disk.file(key).matter {
                Matter::File(found) => **found == *bytes,
                _ => false,
            })
        };
        files == workload.files.len() && workload.files.iter().all(holds)
    }

    /// Syncs once, and says what it took.
    ///
    /// # Errors
    /// [`SyncError`].
    pub async fn sync(&mut self, clock: &dyn Clock) -> Result<Transfer, SyncError> {
        self.party.requests.take();
        let began = clock.elapsed();
        let report = self.engine.sync(Scope::Everything).await?;
        let took = clock.elapsed() - began;
        Ok(Transfer { began, took, report, requests: self.party.requests.take() })
    }
}

fn open_engine(
    party: &Party,
    folder: &SimulatedFileSystem,
    (log, store): (Arc<dyn CommitLog>, Arc<dyn ObjectStore>),
    (clock, random): (Arc<dyn Clock>, SeededRandom),
    state: State,
) -> Result<Engine, SyncError> {
    let environment = Environment {
        file_system: Arc::new(folder.clone()),
        log,
        store: Arc::new(ContentStore::new(store)),
        clock,
        random: Arc::new(random),
        workers: Workers::inline(),
    };
    let options = EngineOptions {
        device: party.device,
        device_name: format!("device {}", party.device.as_bytes()[0]),
        allow_mass_delete: false,
        transform: Transform::Zstd { level: 1 },
        deltas: DeltaBudget::default(),
        keys: None,
    };
    Engine::open(environment, state, options)
}

/// Sends a folder from one device to another over a pool of services, whose log lies over all of them, and returns both
/// ways. The other device begins when the first one is done, but for copies that it makes in the background.
///
/// # Errors
/// [`SyncError`].
pub fn send_and_receive(
    services: &[Service],
    redundancy: Redundancy,
    workload: &Workload,
    seed: u64,
) -> Result<[Transfer; 2], SyncError> {
    in_virtual_time(async |clock| {
        let mut group = Group::new(clock.clone(), services, seed);
        let mut devices = Vec::new();
        for number in 1..=2 {
            let party = group.party(number);
            let log = Arc::new(party.log().await?);
            let pool = Arc::new(pool(&party, redundancy, clock.clone()));
            let seed = seed ^ u64::from(number);
            devices.push(FolderDevice::new(party, (log, pool), clock.clone(), seed)?);
        }
        devices[0].fill(workload);
        let sent = devices[0].sync(&*clock).await?;
        let received = devices[1].sync(&*clock).await?;
        let problems = &received.report.problems;
        assert!(devices[1].holds(workload), "the other device has the folder: {problems:?}");
        Ok([sent, received])
    })
}

/// Sends a folder as [`send_and_receive`] does, waits until all copies are made, and returns what a clone takes then.
///
/// # Errors
/// [`SyncError`].
pub fn clone_at_rest(
    services: &[Service],
    redundancy: Redundancy,
    workload: &Workload,
    seed: u64,
) -> Result<Transfer, SyncError> {
    in_virtual_time(async |clock| {
        let mut group = Group::new(clock.clone(), services, seed);
        let (one, other) = (group.party(1), group.party(2));
        let log = Arc::new(one.log().await?);
        let store = pool(&one, redundancy, clock.clone());
        let stores = (log.clone() as Arc<dyn CommitLog>, Arc::new(store.clone()) as Arc<_>);
        let mut device = FolderDevice::new(one, stores, clock.clone(), seed)?;
        device.fill(workload);
        device.sync(&*clock).await?;
        let backlog = store.settle().await;
        assert!(backlog.is_empty(), "every store has what it is to have: {backlog:?}");
        log.settle().await;
        let log = Arc::new(other.log().await?);
        let pool = Arc::new(pool(&other, redundancy, clock.clone()));
        let mut device = FolderDevice::new(other, (log, pool), clock.clone(), seed ^ 1)?;
        let received = device.sync(&*clock).await?;
        let problems = &received.report.problems;
        assert!(device.holds(workload), "the other device has the folder: {problems:?}");
        Ok(received)
    })
}

/// Joins the stores of a device in a pool, each with the same share.
pub(super) fn pool(party: &Party, redundancy: Redundancy, clock: Arc<dyn Clock>) -> Pool {
    let numbered = || party.stores.iter().zip(1..);
    let records = numbered().map(|((name, _), number)| {
        let id = StoreId::from_bytes([number; 16]);
        StoreRecord::new(id, name.clone(), format!("emulated:{name}"), 1)
    });
    let config = PoolConfig::new(redundancy, records.collect());
    let stores =
        numbered().map(|((_, store), number)| (StoreId::from_bytes([number; 16]), store.clone()));
    let config = config.expect("there are enough stores for the redundancy");
    Pool::new(&config, stores.collect(), clock, PoolOptions::default())
}
