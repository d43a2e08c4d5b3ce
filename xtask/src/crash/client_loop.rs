//! Runs `syncline sync`, or now and then `syncline watch`, on one folder again and again, and lets
//! the killer at it.

use std::collections::BTreeMap;
use std::io::Read;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{JoinHandle, sleep};
use std::time::Duration;

use super::CrashReport;
use crate::process;
use crate::random::Random;
use crate::syncline::{Device, SYNC_DONE};

/// Exit code while the server cannot be reached, which is expected here.
const UNREACHABLE: i32 = 6;
/// Exit code for damaged data, and that of a Rust panic.
const DAMAGED: i32 = 8;
const PANICKED: i32 = 101;
/// Exit code of a watch that was asked to end.
const TERMINATED: i32 = 143;
/// How many clients in a hundred are watches. Since they never end by themselves, about half of what is killed are.
const WATCH_PERCENT: u64 = 15;

/// What a client does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Client {
    /// One exchange.
    Sync,
    /// Exchanges until it is killed or asked to end.
    Watch,
}

#[derive(Debug, Default)]
struct Shared {
    child: Mutex<Option<(Client, Child)>>,
    is_over: AtomicBool,
}

/// What the loop has seen: exit codes that are neither success nor "unreachable", with one text.
#[derive(Debug, Default)]
struct Seen {
    finished: u32,
    surprises: BTreeMap<i32, (u32, String)>,
}

/// A running loop.
pub(super) struct ClientLoop {
    shared: Arc<Shared>,
    thread: JoinHandle<Seen>,
    name: String,
}

impl ClientLoop {
    pub(super) fn start(device: &Device, seed: u64) -> Self {
        let shared = Arc::new(Shared::default());
        let name = device.folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (for_thread, device) = (Arc::clone(&shared), device.clone());
        let random = Random::for_part(seed, &name);
        let thread = std::thread::spawn(move || repeat(&for_thread, &device, random));
        Self { shared, thread, name }
    }

    /// Kills the client that runs just now; says what it was, if there was one.
    pub(super) fn kill(&self) -> Option<Client> {
        let mut child = self.shared.child.lock().unwrap_or_else(PoisonError::into_inner);
        let (client, child) = child.as_mut()?;
        let is_alive = matches!(child.try_wait(), Ok(None));
        // Waited for, so that nothing is counted twice.
        let is_killed = is_alive && child.kill().is_ok() && child.wait().is_ok();
        is_killed.then_some(*client)
    }

    /// Lets the last client end and reports what the loop saw.
    pub(super) fn stop(self, report: &mut CrashReport) {
        self.shared.is_over.store(true, Ordering::SeqCst);
        let Ok(seen) = self.thread.join() else {
            report.violations.push(format!("the client loop of {} panicked", self.name));
            return;
        };
        report.finished_syncs += seen.finished;
        for (code, (count, text)) in seen.surprises {
            let line = format!("{count} clients of {} ended with exit {code}: {text}", self.name);
            let is_violation = code == DAMAGED || code == PANICKED;
            let list = if is_violation { &mut report.violations } else { &mut report.surprises };
            list.push(line);
        }
    }
}

fn repeat(shared: &Shared, device: &Device, mut random: Random) -> Seen {
    let mut seen = Seen::default();
    while !shared.is_over.load(Ordering::SeqCst) {
        let (client, mut command) = match random.chance(WATCH_PERCENT) {
            true => (Client::Watch, device.watch_command()),
            false => (Client::Sync, device.sync_command()),
        };
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        match command.spawn() {
            Ok(mut child) => {
                // Read beside the run, so that the child never waits for a full pipe.
                let reader = child.stderr.take().map(|mut stderr| {
                    std::thread::spawn(move || {
                        let mut text = String::new();
                        // A kill may cut a character; what came before is lost, which is fine.
                        let _cut = stderr.read_to_string(&mut text);
                        text
                    })
                });
                *shared.child.lock().unwrap_or_else(PoisonError::into_inner) =
                    Some((client, child));
                let code = wait(shared);
                let said = reader.and_then(|reader| reader.join().ok()).unwrap_or_default();
                note(&mut seen, client, code, &said);
            }
            Err(failure) => note(&mut seen, client, Some(-1), &failure.to_string()),
        }
        sleep(Duration::from_millis(2));
    }
    seen
}

/// Waits for the child; `None` means that a signal ended it. A watch is asked to end when all is over.
fn wait(shared: &Shared) -> Option<i32> {
    let mut is_asked = false;
    loop {
        {
            let mut slot = shared.child.lock().unwrap_or_else(PoisonError::into_inner);
            let (client, child) = slot.as_mut()?;
            match child.try_wait() {
                Ok(None) => {
                    let is_over = shared.is_over.load(Ordering::SeqCst);
                    if is_over && *client == Client::Watch && !is_asked {
                        process::terminate(child.id());
                        is_asked = true;
                    }
                }
                Ok(Some(status)) => {
                    *slot = None;
                    return status.code();
                }
                Err(_) => return None,
            }
        }
        sleep(Duration::from_millis(1));
    }
}

fn note(seen: &mut Seen, client: Client, code: Option<i32>, said: &str) {
    let Some(code) = code else { return };
    seen.finished += u32::from(client == Client::Sync);
    let is_expected = match client {
        Client::Sync => SYNC_DONE.contains(&code),
        Client::Watch => code == TERMINATED,
    };
    if is_expected || code == UNREACHABLE {
        return;
    }
    let entry = seen.surprises.entry(code).or_default();
    entry.0 += 1;
    entry.1 = said.trim().chars().take(600).collect();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn success_conflicts_unreachable_and_signals_are_no_surprise() {
        let mut seen = Seen::default();
        for code in [Some(0), Some(3), Some(5), Some(6), None] {
            note(&mut seen, Client::Sync, code, "");
        }
        for code in [Some(6), Some(143), None] {
            note(&mut seen, Client::Watch, code, "");
        }
        assert!(seen.surprises.is_empty());
        assert_eq!(seen.finished, 4);
        note(&mut seen, Client::Sync, Some(8), " damaged ");
        note(&mut seen, Client::Watch, Some(8), "damaged again");
        assert_eq!(seen.surprises[&8], (2, "damaged again".to_owned()));
    }
}
