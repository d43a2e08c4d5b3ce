//! The targets, each in a folder of its own that goes when it has been measured.

use std::time::Duration;

use crate::bench::driver::{Driver, Failure, Folder, Listed};
use crate::bench::plan;
use crate::error::LabError;
use crate::experiment::Setting;
use crate::room::Room;
use crate::targets::{Sending, Synced, no_target};

/// How far the far store is, there and back: what is left between the continents of a good line.
const ROUND_TRIP: Duration = Duration::from_millis(100);

/// What files go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A folder of this computer.
    Folder,
    /// A store in a folder, which has each file on the disk when it says so.
    Store,
    /// The same, where each call takes a round trip more.
    Far,
    /// A workspace, which has a file when the other device has it.
    Workspace,
}

impl Kind {
    /// All of them, the nearest first.
    pub(super) const ALL: [Self; 4] = [Self::Folder, Self::Store, Self::Far, Self::Workspace];

    /// As in tables.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Folder => "folder",
            Self::Store => "file store",
            Self::Far => "100 ms away",
            Self::Workspace => "workspace",
        }
    }

    /// What reading from it measures nothing but this computer's memory, since the files are here already.
    pub(super) fn is_read_elsewhere(self) -> bool {
        self != Self::Workspace
    }

    /// Opens one of its own.
    pub(super) fn open(self, setting: &Setting) -> Result<Opened, LabError> {
        let room = Room::new(&setting.work)?;
        let failed = |failure| no_target(self.name(), failure);
        let store = || setting.targets.store(&format!("file:{}", room.path().display()));
        let (driver, synced): (Box<dyn Driver>, _) = match self {
            Self::Folder => (Box::new(Folder::new(room.path(), &plan::Target::default())), None),
            Self::Store => (store().map_err(failed)?, None),
            Self::Far => {
                let near = store().map_err(failed)?;
                (Box::new(Far { near }), None)
            }
            Self::Workspace => {
                let synced = setting.targets.synced(room.path(), Sending::Watching);
                let synced = synced.map_err(failed)?;
                (Box::new(seen(synced.as_ref())), Some(synced))
            }
        };
        Ok(Opened { driver, _synced: synced, _room: room })
    }
}

/// A target that goes with its folder, in this order.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) driver: Box<dyn Driver>,
    _synced: Option<Box<dyn Synced>>,
    _room: Room,
}

/// A driver whose writes end when the other folder has them.
pub(super) fn seen(synced: &dyn Synced) -> Folder {
    let [folder, other] = synced.folders();
    let target = plan::Target { seen_in: Some(other.to_owned()), ..plan::Target::default() };
    Folder::new(folder, &target)
}

/// A target at the other end of a line that has a latency, and no limit otherwise.
#[derive(Debug)]
struct Far {
    near: Box<dyn Driver>,
}

impl Far {
    fn reached(&self) -> &dyn Driver {
        std::thread::sleep(ROUND_TRIP);
        self.near.as_ref()
    }
}

impl Driver for Far {
    fn describe(&self) -> String {
        format!("{}, {} ms away", self.near.describe(), ROUND_TRIP.as_millis())
    }

    fn put(&self, path: &str, bytes: &[u8], is_new: bool) -> Result<(), Failure> {
        self.reached().put(path, bytes, is_new)
    }

    fn get(&self, path: &str) -> Result<Option<Vec<u8>>, Failure> {
        self.reached().get(path)
    }

    /// Judged from near: this is no operation.
    fn reread(&self, path: &str) -> Result<Option<Vec<u8>>, Failure> {
        self.near.reread(path)
    }

    fn list(&self, directory: &str) -> Result<Vec<Listed>, Failure> {
        self.reached().list(directory)
    }
}
