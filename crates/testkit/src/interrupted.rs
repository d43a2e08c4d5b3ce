//! A device that dies after each single request of what it does, over several stores, and what others find then.
//!
//! *Participants*: two devices with folders, three stores whose requests take time, and a [`Fate`] that ends one process of the
//! first device at a request. *Goals*: every prefix of the requests of a commit or a cleanup, each once with the answer to its last
//! request and once without. *Invariants*: what is checked after every death, when the same device has gone on from its disk, and
//! the other one has synced: both folders are what the user made of them, every version is in the history once, no object
//! is lost, a repair leaves nothing to be repaired, and with any one store gone a new device reads everything.
//!
//! A process dies with all that it had under way: a request that has not taken effect by then never does. Late requests
//! are tried in the worlds ([`crate::several`]). Time is that of a runtime, as in [`crate::clouds`], since the background work of
//! a pool must go on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use commit_log::SlotCommitLog;
use commit_log::serverless::slot_log::Means;
use content::Transform;
use model::ids::StoreId;
use model::pool::{PoolConfig, Redundancy, StoreRecord};
use model::{Clock, DeviceId, Genesis, Mode, Timestamp, VersionPolicy};
use storage::{ContentStore, ObjectStore};
use sync::engine::{CleanupOptions, SyncReport};
use sync::scan::Scope;
use sync::state::State;
use sync::workers::Workers;
use sync::{DeltaBudget, Engine, EngineOptions, Environment, SyncError};

use crate::chronicle::Chronicle;
use crate::clouds::requests::Requests;
use crate::clouds::services::{Direction, Service};
use crate::clouds::time::in_virtual_time;
use crate::clouds::{Cloud, CloudStore, Jitter};
use crate::coverage::Coverage;
use crate::device::open_in_memory;
use crate::file_system::{SimulatedFileSystem, Surroundings};
use crate::random::{Dice, SeededRandom};
use crate::record::Record;
use crate::several::{self, Opened};
use crate::store::{MemoryStore, StoreDefect};

mod checks;
mod fate;
mod user;

pub use fate::Cut;
use fate::{Fate, Mortal};
pub use user::Files;

/// By how much latencies vary, as a part of them: requests side by side overtake each other.
const DEVIATION: f64 = 0.3;

/// How much time passes between what people do.
const PAUSE: Duration = Duration::from_secs(60);

/// How many checkpoints are published before a deed that has to do with them.
const CHECKPOINTS: u64 = 3;

/// How many stores there are.
pub const STORES: u8 = 3;

/// What is interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    /// A sync that sends changes of every kind.
    Commit,
    /// The same, and another device cleans up before the first one goes on.
    OvertakenCommit,
    /// A cleanup that drops versions, removes packs and writes others anew.
    CleanUp,
    /// A cleanup that removes the pages of old checkpoints, too.
    CleanUpPages,
    /// A checkpoint is published, and another device cleans up before the first one goes on.
    Publish,
}

/// A deed, and where it is done.
#[derive(Debug, Clone, Copy)]
pub struct Scene {
    /// What is interrupted.
    pub deed: Deed,
    /// How much is kept of everything.
    pub redundancy: Redundancy,
    /// What latencies and names come from.
    pub seed: u64,
    /// What is wrong with the stores on purpose, to see that it is found.
    pub defect: Option<StoreDefect>,
}

/// What became of a deed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    /// How many requests the deed has made.
    pub requests: u64,
    /// Whether the process was ended before it came to its end.
    pub was_cut: bool,
    /// Every node but settings, by its name, with the number of its versions and whether it is there.
    pub history: Vec<(String, u64, bool)>,
    /// How many pieces the stores lacked of what the log needed when the process ended.
    pub lacking: usize,
    /// How many of them a repair had to write in the end: whoever reads an object mends it in passing.
    pub mended: usize,
}

/// The stores, and what all devices share.
struct Place {
    scene: Scene,
    clock: Arc<dyn Clock>,
    clouds: Vec<Cloud>,
    config: PoolConfig,
    genesis: Genesis,
    dice: Dice,
}

/// A device: its folder, and what it remembers. Its processes come and go.
struct Machine {
    number: u8,
    folder: SimulatedFileSystem,
    state: Option<State>,
}

