//! The server of our program as a child process.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::{ACCOUNT, PASSWORD, finish_with_input};
use crate::failure::{Context, Result, fail};
use crate::process;

const PATIENCE: Duration = Duration::from_secs(10);

/// A running `syncline serve`; it is killed when this value goes.
#[derive(Debug)]
pub struct Server {
    binary: PathBuf,
    data: PathBuf,
    address: String,
    child: Child,
}

/// Makes the account of benchmarks and rigs in a data folder.
pub fn add_account(binary: &Path, data: &Path) -> Result<()> {
    add_account_of(ACCOUNT, binary, data)
}

/// Makes an account of this name, with the password of all rigs.
pub fn add_account_of(name: &str, binary: &Path, data: &Path) -> Result<()> {
    std::fs::create_dir_all(data)?;
    let mut command = Command::new(binary);
    command.args(["user", "add", name, "--password-stdin", "--no-input", "--data"]).arg(data);
    // Without this the command would look at the home of whoever runs the benchmark.
    command.env("SYNCLINE_HOME", data.with_extension("home"));
    finish_with_input(&mut command, PASSWORD)
}

impl Server {
    /// Makes the account, starts a server on a free port and waits until it listens.
    pub fn start(binary: &Path, data: &Path) -> Result<Self> {
        add_account(binary, data)?;
        let (child, address) = start_at(binary, data, "127.0.0.1:0")?;
        Ok(Self { binary: binary.to_owned(), data: data.to_owned(), address, child })
    }

    /// Where it answers.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The port on which it answers.
    pub fn port(&self) -> Option<u16> {
        self.address.rsplit_once(':')?.1.parse().ok()
    }

    /// Where it keeps everything.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// The id of the process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Kills it with SIGKILL.
    pub fn kill(&mut self) {
        // Errors mean that it is gone already.
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }

    /// Starts it again on the same address and data.
    pub fn restart(&mut self) -> Result<()> {
        let (child, address) = start_at(&self.binary, &self.data, &self.address)?;
        self.child = child;
        self.address = address;
        Ok(())
    }

    /// Ends it with SIGTERM, as a system does, and kills it if it does not end.
    pub fn stop(&mut self) -> Result<()> {
        process::terminate(self.child.id());
        let start = Instant::now();
        while self.child.try_wait()?.is_none() {
            if start.elapsed() > PATIENCE {
                self.kill();
                return fail("the server did not end within 10 s of SIGTERM");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

fn start_at(binary: &Path, data: &Path, listen: &str) -> Result<(Child, String)> {
    let mut command = Command::new(binary);
    command.args(["serve", "--no-input", "--listen", listen, "--data"]).arg(data);
    command.env("SYNCLINE_HOME", data.with_extension("home"));
    start_listening(&mut command)
}

/// Starts a command of our program that listens, waits until it says where, and returns that.
pub(super) fn start_listening(command: &mut Command) -> Result<(Child, String)> {
    let program = Path::new(command.get_program()).display().to_string();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().context(&program)?;
    let Some(stdout) = child.stdout.take() else { return fail(format!("{program} has no stdout")) };
    let mut lines = BufReader::new(stdout);
    let mut line = String::new();
    while lines.read_line(&mut line)? > 0 {
        if let Some((_, address)) = line.trim().split_once("listening on http://") {
            let address = address.trim_end_matches('/').to_owned();
            drain(lines);
            if let Some(stderr) = child.stderr.take() {
                drain(stderr);
            }
            return Ok((child, address));
        }
        line.clear();
    }
    let mut said = String::new();
    if let Some(mut stderr) = child.stderr.take() {
        stderr.read_to_string(&mut said)?;
    }
    let status = child.wait()?;
    fail(format!("{program} ended with {status} before it listened: {}", said.trim()))
}

/// Reads and forgets what a child prints, so that it never waits for a full pipe.
fn drain(mut stream: impl Read + Send + 'static) {
    std::thread::spawn(move || std::io::copy(&mut stream, &mut std::io::sink()));
}
