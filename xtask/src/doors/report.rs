//! What the tools found, as a table for people and as one for programs.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use super::finding::{Exception, Finding, Outcome};
use crate::failure::{Context, Result};

/// All that was found, and what is known of it.
pub(super) struct Report<'a> {
    /// When, and of which program, in a sentence.
    pub(super) head: String,
    /// Tools and their versions.
    pub(super) versions: Vec<(&'static str, String)>,
    pub(super) findings: Vec<Finding>,
    pub(super) known: Vec<&'a Exception>,
    /// What was not asked of a tool, with the reason.
    pub(super) left_out: Vec<(&'static str, &'static str)>,
}

impl Report<'_> {
    /// What nobody has explained.
    pub(super) fn surprises(&self) -> Vec<&Finding> {
        let is_surprise = |one: &&Finding| !one.outcome.is_good() && self.reason(one).is_none();
        self.findings.iter().filter(is_surprise).collect()
    }

    fn reason(&self, finding: &Finding) -> Option<&'static str> {
        self.known.iter().find(|known| known.covers(finding)).map(|known| known.why)
    }

    /// Writes both tables into a folder.
    pub(super) fn write(&self, out: &Path) -> Result<()> {
        for (name, text) in [("doors.md", self.markdown()), ("doors.csv", self.csv())] {
            let path = out.join(name);
            fs::write(&path, text).context(path.display())?;
        }
        Ok(())
    }

    /// The table for people.
    pub(super) fn markdown(&self) -> String {
        // Writing to a String cannot fail.
        let mut text = format!("# What other programs found at the doors\n\n{}\n\n", self.head);
        for (tool, version) in &self.versions {
            let _ok = writeln!(text, "* {tool}: {version}");
        }
        text += "\n| program | door | part | passed | explained | not explained | not run |\n";
        text += "|---|---|---|---|---|---|---|\n";
        for (tool, door, part) in self.parts() {
            let of_part =
                |one: &&Finding| (one.tool, one.door, one.part.as_str()) == (tool, door, part);
            let counts = self.findings.iter().filter(of_part).fold([0; 4], |mut counts, one| {
                let column = match (one.outcome, self.reason(one)) {
                    (Outcome::Passed, _) => 0,
                    (Outcome::NotRun, _) => 3,
                    (_, Some(_)) => 1,
                    (_, None) => 2,
                };
                counts[column] += one.times;
                counts
            });
            let [passed, explained, surprises, not_run] = counts;
            let _ok = writeln!(
                text,
                "| {tool} | {door} | {part} | {passed} | {explained} | {surprises} | {not_run} |"
            );
        }
        self.write_faults(&mut text);
        if !self.left_out.is_empty() {
            text += "\nNot asked:\n\n";
            for (what, why) in &self.left_out {
                let _ok = writeln!(text, "* `{what}`: {why}");
            }
        }
        let idle: Vec<_> = self.known.iter().filter(|known| !self.is_seen(known)).collect();
        if !idle.is_empty() {
            text += "\nExplained and not seen this time:\n\n";
            for known in idle {
                let of = [&[known.tool, known.part], known.whats, known.says].concat().join(" ");
                let _ok = writeln!(text, "* {of}: {}", known.why);
            }
        }
        text
    }

    fn is_seen(&self, known: &Exception) -> bool {
        self.findings.iter().any(|one| known.covers(one))
    }

    fn write_faults(&self, text: &mut String) {
        if self.findings.iter().all(|one| one.outcome == Outcome::Passed) {
            return;
        }
        *text +=
            "\n| program | door | part | what | outcome | times | it says | why it may be so |\n";
        *text += "|---|---|---|---|---|---|---|---|\n";
        for one in self.findings.iter().filter(|one| one.outcome != Outcome::Passed) {
            let why = match (one.outcome, self.reason(one)) {
                (Outcome::NotRun, _) => "",
                (_, Some(why)) => why,
                (_, None) => "**not explained**",
            };
            let _ok = writeln!(
                text,
                "| {} | {} | {} | {} | {} | {} | {} | {why} |",
                one.tool,
                one.door,
                one.part,
                cell(&one.what),
                one.outcome.word(),
                one.times,
                cell(&one.says),
            );
        }
    }

    /// Tools, doors and parts in the order in which they came.
    fn parts(&self) -> Vec<(&'static str, &'static str, &str)> {
        let mut parts = Vec::new();
        for one in &self.findings {
            let part = (one.tool, one.door, one.part.as_str());
            if !parts.contains(&part) {
                parts.push(part);
            }
        }
        parts
    }

    /// A line for each finding.
    pub(super) fn csv(&self) -> String {
        let mut text = String::from("program,version,door,part,what,outcome,times,says,why\n");
        for one in &self.findings {
            let version = self.versions.iter().find(|(tool, _)| *tool == one.tool);
            let version = version.map_or("", |(_, version)| version);
            let times = one.times.to_string();
            let fields = [
                one.tool,
                version,
                one.door,
                &one.part,
                &one.what,
                one.outcome.word(),
                &times,
                &one.says,
                self.reason(one).unwrap_or_default(),
            ];
            text += &fields.map(field).join(",");
            text.push('\n');
        }
        text
    }
}

/// A text in a cell of Markdown.
fn cell(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('|', "\\|");
    escaped.replace('<', "&lt;").replace('`', "'")
}

/// A text in a field of CSV (RFC 4180).
fn field(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: Exception =
        Exception { tool: "litmus", part: "props", whats: &[], says: &["403"], why: "no place" };
    const IDLE: Exception = Exception {
        tool: "litmus",
        part: "locks",
        whats: &["owner"],
        says: &["held", "long"],
        why: "long ago",
    };

    fn finding(part: &str, outcome: Outcome, says: &str, times: u64) -> Finding {
        Finding {
            tool: "litmus",
            door: "server",
            part: part.to_owned(),
            what: "a|b".to_owned(),
            outcome,
            says: says.to_owned(),
            times,
        }
    }

    fn report(findings: Vec<Finding>) -> Report<'static> {
        Report {
            head: "Today.".to_owned(),
            versions: vec![("litmus", "0.13".to_owned())],
            findings,
            known: vec![&KNOWN, &IDLE],
            left_out: vec![("logout", "signs out")],
        }
    }

    #[test]
    fn what_is_not_explained_is_a_surprise() {
        let findings = vec![
            finding("props", Outcome::Passed, "", 5),
            finding("props", Outcome::Failed, "403 Forbidden", 2),
            finding("props", Outcome::Failed, "500", 1),
            finding("props", Outcome::NotRun, "no fuse", 1),
        ];
        let report = report(findings);
        let surprises = report.surprises();
        assert_eq!(surprises.iter().map(|one| &*one.says).collect::<Vec<_>>(), ["500"]);
        let text = report.markdown();
        assert!(text.contains("| litmus | server | props | 5 | 2 | 1 | 1 |"), "{text}");
        assert!(text.contains("| a\\|b | failed | 2 | 403 Forbidden | no place |"), "{text}");
        assert!(text.contains("| 500 | **not explained** |"), "{text}");
        assert!(text.contains("* litmus locks owner held long: long ago"), "{text}");
        assert!(text.contains("* `logout`: signs out"), "{text}");
    }

    #[test]
    fn csv_has_a_line_for_each_finding_and_quotes_what_must_be() {
        let report = report(vec![finding("props", Outcome::Failed, "403, \"no\"", 2)]);
        let expected = "litmus,0.13,server,props,a|b,failed,2,\"403, \"\"no\"\"\",no place";
        assert_eq!(report.csv().lines().nth(1), Some(expected));
    }
}
