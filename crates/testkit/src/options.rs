//! What a seed expands to.

use sync::engine::Sabotage;

use crate::file_system::DiskFaults;
use crate::random::Dice;
use crate::several::SeveralOptions;
use crate::store::{NetworkFaults, StoreDefect};
use crate::trace::{Deed, plain_names, strange_names};

/// Who orders the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coordinator {
    /// The slots of a store.
    Slots,
    /// A server.
    Served,
    /// The slots of several stores, which also hold the data.
    Group(SeveralOptions),
}

/// How often something befalls a device between two runs of its engine, in a thousand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Accidents {
    /// The process dies at a call of the file system.
    pub kill_at_call: u32,
    /// The process dies while it waits.
    pub kill_at_await: u32,
    /// The power is cut; in a world with this, every kill may be one.
    pub power_cut: u32,
    /// The database is deleted.
    pub database_deleted: u32,
    /// The database is that of an earlier day.
    pub database_restored: u32,
    /// The disk is not mounted for a while.
    pub unmounted: u32,
    /// The clock jumps.
    pub clock_jump: u32,
    /// The server, or the store, goes back to an older copy, once in a world at most.
    pub server_restored: u32,
    /// The process is killed where its database would commit.
    pub kill_at_commit: u32,
    /// Database and folder are copied to another device, once in a world at most.
    pub device_copied: u32,
    /// The device cleans up, and keeps no old version that it need not keep.
    pub cleanup: u32,
    /// The device publishes a checkpoint, however few entries have come since the last.
    pub checkpoint: u32,
}

/// What a world is like.
#[derive(Debug, Clone)]
pub struct WorldOptions {
    /// Its seed.
    pub seed: u64,
    /// Who orders the log.
    pub coordinator: Coordinator,
    /// Whether the workspace is sealed.
    pub sealed: bool,
    /// How many devices there are.
    pub devices: usize,
    /// How often everything comes to rest.
    pub phases: u32,
    /// How many deeds all users do in a phase.
    pub deeds_per_phase: u32,
    /// What users do.
    pub deeds: Vec<Deed>,
    /// Which names they give.
    pub names: Vec<Vec<u8>>,
    /// Whether each user touches only what is their own, so that every conflict is one that nobody made.
    pub apart: bool,
    /// How disks fail.
    pub disk: DiskFaults,
    /// How networks fail.
    pub network: NetworkFaults,
    /// What befalls devices.
    pub accidents: Accidents,
    /// How often a device keeps watch instead of syncing once, in a thousand.
    pub watch: u32,
    /// A defect of the planner, to see that it is found.
    pub sabotage: Option<Sabotage>,
    /// A defect of the coordinator, to see that it is found.
    pub accepts_everything: bool,
    /// A defect of the store, to see that it is found.
    pub defect: Option<StoreDefect>,
}

/// How often devices publish checkpoints: in every other world over stores in which they are cleaned up.
fn checkpoints(seed: u64, options: &WorldOptions) -> u32 {
    let cleans = options.coordinator != Coordinator::Served && options.accidents.cleanup > 0;
    if cleans && Dice::new(seed ^ 0x0009_a6e5).chance(500) { 300 } else { 0 }
}

