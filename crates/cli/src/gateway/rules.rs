//! Which names are not shown: what the engine does not sync, because nobody else would get it.

use std::collections::HashMap;

use model::{NodeId, RelativePath};
use sync::file_system::{FileError, FileSystem, Stat};
use sync::ignore_rules::{IGNORE_FILE, IgnoreRules};
use sync::plan::{Place, is_parked};
use sync::scan::read_rules;

/// The rules of a folder as far as somebody has asked, each file of them as it was when it was read.
#[derive(Debug, Default)]
pub(super) struct FolderRules {
    rules: IgnoreRules,
    read: HashMap<RelativePath, Stat>,
}

impl FolderRules {
    /// Tells whether a path is not synced, by the rules as they are now.
    ///
    /// # Errors
    /// [`FileError`] where there are rules that cannot be read.
    pub(super) fn leave_out(
        &mut self,
        files: &impl FileSystem,
        path: &RelativePath,
        is_directory: bool,
    ) -> Result<bool, FileError> {
        self.learn(files, path)?;
        Ok(self.rules.is_ignored(path, is_directory) || is_parked_path(path))
    }

    /// Tells the same of an entry of a directory whose rules were learnt, and which is shown.
    pub(super) fn leave_out_entry(&self, path: &RelativePath, is_directory: bool) -> bool {
        self.rules.is_entry_ignored(path, is_directory) || is_parked_path(path)
    }

    /// Reads the rules that hold at a path, and in it, where they have changed.
    ///
    /// # Errors
    /// [`FileError`].
    pub(super) fn learn(
        &mut self,
        files: &impl FileSystem,
        path: &RelativePath,
    ) -> Result<(), FileError> {
        let mut directory = RelativePath::ROOT;
        self.visit(files, &directory)?;
        for name in path.names() {
            let Ok(next) = directory.join(&name) else { break };
            directory = next;
            self.visit(files, &directory)?;
        }
        Ok(())
    }

    fn visit(
        &mut self,
        files: &impl FileSystem,
        directory: &RelativePath,
    ) -> Result<(), FileError> {
        let name = model::Name::new(IGNORE_FILE.as_bytes()).expect("the name of the rules is one");
        let found = match directory.join(&name).map(|file| files.stat(&file)) {
            Ok(Ok(found)) => found,
            // What is no directory has no rules.
            Err(_) | Ok(Err(FileError::NotFound(_) | FileError::Escapes(_))) => None,
            Ok(Err(error)) => return Err(error),
        };
        if found.as_ref() == self.read.get(directory) {
            return Ok(());
        }
        match (found, read_rules(files, directory)?) {
            (Some(stat), Some(text)) => {
                self.rules.add(directory, &text);
                self.read.insert(directory.clone(), stat);
            }
            _ => {
                self.rules.remove(directory);
                self.read.remove(directory);
            }
        }
        Ok(())
    }
}

/// Tells whether a path lies where the engine parks what is exchanged with something else.
fn is_parked_path(path: &RelativePath) -> bool {
    path.names().next().is_some_and(|name| is_parked(&Place { parent: NodeId::ROOT, name }))
}
