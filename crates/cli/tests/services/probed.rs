//! `syncline bench probe` over packets that tcpdump really captures.

use std::process::Stdio;

use rustix::process::{Signal, geteuid};

use crate::support::{Pair, terminate};

#[test]
fn a_probe_finds_out_of_our_own_program_what_it_does() {
    let pair = Pair::synced(true, |_| {});
    let server = pair.server.as_ref().unwrap();
    let port = server.url.rsplit_once(':').unwrap().1.to_owned();
    let data = server.data.to_str().unwrap();
    let [here, there] = [&pair.one, &pair.other].map(|device| device.folder.to_str().unwrap());
    let mut watches: Vec<_> = [&pair.one, &pair.other]
        .map(|device| device.command(&["watch"]).stdout(Stdio::null()).spawn().unwrap())
        .into();
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
    for watch in &mut watches {
        terminate(watch, Signal::TERM);
    }
    if run.code != 0 && !geteuid().is_root() {
        // Who may not capture packets is told so.
        assert!(run.stderr.contains("E0219"), "{run:?}");
        return;
    }
    let summary = run.ok().json();
    let answer = |feature: &str| {
        let answers = summary["answers"].as_array().unwrap();
        let found = answers.iter().find(|answer| answer["feature"] == feature).unwrap();
        found["answer"].as_str().unwrap().to_owned()
    };
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
