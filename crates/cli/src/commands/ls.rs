//! `syncline ls`: what is in the workspace, or was, as far as this device knows.

use model::{NodeKind, NodeRecord};
use serde_json::{Value, json};
use sync::engine::Listed;

use crate::arguments::LsArguments;
use crate::connect::{SessionOptions, with_engine};
use crate::context::Context;
use crate::error::Result;
use crate::folder::Folder;
use crate::text::{day_and_time, parse_at, path_text, rfc3339, size};
use crate::ui::Paint;

/// Runs the command.
pub(crate) fn run(context: &Context<'_>, arguments: &LsArguments) -> Result<u8> {
    let (folder, path) = Folder::locate_path(&context.home, &arguments.path)?;
    let at = arguments.at.as_deref().map(|at| parse_at(at, &context.zone)).transpose()?;
    let (deleted, recursive) = (arguments.deleted, arguments.recursive);
    let listed = with_engine(context, &folder, SessionOptions::LOOK, None, async |engine| {
        engine.list(&path, at, deleted, recursive).await
    })?;
    context.ui.json(&json!({
        "schema": "syncline.ls/1",
        "path": path_text(&path),
        "entries": listed.iter().map(entry_json).collect::<Vec<_>>(),
    }));
    for entry in &listed {
        context.ui.answer(line(context, entry));
    }
    Ok(0)
}

fn entry_json(entry: &Listed) -> Value {
    let mut value = record_json(&entry.record);
    value["path"] = json!(path_text(&entry.path));
    value["is_deleted"] = json!(entry.is_deleted);
    value
}

/// Returns what a record says, for programs.
pub(crate) fn record_json(record: &NodeRecord) -> Value {
    let (kind, size, target) = match &record.kind {
        NodeKind::Directory => ("directory", None, None),
        NodeKind::File(content) => ("file", Some(content.size), None),
        NodeKind::Symlink(target) => {
            ("link", None, Some(String::from_utf8_lossy(target).into_owned()))
        }
    };
    json!({
        "kind": kind,
        "size": size,
        "target": target,
        "mode": format!("{:03o}", record.mode),
        "modified": (!record.kind.is_directory()).then(|| rfc3339(record.modified)),
        "is_conflict": record.conflict.is_some(),
    })
}

fn line(context: &Context<'_>, entry: &Listed) -> String {
    let (mark, extent) = match &entry.record.kind {
        NodeKind::Directory => ("/", String::new()),
        NodeKind::File(content) => ("", size(content.size)),
        NodeKind::Symlink(_) => ("@", String::new()),
    };
    let time = match entry.record.kind {
        NodeKind::Directory => String::new(),
        _ => day_and_time(entry.record.modified, &context.zone),
    };
    let path = format!("{}{mark}", entry.path);
    let path = if entry.is_deleted {
        context.ui.paint(Paint::Dim, &format!("{path} (deleted)"))
    } else {
        path
    };
    format!("{extent:>11}  {time:19}  {path}")
}
