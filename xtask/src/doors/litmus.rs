//! litmus: the test suites of WebDAV, by the author of the library that cadaver and davfs2 rest on.

use std::fs;

use super::finding::{Finding, Outcome, one_line};
use super::stage::{Door, Stage};
use super::{bounded, said_by};
use crate::failure::{Failure, Result, fail};

/// The tool.
pub(super) const NAME: &str = "litmus";

/// All suites that it has.
const SUITES: [&str; 5] = ["basic", "copymove", "props", "locks", "http"];

/// How long all suites together may take, in seconds.
const SECONDS_MAX: u32 = 300;

/// What stands for a reason where litmus gives none for not running a test.
pub(super) const LEFT_OUT: &str = "left out, since one before it failed";

/// Runs all suites at each door of WebDAV.
pub(super) fn run(stage: &Stage) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for door in &stage.doors {
        findings.extend(run_at(stage, door)?);
    }
    Ok(findings)
}

fn run_at(stage: &Stage, door: &Door) -> Result<Vec<Finding>> {
    // It leaves logs where it stands.
    let room = stage.room(NAME, door.name)?;
    let mut command = bounded(SECONDS_MAX, "litmus");
    command.args(["--keep-going", &door.url, &door.user, &door.password]);
    command.env("TESTS", SUITES.join(" ")).current_dir(&room);
    // How it ends says no more than its summaries.
    let (_, said) = said_by(&mut command)?;
    fs::write(stage.out.join(format!("litmus-{}.log", door.name)), &said)?;
    read(&said, door.name)
}

/// Reads what it printed. Each suite must have ended with its own summary, and that must count what was read here.
fn read(said: &str, door: &'static str) -> Result<Vec<Finding>> {
    let mut findings: Vec<Finding> = Vec::new();
    let mut ended = Vec::new();
    let (mut suite, mut begun): (String, Option<Finding>) = (String::new(), None);
    for line in plain(said).lines() {
        if let Some(name) = quoted(line, "-> running `") {
            name.clone_into(&mut suite);
        } else if let Some(name) = quoted(line, "<- summary for `") {
            let passed = number_before(line, " passed");
            let failed = number_before(line, " failed");
            let (Some(passed), Some(failed)) = (passed, failed) else {
                return fail(format!("litmus sums up so: {line}"));
            };
            compare(&findings, name, (passed, failed))?;
            ended.push(name.to_owned());
        } else if let Some((name, rest)) = test_of(line) {
            let test = Finding {
                tool: NAME,
                door,
                part: suite.clone(),
                what: name.to_owned(),
                outcome: Outcome::Passed,
                says: String::new(),
                times: 1,
            };
            begun = take(test, rest, &mut findings);
        } else if let Some(test) = begun.take() {
            begun = take(test, line.trim_start_matches([' ', '.']), &mut findings);
        }
    }
    match SUITES.iter().find(|name| ended.iter().all(|ended| ended != *name)) {
        None => Ok(findings),
        Some(name) => fail(format!("the suite '{name}' of litmus did not come to its end")),
    }
}

/// Reads what stands behind the name of a test; gives it back where its outcome is on a later line.
fn take(mut test: Finding, rest: &str, findings: &mut Vec<Finding>) -> Option<Finding> {
    let rest = rest.trim();
    let (outcome, says) = if let Some(says) = rest.strip_prefix("WARNING:") {
        test.says = one_line(&format!("{} {says}", test.says));
        test.outcome = Outcome::Warned;
        return Some(test);
    } else if let Some(says) = rest.strip_prefix("FAIL") {
        (Outcome::Failed, says)
    } else if let Some(says) = rest.strip_prefix("SKIPPED") {
        (Outcome::Skipped, if says.trim().is_empty() { LEFT_OUT } else { says })
    } else if rest.starts_with("pass") {
        (test.outcome, "")
    } else {
        return Some(test);
    };
    let says = says.trim().trim_start_matches('(').trim_end_matches(')');
    let says = one_line(&format!("{} {says}", test.says));
    findings.push(Finding { outcome, says, ..test });
    None
}

