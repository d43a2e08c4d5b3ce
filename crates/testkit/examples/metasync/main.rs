//! The figures of MetaSync 2015 over emulated services: `metasync agreement|folders|all [--seeds N] [--csv DIR] [--svg DIR]`.
//!
//! `metasync bounds` computes what Table 7 could be at best. `metasync trace [--folder NAME] [--setting NAME] [--seed N] [--svg DIR] [--csv DIR]` draws every request of one run: of a clone
//! where the setting is one of Figure 10 and the folder is not named, else of both ways of Table 7.

use std::error::Error;
use std::path::PathBuf;

use lab::output::{Output, say};

mod agreement;
mod bounds;
mod folders;
mod trace;

/// How many seeds each figure is the median of: agreement, and folders.
const SEEDS: u64 = 31;
const SEEDS_OF_FOLDERS: u64 = 5;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let value = |name: &str| {
        let index = arguments.iter().position(|argument| argument == name)?;
        arguments.get(index + 1).cloned()
    };
    let what = arguments.first().map_or("all", String::as_str);
    let seeds = |usual| value("--seeds").map_or(Ok(usual), |text| text.parse());
    let folder = |name| PathBuf::from(value(name).unwrap_or_else(|| "bench-results".to_owned()));
    let output = Output::new(folder("--csv"), folder("--svg"))?;
    if what == "bounds" {
        return bounds::run(&output);
    }
    if what == "trace" {
        let seed = value("--seed").map_or(Ok(0), |text| text.parse())?;
        return trace::run(
            value("--folder"),
            &value("--setting").unwrap_or_default(),
            seed,
            &output,
        );
    }
    if matches!(what, "agreement" | "all") {
        agreement::run(seeds(SEEDS)?, &output)?;
    }
    if matches!(what, "folders" | "all") {
        bounds::run(&output)?;
        folders::run(seeds(SEEDS_OF_FOLDERS)?, &output)?;
    }
    say(&format!("every run: {}", output.csv.display()));
    Ok(())
}
