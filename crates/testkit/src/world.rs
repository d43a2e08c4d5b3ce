//! The seeded world: devices, their users, and all that can go wrong; then everything heals, and must be right.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use commit_log::serverless::slot_log::Means;
use content::{NewWorkspace, Unlocked};
use model::{Genesis, Mode, Timestamp};
use server::Caller;
use sync::SyncError;
use sync::file_system::FileError;

use crate::audit::Acknowledged;
use crate::checks;
use crate::chronicle::{Chronicle, ContentHash};
use crate::clock::{DeviceClock, VirtualTime};
use crate::coverage::{Coverage, Fault};
use crate::device::{Common, Defects, Device, Ended, Protected};
use crate::executor::Executor;
use crate::file_system::{DiskFaults, SimulatedFileSystem, Surroundings};
use crate::options::{Coordinator, WorldOptions};
use crate::random::{Dice, SeededRandom};
use crate::record::Record;
use crate::server::SimulatedServer;
use crate::several::{Several, check_stores};
use crate::store::{MemoryStore, Network, NetworkFaults};
use crate::trace::User;

/// How many rounds may pass, once everything heals, until everybody agrees.
const ROUNDS_TO_AGREE: u32 = 20;

/// The furthest that a clock is off: ten years.
const CLOCK_OFFSET_SECONDS: u64 = 10 * 365 * 86_400;

/// What a run of a world gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The hash of everything that happened.
    pub trace: u64,
    /// What must not be.
    pub violations: Vec<String>,
}

/// What was lost on purpose, so that some checks do not apply.
#[derive(Debug, Default)]
pub struct Excuses {
    /// A memory was lost: there may be conflict copies although nobody worked at the same time, and what was deleted
    /// may come back.
    pub memory: Cell<bool>,
    /// The log was lost in part.
    pub log: Cell<bool>,
}

/// A world.
pub struct World {
    /// What it is like.
    pub options: WorldOptions,
    /// Its devices.
    pub devices: Vec<Rc<Device>>,
    /// What they share.
    pub common: Common,
    /// What users did.
    pub chronicle: Chronicle,
    /// What was lost on purpose.
    pub excuses: Excuses,
    /// What must not be sent.
    pub protected: RefCell<Vec<(usize, Protected)>>,
    /// What must not be.
    pub violations: RefCell<Vec<String>>,
    dice: RefCell<Dice>,
    /// How many devices have users.
    active: Cell<usize>,
    /// How many processes are running.
    running: Cell<u32>,
    older_copy: RefCell<Option<OlderCopy>>,
}

/// An older copy of what a server or store holds.
struct OlderCopy {
    objects: std::collections::BTreeMap<String, bytes::Bytes>,
    database: Vec<u8>,
}

/// Makes a device with a user who has nothing to do yet.
fn device(
    number: usize,
    options: &WorldOptions,
    dice: &mut Dice,
    caller: Option<Caller>,
    (common, chronicle): (&Common, &Chronicle),
) -> Device {
    let (time, record, coverage) = (&common.time, &common.record, &common.coverage);
    let offset = dice.below(2 * CLOCK_OFFSET_SECONDS) as i64 - CLOCK_OFFSET_SECONDS as i64;
    let clock = Arc::new(DeviceClock::new(time.clone(), offset));
    let surroundings = Surroundings {
        clock: clock.clone(),
        record: record.clone(),
        chronicle: chronicle.clone(),
        coverage: coverage.clone(),
    };
    let folder = SimulatedFileSystem::new(number, dice.fork(), surroundings);
    if options.accidents.power_cut > 0 {
        folder.keep_history();
    }
    let (deeds, names) = (options.deeds.clone(), options.names.clone());
    let user = User::new(number, dice.fork(), deeds, names, 0);
    folder.set_user(Some(if options.apart { user.apart() } else { user }));
    let network = Network::new(dice.fork(), time.clone(), record.clone(), coverage.clone());
    let defects =
        Defects { sabotage: options.sabotage, accepts_everything: options.accepts_everything };
    Device::new(number, (folder, clock), (network, caller), dice.fork(), (common.clone(), defects))
}

