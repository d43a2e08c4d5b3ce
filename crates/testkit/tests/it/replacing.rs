//! Whatever puts a file in the place of another one dies after each of its calls, and the power goes: whatever the disk may
//! then hold, the name has never been without a file, and nobody hears of a deletion.

use std::collections::BTreeSet;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use commit_log::SlotCommitLog;
use content::Transform;
use model::{Clock, DeviceId, Genesis, Mode, RelativePath, Timestamp};
use rusqlite::Connection;
use storage::ContentStore;
use sync::engine::{At, Keep};
use sync::scan::Scope;
use sync::state::State;
use sync::workers::Workers;
use sync::{DeltaBudget, Engine, EngineOptions, Environment, SyncError};
use testkit::chronicle::Chronicle;
use testkit::clouds::time::in_virtual_time;
use testkit::coverage::Coverage;
use testkit::executor::{Killed, run_process};
use testkit::file_system::disk::{Disk, Key, Matter};
use testkit::file_system::{SimulatedFileSystem, Surroundings};
use testkit::random::{Dice, SeededRandom};
use testkit::record::Record;
use testkit::store::MemoryStore;

const FILE: &str = "notes";

/// What puts a file in the place of another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Deed {
    /// `restore --overwrite` of the first version over an edit that is not synced.
    Restore,
    /// A sync brings what another device has made of the file.
    Receive,
    /// A sync brings the good version of a file that has lost its bytes.
    HealSuspect,
    /// `resolve --keep mine`.
    Resolve,
}

/// One run of a deed, and where it was cut off.
#[derive(Debug, Clone, Copy)]
struct Cut {
    deed: Deed,
    /// After so many calls the process dies.
    calls: u64,
    /// Which of the disks that may be left is left.
    disk: usize,
}

/// What became of it.
struct Ending {
    was_cut: bool,
    disks: usize,
}

struct Machine {
    number: u8,
    folder: SimulatedFileSystem,
    database: Vec<u8>,
}

/// What both devices share.
struct Place {
    clock: Arc<dyn Clock>,
    store: MemoryStore,
    genesis: Genesis,
    dice: Dice,
}

fn path() -> RelativePath {
    RelativePath::new(FILE.as_bytes()).expect("a path")
}

fn bytes_of(disk: &Disk, key: Key) -> Option<Vec<u8>> {
    match &disk.find(key)?.matter {
        Matter::File(bytes) => Some(bytes.to_vec()),
        _ => None,
    }
}

/// What the name leads to on a disk.
fn content(disk: &Disk) -> Option<Vec<u8>> {
    bytes_of(disk, disk.resolve(&path()).expect("it lies in the root")?)
}

/// Everything that is still somewhere, also in the trash and on its way there.
fn kept(disk: &Disk) -> BTreeSet<Vec<u8>> {
    let named = disk.walk().into_iter().map(|(_, key)| key);
    let keys = named.chain(disk.trash.values().copied()).chain(disk.displaced.values().copied());
    keys.filter_map(|key| bytes_of(disk, key)).collect()
}

impl Machine {
    fn write(&self, bytes: &[u8]) {
        self.folder.with_disk(|disk, now| {
            let matter = Matter::File(Arc::new(bytes.to_vec()));
            match disk.resolve(&path()).expect("it lies in the root") {
                Some(key) => {
                    let file = disk.touch(key, now);
                    (file.matter, file.modified) = (matter, now);
                }
                None => {
                    let key = disk.add(matter, 0o644, now, false);
                    disk.link(disk.root(), FILE.as_bytes(), key, now);
                }
            }
        });
    }

    fn lose_bytes(&self) {
        self.folder.with_disk(|disk, _| {
            let key = disk.resolve(&path()).expect("it lies in the root").expect("it is there");
            disk.file_mut(key).matter = Matter::File(Arc::default());
        });
    }

    fn state(&self) -> State {
        let mut connection = Connection::open_in_memory().expect("there is memory");
        if !self.database.is_empty() {
            let (copy, length) = (self.database.as_slice(), self.database.len());
            let read = connection.deserialize_read_exact("main", copy, length, false);
            read.expect("a copy is a database");
        }
        State::from_connection(connection).expect("a database of ours opens")
    }

    fn keep(&mut self, engine: Engine) {
        let mut connection = engine.into_state().into_connection();
        if !connection.is_autocommit() {
            connection.execute_batch("ROLLBACK").expect("a database in memory can roll back");
        }
        self.database = connection.serialize("main").expect("it can be copied").to_vec();
    }
}

impl Place {
    async fn new(clock: Arc<dyn Clock>) -> Self {
        let genesis = Genesis {
            name: "replacing".to_owned(),
            mode: Mode::Plain,
            created: Timestamp::default(),
            content_key: [7; 32],
        };
        let store = MemoryStore::new(None);
        let log = SlotCommitLog::create(Arc::new(store.clone()), clock.clone(), genesis.clone());
        log.await.expect("a store in memory takes a log");
        Self { clock, store, genesis, dice: Dice::new(1) }
    }

    fn machine(&mut self, number: u8) -> Machine {
        let surroundings = Surroundings {
            clock: self.clock.clone(),
            record: Record::new(false),
            chronicle: Chronicle::default(),
            coverage: Coverage::default(),
        };
        let folder = SimulatedFileSystem::new(usize::from(number), self.dice.fork(), surroundings);
        folder.keep_history();
        Machine { number, folder, database: Vec::new() }
    }

