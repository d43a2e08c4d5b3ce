//! TREE: Debian's linux-source, and an update of it.
//!
//! The best update is a second version from the package archive. Where only one can be had, the
//! update is derived from the first by the seed, in the shape that two real versions had; the note
//! of the workload says which of the two it is.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{
    InputOptions, SEED, align_times, base_time, files_below, mirror, update_time, write_file,
};
use crate::failure::{Context, Result, fail};
use crate::process;
use crate::random::Random;

const PACKAGE: &str = "linux-source-6.1";
const ARCHIVE: &str = "usr/src/linux-source-6.1.tar.xz";

/// How 6.1.176-1 became 6.1.192-2, out of this many files.
const SHAPE_FILES: usize = 78_613;
const SHAPE_CHANGED: usize = 4_546;
const SHAPE_NEW: usize = 32;
const SHAPE_DELETED: usize = 66;

pub(super) fn build(folder: &Path, options: &InputOptions) -> Result<String> {
    let (base, update) = (folder.join("base"), folder.join("updates/next"));
    if options.quick {
        write_small_tree(&base)?;
        mirror(&base, &update)?;
        return Ok(format!("2,000 generated text files; {}", derive(&update)?));
    }
    let versions = available_versions()?;
    let (oldest, newest) = match (versions.last(), versions.first()) {
        (Some(oldest), Some(newest)) => (oldest.clone(), newest.clone()),
        _ => return fail(format!("apt knows no {PACKAGE}; run apt-get update")),
    };
    unpack(&download(&options.cache, &oldest)?, &base)?;
    if oldest == newest {
        mirror(&base, &update)?;
        return Ok(format!(
            "{PACKAGE} {oldest}; apt has no second version, so {}",
            derive(&update)?
        ));
    }
    unpack(&download(&options.cache, &newest)?, &update)?;
    let (same, other) = align_times(&base, &update)?;
    Ok(format!("{PACKAGE} {oldest} to {newest}: {same} files the same, {other} new or changed"))
}

/// All versions apt can fetch, newest first.
fn available_versions() -> Result<Vec<String>> {
    let listing = process::output(Command::new("apt-cache").args(["madison", PACKAGE]))?;
    Ok(read_versions(&listing))
}

fn read_versions(listing: &str) -> Vec<String> {
    let packages = listing.lines().filter(|line| line.contains("Packages"));
    packages.filter_map(|line| line.split('|').nth(1)).map(|word| word.trim().to_owned()).collect()
}

/// Fetches one version of the package and gives the archive inside it.
fn download(cache: &Path, version: &str) -> Result<PathBuf> {
    let folder = cache.join(format!("{PACKAGE}-{version}"));
    let archive = folder.join(ARCHIVE);
    if archive.exists() {
        return Ok(archive);
    }
    fs::create_dir_all(&folder)?;
    println!("fetching {PACKAGE} {version} (about 140 MB)");
    let wanted = format!("{PACKAGE}={version}");
    process::output(Command::new("apt-get").args(["download", &wanted]).current_dir(&folder))?;
    for entry in fs::read_dir(&folder)?.flatten() {
        if entry.path().extension().is_some_and(|ending| ending == "deb") {
            let mut unpacker = Command::new("dpkg-deb");
            process::output(unpacker.arg("--extract").arg(entry.path()).arg(&folder))?;
            fs::remove_file(entry.path())?;
        }
    }
    if archive.exists() { Ok(archive) } else { fail(format!("{wanted} holds no {ARCHIVE}")) }
}

fn unpack(archive: &Path, target: &Path) -> Result<()> {
    fs::create_dir_all(target)?;
    let mut tar = Command::new("tar");
    tar.arg("--extract").arg("--file").arg(archive).arg("--directory").arg(target);
    process::output(tar.arg("--strip-components=1")).map(drop)
}