/// Makes the workspace, and its keys where it is sealed.
fn workspace(options: &WorldOptions) -> (Genesis, Option<Unlocked>) {
    let (name, created) = ("world", Timestamp::default());
    if options.sealed {
        let random = SeededRandom::new(Dice::new(options.seed ^ 0x5ea1ed));
        let made = NewWorkspace::unlocked(name, created, &random).expect("this build can seal");
        return (made.0, Some(made.1));
    }
    let name = name.to_owned();
    (Genesis { name, mode: Mode::Plain, created, content_key: [7; 32] }, None)
}

impl World {
    /// Runs the world of a seed.
    pub fn seed(seed: u64) -> Outcome {
        run(WorldOptions::from_seed(seed), &Coverage::default(), false)
    }

    /// Makes a world.
    pub fn new(
        options: WorldOptions,
        coverage: &Coverage,
        record: &Record,
        time: &VirtualTime,
    ) -> Rc<Self> {
        let mut dice = Dice::new(options.seed);
        let (genesis, unlocked) = workspace(&options);
        let (server, callers) = match options.coordinator {
            Coordinator::Slots | Coordinator::Group(_) => (None, Vec::new()),
            Coordinator::Served => {
                let random = SeededRandom::new(dice.fork());
                let started = SimulatedServer::start(&genesis, &random, options.devices + 2);
                let (server, callers) = started.expect("a server in memory starts");
                (Some(server), callers)
            }
        };
        let common = Common {
            time: time.clone(),
            record: record.clone(),
            coverage: coverage.clone(),
            acknowledged: Acknowledged::default(),
            store: MemoryStore::new(options.defect),
            several: match options.coordinator {
                Coordinator::Group(several) => {
                    Some(Several::new(several, options.seed, time, coverage))
                }
                Coordinator::Slots | Coordinator::Served => None,
            },
            server,
            genesis,
            unlocked,
        };
        let chronicle = Chronicle::default();
        let devices = (0..options.devices + 2)
            .map(|number| {
                let caller = callers.get(number).copied();
                Rc::new(device(number, &options, &mut dice, caller, (&common, &chronicle)))
            })
            .collect();
        let devices_at_first = options.devices;
        Rc::new(Self {
            options,
            devices,
            common,
            chronicle,
            excuses: Excuses::default(),
            protected: RefCell::default(),
            violations: RefCell::default(),
            dice: RefCell::new(dice),
            active: Cell::new(devices_at_first),
            running: Cell::new(0),
            older_copy: RefCell::new(None),
        })
    }

    /// The devices that have users: those of the beginning, and perhaps one more, which is a copy.
    pub fn users_devices(&self) -> &[Rc<Device>] {
        &self.devices[..self.active.get()]
    }

    /// The device that comes at the end and must find everything in the log and the store.
    pub fn auditor(&self) -> &Rc<Device> {
        &self.devices[self.options.devices + 1]
    }

    /// Notes something that must not be.
    pub fn violation(&self, text: String) {
        self.common.record.note("VIOLATION", &text);
        self.violations.borrow_mut().push(text);
    }

    /// Makes everything that ever was, before the first device is there.
    async fn prepare(&self) {
        if let Some(several) = &self.common.several {
            let clock = Arc::new(DeviceClock::new(self.common.time.clone(), 0));
            let random = Arc::new(SeededRandom::new(Dice::new(self.options.seed ^ 0xc4ea7e)));
            let made = several.create(Means { clock, random }, &self.common.genesis).await;
            made.expect("stores in memory take a log");
        }
        if self.options.coordinator == Coordinator::Slots {
            let store = Arc::new(self.common.store.clone());
            let clock = Arc::new(DeviceClock::new(self.common.time.clone(), 0));
            let made =
                commit_log::SlotCommitLog::create(store, clock, self.common.genesis.clone()).await;
            made.expect("a store in memory takes a log");
        }
    }

