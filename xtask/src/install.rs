//! Programs that a task needs and a machine may not have: packages of Debian, and those of PyPI in a place of their own.

use std::path::PathBuf;
use std::process::Command;

use crate::failure::{Failure, Result};
use crate::{process, repository_root};

/// The package of Debian that lets Python make environments; its package `python3` leaves that out.
pub const PYTHON_PACKAGE: &str = "python3-venv";

/// Installs packages of Debian.
pub fn packages(names: &[&str]) -> Result<()> {
    if names.is_empty() {
        return Ok(());
    }
    println!("installing {}", names.join(" "));
    let apt = |words: &[&str]| {
        let mut command = Command::new("apt-get");
        // Nothing that comes with a package is started by it.
        command.args(words).env("DEBIAN_FRONTEND", "noninteractive").env("RUNLEVEL", "1");
        process::output(&mut command).map(drop)
    };
    apt(&["update"])?;
    let mut words = vec!["install", "--yes", "--no-install-recommends"];
    words.extend(names);
    apt(&words).map_err(|failure| Failure::new(format!("{failure} (this wants root)")))
}

/// The version of an installed package of Debian.
pub fn package_version(package: &str) -> String {
    let query = ["--show", "--showformat", "${Version}", package];
    process::output(Command::new("dpkg-query").args(query)).unwrap_or_default()
}

/// Whether there is a Python that makes environments.
pub fn python_makes_environments() -> bool {
    process::output(Command::new("python3").args(["-m", "ensurepip", "--version"])).is_ok()
}

/// The Python of an environment that has one release of a program of PyPI. It stays from one run to the next, because installing takes a while.
///
/// `package` is what pip is asked for, `modules` what must then be there to import.
pub fn python_with(name: &str, release: &str, package: &str, modules: &str) -> Result<PathBuf> {
    let folder = repository_root().join("target").join(format!("{name}-{release}"));
    let python = folder.join("bin").join("python");
    let import = format!("import {modules}");
    if process::output(Command::new(&python).args(["-c", &import])).is_ok() {
        return Ok(python);
    }
    println!("installing {name} {release}");
    process::output(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    let package = format!("{package}=={release}");
    process::output(Command::new(&python).args(["-m", "pip", "install", "--quiet", &package]))?;
    Ok(python)
}
