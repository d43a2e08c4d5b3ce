//! Markdown as HTML that leads to pages of the site.

use std::iter::once;

use pulldown_cmark::{CodeBlockKind, CowStr, Event, HeadingLevel, LinkType, Tag, TagEnd, html};

use super::map::{Map, way};
use crate::markdown::{self, Heading, Target};

/// By these pictures of one view are told apart; the browser takes the one that goes with the rest.
const LIGHT: &str = "-light.png";
const DARK: &str = "-dark.png";

/// No unit has more letters, in bytes.
const UNIT_LENGTH_MAX: usize = 4;

/// In a list a phone has no longer lines, in letters of one width.
const SHORT_MAX: usize = 28;

/// How many levels headings of a document stand lower that is one of several on a page.
const LOWER: usize = 2;

/// A document as it is seen on a page.
#[derive(Debug, Clone, Copy)]
pub struct View<'site> {
    map: &'site Map,
    document: &'site str,
    /// The page that it is on.
    address: &'site str,
    /// Where it is one of several on a page: what its title is called by links.
    name: Option<&'site str>,
}

/// What is open, from the outermost inwards, and changes what stands in it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Open {
    Heading(Heading),
    Code,
    Link,
    Picture,
    /// To what is not on the site: the path is shown at the end.
    Path(String),
    /// To nowhere: only its words are shown.
    Words,
}

impl<'site> View<'site> {
    /// A document that is a page.
    pub fn of_page(map: &'site Map, document: &'site str, address: &'site str) -> Self {
        Self { map, document, address, name: None }
    }

    /// A document that is one of several on a page.
    pub fn of_part(
        map: &'site Map,
        document: &'site str,
        address: &'site str,
        name: &'site str,
    ) -> Self {
        Self { map, document, address, name: Some(name) }
    }

    /// Returns the headings as they are on the page.
    pub fn headings(&self, text: &str) -> Vec<Heading> {
        let Some(name) = self.name else { return markdown::headings(text) };
        let lowered = markdown::headings(text).into_iter().enumerate().map(|(index, heading)| {
            let id = if index == 0 { name.to_owned() } else { format!("{name}-{}", heading.id) };
            Heading { level: (heading.level + LOWER).min(6), id, ..heading }
        });
        lowered.collect()
    }

    /// Writes it as HTML. Nothing in it is taken for HTML.
    pub fn html(&self, text: &str) -> String {
        let mut headings = self.headings(text).into_iter();
        let mut open = Vec::new();
        let mut events = Vec::new();
        for event in markdown::parse(text) {
            match event {
                Event::Html(words) | Event::InlineHtml(words) => events.push(Event::Text(words)),
                Event::Text(words) if !open.contains(&Open::Code) => {
                    events.push(Event::Text(units_stay(&words).into()));
                }
                Event::Code(words) => events.extend(self.code(words, &open)),
                Event::Start(tag) => self.start(tag, &mut headings, &mut open, &mut events),
                Event::End(tag) => end(tag, &mut open, &mut events),
                other => events.push(other),
            }
        }
        let mut written = String::new();
        html::push_html(&mut written, events.into_iter());
        written
    }

