//! Every link of a document leads to something that is there.

use std::collections::BTreeMap;

use pulldown_cmark::{Event, Tag};

use super::{Finding, Repository};
use crate::markdown::{self, Target};

/// What links call the headings of each document.
type Ids<'repository> = BTreeMap<&'repository str, Vec<String>>;

/// Checks that what documents link to and show is in the repository, and that headings are called as links call them.
pub fn links_lead_somewhere(repository: &Repository) -> Vec<Finding> {
    let documents = || repository.texts_with("", ".md");
    let ids = |text| markdown::headings(text).into_iter().map(|heading| heading.id).collect();
    let ids: Ids = documents().map(|(path, text)| (path, ids(text))).collect();
    let mut findings = Vec::new();
    for (document, text) in documents() {
        for (event, range) in markdown::parse(text).into_offset_iter() {
            let (kind, link, is_picture) = match event {
                Event::Start(Tag::Link { link_type, dest_url, .. }) => (link_type, dest_url, false),
                Event::Start(Tag::Image { link_type, dest_url, .. }) => (link_type, dest_url, true),
                _ => continue,
            };
            let target = markdown::target(document, kind, &link);
            if let Some(wrong) = what_is_wrong(repository, &ids, &target, is_picture) {
                let line_index = text[..range.start].matches('\n').count();
                let message = format!("the link to `{link}` {wrong}");
                findings.push(Finding::at_line(document, line_index, message));
            }
        }
    }
    findings
}

fn what_is_wrong(
    repository: &Repository,
    ids: &Ids,
    target: &Target,
    is_picture: bool,
) -> Option<&'static str> {
    match target {
        Target::Elsewhere => is_picture.then_some("shows a picture that is not in the repository"),
        Target::Nowhere => Some("leads out of the repository"),
        Target::Inside(path, _) if !repository.has(path) => Some("leads to nothing"),
        Target::Inside(path, anchor) => {
            let anchor = anchor.as_ref()?;
            let is_there = ids.get(path.as_str()).is_some_and(|ids| ids.contains(anchor));
            (!is_there).then_some("leads to no heading that is there")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(text: &str) -> Vec<String> {
        let files = [
            ("docs/guide/lab.md", text),
            ("docs/guide/figure.svg", ""),
            ("docs/design/sync.md", "# Sync\n\n## The plan\n"),
            ("crates/sync/src/plan.rs", ""),
        ];
        let found = links_lead_somewhere(&Repository::from_texts(&files));
        found.into_iter().map(|finding| format!("{}: {}", finding.place, finding.message)).collect()
    }

    #[test]
    fn links_to_what_is_there_are_fine() {
        let text = "# Here\n\n[a](../design/sync.md#the-plan) [b](#here) [c](../../crates/sync) ![d](figure.svg)\n\
                    [e](https://example.org/#f) `[g](gone.md)`\n";
        assert_eq!(findings(text), [] as [&str; 0]);
    }

    #[test]
    fn links_to_what_is_not_there_are_found_in_their_line() {
        let wrong = [
            "[a](gone.md)",
            "[a](../design/sync.md#a-plan)",
            "[a](#gone)",
            "![a](gone.svg)",
            "![a](https://example.org/a.png)",
            "[a](../../../elsewhere)",
            "[a](javascript:alert)",
            "[a](../../crates/sync/src/plan.rs#L5)",
        ];
        for link in wrong {
            let found = findings(&format!("# Here\n\nWords and {link}.\n"));
            assert!(found.len() == 1 && found[0].starts_with("docs/guide/lab.md:3: "), "{found:?}");
        }
    }
}
