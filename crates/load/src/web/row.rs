//! One run of one method, as the page says it, and what several say together.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::str::FromStr;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::Network;
use super::cells::{Edit, KINDS};
use super::native::Synced;

/// The methods of the page, by their names there.
pub const METHODS: [&str; 11] = [
    "oursKept",
    "oursSketch",
    "oursList",
    "oursNothing",
    "webR2syncPlus",
    "webR2sync",
    "webRsyncPlus",
    "webRsync",
    "scriptWorker",
    "scriptPage",
    "whole",
];

/// Those on which stagnation is measured.
pub const METHODS_STAGNATION: [&str; 5] =
    ["oursKept", "webR2syncPlus", "webRsync", "scriptWorker", "scriptPage"];

/// Those on whose account the page is never to stand still, however large the file.
pub const METHODS_LARGE: [&str; 8] = [
    "oursKept",
    "oursList",
    "oursNothing",
    "webR2syncPlus",
    "webR2sync",
    "webRsyncPlus",
    "webRsync",
    "whole",
];

/// rsync itself.
pub const NATIVE: &str = "rsync";

/// What a run ends with when the server has the new version, byte by byte.
pub const SAME: &str = "same";

/// What came of one run.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Over what.
    pub network: Network,
    /// What was done to the file.
    pub edit: Edit,
    /// Whence the bytes came.
    pub seed: u64,
    /// From 1 on.
    pub run: u32,
    /// One of [`METHODS`], or [`NATIVE`].
    pub method: String,
    /// How long it took.
    pub time_ms: f64,
    /// How long the client waited for the server and the line.
    pub waited_ms: Option<f64>,
    /// Bytes that the client sent.
    pub up: u64,
    /// Bytes that it received.
    pub down: u64,
    /// How often it waited for an answer.
    pub round_trips: Option<u64>,
    /// Processor time of all processes of the browser.
    pub client_cpu_ms: Option<f64>,
    /// Processor time of the server.
    pub server_cpu_ms: Option<f64>,
    /// The longest time without a tick on the page.
    pub longest_gap_ms: Option<f64>,
    /// Ticks that were missed.
    pub missed_ticks: Option<u64>,
    /// Tasks on the page of more than 50 ms.
    pub long_tasks: Option<u64>,
    /// When the page ticked, from the beginning of the method on; below zero before it.
    pub ticks_ms: Vec<f64>,
    /// [`SAME`], `different`, or why it failed.
    pub result: String,
}

impl Row {
    /// Reads what the page says of a run.
    ///
    /// # Errors
    /// Where something is missing.
    pub fn read(value: &Value, network: Network, edit: Edit, at: (u64, u32)) -> Result<Self> {
        let number = |name: &str| value[name].as_f64().with_context(|| format!("no {name}"));
        let count = |name: &str| value[name].as_u64().with_context(|| format!("no {name}"));
        let stagnation = &value["stagnation"];
        let result = match (value["failure"].as_str(), value["isSame"].as_bool()) {
            (Some(failure), _) => failure.to_owned(),
            (None, Some(true)) => SAME.to_owned(),
            (None, _) => "different".to_owned(),
        };
        let ticks = value["ticks"].as_array().context("no ticks")?;
        Ok(Self {
            network,
            edit,
            seed: at.0,
            run: at.1,
            method: value["method"].as_str().context("no method")?.to_owned(),
            time_ms: number("time")?,
            waited_ms: Some(number("waited")?),
            up: count("up")?,
            down: count("down")?,
            round_trips: Some(count("roundTrips")?),
            client_cpu_ms: value["cost"]["client"].as_f64(),
            server_cpu_ms: value["cost"]["server"].as_f64(),
            longest_gap_ms: stagnation["longest"].as_f64(),
            missed_ticks: stagnation["missed"].as_u64(),
            long_tasks: value["longTasks"].as_array().map(|tasks| tasks.len() as u64),
            ticks_ms: ticks.iter().filter_map(Value::as_f64).collect(),
            result,
        })
    }

    /// Makes a row of a run of rsync.
    pub fn native(network: Network, edit: Edit, at: (u64, u32), synced: Synced) -> Self {
        Self {
            network,
            edit,
            seed: at.0,
            run: at.1,
            method: NATIVE.to_owned(),
            time_ms: synced.time.as_secs_f64() * 1000.0,
            waited_ms: None,
            up: synced.up,
            down: synced.down,
            round_trips: None,
            client_cpu_ms: None,
            server_cpu_ms: None,
            longest_gap_ms: None,
            missed_ticks: None,
            long_tasks: None,
            ticks_ms: Vec::new(),
            result: SAME.to_owned(),
        }
    }
}

/// Reads what [`csv_of`] has written. Ticks are not in it.
///
/// # Errors
/// Where a line is none.
pub fn rows_of(csv: &str) -> Result<Vec<Row>> {
    csv.lines().skip(1).map(|line| row_of(line).with_context(|| line.to_owned())).collect()
}

