//! PHOTOS and STACK: files drawn from the seed.

use std::fs;
use std::path::{Path, PathBuf};

use super::{SEED, base_time, files_below, mirror, update_time, write_file};
use crate::failure::Result;
use crate::random::Random;

/// 50 files that no compressor can shorten, 193 MB together, as a camera makes them.
pub(super) fn build_photos(folder: &Path, quick: bool) -> Result<String> {
    let (count, mean) = if quick { (6, 300_000) } else { (50, 3_860_000) };
    let mut random = Random::for_part(SEED, "photos");
    let mut total = 0;
    for index in 0..count {
        let length = random.between(mean / 2, mean * 3 / 2);
        total += length;
        let path = folder.join(format!("base/photo-{index:03}.jpg"));
        write_file(&path, &random.bytes(usize::try_from(length).unwrap_or(0)), base_time())?;
    }
    Ok(format!("{count} random files, {total} bytes"))
}

/// `StackSync`'s set: U[512 KB, 4 MB], depth 3, two subfolders per level, then 1000 changes.
///
/// The paper gives the sizes, the folders and the pattern of changes (B 38 %, E 8 %, M 3 %, the
/// rest combinations of two); that half the files are text, and inserts of 1 to 4096 bytes, are
/// our choice.
pub(super) fn build_stack(folder: &Path, quick: bool) -> Result<String> {
    let (count, low, high, changes) =
        if quick { (12, 20_000, 160_000, 37) } else { (324, 512_000, 4_000_000, 1000) };
    let mut random = Random::for_part(SEED, "stack");
    let folders = stack_folders(3);
    let mut total = 0;
    for index in 0..count {
        let length = usize::try_from(random.between(low, high)).unwrap_or(0);
        let is_text = index % 2 == 0;
        let bytes = if is_text { random.text(length) } else { random.bytes(length) };
        let name = format!("file-{index:03}.{}", if is_text { "txt" } else { "bin" });
        let place = folders[index % folders.len()].join(name);
        write_file(&folder.join("base").join(place), &bytes, base_time())?;
        total += length;
    }
    let update = folder.join("updates/changes");
    mirror(&folder.join("base"), &update)?;
    let changed_bytes = change_stack(&update, changes, &mut random)?;
    Ok(format!("{count} files, {total} bytes; {changes} changes insert {changed_bytes} bytes"))
}

fn stack_folders(depth: usize) -> Vec<PathBuf> {
    let mut folders = vec![PathBuf::new()];
    let mut level = folders.clone();
    for _ in 0..depth {
        level =
            level.iter().flat_map(|parent| [parent.join("left"), parent.join("right")]).collect();
        folders.extend(level.clone());
    }
    folders
}

fn change_stack(folder: &Path, changes: usize, random: &mut Random) -> Result<usize> {
    let files = files_below(folder)?;
    let mut inserted = 0;
    for _ in 0..changes {
        let Some(file) = random.choose(&files) else { break };
        let path = folder.join(file);
        let mut bytes = fs::read(&path)?;
        for place in change_places(random) {
            let piece_length = usize::try_from(random.between(1, 4096)).unwrap_or(1);
            let piece = random.bytes(piece_length);
            let at = match place {
                Place::Beginning => 0,
                Place::Middle => usize::try_from(random.below(bytes.len() as u64)).unwrap_or(0),
                Place::End => bytes.len(),
            };
            bytes.splice(at..at, piece);
            inserted += piece_length;
        }
        write_file(&path, &bytes, update_time())?;
    }
    Ok(inserted)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Beginning,
    Middle,
    End,
}

fn change_places(random: &mut Random) -> Vec<Place> {
    use Place::{Beginning, End, Middle};
    match random.below(100) {
        0..38 => vec![Beginning],
        38..46 => vec![End],
        46..49 => vec![Middle],
        49..66 => vec![Beginning, End],
        66..83 => vec![Beginning, Middle],
        _ => vec![End, Middle],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_levels_of_two_subfolders_are_fifteen_folders() {
        assert_eq!(stack_folders(3).len(), 15);
    }

    #[test]
    fn places_of_changes_follow_the_paper() {
        let mut random = Random::new(1);
        let drawn: Vec<_> = (0..10_000).map(|_| change_places(&mut random)).collect();
        let share = |wanted: &[Place]| drawn.iter().filter(|places| *places == wanted).count();
        assert!((3600..4000).contains(&share(&[Place::Beginning])));
        assert!((700..900).contains(&share(&[Place::End])));
        assert!((200..400).contains(&share(&[Place::Middle])));
    }

    #[test]
    fn changes_alter_files_and_their_time() {
        let room = tempfile::tempdir().unwrap();
        let path = room.path().join("a.txt");
        write_file(&path, b"abc", base_time()).unwrap();
        let inserted = change_stack(room.path(), 2, &mut Random::new(3)).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().len(), 3 + inserted as u64);
        assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), update_time());
    }
}