    /// Runs a process; returns nothing where it was killed.
    async fn process(
        &mut self,
        machine: &mut Machine,
        work: impl AsyncFnOnce(&mut Engine) -> Result<(), SyncError>,
    ) -> Option<()> {
        machine.folder.start();
        let store = Arc::new(self.store.clone());
        let log =
            SlotCommitLog::with_genesis(store.clone(), self.clock.clone(), self.genesis.clone());
        let environment = Environment {
            file_system: Arc::new(machine.folder.clone()),
            log: Arc::new(log),
            store: Arc::new(ContentStore::new(store)),
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
        let mut engine = Engine::open(environment, machine.state(), options).expect("it opens");
        let ended = run_process(work(&mut engine), pending()).await;
        machine.keep(engine);
        match ended {
            Ok(done) => {
                done.expect("it does its work");
                Some(())
            }
            Err(Killed) => None,
        }
    }

    async fn sync(&mut self, machine: &mut Machine) -> Option<()> {
        self.process(machine, async |engine| engine.sync(Scope::Everything).await.map(drop)).await
    }

    async fn live(&mut self, machine: &mut Machine) {
        self.sync(machine).await.expect("nobody kills it");
    }

    /// Brings everything to the moment before the deed. Returns what the name may lead to until it is done, and what must not
    /// be lost.
    async fn prepare(
        &mut self,
        deed: Deed,
        [one, other]: [&mut Machine; 2],
    ) -> (Vec<&'static [u8]>, Vec<&'static [u8]>) {
        one.write(b"first");
        // What was written just now may change again under the same times, and is never suspect.
        self.clock.sleep(Duration::from_secs(60)).await;
        self.live(one).await;
        self.live(other).await;
        match deed {
            Deed::Restore => {
                one.write(b"second");
                self.live(one).await;
                one.write(b"not synced");
                (vec![b"not synced", b"first"], vec![b"not synced"])
            }
            Deed::Receive => {
                other.write(b"second");
                self.live(other).await;
                (vec![b"first", b"second"], Vec::new())
            }
            Deed::HealSuspect => {
                one.lose_bytes();
                (vec![b"", b"first"], Vec::new())
            }
            Deed::Resolve => {
                other.write(b"theirs");
                self.live(other).await;
                one.write(b"mine");
                self.live(one).await;
                (vec![b"theirs", b"mine"], vec![b"theirs", b"mine"])
            }
        }
    }

    async fn act(&mut self, deed: Deed, machine: &mut Machine) -> Option<()> {
        self.process(machine, async |engine| match deed {
            Deed::Restore => engine.restore(&path(), At::Seq(1), None, true).await.map(drop),
            Deed::Receive | Deed::HealSuspect => engine.sync(Scope::Everything).await.map(drop),
            Deed::Resolve => engine.resolve(&path(), Keep::Mine).await.map(drop),
        })
        .await
    }
}

fn cut_off(cut: Cut) -> Ending {
    in_virtual_time(async |clock| {
        let mut place = Place::new(clock).await;
        let (mut one, mut other) = (place.machine(1), place.machine(2));
        let (may_be, precious) = place.prepare(cut.deed, [&mut one, &mut other]).await;
        // What was written by hand is on the disk.
        one.folder.fall_back_to(one.folder.disk());
        one.folder.die_after_start(Some(cut.calls));
        let was_cut = place.act(cut.deed, &mut one).await.is_none();
        let disks = one.folder.disks_since_flush();
        one.folder.fall_back_to(disks[cut.disk].clone());
        let disk = one.folder.disk();
        let found = content(&disk).unwrap_or_else(|| panic!("{cut:?}: there is no file"));
        assert!(may_be.contains(&found.as_slice()), "{cut:?}: {found:?}");
        place.live(&mut one).await;
        place.live(&mut other).await;
        place.live(&mut one).await;
        let (here, there) = (content(&one.folder.disk()), content(&other.folder.disk()));
        assert!(here.is_some() && here == there, "{cut:?}: {here:?} and {there:?}");
        // The other device's copy comes and goes with the log; what counts is what this one has.
        let all = kept(&one.folder.disk());
        for bytes in precious {
            assert!(all.contains(bytes), "{cut:?}: {bytes:?} is not in {all:?}");
        }
        match cut.deed {
            Deed::Restore => {}
            Deed::Receive => assert_eq!(here.as_deref(), Some(&b"second"[..]), "{cut:?}"),
            Deed::HealSuspect => assert_eq!(here.as_deref(), Some(&b"first"[..]), "{cut:?}"),
            Deed::Resolve if was_cut => {}
            Deed::Resolve => assert_eq!(here.as_deref(), Some(&b"mine"[..]), "{cut:?}"),
        }
        Ending { was_cut, disks: disks.len() }
    })
}

/// Cuts a deed off after each of its calls, and lets each disk be left. Returns how many disks there were.
fn cut_off_everywhere(deed: Deed) -> usize {
    let mut disks = 0;
    for calls in 0.. {
        let mut ending = cut_off(Cut { deed, calls, disk: 0 });
        for disk in 1..ending.disks {
            ending = cut_off(Cut { deed, calls, disk });
        }
        disks += ending.disks;
        if !ending.was_cut {
            assert!(calls > 3, "{deed:?} makes some calls");
            break;
        }
    }
    disks
}

#[test]
fn restore_over_a_file_leaves_no_moment_without_one() {
    assert!(cut_off_everywhere(Deed::Restore) > 10);
}

#[test]
fn received_version_leaves_no_moment_without_a_file() {
    assert!(cut_off_everywhere(Deed::Receive) > 10);
}

#[test]
fn good_version_of_a_suspect_leaves_no_moment_without_a_file() {
    assert!(cut_off_everywhere(Deed::HealSuspect) > 10);
}

#[test]
fn resolution_leaves_no_moment_without_a_file() {
    assert!(cut_off_everywhere(Deed::Resolve) > 10);
}
