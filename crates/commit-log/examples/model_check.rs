//! Checks the agreement by running through every state of its models, and prints a table.
//!
//! `cargo run --release -p commit-log --example model_check -- [STATES_MAX [WORD [ways|deep]]]`: at most so many states for
//! each line, only the lines whose name contains the word; with `ways` how to get to what should not be, with `deep` the
//! farthest states first, which takes little memory where there are many.

#![expect(clippy::print_stdout, reason = "the table is what this program is for")]

#[path = "../tests/it/worlds.rs"]
mod worlds;

use worlds::checking::Search;
use worlds::scenarios::{
    growing_worlds, helping_mutants, helping_worlds, large_slot_worlds, led_mutants, led_worlds,
    lying_mutants, mending_mutants, mending_worlds, moving_mutants, moving_worlds, older_mutants,
    older_worlds, slot_mutants, slot_worlds,
};

const STATES_MAX: usize = 10_000_000;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let states_max = arguments.first().and_then(|text| text.parse().ok()).unwrap_or(STATES_MAX);
    let word = arguments.get(1).cloned().unwrap_or_default();
    let shows_ways = arguments.get(2).is_some_and(|text| text == "ways");
    let search = match arguments.get(2).is_some_and(|text| text == "deep") {
        true => Search::Depth,
        false => Search::Breadth,
    };
    println!("{:<60} | expected | {:>10} | {:<10} | result", "world", "states", "");
    let worlds = slot_worlds().into_iter().chain(large_slot_worlds());
    let worlds = worlds.chain(led_worlds()).chain(helping_worlds());
    let mutants = slot_mutants().into_iter().chain(lying_mutants()).chain(older_mutants());
    let worlds = worlds.chain(mending_worlds());
    let mutants = mutants.chain(led_mutants()).chain(helping_mutants()).chain(mending_mutants());
    let changing = growing_worlds().into_iter().chain(moving_worlds()).chain(moving_mutants());
    let scenarios = worlds.chain(changing).chain(older_worlds()).chain(mutants);
    for scenario in scenarios.filter(|scenario| scenario.name.contains(&word)) {
        let verdict = scenario.run(search, states_max);
        let expected = if scenario.is_safe { "safe" } else { "broken" };
        println!("{:<60} | {expected:<8} | {verdict}", scenario.name);
        if shows_ways || verdict.broken.is_empty() != scenario.is_safe {
            println!("{}", verdict.ways());
        }
    }
}
