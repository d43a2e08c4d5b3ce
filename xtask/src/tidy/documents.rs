//! The documents that must exist, the numbers of decisions, the change log.

use std::collections::BTreeMap;

use super::{Finding, Repository};

const REQUIRED: [&str; 9] = [
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "GOALS.md",
    "SECURITY.md",
    "LICENSE",
    "docs/glossary.md",
    ".ci/run",
];
const DECISIONS: &str = "docs/decisions/";

/// Checks that every document a newcomer looks for is there and not empty.
pub fn required_documents_exist(repository: &Repository) -> Vec<Finding> {
    let missing = REQUIRED
        .iter()
        .filter(|path| repository.text(path).is_none_or(|text| text.trim().is_empty()));
    missing.map(|path| Finding::new(*path, "is missing or empty; write it")).collect()
}

/// Checks that decisions are called `NNNN-title.md`, each number once.
pub fn decisions_are_numbered(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut holders: BTreeMap<&str, &str> = BTreeMap::new();
    for (path, _) in repository.texts_with(DECISIONS, ".md") {
        let name = &path[DECISIONS.len()..];
        let number = name.split_once('-').map(|(number, _)| number).unwrap_or_default();
        if number.len() != 4 || !number.bytes().all(|byte| byte.is_ascii_digit()) {
            findings.push(Finding::new(path, "is not called NNNN-title.md"));
        } else if let Some(other) = holders.insert(number, path) {
            findings.push(Finding::new(path, format!("has the number of {other}")));
        }
    }
    findings
}

/// Checks that the change log has a place for what is not released yet.
pub fn changelog_has_unreleased(repository: &Repository) -> Vec<Finding> {
    let text = repository.text("CHANGELOG.md").unwrap_or_default();
    let found = text
        .lines()
        .any(|line| line.starts_with("## ") && line.to_lowercase().contains("unreleased"));
    if found {
        return Vec::new();
    }
    vec![Finding::new("CHANGELOG.md", "has no section '## Unreleased'")]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_and_empty_documents_are_found() {
        let repository =
            Repository::from_texts(&[("README.md", "# Syncline\n"), ("GOALS.md", "\n")]);
        let findings = required_documents_exist(&repository);
        assert_eq!(findings.len(), REQUIRED.len() - 1);
        assert!(findings.iter().all(|finding| finding.place != "README.md"));
    }

    #[test]
    fn decisions_without_a_number_or_with_a_taken_one_are_found() {
        let names = ["0001-a.md", "0001-b.md", "0002-c.md", "12-d.md", "first.md"];
        let files: Vec<(String, &str)> =
            names.iter().map(|name| (format!("{DECISIONS}{name}"), "")).collect();
        let files: Vec<(&str, &str)> =
            files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        let places: Vec<String> = decisions_are_numbered(&Repository::from_texts(&files))
            .into_iter()
            .map(|finding| finding.place)
            .collect();
        assert_eq!(
            places,
            ["docs/decisions/0001-b.md", "docs/decisions/12-d.md", "docs/decisions/first.md"]
        );
    }

    #[test]
    fn a_change_log_without_unreleased_is_found() {
        let with = Repository::from_texts(&[("CHANGELOG.md", "# Changes\n\n## [Unreleased]\n")]);
        assert_eq!(changelog_has_unreleased(&with), []);
        let without = Repository::from_texts(&[("CHANGELOG.md", "# Unreleased\n## 0.1\n")]);
        assert_eq!(changelog_has_unreleased(&without).len(), 1);
        assert_eq!(changelog_has_unreleased(&Repository::default()).len(), 1);
    }
}
