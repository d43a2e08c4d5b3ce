//! The report of schemathesis, which has a line of JSON for each event: what was asked, what was answered, and which checks that passed.

use std::collections::BTreeMap;

use serde_json::Value;

use super::super::finding::{Finding, Outcome, one_line};
use super::NAME;
use crate::failure::{Context, Result, fail};

/// All that was asked in one round.
#[derive(Debug, Default)]
pub(super) struct Answers {
    /// How many requests of each operation passed all checks.
    passed: BTreeMap<String, u64>,
    /// By operation and by what is said of it: how often, and one of the requests.
    faults: BTreeMap<(String, String), (u64, String)>,
    /// Successes of operations that want a token.
    let_in: BTreeMap<String, u64>,
}

impl Answers {
    /// Reads a report, which must go to its end.
    pub(super) fn read(text: &str) -> Result<Self> {
        let mut answers = Self::default();
        let mut is_finished = false;
        for line in text.lines() {
            let event: Value = serde_json::from_str(line).context("a line of the report")?;
            for (name, event) in event.as_object().into_iter().flatten() {
                match name.as_str() {
                    "ScenarioFinished" => answers.take(&event["recorder"]),
                    "NonFatalError" => answers.take_error(event),
                    "FatalError" => return fail(format!("it gave up: {}", event["exception"])),
                    "EngineFinished" => is_finished = true,
                    _ => {}
                }
            }
        }
        let has_asked = !answers.passed.is_empty() || !answers.faults.is_empty();
        if is_finished && has_asked {
            Ok(answers)
        } else {
            fail("its report has no end, or nothing in it")
        }
    }

    fn take(&mut self, recorder: &Value) {
        for (id, interaction) in recorder["interactions"].as_object().into_iter().flatten() {
            let case = &recorder["cases"][id]["value"];
            let text = |name: &str| case[name].as_str().unwrap_or_default();
            let operation = format!("{} {}", text("method"), text("path"));
            let status = interaction["response"]["status_code"].as_u64().unwrap_or_default();
            if (200..300).contains(&status) && wants_token(text("path")) {
                *self.let_in.entry(operation.clone()).or_default() += 1;
            }
            let checks = recorder["checks"][id].as_array().into_iter().flatten();
            let failed: Vec<&Value> = checks.filter(|check| check["status"] != "success").collect();
            if failed.is_empty() {
                *self.passed.entry(operation.clone()).or_default() += 1;
            }
            for check in failed {
                let says = describe(check, status, &interaction["response"]["content"]);
                let fault = self.faults.entry((operation.clone(), says)).or_insert_with(|| {
                    let uri = interaction["request"]["uri"].as_str().unwrap_or_default();
                    let path = uri.split_once("/api/v1").map_or(uri, |(_, path)| path);
                    (0, path.to_owned())
                });
                fault.0 += 1;
            }
        }
    }

    fn take_error(&mut self, event: &Value) {
        let operation = event["label"].as_str().unwrap_or("all").to_owned();
        let says = format!("not tried: {}", event["value"]["message"].as_str().unwrap_or_default());
        self.faults.entry((operation, one_line(&says))).or_default().0 += 1;
    }

    /// What came of all operations.
    pub(super) fn findings(&self, door: &'static str, round: &str) -> Vec<Finding> {
        let passed = self.passed.iter().map(|(operation, times)| {
            finding((door, round), operation, (Outcome::Passed, *times), String::new())
        });
        let faults = self.faults.iter().map(|((operation, says), (times, path))| {
            let example =
                if path.is_empty() { String::new() } else { format!("; for example {path}") };
            let says = one_line(&(says.clone() + &example));
            finding((door, round), operation, (Outcome::Failed, *times), says)
        });
        passed.chain(faults).collect()
    }

    /// Operations that have let in whoever showed no token and should have.
    pub(super) fn let_in(&self, door: &'static str, round: &str) -> Vec<Finding> {
        let one = |(operation, times): (&String, &u64)| {
            let says = "a stranger was let in".to_owned();
            finding((door, round), operation, (Outcome::Failed, *times), says)
        };
        self.let_in.iter().map(one).collect()
    }
}

