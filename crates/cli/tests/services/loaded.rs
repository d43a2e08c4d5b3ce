//! The load lab over gateways and sync services, a PostgreSQL and real brokers: small, and with accidents. Each case takes one broker here, to
//! be short; the other has its bad days among those of the servers. One case is about a server by itself, and here because it takes half a minute.

use std::path::PathBuf;
use std::sync::PoisonError;
use std::time::Duration;

use lab::output::Output;
use load::cases::{self, Options, Scaled};
use load::report::Report;

use crate::stage::{ALONE, running_file};

/// Runs cases; that they end well means that no commit has failed, and that the judge found nothing wrong.
fn run(only: &[&str], broker: &'static str, folder: &std::path::Path, commits: u64) -> Report {
    let options = Options {
        binary: PathBuf::from(env!("CARGO_BIN_EXE_syncline")),
        work: folder.to_owned(),
        only: only.iter().map(|name| (*name).to_owned()).collect(),
        quick: true,
        seed: 7,
        writers: 20,
        length: Duration::from_secs(2),
        rates: vec![100.0],
        idle: Vec::new(),
        scaled: Scaled {
            services: Some(running_file()),
            brokers: vec![broker],
            sync_services: vec![2],
            gateways: 2,
            commits,
        },
    };
    let output = Output::new(folder.join("csv"), folder.join("svg")).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(cases::run(&options, &output)).unwrap()
}

#[test]
fn gateways_and_sync_services_are_measured_and_one_may_come_go_and_die_under_load() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let report = run(&["limit", "scaled", "instances"], "nats", folder.path(), 0);
    assert!(report.limits.iter().all(|limit| limit.commits_per_second() > 0.0));
    assert_eq!(report.scaled.len(), 2, "a rate and saturation");
    assert!(report.scaled.iter().all(|one| one.group_size >= 1.0 && one.run.figures.sent > 0));
    let lines = |name: &str| {
        let text = std::fs::read_to_string(folder.path().join("csv").join(name)).unwrap();
        text.lines().count() - 1
    };
    // Two of pgbench's own, and four sizes of groups.
    assert_eq!((lines("limit.csv"), lines("scaled.csv")), (2 + 4, 2));
    let drawn = folder.path().join("svg").join("figure-7-nats.svg");
    let drawn = std::fs::read_to_string(drawn).unwrap();
    assert!(drawn.contains("StackSync") && drawn.contains("2 services, p99"), "{drawn}");
}

#[test]
fn requests_are_measured_while_files_and_workspaces_become_more() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let report = run(&["growth"], "nats", folder.path(), 0);
    // Two sizes of each with a first look and ten requests, and the ten while others commit.
    assert_eq!(report.growth.len(), 4 * 11 + 10);
    assert!(report.growth.iter().all(|one| one.delays.percentile(50.0).is_some()));
    assert_eq!(report.runs[0].figures.answered, report.runs[0].figures.sent);
    let drawn = std::fs::read_to_string(folder.path().join("svg/growth-files.svg")).unwrap();
    assert!(drawn.contains("commit a change") && drawn.contains("<polyline"), "{drawn}");
}

#[test]
fn commits_under_accidents_stand_in_the_log_once() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let report = run(&["million"], "rabbitmq", folder.path(), 3000);
    let [one] = &report.millions[..] else { panic!("one broker") };
    assert_eq!((one.answered, one.known, one.accidents), (3000, 3000, 6), "{one:?}");
    assert_eq!((one.refused, one.violations), (0, 0), "{one:?}");
}
