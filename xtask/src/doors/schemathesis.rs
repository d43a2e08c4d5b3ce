//! schemathesis over `docs/openapi.json`: requests made from the document, right ones and wrong ones, and whether the answers are those that
//! it promises.
//!
//! It knocks three times: signed in, with whatever fits the document; signed in, at a workspace, a person and a link that are there;
//! and as a stranger. Each time every check of the tool is made, from a fixed seed, with a bounded number of examples.

mod answers;
mod known;

use std::fs;
use std::path::Path;
use std::process::Command;

use self::answers::Answers;
use super::finding::Finding;
use super::stage::{OTHER_ACCOUNT, PLAIN, SERVER, Stage};
use super::{bounded, said_by};
use crate::failure::{Context, Result, fail};
use crate::process::write_secret;
use crate::{install, repository_root};

pub(super) use self::known::EXCEPTIONS;

/// The tool.
pub(super) const NAME: &str = "schemathesis";

/// The release of PyPI.
pub(super) const RELEASE: &str = "4.32.5";

/// Fixes what is asked.
const SEED: u32 = 1;

/// How many requests are made up for an operation, beside those that cover its parameters one by one.
const EXAMPLES_MAX: u32 = 10;

/// How long one round may take, in seconds.
const SECONDS_MAX: u32 = 1200;

/// What it is not let do: to sign itself out, or to wait for the end of what has none.
pub(super) const LEFT_OUT: [(&str, &str); 4] = [
    ("logout", "signs the tool out"),
    ("revokeDevice", "may sign the tool out, which reads in the list of devices which one it is"),
    ("openLiveConnection", "goes on as a WebSocket"),
    ("listen", "never ends"),
];

/// How it knocks.
struct Round {
    name: &'static str,
    is_signed_in: bool,
    /// Whether it is told what is there.
    is_told: bool,
}

const ROUNDS: [Round; 3] = [
    Round { name: "signed in", is_signed_in: true, is_told: false },
    Round { name: "signed in, at what is there", is_signed_in: true, is_told: true },
    Round { name: "a stranger", is_signed_in: false, is_told: false },
];

/// Runs all rounds.
pub(super) fn run(stage: &Stage) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for round in &ROUNDS {
        let answers = knock(stage, round)?;
        findings.extend(answers.findings(SERVER, round.name));
        if !round.is_signed_in {
            findings.extend(answers.let_in(SERVER, round.name));
        }
        // A tool that was signed out would be refused everywhere, and find nothing wrong with that.
        if let Err(failure) = stage.device.ask("GET", "/whoami", None) {
            return fail(format!(
                "after the round '{}' the device of the tool: {failure}",
                round.name
            ));
        }
    }
    Ok(findings)
}

fn knock(stage: &Stage, round: &Round) -> Result<Answers> {
    let python = install::python_with(NAME, RELEASE, NAME, NAME)?;
    let room = stage.room(NAME, round.name)?;
    let file_name = format!("schemathesis-{}", round.name.replace([' ', ','], "-"));
    let events = stage.out.join(format!("{file_name}.ndjson"));
    let mut command = bounded(SECONDS_MAX, &python);
    command.current_dir(&room);
    command.args(["-m", "schemathesis.cli"]);
    if round.is_told {
        let configuration = room.join("schemathesis.toml");
        write_secret(&configuration, &told(&stage.link))?;
        command.arg("--config-file").arg(configuration);
    }
    command.arg("run").arg(repository_root().join("docs").join("openapi.json"));
    command.args(["--url", &stage.device.base, "--checks", "all", "--continue-on-failure"]);
    command.args(["--seed", &SEED.to_string(), "--max-examples", &EXAMPLES_MAX.to_string()]);
    command.args(["--generation-database", "none", "--no-color", "--output-sanitize", "false"]);
    command.args(["--request-timeout", "10", "--report", "ndjson"]);
    command.arg("--report-ndjson-path").arg(&events);
    for (operation, _) in LEFT_OUT {
        command.args(["--exclude-operation-id", operation]);
    }
    if let Some(token) = stage.device.token.as_ref().filter(|_| round.is_signed_in) {
        command.args(["--header", &format!("Authorization: Bearer {token}")]);
    }
    let end = end_of(&mut command, &stage.out.join(format!("{file_name}.log")))?;
    let text = fs::read_to_string(&events).context(format!("{}: {end}", events.display()))?;
    Answers::read(&text).context(format!("the round '{}'", round.name))
}

/// Runs it, keeps what it says, and gives the end of that. It ends with 1 where it finds fault, which its report says, too.
fn end_of(command: &mut Command, log: &Path) -> Result<String> {
    let (status, said) = said_by(command)?;
    fs::write(log, &said).context(log.display())?;
    let lines: Vec<&str> = said.lines().collect();
    let end = lines[lines.len().saturating_sub(10)..].join("\n");
    match status.code() {
        Some(0 | 1) => Ok(end),
        _ => fail(format!("{NAME}: {status}: {end}")),
    }
}

/// What is there.
fn told(link: &str) -> String {
    format!(
        "[parameters]\n\"path.workspace\" = \"{PLAIN}\"\n\"path.user\" = \"{OTHER_ACCOUNT}\"\n\"path.secret\" = \"{link}\"\n"
    )
}
