//! Runs `syncline sync` on one folder again and again, and lets the killer at it.

use std::collections::BTreeMap;
use std::io::Read;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{JoinHandle, sleep};
use std::time::Duration;

use super::CrashReport;
use crate::syncline::{Device, SYNC_DONE};

/// Exit code while the server cannot be reached, which is expected here.
const UNREACHABLE: i32 = 6;
/// Exit code for damaged data, and that of a Rust panic.
const DAMAGED: i32 = 8;
const PANICKED: i32 = 101;

#[derive(Debug, Default)]
struct Shared {
    child: Mutex<Option<Child>>,
    is_over: AtomicBool,
}

/// What the loop has seen: exit codes that are neither success nor "unreachable", with one text.
#[derive(Debug, Default)]
struct Seen {
    finished: u32,
    surprises: BTreeMap<i32, (u32, String)>,
}

/// A running loop.
pub(super) struct SyncLoop {
    shared: Arc<Shared>,
    thread: JoinHandle<Seen>,
    name: String,
}

impl SyncLoop {
    pub(super) fn start(device: &Device) -> Self {
        let shared = Arc::new(Shared::default());
        let name = device.folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (for_thread, device) = (Arc::clone(&shared), device.clone());
        let thread = std::thread::spawn(move || repeat(&for_thread, &device));
        Self { shared, thread, name }
    }

    /// Kills the sync that runs just now; says whether there was one.
    pub(super) fn kill(&self) -> bool {
        let mut child = self.shared.child.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(child) = child.as_mut() else { return false };
        matches!(child.try_wait(), Ok(None)) && child.kill().is_ok()
    }

    /// Lets the last sync end and reports what the loop saw.
    pub(super) fn stop(self, report: &mut CrashReport) {
        self.shared.is_over.store(true, Ordering::SeqCst);
        let Ok(seen) = self.thread.join() else {
            report.violations.push(format!("the sync loop of {} panicked", self.name));
            return;
        };
        report.finished_syncs += seen.finished;
        for (code, (count, text)) in seen.surprises {
            let line = format!("{count} syncs of {} ended with exit {code}: {text}", self.name);
            let is_violation = code == DAMAGED || code == PANICKED;
            let list = if is_violation { &mut report.violations } else { &mut report.surprises };
            list.push(line);
        }
    }
}

fn repeat(shared: &Shared, device: &Device) -> Seen {
    let mut seen = Seen::default();
    while !shared.is_over.load(Ordering::SeqCst) {
        let mut command = device.sync_command();
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
                *shared.child.lock().unwrap_or_else(PoisonError::into_inner) = Some(child);
                let code = wait(shared);
                let said = reader.and_then(|reader| reader.join().ok()).unwrap_or_default();
                note(&mut seen, code, &said);
            }
            Err(failure) => note(&mut seen, Some(-1), &failure.to_string()),
        }
        sleep(Duration::from_millis(2));
    }
    seen
}

/// Waits for the child; `None` means that a signal ended it.
fn wait(shared: &Shared) -> Option<i32> {
    loop {
        {
            let mut slot = shared.child.lock().unwrap_or_else(PoisonError::into_inner);
            match slot.as_mut().map(Child::try_wait) {
                Some(Ok(None)) => {}
                Some(Ok(Some(status))) => {
                    *slot = None;
                    return status.code();
                }
                Some(Err(_)) | None => return None,
            }
        }
        sleep(Duration::from_millis(1));
    }
}

fn note(seen: &mut Seen, code: Option<i32>, said: &str) {
    let Some(code) = code else { return };
    seen.finished += 1;
    if SYNC_DONE.contains(&code) || code == UNREACHABLE {
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
            note(&mut seen, code, "");
        }
        assert!(seen.surprises.is_empty());
        assert_eq!(seen.finished, 4);
        note(&mut seen, Some(8), " damaged ");
        note(&mut seen, Some(8), "damaged again");
        assert_eq!(seen.surprises[&8], (2, "damaged again".to_owned()));
    }
}
