//! Folders over several stores: MetaSync 2015, Figure 10 and Table 7.

use std::error::Error;
use std::fmt::Write;
use std::time::Duration;

use model::pool::Redundancy;
use testkit::clouds::folders::{clone_at_rest, send_and_receive};
use testkit::clouds::services::{Region, Service, figure_10, table_4};
use testkit::clouds::workloads::{Workload, paper_folder, photos, source_tree};

use lab::output::{Output, median, say};
use lab::plot::{Plot, Series};

/// What is measured over: a name, the services, how objects are kept.
pub(crate) type Setting = (String, Vec<Service>, Redundancy);

/// The settings of Table 7.
const SETTINGS: [&str; 10] = [
    "Dropbox", "Google", "Box", "OneDrive", "Baidu", "S=5 R=1", "S=5 R=2", "S=4 R=1", "S=4 R=2",
    "3 of 5",
];

/// Table 7 of the paper, in seconds, in the order of [`SETTINGS`]: native clients, then MetaSync. `None` is "more than
/// three hours", or not measured.
const TABLE_7: [(&str, [Option<f64>; 9]); 3] = [
    (
        "source tree",
        [
            Some(9900.0),
            None,
            None,
            Some(7380.0),
            None,
            Some(4080.0),
            Some(831.0),
            Some(1137.0),
            Some(738.0),
        ],
    ),
    (
        "paper folder",
        [
            Some(48.0),
            Some(42.0),
            Some(148.0),
            Some(54.0),
            Some(143.0),
            Some(55.0),
            Some(50.0),
            Some(27.0),
            Some(26.0),
        ],
    ),
    (
        "photos",
        [
            Some(415.0),
            Some(143.0),
            Some(536.0),
            Some(1131.0),
            Some(1837.0),
            Some(1185.0),
            Some(180.0),
            Some(137.0),
            Some(112.0),
        ],
    ),
];

/// Measures and writes everything about folders.
pub(crate) fn run(seeds: u64, output: &Output) -> Result<(), Box<dyn Error>> {
    let mut csv = "figure,workload,setting,seed,send_s,receive_s,sent_bytes,received_bytes,\
                   send_requests,receive_requests\n"
        .to_owned();
    clones(seeds, &mut csv, output)?;
    end_to_end(seeds, &mut csv, output)?;
    output.write_csv("folders", &csv)?;
    Ok(())
}

/// Figure 10: a clone of photos from one, two and three stores.
fn clones(seeds: u64, csv: &mut String, output: &Output) -> Result<(), Box<dyn Error>> {
    let settings = clone_settings();
    say("\n| clone of 193 MB | s | MB/s | part of the sum of its stores |");
    say("|---|---|---|---|");
    let mut rates: Vec<(&str, f64)> = Vec::new();
    let mut points = Vec::new();
    for (index, (name, stores, redundancy)) in settings.iter().enumerate() {
        let mut times = Vec::new();
        for seed in 0..seeds {
            let workload = photos(seed);
            let clone = clone_at_rest(stores, *redundancy, &workload, seed)?;
            let (seconds, requests) = (clone.took.as_secs_f64(), clone.requests.len());
            let received = clone.report.received_bytes;
            // Writing to a String cannot fail.
            let _ok =
                writeln!(csv, "10,photos,\"{name}\",{seed},,{seconds:.3},,{received},,{requests}");
            times.push(clone.took);
        }
        let seconds = median(&times);
        let rate = 193.0 / seconds;
        if let [store] = stores.as_slice() {
            rates.push((store.name, rate));
        }
        let of_stores = rates.iter().filter(|(name, _)| stores.iter().any(|s| s.name == *name));
        let sum: f64 = of_stores.map(|(_, rate)| rate).sum();
        say(&format!("| {name} | {seconds:.1} | {rate:.2} | {:.2} |", rate / sum));
        points.push((index as f64, seconds));
    }
    let paper = vec![(0.0, 193.0 / 5.1), (1.0, 193.0 / 3.4), (2.0, 70.0), (4.0, 25.5)];
    let plot = Plot {
        title: "Clone of 193 MB of photos (cf. MetaSync, Figure 10)".to_owned(),
        across: String::new(),
        up: "seconds, median".to_owned(),
        series: vec![Series::ours("ours, emulated", points), Series::published("MetaSync", paper)],
    };
    let names: Vec<_> = settings.into_iter().map(|(name, ..)| name).collect();
    output.write_svg("metasync-10", &plot.bars(&names))?;
    Ok(())
}

