//! A browser that does what it is told: `web/scripts/drive-lab.mjs`, to which orders go as lines of JSON.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::cells::Edit;
use super::row::Row;
use super::{Network, PASSWORD};

/// What drives, from the folder of the app on.
const SCRIPT: &str = "scripts/drive-lab.mjs";

/// One file that methods send one after the other.
#[derive(Debug, Clone, Copy)]
pub struct Order<'bench> {
    /// Where the scratch file goes.
    pub workspace: &'bench str,
    /// Bytes of the old version.
    pub length: usize,
    /// Where the old version lies, where the page does not make it.
    pub file: Option<&'bench Path>,
    /// What is done to it.
    pub edit: Edit,
    /// Whence the bytes and the places come.
    pub seed: u64,
    /// Names of methods, as the page has them.
    pub methods: &'bench [&'bench str],
    /// For how long the meter ticks before and after each, in milliseconds.
    pub calm_ms: u64,
}

/// A running browser; it is ended when this value goes.
#[derive(Debug)]
pub struct Driver {
    child: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Driver {
    /// Starts a browser by what is in the folder of the app.
    ///
    /// # Errors
    /// Where there is no Node.js.
    pub fn start(web: &Path) -> Result<Self> {
        let mut command = Command::new("node");
        command.arg(SCRIPT).current_dir(web).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().context("node")?;
        let orders = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().context("it has an output")?);
        Ok(Self { child, orders, answers })
    }

    /// Signs in at a server and goes to the lab; `server` is the number of its process. Returns which browser it is.
    ///
    /// # Errors
    /// Where the page does not come so far; with what the browser said.
    pub fn open(&mut self, url: &str, user: &str, server: u32) -> Result<String> {
        let open = json!({ "url": url, "user": user, "password": PASSWORD, "server": server });
        let answer = self.ask(&json!({ "open": open })).context("the lab was not opened")?;
        Ok(answer["browser"].as_str().unwrap_or_default().to_owned())
    }

    /// Has all methods of an order run once.
    ///
    /// # Errors
    /// Where the page could not even try; what a method says is in its row.
    pub fn run(&mut self, order: &Order<'_>, network: Network, run: u32) -> Result<Vec<Row>> {
        let answer = self.ask(&json!({ "run": {
            "workspace": order.workspace,
            "length": order.length,
            "kind": order.edit.kind,
            "size": order.edit.size,
            "places": order.edit.places,
            "seed": order.seed,
            "methods": order.methods,
            "calm": order.calm_ms,
            "path": order.file,
        } }));
        let answer = answer.with_context(|| format!("{} was not measured", order.edit))?;
        let rows = answer["rows"].as_array().context("the page sent no rows")?;
        let read = rows.iter().map(|row| Row::read(row, network, order.edit, (order.seed, run)));
        let read: Vec<Row> = read.collect::<Result<_>>()?;
        if read.len() != order.methods.len() {
            bail!("{} methods were to be run, and {} were", order.methods.len(), read.len());
        }
        Ok(read)
    }

    /// Ends the browser.
    ///
    /// # Errors
    /// Where it does not end well.
    pub fn end(mut self) -> Result<()> {
        drop(self.orders.take());
        let status = self.child.wait()?;
        if !status.success() {
            bail!("{SCRIPT}: {status}");
        }
        Ok(())
    }

    fn ask(&mut self, order: &Value) -> Result<Value> {
        let orders = self.orders.as_mut().context("the browser has ended")?;
        writeln!(orders, "{order}")?;
        orders.flush()?;
        let mut line = String::new();
        if self.answers.read_line(&mut line)? == 0 {
            bail!("{SCRIPT} has ended");
        }
        let answer: Value = serde_json::from_str(&line)?;
        match answer["error"].as_str() {
            Some(error) => bail!("{error}"),
            None => Ok(answer),
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // At the end of its orders it closes the browser, and goes.
        drop(self.orders.take());
        let _ = self.child.wait();
    }
}
