//! cadaver: a client of WebDAV for people who type, driven here by scripts.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::Stdio;

use super::bounded;
use super::finding::{Finding, Steps};
use super::stage::{Door, Stage};
use crate::failure::{Context, Result, fail};
use crate::process::write_secret;

/// The tool.
pub(super) const NAME: &str = "cadaver";

/// How long one script may take, in seconds.
const SECONDS_MAX: u32 = 60;

/// What is sent.
const TEXT: &str = "what cadaver has put\n";

/// Commands, and what cadaver must say to them. Each step is a session of its own.
const STEPS: [(&str, &[&str], &[&str]); 9] = [
    ("mkcol", &["mkcol cadaver"], &["Creating `cadaver': succeeded"]),
    ("put", &["cd cadaver", "put here.txt"], &["Uploading here.txt", "succeeded"]),
    ("ls (PROPFIND)", &["ls cadaver"], &["here.txt", "21"]),
    (
        "lock, discover, unlock",
        &["cd cadaver", "lock here.txt", "discover here.txt", "unlock here.txt"],
        &[
            "Locking `here.txt': succeeded",
            "Lock token <urn:uuid:",
            "Unlocking `here.txt': succeeded",
        ],
    ),
    (
        "copy",
        &["cd cadaver", "copy here.txt copied.txt", "ls"],
        &["Copying `/", "succeeded", "copied.txt"],
    ),
    (
        "move",
        &["cd cadaver", "move copied.txt moved.txt", "ls"],
        &["Moving `/", "succeeded", "moved.txt"],
    ),
    ("propnames", &["propnames cadaver/moved.txt"], &["DAV: getlastmodified", "succeeded"]),
    ("cat", &["cat cadaver/moved.txt"], &["what cadaver has put"]),
    ("get", &["get cadaver/moved.txt there.txt"], &["Downloading `", "succeeded"]),
];

/// Words by which it tells of a failure.
const FAILURES: [&str; 2] = ["failed", "Could not"];

/// Runs all scripts at each door of WebDAV.
pub(super) fn run(stage: &Stage) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for door in &stage.doors {
        findings.extend(run_at(stage, door)?);
    }
    Ok(findings)
}

fn run_at(stage: &Stage, door: &Door) -> Result<Vec<Finding>> {
    let cadaver = Cadaver::of(stage.room(NAME, door.name)?, door)?;
    fs::write(cadaver.room.join("here.txt"), TEXT)?;
    let mut steps = Steps::new(NAME, door.name, "script");
    let mut log = String::new();
    let mut session = |commands: &[&str]| -> Result<String> {
        let said = cadaver.run(commands)?;
        log.push_str(&said);
        Ok(said)
    };
    for (what, commands, wanted) in STEPS {
        steps.step(what, || judge(&session(commands)?, wanted));
    }
    steps.step("what get has brought is what put has sent", || {
        let path = cadaver.room.join("there.txt");
        let text = fs::read_to_string(&path).context(path.display())?;
        if text == TEXT { Ok(()) } else { fail(format!("it is: {text}")) }
    });
    steps.step("delete", || {
        let said = session(&["cd cadaver", "delete moved.txt", "ls"])?;
        judge(&said, &["Deleting `moved.txt': succeeded"])?;
        let listed = said.rsplit("Deleting").next().unwrap_or_default();
        if listed.contains("here.txt") { Ok(()) } else { fail(format!("too much is gone: {said}")) }
    });
    steps.step("rmcol", || {
        judge(&session(&["rmcol cadaver"])?, &["Deleting collection `cadaver': succeeded"])
    });
    fs::write(stage.out.join(format!("cadaver-{}.log", door.name)), log)?;
    Ok(steps.into_findings())
}

/// Looks whether all is said that should be, and nothing of a failure.
fn judge(said: &str, wanted: &[&str]) -> Result<()> {
    if let Some(line) = said.lines().find(|line| FAILURES.iter().any(|word| line.contains(word))) {
        return fail(line);
    }
    match wanted.iter().find(|wanted| !said.contains(**wanted)) {
        None => Ok(()),
        Some(wanted) => fail(format!("it does not say '{wanted}', but: {said}")),
    }
}

struct Cadaver {
    room: PathBuf,
    url: String,
}

impl Cadaver {
    fn of(room: PathBuf, door: &Door) -> Result<Self> {
        let (user, token) = (&door.user, &door.token);
        write_secret(&room.join(".netrc"), &format!("default login {user} password {token}\n"))?;
        Ok(Self { room, url: door.url.clone() })
    }

    /// Types commands and returns what cadaver prints, on both streams.
    fn run(&self, commands: &[&str]) -> Result<String> {
        let mut command = bounded(SECONDS_MAX, NAME);
        command.arg(&self.url).current_dir(&self.room).env("HOME", &self.room);
        command.env("PAGER", "cat").stdin(Stdio::piped());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().context(NAME)?;
        if let Some(mut typed) = child.stdin.take() {
            let text = commands.join("\n") + "\nquit\n";
            typed.write_all(text.as_bytes()).context("what cadaver is told")?;
        }
        let output = child.wait_with_output()?;
        let said = [output.stdout, output.stderr].concat();
        Ok(String::from_utf8_lossy(&said).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_said_or_has_failed_is_found() {
        let said = "dav:/> mkcol a\nCreating `a': succeeded.\n";
        assert_eq!(judge(said, &["Creating `a': succeeded"]), Ok(()));
        let missing = judge(said, &["Uploading"]).unwrap_err().to_string();
        assert!(missing.contains("'Uploading'"), "{missing}");
        let failed = "Creating `a': failed:\n405 Method Not Allowed\n";
        assert!(judge(&(said.to_owned() + failed), &["succeeded"]).is_err());
    }
}
