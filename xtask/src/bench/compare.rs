//! `bench peers`: every program, every workload, every step, in interleaved rounds.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::inputs::{self, InputOptions, Workload};
use super::peers::{self, Family, Peer};
use super::place::WorkFolder;
use super::sample::Row;
use super::{Options, environment, report, sequence};
use crate::arguments::Arguments;
use crate::failure::{Context, Result, fail};
use crate::{process, repository_root};

/// What `bench peers` understands beside the options of all benchmarks.
struct Selection {
    only: Vec<String>,
    releases: Option<PathBuf>,
    may_install: bool,
}

pub(super) fn run(what: String, mut arguments: Arguments) -> Result<()> {
    let only = arguments.value("--only")?.unwrap_or_default();
    let selection = Selection {
        only: only.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect(),
        releases: arguments.value("--releases")?.map(PathBuf::from).or_else(default_releases),
        may_install: !arguments.flag("--no-install"),
    };
    let options = Options::take(&what, &mut arguments)?;
    arguments.finish()?;
    let mut chosen = choose_peers(&selection, &options)?;
    let workloads = choose_workloads(&selection, &options)?;
    let versions: Vec<(String, String)> =
        chosen.iter().map(|peer| (peer.name().to_owned(), peer.version())).collect();
    let mut notes: Vec<String> =
        workloads.iter().map(|input| format!("{}: {}", input.name, input.note)).collect();
    for note in &notes {
        println!("input {note}");
    }
    let (rows, failures) = measure_all(&mut chosen, &workloads, &options)?;
    notes.extend(failures);
    fs::create_dir_all(&options.out)?;
    let families: Vec<(String, Family, bool)> =
        chosen.iter().map(|peer| (peer.name().to_owned(), peer.family(), peer.is_ours())).collect();
    let table = report::tables(&rows, &families);
    println!("\n{table}");
    environment::write(&options.out, &versions, &notes)?;
    fs::write(options.out.join("peers.md"), table)?;
    fs::write(options.out.join("peers.csv"), report::csv(&rows))?;
    println!("every run and the environment: {}", options.out.display());
    Ok(())
}

/// The archive where a checkout beside shared data finds it.
fn default_releases() -> Option<PathBuf> {
    let path = repository_root().join("../shared/data/source-releases.tar.zst");
    path.exists().then_some(path)
}

fn choose_workloads(selection: &Selection, options: &Options) -> Result<Vec<Workload>> {
    let named: Vec<&str> = inputs::NAMES
        .into_iter()
        .filter(|name| selection.only.iter().any(|only| only == name))
        .collect();
    let wanted = if named.is_empty() { inputs::NAMES.to_vec() } else { named.clone() };
    let input_options = InputOptions {
        cache: options.work.join("inputs"),
        quick: options.quick,
        releases: selection.releases.clone(),
    };
    let mut workloads = Vec::new();
    for name in wanted {
        if name.starts_with("releases") && selection.releases.is_none() && named.is_empty() {
            println!("left out: {name} (no archive; name one with --releases FILE)");
            continue;
        }
        workloads.push(inputs::build(name, &input_options).context(name)?);
    }
    Ok(workloads)
}

fn choose_peers(selection: &Selection, options: &Options) -> Result<Vec<Box<dyn Peer>>> {
    let all = peers::all(options.binary.as_deref());
    for only in &selection.only {
        let known =
            all.iter().any(|peer| peer.name() == only) || inputs::NAMES.contains(&only.as_str());
        if !known {
            let names: Vec<_> = all.iter().map(|peer| peer.name()).collect();
            return fail(format!("'{only}' is none of {names:?} and {:?}", inputs::NAMES));
        }
    }
    let named = all.iter().any(|peer| selection.only.iter().any(|only| only == peer.name()));
    let mut chosen: Vec<Box<dyn Peer>> = all
        .into_iter()
        .filter(|peer| !named || selection.only.iter().any(|only| only == peer.name()))
        .collect();
    let mut packages: Vec<&str> = chosen
        .iter()
        .map(|peer| peer.program())
        .chain([
            (process::GNU_TIME, Some("time")),
            ("rsync", Some("rsync")),
            ("zstd", Some("zstd")),
        ])
        .filter(|(program, _)| !process::is_installed(program))
        .filter_map(|(_, package)| package)
        .collect();
    packages.sort_unstable();
    packages.dedup();
    if selection.may_install && !packages.is_empty() {
        install(&packages)?;
    }
    chosen.retain(|peer| {
        let installed = process::is_installed(peer.program().0);
        if !installed {
            println!("left out: {} (not installed)", peer.name());
        }
        installed
    });
    Ok(chosen)
}

fn install(packages: &[&str]) -> Result<()> {
    println!("installing {}", packages.join(" "));
    let mut command = Command::new("apt-get");
    command.args(["install", "--yes", "--no-install-recommends"]).args(packages);
    command.env("DEBIAN_FRONTEND", "noninteractive");
    let by_hand = format!("cannot install; by hand: apt-get install {}", packages.join(" "));
    process::output(&mut command).context(by_hand).map(drop)
}

/// All rounds. A program that fails is reported and does not stop the others.
fn measure_all(
    peers: &mut [Box<dyn Peer>],
    workloads: &[Workload],
    options: &Options,
) -> Result<(Vec<Row>, Vec<String>)> {
    let (mut rows, mut failures) = (Vec::new(), Vec::new());
    for workload in workloads {
        for file_system in &options.file_systems {
            let place = WorkFolder::new(file_system, &options.work)?;
            for round in 1..=options.runs {
                // Another order in every round, so that nobody always runs on the warmest machine.
                peers.rotate_left(usize::from(round > 1));
                for peer in peers.iter_mut() {
                    let name =
                        format!("{} {file_system} round {round}: {}", workload.name, peer.name());
                    println!("{name}");
                    let outcome =
                        sequence::run(peer.as_mut(), workload, place.path(), &mut |mut row| {
                            row.file_system = (*file_system).to_owned();
                            row.round = round;
                            rows.push(row);
                        });
                    if let Err(failure) = outcome {
                        println!("  FAILED: {failure}");
                        failures.push(format!("FAILED {name}: {failure}"));
                    }
                }
            }
        }
    }
    Ok((rows, failures))
}
