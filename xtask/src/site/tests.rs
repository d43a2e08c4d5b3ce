//! The site of this repository, looked at as a browser does.

use std::collections::{BTreeMap, BTreeSet};

use super::*;

const REPORT_TEXT: &str =
    "<h1>x</h1><nav><a href=\"#a\">A</a></nav><h2 id=\"a\">A</h2><svg></svg></html>";

/// Every value of an attribute in a page.
fn values<'page>(page: &'page str, attribute: &str) -> Vec<&'page str> {
    let start = format!(" {attribute}=\"");
    let tags = page.split('<').skip(1).filter_map(|tag| tag.split('>').next());
    tags.flat_map(|tag| tag.split(&start).skip(1))
        .filter_map(|rest| rest.split('"').next())
        .collect()
}

/// Follows a way from a page; nothing for one that leads out of the site.
fn follow(page: &str, way: &str) -> Option<String> {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in way.split('/') {
        match part {
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Says what on a site leads nowhere, and what of it would be fetched from elsewhere.
fn wrong(pages: &BTreeMap<String, String>, files: &BTreeSet<String>) -> Vec<String> {
    let ids: BTreeMap<&str, BTreeSet<&str>> = pages
        .iter()
        .map(|(address, page)| (address.as_str(), values(page, "id").into_iter().collect()))
        .collect();
    let mut wrong = Vec::new();
    for (address, page) in pages {
        let fetched = ["src", "srcset"].iter().flat_map(|attribute| values(page, attribute));
        for link in fetched.clone().filter(|link| link.contains(':')) {
            wrong.push(format!("{address} fetches {link}"));
        }
        let links = values(page, "href").into_iter().chain(fetched);
        for link in links.filter(|link| !link.contains(':')) {
            let (way, id) = link.split_once('#').unwrap_or((link, ""));
            let to = if way.is_empty() { Some(address.clone()) } else { follow(address, way) };
            let to = to.filter(|to| files.contains(to));
            let is_there = to.is_some_and(|to| {
                id.is_empty() || ids.get(to.as_str()).is_some_and(|ids| ids.contains(id))
            });
            if !is_there {
                wrong.push(format!("{address} leads to {link}"));
            }
        }
    }
    wrong
}

/// Reads what was built: the pages, and all files.
fn read(out: &Path) -> (BTreeMap<String, String>, BTreeSet<String>) {
    let built = Repository::load(out).unwrap();
    let files = built.paths().filter(|path| out.join(path).is_file()).map(str::to_owned).collect();
    let pages = built.texts_with("", ".html");
    (pages.map(|(address, page)| (address.to_owned(), page.to_owned())).collect(), files)
}

#[test]
fn a_link_to_nothing_is_found_on_a_site() {
    let page = "<a href=\"b.html#there\">b</a> <a href=\"#here\" id=\"here\">a</a> <a href=\"https://x.example\">x</a>";
    let pages = |page: &str| {
        let other = "<h1 id=\"there\">B</h1>".to_owned();
        BTreeMap::from([("a/a.html".to_owned(), page.to_owned()), ("a/b.html".to_owned(), other)])
    };
    let look = |page: &str| {
        let pages = pages(page);
        wrong(&pages, &pages.keys().cloned().collect())
    };
    assert_eq!(look(page), [] as [&str; 0]);
    for bad in [
        "<a href=\"c.html\">",
        "<a href=\"b.html#gone\">",
        "<a href=\"#gone\">",
        "<a href=\"../../b.html\">",
        "<img src=\"a.png\">",
        "<img src=\"https://x.example/a.png\">",
        "<source srcset=\"b.png\">",
    ] {
        assert_eq!(look(bad).len(), 1, "{bad}");
    }
}

#[test]
fn every_link_of_the_site_of_this_repository_leads_somewhere() {
    let root = repository_root();
    let repository = Repository::load(&root).unwrap();
    let room = tempfile::tempdir().unwrap();
    let out = room.path().join("site");
    let report = Report::read(REPORT_TEXT).unwrap();
    for report in [Some(&report), None] {
        let count = build(&repository, &root, report, &out).unwrap();
        let (pages, files) = read(&out);
        assert_eq!(count, pages.len());
        assert_eq!(wrong(&pages, &files), [] as [&str; 0]);
        for (address, page) in &pages {
            assert!(page.starts_with("<!doctype html>\n<html lang=\"en\">"), "{address}");
            assert_eq!(page.matches("<h1").count(), 1, "{address}");
            assert_eq!(page.matches("aria-current=\"page\"").count(), 1, "{address}");
            assert!(!page.contains("<script"), "{address}");
            let ids = values(page, "id");
            assert_eq!(ids.len(), ids.iter().collect::<BTreeSet<_>>().len(), "{address}");
        }
        let style = fs::read_to_string(out.join(layout::STYLE)).unwrap();
        assert!(
            style.contains("--bg-canvas:") && !style.contains("url(") && !style.contains("@import")
        );
    }
}

#[test]
fn every_document_of_this_repository_is_a_page() {
    let repository = Repository::load(&repository_root()).unwrap();
    let map = Map::new(&repository);
    let made = make(&repository, &map, None);
    let is_ours = |path: &str| {
        ["docs/", "experiments/"].iter().any(|folder| path.starts_with(folder))
            || !path.contains('/')
    };
    let documents: Vec<_> =
        repository.texts_with("", ".md").filter(|(path, _)| is_ours(path)).collect();
    assert!(documents.len() > 80, "{documents:?}");
    for (document, text) in documents {
        let page = map.address(document).and_then(|address| made.get(address));
        let page = page.unwrap_or_else(|| panic!("{document} is in no group of the map"));
        for heading in markdown::headings(text) {
            assert!(page.contains(&format!(" id=\"{}\"", heading.id)), "{document}: {heading:?}");
        }
    }
    let papers = &made[papers::ADDRESS];
    let notes = repository.texts_with("experiments/", "/README.md");
    for (name, _) in notes.filter_map(|(path, text)| Some((path.split('/').nth(1)?, text))) {
        let is_on_it = papers.contains(&format!("<h3 id=\"{name}\">"));
        assert_eq!(is_on_it, name != "benchcloud", "{name}");
    }
}
