//! `bench many-small`: 100,000 files of 4 KB through the server, beside `cp -r`.

use std::fs;
use std::path::Path;

use super::inputs::{SEED, Workload};
use super::peers::{self, Peer};
use super::place::WorkFolder;
use super::{Options, environment, report, sequence};
use crate::arguments::Arguments;
use crate::failure::Result;
use crate::random::Random;

const FILE_BYTES: usize = 4096;

pub(super) fn run(what: String, mut arguments: Arguments) -> Result<()> {
    let files: usize = arguments.value_or("--files", 100_000)?;
    let with_syncthing = arguments.flag("--with-syncthing");
    let options = Options::take(&what, &mut arguments)?;
    arguments.finish()?;
    let files = if options.quick { files.min(2000) } else { files };
    let wanted = ["syncline serve", "cp -r", "syncthing"];
    let mut chosen: Vec<Box<dyn Peer>> = peers::all(options.binary.as_deref())
        .into_iter()
        .filter(|peer| wanted[..2 + usize::from(with_syncthing)].contains(&peer.name()))
        .collect();
    let mut rows = Vec::new();
    for file_system in &options.file_systems {
        let place = WorkFolder::new(file_system, &options.work)?;
        let base = place.path().join("base");
        write_files(&base, files)?;
        let note = format!("{files} files of {FILE_BYTES} bytes");
        let workload = Workload { name: "many-small".to_owned(), base, updates: Vec::new(), note };
        for round in 1..=options.runs {
            for peer in &mut chosen {
                sequence::run(peer.as_mut(), &workload, place.path(), &mut |mut row| {
                    row.file_system = (*file_system).to_owned();
                    row.round = round;
                    let rate = files as f64 / row.sample.wall_seconds;
                    println!(
                        "{file_system} round {round}: {} {}: {:.2} s, {rate:.0} files/s",
                        row.peer, row.step, row.sample.wall_seconds
                    );
                    rows.push(row);
                })?;
            }
        }
    }
    let kinds: Vec<report::Kind> =
        chosen.iter().map(|peer| (peer.name().to_owned(), peer.family(), peer.is_ours())).collect();
    println!("\n{}", report::tables(&rows, &kinds));
    environment::write(&options.out, &[], &[])?;
    fs::write(options.out.join("many-small.csv"), report::csv(&rows))?;
    println!("every run: {}", options.out.display());
    Ok(())
}

/// Random files, 1000 in a folder.
fn write_files(base: &Path, count: usize) -> Result<()> {
    let mut random = Random::for_part(SEED, "many small");
    for index in 0..count {
        let folder = base.join(format!("folder-{:03}", index / 1000));
        if index % 1000 == 0 {
            fs::create_dir_all(&folder)?;
        }
        fs::write(folder.join(format!("file-{index:06}")), random.bytes(FILE_BYTES))?;
    }
    Ok(())
}
