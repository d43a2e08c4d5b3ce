//! One device: a folder, a database that outlives its processes, a clock, and a way to the others.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use commit_log::{CommitLog, ServedCommitLog, SlotCommitLog};
use content::keyring::SecretKey;
use content::{DeviceKeys, Transform, Unlocked, WorkspaceKeys};
use model::{DeviceId, Genesis, NodeId, Random, VersionPolicy};
use rusqlite::Connection;
use server::Caller;
use storage::faulty::Faulty;
use storage::{ContentStore, ObjectStore};
use sync::engine::{CleanupOptions, Event, Sabotage, SyncReport, WatchOptions};
use sync::scan::{ProblemKind, Scope};
use sync::state::State;
use sync::workers::Workers;
use sync::{DeltaBudget, Engine, EngineOptions, Environment, SyncError};

use crate::audit::{Acknowledged, WatchedLog};
use crate::chronicle::ContentHash;
use crate::clock::{DeviceClock, VirtualTime};
use crate::coverage::{Coverage, Fault};
use crate::executor::{Killed, run_process};
use crate::file_system::SimulatedFileSystem;
use crate::mutants::AcceptsEverything;
use crate::random::{Dice, SeededRandom};
use crate::record::Record;
use crate::server::{PackDoor, SimulatedConnection, SimulatedServer};
use crate::several::{Opened, Several, Ways};
use crate::store::{Delayed, MemoryStore, Network};
use crate::watcher::Watcher;

/// After which time a device that keeps watch looks at everything.
const RESCAN_AFTER: Duration = Duration::from_secs(20);

/// What all devices of a world share.
#[derive(Clone)]
pub struct Common {
    /// The time.
    pub time: VirtualTime,
    /// What happened.
    pub record: Record,
    /// Which faults came to be.
    pub coverage: Coverage,
    /// What was acknowledged.
    pub acknowledged: Acknowledged,
    /// Where objects rest.
    pub store: MemoryStore,
    /// Where they rest if it is several stores.
    pub several: Option<Several>,
    /// The server, if it orders the log.
    pub server: Option<SimulatedServer>,
    /// The workspace.
    pub genesis: Genesis,
    /// Its keys, where it is sealed.
    pub unlocked: Option<Unlocked>,
}

impl Common {
    /// Returns what a device keeps of the workspace's keys, where it is sealed.
    pub fn device_keys(&self, device: DeviceId) -> Option<DeviceKeys> {
        let unlocked = self.unlocked.as_ref()?;
        let seed = SecretKey::from_bytes(*blake3::hash(device.as_bytes()).as_bytes());
        let keys = DeviceKeys::enroll(&self.genesis, unlocked, device, seed);
        Some(keys.expect("the keys are those of the workspace"))
    }

    /// Returns the keys of the workspace, as the checks use them.
    pub fn keys(&self) -> WorkspaceKeys {
        let random = Arc::new(SeededRandom::new(Dice::new(0)));
        let device = self.device_keys(DeviceId::from_bytes([0; 16]));
        WorkspaceKeys::open(&self.genesis, device, random).expect("they belong together")
    }
}

/// How a run of the engine ended.
pub enum Ended {
    /// By itself.
    Done(SyncReport),
    /// With an error.
    Failed(SyncError),
    /// It was killed.
    Killed,
}

/// A version that a power cut has made worthless on one device, and that must therefore not be sent from there.
#[derive(Debug, Clone, Copy)]
pub struct Protected {
    /// Its node.
    pub node: NodeId,
    /// What the file holds since.
    pub worthless: ContentHash,
    /// The newest entry when the power was cut.
    pub since: u64,
}

/// A device.
pub struct Device {
    /// Its number in the world.
    pub number: usize,
    /// Its folder.
    pub folder: SimulatedFileSystem,
    /// Its clock.
    pub clock: Arc<DeviceClock>,
    /// Its network.
    pub network: Network,
    /// Who it is, to the log and to the server; a copy of another device is that one.
    identity: Cell<(DeviceId, Option<Caller>)>,
    /// What is wrong with it on purpose.
    defects: Defects,
    /// Its way to the store.
    faulty: Arc<Faulty>,
    /// Its ways to the stores, where there are several.
    ways: Option<Ways>,
    common: Common,
    random: Arc<SeededRandom>,
    memory: RefCell<Memory>,
    commits_left: Cell<Option<u64>>,
}