impl WorldOptions {
    /// Expands a seed: each world has some of everything, so that rare things meet often.
    pub fn from_seed(seed: u64) -> Self {
        let mut dice = Dice::new(seed ^ 0x5eed);
        let mut options = Self::calm(seed);
        options.coordinator =
            if dice.chance(500) { Coordinator::Slots } else { Coordinator::Served };
        options.devices = 2 + dice.index(3);
        options.phases = 1 + dice.below(3) as u32;
        options.deeds_per_phase = 4 + dice.below(14) as u32;
        options.deeds.retain(|deed| *deed == Deed::Create || dice.chance(600));
        if dice.chance(750) {
            options.deeds.retain(|deed| *deed != Deed::CreateLarge);
        }
        if Dice::new(seed ^ 0x7a61e).chance(80) {
            // Directories are moved into each other.
            options.deeds = vec![
                Deed::MakeDirectory,
                Deed::MakeDirectory,
                Deed::Move,
                Deed::Move,
                Deed::Create,
            ];
        }
        options.apart = Dice::new(seed ^ 0xa9a47).chance(250);
        options.names.truncate(2 + dice.index(6));
        if dice.chance(250) {
            let strange = strange_names();
            options.names.extend((0..4).map(|_| dice.pick(&strange).clone()));
        }
        let mut some = |permille: u32| if dice.chance(350) { permille } else { 0 };
        options.disk =
            DiskFaults { error: some(8), no_space: some(8), flush: some(30), user: some(60) };
        options.network = NetworkFaults {
            error_before: some(40),
            error_after: some(40),
            duplicate: some(60),
            late: some(40),
            no_space: some(15),
            not_durable: some(60),
            down: some(20),
            event: some(150),
        };
        options.accidents = Accidents {
            kill_at_call: some(250),
            kill_at_await: some(250),
            power_cut: some(400),
            clock_jump: some(150),
            ..Accidents::default()
        };
        options.watch = some(500);
        // What loses memory excuses much, so most worlds go without.
        let mut rare = |permille: u32| if dice.chance(60) { permille } else { 0 };
        options.accidents.database_deleted = rare(150);
        options.accidents.database_restored = rare(150);
        options.accidents.unmounted = rare(200);
        options.accidents.server_restored = rare(150);
        options.accidents.device_copied = rare(100);
        if Dice::new(seed ^ 0xc0_3317).chance(300) {
            options.accidents.kill_at_commit = 300;
        }
        if options.coordinator == Coordinator::Slots && Dice::new(seed ^ 0xc1ea_4007).chance(400) {
            options.accidents.cleanup = 350;
            // Small packs travel in the log, where no cleanup comes.
            if Dice::new(seed ^ 0x1a46e).chance(500) {
                options.deeds.push(Deed::CreateLarge);
            }
        }
        if options.coordinator == Coordinator::Served && Dice::new(seed ^ 0x5e4_c1ea).chance(250) {
            options.accidents.cleanup = 350;
        }
        options.accidents.checkpoint = checkpoints(seed, &options);
        if options.accidents.server_restored > 0 {
            // A put that comes after the store has gone back would continue a log that is no more.
            options.network.late = 0;
        }
        options
    }

    /// Expands a seed to a world over several stores; what else is in it is as without.
    pub fn over_stores(seed: u64) -> Self {
        let mut options = Self::from_seed(seed);
        let several = SeveralOptions::draw(seed);
        options.coordinator = Coordinator::Group(several);
        options.sealed = Dice::new(seed ^ 0x5ea1).chance(300);
        let mut dice = Dice::new(seed ^ 0x1a_49e5);
        if dice.chance(700) && !options.deeds.contains(&Deed::CreateLarge) {
            // What is small travels in the log, and needs no pool.
            options.deeds.push(Deed::CreateLarge);
        }
        // A store alone forgets by its own troubles; that all go back at once is tried with one store.
        options.accidents.server_restored = 0;
        let cleans = Dice::new(seed ^ 0x5704_c1ea).chance(400);
        options.accidents.cleanup = if cleans { 350 } else { 0 };
        options.accidents.checkpoint = checkpoints(seed, &options);
        options
    }

    /// Returns a world in which nothing ever fails.
    pub fn calm(seed: u64) -> Self {
        Self {
            seed,
            coordinator: Coordinator::Slots,
            sealed: false,
            devices: 2,
            phases: 1,
            deeds_per_phase: 10,
            deeds: Deed::ALL.to_vec(),
            names: plain_names(),
            apart: false,
            disk: DiskFaults::default(),
            network: NetworkFaults::default(),
            accidents: Accidents::default(),
            watch: 0,
            sabotage: None,
            accepts_everything: false,
            defect: None,
        }
    }
}
