//! Which rules of a folder hold in a folder in it only as long as that is no workspace of its own.
//!
//! A workspace knows the rules of its own root and below (`sync::ignore_rules`). What a rule above the folder leaves out would be sent to
//! everybody who gets the folder, and what such a rule takes in again would be in no workspace any more. So such a folder is left as it is
//! until it has rules of its own.

use std::io::{self, ErrorKind};
use std::path::Path;

use model::{Name, RelativePath};
use sync::ignore_rules::{IGNORE_FILE, IgnoreRules};

use crate::error::{Code, CommandError, Result};
use crate::home::file_error;
use crate::system;
use crate::text::{counted, path_text, quoted};

/// What is treated in another way by itself.
#[derive(Debug, Default, PartialEq, Eq)]
struct Found {
    /// What only rules above leave out: the first, and how many.
    sent: Option<(RelativePath, u64)>,
    /// What only rules above take in.
    left_out: Option<(RelativePath, u64)>,
}

/// Refuses a folder in which something would be sent, or not be sent any more, because rules above it hold no longer.
///
/// # Errors
/// [`Code::NotShareable`], [`Code::File`].
pub(crate) fn refuse_where_they_matter(root: &Path, path: &RelativePath) -> Result<()> {
    let found = look(root, path).map_err(|error| file_error(root, &error))?;
    let (what, (first, count)) = match (found.sent, found.left_out) {
        (Some(found), _) => ("leaves out", found),
        (None, Some(found)) => ("takes in", found),
        (None, None) => return Ok(()),
    };
    let others = match count - 1 {
        0 => String::new(),
        rest => format!(" (and {})", counted(rest, "other", "others")),
    };
    let folder = path_text(path);
    let headline = format!("'{path}' cannot be a workspace of its own as it is");
    Err(CommandError::new(Code::NotShareable, headline)
        .cause(format!("only a rule above it {what} '{first}'{others}"))
        .state("nothing was changed, and nothing in it is sent by itself")
        .help(
            quoted(&format!("{folder}/{IGNORE_FILE}")),
            "is where such a rule holds for the folder alone",
        ))
}

fn look(root: &Path, path: &RelativePath) -> io::Result<Found> {
    let (mut around, mut alone) = (IgnoreRules::default(), IgnoreRules::default());
    let mut above = RelativePath::ROOT;
    for name in path.names() {
        add(&mut around, root, &above, &above)?;
        above = join(&above, &name)?;
    }
    let mut found = Found::default();
    let mut waiting = vec![RelativePath::ROOT];
    while let Some(directory) = waiting.pop() {
        let mut full = path.clone();
        for name in directory.names() {
            full = join(&full, &name)?;
        }
        add(&mut around, root, &full, &full)?;
        add(&mut alone, root, &full, &directory)?;
        for entry in std::fs::read_dir(root.join(full.to_os_path()))? {
            let entry = entry?;
            // What has no name that can be synced is told by a sync.
            let bytes = std::os::unix::ffi::OsStrExt::as_bytes(&*entry.file_name()).to_vec();
            let Ok(name) = Name::new(bytes) else { continue };
            let (Ok(full), Ok(inside)) = (full.join(&name), directory.join(&name)) else {
                continue;
            };
            let is_directory = entry.file_type()?.is_dir();
            let by_rules_around = around.is_entry_ignored(&full, is_directory);
            let by_rules_alone = alone.is_entry_ignored(&inside, is_directory);
            let noted = match (by_rules_around, by_rules_alone) {
                (true, false) => &mut found.sent,
                (false, true) => &mut found.left_out,
                (true, true) => continue,
                (false, false) => {
                    if is_directory {
                        waiting.push(inside);
                    }
                    continue;
                }
            };
            noted.get_or_insert((inside, 0)).1 += 1;
        }
    }
    Ok(found)
}

/// Reads the rules of a directory of the disk, for a tree in which it lies elsewhere.
fn add(
    rules: &mut IgnoreRules,
    root: &Path,
    directory: &RelativePath,
    there: &RelativePath,
) -> io::Result<()> {
    match system::read_small(&root.join(directory.to_os_path()).join(IGNORE_FILE)) {
        Ok(text) => drop(text.map(|text| rules.add(there, &text))),
        // A scan passes over what is no file, too.
        Err(error) if error.kind() == ErrorKind::IsADirectory => {}
        Err(error) => return Err(error),
    }
    Ok(())
}

fn join(path: &RelativePath, name: &Name) -> io::Result<RelativePath> {
    path.join(name).map_err(|error| io::Error::new(ErrorKind::InvalidInput, error))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the test plays the user")]
mod tests {
    use super::*;

    fn path(text: &str) -> RelativePath {
        RelativePath::new(text.as_bytes()).unwrap()
    }

    #[test]
    fn only_what_rules_above_decide_alone_is_in_the_way() {
        let room = tempfile::tempdir().unwrap();
        let root = room.path();
        std::fs::create_dir_all(root.join("trips/rome/photos")).unwrap();
        let write = |name: &str, text: &str| std::fs::write(root.join(name), text).unwrap();
        for name in ["trips/rome/.env", "trips/rome/photos/a.part", "trips/rome/photos/a"] {
            write(name, "x");
        }
        write("other.env", "x");
        let rome = path("trips/rome");
        let none = Found::default();
        assert_eq!(look(root, &rome).unwrap(), none, "by the built-in rules both leave it out");

        write(".synclineignore", "*.env\n");
        let sent = Some((path(".env"), 1));
        assert_eq!(look(root, &rome).unwrap(), Found { sent, left_out: None });
        let refused = refuse_where_they_matter(root, &rome).unwrap_err();
        assert_eq!(refused.code, Code::NotShareable);
        write("trips/rome/.synclineignore", "*.env\n");
        assert_eq!(look(root, &rome).unwrap(), none);

        write("trips/.synclineignore", "!*.part\n");
        let left_out = Some((path("photos/a.part"), 1));
        assert_eq!(look(root, &rome).unwrap(), Found { sent: None, left_out });
        refuse_where_they_matter(root, &rome).unwrap_err();

        // What is below a directory that both leave out is of no matter.
        write("trips/.synclineignore", "");
        write(".synclineignore", "*.env\nphotos/a\nphotos/\n");
        write("trips/rome/.synclineignore", "*.env\nphotos/\n");
        assert_eq!(look(root, &rome).unwrap(), none);
    }
}
