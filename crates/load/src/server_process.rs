//! Processes under test: `syncline serve` in a folder that goes with the last of them.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::population::PASSWORD;

/// How many connections the server lets in: no limit of it is to be in the way.
const CONNECTIONS_MAX: &str = "100000";

/// What the processes of one place have in common. Clones are the same place.
#[derive(Debug, Clone)]
pub struct Setting {
    binary: PathBuf,
    folder: Arc<TempDir>,
    /// For all commands: where the accounts and logs are, if not in the folder.
    database: Vec<String>,
    variables: Vec<(&'static str, PathBuf)>,
    /// The only core that the processes have.
    core: Option<usize>,
}

impl Setting {
    /// Makes a new folder below `place` for a program and its data.
    ///
    /// # Errors
    /// Where there can be none.
    pub fn new(binary: &Path, place: &Path) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("syncline-lab").tempdir_in(place)?;
        let (database, variables, core) = (Vec::new(), Vec::new(), None);
        Ok(Self { binary: binary.to_owned(), folder: Arc::new(folder), database, variables, core })
    }

    /// Puts accounts and logs into a database in a network; `password` names a file.
    #[must_use]
    pub fn with_database(mut self, url: &str, password: PathBuf) -> Self {
        self.database = vec!["--database".to_owned(), url.to_owned()];
        self.variables.push(("SYNCLINE_DATABASE_PASSWORD_FILE", password));
        self
    }

    /// Gives the processes one core and no other, where one is named.
    #[must_use]
    pub fn on_core(mut self, core: Option<usize>) -> Self {
        self.core = core;
        self
    }

    /// Returns where everything lies.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Makes accounts, all with the same password.
    ///
    /// # Errors
    /// Where the program refuses one.
    pub fn add_accounts(&self, accounts: &[String]) -> Result<()> {
        accounts.iter().try_for_each(|account| self.add_account(account))
    }

    fn add_account(&self, account: &str) -> Result<()> {
        let mut command = self.command(ALONE);
        command.args(["user", "add", account, "--password-stdin", "--no-input"]);
        command.args(self.words(ALONE)).stdin(Stdio::piped()).stdout(Stdio::null());
        let mut child = command.stderr(Stdio::piped()).spawn().context("the program")?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(PASSWORD.as_bytes())?;
        }
        let output = child.wait_with_output()?;
        if !output.status.success() {
            bail!("user add: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(())
    }

    fn command(&self, name: &str) -> Command {
        let mut command = match self.core {
            None => Command::new(&self.binary),
            Some(core) => {
                // It becomes the program, so the number of the process stays.
                let mut command = Command::new("taskset");
                command.args(["--cpu-list", &core.to_string()]).arg(&self.binary);
                command
            }
        };
        // Without this it would look at the home of whoever runs the lab.
        command.env("SYNCLINE_HOME", self.folder().join(format!("home-{name}")));
        command.envs(self.variables.iter().map(|(name, path)| (name, path)));
        command
    }

    /// Returns the words that say where the data of a process are.
    fn words(&self, name: &str) -> Vec<String> {
        let data = self.folder().join(name).display().to_string();
        let mut words = vec!["--data".to_owned(), data];
        words.extend(self.database.iter().cloned());
        words
    }
}

/// The name of a server that is all there is.
pub const ALONE: &str = "data";

/// A running server; it is killed when this value goes.
#[derive(Debug)]
pub struct ServerProcess {
    setting: Setting,
    name: String,
    words: Vec<String>,
    address: String,
    child: Child,
}

impl ServerProcess {
    /// Starts a server of this name on a free port, with further words for `serve`.
    ///
    /// # Errors
    /// Where it does not start; with what it said.
    pub fn start(setting: &Setting, name: &str, words: &[String]) -> Result<Self> {
        let (child, address) = spawn(setting, name, words, "127.0.0.1:0")?;
        let (setting, name, words) = (setting.clone(), name.to_owned(), words.to_vec());
        Ok(Self { setting, name, words, address, child })
    }

    /// Returns where it answers.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the number of its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Ends it as a system does (SIGTERM), and starts it again at the same address.
    ///
    /// # Errors
    /// Where it does not start.
    pub fn restart(&mut self) -> Result<()> {
        self.stop()?;
        self.start_again()
    }

    /// Ends it as a system does, and waits until it has.
    ///
    /// # Errors
    /// Where the system refuses.
    pub fn stop(&mut self) -> Result<()> {
        // The number of a process that has gone may be another one's by now.
        if self.child.try_wait()?.is_none() {
            self.signal(Signal::TERM)?;
        }
        self.child.wait()?;
        Ok(())
    }

    /// Ends it without a word (SIGKILL).
    ///
    /// # Errors
    /// Where it has gone.
    pub fn kill(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Kills it and starts it again at the same address.
    ///
    /// # Errors
    /// Where it does not start.
    pub fn kill_and_restart(&mut self) -> Result<()> {
        self.kill()?;
        self.start_again()
    }

    /// Takes the processor away from it (SIGSTOP), or gives it back (SIGCONT).
    ///
    /// # Errors
    /// Where it has gone.
    pub fn pause(&self, is_paused: bool) -> Result<()> {
        self.signal(if is_paused { Signal::STOP } else { Signal::CONT })
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        let id = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        Ok(kill_process(id.context("a process has a number")?, signal)?)
    }

    /// Starts it again at the same address; it has ended.
    ///
    /// # Errors
    /// Where it does not start.
    pub fn start_again(&mut self) -> Result<()> {
        let (child, address) = spawn(&self.setting, &self.name, &self.words, &self.address)?;
        (self.child, self.address) = (child, address);
        Ok(())
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // It may have gone already, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Asks the program for its version.
///
/// # Errors
/// Where it cannot be run.
pub fn version(binary: &Path) -> Result<String> {
    let output = Command::new(binary).arg("version").output().context("the program")?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn spawn(setting: &Setting, name: &str, words: &[String], listen: &str) -> Result<(Child, String)> {
    let mut command = setting.command(name);
    command.args(["serve", "--no-input", "--listen", listen]);
    command.args(["--connections", CONNECTIONS_MAX, "--connections-per-address", CONNECTIONS_MAX]);
    command.args(setting.words(name)).args(words);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().context("the program")?;
    let mut lines = BufReader::new(child.stdout.take().context("it has an output")?);
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
    bail!("serve ended with {} before it listened: {}", child.wait()?, said.trim())
}

/// Reads and forgets what a child prints, so that it never waits for a full pipe.
fn drain(mut stream: impl Read + Send + 'static) {
    std::thread::spawn(move || std::io::copy(&mut stream, &mut std::io::sink()));
}
