//! The processes of a service, with all that they started: stopped, killed, started anew.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::Path;

use rustix::process::{Pid, Signal, WaitOptions};
use serde_json::{Value, json};

use crate::failure::{Context, Failure, Result, fail};
use crate::process;

/// How long a server may take to begin or to end.
const PATIENCE: Duration = Duration::from_secs(30);

/// After this time what does not end is killed.
const POLITENESS: Duration = Duration::from_secs(5);

/// How often it is looked whether something has come about.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A server's process: how it was started, and where it listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its id; it leads a group.
    pub id: u32,
    /// The program and its words.
    command: Vec<String>,
    /// What it finds in its environment beside what we have in ours.
    environment: BTreeMap<String, String>,
    /// The file that holds what it says.
    log: String,
    /// The port of loopback on which it listens.
    port: u16,
}

/// A process as the kernel knows it: ids are used again, id and start together are not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Living {
    id: u32,
    start_ticks: u64,
}

impl Process {
    /// Starts a process that goes on when we end, and waits until it listens. Its command line must name the folder of
    /// all data, by which it is known later.
    pub(super) fn start(command: &Command, log: String, port: u16) -> Result<Self> {
        let text = |word: &std::ffi::OsStr| word.to_string_lossy().into_owned();
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let environment = command.get_envs().filter_map(|(name, value)| Some((name, value?)));
        let mut process = Self {
            id: 0,
            command: words.map(text).collect(),
            environment: environment.map(|(name, value)| (text(name), text(value))).collect(),
            log,
            port,
        };
        process.start_again()?;
        Ok(process)
    }

    /// Starts the process as it was started before.
    pub(super) fn start_again(&mut self) -> Result<()> {
        let Some((program, words)) = self.command.split_first() else {
            return fail("a process without a program");
        };
        let mut command = Command::new(program);
        command.args(words).envs(&self.environment);
        let log = fs::File::options().append(true).create(true).open(&self.log)?;
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        // Not where we are: some leave files where they stand.
        command.current_dir(Path::new(&self.log).parent().unwrap_or(Path::new("/")));
        self.id = command.process_group(0).spawn().context(program)?.id();
        self.wait_for_port()
    }

    fn wait_for_port(&self) -> Result<()> {
        let start = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            if !is_running(self.id) {
                return fail("it ended at once");
            }
            if start.elapsed() > PATIENCE {
                return fail(format!("it does not listen on port {}", self.port));
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "id": self.id,
            "command": self.command,
            "environment": self.environment,
            "log": self.log,
            "port": self.port,
        })
    }

    pub(super) fn from_json(value: &Value) -> Result<Self> {
        let missing = || Failure::new(format!("this is no process: {value}"));
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let number = |value: &Value| u32::try_from(value.as_u64()?).ok();
        let command = value["command"].as_array().ok_or_else(missing)?;
        let environment = value["environment"].as_object().ok_or_else(missing)?;
        Ok(Self {
            id: number(&value["id"]).ok_or_else(missing)?,
            command: command.iter().filter_map(text).collect(),
            environment: environment
                .iter()
                .filter_map(|(name, value)| Some((name.clone(), text(value)?)))
                .collect(),
            log: text(&value["log"]).ok_or_else(missing)?,
            port: number(&value["port"])
                .and_then(|port| u16::try_from(port).ok())
                .ok_or_else(missing)?,
        })
    }

    /// Whether it runs, and is one that was started with this folder.
    pub(super) fn is_ours(&self, folder: &Path) -> bool {
        let line = fs::read(format!("/proc/{}/cmdline", self.id)).unwrap_or_default();
        let folder = folder.display().to_string();
        !folder.is_empty() && String::from_utf8_lossy(&line).contains(&folder)
    }

    /// Stops it and all that it started, where they stand: whoever asks them something gets no answer.
    pub(super) fn freeze(&self) {
        frozen_tree(self.id);
    }

    /// Lets it and all that it started go on.
    pub(super) fn thaw(&self) {
        for id in tree(self.id) {
            signal(id, Signal::CONT);
        }
    }

    /// Ends it and all that it started at once, without a word, and waits until they are gone.
    pub(super) fn kill(&self) -> Result<()> {
        // What stands still starts nothing new, so nobody is missed.
        let all = frozen_tree(self.id);
        for one in &all {
            signal(one.id, Signal::KILL);
        }
        wait_for_ends(&all)
    }
}

/// Asks processes to end, with all that they started; those that do not are killed.
pub(super) fn end(processes: &[&Process]) -> Result<()> {
    let ids = processes.iter().flat_map(|process| tree(process.id));
    let all: Vec<Living> = ids.filter_map(living).collect();
    for process in processes {
        signal(process.id, Signal::TERM);
    }
    // What was stopped hears of it only when it goes on.
    for one in &all {
        signal(one.id, Signal::CONT);
    }
    let start = Instant::now();
    while all.iter().any(is_alive) && start.elapsed() < POLITENESS {
        std::thread::sleep(LOOK_EVERY);
    }
    all.iter().filter(|living| is_alive(living)).for_each(|one| signal(one.id, Signal::KILL));
    wait_for_ends(&all)
}

