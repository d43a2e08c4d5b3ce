//! The table of dependencies in ARCHITECTURE.md against what cargo sees.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::{Finding, Repository};
use crate::failure::Result;
use crate::{process, test_run};

const DOCUMENT: &str = "ARCHITECTURE.md";
const HEADING: &str = "## Dependencies between rooms";

/// Names that say nothing about what is inside.
const EMPTY_NAMES: [&str; 6] = ["util", "utils", "common", "misc", "core", "helpers"];

/// The members of the workspace and what each uses outside its own tests and build script.
#[derive(Debug, Clone, Default)]
pub struct Workspace {
    /// Uses of other members, per member.
    pub rooms: BTreeMap<String, BTreeSet<String>>,
    /// Uses of crates from elsewhere, per member.
    pub outside: BTreeMap<String, BTreeSet<String>>,
    /// The folder of each member, relative to the root.
    pub folders: BTreeMap<String, String>,
}

impl Workspace {
    /// Asks cargo.
    pub fn read(root: &Path) -> Result<Self> {
        let text = process::output(test_run::cargo().current_dir(root).args([
            "metadata",
            "--no-deps",
            "--offline",
            "--format-version",
            "1",
        ]))?;
        Ok(Self::from_metadata(&serde_json::from_str(&text)?, &root.to_string_lossy()))
    }

    fn from_metadata(metadata: &serde_json::Value, root: &str) -> Self {
        let mut workspace = Self::default();
        for package in metadata["packages"].as_array().into_iter().flatten() {
            let name = package["name"].as_str().unwrap_or_default().to_owned();
            let manifest = package["manifest_path"].as_str().unwrap_or_default();
            let folder = manifest.trim_start_matches(root).trim_start_matches('/');
            let folder = folder.trim_end_matches("/Cargo.toml").to_owned();
            let (mut rooms, mut outside) = (BTreeSet::new(), BTreeSet::new());
            for dependency in package["dependencies"].as_array().into_iter().flatten() {
                let used = dependency["name"].as_str().unwrap_or_default().to_owned();
                if !dependency["kind"].is_null() {
                    continue;
                }
                if dependency["path"].is_string() {
                    rooms.insert(used);
                } else {
                    outside.insert(used);
                }
            }
            workspace.rooms.insert(name.clone(), rooms);
            workspace.outside.insert(name.clone(), outside);
            workspace.folders.insert(name, folder);
        }
        workspace
    }
}

/// Checks that the table under [`HEADING`] allows what the crates use, and nothing that they do not.
pub fn table_equals_workspace(repository: &Repository, workspace: &Workspace) -> Vec<Finding> {
    let Some(text) = repository.text(DOCUMENT) else {
        return vec![Finding::new(DOCUMENT, "is missing; it holds the table of dependencies")];
    };
    let table = read_table(text);
    if table.is_empty() {
        let message = format!("has no table `| crate | may use |` under '{HEADING}'");
        return vec![Finding::new(DOCUMENT, message)];
    }
    let mut findings = Vec::new();
    for (room, used) in &workspace.rooms {
        let Some(allowed) = table.get(room) else {
            findings.push(Finding::new(DOCUMENT, format!("the table has no row for `{room}`")));
            continue;
        };
        for extra in used.difference(allowed) {
            let message = format!("`{room}` uses `{extra}`, which the table does not allow");
            findings.push(Finding::new(DOCUMENT, message));
        }
        for unused in allowed.difference(used) {
            let message = format!("the table lets `{room}` use `{unused}`, but it does not");
            findings.push(Finding::new(DOCUMENT, message));
        }
    }
    for room in table.keys().filter(|room| !workspace.rooms.contains_key(*room)) {
        let message = format!("the table has a row for `{room}`, which is no crate");
        findings.push(Finding::new(DOCUMENT, message));
    }
    findings
}

fn read_table(text: &str) -> BTreeMap<String, BTreeSet<String>> {
    let rows = text
        .lines()
        .skip_while(|line| line.trim() != HEADING)
        .skip(1)
        .take_while(|line| !line.starts_with("## "))
        .filter(|line| line.starts_with('|'));
    let mut table = BTreeMap::new();
    for row in rows {
        let cells: Vec<String> =
            row.trim_matches('|').split('|').map(|cell| cell.trim().replace('`', "")).collect();
        let [room, used, ..] = &cells[..] else { continue };
        if room == "crate" || room.starts_with('-') || room.starts_with(':') {
            continue;
        }
        let names = used.split(',').map(str::trim);
        let names = names.filter(|name| !matches!(*name, "" | "-" | "—" | "nothing"));
        table.insert(room.clone(), names.map(str::to_owned).collect());
    }
    table
}

