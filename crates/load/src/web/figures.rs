//! The figures of the paper, drawn anew: WebR2sync+ (FAST 2018), Figures 2 to 9 and 16 to 20. Of most the paper prints no numbers but the
//! drawing; where its text says how many times as long something takes, that stands beside ours.

use super::Network;
use super::cells::{DISPERSED, Edit, KINDS, PLACES, SIZES};
use super::row::{NATIVE, Row, Rows, title};
use lab::plot::{Plot, Series};

/// What Figure 16 compares, and Figures 18 to 20 with it.
const COMPARED: [&str; 8] = [
    NATIVE,
    "scriptPage",
    "webRsync",
    "webR2sync",
    "webR2syncPlus",
    "oursKept",
    "oursList",
    "oursNothing",
];

/// How many times as long as rsync WebRsync takes, from and to (section 3.3, Figure 2).
const WEB_RSYNC_OVER_RSYNC: [f64; 2] = [16.0, 35.0];

/// How many times as long as WebR2sync+ it takes (section 6.2, Figure 16).
const WEB_RSYNC_OVER_WEB_R2SYNC_PLUS: [f64; 2] = [15.0, 20.0];

/// How much of a sync by WebRsync is spent where: the client's share from and to, and what the line has less than (section 3.2, Figure 3).
const SHARES_OF_WEB_RSYNC: [Share; 3] = [
    ("client", "paper: 60 %", 0.6),
    ("client", "paper: 92 %", 0.92),
    ("line", "paper: < 5 %", 0.05),
];

/// Of WebR2sync+ most is spent at the server (section 6.3, Figure 17).
const SHARES_OF_WEB_R2SYNC_PLUS: [Share; 1] = [("server", "paper: > 50 %", 0.5)];

/// A stage, what the paper says of it, and as a share of the whole.
type Share = (&'static str, &'static str, f64);

/// How much of a core the browser takes at most by WebR2sync and WebR2sync+ (section 6.3, Figure 18).
const UTILISATION_OF_WEB_R2SYNC_PLUS: f64 = 0.3;

/// How much work rsync is for the client, beside WebRsync (section 6.3, Figure 18).
const RSYNC_WORK_OF_WEB_RSYNC: f64 = 0.5;

/// What a sync of a file of 1 MB moves, from and to, in bytes (section 6.3, Figure 20).
const TRAFFIC: [(&str, f64); 2] = [("paper: 1 KB", 1_000.0), ("paper: 120 KB", 120_000.0)];

/// Of which methods it is drawn where the time goes: name of the drawing, heading, method, and what the paper says.
const BREAKDOWNS: [(&str, &str, &str, &[Share]); 4] = [
    ("web-figure-3", "Figure 3: where the time goes", "scriptPage", &SHARES_OF_WEB_RSYNC),
    ("web-figure-9", "Figure 9: where the time goes", "webRsyncPlus", &[]),
    (
        "web-figure-17",
        "Figure 17: where the time goes",
        "webR2syncPlus",
        &SHARES_OF_WEB_R2SYNC_PLUS,
    ),
    ("web-breakdown-ours", "Where the time goes", "oursKept", &[]),
];

/// Draws everything that there are rows for: names and drawings.
pub fn all(rows: &[Row], standing: &[Row]) -> Vec<(String, String)> {
    let mut drawn = of_grid(rows);
    let methods = &super::row::METHODS_STAGNATION;
    drawn.push(("web-stagnation".to_owned(), stagnation(standing, methods)));
    drawn
}

/// Draws the grid.
pub fn of_grid(rows: &[Row]) -> Vec<(String, String)> {
    let all = Rows(rows);
    let mut drawn = Vec::new();
    for network in Network::ALL {
        let name = network.name();
        drawn.push((format!("web-figure-2-{name}"), slowdown(all, network)));
        for (figure, methods) in ON_THE_CLIENT {
            let drawing = on_the_client(all, network, figure, methods);
            drawn.push((format!("web-figure-{figure}-{name}"), drawing));
        }
        for kind in KINDS {
            drawn.push((format!("web-figure-16-{kind}-{name}"), times(all, network, kind)));
        }
        for size in DISPERSED {
            let drawing = dispersed(all, network, size);
            drawn.push((format!("web-figure-16-dispersed-{size}-{name}"), drawing));
        }
    }
    for kind in KINDS {
        drawn.push((format!("web-figure-20-{kind}"), traffic(all, kind)));
    }
    for kind in KINDS {
        for (name, heading, method, paper) in BREAKDOWNS {
            let drawing = breakdown(all, method, heading, kind, paper);
            drawn.push((format!("{name}-{kind}"), drawing));
        }
    }
    let client = |row: &Row| row.client_cpu_ms;
    let heading = "Figure 18: processor time of the browser";
    drawn.push(("web-figure-18".to_owned(), cost(all, heading, client, work_by_the_paper(all))));
    let heading = "Figure 19: processor time of the server";
    let server = cost(all, heading, |row| row.server_cpu_ms, Vec::new());
    drawn.push(("web-figure-19".to_owned(), server));
    drawn
}

