//! `bench latency`: from the close of a small file on one device until it is whole on all others.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::inputs::SEED;
use super::place::WorkFolder;
use super::sample::percentile;
use super::{Options, environment};
use crate::arguments::Arguments;
use crate::failure::{Result, fail};
use crate::random::Random;
use crate::syncline::{self, Background, Device, Place, Server};

const POLL: Duration = Duration::from_micros(200);
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) fn run(what: String, mut arguments: Arguments) -> Result<()> {
    let samples: u32 = arguments.value_or("--samples", 200)?;
    let devices: usize = arguments.value_or("--devices", 0)?;
    let options = Options::take(&what, &mut arguments)?;
    arguments.finish()?;
    let mut lines = String::from("file_system,devices,sample,milliseconds\n");
    for file_system in &options.file_systems {
        // Without a wish: a pair, and the six of the papers.
        for count in if devices == 0 { vec![2, 6] } else { vec![devices.max(2)] } {
            let place = WorkFolder::new(file_system, &options.work)?;
            let taken = if options.quick { 20 } else { samples };
            let latencies = measure(options.our_binary()?, place.path(), count, taken)?;
            print_percentiles(file_system, count, &latencies);
            for (index, latency) in latencies.iter().enumerate() {
                let _ok = writeln!(lines, "{file_system},{count},{index},{latency:.3}");
            }
        }
    }
    environment::write(&options.out, &[], &[])?;
    fs::write(options.out.join("latency.csv"), lines)?;
    println!("every sample: {}", options.out.display());
    Ok(())
}

fn print_percentiles(file_system: &str, devices: usize, latencies: &[f64]) {
    let at = |percent| percentile(latencies, percent).unwrap_or(0.0);
    println!(
        "{file_system}, {devices} devices, {} samples: p50 {:.1} ms, p90 {:.1} ms, p99 {:.1} ms, \
         max {:.1} ms",
        latencies.len(),
        at(50.0),
        at(90.0),
        at(99.0),
        at(100.0)
    );
}

/// Milliseconds of every sample, from the first device to the last of the others.
fn measure(binary: &Path, room: &Path, devices: usize, samples: u32) -> Result<Vec<f64>> {
    let server = Server::start(binary, &room.join("server"))?;
    let devices = start_devices(binary, room, &server, devices)?;
    let mut random = Random::for_part(SEED, "latency");
    // The first files wait until every watch is up; they are not counted.
    for number in 0..3 {
        one_file(&devices, &format!("warm-up-{number}"), &random.text(1000))?;
    }
    let mut latencies = Vec::new();
    for number in 0..samples {
        sleep(Duration::from_millis(random.between(20, 80)));
        let length = usize::try_from(random.between(100, 4000)).unwrap_or(100);
        latencies.push(one_file(&devices, &format!("note-{number}.txt"), &random.text(length))?);
    }
    Ok(latencies)
}

pub(super) fn start_devices(
    binary: &Path,
    room: &Path,
    server: &Server,
    count: usize,
) -> Result<Vec<(Device, Background)>> {
    let mut devices = Vec::new();
    for index in 0..count {
        let name = format!("device-{index}");
        let device = syncline::device(binary, room, &name, Place::Served);
        device.login(&server.url(), &name)?;
        if index == 0 {
            fs::create_dir_all(&device.folder)?;
            device.init()?;
            device.sync()?;
        } else {
            device.clone_workspace()?;
        }
        let watch = device.watch()?;
        devices.push((device, watch));
    }
    Ok(devices)
}

fn one_file(devices: &[(Device, Background)], name: &str, content: &[u8]) -> Result<f64> {
    let Some(((first, _), others)) = devices.split_first() else { return fail("no device") };
    fs::write(first.folder.join(name), content)?;
    let start = Instant::now();
    for (device, _) in others {
        let path = device.folder.join(name);
        let has_all = || fs::read(&path).is_ok_and(|read| read == content);
        // Reading only what has its full length keeps the poll cheap.
        let is_long = || fs::metadata(&path).is_ok_and(|found| found.len() == content.len() as u64);
        while !(is_long() && has_all()) {
            if start.elapsed() > PATIENCE {
                return fail(format!("{name} did not reach {} in 60 s", device.folder.display()));
            }
            sleep(POLL);
        }
    }
    Ok(start.elapsed().as_secs_f64() * 1000.0)
}
