//! The process of one broker: started, killed, stopped and started again with its data.

use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(60);

/// A broker on loopback.
pub(crate) struct BrokerProcess {
    pub(crate) port: u16,
    folder: TempDir,
    command: fn(&Path, &[u16]) -> Command,
    ports: Vec<u16>,
    child: Mutex<Option<Child>>,
}

impl BrokerProcess {
    /// Starts a broker that takes so many ports of its own; on the first of them it is reached. Others come after them.
    pub(crate) fn start(
        others: &[u16],
        ports: usize,
        command: fn(&Path, &[u16]) -> Command,
    ) -> Self {
        // All are held until all are known, so that they differ.
        let listeners: Vec<TcpListener> =
            (0..ports).map(|_| TcpListener::bind(("127.0.0.1", 0)).unwrap()).collect();
        let own = listeners.iter().map(|listener| listener.local_addr().unwrap().port());
        let ports: Vec<u16> = own.chain(others.iter().copied()).collect();
        drop(listeners);
        let folder = tempfile::Builder::new().prefix("syncline-broker-").tempdir().unwrap();
        let child = Mutex::new(None);
        let process = Self { port: ports[0], folder, command, ports, child };
        process.run();
        process
    }

    /// Starts it again.
    pub(crate) fn run(&self) {
        let mut command = (self.command)(self.folder.path(), &self.ports);
        let log = self.folder.path().join("output.log");
        let log = std::fs::OpenOptions::new().create(true).append(true).open(log).unwrap();
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        // Some brokers are started by a script, which is killed with them.
        command.process_group(0);
        let program = command.get_program().to_owned();
        let mut child = command
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}; is it installed?", program.display()));
        let start = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            if let Some(status) = child.try_wait().unwrap() {
                panic!("{} ended at once: {status}\n{}", program.display(), self.log());
            }
            assert!(start.elapsed() < PATIENCE, "it does not listen\n{}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
        *self.child.lock().unwrap() = Some(child);
    }

    /// Kills it and waits until it is gone.
    pub(crate) fn kill(&self) {
        if let Some(mut child) = self.child.lock().unwrap().take() {
            kill_process_group(Pid::from_child(&child), Signal::KILL).unwrap();
            child.wait().unwrap();
        }
        // What the script started is gone a moment later.
        let start = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_ok() {
            assert!(start.elapsed() < PATIENCE, "it does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Removes what it keeps in its folder of data; it is dead.
    pub(crate) fn wipe(&self) {
        std::fs::remove_dir_all(self.folder.path().join("data")).unwrap();
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let child = self.child.lock().unwrap();
        kill_process_group(Pid::from_child(child.as_ref().unwrap()), signal).unwrap();
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("output.log")).unwrap_or_default()
    }
}

impl Drop for BrokerProcess {
    fn drop(&mut self) {
        self.kill();
    }
}
