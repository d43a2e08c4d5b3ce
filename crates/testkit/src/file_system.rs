//! A simulated folder: the same promises as the real one, and all the bad days of a disk, by seed.
//!
//! *Participants*: the engine, through [`SimulatedFileSystem`]; users, who change the disk between any two calls of the
//! engine; the world, which cuts the power. *Goals*: every call is a point where the process may die, the disk may fail,
//! and a user may act. *Invariants*: after a power cut the disk is in a state that a journaling file system allows: all
//! names and attributes up to some moment since the last flush, and for each file written since then its bytes or none.
//!
//! Reading order: [`disk`], this module, `calls`, [`power`].

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use model::{Clock, RelativePath, Timestamp};
use parking_lot::Mutex;
use sync::file_system::FileError;

use crate::chronicle::Chronicle;
use crate::coverage::{Coverage, Fault};
use crate::executor::kill_here;
use crate::random::Dice;
use crate::record::Record;
use crate::trace::User;
use disk::{Disk, Key, Matter};

mod calls;
pub mod disk;
pub mod power;

/// How often calls fail, in a thousand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DiskFaults {
    /// A call fails for no reason.
    pub error: u32,
    /// A call that writes finds no space.
    pub no_space: u32,
    /// A flush fails, and loses what it should have flushed.
    pub flush: u32,
    /// A user acts before a call.
    pub user: u32,
}

/// A folder on a simulated disk; clones share it.
#[derive(Clone)]
pub struct SimulatedFileSystem(Arc<Mutex<Inner>>);

/// What a folder needs from its world.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// The clock of the device.
    pub clock: Arc<dyn Clock>,
    /// What happened.
    pub record: Record,
    /// What users did.
    pub chronicle: Chronicle,
    /// Which faults came to be.
    pub coverage: Coverage,
}

struct Inner {
    device: usize,
    disk: Disk,
    /// The states since the last flush, oldest first: what a power cut may leave.
    since_flush: Vec<Disk>,
    /// What was lost by a flush that failed: no later flush makes these bytes durable.
    poisoned: BTreeMap<Key, Arc<Vec<u8>>>,
    keeps_history: bool,
    /// The disk before what the user is just doing, where a listing sees it half done.
    half_done: Option<Disk>,
    is_dead: bool,
    is_mounted: bool,
    calls_left: Option<u64>,
    calls_of_next: Option<u64>,
    faults: DiskFaults,
    user: Option<User>,
    dice: Dice,
    surroundings: Surroundings,
}

impl fmt::Debug for SimulatedFileSystem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "the folder of device {}", self.0.lock().device)
    }
}

/// What a call is about to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    Read(&'static str),
    Write(&'static str),
    Flush,
}

impl SimulatedFileSystem {
    /// Makes an empty folder.
    pub fn new(device: usize, dice: Dice, surroundings: Surroundings) -> Self {
        let disk = Disk::new(surroundings.clock.now());
        Self(Arc::new(Mutex::new(Inner {
            device,
            since_flush: Vec::new(),
            poisoned: BTreeMap::new(),
            disk,
            keeps_history: false,
            half_done: None,
            is_dead: false,
            is_mounted: true,
            calls_left: None,
            calls_of_next: None,
            faults: DiskFaults::default(),
            user: None,
            dice,
            surroundings,
        })))
    }

    /// Sets how often calls fail.
    pub fn set_faults(&self, faults: DiskFaults) {
        self.0.lock().faults = faults;
    }

    /// Keeps every state since the last flush from now on, for power cuts.
    pub fn keep_history(&self) {
        self.0.lock().keeps_history = true;
    }

    /// Lets the process die at the call after so many more.
    pub fn die_after(&self, calls: Option<u64>) {
        self.0.lock().calls_left = calls;
    }

    /// Lets the next process die at the call after so many.
    pub fn die_after_start(&self, calls: Option<u64>) {
        self.0.lock().calls_of_next = calls;
    }

    /// Lets the user do more.
    pub fn give_deeds(&self, deeds: u32) {
        if let Some(user) = &mut self.0.lock().user {
            user.give(deeds);
        }
    }

    /// Tells whether the disk is there.
    pub fn is_mounted(&self) -> bool {
        self.0.lock().is_mounted
    }

    /// The process is dead: what it still holds open has no effect any more.
    pub fn die(&self) {
        self.0.lock().is_dead = true;
    }

    /// Tells whether the process is dead.
    pub fn is_dead(&self) -> bool {
        self.0.lock().is_dead
    }

    /// A new process is there. What the dead one had left aside is removed, as the real folder does when it is opened, and
    /// what it had displaced is kept.
    pub fn start(&self) {
        let mut inner = self.0.lock();
        inner.is_dead = false;
        inner.calls_left = inner.calls_of_next.take();
        let staged = std::mem::take(&mut inner.disk.staged);
        for key in staged.into_values() {
            inner.disk.remove(key);
        }
        for (token, key) in std::mem::take(&mut inner.disk.displaced) {
            let name = model::Name::new(format!("{token:016x}")).expect("digits make a name");
            let path = RelativePath::ROOT.join(&name).expect("a name makes a path");
            inner.disk.keep("interrupted", &path, key);
        }
    }

