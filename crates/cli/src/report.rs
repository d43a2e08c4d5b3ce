//! How the result of an exchange is told: one line, then what needs attention.

use std::time::Duration;

use serde_json::{Value, json};
use sync::engine::{Conflict, ScrubStatus, SyncReport, VoidEntry};
use sync::scan::{Problem, ProblemKind};

use crate::away::{self, away_json};
use crate::context::Context;
use crate::error::{Result, may_only_read};
use crate::folder::Folder;
use crate::text::{count, counted, day_and_time, path_text, quoted, rfc3339, size, span};
use crate::ui::Symbol;

/// Exit code where single items were left out.
pub(crate) const EXIT_PARTIAL: u8 = 3;
/// Exit code where conflicts wait for a decision.
pub(crate) const EXIT_CONFLICTS: u8 = 5;

/// How many lines of one kind are shown.
const LINES_MAX: usize = 20;

/// Returns the error of an exchange whose changes were not sent, because the account may only read the workspace.
pub(crate) fn refuse_kept_back(report: &SyncReport) -> Result<()> {
    let Some(first) = report.kept_back.first() else { return Ok(()) };
    let rest = report.kept_back.len() as u64 - 1;
    let others = match rest {
        0 => String::new(),
        rest => format!(" and {}", counted(rest, "other change", "other changes")),
    };
    Err(may_only_read()
        .cause(format!("{first}{others} would change it; what others did has arrived")))
}

/// Tells what an exchange did. Returns the exit code.
pub(crate) fn tell(
    context: &Context<'_>,
    command: &str,
    folder: &Folder,
    (report, conflicts): (&SyncReport, &[Conflict]),
    time: Duration,
) -> u8 {
    let ui = context.ui;
    let away = away::tell(context, folder);
    if let Some(seq) = report.history_lost_at {
        ui.note(history_lost_line(seq));
    }
    ui.json(&json!({
        "schema": format!("syncline.{command}/1"),
        "type": "summary",
        "workspace": folder.genesis.name,
        "version": report.seq,
        "sent": report.sent,
        "received": report.received,
        "sent_bytes": report.sent_bytes,
        "received_bytes": report.received_bytes,
        "scanned": report.scanned,
        "read_bytes": report.read_bytes,
        "kept_copies": report.kept_copies.iter().map(path_text).collect::<Vec<_>>(),
        "void_entries": report.void_entries.iter().map(void_json).collect::<Vec<_>>(),
        "conflicts": conflicts.len(),
        "problems": report.problems.iter().map(problem_json).collect::<Vec<_>>(),
        "history_lost_at": report.history_lost_at,
        "kept_back": report.kept_back.iter().map(path_text).collect::<Vec<_>>(),
        "stores_away": away.iter().map(away_json).collect::<Vec<_>>(),
        "notes": ui.notes(),
        "seconds": time.as_secs_f64(),
    }));
    for conflict in conflicts.iter().take(LINES_MAX) {
        ui.answer(conflict_line(context, conflict));
    }
    for problem in report.problems.iter().take(LINES_MAX) {
        ui.note(problem_line(problem));
    }
    if report.problems.len() > LINES_MAX {
        ui.note(format!("and {} more", count((report.problems.len() - LINES_MAX) as u64)));
    }
    if let Some(first) = report.void_entries.first() {
        ui.note(format!(
            "{} in the history counts for nothing, from v{} on: {}",
            counted(report.void_entries.len() as u64, "entry", "entries"),
            first.seq,
            first.reason
        ));
    }
    ui.say(Symbol::Done, summary(report, time));
    if let Some(conflict) = conflicts.first() {
        let path = conflict.original.as_ref().unwrap_or(&conflict.copy);
        let path = quoted(&path.to_string());
        ui.say(
            Symbol::Attention,
            format!("decide when you like: syncline resolve {path} --keep mine|theirs|both"),
        );
        return EXIT_CONFLICTS;
    }
    if report.problems.is_empty() { 0 } else { EXIT_PARTIAL }
}

/// Says that a server or store was put back to an older copy.
pub(crate) fn history_lost_line(seq: u64) -> String {
    format!(
        "the history was put back to an older copy, without v{seq} that this device has seen; \
         what this folder has of it is sent again"
    )
}

fn void_json(entry: &VoidEntry) -> Value {
    json!({"version": entry.seq, "reason": entry.reason})
}

