//! `load server --binary FILE [--out DIR] [--work DIR] [--only CASE,...] [--quick] [--seed N] [--devices N] [--seconds N]
//! [--rates N,...] [--idle N,...] [--services FILE] [--brokers NAME,...] [--sync-services N,...] [--gateways N] [--commits N]`: puts load on a
//! server and measures it; `cargo xtask bench server` builds and calls it.
//!
//! `load web --binary FILE --web DIR [--out DIR] [--work DIR] [--only grid,large] [--quick] [--runs N] [--seed N] [--length N] [--large-length N]`:
//! measures the app in a browser beside rsync; `cargo xtask bench web` builds and calls it.
//!
//! `load clients --binary FILE [--out DIR] [--work DIR] [--quick] [--seed N] [--seconds N] [--length N] [--workloads NAME,...] [--methods NAME,...]
//! [--contents NAME,...] [--sizes N,...] [--clients N] [--line-ms N] [--releases FILE]`: measures how many clients in browsers a core of a server
//! bears; `cargo xtask bench web --only clients` builds and calls it.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use lab::output::{Output, say};
use load::cases::{self, Options, Scaled};
use load::clients;
use load::clients::exchange::Method;
use load::clients::files::Content;
use load::clients::report::Workload;
use load::cluster::BROKERS;
use load::machine;
use load::server_process::version;
use load::web;

/// The usual seed: the day on which StackSync was published.
const SEED: u64 = 20_140_714;

/// The same for the browser: the day on which WebR2sync+ was published.
const SEED_WEB: u64 = 20_180_212;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // A closed pipe is no reason to fail otherwise.
            let _ = writeln!(io::stderr(), "load: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    match (!words.is_empty()).then(|| words.remove(0)).as_deref() {
        Some("server") => run_server(words),
        Some("web") => run_web(words),
        Some("draw-web") => draw_web(words),
        Some("clients") => run_clients(words),
        _ => {
            let names = cases::names().join(",");
            bail!(
                "usage: load server --binary FILE [--out DIR] [--only {names}], load web, load draw-web, load clients"
            );
        }
    }
}

/// Draws what a run in a browser has measured.
fn draw_web(mut words: Vec<String>) -> Result<()> {
    let csv: PathBuf = value(&mut words, "--csv")?.context("--csv FILE is needed")?;
    let out: PathBuf = value(&mut words, "--out")?.context("--out DIR is needed")?;
    demand_nothing_left(&words)?;
    web::draw(&csv, &Output::new(out.clone(), out)?)
}

/// Measures the app in a browser.
fn run_web(mut words: Vec<String>) -> Result<()> {
    let words = &mut words;
    let quick = flag(words, "--quick");
    let out: Option<PathBuf> = value(words, "--out")?;
    let options = web::Options {
        binary: value(words, "--binary")?.context("--binary FILE is needed")?,
        web: value(words, "--web")?.context("--web DIR is needed: the sources of the app")?,
        work: value(words, "--work")?.unwrap_or_else(std::env::temp_dir),
        quick,
        runs: value(words, "--runs")?.unwrap_or(if quick { 1 } else { 3 }).max(1),
        seed: value(words, "--seed")?.unwrap_or(SEED_WEB),
        length: value(words, "--length")?.unwrap_or(1_000_000),
        only: named(words, "--only", &web::Part::ALL, web::Part::name)?,
        large_length: value(words, "--large-length")?.unwrap_or(if quick {
            16 << 20
        } else {
            1 << 30
        }),
    };
    demand_nothing_left(words)?;
    let out = out.unwrap_or_else(|| PathBuf::from("bench-results/web"));
    let output = Output::new(out.clone(), out)?;
    say(&version(&options.binary)?);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(web::run(&options, &output))?;
    say(&format!("figures: {}", output.csv.display()));
    Ok(())
}

/// Measures how many clients in browsers a core bears.
fn run_clients(mut words: Vec<String>) -> Result<()> {
    let words = &mut words;
    let quick = flag(words, "--quick");
    let out: Option<PathBuf> = value(words, "--out")?;
    let seconds = value(words, "--seconds")?.unwrap_or(if quick { 2 } else { 20 });
    let options = clients::Options {
        binary: value(words, "--binary")?.context("--binary FILE is needed")?,
        work: value(words, "--work")?.unwrap_or_else(std::env::temp_dir),
        quick,
        seed: value(words, "--seed")?.unwrap_or(SEED_WEB),
        length: Duration::from_secs(seconds),
        intensive_length: Duration::from_secs(seconds.min(10)),
        workloads: named(words, "--workloads", &Workload::ALL, Workload::name)?,
        methods: named(words, "--methods", &Method::ALL, Method::name)?,
        contents: named(words, "--contents", &Content::ALL, Content::name)?,
        sizes: list(words, "--sizes")?.unwrap_or_else(|| vec![1000]),
        file_length: value(words, "--length")?.unwrap_or(if quick { 100_000 } else { 1_000_000 }),
        clients_max: value(words, "--clients")?.unwrap_or(if quick { 8 } else { 40_000 }).max(1),
        line: Duration::from_millis(value(words, "--line-ms")?.unwrap_or(30)),
        releases: value(words, "--releases")?,
    };
    demand_nothing_left(words)?;
    let out = out.unwrap_or_else(|| PathBuf::from("bench-results/web"));
    let output = Output::new(out.clone(), out)?;
    say(&version(&options.binary)?);
    clients::run(&options, &output)?;
    say(&format!("figures: {}", output.csv.display()));
    Ok(())
}