    fn start<'text>(
        &self,
        tag: Tag<'text>,
        headings: &mut impl Iterator<Item = Heading>,
        open: &mut Vec<Open>,
        events: &mut Vec<Event<'text>>,
    ) {
        match tag {
            Tag::Heading { level, .. } => {
                let heading = headings.next().expect("it was found when the document was read");
                let level = HeadingLevel::try_from(heading.level).unwrap_or(level);
                let id = Some(heading.id.clone().into());
                open.push(Open::Heading(heading));
                let (classes, attrs) = (Vec::new(), Vec::new());
                events.push(Event::Start(Tag::Heading { level, id, classes, attrs }));
            }
            Tag::Link { link_type, dest_url, title, id } => {
                let (found, to) = self.link(link_type, &dest_url);
                if found == Open::Link {
                    let dest_url = to.map_or(dest_url, CowStr::from);
                    events.push(Event::Start(Tag::Link { link_type, dest_url, title, id }));
                }
                open.push(found);
            }
            Tag::Image { link_type, dest_url, title, id } => {
                let (found, to) = self.link(link_type, &dest_url);
                // What is elsewhere is not asked for; its words stand for it.
                let (Open::Link, Some(to)) = (&found, to) else {
                    return open.push(if found == Open::Link { Open::Words } else { found });
                };
                let source = self.by_night(link_type, &dest_url).map(|dark| {
                    let (dark, media) = (escape(&dark), "(prefers-color-scheme: dark)");
                    format!("<source srcset=\"{dark}\" media=\"{media}\">")
                });
                events.push(raw(format!("<picture>{}", source.unwrap_or_default())));
                let dest_url = to.into();
                events.push(Event::Start(Tag::Image { link_type, dest_url, title, id }));
                open.push(Open::Picture);
            }
            // What is wider than the page is moved by keys, too.
            Tag::Table(alignments) => {
                let around =
                    "<div class=\"wide\" role=\"group\" aria-label=\"Table\" tabindex=\"0\">";
                events.extend([raw(around), Event::Start(Tag::Table(alignments))]);
            }
            Tag::CodeBlock(CodeBlockKind::Fenced(_) | CodeBlockKind::Indented) => {
                open.push(Open::Code);
                events.push(raw("<pre tabindex=\"0\"><code>"));
            }
            Tag::HtmlBlock => events.push(Event::Start(Tag::Paragraph)),
            other => events.push(Event::Start(other)),
        }
    }

    /// Says what a link is, and where it leads if that is somewhere else on the site.
    fn link(&self, kind: LinkType, link: &str) -> (Open, Option<String>) {
        match markdown::target(self.document, kind, link) {
            Target::Elsewhere => (Open::Link, None),
            Target::Nowhere => (Open::Words, None),
            Target::Inside(path, anchor) => match self.map.address(&path) {
                None => (Open::Path(path), None),
                Some(address) => {
                    let anchor = anchor.map(|anchor| format!("#{anchor}")).unwrap_or_default();
                    (Open::Link, Some(way(self.address, address) + &anchor))
                }
            },
        }
    }

    /// Says where the picture is that goes with another one by night.
    fn by_night(&self, kind: LinkType, link: &str) -> Option<String> {
        let Target::Inside(path, _) = markdown::target(self.document, kind, link) else {
            return None;
        };
        let dark = format!("{}{DARK}", path.strip_suffix(LIGHT)?);
        Some(way(self.address, self.map.address(&dark)?))
    }

    /// What is named by its path leads there, if it is on the site.
    fn code<'text>(&self, words: CowStr<'text>, open: &[Open]) -> Vec<Event<'text>> {
        // What a picture shows is said in words alone.
        if open.contains(&Open::Picture) {
            return vec![Event::Code(words)];
        }
        let folder = self.document.rsplit_once('/').map_or("", |(folder, _)| folder);
        let beside = format!("{folder}/{words}");
        let named = [beside.as_str(), &words].into_iter().find_map(|path| self.map.address(path));
        let address = named.filter(|address| open.is_empty() && *address != self.address);
        let Some(address) = address else { return vec![code(words)] };
        let to = escape(&way(self.address, address));
        vec![raw(format!("<a href=\"{to}\">")), code(words), raw("</a>")]
    }
}

/// What is short stays on one line.
fn code(words: CowStr) -> Event {
    match words.chars().count() > SHORT_MAX {
        true => raw(format!("<code class=\"long\">{}</code>", escape(&words))),
        false => Event::Code(words),
    }
}

