//! Builds the release program and runs its demo.

use std::path::PathBuf;
use std::process::Command;

use crate::arguments::Arguments;
use crate::failure::{Result, fail};
use crate::{process, test_run};

/// Builds the program and runs `syncline demo` with the remaining words.
pub fn run(mut arguments: Arguments) -> Result<()> {
    let binary = release_program()?;
    process::run(Command::new(binary).arg("demo").args(arguments.rest()))
}

/// Builds the release program `syncline` and says where it is.
pub fn release_program() -> Result<PathBuf> {
    program("release")
}

/// Builds the program `syncline` by a profile that optimises, and says where it is.
pub fn program(profile: &str) -> Result<PathBuf> {
    Ok(build(profile, &["cli"])?.join("syncline"))
}

/// Builds packages together, so that what they share is built once for all of them, and says where their programs are.
pub fn build(profile: &str, packages: &[&str]) -> Result<PathBuf> {
    let mut command = test_run::cargo();
    command.args(["build", "--profile", profile]);
    command.args(packages.iter().flat_map(|package| ["--package", package]));
    process::run(&mut command)?;
    Ok(target_folder()?.join(profile))
}

/// Where cargo builds.
pub fn target_folder() -> Result<PathBuf> {
    let metadata = process::output(test_run::cargo().args([
        "metadata",
        "--no-deps",
        "--format-version",
        "1",
    ]))?;
    let metadata: serde_json::Value = serde_json::from_str(&metadata)?;
    match metadata["target_directory"].as_str() {
        Some(target) => Ok(PathBuf::from(target)),
        None => fail("cargo metadata names no target directory"),
    }
}
