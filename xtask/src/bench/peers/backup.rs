//! Programs that keep history in a repository, each as a recipe of three commands.

use std::path::Path;
use std::process::Command;

use super::{Family, Peer, Room, first_line};
use crate::bench::inputs::bytes_below;
use crate::bench::sample::Sample;
use crate::failure::Result;
use crate::process;

const PASSWORD: &str = "for a benchmark";

struct Recipe {
    name: &'static str,
    package: Option<&'static str>,
    version_words: &'static [&'static str],
    begin: fn(&Room) -> Vec<Command>,
    send: fn(&Room, u32) -> Command,
    restore: fn(&Room, u32) -> Command,
}

struct BackupPeer {
    recipe: Recipe,
    sends: u32,
}

pub(super) fn all() -> Vec<Box<dyn Peer>> {
    let recipes = [restic(), rustic(), kopia(), borg(), casync()];
    recipes
        .into_iter()
        .map(|recipe| Box::new(BackupPeer { recipe, sends: 0 }) as Box<dyn Peer>)
        .collect()
}

impl Peer for BackupPeer {
    fn name(&self) -> &'static str {
        self.recipe.name
    }

    fn family(&self) -> Family {
        Family::Backup
    }

    fn program(&self) -> (&'static str, Option<&'static str>) {
        (self.recipe.name, self.recipe.package)
    }

    fn version(&self) -> String {
        first_line(self.recipe.name, self.recipe.version_words)
    }

    fn begin(&mut self, room: &Room) -> Result<()> {
        self.sends = 0;
        std::fs::write(room.scratch.join("password"), PASSWORD)?;
        for mut command in (self.recipe.begin)(room) {
            process::output(&mut command)?;
        }
        Ok(())
    }

    fn send(&mut self, room: &Room) -> Result<Sample> {
        self.sends += 1;
        let before = bytes_below(&repository(room))?;
        let command = (self.recipe.send)(room, self.sends);
        let mut sample = Sample::of(&process::measure(&command, &room.scratch, &[0])?);
        sample.stored_bytes = Some(bytes_below(&repository(room))?.saturating_sub(before));
        Ok(sample)
    }

    fn restore(&mut self, room: &Room) -> Result<Option<Sample>> {
        std::fs::create_dir_all(&room.target)?;
        let command = (self.recipe.restore)(room, self.sends);
        Ok(Some(Sample::of(&process::measure(&command, &room.scratch, &[0])?)))
    }
}

fn repository(room: &Room) -> std::path::PathBuf {
    room.scratch.join("repository")
}

fn with_repository(program: &str, flag: &str, room: &Room) -> Command {
    let mut command = Command::new(program);
    command.arg(flag).arg(repository(room)).current_dir(&room.source);
    command
}

fn restic() -> Recipe {
    fn restic(room: &Room) -> Command {
        let mut command = with_repository("restic", "--repo", room);
        command.arg("--password-file").arg(room.scratch.join("password"));
        command.arg("--cache-dir").arg(room.scratch.join("cache")).arg("--quiet");
        command
    }
    Recipe {
        name: "restic",
        package: Some("restic"),
        version_words: &["version"],
        begin: |room| {
            let mut command = restic(room);
            command.arg("init").arg("--repository-version=2");
            vec![command]
        },
        send: |room, _| {
            let mut command = restic(room);
            command.args(["backup", "."]);
            command
        },
        restore: |room, _| {
            let mut command = restic(room);
            command.args(["restore", "latest", "--target"]).arg(&room.target);
            command
        },
    }
}

fn rustic() -> Recipe {
    fn rustic(room: &Room) -> Command {
        let mut command = with_repository("rustic", "--repository", room);
        command.arg("--password-file").arg(room.scratch.join("password"));
        command.arg("--cache-dir").arg(room.scratch.join("cache"));
        command.args(["--no-progress", "--log-level=warn"]);
        command
    }
    Recipe {
        name: "rustic",
        package: None,
        version_words: &["--version"],
        begin: |room| {
            let mut command = rustic(room);
            command.arg("init");
            vec![command]
        },
        send: |room, _| {
            let mut command = rustic(room);
            command.args(["backup", "."]);
            command
        },
        restore: |room, _| {
            let mut command = rustic(room);
            command.args(["restore", "latest"]).arg(&room.target);
            command
        },
    }
}

fn kopia() -> Recipe {
    fn kopia(room: &Room, words: &[&str]) -> Command {
        let mut command = Command::new("kopia");
        command.args(words).arg("--config-file").arg(room.scratch.join("kopia.config"));
        command.env("KOPIA_PASSWORD", PASSWORD).env("KOPIA_CHECK_FOR_UPDATES", "false");
        command
    }
    Recipe {
        name: "kopia",
        package: None,
        version_words: &["--version"],
        begin: |room| {
            let path = format!("--path={}", repository(room).display());
            let create = kopia(room, &["repository", "create", "filesystem", &path]);
            vec![create, kopia(room, &["policy", "set", "--global", "--compression=zstd"])]
        },
        send: |room, _| {
            let mut command = kopia(room, &["snapshot", "create", "--no-progress"]);
            command.arg(&room.source);
            command
        },
        restore: |room, _| {
            let mut command = kopia(room, &["restore", "--snapshot-time=latest"]);
            command.arg(&room.source).arg(&room.target);
            command
        },
    }
}

fn borg() -> Recipe {
    fn borg(room: &Room, folder: &Path) -> Command {
        let mut command = Command::new("borg");
        command.env("BORG_BASE_DIR", room.scratch.join("borg")).env("BORG_PASSPHRASE", PASSWORD);
        command.env("BORG_REPO", repository(room)).current_dir(folder);
        command
    }
    Recipe {
        name: "borg",
        package: Some("borgbackup"),
        version_words: &["--version"],
        begin: |room| {
            let mut command = borg(room, &room.source);
            command.args(["init", "--encryption=repokey-blake2"]);
            vec![command]
        },
        send: |room, number| {
            let mut command = borg(room, &room.source);
            command.args(["create", "--compression=zstd,3"]).arg(format!("::run{number}")).arg(".");
            command
        },
        restore: |room, number| {
            let mut command = borg(room, &room.target);
            command.arg("extract").arg(format!("::run{number}"));
            command
        },
    }
}

fn casync() -> Recipe {
    fn index(room: &Room, number: u32) -> std::path::PathBuf {
        repository(room).join(format!("run{number}.caidx"))
    }
    fn store(room: &Room) -> String {
        format!("--store={}", repository(room).join("store.castr").display())
    }
    Recipe {
        name: "casync",
        package: Some("casync"),
        version_words: &["--version"],
        begin: |room| {
            let mut command = Command::new("mkdir");
            command.arg(repository(room));
            vec![command]
        },
        send: |room, number| {
            let mut command = Command::new("casync");
            command.args(["make", "--with=unix", "--compression=zstd"]).arg(store(room));
            command.arg(index(room, number)).arg(&room.source);
            command
        },
        restore: |room, number| {
            let mut command = Command::new("casync");
            command.arg("extract").arg(store(room)).arg(index(room, number)).arg(&room.target);
            command
        },
    }
}
