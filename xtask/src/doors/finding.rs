//! What a tool tried at a door and what came of it, and what is known and explained of that.

use crate::failure::Result;

/// What came of something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// As it should be.
    Passed,
    /// As it should be, and the tool has something to say.
    Warned,
    /// Left out by the tool, because of something else.
    Skipped,
    /// Not as the tool wants it.
    Failed,
    /// Left out by us: this machine has no place for it.
    NotRun,
}

impl Outcome {
    /// The word that tables have for it.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Warned => "warned",
            Self::Skipped => "skipped",
            Self::Failed => "failed",
            Self::NotRun => "not run",
        }
    }

    /// Whether it needs no explanation. What was not run brings its own.
    pub(super) fn is_good(self) -> bool {
        matches!(self, Self::Passed | Self::NotRun)
    }
}

/// One thing that a tool tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finding {
    /// The tool's name.
    pub(super) tool: &'static str,
    /// Where it knocked.
    pub(super) door: &'static str,
    /// The suite, or what stands for one.
    pub(super) part: String,
    /// The test, step or operation.
    pub(super) what: String,
    pub(super) outcome: Outcome,
    /// What the tool says of it, on one line.
    pub(super) says: String,
    /// How often.
    pub(super) times: u64,
}

/// Something that a tool finds fault with and that stays so.
#[derive(Debug)]
pub(super) struct Exception {
    pub(super) tool: &'static str,
    /// The part; any, where this is empty.
    pub(super) part: &'static str,
    /// The tests, steps or operations; any, where there are none.
    pub(super) whats: &'static [&'static str],
    /// Pieces that all stand in what the tool says.
    pub(super) says: &'static [&'static str],
    /// Why it may be so.
    pub(super) why: &'static str,
}

impl Exception {
    /// Whether it explains this.
    pub(super) fn covers(&self, finding: &Finding) -> bool {
        !finding.outcome.is_good()
            && self.tool == finding.tool
            && (self.part.is_empty() || self.part == finding.part)
            && (self.whats.is_empty() || self.whats.contains(&finding.what.as_str()))
            && self.says.iter().all(|piece| finding.says.contains(piece))
    }
}

/// The steps of a tool that has no suite of its own: each is a finding.
#[derive(Debug)]
pub(super) struct Steps {
    tool: &'static str,
    door: &'static str,
    part: &'static str,
    findings: Vec<Finding>,
}

impl Steps {
    /// Begins a row of steps at a door.
    pub(super) fn new(tool: &'static str, door: &'static str, part: &'static str) -> Self {
        Self { tool, door, part, findings: Vec::new() }
    }

    /// Does one step; the next ones are done whatever comes of it.
    pub(super) fn step(&mut self, what: &str, work: impl FnOnce() -> Result<()>) {
        match work() {
            Ok(()) => self.note(what, Outcome::Passed, ""),
            Err(failure) => self.note(what, Outcome::Failed, &failure.to_string()),
        }
    }

    /// Notes what came of a step.
    pub(super) fn note(&mut self, what: &str, outcome: Outcome, says: &str) {
        self.findings.push(Finding {
            tool: self.tool,
            door: self.door,
            part: self.part.to_owned(),
            what: what.to_owned(),
            outcome,
            says: one_line(says),
            times: 1,
        });
    }

    /// What came of all of them.
    pub(super) fn into_findings(self) -> Vec<Finding> {
        self.findings
    }
}

/// The longest text of a tool that a table shows, in characters.
const TEXT_LENGTH_MAX: usize = 300;

/// Puts a text on one line, and shortens it.
pub(super) fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(TEXT_LENGTH_MAX) {
        None => line,
        Some((end, _)) => format!("{}...", &line[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::fail;

    const KNOWN: Exception = Exception {
        tool: "litmus",
        part: "props",
        whats: &["propset"],
        says: &["403", "Forbidden"],
        why: "no place for it",
    };

    fn finding(part: &str, what: &str, outcome: Outcome, says: &str) -> Finding {
        Finding {
            tool: "litmus",
            door: "server",
            part: part.to_owned(),
            what: what.to_owned(),
            outcome,
            says: says.to_owned(),
            times: 1,
        }
    }

    #[test]
    fn an_exception_covers_what_it_names_and_nothing_else() {
        assert!(KNOWN.covers(&finding("props", "propset", Outcome::Failed, "403 Forbidden")));
        for other in [
            finding("locks", "propset", Outcome::Failed, "403 Forbidden"),
            finding("props", "propget", Outcome::Failed, "403 Forbidden"),
            finding("props", "propset", Outcome::Failed, "500 Internal"),
            finding("props", "propset", Outcome::Failed, "403 Locked"),
            finding("props", "propset", Outcome::Passed, "403 Forbidden"),
            Finding {
                tool: "cadaver",
                ..finding("props", "propset", Outcome::Failed, "403 Forbidden")
            },
        ] {
            assert!(!KNOWN.covers(&other), "{other:?}");
        }
    }

    #[test]
    fn a_step_that_fails_does_not_keep_the_next_from_being_done() {
        let mut steps = Steps::new("rclone", "server", "sync");
        steps.step("first", || fail("a\n  b"));
        steps.step("second", || Ok(()));
        let findings = steps.into_findings();
        let seen: Vec<_> =
            findings.iter().map(|one| (&*one.what, one.outcome, &*one.says)).collect();
        assert_eq!(seen, [("first", Outcome::Failed, "a b"), ("second", Outcome::Passed, "")]);
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let line = one_line(&"ä".repeat(TEXT_LENGTH_MAX + 1));
        assert_eq!(line, "ä".repeat(TEXT_LENGTH_MAX) + "...");
        assert_eq!(one_line("short"), "short");
    }
}
