//! One page of HTML that stands by itself: texts, tables and drawings, and nothing that is loaded from elsewhere.

use std::fmt::Write;

use crate::plot::escape;

/// How it looks, by light and by night.
const STYLE: &str = "\
:root{color-scheme:light dark;--line:#d0d4da;--soft:#5b6470}\
@media(prefers-color-scheme:dark){:root{--line:#3a4049;--soft:#a4adb8}}\
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}\
h1{font-size:1.6rem}h2{font-size:1.2rem;margin-top:2.5rem}\
.wide{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums}\
th,td{padding:.3rem .8rem;border-bottom:1px solid var(--line);text-align:right;white-space:nowrap}\
th:first-child,td:first-child{text-align:left}th{color:var(--soft);font-weight:600}\
svg{width:100%;height:auto;border:1px solid var(--line);border-radius:6px;margin:.5rem 0}\
.bad{color:#b3261e;font-weight:600}@media(prefers-color-scheme:dark){.bad{color:#ff8a80}}";

/// A page that is being written.
#[derive(Debug)]
pub struct Page(String);

impl Page {
    /// Begins a page.
    pub fn new(title: &str) -> Self {
        let title = escape(title);
        Self(format!(
            "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>{title}</title>\n<style>{STYLE}</style>\n<h1>{title}</h1>\n"
        ))
    }

    /// Begins a part of it.
    #[must_use]
    pub fn heading(mut self, words: &str) -> Self {
        // Writing to a String cannot fail, here as below.
        let _ok = writeln!(self.0, "<h2>{}</h2>", escape(words));
        self
    }

    /// Adds a paragraph.
    #[must_use]
    pub fn text(mut self, words: &str) -> Self {
        let _ok = writeln!(self.0, "<p>{}</p>", escape(words));
        self
    }

    /// Adds a paragraph that nobody is to overlook.
    #[must_use]
    pub fn bad(mut self, words: &str) -> Self {
        let _ok = writeln!(self.0, "<p class=\"bad\">{}</p>", escape(words));
        self
    }

    /// Adds a table; the first column has names, the others numbers.
    #[must_use]
    pub fn table(mut self, headings: &[&str], rows: &[Vec<String>]) -> Self {
        self.0.push_str("<div class=\"wide\"><table><tr>");
        for heading in headings {
            let _ok = write!(self.0, "<th>{}</th>", escape(heading));
        }
        self.0.push_str("</tr>\n");
        for row in rows {
            self.0.push_str("<tr>");
            for cell in row {
                let _ok = write!(self.0, "<td>{}</td>", escape(cell));
            }
            self.0.push_str("</tr>\n");
        }
        self.0.push_str("</table></div>\n");
        self
    }

    /// Adds a drawing of [`crate::plot`].
    #[must_use]
    pub fn drawing(mut self, svg: &str) -> Self {
        self.0.push_str(svg);
        self
    }

    /// Ends the page.
    pub fn finish(self) -> String {
        self.0 + "</html>\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_never_taken_for_marks() {
        let bad = "<script>&\"";
        let row = vec![bad.to_owned()];
        let page = Page::new(bad).heading(bad).text(bad).bad(bad).table(&[bad], &[row]).finish();
        assert!(!page.contains("<script"), "{page}");
        assert_eq!(page.matches("&lt;script&gt;&amp;").count(), 7);
    }
}
