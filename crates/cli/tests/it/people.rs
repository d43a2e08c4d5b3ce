//! Accounts, devices, signing in and out.

use crate::support::{Device, Pair, Server, fill};

#[test]
fn a_wrong_password_is_refused_and_a_revoked_device_is_signed_out() {
    let pair = Pair::synced(true, fill);
    let server = pair.server.as_ref().unwrap();
    let third = Device::new(pair.room.path(), "third");
    let words = ["login", &server.url, "--user", "ada", "--password-stdin"];
    let refused = third.run_with_input(&words, "wrong").ends_with(4);
    assert!(refused.stderr.contains("E0402"), "{}", refused.stderr);
    third.run(&["whoami"]).ends_with(4);

    let devices = pair.one.run(&["device", "ls", "--json"]).ok().json();
    let devices = devices["devices"].as_array().unwrap();
    assert_eq!(devices.len(), 2);
    assert!(devices.iter().all(|device| device["last_in_sync"].is_string()), "{devices:?}");
    pair.one.run(&["device", "rename", "desktop", "old desktop"]).ok();
    let unconfirmed = pair.one.run(&["device", "revoke", "old desktop"]).ends_with(2);
    assert!(unconfirmed.stderr.contains("--yes"), "{}", unconfirmed.stderr);
    pair.one.run(&["device", "revoke", "old desktop", "--yes"]).ok();
    let before = pair.other.tree();
    let refused = pair.other.sync().ends_with(4).json();
    assert_eq!(refused["code"], "E0401");
    server.login(&third, "third");
    let listed = pair.one.run(&["device", "ls"]).ok().stdout;
    assert!(listed.contains("never in sync") && listed.contains(", in sync "), "{listed}");
    assert_eq!(pair.other.tree(), before);
}

#[test]
fn a_device_that_signs_in_again_goes_on() {
    let pair = Pair::synced(true, fill);
    pair.one.run(&["logout"]).ok();
    pair.one.write("a.txt", "while signed out\n");
    pair.one.sync().ends_with(4);
    pair.server.as_ref().unwrap().login(&pair.one, "laptop");
    pair.settle();
    pair.assert_equal();
    assert_eq!(pair.other.read("a.txt"), b"while signed out\n");
}

#[test]
fn two_devices_of_one_name_are_two_devices() {
    let pair = Pair::synced(true, fill);
    pair.one.run(&["device", "rename", "desktop", "laptop"]).ok();
    pair.one.run(&["device", "revoke", "laptop", "--yes"]).ends_with(2);
    for device in [&pair.one, &pair.other] {
        device.write(&format!("of {}", device.folder.file_name().unwrap().display()), "x");
    }
    pair.settle();
    pair.assert_equal();
    pair.one.run(&["conflicts"]).ok();
}

#[test]
fn accounts_are_managed_on_the_data_folder() {
    let room = tempfile::tempdir().unwrap();
    let device = Device::new(room.path(), "device");
    let data = room.path().join("data");
    let data = data.to_str().unwrap();
    device
        .run_with_input(
            &["user", "add", "bob", "--password-stdin", "--data", data],
            "bob's password",
        )
        .ok();
    let again = device
        .run_with_input(&["user", "add", "bob", "--password-stdin", "--data", data], "another one");
    assert!(again.ends_with(1).stderr.contains("E0406"));
    device.run(&["user", "add", "eve", "--data", data, "--no-input"]).ends_with(2);
    device.run(&["user", "quota", "bob", "1MiB", "--data", data]).ok();
    device
        .run_with_input(
            &["user", "passwd", "bob", "--password-stdin", "--data", data],
            "a new password",
        )
        .ok();
    let users = device.run(&["user", "ls", "--data", data, "--json"]).ok().json();
    assert_eq!(users["users"][0]["user"], "bob");
    assert_eq!(users["users"][0]["quota_bytes"], 1 << 20);
    device.run(&["user", "rm", "bob", "--data", data]).ends_with(2);
    device.run(&["user", "rm", "bob", "--data", data, "--yes"]).ok();
    device.run(&["user", "rm", "bob", "--data", data, "--yes"]).ends_with(1);
}

