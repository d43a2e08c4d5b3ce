//! Syncline itself: once over a plain store, once through its server.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Family, Peer, Room, first_line};
use crate::bench::inputs::bytes_below;
use crate::bench::sample::Sample;
use crate::failure::{Result, fail};
use crate::process;
use crate::syncline::{self, Device, Place, SYNC_DONE, Server, Transferred};

fn measured(command: &Command, room: &Room) -> Result<Sample> {
    let usage = process::measure(command, &room.scratch, &SYNC_DONE)?;
    Ok(Sample::of(&usage).with_transferred(Transferred::read(&usage.stdout)))
}

fn first_device(binary: &Path, room: &Room, place: Place) -> Device {
    let device = syncline::device(binary, &room.scratch, "first", place);
    Device { folder: room.source.clone(), ..device }
}

fn second_device(binary: &Path, room: &Room, place: Place) -> Device {
    let device = syncline::device(binary, &room.scratch, "second", place);
    Device { folder: room.target.clone(), ..device }
}

/// Serverless: the workspace lives in a folder that is used as a store.
pub(super) struct StoredSyncline {
    binary: PathBuf,
}

impl StoredSyncline {
    pub(super) fn new(binary: &Path) -> Self {
        Self { binary: binary.to_owned() }
    }

    fn place(room: &Room) -> Place {
        Place::Stored(room.scratch.join("store"))
    }
}

impl Peer for StoredSyncline {
    fn name(&self) -> &'static str {
        "syncline file:"
    }

    fn family(&self) -> Family {
        Family::Backup
    }

    fn is_ours(&self) -> bool {
        true
    }

    fn program(&self) -> (&'static str, Option<&'static str>) {
        ("true", None)
    }

    fn version(&self) -> String {
        first_line(&self.binary.to_string_lossy(), &["version"])
    }

    fn begin(&mut self, room: &Room) -> Result<()> {
        std::fs::create_dir_all(room.scratch.join("store"))?;
        first_device(&self.binary, room, Self::place(room)).init()
    }

    fn send(&mut self, room: &Room) -> Result<Sample> {
        let store = room.scratch.join("store");
        let before = bytes_below(&store)?;
        let device = first_device(&self.binary, room, Self::place(room));
        let mut sample = measured(&device.sync_command(), room)?;
        sample.stored_bytes = Some(bytes_below(&store)?.saturating_sub(before));
        Ok(sample)
    }

    fn restore(&mut self, room: &Room) -> Result<Option<Sample>> {
        let device = second_device(&self.binary, room, Self::place(room));
        std::fs::create_dir_all(&device.home)?;
        measured(&device.clone_command(), room).map(Some)
    }

    fn fetch(&mut self, room: &Room) -> Result<Option<Sample>> {
        let device = second_device(&self.binary, room, Self::place(room));
        measured(&device.sync_command(), room).map(Some)
    }
}

/// Served: the workspace lives on a server on the loopback.
pub(super) struct ServedSyncline {
    binary: PathBuf,
    server: Option<Server>,
}

impl ServedSyncline {
    pub(super) fn new(binary: &Path) -> Self {
        Self { binary: binary.to_owned(), server: None }
    }

    /// Measures a command together with what the server spends on it.
    fn with_server(&self, command: &Command, room: &Room) -> Result<Sample> {
        let Some(server) = &self.server else { return fail("the server is not running") };
        let data = room.scratch.join("server");
        let bytes_before = bytes_below(&data)?;
        process::reset_peak(server.id());
        let before = process::running(server.id())?.cpu_seconds;
        let mut sample = measured(command, room)?;
        let after = process::running(server.id())?;
        sample.stored_bytes = Some(bytes_below(&data)?.saturating_sub(bytes_before));
        Ok(sample.with_server(after.cpu_seconds - before, after.peak_mib))
    }
}

impl Peer for ServedSyncline {
    fn name(&self) -> &'static str {
        "syncline serve"
    }

    fn family(&self) -> Family {
        Family::Sync
    }

    fn is_ours(&self) -> bool {
        true
    }

    fn program(&self) -> (&'static str, Option<&'static str>) {
        ("true", None)
    }

    fn version(&self) -> String {
        first_line(&self.binary.to_string_lossy(), &["version"])
    }

    fn begin(&mut self, room: &Room) -> Result<()> {
        let server = Server::start(&self.binary, &room.scratch.join("server"))?;
        let first = first_device(&self.binary, room, Place::Served);
        first.login(&server.url(), "first")?;
        first.init()?;
        second_device(&self.binary, room, Place::Served).login(&server.url(), "second")?;
        self.server = Some(server);
        Ok(())
    }

    fn send(&mut self, room: &Room) -> Result<Sample> {
        let device = first_device(&self.binary, room, Place::Served);
        self.with_server(&device.sync_command(), room)
    }

    fn restore(&mut self, room: &Room) -> Result<Option<Sample>> {
        let device = second_device(&self.binary, room, Place::Served);
        self.with_server(&device.clone_command(), room).map(Some)
    }

    fn fetch(&mut self, room: &Room) -> Result<Option<Sample>> {
        let device = second_device(&self.binary, room, Place::Served);
        self.with_server(&device.sync_command(), room).map(Some)
    }

    fn end(&mut self) {
        self.server = None;
    }
}
