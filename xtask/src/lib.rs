//! The one door for automation: the test run, the demo, the tidy checks, the site of the documents,
//! the benchmarks beside other programs and the kill -9 rig.
//!
//! It knows the repository as files and the program `syncline` as a black box reached through its
//! command line. It does not know any crate of the product: no room is linked into it, so it
//! compiles in seconds and judges the product from outside.
//!
//! Reading order: [`failure`], [`arguments`], [`process`], [`random`], then one module per task:
//! [`test_run`], [`demo`], [`tidy`], [`syncline`] (our program as a child process), [`bench`],
//! [`install`], [`services`], [`doors`], [`web`], [`crash`], [`deb`], [`markdown`] (how documents are
//! read), [`site`].
#![forbid(unsafe_code)]
#![warn(missing_docs)]
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "automation is a thin shell: it reads clocks, files and the environment, and prints"
)]

pub mod arguments;
pub mod bench;
pub mod crash;
pub mod deb;
pub mod demo;
pub mod doors;
pub mod failure;
pub mod install;
pub mod markdown;
pub mod process;
pub mod random;
pub mod services;
pub mod site;
pub mod syncline;
pub mod test_run;
pub mod tidy;
pub mod web;

use std::path::PathBuf;

use arguments::Arguments;
use failure::{Result, fail};

const USAGE: &str = "\
usage: cargo xtask <task>

  test [--quick]      the whole test run; stops at the first failing section; --without services
                      leaves out the real servers, --without web the web app, and services,web both;
                      --minutes N leaves out what would not end in that time here
  demo [ARGS...]      builds the release program and runs `syncline demo ARGS`
  web [core|test]     builds the web app, which programs built after it have in them; only what it runs
                      of our rooms; tries it
  deb                 builds a package for Debian  (cargo xtask deb --help)
  site                builds a site of all documents  (cargo xtask site --help)
  tidy                checks the repository itself: borders, named paths, links, sizes, words
  bench peers         other programs beside ours, one table     (cargo xtask bench --help)
  bench latency       a small file from device to device through the server
  bench many-small    100,000 files of 4 KB through the server
  bench rescan        a sync that has nothing to do in a tree of 1,000,000 files
  bench idle          a watch with the source tree loaded and nothing to do
  bench server        thousands of devices against a server: commits a second, push, idle, bad moments
  bench web           every way of sending what has changed in a real browser, beside native rsync
  services start      real servers on loopback for the tests of the stores  (test, stop, status, env)
  doors               programs of others at WebDAV and REST: litmus, rclone, ...  (cargo xtask doors --help)
  crash [--kills N]   two devices and a server under kill -9, then every promise is checked";

/// Runs the task that the words of a command line (without the program's own name) ask for.
pub fn run(words: Vec<String>) -> Result<()> {
    let mut arguments = Arguments::new(words);
    match arguments.next_word().as_deref() {
        Some("test") => test_run::run(arguments),
        Some("demo") => demo::run(arguments),
        Some("deb") => deb::run(arguments),
        Some("site") => site::run(arguments),
        Some("tidy") => tidy::run(arguments),
        Some("bench") => bench::run(arguments),
        Some("services") => services::run(arguments),
        Some("doors") => doors::run(arguments),
        Some("web") => web::run(arguments),
        Some("crash") => crash::run_command(arguments),
        Some("help" | "--help" | "-h") | None => {
            println!("{USAGE}");
            Ok(())
        }
        Some(other) => fail(format!("no task is called '{other}'\n\n{USAGE}")),
    }
}

/// The root folder of the repository: the parent of this crate's folder.
pub fn repository_root() -> PathBuf {
    let own_folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    own_folder.parent().map(PathBuf::from).unwrap_or(own_folder)
}
