//! Tells what a watch does, on the terminal and in `watch.json`.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::tz::TimeZone;
use model::{Clock, Timestamp};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sync::SyncError;
use sync::engine::{CleanupReport, Event, SyncReport};

use crate::context::Context;
use crate::folder::Folder;
use crate::report::{history_lost_line, problem_json, problem_line};
use crate::system;
use crate::text::{counted, path_text, rfc3339, size, time_of_day};
use crate::ui::{self, Symbol};

/// What a watch did last.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct WatchState {
    /// The process.
    pub(crate) pid: u32,
    /// When it started.
    pub(crate) started: String,
    /// When it last exchanged something.
    pub(crate) last_sync: Option<String>,
    /// The newest entry it has.
    pub(crate) version: u64,
    /// What did not work the last time.
    pub(crate) last_error: Option<String>,
    /// How many entries are not synced.
    pub(crate) problems: usize,
    /// How many changes are not sent, because the account may only read the workspace.
    #[serde(default)]
    pub(crate) kept_back: usize,
}

/// Tells what happens, on the terminal and in `watch.json`.
#[derive(Debug)]
pub(super) struct Teller {
    clock: Arc<system::SystemClock>,
    zone: TimeZone,
    is_json: bool,
    is_quiet: bool,
    marks: [String; 3],
    file: PathBuf,
    state: Mutex<WatchState>,
    has_started: AtomicBool,
}

impl Teller {
    pub(super) fn new(context: &Context<'_>, folder: &Folder) -> Self {
        let mark = |symbol| context.ui.symbol(symbol);
        let state = WatchState {
            pid: std::process::id(),
            started: rfc3339(context.clock.now()),
            ..WatchState::default()
        };
        Self {
            clock: context.clock.clone(),
            zone: context.zone.clone(),
            is_json: context.ui.is_json(),
            is_quiet: context.flags.quiet,
            marks: [mark(Symbol::Sent), mark(Symbol::Received), mark(Symbol::Attention)],
            file: folder.memory_file("watch.json"),
            state: Mutex::new(state),
            has_started: AtomicBool::new(false),
        }
    }

    /// Says that it watches, the first time.
    pub(super) fn started(&self, folder: &Folder) {
        if self.has_started.swap(true, Ordering::Relaxed) {
            return;
        }
        self.save();
        if self.is_json {
            ui::print(&json!({"schema": "syncline.watch/1", "type": "started", "workspace": folder.genesis.name}).to_string());
        } else if !self.is_quiet {
            ui::print(&format!(
                "watching {} ({}); Ctrl-C stops",
                folder.root.display(),
                folder.place
            ));
        }
    }

    pub(super) fn change(&self, event: &Event) {
        let (kind, mark, path) = match event {
            Event::Sent(path) => ("sent", &self.marks[0], path),
            Event::Received(path) => ("received", &self.marks[1], path),
            Event::Removed(path) => ("removed", &self.marks[1], path),
            Event::KeptCopy(path) => ("kept_copy", &self.marks[2], path),
            Event::Scrubbed { mended, put_back, lost } => {
                return self.scrubbed(*mended, *put_back, *lost);
            }
            Event::Step(_)
            | Event::Read { .. }
            | Event::Written { .. }
            | Event::Cleaned { .. }
            | Event::Filled
            | Event::CleanupDue
            | Event::SettingsChanged
            | Event::MountsChanged => return,
        };
        let now = self.clock.now();
        if self.is_json {
            let line = json!({
                "schema": "syncline.change/1",
                "type": kind,
                "path": path_text(path),
                "time": rfc3339(now),
            });
            ui::print(&line.to_string());
        } else if !self.is_quiet {
            let what = match event {
                Event::Removed(_) => "  removed",
                Event::KeptCopy(_) => "  kept, in conflict",
                _ => "",
            };
            ui::print(&format!("{}  {mark} {path}{what}", time_of_day(now, &self.zone)));
        }
    }

    /// Tells that something stored was not as it should be.
    fn scrubbed(&self, mended: u64, put_back: u64, lost: u64) {
        if self.is_json {
            let line = json!({
                "schema": "syncline.watch/1",
                "type": "scrubbed",
                "time": rfc3339(self.clock.now()),
                "repaired": mended,
                "put_back_chunks": put_back,
                "lost": lost,
            });
            ui::print(&line.to_string());
            return;
        }
        if mended + put_back > 0 {
            let pieces = counted(mended, "piece", "pieces");
            let chunks = counted(put_back, "lost chunk", "lost chunks");
            self.note(&format!("repaired {pieces} in the stores and put back {chunks}"));
        }
        if lost > 0 {
            let packs = counted(lost, "pack is", "packs are");
            self.note(&format!("{packs} lost; `syncline check` names what is made of them"));
        }
    }

