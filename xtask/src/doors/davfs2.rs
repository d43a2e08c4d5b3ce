//! davfs2: a door as a file system of the kernel. What is done in it is done in an ordinary folder, too, and both must say the same.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::bounded;
use super::finding::{Finding, Outcome, Steps};
use super::stage::{Door, Stage};
use super::tree::{self, Tree};
use crate::failure::{Context, Result, fail};
use crate::process::{self, write_secret};

/// The tool.
pub(super) const NAME: &str = "davfs2";

/// The program that mounts.
pub(super) const PROGRAM: &str = "/usr/sbin/mount.davfs";

/// How long one step may take, in seconds.
const SECONDS_MAX: u32 = 60;

/// Its buffer for the kernel, in KiB. With the 16 that it has by itself Linux 6.18 gets EINVAL for every list of a folder.
const BUFFER_KIB: u32 = 64;

/// What it needs of the kernel.
const FUSE: &str = "/dev/fuse";

/// Where the files lie at the door.
const FOLDER: &str = "davfs2";

/// What is typed in the folder, in a shell.
const SCRIPTS: [(&str, &str); 12] = [
    ("mkdir", "mkdir a 'b c'"),
    ("write and read", "seq 1 5000 > a/numbers && cat a/numbers"),
    ("append", "echo one > a/lines && echo two >> a/lines && cat a/lines"),
    ("names with spaces and umlauts", "echo x > 'b c/ä ö.txt' && cat 'b c/ä ö.txt'"),
    ("mv", "mv a/lines a/moved && cat a/moved && test ! -e a/lines"),
    ("mv over another file", "echo new > a/new && mv a/new a/moved && cat a/moved"),
    ("rename of a folder", "mv 'b c' d && cat 'd/ä ö.txt'"),
    (
        "cp -r of 40 files",
        "cp -r \"$SOURCE\" copied && for n in $(seq -w 0 39); do cat copied/file-$n; done",
    ),
    ("rm, rmdir", "mkdir e && echo x > e/f && rm e/f && rmdir e && test ! -e e"),
    ("df", "df . > /dev/null"),
    ("ls", "ls -A . a copied"),
    ("rm -r", "mkdir g && echo x > g/h && rm -r g && ls -A"),
];

/// Mounts each door of WebDAV and works in it.
pub(super) fn run(stage: &Stage) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for door in &stage.doors {
        let mut steps = Steps::new(NAME, door.name, "mounted");
        match why_not() {
            Some(reason) => steps.note("all", Outcome::NotRun, &reason),
            None => work(stage, door, &mut steps)?,
        }
        findings.extend(steps.into_findings());
    }
    Ok(findings)
}

/// Why it cannot be run on this machine.
fn why_not() -> Option<String> {
    if !Path::new(FUSE).exists() {
        return Some(format!("{FUSE} is not there"));
    }
    (!rustix::process::geteuid().is_root()).then(|| "only root may mount".to_owned())
}

fn work(stage: &Stage, door: &Door, steps: &mut Steps) -> Result<()> {
    let room = stage.room(NAME, door.name)?;
    let source = room.join("source");
    make_source(&source, 100)?;
    let mounted = match Mounted::new(&room, door) {
        Ok(mounted) => mounted,
        // Containers refuse it to root, too.
        Err(failure) if failure.to_string().contains("not permitted") => {
            steps.note(
                "all",
                Outcome::NotRun,
                &format!("this machine lets nobody mount: {failure}"),
            );
            return Ok(());
        }
        Err(failure) => {
            steps.note("mount", Outcome::Failed, &failure.to_string());
            return Ok(());
        }
    };
    steps.note("mount", Outcome::Passed, "");
    let [here, there] = [&room, &mounted.folder].map(|above| above.join(FOLDER));
    for folder in [&here, &there] {
        type_in(&room, &source, &format!("mkdir '{}'", folder.display()))?;
    }
    for (what, script) in SCRIPTS {
        let wanted = type_in(&here, &source, script)?;
        steps.step(what, || match type_in(&there, &source, script)? {
            said if said == wanted => Ok(()),
            said => fail(format!("it says '{said}' in place of '{wanted}'")),
        });
    }
    steps.step("umount sends what was not sent yet", || mounted.end());
    steps.step("a device of the workspace has the same, byte by byte", || {
        door.wait_for_device(FOLDER, &Tree::read(&here)?.without_times())
    });
    Ok(())
}