fn summary(report: &SyncReport, time: Duration) -> String {
    let version = format!("v{}", report.seq);
    if report.sent + report.received == 0 {
        return format!(
            "{version}  nothing to exchange, {} in {}",
            counted(report.scanned, "entry", "entries"),
            span(time)
        );
    }
    format!(
        "{version}  {} sent ({}), {} received ({}) in {}",
        counted(report.sent, "change", "changes"),
        size(report.sent_bytes),
        count(report.received),
        size(report.received_bytes),
        span(time)
    )
}

/// Returns a line about a conflict.
pub(crate) fn conflict_line(context: &Context<'_>, conflict: &Conflict) -> String {
    let mark = context.ui.symbol(Symbol::Attention);
    let maker = match (conflict.is_own_copy, conflict.copy_device_name.as_str()) {
        (true, _) => ", yours".to_owned(),
        (false, "") => String::new(),
        (false, name) => format!(", from {}", name.escape_debug()),
    };
    match &conflict.original {
        Some(original) => format!(
            "{mark} {original} ({}) is in conflict with {} ({}{maker})",
            size(conflict.original_size),
            conflict.copy,
            size(conflict.copy_size)
        ),
        None => format!(
            "{mark} {} ({}) was kept; what it was made from is gone",
            conflict.copy,
            size(conflict.copy_size)
        ),
    }
}

/// Returns a conflict for programs.
pub(crate) fn conflict_json(conflict: &Conflict) -> Value {
    json!({
        "path": conflict.original.as_ref().map(path_text),
        "copy": path_text(&conflict.copy),
        "size": conflict.original_size,
        "copy_size": conflict.copy_size,
        "copy_device": conflict.copy_device_name,
        "is_own_copy": conflict.is_own_copy,
        "node": conflict.node.to_string(),
    })
}

fn problem_words(problem: &Problem) -> (&'static str, String) {
    match &problem.kind {
        ProblemKind::Name(error) => ("name", error.to_string()),
        ProblemKind::NotAFile => ("not_a_file", "it is a pipe, a socket or a device".to_owned()),
        ProblemKind::Unreadable(reason) => ("unreadable", reason.clone()),
        ProblemKind::Suspect => (
            "suspect",
            "its bytes changed although nothing has touched it, as after a power cut".to_owned(),
        ),
        ProblemKind::Blocked => {
            ("blocked", "its place is taken by something that is not synced".to_owned())
        }
        ProblemKind::Changing => {
            ("changing", "it changes while it is read; it goes with the next sync".to_owned())
        }
    }
}

fn problem_path(problem: &Problem) -> String {
    match &problem.name {
        Some(name) if problem.path.is_root() => String::from_utf8_lossy(name).into_owned(),
        Some(name) => format!("{}/{}", path_text(&problem.path), String::from_utf8_lossy(name)),
        None => path_text(&problem.path),
    }
}

/// Returns a line about something that is not synced.
pub(crate) fn problem_line(problem: &Problem) -> String {
    let path: String = problem_path(problem)
        .chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect();
    format!("not synced: {path}: {}", problem_words(problem).1)
}

/// Returns the same for programs.
pub(crate) fn problem_json(problem: &Problem) -> Value {
    let (kind, reason) = problem_words(problem);
    json!({"path": problem_path(problem), "kind": kind, "reason": reason})
}

/// Says how far the stores were read in the background.
pub(crate) fn scrub_line(context: &Context<'_>, status: &ScrubStatus) -> String {
    let day = |time| day_and_time(time, &context.zone);
    let position = &status.position;
    let mut words = match (position.began, position.ended) {
        (Some(began), _) => {
            let packs = counted(status.packs, "pack", "packs");
            format!("{} of {packs} since {}", count(position.objects), day(began))
        }
        (None, _) => "a round is done".to_owned(),
    };
    if let Some(ended) = position.ended {
        words.push_str(&format!("; everything was read by {}", day(ended)));
    }
    if position.lost > 0 {
        words.push_str(&format!("; {} lost", counted(position.lost, "pack is", "packs are")));
    }
    format!("read in the background: {words}")
}

/// The same for programs.
pub(crate) fn scrub_json(status: Option<&ScrubStatus>) -> Value {
    let Some(ScrubStatus { position, packs }) = status else { return Value::Null };
    json!({
        "read": position.objects,
        "packs": packs,
        "began": position.began.map(rfc3339),
        "ended": position.ended.map(rfc3339),
        "repaired": position.mended,
        "lost": position.lost,
    })
}
