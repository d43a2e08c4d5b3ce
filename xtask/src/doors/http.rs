//! Requests of our own, by the program `curl`: to put the stage up, and to look whether it still stands.

use std::process::Command;

use serde_json::Value;

use super::bounded;
use crate::failure::{Context, Result, fail};
use crate::process;

/// How long one request may take, in seconds.
const SECONDS_MAX: u32 = 30;

/// Marks where the body ends and the status begins.
const STATUS: &str = "\nstatus ";

/// Who asks, and where.
#[derive(Debug, Clone)]
pub(super) struct Client {
    /// The address before all paths.
    pub(super) base: String,
    /// What stands behind `--header authorization:`; nothing for a stranger.
    pub(super) token: Option<String>,
}

impl Client {
    /// Sends a request and returns the body of its answer, which must be a success.
    pub(super) fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value> {
        let mut command = self.command(method, path);
        if let Some(body) = body {
            command.args(["--header", "content-type: application/json"]);
            command.args(["--data-binary", &body.to_string()]);
        }
        finish(&mut command, &format!("{method} {path}"))
    }

    /// Puts a file.
    pub(super) fn put(&self, path: &str, text: &str) -> Result<Value> {
        let mut command = self.command("PUT", path);
        finish(command.args(["--data-binary", text]), &format!("PUT {path}"))
    }

    fn command(&self, method: &str, path: &str) -> Command {
        let mut command = bounded(SECONDS_MAX, "curl");
        command.args(["--silent", "--show-error", "--request", method]);
        command.args(["--write-out", &format!("{STATUS}%{{http_code}}")]);
        if let Some(token) = &self.token {
            command.args(["--header", &format!("authorization: Bearer {token}")]);
        }
        command.arg(format!("{}{path}", self.base));
        command
    }
}

fn finish(command: &mut Command, what: &str) -> Result<Value> {
    let said = process::output(command).context(what)?;
    let Some((body, status)) = said.rsplit_once(STATUS) else {
        return fail(format!("{what}: no status"));
    };
    if !status.starts_with('2') {
        return fail(format!("{what}: {status}: {}", body.trim()));
    }
    if body.is_empty() { Ok(Value::Null) } else { serde_json::from_str(body).context(what) }
}
