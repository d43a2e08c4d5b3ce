//! What stands around a page: the way through the site, what the page has, and where it comes from.

use std::fmt::Write;

use super::map::{Group, Map, way};
use super::render::escape;
use crate::markdown::Heading;

const TEMPLATE: &str = include_str!("page.html");

/// The address of the one style sheet.
pub const STYLE: &str = "site/site.css";

const TITLE_END: &str = "</h1>";

/// The first groups, for people who use the program, are open together; others only on their own pages, where they are in sight then.
const OPEN_TOGETHER: usize = 3;

/// What one page has.
#[derive(Debug, Clone)]
pub struct Content<'site> {
    /// What it is called.
    pub title: &'site str,
    /// All its headings.
    pub headings: Vec<Heading>,
    /// HTML.
    pub body: String,
    /// The document, or what else it was made from.
    pub made_from: &'site str,
}

/// Writes a page.
pub fn page(map: &Map, address: &str, content: &Content) -> String {
    // What the page has is listed below its title.
    let below = content.body.find(TITLE_END).map_or(0, |at| at + TITLE_END.len());
    let (heading, rest) = content.body.split_at(below);
    fill(TEMPLATE, |name| match name {
        "title" => escape(content.title),
        "style" => way(address, STYLE),
        "icon" => way(address, super::ICON.1),
        "start" => way(address, "index.html"),
        "groups" => groups(map, address),
        "contents" => contents(&content.headings),
        "heading" => heading.to_owned(),
        "rest" => rest.to_owned(),
        "made-from" => escape(content.made_from),
        other => unreachable!("the template asks for {other}, which nobody knows"),
    })
}

/// Puts values where a template names them. What a value has in it is not looked at.
fn fill(template: &str, value: impl Fn(&str) -> String) -> String {
    let mut parts = template.split("{{");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = part.split_once("}}").expect("our template closes what it opens");
        text.push_str(&value(name));
        text.push_str(rest);
    }
    text
}

fn groups(map: &Map, address: &str) -> String {
    let groups = map.groups();
    let own = groups.iter().position(|group| group.pages.iter().any(|page| page == address));
    let mut text = String::new();
    for (index, Group { title, pages }) in groups.iter().enumerate() {
        let is_open = own.is_some_and(|own| own == index || own.max(index) < OPEN_TOGETHER);
        let open = if is_open { " open" } else { "" };
        // Writing to a String cannot fail, here as below.
        let _ok = writeln!(text, "<details{open}><summary>{title}</summary><ul>");
        for page in pages {
            let current = if page == address { " aria-current=\"page\"" } else { "" };
            let (to, title) = (escape(&way(address, page)), escape(map.title(page)));
            let _ok = writeln!(text, "<li><a href=\"{to}\"{current}>{title}</a></li>");
        }
        text.push_str("</ul></details>\n");
    }
    text
}

/// Lists the parts of a page and theirs, where there are several.
fn contents(headings: &[Heading]) -> String {
    let parts: Vec<&Heading> =
        headings.iter().filter(|heading| (2..=3).contains(&heading.level)).collect();
    if parts.len() < 2 {
        return String::new();
    }
    let mut text = "<nav class=\"contents\" aria-label=\"On this page\"><details>\
        <summary>On this page</summary><ul>\n"
        .to_owned();
    for Heading { level, words, id } in parts {
        let (id, words) = (escape(id), escape(words));
        let _ok = writeln!(text, "<li class=\"level-{level}\"><a href=\"#{id}\">{words}</a></li>");
    }
    text + "</ul></details></nav>"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::Repository;

    #[test]
    fn what_is_put_into_a_template_is_not_a_template() {
        let value = |name: &str| format!("{{{{{name}}}}} <{name}>");
        assert_eq!(fill("a {{one}} b {{two}}", value), "a {{one}} <one> b {{two}} <two>");
    }

    #[test]
    fn the_group_of_a_page_is_open() {
        let files = [("README.md", "# A"), ("docs/guide/b.md", "# B"), ("docs/design/c.md", "# C")];
        let map = Map::new(&Repository::from_texts(&files));
        let open = |address| {
            let groups = groups(&map, address);
            let open = groups.split("<details open><summary>").skip(1);
            open.map(|rest| rest.split('<').next().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(open("index.html"), ["Start", "Guide", "Measured"]);
        assert_eq!(open("docs/design/c.html"), ["Design"]);
        let current = "<a href=\"c.html\" aria-current=\"page\">C</a>";
        assert!(groups(&map, "docs/design/c.html").contains(current));
    }

    #[test]
    fn parts_are_listed_where_there_are_several() {
        let heading =
            |level, words: &str| Heading { level, words: words.to_owned(), id: "id".to_owned() };
        assert_eq!(contents(&[heading(1, "Title"), heading(2, "One"), heading(4, "Two")]), "");
        let listed = contents(&[heading(2, "One"), heading(3, "<Two>")]);
        assert!(
            listed.contains("<li class=\"level-3\"><a href=\"#id\">&lt;Two&gt;</a></li>"),
            "{listed}"
        );
    }
}