    fn set_faults(&self, are_on: bool) {
        for device in &self.devices {
            let is_user = device.number < self.active.get();
            let (disk, network) = match are_on && is_user {
                true => (self.options.disk, self.options.network),
                false => (DiskFaults::default(), NetworkFaults::default()),
            };
            device.folder.set_faults(disk);
            device.network.set_faults(network);
            device.folder.die_after(None);
            device.die_after_commits(None);
            device.folder.mount(true);
        }
    }

    /// Shares out what users do in a phase, unevenly.
    fn hand_out_deeds(&self) {
        let mut dice = self.dice.borrow_mut();
        for _ in 0..self.options.deeds_per_phase {
            let device = dice.index(self.active.get());
            self.devices[device].folder.give_deeds(1);
        }
    }

    /// Lives the life of one device for a phase.
    async fn live(self: Rc<Self>, number: usize) {
        let device = self.devices[number].clone();
        let mut dice = self.dice.borrow_mut().fork();
        let mut cleanup_dice = Dice::new(self.options.seed ^ 0xc1ea ^ (number as u64) << 32);
        let mut publish_dice = Dice::new(self.options.seed ^ 0x9a6e ^ (number as u64) << 32);
        loop {
            let pause = Duration::from_millis(dice.below(3000));
            self.common.time.sleep(pause).await;
            let mut is_busy = true;
            for _ in 0..dice.below(4) {
                is_busy = device.folder.act();
            }
            self.befall(&device, &mut dice);
            self.run_once(&device, &mut dice).await;
            self.clean_up_perhaps(&device, &mut cleanup_dice).await;
            self.publish_perhaps(&device, &mut publish_dice).await;
            if !is_busy && !device.folder.act() {
                break;
            }
        }
    }

    /// What happens to a device while no process runs on it.
    fn befall(&self, device: &Device, dice: &mut Dice) {
        let (accidents, coverage) = (self.options.accidents, &self.common.coverage);
        let note = |what: &str| self.common.record.note(what, format_args!("[{}]", device.number));
        if dice.chance(accidents.clock_jump) {
            let offset = dice.below(2 * CLOCK_OFFSET_SECONDS) as i64 - CLOCK_OFFSET_SECONDS as i64;
            device.clock.set_offset(offset);
            coverage.hit(Fault::ClockJump);
            note("clock jumps");
        }
        if dice.chance(accidents.database_deleted) {
            device.restore(&[]);
            self.excuses.memory.set(true);
            coverage.hit(Fault::DatabaseDeleted);
            note("database deleted");
        } else if dice.chance(accidents.database_restored) {
            device.restore_yesterday();
            self.excuses.memory.set(true);
            coverage.hit(Fault::DatabaseRestored);
            note("database restored");
        } else if dice.chance(300) {
            device.remember_today();
        }
        if dice.chance(accidents.device_copied) && self.active.get() == self.options.devices {
            self.devices[self.options.devices].become_copy(device);
            self.active.set(self.options.devices + 1);
            self.excuses.memory.set(true);
            coverage.hit(Fault::DeviceCopied);
            note("copied");
        }
        device.folder.mount(!dice.chance(accidents.unmounted));
        if dice.chance(accidents.server_restored) {
            self.go_back();
        }
    }

    /// Server or store go back to an older copy, or keep one for later.
    fn go_back(&self) {
        // Nobody can put an older copy under a passive store between two requests of one commit, unseen; a server does
        // so between two transactions.
        if self.running.get() > 0 && self.options.coordinator == Coordinator::Slots {
            return;
        }
        let copy = self.older_copy.borrow_mut().take();
        match copy {
            None => {
                let database = self
                    .common
                    .server
                    .as_ref()
                    .map(|server| server.snapshot().expect("it can be copied"));
                let objects = self.common.store.snapshot();
                *self.older_copy.borrow_mut() =
                    Some(OlderCopy { objects, database: database.unwrap_or_default() });
            }
            Some(copy) if !self.excuses.log.get() => {
                self.common.record.note("server restored", "");
                self.common.coverage.hit(Fault::ServerRestored);
                if let Some(server) = &self.common.server {
                    server.restore(&copy.database).expect("the copy is good");
                }
                self.common.store.restore(copy.objects);
                self.excuses.log.set(true);
                self.excuses.memory.set(true);
                self.common.acknowledged.forget();
            }
            Some(_) => {}
        }
    }