/// What is wrong with a device on purpose.
#[derive(Debug, Clone, Copy, Default)]
pub struct Defects {
    /// Its planner.
    pub sabotage: Option<Sabotage>,
    /// The coordinator, as it sees it.
    pub accepts_everything: bool,
}

struct Memory {
    connection: Option<Connection>,
    yesterday: Vec<u8>,
    dice: Dice,
}

impl Device {
    /// Makes a device with an empty database.
    pub fn new(
        number: usize,
        (folder, clock): (SimulatedFileSystem, Arc<DeviceClock>),
        (network, caller): (Network, Option<Caller>),
        mut dice: Dice,
        (common, defects): (Common, Defects),
    ) -> Self {
        let random = Arc::new(SeededRandom::new(dice.fork()));
        let bottom: Arc<dyn ObjectStore> = match (&common.server, caller) {
            (Some(server), Some(caller)) => {
                Arc::new(PackDoor::new(server.clone(), caller, common.store.clone()))
            }
            _ => Arc::new(common.store.clone()),
        };
        let faulty = Arc::new(Faulty::new(bottom, network.clone()));
        let ways = common.several.clone().map(|several| Ways::new(several, network.clone()));
        let id = caller
            .map_or_else(|| DeviceId::from_bytes([number as u8 + 1; 16]), |caller| caller.device);
        let memory = Memory { connection: None, yesterday: Vec::new(), dice };
        Self {
            number,
            folder,
            clock,
            network,
            identity: Cell::new((id, caller)),
            defects,
            faulty,
            ways,
            common,
            random,
            memory: RefCell::new(memory),
            commits_left: Cell::new(None),
        }
    }

    /// Returns its id.
    pub fn id(&self) -> DeviceId {
        self.identity.get().0
    }

    /// Makes this device a copy of another one: its database, its folder and its identity.
    pub fn become_copy(&self, other: &Self) {
        self.restore(&other.snapshot());
        self.folder.become_copy(&other.folder);
        self.identity.set(other.identity.get());
    }

    /// Opens log and pool over several stores, where there are several.
    pub fn open_several(&self) -> Option<Opened> {
        let random = self.random.clone() as Arc<dyn Random>;
        Some(self.ways.as_ref()?.open(self.clock.clone(), random, &self.common.genesis))
    }

    /// Returns log and store as this device reaches them, and what of them goes on in the background.
    fn reach(&self) -> (Arc<dyn CommitLog>, Arc<dyn ObjectStore>, Option<Opened>) {
        match self.open_several() {
            Some(opened) => {
                let log = self.watched(opened.log.clone());
                (log, Arc::new(opened.pool.clone()), Some(opened))
            }
            None => (self.log(), self.store(), None),
        }
    }

    fn watched(&self, log: Arc<dyn CommitLog>) -> Arc<dyn CommitLog> {
        let log =
            if self.defects.accepts_everything { Arc::new(AcceptsEverything(log)) } else { log };
        let (store, several) = (self.common.store.clone(), self.common.several.clone());
        Arc::new(WatchedLog::new(log, self.common.acknowledged.clone(), store, several))
    }

    /// Returns the log as this device reaches it.
    pub fn log(&self) -> Arc<dyn CommitLog> {
        if let Some(opened) = self.open_several() {
            return self.watched(opened.log);
        }
        let genesis = self.common.genesis.clone();
        let log: Arc<dyn CommitLog> = match (&self.common.server, self.identity.get().1) {
            (Some(server), Some(caller)) => {
                let connection =
                    SimulatedConnection::new(server.clone(), caller, self.network.clone());
                Arc::new(ServedCommitLog::with_genesis(
                    Arc::new(connection),
                    self.clock.clone(),
                    genesis,
                ))
            }
            _ => Arc::new(SlotCommitLog::with_genesis(self.store(), self.clock.clone(), genesis)),
        };
        self.watched(log)
    }

    /// Returns the store as this device reaches it.
    pub fn store(&self) -> Arc<dyn ObjectStore> {
        if let Some(opened) = self.open_several() {
            return Arc::new(opened.pool);
        }
        Arc::new(Delayed::new(self.faulty.clone(), self.network.clone()))
    }

