//! The stores of a workspace.

use rustix::process::Signal;

use crate::background::{start_watch, wait_until};
use crate::support::{Pair, fill, terminate};

#[test]
fn settings_of_the_stores_reach_the_other_device_with_the_log() {
    let pair = Pair::synced(false, fill);
    let listed = pair.one.run(&["backend", "ls", "--json"]).ok().json();
    let name = listed["stores"][0]["name"].as_str().unwrap().to_owned();
    assert_eq!(listed["stores"][0]["capacity"], 100);
    pair.one.run(&["backend", "set", &name, "--capacity", "7"]).ok();
    for device in [&pair.one, &pair.other] {
        let summary = device.sync().ok().json();
        assert_eq!(summary["problems"].as_array().unwrap().len(), 0, "{summary}");
        let listed = device.run(&["backend", "ls", "--json"]).ok().json();
        assert_eq!(listed["stores"][0]["capacity"], 7);
        assert_eq!(listed["settings_version"], 1);
    }
    let log = pair.other.run(&["log", "--json"]).ok().json();
    assert_eq!(
        (&log["versions"][0]["is_settings"], &log["versions"][0]["is_deletion"]),
        (&true.into(), &false.into())
    );
    pair.assert_equal();
}

#[test]
fn a_store_that_is_mounted_elsewhere_is_reached_there() {
    let pair = Pair::synced(false, fill);
    let listed = pair.one.run(&["backend", "ls", "--json"]).ok().json();
    let (name, url) = (&listed["stores"][0]["name"], &listed["stores"][0]["url"]);
    let (name, url) = (name.as_str().unwrap(), url.as_str().unwrap());
    let moved = format!("{url}-moved");
    let path = |url: &str| url.strip_prefix("file:").unwrap().to_owned();
    std::fs::rename(path(url), path(&moved)).unwrap();
    pair.one.sync().ends_with(6);
    // An address that leads nowhere is not taken.
    pair.one.run(&["backend", "set", name, "--url", "file:/nowhere", "--here"]).ends_with(6);
    pair.one.run(&["backend", "set", name, "--url", &moved, "--here"]).ok();
    pair.one.sync().ok();
    pair.other.sync().ends_with(6);
}

#[test]
fn what_no_pool_can_be_is_refused_and_nothing_is_changed() {
    let pair = Pair::synced(false, fill);
    let name = pair.one.run(&["backend", "ls", "--json"]).ok().json()["stores"][0]["name"].clone();
    let name = name.as_str().unwrap();
    for words in [
        &["backend", "set", "--replicas", "2"][..],
        &["backend", "set", "--erasure", "1/2"],
        &["backend", "set", "nobody", "--capacity", "7"],
        &["backend", "set", name, "--capacity", "0"],
        &["backend", "set"],
    ] {
        pair.one.run(words).ends_with(2);
    }
    let listed = pair.one.run(&["backend", "ls", "--json"]).ok().json();
    assert_eq!(listed["settings_version"], 0);
    let checked = pair.one.run(&["backend", "check", name, "--json"]).ok().json();
    assert_eq!(checked["stores"][0]["is_well"], true);
}

#[test]
fn a_workspace_on_a_server_has_no_stores_of_its_own() {
    let pair = Pair::synced(true, fill);
    let run = pair.one.run(&["backend", "ls"]).ends_with(2);
    assert!(run.stderr.contains("lives on"), "{}", run.stderr);
}

#[test]
fn a_running_watch_follows_other_settings_and_goes_on() {
    let pair = Pair::synced(false, fill);
    let mut watch = start_watch(&pair.other);
    let name = pair.one.run(&["backend", "ls", "--json"]).ok().json()["stores"][0]["name"].clone();
    pair.one.run(&["backend", "set", name.as_str().unwrap(), "--capacity", "7"]).ok();
    let capacity = || {
        pair.other.run(&["backend", "ls", "--json"]).ok().json()["stores"][0]["capacity"].clone()
    };
    wait_until("the new settings", || capacity() == 7);
    pair.one.write("later", "after the settings\n");
    pair.one.sync().ok();
    wait_until("a later file", || pair.other.has("later"));
    assert_eq!(terminate(&mut watch, Signal::TERM), Some(143));
}
