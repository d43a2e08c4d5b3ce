//! The tests that need real servers, in two lanes side by side: most of them wait, for servers or for their own timers, and two cores have
//! room for two. Each lane has servers of its own, because tests kill them.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::{VARIABLE, fake_gcs};
use crate::failure::{Context, Result, fail};
use crate::{process, test_run};

/// The test binaries of this name or that one are built, of whichever package.
/// The conformance of messaging kills brokers, and so starts some of its own.
const TESTS: [&str; 2] = ["services", "brokers"];

/// The package of the first lane; its tests take as long as all others together.
const FIRST: &str = "cli";

/// Servers that only the tests of the other lane use.
const OF_OTHERS: [&str; 3] = ["azurite", fake_gcs::NAME, "swift"];

/// Which of these servers each lane needs: the first, and the other.
pub(super) fn shares(names: &[String]) -> [Vec<String>; 2] {
    let is_of_first = |name: &&String| !OF_OTHERS.contains(&name.as_str());
    [names.iter().filter(is_of_first).cloned().collect(), names.to_vec()]
}

/// A test binary.
#[derive(Debug, PartialEq, Eq)]
struct Binary {
    /// The folder of its package, in which it runs.
    folder: PathBuf,
    path: PathBuf,
}

/// Builds the tests and runs them, each lane told where its servers are. All of them run, even if some fail.
pub(super) fn run(states: &[PathBuf; 2]) -> Result<()> {
    let binaries = build()?;
    let is_first = |binary: &&Binary| binary.folder.ends_with(FIRST);
    let (first, others): (Vec<_>, Vec<_>) = binaries.iter().partition(is_first);
    run_lanes(&first, &others, states)
}

/// Runs one lane here and the other beside it.
fn run_lanes(first: &[&Binary], others: &[&Binary], states: &[PathBuf; 2]) -> Result<()> {
    let [state, state_beside] = states;
    std::thread::scope(|scope| {
        let run_others = || others.iter().map(|binary| binary.run_quietly(state_beside)).collect();
        let beside = scope.spawn(run_others);
        let ours: Vec<Result<()>> = first.iter().map(|binary| binary.run(state)).collect();
        let theirs: Vec<_> = beside.join().unwrap_or_else(|_| vec![fail("a lane panicked")]);
        ours.into_iter().chain(theirs).collect()
    })
}

/// Every package is named, so that features and with them the build are those of the other tests.
fn build() -> Result<Vec<Binary>> {
    let mut command = test_run::cargo();
    command.args([
        "test",
        "--workspace",
        "--no-run",
        "--message-format",
        "json-render-diagnostics",
    ]);
    command.args(TESTS.iter().flat_map(|name| ["--test", name]));
    command.stderr(std::process::Stdio::inherit());
    let output = command.output().context("cargo test --no-run")?;
    if !output.status.success() {
        return fail("the tests of services do not build");
    }
    let said = String::from_utf8_lossy(&output.stdout);
    let binaries: Vec<_> = said.lines().filter_map(read).collect();
    if binaries.is_empty() { fail("cargo has built no tests of services") } else { Ok(binaries) }
}

/// Reads a line of cargo; nothing where it speaks of something else than a test that was asked for.
fn read(line: &str) -> Option<Binary> {
    let message: Value = serde_json::from_str(line).ok()?;
    let path = message["executable"].as_str()?.into();
    let target = &message["target"];
    let is_wanted = target["kind"][0] == "test" && TESTS.contains(&target["name"].as_str()?);
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
    is_wanted.then_some(Binary { folder, path })
}

impl Binary {
    fn command(&self, state: &Path) -> Command {
        let mut command = Command::new(&self.path);
        command.current_dir(&self.folder).env(VARIABLE, state);
        command
    }

    fn run(&self, state: &Path) -> Result<()> {
        process::run(&mut self.command(state))
    }

    fn run_quietly(&self, state: &Path) -> Result<()> {
        process::run_quietly(&mut self.command(state), self.path.display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_behind_one_that_fails_run_nevertheless_and_the_failure_is_told() {
        let place = tempfile::tempdir().unwrap();
        let binary = |name: &str, text: &str| {
            use std::os::unix::fs::PermissionsExt;
            let path = place.path().join(name);
            std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
            Binary { folder: place.path().to_owned(), path }
        };
        // Each leaves the place that it was told in a file.
        let fails = binary("fails", "exit 1");
        let here = binary("here", "echo $SYNCLINE_SERVICES > h");
        let beside = binary("beside", "echo $SYNCLINE_SERVICES > b");
        let states = ["one", "two"].map(PathBuf::from);
        let told = run_lanes(&[&fails, &here], &[&fails, &beside], &states).unwrap_err();
        assert!(told.to_string().contains("fails"), "{told}");
        let heard = |name: &str| std::fs::read_to_string(place.path().join(name)).unwrap();
        assert_eq!((heard("h").as_str(), heard("b").as_str()), ("one\n", "two\n"));
        run_lanes(&[&here], &[&beside], &states).unwrap();
    }

    #[test]
    fn a_lane_has_the_servers_that_its_tests_use() {
        let names = ["openssh", "azurite", "nats"].map(str::to_owned);
        let [first, others] = shares(&names);
        assert_eq!(first, ["openssh", "nats"]);
        assert_eq!(others, names);
    }

    #[test]
    fn only_the_tests_that_were_asked_for_are_taken_from_what_cargo_says() {
        let line = |kind: &str, name: &str| {
            let target = serde_json::json!({ "kind": [kind], "name": name });
            serde_json::json!({
                "reason": "compiler-artifact", "manifest_path": "/p/crates/cli/Cargo.toml",
                "target": target, "executable": "/p/target/debug/deps/x",
            })
            .to_string()
        };
        let folder = PathBuf::from("/p/crates/cli");
        let path = PathBuf::from("/p/target/debug/deps/x");
        assert_eq!(read(&line("test", "services")), Some(Binary { folder, path }));
        assert_eq!(read(&line("bin", "services")), None);
        assert_eq!(read(&line("test", "it")), None);
        assert_eq!(read("   Compiling cli v0.1.0"), None);
    }
}
