//! What a server does of the work, and how many do it.

use std::ops::RangeInclusive;

use clap::ValueEnum;

/// What a server does of the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RoleArgument {
    /// Everything.
    All,
    /// Lets devices in, and leaves their commits to sync services.
    Gateway,
    /// Takes commits from the queue, and lets no device in.
    SyncService,
    /// Starts and ends sync services on this computer, by how long commits wait.
    Supervisor,
}

/// Reads how many there are at least and at most.
pub(super) fn instances(text: &str) -> Result<RangeInclusive<usize>, String> {
    let range = text.split_once("..").and_then(|(from, to)| {
        let (from, to) = (from.parse::<usize>().ok()?, to.parse::<usize>().ok()?);
        (1..=INSTANCES_MAX).contains(&from).then_some(from..=to)
    });
    let is_range =
        |range: &RangeInclusive<usize>| !range.is_empty() && *range.end() <= INSTANCES_MAX;
    range
        .filter(is_range)
        .ok_or_else(|| format!("two numbers from 1 to {INSTANCES_MAX}, such as 1..8"))
}

/// How many sync services one supervisor runs at most.
const INSTANCES_MAX: usize = 1000;
