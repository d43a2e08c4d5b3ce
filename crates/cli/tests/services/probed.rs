//! `syncline bench` over packets that tcpdump really captures, and of stores on real servers.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Stdio};
use std::sync::PoisonError;

use rustix::process::{Signal, geteuid};
use serde_json::Value;

use crate::stage::{ALONE, running, write_credentials};
use crate::support::{Device, Pair, terminate};

/// Lets both devices watch their folders.
fn watched(pair: &Pair) -> [Child; 2] {
    [&pair.one, &pair.other]
        .map(|device| device.command(&["watch"]).stdout(Stdio::null()).spawn().unwrap())
}

fn end(watches: [Child; 2]) {
    for mut watch in watches {
        terminate(&mut watch, Signal::TERM);
    }
}

/// Returns what a probe has answered to one question.
fn answer_of(probed: &Value, feature: &str) -> String {
    let answers = probed["answers"].as_array().unwrap();
    let found = answers.iter().find(|answer| answer["feature"] == feature).unwrap();
    found["answer"].as_str().unwrap().to_owned()
}

#[test]
fn a_probe_finds_out_of_our_own_program_what_it_does() {
    let pair = Pair::synced(true, |_| {});
    let server = pair.server.as_ref().unwrap();
    let port = server.url.rsplit_once(':').unwrap().1.to_owned();
    let data = server.data.to_str().unwrap();
    let [here, there] = [&pair.one, &pair.other].map(|device| device.folder.to_str().unwrap());
    let watches = watched(&pair);
    let words = ["bench", "probe", here, "--seen-in", there, "--stored", data, "--port", &port];
    let more = [
        "--name",
        "ours",
        "--quick",
        "--silence-ms",
        "200",
        "--patience",
        "30",
        "--out",
        "../out",
        "--json",
    ];
    let run = pair.one.run(&[&words[..], &more].concat());
    end(watches);
    if run.code != 0 && !geteuid().is_root() {
        // Who may not capture packets is told so.
        assert!(run.stderr.contains("E0219"), "{run:?}");
        return;
    }
    let summary = run.ok().json();
    let answer = |feature: &str| answer_of(&summary, feature);
    // A plain workspace over plain HTTP: what it does hides nothing, and the probe has to say so.
    assert_eq!(answer("Encrypted on the wire"), "no");
    assert_eq!(answer("Contents readable where they are stored"), "yes");
    assert!(answer("Compression").starts_with("yes, text "), "{summary}");
    assert!(answer("Deduplication").starts_with("yes, "), "{summary}");
    assert_eq!(answer("Deduplication with what was removed"), "yes");
    assert_eq!(answer("Renaming moves the content again"), "no");
    assert!(answer("Chunking").starts_with("parts: "), "{summary}");
    assert_eq!(answer("Loss under load"), "0 of 100");
    assert_eq!(pair.one.tree(), pair.other.tree());
}

#[test]
fn a_benchmark_tells_what_went_over_the_port_under_test_and_no_other() {
    let pair = Pair::synced(true, |_| {});
    let port = pair.server.as_ref().unwrap().url.rsplit_once(':').unwrap().1.to_owned();
    let there = pair.other.folder.display();
    let text = format!(
        "operation = \"upload\"\ntimes = 4\n[files]\nsize = 50000\n[target]\nseen_in = \"{there}\"\n"
    );
    let file = pair.one.folder.with_file_name("wire.toml");
    fs::write(&file, text + &format!("folder = \"{}\"\n", pair.one.folder.display())).unwrap();
    let watches = watched(&pair);
    let measure = |port: &str| {
        let words = ["bench", "run", file.to_str().unwrap(), "--out", "../out", "--json"];
        pair.one.run(&[&words[..], &["--capture-port", port]].concat())
    };
    let (run, silent) = (measure(&port), measure("9"));
    end(watches);
    if run.code != 0 && !geteuid().is_root() {
        assert!(run.stderr.contains("E0219"), "{run:?}");
        return;
    }
    let summary = run.ok().json();
    let bytes = |way: &str| summary["wire"][way]["bytes"].as_u64().unwrap();
    // Four files of 50 KB that nothing compresses go up once, and come down to the other device at least.
    assert!((200_000..300_000).contains(&bytes("up")), "{summary}");
    assert!((200_000..600_000).contains(&bytes("down")), "{summary}");
    assert_eq!(summary["wire"]["fault"], Value::Null);
    let page = pair.one.folder.join(summary["page"].as_str().unwrap());
    let pcap = fs::metadata(page.with_file_name("benchmark.pcap")).unwrap();
    assert!(pcap.len() > 400_000 && pcap.permissions().mode() & 0o077 == 0, "{pcap:?}");

    // Of a port that nothing goes over, everything could be believed.
    let silent = silent.ends_with(1);
    assert!(silent.stdout.contains("nothing went over port 9"), "{silent:?}");
}

#[test]
fn a_probe_finds_out_of_stores_on_real_servers_what_they_do_and_leaves_nothing_there() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let running = running();
    let room = tempfile::tempdir().unwrap();
    let device = Device::new(room.path(), "device");
    for server in ["openssh", "moto"] {
        let service = running.service(server).unwrap();
        let credentials = room.path().join(format!("{server}.toml"));
        let secrets = service.credentials.iter().map(|(key, value)| (&**key, &**value));
        write_credentials(&credentials, secrets);
        let words = ["bench", "probe", &service.url, "--quick", "--json", "--name", server];
        let more = ["--credentials", credentials.to_str().unwrap(), "--out", "../out"];
        let found = device.run(&[&words[..], &more].concat()).ok().json();
        let answer = |feature: &str| answer_of(&found, feature);
        for (feature, good) in [
            ("Ready after", "at once"),
            ("Removal listed after", "at once"),
            ("Lists while objects come and go", "right"),
            ("Lists over several pages", "right"),
            ("Loss under load", "0 of 100"),
            ("Makes an object only where none is", "yes"),
            ("Calls that failed", "0"),
        ] {
            assert_eq!(answer(feature), good, "{server}: {feature}: {found}");
        }
        // What may still be there would be a warning.
        assert_eq!(found["warnings"], serde_json::json!([]));
    }
}
