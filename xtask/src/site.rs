//! The site of the documents: each Markdown file of the repository as a page that runs no program in the browser, and asks no other server for
//! anything.
//!
//! What becomes which page is said by [`map`], how Markdown becomes HTML by [`render`], what stands around it by [`layout`]; the page about the
//! papers is made by [`papers`]. All of that is pure: files are read before and written after. Pages have the paths of their documents, so
//! links between them, and to pictures and figures, are short ways in the site, too. Of what is no part of it, sources above all, the path is
//! shown and nothing is linked.

pub mod layout;
pub mod map;
pub mod papers;
pub mod render;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::arguments::Arguments;
use crate::failure::{Context, Result, fail};
use crate::tidy::{Repository, links};
use crate::{markdown, repository_root};
use layout::Content;
use map::Map;
use papers::Report;
use render::View;

const USAGE: &str = "\
usage: cargo xtask site [--report DIR-OR-FILE]

  Builds a site of all documents into target/site: index.html is where it begins. With --report the page about
  the papers is the one that `syncline lab report` made: its file, or the folder that it is in.";

/// What is called so in the repository, and where it lies in the site.
const ICON: (&str, &str) = ("web/app/public/icon.svg", "site/icon.svg");

/// Colours and distances, which the app in the browser has, too; and what uses them.
const TOKENS: &str = "web/packages/tokens/tokens.css";
const STYLE: &str = include_str!("site/site.css");

/// The name that `syncline lab report` gives to what it writes.
const REPORT: &str = "report.html";

/// Builds the site.
pub fn run(mut arguments: Arguments) -> Result<()> {
    if arguments.flag("--help") {
        println!("{USAGE}");
        return arguments.finish();
    }
    let report = arguments.value("--report")?.map(PathBuf::from);
    arguments.finish()?;
    let report = report.as_deref().map(read_report).transpose()?;
    let root = repository_root();
    let repository = Repository::load(&root)?;
    let wrong = links::links_lead_somewhere(&repository);
    if !wrong.is_empty() {
        let lines = wrong.iter().map(|finding| format!("\n{}: {}", finding.place, finding.message));
        return fail(format!("links of documents lead nowhere:{}", lines.collect::<String>()));
    }
    let out = root.join("target").join("site");
    let pages = build(&repository, &root, report.as_ref(), &out)?;
    println!("{pages} pages; they begin at {}", out.join("index.html").display());
    Ok(())
}

fn read_report(path: &Path) -> Result<Report> {
    let file = if path.is_dir() { path.join(REPORT) } else { path.to_owned() };
    let text = fs::read_to_string(&file).context(file.display())?;
    Report::read(&text).context(file.display())
}

/// Writes the site of a repository into a folder, in place of what was there, and returns how many pages it has.
pub fn build(
    repository: &Repository,
    root: &Path,
    report: Option<&Report>,
    out: &Path,
) -> Result<usize> {
    if out.exists() {
        fs::remove_dir_all(out).context(out.display())?;
    }
    let map = Map::new(repository);
    let made = make(repository, &map, report);
    for (address, text) in &made {
        let to = place(out, address)?;
        fs::write(&to, text).context(to.display())?;
    }
    for (from, address) in map.copied().map(|path| (path, path)).chain([ICON]) {
        fs::copy(root.join(from), place(out, address)?).context(from)?;
    }
    Ok(made.keys().filter(|address| address.ends_with(".html")).count())
}

fn place(out: &Path, address: &str) -> Result<PathBuf> {
    let to = out.join(address);
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).context(folder.display())?;
    }
    Ok(to)
}

/// Makes the texts of the site, by their addresses in it.
pub fn make(
    repository: &Repository,
    map: &Map,
    report: Option<&Report>,
) -> BTreeMap<String, String> {
    let mut made = BTreeMap::new();
    let tokens = repository.text(TOKENS).unwrap_or_default();
    made.insert(layout::STYLE.to_owned(), format!("{tokens}\n{STYLE}"));
    for (document, address) in map.documents() {
        let text = repository.text(document).unwrap_or_default();
        let view = View::of_page(map, document, address);
        let content = Content {
            title: map.title(address),
            headings: markdown::headings(text),
            body: view.html(text) + &papers::figures_beside(map, document, address),
            made_from: document,
        };
        made.insert(address.to_owned(), layout::page(map, address, &content));
    }
    let content = papers::content(repository, map, report);
    made.insert(papers::ADDRESS.to_owned(), layout::page(map, papers::ADDRESS, &content));
    made
}
