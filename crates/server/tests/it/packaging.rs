//! What lies beside the program for those who run it.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;
use server::metrics::text::NAMES;

#[expect(clippy::disallowed_methods, reason = "the test reads the repository")]
fn dashboard() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/grafana-dashboard.json");
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// Returns what begins with the name of this program and is made of what names of metrics are made of.
fn metrics_in(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !(c.is_ascii_lowercase() || c == '_'));
    words.filter(|word| word.starts_with("syncline_"))
}

#[test]
fn the_dashboard_shows_every_metric_and_none_that_is_not_there() {
    let dashboard = dashboard();
    let mut shown = BTreeSet::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().unwrap() {
            for metric in metrics_in(target["expr"].as_str().unwrap()) {
                let name = ["_bucket", "_sum", "_count"]
                    .iter()
                    .find_map(|end| metric.strip_suffix(end))
                    .unwrap_or(metric);
                shown.insert(name.to_owned());
            }
        }
    }
    assert_eq!(shown, NAMES.iter().map(|name| (*name).to_owned()).collect());
}

#[test]
fn the_panels_of_the_dashboard_lie_beside_each_other() {
    let dashboard = dashboard();
    let mut places = BTreeSet::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        let at = |name: &str| panel["gridPos"][name].as_u64().unwrap();
        for x in at("x")..at("x") + at("w") {
            assert!(x < 24, "{panel}");
            for y in at("y")..at("y") + at("h") {
                assert!(places.insert((x, y)), "{panel}");
            }
        }
    }
}