    /// Lets the next process die when its database commits, after so many times.
    pub fn die_after_commits(&self, commits: Option<u64>) {
        self.commits_left.set(commits);
    }

    /// Lets the process die after so many commits, once `is_open`. The one that it dies at is undone, and so are all
    /// after it.
    fn kill_at_commit(&self, connection: &mut Connection, commits: u64, is_open: Arc<AtomicBool>) {
        let (folder, coverage) = (self.folder.clone(), self.common.coverage.clone());
        let (record, number, mut left) = (self.common.record.clone(), self.number, commits);
        let hook = move || {
            if !is_open.load(Ordering::Relaxed) {
                return false;
            }
            let is_dead = left == 0;
            if is_dead && !folder.is_dead() {
                folder.die();
                coverage.hit(Fault::KilledAtCommit);
                record.note("killed", format_args!("[{number}] at a commit of its database"));
            }
            left = left.saturating_sub(1);
            is_dead
        };
        connection.commit_hook(Some(hook)).expect("a database of ours takes hooks");
    }

    /// Opens the engine, as a new process.
    ///
    /// # Errors
    /// [`SyncError`].
    pub fn open(&self) -> Result<(Engine, Option<Opened>), SyncError> {
        let (log, store, several) = self.reach();
        let connection = self.memory.borrow_mut().connection.take();
        let mut connection = connection.map_or_else(open_in_memory, Ok)?;
        let is_open = Arc::new(AtomicBool::new(false));
        if let Some(commits) = self.commits_left.take() {
            self.kill_at_commit(&mut connection, commits, is_open.clone());
        }
        let state = State::from_connection(connection)?;
        let environment = Environment {
            file_system: Arc::new(self.folder.clone()),
            log,
            store: Arc::new(ContentStore::new(store)),
            clock: self.clock.clone(),
            random: self.random.clone() as Arc<dyn Random>,
            workers: Workers::inline(),
        };
        let options = EngineOptions {
            device: self.id(),
            device_name: format!("device {}", self.number),
            allow_mass_delete: false,
            transform: Transform::Zstd { level: 1 },
            deltas: DeltaBudget::default(),
            keys: self.common.device_keys(self.id()),
        };
        let mut engine = Engine::open(environment, state, options)?;
        is_open.store(true, Ordering::Relaxed);
        if let Some(sabotage) = self.defects.sabotage {
            engine.sabotage(sabotage);
        }
        let (record, coverage, number) =
            (self.common.record.clone(), self.common.coverage.clone(), self.number);
        engine.observe(Arc::new(move |event| {
            if matches!(event, Event::KeptCopy(_)) {
                coverage.hit(Fault::CopyKept);
            }
            record.note("event", format_args!("[{number}] {event:?}"));
        }));
        Ok((engine, several))
    }

    /// Runs the engine once, unless it is killed before.
    pub async fn run(&self, deadline: Option<Duration>) -> Ended {
        self.process(deadline, async |engine: &mut Engine| engine.sync(Scope::Everything).await)
            .await
    }

    /// Lets the engine remove what nobody needs, unless it is killed before: every old version goes that may go.
    pub async fn clean_up(&self, deadline: Option<Duration>) -> Ended {
        let policy = VersionPolicy { rungs: Vec::new(), deleted_s: 0 };
        let options = CleanupOptions {
            policy: Some(policy),
            is_clock_trusted: true,
            ..CleanupOptions::default()
        };
        self.process(deadline, async |engine: &mut Engine| {
            engine.cleanup(&options).await.map(|_| SyncReport::default())
        })
        .await
    }

    /// Lets the engine publish a checkpoint, unless it is killed before.
    pub async fn publish(&self, deadline: Option<Duration>) -> Ended {
        self.process(deadline, async |engine: &mut Engine| {
            engine.publish_checkpoint_now().await.map(|()| SyncReport::default())
        })
        .await
    }