fn end<'text>(tag: TagEnd, open: &mut Vec<Open>, events: &mut Vec<Event<'text>>) {
    match tag {
        TagEnd::Heading(level) => {
            let Some(Open::Heading(heading)) = open.pop() else {
                unreachable!("what is in a heading has ended before it")
            };
            let level = HeadingLevel::try_from(heading.level).unwrap_or(level);
            let to = escape(&heading.id);
            let anchor = format!(
                "<a class=\"anchor\" href=\"#{to}\" aria-hidden=\"true\" tabindex=\"-1\">#</a>"
            );
            events.extend([raw(anchor), Event::End(TagEnd::Heading(level))]);
        }
        TagEnd::Link | TagEnd::Image => match open.pop() {
            Some(Open::Link) => events.push(Event::End(TagEnd::Link)),
            Some(Open::Picture) => events.extend([Event::End(TagEnd::Image), raw("</picture>")]),
            Some(Open::Path(path)) => {
                events.extend([Event::Text(" (".into()), code(path.into())]);
                events.push(Event::Text(")".into()));
            }
            Some(Open::Words | Open::Heading(_) | Open::Code) | None => {}
        },
        TagEnd::Table => events.extend([Event::End(TagEnd::Table), raw("</div>")]),
        TagEnd::CodeBlock => {
            open.pop();
            events.push(raw("</code></pre>"));
        }
        TagEnd::HtmlBlock => events.push(Event::End(TagEnd::Paragraph)),
        other => events.push(Event::End(other)),
    }
}

/// Keeps a line from ending between a number and its unit.
fn units_stay(words: &str) -> String {
    let mut kept = String::new();
    let mut rest = words;
    while let Some((before, after)) = rest.split_once(' ') {
        let unit = after.find(|sign: char| !sign.is_alphabetic() && !"%/".contains(sign));
        let is_unit = (1..=UNIT_LENGTH_MAX).contains(&unit.unwrap_or(after.len()));
        let is_number = before.ends_with(|sign: char| sign.is_ascii_digit());
        kept.push_str(before);
        kept.push(if is_number && is_unit { '\u{a0}' } else { ' ' });
        rest = after;
    }
    kept + rest
}

fn raw<'text>(written: impl Into<CowStr<'text>>) -> Event<'text> {
    Event::Html(written.into())
}