/// Takes a list of names, or all there are.
fn named<T: Copy>(
    words: &mut Vec<String>,
    name: &str,
    all: &[T],
    name_of: impl Fn(T) -> &'static str,
) -> Result<Vec<T>> {
    let Some(wanted) = list::<String>(words, name)? else { return Ok(all.to_vec()) };
    let find = |word: &String| all.iter().copied().find(|one| name_of(*one) == word);
    let found: Option<Vec<T>> = wanted.iter().map(find).collect();
    let known: Vec<_> = all.iter().map(|one| name_of(*one)).collect();
    found.with_context(|| format!("{name}: there are {}", known.join(", ")))
}

fn demand_nothing_left(words: &[String]) -> Result<()> {
    match words.first() {
        Some(word) => bail!("'{word}' is not understood here"),
        None => Ok(()),
    }
}

/// Puts load on a server.
fn run_server(mut words: Vec<String>) -> Result<()> {
    let (options, out) = options(&mut words)?;
    demand_nothing_left(&words)?;
    let output = Output::new(out.clone(), out)?;
    say(&format!(
        "{}; {} files may be open",
        version(&options.binary)?,
        machine::raise_open_files()
    ));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(cases::run(&options, &output))?;
    say(&format!("figures: {}", output.csv.display()));
    Ok(())
}

fn options(words: &mut Vec<String>) -> Result<(Options, PathBuf)> {
    let quick = flag(words, "--quick");
    let binary = value::<PathBuf>(words, "--binary")?.context("--binary FILE is needed")?;
    let names = cases::names();
    let only = match value::<String>(words, "--only")? {
        Some(only) => only.split(',').map(str::to_owned).collect(),
        None => {
            let alone = names.iter().filter(|name| !cases::SCALED_NAMES.contains(name));
            alone.map(|name| (*name).to_owned()).collect::<Vec<_>>()
        }
    };
    if let Some(unknown) = only.iter().find(|name| !names.contains(&name.as_str())) {
        bail!("no case is called '{unknown}'; there are {}", names.join(", "));
    }
    let seconds = value(words, "--seconds")?.unwrap_or(if quick { 3 } else { 20 });
    let usual_rates = || match quick {
        true => vec![100.0, 400.0],
        false => vec![100.0, 200.0, 400.0, 2000.0, 10_000.0, 50_000.0],
    };
    let options = Options {
        binary,
        work: value(words, "--work")?.unwrap_or_else(std::env::temp_dir),
        only,
        quick,
        seed: value(words, "--seed")?.unwrap_or(SEED),
        writers: value(words, "--devices")?.unwrap_or(if quick { 20 } else { 1000 }),
        length: Duration::from_secs(seconds),
        rates: list(words, "--rates")?.unwrap_or_else(usual_rates),
        idle: list(words, "--idle")?
            .unwrap_or_else(|| if quick { vec![40] } else { vec![1000, 10_000] }),
        scaled: scaled(words, quick)?,
    };
    let out = value::<PathBuf>(words, "--out")?;
    Ok((options, out.unwrap_or_else(|| PathBuf::from("bench-results/server"))))
}

fn scaled(words: &mut Vec<String>, quick: bool) -> Result<Scaled> {
    let brokers = list::<String>(words, "--brokers")?.map(|names| {
        let known = |name: &String| BROKERS.into_iter().find(|broker| broker == name);
        let found: Option<Vec<_>> = names.iter().map(known).collect();
        found.with_context(|| format!("--brokers: there are {}", BROKERS.join(", ")))
    });
    Ok(Scaled {
        services: value(words, "--services")?,
        brokers: brokers.transpose()?.unwrap_or_else(|| BROKERS.to_vec()),
        sync_services: list(words, "--sync-services")?
            .unwrap_or_else(|| if quick { vec![1, 2] } else { vec![1, 2, 4] }),
        gateways: value(words, "--gateways")?.unwrap_or(1),
        commits: value(words, "--commits")?.unwrap_or(if quick { 3000 } else { 1_000_000 }),
    })
}

fn flag(words: &mut Vec<String>, name: &str) -> bool {
    let before = words.len();
    words.retain(|word| word != name);
    words.len() != before
}

fn value<T: FromStr>(words: &mut Vec<String>, name: &str) -> Result<Option<T>> {
    let Some(at) = words.iter().position(|word| word == name) else { return Ok(None) };
    if at + 1 >= words.len() {
        bail!("{name} needs a value");
    }
    words.remove(at);
    let text = words.remove(at);
    match text.parse() {
        Ok(value) => Ok(Some(value)),
        Err(_) => bail!("{name} {text}: this is not understood"),
    }
}

fn list<T: FromStr>(words: &mut Vec<String>, name: &str) -> Result<Option<Vec<T>>> {
    let Some(text) = value::<String>(words, name)? else { return Ok(None) };
    let parsed = text.split(',').map(|word| word.parse().ok()).collect::<Option<Vec<T>>>();
    parsed.map(Some).with_context(|| format!("{name} {text}: this is not understood"))
}
