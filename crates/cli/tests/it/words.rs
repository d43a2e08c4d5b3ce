//! What is typed, and what is read.

use std::process::Command;

use crate::support::{Device, Pair, Run, SYNCLINE, fill};

#[test]
fn help_lists_exactly_the_commands_of_the_contract() {
    let help = Command::new(SYNCLINE).arg("--help").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let section = help.split("Commands:").nth(1).unwrap().split("\n\n").next().unwrap();
    let listed: Vec<_> = section
        .lines()
        .filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next())
        .collect();
    let contract = [
        "init",
        "clone",
        "sync",
        "watch",
        "daemon",
        "status",
        "ls",
        "log",
        "cat",
        "restore",
        "conflicts",
        "resolve",
        "checkin",
        "fetch",
        "merge",
        "push",
        "up",
        "down",
        "login",
        "logout",
        "whoami",
        "account",
        "device",
        "token",
        "share",
        "backend",
        "key",
        "pair",
        "check",
        "cleanup",
        "gateway",
        "serve",
        "user",
        "admin",
        "doctor",
        "demo",
        "lab",
        "bench",
        "trace",
        "completion",
        "man",
        "version",
        "help",
    ];
    assert_eq!(listed, contract);
}

#[test]
fn usage_errors_end_with_2_and_name_what_is_right() {
    let oidc = |issuer, address| {
        let words = ["--oidc-issuer", issuer, "--oidc-client", "a", "--oidc-address", address];
        [&["serve"], &words[..]].concat()
    };
    let room = tempfile::tempdir().unwrap();
    let device = Device::new(room.path(), "device");
    let backend = |name: &str| format!("{name}=file:{}", room.path().join(name).display());
    let (one, two) = (backend("one"), backend("two"));
    for (words, wanted) in [
        (vec!["snyc"], "sync"),
        (vec!["sync", "--colour", "never"], "--color"),
        (vec!["init", "--sealed", "--backend", &one], "SYNCLINE_PASSPHRASE_FILE"),
        (vec!["init", "--backend", &one], "SYNCLINE_PASSPHRASE_FILE"),
        (vec!["init", "--replicas", "3", "--backend", &one, "--backend", &two], "there are 2"),
        (vec!["init", "--backend", &one, "--backend", &one], "two stores"),
        (vec!["init", "--replicas", "2", "--backend", &one], "there are 1"),
        (vec!["init", "--erasure", "2/3", "--backend", &one], "there are 1"),
        (vec!["init", "--erasure", "2:3", "--backend", &one], "K/N"),
        (vec!["init", "--replicas", "2"], "--backend"),
        (vec!["init", "--backend", "no url"], "NAME=URL"),
        (vec!["init", "--plain", "--backend", "x=gopher:bucket"], "file:"),
        (vec!["serve", "--broker", "amqp://localhost"], "--database"),
        (vec!["serve", "--database", "mysql://x"], "postgres://"),
        (
            vec!["serve", "--database", "postgres://a:b@localhost/c"],
            "SYNCLINE_DATABASE_PASSWORD_FILE",
        ),
        (vec!["serve", "--role", "gateway"], "broker"),
        (vec!["serve", "--role", "manager"], "sync-service"),
        (vec!["serve", "--role", "supervisor"], "--broker"),
        (vec!["serve", "--role", "supervisor", "--instances", "3..1"], "1..8"),
        (
            vec!["serve", "--database", "postgres://a@localhost/c", "--broker", "kafka://x"],
            "amqp://",
        ),
        (
            vec!["serve", "--database", "postgres://a@localhost/c", "--broker", "nats://a:b@x"],
            "SYNCLINE_BROKER_PASSWORD_FILE",
        ),
        (vec!["user", "ls", "--database", "postgres://a@db.example.org/c"], "sslmode=verify-full"),
        (vec!["login", "ftp://x", "--user", "a", "--password-stdin"], "https:"),
        (vec!["serve", "--tls-cert", "server.pem"], "--tls-key"),
        (vec!["serve", "--oidc-issuer", "https://id.example.org"], "--oidc-client"),
        (oidc("http://x.org", "https://cloud.example.org"), "https:"),
        (oidc("https://x.org", "ftp://cloud.example.org"), "ftp:"),
        (vec!["login", "http://127.0.0.1:1"], "--user"),
        (vec!["login", "http://127.0.0.1:1", "--oidc", "--user", "a"], "--user"),
        (vec!["login", "http://127.0.0.1:1", "--user", "a"], "--password-stdin"),
        (vec!["resolve", "x", "--keep", "all"], "mine"),
    ] {
        let run = device.run(&words).ends_with(2);
        assert!(run.stderr.contains(wanted), "{words:?}: {}", run.stderr);
    }
    assert!(!device.has(".syncline"), "none of them changed anything");
}

#[test]
fn the_password_of_a_broker_stands_in_the_file_that_a_variable_names() {
    let room = tempfile::tempdir().unwrap();
    let device = Device::new(room.path(), "device");
    let data = room.path().join("data");
    let words =
        ["serve", "--broker", "nats://somebody@127.0.0.1:1", "--data", data.to_str().unwrap()];
    // Nobody is at this port, which is found out after the addresses were read.
    let database = ["--database", "postgres://somebody@127.0.0.1:1/syncline"];
    let mut command = device.command(&words);
    let without = Run::of(command.args(database).output().unwrap()).ends_with(2);
    assert!(without.stderr.contains("belong together"), "{}", without.stderr);
    device.write("password", "a secret\n");
    command.env("SYNCLINE_BROKER_PASSWORD_FILE", device.folder.join("password"));
    let with = Run::of(command.output().unwrap());
    assert!(!with.stderr.contains("belong together") && with.code != 0, "{with:?}");
}

