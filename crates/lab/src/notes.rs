//! What stands in the folder of an experiment, as a page: a small part of Markdown, that which these notes use.

use crate::page::Page;

/// The paragraph with which the results begin that lie in the folder, and not on the computer of whoever reads.
const RESULTS: &str = "**What came of it.**";

/// Puts notes on a page; `drawing` returns a drawing by its path. Without `with_results` they end where results begin.
pub(crate) fn add(
    mut page: Page,
    notes: &str,
    with_results: bool,
    drawing: impl Fn(&str) -> Option<&'static str>,
) -> Page {
    for block in notes.split("\n\n").map(str::trim_end).filter(|block| !block.trim().is_empty()) {
        if block.starts_with(RESULTS) && !with_results {
            break;
        }
        page = match block {
            title if title.starts_with("# ") => page,
            part if part.starts_with("## ") => page.heading(part.trim_start_matches("## ")),
            code if code.starts_with("    ") => page.code(unindented(code)),
            table if table.starts_with('|') => add_table(page, table),
            image if image.starts_with("![") => match target(image).and_then(&drawing) {
                Some(svg) => page.drawing("", svg),
                None => page,
            },
            paragraph => page.prose(paragraph.replace('\n', " ")),
        };
    }
    page
}

/// Returns the title of notes.
pub(crate) fn title(notes: &str) -> &str {
    notes.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or_default()
}

/// Returns where images of notes are.
pub(crate) fn images(notes: &str) -> impl Iterator<Item = &str> {
    notes.split("\n\n").filter(|block| block.trim_start().starts_with("![")).filter_map(target)
}

fn target(image: &str) -> Option<&str> {
    image.split_once("](")?.1.split(')').next()
}

fn unindented(code: &str) -> String {
    let lines: Vec<&str> =
        code.lines().map(|line| line.strip_prefix("    ").unwrap_or(line)).collect();
    lines.join("\n")
}

fn add_table(page: Page, table: &str) -> Page {
    let cells = |line: &str| -> Vec<String> {
        let inner = line.trim().trim_start_matches('|').trim_end_matches('|');
        inner.split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    let mut rows = table.lines().map(cells);
    let headings = rows.next().unwrap_or_default();
    let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
    // Below the headings stands a rule.
    page.words(&headings, rows.skip(1).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTES: &str = "# A figure\n\n    lab run it\n\n**What the paper says.** Less is `more`,\nsee [this](that.md).\n\n\
        **What came of it.** It is.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n![A drawing](figure.svg)\n";

    fn html(with_results: bool) -> String {
        let page = add(Page::new("notes"), NOTES, with_results, |path| {
            (path == "figure.svg").then_some("<svg></svg>")
        });
        page.html()
    }

    #[test]
    fn notes_become_a_page_with_their_tables_and_drawings() {
        let html = html(true);
        assert!(html.contains("<pre>lab run it</pre>"), "{html}");
        let paragraph =
            "<p><strong>What the paper says.</strong> Less is <code>more</code>, see this.</p>";
        assert!(html.contains(paragraph), "{html}");
        assert!(html.contains("<td>1</td><td>2</td>") && html.contains("<svg></svg>"), "{html}");
        assert!(!html.contains("---") && !html.contains("A figure"), "{html}");
        assert_eq!(
            (title(NOTES), images(NOTES).collect::<Vec<_>>()),
            ("A figure", vec!["figure.svg"])
        );
    }

    #[test]
    fn results_of_elsewhere_give_way_to_those_of_here() {
        let html = html(false);
        assert!(html.contains("Less is") && !html.contains("It is.") && !html.contains("<svg"));
    }
}
