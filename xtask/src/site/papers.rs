//! The page that has the tables and figures of the papers, measured again: a report of this computer, or what came of it where the program was made.

use std::fmt::Write;

use super::layout::Content;
use super::map::{Map, way};
use super::render::{View, escape};
use crate::failure::{Failure, Result};
use crate::markdown::Heading;
use crate::tidy::Repository;

/// Where it is.
pub const ADDRESS: &str = "papers.html";

/// What it is called.
pub const TITLE: &str = "The papers, measured again";

/// The papers, by how the folders of their experiments begin.
const PAPERS: [(&str, &str); 5] = [
    ("stacksync", "StackSync (2014)"),
    ("metasync", "MetaSync (2015)"),
    ("webr2sync", "WebR2sync+ (2018)"),
    ("syncany", "Syncany thesis (2011)"),
    ("benchcloud", "BenchCloud (2014)"),
];

const HERE: &str = "\
<p>What five papers have printed, and what came of it when it was measured again, where this program was made. To have what your computer \
measures in its place:</p>
<pre tabindex=\"0\"><code>syncline lab run --all        everything, 55 minutes on two cores
syncline lab report           puts it on one page
cargo xtask site --report lab-results
</code></pre>
";

/// A page of `syncline lab report`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    body: String,
}

impl Report {
    /// Takes of a page what stands below its title: the rest is said by the site.
    pub fn read(text: &str) -> Result<Self> {
        let below = text.split_once("</h1>").and_then(|(_, below)| below.rsplit_once("</html>"));
        match below {
            Some((body, _)) if body.contains("<h2 id=\"") => Ok(Self { body: body.to_owned() }),
            _ => Err(Failure::new("is no page of `syncline lab report`")),
        }
    }
}

/// Makes the page.
pub fn content<'site>(
    repository: &Repository,
    map: &Map,
    report: Option<&Report>,
) -> Content<'site> {
    let title = format!("<h1>{}</h1>\n", escape(TITLE));
    if let Some(Report { body }) = report {
        // It lists its parts itself.
        let body = format!("{title}<div class=\"report\">{body}</div>");
        return Content {
            title: TITLE,
            headings: Vec::new(),
            body,
            made_from: "syncline lab report",
        };
    }
    let mut headings = Vec::new();
    let mut body = title + HERE;
    for (start, paper) in PAPERS {
        let folders = format!("experiments/{start}");
        headings.push(Heading { level: 2, words: paper.to_owned(), id: start.to_owned() });
        let _ok = writeln!(body, "<h2 id=\"{start}\">{}</h2>", escape(paper));
        for (document, text) in repository.texts_with(&folders, "/README.md") {
            let name = document.split('/').nth(1).unwrap_or_default();
            // A folder that has the name of its paper is not an experiment of it.
            if name == start {
                continue;
            }
            let view = View::of_part(map, document, ADDRESS, name);
            headings.extend(view.headings(text));
            body += &view.html(text);
            body += &figures_beside(map, document, ADDRESS);
        }
    }
    Content { title: TITLE, headings, body, made_from: "experiments" }
}

/// Lists the figures that lie beside what an experiment is described in.
pub fn figures_beside(map: &Map, document: &str, address: &str) -> String {
    let Some(folder) =
        document.strip_suffix("README.md").filter(|it| it.starts_with("experiments/"))
    else {
        return String::new();
    };
    let files = map.copied().filter_map(|path| Some((path, path.strip_prefix(folder)?)));
    let files: Vec<String> = files
        .filter(|(_, name)| name.ends_with(".csv"))
        .map(|(path, name)| {
            let (to, name) = (escape(&way(address, path)), escape(name));
            format!("<a href=\"{to}\"><code>{name}</code></a>")
        })
        .collect();
    if files.is_empty() {
        return String::new();
    }
    format!("<p class=\"below\">The figures: {}.</p>\n", files.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const README: &str = "# StackSync, Figure 7: commits\n\n**What came of it.** [Rows](rows.csv).\n\n![Bars](bars.svg)\n";

    fn page(report: Option<&Report>) -> Content<'static> {
        let files = [
            ("experiments/stacksync-figure-7/README.md", README),
            ("experiments/stacksync-figure-7/bars.svg", "<svg/>"),
            ("experiments/stacksync-figure-7/rows.csv", "1"),
            ("experiments/benchcloud/README.md", "# Files\n"),
        ];
        let repository = Repository::from_texts(&files);
        content(&repository, &Map::new(&repository), report)
    }

    #[test]
    fn without_a_report_the_page_says_how_to_make_one_and_has_what_is_there() {
        let Content { body, headings, .. } = page(None);
        assert!(
            body.contains("syncline lab report") && body.contains("--report lab-results"),
            "{body}"
        );
        assert!(body.contains("<h3 id=\"stacksync-figure-7\">StackSync,"), "{body}");
        let folder = "experiments/stacksync-figure-7";
        assert!(body.contains(&format!("<img src=\"{folder}/bars.svg\"")), "{body}");
        assert_eq!(body.matches(&format!("href=\"{folder}/rows.csv\"")).count(), 2, "{body}");
        assert!(headings.iter().any(|heading| heading.id == "stacksync-figure-7"), "{headings:?}");
        assert!(!body.contains("Files"), "{body}");
    }

    #[test]
    fn a_report_takes_the_place_of_what_is_there() {
        let text = "<!doctype html>\n<title>x</title>\n<style>body{}</style>\n<h1>x</h1>\n\
                    <nav></nav><h2 id=\"stacksync-figure-7\">Measured</h2></html>\n";
        let Content { body, .. } = page(Some(&Report::read(text).unwrap()));
        assert!(body.contains("<h2 id=\"stacksync-figure-7\">Measured</h2></div>"), "{body}");
        assert!(!body.contains("<style>") && !body.contains("lab run --all"), "{body}");
        for other in ["", "<h1>Nothing</h1></html>", "<h2 id=\"a\">"] {
            assert!(Report::read(other).is_err(), "{other}");
        }
    }
}