#[test]
fn errors_have_their_style() {
    let room = tempfile::tempdir().unwrap();
    let device = Device::new(room.path(), "device");
    let text = device.run(&["sync"]).ends_with(10).stderr;
    let folder = device.folder.display();
    assert_eq!(
        text,
        format!(
            "error[E0201]: {folder} is not in a synced folder\n   \
             help: syncline init              makes it one\n         \
             syncline clone WORKSPACE   gets an existing workspace\n"
        )
    );
    let text = device.run(&["init"]).ends_with(4).stderr;
    assert_eq!(
        text,
        "error[E0401]: this device is not signed in to a server\n   \
         help: syncline login URL --user NAME   signs in\n         \
         --backend NAME=URL               works without a server, in a plain store\n"
    );
    let text = device
        .run_with_input(&["login", "http://127.0.0.1:1", "--user", "a", "--password-stdin"], "x")
        .ends_with(6)
        .stderr;
    assert_eq!(
        text,
        "error[E0412]: cannot reach the server http://127.0.0.1:1\n  \
         cause: connection refused\n  \
         state: nothing was lost; what was not sent is still in the folder and goes with the next sync\n   \
         help: syncline sync     once the server is back\n         \
         syncline doctor   looks for the reason\n"
    );
}

#[test]
fn json_is_alone_on_stdout_and_errors_are_its_last_line() {
    let pair = Pair::synced(false, fill);
    for words in [
        &["sync", "--json"][..],
        &["sync", "-v", "--json"],
        &["status", "--json"],
        &["ls", "--json"],
        &["log", "--json"],
        &["conflicts", "--json"],
        &["doctor", "--json"],
        &["version", "--json"],
        &["whoami", "--json"],
        &["cat", "a.txt", "--json"],
        &["sync", "/nowhere", "--json"],
        &["snyc", "--json"],
    ] {
        let run = pair.one.run(words);
        assert!(!run.stdout.is_empty(), "{words:?}: {run:?}");
        for line in run.stdout.lines() {
            let value: serde_json::Value = serde_json::from_str(line)
                .unwrap_or_else(|error| panic!("{words:?}: {error}: {line}"));
            assert!(value["schema"].as_str().unwrap().starts_with("syncline."), "{line}");
        }
        assert_eq!(run.code == 0, run.json()["type"] != "error", "{words:?}");
    }
}

#[test]
fn the_guide_knows_every_schema() {
    let guide = include_str!("../../../../docs/guide/json.md");
    let pair = Pair::synced(false, fill);
    for words in [
        &["sync", "--json"][..],
        &["status", "--json"],
        &["ls", "--json"],
        &["log", "--json"],
        &["conflicts", "--json"],
        &["doctor", "--json"],
    ] {
        let value = pair.one.run(words).json();
        assert!(guide.contains(value["schema"].as_str().unwrap()), "{value}");
        for field in value.as_object().unwrap().keys() {
            assert!(
                guide.contains(&format!("`{field}`")),
                "{field} of {words:?} is not in the guide"
            );
        }
    }
}

#[test]
fn man_pages_and_completions_are_generated() {
    let room = tempfile::tempdir().unwrap();
    let device = Device::new(room.path(), "device");
    device.run(&["man", "--out", "pages"]).ok();
    for page in ["syncline.1", "syncline-sync.1", "syncline-device-revoke.1"] {
        assert!(device.has(&format!("pages/{page}")), "{page}");
    }
    assert!(device.run(&["man", "sync"]).ok().stdout.contains("SYNOPSIS"));
    for shell in ["bash", "zsh", "fish"] {
        assert!(device.run(&["completion", shell]).ok().stdout.contains("resolve"));
    }
}

#[test]
fn a_report_of_the_doctor_says_that_all_is_well() {
    let pair = Pair::synced(true, fill);
    let report = pair.one.run(&["doctor"]).ok().stdout;
    for word in ["database", "whole", "server", "log", "lock", "disk"] {
        assert!(report.contains(word), "{word} is missing: {report}");
    }
    let stored = Pair::synced(false, fill);
    assert!(stored.one.run(&["doctor"]).ok().stdout.contains("may hold data"));
    let nothing = Device::new(pair.room.path(), "nothing");
    nothing.run(&["doctor"]).ok();
}

#[test]
fn init_says_what_is_wrong_before_it_changes_anything() {
    let pair = Pair::synced(false, fill);
    let again = pair.one.run(&["init", "--json"]);
    assert_eq!(again.json()["code"], "E0401");
    let backend = format!("disk=file:{}", pair.store().display());
    let again = pair.one.run(&["init", "--backend", &backend, "--json"]).ends_with(1).json();
    assert_eq!(again["code"], "E0202");
    let inside =
        pair.one.run(&["init", "deep", "--backend", &backend, "--json"]).ends_with(1).json();
    assert_eq!(inside["code"], "E0202");
    let dry = Device::new(pair.room.path(), "dry");
    dry.run(&["init", "sub", "--backend", &backend, "--workspace", "X", "--dry-run"]).ok();
    assert!(!dry.has("sub"));
}
