//! Who may change what this device remembers: one process at a time in a home, and one in a folder.
//!
//! *Participants*: the processes of one home, which are one device. *Goals*: a second process that would change anything
//! is told so at once, with exit 11; whoever only looks never waits and never disturbs; several folders can be kept in
//! sync at once. *Non-goals*: waiting in a queue. *Invariants*: a process holds the home before it holds a folder; the
//! kernel frees both when it ends, however it ends. A home is held by one process alone, or by watches, each of another
//! folder, and what works for a moment beside them: together they are the background service of the device.

use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use sync::file_system::native::{FolderLock, NativeFileSystem};

use crate::commands::daemon;
use crate::error::{Code, CommandError, Result};
use crate::folder::Folder;
use crate::home::{Home, file_error};
use crate::system::{self, FileLock};
use crate::text::quoted;

/// The right to change what the home remembers.
#[derive(Debug)]
pub(crate) struct HomeClaim {
    _lock: FileLock,
}

impl HomeClaim {
    /// Claims the home for one process alone.
    ///
    /// # Errors
    /// [`Code::Locked`].
    pub(crate) fn alone(home: &Home) -> Result<Self> {
        Self::acquire(home, FileLock::try_acquire)
    }

    /// Claims the home together with watches, and with others that work for a moment beside them.
    ///
    /// # Errors
    /// [`Code::Locked`].
    pub(crate) fn beside_watches(home: &Home) -> Result<Self> {
        Self::acquire(home, FileLock::try_acquire_shared)
    }

    fn acquire(
        home: &Home,
        take: impl FnOnce(&Path) -> std::io::Result<Option<FileLock>>,
    ) -> Result<Self> {
        let path = home.lock();
        let folder = path.parent().unwrap_or(Path::new("."));
        let taken = system::make_private_folder(folder).and_then(|()| take(&path));
        match taken.map_err(|error| file_error(&path, &error))? {
            Some(lock) => Ok(Self { _lock: lock }),
            None => Err(home_is_held(home)),
        }
    }
}

/// Says who has the home, and how to end that.
fn home_is_held(home: &Home) -> CommandError {
    let error =
        CommandError::new(Code::Locked, "another process of this device is at work in its home")
            .state("nothing was changed");
    let watched = Folder::all(home).unwrap_or_default().into_iter().find_map(|folder| {
        let watch = daemon::running(&folder).ok().flatten()?;
        Some((folder, watch.pid))
    });
    let Some((folder, pid)) = watched else {
        return error
            .cause(format!("it holds {}", home.lock().display()))
            .help("syncline status", "looks meanwhile; try again when the other one has ended");
    };
    let root = quoted(&folder.root.to_string_lossy());
    error
        .cause(format!("process {pid} keeps {} in sync", folder.root.display()))
        .help(format!("syncline daemon stop {root}"), "ends it; then try again")
        .help(
            "SYNCLINE_HOME=DIR",
            "another home is another device, which may work at the same time",
        )
}

/// The right to work on a folder alone.
#[derive(Debug)]
pub(crate) struct FolderClaim {
    _of_home: FileLock,
    _of_folder: FolderLock,
    /// Held beside the claim by who works beside watches.
    _turn: Option<FileLock>,
}

impl FolderClaim {
    /// Claims the folder, and clears away what a process left that was killed.
    ///
    /// # Errors
    /// [`Code::Locked`].
    pub(crate) fn acquire(folder: &Folder) -> Result<Self> {
        let path = folder.memory_file("lock");
        let of_home = FileLock::try_acquire(&path).map_err(|error| file_error(&path, &error))?;
        let of_home = of_home.ok_or_else(folder_is_held)?;
        let of_folder = FolderLock::acquire(&folder.root)?;
        NativeFileSystem::open(&folder.root)?.clear_staged()?;
        Ok(Self { _of_home: of_home, _of_folder: of_folder, _turn: None })
    }
}

/// The file with the right to work on a folder next.
const TURN: &str = "turn";

/// How long a watch may take to step aside.
const ASIDE_PATIENCE: Duration = Duration::from_secs(15);

/// How long somebody may have the folder who is no watch: one that is just starting is not known as one yet.
const STRANGER_PATIENCE: Duration = Duration::from_secs(1);

/// How long the turn may be taken by a watch that only looks whether it is free.
const TURN_PATIENCE: Duration = Duration::from_millis(100);

/// How often is looked whether it has.
const LOOK_EVERY: Duration = Duration::from_millis(10);

impl FolderClaim {
    /// Claims the folder, and asks a watch that has it to step aside meanwhile. Who works beside watches has the turn all the time,
    /// so that a watch that comes back in between waits for it.
    ///
    /// # Errors
    /// [`Code::Locked`].
    pub(crate) fn acquire_from_watch(folder: &Folder) -> Result<Self> {
        let turn = take_turn(folder)?.ok_or_else(folder_is_held)?;
        let mut asked = None;
        let (mut waited, mut unknown_for) = (Duration::ZERO, Duration::ZERO);
        loop {
            let refused = match Self::acquire(folder) {
                Err(error) if error.code == Code::Locked => error,
                other => return other.map(|claim| Self { _turn: Some(turn), ..claim }),
            };
            let watch = daemon::running(folder)?;
            let pid = watch.and_then(|watch| Pid::from_raw(i32::try_from(watch.pid).ok()?));
            match pid {
                Some(pid) if asked == Some(pid) => {}
                Some(pid) => {
                    // One that has just ended is out of the way, too.
                    let _ = kill_process(pid, Signal::USR1);
                    asked = Some(pid);
                }
                None => unknown_for += LOOK_EVERY,
            }
            if waited >= ASIDE_PATIENCE || unknown_for >= STRANGER_PATIENCE {
                return Err(refused);
            }
            std::thread::sleep(LOOK_EVERY);
            waited += LOOK_EVERY;
        }
    }
}

/// Takes the right to work beside a watch; nothing where another command has it.
fn take_turn(folder: &Folder) -> Result<Option<FileLock>> {
    let path = folder.memory_file(TURN);
    for _ in 0..TURN_PATIENCE.as_millis() / LOOK_EVERY.as_millis() {
        let turn = FileLock::try_acquire(&path).map_err(|error| file_error(&path, &error))?;
        if turn.is_some() {
            return Ok(turn);
        }
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(None)
}

/// Waits a moment, and until whoever asked a watch to step aside has done its work.
///
/// # Errors
/// [`Code::File`].
pub(crate) async fn wait_for_turn(folder: &Folder) -> Result<()> {
    let path = folder.memory_file(TURN);
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        if FileLock::try_acquire(&path).map_err(|error| file_error(&path, &error))?.is_some() {
            return Ok(());
        }
    }
}

fn folder_is_held() -> CommandError {
    CommandError::new(Code::Locked, "another process of this device works on the folder")
        .help("syncline daemon status", "shows what runs in the background")
}
