//! Checks of the repository itself: what the documents claim, where the borders are, how the files
//! look.
//!
//! Every check is a pure function from a [`Repository`] (paths and texts) to findings, so that each
//! has a test on a bad example. A missing document is a finding, not an excuse to pass.

pub mod borders;
pub mod dependencies;
pub mod documents;
pub mod files;
pub mod links;
pub mod lints;
pub mod paths;
mod repository;

pub use repository::Repository;

use crate::arguments::Arguments;
use crate::failure::{Result, fail};
use crate::repository_root;
use dependencies::Workspace;

/// One thing that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The file, with a line if that helps.
    pub place: String,
    /// What is wrong and what would be right.
    pub message: String,
}

impl Finding {
    fn new(place: impl Into<String>, message: impl Into<String>) -> Self {
        Self { place: place.into(), message: message.into() }
    }

    fn at_line(path: &str, line_index: usize, message: impl Into<String>) -> Self {
        Self::new(format!("{path}:{}", line_index + 1), message)
    }
}

/// Runs `cargo xtask tidy`.
pub fn run(arguments: Arguments) -> Result<()> {
    arguments.finish()?;
    check_repository()
}

/// Checks the repository that this program was built in and prints every finding.
pub fn check_repository() -> Result<()> {
    let root = repository_root();
    let repository = Repository::load(&root)?;
    let workspace = Workspace::read(&root)?;
    let findings = check_all(&repository, &workspace);
    for finding in &findings {
        println!("{}: {}", finding.place, finding.message);
    }
    if findings.is_empty() {
        println!("tidy: {} files, nothing to complain about", repository.texts().count());
        return Ok(());
    }
    fail(format!("tidy found {} things", findings.len()))
}

/// Runs every check.
pub fn check_all(repository: &Repository, workspace: &Workspace) -> Vec<Finding> {
    [
        dependencies::table_equals_workspace(repository, workspace),
        dependencies::declared_dependencies_are_used(repository, workspace),
        dependencies::crates_have_telling_names(workspace),
        borders::words_stay_at_home(repository),
        borders::sql_stays_at_home(repository),
        borders::pure_rooms_touch_nothing(repository),
        paths::named_paths_exist(repository),
        links::links_lead_somewhere(repository),
        lints::copied_lints_are_those_of_the_workspace(repository),
        documents::required_documents_exist(repository),
        documents::decisions_are_numbered(repository),
        documents::changelog_has_unreleased(repository),
        files::rust_files_are_short(repository),
        files::no_mod_rs(repository),
        files::nothing_is_unfinished(repository),
        files::whitespace_is_clean(repository),
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_repository_is_tidy() {
        let root = repository_root();
        let repository = Repository::load(&root).unwrap();
        let workspace = Workspace::read(&root).unwrap();
        let findings = check_all(&repository, &workspace);
        let report: Vec<String> = findings
            .iter()
            .map(|finding| format!("{}: {}", finding.place, finding.message))
            .collect();
        assert!(report.is_empty(), "{} findings:\n{}", report.len(), report.join("\n"));
    }
}
