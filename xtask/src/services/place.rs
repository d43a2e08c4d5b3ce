//! The folder, the ports and the processes of one service.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use crate::failure::{Context, Result, fail};
use crate::process;

/// How the folder of all data begins.
pub(super) const FOLDER_PREFIX: &str = "syncline-services-";

const PATIENCE: Duration = Duration::from_secs(30);

/// Where one service lives.
#[derive(Debug)]
pub(super) struct Place {
    folder: PathBuf,
}

impl Place {
    pub(super) fn new(all: &Path, name: &str) -> Result<Self> {
        let folder = all.join(name);
        fs::create_dir(&folder).context(folder.display())?;
        Ok(Self { folder })
    }

    /// A path in the folder as text.
    pub(super) fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    /// Makes a folder, which `owner` may write.
    pub(super) fn make_folder(&self, name: &str, owner: &str) -> Result<String> {
        let path = self.path(name);
        fs::create_dir_all(&path).context(&path)?;
        if is_root() && owner != "root" {
            process::output(Command::new("chown").arg("-R").arg(owner).arg(&path))?;
        }
        Ok(path)
    }

    /// Writes a file and gives its path.
    pub(super) fn write(&self, name: &str, text: &str) -> Result<String> {
        let path = self.path(name);
        fs::write(&path, text).context(&path)?;
        Ok(path)
    }

    /// Makes a certificate for `localhost` that signs itself, and gives its path and that of its key.
    pub(super) fn certificate(&self) -> Result<(String, String)> {
        let (certificate, key) = (self.path("certificate.pem"), self.path("key.pem"));
        let mut command = Command::new("openssl");
        command.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]);
        command.args(["-nodes", "-days", "2", "-subj", "/CN=localhost"]);
        command.args(["-addext", "subjectAltName=DNS:localhost"]);
        command.args(["-addext", "basicConstraints=critical,CA:FALSE"]);
        command.args(["-keyout", &key, "-out", &certificate]);
        process::output(&mut command)?;
        Ok((certificate, key))
    }

    /// Starts a process that goes on when we end, and gives its id. Its command line must name the folder.
    pub(super) fn spawn(&self, name: &str, command: &mut Command) -> Result<u32> {
        let log = fs::File::create(self.path(&format!("{name}.log")))?;
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let child = command.process_group(0).spawn().context(name)?;
        Ok(child.id())
    }

    /// Waits until the process listens on the port; fails when it ends before.
    pub(super) fn wait_for(&self, process_id: u32, port: u16) -> Result<()> {
        let start = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if !is_running(process_id) {
                return fail("it ended at once");
            }
            if start.elapsed() > PATIENCE {
                return fail(format!("it does not listen on port {port}"));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

/// A port of loopback that is free now.
pub(super) fn free_port() -> Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

/// The first line of what a program says of its version, on whichever stream.
pub(super) fn version(program: &str, word: &str) -> String {
    let output = Command::new(program).arg(word).stdin(Stdio::null()).output();
    let Ok(output) = output else { return program.to_owned() };
    let said = [output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&said).lines().next().unwrap_or(program).trim().to_owned()
}

/// The version of an installed package of Debian.
pub(super) fn package_version(package: &str) -> String {
    let query = ["--show", "--showformat", "${Version}", package];
    process::output(Command::new("dpkg-query").args(query)).unwrap_or_default()
}

/// Whether we may become other users.
pub(super) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The name of the user that runs this.
pub(super) fn user() -> Result<String> {
    Ok(process::output(Command::new("id").arg("-un"))?.trim().to_owned())
}

/// Whether a folder is one of ours, before it is removed.
pub(super) fn is_service_folder(folder: &Path) -> bool {
    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned());
    name.is_some_and(|name| name.starts_with(FOLDER_PREFIX))
        && folder.starts_with(std::env::temp_dir())
}

/// Whether the process is one that was started with this folder: ids are used again.
pub(super) fn is_ours(process_id: u32, folder: &Path) -> bool {
    let line = fs::read(format!("/proc/{process_id}/cmdline")).unwrap_or_default();
    let folder = folder.display().to_string();
    !folder.is_empty() && String::from_utf8_lossy(&line).contains(&folder)
}

/// Asks the process and all of its group to end.
pub(super) fn end_group(process_id: u32) {
    signal(process_id, Signal::TERM);
}

fn signal(process_id: u32, signal: Signal) {
    let id = i32::try_from(process_id).ok().and_then(Pid::from_raw);
    if let Some(id) = id {
        // It may be gone already, which is what was asked for.
        let _already_gone = rustix::process::kill_process_group(id, signal);
    }
}

/// Waits until the processes are gone; those that do not go are killed.
pub(super) fn wait_for_ends(process_ids: &[u32], folder: &Path) -> Result<()> {
    let start = Instant::now();
    while process_ids.iter().any(|id| is_ours(*id, folder) && is_running(*id)) {
        if start.elapsed() > PATIENCE {
            return fail("services do not end");
        }
        if start.elapsed() > Duration::from_secs(5) {
            let remaining = process_ids.iter().filter(|id| is_ours(**id, folder));
            remaining.for_each(|id| signal(*id, Signal::KILL));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Whether a process exists and is not only waiting to be reaped.
fn is_running(process_id: u32) -> bool {
    let Ok(status) = fs::read_to_string(format!("/proc/{process_id}/stat")) else { return false };
    !status.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('Z'))
}
