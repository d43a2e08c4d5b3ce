//! What the program lends to experiments: its stores, and two devices with a server, as child processes.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use lab::bench::driver::{Driver, Failure};
use lab::targets::{
    Carried, CleanedUp, Counting, Group, Homes, Moved, Sending, Synced, Targets, Workspace,
};
use model::pool::PoolConfig;
use storage::placement::Placement;
use storage::{Credentials, Opening};
use tokio::runtime::Runtime;

use super::relay::Relay;
use crate::commands::bench::{Store, in_words};
use crate::commands::children::{Child, Device, Stage};
use crate::context::Context;
use crate::error::{Code, CommandError, Result};
use crate::folder::path_text;
use crate::home::file_error;

/// The name of the workspace.
const WORKSPACE: &str = "Lab";

/// What a cleanup is told to keep: the last version of each file.
const KEEPS_NOTHING_OLD: &str = "deleted:0s";

/// The line has come to rest when nothing has gone over it for so long.
const SILENCE: Duration = Duration::from_millis(700);
const LOOK_EVERY: Duration = Duration::from_millis(20);
const PATIENCE: Duration = Duration::from_secs(60);

/// Opens stores of this program.
#[derive(Debug)]
pub(super) struct Lent {
    runtime: Runtime,
}

impl Lent {
    /// Starts what drives connections.
    pub(super) fn start(context: &Context<'_>) -> Result<Self> {
        Ok(Self { runtime: context.runtime()? })
    }
}

impl Targets for Lent {
    fn store(&self, url: &str) -> Result<Box<dyn Driver>, Failure> {
        let _guard = self.runtime.enter();
        let store = storage::open_with(url, &Credentials::none(), Opening::CreateIfMissing)?;
        Ok(Box::new(Store::new(store, self.runtime.handle().clone())))
    }

    fn synced(&self, room: &Path, sending: Sending) -> Result<Box<dyn Synced>, Failure> {
        Pair::start(room, sending)
            .map(|pair| -> Box<dyn Synced> { Box::new(pair) })
            .map_err(|error| in_words(&error))
    }

    fn group(
        &self,
        room: &Path,
        devices: usize,
        counting: Counting,
    ) -> Result<Box<dyn Group>, Failure> {
        Several::start(room, devices, counting)
            .map(|several| -> Box<dyn Group> { Box::new(several) })
            .map_err(|error| in_words(&error))
    }

    fn workspace(&self, room: &Path) -> Result<Box<dyn Workspace>, Failure> {
        OverAStore::start(room)
            .map(|workspace| -> Box<dyn Workspace> { Box::new(workspace) })
            .map_err(|error| in_words(&error))
    }

    fn homes(&self, config: &PoolConfig) -> Homes {
        let placement = Placement::new(config);
        Box::new(move |object| placement.order(object).homes().to_vec())
    }
}

/// Two devices with one workspace, of which the first reaches its server by a way on which bytes are counted. They end in this order.
#[derive(Debug)]
struct Pair {
    _watches: Vec<Child>,
    relay: Relay,
    _server: Child,
    first: Device,
    other: PathBuf,
}

impl Pair {
    fn start(room: &Path, sending: Sending) -> Result<Self> {
        let stage = Stage::new(room.to_owned())?;
        let (server, url) = stage.start_server()?;
        let relay = address(&url).and_then(|address| Relay::start(address).map_err(no_way))?;
        let (first, other) = (stage.device("first"), stage.device("other"));
        first.login(&format!("http://{}", relay.address()))?;
        other.login(&url)?;
        first.run(&["init", &first.folder_text()?, "--workspace", WORKSPACE])?;
        first.run(&["sync", &first.folder_text()?])?;
        other.run(&["clone", WORKSPACE, &other.folder_text()?])?;
        let mut watches = vec![other.watch()?];
        if sending == Sending::Watching {
            watches.push(first.watch()?);
        }
        Ok(Self { _watches: watches, relay, _server: server, first, other: other.folder })
    }
}

impl Synced for Pair {
    fn folders(&self) -> [&Path; 2] {
        [&self.first.folder, &self.other]
    }

    fn send(&self) -> Result<(), Failure> {
        let folder = self.first.folder_text().map_err(|error| in_words(&error))?;
        self.first.run(&["sync", &folder]).map(drop).map_err(|error| in_words(&error))
    }

