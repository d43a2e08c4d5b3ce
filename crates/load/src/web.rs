//! The figures of the browser: every method of sending what has changed in a real Chromium on the lab page of the app, and native rsync
//! beside it, over the same line and the same pairs of files.
//!
//! Read in this order: [`cells`] (what is measured), [`sample`] (the files), [`driver`] (the browser), [`native`] (rsync), [`row`] (what
//! came of a run), [`report`], [`figures`]. A large file is measured by itself (`large`).

use std::fmt::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::time::Instant;

use crate::population::{PASSWORD, Population, account_names};
use crate::proxy::{Conditions, Proxy};
use crate::server_process::{ALONE, ServerProcess, Setting};
use cells::{Cell, Edit};
use driver::{Driver, Order};
use lab::output::{Output, say};
use line::Measured;
use native::Daemon;
use report::About;
use row::Row;

pub mod cells;
pub mod driver;
pub mod figures;
mod large;
pub mod line;
pub mod native;
pub mod report;
pub mod row;
pub mod sample;

/// The line of the paper, which our proxy emulates: 30 ms there and back.
const ROUND_TRIP: Duration = Duration::from_millis(30);

/// 100 Mb/s each way, in bytes a second.
const BYTES_PER_SECOND: u64 = 12_500_000;

/// For how long the meter ticks before and after a method of the grid, in milliseconds: whether the page stands still is measured elsewhere.
const CALM_MS: u64 = 20;

/// The same where it is measured.
const CALM_STAGNATION_MS: u64 = 300;

/// The file on which stagnation is measured, in bytes: ten times that of the grid, so that there is something to see.
const STAGNATION_LENGTH: usize = 10_000_000;

/// Over what a browser and rsync reach the other side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Network {
    /// The line of the paper.
    Line,
    /// Straight to the server on the same machine.
    Loopback,
}

impl Network {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Line, Self::Loopback];

    /// The name in files and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Line => "30ms",
            Self::Loopback => "loopback",
        }
    }

    /// The name for people.
    pub fn title(self) -> &'static str {
        match self {
            Self::Line => "30 ms, 100 Mb/s",
            Self::Loopback => "loopback",
        }
    }
}

/// What is to be measured, and with what.
#[derive(Debug, Clone)]
pub struct Options {
    /// The program, with the app in it.
    pub binary: PathBuf,
    /// The sources of the app, with what drives a browser.
    pub web: PathBuf,
    /// Where data lie meanwhile.
    pub work: PathBuf,
    /// A few cells only.
    pub quick: bool,
    /// How often each cell is measured, each time with other files.
    pub runs: u32,
    /// Whence all chance comes.
    pub seed: u64,
    /// Bytes of the old version in the grid.
    pub length: usize,
    /// Which parts are measured.
    pub only: Vec<Part>,
    /// Bytes of the large file.
    pub large_length: u64,
}

/// What can be measured by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The cells of the paper, and whether the page stands still on a file of 10 MB.
    Grid,
    /// Whether the page stands still on a large file of the disk.
    Large,
}

impl Part {
    /// All parts.
    pub const ALL: [Self; 2] = [Self::Grid, Self::Large];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Grid => "grid",
            Self::Large => "large",
        }
    }
}

impl Options {
    fn stagnation_length(&self) -> usize {
        if self.quick { self.length } else { STAGNATION_LENGTH }
    }
}

/// Runs everything.
///
/// # Errors
/// Where the server, the browser or rsync cannot be run.
pub async fn run(options: &Options, output: &Output) -> Result<()> {
    let bench = Bench::start(options).await?;
    for part in &options.only {
        match part {
            Part::Grid => grid(&bench, options, output).await?,
            Part::Large => large::run(&bench, output)?,
        }
    }
    Ok(())
}

async fn grid(bench: &Bench, options: &Options, output: &Output) -> Result<()> {
    let mut driver = Driver::start(&options.web)?;
    let mut rows = Vec::new();
    let mut lines = Vec::new();
    let cells = cells::grid(options.quick);
    let (mut browser, began) = (String::new(), Instant::now());
    for network in Network::ALL {
        let measured = bench.line(network).await?;
        say(&format!("{}: {}", network.title(), measured.describe()));
        lines.push((network, measured));
        browser = driver.open(&bench.url(network), &bench.account, bench.server.id())?;
        // Workers are started and code is compiled before anything counts.
        bench.warm_up(&mut driver, network)?;
        for (number, cell) in cells.iter().enumerate() {
            rows.extend(bench.cell(&mut driver, network, *cell)?);
            let seconds = began.elapsed().as_secs();
            let (count, all) = (number + 1, cells.len());
            say(&format!("{} {count}/{all} {cell} ({seconds} s)", network.name()));
        }
    }
    let standing = bench.stagnation(&mut driver)?;
    driver.end()?;
    let about = About {
        runs: options.runs,
        seed: options.seed,
        length: options.length,
        stagnation_length: options.stagnation_length(),
        load: std::fs::read_to_string("/proc/loadavg").unwrap_or_default().trim().to_owned(),
        lines,
        rsync: native::version()?,
        browser,
    };
    write_all(&about, &rows, &standing, output)?;
    demand_results(&rows)?;
    demand_results(&standing)
}

/// Draws anew what a run has measured: `csv` is a file of all runs.
///
/// # Errors
/// Where it cannot be read, or is none.
pub fn draw(csv: &Path, output: &Output) -> Result<()> {
    let text = std::fs::read_to_string(csv).with_context(|| csv.display().to_string())?;
    for (name, drawing) in figures::of_grid(&row::rows_of(&text)?) {
        output.write_svg(&name, &drawing)?;
    }
    Ok(())
}

