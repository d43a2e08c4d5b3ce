//! Runs many worlds: `simulate --seeds 0..1000`, or one of them with all that happens: `simulate --one 17 --verbose`.

use std::io::Write;

use testkit::coverage::Coverage;
use testkit::{WorldOptions, run};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let value = |name: &str| {
        let index = arguments.iter().position(|argument| argument == name)?;
        arguments.get(index + 1).cloned()
    };
    let is_verbose = arguments.iter().any(|argument| argument == "--verbose");
    let is_calm = arguments.iter().any(|argument| argument == "--calm");
    let range = match (value("--one"), value("--seeds")) {
        (Some(seed), _) => {
            let seed: u64 = seed.parse().expect("a seed is a number");
            seed..seed + 1
        }
        (None, seeds) => {
            let seeds = seeds.unwrap_or_else(|| "0..1000".to_owned());
            let (first, end) = seeds.split_once("..").expect("seeds are given as A..B");
            first.parse().expect("a seed is a number")..end.parse().expect("a seed is a number")
        }
    };
    let coverage = Coverage::default();
    let mut failed = 0;
    let mut out = std::io::stdout().lock();
    for seed in range.clone() {
        let options =
            if is_calm { WorldOptions::calm(seed) } else { WorldOptions::from_seed(seed) };
        let text = format!("{options:?}");
        let outcome = match std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            run(options, &coverage, is_verbose)
        })) {
            Ok(outcome) => outcome.violations,
            Err(_) => vec!["it panicked".to_owned()],
        };
        if !outcome.is_empty() {
            failed += 1;
            let shown = if is_verbose { text } else { String::new() };
            writeln!(out, "seed {seed}: {} {shown}", outcome.join("; "))
                .expect("the output is open");
        }
    }
    writeln!(out, "{failed} of {} seeds failed\n{coverage}", range.end - range.start)
        .expect("the output is open");
    std::process::exit(i32::from(failed > 0));
}