fn row_of(line: &str) -> Result<Row> {
    let fields: Vec<&str> = line.splitn(18, ',').collect();
    let &[network, kind, size, places, seed, run, method, time, ref rest @ ..] = &fields[..] else {
        bail!("a row has 18 fields");
    };
    let &[waited, up, down, trips, client, server, gap, missed, tasks, result] = rest else {
        bail!("a row has 18 fields");
    };
    let network = Network::ALL.into_iter().find(|one| one.name() == network).context("network")?;
    let kind = KINDS.into_iter().find(|one| *one == kind).context("kind")?;
    Ok(Row {
        network,
        edit: Edit { kind, size: size.parse()?, places: places.parse()? },
        seed: seed.parse()?,
        run: run.parse()?,
        method: method.to_owned(),
        time_ms: time.parse()?,
        waited_ms: optional(waited)?,
        up: up.parse()?,
        down: down.parse()?,
        round_trips: optional(trips)?,
        client_cpu_ms: optional(client)?,
        server_cpu_ms: optional(server)?,
        longest_gap_ms: optional(gap)?,
        missed_ticks: optional(missed)?,
        long_tasks: optional(tasks)?,
        ticks_ms: Vec::new(),
        result: result.trim_matches('"').to_owned(),
    })
}

fn optional<T: FromStr<Err: Into<anyhow::Error>>>(field: &str) -> Result<Option<T>> {
    let parsed = (!field.is_empty()).then(|| field.parse());
    parsed.transpose().map_err(Into::into)
}

/// The name of a method for people.
pub fn title(method: &str) -> &str {
    match method {
        "oursKept" => "ours",
        "oursSketch" => "ours, sketch only",
        "oursList" => "ours, list only",
        "oursNothing" => "ours, nothing known",
        "webR2syncPlus" => "WebR2sync+",
        "webR2sync" => "WebR2sync",
        "webRsyncPlus" => "WebRsync+",
        "webRsync" => "WebRsync, core",
        "scriptWorker" => "WebRsync, JS worker",
        "scriptPage" => "WebRsync, JS page",
        "whole" => "whole file",
        other => other,
    }
}

/// Returns the middle of some values: of two in the middle, what is between them; nothing where there are none.
pub fn middle(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut sorted: Vec<f64> = values.into_iter().collect();
    sorted.sort_by(f64::total_cmp);
    let half = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        count if count % 2 == 1 => Some(sorted[half]),
        _ => Some((sorted[half - 1] + sorted[half]) / 2.0),
    }
}

/// Rows by which figures are asked for.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'rows>(pub &'rows [Row]);

impl<'rows> Rows<'rows> {
    /// Returns the middle of a figure over all runs of a method in a cell. Runs that went wrong say nothing.
    pub fn middle(
        self,
        network: Network,
        edit: Edit,
        method: &str,
        figure: impl Fn(&'rows Row) -> Option<f64>,
    ) -> Option<f64> {
        let runs = self.0.iter().filter(|row| {
            (row.network, row.edit, row.method.as_str()) == (network, edit, method)
                && row.result == SAME
        });
        middle(runs.filter_map(figure))
    }

    /// Returns how long a method took.
    pub fn time_ms(self, network: Network, edit: Edit, method: &str) -> Option<f64> {
        self.middle(network, edit, method, |row| Some(row.time_ms))
    }

    /// Returns all edits, those of one kind side by side.
    pub fn edits(self) -> Vec<Edit> {
        let mut edits: Vec<Edit> =
            self.0.iter().map(|row| row.edit).collect::<BTreeSet<_>>().into_iter().collect();
        edits.sort_by_key(|edit| (edit.places > 1, *edit));
        edits
    }
}

/// Writes all rows as CSV.
pub fn csv_of(rows: &[Row]) -> String {
    let mut text = "network,edit,edit_bytes,places,seed,run,method,time_ms,waited_ms,up_bytes,down_bytes,round_trips,client_cpu_ms,\
                    server_cpu_ms,longest_gap_ms,missed_ticks,long_tasks,result\n"
        .to_owned();
    for row in rows {
        let decimal = |value: Option<f64>| value.map_or_else(String::new, |ms| format!("{ms:.2}"));
        let whole = |value: Option<u64>| value.map_or_else(String::new, |count| count.to_string());
        let Edit { kind, size, places } = row.edit;
        // Writing to a String cannot fail.
        let _ok = writeln!(
            text,
            "{},{kind},{size},{places},{},{},{},{:.2},{},{},{},{},{},{},{},{},{},\"{}\"",
            row.network.name(),
            row.seed,
            row.run,
            row.method,
            row.time_ms,
            decimal(row.waited_ms),
            row.up,
            row.down,
            whole(row.round_trips),
            decimal(row.client_cpu_ms),
            decimal(row.server_cpu_ms),
            decimal(row.longest_gap_ms),
            whole(row.missed_ticks),
            whole(row.long_tasks),
            row.result.replace('"', "'").replace('\n', " "),
        );
    }
    text
}

/// Writes all ticks as CSV.
pub fn ticks_of(rows: &[Row]) -> String {
    let mut text = "method,run,tick_ms\n".to_owned();
    for row in rows {
        for tick in &row.ticks_ms {
            // Writing to a String cannot fail.
            let _ok = writeln!(text, "{},{},{tick:.1}", row.method, row.run);
        }
    }
    text
}