/// Makes forty files that tell of their numbers.
fn make_source(source: &Path, factor: usize) -> Result<()> {
    (0..40).try_for_each(|number| {
        let text = format!("{number}\n").repeat(number * factor);
        tree::write(source, &format!("file-{number:02}"), text.as_bytes(), 1_600_000_000)
    })
}

/// Runs a shell in a folder and returns what it prints. It is another process, because a file system may never answer.
fn type_in(folder: &Path, source: &Path, script: &str) -> Result<String> {
    let mut command = bounded(SECONDS_MAX, "sh");
    command.args(["-c", script]).current_dir(folder).env("SOURCE", source).env("LC_ALL", "C.UTF-8");
    process::output(&mut command)
}

/// A door that is mounted, until this value goes.
struct Mounted {
    folder: PathBuf,
    is_mounted: bool,
}

impl Mounted {
    fn new(room: &Path, door: &Door) -> Result<Self> {
        let [folder, cache] = ["mounted", "cache"].map(|name| room.join(name));
        for folder in [&folder, &cache] {
            fs::create_dir_all(folder).context(folder.display())?;
        }
        // It works as a user of its own.
        fs::set_permissions(&cache, fs::Permissions::from_mode(0o777))?;
        let (secrets, configuration) = (room.join("secrets"), room.join("davfs2.conf"));
        let Door { url, user, token, .. } = door;
        write_secret(&secrets, &format!("{url} {user} {token}\n"))?;
        let text = format!(
            "secrets {}\ncache_dir {}\nbuf_size {BUFFER_KIB}\nask_auth 0\ndelay_upload 0\nuse_locks 1\n",
            secrets.display(),
            cache.display()
        );
        fs::write(&configuration, text)?;
        let mut command = bounded(SECONDS_MAX, PROGRAM);
        command.arg(url).arg(&folder);
        command.arg("-o").arg(format!("conf={}", configuration.display()));
        process::output(&mut command)?;
        Ok(Self { folder, is_mounted: true })
    }

    fn end(mut self) -> Result<()> {
        self.is_mounted = false;
        process::output(bounded(SECONDS_MAX, "umount").arg(&self.folder)).map(drop)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if self.is_mounted {
            // What cannot be sent any more shall not keep the folder from being removed.
            let _reported_by_steps =
                process::output(Command::new("umount").arg("--lazy").arg(&self.folder));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_work_in_an_ordinary_folder() {
        let room = tempfile::tempdir().unwrap();
        let [source, here] = ["source", "here"].map(|name| room.path().join(name));
        make_source(&source, 1).unwrap();
        fs::create_dir(&here).unwrap();
        let say = |(what, script): &(&str, &str)| {
            type_in(&here, &source, script).unwrap_or_else(|failure| panic!("{what}: {failure}"))
        };
        let said: Vec<String> = SCRIPTS.iter().map(say).collect();
        assert_eq!((&*said[2], &*said[4], &*said[5]), ("one\ntwo\n", "one\ntwo\n", "new\n"));
        let numbers: String = (0..40).map(|number| format!("{number}\n").repeat(number)).collect();
        assert_eq!(said[7], numbers);
        assert_eq!(said[11], "a\ncopied\nd\n");
    }

    #[test]
    fn a_step_that_never_ends_is_ended() {
        let folder = std::env::temp_dir();
        let mut command = bounded(1, "sh");
        command.args(["-c", "sleep 60"]).current_dir(folder);
        let failure = process::output(&mut command).unwrap_err().to_string();
        assert!(failure.contains("124"), "{failure}");
    }
}