    /// Tells what came of a cleanup that nobody had asked for.
    pub(super) fn cleaned(&self, done: &Result<CleanupReport, SyncError>) {
        let report = match done {
            Ok(report) if report.fence.is_none() => return,
            Ok(report) => report,
            Err(error) => return self.failed(error, self.clock.now()),
        };
        if self.is_json {
            let line = json!({
                "schema": "syncline.watch/1",
                "type": "cleaned",
                "time": rfc3339(self.clock.now()),
                "removed_versions": report.dropped_versions,
                "removed_packs": report.packs,
                "removed_bytes": report.length,
                "written_bytes": report.written_length,
                "version": report.fence,
            });
            ui::print(&line.to_string());
        } else if !self.is_quiet {
            let versions = counted(report.dropped_versions, "old version", "old versions");
            let freed = size(report.length.saturating_sub(report.written_length));
            self.note(&format!("removed {versions}, as `syncline cleanup` does: {freed} less"));
        }
    }

    pub(super) fn report(&self, done: Result<SyncReport, &SyncError>) {
        let now = self.clock.now();
        match done {
            Ok(report) => self.done(&report, now),
            Err(error) => self.failed(error, now),
        }
        self.save();
    }

    fn done(&self, report: &SyncReport, now: Timestamp) {
        let kept_back = report.kept_back.len();
        let is_known = {
            let mut state = self.state.lock();
            state.last_sync = Some(rfc3339(now));
            state.version = report.seq;
            state.last_error = None;
            state.problems = report.problems.len();
            std::mem::replace(&mut state.kept_back, kept_back) == kept_back
        };
        if self.is_json {
            let line = json!({
                "schema": "syncline.watch/1",
                "type": "synced",
                "time": rfc3339(now),
                "version": report.seq,
                "sent": report.sent,
                "received": report.received,
                "sent_bytes": report.sent_bytes,
                "received_bytes": report.received_bytes,
                "history_lost_at": report.history_lost_at,
                "problems": report.problems.iter().map(problem_json).collect::<Vec<_>>(),
                "kept_back": report.kept_back.iter().map(path_text).collect::<Vec<_>>(),
            });
            ui::print(&line.to_string());
            return;
        }
        if let Some(seq) = report.history_lost_at {
            self.note(&history_lost_line(seq));
        }
        if kept_back > 0 && !is_known {
            let changes = counted(kept_back as u64, "change stays", "changes stay");
            self.note(&format!(
                "{changes} here: this account may read the workspace, not change it"
            ));
        }
        for problem in report.problems.iter().take(5) {
            self.note(&problem_line(problem));
        }
        if !self.is_quiet && report.sent + report.received > 0 {
            let (sent, received) = (size(report.sent_bytes), size(report.received_bytes));
            ui::print(&format!(
                "{}    v{}  {sent} sent, {received} received",
                time_of_day(now, &self.zone),
                report.seq
            ));
        }
    }

    fn failed(&self, error: &SyncError, now: Timestamp) {
        let text = error.to_string();
        let is_known = self.state.lock().last_error.replace(text.clone()) == Some(text.clone());
        if self.is_json {
            let line = json!({"schema": "syncline.watch/1", "type": "waiting", "time": rfc3339(now), "cause": text});
            ui::print(&line.to_string());
        } else if !is_known {
            self.note(&format!("{text}; it is tried again"));
        }
    }

    pub(super) fn note(&self, text: &str) {
        if !self.is_json {
            ui::eprint(&format!(
                "{}  {} {text}",
                time_of_day(self.clock.now(), &self.zone),
                self.marks[2]
            ));
        }
    }

    fn save(&self) {
        let text = serde_json::to_string(&*self.state.lock()).unwrap_or_default();
        // It is for looking at only; the watch goes on without it.
        let _ = system::write_for_looking(&self.file, &text);
    }

    pub(super) fn stopped(&self) {
        let _ = system::remove_file(&self.file);
        if !self.is_json && !self.is_quiet {
            ui::print("stopped; everything is in order");
        }
    }
}