/// The edit of a size that is in one place.
fn edit(kind: &'static str, size: usize) -> Edit {
    Edit { kind, size, places: 1 }
}

/// Draws methods over the sizes of one kind of edit; both axes count magnitudes.
fn over_sizes(
    title_text: String,
    up: &str,
    names: &[(String, &str, &'static str)],
    paper: Vec<Series>,
    figure: impl Fn(Edit, &str) -> Option<f64>,
) -> String {
    let series = names.iter().map(|(name, method, kind)| {
        let points = SIZES.iter().filter_map(|&size| {
            let value = figure(edit(kind, size), method)?;
            Some((size as f64, value))
        });
        Series::ours(name.clone(), points.collect())
    });
    let across = "edit, bytes".to_owned();
    let series = with_points(series.chain(paper));
    Plot { title: title_text, across, up: up.to_owned(), series }.lines_over_magnitudes()
}

/// Leaves out what was not measured.
fn with_points(series: impl Iterator<Item = Series>) -> Vec<Series> {
    series.filter(|series| !series.points.is_empty()).collect()
}

/// Returns what the paper says of a time: so many times that of another method here.
fn by_the_paper(name: &str, times: [f64; 2], figure: impl Fn(usize) -> Option<f64>) -> Vec<Series> {
    let series = times.map(|factor| {
        let points = SIZES.iter().filter_map(|&size| Some((size as f64, factor * figure(size)?)));
        Series::published(format!("{name}, paper: {factor} x"), points.collect())
    });
    series.into()
}

fn compared(kind: &'static str) -> Vec<(String, &'static str, &'static str)> {
    COMPARED.iter().map(|method| (title(method).to_owned(), *method, kind)).collect()
}

/// Figure 2: WebRsync in JavaScript on the page beside rsync.
fn slowdown(rows: Rows<'_>, network: Network) -> String {
    let mut names = Vec::new();
    for method in ["scriptPage", NATIVE] {
        names.extend(KINDS.map(|kind| (format!("{}, {kind}", title(method)), method, kind)));
    }
    let heading = format!("Figure 2: time of WebRsync and rsync, {}", network.title());
    let rsync = |size| rows.time_ms(network, edit("append", size), NATIVE);
    let paper = by_the_paper("append", WEB_RSYNC_OVER_RSYNC, rsync);
    over_sizes(heading, "ms", &names, paper, |edit, method| rows.time_ms(network, edit, method))
}

/// Figures 5, 6 and 8, and what each compares: compiled code, a worker, locality with light fingerprints.
const ON_THE_CLIENT: [(&str, &[&str]); 3] = [
    ("5", &["webRsync", "scriptPage", NATIVE]),
    ("6", &["scriptWorker", "scriptPage", NATIVE]),
    ("8", &["webRsyncPlus", "webRsync", "webR2syncPlus", NATIVE]),
];

/// Figures 5, 6 and 8: what can be done on the client's side. Each edit is made in its three kinds; the middle of them is drawn.
fn on_the_client(rows: Rows<'_>, network: Network, figure: &str, methods: &[&str]) -> String {
    let series = methods.iter().map(|&method| {
        let points = SIZES.iter().filter_map(|&size| {
            let kinds =
                KINDS.iter().filter_map(|kind| rows.time_ms(network, edit(kind, size), method));
            Some((size as f64, super::row::middle(kinds)?))
        });
        Series::ours(title(method), points.collect())
    });
    let title =
        format!("Figure {figure}: time of a sync, the middle of three kinds, {}", network.title());
    let (across, up) = ("edit, bytes".to_owned(), "ms".to_owned());
    Plot { title, across, up, series: series.collect() }.lines_over_magnitudes()
}

/// Figure 16: all methods.
fn times(rows: Rows<'_>, network: Network, kind: &'static str) -> String {
    let heading = format!("Figure 16: time of a sync, {kind}, {}", network.title());
    let figure = |edit, method: &str| rows.time_ms(network, edit, method);
    let plus = |size| rows.time_ms(network, edit(kind, size), "webR2syncPlus");
    let paper = by_the_paper("WebRsync", WEB_RSYNC_OVER_WEB_R2SYNC_PLUS, plus);
    over_sizes(heading, "ms", &compared(kind), paper, figure)
}

/// Figure 20: bytes both ways.
fn traffic(rows: Rows<'_>, kind: &'static str) -> String {
    let figure = |edit, method: &str| {
        rows.middle(Network::Line, edit, method, |row| Some((row.up + row.down) as f64))
    };
    let heading = format!("Figure 20: bytes up and down, {kind}");
    let paper = TRAFFIC.map(|(name, bytes)| {
        Series::published(name, SIZES.iter().map(|&size| (size as f64, bytes)).collect())
    });
    over_sizes(heading, "bytes", &compared(kind), paper.into(), figure)
}

/// Figure 16 for edits in several places.
fn dispersed(rows: Rows<'_>, network: Network, size: usize) -> String {
    let series = COMPARED.iter().map(|method| {
        let points = PLACES.iter().filter_map(|&places| {
            let edit = Edit { kind: "insert", size, places };
            Some((places as f64, rows.time_ms(network, edit, method)?))
        });
        Series::ours(title(method), points.collect())
    });
    let heading = format!("Time of a sync, {size} bytes put into places, {}", network.title());
    let (across, up) = ("places".to_owned(), "ms".to_owned());
    Plot { title: heading, across, up, series: with_points(series) }.lines_over_magnitudes()
}

/// Figures 3, 9 and 17: where the time of a kind of edits goes. What the client does not wait for is its own. What it waits for on loopback is the
/// server; what it waits for more on the line is the line.
fn breakdown(
    rows: Rows<'_>,
    method: &str,
    heading: &str,
    kind: &'static str,
    paper: &[Share],
) -> String {
    let waited = |network, edit| rows.middle(network, edit, method, |row: &Row| row.waited_ms);
    let own = |row: &Row| Some(row.time_ms - row.waited_ms?);
    let client = |edit| rows.middle(Network::Line, edit, method, own);
    let server = |edit| waited(Network::Loopback, edit);
    let line = |edit| Some((waited(Network::Line, edit)? - server(edit)?).max(0.0));
    let points = |part: &dyn Fn(Edit) -> Option<f64>| {
        let all = SIZES.iter().zip(0..);
        all.filter_map(|(&size, place)| Some((f64::from(place), part(edit(kind, size))?))).collect()
    };
    let ours = [("client", points(&client)), ("line", points(&line)), ("server", points(&server))];
    let mut series = Vec::from(ours.map(|(name, points)| Series::ours(name, points)));
    // The paper has shares; they are drawn of the whole that was measured here.
    for (stage, words, share) in paper {
        let part = |edit| Some(share * rows.time_ms(Network::Line, edit, method)?);
        series.push(Series::published(format!("{stage}, {words}"), points(&part)));
    }
    let groups: Vec<_> = SIZES.iter().map(|size| format!("{size} B")).collect();
    let heading = format!("{heading}, {}, {kind}", title(method));
    let (across, up) = ("edit".to_owned(), "ms".to_owned());
    Plot { title: heading, across, up, series }.bars(&groups)
}

/// Returns a figure of each kind of edit, the middle of all sizes, over the line.
fn of_kinds(
    rows: Rows<'_>,
    method: &str,
    figure: impl Fn(&Row) -> Option<f64> + Copy,
) -> Vec<(f64, f64)> {
    let of_kind = |(&kind, place): (&&'static str, i32)| {
        let of_size = |&size: &usize| rows.middle(Network::Line, edit(kind, size), method, figure);
        Some((f64::from(place), super::row::middle(SIZES.iter().filter_map(of_size))?))
    };
    KINDS.iter().zip(0..).filter_map(of_kind).collect()
}

/// Returns what the paper says of the browser's work: by how much of a core, and beside WebRsync.
fn work_by_the_paper(rows: Rows<'_>) -> Vec<Series> {
    let at_most = |row: &Row| Some(UTILISATION_OF_WEB_R2SYNC_PLUS * row.time_ms);
    let half = |row: &Row| Some(RSYNC_WORK_OF_WEB_RSYNC * row.client_cpu_ms?);
    vec![
        Series::published("WebR2sync+, paper: < 30 %", of_kinds(rows, "webR2syncPlus", at_most)),
        Series::published("rsync, paper: 0.5 x JS", of_kinds(rows, "scriptPage", half)),
    ]
}

/// Figures 18 and 19: processor time over kinds of edits.
fn cost(
    rows: Rows<'_>,
    heading: &str,
    figure: impl Fn(&Row) -> Option<f64> + Copy,
    paper: Vec<Series>,
) -> String {
    let methods = &COMPARED[1..];
    let series =
        methods.iter().map(|method| Series::ours(title(method), of_kinds(rows, method, figure)));
    let (series, groups) = (with_points(series.chain(paper)), KINDS.map(str::to_owned));
    let (across, up) = ("edit".to_owned(), "ms of one sync".to_owned());
    Plot { title: heading.to_owned(), across, up, series }.bars(&groups)
}

/// Figures 4 and 7: how long the page has not ticked, at each tick.
pub(super) fn stagnation(rows: &[Row], methods: &[&str]) -> String {
    let mut series: Vec<Series> = Vec::new();
    let worst = |method: &str| {
        let runs = rows.iter().filter(|row| row.method == method);
        runs.max_by(|one, other| {
            one.longest_gap_ms.unwrap_or(0.0).total_cmp(&other.longest_gap_ms.unwrap_or(0.0))
        })
    };
    for row in methods.iter().filter_map(|method| worst(method)) {
        let gaps = row.ticks_ms.windows(2).map(|pair| (pair[1].round(), pair[1] - pair[0]));
        series.push(Series::ours(title(&row.method), gaps.collect()));
    }
    let (across, up) =
        ("since the sync began, ms".to_owned(), "since the last tick, ms".to_owned());
    let heading = "Figures 4 and 7: whether the page stands still".to_owned();
    Plot { title: heading, across, up, series }.lines()
}
