//! Native rsync: a daemon on loopback, and a client that sends a file to it.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::time::Instant;

/// How long a daemon may take until it listens.
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// What one transfer took.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Synced {
    /// From the start of the client to its end.
    pub time: Duration,
    /// Bytes that it sent, by its own count.
    pub up: u64,
    /// Bytes that it received.
    pub down: u64,
}

/// A daemon with one file; it is killed when this value goes.
#[derive(Debug)]
pub struct Daemon {
    child: Child,
    address: SocketAddr,
    target: PathBuf,
    source: PathBuf,
}

impl Daemon {
    /// Starts a daemon whose files lie below a folder.
    ///
    /// # Errors
    /// Where there is no rsync, or it does not listen.
    pub fn start(folder: &Path) -> Result<Self> {
        let root = folder.join("rsync");
        std::fs::create_dir_all(&root)?;
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let config = folder.join("rsyncd.conf");
        // A daemon of root would become somebody else, who may not write here.
        let who = if rustix::process::getuid().is_root() { "uid = root\ngid = root\n" } else { "" };
        let (log, path) = (folder.join("rsyncd.log"), root.display());
        let text = format!(
            "use chroot = no\nlog file = {}\n{who}[files]\npath = {path}\nread only = no\n",
            log.display()
        );
        write(&config, text.as_bytes())?;
        let mut command = Command::new("rsync");
        command.args(["--daemon", "--no-detach", "--address", "127.0.0.1", "--port"]);
        command.arg(address.port().to_string()).arg("--config").arg(config);
        let child = command.stdin(Stdio::null()).spawn().context("rsync")?;
        let (target, source) = (root.join("file.bin"), folder.join("new.bin"));
        let mut daemon = Self { child, address, target, source };
        daemon.wait_until_it_listens()?;
        Ok(daemon)
    }

    fn wait_until_it_listens(&mut self) -> Result<()> {
        let began = Instant::now();
        while TcpStream::connect(self.address).is_err() {
            if let Some(status) = self.child.try_wait()? {
                bail!("the daemon of rsync ended with {status}");
            }
            if began.elapsed() > START_TIMEOUT {
                bail!("the daemon of rsync does not listen at {}", self.address);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Puts the old version to the daemon, and has the new one sent to `address`, which leads there.
    ///
    /// # Errors
    /// Where rsync fails, or the daemon has something else afterwards.
    pub fn sync(&self, address: SocketAddr, old: &[u8], new: &[u8]) -> Result<Synced> {
        write(&self.target, old)?;
        write(&self.source, new)?;
        let mut command = Command::new("rsync");
        command.args(["--no-whole-file", "--ignore-times", "--no-compress", "--stats"]);
        command.arg(&self.source).arg(format!("rsync://{address}/files/file.bin"));
        command.env("LC_ALL", "C").stdin(Stdio::null());
        let began = Instant::now();
        let output = command.output().context("rsync")?;
        let time = began.elapsed();
        if !output.status.success() {
            bail!("rsync: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let (up, down) = read_stats(&said).with_context(|| format!("rsync said: {said}"))?;
        if read(&self.target)? != new {
            bail!("rsync put together something else");
        }
        Ok(Synced { time, up, down })
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It may have gone already, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Asks rsync which one it is.
///
/// # Errors
/// Where there is none.
pub fn version() -> Result<String> {
    let output = Command::new("rsync").arg("--version").output().context("rsync")?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let words = said.lines().next().unwrap_or_default().split_whitespace();
    Ok(words.take(3).collect::<Vec<_>>().join(" "))
}

/// Reads how many bytes went and came out of what `--stats` prints.
fn read_stats(text: &str) -> Option<(u64, u64)> {
    let number = |title: &str| {
        let line = text.lines().find_map(|line| line.trim().strip_prefix(title))?;
        line.replace(',', "").trim().parse().ok()
    };
    Some((number("Total bytes sent:")?, number("Total bytes received:")?))
}

#[expect(clippy::disallowed_methods, reason = "files that another program is to send")]
fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    std::fs::write(path, bytes).with_context(|| path.display().to_string())
}

#[expect(clippy::disallowed_methods, reason = "a file that another program has received")]
fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_out_of_what_rsync_prints() {
        let text = "Number of files: 1 (reg: 1)\nLiteral data: 1,000 bytes\n\
                    Total bytes sent: 2,104\nTotal bytes received: 6,031\n\nsent 2,104 bytes\n";
        assert_eq!(read_stats(text), Some((2104, 6031)));
        assert_eq!(read_stats("Total bytes sent: many\nTotal bytes received: 1\n"), None);
        assert_eq!(read_stats(""), None);
    }
}
