//! A disk of a few MB on which PostgreSQL keeps a database, so that it can be filled without harm to anybody else's.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use xtask::services::{Service, Services};

use super::machines::client;
use crate::stage::PATIENCE;

/// How large it is: an empty database takes 8 MB.
const SIZE: &str = "size=48m";

/// A tablespace in memory; it ends with this value, and every database on it.
pub(crate) struct SmallDisk {
    postgresql: Service,
    folder: PathBuf,
}

impl SmallDisk {
    /// Mounts it, which root may do only, and tells PostgreSQL of it.
    pub(crate) fn mount(running: &Services) -> Self {
        let postgresql = running.service("postgresql").unwrap().clone();
        let folder = running.folder().join("postgresql").join("small-disk");
        fs::create_dir_all(&folder).unwrap();
        run(Command::new("mount").args(["-t", "tmpfs", "-o", SIZE, "syncline"]).arg(&folder));
        let disk = Self { postgresql, folder };
        let place = disk.folder.join("tablespace");
        fs::create_dir(&place).unwrap();
        run(Command::new("chown").arg("postgres").arg(&place));
        let sql = format!("CREATE TABLESPACE {} LOCATION '{}'", disk.name(), place.display());
        run(client("psql", &disk.postgresql).args(["--quiet", "--command", &sql]));
        disk
    }

    /// The name of the tablespace.
    pub(crate) fn name(&self) -> &'static str {
        "small_disk"
    }

    /// Takes all room that is left.
    pub(crate) fn fill(&self) {
        let mut file = fs::File::create(self.folder.join("filling")).unwrap();
        for length in [1 << 16, 1 << 12] {
            let piece = vec![1; length];
            let error = loop {
                if let Err(error) = file.write_all(&piece) {
                    break error;
                }
            };
            assert_eq!(error.kind(), ErrorKind::StorageFull, "{error}");
        }
    }

    /// Gives it back.
    pub(crate) fn free(&self) {
        fs::remove_file(self.folder.join("filling")).unwrap();
    }

    /// Removes all databases on it, and the tablespace.
    fn empty(&self) -> bool {
        let on_it = "SELECT datname FROM pg_database JOIN pg_tablespace ON pg_tablespace.oid = dattablespace";
        let sql = format!("{on_it} WHERE spcname = '{}'", self.name());
        let mut asking = client("psql", &self.postgresql);
        let found = asking.args(["--tuples-only", "--no-align", "--command", &sql]).output();
        let Some(found) = found.ok().filter(|found| found.status.success()) else { return false };
        let names = String::from_utf8_lossy(&found.stdout).into_owned();
        let sql = format!("DROP TABLESPACE {}", self.name());
        let mut dropping = names.lines().map(|name| {
            let mut command = client("dropdb", &self.postgresql);
            command.args(["--force", name]);
            command
        });
        dropping.all(|mut command| is_done(&mut command))
            && is_done(client("psql", &self.postgresql).args(["--quiet", "--command", &sql]))
    }
}

impl Drop for SmallDisk {
    /// Also where the test has failed: a database whose files are gone would keep PostgreSQL from every checkpoint.
    fn drop(&mut self) {
        let _ = fs::remove_file(self.folder.join("filling"));
        let start = Instant::now();
        while !self.empty() && start.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(200));
        }
        is_done(Command::new("umount").arg(&self.folder));
    }
}

fn is_done(command: &mut Command) -> bool {
    command.status().is_ok_and(|status| status.success())
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said} (to mount a file system wants root)");
}
