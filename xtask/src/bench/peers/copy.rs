//! `cp -r`, the yardstick: what the file system itself costs.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Family, Peer, Room, first_line};
use crate::bench::sample::Sample;
use crate::failure::Result;
use crate::process;

pub(super) struct Copy;

impl Copy {
    fn copy(source: &Path, target: &Path, room: &Room) -> Result<Sample> {
        let mut command = Command::new("cp");
        command.arg("-r").arg(source).arg(target);
        Ok(Sample::of(&process::measure(&command, &room.scratch, &[0])?))
    }
}

impl Peer for Copy {
    fn name(&self) -> &'static str {
        "cp -r"
    }

    fn family(&self) -> Family {
        Family::Yardstick
    }

    fn program(&self) -> (&'static str, Option<&'static str>) {
        ("cp", None)
    }

    fn version(&self) -> String {
        first_line("cp", &["--version"])
    }

    fn begin(&mut self, _room: &Room) -> Result<()> {
        Ok(())
    }

    fn send(&mut self, room: &Room) -> Result<Sample> {
        let copy = room.scratch.join("copy");
        if copy.exists() {
            std::fs::remove_dir_all(&copy)?;
        }
        Self::copy(&room.source, &copy, room)
    }

    fn restore(&mut self, room: &Room) -> Result<Option<Sample>> {
        Self::copy(&room.scratch.join("copy"), &room.target, room).map(Some)
    }

    fn copy_of_source(&self, room: &Room) -> Option<PathBuf> {
        Some(room.scratch.join("copy"))
    }
}
