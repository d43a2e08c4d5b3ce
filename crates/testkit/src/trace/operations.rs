//! The deeds, one by one.

use std::sync::Arc;

use content::documents;
use model::{RelativePath, Timestamp};

use super::{Deed, Hand, Writing, join};
use crate::chronicle::ContentHash;
use crate::file_system::disk::{Key, Matter};

/// Times that users give to files: long ago, before 1970, and far ahead.
const TIMES: [Timestamp; 5] = [
    Timestamp { seconds: 0, nanoseconds: 0 },
    Timestamp { seconds: -1, nanoseconds: 999_999_999 },
    Timestamp { seconds: -5_000_000_000, nanoseconds: 1 },
    Timestamp { seconds: 4_102_444_800, nanoseconds: 500_000_001 },
    Timestamp { seconds: 1_000_000_000, nanoseconds: 123_456_789 },
];

/// From how many bytes on a file is edited in a place of it and not written anew.
const PATCHED_LENGTH_MIN: usize = 2000;

impl Hand<'_> {
    /// Does a deed; where there is nothing to do it to, a file is made instead.
    pub(super) fn perform(&mut self, deed: Deed) {
        let is_done = match deed {
            Deed::Create => false,
            Deed::Edit => self.edit(false),
            Deed::EditKeepingTime => self.edit(true),
            Deed::Append => self.append(),
            Deed::Truncate => self.truncate(),
            Deed::Delete => self.delete(),
            Deed::Rename => self.give_name(),
            Deed::Move => self.move_elsewhere(),
            Deed::MakeDirectory => self.make_directory(),
            Deed::RemoveTree => self.remove_directory(),
            Deed::ReplaceByRename => self.replace(),
            Deed::MakeLink => self.make_link(),
            Deed::SetMode => self.set_mode(),
            Deed::SetTime => self.set_time(),
            Deed::FileToDirectory => self.file_to_directory(),
            Deed::DirectoryToFile => self.directory_to_file(),
            Deed::Swap => self.rotate(2),
            Deed::Cycle => self.rotate(3),
            Deed::WriteSlowly => self.write_slowly(),
            Deed::Copy => self.copy(),
            Deed::CreateLarge => self.create_large(),
        };
        if !is_done {
            self.create(200);
        }
    }

    fn create(&mut self, length: u64) -> bool {
        let length = self.user.dice.below(length) as usize;
        let bytes = self.user.fresh_bytes(length);
        self.create_of(bytes)
    }

    fn create_of(&mut self, bytes: Vec<u8>) -> bool {
        match self.make(Matter::File(Arc::new(bytes))) {
            Some((path, _)) => self.note("creates", path),
            None => return false,
        }
        true
    }

    /// One in two is a document, one in four a photograph.
    fn create_large(&mut self) -> bool {
        let length = self.user.dice.below(100_000) as usize;
        let mut bytes = self.user.fresh_bytes(length);
        if length.is_multiple_of(2) {
            // Text, so that it pays to compress it.
            let digits = bytes.iter().flat_map(|byte| [b'a' + byte / 16, b'a' + byte % 16]);
            bytes = documents::document(&digits.collect::<Vec<u8>>());
        } else if length % 4 == 1 {
            bytes = documents::photograph(&bytes[..length.min(1000)]);
        }
        self.create_of(bytes)
    }

    fn edit(&mut self, keeps_time: bool) -> bool {
        let Some((path, key)) = self.pick_file() else { return false };
        let old = self.disk.file(key).clone();
        if let Matter::File(bytes) = &old.matter
            && bytes.len() >= PATCHED_LENGTH_MIN
        {
            let bytes = self.patched(bytes);
            self.overwrite(&path, key, bytes);
            if keeps_time {
                let now = self.now;
                self.disk.touch(key, now).modified = old.modified;
            }
            self.note("patches", path);
            return true;
        }
        // Whoever keeps the time keeps the size, too: only the change time tells.
        let length = if keeps_time { old.stat().size } else { self.user.dice.below(300) };
        let bytes = self.user.fresh_bytes(length as usize);
        self.overwrite(&path, key, bytes);
        if keeps_time {
            let now = self.now;
            self.disk.touch(key, now).modified = old.modified;
        }
        self.note("edits", path);
        true
    }

    /// Writes something new into a stretch of a file, or of the text of a document.
    fn patched(&mut self, bytes: &[u8]) -> Vec<u8> {
        let text = documents::text_of(bytes);
        let mut patched = text.clone().unwrap_or_else(|| bytes.to_vec());
        let new = self.user.fresh_bytes(40);
        let place = self.user.dice.index(patched.len() - new.len());
        patched[place..place + new.len()].copy_from_slice(&new);
        if text.is_some() { documents::document(&patched) } else { patched }
    }

    fn append(&mut self) -> bool {
        let Some((path, key)) = self.pick_file() else { return false };
        let Matter::File(old) = self.disk.file(key).matter.clone() else { return false };
        let more = self.user.fresh_bytes(20);
        self.overwrite(&path, key, [old.as_slice(), &more].concat());
        self.note("appends to", path);
        true
    }

    fn truncate(&mut self) -> bool {
        let Some((path, key)) = self.pick_file() else { return false };
        let Matter::File(old) = self.disk.file(key).matter.clone() else { return false };
        self.overwrite(&path, key, old[..old.len() / 2].to_vec());
        self.note("truncates", path);
        true
    }

    fn delete(&mut self) -> bool {
        let Some((path, key)) =
            self.pick(|disk, key| !matches!(disk.file(key).matter, Matter::Directory(_)))
        else {
            return false;
        };
        self.remove(&path, key);
        self.note("deletes", path);
        true
    }

    fn give_name(&mut self) -> bool {
        let Some((path, _)) = self.pick(|_, _| true) else { return false };
        let Some((directory, _)) = path.split_last() else { return false };
        let name = self.fresh_name();
        let Some(to) = join(&directory, &name) else { return false };
        let is_done = self.rename(&path, &to);
        if is_done {
            self.note("renames", format_args!("{path} to {to}"));
        }
        is_done
    }

    fn move_elsewhere(&mut self) -> bool {
        let Some((path, _)) = self.pick(|_, _| true) else { return false };
        let Some((_, name)) = path.split_last() else { return false };
        let (directory, _) = self.pick_directory();
        let Some(to) = join(&directory, name.as_bytes()) else { return false };
        let is_done = self.rename(&path, &to);
        if is_done {
            self.note("moves", format_args!("{path} to {to}"));
        }
        is_done
    }

    fn make_directory(&mut self) -> bool {
        match self.make(Matter::Directory(Arc::default())) {
            Some((path, _)) => self.note("makes directory", path),
            None => return false,
        }
        true
    }

    fn pick_subdirectory(&mut self) -> Option<(RelativePath, Key)> {
        self.pick(|disk, key| matches!(disk.file(key).matter, Matter::Directory(_)))
    }

    fn remove_directory(&mut self) -> bool {
        let Some((path, key)) = self.pick_subdirectory() else { return false };
        self.remove(&path, key);
        self.note("removes directory", path);
        true
    }

    /// Saves as many programs do: beside, then over.
    fn replace(&mut self) -> bool {
        let Some((path, old)) = self.pick_file() else { return false };
        let Ok((directory, name)) = self.disk.place(&path) else { return false };
        let length = self.user.dice.below(200) as usize;
        let bytes = self.user.fresh_bytes(length);
        self.destroy(&path, old, false);
        self.evolve(old, &bytes);
        let now = self.now;
        let key = self.disk.add(Matter::File(Arc::new(bytes)), 0o644, now, false);
        self.disk.link(directory, &name, key, now);
        self.disk.remove(old);
        self.completed(&path, key);
        self.note("replaces", path);
        true
    }

    fn make_link(&mut self) -> bool {
        let text = self.user.fresh_bytes(0);
        match self.make(Matter::Symlink(Arc::new(text))) {
            Some((path, _)) => self.note("links", path),
            None => return false,
        }
        true
    }

    fn set_mode(&mut self) -> bool {
        let Some((path, key)) =
            self.pick(|disk, key| !matches!(disk.file(key).matter, Matter::Symlink(_)))
        else {
            return false;
        };
        let mode = *self.user.dice.pick(&[0o755, 0o700, 0o744, 0o775, 0o777]);
        let now = self.now;
        self.disk.touch(key, now).mode = mode;
        self.touched(&path);
        self.handled(key);
        self.note("sets the mode of", path);
        true
    }

    fn set_time(&mut self) -> bool {
        let Some((path, key)) =
            self.pick(|disk, key| !matches!(disk.file(key).matter, Matter::Directory(_)))
        else {
            return false;
        };
        let time = *self.user.dice.pick(&TIMES);
        let now = self.now;
        self.disk.touch(key, now).modified = time;
        self.touched(&path);
        self.handled(key);
        self.note("sets the time of", path);
        true
    }

    fn file_to_directory(&mut self) -> bool {
        let Some((path, key)) = self.pick_file() else { return false };
        let Ok((directory, name)) = self.disk.place(&path) else { return false };
        self.remove(&path, key);
        let made = self.make_at(&path, directory, &name, Matter::Directory(Arc::default()));
        if self.user.dice.chance(500)
            && let Some(inner) = join(&path, b"inner")
        {
            let bytes = self.user.fresh_bytes(30);
            self.make_at(&inner, made, b"inner", Matter::File(Arc::new(bytes)));
        }
        self.note("makes a directory of", path);
        true
    }

    fn directory_to_file(&mut self) -> bool {
        let Some((path, key)) = self.pick_subdirectory() else { return false };
        let Ok((directory, name)) = self.disk.place(&path) else { return false };
        self.remove(&path, key);
        let bytes = self.user.fresh_bytes(30);
        self.make_at(&path, directory, &name, Matter::File(Arc::new(bytes)));
        self.note("makes a file of", path);
        true
    }

    /// Lets things of one directory exchange their names in a circle.
    fn rotate(&mut self, count: usize) -> bool {
        let Some((first, _)) = self.pick(|_, _| true) else { return false };
        let Some((directory, _)) = first.split_last() else { return false };
        let Ok(key) = self.disk.directory(&directory) else { return false };
        let mut names: Vec<_> =
            self.disk.names(key).iter().map(|(name, key)| (name.clone(), *key)).collect();
        names.retain(|(name, _)| {
            join(&directory, name).is_some_and(|path| self.user.may_touch(&path))
        });
        if names.len() < count {
            return false;
        }
        while names.len() > count {
            let index = self.user.dice.index(names.len());
            names.swap_remove(index);
        }
        for (name, _) in &names {
            self.disk.unlink(key, name, self.now);
            if let Some(path) = join(&directory, name) {
                self.touched(&path);
            }
        }
        for index in 0..count {
            let (moved, target) = (names[index].1, &names[(index + 1) % count].0);
            self.disk.link(key, target, moved, self.now);
            self.surroundings.chronicle.renamed(&names[index].0, target);
            self.handled(moved);
        }
        self.note("rotates names", format_args!("{count} in {directory}"));
        true
    }

    fn write_slowly(&mut self) -> bool {
        if self.user.writing.is_some() {
            return false;
        }
        let Some((path, key)) = self.pick_file() else { return false };
        let pieces = (0..3).map(|_| self.user.fresh_bytes(40)).collect();
        self.destroy(&path, key, false);
        let now = self.now;
        let file = self.disk.touch(key, now);
        file.matter = Matter::File(Arc::default());
        file.modified = now;
        file.is_engines = false;
        self.surroundings.chronicle.instant(ContentHash::of_file(&[]));
        self.handled(key);
        self.note("begins to write", &path);
        self.user.writing = Some(Writing { key, path, pieces });
        true
    }

    fn copy(&mut self) -> bool {
        let Some((_, key)) = self.pick_file() else { return false };
        let matter = self.disk.file(key).matter.clone();
        match self.make(matter) {
            Some((path, _)) => self.note("copies to", path),
            None => return false,
        }
        true
    }
}