/// Table 7: from one device to another.
fn end_to_end(seeds: u64, csv: &mut String, output: &Output) -> Result<(), Box<dyn Error>> {
    say(
        "\n| from one device to another, s | setting | send | receive | both | MetaSync or native client |",
    );
    say("|---|---|---|---|---|---|");
    for (number, (name, paper)) in TABLE_7.into_iter().enumerate() {
        let mut points = Vec::new();
        for (index, setting) in settings().iter().enumerate() {
            // The tree is large, and its figures differ by a few per cent.
            let seeds = if number == 0 { seeds.min(3) } else { seeds };
            let runs = (0..seeds).map(|seed| end_to_end_once(name, setting, seed, csv));
            let runs: Vec<_> = runs.collect::<Result<_, _>>()?;
            let middle =
                |part: usize| median(&runs.iter().map(|run| run[part]).collect::<Vec<_>>());
            let published = paper.get(index).copied().flatten();
            let published = published.map_or_else(String::new, |seconds| format!("{seconds:.0}"));
            let (send, receive, both) = (middle(0), middle(1), middle(2));
            say(&format!(
                "| {name} | {} | {send:.1} | {receive:.1} | {both:.1} | {published} |",
                setting.0
            ));
            points.push((index as f64, both));
        }
        let file = format!("metasync-table-7-{}", name.replace(' ', "-"));
        let plot = Plot {
            title: format!("{name}, from one device to another (cf. MetaSync, Table 7)"),
            across: String::new(),
            up: "seconds, median".to_owned(),
            series: vec![Series::ours("ours, emulated", points)],
        };
        output.write_svg(&file, &plot.bars(&SETTINGS.map(str::to_owned)))?;
    }
    Ok(())
}

/// Returns what sending, receiving and both took.
fn end_to_end_once(
    name: &str,
    (setting, services, redundancy): &Setting,
    seed: u64,
    csv: &mut String,
) -> Result<[Duration; 3], Box<dyn Error>> {
    let workload = workload(name, seed);
    let [sent, received] = send_and_receive(services, *redundancy, &workload, seed)?;
    let _ok = writeln!(
        csv,
        "table 7,{name},{setting},{seed},{:.3},{:.3},{},{},{},{}",
        sent.took.as_secs_f64(),
        received.took.as_secs_f64(),
        sent.report.sent_bytes,
        received.report.received_bytes,
        sent.requests.len(),
        received.requests.len()
    );
    Ok([sent.took, received.took, sent.took + received.took])
}

/// Draws a folder by its name in Table 7.
pub(crate) fn workload(name: &str, seed: u64) -> Workload {
    match name {
        "source tree" => source_tree(seed),
        "paper folder" => paper_folder(seed),
        _ => photos(seed),
    }
}

/// Returns what Figure 10 is measured over.
pub(crate) fn clone_settings() -> Vec<Setting> {
    let services = figure_10();
    let alone = services
        .iter()
        .map(|service| (service.name.to_owned(), vec![*service], Redundancy::Replicas(1)));
    let two =
        |copies| (format!("two, R={copies}"), services[..2].to_vec(), Redundancy::Replicas(copies));
    let three =
        |copies| (format!("all, R={copies}"), services.clone(), Redundancy::Replicas(copies));
    let blocks =
        ("all, 2 of 3".to_owned(), services.clone(), Redundancy::Erasure { data: 2, total: 3 });
    alone.chain([two(1), two(2), three(1), three(2), three(3), blocks]).collect()
}

/// Expands [`SETTINGS`].
pub(crate) fn settings() -> Vec<Setting> {
    let services = table_4(Region::UnitedStates);
    let without_baidu: Vec<_> =
        services.iter().filter(|service| service.name != "Baidu").copied().collect();
    let expand = |name: &str| {
        let one = services.iter().find(|service| service.name == name);
        let (stores, redundancy) = match (one, name) {
            (Some(one), _) => (vec![*one], Redundancy::Replicas(1)),
            (None, "3 of 5") => (services.clone(), Redundancy::Erasure { data: 3, total: 5 }),
            (None, _) => {
                let copies = if name.ends_with('2') { 2 } else { 1 };
                let stores = if name.starts_with("S=4") { &without_baidu } else { &services };
                (stores.clone(), Redundancy::Replicas(copies))
            }
        };
        (name.to_owned(), stores, redundancy)
    };
    SETTINGS.map(expand).to_vec()
}