/// Compares what was read of a suite with its own summary.
fn compare(findings: &[Finding], suite: &str, summary: (u64, u64)) -> Result<()> {
    let count = |is_meant: fn(Outcome) -> bool| {
        findings.iter().filter(|one| one.part == suite && is_meant(one.outcome)).count() as u64
    };
    let passed = count(|outcome| matches!(outcome, Outcome::Passed | Outcome::Warned));
    let read = (passed, count(|outcome| outcome == Outcome::Failed));
    if read == summary {
        return Ok(());
    }
    Err(Failure::new(format!(
        "of the suite '{suite}' of litmus {read:?} tests were read as passed and failed, and it says {summary:?}"
    )))
}

/// Leaves out colours, and takes the jumps to the begin of a line for new ones.
fn plain(said: &str) -> String {
    let mut text = String::new();
    for (index, piece) in said.split('\u{1b}').enumerate() {
        let piece = if index == 0 { piece } else { piece.split_once('m').map_or("", |it| it.1) };
        text.push_str(piece);
    }
    text.replace('\r', "\n")
}

/// What stands between a beginning and a quotation mark.
fn quoted<'a>(line: &'a str, beginning: &str) -> Option<&'a str> {
    line.strip_prefix(beginning)?.split_once('\'').map(|(name, _)| name)
}

fn number_before(line: &str, word: &str) -> Option<u64> {
    let (before, _) = line.split_once(word)?;
    before.rsplit([' ', ',']).next()?.parse().ok()
}

/// Reads ` 3. put_get.............. pass` as name and rest.
fn test_of(line: &str) -> Option<(&str, &str)> {
    let (number, rest) = line.trim_start().split_once(". ")?;
    number.parse::<u32>().ok()?;
    let (name, rest) = rest.split_at(rest.find(['.', ' '])?);
    Some((name, rest.trim_start_matches('.')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suites(basic: &str) -> String {
        let rest = SUITES[1..].iter().map(|name| {
            format!(
                "-> running `{name}':\n 0. init.................. pass\n\
                 <- summary for `{name}': of 1 tests run: 1 passed, 0 failed. 100.0%\n"
            )
        });
        basic.to_owned() + &rest.collect::<String>()
    }

    const BASIC: &str = "\
-> running `basic':
\r 0. init.................. \r 0. init.................. pass
\r 1. delete_fragment....... WARNING: DELETE removed collection; unsafe
    ...................... \u{1b}[32mpass\u{1b}[0m (with 1 warning)
    ...................... \r 2. put_get_utf8_segment.. \r 2. put_get_utf8_segment.. FAIL (PUT of `/x' failed: 500
)
\r 3. cond_put_corrupt_token \r 3. cond_put_corrupt_token pass
\r 4. propget............... \r 4. propget............... SKIPPED
<- summary for `basic': of 4 tests run: 3 passed, 1 failed. 75.0%
-> 1 test was skipped.
";

    #[test]
    fn tests_are_read_with_what_is_said_of_them() {
        let findings = read(&suites(BASIC), "server").unwrap();
        let basic = findings.iter().filter(|one| one.part == "basic");
        let seen: Vec<_> = basic.map(|one| (&*one.what, one.outcome, &*one.says)).collect();
        assert_eq!(
            seen,
            [
                ("init", Outcome::Passed, ""),
                ("delete_fragment", Outcome::Warned, "DELETE removed collection; unsafe"),
                ("put_get_utf8_segment", Outcome::Failed, "PUT of `/x' failed: 500"),
                ("cond_put_corrupt_token", Outcome::Passed, ""),
                ("propget", Outcome::Skipped, LEFT_OUT),
            ]
        );
        assert_eq!(findings.len(), 9);
    }

    #[test]
    fn a_suite_that_stops_or_counts_otherwise_is_an_error() {
        let stopped = BASIC.split("<-").next().unwrap();
        let failure = read(&suites(stopped), "server").unwrap_err().to_string();
        assert!(failure.contains("'basic'"), "{failure}");
        let other = BASIC.replace("3 passed, 1 failed", "4 passed, 0 failed");
        let failure = read(&suites(&other), "server").unwrap_err().to_string();
        assert!(failure.contains("(3, 1)"), "{failure}");
    }
}
