//! What starts the program for those who run it says only what the program understands.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::SYNCLINE;

fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging").join(name);
    fs::read_to_string(path).unwrap()
}

/// Tells whether the program knows all these flags; it says how they are used, and does nothing.
fn is_understood(words: &[String]) -> bool {
    let run = Command::new(SYNCLINE).args(words).arg("--help").output().unwrap();
    run.status.success()
}

/// Returns the lists of words that stand behind `mark`, as the containers are told them.
fn lists(text: &str, mark: &str) -> Vec<Vec<String>> {
    let lines = text.lines().filter_map(|line| line.trim().strip_prefix(mark));
    lines.map(|list| serde_json::from_str(list.trim()).unwrap()).collect()
}

#[test]
fn flags_that_are_not_there_are_not_understood() {
    assert!(!is_understood(&["serve".to_owned(), "--no-such-flag".to_owned()]));
}

#[test]
fn containers_start_what_there_is() {
    for (name, mark, count) in [
        ("Dockerfile", "CMD ", 1),
        ("compose.embedded.yaml", "command: ", 1),
        ("compose.scaled.yaml", "command: ", 4),
    ] {
        let commands = lists(&read(name), mark);
        assert_eq!(commands.len(), count, "{name}");
        for words in commands {
            assert!(is_understood(&words), "{name}: {words:?}");
        }
    }
}

#[test]
fn the_service_starts_what_there_is() {
    let (unit, settings) = (read("syncline.service"), read("server.env"));
    let start =
        unit.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/bin/syncline ")).unwrap();
    let flags: Vec<&str> = settings
        .lines()
        .filter_map(|line| line.trim_start_matches('#').strip_prefix("SYNCLINE_SERVE="))
        .collect();
    assert_eq!(flags.len(), 2);
    for flags in flags {
        let line = start.replace("$SYNCLINE_SERVE", flags.trim_matches('"'));
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        assert!(is_understood(&words), "{words:?}");
    }
}
