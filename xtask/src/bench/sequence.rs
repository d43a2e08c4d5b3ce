//! The steps of one program with one workload: initial, no-op, restore, then every update.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::inputs::{Workload, files_below, mirror};
use super::peers::{Peer, Room};
use super::place::remove;
use super::sample::{Row, Sample};
use crate::failure::{Context, Result, fail};
use crate::syncline::is_own_entry;

/// Runs all steps below `place` and hands every row over as soon as it is there.
pub(super) fn run(
    peer: &mut dyn Peer,
    workload: &Workload,
    place: &Path,
    keep: &mut dyn FnMut(Row),
) -> Result<()> {
    let room = Room {
        source: place.join("source"),
        target: place.join("target"),
        scratch: place.join("scratch"),
    };
    remove(&room.target)?;
    remove(&room.scratch)?;
    fs::create_dir_all(&room.scratch)?;
    mirror(&workload.base, &room.source)?;
    let outcome = run_steps(peer, workload, &room, keep);
    peer.end();
    remove(&room.target)?;
    remove(&room.scratch)?;
    outcome
}

fn run_steps(
    peer: &mut dyn Peer,
    workload: &Workload,
    room: &Room,
    keep: &mut dyn FnMut(Row),
) -> Result<()> {
    let peer_name = peer.name();
    let mut keep = |step: &str, sample: Sample, verified: bool| {
        keep(Row {
            workload: workload.name.clone(),
            file_system: String::new(),
            peer: peer_name.to_owned(),
            step: step.to_owned(),
            round: 0,
            sample,
            verified,
        });
    };
    peer.begin(room).context("begin")?;
    let sample = peer.send(room).context("initial")?;
    keep("initial", sample, verify_copy(peer, room)?);
    let sample = peer.send(room).context("no-op")?;
    keep("no-op", sample, verify_copy(peer, room)?);
    if let Some(sample) = peer.restore(room).context("restore")? {
        verify(&room.source, &restored_root(room)).context("restore")?;
        keep("restore", sample, true);
    }
    for (index, (name, update)) in workload.updates.iter().enumerate() {
        if index > 0 {
            // Every update starts from the base, on both sides.
            change_source(&workload.base, room)?;
            peer.send(room).context("back to the base")?;
            peer.fetch(room).context("back to the base")?;
        }
        change_source(update, room)?;
        let sample = peer.send(room).context(format!("update {name}"))?;
        keep(&format!("update:{name}"), sample, verify_copy(peer, room)?);
        if let Some(sample) = peer.fetch(room).context(format!("fetch {name}"))? {
            verify(&room.source, &room.target).context(format!("fetch {name}"))?;
            keep(&format!("fetch:{name}"), sample, true);
        }
    }
    Ok(())
}

/// Changes the source and leaves what a program keeps in it for itself.
fn change_source(to: &Path, room: &Room) -> Result<()> {
    let own: Vec<PathBuf> = fs::read_dir(&room.source)?
        .flatten()
        .filter(|entry| is_own_entry(&entry.file_name().to_string_lossy()))
        .map(|entry| entry.path())
        .collect();
    let aside = room.scratch.join("aside");
    fs::create_dir_all(&aside)?;
    let aside_path = |path: &Path| aside.join(path.file_name().unwrap_or_default());
    for path in &own {
        fs::rename(path, aside_path(path))?;
    }
    mirror(to, &room.source)?;
    for path in &own {
        fs::rename(aside_path(path), path)?;
    }
    Ok(())
}

fn verify_copy(peer: &dyn Peer, room: &Room) -> Result<bool> {
    match peer.copy_of_source(room) {
        Some(copy) => verify(&room.source, &copy).map(|()| true),
        None => Ok(false),
    }
}

/// Some programs restore below the absolute path of the source.
fn restored_root(room: &Room) -> PathBuf {
    let below = room.target.join(room.source.strip_prefix("/").unwrap_or(&room.source));
    if below.exists() { below } else { room.target.clone() }
}

/// Compares two folders: names, links and the bytes of every file.
pub(super) fn verify(source: &Path, copy: &Path) -> Result<()> {
    let (left, right) = (listing(source)?, listing(copy)?);
    for (name, path) in &left {
        let Some(other) = right.get(name) else { return fail(format!("{name} is missing")) };
        let is_link = fs::symlink_metadata(path)?.is_symlink();
        let equal = if is_link {
            fs::read_link(path)? == fs::read_link(other).context(name)?
        } else {
            same_bytes(path, other).context(name)?
        };
        if !equal {
            return fail(format!("{name} differs"));
        }
    }
    match right.keys().find(|name| !left.contains_key(*name)) {
        Some(extra) => fail(format!("{extra} is too much")),
        None => Ok(()),
    }
}

fn listing(folder: &Path) -> Result<BTreeMap<String, PathBuf>> {
    let files = files_below(folder)?.into_iter();
    let named = files.map(|path| (path.to_string_lossy().into_owned(), folder.join(path)));
    let is_marker = |name: &str| is_own_entry(name) || name.starts_with(".stfolder");
    Ok(named.filter(|(name, _)| !is_marker(name)).collect())
}

fn same_bytes(left: &Path, right: &Path) -> Result<bool> {
    use std::io::Read;
    let (mut left, mut right) = (fs::File::open(left)?, fs::File::open(right)?);
    if left.metadata()?.len() != right.metadata()?.len() {
        return Ok(false);
    }
    let (mut one, mut other) = (Vec::new(), Vec::new());
    loop {
        one.clear();
        other.clear();
        Read::by_ref(&mut left).take(1 << 20).read_to_end(&mut one)?;
        Read::by_ref(&mut right).take(1 << 20).read_to_end(&mut other)?;
        if one != other {
            return Ok(false);
        }
        if one.is_empty() {
            return Ok(true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_folders_pass_and_every_difference_is_named() {
        let room = tempfile::tempdir().unwrap();
        let (left, right) = (room.path().join("left"), room.path().join("right"));
        for folder in [&left, &right] {
            fs::create_dir_all(folder.join("d")).unwrap();
            fs::write(folder.join("d/a"), "same").unwrap();
            std::os::unix::fs::symlink("d/a", folder.join("link")).unwrap();
        }
        fs::write(right.join(".syncline"), "its own").unwrap();
        assert_eq!(verify(&left, &right), Ok(()));
        fs::write(right.join("d/a"), "also").unwrap();
        assert!(verify(&left, &right).unwrap_err().to_string().contains("d/a differs"));
        fs::write(right.join("d/a"), "same").unwrap();
        fs::write(right.join("extra"), "").unwrap();
        assert!(verify(&left, &right).unwrap_err().to_string().contains("extra is too much"));
        assert!(verify(&right, &left).unwrap_err().to_string().contains("extra is missing"));
    }
}