    /// Takes the disk away, or brings it back: without it the folder is an empty directory.
    pub fn mount(&self, is_mounted: bool) {
        self.0.lock().is_mounted = is_mounted;
    }

    /// Gives the folder a user who acts whenever it happens, or takes it away.
    pub fn set_user(&self, user: Option<User>) {
        self.0.lock().user = user;
    }

    /// Lets the user act now. Returns whether there is anything left to do.
    pub fn act(&self) -> bool {
        self.0.lock().act(true)
    }

    /// Lets `work` change the disk as a user would.
    pub fn with_disk<T>(&self, work: impl FnOnce(&mut Disk, Timestamp) -> T) -> T {
        let mut inner = self.0.lock();
        let now = inner.now();
        let result = work(&mut inner.disk, now);
        inner.keep();
        result
    }

    /// Makes the folder a copy of another one.
    pub fn become_copy(&self, other: &Self) {
        let disk = other.disk();
        let mut inner = self.0.lock();
        inner.disk = disk.copied(inner.now());
        inner.flush();
    }

    /// Returns the directory in which the user has last done something.
    pub fn last_directory(&self) -> Option<RelativePath> {
        self.0.lock().user.as_ref()?.last_directory()
    }

    /// Returns a copy of the disk.
    pub fn disk(&self) -> Disk {
        self.0.lock().disk.clone()
    }

    /// Begins a call: whatever can happen before it happens now.
    fn enter(
        &self,
        call: Call,
        path: &RelativePath,
    ) -> Result<parking_lot::MutexGuard<'_, Inner>, FileError> {
        let mut inner = self.0.lock();
        if let Err(reason) = inner.before(call, path) {
            let Some(error) = reason else {
                drop(inner);
                kill_here();
            };
            return Err(error);
        }
        Ok(inner)
    }
}

impl Inner {
    fn now(&self) -> Timestamp {
        self.surroundings.clock.now()
    }

    /// Keeps the state of the disk after a change.
    fn keep(&mut self) {
        if self.keeps_history {
            self.since_flush.push(self.disk.clone());
        }
    }

    fn act(&mut self, may_hide: bool) -> bool {
        let now = self.now();
        let Some(mut user) = self.user.take() else { return false };
        let is_busy = user.act(&mut self.disk, now, &self.surroundings, may_hide);
        self.user = Some(user);
        self.keep();
        is_busy
    }

    /// Returns why a call fails; nothing inside where the process dies.
    fn before(&mut self, call: Call, path: &RelativePath) -> Result<(), Option<FileError>> {
        let (Call::Read(name) | Call::Write(name)) = (match call {
            Call::Flush => Call::Write("flush"),
            call => call,
        }) else {
            return Ok(());
        };
        let device = self.device;
        self.surroundings.record.note(name, format_args!("[{device}] {path}"));
        self.surroundings.record.mix_bytes(path.as_bytes());
        if self.is_dead {
            return Err(None);
        }
        if let Some(left) = &mut self.calls_left {
            if *left == 0 {
                self.is_dead = true;
                self.surroundings.coverage.hit(Fault::KilledAtCall);
                self.surroundings
                    .record
                    .note("killed", format_args!("[{device}] at {name} {path}"));
                return Err(None);
            }
            *left -= 1;
        }
        if self.faults.user > 0 && self.dice.chance(self.faults.user) && self.user.is_some() {
            self.surroundings.coverage.hit(Fault::UserBetweenCalls);
            // Renaming sets the change time, so an edit in the very moment before it that keeps size and time is seen
            // by nobody, here and on real disks.
            let may_hide = name != "rename";
            let before = (name == "list" && self.dice.chance(500)).then(|| self.disk.clone());
            self.act(may_hide);
            self.half_done = before;
        }
        self.fail(call, path).map_or(Ok(()), |error| Err(Some(error)))
    }

    fn fail(&mut self, call: Call, path: &RelativePath) -> Option<FileError> {
        let (faults, coverage) = (self.faults, self.surroundings.coverage.clone());
        let path = path.clone();
        match call {
            Call::Write(_) if faults.no_space > 0 && self.dice.chance(faults.no_space) => {
                coverage.hit(Fault::NoSpaceOnDisk);
                Some(FileError::NoSpace(path))
            }
            Call::Read(_) | Call::Write(_)
                if faults.error > 0 && self.dice.chance(faults.error) =>
            {
                coverage.hit(Fault::DiskError);
                Some(FileError::Other { path, reason: "input/output error".to_owned() })
            }
            Call::Flush if faults.flush > 0 && self.dice.chance(faults.flush) => {
                coverage.hit(Fault::FlushFailed);
                self.poison();
                Some(FileError::NotDurable("input/output error".to_owned()))
            }
            _ => None,
        }
    }
}

/// Reads the bytes of a file.
fn bytes_of(matter: &Matter) -> Option<Arc<Vec<u8>>> {
    match matter {
        Matter::File(bytes) => Some(bytes.clone()),
        _ => None,
    }
}