/// Does the deed of a scene, ends it at a cut if there is one, and lets both devices go on.
///
/// # Errors
/// A text that says what must not be.
pub fn interrupted(scene: Scene, cut: Option<Cut>) -> Result<Ending, String> {
    in_virtual_time(async |clock| {
        let mut place = Place::new(scene, clock);
        let (mut one, mut other) = (place.machine(1), place.machine(2));
        let files = prepare(&mut place, &mut one, &mut other).await?;
        let fate = Fate::new(cut);
        let done = match scene.deed {
            Deed::Commit | Deed::OvertakenCommit => place.process(&mut one, &fate, sync).await,
            Deed::CleanUp | Deed::CleanUpPages => place.process(&mut one, &fate, clean_up).await,
            Deed::Publish => place.process(&mut one, &fate, publish).await,
        };
        let was_cut = match done {
            Ok(done) => done.is_none(),
            Err(error) => return Err(format!("the deed fails: {error}")),
        };
        place.clock.sleep(PAUSE).await;
        let lacking = checks::lacking(&mut place).await?;
        go_on(&mut place, &mut one, &mut other, &files).await?;
        let history = checks::history(&mut place).await?;
        let mended = checks::stores(&mut place, &other).await?;
        checks::survivors(&mut place, &files).await?;
        Ok(Ending { requests: fate.requests(), was_cut, history, lacking, mended })
    })
}

/// Makes the workspace and its history until the deed. Returns what the folders are to hold.
async fn prepare(
    place: &mut Place,
    one: &mut Machine,
    other: &mut Machine,
) -> Result<Files, String> {
    let mut files = Files::first();
    files.put_into(&one.folder);
    place.live(one, sync).await?;
    place.live(other, sync).await?;
    place.clock.sleep(PAUSE).await;
    files.change();
    files.put_into(&one.folder);
    let has_checkpoints = matches!(place.scene.deed, Deed::CleanUpPages | Deed::Publish);
    for number in 0..if has_checkpoints { CHECKPOINTS } else { 0 } {
        place.live(one, sync).await?;
        place.live(one, publish).await?;
        files.edit(number);
        files.put_into(&one.folder);
    }
    if has_checkpoints || place.scene.deed == Deed::CleanUp {
        place.live(one, sync).await?;
        place.live(other, sync).await?;
        place.clock.sleep(PAUSE).await;
    }
    Ok(files)
}

/// The same device goes on, and so does the other one; then nobody has anything to do.
async fn go_on(
    place: &mut Place,
    one: &mut Machine,
    other: &mut Machine,
    files: &Files,
) -> Result<(), String> {
    if matches!(place.scene.deed, Deed::OvertakenCommit | Deed::Publish) {
        place.live(other, clean_up).await?;
    }
    place.live(one, sync).await?;
    place.live(other, sync).await?;
    if place.scene.deed != Deed::Commit {
        place.live(other, clean_up).await?;
        checks::nothing_left_over(place, other)?;
        checks::pages(place).await?;
    }
    for machine in [one, other] {
        let report = place.live(machine, sync).await?;
        let number = machine.number;
        if report.sent + report.received > 0 || !report.problems.is_empty() {
            return Err(format!("device {number} has not come to rest: {report:?}"));
        }
        files.compare(&machine.folder).map_err(|text| format!("device {number}: {text}"))?;
    }
    Ok(())
}

async fn sync(engine: &mut Engine) -> Result<SyncReport, SyncError> {
    engine.sync(Scope::Everything).await
}

async fn clean_up(engine: &mut Engine) -> Result<SyncReport, SyncError> {
    let policy = Some(VersionPolicy { rungs: Vec::new(), deleted_s: 0 });
    let options = CleanupOptions { policy, is_clock_trusted: true, ..CleanupOptions::default() };
    engine.cleanup(&options).await.map(|_| SyncReport::default())
}

async fn publish(engine: &mut Engine) -> Result<SyncReport, SyncError> {
    engine.publish_checkpoint_now().await.map(|()| SyncReport::default())
}

impl Place {
    fn new(scene: Scene, clock: Arc<dyn Clock>) -> Self {
        // One is far away, and gets the last copy when the commit has long been sent.
        let ways = [("store 1", 40, 5e6), ("store 2", 60, 5e6), ("store 3", 90, 4e5)];
        let services = ways.into_iter().map(|(name, latency, rate)| {
            let direction = Direction::steady(Duration::from_millis(latency), rate);
            Service { name, up: direction, down: direction, connections: 8 }
        });
        let record = |number: u8| {
            let id = StoreId::from_bytes([number; 16]);
            StoreRecord::new(id, format!("store {number}"), format!("memory:{number}"), 100)
        };
        let records = (1..=STORES).map(record).collect();
        let config = PoolConfig::new(scene.redundancy, records).expect("these make a pool");
        let genesis = Genesis {
            name: "interrupted".to_owned(),
            mode: Mode::Plain,
            created: Timestamp::default(),
            content_key: [7; 32],
        };
        let objects = || MemoryStore::new(scene.defect);
        let clouds = services.map(|service| Cloud { service, objects: objects() }).collect();
        Self { scene, clock, clouds, config, genesis, dice: Dice::new(scene.seed) }
    }

    fn machine(&mut self, number: u8) -> Machine {
        let surroundings = Surroundings {
            clock: self.clock.clone(),
            record: Record::new(false),
            chronicle: Chronicle::default(),
            coverage: Coverage::default(),
        };
        let folder = SimulatedFileSystem::new(usize::from(number), self.dice.fork(), surroundings);
        Machine { number, folder, state: None }
    }

