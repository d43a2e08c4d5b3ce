//! The folder and the ports of one service.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::processes::Process;
use crate::failure::{Context, Result};
use crate::process;

/// How the folder of all data begins.
pub(super) const FOLDER_PREFIX: &str = "syncline-services-";

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

    /// Starts a server that goes on when we end, and waits until it listens on the port.
    pub(super) fn serve(&self, name: &str, command: &Command, port: u16) -> Result<Process> {
        Process::start(command, self.path(&format!("{name}.log")), port).context(name)
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
