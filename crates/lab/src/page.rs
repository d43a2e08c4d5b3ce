//! What people read of a measurement: texts, tables and drawings, as a page of HTML that stands by itself, as Markdown, and as JSON of which
//! several pages become one ([`report()`]).

use std::fmt::Write;

use serde::{Deserialize, Serialize};

use crate::plot::escape;

/// How a page looks, by light and by night.
const STYLE: &str = "\
:root{color-scheme:light dark;--line:#d0d4da;--soft:#5b6470}\
@media(prefers-color-scheme:dark){:root{--line:#3a4049;--soft:#a4adb8}}\
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}\
h1{font-size:1.6rem}h2{font-size:1.35rem;margin-top:3rem}h3{font-size:1.1rem;margin-top:2rem}\
.wide{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums}\
th,td{padding:.3rem .8rem;border-bottom:1px solid var(--line);text-align:right;white-space:nowrap}\
th:first-child,td:first-child,.words th,.words td{text-align:left}\
.words td{white-space:normal;vertical-align:top}\
th{color:var(--soft);font-weight:600;white-space:normal;vertical-align:bottom}\
nav li{margin:.2rem 0}nav h2{font-size:1rem;margin:1rem 0 0}\
pre{overflow-x:auto;padding:.6rem .8rem;border:1px solid var(--line);border-radius:6px}code{font-size:.95em}\
.below{color:var(--soft)}summary{cursor:pointer}details{margin:.5rem 0}\
svg{width:100%;height:auto;border:1px solid var(--line);border-radius:6px;margin:.5rem 0}\
.bad{color:#b3261e;font-weight:600}@media(prefers-color-scheme:dark){.bad{color:#ff8a80}}";

/// A page that is being written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page {
    /// What stands above it.
    pub title: String,
    blocks: Vec<Block>,
}

/// What a page is made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Block {
    Heading(String),
    Text(String),
    /// A paragraph with marks of Markdown in it: **strong**, `code`, [a link](elsewhere).
    Prose(String),
    /// What is typed.
    Code(String),
    Bad(String),
    Table(Table),
    /// One of words.
    Words(Table),
    /// One that is long, and shown to who asks for it by a press on its words.
    Folded {
        words: String,
        table: Table,
    },
    Drawing {
        name: String,
        svg: String,
    },
}

/// Rows below headings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Table {
    headings: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    fn new(headings: &[&str], rows: Vec<Vec<String>>) -> Self {
        Self { headings: headings.iter().map(|&heading| heading.to_owned()).collect(), rows }
    }

    fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let rows: String = self.rows.iter().map(|row| line(row)).collect();
        format!("{}|{}\n{rows}", line(&self.headings), "---|".repeat(self.headings.len()))
    }
}

