//! Documents as GitHub reads them: what leads where, and how headings are called by links.

use std::collections::BTreeSet;

use pulldown_cmark::{Event, LinkType, Options, Parser, Tag, TagEnd};

/// A heading of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heading {
    /// 1 for the title, more for what stands below.
    pub level: usize,
    /// What it says, without marks.
    pub words: String,
    /// What a link to it has after `#`.
    pub id: String,
}

/// Where a link leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// To another site, or to a mailbox.
    Elsewhere,
    /// To a file or folder of the repository, by its path from the root, and to a heading in it.
    Inside(String, Option<String>),
    /// To nothing that a document may lead to.
    Nowhere,
}

/// Schemes of addresses that a document may lead to.
const SCHEMES: [&str; 3] = ["http", "https", "mailto"];

/// Reads a document, part by part.
pub fn parse(text: &str) -> Parser<'_> {
    Parser::new_ext(text, Options::ENABLE_TABLES)
}

/// Returns the headings of a document in their order. Of equal ones each has an id of its own.
pub fn headings(text: &str) -> Vec<Heading> {
    let (mut found, mut taken) = (Vec::new(), BTreeSet::new());
    let mut open: Option<(usize, String)> = None;
    for event in parse(text) {
        match event {
            Event::Start(Tag::Heading { level, .. }) => {
                open = Some((level as usize, String::new()));
            }
            Event::End(TagEnd::Heading(_)) => {
                let Some((level, words)) = open.take() else { continue };
                let id = free_id(&mut taken, &words);
                found.push(Heading { level, words, id });
            }
            Event::Text(part) | Event::Code(part) | Event::InlineHtml(part) => {
                if let Some((_, words)) = &mut open {
                    words.push_str(&part);
                }
            }
            _ => {}
        }
    }
    found
}

fn free_id(taken: &mut BTreeSet<String>, words: &str) -> String {
    let id = id(words);
    let numbered = (1..).map(|number| format!("{id}-{number}"));
    let free = std::iter::once(id.clone()).chain(numbered).find(|id| !taken.contains(id));
    let free = free.expect("one of endlessly many is free");
    taken.insert(free.clone());
    free
}

/// Lower case, a hyphen for a space, and nothing for other signs.
fn id(words: &str) -> String {
    let kept = words.trim().to_lowercase();
    let kept = kept.chars().map(|sign| if sign == ' ' { '-' } else { sign });
    kept.filter(|sign| sign.is_alphanumeric() || "-_".contains(*sign)).collect()
}

/// Says where a link of a document leads, which is written from the folder of that.
pub fn target(document: &str, kind: LinkType, link: &str) -> Target {
    if kind == LinkType::Email {
        return Target::Elsewhere;
    }
    let (path, anchor) = match link.split_once('#') {
        Some((path, anchor)) => (path, Some(anchor.to_owned())),
        None => (link, None),
    };
    if path.is_empty() {
        return Target::Inside(document.to_owned(), anchor);
    }
    if let Some((scheme, _)) = path.split_once(':') {
        let is_known = SCHEMES.iter().any(|known| known.eq_ignore_ascii_case(scheme));
        return if is_known { Target::Elsewhere } else { Target::Nowhere };
    }
    match join(document, path) {
        Some(path) => Target::Inside(path, anchor),
        None => Target::Nowhere,
    }
}

/// Follows a path from the folder of a document; above the root there is nothing.
fn join(document: &str, path: &str) -> Option<String> {
    if path.starts_with('/') {
        return None;
    }
    let mut parts: Vec<&str> = document.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_have_the_ids_that_github_gives_them() {
        let text = "# Many, idle, fast\n\n## `lab-run`, *two*\n\n### A [link](x.md)_s\n\n## Äpfel & <b>\n\n\
                    ```\n## no heading\n```\n\nMany, idle, fast\n===\n\n# Many, idle, fast\n";
        let found = headings(text);
        let ids: Vec<&str> = found.iter().map(|heading| heading.id.as_str()).collect();
        assert_eq!(
            ids,
            [
                "many-idle-fast",
                "lab-run-two",
                "a-link_s",
                "äpfel--b",
                "many-idle-fast-1",
                "many-idle-fast-2"
            ]
        );
        assert_eq!((found[1].level, found[1].words.as_str()), (2, "lab-run, two"));
    }

    #[test]
    fn links_are_followed_from_the_folder_of_their_document() {
        let inside = |path: &str, anchor: Option<&str>| {
            Target::Inside(path.to_owned(), anchor.map(str::to_owned))
        };
        let from = |link| target("docs/guide/lab.md", LinkType::Inline, link);
        assert_eq!(from("json.md"), inside("docs/guide/json.md", None));
        assert_eq!(from("./../design/sync.md#a-b"), inside("docs/design/sync.md", Some("a-b")));
        assert_eq!(from("../../README.md"), inside("README.md", None));
        assert_eq!(from("#traces"), inside("docs/guide/lab.md", Some("traces")));
        for elsewhere in ["https://example.org/a#b", "mailto:a@example.org", "HTTP://a"] {
            assert_eq!(from(elsewhere), Target::Elsewhere, "{elsewhere}");
        }
        for nowhere in ["javascript:alert(1)", "../../../etc", "/etc", "//example.org/a", "data:,"]
        {
            assert_eq!(from(nowhere), Target::Nowhere, "{nowhere}");
        }
        assert_eq!(target("README.md", LinkType::Email, "a@example.org"), Target::Elsewhere);
    }
}
