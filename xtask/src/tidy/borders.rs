//! Borders inside the code: which room may name which thing.

use super::dependencies::has_word;
use super::{Finding, Repository};

/// A crate from elsewhere and the only places whose code may name it.
struct Border {
    word: &'static str,
    homes: &'static [&'static str],
    reason: &'static str,
}

const BORDERS: &[Border] = &[
    Border {
        word: "opendal",
        homes: &["crates/storage/"],
        reason: "stores are reached through storage::ObjectStore",
    },
    Border {
        word: "rusqlite",
        homes: DATABASE_HOMES,
        reason: "the server's SQL lives in server/metadata, a client's in sync/state",
    },
    Border {
        word: "tokio_postgres",
        homes: &["crates/server/src/metadata"],
        reason: "the server's SQL lives in server/metadata",
    },
    Border {
        word: "tokio_tungstenite",
        homes: &[
            "crates/commit-log/src/served/websocket",
            "crates/messaging/src/websocket/",
            "crates/server/tests/",
        ],
        reason: "a device reaches its server through one live connection",
    },
    Border {
        word: "reqwest",
        homes: &["crates/cli/", "crates/storage/", "crates/load/", "crates/server/src/oidc"],
        reason: "a server is reached by the program, by the stores that speak HTTP, and by the load generator; a server reaches a provider of identities only",
    },
    Border { word: "suppaftp", homes: &["crates/storage/"], reason: DRIVERS },
    Border { word: "russh", homes: &["crates/storage/"], reason: DRIVERS },
    Border { word: "smb2", homes: &["crates/storage/"], reason: DRIVERS },
    Border { word: "async_imap", homes: &["crates/storage/"], reason: DRIVERS },
    Border { word: "lapin", homes: &["crates/messaging/src/amqp"], reason: BROKERS },
    Border { word: "async_nats", homes: &["crates/messaging/src/nats"], reason: BROKERS },
    Border {
        word: "axum",
        homes: &["crates/server/", "crates/messaging/src/websocket/gateway"],
        reason: "only the server has doors, and message calls come in by one",
    },
    Border {
        word: "argon2",
        homes: &["crates/server/", "crates/passwords/", "crates/content/src/keyring/"],
        reason: "passwords are proved in a room of their own or checked by the server, passphrases stretched by the keyring",
    },
    Border {
        word: "chacha20poly1305",
        homes: &["crates/content/src/cipher.rs", "crates/server/src/auth/passwords.rs"],
        reason: "ciphers stand in one small module, but for what the server gives a client to keep",
    },
    Border { word: "diffy", homes: &["crates/sync/"], reason: "merging belongs to the engine" },
    Border { word: "notify", homes: &["crates/sync/"], reason: "watching belongs to the engine" },
    Border { word: "fastcdc", homes: &["crates/content/"], reason: "chunkers live in content" },
    Border { word: "bzip2", homes: &["crates/content/"], reason: "transforms live in content" },
    Border {
        word: "flate2",
        homes: &["crates/content/", "crates/lab/src/dataset/"],
        reason: "transforms live in content, but for documents that the lab makes, which are deflated inside",
    },
    Border { word: "clap", homes: &["crates/cli/"], reason: "only the program has a command line" },
    Border {
        word: "tracing_subscriber",
        homes: &["crates/cli/"],
        reason: "rooms emit events, the program decides where they go",
    },
];

const BROKERS: &str = "brokers are reached through messaging::Transport";
const DRIVERS: &str = "stores are reached through storage::ObjectStore";

/// Where SQL may stand. The simulated world opens both databases to damage and to judge them.
const SQL_HOMES: &[&str] =
    &["crates/server/src/metadata", "crates/sync/src/state", "crates/testkit/"];

/// The one error type of a room carries the database's error as its source.
const DATABASE_HOMES: &[&str] = &[
    "crates/server/src/metadata",
    "crates/server/src/error.rs",
    "crates/sync/src/state",
    "crates/sync/src/error.rs",
    "crates/testkit/",
    "crates/cli/tests/",
];

const SQL_PHRASES: [&str; 6] =
    ["INSERT INTO ", "DELETE FROM ", "CREATE TABLE ", "SELECT ", "PRAGMA ", "BEGIN IMMEDIATE"];

