//! Programs that make a second folder of the same machine equal: unison and rclone.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Family, Peer, Room, first_line};
use crate::bench::sample::Sample;
use crate::failure::Result;
use crate::process;

pub(super) struct SecondFolder {
    name: &'static str,
    program: &'static str,
    version_words: &'static [&'static str],
    command: fn(&Room, &Path, &Path) -> Command,
}

/// unison, local to local.
pub(super) fn unison() -> SecondFolder {
    SecondFolder {
        name: "unison local",
        program: "unison",
        version_words: &["-version"],
        command: |room, from, to| {
            let mut command = Command::new("unison");
            command.env("UNISON", room.scratch.join("unison")).arg(from).arg(to);
            command.args(["-batch", "-auto", "-times", "-perms", "-1", "-log=false", "-silent"]);
            command.args(["-confirmbigdel=false", "-ui", "text"]);
            command
        },
    }
}

/// rclone, local to local.
pub(super) fn rclone() -> SecondFolder {
    SecondFolder {
        name: "rclone local",
        program: "rclone",
        version_words: &["version"],
        command: |room, from, to| {
            let mut command = Command::new("rclone");
            command.arg("sync").arg(from).arg(to).args(["--links", "--quiet", "--config"]);
            command.arg(room.scratch.join("rclone.conf"));
            command.env("RCLONE_CACHE_DIR", room.scratch.join("cache"));
            command
        },
    }
}

impl Peer for SecondFolder {
    fn name(&self) -> &'static str {
        self.name
    }

    fn family(&self) -> Family {
        Family::Sync
    }

    fn program(&self) -> (&'static str, Option<&'static str>) {
        (self.program, Some(self.program))
    }

    fn version(&self) -> String {
        first_line(self.program, self.version_words)
    }

    fn begin(&mut self, room: &Room) -> Result<()> {
        std::fs::write(room.scratch.join("rclone.conf"), "")?;
        Ok(std::fs::create_dir_all(room.scratch.join("copy"))?)
    }

    fn send(&mut self, room: &Room) -> Result<Sample> {
        let command = (self.command)(room, &room.source, &room.scratch.join("copy"));
        Ok(Sample::of(&process::measure(&command, &room.scratch, &[0])?))
    }

    fn restore(&mut self, room: &Room) -> Result<Option<Sample>> {
        std::fs::create_dir_all(&room.target)?;
        let command = (self.command)(room, &room.scratch.join("copy"), &room.target);
        Ok(Some(Sample::of(&process::measure(&command, &room.scratch, &[0])?)))
    }

    fn copy_of_source(&self, room: &Room) -> Option<PathBuf> {
        Some(room.scratch.join("copy"))
    }
}
