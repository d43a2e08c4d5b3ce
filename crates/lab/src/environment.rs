//! What a figure depends on that was measured here.

use std::fs;

use crate::page::Page;

/// Returns how many threads the machine runs at once.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Returns what the machine is, by name: nothing of whose it is.
pub(crate) fn facts() -> Vec<(&'static str, String)> {
    let mut facts = vec![
        ("system", format!("{} {}", std::env::consts::OS, std::env::consts::ARCH)),
        ("cores", cores().to_string()),
    ];
    // Where the kernel does not tell, nothing is said.
    let line = |path: &str, name: &str| {
        let text = fs::read_to_string(path).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.trim_start_matches([':', ' ', '\t']).trim().to_owned())
    };
    facts.extend(line("/proc/cpuinfo", "model name").map(|model| ("processor", model)));
    facts.extend(line("/proc/meminfo", "MemTotal").map(|memory| ("memory", memory)));
    facts.extend(line("/proc/version", "Linux version").and_then(|text| {
        let release = text.split_whitespace().next()?;
        Some(("kernel", release.to_owned()))
    }));
    facts
}

/// Ends a page with what its figures depend on; `more` is what only this measurement has.
pub(crate) fn end(page: Page, more: &[(&'static str, String)]) -> Page {
    let facts = facts().into_iter().chain(more.iter().cloned());
    let rows = facts.map(|(name, value)| vec![name.to_owned(), value]).collect();
    page.heading("Where it was measured").table(&["what", ""], rows)
}