/// Writes words so that they mean themselves, in an attribute, too.
pub fn escape(words: &str) -> String {
    let mut written = String::new();
    html::push_html(&mut written, once(Event::Text(words.into())));
    written.replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::Repository;

    fn html(text: &str) -> String {
        let files = [
            ("docs/guide/lab.md", text),
            ("docs/design/sync.md", "# Sync"),
            ("docs/openapi.json", "{}"),
            ("docs/guide/web/files-light.png", ""),
            ("docs/guide/web/files-dark.png", ""),
            ("docs/guide/web/files-phone.png", ""),
            ("crates/sync/src/plan.rs", ""),
            ("web/icon.png", ""),
        ];
        let map = Map::new(&Repository::from_texts(&files));
        View::of_page(&map, "docs/guide/lab.md", "docs/guide/lab.html").html(text)
    }

    #[test]
    fn nothing_in_a_document_is_taken_for_html() {
        let odd = "# A <b> & \"c\"\n\nWords <script>alert(1)</script>\n\n<div onclick=\"x\">\nblock\n</div>\n\n\
                   `<script>` &amp;\n\n    <script>\n\n```x\"<script>\n</code></pre><script>\n```\n\n\
                   | a \\| b | `c \\| <i>` |\n|---|--:|\n| <script> | 1 |\n\n\
                   [\"<script>](javascript:alert(1) \"<script>\") ![<script>\"](web/files-phone.png \"<script>\\\"\")\n";
        let html = html(odd);
        for tag in ["<script", "<b>", "<div onclick", "<i>", "javascript:"] {
            assert!(!html.contains(tag), "{tag} in {html}");
        }
        assert!(html.contains("<h1 id=\"a-b--c\">A &lt;b&gt; &amp; \"c\""), "{html}");
        assert!(html.contains("&lt;/code&gt;&lt;/pre&gt;&lt;script&gt;\n</code></pre>"), "{html}");
        assert!(html.contains("<th>a | b</th>"), "{html}");
        assert!(html.contains("<code>c | &lt;i&gt;</code>"), "{html}");
        assert!(
            html.contains("alt=\"&lt;script&gt;&quot;\" title=\"&lt;script&gt;&quot;\""),
            "{html}"
        );
    }

    #[test]
    fn links_lead_to_pages_and_files_of_the_site_and_sources_are_named() {
        let html = html(
            "[a](../design/sync.md#sync) [b](../openapi.json) [c](../../crates/sync/src/plan.rs) [d](#x) [e](https://f.example)",
        );
        let expected = "<p><a href=\"../design/sync.html#sync\">a</a> <a href=\"../openapi.json\">b</a> \
                        c (<code>crates/sync/src/plan.rs</code>) <a href=\"lab.html#x\">d</a> \
                        <a href=\"https://f.example\">e</a></p>\n";
        assert_eq!(html, expected);
    }

    #[test]
    fn a_page_that_is_named_by_its_path_is_a_link() {
        let to = |path: &str, words: &str| format!("<a href=\"{path}\"><code>{words}</code></a>");
        let named = html(
            "`docs/design/sync.md` `web/files-dark.png` `lab.md` `crates/sync` [`docs/openapi.json`](#x)",
        );
        assert!(named.contains(&to("../design/sync.html", "docs/design/sync.md")), "{named}");
        assert!(named.contains(&to("web/files-dark.png", "web/files-dark.png")), "{named}");
        assert!(named.contains("<code>lab.md</code> <code>crates/sync</code>"), "{named}");
        assert!(named.contains("\"><code>docs/openapi.json</code></a>"), "{named}");
        assert_eq!(named.matches("<a ").count(), 3, "{named}");
        assert_eq!(html("## `docs/design/sync.md`\n").matches("<a ").count(), 1);
    }

    #[test]
    fn pictures_of_the_site_are_shown_by_day_and_by_night_and_no_others() {
        let shown = html("![Files](web/files-light.png) ![Phone](web/files-phone.png)");
        let both = "<picture><source srcset=\"web/files-dark.png\" media=\"(prefers-color-scheme: dark)\">\
                    <img src=\"web/files-light.png\" alt=\"Files\" /></picture>";
        assert!(shown.contains(both), "{shown}");
        assert!(shown.contains("<picture><img src=\"web/files-phone.png\""), "{shown}");
        let words = "`words that are longer than others`";
        let alt = html(&format!("![{words}](web/files-phone.png)"));
        assert!(alt.contains(&format!("alt=\"{}\"", words.trim_matches('`'))), "{alt}");
        let named = html("![An icon](../../web/icon.png) ![A shop](https://shop.example/a.png)");
        assert_eq!(named, "<p>An icon (<code>web/icon.png</code>) A shop</p>\n");
    }

    #[test]
    fn headings_of_one_part_of_a_page_stand_lower_and_are_called_after_it() {
        let text = "# Figure 7\n\n## What\n";
        let map = Map::new(&Repository::from_texts(&[("experiments/a/README.md", text)]));
        let view = View::of_part(&map, "experiments/a/README.md", "papers.html", "a");
        let html = view.html(text);
        assert!(
            html.contains("<h3 id=\"a\">Figure") && html.contains("<h4 id=\"a-what\">"),
            "{html}"
        );
    }

    #[test]
    fn long_code_may_have_several_lines() {
        let words = "a <b> ".repeat(10);
        let long = format!("<code class=\"long\">{}</code>", escape(words.trim()));
        assert_eq!(
            html(&format!("`{}` `a b`", words.trim())),
            format!("<p>{long} <code>a b</code></p>\n")
        );
    }

    #[test]
    fn a_number_and_its_unit_stay_together() {
        assert_eq!(
            units_stay("took 4.6 s, 12 KB/s and 5 %"),
            "took 4.6\u{a0}s, 12\u{a0}KB/s and 5\u{a0}%"
        );
        assert_eq!(
            units_stay("Figure 7 measured 3 files; in s 5"),
            "Figure 7 measured 3 files; in s 5"
        );
        assert!(html("    a 5 s\n").contains("a 5 s"));
    }
}
