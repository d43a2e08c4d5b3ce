//! What is on the site, where, and in which order people find it.

use std::collections::{BTreeMap, BTreeSet};

use super::papers;
use crate::markdown;
use crate::tidy::Repository;

/// What belongs together: documents, and folders (with a slash at the end) of which all others follow.
const GROUPS: [(&str, &[&str]); 7] = [
    ("Start", &["README.md", "docs/known-defects.md", "CHANGELOG.md", "SECURITY.md", "GOALS.md"]),
    (
        "Guide",
        &[
            "docs/guide/web.md",
            "docs/guide/server.md",
            "docs/guide/stores.md",
            "docs/guide/ignoring.md",
            "docs/guide/errors.md",
            "docs/guide/",
        ],
    ),
    ("Measured", &[papers::ADDRESS, "docs/measurements.md", "docs/figures/"]),
    ("Experiments", &["experiments/"]),
    ("Design", &["ARCHITECTURE.md", "docs/glossary.md", "docs/design/"]),
    ("Decisions", &["docs/decisions/"]),
    ("For contributors", &["CONTRIBUTING.md", "STYLE.md", "web/README.md"]),
];

/// Folders of which the site has pictures, figures and examples, too.
const COPIED_FOLDERS: [&str; 2] = ["docs/", "experiments/"];
const COPIED_ENDINGS: [&str; 6] = [".csv", ".ini", ".json", ".png", ".svg", ".toml"];

/// Pages that belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// What they have in common.
    pub title: &'static str,
    /// Their addresses.
    pub pages: Vec<String>,
}

/// The way through the site.
#[derive(Debug, Clone)]
pub struct Map {
    groups: Vec<Group>,
    titles: BTreeMap<String, String>,
    /// Addresses by documents.
    documents: BTreeMap<String, String>,
    copied: BTreeSet<String>,
}

impl Map {
    /// Looks through a repository.
    pub fn new(repository: &Repository) -> Self {
        let copied = repository.paths().filter(|path| {
            COPIED_FOLDERS.iter().any(|folder| path.starts_with(folder))
                && COPIED_ENDINGS.iter().any(|ending| path.ends_with(ending))
        });
        let mut map = Self {
            groups: Vec::new(),
            titles: BTreeMap::from([(papers::ADDRESS.to_owned(), papers::TITLE.to_owned())]),
            documents: BTreeMap::new(),
            copied: copied.map(str::to_owned).collect(),
        };
        for (title, members) in GROUPS {
            let pages = members.iter().flat_map(|member| map.add(repository, member)).collect();
            map.groups.push(Group { title, pages });
        }
        map
    }

    /// Adds what a group names, and returns the addresses of the pages.
    fn add(&mut self, repository: &Repository, member: &str) -> Vec<String> {
        if member == papers::ADDRESS {
            return vec![member.to_owned()];
        }
        let mut added = Vec::new();
        for (document, text) in repository.texts_with(member, ".md") {
            if (member != document && !member.ends_with('/'))
                || self.documents.contains_key(document)
            {
                continue;
            }
            let title = markdown::headings(text).into_iter().next().map(|first| first.words);
            let address = address(document);
            self.titles.insert(address.clone(), title.unwrap_or_else(|| document.to_owned()));
            self.documents.insert(document.to_owned(), address.clone());
            added.push(address);
        }
        added
    }

    /// Returns all pages.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// Returns the documents that are pages, and the addresses of these.
    pub fn documents(&self) -> impl Iterator<Item = (&str, &str)> {
        self.documents.iter().map(|(document, address)| (document.as_str(), address.as_str()))
    }

    /// Returns what the site has as it is, under its path.
    pub fn copied(&self) -> impl Iterator<Item = &str> {
        self.copied.iter().map(String::as_str)
    }

    /// Returns what a page of the map is called.
    pub fn title(&self, address: &str) -> &str {
        &self.titles[address]
    }

    /// Returns where something of the repository is on the site, if it is there.
    pub fn address(&self, path: &str) -> Option<&str> {
        let document = self.documents.get(path).map(String::as_str);
        document.or_else(|| self.copied.get(path).map(String::as_str))
    }
}

/// A folder shows what it is about at its own address.
fn address(document: &str) -> String {
    let name = document.strip_suffix(".md").unwrap_or(document);
    match name.strip_suffix("README") {
        Some(folder) => format!("{folder}index.html"),
        None => format!("{name}.html"),
    }
}

/// Writes the way from one page to something else on the site, so that it can lie in any folder of a server, or of a disk.
pub fn way(from: &str, to: &str) -> String {
    let folder = from.rsplit_once('/').map_or("", |(folder, _)| folder);
    let folders: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    let parts: Vec<&str> = to.split('/').collect();
    let inner = &parts[..parts.len() - 1];
    let equal = folders.iter().zip(inner).take_while(|(one, other)| one == other).count();
    "../".repeat(folders.len() - equal) + &parts[equal..].join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_go_up_as_far_as_they_must() {
        assert_eq!(way("index.html", "docs/a.html"), "docs/a.html");
        assert_eq!(way("docs/guide/a.html", "docs/guide/b.html"), "b.html");
        assert_eq!(way("docs/guide/a.html", "docs/design/b.html"), "../design/b.html");
        assert_eq!(way("docs/guide/a.html", "index.html"), "../../index.html");
        assert_eq!(way("docs/guide/a.html", "docs/guide/web/b.png"), "web/b.png");
        assert_eq!(way("docs/docs.html", "docs/docs/a.html"), "docs/a.html");
    }

    #[test]
    fn documents_are_found_in_their_groups_and_once() {
        let files = [
            ("README.md", "# Start\n"),
            ("docs/guide/api.md", "no title\n"),
            ("docs/guide/web.md", "# Web\n"),
            ("experiments/a/README.md", "# A\n"),
            ("experiments/a/rows.csv", "1"),
            ("crates/a.csv", "1"),
        ];
        let map = Map::new(&Repository::from_texts(&files));
        assert_eq!(map.groups()[1].pages, ["docs/guide/web.html", "docs/guide/api.html"]);
        assert_eq!(map.title("docs/guide/web.html"), "Web");
        assert_eq!(map.title("docs/guide/api.html"), "docs/guide/api.md");
        assert_eq!(map.address("README.md"), Some("index.html"));
        assert_eq!(map.address("experiments/a/README.md"), Some("experiments/a/index.html"));
        assert_eq!(map.copied().collect::<Vec<_>>(), ["experiments/a/rows.csv"]);
        assert_eq!(map.address("crates/a.csv"), None);
    }
}