/// Checks that every dependency a crate declares is named somewhere in its sources.
pub fn declared_dependencies_are_used(
    repository: &Repository,
    workspace: &Workspace,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (room, folder) in &workspace.folders {
        let sources = format!("{folder}/src/");
        let declared = workspace.rooms[room].iter().chain(&workspace.outside[room]);
        for dependency in declared {
            let name = dependency.replace('-', "_");
            let used = repository
                .texts_with(&sources, ".rs")
                .any(|(_, text)| text.lines().any(|line| has_word(line, &name)));
            if !used {
                let message = format!("declares `{dependency}` and never names it");
                findings.push(Finding::new(format!("{folder}/Cargo.toml"), message));
            }
        }
    }
    findings
}

/// Checks that no crate has a name that says nothing.
pub fn crates_have_telling_names(workspace: &Workspace) -> Vec<Finding> {
    let empty = workspace.rooms.keys().filter(|room| EMPTY_NAMES.contains(&room.as_str()));
    empty
        .map(|room| Finding::new(room, "is a crate name that says nothing; name a thing"))
        .collect()
}

/// Says whether a line holds `word` as a whole identifier.
pub(super) fn has_word(line: &str, word: &str) -> bool {
    let is_part = |character: char| character.is_alphanumeric() || character == '_';
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workspace(rooms: &[(&str, &[&str])]) -> Workspace {
        let mut workspace = Workspace::default();
        for (room, used) in rooms {
            let used = used.iter().map(|&name| name.to_owned()).collect();
            workspace.rooms.insert((*room).to_owned(), used);
            workspace.outside.insert((*room).to_owned(), BTreeSet::new());
            workspace.folders.insert((*room).to_owned(), format!("crates/{room}"));
        }
        workspace
    }

    fn document(rows: &str) -> Repository {
        let text = format!("# A\n\n{HEADING}\n\n| crate | may use |\n|---|---|\n{rows}\n## End\n");
        Repository::from_texts(&[(DOCUMENT, &text)])
    }

    const ROWS: &str =
        "| `model` | nothing |\n| `sync` | `model`, `content` |\n| `content` | - |\n";

    #[test]
    fn an_equal_table_passes() {
        let cargo = workspace(&[("model", &[]), ("content", &[]), ("sync", &["model", "content"])]);
        assert_eq!(table_equals_workspace(&document(ROWS), &cargo), []);
    }

    #[test]
    fn a_use_outside_the_table_an_unused_allowance_and_unknown_rows_are_found() {
        let cargo = workspace(&[("model", &["sync"]), ("sync", &["model"]), ("new", &[])]);
        let messages: Vec<String> = table_equals_workspace(&document(ROWS), &cargo)
            .into_iter()
            .map(|finding| finding.message)
            .collect();
        assert!(messages.iter().any(|text| text.contains("`model` uses `sync`")));
        assert!(messages.iter().any(|text| text.contains("lets `sync` use `content`")));
        assert!(messages.iter().any(|text| text.contains("no row for `new`")));
        assert!(messages.iter().any(|text| text.contains("row for `content`, which is no crate")));
        assert_eq!(messages.len(), 4);
    }

    #[test]
    fn a_missing_document_or_table_is_found() {
        let cargo = workspace(&[("model", &[])]);
        assert_eq!(table_equals_workspace(&Repository::default(), &cargo).len(), 1);
        let empty = Repository::from_texts(&[(DOCUMENT, "# Architecture\n")]);
        assert_eq!(table_equals_workspace(&empty, &cargo).len(), 1);
    }

    #[test]
    fn a_declared_dependency_that_no_source_names_is_found() {
        let cargo = workspace(&[("sync", &["commit-log", "model"])]);
        let source = [("crates/sync/src/lib.rs", "use commit_log::Entry;\n// remodel\n")];
        let findings = declared_dependencies_are_used(&Repository::from_texts(&source), &cargo);
        assert_eq!(findings.len(), 1);
        assert!(findings[0].message.contains("`model`"));
    }

    #[test]
    fn a_crate_called_util_is_found() {
        assert_eq!(
            crates_have_telling_names(&workspace(&[("util", &[]), ("model", &[])])).len(),
            1
        );
    }

    #[test]
    fn only_normal_dependencies_of_members_count_as_uses_of_rooms() {
        let metadata = serde_json::json!({ "packages": [{
            "name": "sync", "manifest_path": "/r/crates/sync/Cargo.toml",
            "dependencies": [
                { "name": "model", "kind": null, "path": "/r/crates/model" },
                { "name": "testkit", "kind": "dev", "path": "/r/crates/testkit" },
                { "name": "bytes", "kind": null, "path": null }
            ]
        }]});
        let read = Workspace::from_metadata(&metadata, "/r");
        assert_eq!(read.rooms["sync"], BTreeSet::from(["model".to_owned()]));
        assert_eq!(read.outside["sync"], BTreeSet::from(["bytes".to_owned()]));
        assert_eq!(read.folders["sync"], "crates/sync");
    }
}