    /// Opens log and pool, as a new process that suffers a fate.
    async fn open(&mut self, fate: &Fate, gone: Option<usize>) -> Result<Opened, SyncError> {
        let mut stores: Vec<Arc<dyn ObjectStore>> = Vec::new();
        for (number, cloud) in self.clouds.iter().enumerate() {
            let is_gone = gone == Some(number);
            let mortal = Mortal::new(cloud.objects.clone(), fate.clone(), is_gone);
            let jitter = Jitter::new(self.dice.fork(), DEVIATION);
            let (clock, requests) = (self.clock.clone(), Requests::default());
            let way = CloudStore::new(Arc::new(mortal), cloud.service, clock, requests, jitter);
            stores.push(Arc::new(way));
        }
        let membership = several::membership(&self.config, &stores);
        let random = Arc::new(SeededRandom::new(self.dice.fork()));
        let means = Means { clock: self.clock.clone(), random };
        let is_new = self.clouds.iter().all(|cloud| cloud.objects.snapshot().is_empty());
        let log = match is_new {
            true => SlotCommitLog::create_over(membership, means, self.genesis.clone()).await?,
            false => SlotCommitLog::over(membership, means, self.genesis.clone()),
        };
        let pool = several::pool(&self.config, stores, self.clock.clone());
        Ok(Opened { log: Arc::new(log), pool })
    }

    fn engine(&mut self, machine: &mut Machine, opened: &Opened) -> Result<Engine, SyncError> {
        let state = match machine.state.take() {
            Some(state) => state,
            None => State::from_connection(open_in_memory()?)?,
        };
        let environment = Environment {
            file_system: Arc::new(machine.folder.clone()),
            log: opened.log.clone(),
            store: Arc::new(ContentStore::new(Arc::new(opened.pool.clone()))),
            clock: self.clock.clone(),
            random: Arc::new(SeededRandom::new(self.dice.fork())),
            workers: Workers::inline(),
        };
        let options = EngineOptions {
            device: DeviceId::from_bytes([machine.number; 16]),
            device_name: format!("device {}", machine.number),
            allow_mass_delete: true,
            transform: Transform::Zstd { level: 1 },
            deltas: DeltaBudget::default(),
            keys: None,
        };
        Engine::open(environment, state, options)
    }

    /// Runs a process as the program does. Returns nothing where its fate has ended it; then its disk is as it was at that moment.
    async fn process<T>(
        &mut self,
        machine: &mut Machine,
        fate: &Fate,
        work: impl AsyncFnOnce(&mut Engine) -> Result<T, SyncError>,
    ) -> Result<Option<T>, SyncError> {
        self.process_without(machine, (fate, None), work).await
    }

    /// Does the same while one store is gone.
    async fn process_without<T>(
        &mut self,
        machine: &mut Machine,
        (fate, gone): (&Fate, Option<usize>),
        work: impl AsyncFnOnce(&mut Engine) -> Result<T, SyncError>,
    ) -> Result<Option<T>, SyncError> {
        let opened = self.open(fate, gone).await?;
        let mut engine = self.engine(machine, &opened)?;
        let ended = tokio::select! {
            biased;
            () = fate.over() => None,
            done = opened.run(work(&mut engine), &*self.clock) => Some(done),
        };
        machine.state = Some(undo_what_is_open(engine.into_state())?);
        ended.transpose()
    }

    /// Runs a process to its end.
    async fn live<T>(
        &mut self,
        machine: &mut Machine,
        work: impl AsyncFnOnce(&mut Engine) -> Result<T, SyncError>,
    ) -> Result<T, String> {
        match self.process(machine, &Fate::new(None), work).await {
            Ok(Some(done)) => Ok(done),
            Ok(None) => Err("a process has ended that should not".to_owned()),
            Err(error) => Err(format!("device {} fails: {error}", machine.number)),
        }
    }

    /// Returns the keys of what each store holds.
    fn keys(&self) -> impl Iterator<Item = Vec<String>> {
        self.clouds.iter().map(|cloud| cloud.objects.snapshot().into_keys().collect())
    }

    /// Returns everything that the stores hold of packs and pages, by the number of the store.
    fn data(&self) -> BTreeMap<usize, BTreeSet<String>> {
        let is_data =
            |key: &String| ["packs/", "pages/", "blocks/"].iter().any(|kind| key.starts_with(kind));
        let of = |keys: Vec<String>| keys.into_iter().filter(is_data).collect();
        self.keys().map(of).enumerate().collect()
    }
}

/// Undoes what a process had begun in its database and not committed.
fn undo_what_is_open(state: State) -> Result<State, SyncError> {
    let connection = state.into_connection();
    if !connection.is_autocommit() {
        connection.execute_batch("ROLLBACK").expect("a database in memory can roll back");
    }
    State::from_connection(connection)
}