fn finding(
    (door, round): (&'static str, &str),
    operation: &str,
    (outcome, times): (Outcome, u64),
    says: String,
) -> Finding {
    let (part, what) = (round.to_owned(), operation.to_owned());
    Finding { tool: NAME, door, part, what, outcome, says, times }
}

/// Whether an operation is for those only who are signed in.
fn wants_token(path: &str) -> bool {
    path != "/login" && !path.starts_with("/public/")
}

/// Says which check failed, at which status, and what the server said, or the tool where the server did what was asked. Names and values are
/// left out, so that the same fault is one.
fn describe(check: &Value, status: u64, content: &Value) -> String {
    let failure = check["failure_info"]["failure"]["message"].as_str().unwrap_or_default();
    let title = failure.lines().next().unwrap_or_default();
    let bytes = decode_base64(content["$base64"].as_str().unwrap_or_default());
    let answer: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let said = match answer["detail"].as_str().filter(|_| status >= 400) {
        Some(detail) => detail.to_owned(),
        None => one_line(failure.strip_prefix(title).unwrap_or_default()),
    };
    let name = check["name"].as_str().unwrap_or_default();
    format!("{name}, {status}, {title}: {}", without_values(&said))
}

/// Leaves out what stands between quotation marks, from the first to the last of a kind, and numbers.
fn without_values(text: &str) -> String {
    let mut text = text.to_owned();
    for mark in ['\'', '`', '"'] {
        if let (Some(first), Some(last)) = (text.find(mark), text.rfind(mark))
            && first < last
        {
            text.replace_range(first + 1..last, "...");
        }
    }
    let digits = |piece: &str| piece.bytes().all(|byte| byte.is_ascii_digit());
    let words =
        text.split(' ').map(|word| if !word.is_empty() && digits(word) { "N" } else { word });
    words.collect::<Vec<_>>().join(" ")
}

/// Undoes base64; what is none has no bytes.
fn decode_base64(text: &str) -> Vec<u8> {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bytes, mut held, mut bits) = (Vec::new(), 0_u32, 0);
    for letter in text.bytes().filter(|letter| *letter != b'=') {
        let Some(value) = LETTERS.iter().position(|known| *known == letter) else {
            return Vec::new();
        };
        held = held << 6 | value as u32;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((held >> bits) as u8);
            held &= (1 << bits) - 1;
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A report with one request, which failed a check or none.
    fn report(path: &str, status: u16, failure: Option<&str>) -> String {
        let check = match failure {
            None => json!({ "name": "not_a_server_error", "status": "success" }),
            Some(message) => json!({
                "name": "positive_data_acceptance", "status": "failure",
                "failure_info": { "failure": { "type": "RejectedPositiveData", "message": message } },
            }),
        };
        // {"detail":"'a b' is gone after 5 s"}
        let content = "eyJkZXRhaWwiOiInYSBiJyBpcyBnb25lIGFmdGVyIDUgcyJ9";
        let scenario = json!({ "ScenarioFinished": { "recorder": {
            "label": "GET",
            "cases": { "x": { "value": { "method": "GET", "path": path } } },
            "checks": { "x": [check] },
            "interactions": { "x": {
                "request": { "method": "GET", "uri": "http://127.0.0.1:1/api/v1/whoami?a=b" },
                "response": { "status_code": status, "content": { "$base64": content } },
            } },
        } } });
        format!("{scenario}\n{}\n", json!({ "EngineFinished": {} }))
    }

    #[test]
    fn a_fault_is_described_by_its_check_and_the_answer_without_values() {
        let text = report("/whoami", 412, Some("API rejected it\n\nValid data\n\nExpected: 2xx"));
        let findings = Answers::read(&(text.clone() + &text)).unwrap().findings("server", "here");
        let says = "positive_data_acceptance, 412, API rejected it: '...' is gone after N s; for example /whoami?a=b";
        assert_eq!(findings.len(), 1);
        assert_eq!((findings[0].outcome, &*findings[0].says), (Outcome::Failed, says));
        assert_eq!((&*findings[0].what, findings[0].times), ("GET /whoami", 2));
    }

    #[test]
    fn a_success_without_a_token_is_found_where_one_is_wanted() {
        let let_in = |path: &str, status: u16| {
            let answers = Answers::read(&report(path, status, None)).unwrap();
            assert_eq!(answers.findings("server", "here")[0].outcome, Outcome::Passed);
            answers.let_in("server", "here").len()
        };
        assert_eq!(let_in("/whoami", 200), 1);
        assert_eq!(let_in("/whoami", 401), 0);
        assert_eq!(let_in("/public/{secret}", 200), 0);
        assert_eq!(let_in("/login", 200), 0);
    }

    #[test]
    fn a_report_without_an_end_is_an_error() {
        let text = report("/whoami", 200, None);
        assert!(Answers::read(text.lines().next().unwrap()).is_err());
        assert!(Answers::read("{\"EngineFinished\":{}}").is_err());
        let error =
            json!({ "NonFatalError": { "label": "GET /x", "value": { "message": "too\nfew" } } });
        let findings =
            Answers::read(&format!("{error}\n{text}")).unwrap().findings("server", "here");
        let said = findings.iter().find(|one| one.what == "GET /x").map(|one| &*one.says);
        assert_eq!(said, Some("not tried: too few"));
    }

    #[test]
    fn base64_is_read_with_any_end() {
        for (text, bytes) in
            [("", ""), ("Zg==", "f"), ("Zm8=", "fo"), ("Zm9v", "foo"), ("Zm9vYg==", "foob")]
        {
            assert_eq!(decode_base64(text), bytes.as_bytes());
        }
        assert_eq!(decode_base64("!"), b"");
    }
}
