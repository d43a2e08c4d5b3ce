//! `bench idle`: a watch with the source tree loaded and nothing to do.

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use super::inputs::{self, InputOptions, files_below, mirror};
use super::place::WorkFolder;
use super::{Options, environment};
use crate::arguments::Arguments;
use crate::failure::Result;
use crate::process;
use crate::syncline::{self, Place, Server};

pub(super) fn run(what: String, mut arguments: Arguments) -> Result<()> {
    let seconds: u64 = arguments.value_or("--seconds", 30)?;
    let options = Options::take(&what, &mut arguments)?;
    arguments.finish()?;
    let (settle, seconds) = if options.quick { (2, seconds.min(3)) } else { (15, seconds) };
    let cache = options.work.join("inputs");
    let input_options = InputOptions { cache, quick: options.quick, releases: None };
    let tree = inputs::build("tree", &input_options)?;
    let mut lines = String::from("file_system,program,seconds,cpu_seconds,rss_mib,peak_mib\n");
    for file_system in &options.file_systems {
        let place = WorkFolder::new(file_system, &options.work)?;
        let binary = options.our_binary()?;
        let server = Server::start(binary, &place.path().join("server"))?;
        let device = syncline::device(binary, place.path(), "only", Place::Served);
        mirror(&tree.base, &device.folder)?;
        device.login(&server.url(), "only")?;
        device.init()?;
        device.sync()?;
        let watch = device.watch()?;
        // Setting the watches and the first scan are not idleness.
        sleep(Duration::from_secs(settle));
        let files = files_below(&device.folder)?.len();
        for (name, id) in [("watch", watch.id()), ("serve", server.id())] {
            let before = process::running(id)?.cpu_seconds;
            sleep(Duration::from_secs(seconds));
            let after = process::running(id)?;
            let spent = after.cpu_seconds - before;
            println!(
                "{file_system}, {files} files, {name}: CPU {spent:.2} s in {seconds} s, RSS {:.0} \
                 MiB (peak {:.0})",
                after.rss_mib, after.peak_mib
            );
            lines.push_str(&format!(
                "{file_system},{name},{seconds},{spent:.2},{:.1},{:.1}\n",
                after.rss_mib, after.peak_mib
            ));
        }
    }
    environment::write(&options.out, &[], &[tree.note])?;
    fs::write(options.out.join("idle.csv"), lines)?;
    println!("figures: {}", options.out.display());
    Ok(())
}