/// Writes tables, drawings and the report.
fn write_all(about: &About, rows: &[Row], standing: &[Row], output: &Output) -> Result<()> {
    output.write_csv("web", &row::csv_of(rows))?;
    output.write_csv("web-stagnation", &row::csv_of(standing))?;
    output.write_csv("web-stagnation-ticks", &row::ticks_of(standing))?;
    for (name, drawing) in figures::all(rows, standing) {
        output.write_svg(&name, &drawing)?;
    }
    let text = report::markdown(about, rows, standing);
    output.write_report("web", &text)?;
    say(&text);
    Ok(())
}

/// What stays the same for all cells.
struct Bench {
    options: Options,
    server: ServerProcess,
    daemon: Daemon,
    line: Proxy,
    native_line: Proxy,
    account: String,
    workspace: String,
    /// Goes last: everything lies in it.
    setting: Setting,
}

impl Bench {
    async fn start(options: &Options) -> Result<Self> {
        let setting = Setting::new(&options.binary, &options.work)?;
        let accounts = account_names(1, 1);
        setting.add_accounts(&accounts)?;
        let server = ServerProcess::start(&setting, ALONE, &[])?;
        let population = Population::enrol(&server.url(), &accounts, 1, 1).await?;
        let made = population.workspaces("figures", &population.devices).await?;
        let workspace = made.first().context("a workspace was made")?.id.to_string();
        let daemon = Daemon::start(setting.folder())?;
        let conditions = Conditions::line(ROUND_TRIP, BYTES_PER_SECOND);
        let address: SocketAddr = server.url().trim_start_matches("http://").parse()?;
        Ok(Self {
            options: options.clone(),
            line: Proxy::start(address, conditions).await?,
            native_line: Proxy::start(daemon.address(), conditions).await?,
            account: accounts.into_iter().next().context("an account was made")?,
            server,
            daemon,
            workspace,
            setting,
        })
    }

    fn url(&self, network: Network) -> String {
        match network {
            Network::Line => format!("http://{}", self.line.address()),
            Network::Loopback => self.server.url(),
        }
    }

    async fn line(&self, network: Network) -> std::io::Result<Measured> {
        match network {
            Network::Line => {
                line::measure(Some(Conditions::line(ROUND_TRIP, BYTES_PER_SECOND))).await
            }
            Network::Loopback => line::measure(None).await,
        }
    }

    fn order(&self, edit: Edit, seed: u64) -> Order<'_> {
        let (workspace, length) = (self.workspace.as_str(), self.options.length);
        let (methods, calm_ms) = (&row::METHODS[..], CALM_MS);
        Order { workspace, length, file: None, edit, seed, methods, calm_ms }
    }

    /// Seeds of cells do not meet, however many runs there are; an edit takes the one behind that of its file, too.
    fn seed(&self, cell: Cell, run: u32) -> u64 {
        self.options.seed + 2 * (u64::from(run) * 1000 + cell.number)
    }

    fn warm_up(&self, driver: &mut Driver, network: Network) -> Result<()> {
        let edit = Edit { kind: "insert", size: 1_000, places: 1 };
        driver.run(&self.order(edit, self.options.seed), network, 0)?;
        Ok(())
    }

    /// Measures a cell: each run has a file of its own, which all methods and rsync send one after the other.
    fn cell(&self, driver: &mut Driver, network: Network, cell: Cell) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        for run in 1..=self.options.runs {
            let seed = self.seed(cell, run);
            rows.extend(driver.run(&self.order(cell.edit, seed), network, run)?);
            let old = sample::bytes_of(seed, self.options.length);
            let new = sample::edited(&old, cell.edit, seed);
            let address = match network {
                Network::Line => self.native_line.address(),
                Network::Loopback => self.daemon.address(),
            };
            let synced = self.daemon.sync(address, &old, &new)?;
            rows.push(Row::native(network, cell.edit, (seed, run), synced));
        }
        Ok(rows)
    }

    /// Measures whether the page stands still, on a larger file, over the line.
    fn stagnation(&self, driver: &mut Driver) -> Result<Vec<Row>> {
        let length = self.options.stagnation_length();
        driver.open(&self.url(Network::Line), &self.account, self.server.id())?;
        let mut rows = Vec::new();
        for run in 0..=self.options.runs {
            let edit = Edit { kind: "insert", size: 1_000, places: 5 };
            let seed = self.options.seed + 2 * u64::from(run);
            let (methods, calm_ms) = (&row::METHODS_STAGNATION[..], CALM_STAGNATION_MS);
            let order = Order { length, methods, calm_ms, ..self.order(edit, seed) };
            let found = driver.run(&order, Network::Line, run)?;
            // The first round warms up.
            if run > 0 {
                rows.extend(found);
            }
            say(&format!("stagnation {run}/{}", self.options.runs));
        }
        Ok(rows)
    }
}

/// Says what went wrong in which rows, where anything did.
///
/// # Errors
/// Where a method failed, or the server has something else than was sent.
pub fn demand_results(rows: &[Row]) -> Result<()> {
    let wrong: Vec<&Row> = rows.iter().filter(|row| row.result != row::SAME).collect();
    let Some(first) = wrong.first() else { return Ok(()) };
    let mut text = format!("{} of {} runs went wrong", wrong.len(), rows.len());
    // Writing to a String cannot fail.
    let _ok = write!(text, "; the first one: {} of {}: {}", first.method, first.edit, first.result);
    bail!(text)
}