    /// Runs the engine of a device, perhaps not to its end.
    async fn run_once(&self, device: &Device, dice: &mut Dice) {
        let accidents = self.options.accidents;
        let deadline =
            dice.chance(accidents.kill_at_await).then(|| Duration::from_millis(dice.below(1500)));
        let calls = dice.chance(accidents.kill_at_call).then(|| dice.below(120));
        device.folder.die_after_start(calls);
        let is_killed_at_commit =
            accidents.kill_at_commit > 0 && dice.chance(accidents.kill_at_commit);
        device.die_after_commits(is_killed_at_commit.then(|| dice.below(30)));
        let is_unmounted = !device.folder.is_mounted();
        self.running.set(self.running.get() + 1);
        let ended = match dice.chance(self.options.watch) {
            true => device.watch(deadline, 2 + dice.below(8) as u32).await,
            false => device.run(deadline).await,
        };
        self.running.set(self.running.get() - 1);
        match ended {
            Ended::Done(_) if is_unmounted => {
                self.violation(format!(
                    "I-10: device {} synced an unmounted folder",
                    device.number
                ));
            }
            Ended::Done(_) => {}
            Ended::Killed => {
                if dice.chance(accidents.power_cut) {
                    self.common.record.note("power cut", format_args!("[{}]", device.number));
                    let (protected, gone) = device.cut_power();
                    let disk = device.folder.disk();
                    self.chronicle.excuse(device.number, &gone, |path, content| {
                        let found = disk.resolve(path).ok().flatten();
                        found.and_then(|key| ContentHash::of(&disk.file(key).matter))
                            == Some(content)
                    });
                    self.excuses.memory.set(true);
                    let number = device.number;
                    self.protected
                        .borrow_mut()
                        .extend(protected.into_iter().map(|found| (number, found)));
                }
            }
            // Whoever never saw the folder cannot know that it is the wrong one, but finds that it cannot be written.
            Ended::Failed(SyncError::RootMismatch(_) | SyncError::File(FileError::ReadOnly(_)))
                if is_unmounted =>
            {
                self.common.coverage.hit(Fault::Unmounted);
            }
            Ended::Failed(error) => {
                if !self.is_to_be_expected(&error) {
                    self.violation(format!("device {} failed: {error}", device.number));
                }
            }
        }
        device.folder.mount(true);
    }

    /// Lets a device clean up, perhaps not to its end.
    async fn clean_up_perhaps(&self, device: &Device, dice: &mut Dice) {
        if !dice.chance(self.options.accidents.cleanup) {
            return;
        }
        let deadline = dice.chance(300).then(|| Duration::from_millis(dice.below(600)));
        self.running.set(self.running.get() + 1);
        let ended = device.clean_up(deadline).await;
        self.running.set(self.running.get() - 1);
        match ended {
            Ended::Done(_) => self.common.coverage.hit(Fault::CleanedUp),
            Ended::Killed
            | Ended::Failed(SyncError::CleanupOvertaken(_) | SyncError::MassDelete { .. }) => {}
            // A store that went back to an older copy may have lost what a version needs.
            // Of several stores, some may be in trouble just now.
            Ended::Failed(SyncError::NotWhole(_))
                if self.excuses.log.get() || self.common.several.is_some() =>
            {
                self.common.record.note("not whole", format_args!("[{}]", device.number));
            }
            Ended::Failed(error) => {
                if !self.is_to_be_expected(&error) {
                    self.violation(format!("device {} cannot clean up: {error}", device.number));
                }
            }
        }
    }

    /// Lets a device publish a checkpoint, perhaps not to its end.
    async fn publish_perhaps(&self, device: &Device, dice: &mut Dice) {
        if !dice.chance(self.options.accidents.checkpoint) {
            return;
        }
        let deadline = dice.chance(300).then(|| Duration::from_millis(dice.below(300)));
        self.running.set(self.running.get() + 1);
        let ended = device.publish(deadline).await;
        self.running.set(self.running.get() - 1);
        if let Ended::Failed(error) = ended
            && !self.is_to_be_expected(&error)
        {
            self.violation(format!("device {} cannot publish: {error}", device.number));
        }
    }

