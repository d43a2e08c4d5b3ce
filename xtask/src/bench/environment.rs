//! Where and with what a benchmark ran, kept beside its figures.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::inputs::SEED;
use crate::failure::Result;
use crate::{process, repository_root};

/// Describes the machine, the commit and the versions.
pub(super) fn describe(versions: &[(String, String)], notes: &[String]) -> Value {
    let git = |words: &[&str]| {
        let text = process::output(Command::new("git").args(words).current_dir(repository_root()));
        text.map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned())
    };
    let first_value = |path: &str, key: &str| {
        let text = fs::read_to_string(path).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with(key)).unwrap_or_default();
        line.split_once(':').map_or_else(String::new, |(_, value)| value.trim().to_owned())
    };
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    json!({
        "when_unix": seconds,
        "commit": git(&["rev-parse", "HEAD"]),
        "uncommitted_files": git(&["status", "--porcelain"]).lines().count(),
        "kernel": fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim(),
        "cpu": first_value("/proc/cpuinfo", "model name"),
        "cpu_count": std::thread::available_parallelism().map_or(0, usize::from),
        "memory": first_value("/proc/meminfo", "MemTotal"),
        "load": fs::read_to_string("/proc/loadavg").unwrap_or_default().trim(),
        "seed": SEED,
        "versions": versions.iter().map(|(name, version)| json!({name.as_str(): version}))
            .collect::<Vec<_>>(),
        "notes": notes,
    })
}

/// Writes `environment.json` into the folder of results.
pub(super) fn write(out: &Path, versions: &[(String, String)], notes: &[String]) -> Result<()> {
    fs::create_dir_all(out)?;
    let text = serde_json::to_string_pretty(&describe(versions, notes))?;
    Ok(fs::write(out.join("environment.json"), text + "\n")?)
}