/// Rooms without input and output, and what they therefore may not name.
const PURE_ROOMS: [&str; 2] = ["crates/model/src/", "crates/content/src/"];
const IMPURE_WORDS: [&str; 8] = [
    "std::fs",
    "std::net",
    "std::process",
    "std::env",
    "std::time::Instant",
    "SystemTime",
    "tokio",
    "getrandom",
];

/// Checks that crates from elsewhere are named only in their homes.
pub fn words_stay_at_home(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, index, line) in product_lines(repository) {
        for border in BORDERS {
            let at_home = border.homes.iter().any(|home| path.starts_with(home));
            if !at_home && names_crate(line, border.word) {
                let message = format!("names `{}`: {}", border.word, border.reason);
                findings.push(Finding::at_line(path, index, message));
            }
        }
    }
    findings
}

/// Checks that SQL stands only in its homes.
pub fn sql_stays_at_home(repository: &Repository) -> Vec<Finding> {
    let lines = product_lines(repository)
        .filter(|(path, _, _)| !SQL_HOMES.iter().any(|home| path.starts_with(home)));
    let with_sql = lines.filter(|(_, _, line)| SQL_PHRASES.iter().any(|sql| line.contains(sql)));
    with_sql
        .map(|(path, index, _)| {
            Finding::at_line(path, index, format!("holds SQL; its homes are {SQL_HOMES:?}"))
        })
        .collect()
}

/// Checks that the pure rooms have no input, output, clock or randomness.
pub fn pure_rooms_touch_nothing(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, index, line) in product_lines(repository) {
        if !PURE_ROOMS.iter().any(|room| path.starts_with(room)) {
            continue;
        }
        for word in IMPURE_WORDS.iter().filter(|word| has_word(line, word)) {
            let message = format!("names `{word}`, but this room is pure");
            findings.push(Finding::at_line(path, index, message));
        }
    }
    findings
}

/// Every line of code under `crates/*/src`, tests and comments left out.
fn product_lines(repository: &Repository) -> impl Iterator<Item = (&str, usize, &str)> {
    repository
        .texts_with("crates/", ".rs")
        .filter(|(path, _)| path.contains("/src/") && !path.contains("/tests"))
        .flat_map(|(path, text)| {
            text.lines()
                .enumerate()
                .filter(|(_, line)| !line.trim_start().starts_with("//"))
                .map(move |(index, line)| (path, index, line))
        })
}

fn names_crate(line: &str, word: &str) -> bool {
    // `notify.notify_one()` is a variable; a crate is followed by `::` or imported.
    has_word(line, word)
        && (line.contains(&format!("{word}::")) || line.trim_start().starts_with("use "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repository(path: &str, text: &str) -> Repository {
        Repository::from_texts(&[(path, text)])
    }

    #[test]
    fn a_store_driver_outside_storage_is_found() {
        let code = "use opendal::Operator;\n// opendal:: in a comment\nlet opendal = 1;\n";
        assert_eq!(words_stay_at_home(&repository("crates/sync/src/engine.rs", code)).len(), 1);
        assert_eq!(words_stay_at_home(&repository("crates/storage/src/lib.rs", code)), []);
    }

    #[test]
    fn sql_outside_its_homes_is_found() {
        let code = "let statement = \"SELECT seq FROM entry\";\n/// SELECT in a comment\n";
        assert_eq!(sql_stays_at_home(&repository("crates/server/src/app.rs", code)).len(), 1);
        assert_eq!(sql_stays_at_home(&repository("crates/server/src/metadata/a.rs", code)), []);
        assert_eq!(sql_stays_at_home(&repository("crates/server/src/metadata.rs", code)), []);
    }

    #[test]
    fn a_clock_or_a_file_in_a_pure_room_is_found() {
        let code = "use std::fs;\nlet now = std::time::Instant::now();\n";
        assert_eq!(
            pure_rooms_touch_nothing(&repository("crates/model/src/fold.rs", code)).len(),
            2
        );
        assert_eq!(pure_rooms_touch_nothing(&repository("crates/sync/src/scan.rs", code)), []);
    }

    #[test]
    fn tests_of_a_room_may_name_what_they_need() {
        let code = "use rusqlite::Connection;\n";
        assert_eq!(words_stay_at_home(&repository("crates/cli/tests/it.rs", code)), []);
        assert_eq!(words_stay_at_home(&repository("crates/sync/src/scan/tests.rs", code)), []);
    }
}
