//! `lab server --binary FILE [--out DIR] [--work DIR] [--only CASE,...] [--quick] [--seed N] [--devices N] [--seconds N]
//! [--rates N,...] [--idle N,...] [--services FILE] [--brokers NAME,...] [--sync-services N,...] [--gateways N] [--commits N]`: puts load on a
//! server and measures it; `cargo xtask bench server` builds and calls it.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use lab::cases::{self, Options, Scaled};
use lab::cluster::BROKERS;
use lab::machine;
use lab::output::{Output, say};
use lab::server_process::version;

/// The usual seed: the day on which StackSync was published.
const SEED: u64 = 20_140_714;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // A closed pipe is no reason to fail otherwise.
            let _ = writeln!(io::stderr(), "lab: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    if words.is_empty() || words.remove(0) != "server" {
        let names = cases::names().join(",");
        bail!("usage: lab server --binary FILE [--out DIR] [--only {names}]");
    }
    let (options, out) = options(&mut words)?;
    if let Some(word) = words.first() {
        bail!("'{word}' is not understood here");
    }
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
