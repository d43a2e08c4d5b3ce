//! The repository as paths and texts.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::failure::{Context, Result};

/// Folders that hold nothing we wrote.
const SKIPPED_FOLDERS: [&str; 6] =
    [".git", "target", "bench-results", "node_modules", "dist", "test-results"];

/// All paths of a repository (relative, with `/`) and the texts of those that hold text.
#[derive(Debug, Clone, Default)]
pub struct Repository {
    paths: BTreeSet<String>,
    texts: BTreeMap<String, String>,
}

impl Repository {
    /// Reads the repository below a root folder.
    pub fn load(root: &Path) -> Result<Self> {
        let mut repository = Self::default();
        repository.load_folder(root, "")?;
        Ok(repository)
    }

    /// Makes a repository out of paths and texts.
    pub fn from_texts(files: &[(&str, &str)]) -> Self {
        let mut repository = Self::default();
        for (path, text) in files {
            repository.add(path, Some((*text).to_owned()));
        }
        repository
    }

    /// Every text file, in the order of paths.
    pub fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.texts.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// Every text file below one folder or with one ending.
    pub fn texts_with<'repository>(
        &'repository self,
        start: &'repository str,
        ending: &'repository str,
    ) -> impl Iterator<Item = (&'repository str, &'repository str)> {
        self.texts().filter(move |(path, _)| path.starts_with(start) && path.ends_with(ending))
    }

    /// Every file and folder, in the order of paths.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.paths.iter().map(String::as_str)
    }

    /// The text of one file.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.texts.get(path).map(String::as_str)
    }

    /// Says whether a file or folder exists.
    pub fn has(&self, path: &str) -> bool {
        self.paths.contains(path)
    }

    /// Says whether any file, in any folder, has this name.
    pub fn has_file_named(&self, name: &str) -> bool {
        self.paths.iter().any(|path| path.rsplit('/').next() == Some(name))
    }

    fn add(&mut self, path: &str, text: Option<String>) {
        let mut folder = path;
        while let Some((parent, _)) = folder.rsplit_once('/') {
            self.paths.insert(parent.to_owned());
            folder = parent;
        }
        self.paths.insert(path.to_owned());
        if let Some(text) = text {
            self.texts.insert(path.to_owned(), text);
        }
    }

    fn load_folder(&mut self, folder: &Path, prefix: &str) -> Result<()> {
        for entry in fs::read_dir(folder).context(folder.display())? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = format!("{prefix}{name}");
            if SKIPPED_FOLDERS.contains(&name.as_str()) {
                // A link to a folder elsewhere, too.
                continue;
            }
            if entry.file_type()?.is_dir() {
                self.paths.insert(path.clone());
                self.load_folder(&entry.path(), &format!("{path}/"))?;
            } else {
                // What is not UTF-8 is not a text; only its path counts.
                let bytes = fs::read(entry.path()).context(&path)?;
                self.add(&path, String::from_utf8(bytes).ok());
            }
        }
        Ok(())
    }
}
