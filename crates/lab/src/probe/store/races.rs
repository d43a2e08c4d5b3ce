//! Whether of several that want to make the same object exactly one does.

use super::CallError;
use super::room::{Room, Tally, at_once, rest};
use crate::error::LabError;
use crate::stopwatch::Stopwatch;

/// How many want to make it.
const RACERS: usize = 8;

/// Of the object, in bytes: long ones are on their way at the same time also where a store looks first, and takes them in then.
const SIZE: usize = 64 << 10;

/// What came of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Races {
    /// How many races there were.
    pub run: u64,
    /// Whether the store has no way to do it.
    pub is_unsupported: bool,
    /// Races that one has won, whose bytes are there.
    pub good: u64,
    /// Races that several were told to have won.
    pub several: u64,
    /// Races that nobody was told to have won, although all were answered.
    pub nobody: u64,
    /// Races after which other bytes are there than those of who has won.
    pub other: u64,
    /// Objects that one who came later has written over, or could have.
    pub late: u64,
    /// Races of which nothing is known, because calls failed.
    pub undecided: u64,
    /// What failed.
    pub tally: Tally,
}

impl Races {
    /// Returns how many races had an end that they should not have.
    pub fn bad(&self) -> u64 {
        self.several + self.nobody + self.other + self.late
    }
}

pub(super) fn run(room: &Room<'_>) -> Result<Races, LabError> {
    let mut races = Races::default();
    for number in 0..room.subject.sizes.races {
        if !room.goes_on() || races.is_unsupported {
            break;
        }
        race(room, &format!("race-{number}"), &mut races)?;
    }
    Ok(races)
}

fn race(room: &Room<'_>, name: &str, races: &mut Races) -> Result<(), LabError> {
    let bytes = |racer: usize| room.bytes(&format!("{name}-{racer}"), SIZE);
    let bodies: Vec<Vec<u8>> = (0..RACERS).map(bytes).collect();
    let (answers, _) = at_once(RACERS, &|racer| room.create(name, &bodies[racer]))?;
    if answers.iter().any(|answer| matches!(answer, Err(CallError::Unsupported { .. }))) {
        races.is_unsupported = true;
        return Ok(());
    }
    races.run += 1;
    let has_failed = answers.iter().any(Result::is_err);
    for error in answers.iter().filter_map(|answer| answer.as_ref().err()) {
        races.tally.fail(error);
    }
    let mut won = (0..RACERS).filter(|racer| answers[*racer] == Ok(true));
    let (winner, second) = (won.next(), won.next());
    let count = match (winner, second) {
        (_, Some(_)) => &mut races.several,
        // Whoever failed may have won.
        (None, None) if has_failed => &mut races.undecided,
        (None, None) => &mut races.nobody,
        (Some(winner), None) => judge(room, name, &bodies[winner], races),
    };
    *count += 1;
    Ok(())
}

/// Looks at the object of a race that one has won, by itself and when somebody comes too late.
fn judge<'a>(room: &Room<'_>, name: &str, body: &[u8], races: &'a mut Races) -> &'a mut u64 {
    let is_there = || {
        let watch = Stopwatch::start();
        // One that is not there yet is no other one.
        while room.get(name)?.is_none() && watch.wall() < room.subject.patience && room.goes_on() {
            rest(watch.wall());
        }
        Ok(room.get(name)?.as_deref() == Some(body))
    };
    let look = || -> Result<(bool, bool), CallError> {
        if !is_there()? {
            return Ok((false, true));
        }
        let is_refused = !room.create(name, b"late")?;
        Ok((true, is_refused && is_there()?))
    };
    match look() {
        Ok((true, true)) => &mut races.good,
        Ok((false, _)) => &mut races.other,
        Ok((true, false)) => &mut races.late,
        Err(error) => {
            races.tally.fail(&error);
            &mut races.undecided
        }
    }
}