impl Page {
    /// Begins a page.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), blocks: Vec::new() }
    }

    fn with(mut self, block: Block) -> Self {
        self.blocks.push(block);
        self
    }

    /// Begins a part of it.
    #[must_use]
    pub fn heading(self, words: impl Into<String>) -> Self {
        self.with(Block::Heading(words.into()))
    }

    /// Adds a paragraph.
    #[must_use]
    pub fn text(self, words: impl Into<String>) -> Self {
        self.with(Block::Text(words.into()))
    }

    /// Adds a paragraph in which marks of Markdown are meant.
    #[must_use]
    pub fn prose(self, words: impl Into<String>) -> Self {
        self.with(Block::Prose(words.into()))
    }

    /// Adds what is typed.
    #[must_use]
    pub fn code(self, words: impl Into<String>) -> Self {
        self.with(Block::Code(words.into()))
    }

    /// Adds all that is on another page.
    #[must_use]
    pub fn append(mut self, other: Self) -> Self {
        self.blocks.extend(other.blocks);
        self
    }

    /// Adds a paragraph that nobody is to overlook.
    #[must_use]
    pub fn bad(self, words: impl Into<String>) -> Self {
        self.with(Block::Bad(words.into()))
    }

    /// Adds a table; the first column has names, the others numbers.
    #[must_use]
    pub fn table(self, headings: &[&str], rows: Vec<Vec<String>>) -> Self {
        self.with(Block::Table(Table::new(headings, rows)))
    }

    /// Adds a table in which there are words that may need several lines.
    #[must_use]
    pub fn words(self, headings: &[&str], rows: Vec<Vec<String>>) -> Self {
        self.with(Block::Words(Table::new(headings, rows)))
    }

    /// Adds a table of numbers that is too long to read past: its words are shown, and the rest of it to who presses them.
    #[must_use]
    pub fn folded(
        self,
        words: impl Into<String>,
        headings: &[&str],
        rows: Vec<Vec<String>>,
    ) -> Self {
        self.with(Block::Folded { words: words.into(), table: Table::new(headings, rows) })
    }

    /// Adds a drawing of [`crate::plot`], which is a file of this name, too.
    #[must_use]
    pub fn drawing(self, name: impl Into<String>, svg: impl Into<String>) -> Self {
        self.with(Block::Drawing { name: name.into(), svg: svg.into() })
    }

    /// Returns the drawings, by the names of their files.
    pub fn drawings(&self) -> impl Iterator<Item = (&str, &str)> {
        self.blocks.iter().filter_map(|block| match block {
            Block::Drawing { name, svg } => Some((name.as_str(), svg.as_str())),
            _ => None,
        })
    }

    /// Writes it as HTML that loads nothing.
    pub fn html(&self) -> String {
        let mut text = head(&self.title);
        self.body(&mut text, "h2");
        text + "</html>\n"
    }

    fn body(&self, text: &mut String, level: &str) {
        for block in &self.blocks {
            // Writing to a String cannot fail, here as below.
            let _ok = match block {
                Block::Heading(words) => writeln!(text, "<{level}>{}</{level}>", escape(words)),
                Block::Text(words) => writeln!(text, "<p>{}</p>", escape(words)),
                Block::Prose(words) => writeln!(text, "<p>{}</p>", marked(words)),
                Block::Code(words) => writeln!(text, "<pre>{}</pre>", escape(words)),
                Block::Bad(words) => writeln!(text, "<p class=\"bad\">{}</p>", escape(words)),
                Block::Table(table) => write_table(text, table, "numbers"),
                Block::Words(table) => write_table(text, table, "words"),
                Block::Folded { words, table } => {
                    let _ok = writeln!(text, "<details><summary>{}</summary>", escape(words));
                    let _ok = write_table(text, table, "numbers");
                    writeln!(text, "</details>")
                }
                Block::Drawing { svg, .. } => writeln!(text, "{svg}"),
            };
        }
    }

    /// Writes it as Markdown that shows the files of its drawings.
    pub fn markdown(&self) -> String {
        let mut text = format!("# {}\n\n", self.title);
        for block in &self.blocks {
            let _ok = match block {
                Block::Heading(words) => writeln!(text, "## {words}\n"),
                Block::Text(words) | Block::Prose(words) => writeln!(text, "{words}\n"),
                Block::Code(words) => writeln!(text, "    {}\n", words.replace('\n', "\n    ")),
                Block::Bad(words) => writeln!(text, "**{words}**\n"),
                Block::Table(table) | Block::Words(table) => {
                    writeln!(text, "{}", table.markdown())
                }
                Block::Folded { words, table } => writeln!(text, "{words}\n\n{}", table.markdown()),
                Block::Drawing { name, .. } => writeln!(text, "![{name}]({name}.svg)\n"),
            };
        }
        text
    }
}

/// A part of a report.
#[derive(Debug, Clone)]
pub struct Section {
    /// To which links lead.
    pub name: String,
    /// What several of them belong to.
    pub group: String,
    /// What stands below its title.
    pub below: String,
    /// What it has.
    pub page: Page,
}

/// Puts pages one after the other, with words and a list of them in front.
pub fn report(title: &str, words: &str, sections: &[Section]) -> String {
    let mut text = head(title);
    let _ok = writeln!(text, "<p>{}</p>\n<nav>", marked(words));
    for group in sections.chunk_by(|one, other| one.group == other.group) {
        let _ok = writeln!(text, "<h2>{}</h2>\n<ul>", escape(&group[0].group));
        for Section { name, page, .. } in group {
            let (name, title) = (escape(name), escape(&page.title));
            let _ok = writeln!(text, "<li><a href=\"#{name}\">{title}</a></li>");
        }
        text.push_str("</ul>\n");
    }
    text.push_str("</nav>\n");
    for Section { name, below, page, .. } in sections {
        let (name, title, below) = (escape(name), escape(&page.title), marked(below));
        let _ok = writeln!(text, "<h2 id=\"{name}\">{title}</h2>\n<p class=\"below\">{below}</p>");
        page.body(&mut text, "h3");
    }
    text + "</html>\n"
}