    #[expect(clippy::disallowed_methods, reason = "an experiment is about real time")]
    fn at_rest(&self) -> Moved {
        let began = Instant::now();
        let (mut last, mut quiet) = (self.relay.moved(), began);
        while quiet.elapsed() < SILENCE && began.elapsed() < PATIENCE {
            thread::sleep(LOOK_EVERY);
            let now = self.relay.moved();
            if now != last {
                (last, quiet) = (now, Instant::now());
            }
        }
        last
    }
}

/// Devices that watch one workspace, each with a way of its own to the server where bytes are counted. They end in this order.
#[derive(Debug)]
struct Several {
    _watches: Vec<Child>,
    relays: Vec<Relay>,
    _server: Child,
    folders: Vec<PathBuf>,
}

impl Several {
    fn start(room: &Path, devices: usize, counting: Counting) -> Result<Self> {
        let stage = Stage::new(room.to_owned())?;
        let (server, url) = stage.start_server()?;
        let (mut watches, mut relays, mut folders) = (Vec::new(), Vec::new(), Vec::new());
        for number in 1..=devices {
            let device = stage.device(&format!("device-{number}"));
            let mut way = url.clone();
            if counting == Counting::On {
                let relay =
                    address(&url).and_then(|address| Relay::listening(address).map_err(no_way))?;
                way = format!("http://{}", relay.address());
                relays.push(relay);
            }
            device.login(&way)?;
            let folder = device.folder_text()?;
            if number == 1 {
                device.run(&["init", &folder, "--workspace", WORKSPACE])?;
                device.run(&["sync", &folder])?;
            } else {
                device.run(&["clone", WORKSPACE, &folder])?;
            }
            watches.push(device.watch()?);
            folders.push(device.folder);
        }
        Ok(Self { _watches: watches, relays, _server: server, folders })
    }
}

impl Group for Several {
    fn folders(&self) -> Vec<&Path> {
        self.folders.iter().map(PathBuf::as_path).collect()
    }

    fn carried(&self) -> Result<Vec<Carried>, Failure> {
        self.relays.iter().map(Relay::carried).collect()
    }
}

/// A device with a workspace over a folder.
#[derive(Debug)]
struct OverAStore {
    device: Device,
    store: PathBuf,
}

impl OverAStore {
    fn start(room: &Path) -> Result<Self> {
        let device = Stage::new(room.to_owned())?.device("device");
        let store = room.join("store");
        let url = format!("disk=file:{}", path_text(&store)?);
        let words = ["--workspace", WORKSPACE, "--plain", "--backend", &url];
        device.run(&[&["init", &device.folder_text()?], &words[..]].concat())?;
        Ok(Self { device, store })
    }

    fn clean(&self) -> Result<CleanedUp> {
        let words = ["cleanup", &self.device.folder_text()?, "--keep", KEEPS_NOTHING_OLD];
        let report = self.device.json(&words, &[0])?;
        let number = |name: &str| {
            let nothing = || CommandError::new(Code::Defect, format!("a cleanup tells no {name}"));
            report[name].as_u64().ok_or_else(nothing)
        };
        let packs = bytes_of_packs(&self.store, false);
        Ok(CleanedUp {
            packs: packs.map_err(|source| file_error(&self.store, &source))?,
            needless: number("needless_bytes")?,
            rewritten: number("written_bytes")?,
        })
    }
}

impl Workspace for OverAStore {
    fn folder(&self) -> &Path {
        &self.device.folder
    }

    fn send(&self) -> Result<(), Failure> {
        let folder = self.device.folder_text().map_err(|error| in_words(&error))?;
        // A version may have hardly a file of the one before, and is meant so.
        let words = ["sync", &folder, "--allow-mass-delete", "--yes"];
        self.device.run(&words).map(drop).map_err(|error| in_words(&error))
    }

    fn clean_up(&self) -> Result<CleanedUp, Failure> {
        self.clean().map_err(|error| in_words(&error))
    }
}

/// Adds up the files of a store that are packs: those below a folder `packs` of it.
fn bytes_of_packs(folder: &Path, is_of_packs: bool) -> std::io::Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            bytes += bytes_of_packs(&entry.path(), is_of_packs || entry.file_name() == "packs")?;
        } else if is_of_packs {
            bytes += entry.metadata()?.len();
        }
    }
    Ok(bytes)
}

/// Reads where a server listens that was told to do so on this machine.
fn address(url: &str) -> Result<SocketAddr> {
    let address =
        url.strip_prefix("http://").and_then(|rest| rest.trim_end_matches('/').parse().ok());
    address.ok_or_else(|| CommandError::usage(format!("{url} is no address of this machine")))
}

fn no_way(error: std::io::Error) -> CommandError {
    CommandError::usage("no port of this machine can be listened to").cause(error)
}
