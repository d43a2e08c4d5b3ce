//! The inputs that all programs get: built once from a seed into a cache folder.
//!
//! A workload is a base folder and updates of it, each a whole folder. Files that an update does
//! not change keep their mtime; files that it changes get another one, so that no program can be
//! blamed for trusting size and mtime.

mod big;
mod generated;
mod releases;
mod tree;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::failure::{Context, Result, fail};

/// The seed of every generated input.
pub const SEED: u64 = 20_261_120;

/// One input and its updates.
#[derive(Debug, Clone)]
pub struct Workload {
    /// Its name in the tables.
    pub name: String,
    /// The folder at the start.
    pub base: PathBuf,
    /// The updates: name and whole folder after it. Each starts from the base.
    pub updates: Vec<(String, PathBuf)>,
    /// What a reader of the figures must know about how the input was made.
    pub note: String,
}

/// Which inputs, and how large.
#[derive(Debug, Clone)]
pub struct InputOptions {
    /// The cache folder.
    pub cache: PathBuf,
    /// Small inputs, to try the harness.
    pub quick: bool,
    /// The archive with releases, if there is one.
    pub releases: Option<PathBuf>,
}

/// The names of all workloads.
pub const NAMES: [&str; 6] = ["tree", "releases-7.0", "releases-7.2", "photos", "stack", "big"];

/// Builds a workload, or finds it in the cache.
pub fn build(name: &str, options: &InputOptions) -> Result<Workload> {
    let size = if options.quick { "quick" } else { "full" };
    let folder = options.cache.join(format!("{name}-{size}-{SEED}"));
    let finished = folder.join("finished");
    if !finished.exists() {
        println!("building the input {name} ({size}) in {}", folder.display());
        if folder.exists() {
            fs::remove_dir_all(&folder).context(folder.display())?;
        }
        fs::create_dir_all(folder.join("updates"))?;
        let note = match name {
            "tree" => tree::build(&folder, options)?,
            "releases-7.0" => releases::build(&folder, options, "7.0.0", "7.0.15")?,
            "releases-7.2" => releases::build(&folder, options, "7.2.0", "7.2.3")?,
            "photos" => generated::build_photos(&folder, options.quick)?,
            "stack" => generated::build_stack(&folder, options.quick)?,
            "big" => big::build(&folder, options.quick)?,
            other => return fail(format!("no workload is called '{other}'; there are {NAMES:?}")),
        };
        fs::write(&finished, note)?;
    }
    let mut updates = Vec::new();
    for entry in fs::read_dir(folder.join("updates"))? {
        let entry = entry?;
        updates.push((entry.file_name().to_string_lossy().into_owned(), entry.path()));
    }
    updates.sort();
    let note = fs::read_to_string(&finished)?;
    Ok(Workload { name: name.to_owned(), base: folder.join("base"), updates, note })
}

/// The time of every generated file; an update is a day younger.
fn base_time() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000)
}

fn update_time() -> SystemTime {
    base_time() + Duration::from_hours(24)
}

fn write_file(path: &Path, bytes: &[u8], time: SystemTime) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, bytes).context(path.display())?;
    set_time(path, time)
}

fn set_time(path: &Path, time: SystemTime) -> Result<()> {
    let file = fs::OpenOptions::new().write(true).open(path).context(path.display())?;
    file.set_modified(time).context(path.display())
}

/// Gives every file of `newer` that equals the one in `older` its time, and every other one
/// another time; returns how many are the same and how many are not.
fn align_times(older: &Path, newer: &Path) -> Result<(usize, usize)> {
    let (mut same, mut other) = (0, 0);
    for path in files_below(newer)? {
        let (old_path, new_path) = (older.join(&path), newer.join(&path));
        let Ok(old) = fs::symlink_metadata(&old_path) else {
            other += 1;
            continue;
        };
        let new = fs::symlink_metadata(&new_path)?;
        if !old.is_file() || !new.is_file() {
            continue;
        }
        if old.len() == new.len() && fs::read(&old_path)? == fs::read(&new_path)? {
            set_time(&new_path, old.modified()?)?;
            same += 1;
        } else {
            if old.modified()? == new.modified()? {
                set_time(&new_path, old.modified()? + Duration::from_hours(24))?;
            }
            other += 1;
        }
    }
    Ok((same, other))
}

/// Every file (not folder) below a folder, as relative paths in order.
pub fn files_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut waiting = vec![PathBuf::new()];
    while let Some(relative) = waiting.pop() {
        let listing = fs::read_dir(folder.join(&relative));
        for entry in listing.context(folder.join(&relative).display())? {
            let entry = entry?;
            let path = relative.join(entry.file_name());
            if entry.file_type()?.is_dir() { waiting.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    Ok(found)
}

/// Makes `target` equal to `source` with rsync, which leaves unchanged files untouched.
pub fn mirror(source: &Path, target: &Path) -> Result<()> {
    fs::create_dir_all(target)?;
    let mut command = std::process::Command::new("rsync");
    command.args(["--archive", "--delete", "--whole-file"]);
    // A trailing slash means the content of the folder.
    command.arg(source.join("")).arg(target.join(""));
    crate::process::output(&mut command).map(drop)
}

/// The apparent size of everything below a folder; a folder that does not exist has none.
pub fn bytes_below(folder: &Path) -> Result<u64> {
    if !folder.exists() {
        return Ok(0);
    }
    let mut sum = 0;
    for path in files_below(folder)? {
        // Servers tidy up while we count; what is gone has no size.
        sum += fs::symlink_metadata(folder.join(path)).map_or(0, |metadata| metadata.len());
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unchanged_files_keep_their_time_and_changed_ones_get_another() {
        let room = tempfile::tempdir().unwrap();
        let (older, newer) = (room.path().join("older"), room.path().join("newer"));
        for (folder, changed) in [(&older, "one"), (&newer, "two")] {
            write_file(&folder.join("d/same"), b"same", base_time()).unwrap();
            write_file(&folder.join("changed"), changed.as_bytes(), base_time()).unwrap();
        }
        set_time(&newer.join("d/same"), update_time()).unwrap();
        assert_eq!(align_times(&older, &newer), Ok((1, 1)));
        let time = |path: PathBuf| fs::metadata(path).unwrap().modified().unwrap();
        assert_eq!(time(older.join("d/same")), time(newer.join("d/same")));
        assert_ne!(time(older.join("changed")), time(newer.join("changed")));
    }

    #[test]
    fn generated_inputs_are_equal_on_every_machine_and_found_again() {
        let room = tempfile::tempdir().unwrap();
        let options = |name: &str| InputOptions {
            cache: room.path().join(name),
            quick: true,
            releases: None,
        };
        let first = build("photos", &options("a")).unwrap();
        let again = build("photos", &options("a")).unwrap();
        let elsewhere = build("photos", &options("b")).unwrap();
        let bytes = |workload: &Workload| fs::read(workload.base.join("photo-000.jpg")).unwrap();
        assert_eq!(bytes(&first), bytes(&elsewhere));
        assert_eq!(first.note, again.note);
        assert_eq!(bytes_below(&room.path().join("nowhere")), Ok(0));
    }

    #[test]
    fn an_unknown_workload_is_an_error() {
        let room = tempfile::tempdir().unwrap();
        let cache = room.path().to_owned();
        assert!(build("films", &InputOptions { cache, quick: true, releases: None }).is_err());
    }
}