fn wait_for_ends(all: &[Living]) -> Result<()> {
    let start = Instant::now();
    while all.iter().any(is_alive) {
        // One that we started ourselves remains until somebody asks how it ended.
        for one in all {
            reap(one.id);
        }
        if start.elapsed() > PATIENCE {
            return fail("services do not end");
        }
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

/// A process and all that it started, parents first.
fn tree(id: u32) -> Vec<u32> {
    let mut found = vec![id];
    let mut next = 0;
    while let Some(id) = found.get(next).copied() {
        found.extend(process::children_of(id));
        next += 1;
    }
    found
}

/// Stops a process and all that it started. Parents stand before their children are counted.
fn frozen_tree(id: u32) -> Vec<Living> {
    let mut found: Vec<Living> = living(id).into_iter().collect();
    let mut next = 0;
    while let Some(one) = found.get(next).copied() {
        signal(one.id, Signal::STOP);
        let start = Instant::now();
        while !matches!(status(one.id), None | Some('T' | 'Z')) && start.elapsed() < POLITENESS {
            std::thread::yield_now();
        }
        found.extend(process::children_of(one.id).into_iter().filter_map(living));
        next += 1;
    }
    found
}

fn living(id: u32) -> Option<Living> {
    let start_ticks = fields(id)?.get(19)?.parse().ok()?;
    Some(Living { id, start_ticks })
}

fn is_alive(one: &Living) -> bool {
    living(one.id) == Some(*one) && is_running(one.id)
}

/// Whether a process exists and is not only waiting to be reaped.
fn is_running(id: u32) -> bool {
    !matches!(status(id), None | Some('Z'))
}

fn status(id: u32) -> Option<char> {
    fields(id)?.first()?.chars().next()
}

/// What the kernel says of a process, from its state on.
fn fields(id: u32) -> Option<Vec<String>> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    Some(rest.split_whitespace().map(str::to_owned).collect())
}

fn signal(id: u32, signal: Signal) {
    let id = i32::try_from(id).ok().and_then(Pid::from_raw);
    if let Some(id) = id {
        // It may be gone already, which is what was asked for.
        let _already_gone = rustix::process::kill_process(id, signal);
    }
}

fn reap(id: u32) {
    let id = i32::try_from(id).ok().and_then(Pid::from_raw);
    // Somebody else's children are reaped by somebody else.
    let _not_ours = id.map(|id| rustix::process::waitpid(Some(id), WaitOptions::NOHANG));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleeping_family() -> std::process::Child {
        let mut command = Command::new("sh");
        // The second word keeps the shell from becoming its child.
        command.args(["-c", "sleep 60 & sleep 60; true"]).stdin(Stdio::null());
        let child = command.spawn().unwrap();
        let start = Instant::now();
        while tree(child.id()).len() < 3 {
            assert!(start.elapsed() < PATIENCE);
            std::thread::yield_now();
        }
        child
    }

    #[test]
    fn children_are_stopped_and_killed_with_their_parent() {
        let mut parent = sleeping_family();
        let all = frozen_tree(parent.id());
        assert_eq!(all.len(), 3);
        assert!(all.iter().all(|one| status(one.id) == Some('T')));
        for one in &all {
            signal(one.id, Signal::KILL);
        }
        wait_for_ends(&all).unwrap();
        assert_eq!(living(parent.id()).filter(is_alive).map(|one| one.id), None);
        // Mostly it was reaped meanwhile.
        let _reaped = parent.wait();
    }

    #[test]
    fn an_id_that_is_used_again_is_somebody_else() {
        let me = living(std::process::id()).unwrap();
        assert!(is_alive(&me));
        assert!(!is_alive(&Living { start_ticks: me.start_ticks + 1, ..me }));
    }

    #[test]
    fn a_process_finds_its_environment_each_time_it_is_started() {
        let folder =
            std::env::temp_dir().join(format!("syncline-environment-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let log = folder.join("log").display().to_string();
        // Whoever listens is asked for a connection; what matters here is what the process says.
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "echo $ONE-$TWO; exec sleep 60"]).env("ONE", "1").env("TWO", "2");
        let port = listener.local_addr().unwrap().port();
        let process = Process::start(&command, log.clone(), port).unwrap();
        let mut process = Process::from_json(&process.to_json()).unwrap();
        let start = Instant::now();
        for lines in 1..=2 {
            while fs::read_to_string(&log).unwrap() != "1-2\n".repeat(lines) {
                assert!(start.elapsed() < PATIENCE, "{:?}", fs::read_to_string(&log));
                std::thread::yield_now();
            }
            process.kill().unwrap();
            if lines == 1 {
                process.start_again().unwrap();
            }
        }
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_process_is_written_down_and_read_back() {
        let process = Process {
            id: 7,
            command: vec!["/bin/true".to_owned(), "word".to_owned()],
            environment: BTreeMap::from([("HOME".to_owned(), "/nowhere".to_owned())]),
            log: "/tmp/log".to_owned(),
            port: 4321,
        };
        assert_eq!(Process::from_json(&process.to_json()), Ok(process));
        assert!(Process::from_json(&json!({})).is_err());
    }
}