    /// Tells whether an error is one that the faults of this world can cause.
    fn is_to_be_expected(&self, error: &SyncError) -> bool {
        match error {
            SyncError::File(_) => self.options.disk != DiskFaults::default(),
            SyncError::Storage(_) | SyncError::Log(_) => {
                error.is_retryable()
                    || self.options.network != NetworkFaults::default()
                    || self.options.accidents.server_restored > 0
                    || self.common.several.is_some()
            }
            _ => false,
        }
    }

    /// Everything heals: without faults and deeds all devices must come to agree, and then have nothing to do.
    async fn heal(self: Rc<Self>) {
        for round in 0..ROUNDS_TO_AGREE {
            self.common.record.note("round", round);
            let mut is_quiet = true;
            let mut heads = std::collections::BTreeSet::new();
            for device in self.users_devices() {
                match device.run(None).await {
                    Ended::Done(report) => {
                        heads.insert(report.seq);
                        is_quiet &=
                            report.sent == 0 && report.received == 0 && report.problems.is_empty();
                    }
                    Ended::Failed(error) => {
                        is_quiet = false;
                        if round > 2 {
                            self.violation(format!(
                                "device {} fails although all is well: {error}",
                                device.number
                            ));
                            return;
                        }
                    }
                    Ended::Killed => {
                        self.violation("a process was killed although all is well".to_owned());
                    }
                }
            }
            if is_quiet && heads.len() == 1 {
                return;
            }
        }
        self.violation(format!("I-03: no agreement after {ROUNDS_TO_AGREE} rounds"));
    }
}

/// Runs a world to its end.
pub fn run(options: WorldOptions, coverage: &Coverage, is_verbose: bool) -> Outcome {
    let record = Record::new(is_verbose);
    let time = VirtualTime::default();
    let mut executor =
        Executor::new(time.clone(), Dice::new(options.seed ^ 0xe8ec), record.clone());
    let world = World::new(options, coverage, &record, &time);
    if let Err(reason) = run_phases(&world, &mut executor) {
        world.violation(format!("it hangs: {reason}"));
    }
    let violations = world.violations.borrow().clone();
    Outcome { trace: record.hash(), violations }
}

fn run_phases(world: &Rc<World>, executor: &mut Executor) -> Result<(), String> {
    let this = world.clone();
    executor.block_on(async move { this.prepare().await })?;
    for phase in 0..world.options.phases {
        world.common.record.note("phase", phase);
        world.chronicle.begin_phase();
        world.hand_out_deeds();
        world.set_faults(true);
        if let Some(several) = &world.common.several {
            let seed = world.options.seed ^ 0x7_40b1e ^ u64::from(phase) << 40;
            let mut dice = Dice::new(seed);
            several.begin_phase(&mut dice);
            let (time, record) = (world.common.time.clone(), world.common.record.clone());
            executor.spawn(several.clone().trouble(dice, time, record));
        }
        for number in 0..world.active.get() {
            executor.spawn(world.clone().live(number));
        }
        executor.run()?;
        world.common.record.note("heals", "");
        world.set_faults(false);
        if let Some(several) = &world.common.several {
            several.heal();
        }
        executor.block_on(world.clone().heal())?;
        executor.block_on(check_stores(world.clone()))?;
        // Where packs are lost the devices do not agree either; this tells who is to blame.
        executor.block_on(checks::check_acknowledged_packs(world.clone()))?;
        if !world.violations.borrow().is_empty() {
            return Ok(());
        }
        executor.block_on(checks::check(world.clone()))?;
        if !world.violations.borrow().is_empty() {
            return Ok(());
        }
    }
    if world.options.accidents.cleanup > 0 {
        executor.block_on(checks::check_cleanup(world.clone()))?;
        executor.block_on(checks::check_pages(world.clone()))?;
    }
    if let Some(several) = &world.common.several {
        several.lose_some(&mut Dice::new(world.options.seed ^ 0x105e));
    }
    executor.block_on(checks::audit(world.clone()))
}
