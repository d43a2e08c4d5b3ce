//! `bench rescan`: a sync that has nothing to do in a tree of 1,000,000 small files.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use super::place::WorkFolder;
use super::{Options, environment};
use crate::arguments::Arguments;
use crate::failure::Result;
use crate::process;
use crate::syncline::{self, Place, SYNC_DONE};

pub(super) fn run(what: String, mut arguments: Arguments) -> Result<()> {
    let files: usize = arguments.value_or("--files", 1_000_000)?;
    let options = Options::take(&what, &mut arguments)?;
    arguments.finish()?;
    let files = if options.quick { files.min(5000) } else { files };
    let mut lines = String::from("file_system,files,run,wall_seconds,cpu_seconds,rss_mib\n");
    for file_system in &options.file_systems {
        let place = WorkFolder::new(file_system, &options.work)?;
        let store = place.path().join("store");
        fs::create_dir_all(&store)?;
        let device =
            syncline::device(options.our_binary()?, place.path(), "only", Place::Stored(store));
        write_files(&device.folder, files)?;
        device.init()?;
        // Run 0 is the first sync of the tree; the others find nothing to do.
        for run in 0..=options.runs {
            let usage = process::measure(&device.sync_command(), place.path(), &SYNC_DONE)?;
            let kind = if run == 0 { "first sync" } else { "rescan" };
            println!(
                "{file_system}, {files} files, {kind}: {:.2} s, CPU {:.2} s, peak {:.0} MiB",
                usage.wall_seconds, usage.cpu_seconds, usage.rss_mib
            );
            let _ok = writeln!(
                lines,
                "{file_system},{files},{run},{:.4},{:.2},{:.1}",
                usage.wall_seconds, usage.cpu_seconds, usage.rss_mib
            );
        }
    }
    environment::write(&options.out, &[], &[])?;
    fs::write(options.out.join("rescan.csv"), lines)?;
    println!("every run: {}", options.out.display());
    Ok(())
}

fn write_files(folder: &Path, count: usize) -> Result<()> {
    for index in 0..count {
        let parent = folder.join(format!("{:02}/{:02}", index / 100_000, index / 1000 % 100));
        if index % 1000 == 0 {
            fs::create_dir_all(&parent)?;
        }
        fs::write(parent.join(format!("file-{index:07}")), format!("number {index}\n"))?;
    }
    Ok(())
}
