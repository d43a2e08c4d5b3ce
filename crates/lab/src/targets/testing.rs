//! Targets for tests: folders, and nothing that keeps them equal.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::pool::PoolConfig;

use super::{
    Carried, CleanedUp, Counting, Group, Homes, Moved, Sending, Synced, Targets, Workspace,
};
use crate::bench::driver::{Driver, Failure, Folder};
use crate::bench::plan::Target;
use crate::experiment::Setting;
use crate::files;

/// Stores that are folders, and two devices that share one.
#[derive(Debug)]
pub(crate) struct Folders;

#[derive(Debug)]
struct Shared(PathBuf);

impl Targets for Folders {
    fn store(&self, url: &str) -> Result<Box<dyn Driver>, Failure> {
        let folder = url.strip_prefix("file:").ok_or_else(|| Failure("no folder".to_owned()))?;
        Ok(Box::new(Folder::new(Path::new(folder), &Target::default())))
    }

    fn synced(&self, room: &Path, _: Sending) -> Result<Box<dyn Synced>, Failure> {
        Ok(Box::new(Shared(room.to_owned())))
    }

    fn group(&self, room: &Path, devices: usize, _: Counting) -> Result<Box<dyn Group>, Failure> {
        Ok(Box::new(Same { folder: room.to_owned(), devices }))
    }

    fn workspace(&self, room: &Path) -> Result<Box<dyn Workspace>, Failure> {
        Ok(Box::new(Shared(room.to_owned())))
    }

    /// In the first stores.
    fn homes(&self, config: &PoolConfig) -> Homes {
        let width = usize::from(config.redundancy.width());
        Box::new(move |_| (0..width).collect())
    }
}

/// Devices that have the same folder, so that what one changes the others have at once.
#[derive(Debug)]
struct Same {
    folder: PathBuf,
    devices: usize,
}

impl Group for Same {
    fn folders(&self) -> Vec<&Path> {
        vec![&self.folder; self.devices]
    }

    /// As ones do that send what is there, and the path of each file.
    fn carried(&self) -> Result<Vec<Carried>, Failure> {
        let (mut contents, mut about) = (0, 0);
        for path in files::below(&self.folder).unwrap() {
            contents += files::read(&path).unwrap().len() as u64;
            about += path.strip_prefix(&self.folder).unwrap().as_os_str().len() as u64;
        }
        let moved = |up| Moved { up, down: 0 };
        let carried = Carried { all: moved(contents + about), contents: moved(contents) };
        Ok(vec![carried; self.devices])
    }
}

impl Synced for Shared {
    fn folders(&self) -> [&Path; 2] {
        [&self.0, &self.0]
    }

    fn send(&self) -> Result<(), Failure> {
        Ok(())
    }

    /// As one does that sends each file whole, and only as it is in the end.
    fn at_rest(&self) -> Moved {
        let sizes = files::below(&self.0)
            .unwrap()
            .into_iter()
            .map(|path| files::read(&path).unwrap().len());
        Moved { up: sizes.sum::<usize>() as u64, down: 0 }
    }
}

/// As one that stores each file whole, and nothing else.
impl Workspace for Shared {
    fn folder(&self) -> &Path {
        &self.0
    }

    fn send(&self) -> Result<(), Failure> {
        Ok(())
    }

    fn clean_up(&self) -> Result<CleanedUp, Failure> {
        Ok(CleanedUp { packs: self.at_rest().up, ..CleanedUp::default() })
    }
}

/// Asks for a small run with them.
pub(crate) fn setting(work: &Path, only: Option<&str>) -> Setting {
    Setting {
        datasets: Vec::new(),
        only: only.map(str::to_owned),
        with_faithful: false,
        seed: 1,
        work: work.to_owned(),
        is_full: false,
        targets: Arc::new(Folders),
    }
}