fn write_small_tree(base: &Path) -> Result<()> {
    let mut random = Random::for_part(SEED, "small tree");
    for index in 0..2000 {
        let length =
            usize::try_from(random.below(40).min(random.below(40)) * 512 + 80).unwrap_or(80);
        let path = base.join(format!("part-{}/room-{}/file-{index:04}.c", index % 7, index % 53));
        write_file(&path, &random.text(length), base_time())?;
    }
    Ok(())
}

/// Changes a copy of the base: some lines in one file of 17, few new and deleted files.
fn derive(update: &Path) -> Result<String> {
    let mut random = Random::for_part(SEED, "tree update");
    let files = files_below(update)?;
    let share = |count: usize| (count * files.len() / SHAPE_FILES).max(1);
    let (changes, additions, deletions) =
        (share(SHAPE_CHANGED), share(SHAPE_NEW), share(SHAPE_DELETED));
    let mut waiting = files;
    for _ in 0..deletions {
        let Some(file) = take_one(&mut waiting, &mut random) else { break };
        fs::remove_file(update.join(&file)).context(file.display())?;
    }
    let mut changed = 0;
    while changed < changes {
        let Some(file) = take_one(&mut waiting, &mut random) else { break };
        let path = update.join(&file);
        if fs::symlink_metadata(&path)?.is_file() && !fs::read(&path)?.is_empty() {
            let text = edit_lines(&fs::read(&path)?, &mut random);
            write_file(&path, &text, update_time())?;
            changed += 1;
        }
    }
    for index in 0..additions {
        let folder =
            random.choose(&waiting).and_then(|file| file.parent()).unwrap_or(Path::new(""));
        let path = update.join(folder).join(format!("added-{index}.c"));
        let length = usize::try_from(random.between(200, 30_000)).unwrap_or(200);
        write_file(&path, &random.text(length), update_time())?;
    }
    Ok(format!(
        "the update is derived by the seed: {changed} files with edited lines, {additions} new, \
         {deletions} deleted"
    ))
}

fn take_one(files: &mut Vec<PathBuf>, random: &mut Random) -> Option<PathBuf> {
    let at = usize::try_from(random.below(files.len() as u64)).ok()?;
    (at < files.len()).then(|| files.swap_remove(at))
}

/// Replaces, inserts or removes a few lines.
fn edit_lines(text: &[u8], random: &mut Random) -> Vec<u8> {
    let mut lines: Vec<Vec<u8>> =
        text.split_inclusive(|&byte| byte == b'\n').map(Vec::from).collect();
    for _ in 0..random.between(1, 12) {
        let at = usize::try_from(random.below(lines.len() as u64)).unwrap_or(0);
        let length = usize::try_from(random.between(8, 70)).unwrap_or(8);
        let line = [random.text(length), b"\n".to_vec()].concat();
        match random.below(4) {
            0 if lines.len() > 1 => drop(lines.remove(at)),
            1 => lines.insert(at, line),
            _ => lines[at] = line,
        }
    }
    lines.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_newest_first_and_sources_are_left_out() {
        let listing = "p | 6.1.192-2 | http://a b/main amd64 Packages\n\
                       p | 6.1.176-1 | http://a b/main amd64 Packages\n\
                       p | 6.1.100-1 | http://a b/main Sources\n";
        assert_eq!(read_versions(listing), ["6.1.192-2", "6.1.176-1"]);
    }

    #[test]
    fn a_derived_update_has_the_measured_shape() {
        let room = tempfile::tempdir().unwrap();
        let (base, update) = (room.path().join("base"), room.path().join("update"));
        for index in 0..400 {
            for folder in [&base, &update] {
                let text = format!("line {index}\n").repeat(20);
                write_file(&folder.join(format!("{index}.c")), text.as_bytes(), base_time())
                    .unwrap();
            }
        }
        derive(&update).unwrap();
        let (same, other) = align_times(&base, &update).unwrap();
        let expected = SHAPE_CHANGED * 400 / SHAPE_FILES;
        assert_eq!((same, other), (400 - 1 - expected, expected + 1));
    }
}