    /// Lets the engine keep watch for a while, unless it is killed before. Meanwhile the user acts, and the watcher
    /// hints at some of it, and at what is nothing.
    pub async fn watch(&self, deadline: Option<Duration>, moments: u32) -> Ended {
        let dice = self.memory.borrow_mut().dice.fork();
        let watcher = Watcher {
            folder: self.folder.clone(),
            time: self.common.time.clone(),
            coverage: self.common.coverage.clone(),
            dice,
            left: moments,
        };
        let options =
            WatchOptions { rescan_after: RESCAN_AFTER, retry_after: Duration::from_millis(200) };
        self.process(deadline, async |engine: &mut Engine| {
            engine.watch(options, watcher.hints(), |_| {}).await?;
            Ok(SyncReport::default())
        })
        .await
    }

    /// Runs a process that does `work` with the engine.
    async fn process(
        &self,
        deadline: Option<Duration>,
        work: impl AsyncFnOnce(&mut Engine) -> Result<SyncReport, SyncError>,
    ) -> Ended {
        self.folder.start();
        // A new process has a new handle of the store; what the old one had deferred is lost.
        self.faulty.crash();
        if let Some(ways) = &self.ways {
            ways.crash();
        }
        let (engine, several) = match self.open() {
            Ok((engine, several)) => (RefCell::new(engine), several),
            Err(error) => return Ended::Failed(error),
        };
        let killer = async {
            match deadline {
                Some(deadline) => self.common.time.sleep(deadline).await,
                None => std::future::pending().await,
            }
            self.folder.die();
            self.common.coverage.hit(Fault::KilledAtAwait);
            self.common.record.note("killed", format_args!("[{}] at an await", self.number));
        };
        // The engine outlives the process that drives it, for the sake of its database.
        #[expect(
            clippy::await_holding_refcell_ref,
            reason = "nobody else borrows it while the process lives"
        )]
        let process = async {
            let mut engine = engine.borrow_mut();
            match several {
                Some(opened) => opened.run(work(&mut engine), &*self.clock).await,
                None => work(&mut engine).await,
            }
        };
        let ended = match run_process(process, killer).await {
            Ok(Ok(report)) => Ended::Done(report),
            Ok(Err(error)) => Ended::Failed(error),
            Err(Killed) => Ended::Killed,
        };
        let ended = if self.folder.is_dead() { Ended::Killed } else { ended };
        self.keep(engine.into_inner().into_state());
        self.tell(&ended);
        self.show_state();
        ended
    }

    /// Shows the merge base, for whoever looks for a defect.
    fn show_state(&self) {
        if !self.common.record.is_verbose() {
            return;
        }
        let rows = self.with_state(|state| {
            let mut rows = Vec::new();
            let visited = state.each_synced(|row| {
                let (node, record) = (short(&row.node), &row.record);
                let (version, pending) = (row.version, row.pending.is_some());
                let place = format!("{}/{} {:o}", short(&record.parent), record.name, record.mode);
                rows.push(format!(
                    "{node} v{version} {place} pending {pending} stat {}",
                    row.stat.is_some()
                ));
            });
            visited.expect("the database can be read");
            let unsynced = state.unsynced().expect("the database can be read");
            let unsynced: Vec<_> = unsynced.iter().map(short).collect();
            rows.push(format!("unsynced {unsynced:?}"));
            for (node, remote) in state.remote_page(None, 1000).expect("the database can be read") {
                let (record, state) = (&remote.record, remote.state);
                let place = format!("{}/{} {:o}", short(&record.parent), record.name, record.mode);
                rows.push(format!("remote {} v{} {place} {state:?}", short(&node), remote.version));
            }
            rows
        });
        for row in rows.unwrap_or_default() {
            self.common.record.note("row", format_args!("[{}] {row}", self.number));
        }
        let disk = self.folder.disk();
        for (path, key) in disk.walk() {
            let file = disk.file(key);
            let content = ContentHash::of(&file.matter);
            let details =
                format_args!("[{}] {path} inode {} {content:?}", self.number, file.stat().inode);
            self.common.record.note("disk", details);
        }
    }

    fn tell(&self, ended: &Ended) {
        let (record, number) = (&self.common.record, self.number);
        match ended {
            Ended::Done(report) => {
                let (sent, received, seq) = (report.sent, report.received, report.seq);
                record.mix(sent ^ received << 20 ^ seq << 40);
                record.note(
                    "done",
                    format_args!("[{number}] sent {sent} received {received} at {seq}"),
                );
                for problem in &report.problems {
                    record.note("problem", format_args!("[{number}] {problem:?}"));
                    match problem.kind {
                        ProblemKind::Suspect => self.common.coverage.hit(Fault::SuspectFound),
                        ProblemKind::Changing => {
                            self.common.coverage.hit(Fault::FileChangedWhileRead);
                        }
                        _ => {}
                    }
                }
            }
            Ended::Failed(error) => record.note("failed", format_args!("[{number}] {error}")),
            Ended::Killed => record.note("is dead", format_args!("[{number}]")),
        }
    }

    /// Takes the database back from a process. What it had not committed is undone.
    fn keep(&self, state: State) {
        let mut connection = state.into_connection();
        connection.commit_hook(None::<fn() -> bool>).expect("a database of ours takes hooks");
        if !connection.is_autocommit() {
            connection.execute_batch("ROLLBACK").expect("a database in memory can roll back");
        }
        self.memory.borrow_mut().connection = Some(connection);
    }

    /// Keeps a copy of the database, to go back to.
    pub fn remember_today(&self) {
        let copy = self.snapshot();
        self.memory.borrow_mut().yesterday = copy;
    }

    /// Returns a copy of the database; nothing where there is none.
    pub fn snapshot(&self) -> Vec<u8> {
        let mut memory = self.memory.borrow_mut();
        let copy = memory.connection.as_mut().map(|connection| connection.serialize("main"));
        copy.and_then(Result::ok).map(|copy| copy.to_vec()).unwrap_or_default()
    }

    /// Replaces the database by a copy; an empty one stands for none.
    pub fn restore(&self, copy: &[u8]) {
        let mut memory = self.memory.borrow_mut();
        memory.connection = None;
        if !copy.is_empty() {
            let mut connection = open_in_memory().expect("there is memory");
            connection
                .deserialize_read_exact("main", copy, copy.len(), false)
                .expect("a copy is a database");
            memory.connection = Some(connection);
        }
    }

    /// Goes back to the database of yesterday.
    pub fn restore_yesterday(&self) {
        let copy = self.memory.borrow().yesterday.clone();
        self.restore(&copy);
    }

    /// Runs `look` on the state; nothing where there is none.
    pub fn with_state<T>(&self, look: impl FnOnce(&mut State) -> T) -> Option<T> {
        let connection = self.memory.borrow_mut().connection.take()?;
        let mut state = State::from_connection(connection).expect("the database was open before");
        let result = look(&mut state);
        self.keep(state);
        Some(result)
    }

    /// Cuts the power. Returns what must not be sent from here, and what users had written and nobody answers for.
    pub fn cut_power(&self) -> (Vec<Protected>, Vec<ContentHash>) {
        let (lost, gone) = self.folder.cut_power();
        if self.memory.borrow_mut().dice.chance(500) {
            // A database in the mode that the engine uses may lose its last transactions, and nothing else.
            self.common.coverage.hit(Fault::DatabaseFellBehind);
            self.restore_yesterday();
        }
        let mut protected = Vec::new();
        self.with_state(|state| {
            let since = state.head().ok().flatten().map_or(0, |head| head.seq);
            let visited = state.each_synced(|row| {
                for file in lost.iter().filter(|file| file.before != file.after) {
                    let is_told = row.stat.is_some_and(|stat| {
                        (stat.inode, stat.modified, stat.changed)
                            == (file.stat.inode, file.stat.modified, file.stat.changed)
                    });
                    if is_told && row.pending.is_none() && row.version > 0 {
                        protected.push(Protected { node: row.node, worthless: file.after, since });
                    }
                }
            });
            visited.expect("the database can be read");
        });
        (protected, gone)
    }
}

/// Shortens an id, which may be told apart by its end only.
fn short(node: &NodeId) -> String {
    let text = node.to_string();
    format!("{}~{}", &text[..4], &text[30..])
}

/// Opens a database that is gone with its connection.
pub(crate) fn open_in_memory() -> Result<Connection, SyncError> {
    let connection = Connection::open_in_memory();
    connection.map_err(|source| SyncError::Database { place: "in memory".to_owned(), source })
}
