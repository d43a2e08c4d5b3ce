//! `syncline log`: the versions of a path, newest first, deletions and former holders of the name included.

use jiff::tz::TimeZone;
use model::{NodeId, NodeKind};
use serde_json::{Value, json};
use sync::engine::VersionInfo;

use crate::arguments::LogArguments;
use crate::commands::ls::record_json;
use crate::connect::{SessionOptions, with_engine};
use crate::context::Context;
use crate::error::Result;
use crate::folder::Folder;
use crate::text::{day_and_time, path_text, rfc3339, size};

/// Runs the command.
pub(crate) fn run(context: &Context<'_>, arguments: &LogArguments) -> Result<u8> {
    let (folder, path) = Folder::locate_path(&context.home, &arguments.path)?;
    let mut versions = with_engine(context, &folder, SessionOptions::LOOK, None, async |engine| {
        engine.log(&path).await
    })?;
    versions.truncate(arguments.limit.unwrap_or(usize::MAX));
    context.ui.json(&json!({
        "schema": "syncline.log/1",
        "path": path_text(&path),
        "versions": versions.iter().map(version_json).collect::<Vec<_>>(),
    }));
    for version in &versions {
        context.ui.answer(line(version, path.is_root(), &context.zone));
    }
    Ok(0)
}

fn version_json(version: &VersionInfo) -> Value {
    let mut value = version.record.as_ref().map_or_else(|| json!({}), record_json);
    value["version"] = json!(version.seq);
    value["time"] = json!(rfc3339(version.time));
    value["device"] = json!(version.device_name);
    value["device_id"] = json!(version.device.to_string());
    value["node"] = json!(version.node.to_string());
    value["name"] = json!(version.record.as_ref().map(|record| record.name.to_string()));
    value["is_settings"] = json!(version.node.is_settings());
    value["removed_by_cleanup"] = json!(version.dropped.map(|by| by.fence));
    value["is_deletion"] = json!(version.record.is_none() && !version.node.is_settings());
    value
}

fn line(version: &VersionInfo, shows_name: bool, zone: &TimeZone) -> String {
    let what = match &version.record {
        None if version.node.is_settings() => "settings".to_owned(),
        None => "deleted".to_owned(),
        Some(record) => match &record.kind {
            NodeKind::File(content) => size(content.size),
            NodeKind::Directory => "directory".to_owned(),
            NodeKind::Symlink(target) => {
                format!("link to {}", String::from_utf8_lossy(target).escape_debug())
            }
        },
    };
    let name = match &version.record {
        Some(record) if shows_name => format!("  {}", record.name),
        None if version.node == NodeId::POOL => "  (the stores of the workspace)".to_owned(),
        None if version.node == NodeId::FENCE => "  (a cleanup)".to_owned(),
        None if version.node == NodeId::VERSION_POLICY => "  (which versions are kept)".to_owned(),
        None if version.node.is_settings() => "  (tidying up in the stores)".to_owned(),
        None if shows_name => format!("  (node {})", version.node.short()),
        _ => String::new(),
    };
    let gone = version.dropped.map_or_else(String::new, |by| {
        format!("  removed by the cleanup on {}", day_and_time(by.time, zone))
    });
    let seq = format!("v{}", version.seq);
    format!(
        "{seq:7} {:19}  {:14}  {what:>11}{name}{gone}",
        day_and_time(version.time, zone),
        version.device_name
    )
}