/// Writes words with their marks of Markdown as HTML; of links the words stay.
fn marked(words: &str) -> String {
    let mut plain = String::new();
    let mut rest = words;
    while let Some((before, link)) = rest.split_once('[') {
        plain.push_str(before);
        match link
            .split_once("](")
            .and_then(|(shown, after)| Some((shown, after.split_once(')')?.1)))
        {
            Some((shown, after)) => {
                plain.push_str(shown);
                rest = after;
            }
            None => {
                plain.push('[');
                rest = link;
            }
        }
    }
    plain.push_str(rest);
    let paired = |text: &str, mark: &str, tag: &str| {
        let parts: Vec<&str> = text.split(mark).collect();
        // A mark that stands alone means itself.
        if parts.len().is_multiple_of(2) {
            return text.to_owned();
        }
        let part = |(number, part): (usize, &&str)| {
            if number % 2 == 1 { format!("<{tag}>{part}</{tag}>") } else { (*part).to_owned() }
        };
        parts.iter().enumerate().map(part).collect()
    };
    paired(&paired(&escape(&plain), "**", "strong"), "`", "code")
}

fn head(title: &str) -> String {
    let title = escape(title);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n<h1>{title}</h1>\n"
    )
}

fn write_table(text: &mut String, table: &Table, class: &str) -> std::fmt::Result {
    write!(text, "<div class=\"wide\"><table class=\"{class}\"><tr>")?;
    for heading in &table.headings {
        write!(text, "<th>{}</th>", escape(heading))?;
    }
    text.push_str("</tr>\n");
    for row in &table.rows {
        text.push_str("<tr>");
        for cell in row {
            // As Markdown says that something is to be seen first.
            let strong = cell.strip_prefix("**").and_then(|rest| rest.strip_suffix("**"));
            match strong {
                Some(words) => write!(text, "<td><strong>{}</strong></td>", escape(words))?,
                None => write!(text, "<td>{}</td>", escape(cell))?,
            }
        }
        text.push_str("</tr>\n");
    }
    text.push_str("</table></div>\n");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(words: &str) -> Page {
        let row = vec![words.to_owned(), format!("**{words}**")];
        let page = Page::new(words).heading(words).text(words).bad(words);
        let page = page.words(&[words, words], vec![row.clone()]);
        let page = page.table(&[words, words], vec![row.clone()]);
        page.folded(words, &[words, words], vec![row]).drawing("figure", "<svg></svg>")
    }

    #[test]
    fn words_are_never_taken_for_marks() {
        let page = page("<script>&\"");
        let page =
            page.prose("<script>&\"**<script>** `<script>` [<script>](<script>)").code("<script>");
        let name = || "<script>".to_owned();
        let section = Section { name: name(), group: name(), below: name(), page: page.clone() };
        let report = report("<script>", "<script>", &[section]);
        for html in [page.html(), report] {
            assert!(!html.contains("<script"), "{html}");
            assert!(html.contains("<strong>&lt;script&gt;&amp;") && html.contains("<svg></svg>"));
        }
    }

    #[test]
    fn marks_of_markdown_are_shown_as_what_they_mean() {
        assert_eq!(marked("**a** `b` [c](d) e"), "<strong>a</strong> <code>b</code> c e");
        assert_eq!(marked("2 ** 3, [0, 1] and `"), "2 ** 3, [0, 1] and `");
    }

    #[test]
    fn a_page_is_kept_and_is_the_same_again() {
        let page = page("words");
        let kept = serde_json::to_string(&page).unwrap();
        assert_eq!(serde_json::from_str::<Page>(&kept).unwrap(), page);
        assert_eq!(
            page.markdown(),
            "# words\n\n## words\n\nwords\n\n**words**\n\n| words | words |\n|---|---|\n| words | **words** |\n\n\
             | words | words |\n|---|---|\n| words | **words** |\n\nwords\n\n\
             | words | words |\n|---|---|\n| words | **words** |\n\n![figure](figure.svg)\n\n"
        );
    }
}
