//! The web app: builds it from its sources, and tries it in a real browser against the real program.

use std::path::PathBuf;
use std::process::Command;

use crate::arguments::Arguments;
use crate::failure::{Result, fail};
use crate::{demo, install, process, repository_root, test_run};

/// The oldest Node.js that the tools of the app run on.
const NODE_MIN: (u32, u32) = (20, 19);

/// The browser, a package of Debian; `CHROMIUM` names another one.
const CHROMIUM: &str = "/usr/bin/chromium";

/// What a browser runs.
pub const WASM: &str = "wasm32-unknown-unknown";

/// Builds the app into `web/dist`, which programs built from then on have in them; with the word `test` it is checked and tried, too.
pub fn run(mut arguments: Arguments) -> Result<()> {
    match arguments.next_word().as_deref() {
        None => build(),
        Some("core") => {
            arguments.finish()?;
            core()
        }
        Some("test") => {
            arguments.finish()?;
            test()
        }
        Some(other) => fail(format!("`cargo xtask web` has no '{other}', only `core` and `test`")),
    }
}

/// Installs what the app is made of, and builds it.
pub fn build() -> Result<()> {
    check_node()?;
    core()?;
    npm(&["ci", "--no-audit", "--no-fund"], &[])?;
    npm(&["run", "build"], &[])
}

/// Builds what the app runs of our rooms: a module for WebAssembly, and the JavaScript beside it.
pub fn core() -> Result<()> {
    add_target()?;
    let mut command = test_run::cargo();
    command.args(["build", "--package", "wasm", "--profile", "wasm", "--target", WASM]);
    process::run(command.env("CARGO_ENCODED_RUSTFLAGS", rust_flags().join("\x1f")))?;
    let module = demo::target_folder()?.join(WASM).join("wasm/wasm.wasm");
    let mut command = test_run::cargo();
    command.args(["run", "--quiet", "--package", "glue", "--features", "write", "--"]);
    process::run(command.arg(module).arg(folder().join("packages/core/dist")))
}

/// Vectors of 128 bits, which all browsers have; and no folder of whoever builds it, so that everybody builds the same.
fn rust_flags() -> Vec<String> {
    let cargo_home = std::env::var("CARGO_HOME")
        .or_else(|_| std::env::var("HOME").map(|home| format!("{home}/.cargo")));
    let root = repository_root().display().to_string();
    let folders = cargo_home.into_iter().map(|home| (home, "cargo")).chain([(root, "syncline")]);
    let remap = folders.map(|(folder, name)| format!("--remap-path-prefix={folder}={name}"));
    std::iter::once("-Ctarget-feature=+simd128".to_owned()).chain(remap).collect()
}

/// Rustup fetches the target by itself unless it was told to fetch nothing unasked, so it is asked; without rustup cargo says what is
/// missing.
pub fn add_target() -> Result<()> {
    let listed = process::output(Command::new("rustup").args(["target", "list", "--installed"]));
    let is_missing = listed.is_ok_and(|listed| !listed.lines().any(|target| target == WASM));
    match is_missing {
        true => process::run(Command::new("rustup").args(["target", "add", WASM])),
        false => Ok(()),
    }
}

/// Checks the sources, tries their parts, and plays what people do in a browser with the program.
pub fn test() -> Result<()> {
    build()?;
    for task in ["tidy", "test:unit"] {
        npm(&["run", task], &[])?;
    }
    let chromium = chromium()?;
    // The example makes cargo build the program with the features that tests have, so after them nothing is built again.
    let words = ["build", "--bin", "syncline", "--example", "simulate"];
    process::run(test_run::cargo().args(words))?;
    let program = demo::target_folder()?.join("debug/syncline").display().to_string();
    npm(&["run", "test:browser"], &[("SYNCLINE_BINARY", &program), ("CHROMIUM", &chromium)])
}

/// Says where the browser is, and installs it where there is none.
pub fn chromium() -> Result<String> {
    let chromium = std::env::var("CHROMIUM").unwrap_or_else(|_| CHROMIUM.to_owned());
    if !process::is_installed(&chromium) {
        install::packages(&["chromium"])?;
    }
    Ok(chromium)
}

/// Where the sources of the app are.
pub fn folder() -> PathBuf {
    repository_root().join("web")
}

fn npm(words: &[&str], variables: &[(&str, &str)]) -> Result<()> {
    let mut command = Command::new("npm");
    process::run(command.args(words).envs(variables.iter().copied()).current_dir(folder()))
}

/// An older Node.js fails in the middle of a build, with words that help nobody.
fn check_node() -> Result<()> {
    let (major, minor) = NODE_MIN;
    let wanted = format!("the web app is built with Node.js {major}.{minor} or newer");
    let Ok(said) = process::output(Command::new("node").arg("--version")) else {
        return fail(format!("{wanted}, and there is none here"));
    };
    match version(&said) {
        Some(found) if found >= NODE_MIN => Ok(()),
        _ => fail(format!("{wanted}; here is {}", said.trim())),
    }
}

/// Reads `v20.19.1`.
fn version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.trim().strip_prefix('v')?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_node_are_compared_as_numbers() {
        assert_eq!(version("v20.19.1\n"), Some((20, 19)));
        assert!(version("v20.9.0") < Some(NODE_MIN) && version("v9.99.0") < Some(NODE_MIN));
        assert!(version("v100.0.0") > Some(NODE_MIN));
        assert_eq!(version("something else"), None);
    }
}
