//! Moves a file over another one, so that no edit in between is lost.
//!
//! The two are *exchanged*: at every moment there is the one or the other at the new place. What was displaced stands at
//! the old place then, is looked at, and goes to the trash; if it is not what was expected, they are exchanged back. If a
//! user meanwhile changed what had come to the new place, nothing is exchanged back: both stay where they are.
//!
//! File systems without an exchange get less: what was displaced goes to the trash first, and for that moment there is
//! nothing at the new place.

use model::RelativePath;
use rustix::io::Errno;

use super::facts::{change_error, is_same_matter, is_unchanged, move_error};
use super::root::Root;
use super::{FileError, FileKind, Stat, trash};

/// Moves; see [`super::NativeFileSystem::move_over`].
pub(super) fn move_over(
    root: &Root,
    from: &RelativePath,
    to: &RelativePath,
    expected: &Stat,
    label: &str,
) -> Result<(), FileError> {
    let (source, target) = (root.place(from)?, root.place(to)?);
    let moved = source.stat(from)?.ok_or_else(|| FileError::NotFound(from.clone()))?;
    let changed = || FileError::Changed(to.clone());
    if moved.kind == FileKind::Directory || expected.kind == FileKind::Directory {
        return Err(changed());
    }
    if !target.stat(to)?.is_some_and(|found| is_unchanged(expected, &found)) {
        return Err(changed());
    }
    let (source_place, target_place) =
        ((&source.directory, source.name), (&target.directory, target.name));
    let swap = || root.exchange(source_place, target_place);
    match swap() {
        Ok(()) => {}
        Err(Errno::INVAL) => {
            trash::trash(root, &target, to, expected, label)?;
            return root
                .move_without_replacing(source_place.0, source.name, target_place.0, target.name)
                .map_err(|errno| move_error(errno, to));
        }
        Err(errno) => return Err(change_error(errno, to)),
    }
    let displaced = source.stat(from)?;
    if displaced.is_none_or(|displaced| !is_same_matter(expected, &displaced)) {
        let is_ours = target.stat(to)?.is_some_and(|there| is_same_matter(&moved, &there));
        if is_ours {
            swap().map_err(|errno| change_error(errno, to))?;
        }
        return Err(changed());
    }
    trash::keep(root, &source.directory, source.name, to, label).map(|_| ())
}