#[test]
fn people_are_invited_on_the_data_folder() {
    let room = tempfile::tempdir().unwrap();
    let device = Device::new(room.path(), "device");
    let data = room.path().join("data");
    let data = data.to_str().unwrap();
    let run = |words: &[&str]| {
        device.run(&[&["user", "invitation"], words, &["--data", data, "--json"]].concat())
    };
    let server = "https://cloud.example.org/";
    let invited = run(&["add", server, "--name", "eve", "--quota", "1MiB"]).ok().json();
    let url = invited["url"].as_str().unwrap().to_owned();
    let secret = url.strip_prefix("https://cloud.example.org/#/join/").unwrap();
    assert_eq!(secret.len(), 43);
    let said = (&invited["number"], &invited["state"], &invited["name"], &invited["quota_bytes"]);
    assert_eq!(said, (&1.into(), &"open".into(), &"eve".into(), &(1 << 20).into()));
    let words = ["user", "invitation", "add", server, "--expires", "90d", "--data", data];
    let shown = device.run(&words).ok().stdout;
    assert!(shown.starts_with("https://cloud.example.org/#/join/"), "{shown}");

    run(&["rm", "2"]).ok();
    let again = device.run(&["user", "invitation", "rm", "2", "--data", data]).ok().stdout;
    assert!(again.contains("had ended before"), "{again}");
    let listed = run(&["ls"]).ok().json();
    let states: Vec<_> =
        listed["invitations"].as_array().unwrap().iter().map(|one| &one["state"]).collect();
    assert_eq!(states, ["open", "taken_back"]);
    assert!(!listed.to_string().contains(secret), "it is shown once");
    let lines = device.run(&["user", "invitation", "ls", "--data", data]).ok().stdout;
    assert!(lines.contains("for eve, 1.0 MiB") && lines.contains("taken back"), "{lines}");

    run(&["rm", "3"]).ends_with(1);
    run(&["add", "cloud.example.org"]).ends_with(2);
    run(&["add", server, "--quota", "much"]).ends_with(2);
    run(&["add", server, "--expires", "91d"]).ends_with(2);
    run(&["add", server, "--name", "a b"]).ends_with(2);
    device
        .run_with_input(&["user", "add", "eve", "--password-stdin", "--data", data], "a password")
        .ok();
    assert_eq!(run(&["add", server, "--name", "eve"]).ends_with(1).json()["code"], "E0406");
}

#[test]
fn a_full_quota_is_told_and_nothing_is_lost() {
    let pair = Pair::synced(true, fill);
    let data = pair.server.as_ref().unwrap().data.clone();
    pair.one.run(&["user", "quota", "ada", "3MiB", "--data", data.to_str().unwrap()]).ok();
    pair.one.write("too big", crate::support::noise(9_000_000).split_off(3_000_000));
    let refused = pair.one.sync().ends_with(7).json();
    assert_eq!(refused["code"], "E0302");
    assert!(pair.one.has("too big"));
    pair.one.run(&["user", "quota", "ada", "none", "--data", data.to_str().unwrap()]).ok();
    pair.settle();
    pair.assert_equal();
}

#[test]
fn workspaces_of_other_accounts_do_not_exist() {
    let room = tempfile::tempdir().unwrap();
    let server = Server::start(room.path());
    let (ada, bob) = (Device::new(room.path(), "ada"), Device::new(room.path(), "bob"));
    server.login(&ada, "laptop");
    ada.run(&["init", "--workspace", "Diary"]).ok();
    let data = server.data.to_str().unwrap();
    bob.run_with_input(
        &["user", "add", "bob", "--password-stdin", "--data", data],
        "bob's password",
    )
    .ok();
    bob.run_with_input(
        &["login", &server.url, "--user", "bob", "--password-stdin"],
        "bob's password",
    )
    .ok();
    let refused = bob.run(&["clone", "Diary", "here", "--json"]).ends_with(10).json();
    assert_eq!(refused["code"], "E0404");
    assert!(!bob.has("here"));
}

#[test]
fn the_token_is_in_a_file_that_nobody_else_reads() {
    use std::os::unix::fs::PermissionsExt;
    let pair = Pair::new(true);
    let mode = pair.one.home.join("account.toml").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}
