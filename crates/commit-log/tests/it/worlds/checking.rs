//! Runs a model and says what came of it.

use std::fmt;
use std::hash::Hash;

use stateright::{Checker, Expectation, HasDiscoveries, Model};

/// What came of a run.
#[derive(Debug)]
pub(crate) struct Verdict {
    /// How many different states were seen.
    pub states: usize,
    /// Whether these are all that there are.
    pub is_closed: bool,
    /// Which properties do not hold, each with the way to a state where it does not.
    pub broken: Vec<(String, String)>,
}

impl Verdict {
    /// Returns how to get to the states that should not be.
    pub(crate) fn ways(&self) -> String {
        self.broken.iter().map(|(name, way)| format!("{name}: {way}\n")).collect()
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let closed = if self.is_closed { "closed" } else { "not closed" };
        let broken: Vec<&str> = self.broken.iter().map(|(name, _)| name.as_str()).collect();
        let result = if broken.is_empty() { "safe".to_owned() } else { broken.join(", ") };
        write!(formatter, "{:>10} | {closed:<10} | {result}", self.states)
    }
}

/// In which order states are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Search {
    /// The nearest first: a way to a defect is short.
    Breadth,
    /// The farthest first: few states wait for their turn, so a world of a hundred million fits into memory.
    Depth,
}

/// Runs a model until everything was seen, a property fails, or so many states were generated.
pub(crate) fn check<M>(model: M, search: Search, states_max: usize) -> Verdict
where
    M: Model + Send + Sync + 'static,
    M::State: Hash + Send + Sync + Clone + fmt::Debug + PartialEq,
    M::Action: Clone + fmt::Debug + PartialEq,
{
    let checker = model
        .checker()
        .threads(1)
        .target_state_count(states_max)
        .finish_when(HasDiscoveries::AnyFailures);
    match search {
        Search::Breadth => verdict(&checker.spawn_bfs().join(), states_max),
        Search::Depth => verdict(&checker.spawn_dfs().join(), states_max),
    }
}

fn verdict<M>(checker: &impl Checker<M>, states_max: usize) -> Verdict
where
    M: Model,
    M::State: Hash + Clone + fmt::Debug + PartialEq,
    M::Action: Clone + fmt::Debug + PartialEq,
{
    let discoveries = checker.discoveries();
    let properties = checker.model().properties();
    let mut broken = Vec::new();
    for property in properties {
        match (property.expectation, discoveries.get(property.name)) {
            (Expectation::Always, Some(path)) => {
                broken.push((
                    property.name.to_owned(),
                    format!("{:#?}\n{:#?}", path.last_state(), path.clone().into_actions()),
                ));
            }
            (Expectation::Sometimes, None) if checker.state_count() < states_max => {
                broken.push((format!("never {}", property.name), String::new()));
            }
            _ => {}
        }
    }
    let is_closed = broken.is_empty() && checker.state_count() < states_max;
    Verdict { states: checker.unique_state_count(), is_closed, broken }
}
