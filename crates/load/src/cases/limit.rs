//! What PostgreSQL itself does on this machine, by `pgbench`: its own small transactions, and what a sync service writes for groups of
//! commits. With these figures beside them, those of a cluster say how much of them is the database.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};

use super::{Bench, Options};
use crate::cluster::Ground;
use crate::report::scaled::Limit;
use lab::output::say;

/// How large the tables of `pgbench` are, in hundreds of thousands of rows.
const SCALE: &str = "10";

/// How many clients `pgbench` has for its own transactions.
const CLIENTS: [usize; 2] = [1, 16];

/// How many commits share a transaction.
const GROUPS: [usize; 4] = [1, 16, 64, 256];

/// How long each run takes.
const LENGTH: Duration = Duration::from_secs(5);
const LENGTH_QUICK: Duration = Duration::from_secs(1);

/// How long it takes at most where nothing was done in less.
const LENGTH_MAX: Duration = Duration::from_secs(30);

/// What `pgbench` says where no transaction was done, and it has no rate to tell.
const NOTHING_DONE: &str = "transactions actually processed: 0\n";

const PREPARE: &str = include_str!("limit/prepare.sql");
const GROUP: &str = include_str!("limit/group.sql");

/// Runs the case.
///
/// # Errors
/// Where `pgbench` fails.
pub(super) fn run(bench: &mut Bench<'_>, services: &Path) -> Result<()> {
    let options = bench.options.clone();
    let plain = Ground::prepare(&options.binary, &options.work, services)?;
    let scale = if options.quick { "1" } else { SCALE };
    plain.run("pgbench", &["--initialize", "--quiet", "--scale", scale, &plain.database])?;
    for clients in CLIENTS {
        note(bench, Limit::new("pgbench -N", clients, 1), &plain, &["--skip-some-updates"])?;
    }
    drop(plain);
    // The tables are those of the program.
    let ours = Ground::prepare(&options.binary, &options.work, services)?;
    ours.setting.add_accounts(&["limit".to_owned()])?;
    let script = |name: &str, text: &str| write(&ours.setting.folder().join(name), text);
    let prepare = script("prepare.sql", PREPARE)?;
    ours.run("psql", &["--quiet", "--set", "ON_ERROR_STOP=1", "--file", &prepare, &ours.database])?;
    let group_script = script("group.sql", GROUP)?;
    for clients in options.scaled.sync_services {
        for group in GROUPS {
            let size = format!("group={group}");
            let words = ["--no-vacuum", "--define", &size, "--file", &group_script];
            note(bench, Limit::new("the inserts of a group", clients, group), &ours, &words)?;
        }
    }
    Ok(())
}

/// Runs `pgbench` and notes what it says.
fn note(bench: &mut Bench<'_>, mut limit: Limit, ground: &Ground, words: &[&str]) -> Result<()> {
    let Options { seed, quick, .. } = bench.options;
    let mut length = if *quick { LENGTH_QUICK } else { LENGTH };
    let (clients, seed) = (limit.clients.to_string(), (*seed as u32).to_string());
    let said = loop {
        let seconds = length.as_secs().to_string();
        let mut all = vec!["--protocol", "prepared", "--jobs", "1", "--client", &clients];
        all.extend(["--time", &seconds, "--random-seed", &seed]);
        all.extend(words);
        all.push(&ground.database);
        let said = ground.run("pgbench", &all)?;
        // A machine may stall for a second.
        if !said.contains(NOTHING_DONE) || length >= LENGTH_MAX {
            break said;
        }
        length *= 2;
    };
    let number = |start: &str| {
        let line = said.lines().find_map(|line| line.strip_prefix(start));
        let word = line.and_then(|rest| rest.split_whitespace().next());
        word.and_then(|word| word.parse::<f64>().ok()).with_context(|| format!("'{start}': {said}"))
    };
    limit.transactions_per_second = number("tps = ")?;
    limit.latency_ms = number("latency average = ")?;
    say(&limit.describe());
    bench.report.limits.push(limit);
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "pgbench reads its scripts from files")]
fn write(path: &Path, text: &str) -> Result<String> {
    std::fs::write(path, text)?;
    Ok(path.display().to_string())
}
